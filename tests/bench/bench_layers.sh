#!/usr/bin/env bash
# bench_layers.sh BUILD [ROUNDS]: start of a micro-VM under emulation, `-- /bin/true`, in turn:
#   start_plain        over the host's /usr, changes in memory
#   start_layers_disk  with two image layers and a disk on top
# One JSON line each: median and minimum in ms, number of rounds; then the ratio of the medians.
set -eu
export LC_ALL=C
build=$(realpath "${1:?usage: bench_layers.sh BUILD [ROUNDS]}")
rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
kernels=${SENDBOX_HOME:+$SENDBOX_HOME/cache}/kernels
[ -d "$kernels" ] || kernels=${XDG_CACHE_HOME:-$HOME/.cache}/sendbox/kernels
[ -d "$kernels" ] || kernels=/usr/lib/sendbox/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SENDBOX_HOME=$work/home
mkdir -p "$SENDBOX_HOME/cache" "$work/project" "$work/1/opt" "$work/2/opt"
chmod 700 "$SENDBOX_HOME/cache"
cp -r "$kernels" "$SENDBOX_HOME/cache/"
cd "$work/project"
for i in 1 2; do
	head -c 1000000 /dev/urandom >"$work/$i/opt/f$i"
	mkfs.erofs "$work/$i.erofs" "$work/$i" >/dev/null 2>&1
done
truncate -s 1G "$work/up"
mke2fs -q -t ext4 -m 0 "$work/up"
chmod 600 "$work/up"
sendbox=$build/host/cli/sendbox
printf '{"upper":"%s/up","layers":["%s/1.erofs","%s/2.erofs"]}' "$work" "$work" "$work" >"$work/changes"
python3 "$here/../lib/laid.py" "$sendbox" "$SENDBOX_HOME" "$work/laid" "$work/changes" -- \
	--accel tcg --memory 512m --valid-for 1h -- /bin/true
"$sendbox" run --accel tcg --memory 512m --dry-run --valid-for 1h -- /bin/true >"$work/plain"
for n in $(seq 0 "$rounds"); do
	for what in plain laid; do
		t0=$(date +%s%N)
		"$sendbox" run --plan "$work/$what"
		t1=$(date +%s%N)
		[ "$n" = 0 ] || echo $(((t1 - t0) / 1000)) >>"$work/$what.us"
	done
done
for what in plain laid; do
	name=start_plain
	[ "$what" = laid ] && name=start_layers_disk
	sort -n "$work/$what.us" | awk -v name="$name" '{ a[NR] = $1 / 1000 } END {
		printf "{\"name\":\"%s\",\"unit\":\"ms\",\"median\":%.1f,\"min\":%.1f,\"n\":%d}\n",
			name, NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2, a[1], NR }'
done | tee "$work/lines"
python3 - "$work/lines" <<'PY'
import json, sys
a, b = (json.loads(line) for line in open(sys.argv[1]))
print(json.dumps({"name": "start_layers_disk_ratio", "unit": "x", "median": round(b["median"] / a["median"], 3),
                  "min": round(b["min"] / a["min"], 3)}))
PY
