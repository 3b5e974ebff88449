/* SPDX-License-Identifier: MIT */
/*
 * txn.h -- transactions: life cycle, read and write sets, commit.
 *
 * WHAT      A transaction slot in shared memory (struct xac_txn), which survivors can
 *           finish or take back, and the context of the thread that runs it (struct
 *           xac_ctx), which is private.
 * NOT HERE  Conflicts between slots (conflict.h), the commit chain (ctree.h), what the
 *           pages of a view show (view.h).
 *
 *             begin           commit, step c         publish
 *   IDLE ----------> PENDING ---------------> COMMITTING ----> PUBLISHED ----> IDLE
 *    ^                  | a conflict, xAbort                                     ^
 *    |                  v                                                        |
 *    +--------------- FAILED (end)          IDLE ---> QUERY ---> IDLE -----------+
 *
 *   PENDING -> FAILED and PENDING -> COMMITTING are exchanges on the word: exactly one
 *   wins.  COMMITTING -> PUBLISHED happens under the publish lock, by the owner or by
 *   anybody else.  All other edges are the owner's, or the cleaner's if the owner died.
 *
 * INVARIANTS
 *   (1) The word names state, participant and a serial that changes with each use of
 *       the slot: an exchange meant for an earlier transaction fails.
 *   (2) parent never decreases while the slot is live; start does not move.
 *   (3) A FAILED transaction's parent does not move any more: it is, or will soon be seen
 *       to be, parent or next.
 *   (4) Every entry of the set that is linked into a page's access list is reachable
 *       from the slot, so that survivors can unlink it.
 */
#ifndef XAC_TXN_H
#define XAC_TXN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xac.h>

#include "base/annot.h"

struct xac_env;
struct xac_xdatafile;
struct xac_page;
struct xac_outofcore_ctx;
struct xac_view;

enum xac_txn_state {
    XAC_TXN_FREE = 0, /* slot belongs to nobody                                 */
    XAC_TXN_IDLE = 1, /* slot belongs to a participant, no transaction          */
    XAC_TXN_PENDING = 2,
    XAC_TXN_FAILED = 3,
    XAC_TXN_COMMITTING = 4,
    XAC_TXN_PUBLISHED = 5,
    XAC_TXN_QUERY = 6,
};

/* Kinds of access in a set entry. */
enum {
    XAC_SET_READ = 1,
    XAC_SET_WRITE = 2,
    XAC_SET_LINKED = 4
};

/* Age of a slot whose transaction is over and will not be retried. */
#define XAC_AGE_OVER UINT64_MAX

/* Whether a block changes a page for the first time since XCHECKPT_BEGIN, and how it says so. */
enum xac_first {
    XAC_FIRST_NOT = 0,
    XAC_FIRST_FULL = 1, /* a full image                                               */
    XAC_FIRST_BASE = 2, /* a difference to what the file holds (XAC_OPT_FULL_IMAGES)  */
};

/* One page in a read or write set; also the part of the commit descriptor for it. */
struct xac_entry {
    xac_shared _Atomic uint64_t next; /* offset of the next entry in the page's access
                                         list; under the page's lock                   */
    uint64_t page;                    /* offset of the struct xac_page                 */
    uint64_t slot;                    /* of the transaction                            */
    xac_shared _Atomic uint32_t mode; /* XAC_SET_...; under the page's lock            */
    uint32_t first;                   /* descriptor: enum xac_first                    */
    uint64_t frame;                   /* descriptor: frame of the new version, or 0    */
    uint64_t reserved[3];
};

#define XAC_SET_BLOCK_ENTRIES 63
struct xac_set_block {
    uint64_t next; /* offset of the next block, 0 if none                       */
    uint64_t reserved[7];
    struct xac_entry entry[XAC_SET_BLOCK_ENTRIES];
};

/* What has happened in a slot, whoever had it, for xStats(); stored by its owner, so that nobody
   stores to a cache line that others use; relaxed. */
struct xac_counters {
    xac_shared _Atomic uint64_t commits, commits_read_only, queries;
    xac_shared _Atomic uint64_t aborts_conflict, aborts_user, aborts_other;
    xac_shared _Atomic uint64_t traps_read, traps_write, hints;
    xac_shared _Atomic uint64_t pages_written;
};

/* Count an event in a slot of one's own. */
XAC_SIGSAFE static inline void
xac_count_own(_Atomic uint64_t *counter, uint64_t n)
{
    /* Relaxed: nobody else stores it. */
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* A transaction slot. */
struct xac_txn {
    xac_shared _Atomic uint64_t word; /* serial << 32 | participant << 8 | state       */
    xac_shared _Atomic uint64_t parent; /* commit number whose state it sees           */
    xac_shared _Atomic uint64_t start;  /* parent at begin                             */
    xac_shared _Atomic uint64_t next;   /* eager: parent that it is about to take, or has
                                           taken, or would have; see xac_view_parent   */
    xac_shared _Atomic uint64_t age;    /* smaller is older; kept when retried; AGE_OVER
                                           once it has committed or given up           */
    /* Owner's, but survivors must see it: 1 if reads are not in the set, because the
       participant was alone when it began. */
    xac_shared _Atomic uint32_t reads_unknown;
    uint32_t is_retry; /* owner only                                  */
    /* Why it failed, by whoever fails it: serial (24 bits) << 40 | kind << 32 | pid;
       page id. */
    xac_shared _Atomic uint64_t why;
    xac_shared _Atomic uint64_t why_page;

    /* The set: a list of blocks kept from one transaction to the next. */
    uint64_t first_block; /* offset                                    */
    xac_shared _Atomic uint64_t n_entries;

    /* Descriptor of the commit; complete before COMMITTING. */
    uint32_t n_written;   /* entries with a frame                                    */
    uint32_t all_full;    /* every page is logged as a full image                    */
    uint64_t record;      /* offset of the closed log block; while COMMITTING it is
                               replaced under publish only                             */
    uint64_t record_size; /* bytes allocated for it                                  */
    uint64_t datafile;    /* serial of the data file, 0 if none                      */
    uint64_t ckpt_count;  /* of checkpoints begun when the block was built           */
    uint64_t number;      /* stored under publish before `publishing`                */
    uint64_t position;    /* LSN of the block; likewise                              */
    uint64_t end;         /* LSN behind the block; likewise                          */

    xac_shared _Atomic uint64_t begin_ns; /* when it began, monotonic, within some ms; for
                                             xStats() only; its owner                  */
    /* Slot + 1 that it was failed by or has failed for; 0 none: see xac_conflict_wait. */
    xac_shared _Atomic uint64_t lost_to;
    /* Smallest serial of a data file that has been taken for the transaction, whoever took
       it; 0 none.  Stored under publish, cleared when the transaction is over (release) and
       read under publish (acquire); see xac_commit_data_serial. */
    xac_shared _Atomic uint64_t data_floor;

    XAC_LINE struct xac_counters counters;
};

static inline uint64_t
xac_txn_word(uint64_t serial, uint32_t participant, enum xac_txn_state state)
{
    return serial << 32 | (uint64_t)participant << 8 | (uint64_t)state;
}

static inline enum xac_txn_state
xac_txn_state(uint64_t word)
{
    return (enum xac_txn_state)(word & 0xff);
}

static inline uint32_t
xac_txn_participant(uint64_t word)
{
    return (uint32_t)(word >> 8 & 0xffffff);
}

static inline uint64_t
xac_txn_serial(uint64_t word)
{
    return word >> 32;
}

/* True for states in which a transaction may still look at its parent's pages. */
static inline bool
xac_txn_is_live(uint64_t word)
{
    enum xac_txn_state s = xac_txn_state(word);

    return s == XAC_TXN_PENDING || s == XAC_TXN_FAILED || s == XAC_TXN_COMMITTING
           || s == XAC_TXN_QUERY;
}

/* The private side: what the thread that runs transactions knows. */
struct xac_ctx {
    struct xac_env *env;
    struct xac_ctx *next;   /* in env's list of contexts of threads (thread.h)       */
    struct xac_view *views; /* list of the mappings that its transactions use        */
    uint64_t slot;          /* index of its slot                                     */
    struct xac_txn *txn;    /* the slot, NULL if none yet                              */
    /* Thread of the open transaction, or of whoever keeps transactions out for a
       moment; 0 none.  Taken by exchange, so that one thread of many gets it. */
    _Atomic pthread_t owner;
    int depth;            /* nesting of transactions and queries                     */
    int query_depth;      /* nesting of the queries among them, innermost            */
    int orphan_depth;     /* ends still owed for a transaction left in the parent    */
    bool is_query;        /* the outermost is a query                                */
    bool keeps;           /* a query whose pages stay readable behind it: see view.h  */
    uint64_t solo_epoch;  /* reads are not recorded: see solo.h; 0 they are          */
    int error;            /* why it must abort: errno value, 0 none                  */
    int error_lacking;    /* what an access lacked then: enum xac_lacking ...        */
    uint64_t error_page;  /* ... and its page's id; 0: it was no access              */
    unsigned n_cured;     /* failures in a row that room has been made after         */
    bool has_turn;        /* see optimistic.h                                        */
    unsigned n_lost;      /* races lost in a row                                     */
    bool saw_dead;        /* met one that is dead, or a commit of one that is stopped:
                             clean up at the end                                     */
    uint32_t alive_last;  /* participant found alive last ...                        */
    uint64_t alive_until; /* ... and trusted to be so until then, ns monotonic       */
    unsigned unit_shift;  /* accesses are given to 1 << unit_shift pages at once     */
    uint64_t n_islands; /* accesses, or units, that may each need a mapping ...        */
    uint64_t islands_max; /* ... and how many there may be before units grow           */
    bool is_unrecorded;   /* there was no room to record an access: see view.h         */
    int lacking;          /* enum xac_lacking, of the access that failed last          */
    uint64_t n_entries;   /* mirror of txn->n_entries                                */
    struct xac_set_block **blocks; /* addresses of the set's blocks                    */
    size_t n_blocks, blocks_size;
    uint64_t looked_ns; /* tick of the last begin, and begins in it: fault_signal.h  */
    unsigned n_looks;
    uint64_t watch_until_ns; /* look at each begin until then                          */
    const void *frame; /* of the outermost xTransact(), NULL none: see api_left.h     */
    uintptr_t frame_return;
    int frame_depth;
    bool is_ending;                      /* in xend() or xendQuery()                   */
    struct xac_outofcore_ctx *outofcore; /* NULL: without XAC_OPT_FRAMES                */

    struct xac_conflict conflict; /* of the transaction that ended last                */
};

/* xac_txn_at -- slot with that index, which exists. */
XAC_SIGSAFE struct xac_txn *xac_txn_at(const struct xac_env *env, uint64_t slot);

/*
 * xac_txn_claim -- take a free slot for a participant; ret index or UINT64_MAX.
 */
uint64_t xac_txn_claim(struct xac_env *env, uint32_t participant);

/* xac_ctx_open, close -- give a context a slot; take it back.  The views stay. */
int xac_ctx_open(struct xac_env *env, struct xac_ctx *ctx);
void xac_ctx_close(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_begin -- outermost begin.  ret 0 or an error. */
int xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query);

/*
 * xac_txn_end -- outermost end.
 *
 * ret  XAC_COMMITTED, XAC_ABORTED or an error.  The age and the turn stay with the slot only
 *      after XAC_ABORTED, so that others wait for no attempt that may never come.
 */
int xac_txn_end(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_forgo -- no other attempt follows: nobody waits for it, and it takes no turn. */
void xac_txn_forgo(struct xac_ctx *ctx);

/*
 * xac_error_explain -- note in words what an access has lacked, for which the transaction will
 * abort: the fault handler could not (txn_error.c).
 *
 * xac_error_verdict -- the transaction has been rolled back for ctx->error.  If a checkpoint may
 * make room, and has not been tried for the attempt before this one, it is tried now.
 *
 * in   words  that were noted for the error, kept from what happened since
 * ret  XAC_ABORTED if another attempt may succeed; else ctx->error, words noted
 */
void xac_error_explain(struct xac_ctx *ctx);
int xac_error_verdict(struct xac_env *env, struct xac_ctx *ctx, const char *words);

/*
 * xac_txn_fail -- fail a transaction: PENDING to FAILED.
 *
 * in   word  the slot's word as it was seen
 * in   kind  enum xac_conflict_kind as the victim will report it
 * in   pid   the other process, 0 if none
 * in   page  id of the page, 0 if none
 * ret  true if it is out of the way (failed now or before, or another transaction);
 *      false if it is COMMITTING.
 */
XAC_SIGSAFE bool xac_txn_fail(struct xac_txn *txn, uint64_t word, int kind, uint32_t pid,
                              uint64_t page);

/*
 * xac_txn_foresee -- in an optimistic environment: fail the running transaction now if
 * its end would find it invalid.  Costs a look at every page of its set.
 */
void xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_set_add -- a new entry in the set of the running transaction, not linked yet.
 *
 * ret  the entry, or NULL if the region has no room; *indexp its number.
 */
XAC_SIGSAFE struct xac_entry *xac_set_add(struct xac_env *env, struct xac_ctx *ctx,
                                          struct xac_page *page, uint32_t mode,
                                          uint64_t *indexp);

/* xac_set_entry -- entry of the running transaction's set. */
XAC_SIGSAFE struct xac_entry *xac_set_entry(const struct xac_ctx *ctx, uint64_t index);

/*
 * xac_txn_drop -- take back a slot that is not COMMITTING: unlink its entries, free its
 * frames, remove its data file, leave it IDLE or FREE with the next serial.
 * By its owner, or by the cleaner under the clean lock.
 */
void xac_txn_drop(struct xac_env *env, uint64_t slot, enum xac_txn_state leave_as);

/* xac_txn_finish -- after the outcome is decided: views, set and slot are free again. */
void xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed);

/*
 * xac_commit -- commit the running transaction, whose set is complete, and finish it
 * (txn_commit.c).
 *
 * ret  XAC_COMMITTED; XAC_ABORTED (not finished yet); XAC_EPOISONED (finished).
 */
int xac_commit(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_commit_rebuild -- build the block of a COMMITTING transaction anew from its frames,
 * as full images, because a checkpoint has begun since.  ret 0 or an error.
 */
int xac_commit_rebuild(struct xac_env *env, uint64_t slot);

/* xac_commit_make_room -- what XAC_PUBLISH_ROOM asks for, outside all locks that rank as high; ret
   as xac_log_make_room. */
int xac_commit_make_room(struct xac_env *env, const struct xac_txn *txn);

/* xac_commit_await -- until the log is durable up to lsn, or as long as
   XAC_OPT_SYNC_DELAY_MS and XAC_OPT_WAIT_MS ask for; ret 0, XAC_EPOISONED, XAC_ENOTDURABLE or
   XAC_EUNCERTAIN. */
int xac_commit_await(struct xac_env *env, uint64_t lsn);

/*
 * xac_commit_data_serial -- a bound: data files with smaller serials are of transactions
 * that have been published, or of none, and will never be of another.  Takes publish.
 */
uint64_t xac_commit_data_serial(struct xac_env *env);

/*
 * xac_commit_write_datafile -- what a transaction has written, as full images in a data file
 * that is durable then (txn_datafile.c).
 *
 * out  recp  the record that names it
 * ret  0 or an error; a file that is there then is removed as that of any other transaction
 */
int xac_commit_write_datafile(struct xac_env *env, const struct xac_txn *txn,
                              uint64_t serial, struct xac_xdatafile *recp);

/* xac_commit_remove_datafile -- of a transaction that was not published. */
void xac_commit_remove_datafile(struct xac_env *env, uint64_t serial);

#endif /* XAC_TXN_H */
