#!/usr/bin/python3
"""HTTP/1: h11, nginx and curl against our reader. What we accept, the others must read with the
same method, target, host and framing; we may refuse more."""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import h11

from wire_lib import Skip, Teller, listen, main, mutate, same, test

tell = Teller()
ORIGIN, ABSOLUTE, AUTHORITY, ASTERISK = 1, 2, 3, 4
LENGTH, CHUNKED, UNTIL_CLOSE = 1, 2, 3

METHODS = [b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"X-Y"]
TARGETS = [b"/", b"/a/b?c=d&e", b"//x", b"/%2e%2e/", b"http://a.example/", b"http://a.example:81/x",
           b"http://[::1]:8/", b"https://a.example", b"*", b"a.example:443", b"/\\", b"/a;b"]
FIELDS = [b"Accept: */*", b"X:", b"X: y", b"Expect: 100-continue", b"Connection: close",
          b"Connection: keep-alive, Upgrade", b"Upgrade: h2c", b"User-Agent:\tx y ", b"Cookie: a=\xe4",
          b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 05", b"Content-Length: +5",
          b"Content-Length: 5, 5", b"Content-Length: 6", b"Transfer-Encoding: chunked",
          b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: identity",
          b"transfer-encoding:CHUNKED", b"Transfer-Encoding : chunked", b"Content_Length: 5",
          b"Transfer-Encoding: gzip, chunked", b"Host: b.example", b" folded", b"X: y\x0bz",
          b"Trailer: X", b"TE: trailers", b"Content-Length: 0x5", b"X: a\nContent-Length: 5"]
HOSTS = [b"Host: a.example", b"Host: a.example:80", b"host:a.example", b"Host: [::1]:80", b"Host:",
         b"Host: a.example, b.example", b"Host : a.example", b"Host: u@a.example", b"X-Host: a"]
CHUNKS = [b"5\r\nhello\r\n", b"5;x=y\r\nhello\r\n", b"005\r\nhello\r\n", b"A\r\n0123456789\r\n",
          b"0x5\r\nhello\r\n", b"5 \r\nhello\r\n", b"5\nhello\r\n", b"5\r\nhello\n", b"5\r\nhell\r\n",
          b"5;\r\nhello\r\n", b"5;a\nb\r\nhello\r\n", b"-1\r\n"]
ENDS = [b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"00\r\n\r\n", b"0;x\r\n\r\n", b"0\r\n x\r\n\r\n",
        b"0\n\n", b"0\r\nX : y\r\n\r\n"]
SPLICE = [b"\r", b"\n", b"\r\n", b" ", b"\t", b"\0", b":", b",", b";", b"\r\n\r\n", b"\x0b", b"@",
          b"\r\nContent-Length: 3", b"\r\nTransfer-Encoding: chunked", b"\r\nHost: b.example", b"0"]


def one_of(rnd, good, rest):
    return rnd.choice(good if rnd.random() < .8 else rest)


def random_request(rnd):
    version = one_of(rnd, [b"HTTP/1.1"], [b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1"])
    lines = [rnd.choice(METHODS) + b" " + one_of(rnd, TARGETS[:8], TARGETS) + b" " + version]
    fields = [rnd.choice(FIELDS[:9]) for _ in range(rnd.randrange(4))]
    if rnd.random() < .95:
        fields.append(one_of(rnd, HOSTS[:4], HOSTS))
    body = b""
    kind = rnd.randrange(4)
    if kind == 1:
        fields.append(b"Content-Length: 5")
        body = b"hello"
    elif kind == 2:
        fields.append(b"Transfer-Encoding: chunked")
        body = b"".join(one_of(rnd, CHUNKS[:4], CHUNKS) for _ in range(rnd.randrange(4)))
        body += one_of(rnd, ENDS[:4], ENDS)
    elif kind == 3:
        fields.append(rnd.choice(FIELDS))
        body = rnd.choice((b"", b"hello", b"0\r\n\r\n"))
    rnd.shuffle(fields)
    return b"\r\n".join(lines + fields) + b"\r\n\r\n" + body


def stream(rnd):
    out = b"".join(random_request(rnd) for _ in range(rnd.choice((1, 1, 2, 3))))
    return mutate(rnd, out, SPLICE) if rnd.random() < .4 else out


def h11_reads(data, requests):
    """Hold h11 against what we say about @data, from its start. Return: requests compared."""
    c = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    c.receive_data(data)
    for n, want in enumerate(requests):
        try:
            ev = c.next_event()
        except h11.RemoteProtocolError:
            return n  # refuses more than we do, which is its own affair
        same(type(ev), h11.Request, "%r: event" % data)
        headers = dict(ev.headers)
        same((ev.method.hex(), ev.target.hex()), (want["method"], want["target"]), repr(data))
        same(ev.http_version, b"1.%d" % want["minor"], repr(data))
        same(headers.get(b"host", b"").hex(), want["host"], repr(data))
        if want["form"] == AUTHORITY or want["upgrade"] or want["taken"] < 0:
            return n + 1
        length = 0
        try:
            ev = c.next_event()
            while isinstance(ev, h11.Data):
                length += len(ev.data)
                ev = c.next_event()
        except h11.RemoteProtocolError:
            return n
        same(ev is h11.NEED_DATA, not want["done"], "%r: end" % data)
        if not want["done"]:
            return n + 1
        same(type(ev), h11.EndOfMessage, repr(data))
        if want["body"] == LENGTH:
            same(length, want["length"], "%r: length" % data)
        elif want["body"] == 0:
            same(length, 0, "%r: length" % data)
        same(c.trailing_data[0], data[want["at"] + want["head"] + want["taken"]:],
             "%r: what follows" % data)
        c.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
        c.send(h11.EndOfMessage())
        # that a client of HTTP/1.0 may stay is unknown to h11
        same(c.their_state is h11.MUST_CLOSE, bool(want["close"] or want["minor"] == 0),
             "%r: close" % data)
        if c.their_state is h11.MUST_CLOSE:
            return n + 1
        c.start_next_cycle()
    return len(requests)


@test
def what_we_accept_h11_reads_alike():
    rnd = random.Random(7)
    compared = accepted = refused = 0
    for _ in range(8000):
        data = stream(rnd)
        got = tell("h", data)
        accepted += len(got["requests"])
        refused += got["r"] < 0
        compared += h11_reads(data, got["requests"])
    assert compared > 2000 and compared > accepted * .8, (compared, accepted)
    return "%d of %d requests, %d streams refused" % (compared, accepted, refused)


@test
def responses_that_we_accept_h11_reads_alike():
    rnd = random.Random(8)
    compared = 0
    for _ in range(4000):
        fields = [rnd.choice(FIELDS) if rnd.random() < .3 else rnd.choice(FIELDS[:9])
                  for _ in range(rnd.randrange(4))]
        body = rnd.choice([b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n"])
        data = (rnd.choice([b"HTTP/1.1 200 OK", b"HTTP/1.1 404 Not Found", b"HTTP/1.0 200 OK",
                            b"HTTP/1.1 500 ", b"HTTP/1.1 99 x", b"HTTP/1.1 302\tx"]) + b"\r\n" +
                b"".join(f + b"\r\n" for f in fields) + b"\r\n" + body)
        if rnd.random() < .3:
            data = mutate(rnd, data, SPLICE)
        got = tell("s", data)
        if got["r"] != 0 or got["taken"] < 0:
            continue
        c = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        c.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        c.send(h11.EndOfMessage())
        c.receive_data(data)
        try:
            ev = c.next_event()
            while isinstance(ev, h11.InformationalResponse):
                raise h11.RemoteProtocolError("not compared")
            same((type(ev), ev.status_code), (h11.Response, got["status"]), repr(data))
            ev_minor = ev.http_version
            ev = c.next_event()
            while isinstance(ev, h11.Data):
                ev = c.next_event()
        except h11.RemoteProtocolError:
            continue
        compared += 1
        same(ev is h11.NEED_DATA, not got["done"], repr(data))
        if got["done"]:
            same(c.trailing_data[0], data[got["head"] + got["taken"]:], repr(data))
            same(c.their_state is h11.MUST_CLOSE, bool(got["close"] or ev_minor == b"1.0"),
                 repr(data))
    assert compared > 300, compared
    return "%d responses" % compared


NGINX = """
daemon off;
master_process off;
worker_processes 1;
error_log /dev/null;
pid %(dir)s/pid;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path %(dir)s/b;
  proxy_temp_path %(dir)s/p;
  fastcgi_temp_path %(dir)s/f;
  uwsgi_temp_path %(dir)s/u;
  scgi_temp_path %(dir)s/s;
  keepalive_requests 100000;
  merge_slashes off;
  server {
    listen 127.0.0.1:%(port)d;
    location / { return 200 "<$request|$http_host|$content_length|$http_transfer_encoding>"; }
  }
}
"""


def exchange(port, data):
    """What a server answers, the sending side closed after @data."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        out = b""
        try:
            while True:
                part = s.recv(65536)
                if not part:
                    return out
                out += part
        except ConnectionError:
            return out


@test
def what_we_accept_nginx_reads_alike():
    program = shutil.which("nginx")
    if not program:
        raise Skip("no nginx")
    probe, port = listen()
    probe.close()
    rnd = random.Random(9)
    compared = 0
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        conf = os.path.join(d, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(NGINX % {"dir": d, "port": port})
        proc = subprocess.Popen([program, "-p", d, "-c", conf], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    exchange(port, b"GET / HTTP/1.0\r\n\r\n")
                    break
                except ConnectionError:
                    time.sleep(.1)
            for _ in range(1500):
                data = stream(rnd)
                got = tell("h", data)
                whole = [q for q in got["requests"] if q["done"] and q["form"] in (ORIGIN, ABSOLUTE)]
                if not whole or got["r"] != 0 or len(whole) != len(got["requests"]) or \
                        got["end"] != len(data) or any(q["close"] for q in whole[:-1]):
                    continue
                out = exchange(port, data)
                seen = re.findall(rb"<([^>|]*)\|([^>|]*)\|[^>]*>", out)
                want = [(bytes.fromhex(q["method"]) + b" " + bytes.fromhex(q["target"]) +
                         b" HTTP/1.%d" % q["minor"], bytes.fromhex(q["host"])) for q in whole]
                # to a HEAD there is no body; after a refusal (400, 405) nothing follows
                want = [w for w in want if not w[0].startswith(b"HEAD")]
                status = re.findall(rb"HTTP/1\.1 (\d+)", out)
                errors = [x for x in status if x[:1] != b"2" and x != b"100"]
                if errors:
                    assert len([x for x in status if x != b"100"]) <= len(whole), (data, out)
                    assert all(s in want for s in seen), (data, out)
                    continue
                same(seen, want, repr(data))
                compared += len(want)
        finally:
            proc.send_signal(signal.SIGKILL)
            proc.wait()
    assert compared > 200, compared
    return "%d requests" % compared


def curl_sends(*args, stdin=None):
    """The bytes of a curl that is given the one answer that it waits for."""
    s, port = listen()
    proc = subprocess.Popen(["curl", "-s", "-m", "10"] + [a.replace("PORT", str(port)) for a in args],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if stdin:
        proc.stdin.write(stdin)
    proc.stdin.close()
    c, _ = s.accept()
    c.settimeout(20)
    data = b""
    while True:
        part = c.recv(65536)
        data += part
        got = tell("h", data)
        assert got["r"] >= 0, (data, got)
        if got["requests"] and (got["requests"][0]["done"] or not part):
            break
        if got["requests"] and got["requests"][0]["continue"] and got["requests"][0]["taken"] == 0:
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    c.close()
    proc.stdout.read()
    proc.wait()
    q = got["requests"][0]
    return {**q, **{k: bytes.fromhex(q[k]) for k in ("method", "target", "host", "authority")}}


@test
def requests_of_curl_are_taken():
    q = curl_sends("http://127.0.0.1:PORT/x?y")
    same((q["method"], q["target"], q["form"], q["body"]), (b"GET", b"/x?y", ORIGIN, 0))
    q = curl_sends("-0", "http://127.0.0.1:PORT/")
    same((q["minor"], q["close"]), (0, 1))
    q = curl_sends("-d", "hello", "http://127.0.0.1:PORT/")
    same((q["method"], q["body"], q["length"]), (b"POST", LENGTH, 5))
    q = curl_sends("-T", "-", "http://127.0.0.1:PORT/up", stdin=b"x" * 100000)
    same((q["method"], q["body"], q["done"]), (b"PUT", CHUNKED, 1))
    q = curl_sends("-H", "Expect: 100-continue", "-d", "hello", "http://127.0.0.1:PORT/")
    same((q["continue"], q["length"], q["done"]), (1, 5, 1))
    q = curl_sends("-x", "http://127.0.0.1:PORT", "http://www.example.com:81/a")
    same((q["form"], q["target"], q["authority"], q["host"]),
         (ABSOLUTE, b"http://www.example.com:81/a", b"www.example.com:81", b"www.example.com:81"))
    q = curl_sends("-x", "http://127.0.0.1:PORT", "https://www.example.com/")
    same((q["form"], q["authority"], q["host"]),
         (AUTHORITY, b"www.example.com:443", b"www.example.com:443"))
    q = curl_sends("-x", "http://127.0.0.1:PORT", "https://[2001:db8::1]/")
    same((q["form"], q["authority"]), (AUTHORITY, b"[2001:db8::1]:443"))
    q = curl_sends("--http2", "http://127.0.0.1:PORT/")
    same((q["upgrade"], q["form"]), (1, ORIGIN))
    s, port = listen()
    proc = subprocess.Popen(["curl", "-s", "-m", "10", "--http2-prior-knowledge",
                             "http://127.0.0.1:%d/" % port])
    c, _ = s.accept()
    got = tell("h", c.recv(65536))
    c.close()
    proc.wait()
    same((got["r"], got["why"]), (-74, "HTTP/2 prior knowledge"))


main()
