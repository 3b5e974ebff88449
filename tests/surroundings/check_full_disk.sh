#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_full_disk.sh -- the program of README.md on a full disk.
#
# GOAL    it ends within a second, with words that say what has no room, and works when there is
#         room again; a program that goes on in the same process does so, too.  So it is when
#         /dev/shm is full besides.
# METHOD  the program is taken out of README.md and runs as it stands there, on a tmpfs of 24 MiB
#         in a mount namespace; and with its transaction in a loop that changes the whole
#         segment, without checkpoints, until the log fills the disk: then it makes room and
#         goes on.  Exit code 77 if nothing can be mounted.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
if [ "$(id -u)" != 0 ]; then
    echo "check_full_disk.sh: only root can mount"
    exit 77
fi
if [ "${1:-}" != inside ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    unshare -m true 2>/dev/null || exit 77
    rc=0
    unshare -m "$0" inside "$work" || rc=$?
    exit "$rc"
fi

# From here on in a mount namespace, which unmounts everything at its end.
work=$2
mount --make-rprivate /
mkdir "$work/disk"
mount -t tmpfs -o size=24m tmpfs "$work/disk" || exit 77

fail()
{
    echo "check_full_disk.sh: $*"
    [ ! -f "$work/words" ] || cat "$work/words"
    exit 1
}

# compile NAME
compile()
{
    ${CC:-gcc} -Wall -Wextra -Werror -I"$source_dir/include" "$work/$1.c" \
        -L"$build/.libs" -Wl,-rpath,"$build/.libs" -lxac -o "$work/$1" ||
        fail "$1 does not compile"
}

# fill -- take the room that is left, in files of this name.
fill()
{
    dd if=/dev/zero of="$1" bs=64k 2>/dev/null || true
    dd if=/dev/zero of="$1.rest" bs=1k 2>/dev/null || true
}

# must_end PROGRAM SECONDS WORDS -- within that time, with these words.
must_end()
{
    rc=0
    timeout -s KILL "$2" "$work/$1" >"$work/printed" 2>"$work/words" || rc=$?
    [ "$rc" = 1 ] || fail "$1: exit code $rc on a full disk"
    grep -q "$3" "$work/words" || fail "$1 does not say $3"
    echo "$1: $(cat "$work/words")"
}

# must_count N -- the program, with room, prints that number.
must_count()
{
    [ "$("$work/count")" = "x[0] is $1" ] || fail "not $1 with room"
}

sed -n '/^```c$/,/^```$/p' "$source_dir/README.md" | sed '1d;/^```$/,$d' >"$work/count.c"
compile count
cd "$work/disk"
fill ballast
must_end count 1 "No space left on device"
rm ballast*
must_count 1
fill ballast
must_count 2 # it needs no more room than it has had
rm ballast*

# The loop.  The second time it ends for good.
sed -e 's|    int rc = xInit|    int n = 0, rc = xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0);\
    rc = xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 20);\
    rc = xInit|' \
    -e 's|^    do {|again:\n    do {|' \
    -e 's|x\[0\]++;|for (int i = 0; i < 10 * 1024; i++) x[i] += n + 1;|' \
    -e '/printf("x\[0\]/d' \
    -e 's|^    if (rc != COMMITTED).*|    if (rc == COMMITTED \&\& ++n < 5000) goto again;\n&|' \
    -e 's|^    xMunmap|    if (rc == ENOSPC \&\& remove("ballast") == 0) goto again;\n&|' \
    -e '1i #include <errno.h>' "$work/count.c" >"$work/loop.c"
compile loop
for shm in /dev/shm "$work/disk"; do
    rm -rf ./*
    dd if=/dev/zero of=ballast bs=1M count=4 2>/dev/null
    export XAC_SHM_DIR="$shm"
    must_end loop 10 "make a log segment of .* bytes: No space left on device"
    [ "$(grep -c '^xend: xac-log' "$work/words")" = 2 ] || fail "it has not gone on"
    [ ! -e ballast ] || fail "it has made no room"
    rm -r db input.db
    fill ballast
    must_end count 1 "No space left on device"
    rm ballast*
    must_count 1
done
echo "check_full_disk.sh: 0 problems"
