/* SPDX-License-Identifier: MIT */
/*
 * peek.c -- from the root to a leaf without a latch (I14).
 *
 * By reference: the child's latch is looked at, then the word and the parent's latch once more; no
 * shared word is written.  Without swizzling the child is found in the table and pinned while it
 * is looked at.  Where a word is to be swizzled, the way goes on with latches.
 *
 * A word read here may be in the middle of a change: it is bounded by the page, and thrown away
 * if a latch says so.  Buffers of pages are never unmapped while a space is open.
 */
#include <config.h>

#include "page.h"

#include <errno.h>

#include "base/err.h"

#define PEEK_TRIES 3 /* then by latches */

/* A leaf to be found, and how: looked at, or latched. */
struct goal {
    bool wants_latch, wants_x;
    bool only_resident; /* no page is read, and nothing is swizzled */
    bool is_latched;    /* what was found: `page`, or else `peek` */
    struct swz_peek peek;
    struct swz_page page;
    struct key_range range; /* of its keys */
};

/* ---- Reading what may change --------------------------------------------------------- */

#define ALWAYS static inline __attribute__((always_inline))

/* bytes_order -- as key_order(), without a function that a sanitizer watches. */
ALWAYS int
bytes_order(const unsigned char *a, const unsigned char *b, uint32_t n)
{
    uint32_t i = 0;

    for (; i + 8 <= n; i += 8)
        if (key_word(a + i) != key_word(b + i))
            return key_word(a + i) < key_word(b + i) ? -1 : 1;
    for (; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* bytes_copy -- the same for memcpy. */
ALWAYS void
bytes_copy(unsigned char *to, const unsigned char *from, uint32_t n)
{
    uint32_t i = 0;

    for (; i + 8 <= n; i += 8)
        memcpy(to + i, from + i, 8);
    for (; i < n; i++)
        *(volatile unsigned char *)(to + i) = from[i];
}

/* cell_of -- of rank i, inside the page whatever the slot holds. */
ALWAYS unsigned
cell_of(const struct btree_node *node, unsigned cap, unsigned i)
{
    unsigned cell = i < cap ? node->slots[i] : 0;

    return cell < cap ? cell : 0;
}

/* rank_of -- as node_rank(); `range` only of 8-byte keys. */
ALWAYS unsigned
rank_of(const struct btree *t, const struct btree_node *node, unsigned level,
        const unsigned char *key, unsigned or_equal, struct key_range *range)
{
    unsigned cap = level == 0 ? t->leaf_cap : t->inner_cap;
    const unsigned char *keys =
        (const unsigned char *)node + (level == 0 ? t->leaf_keys : t->inner_keys);
    unsigned lo = 0, hi = node->n < cap ? node->n : cap;

    if (t->key_size == 8)
        return node_rank_near(node, keys, cap, key_word(key), or_equal, range);
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        const unsigned char *k = keys + (size_t)cell_of(node, cap, mid) * t->key_size;

        if (bytes_order(k, key, t->key_size) < (int)or_equal)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* child_word -- the level, and unless it is 0 the word of the child that a key belongs to. */
XAC_RACY static swz_word *
child_word(const struct btree *t, const struct btree_node *node, const unsigned char *key,
           struct key_range *range, unsigned *levelp)
{
    unsigned char *page = (unsigned char *)(uintptr_t)node;
    unsigned pos;

    *levelp = node->level;
    if (*levelp == 0)
        return NULL;
    pos = rank_of(t, node, 1, key, 1, range);
    if (pos == 0)
        return (swz_word *)(void *)(page + offsetof(struct btree_node, link));
    return (swz_word *)(void *)(page + t->inner_children)
           + cell_of(node, t->inner_cap, pos - 1);
}

/*
 * rank_in_leaf -- as rank_of().  A leaf's lines are cold, more often than not, and each load would
 * wait for the one before: so those of the key and the value where the guess is are fetched
 * beside its slot, as if cells were in order, which they are after ascending inserts.
 */
ALWAYS unsigned
rank_in_leaf(const struct btree *t, const struct btree_node *leaf,
             const unsigned char *key, struct key_range *range)
{
    const unsigned char *page = (const unsigned char *)leaf, *keys = page + t->leaf_keys;
    unsigned cap = t->leaf_cap, n = leaf->n < cap ? leaf->n : cap, i;

    if (t->key_size != 8 || n == 0)
        return rank_of(t, leaf, 0, key, 0, range);
    i = rank_guess(leaf, keys, cap, n, key_word(key), 0, range);
    __builtin_prefetch(keys + (size_t)i * 8);
    __builtin_prefetch(page + t->leaf_values + (size_t)i * t->value_size);
    return rank_from(leaf, keys, cap, n, i, key_word(key), 0, range);
}

/* value_read -- the entry's value; ret 0 or ENOENT. */
XAC_RACY static int
value_read(const struct btree *t, const struct btree_node *leaf, const unsigned char *key,
           struct key_range *range, unsigned char *value)
{
    const unsigned char *page = (const unsigned char *)leaf;
    unsigned pos = rank_in_leaf(t, leaf, key, range);
    unsigned cell = cell_of(leaf, t->leaf_cap, pos);

    if (pos >= leaf->n
        || bytes_order(page + t->leaf_keys + (size_t)cell * t->key_size, key, t->key_size)
               != 0)
        return ENOENT;
    if (value != NULL)
        bytes_copy(value, page + t->leaf_values + (size_t)cell * t->value_size,
                   t->value_size);
    return 0;
}

/* ---- From page to page --------------------------------------------------------------- */

static bool
root_peek(struct swz_thread *th, unsigned tree, struct swz_peek *p)
{
    const struct swz_tree *t = &th->space->trees[tree];

    swz_count(th, SWZ_FIXES_ROOT);
    *p = (struct swz_peek){.node = t->root, .frame = t->root_frame};
    return latch_look(&side_of(th->space, t->root_frame)->latch, &p->version);
}

/* word_holds -- I14: the word still says so, and its page is still that page. */
static inline bool
word_holds(struct swz_space *s, const struct swz_peek *parent, swz_word *word, uint32_t w)
{
    /* The parent's latch is looked at after the word. */
    return (latch_watch(word) == w || SWZ_REREAD_IS_OFF) && peek_holds(s, parent);
}

/* reference_peek -- follow a reference. */
ALWAYS int
reference_peek(struct swz_thread *th, const struct swz_peek *parent, swz_word *word,
               uint32_t w, struct swz_peek *child)
{
    struct swz_space *s = th->space;
    uint32_t frame = word_frame(w), data, buffer;

    swz_point("word");
    if (frame >= s->pool->region->n_frames_all)
        return EAGAIN;
    /* Beside the descriptor, not after it. */
    buffer = atomic_load_explicit(&s->buffers[frame], memory_order_relaxed);
    __builtin_prefetch(s->pool->data + (uint64_t)buffer * s->page_bytes);
    if (!latch_look(&side_of(s, frame)->latch, &child->version))
        return EAGAIN;
    if (!word_holds(s, parent, word, w)) {
        swz_count(th, SWZ_REREADS_FAILED);
        return EAGAIN;
    }
    /* Only now: before, it may have been what the frame had in another life. */
    data = atomic_load_explicit(&s->pool->frames[frame].data, memory_order_relaxed);
    if (data == 0) /* it has left since */
        return EAGAIN;
    swz_count(th, SWZ_FIXES_SWIZZLED);
    pool_hit(th->user, frame);
    child->node = pool_data(s->pool, data);
    child->frame = frame;
    child->is_pinned = false;
    return 0;
}

/* number_peek -- through the table. */
static int
number_peek(struct swz_thread *th, const struct swz_peek *parent, swz_word *word,
            uint32_t w, bool only_resident, struct swz_peek *child)
{
    int rc;

    if (!peek_holds(th->space, parent)) /* or w may be no page at all */
        return EAGAIN;
    rc = swz_page_peek(th, w, only_resident, child);
    if (rc != 0 || word_holds(th->space, parent, word, w))
        return rc;
    peek_end(th, child);
    return EAGAIN;
}

/* child_peek -- either way; one in SWZ_SAMPLE is timed. */
ALWAYS int
child_peek(struct swz_thread *th, const struct swz_peek *parent, swz_word *word,
           uint32_t w, bool only_resident, struct swz_peek *child)
{
    bool is_reference = word_is_swizzled(w);
    uint64_t start, misses;
    enum swz_way way;
    int rc;

    if (xac_likely(--th->until_sample != 0))
        return is_reference ? reference_peek(th, parent, word, w, child)
                            : number_peek(th, parent, word, w, only_resident, child);
    th->until_sample = SWZ_SAMPLE;
    misses = swz_misses_of(th);
    start = swz_ticks();
    rc = is_reference ? reference_peek(th, parent, word, w, child)
                      : number_peek(th, parent, word, w, only_resident, child);
    way = is_reference                  ? SWZ_SWIZZLED
          : swz_misses_of(th) != misses ? SWZ_MISS
                                        : SWZ_LOOKUP;
    swz_sampled(th, false, way, swz_ticks() - start);
    return rc;
}

/* parent_latch -- from looking at a page to having it latched S; false: it has changed. */
static bool
parent_latch(struct swz_thread *th, const struct swz_peek *p, struct swz_page *pagep)
{
    latch_word *latch = &side_of(th->space, p->frame)->latch;

    if (!latch_try_s(latch))
        return false;
    if (!peek_holds(th->space, p)) {
        latch_drop(latch, false);
        return false;
    }
    *pagep = (struct swz_page){.node = (struct btree_node *)(uintptr_t)p->node,
                               .frame = p->frame};
    return true;
}

/* reference_latch -- latch the page that a reference leads to. */
static int
reference_latch(struct swz_thread *th, const struct swz_peek *parent, swz_word *word,
                uint32_t w, bool is_exclusive, struct swz_page *pagep)
{
    struct swz_space *s = th->space;
    uint32_t frame = word_frame(w);
    latch_word *latch;

    if (frame >= s->pool->region->n_frames_all)
        return EAGAIN;
    latch = &side_of(s, frame)->latch;
    /* Without any other latch, so it may wait for whatever page is there now. */
    if (!latch_take_while(latch, is_exclusive, word, w))
        return EAGAIN;
    if (!word_holds(s, parent, word, w)) {
        latch_drop(latch, is_exclusive);
        swz_count(th, SWZ_REREADS_FAILED);
        return EAGAIN;
    }
    swz_count(th, SWZ_FIXES_SWIZZLED);
    *pagep = (struct swz_page){.node = xac_frames_hit(th->user, frame),
                               .frame = frame,
                               .is_exclusive = is_exclusive};
    return 0;
}

/* leaf_latch -- the leaf that a word of a page looked at refers to. */
static int
leaf_latch(struct swz_thread *th, const struct swz_peek *parent, swz_word *word,
           uint32_t w, bool is_exclusive, struct swz_page *pagep)
{
    int rc;

    if (word_is_swizzled(w))
        return reference_latch(th, parent, word, w, is_exclusive, pagep);
    if (!peek_holds(th->space, parent))
        return EAGAIN;
    rc = swz_page_fix_number(th, w, is_exclusive, pagep);
    if (rc != 0 || word_holds(th->space, parent, word, w))
        return rc;
    page_unfix(th, pagep);
    return EAGAIN;
}

/*
 * below -- by a word of a page held S, which it lets go, latch by latch to the key's leaf: the word was found
 * without the latch, and counts, for nobody has changed the page since.
 */
static int
below(struct swz_thread *th, const struct btree *t, const unsigned char *key,
      swz_word *word, bool is_exclusive, struct swz_page *pagep)
{
    bool to_leaf = pagep->node->level == 1;
    struct swz_page child;
    int rc = swz_page_fix_child(th, pagep, word, to_leaf && is_exclusive, &child);

    page_unfix(th, pagep);
    if (rc != 0)
        return rc;
    *pagep = child;
    return to_leaf ? 0 : swz_leaf_fix_below(th, t, key, is_exclusive, pagep);
}

/*
 * way_down -- to the key's leaf; latched if that was asked for, or if a page on the way
 * was not swizzled and is now.
 */
ALWAYS int
way_down(struct swz_thread *th, unsigned tree, const unsigned char *key,
         struct goal *goal)
{
    const struct btree *t = &th->space->trees[tree].layout;
    struct swz_peek at, child;
    bool may_swizzle =
        !goal->only_resident
        && atomic_load_explicit(&th->space->is_swizzling, memory_order_relaxed);
    int rc = root_peek(th, tree, &at) ? 0 : EAGAIN;

    while (rc == 0) {
        unsigned level;
        swz_word *word = child_word(t, at.node, key, &goal->range, &level);
        bool swizzles;
        uint32_t w;

        if (word == NULL) {
            goal->peek = at;
            return goal->wants_latch ? ENODATA : 0; /* a root that is a leaf */
        }
        w = latch_watch(word);
        swizzles = may_swizzle && !word_is_swizzled(w);
        goal->is_latched = swizzles || (goal->wants_latch && level == 1);
        if (!goal->is_latched)
            rc = child_peek(th, &at, word, w, goal->only_resident, &child);
        else if (!swizzles)
            rc = leaf_latch(th, &at, word, w, goal->wants_x, &goal->page);
        else if (parent_latch(th, &at, &goal->page))
            rc = below(th, t, key, word, goal->wants_x, &goal->page);
        else
            rc = EAGAIN;
        peek_end(th, &at);
        if (rc != 0 || goal->is_latched)
            return rc;
        at = child;
    }
    return rc;
}

/* value_get -- of the leaf found, which it lets go; EAGAIN: it has changed meanwhile. */
ALWAYS int
value_get(struct swz_thread *th, unsigned tree, const unsigned char *key,
          struct goal *goal, void *value)
{
    const struct btree_node *leaf = goal->is_latched ? goal->page.node : goal->peek.node;
    int rc = value_read(&th->space->trees[tree].layout, leaf, key, &goal->range, value);

    if (goal->is_latched) {
        page_unfix(th, &goal->page);
        return rc;
    }
    if (!peek_holds(th->space, &goal->peek))
        rc = EAGAIN;
    peek_end(th, &goal->peek);
    return rc;
}

/* ---- Interface ----------------------------------------------------------------------- */

int
swz_peek_search(struct swz_thread *th, unsigned tree, const unsigned char *key,
                void *value)
{
    for (int i = 0; i < PEEK_TRIES; i++) {
        struct goal goal = {0};
        int rc = way_down(th, tree, key, &goal);

        if (rc == ENODATA) /* not in the hash table */
            return EAGAIN;
        if (rc == 0)
            rc = value_get(th, tree, key, &goal, value);
        if (rc != EAGAIN)
            return rc;
        swz_count(th, SWZ_PEEKS_FAILED);
    }
    return EAGAIN;
}

int
swz_peek_resident(struct swz_thread *th, unsigned tree, const unsigned char *key,
                  void *value)
{
    struct goal goal = {.only_resident = true};
    int rc = way_down(th, tree, key, &goal);

    return rc == 0 ? value_get(th, tree, key, &goal, value) : rc;
}

int
swz_peek_leaf(struct swz_thread *th, unsigned tree, const unsigned char *key,
              bool is_exclusive, struct swz_page *pagep)
{
    for (int i = 0; i < PEEK_TRIES; i++) {
        struct goal goal = {.wants_latch = true, .wants_x = is_exclusive};
        int rc = way_down(th, tree, key, &goal);

        if (rc == 0)
            *pagep = goal.page;
        if (rc != EAGAIN)
            return rc == ENODATA ? EAGAIN : rc;
        swz_count(th, SWZ_PEEKS_FAILED);
    }
    return EAGAIN;
}
