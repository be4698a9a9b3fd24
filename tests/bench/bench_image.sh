#!/usr/bin/env bash
# bench_image.sh BUILD [ROUNDS]: an image of 1 GiB in 20,000 files, three layers with gzip, to a base
# that can be mounted, in turn:
#   image_sendbox       `sendbox image pull oci:...`, from exec to exit, files on disk (fsync)
#   image_umoci_mkfs    `umoci unpack` and `mkfs.erofs` of what it unpacked, not synced
# One JSON line each: median and minimum in ms, number of rounds. Root only: umoci keeps owners.
set -eu
export LC_ALL=C
build=$(realpath "${1:?usage: bench_image.sh BUILD [ROUNDS]}")
rounds=${2:-3}
for tool in umoci mkfs.erofs; do
	command -v "$tool" >/dev/null || { echo "no $tool: not measured" >&2; exit 0; }
done
work=$(mktemp -d /var/tmp/bench-image.XXXXXX)
trap 'rm -rf "$work"' EXIT
python3 - "$work/lay" <<'END'
import gzip, hashlib, io, json, os, platform, random, sys, tarfile
where = sys.argv[1]
os.makedirs(where + "/blobs/sha256")
rng = random.Random(1)
def put(data):
    d = hashlib.sha256(data).hexdigest()
    with open(where + "/blobs/sha256/" + d, "wb") as f:
        f.write(data)
    return {"digest": "sha256:" + d, "size": len(data)}
# half of it like text, half like programs: about 2:1
words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz_ \n", k=12)) for _ in range(4000)]
text = b"".join(rng.choices(words, k=400000))
noise = rng.randbytes(4 << 20)
layers, diffs = [], []
TOTAL, FILES = 1 << 30, 20000
sizes = [rng.choice((300, 2000, 6000, 20000, 50000, 200000)) for _ in range(FILES)]
scale = TOTAL / sum(sizes)
for part in range(3):
    raw, h = io.BytesIO(), hashlib.sha256()
    class Tee:
        def __init__(self, z): self.z = z
        def write(self, b): h.update(b); return self.z.write(b)
    z = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=5, mtime=0)
    t = tarfile.open(fileobj=Tee(z), mode="w|", format=tarfile.PAX_FORMAT)
    for n in range(part, FILES, 3):
        size = int(sizes[n] * scale)
        i = tarfile.TarInfo("usr/lib/d%03d/file%05d" % (n % 200, n))
        i.size, i.mtime = size, 1700000000 + n
        src = text if n % 2 else noise
        data, at = b"", rng.randrange(len(src) // 2)
        while len(data) < size:
            data += src[at:at + size - len(data)]
            at = 0
        t.addfile(i, io.BytesIO(data))
    t.close(); z.close()
    layers.append(dict(put(raw.getvalue()), mediaType="application/vnd.oci.image.layer.v1.tar+gzip"))
    diffs.append("sha256:" + h.hexdigest())
arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
config = dict(put(json.dumps({"architecture": arch, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": diffs}}).encode()),
              mediaType="application/vnd.oci.image.config.v1+json")
m = dict(put(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode()),
         mediaType="application/vnd.oci.image.manifest.v1+json", annotations={"org.opencontainers.image.ref.name": "t"})
json.dump({"schemaVersion": 2, "manifests": [m]}, open(where + "/index.json", "w"))
open(where + "/oci-layout", "w").write('{"imageLayoutVersion":"1.0.0"}')
END
ours() {
	rm -rf "${work:?}/home"
	mkdir -m 700 "$work/home"
	SENDBOX_HOME=$work/home "$build/host/cli/sendbox" image pull -q "oci:$work/lay:t" >/dev/null
}
theirs() {
	rm -rf "$work/b" "$work/b.erofs"
	umoci unpack --image "$work/lay:t" "$work/b" >/dev/null 2>&1
	mkfs.erofs "$work/b.erofs" "$work/b/rootfs" >/dev/null 2>&1
}
time_of() { # time_of FUNCTION
	local t0 t1
	t0=$(date +%s%N)
	"$1"
	t1=$(date +%s%N)
	echo $(((t1 - t0) / 1000)) >>"$work/$1.us"
}
report() { # report NAME FILE
	sort -n "$work/$2.us" | awk -v name="$1" '{ a[NR] = $1 / 1000 } END {
		printf "{\"name\":\"%s\",\"unit\":\"ms\",\"median\":%.1f,\"min\":%.1f,\"n\":%d}\n",
			name, NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2, a[1], NR }'
}
for _ in $(seq "$rounds"); do
	time_of ours
	time_of theirs
done
report image_sendbox ours
report image_umoci_mkfs theirs
