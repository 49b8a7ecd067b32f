#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Counts instructions: a line "@@ row TARGET METHOD RW SIZE BUFFER N" for each
# workload, N per I/O, or "-" and the reason if the kernel can't do it. The
# kernel's command line may have rows=GLOB+GLOB, with dots between the fields:
# rows=ext2.sync.*+disk.sync.*
#
# "@@ flight RW SIZE KIB REQUESTS" is what one request has pinned and in flight.
#
# What is memory only is brd for sync and libaio and, since that can't poll,
# null_blk for io_uring. "null" is null_blk that moves no data at all.

rows=$(sed -n 's/.* rows=\([^ ]*\).*/\1/p' /proc/cmdline | tr '+' ' ')
: "${rows:=*}"
set -f

say()
{
	echo "@@ say $*" >&3
}

wanted()
{
	for glob in $rows; do
		# shellcheck disable=SC2254 # a glob it is
		case $1 in $glob) return 0 ;; esac
	done
	return 1
}

# null NAME MEMORY-BACKED MIB [ATTRIBUTE=VALUE...]
null()
{
	dir=/sys/kernel/config/nullb/$1 backed=$2 mib=$3
	mkdir "$dir"
	shift 3
	for set in irqmode=0 size="$mib" hw_queue_depth=64 submit_queues=1 \
		poll_queues=1 memory_backed="$backed" "$@" power=1; do
		echo "${set#*=}" >"$dir/${set%=*}"
	done
}

# filesystem MKFS-COMMAND... DISK DIR: made, mounted, with a file of 32 MiB
filesystem()
{
	dir=$1 disk=$2 type=$3
	shift 3
	mkdir -p "$dir"
	if ! "$@" "$disk" >/tmp/mkfs.log 2>&1 || ! mount -t "$type" "$disk" "$dir"
	then
		say "FAILED: $type on $disk: $(cat /tmp/mkfs.log)"
	fi
	dd if=/dev/zero of="$dir/file" bs=1M count=32 2>/dev/null
}

# Clusters of 4 KiB, and few enough of them for FAT16.
make_fat()
{
	mkfs.fat -s 8 -S 512 "$1" 49152
}

# set_up KIND DISK...: ext2, ext4 and FAT on the first three, the fourth as it is
set_up()
{
	filesystem "/mnt/$1/ext2" "$2" ext2 mke2fs -q -t ext2 -b 4096
	filesystem "/mnt/$1/ext4" "$3" ext4 mke2fs -q -t ext4 -b 4096
	filesystem "/mnt/$1/fat" "$4" vfat make_fat
	dd if=/dev/zero of="$5" bs=1M count=32 2>/dev/null
	ln -s "$5" "/mnt/$1/disk"
	raw "/dev/raw/$1" "$5" >/dev/null 2>&1
	ln -s "/dev/raw/$1" "/mnt/$1/raw"
	ln -s /dev/empty "/mnt/$1/null"
}

# row TARGET METHOD RW SIZE BUFFER SPAN COUNT
row()
{
	wanted "$1.$2.$3.$4.$5" || return
	case $2 in
	uring*) file=/mnt/raw2/$1 ;;
	*) file=/mnt/raw1/$1 ;;
	esac
	if [ -d "$file" ]; then file=$file/file; fi
	# Who polls spins until the worker that copies is let run: no two runs
	# agree, on any kernel.
	case $2.$4 in
	*-poll.131072 | *-poll.1048576)
		echo "@@ row $1 $2 $3 $4 $5 - skipped: not repeatable" >&3
		return
		;;
	esac
	said=$(iobench "$file" "$2" "$3" "$4" "$5" "$6" "$7" 2>&1)
	case $? in
	0) ;;
	2) said="- $said" ;;
	*)
		say "FAILED: $1 $2 $3 $4 $5: $said"
		said="- FAILED $said"
		;;
	esac
	echo "@@ row $1 $2 $3 $4 $5 $said" >&3
}

# High-resolution timers start late; till then all waits for the next tick.
sleep 5
null empty 0 1024
for n in 1 2 3 4; do null "memory$n" 1 48; done
set_up raw1 /dev/ram0 /dev/ram2 /dev/ram1 /dev/ram3
set_up raw2 /dev/memory1 /dev/memory2 /dev/memory3 /dev/memory4
sync
echo 3 >/proc/sys/vm/drop_caches

for target in disk raw ext2 ext4 fat null; do
	say "$target"
	for shape in 4096:2048 16384:512 131072:128 1048576:32; do
		for buffer in pages huge; do
			for rw in read write; do
				for method in sync libaio uring uring-fixed \
					uring-poll uring-fixed-poll; do
					row $target $method $rw "${shape%:*}" \
						$buffer 33554432 "${shape#*:}"
				done
			done
		done
	done
done

say "large requests"
if wanted disk.sync.read.268435456.pages; then
	for target in disk ext2; do
		file=/mnt/raw1/$target
		if [ -d $file ]; then file=$file/file; fi
		dd if=/dev/zero of=$file bs=1M count=256 conv=notrunc 2>/dev/null
	done
	sync
	echo 3 >/proc/sys/vm/drop_caches
fi
for target in disk ext2; do
	for shape in 16777216:4 67108864:2 268435456:1; do
		for rw in read write; do
			row $target sync $rw "${shape%:*}" pages 268435456 \
				"${shape#*:}"
		done
	done
done

# A disk that takes a millisecond for each request, so that some are in flight.
null slow 0 1024 irqmode=2 completion_nsec=1000000 poll_queues=0
for size in 16777216 67108864 268435456; do
	for rw in read write; do
		wanted "flight.$rw.$size" || continue
		said=$(iobench /dev/slow flight $rw $size pages 268435456 1 2>&1)
		echo "@@ flight $rw $size $said" >&3
	done
done

say "one byte at a time"
rm -f /mnt/raw1/ext2/file
ln -s /mnt/raw1/ext2 /mnt/raw1/cached
row cached sync write 1 pages - 100000
row cached sync read 1 pages - 100000
exit 0
