/* SPDX-License-Identifier: MIT */
/*
 * check_btree_serial.c -- the B+-tree on plain memory.
 *
 * GOAL    the tree agrees with a sorted array whatever is done to it, in many geometries;
 *         a full segment changes nothing; btree_check() finds damage and survives it.
 * METHOD  random operations beside the model; the segment is compared byte by byte where
 *         nothing may change; damage made by hand and at random, between guard pages.
 */
#include <config.h>

#define TREE_SERIAL 1
#include "tree_serial.h"

#include "btree_layout.h"

#define PAGE ((size_t)BTREE_PAGE)

#define GEOMETRY(key, value, block)                               \
 {                                                                \
  .key_size = (key), .value_size = (value), .block_size = (block) \
 }
#define SCATTERED(key, value, block)                               \
 {                                                                 \
  .key_size = (key), .value_size = (value), .block_size = (block), \
  .allocation = BTREE_SCATTERED                                    \
 }

static const struct btree_config geometries[] = {
    GEOMETRY(1, 0, 4096),      GEOMETRY(1, 8, 4096),      GEOMETRY(1, 512, 4096),
    GEOMETRY(8, 0, 4096),      GEOMETRY(8, 8, 4096),      GEOMETRY(8, 512, 4096),
    GEOMETRY(16, 0, 4096),     GEOMETRY(16, 8, 4096),     GEOMETRY(16, 512, 4096),
    GEOMETRY(128, 0, 4096),    GEOMETRY(128, 8, 4096),    GEOMETRY(128, 512, 4096),
    GEOMETRY(8, 512, 8192),    GEOMETRY(128, 512, 8192),  GEOMETRY(1, 0, 65536),
    GEOMETRY(8, 8, 65536),     GEOMETRY(8, 512, 65536),   GEOMETRY(16, 8, 65536),
    GEOMETRY(128, 0, 65536),   GEOMETRY(128, 512, 65536), GEOMETRY(1024, 300, 4096),
    GEOMETRY(8, 1300, 4096),   GEOMETRY(900, 100, 4096),  GEOMETRY(1000, 0, 4096),
    GEOMETRY(7, 3, 4096),      GEOMETRY(9, 1, 8192),      GEOMETRY(8, 3000, 16384),
    GEOMETRY(13, 512, 524288), GEOMETRY(8, 512, 2048),    GEOMETRY(128, 8, 2048),
    GEOMETRY(8, 8, 2048),      SCATTERED(8, 512, 2048),   SCATTERED(128, 64, 4096),
    SCATTERED(8, 8, 65536),
};
#define N_GEOMETRIES ((int)(sizeof geometries / sizeof geometries[0]))

static unsigned char *
tree_new(struct btree *t, const struct btree_config *config, size_t size)
{
    unsigned char *segment = segment_new(size);

    must_ok(btree_create(t, segment, size, config));
    return segment;
}

/* ---- the model -------------------------------------------------------------------- */

START_TEST(operations_agree_with_model)
{
    const struct btree_config *config = &geometries[_i];
    size_t size = (size_t)64 << 20;
    uint64_t rng = env_seed() + (uint64_t)_i;
    uint64_t n_keys = keys_of(config->key_size, 3000);
    struct btree t;
    struct model m;
    unsigned char *segment;

    if (!env_is_chosen((uint64_t)_i))
        return;
    segment = tree_new(&t, config, size);
    model_init(&m, config);
    model_run_life(&m, &t, &rng, n_keys);
    must_ok(btree_open(&t, segment, size)); /* a handle is nothing but what it reads */
    model_run(&m, &t, &rng, 1000, n_keys, 80);
    model_run_empty(&m, &t, &rng);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

START_TEST(orders_agree_with_model)
{
    const struct btree_config config = GEOMETRY(8, 64, 4096);
    size_t size = (size_t)16 << 20;
    uint64_t n = 8000, rng = env_seed();
    struct btree_report report;
    struct btree t;
    struct model m;
    unsigned char *segment = tree_new(&t, &config, size);

    model_init(&m, &config);
    model_insert_all(&m, &t, _i, n, &rng);
    must_ok(btree_check(&t, &report));
    if (_i == ASCENDING) /* leaves are left full */
        must_eq(report.leaves, (n + report.leaf_cap - 1) / report.leaf_cap);
    model_delete_all(&m, &t, _i, n);
    must_ok(btree_check(&t, &report));
    must_eq(report.height, 0);
    must_eq(report.free + report.unused, report.n_blocks - t.root - 1);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* ---- cursors and load ---------------------------------------------------------------- */

START_TEST(cursor_agrees_with_model)
{
    const struct btree_config *config = &geometries[_i];
    size_t size = (size_t)64 << 20;
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct btree t;
    struct model m;
    unsigned char *segment = tree_new(&t, config, size);

    model_init(&m, config);
    model_run_cursor(&m, &t, &rng, keys_of(config->key_size, 500));
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* Loaded in two pieces, then used like any other tree. */
START_TEST(load_agrees_with_model)
{
    static const unsigned percents[] = {50, 75, 100};
    const struct btree_config *config = &geometries[_i];
    size_t size = (size_t)64 << 20;
    uint64_t rng = env_seed() + (uint64_t)_i, count,
             n = keys_of(config->key_size, 2000) / 2;
    unsigned percent = percents[_i % 3];
    unsigned char key[MODEL_KEY_MAX], value[4096];
    struct btree_report report;
    struct btree t;
    struct model m;
    struct model_source source = {.m = &m};
    unsigned char *segment = tree_new(&t, config, size);

    model_init(&m, config);
    for (uint64_t i = 0; i < n; i++) {
        model_key(&m, 2 * i, key);
        model_value(&m, &rng, value);
        model_put(&m, key, value);
    }
    source.to = rnd_below(&rng, n);
    must_ok(btree_load(&t, model_next, &source, percent, &count));
    must_eq(count, source.to);
    source.from = source.to;
    source.to = n;
    must_ok(btree_load(&t, model_next, &source, percent, &count));
    must_eq(count, n - source.from);
    model_compare(&m, &t);
    must_ok(btree_check(&t, &report));
    {
        uint32_t fill = (t.leaf_cap * percent + 99) / 100;

        must_eq(report.leaves, (n + fill - 1) / fill);
    }

    source.from = n - 1; /* not above the last */
    must_rc(btree_load(&t, model_next, &source, percent, &count), EINVAL);
    must_eq(count, 0);
    must_rc(btree_load(&t, model_next, &source, 49, &count), EINVAL);
    must_rc(btree_load(&t, model_next, &source, 101, NULL), EINVAL);
    model_run(&m, &t, &rng, 1000, 2 * n, 50);
    model_run_empty(&m, &t, &rng);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* The numbers of unused blocks and the blocks are the same set, whatever their order. */
START_TEST(scattered_blocks_are_a_permutation)
{
    for (uint32_t n = 1; n < 3000; n = n < 40 ? n + 1 : n * 3 / 2) {
        struct btree t = {.root = 17, .n_blocks = 18 + n, .allocation = BTREE_SCATTERED};
        unsigned char *seen = calloc(n, 1);
        uint32_t neighbours = 0;

        must(seen != NULL);
        for (uint32_t i = 18; i < t.n_blocks; i++) {
            uint32_t b = btree_block_nth(&t, i);

            must(b >= 18 && b < t.n_blocks && !seen[b - 18]);
            seen[b - 18] = 1;
            neighbours += i > 18 && b == btree_block_nth(&t, i - 1) + 1;
        }
        if (n >= 40)
            must(neighbours < n / 10);
        free(seen);
    }
}
END_TEST

/* ---- limits ------------------------------------------------------------------------ */

/* The next block comes from another arena. */
static void
move_arena(struct btree *t, uint64_t *rng)
{
    t->arena = (uint32_t)rnd_below(rng, t->n_arenas);
}

/* Fill the segment to the last block.  The insert that fails changes no byte. */
START_TEST(insert_leaves_full_segment_alone)
{
    const struct btree_config *config = &geometries[_i];
    struct btree probe = {0};
    struct btree t;
    struct btree_report report;
    struct model m;
    unsigned char *segment;
    uint64_t rng = env_seed() + (uint64_t)_i;
    bool has_large_blocks = config->block_size >= 65536; /* thousands of records each */
    size_t size;

    if (config->key_size < 8 || !env_is_chosen((uint64_t)_i))
        return;
    must_ok(btree_layout_set(&probe, config));
    size = (size_t)(probe.root + (has_large_blocks ? 8u : 40u)) * config->block_size;
    segment = tree_new(&t, config, size);
    model_init(&m, config);
    model_fill(&m, &t, &rng, segment, size, move_arena);
    must_ok(btree_check(&t, &report));
    must(report.unused + report.free <= report.height + 1);
    for (int i = 0; i < (has_large_blocks ? 4 : 10) / ENV_DEAR; i++) { /* room again */
        move_arena(&t, &rng);
        model_refill(&m, &t, &rng, (size_t)t.leaf_cap * 2, (size_t)t.leaf_cap * 2);
    }
    model_run_empty(&m, &t, &rng);
    must_ok(btree_check(&t, &report));
    must_eq(report.free + report.unused, report.n_blocks - t.root - 1);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

START_TEST(create_refuses_bad_sizes)
{
    static const struct btree_config bad[] = {
        GEOMETRY(0, 8, 4096),
        GEOMETRY(1025, 8, 4096),
        GEOMETRY(8, 1400, 4096),
        GEOMETRY(8, 8, 1024),
        GEOMETRY(8, 8, 4097),
        GEOMETRY(8, 8, 12288),
        GEOMETRY(8, 8, 1 << 20),
        GEOMETRY(8, 8, 0),
        GEOMETRY(1024, 1024, 4096),
        GEOMETRY(8, 8, 1),
        GEOMETRY(8, 700, 2048),
        GEOMETRY(8, UINT32_MAX, 4096),
        GEOMETRY(UINT32_MAX, 8, 4096),
        {.key_size = 8, .value_size = 8, .block_size = 4096, .allocation = 2},
    };
    size_t size = 64 * PAGE;
    unsigned char *segment = segment_new(size);
    struct btree t = {.key_size = 77};
    struct btree_config good = GEOMETRY(8, 8, 4096);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        must_eq(btree_create(&t, segment, size, &bad[i]), EINVAL);
    must_eq(btree_create(&t, segment, 9 * PAGE, &good), ENOSPC);
    must_eq(btree_open(&t, segment, size), ENOENT);
    must_eq(btree_open(&t, segment, 0), ENOENT);
    for (size_t i = 0; i < size; i++)
        must_eq(segment[i], 0);
    must_eq(t.key_size, 77);

    must_ok(btree_create(&t, segment, 10 * PAGE, &good));
    must_eq(btree_create(&t, segment, size, &good), EEXIST);
    must_eq(btree_open(&t, segment, 9 * PAGE), ENOSPC);
    must_ok(btree_open(&t, segment, size));
    must_eq(t.n_blocks, 10);
    header_of(&t)->version++;
    must_eq(btree_open(&t, segment, size), ENOTSUP);
    header_of(&t)->version--;
    header_of(&t)->key_size = 4096;
    must_eq(btree_open(&t, segment, size), EUCLEAN);
    segment_free(segment, size);
}
END_TEST

START_TEST(keys_order_integers)
{
    static const uint64_t v[] = {0, 1, 255, 256, 1u << 31, UINT64_MAX / 2, UINT64_MAX};
    unsigned char a[8], b[8];

    for (size_t i = 0; i < 7; i++) {
        tree_key_u64(v[i], a);
        must(tree_u64_key(a) == v[i]);
        if (i > 0)
            must(memcmp(b, a, 8) < 0);
        memcpy(b, a, 8);
    }
}
END_TEST

/* ---- damage ------------------------------------------------------------------------ */

/* A tree of three levels with free blocks, to be damaged. */
static unsigned char *
tree_sample(struct btree *t, size_t size)
{
    const struct btree_config config = GEOMETRY(128, 512, 4096);
    uint64_t rng = 1;
    struct model m;
    unsigned char *segment = tree_new(t, &config, size), key[128];

    model_init(&m, &config);
    model_sample(t, &config, ASCENDING, 4000);
    for (uint64_t i = 1000; i < 1200; i++) {
        model_key(&m, i, key);
        must_ok(btree_delete(t, key));
    }
    for (int i = 0; i < 1000; i++) {
        model_key(&m, rnd_below(&rng, 4000), key);
        (void)btree_delete(t, key);
    }
    return segment;
}

enum damage {
    SWAP_SLOTS,
    SLOT_TWICE,
    SLOT_RANGE,
    COUNT_HIGH,
    COUNT_LOW,
    KEY_HIGH,
    KEY_LOW,
    LEVEL,
    SELF,
    LEAF_LINK,
    LEAF_LAST,
    CHILD_RANGE,
    CHILD_TWICE,
    FREE_CYCLE,
    FREE_COUNT,
    FREE_LOST,
    FREE_LEVEL,
    CHUNK,
    HIGH_WATER,
    HEADER,
    N_DAMAGES
};

static struct btree_node *
first_leaf(const struct btree *t)
{
    struct btree_node *node = node_of(t, t->root);

    while (node->level > 0)
        node = node_of(t, node->link);
    return node;
}

static void
swap_slots(struct btree_node *node)
{
    uint16_t s = node->slots[0];

    node->slots[0] = node->slots[1];
    node->slots[1] = s;
}

/* link_last_leaf -- to itself, although no leaf follows. */
static void
link_last_leaf(const struct btree *t)
{
    struct btree_node *node = node_of(t, t->root);
    uint32_t b = node->link;

    while (node->level > 0) {
        b = child_at(t, node, node->n);
        node = node_of(t, b);
    }
    node->link = b;
}

static void
make_damage(const struct btree *t, int kind)
{
    struct btree_node *root = node_of(t, t->root), *leaf = first_leaf(t);
    struct btree_node *second = node_of(t, leaf->link);
    struct btree_arena *arena = arena_of(t, t->arena);

    switch (kind) {
    case SWAP_SLOTS:
        swap_slots(second);
        break;
    case SLOT_TWICE:
        leaf->slots[t->leaf_cap - 1] = leaf->slots[0];
        break;
    case SLOT_RANGE:
        leaf->slots[0] = 60000;
        break;
    case COUNT_HIGH:
        leaf->n = 60000;
        break;
    case COUNT_LOW:
        leaf->n = 0;
        break;
    case KEY_HIGH:
        memset(key_at(t, leaf, leaf->n - 1u), 0xff, t->key_size);
        break;
    case KEY_LOW:
        memset(key_at(t, second, 0), 0, t->key_size);
        break;
    case LEVEL:
        second->level = 7;
        break;
    case SELF:
        second->self++;
        break;
    case LEAF_LINK:
        leaf->link = second->link;
        break;
    case LEAF_LAST:
        link_last_leaf(t);
        break;
    case CHILD_RANGE:
    case CHILD_TWICE:
        *cell_child(t, root, root->slots[0]) =
            kind == CHILD_RANGE ? t->n_blocks : root->link;
        break;
    case FREE_CYCLE:
        node_of(t, arena->free_head)->link = arena->free_head;
        break;
    case FREE_COUNT:
        arena->free_count++;
        break;
    case FREE_LOST:
        arena->free_head = node_of(t, arena->free_head)->link;
        arena->free_count--;
        break;
    case FREE_LEVEL:
        node_of(t, arena->free_head)->level = 0;
        break;
    case CHUNK:
        arena->chunk_end++;
        break;
    case HIGH_WATER:
        header_of(t)->high_water--;
        break;
    default:
        header_of(t)->value_size++;
        break;
    }
}

START_TEST(check_reports_damage)
{
    size_t size = 1200 * PAGE;
    struct btree_report report;
    struct btree t;
    unsigned char *segment = tree_sample(&t, size);

    must_ok(btree_check(&t, &report));
    must(report.height >= 2 && report.free > 2);
    must(report.text[0] == '\0');
    make_damage(&t, _i);
    model_expect_damage(&t, _i);
    segment_free(segment, size);
}
END_TEST

/* Random bytes in the control fields: an answer, no crash, no endless loop. */
START_TEST(check_survives_random_damage)
{
    size_t size = 1200 * PAGE;
    uint64_t rng = env_seed();
    struct btree_report report;
    struct btree t;
    unsigned char *segment = tree_sample(&t, size), *good = malloc(size);
    unsigned found = 0;

    must(good != NULL);
    memcpy(good, segment, size);
    for (int i = 0; i < 3000; i++) {
        uint64_t blocks = t.n_blocks / 2;

        for (uint64_t n = 1 + rnd_below(&rng, 3); n > 0; n--)
            segment[rnd_below(&rng, blocks) * PAGE + rnd_below(&rng, 48)] =
                (unsigned char)rnd_next(&rng);
        found += btree_check(&t, &report) == EUCLEAN;
        memcpy(segment, good, blocks * PAGE);
    }
    must_ok(btree_check(&t, &report));
    printf("%u of 3000 found\n", found);
    must(found > 1000);
    free(good);
    segment_free(segment, size);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("btree_serial");
    TCase *model = env_tcase(s, "model", 120);
    TCase *more = env_tcase(s, "cursors and load", 120);
    TCase *limits = env_tcase(s, "limits", 120);
    TCase *damage = env_tcase(s, "damage", 120);

    tcase_add_loop_test(model, operations_agree_with_model, 0, N_GEOMETRIES);
    tcase_add_loop_test(model, orders_agree_with_model, 0, N_ORDERS);
    tcase_add_loop_test(more, cursor_agrees_with_model, 0, N_GEOMETRIES);
    tcase_add_loop_test(more, load_agrees_with_model, 0, N_GEOMETRIES);
    tcase_add_test(more, scattered_blocks_are_a_permutation);
    tcase_add_loop_test(limits, insert_leaves_full_segment_alone, 0, N_GEOMETRIES);
    tcase_add_test(limits, create_refuses_bad_sizes);
    tcase_add_test(limits, keys_order_integers);
    tcase_add_loop_test(damage, check_reports_damage, 0, N_DAMAGES);
    tcase_add_test(damage, check_survives_random_damage);
    return env_main(s);
}
