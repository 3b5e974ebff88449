# SPDX-License-Identifier: MIT
#
# installed.sh -- for scripts: libxac is installed below $dest, for all tests and not to be changed;
# $cc and $cxx are xac-cc and xac-c++; $tmp is a directory of the script's own.
#
# Exit code 77 in a build with a sanitizer: its own functions stand where the hooks are.
: "${srcdir:=.}"
srcdir=$(cd "$srcdir" && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" ${shm:+"$shm"}' EXIT
shm=
# Programs that are stopped leave something there.
if [ -w /dev/shm ]; then
    shm=$(mktemp -d /dev/shm/xac-test-XXXXXX)
    export XAC_SHM_DIR="$shm"
fi

fail()
{
    echo "$(basename "$0"): $*"
    exit 1
}

if grep -q '^XAC_CFLAGS = .*-fsanitize=' "$build/Makefile"; then
    echo "not with a sanitizer"
    exit 77
fi
dest=$build/tests/installed
flock "$build" make -C "$build" -s --no-print-directory tests/installed/done >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; fail "make install"; }
cc=$(find "$dest" -name xac-cc -perm -u+x)
[ -x "$cc" ] || fail "xac-cc was not installed"
cxx=${cc%cc}c++
libdir=$(dirname "$(find "$dest" -name libxac-compiled.a)")
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
