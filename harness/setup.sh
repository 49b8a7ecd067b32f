#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# setup.sh [package...]: installs the Debian packages that are missing, by
# default those for building, booting and testing.
set -eu
. "$(dirname "$0")/common.sh"

build="gcc libc6-dev make flex bison bc libelf-dev patch git ccache cpio kmod
	xz-utils rsync perl liburing-dev libaio-dev gcc-multilib"
guest="qemu-system-x86 busybox-static e2fsprogs fio dmsetup strace dosfstools"
if [ $# = 0 ]; then
	# shellcheck disable=SC2086 # a list
	set -- $build $guest
	# File systems for the tests: a test skips what Debian does not have.
	maybe="exfatprogs udftools jfsutils nilfs-tools ntfs-3g ocfs2-tools
		reiserfsprogs"
else
	maybe=
fi

installed()
{
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null |
		awk '$1 == "ii" { print $2 }'
}

missing()
{
	have=" $(installed "$@" | tr '\n' ' ')"
	for p in "$@"; do
		case $have in
		*" $p "*) ;;
		*) echo "$p" ;;
		esac
	done
}

candidates()
{
	apt-cache policy "$@" | awk '
	/^[^ ]/ { sub(":$", ""); name = $0 }
	$1 == "Candidate:" && $2 != "(none)" { print name }'
}

root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "neither root nor sudo: cannot run $*"
	fi
}

# The kernel wants a clang that is not old: the newest that Debian has here.
if [ -n "$LLVM" ] && [ -n "$maybe" ]; then
	# shellcheck disable=SC2046 # a list
	n=$(candidates $(apt-cache pkgnames clang- | grep -E '^clang-[0-9]+$') |
		sed 's/clang//' | sort -t- -k2n | tail -n 1)
	set -- "$@" "clang$n" "lld$n" "llvm$n"
fi

want=$(missing "$@")
# shellcheck disable=SC2086 # a list
also=$([ -z "$maybe" ] || missing $maybe)
# What Debian did not have the last time is not asked for again.
nowhere=$CACHE/not-in-debian
if [ -n "$also" ] && [ "$also" = "$(cat "$nowhere" 2>/dev/null)" ]; then
	also=
elif [ -n "$also" ]; then
	# shellcheck disable=SC2086 # a list
	also=$(candidates $also)
fi
if [ -n "$want$also" ]; then
	list="$want $also"
	# shellcheck disable=SC2086 # a list
	if [ "$(candidates $want | wc -l)" -lt "$(echo $want | wc -w)" ]; then
		say "apt-get update: not all of these are known: $list"
		root apt-get -qq update >&2
		# shellcheck disable=SC2046,SC2086 # a list
		if [ -n "$maybe" ]; then
			also=$(candidates $(missing $maybe))
			list="$want $also"
		fi
	fi
	say "installing $list"
	# shellcheck disable=SC2086 # a list
	root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		--no-install-recommends $list >"${TMPDIR:-/tmp}/direct-bio-apt.log" 2>&1 </dev/null || {
		cat "${TMPDIR:-/tmp}/direct-bio-apt.log" >&2
		die "apt-get could not install $list"
	}
fi
if [ -n "$maybe" ]; then
	mkdir -p "$CACHE"
	# shellcheck disable=SC2086 # a list
	missing $maybe >"$nowhere"
fi

# What makes and checks HFS and HFS+ is not in main: unpack it for the guest. If
# it cannot be had, that is asked for again tomorrow.
hfs=$CACHE/hfsprogs
if [ -n "$maybe" ] && [ ! -d "$hfs" ] &&
   [ -z "$(find "$hfs.none" -mtime -1 2>/dev/null)" ]; then
	rm -rf "$hfs.tmp"
	if deb=$("$ROOT/harness/fetch.sh" non-free hfsprogs) &&
	   dpkg-deb -x "$deb" "$hfs.tmp"; then
		mv "$hfs.tmp" "$hfs"
	else
		say "no hfsprogs: HFS and HFS+ will not be tested"
		touch "$hfs.none"
	fi
fi
