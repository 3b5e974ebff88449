/* SPDX-License-Identifier: MIT */
/*
 * check_tree.c -- trees over frames under load: contents against a model, and the invariants
 * during it and after.  That nothing ever hangs: check_liveness.c.
 *
 * Small pages and long keys make high trees, small pools make evictions.  Each thread owns the keys
 * that are its number modulo the threads, so that it knows what must be there.
 */
#include <config.h>

#include "swz.h"

#define N_KEYS   4096u /* of each thread */
#define KEY_LONG 200u  /* 2 KiB pages: about 9 children */
#define CHECK_OPS \
 10000u /* of all threads together: so often they stop, and all is looked at */

static struct swz_space *space;
static unsigned n_threads;
static uint64_t n_ops;
static _Atomic uint64_t progress;
static pthread_barrier_t pause_barrier;
static bool has_pauses; /* nobody else works in the space */

/* pause_and_check -- C13: one looks, and the others wait. */
static void
pause_and_check(unsigned number)
{
    (void)pthread_barrier_wait(&pause_barrier);
    if (number == 0)
        must_be_whole(space);
    (void)pthread_barrier_wait(&pause_barrier);
}

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
        if (has_pauses && (i + 1) % (CHECK_OPS / n_threads) == 0)
            pause_and_check(number);
    }
    for (uint64_t which = 0; which < N_KEYS; which++)
        must_rc(get(th, 0, which * n_threads + number), is_there[which] ? 0 : ENOENT);
    swz_leave(th);
    free(is_there);
}

/* mixed_run_of -- with keys and values of such sizes. */
static void
mixed_run_of(struct swz_config config, uint32_t key_size, uint32_t value_size,
             unsigned threads, uint64_t ops)
{
    struct swz_thread *th;
    struct swz_stats stats;

    config.n_pages = 1 << 16;
    config.n_threads = threads + 1;
    config.page_bytes = 2048;
    space = space_of(config, key_size, value_size, &th);
    n_threads = threads;
    n_ops = ops;
    has_pauses = true;
    (void)pthread_barrier_init(&pause_barrier, NULL, threads);
    crew_run(threads, mixed);
    (void)pthread_barrier_destroy(&pause_barrier);
    must(ops < 2500 || height_of(space, 0) >= (key_size == KEY_LONG ? 4 : 3));
    stats = stats_of(space);
    must(stats.structural > 10);
    must(config.is_plain ? stats.swizzles == 0 : ops < 1000 || stats.swizzles > 100);
    must(ops < 2500 || config.n_frames > 1000 || stats.misses > 1000);
    must_be_whole(space);
    swz_leave(th);
    must_ok(swz_close(space));
}

static void
mixed_run(struct swz_config config, unsigned threads, uint64_t ops)
{
    mixed_run_of(config, KEY_LONG, 16, threads, ops);
}

/* node_fill -- n keys: dense, random, or in a few heaps; cells in no order. */
static void
node_fill(const struct btree *t, struct btree_node *node, unsigned n, unsigned kind,
          uint64_t *seed)
{
    uint64_t key = mix(seed) >> (kind * 20 + 1);
    unsigned char bytes[8];

    (void)node_init_at(t, node, 1, 0);
    for (unsigned i = 0; i < t->leaf_cap; i++) { /* shuffled */
        unsigned j = (unsigned)(mix(seed) % (i + 1));
        uint16_t cell = node->slots[i];

        node->slots[i] = node->slots[j];
        node->slots[j] = cell;
    }
    for (unsigned i = 0; i < n; i++) {
        key += kind == 0 ? 1 : kind == 1 ? 1 + mix(seed) % 1000000 : 1;
        if (kind == 2 && mix(seed) % 40 == 0)
            key += mix(seed) >> 10;
        tree_key_u64(key, bytes);
        leaf_put(t, node, i, bytes, bytes);
    }
}

/* The search that begins at a guess finds what halving finds, however wrong the guess. */
START_TEST(a_search_from_a_guess_equals_halving)
{
    struct btree_config config = {.key_size = 8, .value_size = 8, .block_size = 2048};
    static alignas(64) unsigned char page[2048];
    struct btree_node *node = (struct btree_node *)(void *)page;
    uint64_t seed = env_seed();
    struct btree t;

    must_ok(btree_layout_set(&t, &config));
    for (unsigned round = 0; round < 600; round++) {
        unsigned n = (unsigned)(mix(&seed) % (t.leaf_cap + 1));

        node_fill(&t, node, n, round % 3, &seed);
        for (unsigned i = 0; i < 100; i++) {
            uint64_t key =
                n == 0 || i % 10 == 0
                    ? mix(&seed)
                    : tree_u64_key(key_at(&t, node, (unsigned)(mix(&seed) % n))) + i % 3
                          - 1;
            unsigned or_equal = i % 2, want, got;
            struct key_range range = {.lo = mix(&seed) % 2 == 0 ? key - i : mix(&seed),
                                      .hi = mix(&seed) % 2 == 0 ? key + i : mix(&seed),
                                      .has_lo = mix(&seed) % 2 == 0,
                                      .has_hi = mix(&seed) % 2 == 0};
            unsigned char bytes[16]; /* more than a key, for the compiler's warning */

            tree_key_u64(key, bytes);
            want = node_rank(&t, node, bytes, or_equal);
            got = node_rank_near(node, page + t.leaf_keys, t.leaf_cap, key, or_equal,
                                 &range);
            must_eq(got, want);
            if (or_equal != 0 && got > 0)
                must(range.has_lo && range.lo == tree_u64_key(key_at(&t, node, got - 1)));
            if (or_equal != 0 && got < n)
                must(range.has_hi && range.hi == tree_u64_key(key_at(&t, node, got)));
        }
    }
}
END_TEST

/* C15, C13: every policy, 64 frames and enough frames, one thread and four. */
START_TEST(mixed_operations_equal_a_model)
{
    uint64_t ops = env_number("XAC_OPS", 40000);

    mixed_run((struct swz_config){.n_frames = 64}, 1, ops);
    mixed_run((struct swz_config){.n_frames = 64, .is_plain = true}, 1, ops);
    mixed_run((struct swz_config){.n_frames = 4096}, 4, ops / 4);
    mixed_run((struct swz_config){.n_frames = 96}, 4, ops / 4);
    mixed_run((struct swz_config){.n_frames = 96, .has_hash = true}, 4, ops / 4);
    mixed_run((struct swz_config){.n_frames = 96, .has_hash = true, .is_plain = true}, 4,
              ops / 4);
    /* Keys that are searched from a guess. */
    mixed_run_of((struct swz_config){.n_frames = 96}, 8, 500, 4, ops / 4);
    mixed_run_of((struct swz_config){.n_frames = 96, .is_plain = true}, 8, 500, 4,
                 ops / 4);
}
END_TEST

START_TEST(every_policy_serves_trees)
{
    uint64_t ops = env_number("XAC_OPS", 40000) / 8;

    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++)
        mixed_run((struct swz_config){.n_frames = 96, .policy = policy}, 4, ops / 4);
}
END_TEST

/* ---- Toggles, undo, cleaners ----------------------------------------------------------- */

static _Atomic bool stop;
static _Atomic uint64_t toggles, restored, moved_meanwhile;

/* pest -- number 0 does something nasty, the others work. */
static void (*pest)(struct swz_thread *th, uint64_t *seed);

static void
pestered(unsigned number)
{
    struct swz_thread *th;
    uint64_t seed = env_seed();

    if (number > 0) {
        mixed(number - 1);
        return;
    }
    must_ok(swz_join(space, &th));
    while (!atomic_load(&stop))
        pest(th, &seed);
    swz_leave(th);
}

/* stopper -- the last of the crew, as soon as the work is done. */
static void
pester_crew(unsigned number)
{
    if (number <= n_threads) {
        pestered(number);
        return;
    }
    while (atomic_load(&progress) < n_ops * n_threads)
        proc_sleep_us(1000);
    atomic_store(&stop, true);
}

static void
pester(struct swz_config config, unsigned threads,
       void (*with)(struct swz_thread *, uint64_t *))
{
    struct swz_thread *th;

    config.n_pages = 1 << 16;
    config.n_threads = threads + 2;
    config.page_bytes = 2048;
    space = space_of(config, KEY_LONG, 16, &th);
    n_threads = threads;
    has_pauses = false;
    n_ops = env_number("XAC_OPS", 40000) * 3 / 8 / threads;
    atomic_store(&stop, false);
    atomic_store(&progress, 0);
    pest = with;
    crew_run(n_threads + 2, pester_crew);
    must_be_whole(space);
    must_ok(swz_checkpoint(space));
    for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++)
        (void)xac_frames_evict(th->user, i);
    must_be_whole(space); /* now from what was written */
    swz_leave(th);
    must_ok(swz_close(space));
}

static void
toggle(struct swz_thread *th, uint64_t *seed)
{
    swz_set_swizzling(th->space, mix(seed) % 2 == 0);
    atomic_fetch_add(&toggles, 1);
    proc_sleep_us(mix(seed) % 500);
}

/* C22 */
START_TEST(swizzling_is_switched_under_load)
{
    pester((struct swz_config){.n_frames = 96}, 3, toggle);
    pester((struct swz_config){.n_frames = 2000}, 3, toggle);
    must(atomic_load(&toggles) > 10);
}
END_TEST

/*
 * undo -- put an inner page back as it was a while ago, as an undo of page images does.
 *
 * Under smo no word moves, but children come and go: the copy is older than references in the page,
 * and had it references of its own they would be of frames that others have now.
 */
static void
undo(struct swz_thread *th, uint64_t *seed)
{
    static alignas(64) unsigned char copy[SWZ_PAGE_MAX];
    const struct btree *t = &th->space->trees[0].layout;
    struct swz_page page, child;
    const _Atomic uint64_t *gone = &th->space->events[SWZ_UNSWIZZLES];
    unsigned char key[KEY_LONG] = {0};
    uint64_t unswizzles;

    tree_key_u64(mix(seed) % (N_KEYS * n_threads), key);
    (void)pthread_mutex_lock(&th->space->smo);
    swz_page_fix_root(th, 0, true, &page);
    while (page.node->level > 1 && mix(seed) % 2 == 0) {
        must_ok(swz_page_fix_child(th, &page,
                                   word_at(t, page.node, node_rank(t, page.node, key, 1)),
                                   true, &child));
        page_unfix(th, &page);
        page = child;
    }
    if (page.node->level != 0) { /* the root may be a leaf: then it changes without smo */
        swz_page_copy_plain(th->space, page.node, copy);
        swz_page_pin(th, &page);
        page_unfix(th, &page);
        unswizzles = atomic_load(gone);
        proc_sleep_us(mix(seed) % 300);
        latch_take_x(&side_of(th->space, page.frame)->latch);
        swz_page_restore(th, &page, copy);
        atomic_fetch_add(&restored, 1);
        atomic_fetch_add(&moved_meanwhile, atomic_load(gone) != unswizzles);
        swz_page_unpin(th, &page);
    }
    page_unfix(th, &page);
    (void)pthread_mutex_unlock(&th->space->smo);
    proc_sleep_us(mix(seed) % 300);
}

/* C17 */
START_TEST(page_images_are_put_back_under_load)
{
    /* On a busy machine the work may be done before the undoing thread has had many turns. */
    for (int i = 0;
         i < 20 && (atomic_load(&restored) <= 10 || atomic_load(&moved_meanwhile) <= 3);
         i++)
        pester((struct swz_config){.n_frames = 128}, 3, undo);
    must(atomic_load(&restored) > 10);
    must(atomic_load(&moved_meanwhile) > 3);
}
END_TEST

static struct pool_owner owner_kept;
static _Atomic uint64_t inner_written, inner_with_references;

static bool
is_inner(const struct btree_node *node)
{
    return node->level != 0 && node->level != BTREE_LEVEL_FREE;
}

/*
 * write_seen -- the pool's question "write this page", and then a look at what was written.
 *
 * An inner page is copied under X, which counts as one writer.  Of a page that becomes one only
 * meanwhile, that one is another.
 */
static int
write_seen(void *arg, uint64_t number, uint32_t frame, const void *data)
{
    static _Thread_local alignas(64) unsigned char copy[SWZ_PAGE_MAX];
    struct swz_space *s = arg;
    latch_word *latch = &side_of(s, frame)->latch;
    uint64_t writers = 0;
    bool was_inner = false;
    uint32_t n = 0;
    int rc;

    if (number != 0 && latch_try_s(latch)) {
        was_inner = is_inner(data);
        writers = *latch / LATCH_VERSION;
        n = atomic_load(&side_of(s, frame)->n_swizzled);
        latch_drop(latch, false);
    }
    rc = owner_kept.write(arg, number, frame, data);
    if (rc != 0 || !was_inner || !latch_try_x(latch))
        return rc;
    /* Nobody has changed it but for its references: it is the plain page still. */
    if (is_inner(data) && *latch / LATCH_VERSION <= writers + 1) {
        swz_page_copy_plain(s, data, copy);
        must(memcmp(copy, s->store.memory + number * s->page_bytes, s->page_bytes) == 0);
        atomic_fetch_add(&inner_written, 1);
        atomic_fetch_add(&inner_with_references, n > 0);
    }
    latch_undo_x(latch);
    return rc;
}

#ifdef XAC_DEBUG
/* linger -- in the middle of a copy, when others might take a child away. */
static void
linger(const char *name)
{
    if (strcmp(name, "swizzle: copied") == 0)
        proc_sleep_us(20);
}
#endif

/* clean -- write everything back while it is used and evicted. */
static void
clean(struct swz_thread *th, uint64_t *seed)
{
    if (th->space->owner.write != write_seen) {
        owner_kept = th->space->owner;
        th->space->owner.write = write_seen;
    }
    if (mix(seed) % 512 == 0)
        must_ok(swz_checkpoint(th->space));
    else if (xac_frames_flush(th->user, mix(seed) % 2000) != 0)
        proc_sleep_us(50); /* EAGAIN: somebody has it latched */
}

/* C28: seven threads work, and one writes. */
START_TEST(pages_are_written_while_their_children_leave)
{
#ifdef XAC_DEBUG
    xac_kill_hook = linger;
#endif
    pester((struct swz_config){.n_frames = 96}, 7, clean);
    pester((struct swz_config){.n_frames = 96, .policy = XAC_FRAMES_CAR}, 7, clean);
    printf("%llu inner pages written, %llu with references\n",
           (unsigned long long)inner_written, (unsigned long long)inner_with_references);
    must(atomic_load(&inner_with_references) > 10);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tree");
    TCase *tc = env_tcase(s, "tree", 120);

    tcase_add_test(tc, a_search_from_a_guess_equals_halving);
    tcase_add_test(tc, mixed_operations_equal_a_model);
    tcase_add_test(tc, every_policy_serves_trees);
    tcase_add_test(tc, swizzling_is_switched_under_load);
    tcase_add_test(tc, page_images_are_put_back_under_load);
    tcase_add_test(tc, pages_are_written_while_their_children_leave);
    return env_main(s);
}
