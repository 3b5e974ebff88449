/* SPDX-License-Identifier: MIT */
/*
 * check_liveness.c -- trees over frames with few frames: they go on, or say ENOBUFS, and never
 * stand still; and what the second look at a reference is for.
 */
#include <config.h>

#include <unistd.h>

#include "swz.h"

#define KEY_LONG 200u /* 2 KiB pages: about 9 children */

static struct swz_space *space;
static unsigned n_threads;
static _Atomic uint64_t progress;
static _Atomic bool stop;

static uint64_t n_built;

/* Has what the test is for happened?  NULL: nothing has to. */
typedef bool seen_fn(void);
static seen_fn *is_seen;

static bool may_be_full; /* ENOBUFS is right */

static void
reader(unsigned number)
{
    uint64_t seed = env_seed() + number;
    struct swz_thread *th;

    must_ok(swz_join(space, &th));
    while (!atomic_load(&stop)) {
        int rc = get(th, 0, mix(&seed) % n_built);

        must(rc == 0 || (may_be_full && rc == ENOBUFS));
        atomic_fetch_add_explicit(&progress, rc == 0, memory_order_relaxed);
    }
    swz_leave(th);
}

/* watch_crew -- progress in every window; not a measurement: a hang is for ever.  On a slow machine there
   are more windows, until the test has something to look at. */
static void
watch_crew(unsigned number)
{
    uint64_t seen;

    if (number < n_threads) {
        reader(number);
        return;
    }
    for (uint64_t i = 0;
         i < env_number("XAC_WINDOWS", 2) || (is_seen != NULL && !is_seen()); i++) {
        seen = atomic_load(&progress);
        proc_await(&progress, seen + 1, 60);
        proc_sleep_us(30000);
    }
    atomic_store(&stop, true);
}

/* build -- keys in order until the tree is so high and has so many leaves, at least. */
static void
build(struct swz_config config, uint32_t key_size, uint32_t value_size, unsigned height,
      uint64_t n, struct swz_thread **thp)
{
    config.n_pages = 1 << 16;
    config.page_bytes = 2048;
    config.n_threads = 10;
    space = space_of(config, key_size, value_size, thp);
    for (n_built = 0; height_of(space, 0) < height || n_built < n; n_built++)
        must_ok(put(*thp, 0, n_built));
    must_eq(height_of(space, 0), height);
    must_ok(swz_checkpoint(space));
}

/* build_of -- height 2: 100 leaves below the root; height 3: some 80, and 9 above them. */
static void
build_of(struct swz_config config, unsigned height, struct swz_thread **thp)
{
    if (height == 2)
        build(config, 8, 500, 2, 300, thp);
    else
        build(config, KEY_LONG, 16, 3, 650, thp);
}

static bool
are_missing(void)
{
    return stats_of(space).misses > 100;
}

/* C25: readers only, nearly all of whom miss. */
START_TEST(evictions_under_a_latched_parent_go_on)
{
    static const unsigned threads[] = {1, 4, 8}, frames[] = {16, 64};

    for (unsigned i = 0; i < 12; i++) {
        struct swz_config config = {.n_frames = frames[i / 3 % 2]};
        unsigned height = 2 + i / 6;
        struct swz_thread *th;
        struct swz_stats stats;

        n_threads = threads[i % 3];
        /* Eight have two frames each, then; and the header and the root have two. */
        may_be_full = config.n_frames == 16 && height == 3 && n_threads == 8;
        build_of(config, height, &th);
        atomic_store(&stop, false);
        is_seen = are_missing;
        crew_run(n_threads + 1, watch_crew);
        is_seen = NULL;
        stats = stats_of(space);
        must(stats.misses > 100);
        must_eq(stats.refused_parent, 0); /* nobody writes */
        must_be_whole(space);
        swz_leave(th);
        must_ok(swz_close(space));
    }
    may_be_full = false;
}
END_TEST

#define SMALL_KEYS 3000u

/* small_config -- a file, so that what a small pool has left can be looked at with a large one. */
static struct swz_config
small_config(uint32_t n_frames, unsigned threads)
{
    return (struct swz_config){.n_pages = 4096,
                               .page_bytes = 2048,
                               .n_frames = n_frames,
                               .n_threads = threads + 1,
                               .full_tries = 4};
}

/* small_open -- the tree of the test, made anew. */
static void
small_open(uint32_t n_frames, unsigned threads)
{
    struct swz_config config = small_config(n_frames, threads);
    struct swz_thread *th;

    if (file_exists("pages"))
        must_eq(unlink("pages"), 0);
    must_ok(swz_open(".", &config, &space));
    must_ok(swz_join(space, &th));
    must_ok(swz_tree_create(th, 0, KEY_LONG, 16));
    swz_leave(th);
}

/* small_reopened -- close it; with frames enough all is whole, and just these keys are there. */
static void
small_reopened(const unsigned char *is_there)
{
    struct swz_config config = small_config(1000, 1);
    struct swz_thread *th;

    must_ok(swz_close(space));
    must_ok(swz_open(".", &config, &space));
    must_be_whole(space);
    must_ok(swz_join(space, &th));
    for (uint64_t i = 0; i < SMALL_KEYS; i++)
        must_rc(get(th, 0, i), is_there[i] ? 0 : ENOENT);
    swz_leave(th);
    must_ok(swz_close(space));
}

/*
 * C19, C27: with the fewest frames that suffice, and with too few, when ENOBUFS is right and
 * nothing has changed.
 */
START_TEST(small_pools_serve_or_say_so)
{
    static unsigned char is_there[SMALL_KEYS];

    for (uint32_t n_frames = 2; n_frames < 40; n_frames += n_frames < 16 ? 1 : 6) {
        uint64_t n_refused = 0;
        struct swz_thread *th;

        small_open(n_frames, 1);
        must_ok(swz_join(space, &th));
        for (uint64_t i = 0; i < SMALL_KEYS; i++) {
            uint64_t key = i * 7919 % SMALL_KEYS;
            int rc = put(th, 0, key);

            must(rc == 0 || rc == ENOBUFS);
            is_there[key] = rc == 0;
            n_refused += rc != 0;
        }
        for (uint64_t i = 0; i < SMALL_KEYS; i++) {
            int rc = get(th, 0, i);

            must(rc == (is_there[i] ? 0 : ENOENT) || rc == ENOBUFS);
            n_refused += rc == ENOBUFS;
        }
        /* Header, root, path and new pages: height + (height + 1) of them, at height 5. */
        must(n_frames < 14 || n_refused == 0);
        must(n_frames > 3 || n_refused > 0);
        swz_leave(th);
        small_reopened(is_there);
    }
}
END_TEST

static unsigned char shared_there[SMALL_KEYS];
static _Atomic uint64_t n_full;

/* small_worker -- puts its own keys, takes every third away again, and looks at all. */
static void
small_worker(unsigned number)
{
    struct swz_thread *th;

    must_ok(swz_join(space, &th));
    for (int pass = 0; pass < 3; pass++)
        for (uint64_t i = 0; i < SMALL_KEYS; i++) {
            uint64_t key = i * 7919 % SMALL_KEYS;
            int rc, want;

            if (key % n_threads != number || (pass == 1 && key % 3 != 0))
                continue;
            want = shared_there[key] ? 0 : ENOENT;
            rc = pass == 0   ? put(th, 0, key)
                 : pass == 1 ? take(th, 0, key)
                             : get(th, 0, key);
            must(rc == ENOBUFS || rc == (pass == 0 ? 0 : want));
            if (rc == 0 && pass < 2)
                shared_there[key] = pass == 0;
            atomic_fetch_add(&n_full, rc == ENOBUFS);
        }
    swz_leave(th);
}

/*
 * C19: threads, with as many frames as the formula has, roots + threads x (height + 3), and one for
 * the header; and with one for each thread, when all that is asked for is an answer.
 */
START_TEST(threads_share_the_fewest_frames)
{
    static const unsigned threads[] = {1, 2, 4, 8};

    for (unsigned i = 0; i < 4; i++)
        for (int is_enough = 0; is_enough < 2; is_enough++) {
            uint32_t t = threads[i], n_frames = is_enough ? 2 + t * (5 + 3) : 2 + t;

            /* One change of structure, with 2 x height + 1 pages, at a time. */
            n_frames += is_enough && t < 2 ? 4 : 0;
            n_threads = t;
            atomic_store(&n_full, 0);
            memset(shared_there, 0, sizeof shared_there);
            small_open(n_frames, t);
            crew_run(t, small_worker);
            if (is_enough)
                must_eq(atomic_load(&n_full), 0);
            small_reopened(shared_there);
        }
}
END_TEST

#ifdef XAC_DEBUG
static uint64_t n_looked_for;

/* no_writer -- a thread that looks for a frame has no page latched exclusively. */
static void
no_writer(const char *name)
{
    if (strcmp(name, "frames: found") != 0)
        return;
    n_looked_for++;
    for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++)
        must((side_of(space, i)->latch & LATCH_X) == 0);
}

/* C27: frames first, then latches, through splits to height 4, merges, and the root's shrinking. */
START_TEST(no_frame_is_looked_for_under_a_writers_latch)
{
    struct swz_thread *th;
    struct swz_stats stats;

    small_open(14, 1);
    must_ok(swz_join(space, &th));
    xac_kill_hook = no_writer; /* there is one thread, so every latch is its own */
    for (uint64_t i = 0; i < SMALL_KEYS; i++)
        must_ok(put(th, 0, i * 7919 % SMALL_KEYS));
    must(height_of(space, 0) >= 4);
    for (uint64_t i = 0; i < SMALL_KEYS; i++)
        must_ok(take(th, 0, i * 4243 % SMALL_KEYS));
    xac_kill_hook = NULL;
    stats = stats_of(space);
    must_eq(height_of(space, 0), 1);
    must(stats.structural > 500 && n_looked_for > 5000);
    swz_leave(th);
    must_ok(swz_close(space));
}
END_TEST

/* wander -- give the processor away between the word and the latch, which is where it counts. */
static void
wander(const char *name)
{
    static _Thread_local unsigned n;

    if (strcmp(name, "swizzle: word") == 0 && ++n % 16 == 0)
        proc_sleep_us(1);
}

static bool
is_never(void)
{
    return false;
}

static bool
are_reread(void)
{
    return stats_of(space).rereads_failed > 0;
}

/* run_without_reread -- until a wrong page has been read, which ends the process. */
static void
run_without_reread(void *arg)
{
    (void)arg;
    swz_test_no_reread = true;
    xac_kill_hook = wander;
    is_seen = is_never;
    crew_run(n_threads + 1, watch_crew);
}

/* C26: the second look happens, and without it wrong pages are read. */
START_TEST(without_the_second_look_pages_are_mistaken)
{
    struct swz_thread *th;
    char text[4096];

    n_threads = 8;
    build_of((struct swz_config){.n_frames = 20}, 3, &th);
    xac_kill_hook = wander;
    atomic_store(&stop, false);
    is_seen = are_reread;
    crew_run(n_threads + 1, watch_crew);
    is_seen = NULL;
    must(stats_of(space).rereads_failed > 0);
    xac_kill_hook = NULL;
    must_be_whole(space);
    atomic_store(&stop, false);
    must(proc_capture(run_without_reread, NULL, text, sizeof text) != 0);
    swz_leave(th);
    must_ok(swz_close(space));
}
END_TEST
#endif

int
main(void)
{
    Suite *s = suite_create("liveness");
    TCase *tc = env_tcase(s, "liveness", 120);

    tcase_add_test(tc, evictions_under_a_latched_parent_go_on);
    tcase_add_test(tc, small_pools_serve_or_say_so);
    tcase_add_test(tc, threads_share_the_fewest_frames);
#ifdef XAC_DEBUG
    tcase_add_test(tc, no_frame_is_looked_for_under_a_writers_latch);
    tcase_add_test(tc, without_the_second_look_pages_are_mistaken);
#endif
    return env_main(s);
}
