/* SPDX-License-Identifier: MIT */
/*
 * check_cutoff.c -- queries that hold back too many versions are cut off (XAC_OPT_READER_LIMIT), and the
 * table of participants shows who does.
 *
 * GOAL    While a query sleeps, the version store stays below the limit.  A query that has been cut off
 *         never ends with success, whatever it does, and the process's next one sees the newest state.
 *         Without a limit, and below it, queries see their state to the end; and if a snapshot or the
 *         history holds the same state, too.  No snapshot is taken of a state that is not kept any more.
 * METHOD  A child reads page 0 in a query and waits; the test writes every page many times, then lets
 *         the child go on.  Besides, children scan all pages again and again under a limit that is
 *         often reached: each page holds the number of its commit, which all pages have in common, so a
 *         scan that ends with success must have seen one number only.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/env.h"

#define MIB        ((uint64_t)1 << 20)
#define LIMIT      (2 * MIB)
#define PAGES      ((size_t)(3 * MIB / env_page()))
#define PER_TXN    2u
#define SCAN_PAGES ((size_t)(2 * MIB / env_page()))
#define SCANS      30
#define SCANNERS   2
#define LAST       3u /* what is written last                                      */

struct board {
    _Atomic uint64_t ready, reading, written, done, n_cut, n_whole;
};

static const struct way {
    const char *engine;
    int flags;
    uint64_t policy, limit;
} ways[] = {
    {"uffd", XAC_DURABLE, XAC_POLICY_SERIAL, LIMIT},
    {"uffd", XAC_NONDURABLE, XAC_POLICY_OLDEST_WINS, LIMIT},
    {"uffd", XAC_NONDURABLE, XAC_POLICY_OPTIMISTIC, LIMIT},
    {"sigsegv", XAC_DURABLE, XAC_POLICY_SERIAL, LIMIT},
    {"sigsegv", XAC_NONDURABLE, XAC_POLICY_OLDEST_WINS, LIMIT},
    {"uffd", XAC_DURABLE, XAC_POLICY_SERIAL, 0},
    {"sigsegv", XAC_NONDURABLE, XAC_POLICY_OLDEST_WINS, 0},
};
#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

/* let_end -- the reader sees that all is written, and ends; then we leave. */
static void
let_end(pid_t child)
{
    word_store(&board->written, 1);
    proc_await(&board->done, 1, 60);
    proc_join(child);
    env_detach();
}

static uint64_t *
attach(const struct way *way, size_t n_pages)
{
    must(setenv("XAC_ENGINE", way->engine, 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    must_ok(xac_set_option(XAC_OPT_POLICY, way->policy));
    must_ok(xac_set_option(XAC_OPT_READER_LIMIT, way->limit));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, MIB));
    return (uint64_t *)env_attach(way->flags, n_pages);
}

/* write_all -- every page once more, some by each transaction. */
static void
write_all(uint64_t *x, uint64_t value, uint64_t *mostp)
{
    for (size_t page = 0; page < PAGES; page += PER_TXN) {
        struct xac_stats s;

        must_ok(xac_begin());
        for (size_t i = page; i < page + PER_TXN && i < PAGES; i++)
            *env_cell(x, i) = value;
        must_rc(xac_end(), XAC_COMMITTED);
        s = env_stats();
        if (s.versions_live * env_page() > *mostp)
            *mostp = s.versions_live * env_page();
    }
}

static void
write_page(uint64_t *x, size_t page, uint64_t value)
{
    must_ok(xac_begin());
    *env_cell(x, page) = value;
    must_rc(xac_end(), XAC_COMMITTED);
}

/* ---- One that sleeps -------------------------------------------------------------------- */

static uint64_t
load(uint64_t *x, size_t page)
{
    return *(volatile uint64_t *)env_cell(x, page);
}

/* look_cut -- a query that has been cut off, from within. */
static void
look_cut(uint64_t *x, bool is_uffd)
{
    size_t n_zero = 0;

    /* First of all: the calls below would find out by themselves. */
    for (size_t page = 1; page < PAGES; page++) {
        uint64_t value = load(x, page);

        n_zero += value == 0;
        must(!is_uffd || value == 0 || value == 1); /* 1: shown before */
    }
    must(!is_uffd || n_zero > PAGES / 2);
    must_refuse(xac_validate(), XAC_ECUTOFF);
    must_refuse(xac_set_page_access(env_cell(x, PAGES - 1), XAC_READ), XAC_ECUTOFF);
    must_refuse(xac_set_range_access(env_cell(x, 1), 8 * env_page(), XAC_READ),
                XAC_ECUTOFF);
    must_ok(xac_begin_query());
    must_refuse(xac_end_query(), XAC_ECUTOFF); /* nested */
    must_refuse(xac_end_query(), XAC_ECUTOFF);
}

static void
read_slowly(void *arg)
{
    const struct way *way = (const struct way *)arg;
    uint64_t *x;

    proc_await(&board->ready, 1, 20);
    x = attach(way, PAGES);
    must_ok(xac_begin_query());
    must_eq(load(x, 0), 1);
    word_store(&board->reading, 1);
    proc_await(&board->written, 1, 100);
    if (way->limit != 0) {
        look_cut(x, way->engine[0] == 'u');
    } else {
        must_rc(xac_validate(), XAC_PENDING);
        for (size_t page = 0; page < PAGES; page++)
            must_eq(load(x, page), 1);
        must_ok(xac_end_query());
    }
    must_ok(xac_begin_query());
    for (size_t page = 0; page < PAGES; page++)
        must_eq(load(x, page), LAST);
    must_ok(xac_end_query());
    word_store(&board->done, 1);
    env_detach();
}

struct seen {
    uint64_t pid;
    struct xac_party party;
    int n;
};

static int
see(void *arg, const struct xac_party *party)
{
    struct seen *seen = (struct seen *)arg;

    seen->n++;
    if (party->pid == seen->pid)
        seen->party = *party;
    return 0;
}

static struct xac_party
party_of(pid_t pid)
{
    struct seen seen = {.pid = (uint64_t)pid};

    must_ok(xac_participants(see, &seen, sizeof seen.party));
    must_eq(seen.n, 2);
    must_eq(seen.party.pid, pid);
    return seen.party;
}

START_TEST(query_that_sleeps_is_cut_off)
{
    const struct way *way = &ways[_i];
    uint64_t most = 0, most_cut = 0;
    struct xac_party party;
    struct way copy = *way;
    uint64_t *x;
    pid_t child;

    child = proc_spawn(read_slowly, &copy);
    x = attach(way, PAGES);
    write_all(x, 1, &most);
    must_ok(xac_checkpoint());
    for (int n = 0; env_stats().versions_live > 256; n++) { /* commits free versions */
        write_page(x, 0, 1 + (uint64_t)(n % 2 == 0));
        must(n < 10000);
    }
    write_page(x, 0, 1);
    word_store(&board->ready, 1);
    proc_await(&board->reading, 1, 20);
    party = party_of(child);
    must_eq(party.kind, XAC_PARTY_QUERY);
    must(way->policy == XAC_POLICY_SERIAL || party.pages_read == 1);
    must_eq(party.versions_held, 0);
    for (uint64_t value = 2; value <= LAST; value++)
        write_all(x, value, &most_cut);
    party = party_of(child);
    must_eq(party.kind, way->limit != 0 ? XAC_PARTY_CUT : XAC_PARTY_QUERY);
    must_eq(env_stats().queries_cut, way->limit != 0);
    if (way->limit != 0) {
        if (most_cut >= LIMIT)
            env_fail(__FILE__, __LINE__, "the store had %llu bytes",
                     (unsigned long long)most_cut);
        must_eq(party.versions_held, 0);
    } else {
        must(most_cut >= PAGES * env_page());
        must(party.versions_held >= PAGES);
    }
    let_end(child);
}
END_TEST

/* ---- What cannot be cut off holds the same state --------------------------------------------- */

/* overwrite -- write all pages several times, which is more than the limit. */
static void
overwrite(uint64_t *x)
{
    uint64_t most = 0;

    for (uint64_t value = 2; value <= LAST; value++)
        write_all(x, value, &most);
}

/* read_held -- read a state that something else holds, too, and that is not to be lost therefore. */
static void
read_held(void *arg)
{
    const struct way *way = (const struct way *)arg;
    uint64_t *x, id = 0;

    proc_await(&board->ready, 1, 20);
    x = attach(way, PAGES);
    if (way->policy == XAC_POLICY_SERIAL)
        must_ok(xac_snapshot(&id));
    must_ok(way->policy == XAC_POLICY_SERIAL ? xac_begin_query_at(id)
                                             : xac_begin_query());
    must_eq(load(x, 0), 1);
    word_store(&board->reading, 1);
    proc_await(&board->written, 1, 100);
    must_rc(xac_validate(), XAC_PENDING);
    for (size_t page = 0; page < PAGES; page++)
        must_eq(load(x, page), 1);
    must_ok(xac_end_query());
    if (id != 0)
        must_ok(xac_snapshot_release(id));
    word_store(&board->done, 1);
    env_detach();
}

/* With the serial policy beside a snapshot, with the other one beside a history of all states. */
START_TEST(query_is_not_cut_off_for_nothing)
{
    struct way way = ways[_i];
    pid_t child = proc_spawn(read_held, &way);
    uint64_t *x, most = 0;

    if (way.policy != XAC_POLICY_SERIAL)
        must_ok(xac_set_option(XAC_OPT_HISTORY, XAC_HISTORY_COMMITS(1000000)));
    x = attach(&way, PAGES);
    write_all(x, 1, &most);
    word_store(&board->ready, 1);
    proc_await(&board->reading, 1, 20);
    overwrite(x);
    must_eq(env_stats().queries_cut, 0);
    must(env_stats().versions_live * env_page() > LIMIT);
    let_end(child);
}
END_TEST

/* take_of_cut -- a snapshot of what is not kept any more. */
static void
take_of_cut(void *arg)
{
    uint64_t *x, id = 0;

    proc_await(&board->ready, 1, 20);
    x = attach((const struct way *)arg, PAGES);
    must_ok(xac_begin_query());
    must_eq(load(x, 0), 1);
    word_store(&board->reading, 1);
    proc_await(&board->written, 1, 100);
    must_refuse(xac_snapshot(&id), XAC_ECUTOFF);
    must_refuse(xac_end_query(), XAC_ECUTOFF);
    must_ok(xac_snapshot(&id));
    must_ok(xac_begin_query_at(id)); /* behind one that was cut off */
    for (size_t page = 0; page < PAGES; page++)
        must_eq(load(x, page), LAST);
    must_ok(xac_end_query());
    word_store(&board->reading, 2);
    proc_await(&board->done, 1, 100);
    env_detach();
}

static int
count_snapshots(void *arg, const struct xac_party *party)
{
    *(uint64_t *)arg += party->kind == XAC_PARTY_SNAPSHOT;
    return 0;
}

START_TEST(query_that_is_cut_off_leaves_no_snapshot)
{
    struct way way = ways[_i];
    uint64_t *x, most = 0, n = 0;
    pid_t child = proc_spawn(take_of_cut, &way);

    x = attach(&way, PAGES);
    write_all(x, 1, &most);
    word_store(&board->ready, 1);
    proc_await(&board->reading, 1, 20);
    overwrite(x);
    must_eq(env_stats().queries_cut, 1);
    word_store(&board->written, 1);
    proc_await(&board->reading, 2, 60);
    must_ok(xac_participants(count_snapshots, &n, sizeof(struct xac_party)));
    must_eq(n, 1); /* the second one */
    word_store(&board->done, 1);
    proc_join(child);
    env_detach();
}
END_TEST

/* ---- Many, that race with it --------------------------------------------------------------- */

static void
scan(void *arg)
{
    const struct way *way = (const struct way *)arg;
    uint64_t seed = env_seed() + (uint64_t)getpid();
    uint64_t *x;

    proc_await(&board->ready, 1, 20);
    x = attach(way, SCAN_PAGES);
    while (atomic_load(&board->done) == 0) {
        bool is_one = true;
        uint64_t first;
        int rc;

        must_ok(xac_begin_query());
        first = load(x, rnd_below(&seed, SCAN_PAGES));
        for (size_t n = 0; n < SCAN_PAGES; n++) {
            if (n % 128 == 0)
                proc_sleep_us(rnd_below(&seed, 2000));
            is_one = load(x, n) == first && is_one;
        }
        rc = xac_end_query();
        must(rc == 0 || rc == XAC_ECUTOFF);
        must(rc != 0 || is_one);
        atomic_fetch_add(rc == 0 ? &board->n_whole : &board->n_cut, 1);
    }
    env_detach();
}

START_TEST(query_that_is_cut_off_never_succeeds)
{
    struct way way = ways[_i];
    pid_t child[SCANNERS];
    uint64_t *x;

    way.limit = MIB; /* half of the pages */
    for (int i = 0; i < SCANNERS; i++)
        child[i] = proc_spawn(scan, &way);
    x = attach(&way, SCAN_PAGES);
    word_store(&board->ready, 1);
    for (uint64_t n = 1; n <= SCANS || board->n_cut < 3 || board->n_whole < 3; n++) {
        int rc;

        do { /* again if one that joins has revoked it */
            must_ok(xac_begin());
            for (size_t page = 0; page < SCAN_PAGES; page++)
                *env_cell(x, page) = n;
            rc = xac_end();
        } while (rc == XAC_ABORTED);
        must_rc(rc, XAC_COMMITTED);
        if (n % 16 == 0)
            proc_sleep_us(20000);
        must(n < 100 * SCANS);
    }
    word_store(&board->done, 1);
    for (int i = 0; i < SCANNERS; i++)
        proc_join(child[i]);
    env_detach();
}
END_TEST

/* ---- The table of participants ---------------------------------------------------------------- */

static int
stop_at_once(void *arg, const struct xac_party *party)
{
    (void)party;
    ++*(int *)arg;
    return 7;
}

START_TEST(participants_refuses_bad_arguments)
{
    int n = 0;

    must_refuse(xac_participants(stop_at_once, &n, sizeof(struct xac_party)),
                XAC_ENOINIT);
    env_init(XAC_NONDURABLE);
    must_refuse(xac_participants(NULL, &n, sizeof(struct xac_party)), EINVAL);
    must_refuse(xac_participants(stop_at_once, &n, 7), EINVAL);
    must_eq(n, 0);
    must_rc(xParticipants(stop_at_once, &n, sizeof(uint64_t)), 7);
    must_eq(n, 1);
    env_detach();
}
END_TEST

/* wait_for_turn -- while the test has it. */
static void
wait_for_turn(void *arg)
{
    uint64_t *x;

    proc_await(&board->ready, 1, 20);
    x = attach((const struct way *)arg, 4);
    word_store(&board->reading, 1);
    must_ok(xac_begin());
    *env_cell(x, 1) = 1;
    must_ok(xac_abort());
    must_rc(xac_end(), XAC_ABORTED);
    must_ok(xac_begin_query());
    (void)load(x, 1);

    word_store(&board->reading, 2);
    proc_await(&board->done, 1, 20);
    must_ok(xac_end_query());
    env_detach();
}

START_TEST(participants_says_who_waits_and_who_failed)
{
    struct way way = {"uffd", XAC_NONDURABLE, XAC_POLICY_SERIAL, 0};
    pid_t child = proc_spawn(wait_for_turn, &way);
    uint64_t *x = attach(&way, 4);
    struct xac_party party;

    must_ok(xac_begin());
    *env_cell(x, 0) = 1;
    word_store(&board->ready, 1);
    proc_await(&board->reading, 1, 20);
    do
        party = party_of(child);
    while (party.waits_for == XAC_PARTY_NOTHING || party.waits_ns < 1000000);
    must_eq(party.waits_for, XAC_PARTY_TURN);
    must_eq(party.waits_pid, getpid());
    must_eq(party.kind, XAC_PARTY_IDLE);
    must(strlen(party.command) > 0);
    party = party_of(getpid());
    must_eq(party.kind, XAC_PARTY_UPDATE);
    must_eq(party.pages_written, 1);
    must_eq(party.tid, gettid());
    must_eq(party.process, XAC_PARTY_RUNNING);
    must_eq(party.engine, env_stats().engine);
    must_rc(xac_end(), XAC_COMMITTED);
    proc_await(&board->reading, 2, 20);
    party = party_of(child);
    must_eq(party.waits_for, XAC_PARTY_NOTHING);
    must_eq(party.kind, XAC_PARTY_QUERY);
    must_eq(party.failed_kind, XAC_CONFLICT_USER);
    must_eq(party.failed_pid, child);
    word_store(&board->done, 1);
    proc_join(child);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("cutoff");
    TCase *tc = env_tcase_with(s, "sleeping", 120, setup);

    tcase_add_loop_test(tc, query_that_sleeps_is_cut_off, 0, N_WAYS);
    tc = env_tcase_with(s, "held", 120, setup);
    tcase_add_loop_test(tc, query_is_not_cut_off_for_nothing, 0, 2);
    tcase_add_loop_test(tc, query_that_is_cut_off_leaves_no_snapshot, 0, 5);
    tc = env_tcase_with(s, "racing", 120, setup);
    tcase_add_loop_test(tc, query_that_is_cut_off_never_succeeds, 0, 5);
    tc = env_tcase_with(s, "participants", 120, setup);
    tcase_add_test(tc, participants_refuses_bad_arguments);
    tcase_add_test(tc, participants_says_who_waits_and_who_failed);
    return env_main(s);
}
