#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_errata.sh -- what doc/thesis-errata.md says of the Thesis is so, row by row: computed, explored or run here,
# or by a test that it names, or it says why nothing shows it (errata_list.py).
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

# shows ROW... -- what comes before shows these rows of the list.
rows=
shows()
{
    rows="$rows $*"
}

# refused WORDS FILE OPTION... -- the compiler says this of it.
refused()
{
    words=$1
    file=$2
    shift 2
    if ${CC:-cc} "$@" -c -o out.o "$file" 2>err; then
        fail "$file compiles"
    fi
    grep -q "$words" err || fail "$file: $(cat err)"
}

compiles()
{
    ${CC:-cc} "$@" -o out.o || fail "$* does not compile"
}

"${PYTHON:-python3}" -B "$top/tests/bench/errata.py" "$top/bench/kit/thesis.c" >out ||
    fail "errata.py: $(cat out)"
cat out
# shellcheck disable=SC2046  # one word each
shows $(sed -n 's/^rows: //p' out)

${CC:-cc} -O2 -pthread -o listings "$top/tests/bench/errata_listings.c" ||
    fail "listings do not compile"
prints "the last number" ./listings 1-1
shows L1
prints "99 of 100" ./listings 1-2
shows L2
prints "both are inside" ./listings 1-5-D
prints "one is inside" ./listings 1-5-D-shared
shows L6
prints "it waits for itself" ./listings 1-5-E
prints "it ends" ./listings 1-5-E-skips
shows L5
prints "nothing was read" ./listings 4-1
if (./listings 4-1-volatile) >/dev/null 2>&1; then
    fail "a volatile load did not read"
fi
shows L13

# Figure 1-3; in figure 2-2 it is the same call.
cat >wanted.c <<'END'
#include <sys/mman.h>
int *map(int fd);
int *map(int fd)
{
    int *x;
    x = (int *)mmap(x, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return x;
}
END
refused uninitialized wanted.c -O1 -Werror -Wuninitialized
sed 's/mmap(x,/mmap(0,/' wanted.c >any.c
compiles -O1 -Werror -Wuninitialized -c any.c
shows L3

# Figure 2-4, line 2 of Program 1.
echo 'int main(void) { int y = 0, z = 0; a = 0, b = 0; return a + b + y + z; }' >figure.c
refused undeclared figure.c
echo 'int main(void) { int y = 0, z = 0, a = 0, b = 0; return a + b + y + z; }' >figure.c
compiles -c figure.c
shows L9

# Figure 3-1, line 10.
printf '#include <xac.h>\nint out(void);\nint out(void) { return xMunmap("input.db", 4 * 4096); }\n' >out.c
refused "too many arguments" out.c -I"$top/include"
sed 's/, 4 \* 4096//' out.c >one.c
compiles -I"$top/include" -c one.c
shows L12

# A file below /proc/sys that its owner, root, may write.
limit=/proc/sys/vm/max_map_count
[ "$(stat -c '%u %A' $limit)" = "0 -rw-r--r--" ] && [ "$(cat $limit)" -gt 0 ] || fail "$limit: $(stat $limit)"
shows S5

# shellcheck disable=SC2086  # likewise
"${PYTHON:-python3}" -B "$top/tests/bench/errata_list.py" "$top/doc/thesis-errata.md" $rows ||
    fail "the list and what is shown"
