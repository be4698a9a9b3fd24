#!/usr/bin/env python3
"""hostile.py DIR: OCI layouts with one hostile layer each, DIR/NAME, and the bare archives,
DIR/NAME.tar. Lines on stdout: name, what the refusal must say."""
import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile

out = sys.argv[1]
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
R, D, S, L, C, F = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
                    tarfile.CHRTYPE, tarfile.FIFOTYPE)


def tar(items, end=True):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w", format=tarfile.PAX_FORMAT) as t:
        for kind, name, link, data, pax in items:
            i = tarfile.TarInfo(name)
            i.type, i.linkname, i.size, i.pax_headers, i.mode = kind, link, len(data), pax, 0o755
            t.addfile(i, io.BytesIO(data))
    raw = b.getvalue()
    return raw if end else raw.rstrip(b"\0")


def entry(kind, name, link="", data=b"", pax=None):
    return kind, name, link, data, pax or {}


def blob(where, data):
    digest = hashlib.sha256(data).hexdigest()
    with open(f"{where}/blobs/sha256/{digest}", "wb") as f:
        f.write(data)
    return {"digest": "sha256:" + digest, "size": len(data)}


def layout(name, layers, spoil=None, mutate=lambda m: m, config_arch=ARCH):
    """layers: bytes as they lie in the layout."""
    where = f"{out}/{name}"
    os.makedirs(where + "/blobs/sha256")
    config = {"architecture": config_arch, "os": "linux", "config": {},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64] * len(layers)}}
    kinds = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}
    m = {"schemaVersion": 2,
         "config": dict(blob(where, json.dumps(config).encode()),
                        mediaType="application/vnd.oci.image.config.v1+json"),
         "layers": [dict(blob(where, l), mediaType="application/vnd.oci.image.layer.v1.tar" +
                         kinds.get(l[:2], "")) for l in layers]}
    text = mutate(json.dumps(m))
    top = dict(blob(where, text.encode()), mediaType="application/vnd.oci.image.manifest.v1+json",
               annotations={"org.opencontainers.image.ref.name": "t"})
    with open(where + "/index.json", "w") as f:
        json.dump({"schemaVersion": 2, "manifests": [top]}, f)
    with open(where + "/oci-layout", "w") as f:
        f.write('{"imageLayoutVersion":"1.0.0"}')
    if spoil:
        spoil(where, m)


def case(name, items, say, **kw):
    raw = tar(items)
    with open(f"{out}/{name}.tar", "wb") as f:
        f.write(raw)
    layout(name, [raw], **kw)
    print(name, say, sep="\t")


case("good", [entry(D, "d"), entry(R, "d/f", data=b"x"), entry(L, "h", "d/f")], "")
case("traversal", [entry(R, "../escaped", data=b"x")], r'layer 1: entry "\.\./escaped": a name with "\.\."')
case("inner-traversal", [entry(D, "d"), entry(R, "d/../../escaped", data=b"x")], r'a name with "\.\."')
case("link-parent", [entry(S, "up", ".."), entry(R, "up/escaped", data=b"x")],
     r'layer 1: entry "up/escaped": it lies beneath "up", which is a symbolic link')
case("link-chain", [entry(D, "a"), entry(S, "a/b", ".."), entry(S, "c", "a/b/.."), entry(R, "c/escaped", data=b"x")],
     "which is a symbolic link")
case("hard-link-out", [entry(L, "h", "../../../../../../etc/passwd")], r'a name with "\.\."')
case("hard-link-nowhere", [entry(L, "h", "etc/passwd")], 'a hard link to "etc/passwd", which is not there')
case("hard-link-via-link", [entry(S, "e", "/etc"), entry(L, "h", "e/passwd")], "which is a symbolic link")
case("duplicate", [entry(R, "f", data=b"1"), entry(R, "./f", data=b"2")], "it is there twice in one layer")
case("long-name", [entry(R, "n" * 256, data=b"1")], "a name of 256 bytes")
case("whiteout-data", [entry(R, ".wh.f", data=b"1")], "a whiteout that is no empty file")
case("whiteout-dots", [entry(R, ".wh...")], "a whiteout of nothing")
case("sparse", [entry(R, "f", data=b"1", pax={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 50)})], "a sparse file")
case("xattr-flood", [entry(R, "f", pax={"SCHILY.xattr.user.k%03d" % i: "v" for i in range(65)})], "extended attributes")
case("deep", [entry(R, "d/" * 2000 + "f")] , "")  # long, but allowed

# archives that python does not write
raw = tar([entry(R, "f", data=b"x" * 5000)])
layout("truncated", [raw[:4096]])
print("truncated", "cut off in the middle", sep="\t")
layout("no-end", [tar([entry(R, "f")], end=False) + b""])
print("no-end", "cut off", sep="\t")
layout("truncated-gzip", [gzip.compress(os.urandom(100000) + raw)[:50000]])
print("truncated-gzip", "cannot be unpacked|no tar archive|truncated", sep="\t")
layout("no-tar", [b"#!/bin/sh\n" * 200])
print("no-tar", "no tar archive", sep="\t")
big = io.BytesIO()
with gzip.GzipFile(fileobj=big, mode="wb", compresslevel=9) as z:
    i = tarfile.TarInfo("zeros")
    i.size = 600 << 20
    z.write(i.tobuf())
    for _ in range(600):
        z.write(bytes(1 << 20))
    z.write(bytes(1024))
layout("bomb", [big.getvalue()])
print("bomb", "a decompression bomb", sep="\t")
hdr = tarfile.TarInfo("huge")
hdr.size = 1 << 50
layout("huge", [hdr.tobuf(tarfile.GNU_FORMAT) + bytes(1024)])
print("huge", "larger than 65536 MiB", sep="\t")


def wrong_layer(where, m):
    path = f"{where}/blobs/sha256/{m['layers'][0]['digest'][7:]}"
    data = bytearray(open(path, "rb").read())
    data[600] ^= 1
    open(path, "wb").write(data)


ok = tar([entry(R, "f", data=b"x" * 5000)])
layout("wrong-digest", [ok], spoil=wrong_layer)
print("wrong-digest", "its content has the digest", sep="\t")


def shorter(where, m):
    path = f"{where}/blobs/sha256/{m['layers'][0]['digest'][7:]}"
    os.truncate(path, 100)


layout("wrong-size", [ok], spoil=shorter)
print("wrong-size", "the manifest says", sep="\t")


def linked(where, m):
    path = f"{where}/blobs/sha256/{m['layers'][0]['digest'][7:]}"
    os.rename(path, out + "/elsewhere")
    os.symlink(out + "/elsewhere", path)


layout("blob-link", [ok], spoil=linked)
print("blob-link", "symbolic links", sep="\t")
layout("twice-layers", [ok], mutate=lambda t: t[:-1] + ',"layers":[]}')
print("twice-layers", "duplicate object key", sep="\t")
layout("other-machine", [ok], config_arch="s390x")
print("other-machine", "the image is for linux/s390x", sep="\t")
layout("digest-path", [ok], mutate=lambda t: t.replace('"digest": "sha256:', '"digest": "sha256:../', 1))
print("digest-path", "a digest that is not", sep="\t")
layout("encrypted", [ok], mutate=lambda t: t.replace("layer.v1.tar", "layer.v1.tar+encrypted"))
print("encrypted", "which is not taken", sep="\t")
