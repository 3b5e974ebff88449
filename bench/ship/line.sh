#!/bin/sh
# SPDX-License-Identifier: MIT
#
# line.sh BUILD [--seconds N] [--pairs N] [--breaks N] [--kills N] -- all that is promised of a standby, in one command.
#
# Durable inserts for N seconds (60), shipped over a connection with 1 ms of delay in each direction, and not shipped, in turn,
# N pairs (7): lag in bytes and milliseconds, how much slower the source is, and whether all records are equal
# (ship.sh).  The same with processors that do not halt, which is what it costs and no more.  Then the connection is broken N times (200), and each side killed N times (50), under load: nothing is
# lost and nothing is twice (check_serve).  For a machine at rest: some 40 minutes.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
shift
seconds=60 pairs=7 breaks=200 kills=50
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --pairs | --breaks | --kills) eval "${1#--}=\$2" ;;
    *)
        sed -n '4,9s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

rc=0
"$here/ship.sh" "$build" --seconds "$seconds" --pairs "$pairs" --delay 1 || rc=1
"$here/ship.sh" "$build" --seconds "$seconds" --pairs "$pairs" --delay 1 --awake || rc=1
(cd "$build" && make -s tests/unit/tools/check_serve xship >/dev/null &&
    top_builddir=$build XAC_BREAKS=$breaks XAC_KILLS=$((2 * kills)) tests/unit/tools/check_serve) || rc=1
[ "$rc" = 0 ] && echo "$breaks breaks, $kills kills of each side: nothing lost, nothing twice"
exit "$rc"
