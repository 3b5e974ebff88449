/* SPDX-License-Identifier: MIT */
/*
 * tree_smo.c -- changes of structure: splits, merges, the root's growth and shrinking.
 *
 * One at a time in a space (smo), so that between them inner nodes do not change.  Each goes
 * through three steps:
 *   1  pin every page it may need: the path, a neighbour at each level, new pages.  Here frames are
 *      found and pages are read, and here it may fail.
 *   2  latch them exclusively, from the highest that changes down, left before right.
 *   3  unswizzle what moves (I10), change, write one record, let go.  Nothing waits for a frame.
 */
#include <config.h>

#include "page.h"

#include <errno.h>

#include "base/err.h"

#define PAGES_MAX (3 * BTREE_DEPTH_MAX)

/* A change under way. */
struct smo {
    struct swz_thread *th;
    const struct btree *t;
    unsigned tree, depth; /* pages on the path; the last is the leaf */
    struct swz_page path[BTREE_DEPTH_MAX + 1];
    unsigned pos[BTREE_DEPTH_MAX + 1];
    struct swz_page beside[BTREE_DEPTH_MAX + 1]; /* neighbours; node NULL: none */
    struct swz_page fresh[BTREE_DEPTH_MAX + 1];
    unsigned n_fresh, n_used;
    uint32_t free_head, high_water;  /* of the header after it */
    struct swz_page held[PAGES_MAX]; /* latched X, in that order; pinned too */
    unsigned n_held;
};

/* ---- Pages -------------------------------------------------------------------------- */

/* path_pin -- from the root to the key's leaf; pinned, not latched. */
static int
path_pin(struct smo *o, const unsigned char *key)
{
    struct swz_page page, child;
    int rc = 0;

    swz_page_fix_root(o->th, o->tree, false, &page);
    swz_page_pin(o->th, &page);
    o->path[o->depth++] = page;
    while (page.node->level != 0 && rc == 0) {
        unsigned pos = node_rank(o->t, page.node, key, 1);

        rc = swz_page_fix_child(o->th, &page, word_at(o->t, page.node, pos), false,
                                &child);
        page_unfix(o->th, &page);
        if (rc != 0)
            return rc;
        swz_page_pin(o->th, &child);
        o->pos[o->depth - 1] = pos;
        o->path[o->depth++] = page = child;
    }
    page_unfix(o->th, &page);
    return 0;
}

/* beside_pin -- the neighbour that path[i] would merge with: the left one, if there is one. */
static int
beside_pin(struct smo *o, unsigned i)
{
    struct swz_page parent = o->path[i - 1], page;
    unsigned pos = o->pos[i - 1];
    int rc;

    latch_take_s(&side_of(o->th->space, parent.frame)->latch);
    parent.is_exclusive = false;
    pos = pos > 0 ? pos - 1 : pos + 1;
    if (pos > parent.node->n) { /* an only child */
        page_unfix(o->th, &parent);
        return 0;
    }
    rc =
        swz_page_fix_child(o->th, &parent, word_at(o->t, parent.node, pos), false, &page);
    page_unfix(o->th, &parent);
    if (rc != 0)
        return rc;
    swz_page_pin(o->th, &page);
    o->beside[i] = page;
    page_unfix(o->th, &page);
    return 0;
}

/* fresh_pin -- n new pages: freed ones first.  The header says so only after the change. */
static int
fresh_pin(struct smo *o, unsigned n)
{
    struct swz_space *s = o->th->space;

    o->free_head = s->header->free_head;
    o->high_water = s->header->high_water;
    for (unsigned i = 0; i < n; i++) {
        bool is_unused = o->free_head == 0;
        uint32_t page = is_unused ? o->high_water : o->free_head;
        struct xac_frames_pin pin;
        int rc;

        if (is_unused && page >= s->header->n_pages)
            return xac_err(ENOSPC, "the space has no page left, of %u", page);
        rc = xac_frames_fix(o->th->user, page, is_unused ? XAC_FRAMES_NEW : 0, &pin);
        if (rc != 0)
            return rc;
        o->fresh[o->n_fresh++] =
            (struct swz_page){.node = pin.data, .frame = frame_ref_index(pin.ref)};
        if (s->counts_first_fix)
            pool_hit(o->th->user, frame_ref_index(pin.ref));
        if (is_unused)
            o->high_water++;
        else
            o->free_head = o->fresh[i].node->link;
    }
    return 0;
}

/* hold -- latch a pinned page X. */
static void
hold(struct smo *o, struct swz_page *page)
{
    latch_take_x(&side_of(o->th->space, page->frame)->latch);
    page->is_exclusive = true;
    xac_assert(o->n_held < PAGES_MAX);
    o->held[o->n_held++] = *page;
}

/* hold_from -- path and neighbours from level `top` of the path down, and the new pages. */
static void
hold_from(struct smo *o, unsigned top)
{
    hold(o, &o->path[top]);
    for (unsigned i = top + 1; i < o->depth; i++) {
        bool beside_first = o->pos[i - 1] > 0;

        if (o->beside[i].node != NULL && beside_first)
            hold(o, &o->beside[i]);
        hold(o, &o->path[i]);
        if (o->beside[i].node != NULL && !beside_first)
            hold(o, &o->beside[i]);
    }
    for (unsigned i = 0; i < o->n_fresh; i++)
        hold(o, &o->fresh[i]);
}

/* unswizzle_moved -- everything in inner pages below the topmost one held, lowest first. */
static void
unswizzle_moved(struct smo *o, bool top_too)
{
    for (unsigned i = o->n_held; i-- > (top_too ? 0 : 1);)
        if (o->held[i].node->level != 0 && o->held[i].node->level != BTREE_LEVEL_FREE)
            swz_page_unswizzle_all(o->th->space, o->held[i].frame, o->held, o->n_held);
}

/* fresh_take -- the next new page as an empty node. */
static struct btree_node *
fresh_take(struct smo *o, unsigned level)
{
    struct swz_page *page = &o->fresh[o->n_used++];
    uint32_t number = page_number(o->th->space, page->frame);

    xac_assert(o->n_used <= o->n_fresh);
    (void)node_init_at(o->t, page->node, number, level);
    page->node->zero = (uint16_t)o->tree;
    return page->node;
}

/* page_free -- a page held X that nothing refers to. */
static void
page_free(struct smo *o, struct btree_node *node)
{
    node->level = BTREE_LEVEL_FREE;
    node->n = 0;
    node->link = o->free_head;
    o->free_head = node->self;
}

/* finish -- the record, the header, and every latch. */
static void
finish(struct smo *o)
{
    struct swz_space *s = o->th->space;
    struct swz_page header = {.node = (struct btree_node *)(void *)s->header,
                              .frame = s->header_frame,
                              .is_exclusive = true};
    uint64_t lsn;

    latch_take_x(&side_of(s, header.frame)->latch);
    s->header->free_head = o->free_head;
    s->header->high_water = o->high_water;
    swz_log_add(o->th, 0, s->header, offsetof(struct swz_header, high_water),
                2 * sizeof(uint32_t));
    for (unsigned i = 0; i < o->n_held; i++)
        swz_log_add_page(o->th, &o->held[i]);
    lsn = swz_log_append(o->th);
    swz_page_changed(o->th, &header, lsn);
    for (unsigned i = 0; i < o->n_held; i++)
        swz_page_changed(o->th, &o->held[i], lsn);
    page_unfix(o->th, &header);
    swz_event(s, SWZ_STRUCTURAL, 1);
}

/* let_go -- latches and pins, whatever there is. */
static void
let_go(struct smo *o)
{
    while (o->n_held > 0)
        page_unfix(o->th, &o->held[--o->n_held]);
    for (unsigned i = 0; i < o->depth; i++) {
        swz_page_unpin(o->th, &o->path[i]);
        if (o->beside[i].node != NULL)
            swz_page_unpin(o->th, &o->beside[i]);
    }
    for (unsigned i = 0; i < o->n_fresh; i++)
        swz_page_unpin(o->th, &o->fresh[i]);
}

/* ---- Insert ------------------------------------------------------------------------- */

/* root_push_down -- the root's content goes one level down, so that it can be split. */
static void
root_push_down(struct smo *o)
{
    struct btree_node *root = o->path[0].node;
    struct btree_node *copy = fresh_take(o, root->level);

    copy->link = root->link;
    node_append(o->t, copy, root, 0);
    (void)node_init_at(o->t, root, root->self, root->level + 1u);
    root->zero = (uint16_t)o->tree;
    root->link = copy->self;
    memmove(&o->path[1], &o->path[0], o->depth * sizeof o->path[0]);
    memmove(&o->pos[1], &o->pos[0], o->depth * sizeof o->pos[0]);
    o->path[1].node = copy;
    o->pos[0] = 0;
    o->depth++;
}

/* split -- the leaf and every full node above it; the pages are held and unswizzled. */
static void
split(struct smo *o, const struct tree_request *r, unsigned pos)
{
    unsigned char sep[BTREE_KEY_MAX];
    unsigned d = o->depth - 1;
    struct btree_node *node = o->path[d].node, *right = fresh_take(o, 0);
    bool append = node->link == 0 && pos == node->n;

    leaf_split(o->t, node, right, pos, r, append, sep);
    for (;;) {
        uint32_t child = right->self;

        pos = o->pos[--d];
        node = o->path[d].node;
        if (node->n < o->t->inner_cap) {
            inner_put(o->t, node, pos, sep, child);
            return;
        }
        right = fresh_take(o, node->level);
        inner_split(o->t, node, right, pos, sep, child, append);
    }
}

/* full_above -- first path index from which on all nodes to the leaf are full; 0: the root too. */
static unsigned
full_above(const struct smo *o)
{
    unsigned d = o->depth - 1;

    while (d > 0 && o->path[d - 1].node->n >= o->t->inner_cap)
        d--;
    return d;
}

static int
insert_held(struct smo *o, const struct tree_request *r, bool is_root_full)
{
    struct swz_page *leaf = &o->path[o->depth - 1];
    unsigned pos = node_rank(o->t, leaf->node, r->key, 0);
    unsigned n_path = o->depth;
    int rc;

    /* The leaf was not latched since it was found full. */
    if (leaf->node->n < o->t->leaf_cap || entry_is(o->t, leaf->node, pos, r->key)) {
        rc = swz_leaf_insert(o->th, leaf, pos, o->t, r);
        return rc;
    }
    unswizzle_moved(o, is_root_full);
    if (is_root_full)
        root_push_down(o);
    split(o, r, pos);
    if (is_root_full) { /* pins are one for each page: the copy has its own among the fresh */
        memmove(&o->path[0], &o->path[1], n_path * sizeof o->path[0]);
        o->path[0].node = o->th->space->trees[o->tree].root;
        o->depth--;
    }
    finish(o);
    return 0;
}

int
swz_smo_insert(struct swz_thread *th, unsigned tree, struct tree_request *r)
{
    struct smo o = {.th = th, .t = &th->space->trees[tree].layout, .tree = tree};
    unsigned first_full;
    int rc;

    (void)pthread_mutex_lock(&th->space->smo);
    rc = path_pin(&o, r->key);
    if (rc == 0) {
        first_full = full_above(&o);
        rc = fresh_pin(&o, o.depth - first_full + (first_full == 0));
    }
    if (rc == 0) {
        hold_from(&o, first_full > 0 ? first_full - 1 : 0);
        rc = insert_held(&o, r, first_full == 0);
    }
    let_go(&o);
    (void)pthread_mutex_unlock(&th->space->smo);
    return rc;
}

/* ---- Delete ------------------------------------------------------------------------- */

/* child_rebalance -- path[i] has too few: merge it with its neighbour, or share. */
static void
child_rebalance(struct smo *o, unsigned i)
{
    struct btree_node *parent = o->path[i - 1].node;
    unsigned pos = o->pos[i - 1], at = pos > 0 ? pos - 1 : 0;
    struct btree_node *left = pos > 0 ? o->beside[i].node : o->path[i].node;
    struct btree_node *right = pos > 0 ? o->path[i].node : o->beside[i].node;
    unsigned char *sep = key_at(o->t, parent, at);
    unsigned sum = left->n + right->n + (left->level == 0 ? 0u : 1u);

    if (sum <= cap_of(o->t, left->level) * 3 / 4) {
        node_merge(o->t, left, right, sep);
        swz_page_unswizzle(o->th->space, o->path[i - 1].frame,
                           word_at(o->t, parent, at + 1));
        slot_close(parent, at);
        page_free(o, right);
        return;
    }
    while (left->n > right->n + 1)
        rotate_right(o->t, left, right, sep);
    while (right->n > left->n + 1)
        rotate_left(o->t, left, right, sep);
}

/* root_pull_up -- the root has one child only: take its content and free it. */
static void
root_pull_up(struct smo *o)
{
    struct btree_node *root = o->path[0].node, *child = NULL;

    swz_page_unswizzle(o->th->space, o->path[0].frame, word_at(o->t, root, 0));
    for (unsigned i = 0; i < o->n_held; i++)
        if (o->held[i].node->self == root->link)
            child = o->held[i].node;
    xac_require(child != NULL); /* it has just been merged */
    (void)node_init_at(o->t, root, root->self, child->level);
    root->zero = (uint16_t)o->tree;
    root->link = child->link;
    node_append(o->t, root, child, 0);
    page_free(o, child);
}

static int
delete_held(struct smo *o, const unsigned char *key)
{
    unsigned d = o->depth - 1;
    struct swz_page *leaf = &o->path[d];
    unsigned pos = node_rank(o->t, leaf->node, key, 0);

    if (!entry_is(o->t, leaf->node, pos, key))
        return ENOENT;
    if (leaf->node->n > min_of(o->t, 0) || d == 0) {
        swz_leaf_delete(o->th, leaf, pos, o->t);
        return 0;
    }
    unswizzle_moved(o, false);
    slot_close(leaf->node, pos);
    for (; d > 0 && o->path[d].node->n < min_of(o->t, o->path[d].node->level); d--)
        if (o->beside[d].node != NULL)
            child_rebalance(o, d);
    if (d == 0 && o->path[0].node->level > 0 && o->path[0].node->n == 0)
        root_pull_up(o);
    finish(o);
    return 0;
}

int
swz_smo_delete(struct swz_thread *th, unsigned tree, const unsigned char *key)
{
    struct smo o = {.th = th, .t = &th->space->trees[tree].layout, .tree = tree};
    unsigned top;
    int rc;

    (void)pthread_mutex_lock(&th->space->smo);
    rc = path_pin(&o, key);
    if (rc == 0) {
        rc = fresh_pin(&o, 0);
        top = o.depth - 1;
        while (rc == 0 && top > 0) {
            rc = beside_pin(&o, top--);
            if (o.path[top].node->n > min_of(o.t, o.path[top].node->level))
                break;
        }
    }
    if (rc == 0) {
        hold_from(&o, top);
        rc = delete_held(&o, key);
    }
    let_go(&o);
    (void)pthread_mutex_unlock(&th->space->smo);
    return rc;
}
