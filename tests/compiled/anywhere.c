/* SPDX-License-Identifier: MIT */
/*
 * anywhere.c -- compiled by xac-cc: code with hooks runs at all times and places.
 *
 * GOAL    In constructors, in signal handlers in the middle of transactions, in children and their fork
 *         handlers, in threads with a view and without, and outside of transactions hooks do no harm,
 *         and what transactions store is committed or rolled back as a whole.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define PAGES  64
#define PAGE   4096
#define ROUNDS 3000

static volatile uint64_t n_constructed, n_signals, n_forked;
static uint64_t *base;

#define must(is) ((is) ? (void)0 : fail(__LINE__, #is))

static void
fail(int line, const char *what)
{
    fprintf(stderr, "anywhere.c:%d: not so: %s; %s\n", line, what, xLastError());
    abort();
}

/* work -- loads and stores outside of segments: on the stack, in the heap, in static storage. */
static uint64_t
work(volatile uint64_t *counter)
{
    static _Atomic uint32_t atomic;
    unsigned char buffer[300];
    uint64_t sum = 0;

    memset(buffer, 3, sizeof buffer);
    memmove(buffer + 1, buffer, 200);
    for (int i = 0; i < 300; i++)
        sum += buffer[i];
    atomic++;
    ++*counter;
    return sum;
}

__attribute__((constructor(101))) static void
construct(void)
{
    must(work(&n_constructed) == 900);
}

static void
on_signal(int sig)
{
    (void)sig;
    if (work(&n_signals) != 900)
        abort();
}

static void
on_fork(void)
{
    must(work(&n_forked) == 900);
}

/* add -- to a number in each of eight pages; way 0: commit, 1: abort. */
static void
add(uint64_t *at, uint64_t n, int way)
{
    int rc;

    do {
        must(xbegin() == 0);
        for (int p = 0; p < 8; p++) {
            at[(p * 7 + n) % PAGES * PAGE / sizeof *at] += 1;
            if (n % 16 == 0)
                memset(&at[p * PAGE / sizeof *at + 8], (int)n, 64);
        }
        must(way == 0 || xAbort() == 0);
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
    } while (way == 0 && rc == ABORTED);
}

static uint64_t
sum_of(const uint64_t *at)
{
    uint64_t sum = 0;

    must(xbeginQuery() == 0);
    for (int p = 0; p < PAGES; p++)
        sum += at[p * PAGE / sizeof *at];
    must(xendQuery() == 0);
    return sum;
}

/* with_view -- a thread with a view of its own. */
static void *
with_view(void *arg)
{
    uint64_t *view = (uint64_t *)xView(base);

    (void)arg;
    must(view != NULL);
    for (uint64_t n = 0; n < ROUNDS / 10; n++)
        add(view, n, n % 2);
    must(xUnview(view) == 0);
    return NULL;
}

/* without_view -- a thread that never calls the library. */
static void *
without_view(void *arg)
{
    volatile uint64_t n = 0;

    (void)arg;
    for (int i = 0; i < ROUNDS; i++)
        must(work(&n) == 900);
    return NULL;
}

static void
threads(void)
{
    pthread_t t[4];

    for (int i = 0; i < 4; i++)
        must(pthread_create(&t[i], NULL, i % 2 == 0 ? with_view : without_view, NULL)
             == 0);
    for (int i = 0; i < 4; i++)
        must(pthread_join(t[i], NULL) == 0);
}

/* child -- forked inside or outside of a transaction: it begins anew. */
static void
child(void)
{
    volatile uint64_t n = 0;

    must(work(&n) == 900);
    must(n_forked > 0);
    for (uint64_t k = 0; k < 20; k++)
        add(base, k, k % 2);
    must(xShutdown() == 0);
    _exit(0);
}

static void
children(void)
{
    for (int k = 0; k < 8; k++) {
        pid_t pid = fork();
        int status;

        must(pid >= 0);
        if (pid == 0)
            child();
        must(waitpid(pid, &status, 0) == pid && status == 0);
    }
}

int
main(void)
{
    struct itimerval every = {{0, 300}, {0, 300}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const char *policy = getenv("XAC_POLICY");
    uint64_t before = 0;

    must(n_constructed == 1);
    must(pthread_atfork(on_fork, on_fork, on_fork) == 0);
    must(sigaction(SIGALRM, &action, NULL) == 0);
    must(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED) == 0);
    must(policy == NULL || xSetOption(XAC_OPT_POLICY, strtoull(policy, NULL, 10)) == 0);
    must(xInit("db", NONDURABLE) == 0);
    base = (uint64_t *)xMmap("input.db", PAGES * PAGE);
    must((void *)base != MAP_FAILED);
    must(setitimer(ITIMER_REAL, &every, NULL) == 0);
    for (uint64_t n = 0; n < ROUNDS; n++)
        add(base, n, n % 2);
    must(sum_of(base) == ROUNDS / 2 * 8);
    must(n_signals > 0);
    children();
    must(sum_of(base) == ROUNDS / 2 * 8 + 8 * 10 * 8);
    threads();
    before = sum_of(base);
    must(before == ROUNDS / 2 * 8 + 8 * 10 * 8 + 2 * ROUNDS / 20 * 8);
    for (int k = 0; k < 100; k++)
        must(work(&n_constructed) == 900);
    must(sum_of(base) == before);
    must(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    must(xShutdown() == 0);
    return 0;
}
