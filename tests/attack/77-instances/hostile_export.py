"""hostile_export.py DIR: archives that pretend to be exported instances. Prints NAME<TAB>PATTERN of the
refusal; an empty pattern: it must be taken."""
import gzip, hashlib, io, json, os, platform, sys, tarfile

out = sys.argv[1]
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
P = "io.sendbox.instance."
GOOD = {"version": "1", "name": "bad", "base": "layers", "options": '["--mount=/root/.ssh:/x:rw","--no-network-filter"]',
        "workspace": "/root"}


def layer(*entries):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, data in entries:
            i = tarfile.TarInfo(name)
            i.type = kind
            i.mode = 0o755
            if kind == tarfile.REGTYPE:
                i.size = len(data)
                t.addfile(i, io.BytesIO(data))
            else:
                i.linkname = data.decode() if data else ""
                i.devmajor, i.devminor = 1, 3
                t.addfile(i)
    return b.getvalue()


def bomb():
    i = tarfile.TarInfo("z")
    i.size = 700 << 20
    b = io.BytesIO()
    with gzip.GzipFile(fileobj=b, mode="wb", compresslevel=9) as z:
        z.write(i.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(700):
            z.write(bytes(1 << 20))
        z.write(bytes(1024))
    return b.getvalue()


PLAIN = layer(("etc", tarfile.DIRTYPE, b""), ("etc/x", tarfile.REGTYPE, b"x"))


def desc(data, kind):
    return {"mediaType": "application/vnd.oci.image." + kind, "size": len(data),
            "digest": "sha256:" + hashlib.sha256(data).hexdigest()}


def make(name, pattern, layers=(PLAIN,), notes=None, lie=None, size=None, extra=(), order=None, arch=ARCH, index=None, env=()):
    blobs = {}

    def put(data, kind):
        d = desc(data, kind)
        blobs["blobs/sha256/" + d["digest"][7:]] = data
        return d

    ls = [put(x, "layer.v1.tar") for x in layers]
    c = put(json.dumps({"architecture": arch, "os": "linux", "config": {"Env": list(env)},
                        "rootfs": {"type": "layers", "diff_ids": [x["digest"] for x in ls]}}).encode(), "config.v1+json")
    if size is not None:
        ls[-1]["size"] = size
    m = put(json.dumps({"schemaVersion": 2, "config": c, "layers": ls,
                        "annotations": {P + k: v for k, v in (GOOD if notes is None else notes).items()}}).encode(),
            "manifest.v1+json")
    idx = index or json.dumps({"schemaVersion": 2, "manifests": [dict(m, platform={"os": "linux", "architecture": arch})]}).encode()
    if lie:
        key = "blobs/sha256/" + {"layer": ls[-1], "manifest": m, "config": c}[lie]["digest"][7:]
        blobs[key] = blobs[key][:-1] + bytes([blobs[key][-1] ^ 1])
    with tarfile.open(os.path.join(out, name), "w", format=tarfile.USTAR_FORMAT) as t:
        for n, kind, data in list(extra) + [("oci-layout", tarfile.REGTYPE, b"{}"), ("index.json", tarfile.REGTYPE, idx)] + \
                [(k, tarfile.REGTYPE, v) for k, v in blobs.items()]:
            i = tarfile.TarInfo(n)
            i.type = kind
            i.size = len(data) if kind == tarfile.REGTYPE else 0
            i.linkname = data.decode() if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            t.addfile(i, io.BytesIO(data))
    print("%s\t%s" % (name, pattern))


def note(**kv):
    return {**GOOD, **kv}


F, L, D = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE
make("good", "", notes=note(name="in"), env=["HOME=/etc", "USER=root", "PATH=/opt/x:/usr/bin", "OF_IMAGE=1"])
make("devices", "", layers=[layer(("etc", D, b""), ("etc/null", tarfile.CHRTYPE, b""))], notes=note(name="dev"))
make("agent", "", notes=note(name="ag", agent="claude"))
make("traversal", "entry .*\\.\\./\\.\\./escaped", layers=[layer(("../../escaped", F, b"x"))])
make("link-parent", "beneath \"up\", which is a symbolic link", layers=[layer(("up", L, b"/"), ("up/escaped", F, b"x"))])
make("link-parent-above", "is a symbolic link", layers=[PLAIN, layer(("up", L, b"../.."), ("up/escaped", F, b"x"))])
make("hard-link-out", "a name with", layers=[layer(("x", tarfile.LNKTYPE, b"../../etc/passwd"))])
make("whiteout-name", "whiteout", layers=[PLAIN, layer((".wh.", F, b""))])
make("bomb", "bomb", layers=[bomb()])
make("layer-lie", "its content has the digest", lie="layer")
make("manifest-lie", "its content has the digest", lie="manifest")
make("config-lie", "its content has the digest", lie="config")
make("size-lie", "the manifest says", size=17)
make("outer-traversal", "does not belong", extra=[("../escaped", F, b"x")])
make("outer-absolute", "does not belong", extra=[("/escaped", F, b"x")])
make("outer-link", "does not belong", extra=[("blobs", L, b"/tmp")])
make("outer-device", "does not belong", extra=[("index.json", tarfile.CHRTYPE, b"")])
make("outer-twice", "there twice", extra=[("index.json", F, b"{}")])
make("outer-million", "more than 512", extra=[("blobs/sha256/%064x" % n, F, b"") for n in range(600)])
make("name-up", "name in it is none", notes=note(name="../x"))
make("name-slash", "name in it is none", notes=note(name="a/b"))
make("name-long", "name in it is none", notes=note(name="a" * 300))
make("name-control", "annotation .*control", notes=note(name="a\033]0;x\007"))
make("option-control", "annotation .*control", notes=note(options="\033[2J"))
make("option-long", "annotation", notes=note(options="x" * 5000))
make("agent-up", "agent's name", notes=note(agent="../../x"))
make("base-dir", "name and base", notes=note(base="dir"))
make("newer", "newer sendbox", notes=note(version="2"))
make("image", "no export of an instance", notes={})
make("other-machine", "arm64|amd64|linux", arch="s390x")
make("index-big", "4 MiB", index=b'{"x":"' + b"a" * (5 << 20) + b'"}')
make("index-odd", "JSON", index=b"{")
with open(os.path.join(out, "good"), "rb") as f:
    whole = f.read()
for name, data, pattern in (("cut", whole[:len(whole) // 2], "cut off"), ("empty", b"", "cut off"),
                            ("junk", os.urandom(4096), "checksum|entry|cut off|type")):
    with open(os.path.join(out, name), "wb") as f:
        f.write(data)
    print("%s\t%s" % (name, pattern))
