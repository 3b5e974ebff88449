#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setup.sh -- install the Debian packages that libxac is built and tested with.
#
# Does nothing, quickly, if all are there.  Needs root or sudo only to install.
set -eu

# To build the library.
packages="autoconf automake libtool make gcc g++ pkg-config
    libsigsegv-dev libssl-dev libxxhash-dev"
# To test it, to check its style, and to compare it with Berkeley DB.
packages="$packages check clang-format python3 libdb5.3-dev zlib1g-dev"
# To test it on file systems that lose their power.
packages="$packages e2fsprogs mount"
# To test it on other file systems.
packages="$packages btrfs-progs xfsprogs"
# To test standbys over a network: namespaces with delay and loss, certificates.
packages="$packages iproute2 openssl"
# To test archives in what rclone reaches.
packages="$packages rclone"
# For static probes, which bpftrace and perf can look at.
packages="$packages systemtap-sdt-dev"
# For the manual as HTML pages.
packages="$packages pandoc"
# For the benchmarks: more to compare with, and figures.
packages="$packages liblmdb-dev libsqlite3-dev libwiredtiger-dev librocksdb-dev
    libleveldb-dev libpmemobj-dev gnuplot-nox"
# For an example and for tests: containers.
packages="$packages libbsd-dev uthash-dev"
# To test what CMake finds.
packages="$packages cmake"
# To test xac-cc and xac.hpp with both compilers, and the latter under clang's sanitizers.
packages="$packages clang libclang-rt-dev"
# To test xac.hpp with containers that take offset pointers, and xac-cc.
packages="$packages libboost-dev"
# To test transactions with helper threads: parallel algorithms of C++, threaded BLAS.
packages="$packages libtbb-dev libopenblas0-pthread"
# For the Python package, its tests and its benchmark.
packages="$packages python3-dev python3-numpy python3-pytest python3-setuptools
    python3-venv python3-wheel python3-build python3-lmdb python3-h5py
    python3-pandas"

# Which of the packages is not installed.  The format of one line is
# "package:status", and a name that dpkg does not know at all gives no line.
missing_packages()
{
    have=$(dpkg-query -W -f '${Package}:${db:Status-Status}\n' $packages 2>/dev/null) ||
        true
    for package in $packages; do
        printf '%s\n' "$have" | grep -qxF "$package:installed" || printf '%s ' "$package"
    done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup.sh: needs Debian's apt-get and dpkg-query; elsewhere install by hand:" >&2
    echo $packages >&2
    exit 1
fi

missing=$(missing_packages)
if [ -z "$missing" ]; then
    echo "setup: all packages are installed"
    exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: run it as root, or install sudo; missing: $missing" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "setup: installing $missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $missing

missing=$(missing_packages)
if [ -n "$missing" ]; then
    echo "setup.sh: apt-get left uninstalled: $missing" >&2
    exit 1
fi
echo "setup: done"
