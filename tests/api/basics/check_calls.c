/* SPDX-License-Identifier: MIT */
/*
 * check_calls.c -- how many system calls a transaction makes.
 *
 * GOAL    One that writes nothing makes none at its begin and its end, if what it reads stays
 *         mapped or it reads nothing; the others as few as doc/performance.md says.  Looks for
 *         the handlers of signals (fault_signal.h) come on top, at most two at a begin.
 * METHOD  a child is traced (ptrace), and its calls counted between two calls of getppid(), which
 *         nobody else makes; the table is printed.  A trap's return is a call, too.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "env.h"

#define TIMES \
 20 /* that a case is repeated                                              */
#define CALLS \
 512 /* numbers of system calls that are told apart                         */
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
    bool stays, is_query, is_cold;
    enum company company;
    enum act act;
    int most; /* calls of a transaction; under uffd                                       */
} plays[] = {
    {"query, nothing touched", false, true, false, ALONE, NOTHING, 0},
    {"transaction, nothing touched", false, false, false, ALONE, NOTHING, 0},
    {"the same, beside others", false, false, false, BESIDE, NOTHING, 0},
    {"query, warm page", true, true, false, ALONE, LOAD, 0},
    {"query, warm page, beside others", true, true, false, BESIDE, LOAD, 0},
    {"transaction, warm page loaded", true, false, false, ALONE, LOAD, 0},
    {"query, cold page", false, true, true, ALONE, LOAD, 3},
    {"transaction, cold page loaded", false, false, true, ALONE, LOAD, 3},
    {"transaction, cold page stored to", false, false, true, ALONE, STORE, 3},
    {"the same, hint", false, false, true, ALONE, STORE_HINTED, 2},
    {"transaction, page that stays stored to", true, false, false, ALONE, STORE, 3},
    {"the same, hint", true, false, false, ALONE, STORE_HINTED, 2},
    {"the same, serial, beside others", true, false, false, SERIAL, STORE_HINTED, 2},
    {"transaction, serial, page loaded, others", true, false, false, SERIAL, LOAD, 0},
    {"the same, another has stored to it", true, false, false, SERIAL, LOAD_NEWS, 0},
    {"query, serial, another has stored to it", true, true, false, SERIAL, LOAD_NEWS, 0},
};
#define N_PLAYS ((int)(sizeof plays / sizeof plays[0]))

static const struct {
    long number;
    const char *name;
} names[] = {{SYS_ioctl, "ioctl"},
             {SYS_madvise, "madvise"},
             {SYS_process_madvise, "process_madvise"},
             {SYS_mprotect, "mprotect"},
             {SYS_mmap, "mmap"},
             {SYS_rt_sigprocmask, "rt_sigprocmask"},
             {SYS_rt_sigreturn, "rt_sigreturn"},
             {SYS_pread64, "pread64"},
             {SYS_futex, "futex"}};

/* What processes tell each other. */
struct notes {
    _Atomic uint64_t is_accompanied, engine;
    _Atomic uint64_t wanted,
        stored; /* the step for which the other one is to store, and has */
    const struct play *play;
};

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

static _Noreturn void
play(const struct play *p, struct notes *notes)
{
    struct xac_stats s;
    uint64_t *base;

    choose(p);
    base = env_attach(NONDURABLE, PAGES);
    must_ok(xStats(&s, sizeof s));
    word_store(&notes->engine, s.engine);
    for (uint64_t k = 0; k < FIRST; k++)
        transact(p, notes, base, k);
    (void)raise(SIGSTOP); /* the parent traces from here on */
    (void)syscall(SYS_getppid);
    for (uint64_t k = FIRST; k < FIRST + TIMES; k++)
        transact(p, notes, base, k);
    (void)syscall(SYS_getppid);
    env_detach();
    _exit(0);
}

/* ---- The tracer ------------------------------------------------------------------------- */

/* next_stop -- let the child go on to its next call or signal; ret false: it has ended. */
static bool
next_stop(pid_t pid, int *signalp)
{
    int status;

    must(ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(uintptr_t)*signalp) == 0);
    must(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status)) {
        must_eq(WEXITSTATUS(status), 0);
        return false;
    }
    must(WIFSTOPPED(status));
    *signalp = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
    return true;
}

/* count -- the child's calls between its marks, by number; ret all of them. */
static int
count(pid_t pid, int calls[CALLS])
{
    int signal = 0, marks = 0, all = 0;

    while (next_stop(pid, &signal)) {
        struct ptrace_syscall_info info;

        if (signal != 0)
            continue;
        must(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) > 0);
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
            continue;
        if (info.entry.nr == SYS_getppid) {
            marks++;
        } else if (marks == 1) {
            must(info.entry.nr < CALLS);
            calls[info.entry.nr]++;
            all++;
        }
    }
    must_eq(marks, 2);
    return all;
}

/* print -- a line of the table. */
static void
print(const struct play *p, const int calls[CALLS], int all)
{
    printf("%-40s %5.2f", p->name, (double)all / TIMES);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (calls[names[i].number] > 0)
            printf("  %s %.2f", names[i].name, (double)calls[names[i].number] / TIMES);
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
    int calls[CALLS] = {0}, status, all, looks;
    pid_t other = 0, pid;

    notes->play = p;
    if (p->company != ALONE) {
        other = proc_spawn(accompany, notes);
        proc_await(&notes->is_accompanied, 1, 20);
    }
    pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
        play(p, notes);
    }
    /* Until it stops itself, traps are passed on. */
    must(waitpid(pid, &status, 0) == pid);
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP) {
        must(ptrace(PTRACE_CONT, pid, NULL, (void *)(uintptr_t)WSTOPSIG(status)) == 0);
        must(waitpid(pid, &status, 0) == pid);
    }
    must(WIFSTOPPED(status));
    must(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_TRACESYSGOOD) == 0);
    all = count(pid, calls);
    print(p, calls, all);
    looks = calls[SYS_rt_sigaction];
    must(looks <= 2 * TIMES);
    all -= looks;
    if (other != 0)
        proc_kill(other);
    /* One of them may have started a checkpoint, or mapped new frames. */
    if (p->act == NOTHING
        || (p->most == 0 && p->act == LOAD
            && word_load(&notes->engine) == XAC_ENGINE_UFFD))
        must_eq(all, 0);
    else if (word_load(&notes->engine) == XAC_ENGINE_UFFD)
        must(all <= p->most * TIMES + TIMES / 2);
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
