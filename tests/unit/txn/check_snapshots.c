/* SPDX-License-Identifier: MIT */
/*
 * check_snapshots.c -- what the chain keeps for snapshots (snapshots.h): a state is held from before a
 * query begins at it to its end, even if the snapshot is released meanwhile.
 */
#include <config.h>

#include <string.h>

#include <xac.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "base/annot.h"
#include "shared/env_state.h"
#include "txn/ctree.h"
#include "txn/reap.h"
#include "txn/snapshots.h"

#define PAGE 7

static struct xac_env *env, *other;
static uint64_t id;

/* open_world -- page 7 is 1 in the snapshot, and 9 at last. */
static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
    other = world_open(XAC_NONDURABLE);
    must_eq(world_put(env, PAGE, 1), 1);
    must_ok(xac_snapshots_take(env, NULL, &id));
    for (uint64_t v = 2; v <= 9; v++)
        must_eq(world_put(env, PAGE, v), v);
}

static void
close_world(void)
{
    must_ok(xac_env_close(other));
    must_ok(xac_env_close(env));
}

/* collect -- free what nobody needs. */
static void
collect(void)
{
    struct xac_needs needs;

    xac_gc_lock(other);
    xac_gc_needs(other, &needs);
    xac_version_sweep_for(other, &needs, 0);
    xac_gc_unlock(other);
}

START_TEST(state_is_kept_while_it_is_held)
{
    uint64_t commits[16];

    open_world();
    collect();
    must_eq(world_list(env, PAGE, commits, 16), 2);
    must_eq(world_value(env, PAGE, 1), 1);
    must_ok(xac_snapshots_release(other, id));
    collect();
    must_eq(world_list(env, PAGE, commits, 16), 1);
    must_eq(commits[0], 9);
    close_world();
}
END_TEST

START_TEST(checkpoint_writes_nothing_behind_it)
{
    open_world();
    xac_gc_lock(other);
    must_eq(xac_gc_bound(other, NULL), 1);
    xac_gc_unlock(other);
    must_ok(xac_snapshots_release(other, id));
    xac_gc_lock(other);
    must_eq(xac_gc_bound(other, NULL), 9);
    xac_gc_unlock(other);
    close_world();
}
END_TEST

START_TEST(query_holds_what_was_released)
{
    open_world();
    world_query(env);
    must_ok(xac_snapshots_enter(env, env->ctx.txn, id));
    must_ok(xac_snapshots_release(other, id));
    collect();
    must_eq(atomic_load_explicit(&env->ctx.txn->parent, memory_order_relaxed), 1);
    must_eq(world_value(env, PAGE, 1), 1);
    world_finish(env);
    close_world();
}
END_TEST

#ifdef XAC_DEBUG
/* release -- in the middle of a begin. */
static void
release(const char *name)
{
    if (strcmp(name, "snapshot seen") != 0)
        return;
    xac_kill_hook = NULL;
    must_ok(xac_snapshots_release(other, id));
    collect();
}

START_TEST(query_finds_that_it_was_released_just_now)
{
    open_world();
    world_query(env);
    xac_kill_hook = release;
    must_rc(xac_snapshots_enter(env, env->ctx.txn, id), XAC_ENOSTATE);
    must(xac_kill_hook == NULL);
    world_finish(env);
    close_world();
}
END_TEST

/* Another one has the slot by then. */
static void
release_and_take(const char *name)
{
    bool is_it = strcmp(name, "snapshot seen") == 0;

    release(name);
    if (is_it)
        must_ok(xac_snapshots_take(other, NULL, &id));
}

START_TEST(query_is_not_led_to_another_one)
{
    uint64_t first;

    open_world();
    first = id;
    world_query(env);
    xac_kill_hook = release_and_take;
    must_rc(xac_snapshots_enter(env, env->ctx.txn, first), XAC_ENOSTATE);
    must(id != first);
    world_finish(env);
    close_world();
}
END_TEST
#endif

int
main(void)
{
    Suite *s = suite_create("check_snapshots");
    TCase *tc = env_tcase(s, "snapshots", 20);

    tcase_add_test(tc, state_is_kept_while_it_is_held);
    tcase_add_test(tc, checkpoint_writes_nothing_behind_it);
    tcase_add_test(tc, query_holds_what_was_released);
#ifdef XAC_DEBUG
    tcase_add_test(tc, query_finds_that_it_was_released_just_now);
    tcase_add_test(tc, query_is_not_led_to_another_one);
#endif
    return env_main(s);
}
