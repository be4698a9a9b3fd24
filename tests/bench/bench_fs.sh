#!/bin/bash
# bench_fs.sh BUILD: the work of fs_load on a plain directory and through sendbox-fs on this host
# (guest pump over a socket pair; root and /dev/fuse). Prints medians of 5, one JSON line a figure.
set -eu
build=$1
if [ "$(id -u)" != 0 ] || ! [ -r /dev/fuse ]; then exit 0; fi
D=$(mktemp -d /tmp/sb-fs-bench.XXXXXX)
trap 'rm -rf "$D"' EXIT
mkdir -p "$D/src/scratch" "$D/src/tree" "$D/mnt"
for d in $(seq 100); do
	mkdir "$D/src/tree/d$d"
	for f in $(seq 50); do head -c 3000 /dev/zero >"$D/src/tree/d$d/f$f"; done
done
head -c 200000000 /dev/zero >"$D/src/big"
mnt() {
	"$build/tests/integration/fs_mount" $1 "$build/host/fs/sendbox-fs" "$D/mnt" --open "$D/src" --root 4 --map 0:0:0:0 $2 -- \
		"$build/tests/bench/fs_load" "$D/mnt/tree" "$D/mnt/big" "$D/mnt/scratch"
}
for _ in 1 2 3 4 5; do
	"$build/tests/bench/fs_load" "$D/src/tree" "$D/src/big" "$D/src/scratch" | sed 's/"what":"/&native_/'
	mnt "" "" | sed 's/"what":"/&pump_/'
	mnt -d "" | sed 's/"what":"/&devfuse_/'
	mnt "" "--cache long" | sed 's/"what":"/&pump_long_/'
done | python3 -c '
import json, statistics, sys
runs = {}
for line in sys.stdin:
    d = json.loads(line)
    runs.setdefault(d["what"], []).append(d["ms"])
for what, ms in runs.items():
    print(json.dumps({"bench": "fs", "what": what, "ms": round(statistics.median(ms), 2)}))
'
