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
 * A Non-blocking Buffer Management Based on the Generalized CLOCK", ICDE 2010; with it no
 * lock is taken and no memory is allocated by fix, unfix and mark_dirty.  The others are there
 * to be compared.
 *
 * RULES
 *   (1) A user handle belongs to one thread at a time.  Everything else may be called by any.
 *   (2) The bytes of a page may be touched only while it is fixed.  Whoever changes them calls
 *       mark_dirty() after the change and before unfix().
 *   (3) Threads that use the same page at once settle among themselves who may change it.
 *       The pool may call io->write for a page that somebody has fixed; a write that must
 *       not see half a change takes the caller's own latch.
 *   (4) A page is removed from the table only when the file has its newest bytes.
 *   (5) Memory shared by processes is one mapping of xac_frames_bytes() bytes, at any address
 *       in each; one process creates, the others attach.  A process that dies while it has
 *       pages fixed leaves them fixed, until xac_frames_reap().
 *   (6) After fork() the child attaches or joins for itself; handles of its parent's users
 *       are the parent's.
 *   (7) struct xac_frames_stats may get new fields at its end: it is given with its size, of
 *       which as much is filled in as the library knows; the rest becomes zero bytes.  The
 *       other structures stay as they are.
 *
 * RETURN VALUES  0, or a positive errno value; of functions given in io, what they returned.
 * A call that fails has changed nothing unless its comment says otherwise.
 */
#ifndef XAC_FRAMES_H
#define XAC_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef XAC_API
# if defined(__GNUC__)
#  define XAC_API __attribute__((visibility("default")))
# else
#  define XAC_API
# endif
#endif

/* What is replaced when a page comes in and all frames are taken. */
enum xac_frames_policy {
    XAC_FRAMES_NB_GCLOCK =
        0,              /* non-blocking; GCLOCK that decrements, then tests          */
    XAC_FRAMES_LRU = 1, /* from here on under a lock                                 */
    XAC_FRAMES_CLOCK = 2,
    XAC_FRAMES_GCLOCK = 3, /* the textbook's: tests, then decrements; no cap            */
    XAC_FRAMES_2Q = 4,     /* the full version; A1in 1/4, A1out 1/2 of the frames       */
    XAC_FRAMES_LIRS = 5,   /* 1 % of the frames for HIR pages                           */
    XAC_FRAMES_MQ = 6,     /* 8 queues, life time and Qout 4 times the frames           */
    XAC_FRAMES_CAR = 7,
    XAC_FRAMES_RANDOM = 8,
    XAC_FRAMES_SWEEP = 9, /* the next in the circle that nobody has fixed              */
    XAC_FRAMES_GCLOCK_K = 10, /* comes in at 0, a hit sets it to k; M. F. Gilbert, 2016 */
    XAC_FRAMES_N_POLICIES = 11
};

/* Locks of the policies that need one. */
enum xac_frames_lock {
    XAC_FRAMES_SLEEP = 0, /* waiters sleep                                              */
    XAC_FRAMES_SPIN = 1   /* test and test-and-set with exponential back-off            */
};

/* A pool.  Zero means the default where one is named. */
struct xac_frames_config {
    uint64_t n_pages;  /* at least 1, below 2^48; 8 bytes of memory for each */
    uint32_t n_frames; /* 1 to 2^30 */
    uint32_t n_users;  /* handles at a time, 1 to 65535; each adds two pages of memory,
                         and those it reads by fix_many() */

    /* A multiple of 64; 0: frames without memory, for simulations. */
    uint32_t page_bytes;
    uint32_t policy; /* enum xac_frames_policy */
    /*
     * NB_GCLOCK: visits of the hand that a page survives; default 3.  GCLOCK_K: k; default 10.
     */
    uint32_t weight_max;
    /*
     * NB_GCLOCK: words the hand is spread over, so that searches at the same time do not store to one
     * cache line; a power of two up to 64.  Each gives away 16 frames in turn.  Default: 1 below 4096
     * frames, then one for each 2048.
     */
    uint32_t hand_cells;
    /*
     * When every frame is found fixed, round after round, fix() gives up with ENOBUFS.  Either
     * after so many milliseconds, default 1000, in which it sleeps 0.05 to 5 ms between
     * rounds, once some have passed.  Or after full_tries rounds with a yield each, if that is not 0: it
     * never sleeps, but whoever has the pages may be off its processor for longer.
     */
    uint32_t full_ms;
    uint32_t full_tries;
    uint32_t lock; /* enum xac_frames_lock */
    /*
     * BP-Wrapper, for the policies under a lock (X. Ding et al., IEEE TPDS 2016): a user tells
     * its hits in batches, from batch_threshold on if the lock is free, at batch_queue in
     * any case.  1 <= batch_threshold <= batch_queue <= 4096; the paper's are 32 and 64.
     * Both 0: each hit takes the lock.
     */
    uint32_t batch_queue;
    uint32_t batch_threshold;
    uint32_t
        batch_cold; /* 1: nothing is brought into the cache before the lock is taken */
    /*
     * Hits that change nothing for the policy, those in 2Q's A1in, are not told; they are counted while
     * others wait to be told (section 4, figure 7).  1: they are told like others.
     */
    uint32_t batch_all;
    /*
     * BP-Wrapper's lists of free frames: a miss takes a frame of list page % free_lists without
     * the lock; who finds it empty evicts free_batch pages more.  Up to 1024 lists; 0: none, each miss takes
     * the lock.  free_batch is at most 64, 0 or lists that would hold more than all frames: as many
     * as keep the lists below 1/64 of the frames, at least 1.
     */
    uint32_t free_lists;
    uint32_t free_batch;
    /*
     * Policies under a lock: parts of the pool with a lock, a policy and frames of their own; a
     * page belongs to one.  Up to 256 and n_frames; default 1.
     */
    uint32_t parts;
    /*
     * Pages that a user may have fixed at a time, each noted in the pool's memory, so that
     * xac_frames_reap() can give them back; a page is then unfixed by who has fixed it.  Up to
     * 4096; default 0: no notes, no limit.
     */
    uint32_t pins_max;
};

/* Steps at which io->probe is called. */
enum xac_frames_step {
    XAC_FRAMES_AT_RESERVED =
        0,                     /* a vacant frame is reserved                            */
    XAC_FRAMES_AT_RETIRED = 1, /* a victim is retired, and still in its place           */
    XAC_FRAMES_AT_TAKEN = 2,   /* its place is taken, the table still has its page      */
    XAC_FRAMES_AT_PUT = 3,     /* before the table gets the new page                    */
    XAC_FRAMES_AT_LOCKED = 4   /* with the policy's lock                                */
};

/*
 * Where pages live when they are not in a frame.  Called by the thread that needs it,
 * without any lock of the pool; several at once, but never two writes of one page.
 * Each returns 0 or a positive errno value.
 *
 * With page_bytes == 0 none is called and all may be NULL.
 */
struct xac_frames_io {
    /* Fill data, page_bytes of it, with the page.  Two threads may read one page at once. */
    int (*read)(void *arg, uint64_t page, void *data);
    /* Store the page; its bytes must be in the file when it returns, synced or not. */
    int (*write)(void *arg, uint64_t page, const void *data);
    /* Before each write; NULL: nothing.  The write-ahead rule: make the log durable that far. */
    int (*before_write)(void *arg, uint64_t page, const void *data);
    /*
     * Read n pages, at most XAC_FRAMES_MANY, into n places, for xac_frames_fix_many(); NULL: read()
     * one after the other.  rcs[i]: what read() would have returned for pages[i].
     */
    void (*read_many)(void *arg, unsigned n, const uint64_t *pages, void *const *datas,
                      int *rcs);
    /* For experiments and tests: at the steps of a miss; NULL: nothing.  Not on a hit. */
    void (*probe)(void *arg, enum xac_frames_step step);
    void *arg;
};

struct xac_frames;      /* a process's handle on a pool */
struct xac_frames_user; /* a thread's handle            */

/* A fixed page. */
struct xac_frames_pin {
    void *data; /* page_bytes bytes, NULL in a simulation; page-aligned if page_bytes is a
                     multiple of 4096, so fit for O_DIRECT                                */
    uint64_t
        ref; /* the pool's                                                           */
};

/* Counters since creation, of all users. */
struct xac_frames_stats {
    uint64_t hits;      /* fixes that found the page in a frame                     */
    uint64_t misses;    /* fixes that brought it in; hits + misses = fixes          */
    uint64_t evictions; /* pages that left a frame for another page                 */
    uint64_t reads;     /* calls of io->read                                        */
    uint64_t
        reads_duplicate;    /* of them in vain: another thread had read it meanwhile    */
    uint64_t writes;        /* calls of io->write                                       */
    uint64_t writes_inline; /* of them while looking for a frame                        */
    uint64_t lost_races;    /* frames taken in vain: another brought the page in first  */
    uint64_t rescues;       /* pages kept by a fix while they were being evicted        */
    uint64_t stale_refs;    /* references found to be of a frame's former life          */
    uint64_t sweep_steps;   /* frames looked at by the hand, if it asks who may leave   */
    uint64_t full_yields;   /* rounds in which all frames were fixed                    */
    uint64_t locks;         /* times the policy's lock was acquired */
    uint64_t lock_waits;    /* of them not at once */
    uint64_t lock_tries;    /* times a batch found it taken and went on */
    uint64_t hits_stale;    /* hits in batches whose page had left its frame */
    uint64_t lock_sleeps;   /* times a thread went to sleep for the policy's lock */
    uint64_t batches;       /* batches told to a policy */
    uint64_t batches_full;  /* of them after a wait, with the queue full */
    uint64_t batched;       /* hits and arrivals in them, stale ones included */
    uint64_t refills;       /* times a list of free frames was found empty, and filled */
    uint64_t free_in;       /* frames put into lists of free frames ... */
    uint64_t free_out;      /* ... and taken out: the difference is there now */
    uint64_t limbo_ends;    /* of those taken out: told to the policy, or given back */
    uint64_t lock_wait_ns;  /* waited for the policy's lock, all users together */
    uint64_t no_victim;     /* searches of a policy that found nothing, clean or dirty */
    uint64_t refused_barred; /* frames passed by because their owner said so */
    uint64_t refused_owner;  /* evictions that the owner refused at the last moment */
    uint64_t offers;         /* frames that a policy under a lock offered to make room */
};

/* ---- Pool ------------------------------------------------------------------------- */

/*
 * Bytes of memory a pool needs; 0 if the configuration is not allowed.
 * Pages of memory that are never touched are never used: 8 * n_pages may be large.
 */
XAC_API size_t xac_frames_bytes(const struct xac_frames_config *config);

/*
 * Make a pool.
 *
 * in   memory  zero-filled, 4096-aligned, xac_frames_bytes() long, owned by the caller and kept
 *              until xac_frames_close() everywhere; or NULL: the pool maps its own, shared with
 *              the children of a later fork()
 * in   io      copied; may be NULL if page_bytes is 0
 * err  EINVAL (a value out of range, memory misaligned, no io), ENOMEM
 */
XAC_API int xac_frames_create(const struct xac_frames_config *config, void *memory,
                              const struct xac_frames_io *io, struct xac_frames **poolp);

/*
 * A handle on a pool that another process made in memory shared with this one.
 *
 * err  EINVAL (no io), ENOENT (no pool there, or not complete yet), ENOMEM
 */
XAC_API int xac_frames_attach(void *memory, const struct xac_frames_io *io,
                              struct xac_frames **poolp);

/*
 * Give the handle back, and memory that the pool mapped itself.  Pages are not written:
 * flush_all() first.  All of the handle's users have left.
 */
XAC_API void xac_frames_close(struct xac_frames *pool);

/* ---- Users ------------------------------------------------------------------------ */

/* Become a user.  err  EAGAIN (n_users are in use), ENOMEM */
XAC_API int xac_frames_join(struct xac_frames *pool, struct xac_frames_user **userp);

/* The opposite; nothing is fixed by it any more. */
XAC_API void xac_frames_leave(struct xac_frames_user *user);

/*
 * Give back what a process that has died had fixed, and its users' places; and a policy's lock if
 * it had it.  Others go on meanwhile.  Needs pins_max.
 *
 * in   pid  of the process; not yet given to another one
 * err  EINVAL (no pins_max), EAGAIN: it died in the middle of a call; what that one had in hand
 *      stays lost, at most a frame and two pages of memory for each of its users and what it
 *      was about to evict, until xac_frames_repair()
 */
XAC_API int xac_frames_reap(struct xac_frames *pool, int32_t pid);

/*
 * Put everything in its place after calls that were cut short.  No other call is under way, in
 * any process; fixed is what living users have noted (pins_max), and nothing else.
 *
 * err  EINVAL (no pins_max), ENOMEM
 */
XAC_API int xac_frames_repair(struct xac_frames *pool);

/* ---- Pages ------------------------------------------------------------------------ */

/* Flag of fix(): the page has no bytes in the file yet.  Zeroed and dirty unless in a frame. */
#define XAC_FRAMES_NEW 1u

/*
 * Fix a page; it stays where it is until unfix(), and may be fixed many times.
 *
 * NB_GCLOCK: waits for nobody but its own read, its own write if no clean page can make
 * room, and an unfix() if every page is fixed; lock-free (Nb-GCLOCK, section on correctness, Theorem
 * 7).  The others wait for the policy's lock, under which nothing is read or written.
 *
 * Under any policy a clean page is looked for among the first to go: behind 16 dirty ones a dirty
 * one is written instead.
 *
 * err  EINVAL  page out of range, unknown flag
 *      ENOBUFS every frame was found fixed for full_ms, or full_tries times; at once if pins_max
 *              is not 0 and this user has all of them fixed
 *      EMFILE  the user has pins_max pages fixed
 *      of io->read; of io->before_write, io->write if no clean page could make room, in a few rounds
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

/* The page has other bytes than the file.  Only while fixed. */
XAC_API void xac_frames_mark_dirty(struct xac_frames_user *user,
                                   const struct xac_frames_pin *pin);

/* The opposite of fix(). */
XAC_API void xac_frames_unfix(struct xac_frames_user *user,
                              const struct xac_frames_pin *pin);

/*
 * Write the page if it is in a frame and dirty.  Changes marked before the call are in the
 * file when it returns, be it by another thread's write, which it waits for.
 *
 * err  EINVAL page out of range; of io->before_write, io->write: the page is dirty as before;
 *      EOWNERDEAD it waits, and xac_frames_reap() found a call cut short: repair first
 */
XAC_API int xac_frames_flush(struct xac_frames_user *user, uint64_t page);

/* Flush all pages; goes on after an error and returns the first. */
XAC_API int xac_frames_flush_all(struct xac_frames_user *user);

/*
 * Forget the page, unwritten if dirty, as after truncation of its file.  The caller sees to
 * it that nobody fixes it meanwhile.
 *
 * err  EINVAL page out of range, EBUSY somebody has it fixed
 */
XAC_API int xac_frames_invalidate(struct xac_frames_user *user, uint64_t page);

/* ---- A file ----------------------------------------------------------------------- */

/* Flags of file_open(). */
#define XAC_FRAMES_DIRECT \
 1u /* past the page cache (O_DIRECT), if the file system can      */
#define XAC_FRAMES_NO_URING \
 2u /* read_many without io_uring, as where the kernel has none    */

struct xac_frames_file;

/*
 * Pages in a file, page k at k * page_bytes; what lies behind its end is zeros.
 *
 * in   path        made if it is not there
 * in   page_bytes  as of the pool; with DIRECT a multiple of 4096
 * out  io          read, write and read_many are set, and arg; the rest is as it was
 * err  EINVAL, ENOMEM, those of open(2)
 */
XAC_API int xac_frames_file_open(const char *path, uint32_t page_bytes, unsigned flags,
                                 struct xac_frames_io *io,
                                 struct xac_frames_file **filep);

/* Sync what was written.  err  those of fsync(2) */
XAC_API int xac_frames_file_sync(struct xac_frames_file *file);

/* Of the flags, those that are in effect: DIRECT, and NO_URING if reads go one by one. */
XAC_API unsigned xac_frames_file_flags(const struct xac_frames_file *file);

/* Close it; the pool that uses it is closed before. */
XAC_API void xac_frames_file_close(struct xac_frames_file *file);

/* ---- Inspection ------------------------------------------------------------------- */

/*
 * Counters; each is right, together they are of slightly different moments.
 *
 * in   size  sizeof *statsp; see (7)
 * err  EINVAL statsp is NULL, or size does not hold the first field
 */
XAC_API int xac_frames_get_stats(const struct xac_frames *pool,
                                 struct xac_frames_stats *statsp, size_t size);

/*
 * Whether everything is where it must be.  Only while no other call is under way.
 *
 * out  n_pinsp  pins on all pages together; may be NULL
 * ret  NULL, or what is wrong
 */
XAC_API const char *xac_frames_check(const struct xac_frames *pool, uint64_t *n_pinsp);

#ifdef __cplusplus
}
#endif

#endif /* XAC_FRAMES_H */
