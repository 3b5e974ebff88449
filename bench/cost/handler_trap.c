/* SPDX-License-Identifier: MIT */
/*
 * handler_trap.c -- signals of the experiment `handler`, and when they were where.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>

#include "bench/cost/handler.h"

/* The trap that is expected; read and written in the handler. */
static struct {
    volatile sig_atomic_t is_expected;
    int (*fix)(uint8_t *page);
    uint8_t *page;
    struct bench_trap times;
    int code;
    sigjmp_buf out; /* for what cannot be fixed: the access would trap for ever        */
} trap;

static struct sigaction old_segv, old_bus;

/* on_trap -- note the time, fix, note the time. */
static void
on_trap(int sig, siginfo_t *info, void *context)
{
    uint64_t now = bench_ticks();

    (void)info;
    (void)context;
    if (!trap.is_expected) { /* a bug of ours: die of it */
        signal(sig, SIG_DFL);
        return;
    }
    trap.is_expected = 0;
    trap.times.entered = trap.times.middle = now;
    trap.code = trap.fix(trap.page);
    trap.times.fixed = bench_ticks();
    if (trap.code != 0)
        siglongjmp(trap.out, 1);
}

void
bench_trap_begin(void)
{
    struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

    sigfillset(&sa.sa_mask); /* as the library's handler */
    sigaction(SIGSEGV, &sa, &old_segv);
    sigaction(SIGBUS, &sa, &old_bus);
}

void
bench_trap_end(void)
{
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
}

int
bench_trap_touch(uint8_t *page, int (*fix)(uint8_t *page), struct bench_trap *out)
{
    volatile int *first = (volatile int *)(void *)page;

    trap.fix = fix;
    trap.page = page;
    trap.code = 0;
    trap.times.entered = 0;
    if (sigsetjmp(trap.out, 1) != 0)
        return trap.code;
    trap.is_expected = 1;
    trap.times.before = bench_ticks();
    *first += 1;
    trap.times.after = bench_ticks();
    trap.is_expected = 0;
    *out = trap.times;
    return out->entered != 0 ? 0 : EIO;
}

void
bench_trap_note(void)
{
    trap.times.middle = bench_ticks();
}
