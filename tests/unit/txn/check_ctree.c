/* SPDX-License-Identifier: MIT */
/*
 * check_ctree.c -- the chain of commits: numbers, ring, mark and parents, publishing for
 * others, gc against a model.
 */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "checkpoint/checkpoint.h"
#include "txn/reap.h"
#include "txn/ctree.h"
#include "txn/policy.h"

static struct xac_env *env;

static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
}

static struct xac_ring_entry *
ring_at(uint64_t number)
{
    return &env->ctl->chain.ring[number % XAC_RING_ENTRIES];
}

static uint64_t
ring_number(uint64_t number)
{
    return atomic_load_explicit(&ring_at(number)->number, memory_order_acquire);
}

static uint64_t
mark_now(void)
{
    return atomic_load_explicit(&env->ctl->chain.mark, memory_order_acquire);
}

static uint64_t
parent_of(const struct xac_env *e)
{
    return atomic_load_explicit(&e->ctx.txn->parent, memory_order_relaxed);
}

/* ---- publishing --------------------------------------------------------------------------- */

START_TEST(number_commits_one_by_one)
{
    for (uint64_t n = 1; n <= 3 * XAC_RING_ENTRIES; n++) {
        must_eq(world_put(env, n % 50, n), n);
        must_eq(xac_chain_commit(env), n);
        must_eq(ring_number(n), n);
        must_eq(world_value(env, n % 50, n), n);
        must_eq(world_state(env), XAC_TXN_IDLE);
    }
    must_eq(ring_number(1), 2 * XAC_RING_ENTRIES + 1); /* overrun */
}
END_TEST

START_TEST(name_pages_in_the_ring_or_say_all)
{
    for (uint64_t n = 1; n <= XAC_RING_PAGES + 3; n++) {
        uint64_t number;

        world_begin(env);
        for (uint64_t p = 0; p < n; p++) {
            must(world_write(env, p));
            world_store(env, p, n);
        }
        must(world_read(env, 100)); /* not written: not named */
        number = world_commit(env);
        must_eq(ring_number(number), number);
        must_eq(atomic_load_explicit(&ring_at(number)->n_pages, memory_order_relaxed),
                n <= XAC_RING_PAGES ? n : XAC_RING_ALL);
        for (uint64_t p = 0; p < n && n <= XAC_RING_PAGES; p++)
            must_eq(atomic_load_explicit(&ring_at(number)->page[p], memory_order_relaxed),
                    xac_shm_offset(&env->shm, world_page(env, p)));
    }
}
END_TEST

START_TEST(name_lines_of_the_first_pages)
{
    for (uint64_t n = 1; n <= XAC_RING_LINES + 2; n++) {
        struct xac_wrote wrote;

        world_begin(env);
        for (uint64_t p = 0; p < n; p++) {
            must(world_write(env, p));
            world_store(env, p, n);
            must_eq(world_entry(env, p)->same, 0); /* not known until somebody says it */
            world_entry(env, p)->same = n << 32 | (p + 1);
        }
        must(xac_chain_wrote(env, world_commit(env), &wrote));
        must_eq(wrote.n_pages, n);
        for (uint32_t p = 0; p < n; p++)
            must_eq(xac_wrote_same(&wrote, p),
                    p < XAC_RING_LINES ? n << 32 | (p + 1) : 0);
    }
}
END_TEST

START_TEST(publish_once_whoever_does_it)
{
    struct xac_env *other = world_open(XAC_NONDURABLE);
    uint64_t serial;

    world_begin(env);
    must(world_write(env, 8));
    world_store(env, 8, 88);
    serial =
        xac_txn_serial(atomic_load_explicit(&env->ctx.txn->word, memory_order_relaxed));
    must_eq(xac_chain_publish(other, env->ctx.slot, serial), XAC_PUBLISH_GONE);
    must_eq(world_state(env), XAC_TXN_PENDING);
    must(world_committing(env));
    must_eq(xac_chain_publish(other, env->ctx.slot, serial + 1), XAC_PUBLISH_GONE);
    xac_reap_finish(other, env->ctx.slot, serial);
    must_eq(world_state(env), XAC_TXN_PUBLISHED);
    must_eq(xac_chain_publish(env, env->ctx.slot, serial), XAC_PUBLISH_DONE);
    must_eq(xac_chain_commit(env), 1);
    must_eq(world_value(other, 8, 1), 88);
    world_finish(env);
    must_eq(world_value(other, 8, 1), 88); /* its version slot is not given back */
    must_eq(xac_chain_publish(other, env->ctx.slot, serial), XAC_PUBLISH_GONE);
    must_eq(xac_env_close(other), 0);
}
END_TEST

struct publisher {
    uint64_t page_no;
    uint64_t *number_of; /* shared: by number, page published there */
};

static void
publish_many(void *arg)
{
    const struct publisher *p = arg;
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    for (uint64_t i = 1; i <= 3000; i++) {
        uint64_t n = world_put(mine, p->page_no, i);

        must(n != 0 && p->number_of[n] == 0);
        p->number_of[n] = p->page_no;
        must_eq(world_value(mine, p->page_no, n), i);
        (void)xac_gc(mine);
    }
    must_eq(xac_env_close(mine), 0);
}

START_TEST(give_each_number_once_to_racing_processes)
{
    struct publisher p[3];
    pid_t pid[3];
    uint64_t *number_of = proc_shared(20000 * sizeof *number_of);

    for (uint64_t i = 0; i < 3; i++) {
        p[i] = (struct publisher){.page_no = i + 1, .number_of = number_of};
        pid[i] = proc_spawn(publish_many, &p[i]);
    }
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    must_eq(xac_chain_commit(env), 9000);
    for (uint64_t n = 1; n <= 9000; n++)
        must(number_of[n] != 0);
    must_eq(number_of[9001], 0);
}
END_TEST

/* ---- parents and the mark ------------------------------------------------------------------ */

START_TEST(begin_at_the_mark_or_above)
{
    struct xac_env *other = world_open(XAC_NONDURABLE);
    uint64_t start;

    for (uint64_t i = 1; i <= 10; i++)
        must_eq(world_put(env, 1, i), i);
    world_query(env);
    must_eq(parent_of(env), 10);
    for (uint64_t i = 11; i <= 20; i++)
        must_eq(world_put(other, 1, i), i);
    xac_gc_lock(other);
    must_eq(xac_gc_bound(other, &start), 10);
    must_eq(start, 10);
    must_eq(mark_now(), 10);
    world_finish(env);
    must_eq(xac_gc_bound(other, &start), 20);
    must_eq(start, 20);
    must_eq(mark_now(), 20);
    world_query(env);
    must(parent_of(env) >= mark_now());
    /* A parent below the mark, as a checkpoint's: the bound goes down, the mark not. */
    atomic_store_explicit(&env->ctx.txn->parent, 5, memory_order_relaxed);
    atomic_store_explicit(&env->ctx.txn->start, 4, memory_order_relaxed);
    must_eq(xac_gc_bound(other, &start), 5);
    must_eq(start, 4);
    must_eq(mark_now(), 20);
    xac_gc_unlock(other);
    world_finish(env);
    must_eq(xac_env_close(other), 0);
}
END_TEST

#ifdef XAC_DEBUG
static struct xac_env *late;
static unsigned n_marks;

/* begin_late -- a query that read C before the mark was raised, and is in its slot only now. */
static void
begin_late(const char *name)
{
    if (strcmp(name, "gc mark") != 0)
        return;
    n_marks++;
    world_query(late);
    atomic_store_explicit(&late->ctx.txn->parent, 1, memory_order_relaxed);
}

/* The bound, and what must be kept. */
START_TEST(see_a_parent_that_came_before_the_mark)
{
    struct xac_needs needs;

    late = world_open(XAC_NONDURABLE);
    for (uint64_t i = 1; i <= 3; i++)
        must_eq(world_put(env, 1, i), i);
    xac_gc_lock(env);
    xac_kill_hook = begin_late;
    if (_i == 0) {
        must_eq(xac_gc_bound(env, NULL), 1);
    } else {
        xac_gc_needs(env, &needs);
        must_eq(needs.upper, 3);
        must_eq(needs.n_points, 1);
        must_eq(needs.point[0], 1);
    }
    xac_kill_hook = NULL;
    must_eq(n_marks, 1);
    xac_gc_unlock(env);
    world_finish(late);
    must_eq(xac_env_close(late), 0);
}
END_TEST
#endif /* XAC_DEBUG */

static _Atomic uint64_t *stop;

static void
raise_the_mark(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    for (uint64_t i = 0; word_load(stop) == 0; i++) {
        (void)world_put(mine, mine->self, i);
        xac_gc_lock(mine);
        (void)xac_gc_bound(mine, NULL);
        xac_gc_unlock(mine);
        (void)xac_gc(mine);
    }
    must_eq(xac_env_close(mine), 0);
}

START_TEST(see_no_parent_below_the_mark)
{
    pid_t pid[2];

    stop = proc_shared(sizeof *stop);
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(raise_the_mark, NULL);
    for (int i = 0; i < 30000; i++) {
        world_begin(env);
        xac_gc_lock(env);
        /* Nobody else raises it now, and we have held it since we began. */
        must(mark_now() <= parent_of(env));
        xac_gc_unlock(env);
        world_finish(env);
    }
    word_store(stop, 1);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
}
END_TEST

/* ---- gc against a model -------------------------------------------------------------- */

#define PAGES   40u
#define COMMITS 3000u
#define READERS 5

static uint64_t value[COMMITS + 1][PAGES];

static void
commit_at_random(uint64_t *seed, uint64_t most)
{
    uint64_t c = xac_chain_commit(env) + 1;

    memcpy(value[c], value[c - 1], sizeof value[c]);
    world_begin(env);
    for (uint64_t i = 0, n = rnd_below(seed, most); i <= n; i++) {
        uint64_t p = rnd_below(seed, PAGES);

        must(world_write(env, p));
        value[c][p] = rnd_next(seed) | 1;
        world_store(env, p, value[c][p]);
    }
    must_eq(world_commit(env), c);
}

/* last_change -- number that a page's value as of c comes from, 0 if from none. */
static uint64_t
last_change(uint64_t p, uint64_t c)
{
    while (c > 0 && value[c][p] == value[c - 1][p])
        c--;
    return c;
}

/*
 * versions_needed -- what must be kept: all above the parent of the oldest transaction,
 * what that shows, and what each query shows; readers with parent `but` do not count.
 */
static uint64_t
versions_needed(struct xac_env *const *reader, uint64_t but)
{
    uint64_t upper = xac_chain_commit(env), n = 0;

    for (int r = 0; r < READERS; r++) {
        if (world_state(reader[r]) == XAC_TXN_PENDING && parent_of(reader[r]) != but
            && parent_of(reader[r]) < upper)
            upper = parent_of(reader[r]);
    }
    for (uint64_t p = 0; p < PAGES; p++) {
        uint64_t seen[READERS + 1] = {last_change(p, upper)};

        for (uint64_t c = upper + 1; c <= xac_chain_commit(env); c++)
            n += value[c][p] != value[c - 1][p];
        n += seen[0] != 0;
        for (int r = 0; r < READERS; r++) {
            bool is_new =
                world_state(reader[r]) == XAC_TXN_QUERY && parent_of(reader[r]) != but;

            if (is_new)
                seen[r + 1] = last_change(p, parent_of(reader[r]));
            for (int k = 0; k <= r && is_new; k++)
                is_new = seen[k] != seen[r + 1];
            n += is_new && seen[r + 1] != 0 && seen[r + 1] <= upper;
        }
    }
    return n;
}

static void
readers_see_theirs(struct xac_env *const *reader)
{
    for (int r = 0; r < READERS; r++) {
        uint64_t parent;

        if (world_state(reader[r]) == XAC_TXN_IDLE)
            continue;
        parent = parent_of(reader[r]);
        for (uint64_t p = 0; p < PAGES; p++)
            must_eq(world_value(reader[r], p, parent), value[parent][p]);
    }
}

/* versions_newest -- what must be kept when nobody reads. */
static uint64_t
versions_newest(void)
{
    uint64_t n = 0;

    for (uint64_t p = 0; p < PAGES; p++)
        n += last_change(p, xac_chain_commit(env)) != 0;
    return n;
}

/* The oldest reader is named, and what is kept for all and for it alone is counted. */
static void
oldest_is_told(struct xac_env *const *reader)
{
    struct xac_oldest o;
    uint64_t parent = UINT64_MAX, needed = versions_needed(reader, UINT64_MAX);

    for (int r = 0; r < READERS; r++) {
        if (world_state(reader[r]) != XAC_TXN_IDLE && parent_of(reader[r]) < parent)
            parent = parent_of(reader[r]);
    }
    xac_gc_oldest(env, &o);
    if (parent == UINT64_MAX) {
        must_eq(o.pid, 0);
        must_eq(o.parent, 0);
        parent = xac_chain_commit(env);
    } else {
        must_eq(o.pid, getpid());
        must_eq(o.parent, parent);
        must(o.age_ns < UINT64_C(100000000000));
    }
    must_eq(o.behind, xac_chain_commit(env) - parent);
    must_eq(o.n_held, needed - versions_newest());
    must_eq(o.n_held_own, needed - versions_needed(reader, parent));
}

/* sweep_all -- now, not when it is worth it. */
static void
sweep_all(void)
{
    struct xac_needs needs;

    xac_gc_lock(env);
    xac_gc_needs(env, &needs);
    xac_version_sweep_for(env, &needs, 0);
    xac_gc_unlock(env);
}

/* change_reader -- a transaction or a query ends, or begins. */
static void
change_reader(struct xac_env *r, uint64_t *seed)
{
    if (world_state(r) != XAC_TXN_IDLE)
        world_finish(r);
    else if (rnd_below(seed, 4) == 0)
        world_begin(r);
    else
        world_query(r);
}

START_TEST(keep_exactly_what_is_seen)
{
    struct xac_env *reader[READERS];
    uint64_t seed = env_seed();

    for (int r = 0; r < READERS; r++)
        reader[r] = world_open(XAC_NONDURABLE);
    while (xac_chain_commit(env) < COMMITS - 1) {
        commit_at_random(&seed, rnd_below(&seed, 40) == 0 ? PAGES : 4);
        if (rnd_below(&seed, 20) == 0)
            change_reader(reader[rnd_below(&seed, READERS)], &seed);
        (void)xac_gc(env);
        if (xac_chain_commit(env) % 8 != 0)
            continue;
        readers_see_theirs(reader);
        must(world_vslots(env, XAC_VSLOT_VERSION) >= versions_needed(reader, UINT64_MAX));
        if (rnd_below(&seed, 4) == 0) {
            sweep_all();
            must_eq(world_vslots(env, XAC_VSLOT_VERSION),
                    versions_needed(reader, UINT64_MAX));
            oldest_is_told(reader);
            readers_see_theirs(reader);
        }
    }
    for (int r = 0; r < READERS; r++) {
        if (world_state(reader[r]) != XAC_TXN_IDLE)
            world_finish(reader[r]);
        must_eq(xac_env_close(reader[r]), 0);
    }
}
END_TEST

START_TEST(hold_back_little_for_long_queries)
{
    struct xac_env *reader = world_open(XAC_NONDURABLE);

    for (uint64_t i = 1; i <= 5; i++)
        (void)world_put(env, 1, i);
    world_query(reader);
    for (uint64_t i = 0; i < 400; i++) {
        (void)world_put(env, 1 + i % 3, 100 + i);
        (void)xac_gc(env);
    }
    must(world_vslots(env, XAC_VSLOT_VERSION) < 20);
    must_eq(world_value(reader, 1, parent_of(reader)), 5);
    must_eq(world_value(reader, 2, parent_of(reader)), 0);
    world_finish(reader);
    must_eq(xac_env_close(reader), 0);
}
END_TEST

/* What a checkpoint has copied to the file stays for those that began before. */
START_TEST(tell_what_is_in_limbo_for_a_query)
{
    struct xac_env *reader = world_open(XAC_NONDURABLE);
    struct xac_oldest o;

    for (uint64_t i = 1; i <= 7; i++)
        must_eq(world_put(env, i, i), i);
    world_query(reader);
    xac_gc_oldest(env, &o);
    must_eq(o.n_held, 0);
    must_eq(xac_checkpoint_run(env, false), 0);
    must_eq(world_vslots(env, XAC_VSLOT_LIMBO), 7);
    xac_gc_oldest(env, &o);
    must_eq(o.parent, 7);
    must_eq(o.n_held, 7);
    must_eq(o.n_held_own, 7);
    world_finish(reader);
    xac_gc_oldest(env, &o);
    must_eq(o.pid, 0);
    must_eq(o.n_held, 0);
    must_eq(xac_env_close(reader), 0);
}
END_TEST

/*
 * gc_by_parts -- run gc until so many versions are left, with `between` commits to page 2 before each
 * run: each run does a bounded part, and they keep up.
 */
static void
gc_by_parts(uint64_t goal, uint64_t between)
{
    const struct xac_chain *c = &env->ctl->chain;
    uint64_t had = world_vslots(env, XAC_VSLOT_VERSION), runs = 0;
    /* Two sweeps look at each, and it is freed once. */
    uint64_t runs_max = 3 * env->ctl->versions.slots.count / XAC_GC_WORK + 2;

    while (world_vslots(env, XAC_VSLOT_VERSION) > goal || c->sweep_next != 0
           || world_vslots(env, XAC_VSLOT_LIMBO) > 0) {
        uint64_t was, from = c->sweep_next, left;

        for (uint64_t i = 0; i < between; i++)
            (void)world_put(env, 2, 7);
        was = world_vslots(env, XAC_VSLOT_VERSION);
        (void)xac_gc(env);
        left = world_vslots(env, XAC_VSLOT_VERSION);
        must(was - left <= 2 * XAC_GC_WORK + 4 * between);
        must(c->sweep_next == 0
             || c->sweep_next + was - left <= from + 2 * XAC_GC_WORK + 4 * between);
        must(left <= had + had / 2);
        must(runs++ < runs_max);
    }
}

START_TEST(gc_when_the_ring_is_overrun)
{
    struct xac_env *reader = world_open(XAC_NONDURABLE);

    must_eq(world_put(env, 2, 22), 1);
    world_begin(reader);
    while (xac_chain_commit(env) < 2 * XAC_RING_ENTRIES + 5)
        (void)world_put(env, 3 + xac_chain_commit(env) % 5, 7);
    (void)xac_gc(env);
    must(world_vslots(env, XAC_VSLOT_VERSION) > 2 * XAC_RING_ENTRIES);
    world_finish(reader);
    while (xac_chain_commit(env) % 8 != 0)
        (void)world_put(env, 3, 7);
    gc_by_parts(6, 0);
    must_eq(world_value(env, 2, xac_chain_commit(env)), 22);
    must_eq(xac_env_close(reader), 0);
}
END_TEST

/* A page that is written all the time has a long list, which no run walks or frees in one piece. */
START_TEST(gc_by_parts_while_others_commit)
{
    struct xac_env *reader = world_open(XAC_NONDURABLE);

    world_begin(reader);
    while (xac_chain_commit(env) < 20 * XAC_GC_WORK)
        (void)world_put(env, xac_chain_commit(env) % 4 == 0 ? 3 : 2, 7);
    world_finish(reader);
    gc_by_parts(2, 4 * XAC_GC_EVERY); /* others, too, do not each run gc */
    must_eq(xac_env_close(reader), 0);
}
END_TEST

/* What a transaction or a query holds back is not looked at again and again. */
START_TEST(gc_looks_at_nothing_while_it_is_held_back)
{
    struct xac_env *reader = world_open(XAC_NONDURABLE);

    for (uint64_t p = 0; p < 100; p++)
        (void)world_put(env, p, 7);
    if (_i == 0)
        world_begin(reader);
    else
        world_query(reader);
    must_eq(xac_checkpoint_run(env, false), 0); /* into limbo */
    while (xac_chain_commit(env) < 4 * XAC_RING_ENTRIES) {
        (void)world_put(env, xac_chain_commit(env) % 200, 8);
        (void)xac_gc(env);
        must_eq(env->ctl->chain.sweep_next, 0);
    }
    world_finish(reader);
    gc_by_parts(200, 0);
    must_eq(world_vslots(env, XAC_VSLOT_LIMBO), 0);
    must_eq(xac_env_close(reader), 0);
}
END_TEST

/* ---- the dead ------------------------------------------------------------------------------ */

static void
die_committing(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    world_begin(mine);
    must(world_write(mine, 1) && world_write(mine, 2));
    world_store(mine, 1, 111);
    world_store(mine, 2, 222);
    must(world_committing(mine));
    kill(getpid(), SIGKILL);
}

START_TEST(publish_for_the_dead)
{
    must_eq(world_put(env, 1, 1), 1);
    (void)proc_wait(proc_spawn(die_committing, NULL));
    must_eq(world_value(env, 1, xac_chain_commit(env)), 1);
    xac_reap_dead(env);
    must_eq(xac_chain_commit(env), 2);
    must_eq(world_value(env, 1, 2), 111);
    must_eq(world_value(env, 2, 2), 222);
    xac_reap_dead(env);
    must_eq(xac_chain_commit(env), 2);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 0);
}
END_TEST

/* Others may have published since the dead was validated, so nobody publishes for it. */
START_TEST(fail_the_dead_that_decided_at_its_end)
{
    must_eq(world_put(env, 1, 1), 1);
    (void)proc_wait(proc_spawn(die_committing, NULL));
    env->policy = xac_policy_of(_i == 0 ? XAC_POLICY_OPTIMISTIC : XAC_POLICY_SERIAL);
    xac_reap_dead(env);
    must_eq(xac_chain_commit(env), 1);
    must_eq(world_value(env, 1, 1), 1);
    must_eq(world_value(env, 2, 1), 0);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 0);
}
END_TEST

static void
die_in_gc(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    xac_gc_lock(mine);
    /* Cut, and not given back. */
    atomic_store_explicit(&xac_vslot_at(mine,
                                        atomic_load_explicit(&world_page(mine, 1)->head,
                                                             memory_order_relaxed))
                               ->next,
                          0, memory_order_release);
    kill(getpid(), SIGKILL);
}

START_TEST(free_what_a_dead_gc_cut)
{
    for (uint64_t i = 1; i <= 5; i++)
        must_eq(world_put(env, 1, i), i);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 5);
    (void)proc_wait(proc_spawn(die_in_gc, NULL));
    xac_gc_lock(env);
    xac_gc_unlock(env);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 1);
    must_eq(world_value(env, 1, 5), 5);
    xac_reap_dead(env);
}
END_TEST

#ifdef XAC_DEBUG

static void
die_published(const char *name)
{
    if (strcmp(name, "g state") == 0)
        kill(getpid(), SIGKILL);
}

static void
die_publishing(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    *(uint64_t *)arg = mine->ctx.slot;
    xac_kill_hook = die_published;
    (void)world_put(mine, 1, 11);
}

/* `publishing` still names the slot of the dead when it is cleaned up and used again. */
START_TEST(redo_nothing_in_a_slot_that_was_reused)
{
    uint64_t *slot = proc_shared(sizeof *slot);
    struct xac_env *heir;

    (void)proc_wait(proc_spawn(die_publishing, slot));
    xac_reap_dead(env);
    heir = world_open(XAC_NONDURABLE);
    must_eq(heir->ctx.slot, *slot);
    world_begin(heir);
    must(world_write(heir, 7));
    world_store(heir, 7, 77);
    must_eq(world_put(env, 2, 22), 2);
    must_eq(world_value(env, 1, 2), 11);
    must_eq(world_value(env, 2, 2), 22);
    must_eq(world_value(env, 7, 2), 0); /* nobody has committed that */
    must_eq(world_state(heir), XAC_TXN_PENDING);
    must_eq(world_commit(heir), 3);
    must_eq(world_value(env, 7, 3), 77);
    must_eq(xac_env_close(heir), 0);
}
END_TEST

#endif

int
main(void)
{
    Suite *s = suite_create("ctree");
    TCase *tc = env_tcase(s, "ctree", 60);

    tcase_add_checked_fixture(tc, open_world, NULL);
    tcase_add_test(tc, number_commits_one_by_one);
    tcase_add_test(tc, name_pages_in_the_ring_or_say_all);
    tcase_add_test(tc, name_lines_of_the_first_pages);
    tcase_add_test(tc, publish_once_whoever_does_it);
    tcase_add_test(tc, give_each_number_once_to_racing_processes);
    tcase_add_test(tc, begin_at_the_mark_or_above);
    tcase_add_test(tc, see_no_parent_below_the_mark);
    tcase_add_test(tc, keep_exactly_what_is_seen);
    tcase_add_test(tc, hold_back_little_for_long_queries);
    tcase_add_test(tc, tell_what_is_in_limbo_for_a_query);
    tcase_add_test(tc, gc_when_the_ring_is_overrun);
    tcase_add_test(tc, gc_by_parts_while_others_commit);
    tcase_add_loop_test(tc, gc_looks_at_nothing_while_it_is_held_back, 0, 2);
    tcase_add_test(tc, publish_for_the_dead);
    tcase_add_loop_test(tc, fail_the_dead_that_decided_at_its_end, 0, 2);
    tcase_add_test(tc, free_what_a_dead_gc_cut);
#ifdef XAC_DEBUG
    tcase_add_loop_test(tc, see_a_parent_that_came_before_the_mark, 0, 2);
    tcase_add_test(tc, redo_nothing_in_a_slot_that_was_reused);
#endif
    return env_main(s);
}
