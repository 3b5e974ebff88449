#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_load.sh -- the shared library can be loaded by a program that runs already.
#
# GOAL    a program of its own and Python load it by dlopen() and run transactions in two
#         threads; its thread-local storage is at most 128 bytes, since that is what
#         dlopen() has little of.  Python's faulthandler, enabled after xInit(), and
#         transactions do not take each other's faults.
# METHOD  the library as it was built, without any tunable of the dynamic linker.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
source_dir=$(cd "$(dirname "$0")" && pwd)
library=$build/.libs/libxac.so
tls_max=128
unset LD_PRELOAD GLIBC_TUNABLES || true

[ -e "$library" ] || { echo "check_load: no shared library was built"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/c" "$tmp/python"

# A library without such storage has no segment of that type.
tls=$(LC_ALL=C readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
tls=$((${tls:-0}))
echo "thread-local storage: $tls bytes"
[ "$tls" -le "$tls_max" ] || { echo "check_load: that is more than $tls_max"; exit 1; }

(cd "$tmp/c" && "$build/tests/install/load" "$library")
(cd "$tmp/python" && python3 -B "$source_dir/load.py" "$library")
for engine in uffd sigsegv; do
    (cd "$tmp/python" && XAC_ENGINE=$engine python3 -B "$source_dir/faults.py" "$library")
done
