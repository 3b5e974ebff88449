/* SPDX-License-Identifier: MIT */
/*
 * check_savepoint_model.c -- savepoints beside a plain copy of memory.
 *
 * GOAL    After each roll-back to a savepoint all pages are as they were when it was taken, in each mapping, under
 *         every engine, policy and way of checking, alone and beside others, with a bound on memory; in
 *         transactions that have failed too.
 * METHOD  random transactions: stores, loads, savepoints, roll-backs, releases, nested transactions and
 *         queries, announcements, functions of xTransact() that fail.  A copy of all words is kept for each
 *         savepoint, and compared.  Beside it a process may store other words of the same pages.
 *
 * XAC_SEED; XAC_TRANSACTIONS=n of each combination (10); XAC_COMBINATION=n: this one only.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#define PAGES 96
#define WORDS \
 4 /* of a page, which are in the model; others belong to the other process */
#define MARKS   64
#define STEPS   120
#define FOREIGN 9 /* a word of each page that the other process stores */

enum {
    ENGINES = 3,
    POLICIES = 6,
    CHECKINGS = 4,
    COMPANIES = 3,
    SHAPES = 4,
    COMBINATIONS = ENGINES * POLICIES * CHECKINGS * SHAPES
};

enum company {
    ALONE,
    BESIDE_ONE,
    BESIDE_WRITER
};

enum shape {
    PLAIN,
    ALIASES,
    FRAMES,
    VIEW
};

struct words {
    uint64_t word[PAGES][WORDS];
};

static struct {
    int engine, policy, checking;
    enum company company;
    enum shape shape;
    int mode;
} is;

static uint64_t
    *base[2]; /* of mappings; the second one shows the pages from the middle on */
static int n_bases;
static uint64_t rnd;
static struct words now, begun;
static struct words at_mark[MARKS];
static uint64_t mark[MARKS];
static int n_marks;
static uint64_t n_rolled, n_failed;
static struct {
    _Atomic uint64_t stop;
} * board;

/* word -- an address of a word, in one of the mappings. */
static volatile uint64_t *
word(uint64_t page, uint64_t w)
{
    bool is_second = n_bases == 2 && page >= PAGES / 2 && rnd_below(&rnd, 2) == 0;
    uint64_t *b =
        is_second ? base[1] - PAGES / 2 * env_page() / sizeof(uint64_t) : base[0];

    return env_cell(b, page) + (w == WORDS - 1 ? env_page() / sizeof(uint64_t) - 1 : w);
}

static void
must_equal(const struct words *want, const char *when)
{
    for (uint64_t p = 0; p < PAGES; p++)
        for (uint64_t w = 0; w < WORDS; w++)
            if (*word(p, w) != want->word[p][w])
                env_fail(__FILE__, __LINE__, "%s: page %llu, word %llu: %llx, not %llx",
                         when, (unsigned long long)p, (unsigned long long)w,
                         (unsigned long long)*word(p, w),
                         (unsigned long long)want->word[p][w]);
}

static bool
announces(void)
{
    return is.checking >= 2;
}

static void
store_one(void)
{
    uint64_t p = rnd_below(&rnd, rnd_below(&rnd, 2) == 0 ? 8 : PAGES);
    uint64_t w = rnd_below(&rnd, WORDS);
    volatile uint64_t *at = word(p, w);

    if (announces())
        must_ok(setPageAccess((void *)(uintptr_t)at, READ_WRITE));
    now.word[p][w] = rnd_next(&rnd);
    *at = now.word[p][w];
}

/* store_run -- to pages in a row, announced together. */
static void
store_run(void)
{
    uint64_t first = rnd_below(&rnd, PAGES), n = 1 + rnd_below(&rnd, PAGES - first);

    must_ok(setRangeAccess(env_cell(base[0], first), n * env_page(), READ_WRITE));
    for (uint64_t p = first; p < first + n; p++) {
        now.word[p][1] = rnd_next(&rnd);
        env_cell(base[0], p)[1] = now.word[p][1];
    }
}

static void
load_one(void)
{
    uint64_t p = rnd_below(&rnd, PAGES), w = rnd_below(&rnd, WORDS);

    must_eq(*word(p, w), now.word[p][w]);
}

static void
take(void)
{
    if (n_marks == MARKS)
        return;
    at_mark[n_marks] = now;
    mark[n_marks] = xSavepoint();
    must(mark[n_marks] != 0);
    n_marks++;
}

static void
roll_back(void)
{
    int i, rc;

    if (n_marks == 0)
        return;
    i = (int)rnd_below(&rnd, (uint64_t)n_marks);
    rc = xRollbackTo(mark[i]);
    must(rc == 0 || rc == XAC_FAILED);
    must((rc == XAC_FAILED) <= (xValidate() == FAILED));
    now = at_mark[i];
    n_marks = i + 1;
    n_rolled++;
    if (rnd_below(&rnd, 4) == 0)
        must_equal(&now, "after a roll-back");
}

static void
release(void)
{
    int i;

    if (n_marks == 0)
        return;
    i = (int)rnd_below(&rnd, (uint64_t)n_marks);
    must_ok(xRelease(mark[i]));
    n_marks = i;
}

static void
step_query(void)
{
    must_ok(xbeginQuery());
    load_one();
    must_ok(xendQuery());
}

/* inner -- the function of a nested xTransact(). */
static int
inner(void *arg)
{
    for (uint64_t n = rnd_below(&rnd, 6); n > 0; n--)
        store_one();
    return *(int *)arg;
}

static void
step_transact(void)
{
    struct words before = now;
    int result = rnd_below(&rnd, 2) == 0 ? 0 : 77, rc = xTransact(inner, &result);

    if (result != 0) {
        must_eq(rc, result);
        now = before;
    } else {
        must(rc == 0 || rc == XAC_FAILED);
    }
}

static void
step(void)
{
    switch (rnd_below(&rnd, 20)) {
    case 0:
    case 1:
        take();
        break;
    case 2:
        roll_back();
        break;
    case 3:
        release();
        break;
    case 4:
        step_query();
        break;
    case 5:
        store_run();
        break;
    case 6:
        step_transact();
        break;
    case 7:
    case 8:
    case 9:
        load_one();
        break;
    default:
        store_one();
    }
}

static void
transaction(void)
{
    bool gives_up = rnd_below(&rnd, 5) == 0;
    int depth = 1, rc;

    begun = now;
    n_marks = 0;
    must_ok(xbegin());
    if (gives_up && rnd_below(&rnd, 2) == 0)
        must_ok(xAbort());
    for (uint64_t n = rnd_below(&rnd, STEPS); n > 0; n--) {
        if (rnd_below(&rnd, 30) == 0) {
            must_ok(xbegin());
            depth++;
        }
        if (depth > 1 && rnd_below(&rnd, 20) == 0) {
            (void)xend();
            depth--;
        }
        step();
    }
    must_equal(&now, "before the end");
    if (gives_up)
        must_ok(xAbort());
    for (; depth > 1; depth--)
        (void)xend();
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    must(rc == ABORTED || !gives_up);
    n_failed += rc == ABORTED && !gives_up;
    if (rc == ABORTED)
        now = begun;
    must_ok(xbeginQuery());
    must_equal(&now, "after the end");
    must_ok(xendQuery());
}

static void *
work(void *arg)
{
    uint64_t n = env_number("XAC_TRANSACTIONS", 10);

    (void)arg;
    if (is.policy == XAC_POLICY_SERIAL && is.checking == 3)
        n *= 10; /* updates in place begin after a while */
    if (is.shape == VIEW) {
        base[0] = (uint64_t *)xView(base[0]);
        must(base[0] != MAP_FAILED);
    }
    memset(&now, 0, sizeof now);
    for (uint64_t i = 0; i < n; i++)
        transaction();
    return NULL;
}

/* set_up -- the options of a combination. */
static void
set_up(int i)
{
    static const char *const engine[ENGINES] = {"uffd", "sigsegv", "scan"};

    is.engine = i % ENGINES;
    i /= ENGINES;
    is.policy = i % POLICIES;
    i /= POLICIES;
    is.checking = i % CHECKINGS;
    i /= CHECKINGS;
    is.shape = (enum shape)i;
    is.company = (enum company)((is.engine + is.policy + is.checking + i) % COMPANIES);
    if (is.policy == XAC_POLICY_SERIAL && is.checking == 3)
        is.company = ALONE;
    is.mode = is.company != ALONE && rnd_below(&rnd, 3) == 0 ? DURABLE : NONDURABLE;
    must(setenv("XAC_ENGINE", engine[is.engine], 1) == 0);
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)is.policy));
    env_checking = is.checking == 0   ? XAC_CHECKING_STRICT
                   : is.checking == 1 ? XAC_CHECKING_FAST
                                      : XAC_CHECKING_TRUSTED;
    must_ok(xSetOption(XAC_OPT_CHECKING, env_checking));
    if (is.checking == 2) /* a store that is not announced stops the program */
        must(setenv("XAC_CHECKING", "strict", 1) == 0);
    must_ok(xSetOption(XAC_OPT_FRAMES, is.shape == FRAMES ? 256 : 0));
}

static void
store_beside(void *arg)
{
    uint64_t *x = (uint64_t *)env_attach(is.mode, PAGES), seed = env_seed();

    (void)arg;
    while (word_load(&board->stop) == 0) {
        uint64_t *at = env_cell(x, rnd_below(&seed, PAGES)) + FOREIGN;

        must_ok(xbegin());
        if (announces())
            must_ok(setPageAccess(at, READ_WRITE));
        ++*at;
        (void)xend();
        proc_sleep_us(rnd_below(&seed, 1000));
    }
    env_detach();
}

START_TEST(roll_backs_restore)
{
    pid_t pid = 0;
    pthread_t thread;

    if (env_number("XAC_COMBINATION", (uint64_t)_i) != (uint64_t)_i)
        return;
    rnd = env_seed() + (uint64_t)_i;
    set_up(_i);
    if (is.shape == FRAMES && is.engine == 1)
        return; /* the portable engine has no bound on memory */
    board = proc_shared(sizeof *board);
    if (is.company == BESIDE_ONE)
        pid = env_companion(is.mode, PAGES);
    if (is.company == BESIDE_WRITER)
        pid = proc_spawn(store_beside, NULL);
    base[0] = (uint64_t *)env_attach(is.mode, PAGES);
    n_bases = 1;
    if (is.shape == ALIASES)
        base[n_bases++] = env_map_at(PAGES / 2, PAGES / 2);
    if (is.shape == VIEW) {
        must(pthread_create(&thread, NULL, work, NULL) == 0);
        must(pthread_join(thread, NULL) == 0);
    } else {
        work(NULL);
    }
    printf(
        "%d: engine %d, policy %d, checking %d, company %d, shape %d: %llu roll-backs, %llu failed\n",
        _i, is.engine, is.policy, is.checking, (int)is.company, (int)is.shape,
        (unsigned long long)n_rolled, (unsigned long long)n_failed);
    word_store(&board->stop, 1);
    if (is.company == BESIDE_WRITER)
        proc_join(pid);
    if (is.company == BESIDE_ONE)
        proc_kill(pid);
    env_detach();
}
END_TEST

/* So many scattered pages that the portable engine works in units of many pages. */
#define SCATTERED 9000

START_TEST(units_of_pages_are_restored)
{
    uint64_t before;

    must(setenv("XAC_ENGINE", "sigsegv", 1) == 0);
    env_without_frames("the portable engine has no bound on memory");
    base[0] = (uint64_t *)env_attach(NONDURABLE, 2 * SCATTERED);
    must_ok(xbegin());
    for (size_t p = 0; p < SCATTERED / (_i == 0 ? 1 : 2); p++)
        *env_cell(base[0], 2 * p) = p + 1;
    if (_i == 1) /* units come when pages are closed already */
        must(xSavepoint() != 0);
    for (size_t p = SCATTERED / 2; _i == 1 && p < SCATTERED; p++)
        *env_cell(base[0], 2 * p) = p + 1;
    before = xSavepoint();
    for (size_t p = 0; p < SCATTERED; p++)
        env_cell(base[0], 2 * p)[1] = ++*env_cell(base[0], 2 * p);
    for (size_t p = 0; p < SCATTERED; p += 10)
        *env_cell(base[0], 2 * p + 1) = 1;
    must_ok(xRollbackTo(before));
    for (size_t p = 0; p < SCATTERED; p++) {
        must_eq(*env_cell(base[0], 2 * p), p + 1);
        must_eq(env_cell(base[0], 2 * p)[1], 0);
        must_eq(*env_cell(base[0], 2 * p + 1), 0);
    }
    must_rc(xend(), COMMITTED);
    must_eq(env_get(env_cell(base[0], 2 * (SCATTERED - 1))), SCATTERED);
    env_detach();
}
END_TEST

static Suite *
savepoint_model_suite(void)
{
    Suite *s = suite_create("savepoint_model");
    TCase *tc = env_tcase(s, "model", 60);

    tcase_add_loop_test(tc, roll_backs_restore, 0, COMBINATIONS);
    tcase_add_loop_test(tc, units_of_pages_are_restored, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(savepoint_model_suite());
}
