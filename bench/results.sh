#!/bin/sh
# SPDX-License-Identifier: MIT
#
# results.sh XBENCH [--quick | --medium] [NAME...] -- measure anew; put all tables into
# doc/results.html, the figures into doc/figures and doc/results.md, and all results into doc/results.tar.xz.
#
# NAME: experiments of `xbench list`, default all.  All of them take three hours, with --medium 35
# minutes, with --quick less than 20; the machine should do nothing else.  XBENCH_DIR is
# where the experiments put their files, default the directory for temporary files; it
# should be on a disk.  The results themselves stay in ./results, from which the page is
# made; if that is not there it is taken from doc/results.tar.xz, so what is not measured anew stays on the page.
# Experiments that doc/results.md has no place for get one at its end.
set -eu

usage="usage: results.sh XBENCH [--quick | --medium] [NAME...]"
xbench=${1:?"$usage"}
shift
size=
case ${1:-} in
--quick | --medium)
    size=$1
    shift
    ;;
-*)
    echo "$usage" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || set -- all
doc=$(cd "$(dirname "$0")/../doc" && pwd)
[ -d results ] || ! [ -e "$doc/results.tar.xz" ] || tar -xJf "$doc/results.tar.xz"
"$xbench" run "$@" $size --perf --dir "${XBENCH_DIR:-${TMPDIR:-/tmp}}" --out results ||
    [ $? -eq 3 ] || echo "results.sh: some failed; what was measured before stays" >&2
"$xbench" report --out results --html "$doc/results.html" --figures "$doc/figures" \
    --markdown "$doc/results.md"
tar -cJf "$doc/results.tar.xz" --sort=name --owner=0 --group=0 --numeric-owner results
