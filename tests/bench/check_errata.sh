#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_errata.sh -- what doc/thesis-errata.md says of the Thesis' numbers and listings is so.
set -u
top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

fail()
{
    echo "check_errata: $*"
    exit 1
}

# prints WORDS COMMAND... -- its output is that.
prints()
{
    words=$1
    shift
    out=$("$@" 2>&1)
    [ "$out" = "$words" ] || fail "$*: \"$out\", not \"$words\""
}

"${PYTHON:-python3}" -B "$top/tests/bench/errata.py" "$top/bench/kit/thesis.c" || fail "errata.py"

${CC:-cc} -O2 -o listings "$top/tests/bench/errata_listings.c" || fail "listings do not compile"
prints "the last number" ./listings 1-1
prints "99 of 100" ./listings 1-2
prints "nothing was read" ./listings 4-1
if (./listings 4-1-volatile) >/dev/null 2>&1; then
    fail "a volatile load did not read"
fi

# Figure 2-4, line 2 of Program 1.
echo 'int main(void) { int y = 0, z = 0; a = 0, b = 0; return a + b + y + z; }' >figure.c
if ${CC:-cc} -c figure.c 2>err; then
    fail "figure 2-4 compiles"
fi
grep -q undeclared err || fail "figure 2-4: $(cat err)"
echo 'int main(void) { int y = 0, z = 0, a = 0, b = 0; return a + b + y + z; }' >figure.c
${CC:-cc} -c figure.c || fail "figure 2-4 with a comma does not compile"
