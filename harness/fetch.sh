#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# fetch.sh BASE: prints the folder of that base's pristine sources; downloads
# and unpacks Debian's package of them first, if they are not there yet.
# fetch.sh BASE PACKAGE: prints the file of another package that goes with it.
# fetch.sh non-free PACKAGE: prints the file of a package of this machine's suite
# that is not in main.
#
# A suite that this machine does not have is read with an apt configuration of
# its own. apt checks the signatures either way. What is unfinished has a name
# that nothing looks for, and gets its real name as the last thing.
set -eu
. "$(dirname "$0")/common.sh"

base=$1
dir=$CACHE/linux-$base
package=${2:-linux-source-$base}
wanted=${2:-}
apt=$CACHE/apt
component=main

case $base in
7.3) suites="experimental sid" ;;
6.12) suites= ;;
non-free)
	component=$base
	# shellcheck source=/dev/null
	suites=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	;;
*) die "BASE=$base: there are 7.3 and 6.12, or KSRC=dir for a tree of yours" ;;
esac

done_already()
{
	if [ -n "$wanted" ]; then
		if [ -n "$(deb)" ]; then
			deb
			exit
		fi
	elif [ -d "$dir" ]; then
		echo "$dir"
		exit
	fi
}

root()
{
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The user _apt cannot see into a home folder: download as who we are.
as_user()
{
	tool=$1
	shift
	"$tool" -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}

own()
{
	as_user "$@"
}

private()
{
	tool=$1
	shift
	as_user "$tool" -o Dir::Etc::SourceList="$apt/sources.list" \
		-o Dir::Etc::SourceParts=- -o Dir::State::Lists="$apt/lists" \
		-o Dir::Cache="$apt/cache" -o APT::Update::Error-Mode=any "$@"
}

sites()
{
	apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
		awk '!seen[$0]++'
}

update_own()
{
	say "apt-get update ..."
	root apt-get -qq update >&2 ||
		die "apt-get update failed: is there a network?"
}

# The first mirror of this machine that carries the suites.
update_private()
{
	for keyring in /usr/share/keyrings/debian-archive-keyring.*; do
		break
	done
	[ -f "$keyring" ] || die "no keyring: install debian-archive-keyring"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	if [ -z "$(sites)" ]; then update_own; fi
	for site in $(sites); do
		for suite in $suites; do
			echo "deb [signed-by=$keyring] $site $suite $component"
		done >"$apt/sources.list"
		say "reading the package lists of: $suites ..."
		if private apt-get -qq update >"$apt/log" 2>&1; then return; fi
	done
	cat "$apt/log" >&2
	die "no mirror of this machine serves $suites; if the network is down,
try again later; BASE=6.12 needs no other suite, KSRC=dir no package at all"
}

known()
{
	"$1" apt-cache policy "$package" |
		awk '$1 == "Candidate:" && $2 != "(none)" { ok = 1 }
		     END { exit !ok }'
}

# download HOW: leaves the package in $CACHE/deb.
download()
{
	space "$CACHE" 500
	rm -rf "$CACHE/deb.tmp"
	mkdir -p "$CACHE/deb" "$CACHE/deb.tmp"
	began=$(date +%s)
	say "downloading $package ..."
	(cd "$CACHE/deb.tmp" && "$1" apt-get -qq download "$package" >&2) ||
		return 1
	mv "$CACHE/deb.tmp/$package"_*.deb "$CACHE/deb/"
	say "downloading $package: $(($(date +%s) - began)) s"
}

get_package()
{
	if [ -z "$suites" ]; then
		if ! known own; then update_own; fi
		known own || die "$package is on no suite of this machine;
give a kernel tree of that version: KSRC=dir"
		if ! download own; then
			update_own
			download own || die "$package: the download failed"
		fi
		return
	fi
	update_private
	if ! known private; then
		[ -z "$wanted" ] || die "$package is not on $suites"
		say "*** $package is no longer on $suites: using 6.12 INSTEAD ***"
		exec 9>&-
		exec "$0" 6.12
	fi
	download private || die "$package: the download failed"
}

deb()
{
	find "$CACHE/deb" -name "${package}_*.deb" 2>/dev/null | sort | tail -n 1
}

done_already
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
done_already

if [ -z "$(deb)" ]; then get_package; fi
done_already
space "$CACHE" 2500
tmp=$CACHE/unpack.tmp
rm -rf "$tmp"
mkdir "$tmp"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
step "unpacking $package" sh -euc '
	dpkg-deb -x "$2" "$1/deb"
	mkdir "$1/linux"
	tar -C "$1/linux" --strip-components=1 -xJf "$1/deb/usr/src/$3.tar.xz"
' sh "$tmp" "$(deb)" "$package"
[ -f "$tmp/linux/Makefile" ] || die "$(deb) holds no kernel"
mv "$tmp/linux" "$dir"
echo "$dir"
