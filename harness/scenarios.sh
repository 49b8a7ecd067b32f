#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make scenarios: what was asked for from 2001 to 2004, S1 to S8, on simulated disks,
# the pristine kernel against ours, both built with config/bench.config, and S8 also
# without SMP. What guest/scenarios.sh measures and insnprof.c counts meanwhile ends
# up as a table with the figures of then and a line for each claim, which is also
# build/scenarios/<base>.txt. ONLY=S2+S5 measures only these. Fails if a claim does
# not hold, but for S7's.
set -eu
. "$(dirname "$0")/common.sh"

: "${ONLY:=}"
BENCH=1
cd "$ROOT"
out=$ROOT/build/scenarios
sides='pristine ours'
case +${ONLY:-S8}+ in
*+S8+*) sides="$sides pristine-up ours-up" ;;
esac

harness/setup.sh
for s in $sides; do
	side "$s"
	harness/build.sh
done
build_plugin
side ours
resolve
dir=$out/$NAME

# measure SIDE: boots a kernel; what it says is in $dir/SIDE/out, what was counted
# in $dir/SIDE/counts.
measure()
{
	side "$1"
	only=$ONLY
	if [ -n "$UP" ]; then only=S8; fi
	resolve
	mkdir -p "$dir/$1"
	ICOUNT=1 LIMIT=1500 MEM=2048 ARGS="${only:+only=$only}" \
	PLUGIN="$plugin,map=$OUT/System.map,out=$dir/$1/counts" \
		harness/boot.sh scenarios "$dir/$1" 2>"$dir/$1.log"
}

rm -rf "$dir"
mkdir -p "$dir"
began=$(date +%s)
bad='' inputs=''
for kind in '' -up; do
	case $sides in *ours$kind*) ;; *) continue ;; esac
	say "measuring${kind:+ without SMP} ..."
	pair "$kind"
	for s in pristine ours; do
		inputs="$inputs side=$s kind=out $dir/$s$kind/out
			kind=counts $dir/$s$kind/counts"
	done
done
measured "$dir"

# shellcheck disable=SC2086 # a list
awk -f harness/bench/scenarios.awk $inputs >"$out/$NAME.txt" && held=1 || held=
cat "$out/$NAME.txt"
say "build/scenarios/$NAME.txt"
[ -n "$held" ]
