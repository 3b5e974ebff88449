/* SPDX-License-Identifier: MIT */
/*
 * raftd_gather.h -- how much of Raft's log has gathered since it was shortened last.
 *
 * WHAT      Counts the entries that Raft has committed, and their bytes: libraft keeps them in memory until there is a snapshot.
 *           Says when a snapshot is due, and when it is late: then no more may come.
 * NOT HERE  Snapshots (raftd_raft.h); holding back what comes (raftd_intake.h) and what this node proposes (raftd_feed.h).
 * OWNER     struct raftd_gather belongs to the caller.
 * THREADS   Raft's; raftd_gather_is_late() any.
 *
 * INVARIANTS
 *   (1) A snapshot is due when `most` bytes have gathered, and late when twice as many have.
 */
#ifndef XAC_RAFTD_GATHER_H
#define XAC_RAFTD_GATHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raftd_gather {
    uint64_t most;  /* bytes                                                           */
    uint64_t n_all; /* entries and snapshots in this life                              */
    uint64_t n, bytes; /* entries since the last snapshot                              */
    _Atomic bool is_late;
};

void raftd_gather_init(struct raftd_gather *g, uint64_t most);

/* raftd_gather_add -- an entry of so many bytes is committed; ret is a snapshot due? */
bool raftd_gather_add(struct raftd_gather *g, size_t bytes);

/* raftd_gather_clear -- there is a snapshot. */
void raftd_gather_clear(struct raftd_gather *g);

/* raftd_gather_entries -- about so many of the last entries have `most` bytes; at least and at most those. */
unsigned raftd_gather_entries(const struct raftd_gather *g, unsigned least,
                              unsigned most);

/* raftd_gather_is_late -- may no more come before there is a snapshot?  Any thread. */
bool raftd_gather_is_late(const struct raftd_gather *g);

#endif /* XAC_RAFTD_GATHER_H */
