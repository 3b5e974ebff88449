/* SPDX-License-Identifier: MIT */
/*
 * cobtree.h -- a cache-oblivious B-tree inside a mapped segment.
 *
 * WHAT      A tree (tree.h) without a block size to choose: entries in key order in one array
 *           with gaps, a packed memory array, below a static search tree in van Emde Boas
 *           layout (veb.h).  A search touches O(log_B N) blocks and a scan of k entries
 *           O(k/B), whatever the block size B of the memory is; an insert or delete moves
 *           O(log^2 N) entries, amortized.
 *           M. Bender, E. Demaine, M. Farach-Colton, Cache-Oblivious B-Trees, FOCS 2000;
 *           M. Bender, Z. Duan, J. Iacono, J. Wu, A Locality-Preserving Cache-Oblivious
 *           Dynamic Dictionary, SODA 2002; Thesis section 5.1.
 * NOT HERE  Builds, transactions and return values, which are those of all trees
 *           (tree.h); the bytes (cobtree_layout.h, README.md); opening files and
 *           environments.
 * THREADS   One thread at a time uses a handle; it keeps the measures of the index.
 *
 * INVARIANTS
 *   (1) The array is 2^height leaves of COBTREE_CELLS cells.  Entries are in key order,
 *       over all leaves.
 *   (2) A leaf has at least COBTREE_LEAF_LEAST entries, unless it is the only one.
 *   (3) The keys of a leaf's cells never descend, those in gaps included.
 *   (4) Separator s, 0 < s < 2^height, is above every key of leaf s - 1 and not above any
 *       of leaf s.  It is the key of the index node that is number s in order.
 *
 * DENSITY   Windows of 2^k neighbouring leaves, aligned to their size, have bounds that are
 *           the tighter the larger the window, in even steps from those of a leaf to those of
 *           the whole array.  When a leaf is full (32 entries), or has too few, the smallest
 *           window around it that is within its bounds is spread evenly.  When not even the
 *           whole array is, it gets twice or half as many leaves.
 *
 *                                           leaf       whole array
 *             entries per leaf, of 32      4 to 31       8 to 24
 */
#ifndef TREES_COBTREE_H
#define TREES_COBTREE_H

#include "tree.h"
#include "veb.h"

#ifdef TREE_SERIAL
# define cobtree_size        cobtree_serial_size
# define cobtree_create      cobtree_serial_create
# define cobtree_open        cobtree_serial_open
# define cobtree_insert      cobtree_serial_insert
# define cobtree_load        cobtree_serial_load
# define cobtree_search      cobtree_serial_search
# define cobtree_delete      cobtree_serial_delete
# define cobtree_scan        cobtree_serial_scan
# define cobtree_seek        cobtree_serial_seek
# define cobtree_first       cobtree_serial_first
# define cobtree_last        cobtree_serial_last
# define cobtree_check       cobtree_serial_check
# define cobtree_cursor_seek cobtree_serial_cursor_seek
# define cobtree_cursor_next cobtree_serial_cursor_next
# define cobtree_cursor_prev cobtree_serial_cursor_prev
#endif

#define COBTREE_KEY_MAX   1024u  /* bytes of a key, at most                           */
#define COBTREE_VALUE_MAX 65536u /* bytes of a value, at most                         */

/* Chosen when a tree is created. */
struct cobtree_config {
    uint32_t key_size;   /* bytes, 1 to COBTREE_KEY_MAX                               */
    uint32_t value_size; /* bytes, 0 to COBTREE_VALUE_MAX                             */
};

/*
 * A process's handle on a tree.  Filled in by cobtree_create() and cobtree_open(); `hints`
 * may be set by the caller at any time, the rest is private.
 */
struct cobtree {
    bool hints; /* announce pages with setPageAccess() before touching them           */

    unsigned char *base;  /* of the segment in this process                           */
    uint32_t key_size;    /* as in struct cobtree_config                              */
    uint32_t value_size;  /* -                                                        */
    uint32_t height_max;  /* largest height that the segment has room for             */
    uint32_t leaf_values; /* offset of the values in a leaf, bytes                    */
    size_t leaf_size;     /* bytes of a leaf                                          */
    size_t leaves;        /* offset of the first leaf, bytes                          */
    struct veb veb;       /* of the index of the height met last                      */
};

/*
 * A place in a tree.  Set `t`, and the rest to zero: the cursor is then nowhere.  It
 * remembers its entry by key, so it stays good whatever happens to the tree.
 */
struct cobtree_cursor {
    struct cobtree *t;
    bool is_placed;                     /* it has an entry                            */
    unsigned cell;                      /* that held the entry                        */
    uint64_t leaf;                      /* and its leaf                               */
    unsigned char key[COBTREE_KEY_MAX]; /* its key                                    */
};

/* What cobtree_check() found. */
struct cobtree_report {
    char text[160];      /* the first violation in words; "" if there is none         */
    uint64_t entries;    /* in the whole tree                                         */
    uint32_t height;     /* levels of the index                                       */
    uint32_t height_max; /* and how many it may get                                   */
    uint64_t leaves;     /* of the array                                              */
    uint64_t cells;      /* of the array                                              */
    uint32_t least;      /* entries in the emptiest leaf                              */
    uint32_t most;       /* entries in the fullest leaf                               */
    uint32_t key_size;   /* bytes                                                     */
    uint32_t value_size; /* bytes                                                     */
};

/*
 * cobtree_size -- bytes of a segment in which a tree of `count` entries never runs full.
 *
 * in   config  sizes
 * ret  bytes, a multiple of 4096; 0 if the sizes are out of range or it would be too large.
 */
size_t cobtree_size(const struct cobtree_config *config, uint64_t count);

/*
 * Make an empty tree in a segment and open it.
 *
 * out  t       the handle; unchanged on an error
 * in   base    start of the segment, page-aligned
 * in   size    bytes of the segment, best cobtree_size(): the array's size is a power of
 *              two, and what exceeds it stays unused
 * in   config  sizes
 * ret  0; EINVAL (sizes out of range); ENOSPC (segment too small for one leaf);
 *      EEXIST (there is a tree in the segment).
 */
int cobtree_create(struct cobtree *t, void *base, size_t size,
                   const struct cobtree_config *config);

/*
 * Open the tree that is in a segment.  Reads the header only.
 *
 * out  t     the handle; unchanged on an error
 * in   base  start of the segment
 * in   size  bytes of the segment in this process
 * ret  0; ENOENT (no tree there: not our magic number); ENOTSUP (a tree of another format
 *      version); EUCLEAN (impossible sizes in the header); ENOSPC (the segment is mapped
 *      shorter than the tree may get).
 */
int cobtree_open(struct cobtree *t, void *base, size_t size);

/*
 * Put an entry into the tree.
 *
 * in   key       key_size bytes
 * in   value     value_size bytes; not looked at if that is 0
 * in   mode      enum tree_mode
 * out  existedp  whether the key was there before; may be NULL
 * ret  0; EEXIST (TREE_ADD); ENOSPC (the array would have to grow, and cannot: three
 *      quarters of its cells are in use; the tree is unchanged).
 */
int cobtree_insert(struct cobtree *t, const void *key, const void *value, int mode,
                   bool *existedp);

/*
 * Fill an empty tree, in one transaction.
 *
 * in   source   the entries, in ascending order (tree.h)
 * in   arg      handed to `source`
 * in   count    how many to take
 * in   percent  how many of 100 cells to use at most, 50 to 100; all of them for a tree that
 *               will not change
 * ret  0; EINVAL (percent out of range; a key that is not above the one before; the
 *      source ends early); EEXIST (the tree is not empty); ENOSPC.
 */
int cobtree_load(struct cobtree *t, tree_source *source, void *arg, uint64_t count,
                 unsigned percent);

/*
 * Look a key up.
 *
 * in   key    key_size bytes
 * out  value  value_size bytes, copied; may be NULL
 * ret  0; ENOENT.
 */
int cobtree_search(struct cobtree *t, const void *key, void *value);

/* Take an entry out.  ret 0; ENOENT. */
int cobtree_delete(struct cobtree *t, const void *key);

/*
 * Visit the entries with from <= key < to in ascending order, on one snapshot.  `visit`
 * must not change the tree.
 *
 * in   from   key_size bytes, or NULL: from the first entry
 * in   to     key_size bytes, or NULL: to the last entry, inclusive
 * ret  0; what `visit` returned, if not 0.
 */
int cobtree_scan(struct cobtree *t, const void *from, const void *to, tree_visit *visit,
                 void *arg);

/*
 * The first entry with a key of at least `from`.
 *
 * in   from       key_size bytes
 * out  key_out    key_size bytes, copied; may be NULL, may be `from`
 * out  value_out  value_size bytes, copied; may be NULL
 * ret  0; ENOENT.
 */
int cobtree_seek(struct cobtree *t, const void *from, void *key_out, void *value_out);

/* The first and the last entry; parameters and ret as cobtree_seek(). */
int cobtree_first(struct cobtree *t, void *key_out, void *value_out);
int cobtree_last(struct cobtree *t, void *key_out, void *value_out);

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
int cobtree_cursor_seek(struct cobtree_cursor *c, const void *from, void *key_out,
                        void *value_out);
int cobtree_cursor_next(struct cobtree_cursor *c, void *key_out, void *value_out);
int cobtree_cursor_prev(struct cobtree_cursor *c, void *key_out, void *value_out);

/*
 * Verify the whole tree on one snapshot: the header, densities (2), order (1, 3), and the
 * separators (4), which are looked for where the recursive definition of the layout has
 * them, not where the search looks.  Safe on a damaged tree.
 *
 * out  report  counts, and the first violation in words
 * ret  0; EUCLEAN (report->text says what).
 */
int cobtree_check(struct cobtree *t, struct cobtree_report *report);

/* The same on plain memory.  Nothing here calls libxac; `hints` is ignored. */
size_t cobtree_serial_size(const struct cobtree_config *config, uint64_t count);
int cobtree_serial_create(struct cobtree *t, void *base, size_t size,
                          const struct cobtree_config *config);
int cobtree_serial_open(struct cobtree *t, void *base, size_t size);
int cobtree_serial_insert(struct cobtree *t, const void *key, const void *value, int mode,
                          bool *existedp);
int cobtree_serial_load(struct cobtree *t, tree_source *source, void *arg, uint64_t count,
                        unsigned percent);
int cobtree_serial_search(struct cobtree *t, const void *key, void *value);
int cobtree_serial_delete(struct cobtree *t, const void *key);
int cobtree_serial_scan(struct cobtree *t, const void *from, const void *to,
                        tree_visit *visit, void *arg);
int cobtree_serial_seek(struct cobtree *t, const void *from, void *key_out,
                        void *value_out);
int cobtree_serial_first(struct cobtree *t, void *key_out, void *value_out);
int cobtree_serial_last(struct cobtree *t, void *key_out, void *value_out);
int cobtree_serial_cursor_seek(struct cobtree_cursor *c, const void *from, void *key_out,
                               void *value_out);
int cobtree_serial_cursor_next(struct cobtree_cursor *c, void *key_out, void *value_out);
int cobtree_serial_cursor_prev(struct cobtree_cursor *c, void *key_out, void *value_out);
int cobtree_serial_check(struct cobtree *t, struct cobtree_report *report);

#endif /* TREES_COBTREE_H */
