/* SPDX-License-Identifier: MIT */
/*
 * xac_frames.h -- page frames: a fixed amount of memory that holds pages of something larger.
 *
 * A pool has n_frames frames for pages numbered 0 to n_pages - 1.  A thread fixes a page,
 * uses its bytes, and unfixes it; a page that nobody has fixed may be replaced by another.
 *
 *     struct xac_frames_config config = {.n_pages = 1 << 20, .n_frames = 4096,
 *                                        .n_users = 8, .page_bytes = 4096};
 *     struct xac_frames_io io = {.read = my_read, .write = my_write, .arg = &my_file};
 *     xac_frames_create(&config, NULL, &io, &pool);
 *     xac_frames_join(pool, &user);
 *     xac_frames_fix(user, 17, 0, &pin);
 *     ((char *)pin.data)[0] = 1;
 *     xac_frames_mark_dirty(user, &pin);
 *     xac_frames_unfix(user, &pin);
 *
 * It needs nothing else of libxac.  The default policy is Nb-GCLOCK: M. Yui et al., "Nb-GCLOCK:
 * A Non-blocking Buffer Management Based on the Generalized CLOCK", ICDE 2010.  With it fix,
 * unfix and mark_dirty take no lock and allocate no memory.  The other policies are for
 * comparison.
 *
 * RULES
 *   (1) A user handle belongs to one thread at a time.  Any thread may call all other functions.
 *   (2) The bytes of a page may be touched only while it is fixed.  A thread that changes them
 *       calls mark_dirty() after the change and before unfix().
 *   (3) Threads that use the same page at the same time need a latch of their own to decide
 *       which one may change it.  The pool may call io->write for a page that is fixed; if
 *       that must not see half a change, io->write takes this latch.
 *   (4) A page is removed from the table only when the file has its newest bytes.
 *   (5) Memory shared by processes is one mapping of xac_frames_bytes() bytes, at any address
 *       in each; one process creates, the others attach.  A process that dies while it has
 *       pages fixed leaves them fixed, until xac_frames_reap().
 *   (6) After fork() the child attaches or joins for itself; it must not use handles of its
 *       parent's users.
 *   (7) struct xac_frames_stats and struct xac_frames_layout may get new fields at their end.
 *       The caller passes the size; the library fills in the fields that it knows and sets the
 *       rest to zero bytes.  The other structures do not change.
 *
 * RETURN VALUES  0, or a positive errno value.  If a function in io fails, its value is
 * returned.  A call that fails has changed nothing, unless its comment says otherwise.
 */
#ifndef XAC_FRAMES_H
#define XAC_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The replacement policy: which page leaves its frame when another one needs it. */
enum xac_frames_policy {
    XAC_FRAMES_NB_GCLOCK =
        0,              /* non-blocking; GCLOCK that decrements, then tests          */
    XAC_FRAMES_LRU = 1, /* this one and all that follow need a lock                  */
    XAC_FRAMES_CLOCK = 2,
    XAC_FRAMES_GCLOCK = 3, /* as in textbooks: tests, then decrements; no maximum       */
    XAC_FRAMES_2Q = 4,     /* the full version; A1in 1/4, A1out 1/2 of the frames       */
    XAC_FRAMES_LIRS = 5,   /* 1 % of the frames for HIR pages                           */
    XAC_FRAMES_MQ = 6,     /* 8 queues, life time and Qout 4 times the frames           */
    XAC_FRAMES_CAR = 7,
    XAC_FRAMES_RANDOM = 8,
    XAC_FRAMES_SWEEP = 9, /* the next in the circle that is not fixed                  */
    XAC_FRAMES_GCLOCK_K = 10, /* starts at 0, a hit sets it to k; M. F. Gilbert, 2016   */
    XAC_FRAMES_N_POLICIES = 11
};

/* Locks of the policies that need one. */
enum xac_frames_lock {
    XAC_FRAMES_SLEEP = 0, /* waiters sleep                                              */
    XAC_FRAMES_SPIN = 1   /* test and test-and-set with exponential back-off            */
};

/* A pool.  Zero means the default, for fields with a default. */
struct xac_frames_config {
    uint64_t n_pages;  /* at least 1, below 2^48; 8 bytes of memory for each */
    uint32_t n_frames; /* 1 to 2^30 */
    /* Handles at a time, 1 to 65535.  Each needs two more pages of memory, and as many as it reads
       by fix_many(). */
    uint32_t n_users;

    /* A multiple of 64; 0: frames without memory, for simulations. */
    uint32_t page_bytes;
    uint32_t policy; /* enum xac_frames_policy */
    /*
     * NB_GCLOCK: how many visits of the hand a page survives, default 3.  GCLOCK_K: k, default 10.
     */
    uint32_t weight_max;
    /*
     * NB_GCLOCK: number of words that the hand consists of, so that searches at the same time do
     * not store to one cache line; a power of two up to 64.  Each word hands out 16 frames at a
     * time.  Default: 1 below 4096 frames, then one for each 2048.
     */
    uint32_t hand_cells;
    /*
     * If fix() finds every frame fixed in all its rounds, it gives up with ENOBUFS.  If full_tries is
     * 0, it does so after full_ms milliseconds, default 1000; after the first rounds it sleeps 0.05 to
     * 5 ms between them.  Otherwise it does so after full_tries rounds, with a yield after each: it
     * never sleeps, but the thread that has fixed the pages may not get a processor in that time.
     */
    uint32_t full_ms;
    uint32_t full_tries;
    uint32_t lock; /* enum xac_frames_lock */
    /*
     * BP-Wrapper, for the policies that need a lock (X. Ding et al., IEEE TPDS 2016): a user tells
     * the policy of its hits in batches.  With batch_threshold hits it tries the lock, with
     * batch_queue hits it waits for it.  1 <= batch_threshold <= batch_queue <= 4096; the paper
     * has 32 and 64.  Both 0: each hit takes the lock.
     */
    uint32_t batch_queue;
    uint32_t batch_threshold;
    /* 1: nothing is brought into the cache before the lock is taken. */
    uint32_t batch_cold;
    /*
     * 0: hits that change nothing for the policy, those in 2Q's A1in, are not put into a batch, but
     * count for its size (section 4, figure 7).  1: they are put into it like others.
     */
    uint32_t batch_all;
    /*
     * BP-Wrapper's lists of free frames: a miss takes a frame from list page % free_lists without
     * the lock.  If the list is empty, it evicts free_batch pages more.  Up to 1024 lists; 0: none, each
     * miss takes the lock.  free_batch is at most 64.  If it is 0, or the lists would hold more than
     * all frames, it is the number, at least 1, that keeps the lists below 1/64 of the frames.
     */
    uint32_t free_lists;
    uint32_t free_batch;
    /*
     * Policies that need a lock: number of parts of the pool.  Each part has a lock, a policy and
     * frames of its own, and each page belongs to one part.  Up to 256 and n_frames; default 1.
     */
    uint32_t parts;
    /*
     * How many pages a user may have fixed at a time.  The pool's memory has a note of each, so that
     * xac_frames_reap() can give them back; then only the user that has fixed a page may unfix
     * it.  Up to 4096; default 0: no notes, no limit.
     */
    uint32_t pins_max;
};

/* Steps at which io->probe is called. */
enum xac_frames_step {
    XAC_FRAMES_AT_RESERVED =
        0,                     /* a vacant frame is reserved                            */
    XAC_FRAMES_AT_RETIRED = 1, /* a victim is retired, but still in its place           */
    XAC_FRAMES_AT_TAKEN = 2,   /* its place is taken, but the table still has its page  */
    XAC_FRAMES_AT_PUT = 3,     /* before the table gets the new page                    */
    XAC_FRAMES_AT_LOCKED = 4   /* with the policy's lock                                */
};

/*
 * Where pages are kept that are not in a frame.  The thread that needs a page calls these, without
 * any lock of the pool.  Several calls may run at the same time, but never two writes of one
 * page.  Each returns 0 or a positive errno value.
 *
 * With page_bytes == 0 none is called and all may be NULL.
 */
struct xac_frames_io {
    /* Fill data, page_bytes of it, with the page.  Two threads may read one page at once. */
    int (*read)(void *arg, uint64_t page, void *data);
    /* Store the page; its bytes must be in the file when it returns, synced or not. */
    int (*write)(void *arg, uint64_t page, const void *data);
    /* Called before each write, for the write-ahead rule: make the log durable as far as the
       page needs it.  May be NULL. */
    int (*before_write)(void *arg, uint64_t page, const void *data);
    /*
     * Read n pages, at most XAC_FRAMES_MANY, into n places, for xac_frames_fix_many().  rcs[i] is what
     * read() would have returned for pages[i].  NULL: read() is called for one after the other.
     */
    void (*read_many)(void *arg, unsigned n, const uint64_t *pages, void *const *datas,
                      int *rcs);
    /* For experiments and tests: called at the steps of a miss, not on a hit.  May be NULL. */
    void (*probe)(void *arg, enum xac_frames_step step);
    void *arg;
};

struct xac_frames;      /* a process's handle on a pool */
struct xac_frames_user; /* a thread's handle            */

/* A fixed page. */
struct xac_frames_pin {
    /* page_bytes bytes, NULL in a simulation; aligned for O_DIRECT if page_bytes is a multiple
       of 4096. */
    void *data;
    uint64_t ref; /* used by the pool only */
};

/* Counters since creation, of all users. */
struct xac_frames_stats {
    uint64_t hits;      /* fixes that found the page in a frame                     */
    uint64_t misses;    /* fixes that brought it in; hits + misses = fixes          */
    uint64_t evictions; /* pages that left a frame for another page                 */
    uint64_t reads;     /* calls of io->read                                        */
    /* Of them useless: another thread had read the page meanwhile. */
    uint64_t reads_duplicate;
    uint64_t writes;        /* calls of io->write                                       */
    uint64_t writes_inline; /* of them while looking for a frame                        */
    uint64_t lost_races;    /* frames taken for nothing: another thread was first       */
    uint64_t rescues;       /* pages kept by a fix while they were being evicted        */
    uint64_t stale_refs;    /* references to a page that has left its frame             */
    uint64_t sweep_steps;   /* frames that the hand has visited                         */
    uint64_t full_yields;   /* rounds in which all frames were fixed                    */
    uint64_t locks;         /* times the policy's lock was acquired */
    uint64_t lock_waits;    /* of them after waiting */
    uint64_t lock_tries;    /* times a batch found it taken and went on without it */
    uint64_t hits_stale;    /* hits in batches whose page had left its frame */
    uint64_t lock_sleeps;   /* times a thread went to sleep for the policy's lock */
    uint64_t batches;       /* batches that a policy has got */
    uint64_t batches_full;  /* of them after waiting, because the queue was full */
    uint64_t batched;       /* hits and new pages in them, hits_stale included */
    uint64_t refills;       /* times a list of free frames was found empty, and filled */
    uint64_t free_in;       /* frames put into lists of free frames ... */
    uint64_t free_out;      /* ... and taken out: the difference is in them now */
    uint64_t limbo_ends;   /* of those taken out: the policy was told, or got them back */
    uint64_t lock_wait_ns; /* time waited for the policy's lock, all users together */
    uint64_t no_victim;    /* searches of a policy that found nothing, clean or dirty */
    uint64_t refused_barred; /* frames not evicted because their owner had barred them */
    uint64_t refused_owner;  /* evictions that the owner refused at the last moment */
    uint64_t offers;         /* victims that a policy with a lock has proposed */
};

/* Offsets in a pool's memory. */
struct xac_frames_layout {
    uint64_t table_offset; /* the table: 8 bytes for each page, in the order of pages */
    uint64_t table_bytes;
    uint64_t data_offset; /* the bytes of pages, up to the end */
};

/* ---- Pool ------------------------------------------------------------------------- */

/*
 * Bytes of memory that a pool needs; 0 if the configuration is not allowed.  8 * n_pages may be
 * large, but the system gives memory only for pages of it that are touched.
 */
XAC_API size_t xac_frames_bytes(const struct xac_frames_config *config);

/*
 * Make a pool.
 *
 * in   memory  zero-filled, 4096-aligned, xac_frames_bytes() long.  The caller owns it and keeps
 *              it until all processes have called xac_frames_close().  NULL: the pool maps
 *              memory of its own, which it shares with children of a later fork()
 * in   io      copied; may be NULL if page_bytes is 0
 * err  EINVAL (a value out of range, memory misaligned, no io), ENOMEM
 */
XAC_API int xac_frames_create(const struct xac_frames_config *config, void *memory,
                              const struct xac_frames_io *io, struct xac_frames **poolp);

/*
 * Get a handle on a pool that another process made in memory shared with this one.
 *
 * err  EINVAL (no io), ENOENT (no pool there, or not complete yet), ENOMEM
 */
XAC_API int xac_frames_attach(void *memory, const struct xac_frames_io *io,
                              struct xac_frames **poolp);

/*
 * Give the handle back, and the memory if the pool has mapped it.  All of the handle's users
 * must have left.  Pages are not written: call flush_all() first.
 */
XAC_API void xac_frames_close(struct xac_frames *pool);

/* ---- Users ------------------------------------------------------------------------ */

/* Become a user.  err  EAGAIN (n_users are in use), ENOMEM */
XAC_API int xac_frames_join(struct xac_frames *pool, struct xac_frames_user **userp);

/* Stop being a user.  It must not have a page fixed. */
XAC_API void xac_frames_leave(struct xac_frames_user *user);

/*
 * Give back what a dead process had: the pages that it had fixed, its users' places, and a
 * policy's lock.  Other processes go on meanwhile.  Needs pins_max.
 *
 * in   pid  of the process; the system must not have given it to another one yet
 * err  EINVAL (no pins_max), EAGAIN: it died in the middle of a call.  What this call had taken
 *      stays lost until xac_frames_repair(): at most a frame and two pages of memory for each
 *      of its users, and the pages that it was evicting
 */
XAC_API int xac_frames_reap(struct xac_frames *pool, int32_t pid);

/*
 * Repair the pool after processes have died in the middle of calls.  No other call may run
 * meanwhile, in any process.  Afterwards the pages are fixed that living users have noted
 * (pins_max), and no others.
 *
 * err  EINVAL (no pins_max), ENOMEM
 */
XAC_API int xac_frames_repair(struct xac_frames *pool);

/* ---- Pages ------------------------------------------------------------------------ */

/* Flag of fix(): the page has no bytes in the file yet.  If it is not in a frame, it is not read,
   but filled with zeros and marked dirty. */
#define XAC_FRAMES_NEW 1u

/*
 * Fix a page.  It stays in its frame until unfix().  A page may be fixed many times.
 *
 * NB_GCLOCK is lock-free (Nb-GCLOCK, section on correctness, Theorem 7): a fix waits only for its
 * own read, for its own write if no clean page can make room, and for an unfix() if every page is
 * fixed.  The other policies wait for a lock too; no page is read or written under that lock.
 *
 * All policies prefer to evict a clean page.  If the first 16 that they propose are dirty, a dirty
 * one is written and evicted.
 *
 * err  EINVAL  page out of range, unknown flag
 *      ENOBUFS every frame was found fixed for full_ms, or full_tries times; at once if pins_max
 *              is not 0 and this user has fixed all frames
 *      EMFILE  the user has pins_max pages fixed
 *      errors of io->read; and, if no clean page could make room in a few rounds, of
 *      io->before_write and io->write
 */
XAC_API int xac_frames_fix(struct xac_frames_user *user, uint64_t page, unsigned flags,
                           struct xac_frames_pin *pinp);

/* Most pages of one xac_frames_fix_many(). */
#define XAC_FRAMES_MANY 64u

/*
 * Fix n different pages, 1 to XAC_FRAMES_MANY; those that are not in frames are read together,
 * if io->read_many is given.
 *
 * out  pins  n of them; nothing is fixed after an error
 * err  as xac_frames_fix(); ENOBUFS also if fewer than n frames can be had at once
 */
XAC_API int xac_frames_fix_many(struct xac_frames_user *user, unsigned n,
                                const uint64_t *pages, struct xac_frames_pin *pins);

/* Say that the page has other bytes than the file.  The page must be fixed. */
XAC_API void xac_frames_mark_dirty(struct xac_frames_user *user,
                                   const struct xac_frames_pin *pin);

/* Let a fixed page go. */
XAC_API void xac_frames_unfix(struct xac_frames_user *user,
                              const struct xac_frames_pin *pin);

/*
 * Write the page if it is in a frame and dirty.  Changes that were marked before the call are in
 * the file when it returns.  If another thread is writing the page, the call waits for that.
 *
 * err  EINVAL page out of range; errors of io->before_write and io->write: the page stays dirty;
 *      EOWNERDEAD it would wait for a process that died in the middle of a call: call
 *      xac_frames_repair() first
 */
XAC_API int xac_frames_flush(struct xac_frames_user *user, uint64_t page);

/* Flush all pages.  After an error it goes on, and returns the first error. */
XAC_API int xac_frames_flush_all(struct xac_frames_user *user);

/*
 * Forget the page without writing it, for example after its file was truncated.  The caller makes
 * sure that no thread fixes it meanwhile.
 *
 * err  EINVAL page out of range, EBUSY it is fixed
 */
XAC_API int xac_frames_invalidate(struct xac_frames_user *user, uint64_t page);

/* ---- A file ----------------------------------------------------------------------- */

/* Flags of file_open(). */
#define XAC_FRAMES_DIRECT \
 1u /* past the page cache (O_DIRECT), if the file system has that */
#define XAC_FRAMES_NO_URING \
 2u /* read_many without io_uring, as on kernels that have none    */

struct xac_frames_file;

/*
 * Keep pages in a file: page k at k * page_bytes.  Pages behind its end are read as zeros.
 *
 * in   path        made if it is missing
 * in   page_bytes  that of the pool; with DIRECT a multiple of 4096
 * out  io          read, write, read_many and arg are set, the other fields are left alone
 * err  EINVAL, ENOMEM, those of open(2)
 */
XAC_API int xac_frames_file_open(const char *path, uint32_t page_bytes, unsigned flags,
                                 struct xac_frames_io *io,
                                 struct xac_frames_file **filep);

/* Sync what was written.  err  those of fsync(2) */
XAC_API int xac_frames_file_sync(struct xac_frames_file *file);

/* The flags that are in effect: DIRECT, and NO_URING if pages are read one by one. */
XAC_API unsigned xac_frames_file_flags(const struct xac_frames_file *file);

/* Close it.  The pool that uses it must be closed before. */
XAC_API void xac_frames_file_close(struct xac_frames_file *file);

/* ---- Inspection ------------------------------------------------------------------- */

/*
 * Read the counters.  Each one is right, but they may be of slightly different moments.
 *
 * in   size  sizeof *statsp; see (7)
 * err  EINVAL statsp is NULL, or size does not hold the first field
 */
XAC_API int xac_frames_get_stats(const struct xac_frames *pool,
                                 struct xac_frames_stats *statsp, size_t size);

/*
 * Where the table and the bytes of pages lie in the pool's memory.  If this memory is a mapped
 * file, these two may be holes when the pool is made.  A page's entry in the table needs disk space
 * before the page is fixed for the first time.
 *
 * in   size  sizeof *layoutp; see (7)
 * err  EINVAL layoutp is NULL, or size does not hold the first field
 */
XAC_API int xac_frames_get_layout(const struct xac_frames *pool,
                                  struct xac_frames_layout *layoutp, size_t size);

/*
 * Check the whole pool.  No other call may run meanwhile.
 *
 * out  n_pinsp  how often all pages are fixed, in sum; may be NULL
 * ret  NULL if everything is right, or text that says what is wrong
 */
XAC_API const char *xac_frames_check(const struct xac_frames *pool, uint64_t *n_pinsp);

#ifdef __cplusplus
}
#endif

#endif /* XAC_FRAMES_H */
