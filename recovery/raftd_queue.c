/* SPDX-License-Identifier: MIT */
/*
 * raftd_queue.c -- see raftd_queue.h.
 */
#include <config.h>

#include "raftd_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

void
raftd_queue_init(struct raftd_queue *q)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_cond_init(&q->filled, &attr);
    (void)pthread_condattr_destroy(&attr);
    q->first = NULL;
    q->last = &q->first;
    q->has_behind = false;
}

void
raftd_queue_fini(struct raftd_queue *q)
{
    while (q->first != NULL) {
        struct raftd_item *item = q->first;

        q->first = item->next;
        free(item);
    }
    q->last = &q->first;
    (void)pthread_cond_destroy(&q->filled);
    (void)pthread_mutex_destroy(&q->lock);
}

int
raftd_queue_put(struct raftd_queue *q, const struct raftd_item *item, const void *bytes,
                size_t n)
{
    struct raftd_item *copy = (struct raftd_item *)malloc(sizeof *copy + n);

    if (copy == NULL)
        return ENOMEM;
    *copy = *item;
    copy->next = NULL;
    copy->n = n;
    if (n > 0)
        memcpy(copy->bytes, bytes, n);
    (void)pthread_mutex_lock(&q->lock);
    if (item->kind == RAFTD_ITEM_BEHIND && q->has_behind) { /* (2) */
        free(copy);
    } else {
        q->has_behind = q->has_behind || item->kind == RAFTD_ITEM_BEHIND;
        *q->last = copy;
        q->last = &copy->next;
        (void)pthread_cond_signal(&q->filled);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return 0;
}

/* until -- the time in so many milliseconds. */
static struct timespec
until(unsigned timeout_ms)
{
    struct timespec t;
    uint64_t ns;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    ns = (uint64_t)t.tv_nsec + timeout_ms * NS_PER_MS;
    t.tv_sec += (time_t)(ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    return t;
}

struct raftd_item *
raftd_queue_take(struct raftd_queue *q, unsigned timeout_ms)
{
    struct timespec end = until(timeout_ms);
    struct raftd_item *item;

    (void)pthread_mutex_lock(&q->lock);
    while (q->first == NULL && timeout_ms > 0
           && pthread_cond_timedwait(&q->filled, &q->lock, &end) == 0)
        continue;
    item = q->first;
    if (item != NULL) {
        q->first = item->next;
        if (q->first == NULL)
            q->last = &q->first;
        if (item->kind == RAFTD_ITEM_BEHIND)
            q->has_behind = false;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return item;
}
