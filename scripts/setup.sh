#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setup.sh -- install the Debian packages that libxac is built and tested with.
#
# Does nothing, quickly, if all are there.  Needs root or sudo only to install.
#
# libraft, for xraftd, comes from bookworm-backports: what Debian 12 itself has is too old (configure.ac says
# why).  Nothing else is taken from there.  If it cannot be reached, xraftd is not built.
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
# For benchmarks and a test that count instructions and misses of caches.
packages="$packages valgrind"
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

# For xraftd, if they can be had.
raft_packages="libraft-dev libuv1-dev"
raft_least=0.18
backports=bookworm-backports
backports_list=/etc/apt/sources.list.d/libxac-raft.list
backports_pins=/etc/apt/preferences.d/libxac-raft

# Is a libraft there that will do, and libuv?
have_raft()
{
    version=$(dpkg-query -W -f '${Version}' libraft-dev 2>/dev/null) &&
        dpkg --compare-versions "$version" ge $raft_least &&
        dpkg-query -W libuv1-dev >/dev/null 2>&1
}

# For benchmarks of groups, if they can be had: groups to compare with.
group_packages="libdqlite-dev etcd-server"

# Of these, what is not there and can be installed.
missing_group_packages()
{
    for package in $group_packages; do
        have=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
        test "$have" = installed || apt-cache policy "$package" 2>/dev/null |
            sed -n "s/^ *Candidate: [^(].*/$package/p"
    done
}

# Debian starts etcd as a service as soon as it is installed, which nobody has asked for.
install_group_packages()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" || return 1
    case " $* " in
    *" etcd-server "*)
        test ! -d /run/systemd/system || $as_root systemctl disable -q --now etcd.service || true
        ;;
    esac
}

# Can apt-get install one?
offers_raft()
{
    version=$(apt-cache policy libraft-dev 2>/dev/null | sed -n 's/^ *Candidate: //p')
    test -n "$version" && test "$version" != '(none)' &&
        dpkg --compare-versions "$version" ge $raft_least
}

# The source.  By default apt takes nothing from there by itself; the pin says that it may take libraft.
add_backports()
{
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $backports main" |
        $as_root tee $backports_list >/dev/null
    printf '%s\n' 'Package: libraft-dev libraft0' "Pin: release n=$backports" 'Pin-Priority: 500' |
        $as_root tee $backports_pins >/dev/null
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q || true
}

# Without it everything else can be built and tested.
install_raft()
{
    offers_raft || $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q || true
    if ! offers_raft && grep -q bookworm /etc/os-release; then
        add_backports
        offers_raft || $as_root rm -f $backports_list $backports_pins # nobody else is to fail for it
    fi
    offers_raft && $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $raft_packages && have_raft
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup.sh: needs Debian's apt-get and dpkg-query; elsewhere install by hand:" >&2
    echo $packages $raft_packages >&2
    exit 1
fi

missing=$(missing_packages)
missing_group=$(missing_group_packages)
have_raft && raft=yes || raft=no
if [ -z "$missing$missing_group" ] && [ $raft = yes ]; then
    echo "setup: all packages are installed"
    exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null && [ -z "$missing" ] && [ $raft = yes ]; then
        echo "setup: not installed, and so not compared with: "$missing_group
        exit 0
    fi
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: run it as root, or install sudo; missing: $missing" >&2
        exit 1
    fi
    as_root=sudo
fi

if [ -n "$missing" ]; then
    echo "setup: installing $missing"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing
fi
if [ $raft = no ] && ! install_raft; then
    echo "setup: no libraft $raft_least or later can be installed (Debian 12 has one in $backports):"
    echo "setup: xraftd will not be built, and its tests will be skipped"
fi
missing_group=$(missing_group_packages) # the lists of packages may be newer by now
if [ -n "$missing_group" ] && ! install_group_packages $missing_group; then
    echo "setup: not installed, and so not compared with: "$missing_group
fi

missing=$(missing_packages)
if [ -n "$missing" ]; then
    echo "setup.sh: apt-get left uninstalled: $missing" >&2
    exit 1
fi
echo "setup: done"
