#!/bin/sh
# SPDX-License-Identifier: MIT
#
# results.sh XBENCH [--quick] [NAME...] -- measure anew, and put the tables and figures into
# doc/results.md and doc/figures.
#
# NAME: experiments of `xbench list`, default all.  Without --quick all of them take hours;
# the machine should do nothing else.  XBENCH_DIR is where the experiments put their files,
# default the directory for temporary files; it should be on a disk.  The results themselves
# stay in ./results, the page is results/report.html.
set -eu

xbench=${1:?"usage: results.sh XBENCH [--quick] [NAME...]"}
shift
quick=
if [ "${1:-}" = --quick ]; then
    quick=--quick
    shift
fi
[ $# -gt 0 ] || set -- all
doc=$(cd "$(dirname "$0")/../doc" && pwd)
"$xbench" run "$@" $quick --perf --dir "${XBENCH_DIR:-${TMPDIR:-/tmp}}" --out results ||
    echo "results.sh: some failed; what was measured before stays" >&2
"$xbench" report --out results
"$xbench" report --out results --markdown "$doc/results.md" --figures "$doc/figures"
