#!/usr/bin/env python3
"""What a tar that means ill says: the case stands in /tmp/case."""
import io, os, sys, tarfile
case = open("/tmp/case").read().strip()
w = tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT)
def put(name, kind=tarfile.REGTYPE, link="", data=b"evil\n", mode=0o644):
    i = tarfile.TarInfo(name); i.type = kind; i.linkname = link; i.mode = mode
    i.size = len(data) if kind == tarfile.REGTYPE else 0
    w.addfile(i, io.BytesIO(data))
D, L, H = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
if case == "good": put("got", D, mode=0o755); put("got/x", mode=0o4755)
if case == "up": put("got", D); put("got/../../escaped")
if case == "absolute": put("/tmp/escaped")
if case == "other": put("other")
if case == "link": put("got", L, "/etc/passwd")
if case == "parent": put("got", D); put("got/l", L, "sub"); put("got/l/escaped")
if case == "parent-out": put("got", D); put("got/l", L, "../.."); put("got/l/escaped")
if case == "swap": put("got", D); put("got/d", D); put("got/d", L, "sub"); put("got/d/escaped")
if case == "hard": put("got", D); put("got/h", H, "/etc/passwd")
if case == "hard-up": put("got", D); put("got/h", H, "got/../../src/a")
if case == "device": put("got", D); put("got/d", tarfile.CHRTYPE)
if case == "fifo": put("got", tarfile.FIFOTYPE)
if case == "control": put("got", D); put("got/a\033[2Jb")
if case == "twice": put("got"); put("got")
if case == "climb": put("got", D, mode=0o755); put("got/a", L, "."); put("got/b", L, "a/../../x"); put("got/c", L, "../x")
if case == "many":
    put("got", D)
    for n in range(1000100): put("got/%d" % n, data=b"")
if case == "cut":
    put("got", data=b"x" * 100000); sys.stdout.buffer.flush(); os._exit(0)
if case == "junk": sys.stdout.buffer.write(os.urandom(10240)); sys.stdout.buffer.flush(); os._exit(0)
w.close()
