# SPDX-License-Identifier: MIT
#
# installed.sh -- for scripts: libxac is installed below $tmp, $cc and $cxx are xac-cc and xac-c++.
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
make -C "$build" -s --no-print-directory install DESTDIR="$tmp/dest" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; fail "make install"; }
cc=$(cd "$tmp/dest" && find "$PWD" -name xac-cc -perm -u+x)
[ -x "$cc" ] || fail "xac-cc was not installed"
cxx=${cc%cc}c++
libdir=$(dirname "$(cd "$tmp/dest" && find "$PWD" -name libxac-compiled.a)")
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
