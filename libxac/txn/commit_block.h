/* SPDX-License-Identifier: MIT */
/*
 * commit_block.h -- the log block of a commit, while it is built in shared memory.
 *
 * WHAT      The buffer of a slot in which the block grows, and its way out if the block becomes too
 *           large for the log's buffer: a data file.  Building the block of a COMMITTING
 *           transaction again, by its owner or for one that is dead.
 * NOT HERE  Which pages have changed (txn.h); the bytes of the records (block.h).
 * OWNER     The slot: `record` and `record_size` name the buffer, which the slot keeps for its next
 *           transaction.
 */
#ifndef XAC_COMMIT_BLOCK_H
#define XAC_COMMIT_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "log/block.h"
#include "shared/env_state.h"

/* A block that is being built. */
struct xac_commit_block {
    struct xac_builder b;
    uint64_t at;   /* offset of the buffer                                            */
    uint64_t size; /* of it                                                           */
    uint64_t time_ns; /* in its XCOMMIT                                                */
    bool is_large; /* does not fit a quarter of the log buffer: goes to a data file   */
};

/* xac_commit_block_begin -- start the block of a transaction in the slot's buffer, or in a new
   one; ret 0 or an error. */
int xac_commit_block_begin(struct xac_env *env, const struct xac_txn *txn,
                           struct xac_commit_block *m);

/* xac_commit_block_add -- log the change of one page.  A block that has become large takes no more:
   its pages are read from the version store at its end.  ret 0 or an error. */
int xac_commit_block_add(struct xac_env *env, struct xac_commit_block *m,
                         const struct xac_page_change *c);

/* xac_commit_block_end -- XCOMMIT and the checksum; of a large block after its pages have gone to
   a data file.  ret 0 or an error. */
int xac_commit_block_end(struct xac_env *env, struct xac_txn *txn,
                         struct xac_commit_block *m);

/*
 * xac_commit_block_rebuild -- build the block of a COMMITTING transaction again from its
 * versions, as full images, because a checkpoint has begun since.  ret 0 or an error.
 */
int xac_commit_block_rebuild(struct xac_env *env, uint64_t slot);

/* xac_commit_block_make_room -- what XAC_PUBLISH_ROOM asks for.  No lock held that ranks as high as
   the log's.  ret as xac_log_make_room. */
int xac_commit_block_make_room(struct xac_env *env, const struct xac_txn *txn);

#endif /* XAC_COMMIT_BLOCK_H */
