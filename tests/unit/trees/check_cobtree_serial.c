/* SPDX-License-Identifier: MIT */
/*
 * check_cobtree_serial.c -- the cache-oblivious B-tree on plain memory.
 *
 * GOAL    the layout is van Emde Boas'; the tree agrees with a sorted array whatever is done
 *         to it, in many geometries; a full segment changes nothing; cobtree_check() finds
 *         damage and survives it.
 * METHOD  the computed places beside the recursive definition; random operations beside
 *         the model; the segment is compared byte by byte where nothing may change; damage
 *         made by hand and at random, between guard pages.
 */
#include <config.h>

#define TREE_SERIAL   1
#define MODEL_COBTREE 1
#include "tree_serial.h"

#include "cobtree_layout.h"

#define PAGE ((size_t)COBTREE_PAGE)

#define SIZES(key, value)                  \
 {                                         \
  .key_size = (key), .value_size = (value) \
 }

static const struct cobtree_config geometries[] = {
    SIZES(1, 0),    SIZES(1, 8),      SIZES(2, 512),  SIZES(8, 0),   SIZES(8, 8),
    SIZES(8, 512),  SIZES(16, 0),     SIZES(16, 8),   SIZES(128, 0), SIZES(128, 8),
    SIZES(128, 64), SIZES(128, 512),  SIZES(7, 3),    SIZES(9, 1),   SIZES(13, 100),
    SIZES(1024, 0), SIZES(1024, 300), SIZES(8, 4000),
};
#define N_GEOMETRIES ((int)(sizeof geometries / sizeof geometries[0]))

/* A tree with room for `count` entries and no more. */
static unsigned char *
tree_new(struct cobtree *t, const struct cobtree_config *config, uint64_t count,
         size_t *sizep)
{
    unsigned char *segment;

    *sizep = cobtree_size(config, count);
    must(*sizep > 0);
    segment = segment_new(*sizep);
    must_ok(cobtree_create(t, segment, *sizep, config));
    return segment;
}

/* ---- layout ------------------------------------------------------------------------ */

/* The definition: the upper half, then the lower trees, each alike. */
static void
expect_layout(const struct veb *v, unsigned depth, uint64_t i, unsigned levels,
              uint64_t place)
{
    unsigned cut = levels / 2;
    uint64_t n_trees = (uint64_t)1 << cut;

    if (levels == 1) {
        must_eq(veb_place(v, depth, i), place);
        return;
    }
    expect_layout(v, depth, i, cut, place);
    for (uint64_t b = 0; b < n_trees; b++)
        expect_layout(v, depth + cut, i * n_trees + b, levels - cut,
                      place + n_trees - 1 + b * (((uint64_t)1 << (levels - cut)) - 1));
}

START_TEST(layout_is_recursive)
{
    struct veb v;

    veb_init(&v, (unsigned)_i);
    expect_layout(&v, 0, 1, (unsigned)_i, 0);
}
END_TEST

/* By hand: height 5, two levels over four trees of three, one level over two of two. */
START_TEST(layout_of_height_five)
{
    static const uint64_t order[] = {1, 2,  3,                   /* upper        */
                                     4, 8,  16, 17, 9,  18, 19,  /* lower, first */
                                     5, 10, 20, 21, 11, 22, 23,  /* -            */
                                     6, 12, 24, 25, 13, 26, 27,  /* -            */
                                     7, 14, 28, 29, 15, 30, 31}; /* -            */
    struct veb v;

    veb_init(&v, 5);
    for (uint64_t place = 0; place < 31; place++)
        must_eq(veb_place(&v, 63 - (unsigned)__builtin_clzll(order[place]), order[place]),
                place);
}
END_TEST

/* ---- the model -------------------------------------------------------------------- */

START_TEST(operations_agree_with_model)
{
    const struct cobtree_config *config = &geometries[_i];
    uint64_t rng = env_seed() + (uint64_t)_i;
    uint64_t n_keys = keys_of(config->key_size, 3000);
    struct cobtree t;
    struct cobtree_report report;
    struct model m;
    size_t size;
    unsigned char *segment;

    if (!env_is_chosen((uint64_t)_i))
        return;
    segment = tree_new(&t, config, 3000, &size);
    model_init(&m, config);
    model_run_life(&m, &t, &rng, n_keys);
    must_ok(cobtree_open(&t, segment, size)); /* a handle is nothing but what it reads */
    model_run(&m, &t, &rng, 1000, n_keys, 80);
    model_run_empty(&m, &t, &rng);
    must_ok(cobtree_check(&t, &report));
    must_eq(report.height, 0);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

START_TEST(cursor_agrees_with_model)
{
    const struct cobtree_config *config = &geometries[_i];
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct cobtree t;
    struct model m;
    size_t size;
    unsigned char *segment = tree_new(&t, config, 3000, &size);

    model_init(&m, config);
    model_run_cursor(&m, &t, &rng, keys_of(config->key_size, 500));
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

START_TEST(orders_agree_with_model)
{
    const struct cobtree_config config = SIZES(8, 64);
    uint64_t n = 8000, rng = env_seed();
    struct cobtree_report report;
    struct cobtree t;
    struct model m;
    size_t size;
    unsigned char *segment = tree_new(&t, &config, n, &size);

    model_init(&m, &config);
    model_insert_all(&m, &t, _i, n, &rng);
    must_ok(cobtree_check(&t, &report));
    must(report.entries * 4
         >= report.cells); /* not a quarter used: shrunk, or not grown */
    model_delete_all(&m, &t, _i, n);
    must_ok(cobtree_check(&t, &report));
    must_eq(report.height, 0);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

START_TEST(load_agrees_with_model)
{
    static const unsigned percents[] = {50, 75, 100};
    static const uint64_t counts[] = {0, 1, 16, 31, 32, 33, 64, 65, 1000, 4096};
    const struct cobtree_config config = SIZES(8, 24);
    unsigned percent = percents[_i % 3];
    uint64_t rng = env_seed() + (uint64_t)_i, n = counts[_i / 3];
    unsigned char key[MODEL_KEY_MAX], value[24];
    struct cobtree_report report;
    struct cobtree t;
    struct model m;
    struct model_source source = {.m = &m, .to = n};
    size_t size;
    unsigned char *segment = tree_new(&t, &config, 10000, &size);

    model_init(&m, &config);
    for (uint64_t i = 0; i < n; i++) {
        model_key(&m, 2 * i, key);
        model_value(&m, &rng, value);
        model_put(&m, key, value);
    }
    must_rc(cobtree_load(&t, model_next, &source, n + 1, percent), EINVAL);
    must_ok(cobtree_check(&t, &report)); /* ends early: still empty */
    must_eq(report.entries, 0);
    must_ok(cobtree_load(&t, model_next, &source, n, percent));
    model_compare(&m, &t);
    must_ok(cobtree_check(&t, &report));
    must(report.entries * 100 <= report.cells * percent);
    must(report.height == 0 || report.entries * 200 > report.cells * percent);
    must_rc(cobtree_load(&t, model_next, &source, n, percent), n > 0 ? EEXIST : 0);
    must_rc(cobtree_load(&t, model_next, &source, n, 49), EINVAL);
    must_rc(cobtree_load(&t, model_next, &source, n, 101), EINVAL);
    model_run(&m, &t, &rng, 3000, 2 * n + 10, 50);
    model_run_empty(&m, &t, &rng);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* Always the same key: in order no more. */
static bool
next_same(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    static const unsigned char key[8] = {1};

    (void)i;
    *keyp = key;
    *valuep = arg;
    return true;
}

START_TEST(load_refuses_disorder)
{
    const struct cobtree_config config = SIZES(8, 8);
    uint64_t rng = env_seed();
    unsigned char value[8] = {0};
    struct cobtree t;
    struct model m;
    size_t size;
    unsigned char *segment = tree_new(&t, &config, 10000, &size);

    model_init(&m, &config);
    must_rc(cobtree_load(&t, next_same, value, 100, 100), EINVAL);
    must_rc(cobtree_load(&t, next_same, value, 1 << 20, 100), ENOSPC);
    model_compare(&m, &t);
    model_run(&m, &t, &rng, 2000, 1000, 70);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* ---- limits ------------------------------------------------------------------------ */

/* Fill the array to its bound.  The insert that fails changes no byte. */
START_TEST(insert_leaves_full_segment_alone)
{
    const struct cobtree_config *config = &geometries[_i];
    uint64_t rng = env_seed() + (uint64_t)_i;
    unsigned char *segment;
    struct cobtree_report report;
    struct cobtree t;
    struct model m;
    size_t size;

    if (config->key_size < 8 || !env_is_chosen((uint64_t)_i))
        return;
    segment = tree_new(&t, config, 16 * COBTREE_WHOLE_MOST, &size);
    model_init(&m, config);
    model_fill(&m, &t, &rng, segment, size, NULL);
    must_ok(cobtree_check(&t, &report));
    must_eq(report.height, 4);
    must(report.entries >= 16 * COBTREE_WHOLE_MOST);
    for (int i = 0; i < 10; i++) /* room comes back */
        model_refill(&m, &t, &rng, 100, 200);
    model_run_empty(&m, &t, &rng);
    model_fini(&m);
    segment_free(segment, size);
}
END_TEST

/* cobtree_size() keeps its word: so many entries fit, whatever their order. */
START_TEST(promised_size_is_enough)
{
    const struct cobtree_config config = SIZES(8, 0);

    for (uint64_t n = 1; n < 5000; n = n * 3 / 2 + 1) {
        struct cobtree t;
        size_t size;
        unsigned char key[8], *segment = tree_new(&t, &config, n, &size);

        for (uint64_t i = 0; i < n; i++) {
            tree_key_u64(order_id(_i, i, n), key);
            must_rc(cobtree_insert(&t, key, NULL, TREE_PUT, NULL), 0);
        }
        segment_free(segment, size);
    }
}
END_TEST

START_TEST(create_refuses_bad_sizes)
{
    static const struct cobtree_config bad[] = {SIZES(0, 8), SIZES(1025, 8),
                                                SIZES(8, 65537), SIZES(8, UINT32_MAX),
                                                SIZES(UINT32_MAX, 8)};
    const struct cobtree_config good = SIZES(8, 8);
    size_t size = 64 * PAGE;
    unsigned char *segment = segment_new(size);
    struct cobtree t = {.key_size = 77};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        must_eq(cobtree_create(&t, segment, size, &bad[i]), EINVAL);
        must_eq(cobtree_size(&bad[i], 1), 0);
    }
    must_eq(cobtree_size(&good, UINT64_MAX), 0);
    must_eq(cobtree_create(&t, segment, PAGE, &good), ENOSPC);
    must_eq(cobtree_open(&t, segment, size), ENOENT);
    must_eq(cobtree_open(&t, segment, 0), ENOENT);
    for (size_t i = 0; i < size; i++)
        must_eq(segment[i], 0);
    must_eq(t.key_size, 77);

    must_ok(cobtree_create(&t, segment, 2 * PAGE, &good));
    must_eq(cobtree_create(&t, segment, size, &good), EEXIST);
    must_eq(cobtree_open(&t, segment, PAGE), ENOSPC);
    must_ok(cobtree_open(&t, segment, size));
    header_of(&t)->version++;
    must_eq(cobtree_open(&t, segment, size), ENOTSUP);
    header_of(&t)->version--;
    header_of(&t)->height = t.height_max + 1;
    must_eq(cobtree_open(&t, segment, size), EUCLEAN);
    header_of(&t)->height = 0;
    header_of(&t)->key_size = 4096;
    must_eq(cobtree_open(&t, segment, size), EUCLEAN);
    segment_free(segment, size);
}
END_TEST

/* ---- damage ------------------------------------------------------------------------ */

#define SAMPLE 3000u

/* A tree to be damaged. */
static unsigned char *
tree_sample(struct cobtree *t, size_t *sizep)
{
    const struct cobtree_config config = SIZES(128, 64);
    unsigned char *segment = tree_new(t, &config, SAMPLE, sizep);

    model_sample(t, &config, SHUFFLED, SAMPLE);
    return segment;
}

enum damage {
    KEY_HIGH,
    KEY_LOW,
    KEY_TWICE,
    GAP_KEY,
    TOO_FEW,
    EMPTY,
    SEPARATOR_LOW,
    SEPARATOR_HIGH,
    SEPARATORS_SWAPPED,
    HEIGHT_LESS,
    HEIGHT_MORE,
    HEIGHT_RANGE,
    HEADER,
    N_DAMAGES
};

static void
make_damage(const struct cobtree *t, int kind)
{
    struct cobtree_leaf *leaf = leaf_of(t, 5);
    unsigned first = bits_next(leaf->used, 0), second = bits_next(leaf->used, first + 1);
    uint32_t gaps = ~leaf->used;
    unsigned char *root = separator_at(t, 0), swap[128];

    switch (kind) {
    case KEY_HIGH:
        memset(leaf_key(t, leaf, first), 0xff, t->key_size);
        break;
    case KEY_LOW:
        memset(leaf_key(t, leaf, first), 0, t->key_size);
        break;
    case KEY_TWICE:
        for (unsigned cell = first; cell <= second; cell++)
            memcpy(leaf_key(t, leaf, cell), leaf_key(t, leaf, second), t->key_size);
        break;
    case GAP_KEY:
        must(gaps != 0);
        memset(leaf_key(t, leaf, bits_last(gaps)), 0, t->key_size);
        break;
    case TOO_FEW:
        leaf->used = UINT32_C(1) << first;
        break;
    case EMPTY:
        leaf->used = 0;
        break;
    case SEPARATOR_LOW:
        memset(root, 0, t->key_size);
        break;
    case SEPARATOR_HIGH:
        memset(root, 0xff, t->key_size);
        break;
    case SEPARATORS_SWAPPED:
        memcpy(swap, root, t->key_size);
        memcpy(root, root + t->key_size, t->key_size);
        memcpy(root + t->key_size, swap, t->key_size);
        break;
    case HEIGHT_LESS: /* the index is then laid out for another tree */
        header_of(t)->height--;
        break;
    case HEIGHT_MORE:
        header_of(t)->height++;
        break;
    case HEIGHT_RANGE:
        header_of(t)->height = 77;
        break;
    default:
        header_of(t)->value_size++;
        break;
    }
}

START_TEST(check_reports_damage)
{
    struct cobtree_report report;
    struct cobtree t;
    size_t size;
    unsigned char *segment = tree_sample(&t, &size);

    must_ok(cobtree_check(&t, &report));
    must(report.height >= 6);
    must(report.text[0] == '\0');
    make_damage(&t, _i);
    model_expect_damage(&t, _i);
    segment_free(segment, size);
}
END_TEST

/* Random bytes in header, index and leaves: an answer, no crash, no endless loop. */
START_TEST(check_survives_random_damage)
{
    uint64_t rng = env_seed();
    struct cobtree_report report;
    struct cobtree t;
    size_t size;
    unsigned char *segment = tree_sample(&t, &size), *good = malloc(size);
    unsigned found = 0;

    must(good != NULL);
    memcpy(good, segment, size);
    for (int i = 0; i < 1000; i++) {
        size_t limit = rnd_below(&rng, 2) ? t.leaves : size;

        for (uint64_t n = 1 + rnd_below(&rng, 3); n > 0; n--)
            segment[rnd_below(&rng, limit)] = (unsigned char)rnd_next(&rng);
        found += cobtree_check(&t, &report) == EUCLEAN;
        memcpy(segment, good, size);
    }
    must_ok(cobtree_check(&t, &report));
    printf("%u of 1000 found\n", found);
    must(found > 100);
    free(good);
    segment_free(segment, size);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("cobtree_serial");
    TCase *layout = env_tcase(s, "layout", 120);
    TCase *model = env_tcase(s, "model", 120);
    TCase *limits = env_tcase(s, "limits", 120);
    TCase *damage = env_tcase(s, "damage", 120);

    tcase_add_loop_test(layout, layout_is_recursive, 1, 18);
    tcase_add_test(layout, layout_of_height_five);
    tcase_add_loop_test(model, operations_agree_with_model, 0, N_GEOMETRIES);
    tcase_add_loop_test(model, cursor_agrees_with_model, 0, N_GEOMETRIES);
    tcase_add_loop_test(model, orders_agree_with_model, 0, N_ORDERS);
    tcase_add_loop_test(model, load_agrees_with_model, 0, 30);
    tcase_add_test(model, load_refuses_disorder);
    tcase_add_loop_test(limits, insert_leaves_full_segment_alone, 0, N_GEOMETRIES);
    tcase_add_loop_test(limits, promised_size_is_enough, 0, N_ORDERS);
    tcase_add_test(limits, create_refuses_bad_sizes);
    tcase_add_loop_test(damage, check_reports_damage, 0, N_DAMAGES);
    tcase_add_test(damage, check_survives_random_damage);
    return env_main(s);
}
