#!/bin/sh
# SPDX-License-Identifier: MIT
#
# package.sh [DIR] -- build the Debian packages, and try them in a fresh Debian.
#
#   1. `make dist`, and two builds of the packages from it, in directories of different names: every
#      package must have the same bytes.
#   2. lintian, without an error.
#   3. A Debian of its own (mmdebstrap), in which the packages are installed by apt, with nothing else than a
#      compiler: the program of README.md is compiled and run there, in C, in C++, by CMake and by xac-cc; tools
#      and manual pages are looked at; and the packages are removed again.
#
# The packages stay in DIR (default build/package).  It needs root, for mmdebstrap, and installs with apt what is
# missing of: debhelper, dpkg-dev, lintian, mmdebstrap.  XAC_PACKAGE_CHECK=1 runs the unit and API tests
# in the first build.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$source_dir/build/package}
rm -rf "$dir"
mkdir -p "$dir/dist" "$dir/first" "$dir/second"
dir=$(cd "$dir" && pwd)
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
    for package in debhelper dpkg-dev lintian mmdebstrap; do
        dpkg-query -W -f '${db:Status-Status}\n' $package 2>/dev/null | grep -qx installed ||
            missing="$missing $package"
    done
    [ -z "$missing" ] || logged apt apt-get install -q -y --no-install-recommends $missing
}

make_dist()
{
    [ -x "$source_dir/configure" ] || (cd "$source_dir" && ./autogen.sh)
    cd "$dir/dist"
    "$source_dir/configure" --without-libsigsegv --disable-bench --disable-examples
    make dist-gzip
    [ -e "libxac-$version.tar.gz" ] || fail "debian/changelog and configure.ac have different versions"
}

# build_in NAME TARGET-OPTION -- unpack and build.
build_in()
{
    cd "$dir/$1"
    cp "$dir/dist/libxac-$version.tar.gz" "libxac_$version.orig.tar.gz"
    tar xzf "libxac_$version.orig.tar.gz"
    mv "libxac-$version" "libxac-$version-$1"
    cd "libxac-$version-$1"
    options=nocheck
    [ "$1" != first ] || [ "${XAC_PACKAGE_CHECK:-0}" = 0 ] || options=
    DEB_BUILD_OPTIONS="$options parallel=2" dpkg-buildpackage -us -uc "$2"
}

compare()
{
    n=0
    for package in "$dir"/first/*.deb; do
        cmp "$package" "$dir/second/${package##*/}" || fail "two builds differ"
        n=$((n + 1))
    done
    [ "$n" -ge 4 ] || fail "only $n packages"
    echo "reproducible: $n packages, the same bytes twice"
}

# in_chroot.sh is run inside; README's program is the first C block.
make_trial()
{
    mkdir "$dir/trial"
    for name in libxac1 libxac-itm0 libxactree0 libxac-dev libxac-tools; do
        for package in "$dir/first/${name}_$version"-*.deb; do
            [ ! -e "$package" ] || cp "$package" "$dir/trial"
        done
    done
    sed -n '/^```c$/,/^```$/p' "$source_dir/README.md" | sed '1d;/^```$/,$d' >"$dir/trial/count.c"
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
n=0
for program in ./by-gcc ./by-g++ ./static by/by-cmake ./by-xac-cc; do
    n=$((n + 1))
    test "$($program)" = "x[0] is $n"
done
xrecover --check db
xstat db | grep 'nobody is attached'
xlogdump --version
man -w xbegin xac_begin_in xac.h xstat xac-cc
ldd by-gcc | grep libxac.so.1
if ldd by-gcc | grep libsigsegv; then exit 1; fi
apt-get purge -q -y libxac1 libxac-dev libxac-tools
test -z "$(find /usr -name 'libxac*' -o -name 'xac[._-]*' -o -name xstat)"
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
