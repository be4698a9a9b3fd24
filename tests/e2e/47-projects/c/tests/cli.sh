#!/bin/sh
set -eu
$1 --version | grep -q '^tally .'
test "$(seq 1000 | $1)" = 1000
find src -name '*.c' -print0 | xargs -0 cat | $1 >/dev/null
