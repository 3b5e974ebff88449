/* SPDX-License-Identifier: MIT */
/*
 * raftd_handover.c -- see raftd_handover.h.
 */
#include <config.h>

#include "raftd_handover.h"

#include "base/clock.h"
#include "raftd_change.h"

/* So long a node that is to lead may take the rest of the log. */
#define CATCH_UP_NS UINT64_C(1000000000)

/* So long the others may show that they run before a node is removed. */
#define SPARE_NS UINT64_C(3000000000)

uint32_t
raftd_handover_heir(const struct raftd_members *m)
{
    const struct raft_configuration *c = &m->raft->configuration;
    raft_index most = 0, match;
    uint32_t heir = 0;

    for (unsigned i = 0; i < c->n; i++) {
        if (c->servers[i].role != RAFT_VOTER || c->servers[i].id == m->group->node
            || raft_match_index(m->raft, c->servers[i].id, &match) != 0
            || (heir != 0 && match <= most))
            continue;
        heir = (uint32_t)c->servers[i].id;
        most = match;
    }
    return heir;
}

/* handed_over -- or not: libraft waits for an election at the most. */
static void
handed_over(struct raft_transfer *req)
{
    struct raftd_members *m = (struct raftd_members *)req->data;
    raftd_decided *done = m->handover.done;
    uint32_t status = m->handover.remove == 0 ? RAFTD_ASK_GOOD : RAFTD_ASK_NOT_NOW;

    m->handover.done = NULL;
    done(m->handover.arg,
         raft_state(m->raft) != RAFT_LEADER ? status : RAFTD_ASK_NOT_TAKEN,
         m->handover.term);
}

/* end_handover -- it is not begun. */
static void
end_handover(struct raftd_members *m, uint32_t status)
{
    raftd_decided *done = m->handover.done;

    m->handover.done = NULL;
    done(m->handover.arg, status, 0);
}

/* lacks_log -- is it a voter that has not said that it has all entries? */
static bool
lacks_log(const struct raftd_members *m, uint32_t node)
{
    const struct raft_configuration *c = &m->raft->configuration;
    raft_index match;

    for (unsigned i = 0; i < c->n; i++) {
        if (c->servers[i].id == node && c->servers[i].role == RAFT_VOTER)
            return raft_match_index(m->raft, node, &match) == 0
                   && match < raft_last_index(m->raft);
    }
    return false;
}

/* await_heir -- until it has all (2); then it is told. */
static void
await_heir(struct raftd_members *m)
{
    struct raftd_handover *h = &m->handover;
    uint32_t status;

    if (lacks_log(m, h->heir)) {
        if (xac_clock_ns() >= h->until_ns)
            end_handover(m, RAFTD_ASK_NOT_TAKEN);
        return;
    }
    h->until_ns = 0;
    h->req.data = m;
    status = raftd_change_status(raft_transfer(m->raft, &h->req, h->heir, handed_over));
    if (status != RAFTD_ASK_GOOD)
        end_handover(m, status);
}

/* transfer -- to a node; the one that asks is told when it leads. */
static void
transfer(struct raftd_members *m, uint32_t heir)
{
    m->handover.heir = heir;
    m->handover.until_ns = xac_clock_ns() + CATCH_UP_NS;
    await_heir(m);
}

/* can_spare -- (3). */
static bool
can_spare(const struct raftd_members *m)
{
    const struct raft_configuration *c = &m->raft->configuration;
    unsigned n = 0, n_run = 0;
    raft_index match;

    for (unsigned i = 0; i < c->n; i++) {
        raft_id id = c->servers[i].id;

        if (c->servers[i].role != RAFT_VOTER || id == m->handover.remove)
            continue;
        n++;
        if (id == m->group->node
            || (raft_match_index(m->raft, id, &match) == 0 && match >= m->handover.index))
            n_run++;
    }
    return 2 * n_run > n;
}

/* remove_other -- a node that can be spared. */
static void
remove_other(struct raftd_members *m)
{
    const struct raftd_handover *h = &m->handover;
    struct raftd_change c = {.node = h->remove, .decided = h->done, .arg = h->arg};

    m->handover.done = NULL;
    if (!raftd_change_is_settled(m))
        c.decided(c.arg, RAFTD_ASK_NOT_NOW, 0);
    else if (raftd_change_start(m, &c, h->last_node) != 0)
        c.decided(c.arg, RAFTD_ASK_FAILED, 0);
}

/* await_others -- until so many run that the node can be spared. */
static void
await_others(struct raftd_members *m)
{
    struct raftd_handover *h = &m->handover;

    if (!can_spare(m)) {
        if (xac_clock_ns() >= h->until_ns)
            end_handover(m, RAFTD_ASK_NEEDED);
        return;
    }
    h->until_ns = 0;
    if (h->remove == m->group->node)
        transfer(m, raftd_handover_heir(m)); /* (1) */
    else
        remove_other(m);
}

void
raftd_handover_await(struct raftd_members *m)
{
    struct raftd_handover *h = &m->handover;

    if (h->done == NULL || h->until_ns == 0)
        return;
    if (raft_state(m->raft) != RAFT_LEADER)
        end_handover(m, RAFTD_ASK_NOT_NOW);
    else if (h->heir != 0)
        await_heir(m);
    else
        await_others(m);
}

bool
raftd_handover_is_leaving(const struct raftd_members *m)
{
    return m->handover.done != NULL && m->handover.heir != 0
           && raft_state(m->raft) == RAFT_LEADER;
}

/* gathered -- a majority has all; so the best node runs, and is not one that has died with as much as the others. */
static void
gathered(struct raft_barrier *req, int status)
{
    struct raftd_members *m = (struct raftd_members *)req->data;

    if (status != 0) {
        end_handover(m, RAFTD_ASK_NOT_NOW);
    } else if (m->handover.remove == 0) {
        transfer(m, raftd_handover_heir(m));
    } else {
        m->handover.until_ns = xac_clock_ns() + SPARE_NS;
        await_others(m);
    }
}

void
raftd_handover_start(struct raftd_members *m, uint32_t node,
                     const struct raftd_handover *what)
{
    bool needs_heir = what->remove == 0 || what->remove == m->group->node;
    uint32_t status;

    if (m->handover.done != NULL) {
        what->done(what->arg, RAFTD_ASK_NOT_NOW, 0);
        return;
    }
    m->handover = *what;
    m->handover.term = raft_current_term(m->raft);
    m->handover.barrier.data = m;
    if (node != 0) {
        transfer(m, node);
        return;
    }
    m->handover.index = raft_last_index(m->raft) + 1;
    status =
        !needs_heir || raftd_handover_heir(m) != 0
            ? raftd_change_status(raft_barrier(m->raft, &m->handover.barrier, gathered))
            : RAFTD_ASK_ALONE;
    if (status != RAFTD_ASK_GOOD)
        end_handover(m, status);
}

/* nobody -- waits for that. */
static void
nobody(void *arg, uint32_t status, uint64_t value)
{
    (void)arg;
    (void)status;
    (void)value;
}

void
raftd_handover_give_way(struct raftd_members *m)
{
    if (raft_state(m->raft) == RAFT_LEADER && m->handover.done == NULL)
        raftd_handover_start(m, 0, &(struct raftd_handover){.done = nobody});
}
