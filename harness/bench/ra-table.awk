# SPDX-License-Identifier: GPL-2.0
#
# awk -f ra-table.awk GOALS PRISTINE OURS: joins what two kernels said ("@@ row
# ..." of guest/bench-readahead.sh), one line a disk and pattern, and tells
# whether the goals are met. Nothing at all may take more than 1.02 of what it
# took; a goal of 1.00 allows that too, since clocks differ by as much.
FNR == 1 { file++ }
/^#/ { next }

file == 1 {
	goal[$1, "100us"] = $2
	goal[$1, "1ms"] = $3
	waste[$1] = $4
	next
}

$1 == "@@" && $2 == "row" {
	k = $4 SUBSEP $3
	if (!(k in seen)) {
		seen[k] = 1
		order[++n] = k
	}
	time[k, file] = $5
	requests[k, file] = $6
	read[k, file] = $7
	used[k, file] = $8
}

function over_used(k, side)
{
	return read[k, side] / used[k, side]
}

function verdict(k, pattern, disk, ratio,	limit, most, said)
{
	limit = (k in goal) && goal[k] < 1 ? goal[k] + 0.0005 : 1.02
	if (ratio > limit)
		said = said sprintf(" time > %s", (k in goal) ? goal[k] : "1.02")
	if (!(pattern in waste) || !(k in goal))
		return said
	most = waste[pattern] == "=" ? over_used(k, 2) : waste[pattern]
	if (over_used(k, 3) > most + 0.005)
		said = said sprintf(" bytes > %.2f", most)
	return said
}

END {
	form = "%-6s %-21s %10s %10s %6s %6s %6s %6s %6s  %s\n"
	printf form, "disk", "pattern", "pristine", "ours", "ratio", "req.",
		"req.", "bytes", "bytes", ""
	printf form, "", "", "ms", "ms", "", "then", "now", "then", "now", ""
	for (i = 1; i <= n; i++) {
		k = order[i]
		if (!time[k, 2] || !time[k, 3]) {
			bad++
			continue
		}
		split(k, f, SUBSEP)
		pattern = f[1]
		disk = f[2]
		ratio = time[k, 3] / time[k, 2]
		said = verdict(k, pattern, disk, ratio)
		bad += said != ""
		printf form, disk, pattern, sprintf("%.2f", time[k, 2] / 1e6),
			sprintf("%.2f", time[k, 3] / 1e6),
			sprintf("%.3f", ratio), requests[k, 2], requests[k, 3],
			sprintf("%.2f", over_used(k, 2)),
			sprintf("%.2f", over_used(k, 3)),
			said ? "NOT MET:" said : (k in goal) ? "met" : ""
		if (pattern in waste) {
			if (!(disk in count))
				disks[++nr] = disk
			count[disk]++
			logs[disk] += log(ratio)
			bytes[disk, 2] += read[k, 2]
			bytes[disk, 3] += read[k, 3]
		}
	}
	print ""
	for (i = 1; i <= nr; i++) {
		disk = disks[i]
		mean = exp(logs[disk] / count[disk])
		said = ""
		if (disk != "200mb" && mean > 0.6005)
			said = said " time > 0.60"
		if (bytes[disk, 3] > bytes[disk, 2])
			said = said " more bytes"
		bad += said != ""
		printf "%-6s %d patterns with goals: mean ratio %.3f, %.1f MiB read, %.1f before  %s\n",
			disk, count[disk], mean, bytes[disk, 3] / 1048576,
			bytes[disk, 2] / 1048576, said ? "NOT MET:" said : "met"
	}
	exit bad > 0
}
