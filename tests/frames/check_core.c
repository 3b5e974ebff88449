/* SPDX-License-Identifier: MIT */
/*
 * check_core.c -- page frames without frames/policies/, as libxac itself uses them.
 *
 * GOAL    Nb-GCLOCK needs nothing of the policies under a lock; each of these is refused.
 * METHOD  This program is linked with nb_only.c in place of them.
 */
#include <config.h>

#include <errno.h>

#include "store.h"

static const struct xac_frames_config small = {.n_pages = 8, .n_frames = 4, .n_users = 1};

START_TEST(fix_pages_with_nb_gclock)
{
    struct xac_frames *pool;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    must_ok(xac_frames_create(&small, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
    for (uint64_t page = 0; page < 8; page++) {
        must_ok(xac_frames_fix(user, page, 0, &pin));
        xac_frames_unfix(user, &pin);
    }
    must(xac_frames_check(pool, NULL) == NULL);
    xac_frames_leave(user);
    xac_frames_close(pool);
}
END_TEST

START_TEST(refuse_policies_that_are_not_linked)
{
    struct xac_frames_config c = small;
    struct xac_frames *pool = NULL;

    for (c.policy = XAC_FRAMES_LRU; c.policy < XAC_FRAMES_N_POLICIES; c.policy++) {
        must_eq(xac_frames_bytes(&c), 0);
        must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
    }
}
END_TEST

START_TEST(refuse_to_attach_to_a_pool_with_another_policy)
{
    struct xac_frames *pool, *again = NULL;

    must_ok(xac_frames_create(&small, NULL, NULL, &pool));
    must_ok(xac_frames_attach(pool->region, NULL, &again));
    xac_frames_close(again);
    pool->region->config.policy =
        XAC_FRAMES_LRU; /* as if a program that has it had made it */
    must_eq(xac_frames_attach(pool->region, NULL, &again), EINVAL);
    xac_frames_close(pool);
}
END_TEST

/* A table of pages, and after it their bytes; both within the pool. */
START_TEST(tell_where_the_parts_of_a_pool_lie)
{
    struct xac_frames_config c = {.n_pages = 1000, .n_frames = 4, .n_users = 1};
    struct store *store = store_make(1000, 4096);
    struct xac_frames_io io = store_io(store);
    struct xac_frames_layout layout, more[2];
    struct xac_frames *pool;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    char *base;

    c.page_bytes = 4096;
    must_ok(xac_frames_create(&c, NULL, &io, &pool));
    base = (char *)pool->region;
    must_eq(xac_frames_get_layout(pool, &layout, 7), EINVAL);
    must_ok(xac_frames_get_layout(pool, &layout, sizeof layout));
    must_ok(xac_frames_join(pool, &user));
    must_ok(xac_frames_fix(user, 999, 0, &pin));
    must_eq(*(uint64_t *)(void *)(base + layout.table_offset + 999 * 8), pin.ref);
    must_eq(layout.table_bytes, 8000);
    must((char *)pin.data >= base + layout.data_offset);
    must((char *)pin.data + 4096 <= base + xac_frames_bytes(&c));
    xac_frames_unfix(user, &pin);
    memset(more, 1, sizeof more);
    must_ok(xac_frames_get_layout(pool, more, sizeof more));
    must_eq(more[0].data_offset, layout.data_offset);
    must_eq(more[1].table_offset, 0);
    xac_frames_leave(user);
    xac_frames_close(pool);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("page frames without other policies");
    TCase *t = env_tcase(s, "core", 30);

    tcase_add_test(t, fix_pages_with_nb_gclock);
    tcase_add_test(t, tell_where_the_parts_of_a_pool_lie);
    tcase_add_test(t, refuse_policies_that_are_not_linked);
    tcase_add_test(t, refuse_to_attach_to_a_pool_with_another_policy);
    return env_main(s);
}
