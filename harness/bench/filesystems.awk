# SPDX-License-Identifier: GPL-2.0
#
# awk -f filesystems.awk GOALS OURS TSV: what a file costs above the disk, on each
# filesystem that has goals of the measure "share". OURS, which is what our kernel
# said, tells why some were not measured.
FNR == 1 { file++ }

file == 1 {
	if (/^[^#]/ && $2 == "share") {
		goal[++n] = $1
		limit[n] = $3
	}
	next
}

file == 2 {
	if ($2 == "row" && $8 == "-") {
		k = $3 "." $4 "." $5 "." $6 "." $7
		sub(/.* - /, "")
		why[k] = $0
	}
	next
}

function limit_of(k)
{
	for (i = 1; i <= n; i++)
		if (k ~ goal[i])
			return limit[i]
	return "-"
}

FNR == 1 {
	form = "%-8s %-5s %7s %9s %9s %6s %6s  %s\n"
	printf form, $1, $3, $4, $9, $10, "share", "goal", ""
	next
}

$2 != "sync" || $5 != "pages" || $4 !~ /^(4096|1048576)$/ ||
limit_of($1 ".sync.read.4096.pages") == "-" { next }

{
	k = $1 "." $2 "." $3 "." $4 "." $5
	if (k in why) {
		if (!told[$1, why[k]]++)
			print sprintf("%-8s", $1), why[k]
		next
	}
	most = limit_of(k)
	share = "-"
	verdict = "not measured"
	if ($9 + 0 > 0 && $10 != "-") {
		share = $10 / $9
		verdict = most == "-" ? "" : share <= most + 0.0005 ? "met" : "NOT MET"
		share = sprintf("%.3f", share)
	}
	printf form, $1, $3, $4, $9, $10, share, most, verdict
}
