/* SPDX-License-Identifier: MIT */
/*
 * check_refresh.c -- pages that stay mapped while others commit more than the library remembers
 * commit by commit.
 *
 * GOAL    The next query, or update under the serial policy, finds what has been written, also
 *         if a checkpoint has taken the versions out of memory since.  It traps only at the
 *         pages that have been written.
 * METHOD  A child commits on demand: many commits of few pages, a commit of many pages, or both, and
 *         then perhaps a checkpoint.  The test has a copy of what each page should hold.
 *         Besides, two processes take turns at a few pages.  Each compares every word with a copy of
 *         what the pages should hold, then changes some words, in random lines of a page, by one
 *         commit or several; some transactions it aborts.
 */
#include <config.h>

#include <stdlib.h>

#include "tests/common/env.h"

#define PAGES 64u
#define SMALL 1500u /* commits; the library remembers about a thousand */
#define LARGE 40u   /* pages of a commit; of so many it does not say which */

#define ROUNDS (2 * N_WORKS)

#define SHARED_PAGES 6u
#define SHARED_TURNS 600u /* of both processes                                         */
#define WORDS_MAX    (65536 / sizeof(uint64_t))

enum work {
    MANY_COMMITS,
    MANY_PAGES,
    BOTH,
    N_WORKS
};

struct board {
    _Atomic uint64_t attached, asked, done;
    uint64_t value[PAGES];                  /* what the child has committed */
    uint64_t word[SHARED_PAGES][WORDS_MAX]; /* what both have                          */
};

static const struct way {
    const char *engine;
    uint64_t policy;
    bool in_query;
    bool is_trusted;
} ways[] = {
    {.engine = "uffd", .policy = XAC_POLICY_SERIAL},
    {.engine = "uffd", .policy = XAC_POLICY_SERIAL, .in_query = true},
    {.engine = "uffd", .policy = XAC_POLICY_OLDEST_WINS, .in_query = true},
    {.engine = "sigsegv", .policy = XAC_POLICY_SERIAL},
    {.engine = "sigsegv", .policy = XAC_POLICY_SERIAL, .in_query = true},
};
#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

/* Of the processes that take turns. */
static const struct way shared_ways[] = {
    {.engine = "uffd", .policy = XAC_POLICY_SERIAL, .is_trusted = true},
    {.engine = "uffd", .policy = XAC_POLICY_SERIAL, .in_query = true, .is_trusted = true},
    {.engine = "uffd", .policy = XAC_POLICY_SERIAL},
    {.engine = "uffd", .policy = XAC_POLICY_OLDEST_WINS, .in_query = true},
    {.engine = "scan", .policy = XAC_POLICY_SERIAL}, /* where the system can */
    {.engine = "sigsegv", .policy = XAC_POLICY_SERIAL},
};
#define N_SHARED_WAYS ((int)(sizeof shared_ways / sizeof shared_ways[0]))

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

static uint64_t *
attach(const struct way *way)
{
    must(setenv("XAC_ENGINE", way->engine, 1) == 0);
    env_checking = way->is_trusted ? XAC_CHECKING_TRUSTED : XAC_CHECKING_FAST;
    must_ok(xac_set_option(XAC_OPT_POLICY, way->policy));
    return (uint64_t *)env_attach(XAC_NONDURABLE, PAGES);
}

/* put -- in a transaction; the board says it, too. */
static void
put(uint64_t *x, size_t page, uint64_t value)
{
    *env_cell(x, page) = value;
    board->value[page] = value;
}

/* is_written -- by the child in that round, the first page being 0. */
static bool
is_written(uint64_t round, size_t page)
{
    enum work work = (enum work)(round % N_WORKS);

    return (work != MANY_COMMITS && page < LARGE)
           || (work != MANY_PAGES && page >= PAGES - 2);
}

static void
write_round(uint64_t *x, uint64_t round)
{
    for (uint64_t i = 0; is_written(round, PAGES - 1) && i < SMALL; i++) {
        must_ok(xac_begin());
        put(x, PAGES - 1 - i % 2, round << 32 | i);
        must_rc(xac_end(), XAC_COMMITTED);
    }
    if (is_written(round, 0)) {
        must_ok(xac_begin());
        for (size_t page = 0; page < LARGE; page++)
            put(x, page, round << 32 | page);
        must_rc(xac_end(), XAC_COMMITTED);
    }
    if (round % 2 == 0)
        must_ok(xac_checkpoint());
}

static void
write_on_demand(void *arg)
{
    uint64_t *x = attach((const struct way *)arg);

    word_store(&board->attached, 1);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        proc_await(&board->asked, round, 20);
        write_round(x, round);
        word_store(&board->done, round);
    }
    proc_await(&board->asked, ROUNDS + 1, 60); /* nobody is alone before */
    env_detach();
}

/* look -- at all pages; ret the traps. */
static uint64_t
look(uint64_t *x, const struct way *way)
{
    uint64_t before = env_traps();

    must_ok(way->in_query ? xac_begin_query() : xac_begin());
    for (size_t page = 0; page < PAGES; page++)
        must_eq(*(volatile uint64_t *)env_cell(x, page), board->value[page]);
    if (way->in_query)
        must_ok(xac_end_query());
    else
        must_rc(xac_end(), XAC_COMMITTED);
    return env_traps() - before;
}

START_TEST(only_written_pages_trap_again)
{
    struct way way = ways[_i];
    bool is_uffd = way.engine[0] == 'u';
    int n_more = 0;
    uint64_t *x;
    pid_t child;

    env_without_frames("pages that stay are dropped for others");
    child = proc_spawn(write_on_demand, &way);
    proc_await(&board->attached, 1, 20); /* from now on nobody is alone */
    x = attach(&way);
    (void)look(x, &way);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t n_written = 0, traps;

        must_eq(is_uffd ? look(x, &way) : 0, 0);
        word_store(&board->asked, round);
        proc_await(&board->done, round, 60);
        for (size_t page = 0; page < PAGES; page++)
            n_written += is_written(round, page);
        traps = look(x, &way);
        n_more += is_uffd && traps > n_written;
        /* Under the serial policy a view gets a twin once, and then no page traps any more. */
        must(n_more <= (way.policy == XAC_POLICY_SERIAL));
        must(!is_uffd || way.policy == XAC_POLICY_SERIAL || traps > 0);
    }
    word_store(&board->asked, ROUNDS + 1);
    proc_join(child);
    env_detach();
}
END_TEST

/* ---- Lines of a page ---------------------------------------------------------------- */

/* compare_words -- of all pages, with what has been committed. */
static void
compare_words(uint64_t *x, bool in_query)
{
    must_ok(in_query ? xac_begin_query() : xac_begin());
    for (size_t page = 0; page < SHARED_PAGES; page++) {
        for (size_t i = 0; i < env_page() / sizeof *x; i++)
            must_eq(((volatile uint64_t *)env_cell(x, page))[i], board->word[page][i]);
    }
    if (in_query)
        must_ok(xac_end_query());
    else
        must_rc(xac_end(), XAC_COMMITTED);
}

/* change_words -- of some pages, in a transaction, which may be aborted.  Some are stored to before
   they are announced, unless that is forbidden. */
static void
change_words(uint64_t *x, const struct way *way, uint64_t *seed)
{
    bool is_kept = rnd_below(seed, 5) > 0;
    uint64_t n_pages = 1 + rnd_below(seed, SHARED_PAGES), first = rnd_next(seed);

    must_ok(xac_begin());
    for (uint64_t k = 0; k < n_pages; k++) {
        size_t page = (first + k) % SHARED_PAGES;

        uint64_t n_words = 1 + rnd_below(seed, 6);
        uint64_t n_before = way->is_trusted ? 0 : rnd_below(seed, 3);

        for (uint64_t n = 0; n < n_words; n++) {
            size_t i = rnd_below(seed, env_page() / sizeof *x);
            uint64_t value = rnd_below(seed, 3); /* often what it has been before */

            if (n == n_before)
                must_ok(xac_set_page_access(env_cell(x, page), XAC_READ_WRITE));
            env_cell(x, page)[i] = value;
            if (is_kept)
                board->word[page][i] = value;
        }
    }
    if (!is_kept)
        must_ok(xac_abort());
    must_rc(xac_end(), is_kept ? XAC_COMMITTED : XAC_ABORTED);
}

/* take_turns -- with the other process; one has the even turns. */
static void
take_turns(uint64_t *x, const struct way *way, uint64_t first)
{
    uint64_t seed = env_seed() + first;

    for (uint64_t turn = first; turn < SHARED_TURNS; turn += 2) {
        proc_await(&board->done, turn, 20);
        compare_words(x, way->in_query);
        for (uint64_t n = rnd_below(&seed, 4); n > 0; n--)
            change_words(x, way, &seed);
        if (turn % 100 < 2)
            must_ok(xac_checkpoint());
        word_store(&board->done, turn + 1);
    }
    proc_await(&board->done, SHARED_TURNS, 20);
}

static void
take_odd_turns(void *arg)
{
    uint64_t *x = attach((const struct way *)arg);

    word_store(&board->attached, 1);
    take_turns(x, (const struct way *)arg, 1);
    env_detach();
}

START_TEST(lines_that_others_change_are_shown)
{
    struct way way = shared_ways[_i];
    pid_t child;
    uint64_t *x;

    child = proc_spawn(take_odd_turns, &way);
    proc_await(&board->attached, 1, 20);
    x = attach(&way);
    take_turns(x, &way, 0);
    proc_join(child);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("refresh");
    TCase *tc = env_tcase_with(s, "refresh", 60, setup);

    tcase_add_loop_test(tc, only_written_pages_trap_again, 0, N_WAYS);
    tcase_add_loop_test(tc, lines_that_others_change_are_shown, 0, N_SHARED_WAYS);
    return env_main(s);
}
