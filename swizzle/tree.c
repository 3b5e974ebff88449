/* SPDX-License-Identifier: MIT */
/*
 * tree.c -- operations that change one leaf at most; what needs more goes to tree_smo.c.
 */
#include <config.h>

#include "page.h"

#include <errno.h>

#include "base/err.h"

/* tree_of -- NULL, with words, if there is no such tree. */
static const struct btree *
tree_of(struct swz_thread *th, unsigned tree)
{
    struct swz_tree *t = &th->space->trees[tree < SWZ_TREES ? tree : 0];

    /* Acquire pairs with tree_publish(). */
    if (tree < SWZ_TREES && atomic_load_explicit(&t->exists, memory_order_acquire))
        return &t->layout;
    (void)xac_err(EINVAL, "the space has no tree %u", tree);
    return NULL;
}

int
swz_leaf_fix_below(struct swz_thread *th, const struct btree *t, const unsigned char *key,
                   bool is_exclusive, struct swz_page *pagep)
{
    struct swz_page page = *pagep, child;

    while (page.node->level != 0) {
        unsigned pos = key != NULL ? node_rank(t, page.node, key, 1) : 0;
        bool to_leaf = page.node->level == 1;
        int rc = swz_page_fix_child(th, &page, word_at(t, page.node, pos),
                                    to_leaf && is_exclusive, &child);

        page_unfix(th, &page);
        if (rc != 0)
            return rc;
        page = child;
    }
    *pagep = page;
    return 0;
}

/*
 * leaf_fix_latched -- latch by latch from the root to the leaf that a key belongs to (NULL: the
 * first).
 *
 * A root that is a leaf is latched shared first, since nobody knows it before.
 */
static int
leaf_fix_latched(struct swz_thread *th, unsigned tree, const unsigned char *key,
                 bool is_exclusive, struct swz_page *pagep)
{
    const struct btree *t = &th->space->trees[tree].layout;
    struct swz_page page;

    for (;;) { /* again only if the root grew and shrank meanwhile */
        swz_page_fix_root(th, tree, false, &page);
        if (page.node->level != 0 || !is_exclusive)
            break;
        page_unfix(th, &page);
        swz_page_fix_root(th, tree, true, &page);
        if (page.node->level == 0)
            break;
        page_unfix(th, &page);
    }
    *pagep = page;
    return swz_leaf_fix_below(th, t, key, is_exclusive, pagep);
}

/* leaf_fix -- without latches above the leaf, if the way is there and nobody changes it. */
static int
leaf_fix(struct swz_thread *th, unsigned tree, const unsigned char *key,
         bool is_exclusive, struct swz_page *pagep)
{
    int rc = key != NULL ? swz_peek_leaf(th, tree, key, is_exclusive, pagep) : EAGAIN;

    return rc != EAGAIN ? rc : leaf_fix_latched(th, tree, key, is_exclusive, pagep);
}

int
swz_search(struct swz_thread *th, unsigned tree, const void *key, void *value)
{
    const struct btree *t = tree_of(th, tree);
    struct swz_page leaf;
    unsigned pos;
    int rc;

    if (t == NULL)
        return EINVAL;
    rc = swz_peek_search(th, tree, key, value);
    if (rc != EAGAIN)
        return rc;
    rc = leaf_fix_latched(th, tree, key, false, &leaf);
    if (rc != 0)
        return rc;
    pos = node_rank(t, leaf.node, key, 0);
    rc = entry_is(t, leaf.node, pos, key) ? 0 : ENOENT;
    if (rc == 0 && value != NULL && t->value_size > 0)
        memcpy(value, cell_value(t, leaf.node, leaf.node->slots[pos]), t->value_size);
    page_unfix(th, &leaf);
    return rc;
}

int
swz_try_search(struct swz_thread *th, unsigned tree, const void *key, void *value)
{
    return tree_of(th, tree) == NULL ? EINVAL : swz_peek_resident(th, tree, key, value);
}

/* ---- Changing one leaf --------------------------------------------------------------- */

/* log_slots -- the number of entries, and the slots from pos to before `to`. */
static void
log_slots(struct swz_thread *th, const struct swz_page *leaf, unsigned pos, unsigned to)
{
    uint32_t page = page_number(th->space, leaf->frame);

    swz_log_add(th, page, leaf->node, offsetof(struct btree_node, n),
                sizeof leaf->node->n);
    swz_log_add(th, page, leaf->node, offsetof(struct btree_node, slots) + 2 * pos,
                2 * (to - pos));
}

/* log_value -- that of rank pos. */
static void
log_value(struct swz_thread *th, const struct swz_page *leaf, unsigned pos,
          const struct btree *t)
{
    unsigned cell = leaf->node->slots[pos];

    swz_log_add(th, page_number(th->space, leaf->frame), leaf->node,
                t->leaf_values + (size_t)cell * t->value_size, t->value_size);
}

int
swz_leaf_insert(struct swz_thread *th, const struct swz_page *leaf, unsigned pos,
                const struct btree *t, const struct tree_request *r)
{
    unsigned cell;

    if (entry_is(t, leaf->node, pos, r->key)) {
        if (r->mode == TREE_ADD)
            return EEXIST;
        if (t->value_size > 0)
            memcpy(cell_value(t, leaf->node, leaf->node->slots[pos]), r->value,
                   t->value_size);
    } else {
        leaf_put(t, leaf->node, pos, r->key, r->value);
        cell = leaf->node->slots[pos];
        log_slots(th, leaf, pos, leaf->node->n);
        swz_log_add(th, page_number(th->space, leaf->frame), leaf->node,
                    t->leaf_keys + (size_t)cell * t->key_size, t->key_size);
    }
    log_value(th, leaf, pos, t);
    swz_page_changed(th, leaf, swz_log_append(th));
    return 0;
}

void
swz_leaf_delete(struct swz_thread *th, const struct swz_page *leaf, unsigned pos,
                const struct btree *t)
{
    (void)t;
    slot_close(leaf->node, pos);
    log_slots(th, leaf, pos, leaf->node->n + 1u);
    swz_page_changed(th, leaf, swz_log_append(th));
}

/* ---- Updates ------------------------------------------------------------------------ */

/* insert_now -- into a leaf that has room, or EAGAIN: it needs a split. */
static int
insert_now(struct swz_thread *th, unsigned tree, const struct btree *t,
           const struct tree_request *r)
{
    struct swz_page leaf;
    unsigned pos;
    int rc = leaf_fix(th, tree, r->key, true, &leaf);

    if (rc != 0)
        return rc;
    pos = node_rank(t, leaf.node, r->key, 0);
    if (leaf.node->n < t->leaf_cap || entry_is(t, leaf.node, pos, r->key))
        rc = swz_leaf_insert(th, &leaf, pos, t, r);
    else
        rc = EAGAIN;
    page_unfix(th, &leaf);
    return rc;
}

int
swz_insert(struct swz_thread *th, unsigned tree, const void *key, const void *value,
           enum tree_mode mode)
{
    struct tree_request r = {.key = key, .value = value, .mode = (int)mode};
    const struct btree *t = tree_of(th, tree);
    int rc;

    if (t == NULL)
        return EINVAL;
    swz_update_begin(th);
    rc = swz_log_error(&th->space->log);
    if (rc == 0)
        rc = insert_now(th, tree, t, &r);
    if (rc == EAGAIN)
        rc = swz_smo_insert(th, tree, &r);
    swz_update_end(th);
    return rc;
}

int
swz_update(struct swz_thread *th, unsigned tree, const void *key, swz_change *change,
           void *arg)
{
    const struct btree *t = tree_of(th, tree);
    struct swz_page leaf;
    unsigned pos;
    int rc;

    if (t == NULL || t->value_size == 0)
        return EINVAL;
    swz_update_begin(th);
    rc = swz_log_error(&th->space->log);
    if (rc == 0)
        rc = leaf_fix(th, tree, key, true, &leaf);
    if (rc == 0) {
        pos = node_rank(t, leaf.node, key, 0);
        if (entry_is(t, leaf.node, pos, key)) {
            change(arg, cell_value(t, leaf.node, leaf.node->slots[pos]));
            log_value(th, &leaf, pos, t);
            swz_page_changed(th, &leaf, swz_log_append(th));
        } else {
            rc = ENOENT;
        }
        page_unfix(th, &leaf);
    }
    swz_update_end(th);
    return rc;
}

/* delete_now -- from a leaf that stays full enough, or EAGAIN. */
static int
delete_now(struct swz_thread *th, unsigned tree, const struct btree *t, const void *key)
{
    struct swz_page leaf;
    unsigned pos;
    int rc = leaf_fix(th, tree, key, true, &leaf);

    if (rc != 0)
        return rc;
    pos = node_rank(t, leaf.node, key, 0);
    if (!entry_is(t, leaf.node, pos, key))
        rc = ENOENT;
    else if (leaf.node->n > min_of(t, 0)
             || leaf.frame == th->space->trees[tree].root_frame)
        swz_leaf_delete(th, &leaf, pos, t);
    else
        rc = EAGAIN;
    page_unfix(th, &leaf);
    return rc;
}

int
swz_delete(struct swz_thread *th, unsigned tree, const void *key)
{
    const struct btree *t = tree_of(th, tree);
    int rc;

    if (t == NULL)
        return EINVAL;
    swz_update_begin(th);
    rc = swz_log_error(&th->space->log);
    if (rc == 0)
        rc = delete_now(th, tree, t, key);
    if (rc == EAGAIN)
        rc = swz_smo_delete(th, tree, key);
    swz_update_end(th);
    return rc;
}

/* ---- Scans -------------------------------------------------------------------------- */

int
swz_scan(struct swz_thread *th, unsigned tree, const void *from, tree_visit *visit,
         void *arg)
{
    const struct btree *t = tree_of(th, tree);
    struct swz_page leaf, next;
    unsigned pos;
    int rc;

    if (t == NULL)
        return EINVAL;
    rc = leaf_fix(th, tree, from, false, &leaf);
    if (rc != 0)
        return rc;
    pos = from != NULL ? node_rank(t, leaf.node, from, 0) : 0;
    for (;;) {
        uint32_t link = leaf.node->link;

        for (; rc == 0 && pos < leaf.node->n; pos++)
            rc = visit(arg, key_at(t, leaf.node, pos),
                       cell_value(t, leaf.node, leaf.node->slots[pos]));
        if (rc == 0 && link != 0)
            rc = swz_page_fix_number(th, link, false, &next); /* I7 */
        page_unfix(th, &leaf);
        if (rc != 0 || link == 0)
            return rc;
        leaf = next;
        pos = 0;
    }
}
