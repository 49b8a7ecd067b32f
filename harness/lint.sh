#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# lint.sh [check...]: all checks of the series and of the repository that need
# no running kernel, or those named (also: CHECKS="check..." make lint). One line
# a check, what is wrong below it, and a count at the end.
#
# Checks that compare ("nothing new") run the same tool on the pristine sources
# and on ours and take line numbers out of what it says.
#
# The checks that compile share build/<base>/prefix, one tree that goes from the
# whole series back to the pristine kernel, topic by topic: the whole series is
# what "make check" compiled, so ccache has it, and make compiles again what a
# topic changed. Only where that is a header as common as fs.h is it the whole
# kernel (see passing_header).
set -eu
. "$(dirname "$0")/common.sh"

# What is in $more takes long and has to be asked for: CHECKS=coccinelle make lint.
checks="series checkpatch whitespace shellcheck strays spelling engine-size
	balance maintainers kernel-doc rst man-page bare i386 prefix warnings"
more="coccinelle"
packages="shellcheck codespell sparse coccinelle python3-docutils python3-sphinx
	groff-base"

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

resolve
topics=$ROOT/harness/topics.sh
work=$ROOT/build/$NAME/lint
prefix=$ROOT/build/$NAME/prefix
cd "$ROOT"

# ---- helpers

tracked()
{
	git ls-files -- "$@" | while read -r f; do
		if [ -e "$f" ]; then echo "$f"; fi
	done
}

touched()
{
	cat "$work/touched"
}

# Objects of the touched C files that are part of the kernel.
objects()
{
	touched | grep -v -e ^tools/ -e ^samples/ | sed -n 's/\.c$/.o/p'
}

# Those whose source is in the shared tree as it is.
present()
{
	for o in $(objects); do
		if [ -e "$prefix/tree/${o%.o}.c" ]; then echo "$o"; fi
	done
}

# new_in BEFORE AFTER: lines of AFTER that BEFORE has not, or has less often.
new_in()
{
	sort "$1" >"$1.sorted"
	sort "$2" >"$2.sorted"
	comm -13 "$1.sorted" "$2.sorted"
}

# Messages as a comparison needs them: no line numbers, no carets, no source.
messages()
{
	grep -E '(warning|error|info):|: (WARNING|ERROR)' |
		sed -E -e 's/:[0-9]+(:[0-9]+)?:/:/g' -e "s,$prefix/tree/,,g" \
			-e 's,(\.\./)+tree/,,g' || :
}

# stage DIR TOPIC...: the touched files as they are after these topics.
stage()
{
	dir=$1
	shift
	rm -rf "$dir"
	mkdir -p "$dir"
	for f in $(touched); do
		if [ -e "$SRC/$f" ]; then
			mkdir -p "$dir/$(dirname "$f")"
			cp "$SRC/$f" "$dir/$f"
		fi
	done
	for topic in "$@"; do
		"$topics" apply "$PBASE" "$topic" "$dir" ||
			die "topic $topic: does not apply"
	done
}

# The kernel, compiled in build/<base>/prefix as build.sh does it, so that what
# "make check" compiled is a hit in the cache.
kernel()
{
	CCACHE_DIR=$CACHE/ccache CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 \
	CCACHE_DEPEND=1 \
	KBUILD_BUILD_TIMESTAMP="Thu Jan  1 00:00:00 UTC 1970" \
	KBUILD_BUILD_VERSION=1 \
	KBUILD_BUILD_USER=direct-io KBUILD_BUILD_HOST=direct-io \
	kmake -s -C "$prefix/tree" O="$prefix/${out:-ours}" CC="ccache gcc" \
		KCFLAGS=-fmacro-prefix-map=../tree/= -j"$JOBS" "$@"
}

configure()
{
	mkdir -p "$prefix/ours"
	grep ^CONFIG_ harness/config/base.config >"$prefix/asked.config"
	kernel KCONFIG_ALLCONFIG="$prefix/asked.config" allnoconfig >/dev/null
}

# Puts the staged files into the shared tree, only those that differ, and
# prints their names.
sync_tree()
{
	for f in $(touched); do
		if [ ! -e "$work/stage/$f" ]; then
			if [ -e "$prefix/tree/$f" ]; then echo "$f"; fi
			rm -f "$prefix/tree/$f"
		elif ! cmp -s "$work/stage/$f" "$prefix/tree/$f"; then
			mkdir -p "$prefix/tree/$(dirname "$f")"
			cp "$work/stage/$f" "$prefix/tree/$f"
			echo "$f"
		fi
	done
}

# compile SUFFIX: what W=1 and sparse say on the touched files.
compile()
{
	configure
	kernel prepare
	list=$(present)
	for o in $(objects); do rm -f "$prefix/ours/$o"; done
	# Sparse 0.6.4 lacks a word that newer kernels use, and make then goes on
	# without it. Nor does it know the length of a string for a constant,
	# and complains of every MODULE_LICENSE() there is.
	# shellcheck disable=SC2086 # names without blanks
	kernel -k W=1 C=2 CHECK="sparse -D__typeof_unqual__=__typeof__ \
		-D'__builtin_strlen(s)=(sizeof(s)-1)'" $list \
		>"$work/warnings.$1.log" 2>&1 ||
		echo "error: does not compile" >>"$work/warnings.$1.log"
	if grep 'sparse is not available' "$work/warnings.$1.log"; then
		return 1
	fi
	messages <"$work/warnings.$1.log" >"$work/warnings.$1"
}

# at TOPIC...: puts the shared tree into the state after these topics; the files
# that this changed are listed in $work/changed.
at()
{
	prefix_tree
	stage "$work/stage" "$@"
	sync_tree >"$work/changed"
}

# The shared tree, unpacked if it is not there. What an earlier series touched
# and this one does not goes back to what it was.
prefix_tree()
{
	if [ ! -d "$prefix/tree" ]; then
		space "$ROOT/build" 3000
		rm -rf "$prefix/tree.tmp"
		mkdir -p "$prefix"
		if [ -n "$KSRC" ]; then
			PRISTINE=1 harness/tree.sh
			cp -a --reflink=auto "$TREE-pristine" "$prefix/tree.tmp"
		else
			cp -a --reflink=auto "$SRC" "$prefix/tree.tmp"
		fi
		mv "$prefix/tree.tmp" "$prefix/tree"
	elif ! cmp -s "$prefix/touched" "$work/touched"; then
		cp "$work/touched" "$work/touched.now"
		cat "$prefix/touched" >>"$work/touched"
		stage "$work/stage"
		sync_tree >/dev/null
		mv "$work/touched.now" "$work/touched"
	fi
	cp "$work/touched" "$prefix/touched"
}

# ---- checks of the repository and of the series as text

check_series()
{
	# Whoever lints need not be anybody to git.
	git -c user.useConfigOnly=true var GIT_AUTHOR_IDENT >/dev/null 2>&1 || {
		GIT_AUTHOR_NAME=lint GIT_AUTHOR_EMAIL=lint@localhost.localdomain
		export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL
	}
	harness/series.sh "$work/mail"
}

# FILE_PATH_CHANGES asks whether MAINTAINERS needs updating; the series does it
# in a commit of its own, and the check "maintainers" sees to it.
# CamelCase is what some on-disk structures that we read have.
check_checkpatch()
{
	mkdir -p "$work/cwd"
	cd "$work/cwd"
	bad=0
	for mail in "$work"/mail/*.patch; do
		case $mail in */0000-*) continue ;; esac
		perl "$SRC/scripts/checkpatch.pl" --root="$SRC" --strict \
			--show-types --no-summary --quiet \
			--ignore FILE_PATH_CHANGES,CAMELCASE "$mail" >one 2>&1 || :
		if [ -s one ]; then
			echo "${mail##*/}:"
			cat one
			bad=1
		fi
	done
	return "$bad"
}

# In a patch the first column is not part of the file.
check_whitespace()
{
	bad=0
	blank='[ 	]'
	tracked ':!*.patch' ':!COPYING' >"$work/files"
	tracked '*.patch' >"$work/patches"
	xargs grep -nIE "$blank\$|^ +	" <"$work/files" && bad=1
	xargs grep -nIE "^\\+(.*$blank\$| +	)" <"$work/patches" && bad=1
	xargs grep -lI "$(printf '\r')" <"$work/files" && bad=1
	while read -r f; do
		if [ -s "$f" ] && [ -n "$(tail -c 1 "$f")" ]; then
			echo "$f: no newline at the end"
			bad=1
		fi
	done <"$work/files"
	return "$bad"
}

check_shellcheck()
{
	tracked | while read -r f; do
		case $(head -n 1 "$f" | tr -d '\0') in
		'#!'*/sh | '#!'*/bash | '#!'*/sh' '*) echo "$f" ;;
		esac
	done >"$work/scripts"
	# 2016: $ in single quotes, for awk, apt and sh -c; 2317: takes what is
	# called through a trap or "$@" for unreachable.
	xargs shellcheck -x -e SC2016,SC2317 --source-path=SCRIPTDIR \
		<"$work/scripts"
}

# What has no place in the repository.
check_strays()
{
	bad=0
	git ls-files -ci --exclude-standard >"$work/ignored"
	sed 's/$/: ignored, yet in git/' "$work/ignored"
	[ ! -s "$work/ignored" ] || bad=1

	empty=$(git hash-object -t tree /dev/null)
	git diff --numstat "$empty" HEAD | awk '$1 == "-" {
		print $3 ": binary"; bad = 1 } END { exit bad }' || bad=1
	tracked | grep -E '\.(o|ko|a|so|cmd|orig|rej|mod|deb)$|(^|/)\.checkpatch' &&
		bad=1

	# This machine: its package mirrors, its folders.
	{
		apt-get indextargets --format '$(SITE)' | sed 's,^[a-z]*://,,; s,/.*,,'
		echo "$ROOT"
		case $HOME in /?*/?*) echo "$HOME/" ;; esac
	} | sort -u | sed '/^$/d' >"$work/names"
	tracked | xargs grep -nIF -f "$work/names" && bad=1
	tracked | xargs grep -nIE '(^|[^[:alnum:]_./$}])/home/[[:alnum:]]' && bad=1

	# No address at all, save where the text of the licence has them.
	tracked ':!COPYING' |
		xargs grep -nIE '(https?|ftp)://[[:alnum:]]' && bad=1
	return "$bad"
}

check_spelling()
{
	tracked ':!COPYING' | xargs codespell -q 3 -L filp,inout,damon,inflight,struc
}

check_engine_size()
{
	lines=$(wc -l <fs/direct-io.c)
	echo "fs/direct-io.c has $lines lines; 1000 is the most"
	[ "$lines" -le 1000 ]
}

# What the engine adds against the code that it replaces: the driver, tests, tools
# and documentation aside, and the topic readahead, which replaces nothing.
check_balance()
{
	stage "$work/a"
	# shellcheck disable=SC2046 # names without blanks
	stage "$work/b" $("$topics" list "$PBASE" | grep -vx readahead)
	cd "$work"
	for side in a b; do
		(cd "$side" && rm -rf drivers/char/raw.c include/uapi/linux/raw.h \
			tools Documentation MAINTAINERS &&
			find . \( -name '*[-_]test.c' -o -name '*_kunit.c' \) \
				-exec rm -f {} +)
	done
	{ git diff --no-index --no-renames --numstat a b || :; } | awk '
	{ plus += $1; minus += $2 }
	END {
		print "kernel code: " plus + 0 " lines added, " minus + 0 " removed"
		exit plus >= minus
	}'
}

# The series' own files belong to a section of ours.
check_maintainers()
{
	sed -n 's/^F:[ 	]*//p' MAINTAINERS >"$work/patterns"
	bad=0
	for topic in $("$topics" list "$PBASE"); do "$topics" files "$topic"; done |
		sort -u >"$work/ours"
	while read -r f; do
		found=
		while read -r pattern; do
			# shellcheck disable=SC2254 # a pattern it is
			case $f in
			$pattern) found=1 ;;
			"$pattern"*) case $pattern in */) found=1 ;; esac ;;
			esac
		done <"$work/patterns"
		if [ -z "$found" ]; then
			echo "$f: under no F: line of MAINTAINERS"
			bad=1
		fi
	done <"$work/ours"
	while read -r pattern; do
		grep -qE "^${pattern%/}(/|\$)" "$work/ours" || {
			echo "MAINTAINERS: F: $pattern names nothing in the series"
			bad=1
		}
	done <"$work/patterns"
	return "$bad"
}

# kernel_doc TREE: every message on the touched C files and headers of TREE.
kernel_doc()
{
	cd "$SRC"
	for f in $(touched | grep '\.[ch]$' | grep -v ^tools/testing/); do
		if [ -e "$1/$f" ]; then
			scripts/kernel-doc -none -Wall "$1/$f" 2>&1 || :
		fi
	done | sed -E -e "s,$1/,,g" -e 's/:[0-9]+:?/:/g' -e '/^[0-9]+ warnings/d'
	cd "$ROOT"
}

check_kernel_doc()
{
	stage "$work/a"
	# shellcheck disable=SC2046 # names without blanks
	stage "$work/b" $("$topics" list "$PBASE")
	kernel_doc "$work/a" >"$work/kernel-doc.before"
	kernel_doc "$work/b" >"$work/kernel-doc.after"
	new_in "$work/kernel-doc.before" "$work/kernel-doc.after" |
		tee "$work/new"
	# What our own files export, the documentation tells.
	tracked '*.c' | while read -r f; do
		sed -nE 's/^EXPORT_SYMBOL[A-Z_]*\(([a-zA-Z0-9_]+).*/\1/p' "$f" |
			while read -r name; do
			grep -qE "^ \\* $name(\(\))? - " "$f" ||
				echo "$f: $name() is exported and has no kernel-doc"
		done
	done | tee "$work/undocumented"
	[ ! -s "$work/new" ] && [ ! -s "$work/undocumented" ]
}

# Sphinx on our files alone, with the kernel's own extension for kernel-doc:
# the whole of the kernel's documentation takes the better part of an hour.
check_rst()
{
	rst=$(tracked 'Documentation/*.rst')
	[ -n "$rst" ] || {
		echo "no Documentation/*.rst"
		return 1
	}
	# shellcheck disable=SC2046 # names without blanks
	stage "$work/b" $("$topics" list "$PBASE")
	doc=$work/rst
	rm -rf "$doc"
	mkdir -p "$doc/Documentation"
	printf 'Ours\n====\n\n.. toctree::\n\n' >"$doc/index.rst"
	for f in $rst; do
		mkdir -p "$doc/$(dirname "$f")"
		cp "$work/b/$f" "$doc/$f"
		echo "   ${f%.rst}" >>"$doc/index.rst"
	done
	cat >"$doc/conf.py" <<-END
	import os, sys
	tree = "$SRC/Documentation"
	sys.path.insert(0, tree + "/sphinx")
	extensions = ["kerneldoc"]
	kerneldoc_bin = "$SRC/scripts/kernel-doc"
	kerneldoc_srctree = "$work/b"
	primary_domain = "c"
	highlight_language = "none"
	c_id_attributes = ["__user", "__iomem", "__must_check", "__force"]
	END
	cd "$doc"
	srctree=$SRC sphinx-build -q -n -b html -d .doctrees . html 2>&1 |
		grep -vE 'reference target not found: [a-z_0-9]+( |$)' \
		>"$work/new" || :
	cat "$work/new"
	cd "$ROOT"
	bad=0
	# Documents that ours mention are there.
	# shellcheck disable=SC2046,SC2086 # names without blanks
	grep -ohE 'Documentation/[-_./a-zA-Z0-9]+\.(rst|txt)' $rst \
		$(tracked '*.c' '*.h' 'tools/*') | sort -u >"$work/mentioned"
	while read -r f; do
		[ -e "$SRC/$f" ] || [ -e "$work/b/$f" ] || {
			echo "$f: mentioned, and not there"
			bad=1
		}
	done <"$work/mentioned"
	for f in $rst; do
		name=$(basename "$f" .rst)
		grep -q "^   $name\$" "$work/b/$(dirname "$f")/index.rst" || {
			echo "$f: in no toctree"
			bad=1
		}
	done
	[ ! -s "$work/new" ] && [ "$bad" = 0 ]
}

check_man_page()
{
	: >"$work/new"
	for f in $(tracked '*.8'); do
		groff -man -Tutf8 -ww "$f" 2>>"$work/new" >/dev/null
	done
	cat "$work/new"
	[ ! -s "$work/new" ]
}

# ---- checks that compile, in this order

# A common header that a later topic changes again would have the whole kernel
# compiled for that. Without FULL=1 such a prefix has only what the series is
# about compiled, and vmlinux is linked where all headers are as they will be.
passing_header()
{
	for f in $(touched | grep ^include/); do
		if [ -e "$work/stage/$f" ] &&
		   ! cmp -s "$work/stage/$f" "$work/final/$f"; then
			return 0
		fi
	done
	return 1
}

# reaches N: the first N topics of the series.
reaches()
{
	"$topics" list "$PBASE" | head -n "$1"
}

check_prefix()
{
	# shellcheck disable=SC2046 # names without blanks
	stage "$work/final" $("$topics" list "$PBASE")
	n=$("$topics" list "$PBASE" | wc -l)
	last=
	while [ "$n" -gt 0 ]; do
		# shellcheck disable=SC2046 # names without blanks
		at $(reaches "$n")
		topic=$(reaches "$n" | tail -n 1)
		n=$((n - 1))
		if [ -n "$last" ] && ! grep -qv -e ^Documentation/ -e ^tools/ \
			-e ^MAINTAINERS "$work/changed"; then
			continue
		fi
		last=$topic
		build_prefix
	done
}

build_prefix()
{
	began=$(date +%s)
	configure
	what="vmlinux modules" list=$what
	if [ -z "${FULL:-}" ] && passing_header; then
		# F2FS, of which a comment changes, is not part of this kernel
		what="touched files" list=$(present | grep -v ^fs/f2fs/)
	fi
	# shellcheck disable=SC2086 # a list
	kernel $list >"$work/prefix.log" 2>&1 || {
		grep -E 'error|undefined' "$work/prefix.log" | head -n 20
		tail -n 5 "$work/prefix.log"
		die "the series up to topic $topic does not build;" \
			"all of it: ${work#"$ROOT/"}/prefix.log"
	}
	echo "$topic: $what: $(($(date +%s) - began)) s"
	if grep 'warning:' "$work/prefix.log"; then
		die "warnings in the series up to topic $topic"
	fi
}

check_warnings()
{
	# shellcheck disable=SC2046 # names without blanks
	at $("$topics" list "$PBASE")
	compile after
	at
	compile before
	if grep -w error: "$work/warnings.before"; then return 1; fi
	new_in "$work/warnings.before" "$work/warnings.after" >"$work/new"
	cat "$work/new"
	[ ! -s "$work/new" ]
}

# cocci DIR FILE...: what all of the kernel's semantic patches report on them.
cocci()
{
	dir=$1
	shift
	find "$SRC/scripts/coccinelle" -name '*.cocci' | sort |
		xargs -P "$JOBS" -I{} sh -c '
			script=$1 include=$2
			shift 2
			options=$(sed -n "s,^// *Options:,,p" "$script")
			out=$(spatch -D report --no-show-diff --very-quiet \
				--cocci-file "$script" $options -I "$include" \
				--timeout 60 "$@" 2>/dev/null) && echo "$out"
			exit 0' sh {} "$SRC/include" "$@" |
		sed -E -e "s,$dir/,,g" -e 's/:[0-9]+(-[0-9]+)?(:|-)?/:/g' \
			-e 's/ (on|line|lines|after) [0-9, ]+/ \1 N/g' | grep : || :
}

check_coccinelle()
{
	stage "$work/a"
	# shellcheck disable=SC2046 # names without blanks
	stage "$work/b" $("$topics" list "$PBASE")
	for side in a b; do
		list=
		for f in $(objects | sed 's/o$/c/'); do
			if [ -e "$work/$side/$f" ]; then
				list="$list $work/$side/$f"
			fi
		done
		# shellcheck disable=SC2086 # names without blanks
		cocci "$work/$side" $list >"$work/cocci.$side"
	done
	new_in "$work/cocci.a" "$work/cocci.b" >"$work/new"
	cat "$work/new"
	# Had it seen a fault, had there been one?
	cat >"$work/fault.c" <<-END
	int f(struct s *p)
	{
		kfree(p);
		return p->x;
	}
	END
	cocci "$work" "$work/fault.c" | grep -q 'reference preceded by free' || {
		echo "spatch does not find what was planted"
		return 1
	}
	[ ! -s "$work/new" ]
}

# other_kernel NAME MAKE-OPTION CONFIG...: the touched files in a configuration
# of another kind; those whose option is off there are left out.
other_kernel()
{
	out=$1 arch=$2
	shift 2
	# shellcheck disable=SC2046 # names without blanks
	at $("$topics" list "$PBASE")
	mkdir -p "$prefix/$out"
	printf '%s\n' "$@" >"$prefix/$out.config"
	kernel "$arch" KCONFIG_ALLCONFIG="$prefix/$out.config" allnoconfig \
		>/dev/null
	for option in "$@"; do
		grep -qx "$option" "$prefix/$out/.config" || {
			echo "no such configuration: $option"
			return 1
		}
	done
	kernel "$arch" prepare
	# shellcheck disable=SC2046 # names without blanks
	kernel "$arch" $(objects | grep -vE "${skip:-^none}") 2>&1
}

# No file system, no buffer heads.
check_bare()
{
	skip='^fs/(buffer|bmap-cache|.*/)' other_kernel bare ARCH=x86_64 \
		CONFIG_64BIT=y CONFIG_BLOCK=y CONFIG_RAW_DRIVER=y CONFIG_WERROR=y
}

# 64-bit divisions, long shifts and formats show on 32 bits. OCFS2 and F2FS do not
# compile without all that they depend on.
check_i386()
{
	skip='^fs/(ocfs2|f2fs)/' other_kernel i386 ARCH=i386 CONFIG_BLOCK=y \
		CONFIG_EXT2_FS=y CONFIG_VFAT_FS=y CONFIG_RAW_DRIVER=y \
		CONFIG_HIGHMEM4G=y CONFIG_WERROR=y
}

# ---- the run

if [ "${1:-}" = --one ]; then
	"check_$(echo "$2" | tr - _)"
	exit
fi

# shellcheck disable=SC2086 # lists
[ $# != 0 ] || set -- ${CHECKS:-$checks}
for check in "$@"; do
	echo "$checks $more" | grep -qw -e "$check" ||
		die "no check '$check'; there are: $checks $more"
done

harness/setup.sh
# shellcheck disable=SC2086 # a list
harness/setup.sh $packages
mkdir -p "$work"
"$topics" touched "$PBASE" >"$work/touched"

passed=0 failed=0
for check in "$@"; do
	began=$(date +%s)
	if "$0" --one "$check" >"$work/$check.out" 2>&1; then
		passed=$((passed + 1)) word=ok
	else
		failed=$((failed + 1)) word="NOT OK"
	fi
	echo "$word $check ($(($(date +%s) - began)) s)"
	sed 's/^/    /' "$work/$check.out"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
