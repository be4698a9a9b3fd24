"""monitor.py LIBEXEC CACHE DIR PLAN GUEST: start sendbox-monitor by hand, as the command line would, with
the signed plan PLAN (a file of run --dry-run) and the session's directory DIR. The values of the
plan's environment are taken from ours; the audit log is the one beside CACHE. Prints "STATUS TEXT" of its last message; 0 = it ran."""
import array
import fcntl
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys

START, EXITED, DONE, AUDIT = 1, 34, 48, 160
libexec, cache, directory, plan, guest = sys.argv[1:]
with open(plan, encoding="utf-8") as f:
    signed = json.load(f)
text = signed["plan"].encode()
values = b""
for e in json.loads(signed["plan"])["env"]:
    v = os.environb.get(e["name"].encode(), b"")
    assert hashlib.sha256(v).hexdigest() == e["sha256"], e["name"]
    values += v + b"\0"


def memory(name, data):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


os.makedirs(directory, 0o700)
place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
lock = os.open(directory + "/lock", os.O_RDWR | os.O_CREAT, 0o600)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def put_fds():
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (theirs.fileno(), place, lock)]
    for i, fd in enumerate(high):
        os.dup2(fd, 3 + i)


child = subprocess.Popen([libexec + "/sendbox-monitor", libexec, cache, directory], env={}, preexec_fn=put_fds,
                         pass_fds=(3, 4, 5), start_new_session=True)
theirs.close()
null = os.open("/dev/null", os.O_RDWR)
fds = [memory("plan", text), memory("env", values), null, null, null, os.open(guest, os.O_RDONLY)]
body = os.urandom(32) + bytes.fromhex(signed["signature"]) + bytes.fromhex(signed["key"]) + bytes(3)


def send(kind, payload, with_fds):
    ours.sendmsg([struct.pack("<HHI", kind, len(with_fds), len(payload)) + payload],
                 [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", with_fds))])


state = os.path.join(os.path.dirname(cache), "state")
send(AUDIT, b"", [os.open(state + "/audit", os.O_RDONLY | os.O_DIRECTORY), os.open(state + "/keys/audit.key", os.O_RDONLY)])
send(START, body, fds)
ours.settimeout(60)
while True:
    m = ours.recv(70000)
    kind = struct.unpack_from("<H", m)[0] if m else DONE
    if kind == DONE:
        fail = struct.unpack_from("<I", m, 8)[0] if m else -1
        print(fail, m[64:564].split(b"\0")[0].decode() if m else "no last message")
        break
ours.close()
child.wait(30)
