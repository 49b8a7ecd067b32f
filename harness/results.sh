#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make results: puts the figures of the last "make bench" of each base into
# README.md, between the two marks; nothing there is typed by hand.
set -eu
. "$(dirname "$0")/common.sh"

cd "$ROOT"
bench=build/bench
begin='<!-- make results -->' end='<!-- end of make results -->'
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT

# table BASE: 4 KiB from ordinary pages, and the larger synchronous ones.
table()
{
	echo
	echo "Linux $1: instructions per I/O, and for files those above the disk."
	echo
	echo "| workload | pristine | ours | ratio | above, pristine | above, ours |"
	echo "| --- | ---: | ---: | ---: | ---: | ---: |"
	awk -F'\t' '
	NR > 1 && $7 > 0 && (($5 == "pages" && $1 != "null" &&
	    ($4 == 4096 || $2 == "sync")) || $1 == "cached") {
		size = $4 < 1024 ? $4 " B" : $4 < 1048576 ? $4 / 1024 " KiB" : \
			$4 / 1048576 " MiB"
		printf "| %s %s %s %s | %s | %s | %s | %s | %s |\n", $1, $2, $3,
			size, $6, $7, $8, $9, $10
	}' "$bench/$1.tsv"
	for kind in goals filesystems counts; do
		if [ ! -s "$bench/$1.$kind" ]; then continue; fi
		echo
		case $kind in
		goals) echo "The goals, with the worst workload of each:" ;;
		filesystems) echo "What filesystems on get_block cost above the disk:" ;;
		counts) echo "What one I/O takes:" ;;
		esac
		echo
		sed 's/^/    /; s/ *$//' "$bench/$1.$kind"
	done
}

bases=
for base in 7.3 6.12; do
	if [ -s "$bench/$base.tsv" ]; then bases="$bases $base"; fi
done
[ -n "$bases" ] || die "no results in $bench: make bench first"
for mark in "$begin" "$end"; do
	grep -qxF "$mark" README.md || die "README.md lacks the line '$mark'"
done

for base in $bases; do table "$base"; done >"$tmp"
awk -v begin="$begin" -v end="$end" -v file="$tmp" '
$0 == end { off = 0 }
!off { print }
$0 == begin {
	off = 1
	while ((getline line <file) > 0) print line
	print ""
}' README.md >README.md.tmp
mv README.md.tmp README.md
say "README.md has the figures of:$bases"
