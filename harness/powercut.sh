#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# powercut.sh DIR: TAP on standard output; logs in DIR.
#
# A guest appends to an ext2 file with O_DSYNC and tells after each append where
# the file ends. In the middle of that QEMU is killed, and what was acknowledged
# must be there. Killing QEMU loses nothing that the guest gave to its disk, so
# by itself it only shows that data, size and block map had been written; not
# that they had been flushed. Therefore QEMU also logs all writes and flushes
# (its blklogwrites driver), and the log up to its last flush is done again to
# a copy of the empty disk: that is a disk which lost all that it could lose.
# Not covered: a disk that keeps some of what was not flushed and loses the rest.
set -eu
. "$(dirname "$0")/common.sh"

top=$1
acks=100
resolve
PATH=$PATH:/usr/sbin:/sbin
powercut=$ROOT/build/$NAME/user/powercut
trap 'rm -f "$top"/*/*.img "$top"/*/writes.log "$top"/*/file' EXIT
trap 'exit 130' INT TERM HUP

count=0
# result WHAT COMMAND...
result()
{
	count=$((count + 1)) what=$1
	shift
	if "$@" >"$dir/result.log" 2>&1; then
		echo "ok $count - $what"
	else
		echo "not ok $count - $what"
		sed 's/^/# /' "$dir/result.log"
	fi
}

acked()
{
	sed -n 's/^ack \([0-9]*\)$/\1/p' "$dir/out"
}

# Boots, kills QEMU once enough is acknowledged.
boot_and_kill()
{
	: >"$dir/out"
	rm -f "$dir/qemu.pid"
	DRIVES="-pidfile $dir/qemu.pid
		-blockdev driver=file,filename=$dir/disk.img,node-name=file
		-blockdev driver=file,filename=$dir/writes.log,node-name=log
		-blockdev driver=blklogwrites,node-name=disk,file=file,log=log
		-device virtio-blk-pci,drive=disk" LIMIT=300 \
		"$ROOT/harness/boot.sh" powercut "$dir" >"$dir/boot.log" 2>&1 &
	while kill -0 $! 2>/dev/null; do
		if [ "$(acked | wc -l)" -ge $acks ]; then
			kill -9 "$(cat "$dir/qemu.pid")"
			break
		fi
		sleep 0.05
	done
	wait $! || :
	[ "$(acked | wc -l)" -ge $acks ] || {
		cat "$dir/boot.log"
		return 1
	}
}

# An interrupted ext2 always needs a check: it may correct, once.
repaired()
{
	e2fsck -fy "$1" || [ $? = 1 ] || return 1
	e2fsck -fn "$1"
}

# survives IMAGE [N]: all appends but the last N-1 are in IMAGE
survives()
{
	debugfs -R "dump /log $dir/file" "$1" &&
		"$powercut" verify "$dir/file" \
			"$(acked | tail -n "${2-1}" | head -n 1)"
}

# An append is data, mostly an indirect block, the inode, and a flush; the last
# eight entries of the log are not more than three appends.
survives_halfway()
{
	for back in 1 2 3 4 5 6 7 8; do
		cp "$dir/blank.img" "$dir/halfway.img"
		"$powercut" replay "$dir/writes.log" "$dir/halfway.img" $back &&
			repaired "$dir/halfway.img" &&
			survives "$dir/halfway.img" 4 || return 1
	done
}

for size in 1024 4096; do
	dir=$top/$size
	rm -rf "$dir"
	mkdir -p "$dir"
	truncate -s 64M "$dir/empty.img"
	mke2fs -q -F -t ext2 -b $size "$dir/empty.img"
	cp "$dir/empty.img" "$dir/disk.img"
	cp "$dir/empty.img" "$dir/blank.img"
	: >"$dir/writes.log"
	ext2="ext2, blocks of $size"
	result "$ext2: guest killed while it appends" boot_and_kill
	result "$ext2: killed: e2fsck is clean" repaired "$dir/disk.img"
	result "$ext2: killed: all $(acked | wc -l) appends are there" \
		survives "$dir/disk.img"
	result "$ext2: the disk loses what was not flushed" \
		"$powercut" replay "$dir/writes.log" "$dir/empty.img"
	result "$ext2: power cut: e2fsck is clean" repaired "$dir/empty.img"
	result "$ext2: power cut: all $(acked | wc -l) appends are there" \
		survives "$dir/empty.img"
	result "$ext2: power cut within an append: all before it are there" \
		survives_halfway
done
echo "1..$count"
