# Sourced by the end-to-end and attack tests. Wants: SB_BUILD (build folder), SB_PROVIDER
# (microvm or namespace), SB_WHO (root, user or self). Prints TAP.
#
# The programs are installed into a folder that every user can reach; each identity has its own
# SENDBOX_HOME with a copy of the guest kernel. Topics run side by side in lanes: each lane has its
# own installation, so that a topic sees no processes and no state but its own.
set -u
export LC_ALL=C
n_tests=0
n_bad=0
uid_user=54321

ok() { n_tests=$((n_tests + 1)); echo "ok $n_tests - $1"; }
not_ok() {
	n_tests=$((n_tests + 1)); n_bad=$((n_bad + 1)); echo "not ok $n_tests - $1"
	shift
	printf '%s\n' "$@" | head -n 20 | sed 's/^/# /'
}
skip() { n_tests=$((n_tests + 1)); echo "ok $n_tests - $1 # SKIP $2"; }
finish() { echo "1..$n_tests"; [ "$n_bad" = 0 ]; exit; }
# is NAME GOT WANT
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got:  $2" "want: $3"; fi; }
# like NAME GOT PATTERN (extended regular expression)
like() { if printf '%s' "$2" | grep -Eq -- "$3"; then ok "$1"; else not_ok "$1" "got:  $2" "want: /$3/"; fi; }
unlike() { if printf '%s' "$2" | grep -Eq -- "$3"; then not_ok "$1" "got:  $2" "must not match: /$3/"; else ok "$1"; fi; }

T=/var/tmp/sendbox-tests.$(id -u)
mkdir -p -m 755 "$T"
[ "$(stat -c %u "$T")" = "$(id -u)" ] || { echo "Bail out! $T belongs to another user"; exit 1; }

# The first lane that nobody holds, for as long as this script runs.
take_lane() {
	for lane in 0 1 2 3 4 5 6 7; do
		exec 9>"$T/lane-$lane"
		flock -n 9 && return 0
	done
	echo "Bail out! every lane is taken"; exit 1
}

prepare() {
	local stamp
	take_lane
	key=$(printf %s "$SB_BUILD" | cksum | cut -d' ' -f1)-$lane
	inst=$T/inst-$key
	(
		stamp=$(stat -c %Y "$SB_BUILD"/host/*/sendbox-* "$SB_BUILD"/host/cli/sendbox "$SB_BUILD"/guest/sendbox-guest 2>/dev/null | sort | tail -n 1)
		if [ "$(cat "$inst/stamp" 2>/dev/null)" != "$stamp" ]; then
			rm -rf "$inst"
			DESTDIR=$inst meson install -C "$SB_BUILD" --no-rebuild --quiet >"$inst.log" 2>&1 || { cat "$inst.log"; exit 1; }
			chmod -R a+rX "$inst"
			echo "$stamp" >"$inst/stamp"
		fi
		for who in root user self; do
			[ "$who" = root ] && [ "$(id -u)" != 0 ] && continue
			[ "$who" = user ] && [ "$(id -u)" != 0 ] && continue
			home=$T/home-$who-$key
			[ -e "$home/cache/kernels" ] && continue
			mkdir -p -m 700 "$home/cache"
			src=${SENDBOX_KERNELS:-${HOME}/.cache/sendbox/kernels}
			[ -d "$src" ] || src=/usr/lib/sendbox/kernels
			if [ -d "$src" ]; then cp -a --reflink=auto "$src" "$home/cache/kernels"; fi
			if [ "$who" = user ]; then chown -R $uid_user:$uid_user "$home"
			elif [ "$(id -u)" = 0 ]; then chown -R 0:0 "$home"; fi
		done
		exit 0
	) || { echo "Bail out! cannot install for the tests"; exit 1; }
	sendbox=$(find "$inst" -path '*/bin/sendbox' | head -n 1)
}
prepare
export SENDBOX_HOME=$T/home-$SB_WHO-$key
work=$(mktemp -d "$T/work.XXXXXX")
chmod 755 "$work"
mkdir "$work/p"
[ "$SB_WHO" = user ] && chown -R $uid_user:$uid_user "$work/p"
# A background job that is killed before it has started would run this, too: it begins with
# trap - EXIT.
trap 'rm -rf "$work"' EXIT
cd "$work/p" || exit 1

# as CMD...: as the identity under test
as() {
	if [ "$SB_WHO" = user ]; then
		setpriv --reuid=$uid_user --regid=$uid_user --clear-groups --inh-caps=-all \
			env HOME="$work/p" "$@"
	else
		"$@"
	fi
}
# "PID NAME" of every process of this test's programs
processes() {
	local p exe
	for p in /proc/[0-9]*; do
		exe=$(readlink "$p/exe" 2>/dev/null) || continue
		case $exe in
		"$inst"/*) echo "${p#/proc/} ${exe##*/}" ;;
		esac
	done
}
# processes_left: what of them is still there when nothing goes any more
processes_left() {
	for _ in $(seq 600); do [ -z "$(processes)" ] && return; sleep 0.2; done
	processes
}
# cli_of LEADER: the sendbox process that LEADER is or has started; not what that one has forked
cli_of() {
	ps -e -o pid=,ppid=,comm= | awk -v l="$1" '
		{ parent[$1] = $2; if ($3 == "sendbox") cli[$1] = 1 }
		END { for (c in cli) { if (parent[c] in cli) continue; p = c; while (p in parent && p != l && p > 1) p = parent[p]; if (p == l) { print c; exit } } }'
}
accel=
[ "$SB_PROVIDER" = microvm ] && accel="--accel ${SENDBOX_ACCEL:-tcg}"
# sb OPTIONS -- COMMAND: run in the provider under test; the notice of the namespace runtime is dropped
sb() {
	local errs status
	errs=$(mktemp "$work/stderr.XXXXXX")
	# shellcheck disable=SC2086
	as timeout -k 5 "${SB_LIMIT:-120}" "$sendbox" run --runtime "$SB_PROVIDER" $accel "$@" 2>"$errs"
	status=$?
	grep -v 'shares the host' "$errs" >&2
	rm -f "$errs"
	return $status
}
