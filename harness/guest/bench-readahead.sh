#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Reads a null_blk disk in the ways that rabench knows, and says how long each
# took, a line "@@ row DISK PATTERN NANOSECONDS REQUESTS READ USED". DISK is
# 100us or 1ms, the time that a request takes, or 200mb, 100 us and at most
# 200 MiB/s. The kernel's command line may have disks=DISK+DISK,
# patterns=GLOB+GLOB and seed=NUMBER.

option()
{
	sed -n "s/.* $1=\([^ ]*\).*/\1/p" /proc/cmdline | tr '+' ' '
}

disks=$(option disks)
patterns=$(option patterns)
seed=$(option seed)
: "${disks:=100us 1ms 200mb}" "${patterns:=*}" "${seed:=0}"
set -f

say()
{
	echo "@@ say $*" >&3
}

wanted()
{
	for glob in $patterns; do
		# shellcheck disable=SC2254 # a glob it is
		case $1 in $glob) return 0 ;; esac
	done
	return 1
}

# disk NAME NANOSECONDS MIB-A-SECOND
disk()
{
	dir=/sys/kernel/config/nullb/$1
	mkdir "$dir"
	for set in irqmode=2 completion_nsec="$2" mbps="$3" size=1024 \
		hw_queue_depth=64 submit_queues=1; do
		echo "${set#*=}" >"$dir/${set%=*}"
	done
	rabench tick
	echo 1 >"$dir/power"
}

# High-resolution timers start late; till then all waits for the next tick.
sleep 5
disk 100us 100000 0
disk 1ms 1000000 0
disk 200mb 100000 200

status=0
for disk in $disks; do
	say "$disk"
	for pattern in $(rabench list); do
		if ! wanted "$pattern"; then continue; fi
		echo 3 >/proc/sys/vm/drop_caches
		if said=$(rabench "/dev/$disk" "$pattern" "$seed" 2>&1); then
			echo "@@ row $disk $pattern $said" >&3
		else
			say "FAILED: $disk $pattern: $said"
			status=1
		fi
	done
done

# Tests that ran when the kernel booted
results=/sys/kernel/debug/kunit/readahead-window/results
if [ -e "$results" ] && ! grep -q '^ok ' "$results"; then
	say "FAILED: $(grep '^ *not ok' "$results" | tr '\n' ' ')"
	status=1
fi
exit $status
