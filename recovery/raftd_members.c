/* SPDX-License-Identifier: MIT */
/*
 * raftd_members.c -- see raftd_members.h.
 */
#include <config.h>

#include "raftd_members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "log/group_note.h"
#include "raftd_entry.h"

/* A node that lacks no more entries than that is made a voter, once it has the rest. */
#define NEARLY 64

/* A change that somebody waits for. */
struct raftd_change {
    struct raft_change req;
    struct raft_apply apply;
    struct raftd_members *m;
    uint32_t node;
    char address[RAFTD_ADDRESS_BYTES];
    raftd_change_done *done;
    void *arg;
};

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
    if (n == 0 || (!has_self && !m->was_member))
        return;
    m->was_member = true;
    m->is_removed = !has_self;
    m->has_changed = true;
    raftd_group_set(m->group, list, n);
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
raftd_members_promote(struct raftd_members *m)
{
    const struct raft_configuration *c = &m->raft->configuration;
    int role;

    if (raft_state(m->raft) != RAFT_LEADER || m->is_changing
        || m->raft->configuration_uncommitted_index != 0)
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

/* ---- Commands ----------------------------------------------------------------------- */

/* finish -- tell the one who waits. */
static void
finish(struct raftd_change *c, int rc)
{
    char text[RAFTD_GROUP_BYTES] = "";

    c->m->is_changing = false;
    raftd_members_look(c->m);
    if (rc == 0)
        (void)raftd_group_text(c->m->group, text);
    c->done(c->arg, rc, rc == 0 ? text : xac_err_text());
    free(c);
}

/* refused -- libraft does not do it. */
static int
refused(const struct raftd_change *c, int status)
{
    if (status == RAFT_NOTLEADER || status == RAFT_LEADERSHIPLOST)
        return xac_err_whole(XAC_ENOTLEADER,
                             "this node leads no more: see xraftd status "
                             "whether it was done, and where to repeat it");
    return xac_err_whole(EIO, "node %" PRIu32 ": %s", c->node, raft_strerror(status));
}

/* changed -- the configuration is on a majority, or is not. */
static void
changed(struct raft_change *req, int status)
{
    struct raftd_change *c = (struct raftd_change *)req->data;

    finish(c, status == 0 ? 0 : refused(c, status));
}

/* numbered -- the number counts as used (2). */
static void
numbered(struct raft_apply *req, int status, void *result)
{
    struct raftd_change *c = (struct raftd_change *)req->data;

    (void)result;
    if (status == 0 && raft_state(c->m->raft) != RAFT_LEADER)
        status = RAFT_NOTLEADER;
    if (status == 0)
        status = raft_add(c->m->raft, &c->req, c->node, c->address, changed);
    if (status != 0)
        finish(c, refused(c, status));
}

/* check -- may there be a change now? */
static int
check(const struct raftd_members *m)
{
    const char *address;
    raft_id leader;

    if (raft_state(m->raft) == RAFT_LEADER && !m->is_changing
        && m->raft->configuration_uncommitted_index == 0)
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

/* check_add -- (2). */
static int
check_add(const struct raftd_members *m, uint32_t node, const char *address,
          uint64_t last_node)
{
    const struct raft_configuration *c = &m->raft->configuration;
    uint64_t last = last_node;

    for (unsigned i = 0; i < c->n; i++)
        last = c->servers[i].id > last ? c->servers[i].id : last;
    if (node <= last || node > XAC_GROUP_NODE_MAX)
        return xac_err_whole(EINVAL,
                             "node %" PRIu32 ": numbers are used once; the next one is "
                             "%" PRIu64,
                             node, last + 1);
    if (!raftd_address_ok(address))
        return xac_err_whole(EINVAL, "%s: give HOST:PORT", address);
    if (is_known(m, node, address))
        return xac_err_whole(EINVAL, "%s: another node listens there", address);
    return c->n < RAFTD_MEMBERS_MAX
               ? 0
               : xac_err_whole(EINVAL, "a group has at most %d nodes", RAFTD_MEMBERS_MAX);
}

/* make_change -- NULL: no memory, words noted. */
static struct raftd_change *
make_change(struct raftd_members *m, uint32_t node, raftd_change_done *done, void *arg)
{
    struct raftd_change *c = (struct raftd_change *)calloc(1, sizeof *c);

    if (c == NULL) {
        (void)xac_err(ENOMEM, "Raft");
        return NULL;
    }
    c->m = m;
    c->node = node;
    c->done = done;
    c->arg = arg;
    c->req.data = c->apply.data = c;
    return c;
}

/* make_number -- the NODE entry. */
static int
make_number(const struct raftd_members *m, uint32_t node, struct raft_buffer *out)
{
    struct xac_raftd_node body = {.node = node};
    struct raftd_entry e = {.kind = RAFTD_NODE,
                            .generation = m->group->begin.generation,
                            .n = sizeof body};

    out->len = raftd_entry_bytes(sizeof body);
    out->base = raft_malloc(out->len);
    if (out->base == NULL)
        return xac_err(ENOMEM, "Raft");
    memcpy(raftd_entry_body(out->base), &body, sizeof body);
    raftd_entry_seal(out->base, &e);
    return 0;
}

/* add -- a node. */
static void
add(struct raftd_members *m, uint32_t node, const char *address, uint64_t last_node,
    raftd_change_done *done, void *arg)
{
    struct raftd_change *c = NULL;
    struct raft_buffer number = {.base = NULL};
    int rc = check(m);

    if (rc == 0)
        rc = check_add(m, node, address, last_node);
    if (rc == 0)
        rc = make_number(m, node, &number);
    if (rc == 0 && (c = make_change(m, node, done, arg)) == NULL)
        rc = ENOMEM;
    if (rc != 0) {
        raft_free(number.base);
        done(arg, rc, xac_err_text());
        return;
    }
    (void)snprintf(c->address, sizeof c->address, "%s", address);
    m->is_changing = true;
    rc = raft_apply(m->raft, &c->apply, &number, 1, numbered);
    if (rc != 0)
        finish(c, refused(c, rc));
}

/* remove_node -- likewise. */
static void
remove_node(struct raftd_members *m, uint32_t node, raftd_change_done *done, void *arg)
{
    struct raftd_change *c = NULL;
    int rc = check(m);

    if (rc == 0 && !is_known(m, node, NULL))
        rc = xac_err_whole(EINVAL, "there is no node %" PRIu32, node);
    if (rc == 0 && node == m->group->node)
        rc = xac_err_whole(EBUSY,
                           "node %" PRIu32 " leads: end its xraftd, and remove it at the "
                           "node that leads then",
                           node); /* (4) */
    if (rc == 0 && (c = make_change(m, node, done, arg)) == NULL)
        rc = ENOMEM;
    if (rc != 0) {
        done(arg, rc, xac_err_text());
        return;
    }
    m->is_changing = true;
    rc = raft_remove(m->raft, &c->req, node, changed);
    if (rc != 0)
        finish(c, refused(c, rc));
}

void
raftd_members_command(struct raftd_members *m, const char *line, uint64_t last_node,
                      raftd_change_done *done, void *arg)
{
    char address[RAFTD_ADDRESS_BYTES];
    uint32_t node;

    if (sscanf(line, "add %" SCNu32 " %127s", &node, address) == 2)
        add(m, node, address, last_node, done, arg);
    else if (sscanf(line, "remove %" SCNu32, &node) == 1)
        remove_node(m, node, done, arg);
    else
        done(arg, EINVAL, "no such command");
}

void
raftd_members_init(struct raftd_members *m, struct raft *raft, struct raftd_group *group)
{
    *m = (struct raftd_members){.raft = raft, .group = group};
}
