"""Sessions at a pseudo-terminal, and a server of the host that they ask for. For approvals' tests."""
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

ASK = rb"sendbox: allow it\? "
count = bad = 0


def told(ok, name, *more):
    global count, bad
    count += 1
    bad += not ok
    print("ok" if ok else "not ok", count, "-", name)
    for line in [] if ok else more:
        print("#", str(line)[-1500:].replace("\n", "\n# "))
    sys.stdout.flush()


def finish():
    print(f"1..{count}")
    sys.exit(0)


class Hello(http.server.BaseHTTPRequestHandler):
    served = 0

    def do_GET(self):
        Hello.served += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello-from-host\n")

    def log_message(self, *a):
        pass


def serve():
    srv = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=srv.serve_forever, daemon=True).start()
    return srv.server_port


# get.py PORT...: one request each, one after the other
GET = r"""
import socket, sys
for port in sys.argv[1:]:
    try:
        s = socket.create_connection(("host.sendbox.internal", int(port)))
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        d = b""
        while True:
            x = s.recv(999)
            if not x:
                break
            d += x
        print("GOT" if b"hello-from-host" in d else "EMPTY", flush=True)
    except OSError as e:
        print("REFUSED", e.errno, flush=True)
print("end", flush=True)
"""


class Pty:
    """A command at a terminal of its own."""

    def __init__(self, argv, rows=40):
        self.shown = b""
        self.seen = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], argv)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))

    def read(self, wait=0.1):
        if not select.select([self.fd], [], [], wait)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:
            got = b""
        self.shown += got
        return bool(got)

    def until(self, pattern, limit=120):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            m = re.compile(pattern, re.S).search(self.shown, self.seen)
            if m:
                self.seen = m.end()
                return True
            if not self.read():
                m = re.compile(pattern, re.S).search(self.shown, self.seen)
                if m:
                    self.seen = m.end()
                return bool(m)
        return False

    def watch(self, seconds):
        end = time.monotonic() + seconds
        start = len(self.shown)
        while time.monotonic() < end and self.read(0.05):
            continue
        return self.shown[start:]

    def type(self, text):
        """What is typed before 0.4 s of silence does not count: again, until it is echoed."""
        for _ in range(12):
            self.watch(0.5)
            start = len(self.shown)
            os.write(self.fd, text)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                if text.strip() in self.shown[start:] or not self.read(0.05):
                    return

    def end(self, limit=120):
        end = time.monotonic() + limit
        while time.monotonic() < end and self.read():
            continue
        os.close(self.fd)
        while time.monotonic() < end:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def talk(argv, answers, rows=40):
    """Answer question after question. Return: status, all that was shown."""
    p = Pty(argv, rows)
    for a in answers:
        if not p.until(ASK):
            break
        p.type(a)
    return p.end(), p.shown


def call(argv, timeout=60, **more):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, start_new_session=True, **more)


def background(argv):
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def questions(cmd, n=1, limit=120):
    """Wait until @n questions are open."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        r = call([cmd, "approvals", "--json"])
        got = [json.loads(line) for line in r.stdout.splitlines()]
        if len(got) >= n:
            return got
        time.sleep(0.1)
    return []


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o600)
