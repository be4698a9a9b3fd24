#!/usr/bin/env python3
"""Golden vectors of signed plans, by another implementation: json, hashlib, and Ed25519 as RFC 8032
writes it down.

golden.py check DIR      every vector in DIR is canonical, has its digest and its signature (TAP)
golden.py sign PLAN [KEY]  print the signed plan of a plan's bytes, with the key of RFC 8032, 7.1, test 1,
                         or with the secret key (its first 32 bytes) in the file KEY
"""
import hashlib
import json
import pathlib
import sys

SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
I = pow(2, (P - 1) // 4, P)


def sha512(b):
    return hashlib.sha512(b).digest()


def add(a, b):
    w, x = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    y, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = x - w, z - y, z + y, x + w
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def mul(s, p):
    q = (0, 1, 1, 0)
    while s > 0:
        if s & 1:
            q = add(q, p)
        p = add(p, p)
        s >>= 1
    return q


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def recover(y, sign):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * I % P
    assert (x * x - x2) % P == 0
    return P - x if (x & 1) != sign else x


GY = 4 * pow(5, P - 2, P) % P
GX = recover(GY, 0)
G = (GX, GY, 1, GX * GY % P)


def pack(p):
    zi = pow(p[2], P - 2, P)
    return int.to_bytes((p[1] * zi % P) | ((p[0] * zi % P) & 1) << 255, 32, "little")


def unpack(b):
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = recover(y, sign)
    return (x, y, 1, x * y % P)


def sign(msg, secret=SECRET):
    h = sha512(secret)
    a = int.from_bytes(h[:32], "little") & (1 << 254) - 8 | 1 << 254
    pub = pack(mul(a, G))
    r = int.from_bytes(sha512(h[32:] + msg), "little") % Q
    rs = pack(mul(r, G))
    s = (r + int.from_bytes(sha512(rs + pub + msg), "little") * a) % Q
    assert secret != SECRET or pub.hex() == PUBLIC
    return pub.hex(), rs + int.to_bytes(s, 32, "little")


def verify(pub, msg, sig):
    s = int.from_bytes(sig[32:], "little")
    h = int.from_bytes(sha512(sig[:32] + pub + msg), "little") % Q
    return s < Q and same(mul(s, G), add(unpack(sig[:32]), mul(h, unpack(pub))))


def canonical(o):
    return json.dumps(o, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def main():
    if sys.argv[1] == "sign":
        text = open(sys.argv[2], encoding="utf-8").read()
        secret = open(sys.argv[3], "rb").read()[:32] if len(sys.argv) > 3 else SECRET
        pub, sig = sign(text.encode(), secret)
        sys.stdout.write(canonical({"format": "sendbox-signed-plan", "key": pub, "plan": text,
                                    "signature": sig.hex(), "version": 1}) + "\n")
        return 0
    top = pathlib.Path(sys.argv[2])
    digests = dict(reversed(line.split()) for line in (top / "SHA256SUMS").read_text().splitlines())
    files, bad = sorted(top.glob("*.plan")), 0
    print(f"1..{len(files)}")
    for n, path in enumerate(files, 1):
        raw = path.read_text(encoding="utf-8")
        f = json.loads(raw)
        plan = f["plan"].encode()
        good = (canonical(f) + "\n" == raw and canonical(json.loads(f["plan"])) == f["plan"] and
                hashlib.sha256(plan).hexdigest() == digests.pop(path.name) and
                verify(bytes.fromhex(f["key"]), plan, bytes.fromhex(f["signature"])))
        bad += not good
        print(f"{'ok' if good else 'not ok'} {n} - {path.name}")
    return 1 if bad or digests else 0


sys.exit(main())
