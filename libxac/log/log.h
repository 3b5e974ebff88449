/* SPDX-License-Identifier: MIT */
/*
 * log.h -- the log while the environment runs: ring buffer in shared memory, segments
 * on disk, group commit.  The bytes are in log_format.h, building blocks in block.h.
 *
 * WHAT      Holds appended blocks until they are synced; one sync serves all who wait.
 * NOT HERE  Deciding what commits (ctree), replay (recover), the two structures (log_state.h),
 *           making segments (log_segment.h).
 * LOCK      flush (rank FLUSH): writing and syncing; prepare (rank PREPARE): making
 *           segments.  `tail` moves under the publish lock of the caller.
 * THREADS   any thread; no function here is safe in the fault handler.
 *
 * INVARIANTS (xac_log_assert checks 1, 3 and 4; the others speak of what was before)
 *   (1) start_lsn <= durable <= written <= tail <= durable + ring_bytes.
 *   (2) durable, written and tail only grow while the region lives.
 *   (3) Bytes of the ring between durable and tail never change (a dead flusher's
 *       successor writes the same bytes again, from durable).
 *   (4) tail <= prepared: segments exist, zero-filled and synced, directory included,
 *       for every LSN below prepared; a commit neither grows a file nor needs blocks.
 *   (5) Once poisoned, durable never moves again (a flush that has looked at poisoned for
 *       the last time may still store what it has synced).
 *   (6) A failed sync poisons, and a write that fails behind its first byte.  What fails
 *       before that concerns the process whose limits, rights or descriptors were in the
 *       way, and nobody else: nothing has changed, and the next flush, by whichever process,
 *       writes all of it.
 *       On a standby nothing is appended: tail, written, durable and prepared move together (xac_log_stands).
 *   (7) What is copied to the ring under the caller's publish lock goes to pages that the
 *       process has in its page table already: without room there, has_room says no, and
 *       make_room sees to it.  (Not what a survivor copies for one that died: it has the lock
 *       before it knows.)
 *   (8) `written` is the end of a block.  What lies below it is in the segments, where any process reads it, and stays as it
 *       is (3).  It outlives the death of all processes, but not a power cut: only `durable` does.
 */
#ifndef XAC_LOG_H
#define XAC_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "log/block.h"
#include "log/log_name.h"
#include "log/log_state.h"

/* ---- Making a log, and joining it (log_open.c) ---- */

/* What a log is made from; all fixed from then on. */
struct xac_log_config {
    uint8_t identity[16];
    uint32_t generation;
    uint32_t page_size;
    uint64_t segment_bytes;
    uint64_t ring_bytes;
    uint64_t start_lsn;  /* multiple of XAC_BLOCK_ALIGN; the log is empty here          */
    uint64_t free_below; /* as in struct xac_log_shared                                */
    const struct xac_log_followers *followers; /* as they are at first; NULL: none     */
};

/*
 * xac_log_create -- fill in *sh for an empty log and prepare its first segment.
 *
 * Segments that exist already are kept (their header is verified), missing ones made.
 * in   ring   ring_bytes of shared memory
 * ret  0; ENOSPC and other errno values; XAC_EFOREIGN, XAC_EVERSION, XAC_EPAGESIZE if a
 *      segment of another environment is in the way.
 */
int xac_log_create(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring,
                   int dirfd, const struct xac_log_config *config);

/* xac_log_attach -- join a log that another process has created; ret 0 or errno. */
int xac_log_attach(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring,
                   int dirfd);

/* ---- Appending and flushing (log.c) ---- */

/*
 * xac_log_segment_fd -- descriptor of a segment, for writing.  The flush lock is held, or nobody else
 * knows of the log yet.
 *
 * The descriptor that gives way is closed first, so that a process that has run out of
 * descriptors can still flush.  One that the program has closed is replaced by one for the
 * same file, and what has been written to it is written again.
 * ret  descriptor, or -1 with errno.
 */
int xac_log_segment_fd(struct xac_log *log, uint64_t number);

/*
 * xac_log_make_room -- see to it that `bytes` more can be appended.
 *
 * Before the publish lock is taken: flushes if the ring is full, makes segments.
 * in   bytes  at most ring_bytes / 4
 * ret  0; the poison as XAC_EPOISONED; ENOSPC or another errno value if a segment could
 *      not be made, XAC_ENOTDURABLE if the ring could not be flushed (nothing is poisoned
 *      by either); ETIMEDOUT: the thread's limit (lock.h) is over.
 */
int xac_log_make_room(struct xac_log *log, uint64_t bytes);

/* xac_log_unwritten -- why the last XAC_ENOTDURABLE: an errno value. */
int xac_log_unwritten(const struct xac_log *log);

/* xac_log_has_room -- true if `bytes` fit now, and no page fault will be met; publish lock
   held. */
bool xac_log_has_room(const struct xac_log *log, uint64_t bytes);

/* xac_log_ready -- the whole ring has been populated (xac_populate). */
void xac_log_ready(struct xac_log *log);

/*
 * xac_log_append -- copy a sealed block to its place and move the tail behind it.
 *
 * Publish lock held, room present, blk->lsn == tail.  If tail has passed the block
 * already (a survivor redoing the append), nothing happens.
 */
void xac_log_append(struct xac_log *log, const struct xac_block *blk);

/*
 * xac_log_wait_durable -- return when everything below lsn is on disk.
 *
 * Group commit: a process that finds the flush lock free writes and syncs for all.
 * ret  0; XAC_EPOISONED; XAC_ENOTDURABLE if this process could not even begin to write
 *      (invariant 6); ETIMEDOUT: the thread's limit (lock.h) is over.  A position already
 *      durable is 0 even when poisoned.
 */
int xac_log_wait_durable(struct xac_log *log, uint64_t lsn);

/*
 * xac_log_wait_others -- the same, but have others write; gives up after wait_ms.
 *
 * ret  0; XAC_EPOISONED; XAC_ENOTDURABLE (no words noted).
 */
int xac_log_wait_others(struct xac_log *log, uint64_t lsn, unsigned wait_ms);

/* xac_log_sync -- the same for everything appended by now. */
int xac_log_sync(struct xac_log *log);

/*
 * xac_log_wait_delayed -- for commits that need not be on disk at once: sync what is
 * appended if the last sync is delay_ms ago or longer and nobody else is at it.
 *
 * ret  as xac_log_wait_durable.
 */
int xac_log_wait_delayed(struct xac_log *log, uint32_t delay_ms);

/*
 * xac_log_flush_start -- let the device begin to write what is appended, while the caller
 * does something else.
 *
 * Only for a lone committer: what others append meanwhile would have to wait for the
 * first write and then be written to the same sectors again.
 * ret  true: the flush lock is held; xac_log_flush_end must follow soon.
 *
 * xac_log_flush_end -- finish it, as xac_log_wait_durable; lsn is below tail.
 */
bool xac_log_flush_start(struct xac_log *log);
int xac_log_flush_end(struct xac_log *log, uint64_t lsn);

/* xac_log_release -- the log below lsn is not needed, and the master record on disk says
   so: its segments become new ones.  0: keep them. */
void xac_log_release(struct xac_log *log, uint64_t lsn);

/*
 * xac_log_stands -- of a standby: what has come from elsewhere stands in the segments up to there, synced.
 *
 * Publish lock held.  Nothing is appended to such a log, so tail and durable are always the same.
 */
void xac_log_stands(struct xac_log *log, uint64_t lsn);

/* xac_log_wake_followers -- all of them: the region is about to go. */
void xac_log_wake_followers(struct xac_log_shared *sh);

/* xac_log_poison -- nothing is acknowledged from now on; wakes all who wait. */
void xac_log_poison(struct xac_log *log, int error);

/*
 * xac_log_assert -- check invariants (1) and (4), while publish and flush state may move; and if
 * the caller holds the flush lock, (3): a block of this log begins where the disk ends.
 */
void xac_log_assert(const struct xac_log *log);

#endif /* XAC_LOG_H */
