#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make bench: instructions per I/O, the pristine kernel against ours, both built
# with config/bench.config. What guest/bench.sh measures ends up as a table, as
# build/bench/<base>.tsv, as a picture of what a file costs above its disk,
# build/bench/<base>.svg, and as that cost of each filesystem against its goal,
# build/bench/<base>.filesystems. ROWS=GLOB+GLOB measures only these workloads.
set -eu
. "$(dirname "$0")/common.sh"

: "${ROWS:=}"
if [ -n "$ROWS" ]; then
	# What a file costs is told above the disk.
	ROWS="$ROWS+disk.sync.*.4096.pages+disk.sync.*.1048576.pages"
fi
BENCH=1
cd "$ROOT"
bench=$ROOT/harness/bench
out=$ROOT/build/bench

harness/setup.sh
harness/setup.sh gnuplot-nox
PRISTINE=1 harness/build.sh
PRISTINE='' harness/build.sh
resolve
dir=$out/$NAME

# measure SIDE ROWS: boots a kernel, pristine or ours; what it says is in
# $dir/SIDE/out.
measure()
{
	side "$1"
	ICOUNT=1 LIMIT=1500 ARGS="hugepages=40${2:+ rows=$2}" \
		harness/boot.sh bench "$dir/$1" 2>"$dir/$1.log"
}

rm -rf "$dir" "$out/$NAME".*
mkdir -p "$dir"
say "measuring ..."
began=$(date +%s)
bad=
pair '' "$ROWS"
measured "$dir"

# What one I/O takes besides instructions, on both kernels at once.
counted="*.sync.read.4096.pages+*.libaio.read.4096.pages+*.sync.write.4096.pages"
counted="$counted+disk.sync.read.268435456.pages"
if [ -z "$ROWS" ]; then
	PRISTINE=1 SUM=1 WORKLOAD=$counted harness/profile.sh >"$dir/counts.old" & first=$!
	PRISTINE='' SUM=1 WORKLOAD=$counted harness/profile.sh >"$dir/counts.new" & second=$!
	wait $first
	wait $second
	awk 'FNR == 1 { if (NR == FNR) print $0 "   insns.old locked.old allocs.old BIOs.old"; next }
	NR == FNR { old[$1] = $2 " " $3 " " $4 " " $5; next }
	{ split(old[$1], f, " ")
	  printf "%s %11s %10s %10s %8s\n", $0, f[1], f[2], f[3], f[4] }' \
		"$dir/counts.old" "$dir/counts.new" >"$out/$NAME.counts"
	awk 'BEGIN { print "\none request      KiB pinned, requests in flight: pristine, ours" }
	$2 != "flight" { next }
	NR == FNR { old[$3 $4] = $5 " " $6; next }
	{ split(old[$3 $4], f, " ")
	  printf "%-5s %9d %9s %4s %9s %4s\n", $3, $4, f[1], f[2], $5, $6 }' \
		"$dir/pristine/out" "$dir/ours/out" >>"$out/$NAME.counts"
fi

# A second boot of ours has to say the same, within 0.5 %. FAT leaves io_uring's
# requests to a worker thread, and what that costs is the scheduler's business.
same="[!f]*.4096.pages+fat.sync.*.4096.pages+fat.libaio.*.4096.pages"
measure ours-again "${ROWS:-$same}"
awk '$2 != "row" || $8 == "-" { next }
	{ k = $3 " " $4 " " $5 " " $6 " " $7 }
	FNR == NR { first[k] = $8; next }
	k in first {
		n++
		d = $8 / first[k] - 1
		if (d < 0) d = -d
		if (d > worst) worst = d
		if (d > 0.005) { print "  " k ": " first[k] ", then " $8; bad = 1 }
	}
	END {
		printf "two runs: %d workloads, at most %.2f %% apart\n", n, worst * 100
		exit bad || !n
	}' "$dir/ours/out" "$dir/ours-again/out" >"$dir/again" && same=1 || same=

awk -f "$bench/table.awk" what=tsv "$dir/pristine/out" "$dir/ours/out" \
	>"$out/$NAME.tsv"
awk -f "$bench/table.awk" what=text "$dir/pristine/out" "$dir/ours/out"
echo
awk -f "$bench/goals.awk" "$out/$NAME.tsv" "$bench/goals" | tee "$out/$NAME.goals"
echo
awk -f "$bench/filesystems.awk" "$bench/goals" "$dir/ours/out" "$out/$NAME.tsv" |
	tee "$out/$NAME.filesystems"
echo
if [ -s "$out/$NAME.counts" ]; then cat "$out/$NAME.counts"; fi
echo
cat "$dir/again"
awk -F'\t' -f "$bench/bars.awk" "$out/$NAME.tsv" >"$dir/bars"
if [ "$(wc -l <"$dir/bars")" -gt 1 ]; then
	gnuplot -e "data='$dir/bars'; title='Linux $NAME: direct I/O of 4 KiB'" \
		"$bench/cost.gp" >"$out/$NAME.svg"
fi
grep -h FAILED "$dir"/*.log && die "workloads failed"
say "build/bench/$NAME.tsv, $NAME.svg"
[ -n "$same" ]
