/* SPDX-License-Identifier: MIT */
/*
 * raftd_transport.c -- see raftd_transport.h.
 */
#include <config.h>

#include "raftd_transport.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "raftd_message.h"
#include "ship_relay.h"

/* An attempt to connect may take so long: then libraft makes the next one. */
#define CONNECT_NS UINT64_C(5000000000)

struct raftd_arrival {
    struct raftd_arrival *next;       /* of those for the loop                        */
    struct raftd_arrival *next_asked; /* of those that libraft waits for               */
    struct raftd_transport *t;
    struct raft_uv_connect *req; /* NULL: the other node has called                    */
    raft_uv_connect_cb cb;
    int fd; /* libraft's end; -1: it has failed                                        */
    uint32_t node;
    char address[RAFTD_ADDRESS_BYTES];
};

/* A connection while bytes go through it. */
struct carried {
    struct ship_relay relay;
    struct raftd_messages messages;
};

/* ---- In the threads of the net ------------------------------------------------------ */

/* arrive -- the loop has something to do; if it does nothing any more the stream is closed. */
static void
arrive(struct raftd_transport *t, struct raftd_arrival *a)
{
    bool is_closed;

    (void)pthread_mutex_lock(&t->lock);
    is_closed = t->is_closed;
    if (!is_closed) {
        a->next = NULL;
        *t->last = a;
        t->last = &a->next;
        (void)uv_async_send(&t->wake); /* with the lock: it is not closed before */
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (!is_closed)
        return;
    if (a->fd >= 0)
        (void)close(a->fd);
    if (a->req == NULL)
        free(a); /* else the transport still has it */
}

static bool
check(void *arg, const uint8_t *bytes, size_t n)
{
    return raftd_messages_check((struct raftd_messages *)arg, bytes, n);
}

/* carry -- until libraft or the other node closes; `a` is the loop's from here on. */
static void
carry(struct raftd_transport *t, struct raftd_line *line, struct raftd_arrival *a)
{
    struct carried *c = (struct carried *)malloc(sizeof *c);

    a->fd = -1;
    if (c == NULL || ship_relay_open(&c->relay, &line->c) != 0) {
        free(c);
        arrive(t, a);
        return;
    }
    raftd_messages_init(&c->messages);
    c->relay.check = check; /* (3) */
    c->relay.check_arg = &c->messages;
    a->fd = c->relay.end;
    arrive(t, a);
    ship_relay_carry(&c->relay);
    if (c->messages.is_wrong)
        fprintf(stderr, "xraftd: node %u: %s\n", line->node, c->relay.why);
    free(c);
}

/* called -- another node has, and has proven itself. */
static void
called(void *arg, struct raftd_line *line)
{
    struct raftd_transport *t = (struct raftd_transport *)arg;
    struct raftd_arrival *a = (struct raftd_arrival *)calloc(1, sizeof *a);

    if (a == NULL)
        return;
    a->t = t;
    a->node = line->node;
    memcpy(a->address, line->address, sizeof a->address);
    carry(t, line, a);
}

/* call -- another node, for libraft. */
static void
call(void *arg)
{
    struct raftd_arrival *a = (struct raftd_arrival *)arg;
    struct raftd_transport *t = a->t;
    struct raftd_line *line;
    int rc = raftd_net_call_at(t->net, a->node, a->address, RAFTD_WANT_RAFT,
                               xac_clock_ns() + CONNECT_NS, &line);

    if (rc != 0) {
        a->fd = -1;
        arrive(t, a);
        return;
    }
    carry(t, line, a);
    raftd_net_hang_up(line);
}

/* ---- In the loop -------------------------------------------------------------------- */

static void
free_stream(uv_handle_t *handle)
{
    raft_free(handle);
}

/* stream_of -- a descriptor; NULL: it is closed. */
static struct uv_stream_s *
stream_of(const struct raftd_transport *t, int fd)
{
    uv_pipe_t *pipe;

    if (fd < 0)
        return NULL;
    pipe = (uv_pipe_t *)raft_malloc(sizeof *pipe);
    if (pipe == NULL || uv_pipe_init(t->loop, pipe, 0) != 0) {
        raft_free(pipe);
        (void)close(fd);
        return NULL;
    }
    if (uv_pipe_open(pipe, fd) == 0)
        return (struct uv_stream_s *)pipe;
    (void)close(fd);
    uv_close((uv_handle_t *)pipe, free_stream);
    return NULL;
}

/* forget -- libraft waits for it no more. */
static void
forget(struct raftd_transport *t, const struct raftd_arrival *a)
{
    struct raftd_arrival **at = &t->asked;

    while (*at != a)
        at = &(*at)->next_asked;
    *at = a->next_asked;
}

/* welcome -- a stream, or its failure. */
static void
welcome(struct raftd_transport *t, struct raftd_arrival *a)
{
    struct uv_stream_s *stream = stream_of(t, a->fd);

    if (a->req != NULL) {
        forget(t, a);
        a->cb(a->req, stream, stream != NULL ? 0 : RAFT_NOCONNECTION);
    } else if (stream != NULL) {
        t->accept(t->uv, a->node, a->address, stream);
    }
    free(a);
}

/* next_arrival -- NULL: none. */
static struct raftd_arrival *
next_arrival(struct raftd_transport *t)
{
    struct raftd_arrival *a;

    (void)pthread_mutex_lock(&t->lock);
    a = t->first;
    if (a != NULL)
        t->first = a->next;
    if (t->first == NULL)
        t->last = &t->first;
    (void)pthread_mutex_unlock(&t->lock);
    return a;
}

static void
serve(uv_async_t *wake)
{
    struct raftd_transport *t = (struct raftd_transport *)wake->data;
    struct raftd_arrival *a;

    while ((a = next_arrival(t)) != NULL)
        welcome(t, a);
}

/* ---- What libraft calls ------------------------------------------------------------- */

static int
init(struct raft_uv_transport *uv, raft_id id, const char *address)
{
    (void)uv;
    (void)id;
    (void)address; /* the group has them */
    return 0;
}

static int
listen_for(struct raft_uv_transport *uv, raft_uv_accept_cb cb)
{
    struct raftd_transport *t = (struct raftd_transport *)uv->impl;

    xac_assert(t->net != NULL);
    t->accept = cb;
    raftd_net_serve(t->net, RAFTD_WANT_RAFT, called, t);
    if (raftd_net_start(t->net) == 0)
        return 0;
    (void)snprintf(uv->errmsg, sizeof uv->errmsg, "%s", xac_err_text());
    return RAFT_IOERR;
}

static int
connect_to(struct raft_uv_transport *uv, struct raft_uv_connect *req, raft_id id,
           const char *address, raft_uv_connect_cb cb)
{
    struct raftd_transport *t = (struct raftd_transport *)uv->impl;
    struct raftd_arrival *a = (struct raftd_arrival *)calloc(1, sizeof *a);

    if (a == NULL)
        return RAFT_NOMEM;
    a->t = t;
    a->req = req;
    a->cb = cb;
    a->node = (uint32_t)id;
    (void)snprintf(a->address, sizeof a->address, "%s", address);
    a->next_asked = t->asked;
    t->asked = a;
    if (raftd_net_thread(t->net, call, a) == 0) /* (1) */
        return 0;
    forget(t, a);
    free(a);
    return RAFT_NOCONNECTION;
}

/* tell_closed -- the loop's handle is closed: so are all attempts (2). */
static void
tell_closed(uv_handle_t *wake)
{
    struct raftd_transport *t = (struct raftd_transport *)wake->data;
    struct raftd_arrival *a;

    while ((a = next_arrival(t)) != NULL) {
        if (a->fd >= 0)
            (void)close(a->fd);
        if (a->req != NULL) {
            forget(t, a);
            a->cb(a->req, NULL, RAFT_CANCELED);
        }
        free(a);
    }
    /* Threads still have these: raftd_transport_fini() frees them. */
    for (a = t->asked; a != NULL; a = a->next_asked)
        a->cb(a->req, NULL, RAFT_CANCELED);
    t->closed(t->uv);
}

static void
close_all(struct raft_uv_transport *uv, raft_uv_transport_close_cb cb)
{
    struct raftd_transport *t = (struct raftd_transport *)uv->impl;

    (void)pthread_mutex_lock(&t->lock);
    t->is_closed = true;
    (void)pthread_mutex_unlock(&t->lock);
    t->closed = cb;
    uv_close((uv_handle_t *)&t->wake, tell_closed);
}

/* ---- Life --------------------------------------------------------------------------- */

int
raftd_transport_init(struct raftd_transport *t, struct raft_uv_transport *uv,
                     uv_loop_t *loop, struct raftd_net *net)
{
    *t = (struct raftd_transport){.net = net, .uv = uv, .loop = loop};
    t->last = &t->first;
    *uv = (struct raft_uv_transport){.version = 1,
                                     .impl = t,
                                     .init = init,
                                     .listen = listen_for,
                                     .connect = connect_to,
                                     .close = close_all};
    if (uv_async_init(loop, &t->wake, serve) != 0)
        return xac_err(ENOMEM, "Raft's connections");
    t->wake.data = t;
    (void)pthread_mutex_init(&t->lock, NULL);
    return 0;
}

void
raftd_transport_fini(struct raftd_transport *t)
{
    xac_assert(t->first == NULL);
    while (t->asked != NULL) {
        struct raftd_arrival *a = t->asked;

        t->asked = a->next_asked;
        free(a);
    }
    (void)pthread_mutex_destroy(&t->lock);
}
