#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Tells, topic by topic, how the series fits the kernel tree KSRC (or the base):
# applies, applies with fuzz, or does not apply, with the hunks that fail. Works
# on a copy of the touched files; a topic that fails does not stop the others,
# which get to see those of its hunks that did go in.
#
# Exit status: 0 all topics apply (with or without fuzz), 1 some do not.
set -eu
. "$(dirname "$0")/common.sh"

resolve
topics=$ROOT/harness/topics.sh
touched=$("$topics" touched "$PBASE")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
tree=$tmp/tree
mkdir "$tree"

for f in $touched; do
	if [ -e "$SRC/$f" ]; then
		mkdir -p "$tree/$(dirname "$f")"
		cp "$SRC/$f" "$tree/$f"
	fi
done

# What we replace whole applies to anything; say when it was changed there
# since the base that it was written against.
reference=$CACHE/linux-$PBASE
replaced()
{
	for f in $("$topics" files "$1"); do
		if [ -e "$SRC/$f" ] && [ -e "$reference/$f" ] &&
		   ! cmp -s "$SRC/$f" "$reference/$f"; then
			echo "    $f: we replace it whole, and it is not as in" \
				"$PBASE: see what changed there"
		elif [ -e "$SRC/$f" ] && [ -d "$reference" ] &&
		     [ ! -e "$reference/$f" ]; then
			echo "    $f: we replace it whole, and $PBASE has no such file"
		fi
	done
}

# try_patch FILE FUZZ [option...]: 0 when every hunk goes in.
try_patch()
{
	file=$1 fuzz=$2
	shift 2
	patch -d "$tree" -p1 -F"$fuzz" -N -f --no-backup-if-mismatch \
		-r "$tmp/rejects" "$@" <"$ROOT/$file" >"$tmp/log" 2>&1
}

hunks()
{
	awk -v want="$1" '
	/^(checking|patching) file / { file = $3; next }
	/^Hunk / && $0 ~ want { print "    " file ": " $0; next }
	/^Hunk / || / hunks? (FAILED|ignored)/ || /^[-+| ]/ { next }
	/^Reversed/ { print "    " $0 }' "$tmp/log"
}

# Files that the patch edits and the tree lacks.
lacking()
{
	sed -n 's,^--- a/\([^[:space:]]*\).*,\1,p' "$ROOT/$1" |
		while read -r f; do
			[ -e "$tree/$f" ] ||
				echo "    $f: not in this tree (moved or removed?)"
		done
}

failed=0
echo "Linux $(kmake -s -C "$SRC" kernelversion) in $SRC, the patches for $PBASE:"
for topic in $("$topics" list "$PBASE"); do
	ours=$("$topics" files "$topic")
	for f in $ours; do
		mkdir -p "$tree/$(dirname "$f")"
		cp "$ROOT/$f" "$tree/$f"
	done
	file=$("$topics" patch "$PBASE" "$topic")
	rm -f "$tmp/rejects"
	if [ "$topic" = maintainers ]; then
		if "$topics" apply "$PBASE" maintainers "$tree"; then
			echo "$topic: applies"
		else
			failed=$((failed + 1))
			echo "$topic: DOES NOT APPLY"
		fi
	elif [ -z "$file" ] || try_patch "$file" 0 --dry-run; then
		if [ -n "$file" ]; then try_patch "$file" 0; fi
		echo "$topic: applies"
	elif try_patch "$file" 2 --dry-run; then
		try_patch "$file" 2
		echo "$topic: applies with fuzz ($file)"
		hunks "with fuzz"
	else
		failed=$((failed + 1))
		echo "$topic: DOES NOT APPLY ($file)"
		rm -f "$tmp/rejects"
		try_patch "$file" 2 || :
		lacking "$file"
		hunks "FAILED|with fuzz"
		if [ -s "$tmp/rejects" ]; then
			sed 's/^/    | /' "$tmp/rejects"
		fi
	fi
	replaced "$topic"
done

[ "$failed" = 0 ] || {
	echo "$failed of the topics do not apply"
	exit 1
}
echo "all topics apply"
