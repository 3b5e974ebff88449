/* SPDX-License-Identifier: MIT */
/*
 * env_state.h -- what one process knows of an environment that it has open: directory, control
 * region, log, buffer files, the contexts of its transactions.
 *
 * OWNER     Who opened it.  A process may have several.  They are opened, joined and left in env/.
 * THREADS   Opened, closed and mapped into by one thread at a time (api.c sees to it).
 *           A field that is not atomic does not change while it is open, or says its lock.
 */
#ifndef XAC_ENV_STATE_H
#define XAC_ENV_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <xac.h>
#include <xac_frames.h>

#include "base/handle.h"
#include "log/claim.h"
#include "shared/address_list.h"
#include "shared/layout.h"

struct xac_ckpt;
struct xac_env;
struct xac_frames;
struct xac_frames_user;
struct xac_frozen;
struct xac_lineage_line;
struct xac_outofcore_ctx;
struct xac_policy;
struct xac_saved;
struct xac_standby;
struct xac_view;
struct xac_way;

#define XAC_FREED_MAX 256

/* Two of versions, and the one of pages that are updated in place (in_place.h). */
#define XAC_BUFFER_FILES    3
#define XAC_BUFFER_IN_PLACE 2

/* One process's access to the buffer files. */
struct xac_buffers {
    int fd
        [XAC_BUFFER_FILES]; /* -1 if not open                                              */
    struct xac_handle
        handle[XAC_BUFFER_FILES]; /* of fd                                              */
    /* Mapped whole; NULL if not.  Stored last (release), for threads look at any time. */
    uint8_t *_Atomic base[XAC_BUFFER_FILES];
    atomic_flag opening; /* held while a file is opened                                */
    /* Threads of this process that copy from the in-place file; it stays mapped meanwhile. */
    _Atomic uint32_t n_copying;
    size_t reserve
        [XAC_BUFFER_FILES]; /* bytes of address space                                      */
    char *path
        [XAC_BUFFER_FILES]; /* the second one relative to the environment directory        */
    _Atomic uint64_t n_second; /* looks at frames of the second file; relaxed          */
    _Atomic uint64_t cursor; /* where this process looks for a free frame next; relaxed */
    /* Frames that this process has freed last, which the caches still hold, and which it has
       mapped: hints only, so relaxed, and one may be there twice or be lost. */
    _Atomic uint64_t freed[XAC_FREED_MAX];
    _Atomic uint64_t n_freed;   /* in the ring; the newest is the one before           */
    _Atomic uint64_t n_faulted; /* frames up to this are in the page table; relaxed    */
    /* Descriptions of frames up to this are in the page table; only grows, relaxed. */
    _Atomic uint64_t n_ready;
};

/* One process's access to the pool. */
struct xac_outofcore {
    struct xac_frames *pool; /* NULL: off, or not attached                            */
    struct xac_frames_layout layout; /* of the pool's memory                          */
    void *memory;
    int fd;                       /* of the pool's file                               */
    struct xac_handle handle;     /* of fd                                            */
    struct xac_frames_user *user; /* for checkpoints                                  */
    pid_t user_pid;               /* its process: after a fork the parent             */
    /* Descriptors by file id, for reading; grows by a copy, for the handler looks. */
    struct xac_outofcore_files *_Atomic files;
    atomic_flag adding; /* held while it grows                                        */
    /* Bit k: part k of the pool's table has memory; relaxed. */
    _Atomic uint64_t *backed;
};

#define XAC_FILE_FDS_MAX 64

/* A process's descriptors of registered files, few at a time; checkpoint lock held. */
struct xac_file_fds {
    uint32_t n, last;
    uint64_t clock;
    struct xac_file_fd {
        uint32_t file;
        int fd;
        struct xac_handle handle;
        uint64_t used; /* clock                                                        */
        bool is_dirty; /* written since it was synced                                  */
    } slot[XAC_FILE_FDS_MAX];
};

/* What could not be had for an access that failed: set by the function that cannot get it. */
enum xac_lacking {
    XAC_LACKS_MEMORY = 0, /* memory or mappings                                         */
    XAC_LACKS_FILE,       /* the page, out of its file                                  */
    XAC_LACKS_SPILLED,    /* the working copy, out of the temporary file (outofcore.h)  */
    XAC_LACKS_VERSION,    /* the version, out of the buffer file (version.h)            */
    XAC_LACKS_REGION,     /* room in the control region to record the access            */
    XAC_LACKS_SAVED       /* room to keep the page as it was at a savepoint (saved.h)   */
};

/* Pages of a transaction that are kept as they were; they are to stay in the processor's cache. */
#define XAC_IMAGES 4

/* Who works on the open transaction of a context: see team.h. */
struct xac_team {
    _Atomic uint64_t
        id; /* 0: no team, see (1); relaxed, as it is changed under the lock   */
    _Atomic uint32_t
        lock;    /* 0 free, 1 taken, 2 taken and somebody sleeps                    */
    bool is_all; /* all threads of the process are in it; under the lock, as ...    */
    unsigned
        n_joined; /* ... this: see (4)                                               */
    uint32_t
        n_spurious; /* traps in a row on pages that had the access; see team.c         */
    _Atomic pthread_t
        holder; /* of the lock; 0: nobody.  Relaxed: that it is us can only have been stored by us */
};

#define XAC_ENDED_NOTHING UINT64_MAX

/* The private side: what the thread that runs transactions knows. */
struct xac_ctx {
    struct xac_env *env;
    struct xac_ctx *next;     /* in env's list of contexts of threads (thread.h)       */
    struct xac_ctx *next_own; /* in its thread's list, one for each environment (ctx.h) */
    struct xac_ctx *next_open; /* in its thread's list of open transactions (ctx.h)    */
    struct xac_view *views;    /* list of the mappings that its transactions use        */
    uint64_t slot;             /* index of its slot                                     */
    struct xac_txn *txn; /* the slot, NULL if none yet                              */
    /* Thread of the open transaction, or the one that keeps transactions out for a
       moment; 0 none.  Taken by exchange, so that one thread of many gets it. */
    _Atomic pthread_t owner;
    /* Threads that wait for it, and a word on which they sleep; see api_await.c.  Relaxed: hints. */
    _Atomic uint32_t n_waiting, woken;
    uint64_t
        until_ns; /* its begin and end give up waiting then, monotonic; 0: wait_ms alone */
    int depth;    /* nesting of transactions and queries                     */
    int query_depth;  /* nesting of the queries among them, innermost            */
    int orphan_depth; /* ends still owed for a transaction left in the parent    */
    bool is_query;    /* the outermost is a query                                */
    bool is_at;       /* it sees a snapshot, not the newest state: see snapshots.h */
    bool is_in_place; /* it updates pages in place: see in_place.h                */
    uint32_t in_place_looks;   /* begins until the views are looked at for that         */
    uint64_t in_place_room_ns; /* there is room for it until then; see looked_ns       */
    uint64_t in_place_epoch;   /* of being alone, in which it does                      */
    uint64_t in_place_unheld;  /* id of the next snapshot when none was held          */
    uint64_t in_place_pages;   /* of the in-place file that have been given to areas    */
    bool keeps;           /* a query whose pages stay readable behind it: see view.h  */
    uint64_t alone_epoch; /* reads are not recorded: see alone.h; 0 they are          */
    int error;            /* why it must abort: errno value, 0 none                  */
    int error_lacking;    /* what an access lacked then: enum xac_lacking ...        */
    uint64_t error_page;  /* ... and its page's id; 0: it was no access              */
    unsigned n_cured;     /* failures in a row that room has been made after         */
    unsigned n_lost;      /* races lost in a row                                     */
    bool saw_dead;        /* met one that is dead, or a commit of one that is stopped:
                             clean up at the end                                     */
    uint32_t alive_last;  /* participant found alive last ...                        */
    uint64_t alive_until; /* ... and trusted to be so until then, ns monotonic       */
    unsigned unit_shift;  /* accesses are given to 1 << unit_shift pages at once     */
    uint64_t n_islands; /* accesses, or units, that may each need a mapping ...        */
    uint64_t islands_max;  /* ... and how many there may be before units grow           */
    uint64_t copies_most;  /* pages that its views may keep (view.h); 0: not known yet  */
    uint32_t copies_looks; /* begins until that is found out again                      */
    bool is_unrecorded;    /* there was no room to record an access: see view.h         */
    bool is_cut;           /* a query that has noticed that it is cut off: see view.h   */
    int lacking;           /* enum xac_lacking, of the access that failed last          */
    uint64_t n_entries;    /* mirror of txn->n_entries                                */
    struct xac_set_block **blocks; /* addresses of the set's blocks                    */
    size_t n_blocks, blocks_size;
    /* Pages as they were before the transaction stored to them: XAC_IMAGES pages of memory, NULL none
       yet; the first n_images hold the pages with these ids (xac_view_image). */
    uint8_t *images;
    unsigned n_images;
    uint64_t image_id[XAC_IMAGES];
    struct xac_saved
        *saved;          /* its savepoints: see saved.h; NULL: it never had one      */
    uint64_t save_epoch; /* of them; 0: the transaction has used none               */
    uint64_t looked_ns;  /* tick of the last begin, and begins in it: fault_signal.h  */
    unsigned n_looks;
    bool is_loop; /* the tick before had many begins                                   */
    uint64_t watch_until_ns; /* look at each begin until then                          */
    const void *frame; /* of the outermost xTransact(), NULL none: see api_left.h     */
    uintptr_t frame_return;
    int frame_depth;
    bool is_ending; /* in xend() or xendQuery()                   */
    struct xac_team team;
    /* Of a thread's translated transactions (xac_translate.h). */
    bool is_translated;
    bool
        is_idle; /* it is, and has none open: its thread uses the process's context      */
    _Atomic bool
        is_gone; /* it is, and the environment has been closed: only its thread has it */
    uint64_t mappings; /* as env->mappings when it got its views                     */
    struct xac_outofcore_ctx *outofcore; /* NULL: without XAC_OPT_FRAMES                */

    struct xac_conflict conflict; /* of the transaction that ended last                */
    /* Of the same, or of a query: up to where the log has what it has written or seen, XAC_ENDED_NOTHING if it has been
       rolled back; of a durable environment. */
    uint64_t ended_lsn;
};

/* Options that are set before an environment is opened. */
struct xac_env_options {
    uint64_t checkpoint_bytes;
    uint64_t reader_limit;   /* XAC_OPT_READER_LIMIT                     */
    uint64_t log_keep_bytes; /* XAC_OPT_LOG_KEEP_BYTES                 */
    uint64_t segment_bytes;
    uint64_t ring_bytes; /* 0: it follows from the size of a segment */
    uint32_t checksum;
    _Atomic uint32_t checking; /* enum xac_checking; relaxed: may change at any time */
    uint32_t policy;
    uint32_t sync_delay_ms;
    uint32_t wait_ms;       /* XAC_OPT_WAIT_MS */
    uint32_t group_wait_ms; /* XAC_OPT_GROUP_WAIT_MS */
    uint32_t log_recycle;   /* XAC_OPT_LOG_RECYCLE, or XAC_RECYCLE_UNSAID              */
    uint32_t page_checksums;
    uint32_t full_images;
    uint32_t announces;  /* the program has promised to announce every store; 0: no */
    uint32_t engine;     /* enum xac_engine_kind                                   */
    uint64_t history;    /* XAC_OPT_HISTORY */
    uint64_t frames;     /* XAC_OPT_FRAMES */
    uint64_t read_ahead; /* XAC_OPT_READ_AHEAD_BYTES                               */
    uint32_t team;       /* XAC_OPT_TEAM                                           */
    uint32_t mode;       /* XAC_OPT_MODE; 0: as the directory says                 */
    const char *log_dir; /* NULL: not asked for; not owned                         */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* of a recovery   */
    void *progress_arg;
    struct xac_standby *
        *standbyp;  /* of a receiver, which gets it here; NULL: no receiver  */
    bool is_daemon; /* of a group: it may join what has been deposed                   */
    const struct xac_lineage_line
        *leads; /* the generation that it begins to lead; NULL: it does not             */
};

struct xac_env {
    struct xac_env *next; /* in the process's list of open environments; api.c's      */
    uint64_t opened_ns;   /* when; tells it from one that has had its address before  */
    /* Where the descriptor may have been closed since the call began: xac_env_dirfd(). */
    int dirfd;    /* the environment's directory                                     */
    int logfd;    /* where the log lies (logdir.h)                                   */
    char *logdir; /* its absolute path; NULL: the environment's directory            */
    int lockfd;   /* xac.lock, this process's own description                        */
    int masterfd; /* xac.master, likewise, for its locks only (lockfile.h); -1 if it may not
                     be written */
    struct xac_handle dir_handle, log_handle, lock_handle, master_handle; /* of these  */
    atomic_flag mending;        /* xac_env_mend is at it                             */
    _Atomic uint64_t glance_ns; /* when xac_env_glance looks next; relaxed           */
    int flags; /* durable or not, as given to xInit or as a reader found it        */
    enum xac_reader_kind reader;
    struct xac_frozen *frozen; /* what a frozen reader sees, owned; else NULL        */
    char *dir; /* absolute path of the directory                                  */
    struct xac_identity dir_is; /* which one that is                                  */
    char *region; /* path of the control region                                      */
    size_t page_size;
    unsigned page_shift;
    uint64_t memory_bytes; /* that there are for this process: see memory.h             */
    struct xac_env_options options;
    char *log_wish; /* owned; options.log_dir points to it                          */

    struct xac_shm shm;
    struct xac_control *ctl; /* = shm.base; NULL if not attached                       */
    struct xac_log log;
    struct xac_buffers buffers;
    struct xac_outofcore outofcore;
    uint32_t self; /* index of this participant                              */
    uint32_t pid;
    uint64_t pid_namespace, time_namespace; /* see struct xac_participant              */
    const struct xac_policy *policy;

    struct xac_ctx ctx;      /* of the process                                       */
    pthread_mutex_t threads; /* see thread.h                                         */
    struct xac_ctx *others;  /* contexts of threads; under `threads`                 */
    _Atomic uint64_t
        mappings; /* changes of the process's list of views; under `threads` */
    struct xac_file_fds file_fds; /* under the checkpoint lock                       */
    struct xac_address_list addresses; /* under the lock of the files                */
    struct xac_ckpt *ckpt; /* begun by this process; under the checkpoint lock   */
    _Atomic bool has_ckpt; /* there is one: a hint; relaxed                      */
    uint64_t ckpt_left;    /* epoch of one that another process was left to, 0 none;
                                    under the checkpoint lock                        */
    uint64_t ckpt_settled; /* pages settled by the last step towards one; likewise */
    _Atomic uint64_t frames_due; /* frames in use at which a checkpoint is due; relaxed */
    _Atomic bool is_forked;      /* child that has not joined yet                    */
    uint64_t
        parents_turn; /* `turn` of the transaction in which we were forked; 0: it had none */
    const struct xac_way *_Atomic way; /* how xac_transact_in() waits: transact.c  */
};

static inline bool
xac_env_is_forked(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_env_rejoin. */
    return atomic_load_explicit(&env->is_forked, memory_order_acquire);
}

/* xac_env_checking -- how closely accesses are watched: enum xac_checking. */
XAC_SIGSAFE static inline uint32_t
xac_env_checking(const struct xac_env *env)
{
    return atomic_load_explicit(&env->options.checking, memory_order_relaxed);
}

static inline bool
xac_env_is_durable(const struct xac_env *env)
{
    return (env->flags & XAC_DURABLE) != 0;
}

/* xac_env_is_standby -- is its region that of a standby (replayer.h)? */
static inline bool
xac_env_is_standby(const struct xac_env *env)
{
    return env->ctl != NULL && env->ctl->standby.is_one != 0;
}

/* xac_env_claimant -- for the files that it maps. */
XAC_SIGSAFE static inline struct xac_claimant
xac_env_claimant(const struct xac_env *env)
{
    return (struct xac_claimant){.dir = env->dir_is, .dirfd = env->dirfd};
}

/* xac_env_log_id -- what its blocks carry. */
static inline struct xac_log_id
xac_env_log_id(const struct xac_env *env)
{
    struct xac_log_id id = {.generation = env->ctl->generation};

    xac_assert(env->ctl->generation != 0);
    memcpy(&id.identity, env->ctl->identity, sizeof id.identity);
    return id;
}

/* xac_txn_at -- slot with that index, which exists. */
XAC_SIGSAFE static inline struct xac_txn *
xac_txn_at(const struct xac_env *env, uint64_t slot)
{
    xac_assert_slow(env->ctl != NULL);
    return (struct xac_txn *)xac_array_at(&env->shm, &env->ctl->txns, slot);
}

/* xac_entry_page, page_id -- the page that a set entry is about. */
XAC_SIGSAFE static inline struct xac_page *
xac_entry_page(const struct xac_env *env, const struct xac_entry *e)
{
    xac_assert_slow(e->page != 0);
    return (struct xac_page *)xac_shm_at(&env->shm, e->page);
}

XAC_SIGSAFE static inline uint64_t
xac_entry_page_id(const struct xac_env *env, const struct xac_entry *e)
{
    /* Relaxed: fixed since before the entry was made. */
    return atomic_load_explicit(&xac_entry_page(env, e)->id, memory_order_relaxed);
}

/* xac_env_dirfd -- the descriptor of the directory, opened again if it has been lost; -1 with
   errno. */
XAC_SIGSAFE int xac_env_dirfd(struct xac_env *env);

/*
 * xac_env_mend -- open the directories and the lock file again if the program has closed the
 * descriptors, perhaps for files of its own.  Any thread, any lock held.
 * xac_env_mend_log -- the same; for struct xac_log.
 * xac_env_glance -- the same, but not more often than 50 times a second; at this time.
 *
 * ret  0; XAC_EDESCRIPTOR: this process must not go on.
 */
int xac_env_mend(struct xac_env *env);
int xac_env_mend_log(void *env);
int xac_env_glance(struct xac_env *env, uint64_t now_ns);

/* xac_env_poisoned -- XAC_EPOISONED if a write or sync has failed, else 0. */
int xac_env_poisoned(struct xac_env *env);

#endif /* XAC_ENV_STATE_H */
