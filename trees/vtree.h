/* SPDX-License-Identifier: MIT */
/*
 * vtree.h -- keys and values of any length, on a B+-tree of fixed sizes.
 *
 * WHAT      An ordered map from byte strings, up to a length chosen when the tree is created,
 *           to byte strings of up to VTREE_VALUE_MAX bytes.  Each value is cut in pieces,
 *           which are entries of a B+-tree next to each other; each operation is one
 *           transaction, however many pieces it concerns.
 * NOT HERE  The B+-tree (btree.h); builds, transactions and return values (tree.h).
 * ORDER     That of memcmp(3) on the common length; then the shorter key is first.
 * COST      A key takes key_max bytes whatever its length, a value whole pieces.
 *
 * ENTRY     key:    the key, padded with zero bytes to key_max
 *                   2 bytes, big-endian: its length
 *                   4 bytes, big-endian: number of the piece, from 0
 *           value:  4 bytes: bytes of the value from this piece on; an empty value has one
 *                   piece, in which this is 0
 *                   piece_size bytes, the last piece's filled up with zero bytes
 */
#ifndef TREES_VTREE_H
#define TREES_VTREE_H

#include "btree.h"

#ifdef TREE_SERIAL
# define vtree_create vtree_serial_create
# define vtree_open   vtree_serial_open
# define vtree_put    vtree_serial_put
# define vtree_get    vtree_serial_get
# define vtree_delete vtree_serial_delete
# define vtree_next   vtree_serial_next
#endif

#define VTREE_KEY_TAIL  6u /* bytes of an entry's key behind the key            */
#define VTREE_KEY_MAX   (BTREE_KEY_MAX - VTREE_KEY_TAIL)
#define VTREE_VALUE_MAX (1u << 30)

/* Chosen when a tree is created. */
struct vtree_config {
    uint32_t key_max;    /* bytes of the longest key, 1 to VTREE_KEY_MAX              */
    uint32_t piece_size; /* bytes of a value in one entry, at least 1                 */
    uint32_t block_size; /* as in struct btree_config                                 */
};

/* A process's handle; private but for tree.hints and for btree_check() of `tree`. */
struct vtree {
    struct btree tree;
    uint32_t key_max;
    uint32_t piece_size;
};

/* Make an empty tree and open it, or open one.  Parameters and ret as in btree.h. */
int vtree_create(struct vtree *v, void *base, size_t size,
                 const struct vtree_config *config);
int vtree_open(struct vtree *v, void *base, size_t size);

/*
 * Put an entry into the tree, in place of the one that has the key.
 *
 * in   key, key_len      0 to key_max bytes
 * in   value, value_len  0 to VTREE_VALUE_MAX bytes
 * ret  0; EINVAL (too long); ENOSPC (the segment is full; the tree is unchanged).
 */
int vtree_put(struct vtree *v, const void *key, size_t key_len, const void *value,
              size_t value_len);

/*
 * Look a key up.
 *
 * in   key, key_len  0 to key_max bytes
 * out  value         the value's first `room` bytes; may be NULL if that is 0
 * in   room          bytes
 * out  value_lenp    bytes of the whole value; may be NULL
 * ret  0; ENOENT; EINVAL (key too long).
 */
int vtree_get(struct vtree *v, const void *key, size_t key_len, void *value, size_t room,
              size_t *value_lenp);

/* Take an entry out.  ret 0; ENOENT; EINVAL (key too long). */
int vtree_delete(struct vtree *v, const void *key, size_t key_len);

/*
 * The least key that is greater than a given one.
 *
 * in   key, key_len  0 to key_max bytes; NULL: before all keys
 * out  next          key_max bytes of room, may be `key`
 * out  next_lenp     its length, bytes
 * ret  0; ENOENT (there is none); EINVAL (key too long).
 */
int vtree_next(struct vtree *v, const void *key, size_t key_len, void *next,
               size_t *next_lenp);

/* The same on plain memory. */
int vtree_serial_create(struct vtree *v, void *base, size_t size,
                        const struct vtree_config *config);
int vtree_serial_open(struct vtree *v, void *base, size_t size);
int vtree_serial_put(struct vtree *v, const void *key, size_t key_len, const void *value,
                     size_t value_len);
int vtree_serial_get(struct vtree *v, const void *key, size_t key_len, void *value,
                     size_t room, size_t *value_lenp);
int vtree_serial_delete(struct vtree *v, const void *key, size_t key_len);
int vtree_serial_next(struct vtree *v, const void *key, size_t key_len, void *next,
                      size_t *next_lenp);

#endif /* TREES_VTREE_H */
