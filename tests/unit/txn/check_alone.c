/* SPDX-License-Identifier: MIT */
/*
 * check_alone.c -- being alone: epochs, and what a newcomer does to transactions with
 * unknown reads.
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "txn/reap.h"
#include "txn/ctree.h"
#include "txn/alone.h"

static struct xac_env *env;

static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
    env->options.checking = XAC_CHECKING_FAST;
}

static bool
is_unknown(void)
{
    return atomic_load_explicit(&env->ctx.txn->reads_unknown, memory_order_relaxed) != 0;
}

static int
why_kind(void)
{
    return (int)(atomic_load_explicit(&env->ctx.txn->why, memory_order_relaxed) >> 32
                 & 0xff);
}

START_TEST(give_each_time_alone_a_number)
{
    uint64_t first = xac_alone_epoch(env), second;
    struct xac_env *other;

    must(first != 0);
    must_eq(xac_alone_epoch(env), first);
    other = world_open(XAC_NONDURABLE);
    must_eq(xac_alone_epoch(env), 0);
    must_eq(xac_alone_epoch(other), 0);
    must_eq(xac_env_close(other), 0);
    second = xac_alone_epoch(env);
    must(second != 0 && second != first);
    /* The one that stays is alone, also if it came later. */
    other = world_open(XAC_NONDURABLE);
    must_eq(xac_env_close(env), 0);
    must(xac_alone_epoch(other) != 0);
    must_eq(xac_env_close(other), 0);
}
END_TEST

START_TEST(fail_a_transaction_that_read_unseen)
{
    struct xac_env *other;

    world_begin(env);
    must(is_unknown());
    must(world_write(env, 1));
    other = world_open(XAC_NONDURABLE);
    must_eq(world_state(env), XAC_TXN_FAILED);
    must_eq(why_kind(), XAC_CONFLICT_REVOKED);
    must(!world_committing(env));
    world_finish(env);
    world_begin(env);
    must(!is_unknown());
    must(world_read(env, 1));
    must(world_commit(env) != 0);
    must_eq(xac_env_close(other), 0);
    world_begin(env); /* alone again */
    must(is_unknown());
    world_finish(env);
}
END_TEST

START_TEST(publish_a_commit_that_read_unseen)
{
    struct xac_env *other;

    world_begin(env);
    must(world_write(env, 1));
    world_store(env, 1, 11);
    must(world_committing(env));
    other = world_open(XAC_NONDURABLE);
    must_eq(world_state(env), XAC_TXN_PUBLISHED);
    must_eq(world_value(other, 1, xac_chain_commit(other)), 11);
    world_finish(env);
    must_eq(world_value(other, 1, xac_chain_commit(other)), 11);
    must_eq(xac_env_close(other), 0);
}
END_TEST

START_TEST(let_others_be)
{
    struct xac_env *other;

    world_query(env); /* has its snapshot */
    other = world_open(XAC_NONDURABLE);
    must_eq(world_state(env), XAC_TXN_QUERY);
    world_finish(env);
    must_eq(xac_env_close(other), 0);

    env->options.checking = XAC_CHECKING_STRICT; /* records its reads, alone or not */
    world_begin(env);
    must(!is_unknown());
    must(world_read(env, 3));
    other = world_open(XAC_NONDURABLE);
    must_eq(world_state(env), XAC_TXN_PENDING);
    world_finish(env);
    must_eq(xac_env_close(other), 0);
}
END_TEST

static void
join_and_die(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    world_begin(mine);
    must(world_write(mine, 1));
    kill(getpid(), SIGKILL);
}

START_TEST(not_be_alone_beside_the_dead)
{
    struct xac_env *other;

    (void)proc_wait(proc_spawn(join_and_die, NULL));
    must_eq(xac_alone_epoch(env), 0);
    world_begin(env);
    must(!is_unknown());
    world_finish(env);
    /* The next one to come and go cleans up. */
    other = world_open(XAC_NONDURABLE);
    must_eq(xac_alone_epoch(env), 0);
    must_eq(xac_env_close(other), 0);
    must(xac_alone_epoch(env) != 0);
}
END_TEST

/* ---- a race ------------------------------------------------------------------------------ */

struct race {
    _Atomic uint64_t visitor_runs; /* a visitor is inside a transaction */
    _Atomic uint64_t visits;
    _Atomic uint64_t rounds; /* of the host */
};

static struct race *race_board;

static void
visit(void *arg)
{
    (void)arg;
    for (int i = 0; i < 150; i++) {
        struct xac_env *mine = world_open(XAC_NONDURABLE);

        world_begin(mine);
        word_store(&race_board->visitor_runs, 1);
        (void)world_write(mine, 1);
        word_store(&race_board->visitor_runs, 0);
        world_finish(mine);
        /* Some visits last until the host has run a whole transaction beside them. */
        if (i % 10 == 0)
            proc_await(&race_board->rounds, word_load(&race_board->rounds) + 2, 20);
        must_eq(xac_env_close(mine), 0);
        word_add(&race_board->visits, 1);
    }
}

START_TEST(never_commit_unseen_reads_beside_a_visitor)
{
    uint64_t unseen = 0, seen = 0, revoked = 0;
    pid_t pid;

    race_board = proc_shared(sizeof *race_board);
    pid = proc_spawn(visit, NULL);
    while (word_load(&race_board->visits) < 150) {
        bool was_unknown;

        must(!proc_any_failed());
        word_add(&race_board->rounds, 1);
        world_begin(env);
        was_unknown = is_unknown();
        if (!world_write(env, 2) || !world_committing(env)) {
            revoked += why_kind() == XAC_CONFLICT_REVOKED;
            world_finish(env);
            continue;
        }
        /* A visitor that runs now has published us before it began. */
        if (was_unknown && word_load(&race_board->visitor_runs) != 0)
            must_eq(world_state(env), XAC_TXN_PUBLISHED);
        unseen += was_unknown;
        seen += !was_unknown;
        world_publish(env);
        world_finish(env);
    }
    proc_join(pid);
    printf("%llu commits with reads unknown, %llu known, %llu revoked\n",
           (unsigned long long)unseen, (unsigned long long)seen,
           (unsigned long long)revoked);
    must(unseen > 0 && seen > 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("alone");
    TCase *tc = env_tcase(s, "alone", 60);

    tcase_add_checked_fixture(tc, open_world, NULL);
    tcase_add_test(tc, give_each_time_alone_a_number);
    tcase_add_test(tc, fail_a_transaction_that_read_unseen);
    tcase_add_test(tc, publish_a_commit_that_read_unseen);
    tcase_add_test(tc, let_others_be);
    tcase_add_test(tc, not_be_alone_beside_the_dead);
    tcase_add_test(tc, never_commit_unseen_reads_beside_a_visitor);
    return env_main(s);
}
