/* SPDX-License-Identifier: MIT */
/*
 * check_retries.c -- no transaction is retried more often than its policy allows.
 *
 * GOAL    doc/memory-model.md 44 and 45, libxac/txn/conflict.h invariant (2), policy_optimistic.c.
 * METHOD  2 and 8 processes increment counters on 1 and on 8 hot pages, at once after an
 *         abort (plain xbegin and xend) or through xTransact() with its back-off.  Each
 *         transaction counts its attempts and takes its time, and is judged by both:
 *
 *         oldest-wins  at most as many retries as there are other processes, and one for
 *                      each wait for an older one that may have ended by the clock in
 *                      that time: they take 10 ms, 20 ms, 40 ms ... up to 1.28 s;
 *         optimistic   at most 4;
 *         serial       none.
 *
 *         The bound does not depend on the machine's speed: a slow one gives transactions
 *         more time.  At the end the counters must add up.
 *
 * XAC_SECONDS=10  of each run (0.4)
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "env.h"

#define PROCS_MAX        8
#define PAGES_MAX        8
#define WRITES           3 /* pages that a transaction increments, if there are so many */
#define OPTIMISTIC_BOUND 4

/* Waits that end by the clock: the first, and how often the next is twice as long. */
#define WAIT_FIRST_S 0.010
#define WAIT_DOUBLES 7

struct run {
    int policy;
    unsigned n_procs, n_pages;
    bool has_backoff; /* xTransact()                                                  */
};

struct board {
    _Atomic uint64_t ready, end;
    _Atomic uint64_t commits[PROCS_MAX], aborts[PROCS_MAX], most[PROCS_MAX];
};

static struct board *board;
static const struct run *run;

/* A transaction under way. */
struct job {
    unsigned char *file;
    unsigned page[WRITES];
    uint64_t attempts;
};

/* ---- the bound ------------------------------------------------------------------------- */

/* waits_within -- how many waits can have ended by the clock in this time. */
static uint64_t
waits_within(double elapsed_s)
{
    uint64_t n = 0;

    for (double wait = WAIT_FIRST_S; elapsed_s >= wait; n++) {
        elapsed_s -= wait;
        if (n < WAIT_DOUBLES)
            wait *= 2;
    }
    return n;
}

static uint64_t
bound(double elapsed_s)
{
    switch (run->policy) {
    case XAC_POLICY_SERIAL:
        return 0;
    case XAC_POLICY_OPTIMISTIC:
        return OPTIMISTIC_BOUND;
    default:
        return run->n_procs - 1 + waits_within(elapsed_s);
    }
}

/* ---- a process ------------------------------------------------------------------------- */

/* increment -- the body of a transaction; a parameter of xTransact(). */
static int
increment(void *arg)
{
    struct job *job = arg;

    job->attempts++;
    for (unsigned i = 0; i < WRITES; i++)
        ++*(volatile uint64_t *)(void *)(job->file + job->page[i] * env_page());
    return 0;
}

/* perform -- until it has committed. */
static void
perform(struct job *job)
{
    int rc;

    job->attempts = 0;
    if (run->has_backoff) {
        must_ok(xTransact(increment, job));
        return;
    }
    do {
        must_ok(xbegin());
        (void)increment(job);
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
    } while (rc == ABORTED);
}

static void
run_process(void *arg)
{
    unsigned me = *(const unsigned *)arg;
    uint64_t seed = env_seed() + me, most = 0;
    struct job job = {.file = env_attach(XAC_NONDURABLE, PAGES_MAX)};

    word_add(&board->ready, 1);
    while (word_load(&board->end) == 0) {
        double begun = env_now(), elapsed;

        for (unsigned i = 0; i < WRITES; i++)
            job.page[i] = (unsigned)rnd_below(&seed, run->n_pages);
        perform(&job);
        elapsed = env_now() - begun;
        if (job.attempts - 1 > bound(elapsed))
            env_fail(__FILE__, __LINE__, "%" PRIu64 " retries in %.3f s, bound %" PRIu64,
                     job.attempts - 1, elapsed, bound(elapsed));
        if (job.attempts - 1 > most)
            most = job.attempts - 1;
        word_add(&board->commits[me], 1);
        word_add(&board->aborts[me], job.attempts - 1);
    }
    word_store(&board->most[me], most);
    must_ok(xShutdown());
}

/* verify -- in a fresh process: no increment is lost or done twice. */
static void
verify(void *arg)
{
    unsigned char *file = env_attach(XAC_NONDURABLE, PAGES_MAX);
    uint64_t sum = 0, commits = 0;

    (void)arg;
    must_ok(xbeginQuery());
    for (unsigned p = 0; p < PAGES_MAX; p++)
        sum += *(volatile uint64_t *)(void *)(file + p * env_page());
    must_ok(xendQuery());
    for (unsigned i = 0; i < PROCS_MAX; i++)
        commits += word_load(&board->commits[i]);
    must_eq(sum, commits * WRITES);
    must_ok(xShutdown());
}

/* ---- tests ----------------------------------------------------------------------------- */

static const struct run runs[] = {
    {XAC_POLICY_OLDEST_WINS, 2, 1, false}, {XAC_POLICY_OLDEST_WINS, 2, 8, false},
    {XAC_POLICY_OLDEST_WINS, 8, 1, false}, {XAC_POLICY_OLDEST_WINS, 8, 8, false},
    {XAC_POLICY_OLDEST_WINS, 8, 1, true},  {XAC_POLICY_OLDEST_WINS, 8, 8, true},
    {XAC_POLICY_OPTIMISTIC, 2, 1, false},  {XAC_POLICY_OPTIMISTIC, 2, 8, false},
    {XAC_POLICY_OPTIMISTIC, 8, 1, false},  {XAC_POLICY_OPTIMISTIC, 8, 8, false},
    {XAC_POLICY_OPTIMISTIC, 8, 1, true},   {XAC_POLICY_OPTIMISTIC, 8, 8, true},
    {XAC_POLICY_SERIAL, 2, 1, false},      {XAC_POLICY_SERIAL, 8, 8, false},
    {XAC_POLICY_SERIAL, 8, 1, true},
};

START_TEST(retries_are_bounded)
{
    static unsigned number[PROCS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t s = env_number("XAC_SECONDS", 0), commits = 0, aborts = 0, most = 0;
    pid_t pid[PROCS_MAX];

    memset((void *)board, 0, sizeof *board);
    run = &runs[_i];
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)run->policy));
    if (run->policy == XAC_POLICY_SERIAL)
        env_checking = XAC_CHECKING_FAST; /* pages stay beside others */
    for (unsigned i = 0; i < run->n_procs; i++)
        pid[i] = proc_spawn(run_process, &number[i]);
    proc_await(&board->ready, run->n_procs, 60);
    proc_sleep_us(s > 0 ? s * 1000000 : 400000);
    word_store(&board->end, 1);
    for (unsigned i = 0; i < run->n_procs; i++) {
        proc_join(pid[i]);
        commits += word_load(&board->commits[i]);
        aborts += word_load(&board->aborts[i]);
        if (word_load(&board->most[i]) > most)
            most = word_load(&board->most[i]);
    }
    proc_run(verify, NULL);
    must(commits > 0);
    printf("%-11s %u processes, %u pages, %s: %" PRIu64 " commits, %" PRIu64
           " aborts, at most %" PRIu64 " retries\n",
           run->policy == XAC_POLICY_SERIAL       ? "serial"
           : run->policy == XAC_POLICY_OPTIMISTIC ? "optimistic"
                                                  : "oldest-wins",
           run->n_procs, run->n_pages, run->has_backoff ? "back-off" : "at once", commits,
           aborts, most);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("retries");
    TCase *tc = env_tcase(s, "retries", 3000);

    board = proc_shared(sizeof *board);
    tcase_add_loop_test(tc, retries_are_bounded, 0, sizeof runs / sizeof runs[0]);
    return env_main(s);
}
