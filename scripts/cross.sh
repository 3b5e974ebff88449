#!/bin/sh
# SPDX-License-Identifier: MIT
#
# cross.sh [DIR] -- build the library, the tools and the tests for aarch64, and run tests under qemu-user; and
# build the static library with musl in the place of the C library of GNU.
#
# In a Debian of its own (mmdebstrap), which has the compiler and the libraries of the other architecture, so that
# nothing is added to this one.  The tests are those that TESTS names, unit and API tests, with the engine
# XAC_ENGINE=portable: qemu-user has no userfaultfd.  DIR (default build/cross) gets the logs, and
# results: a line for each test.  Which of them cannot pass under qemu-user is said in doc/portability.md.
#
# It needs root, and installs mmdebstrap with apt if it is missing.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$source_dir/build/cross}
rm -rf "$dir"
mkdir -p "$dir/trial"
dir=$(cd "$dir" && pwd)
tests=${TESTS:-tests/unit/base/check_digest tests/unit/base/check_lines tests/unit/base/check_err
    tests/unit/base/check_sys tests/unit/log/check_block
    tests/unit/log/check_log tests/unit/log/check_master tests/unit/log/check_page_change
    tests/unit/recovery/check_recover tests/unit/shared/check_ptab tests/unit/shared/check_shm
    tests/unit/store/check_version tests/unit/heap/check_alloc_damage tests/unit/txn/check_ctree
    tests/unit/txn/check_conflict tests/unit/trees/check_btree_serial
    tests/api/basics/check_txn tests/api/durable/check_durable}

fail()
{
    echo "cross.sh: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "run it as root"
command -v mmdebstrap >/dev/null || apt-get install -q -y --no-install-recommends mmdebstrap >"$dir/apt.log" 2>&1

git -C "$source_dir" ls-files -z | (cd "$source_dir" && tar -c --null -T - -f "$dir/trial/source.tar")
cat >"$dir/trial/in_chroot.sh" <<END
set -eu
mkdir -p /trial/source /trial/build
tar xf /trial/source.tar -C /trial/source
cd /trial/source
./autogen.sh >/trial/autogen.log 2>&1
cd /trial/build
../source/configure --host=aarch64-linux-gnu --without-libsigsegv --disable-bench --enable-werror \\
    PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig >/trial/configure.log 2>&1
make -j2 >/trial/make.log 2>&1
file .libs/libxac.so.1.0.0 | cut -d, -f1,2
mkdir /trial/musl
cd /trial/musl
# musl's own headers first; behind them those of Linux and of the two libraries.
../source/configure CC="musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu" \\
    --without-libsigsegv --disable-bench --disable-examples --disable-shared --disable-probes --enable-werror \\
    ac_cv_header_execinfo_h=no CRYPTO_CFLAGS=' ' CRYPTO_LIBS=-lcrypto XXHASH_CFLAGS=' ' XXHASH_LIBS=-lxxhash \\
    CHECK_CFLAGS=' ' CHECK_LIBS=' ' >/trial/musl.log 2>&1
make -j2 libxac.la >>/trial/musl.log 2>&1 && echo "musl: libxac.a is built"
cd /trial/build
passed=0 failed=0
for test in $(echo $tests); do
    if ! make \$test >>/trial/make.log 2>&1; then
        echo "NOT BUILT \$test"
        failed=\$((failed + 1))
        continue
    fi
    # libtool's wrapper is a script for this machine's shell; it runs the program by binfmt or by qemu.
    program=\$test
    [ ! -e "\${test%/*}/.libs/\${test##*/}" ] || program=\${test%/*}/.libs/\${test##*/}
    if srcdir=/trial/source top_builddir=. XAC_ENGINE=portable LD_LIBRARY_PATH=/trial/build/.libs \\
        CK_TIMEOUT_MULTIPLIER=10 timeout 600 qemu-aarch64 "\$program" >/trial/test.log 2>&1; then
        passed=\$((passed + 1))
        echo "PASS \$test: \$(grep 'Checks:' /trial/test.log || true)"
    else
        failed=\$((failed + 1))
        echo "FAIL \$test: \$(grep 'Checks:' /trial/test.log || tail -n 1 /trial/test.log)"
        grep -E ':[FE]:' /trial/test.log | head -n 8 || true
    fi
done
echo "aarch64 under qemu-user: \$passed programs passed, \$failed failed"
END

mmdebstrap --variant=apt --mode=root --architectures=amd64,arm64 \
    --include=autoconf,automake,libtool,make,file,pkg-config,gcc,g++,gcc-aarch64-linux-gnu,g++-aarch64-linux-gnu,libc6-dev:arm64 \
    --include=libssl-dev:arm64,libxxhash-dev:arm64,check:arm64,zlib1g-dev:arm64,qemu-user,systemtap-sdt-dev:arm64,python3-minimal,musl-tools,libssl-dev,libxxhash-dev,linux-libc-dev \
    --customize-hook="copy-in '$dir/trial' /" \
    --customize-hook="chroot \"\$1\" sh /trial/in_chroot.sh >'$dir/results' 2>&1 || true; cp \"\$1\"/trial/*.log '$dir/'" \
    bookworm /dev/null >"$dir/mmdebstrap.log" 2>&1 || { tail -n 20 "$dir/mmdebstrap.log"; fail "mmdebstrap"; }
cat "$dir/results"
grep -q '^musl: ' "$dir/results" || { tail -n 20 "$dir/musl.log"; fail "it did not build with musl"; }
grep -q '^aarch64 under qemu-user: ' "$dir/results" || { tail -n 20 "$dir/make.log"; fail "it did not build"; }
