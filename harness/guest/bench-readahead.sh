#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Reads a null_blk disk in the ways that rabench knows, and files on another one as
# the traces tell, and says how long each took, a line "@@ row DISK PATTERN
# NANOSECONDS REQUESTS READ USED". DISK is 100us or 1ms, the time that a request
# takes, or 200mb, 100 us and at most 200 MiB/s. The kernel's command line may have
# disks=DISK+DISK, patterns=GLOB+GLOB and seed=NUMBER.

. "$(dirname "$0")/common.sh"

disks=$(option disks)
patterns=$(option patterns)
seed=$(option seed)
: "${disks:=100us 1ms 200mb}" "${patterns:=*}" "${seed:=0}"
traces=$(echo /harness/traces/*.trace)
set -f

wanted()
{
	matches "$1" "$patterns"
}

# disk NAME NANOSECONDS MIB-A-SECOND: and NAME-files, which keeps what is written
disk()
{
	slow "$@" 0
	slow "$1-files" "$2" "$3" 1
}

slow()
{
	null_blk "$1" irqmode=2 completion_nsec="$2" mbps="$3" memory_backed="$4" \
		size=1024 hw_queue_depth=64 submit_queues=1
	rabench tick
	echo 1 >"$dir/power"
}

# High-resolution timers start late; till then all waits for the next tick.
sleep 5
disk 100us 100000 0
disk 1ms 1000000 0
disk 200mb 100000 200

# row DISK PATTERN RABENCH-ARGUMENT...
row()
{
	disk=$1 pattern=$2
	shift 2
	echo 3 >/proc/sys/vm/drop_caches
	if said=$(rabench "$@" 2>&1); then
		echo "@@ row $disk $pattern $said" >&3
	else
		fail "$disk $pattern: $said"
	fi
}

# replay DISK TRACE: on an ext2 of its own, which was not mounted before
replay()
{
	dev=/dev/$1-files
	name=${2##*/}
	if ! { mke2fs -q -F -t ext2 -b 4096 -N 8192 -E nodiscard "$dev" &&
		mount -t ext2 -o noatime "$dev" /mnt && rabench lay /mnt "$2" &&
		umount /mnt && mount -t ext2 -o noatime "$dev" /mnt; }; then
		fail "$1 $name: no files"
		return
	fi
	row "$1" "trace-${name%.trace}" "$dev" replay /mnt "$2"
	umount /mnt
}

for disk in $disks; do
	say "$disk"
	for pattern in $(rabench list); do
		if wanted "$pattern"; then
			row "$disk" "$pattern" "/dev/$disk" "$pattern" "$seed"
		fi
	done
	for trace in $traces; do
		pattern=${trace##*/}
		if wanted "trace-${pattern%.trace}"; then
			replay "$disk" "$trace"
		fi
	done
done

exit $failed
