#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Builds the kernel that the variables ask for in build/<base>/<flavour>, and
# the programs that run on it (selftests, raw) in build/<base>/user.
set -eu
. "$(dirname "$0")/common.sh"

"$ROOT/harness/setup.sh"
"$ROOT/harness/tree.sh"
resolve

# The same compilation in another clone of the repository is a hit: paths
# below its root count as relative ones, and the folder as nothing at all. A
# miss costs no more than the compiler: what a file includes is what gcc says.
CCACHE_DIR=$CACHE/ccache CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
CCACHE_DEPEND=1
export CCACHE_DIR CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_DEPEND
KBUILD_BUILD_TIMESTAMP="Thu Jan  1 00:00:00 UTC 1970" KBUILD_BUILD_VERSION=1
KBUILD_BUILD_USER=direct-io KBUILD_BUILD_HOST=direct-io
export KBUILD_BUILD_TIMESTAMP KBUILD_BUILD_VERSION
export KBUILD_BUILD_USER KBUILD_BUILD_HOST

compiler
kernel()
{
	kmake -s -C "$TREE" O="$OUT" ${LLVM:+LLVM="$LLVM"} CC="ccache $cc" \
		KCFLAGS=-fmacro-prefix-map=../"${TREE##*/}"/= -j"$JOBS" "$@"
}

# Names each option that was asked for, exists and is not in the result.
check_config()
{
	find "$TREE" -name 'Kconfig*' -type f -exec sed -n \
		's/^[[:space:]]*\(menu\)\{0,1\}config[[:space:]]\{1,\}//p' \
		{} + | sort -u >"$OUT/options"
	awk -v config="$OUT/.config" -v options="$OUT/options" '
	BEGIN {
		while ((getline line <config) > 0) have[line] = 1
		while ((getline line <options) > 0) exists["CONFIG_" line] = 1
	}
	!/^CONFIG_/ { next }
	{ name = $0; sub(/=.*/, "", name) }
	exists[name] && !have[$0] &&
	!(/=n$/ && !((name "=y") in have) && !((name "=m") in have)) {
		print "  " $0; bad = 1
	}
	END { exit bad }' "$OUT/asked.config" >"$OUT/lacking" || {
		cat "$OUT/lacking" >&2
		die "$OUT/.config lacks the options above"
	}
}

configure()
{
	mkdir -p "$OUT"
	set -- "$ROOT/harness/config/base.config"
	if [ -n "$DEBUG" ]; then
		set -- "$@" "$ROOT/harness/config/debug.config"
	fi
	if [ -n "$BENCH" ]; then
		set -- "$@" "$ROOT/harness/config/bench.config"
	fi
	if [ -n "$UP" ]; then
		set -- "$@" "$ROOT/harness/config/up.config"
	fi
	if [ -n "$LOCKSTAT" ]; then
		set -- "$@" "$ROOT/harness/config/lockstat.config"
	fi
	# The last word on an option counts.
	cat "$@" | tac | awk -F= '/^CONFIG_/ && !seen[$1]++' | tac \
		>"$OUT/asked.config"
	if cmp -s "$OUT/asked.config" "$OUT/configured" &&
	   [ -z "$(find "$TREE" -name 'Kconfig*' -newer "$OUT/configured")" ]
	then
		return
	fi
	kernel KCONFIG_ALLCONFIG="$OUT/asked.config" allnoconfig >"$OUT/log" 2>&1 || {
		cat "$OUT/log" >&2
		die "no configuration"
	}
	check_config
	cp "$OUT/asked.config" "$OUT/configured"
}

space "$ROOT/build" 1500
alone "$OUT.lock"
configure
what="building Linux $(kmake -s -C "$TREE" kernelversion) in ${OUT#"$ROOT/"}"
say "$what ..."
began=$(date +%s)
kernel bzImage modules
rm -rf "$OUT/mods"
kernel INSTALL_MOD_PATH="$OUT/mods" modules_install
say "$what: $(($(date +%s) - began)) s"

# The programs come from our tree, also when the kernel is the pristine one.
exec 8>&-
if [ -n "$PRISTINE" ]; then
	PRISTINE='' "$ROOT/harness/tree.sh"
fi
exec "$ROOT/harness/user.sh"
