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

int
main(void)
{
    Suite *s = suite_create("page frames without other policies");
    TCase *t = env_tcase(s, "core", 30);

    tcase_add_test(t, fix_pages_with_nb_gclock);
    tcase_add_test(t, refuse_policies_that_are_not_linked);
    tcase_add_test(t, refuse_to_attach_to_a_pool_with_another_policy);
    return env_main(s);
}
