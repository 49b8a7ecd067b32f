#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check.sh BASE:DEBUG...: builds each of these kernels, runs all tests on it and
# has prove sum up. What a run leaves is in build/check/<run>: tap/, the
# kernel's log, what the guest sent. With PRISTINE=1 the kernels are the
# unpatched ones, and harness/base-expect.txt tells what they cannot do.
set -eu
. "$(dirname "$0")/common.sh"

: "${TESTS:=}"
all=$ROOT/build/check

# Lines of a kernel log that no test may cause.
splats='WARNING: |BUG: |Oops|KASAN|UBSAN:|kmemleak: [1-9]|ODEBUG:|rcu.*detected.*stall|'
splats=$splats'INFO: task .* blocked|general protection|refcount_t:|'
splats=$splats'list_(add|del) corruption|Bad page|Kernel panic|soft lockup|'
splats=$splats'possible (circular|recursive|irq lock inversion)|'
splats=$splats'inconsistent lock state|suspicious RCU|unable to handle|'
splats=$splats'sleeping function called'

# The lines of the guest that follow "@@ tap NAME" become tap/NAME.tap.
split_taps()
{
	awk -v dir="$1/tap/" '
	/^@@ tap / { file = dir $3 ".tap"; printf "" >>file; next }
	/^@@ / { file = ""; next }
	file && NF { print >>file }' "$1/out"
}

# expected RUN-DIR: failures that harness/base-expect.txt explains become TODO.
expected()
{
	for file in "$1"/tap/*.tap; do
		test=${file##*/}
		awk -v test="${test%.tap}" '
		FNR == NR {
			if ($1 == test && $2 != "-") {
				pattern[++n] = $2; why = $0
				sub(/^[^ \t]+[ \t]+[^ \t]+[ \t]+/, "", why)
				reason[n] = why
			}
			next
		}
		/^not ok / && !/# (TODO|SKIP)/ {
			for (i = 1; i <= n; i++)
				if ($0 ~ pattern[i]) {
					$0 = $0 " # TODO " reason[i]
					break
				}
		}
		{ print }' "$ROOT/harness/base-expect.txt" "$file" >"$file.tmp"
		mv "$file.tmp" "$file"
	done
}

# expected_programs RUN-DIR: a program whose failures are all expected ends with
# status 1 all the same.
expected_programs()
{
	sed -n 's/^not ok [0-9]* - \(.*\): status 1$/\1/p' "$1/tap/programs.tap" |
	while read -r test; do
		grep '^not ok' "$1/tap/$test.tap" >"$1/failed" || continue
		if grep -qv '# TODO' "$1/failed"; then continue; fi
		sed -i "s/^not ok .* - $test: status 1\$/& # TODO failed what is expected/" \
			"$1/tap/programs.tap"
	done
}

# harness_tap STATUS DIR: how the guest ended and what its kernel logged.
harness_tap()
{
	echo 1..2
	if [ "$1" = 0 ]; then
		echo "ok 1 - the guest ran to its end"
	else
		echo "not ok 1 - the guest ran to its end: status $1"
		tail -n 40 "$2/console.log" | sed 's/^/# /'
	fi
	if grep -ahE "$splats" "$2"/console.log "$2"/powercut/*/console.log \
		>"$2/splats" 2>/dev/null; then
		echo "not ok 2 - kernel log clean"
		sed 's/^/# /' "$2/splats"
	else
		echo "ok 2 - kernel log clean"
	fi
}

# One run; only a build that fails keeps it from having results.
check_one()
{
	began=$(date +%s)
	"$ROOT/harness/build.sh" || return 1
	resolve
	limit=400
	if [ -n "$DEBUG" ]; then limit=1800; fi
	skip=
	if [ -n "$PRISTINE" ]; then
		skip=$(awk '$2 == "-" { print $1 }' "$ROOT/harness/base-expect.txt")
	fi
	list=$(echo "$TESTS" | tr -s ' ' ',')
	say "$run: testing ..."
	BLOCKS="512 4096" MEM=4096 LIMIT=$((limit * 4)) \
	ARGS="limit=$limit${list:+ tests=$list}${skip:+ skip=$(echo "$skip" | tr -s ' \n' ',')}" \
		"$ROOT/harness/boot.sh" check "$dir" && status=0 || status=$?
	split_taps "$dir"
	# Durability is the same with debugging on, only slower to show.
	if [ -z "$TESTS$DEBUG" ]; then
		say "$run: power cut ..."
		"$ROOT/harness/powercut.sh" "$dir/powercut" >"$dir/tap/powercut.tap"
	fi
	harness_tap "$status" "$dir" >"$dir/tap/harness.tap"
	if [ -n "$PRISTINE" ]; then
		expected "$dir"
		expected_programs "$dir"
	fi
	say "$run: $(($(date +%s) - began)) s"
}

dirs=
for one in "$@"; do
	BASE=${one%%:*} DEBUG=${one#*:}
	run=$BASE
	if [ -n "$KSRC" ]; then run=$(basename "$KSRC"); fi
	run=$run${PRISTINE:+-pristine}${DEBUG:+-debug}${LLVM:+-llvm}
	dir=$all/$run
	dirs="$dirs build/check/$run/tap"
	rm -rf "$dir"
	mkdir -p "$dir/tap"
	printf '1..1\nok 1 - kernel and programs build\n' >"$dir/tap/build.tap"
	check_one ||
		printf '1..1\nnot ok 1 - kernel and programs build\n' >"$dir/tap/build.tap"
done

cd "$ROOT"
# shellcheck disable=SC2086 # a list
grep -rE '^not ok ' $dirs | grep -v '# TODO' >&2 || :
say "all runs: the summary"
# shellcheck disable=SC2046,SC2086 # a list
exec prove --failures --exec cat $(find $dirs -name '*.tap' | sort)
