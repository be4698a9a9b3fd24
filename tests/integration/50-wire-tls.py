#!/usr/bin/python3
"""ClientHello: real ones of OpenSSL, curl and GnuTLS, and OpenSSL's server against our reader. The
name that we find is the one that the server finds, however the bytes are cut; we may refuse more."""
import os
import random
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile

from wire_lib import Skip, Teller, listen, main, mutate, same, test

tell = Teller()
MORE, BAD = 1, -74


def client_hello(name, alpn=None, tls12=False):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    if alpn:
        ctx.set_alpn_protocols(alpn)
    if tls12:
        ctx.maximum_version = ssl.TLSVersion.TLSv1_2
    out = ssl.MemoryBIO()
    obj = ctx.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        obj.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def cut_at(hello, size):
    """The message of one record in records of @size bytes."""
    body = hello[5:]
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(body[i:i + size])) + body[i:i + size]
                    for i in range(0, len(body), size))


def with_extension(hello, kind, data):
    """One more extension in front of the others."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from(">H", hello, at)[0]
    at += 1 + hello[at]
    more = struct.pack(">HH", kind, len(data)) + data
    body = (hello[9:at] + struct.pack(">H", struct.unpack_from(">H", hello, at)[0] + len(more)) +
            more + hello[at + 2:])
    return b"\x16\3\1" + struct.pack(">H", len(body) + 4) + b"\1" + struct.pack(">I", len(body))[1:] + body


def expect(hello, name, h2=False, ech=False):
    got = tell("t", hello)
    same((got["r"], bytes.fromhex(got["name"]).decode(), got["has_name"], got["h2"], got["ech"]),
         (0, name or "", int(name is not None), int(h2), int(ech)))
    for n in range(0, len(hello), 7):
        same(tell("t", hello[:n])["r"], MORE)
    for size in (1, 2, 3, 5, 50, 200):
        pieces = cut_at(hello, size)
        got = tell("t", pieces)
        same((got["r"], bytes.fromhex(got["name"]).decode(), got["h2"], got["ech"]),
             (0, name or "", int(h2), int(ech)), "records of %d bytes" % size)
        same(tell("t", pieces[:-1])["r"], MORE)


@test
def hellos_of_openssl_in_memory():
    expect(client_hello("www.example.com"), "www.example.com")
    expect(client_hello("WWW.Example.COM", ["h2", "http/1.1"]), "WWW.Example.COM", h2=True)
    expect(client_hello("www.example.com", ["http/1.1"], tls12=True), "www.example.com")
    expect(client_hello("a" * 63 + ".example"), "a" * 63 + ".example")
    expect(client_hello(None), None)
    expect(client_hello("192.0.2.1"), None)  # no names of addresses (RFC 6066 3)
    grease = with_extension(client_hello("www.example.com"), 0xfe0d, bytes(200))
    expect(grease, "www.example.com", ech=True)
    expect(with_extension(client_hello("www.example.com"), 0xffce, bytes(200)), "www.example.com",
           ech=True)
    expect(with_extension(client_hello("www.example.com"), 0x2a2a, b""), "www.example.com")
    hello = client_hello("www.example.com")
    twice = with_extension(hello, 0, b"\0\x0e\0\0\x0bexample.org")
    same(tell("t", twice)["r"], BAD)
    same(tell("t", hello + b"\x14\3\3\0\1\1\x17\3\3\0\5early")["r"], 0)


def sent_by(*args):
    """What a program says first to a socket of ours."""
    if not shutil.which(args[0]):
        raise Skip("no " + args[0])
    s, port = listen()
    proc = subprocess.Popen([a.replace("PORT", str(port)) for a in args], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        c, _ = s.accept()
        c.settimeout(20)
        data = b""
        while True:
            part = c.recv(65536)
            data += part
            if not part or tell("t", data)["r"] != MORE:
                return data
    finally:
        c.close()
        proc.kill()
        proc.wait()


@test
def hellos_of_s_client():
    base = ["openssl", "s_client", "-connect", "127.0.0.1:PORT"]
    expect(sent_by(*base, "-servername", "www.example.com"), "www.example.com")
    expect(sent_by(*base, "-noservername"), None)
    expect(sent_by(*base, "-servername", "x.example", "-alpn", "h2,http/1.1"), "x.example", h2=True)
    expect(sent_by(*base, "-servername", "x.example", "-tls1_2"), "x.example")
    expect(sent_by(*base, "-servername", "x.example", "-tls1_3"), "x.example")
    # more than the records may hold: OpenSSL itself cuts the message
    data = sent_by(*base, "-servername", "x.example", "-max_send_frag", "512", "-alpn",
                   ",".join("protocol-%d" % i for i in range(100)))
    assert len(data) > 1024 and struct.unpack_from(">H", data, 3)[0] <= 512, len(data)
    got = tell("t", data)
    same((got["r"], bytes.fromhex(got["name"])), (0, b"x.example"))


@test
def hellos_of_curl():
    data = sent_by("curl", "-s", "-k", "-m", "10", "--resolve", "www.example.com:PORT:127.0.0.1",
                   "https://www.example.com:PORT/")
    expect(data, "www.example.com", h2=True)
    data = sent_by("curl", "-s", "-k", "-m", "10", "--http1.1", "https://127.0.0.1:PORT/")
    expect(data, None)


@test
def hellos_of_wget_with_gnutls():
    expect(sent_by("wget", "-q", "-O", "/dev/null", "--tries=1", "-T", "10", "--no-check-certificate",
                   "https://localhost:PORT/"), "localhost")


@test
def hellos_of_node():
    expect(sent_by("node", "-e", "require('tls').connect({host:'127.0.0.1',port:PORT,"
                   "servername:'node.example',ALPNProtocols:['h2']}).on('error',()=>{})"),
           "node.example", h2=True)


class Server:
    """OpenSSL's server side in memory. Return of reads(): the name it finds (None: none; "":
    refused before it looked), and whether it chose h2."""

    def __init__(self, d):
        cert, key = os.path.join(d, "cert"), os.path.join(d, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", key,
                        "-out", cert], check=True, stderr=subprocess.DEVNULL)
        self.ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ctx.set_ciphers("ALL:@SECLEVEL=0")
        self.ctx.load_cert_chain(cert, key)
        self.ctx.set_alpn_protocols(["h2"])
        self.ctx.sni_callback = self.on_name
        self.name = ""

    def on_name(self, obj, name, ctx):
        self.name = name

    def reads(self, data):
        inp, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        obj = self.ctx.wrap_bio(inp, out, server_side=True)
        self.name = ""
        inp.write(data)
        try:
            obj.do_handshake()
        except ssl.SSLWantReadError:
            return self.name, obj.selected_alpn_protocol() == "h2", True
        except ssl.SSLError:
            return self.name, False, False
        return self.name, False, True


@test
def changed_hellos_that_we_take_name_the_same_server():
    sys.unraisablehook = lambda *a: None  # names that are no ASCII are refused by the module
    rnd = random.Random(10)
    hellos = [client_hello("www.example.com", ["h2", "http/1.1"]), client_hello("a.example"),
              client_hello("b.example", tls12=True), client_hello(None),
              with_extension(client_hello("c.example"), 0xfe0d, bytes(9))]
    name_ext = b"\0\0\0\x10\0\x0e\0\0\x0bexample.org"
    parts = [name_ext, name_ext[4:], name_ext[6:], b"\0\0", b"\0", b"\0\4evil", b"\2h2", b"\0\x10"]
    taken = agreed = refused = 0
    with tempfile.TemporaryDirectory() as d:
        server = Server(d)
        same(server.reads(hellos[0]), ("www.example.com", True, True))
        for _ in range(6000):
            hello = rnd.choice(hellos)
            if rnd.random() < .7:
                # what is changed keeps its outer lengths, so that the change is looked at
                body = mutate(rnd, hello[9:], parts)
                if rnd.random() < .5 and len(body) != len(hello) - 9:
                    grow = len(body) - (len(hello) - 9)
                    at = 34 + 1 + hello[43]
                    at += 2 + struct.unpack_from(">H", hello, 9 + at)[0]
                    at += 1 + hello[9 + at]
                    if at + 2 < len(body):
                        n = (struct.unpack_from(">H", hello, 9 + at)[0] + grow) & 65535
                        body = body[:at] + struct.pack(">H", n) + body[at + 2:]
                hello = (b"\x16\3\1" + struct.pack(">H", len(body) + 4) + b"\1" +
                         struct.pack(">I", len(body))[1:] + body)
                if rnd.random() < .3:
                    hello = cut_at(hello, rnd.choice((1, 7, 60, 250)))
            else:
                hello = mutate(rnd, cut_at(hello, rnd.choice((3, 100, 16384))), (b"\x16\3\1\0\1",))
            got = tell("t", hello)
            if got["r"] != 0:
                refused += 1
                continue
            taken += 1
            name, h2, went_on = server.reads(hello)
            if name == "":
                continue
            agreed += 1
            ours = bytes.fromhex(got["name"]).decode("latin1") if got["has_name"] else None
            same(name, ours, hello.hex())
            if went_on:
                same(bool(got["h2"]), h2, hello.hex())
    assert agreed > 500, agreed
    return "%d taken, %d looked at by the server too, %d refused" % (taken, agreed, refused)


main()
