#!/bin/sh
# SPDX-License-Identifier: MIT
#
# package.sh [DIR] -- build the Debian packages, and try them in a fresh Debian.
#
#   1. `make dist`, and two builds of the packages from it, in directories of different names: every
#      package must have the same bytes.
#   2. lintian, without an error.
#   3. A Debian of its own (mmdebstrap), in which the packages are installed by apt, with nothing else than a
#      compiler: the program of README.md is compiled and run there, in C, in C++, by CMake and by xac-cc; so are
#      those of doc/cpp.md and doc/xactree.md, and that of python/README.md; tools and manual pages are looked
#      at; and the packages are removed again.
#
# The packages stay in DIR (default build/package).  It needs root, for mmdebstrap, and installs with apt what is
# missing of lintian, mmdebstrap and the packages that debian/control needs.  XAC_PACKAGE_CHECK=1 runs the unit and
# API tests in the first build.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$source_dir/build/package}
rm -rf "$dir"
mkdir -p "$dir/dist" "$dir/first" "$dir/second"
dir=$(cd "$dir" && pwd)
names="libxac1 libxac-itm0 libxactree0 libxac-dev libxac-tools python3-xac"
version=$(sed -n '1s/.*(\(.*\)-.*).*/\1/p' "$source_dir/debian/changelog")

fail()
{
    echo "package.sh: $*" >&2
    exit 1
}

# logged NAME COMMAND... -- its output goes to a file, whose end is shown if it fails.
logged()
{
    log=$dir/$1.log
    shift
    "$@" >"$log" 2>&1 || { tail -n 40 "$log"; fail "failed, see $log: $*"; }
}

install_tools()
{
    missing=
    for package in dpkg-dev lintian mmdebstrap; do
        dpkg-query -W -f '${db:Status-Status}\n' $package 2>/dev/null | grep -qx installed ||
            missing="$missing $package"
    done
    [ -z "$missing" ] || logged apt apt-get install -q -y --no-install-recommends $missing
    dpkg-checkbuilddeps "$source_dir/debian/control" 2>"$dir/missing" ||
        (cd "$source_dir" && logged apt-build apt-get build-dep -q -y --no-install-recommends ./)
}

make_dist()
{
    [ -x "$source_dir/configure" ] || (cd "$source_dir" && ./autogen.sh)
    cd "$dir/dist"
    "$source_dir/configure" --without-libsigsegv --disable-bench --disable-examples
    make dist-gzip
    [ -e "libxac-$version.tar.gz" ] || fail "debian/changelog and configure.ac have different versions"
}

# build_in NAME TARGET-OPTION -- unpack and build, with Debian's own programs: another python3 may come first in PATH.
build_in()
{
    cd "$dir/$1"
    cp "$dir/dist/libxac-$version.tar.gz" "libxac_$version.orig.tar.gz"
    tar xzf "libxac_$version.orig.tar.gz"
    mv "libxac-$version" "libxac-$version-$1"
    cd "libxac-$version-$1"
    options=nocheck
    [ "$1" != first ] || [ "${XAC_PACKAGE_CHECK:-0}" = 0 ] || options=
    PATH=/usr/sbin:/usr/bin:/sbin:/bin DEB_BUILD_OPTIONS="$options parallel=2" \
        dpkg-buildpackage -us -uc "$2"
}

compare()
{
    n=0
    for package in "$dir"/first/*.deb; do
        cmp "$package" "$dir/second/${package##*/}" || fail "two builds differ"
        n=$((n + 1))
    done
    for name in $names; do
        [ -e "$dir/first/${name}_$version-"* ] || fail "there is no package $name"
    done
    echo "reproducible: $n packages, the same bytes twice"
}

# first_block LANGUAGE FILE -- the first program of a document.
first_block()
{
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source_dir/$2" | sed '1d;/^```$/,$d'
}

# in_chroot.sh is run inside.
make_trial()
{
    mkdir "$dir/trial"
    for name in $names; do
        cp "$dir/first/${name}_$version"-*.deb "$dir/trial"
    done
    first_block c README.md >"$dir/trial/count.c"
    first_block c doc/xactree.md >"$dir/trial/fruit.c"
    first_block cpp doc/cpp.md >"$dir/trial/numbers.cc"
    first_block python python/README.md >"$dir/trial/first.py"
    cat >"$dir/trial/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(count C)
find_package(libxac 0.2 REQUIRED)
add_executable(by-cmake count.c)
target_link_libraries(by-cmake PRIVATE xac::xac)
END
    cat >"$dir/trial/in_chroot.sh" <<'END'
set -eux
cd /trial
export DEBIAN_FRONTEND=noninteractive
apt-get install -q -y --no-install-recommends ./*.deb
apt-get install -q -y --no-install-recommends gcc g++ libc6-dev binutils pkg-config cmake make man-db
cp count.c count.cc
gcc -Wall -Wextra -Werror count.c $(pkg-config --cflags --libs libxac) -o by-gcc
g++ -Wall -Wextra -Werror count.cc $(pkg-config --cflags --libs libxac) -o by-g++
gcc -Wall -Wextra -Werror count.c -static $(pkg-config --cflags --libs --static libxac) -o static
cmake -S . -B by && make -C by
xac-cc -c count.c -o noticed.o && xac-cc noticed.o -o by-xac-cc
gcc -Wall -Wextra -Werror fruit.c $(pkg-config --cflags --libs libxactree) -o fruit
mkdir fruits && (cd fruits && test "$(../fruit)" = "$(printf 'apples: 12\npears: 3')")
g++ -std=c++17 -Wall -Wextra -Werror numbers.cc $(pkg-config --cflags --libs libxac) -o numbers
mkdir numbered && (cd numbered && ../numbers && ../numbers)
(mkdir python && cd python && python3 ../first.py && python3 -m pydoc xac.Env | grep transaction)
n=0
for program in ./by-gcc ./by-g++ ./static by/by-cmake ./by-xac-cc; do
    n=$((n + 1))
    test "$($program)" = "x[0] is $n"
done
xrecover --check db
xstat db | grep 'nobody is attached'
xlogdump --version
man -w xbegin xac_begin_in xac.h xstat xac-cc xactree_put
ldd by-gcc | grep libxac.so.1
if ldd by-gcc | grep libsigsegv; then exit 1; fi
apt-get purge -q -y libxac1 libxac-dev libxac-tools libxactree0
test -z "$(find /usr -name 'libxac*' -o -name 'xac[._-]*' -o -name xac -o -name xstat)"
echo "trial: $n programs, all right"
END
}

try_in_chroot()
{
    mmdebstrap --variant=apt --mode=root \
        --customize-hook="copy-in '$dir/trial' /" \
        --customize-hook='chroot "$1" sh /trial/in_chroot.sh' \
        bookworm /dev/null "$@"
}

[ "$(id -u)" = 0 ] || fail "run it as root"
install_tools
logged dist make_dist
for name in first second; do
    logged "build-$name" build_in $name "$([ $name = first ] && echo --build=full || echo --build=binary)"
done
compare
lintian --fail-on error "$dir"/first/*.changes >"$dir/lintian.log" 2>&1 ||
    { cat "$dir/lintian.log"; fail "lintian"; }
echo "lintian: 0 errors, $(grep -c '^W:' "$dir/lintian.log" || true) warnings"
make_trial
logged trial try_in_chroot
tail -n 400 "$dir/trial.log" | grep '^trial: '
ls "$dir/trial"/*.deb
