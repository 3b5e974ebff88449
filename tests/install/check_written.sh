#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_written.sh -- an environment that an earlier version wrote is recovered by this one.
#
# GOAL    file formats stay, or a tool converts them (doc/compatibility.md).
# METHOD  written-0.2.0.tar.gz holds an environment of commit a7a3279 as SIGKILL left it: 300
#         durable transactions, a checkpoint behind the 150th, two log segments of 64 KiB.  The
#         SHA-256 is that of data.db after the recovery by the version that wrote it.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
expected=78be5d6d4d9db6355aa46a7434bb08a35591ed768da17e71728d4e1483b0e007
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# sum -- of the file that the environment has mapped.
sum()
{
    sha256sum <"$tmp/env/data.db" | cut -d ' ' -f 1
}

tar -xzf "$here/written-0.2.0.tar.gz" -C "$tmp"
[ "$(sum)" != "$expected" ] || { echo "check_written: nothing is left to redo"; exit 1; }
"$build/xrecover" --accept-replaced "$tmp/env" # unpacked files are other files
[ "$(sum)" = "$expected" ] || { echo "check_written: data.db has other bytes"; exit 1; }
"$build/xrecover" --check "$tmp/env"
