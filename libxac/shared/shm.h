/* SPDX-License-Identifier: MIT */
/*
 * shm.h -- the control region: memory that all participants share, and its allocator.
 *
 * WHAT      One file.  Every participant maps all of it, at an address of its own.  It grows in
 *           place: the mapping reserves more addresses than the file has bytes, so growing
 *           needs no remapping.  Everything in it is named by its offset.  Blocks come from
 *           lock-free lists of free blocks, one for each size class, or from the end.
 * NOT HERE  The contents of the region (layout.h), page versions (version.h).
 * THREADS   any thread and process, in the fault handler too.
 *
 * INVARIANTS
 *   (1) Offset 0 is the head and is never allocated, so 0 means "none".
 *   (2) Everything below the size is backed by the file (fallocate), so that a store
 *       cannot run into a full disk.
 *   (3) brk and size only grow.  If a process dies while it allocates, at most this block is
 *       lost.
 *   (4) The size is not above the limit, and the limit is not above what any participant
 *       has reserved: every offset that is in use can be reached by all.
 *   (5) The word of a free list has a tag, which changes with each block that comes or goes.  A
 *       process may be stopped between its load of the word and its exchange.  It takes a
 *       wrong block only if, when it goes on, the same block is in front and the tag is the
 *       same again.  That needs exactly a multiple of 2^34 changes of this list, a quarter of
 *       an hour in which nothing else is done.
 */
#ifndef XAC_SHM_H
#define XAC_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/handle.h"

#define XAC_SHM_CLASSES 32 /* block sizes 64 << k */

/* Blocks are multiples of 64 bytes in a region of at most so many; the rest of a list's word
   is its tag. */
#define XAC_SHM_OFFSET_BITS 30
#define XAC_SHM_RESERVE_MAX ((size_t)64 << XAC_SHM_OFFSET_BITS)

/* First bytes of the region. */
struct xac_shm_head {
    xac_shared _Atomic uint64_t brk; /* first byte never allocated                     */
    /* Size, the bytes backed by the file, in MiB (low 32 bits), and above it the limit,
       likewise.  One word, so that neither passes the other. */
    xac_shared _Atomic uint64_t extent;
    /* Free blocks: offset / 64 in the low 30 bits, above them a tag against reuse. */
    xac_shared _Atomic uint64_t free[XAC_SHM_CLASSES];
};

/* One process's mapping. */
struct xac_shm {
    uint8_t *base;
    size_t reserve; /* bytes of address space                                         */
    int fd;
    struct xac_handle handle; /* of fd                                                */
    const char *path; /* to open the file again; not owned; NULL unknown              */
    int dirfd;        /* that a relative path is relative to                          */
    /* Why there was no room the last time: errno value, 0 if there always was; and how many
       bytes were wanted, 0 if not in the region itself but beside it; relaxed. */
    _Atomic int error;
    _Atomic uint64_t wanted;
};

/*
 * xac_shm_create -- make the region in a new file; xac_shm_attach -- map an existing one.
 *
 * in   fd       owned by shm on success; it may be given another number then
 * in   head     bytes that the caller uses at the start, head included; zeroed
 * in   reserve  bytes of address space, at most XAC_SHM_RESERVE_MAX
 * ret  0 or errno.
 */
int xac_shm_create(struct xac_shm *shm, int fd, size_t head, size_t reserve);
int xac_shm_attach(struct xac_shm *shm, int fd, size_t reserve);
void xac_shm_detach(struct xac_shm *shm);

/* xac_shm_bar -- from now on each access to it stops the process. */
void xac_shm_bar(struct xac_shm *shm);

/* xac_shm_size -- bytes of the region that are backed by the file. */
XAC_SIGSAFE uint64_t xac_shm_size(const struct xac_shm *shm);

/*
 * xac_shm_limit -- set the size beyond which the region does not grow; it may be more than before.
 * ret 0; ENOMEM if the region is larger already.
 */
int xac_shm_limit(struct xac_shm *shm, uint64_t bytes);

/*
 * xac_shm_fit -- lower the limit to what this participant, which joins, can reach.  ret 0; ENOMEM if
 * the region is larger already.
 */
int xac_shm_fit(struct xac_shm *shm);

/* What a user can do about too few addresses, for error messages. */
#define XAC_SHM_ADDRESSES "this process's address space is too small (see ulimit -v)"

/*
 * xac_shm_map -- map a file shared (prot as for mmap), with room to grow: *reservep bytes, or half of
 * it, a quarter of it and so on if the limit of addresses is too low, but not less than `least`.
 * ret  address or MAP_FAILED with errno; *reservep is the bytes reserved.
 */
XAC_SIGSAFE void *xac_shm_map(int fd, int prot, size_t *reservep, size_t least);

/* xac_shm_keep_room -- have the file hold so many bytes that are not in use yet, if it can: the memory may be full
   when they are wanted.  Of a new region. */
void xac_shm_keep_room(struct xac_shm *shm, size_t n_bytes);

/*
 * xac_shm_alloc -- a zeroed block; its offset, a multiple of 64, or 0 (no room).
 * xac_shm_free -- give it back; same n_bytes.
 */
XAC_SIGSAFE uint64_t xac_shm_alloc(struct xac_shm *shm, size_t n_bytes);
XAC_SIGSAFE void xac_shm_free(struct xac_shm *shm, uint64_t offset, size_t n_bytes);

/*
 * xac_shm_lacks -- why there was no room, called right after that; an errno value, never 0.
 * xac_shm_refuse -- note that there was no room for a file beside the region.
 */
XAC_SIGSAFE int xac_shm_lacks(const struct xac_shm *shm);
XAC_SIGSAFE void xac_shm_refuse(struct xac_shm *shm, int error);

/*
 * xac_shm_is_sound -- are the sizes and free lists of a region right, which is mapped or copied to
 * shm->reserve bytes?
 *
 * in   head  bytes at the start that are never allocated
 * in   brk   the region's, read before
 */
bool xac_shm_is_sound(const struct xac_shm *shm, uint64_t head, uint64_t brk);

/* xac_shm_at -- address of an offset in this process. */
XAC_SIGSAFE static inline void *
xac_shm_at(const struct xac_shm *shm, uint64_t offset)
{
    xac_assert(offset != 0 && offset < shm->reserve);
    return shm->base + offset;
}

/* xac_shm_offset -- and back. */
XAC_SIGSAFE static inline uint64_t
xac_shm_offset(const struct xac_shm *shm, const void *p)
{
    xac_assert_slow((const uint8_t *)p >= shm->base);
    xac_assert_slow((const uint8_t *)p < shm->base + shm->reserve);
    return (uint64_t)((const uint8_t *)p - shm->base);
}

/*
 * A growable array: chunks of base, base, 2*base, 4*base ... elements; elements never move.  It
 * needs no lock: a process that loses the race to add a chunk gives its own chunk back.
 */
#define XAC_ARRAY_CHUNKS 40
struct xac_array {
    uint32_t elem_bytes; /* fixed */
    uint32_t base;       /* elements of the first chunk, a power of two; fixed         */
    xac_shared _Atomic uint64_t count; /* high-water mark, moved by the array's user   */
    xac_shared _Atomic uint64_t chunk[XAC_ARRAY_CHUNKS]; /* offsets                    */
};

void xac_array_init(struct xac_array *a, uint32_t elem_bytes, uint32_t base);

/* xac_array_reserve -- make element i exist; ret 0 or errno. */
XAC_SIGSAFE int xac_array_reserve(struct xac_shm *shm, struct xac_array *a, uint64_t i);

/*
 * xac_array_locate -- chunk and place of element i; chunk 0 and 1 have `base` elements each, every
 * later one twice its predecessor's.
 */
XAC_SIGSAFE static inline unsigned
xac_array_locate(const struct xac_array *a, uint64_t i, uint64_t *placep,
                 uint64_t *elemsp)
{
    unsigned k = 0;

    xac_assert_slow(a->base != 0);
    if (i < a->base) {
        *placep = i;
        *elemsp = a->base;
        return 0;
    }
    k = 64u - (unsigned)__builtin_clzll(i / a->base);
    *elemsp = (uint64_t)a->base << (k - 1);
    *placep = i - *elemsp;
    xac_require(k < XAC_ARRAY_CHUNKS);
    xac_assert_slow(*placep < *elemsp);
    return k;
}

/* xac_array_at -- element i, which exists. */
XAC_SIGSAFE static inline void *
xac_array_at(const struct xac_shm *shm, const struct xac_array *a, uint64_t i)
{
    uint64_t place, elems;
    unsigned k = xac_array_locate(a, i, &place, &elems);
    /* Acquire: pairs with the exchange in xac_array_reserve. */
    uint64_t at = atomic_load_explicit(&a->chunk[k], memory_order_acquire);

    return (uint8_t *)xac_shm_at(shm, at) + place * a->elem_bytes;
}

/* xac_array_populate -- xac_populate for the elements [from, to), which exist. */
XAC_SIGSAFE void xac_array_populate(const struct xac_shm *shm, const struct xac_array *a,
                                    uint64_t from, uint64_t to);

#endif /* XAC_SHM_H */
