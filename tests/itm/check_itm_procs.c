/* SPDX-License-Identifier: MIT */
/*
 * check_itm_procs.c -- language transactions of several processes.
 *
 * GOAL    Under each policy: conflicts start a block over, nothing is lost or counted twice, queries
 *         see whole transactions, plain transactions take part, and a process that is killed at any moment
 *         leaves only what it has committed.
 * METHOD  Transfers between accounts in different pages, of which the sum stays; numbers of commits
 *         that each process notes outside of transactions.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_itm.h>

#include "env.h"

#define PAGES 20

/* The first number of a page; as a constant, for a function call is not allowed in a block. */
#define CELL(page) (x + (size_t)512 * (page))
#define ACCOUNTS   6
#define TOTAL      (ACCOUNTS * 100)
#define ROUNDS     2000
#define POLICIES   6

struct board {
    _Atomic uint64_t attached;
    _Atomic uint64_t step;
    _Atomic uint64_t restarts;
    _Atomic uint64_t done[4]; /* transactions that have committed */
};

static struct board *board;
static uint64_t *x;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

static void
attach(int mode, int policy)
{
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policy));
    x = env_attach(mode, PAGES);
}

static uint64_t *
account(uint64_t i)
{
    return CELL(1 + i);
}

static unsigned attempts; /* of the block that runs; what pure functions store stays */

__attribute__((transaction_pure, noinline)) static void
began(void)
{
    attempts++;
}

/* transfer -- between two accounts, and count in the page of the process. */
static void
transfer(uint64_t *rnd, int who)
{
    uint64_t *from = account(rnd_below(rnd, ACCOUNTS));
    uint64_t *to = account(rnd_below(rnd, ACCOUNTS));
    uint64_t *mine = CELL(10 + (size_t)who);

    attempts = 0;
    __transaction_atomic
    {
        began();
        if (*from > 0) {
            --*from;
            ++*to;
        }
        ++*mine;
    }
    word_add(&board->restarts, attempts - 1);
    word_add(&board->done[who], 1);
}

static uint64_t
sum(void)
{
    uint64_t total = 0;

    __transaction_atomic
    {
        total = 0;
        for (uint64_t i = 0; i < ACCOUNTS; i++)
            total += *CELL(1 + i);
    }
    return total;
}

struct work {
    int policy;
    int mode;
    int who;
};

static void
transfer_many(void *arg)
{
    const struct work *w = arg;
    uint64_t rnd = env_seed() + (uint64_t)w->who;

    attach(w->mode, w->policy);
    word_add(&board->attached, 1);
    proc_await(&board->step, 1, 60);
    for (int i = 0; i < ROUNDS; i++) {
        transfer(&rnd, w->who);
        if (i % 16 == 0)
            must_eq(sum(), TOTAL);
    }
    env_detach();
}

/* A process that does the same by xbegin() and xend(). */
static void
transfer_plainly(void *arg)
{
    const struct work *w = arg;
    uint64_t rnd = env_seed() + (uint64_t)w->who;

    attach(w->mode, w->policy);
    word_add(&board->attached, 1);
    proc_await(&board->step, 1, 60);
    for (int i = 0; i < ROUNDS; i++) {
        volatile uint64_t *from = account(rnd_below(&rnd, ACCOUNTS));
        volatile uint64_t *to = account(rnd_below(&rnd, ACCOUNTS));
        int rc;

        do {
            must_ok(xbegin());
            if (*from > 0) {
                *from -= 1;
                *to += 1;
            }
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
    }
    env_detach();
}

static void
fill_accounts(void)
{
    __transaction_atomic
    {
        for (uint64_t i = 0; i < ACCOUNTS; i++)
            *CELL(1 + i) = 100;
    }
}

START_TEST(two_processes_and_a_plain_one)
{
    struct work w = {.policy = _i, .mode = NONDURABLE};
    pid_t pids[3];

    for (w.who = 0; w.who < 3; w.who++)
        pids[w.who] = proc_spawn(w.who < 2 ? transfer_many : transfer_plainly, &w);
    proc_await(&board->attached, 3, 60);
    attach(NONDURABLE, _i);
    fill_accounts();
    word_store(&board->step, 1);
    for (int i = 0; i < 3; i++)
        proc_join(pids[i]);
    must_eq(sum(), TOTAL);
    must_eq(env_get(CELL(10)), ROUNDS);
    must_eq(env_get(CELL(11)), ROUNDS);
    env_detach();
}
END_TEST

/* meet -- the other process commits to the same page while the block of this one runs. */
__attribute__((transaction_pure, noinline)) static void
meet(void)
{
    if (++attempts > 1)
        return;
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 60);
}

static void
store_when_told(void *arg)
{
    attach(NONDURABLE, *(const int *)arg);
    word_add(&board->attached, 1);
    proc_await(&board->step, 1, 60);
    __transaction_atomic
    {
        x[0] += 100;
    }
    word_store(&board->step, 2);
    env_detach();
}

/* Policies under which the other one wins. */
static const int losing[] = {XAC_POLICY_SELFISH, XAC_POLICY_YOUNGEST_WINS,
                             XAC_POLICY_OPTIMISTIC};
#define N_LOSING 3

/* The block has loaded and stored what another process changes: it starts over. */
START_TEST(conflict_starts_the_block_over)
{
    int policy = losing[_i];
    pid_t pid = proc_spawn(store_when_told, &policy);
    uint64_t seen = 0, local = 0;

    attempts = 0;
    proc_await(&board->attached, 1, 60);
    attach(NONDURABLE, policy);
    __transaction_atomic
    {
        local++;
        seen = x[0];
        x[0] = seen + 1;
        meet();
    }
    proc_join(pid);
    must_eq(attempts, 2);
    must_eq(local, 1);
    must_eq(seen, 100);
    must_eq(env_get(x), 101);
    env_detach();
}
END_TEST

static void
transfer_for_ever(void *arg)
{
    const struct work *w = arg;
    uint64_t rnd = env_seed() + (uint64_t)w->who;

    attach(w->mode, w->policy);
    if (sum() == 0)
        fill_accounts();
    word_add(&board->attached, 1);
    for (;;)
        transfer(&rnd, w->who);
}

/* Killed at any moment: the accounts are right, and what a process knew to be committed is there. */
START_TEST(killed_process_leaves_whole_transactions)
{
    struct work w = {.policy = _i, .mode = DURABLE};
    uint64_t rnd = env_seed();

    for (int round = 0; round < 6; round++) {
        pid_t pids[2];
        uint64_t attached = word_load(&board->attached);

        for (w.who = 0; w.who < 2; w.who++) {
            pids[w.who] = proc_spawn(transfer_for_ever, &w);
            proc_await(&board->attached, ++attached, 60);
        }
        proc_sleep_us(rnd_below(&rnd, 40000));
        proc_kill(pids[0]);
        proc_sleep_us(rnd_below(&rnd, 20000));
        proc_kill(pids[1]);
        attach(w.mode, w.policy);
        must_eq(sum(), TOTAL);
        for (int i = 0; i < 2; i++) {
            uint64_t known = word_load(&board->done[i]);
            uint64_t have = env_get(CELL(10 + (size_t)i));

            must(have >= known && have <= known + (uint64_t)round + 1);
        }
        env_detach();
    }
}
END_TEST

static uint64_t failures;

__attribute__((transaction_pure)) int _ITM_inTransaction(void);

/* It runs outside of the block that has failed. */
static void
failed(int code)
{
    must_eq(code, ETIMEDOUT);
    must_eq(_ITM_inTransaction(), 0);
    failures++;
    if (failures == 3)
        word_store(&board->step, 1);
}

static void
hold_the_turn(void *arg)
{
    attach(NONDURABLE, *(const int *)arg);
    must_ok(xbegin());
    x[0] = 5;
    word_add(&board->attached, 1);
    proc_await(&board->step, 1, 60);
    must_rc(xend(), COMMITTED);
    env_detach();
}

/* The program is told of what another attempt does not cure, and the block is run again. */
START_TEST(program_is_told_of_a_failure)
{
    int policy = XAC_POLICY_SERIAL;
    pid_t pid = proc_spawn(hold_the_turn, &policy);

    proc_await(&board->attached, 1, 60);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 50));
    attach(NONDURABLE, policy);
    xac_itm_on_failure(failed);
    __transaction_atomic
    {
        x[0]++;
    }
    proc_join(pid);
    must(failures >= 3);
    must_eq(env_get(x), 6);
    env_detach();
}
END_TEST

#define MANY 3000 /* pages: more than there is room for versions at first */

static uint64_t outside;
static int told; /* what the commit has failed with */

/* limit -- no file of this process may become longer than that. */
static void
limit(uint64_t bytes)
{
    struct rlimit l;

    must(getrlimit(RLIMIT_FSIZE, &l) == 0);
    l.rlim_cur = bytes;
    must(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

/* It runs when all has been rolled back, makes room, and may run blocks itself. */
static void
failed_to_commit(int code)
{
    must(code == EFBIG || code == ENOSPC);
    must_eq(_ITM_inTransaction(), 0);
    must_eq(outside, 7);
    must_eq(env_get(CELL(MANY - 1)), 0);
    limit(RLIM_INFINITY);
    __transaction_atomic
    {
        x[1]++;
        outside = 8;
    }
    told = code;
}

/* The commit lacks room: an error of the end, not of the begin, and no lost conflict. */
START_TEST(program_is_told_of_a_commit_that_fails)
{
    uint64_t local = 0;

    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    x = env_attach(NONDURABLE, MANY);
    outside = 7;
    xac_itm_on_failure(failed_to_commit);
    limit(0);
    __transaction_atomic
    {
        local++;
        outside++;
        for (size_t i = 0; i < MANY; i++)
            *CELL(i) = i + outside;
    }
    must(told != 0);
    must_eq(local, 1);
    must_eq(outside, 9);
    must_eq(env_get(x + 1), 1);
    for (size_t i = 0; i < MANY; i++)
        must_eq(env_get(CELL(i)), i + 9);
    env_detach();
}
END_TEST

static void
wait_too_long(void *arg)
{
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 50));
    attach(NONDURABLE, *(const int *)arg);
    __transaction_atomic
    {
        x[0]++;
    }
}

START_TEST(failure_that_nobody_handles_stops)
{
    int policy = XAC_POLICY_SERIAL;
    pid_t pid = proc_spawn(hold_the_turn, &policy);
    char text[2000];

    proc_await(&board->attached, 1, 60);
    must_eq(WTERMSIG(proc_capture(wait_too_long, &policy, text, sizeof text)), SIGABRT);
    must(strstr(text, "libxac_itm: a transaction cannot begin") != NULL);
    word_store(&board->step, 1);
    proc_join(pid);
}
END_TEST

/* Blocks of threads may run side by side: then they work on views, at translated addresses. */
static void
setup_beside(void)
{
    setup();
    must_ok(xac_itm_side_by_side());
}

int
main(void)
{
    Suite *s = suite_create("itm_procs");
    TCase *tcs[2] = {env_tcase_with(s, "itm_procs", 120, setup),
                     env_tcase_with(s, "beside", 120, setup_beside)};

    for (int i = 0; i < 2; i++) {
        TCase *tc = tcs[i];

        tcase_add_loop_test(tc, two_processes_and_a_plain_one, 0, POLICIES);
        tcase_add_loop_test(tc, conflict_starts_the_block_over, 0, N_LOSING);
        tcase_add_loop_test(tc, killed_process_leaves_whole_transactions, 0, POLICIES);
        tcase_add_test(tc, program_is_told_of_a_failure);
        tcase_add_test(tc, program_is_told_of_a_commit_that_fails);
        tcase_add_test(tc, failure_that_nobody_handles_stops);
    }
    return env_main(s);
}
