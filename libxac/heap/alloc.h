/* SPDX-License-Identifier: MIT */
/*
 * alloc.h -- the transactional allocator: a heap inside a mapped segment.
 *
 * WHAT      xMalloc(), xFree(), xRoot() and the checker, as a client of the library: the
 *           heap is ordinary data in the segment, changed by plain loads and stores of the
 *           running transaction.  So it is undone by an abort, and as durable as the rest.
 * NOT HERE  Bytes (alloc_format.h), chunks (alloc_chunk.c), the directory of chunks, making
 *           and growing a heap (alloc_dir.c), the checker (alloc_check.c).
 * THREADS   the one that runs the transaction; not the fault handler.  No lock is held:
 *           pages of the segment may trap.
 *
 * What is fast is a matter of pages, as each costs a trap and may be a conflict:
 *   - a small allocation or its release touches one page, that of the slot itself;
 *   - each process and thread has runs, and chunks to take new runs from, of its own (a
 *     private hint, verified against the page at each use);
 *   - the chunk header is touched when a run is taken, marked full, or no longer full;
 *   - the directory is touched when a chunk is taken or returned, and when what it rules
 *     out (rooms, longest) turns out to be wrong;
 *   - page 0 is read with the directory and written when the heap is made or grows.
 *
 * INVARIANTS
 *   (1) Each page of the heap is accounted for once: by its chunk's entry, or by the page
 *       descriptors of its chunk.
 *   (2) Bit p of `used` is clear if and only if page p is present and its kind is FREE.
 *   (3) Entry and chunk header agree on rooms, longest and the header's page.
 *   (4) A run not marked full implies its class's bit in rooms; a run marked full has no
 *       free slot.  Free pages in a row never exceed longest.
 *   (5) Pages freed are merged by being bits of one word; chunks without pages in use
 *       become free as a whole, except those that a process keeps for its next
 *       allocation.
 */
#ifndef XAC_ALLOC_H
#define XAC_ALLOC_H

#include <stddef.h>

#include <xac.h>

struct xac_env;
struct xac_view;

/*
 * xac_alloc_take -- allocate; inside a transaction.
 *
 * out  addressp  16-byte aligned memory inside the segment
 * ret  0; ENOMEM full; EINVAL no heap, and not blank either; XAC_EDAMAGED, XAC_EVERSION,
 *      XAC_EPAGESIZE.
 */
int xac_alloc_take(struct xac_view *view, size_t size, void **addressp);

/* xac_alloc_give -- release; ret as above; EINVAL if it is no allocation of the heap. */
int xac_alloc_give(struct xac_view *view, void *address);

/*
 * xac_alloc_root -- the root area.  In a query a segment that is no heap yet stays as it
 * is.
 */
int xac_alloc_root(struct xac_view *view, void **addressp);

/* xac_alloc_check -- prove the heap sound; ret 0, or the first violation. */
int xac_alloc_check(struct xac_view *view, struct xac_heap_totals *out);

#endif /* XAC_ALLOC_H */
