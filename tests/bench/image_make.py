#!/usr/bin/env python3
"""image_make.py DIR [BYTES [FILES [LAYERS]]]: an OCI layout with one image, tag "t".

Of four files three hold text that packs well and one bytes that do not: about 2:1 with gzip. The
contents are slices of two blocks, so that making them costs nothing beside packing them, and
every layer is packed by a process of its own.
"""
import hashlib
import json
import multiprocessing
import os
import platform
import random
import sys
import zlib

BLOCK = 4 << 20
MTIME = 1700000000


def header(name, size, kind, mode, mtime):
    h = bytearray(512)
    for at, what in ((0, name), (100, b"%07o" % mode), (108, b"0000000"), (116, b"0000000"), (124, b"%011o" % size),
                     (136, b"%011o" % mtime), (148, b" " * 8), (156, kind), (257, b"ustar\x0000")):
        h[at:at + len(what)] = what
    h[148:156] = b"%06o\x00 " % sum(h)
    return bytes(h)


class Blob:
    """A packed layer: digests of what went in and of what came out."""

    def __init__(self, where):
        self.path = os.path.join(where, "tmp-%d" % os.getpid())
        self.file = open(self.path, "wb")
        self.raw, self.packed, self.size = hashlib.sha256(), hashlib.sha256(), 0
        self.z = zlib.compressobj(1, zlib.DEFLATED, 31)

    def out(self, data):
        self.packed.update(data)
        self.size += len(data)
        self.file.write(data)

    def add(self, data):
        self.raw.update(data)
        self.out(self.z.compress(data))

    def end(self, where):
        self.out(self.z.flush())
        self.file.close()
        os.rename(self.path, os.path.join(where, self.packed.hexdigest()))


def layer(job):
    where, part, parts, sizes = job
    rng = random.Random(part)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz_ \n", k=12)) for _ in range(800)]
    blocks = [rng.randbytes(BLOCK), b"".join(rng.choices(words, k=BLOCK // 12))]
    blob = Blob(where)
    for n in range(200):
        blob.add(header(b"usr/lib/d%03d/" % n, 0, b"5", 0o755, MTIME))
    for n in range(part, len(sizes), parts):
        size, block = sizes[n], memoryview(blocks[n % 4 > 0])
        blob.add(header(b"usr/lib/d%03d/file%05d" % (n % 200, n), size, b"0", 0o644, MTIME + n))
        left, at = size, rng.randrange(len(block) // 2)
        while left > 0:
            data = block[at:at + left]
            blob.add(data)
            left, at = left - len(data), 0
        blob.add(bytes(-size % 512))
    blob.add(bytes(1024))
    blob.end(where)
    return {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + blob.packed.hexdigest(),
            "size": blob.size}, "sha256:" + blob.raw.hexdigest()


def put(where, kind, doc):
    data = json.dumps(doc).encode()
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(where, digest), "wb") as f:
        f.write(data)
    return {"mediaType": "application/vnd.oci.image.%s.v1+json" % kind, "digest": "sha256:" + digest,
            "size": len(data)}


def main():
    top = sys.argv[1]
    total, files, parts = (int(a) for a in (sys.argv[2:] + ["1073741824", "20000", "3"][len(sys.argv) - 2:]))
    blobs = os.path.join(top, "blobs", "sha256")
    os.makedirs(blobs)
    rng = random.Random(1)
    sizes = [rng.choice((300, 2000, 6000, 20000, 50000, 200000)) for _ in range(files)]
    scale = total / sum(sizes)
    sizes = [int(s * scale) for s in sizes]
    with multiprocessing.Pool(min(parts, os.cpu_count())) as pool:
        done = pool.map(layer, [(blobs, part, parts, sizes) for part in range(parts)], 1)
    config = put(blobs, "config", {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
                                   "os": "linux", "config": {},
                                   "rootfs": {"type": "layers", "diff_ids": [d[1] for d in done]}})
    manifest = put(blobs, "manifest", {"schemaVersion": 2, "config": config, "layers": [d[0] for d in done]})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "t"}
    with open(os.path.join(top, "index.json"), "w") as f:
        json.dump({"schemaVersion": 2, "manifests": [manifest]}, f)
    with open(os.path.join(top, "oci-layout"), "w") as f:
        f.write('{"imageLayoutVersion":"1.0.0"}')


if __name__ == "__main__":
    main()
