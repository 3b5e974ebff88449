#!/bin/sh
# SPDX-License-Identifier: MIT
#
# nightly.sh HOURS [--only PART,...] [--page FILE] [--runs FILE] -- what finds defects by trying for long.
#
# Installs what is needed, builds in $XAC_BUILD (default build/ in the source tree), and spends HOURS, which may
# be a fraction, on power cuts, kills, histories, engines, options, page frames, fuzzing, sanitizers, and deliberate
# bugs; each has its share.  Then it prints one page: hours, cases, and what was found, of this night and of all nights
# whose runs are in FILE.  See tests/nightly.py.
# Exit code 1 if something was found.
set -eu

cd "$(dirname "$0")/.."
case ${1:-} in
'' | -h | --help)
    sed -n 's/^# \(nightly.sh .*\) -- .*/usage: \1/p; /^# Installs/,/^# Exit/s/^# //p' scripts/nightly.sh
    [ $# -gt 0 ] || exit 2
    exit 0
    ;;
esac
build=${XAC_BUILD:-build}/night
scripts/setup.sh >/dev/null
mkdir -p "$build"
scripts/build.sh "$build"
make -C "$build" -s -j2 check TESTS= >"$build/check-build.log" 2>&1 || {
    tail -n 40 "$build/check-build.log" >&2
    exit 1
}
exec python3 -B tests/nightly.py . "$build" "$@"
