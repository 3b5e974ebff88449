/* SPDX-License-Identifier: MIT */
/*
 * check_vtree.c -- keys and values of any length; built twice, serial and transactional.
 *
 * GOAL    the tree agrees with a list of what was put; a value that does not fit changes
 *         nothing; all of a value is there or nothing of it.
 * METHOD  random keys, some of which begin others, and values of none to many pieces,
 *         beside a sorted array; a segment that is full most of the time.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "env.h"
#include "vtree.h"

#define N_KEYS    120
#define KEY_MAX   12
#define VALUE_MAX 3000

#ifdef TREE_SERIAL
# define SUITE "vtree_serial"
#else
# define SUITE "vtree_txn"
#endif

static const struct vtree_config configs[] = {
    {.key_max = KEY_MAX, .piece_size = 100, .block_size = 4096},
    {.key_max = KEY_MAX, .piece_size = 1, .block_size = 2048},
    {.key_max = VTREE_KEY_MAX, .piece_size = 500, .block_size = 16384},
    {.key_max = KEY_MAX + 1, .piece_size = 4000, .block_size = 65536},
};
#define N_CONFIGS ((int)(sizeof configs / sizeof configs[0]))

/* What the tree must hold; sorted. */
struct entry {
    unsigned char key[KEY_MAX];
    size_t key_len;
    bool there;
    size_t value_len;
    unsigned char value[VALUE_MAX];
};

static struct entry model[N_KEYS];

static int
order_of(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t common = x->key_len < y->key_len ? x->key_len : y->key_len;
    int rc = memcmp(x->key, y->key, common);

    return rc != 0 ? rc : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* Different keys of two letters, so that many are beginnings of others; the empty one too. */
static void
model_init(uint64_t *rng)
{
    for (size_t i = 0; i < N_KEYS;) {
        struct entry *e = &model[i];
        bool is_new = true;

        *e = (struct entry){.key_len = i == 0 ? 0 : rnd_below(rng, KEY_MAX + 1)};
        for (size_t j = 0; j < e->key_len; j++)
            e->key[j] = (unsigned char)(rnd_below(rng, 3) == 0 ? 0xff : 0);
        for (size_t j = 0; j < i; j++)
            is_new = is_new && order_of(&model[j], e) != 0;
        i += is_new;
    }
    qsort(model, N_KEYS, sizeof model[0], order_of);
}

static void *
segment_new(size_t size)
{
    void *base;

#ifdef TREE_SERIAL
    base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
#else
    must_ok(xInit(ENV_DIR, NONDURABLE));
    base = xMmap(ENV_FILE, size);
#endif
    must(base != MAP_FAILED);
    return base;
}

static void
segment_done(void)
{
#ifndef TREE_SERIAL
    env_detach();
#endif
}

/* The tree holds exactly the model, and is sound. */
static void
expect_model(struct vtree *v)
{
    unsigned char key[VTREE_KEY_MAX], value[VALUE_MAX];
    struct btree_report report;
    size_t len = 0, value_len;
    int rc = vtree_next(v, NULL, 0, key, &len);

    must_ok(btree_check(&v->tree, &report));
    for (size_t i = 0; i < N_KEYS; i++) {
        const struct entry *e = &model[i];

        must_rc(vtree_get(v, e->key, e->key_len, value, VALUE_MAX, &value_len),
                e->there ? 0 : ENOENT);
        if (!e->there)
            continue;
        must_eq(value_len, e->value_len);
        must(memcmp(value, e->value, value_len) == 0);
        must_ok(rc);
        must_eq(len, e->key_len);
        must(memcmp(key, e->key, len) == 0);
        rc = vtree_next(v, key, len, key, &len);
    }
    must_rc(rc, ENOENT);
}

/* ret whether there was room; `may_fail`: there need not be. */
static bool
step_put(struct vtree *v, struct entry *e, uint64_t *rng, bool may_fail)
{
    unsigned char value[VALUE_MAX];
    size_t len = rnd_below(rng, 4) == 0 ? rnd_below(rng, VALUE_MAX) : rnd_below(rng, 300);
    int rc;

    if (rnd_below(rng, 4) == 0) /* whole pieces, none included */
        len -= len % v->piece_size;
    for (size_t i = 0; i < len; i++)
        value[i] = (unsigned char)rnd_next(rng);
    rc = vtree_put(v, e->key, e->key_len, value, len);
    if (rc == ENOSPC && may_fail)
        return false;
    must_ok(rc);
    e->there = true;
    e->value_len = len;
    memcpy(e->value, value, len);
    return true;
}

/* ret how often there was no room. */
static unsigned
run_steps(struct vtree *v, uint64_t *rng, unsigned n, bool may_fail)
{
    unsigned char value[VALUE_MAX];
    unsigned n_full = 0;

    for (unsigned i = 0; i < n; i++) {
        struct entry *e = &model[rnd_below(rng, N_KEYS)];
        size_t room = rnd_below(rng, VALUE_MAX), len;

        switch (rnd_below(rng, 5)) {
        case 0:
            must_rc(vtree_delete(v, e->key, e->key_len), e->there ? 0 : ENOENT);
            e->there = false;
            break;
        case 1:
            must_rc(vtree_get(v, e->key, e->key_len, value, room, &len),
                    e->there ? 0 : ENOENT);
            if (e->there) {
                must_eq(len, e->value_len);
                must(memcmp(value, e->value, len < room ? len : room) == 0);
            }
            break;
        default:
            n_full += !step_put(v, e, rng, may_fail);
        }
        if (i % 100 == 0)
            expect_model(v);
    }
    expect_model(v);
    return n_full;
}

START_TEST(operations_agree_with_model)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    size_t size = (size_t)32 << 20;
    void *base = segment_new(size);
    struct btree_report report;
    struct vtree v;

    model_init(&rng);
    must_ok(vtree_create(&v, base, size, &configs[_i]));
    must_eq(run_steps(&v, &rng, 1000, false), 0);
    must_ok(vtree_open(&v, base, size));
    must_eq(run_steps(&v, &rng, 500, false), 0);
    for (size_t i = 0; i < N_KEYS; i++)
        (void)vtree_delete(&v, model[i].key, model[i].key_len);
    must_ok(btree_check(&v.tree, &report));
    must_eq(report.entries, 0);
    segment_done();
}
END_TEST

/* A value for which there is no room leaves the old one, whole. */
START_TEST(full_segment_keeps_what_it_has)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    size_t block = configs[_i].block_size;
    size_t size = 9 * (size_t)4096 + (block > 4096 ? block : 4096) * 6;
    unsigned n_full;
    void *base = segment_new(size);
    struct vtree v;

    model_init(&rng);
    must_ok(vtree_create(&v, base, size, &configs[_i]));
    n_full = run_steps(&v, &rng, 1500, true);
    must(n_full > 10 && n_full < 1000);
    segment_done();
}
END_TEST

START_TEST(bad_sizes_are_refused)
{
    static const struct vtree_config bad[] = {
        {.key_max = 0, .piece_size = 8, .block_size = 4096},
        {.key_max = VTREE_KEY_MAX + 1, .piece_size = 8, .block_size = 65536},
        {.key_max = 8, .piece_size = 0, .block_size = 4096},
        {.key_max = 8, .piece_size = UINT32_MAX, .block_size = 4096},
        {.key_max = 8, .piece_size = 8, .block_size = 1000},
    };
    size_t size = (size_t)1 << 20, len;
    void *base = segment_new(size);
    unsigned char key[KEY_MAX + 1] = {0};
    struct vtree v;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        must_rc(vtree_create(&v, base, size, &bad[i]), EINVAL);
    must_rc(vtree_open(&v, base, size), ENOENT);
    must_ok(vtree_create(&v, base, size, &configs[0]));
    must_rc(vtree_put(&v, key, KEY_MAX + 1, NULL, 0), EINVAL);
    must_rc(vtree_put(&v, key, 1, key, (size_t)VTREE_VALUE_MAX + 1), EINVAL);
    must_rc(vtree_get(&v, key, KEY_MAX + 1, NULL, 0, NULL), EINVAL);
    must_rc(vtree_delete(&v, key, KEY_MAX + 1), EINVAL);
    must_rc(vtree_next(&v, key, KEY_MAX + 1, key, &len), EINVAL);
    must_rc(vtree_next(&v, NULL, 0, key, &len), ENOENT);
    segment_done();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create(SUITE);
    TCase *tc = env_tcase(s, "vtree", 120);

    tcase_add_loop_test(tc, operations_agree_with_model, 0, N_CONFIGS);
    tcase_add_loop_test(tc, full_segment_keeps_what_it_has, 0, N_CONFIGS);
    tcase_add_test(tc, bad_sizes_are_refused);
    return env_main(s);
}
