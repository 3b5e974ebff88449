/* SPDX-License-Identifier: MIT */
/*
 * raftd_fetch.h -- a node that is far behind gets what it lacks from the leader.
 *
 * WHAT      Gets log from the leader's environment, as xship follow does; if that is gone there, a copy and then log, as
 *           xship begins.  It ends when the node has what a snapshot of Raft says (S2 of doc/replication.md).
 * NOT HERE  Sending (raftd_send.h); what the node lacks (raftd_hand.h); the place of the copy (raftd_install.h).
 * OWNER     struct raftd_fetch belongs to the caller.
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) What has come is durable before the node says that it has it.
 *   (2) The old environment stays until the copy reaches as far as it must (raftd_install.h, (1)).
 *   (3) A connection that breaks is no error: Raft sends the snapshot again, and it goes on where it was.
 */
#ifndef XAC_RAFTD_FETCH_H
#define XAC_RAFTD_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "raftd_net.h"
#include "raftd_place.h"

struct raftd_fetch {
    struct raftd_net *net;
    const _Atomic bool *stop; /* set when the daemon is to end                         */
    bool needs_copy;          /* the log that is needed is gone                        */
    /* Is this enough? */
    bool (*is_enough)(void *arg, uint32_t generation, uint64_t durable);
    void *arg;
    bool was_enough;
    char said[XAC_ERR_BYTES]; /* last                                                  */
};

/*
 * raftd_fetch -- from the node that leads; the place is open before and behind it, as a standby if it can be.
 *
 * out  donep  the node has what it needs; else try again later
 * ret  0; as raftd_place_open() and raftd_install(), words noted: the daemon cannot go on.
 */
int raftd_fetch(struct raftd_fetch *f, struct raftd_place *p, uint32_t leader,
                bool *donep);

#endif /* XAC_RAFTD_FETCH_H */
