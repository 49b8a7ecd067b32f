#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Direct I/O on ext2, on a block device and on a raw device, each step with its
# check. /dev/vda and /dev/vdb are scratch disks.

passed=0 failed=0
tell()
{
	echo "$*"
	echo "@@ say $*" >&3
}

# step WHAT COMMAND...: one line that tells whether the command succeeded.
step()
{
	what=$1
	shift
	if "$@" >/tmp/log 2>&1; then
		passed=$((passed + 1))
		tell "ok    $what"
	else
		failed=$((failed + 1))
		tell "FAIL  $what"
		tail -n 8 /tmp/log | while read -r line; do
			tell "      $line"
		done
	fi
}

make_ext2()
{
	mke2fs -q -F -t ext2 /dev/vda && mount -t ext2 /dev/vda /mnt
}

# dd_there TARGET: 4 MiB there by direct writes, back by direct reads.
dd_there()
{
	head -c 4194304 /dev/urandom >/tmp/data &&
	dd if=/tmp/data of="$1" bs=64k oflag=direct conv=notrunc &&
	dd if="$1" of=/tmp/back bs=64k count=64 iflag=direct &&
	cmp /tmp/data /tmp/back
}

fio_there()
{
	fio --name=verify --filename="$1" --size=8M --rw=randwrite --direct=1 \
		--bssplit=512/20:4k/60:64k/20 --ioengine="$2" --iodepth=16 \
		--verify=crc32c --verify_fatal=1
}

bind_raw()
{
	{ [ -e /dev/raw/rawctl ] || modprobe raw; } &&
	raw /dev/raw/raw1 /dev/vdb &&
	raw -qa | grep "^/dev/raw/raw1:"
}

# What the page cache holds and the disk does not have yet.
dirty_seen()
{
	head -c 1048576 /dev/urandom >/tmp/data &&
	cat /tmp/data >/mnt/dirty &&
	dd if=/mnt/dirty of=/tmp/back bs=1M iflag=direct &&
	cmp /tmp/data /tmp/back
}

# refused TARGET: 100 bytes at offset 100 are no whole sectors.
refused()
{
	! dd if="$1" of=/dev/null bs=100 skip=1 count=1 iflag=direct &&
	grep "Invalid argument" /tmp/log
}

tell "Linux $(uname -r)"
step "two processors" [ "$(nproc)" = 2 ]
step "ext2 made on /dev/vda and mounted" make_ext2
step "ext2: O_DIRECT dd, written and read back" dd_there /mnt/file
step "ext2: fio, libaio, every block verified" fio_there /mnt/fio libaio
step "ext2: fio, io_uring, every block verified" fio_there /mnt/fio io_uring
step "ext2: direct read sees dirty page cache" dirty_seen
step "ext2: misaligned direct read refused" refused /mnt/file
step "/dev/vdb: O_DIRECT dd, written and read back" dd_there /dev/vdb
step "/dev/vdb: fio, io_uring, every block verified" fio_there /dev/vdb io_uring
step "raw /dev/raw/raw1 /dev/vdb: bound, as raw -qa says" bind_raw
step "/dev/raw/raw1: dd, written and read back" dd_there /dev/raw/raw1
step "/dev/raw/raw1: fio, libaio, every block verified" \
	fio_there /dev/raw/raw1 libaio
step "/dev/raw/raw1: fio, io_uring, every block verified" \
	fio_there /dev/raw/raw1 io_uring
step "/dev/raw/raw1: misaligned read refused" refused /dev/raw/raw1
step "no warning from the kernel" sh -c '! dmesg | grep -E "WARNING:|BUG:|Oops"'
tell "$passed passed, $failed failed"

if grep -qw shell /proc/cmdline; then
	echo
	echo "A shell in the guest: ext2 is on /mnt, the disks are /dev/vda and"
	echo "/dev/vdb; raw, dd, fio, mke2fs and e2fsck are here. Leave with exit."
	echo
	setsid cttyhack bash
fi
[ "$failed" = 0 ]
