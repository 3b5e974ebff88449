/* SPDX-License-Identifier: MIT */
/*
 * vtree.c -- see vtree.h.
 */
#include <config.h>

#include "vtree.h"

#include <errno.h>
#include <stdlib.h>

#include "tree_op.h"

#define PIECE_END UINT32_MAX       /* no piece has this number                     */
#define HEAD_SIZE sizeof(uint32_t) /* of an entry's value, before the piece        */

/* The entry's key of one piece after the other. */
struct piece_key {
    unsigned char bytes[BTREE_KEY_MAX];
};

/* What an operation on a value needs beside the key. */
struct piece_request {
    struct piece_key key;
    const unsigned char *value; /* put                                                */
    unsigned char *value_out;   /* get                                                */
    unsigned char *entry;       /* put: room for an entry's value                     */
    size_t len;                 /* of the value, bytes                                */
    size_t room;                /* get: of value_out, bytes                           */
    size_t at;                  /* get: where the next piece begins in the value      */
    uint32_t piece_size;        /* get: bytes                                         */
};

static void
piece_set(const struct vtree *v, struct piece_key *k, uint32_t piece)
{
    for (unsigned i = 0; i < 4; i++)
        k->bytes[v->key_max + 2 + i] = (unsigned char)(piece >> (24 - 8 * i));
}

/* The entry's key of piece 0.  ret 0 or EINVAL. */
static int
key_set(const struct vtree *v, struct piece_key *k, const void *key, size_t key_len)
{
    if (key_len > v->key_max)
        return EINVAL;
    memset(k->bytes, 0, v->key_max);
    if (key_len > 0)
        memcpy(k->bytes, key, key_len);
    k->bytes[v->key_max] = (unsigned char)(key_len >> 8);
    k->bytes[v->key_max + 1] = (unsigned char)key_len;
    piece_set(v, k, 0);
    return 0;
}

/* Pieces of a value. */
static uint32_t
pieces_of(const struct vtree *v, size_t len)
{
    return len == 0 ? 1 : (uint32_t)((len - 1) / v->piece_size + 1);
}

static size_t
head_of(const void *entry)
{
    uint32_t len;

    memcpy(&len, entry, sizeof len);
    return len;
}

/* ---- Create and open --------------------------------------------------------------- */

int
vtree_open(struct vtree *v, void *base, size_t size)
{
    struct btree tree;
    int rc = btree_open(&tree, base, size);

    if (rc != 0)
        return rc;
    if (tree.key_size <= VTREE_KEY_TAIL || tree.value_size <= HEAD_SIZE)
        return EUCLEAN;
    *v = (struct vtree){.tree = tree,
                        .key_max = tree.key_size - VTREE_KEY_TAIL,
                        .piece_size = tree.value_size - (uint32_t)HEAD_SIZE};
    return 0;
}

int
vtree_create(struct vtree *v, void *base, size_t size, const struct vtree_config *config)
{
    const struct btree_config sizes = {.key_size = config->key_max + VTREE_KEY_TAIL,
                                       .value_size =
                                           config->piece_size + (uint32_t)HEAD_SIZE,
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

    piece_set(v, &end, PIECE_END);
    rc = btree_scan(&v->tree, first->bytes, end.bytes, note_head, &len);
    *np = rc == -1 ? pieces_of(v, len) : 0;
    return rc == -1 ? 0 : rc;
}

/* Delete the pieces from .. to-1. */
static int
pieces_delete(struct vtree *v, struct piece_key *k, uint32_t from, uint32_t to)
{
    int rc = 0;

    for (uint32_t i = to; rc == 0 && i-- > from;) {
        piece_set(v, k, i);
        rc = btree_delete(&v->tree, k->bytes);
    }
    return rc;
}

static int
piece_put(struct vtree *v, struct piece_request *p, uint32_t i)
{
    size_t at = (size_t)i * v->piece_size, left = p->len - at;
    size_t n = left < v->piece_size ? left : v->piece_size;
    uint32_t head = (uint32_t)left;

    memcpy(p->entry, &head, sizeof head);
    if (n > 0)
        memcpy(p->entry + HEAD_SIZE, p->value + at, n);
    memset(p->entry + HEAD_SIZE + n, 0, v->piece_size - n);
    piece_set(v, &p->key, i);
    return btree_insert(&v->tree, p->key.bytes, p->entry, TREE_PUT, NULL);
}

/*
 * First what may find no room, the pieces that are new; then those that are replaced; then
 * those too many are deleted.
 */
static int
put_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct piece_request *p = r->arg;
    uint32_t n = pieces_of(v, p->len), had, i;
    int rc;

    piece_set(v, &p->key, 0);
    rc = pieces_now(v, &p->key, &had);
    for (i = had; rc == 0 && i < n; i++)
        rc = piece_put(v, p, i);
    if (rc == ENOSPC) {
        int rc2 = pieces_delete(v, &p->key, had, i - 1);

        return rc2 != 0 ? rc2 : ENOSPC;
    }
    for (i = 0; rc == 0 && i < had && i < n; i++)
        rc = piece_put(v, p, i);
    return rc != 0 ? rc : pieces_delete(v, &p->key, n, had);
}

int
vtree_put(struct vtree *v, const void *key, size_t key_len, const void *value,
          size_t value_len)
{
    struct piece_request p = {.value = value, .len = value_len};
    struct tree_request r = {.arg = &p};
    int rc = key_set(v, &p.key, key, key_len);

    if (rc != 0 || value_len > VTREE_VALUE_MAX)
        return EINVAL;
    p.entry = malloc(HEAD_SIZE + v->piece_size);
    if (p.entry == NULL)
        return ENOMEM;
    rc = tree_update(put_body, v, &r);
    free(p.entry);
    return rc;
}

static int
delete_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct piece_request *p = r->arg;
    uint32_t n;
    int rc;

    piece_set(v, &p->key, 0);
    rc = pieces_now(v, &p->key, &n);
    if (rc != 0)
        return rc;
    return n == 0 ? ENOENT : pieces_delete(v, &p->key, 0, n);
}

int
vtree_delete(struct vtree *v, const void *key, size_t key_len)
{
    struct piece_request p = {.len = 0};
    struct tree_request r = {.arg = &p};
    int rc = key_set(v, &p.key, key, key_len);

    return rc != 0 ? rc : tree_update(delete_body, v, &r);
}

/* ---- Read -------------------------------------------------------------------------- */

/* Copy a piece to where the caller wants it. */
static int
piece_get(void *arg, const void *key, const void *entry)
{
    struct piece_request *p = arg;
    size_t left = head_of(entry), n = left < p->piece_size ? left : p->piece_size;

    (void)key;
    if (p->at == 0)
        p->len = left;
    if (n > p->room - p->at)
        n = p->room - p->at;
    if (n > 0)
        memcpy(p->value_out + p->at, (const unsigned char *)entry + HEAD_SIZE, n);
    p->at += p->piece_size;
    return p->at < p->room ? 0 : -1;
}

static int
get_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct piece_request *p = r->arg;
    struct piece_key end = p->key;
    int rc;

    piece_set(v, &end, PIECE_END);
    rc = btree_scan(&v->tree, p->key.bytes, end.bytes, piece_get, p);
    if (rc != 0 && rc != -1)
        return rc;
    return p->at > 0 ? 0 : ENOENT;
}

int
vtree_get(struct vtree *v, const void *key, size_t key_len, void *value, size_t room,
          size_t *value_lenp)
{
    struct piece_request p = {.value_out = value,
                              .room = room,
                              .piece_size = v->piece_size};
    struct tree_request r = {.arg = &p};
    int rc = key_set(v, &p.key, key, key_len);

    if (rc == 0)
        rc = tree_query(get_body, v, &r);
    if (rc == 0 && value_lenp != NULL)
        *value_lenp = p.len;
    return rc;
}

int
vtree_next(struct vtree *v, const void *key, size_t key_len, void *next,
           size_t *next_lenp)
{
    struct piece_key k;
    int rc = 0;

    if (key == NULL) {
        rc = btree_first(&v->tree, k.bytes, NULL);
    } else {
        rc = key_set(v, &k, key, key_len);
        piece_set(v, &k, PIECE_END);
        if (rc == 0)
            rc = btree_seek(&v->tree, k.bytes, k.bytes, NULL);
    }
    if (rc != 0)
        return rc;
    *next_lenp = (size_t)k.bytes[v->key_max] << 8 | k.bytes[v->key_max + 1];
    memcpy(next, k.bytes, *next_lenp);
    return 0;
}
