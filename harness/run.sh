#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# make run: builds what is not built yet and boots it with two disks;
# harness/guest/run.sh shows direct I/O at work there.
set -eu
. "$(dirname "$0")/common.sh"

"$ROOT/harness/build.sh"
resolve
dir=$ROOT/build/run/$NAME-${OUT##*/}
say "booting ${OUT#"$ROOT/"} ..."
if [ -t 0 ] && [ -t 1 ]; then
	ON_TTY=1 LIMIT=604800 ARGS=shell
	export ON_TTY LIMIT ARGS
fi
"$ROOT/harness/boot.sh" run "$dir" && status=0 || status=$?
if [ "$status" = 0 ]; then
	say "all is well; the kernel's log is ${dir#"$ROOT/"}/console.log"
else
	say "FAILED; see ${dir#"$ROOT/"}/console.log"
fi
exit "$status"
