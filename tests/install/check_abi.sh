#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_abi.sh -- programs that were linked before still work with the library that was built.
#
# GOAL    what the library exports, and what the headers declare, is as abi/libxac.abi says.
#         Each kind of change that would break such a program is found, and none of them gets
#         into the list by --update.  What is added where it may be is told, and gets into it.
# METHOD  scripts/check_abi with the library, then with headers that are changed by sed, and
#         with libraries of empty functions.  The exit code is 0 passed, 77 skipped.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=${top_builddir:-.}
library=$build/.libs/libxac.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

[ -e "$library" ] || { echo "check_abi: skipped, there is no shared library"; exit 77; }
for program in python3 readelf ${CC:-gcc}; do
    command -v $program >/dev/null || { echo "check_abi: skipped, no $program"; exit 77; }
done

fail()
{
    cat "$tmp/out"
    echo "check_abi: $*"
    exit 1
}

# check OPTION... -- compare the changed headers, or a changed library, with a copy of the list.
check()
{
    "$source_dir/scripts/check_abi" --library "$library" --include "$tmp/include" \
        --list "$tmp/list" "$@" >"$tmp/out" 2>&1
}

# fresh -- headers and list as they are.
fresh()
{
    rm -rf "$tmp/include"
    cp -R "$source_dir/include" "$tmp/include"
    chmod -R u+w "$tmp/include"
    cp "$source_dir/abi/libxac.abi" "$tmp/list"
    chmod u+w "$tmp/list"
    library=$build/.libs/libxac.so
}

# change HEADER SED-SCRIPT -- start afresh, change a header, and see that it has changed.
change()
{
    fresh
    sed "$2" "$source_dir/include/$1" >"$tmp/include/$1"
    ! cmp -s "$source_dir/include/$1" "$tmp/include/$1" || fail "nothing changed by $2"
}

# breaks WORDS -- the change is found, named so, and not taken into the list.
breaks()
{
    ! check || fail "not found: $1"
    grep -q "$1" "$tmp/out" || fail "no words: $1"
    ! check --update || fail "taken into the list: $1"
    cmp -s "$source_dir/abi/libxac.abi" "$tmp/list" || fail "the list has changed: $1"
    echo "found: $1"
}

# adds WORDS -- the addition is told, and then taken into the list.
adds()
{
    ! check || fail "not told: $1"
    grep -q "$1 is new, and not in the list: run scripts/check_abi --update" "$tmp/out" ||
        fail "no words: $1"
    check --update || fail "not taken into the list: $1"
    check || fail "told again: $1"
    echo "told: $1"
}

# exporting MAP -- a library that exports what a version script names, and nothing else.
exporting()
{
    sed -n 's/^    \(.*\);$/int \1(void) { return 0; }/p' "$1" | grep -v '[*]' >"$tmp/functions.c"
    ${CC:-gcc} -shared -fPIC -w -fno-builtin -Wl,-soname,"${2:-$soname}" -Wl,--version-script="$1" \
        "$tmp/functions.c" -o "$tmp/libxac.so"
    library=$tmp/libxac.so
}

fresh
check || fail "the library and abi/libxac.abi differ"
tail -n 1 "$tmp/out"
soname=$(sed -n 's/^soname //p' "$tmp/list")
map=$source_dir/abi/libxac.map

# Structures.
change xac_stats.h 's/^    uint64_t commits;/    uint64_t another;\n&/'
breaks "field xac_stats commits: was 0 8, is 8 8"
change xac_stats.h '/^    uint64_t aborts_user;/d'
breaks "field xac_stats aborts_user is gone"
change xac_stats.h 's/char file\[256\]/char file[264]/'
breaks "field xac_conflict file: was 16 256, is 16 264"
change xac_stats.h '/^struct xac_conflict {/,/^}/s/^}/    int another;\n}/'
breaks "struct xac_conflict has padding at its end"
change xac_stats.h '/^struct xac_conflict {/,/^}/s/^}/    uint64_t another;\n}/'
adds "field xac_conflict another"
change xac_frames.h '/^struct xac_frames_config {/,/^}/s/^}/    uint64_t another;\n}/'
breaks "field xac_frames_config another is new, in a structure that is not given with its size"

# Constants.
change xac_stats.h 's/XAC_ENGINE_SCAN = 4/XAC_ENGINE_SCAN = 5/'
breaks "constant XAC_ENGINE_SCAN: was 4, is 5"
change xac_codes.h 's/^\(#define XAC_ABORTED *\)10001/\110004/'
breaks "constant XAC_ABORTED: was 10001, is 10004"
change xac_stats.h 's/XAC_CONFLICT_USER = 5,/XAC_CONFLICT_USER = 5, XAC_CONFLICT_ANOTHER = 99,/'
adds "constant XAC_CONFLICT_ANOTHER"

# Functions.
change xac_stats.h 's/\(xac_get_stats(struct xac_stats \*out\), size_t size/\1, int size/'
breaks "conflicting types for .xac_get_stats"
fresh
sed '/^    xac_sync;/d' "$map" >"$tmp/map"
exporting "$tmp/map"
breaks "symbol xac_sync XAC_1.0 is gone"
fresh
sed 's/^    xac_abort;/&\n    xac_another;/' "$map" >"$tmp/map"
exporting "$tmp/map"
adds "symbol xac_another XAC_1.0"
fresh
sed 's/^XAC_1.0 {/XAC_9.0 {/' "$map" >"$tmp/map"
exporting "$tmp/map"
breaks "symbol xac_sync XAC_1.0 is gone"

# A program asks for the version of its symbols when it starts.
cat >"$tmp/program.c" <<'EOF'
#include <xac.h>
int main(void) { return xac_sync(); }
EOF
exporting "$map" "$soname"
${CC:-gcc} -I"$source_dir/include" "$tmp/program.c" "$library" -o "$tmp/program"
mkdir "$tmp/lib"
mv "$library" "$tmp/lib/$soname"
LD_LIBRARY_PATH=$tmp/lib "$tmp/program" || fail "the program does not run"
exporting "$tmp/map" "$soname"
mv "$library" "$tmp/lib/$soname"
! LD_LIBRARY_PATH=$tmp/lib "$tmp/program" 2>"$tmp/out" || fail "it runs without XAC_1.0"
grep -q "version .XAC_1.0. not found" "$tmp/out" || fail "no words: XAC_1.0"
echo "found: a library without XAC_1.0"

# The other library has a list of its own.
library_of_tree=$build/.libs/libxactree.so
check_tree()
{
    "$source_dir/scripts/check_abi" --tree --library "$library_of_tree" --include "$tmp/include" \
        --list "$source_dir/abi/libxactree.abi" >"$tmp/out" 2>&1
}
fresh
check_tree || fail "libxactree and abi/libxactree.abi differ"
change xactree.h 's/XACTREE_REPLACE = 2/XACTREE_REPLACE = 3/'
! check_tree || fail "not found: XACTREE_REPLACE"
grep -q "constant XACTREE_REPLACE: was 2, is 3" "$tmp/out" || fail "no words: XACTREE_REPLACE"
echo "found: another number in libxactree"

fresh
exporting "$map" libxac.so.99
breaks "soname: was $soname, is libxac.so.99"

echo "check_abi: passed"
