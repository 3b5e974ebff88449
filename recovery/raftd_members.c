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
#include "base/clock.h"
#include "base/err.h"
#include "log/group_note.h"
#include "raftd_entry.h"

/* A node that lacks no more entries than that is made a voter, once it has the rest. */
#define NEARLY 64

/* So long a node that is to lead may take the rest of the log. */
#define CATCH_UP_NS UINT64_C(1000000000)

/* So long the others may show that they run before a node is removed. */
#define SPARE_NS UINT64_C(3000000000)

/* A change that somebody waits for. */
struct raftd_change {
    struct raft_change req;
    struct raft_apply apply;
    struct raftd_members *m;
    uint32_t node;
    char address[RAFTD_ADDRESS_BYTES];
    raftd_change_done *done; /* of one that is added                                   */
    raftd_decided *decided;  /* of one that is removed; else NULL                      */
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

/* ---- Changes ------------------------------------------------------------------------ */

/* status_of -- what libraft says; enum raftd_ask_status. */
static uint32_t
status_of(int rv)
{
    switch (rv) {
    case 0:
        return RAFTD_ASK_GOOD;
    case RAFT_LEADERSHIPLOST:
        return RAFTD_ASK_UNCERTAIN;
    case RAFT_NOTLEADER:
    case RAFT_CANTCHANGE:
        return RAFTD_ASK_NOT_NOW;
    case RAFT_BADID:
        return RAFTD_ASK_NO_NODE;
    default:
        return RAFTD_ASK_FAILED;
    }
}

/* refused -- libraft does not add it. */
static int
refused(const struct raftd_change *c, int rv)
{
    if (rv == RAFT_NOTLEADER || rv == RAFT_LEADERSHIPLOST)
        return xac_err_whole(XAC_ENOTLEADER,
                             "this node leads no more: see xraftd status "
                             "whether it was done, and where to repeat it");
    return xac_err_whole(EIO, "node %" PRIu32 ": %s", c->node, raft_strerror(rv));
}

/* finish -- tell the one who waits. */
static void
finish(struct raftd_change *c, int rv)
{
    char text[RAFTD_GROUP_BYTES] = "";
    int rc;

    c->m->is_changing = false;
    raftd_members_look(c->m);
    if (c->decided != NULL) {
        c->decided(c->arg, status_of(rv), 0);
    } else {
        rc = rv == 0 ? 0 : refused(c, rv);
        if (rc == 0)
            (void)raftd_group_text(c->m->group, text);
        c->done(c->arg, rc, rc == 0 ? text : xac_err_text());
    }
    free(c);
}

/* changed -- the configuration is on a majority, or is not. */
static void
changed(struct raft_change *req, int status)
{
    finish((struct raftd_change *)req->data, status);
}

/* change -- Raft's configuration. */
static void
change(struct raftd_change *c)
{
    int rv = c->decided != NULL
                 ? raft_remove(c->m->raft, &c->req, c->node, changed)
                 : raft_add(c->m->raft, &c->req, c->node, c->address, changed);

    if (rv != 0)
        finish(c, rv);
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
        change(c);
    else
        finish(c, status);
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

/* start_change -- of a copy of it, behind a NODE entry, if its number has had none; ret ENOMEM: nobody is told. */
static int
start_change(struct raftd_members *m, const struct raftd_change *what, uint64_t last_node)
{
    struct raftd_change *c = (struct raftd_change *)malloc(sizeof *c);
    struct raft_buffer number = {.base = NULL};
    int rv, rc = c == NULL ? xac_err(ENOMEM, "Raft") : 0;

    if (rc == 0 && what->node > last_node)
        rc = make_number(m, what->node, &number);
    if (rc != 0) {
        free(c);
        return rc;
    }
    *c = *what;
    c->m = m;
    c->req.data = c->apply.data = c;
    m->is_changing = true;
    if (number.base == NULL) {
        change(c);
        return 0;
    }
    rv = raft_apply(m->raft, &c->apply, &number, 1, numbered);
    if (rv != 0)
        finish(c, rv);
    return 0;
}

/* ---- Adding ------------------------------------------------------------------------- */

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
        rc = start_change(m, &c, last_node);
    if (rc != 0)
        done(arg, rc, xac_err_text());
}

void
raftd_members_command(struct raftd_members *m, const char *line, uint64_t last_node,
                      raftd_change_done *done, void *arg)
{
    char address[RAFTD_ADDRESS_BYTES];
    uint32_t node;

    if (sscanf(line, "add %" SCNu32 " %127s", &node, address) == 2)
        add(m, node, address, last_node, done, arg);
    else
        done(arg, EINVAL, "no such command");
}

/* ---- Handing over ------------------------------------------------------------------- */

uint32_t
raftd_members_heir(const struct raftd_members *m)
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

/* is_settled -- is no change under way? */
static bool
is_settled(const struct raftd_members *m)
{
    return !m->is_changing && m->raft->configuration_uncommitted_index == 0;
}

/* await_heir -- until it has all (6); then it is told. */
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
    status = status_of(raft_transfer(m->raft, &h->req, h->heir, handed_over));
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

/* can_spare -- (7). */
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
    if (!is_settled(m))
        c.decided(c.arg, RAFTD_ASK_NOT_NOW, 0);
    else if (start_change(m, &c, h->last_node) != 0)
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
        transfer(m, raftd_members_heir(m)); /* (4) */
    else
        remove_other(m);
}

void
raftd_members_await(struct raftd_members *m)
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
raftd_members_is_leaving(const struct raftd_members *m)
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
        transfer(m, raftd_members_heir(m));
    } else {
        m->handover.until_ns = xac_clock_ns() + SPARE_NS;
        await_others(m);
    }
}

/* hand_over -- in  node  0: the best one; what  done, arg, and remove with last_node.  When this node itself is to be removed, the
   question is asked again, of the node that leads then. */
static void
hand_over(struct raftd_members *m, uint32_t node, const struct raftd_handover *what)
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
    status = !needs_heir || raftd_members_heir(m) != 0
                 ? status_of(raft_barrier(m->raft, &m->handover.barrier, gathered))
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
raftd_members_give_way(struct raftd_members *m)
{
    if (raft_state(m->raft) == RAFT_LEADER && m->handover.done == NULL)
        hand_over(m, 0, &(struct raftd_handover){.done = nobody});
}

/* ---- Deciding ----------------------------------------------------------------------- */

/* decide_member -- (5). */
static void
decide_member(const struct raftd_members *m, uint32_t node, uint64_t last_node,
              raftd_decided *done, void *arg)
{
    const struct raft_configuration *c = &m->raft->configuration;
    uint64_t last = last_node;

    for (unsigned i = 0; i < c->n; i++)
        last = c->servers[i].id > last ? c->servers[i].id : last;
    if (is_known(m, node, NULL))
        done(arg, RAFTD_ASK_GOOD, 1);
    else
        done(arg, is_settled(m) && node <= last ? RAFTD_ASK_GOOD : RAFTD_ASK_NOT_NOW, 0);
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

    if (is_settled(m))
        hand_over(m, 0, &what);
    else
        done(arg, RAFTD_ASK_NOT_NOW, 0);
}

void
raftd_members_decide(struct raftd_members *m, const struct raftd_question *q,
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
        hand_over(m, q->node, &(struct raftd_handover){.done = done, .arg = arg});
    else if (q->kind != RAFTD_ASK_REMOVE)
        done(arg, RAFTD_ASK_UNKNOWN, 0);
    else if (!is_known(m, q->node, NULL))
        done(arg, RAFTD_ASK_NO_NODE, 0);
    else
        decide_removal(m, q->node, last_node, done, arg);
}

void
raftd_members_init(struct raftd_members *m, struct raft *raft, struct raftd_group *group)
{
    *m = (struct raftd_members){.raft = raft, .group = group};
}
