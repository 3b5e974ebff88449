#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_twice.sh -- two libraries that use libxac, unaware of each other, in one program.
#
# GOAL    each opens its own environment, in a program that knows nothing of libxac; neither sees
#         the other's pages, options, counters or errors; transactions of both nest; a fork
#         serves both; the program's own faults come to its own handler, before, between and after.
# METHOD  twice_counter.c is compiled into two shared objects, which twice.c loads.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
library=$build/.libs/libxac.so

[ -e "$library" ] || { echo "check_twice: no shared library was built"; exit 77; }
if nm -D --undefined-only "$library" | grep -q -e ' __asan_init' -e ' __tsan_func_entry'; then
    echo "check_twice: the library itself was compiled with a sanitizer"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

here=$source_dir/tests/install
for side in left right; do
    ${CC:-cc} -O1 -g -Wall -Wextra -Werror -fPIC -shared -I"$source_dir/include" \
        "$here/twice_counter.c" -L"$build/.libs" -lxac -Wl,-rpath,"$build/.libs" \
        -o "$tmp/$side.so"
done
${CC:-cc} -O1 -g -Wall -Wextra -Werror -pthread -I"$here" "$here/twice.c" -ldl -o "$tmp/twice"

for engine in uffd sigsegv; do
    rm -rf "$tmp/run"
    mkdir "$tmp/run"
    (cd "$tmp/run" && XAC_ENGINE=$engine "$tmp/twice" "$tmp/left.so" "$tmp/right.so")
done
