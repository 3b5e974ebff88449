/* SPDX-License-Identifier: MIT */
/*
 * raftd_kept.h -- what counts, and the log of this node may not have on disk: H8 of doc/replication.md.
 *
 * WHAT      Log that this node has written as leader is proposed before it is synced here, so it can count, and be applied
 *           at other nodes, before this disk has it.  Until the disk does, the entries are kept here in the order in which they
 *           count.  When the node leads no more, and its log has been cut, what the log lacks is taken from them.
 * NOT HERE  Which entries count (raftd_entry.h); what is on disk (raftd_place.h).
 * OWNER     struct raftd_kept belongs to the caller; the items in it are its own.
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) A BATCH goes when the log here has it on disk.
 *   (2) A piece of a data file goes when the BATCH that names the file counts, and the log here has that on disk.  While the
 *       BATCH does not count the log may be cut before it: then it comes by Raft, and the pieces do not come again.
 *   (3) What goes is at the front: what is left is all that counts from some position on.
 */
#ifndef XAC_RAFTD_KEPT_H
#define XAC_RAFTD_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "raftd_entry.h"
#include "raftd_queue.h"

struct raftd_place;

struct raftd_kept {
    struct raftd_item *first, **last;
};

void raftd_kept_init(struct raftd_kept *k);

/* raftd_kept_add -- an item with an entry that counts, and is a BATCH or a piece of a data file; it is the keeper's now. */
void raftd_kept_add(struct raftd_kept *k, struct raftd_item *item);

/* raftd_kept_is_empty -- is all that counts on disk here? */
bool raftd_kept_is_empty(const struct raftd_kept *k);

/* raftd_kept_drop -- the log has everything before `had` on disk, which ends a block; what counts ends at `end` (1, 2). */
void raftd_kept_drop(struct raftd_kept *k, uint64_t had, uint64_t end);

/* raftd_kept_drop_all -- nothing of it is of any use. */
void raftd_kept_drop_all(struct raftd_kept *k);

/* raftd_kept_take -- a standby takes what its log lacks; entries at or behind `until` are of no use.  Nothing is kept then.
   ret 0; as raftd_entry_read() and raftd_place_take(), words noted. */
int raftd_kept_take(struct raftd_kept *k, struct raftd_place *place, uint64_t until);

#endif /* XAC_RAFTD_KEPT_H */
