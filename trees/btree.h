/* SPDX-License-Identifier: MIT */
/*
 * btree.h -- a B+-tree inside a mapped segment.
 *
 * WHAT      A tree (tree.h) with nodes that are blocks of one size, 2 KiB to 512 KiB.
 * NOT HERE  Builds, transactions and return values, which are those of all trees
 *           (tree.h); the bytes (btree_layout.h, README.md); opening files and
 *           environments.
 * PROCESSES btree_open() in a child of fork() gives it a block pool of its own, and so
 *           fewer conflicts than a copied handle.
 */
#ifndef TREES_BTREE_H
#define TREES_BTREE_H

#include "tree.h"

#ifdef TREE_SERIAL
# define btree_create      btree_serial_create
# define btree_open        btree_serial_open
# define btree_insert      btree_serial_insert
# define btree_load        btree_serial_load
# define btree_search      btree_serial_search
# define btree_delete      btree_serial_delete
# define btree_scan        btree_serial_scan
# define btree_seek        btree_serial_seek
# define btree_first       btree_serial_first
# define btree_last        btree_serial_last
# define btree_cursor_seek btree_serial_cursor_seek
# define btree_cursor_next btree_serial_cursor_next
# define btree_cursor_prev btree_serial_cursor_prev
# define btree_check       btree_serial_check
#endif

#define BTREE_KEY_MAX   1024u         /* bytes of a key, at most                      */
#define BTREE_BLOCK_MIN 2048u         /* bytes of a block, at least                   */
#define BTREE_BLOCK_MAX (128u * 4096) /* and at most                                  */

/* Where a new block comes from, when none was given back. */
enum btree_allocation {
    BTREE_SEQUENTIAL = 0, /* the next one: what grows together lies together          */
    BTREE_SCATTERED = 1   /* anywhere in the segment, as in a tree that has aged      */
};

/* Chosen when a tree is created. */
struct btree_config {
    uint32_t key_size;   /* bytes, 1 to BTREE_KEY_MAX                                 */
    uint32_t value_size; /* bytes, 0 or more; at least 3 entries must fit into a block */
    uint32_t block_size; /* bytes, a power of two, BTREE_BLOCK_MIN to BTREE_BLOCK_MAX */
    uint32_t allocation; /* enum btree_allocation                                     */
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
    uint32_t allocation;     /* -                                                     */
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

/*
 * A place in a tree.  Set `t`, and the rest to zero: the cursor is then nowhere.  It
 * remembers its entry by key, so it stays good whatever happens to the tree.
 */
struct btree_cursor {
    struct btree *t;
    uint32_t block;                   /* leaf that held the entry; 0: nowhere         */
    uint32_t pos;                     /* its rank there                               */
    unsigned char key[BTREE_KEY_MAX]; /* its key                                      */
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
 * in   mode      enum tree_mode
 * out  existedp  whether the key was there before; may be NULL
 * ret  0; EEXIST (TREE_ADD); ENOSPC (the segment is full; the tree is unchanged).
 */
int btree_insert(struct btree *t, const void *key, const void *value, int mode,
                 bool *existedp);

/*
 * Put many entries behind the last one of the tree, in one transaction.  A large load may
 * be cut in pieces, each of which goes on where the one before ended.
 *
 * in   source   the entries, in ascending order (tree.h)
 * in   arg      handed to `source`
 * in   percent  how full to leave a leaf, 50 to 100; full ones for a tree that will not
 *               grow but behind its last key
 * out  countp   entries put, also on an error: those before it are in the tree
 * ret  0; EINVAL (percent out of range; a key that is not above the one before);
 *      ENOSPC.
 */
int btree_load(struct btree *t, tree_source *source, void *arg, unsigned percent,
               uint64_t *countp);

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
int btree_scan(struct btree *t, const void *from, const void *to, tree_visit *visit,
               void *arg);

/*
 * The first entry with a key of at least `from`.
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
 * Move a cursor and copy the entry that it comes to: the first one with a key of at
 * least `from`; the next one; the one before.  From nowhere the next entry is the first, the one
 * before is the last.  An entry that is gone is no obstacle.  Each move is a query of its
 * own: for one snapshot surround them with xbeginQuery() and xendQuery().
 *
 * in   from       key_size bytes
 * out  key_out    key_size bytes, copied; may be NULL
 * out  value_out  value_size bytes, copied; may be NULL
 * ret  0; ENOENT (there is none; the cursor stays where it was).
 */
int btree_cursor_seek(struct btree_cursor *c, const void *from, void *key_out,
                      void *value_out);
int btree_cursor_next(struct btree_cursor *c, void *key_out, void *value_out);
int btree_cursor_prev(struct btree_cursor *c, void *key_out, void *value_out);

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
int btree_serial_load(struct btree *t, tree_source *source, void *arg, unsigned percent,
                      uint64_t *countp);
int btree_serial_search(struct btree *t, const void *key, void *value);
int btree_serial_delete(struct btree *t, const void *key);
int btree_serial_scan(struct btree *t, const void *from, const void *to,
                      tree_visit *visit, void *arg);
int btree_serial_seek(struct btree *t, const void *from, void *key_out, void *value_out);
int btree_serial_first(struct btree *t, void *key_out, void *value_out);
int btree_serial_last(struct btree *t, void *key_out, void *value_out);
int btree_serial_cursor_seek(struct btree_cursor *c, const void *from, void *key_out,
                             void *value_out);
int btree_serial_cursor_next(struct btree_cursor *c, void *key_out, void *value_out);
int btree_serial_cursor_prev(struct btree_cursor *c, void *key_out, void *value_out);
int btree_serial_check(struct btree *t, struct btree_report *report);

#endif /* TREES_BTREE_H */
