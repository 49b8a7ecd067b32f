#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Appends to a file on ext2, telling the harness after each append, until the
# harness kills the machine.
mount -t ext2 /dev/vda /mnt && powercut append /mnt/log >&3
