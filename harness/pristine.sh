#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
#   pristine.sh               prints the folder of the pristine sources
#   pristine.sh command...    runs a command for which BASE is the base whose
#                             patches fit, whether BASE or KSRC was given
set -eu
. "$(dirname "$0")/common.sh"

resolve
if [ $# = 0 ]; then
	echo "$SRC"
	exit
fi
BASE=$PBASE
export BASE
exec "$@"
