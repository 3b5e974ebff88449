/* SPDX-License-Identifier: MIT */
/*
 * btree.h -- a B+-tree inside a mapped segment.
 *
 * WHAT      An ordered map from fixed-size keys to fixed-size values, kept in blocks of
 *           one segment.  One source, two builds: btree_*() on a segment of xMmap(),
 *           every operation a transaction; btree_serial_*() on plain mmap(2) memory,
 *           for one process, with no protection at all.  A source file compiled with
 *           TREE_SERIAL defined gets the second under the names of the first.
 * NOT HERE  The bytes (btree_layout.h, README.md), opening files and environments.
 * OWNER     The caller owns segment and handle.  The handle holds no memory of its own:
 *           there is no close; forget it before the segment is unmapped.
 * PROCESSES Any number, each with its own handle on its own mapping.  A handle copied
 *           by fork() works; btree_open() again in the child gives it a block pool of its
 *           own, and so fewer conflicts.
 *
 * KEYS      Byte strings of one size, ordered by memcmp(3); integers through
 *           btree_key_u64().  Values are byte strings of one size, which may be 0.
 *
 * TRANSACTIONS
 *   An operation called outside a transaction is one: it tries again until it commits,
 *   and in a durable environment it is on disk when the call returns.  Called inside the
 *   caller's transaction it is a part of that, so several operations take effect
 *   together or not at all; when that transaction has failed already, an updating
 *   operation may return XAC_FAILED, and the caller goes on to its xend().
 *
 * RETURN VALUES
 *   0, a positive errno value, or a code of xac.h (btree_*() only): XAC_FAILED as above,
 *   XAC_ENOINIT, XAC_EINQUERY (an update inside a query), XAC_EPOISONED, ...; the errno
 *   value in xConflict() if a commit found no room on disk.  Except where a comment says
 *   otherwise, an operation that fails has changed nothing.
 */
#ifndef TREES_BTREE_H
#define TREES_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef TREE_SERIAL
# define btree_create btree_serial_create
# define btree_open   btree_serial_open
# define btree_insert btree_serial_insert
# define btree_search btree_serial_search
# define btree_delete btree_serial_delete
# define btree_scan   btree_serial_scan
# define btree_seek   btree_serial_seek
# define btree_first  btree_serial_first
# define btree_last   btree_serial_last
# define btree_check  btree_serial_check
#endif

#define BTREE_KEY_MAX   1024u         /* bytes of a key, at most                      */
#define BTREE_BLOCK_MIN 4096u         /* bytes of a block, at least: one page         */
#define BTREE_BLOCK_MAX (128u * 4096) /* and at most                                  */

/* Chosen when a tree is created. */
struct btree_config {
    uint32_t key_size;   /* bytes, 1 to BTREE_KEY_MAX                                 */
    uint32_t value_size; /* bytes, 0 or more; at least 3 entries must fit into a block */
    uint32_t block_size; /* bytes, a power of two, BTREE_BLOCK_MIN to BTREE_BLOCK_MAX */
};

/*
 * A process's handle on a tree.  Filled in by btree_create() and btree_open(); `hints`
 * may be set by the caller at any time, the rest is private.
 */
struct btree {
    bool hints; /* announce pages with setPageAccess() before touching them           */

    unsigned char *base;     /* of the segment in this process                        */
    uint32_t key_size;       /* as in struct btree_config                             */
    uint32_t value_size;     /* -                                                     */
    uint32_t block_size;     /* -                                                     */
    uint32_t n_blocks;       /* blocks of the segment                                 */
    uint32_t root;           /* block number of the root, which never moves           */
    uint32_t n_arenas;       /* block pools                                           */
    uint32_t arena;          /* the one that this process takes blocks from           */
    uint32_t leaf_cap;       /* entries that a leaf holds                             */
    uint32_t leaf_keys;      /* offset of the keys in a leaf, bytes                   */
    uint32_t leaf_values;    /* offset of the values in a leaf, bytes                 */
    uint32_t inner_cap;      /* keys that an inner node holds                         */
    uint32_t inner_keys;     /* offset of the keys in an inner node, bytes            */
    uint32_t inner_children; /* offset of the child block numbers, bytes              */
};

/* What btree_insert() does with a key that is there already. */
enum btree_mode {
    BTREE_ADD = 0, /* leaves it alone and returns EEXIST                              */
    BTREE_PUT = 1  /* replaces its value                                              */
};

/* What btree_check() found. */
struct btree_report {
    char text[160];      /* the first violation in words; "" if there is none         */
    uint64_t entries;    /* in the whole tree                                         */
    uint32_t height;     /* levels of inner nodes above the leaves                    */
    uint32_t leaves;     /* leaf blocks                                               */
    uint32_t inners;     /* inner blocks                                              */
    uint32_t free;       /* blocks given back                                         */
    uint32_t unused;     /* blocks never used so far                                  */
    uint32_t n_blocks;   /* blocks of the segment, those of the tree's header included */
    uint32_t leaf_cap;   /* entries that fit a leaf                                   */
    uint32_t inner_cap;  /* keys that fit an inner node                               */
    uint32_t key_size;   /* bytes                                                     */
    uint32_t value_size; /* bytes                                                     */
    uint32_t block_size; /* bytes                                                     */
};

/*
 * Called by btree_scan() for each entry, in ascending order.
 *
 * in   arg    the caller's
 * in   key    key_size bytes inside the segment, valid during the call only
 * in   value  value_size bytes, likewise
 * ret  0 to go on; anything else ends the scan, which returns it
 */
typedef int btree_visit(void *arg, const void *key, const void *value);

/* Write `v` as an 8-byte key; byte order is integer order. */
static inline void
btree_key_u64(uint64_t v, void *key)
{
    unsigned char *p = (unsigned char *)key;

    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (unsigned char)v;
}

/* The integer of an 8-byte key. */
static inline uint64_t
btree_u64_key(const void *key)
{
    const unsigned char *p = (const unsigned char *)key;
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

/*
 * Make an empty tree in a segment and open it.
 *
 * out  t       the handle; unchanged on an error
 * in   base    start of the segment, page-aligned
 * in   size    bytes of the segment; what exceeds whole blocks stays unused
 * in   config  sizes
 * ret  0; EINVAL (sizes out of range, fewer than 3 entries to a block); ENOSPC (segment
 *      too small for an empty tree: header, pools and root take 10 pages or 2 blocks);
 *      EEXIST (there is a tree in the segment).
 */
int btree_create(struct btree *t, void *base, size_t size,
                 const struct btree_config *config);

/*
 * Open the tree that is in a segment.  Reads the header only.
 *
 * out  t     the handle; unchanged on an error
 * in   base  start of the segment
 * in   size  bytes of the segment in this process
 * ret  0; ENOENT (no tree there: not our magic number); ENOTSUP (a tree of another
 *      format version); EUCLEAN (impossible sizes in the header); ENOSPC (the segment is
 *      mapped shorter than the tree is).
 */
int btree_open(struct btree *t, void *base, size_t size);

/*
 * Put an entry into the tree.
 *
 * in   key       key_size bytes
 * in   value     value_size bytes; not looked at if that is 0
 * in   mode      enum btree_mode
 * out  existedp  whether the key was there before; may be NULL
 * ret  0; EEXIST (BTREE_ADD); ENOSPC (the segment is full; the tree is unchanged).
 */
int btree_insert(struct btree *t, const void *key, const void *value, int mode,
                 bool *existedp);

/*
 * Look a key up.
 *
 * in   key    key_size bytes
 * out  value  value_size bytes, copied; may be NULL
 * ret  0; ENOENT.
 */
int btree_search(struct btree *t, const void *key, void *value);

/* Take an entry out.  ret 0; ENOENT. */
int btree_delete(struct btree *t, const void *key);

/*
 * Visit the entries with from <= key < to in ascending order, on one snapshot.  `visit`
 * must not change the tree.
 *
 * in   from   key_size bytes, or NULL: from the first entry
 * in   to     key_size bytes, or NULL: to the last entry, inclusive
 * ret  0; what `visit` returned, if not 0.
 */
int btree_scan(struct btree *t, const void *from, const void *to, btree_visit *visit,
               void *arg);

/*
 * The first entry whose key is not less than `from`.
 *
 * in   from       key_size bytes
 * out  key_out    key_size bytes, copied; may be NULL, may be `from`
 * out  value_out  value_size bytes, copied; may be NULL
 * ret  0; ENOENT.
 */
int btree_seek(struct btree *t, const void *from, void *key_out, void *value_out);

/* The first and the last entry; parameters and ret as btree_seek(). */
int btree_first(struct btree *t, void *key_out, void *value_out);
int btree_last(struct btree *t, void *key_out, void *value_out);

/*
 * Verify the whole tree on one snapshot: order, separators, fill, levels, leaf links,
 * that every block is a node, free or unused and only one of them, and the free lists.
 * Safe on a damaged tree.
 *
 * out  report  counts, and the first violation in words
 * ret  0; EUCLEAN (report->text says what); ENOMEM.
 */
int btree_check(struct btree *t, struct btree_report *report);

/* The same on plain memory.  Nothing here calls libxac; `hints` is ignored. */
int btree_serial_create(struct btree *t, void *base, size_t size,
                        const struct btree_config *config);
int btree_serial_open(struct btree *t, void *base, size_t size);
int btree_serial_insert(struct btree *t, const void *key, const void *value, int mode,
                        bool *existedp);
int btree_serial_search(struct btree *t, const void *key, void *value);
int btree_serial_delete(struct btree *t, const void *key);
int btree_serial_scan(struct btree *t, const void *from, const void *to,
                      btree_visit *visit, void *arg);
int btree_serial_seek(struct btree *t, const void *from, void *key_out, void *value_out);
int btree_serial_first(struct btree *t, void *key_out, void *value_out);
int btree_serial_last(struct btree *t, void *key_out, void *value_out);
int btree_serial_check(struct btree *t, struct btree_report *report);

#endif /* TREES_BTREE_H */
