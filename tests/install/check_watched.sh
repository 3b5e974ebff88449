#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_watched.sh -- programs under sanitizers, gdb and valgrind, with the library as it was
# built, which knows nothing of them.
#
# GOAL    the program watched.c works and no report is made: compiled with the thread and with
#         the address sanitizer, by gcc and by clang, in a directory where an ordinary program
#         has mapped its files before; in gdb with doc/libxac.gdb; in valgrind with the option
#         that it needs.  Without the option, xInit() fails and names it.
# METHOD  what is not installed here is not tested, and that is said.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
library=$build/.libs/libxac.so
option=--vex-iropt-register-updates=allregs-at-mem-access
unset ASAN_OPTIONS TSAN_OPTIONS LD_PRELOAD || true

[ -e "$library" ] || { echo "check_watched: no shared library was built"; exit 77; }
if nm -D --undefined-only "$library" | grep -q -e ' __asan_init' -e ' __tsan_func_entry'; then
    echo "check_watched: the library itself was compiled with a sanitizer"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/run"
n_checks=0

fail()
{
    cat "$tmp/log"
    echo "check_watched: $*"
    exit 1
}

# compile COMPILER PROGRAM OPTION...
compile()
{
    compiler=$1
    program=$2
    shift 2
    $compiler "$@" -O1 -g -Wall -Werror -I"$source_dir/include" \
        "$source_dir/tests/install/watched.c" -L"$build/.libs" -lxac \
        -Wl,-rpath,"$build/.libs" -pthread -o "$tmp/$program" >"$tmp/log" 2>&1
}

# run NAME CODE WORDS COMMAND...: its exit code, and what it prints
run()
{
    what=$1
    want=$2
    words=$3
    shift 3
    rc=0
    (cd "$tmp/run" && timeout -s KILL 120 "$@") >"$tmp/log" 2>&1 || rc=$?
    [ "$rc" = "$want" ] || fail "$what: exit code $rc, not $want"
    grep -q -e "$words" "$tmp/log" || fail "$what: does not say: $words"
    grep -q -e "Sanitizer" "$tmp/log" && fail "$what: a report"
    n_checks=$((n_checks + 1))
    echo "$what: well"
}

# sanitize COMPILER WHICH
sanitize()
{
    echo "int main(void) { return 0; }" >"$tmp/empty.c"
    if ! { "$1" -fsanitize="$2" "$tmp/empty.c" -o "$tmp/empty" && "$tmp/empty"; } \
        >/dev/null 2>&1; then
        echo "$1 -fsanitize=$2: not to be had, not tested"
        return
    fi
    compile "$1" sanitized -fsanitize="$2" || fail "$1 -fsanitize=$2: does not compile"
    run "$1 -fsanitize=$2" 0 "^watched: well" "$tmp/sanitized"
}

compile "${CC:-cc}" plain || fail "does not compile"
run "plain" 0 "^watched: well" "$tmp/plain"
for which in thread address; do
    sanitize gcc $which
    sanitize clang $which
done

if command -v gdb >/dev/null; then
    run "gdb" 0 "exited normally" gdb -nx -q -batch -iex "set debuginfod enabled off" \
        -x "$source_dir/doc/libxac.gdb" -ex run "$tmp/plain"
else
    echo "gdb: not installed, not tested"
fi

if command -v valgrind >/dev/null; then
    run "valgrind" 0 "^watched: well" valgrind -q $option "$tmp/plain"
    if [ "$(uname -m)" = x86_64 ]; then
        run "valgrind without its option" 3 "valgrind must be run with $option" \
            valgrind -q "$tmp/plain"
    fi
else
    echo "valgrind: not installed, not tested"
fi

echo "100%: Checks: $n_checks, Failures: 0, Errors: 0"
