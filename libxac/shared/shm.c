/* SPDX-License-Identifier: MIT */
/*
 * shm.c -- see shm.h.
 */
#include <config.h>

#include "shared/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernel.h"
#include "base/lost.h"
#include "base/populate.h"
#include "base/sys.h"

#define BLOCK_MIN   64u
#define RESERVE_MIN ((size_t)1 << 30)
#define GROW_MIN    ((uint64_t)1 << 20) /* unit of the extent, too                     */
#define GROW_MAX    ((uint64_t)8 << 20) /* what nobody asks for; one transaction waits */
#define OFFSET_MASK ((UINT64_C(1) << XAC_SHM_OFFSET_BITS) - 1)

XAC_SIGSAFE static struct xac_shm_head *
head_of(const struct xac_shm *shm)
{
    return (struct xac_shm_head *)(void *)shm->base;
}

/* The two halves of an extent, bytes, and the whole. */
XAC_SIGSAFE static uint64_t
size_in(uint64_t extent)
{
    return (extent & UINT32_MAX) * GROW_MIN;
}

XAC_SIGSAFE static uint64_t
limit_in(uint64_t extent)
{
    return (extent >> 32) * GROW_MIN;
}

XAC_SIGSAFE static uint64_t
extent_of(uint64_t size, uint64_t limit)
{
    return limit / GROW_MIN << 32 | size / GROW_MIN;
}

XAC_SIGSAFE void *
xac_shm_map(int fd, int prot, size_t *reservep, size_t least)
{
    void *p = MAP_FAILED;

    xac_assert(fd >= 0);
    xac_assert(least > 0);
    while (*reservep >= least) {
        p = xac_sys.mmap(NULL, *reservep, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
        /* EINVAL is what valgrind says. */
        if (p != MAP_FAILED || (errno != ENOMEM && errno != EINVAL))
            break;
        *reservep /= 2;
    }
    return p;
}

static int
map_region(struct xac_shm *shm, int fd, size_t reserve)
{
    struct stat st;
    void *p;

    xac_assert(fd >= 0);
    if (reserve > XAC_SHM_RESERVE_MAX)
        return EINVAL;
    if (xac_sys.fstat(fd, &st) != 0)
        return errno;
    p = xac_shm_map(fd, PROT_READ | PROT_WRITE, &reserve, RESERVE_MIN);
    if (p == MAP_FAILED)
        return errno;
    shm->handle = (struct xac_handle){.device = st.st_dev, .inode = st.st_ino};
    shm->base = (uint8_t *)p;
    shm->reserve = reserve;
    shm->fd = fd;
    shm->path = NULL;
    xac_assert(shm->reserve <= XAC_SHM_RESERVE_MAX);
    return 0;
}

int
xac_shm_create(struct xac_shm *shm, int fd, size_t head, size_t reserve)
{
    uint64_t size = (head + GROW_MIN - 1) / GROW_MIN * GROW_MIN;
    int rc;

    xac_assert(head >= sizeof(struct xac_shm_head));
    xac_assert(fd >= 0);
    rc = xac_allocate(fd, 0, size);
    if (rc != 0)
        return rc;
    rc = map_region(shm, fd, reserve);
    if (rc != 0)
        return rc;
    /* Nobody else can see the region yet. */
    atomic_init(&head_of(shm)->brk, (head + BLOCK_MIN - 1) / BLOCK_MIN * BLOCK_MIN);
    atomic_init(&head_of(shm)->extent, extent_of(size, shm->reserve));
    xac_assert(xac_shm_size(shm) == size);
    xac_assert(size <= shm->reserve);
    return 0;
}

XAC_SIGSAFE uint64_t
xac_shm_size(const struct xac_shm *shm)
{
    xac_assert(shm->base != NULL);
    return size_in(atomic_load_explicit(&head_of(shm)->extent, memory_order_relaxed));
}

int
xac_shm_limit(struct xac_shm *shm, uint64_t bytes)
{
    _Atomic uint64_t *extentp = &head_of(shm)->extent;
    uint64_t extent = atomic_load_explicit(extentp, memory_order_relaxed);

    xac_assert(shm->base != NULL);
    do {
        if (size_in(extent) > bytes)
            return ENOMEM;
        /* Release: pairs with the acquire in back_up_to, for its store that we replace. */
    } while (!atomic_compare_exchange_weak_explicit(extentp, &extent,
                                                    extent_of(size_in(extent), bytes),
                                                    memory_order_acq_rel,
                                                    memory_order_relaxed));
    return 0;
}

int
xac_shm_fit(struct xac_shm *shm)
{
    uint64_t extent = atomic_load_explicit(&head_of(shm)->extent, memory_order_relaxed);

    xac_assert(shm->reserve <= XAC_SHM_RESERVE_MAX);
    return shm->reserve < limit_in(extent) ? xac_shm_limit(shm, shm->reserve) : 0;
}

int
xac_shm_attach(struct xac_shm *shm, int fd, size_t reserve)
{
    return map_region(shm, fd, reserve);
}

void
xac_shm_detach(struct xac_shm *shm)
{
    if (shm->base == NULL)
        return;
    (void)xac_sys.munmap(shm->base, shm->reserve);
    xac_handle_close(shm->fd, &shm->handle);
    shm->base = NULL;
    shm->fd = -1;
}

void
xac_shm_bar(struct xac_shm *shm)
{
    int rc = xac_sys.mprotect(shm->base, shm->reserve, PROT_NONE);

    xac_assert(shm->base != NULL);
    xac_require(rc == 0);
}

/* class_of -- smallest class that holds n bytes. */
XAC_SIGSAFE static unsigned
class_of(size_t n_bytes)
{
    unsigned k = 0;

    xac_assert(n_bytes > 0);
    while (((size_t)BLOCK_MIN << k) < n_bytes)
        k++;
    xac_require(k < XAC_SHM_CLASSES);
    return k;
}

/* link_of -- a free block's first word names the next one. */
XAC_SIGSAFE static _Atomic uint64_t *
link_of(const struct xac_shm *shm, uint64_t unit)
{
    xac_assert(unit != 0);
    return (_Atomic uint64_t *)xac_shm_at(shm, unit * BLOCK_MIN);
}

/*
 * next_of -- what comes behind a block of class k that was free a moment ago.
 *
 * Another process that has taken it since may be storing there; then the list's tag
 * has moved on, and the value read here is not used.  If it is damaged, the rest of the list is lost, and no more.
 */
XAC_SIGSAFE XAC_RACY static uint64_t
next_of(const struct xac_shm *shm, uint64_t unit, unsigned k)
{
    uint64_t next = atomic_load_explicit(link_of(shm, unit), memory_order_relaxed);
    uint64_t brk = atomic_load_explicit(&head_of(shm)->brk, memory_order_relaxed);

    xac_assert(k < XAC_SHM_CLASSES);
    return next <= OFFSET_MASK && next * BLOCK_MIN + ((uint64_t)BLOCK_MIN << k) <= brk
               ? next
               : 0;
}

XAC_SIGSAFE static uint64_t
pop(struct xac_shm *shm, unsigned k)
{
    _Atomic uint64_t *list = &head_of(shm)->free[k];
    /* Acquire: pairs with the release in xac_shm_free, for the link. */
    uint64_t old = atomic_load_explicit(list, memory_order_acquire);

    xac_assert(k < XAC_SHM_CLASSES);
    while ((old & OFFSET_MASK) != 0) {
        uint64_t next = next_of(shm, old & OFFSET_MASK, k);
        uint64_t tag = (old >> XAC_SHM_OFFSET_BITS) + 1;

        if (atomic_compare_exchange_weak_explicit(
                list, &old, next | tag << XAC_SHM_OFFSET_BITS,
                memory_order_acquire, /* pairs with the release in xac_shm_free */
                memory_order_acquire))
            return (old & OFFSET_MASK) * BLOCK_MIN;
    }
    return 0;
}

/* back_up -- have the file hold the bytes [from, to); ret 0 or errno. */
XAC_SIGSAFE static int
back_up(const struct xac_shm *shm, uint64_t from, uint64_t to)
{
    int fd = shm->fd, rc = 0;

    xac_assert(from < to);
    xac_assert(from % GROW_MIN == 0);
    if (!xac_handle_is_ours(fd, &shm->handle)) {
        errno = EBADF;
        fd = shm->path != NULL ? xac_lost_again(-1, &shm->handle, shm->dirfd, shm->path)
                               : -1;
    }
    if (fd < 0 || xac_sys.fallocate(fd, 0, (off_t)from, (off_t)(to - from)) != 0)
        rc = errno;
    if (fd != shm->fd)
        xac_handle_close(fd, &shm->handle);
    return rc;
}

bool
xac_shm_is_sound(const struct xac_shm *shm, uint64_t head, uint64_t brk)
{
    const struct xac_shm_head *h = head_of(shm);
    uint64_t extent = atomic_load_explicit(&h->extent, memory_order_relaxed);

    if (brk < head || brk % BLOCK_MIN != 0 || brk > size_in(extent)
        || size_in(extent) > shm->reserve || size_in(extent) > limit_in(extent)
        || limit_in(extent) > XAC_SHM_RESERVE_MAX)
        return false;
    for (unsigned k = 0; k < XAC_SHM_CLASSES; k++) {
        uint64_t word = atomic_load_explicit(&h->free[k], memory_order_relaxed);
        uint64_t at = (word & OFFSET_MASK) * BLOCK_MIN;

        if (at != 0 && (at < head || at > brk || (uint64_t)BLOCK_MIN << k > brk - at))
            return false;
    }
    return true;
}

/* step_of -- by how much a region of a size grows: a quarter, within bounds. */
XAC_SIGSAFE static uint64_t
step_of(uint64_t size)
{
    uint64_t step = size / 4 / GROW_MIN * GROW_MIN;

    xac_assert(size % GROW_MIN == 0);
    step = step > GROW_MIN ? step : GROW_MIN;
    return step < GROW_MAX ? step : GROW_MAX;
}

/* back_up_to -- have the file hold everything below end. */
XAC_SIGSAFE static int
back_up_to(struct xac_shm *shm, uint64_t end)
{
    _Atomic uint64_t *extentp = &head_of(shm)->extent;
    /* Acquire: pairs with the release below; the bytes are there before we use them. */
    uint64_t extent = atomic_load_explicit(extentp, memory_order_acquire);

    while (size_in(extent) < end) {
        uint64_t size = size_in(extent);
        uint64_t step = step_of(size), want = size + step;
        int rc;

        while (want < end)
            want += step;
        if (want > limit_in(extent))
            want = (end + GROW_MIN - 1) / GROW_MIN * GROW_MIN; /* the last bit */
        if (want > limit_in(extent))
            return ENOMEM;
        xac_assert(want >= end);
        xac_assert(want <= limit_in(extent));
        rc = back_up(shm, size, want);
        if (rc == EINTR)
            continue;
        if (rc != 0)
            return rc;
        /* Release: pairs with the acquire above. */
        if (atomic_compare_exchange_strong_explicit(extentp, &extent,
                                                    extent_of(want, limit_in(extent)),
                                                    memory_order_acq_rel,
                                                    memory_order_acquire))
            return 0;
    }
    return 0;
}

void
xac_shm_keep_room(struct xac_shm *shm, size_t n_bytes)
{
    /* Relaxed: nobody else can see the region yet. */
    uint64_t brk = atomic_load_explicit(&head_of(shm)->brk, memory_order_relaxed);

    xac_assert(n_bytes <= GROW_MAX);
    (void)back_up_to(shm, brk + n_bytes);
}

/* refuse -- there was no room; see shm.h. */
XAC_SIGSAFE static void
refuse(struct xac_shm *shm, int error, uint64_t bytes)
{
    xac_assert(error != 0);
    atomic_store_explicit(&shm->error, error, memory_order_relaxed);
    atomic_store_explicit(&shm->wanted, bytes, memory_order_relaxed);
}

XAC_SIGSAFE uint64_t
xac_shm_alloc(struct xac_shm *shm, size_t n_bytes)
{
    struct xac_shm_head *head = head_of(shm);
    unsigned k = class_of(n_bytes);
    uint64_t bytes = (uint64_t)BLOCK_MIN << k;
    uint64_t at = pop(shm, k);

    if (at != 0) {
        xac_assert(at % BLOCK_MIN == 0);
        xac_assert(at + bytes <= xac_shm_size(shm));
        memset(xac_shm_at(shm, at), 0, bytes);
        return at;
    }
    /* Backed first, then taken: a block that there is no room for must not cost room. */
    at = atomic_load_explicit(&head->brk, memory_order_relaxed);
    do {
        int rc = back_up_to(shm, at + bytes);

        if (rc != 0) {
            refuse(shm, rc, bytes);
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&head->brk, &at, at + bytes,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
    xac_assert(at % BLOCK_MIN == 0);
    xac_assert(at + bytes <= xac_shm_size(shm));
    return at;
}

XAC_SIGSAFE int
xac_shm_lacks(const struct xac_shm *shm)
{
    int error = atomic_load_explicit(&shm->error, memory_order_relaxed);

    return error != 0 ? error : ENOSPC;
}

XAC_SIGSAFE void
xac_shm_refuse(struct xac_shm *shm, int error)
{
    refuse(shm, error, 0);
}

XAC_SIGSAFE void
xac_shm_free(struct xac_shm *shm, uint64_t offset, size_t n_bytes)
{
    _Atomic uint64_t *list = &head_of(shm)->free[class_of(n_bytes)];
    uint64_t unit = offset / BLOCK_MIN;
    uint64_t old = atomic_load_explicit(list, memory_order_relaxed);

    xac_assert(offset != 0 && offset % BLOCK_MIN == 0);
    xac_assert(offset >= sizeof(struct xac_shm_head));
    xac_assert(offset + n_bytes
               <= atomic_load_explicit(&head_of(shm)->brk, memory_order_relaxed));
    xac_assert(unit <= OFFSET_MASK);
    do {
        atomic_store_explicit(link_of(shm, unit), old & OFFSET_MASK,
                              memory_order_relaxed);
        /* Release: pairs with the acquire in pop. */
    } while (!atomic_compare_exchange_weak_explicit(
        list, &old, unit | ((old >> XAC_SHM_OFFSET_BITS) + 1) << XAC_SHM_OFFSET_BITS,
        memory_order_release, /* pairs with the acquire in pop */
        memory_order_relaxed));
}

void
xac_array_init(struct xac_array *a, uint32_t elem_bytes, uint32_t base)
{
    xac_assert(elem_bytes > 0 && base > 0 && (base & (base - 1)) == 0);
    memset(a, 0, sizeof *a);
    a->elem_bytes = elem_bytes;
    a->base = base;
}

XAC_SIGSAFE int
xac_array_reserve(struct xac_shm *shm, struct xac_array *a, uint64_t i)
{
    uint64_t place, elems, at;
    uint64_t none = 0;
    unsigned k = xac_array_locate(a, i, &place, &elems);

    xac_assert(a->elem_bytes != 0);
    /* Acquire: pairs with the exchange below; a chunk is zeroed before it is seen. */
    if (atomic_load_explicit(&a->chunk[k], memory_order_acquire) != 0)
        return 0;
    at = xac_shm_alloc(shm, elems * a->elem_bytes);
    if (at == 0)
        return xac_shm_lacks(shm);
    xac_assert(none == 0);
    /* Release: pairs with the acquire above and in xac_array_at. */
    if (!atomic_compare_exchange_strong_explicit(&a->chunk[k], &none, at,
                                                 memory_order_acq_rel,
                                                 memory_order_acquire))
        xac_shm_free(shm, at, elems * a->elem_bytes);
    return 0;
}

XAC_SIGSAFE void
xac_array_populate(const struct xac_shm *shm, const struct xac_array *a, uint64_t from,
                   uint64_t to)
{
    while (from < to) {
        uint64_t place, elems, n;

        (void)xac_array_locate(a, from, &place, &elems);
        n = elems - place < to - from ? elems - place : to - from;
        xac_assert(n > 0);
        xac_populate(xac_array_at(shm, a, from), n * a->elem_bytes);
        from += n;
    }
}
