#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# series.sh [dir]: writes the series as mail to build/series/<base>/ or to the
# folder given, one topic a commit, and proves that "git am" turns the pristine
# sources into the assembled ones.
#
# The commits are made in a small repository that holds only the files that the
# series touches. FULL=1 also applies the mail to the whole pristine tree.
set -eu

. "$(dirname "$0")/common.sh"

resolve
topics=$ROOT/harness/topics.sh
out=${1:-$ROOT/build/series/$NAME}

ident=$(git -C "$ROOT" -c user.useConfigOnly=true var GIT_AUTHOR_IDENT 2>&1) ||
	die "git does not know who you are, and each mail needs an author and a
Signed-off-by. Tell it once:
	git config --global user.name  'Your Name'
	git config --global user.email you@example.com"
GIT_AUTHOR_NAME=${ident%% <*}
GIT_AUTHOR_EMAIL=${ident#*<}
GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL%%>*}
GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME
GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL

# The mail is dated as the commit that it is made from, so that the same commit
# gives the same mail.
when=$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null) || when=$(date +%s)

# Whatever else the user told git (prefixes, signatures, hooks) stays outside.
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 TZ=UTC
export GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM TZ

touched=$("$topics" touched "$PBASE")

mkdir -p "$ROOT/build/series"
tmp=$(mktemp -d "$ROOT/build/series/.tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

sgit()
{
	git -C "$tmp/repo" -c core.abbrev=12 -c gc.auto=0 "$@"
}

new_repo()
{
	git init -q "$1"
	git -C "$1" symbolic-ref HEAD refs/heads/series
}

copy_touched()
{
	for f in $touched; do
		if [ -e "$SRC/$f" ]; then
			mkdir -p "$1/$(dirname "$f")"
			cp "$SRC/$f" "$1/$f"
		fi
	done
}

# Commits everything in the repository $1, or what is in its index with "keep",
# with the message on standard input.
commit()
{
	when=$((when + 1))
	[ "${2:-}" = keep ] || git -C "$1" add -A -f
	GIT_AUTHOR_DATE="$when +0000" GIT_COMMITTER_DATE="$when +0000" \
		git -C "$1" commit -q --cleanup=verbatim -F -
}

version=$(kmake -s -C "$SRC" kernelversion)
new_repo "$tmp/repo"
copy_touched "$tmp/repo"
echo "Linux $version" | commit "$tmp/repo"
start=$(sgit rev-parse HEAD)

for topic in $("$topics" list "$PBASE"); do
	"$topics" apply "$PBASE" "$topic" "$tmp/repo"
	"$topics" message "$topic" >"$tmp/message"
	printf '\nSigned-off-by: %s <%s>\n' \
		"$GIT_AUTHOR_NAME" "$GIT_AUTHOR_EMAIL" >>"$tmp/message"
	commit "$tmp/repo" <"$tmp/message" ||
		die "topic $topic changes nothing in Linux $version"
done

sgit config branch.series.description \
	"$(sed "s/@VERSION@/$version/" "$ROOT/patches/cover")"
GIT_COMMITTER_DATE="$when +0000" \
sgit format-patch -q -M --stat --cover-letter --zero-commit --no-signature \
	--cover-from-description=subject -o "$tmp/mail" "$start"

# The proof: other repositories, the mail alone.
check_am()
{
	git -C "$1" am -q "$tmp"/mail/*-*.patch >"$tmp/am.log" 2>&1 || {
		cat "$tmp/am.log" >&2
		die "git am fails on $2"
	}
	for f in $touched; do
		want=$(sgit rev-parse -q --verify "HEAD:$f") || want=none
		got=$(git -C "$1" rev-parse -q --verify "HEAD:$f") || got=none
		[ "$want" = "$got" ] ||
			die "git am on $2 gives another $f than the topics do"
	done
}

mv "$tmp/mail/0000-cover-letter.patch" "$tmp/cover"
new_repo "$tmp/am"
copy_touched "$tmp/am"
echo pristine | commit "$tmp/am"
check_am "$tmp/am" "the touched files of Linux $version"

if [ "${FULL:-0}" = 1 ]; then
	say "committing all of Linux $version for FULL=1 ..."
	# Straight into one pack; the work tree needs the touched files only.
	new_repo "$tmp/full"
	git -C "$tmp/full" config core.bigFileThreshold 1
	git -C "$tmp/full" config core.compression 0
	git -C "$tmp/full" --work-tree="$SRC" add -A -f -- . ':!.git'
	echo pristine | commit "$tmp/full" keep
	copy_touched "$tmp/full"
	check_am "$tmp/full" "all of Linux $version"
	changed=$(git -C "$tmp/full" diff --name-only HEAD~"$(sgit rev-list \
		--count "$start"..HEAD)" HEAD | sort)
	[ "$changed" = "$(sgit diff --name-only "$start" HEAD | sort)" ] ||
		die "git am changed other files than the topics do"
fi

mv "$tmp/cover" "$tmp/mail/0000-cover-letter.patch"
mkdir -p "$(dirname "$out")"
rm -rf "$out"
mv "$tmp/mail" "$out"
echo "${out#"$ROOT/"}: $(sgit rev-list --count "$start"..HEAD) patches and a" \
	"cover letter against Linux $version; git am gives the assembled tree"
