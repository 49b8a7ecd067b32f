# SPDX-License-Identifier: GPL-2.0

BASE ?= 7.3
export BASE KSRC LLVM DEBUG PRISTINE JOBS TESTS ROWS ONLY WORKLOAD CHECKS FULL CONFIG_FILE

# Whether one kernel was asked for: without it, check goes over all of its runs.
ONE := $(if $(filter-out file undefined,$(origin BASE))$(KSRC)$(DEBUG),1)

# What make check goes over: BASE:DEBUG of each run.
RUNS ?= 7.3: 7.3:1 6.12:

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

#: direct-to-BIO for Linux
#:
#:   make run         boot our kernel in QEMU and show direct I/O at work; on a
#:                    terminal, leaves you at a shell in the guest
#:   make check       all tests: 7.3, 7.3 with DEBUG=1, 6.12; one of them when
#:                    BASE, KSRC or DEBUG is given
#:   make check-base  the same tests on the pristine kernels
#:   make bench       instructions per I/O, the pristine kernel against ours
#:   make bench-readahead
#:                    time and bytes that readahead takes, pristine and ours, by
#:                    pattern of reads; PATTERNS='GLOB+GLOB' DISKS=1ms SEED=n
#:   make profile     the same for one WORKLOAD, function by function
#:   make scenarios   what was asked for from 2001 to 2004, S1 to S8, likewise
#:   make scaling     several threads on one file and on many, and their locks
#:   make results     put the figures of the last bench into README.md
#:   make tree        assemble the patched kernel sources in build/<base>/tree
#:   make build       build the kernel, the selftests and raw(8) from them
#:   make series      write the patches as mail to build/series/<base>/
#:   make lint        checkpatch, sparse, W=1 and kernel-doc on what we touch
#:   make rebase      which topic still applies to KSRC; changes nothing
#:   make deb         Debian packages of a full kernel with the series
#:   make clean       remove build/
#:
#: Variables, all of them also from the environment:
#:
#:   BASE=7.3         the kernel to work on, 7.3 or 6.12
#:   KSRC=dir         a kernel tree of your own instead, a git clone or an
#:                    unpacked tarball; it is only read
#:   DEBUG=1          KASAN, lockdep, kmemleak, fault injection and more
#:   LLVM=1           build with clang and lld
#:   PRISTINE=1       build the kernel without our patches
#:   JOBS=n           compilers at a time; one for each processor by default
#:   TESTS='a b'      make check: only these selftests
#:   ROWS=a.*+b.*     make bench: only these workloads, TARGET.METHOD.RW.SIZE.MEMORY
#:   ONLY=S2+S5       make scenarios: only these
#:   WORKLOAD=...     make profile: which ones, like ROWS
#:   CHECKS='a b'     make lint: only these checks; coccinelle has to be asked for
#:   FULL=1           make series, make lint: leave nothing out that takes long
#:   CONFIG_FILE=f    make deb: the configuration to start from
#:
#: Sources, packages and the compiler cache are kept in ~/.cache/direct-bio
#: (XDG_CACHE_HOME). Missing Debian packages are installed, by root or sudo.

tree build run:
	@harness/$@.sh

check:
	@harness/check.sh $(if $(ONE),"$$BASE:$$DEBUG",$(RUNS))

check-base:
	@PRISTINE=1 harness/check.sh $(if $(ONE),"$$BASE:$$DEBUG",7.3: 6.12:)

bench bench-readahead profile scenarios scaling results:
	@harness/$@.sh

series rebase lint deb:
	@harness/pristine.sh harness/$@.sh

clean:
	rm -rf build

.PHONY: help tree build run check check-base bench bench-readahead \
	profile scenarios scaling results series rebase lint deb clean
