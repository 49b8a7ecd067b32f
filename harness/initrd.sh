#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Makes OUT/initrd, what our guests run on: the machine's own tools with their
# libraries (build/tools.cpio, kept until one of them changes), followed by the
# kernel's modules, our programs and harness/guest. Not compressed: unpacking
# would cost more on an emulated machine than copying does. TOOLS names more
# programs of the machine to take along.
set -eu
. "$(dirname "$0")/common.sh"

resolve
user=$ROOT/build/$NAME/user
PATH=$PATH:/usr/sbin:/sbin:$CACHE/hfsprogs/sbin
tools="dash bash dd cmp fio strace dmsetup losetup mke2fs e2fsck tune2fs dumpe2fs debugfs
	mkfs.fat fsck.fat mkfs.exfat fsck.exfat mkfs.udf mkfs.jfs fsck.jfs
	mkfs.nilfs2 nilfs_cleanerd mkfs.ntfs ntfsresize mkfs.hfs fsck.hfs
	mkfs.hfsplus fsck.hfsplus mkfs.ocfs2 fsck.ocfs2
	mkfs.reiserfs reiserfsck ${TOOLS:-}"
mkdir -p "$ROOT/build"
tmp=$(mktemp -d "$ROOT/build/.initrd.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# libraries DIR PROGRAM...: copies what the programs are linked with.
libraries()
{
	dir=$1
	shift
	ldd "$@" 2>/dev/null | grep -o '/[^ :]*lib[^ :]*\.so[^ :]*' | sort -u |
	while read -r lib; do
		mkdir -p "$dir${lib%/*}"
		cp -L "$lib" "$dir$lib"
	done
}

archive()
{
	(cd "$1" && find . | sort | cpio -o -H newc -R 0:0 --quiet)
}

found=
for tool in $tools; do
	if path=$(command -v "$tool"); then found="$found $path"; fi
done
# shellcheck disable=SC2086 # a list
ls -lL --time-style=full-iso /bin/busybox "$0" $found >"$tmp/key"
if ! cmp -s "$tmp/key" "$ROOT/build/tools.key"; then
	d=$tmp/tools
	mkdir -p "$d/bin" "$d/usr" "$d/lib" "$d/etc" "$d/dev" "$d/proc" \
		"$d/sys" "$d/tmp" "$d/mnt"
	for link in sbin usr/bin usr/sbin; do ln -s /bin "$d/$link"; done
	# shellcheck disable=SC2086 # a list
	cp -L $found /bin/busybox "$d/bin/"
	# The shell of busybox would run its own dd and mke2fs, not these.
	ln -s dash "$d/bin/sh"
	for applet in $(/bin/busybox --list); do
		[ -e "$d/bin/$applet" ] || ln -s busybox "$d/bin/$applet"
	done
	ln -sf mke2fs "$d/bin/mkfs.ext2"
	ln -sf e2fsck "$d/bin/fsck.ext2"
	ln -s /proc/mounts "$d/etc/mtab"
	echo root:x:0:0:root:/:/bin/sh >"$d/etc/passwd"
	echo nobody:x:65534:65534:nobody:/:/bin/sh >>"$d/etc/passwd"
	# shellcheck disable=SC2086 # a list
	libraries "$d" $found
	archive "$d" >"$tmp/tools.cpio"
	mv "$tmp/tools.cpio" "$ROOT/build/tools.cpio"
	mv "$tmp/key" "$ROOT/build/tools.key"
fi

d=$tmp/ours
mkdir -p "$d/bin" "$d/tests"
cp "$ROOT/harness/guest/init" "$d/init"
cp -r "$ROOT/harness/guest" "$d/harness"
cp -r "$ROOT/harness/jobs" "$d/harness/jobs"
cp -r "$ROOT/harness/bench/traces" "$ROOT/harness/bench/trace.awk" "$d/harness/"
if [ -d "$OUT/mods/lib" ]; then cp -r "$OUT/mods/lib" "$d/lib"; fi
if [ -x "$user/raw/raw" ]; then cp "$user/raw/raw" "$d/bin/"; fi
cp "$user/powercut" "$user/iobench" "$user/streams" "$user/rabench" "$d/bin/"
if [ -s "$user/tests.list" ]; then cp "$user/tests.list" "$d/tests/list"; fi
if [ -d "$user/tests" ]; then
	find "$user/tests" -maxdepth 1 -type f -perm -u+x -exec cp {} "$d/tests/" \;
fi
find "$d/bin" "$d/tests" -type f -exec sh -c '
	for p; do if ldd "$p" >/dev/null 2>&1; then echo "$p"; fi; done' sh {} + >"$tmp/dynamic"
# shellcheck disable=SC2046 # a list
if [ -s "$tmp/dynamic" ]; then libraries "$d" $(cat "$tmp/dynamic"); fi
archive "$d" >"$tmp/ours.cpio"
cat "$ROOT/build/tools.cpio" "$tmp/ours.cpio" >"$OUT/initrd.tmp"
mv "$OUT/initrd.tmp" "$OUT/initrd"
