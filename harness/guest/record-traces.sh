#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs programs that read files of /dev/vda, none of which is cached, and sends
# the pages that each read or touched, a line "@@ trace NAME" and then what
# rabench replays. The kernel's command line may have only=NAME+NAME.
#
# strace does not see what a program reads through a mapping. The tracepoints of
# the page cache see that and the reads: of each page as it is asked for, when
# faults do not map what is around them as well.

. "$(dirname "$0")/common.sh"

only=$(option only)
tracing=/sys/kernel/tracing
points="mm_filemap_get_pages mm_filemap_fault"

switch()
{
	for event in $points; do
		echo "$1" >$tracing/events/filemap/"$event"/enable
	done
}

# record NAME COMMAND...
record()
{
	name=$1
	shift
	case " ${only:-$name} " in *" $name "*) ;; *) return ;; esac
	# Names of files, and their sizes before the program runs
	find . -type f -exec stat -c '%i %s' {} + >/tmp/sizes
	sync
	echo 3 >/proc/sys/vm/drop_caches
	echo >$tracing/trace
	switch 1
	"$@" >/tmp/said 2>&1
	result=$?
	switch 0
	awk -f /harness/trace.awk what="${title:-$*}" /tmp/sizes $tracing/trace >/tmp/trace
	if [ $result != 0 ] || ! grep -q '^[0-9]' /tmp/trace; then
		fail "$name: status $result: $(tail -n 3 /tmp/said | tr '\n' ' ')"
		return
	fi
	say "$name: $(grep -c '^[0-9]' /tmp/trace) lines"
	echo "@@ trace $name" >&3
	cat /tmp/trace >&3
}

follow_log()
{
	tail -n 2000 -f log &
	for i in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.5
		seq $((i * 1000)) $((i * 1000 + 300)) >>log
	done
	sleep 2
	kill $!
}

mount -t ext2 -o noatime /dev/vda /mnt
cd /mnt || exit
echo 4096 >/sys/kernel/debug/fault_around_bytes
echo 65536 >$tracing/buffer_size_kb
# shellcheck disable=SC2046 # two numbers
set -- $(stat -c '%t %T' /dev/vda)
for event in $points; do
	echo "s_dev == $(((0x$1 << 20) | 0x$2))" >$tracing/events/filemap/"$event"/filter
done

record sqlite-scan sqlite3 table.db 'select sum(length(b)) from t'
record sqlite-index sqlite3 table.db \
	'select sum(length(b)) from t indexed by tk where k between 400000 and 450000'
record zip sh -c "unzip -p tree.zip 'include/linux/*' >/dev/null"
record tar sh -c 'tar -cf - tree/include | cat >/dev/null'
# Copied trees look changed to git: it compares each file.
record git-status git -C tree status --short
record start ./start/ld-linux-x86-64.so.2 --library-path start start/git --version
record columns nccopy -V time,v3 columns.nc /tmp/column.nc
title='tail -n 2000 -f log, to which another program appends'
record log follow_log
title=
# A second of the film at each of six places
record player mpv --no-config --vo=null --ao=null --untimed --really-quiet \
	'edl://film.mkv,2,1;film.mkv,15,1;film.mkv,6,1;film.mkv,18,1;film.mkv,10,1;film.mkv,4,1'
cd /
umount /mnt
exit $failed
