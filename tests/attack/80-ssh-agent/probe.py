"""probe.py SOCKET VECTORS [ONLY...]: what can be had of an SSH agent, one line each: NAME RESULT.

Result: yes (done), no (refused), gone (the connection was closed), or a number."""
import json
import os
import socket
import struct
import sys
import time

path, vectors = sys.argv[1], json.load(open(sys.argv[2]))
only = sys.argv[3:]
V = {k: bytes.fromhex(v) for k, v in vectors.items()}


def s(b):
    return struct.pack(">I", len(b)) + b


def connect():
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(60)
    c.connect(path)
    return c


def read(c):
    head = b""
    while len(head) < 4:
        got = c.recv(4 - len(head))
        if not got:
            return None
        head += got
    want, body = struct.unpack(">I", head)[0], b""
    while len(body) < want:
        got = c.recv(want - len(body))
        if not got:
            return None
        body += got
    return body


def ask(c, body):
    try:
        c.sendall(s(body))
        return read(c)
    except OSError:
        return None


def said(answer):
    return "gone" if answer is None else "no" if answer[0] in (5, 28) else "yes"


def once(body):
    return said(ask(connect(), body))


def login(session, key, user=b"root", host=None):
    method = b"publickey-hostbound-v00@openssh.com" if host else b"publickey"
    return (s(session) + b"\x32" + s(user) + s(b"ssh-connection") + s(method) + b"\x01" +
            s(b"ssh-ed25519") + s(key) + (s(host) if host else b""))


def sign(key, data, flags=0):
    return b"\x0d" + s(key) + s(data) + struct.pack(">I", flags)


def bind(host, session, signature, forwarding=0):
    return b"\x1b" + s(b"session-bind@openssh.com") + s(host) + s(session) + s(signature) + bytes([forwarding])


good = bind(V["good"], V["session"], V["good_sig"])
other = bytes(32)
flipped = V["good_sig"][:-1] + bytes([V["good_sig"][-1] ^ 1])
SSHSIG = b"SSHSIG" + s(b"git") + s(b"") + s(b"sha512") + s(bytes(64))


def after(*messages):
    c = connect()
    answers = [ask(c, m) for m in messages]
    return said(answers[-1])


def keys():
    answer = ask(connect(), b"\x0b")
    return struct.unpack(">I", answer[1:5])[0]


def many():
    held, done = [], 0
    for _ in range(1000):
        try:
            c = connect()
            c.sendall(b"\0\0\1\0half")
            held.append(c)
        except OSError:
            pass
    for c in held:
        c.close()
    for _ in range(100):
        try:
            if said(ask(connect(), b"\x0b")) == "yes":
                return "yes"
        except OSError:
            pass
        time.sleep(0.2)
    return "no"


def raw(data):
    c = connect()
    try:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        return said(read(c))
    except OSError:
        return "gone"


def half():
    c = connect()
    c.sendall(b"\0\0\0\x20\x0d")
    return once(b"\x0b")


def flood():
    c = connect()
    c.sendall(s(b"\x16") * 5000)
    n = 0
    while n < 5000 and read(c) is not None:
        n += 1
    return n


def trail():
    return raw(s(b"\x0b\x00"))


TESTS = {
    "keys": keys,
    "sign_work_bound": lambda: after(good, sign(V["work"], login(V["session"], V["work"], host=V["good"]))),
    "sign_work_bound_plain": lambda: after(good, sign(V["work"], login(V["session"], V["work"]))),
    "sign_spare_bound": lambda: after(good, sign(V["spare"], login(V["session"], V["spare"]))),
    "sign_unbound": lambda: once(sign(V["work"], login(V["session"], V["work"]))),
    "sign_other_session": lambda: after(good, sign(V["work"], login(other, V["work"]))),
    "sign_other_key_inside": lambda: after(good, sign(V["work"], login(V["session"], V["spare"]))),
    "sign_other_host_inside": lambda: after(good, sign(V["work"], login(V["session"], V["work"], host=V["evil"]))),
    "sign_forwarded": lambda: after(bind(V["good"], V["session"], V["good_sig"], 1), sign(V["work"], login(V["session"], V["work"]))),
    "sign_namespace_user": lambda: after(good, sign(V["work"], login(V["session"], V["work"], user=b"namespace git"))),
    "sign_long_user": lambda: after(good, sign(V["work"], login(V["session"], V["work"], user=b"x" * 300))),
    "sign_data": lambda: after(good, sign(V["work"], SSHSIG)),
    "sign_bytes": lambda: after(good, sign(V["work"], b"x" * 32)),
    "sign_flags": lambda: after(good, sign(V["work"], login(V["session"], V["work"]), 2)),
    "bind_good": lambda: after(good),
    "bind_flipped": lambda: after(bind(V["good"], V["session"], flipped)),
    "bind_flipped_then_sign": lambda: after(bind(V["good"], V["session"], flipped), sign(V["work"], login(V["session"], V["work"]))),
    "bind_evil": lambda: after(bind(V["evil"], V["session"], V["evil_sig"])),
    "bind_evil_then_sign": lambda: after(bind(V["evil"], V["session"], V["evil_sig"]), sign(V["work"], login(V["session"], V["work"]))),
    "bind_good_by_evil": lambda: after(bind(V["good"], V["session"], V["evil_sig"])),
    "bind_other_session": lambda: after(bind(V["good"], other, V["good_sig"])),
    "bind_twice": lambda: after(good, bind(V["good"], V["session2"], V["good_sig2"])),
    "bind_twice_then_sign": lambda: after(good, bind(V["good"], V["session2"], V["good_sig2"]), sign(V["work"], login(V["session2"], V["work"]))),
    "add": lambda: once(b"\x11" + s(b"ssh-ed25519") + s(bytes(32)) + s(bytes(64)) + s(b"evil")),
    "add_constrained": lambda: once(b"\x19" + s(b"ssh-ed25519") + s(bytes(32)) + s(bytes(64)) + s(b"evil") + b"\x02"),
    "smartcard": lambda: once(b"\x14" + s(b"/tmp/evil.so") + s(b"")),
    "remove": lambda: once(b"\x12" + s(V["work"])),
    "lock": lambda: once(b"\x16" + s(b"secret")),
    "unlock": lambda: once(b"\x17" + s(b"secret")),
    "extension": lambda: once(b"\x1b" + s(b"query")),
    "remove_all": lambda: once(b"\x13"),
    "huge": lambda: raw(b"\xff\xff\xff\xff\x0d"),
    "empty": lambda: raw(b"\0\0\0\0"),
    "trail": trail,
    "cut_sign": lambda: raw(s(b"\x0d" + s(V["work"]) + b"\xff\xff\xff\xff")),
    "half": half,
    "flood": flood,
    "many": many,
    "after": keys,
}
for name, fn in TESTS.items():
    if only and name not in only:
        continue
    try:
        print(name, fn(), flush=True)
    except OSError as e:
        print(name, "error", os.strerror(e.errno or 0), flush=True)
