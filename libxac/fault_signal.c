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

#include "fault_signal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "err.h"
#include "fault.h"
#include "fault_areas.h"
#include "lock.h"
#include "tls.h"
#include "tsan.h"
#include "view.h"

/* Bytes of a signal stack that the handlers need beside what the kernel puts there. */
#define STACK_NEEDED 4096

static struct xac_areas areas[2];
static _Atomic int active;       /* that searches use                              */
static _Atomic int searching[2]; /* searches under way in each                     */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* Of each signal that faults come as: the handler before ours. */
static struct taken {
    int signal;
    bool is_ours;
    struct sigaction previous;
} taken[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}};
static bool is_started;

/* Of the fault being handled by this thread. */
enum {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_UNKNOWN
};
static XAC_TLS int fault_access;

/* A view's registrations in both. */
struct ticket {
    void *in[2];
};

/* access_of -- what the hardware says the faulting instruction wanted. */
XAC_SIGSAFE static int
access_of(const void *context)
{
#if defined(__x86_64__)
    const ucontext_t *uc = (const ucontext_t *)context;

    return (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? ACCESS_WRITE : ACCESS_READ;
#elif defined(__aarch64__)
    /* The exception syndrome is one of the records behind the registers. */
    const ucontext_t *uc = (const ucontext_t *)context;
    const struct _aarch64_ctx *rec =
        (const struct _aarch64_ctx *)(const void *)uc->uc_mcontext.__reserved;

    while (rec->magic != 0 && rec->size != 0) {
        if (rec->magic == ESR_MAGIC)
            return (((const struct esr_context *)rec)->esr & (1u << 6)) != 0
                       ? ACCESS_WRITE
                       : ACCESS_READ;
        rec = (const struct _aarch64_ctx *)(const void *)((const char *)rec + rec->size);
    }
    return ACCESS_UNKNOWN;
#else
    (void)context;
    return ACCESS_UNKNOWN;
#endif
}

/* area_handler -- the fault is inside a view. */
XAC_SIGSAFE static int
area_handler(void *addr, void *arg)
{
    struct xac_view *view = (struct xac_view *)arg;
    bool is_write = fault_access == ACCESS_WRITE;

    if (fault_access == ACCESS_UNKNOWN) {
        uint64_t p = (uint64_t)((uint8_t *)addr - view->base) / view->page_size;

        is_write = xac_view_is_readable(view, &view->page[p]);
    } else if (is_write && view->ops->reads_first) {
        uint64_t p = (uint64_t)((uint8_t *)addr - view->base) / view->page_size;

        is_write = xac_view_is_readable(view, &view->page[p]);
    }
    xac_fault_handle(view, addr, is_write);
    return 1;
}

/* search -- let the active dispatcher do it; true if the fault was in a view. */
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

/* pass_on -- the fault is not ours: do as if we were not here. */
XAC_SIGSAFE static void
pass_on(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = (ucontext_t *)context;
    const struct sigaction *previous = &taken[sig == SIGBUS].previous;
    sigset_t mask = uc->uc_sigmask;

    if ((previous->sa_flags & SA_SIGINFO) == 0
        && (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN)) {
        /* Back to the default; the fault comes again and ends the program. */
        struct sigaction dfl;

        memset(&dfl, 0, sizeof dfl);
        dfl.sa_handler = SIG_DFL;
        (void)sigaction(sig, &dfl, NULL);
        return;
    }
    (void)sigorset(&mask, &mask, &previous->sa_mask);
    (void)sigaddset(&mask, sig);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if ((previous->sa_flags & SA_SIGINFO) != 0)
        previous->sa_sigaction(sig, info, context);
    else
        previous->sa_handler(sig);
}

XAC_SIGSAFE static void
on_fault(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    bool is_real = sig == SIGBUS
                       ? info->si_code == BUS_ADRERR
                       : info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;
    bool is_ours;

    fault_access = access_of(context);
    xac_tsan_enter();
    is_ours = is_real && search(info->si_addr);
    if (is_real && !is_ours && sig == SIGSEGV)
        xac_fault_astray(info->si_addr, info->si_code == SEGV_MAPERR,
                         fault_access == ACCESS_WRITE);
    xac_tsan_leave();
    if (!is_ours)
        pass_on(sig, info, context);
    errno = saved_errno;
}

/* take_over -- become a signal's handler; ret 0 or errno. */
static int
take_over(struct taken *t)
{
    struct sigaction sa;

    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigfillset(&sa.sa_mask);
    if (sigaction(t->signal, &sa, &t->previous) != 0)
        return errno;
    t->is_ours = true;
    return 0;
}

int
xac_signal_start(bool with_sigbus)
{
    int rc;

    if (is_started)
        return 0;
    xac_areas_init(&areas[0]);
    xac_areas_init(&areas[1]);
    rc = take_over(&taken[0]);
    if (rc == 0 && with_sigbus)
        rc = take_over(&taken[1]);
    is_started = true;
    if (rc != 0)
        xac_signal_stop();
    return rc;
}

/* give_back -- unless somebody who came after us and may call us on is there. */
static void
give_back(struct taken *t)
{
    struct sigaction now;

    if (t->is_ours && sigaction(t->signal, NULL, &now) == 0
        && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault)
        (void)sigaction(t->signal, &t->previous, NULL);
    t->is_ours = false;
}

int
xac_signal_check_stack(void)
{
    size_t needed = (size_t)sysconf(_SC_MINSIGSTKSZ) + STACK_NEEDED;
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
    if (!is_started)
        return;
    give_back(&taken[0]);
    give_back(&taken[1]);
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

/* insert -- register a view in one dispatcher, where it lies now; false: no memory. */
static bool
insert(struct ticket *t, struct xac_view *view, int in)
{
    t->in[in] =
        xac_areas_insert(&areas[in], view->base, view->length, area_handler, view);
    return t->in[in] != NULL;
}

/* insert_both -- in both or in none; false: no memory.  `change` held. */
static bool
insert_both(struct ticket *t, struct xac_view *view)
{
    int idle = 1 - atomic_load_explicit(&active, memory_order_relaxed);

    if (!insert(t, view, idle))
        return false;
    if (insert(t, view, swap_roles()))
        return true;
    idle = swap_roles();
    xac_areas_remove(&areas[idle], t->in[idle]);
    return false;
}

int
xac_signal_attach(struct xac_view *view)
{
    struct ticket *t = (struct ticket *)calloc(1, sizeof *t);
    sigset_t signals;
    bool is_in;

    if (t == NULL)
        return ENOMEM;
    xac_signals_block(&signals); /* a handler may fork */
    (void)pthread_mutex_lock(&change);
    is_in = insert_both(t, view);
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    if (!is_in) {
        free(t);
        return ENOMEM;
    }
    view->engine = t;
    return 0;
}

void
xac_signal_detach(struct xac_view *view)
{
    struct ticket *t = (struct ticket *)view->engine;
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
    view->engine = NULL;
}

/* again -- the same for a view that has moved; there is memory: its own has become free. */
static void
again(struct xac_view *view, int in)
{
    struct ticket *t = (struct ticket *)view->engine;
    bool is_in;

    xac_areas_remove(&areas[in], t->in[in]);
    is_in = insert(t, view, in);
    xac_require(is_in);
}

void
xac_signal_moved(struct xac_view *view)
{
    (void)pthread_mutex_lock(&change);
    again(view, 1 - atomic_load_explicit(&active, memory_order_relaxed));
    again(view, swap_roles());
    (void)pthread_mutex_unlock(&change);
}
