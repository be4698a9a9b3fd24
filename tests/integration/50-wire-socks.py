#!/usr/bin/python3
"""SOCKS: requests of curl and nc are read by our reader, and our replies by them."""
import shutil
import socket
import subprocess

from wire_lib import Skip, Teller, listen, main, same, test

tell = Teller()
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


def serve(args, which, then=PAGE):
    """Be the proxy of a program. Return: what it asked for, its exit code and output."""
    if not shutil.which(args[0]):
        raise Skip("no " + args[0])
    s, port = listen()
    proc = subprocess.Popen([a.replace("PORT", str(port)) for a in args], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    c, _ = s.accept()
    c.settimeout(20)
    data = c.recv(1)
    if data == b"\5":
        while tell("k", data)["offer"] == 1:
            data += c.recv(1)
        got = tell("k", data)
        same((got["offer"], got["offer_len"], got["no_auth"]), (0, len(data), 1))
        c.sendall(b"\5\0")
        data = c.recv(1)
    while tell("k", data)["r"] == 1:
        data += c.recv(1)
    got = tell("k", data)
    same((got["r"], got["len"]), (0, len(data)), data.hex())
    c.sendall(bytes.fromhex(got[which]))
    if which == "yes":
        proc.stdin.write(b"ping\n")
        proc.stdin.close()
        c.recv(65536)
        c.sendall(then)
    c.close()
    if not proc.stdin.closed:
        proc.stdin.close()
    out = proc.stdout.read()
    return got, proc.wait(), out


def wanted(got, version, host, port):
    same((got["version"], got["cmd"], got["port"]), (version, 1, port))
    if ":" in host:
        same((got["is_name"], got["addr"]), (0, socket.inet_pton(socket.AF_INET6, host).hex()))
    elif host.replace(".", "").isdigit():
        same((got["is_name"], got["addr"]), (0, "0" * 20 + "ffff" + socket.inet_aton(host).hex()))
    else:
        same((got["is_name"], bytes.fromhex(got["host"]).decode()), (1, host))


CURL = ["curl", "-s", "-m", "10"]


@test
def curl_with_socks5():
    for host in ("192.0.2.1", "2001:db8::1"):
        url = "http://%s:81/" % (host if "." in host else "[%s]" % host)
        got, code, out = serve(CURL + ["--socks5", "127.0.0.1:PORT", url], "yes")
        wanted(got, 5, host, 81)
        same((code, out), (0, b"hello"))


@test
def curl_with_names_in_socks5():
    got, code, out = serve(CURL + ["--socks5-hostname", "127.0.0.1:PORT", "http://www.example.com/"],
                           "yes")
    wanted(got, 5, "www.example.com", 80)
    same((code, out), (0, b"hello"))
    long = ".".join(["a" * 60] * 4)
    got, code, out = serve(CURL + ["-x", "socks5h://127.0.0.1:PORT", "http://%s:8080/" % long], "yes")
    wanted(got, 5, long, 8080)
    same((code, out), (0, b"hello"))


@test
def curl_with_socks4():
    got, code, out = serve(CURL + ["--socks4", "127.0.0.1:PORT", "http://192.0.2.1:81/"], "yes")
    wanted(got, 4, "192.0.2.1", 81)
    same((code, out), (0, b"hello"))
    got, code, out = serve(CURL + ["--socks4a", "127.0.0.1:PORT", "http://www.example.com/"], "yes")
    wanted(got, 4, "www.example.com", 80)
    same((code, out), (0, b"hello"))
    got, code, out = serve(CURL + ["-x", "socks4a://user@127.0.0.1:PORT", "http://www.example.com/"],
                           "yes")
    wanted(got, 4, "www.example.com", 80)


@test
def curl_understands_refusals():
    for option in ("--socks5-hostname", "--socks4a"):
        got, code, out = serve(CURL + [option, "127.0.0.1:PORT", "http://www.example.com/"], "no")
        same((code, out), (97, b""))  # CURLE_PROXY


@test
def nc_as_client():
    for version, host in (("5", "www.example.com"), ("5", "192.0.2.1"), ("4", "192.0.2.1")):
        got, code, out = serve(["nc", "-w", "5", "-X", version, "-x", "127.0.0.1:PORT", host, "81"],
                               "yes", b"hello")
        wanted(got, int(version), host, 81)
        same(out, b"hello")
        got, code, out = serve(["nc", "-w", "5", "-X", version, "-x", "127.0.0.1:PORT", host, "81"],
                               "no")
        assert code != 0 and out == b"", (code, out)


main()
