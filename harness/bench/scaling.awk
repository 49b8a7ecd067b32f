# SPDX-License-Identifier: GPL-2.0
#
# awk -f scaling.awk cpus=2 side=pristine OUT side=ours OUT ...: what
# guest/scaling.sh said, as tables: I/Os in a second by threads, on one file and on
# one for each thread, and the locks that came from another processor. Exit status 1
# if a claim does not hold.
BEGIN {
	split("1 2 4 8", threads, " ")
	split("pristine ours", sides, " ")
	split("slow.read slow.write ram.read ram.write", cases, " ")
}

$1 == "@@" && $2 == "run" {
	iops[cpus, $3, $4, $5, side] = $6 * 1e6 / 4096
	if (!((cpus, "run") in seen)) {
		seen[cpus, "run"] = 1
		machines[++nr_machines] = cpus
	}
}

# Classes of one name are told apart by a number that depends on the kernel.
$1 == "@@" && $2 == "lock" {
	sub(/#[0-9]+/, "", $5)
	k = $3 SUBSEP $5
	if (!(k in seen)) {
		seen[k] = 1
		classes[$3] = classes[$3] " " $5
	}
	counted[$3, side] = 1
	waited[k, side] += $7 / $4
	bounces[k, side] += $8 / $4
	taken[k, side] += $9 / $4
}

function table(cpus, c, files, side, i, n)
{
	printf "  %-11s %-5s %-9s", c, files, side
	for (i = 1; i <= 4; i++) {
		n = iops[cpus, c, files, threads[i], side]
		printf " %9s", n ? sprintf("%.0f", n) : "-"
	}
	n = iops[cpus, c, files, 1, side]
	printf "  %6s\n", n ? sprintf("%.2f", iops[cpus, c, files, 8, side] / n) : "-"
}

function claim(text, ok, figures)
{
	printf "claim: %s: %s (%s)\n", text, ok ? "holds" : "does not hold", figures
	bad = bad || !ok
}

# With a latency that is long beside what the processor does, eight threads get eight
# times what one gets, or what one gets if they have to take turns. In simulated time
# that does not depend on what else this machine does.
function parallel(c, what, one, eight, old)
{
	what = "eight threads' " what " of one file are under way together"
	one = iops[1, c, "one", 1, "ours"]
	eight = iops[1, c, "one", 8, "ours"]
	old = iops[1, c, "one", 1, "pristine"]
	if (!one || !eight || !old)
		return claim(what, 0, "not measured")
	claim(what, eight / one >= 7.5,
	      sprintf("%.2f times what one does; pristine %.2f", eight / one,
		      iops[1, c, "one", 8, "pristine"] / old))
}

function is_rwsem(class)
{
	return class ~ /i_mutex_(dir_)?key/
}

# A lock that moves between processors in one of 50 I/Os is shared.
function shared(c, class, side)
{
	return bounces[c, class, side] >= 0.02
}

function locks(c, n, list, i, j, more, side)
{
	printf "\n%s: locks that came from another processor, or were waited for, each I/O\n", c
	printf "  %-36s %26s %26s\n", "", "pristine", "ours"
	printf "  %-36s %8s %8s %8s %8s %8s %8s\n", "class", "taken", "moved", "waited",
		"taken", "moved", "waited"
	n = split(classes[c], list, " ")
	for (i = 1; i <= n; i++) {
		if (!shared(c, list[i], "pristine") && !shared(c, list[i], "ours"))
			continue
		printf "  %-36s", list[i]
		for (j = 1; j <= 2; j++) {
			side = sides[j]
			printf " %8.3f %8.3f %8.3f", taken[c, list[i], side],
				bounces[c, list[i], side], waited[c, list[i], side]
		}
		print ""
		if (shared(c, list[i], "ours") && !shared(c, list[i], "pristine") && \
		    !is_rwsem(list[i]))
			more = more " " list[i]
	}
	claim(c ": beyond the inode's rwsem, no lock is shared that was not before",
	      counted[c, "ours"] && counted[c, "pristine"] && more == "",
	      !counted[c, "ours"] || !counted[c, "pristine"] ? "not measured" : \
	      more == "" ? "none" : "these are:" more)
}

END {
	for (m = 1; m <= nr_machines; m++) {
		cpus = machines[m]
		printf "\n4 KiB direct I/O on ext2, %s: I/Os in a second\n", \
			cpus == 1 ? "one processor, simulated time" : \
			cpus " processors, as fast as this machine lets them"
		printf "  %-11s %-5s %-9s", "", "files", "threads:"
		for (i = 1; i <= 4; i++)
			printf " %9d", threads[i]
		printf "  %6s\n", "8 to 1"
		for (i = 1; i <= 4; i++) {
			if (!((cpus, cases[i], "one", 1, "ours") in iops))
				continue
			for (j = 1; j <= 2; j++)
				table(cpus, cases[i], "one", sides[j])
			for (j = 1; j <= 2; j++)
				table(cpus, cases[i], "each", sides[j])
		}
	}
	parallel("slow.read", "reads")
	parallel("slow.write", "overwrites")
	locks("ram.read")
	locks("ram.write")
	exit bad || !nr_machines
}
