/* SPDX-License-Identifier: MIT */
/*
 * raftd_errand.c -- see raftd_errand.h.
 */
#include <config.h>

#include "raftd_errand.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/annot.h"
#include "base/clock.h"
#include "log/group_note.h"
#include "raftd_ask.h"
#include "raftd_decide.h"
#include "raftd_handover.h"
#include "raftd_net.h"
#include "raftd_status.h"

#define NS_PER_S UINT64_C(1000000000)

/* How long to wait for a line, and for an answer on it. */
#define CALL_NS   (1 * NS_PER_S)
#define ANSWER_NS (5 * NS_PER_S)

/* How long no node has led before it is asked whether this one has been removed, and how long until it is asked again: longer than
   an election takes. */
#define ALONE_NS (3 * NS_PER_S)

/* A question that a thread has handed to the loop, and waits for.  It is freed by the loop if the thread waits no more. */
struct wish {
    struct raftd_call call;
    struct raftd_errands *e;
    struct raftd_question question;
    bool is_done, is_left; /* the errands' lock                                        */
    uint32_t status;
    uint64_t value;
};

/* A thread asks whether this node has been removed. */
struct inquiry {
    struct raftd_call call;
    struct raftd_errands *e;
    bool is_removed;
};

static void
serve_calls(uv_async_t *wake)
{
    struct raftd_errands *e = (struct raftd_errands *)wake->data;
    struct raftd_call *c;

    while ((c = raftd_calls_take(&e->calls)) != NULL)
        c->run(c);
}

/* ---- Deciding here -------------------------------------------------------------------- */

/* decided -- in the loop; the thread that waits takes it. */
static void
decided(void *arg, uint32_t status, uint64_t value)
{
    struct wish *w = (struct wish *)arg;
    struct raftd_errands *e = w->e;
    bool is_left;

    (void)pthread_mutex_lock(&e->lock);
    w->status = status;
    w->value = value;
    w->is_done = true;
    is_left = w->is_left;
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_mutex_unlock(&e->lock);
    if (is_left)
        free(w);
}

/* grant -- what the loop does for a wish. */
static void
grant(struct raftd_call *c)
{
    struct wish *w = (struct wish *)(void *)c;

    raftd_decide_question(w->e->members, &w->question,
                          raftd_status_last_node(w->e->status), decided, w);
}

/* decide -- have the loop answer, if this node leads; ret enum raftd_ask_status. */
static uint32_t
decide(struct raftd_errands *e, const struct raftd_question *q, uint64_t until_ns,
       uint64_t *value)
{
    struct timespec end = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                           .tv_nsec = (long)(until_ns % NS_PER_S)};
    struct wish *w = (struct wish *)calloc(1, sizeof *w);
    uint32_t status = RAFTD_ASK_UNCERTAIN;
    bool is_done;
    int rc = 0;

    if (w == NULL)
        return RAFTD_ASK_NOT_NOW;
    *w = (struct wish){.call = {.run = grant}, .e = e, .question = *q};
    if (!raftd_calls_put(&e->calls, &w->call)) {
        free(w);
        return RAFTD_ASK_NOT_NOW;
    }
    (void)pthread_mutex_lock(&e->lock);
    while (!w->is_done && !e->is_over && rc == 0)
        rc = pthread_cond_timedwait(&e->changed, &e->lock, &end);
    is_done = w->is_done;
    w->is_left = true;
    (void)pthread_mutex_unlock(&e->lock);
    if (is_done) {
        status = w->status;
        *value = w->value;
        free(w);
    }
    return status;
}

/* ---- Asking there --------------------------------------------------------------------- */

/* ask_node -- another node; one that cannot be reached is like one that does not lead. */
static uint32_t
ask_node(struct raftd_errands *e, uint32_t node, struct xac_raftd_ask ask,
         uint64_t until_ns, uint64_t *value)
{
    uint64_t call_ns = xac_clock_ns() + CALL_NS;
    struct raftd_line *line = NULL;
    struct xac_raftd_ask answer = {.status = RAFTD_ASK_NOT_NOW};
    int rc = raftd_net_call(e->net, node, RAFTD_WANT_ASK,
                            call_ns < until_ns ? call_ns : until_ns, &line);

    if (rc != 0)
        return RAFTD_ASK_NOT_NOW;
    rc = raftd_ask(line, &ask, &answer, until_ns);
    raftd_net_hang_up(line);
    *value = answer.value[0];
    return rc == 0 ? answer.status : RAFTD_ASK_UNCERTAIN;
}

uint32_t
raftd_errand_ask(struct raftd_errands *e, uint32_t leader, const struct raftd_question *q,
                 uint64_t until_ns, uint64_t *value)
{
    if (leader == 0)
        return RAFTD_ASK_NOT_NOW;
    if (leader == e->group->node)
        return decide(e, q, until_ns, value);
    return ask_node(e, leader,
                    (struct xac_raftd_ask){.kind = (uint32_t)q->kind, .value = {q->node}},
                    until_ns, value);
}

uint32_t
raftd_errand_serve(struct raftd_errands *e, uint32_t from,
                   const struct xac_raftd_ask *ask, uint64_t until_ns, uint64_t *value)
{
    struct raftd_question q = {.kind = (enum raftd_ask_kind)ask->kind,
                               .from = from,
                               .node = (uint32_t)ask->value[0]};
    uint32_t leader, status;

    if (ask->value[0] > XAC_GROUP_NODE_MAX)
        return RAFTD_ASK_UNKNOWN;
    status = decide(e, &q, until_ns, value);
    if (status != RAFTD_ASK_NOT_NOW || q.kind != RAFTD_ASK_MEMBER || ask->value[1] != 0)
        return status;
    leader = raftd_status_leader(e->status, 0);
    return leader == 0 || leader == e->group->node || leader == from
               ? status
               : ask_node(e, leader,
                          (struct xac_raftd_ask){.kind = RAFTD_ASK_MEMBER,
                                                 .value = {q.node, 1}}, /* (3) */
                          until_ns, value);
}

/* ---- Has this node been removed? ------------------------------------------------------ */

/* heard -- in the loop. */
static void
heard(struct raftd_call *c)
{
    struct inquiry *d = (struct inquiry *)(void *)c;

    if (d->is_removed)
        d->e->members->is_removed = true;
    d->e->is_asking = false;
    d->e->alone_ns = xac_clock_ns();
    free(d);
}

/* ask_all -- one node after the other, until one says it; in a thread of its own. */
static void
ask_all(void *arg)
{
    struct inquiry *d = (struct inquiry *)arg;
    struct raftd_member member[RAFTD_MEMBERS_MAX];
    unsigned n = raftd_group_members(d->e->group, member);
    uint32_t status = RAFTD_ASK_NOT_NOW;
    uint64_t value = 1;

    for (unsigned i = 0; status != RAFTD_ASK_GOOD && i < n; i++) {
        struct xac_raftd_ask ask = {.kind = RAFTD_ASK_MEMBER,
                                    .value = {d->e->group->node}};

        if (member[i].node != d->e->group->node)
            status =
                ask_node(d->e, member[i].node, ask, xac_clock_ns() + ANSWER_NS, &value);
    }
    d->is_removed = status == RAFTD_ASK_GOOD && value == 0;
    d->call.run = heard;
    if (!raftd_calls_put(&d->e->calls, &d->call))
        free(d);
}

/* is_empty -- has this node no environment yet? */
static bool
is_empty(struct raftd_errands *e)
{
    bool is;

    (void)pthread_mutex_lock(&e->status->lock);
    is = strcmp(e->status->state, "empty") == 0;
    (void)pthread_mutex_unlock(&e->status->lock);
    return is;
}

void
raftd_errand_look(struct raftd_errands *e)
{
    uint64_t now = xac_clock_ns();
    uint32_t leader = raftd_status_leader(e->status, 0);
    struct inquiry *d;

    if (leader == e->group->node && is_empty(e))
        raftd_handover_give_way(e->members); /* (4) */
    if (leader != 0) {
        e->alone_ns = 0;
        return;
    }
    if (e->alone_ns == 0)
        e->alone_ns = now;
    if (e->is_asking || now - e->alone_ns < ALONE_NS)
        return;
    e->alone_ns = now;
    d = (struct inquiry *)calloc(1, sizeof *d);
    if (d == NULL)
        return; /* again later */
    d->e = e;
    e->is_asking = raftd_net_thread(e->net, ask_all, d) == 0;
    if (!e->is_asking)
        free(d);
}

/* ---- Life ----------------------------------------------------------------------------- */

void
raftd_errands_init(struct raftd_errands *e, uv_loop_t *loop, struct raftd_net *net,
                   struct raftd_group *group, struct raftd_status *status,
                   struct raftd_members *members)
{
    pthread_condattr_t attr;

    *e = (struct raftd_errands){.net = net,
                                .group = group,
                                .status = status,
                                .members = members};
    raftd_calls_init(&e->calls, loop, serve_calls, e);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_cond_init(&e->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void
raftd_errands_end(struct raftd_errands *e)
{
    struct raftd_call *c;

    raftd_handover_await(e->members); /* Raft has ended: nothing is waited for any more */
    (void)pthread_mutex_lock(&e->lock);
    e->is_over = true;
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_mutex_unlock(&e->lock);
    raftd_calls_end(&e->calls);
    while ((c = raftd_calls_take(&e->calls)) != NULL)
        c->run(c); /* its socket is open still */
}

void
raftd_errands_fini(struct raftd_errands *e)
{
    raftd_calls_fini(&e->calls);
    (void)pthread_cond_destroy(&e->changed);
    (void)pthread_mutex_destroy(&e->lock);
}
