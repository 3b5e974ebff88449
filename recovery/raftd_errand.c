/* SPDX-License-Identifier: MIT */
/*
 * raftd_errand.c -- see raftd_errand.h.
 */
#include <config.h>

#include "raftd_errand.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "log/group_note.h"
#include "raftd_ask.h"
#include "raftd_net.h"
#include "raftd_status.h"

#define NS_PER_S UINT64_C(1000000000)

/* How long a command is tried: leaders may change, another change may be under way. */
#define ERRAND_NS (30 * NS_PER_S)

/* Between two attempts. */
#define AGAIN_MS 50

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

/* What a thread of its own does. */
struct errand {
    struct raftd_call call;
    struct raftd_errands *e;
    struct raftd_question question;
    struct raftd_commander *who; /* NULL: nobody; this node wants to know              */
    uint32_t asked, leader;      /* which node; of a transfer: which one leads then    */
    int rc;
    bool is_removed; /* this node                                                      */
    char text[XAC_ERR_BYTES];
};

/* ---- Calls into the loop (1) ---------------------------------------------------------- */

/* put -- have the loop call it; ret false: it calls nothing any more. */
static bool
put(struct raftd_errands *e, struct raftd_call *c)
{
    bool is_over;

    c->next = NULL;
    (void)pthread_mutex_lock(&e->lock);
    is_over = e->is_over;
    if (!is_over) {
        *e->last = c;
        e->last = &c->next;
        (void)uv_async_send(&e->wake); /* with the lock: it is not closed before */
    }
    (void)pthread_mutex_unlock(&e->lock);
    return !is_over;
}

/* next_call -- NULL: none. */
static struct raftd_call *
next_call(struct raftd_errands *e)
{
    struct raftd_call *c;

    (void)pthread_mutex_lock(&e->lock);
    c = e->first;
    if (c != NULL)
        e->first = c->next;
    if (e->first == NULL)
        e->last = &e->first;
    (void)pthread_mutex_unlock(&e->lock);
    return c;
}

static void
serve_calls(uv_async_t *wake)
{
    struct raftd_errands *e = (struct raftd_errands *)wake->data;
    struct raftd_call *c;

    while ((c = next_call(e)) != NULL)
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

/* last_node -- the highest number that has been used, as far as this node knows. */
static uint64_t
last_node(struct raftd_errands *e)
{
    uint64_t last;

    (void)pthread_mutex_lock(&e->status->lock);
    last = e->status->last_node;
    (void)pthread_mutex_unlock(&e->status->lock);
    return last;
}

/* grant -- what the loop does for a wish. */
static void
grant(struct raftd_call *c)
{
    struct wish *w = (struct wish *)(void *)c;

    raftd_members_decide(w->e->members, &w->question, last_node(w->e), decided, w);
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
    if (!put(e, &w->call)) {
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

/* leader_after -- of a later term than this one, as far as Raft here knows; 0: none. */
static uint32_t
leader_after(struct raftd_errands *e, uint64_t term)
{
    uint32_t leader;

    (void)pthread_mutex_lock(&e->status->lock);
    leader = e->status->term > term ? e->status->leader : 0;
    (void)pthread_mutex_unlock(&e->status->lock);
    return leader;
}

/* leader_of -- whatever the term. */
static uint32_t
leader_of(struct raftd_errands *e)
{
    return leader_after(e, 0);
}

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

/* ask_leader -- wherever it is; 0: none is known. */
static uint32_t
ask_leader(struct raftd_errands *e, uint32_t leader, const struct raftd_question *q,
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
    leader = leader_of(e);
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
    struct errand *d = (struct errand *)(void *)c;

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
    struct errand *d = (struct errand *)arg;
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
    if (!put(d->e, &d->call))
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
    uint32_t leader = leader_of(e);
    struct errand *d;

    if (leader == e->group->node && is_empty(e))
        raftd_members_give_way(e->members); /* (4) */
    if (leader != 0) {
        e->alone_ns = 0;
        return;
    }
    if (e->alone_ns == 0)
        e->alone_ns = now;
    if (e->is_asking || now - e->alone_ns < ALONE_NS)
        return;
    e->alone_ns = now;
    d = (struct errand *)calloc(1, sizeof *d);
    if (d == NULL)
        return; /* again later */
    d->e = e;
    e->is_asking = raftd_net_thread(e->net, ask_all, d) == 0;
    if (!e->is_asking)
        free(d);
}

/* ---- Commands ------------------------------------------------------------------------- */

/* answer -- the one who has given the command; in the loop. */
static void
answer(struct raftd_call *c)
{
    struct errand *d = (struct errand *)(void *)c;

    raftd_socket_answer(d->who, d->rc, d->text);
    if (d->is_removed)
        d->e->members->is_removed = true;
    free(d);
}

/* refuse -- the words for what the node that leads has said. */
static int
refuse(const struct raftd_question *q, uint32_t status)
{
    switch (status) {
    case RAFTD_ASK_NO_NODE:
        return xac_err_whole(EINVAL, "there is no node %" PRIu32 "%s", q->node,
                             q->kind == RAFTD_ASK_TRANSFER ? " that counts" : "");
    case RAFTD_ASK_ALONE:
        return xac_err_whole(EINVAL, "no other node counts, so no other one can lead");
    case RAFTD_ASK_NOT_TAKEN:
        if (q->node != 0)
            return xac_err_whole(EBUSY,
                                 "node %" PRIu32 " has not begun to lead: it may be "
                                 "down, or have too little of the log",
                                 q->node);
        return xac_err_whole(EBUSY,
                             "no other node has begun to lead: they may be down, or have "
                             "too little of the log");
    case RAFTD_ASK_NEEDED:
        return xac_err_whole(EBUSY,
                             "without node %" PRIu32
                             " no majority of the group runs: start "
                             "or remove the nodes that are down first",
                             q->node);
    case RAFTD_ASK_UNCERTAIN:
        return xac_err_whole(XAC_EUNCERTAIN,
                             "it is not known whether it was done: see xraftd status");
    case RAFTD_ASK_NOT_NOW:
        return xac_err_whole(
            XAC_ENOTLEADER, "no node leads now that can be reached, or another change is "
                            "under way: try again later");
    case RAFTD_ASK_UNKNOWN:
        return xac_err_whole(ENOTSUP, "the node that leads has an older xraftd");
    default:
        return xac_err_whole(EIO, "the node that leads cannot do it");
    }
}

/* has_succeeded -- does the node lead that the user has named, or, if none, another one than the one that was asked? */
static bool
has_succeeded(const struct errand *d)
{
    return d->question.node != 0 ? d->leader == d->question.node
                                 : d->leader != 0 && d->leader != d->asked;
}

/* await_successor -- of the node that has led in this term; ret enum raftd_ask_status, d->leader: the node that leads then. */
static uint32_t
await_successor(struct errand *d, uint64_t term)
{
    uint64_t until_ns = xac_clock_ns() + ALONE_NS;

    /* This node may hear of the new term later than the one that has answered: until then it takes that one for the leader. */
    d->leader = leader_after(d->e, term);
    while (!has_succeeded(d) && xac_clock_ns() < until_ns
           && !raftd_net_is_stopping(d->e->net)) {
        (void)poll(NULL, 0, AGAIN_MS);
        d->leader = leader_after(d->e, term);
    }
    return has_succeeded(d) ? RAFTD_ASK_GOOD : RAFTD_ASK_NOT_TAKEN;
}

/* say -- what the user reads. */
static void
say(struct errand *d, uint32_t status, bool was_uncertain)
{
    const struct raftd_question *q = &d->question;

    if (status != RAFTD_ASK_GOOD) {
        d->rc = refuse(q, was_uncertain ? RAFTD_ASK_UNCERTAIN : status);
        (void)snprintf(d->text, sizeof d->text, "%s", xac_err_text());
    } else if (q->kind == RAFTD_ASK_TRANSFER) {
        (void)snprintf(d->text, sizeof d->text, "node %" PRIu32 " leads\n", d->leader);
    } else {
        (void)snprintf(d->text, sizeof d->text,
                       "node %" PRIu32 " %s; its xraftd ends when it hears of it\n",
                       q->node,
                       was_uncertain ? "is none of the group now" : "has been removed");
        d->is_removed = q->node == d->e->group->node;
    }
}

/* carry -- a command, to the node that leads, until it is done; in a thread of its own. */
static void
carry(void *arg)
{
    struct errand *d = (struct errand *)arg;
    struct raftd_errands *e = d->e;
    uint64_t until_ns = xac_clock_ns() + ERRAND_NS, value = 0;
    uint32_t status = RAFTD_ASK_NOT_NOW;
    bool was_uncertain = false;

    while ((status == RAFTD_ASK_NOT_NOW || status == RAFTD_ASK_UNCERTAIN)
           && xac_clock_ns() < until_ns && !raftd_net_is_stopping(e->net)) {
        d->asked = leader_of(e);
        status = ask_leader(e, d->asked, &d->question, until_ns, &value);
        was_uncertain = was_uncertain || status == RAFTD_ASK_UNCERTAIN;
        if (status == RAFTD_ASK_NO_NODE && d->question.kind == RAFTD_ASK_REMOVE
            && was_uncertain)
            status = RAFTD_ASK_GOOD;
        if (status == RAFTD_ASK_NOT_NOW || status == RAFTD_ASK_UNCERTAIN)
            (void)poll(NULL, 0, AGAIN_MS);
    }
    if (status == RAFTD_ASK_GOOD && d->question.kind == RAFTD_ASK_TRANSFER)
        status = await_successor(d, value);
    say(d, status, was_uncertain);
    d->call.run = answer;
    if (!put(e, &d->call))
        free(d); /* the socket is closed, too */
}

/* run -- a command in a thread (2). */
static void
run(struct raftd_errands *e, enum raftd_ask_kind kind, uint32_t node,
    struct raftd_commander *who)
{
    struct errand *d = (struct errand *)calloc(1, sizeof *d);
    int rc = d == NULL ? xac_err(ENOMEM, "Raft") : 0;

    if (rc == 0) {
        *d =
            (struct errand){.e = e, .question = {.kind = kind, .node = node}, .who = who};
        rc = raftd_net_thread(e->net, carry, d);
    }
    if (rc == 0)
        return;
    free(d);
    raftd_socket_answer(who, rc, xac_err_text());
}

static void
commanded(void *who, int rc, const char *text)
{
    raftd_socket_answer((struct raftd_commander *)who, rc, text);
}

void
raftd_errand_command(void *arg, char *line, struct raftd_commander *who)
{
    struct raftd_errands *e = (struct raftd_errands *)arg;
    uint32_t node;

    if (e->is_closing)
        raftd_socket_answer(who, ECANCELED, "the daemon ends");
    else if (sscanf(line, "remove %" SCNu32, &node) == 1)
        run(e, RAFTD_ASK_REMOVE, node, who);
    else if (sscanf(line, "transfer %" SCNu32, &node) == 1)
        run(e, RAFTD_ASK_TRANSFER, node, who);
    else
        raftd_members_command(e->members, line, last_node(e), commanded, who);
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
    e->last = &e->first;
    (void)uv_async_init(loop, &e->wake, serve_calls);
    e->wake.data = e;
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

    raftd_members_await(e->members); /* Raft has ended: nothing is waited for any more */
    (void)pthread_mutex_lock(&e->lock);
    e->is_over = true;
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_mutex_unlock(&e->lock);
    while ((c = next_call(e)) != NULL)
        c->run(c); /* its socket is open still */
    uv_close((uv_handle_t *)&e->wake, NULL);
}

void
raftd_errands_fini(struct raftd_errands *e)
{
    xac_assert(e->first == NULL);
    (void)pthread_cond_destroy(&e->changed);
    (void)pthread_mutex_destroy(&e->lock);
}
