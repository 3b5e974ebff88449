/* SPDX-License-Identifier: MIT */
/*
 * raftd_calls.c -- see raftd_calls.h.
 */
#include <config.h>

#include "raftd_calls.h"

#include <stddef.h>

#include "base/annot.h"

void
raftd_calls_init(struct raftd_calls *c, uv_loop_t *loop, uv_async_cb serve, void *arg)
{
    *c = (struct raftd_calls){.is_over = false};
    c->last = &c->first;
    (void)uv_async_init(loop, &c->wake, serve);
    c->wake.data = arg;
    (void)pthread_mutex_init(&c->lock, NULL);
}

bool
raftd_calls_put(struct raftd_calls *c, struct raftd_call *call)
{
    bool is_over;

    call->next = NULL;
    (void)pthread_mutex_lock(&c->lock);
    is_over = c->is_over;
    if (!is_over) {
        *c->last = call;
        c->last = &call->next;
        (void)uv_async_send(&c->wake); /* (1) */
    }
    (void)pthread_mutex_unlock(&c->lock);
    return !is_over;
}

struct raftd_call *
raftd_calls_take(struct raftd_calls *c)
{
    struct raftd_call *call;

    (void)pthread_mutex_lock(&c->lock);
    call = c->first;
    if (call != NULL)
        c->first = call->next;
    if (c->first == NULL)
        c->last = &c->first;
    (void)pthread_mutex_unlock(&c->lock);
    return call;
}

void
raftd_calls_end(struct raftd_calls *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->is_over = true;
    (void)pthread_mutex_unlock(&c->lock);
    uv_close((uv_handle_t *)&c->wake, NULL);
}

void
raftd_calls_fini(struct raftd_calls *c)
{
    xac_assert(c->first == NULL);
    (void)pthread_mutex_destroy(&c->lock);
}
