#!/usr/bin/python3
"""flood.py KIND...: as much of one thing as a program can do, then whether a good request is still
answered: one line "KIND RESULT". Run inside a sandbox that may reach web.example.com:80+443+8443
and *.wild.example.com. It lives long enough at the end of each for the gate to be looked at."""
import os
import socket
import struct
import sys
import time

PROXY = ("127.0.0.1", 3128)
held = []


def dial(to, data=b"", keep=True):
    try:
        s = socket.socket()
        s.setblocking(False)
        try:
            s.connect(to)
        except BlockingIOError:
            pass
        s.settimeout(2)
        if data:
            s.sendall(data)
        if keep:
            held.append(s)
        return s
    except OSError:
        return None


def let_go():
    while held:
        held.pop().close()


def good(tries=4):
    for _ in range(tries):
        try:
            s = socket.create_connection(("web.example.com", 80), 5)
            s.settimeout(5)
            s.sendall(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n")
            data = b""
            while True:
                d = s.recv(4096)
                if not d:
                    break
                data += d
            if b"web.example.com" in data:
                return "got"
        except OSError as e:
            data = repr(e).encode()
        time.sleep(0.5)
    return "lost " + repr(data[:60])


def query(name, kind=1):
    q = b"".join(bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0"
    return struct.pack(">HHHHHH", os.getpid() & 0xffff, 0x100, 1, 0, 0, 0) + q + struct.pack(">HH", kind, 1)


def udp(messages):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    for m in messages:
        try:
            s.sendto(m, ("127.0.0.53", 53))
        except OSError:
            time.sleep(0.001)
    s.close()


def web():
    return socket.gethostbyname("web.example.com")


def connections():  # idle ones beyond the cap
    for _ in range(900):
        dial((web_a, 80))


def refused():  # each refused at once, each of another address
    for i in range(4000):
        s = dial(("203.0.114.%d" % (i % 250), 1000 + i), keep=False)
        if s:
            s.close()


def slow_heads():
    for i in range(300):
        dial((web_a, 80), b"GET / HTTP/1.1\r\nHost: web.example.com\r\nX-%d: " % i)
    for _ in range(20):
        for s in held:
            try:
                s.send(b"a" * 100)
            except OSError:
                pass


def slow_hellos():
    for i in range(300):
        dial((web_a, 443), b"\x16\x03\x01\x40\x00\x01\x00\x7f\x00" + b"\x03\x03" + b"a" * 8000)


def big_heads():  # as much as a way may hold, on every connection
    head = b"GET / HTTP/1.1\r\nHost: web.example.com\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 8000) for i in range(9))
    for i in range(300):
        dial((web_a, 80), head[:65000])


def half_proxies():
    for i in range(200):
        dial(PROXY, b"CONNECT web.exam")
        dial(PROXY, b"\x05")
        dial(PROXY, b"GET http://web.example.com/ HT")


def proxy_pingpong():  # another target with each request
    for i in range(100):
        s = dial(PROXY)
        for k in range(10):
            try:
                s.sendall(b"GET http://n%d.wild.example.com/who HTTP/1.1\r\nHost: n%d.wild.example.com\r\n\r\n" % (k % 3, k % 3))
            except (OSError, AttributeError):
                break


def unread():  # responses that nobody reads
    for i in range(200):
        s = dial((web_a, 80))
        try:
            for k in range(200):
                s.send(b"GET /big HTTP/1.1\r\nHost: web.example.com\r\n\r\n")
        except (OSError, AttributeError):
            pass


def resets():
    for i in range(3000):
        s = dial((web_a, 80), b"GET /who HTTP/1.1\r\nHost: web.example.com\r\n\r\n", keep=False)
        if s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()


def dns_garbage():
    udp([os.urandom(i % 600) for i in range(20000)])


def dns_names():
    udp([query("a%d.wild.example.com" % i, 1 + 27 * (i % 2)) for i in range(20000)])
    udp([query("b%d.evil.example.net" % i) for i in range(20000)])


def dns_tcp():
    for i in range(400):
        dial(("127.0.0.53", 53), struct.pack(">H", 4000) + b"abc")
    for i in range(50):
        s = dial(("127.0.0.53", 53))
        try:
            for _ in range(2000):
                m = query("web.example.com")
                s.send(struct.pack(">H", len(m)) + m)
        except (OSError, AttributeError):
            pass


for kind in sys.argv[1:]:
    for _ in range(70):  # the budget of questions may be used up: it fills again
        try:
            web_a = web()
            break
        except OSError:
            time.sleep(1)
    globals()[kind]()
    print(kind + "-under", good(1), flush=True)
    open("look", "w").close()
    for _ in range(100):
        if not os.path.exists("look"):
            break
        time.sleep(0.1)
    let_go()
    time.sleep(0.3)
    try:
        socket.gethostbyname("web.example.com")
    except OSError:
        time.sleep(1)
    print(kind, good(), flush=True)
