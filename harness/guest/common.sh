# SPDX-License-Identifier: GPL-2.0
#
# Read by the guest's other scripts with ".": what they are asked for, what they
# tell the harness, and disks of null_blk.

failed=0

# option NAME: the words that the kernel's command line has for it, in a
# NAME=WORD+WORD or NAME=WORD,WORD
option()
{
	sed -n "s/.* $1=\([^ ]*\).*/\1/p" /proc/cmdline | tr '+,' '  '
}

# matches NAME GLOBS: for scripts that have "set -f"
matches()
{
	for glob in $2; do
		# shellcheck disable=SC2254 # a glob it is
		case $1 in $glob) return 0 ;; esac
	done
	return 1
}

say()
{
	echo "@@ say $*" >&3
}

fail()
{
	say "FAILED: $*"
	failed=1
}

# null_blk NAME ATTRIBUTE=VALUE...: power=1, the last one, has the disk appear.
null_blk()
{
	dir=/sys/kernel/config/nullb/$1
	mkdir "$dir"
	shift
	for set in "$@"; do
		echo "${set#*=}" >"$dir/${set%%=*}"
	done
}
