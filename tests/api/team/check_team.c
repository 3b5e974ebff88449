/* SPDX-License-Identifier: MIT */
/*
 * check_team.c -- several threads work on one transaction (xac_team.h, XAC_OPT_TEAM).
 *
 * GOAL    what helpers store is committed, or rolled back, with the transaction, all of it and nothing else;
 *         what they load is the transaction's state, whole at every moment.
 * METHOD  public header only.  Eight helpers and the owner begin at the same moment.  Each test runs in each
 *         mode: engines, policies, durable or not, frames; helpers that join, and those that need
 *         not.  Pages are brought into the store of versions before, for that is where they are copied from.
 */
#include <config.h>

#include "team.h"

#include <string.h>

/* ---- one page at once, and many --------------------------------------------------------------- */

/* all_words -- in a query: each thread's word of each page has that value. */
static void
all_words(uint64_t *base, size_t n_pages, uint64_t value)
{
    must_ok(xbeginQuery());
    for (size_t p = 0; p < n_pages; p++) {
        for (int i = 0; i <= TEAM; i++)
            must_eq(*team_word(base, p, i), value);
    }
    must_ok(xendQuery());
}

static void
store_on_one(struct helper *h)
{
    *team_word(h->base, h->round % h->n_pages, h->i) += 1;
}

/* rounds -- transactions that a team works on, until that many have committed; every third is rolled
   back. */
static void
rounds(int mode, uint64_t *x, size_t n_pages, uint64_t n, void (*work)(struct helper *h))
{
    for (uint64_t r = 0, done = 0; done < n; r++) {
        must_ok(xbegin());
        team_work(mode, x, n_pages, done, work);
        if (r % 3 == 1)
            must_ok(xAbort());
        done += xend() == COMMITTED;
    }
}

START_TEST(eight_threads_trap_on_one_page_at_once)
{
    uint64_t *x = team_attach(_i, 8);

    rounds(_i, x, 8, 64, store_on_one);
    all_words(x, 8, 8);
    env_detach();
}
END_TEST

/* page_at -- the pages in an order of the thread's own. */
static size_t
page_at(const struct helper *h, size_t k)
{
    return (k * 7 + (size_t)h->i * 5) % h->n_pages;
}

static void
store_on_many(struct helper *h)
{
    for (size_t k = 0; k < h->n_pages; k++)
        *team_word(h->base, page_at(h, k), h->i) += 1;
}

START_TEST(eight_threads_trap_on_many_pages_at_once)
{
    uint64_t *x =
        team_attach(_i, 400); /* no multiple of 7; more than frames show at once */

    rounds(_i, x, 400, 6, store_on_many);
    all_words(x, 400, 6);
    env_detach();
}
END_TEST

/* Many stores to each page, which is spilled meanwhile where there is a bound. */
static void
store_again(struct helper *h)
{
    for (size_t k = 0; k < 4 * h->n_pages; k++) {
        uint64_t *w = team_word(h->base, page_at(h, k), h->i);

        for (int n = 0; n < 50; n++)
            *(volatile uint64_t *)w += 1;
    }
}

START_TEST(no_store_is_lost_while_pages_come_and_go)
{
    uint64_t *x = team_attach(_i, 300);

    rounds(_i, x, 300, 2, store_again);
    all_words(x, 300, 2 * 4 * 50);
    env_detach();
}
END_TEST

/* ---- pages are whole ---------------------------------------------------------------------- */

static void
fill_all(uint64_t *base, size_t n_pages, uint64_t value)
{
    must_ok(xbegin());
    for (size_t i = 0; i < n_pages * env_page() / sizeof *base; i++)
        base[i] = value;
    must_rc(xend(), COMMITTED);
}

static void
load_whole(struct helper *h)
{
    for (size_t p = 0; p < h->n_pages; p++) {
        const volatile uint64_t *w = env_cell(h->base, p);
        size_t n = env_page() / sizeof *w;

        for (size_t k = 0; k < n; k++)
            must_eq(w[(h->i % 2 != 0 ? k : n - 1 - k)], h->round);
    }
}

START_TEST(helpers_see_whole_pages)
{
    uint64_t *x = team_attach(_i, 32);

    for (uint64_t r = 1; r <= 12; r++) {
        fill_all(x, 32, r);
        must_ok(r % 2 == 0 ? xbegin() : xbeginQuery());
        team_work(_i, x, 32, r, load_whole);
        if (r % 2 == 0)
            must_eq(xend(), COMMITTED);
        else
            must_ok(xendQuery());
    }
    env_detach();
}
END_TEST

/* ---- pages in two views --------------------------------------------------------------------- */

static uint64_t *second;

static void
store_in_both(struct helper *h)
{
    uint64_t *base = h->i % 2 == 0 ? h->base : second;

    for (size_t k = 0; k < h->n_pages; k++)
        *team_word(base, page_at(h, k), h->i) += 1;
}

START_TEST(helpers_store_through_two_views)
{
    uint64_t *x = team_attach(_i, 24);

    second = env_map_at(0, 24);
    fill_all(x, 24, 3);
    for (uint64_t r = 1; r <= 6; r++) {
        must_ok(xbegin());
        team_work(_i, x, 24, r, store_in_both);
        must_rc(xend(), COMMITTED);
        all_words(r % 2 == 0 ? x : second, 24, 3 + r);
    }
    env_detach();
}
END_TEST

/* ---- more pages than there are mappings ------------------------------------------------------ */

#define SCATTERED 12000

static void
store_scattered(struct helper *h)
{
    for (size_t p = 0; p < h->n_pages; p += 2)
        *team_word(h->base, p, h->i) += 1;
}

START_TEST(helpers_share_larger_units)
{
    uint64_t *x = team_attach(7, 2 * SCATTERED);

    for (int r = 1; r <= 2; r++) {
        must_ok(xbegin());
        team_work(7, x, (size_t)2 * SCATTERED, 0, store_scattered);
        must_rc(xend(), COMMITTED);
    }
    must_ok(xbeginQuery());
    for (size_t p = 0; p < (size_t)2 * SCATTERED; p++) {
        for (int i = 0; i <= TEAM; i++)
            must_eq(*team_word(x, p, i), p % 2 == 0 ? 2 : 0);
    }
    must_ok(xendQuery());
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("team");
    TCase *tc = env_tcase(s, "work", 120);

    tcase_add_loop_test(tc, eight_threads_trap_on_one_page_at_once, 0, team_n_modes);
    tcase_add_loop_test(tc, eight_threads_trap_on_many_pages_at_once, 0, team_n_modes);
    tcase_add_loop_test(tc, no_store_is_lost_while_pages_come_and_go, 0, team_n_modes);
    tcase_add_loop_test(tc, helpers_see_whole_pages, 0, team_n_modes);
    tcase_add_loop_test(tc, helpers_store_through_two_views, 0, team_n_modes);
    tcase_add_test(tc, helpers_share_larger_units);
    add_members(s);
    return env_main(s);
}
