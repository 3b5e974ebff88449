/* SPDX-License-Identifier: MIT */
/*
 * check_tree.c -- trees over frames under load: contents against a model, the invariants after
 * it, and that nothing ever hangs.
 *
 * Small pages and long keys make high trees, small pools make evictions.  Each thread owns the keys
 * that are its number modulo the threads, so that it knows what must be there.
 */
#include <config.h>

#include "swz.h"

#define N_KEYS   4096u /* of each thread */
#define KEY_LONG 200u  /* 2 KiB pages: about 9 children */

static struct swz_space *space;
static unsigned n_threads;
static uint64_t n_ops;
static _Atomic uint64_t progress;

/* mixed -- inserts, deletes, look-ups by one thread of its own keys. */
static void
mixed(unsigned number)
{
    unsigned char *is_there = calloc(N_KEYS, 1);
    uint64_t seed = env_seed() + number;
    struct swz_thread *th;

    must(is_there != NULL);
    must_ok(swz_join(space, &th));
    for (uint64_t i = 0; i < n_ops; i++) {
        uint64_t r = mix(&seed), which = r % N_KEYS, key = which * n_threads + number;
        /* Grows, then shrinks, so that nodes merge too. */
        bool grows = i * 3 < n_ops * 2 ? (r >> 32) % 4 != 0 : (r >> 32) % 4 == 0;

        if ((r >> 40) % 3 == 0) {
            must_rc(get(th, 0, key), is_there[which] ? 0 : ENOENT);
        } else if (grows) {
            must_ok(put(th, 0, key));
            is_there[which] = 1;
        } else {
            must_rc(take(th, 0, key), is_there[which] ? 0 : ENOENT);
            is_there[which] = 0;
        }
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    }
    for (uint64_t which = 0; which < N_KEYS; which++)
        must_rc(get(th, 0, which * n_threads + number), is_there[which] ? 0 : ENOENT);
    swz_leave(th);
    free(is_there);
}

static void
mixed_run(struct swz_config config, unsigned threads, uint64_t ops)
{
    struct swz_thread *th;
    struct swz_stats stats;

    config.n_pages = 1 << 16;
    config.n_threads = threads + 1;
    config.page_bytes = 2048;
    space = space_of(config, KEY_LONG, 16, &th);
    n_threads = threads;
    n_ops = ops;
    crew_run(threads, mixed);
    must(height_of(space, 0) >= 4);
    stats = stats_of(space);
    must(stats.structural > 100);
    must(config.is_plain ? stats.swizzles == 0 : stats.swizzles > 100);
    must(config.n_frames > 1000 || stats.misses > 1000);
    must_be_whole(space);
    swz_leave(th);
    must_ok(swz_close(space));
}

/* C15, C13: every policy, 64 frames and enough frames, one thread and four. */
START_TEST(mixed_operations_equal_a_model)
{
    uint64_t ops = env_number("XAC_OPS", 40000);

    mixed_run((struct swz_config){.n_frames = 64}, 1, ops);
    mixed_run((struct swz_config){.n_frames = 64, .is_plain = true}, 1, ops);
    mixed_run((struct swz_config){.n_frames = 4096}, 4, ops / 4);
    mixed_run((struct swz_config){.n_frames = 96}, 4, ops / 4);
}
END_TEST

START_TEST(every_policy_serves_trees)
{
    uint64_t ops = env_number("XAC_OPS", 40000) / 8;

    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++)
        mixed_run((struct swz_config){.n_frames = 96, .policy = policy}, 4, ops / 4);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tree");
    TCase *tc = env_tcase(s, "tree", 120);

    tcase_add_test(tc, mixed_operations_equal_a_model);
    tcase_add_test(tc, every_policy_serves_trees);
    return env_main(s);
}
