#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_probes.sh -- the static probes of libxac.so.
#
# GOAL    The library has the probes that doc/probes.md lists, each with as many arguments, and no others;
#         a debugger that stops at one reads the right arguments; and bpftrace compiles the examples.
# METHOD  The notes of the section .note.stapsdt; the program of README.md under gdb, if there is one, whose
#         first commit has the number 1 and changes one page.
set -eu

srcdir=$(cd "${srcdir:-.}" && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
grep -q '^#define HAVE_PROBES 1' "$build/config.h" || { echo "built without probes"; exit 77; }
tmp=$(mktemp -d)
shm=
trap 'rm -rf "$tmp" ${shm:+"$shm"}' EXIT
if [ -w /dev/shm ]; then # gdb ends the program, which leaves something there
    shm=$(mktemp -d /dev/shm/xac-test-XXXXXX)
    export XAC_SHM_DIR="$shm"
fi

fail()
{
    echo "check_probes: $*"
    exit 1
}

# What the library has: "name number-of-arguments".
readelf -n "$build/.libs/libxac.so" | awk '
    $1 == "Provider:" { provider = $2 }
    $1 == "Name:" { name = $2 }
    $1 == "Arguments:" { if (provider == "libxac") print name, NF - 1 }' |
    LC_ALL=C sort -u >"$tmp/has"
# What the document says: | `name` | `arg`, `arg` | ...
awk -F'|' '$2 ~ /^ `[a-z]+` $/ { gsub(/[` ]/, "", $2); print $2, split($3, unused, ",") }' \
    "$srcdir/doc/probes.md" | LC_ALL=C sort >"$tmp/said"
[ "$(wc -l <"$tmp/said")" -ge 6 ] || fail "doc/probes.md lists too few probes"
diff "$tmp/said" "$tmp/has" || fail "doc/probes.md (<) and libxac.so (>) differ"

if command -v gdb >/dev/null; then
    sed -n '/^```c$/,/^```$/p' "$srcdir/README.md" | sed '1d;/^```$/,$d' >"$tmp/count.c"
    ${CC:-gcc} -I"$srcdir/include" "$tmp/count.c" -L"$build/.libs" -lxac -o "$tmp/count"
    (cd "$tmp" && LD_LIBRARY_PATH=$build/.libs gdb -nx -q -batch -iex "set debuginfod enabled off" \
        -ex "handle SIGSEGV SIGBUS nostop noprint pass" -ex "set breakpoint pending on" \
        -ex "break main" -ex run -ex "break -probe-stap libxac:commit" -ex continue \
        -ex 'printf "commit %d of %d pages\n", $_probe_arg0, $_probe_arg1' \
        ./count) >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "gdb"; }
    grep -qx "commit 1 of 1 pages" "$tmp/log" || { cat "$tmp/log"; fail "arguments under gdb"; }
    echo "gdb: stops at a commit"
fi
# The examples with bpftrace can be compiled, with probes and arguments as they are.  Nothing is attached.
if command -v bpftrace >/dev/null && [ "$(id -u)" = 0 ]; then
    awk -v out="$tmp/example" '/^```sh$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print >(out n) }' \
        "$srcdir/doc/probes.md"
    for example in "$tmp"/example*; do
        sed 's/^bpftrace -e/bpftrace -d -e/' "$example" >"$tmp/dry"
        LIB=$build/.libs/libxac.so timeout 20 sh "$tmp/dry" >"$tmp/log" 2>&1 ||
            { cat "$example"; tail -n 5 "$tmp/log"; fail "bpftrace"; }
    done
    echo "bpftrace: $(ls "$tmp"/example* | wc -l) examples"
fi
echo "check_probes: $(wc -l <"$tmp/has") probes, 0 problems"
