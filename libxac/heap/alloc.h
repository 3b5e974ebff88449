/* SPDX-License-Identifier: MIT */
/*
 * alloc.h -- the transactional allocator: a heap inside a mapped segment.
 *
 * WHAT      xMalloc() and its relatives, xFree(), xRoot() and the checker.  The heap is ordinary data in the
 *           segment; plain loads and stores of the running transaction change it.  So an abort
 *           undoes its changes, and it is as durable as other data.
 * NOT HERE  Bytes (alloc_format.h), chunks (alloc_chunk.c), the directory of chunks, making
 *           and growing a heap (alloc_dir.c), the checker (alloc_check.c).
 * THREADS   the one that runs the transaction; not the fault handler.  No lock is held,
 *           because pages of the segment may trap.
 *
 * The cost is the number of pages, because each one costs a trap and may be a conflict:
 *   - a small allocation, or its free, touches one page, that of the slot itself;
 *   - each process and thread has runs of its own, and chunks from which it takes new runs (a
 *     private hint, checked against the page at each use);
 *   - the chunk header is touched when a run is taken, marked full, or no longer full;
 *   - the directory is touched when a chunk is taken or returned, and when its fields rooms
 *     and longest turn out to be wrong;
 *   - page 0 is read with the directory and written when the heap is made or grows.
 *
 * INVARIANTS
 *   (1) Each page of the heap is described once: by its chunk's entry, or by the page
 *       descriptors of its chunk.
 *   (2) Bit p of `used` is clear if and only if page p is present and its kind is FREE.
 *   (3) Entry and chunk header agree on rooms, longest and the header's page.
 *   (4) If a run is not marked full, the bit of its class in rooms is set.  A run that is
 *       marked full has no free slot.  There are never more than `longest` free pages in a row.
 *   (5) Free pages need no merging, because they are bits of one word.  Chunks without pages in
 *       use become free as a whole, except those that a process keeps for its next
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
 * in   alignment  power of two, at most the page size
 * out  addressp   memory inside the segment, aligned so, and to 16 bytes
 * ret  0; ENOMEM full; EINVAL no heap, and not blank either; XAC_EDAMAGED, XAC_EVERSION,
 *      XAC_EPAGESIZE.
 */
int xac_alloc_take(struct xac_view *view, size_t size, size_t alignment, void **addressp);

/* xac_alloc_give -- free; ret as above; EINVAL if it is no allocation of the heap. */
int xac_alloc_give(struct xac_view *view, void *address);

/* xac_alloc_size -- bytes of the allocation at an address; ret as xac_alloc_give. */
int xac_alloc_size(struct xac_view *view, const void *address, size_t *sizep);

/*
 * xac_alloc_resize -- make an allocation larger or smaller, where it is or elsewhere.  It stays if
 * it would fill at least half of its place.
 *
 * ret  as xac_alloc_take and xac_alloc_give; after an error the allocation is as it was.
 */
int xac_alloc_resize(struct xac_view *view, void *address, size_t size, void **addressp);

/*
 * xac_alloc_root -- the root area.  A query does not make a heap.
 */
int xac_alloc_root(struct xac_view *view, void **addressp);

/* xac_alloc_check -- check the whole heap; ret 0, or the first violation. */
int xac_alloc_check(struct xac_view *view, struct xac_heap_totals *out);

#endif /* XAC_ALLOC_H */
