#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What was asked for from 2001 to 2004, measured: scenarios S1 to S8, of which the
# kernel's command line may choose some, only=S2+S5. A line for the harness for
# each thing that was measured:
#
#   @@ run S CASE MB/S SECONDS IDLE% CPU SYSTEM SPREAD%	(see streams.c)
#   @@ fig S CASE VALUE
#   @@ skip S CASE REASON
#
# The disks are null_blk: an instruction takes a nanosecond here, a disk's latency
# and its bandwidth's limit cost no real time at all.

. "$(dirname "$0")/common.sh"

only=$(option only)

fig()
{
	echo "@@ fig $*" >&3
}

skip()
{
	echo "@@ skip $*" >&3
}

wanted()
{
	case " ${only:-$1} " in
	*" $1 "*) say "$1: $2" ;;
	*) return 1 ;;
	esac
}

# disk NAME MIB MEMORY-BACKED KIB PACE USECS: a disk with requests of at most KIB,
# each of which takes USECS. It does PACE of them in 20 ms, which is how null_blk
# limits bandwidth, at most; 0 is no limit.
disk()
{
	mode=2
	if [ "$6" = 0 ]; then mode=0; fi
	# null_blk grants a fiftieth of 1 MiB/s as 20971 bytes.
	null_blk "$1" size="$2" memory_backed="$3" max_sectors=$(($4 * 2)) \
		mbps=$((($5 * $4 * 1024 + 20970) / 20971)) \
		completion_nsec="$6"000 irqmode=$mode \
		hw_queue_depth=64 submit_queues=1 power=1
}

# disks N NAME ...: NAME1 to NAMEn; $disks are their nodes, $files a file on each
disks()
{
	count=$1 prefix=$2
	shift 2
	disks='' files=''
	for n in $(seq "$count"); do
		disk "$prefix$n" "$@"
		disks="$disks /dev/$prefix$n"
		files="$files /mnt/$prefix$n/file"
	done
}

gone()
{
	for d; do
		rmdir "/sys/kernel/config/nullb/${d##*/}"
	done
}

# ext2 OPTIONS DISK...: made anew and mounted
ext2()
{
	options=$1
	shift
	for d; do
		mkdir -p "/mnt/${d##*/}"
		# shellcheck disable=SC2086 # a list
		if ! mke2fs -q -F -t ext2 $options "$d" ||
		   ! mount -t ext2 "$d" "/mnt/${d##*/}"; then
			fail "ext2 on $d"
		fi
	done
}

unmount()
{
	for d; do
		umount "$d" || fail "umount $d"
	done
}

drop_caches()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# run S CASE OPTION...: streams and its figures. A pause, so that the timers that
# limit the disks' bandwidth begin together.
run()
{
	which="$1 $2"
	shift 2
	sleep 1
	if said=$(streams -m "$@" 2>&1); then
		echo "@@ run $which $said" >&3
	else
		fail "$which: $said"
	fi
}

# bind DISK...: $raws are raw devices, one for each
bind()
{
	raws='' n=0
	for d; do
		n=$((n + 1))
		raw /dev/raw/raw$n "$d" >/dev/null || fail "raw$n on $d"
		raws="$raws /dev/raw/raw$n"
	done
}

unbind()
{
	for d; do
		raw "$d" 0 0 >/dev/null || fail "unbind $d"
	done
}

# done_by DISK... prints the requests completed and the milliseconds in which
# there were any, of all disks.
done_by()
{
	for d; do
		cat "/sys/block/${d##*/}/stat"
	done | awk '{ reads += $1; writes += $5; ms += $10 }
		END { print reads + writes, ms }'
}

# shellcheck disable=SC2086 # lists
s1()
{
	disk one 1024 0 128 20 1250
	for size in 128k 1m 16m 64m 256m; do
		run S1 rate.$size -w -d -b $size -n 256m /dev/one
	done
	gone one

	# No latency, no limit: time is instructions.
	disk one 1024 0 1280 0 0
	disk two 160 1 1280 0 0
	ext2 "-b 4096" /dev/two
	streams -w -c -f -b 1m -n 128m /mnt/two/file >/dev/null
	drop_caches
	for size in 128k 1m 16m 64m 128m; do
		run S1 disk.$size -w -d -b $size -n 128m /dev/one
		run S1 ext2.$size -w -d -b $size -n 128m /mnt/two/file
	done
	unmount /mnt/two
	gone one two
}

# shellcheck disable=SC2086 # lists
s2()
{
	disks 8 disk 512 0 64 8 1000
	fig S2 line-rate "$(awk 'BEGIN { print 8 * 8 * 65536 * 50 / 1e6 }')"
	if [ "$have_raw" ]; then
		bind $disks
		run S2 raw -b 4m -n 440m $raws
		unbind $raws
	else
		skip S2 raw "$no_raw"
	fi
	run S2 direct -d -b 4m -n 440m $disks
	drop_caches
	run S2 buffered -b 4m -n 48m $disks
	gone $disks
}

# shellcheck disable=SC2086 # lists
s3()
{
	disks 8 disk 24 1 64 8 1000
	ext2 "-b 4096" $disks
	run S3 write-new.direct -w -c -d -f -b 1m -n 16m $files
	rm $files
	run S3 write-new.buffered -w -c -f -b 1m -n 16m $files
	drop_caches
	run S3 read-4k.direct -d -b 4k -n 1m $files
	run S3 read-4k.buffered -b 4k -n 16m $files
	before=$(done_by $disks)
	run S3 cached-random-4k -r -l -b 4k -n 16m -p 2 $files
	after=$(done_by $disks)
	fig S3 cached-requests $((${after% *} - ${before% *}))
	unmount $disks
	gone $disks
}

# shellcheck disable=SC2086 # lists
s4()
{
	disk one 420 1 128 20 1000
	# So that no run pays for the memory of a block that is written first.
	streams -w -d -b 1m -n 420m /dev/one >/dev/null || fail "S4: fill"
	for how in buffered direct; do
		ext2 "-b 4096" /dev/one
		d=/mnt/one
		flag=
		if [ $how = direct ]; then flag=-d; fi
		run S4 $how -w -c -f $flag -b 1m -n 96m $d/1 $d/2 $d/3 $d/4
		unmount $d
	done
	gone one
}

# block_size BYTES COMMAND...: with that soft block size on $disks, which lasts as
# long as somebody has the disks open.
# shellcheck disable=SC2086 # lists
block_size()
{
	size=$1 holders=
	shift
	for d in $disks; do
		sleep 1000 4<"$d" &
		holders="$holders $!"
		blockdev --setbsz "$size" "$d"
		[ "$(blockdev --getbsz "$d")" = "$size" ] ||
			fail "soft block size of $size on $d"
	done
	"$@"
	kill $holders
	wait
}

# refused COMMAND...: refused, allowed
refused()
{
	if said=$("$@" 2>&1); then
		echo allowed
	else
		case $said in
		*busy*) echo refused ;;
		*) echo "failed: $said" ;;
		esac
	fi
}

# Three sectors, from the second one on.
sectors()
{
	if said=$(dd if="$1" of=/dev/null bs=1536 skip=512 iflag=skip_bytes,direct \
		count=1 2>&1); then
		echo yes
	else
		echo "no: $said"
	fi
}

# four CASE: all four disks at a time, by O_DIRECT and as raw devices
# shellcheck disable=SC2086 # lists
four()
{
	run S5 direct.$1 -d -h -b 1m -n 192m $disks
	if [ "$have_raw" ]; then
		run S5 raw.$1 -h -b 1m -n 192m $raws
	else
		skip S5 raw.$1 "$no_raw"
	fi
}

# Never mounted, with blocks of the size that Linux chooses; mounted before, with
# other blocks; and then with a soft block of one sector, and with one of a page.
# shellcheck disable=SC2086 # lists
s5()
{
	disks 4 disk 200 1 64 32 1000
	# So that all runs find the same in null_blk's memory, and in their own.
	echo 4 >/proc/sys/vm/nr_hugepages
	streams -w -d -b 1m -n 200m $disks >/dev/null || fail "S5: fill"
	if [ "$have_raw" ]; then bind $disks; fi
	four fresh
	ext2 "-b 1024" $disks
	if [ "$have_raw" ]; then
		fig S5 raw-open-of-mounted "$(refused \
			dd if=/dev/raw/raw1 of=/dev/null bs=512 count=1)"
	fi
	unmount $disks
	four was-mounted
	block_size 512 four soft-512
	block_size 4096 four soft-4096
	fig S5 sectors.disk "$(block_size 4096 sectors /dev/disk1)"
	if [ "$have_raw" ]; then
		fig S5 sectors.raw "$(block_size 4096 sectors /dev/raw/raw1)"
		{
			fig S5 mount-of-raw-open "$(refused \
				mount -t ext2 /dev/disk1 /mnt/disk1)"
		} 4</dev/raw/raw1
		umount /mnt/disk1 2>/dev/null
		unbind $raws
	fi
	echo 0 >/proc/sys/vm/nr_hugepages
	gone $disks
}

now()
{
	cut -d" " -f1 /proc/uptime
}

# ten_dd FLAG: ten writers, each of which notes when it was done, then umount.
# shellcheck disable=SC2086 # lists
ten_dd()
{
	rm -f /tmp/dd.* /tmp/end.*
	for f in $files; do
		(
			mark=$(echo $f | tr / .)
			dd if=/dev/zero of=$f bs=128k count=200 $1 \
				2>/tmp/dd$mark || cp /tmp/dd$mark /tmp/end.failed
			now >/tmp/end$mark
		) &
	done
	wait
	unmount $disks
}

# shellcheck disable=SC2086 # lists
s6()
{
	for how in direct buffered; do
		flag=
		if [ $how = direct ]; then flag=oflag=direct; fi
		disks 10 disk 32 1 128 4 1000
		ext2 "-b 4096" $disks
		sync
		busy=$(done_by $disks)
		began=$(now)
		streams -m
		ten_dd $flag
		streams -m
		ended=$(now)
		if [ -e /tmp/end.failed ]; then
			fail "S6 $how: $(cat /tmp/end.failed)"
		else
			busy="$busy $(done_by $disks)"
			cat /tmp/end.* | sort -n | sed -n '1p;$p' |
				xargs echo $began $ended $busy | awk -v how=$how '{
				took = $2 - $1
				printf "@@ run S6 %s %.2f %.3f - - - %.2f\n", how,
					10 * 200 * 131072 / took / 1e6, took,
					100 * ($8 - $7) / took
				printf "@@ fig S6 %s.writers-done %.2f\n", how, $8 - $1
				printf "@@ fig S6 %s.disks-busy %.2f\n", how,
					($6 - $4) / 1000 / took
			}' >&3
		fi
		gone $disks
	done
}

# MiB that are free or could be
memory()
{
	awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo
}

# shellcheck disable=SC2086 # lists
s7()
{
	# Without a limit: there is a speed to be had by reading ahead.
	disks 4 disk 1024 0 64 0 2000
	table="0 $((4 * 1024 * 2048)) striped 4 128"
	for d in $disks; do table="$table $d 0"; done
	if ! dmsetup create array --noudevsync --table "$table" >/dev/null 2>&1; then
		fail "S7: no striped array"
		return
	fi
	dmsetup mknodes array
	array=/dev/mapper/array
	# As wide as the array asks for, and as wide as it was for any disk.
	for window in wide 128k; do
		if [ $window = 128k ]; then blockdev --setra 256 $array; fi
		drop_caches
		run S7 one-thread.$window -b 11k -n 256m $array
		drop_caches
		run S7 look-back.$window -k -b 11k -n 256m $array
		drop_caches
		run S7 two-descriptors.$window -t 2 -e -b 11k -n 128m $array
		drop_caches
		run S7 two-threads.$window -t 2 -b 11k -n 128m $array
	done
	drop_caches
	run S7 memory-free -t 2 -b 11k -n 128m -o 1g $array
	drop_caches

	# Pages of 2 MiB that nobody uses leave a fraction of what is read next.
	echo 1 >/proc/sys/vm/compact_memory
	echo $((($(memory) - 192) / 2)) >/proc/sys/vm/nr_hugepages
	fig S7 memory-left "$(memory)"
	streams -t 2 -b 11k -n 384m $array >/dev/null || fail "S7: read"
	run S7 memory-full -t 2 -b 11k -n 128m -o 1g $array
	echo 0 >/proc/sys/vm/nr_hugepages
	dmsetup remove --noudevsync --retry array
	gone $disks
}

s8()
{
	kind=up
	case $(uname -v) in *SMP*) kind=smp ;; esac
	ext2 "-b 4096" /dev/ram0
	for rw in write read; do
		if said=$(iobench /mnt/ram0/file sync $rw 1 pages - 100000 2>&1); then
			fig S8 $rw.$kind "$said"
		else
			fail "S8 $rw: $said"
		fi
	done
	unmount /mnt/ram0
}

# High-resolution timers start late; till then all waits for the next tick.
sleep 5
have_raw='' no_raw="this kernel has no /dev/raw"
modprobe raw 2>/dev/null
if [ -e /dev/raw/rawctl ]; then have_raw=1; fi

wanted S1 "streaming writes" && s1
wanted S2 "eight disks, 4 MiB reads" && s2
wanted S3 "eight ext2 filesystems" && s3
wanted S4 "four files written in parallel" && s4
wanted S5 "four raw devices, mounted or not" && s5
wanted S6 "ten dd, ten ext2, umount" && s6
wanted S7 "two threads read one file" && s7
wanted S8 "one byte at a time" && s8
exit $failed
