/* SPDX-License-Identifier: MIT */
/*
 * ptab.h -- the page table: what all participants know of each page of a mapped file.
 *
 * WHAT      A radix tree for each file in the control region, by page number.  The process that
 *           touches a page first adds its entry.  The tree is as high as the largest page
 *           number needs: a small file costs one leaf.  The entry of a page never moves.  It
 *           stays until nobody maps the file and all its versions are in the file (registry.h).
 * NOT HERE  The meaning of the fields: for conflicts conflict.h, for versions version.h.
 * THREADS   any thread and process, in the fault handler too.
 *
 * INVARIANTS (xac_ptab_assert)
 *   (1) A root word has at most XAC_PTAB_LEVELS levels, and what hangs on it are blocks of the
 *       region, each as large as a node or a leaf.
 *   (2) An entry's id is 0, or names the file and the page that the entry's place in the tree
 *       stands for.
 *   (3) An entry without an id has no version.
 */
#ifndef XAC_PTAB_H
#define XAC_PTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/shm.h"

struct xac_page {
    /* The transactions that read and write the page now: lock and list head, see conflict.h. */
    xac_shared _Atomic uint64_t access;
    /* Frame of the newest version, 0 if that is the file.  Stored under publish
       (release), read by anyone (acquire). */
    xac_shared _Atomic uint64_t head;
    /* LSN of the XCHECKPT_BEGIN (or the start of the log) behind which the last full image of
       the page lies, before the next one; 0 if it has none.  Stored under publish, read by
       anyone as a hint. */
    xac_shared _Atomic uint64_t full_since;
    /* File id << XAC_PAGE_NO_BITS | page number.  Fixed when the entry is made. */
    xac_shared _Atomic uint64_t id;
    /* Number of the last commit that has written the page, 0: none has; whether or not its version is
       still there.  Stored under publish, before head; a process that has seen C sees all that are
       not above it. */
    xac_shared _Atomic uint64_t written;
    /* Updated in place (in_place.h).  1 + the page of the in-place file that holds the newest contents;
       0: they are those of head, or the file's.  Stored under publish (release). */
    xac_shared _Atomic uint64_t in_place;
    /* Offset of the next page of the list of such pages; under publish. */
    xac_shared _Atomic uint64_t next_in_place;
    /* Version slot with the contents before the running transaction, and how often it has been stored. */
    xac_shared _Atomic uint64_t image;
};

#define XAC_PAGE_NO_BITS 36

/* The tree: up to XAC_PTAB_LEVELS levels of nodes, which are arrays of links, above leaves of
   entries.  A root word is the offset of the top node, and in its low bits the number of
   levels.  (control_check.c needs them too.) */
#define XAC_PTAB_LEVELS     3u
#define XAC_PTAB_LEVEL_MASK UINT64_C(63)
#define XAC_PTAB_LEAF_BITS  6
#define XAC_PTAB_NODE_BITS  10
#define XAC_PTAB_LEAF_PAGES (UINT64_C(1) << XAC_PTAB_LEAF_BITS)
#define XAC_PTAB_NODE_LINKS (UINT64_C(1) << XAC_PTAB_NODE_BITS)
#define XAC_PTAB_LEAF_BYTES (sizeof(struct xac_page) << XAC_PTAB_LEAF_BITS)
#define XAC_PTAB_NODE_BYTES (sizeof(uint64_t) << XAC_PTAB_NODE_BITS)

/* xac_ptab_shift -- of the bits of a page number by which a node of that level, from 1 above
   the leaves, is looked up. */
XAC_SIGSAFE static inline unsigned
xac_ptab_shift(unsigned level)
{
    xac_assert(level >= 1);
    xac_assert(level <= XAC_PTAB_LEVELS);
    return XAC_PTAB_LEAF_BITS + (level - 1) * XAC_PTAB_NODE_BITS;
}
/* The access word: see conflict.c. */
#define XAC_ACCESS_HEAD_BITS \
 30 /* offset / 64 of the first entry: 64 GiB                 */
#define XAC_ACCESS_OWNER_BITS \
 22 /* slot + 1 of the holder of the lock                     */

#define XAC_PAGE_NO_MAX ((UINT64_C(1) << XAC_PAGE_NO_BITS) - 1)

XAC_SIGSAFE static inline uint64_t
xac_page_id(uint32_t file, uint64_t page_no)
{
    xac_assert(page_no <= XAC_PAGE_NO_MAX);
    return (uint64_t)file << XAC_PAGE_NO_BITS | page_no;
}

XAC_SIGSAFE static inline uint32_t
xac_page_file(uint64_t id)
{
    return (uint32_t)(id >> XAC_PAGE_NO_BITS);
}

XAC_SIGSAFE static inline uint64_t
xac_page_no(uint64_t id)
{
    return id & XAC_PAGE_NO_MAX;
}

/*
 * xac_ptab_page -- entry of a page, made if missing.
 *
 * in   rootp    the file's root word
 * ret  the entry, or NULL if the region has no room.
 */
XAC_SIGSAFE struct xac_page *xac_ptab_page(struct xac_shm *shm, _Atomic uint64_t *rootp,
                                           uint32_t file, uint64_t page_no);

/* xac_ptab_find -- entry of a page, NULL if it has none; it has no version then. */
XAC_SIGSAFE struct xac_page *xac_ptab_find(struct xac_shm *shm, _Atomic uint64_t *rootp,
                                           uint64_t page_no);

/* xac_ptab_is_clear -- true if no page has a version.  Nobody maps the file. */
bool xac_ptab_is_clear(const struct xac_shm *shm, const _Atomic uint64_t *rootp);

/*
 * xac_ptab_free -- give back the whole tree.
 *
 * It must be clear, nobody may map the file, and the gc lock must be held, because sweeps over
 * all versions look at pages under this lock.
 */
void xac_ptab_free(struct xac_shm *shm, _Atomic uint64_t *rootp);

/*
 * xac_ptab_assert -- stop the program unless (1) to (3) hold in the first nodes of the tree, a
 * bounded number of them.  The caller keeps the tree: it has mapped the file, or holds gc.
 */
void xac_ptab_assert(const struct xac_shm *shm, const _Atomic uint64_t *rootp,
                     uint32_t file);

#endif /* XAC_PTAB_H */
