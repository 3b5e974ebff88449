/* SPDX-License-Identifier: MIT */
/*
 * log_gap.h -- how long a lone committer stays awake between its write and its sync.
 *
 * WHAT      A sync right behind a write puts the thread to sleep twice: until the data have
 *           arrived, and until the device has emptied its cache.  If the first wait is over
 *           while the thread is still awake, the kernel goes on to the second at once, and the
 *           thread falls asleep once instead of twice.  On a virtual machine that saves a sixth
 *           of the time.  The best gap, which may be 0, is found by trying: one run of flushes
 *           in 8 tries another gap, and the others use the one that has cost least.
 * NOT HERE  Several committers: a process that waits for the writes of others needs no gap (log.h).
 * LOCK      flush, all.
 */
#ifndef XAC_LOG_GAP_H
#define XAC_LOG_GAP_H

#include <stdbool.h>
#include <stdint.h>

#define XAC_LOG_GAPS 4

/* Zeroed at first. */
struct xac_log_gap {
    uint64_t start_ns; /* of the write under way; 0 none                              */
    uint32_t n_flushes;
    uint32_t now;                   /* the gap of this flush                          */
    uint32_t best;                  /* and of most                                    */
    uint32_t n_tried[XAC_LOG_GAPS]; /* times, up to those that are remembered         */
    uint64_t cost_ns[XAC_LOG_GAPS]; /* write to end of sync, decaying mean            */
};

/* xac_log_gap_begin -- the device has been told to write. */
void xac_log_gap_begin(struct xac_log_gap *gap);

/* xac_log_gap_wait -- before the sync: wait for the rest of the gap, if a write is under way. */
void xac_log_gap_wait(const struct xac_log_gap *gap);

/* xac_log_gap_end -- the sync is over, or was not needed any more. */
void xac_log_gap_end(struct xac_log_gap *gap, bool is_synced);

#endif /* XAC_LOG_GAP_H */
