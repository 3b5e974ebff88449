/* SPDX-License-Identifier: MIT */
/*
 * btree.c -- see btree.h; bytes in btree_layout.h, verification in btree_check.c.
 *
 * What an operation writes decides what it costs: traps, conflicts, log bytes.
 *   - An ordinary insert or delete writes the leaf and nothing else: no counters.
 *   - Cells do not move inside a block.  An insert writes one free cell, shifts 2-byte
 *     slots and changes n; a split copies the upper half out and only lowers n.
 *   - The root never moves, so an operation goes straight to it without the header.
 *   - Blocks come from per-process arenas, so that splits of two processes meet only
 *     where the tree does.
 */
#include <config.h>

#include "btree_layout.h"

#include <errno.h>
#include <unistd.h>

/* Nodes from the root down to a leaf. */
struct path {
    unsigned depth;                  /* nodes; the last is the leaf                   */
    uint32_t block[BTREE_DEPTH_MAX]; /* block numbers                                 */
    unsigned pos[BTREE_DEPTH_MAX];   /* index of the child followed                   */
};

/* Arguments of an operation, for the body that runs inside its transaction. */
struct request {
    const unsigned char *key;   /* what to look for; scan: from                         */
    const unsigned char *to;    /* scan: end                                            */
    const void *value;          /* insert                                               */
    int mode;                   /* insert: enum btree_mode                              */
    bool existed;               /* insert: the key was there                            */
    void *key_out;              /* where to copy the entry found, or NULL               */
    void *value_out;            /* -                                                    */
    btree_visit *visit;         /* scan                                                 */
    void *arg;                  /* scan                                                 */
    struct btree_header header; /* open: copy of the header                           */
};

typedef int body(struct btree *t, struct request *r);

/* Run a body as one updating transaction, until it commits. */
static inline int
run_update(struct btree *t, body *run, struct request *r)
{
    bool again;
    int rc;

    do {
        rc = tree_begin();
        if (rc != 0)
            return rc;
        rc = tree_end(run(t, r), &again);
    } while (again);
    return rc;
}

/* Run a body that only reads, on a snapshot. */
static inline int
run_query(struct btree *t, body *run, struct request *r)
{
    int rc = tree_begin_query();

    return rc != 0 ? rc : tree_end_query(run(t, r));
}

/* ---- Nodes ------------------------------------------------------------------------ */

/* A node about to be read, or about to be changed. */
static inline struct btree_node *
node_read(const struct btree *t, uint32_t block)
{
    struct btree_node *node = node_of(t, block);

    tree_hint(t->hints, node, TREE_READ);
    return node;
}

static inline struct btree_node *
node_write(const struct btree *t, uint32_t block)
{
    struct btree_node *node = node_of(t, block);

    tree_hint(t->hints, node, TREE_READ_WRITE);
    return node;
}

/* Make an empty node of the block, whatever it held. */
static struct btree_node *
node_init(const struct btree *t, uint32_t block, unsigned level)
{
    struct btree_node *node = node_write(t, block);
    unsigned cap = cap_of(t, level);

    node->level = (uint16_t)level;
    node->zero = 0;
    node->link = 0;
    node->self = block;
    node->zero2 = 0;
    node->n = 0;
    for (unsigned i = 0; i < cap; i++)
        node->slots[i] = (uint16_t)i;
    return node;
}

/* Open a gap for a new entry of rank i.  ret its cell, to be filled in. */
static inline unsigned
slot_open(struct btree_node *node, unsigned i)
{
    uint16_t cell = node->slots[node->n];

    memmove(&node->slots[i + 1], &node->slots[i], (node->n - i) * sizeof cell);
    node->slots[i] = cell;
    node->n++;
    return cell;
}

/* Take the entry of rank i out; its cell keeps its bytes and becomes free. */
static inline void
slot_close(struct btree_node *node, unsigned i)
{
    uint16_t cell = node->slots[i];

    node->n--;
    memmove(&node->slots[i], &node->slots[i + 1], (node->n - i) * sizeof cell);
    node->slots[node->n] = cell;
}

/* Write an entry of rank i into a leaf that has room.  `value` NULL: size 0. */
static inline void
leaf_put(const struct btree *t, struct btree_node *leaf, unsigned i, const void *key,
         const void *value)
{
    unsigned cell = slot_open(leaf, i);
    unsigned char *k = cell_key(t, leaf, cell), *v = cell_value(t, leaf, cell);

    tree_hint(t->hints && t->block_size > BTREE_PAGE, k, TREE_READ_WRITE);
    memcpy(k, key, t->key_size);
    if (t->value_size == 0)
        return;
    tree_hint(t->hints && t->block_size > BTREE_PAGE, v, TREE_READ_WRITE);
    memcpy(v, value, t->value_size);
}

/* Write key i, and the child right of it, into an inner node that has room. */
static void
inner_put(const struct btree *t, struct btree_node *inner, unsigned i, const void *key,
          uint32_t child)
{
    unsigned cell = slot_open(inner, i);

    memcpy(cell_key(t, inner, cell), key, t->key_size);
    *cell_child(t, inner, cell) = child;
}

/* Append entries from .. n-1 of one node to another of its level. */
static void
node_append(const struct btree *t, struct btree_node *to, const struct btree_node *node,
            unsigned from)
{
    for (unsigned i = from; i < node->n; i++) {
        unsigned cell = node->slots[i];

        if (node->level == 0)
            leaf_put(t, to, to->n, cell_key(t, node, cell), cell_value(t, node, cell));
        else
            inner_put(t, to, to->n, cell_key(t, node, cell), *cell_child(t, node, cell));
    }
}

/*
 * Follow `key` (NULL: the leftmost way) to its leaf.
 *
 * in   writing  the leaf is going to be changed
 * out  path     the nodes passed; may be NULL
 */
static inline struct btree_node *
descend(const struct btree *t, const unsigned char *key, bool writing, struct path *path)
{
    uint32_t block = t->root;
    unsigned depth = 0;
    struct btree_node *node = node_read(t, block);

    while (node->level != 0) {
        unsigned pos = key != NULL ? node_rank(t, node, key, 1) : 0;

        if (path != NULL) {
            path->block[depth] = block;
            path->pos[depth++] = pos;
        }
        block = child_at(t, node, pos);
        node = writing && node->level == 1 ? node_write(t, block) : node_read(t, block);
    }
    if (path != NULL) {
        path->block[depth] = block;
        path->depth = depth + 1;
    }
    return node;
}

/* Whether entry i of a leaf has this key. */
static inline bool
entry_is(const struct btree *t, const struct btree_node *leaf, unsigned i,
         const unsigned char *key)
{
    return i < leaf->n && memcmp(key_at(t, leaf, i), key, t->key_size) == 0;
}

/* ---- Blocks ----------------------------------------------------------------------- */

/* Blocks that arena a can give without asking. */
static inline uint32_t
arena_room(const struct btree *t, uint32_t a)
{
    const struct btree_arena *arena = arena_of(t, a);

    return arena->free_count + (arena->chunk_end - arena->chunk_next);
}

/* Make sure of `need` blocks before anything is changed.  ret 0 or ENOSPC. */
static int
blocks_reserve(const struct btree *t, uint32_t need)
{
    uint32_t room;

    tree_hint(t->hints, arena_of(t, t->arena), TREE_READ_WRITE);
    room = arena_room(t, t->arena);
    if (room < need)
        room += t->n_blocks - header_of(t)->high_water;
    for (uint32_t a = 0; a < t->n_arenas && room < need; a++)
        if (a != t->arena)
            room += arena_room(t, a);
    return room < need ? ENOSPC : 0;
}

/* Take a block out of an arena.  ret 0 if it has none. */
static uint32_t
arena_take(const struct btree *t, uint32_t a)
{
    struct btree_arena *arena = arena_of(t, a);
    uint32_t block = arena->free_head;

    if (block != 0) {
        arena->free_head = node_write(t, block)->link;
        arena->free_count--;
        return block;
    }
    return arena->chunk_next < arena->chunk_end ? arena->chunk_next++ : 0;
}

/* Move a chunk of unused blocks into our arena, whose chunk is used up. */
static void
arena_refill(const struct btree *t)
{
    struct btree_header *header = header_of(t);
    struct btree_arena *arena = arena_of(t, t->arena);
    uint32_t left = t->n_blocks - header->high_water;
    uint32_t chunk = left < BTREE_CHUNK ? left : BTREE_CHUNK;

    if (chunk == 0)
        return;
    arena->chunk_next = header->high_water;
    arena->chunk_end = header->high_water + chunk;
    header->high_water += chunk;
}

/* Allocate a block that blocks_reserve() has made sure of. */
static uint32_t
block_alloc(const struct btree *t)
{
    uint32_t block = arena_take(t, t->arena);

    if (block == 0) {
        arena_refill(t);
        block = arena_take(t, t->arena);
    }
    for (uint32_t a = 0; block == 0 && a < t->n_arenas; a++)
        block = arena_take(t, a);
    return block;
}

/* Give a block back to our arena. */
static void
block_free(const struct btree *t, uint32_t block)
{
    struct btree_arena *arena = arena_of(t, t->arena);
    struct btree_node *node = node_write(t, block);

    tree_hint(t->hints, arena, TREE_READ_WRITE);
    node->level = BTREE_LEVEL_FREE;
    node->n = 0;
    node->link = arena->free_head;
    arena->free_head = block;
    arena->free_count++;
}

/* ---- Create and open --------------------------------------------------------------- */

static int
create_body(struct btree *t, struct request *r)
{
    struct btree_header *header = header_of(t);

    (void)r;
    if (header->magic == BTREE_MAGIC)
        return EEXIST;
    memset(header, 0, sizeof *header);
    header->version = BTREE_VERSION;
    header->key_size = t->key_size;
    header->value_size = t->value_size;
    header->block_size = t->block_size;
    header->n_blocks = t->n_blocks;
    header->n_arenas = t->n_arenas;
    header->root = t->root;
    header->high_water = t->root + 1;
    for (uint32_t a = 0; a < t->n_arenas; a++)
        memset(arena_of(t, a), 0, sizeof(struct btree_arena));
    node_init(t, t->root, 0);
    header->magic = BTREE_MAGIC;
    return 0;
}

int
btree_create(struct btree *t, void *base, size_t size, const struct btree_config *config)
{
    struct btree tree = {.base = base};
    struct request r = {0};
    size_t n_blocks;
    int rc = btree_layout_set(&tree, config);

    if (rc != 0)
        return rc;
    n_blocks = size / tree.block_size;
    if (n_blocks <= tree.root)
        return ENOSPC;
    tree.n_blocks = n_blocks < UINT32_MAX ? (uint32_t)n_blocks : UINT32_MAX;
    rc = run_update(&tree, create_body, &r);
    return rc != 0 ? rc : btree_open(t, base, size);
}

static int
open_body(struct btree *t, struct request *r)
{
    r->header = *header_of(t);
    return 0;
}

int
btree_open(struct btree *t, void *base, size_t size)
{
    struct btree tree = {.base = base};
    struct request r = {0};
    const struct btree_header *h = &r.header;
    int rc = size < BTREE_PAGE ? ENOENT : run_query(&tree, open_body, &r);

    if (rc != 0)
        return rc;
    if (h->magic != BTREE_MAGIC)
        return ENOENT;
    if (h->version != BTREE_VERSION)
        return ENOTSUP;
    rc = btree_layout_set(&tree, &(struct btree_config){.key_size = h->key_size,
                                                        .value_size = h->value_size,
                                                        .block_size = h->block_size});
    if (rc != 0 || h->root != tree.root || h->n_arenas != tree.n_arenas
        || h->n_blocks <= tree.root)
        return EUCLEAN;
    if (h->n_blocks > size / tree.block_size)
        return ENOSPC;
    tree.n_blocks = h->n_blocks;
    tree.arena = (uint32_t)getpid() % tree.n_arenas;
    *t = tree;
    return 0;
}

/* ---- Insert ------------------------------------------------------------------------ */

/*
 * Put the root's content one level down, so that it can be split: afterwards the root has
 * one child and no key.
 */
static void
root_push_down(const struct btree *t, struct path *path)
{
    struct btree_node *root = node_write(t, t->root);
    uint32_t block = block_alloc(t);
    struct btree_node *copy = node_init(t, block, root->level);

    copy->link = root->link;
    node_append(t, copy, root, 0);
    node_init(t, t->root, root->level + 1u);
    root->link = block;

    memmove(&path->block[1], &path->block[0], path->depth * sizeof path->block[0]);
    memmove(&path->pos[1], &path->pos[0], path->depth * sizeof path->pos[0]);
    path->block[1] = block;
    path->pos[0] = 0;
    path->depth++;
}

/*
 * Split a full leaf and put an entry of rank `pos` into the half that it belongs to.
 *
 * in   append  the entry is the last of the tree: leave the leaf full
 * out  sep     first key of the new leaf, the right half
 * ret  block number of the new leaf
 */
static uint32_t
leaf_split(const struct btree *t, struct btree_node *left, unsigned pos,
           const struct request *r, bool append, unsigned char *sep)
{
    unsigned half = append ? t->leaf_cap : (t->leaf_cap + 1) / 2;
    bool goes_left = pos < half;
    unsigned keep = goes_left ? half - 1 : half;
    uint32_t block = block_alloc(t);
    struct btree_node *right = node_init(t, block, 0);

    right->link = left->link;
    node_append(t, right, left, keep);
    left->link = block;
    left->n = (uint16_t)keep;
    if (goes_left)
        leaf_put(t, left, pos, r->key, r->value);
    else
        leaf_put(t, right, pos - keep, r->key, r->value);
    memcpy(sep, key_at(t, right, 0), t->key_size);
    return block;
}

/*
 * Split a full inner node and put a key of rank `pos` and its child into one half; the
 * key in the middle goes up.
 *
 * in,out  sep    the key to put; the key that goes up
 * in      child  the child to put
 * ret     block number of the new node, the right half
 */
static uint32_t
inner_split(const struct btree *t, struct btree_node *left, unsigned pos,
            unsigned char *sep, uint32_t child, bool append)
{
    unsigned half = append ? t->inner_cap - 1 : (t->inner_cap + 1) / 2;
    unsigned keep = pos < half ? half - 1 : half;
    uint32_t block = block_alloc(t);
    struct btree_node *right = node_init(t, block, left->level);
    unsigned char up[BTREE_KEY_MAX];

    if (pos == half) { /* the new key itself goes up */
        right->link = child;
        node_append(t, right, left, keep);
        left->n = (uint16_t)keep;
        return block;
    }
    memcpy(up, key_at(t, left, keep), t->key_size);
    right->link = child_at(t, left, keep + 1);
    node_append(t, right, left, keep + 1);
    left->n = (uint16_t)keep;
    if (pos < half)
        inner_put(t, left, pos, sep, child);
    else
        inner_put(t, right, pos - keep - 1, sep, child);
    memcpy(sep, up, t->key_size);
    return block;
}

/* Nodes from the leaf up that are full, plus one if the root is among them. */
static uint32_t
blocks_needed(const struct btree *t, const struct path *path)
{
    uint32_t need = 0;

    for (unsigned d = path->depth; d-- > 0; need++) {
        const struct btree_node *node = node_of(t, path->block[d]);

        if (node->n < cap_of(t, node->level))
            return need;
    }
    return need + 1;
}

/* Insert into a full leaf. */
static int
insert_split(const struct btree *t, struct path *path, unsigned pos,
             const struct request *r)
{
    unsigned char sep[BTREE_KEY_MAX];
    uint32_t need = blocks_needed(t, path);
    struct btree_node *node;
    unsigned d;
    uint32_t right;
    bool append;
    int rc = blocks_reserve(t, need);

    if (rc != 0)
        return rc;
    if (need > path->depth)
        root_push_down(t, path);
    d = path->depth - 1;
    node = node_write(t, path->block[d]);
    append = node->link == 0 && pos == t->leaf_cap;
    right = leaf_split(t, node, pos, r, append, sep);
    for (;;) {
        pos = path->pos[--d];
        node = node_write(t, path->block[d]);
        if (node->n < t->inner_cap)
            break;
        right = inner_split(t, node, pos, sep, right, append);
    }
    inner_put(t, node, pos, sep, right);
    return 0;
}

static int
insert_body(struct btree *t, struct request *r)
{
    struct path path;
    struct btree_node *leaf = descend(t, r->key, true, &path);
    unsigned pos = node_rank(t, leaf, r->key, 0);

    r->existed = entry_is(t, leaf, pos, r->key);
    if (r->existed) {
        unsigned char *value = cell_value(t, leaf, leaf->slots[pos]);

        if (r->mode != BTREE_PUT)
            return EEXIST;
        tree_hint(t->hints, value, TREE_READ_WRITE);
        if (t->value_size > 0)
            memcpy(value, r->value, t->value_size);
        return 0;
    }
    if (leaf->n == t->leaf_cap)
        return insert_split(t, &path, pos, r);
    leaf_put(t, leaf, pos, r->key, r->value);
    return 0;
}

int
btree_insert(struct btree *t, const void *key, const void *value, int mode,
             bool *existedp)
{
    struct request r = {.key = key, .value = value, .mode = mode};
    int rc = run_update(t, insert_body, &r);

    if (existedp != NULL)
        *existedp = r.existed;
    return rc;
}

/* ---- Delete ------------------------------------------------------------------------ */

/* Move the last entry of `left` to the front of `right`; `sep` is the key between them. */
static void
rotate_right(const struct btree *t, struct btree_node *left, struct btree_node *right,
             unsigned char *sep)
{
    unsigned cell = left->slots[left->n - 1];
    const unsigned char *key = cell_key(t, left, cell);

    if (left->level == 0) {
        leaf_put(t, right, 0, key, cell_value(t, left, cell));
    } else {
        inner_put(t, right, 0, sep, right->link);
        right->link = *cell_child(t, left, cell);
    }
    memcpy(sep, key, t->key_size);
    left->n--;
}

/* Move the first entry of `right` to the end of `left`. */
static void
rotate_left(const struct btree *t, struct btree_node *left, struct btree_node *right,
            unsigned char *sep)
{
    unsigned cell = right->slots[0];
    const unsigned char *key = cell_key(t, right, cell);

    if (left->level == 0) {
        leaf_put(t, left, left->n, key, cell_value(t, right, cell));
        slot_close(right, 0);
        memcpy(sep, key_at(t, right, 0), t->key_size);
        return;
    }
    inner_put(t, left, left->n, sep, right->link);
    right->link = *cell_child(t, right, cell);
    memcpy(sep, key, t->key_size);
    slot_close(right, 0);
}

/* Append `right`, whose first key is above `sep`, to `left`. */
static void
node_merge(const struct btree *t, struct btree_node *left, const struct btree_node *right,
           const unsigned char *sep)
{
    if (left->level == 0)
        left->link = right->link;
    else
        inner_put(t, left, left->n, sep, right->link);
    node_append(t, left, right, 0);
}

/*
 * Child `pos` of `parent` has too few entries: merge it with a neighbour when both fill
 * three quarters of a block at most, else share the neighbour's entries.
 */
static void
child_rebalance(const struct btree *t, struct btree_node *parent, unsigned pos)
{
    unsigned at = pos > 0 ? pos - 1 : 0; /* rank of the key between the two */
    uint32_t right_block = child_at(t, parent, at + 1);
    struct btree_node *left = node_write(t, child_at(t, parent, at));
    struct btree_node *right = node_write(t, right_block);
    unsigned char *sep = key_at(t, parent, at);
    unsigned sum = left->n + right->n + (left->level == 0 ? 0u : 1u);

    if (sum <= cap_of(t, left->level) * 3 / 4) {
        node_merge(t, left, right, sep);
        slot_close(parent, at);
        block_free(t, right_block);
        return;
    }
    while (left->n > right->n + 1)
        rotate_right(t, left, right, sep);
    while (right->n > left->n + 1)
        rotate_left(t, left, right, sep);
}

/* While the root has one child only, take its content and free it. */
static void
root_pull_up(const struct btree *t)
{
    struct btree_node *root = node_write(t, t->root);

    while (root->level > 0 && root->n == 0) {
        uint32_t block = root->link;
        const struct btree_node *child = node_read(t, block);

        node_init(t, t->root, child->level);
        root->link = child->link;
        node_append(t, root, child, 0);
        block_free(t, block);
    }
}

static int
delete_body(struct btree *t, struct request *r)
{
    struct path path;
    struct btree_node *node = descend(t, r->key, true, &path);
    unsigned pos = node_rank(t, node, r->key, 0);
    unsigned d = path.depth - 1;

    if (!entry_is(t, node, pos, r->key))
        return ENOENT;
    slot_close(node, pos);
    while (d > 0 && node->n < min_of(t, node->level)) {
        node = node_write(t, path.block[--d]);
        child_rebalance(t, node, path.pos[d]);
    }
    if (d == 0 && node->level > 0 && node->n == 0)
        root_pull_up(t);
    return 0;
}

int
btree_delete(struct btree *t, const void *key)
{
    struct request r = {.key = key};

    return run_update(t, delete_body, &r);
}

/* ---- Reading ----------------------------------------------------------------------- */

/* Copy entry i of a leaf to where the caller wants it. */
static int
entry_copy(const struct btree *t, const struct btree_node *leaf, unsigned i,
           const struct request *r)
{
    if (r->key_out != NULL)
        memcpy(r->key_out, key_at(t, leaf, i), t->key_size);
    if (r->value_out != NULL && t->value_size > 0)
        memcpy(r->value_out, cell_value(t, leaf, leaf->slots[i]), t->value_size);
    return 0;
}

static int
search_body(struct btree *t, struct request *r)
{
    const struct btree_node *leaf = descend(t, r->key, false, NULL);
    unsigned pos = node_rank(t, leaf, r->key, 0);

    return entry_is(t, leaf, pos, r->key) ? entry_copy(t, leaf, pos, r) : ENOENT;
}

int
btree_search(struct btree *t, const void *key, void *value)
{
    struct request r = {.key = key, .value_out = value};

    return run_query(t, search_body, &r);
}

static int
scan_body(struct btree *t, struct request *r)
{
    const struct btree_node *leaf = descend(t, r->key, false, NULL);
    unsigned pos = r->key != NULL ? node_rank(t, leaf, r->key, 0) : 0;

    for (;; pos = 0) {
        for (; pos < leaf->n; pos++) {
            const unsigned char *key = key_at(t, leaf, pos);
            int rc;

            if (r->to != NULL && key_compare(t, key, r->to) >= 0)
                return 0;
            rc = r->visit(r->arg, key, cell_value(t, leaf, leaf->slots[pos]));
            if (rc != 0)
                return rc;
        }
        if (leaf->link == 0)
            return 0;
        leaf = node_read(t, leaf->link);
    }
}

int
btree_scan(struct btree *t, const void *from, const void *to, btree_visit *visit,
           void *arg)
{
    struct request r = {.key = from, .to = to, .visit = visit, .arg = arg};

    return run_query(t, scan_body, &r);
}

static int
seek_body(struct btree *t, struct request *r)
{
    const struct btree_node *leaf = descend(t, r->key, false, NULL);
    unsigned pos = r->key != NULL ? node_rank(t, leaf, r->key, 0) : 0;

    /* A separator may be less than the first key right of it. */
    while (pos == leaf->n) {
        if (leaf->link == 0)
            return ENOENT;
        leaf = node_read(t, leaf->link);
        pos = 0;
    }
    return entry_copy(t, leaf, pos, r);
}

int
btree_seek(struct btree *t, const void *from, void *key_out, void *value_out)
{
    struct request r = {.key = from, .key_out = key_out, .value_out = value_out};

    return run_query(t, seek_body, &r);
}

int
btree_first(struct btree *t, void *key_out, void *value_out)
{
    return btree_seek(t, NULL, key_out, value_out);
}

static int
last_body(struct btree *t, struct request *r)
{
    const struct btree_node *node = node_read(t, t->root);

    while (node->level != 0)
        node = node_read(t, child_at(t, node, node->n));
    return node->n > 0 ? entry_copy(t, node, node->n - 1u, r) : ENOENT;
}

int
btree_last(struct btree *t, void *key_out, void *value_out)
{
    struct request r = {.key_out = key_out, .value_out = value_out};

    return run_query(t, last_body, &r);
}
