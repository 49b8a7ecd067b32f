#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The series, topic by topic, as patches/series lists it.
#
#   topics.sh list [base]                 topic names in commit order, of all
#                                         bases or those that one needs
#   topics.sh files <topic>               files of ours that the topic brings
#   topics.sh patch <base> <topic>        its patch file, if it has one
#   topics.sh message <topic>             commit message: subject, blank, body
#   topics.sh touched <base>              kernel paths created or edited
#   topics.sh apply <base> <topic> <dir>  put the topic into the tree <dir>,
#                                         which holds the topics before it
set -eu
LC_ALL=C
export LC_ALL

top=$(cd "$(dirname "$0")/.." && pwd)
series=$top/patches/series

die()
{
	echo "topics.sh: $*" >&2
	exit 1
}

# Prints one header field of one topic's stanza; fails for an unknown topic.
field()
{
	awk -v topic="$1" -v want="$2:" '
	function flush() { if (name == topic) { found = 1; print value } }
	/^Subject:/ { flush(); name = value = ""; head = 1 }
	/^$/ { head = 0 }
	head && $1 == "Topic:" { name = $2 }
	head && $1 == want { value = $0; sub(/^[A-Za-z]+:[ \t]*/, "", value) }
	END { flush(); exit !found }
	' "$series" || die "patches/series has no topic '$1'"
}

# A stanza's "Bases:" names those that need the topic; without it all do.
list()
{
	awk -v base="${1:-}" '
	function flush() {
		if (name != "" && (base == "" || bases == "" ||
				   index(bases " ", " " base " ")))
			print name
		name = bases = ""
	}
	/^Subject:/ { flush(); head = 1 }
	/^$/ { head = 0 }
	head && $1 == "Topic:" { name = $2 }
	head && $1 == "Bases:" { bases = $0; sub(/^Bases:/, "", bases) }
	END { flush() }
	' "$series"
}

message()
{
	field "$1" Subject
	awk -v topic="$1" '
	/^Subject:/ { name = ""; head = 1; next }
	head && $1 == "Topic:" { name = $2 }
	head && /^$/ { head = 0; blank = 1; next }
	head || name != topic { next }
	/^$/ { blank = 1; next }
	{ if (blank) print ""; blank = 0; print }
	' "$series"
}

# What git knows or would add: a build's leftovers stay out of the kernel.
# Outside of git (an unpacked archive) it is whatever is there.
expand()
{
	if [ "$(git -C "$top" rev-parse --show-toplevel 2>&1)" = "$top" ]; then
		git -C "$top" ls-files -co --exclude-standard -- "$1"
	else
		(cd "$top" && find "$1" -type f)
	fi | sort -u | while read -r f; do
		if [ -e "$top/$f" ]; then echo "$f"; fi
	done
}

files()
{
	paths=$(field "$1" Files)
	for path in $paths; do
		found=$(expand "$path")
		[ -n "$found" ] ||
			die "topic $1: patches/series names $path, which is not there"
		echo "$found"
	done
}

patch_of()
{
	field "$2" Topic >/dev/null
	for p in "patches/$1/$2.patch" "patches/$2.patch"; do
		if [ -f "$top/$p" ]; then
			echo "$p"
			return
		fi
	done
}

patched_paths()
{
	awk '($1 == "---" || $1 == "+++") && $2 ~ /^[ab]\// {
		sub(/^[ab]\//, "", $2); print $2
	     }
	     /^rename (from|to) / { print $3 }' "$1"
}

touched()
{
	paths=
	for topic in $(list "$1"); do
		more=$(files "$topic")
		p=$(patch_of "$1" "$topic")
		paths="$paths
$more"
		if [ -n "$p" ]; then
			paths="$paths
$(patched_paths "$top/$p")"
		fi
		if [ "$topic" = maintainers ]; then
			paths="$paths
MAINTAINERS"
		fi
	done
	echo "$paths" | sed '/^$/d' | sort -u
}

# Inserts our entries where the fewest titles around them are out of order:
# the kernel's own list is not perfectly sorted.
merge_maintainers()
{
	kernel=$1/MAINTAINERS
	[ -f "$kernel" ] || die "topic maintainers: no MAINTAINERS in $1"
	merged=$(mktemp)
	awk '
	function new_entry(line) {
		if (line ~ /^[^ \t]/ && gap) { gap = 0; return 1 }
		gap = line == ""
		return 0
	}
	FNR == 1 { file++; gap = file == 1; body = 0 }
	file == 1 && /^#/ { next }
	file == 1 {
		if (new_entry($0)) title[++ours] = $0
		if ($0 != "") text[ours] = text[ours] $0 "\n"
		next
	}
	# The list proper begins at the first title with a field below it.
	{ line[++n] = $0 }
	/^[A-Z]:\t/ && prev ~ /^[^ \t]/ && prev !~ /^[A-Z]:\t/ {
		at[++theirs] = n - 1; name[theirs] = prev
	}
	{ prev = $0 }
	END {
		if (!ours || !theirs) exit 1
		at[theirs + 1] = n + 1
		for (o = 1; o <= ours; o++) {
			best = score = 0; place = 1
			for (i = 1; i <= theirs && name[i] != "THE REST"; i++) {
				score += (name[i] "" < title[o] "") ? -1 : 1
				if (score < best) { best = score; place = i + 1 }
			}
			insert[at[place]] = insert[at[place]] text[o] "\n"
		}
		for (i = 1; i <= n; i++) printf "%s%s\n", insert[i], line[i]
	}
	' "$top/MAINTAINERS" "$kernel" >"$merged" || {
		rm -f "$merged"
		die "topic maintainers: no entries found in MAINTAINERS or $kernel"
	}
	cat "$merged" >"$kernel"
	rm -f "$merged"
}

# All or nothing: a patch that fails leaves the tree as it was.
apply_patch()
{
	base=$1 topic=$2 dir=$3 p=$4
	log=$(mktemp)
	set -- -d "$dir" -p1 -F0 -N -f --no-backup-if-mismatch -r -
	if patch "$@" --dry-run <"$top/$p" >"$log" 2>&1 &&
	   patch "$@" <"$top/$p" >"$log" 2>&1; then
		rm -f "$log"
		return
	fi
	echo "topics.sh: topic $topic, base $base: $p does not apply:" >&2
	awk '/^(checking|patching) file / { file = $3; next }
	     /succeeded at|hunks? (FAILED|ignored)/ { next }
	     /^Hunk / { print "  " file ": " $0; next }
	     { print "  " $0 }' "$log" >&2
	rm -f "$log"
	return 1
}

apply()
{
	[ -d "$3" ] || die "no kernel tree at $3"
	ours=$(files "$2")
	for f in $ours; do
		mkdir -p "$3/$(dirname "$f")"
		cp "$top/$f" "$3/$f"
	done
	p=$(patch_of "$1" "$2")
	if [ -n "$p" ]; then apply_patch "$1" "$2" "$3" "$p"; fi
	if [ "$2" = maintainers ]; then merge_maintainers "$3"; fi
}

usage()
{
	sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

[ -f "$series" ] || die "no patches/series beside harness/"
case "${1:-} $#" in
"list 1") list ;;
"list 2") list "$2" ;;
"files 2") files "$2" ;;
"patch 3") patch_of "$2" "$3" ;;
"message 2") message "$2" ;;
"touched 2") touched "$2" ;;
"apply 4") apply "$2" "$3" "$4" ;;
*) usage ;;
esac
