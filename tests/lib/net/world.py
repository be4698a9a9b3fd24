#!/usr/bin/python3
"""world.py ROLE DIR: the servers that nginx and unbound cannot be, for tests/lib/net.sh.

ROLE world: on the addresses of the "internet": TCP 7 echo; 2222 speaks first; 8080 HTTP (see
Handler); 9000 takes and counts; UDP 443, 53, 5353, 123 on 8.8.8.8 and the web server's address:
every datagram that arrives is written to DIR/udp.log. ROLE host: 127.0.0.1:5432 and 0.0.0.0:8888
answer with a line that must not be seen by accident."""
import base64
import hashlib
import http.server
import os
import socket
import socketserver
import sys
import threading
import time

ROLE, DIR = sys.argv[1], sys.argv[2]


class Handler(http.server.BaseHTTPRequestHandler):
    """/bytes/N, /sse/N, /slow/S, /close, /ws (WebSocket echo), POST /sink, else the request told."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        with open(DIR + "/http.log", "a", encoding="utf-8") as f:
            f.write("%s %s %s\n" % (self.command, self.path, self.headers.get("Host")))

    def reply(self, body, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while True:  # short frames only
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(head[1] & 127)))
            self.wfile.write(bytes([0x81, len(data)]) + data)
        self.close_connection = True

    def do_GET(self):
        part = self.path.strip("/").split("/")
        if part[0] == "bytes":
            left = int(part[1])
            self.send_response(200)
            self.send_header("Content-Length", str(left))
            self.end_headers()
            block = bytes(1 << 16)
            while left > 0:
                n = min(left, len(block))
                self.wfile.write(block[:n])
                left -= n
        elif part[0] == "sse":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for i in range(int(part[1])):
                self.wfile.write(b"data: %d\n\n" % i)
                self.wfile.flush()
                time.sleep(0.1)
            self.close_connection = True
        elif part[0] == "slow":
            time.sleep(float(part[1]))
            self.reply(b"slow\n")
        elif part[0] == "ws":
            self.websocket()
        else:
            self.reply(("%s %s %s\n" % (self.command, self.path, self.headers.get("Host"))).encode())

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            total = 0
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                total += len(self.rfile.read(n))
                self.rfile.readline()
                if n == 0:
                    break
        else:
            total = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.reply(b"took %d\n" % total)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6
    request_queue_size = 128


class Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    address_family = socket.AF_INET6
    request_queue_size = 512


def tcp(port, talk, at="::"):
    class H(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                talk(self.request)
            except OSError:
                pass
    s = Tcp((at, port), H)
    threading.Thread(target=s.serve_forever, daemon=True).start()


def echo(c):
    while True:
        d = c.recv(65536)
        if not d:
            break
        c.sendall(d)


def first(c):
    c.sendall(b"SSH-2.0-world\r\n")
    line = c.recv(100)
    c.sendall(b"you said " + line)


def count(c):
    n = 0
    while True:
        d = c.recv(65536)
        if not d:
            break
        n += len(d)
    c.sendall(b"%d\n" % n)


def udp(addr, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((addr, port))
    while True:
        d, a = s.recvfrom(65536)
        with open(DIR + "/udp.log", "a", encoding="utf-8") as f:
            f.write("%s:%d %d bytes from %s\n" % (addr, port, len(d), a[0]))
        s.sendto(b"udp answer", a)


if ROLE == "world":
    tcp(7, echo)
    tcp(2222, first)
    tcp(9000, count)
    threading.Thread(target=Server(("::", 8080), Handler).serve_forever, daemon=True).start()
    for where in [("8.8.8.8", 53), ("8.8.8.8", 443), ("93.184.216.34", 443), ("8.8.8.8", 123), ("93.184.216.34", 5353)]:
        threading.Thread(target=udp, args=where, daemon=True).start()
    tcp(53, echo, "::ffff:8.8.8.8")
    tcp(853, echo, "::ffff:8.8.8.8")
else:
    tcp(5432, lambda c: c.sendall(b"host database\n"), "::ffff:127.0.0.1")
    tcp(8888, lambda c: c.sendall(b"host service\n"))
with open(DIR + "/" + ROLE + ".up", "w", encoding="utf-8"):
    pass
while os.getppid() != 1:
    time.sleep(0.5)
