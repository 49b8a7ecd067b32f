# SPDX-License-Identifier: GPL-2.0
#
# awk -f bars.awk TSV: the data of cost.gp.
NR > 1 && $4 == 4096 && $5 == "pages" {
	w = $3 ", " $2
	if (!(w in seen)) { seen[w] = 1; order[++n] = w }
	cost[w, $1] = $10
	old[w, $1] = $9
}
END {
	print "workload\text2 on iomap\text2 on ours\text4 on iomap\tFAT, old engine\tFAT on ours"
	for (i = 1; i <= n; i++) {
		w = order[i]
		if (cost[w, "ext2"] != "")
			print w "\t" old[w, "ext2"] "\t" cost[w, "ext2"] "\t" \
				cost[w, "ext4"] "\t" old[w, "fat"] "\t" cost[w, "fat"]
	}
}
