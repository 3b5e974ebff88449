/* SPDX-License-Identifier: MIT */
/*
 * check_version.c -- the version store: version slots are given to one at a time, lists are
 * sorted and right for every parent, cutting, unlinking and sweeping against a model,
 * growth, the second buffer file.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "store/version.h"
#include "txn/reap.h"
#include "txn/ctree.h"

static struct xac_env *env;

static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
}

static uint64_t
used(void)
{
    return atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
}

static uint64_t
frames_there(void)
{
    return atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire);
}

/* ---- version slots ------------------------------------------------------------------------------ */

/* take_and_give -- as many processes do at once; a version slot held is nobody else's. */
static void
take_and_give(void *arg)
{
    uint64_t seed = env_seed() + *(uint64_t *)arg;
    uint64_t held[40] = {0};
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    for (int i = 0; i < 20000; i++) {
        uint64_t *f = &held[rnd_below(&seed, 40)];
        uint64_t *bytes;

        if (*f == 0) {
            must_eq(xac_version_take(mine, mine->ctx.slot, f), 0);
            bytes = (uint64_t *)(void *)xac_version_bytes(mine, *f);
            bytes[0] = bytes[511] = mine->self + 1;
            continue;
        }
        bytes = (uint64_t *)(void *)xac_version_bytes(mine, *f);
        must_eq(bytes[0], mine->self + 1);
        must_eq(bytes[511], mine->self + 1);
        must_eq(atomic_load_explicit(&xac_vslot_at(mine, *f)->word, memory_order_relaxed),
                xac_vslot_word(XAC_VSLOT_TAKEN, mine->ctx.slot));
        xac_version_give_back(mine, *f);
        *f = 0;
    }
    if (*(uint64_t *)arg == 0)
        kill(getpid(), SIGKILL);
    for (int i = 0; i < 40; i++) {
        if (held[i] != 0)
            xac_version_give_back(mine, held[i]);
    }
    must_eq(xac_env_close(mine), 0);
}

START_TEST(give_each_frame_to_one)
{
    static uint64_t number[4] = {1, 2, 3, 0};
    pid_t pid[4];

    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(take_and_give, &number[i]);
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    (void)proc_wait(pid[3]); /* killed itself, holding some */
    must(world_vslots(env, XAC_VSLOT_TAKEN) <= 40);
    xac_reap_dead(env);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 0);
    must(frames_there() <= 256); /* never more than 160 were wanted */
}
END_TEST

START_TEST(double_when_there_are_too_few)
{
    static uint64_t vslot[3000];
    static bool is_taken[20000];

    for (int i = 0; i < 3000; i++) {
        must_eq(xac_version_take(env, env->ctx.slot, &vslot[i]), 0);
        must(!is_taken[vslot[i]]);
        is_taken[vslot[i]] = true;
        memset(xac_version_bytes(env, vslot[i]), i, env->page_size);
    }
    must_eq(used(), 3000);
    must_eq(frames_there(), 4096);
    for (int i = 0; i < 3000; i++) {
        must_eq(xac_version_bytes(env, vslot[i])[env->page_size - 1], (uint8_t)i);
        xac_version_give_back(env, vslot[i]);
    }
    must_eq(used(), 0);
    must_eq(world_vslots(env, XAC_VSLOT_FREE), 4096);
}
END_TEST

static int (*real_fallocate)(int fd, int mode, off_t offset, off_t length);
static int full_fd = -1;
static int full_error = ENOSPC;

static int
full_fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (fd == full_fd) {
        errno = full_error;
        return -1;
    }
    return real_fallocate(fd, mode, offset, length);
}

static void
make_full(int fd)
{
    real_fallocate = real_fallocate == NULL ? xac_sys.fallocate : real_fallocate;
    xac_sys.fallocate = full_fallocate;
    full_fd = fd;
}

/* Bytes of a version slot as another process sees them. */
static void
must_see_marks(void *arg)
{
    const uint64_t *vslot = arg;
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    for (int i = 0; i < 1000; i++) {
        const uint8_t *bytes = xac_version_bytes(mine, vslot[i]);

        must(bytes != NULL);
        must_eq(bytes[0], (uint8_t)(i * 3));
        must_eq(bytes[env->page_size - 1], (uint8_t)(i * 3));
    }
    must_eq(xac_env_close(mine), 0);
}

START_TEST(spill_to_the_second_file)
{
    static uint64_t vslot[1000];

    for (int i = 0; i < 1000; i++) {
        if (i == 150)
            make_full(env->buffers.fd[0]);
        must_eq(xac_version_take(env, env->ctx.slot, &vslot[i]), 0);
        memset(xac_version_bytes(env, vslot[i]), i * 3, env->page_size);
    }
    must_eq(atomic_load_explicit(&env->ctl->versions.spill, memory_order_relaxed), 257);
    proc_run(must_see_marks, vslot);
    for (int i = 0; i < 1000; i++)
        must_eq(xac_version_bytes(env, vslot[i])[0], (uint8_t)(i * 3));
}
END_TEST

START_TEST(use_up_what_there_is_when_both_are_full)
{
    static uint64_t vslot[300];
    int n = 0, rc = 0;

    must_eq(xac_version_take(env, env->ctx.slot, &vslot[n++]), 0);
    make_full(env->buffers.fd[0]);
    full_error = EBADF; /* this process has lost it: no reason for all to spill */
    while (n < 300 && (rc = xac_version_take(env, env->ctx.slot, &vslot[n])) == 0)
        n++;
    must_eq(n, 256);
    must_eq(rc, EBADF);
    xac_version_give_back(env, vslot[17]);
    must_eq(xac_version_take(env, env->ctx.slot, &vslot[17]), 0);
    full_fd = -1;
    must_eq(xac_version_take(env, env->ctx.slot, &vslot[256]), 0);
}
END_TEST

/* ---- lists against a model --------------------------------------------------------------- */

#define PAGES   7u
#define COMMITS 400u

/* value[c][p]: what page p holds as of commit c. */
static uint64_t value[COMMITS + 1][PAGES];

static void
commit_at_random(uint64_t *seed)
{
    uint64_t c = xac_chain_commit(env) + 1;

    memcpy(value[c], value[c - 1], sizeof value[c]);
    world_begin(env);
    for (uint64_t i = 0; i <= rnd_below(seed, 3); i++) {
        uint64_t p = rnd_below(seed, PAGES);

        must(world_write(env, p));
        value[c][p] = rnd_next(seed) | 1;
        world_store(env, p, value[c][p]);
    }
    must_eq(world_commit(env), c);
}

static void
must_be_as_modelled(uint64_t bound)
{
    uint64_t commits[COMMITS];

    for (uint64_t p = 0; p < PAGES; p++) {
        (void)world_list(env, p, commits, COMMITS);
        for (uint64_t c = bound; c <= xac_chain_commit(env); c++)
            must_eq(world_value(env, p, c), value[c][p]);
    }
}

/* frames_needed -- versions that are the newest at or below the bound, or above it. */
static uint64_t
frames_needed(uint64_t bound)
{
    uint64_t n = 0;

    for (uint64_t p = 0; p < PAGES; p++) {
        for (uint64_t c = bound + 1; c <= xac_chain_commit(env); c++)
            n += value[c][p] != value[c - 1][p];
        n += value[bound][p] != 0;
    }
    return n;
}

START_TEST(find_the_version_of_every_parent)
{
    uint64_t seed = env_seed();

    for (uint64_t i = 0; i < COMMITS; i++)
        commit_at_random(&seed);
    must_be_as_modelled(0);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), frames_needed(0));
}
END_TEST

START_TEST(cut_and_sweep_what_nobody_sees)
{
    uint64_t seed = env_seed(), bound = 0;

    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 10; i++)
            commit_at_random(&seed);
        bound += rnd_below(&seed, xac_chain_commit(env) - bound + 1);
        xac_gc_lock(env);
        if (round % 2 == 0) {
            for (uint64_t p = 0; p < PAGES; p++)
                xac_version_cut(env, world_page(env, p), bound);
        } else {
            xac_version_sweep(env, bound, 0);
        }
        xac_gc_unlock(env);
        must_be_as_modelled(bound);
        must_eq(world_vslots(env, XAC_VSLOT_VERSION), frames_needed(bound));
        must_eq(used(), frames_needed(bound));
    }
}
END_TEST

START_TEST(unlink_into_limbo_until_settled)
{
    uint64_t seed = env_seed(), bound, kept = 0;

    for (int i = 0; i < 60; i++)
        commit_at_random(&seed);
    bound = 40;
    xac_gc_lock(env);
    xac_chain_lock(env);
    for (int again = 0; again < 2; again++) { /* may be repeated */
        for (uint64_t p = 0; p < PAGES; p++)
            xac_version_unlink(env, world_page(env, p), bound, 61);
    }
    xac_chain_unlock(env);
    for (uint64_t c = bound + 1; c <= 60; c++) {
        for (uint64_t p = 0; p < PAGES; p++)
            kept += value[c][p] != value[c - 1][p];
    }
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), kept);
    must(world_vslots(env, XAC_VSLOT_LIMBO) > 0);
    xac_version_sweep(env, bound, 60);
    must(world_vslots(env, XAC_VSLOT_LIMBO) > 0); /* a reader may stand on them */
    xac_version_sweep(env, bound, 61);
    must_eq(world_vslots(env, XAC_VSLOT_LIMBO), 0);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), kept);
    xac_gc_unlock(env);
    for (uint64_t p = 0; p < PAGES; p++) {
        uint64_t commits[COMMITS];
        unsigned n = world_list(env, p, commits, COMMITS);

        must(n == 0 || commits[n - 1] > bound);
        if (n > 0)
            must_eq(world_value(env, p, 60), value[60][p]);
    }
}
END_TEST

START_TEST(sweep_up_after_the_dead)
{
    uint64_t vslot;

    /* Taken by a slot that is free by now. */
    must_eq(xac_version_take(env, env->ctx.slot, &vslot), 0);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 1);
    xac_gc_lock(env);
    xac_version_sweep(env, 0, 0);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 1); /* we live */
    xac_gc_unlock(env);
    xac_version_release(env, env->ctx.slot + 1);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 1);
    xac_version_release(env, env->ctx.slot);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 0);
    must_eq(used(), 0);
}
END_TEST

/* ---- participants with few addresses ------------------------------------------------------ */

START_TEST(grow_no_further_than_all_can_reach)
{
    uint64_t vslot;
    unsigned n = 0;

    must_eq(xac_version_take(env, env->ctx.slot, &vslot), 0);
    must_eq(frames_there(), 256);
    must_eq(xac_version_limit(env, 255), ENOMEM);
    must_eq(xac_version_limit(env, 300), 0);
    while (xac_version_take(env, env->ctx.slot, &vslot) == 0)
        n++;
    must_eq(n, 299);
    must_eq(frames_there(), 300);
    must_eq(xac_version_limit(env, xac_buffers_reach(env)), 0);
    must_eq(xac_version_take(env, env->ctx.slot, &vslot), 0);
    must_eq(frames_there(), 600);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* need terabytes */

/* limit_addresses -- be a process with an address space of so many bytes. */
static void
limit_addresses(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    xac_buffers_detach(env); /* of the parent, and terabytes */
    xac_shm_detach(&env->shm);
    must(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* join -- as a participant with an address space of so many bytes. */
static void
join(void *arg)
{
    struct xac_env *mine;

    limit_addresses(*(rlim_t *)arg);
    mine = world_open(XAC_NONDURABLE);
    must(mine->shm.reserve < *(rlim_t *)arg);
    must_eq(mine->ctl->versions.frames_max, xac_buffers_reach(mine));
    must(world_put(mine, 1, 5) > 0);
    must_eq(xac_env_close(mine), 0);
}

START_TEST(limit_goes_up_again_when_the_least_has_left)
{
    uint64_t reach = xac_buffers_reach(env);
    rlim_t few = (rlim_t)6 << 30;

    must_eq(env->ctl->versions.frames_max, reach);
    proc_run(join, &few);
    must_eq(env->ctl->versions.frames_max, reach);
}
END_TEST

/* be_refused -- the same, but that is too little. */
static void
be_refused(void *arg)
{
    limit_addresses(*(rlim_t *)arg);
    must_refuse(xac_init(ENV_DIR, XAC_NONDURABLE), ENOMEM);
    must(strstr(xac_last_error(), "ulimit -v") != NULL);
}

/* seem_to_have -- as if the store had grown so large: nobody looks at what is in the version slots. */
static void
seem_to_have(uint64_t n)
{
    struct xac_array *vslots = &env->ctl->versions.slots;

    for (uint64_t i = XAC_CONTROL_VSLOTS; i < n; i *= 2)
        must_eq(xac_array_reserve(&env->shm, vslots, i), 0);
    must_eq(xac_array_reserve(&env->shm, vslots, 0), 0);
    must(ftruncate(env->buffers.fd[0], (off_t)(n << env->page_shift)) == 0);
    atomic_store(&vslots->count, n);
}

START_TEST(refuse_who_cannot_reach_what_there_is)
{
    rlim_t few = (rlim_t)6 << 30, least = (rlim_t)512 << 20;
    _Atomic uint64_t *vslots = &env->ctl->versions.slots.count;
    _Atomic uint64_t *extent = &env->ctl->shm.extent;
    uint64_t n = frames_there(), was = atomic_load(extent);

    proc_run(be_refused, &least);
    seem_to_have(few >> env->page_shift);
    proc_run(be_refused, &few);
    atomic_store(vslots, n);
    was = (was & ~(uint64_t)UINT32_MAX) | (atomic_load(extent) & UINT32_MAX);
    must(ftruncate(env->shm.fd, (off_t)few) == 0);
    atomic_store(extent, (was & ~(uint64_t)UINT32_MAX) | few >> 20);
    proc_run(be_refused, &few);
    atomic_store(extent, was);
    proc_run(join, &few);
}
END_TEST

#endif

/* ---- in the middle (debug builds) --------------------------------------------------------- */

#ifdef XAC_DEBUG

static uint64_t taken_in_sweep[5];

static void
take_some(const char *name)
{
    if (strcmp(name, "sweep") != 0)
        return;
    xac_kill_hook = NULL;
    for (int i = 0; i < 5; i++)
        must_eq(xac_version_take(env, env->ctx.slot, &taken_in_sweep[i]), 0);
}

START_TEST(count_right_when_others_take_during_a_sweep)
{
    uint64_t vslot;

    must_eq(world_put(env, 1, 1), 1);
    xac_gc_lock(env);
    xac_kill_hook = take_some;
    xac_version_sweep(env, 0, 0);
    xac_gc_unlock(env);
    for (int i = 0; i < 5; i++)
        xac_version_give_back(env, taken_in_sweep[i]);
    must(used() <= 6); /* exact again after the next sweep */
    for (int i = 0; i < 20; i++) {
        must_eq(xac_version_take(env, env->ctx.slot, &vslot), 0);
        xac_version_give_back(env, vslot);
    }
    must_eq(frames_there(), 256); /* 2 version slots in use: no reason to grow */
}
END_TEST

static const char *deadly;

static void
die_there(const char *name)
{
    if (strcmp(name, deadly) == 0)
        kill(getpid(), SIGKILL);
}

static void
checkpoint_and_die(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    deadly = arg;
    xac_kill_hook = die_there;
    (void)xac_checkpoint_run(mine, false);
}

/* A reader may be copying from a version slot that a checkpoint takes out and dies. */
START_TEST(keep_frames_of_a_checkpoint_that_died)
{
    static const char *const points[] = {"s",      "s limbo", "s unlinked",
                                         "s page", "s ring",  "s number"};
    char point[16];
    uint64_t commit, vslot, goal = 0;

    must(world_put(env, 3, 33) > 0);
    world_query(env); /* the reader */
    vslot = xac_version_find(env, world_page(env, 3), xac_chain_commit(env), &commit);
    must(vslot != 0);
    strncpy(point, points[_i], sizeof point - 1);
    point[sizeof point - 1] = '\0';
    (void)proc_wait(proc_spawn(checkpoint_and_die, point));
    xac_gc_lock(env); /* sweeps, for its holder has died */
    xac_gc_unlock(env);
    xac_chain_lock(env);
    xac_chain_unlock(env);
    xac_reap_dead(env);
    xac_gc_lock(env);
    xac_version_sweep(env, xac_gc_bound(env, NULL), env->ctl->chain.settled);
    (void)xac_gc_settle(env, true, &goal);
    xac_gc_unlock(env);
    must(xac_vslot_state(
             atomic_load_explicit(&xac_vslot_at(env, vslot)->word, memory_order_relaxed))
         != XAC_VSLOT_FREE);
    must_eq(*(uint64_t *)(void *)xac_version_bytes(env, vslot), 33);
    world_finish(env);
    must_eq(xac_checkpoint_run(env, false), 0);
    xac_gc_lock(env);
    xac_version_sweep(env, xac_gc_bound(env, NULL), xac_chain_commit(env));
    xac_gc_unlock(env);
    must_eq(world_vslots(env, XAC_VSLOT_LIMBO), 0);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 0);
    must_eq(file_u64(ENV_FILE, 3 * env->page_size), 33);
}
END_TEST

#endif

int
main(void)
{
    Suite *s = suite_create("version");
    TCase *tc = env_tcase(s, "version", 60);

    tcase_add_checked_fixture(tc, open_world, NULL);
    tcase_add_test(tc, give_each_frame_to_one);
    tcase_add_test(tc, double_when_there_are_too_few);
    tcase_add_test(tc, spill_to_the_second_file);
    tcase_add_test(tc, use_up_what_there_is_when_both_are_full);
    tcase_add_test(tc, find_the_version_of_every_parent);
    tcase_add_test(tc, cut_and_sweep_what_nobody_sees);
    tcase_add_test(tc, unlink_into_limbo_until_settled);
    tcase_add_test(tc, sweep_up_after_the_dead);
    tcase_add_test(tc, grow_no_further_than_all_can_reach);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_test(tc, limit_goes_up_again_when_the_least_has_left);
    tcase_add_test(tc, refuse_who_cannot_reach_what_there_is);
#endif
#ifdef XAC_DEBUG
    tcase_add_test(tc, count_right_when_others_take_during_a_sweep);
    tcase_add_loop_test(tc, keep_frames_of_a_checkpoint_that_died, 0, 6);
#endif
    return env_main(s);
}
