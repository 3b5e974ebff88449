/* SPDX-License-Identifier: MIT */
/*
 * page.h -- pages in frames, found by number or by frame; what the parts of a space share.
 *
 * WHAT      Fixing roots and children, swizzling, unswizzling, what the pool asks before it
 *           evicts ("protocol S": the evictor takes the parent's latch shared, and a thread that
 *           follows a reference reads it again under the child's latch).
 * NOT       Trees (tree.c, tree_smo.c), files (store.c, log.c).
 *
 * A page is fixed by its latch alone: the pool asks evict_begin() before a life ends, which wants
 * the latch exclusive.  A pin of the pool is held only from the table to the latch, and by
 * structural changes.  So a swizzled reference saves the table, and two steps of a shared word.
 *
 * INVARIANTS
 *   I1   Each page is in one frame (the pool's, xac_frames_check()).
 *   I2   A frame with SIDE_SWIZZLED that is no root has exactly one reference word, in the frame
 *        `parent`, at `offset` of its page, which is resident.
 *   I3   A reference word is of a frame with SIDE_SWIZZLED.
 *   I4   The parent of a swizzled frame is a root or swizzled (chain rule).
 *   I5   n_swizzled is the number of reference words in the page.  A frame with any does not leave.
 *   I6   Roots are pinned while the space is open, and count as swizzled.
 *   I7   A leaf's link is never swizzled.
 *   I8   No reference word reaches the file or the log: copies are made by page_copy_plain().
 *   I9   Swizzling and unswizzling neither make a page dirty nor write a log record.
 *   I10  Number -> reference: parent latched, child latched, won by a step of the child's flags.
 *        Reference -> number: child X and parent S (evictor), or parent X (structural change, and
 *        then of a child with children also child X).  Moved between pages: never, see
 *        page_unswizzle_all().
 *   I11  Who follows a word holds its page's latch until it has the child's, and then reads the
 *        word again; while it waits, too: a frame that has changed hands is not waited for, for
 *        its new page may belong anywhere in the order of latches.
 *   I12  The side of a frame is zero after its life, but for its latch.
 *   I13  An evictor only tries latches.
 *   I14  A page changes only under X, but for its words (I10).  A thread that looks at one without a latch
 *        believes what it has read once its latch shows no writer since (latch.h), and what a
 *        word led to once the word is the same after the child's latch was looked at.
 */
#ifndef SWIZZLE_PAGE_H
#define SWIZZLE_PAGE_H

#ifndef TREE_SERIAL
# define TREE_SERIAL /* the nodes are those of plain memory */
#endif

#include <pthread.h>
#include <sys/types.h>

#include "btree_node.h"
#include "frames/pool.h"
#include "latch.h"
#include "space.h"
#include "space_format.h"

#define SWZ_TAG      (UINT32_C(1) << 31)
#define SWZ_SAMPLE   64                  /* one fix in so many is timed */
#define SWZ_PAGE_MAX 16384u              /* bytes */
#define SWZ_RECORD   (UINT32_C(1) << 20) /* bytes of a record, at most */

#define SIDE_SWIZZLED UINT32_C(1)
#define SIDE_ROOT     UINT32_C(2)

/* A child's page number, or SWZ_TAG and its frame's index + 1: frame 0 is none. */
typedef xac_shared _Atomic uint32_t swz_word;

static inline bool
word_is_swizzled(uint32_t w)
{
    return (w & SWZ_TAG) != 0;
}

static inline uint32_t
word_frame(uint32_t w)
{
    return (w & ~SWZ_TAG) - 1;
}

static inline uint32_t
word_make(uint32_t frame)
{
    return SWZ_TAG | (frame + 1);
}

/* Counters of a thread; its own to write. */
enum swz_counter {
    SWZ_FIXES_ROOT,
    SWZ_FIXES_SWIZZLED,
    SWZ_LOOKUPS,
    SWZ_MISSES,
    SWZ_SWIZZLES,
    SWZ_REREADS_FAILED,
    SWZ_PEEKS_FAILED,
    SWZ_N_COUNTERS
};

/* Counters of evictions and structural changes, of the space: rare beside the others. */
enum swz_event {
    SWZ_UNSWIZZLES,
    SWZ_REFUSED_LATCH,
    SWZ_REFUSED_CHILDREN,
    SWZ_REFUSED_PARENT,
    SWZ_REFUSED_MOVED,
    SWZ_SWEEPS,
    SWZ_SWEEP_EVICTIONS,
    SWZ_STRUCTURAL,
    SWZ_LOG_BYTES,
    SWZ_LOG_SYNCS,
    SWZ_N_EVENTS
};

/* A page fixed by its latch. */
struct swz_page {
    struct btree_node *node;
    uint32_t frame; /* index of the descriptor */
    bool is_exclusive;
};

struct swz_tree {
    struct btree layout; /* base NULL */
    struct btree_node *root;
    uint32_t root_frame;
    xac_shared _Atomic bool exists;
};

struct swz_log {
    pthread_mutex_t lock;
    int fd; /* -1: no log */
    int rc; /* under lock: the first error; nothing is logged after it */
    uint64_t epoch;
    char *buffer;      /* under lock: bytes not written yet */
    size_t n_buffered; /* under lock */
    uint64_t end,
        written;   /* under lock: positions; since the space was opened, see log.c */
    uint64_t base; /* under lock: position of the file's offset 0 */
    xac_shared _Atomic uint64_t synced; /* written under lock */
};

struct swz_store {
    int fd; /* -1: in memory */
    char *memory;
    uint32_t page_bytes, n_pages, delay_ns;
    xac_shared _Atomic int read_rc; /* for tests: what reads return */
};

/* The walk of no_victim() goes on where it stopped. */
struct swz_cursor {
    unsigned tree;
    unsigned pos[BTREE_DEPTH_MAX];
};

/*
 * One bucket of the hash table of swz_config.has_hash: four entries, so one cache line.  A page
 * that finds no room in its bucket is found in the pool's array.  A thread that has the frame
 * latched S adds entries, one that has it latched X removes them, so none is of another page.
 */
#define HASH_ENTRIES 4
struct swz_bucket {
    alignas(FRAME_LINE) latch_word lock;
    uint32_t pages[HASH_ENTRIES];  /* under lock; 0: none */
    uint32_t frames[HASH_ENTRIES]; /* under lock */
};

struct swz_space {
    struct xac_frames *pool;
    /* By frame: the buffer that its page had when it was swizzled; a hint, to fetch it early. */
    xac_shared _Atomic uint32_t *buffers;
    struct swz_bucket *hash; /* NULL: none */
    uint32_t hash_mask;      /* buckets - 1 */
    struct pool_owner owner;
    struct swz_tree trees[SWZ_TREES];
    struct swz_store store;
    struct swz_log log;
    int dir_fd;
    uint32_t page_bytes, n_threads;
    bool counts_first_fix;     /* as in struct swz_config; fixed after opening */
    struct swz_header *header; /* page 0, pinned: changed under smo and its latch X */
    uint32_t header_frame;
    struct swz_thread
        *keeper; /* a seat of its own: opens, checkpoints, closes; under smo */
    /* Order: checkpoints, smo, latches, the log's lock. */
    pthread_mutex_t checkpoints; /* one at a time; threads leave under it */
    pthread_mutex_t smo;         /* one structural change at a time */
    xac_shared _Atomic bool is_swizzling;
    xac_shared _Atomic bool gate; /* updates wait: a checkpoint */
    xac_shared _Atomic uint32_t sweeping;
    struct swz_cursor cursor; /* belongs to the thread that has set sweeping */
    xac_shared _Atomic uint64_t events[SWZ_N_EVENTS];
    struct {
        xac_shared _Atomic uint64_t counters[SWZ_N_COUNTERS];
        xac_shared _Atomic uint64_t ticks[2][SWZ_WAYS], samples[2][SWZ_WAYS];
    } retired; /* of threads that have left; written under smo */
    xac_shared _Atomic(struct swz_thread *) threads[]; /* n_threads + 1 */
};

struct swz_thread {
    alignas(64) struct swz_space *space;
    struct xac_frames_user *user;
    uint32_t number;
    unsigned until_sample;
    char *record; /* being made; SWZ_RECORD bytes */
    uint32_t n_record;
    uint64_t lsn; /* end of its last record */
    xac_shared _Atomic bool is_updating;
    xac_shared _Atomic uint64_t counters[SWZ_N_COUNTERS];
    xac_shared _Atomic uint64_t ticks[2][SWZ_WAYS], samples[2][SWZ_WAYS];
};

static inline void
swz_count(struct swz_thread *th, enum swz_counter what)
{
    xac_shared _Atomic uint64_t *c = &th->counters[what];

    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* sampled -- one fix was timed. */
static inline void
swz_sampled(struct swz_thread *th, bool is_exclusive, enum swz_way way, uint64_t ticks)
{
    xac_shared _Atomic uint64_t *sum = &th->ticks[is_exclusive][way],
                                *n = &th->samples[is_exclusive][way];

    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + ticks,
                          memory_order_relaxed);
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* misses_of -- of this thread, by the pool's count. */
static inline uint64_t
swz_misses_of(const struct swz_thread *th)
{
    return atomic_load_explicit(&th->user->seat->counters[POOL_MISSES],
                                memory_order_relaxed);
}

/* missed -- a page was brought in, and is fixed. */
static inline void
swz_missed(struct swz_thread *th, uint32_t frame)
{
    swz_count(th, SWZ_MISSES);
    if (th->space->counts_first_fix)
        pool_hit(th->user, frame);
}

static inline void
swz_event(struct swz_space *s, enum swz_event what, uint64_t n)
{
    atomic_fetch_add_explicit(&s->events[what], n, memory_order_relaxed);
}

static inline struct frame_side *
side_of(const struct swz_space *s, uint32_t frame)
{
    return &s->pool->frames[frame].side;
}

/* word_at -- child i of an inner node, 0 .. n, as a word. */
static inline swz_word *
word_at(const struct btree *t, const struct btree_node *inner, unsigned i)
{
    struct btree_node *node = (struct btree_node *)(uintptr_t)inner;

    return i == 0 ? (swz_word *)&node->link
                  : (swz_word *)cell_child(t, node, node->slots[i - 1]);
}

/* ---- page.c --------------------------------------------------------------------------- */

/* page_fix_root -- never fails; looks nothing up. */
void swz_page_fix_root(struct swz_thread *th, unsigned tree, bool is_exclusive,
                       struct swz_page *pagep);

/* page_fix_child -- the page that a word of a fixed parent refers to; swizzles the word. */
int swz_page_fix_child(struct swz_thread *th, const struct swz_page *parent,
                       swz_word *word, bool is_exclusive, struct swz_page *pagep);

/* page_fix_number -- by number, with no parent: leaf links. */
int swz_page_fix_number(struct swz_thread *th, uint32_t number, bool is_exclusive,
                        struct swz_page *pagep);

/*
 * A page looked at, not latched: what is read of it counts while peek_holds().  Pinned if it was
 * found by number, until peek_end().
 */
struct swz_peek {
    const struct btree_node *node;
    uint32_t frame;
    uint32_t version; /* of its latch */
    bool is_pinned;
};

static inline bool
peek_holds(const struct swz_space *s, const struct swz_peek *p)
{
    return latch_is_still(&side_of(s, p->frame)->latch, p->version);
}

static inline void
peek_end(struct swz_thread *th, const struct swz_peek *p)
{
    if (p->is_pinned)
        frame_unpin(&th->space->pool->frames[p->frame]);
}

/*
 * page_peek -- by number.  EAGAIN: a writer has it; ENODATA: only by page_fix_number(), or
 * it is not resident and only such pages were asked for.
 */
int swz_page_peek(struct swz_thread *th, uint32_t number, bool only_resident,
                  struct swz_peek *peekp);

/* The opposite of the three page_fix_...(). */
static inline void
page_unfix(struct swz_thread *th, const struct swz_page *page)
{
    latch_drop(&side_of(th->space, page->frame)->latch, page->is_exclusive);
}

/* page_pin -- of a fixed page: it stays resident without its latch until page_unpin(). */
void swz_page_pin(struct swz_thread *th, const struct swz_page *page);
void swz_page_unpin(struct swz_thread *th, const struct swz_page *page);

/* page_number -- of a page fixed or pinned. */
static inline uint32_t
page_number(const struct swz_space *s, uint32_t frame)
{
    return (uint32_t)atomic_load_explicit(&s->pool->frames[frame].page_id,
                                          memory_order_relaxed);
}

/* page_node -- of a page fixed or pinned. */
static inline struct btree_node *
page_node(const struct swz_space *s, uint32_t frame)
{
    /* Its latch or pin has ordered the load. */
    return pool_data(s->pool, atomic_load_explicit(&s->pool->frames[frame].data,
                                                   memory_order_relaxed));
}

/* page_unswizzle -- one word of a page held X; the child's subtree is not swizzled. */
void swz_page_unswizzle(struct swz_space *s, uint32_t parent, swz_word *word);

/*
 * page_unswizzle_all -- all words of a page held X, and what is swizzled below them (I4).
 *
 * in  held  frames that the caller holds X, and has done already
 */
void swz_page_unswizzle_all(struct swz_space *s, uint32_t frame,
                            const struct swz_page *held, unsigned n_held);

/*
 * page_copy_plain -- the page's bytes with page numbers for references (I8).  Held X, or S if
 * it is not an inner node.
 */
void swz_page_copy_plain(const struct swz_space *s, const void *data, void *copy);

/*
 * page_restore -- put a copy's bytes back, as an undo does.  Held X; of an inner page also under
 * smo, as any change of structure.
 */
void swz_page_restore(struct swz_thread *th, const struct swz_page *page,
                      const void *copy);

/* The pool's questions. */
extern const struct pool_owner swz_pool_owner;

/* page_may_wait -- whether this thread holds no latch, so that a write may wait for one. */
extern _Thread_local bool swz_page_may_wait;

#ifdef XAC_DEBUG
/* For a test that shows what the second look at a word is for (I11). */
extern bool swz_test_no_reread;
# define SWZ_REREAD_IS_OFF swz_test_no_reread
#else
# define SWZ_REREAD_IS_OFF false
#endif
#define swz_point(name) xac_kill_point("swizzle: " name)

/* ---- peek.c: pages without latches -------------------------------------------------- */

/*
 * peek_search -- as swz_search(), storing nothing that others see if the way is resident and
 * swizzled.  ret 0, ENOENT, an error; EAGAIN: others change it, go by latches
 */
int swz_peek_search(struct swz_thread *th, unsigned tree, const unsigned char *key,
                    void *value);

/* peek_resident -- as swz_try_search(). */
int swz_peek_resident(struct swz_thread *th, unsigned tree, const unsigned char *key,
                      void *value);

/* peek_leaf -- the key's leaf, fixed, by a way that is not latched; else as the same. */
int swz_peek_leaf(struct swz_thread *th, unsigned tree, const unsigned char *key,
                  bool is_exclusive, struct swz_page *pagep);

/* ---- hash.c --------------------------------------------------------------------------- */

/* hash_open -- buckets for so many frames; ret 0 or ENOMEM. */
int swz_hash_open(struct swz_space *s, uint32_t n_frames);

/* hash_find -- false: not there.  The frame is not latched: look at its page again. */
bool swz_hash_find(const struct swz_space *s, uint32_t page, uint32_t *framep);

/* hash_add -- unless it is there, or there is no room; the frame is latched. */
void swz_hash_add(struct swz_space *s, uint32_t page, uint32_t frame);

/* hash_remove -- if it is there; the frame is latched X. */
void swz_hash_remove(struct swz_space *s, uint32_t page);

/* ---- store.c -------------------------------------------------------------------------- */

/* store_read, store_write -- as the pool's; EUCLEAN: an inner page's words are no page numbers. */
int swz_store_read(void *space, uint64_t page, void *data);
int swz_store_write(void *space, uint64_t page, const void *data);
int swz_store_open(struct swz_store *store, int dir_fd, const struct swz_config *config);
int swz_store_sync(struct swz_store *store);
void swz_store_close(struct swz_store *store);

/* ---- log.c ---------------------------------------------------------------------------- */

/* log_add -- so many bytes of a page into the thread's record. */
void swz_log_add(struct swz_thread *th, uint32_t page, const void *data, size_t offset,
                 size_t n);

/* log_add_page -- all of it, in plain numbers; held X. */
void swz_log_add_page(struct swz_thread *th, const struct swz_page *page);

/* log_append -- the thread's record, one operation; ret its end.  Held X: what it changes. */
uint64_t swz_log_append(struct swz_thread *th);

/* log_write, log_sync -- everything before `upto` is with the system; is on disk. */
int swz_log_write(struct swz_log *log, uint64_t upto);
int swz_log_sync(struct swz_space *s, uint64_t upto);

/* log_error -- the first error; updates end with it. */
int swz_log_error(struct swz_log *log);

/* log_recover -- play what is in the log over the pages; ret 0 also if there is no log. */
int swz_log_recover(struct swz_space *s);

/* log_begin -- an empty log of the next epoch takes the place of the old one. */
int swz_log_begin(struct swz_space *s);

void swz_log_close(struct swz_log *log);

/* ---- space_open.c --------------------------------------------------------------------- */

/* update_begin, update_end -- around each update; waits while a checkpoint is made. */
void swz_update_begin(struct swz_thread *th);
void swz_update_end(struct swz_thread *th);

/* ---- tree_smo.c ------------------------------------------------------------------------ */

/* smo_insert, smo_delete -- with a change of structure if one is needed. */
int swz_smo_insert(struct swz_thread *th, unsigned tree, struct tree_request *r);
int swz_smo_delete(struct swz_thread *th, unsigned tree, const unsigned char *key);

/* ---- tree.c ---------------------------------------------------------------------------- */

/* leaf_fix_below -- from a page held S, which it lets go, latch by latch to the key's leaf. */
int swz_leaf_fix_below(struct swz_thread *th, const struct btree *t,
                       const unsigned char *key, bool is_exclusive,
                       struct swz_page *pagep);

/* leaf_insert, leaf_delete -- in a leaf held X that has room; logged. */
int swz_leaf_insert(struct swz_thread *th, const struct swz_page *leaf, unsigned pos,
                    const struct btree *t, const struct tree_request *r);
void swz_leaf_delete(struct swz_thread *th, const struct swz_page *leaf, unsigned pos,
                     const struct btree *t);

/* page_changed -- held X, after the record that describes it: dirty, and not written before it. */
void swz_page_changed(struct swz_thread *th, const struct swz_page *page, uint64_t lsn);

#endif /* SWIZZLE_PAGE_H */
