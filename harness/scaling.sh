#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make scaling: direct I/O by 1, 2, 4 and 8 threads on one file and on eight, the
# pristine kernel against ours: on a disk with a latency in simulated time, with two
# and with four processors in real time; and which locks they share, counted by
# kernels with LOCK_STAT. What guest/scaling.sh measures ends up as tables and a line
# for each claim, which is also build/scaling/<base>.txt. Fails if a claim does not
# hold; none is about real time, since that is up to what else the machine does.
set -eu
. "$(dirname "$0")/common.sh"

BENCH=1
cd "$ROOT"
out=$ROOT/build/scaling

harness/setup.sh
for s in pristine ours pristine-locks ours-locks; do
	side $s
	harness/build.sh
done
side ours
resolve
dir=$out/$NAME
rm -rf "$dir"
mkdir -p "$dir"

# measure SIDE CPUS: what a kernel says is in $dir/SIDE-CPUS/out.
inputs=
measure()
{
	say "measuring ${1%-locks}${LOCKSTAT:+, locks}, processors: $2 ..."
	icount=
	if [ "$2" = 1 ]; then icount=1; fi
	ICOUNT=$icount SMP=$2 LIMIT=900 MEM=2048 harness/boot.sh scaling "$dir/$1-$2" \
		2>"$dir/$1-$2.log" || {
		tail -n 20 "$dir/$1-$2.log" >&2
		die "no result, or not all of it, from $1"
	}
	inputs="$inputs cpus=$2 side=${1%-locks} $dir/$1-$2/out"
}

# One after the other: this is real time.
for cpus in 1 2 4; do
	for s in pristine ours; do
		side $s
		measure $s $cpus
	done
done
for s in pristine-locks ours-locks; do
	side $s
	measure $s 2
done

# shellcheck disable=SC2086 # a list
awk -f harness/bench/scaling.awk $inputs >"$out/$NAME.txt" && held=1 || held=
cat "$out/$NAME.txt"
say "build/scaling/$NAME.txt"
[ -n "$held" ]
