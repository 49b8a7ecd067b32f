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

. "$(dirname "$0")/common.sh"

rows=$(option rows)
: "${rows:=*}"
set -f

wanted()
{
	matches "$1" "$rows"
}

# null NAME MEMORY-BACKED MIB [ATTRIBUTE=VALUE...]
null()
{
	name=$1 backed=$2 mib=$3
	shift 3
	null_blk "$name" irqmode=0 size="$mib" hw_queue_depth=64 submit_queues=1 \
		poll_queues=1 memory_backed="$backed" "$@" power=1
}

# filesystem DIR DISK TYPE OPTIONS MKFS-COMMAND...: made, mounted, with a file of
# 32 MiB
filesystem()
{
	dir=$1 disk=$2 type=$3 options=$4
	shift 4
	mkdir -p "$dir"
	if ! "$@" "$disk" >/tmp/mkfs.log 2>&1 </dev/null ||
	   ! mount -t "$type" -o "$options" "$disk" "$dir" 2>>/tmp/mkfs.log
	then
		say "FAILED: $type on $disk: $(tr '\n' ' ' </tmp/mkfs.log)"
		return 1
	fi
	dd if=/dev/zero of="$dir/file" bs=1M count=32 2>/dev/null
}

# Clusters of 4 KiB, and few enough of them for FAT16.
make_fat()
{
	mkfs.fat -s 8 -S 512 "$1" 49152
}

make_affs()
{
	affs_volume make "$1" 4096
}

# set_up KIND DISK...: ext2, ext4 and FAT on the first three, the fourth as it is
set_up()
{
	filesystem "/mnt/$1/ext2" "$2" ext2 rw mke2fs -q -t ext2 -b 4096
	filesystem "/mnt/$1/ext4" "$3" ext4 rw mke2fs -q -t ext4 -b 4096
	filesystem "/mnt/$1/fat" "$4" vfat rw make_fat
	dd if=/dev/zero of="$5" bs=1M count=32 2>/dev/null
	ln -s "$5" "/mnt/$1/disk"
	raw "/dev/raw/$1" "$5" >/dev/null 2>&1
	ln -s "/dev/raw/$1" "/mnt/$1/raw"
	ln -s /dev/empty "/mnt/$1/null"
}

# row TARGET METHOD RW SIZE BUFFER SPAN COUNT [REASON WHY NOT]
row()
{
	wanted "$1.$2.$3.$4.$5" || return
	case $2 in
	uring*) file=/mnt/raw2/$1 ;;
	*) file=/mnt/raw1/$1 ;;
	esac
	if [ -d "$file" ]; then file=$file/file; fi
	skip=${8:-}
	case $1.$2.$3.$4 in
	# Who polls spins until the worker that copies is let run: no two runs
	# agree, on any kernel.
	*-poll.*.131072 | *-poll.*.1048576) skip="skipped: not repeatable" ;;
	nilfs2.*.write.*) skip="skipped: writes go through the page cache" ;;
	esac
	if [ -n "$skip" ]; then
		echo "@@ row $1 $2 $3 $4 $5 - $skip" >&3
		return
	fi
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

# unavailable TYPE MKFS: says why there can be no such filesystem on get_block
unavailable()
{
	if [ ! -e /tmp/direct_IO ]; then
		grep '_direct_IO$' /proc/kallsyms >/tmp/direct_IO
	fi
	if ! grep -q " ${1%[0-9]}[0-9]*_direct_IO$" /tmp/direct_IO; then
		echo "skipped: not on get_block in this kernel"
	elif ! command -v "$2" >/dev/null; then
		echo "skipped: $2 is not installed"
	fi
}

# on_get_block TYPE OPTIONS MKFS-COMMAND...: few rows, on the disk that FAT had.
# Within the second in which a file was written, reads go on asking whether its
# atime is to move, where times are whole seconds.
on_get_block()
{
	fs=$1 options=$2 tried='' why=''
	shift 2
	for shape in 4096:2048 1048576:32; do
		for rw in read write; do
			wanted "$fs.sync.$rw.${shape%:*}.pages" || continue
			if [ -z "$tried" ]; then
				tried=1
				say "$fs"
				why=$(unavailable "$fs" "$1")
				[ -n "$why" ] || filesystem "/mnt/raw1/$fs" \
					/dev/ram1 "$fs" "$options" "$@" ||
					why=FAILED
				sync
				echo 3 >/proc/sys/vm/drop_caches
				sleep 2
			fi
			row "$fs" sync $rw "${shape%:*}" pages 33554432 \
				"${shape#*:}" "$why"
		done
	done
	if [ -n "$tried" ] && [ -z "$why" ]; then umount "/mnt/raw1/$fs"; fi
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

# What else has a get_block; HFS counts to 65535 blocks and no further.
PATH=$PATH:/tests
umount /mnt/raw1/fat
on_get_block exfat rw mkfs.exfat
on_get_block ntfs3 rw mkfs.ntfs -q -f -F
on_get_block udf rw mkfs.udf -b 4096
on_get_block jfs rw mkfs.jfs -q
on_get_block nilfs2 rw mkfs.nilfs2 -q -f
on_get_block hfs rw mkfs.hfs -h -b 8192
on_get_block hfsplus rw mkfs.hfsplus -b 4096
on_get_block affs bs=4096 make_affs
on_get_block ocfs2 heartbeat=none mkfs.ocfs2 -q -x -M local -N 1 -b 4096 \
	-C 4096 -J size=4M
on_get_block reiserfs rw mkfs.reiserfs -q -f -f

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
