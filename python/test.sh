#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test.sh BUILD-DIR [PYTEST-OPTION...] -- install the Python package, and run its tests.
#
# The library of BUILD-DIR and the package are installed in a temporary directory, in a virtual
# environment that sees the packages of the system.  Exit code 77: the tests cannot run here.
#
# PYTHON  the interpreter, default /usr/bin/python3, which has Debian's packages
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import numpy, pytest, setuptools, venv' 2>/dev/null; then
    echo "python/test.sh: skipped, $python lacks numpy, pytest, setuptools or venv"
    exit 77
fi

tmp=$(mktemp -d)
shm=
trap 'rm -rf "$tmp" ${shm:+"$shm"}' EXIT
if [ -w /dev/shm ]; then # processes that are killed leave something there
    shm=$(mktemp -d /dev/shm/xac-test-XXXXXX)
    export XAC_SHM_DIR="$shm"
fi
trap 'exit 1' INT TERM
make -C "$build" -s --no-print-directory install DESTDIR="$tmp/root" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; exit 1; }

# pkg-config takes the place of the .pc file for the prefix.
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/root" -name libxac.pc)")
PKG_CONFIG="pkg-config --define-prefix"
export PKG_CONFIG_PATH PKG_CONFIG
cp -r "$here" "$tmp/python" # so that nothing is left in the source tree
"$python" -m venv --system-site-packages "$tmp/venv"
XAC_LINK=system "$tmp/venv/bin/python" -m pip install -q --disable-pip-version-check \
    --no-build-isolation --no-deps "$tmp/python"
XAC_SOURCE=$(dirname "$here")
export XAC_SOURCE
cd "$tmp"
"$tmp/venv/bin/python" -B -m pytest -p no:cacheprovider "$@" python/tests
