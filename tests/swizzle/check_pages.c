/* SPDX-License-Identifier: MIT */
/*
 * check_pages.c -- pages found by reference and by number, one step at a time: what becomes a
 * reference, what becomes a number again, what may not leave its frame.
 */
#include <config.h>

#include "one_space.h"

/* C01 */
START_TEST(words_hold_every_frame)
{
    struct swz_config config = {.n_pages = SWZ_TAG, .n_frames = 1, .n_threads = 1};
    struct swz_space *s;

    for (uint64_t i = 0; i < UINT32_C(1) << 30; i += i < 5000 ? 1 : 99991) {
        uint32_t w = word_make((uint32_t)i);

        must(word_is_swizzled(w) && w != SWZ_TAG); /* frame 0 of the word is nobody's */
        must_eq(word_frame(w), i);
    }
    must_eq(word_frame(word_make(SWZ_TAG - 2)), SWZ_TAG - 2); /* the last there can be */
    must(word_is_swizzled(word_make(SWZ_TAG - 2)));
    must(!word_is_swizzled(SWZ_TAG - 1)); /* the last page */
    must_refuse(swz_open(NULL, &config, &s), EINVAL);
}
END_TEST

/* C01: numbers are given out up to the last one, and not beyond. */
START_TEST(no_page_is_given_out_beyond_the_last)
{
    struct swz_config config = {.n_pages = 40,
                                .n_frames = 64,
                                .n_threads = 2,
                                .page_bytes = 2048};
    uint64_t n = 0;

    space = space_of(config, 200, 16, &th);
    while (put(th, 0, n) == 0)
        n++;
    must_refuse(put(th, 0, n), ENOSPC);
    must(n > 100);
    must(space->header->high_water <= 40 && space->header->high_water > 36);
    for (uint64_t i = 0; i < n; i++)
        must_ok(get(th, 0, i));
    must_rc(get(th, 0, n), ENOENT);
    must_be_whole(space);
    for (uint64_t i = 0; i < n; i++)
        must_ok(take(th, 0, i));
    for (uint64_t i = 0; i < n; i++) /* with the pages given back */
        must_ok(put(th, 0, i));
    space_end();
}
END_TEST

/* C02 */
START_TEST(all_frames_are_usable)
{
    struct swz_config config = {.n_pages = 100,
                                .n_frames = 20,
                                .n_threads = 2,
                                .page_bytes = 2048,
                                .full_tries = 3};
    struct xac_frames_pin pins[20];

    space = space_of(config, 8, 8, &th); /* header and root are pinned */
    for (unsigned i = 0; i < 18; i++)
        must_ok(xac_frames_fix(th->user, 30 + i, XAC_FRAMES_NEW, &pins[i]));
    must_eq(xac_frames_fix(th->user, 90, XAC_FRAMES_NEW, &pins[18]), ENOBUFS);
    for (unsigned i = 0; i < 18; i++)
        xac_frames_unfix(th->user, &pins[i]);
    must_ok(xac_frames_fix(th->user, 90, XAC_FRAMES_NEW, &pins[18]));
    xac_frames_unfix(th->user, &pins[18]);
    space_end();
}
END_TEST

/* C03 */
START_TEST(roots_are_never_looked_up)
{
    for (int plain = 0; plain < 2; plain++) {
        struct swz_stats before, after;
        struct swz_page root;

        space_make((struct swz_config){.is_plain = plain != 0});
        before = stats_of(space);
        for (int i = 0; i < 1000000; i++) {
            swz_page_fix_root(th, 0, (i & 1) != 0, &root);
            page_unfix(th, &root);
        }
        after = stats_of(space);
        must_eq(after.fixes_root - before.fixes_root, 1000000);
        must_eq(after.lookups, before.lookups);
        space_end();
    }
}
END_TEST

/* C04, C05, C06, C10 */
START_TEST(first_use_swizzles_and_the_second_looks_nothing_up)
{
    struct swz_stats s0, s1, s2;
    uint64_t n_pages;

    space_make((struct swz_config){.is_plain = true});
    n_pages = space->header->high_water - SWZ_FIRST_PAGE; /* none is free */
    traverse();
    must_eq(stats_of(space).swizzles, 0);
    swz_set_swizzling(space, true);
    s0 = stats_of(space);
    traverse();
    s1 = stats_of(space);
    must_eq(s1.lookups - s0.lookups, n_pages); /* each child once */
    must_eq(s1.swizzles - s0.swizzles, n_pages);
    must_eq(s1.misses, s0.misses);
    traverse();
    s2 = stats_of(space);
    must_eq(s2.lookups, s1.lookups);
    must_eq(s2.fixes_swizzled - s1.fixes_swizzled,
            (uint64_t)N_KEYS * (height_of(space, 0) - 1));
    must_be_whole(space);

    must_eq(evict_all(), n_pages); /* leaves first, then what has no more children */
    must_eq(stats_of(space).unswizzles, n_pages);
    must_be_whole(space);
    must_eq(evict_all(), n_pages); /* the check has had them all back */
    s0 = stats_of(space);
    traverse();
    s1 = stats_of(space);
    must_eq(s1.misses - s0.misses, n_pages);
    must_eq(s1.swizzles - s0.swizzles, n_pages);
    must_eq(n_references(),
            n_pages); /* each, and must_be_whole() sees that it is right */
    space_end();
}
END_TEST

/* C07 */
START_TEST(a_child_of_an_unswizzled_page_stays_a_number)
{
    struct swz_page path[8], alone, leaf;
    uint32_t number;
    unsigned n;

    space_make((struct swz_config){0});
    evict_all();
    n = path_to(path);
    number = page_number(space, path[1].frame);
    path_drop(path, n);
    evict_all();
    must_ok(swz_page_fix_number(th, number, false, &alone)); /* not through its parent */
    must_ok(swz_page_fix_child(th, &alone, (swz_word *)&alone.node->link, false, &leaf));
    must(!word_is_swizzled(alone.node->link));
    must_eq(side_of(space, leaf.frame)->flags, 0);
    page_unfix(th, &leaf);
    page_unfix(th, &alone);
    traverse();
    must(word_is_swizzled(alone.node->link));
    space_end();
}
END_TEST

/* C10: exactly what changes when a leaf leaves. */
START_TEST(eviction_puts_the_number_back_and_nothing_else)
{
    struct swz_page path[8];
    uint32_t leaf_number, n_swizzled;
    uint64_t state, lsn;
    struct frame *parent;
    unsigned n;

    space_make((struct swz_config){0});
    traverse();
    n = path_to(path);
    parent = &space->pool->frames[path[n - 2].frame];
    leaf_number = page_number(space, path[n - 1].frame);
    must_eq(path[n - 2].node->link, word_make(path[n - 1].frame));
    state = frame_load(parent);
    lsn = parent->side.lsn;
    n_swizzled = parent->side.n_swizzled;
    path_drop(path, n);
    must(xac_frames_evict(th->user, path[n - 1].frame));
    must_eq(path[n - 2].node->link, leaf_number);
    must_eq(frame_load(parent), state); /* not dirty (I9) */
    must_eq(parent->side.lsn, lsn);
    must_eq(parent->side.n_swizzled, n_swizzled - 1);
    space_end();
}
END_TEST

/* must_refuse_unchanged -- a frame does not leave, and nothing of any frame or page has changed. */
static void
must_refuse_unchanged(uint32_t frame)
{
    struct xac_frames *pool = space->pool;
    uint32_t n = pool->region->n_frames_all;
    size_t n_bytes = (size_t)n * space->page_bytes;
    struct frame *frames = aligned_alloc(FRAME_LINE, n * sizeof *frames);
    uint64_t *table = malloc(pool->n_pages * sizeof *table);
    char *data = malloc(n_bytes);
    const void *now = (const void *)(uintptr_t)pool->table;

    must(frames != NULL && table != NULL && data != NULL);
    memcpy((void *)frames, (void *)pool->frames, n * sizeof *frames);
    memcpy(table, now, pool->n_pages * sizeof *table);
    memcpy(data, pool->data, n_bytes);
    must(!xac_frames_evict(th->user, frame));
    must(memcmp((void *)frames, (void *)pool->frames, n * sizeof *frames) == 0);
    must(memcmp(table, now, pool->n_pages * sizeof *table) == 0);
    must(memcmp(data, pool->data, n_bytes) == 0);
    free(frames);
    free(table);
    free(data);
}

/* C11 */
START_TEST(what_may_not_leave_stays_as_it_is)
{
    struct swz_page path[8], root;
    struct xac_frames_pin pin;
    uint32_t leaf, above;
    unsigned n;

    space_make((struct swz_config){.n_frames = 200});
    traverse();
    n = path_to(path);
    leaf = path[n - 1].frame;
    above = path[n - 2].frame;
    must_refuse_unchanged(leaf); /* latched S */
    must_refuse_unchanged(above);
    swz_page_pin(th, &path[n - 1]);
    path_drop(path, n);
    must_refuse_unchanged(leaf); /* pinned to be fixed again */
    swz_page_unpin(th, &path[n - 1]);
    must_refuse_unchanged(above);         /* has children */
    must_refuse_unchanged(path[0].frame); /* a root */
    must_ok(xac_frames_fix(th->user, page_number(space, leaf), 0, &pin));
    must_refuse_unchanged(leaf); /* pinned */
    xac_frames_mark_dirty(th->user, &pin);
    xac_frames_unfix(th->user, &pin);
    must_refuse_unchanged(leaf); /* dirty */
    must_ok(swz_checkpoint(space));
    latch_take_x(&side_of(space, above)->latch); /* the parent has a writer */
    must_refuse_unchanged(leaf);
    latch_drop(&side_of(space, above)->latch, true);
    swz_page_fix_root(th, 0, false, &root); /* ... a reader does not matter */
    latch_take_s(&side_of(space, above)->latch);
    must(xac_frames_evict(th->user, leaf));
    latch_drop(&side_of(space, above)->latch, false);
    page_unfix(th, &root);
    space_end();
}
END_TEST

/* ---- Races ---------------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static uint64_t n_rounds;

static void
pair_main(unsigned number)
{
    struct swz_thread *mine;
    struct swz_page root;

    (void)number;
    must_ok(swz_join(space, &mine));
    for (uint64_t i = 0; i < n_rounds; i++) {
        (void)pthread_barrier_wait(&barrier);
        must_ok(get(mine, 0, 0));
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            swz_page_fix_root(mine, 0, true, &root);
            must_eq(side_of(space, root.frame)->n_swizzled, 1);
            swz_page_unswizzle_all(space, root.frame, NULL, 0);
            page_unfix(mine, &root);
        }
        (void)pthread_barrier_wait(&barrier);
    }
    swz_leave(mine);
}

/* C08 */
START_TEST(one_of_two_swizzles)
{
    struct swz_stats before, after;
    struct swz_page root;

    space_make((struct swz_config){0});
    swz_page_fix_root(th, 0, true, &root);
    swz_page_unswizzle_all(space, root.frame, NULL, 0);
    page_unfix(th, &root);
    n_rounds = env_number("XAC_ROUNDS", 5000);
    (void)pthread_barrier_init(&barrier, NULL, 2);
    before = stats_of(space);
    crew_run(2, pair_main);
    after = stats_of(space);
    must_eq(after.swizzles - before.swizzles,
            n_rounds * (height_of(space, 0) - 1)); /* each word once */
    must_eq(after.unswizzles - before.unswizzles, after.swizzles - before.swizzles);
    space_end();
}
END_TEST

static void
miss_main(unsigned number)
{
    struct swz_thread *mine;

    must_ok(swz_join(space, &mine));
    for (uint64_t i = 0; i < n_rounds; i++) {
        (void)pthread_barrier_wait(&barrier);
        must_ok(get(mine, 0, 0));
        (void)pthread_barrier_wait(&barrier);
        if (number == 0)
            must_eq(evict_all(), height_of(space, 0) - 1u); /* one frame for each page */
        (void)pthread_barrier_wait(&barrier);
    }
    swz_leave(mine);
}

/*
 * C09: the pool may read twice, but one result is used.
 *
 * Two sweeps that begin at the same place may meet the page that the other one has just
 * brought in, and it has to come again: then it has left again, too.
 */
static void
miss_race(bool has_hash)
{
    struct xac_frames_stats p0, p1;
    struct swz_stats s0, s1;
    uint64_t n;

    space_make((struct swz_config){.has_hash = has_hash});
    evict_all();
    n_rounds = env_number("XAC_ROUNDS", 2000);
    (void)pthread_barrier_init(&barrier, NULL, 2);
    swz_get_pool_stats(space, &p0);
    s0 = stats_of(space);
    crew_run(2, miss_main);
    swz_get_pool_stats(space, &p1);
    s1 = stats_of(space);
    n = n_rounds * (height_of(space, 0) - 1);
    must(s1.misses - s0.misses >= n);
    must_eq(s1.misses - s0.misses, p1.evictions - p0.evictions);
    must_eq((p1.reads - p1.reads_duplicate) - (p0.reads - p0.reads_duplicate),
            s1.misses - s0.misses);
    space_end();
}

START_TEST(two_misses_of_a_page_make_one_frame)
{
    miss_race(false);
    miss_race(true);
}
END_TEST

#ifdef XAC_DEBUG
static uint32_t hook_frame;
static struct swz_thread *hook_thread;
static unsigned hook_evictions;

static const char *hook_point;

/* leaf_evict -- that of key 0. */
static bool
leaf_evict(void)
{
    struct swz_page path[8];
    unsigned n = path_to(path);

    path_drop(path, n);
    return xac_frames_evict(th->user, path[n - 1].frame);
}

static void
evict_at_point(const char *name)
{
    if (strcmp(name, hook_point) == 0 && hook_frame != UINT32_MAX) {
        uint32_t frame = hook_frame;

        hook_frame = UINT32_MAX;
        hook_evictions += xac_frames_evict(hook_thread->user, frame);
    }
}

/* C12: between the table and the latch; get() sees that the value is the key's. */
START_TEST(a_page_that_leaves_while_it_is_found_is_found_again)
{
    static const char *const points[] = {"frames: found", "swizzle: hash found"};
    struct swz_page path[8];
    unsigned n;

    for (int hash = 0; hash < 2; hash++) {
        space_make((struct swz_config){.is_plain = true, .has_hash = hash != 0});
        must_ok(swz_join(space, &hook_thread));
        hook_point = points[hash];
        hook_evictions = 0;
        for (uint64_t i = 0; i < N_KEYS; i += 7) {
            n = path_to(path);
            path_drop(path, n);
            hook_frame = path[1].frame;
            xac_kill_hook = evict_at_point;
            must_ok(
                get(th, 0, 0)); /* finds the table's entry of a page that leaves now */
            must_ok(get(th, 0, i));
            xac_kill_hook = NULL;
        }
        must(hook_evictions > N_KEYS / 14);
        swz_leave(hook_thread);
        space_end();
    }
}
END_TEST
#endif

#ifdef XAC_DEBUG
/* read_by_another -- while we are about to read, somebody else does, and our read fails then. */
static void
read_by_another(const char *name)
{
    if (strcmp(name, "frames: read") != 0)
        return;
    xac_kill_hook = NULL;
    must_ok(get(hook_thread, 0, 0));
    atomic_store(&space->store.read_rc, EIO);
}

/* C09, C20: what the other one has read counts. */
START_TEST(a_failed_read_of_a_page_that_another_has_read_does_not_matter)
{
    space_make((struct swz_config){0});
    must_ok(swz_join(space, &hook_thread));
    must(leaf_evict());
    xac_kill_hook = read_by_another;
    must_ok(get(th, 0, 0));
    must(xac_kill_hook == NULL);
    atomic_store(&space->store.read_rc, 0);
    swz_leave(hook_thread);
    space_end();
}
END_TEST
#endif

/* C14 */
START_TEST(a_pinned_page_stays_through_a_storm)
{
    struct swz_page path[8], leaf;
    struct btree_node *node;
    struct swz_stats before;
    unsigned n;

    space_make((struct swz_config){.n_frames = 24});
    n = path_to(path);
    leaf = path[n - 1];
    node = leaf.node;
    swz_page_pin(th, &leaf);
    path_drop(path, n);
    for (int i = 0; i < 20; i++)
        traverse();
    before = stats_of(space);
    latch_take_s(&side_of(space, leaf.frame)->latch); /* refix */
    must(page_node(space, leaf.frame) == node);
    must_eq(node->self, page_number(space, leaf.frame));
    page_unfix(th, &leaf);
    swz_page_unpin(th, &leaf);
    must_eq(stats_of(space).lookups, before.lookups);
    must(before.misses > N_KEYS);
    space_end();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("pages");
    TCase *tc = env_tcase(s, "pages", 60);

    tcase_add_test(tc, words_hold_every_frame);
    tcase_add_test(tc, no_page_is_given_out_beyond_the_last);
    tcase_add_test(tc, all_frames_are_usable);
    tcase_add_test(tc, roots_are_never_looked_up);
    tcase_add_test(tc, first_use_swizzles_and_the_second_looks_nothing_up);
    tcase_add_test(tc, a_child_of_an_unswizzled_page_stays_a_number);
    tcase_add_test(tc, eviction_puts_the_number_back_and_nothing_else);
    tcase_add_test(tc, what_may_not_leave_stays_as_it_is);
    tcase_add_test(tc, one_of_two_swizzles);
    tcase_add_test(tc, two_misses_of_a_page_make_one_frame);
#ifdef XAC_DEBUG
    tcase_add_test(tc, a_page_that_leaves_while_it_is_found_is_found_again);
#endif
#ifdef XAC_DEBUG
    tcase_add_test(tc, a_failed_read_of_a_page_that_another_has_read_does_not_matter);
#endif
    tcase_add_test(tc, a_pinned_page_stays_through_a_storm);
    return env_main(s);
}
