#!/bin/sh
# SPDX-License-Identifier: MIT
#
# release.sh [DIR [ARGUMENT...]] -- what has to pass before a release is made; the last steps are those of whoever makes it.
#
#   1. Nothing is changed or forgotten: git knows all files, and versions in configure.ac, debian/changelog,
#      NEWS, python/pyproject.toml and rust/ are the same.
#   2. make distcheck: the archive builds elsewhere, from a source tree that may not be written, passes its tests, and
#      can be uninstalled.
#   3. scripts/package.sh: packages, twice the same, installed in a fresh Debian.
#
# DIR (default build/release) gets archive, packages and logs.  Arguments are those of make distcheck, which runs
# all tests (an hour): TESTS=tests/api/basics/check_txn to try this script.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$source_dir/build/release}
[ $# = 0 ] || shift
mkdir -p "$dir/build"
dir=$(cd "$dir" && pwd)

fail()
{
    echo "release.sh: $*" >&2
    exit 1
}

cd "$source_dir"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed: git status"
version=$(sed -n 's/^AC_INIT(\[libxac\], \[\(.*\)\], .*, .*/\1/p' configure.ac)
grep -q "^Version $version\$" NEWS || fail "NEWS does not begin with version $version"
head -n 1 debian/changelog | grep -qF "($version-" || fail "debian/changelog has another version than $version"
for file in python/pyproject.toml rust/xac/Cargo.toml rust/xac-sys/Cargo.toml; do
    grep -q "^version = \"$version\"" "$file" || fail "$file has another version than $version"
done
echo "version: $version everywhere"

[ -x configure ] || ./autogen.sh
cd "$dir/build"
"$source_dir/configure" >"$dir/configure.log"
make distcheck "$@" >"$dir/distcheck.log" 2>&1 ||
    { tail -n 40 "$dir/distcheck.log"; fail "make distcheck, see $dir/distcheck.log"; }
echo "make distcheck: $(grep -c '^PASS' "$dir/distcheck.log") tests passed"
mv "libxac-$version".tar.* "$dir"
"$source_dir/scripts/package.sh" "$dir/package"
