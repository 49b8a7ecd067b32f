#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# record-traces.sh [NAME...]: runs the programs of guest/record-traces.sh, or only
# these, in a guest, and writes what each of them read to bench/traces/NAME.trace,
# which make bench-readahead replays. Not needed to measure, only to record other
# programs, or other versions of these.
set -eu
. "$(dirname "$0")/common.sh"

cd "$ROOT"
out=$ROOT/build/traces
data=$out/data
# What the guest runs, and what makes the files that it reads
TOOLS="sqlite3 unzip tar cat git tail nccopy mpv"
export TOOLS

harness/setup.sh
harness/setup.sh sqlite3 zip unzip tar git netcdf-bin mpv
harness/build.sh
resolve
mkdir -p "$out"
rm -rf "$data"
mkdir -p "$data/tree" "$data/start"

# A source tree: the kernel's headers for programs, about a thousand files
cp -r "$ROOT/build/$NAME/user/usr/include" "$data/tree/"
(
	cd "$data/tree"
	git init -q .
	git add -A
	git -c user.name=trace -c user.email=trace@example.org commit -qm tree
	git gc -q
)
(cd "$data/tree" && zip -qr ../tree.zip include)

# 60000 rows of about 230 bytes, and an index in another order
sqlite3 "$data/table.db" "create table t(k integer, b blob);
	with recursive n(i) as (select 1 union all select i + 1 from n limit 60000)
	insert into t select abs(random() % 1000000), randomblob(220) from n;
	create index tk on t(k)"

# Eight variables; each record of the file has a piece of each one.
awk 'BEGIN {
	print "netcdf columns { dimensions: t = UNLIMITED; x = 1024; variables:"
	print "float time(t);"
	for (i = 0; i < 8; i++) print "float v" i "(t, x);"
	printf "data: time = 0"
	for (i = 1; i < 400; i++) printf ", %d", i
	print "; }"
}' | ncgen -o "$data/columns.nc" -

awk 'BEGIN {
	for (i = 0; i < 80000; i++)
		printf "%08d a line of a log that a program has written, %d\n",
			i, i * i % 7919
}' >"$data/log"

# Twenty seconds, of 1.5 MB each, of pictures that change all the time
mpv --no-config --really-quiet --no-audio --of=matroska --ovc=mpeg4 \
	--ovcopts=qmin=2,qmax=4 --o="$data/film.mkv" \
	'av://lavfi:testsrc2=size=320x240:rate=25:duration=20,noise=all_strength=40:all_flags=t'

# A program and its libraries on a disk of their own
git=$(command -v git)
cp -L "$git" "$(ldd "$git" | grep -o '/[^ ]*ld-linux[^ ]*')" "$data/start/"
ldd "$git" | grep -o '/[^ :]*lib[^ :]*\.so[^ :]*' | sort -u |
	while read -r lib; do cp -L "$lib" "$data/start/"; done

rm -f "$out/disk"
mke2fs -q -t ext2 -b 4096 -d "$data" "$out/disk" 400M
DRIVES="-drive file=$out/disk,if=virtio,format=raw,cache=unsafe" \
ARGS="only=$(echo "$*" | tr ' ' '+')" MEM=4096 LIMIT=1500 \
	harness/boot.sh record-traces "$out"

awk -v dir="$ROOT/harness/bench/traces" '
$1 == "@@" { file = $2 == "trace" ? dir "/" $3 ".trace" : ""; next }
file { print >file }' "$out/out"
