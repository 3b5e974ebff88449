/* SPDX-License-Identifier: MIT */
/*
 * check_view_stay.c -- how many pages stay readable from one transaction to the next.
 *
 * GOAL    A view keeps a bounded number of pages, and a begin drops a bounded number of them.
 *         A page that was dropped is shown again as it was.
 * METHOD  Queries read more pages than the view may keep; the test counts those that have memory,
 *         before and after each begin.
 */
#include <config.h>

#include "api/api.h"
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

/* By default as much as a share of the machine's memory. */
START_TEST(a_view_keeps_a_share_of_memory)
{
    uint64_t share = (uint64_t)sysconf(_SC_PHYS_PAGES) / XAC_STAY_SHARE;

    (void)start();
    must_eq(xac_api_all->ctx.views->staying.most,
            share > XAC_STAY_LEAST ? share : XAC_STAY_LEAST);
    env_detach();
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
    v->staying.most = MOST;
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

    v->staying.most = MOST;
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

    tcase_add_test(tc, a_view_keeps_a_share_of_memory);
    tcase_add_test(tc, pages_that_stay_are_bounded);
    tcase_add_test(tc, large_transactions_are_bounded);
    tcase_add_test(tc, copies_are_counted);
    return env_main(s);
}
