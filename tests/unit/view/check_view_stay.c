/* SPDX-License-Identifier: MIT */
/*
 * check_view_stay.c -- how many private copies of pages stay from one transaction to the next.
 *
 * GOAL    The views of a context keep a bounded number of pages, which follows from the memory that
 *         there is, whatever the engine is and whether a checkpoint has brought the pages to their file.
 *         A begin drops a bounded number of them.  A page that was dropped is shown again as it was.
 * METHOD  Transactions and queries touch more pages than may stay.  The test counts those that have memory,
 *         before and after each begin, and what the kernel says of the segment's memory.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/memory.h"
#include "tests/common/env.h"
#include "txn/ctx.h"
#include "view/view.h"

#define PAGES UINT64_C(20000)
#define STEP  64
#define MOST  4096
#define DROPS 1024 /* pages that one begin drops at most */

static uint64_t
content(uint64_t page_no)
{
    return page_no % 7 == 0 ? page_no + 1 : 0;
}

/* allow -- so many copies, by this much memory; one process without threads has half of the share. */
static void
allow(uint64_t copies)
{
    xac_api_all->memory_bytes = copies * env_page() * 2 * XAC_COPIES_SHARE;
    xac_api_all->ctx.copies_most = 0; /* not known yet */
}

static uint64_t *
start(void)
{
    uint64_t *base;

    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, PAGES);
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p += 7)
        *env_cell(base, p) = content(p);
    must_eq(xend(), COMMITTED);
    return base;
}

/* kept -- pages that our context may keep. */
static uint64_t
kept(void)
{
    xac_api_all->ctx.copies_most = 0;
    must_ok(xbeginQuery());
    must_ok(xendQuery());
    return xac_api_all->ctx.copies_most;
}

/* Of the participants that come later: how many may, and how many have. */
static _Atomic uint64_t *called, *come;

static void
come_later(void *arg)
{
    proc_await(called, *(const uint64_t *)arg, 60);
    (void)env_attach(NONDURABLE, 8);
    word_add(come, 1);
    for (;;)
        (void)pause();
}

/* call -- one participant more. */
static void
call(uint64_t number)
{
    word_store(called, number);
    proc_await(come, number, 60);
}

START_TEST(contexts_keep_a_share_of_memory)
{
    static const uint64_t number[] = {1, 2};
    uint64_t all;
    pid_t other[2];

    called = proc_shared(2 * sizeof *called);
    come = called + 1;
    for (int i = 0; i < 2; i++)
        other[i] = proc_spawn(come_later, (void *)(uintptr_t)&number[i]);
    (void)start();
    all = xac_memory_bytes() / env_page() / XAC_COPIES_SHARE;
    must_eq(kept(), all / 2);
    call(1);
    must_eq(kept(), all / 2);
    call(2);
    for (int i = 0; i < 100; i++) { /* it is noticed, though few pages stay */
        must_ok(xbeginQuery());
        must_ok(xendQuery());
    }
    must_eq(xac_api_all->ctx.copies_most, all / 3);
    xac_api_all->memory_bytes = 1;
    must_eq(kept(), XAC_COPIES_LEAST);
    env_detach();
    proc_kill(other[0]);
    proc_kill(other[1]);
}
END_TEST

START_TEST(pages_that_stay_are_bounded)
{
    uint64_t *base = start();
    struct xac_view *v = xac_api_all->ctx.views;
    uint64_t n_dropped = 0;

    if (v->area.ops->fills == NULL) {
        env_detach();
        return; /* the engine maps the file: there are no copies to keep */
    }
    allow(MOST);
    for (uint64_t p = 0; p < 2 * PAGES; p += STEP) {
        uint64_t had = v->pages.n_copies;

        must_ok(xbeginQuery());
        must(had - v->pages.n_copies <= DROPS);
        must(v->pages.n_copies > MOST - DROPS || v->pages.n_copies == had);
        must(v->pages.n_copies <= MOST);
        n_dropped += had - v->pages.n_copies;
        for (uint64_t k = p; k < p + STEP; k++)
            must_eq(*env_cell(base, k % PAGES), content(k % PAGES));
        must_ok(xendQuery());
        must(v->pages.n_copies <= MOST + STEP);
    }
    must(n_dropped >= 2 * PAGES - MOST - STEP);
    env_detach();
}
END_TEST

/* A transaction that touches more pages than one step drops: the next begin drops as many. */
START_TEST(large_transactions_are_bounded)
{
    uint64_t *base = start();
    struct xac_view *v = xac_api_all->ctx.views;

    allow(MOST);
    for (int round = 0; round < 3 && v->area.ops->fills != NULL; round++) {
        must_ok(xbeginQuery());
        must(v->pages.n_copies <= MOST);
        for (uint64_t k = 0; k < PAGES; k++)
            must_eq(*env_cell(base, k), content(k));
        must_ok(xendQuery());
    }
    env_detach();
}
END_TEST

/* ---- Memory ------------------------------------------------------------------------------ */

#define SPACE   UINT64_C(4096) /* pages of the segment that transactions write ...       */
#define BOUND   UINT64_C(512) /* ... of which so many may stay                            */
#define COMMITS 6000

static const struct way {
    const char *engine;
    uint64_t checking;
    int flags;
    int checkpoint; /* after so many commits; 0: none                                   */
    bool beside; /* another participant is there                                      */
} ways[] = {
    {"uffd", XAC_CHECKING_FAST, NONDURABLE, 1000, false},
    {"uffd", XAC_CHECKING_FAST, DURABLE, 1000, false},
    {"uffd", XAC_CHECKING_FAST, NONDURABLE, 0, true},
    {"uffd", XAC_CHECKING_TRUSTED, NONDURABLE, 1000, false},
    {"uffd", XAC_CHECKING_TRUSTED, DURABLE, 1000, false},
    {"scan", XAC_CHECKING_FAST, NONDURABLE, 1000, false},
    {"sigsegv", XAC_CHECKING_FAST, NONDURABLE, 1000, false},
    {"sigsegv", XAC_CHECKING_FAST, NONDURABLE, 0, false},
    {"sigsegv", XAC_CHECKING_FAST, NONDURABLE, 1000, true},
    {"sigsegv", XAC_CHECKING_STRICT, NONDURABLE, 0, true},
};
#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

/* private_pages -- of the process, between two addresses: memory that no file gives back. */
static uint64_t
private_pages(const void *base, size_t length)
{
    uint64_t from = (uint64_t)(uintptr_t)base, to = from + length, low, high, kib;
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[1024];
    bool is_it = false;
    uint64_t sum = 0;

    must(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &low, &high) == 2)
            is_it = low < to && high > from;
        else if (is_it && sscanf(line, "Anonymous: %" SCNu64, &kib) == 1)
            sum += kib * 1024 / env_page();
    }
    must(fclose(f) == 0);
    return sum;
}

/* store -- in one transaction: the next value into a random page. */
static void
store(uint64_t *base, uint64_t page, uint64_t value, bool announces)
{
    int rc;

    do {
        must_ok(xbegin());
        if (announces)
            must_ok(setRangeAccess(env_cell(base, page), sizeof *base, READ_WRITE));
        *env_cell(base, page) = value;
        rc = xend();
    } while (rc == ABORTED);
    must_eq(rc, COMMITTED);
}

START_TEST(memory_of_written_pages_is_bounded)
{
    const struct way *way = &ways[_i];
    static uint64_t model[SPACE];
    uint64_t *base, state = env_seed(), most = 0, page;
    pid_t other = 0;

    env_without_frames("their pages do not stay");
    must_eq(setenv("XAC_ENGINE", way->engine, 1), 0);
    env_checking = way->checking;
    if (way->beside)
        other = env_companion(way->flags, SPACE);
    must_ok(xac_set_option(XAC_OPT_SYNC_DELAY_MS, 1000)); /* the log does not matter */
    base = env_attach(way->flags, SPACE);
    allow(BOUND);
    for (int i = 1; i <= COMMITS; i++) {
        page = rnd_below(&state, SPACE);
        model[page] = (uint64_t)i;
        store(base, page, (uint64_t)i, way->checking == XAC_CHECKING_TRUSTED);
        if (way->checkpoint != 0 && i % way->checkpoint == 0)
            must_ok(xCheckpoint());
        if (i % 100 == 0) {
            uint64_t n = private_pages(base, SPACE * env_page());

            most = n > most ? n : most;
        }
    }
    must(most <= BOUND + 1);
    must(xac_api_all->ctx.views->pages.n_copies <= BOUND + 1);
    for (page = 0; page < SPACE; page++)
        must_eq(env_get(env_cell(base, page)), model[page]);
    env_detach();
    if (other != 0)
        proc_kill(other);
}
END_TEST

/* Of two views each gives back a part of what it has; the few of a small one stay. */
START_TEST(views_of_a_context_share_the_bound)
{
    uint64_t *base, *small;
    struct xac_view *views, *v;

    env_without_frames("their pages do not stay");
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, SPACE);
    small = xMmap("small.db", 4 * env_page());
    must(small != MAP_FAILED);
    allow(BOUND);
    views = xac_api_all->ctx.views;
    v = views->area.n_pages == 4 ? views : views->next;
    for (uint64_t p = 0; p < SPACE && v->area.ops->fills != NULL; p++) {
        must_ok(xbeginQuery());
        must(views->pages.n_copies + views->next->pages.n_copies < BOUND + 2);
        must(p == 0 || v->pages.n_copies == 4);
        for (uint64_t k = 0; k < 4; k++)
            must_eq(*env_cell(small, k), 0);
        must_eq(*env_cell(base, p), 0);
        must_ok(xendQuery());
    }
    env_detach();
}
END_TEST

/* copies -- pages with a private copy, counted one by one. */
static uint64_t
copies(const struct xac_view *v)
{
    uint64_t n = 0;

    for (uint64_t p = 0; p < v->area.n_pages; p++)
        n += v->pages.at[p].copy != XAC_COPY_NONE
             && v->pages.at[p].copy != XAC_COPY_SHARED;
    return n;
}

/* Where the engine maps the file, beside others: a page has a version, and then none, again and
   again. */
START_TEST(copies_are_counted)
{
    const struct xac_view *v;
    uint64_t *base;
    pid_t other;

    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    must_ok(xac_set_option(XAC_OPT_ENGINE, XAC_ENGINE_PORTABLE));
    other = env_companion(NONDURABLE, 8);
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, 8);
    v = xac_api_all->ctx.views;
    for (uint64_t i = 0; i < 20; i++) {
        env_increment(env_cell(base, 1));
        must_ok(xCheckpoint());
        must_ok(xbeginQuery());
        must_eq(*env_cell(base, 1), i + 1);
        must_ok(xendQuery());
        must_eq(v->pages.n_copies, copies(v));
    }
    env_detach();
    proc_kill(other);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("view_stay");
    TCase *tc = env_tcase(s, "view_stay", 60);

    tcase_add_test(tc, contexts_keep_a_share_of_memory);
    tcase_add_test(tc, pages_that_stay_are_bounded);
    tcase_add_test(tc, large_transactions_are_bounded);
    tcase_add_test(tc, copies_are_counted);
    tcase_add_loop_test(tc, memory_of_written_pages_is_bounded, 0, N_WAYS);
    tcase_add_test(tc, views_of_a_context_share_the_bound);
    return env_main(s);
}
