/* SPDX-License-Identifier: MIT */
/*
 * vtree_piece.h -- what the sources of vtree.h share: the entries that a value is cut into.
 *
 * WHAT      The entry's key of a piece; what an entry's value says; how many pieces there are.
 * NOT HERE  The format of entries (vtree.h).
 */
#ifndef TREES_VTREE_PIECE_H
#define TREES_VTREE_PIECE_H

#include <errno.h>

#include "tree_op.h"
#include "vtree.h"

#define VTREE_PIECE_END UINT32_MAX       /* no piece has this number               */
#define VTREE_HEAD_SIZE sizeof(uint32_t) /* of an entry's value, before the piece  */

/* The entry's key of one piece after the other. */
struct piece_key {
    unsigned char bytes[BTREE_KEY_MAX];
};

static inline void
piece_set(const struct vtree *v, unsigned char *key, uint32_t piece)
{
    for (unsigned i = 0; i < 4; i++)
        key[v->key_max + 2 + i] = (unsigned char)(piece >> (24 - 8 * i));
}

/* The number of the piece that an entry's key names. */
static inline uint32_t
piece_of(const struct vtree *v, const unsigned char *key)
{
    uint32_t piece = 0;

    for (unsigned i = 0; i < 4; i++)
        piece = piece << 8 | key[v->key_max + 2 + i];
    return piece;
}

/* Bytes of the key in an entry's key. */
static inline size_t
key_len_of(const struct vtree *v, const unsigned char *key)
{
    return (size_t)key[v->key_max] << 8 | key[v->key_max + 1];
}

/* The entry's key of piece 0.  ret 0 or EINVAL. */
static inline int
key_set(const struct vtree *v, struct piece_key *k, const void *key, size_t key_len)
{
    if (key_len > v->key_max)
        return EINVAL;
    memset(k->bytes, 0, v->key_max);
    if (key_len > 0)
        memcpy(k->bytes, key, key_len);
    k->bytes[v->key_max] = (unsigned char)(key_len >> 8);
    k->bytes[v->key_max + 1] = (unsigned char)key_len;
    piece_set(v, k->bytes, 0);
    return 0;
}

/* Pieces of a value. */
static inline uint32_t
pieces_of(const struct vtree *v, size_t len)
{
    return len == 0 ? 1 : (uint32_t)((len - 1) / v->piece_size + 1);
}

/* Bytes of the value from an entry's piece on. */
static inline size_t
head_of(const void *entry)
{
    uint32_t len;

    memcpy(&len, entry, sizeof len);
    return len;
}

/* Fill in an entry's value: piece i of a value. */
static inline void
piece_fill(const struct vtree *v, unsigned char *entry, const void *value, size_t len,
           uint32_t i)
{
    size_t at = (size_t)i * v->piece_size, left = len - at;
    size_t n = left < v->piece_size ? left : v->piece_size;
    uint32_t head = (uint32_t)left;

    memcpy(entry, &head, sizeof head);
    if (n > 0)
        memcpy(entry + VTREE_HEAD_SIZE, (const unsigned char *)value + at, n);
    memset(entry + VTREE_HEAD_SIZE + n, 0, v->piece_size - n);
}

#ifdef TREE_SERIAL
# define vtree_pieces_delete vtree_serial_pieces_delete
#endif

/*
 * vtree_pieces_delete -- delete the pieces from .. to-1 of a value.
 *
 * in   key  the entry's key of one of its pieces; of another one afterwards
 */
int vtree_pieces_delete(struct vtree *v, unsigned char *key, uint32_t from, uint32_t to);

#endif /* TREES_VTREE_PIECE_H */
