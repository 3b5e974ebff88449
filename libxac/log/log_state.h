/* SPDX-License-Identifier: MIT */
/*
 * log_state.h -- what all processes share of the log, and what one process has open of it.
 *
 * WHAT      The two structures that the functions of log.h work on, and the descriptor of the
 *           log's directory, which is opened again if the program has closed it.
 * NOT HERE  What may happen to the structures, with numbered invariants: log.h.
 * OWNER     struct xac_log_shared lies in the control region; struct xac_log is the process's.
 */
#ifndef XAC_LOG_STATE_H
#define XAC_LOG_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/handle.h"
#include "base/lock.h"
#include "base/times.h"

#define XAC_SLOT_NAME_BYTES 48 /* with the NUL                                         */
#define XAC_SLOT_NAME_WORDS (XAC_SLOT_NAME_BYTES / 8)
#define XAC_LOG_SLOTS       60

/* A promise to a follower (slots.h). */
struct xac_log_slot {
    xac_shared _Atomic uint64_t word; /* state, position and serial: slots.h            */
    xac_shared _Atomic uint64_t name[XAC_SLOT_NAME_WORDS]; /* checkpoint lock; relaxed */
};

/* What those who follow the log store themselves, though they take no part (follow.h). */
struct xac_log_followers {
    /* Words of wakes.h, apart from that of the committers, whom they would wake for nothing: `durable` has changed; for
       those who go ahead, `written` has. */
    xac_shared _Atomic uint32_t wakes, written_wakes;
    struct xac_log_slot slot[XAC_LOG_SLOTS];
};

struct xac_log_shared {
    /* Fixed by xac_log_create(). */
    uint8_t identity[16];
    uint32_t generation;
    uint32_t page_size;
    uint64_t segment_bytes; /* S of log_format.h, a power of two                      */
    uint64_t ring_bytes;    /* a power of two                                         */
    uint64_t start_lsn;     /* of this generation                                     */

    struct xac_lock flush;   /* rank XAC_RANK_FLUSH                                   */
    struct xac_lock prepare; /* rank XAC_RANK_PREPARE                                 */

    /* Stored under the caller's publish lock (release), read by anyone (acquire). */
    xac_shared _Atomic uint64_t tail; /* first LSN not appended                       */
    /* Both stored under flush (release), read by anyone (acquire). */
    xac_shared _Atomic uint64_t written; /* first LSN not known to be in the segments  */
    xac_shared _Atomic uint64_t durable; /* first LSN not known to be on disk         */
    /* Stored under prepare (release), read by anyone (acquire). */
    xac_shared _Atomic uint64_t prepared; /* first LSN without room on disk           */
    /* Segments that end at or below this LSN are not needed and may be reused; 0 none.
       Stored under the checkpoint lock, read under prepare (relaxed: what was not needed
       once is never needed again, so an old value is as good). */
    xac_shared _Atomic uint64_t free_below;
    uint64_t reuse_next XAC_GUARDED_BY(prepare); /* number of the oldest left to reuse;
                                                    0 not looked for yet               */
    /* A word of wakes.h: `durable` or `poisoned` has changed, and flush has been unlocked. */
    xac_shared _Atomic uint32_t wakes;
    /* 0, or the errno of the write or sync that failed.  Set once, before flush is
       unlocked; read by everybody before anything is acknowledged. */
    xac_shared _Atomic int poisoned;

    /* Blocks appended so far; stored under the caller's publish lock, relaxed. */
    xac_shared _Atomic uint64_t appended;
    /* Blocks appended when the last flush began, and how many of them it took; stored
       under flush, relaxed: a guess at whether others commit, too. */
    xac_shared _Atomic uint64_t flushed;
    xac_shared _Atomic uint64_t batch;

    /* When the last flush ended, ns of CLOCK_MONOTONIC_COARSE; stored under flush,
       relaxed: what it is for need not be exact. */
    xac_shared _Atomic uint64_t flushed_ns;

    /* Counters, relaxed. */
    xac_shared _Atomic uint64_t n_writes;
    xac_shared _Atomic uint64_t n_syncs;
    struct xac_times sync_times; /* flush lock held                                    */

    struct xac_log_followers followers;
};

#define XAC_LOG_GAPS 4

/* How long a lone committer stays awake between its write and its sync (log.c).  Zeroed at first. */
struct xac_log_gap {
    uint64_t start_ns; /* of the write under way; 0 none                              */
    uint32_t n_flushes;
    uint32_t now;                   /* the gap of this flush                          */
    uint32_t best;                  /* and of most                                    */
    uint32_t n_tried[XAC_LOG_GAPS]; /* times, up to those that are remembered         */
    uint64_t cost_ns[XAC_LOG_GAPS]; /* write to end of sync, decaying mean            */
};

/* One process's access to the log. */
struct xac_log {
    struct xac_log_shared *sh;
    uint8_t *ring;     /* ring_bytes, in shared memory */
    _Atomic int dirfd; /* the log's directory; not owned; relaxed: any number will do */
    struct xac_handle dir; /* fixed                                                   */
    /* What to do when a descriptor has been lost; NULL: nothing can be done.  ret the
       directory's descriptor from now on; -1 with errno: this process must not write. */
    int (*mend)(void *arg);
    void *mend_arg;
    /* Descriptors of the segments used last, -1 if none; flush lock held. */
    int seg_fd[2];
    uint64_t seg_no[2];
    struct xac_handle seg[2];
    _Atomic int
        unwritten;    /* errno value of the last flush that could not begin; relaxed */
    uint64_t started; /* xac_log_flush_start has written up to here; flush lock held  */
    struct xac_log_gap gap; /* flush lock held                                        */
    /* Bit i: the i-th of 64 parts of the ring is in this process's page table (invariant 7);
       only grows, relaxed. */
    _Atomic uint64_t ready;
    /* The value of `prepared` at which making a segment failed last: that it is not
       tried ahead of time again and again on a full disk. */
    _Atomic uint64_t ahead_failed;
};

/* xac_log_state_init -- this process's part, without descriptors of segments; ret 0 or errno. */
int xac_log_state_init(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring,
                       int dirfd);

/* xac_log_detach -- close this process's descriptors. */
void xac_log_detach(struct xac_log *log);

/* xac_log_mend -- a descriptor has been lost; ret as struct xac_log's mend. */
int xac_log_mend(struct xac_log *log);

/* xac_log_dir -- the descriptor of the log's directory, mended if it has been lost; -1 with
   errno. */
int xac_log_dir(struct xac_log *log);

#endif /* XAC_LOG_STATE_H */
