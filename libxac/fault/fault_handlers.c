/* SPDX-License-Identifier: MIT */
/*
 * fault_handlers.c -- see fault_handlers.h.
 */
#include <config.h>

#include "fault/fault_handlers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* If there are more, the last one is used again, for the program's newest handler. */
#define LEVELS 4

/* A handler of the program; one for all places where it stands. */
struct link {
    struct sigaction action;
    const struct link *older;
};
static const struct link link_default; /* SIG_DFL is 0 */
static const struct link *links = &link_default;

/* Of each signal that faults come as. */
static struct taken {
    int signal;
    bool is_ours;
    int level; /* installed last; -1: all are given back   */
    const struct link
        *_Atomic next[LEVELS]; /* what is behind each; NULL: not used yet  */
} taken[] = {{.signal = SIGSEGV, .level = -1}, {.signal = SIGBUS, .level = -1}};

static _Atomic xac_fault_fn is_handled;

/* is_systems -- does the system handle the signal: by default, or by ignoring it? */
XAC_SIGSAFE static bool
is_systems(const struct sigaction *sa)
{
    return (sa->sa_flags & SA_SIGINFO) == 0
           && (sa->sa_handler == SIG_DFL || sa->sa_handler == SIG_IGN);
}

/* ---- A fault that is not ours ------------------------------------------------------------ */

/* by_default -- it is the system's: the fault comes again, and ends the program.  What comes from
   kill(2) does not come again, so it is sent again. */
XAC_SIGSAFE static void
by_default(int sig, const siginfo_t *info, const struct sigaction *next)
{
    bool is_sent = info->si_code <= 0;
    struct sigaction dfl;

    if (is_sent && next->sa_handler == SIG_IGN)
        return;
    memset(&dfl, 0, sizeof dfl);
    dfl.sa_handler = SIG_DFL;
    (void)sigaction(sig, &dfl, NULL);
    if (is_sent)
        (void)raise(sig); /* blocked until our handler returns */
}

/* pass_on -- do as if we were not here. */
XAC_SIGSAFE static void
pass_on(struct taken *t, int level, siginfo_t *info, void *context)
{
    /* Acquire: pairs with the release in put_in_front. */
    const struct link *link = atomic_load_explicit(&t->next[level], memory_order_acquire);
    const struct sigaction *next = &link->action;
    sigset_t mask = ((ucontext_t *)context)->uc_sigmask;

    if (is_systems(next)) {
        by_default(t->signal, info, next);
        return;
    }
    /* Acquire: pairs with the release in put_in_front, if somebody else was quicker. */
    if (((unsigned)next->sa_flags & SA_RESETHAND) != 0)
        (void)atomic_compare_exchange_strong_explicit(&t->next[level], &link,
                                                      &link_default, memory_order_acquire,
                                                      memory_order_acquire);
    (void)sigorset(&mask, &mask, &next->sa_mask);
    if ((next->sa_flags & SA_NODEFER) == 0)
        (void)sigaddset(&mask, t->signal);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if ((next->sa_flags & SA_SIGINFO) != 0)
        next->sa_sigaction(t->signal, info, context);
    else
        next->sa_handler(t->signal);
}

XAC_SIGSAFE static void
on_signal(int level, int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    /* Acquire: pairs with the release in xac_handlers_start. */
    xac_fault_fn fn = atomic_load_explicit(&is_handled, memory_order_acquire);
    bool is_ours;

    is_ours = fn(sig, info, context);
    errno = saved_errno;
    if (!is_ours)
        pass_on(&taken[sig == SIGBUS], level, info, context);
}

#define ENTRY(level)                                                            \
 XAC_SIGSAFE static void entry_##level(int sig, siginfo_t *info, void *context) \
 {                                                                              \
  on_signal(level, sig, info, context);                                         \
 }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
static void (*const entry[LEVELS])(int, siginfo_t *, void *) = {entry_0, entry_1, entry_2,
                                                                entry_3};

/* ---- Which handlers ---------------------------------------------------------------------- */

/* level_of -- which of ours a handler is; -1: it is the program's. */
static int
level_of(const struct sigaction *sa)
{
    int level = LEVELS - 1;

    if ((sa->sa_flags & SA_SIGINFO) == 0)
        return -1;
    while (level >= 0 && entry[level] != sa->sa_sigaction)
        level--;
    return level;
}

static bool
is_same(const struct sigaction *a, const struct sigaction *b)
{
    if (a->sa_flags != b->sa_flags
        || ((a->sa_flags & SA_SIGINFO) != 0 ? a->sa_sigaction != b->sa_sigaction
                                            : a->sa_handler != b->sa_handler))
        return false;
    for (int sig = 1; sig < NSIG; sig++) {
        if (sigismember(&a->sa_mask, sig) != sigismember(&b->sa_mask, sig))
            return false;
    }
    return true;
}

/* link_of -- the description of a handler, made if there is none; NULL: no memory. */
static const struct link *
link_of(const struct sigaction *sa)
{
    const struct link *link = links;
    struct link *made;

    while (link != NULL && !is_same(&link->action, sa))
        link = link->older;
    if (link != NULL)
        return link;
    made = (struct link *)malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    made->action = *sa;
    made->older = links;
    links = made;
    return made;
}

/* level_for -- the level to put in front of the program's handler. */
static int
level_for(const struct taken *t, const struct link *link)
{
    if (is_systems(&link->action))
        return 0; /* it calls nobody */
    /* Relaxed: nobody else stores it but for SA_RESETHAND. */
    if (t->level >= 0
        && atomic_load_explicit(&t->next[t->level], memory_order_relaxed) == link)
        return t->level;
    return t->level + 1 < LEVELS ? t->level + 1 : LEVELS - 1;
}

/* put_in_front -- put ours in front of what is installed for a signal; ret 0 or errno. */
static int
put_in_front(struct taken *t)
{
    struct sigaction sa, was;
    const struct link *link;
    int level;

    if (sigaction(t->signal, NULL, &was) != 0)
        return errno;
    level = level_of(&was);
    if (level < 0) {
        link = link_of(&was);
        if (link == NULL)
            return ENOMEM;
        level = level_for(t, link);
        /* Release: pairs with the acquire in pass_on. */
        atomic_store_explicit(&t->next[level], link, memory_order_release);
        memset(&sa, 0, sizeof sa);
        sa.sa_sigaction = entry[level];
        sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
        (void)sigfillset(&sa.sa_mask);
        if (sigaction(t->signal, &sa, NULL) != 0)
            return errno;
    }
    t->level = level;
    return 0;
}

int
xac_handlers_retake(void)
{
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        if (taken[i].is_ours)
            rc = put_in_front(&taken[i]);
    }
    return rc;
}

int
xac_handlers_start(bool with_sigbus, xac_fault_fn fn)
{
    int rc;

    /* Release: pairs with the acquire in on_signal. */
    atomic_store_explicit(&is_handled, fn, memory_order_release);
    taken[0].is_ours = true;
    taken[1].is_ours = with_sigbus;
    rc = xac_handlers_retake();
    if (rc != 0)
        xac_handlers_stop();
    return rc;
}

/* give_back -- unless somebody who came after us and may call us on is there. */
static void
give_back(struct taken *t)
{
    struct sigaction now;
    int level;

    if (t->is_ours && sigaction(t->signal, NULL, &now) == 0
        && (level = level_of(&now)) >= 0) {
        /* Acquire: pairs with the release in put_in_front. */
        const struct link *link =
            atomic_load_explicit(&t->next[level], memory_order_acquire);

        (void)sigaction(t->signal, &link->action, NULL);
        t->level = level - 1;
    }
    t->is_ours = false;
}

void
xac_handlers_stop(void)
{
    give_back(&taken[0]);
    give_back(&taken[1]);
}

bool
xac_handlers_hold(void)
{
    for (int i = 0; i < 2; i++) {
        struct sigaction now;

        if (taken[i].is_ours && sigaction(taken[i].signal, NULL, &now) == 0
            && level_of(&now) < 0)
            return false;
    }
    return true;
}
