#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_configure.sh -- what `configure` asks for, and what it says.
#
# GOAL    a machine without zlib, libbsd and the systems that xbench is compared with is
#         configured, and told what is left out; a system that is asked for must be there; with
#         --disable-examples and --disable-bench neither is built; without libsigsegv
#         nothing names it; without <execinfo.h>, as with musl, the library does without backtrace();
#         a machine with 32-bit addresses is refused in one sentence.
# METHOD  answers of configure's tests are given in advance, as cache variables.  That the rest
#         builds and works without these libraries: scripts/test.sh, the build with sanitizers.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

fail()
{
    echo "check_configure: $*"
    exit 1
}

# says WORDS -- in what the last configure printed.
says()
{
    grep -qF -e "$1" log || { cat log; fail "configure does not say: $1"; }
}

# configure OPTION... -- what the first run has found of the machine is not looked for again, but for what is
# answered here.
configure()
{
    rm -f cache
    [ ! -e machine ] || cp machine cache
    "$source_dir/configure" --cache-file=cache --disable-dependency-tracking "$@" >log 2>&1
}

cat >pkg-config <<'SCRIPT'
#!/bin/sh
case "$*" in
"--modversion raft") echo 0.15.0; exit ;;
"--exists raft < 0.18") exit ;;
*raft*) exit 1 ;;
*lmdb* | *sqlite3* | *wiredtiger* | *rocksdb* | *libpmemobj*) exit 1 ;;
esac
exec pkg-config "$@"
SCRIPT
chmod +x pkg-config
export PKG_CONFIG="$tmp/pkg-config"
configure --disable-examples --disable-bench || { cat log; fail "configure fails"; }
grep -q sigsegv libxac.pc || fail "libxac.pc does not name libsigsegv"
make -s print-programs >programs
grep -e examples/ -e bench/ programs && fail "these would be built"
grep -q xrecover programs || fail "the tools would not be built"
mv cache machine

configure --without-libsigsegv --without-libssl --enable-werror ac_cv_header_zlib_h=no \
    ac_cv_header_bsd_sys_tree_h=no ac_cv_header_db_h=no ac_cv_header_leveldb_c_h=no ||
    { cat log; fail "configure fails without zlib, libbsd and peers"; }
says "beside Berkeley DB no, LMDB no, SQLite no,"
says "WiredTiger no, RocksDB no, LevelDB no, PMDK no"
says "left out      TLS of xship (install libssl-dev, 3.0 or later)"
says "left out      xraftd (libraft 0.15.0 is too old, a new leader can lose what a majority has: install"
says "left out      compressed traces in xbench frames (install zlib1g-dev)"
says "left out      examples/rbtree (install libbsd-dev)"
says "libsigsegv    no"
grep -q sigsegv libxac.pc && fail "libxac.pc names libsigsegv"
make -s recovery/ship_channel.o >log 2>&1 ||
    { cat log; fail "ship_channel.c does not compile without libssl"; }
make -s libxac/fault/fault_areas.lo >log 2>&1 ||
    { cat log; fail "our dispatcher of faults does not compile without warnings"; }
nm recovery/ship_channel.o | grep SSL_ && fail "TLS is called without libssl"
make -s print-programs >programs
grep -q xraftd programs && fail "xraftd would be built with an old libraft"
grep -q examples/list programs || fail "the other examples are left out, too"
grep -q bench/xbench programs || fail "xbench is left out"
grep -q examples/rbtree programs && fail "examples/rbtree would be built without libbsd"

configure --with-leveldb ac_cv_header_leveldb_c_h=no && fail "a missing peer is accepted"
says "LevelDB not found: install libleveldb-dev"
configure --with-raft && fail "an old libraft is accepted"
says "no xraftd: libraft 0.15.0 is too old"

configure --disable-shared --enable-werror ac_cv_header_execinfo_h=no || { cat log; fail "configure fails without execinfo.h"; }
make -s libxac/view/fault.lo >log 2>&1 || { cat log; fail "fault.c does not compile without execinfo.h"; }
nm libxac/view/fault.o | grep -q dladdr || fail "the instruction would not be named"
nm libxac/view/fault.o | grep backtrace && fail "backtrace() is called without execinfo.h"

configure ac_cv_sizeof_void_p=4 && fail "32-bit addresses are accepted"
says "libxac needs 64-bit addresses; here they have 4 bytes"
echo "check_configure: 0 problems"
