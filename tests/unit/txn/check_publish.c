/* SPDX-License-Identifier: MIT */
/*
 * check_publish.c -- what runs while the publish lock is held.
 *
 * GOAL    Stores that can neither fail nor wait: no system call, no page fault.  How many
 *         instructions is printed.
 * METHOD  The lock's functions are wrapped by the linker.  A workload runs twice, each time in
 *         a new environment: once with the page faults of the thread counted (getrusage) where
 *         the lock is taken and where it is given, once step by step (the processor's trap
 *         flag), where each instruction is looked at.
 *
 * XAC_PUBLISH_WHERE=1  prints the address of each instruction after which a page fault was
 *                      counted, and where the program lies
 */
#include <config.h>

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/lock.h"

#define SECTIONS_MAX 10000

/* A step costs as much as a hundred instructions and more: of many sections, only so many at
   first and then one in so many are gone through step by step. */
#define STEPPED_FIRST  20
#define STEPPED_ONE_IN 64

/* What was found under the lock. */
struct found {
    uint64_t n_seen; /* sections                                                       */
    uint64_t n;      /* of these counted                                               */
    uint64_t faults; /* in all of them                                                 */
    uint64_t calls;
    uint32_t steps[SECTIONS_MAX]; /* of each                                           */
};

enum how {
    NOT_AT_ALL,
    BY_USAGE,
    BY_STEPS,
};

static struct found *found;
static const struct xac_lock *watched;
static _Thread_local enum how how;
static _Thread_local bool is_inside;
static _Thread_local uint64_t faults_before;

/* ---- Step by step ----------------------------------------------------------------------- */

static uint64_t
faults_now(void)
{
    struct rusage u;

    must(getrusage(RUSAGE_THREAD, &u) == 0);
    return (uint64_t)u.ru_minflt + (uint64_t)u.ru_majflt;
}

#if defined(__x86_64__)
# define CAN_STEP  true
# define TRAP_FLAG 0x100

static uint64_t last_at, last_faults;
static bool is_where;

/* is_free -- has the lock been given, whichever waiter is woken now? */
static bool
is_free(void)
{
    return (*(volatile const int *)&watched->mutex.__data.__lock & FUTEX_TID_MASK)
           != gettid();
}

/* on_step -- before the instruction at the address is run. */
static void
on_step(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    uint64_t at = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
    const uint8_t *code = (const uint8_t *)at; /* NOLINT */

    (void)signal;
    (void)info;
    if (!is_inside || is_free())
        return;
    if (is_where) {
        uint64_t now = faults_now();

        if (now != last_faults)
            fprintf(stderr, "page fault at %#lx\n", (unsigned long)last_at);
        last_faults = now;
    }
    if (at == last_at)
        return; /* a round of a string instruction */
    last_at = at;
    found->steps[found->n]++;
    /* syscall, sysenter, int */
    if ((code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34)) || code[0] == 0xcd)
        found->calls++;
}

static void
steps_set(bool is_on)
{
    uint64_t flags;

    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags) : : "memory");
    flags = is_on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG;
    __asm__ volatile("pushq %0\n\tpopfq" : : "r"(flags) : "memory", "cc");
}

static void
steps_prepare(void)
{
    struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    const char *where = getenv("XAC_PUBLISH_WHERE");

    is_where = where != NULL && *where != '0';
    must(sigaction(SIGTRAP, &sa, NULL) == 0);
}
#else
# define CAN_STEP false

static void
steps_set(bool is_on)
{
    (void)is_on;
}

static void
steps_prepare(void)
{
}
#endif

/* ---- The lock's functions ----------------------------------------------------------------- */

enum xac_lock_result __real_xac_lock_acquire(struct xac_lock *lk);
enum xac_lock_result __wrap_xac_lock_acquire(struct xac_lock *lk);
enum xac_lock_result __real_xac_lock_acquire_limited(struct xac_lock *lk);
enum xac_lock_result __wrap_xac_lock_acquire_limited(struct xac_lock *lk);
void __real_xac_lock_release(struct xac_lock *lk);
void __wrap_xac_lock_release(struct xac_lock *lk);

/* begin_section -- the lock has just been taken. */
static void
begin_section(const struct xac_lock *lk)
{
    if (how == NOT_AT_ALL || lk->rank != XAC_RANK_PUBLISH)
        return;
    if (found->n_seen++ > STEPPED_FIRST && how == BY_STEPS
        && found->n_seen % STEPPED_ONE_IN != 0)
        return;
    must(found->n < SECTIONS_MAX);
    faults_before = faults_now();
    is_inside = true;
    if (how == BY_STEPS) {
        watched = lk;
        steps_set(true);
    }
}

enum xac_lock_result
__wrap_xac_lock_acquire(struct xac_lock *lk)
{
    enum xac_lock_result got = __real_xac_lock_acquire(lk);

    begin_section(lk);
    return got;
}

enum xac_lock_result
__wrap_xac_lock_acquire_limited(struct xac_lock *lk)
{
    enum xac_lock_result got = __real_xac_lock_acquire_limited(lk);

    must(got != XAC_LOCK_TIMED_OUT);
    begin_section(lk);
    return got;
}

void
__wrap_xac_lock_release(struct xac_lock *lk)
{
    if (!is_inside || lk->rank != XAC_RANK_PUBLISH) {
        __real_xac_lock_release(lk);
        return;
    }
    __real_xac_lock_release(lk);
    if (how == BY_STEPS)
        steps_set(false);
    is_inside = false;
    if (how == BY_USAGE)
        found->faults += faults_now() - faults_before;
    found->n++;
}

/* ---- Workloads ------------------------------------------------------------------------------ */

#define N_PAGES 4096

/* A transaction that changes n pages from `first` on, one word each, or all words. */
static void
change(uint64_t *base, size_t first, size_t n, bool all)
{
    static uint64_t value;
    size_t words = env_page() / sizeof *base;

    must_ok(xbegin());
    for (size_t p = first; p < first + n; p++) {
        for (size_t w = 0; w < words; w += all ? 1 : words)
            env_cell(base, p % N_PAGES)[w] = ++value * UINT64_C(0x9e3779b97f4a7c15);
    }
    must_ok(xend());
}

static void
commit_first(uint64_t *base)
{
    change(base, 0, 1, false);
}

static void
commit_many(uint64_t *base)
{
    for (size_t i = 0; i < 1500; i++)
        change(base, i * 7 % 64, 1 + i % 3, false);
}

/* Blocks of up to a quarter of the log buffer, and larger ones, which go to a file. */
static void
commit_large(uint64_t *base)
{
    for (size_t n = 8; n <= 512; n *= 4) {
        change(base, n, n, false);
        change(base, n, n, true);
    }
}

/* Versions that a query holds back, so that the store grows; pages and parts of the page table
   that nobody has used before. */
static void
grow_store(uint64_t *base)
{
    for (size_t i = 0; i < 600; i++)
        change(base, i * 5, 5, false);
}

/* The log buffer several times round, and segment after segment. */
static void
fill_log(uint64_t *base)
{
    for (size_t i = 0; i < 12; i++)
        change(base, i * 64, 64, true);
}

static void
checkpoint(uint64_t *base)
{
    for (size_t i = 0; i < 8; i++) {
        change(base, i * 100, 100, false);
        must_ok(xCheckpoint());
    }
}

struct work {
    const char *name;
    void (*run)(uint64_t *base);
    bool with_other;  /* another process commits meanwhile                             */
    bool with_reader; /* another process has an old snapshot                           */
    enum xac_policy_kind policy;
};

static const struct work works[] = {
    {.name = "first commit", .run = commit_first},
    {.name = "small commits", .run = commit_many},
    {.name = "small commits, optimistic",
     .run = commit_many,
     .policy = XAC_POLICY_OPTIMISTIC},
    {.name = "small commits, beside another process",
     .run = commit_many,
     .with_other = true},
    {.name = "small commits, serial", .run = commit_many, .policy = XAC_POLICY_SERIAL},
    {.name = "small commits, serial, beside another process",
     .run = commit_many,
     .with_other = true,
     .policy = XAC_POLICY_SERIAL},
    {.name = "large transactions", .run = commit_large},
    {.name = "growing version store", .run = grow_store, .with_reader = true},
    {.name = "growing store, beside another process",
     .run = grow_store,
     .with_reader = true,
     .with_other = true},
    {.name = "log buffer and segments", .run = fill_log},
    {.name = "checkpoints", .run = checkpoint},
    {.name = "checkpoints, beside another process",
     .run = checkpoint,
     .with_other = true},
};

#define N_WORKS (sizeof works / sizeof works[0])

static _Atomic uint64_t *others;

static void
set_options(const struct work *w)
{
    must_ok(xac_set_option(XAC_OPT_POLICY, (uint64_t)w->policy));
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 20));
}

/* The other process commits to pages behind those of the workloads. */
static void
run_other(void *arg)
{
    uint64_t *base;

    set_options(arg);
    base = env_attach(XAC_DURABLE, N_PAGES + 256);
    word_add(others, 1);
    for (size_t i = 0;; i++)
        env_increment(env_cell(base, N_PAGES + i % 256));
}

static void
run_reader(void *arg)
{
    uint64_t *base;

    set_options(arg);
    base = env_attach(XAC_DURABLE, N_PAGES + 256);
    must_ok(xbeginQuery());
    (void)*(volatile uint64_t *)base;
    word_add(others, 1);
    for (;;)
        (void)pause();
}

struct job {
    const struct work *work;
    enum how how;
};

static void
run_work(void *arg)
{
    const struct job *job = arg;
    uint64_t *base;

    set_options(job->work);
    base = env_attach(XAC_DURABLE, N_PAGES + 256);
    if (job->how == BY_STEPS)
        steps_prepare();
    how = job->how;
    job->work->run(base);
    how = NOT_AT_ALL;
    _exit(0);
}

static int
compare_steps(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* measure -- a workload in a new environment. */
static void
measure(const struct work *w, enum how by)
{
    struct job job = {.work = w, .how = by};
    pid_t other = 0, reader = 0;

    word_store(others, 0);
    if (w->with_reader)
        reader = proc_spawn(run_reader, (void *)(uintptr_t)w);
    if (w->with_other)
        other = proc_spawn(run_other, (void *)(uintptr_t)w);
    proc_await(others, (uint64_t)w->with_reader + w->with_other, 30);
    proc_run(run_work, &job);
    if (reader != 0)
        proc_kill(reader);
    if (other != 0)
        proc_kill(other);
}

START_TEST(nothing_faults_under_publish)
{
    const struct work *w = &works[_i];

    measure(w, BY_USAGE);
    printf("%-40s %6llu sections, %llu page faults\n", w->name,
           (unsigned long long)found->n, (unsigned long long)found->faults);
    must(found->n > 0);
    must_eq(found->faults, 0);
}
END_TEST

START_TEST(nothing_calls_the_system_under_publish)
{
    const struct work *w = &works[_i];

    if (!CAN_STEP) {
        puts("skipped: this processor's steps are not known here");
        return;
    }
    measure(w, BY_STEPS);
    must(found->n > 0);
    qsort(found->steps, found->n, sizeof found->steps[0], compare_steps);
    printf("%-40s %6llu sections, instructions: median %u, most %u; %llu system calls\n",
           w->name, (unsigned long long)found->n, found->steps[found->n / 2],
           found->steps[found->n - 1], (unsigned long long)found->calls);
    must_eq(found->calls, 0);
}
END_TEST

static void
setup(void)
{
    env_setup();
    env_without_frames("its instructions are others");
    found = proc_shared(sizeof *found);
    memset(found, 0, sizeof *found); /* no fault of its own later */
    others = proc_shared(sizeof *others);
}

int
main(void)
{
    Suite *s;
    TCase *t;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("skipped: a sanitizer has memory of its own");
    return 77;
#endif
    s = suite_create("publish");
    t = env_tcase_with(s, "publish", 300, setup);
    tcase_add_loop_test(t, nothing_faults_under_publish, 0, N_WORKS);
    tcase_add_loop_test(t, nothing_calls_the_system_under_publish, 0, N_WORKS);
    return env_main(s);
}
