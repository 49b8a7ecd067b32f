#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Builds what runs on our kernel, from the assembled tree's own Makefiles, in
# build/<base>/user: the kernel's headers, the selftests and raw(8); and the
# harness' own programs.
set -eu
. "$(dirname "$0")/common.sh"

PRISTINE=
resolve
user=$ROOT/build/$NAME/user
mkdir -p "$user/tests"
alone "$user.lock"

# The headers again only when one of them changed.
changed=$(find "$TREE/include/uapi" "$TREE/arch/x86/include/uapi" -type f \
	-newer "$user/headers.done" 2>/dev/null | head -n 1)
if [ ! -e "$user/headers.done" ] || [ -n "$changed" ]; then
	step "installing the kernel's headers" \
		env -u BASE -u KSRC -u LLVM -u DEBUG -u PRISTINE -u BENCH \
		-u UP -u LOCKSTAT \
		make -s -C "$TREE" O="$user/headers" -j"$JOBS" \
		INSTALL_HDR_PATH="$user/usr" headers_install
	touch "$user/headers.done"
fi

selftests()
{
	kmake -s -C "$TREE/tools/testing/selftests/direct-io" -j"$JOBS" \
		OUTPUT="$user/tests" KHDR_INCLUDES="-isystem $user/usr/include" "$@"
}
if [ -f "$TREE/tools/testing/selftests/direct-io/Makefile" ]; then
	selftests
	selftests emit_tests COLLECTION=direct-io |
		sed 's/^direct-io://' >"$user/tests.list"
fi

if [ -f "$TREE/tools/raw/Makefile" ]; then
	kmake -s -C "$TREE/tools/raw" O="$user/raw"
fi

# own NAME SOURCE LIBRARY...: a program of the harness itself; not relocatable,
# so that its symbols say where they are.
own()
{
	name=$1 source=$ROOT/harness/$2
	shift 2
	if [ -n "$(find "$source" -newer "$user/$name" 2>&1)" ]; then
		gcc -O2 -Wall -Wextra -static -no-pie -o "$user/$name" \
			"$source" "$@"
	fi
}
own powercut guest/powercut.c
own iobench bench/iobench.c -laio -luring -pthread
own streams bench/streams.c -pthread
own rabench bench/rabench.c -pthread
