#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_names.sh -- libxac-itm takes the place of gcc's library.
#
# GOAL    each name that gcc's libitm exports is exported, under the same version; and a program that
#         is linked with both calls ours.
# METHOD  nm; LD_DEBUG of a test program.
set -eu
ours=$top_builddir/.libs/libxac-itm.so
[ -e "$ours" ] || { echo "check_names: no shared library, skipped"; exit 77; }
theirs=$(${CC:-gcc} -print-file-name=libitm.so.1)
[ -e "$theirs" ] || theirs=$(${CC:-gcc} -print-file-name=libitm.so)
[ -e "$theirs" ] || { echo "check_names: gcc has no libitm.so, skipped"; exit 77; }

names()
{
    nm -D --defined-only "$1" | sed -n 's/^[0-9a-f]* [TW] \(.*[^@]\)@@*\(LIBITM_.*\)$/\1@\2/p' | LC_ALL=C sort -u
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
names "$ours" >"$tmp/ours"
names "$theirs" >"$tmp/theirs"
[ -s "$tmp/theirs" ] || { echo "check_names: no names in $theirs"; exit 1; }
missing=$(LC_ALL=C comm -13 "$tmp/ours" "$tmp/theirs")
[ -z "$missing" ] || { echo "check_names: libxac-itm lacks:"; echo "$missing"; exit 1; }

# A program by gcc -fgnu-tm is linked with both.
program=$top_builddir/tests/itm/.libs/check_itm
[ -e "$program" ] || program=$top_builddir/tests/itm/check_itm
LD_LIBRARY_PATH=$top_builddir/.libs LD_BIND_NOW=1 LD_DEBUG=bindings CK_RUN_CASE=none \
    "$program" 2>&1 >/dev/null | grep 'symbol `_ITM_' >"$tmp/bound" || true
grep -q '_ITM_beginTransaction' "$tmp/bound" || { echo "check_names: nothing is bound"; exit 1; }
if grep -v 'to [^ ]*libxac-itm' "$tmp/bound"; then
    echo "check_names: bound to another library"
    exit 1
fi
echo "check_names: $(wc -l <"$tmp/theirs") names"
