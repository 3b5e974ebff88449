#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_pairs.sh -- xac_pairs.h has clang warn in each function bad_ of pairs.c, and in no good_ one.
set -u
top=$(cd "${srcdir:-.}" && pwd)
source=$top/tests/compiled/pairs.c
if ! command -v clang >/dev/null; then
    echo "check_pairs: skipped, there is no clang (package clang)"
    exit 77
fi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# pairs ARGUMENT... -- the check as doc/debugging.md says it.
pairs()
{
    LC_ALL=C clang -fsyntax-only -Wthread-safety -include xac_pairs.h \
        -I"$top/include" -I"$top/compiled" "$@" 2>"$dir/said"
}

# compare NAME ARGUMENT... -- functions with warnings are those with bad_ in the lines compiled.
compare()
{
    name=$1
    shift
    pairs "$@" "$source" || {
        cat "$dir/said"
        exit 1
    }
    # Lines with warnings, then the source: the function of each line.
    sed -n 's/^[^ ]*pairs\.c:\([0-9]*\):.*warning:.*/\1/p' "$dir/said" >"$dir/lines"
    awk 'NR == FNR { warned[$1] = 1; next }
         /^(good|bad)_[a-z_]*\(/ { function_name = $1; sub(/\(.*/, "", function_name) }
         FNR in warned { print function_name }' "$dir/lines" "$source" | sort -u >"$dir/found"
    clang -E -I"$top/include" "$@" "$source" | sed -n 's/^\(bad_[a-z_]*\)(.*/\1/p' | sort -u >"$dir/wanted"
    [ -s "$dir/wanted" ] || {
        echo "check_pairs: $name: no functions"
        exit 1
    }
    diff "$dir/wanted" "$dir/found" || {
        cat "$dir/said"
        echo "check_pairs: $name: not the functions that are bad"
        exit 1
    }
    echo "$name: $(wc -l <"$dir/found") bad functions found"
}

compare "plain"
compare "tested" -DXAC_PAIRS_TESTED
compare "C++" -x c++

# The examples are right.  list.c tests each begin.
for example in fig1_6 fig2_1 fig2_2 fig2_3 fig2_4; do
    pairs -Werror "$top/examples/$example.c" || {
        cat "$dir/said"
        exit 1
    }
done
pairs -Werror -DXAC_PAIRS_TESTED "$top/examples/list.c" || {
    cat "$dir/said"
    exit 1
}
# A compiler that cannot do it says so.
if echo '#include "xac_pairs.h"' | ${CC:-gcc} -I"$top/compiled" -I"$top/include" -fsyntax-only -x c - 2>"$dir/said"; then
    case ${CC:-gcc} in
    *clang*) ;;
    *) echo "check_pairs: not refused without clang" && exit 1 ;;
    esac
fi
