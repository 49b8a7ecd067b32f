# SPDX-License-Identifier: GPL-2.0
#
# Read by the other scripts with ".": places, the variables of the Makefile,
# and how progress and errors are told. Everything goes to standard error;
# standard output is kept for results.

ROOT=$(cd "$(dirname "$0")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/direct-bio
: "${BASE:=7.3}" "${KSRC:=}" "${LLVM:=}" "${DEBUG:=}" "${PRISTINE:=}"
: "${BENCH:=}" "${UP:=}" "${LOCKSTAT:=}"
: "${JOBS:=$(nproc)}" "${DIO_START:=$(date +%s)}"
export BASE KSRC LLVM DEBUG PRISTINE BENCH UP LOCKSTAT JOBS DIO_START
LC_ALL=C
export LC_ALL

# The kernel's Makefiles shall not see the variables of ours.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
kmake()
{
	env -u BASE -u KSRC -u LLVM -u DEBUG -u PRISTINE -u BENCH -u UP \
		-u LOCKSTAT make "$@"
}

# Sets cc, the compiler for the kernel. Of several clangs the newest: what is
# just "clang" may be too old. LLVM becomes what the kernel's Makefile calls it.
compiler()
{
	cc=gcc
	if [ "$LLVM" = 1 ]; then
		newest=$(find /usr/bin -name 'clang-[0-9]*' | sed -n 's/.*clang\(-[0-9]*\)$/\1/p' |
			sort -t- -k2n | tail -n 1)
		LLVM=${newest:-1}
	fi
	case $LLVM in
	-*) cc=clang$LLVM ;;
	?*) cc=clang ;;
	esac
}

say()
{
	printf '[%4d s] %s\n' "$(($(date +%s) - DIO_START))" "$*" >&2
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# step WHAT COMMAND...: a line before, a line with the duration after. Not for
# shell functions: "set -e" does not hold inside them here.
step()
{
	what=$1 began=$(date +%s)
	shift
	say "$what ..."
	"$@" || die "$what: failed (status $?)"
	say "$what: $(($(date +%s) - began)) s"
}

# space DIR MIB: DIR is on a disk with that much room, or a clear end.
space()
{
	mkdir -p "$1"
	free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1024) }')
	[ "$free" -ge "$2" ] ||
		die "$1 has $free MiB free and $2 MiB are needed"
}

# Tells which sources these variables mean:
#   SRC    the pristine sources, never written to
#   PBASE  the base whose patches fit: 7.3 or 6.12
#   NAME   the folder under build/ that belongs to them
#   TREE   the assembled tree
#   OUT    where this kernel is built
resolve()
{
	if [ -n "$KSRC" ]; then
		SRC=$(cd "$KSRC" && pwd -P) || die "KSRC=$KSRC: no such folder"
		[ -f "$SRC/Kbuild" ] || die "KSRC=$KSRC: not a kernel tree"
		case $(awk '$2 == "=" && /^(VERSION|PATCHLEVEL) / { printf "%s ", $3 }' \
			"$SRC/Makefile") in
		"6 12 ") PBASE=6.12 ;;
		*) PBASE=7.3 ;;
		esac
		NAME=${SRC##*/}-$(printf %s "$SRC" | cksum | cut -d' ' -f1)
	else
		SRC=$("$ROOT/harness/fetch.sh" "$BASE")
		PBASE=${SRC##*/linux-}
		BASE=$PBASE
		NAME=$PBASE
	fi
	flavour=ours
	if [ -n "$PRISTINE" ]; then flavour=pristine; fi
	if [ -n "$DEBUG" ]; then flavour=${flavour#ours}debug; fi
	if [ -n "$BENCH" ]; then flavour=$flavour-bench; fi
	if [ -n "$UP" ]; then flavour=$flavour-up; fi
	if [ -n "$LOCKSTAT" ]; then flavour=$flavour-lockstat; fi
	if [ -n "$LLVM" ]; then flavour=$flavour-llvm; fi
	TREE=$ROOT/build/$NAME/tree
	if [ -n "$PRISTINE" ]; then TREE=$TREE-pristine; fi
	OUT=$ROOT/build/$NAME/$flavour
}

# side NAME: has the variables mean one of the kernels that are compared: pristine
# or ours, with -up or -locks behind it where it is built so.
side()
{
	PRISTINE='' UP='' LOCKSTAT=''
	case $1 in pristine*) PRISTINE=1 ;; esac
	case $1 in *-up) UP=1 ;; esac
	case $1 in *-locks) LOCKSTAT=1 ;; esac
}

# pair SUFFIX [ARGUMENT...]: has the script's measure() boot the pristine kernel and
# ours at a time, since counts do not depend on what else the machine does. Who
# failed is in bad.
pair()
{
	suffix=$1
	shift
	measure "pristine$suffix" "$@" & first=$!
	measure "ours$suffix" "$@" & second=$!
	wait $first || bad="$bad pristine$suffix"
	wait $second || bad="$bad ours$suffix"
}

# measured DIR: how long that took since began, or the end of it all.
measured()
{
	say "measuring: $(($(date +%s) - began)) s"
	[ -z "$bad" ] || {
		tail -n 20 "$1"/*.log >&2
		die "no result, or not all of it, from:$bad"
	}
}

# Builds the profiler for QEMU, whose name is in plugin, if it is not there.
build_plugin()
{
	plugin=$ROOT/build/insnprof.so
	source=$ROOT/harness/bench/insnprof.c
	if [ -n "$(find "$source" -newer "$plugin" 2>&1)" ]; then
		gcc -O2 -Wall -Wextra -shared -fPIC -o "$plugin.$$" "$source"
		mv "$plugin.$$" "$plugin"
	fi
}

# alone FILE: waits until no other one of us holds it.
alone()
{
	exec 8>"$1"
	flock -n 8 || {
		say "waiting for another build in ${1%.lock}"
		flock 8
	}
}
