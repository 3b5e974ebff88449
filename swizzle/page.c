/* SPDX-License-Identifier: MIT */
/*
 * page.c -- see page.h: fixing, swizzling, eviction.
 */
#include <config.h>

#include "page.h"

#include <errno.h>

_Thread_local bool swz_page_may_wait;

#ifdef XAC_DEBUG
bool swz_test_no_reread;
#endif

/* ---- Clock -------------------------------------------------------------------------- */

uint64_t
swz_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* ---- Swizzling ---------------------------------------------------------------------- */

/* word_load -- acquire pairs with word_store(): the frame's fields. */
static uint32_t
word_load(swz_word *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* word_store -- release pairs with word_load(). */
static void
word_store(swz_word *word, uint32_t w)
{
    atomic_store_explicit(word, w, memory_order_release);
}

/*
 * try_swizzle -- make the word of a fixed parent refer to its child's frame; child latched (I10).
 * Any refusal is fine: the page is fixed, just not swizzled.
 */
static void
try_swizzle(struct swz_thread *th, const struct swz_page *parent, swz_word *word,
            uint32_t number, uint32_t frame)
{
    struct swz_space *s = th->space;
    struct frame_side *side = side_of(s, frame);
    struct frame_side *above = side_of(s, parent->frame);
    uint32_t none = 0;

    if (!atomic_load_explicit(&s->is_swizzling, memory_order_relaxed)
        || atomic_load_explicit(&side->flags, memory_order_relaxed) != 0
        || atomic_load_explicit(&above->flags, memory_order_relaxed) == 0 /* I4 */
        || atomic_load_explicit(word, memory_order_relaxed) != number)
        return;
    /* Acquire pairs with the release of the thread that cleared it: parent and n_swizzled. */
    if (!atomic_compare_exchange_strong_explicit(&side->flags, &none, SIDE_SWIZZLED,
                                                 memory_order_acq_rel,
                                                 memory_order_relaxed))
        return;
    atomic_store_explicit(&side->parent, parent->frame + 1, memory_order_relaxed);
    atomic_store_explicit(&side->offset,
                          (uint32_t)((uintptr_t)word - (uintptr_t)parent->node),
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&above->n_swizzled, 1, memory_order_relaxed);
    atomic_store_explicit(&s->buffers[frame],
                          atomic_load_explicit(&s->pool->frames[frame].data,
                                               memory_order_relaxed)
                              - 1,
                          memory_order_relaxed);
    word_store(word, word_make(frame));
    swz_count(th, SWZ_SWIZZLES);
}

/* unswizzle -- the word becomes the child's number; latches as I10 says. */
static void
unswizzle(struct swz_space *s, uint32_t parent, swz_word *word, uint32_t frame)
{
    struct frame_side *side = side_of(s, frame);

    xac_assert(atomic_load_explicit(&side->parent, memory_order_relaxed) == parent + 1);
    word_store(word, page_number(s, frame));
    atomic_fetch_sub_explicit(&side_of(s, parent)->n_swizzled, 1, memory_order_relaxed);
    atomic_store_explicit(&side->parent, 0, memory_order_relaxed);
    /* Release pairs with try_swizzle(). */
    atomic_store_explicit(&side->flags, 0, memory_order_release);
    swz_event(s, SWZ_UNSWIZZLES, 1);
}

void
swz_page_unswizzle(struct swz_space *s, uint32_t parent, swz_word *word)
{
    uint32_t w = word_load(word);

    if (word_is_swizzled(w))
        unswizzle(s, parent, word, word_frame(w));
}

static bool
is_held(uint32_t frame, const struct swz_page *held, unsigned n_held)
{
    for (unsigned i = 0; i < n_held; i++)
        if (held[i].frame == frame)
            return true;
    return false;
}

void
swz_page_unswizzle_all(struct swz_space *s, uint32_t frame, const struct swz_page *held,
                       unsigned n_held)
{
    struct btree_node *node = page_node(s, frame);
    const struct btree *t = &s->trees[node->zero].layout;

    if (node->level == 0)
        return;
    for (unsigned i = 0; i <= node->n; i++) {
        swz_word *word = word_at(t, node, i);
        uint32_t w = word_load(word);
        uint32_t child = word_frame(w);

        if (!word_is_swizzled(w))
            continue;
        if (node->level == 1 || is_held(child, held, n_held)) {
            unswizzle(s, frame, word, child); /* a leaf; or done before */
            continue;
        }
        latch_take_x(&side_of(s, child)->latch);
        swz_page_unswizzle_all(s, child, held, n_held);
        unswizzle(s, frame, word, child);
        latch_drop(&side_of(s, child)->latch, true);
    }
    xac_assert(atomic_load_explicit(&side_of(s, frame)->n_swizzled, memory_order_relaxed)
               == 0);
}

/* ---- Fixing ------------------------------------------------------------------------- */

void
swz_page_fix_root(struct swz_thread *th, unsigned tree, bool is_exclusive,
                  struct swz_page *pagep)
{
    struct swz_tree *t = &th->space->trees[tree];

    latch_take(&side_of(th->space, t->root_frame)->latch, is_exclusive);
    swz_count(th, SWZ_FIXES_ROOT);
    *pagep = (struct swz_page){.node = t->root,
                               .frame = t->root_frame,
                               .is_exclusive = is_exclusive};
}

/*
 * hash_lookup -- through the hash table, without a pin; false: the page is not there, or was not
 * any more when its latch came.
 */
static bool
hash_lookup(struct swz_thread *th, uint32_t number, bool is_exclusive, uint32_t *framep)
{
    struct swz_space *s = th->space;
    const struct frame *f;
    unsigned spins = 0;
    uint64_t state;

    if (!swz_hash_find(s, number, framep))
        return false;
    swz_point("hash found");
    f = &s->pool->frames[*framep];
    /* As in latch_take_while(): not for a page that has left. */
    while (is_exclusive ? !latch_try_x(&side_of(s, *framep)->latch)
                        : !latch_try(&side_of(s, *framep)->latch, LATCH_X | LATCH_WANT)) {
        if (atomic_load_explicit(&f->page_id, memory_order_relaxed) != number)
            return false;
        latch_pause(&spins);
    }
    state = atomic_load_explicit(&f->state, memory_order_relaxed);
    if (atomic_load_explicit(&f->page_id, memory_order_relaxed) == number
        && frame_word(state) != FRAME_GONE
        /* Acquire pairs with the pool's publication of the bytes. */
        && atomic_load_explicit(&f->data, memory_order_acquire) != 0)
        return true;
    latch_drop(&side_of(s, *framep)->latch, is_exclusive);
    return false;
}

/* hash_peek -- through the hash table. */
static int
hash_peek(struct swz_thread *th, uint32_t number, struct swz_peek *peekp)
{
    struct swz_space *s = th->space;
    struct swz_peek peek = {0};
    const struct frame *f;
    uint32_t data;

    if (!swz_hash_find(s, number, &peek.frame))
        return ENODATA; /* who adds it has its latch */
    swz_point("hash found");
    f = &s->pool->frames[peek.frame];
    /* First the version: what the frame has now it has until a writer comes. */
    if (!latch_look(&f->side.latch, &peek.version))
        return EAGAIN;
    data = atomic_load_explicit(&f->data, memory_order_relaxed);
    if (atomic_load_explicit(&f->page_id, memory_order_relaxed) != number
        || frame_word(atomic_load_explicit(&f->state, memory_order_relaxed)) == FRAME_GONE
        || data == 0)
        return ENODATA;
    peek.node = pool_data(s->pool, data);
    pool_hit(th->user, peek.frame);
    *peekp = peek;
    return 0;
}

/* resident_pin -- as xac_frames_fix() of a page that is there with its bytes; else ENODATA. */
static int
resident_pin(struct swz_thread *th, uint32_t number, struct xac_frames_pin *pinp)
{
    struct xac_frames *pool = th->space->pool;
    frame_ref ref = slot_load(&pool->table[number]);
    struct frame *f;
    uint32_t data;

    if (ref == 0 || !frame_try_pin(pool_frame(pool, ref), ref))
        return ENODATA;
    f = pool_frame(pool, ref);
    /* Acquire pairs with the pool's publication of the bytes. */
    data = atomic_load_explicit(&f->data, memory_order_acquire);
    if (data == 0) { /* being read */
        frame_unpin(f);
        return ENODATA;
    }
    *pinp = (struct xac_frames_pin){.data = pool_data(pool, data), .ref = ref};
    pool_hit(th->user, frame_ref_index(ref));
    return 0;
}

int
swz_page_peek(struct swz_thread *th, uint32_t number, bool only_resident,
              struct swz_peek *peekp)
{
    uint64_t misses = swz_misses_of(th);
    struct xac_frames_pin pin;
    struct swz_peek peek;
    int rc;

    if (th->space->hash != NULL) {
        rc = hash_peek(th, number, peekp);
        if (rc == 0)
            swz_count(th, SWZ_LOOKUPS);
        return rc;
    }
    rc = only_resident ? resident_pin(th, number, &pin)
                       : xac_frames_fix(th->user, number, 0, &pin);
    if (rc != 0)
        return rc;
    swz_count(th, SWZ_LOOKUPS);
    if (swz_misses_of(th) != misses)
        swz_missed(th, frame_ref_index(pin.ref));
    peek = (struct swz_peek){.node = pin.data,
                             .frame = frame_ref_index(pin.ref),
                             .is_pinned = true};
    if (!latch_look(&side_of(th->space, peek.frame)->latch, &peek.version)) {
        peek_end(th, &peek);
        return EAGAIN;
    }
    *peekp = peek;
    return 0;
}

/* lookup -- through the table; swizzle the word if there is one. */
static int
lookup(struct swz_thread *th, const struct swz_page *parent, swz_word *word,
       uint32_t number, bool is_exclusive, struct swz_page *pagep)
{
    struct xac_frames_pin pin;
    uint32_t frame;
    int rc;

    if (th->space->hash != NULL && hash_lookup(th, number, is_exclusive, &frame)) {
        if (parent != NULL)
            try_swizzle(th, parent, word, number, frame);
        *pagep = (struct swz_page){.node = xac_frames_hit(th->user, frame),
                                   .frame = frame,
                                   .is_exclusive = is_exclusive};
        return 0;
    }
    rc = xac_frames_fix(th->user, number, 0, &pin);
    if (rc != 0)
        return rc;
    swz_point("pinned");
    frame = frame_ref_index(pin.ref);
    latch_take(&side_of(th->space, frame)->latch, is_exclusive);
    if (parent != NULL)
        try_swizzle(th, parent, word, number, frame);
    if (th->space->hash != NULL)
        swz_hash_add(th->space, number, frame);
    xac_frames_unfix(th->user, &pin); /* the latch keeps it now */
    *pagep =
        (struct swz_page){.node = pin.data, .frame = frame, .is_exclusive = is_exclusive};
    return 0;
}

/* fix -- by word or by number, and how. */
static int
fix(struct swz_thread *th, const struct swz_page *parent, swz_word *word, uint32_t w,
    bool is_exclusive, struct swz_page *pagep, enum swz_way *wayp)
{
    struct swz_space *s = th->space;
    uint64_t misses;
    int rc;

    while (word_is_swizzled(w)) {
        uint32_t frame = word_frame(w), again;
        bool is_latched;

        swz_point("word");
        is_latched = latch_take_while(&side_of(s, frame)->latch, is_exclusive, word, w);
        again = word_load(word);
        if (xac_likely(is_latched && (again == w || SWZ_REREAD_IS_OFF))) { /* I11 */
            swz_count(th, SWZ_FIXES_SWIZZLED);
            *pagep = (struct swz_page){.node = xac_frames_hit(th->user, frame),
                                       .frame = frame,
                                       .is_exclusive = is_exclusive};
            *wayp = SWZ_SWIZZLED;
            return 0;
        }
        if (is_latched)
            latch_drop(&side_of(s, frame)->latch, is_exclusive);
        swz_count(th, SWZ_REREADS_FAILED);
        w = again;
    }
    misses = swz_misses_of(th);
    swz_count(th, SWZ_LOOKUPS);
    rc = lookup(th, parent, word, w, is_exclusive, pagep);
    *wayp = swz_misses_of(th) != misses ? SWZ_MISS : SWZ_LOOKUP;
    if (*wayp == SWZ_MISS && rc == 0)
        swz_missed(th, pagep->frame);
    return rc;
}

/* fix_timed -- one in SWZ_SAMPLE; nothing is written down while a latch is awaited. */
static int
fix_timed(struct swz_thread *th, const struct swz_page *parent, swz_word *word,
          uint32_t w, bool is_exclusive, struct swz_page *pagep)
{
    enum swz_way way;
    uint64_t start;
    int rc;

    if (xac_likely(--th->until_sample != 0))
        return fix(th, parent, word, w, is_exclusive, pagep, &way);
    th->until_sample = SWZ_SAMPLE;
    start = swz_ticks();
    rc = fix(th, parent, word, w, is_exclusive, pagep, &way);
    swz_sampled(th, is_exclusive, way, swz_ticks() - start);
    return rc;
}

int
swz_page_fix_child(struct swz_thread *th, const struct swz_page *parent, swz_word *word,
                   bool is_exclusive, struct swz_page *pagep)
{
    return fix_timed(th, parent, word, word_load(word), is_exclusive, pagep);
}

int
swz_page_fix_number(struct swz_thread *th, uint32_t number, bool is_exclusive,
                    struct swz_page *pagep)
{
    return fix_timed(th, NULL, NULL, number, is_exclusive, pagep);
}

static frame_ref
ref_now(struct swz_space *s, uint32_t frame)
{
    return frame_ref_make((uint32_t)(frame_load(&s->pool->frames[frame]) >> 32), frame);
}

void
swz_page_pin(struct swz_thread *th, const struct swz_page *page)
{
    struct frame *f = &th->space->pool->frames[page->frame];
    bool done = frame_try_pin(f, ref_now(th->space, page->frame));

    xac_require(done); /* latched, so it is not gone */
}

void
swz_page_unpin(struct swz_thread *th, const struct swz_page *page)
{
    frame_unpin(&th->space->pool->frames[page->frame]);
}

void
swz_page_changed(struct swz_thread *th, const struct swz_page *page, uint64_t lsn)
{
    struct frame *f = &th->space->pool->frames[page->frame];

    xac_assert(page->is_exclusive);
    atomic_store_explicit(&f->side.lsn, lsn, memory_order_relaxed);
    frame_mark_dirty(f);
}

/* ---- Copies ------------------------------------------------------------------------- */

void
swz_page_copy_plain(const struct swz_space *s, const void *data, void *copy)
{
    struct btree_node *node = copy;
    const struct btree *t;

    memcpy(copy, data, s->page_bytes);
    if (data == (const void *)s->header || node->level == 0
        || node->level == BTREE_LEVEL_FREE)
        return;
    t = &s->trees[node->zero].layout;
    swz_point("copied");
    for (unsigned i = 0; i <= node->n; i++) {
        uint32_t *word = i == 0 ? &node->link : cell_child(t, node, node->slots[i - 1]);

        if (word_is_swizzled(*word))
            *word = page_number(s, word_frame(*word));
    }
}

void
swz_page_restore(struct swz_thread *th, const struct swz_page *page, const void *copy)
{
    swz_page_unswizzle_all(th->space, page->frame, NULL, 0);
    memcpy(page->node, copy, th->space->page_bytes);
}

/* page_write -- the pool's write: a plain copy, made under the latch, after its log. */
static int
page_write(void *space, uint64_t number, uint32_t frame, const void *data)
{
    static _Thread_local alignas(4096) unsigned char copy[SWZ_PAGE_MAX];
    struct swz_space *s = space;
    struct frame_side *side = side_of(s, frame);
    const struct btree_node *node = data;
    bool is_exclusive = false;
    uint64_t lsn;
    int rc;

    if (swz_page_may_wait)
        latch_take_s(&side->latch);
    else if (!latch_try_s(&side->latch))
        return EAGAIN;
    if (number != 0 && node->level != 0 && node->level != BTREE_LEVEL_FREE) {
        latch_drop(&side->latch, false); /* children come and go under S */
        is_exclusive = true;
        if (swz_page_may_wait)
            latch_take_x(&side->latch);
        else if (!latch_try_x(&side->latch))
            return EAGAIN;
    }
    swz_page_copy_plain(s, data, copy);
    lsn = atomic_load_explicit(&side->lsn, memory_order_relaxed);
    latch_drop(&side->latch, is_exclusive);
    rc = swz_log_sync(s, lsn);
    return rc != 0 ? rc : swz_store_write(s, number, copy);
}

/* ---- Eviction ----------------------------------------------------------------------- */

static bool
is_barred(void *space, uint32_t frame)
{
    struct swz_space *s = space;
    struct frame_side *side = side_of(s, frame);

    if (atomic_load_explicit(&side->n_swizzled, memory_order_relaxed) == 0
        && (atomic_load_explicit(&side->flags, memory_order_relaxed) & SIDE_ROOT) == 0)
        return false;
    swz_event(s, SWZ_REFUSED_CHILDREN, 1);
    return true;
}

/*
 * word_of -- the word of a latched parent that refers to the frame (I2).  It is where it was made a
 * reference: words do not move within a page, and before they move to another one, or the page is
 * put back as a whole, they become numbers.
 */
static swz_word *
word_of(struct swz_space *s, uint32_t parent, uint32_t frame)
{
    uint32_t offset =
        atomic_load_explicit(&side_of(s, frame)->offset, memory_order_relaxed);

    return (swz_word *)(void *)((char *)page_node(s, parent) + offset);
}

/* unlink_child -- withdraw the word that refers to a frame held X; false: not now. */
static bool
unlink_child(struct swz_space *s, uint32_t frame)
{
    struct frame_side *side = side_of(s, frame);
    uint32_t parent = atomic_load_explicit(&side->parent, memory_order_relaxed);
    struct frame_side *above;
    swz_word *word;
    bool is_ours;

    if (parent == 0) { /* a structural change is at it */
        swz_event(s, SWZ_REFUSED_MOVED, 1);
        return false;
    }
    above = side_of(s, parent - 1);
    if (!latch_try_s(&above->latch)) { /* against the order: never wait (I13) */
        swz_event(s, SWZ_REFUSED_PARENT, 1);
        return false;
    }
    is_ours = atomic_load_explicit(&side->flags, memory_order_relaxed) == SIDE_SWIZZLED
              && atomic_load_explicit(&side->parent, memory_order_relaxed) == parent;
    if (is_ours) {
        word = word_of(s, parent - 1, frame);
        xac_require(word_load(word) == word_make(frame)); /* I2 */
        unswizzle(s, parent - 1, word, frame);
    } else {
        swz_event(s, SWZ_REFUSED_MOVED, 1);
    }
    latch_drop(&above->latch, false);
    return is_ours;
}

static bool
evict_begin(void *space, uint32_t frame)
{
    struct swz_space *s = space;
    struct frame_side *side = side_of(s, frame);

    if (!latch_try_x(&side->latch)) {
        swz_event(s, SWZ_REFUSED_LATCH, 1);
        return false;
    }
    if (!is_barred(s, frame)
        && (atomic_load_explicit(&side->flags, memory_order_relaxed) == 0
            || unlink_child(s, frame)))
        return true;
    latch_undo_x(&side->latch);
    return false;
}

static void
evict_end(void *space, uint32_t frame, bool is_gone)
{
    struct swz_space *s = space;

    if (is_gone && s->hash != NULL) /* page_id is the life's that has just ended */
        swz_hash_remove(s, page_number(s, frame));
    latch_drop(&side_of(s, frame)->latch, true);
}

/* ---- The walk, when the policy finds nobody -------------------------------------------- */

struct walk {
    struct swz_space *space;
    struct xac_frames_user *user;
    struct swz_cursor *cursor;
};

static bool walk_below(struct walk *w, uint32_t frame, unsigned depth);

/* walk_child -- evict the child, or something below it. */
static bool
walk_child(struct walk *w, uint32_t child, unsigned depth)
{
    if (atomic_load_explicit(&side_of(w->space, child)->n_swizzled, memory_order_relaxed)
        != 0)
        return walk_below(w, child, depth + 1);
    return xac_frames_evict(w->user, child);
}

/* walk_below -- children first, from the cursor on; only tries latches. */
static bool
walk_below(struct walk *w, uint32_t frame, unsigned depth)
{
    struct swz_space *s = w->space;
    struct frame_side *side = side_of(s, frame);
    unsigned *pos = w->cursor->pos;
    const struct btree_node *node;
    bool done = false;

    if (!latch_try_s(&side->latch))
        return false;
    node = page_node(s, frame);
    /* Its own children may have left since; and a frame that was given up has none. */
    if (atomic_load_explicit(&side->n_swizzled, memory_order_relaxed) != 0) {
        while (!done && pos[depth] <= node->n) {
            uint32_t word =
                word_load(word_at(&s->trees[node->zero].layout, node, pos[depth]));

            done = word_is_swizzled(word) && walk_child(w, word_frame(word), depth);
            /* Stay at a child that has more below it. */
            if (done && word_is_swizzled(word) && pos[depth + 1] != 0)
                break;
            pos[depth]++;
            pos[depth + 1] = 0;
        }
    }
    if (!done)
        pos[depth] = 0;
    latch_drop(&side->latch, false);
    return done;
}

static bool
no_victim(void *space, struct xac_frames_user *user)
{
    struct swz_space *s = space;
    struct walk w = {.space = s, .user = user, .cursor = &s->cursor};
    uint32_t none = 0;
    bool done = false;

    /* Acquire pairs with the release below: the cursor. */
    if (!atomic_compare_exchange_strong_explicit(&s->sweeping, &none, 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    swz_event(s, SWZ_SWEEPS, 1);
    for (unsigned i = 0; i <= SWZ_TREES && !done; i++) { /* the first one once more */
        struct swz_tree *t = &s->trees[w.cursor->tree];

        /* Acquire pairs with tree creation. */
        if (atomic_load_explicit(&t->exists, memory_order_acquire))
            done = walk_below(&w, t->root_frame, 0);
        if (!done) {
            w.cursor->tree = (w.cursor->tree + 1) % SWZ_TREES;
            memset(w.cursor->pos, 0, sizeof w.cursor->pos);
        }
    }
    swz_event(s, SWZ_SWEEP_EVICTIONS, done);
    /* Release pairs with the acquire above. */
    atomic_store_explicit(&s->sweeping, 0, memory_order_release);
    return done;
}

const struct pool_owner swz_pool_owner = {
    .is_barred = is_barred,
    .evict_begin = evict_begin,
    .evict_end = evict_end,
    .no_victim = no_victim,
    .write = page_write,
};
