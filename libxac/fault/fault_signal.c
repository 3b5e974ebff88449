/* SPDX-License-Identifier: MIT */
/*
 * fault_signal.c -- see fault_signal.h.
 *
 * The fault's error code in the signal context tells a write from a read, so that a first
 * write is one trap, not two as in the Thesis.  Where a machine does not say, an access is
 * taken for a read, and the second trap on a readable page for a write.
 *
 * The dispatcher (fault_areas.h) is not made for being changed while another thread searches
 * it.  So there are two: searches use the active one; a change is made to the idle one, the
 * roles are swapped, and when the last search that might still be in the old one has
 * left, the change is made there too.
 */
#include <config.h>

#include "fault/fault_signal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/tls.h"
#include "base/tsan.h"
#include "fault/area.h"
#include "fault/fault_areas.h"
#include "fault/fault_handlers.h"
#include "shared/env_state.h"

/* Bytes of a signal stack that the handlers need beside what the kernel puts there. */
#define STACK_NEEDED 4096

/*
 * A context's transactions look whether our handlers are installed: the first LOOKS_FIRST that
 * begin in one tick of the coarse clock.  In a loop of short transactions, in which the tick before
 * had more begins than that, the first one of a tick looks: a look takes two system calls.  For
 * WATCH_NS after the handlers had been replaced, each transaction looks.
 */
#define LOOKS_FIRST 16
#define WATCH_NS    UINT64_C(1000000000)
#define TICK_NS_MAX UINT64_C(10000000)

static struct xac_areas areas[2];
static _Atomic int active;       /* that searches use                              */
static _Atomic int searching[2]; /* searches under way in each                     */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

static bool is_started;
static const struct xac_area_owner *owner_of_all; /* set before a handler is installed */

/* Of the fault being handled by this thread. */
static XAC_TLS const ucontext_t *fault_context;

/* An area's registrations in both. */
struct ticket {
    void *in[2];
};

/* access_of -- what the hardware says the faulting instruction wanted. */
XAC_SIGSAFE static enum xac_access
access_of(const ucontext_t *uc)
{
#if defined(__x86_64__)
    return (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? XAC_ACCESS_WRITE : XAC_ACCESS_READ;
#elif defined(__aarch64__)
    /* The exception syndrome is one of the records behind the registers. */
    const struct _aarch64_ctx *rec =
        (const struct _aarch64_ctx *)(const void *)uc->uc_mcontext.__reserved;

    while (rec->magic != 0 && rec->size != 0) {
        if (rec->magic == ESR_MAGIC)
            return (((const struct esr_context *)rec)->esr & (1u << 6)) != 0
                       ? XAC_ACCESS_WRITE
                       : XAC_ACCESS_READ;
        rec = (const struct _aarch64_ctx *)(const void *)((const char *)rec + rec->size);
    }
    return XAC_ACCESS_UNKNOWN;
#else
    (void)uc;
    return XAC_ACCESS_UNKNOWN;
#endif
}

/* area_handler -- the fault is inside an area. */
XAC_SIGSAFE static int
area_handler(void *addr, void *arg)
{
    struct xac_area *area = (struct xac_area *)arg;

    area->owner->fault(area, addr, access_of(fault_context));
    return 1;
}

/* search -- let the active dispatcher do it; true if the fault was in an area. */
XAC_SIGSAFE static bool
search(void *addr)
{
    for (;;) {
        /* Pairs with swap_roles. */
        int t = atomic_load_explicit(&active, memory_order_seq_cst);
        bool found;

        /* Pairs with swap_roles: it changes `active`, then waits for this to be 0. */
        (void)atomic_fetch_add_explicit(&searching[t], 1, memory_order_seq_cst);
        if (atomic_load_explicit(&active, memory_order_seq_cst) != t) {
            (void)atomic_fetch_sub_explicit(&searching[t], 1, memory_order_release);
            continue; /* swapped in between: pairs with swap_roles, too */
        }
        found = xac_areas_dispatch(&areas[t], addr);
        /* Release: pairs with the acquire in swap_roles. */
        (void)atomic_fetch_sub_explicit(&searching[t], 1, memory_order_release);
        return found;
    }
}

/* on_fault -- is it ours?  Then it has been handled. */
XAC_SIGSAFE static bool
on_fault(int sig, siginfo_t *info, void *context)
{
    bool is_real = sig == SIGBUS
                       ? info->si_code == BUS_ADRERR
                       : info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;
    bool is_ours;

    fault_context = (const ucontext_t *)context;
    xac_tsan_enter();
    is_ours = is_real && search(info->si_addr);
    if (is_real && !is_ours && sig == SIGSEGV)
        owner_of_all->astray(info->si_addr, info->si_code == SEGV_MAPERR,
                             access_of(fault_context) == XAC_ACCESS_WRITE);
    xac_tsan_leave();
    return is_ours;
}

XAC_SIGSAFE const void *
xac_signal_code(void)
{
    xac_assert(fault_context != NULL);
#if defined(__x86_64__)
    return (const void *)fault_context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)fault_context->uc_mcontext.pc;
#else
    return NULL;
#endif
}

int
xac_signal_start(bool with_sigbus, const struct xac_area_owner *owner)
{
    int rc;

    if (is_started)
        return 0;
    owner_of_all = owner;
    xac_areas_init(&areas[0]);
    xac_areas_init(&areas[1]);
    rc = xac_handlers_start(with_sigbus, on_fault);
    is_started = rc == 0;
    return rc;
}

/* is_time_to_look -- see LOOKS_FIRST; counts the begin. */
static bool
is_time_to_look(struct xac_ctx *ctx, uint64_t now_ns)
{
    if (ctx->looked_ns != now_ns) {
        ctx->is_loop =
            ctx->n_looks > LOOKS_FIRST && now_ns - ctx->looked_ns <= TICK_NS_MAX;
        ctx->looked_ns = now_ns;
        ctx->n_looks = 0;
    }
    return ctx->n_looks++ < (ctx->is_loop ? 1 : LOOKS_FIRST)
           || now_ns < ctx->watch_until_ns;
}

void
xac_signal_look(struct xac_ctx *ctx, uint64_t now_ns)
{
    static _Atomic bool has_said;
    sigset_t signals;
    int rc;

    if (!is_time_to_look(ctx, now_ns) || xac_likely(xac_handlers_hold()))
        return;
    ctx->watch_until_ns = now_ns + WATCH_NS;
    xac_signals_block(&signals);
    (void)pthread_mutex_lock(&change);
    rc = xac_handlers_retake();
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    if (rc == 0)
        xac_say_once(
            &has_said,
            "the program has replaced the handler of SIGSEGV or SIGBUS after xInit(); "
            "libxac's is in front of it again, and calls it for all other faults "
            "(xac.h, rule 5)");
}

/* signal_frame -- bytes that the kernel itself needs on the stack of a handler. */
static size_t
signal_frame(void)
{
#ifdef _SC_MINSIGSTKSZ
    return (size_t)sysconf(_SC_MINSIGSTKSZ);
#else /* musl */
    unsigned long bytes = getauxval(AT_MINSIGSTKSZ);

    return bytes != 0 ? bytes : MINSIGSTKSZ;
#endif
}

int
xac_signal_check_stack(void)
{
    size_t needed = signal_frame() + STACK_NEEDED;
    stack_t ss;

    if (sigaltstack(NULL, &ss) != 0 || (ss.ss_flags & SS_DISABLE) != 0
        || ss.ss_size >= needed)
        return 0;
    return xac_err(ENOMEM,
                   "the signal stack of this thread has %zu bytes, handling faults"
                   " takes %zu",
                   ss.ss_size, needed);
}

void
xac_signal_stop(void)
{
    if (is_started)
        xac_handlers_stop();
    is_started = false;
}

void
xac_signal_fork(void)
{
    (void)pthread_mutex_lock(&change);
}

void
xac_signal_fork_done(void)
{
    (void)pthread_mutex_unlock(&change);
}

void
xac_signal_forked(void)
{
    atomic_store_explicit(&searching[0], 0, memory_order_relaxed);
    atomic_store_explicit(&searching[1], 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&change);
}

/* swap_roles -- searches use the other one; returns when the old one has none left. */
static int
swap_roles(void)
{
    int old = atomic_load_explicit(&active, memory_order_relaxed);

    atomic_store_explicit(&active, 1 - old, memory_order_seq_cst); /* pairs with search */
    /* Acquire: pairs with the release in search. */
    while (atomic_load_explicit(&searching[old], memory_order_acquire) != 0)
        (void)sched_yield();
    return old;
}

/* insert -- register an area in one dispatcher, where it lies now; false: no memory. */
static bool
insert(struct ticket *t, struct xac_area *area, int in)
{
    t->in[in] =
        xac_areas_insert(&areas[in], area->base, area->length, area_handler, area);
    return t->in[in] != NULL;
}

/* insert_both -- in both or in none; false: no memory.  `change` held. */
static bool
insert_both(struct ticket *t, struct xac_area *area)
{
    int idle = 1 - atomic_load_explicit(&active, memory_order_relaxed);

    if (!insert(t, area, idle))
        return false;
    if (insert(t, area, swap_roles()))
        return true;
    idle = swap_roles();
    xac_areas_remove(&areas[idle], t->in[idle]);
    return false;
}

int
xac_signal_attach(struct xac_area *area)
{
    struct ticket *t = (struct ticket *)calloc(1, sizeof *t);
    sigset_t signals;
    bool is_in;

    if (t == NULL)
        return ENOMEM;
    xac_signals_block(&signals); /* a handler may fork */
    (void)pthread_mutex_lock(&change);
    is_in = insert_both(t, area);
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    if (!is_in) {
        free(t);
        return ENOMEM;
    }
    area->ticket = t;
    return 0;
}

void
xac_signal_detach(struct xac_area *area)
{
    struct ticket *t = (struct ticket *)area->ticket;
    sigset_t signals;
    int idle;

    if (t == NULL)
        return;
    xac_signals_block(&signals);
    (void)pthread_mutex_lock(&change);
    idle = 1 - atomic_load_explicit(&active, memory_order_relaxed);
    xac_areas_remove(&areas[idle], t->in[idle]);
    idle = swap_roles();
    xac_areas_remove(&areas[idle], t->in[idle]);
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    free(t);
    area->ticket = NULL;
}

/* again -- the same for an area that has moved; there is memory: its own has become free. */
static void
again(struct xac_area *area, int in)
{
    struct ticket *t = (struct ticket *)area->ticket;
    bool is_in;

    xac_areas_remove(&areas[in], t->in[in]);
    is_in = insert(t, area, in);
    xac_require(is_in);
}

void
xac_signal_moved(struct xac_area *area)
{
    (void)pthread_mutex_lock(&change);
    again(area, 1 - atomic_load_explicit(&active, memory_order_relaxed));
    again(area, swap_roles());
    (void)pthread_mutex_unlock(&change);
}
