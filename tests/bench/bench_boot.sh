#!/usr/bin/env bash
# bench_boot.sh BUILD [ROUNDS]: cold start of a micro-VM under emulation, three ways in turn:
#   boot_bare_qemu   QEMU by hand: same kernel, same switches, an init that reboots at once,
#                    nothing attached, no jail; wall time of the process
#   boot_provider    the provider's own guest of tests/e2e/01-boot-init: jail, modules, ports
#   boot_sendbox     `sendbox run -- true`, from exec to exit
# One JSON line each: median and minimum in ms, number of rounds. The first round is not counted.
set -eu
export LC_ALL=C
build=$(realpath "${1:?usage: bench_boot.sh BUILD [ROUNDS]}")
rounds=${2:-7}
home=${SENDBOX_HOME:+$SENDBOX_HOME/cache}
home=${home:-${XDG_CACHE_HOME:-$HOME/.cache}/sendbox}
kernel=$(find "$home/kernels" /usr/lib/sendbox/kernels -mindepth 2 -maxdepth 2 -name vmlinuz 2>/dev/null |
	sort -V | tail -n 1)
[ -n "$kernel" ] || { echo "no guest kernel: scripts/fetch-kernel" >&2; exit 1; }
kernel=${kernel%/vmlinuz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SENDBOX_HOME=$work/home
mkdir -p "$work/libexec" "$work/drive" "$SENDBOX_HOME/cache/kernels" "$work/project"
cp "$build/tests/e2e/boot-init" "$work/libexec/sendbox-guest"
cp -r "$kernel" "$SENDBOX_HOME/cache/kernels/"
"$build/tests/bench/bench-boot-helper" cpio "$build/tests/bench/bench-boot-init" "$work/ird"

drive() {
	"$build/tests/e2e/boot-drive" "$work/drive" "$work/libexec" "$kernel" >"$work/out" ||
		{ cat "$work/out" >&2; exit 1; }
}
drive # unpacks the kernel
elf=$(find "$work/drive/cache/kernels-elf" -name '*.elf')

cpu=qemu64,-svm,+cx16,+ssse3,+sse4.1,+sse4.2,+popcnt,+aes,+pclmulqdq,+rdrand
cpu=$cpu,+rdtscp,+smep,+smap,+umip
bare() {
	local tsc
	tsc=$("$build/tests/bench/bench-boot-helper" tsc)
	qemu-system-x86_64 -M microvm,rtc=on -accel tcg -cpu "$cpu" -smp 1 -m 512 -nodefaults \
		-no-user-config -nographic -no-reboot -global virtio-mmio.force-legacy=false \
		-serial stdio -kernel "$elf" -initrd "$work/ird" -append "console=ttyS0 quiet \
panic=-1 oops=panic cryptomgr.notests pci=off lsm=landlock,yama audit=0 random.trust_cpu=on \
8250.nr_uarts=1 no_timer_check i8042.noaux i8042.nokbd tsc_early_khz=$tsc" </dev/null >"$work/out"
	grep -q '^init' "$work/out"
}
full() {
	(cd "$work/project" &&
		"$build/host/cli/sendbox" run --runtime microvm --accel tcg --cpus 1 --memory 512m -- true)
}
time_of() { # time_of FILE COMMAND
	local t0 t1
	t0=$(date +%s%N)
	"$2"
	t1=$(date +%s%N)
	echo $(((t1 - t0) / 1000)) >>"$work/$1.us"
}
report() { # report NAME FILE
	[ -s "$work/$2.us" ] || return 0
	tail -n +2 "$work/$2.us" | sort -n | awk -v name="$1" '{ a[NR] = $1 / 1000 } END {
		printf "{\"name\":\"%s\",\"unit\":\"ms\",\"median\":%.1f,\"min\":%.1f,\"n\":%d}\n",
			name, NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2, a[1], NR }'
}

for _ in $(seq 0 "$rounds"); do
	time_of bare bare
	time_of drive drive
	if [ -x "$build/host/cli/sendbox" ] && [ -z "${NO_SENDBOX:-}" ]; then
		time_of full full
	fi
done
report boot_bare_qemu bare
report boot_provider drive
report boot_sendbox full
