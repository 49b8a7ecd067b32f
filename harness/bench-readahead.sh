#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make bench-readahead: what readahead makes of the patterns of bench/rabench.c,
# the pristine kernel against ours, both built with config/bench.config, on
# disks in simulated time. The table ends up in build/bench/<base>-readahead.txt.
# PATTERNS=GLOB+GLOB and DISKS=100us+1ms+200mb measure only these, SEED=n varies
# the patterns.
set -eu
. "$(dirname "$0")/common.sh"

: "${PATTERNS:=}" "${DISKS:=}" "${SEED:=}"
BENCH=1
cd "$ROOT"
bench=$ROOT/harness/bench
out=$ROOT/build/bench

harness/setup.sh
PRISTINE=1 harness/build.sh
PRISTINE='' harness/build.sh
resolve
dir=$out/$NAME-readahead

# measure SIDE: boots a kernel, pristine or ours; what it says is in
# $dir/SIDE/out.
measure()
{
	side "$1"
	args="${PATTERNS:+patterns=$PATTERNS }${DISKS:+disks=$DISKS }"
	ARGS="$args${SEED:+seed=$SEED}" ICOUNT=1 LIMIT=900 \
		harness/boot.sh bench-readahead "$dir/$1" 2>"$dir/$1.log"
}

rm -rf "$dir"
mkdir -p "$dir"
say "measuring ..."
began=$(date +%s)
bad=
pair ''
measured "$dir"

awk -f "$bench/ra-table.awk" "$bench/ra-goals" "$dir/pristine/out" \
	"$dir/ours/out" >"$out/$NAME-readahead.txt" && met=1 || met=
cat "$out/$NAME-readahead.txt"
say "build/bench/$NAME-readahead.txt"
[ -n "$met" ] || die "goals that are not met"
