# SPDX-License-Identifier: GPL-2.0
#
# awk -f scenarios.awk side=pristine kind=out OUT kind=counts COUNTS side=ours ...:
# what guest/scenarios.sh said on two kernels, with what insnprof.c counted
# meanwhile, as a table, scenario by scenario, with the figures of 2001 to 2004 and
# a line that says whether the claim made then holds. The N-th measurement of an
# OUT is the N-th section of its COUNTS.
#
# Exit status 1 if a claim does not hold, but for S7's, which waits for the
# readahead window's policy.

function then(s, c, year, mbs, time, still, even)
{
	past[s, c] = sprintf(form, "", year, mbs, time, still, "-", even)
}

BEGIN {
	form = "  %-22s %-9s %9s %9s %7s %8s %8s\n"
	split("pristine ours", sides, " ")
	title["S1"] = "streaming writes to one disk (2002)"
	title["S2"] = "eight disks read in parallel, 4 MiB at a time (2002)"
	title["S3"] = "eight ext2 filesystems (2002)"
	title["S4"] = "four files written in parallel (2002)"
	title["S5"] = "four raw devices, mounted or not (2001)"
	title["S6"] = "ten dd, ten ext2 filesystems, then umount (2003)"
	title["S7"] = "a file on a striped array, 11 KiB at a time (2004)"
	title["S8"] = "one byte at a time (2003)"
	then("S2", "raw", 2002, "194.35", "-", "92", "-")
	then("S2", "direct", 2002, "194.37", "-", "92", "-")
	then("S2", "buffered", 2002, "133", "-", "0", "-")
	then("S5", "raw.was-mounted", 2001, "340", "-", "85", "-")
	then("S5", "raw.fresh", 2001, "180", "-", "0", "-")
	then("S6", "direct", 2003, "-", "22", "-", "even")
	then("S6", "buffered", 2003, "-", "45", "-", "-")
	then("S7", "one-thread.wide", 2004, "430", "-", "-", "-")
	then("S7", "two-threads.wide", 2004, "81", "-", "-", "-")
}

function scenario(s)
{
	if (!(s in seen)) {
		seen[s] = 1
		order[++scenarios] = s
	}
}

# What was measured, in the order of the marks.
function measured(s, c)
{
	section[++sections] = s SUBSEP c
}

FNR == 1 && kind == "out" { sections = 0 }

kind == "out" && $1 == "@@" && ($2 == "run" || $2 == "fig" || $2 == "skip") {
	scenario($3)
	if (!(($2, $3, $4) in seen)) {
		seen[$2, $3, $4] = 1
		cases[$2, $3] = cases[$2, $3] " " $4
	}
}

kind == "out" && $1 == "@@" && $2 == "run" {
	rate[$3, $4, side] = $5
	secs[$3, $4, side] = $6
	spread[$3, $4, side] = $10
	measured($3, $4)
	next
}

kind == "out" && $1 == "@@" && ($2 == "fig" || $2 == "skip") {
	what = $2; s = $3; c = $4
	sub(/^@@ [a-z]+ [^ ]+ [^ ]+ /, "")
	if (what == "skip")
		skipped[s, c, side] = $0
	else
		fig[s, c, side] = $0
	if (s == "S8")
		measured(s, c)
	next
}

kind == "counts" && $1 == "section" {
	at = section[$2] SUBSEP side
	next
}

# What null_blk executes is no processor's business on a real disk: the radix trees
# are where it keeps what was written.
kind == "counts" && \
$4 !~ /^(__)?(nullb?_|radix_tree_|copy_(to|from)_nullb|memcpy(_orig)?$)/ {
	insns[at] += $1
	locked[at] += $3
}

# A disk that takes no time: what it would transfer in a second means nothing.
function no_limit(s, c)
{
	return s == "S1" && c !~ /^rate/
}

function idle(s, c, side)
{
	if (!((s, c, side) in insns) || !((s, c, side) in rate) || no_limit(s, c))
		return -1
	return 100 * (1 - insns[s, c, side] / 1e9 / secs[s, c, side])
}

# Thousands of instructions for each MiB
function cost(s, c, side)
{
	if (!((s, c, side) in insns) || !((s, c, side) in rate))
		return -1
	return insns[s, c, side] / 1e3 / \
		(rate[s, c, side] * secs[s, c, side] / 1.048576)
}

function number(digits, n)
{
	return n < 0 ? "-" : sprintf("%." digits "f", n)
}

function row(s, c, side, label)
{
	if ((s, c, side) in skipped)
		printf "  %-22s %-9s skipped: %s\n", label, side, skipped[s, c, side]
	else if (!((s, c, side) in rate))
		printf "  %-22s %-9s not measured\n", label, side
	else
		printf form, label, side, no_limit(s, c) ? "-" : rate[s, c, side],
			number(3, secs[s, c, side]), number(1, idle(s, c, side)),
			number(1, cost(s, c, side)), spread[s, c, side]
}

function figure(s, c, i, side)
{
	printf "  %-22s", c
	for (i = 1; i <= 2; i++) {
		side = sides[i]
		printf "  %s %s", side, (s, c, side) in fig ? fig[s, c, side] : \
			(s, c, side) in skipped ? "skipped: " skipped[s, c, side] : "-"
		if (s == "S8" && (s, c, side) in locked)
			printf " (%.2f locked)", locked[s, c, side] / 100000
	}
	print ""
}

function table(s, n, list, i)
{
	printf "\n%s %s\n", s, title[s]
	n = split(cases["run", s], list, " ")
	if (n)
		printf form, "", "", "MB/s", "seconds", "idle %", "k/MiB", "spread %"
	for (i = 1; i <= n; i++) {
		row(s, list[i], "pristine", list[i])
		row(s, list[i], "ours", "")
		printf "%s", past[s, list[i]]
	}
	n = split(cases["skip", s], list, " ")
	for (i = 1; i <= n; i++)
		if (!(("run", s, list[i]) in seen))
			figure(s, list[i])
	n = split(cases["fig", s], list, " ")
	for (i = 1; i <= n; i++)
		figure(s, list[i])
}

function max(a, b)
{
	return a > b ? a : b
}

function min(a, b)
{
	return a < b ? a : b
}

# ours(S, NAME...): were all of these, separated by blanks, measured on ours?
function ours(s, names, n, list, i)
{
	n = split(names, list, " ")
	for (i = 1; i <= n; i++)
		if (!((s, list[i], "ours") in rate) && !((s, list[i], "ours") in fig))
			return 0
	return 1
}

function claim(s, text, ok, figures)
{
	printf "%s: claim: %s: %s (%s)\n", s, text, ok ? "holds" : "does not hold", figures
	bad = bad || (!ok && s != "S7")
}

function unclear(s, text, why)
{
	printf "%s: claim: %s: not measured (%s)\n", s, text, why
	bad = 1
}

# The most that a size costs over one that is smaller, as a ratio.
function steepest(s, prefix, side, n, list, i, least, worst)
{
	n = split("128k 1m 16m 64m 128m", list, " ")
	least = cost(s, prefix list[1], side)
	for (i = 2; i <= n; i++) {
		worst = max(worst, cost(s, prefix list[i], side) / least)
		least = min(least, cost(s, prefix list[i], side))
	}
	return worst
}

function claim_s1(text, gain, large, disk, file)
{
	text = "one request of any size costs no more per MiB than many small ones, and streams"
	if (!ours("S1", "rate.128k rate.1m rate.16m rate.64m rate.256m " \
		  "disk.128k disk.128m ext2.128k ext2.128m"))
		return unclear("S1", text, "see above")
	gain = rate["S1", "rate.1m", "ours"] / rate["S1", "rate.128k", "ours"]
	large = min(min(rate["S1", "rate.16m", "ours"], rate["S1", "rate.64m", "ours"]),
		    rate["S1", "rate.256m", "ours"]) / rate["S1", "rate.1m", "ours"]
	disk = steepest("S1", "disk.", "ours")
	file = steepest("S1", "ext2.", "ours")
	claim("S1", text, gain >= 1.2 && large >= 0.99 && disk <= 1.005 && file <= 1.005,
	      sprintf("1 MiB is %.0f %% faster than 128 KiB, 20 %% in 2002; larger ones " \
		      "reach %.3f of that; a size costs at most %.3f of a smaller one " \
		      "on the disk, %.3f on ext2", 100 * gain - 100, large, disk, file))
}

function claim_s2(text, same, line, busy, even, more)
{
	text = "raw equals O_DIRECT, both at line rate and idle, and all end together"
	if (!ours("S2", "raw direct buffered line-rate"))
		return unclear("S2", text, "see above")
	same = 100 * (rate["S2", "raw", "ours"] / rate["S2", "direct", "ours"] - 1)
	line = min(rate["S2", "raw", "ours"], rate["S2", "direct", "ours"]) / \
		fig["S2", "line-rate", "ours"]
	busy = min(idle("S2", "raw", "ours"), idle("S2", "direct", "ours"))
	even = max(spread["S2", "raw", "ours"], spread["S2", "direct", "ours"])
	more = cost("S2", "buffered", "ours") / cost("S2", "direct", "ours")
	claim("S2", text, same <= 0.1 && same >= -0.1 && line >= 0.99 && busy >= 92 && \
	      even <= 1 && more > 1,
	      sprintf("%.2f %% apart, %.3f of line rate, %.1f %% idle, ends within %.2f %%; " \
		      "buffered costs %.1f times as much", same, line, busy, even, more))
}

function claim_s3(text, c, more)
{
	text = "cached random reads start no readahead, and cost no more than before"
	c = "cached-random-4k"
	if (!ours("S3", c " cached-requests") || cost("S3", c, "pristine") < 0)
		return unclear("S3", text, "see above")
	more = cost("S3", c, "ours") / cost("S3", c, "pristine")
	claim("S3", text, fig["S3", "cached-requests", "ours"] == 0 && more <= 1.005,
	      sprintf("%d disk requests, %.0f instructions a read, %.3f of pristine",
		      fig["S3", "cached-requests", "ours"],
		      cost("S3", c, "ours") * 1000 / 256, more))
}

function claim_s4(text, less)
{
	text = "O_DIRECT takes a tenth of the processor time of buffered writing, and is done first"
	if (!ours("S4", "buffered direct"))
		return unclear("S4", text, "see above")
	less = cost("S4", "buffered", "ours") / cost("S4", "direct", "ours")
	claim("S4", text, less >= 10 && \
	      secs["S4", "direct", "ours"] < secs["S4", "buffered", "ours"],
	      sprintf("%.3f s of processor against %.3f: a %.0fth, 6.8 s against 78 to " \
		      "107 in 2002, a 11th to 16th; done after %.2f s against %.2f",
		      insns["S4", "direct", "ours"] / 1e9,
		      insns["S4", "buffered", "ours"] / 1e9, less,
		      secs["S4", "direct", "ours"], secs["S4", "buffered", "ours"]))
}

function claim_s5(text, n, list, i, low, high, cheap, dear, safe)
{
	text = "raw speed depends on nothing but the disk, and a mounted disk is not opened"
	n = split("raw.fresh raw.was-mounted raw.soft-512 raw.soft-4096", list, " ")
	if (!ours("S5", "raw.fresh raw.was-mounted raw.soft-512 raw.soft-4096 " \
		  "raw-open-of-mounted mount-of-raw-open sectors.raw sectors.disk"))
		return unclear("S5", text, "see above")
	for (i = 1; i <= n; i++) {
		high = max(high, rate["S5", list[i], "ours"])
		low = low ? min(low, rate["S5", list[i], "ours"]) : high
		dear = max(dear, cost("S5", list[i], "ours"))
		cheap = cheap ? min(cheap, cost("S5", list[i], "ours")) : dear
	}
	safe = fig["S5", "raw-open-of-mounted", "ours"] == "refused" && \
		fig["S5", "mount-of-raw-open", "ours"] == "refused" && \
		fig["S5", "sectors.raw", "ours"] == "yes" && \
		fig["S5", "sectors.disk", "ours"] == "yes"
	claim("S5", text, high / low <= 1.01 && dear / cheap <= 1.05 && safe && \
	      idle("S5", "raw.fresh", "ours") >= 85,
	      sprintf("%.2f to %.2f MB/s and %.1f to %.1f k/MiB, %.1f %% idle; in 2001 180 to " \
		      "340 MB/s, 0 or 85 %% idle; exclusion and single sectors: %s",
		      low, high, cheap, dear, idle("S5", "raw.fresh", "ours"),
		      safe ? "as they should be" : "see above"))
}

function claim_s6(text)
{
	text = "O_DIRECT keeps all disks busy and is done first, umount included"
	if (!ours("S6", "direct buffered direct.disks-busy buffered.disks-busy"))
		return unclear("S6", text, "see above")
	claim("S6", text, secs["S6", "direct", "ours"] < secs["S6", "buffered", "ours"] && \
	      fig["S6", "direct.disks-busy", "ours"] >= 8 && spread["S6", "direct", "ours"] <= 5,
	      sprintf("%.2f s against %.2f, 22 against 45 in 2003; %.1f disks busy against " \
		      "%.1f; the writers end within %.1f %%",
		      secs["S6", "direct", "ours"], secs["S6", "buffered", "ours"],
		      fig["S6", "direct.disks-busy", "ours"],
		      fig["S6", "buffered.disks-busy", "ours"], spread["S6", "direct", "ours"]))
}

# The rate of a case of S7 over that of another one
function of(c, other)
{
	return rate["S7", c, "ours"] / rate["S7", other, "ours"]
}

function claim_s7(text, wide, narrow, back, full)
{
	text = "threads may share a descriptor, look back, and fill the memory, at full speed"
	if (!ours("S7", "one-thread.wide two-threads.wide look-back.wide two-descriptors.wide " \
		  "one-thread.128k two-threads.128k look-back.128k two-descriptors.128k " \
		  "memory-free memory-full memory-left"))
		return unclear("S7", text, "see above")
	wide = of("two-threads.wide", "two-descriptors.wide")
	narrow = of("two-threads.128k", "two-descriptors.128k")
	back = min(of("look-back.wide", "one-thread.wide"),
		   of("look-back.128k", "one-thread.128k"))
	full = of("memory-full", "memory-free")
	claim("S7", text, wide >= 0.95 && narrow >= 0.95 && back >= 0.95 && full >= 0.95 && \
	      fig["S7", "memory-left", "ours"] < 768,
	      sprintf("on one descriptor two threads are %.2f as fast as on two, %.2f with " \
		      "a window of 128 KiB, 0.19 in 2004; with looks back %.2f; with %d MiB " \
		      "of memory for 1 GiB %.2f", wide, narrow, back,
		      fig["S7", "memory-left", "ours"], full))
}

function claim_s8(text, n, list, i, c, missing, worst, d, ratio)
{
	text = "write(2) and read(2) of a byte take not one instruction more"
	n = split("write.smp read.smp write.up read.up", list, " ")
	for (i = 1; i <= n; i++) {
		c = list[i]
		if (!(("S8", c, "ours") in fig) || !(("S8", c, "pristine") in fig)) {
			missing = missing " " c
			continue
		}
		d = fig["S8", c, "ours"] - fig["S8", c, "pristine"]
		worst = worst == "" || d > worst ? d : worst
	}
	if (missing)
		return unclear("S8", text, "lacking" missing)
	ratio = fig["S8", "write.smp", "ours"] / fig["S8", "write.up", "ours"]
	claim("S8", text, worst <= 0.5,
	      sprintf("at most %+.1f; SMP takes %.2f of UP's instructions for a write, twice " \
		      "its time in 2003", worst, ratio))
}

END {
	print "Virtual disks, simulated time: a nanosecond is an instruction. idle % and k/MiB"
	print "(thousand instructions per MiB) are counted, interrupts and kernel threads"
	print "included, but not what null_blk itself executes; copying takes an instruction a"
	print "byte. spread %: how much earlier than the last thread the first one was done."
	for (i = 1; i <= scenarios; i++) {
		table(order[i])
		if (order[i] == "S1") claim_s1()
		if (order[i] == "S2") claim_s2()
		if (order[i] == "S3") claim_s3()
		if (order[i] == "S4") claim_s4()
		if (order[i] == "S5") claim_s5()
		if (order[i] == "S6") claim_s6()
		if (order[i] == "S7") claim_s7()
		if (order[i] == "S8") claim_s8()
	}
	exit bad || !scenarios
}
