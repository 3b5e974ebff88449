/* SPDX-License-Identifier: MIT */
/*
 * space.h -- B+-trees over page frames, whose resident pages refer to each other by frame.
 *
 * WHAT      A space is up to SWZ_TREES trees in one file of pages, of which a pool of frames
 *           (include/xac_frames.h) holds some.  While a page and its parent are resident the
 *           child's number in the parent is replaced by the child's frame ("swizzled"), so that
 *           following it looks nothing up.  After M. F. Gilbert, "Evaluation of Pointer Swizzling
 *           Techniques for DBMS Buffer Management" (TU Kaiserslautern, 2016), and G. Graefe et
 *           al., "In-Memory Performance for Big Data" (PVLDB 8(1), 2014).
 * NOT       Transactions: each call is atomic and, with a log, durable on request; several
 *           calls are not one.  Several processes: a space is one process's, and a child of
 *           fork() must not use it.
 * THREADS   Each joins and uses its own handle.
 * RETURNS   0, ENOENT, EEXIST or another errno value; a call that fails has changed nothing,
 *           except that after an error of the log every update returns that error (EIO, say)
 *           until the space is opened, and recovered, again.
 *
 * The functions declared here are in space_open.c, tree.c, page.c and check.c; page.h is for these alone.
 * doc/swizzling.md has the protocol, the format and the figures.
 */
#ifndef SWIZZLE_SPACE_H
#define SWIZZLE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tree.h"

#define SWZ_TREES 16

struct swz_config {
    uint32_t n_pages;    /* of the file, at most 2^31 - 1; creation only */
    uint32_t n_frames;   /* of the pool, at least 1                      */
    uint32_t n_threads;  /* that join at a time, at least 1              */
    uint32_t page_bytes; /* 0: 4096; a power of two, 2048 to 16384       */
    uint32_t policy;     /* enum xac_frames_policy                       */
    uint32_t weight_max; /* as in struct xac_frames_config; 0: default   */
    uint32_t delay_ns;   /* without directory: each read takes so long   */
    uint32_t full_tries; /* as in struct xac_frames_config; 0: default   */
    bool is_plain;       /* start without swizzling                      */
    bool has_log;        /* with a directory: updates survive a crash    */
    bool is_direct;      /* with a directory: O_DIRECT for pages         */
    /*
     * For comparison: resident pages are found in a hash table with locked buckets, as in the
     * thesis, and not in the pool's array.  4 bytes of memory for each frame, and more.
     */
    bool has_hash;
    /*
     * For comparison: the fix that brings a page in is a use of it, too, as in the thesis, whose
     * GCLOCK sets a page's count when it is unfixed.
     */
    bool counts_first_fix;
};

struct swz_space;
struct swz_thread;

/* What happened so far, all threads together. */
struct swz_stats {
    uint64_t fixes_root;     /* of roots, which are always found by frame            */
    uint64_t fixes_swizzled; /* of others through a swizzled reference               */
    uint64_t lookups;        /* of others through the pool's table; the misses too   */
    uint64_t misses;         /* of them that were not resident                       */
    uint64_t swizzles;
    uint64_t rereads_failed; /* references that changed while their latch was awaited */
    uint64_t latched_x;      /* times a page was latched exclusively                  */
    uint64_t peeks_failed; /* ways begun again by latches: others changed a page of it */
    uint64_t unswizzles;
    uint64_t refused_latch;    /* evictions refused: the page is latched            */
    uint64_t refused_children; /* ... refers to children by frame                   */
    uint64_t refused_parent;   /* ... the parent is latched by a writer             */
    uint64_t refused_moved;    /* ... a structural change came between               */
    uint64_t sweeps;           /* times the policy found nobody and the tree was walked */
    uint64_t sweep_evictions;
    uint64_t structural; /* splits, merges and the like                          */
    uint64_t log_bytes;
    uint64_t log_syncs;
};

/* How a page was found, for the sampled times. */
enum swz_way {
    SWZ_SWIZZLED,
    SWZ_LOOKUP,
    SWZ_MISS,
    SWZ_WAYS
};

/* One in 64 fixes of non-roots is timed; [0] shared, [1] exclusive. */
struct swz_times {
    uint64_t ticks[2][SWZ_WAYS]; /* of swz_ticks() */
    uint64_t n[2][SWZ_WAYS];
};

/* ---- Spaces ------------------------------------------------------------------------- */

/*
 * Open a space, after recovery if the last user died; create it if there is none.
 *
 * in   directory  exists; NULL: in memory, gone when closed
 * err  EINVAL a value out of range; EUCLEAN the file is not a space; ENOTSUP its version;
 *      of the file system; ENOMEM
 */
int swz_open(const char *directory, const struct swz_config *config,
             struct swz_space **spacep);

/* Write everything back and close.  All threads have left.  The first error, closed anyway. */
int swz_close(struct swz_space *space);

/* Everything written so far is in the file, and the log is empty.  Updates wait meanwhile. */
int swz_checkpoint(struct swz_space *space);

/* Swizzle from now on, or not; then no reference is left.  May be called under load. */
void swz_set_swizzling(struct swz_space *space, bool is_on);

/* err  EAGAIN (n_threads have joined), ENOMEM */
int swz_join(struct swz_space *space, struct swz_thread **threadp);
void swz_leave(struct swz_thread *thread);

/* The thread's updates so far are on disk when it returns; nothing without a log. */
int swz_sync(struct swz_thread *thread);

/* Hand the thread's updates so far to the operating system: they survive the process. */
int swz_commit(struct swz_thread *thread);

/* ---- Trees -------------------------------------------------------------------------- */

/*
 * Make tree number `tree`, empty.
 *
 * err  EINVAL a number or size out of range (fewer than three entries fit a page), EEXIST
 */
int swz_tree_create(struct swz_thread *thread, unsigned tree, uint32_t key_size,
                    uint32_t value_size);

/* ret ENOENT: no such entry.  out value, value_size bytes, may be NULL */
int swz_search(struct swz_thread *thread, unsigned tree, const void *key, void *value);

/*
 * As swz_search(), but it neither waits nor reads: only if every page of the way is resident, and
 * nobody is changing one.
 *
 * err  ENODATA  a page is not resident (with has_hash: not in that table)
 *      EAGAIN   a writer is at one, or came meanwhile
 */
int swz_try_search(struct swz_thread *thread, unsigned tree, const void *key,
                   void *value);

/* err  EEXIST (TREE_ADD), ENOSPC no page is left, ENOBUFS no frame is left */
int swz_insert(struct swz_thread *thread, unsigned tree, const void *key,
               const void *value, enum tree_mode mode);

/* Change a value in place; the callback may do so until it returns, and must be quick. */
typedef void swz_change(void *arg, void *value);
int swz_update(struct swz_thread *thread, unsigned tree, const void *key,
               swz_change *change, void *arg);

int swz_delete(struct swz_thread *thread, unsigned tree, const void *key);

/*
 * Visit the entries from `from` on (NULL: the first) in order.  The callback must not
 * call the space; the leaf is latched.
 */
int swz_scan(struct swz_thread *thread, unsigned tree, const void *from,
             tree_visit *visit, void *arg);

/* ---- Inspection --------------------------------------------------------------------- */

void swz_get_stats(const struct swz_space *space, struct swz_stats *statsp);
/* One thread's own fixes of pages that are no roots, and of them the misses. */
void swz_thread_counts(const struct swz_thread *thread, uint64_t *fixesp,
                       uint64_t *missesp);
void swz_get_times(const struct swz_space *space, struct swz_times *timesp);
struct xac_frames_stats;
void swz_get_pool_stats(const struct swz_space *space, struct xac_frames_stats *statsp);

/* A clock for times: the processor's counter where there is one, else nanoseconds. */
uint64_t swz_ticks(void);

/*
 * Whether everything is where it must be: the pool, the invariants of page.h, and each tree.
 * Only while no other call is under way.
 *
 * ret  NULL, or what is wrong
 */
const char *swz_check(struct swz_space *space);

#endif /* SWIZZLE_SPACE_H */
