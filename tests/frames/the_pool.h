/* SPDX-License-Identifier: MIT */
/*
 * the_pool.h -- what tests of one pool and one user have in common: one_pool.h, sim_pool.h.
 */
#ifndef XAC_TEST_THE_POOL_H
#define XAC_TEST_THE_POOL_H

#include "store.h"

static struct xac_frames *pool;
static struct xac_frames_user *user;

static inline struct xac_frames_stats
stats(void)
{
    struct xac_frames_stats s;

    xac_frames_get_stats(pool, &s, sizeof s);
    return s;
}

static inline void
touch_by(struct xac_frames_user *who, uint64_t page)
{
    struct xac_frames_pin pin;

    must_ok(xac_frames_fix(who, page, 0, &pin));
    xac_frames_unfix(who, &pin);
}

static inline void
touch(uint64_t page)
{
    touch_by(user, page);
}

static inline bool
is_mapped(uint64_t page)
{
    return slot_load(&pool->table[page]) != 0;
}

#endif /* XAC_TEST_THE_POOL_H */
