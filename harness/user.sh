#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Builds what runs on our kernel, from the assembled tree's own Makefiles, in
# build/<base>/user: the kernel's headers, the selftests and raw(8).
set -eu
. "$(dirname "$0")/common.sh"

PRISTINE=
resolve
user=$ROOT/build/$NAME/user
mkdir -p "$user"

# A new version of the headers only when one of them changed.
sum=$(cd "$TREE" && find include/uapi arch/x86/include/uapi scripts/headers_install.sh \
	-type f -newer "$user/headers.done" 2>/dev/null | head -n 1)
if [ ! -e "$user/headers.done" ] || [ -n "$sum" ]; then
	step "kernel headers" env -u BASE -u KSRC -u LLVM -u DEBUG -u PRISTINE \
		make -s -C "$TREE" O="$user/headers" INSTALL_HDR_PATH="$user/usr" \
		-j"$JOBS" headers_install
	touch "$user/headers.done"
fi

tests=tools/testing/selftests/direct-io
if [ -f "$TREE/$tests/Makefile" ]; then
	mkdir -p "$user/tests"
	kmake -s -C "$TREE/$tests" OUTPUT="$user/tests" -j"$JOBS" \
		KHDR_INCLUDES="-isystem $user/usr/include"
fi
if [ -f "$TREE/tools/raw/Makefile" ]; then
	mkdir -p "$user/raw"
	kmake -s -C "$TREE/tools/raw" OUTPUT="$user/raw/" -j"$JOBS"
fi
