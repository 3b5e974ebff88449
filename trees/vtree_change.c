/* SPDX-License-Identifier: MIT */
/*
 * vtree_change.c -- create, open, put and delete; see vtree.h.
 */
#include <config.h>

#include "vtree_piece.h"

#include <stdlib.h>

#define ENTRY_SMALL 512u /* bytes of an entry's value that needs no memory of its own */

/* What a change needs beside the tree. */
struct change {
    struct piece_key key;
    const unsigned char *value;
    size_t len;           /* of the value, bytes                                      */
    unsigned char *entry; /* room for an entry's value                                */
    int mode;             /* enum vtree_mode                                          */
};

/* ---- Create and open --------------------------------------------------------------- */

int
vtree_open(struct vtree *v, void *base, size_t size)
{
    struct btree tree;
    int rc = btree_open(&tree, base, size);

    if (rc != 0)
        return rc;
    if (tree.key_size <= VTREE_KEY_TAIL || tree.value_size <= VTREE_HEAD_SIZE)
        return EUCLEAN;
    *v = (struct vtree){.tree = tree,
                        .key_max = tree.key_size - VTREE_KEY_TAIL,
                        .piece_size = tree.value_size - (uint32_t)VTREE_HEAD_SIZE};
    return 0;
}

int
vtree_create(struct vtree *v, void *base, size_t size, const struct vtree_config *config)
{
    const struct btree_config sizes = {.key_size = config->key_max + VTREE_KEY_TAIL,
                                       .value_size =
                                           config->piece_size + (uint32_t)VTREE_HEAD_SIZE,
                                       .block_size = config->block_size};
    struct btree tree;
    int rc;

    if (config->key_max < 1 || config->key_max > VTREE_KEY_MAX || config->piece_size < 1
        || config->piece_size > BTREE_BLOCK_MAX)
        return EINVAL;
    rc = btree_create(&tree, base, size, &sizes);
    return rc != 0 ? rc : vtree_open(v, base, size);
}

/* ---- Change ------------------------------------------------------------------------ */

static int
note_head(void *arg, const void *key, const void *entry)
{
    (void)key;
    *(size_t *)arg = head_of(entry);
    return -1; /* the first piece says it all */
}

/*
 * How many pieces there are now.
 *
 * out  np   the number; 0 if the key is not there
 * ret  0, or a code of the tree
 */
static int
pieces_now(struct vtree *v, const struct piece_key *first, uint32_t *np)
{
    struct piece_key end = *first;
    size_t len;
    int rc;

    piece_set(v, end.bytes, VTREE_PIECE_END);
    rc = btree_scan(&v->tree, first->bytes, end.bytes, note_head, &len);
    *np = rc == -1 ? pieces_of(v, len) : 0;
    return rc == -1 ? 0 : rc;
}

int
vtree_pieces_delete(struct vtree *v, unsigned char *key, uint32_t from, uint32_t to)
{
    int rc = 0;

    for (uint32_t i = to; rc == 0 && i-- > from;) {
        piece_set(v, key, i);
        rc = btree_delete(&v->tree, key);
    }
    return rc;
}

static int
piece_put(struct vtree *v, struct change *c, uint32_t i)
{
    piece_fill(v, c->entry, c->value, c->len, i);
    piece_set(v, c->key.bytes, i);
    return btree_insert(&v->tree, c->key.bytes, c->entry, TREE_PUT, NULL);
}

/*
 * First what may find no room, the pieces that are new; then those that are replaced; then
 * those too many are deleted.
 */
static int
put_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct change *c = r->arg;
    uint32_t n = pieces_of(v, c->len), had, i;
    int rc;

    piece_set(v, c->key.bytes, 0);
    rc = pieces_now(v, &c->key, &had);
    if (rc == 0 && c->mode == VTREE_ADD && had > 0)
        return EEXIST;
    if (rc == 0 && c->mode == VTREE_REPLACE && had == 0)
        return ENOENT;
    for (i = had; rc == 0 && i < n; i++)
        rc = piece_put(v, c, i);
    if (rc == ENOSPC) {
        int rc2 = vtree_pieces_delete(v, c->key.bytes, had, i - 1);

        return rc2 != 0 ? rc2 : ENOSPC;
    }
    for (i = 0; rc == 0 && i < had && i < n; i++)
        rc = piece_put(v, c, i);
    return rc != 0 ? rc : vtree_pieces_delete(v, c->key.bytes, n, had);
}

int
vtree_insert(struct vtree *v, const void *key, size_t key_len, const void *value,
             size_t value_len, int mode)
{
    unsigned char small[ENTRY_SMALL];
    struct change c = {.value = value, .len = value_len, .entry = small, .mode = mode};
    struct tree_request r = {.arg = &c};
    int rc = key_set(v, &c.key, key, key_len);

    if (rc != 0 || value_len > VTREE_VALUE_MAX || mode < VTREE_PUT
        || mode > VTREE_REPLACE)
        return EINVAL;
    if (v->tree.value_size > sizeof small)
        c.entry = malloc(v->tree.value_size);
    if (c.entry == NULL)
        return ENOMEM;
    rc = tree_update(put_body, v, &r);
    if (c.entry != small)
        free(c.entry);
    return rc;
}

int
vtree_put(struct vtree *v, const void *key, size_t key_len, const void *value,
          size_t value_len)
{
    return vtree_insert(v, key, key_len, value, value_len, VTREE_PUT);
}

static int
delete_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct change *c = r->arg;
    uint32_t n;
    int rc;

    piece_set(v, c->key.bytes, 0);
    rc = pieces_now(v, &c->key, &n);
    if (rc != 0)
        return rc;
    return n == 0 ? ENOENT : vtree_pieces_delete(v, c->key.bytes, 0, n);
}

int
vtree_delete(struct vtree *v, const void *key, size_t key_len)
{
    struct change c = {.len = 0};
    struct tree_request r = {.arg = &c};
    int rc = key_set(v, &c.key, key, key_len);

    return rc != 0 ? rc : tree_update(delete_body, v, &r);
}
