/* SPDX-License-Identifier: MIT */
/*
 * one_pool.h -- what tests of one pool over a store in memory begin with.
 */
#ifndef XAC_TEST_ONE_POOL_H
#define XAC_TEST_ONE_POOL_H

#include "the_pool.h"

#define PAGE_BYTES 64

static struct store *store;

static inline void
pool_make(uint64_t n_pages, uint32_t n_frames, struct xac_frames_config more)
{
    struct xac_frames_io io;

    store = store_make(n_pages, PAGE_BYTES);
    io = store_io(store);
    more.n_pages = n_pages;
    more.n_frames = n_frames;
    more.n_users = 8;
    more.page_bytes = PAGE_BYTES;
    must_ok(xac_frames_create(&more, NULL, &io, &pool));
    must_ok(xac_frames_join(pool, &user));
}

#define pool_plain(n_pages, n_frames) \
 pool_make(n_pages, n_frames, (struct xac_frames_config){0})

static inline void
pool_end(void)
{
    must_be_whole(pool, 0);
    xac_frames_leave(user);
    xac_frames_close(pool);
}

static inline struct xac_frames_pin
fix(uint64_t page)
{
    struct xac_frames_pin pin;

    must_ok(xac_frames_fix(user, page, 0, &pin));
    return pin;
}

/* Change the page's first word and mark it. */
static inline void
change(uint64_t page, uint64_t value)
{
    struct xac_frames_pin pin = fix(page);

    memcpy(pin.data, &value, sizeof value);
    xac_frames_mark_dirty(user, &pin);
    xac_frames_unfix(user, &pin);
}

static inline uint64_t
stored(uint64_t page)
{
    uint64_t value;

    memcpy(&value, store_page(store, page), sizeof value);
    return value;
}

/* N18: no write of a page that has left the table. */
static inline void
must_be_mapped(struct store *s, uint64_t page)
{
    (void)s;
    must(is_mapped(page));
}

static inline uint32_t
word_of(frame_ref ref)
{
    return frame_word(frame_load(pool_frame(pool, ref)));
}

#endif /* XAC_TEST_ONE_POOL_H */
