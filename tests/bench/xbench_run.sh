# SPDX-License-Identifier: MIT
#
# xbench_run.sh -- for tests of xbench: read by ".".  $xbench, $top of the source tree; the working directory, $dir, is empty, and goes
# at the end; $n counts what refuses() has checked.

xbench=$(cd "${top_builddir:-.}" && pwd)/bench/xbench
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
n=0

# fail WORDS...
fail()
{
    echo "$(basename "$0" .sh): $*"
    exit 1
}

# refuses WORDS COMMAND... -- it fails and says WORDS.
refuses()
{
    words=$1
    shift
    if "$@" >out 2>err; then
        fail "\"$*\" succeeded"
    fi
    grep -qF -- "$words" err || fail "\"$*\" did not say \"$words\" but: $(cat err)"
    n=$((n + 1))
}
