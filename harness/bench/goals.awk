# SPDX-License-Identifier: GPL-2.0
#
# awk -f goals.awk TSV GOALS: one line a goal, the worst workload in it, and
# whether the goal is met. See the file goals for the measures.
FNR == 1 { file++ }

file == 1 && FNR > 1 {
	k = $1 "." $2 "." $3 "." $4 "." $5
	rows[++n] = k
	rest[k] = "." $2 "." $3 "." $4 "." $5
	old[k] = $6
	new[k] = $7
	above_old[k] = $9
	above[k] = $10
	next
}

file == 1 || /^#/ || NF < 3 { next }

# What the goal asks of workload k; skipped where it could not be measured.
function value(k, measure, limit)
{
	if (new[k] == "-" || new[k] == 0)
		return ""
	if (measure == "above")
		return above[k] == "-" ? "" : above[k] + 0
	if (measure == "share")
		return above_old[k] + 0 > 0 && above[k] != "-" ? \
			above[k] / above_old[k] : ""
	if (measure == "below") {
		other = limit rest[k]
		return new[other] + 0 == 0 ? "" : new[k] - new[other]
	}
	if (old[k] == "-")
		return ""
	return measure == "more" ? new[k] - old[k] : new[k] / old[k]
}

{
	count = met = sum = 0
	worst = ""
	limit = $2 == "below" ? 0 : $3 + 0
	for (i = 1; i <= n; i++) {
		if (rows[i] !~ $1 || (v = value(rows[i], $2, $3)) == "")
			continue
		count++
		# A row of many thousands: the last digit is noise.
		met += v <= limit + ($2 ~ /^(ratio|share)$/ ? 0.0005 : 0.5)
		sum += $2 == "mean" ? log(v) : 0
		if (worst == "" || v > worst) {
			worst = v
			which = rows[i]
		}
	}
	form = "%-42s %-5s %-6s %10s  %3d of %3d  %s\n"
	digits = $2 ~ /^(ratio|mean|share)$/ ? "%.3f" : "%.0f"
	if (!count) {
		printf form, $1, $2, $3, "-", 0, 0, "not measured"
	} else if ($2 == "mean") {
		mean = exp(sum / count)
		ok = mean <= limit + 0.0005
		printf form, $1, $2, $3, sprintf(digits, mean), ok * count, count,
			ok ? "met" : "NOT MET"
	} else {
		printf form, $1, $2, $3, sprintf(digits, worst), met, count,
			met == count ? "met" : "NOT MET: " which
	}
}
