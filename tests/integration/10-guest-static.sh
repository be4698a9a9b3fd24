#!/usr/bin/env bash
# sendbox-guest has no loader and no shared library, and runs. Argument: the program.
set -u
guest=${1:?}
echo 1..5
n=0
check() {
	n=$((n + 1))
	if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}
headers=$(readelf -lW "$guest")
! grep -q INTERP <<<"$headers"; check "no interpreter" $?
! readelf -dW "$guest" | grep -q NEEDED; check "no needed libraries" $?
readelf -hW "$guest" | grep -q 'Type: *DYN'; check "position-independent" $?
! grep 'GNU_STACK' <<<"$headers" | grep -q 'RWE'; check "no executable stack" $?
"$guest" --version | grep -q '^sendbox-guest '; check "runs" $?
