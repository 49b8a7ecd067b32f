#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# All tests of one kernel. What each says goes to the harness after a line
# "@@ tap NAME". The kernel's command line may have tests=A,B (only these),
# skip=A,B (not these) and limit=SECONDS for each.

. "$(dirname "$0")/common.sh"

tap()
{
	printf '\n@@ tap %s\n' "$1" >&3
}

say()
{
	printf '\n@@ say %s\n' "$*" >&3
	echo "direct-io: $*" >/dev/kmsg
}

# result STATUS WHAT: a line for a file of results.
result()
{
	count=$((count + 1))
	case $1 in
	0) echo "ok $count - $2" ;;
	4) echo "ok $count - $2 # SKIP as it says itself" ;;
	124 | 137 | 143) echo "not ok $count - $2: out of time" ;;
	*) echo "not ok $count - $2: status $1" ;;
	esac
}

limit=$(option limit)
modprobe raw 2>/dev/null
mkdir -p /mnt/test

# The selftests
count=0
tests=$(option tests)
for t in ${tests:-$(cat /tests/list)}; do
	case " $(option skip) " in *" $t "*) continue ;; esac
	say "test $t"
	tap "$t"
	began=$(date +%s)
	(cd /tests && timeout -k 10 "$limit" "./$t" >&3 2>&1)
	result $? "$t" >>/tmp/programs
	took=$(($(date +%s) - began))
	if [ "$took" -ge 30 ] || ! tail -n 1 /tmp/programs | grep -q '^ok'; then
		say "$(tail -n 1 /tmp/programs) after $took s"
	fi
done
tap programs
cat /tmp/programs >&3
echo "1..$count" >&3

# KUnit's tests ran when the kernel booted; a pristine kernel has none of ours.
if [ -z "$tests" ] && [ -d /sys/kernel/debug/kunit/readahead-window ]; then
	count=0
	tap kunit
	for results in /sys/kernel/debug/kunit/*/results; do
		suite=${results%/results}
		grep -q '^ok ' "$results"
		result $? "${suite##*/}" >&3
		sed -n 's/^ *not ok/# not ok/p' "$results" >&3
	done
	echo "1..$count" >&3
fi

# fio_verify WHAT TARGET SPLIT, with both engines
fio_verify()
{
	for ENGINE in libaio io_uring; do
		say "fio on $1, $ENGINE"
		TARGET=$2 SPLIT=$3
		export TARGET SPLIT ENGINE
		timeout -k 10 "$limit" fio /harness/jobs/verify.fio \
			>/tmp/fio.log 2>&1
		result $? "fio verify on $1, $ENGINE, $3"
		grep -E '^(fio|verify):|err=' /tmp/fio.log | sed 's/^/# /' |
			grep -v 'err= 0' | head -n 20
	done
}

if [ -z "$tests" ]; then
	count=0
	small=512/25:1k/15:4k/40:16k/10:64k/10
	large=4k/60:16k/25:64k/15
	{
		umount /mnt/test 2>/dev/null
		mke2fs -q -F -t ext2 -b 4096 /dev/vda 262144 &&
			mount -t ext2 /dev/vda /mnt/test
		fio_verify "ext2" /mnt/test/fio $small
		umount /mnt/test
		e2fsck -fn /dev/vda >/tmp/fsck.log 2>&1
		result $? "e2fsck finds ext2 clean after fio"
		fio_verify "512-byte disk" /dev/vda $small
		fio_verify "4096-byte disk" /dev/vdb $large
		for disk in vda vdb; do
			raw /dev/raw/raw1 /dev/$disk >/dev/null
			result $? "raw1 bound to $disk"
			split=$small
			[ $disk = vda ] || split=$large
			fio_verify "raw1 on $disk" /dev/raw/raw1 $split
			raw /dev/raw/raw1 0 0 >/dev/null
		done
	} >/tmp/fio.tap 2>/tmp/fio.err
	tap fio
	cat /tmp/fio.tap >&3
	sed 's/^/# /' /tmp/fio.err >&3
	echo "1..$(grep -cE '^(not )?ok' /tmp/fio.tap)" >&3
fi

# What the kernel itself found
tap kernel
count=0
[ "$(nproc)" = 2 ]
result $? "two processors" >&3
# Without it every test of raw devices skips itself.
[ -e /dev/raw/rawctl ]
result $? "the raw driver is there" >&3
# Bit 18 is KUnit's: tests have run.
tainted=$(cat /proc/sys/kernel/tainted)
result $((tainted & ~(1 << 18))) "the kernel is not tainted" >&3
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
	say "looking for leaks"
	tap kernel
	# What is new since the last scan may still be in a register.
	echo scan >$leaks
	sleep 6
	echo scan >$leaks
	sed 's/^/# /' $leaks >/tmp/leaks
	[ ! -s /tmp/leaks ]
	result $? "no memory leaks" >&3
	cat /tmp/leaks >&3
fi
echo "1..$count" >&3
