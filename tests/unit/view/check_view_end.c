/* SPDX-License-Identifier: MIT */
/*
 * check_view_end.c -- a transaction ends while system calls fail.
 *
 * GOAL    A failing system call at the end of a transaction does not stop the program.  Committed
 *         changes are there, others are not; the pages have no access afterwards, or
 *         the next begin is refused until calls work again.
 * METHOD  Of a transaction that loads and stores scattered pages, the first call on memory in
 *         xend() fails, then the second one, and so on (sysfault.h): it alone, or it and all
 *         that come later, until a begin has been tried.  For each engine, with and without pages
 *         that stay, with mappings that overlap, in a bound of memory.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/sysfault.h"

#define PAGES     64u
#define CALLS_MAX 100u

static const size_t stored[] = {0, 1, 7, 20, 21, 22, 40};
#define N_STORED (sizeof stored / sizeof stored[0])

static const struct way {
    const char *engine;
    bool stays, overlaps, is_bounded;
} ways[] = {
    {.engine = "uffd"},
    {.engine = "uffd", .stays = true},
    {.engine = "uffd", .overlaps = true},
    {.engine = "uffd", .is_bounded = true},
    {.engine = "uffd", .is_bounded = true, .overlaps = true},
    {.engine = "scan", .stays = true},
    {.engine = "sigsegv"},
    {.engine = "sigsegv", .stays = true},
    {.engine = "sigsegv", .overlaps = true},
};
#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

static uint64_t *base[2]; /* of the file; the second one may be NULL                    */
static uint64_t values[PAGES];

static void
attach(const struct way *way)
{
    must(setenv("XAC_ENGINE", way->engine, 1) == 0);
    env_checking = way->stays ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    if (way->is_bounded)
        must_ok(xac_set_option(XAC_OPT_FRAMES, 256));
    base[0] = env_attach(NONDURABLE, PAGES);
    base[1] = way->overlaps ? env_map_at(0, PAGES) : NULL;
}

/* cell -- the number of a page, now through one mapping, now through the other. */
static uint64_t *
cell(size_t page)
{
    return env_cell(base[base[1] != NULL && page % 2 == 1], page);
}

/* work -- in a transaction. */
static void
work(uint64_t value)
{
    for (size_t page = 0; page < PAGES; page += 5)
        must_eq(*cell(page), values[page]);
    for (size_t i = 0; i < N_STORED; i++)
        *cell(stored[i]) = value;
}

/* is_readable -- by the kernel, which does not trap. */
static bool
is_readable(const void *addr)
{
    int ends[2];
    bool is;

    must(pipe(ends) == 0);
    is = write(ends[1], addr, 1) == 1;
    must(is || errno == EFAULT);
    must(close(ends[0]) == 0 && close(ends[1]) == 0);
    return is;
}

/* end -- a transaction, while the n-th call fails; ret whether there are so many. */
static bool
end(const struct way *way, enum sysfault_what what, uint64_t n, bool is_aborted)
{
    bool is_hit;
    int rc;

    must_ok(xbegin());
    work(n);
    if (is_aborted)
        must_ok(xAbort());
    sysfault_arm(what, SYSFAULT_MEMORY, n, ENOMEM);
    rc = xend();
    is_hit = sysfault_hit() != NULL;
    must(!is_aborted || rc != 0);
    for (size_t i = 0; i < N_STORED && rc == 0; i++)
        values[stored[i]] = n;
    if (what == SYSFAULT_FAIL && !way->stays) {
        for (size_t page = 0; page < PAGES; page++)
            must(!is_readable(cell(page)));
    }
    rc = xbegin();
    sysfault_disarm();
    if (rc != 0) {
        must(what == SYSFAULT_FAIL_ALL);
        must_eq(rc, ENOMEM);
        must_ok(xbegin());
    }
    for (size_t page = 0; page < PAGES; page++)
        must_eq(*cell(page), values[page]);
    must_ok(xend());
    return is_hit;
}

static void
end_while_calls_fail(const struct way *way, bool is_aborted)
{
    static const enum sysfault_what whats[] = {SYSFAULT_FAIL, SYSFAULT_FAIL_ALL};

    attach(way);
    for (int i = 0; i < 2; i++) {
        uint64_t n = 1;

        while (end(way, whats[i], n, is_aborted))
            must(++n < CALLS_MAX);
        printf("%s: %llu calls\n", way->engine, (unsigned long long)n - 1);
        must(n > 1 || way->stays);
    }
    env_detach();
}

START_TEST(commit_while_calls_fail)
{
    end_while_calls_fail(&ways[_i], false);
}
END_TEST

START_TEST(abort_while_calls_fail)
{
    end_while_calls_fail(&ways[_i], true);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("view_end");
    TCase *tc = env_tcase(s, "view_end", 60);

    tcase_add_loop_test(tc, commit_while_calls_fail, 0, N_WAYS);
    tcase_add_loop_test(tc, abort_while_calls_fail, 0, N_WAYS);
    return env_main(s);
}
