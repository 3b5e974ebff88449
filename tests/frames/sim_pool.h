/* SPDX-License-Identifier: MIT */
/*
 * sim_pool.h -- what tests of one pool without memory begin with.
 */
#ifndef XAC_TEST_SIM_POOL_H
#define XAC_TEST_SIM_POOL_H

#include "the_pool.h"

#define SOMEBODY \
 UINT32_C(999) /* a number no user has: the lock's word when others have it */

static inline void
pool_make(uint64_t n_pages, uint32_t n_frames, struct xac_frames_config more)
{
    more.n_pages = n_pages;
    more.n_frames = n_frames;
    if (more.n_users == 0)
        more.n_users = 4;
    must_ok(xac_frames_create(&more, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
}

static inline void
pool_end(void)
{
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}

static inline void
fill(uint64_t n_pages)
{
    for (uint64_t page = 0; page < n_pages; page++)
        touch(page);
}

static inline void
lock_set(uint32_t part, uint32_t word)
{
    atomic_store(&pool->locked->parts[part].lock, word);
}

#endif /* XAC_TEST_SIM_POOL_H */
