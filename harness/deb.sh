#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Builds Debian packages of a full kernel with the series, in build/<base>/deb.
#
# The configuration is the file CONFIG_FILE, or this machine's running kernel's,
# or the one of Debian's own kernel of the base; with RAW_DRIVER=m in each case.
# What is left out of it, and why, is told as it goes.
set -eu
. "$(dirname "$0")/common.sh"
: "${CONFIG_FILE:=}"

"$ROOT/harness/setup.sh"
"$ROOT/harness/setup.sh" dpkg-dev debhelper fakeroot libdw-dev libssl-dev openssl \
	python3 zstd dwarves
"$ROOT/harness/tree.sh"
resolve
out=$ROOT/build/$NAME/deb/linux

CCACHE_DIR=$CACHE/ccache
export CCACHE_DIR

compiler
kernel()
{
	kmake -C "$TREE" O="$out" ${LLVM:+LLVM="$LLVM"} \
		CC="ccache $cc" \
		-j"$JOBS" "$@"
}

option()
{
	"$TREE/scripts/config" --file "$out/.config" "$@"
}

# Debian's own configuration for this architecture, out of its package.
debian_config()
{
	deb=$("$ROOT/harness/fetch.sh" "$PBASE" "linux-config-$PBASE")
	arch=$(dpkg --print-architecture)
	name=config.${arch}_none_$arch.xz
	dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards "*/$name" |
		xz -dc >"$out/.config"
	[ -s "$out/.config" ] || die "${deb##*/} has no $name: give CONFIG_FILE"
	say "configuration: $name of ${deb##*/}"
}

choose_config()
{
	running=/boot/config-$(uname -r)
	if [ -n "$CONFIG_FILE" ]; then
		[ -f "$CONFIG_FILE" ] || die "CONFIG_FILE=$CONFIG_FILE: no such file"
		cp "$CONFIG_FILE" "$out/.config"
		say "configuration: $CONFIG_FILE"
	elif [ -f "$running" ]; then
		cp "$running" "$out/.config"
		say "configuration: $running"
	else
		debian_config
	fi
}

adapt_config()
{
	option --module RAW_DRIVER
	option --set-str LOCALVERSION -dio --disable LOCALVERSION_AUTO
	# A distribution names its own certificates, which are not here.
	option --set-str SYSTEM_TRUSTED_KEYS '' --set-str SYSTEM_REVOCATION_KEYS ''
	option --set-str MODULE_SIG_KEY certs/signing_key.pem
	# Debugging information makes the build twice as long and 20 GB large.
	option --enable DEBUG_INFO_NONE --disable DEBUG_INFO_BTF \
		--disable DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT \
		--disable DEBUG_INFO_DWARF4 --disable DEBUG_INFO_DWARF5
	say "no debugging information, so no BTF either: BPF programs that need" \
		"it do not load"
	kernel -s olddefconfig >"$out/log" 2>&1 || {
		cat "$out/log" >&2
		die "the kernel does not accept the configuration"
	}
	grep -qx CONFIG_RAW_DRIVER=m "$out/.config" ||
		die "CONFIG_RAW_DRIVER=m is not possible with this configuration;
it needs CONFIG_MODULES and CONFIG_BLOCK"
	if grep -qx CONFIG_MODULE_SIG=y "$out/.config"; then
		say "modules are signed with a key made for this build; secure boot" \
			"does not know it, nor does anyone sign the kernel"
	fi
}

mkdir -p "$out"
space "$out" 3000
choose_config
adapt_config
modules=$(grep -c '=m$' "$out/.config")
if [ "$modules" -gt 500 ]; then
	space "$out" 15000
	say "$modules modules: this takes an hour or more on a small machine"
fi

rm -f "$out"/../*.deb
say "building, log in ${out#"$ROOT/"}/log ..."
began=$(date +%s)
kernel -s bindeb-pkg >"$out/log" 2>&1 || {
	tail -n 30 "$out/log" >&2
	die "the build failed; the whole log is in ${out#"$ROOT/"}/log"
}
say "building: $(($(date +%s) - began)) s"

for deb in "$out"/../*.deb; do
	echo "build/$NAME/deb/${deb##*/}"
done
image=$(find "$out/.." -maxdepth 1 -name 'linux-image-*' ! -name '*-dbg_*' |
	head -n 1)
echo "Install it and boot it:"
echo "    sudo apt install ./build/$NAME/deb/${image##*/}"
