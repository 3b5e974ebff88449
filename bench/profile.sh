#!/bin/sh
# SPDX-License-Identifier: MIT
#
# profile.sh XBENCH OUT EXPERIMENT [ARG...] -- where the time of a benchmark goes.
#
# With perf(1): perf record of the program and its processes, by the cycles of the processor
# or, where there is no such counter, by time; the call graph into OUT/perf.txt.  Without it:
# callgrind, which is slow, so give small arguments; a list of functions by instructions into
# OUT/callgrind.txt.
#
#   bench/profile.sh bench/xbench profile insert --nondurable --systems btree --count 20000
set -eu

if [ $# -lt 3 ]; then
    sed -n '4,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
xbench=$1
out=$2
shift 2
mkdir -p "$out"

# libtool's wrapper script is not the program.
program=$(dirname "$xbench")/.libs/$(basename "$xbench")
if [ -x "$program" ]; then
    LD_LIBRARY_PATH=$(cd "$(dirname "$xbench")/.." && pwd)/.libs:${LD_LIBRARY_PATH:-}
    export LD_LIBRARY_PATH
else
    program=$xbench
fi

if command -v perf >/dev/null &&
    perf record -q -o "$out/perf.data" -e cpu-clock -- true >/dev/null 2>&1; then
    event=cpu-clock
    if perf stat -x, -e cycles -- true 2>&1 | grep -q '^[0-9]'; then
        event=cycles
    fi
    perf record -q -g -F 999 -e "$event" -o "$out/perf.data" -- "$program" "$@"
    perf report -i "$out/perf.data" --stdio --no-children -G >"$out/perf.txt" 2>/dev/null
    grep -v '^#' "$out/perf.txt" | grep '%' | grep -v -- '--' | head -25
    echo "profile.sh: by $event, in $out/perf.txt"
elif command -v valgrind >/dev/null; then
    # The page faults that libxac handles need the registers of the fault.
    valgrind --tool=callgrind --trace-children=yes -q \
        --vex-iropt-register-updates=allregs-at-mem-access \
        --callgrind-out-file="$out/callgrind.out.%p" "$program" "$@"
    for file in "$out"/callgrind.out.*; do
        callgrind_annotate "$file"
    done >"$out/callgrind.txt"
    head -60 "$out/callgrind.txt"
    echo "profile.sh: by instructions, in $out/callgrind.txt"
else
    echo "profile.sh: needs perf or valgrind" >&2
    exit 1
fi
