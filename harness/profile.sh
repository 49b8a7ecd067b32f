#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make profile WORKLOAD=TARGET.METHOD.RW.SIZE.BUFFER (globs, joined by "+"):
# what one I/O executes, function by function: instructions, calls, locked
# instructions. PRISTINE=1 for the pristine kernel; TOP=n for n functions; SUM=1
# for one line a workload, with its allocations and BIOs.
set -eu
. "$(dirname "$0")/common.sh"

: "${WORKLOAD:=ext2.sync.read.4096.pages}" "${TOP:=45}" "${SUM:=}"
BENCH=1
cd "$ROOT"
harness/build.sh
resolve
dir=$ROOT/build/profile/$NAME${PRISTINE:+-pristine}
mkdir -p "$dir"
build_plugin
ICOUNT=1 LIMIT=1500 ARGS="hugepages=40 rows=$WORKLOAD" \
PLUGIN="$plugin,map=$OUT/System.map,out=$dir/counts" \
	harness/boot.sh bench "$dir" 2>"$dir/log" || {
	tail -n 20 "$dir/log" >&2
	die "no result"
}

# The N-th workload that ran is the N-th section.
awk -v top="$TOP" -v sum="$SUM" -f harness/bench/profile.awk "$dir/out" "$dir/counts"
