/* SPDX-License-Identifier: MIT */
/*
 * pool.c -- making a pool, coming to it, leaving it, and its counters.
 */
#include <config.h>

#include "frames/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sized.h"
#include "base/sys.h"

#define FRAMES_MAX      (UINT32_C(1) << 30)
#define USERS_MAX       65535
#define PAGES_MAX       (UINT64_C(1) << 48)
#define DATA_ALIGN      4096 /* for O_DIRECT */
#define WEIGHT_DEFAULT  3
#define WEIGHT_MAX      1000000
#define BATCH_MAX       4096
#define FULL_MS         1000
#define LISTS_MAX       1024
#define PARTS_MAX       256
#define PINS_MAX        4096
#define N_LINES(frames) (((frames) + 7) / 8)

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "words in shared memory must be lock-free");
static_assert(sizeof(struct frame) == FRAME_LINE, "one descriptor, one cache line");

/* ---- Layout ----------------------------------------------------------------------- */

/* hand_cells -- as many words as leave their runs below 1/128 of the frames; a power of two. */
static uint32_t
hand_cells(uint32_t n_frames)
{
    uint32_t n = 1;

    while (2 * n <= POOL_CELLS_MAX && n_frames / (2 * n) >= 128 * HAND_RUN)
        n *= 2;
    xac_assert((n & (n - 1)) == 0);
    xac_assert(n <= POOL_CELLS_MAX);
    return n;
}

/* is_linked -- the program has this policy. */
static bool
is_linked(uint32_t policy)
{
    return policy == XAC_FRAMES_NB_GCLOCK || xac_frames_plug(policy) != NULL;
}

/* config_complete -- defaults filled in; false if a value is out of range. */
static bool
config_complete(struct xac_frames_config *c)
{
    const struct pool_plug *plug = xac_frames_plug(c->policy);

    if (c->hand_cells == 0)
        c->hand_cells = hand_cells(c->n_frames);
    if (c->full_ms == 0)
        c->full_ms = FULL_MS;
    if (c->batch_queue == 0 && c->batch_threshold == 0)
        c->batch_queue = c->batch_threshold = c->batch_cold = c->batch_all = 1;
    if (c->parts == 0)
        c->parts = 1;
    if (c->free_lists > LISTS_MAX || c->free_batch > POOL_FREE_BATCH_MAX
        || c->parts > PARTS_MAX || c->parts > c->n_frames || c->pins_max > PINS_MAX
        || c->batch_cold > 1 || c->batch_all > 1)
        return false;
    if (plug != NULL) {
        plug->complete(c);
    } else { /* has neither */
        c->parts = 1;
        c->free_lists = 0;
    }
    if (c->weight_max == 0)
        c->weight_max = WEIGHT_DEFAULT;
    return is_linked(c->policy) && c->n_pages >= 1 && c->n_pages < PAGES_MAX
           && c->n_frames >= 1 && c->n_frames <= FRAMES_MAX && c->n_users >= 1
           && c->n_users <= USERS_MAX && c->page_bytes % FRAME_LINE == 0
           && c->weight_max <= WEIGHT_MAX && c->hand_cells <= POOL_CELLS_MAX
           && (c->hand_cells & (c->hand_cells - 1)) == 0 && c->lock <= XAC_FRAMES_SPIN
           && c->batch_threshold >= 1 && c->batch_threshold <= c->batch_queue
           && c->batch_queue <= BATCH_MAX;
}

/* region_lay_out -- sizes and offsets; c is complete. */
static void
region_lay_out(struct pool_region *r, const struct xac_frames_config *c)
{
    const struct pool_plug *plug = xac_frames_plug(c->policy);
    uint64_t end = sizeof *r;

    xac_assert(c->parts > 0);
    xac_assert(c->n_frames > 0);
    r->config = *c;
    r->n_frames_all = c->n_frames + c->n_users;
    r->n_buffers = c->page_bytes == 0
                       ? 0
                       : c->n_frames + (1 + XAC_FRAMES_MANY) * c->n_users; /* P6 */
    r->cells_offset =
        region_place(&end, c->hand_cells * sizeof(struct pool_cell), FRAME_LINE);
    r->ring_offset =
        region_place(&end, (uint64_t)N_LINES(c->n_frames) * FRAME_LINE, FRAME_LINE);
    r->seats_offset =
        region_place(&end, c->n_users * sizeof(struct pool_seat), FRAME_LINE);
    r->frames_offset =
        region_place(&end, (uint64_t)r->n_frames_all * sizeof(struct frame), FRAME_LINE);
    r->table_offset = region_place(&end, c->n_pages * sizeof(uint64_t), FRAME_LINE);
    r->links_offset =
        region_place(&end, (uint64_t)r->n_buffers * sizeof(uint32_t), FRAME_LINE);
    r->notes_offset =
        region_place(&end, (uint64_t)c->n_users * c->pins_max * sizeof(uint64_t),
                     FRAME_LINE);
    if (plug != NULL)
        plug->lay_out(r, &end);
    r->data_offset =
        region_place(&end, (uint64_t)r->n_buffers * c->page_bytes, DATA_ALIGN);
    r->n_bytes = end;
    xac_assert(r->data_offset % DATA_ALIGN == 0);
    xac_assert(r->n_bytes >= r->data_offset);
}

size_t
xac_frames_bytes(const struct xac_frames_config *config)
{
    struct xac_frames_config c = *config;
    struct pool_region r;

    if (!config_complete(&c))
        return 0;
    region_lay_out(&r, &c);
    return (size_t)r.n_bytes;
}

/* pool_open -- a handle on memory that is laid out; NULL without memory for it. */
static struct xac_frames *
pool_open(void *memory, const struct xac_frames_io *io)
{
    struct pool_region *r = memory;
    const struct xac_frames_config *c = &r->config;
    struct xac_frames *pool = calloc(1, sizeof *pool);
    char *base = memory;

    xac_assert(memory != NULL);
    xac_assert(c->parts > 0);
    if (pool == NULL)
        return NULL;
    pool->region = r;
    pool->cells = (struct pool_cell *)(base + r->cells_offset);
    pool->ring = (xac_shared _Atomic uint64_t *)(base + r->ring_offset);
    pool->seats = (struct pool_seat *)(base + r->seats_offset);
    pool->frames = (struct frame *)(base + r->frames_offset);
    pool->table = (xac_shared _Atomic uint64_t *)(base + r->table_offset);
    pool->links = (xac_shared _Atomic uint32_t *)(base + r->links_offset);
    pool->data = base + r->data_offset;
    pool->n_pages = c->n_pages;
    pool->page_bytes = c->page_bytes;
    pool->pins_max = c->pins_max;
    pool->weight_max = (int32_t)c->weight_max;
    pool->n_frames = c->n_frames;
    pool->n_lines = N_LINES(c->n_frames);
    pool->notes = (xac_shared _Atomic uint64_t *)(base + r->notes_offset);
    pool->plug = xac_frames_plug(c->policy);
    if (pool->plug != NULL && pool->plug->open(pool) != 0) {
        free(pool);
        return NULL;
    }
    if (io != NULL)
        pool->io = *io;
    xac_assert(pool->n_frames <= r->n_frames_all);
    return pool;
}

static bool
io_is_complete(const struct xac_frames_io *io, uint32_t page_bytes)
{
    return page_bytes == 0 || (io != NULL && io->read != NULL && io->write != NULL);
}

int
xac_frames_create(const struct xac_frames_config *config, void *memory,
                  const struct xac_frames_io *io, struct xac_frames **poolp)
{
    struct xac_frames_config c = *config;
    bool own = memory == NULL;
    struct pool_region layout = {0};
    struct xac_frames *pool;
    struct pool_region *r;

    if (!config_complete(&c) || !io_is_complete(io, c.page_bytes)
        || (uintptr_t)memory % DATA_ALIGN != 0)
        return EINVAL;
    region_lay_out(&layout, &c);
    if (own) {
        memory = xac_sys.mmap(NULL, (size_t)layout.n_bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return ENOMEM;
    }
    r = memory;
    memcpy(r, &layout, sizeof layout);
    pool = pool_open(memory, io);
    if (pool == NULL) {
        if (own)
            (void)xac_sys.munmap(memory, (size_t)layout.n_bytes);
        return ENOMEM;
    }
    pool->own_memory = own;
    atomic_store_explicit(&r->vacant, c.n_frames, memory_order_relaxed);
    for (uint32_t i = 0; i < c.n_users; i++)
        pool->seats[i].spare = c.n_frames + i;
    if (pool->plug != NULL)
        pool->plug->init(pool);
    xac_assert(pool->n_frames == c.n_frames);
    /* Pairs with xac_frames_attach(): it sees all of the above. */
    atomic_store_explicit(&r->magic, POOL_MAGIC, memory_order_release);
    *poolp = pool;
    return 0;
}

int
xac_frames_attach(void *memory, const struct xac_frames_io *io, struct xac_frames **poolp)
{
    struct pool_region *r = memory;
    struct xac_frames *pool;

    /* Pairs with the last store of xac_frames_create(). */
    if (atomic_load_explicit(&r->magic, memory_order_acquire) != POOL_MAGIC)
        return ENOENT;
    if (!io_is_complete(io, r->config.page_bytes) || !is_linked(r->config.policy))
        return EINVAL;
    pool = pool_open(memory, io);
    if (pool == NULL)
        return ENOMEM;
    xac_debug(xac_pool_assert(pool));
    *poolp = pool;
    return 0;
}

void
xac_frames_close(struct xac_frames *pool)
{
    xac_assert(pool->region != NULL);
    if (pool->own_memory)
        (void)xac_sys.munmap(pool->region, (size_t)pool->region->n_bytes);
    if (pool->plug != NULL)
        pool->plug->close(pool);
    free(pool);
}

/* ---- Users ------------------------------------------------------------------------ */

static struct xac_frames_user *
user_make(struct xac_frames *pool, uint32_t number)
{
    const struct xac_frames_config *c = &pool->region->config;
    struct xac_frames_user *user = calloc(1, sizeof *user);

    xac_assert(number < c->n_users);
    if (user == NULL)
        return NULL;
    user->pool = pool;
    user->seat = &pool->seats[number];
    user->notes = &pool->notes[(size_t)number * c->pins_max];
    user->number = number;
    user->hand_cell = number & (c->hand_cells - 1);
    if (pool->plug != NULL && pool->plug->join(user) != 0) {
        free(user);
        return NULL;
    }
    xac_assert(user->hand_cell < c->hand_cells);
    return user;
}

int
xac_frames_join(struct xac_frames *pool, struct xac_frames_user **userp)
{
    for (uint32_t i = 0; i < pool->region->config.n_users; i++) {
        uint32_t is_free = SEAT_FREE;
        struct xac_frames_user *user;

        /* Acquire pairs with xac_frames_leave(): what the former owner left. */
        if (!atomic_compare_exchange_strong_explicit(&pool->seats[i].taken, &is_free,
                                                     SEAT_TAKEN, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        atomic_store_explicit(&pool->seats[i].pid, (uint32_t)getpid(),
                              memory_order_relaxed);
        user = user_make(pool, i);
        if (user == NULL) {
            /* Pairs with the step above. */
            atomic_store_explicit(&pool->seats[i].taken, SEAT_FREE, memory_order_release);
            return ENOMEM;
        }
        xac_assert(user->seat->spare < pool->region->n_frames_all);
        xac_assert(user->seat->buffer <= pool->region->n_buffers);
        xac_assert(atomic_load_explicit(&user->seat->writing, memory_order_relaxed) == 0);
        xac_assert(atomic_load_explicit(&user->seat->in_call, memory_order_relaxed) == 0);
        *userp = user;
        return 0;
    }
    return EAGAIN;
}

void
xac_frames_leave(struct xac_frames_user *user)
{
    xac_assert(atomic_load_explicit(&user->seat->taken, memory_order_relaxed)
               == SEAT_TAKEN);
    xac_assert(atomic_load_explicit(&user->seat->in_call, memory_order_relaxed) == 0);
    xac_assert(user->seat->spare < user->pool->region->n_frames_all);
    xac_debug(xac_pool_user_assert(user));
    if (user->pool->plug != NULL)
        user->pool->plug->leave(user);
    /* Pairs with xac_frames_join(). */
    atomic_store_explicit(&user->seat->taken, SEAT_FREE, memory_order_release);
    free(user);
}

/* ---- Inspection --------------------------------------------------------------------- */

int
xac_frames_get_stats(const struct xac_frames *pool, struct xac_frames_stats *statsp,
                     size_t size)
{
    uint64_t sums[POOL_N_COUNTERS] = {0};

    if (statsp == NULL || size < sizeof statsp->hits)
        return EINVAL;
    for (uint32_t i = 0; i < pool->region->config.n_users; i++)
        for (unsigned c = 0; c < POOL_N_COUNTERS; c++)
            sums[c] +=
                atomic_load_explicit(&pool->seats[i].counters[c], memory_order_relaxed);
    /* The structure is the counters, one after the other, in the order of the enum. */
    static_assert(sizeof *statsp == sizeof sums, "a counter for each statistic");
    xac_sized_fill(statsp, size, sums, sizeof sums);
    return 0;
}

int
xac_frames_get_layout(const struct xac_frames *pool, struct xac_frames_layout *layoutp,
                      size_t size)
{
    const struct pool_region *r = pool->region;
    struct xac_frames_layout layout = {.table_offset = r->table_offset,
                                       .table_bytes =
                                           r->config.n_pages * sizeof(uint64_t),
                                       .data_offset = r->data_offset};

    if (layoutp == NULL || size < sizeof layoutp->table_offset)
        return EINVAL;
    xac_sized_fill(layoutp, size, &layout, sizeof layout);
    return 0;
}
