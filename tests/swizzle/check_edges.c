/* SPDX-License-Identifier: MIT */
/*
 * check_edges.c -- pages where it is not one look-up after the other: scans, reads that fail,
 * the walk in the policy's place, what is dropped, damaged pages, calls that are refused.
 */
#include <config.h>

#include "frames/policies/locked.h"
#include "one_space.h"

static int
visit_count(void *arg, const void *key, const void *value)
{
    uint64_t *n = arg;

    (void)value;
    must_eq(tree_u64_key(key), *n);
    ++*n;
    return 0;
}

/* C18 */
START_TEST(scans_follow_numbers_with_parents_gone)
{
    struct swz_stats before;
    uint64_t n = 0;

    space_make((struct swz_config){0});
    evict_all();
    before = stats_of(space);
    must_ok(swz_scan(th, 0, NULL, visit_count, &n));
    must_eq(n, N_KEYS);
    /* Only the way to the first leaf was swizzled: the others have no parent here. */
    must_eq(stats_of(space).swizzles - before.swizzles, height_of(space, 0) - 1);
    for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++) {
        struct frame *f = &space->pool->frames[i];
        const struct btree_node *node;

        if (frame_word(f->state) == FRAME_GONE || f->data == 0)
            continue;
        node = page_node(space, i);
        must(i == space->header_frame || node->level != 0
             || !word_is_swizzled(node->link)); /* I7 */
    }
    must_be_whole(space);
    traverse();
    space_end();
}
END_TEST

/* is_empty -- the page's frame has no bytes, and nobody has it: it may leave. */
static bool
is_empty(uint32_t page)
{
    const struct frame *f = pool_frame(space->pool, space->pool->table[page]);

    return f->data == 0 && frame_word(f->state) == 0;
}

/* C20 */
START_TEST(a_read_that_fails_leaves_nothing_behind)
{
    struct xac_frames_pin pins[16];
    struct swz_stats before;
    unsigned n_pinned;

    space_make((struct swz_config){.n_frames = 16, .full_tries = 3});
    evict_all();
    before = stats_of(space);
    atomic_store(&space->store.read_rc, EIO);
    for (uint64_t i = 0; i < 50; i++)
        must_rc(get(th, 0, i), EIO);
    must_rc(put(th, 0, 1), EIO);
    must_rc(take(th, 0, 1), EIO);
    must_eq(stats_of(space).swizzles, before.swizzles);
    must_eq(n_references(), 0);
    for (uint32_t page = SWZ_FIRST_PAGE; page < space->header->high_water; page++)
        must(space->pool->table[page] == 0 || is_empty(page));
    atomic_store(&space->store.read_rc, 0);
    must_be_whole(space);
    traverse();
    /* All of them are to be had, none is lost: 16 frames but for the header and the root. */
    n_pinned = 0;
    evict_all();
    while (n_pinned < 16
           && xac_frames_fix(th->user, 2000 + n_pinned, XAC_FRAMES_NEW, &pins[n_pinned])
                  == 0)
        n_pinned++;
    must_eq(n_pinned, 14);
    while (n_pinned > 0)
        xac_frames_unfix(th->user, &pins[--n_pinned]);
    space_end();
}
END_TEST

/* leaf_gone -- a leaf that has left since `was_there` was taken; 0: none. */
static uint32_t
leaf_gone(const bool *was_there)
{
    for (uint32_t page = SWZ_FIRST_PAGE; page < space->header->high_water; page++)
        if (was_there[page] && space->pool->table[page] == 0)
            return page;
    return 0;
}

/* C21: the walk goes on where it stopped, and meets each leaf once in a round. */
START_TEST(the_walk_takes_each_leaf_once_in_a_round)
{
    static bool was_there[4096];
    unsigned times[4096] = {0};
    uint32_t n_leaves = 0, page;

    space_make((struct swz_config){0});
    traverse();
    for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++) {
        bool is_leaf =
            side_of(space, i)->flags == SIDE_SWIZZLED && page_node(space, i)->level == 0;

        n_leaves += is_leaf;
        was_there[page_number(space, i)] |= is_leaf;
    }
    for (uint32_t i = 0; i < 2 * n_leaves; i++) {
        must(space->owner.no_victim(space, th->user));
        page = leaf_gone(was_there);
        must(page != 0);
        times[page]++;
        traverse(); /* it comes back, so that only the cursor tells who is next */
        must_eq(leaf_gone(was_there), 0);
        if (i + 1 == n_leaves || i + 1 == 2 * n_leaves)
            for (page = 0; page < 4096; page++)
                must_eq(times[page], !was_there[page] ? 0 : i + 1 == n_leaves ? 1 : 2);
    }
    while (space->owner.no_victim(space, th->user)) {
    } /* inner pages when childless */
    must_eq(side_of(space, space->trees[0].root_frame)->n_swizzled, 0);
    must_eq(n_references(), 0);
    space_end();
}
END_TEST

static const struct pool_owner *owner_kept;

/* only_inner -- the policy is shown inner pages only. */
static bool
only_inner(void *arg, uint32_t frame)
{
    struct frame *f = &space->pool->frames[frame];

    if (atomic_load(&space->sweeping) != 0 || f->data == 0
        || page_node(space, frame)->level != 0)
        return owner_kept->is_barred(arg, frame);
    return true;
}

/* is_list -- the policy does not ask who is barred. */
static bool
is_list(uint32_t policy)
{
    return policy == XAC_FRAMES_LRU || policy == XAC_FRAMES_2Q
           || policy == XAC_FRAMES_LIRS || policy == XAC_FRAMES_MQ;
}

/* C21: when the policy finds nobody, the walk does; under each. */
START_TEST(the_walk_finds_whom_no_policy_may_take)
{
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct pool_owner owner;
        struct swz_stats before;

        space_make((struct swz_config){.n_frames = 24, .policy = policy});
        traverse();
        owner_kept = space->pool->owner;
        owner = *owner_kept;
        owner.is_barred = only_inner;
        space->pool->owner = &owner;
        before = stats_of(space);
        traverse();
        must(stats_of(space).misses - before.misses > 10);
        space->pool->owner = owner_kept;
        must_be_whole(space);
        must(is_list(policy)
             || stats_of(space).sweep_evictions - before.sweep_evictions > 10);
        space_end();
    }
}
END_TEST

/* leaf_drop -- fix the leaf of key 0 again and again, then drop it; ret its page. */
static uint32_t
leaf_drop(void)
{
    struct swz_page path[8];
    unsigned n;
    uint32_t page;

    for (int i = 0; i < 3; i++) {
        n = path_to(path);
        path_drop(path, n);
    }
    page = page_number(space, path[n - 1].frame);
    must(xac_frames_evict(th->user, path[n - 1].frame));
    return page;
}

/* C23: CAR does not remember it; GCLOCK begins at 0 again.  Hands: check_replacers.c. */
START_TEST(what_is_dropped_is_not_remembered)
{
    struct policy *p;
    uint32_t page, n, slot;
    struct swz_page path[8];

    space_make((struct swz_config){.n_frames = 24, .policy = XAC_FRAMES_CAR});
    p = &space->pool->locked->policies[0];
    for (uint64_t key = 0; key < 60; key++) /* some in T2, too */
        must_ok(get(th, 0, key % 20));
    page = leaf_drop();
    for (uint64_t key = N_KEYS / 2; key < N_KEYS; key++) { /* until its slot is used */
        must_ok(get(th, 0, key));
        must_eq(xac_frames_ghost_find(p, page), POLICY_NONE);
    }
    space_end();

    space_make((struct swz_config){.n_frames = 24, .policy = XAC_FRAMES_GCLOCK_K});
    p = &space->pool->locked->policies[0];
    page = leaf_drop();
    n = path_to(path);
    slot = space->pool->frames[path[n - 1].frame].slot;
    must_eq(page_number(space, path[n - 1].frame), page);
    must_eq(node_count(p, slot), 0);
    path_drop(path, n);
    n = path_to(path);
    must(node_count(p, slot) > 0);
    path_drop(path, n);
    space_end();
}
END_TEST

/* A page file is input: words that are no numbers of pages, and counts that cannot be. */
START_TEST(a_damaged_page_is_refused)
{
    struct swz_page path[8];
    struct btree_node *node;
    uint32_t link, page;
    unsigned n;

    space_make((struct swz_config){0});
    n = path_to(path);
    page = page_number(space, path[n - 2].frame);
    path_drop(path, n);
    evict_all();
    node = (void *)(space->store.memory + (size_t)page * space->page_bytes);
    link = node->link;
    node->link = word_make(3);
    must_refuse(get(th, 0, 0), EUCLEAN);
    node->link = space->store.n_pages;
    must_refuse(get(th, 0, 0), EUCLEAN);
    node->link = link;
    node->n += 5000;
    must_refuse(get(th, 0, 0), EUCLEAN);
    must_refuse(put(th, 0, 0), EUCLEAN);
    node->n = (uint16_t)(node->n - 5000);
    traverse();
    space_end();
}
END_TEST

/* try_get -- swz_try_search() of a key. */
static int
try_get(uint64_t key)
{
    unsigned char k[200] = {0}, value[16];

    tree_key_u64(key, k);
    return swz_try_search(th, 0, k, value);
}

/* try_checks -- busy, not resident, there; nothing is read and nothing waits. */
static void
try_checks(bool is_plain)
{
    struct xac_frames_stats before, after;
    struct swz_page path[8], root;
    struct swz_stats s0;
    unsigned n;

    space_make((struct swz_config){.is_plain = is_plain});
    traverse();
    swz_get_pool_stats(space, &before);
    must_ok(try_get(0));
    must_rc(try_get(N_KEYS), ENOENT);
    swz_page_fix_root(th, 0, true, &root); /* a writer at the root */
    must_rc(try_get(0), EAGAIN);
    page_unfix(th, &root);
    n = path_to(path);
    path_drop(path, n);
    for (unsigned i = 1; i < n; i++) { /* ... at each page below it */
        latch_take_x(&side_of(space, path[i].frame)->latch);
        must_rc(try_get(0), EAGAIN);
        latch_drop(&side_of(space, path[i].frame)->latch, true);
        must_ok(try_get(0));
        latch_take_s(
            &side_of(space, path[i].frame)->latch); /* a reader does not matter */
        must_ok(try_get(0));
        latch_drop(&side_of(space, path[i].frame)->latch, false);
    }
    must(xac_frames_evict(th->user, path[n - 1].frame));
    s0 = stats_of(space);
    must_rc(try_get(0), ENODATA);
    must_eq(stats_of(space).swizzles, s0.swizzles);
    swz_get_pool_stats(space, &after);
    must_eq(after.reads, before.reads);
    must_ok(get(th, 0, 0));
    must_ok(try_get(0));
    space_end();
}

/* C24: conditional, and only of what is resident. */
START_TEST(a_try_neither_waits_nor_reads)
{
    try_checks(false);
    try_checks(true);
}
END_TEST

/* C24: a new page is not read. */
START_TEST(a_new_page_is_not_read)
{
    struct xac_frames_stats before, after;
    struct xac_frames_pin pin;

    space_make((struct swz_config){0});
    swz_get_pool_stats(space, &before);
    must_ok(xac_frames_fix(th->user, 4000, XAC_FRAMES_NEW, &pin));
    xac_frames_unfix(th->user, &pin);
    must_ok(xac_frames_invalidate(th->user, 4000));
    swz_get_pool_stats(space, &after);
    must_eq(after.reads, before.reads);
    space_end();
}
END_TEST

/* Calls that make no sense. */
START_TEST(bad_calls_are_refused)
{
    unsigned char key[200] = {0};

    space_make((struct swz_config){0});
    must_refuse(swz_search(th, SWZ_TREES, key, NULL), EINVAL);
    must_refuse(swz_search(th, 3, key, NULL), EINVAL);
    must_refuse(swz_tree_create(th, SWZ_TREES, 8, 8), EINVAL);
    must_refuse(swz_tree_create(th, 1, 8, 2000), EINVAL);
    must_refuse(swz_tree_create(th, 0, 8, 8), EEXIST);
    memset(key, 0xff, sizeof key);
    must_rc(swz_delete(th, 0, key), ENOENT);
    space_end();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("edges");
    TCase *tc = env_tcase(s, "edges", 60);

    tcase_add_test(tc, scans_follow_numbers_with_parents_gone);
    tcase_add_test(tc, a_read_that_fails_leaves_nothing_behind);
    tcase_add_test(tc, the_walk_takes_each_leaf_once_in_a_round);
    tcase_add_test(tc, the_walk_finds_whom_no_policy_may_take);
    tcase_add_test(tc, what_is_dropped_is_not_remembered);
    tcase_add_test(tc, a_damaged_page_is_refused);
    tcase_add_test(tc, a_try_neither_waits_nor_reads);
    tcase_add_test(tc, a_new_page_is_not_read);
    tcase_add_test(tc, bad_calls_are_refused);
    return env_main(s);
}
