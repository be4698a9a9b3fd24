# Sourced after e2e.sh by the topics of layers and disks: sessions that are laid on files, by plans that
# laid.py makes. The files lie in $s, which is no shared folder.
# shellcheck shell=bash disable=SC2154
s=$work/s
mkdir -p "$s/lib" "$s/data/plan"
cp "$here/../../lib/laid.py" "$s/lib/"
cp "$here/../../data/plan/golden.py" "$s/data/plan/"
[ "$SB_WHO" = user ] && chown -R $uid_user:$uid_user "$s"

# new_disk FILE SIZE: as an instance gets one
new_disk() {
	as truncate -s "$2" "$1"
	as mke2fs -q -t ext4 -m 0 "$1"
	as chmod 600 "$1"
}
# lay CHANGES -- OPTIONS -- COMMAND: make the plan $s/plan
lay() {
	local changes=$1
	shift
	printf '%s' "$changes" | as tee "$s/changes" >/dev/null
	# shellcheck disable=SC2086
	as python3 "$s/lib/laid.py" "$sendbox" "$SENDBOX_HOME" "$s/plan" "$s/changes" -- $accel "${@:2}"
}
# run_laid: run $s/plan
run_laid() { as timeout -k 5 "${SB_LIMIT:-200}" "$sendbox" run --plan "$s/plan" </dev/null; }
# laid CHANGES -- OPTIONS -- COMMAND: both
laid() { lay "$@" && run_laid; }
