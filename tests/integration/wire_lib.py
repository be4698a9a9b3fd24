"""What the tests share that hold other implementations against our parsers: the program that
tells what ours say, TAP, and sockets of the loopback interface."""
import json
import os
import socket
import struct
import subprocess
import sys
import traceback


class Teller:
    def __init__(self):
        self.proc = subprocess.Popen([os.environ["WIRE_TELL"]], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)

    def __call__(self, what, data):
        self.proc.stdin.write(what.encode() + struct.pack("<I", len(data)) + bytes(data))
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def dns_reply(self, name, rdtype, data):
        return self("r", name.encode() + b"\0" + struct.pack(">H", rdtype) + data)


class Skip(Exception):
    pass


TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def main():
    bad = 0
    print("1..%d" % len(TESTS), flush=True)
    for n, fn in enumerate(TESTS, 1):
        label = fn.__name__.replace("_", " ")
        try:
            note = fn()
            print("ok %d - %s%s" % (n, label, " (%s)" % note if note else ""), flush=True)
        except Skip as e:
            print("ok %d - %s # SKIP %s" % (n, label, e), flush=True)
        except Exception:
            bad += 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print("not ok %d - %s" % (n, label), flush=True)
    sys.exit(bad > 0)


def same(got, want, what=""):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def listen(kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET, kind)
    s.bind(("127.0.0.1", 0))
    s.settimeout(20)
    if kind == socket.SOCK_STREAM:
        s.listen(8)
    return s, s.getsockname()[1]


def mutate(rnd, data, splice=()):
    """A few random changes of bytes; parts of @splice are put in."""
    out = bytearray(data)
    for _ in range(rnd.choice((1, 1, 1, 2, 3, 5))):
        at = rnd.randrange(len(out) + 1)
        kind = rnd.randrange(6)
        if kind == 0 and at < len(out):
            out[at] = rnd.randrange(256)
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << rnd.randrange(8)
        elif kind == 2:
            del out[at:at + rnd.choice((1, 1, 2, 4))]
        elif kind == 3 and splice:
            out[at:at] = rnd.choice(splice)
        elif kind == 4 and at < len(out):
            out[at] = (out[at] + rnd.choice((1, 255))) & 255
        else:
            end = min(len(out), at + rnd.randrange(1, 24))
            to = rnd.randrange(len(out) + 1)
            out[to:to] = out[at:end]
    return bytes(out)
