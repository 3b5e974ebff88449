/* SPDX-License-Identifier: MIT */
/*
 * raftd_members.c -- see raftd_members.h.
 */
#include <config.h>

#include "raftd_members.h"

#include <stdio.h>
#include <string.h>

#include "base/annot.h"
#include "log/group_note.h"

/* ---- The list ----------------------------------------------------------------------- */

/* list_of -- Raft's configuration that is committed; ret how many. */
static unsigned
list_of(const struct raft *raft, struct raftd_member out[RAFTD_MEMBERS_MAX])
{
    const struct raft_configuration *c = &raft->configuration_committed;
    unsigned n = 0;

    for (raft_id node = 1; node <= XAC_GROUP_NODE_MAX; node++) { /* numbers ascend */
        for (unsigned i = 0; i < c->n && n < RAFTD_MEMBERS_MAX; i++) {
            if (c->servers[i].id != node)
                continue;
            out[n].node = (uint32_t)node;
            out[n].role = c->servers[i].role == RAFT_VOTER ? RAFTD_VOTER : RAFTD_LEARNER;
            (void)snprintf(out[n].address, sizeof out[n].address, "%s",
                           c->servers[i].address);
            n++;
        }
    }
    return n;
}

void
raftd_members_look(struct raftd_members *m)
{
    struct raftd_member list[RAFTD_MEMBERS_MAX];
    bool has_self = false;
    unsigned n;

    if (m->raft->configuration_committed_index == m->seen)
        return;
    m->seen = m->raft->configuration_committed_index;
    n = list_of(m->raft, list);
    for (unsigned i = 0; i < n; i++)
        has_self = has_self || list[i].node == m->group->node;
    /* A new node hears first of the time before it was added. */
    if (n == 0 || (!has_self && !m->was_member) || !raftd_group_set(m->group, list, n))
        return;
    m->was_member = true;
    m->is_removed = !has_self;
    m->has_changed = true;
}

unsigned
raftd_members_trail(const struct raftd_members *m, unsigned least, unsigned most)
{
    const struct raft_configuration *c = &m->raft->configuration;
    raft_index last = raft_last_index(m->raft), slowest = last, match;

    if (raft_state(m->raft) != RAFT_LEADER)
        return least;
    for (unsigned i = 0; i < c->n; i++) {
        if (raft_match_index(m->raft, c->servers[i].id, &match) == 0 && match < slowest)
            slowest = match;
    }
    if (last - slowest <= least)
        return least;
    return last - slowest < most ? (unsigned)(last - slowest) : most;
}

/* ---- Life ---------------------------------------------------------------------------- */

void
raftd_members_init(struct raftd_members *m, struct raft *raft, struct raftd_group *group)
{
    *m = (struct raftd_members){.raft = raft, .group = group};
}
