/* SPDX-License-Identifier: MIT */
/*
 * check.c -- whether a space at rest is whole: frames and references (page.h, I1 to I12), then
 * each tree, then which pages are in use.
 */
#include <config.h>

#include "page.h"

#include <stdlib.h>

struct walk {
    struct swz_space *s;
    unsigned char *pages;      /* times seen, by page */
    unsigned char *references; /* words that refer to it, by frame */
    const struct btree *t;
    unsigned tree;
    uint32_t next_leaf; /* link of the leaf before; 0: no leaf yet, or the last one */
    bool has_leaf;
};

static uint32_t
load32(const xac_shared _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* ---- Frames ------------------------------------------------------------------------- */

/* resident -- the frame's page is in the table, with bytes. */
static bool
resident(const struct swz_space *s, uint32_t frame)
{
    struct frame *f = &s->pool->frames[frame];
    uint64_t state = atomic_load_explicit(&f->state, memory_order_relaxed);
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);

    return frame_word(state) != FRAME_GONE && state != 0 && load32(&f->data) != 0
           && atomic_load_explicit(&s->pool->table[page], memory_order_relaxed)
                  == frame_ref_make((uint32_t)(state >> 32), frame);
}

/* words_check -- of a resident inner page. */
static const char *
words_check(struct walk *w, uint32_t frame, const struct btree_node *node)
{
    const struct swz_space *s = w->s;
    const struct btree *t = &s->trees[node->zero].layout;
    uint32_t n = 0;

    for (unsigned i = 0; i <= node->n; i++) {
        uint32_t word = load32(word_at(t, node, i)), child = word_frame(word);
        const struct frame_side *side;

        if (!word_is_swizzled(word))
            continue;
        if (child >= s->pool->region->n_frames_all || !resident(s, child))
            return "I3: a word refers to a frame without page";
        side = side_of(s, child);
        if (load32(&side->flags) != SIDE_SWIZZLED)
            return "I3: a word refers to a frame that is not swizzled";
        if (load32(&side->parent) != frame + 1)
            return "I2: a frame does not know the page that refers to it";
        if (w->references[child]++ != 0)
            return "I2: two words refer to one frame";
        n++;
    }
    if (n != load32(&side_of(s, frame)->n_swizzled))
        return "I5: n_swizzled is not the number of references";
    if (n > 0 && load32(&side_of(s, frame)->flags) == 0)
        return "I4: a page with references is not swizzled itself";
    return NULL;
}

static const char *
frame_check(struct walk *w, uint32_t frame)
{
    const struct swz_space *s = w->s;
    const struct frame_side *side = side_of(s, frame);
    const struct btree_node *node;

    if (!latch_is_free(&side->latch))
        return "a frame is latched";
    if (!resident(s, frame))
        return load32(&side->flags) == 0 && load32(&side->parent) == 0
                       && load32(&side->n_swizzled) == 0
                   ? NULL
                   : "I12: a frame without page has something in its side";
    node = page_node(s, frame);
    if (frame == s->header_frame || node->level == 0 || node->level == BTREE_LEVEL_FREE)
        return load32(&side->n_swizzled) == 0 ? NULL : "I5: a leaf has references";
    return words_check(w, frame, node);
}

static const char *
frames_check(struct walk *w)
{
    const struct swz_space *s = w->s;
    uint32_t n = s->pool->region->n_frames_all;
    const char *wrong = NULL;

    for (uint32_t i = 0; i < n && wrong == NULL; i++)
        wrong = frame_check(w, i);
    for (uint32_t i = 0; i < n && wrong == NULL; i++) {
        uint32_t flags = load32(&side_of(s, i)->flags);

        if ((flags == SIDE_SWIZZLED) != (w->references[i] == 1))
            wrong = "I2: a swizzled frame that no word refers to";
    }
    return wrong;
}

/* ---- Trees -------------------------------------------------------------------------- */

static const char *
page_see(struct walk *w, uint32_t page)
{
    if (page >= w->s->header->high_water)
        return "a page number is beyond those in use";
    return w->pages[page]++ == 0 ? NULL : "a page is used twice";
}

static const char *
keys_check(const struct walk *w, const struct btree_node *node, const unsigned char *low,
           const unsigned char *high)
{
    for (unsigned i = 0; i < node->n; i++) {
        const unsigned char *key = key_at(w->t, node, i);

        if ((i > 0 && memcmp(key_at(w->t, node, i - 1), key, w->t->key_size) >= 0)
            || (low != NULL && memcmp(key, low, w->t->key_size) < 0)
            || (high != NULL && memcmp(key, high, w->t->key_size) >= 0))
            return "keys are not in order";
    }
    return NULL;
}

/* node_check -- a page held, and below it.  high NULL: the right edge. */
static const char *
node_check(struct walk *w, const struct swz_page *page, unsigned level,
           const unsigned char *low, const unsigned char *high)
{
    const struct btree_node *node = page->node;
    bool is_root = page->frame == w->s->trees[w->tree].root_frame;
    const char *wrong = page_see(w, node->self);

    if (wrong == NULL)
        wrong = keys_check(w, node, low, high);
    if (wrong != NULL)
        return wrong;
    if (node->level != level || node->zero != w->tree
        || node->self != page_number(w->s, page->frame))
        return "a node's header is wrong";
    if (!is_root && node->n < (high == NULL ? 1 : min_of(w->t, level)))
        return "a node has too few entries";
    if (level == 0) {
        if (w->has_leaf && w->next_leaf != node->self)
            return "leaves are not linked in order";
        w->has_leaf = true;
        w->next_leaf = node->link;
        return NULL;
    }
    if (level >= BTREE_DEPTH_MAX || (is_root && node->n == 0))
        return "an inner node's level is wrong, or the root has one child";
    for (unsigned i = 0; i <= node->n && wrong == NULL; i++) {
        struct swz_page child;

        if (swz_page_fix_child(w->s->keeper, page, word_at(w->t, node, i), false, &child)
            != 0)
            return "a page cannot be fixed";
        wrong = node_check(w, &child, level - 1, i == 0 ? low : key_at(w->t, node, i - 1),
                           i == node->n ? high : key_at(w->t, node, i));
        page_unfix(w->s->keeper, &child);
    }
    return wrong;
}

static const char *
tree_check(struct walk *w, unsigned tree)
{
    struct swz_page root;
    const char *wrong;

    w->tree = tree;
    w->t = &w->s->trees[tree].layout;
    w->has_leaf = false;
    w->next_leaf = 0;
    swz_page_fix_root(w->s->keeper, tree, false, &root);
    wrong = node_check(w, &root, root.node->level, NULL, NULL);
    page_unfix(w->s->keeper, &root);
    if (wrong == NULL && w->next_leaf != 0)
        wrong = "the last leaf has a successor";
    return wrong;
}

/* rest_check -- free pages, and none that is neither free nor in a tree. */
static const char *
rest_check(struct walk *w)
{
    const struct swz_header *h = w->s->header;
    uint32_t page = h->free_head;
    const char *wrong = NULL;

    while (page != 0 && wrong == NULL) {
        struct swz_page free_page;

        wrong = page_see(w, page);
        if (wrong != NULL
            || swz_page_fix_number(w->s->keeper, page, false, &free_page) != 0)
            return wrong != NULL ? wrong : "a free page cannot be fixed";
        if (free_page.node->level != BTREE_LEVEL_FREE)
            wrong = "a free page is not free";
        page = free_page.node->link;
        page_unfix(w->s->keeper, &free_page);
    }
    for (page = SWZ_FIRST_PAGE; page < h->high_water && wrong == NULL; page++)
        if (w->pages[page] == 0)
            wrong = "a page is lost";
    return wrong;
}

const char *
swz_check(struct swz_space *s)
{
    struct walk w = {.s = s,
                     .pages = calloc(s->header->n_pages, 1),
                     .references = calloc(s->pool->region->n_frames_all, 1)};
    const char *wrong = "no memory to check with";
    uint64_t n_pins, n_trees = 0;

    if (w.pages != NULL && w.references != NULL) {
        wrong = xac_frames_check(s->pool, &n_pins); /* I1 */
        if (wrong == NULL)
            wrong = frames_check(&w);
        for (unsigned i = 0; i < SWZ_TREES && wrong == NULL; i++)
            /* Acquire pairs with tree_publish(). */
            if (atomic_load_explicit(&s->trees[i].exists, memory_order_acquire)) {
                n_trees++;
                wrong = tree_check(&w, i);
            }
        if (wrong == NULL)
            wrong = rest_check(&w);
        if (wrong == NULL && n_pins != 1 + n_trees)
            wrong = "I6: pins are not those of the header and the roots";
    }
    free(w.pages);
    free(w.references);
    return wrong;
}
