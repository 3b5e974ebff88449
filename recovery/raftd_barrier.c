/* SPDX-License-Identifier: MIT */
/*
 * raftd_barrier.c -- see raftd_barrier.h.
 */
#include <config.h>

#include "raftd_barrier.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/annot.h"
#include "base/err.h"
#include "raftd_disk.h"
#include "tool.h"

struct barrier {
    struct raft_barrier req;
    struct raftd_barriers *of;
    enum raftd_item_kind what;
    uint64_t term;
};

/* say -- once, until one is committed. */
static void
say(struct raftd_barriers *b)
{
    if (!b->has_said)
        fprintf(stderr,
                "%s: Raft takes no entry: too few nodes have room on their disks\n",
                tool_name);
    b->has_said = true;
}

/* failed -- readers are told; what this node needs to lead is due again (1). */
static void
failed(struct raftd_barriers *b, enum raftd_item_kind what, uint64_t term)
{
    if (what == RAFTD_ITEM_READ)
        b->put(b->r, what, 0);
    else if (b->leads(b->r, term)) {
        b->due_term = term;
        b->due_ms = uv_now(b->loop) + RAFTD_BARRIER_AGAIN_MS;
        raftd_disk_doubt(b->disk);
    }
}

/* done -- status 0: all that was committed before has been put (N2). */
static void
done(struct raft_barrier *req, int status)
{
    struct barrier *one = (struct barrier *)req->data;

    if (status == 0) {
        one->of->has_said = false;
        one->of->put(one->of->r, one->what, one->term);
    } else {
        failed(one->of, one->what, one->term);
    }
    free(one);
}

void
raftd_barrier_start(struct raftd_barriers *b, enum raftd_item_kind what, uint64_t term)
{
    struct barrier *one = NULL;
    int rv;

    xac_assert(what == RAFTD_ITEM_BARRIER || what == RAFTD_ITEM_READ);
    if (b->leads(b->r, term) && raft_state(b->raft) == RAFT_LEADER)
        one = (struct barrier *)calloc(1, sizeof *one);
    if (one != NULL) {
        *one = (struct barrier){.of = b, .what = what, .term = term};
        one->req.data = one;
        rv = raft_barrier(b->raft, &one->req, done);
        if (rv == 0)
            return;
        if (rv == RAFT_NOSPACE)
            say(b);
    }
    free(one);
    failed(b, what, term);
}

void
raftd_barrier_look(struct raftd_barriers *b)
{
    uint64_t term = b->due_term;

    if (term == 0 || uv_now(b->loop) < b->due_ms)
        return;
    b->due_term = 0;
    raftd_barrier_start(b, RAFTD_ITEM_BARRIER, term);
}
