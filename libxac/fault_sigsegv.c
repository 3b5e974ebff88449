/* SPDX-License-Identifier: MIT */
/*
 * fault_sigsegv.c -- the portable engine (Thesis 3.1): mprotect, and a SIGSEGV handler
 * that finds the view through libsigsegv's dispatcher.
 *
 * The fault's error code in the signal context tells a write from a read, so that a first
 * write is one trap, not two as in the Thesis.  Where a machine does not say, an access is
 * taken for a read, and the second trap on a readable page for a write.
 *
 * The dispatcher's tree is not made for being changed while another thread searches it.
 * So there are two: searches use the active one; a change is made to the idle one, the
 * roles are swapped, and when the last search that might still be in the old one has
 * left, the change is made there too.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <sigsegv.h>

#include "fault.h"
#include "lock.h"
#include "sys.h"
#include "view.h"

static sigsegv_dispatcher trees[2];
static _Atomic int active;       /* tree that searches use                         */
static _Atomic int searching[2]; /* searches under way in each                     */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

static struct sigaction previous; /* handler before ours                            */
static bool is_started;

/* Of the fault being handled by this thread.  Initial-exec: no allocation at first use. */
enum {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_UNKNOWN
};
static _Thread_local int fault_access __attribute__((tls_model("initial-exec")));

/* A view's registrations in both trees. */
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

/* area_handler -- libsigsegv found the fault inside a view. */
XAC_SIGSAFE static int
area_handler(void *addr, void *arg)
{
    struct xac_view *view = (struct xac_view *)arg;
    bool is_write = fault_access == ACCESS_WRITE;

    if (fault_access == ACCESS_UNKNOWN) {
        uint64_t p = (uint64_t)((uint8_t *)addr - view->base) / view->page_size;

        is_write = view->page[p].state == XAC_PAGE_READABLE || view->is_solo;
    }
    xac_fault_handle(view, addr, is_write);
    return 1;
}

/* search -- let the active tree dispatch; true if the fault was in a view. */
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
        found = sigsegv_dispatch(&trees[t], addr) != 0;
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
    sigset_t mask = uc->uc_sigmask;

    if ((previous.sa_flags & SA_SIGINFO) == 0
        && (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
        /* Back to the default; the fault comes again and ends the program. */
        struct sigaction dfl;

        memset(&dfl, 0, sizeof dfl);
        dfl.sa_handler = SIG_DFL;
        (void)sigaction(sig, &dfl, NULL);
        return;
    }
    (void)sigorset(&mask, &mask, &previous.sa_mask);
    (void)sigaddset(&mask, sig);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(sig, info, context);
    else
        previous.sa_handler(sig);
}

XAC_SIGSAFE static void
on_sigsegv(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    bool is_real = info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;

    fault_access = access_of(context);
    if (!is_real || !search(info->si_addr))
        pass_on(sig, info, context);
    errno = saved_errno;
}

static int
start(void)
{
    struct sigaction sa;

    if (is_started)
        return 0;
    sigsegv_init(&trees[0]);
    sigsegv_init(&trees[1]);
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_sigsegv;
    sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigfillset(&sa.sa_mask);
    if (sigaction(SIGSEGV, &sa, &previous) != 0)
        return errno;
    is_started = true;
    return 0;
}

static void
stop(void)
{
    struct sigaction now;

    if (!is_started)
        return;
    /* Somebody who came after us and may call us on stays where he is. */
    if (sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0
        && now.sa_sigaction == on_sigsegv)
        (void)sigaction(SIGSEGV, &previous, NULL);
    is_started = false;
}

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&change);
}

static void
fork_done(void)
{
    (void)pthread_mutex_unlock(&change);
}

static void
forked(void)
{
    atomic_store_explicit(&searching[0], 0, memory_order_relaxed);
    atomic_store_explicit(&searching[1], 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&change);
}

/* swap_roles -- searches use the other tree; returns when the old one has none left. */
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

static int
attach(struct xac_view *view)
{
    struct ticket *t = (struct ticket *)calloc(1, sizeof *t);
    sigset_t signals;
    int idle;

    if (t == NULL)
        return ENOMEM;
    xac_signals_block(&signals); /* a handler may fork */
    (void)pthread_mutex_lock(&change);
    idle = 1 - atomic_load_explicit(&active, memory_order_relaxed);
    t->in[idle] =
        sigsegv_register(&trees[idle], view->base, view->length, area_handler, view);
    idle = swap_roles();
    t->in[idle] =
        sigsegv_register(&trees[idle], view->base, view->length, area_handler, view);
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    view->engine = t;
    return 0;
}

static void
detach(struct xac_view *view)
{
    struct ticket *t = (struct ticket *)view->engine;
    sigset_t signals;
    int idle;

    if (t == NULL)
        return;
    xac_signals_block(&signals);
    (void)pthread_mutex_lock(&change);
    idle = 1 - atomic_load_explicit(&active, memory_order_relaxed);
    sigsegv_unregister(&trees[idle], t->in[idle]);
    idle = swap_roles();
    sigsegv_unregister(&trees[idle], t->in[idle]);
    (void)pthread_mutex_unlock(&change);
    xac_signals_restore(&signals);
    free(t);
    view->engine = NULL;
}

/* again -- register a view in one tree where it lies now. */
static void
again(struct xac_view *view, int tree)
{
    struct ticket *t = (struct ticket *)view->engine;

    sigsegv_unregister(&trees[tree], t->in[tree]);
    t->in[tree] =
        sigsegv_register(&trees[tree], view->base, view->length, area_handler, view);
}

static void
moved(struct xac_view *view)
{
    (void)pthread_mutex_lock(&change);
    again(view, 1 - atomic_load_explicit(&active, memory_order_relaxed));
    again(view, swap_roles());
    (void)pthread_mutex_unlock(&change);
}

XAC_SIGSAFE static int
protect(struct xac_view *view, uint64_t first, uint64_t n, enum xac_protection prot)
{
    static const int flags[] = {PROT_NONE, PROT_READ,
                                PROT_READ | PROT_WRITE}; /* by enum xac_protection */

    return xac_sys.mprotect(view->base + first * view->page_size, n * view->page_size,
                            flags[prot])
                   == 0
               ? 0
               : errno;
}

XAC_SIGSAFE static int
discard(struct xac_view *view, uint64_t first, uint64_t n)
{
    return xac_sys.madvise(view->base + first * view->page_size, n * view->page_size,
                           MADV_DONTNEED)
                   == 0
               ? 0
               : errno;
}

/* is_private -- /proc/self/pagemap: present or swapped, and not a page of the file. */
static bool
is_private(const struct xac_view *view, uint64_t page_no)
{
    uint64_t at = (uint64_t)(uintptr_t)(view->base + page_no * view->page_size);
    uint64_t bits;
    size_t got;

    if (view->pagemap < 0
        || xac_read_full(view->pagemap, &bits, sizeof bits, at / view->page_size * 8,
                         &got)
               != 0
        || got != sizeof bits)
        return true;
    return (bits >> 62) != 0 && (bits >> 61 & 1) == 0;
}

const struct xac_engine xac_engine_sigsegv = {
    .name = "sigsegv",
    .attach = attach,
    .detach = detach,
    .moved = moved,
    .protect = protect,
    .discard = discard,
    .is_private = is_private,
    .start = start,
    .stop = stop,
    .fork = before_fork,
    .fork_done = fork_done,
    .forked = forked,
};
