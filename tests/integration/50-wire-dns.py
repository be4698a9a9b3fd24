#!/usr/bin/python3
"""DNS: dnspython, kdig and unbound against our reader and writer. What we accept, the others must
read alike; we may refuse more."""
import os
import random
import socket
import struct
import subprocess
import tempfile
import time

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from wire_lib import Skip, Teller, listen, main, mutate, same, test

tell = Teller()
IN = dns.rdataclass.IN
PLAIN = bytes(c for c in range(0x21, 0x7f) if c != 0x2e)
TYPES = [1, 28, 16, 15, 33, 65, 64, 257, 2, 5, 6, 12, 35, 255, 10, 0xfff0]


def text(labels):
    return b".".join(x for x in labels if x).decode("ascii")


def random_name(rnd, alphabet=PLAIN):
    while True:
        labels = [bytes(rnd.choice(alphabet) for _ in range(rnd.choice((1, 2, 7, 20, 63))))
                  for _ in range(rnd.randrange(1, 6))]
        if sum(len(x) + 1 for x in labels) + 1 <= 255:
            return dns.name.Name(labels + [b""])


def random_query(rnd):
    q = dns.message.make_query(random_name(rnd), rnd.choice(TYPES))
    q.id = rnd.randrange(65536)
    if rnd.random() < .5:
        q.flags ^= dns.flags.RD
    if rnd.random() < .3:
        q.flags |= dns.flags.CD | dns.flags.AD
    if rnd.random() < .6:
        options = [dns.edns.GenericOption(rnd.choice((8, 10, 12, 15)), bytes(rnd.randrange(20)))
                   for _ in range(rnd.randrange(3))]
        q.use_edns(0, rnd.choice((0, dns.flags.DO)), rnd.choice((0, 512, 1232, 4096, 65535)),
                   options=options)
    return q


@test
def queries_of_dnspython_are_read_alike():
    rnd = random.Random(1)
    for _ in range(800):
        q = random_query(rnd)
        got = tell("q", q.to_wire())
        same(got["r"], 0, str(q))
        same(bytes.fromhex(got["name"]).decode(), text(q.question[0].name.labels))
        same((got["id"], got["type"], got["class"]), (q.id, q.question[0].rdtype, 1))
        same(bool(got["rd"]), bool(q.flags & dns.flags.RD))
        same(bool(got["cd"]), bool(q.flags & dns.flags.CD))
        same(bool(got["edns"]), q.edns >= 0)
        same(got["udp_size"], max(512, q.payload) if q.edns >= 0 else 512)


@test
def changed_queries_that_we_take_are_read_alike():
    rnd = random.Random(2)
    taken = 0
    for _ in range(6000):
        wire = mutate(rnd, random_query(rnd).to_wire(), (b"\xc0\x0c", b"\0", b"\1a"))
        got = tell("q", wire)
        if got["r"] != 0:
            continue
        taken += 1
        try:
            q = dns.message.from_wire(wire)
        except dns.exception.DNSException as e:
            # an option of a known kind with contents of the wrong form: opaque to us
            if isinstance(e, (dns.exception.FormError, dns.exception.SyntaxError)) and got["edns"]:
                q = dns.message.from_wire(wire[:len(bytes.fromhex(got["wire_name"])) + 16],
                                          ignore_trailing=True, continue_on_error=True)
            else:
                raise
        except (ValueError, UnicodeError):
            continue
        same(len(q.question), 1)
        same(bytes.fromhex(got["name"]).decode(), text(q.question[0].name.labels))
        same((got["id"], got["type"], got["class"]), (q.id, q.question[0].rdtype, IN))
    assert taken > 500, taken
    return "%d taken" % taken


@test
def answers_are_read_by_dnspython():
    rnd = random.Random(3)
    for _ in range(1000):
        q = random_query(rnd)
        got = tell("q", q.to_wire())
        yes = dns.message.from_wire(bytes.fromhex(got["yes"]))
        assert q.is_response(yes), str(yes)
        same(yes.rcode(), dns.rcode.NOERROR)
        assert yes.flags & dns.flags.RA and not yes.flags & dns.flags.AA
        rdtype = q.question[0].rdtype
        if rdtype in (1, 28):
            same(len(yes.answer), 1)
            same(yes.answer[0].ttl, 60)
            same(yes.answer[0].name, q.question[0].name)
            same(yes.answer[0][0].address, "198.18.0.16" if rdtype == 1 else "fd73:656e:6462:6f78::10")
        else:
            same(yes.answer, [])
        same(yes.edns, 0 if q.edns >= 0 else -1)
        no = dns.message.from_wire(bytes.fromhex(got["no"]))
        assert q.is_response(no)
        same(no.rcode(), dns.rcode.NXDOMAIN)
        same((no.answer, no.authority), ([], []))
        if q.edns >= 0:
            same(len(no.options), 1)
            same((no.options[0].code, no.options[0].text), (15, "not allowed by the plan"))
        else:
            same(no.edns, -1)


@test
def our_queries_are_read_by_dnspython():
    rnd = random.Random(4)
    plain = bytes(c for c in PLAIN if c != 0x5c)
    for _ in range(1000):
        name = random_name(rnd, plain)
        rdtype = rnd.choice(TYPES)
        got = tell("w", struct.pack(">HH", 4711, rdtype) + text(name.labels).encode())
        q = dns.message.from_wire(bytes.fromhex(got["message"]))
        same((q.id, q.question[0].name, q.question[0].rdtype), (4711, name, rdtype))
        same(q.flags, dns.flags.RD)


def random_reply(rnd):
    """An answer with aliases, in random order, with records that do not belong to it."""
    names = [dns.name.from_text(n) for n in
             ("www.example.com", "cdn.example.com", "Edge.example.NET", "a.b.c.example.org", "x.",
              "_d.example.com", "cdn-1.example.com")]
    rdtype = rnd.choice((1, 28))
    q = dns.message.make_query(names[0], rdtype)
    if rnd.random() < .5:
        q.use_edns(0, payload=1232)
    r = dns.message.make_response(q)
    r.flags |= dns.flags.RA
    chain = [names[0]] + rnd.sample(names[1:], rnd.randrange(0, 5))
    for a, b in zip(chain, chain[1:]):
        r.answer.append(dns.rrset.from_text(a, rnd.randrange(0, 4000), IN, "CNAME", b.to_text()))
    if rnd.random() < .8:
        addrs = ["192.0.2.%d" % rnd.randrange(256) if rdtype == 1 else
                 "2001:db8::%x" % rnd.randrange(65536) for _ in range(rnd.randrange(1, 6))]
        r.answer.append(dns.rrset.from_text_list(chain[-1], rnd.randrange(0, 4000), IN, rdtype,
                                                 sorted(set(addrs))))
    else:
        if rnd.random() < .5:
            r.set_rcode(dns.rcode.NXDOMAIN)
        r.authority.append(dns.rrset.from_text(
            "example.com.", rnd.randrange(0, 4000), IN, "SOA",
            "ns.example.com. hostmaster.example.com. 1 2 3 4 %d" % rnd.randrange(0, 4000)))
    if rnd.random() < .3:
        r.answer.append(dns.rrset.from_text("evil.example.com.", 5, IN, "A", "10.0.0.1"))
    if rnd.random() < .3:
        r.additional.append(dns.rrset.from_text("ns.example.com.", 5, IN, "A", "192.0.2.53"))
    rnd.shuffle(r.answer)
    return names[0], rdtype, r


def compare_reply(got, r, rdtype):
    same((got["id"], got["rcode"]), (r.id, int(r.rcode())))
    res = r.resolve_chaining()
    hops, at = [], r.question[0].name
    for _ in range(17):
        rr = r.get_rrset(r.answer, at, IN, dns.rdatatype.CNAME)
        if not rr:
            break
        at = rr[0].target
        hops.append(at)
    same([bytes.fromhex(h).decode() for h in got["hops"]],
         [text(h.labels).lower() for h in hops], "hops")
    addrs = bytes.fromhex(got["addrs"])
    addrs = {addrs[i:i + 16] for i in range(0, len(addrs), 16)}
    want = set()
    for rd in (res.answer or []) if r.rcode() == 0 else []:
        if rdtype == 1:
            want.add(bytes(10) + b"\xff\xff" + socket.inet_pton(socket.AF_INET, rd.address))
        else:
            want.add(socket.inet_pton(socket.AF_INET6, rd.address))
    same(addrs, want, "addresses")
    return res


@test
def replies_of_dnspython_are_read_alike():
    rnd = random.Random(5)
    for _ in range(1000):
        name, rdtype, r = random_reply(rnd)
        wire = r.to_wire()
        got = tell.dns_reply("WWW.example.com", rdtype, wire)
        same(got["r"], 0, str(r))
        res = compare_reply(got, dns.message.from_wire(wire), rdtype)
        if res.answer and r.rcode() == 0:
            same(got["ttl"], res.minimum_ttl, str(r))
        elif any(rr.rdtype == dns.rdatatype.SOA and res.canonical_name.is_subdomain(rr.name)
                 for rr in r.authority):
            same(got["ttl"], res.minimum_ttl, str(r))
        else:
            same(got["ttl"], 0, str(r))


@test
def changed_replies_that_we_take_are_read_alike():
    rnd = random.Random(6)
    taken = 0
    for _ in range(6000):
        name, rdtype, r = random_reply(rnd)
        wire = mutate(rnd, r.to_wire(), (b"\xc0\x0c", b"\0", b"\1a", b"\xc0\x10", b"\0\5\0\1"))
        got = tell.dns_reply("www.example.com", rdtype, wire)
        if got["r"] != 0 or got["truncated"]:
            continue
        try:
            m = dns.message.from_wire(wire)
            m.resolve_chaining()
        except dns.message.AnswerForNXDOMAIN:
            same((got["rcode"], got["addrs"]), (3, ""))
            continue
        except dns.exception.DNSException as e:
            # records of kinds that we do not look into, in the rest of the message
            if isinstance(e, (dns.exception.FormError, dns.exception.SyntaxError)):
                continue
            raise
        except (ValueError, UnicodeError):
            continue
        if m.rcode() > 15:
            same(got["rcode"], 2)
            continue
        taken += 1
        compare_reply(got, m, rdtype)
    assert taken > 500, taken
    return "%d taken" % taken


class Server:
    """Answers what arrives on a UDP and a TCP socket by the words of our writer."""

    def __init__(self):
        self.udp, self.port = listen(socket.SOCK_DGRAM)
        self.tcp = socket.socket()
        self.tcp.bind(("127.0.0.1", self.port))
        self.tcp.listen(4)
        self.tcp.settimeout(20)

    def one(self, args, which):
        proc = subprocess.Popen(args + ["-p", str(self.port)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        if "+tcp" in args:
            c, _ = self.tcp.accept()
            c.settimeout(20)
            raw = c.recv(65535)
            got = tell("q", raw[2:])
            out = bytes.fromhex(got[which])
            c.sendall(struct.pack(">H", len(out)) + out)
            c.close()
        else:
            raw, peer = self.udp.recvfrom(65535)
            got = tell("q", raw)
            self.udp.sendto(bytes.fromhex(got[which]), peer)
        out, _ = proc.communicate(timeout=20)
        return got, out


@test
def kdig_asks_and_understands():
    s = Server()
    for opts in ([], ["+edns"], ["+noedns"], ["+tcp"], ["+dnssec"], ["+cookie"], ["+padding=128"],
                 ["+nsid"], ["+cdflag"], ["+norec"], ["+subnet=192.0.2.0/24"], ["+bufsize=1232"]):
        got, out = s.one(["kdig", "@127.0.0.1", "+retry=0"] + opts + ["www.example.com", "A"], "yes")
        same((got["r"], bytes.fromhex(got["name"])), (0, b"www.example.com"), out)
        assert "status: NOERROR" in out and "198.18.0.16" in out, out
    got, out = s.one(["kdig", "@127.0.0.1", "+retry=0", "+edns", "www.example.com", "AAAA"], "no")
    assert "status: NXDOMAIN" in out and "not allowed by the plan" in out, out
    for args, want in ((["-c", "CH", "version.bind", "TXT"], 5), (["example.com", "AXFR"], None)):
        got, out = s.one(["kdig", "@127.0.0.1", "+retry=0"] +
                         (["+tcp"] if "AXFR" in args else []) + args, "no")
        same(got["rcode"] if want else got["type"], want or 252)


ZONE = """
server:
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "%(dir)s"
  pidfile: ""
  use-syslog: no
  interface: 127.0.0.1
  port: %(port)d
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  local-zone: "example.com." static
  local-data: "example.com. 3600 IN SOA ns.example.com. h.example.com. 1 3600 1200 604800 90"
  local-data: "www.example.com. 77 IN A 192.0.2.1"
  local-data: "www.example.com. 77 IN A 192.0.2.2"
  local-data: "www.example.com. 78 IN AAAA 2001:db8::1"
  local-data: 'www.example.com. 79 IN TXT "some text" "and more"'
  local-data: "www.example.com. 80 IN MX 10 mail.example.com."
  local-data: "www.example.com. 81 IN SRV 1 2 80 www.example.com."
  local-data: "www.example.com. 82 IN HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1"
  local-data: 'www.example.com. 83 IN CAA 0 issue "ca.example"'
  local-data: "www.example.com. 84 IN NAPTR 1 2 S SIP+D2U !^.*$!sip:x@example.com! ."
  local-data: "alias.example.com. 85 IN CNAME www.example.com."
remote-control:
  control-enable: no
"""


def ask(port, name, rdtype):
    q = bytes.fromhex(tell("w", struct.pack(">HH", 99, rdtype) + name.encode())["message"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        s.settimeout(.2)
        for _ in range(50):
            try:
                s.send(q)
                return s.recv(65535)
            except (ConnectionError, TimeoutError):
                time.sleep(.1)
    raise AssertionError("no answer")


@test
def unbound_understands_and_is_understood():
    udp, port = listen(socket.SOCK_DGRAM)
    udp.close()
    with tempfile.TemporaryDirectory() as d:
        conf = os.path.join(d, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(ZONE % {"dir": d, "port": port})
        try:
            proc = subprocess.Popen(["unbound", "-d", "-c", conf], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            raise Skip("no unbound")
        try:
            got = tell.dns_reply("www.example.com", 1, ask(port, "www.example.com", 1))
            same((got["r"], got["id"], got["rcode"], got["ttl"]), (0, 99, 0, 77))
            same(sorted([got["addrs"][24:32], got["addrs"][56:]]), ["c0000201", "c0000202"])
            got = tell.dns_reply("www.example.com", 28, ask(port, "WWW.EXAMPLE.COM", 28))
            same((got["r"], got["ttl"], got["addrs"]), (0, 78, "20010db8" + "0" * 23 + "1"))
            for rdtype in (16, 15, 33, 65, 257, 35, 6):
                name = "example.com" if rdtype == 6 else "www.example.com"
                wire = ask(port, name, rdtype)
                assert dns.message.from_wire(wire).answer, rdtype
                same(tell.dns_reply(name, rdtype, wire)["check"], 0, str(rdtype))
                same(tell.dns_reply("other.example.com", rdtype, wire)["check"], -74)
            got = tell.dns_reply("no.example.com", 1, ask(port, "no.example.com", 1))
            same((got["r"], got["rcode"], got["addrs"]), (0, 3, ""))
            assert 0 < got["ttl"] <= 3600, got
            got = tell.dns_reply("example.com", 1, ask(port, "example.com", 1))
            same((got["r"], got["rcode"], got["addrs"]), (0, 0, ""))
            got = tell.dns_reply("alias.example.com", 1, ask(port, "alias.example.com", 1))
            same((got["r"], [bytes.fromhex(h) for h in got["hops"]]), (0, [b"www.example.com"]))
        finally:
            proc.kill()
            proc.wait()


main()
