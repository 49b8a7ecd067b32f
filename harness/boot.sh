#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# boot.sh SCRIPT DIR: boots the built kernel in QEMU, runs harness/guest/SCRIPT
# in it and exits with the status that the script exited with, or with 99 when
# the guest died or ran out of time.
#
# DIR/console.log is the kernel's log. DIR/out is what the script wrote to file
# descriptor 3, by a channel of its own; its lines that start with "@@ " are for
# the harness: "@@ say TEXT" progress, "@@ exit STATUS" the last line.
#
# From the environment: LIMIT seconds, MEM MiB, BLOCKS the logical block size of
# each disk, DRIVES in the place of these disks, ARGS for the kernel, ON_TTY=1
# with the console on the terminal, SMP processors, ICOUNT=1 for one on which an
# instruction takes a nanosecond of the guest's time, and PLUGIN, what QEMU is to
# load to watch it.
set -eu
. "$(dirname "$0")/common.sh"

script=$1 dir=$2
: "${LIMIT:=600}" "${MEM:=2048}" "${BLOCKS:=512 512}" "${DRIVES:=}"
: "${ARGS:=}" "${ON_TTY:=}" "${SMP:=2}" "${ICOUNT:=}" "${PLUGIN:=}"
resolve
"$ROOT/harness/initrd.sh"
mkdir -p "$dir"
rm -f "$dir/console.log" "$dir/out" "$dir"/scratch*.img

pid=
cleanup()
{
	if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || :; fi
	rm -f "$dir"/scratch*.img
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# The disks are scratch: their flushes need not reach the host's disk.
set -- -accel tcg,thread=multi -smp "$SMP"
if [ -n "$ICOUNT" ]; then
	set -- -accel tcg -smp 1 -icount shift=0,sleep=off
	ARGS="nokaslr $ARGS"
fi
if [ -n "$PLUGIN" ]; then set -- "$@" -plugin "$PLUGIN"; fi
set -- "$@" -cpu max -m "$MEM" -no-reboot -display none -nodefaults \
	-kernel "$OUT/arch/x86/boot/bzImage" \
	-initrd "$OUT/initrd" -device virtio-serial-pci \
	-chardev "file,id=out,path=$dir/out" \
	-device virtserialport,chardev=out,name=out
if [ -n "$DRIVES" ]; then
	# shellcheck disable=SC2086 # a list
	set -- "$@" $DRIVES
else
	n=0
	for size in $BLOCKS; do
		truncate -s 2G "$dir/scratch$n.img"
		set -- "$@" -drive "file=$dir/scratch$n.img,if=none,id=disk$n,format=raw,cache=unsafe" \
			-device "virtio-blk-pci,drive=disk$n,logical_block_size=$size,physical_block_size=$size"
		n=$((n + 1))
	done
fi
# The firmware's interrupt routing is a program that takes a debugging kernel
# minutes to interpret. Without it the kernel finds the I/O APIC, and so its
# second processor, by CONFIG_X86_MPPARSE.
ARGS="console=ttyS0 panic=-1 pci=noacpi null_blk.nr_devices=0 script=$script $ARGS"

: >"$dir/out"
if [ -n "$ON_TTY" ]; then
	timeout --foreground -k 5 "$LIMIT" qemu-system-x86_64 "$@" \
		-chardev "stdio,id=console,mux=on,signal=off,logfile=$dir/console.log" \
		-serial chardev:console -mon chardev=console \
		-append "$ARGS quiet" || :
else
	timeout -k 5 "$LIMIT" qemu-system-x86_64 "$@" -monitor none \
		-serial "file:$dir/console.log" -append "$ARGS ignore_loglevel" \
		</dev/null &
	pid=$!
	tail --pid="$pid" -s 0.2 -n +1 -f "$dir/out" | sed -un 's/^@@ say //p' |
	while read -r line; do
		say "$line"
	done
	wait "$pid" && ended=0 || ended=$?
	pid=
	if [ "$ended" = 124 ]; then
		say "the guest was stopped after $LIMIT s; its log ends:"
		tail -n 20 "$dir/console.log" >&2
		exit 99
	fi
fi
status=$(sed -n '$s/^@@ exit \([0-9]*\)$/\1/p' "$dir/out")
if [ -z "$status" ]; then
	say "the guest died; its log ends:"
	tail -n 40 "$dir/console.log" >&2
	exit 99
fi
exit "$status"
