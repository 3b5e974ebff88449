/* SPDX-License-Identifier: MIT */
/*
 * raftd_command.c -- see raftd_command.h.
 */
#include <config.h>

#include "raftd_command.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "raftd_decide.h"
#include "raftd_errand.h"
#include "raftd_net.h"
#include "raftd_socket.h"
#include "raftd_status.h"

#define NS_PER_S UINT64_C(1000000000)

/* How long a command is tried: leaders may change, another change may be under way. */
#define COMMAND_NS (30 * NS_PER_S)

/* How long to wait until this node has heard, too, that another one leads. */
#define SUCCESSOR_NS (3 * NS_PER_S)

/* Between two attempts. */
#define AGAIN_MS 50

/* A command that a thread of its own carries. */
struct command {
    struct raftd_call call;
    struct raftd_errands *e;
    struct raftd_question question;
    struct raftd_commander *who;
    uint32_t asked, leader; /* which node; of a transfer: which one leads then         */
    int rc;
    bool is_removed; /* this node                                                      */
    char text[XAC_ERR_BYTES];
};

/* answer -- the one who has given the command; in the loop. */
static void
answer(struct raftd_call *c)
{
    struct command *d = (struct command *)(void *)c;

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
has_succeeded(const struct command *d)
{
    return d->question.node != 0 ? d->leader == d->question.node
                                 : d->leader != 0 && d->leader != d->asked;
}

/* await_successor -- of the node that has led in this term; ret enum raftd_ask_status, d->leader: the node that leads then. */
static uint32_t
await_successor(struct command *d, uint64_t term)
{
    uint64_t until_ns = xac_clock_ns() + SUCCESSOR_NS;

    /* This node may hear of the new term later than the one that has answered: until then it takes that one for the leader. */
    d->leader = raftd_status_leader(d->e->status, term);
    while (!has_succeeded(d) && xac_clock_ns() < until_ns
           && !raftd_net_is_stopping(d->e->net)) {
        (void)poll(NULL, 0, AGAIN_MS);
        d->leader = raftd_status_leader(d->e->status, term);
    }
    return has_succeeded(d) ? RAFTD_ASK_GOOD : RAFTD_ASK_NOT_TAKEN;
}

/* say -- what the user reads. */
static void
say(struct command *d, uint32_t status, bool was_uncertain)
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
    struct command *d = (struct command *)arg;
    struct raftd_errands *e = d->e;
    uint64_t until_ns = xac_clock_ns() + COMMAND_NS, value = 0;
    uint32_t status = RAFTD_ASK_NOT_NOW;
    bool was_uncertain = false;

    while ((status == RAFTD_ASK_NOT_NOW || status == RAFTD_ASK_UNCERTAIN)
           && xac_clock_ns() < until_ns && !raftd_net_is_stopping(e->net)) {
        d->asked = raftd_status_leader(e->status, 0);
        status = raftd_errand_ask(e, d->asked, &d->question, until_ns, &value);
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
    if (!raftd_calls_put(&e->calls, &d->call))
        free(d); /* the socket is closed, too */
}

/* run -- a command in a thread (2). */
static void
run(struct raftd_errands *e, enum raftd_ask_kind kind, uint32_t node,
    struct raftd_commander *who)
{
    struct command *d = (struct command *)calloc(1, sizeof *d);
    int rc = d == NULL ? xac_err(ENOMEM, "Raft") : 0;

    if (rc == 0) {
        *d = (struct command){.e = e,
                              .question = {.kind = kind, .node = node},
                              .who = who};
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
raftd_command_take(void *arg, char *line, struct raftd_commander *who)
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
        raftd_decide_command(e->members, line, raftd_status_last_node(e->status),
                             commanded, who);
}
