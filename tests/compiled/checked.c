/* SPDX-License-Identifier: MIT */
/*
 * checked.c -- compiled by xac-cc, promises to announce each store: see check_checking.sh.
 *
 * checked announced | loaded | forgotten | library: which stores it makes.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#define PAGE 4096

void store_forgotten(int *at);
void call_forgotten(int *at);
int *start(void);

/* Not static: the name is in the report. */
__attribute__((noinline)) void
call_forgotten(int *at)
{
    store_forgotten(at);
    at[1]++;
}

int *
start(void)
{
    int *base;

    if (xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED) != 0
        || xInit("db", NONDURABLE) != 0)
        abort();
    base = (int *)xMmap("input.db", 8 * PAGE);
    if ((void *)base == MAP_FAILED)
        abort();
    return base;
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "announced";
    int *base = start(), sum = 0;

    for (int round = 0; round < 10; round++) {
        if (xbegin() != 0)
            abort();
        for (int i = 0; i < 4 * PAGE / 4; i++)
            base[i] += i;
        if (round == 5 && strcmp(what, "loaded") == 0)
            sum += memcmp(base + 5 * PAGE / 4, base + 6 * PAGE / 4, PAGE);
        if (round == 5 && strcmp(what, "forgotten") == 0)
            call_forgotten(base + 6 * PAGE / 4);
        if (round == 5 && strcmp(what, "library") == 0)
            memfrob(base + 6 * PAGE / 4, 100);
        if (xend() != COMMITTED)
            abort();
    }
    printf("%d\n", base != NULL ? sum : 0);
    return xShutdown() != 0;
}
