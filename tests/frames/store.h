/* SPDX-License-Identifier: MIT */
/*
 * store.h -- a file in memory for tests of page frames: it counts, fails, waits, and finds
 * what must not happen (two writes of one page at once, a write without the log).
 */
#ifndef XAC_TEST_STORE_H
#define XAC_TEST_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/env.h"
#include "frames/policies/locked.h"

struct store {
    uint64_t n_pages;
    uint32_t page_bytes;
    char *bytes;
    _Atomic uint32_t *writing; /* per page: writes under way */
    _Atomic uint32_t *latches; /* per page: the latch of its writer */
    _Atomic uint64_t n_reads, n_writes, n_logged, n_overlaps;
    _Atomic int read_rc, write_rc, log_rc; /* what the next calls return */
    void (*on_read)(struct store *s, uint64_t page);
    void (*on_write)(struct store *s, uint64_t page);
};

static inline void
latch_take(struct store *s, uint64_t page)
{
    while (atomic_exchange_explicit(&s->latches[page], 1, memory_order_acquire) != 0)
        proc_sleep_us(1);
}

static inline void
latch_drop(struct store *s, uint64_t page)
{
    atomic_store_explicit(&s->latches[page], 0, memory_order_release);
}

static inline char *
store_page(struct store *s, uint64_t page)
{
    return s->bytes + page * s->page_bytes;
}

static inline int
store_read(void *arg, uint64_t page, void *data)
{
    struct store *s = arg;
    int rc = atomic_load(&s->read_rc);

    atomic_fetch_add(&s->n_reads, 1);
    if (rc != 0)
        return rc;
    /* The file itself is not raced for: a system's reads and writes of a page are whole. */
    latch_take(s, s->n_pages + page);
    memcpy(data, store_page(s, page), s->page_bytes);
    latch_drop(s, s->n_pages + page);
    if (s->on_read != NULL)
        s->on_read(s, page);
    return 0;
}

static inline int
store_write(void *arg, uint64_t page, const void *data)
{
    struct store *s = arg;
    int rc = atomic_load(&s->write_rc);

    if (atomic_fetch_add(&s->writing[page], 1) != 0)
        atomic_fetch_add(&s->n_overlaps, 1);
    atomic_fetch_add(&s->n_writes, 1);
    if (s->on_write != NULL)
        s->on_write(s, page);
    if (rc == 0) {
        latch_take(s, page);
        latch_take(s, s->n_pages + page);
        memcpy(store_page(s, page), data, s->page_bytes);
        latch_drop(s, s->n_pages + page);
        latch_drop(s, page);
    }
    atomic_fetch_sub(&s->writing[page], 1);
    return rc;
}

static inline int
store_log(void *arg, uint64_t page, const void *data)
{
    struct store *s = arg;

    (void)page;
    (void)data;
    atomic_fetch_add(&s->n_logged, 1);
    return atomic_load(&s->log_rc);
}

/* In memory shared with child processes. */
static inline struct store *
store_make(uint64_t n_pages, uint32_t page_bytes)
{
    struct store *s = proc_shared(sizeof *s);

    s->n_pages = n_pages;
    s->page_bytes = page_bytes;
    s->bytes = proc_shared(n_pages * page_bytes);
    s->writing = proc_shared(n_pages * sizeof *s->writing);
    s->latches = proc_shared(2 * n_pages * sizeof *s->latches);
    return s;
}

static inline struct xac_frames_io
store_io(struct store *s)
{
    return (struct xac_frames_io){.read = store_read,
                                  .write = store_write,
                                  .before_write = store_log,
                                  .arg = s};
}

static inline uint64_t
mix(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Everything in its place, and so many pins. */
static inline void
must_be_whole(struct xac_frames *pool, uint64_t n_pins)
{
    uint64_t pins;
    const char *wrong = xac_frames_check(pool, &pins);

    if (wrong != NULL)
        env_fail(__FILE__, __LINE__, "pool: %s", wrong);
    must_eq(pins, n_pins);
}

/* hand_get -- how far the clock's hand has moved. */
static inline uint64_t
hand_get(const struct xac_frames *pool)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pool->region->config.hand_cells; i++)
        sum += atomic_load_explicit(&pool->cells[i].moved, memory_order_relaxed);
    return sum;
}

#endif /* XAC_TEST_STORE_H */
