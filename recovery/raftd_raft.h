/* SPDX-License-Identifier: MIT */
/*
 * raftd_raft.h -- Raft: libraft and its disk, in one thread with a loop.
 *
 * WHAT      Starts a node, hands committed entries and changes of leadership to the hand, takes proposals from other
 *           threads, and gives Raft snapshots that say how far the environment's own log is.
 * NOT HERE  What entries mean (raftd_entry.h, raftd_hand.h).  Connections (raftd_transport.h).  Whether Raft's disk has room (raftd_disk.h).
 * OWNER     struct raftd_raft belongs to the caller, and is opaque: only this module and raftd_transport.h know libraft.
 * THREADS   the loop is that of the thread that calls raftd_raft_run(); what says so may be called by others.
 *
 * INVARIANTS
 *   (1) Nothing that the loop calls waits for a disk or for the environment.
 *   (2) A snapshot says nothing that is not durable in the log here, and one that comes from another node is taken only
 *       if the log here reaches as far: an answer to it counts towards a majority.
 *   (3) When twice as much has gathered in Raft's log as a snapshot is taken after, because the environment does not keep up,
 *       nothing more gets into that log: what other nodes send is held back (raftd_intake.h), and this node proposes
 *       nothing.  But a transaction whose pieces have begun to come is completed.  So Raft's log, and the queue, have a
 *       bound: that, one transaction, and what is under way.
 *   (4) libraft may not rename damaged segments away (auto-recovery is off): entries that were acknowledged would be
 *       gone, and the node would vote without them.
 *   (5) A node that leads and cannot propose does not stand still: it tries again, since the others may get room; and when its
 *       own disk takes nothing (raftd_disk.h) it ends, so that another node leads.
 */
#ifndef XAC_RAFTD_RAFT_H
#define XAC_RAFTD_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_user.h"

struct raftd_errands;
struct raftd_group;
struct raftd_net;
struct raftd_raft;
struct raftd_status;

/* Who is told that an entry of n bytes that was proposed is not under way any more; in Raft's thread. */
struct raftd_proposer {
    void *arg; /* NULL: nobody                                                        */
    void (*done)(void *arg, size_t n);
};

/* raftd_raft_create -- in  net  connections to the other nodes, which raftd_raft_run() starts; NULL: only for
   raftd_raft_bootstrap().  in  snapshot_bytes  of entries after which one is taken.  ret NULL: no memory. */
struct raftd_raft *raftd_raft_create(int dirfd, const char *dir,
                                     struct raftd_group *group, struct raftd_net *net,
                                     const struct raftd_raft_user *user,
                                     struct raftd_status *status,
                                     uint64_t snapshot_bytes);
/* raftd_raft_destroy -- behind raftd_net_stop(). */
void raftd_raft_destroy(struct raftd_raft *r);

/* raftd_raft_bootstrap -- the first configuration of Raft, in a new directory; ret 0, also if it is there; EIO, XAC_EDAMAGED,
   words noted. */
int raftd_raft_bootstrap(struct raftd_raft *r);

/* raftd_raft_run -- until the hand has ended, which a signal tells it to.  ret 0; what it was told; XAC_EDAMAGED:
   Raft's files are not as it writes them; EIO and others; words noted. */
int raftd_raft_run(struct raftd_raft *r);

/* raftd_raft_errands -- questions of other nodes are for them. */
struct raftd_errands *raftd_raft_errands(struct raftd_raft *r);

/* raftd_raft_leads -- does this node lead in a term?  Any thread. */
bool raftd_raft_leads(const struct raftd_raft *r, uint64_t term);

/* raftd_raft_term -- in which it leads; 0: in none.  Any thread. */
uint64_t raftd_raft_term(const struct raftd_raft *r);

/*
 * raftd_raft_barrier -- have an item put behind all that has been committed before, if this node still leads in that term.
 *
 * in   what  RAFTD_ITEM_BARRIER; or RAFTD_ITEM_READ, which is put in any case, with term 0 if the barrier is not committed
 * ret  0; ENOMEM, or ECANCELED, if the loop has ended: none is put.  Any thread.
 */
int raftd_raft_barrier(struct raftd_raft *r, enum raftd_item_kind what, uint64_t term);

/* raftd_raft_buffer -- memory for an entry, of which the library frees what is proposed.  ret NULL: none.  Any thread. */
void *raftd_raft_buffer(size_t n);
void raftd_raft_free(void *buffer);

/*
 * raftd_raft_propose -- an entry, which belongs to Raft from now on.  If it cannot be proposed RAFTD_ITEM_BROKEN is put.
 *
 * in   who  stays until it has been told
 * ret  0; ENOMEM or ECANCELED, likewise: the entry is the caller's still.  Any thread.
 */
int raftd_raft_propose(struct raftd_raft *r, uint64_t term, void *entry, size_t n,
                       struct raftd_proposer who);

/* raftd_raft_break -- have RAFTD_ITEM_BROKEN put, for a proposer that cannot go on.  Any thread; ret 0, ENOMEM or ECANCELED,
   likewise. */
int raftd_raft_break(struct raftd_raft *r, uint64_t term);

/* raftd_raft_is_late -- has so much gathered in Raft's log that nothing more may be proposed before it is shortened?  Any
   thread. */
bool raftd_raft_is_late(const struct raftd_raft *r);

/* raftd_raft_is_running -- has nobody told it to end?  Any thread. */
bool raftd_raft_is_running(const struct raftd_raft *r);

/* raftd_raft_end -- the hand has ended: hand over leadership, and end.  in  rc  not 0: the words noted by this thread say
   why.  Any thread. */
void raftd_raft_end(struct raftd_raft *r, int rc);

#endif /* XAC_RAFTD_RAFT_H */
