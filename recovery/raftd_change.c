/* SPDX-License-Identifier: MIT */
/*
 * raftd_change.c -- see raftd_change.h.
 */
#include <config.h>

#include "raftd_change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "raftd_entry.h"

bool
raftd_change_is_settled(const struct raftd_members *m)
{
    return !m->is_changing && m->raft->configuration_uncommitted_index == 0;
}

bool
raftd_change_is_refused(int rv)
{
    return rv == RAFT_NOTLEADER || rv == RAFT_BUSY || rv == RAFT_NOSPACE;
}

uint32_t
raftd_change_status(int rv)
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
        c->decided(c->arg, raftd_change_status(rv), 0);
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

int
raftd_change_start(struct raftd_members *m, const struct raftd_change *what,
                   uint64_t last_node)
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
    if (raftd_change_is_refused(rv))
        raft_free(number.base);
    if (rv != 0)
        finish(c, rv);
    return 0;
}
