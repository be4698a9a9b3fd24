"""check.py INCLUSION CONSISTENCY HEADS: RFC 9162's verification, written from the RFC alone."""
import base64
import hashlib
import json
import sys


def H(b):
    return hashlib.sha256(b).digest()


def node(left, right):
    return H(b"\1" + left + right)


def inclusion(leaf, m, n, path, root):
    fn, sn, r = m, n - 1, leaf
    for p in path:
        assert sn != 0
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn != 0:
                fn >>= 1
                sn >>= 1
        else:
            r = node(r, p)
        fn >>= 1
        sn >>= 1
    assert sn == 0 and r == root


def consistency(m, old, n, root, path):
    if m & (m - 1) == 0:
        path = [old] + path
    fn, sn = m - 1, n - 1
    while fn & 1:
        fn >>= 1
        sn >>= 1
    fr = sr = path[0]
    for c in path[1:]:
        assert sn != 0
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn != 0:
                fn >>= 1
                sn >>= 1
        else:
            sr = node(sr, c)
        fn >>= 1
        sn >>= 1
    assert sn == 0 and fr == old and sr == root


d = base64.b64decode
i = json.load(open(sys.argv[1]))
c = json.load(open(sys.argv[2]))
heads = {}
lines = open(sys.argv[3]).read().split("\n")
for at, line in enumerate(lines):
    if line.startswith("sendbox-audit-"):
        heads[int(lines[at + 1])] = d(lines[at + 2])
assert heads[i["size"]] == d(i["root"]), "another root than the signed one"
assert json.loads(i["line"])["seq"] == i["record"]
leaf = H(b"\0" + i["line"].encode())
assert leaf == d(i["leaf"])
inclusion(leaf, i["record"], i["size"], [d(h) for h in i["hashes"]], d(i["root"]))
consistency(c["old_size"], d(c["old_root"]), c["size"], d(c["root"]), [d(h) for h in c["hashes"]])
print("ok", i["size"])
