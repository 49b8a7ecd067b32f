# SPDX-License-Identifier: GPL-2.0
#
# awk -f table.awk what=tsv|text PRISTINE OURS: joins what two kernels said
# ("@@ row ..." of guest/bench.sh), one line a workload. "above" is what a file
# costs more than the disk in the same boot.
function key(target)
{
	return target "." $4 "." $5 "." $6 "." $7
}

$1 == "@@" && $2 == "row" {
	k = key($3)
	if (!(k in seen)) {
		seen[k] = 1
		order[++n] = k
		label[k] = $3 "\t" $4 "\t" $5 "\t" $6 "\t" $7
		disk[k] = key("disk")
	}
	cost[k, FILENAME != ARGV[2]] = $8
}

function above(k, side)
{
	if (cost[k, side] + 0 == 0 || cost[disk[k], side] + 0 == 0 || k == disk[k])
		return "-"
	return sprintf("%.0f", cost[k, side] - cost[disk[k], side])
}

function ratio(k)
{
	if (cost[k, 0] + 0 == 0 || cost[k, 1] + 0 == 0)
		return "-"
	return sprintf("%.3f", cost[k, 1] / cost[k, 0])
}

END {
	form = "%-8s %-17s %-5s %9s %-6s %10s %10s %6s %9s %9s\n"
	if (what == "tsv")
		form = "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n"
	printf form, "target", "method", "rw", "bytes", "memory", "pristine", "ours",
		"ratio", "above.old", "above"
	for (i = 1; i <= n; i++) {
		k = order[i]
		split(label[k], f, "\t")
		for (side = 0; side < 2; side++)
			if (cost[k, side] + 0 == 0)
				cost[k, side] = "-"
		printf form, f[1], f[2], f[3], f[4], f[5], cost[k, 0], cost[k, 1],
			ratio(k), above(k, 0), above(k, 1)
	}
}
