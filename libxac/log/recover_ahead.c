/* SPDX-License-Identifier: MIT */
/*
 * recover_ahead.c -- see recover_ahead.h.
 */
#include <config.h>

#include "log/recover_ahead.h"

#include <signal.h>

/* work -- the thread. */
static void *
work(void *arg)
{
    struct xac_ahead *a = (struct xac_ahead *)arg;

    (void)pthread_mutex_lock(&a->lock);
    while (a->state != XAC_AHEAD_STOP) {
        if (a->state != XAC_AHEAD_READING) {
            (void)pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&a->lock);
        a->rc = xac_rawfile_read(a->file, a->buf, a->n, a->offset, &a->got);
        (void)pthread_mutex_lock(&a->lock);
        a->state = XAC_AHEAD_DONE;
        (void)pthread_cond_signal(&a->changed);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* make -- the thread; signals are for the program's own threads. */
static bool
make(struct xac_ahead *a)
{
    sigset_t all, old;
    int rc;

    xac_assert(!a->is_made);
    if (pthread_mutex_init(&a->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&a->changed, NULL) != 0) {
        (void)pthread_mutex_destroy(&a->lock);
        return false;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    a->state = XAC_AHEAD_IDLE;
    rc = pthread_create(&a->thread, NULL, work, a);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        (void)pthread_cond_destroy(&a->changed);
        (void)pthread_mutex_destroy(&a->lock);
    }
    a->is_made = rc == 0;
    return a->is_made;
}

/* set -- the state, and tell the thread. */
static void
set(struct xac_ahead *a, enum xac_ahead_state state)
{
    xac_assert(a->is_made);
    (void)pthread_mutex_lock(&a->lock);
    a->state = state;
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
}

bool
xac_ahead_start(struct xac_ahead *a, struct xac_rawfile *file, void *buf, size_t n,
                uint64_t offset)
{
    xac_assert(n > 0);
    xac_assert(buf != NULL);
    if (!a->is_made && !make(a))
        return false;
    a->file = file;
    a->buf = buf;
    a->n = n;
    a->offset = offset;
    xac_assert(a->state == XAC_AHEAD_IDLE);
    set(a, XAC_AHEAD_READING);
    return true;
}

int
xac_ahead_wait(struct xac_ahead *a, size_t *gotp)
{
    int cancel; /* a recovery goes on to its end, which gives locks back */

    xac_assert(a->is_made);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    (void)pthread_mutex_lock(&a->lock);
    while (a->state != XAC_AHEAD_DONE)
        (void)pthread_cond_wait(&a->changed, &a->lock);
    a->state = XAC_AHEAD_IDLE;
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_setcancelstate(cancel, NULL);
    *gotp = a->got;
    xac_assert(a->got <= a->n);
    return a->rc;
}

void
xac_ahead_stop(struct xac_ahead *a)
{
    int cancel;

    if (!a->is_made)
        return;
    set(a, XAC_AHEAD_STOP);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
    (void)pthread_join(a->thread, NULL);
    (void)pthread_setcancelstate(cancel, NULL);
    (void)pthread_cond_destroy(&a->changed);
    (void)pthread_mutex_destroy(&a->lock);
    a->is_made = false;
    xac_assert(!a->is_made);
}
