# SPDX-License-Identifier: GPL-2.0
#
# awk -v top=N -v sum=1 -f profile.awk OUT COUNTS: the profiler's counts, those of
# the last of iobench's rounds, divided by its I/Os. OUT is what the guest said:
# the N-th workload that ran is the N-th section of COUNTS.
BEGIN {
	# the counts of guest/bench.sh
	split("4096:2048 16384:512 131072:128 1048576:32 16777216:4 " \
	      "67108864:2 268435456:1 1:100000", shapes, " ")
	for (i in shapes) {
		split(shapes[i], f, ":")
		count[f[1]] = f[2]
	}
	if (sum)
		printf "%-32s %9s %7s %7s %6s\n", "", "insns", "locked", "allocs", "BIOs"
}

FNR == NR {
	if ($2 == "row" && $8 != "-")
		name[++n] = $3 "." $4 "." $5 "." $6 "." $7
	next
}

function finish()
{
	if (!ios)
		return
	if (sum)
		printf "%-32s %9.1f %7.2f %7.2f %6.2f\n", workload, insns / ios,
			locked / ios, allocs / ios, bios / ios
	else
		printf "%9.1f %8s %8.2f  total\n", insns / ios, "", locked / ios
	insns = locked = allocs = bios = 0
}

$1 == "section" {
	finish()
	workload = name[$2]
	split(workload, f, ".")
	ios = count[f[4]]
	shown = 0
	if (!sum)
		printf "\n%s\n%9s %8s %8s  of one I/O\n", workload, "insns",
			"calls", "locked"
	next
}

{
	insns += $1
	locked += $3
	if ($4 ~ /^(kmem_cache_alloc|__kmalloc)/)
		allocs += $2
	if ($4 == "submit_bio")
		bios += $2
	if (!sum && shown++ < top)
		printf "%9.1f %8.2f %8.2f  %s\n", $1 / ios, $2 / ios, $3 / ios, $4
}

END { finish() }
