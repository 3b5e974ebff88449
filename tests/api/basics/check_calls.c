/* SPDX-License-Identifier: MIT */
/*
 * check_calls.c -- how many system calls a transaction makes.
 *
 * GOAL    One that writes nothing makes none at its begin and its end, if what it reads stays
 *         mapped or it reads nothing; the others as few as doc/performance.md says.
 * METHOD  a child is traced, and its calls counted between two marks (bench/kit/trace.h); the table is
 *         printed.  Looks that a begin makes each 10 or 20 ms (fault_signal.h, xac_env_glance) are not
 *         what is asked for: the clock by which it makes them stands still.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/kit/trace.h"
#include "env.h"

#define TIMES \
 20 /* that a case is repeated                                              */
#define PAGES 64
/* Steps before: in the second third the view gets a twin, in the last third that is filled. */
#define FIRST (PAGES * 3)

/* What a transaction does. */
enum act {
    NOTHING,
    LOAD,
    LOAD_NEWS, /* what another participant has just stored                              */
    STORE,
    STORE_HINTED
};

/* Who else takes part. */
enum company {
    ALONE,
    BESIDE,
    SERIAL /* another one, and the policy is serial                                     */
};

static const struct play {
    const char *name;
    bool is_durable, stays, is_query, is_cold;
    enum company company;
    enum act act;
    int most; /* calls of a transaction; under uffd                                       */
} plays[] = {
    {"query, nothing touched", false, false, true, false, ALONE, NOTHING, 0},
    {"transaction, nothing touched", false, false, false, false, ALONE, NOTHING, 0},
    {"the same, beside others", false, false, false, false, BESIDE, NOTHING, 0},
    {"query, warm page", false, true, true, false, ALONE, LOAD, 0},
    {"query, warm page, beside others", false, true, true, false, BESIDE, LOAD, 0},
    {"transaction, warm page loaded", false, true, false, false, ALONE, LOAD, 0},
    {"query, cold page", false, false, true, true, ALONE, LOAD, 3},
    {"transaction, cold page loaded", false, false, false, true, ALONE, LOAD, 3},
    {"transaction, cold page stored to", false, false, false, true, ALONE, STORE, 3},
    {"the same, hint", false, false, false, true, ALONE, STORE_HINTED, 2},
    {"transaction, page that stays stored to", false, true, false, false, ALONE, STORE,
     3},
    {"the same, hint", false, true, false, false, ALONE, STORE_HINTED, 2},
    {"the same, serial, beside others", false, true, false, false, SERIAL, STORE_HINTED,
     2},
    {"transaction, serial, page loaded, others", false, true, false, false, SERIAL, LOAD,
     0},
    {"the same, another has stored to it", false, true, false, false, SERIAL, LOAD_NEWS,
     0},
    {"query, serial, another has stored to it", false, true, true, false, SERIAL,
     LOAD_NEWS, 0},
    /* Signals twice; unprotect, is the descriptor ours, write, begin, protect, sync. */
    {"durable, page that stays stored to, hint", true, true, false, false, ALONE,
     STORE_HINTED, 8},
};
#define N_PLAYS ((int)(sizeof plays / sizeof plays[0]))

/* What processes tell each other. */
struct notes {
    _Atomic uint64_t is_accompanied, engine, is_ready, is_traced;
    _Atomic uint64_t wanted,
        stored; /* the step for which the other one is to store, and has */
    const struct play *play;
};

/* ---- The clock ------------------------------------------------------------------------- */

static struct timespec stopped_at; /* 0: it goes */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC_COARSE || stopped_at.tv_sec == 0)
        return __real_clock_gettime(clock, now);
    *now = stopped_at;
    return 0;
}

/* ---- The child ------------------------------------------------------------------------- */

static void
choose(const struct play *p)
{
    env_checking = p->stays ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    must_ok(xac_set_option(XAC_OPT_POLICY, p->company == SERIAL
                                               ? XAC_POLICY_SERIAL
                                               : XAC_POLICY_OLDEST_WINS));
}

static volatile uint64_t *
cell(uint64_t *base, uint64_t k)
{
    return base + k % PAGES * env_page() / sizeof *base;
}

static void
transact(const struct play *p, struct notes *notes, uint64_t *base, uint64_t k)
{
    /* Another page each time, as one that is written again is not protected (warm). */
    volatile uint64_t *x = cell(base, k);

    if (p->act == LOAD_NEWS) { /* waits without a call */
        word_store(&notes->wanted, k + 1);
        while (word_load(&notes->stored) != k + 1)
            ;
    }
    must_ok(p->is_query ? xbeginQuery() : xbegin());
    if (p->act == STORE_HINTED)
        must_ok(setPageAccess((void *)(uintptr_t)x, READ_WRITE));
    if (p->act == LOAD)
        (void)*x;
    else if (p->act == LOAD_NEWS)
        must_eq(*x, k + 1);
    else if (p->act != NOTHING)
        *x = k + 1;
    must_rc(p->is_query ? xendQuery() : xend(), p->is_query ? 0 : COMMITTED);
}

static void
play(void *arg)
{
    struct notes *notes = (struct notes *)arg;
    const struct play *p = notes->play;
    struct xac_stats s;
    uint64_t *base;

    choose(p);
    base = env_attach(p->is_durable ? DURABLE : NONDURABLE, PAGES);
    must_ok(xStats(&s, sizeof s));
    word_store(&notes->engine, s.engine);
    must_ok(clock_gettime(CLOCK_MONOTONIC_COARSE, &stopped_at));
    for (uint64_t k = 0; k < FIRST; k++)
        transact(p, notes, base, k);
    word_store(&notes->is_ready, 1);
    proc_await(&notes->is_traced, 1, 20);
    bench_trace_mark();
    for (uint64_t k = FIRST; k < FIRST + TIMES; k++)
        transact(p, notes, base, k);
    bench_trace_mark();
    env_detach();
}

/* ---- The tracer ------------------------------------------------------------------------- */

/* count -- the child's calls between its marks; ret all of them. */
static uint64_t
count(struct notes *notes, struct bench_trace *trace)
{
    pid_t pid = proc_spawn(play, notes);
    uint64_t all = 0;
    int status;

    proc_await(&notes->is_ready, 1, 20);
    must_ok(bench_trace_seize(pid));
    word_store(&notes->is_traced, 1);
    must_ok(bench_trace_run(trace, pid, &status));
    must_eq(status, 0);
    must_eq(trace->marks, 2);
    for (unsigned i = 0; i <= BENCH_TRACE_CALLS; i++)
        all += trace->calls[i];
    return all;
}

/* print -- a line of the table. */
static void
print(const struct play *p, const struct bench_trace *trace, uint64_t all)
{
    printf("%-40s %5.2f", p->name, (double)all / TIMES);
    for (unsigned i = 0; i <= BENCH_TRACE_CALLS; i++)
        if (trace->calls[i] > 0)
            printf("  %s %.2f", bench_trace_name(i), (double)trace->calls[i] / TIMES);
    printf("\n");
}

/* accompany -- be another participant, which stores what is wanted, until killed. */
static void
accompany(void *arg)
{
    struct notes *notes = (struct notes *)arg;
    uint64_t *base;

    choose(notes->play);
    base = env_attach(NONDURABLE, PAGES);
    word_store(&notes->is_accompanied, 1);
    for (uint64_t k = 0;; k++) {
        while (word_load(&notes->wanted) == k)
            proc_sleep_us(notes->play->act == LOAD_NEWS ? 1 : 10000);
        must_ok(xbegin());
        *cell(base, k) = k + 1;
        must_rc(xend(), COMMITTED);
        word_store(&notes->stored, k + 1);
    }
}

START_TEST(transactions_make_few_system_calls)
{
    const struct play *p = &plays[_i];
    struct notes *notes = proc_shared(sizeof *notes);
    struct bench_trace trace = {.marks = 0};
    uint64_t all;
    pid_t other = 0;

    notes->play = p;
    if (p->company != ALONE) {
        other = proc_spawn(accompany, notes);
        proc_await(&notes->is_accompanied, 1, 20);
    }
    all = count(notes, &trace);
    print(p, &trace, all);
    if (other != 0)
        proc_kill(other);
    /* One of them may have started a checkpoint, or mapped new frames. */
    if (p->act == NOTHING
        || (p->most == 0 && p->act == LOAD
            && word_load(&notes->engine) == XAC_ENGINE_UFFD))
        must_eq(all, 0);
    else if (word_load(&notes->engine) == XAC_ENGINE_UFFD)
        must(all <= (uint64_t)p->most * TIMES + TIMES / 2);
}
END_TEST

static Suite *
calls_suite(void)
{
    Suite *s = suite_create("calls");
    TCase *tc = env_tcase(s, "calls", 60);

    tcase_add_loop_test(tc, transactions_make_few_system_calls, 0, N_PLAYS);
    return s;
}

int
main(void)
{
    return env_main(calls_suite());
}
