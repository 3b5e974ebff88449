/* SPDX-License-Identifier: MIT */
/*
 * check_multi.c -- several processes on the same files.
 *
 * GOAL    no update is lost, every transaction and query sees one state (those that are
 *         going to abort included), snapshots hold however long, the oldest survives and
 *         nobody starves, and an abort says why.
 * METHOD  processes hammer few pages; what they must find is an invariant, checked inside
 *         the transactions.  Iterations: XAC_INCREMENTS.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define MODE(i) ((i) == 0 ? NONDURABLE : DURABLE)

/* Words shared by parent and children outside the library. */
struct board {
    _Atomic uint64_t ready;
    _Atomic uint64_t go;
    _Atomic uint64_t stop;
    _Atomic uint64_t step;
    _Atomic uint64_t done[8];
    _Atomic uint64_t aborts[8];
};

static struct board *board;

static void
start_together(uint64_t n)
{
    word_add(&board->ready, 1);
    proc_await(&board->ready, n, 30);
}

static size_t
words_per_page(void)
{
    return env_page() / sizeof(uint64_t);
}

/* ---- increments (two processes, one integer; two processes, disjoint pages) ---------------- */

struct incrementer {
    int number;
    int mode;
    uint64_t n;
    size_t cell;
};

static void
increment(void *arg)
{
    const struct incrementer *me = arg;
    uint64_t *x = env_attach(me->mode, 4);
    uint64_t aborts = 0;

    start_together(2);
    for (uint64_t i = 0; i < me->n; i++) {
        int rc;

        for (;;) {
            must_ok(xbegin());
            x[me->cell]++;
            rc = xend();
            if (rc == COMMITTED)
                break;
            must_rc(rc, ABORTED);
            aborts++;
        }
    }
    word_store(&board->aborts[me->number], aborts);
    env_detach();
}

static void
two_incrementers(const char *what, int mode, uint64_t n, size_t cell_a, size_t cell_b)
{
    struct incrementer a = {.number = 0, .mode = mode, .n = n, .cell = cell_a};
    struct incrementer b = {.number = 1, .mode = mode, .n = n, .cell = cell_b};
    double start = env_now();
    pid_t pid_a, pid_b;

    board = proc_shared(sizeof *board);
    pid_a = proc_spawn(increment, &a);
    pid_b = proc_spawn(increment, &b);
    proc_join(pid_a);
    proc_join(pid_b);
    printf("%s: 2 x %" PRIu64 " increments, %" PRIu64 " and %" PRIu64 " aborts, %.1f s\n",
           what, n, word_load(&board->aborts[0]), word_load(&board->aborts[1]),
           env_now() - start);
    if (cell_a == cell_b) {
        must_eq(file_u64(ENV_FILE, 8 * cell_a), 2 * n);
    } else {
        must_eq(file_u64(ENV_FILE, 8 * cell_a), n);
        must_eq(file_u64(ENV_FILE, 8 * cell_b), n);
    }
}

START_TEST(increments_of_one_integer)
{
    uint64_t n = env_number("XAC_INCREMENTS", 100000);

    two_incrementers(_i == 0 ? "one integer" : "one integer, durable", MODE(_i),
                     _i == 0 ? n : n / 50, 0, 0);
}
END_TEST

START_TEST(increments_on_disjoint_pages)
{
    uint64_t n = env_number("XAC_INCREMENTS", 100000);

    two_incrementers(_i == 0 ? "disjoint pages" : "disjoint pages, durable", MODE(_i),
                     _i == 0 ? n : n / 50, 0, 2 * words_per_page());
}
END_TEST

/* Two integers on one page: the page is the unit of conflict, but no update is lost. */
START_TEST(increments_within_one_page)
{
    two_incrementers("one page", NONDURABLE, env_number("XAC_INCREMENTS", 100000) / 10, 0,
                     511);
}
END_TEST

/* ---- accounts: the total is the same inside any transaction ------------------------------------ */

#define ACCOUNTS 10
#define TOTAL    (2 * ACCOUNTS * 1000)

struct bank {
    uint64_t *file[2];
};

static uint64_t *
account(const struct bank *bank, uint64_t i)
{
    return &bank->file[i % 2][i / 2 * words_per_page()];
}

static void
open_bank(struct bank *bank, int mode)
{
    must_ok(xInit(ENV_DIR, mode));
    bank->file[0] = xMmap("left.db", ACCOUNTS * env_page());
    bank->file[1] = xMmap("right.db", ACCOUNTS * env_page());
    must(bank->file[0] != MAP_FAILED && bank->file[1] != MAP_FAILED);
}

/* The sum over all accounts, from account `first` on. */
static void
must_balance(const struct bank *bank, uint64_t first, const char *who)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < 2 * ACCOUNTS; i++)
        total += *(volatile uint64_t *)account(bank, (first + i) % (2 * ACCOUNTS));
    if (total != TOTAL)
        env_fail(__FILE__, __LINE__, "%s saw a total of %" PRIu64 ", not %d", who, total,
                 TOTAL);
}

struct banker {
    int number;
    int mode;
    enum {
        MOVER,
        CAREFUL_MOVER,
        READER,
        QUERIER
    } role;
};

static void
move_money(const struct bank *bank, uint64_t *rnd, bool look, uint64_t *aborts)
{
    uint64_t from = rnd_below(rnd, 2 * ACCOUNTS), to = rnd_below(rnd, 2 * ACCOUNTS);
    uint64_t amount = rnd_below(rnd, 50);
    int rc;

    for (;;) {
        must_ok(xbegin());
        *account(bank, from) -= amount;
        *account(bank, to) += amount;
        if (look || xValidate() == FAILED)
            must_balance(bank, from,
                         xValidate() == FAILED ? "a failed transaction"
                                               : "a transaction");
        rc = xend();
        if (rc == COMMITTED)
            return;
        must_rc(rc, ABORTED);
        (*aborts)++;
    }
}

static void
look_around(const struct bank *bank, uint64_t *rnd, uint64_t *aborts)
{
    must_ok(xbegin());
    must_balance(bank, rnd_below(rnd, 2 * ACCOUNTS), "a reading transaction");
    if (xend() != COMMITTED)
        (*aborts)++;
}

static void
bank_process(void *arg)
{
    const struct banker *me = arg;
    uint64_t rnd = env_seed() + (uint64_t)me->number;
    uint64_t aborts = 0, done = 0;
    struct bank bank;

    open_bank(&bank, me->mode);
    start_together(4);
    for (; word_load(&board->stop) == 0; done++) {
        if (me->role == QUERIER) {
            must_ok(xbeginQuery());
            must_balance(&bank, rnd_below(&rnd, 2 * ACCOUNTS), "a query");
            must_ok(xendQuery());
        } else if (me->role == READER) {
            look_around(&bank, &rnd, &aborts);
        } else {
            move_money(&bank, &rnd, me->role == CAREFUL_MOVER, &aborts);
        }
        if (me->number == 0 && done % 200 == 199)
            must_ok(xCheckpoint());
    }
    word_store(&board->done[me->number], done);
    word_store(&board->aborts[me->number], aborts);
    env_detach();
}

/* Everybody starts with 1000. */
static void
fund_bank(void)
{
    struct bank bank;

    open_bank(&bank, NONDURABLE);
    must_ok(xbegin());
    for (uint64_t i = 0; i < 2 * ACCOUNTS; i++)
        *account(&bank, i) = 1000;
    must_rc(xend(), COMMITTED);
    env_detach();
}

START_TEST(totals_are_constant_inside_any_transaction)
{
    static const char *const roles[] = {"mover", "careful mover", "reader", "querier"};
    double seconds = (double)env_number("XAC_SECONDS", 4);
    struct banker banker[4];
    pid_t pid[4];
    uint64_t total = 0;

    board = proc_shared(sizeof *board);
    fund_bank();
    for (int i = 0; i < 4; i++) {
        banker[i] = (struct banker){.number = i, .mode = MODE(_i), .role = (unsigned)i};
        pid[i] = proc_spawn(bank_process, &banker[i]);
    }
    proc_sleep_us((uint64_t)(seconds * 1e6));
    word_store(&board->stop, 1);
    for (int i = 0; i < 4; i++)
        proc_join(pid[i]);
    for (int i = 0; i < 4; i++) {
        printf("%s %s: %" PRIu64 " done, %" PRIu64 " aborts\n", _i == 0 ? "" : "durable",
               roles[i], word_load(&board->done[i]), word_load(&board->aborts[i]));
        must(word_load(&board->done[i]) > 0);
    }
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        total +=
            file_u64("left.db", i * env_page()) + file_u64("right.db", i * env_page());
    must_eq(total, TOTAL);
}
END_TEST

/* ---- snapshots ------------------------------------------------------------------------------------ */

#define SNAPSHOT_PAGES 40

/* Commit numbers to all pages, one state after the other, until told to stop. */
static void
overwrite_all(void *arg)
{
    uint64_t *x = env_attach(*(const int *)arg, SNAPSHOT_PAGES);

    for (uint64_t state = 1; word_load(&board->stop) == 0; state++) {
        int rc;

        do {
            must_ok(xbegin());
            for (size_t p = 0; p < SNAPSHOT_PAGES; p++)
                x[p * words_per_page()] = state;
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&board->done[0], state);
        if (state % 50 == 0)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* A query that lasts: pages it first looks at long after its begin are still of then. */
START_TEST(query_snapshot_holds_while_others_commit)
{
    int mode = MODE(_i);
    uint64_t *x;
    pid_t writer;

    board = proc_shared(sizeof *board);
    writer = proc_spawn(overwrite_all, &mode);
    x = env_attach(mode, SNAPSHOT_PAGES);
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t state, began;

        proc_await(&board->done[0], word_load(&board->done[0]) + 5, 20);
        began = word_load(&board->done[0]);
        must_ok(xbeginQuery());
        state = *(volatile uint64_t *)&x[0];
        must(state >= began);
        for (size_t p = 1; p < SNAPSHOT_PAGES; p++) {
            if (p % 8 == 0)
                proc_await(&board->done[0], word_load(&board->done[0]) + 30, 20);
            must_eq(*(volatile uint64_t *)&x[p * words_per_page()], state);
        }
        must_eq(*(volatile uint64_t *)&x[0], state);
        must_ok(xendQuery());
        must(env_get(x) > state);
    }
    word_store(&board->stop, 1);
    proc_join(writer);
    must_eq(env_get(x), word_load(&board->done[0]));
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), word_load(&board->done[0]));
}
END_TEST

/* The same for a transaction that has failed and does not stop. */
START_TEST(failed_transaction_keeps_its_snapshot)
{
    int mode = MODE(_i);
    uint64_t *x;
    uint64_t n_failed = 0;
    pid_t writer;

    env_let_overlap();
    board = proc_shared(sizeof *board);
    writer = proc_spawn(overwrite_all, &mode);
    x = env_attach(mode, SNAPSHOT_PAGES + 1);
    proc_await(&board->done[0], 1, 20);
    for (uint64_t round = 0; round < 30; round++) {
        uint64_t state;
        bool failed = false;
        int rc;

        must_ok(xbegin());
        state = *(volatile uint64_t *)&x[0];
        for (size_t p = 1; p < SNAPSHOT_PAGES; p++) {
            if (p % 10 == 0)
                proc_sleep_us(1000);
            if (p % 10 == 0 && (failed || xValidate() == FAILED)) {
                failed = true;
                proc_await(&board->done[0], word_load(&board->done[0]) + 10, 20);
            }
            must_eq(*(volatile uint64_t *)&x[p * words_per_page()], state);
        }
        x[SNAPSHOT_PAGES * words_per_page()] = round + 1;
        must_eq(*(volatile uint64_t *)&x[0], state);
        if (failed)
            must_rc(xValidate(), FAILED);
        if (failed)
            must_rc(xend(), ABORTED);
        else
            must((rc = xend()) == COMMITTED || rc == ABORTED);
        n_failed += failed;
    }
    printf("failed_transaction_keeps_its_snapshot: %" PRIu64 " of 30 had failed\n",
           n_failed);
    word_store(&board->stop, 1);
    proc_join(writer);
    env_detach();
}
END_TEST

/* ---- who survives, and why ---------------------------------------------------------------------------- */

/* Increment all pages in turn, fast: everlasting young opponents. */
static void
pester(void *arg)
{
    uint64_t *x = env_attach(NONDURABLE, SNAPSHOT_PAGES);
    size_t p = (size_t)(arg != NULL);

    word_add(&board->ready, 1);
    while (word_load(&board->stop) == 0) {
        must_ok(xbegin());
        x[p * words_per_page()]++;
        (void)xend();
        p = (p + 7) % SNAPSHOT_PAGES;
    }
    env_detach();
}

/*
 * A long transaction against two such: a retry keeps its age, so it gets through, unless
 * the one that is older has been taken off its processor, which passes.
 */
START_TEST(long_transaction_does_not_starve)
{
    static int other;
    uint64_t *x, attempts = 0, most = 0;
    double longest_s = 0;
    pid_t a, b;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    board = proc_shared(sizeof *board);
    a = proc_spawn(pester, NULL);
    b = proc_spawn(pester, &other);
    x = env_attach(NONDURABLE, SNAPSHOT_PAGES);
    proc_await(&board->ready, 2, 20);
    for (int round = 0; round < 20; round++) {
        struct xac_conflict why;
        double start = env_now();
        uint64_t tries = 0;

        for (;;) {
            int rc;

            tries++;
            must_ok(xbegin());
            for (size_t p = 0; p < SNAPSHOT_PAGES; p++) {
                x[p * words_per_page()]++;
                proc_sleep_us(50);
            }
            rc = xend();
            if (rc == COMMITTED)
                break;
            must_rc(rc, ABORTED);
            must_ok(xConflict(&why, sizeof why));
            if (env_now() - start > 5)
                env_fail(__FILE__, __LINE__,
                         "attempt %" PRIu64
                         " of round %d lost: kind %d, error %d, process "
                         "%d, found by us %d",
                         tries, round, why.kind, why.error, why.other_pid,
                         why.found_by_us);
        }
        attempts += tries;
        if (tries > most) {
            most = tries;
            longest_s = env_now() - start;
        }
    }
    printf("long_transaction_does_not_starve: 20 commits in %" PRIu64
           " attempts, one took %" PRIu64 " and %.3f s\n",
           attempts, most, longest_s);
    word_store(&board->stop, 1);
    proc_join(a);
    proc_join(b);
    env_detach();
}
END_TEST

/*
 * Two transactions that touch the same page in a known order.  The parent is the older; the
 * child meets it (found_by_us), or is met.
 */
enum meeting {
    OLD_READ_YOUNG_WRITES,
    OLD_WROTE_YOUNG_READS,
    OLD_WROTE_YOUNG_WRITES,
    YOUNG_READ_OLD_WRITES,
    YOUNG_WROTE_OLD_READS,
    YOUNG_WROTE_OLD_WRITES,
    N_MEETINGS
};

static const int expected_kind[N_MEETINGS] = {
    XAC_CONFLICT_WRITE_READ, XAC_CONFLICT_READ_WRITE, XAC_CONFLICT_WRITE_WRITE,
    XAC_CONFLICT_READ_WRITE, XAC_CONFLICT_WRITE_READ, XAC_CONFLICT_WRITE_WRITE,
};

struct meeting_arg {
    enum meeting meeting;
    pid_t parent;
};

static void
touch(uint64_t *x, bool is_store)
{
    volatile uint64_t *at = &x[3 * words_per_page() + 10];

    if (is_store)
        *at = 7;
    else
        (void)*at;
}

static bool
young_stores(enum meeting m)
{
    return m != OLD_WROTE_YOUNG_READS && m != YOUNG_READ_OLD_WRITES;
}

static bool
old_stores(enum meeting m)
{
    return m != OLD_READ_YOUNG_WRITES && m != YOUNG_WROTE_OLD_READS;
}

static void
young_one(void *arg)
{
    const struct meeting_arg *a = arg;
    bool meets = a->meeting < YOUNG_READ_OLD_WRITES;
    struct xac_conflict why;
    uint64_t *x = env_attach(NONDURABLE, 4);

    word_add(&board->ready, 1);
    proc_await(&board->step, 1, 20);
    must_ok(xbegin());
    x[0]++;
    touch(x, young_stores(a->meeting));
    word_store(&board->step, 2);
    proc_await(&board->step, 3, 20);
    must_rc(xValidate(), FAILED);
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, expected_kind[a->meeting]);
    must_eq(why.error, 0);
    must_eq(why.other_pid, a->parent);
    must_eq(why.found_by_us, meets);
    must(strstr(why.file, ENV_FILE) != NULL);
    must_eq(why.file_offset, 3 * env_page());
    must(why.address == (char *)x + 3 * env_page());
    env_detach();
}

START_TEST(conflicts_are_explained)
{
    struct meeting_arg arg = {.meeting = (unsigned)_i, .parent = getpid()};
    bool young_meets = arg.meeting < YOUNG_READ_OLD_WRITES;
    struct xac_conflict why;
    uint64_t *x;
    pid_t child;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    board = proc_shared(sizeof *board);
    child = proc_spawn(young_one, &arg);
    x = env_attach(NONDURABLE, 4);
    proc_await(&board->ready, 1, 20);
    must_ok(xbegin());
    x[words_per_page()] = 1;
    if (young_meets)
        touch(x, old_stores(arg.meeting));
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    if (!young_meets)
        touch(x, old_stores(arg.meeting));
    must_rc(xValidate(), PENDING);
    must_rc(xend(), COMMITTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_NONE);
    word_store(&board->step, 3);
    proc_join(child);
    must_eq(env_get(&x[0]), 0);
    must_eq(env_get(&x[words_per_page()]), 1);
    env_detach();
}
END_TEST

/* ---- files mapped differently --------------------------------------------------------------------------- */

static void
use_four_pages(void *arg)
{
    uint64_t *x;

    (void)arg;
    proc_await(&board->step, 1, 20);
    x = env_attach(NONDURABLE, 4);
    must_eq(env_get(&x[0]), 1);
    env_put(&x[1], 2);
    env_put(&x[3 * words_per_page()], 3);
    word_store(&board->step, 2);
    proc_await(&board->step, 3, 20);
    must_eq(env_get(&x[2]), 4);
    env_put(&x[2 * words_per_page()], 5);
    env_detach();
}

START_TEST(lengths_may_differ_between_processes)
{
    uint64_t *x;
    pid_t child;

    board = proc_shared(sizeof *board);
    child = proc_spawn(use_four_pages, NULL);
    x = env_attach(NONDURABLE, 1);
    env_put(&x[0], 1);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    must_eq(env_get(&x[1]), 2);
    env_put(&x[2], 4);
    word_store(&board->step, 3);
    proc_join(child);
    must_ok(xMunmap(ENV_FILE));
    x = xMmap(ENV_FILE, 5 * env_page());
    must(x != MAP_FAILED);
    must_eq(env_get(&x[3 * words_per_page()]), 3);
    must_eq(env_get(&x[2 * words_per_page()]), 5);
    env_detach();
    must_eq(file_u64(ENV_FILE, 3 * env_page()), 3);
    must_eq(file_size(ENV_FILE), 5 * env_page());
}
END_TEST

/* Both make the file, and both make it long enough: it must not be cut. */
static void
map_pages_together(void *arg)
{
    size_t n_pages = *(const size_t *)arg;
    uint64_t *x;

    env_init(NONDURABLE);
    start_together(2);
    x = xMmap(ENV_FILE, n_pages * env_page());
    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
    for (size_t p = 0; p < n_pages; p++) {
        must_ok(xbeginQuery());
        must_eq(*(volatile uint64_t *)&x[p * words_per_page()], 0);
        must_ok(xendQuery());
    }
    must(file_size(ENV_FILE) >= n_pages * env_page());
    env_detach();
}

START_TEST(concurrent_maps_never_cut_the_file)
{
    size_t few = 3, many = 50;

    for (int round = 0; round < 150; round++) {
        pid_t a, b;

        board = proc_shared(sizeof *board);
        a = proc_spawn(map_pages_together, &few);
        b = proc_spawn(map_pages_together, &many);
        proc_join(a);
        proc_join(b);
        must_eq(file_size(ENV_FILE), many * env_page());
        must(unlink(ENV_FILE) == 0);
    }
}
END_TEST

/* ---- modes ------------------------------------------------------------------------------------------------ */

static void
join_in_both_modes(void *arg)
{
    int theirs = *(const int *)arg;

    proc_await(&board->step, 1, 20);
    must_refuse(xInit(ENV_DIR, theirs == DURABLE ? NONDURABLE : DURABLE), XAC_EMODE);
    must_ok(xInit(ENV_DIR, theirs));
    env_detach();
}

START_TEST(participants_must_agree_on_the_mode)
{
    int mode = MODE(_i);
    uint64_t *x;
    pid_t child;

    board = proc_shared(sizeof *board);
    child = proc_spawn(join_in_both_modes, &mode);
    x = env_attach(mode, 1);
    env_put(x, 1);
    word_store(&board->step, 1);
    proc_join(child);
    env_put(x, 2);
    env_detach();
    must_ok(xInit(ENV_DIR, MODE(1 - _i)));
    env_detach();
}
END_TEST

static Suite *
multi_suite(void)
{
    Suite *s = suite_create("multi");
    TCase *tc = env_tcase(s, "increments", 120);

    tcase_add_loop_test(tc, increments_of_one_integer, 0, 2);
    tcase_add_loop_test(tc, increments_on_disjoint_pages, 0, 2);
    tcase_add_test(tc, increments_within_one_page);

    tc = env_tcase(s, "one state", 300);
    tcase_add_loop_test(tc, totals_are_constant_inside_any_transaction, 0, 2);
    tcase_add_loop_test(tc, query_snapshot_holds_while_others_commit, 0, 2);
    tcase_add_loop_test(tc, failed_transaction_keeps_its_snapshot, 0, 2);

    tc = env_tcase(s, "conflicts", 60);
    tcase_add_test(tc, long_transaction_does_not_starve);
    tcase_add_loop_test(tc, conflicts_are_explained, 0, N_MEETINGS);

    tc = env_tcase(s, "sharing", 20);
    tcase_add_test(tc, lengths_may_differ_between_processes);
    tcase_add_test(tc, concurrent_maps_never_cut_the_file);
    tcase_add_loop_test(tc, participants_must_agree_on_the_mode, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(multi_suite());
}
