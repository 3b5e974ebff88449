#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_libraries.sh -- threads that a program does not start itself work inside of transactions.
#
# GOAL    Loops of OpenMP, parallel algorithms of C++ and the threads of OpenBLAS under NumPy run
#         unchanged, commit and are rolled back, under each engine, durably and not.
# METHOD  The programs openmp.c, parallel.cpp and blas.py, with the library that has been built.
set -u
here=$(cd "${srcdir:-.}" && pwd) || exit 1
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
library=$build/.libs/libxac.so
checks=0
failures=0
skipped=0

if ! [ -e "$library" ]; then
    echo "the library is not shared in this build, not tested"
    exit 77
fi
export LD_LIBRARY_PATH="$build/.libs"
export OPENBLAS_NUM_THREADS=4
unset XAC_CHECKING

# compile COMPILER OPTIONS SOURCE OUTPUT MORE -- ret whether that is possible here.
compile()
{
    # shellcheck disable=SC2086 # several options
    $1 $2 -O2 -Wall -Wextra -I"$here/include" "$here/tests/api/team/$3" -o "$work/$4" \
        -L"$build/.libs" -lxac $5 >"$work/log" 2>&1 && return
    echo "$3: cannot be compiled here, skipped"
    head -n 5 "$work/log"
    skipped=$((skipped + 1))
    return 1
}

# runs NAME COMMAND... -- under each engine, durably and not.
runs()
{
    name=$1
    shift
    for engine in uffd sigsegv scan; do
        for durably in no yes; do
            rm -rf "$work/run" && mkdir "$work/run" && cd "$work/run" || exit 1
            if [ $durably = yes ]; then export DURABLY=1; else unset DURABLY; fi
            checks=$((checks + 1))
            XAC_ENGINE=$engine timeout 200 "$@" >"$work/log" 2>&1
            case $? in
            0) ;;
            77)
                skipped=$((skipped + 1))
                cat "$work/log"
                ;;
            *)
                failures=$((failures + 1))
                echo "$name, $engine, durable: $durably: fails"
                head -n 20 "$work/log"
                ;;
            esac
        done
    done
}

if compile "${CC:-cc}" "-fopenmp" openmp.c openmp ""; then
    runs openmp "$work/openmp"
fi
if compile "${CXX:-c++}" "-std=c++17" parallel.cpp parallel "-ltbb"; then
    runs parallel "$work/parallel"
fi
python=${PYTHON:-/usr/bin/python3} # Debian's, which has the packages
team=$(sed -n 's/^ *XAC_OPT_TEAM = \([0-9]*\).*/\1/p' "$here/include/xac_options.h")
if "$python" -c 'import numpy' 2>/dev/null; then
    runs blas "$python" "$here/tests/api/team/blas.py" "$library" "$team"
else
    skipped=$((skipped + 1))
fi
echo "check_libraries: $checks runs, $failures failures, $skipped skipped"
[ "$failures" -eq 0 ]
