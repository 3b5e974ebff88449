#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build.sh DIR [CONFIGURE-OPTION...] -- configure (if needed) and build libxac in DIR.
#
# Out of the source tree: DIR is made if missing.  Messages go to DIR/build.log, whose end
# is shown if something fails.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift

build()
{
    cd "$source_dir"
    if [ ! -x configure ] || [ configure.ac -nt configure ]; then
        ./autogen.sh || return
    fi
    cd "$dir"
    if [ ! -f config.status ] || [ "$(cat options 2>/dev/null)" != "$*" ]; then
        rm -f options
        "$source_dir/configure" "$@" || return
        # Else stamp-h1 is newer, make runs a command to find config.h right, and puts off all that needs it:
        # the longest tests would begin last.
        touch config.h
        printf '%s\n' "$*" >options
    fi
    make -j2 all
}

if ! build "$@" >"$dir/build.log" 2>&1; then
    tail -n 40 "$dir/build.log" >&2
    echo "build.sh: failed, see $dir/build.log" >&2
    exit 1
fi
