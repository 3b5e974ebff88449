#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_modules.sh -- language transactions in programs that are built and loaded in other ways.
#
# GOAL    Programs by -O0 to -O3, -flto and -static are right, and roll back what they cancel; in C++
#         with memory of operator new.  A module that dlopen() loads, and whose blocks the dynamic linker
#         leads to gcc's own library, is told of, or stopped; it is never silently wrong.
set -eu

. "${srcdir:-.}/tests/compiled/installed.sh"
[ -e "$build/.libs/libxac-itm.so" ] || { echo "check_modules: no shared library, skipped"; exit 77; }
cd "$tmp"
pc=$(dirname "$(find "$dest" -name libxac-itm.pc)")
PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=${pc%/*}
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH LD_LIBRARY_PATH
cases=0
failures=0

# prints TEXT COMMAND... -- it ends well, and prints that.
prints()
{
    text=$1
    shift
    cases=$((cases + 1))
    rm -rf db input.db
    # shellcheck disable=SC2015
    timeout 60 "$@" >output 2>&1 && grep -q -e "$text" output && return
    failures=$((failures + 1))
    echo "should print '$text': $*"
    cat output
}

# stops TEXT COMMAND... -- it is stopped, and says that.
stops()
{
    text=$1
    shift
    cases=$((cases + 1))
    rm -rf db input.db
    if timeout 60 "$@" >output 2>&1 || ! grep -q -e "$text" output; then
        failures=$((failures + 1))
        echo "should be stopped and say '$text': $*"
        cat output
    fi
}

cat >blocks.cc <<'END'
#include <cstdio>
#include <cstring>
#include <xac_itm.h>
struct node { node *next; long v; };
__attribute__((transaction_safe)) static node *make(node *n, long v)
{
    node *p = new node;
    p->next = n;
    p->v = v;
    return p;
}
int main(int argc, char **)
{
    long outside[300] = {0}, sum = 0, n_new = 0;
    node *list = nullptr;
    if (xInit("db", NONDURABLE) != 0)
        return 1;
    long *x = (long *)xMmap("input.db", 10 * 4096);
    for (int i = 0; i < 100; i++)
        __transaction_atomic {
            list = make(list, i);
            x[i]++;
            if (i % 10 == 9) {
                node *d = list;
                list = list->next;
                delete d;
            }
        }
    for (int way = 0; way < 2; way++)
        __transaction_atomic {
            memcpy(x + 1000, x, 800);
            memset(x + 2000, 7, 800);
            for (int i = 0; i < 100 * argc; i++)
                x[3000 + i] = outside[i] = x[i];
            for (int i = 0; i < 100 * argc; i++)
                x[4000 + i] = 0x0101010101010101;
            list = make(list, 1);
            if (way == 0)
                __transaction_cancel;
        }
    __transaction_atomic {
        for (int i = 0; i < 5000; i++)
            sum += x[i] != 0 ? x[i] : 0;
    }
    for (node *n = list; n != nullptr; n = n->next)
        n_new++;
    for (long i : outside)
        sum += i;
    /* 100 numbers in each of the places, 91 nodes. */
    sum -= 100 * (1 + 1 + 1 + 1 + 0x0101010101010101 + 0x0707070707070707);
    printf("%ld %ld\n", sum, n_new);
    return xShutdown() != 0;
}
END
cat >module.c <<'END'
void add(long *x, int n);
void add(long *x, int n)
{
    __transaction_atomic { x[0] += n; x[512] += n; }
    __transaction_atomic { x[0] += n; if (n > 0) __transaction_cancel; }
}
END
cat >host.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <xac.h>
int main(int argc, char **argv)
{
    if (argc < 2 || xInit("db", NONDURABLE) != 0)
        return 1;
    long *x = (long *)xMmap("input.db", 4096 * 10);
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0));
    void (*add)(long *, int) = module != NULL ? (void (*)(long *, int))dlsym(module, "add") : NULL;
    if (add == NULL)
        return 2;
    for (int i = 0; i < 5; i++)
        add(x, 1);
    xbeginQuery();
    printf("x[0] is %ld\n", x[0]);
    xendQuery();
    return xShutdown();
}
END

cxx=${CXX:-g++}
cc=${CC:-gcc}
flags=$(pkg-config --cflags libxac-itm)
itm="$flags $(pkg-config --libs libxac-itm)"
for options in -O0 -O1 -O2 -O3 -Os "-O2 -flto" "-O3 -flto" "-O2 -static" "-O2 -flto -static"; do
    libs=$itm
    case $options in
    *-static)
        libs="$flags $(pkg-config --static --libs libxac-itm)"
        [ -e "${pc%/*}/libxac-itm.a" ] || continue
        ;;
    esac
    # shellcheck disable=SC2086
    $cxx $options blocks.cc $libs -o blocks 2>log || { cat log; failures=$((failures + 1)); continue; }
    prints '^0 91$' ./blocks
done

# shellcheck disable=SC2046,SC2086
{
    $cc -O2 -shared -fPIC module.c $itm -o ours.so
    $cc -O2 -shared -fPIC module.c $flags -o theirs.so # linked with gcc's library only
    $cc -O2 host.c $(pkg-config --cflags --libs libxac) -o plain
    $cc -O2 host.c -Wl,--no-as-needed -litm $(pkg-config --cflags --libs libxac) -o before
    $cc -O2 host.c -Wl,--no-as-needed $itm -o both
}
prints 'x\[0\] is 5' ./plain ./ours.so
grep -q warning output && { failures=$((failures + 1)); cat output; }
stops "gcc's own libitm stands before it" ./before ./ours.so
prints 'x\[0\] is 5' ./before ./ours.so deeply
grep -q warning output && { failures=$((failures + 1)); cat output; }
prints 'x\[0\] is 5' ./both ./ours.so
prints 'x\[0\] is 5' ./both ./theirs.so # the same names: ours are found first
stops 'Blocks of gcc -fgnu-tm need libxac-itm' ./plain ./theirs.so
stops 'Blocks of gcc -fgnu-tm need libxac-itm' ./before ./theirs.so
echo "$(((cases - failures) * 100 / cases))%: Checks: $cases, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
