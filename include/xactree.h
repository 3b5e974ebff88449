/* SPDX-License-Identifier: MIT */
/*
 * xactree.h -- libxactree: an ordered map of bytes in a segment of libxac.
 *
 * Keys and values are byte strings of any length, up to limits.  Order is that of memcmp(3) on
 * the common length; then the shorter key is first.
 *
 *     #include <xac.h>
 *     #include <xactree.h>
 *
 *     xInit("db", DURABLE);
 *     void *base = xMmap("input.db", 1 << 30);     // the file is sparse: be generous
 *     struct xactree *t;
 *     int rc = xactree_open(&t, NULL, base, 1 << 30);
 *     if (rc == ENOENT)
 *         rc = xactree_create(&t, NULL, base, 1 << 30, NULL);
 *     xactree_put(t, "one", 3, "1", 1, XACTREE_PUT);
 *
 * A whole program is in doc/xactree.md.  Compile and link with
 * $(pkg-config --cflags --libs libxactree).
 *
 * TRANSACTIONS
 *   A call inside of the caller's transaction, xbegin() to xend(), is a part of that: several
 *   calls, on several trees, and plain stores elsewhere, take effect together or not at all.
 *   Called outside, each is a transaction of its own: it is tried again until it commits, and in a
 *   durable environment it is on disk when the call returns.  Calls that only read may stand
 *   in a query, too, and outside are queries.
 *
 * HANDLES
 *   A handle refers to a segment as this process has it mapped.  Close it before the segment
 *   is unmapped.  It is constant, so threads may share it as they share the mapping; a
 *   thread that works on a view of its own (xView) opens a handle on the view.  fork() copies
 *   handles, and the child may use them.  A cursor is for one thread at a time.
 *
 * RETURN VALUES
 *   0; a positive errno value or a negative code of xac_codes.h, for xStrerror().
 *   xactree_last_error() tells more.  Those that any call may return are
 *     EINVAL          an argument is NULL, or out of range; a key is too long
 *     XAC_FAILED      the caller's transaction has failed already, and its xend() will say so
 *     XAC_EINQUERY    a change inside of a query
 *     XAC_ENOINIT     there is no environment, or it was closed
 *     XAC_EPOISONED, XAC_ENOTDURABLE, ENOSPC, ...: as xbegin() and xend()
 *   Except where a comment says otherwise, a call that fails has changed nothing.
 *
 * DAMAGE
 *   xactree_open() reads the header only.  The other calls trust the segment, as a program
 *   trusts its memory.  xactree_check() trusts nothing: call it first if bytes came from
 *   somewhere that is not to be trusted.
 */
#ifndef XACTREE_H
#define XACTREE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
# define XACTREE_API __attribute__((visibility("default")))
#else
# define XACTREE_API
#endif

#define XACTREE_KEY_MAX   1018u      /* bytes of a key, at most; key_max may be less    */
#define XACTREE_VALUE_MAX 1073741824 /* bytes of a value, at most                       */

/* Of xac_env.h.  Where a call takes one, NULL is the default environment, of xInit(). */
struct xac_env;

/* A tree that the process has open, and a place in it. */
struct xactree;
struct xactree_cursor;

/* ---- Create and open --------------------------------------------------------------- */

/*
 * How a tree is made; constant from then on.  An entry takes key_max + 10 bytes and its value
 * in whole pieces of piece_size; so let key_max be what is needed, and piece_size the length
 * of a usual value.  xactree_config_init() sets all fields.
 */
struct xactree_config {
    size_t size;         /* of this structure, bytes                                  */
    uint32_t key_max;    /* bytes of the longest key, 1 to XACTREE_KEY_MAX; 64        */
    uint32_t piece_size; /* bytes of a value in one entry, 1 or more; 64              */
    uint32_t block_size; /* bytes, a power of two, 2048 to 524288, with room for three
                            entries; 0: the least that has, from 4096 on              */
    uint32_t reserved;   /* 0                                                         */
};

/* Set all fields to their defaults.  in  size  sizeof *out */
XACTREE_API void xactree_config_init(struct xactree_config *out, size_t size);

/*
 * Make an empty tree and open it.  The first page of the segment must be zero bytes.
 *
 * out  treep   the handle; unchanged on an error
 * in   env     where the segment is mapped; NULL: the default environment
 * in   base    start of the segment, or a page inside of it
 * in   length  bytes for the tree, all of it mapped; about 60 KiB at least
 * in   config  NULL: as xactree_config_init() sets it; copied
 * ret  0; EEXIST (there is a tree); XAC_EFOREIGN (there is something else); ENOSPC (too short);
 *      EINVAL (config); ENOMEM.
 */
XACTREE_API int xactree_create(struct xactree **treep, struct xac_env *env, void *base,
                               size_t length, const struct xactree_config *config);

/*
 * Open the tree that is in a segment.
 *
 * in   length  bytes mapped; those behind the tree's own do not matter
 * ret  0; ENOENT (zero bytes: no tree yet); XAC_EFOREIGN (something else is there);
 *      XAC_EVERSION (a tree of a later version, or of a machine of other byte order);
 *      XAC_EDAMAGED (the header is damaged); ENOSPC (length is less than the tree's); ENOMEM.
 */
XACTREE_API int xactree_open(struct xactree **treep, struct xac_env *env, void *base,
                             size_t length);

/* Forget the handle; the tree stays.  Its cursors have been closed before.  NULL is ignored. */
XACTREE_API void xactree_close(struct xactree *tree);

/* How the tree was made.  in  size  sizeof *out   ret 0; EINVAL. */
XACTREE_API int xactree_get_config(const struct xactree *tree, struct xactree_config *out,
                                   size_t size);

/*
 * Text about the latest failure of a call in this thread; empty if none has failed.  It is
 * valid until the thread's next call that fails.  That a key is not there, or is there, is not a
 * failure.
 */
XACTREE_API const char *xactree_last_error(void);

/* ---- Entries ----------------------------------------------------------------------- */

/* What xactree_put() does with a key. */
enum xactree_mode {
    XACTREE_PUT = 0,    /* puts the entry, in place of one that is there              */
    XACTREE_ADD = 1,    /* EEXIST if it is there                                      */
    XACTREE_REPLACE = 2 /* ENOENT if it is not there                                  */
};

/*
 * Put an entry into the tree.
 *
 * in   key, key_len      0 to key_max bytes; may be NULL if that is 0
 * in   value, value_len  0 to XACTREE_VALUE_MAX bytes; may be NULL if that is 0
 * in   mode              enum xactree_mode
 * ret  0; EEXIST, ENOENT (mode); ENOSPC (the tree is full, and unchanged); ENOMEM.
 */
XACTREE_API int xactree_put(struct xactree *tree, const void *key, size_t key_len,
                            const void *value, size_t value_len, int mode);

/*
 * Look a key up.
 *
 * out  value       the value's first `room` bytes; may be NULL if that is 0
 * in   room        bytes
 * out  value_lenp  bytes of the whole value, which may be more than room; may be NULL
 * ret  0; ENOENT.
 */
XACTREE_API int xactree_get(struct xactree *tree, const void *key, size_t key_len,
                            void *value, size_t room, size_t *value_lenp);

/* Take an entry out.  ret 0; ENOENT. */
XACTREE_API int xactree_delete(struct xactree *tree, const void *key, size_t key_len);

/* ---- Many entries ------------------------------------------------------------------ */

/* Some bytes; data may be NULL if len is 0. */
struct xactree_bytes {
    const void *data;
    size_t len;
};

/*
 * Called for each entry.  Key and value are valid during the call only.  It must not change the
 * tree, and not leave by longjmp() or an exception.
 * ret  0 to go on; anything else ends the scan, which returns it.
 */
typedef int xactree_visit(void *arg, const struct xactree_bytes *key,
                          const struct xactree_bytes *value);

/*
 * Visit the entries with from <= key < to in ascending order, on one snapshot.
 *
 * in   from, to  NULL: no bound on this side
 * ret  0; what `visit` returned, if not 0; ENOMEM.
 */
XACTREE_API int xactree_scan(struct xactree *tree, const struct xactree_bytes *from,
                             const struct xactree_bytes *to, xactree_visit *visit,
                             void *arg);

/* Count the entries with from <= key < to.  Reads them all: there is no counter, since all
   changes would meet in it.  ret as xactree_scan(). */
XACTREE_API int xactree_count(struct xactree *tree, const struct xactree_bytes *from,
                              const struct xactree_bytes *to, uint64_t *countp);

/* Delete the entries with from <= key < to.  out  countp  their number; may be NULL   ret 0. */
XACTREE_API int xactree_delete_range(struct xactree *tree,
                                     const struct xactree_bytes *from,
                                     const struct xactree_bytes *to, uint64_t *countp);

/*
 * Called for each entry that is loaded.  A transaction that aborts runs again, so it has to be
 * able to start anew.  It must not leave by longjmp() or an exception.
 *
 * in   i            number of the entry: 0, 1, ...; 0 starts anew
 * out  key, value   the caller's, valid until the next call
 * ret  1; 0: there is no entry i.
 */
typedef int xactree_source(void *arg, uint64_t i, struct xactree_bytes *key,
                           struct xactree_bytes *value);

/*
 * Put many entries behind the last one of the tree, in ascending order, in one transaction.
 *
 * in   percent  how full to leave a block, 50 to 100
 * out  countp   entries put, also on an error: these are in the tree; may be NULL
 * ret  0; EINVAL (percent; a key or value too long; a key that is not above the one before);
 *      ENOSPC; ENOMEM.
 */
XACTREE_API int xactree_load(struct xactree *tree, xactree_source *source, void *arg,
                             unsigned percent, uint64_t *countp);

/* ---- Cursors ----------------------------------------------------------------------- */

/*
 * A cursor stands on an entry, at first on none.  It remembers the key, so it stays good whatever
 * happens to the tree, a roll-back included.  If its entry is deleted, it stands between the
 * neighbours.  For one snapshot surround several moves with a transaction or query.
 */
XACTREE_API int xactree_cursor_open(struct xactree_cursor **cursorp,
                                    struct xactree *tree);
XACTREE_API void xactree_cursor_close(struct xactree_cursor *cursor);

/*
 * Move a cursor: to the first or last entry; to the first one with a key of at least `key`; to
 * the next entry; to the one before.  From nowhere the next is the first, the one before is
 * the last.
 *
 * ret  0; ENOENT (there is none; the cursor stays where it was).
 */
XACTREE_API int xactree_cursor_first(struct xactree_cursor *cursor);
XACTREE_API int xactree_cursor_last(struct xactree_cursor *cursor);
XACTREE_API int xactree_cursor_seek(struct xactree_cursor *cursor, const void *key,
                                    size_t key_len);
XACTREE_API int xactree_cursor_next(struct xactree_cursor *cursor);
XACTREE_API int xactree_cursor_prev(struct xactree_cursor *cursor);

/*
 * The key of its entry, which may have been deleted since.
 *
 * out  key  in the cursor, valid until it moves or is closed
 * ret  0; ENOENT (the cursor has not been moved yet).
 */
XACTREE_API int xactree_cursor_key(const struct xactree_cursor *cursor,
                                   struct xactree_bytes *key);

/* The value of its entry now, as xactree_get().  ret 0; ENOENT: deleted, or nowhere. */
XACTREE_API int xactree_cursor_value(struct xactree_cursor *cursor, void *value,
                                     size_t room, size_t *value_lenp);

/* ---- Verification ------------------------------------------------------------------ */

/* What xactree_check() found. */
struct xactree_report {
    uint64_t entries;     /* keys                                                     */
    uint64_t pieces;      /* pieces of values                                         */
    uint64_t height;      /* levels above the leaves                                  */
    uint64_t blocks;      /* of the tree                                              */
    uint64_t blocks_used; /* by leaves and inner nodes                                */
    uint64_t blocks_free; /* given back, or never used; the others are the header's   */
    uint64_t block_size;  /* bytes                                                    */
    char text[160];       /* the first violation in words; "" if there is none        */
};

/*
 * Verify the whole tree on one snapshot: the header; order of keys, separators, fill, levels and
 * links; that each block has one purpose; free lists; that the pieces of each value are
 * complete.  Safe on a damaged tree.
 *
 * out  report  counts, and the first violation; NULL: only the code
 * in   size    sizeof *report
 * ret  0; XAC_EDAMAGED; ENOMEM.
 */
XACTREE_API int xactree_check(struct xactree *tree, struct xactree_report *report,
                              size_t size);

#ifdef __cplusplus
}
#endif

#endif /* XACTREE_H */
