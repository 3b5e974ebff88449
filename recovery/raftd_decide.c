/* SPDX-License-Identifier: MIT */
/*
 * raftd_decide.c -- see raftd_decide.h.
 */
#include <config.h>

#include "raftd_decide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "log/group_note.h"
#include "raftd_change.h"
#include "raftd_handover.h"

/* A node that lacks no more entries than that is made a voter, once it has the rest. */
#define NEARLY 64

/* ---- New nodes ---------------------------------------------------------------------- */

/* promoted -- or not: then it is tried again. */
static void
promoted(struct raft_change *req, int status)
{
    (void)status;
    ((struct raftd_members *)req->data)->is_changing = false;
}

/* is_due -- what a node is to be: a new one gets the log, and one that has nearly all of it counts. */
static bool
is_due(struct raft *raft, const struct raft_server *s, int *rolep)
{
    raft_index match = 0;

    if (s->role == RAFT_SPARE) {
        *rolep = RAFT_STANDBY;
        return true;
    }
    *rolep = RAFT_VOTER;
    return s->role == RAFT_STANDBY && raft_match_index(raft, s->id, &match) == 0
           && match > 0 && raft_last_index(raft) - match <= NEARLY;
}

void
raftd_decide_promote(struct raftd_members *m)
{
    const struct raft_configuration *c = &m->raft->configuration;
    int role;

    if (raft_state(m->raft) != RAFT_LEADER || !raftd_change_is_settled(m))
        return;
    for (unsigned i = 0; i < c->n; i++) {
        if (!is_due(m->raft, &c->servers[i], &role))
            continue;
        m->promotion.data = m;
        m->is_changing =
            raft_assign(m->raft, &m->promotion, c->servers[i].id, role, promoted) == 0;
        return;
    }
}

/* ---- Adding ------------------------------------------------------------------------- */

/* check -- may there be a change now? */
static int
check(const struct raftd_members *m)
{
    const char *address;
    raft_id leader;

    if (raft_state(m->raft) == RAFT_LEADER && raftd_change_is_settled(m))
        return 0;
    if (raft_state(m->raft) == RAFT_LEADER)
        return xac_err_whole(EBUSY, "another change is under way: try again later");
    raft_leader(m->raft, &leader, &address);
    if (leader == 0)
        return xac_err_whole(XAC_ENOTLEADER, "no node leads now: try again later");
    return xac_err_whole(XAC_ENOTLEADER, "node %llu (%s) leads: say it there", leader,
                         address);
}

/* is_known -- is there such a node, or one that listens there? */
static bool
is_known(const struct raftd_members *m, uint32_t node, const char *address)
{
    const struct raft_configuration *c = &m->raft->configuration;

    for (unsigned i = 0; i < c->n; i++) {
        if (c->servers[i].id == node
            || (address != NULL && strcmp(c->servers[i].address, address) == 0))
            return true;
    }
    return false;
}

/* last_used -- the highest number that a node has or has had. */
static uint64_t
last_used(const struct raftd_members *m, uint64_t last_node)
{
    const struct raft_configuration *c = &m->raft->configuration;
    uint64_t last = last_node;

    for (unsigned i = 0; i < c->n; i++)
        last = c->servers[i].id > last ? c->servers[i].id : last;
    return last;
}

/* check_add -- (2). */
static int
check_add(const struct raftd_members *m, uint32_t node, const char *address,
          uint64_t last_node)
{
    uint64_t last = last_used(m, last_node);

    if (node <= last || node > XAC_GROUP_NODE_MAX)
        return xac_err_whole(EINVAL,
                             "node %" PRIu32 ": numbers are used once; the next one is "
                             "%" PRIu64,
                             node, last + 1);
    if (!raftd_address_ok(address))
        return xac_err_whole(EINVAL, "%s: give HOST:PORT", address);
    if (is_known(m, node, address))
        return xac_err_whole(EINVAL, "%s: another node listens there", address);
    return m->raft->configuration.n < RAFTD_MEMBERS_MAX
               ? 0
               : xac_err_whole(EINVAL, "a group has at most %d nodes", RAFTD_MEMBERS_MAX);
}

/* add -- a node. */
static void
add(struct raftd_members *m, uint32_t node, const char *address, uint64_t last_node,
    raftd_change_done *done, void *arg)
{
    struct raftd_change c = {.node = node, .done = done, .arg = arg};
    int rc = check(m);

    if (rc == 0)
        rc = check_add(m, node, address, last_node);
    (void)snprintf(c.address, sizeof c.address, "%s", address);
    if (rc == 0)
        rc = raftd_change_start(m, &c, last_node);
    if (rc != 0)
        done(arg, rc, xac_err_text());
}

void
raftd_decide_command(struct raftd_members *m, const char *line, uint64_t last_node,
                     raftd_change_done *done, void *arg)
{
    char address[RAFTD_ADDRESS_BYTES];
    uint32_t node;

    if (sscanf(line, "add %" SCNu32 " %127s", &node, address) == 2)
        add(m, node, address, last_node, done, arg);
    else
        done(arg, EINVAL, "no such command");
}

/* ---- Deciding ----------------------------------------------------------------------- */

/* decide_member -- (4). */
static void
decide_member(const struct raftd_members *m, uint32_t node, uint64_t last_node,
              raftd_decided *done, void *arg)
{
    bool is_past = raftd_change_is_settled(m) && node <= last_used(m, last_node);

    if (is_known(m, node, NULL))
        done(arg, RAFTD_ASK_GOOD, 1);
    else
        done(arg, is_past ? RAFTD_ASK_GOOD : RAFTD_ASK_NOT_NOW, 0);
}

/* decide_removal -- the node is one of the group. */
static void
decide_removal(struct raftd_members *m, uint32_t node, uint64_t last_node,
               raftd_decided *done, void *arg)
{
    struct raftd_handover what = {.done = done,
                                  .arg = arg,
                                  .remove = node,
                                  .last_node = last_node};

    if (raftd_change_is_settled(m))
        raftd_handover_start(m, 0, &what);
    else
        done(arg, RAFTD_ASK_NOT_NOW, 0);
}

void
raftd_decide_question(struct raftd_members *m, const struct raftd_question *q,
                      uint64_t last_node, raftd_decided *done, void *arg)
{
    if (raft_state(m->raft) != RAFT_LEADER)
        done(arg, RAFTD_ASK_NOT_NOW, 0);
    else if (q->kind == RAFTD_ASK_MEMBER)
        decide_member(m, q->node, last_node, done, arg);
    else if (q->from != 0 && !is_known(m, q->from, NULL))
        done(arg, RAFTD_ASK_FAILED,
             0); /* a node that has been removed commands nothing */
    else if (q->kind == RAFTD_ASK_TRANSFER && q->node == m->group->node)
        done(arg, RAFTD_ASK_GOOD, 0);
    else if (q->kind == RAFTD_ASK_TRANSFER)
        raftd_handover_start(m, q->node,
                             &(struct raftd_handover){.done = done, .arg = arg});
    else if (q->kind != RAFTD_ASK_REMOVE)
        done(arg, RAFTD_ASK_UNKNOWN, 0);
    else if (!is_known(m, q->node, NULL))
        done(arg, RAFTD_ASK_NO_NODE, 0);
    else
        decide_removal(m, q->node, last_node, done, arg);
}
