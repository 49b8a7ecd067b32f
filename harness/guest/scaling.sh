#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Direct I/O by 1, 2, 4 and 8 threads on one file and on eight. A line for the
# harness for each thing that was measured:
#
#   @@ run CASE FILES THREADS MB/S SECONDS IDLE% CPU SYSTEM SPREAD%  (see streams.c)
#   @@ lock CASE IOS CLASS BOUNCES CONTENTIONS ACQ-BOUNCES ACQUISITIONS
#
# CASE is where.rw: "ram" is ext2 on a disk of memory without any lock, where it is
# the processors that limit; "slow" ext2 on a disk with a latency of 5 ms, where it is
# how many I/Os are under way. One processor does only that. A kernel with LOCK_STAT
# counts locks and nothing else.

. "$(dirname "$0")/common.sh"

# filesystem DISK DIR: eight files of 4 MiB
filesystem()
{
	mkdir -p "$2"
	if ! mke2fs -q -F -t ext2 -b 4096 "$1" || ! mount -t ext2 "$1" "$2"; then
		fail "ext2 on $1"
	fi
	for n in 1 2 3 4 5 6 7 8; do
		dd if=/dev/zero of="$2/$n" bs=1M count=4 2>/dev/null
	done
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# slow_disk: an I/O takes 5 ms, and any number of them are under way.
slow_disk()
{
	null_blk slow size=64 memory_backed=1 irqmode=2 completion_nsec=5000000 \
		hw_queue_depth=64 submit_queues=1 power=1
}

# threads CASE DIR NR FLAG PASSES: NR threads, each with half a MiB of one file, and
# with half a MiB of a file of its own
# shellcheck disable=SC2086 # lists
threads()
{
	list=
	for n in $(seq "$3"); do list="$list $2/$n"; done
	for files in one each; do
		which="-t $3 $2/1"
		if [ $files = each ]; then which=$list; fi
		if said=$(streams -d -b 4k -n 512k $4 -p $5 $which 2>&1); then
			echo "@@ run $1 $files $3 $said" >&3
		else
			fail "$1 $files $3: $said"
		fi
	done
}

rates()
{
	# High-resolution timers start late; till then all waits for the next tick.
	sleep 5
	slow_disk
	filesystem /dev/slow /mnt/slow
	for nr in 1 2 4 8; do
		say "$nr threads"
		threads slow.read /mnt/slow $nr "" 1
		threads slow.write /mnt/slow $nr -w 1
		if [ "$(nproc)" = 1 ]; then continue; fi
		threads ram.read /mnt/ram $nr "" 20
		threads ram.write /mnt/ram $nr -w 20
	done
}

# locks CASE FILE FLAG: what eight threads take, and how often it comes from another
# processor (bounces)
# shellcheck disable=SC2086 # lists
locks()
{
	ios=$((8 * 128 * 20))
	echo 0 >/proc/lock_stat
	echo 1 >/proc/sys/kernel/lock_stat
	streams -d -b 4k -n 512k -p 20 -t 8 $3 "$2" >/dev/null || fail "$1"
	echo 0 >/proc/sys/kernel/lock_stat
	awk -v which="$1 $ios" '
	match($0, /: +[0-9]+ +[0-9]+ /) {
		class = substr($0, 1, RSTART - 1)
		gsub(/^ +/, "", class)
		gsub(/ +/, "_", class)
		$0 = substr($0, RSTART + 1)
		print "@@ lock", which, class, $1, $2, $7, $8
	}' /proc/lock_stat >&3
}

filesystem /dev/ram0 /mnt/ram
if [ -e /proc/lock_stat ]; then
	say "locks"
	locks ram.read /mnt/ram/1 ""
	locks ram.write /mnt/ram/1 -w
else
	rates
fi
exit $failed
