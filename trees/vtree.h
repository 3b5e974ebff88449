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
# define vtree_create      vtree_serial_create
# define vtree_open        vtree_serial_open
# define vtree_put         vtree_serial_put
# define vtree_insert      vtree_serial_insert
# define vtree_load        vtree_serial_load
# define vtree_get         vtree_serial_get
# define vtree_delete      vtree_serial_delete
# define vtree_next        vtree_serial_next
# define vtree_scan        vtree_serial_scan
# define vtree_count       vtree_serial_count
# define vtree_check       vtree_serial_check
# define vtree_cursor_seek vtree_serial_cursor_seek
# define vtree_cursor_next vtree_serial_cursor_next
# define vtree_cursor_prev vtree_serial_cursor_prev
# define vtree_cursor_key  vtree_serial_cursor_key
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

/* A process's handle; private but for tree.hints. */
struct vtree {
    struct btree tree;
    uint32_t key_max;
    uint32_t piece_size;
};

/* What vtree_insert() does with a key that is there already, or is not. */
enum vtree_mode {
    VTREE_PUT = 0,    /* puts the entry in any case                                   */
    VTREE_ADD = 1,    /* leaves one that is there alone and returns EEXIST            */
    VTREE_REPLACE = 2 /* returns ENOENT if there is none                              */
};

/* Some bytes; data may be NULL if len is 0. */
struct vtree_bytes {
    const void *data;
    size_t len;
};

/*
 * A place in a tree.  Set `v`, and the rest to zero: the cursor is then nowhere.  It remembers
 * its entry by key, so it stays good whatever happens to the tree.
 */
struct vtree_cursor {
    struct vtree *v;
    struct btree_cursor at; /* on the first piece of its entry                        */
};

/* What vtree_check() found. */
struct vtree_report {
    uint64_t entries;         /* keys                                                 */
    struct btree_report tree; /* its entries are pieces; its text is for both         */
};

/*
 * Called by a scan for each entry, in ascending order.  Key and value are valid during the
 * call only.  ret 0 to go on; anything else ends the scan, which returns it.
 */
typedef int vtree_visit(void *arg, const void *key, size_t key_len, const void *value,
                        size_t value_len);

/*
 * Called by a bulk load for each entry; keys must ascend.  As tree_source in tree.h, but that
 * the bytes of an entry must stay valid until the call for the next one.
 */
typedef bool vtree_source(void *arg, uint64_t i, struct vtree_bytes *keyp,
                          struct vtree_bytes *valuep);

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

/* The same; `mode` is of enum vtree_mode.  ret also EEXIST and ENOENT, as that says. */
int vtree_insert(struct vtree *v, const void *key, size_t key_len, const void *value,
                 size_t value_len, int mode);

/*
 * Put many entries behind the last one of the tree, in one transaction.
 *
 * in   source, arg  the entries, in ascending order
 * in   percent      how full to leave a block, 50 to 100
 * out  countp       entries put, also on an error: they are in the tree; may be NULL
 * ret  0; EINVAL (percent; a key that is not above the one before; too long); ENOSPC; ENOMEM.
 */
int vtree_load(struct vtree *v, vtree_source *source, void *arg, unsigned percent,
               uint64_t *countp);

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

/*
 * Visit the entries with from <= key < to in ascending order, on one snapshot.  `visit` must
 * not change the tree.
 *
 * in   from, to  NULL: no bound
 * ret  0; what `visit` returned, if not 0; EINVAL (key too long); ENOMEM (for a value).
 */
int vtree_scan(struct vtree *v, const struct vtree_bytes *from,
               const struct vtree_bytes *to, vtree_visit *visit, void *arg);

/* Count the entries with from <= key < to, which reads them all.  ret as vtree_scan(). */
int vtree_count(struct vtree *v, const struct vtree_bytes *from,
                const struct vtree_bytes *to, uint64_t *countp);

/*
 * Move a cursor: to the first entry with a key of at least `key`; to the next one; to the one
 * before.  From nowhere the next entry is the first, the one before is the last.  An entry
 * that is gone is no obstacle.
 *
 * ret  0; ENOENT (there is none; the cursor stays where it was); EINVAL (key too long).
 */
int vtree_cursor_seek(struct vtree_cursor *c, const void *key, size_t key_len);
int vtree_cursor_next(struct vtree_cursor *c);
int vtree_cursor_prev(struct vtree_cursor *c);

/*
 * The key of a cursor's entry.
 *
 * out  keyp, key_lenp  in the cursor, valid until it moves
 * ret  0; ENOENT (the cursor is nowhere).
 */
int vtree_cursor_key(const struct vtree_cursor *c, const void **keyp, size_t *key_lenp);

/*
 * Verify the whole tree on one snapshot: as btree_check(), and that the pieces of each value
 * are complete and follow each other.  Safe on a damaged tree.
 *
 * out  report  counts, and in tree.text the first violation in words
 * ret  0; EUCLEAN; ENOMEM.
 */
int vtree_check(struct vtree *v, struct vtree_report *report);

/* The same on plain memory. */
int vtree_serial_create(struct vtree *v, void *base, size_t size,
                        const struct vtree_config *config);
int vtree_serial_open(struct vtree *v, void *base, size_t size);
int vtree_serial_put(struct vtree *v, const void *key, size_t key_len, const void *value,
                     size_t value_len);
int vtree_serial_insert(struct vtree *v, const void *key, size_t key_len,
                        const void *value, size_t value_len, int mode);
int vtree_serial_load(struct vtree *v, vtree_source *source, void *arg, unsigned percent,
                      uint64_t *countp);
int vtree_serial_get(struct vtree *v, const void *key, size_t key_len, void *value,
                     size_t room, size_t *value_lenp);
int vtree_serial_delete(struct vtree *v, const void *key, size_t key_len);
int vtree_serial_next(struct vtree *v, const void *key, size_t key_len, void *next,
                      size_t *next_lenp);
int vtree_serial_scan(struct vtree *v, const struct vtree_bytes *from,
                      const struct vtree_bytes *to, vtree_visit *visit, void *arg);
int vtree_serial_count(struct vtree *v, const struct vtree_bytes *from,
                       const struct vtree_bytes *to, uint64_t *countp);
int vtree_serial_cursor_seek(struct vtree_cursor *c, const void *key, size_t key_len);
int vtree_serial_cursor_next(struct vtree_cursor *c);
int vtree_serial_cursor_prev(struct vtree_cursor *c);
int vtree_serial_cursor_key(const struct vtree_cursor *c, const void **keyp,
                            size_t *key_lenp);
int vtree_serial_check(struct vtree *v, struct vtree_report *report);

#endif /* TREES_VTREE_H */
