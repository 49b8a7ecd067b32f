#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Assembles build/<base>/tree: the pristine sources with every topic of
# patches/series, or without any (PRISTINE=1, tree-pristine). Again and again:
# only what changed is written, so that make rebuilds only what depends on it.
set -eu
. "$(dirname "$0")/common.sh"

topics=$ROOT/harness/topics.sh
resolve
state=$TREE.state
stage=$state/stage
mkdir -p "$state"
alone "$state.lock"

# What a developer's tree holds apart from build products, one path a line.
list_ksrc()
{
	if [ -e "$SRC/.git" ]; then
		set -- git -C "$SRC" -c core.quotePath=false ls-files
		"$@" -d | sort >"$state/deleted"
		"$@" -co --exclude-standard | sort -u |
			comm -23 - "$state/deleted" >"$state/all.new"
		return
	fi
	(cd "$SRC" && find . \( -type f -o -type l \) ! -name '*.o' \
		! -name '*.o.d' ! -name '*.cmd' ! -name '*.a' ! -name '*.ko' \
		! -path './.config*' ! -path './include/generated/*' \
		! -path './include/config/*' \
		! -path './arch/*/include/generated/*' | cut -c3-) |
		sort >"$state/all.new"
}

# A developer's tree may have moved on: copy what is new there, leaving alone
# what the series itself writes, and remove what is gone.
follow_ksrc()
{
	list_ksrc
	comm -23 "$state/all.new" "$state/touched" |
		rsync -a --files-from=- "$SRC/" "$TREE/"
	if [ -f "$state/all" ]; then
		comm -23 "$state/all" "$state/all.new" |
			comm -23 - "$state/touched" |
			(cd "$TREE" && tr '\n' '\0' | xargs -0r rm -f --)
	fi
	mv "$state/all.new" "$state/all"
}

# put FROM FILE: FILE of the tree becomes FROM's, or goes when FROM lacks it.
put()
{
	if [ ! -e "$1/$2" ]; then
		rm -f "$TREE/$2"
	elif ! cmp -s "$1/$2" "$TREE/$2"; then
		mkdir -p "$TREE/$(dirname "$2")"
		cp "$1/$2" "$state/file.tmp"
		mv "$state/file.tmp" "$TREE/$2"
	fi
}

rm -rf "$stage"
mkdir "$stage"
: >"$state/now"
if [ -z "$PRISTINE" ]; then
	"$topics" touched "$PBASE" >"$state/now.tmp"
	mv "$state/now.tmp" "$state/now"
	while read -r f; do
		if [ -e "$SRC/$f" ]; then
			mkdir -p "$stage/$(dirname "$f")"
			cp "$SRC/$f" "$stage/$f"
		fi
	done <"$state/now"
	for topic in $("$topics" list "$PBASE"); do
		"$topics" apply "$PBASE" "$topic" "$stage"
	done
fi

touch "$state/touched"
if [ ! -d "$TREE" ]; then
	space "$ROOT/build" 4000
	rm -rf "$TREE.tmp"
	if [ -n "$KSRC" ]; then
		mkdir "$TREE.tmp"
	else
		step "copying Linux ${SRC##*-}" \
			cp -a --reflink=auto "$SRC" "$TREE.tmp"
	fi
	: >"$state/touched"
	mv "$TREE.tmp" "$TREE"
fi

# Until all is in place the record holds the files of before and of now.
sort -u "$state/touched" "$state/now" >"$state/both"
mv "$state/both" "$state/touched"
if [ -n "$KSRC" ]; then follow_ksrc; fi
while read -r f; do
	if grep -qxF "$f" "$state/now"; then
		put "$stage" "$f"
	else
		put "$SRC" "$f"
	fi
done <"$state/touched"
mv "$state/now" "$state/touched"
