/* SPDX-License-Identifier: MIT */
/*
 * check_xactree.c -- libxactree through its header and library: what xactree.h says.
 *
 * GOAL    a tree agrees with a list of what was put, whatever the operations are; cursors, ranges
 *         and counts too.  An abort undoes everything.  A full tree changes nothing.  Segments
 *         without a tree, and damaged ones, are refused in words; the checker finds damage.
 * METHOD  random keys, some of which begin others, and values of none to many pieces, beside a
 *         sorted array; one transaction of several operations after another, each fourth of
 *         which is aborted, and the array with it.  Bytes of a segment are damaged.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>
#include <xactree.h>

#include "env.h"

#define N_KEYS    100
#define KEY_MAX   12
#define VALUE_MAX 1500
#define SIZE      ((size_t)8 << 20)

/* What the tree must hold; sorted. */
struct entry {
    unsigned char key[KEY_MAX];
    size_t key_len;
    bool there;
    size_t value_len;
    unsigned char value[VALUE_MAX];
};

static struct entry model[N_KEYS], before[N_KEYS];

static const struct xactree_config configs[] = {
    {.key_max = KEY_MAX, .piece_size = 100},
    {.key_max = KEY_MAX, .piece_size = 1, .block_size = 2048},
    {.key_max = XACTREE_KEY_MAX, .piece_size = 500},
    {.key_max = KEY_MAX + 1, .piece_size = 4000, .block_size = 65536},
};
#define N_CONFIGS ((int)(sizeof configs / sizeof configs[0]))

static struct xactree_config
config_of(int i)
{
    struct xactree_config c;

    xactree_config_init(&c, sizeof c);
    must_eq(c.size, sizeof c);
    c.key_max = configs[i].key_max;
    c.piece_size = configs[i].piece_size;
    c.block_size = configs[i].block_size;
    return c;
}

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
    memset(model, 0, sizeof model);
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

/* The first entry that is there, from rank i on; N_KEYS if there is none. */
static size_t
model_from(size_t i)
{
    while (i < N_KEYS && !model[i].there)
        i++;
    return i;
}

/* The last entry that is there before rank i; N_KEYS if there is none. */
static size_t
model_before(size_t i)
{
    while (i-- > 0)
        if (model[i].there)
            return i;
    return N_KEYS;
}

static struct xactree_bytes
key_of(size_t i)
{
    return (struct xactree_bytes){model[i].key, model[i].key_len};
}

/* ---- The tree and the model agree ----------------------------------------------------- */

/* The cursor stands on the entry of rank i, and shows its value. */
static void
expect_at(struct xactree_cursor *cursor, size_t i)
{
    unsigned char value[VALUE_MAX];
    struct xactree_bytes key;
    size_t len;

    must_ok(xactree_cursor_key(cursor, &key));
    must_eq(key.len, model[i].key_len);
    must(memcmp(key.data, model[i].key, key.len) == 0);
    must_ok(xactree_cursor_value(cursor, value, sizeof value, &len));
    must_eq(len, model[i].value_len);
    must(memcmp(value, model[i].value, len) == 0);
}

static void
expect_walk(struct xactree *t)
{
    struct xactree_cursor *cursor;
    size_t i, at = model_from(0);

    must_ok(xactree_cursor_open(&cursor, t));
    must_rc(xactree_cursor_first(cursor), at < N_KEYS ? 0 : ENOENT);
    for (; at < N_KEYS; at = i) {
        expect_at(cursor, at);
        i = model_from(at + 1);
        must_rc(xactree_cursor_next(cursor), i < N_KEYS ? 0 : ENOENT);
    }
    at = model_before(N_KEYS);
    must_rc(xactree_cursor_last(cursor), at < N_KEYS ? 0 : ENOENT);
    for (; at < N_KEYS; at = i) {
        expect_at(cursor, at);
        i = model_before(at);
        must_rc(xactree_cursor_prev(cursor), i < N_KEYS ? 0 : ENOENT);
    }
    xactree_cursor_close(cursor);
}

/* What a scan has come to. */
struct walk {
    size_t at;   /* rank of the next entry expected                                   */
    size_t left; /* entries until the scan is to stop                                 */
};

static int
expect_visit(void *arg, const struct xactree_bytes *key,
             const struct xactree_bytes *value)
{
    struct walk *w = arg;
    const struct entry *e;

    w->at = model_from(w->at);
    must(w->at < N_KEYS);
    e = &model[w->at++];
    must_eq(key->len, e->key_len);
    must(memcmp(key->data, e->key, key->len) == 0);
    must_eq(value->len, e->value_len);
    must(memcmp(value->data, e->value, value->len) == 0);
    return --w->left > 0 ? 0 : 4711;
}

static void
expect_range(struct xactree *t, size_t from, size_t to)
{
    struct xactree_bytes low = key_of(from), high = to < N_KEYS ? key_of(to) : low;
    const struct xactree_bytes *end = to < N_KEYS ? &high : NULL;
    struct walk w = {.at = from, .left = SIZE_MAX};
    uint64_t count = 0, expected = 0;

    for (size_t i = from; i < to; i++)
        expected += model[i].there;
    must_ok(xactree_count(t, &low, end, &count));
    must_eq(count, expected);
    must_ok(xactree_scan(t, &low, end, expect_visit, &w));
    must(from > to || model_from(w.at) >= to);
    if (expected == 0)
        return;
    w = (struct walk){.at = from, .left = expected};
    must_rc(xactree_scan(t, &low, end, expect_visit, &w), 4711);
    must_eq(w.left, 0);
}

static void
expect_model(struct xactree *t)
{
    struct xactree_report report;
    uint64_t n = 0, count;

    must_ok(xactree_check(t, &report, sizeof report));
    for (size_t i = 0; i < N_KEYS; i++)
        n += model[i].there;
    must_eq(report.entries, n);
    must(report.text[0] == '\0');
    must_ok(xactree_count(t, NULL, NULL, &count));
    must_eq(count, n);
    expect_walk(t);
}

/* ---- Random operations --------------------------------------------------------------- */

static int
step_put(struct xactree *t, struct entry *e, uint64_t *rng)
{
    unsigned char value[VALUE_MAX];
    size_t len = rnd_below(rng, 4) == 0 ? rnd_below(rng, VALUE_MAX) : rnd_below(rng, 300);
    int mode = (int)rnd_below(rng, 3), rc;
    int expected = mode == XACTREE_ADD && e->there        ? EEXIST
                   : mode == XACTREE_REPLACE && !e->there ? ENOENT
                                                          : 0;

    for (size_t i = 0; i < len; i++)
        value[i] = (unsigned char)rnd_next(rng);
    rc = xactree_put(t, e->key, e->key_len, value, len, mode);
    if (rc == ENOSPC)
        return rc;
    must_rc(rc, expected);
    if (rc != 0)
        return 0;
    e->there = true;
    e->value_len = len;
    memcpy(e->value, value, len);
    return 0;
}

static void
step_delete_range(struct xactree *t, uint64_t *rng)
{
    size_t from = rnd_below(rng, N_KEYS), to = from + rnd_below(rng, 10);
    struct xactree_bytes low = key_of(from), high;
    uint64_t count = 0, expected = 0;

    if (to >= N_KEYS)
        to = N_KEYS - 1;
    high = key_of(to);
    for (size_t i = from; i < to; i++) {
        expected += model[i].there;
        model[i].there = false;
    }
    must_ok(xactree_delete_range(t, &low, &high, &count));
    must_eq(count, expected);
}

/* One operation.  ret 0 or ENOSPC */
static int
step(struct xactree *t, struct xactree_cursor *cursor, uint64_t *rng)
{
    size_t i = rnd_below(rng, N_KEYS), at, len, room = rnd_below(rng, VALUE_MAX);
    struct entry *e = &model[i];
    unsigned char value[VALUE_MAX];

    switch (rnd_below(rng, 10)) {
    case 0:
    case 1:
        must_rc(xactree_delete(t, e->key, e->key_len), e->there ? 0 : ENOENT);
        e->there = false;
        return 0;
    case 2:
        must_rc(xactree_get(t, e->key, e->key_len, value, room, &len),
                e->there ? 0 : ENOENT);
        must(!e->there || len == e->value_len);
        must(!e->there || memcmp(value, e->value, len < room ? len : room) == 0);
        return 0;
    case 3:
        at = model_from(i);
        must_rc(xactree_cursor_seek(cursor, e->key, e->key_len),
                at < N_KEYS ? 0 : ENOENT);
        if (at < N_KEYS)
            expect_at(cursor, at);
        return 0;
    case 4:
        at = i + rnd_below(rng, N_KEYS);
        expect_range(t, i, at < N_KEYS ? at : N_KEYS);
        return 0;
    case 5:
        if (rnd_below(rng, 5) == 0)
            step_delete_range(t, rng);
        return 0;
    default:
        return step_put(t, e, rng);
    }
}

/*
 * The cursor's place is kept by its key: what is next and before follows from the model.  The
 * cursor is moved there and back.
 */
static void
expect_neighbours(struct xactree_cursor *cursor)
{
    struct entry at = {.key_len = 0};
    struct xactree_bytes key;
    size_t rank = 0, next, prev;

    if (xactree_cursor_key(cursor, &key) == ENOENT)
        return;
    at.key_len = key.len;
    memcpy(at.key, key.data, key.len);
    while (order_of(&model[rank], &at) != 0)
        must(++rank < N_KEYS);
    next = model_from(rank + 1);
    must_rc(xactree_cursor_next(cursor), next < N_KEYS ? 0 : ENOENT);
    if (next < N_KEYS)
        expect_at(cursor, next);
    prev = model_before(next < N_KEYS ? next : rank);
    must_rc(xactree_cursor_prev(cursor), prev < N_KEYS ? 0 : ENOENT);
    if (prev < N_KEYS)
        expect_at(cursor, prev);
}

/* Transactions of several operations, some of which are aborted.  ret how often there was no room */
static unsigned
run_steps(struct xactree *t, uint64_t *rng, unsigned n)
{
    struct xactree_cursor *cursor;
    unsigned n_full = 0;

    must_ok(xactree_cursor_open(&cursor, t));
    for (unsigned i = 0; i < n; i++) {
        bool is_aborted = rnd_below(rng, 4) == 0;

        if (rnd_below(rng, 3) == 0) { /* on its own */
            n_full += step(t, cursor, rng) == ENOSPC;
            continue;
        }
        memcpy(before, model, sizeof model);
        must_ok(xac_begin());
        for (size_t steps = rnd_below(rng, 8); steps > 0; steps--) {
            n_full += step(t, cursor, rng) == ENOSPC;
            expect_neighbours(cursor);
        }
        if (is_aborted)
            must_ok(xac_abort());
        must_rc(xac_end(), is_aborted ? XAC_ABORTED : XAC_COMMITTED);
        if (is_aborted)
            memcpy(model, before, sizeof model);
        expect_neighbours(cursor);
        if (i % 50 == 0)
            expect_model(t);
    }
    xactree_cursor_close(cursor);
    expect_model(t);
    return n_full;
}

START_TEST(operations_agree_with_model)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct xactree_config config = config_of(_i), got;
    struct xactree *t;
    void *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must(base != MAP_FAILED);
    model_init(&rng);
    must_ok(xactree_create(&t, NULL, base, SIZE, &config));
    must_eq(run_steps(t, &rng, 1000), 0);
    xactree_close(t);
    must_ok(xactree_open(&t, NULL, base, SIZE));
    must_ok(xactree_get_config(t, &got, sizeof got));
    must_eq(got.key_max, config.key_max);
    must_eq(got.piece_size, config.piece_size);
    must(config.block_size == 0 || got.block_size == config.block_size);
    must_eq(run_steps(t, &rng, 200), 0);
    must_ok(xactree_delete_range(t, NULL, NULL, NULL));
    memset(model, 0, sizeof model);
    expect_model(t);
    xactree_close(t);
    env_detach();
}
END_TEST

/* A program that promises to announce every store: the tree announces its own. */
START_TEST(stores_are_announced)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct xactree_config config = config_of(_i);
    struct xactree *t;
    void *base;

    env_announce();
    env_init(XAC_NONDURABLE);
    base = xac_mmap(ENV_FILE, SIZE);
    must(base != MAP_FAILED);
    model_init(&rng);
    must_ok(xactree_create(&t, NULL, base, SIZE, &config));
    must_eq(run_steps(t, &rng, 200), 0);
    xactree_close(t);
    env_detach();
}
END_TEST

/* A value for which there is no room leaves the old one, whole. */
START_TEST(full_tree_keeps_what_it_has)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct xactree_config config = config_of(_i), got;
    size_t size = (size_t)20 << 20, block;
    unsigned n_full;
    struct xactree *t;
    void *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, size);
    must(base != MAP_FAILED);
    model_init(&rng);
    must_ok(xac_begin()); /* which block size has it? */
    must_ok(xactree_create(&t, NULL, base, size, &config));
    must_ok(xac_abort());
    must_rc(xac_end(), XAC_ABORTED);
    must_ok(xactree_get_config(t, &got, sizeof got));
    xactree_close(t);
    block = got.block_size;
    size = 10 * (size_t)4096 + (block > 4096 ? block : 4096) * 4;
    must_ok(xactree_create(&t, NULL, base, size, &config));
    n_full = run_steps(t, &rng, 600);
    must(n_full > 0);
    must(strstr(xactree_last_error(), "no block left") != NULL);
    xactree_close(t);
    env_detach();
}
END_TEST

/* ---- Bulk load ------------------------------------------------------------------------ */

/* Hands out model[] from rank `first` on. */
struct stream {
    size_t first, end;
};

static int
stream_next(void *arg, uint64_t i, struct xactree_bytes *key, struct xactree_bytes *value)
{
    const struct stream *s = arg;

    if (s->first + i >= s->end)
        return 0;
    *key = key_of(s->first + i);
    *value =
        (struct xactree_bytes){model[s->first + i].value, model[s->first + i].value_len};
    return 1;
}

static void
model_fill(uint64_t *rng)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        model[i].value_len = rnd_below(rng, VALUE_MAX);
        for (size_t j = 0; j < model[i].value_len; j++)
            model[i].value[j] = (unsigned char)rnd_next(rng);
    }
}

static void
model_there(size_t n)
{
    for (size_t i = 0; i < N_KEYS; i++)
        model[i].there = i < n;
}

START_TEST(load_takes_sorted_entries)
{
    uint64_t rng = env_seed() + (uint64_t)_i, count = 77;
    struct xactree_config config = config_of(_i);
    struct stream half = {0, N_KEYS / 2}, rest = {N_KEYS / 2, N_KEYS}, again = {5, 9};
    struct xactree *t;
    void *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    model_init(&rng);
    model_fill(&rng);
    must_ok(xactree_create(&t, NULL, base, SIZE, &config));
    must_rc(xactree_load(t, stream_next, &half, 49, &count), EINVAL);
    must_eq(count, 0);
    must_ok(xactree_load(t, stream_next, &half, 70, &count));
    must_eq(count, N_KEYS / 2);
    model_there(N_KEYS / 2);
    expect_model(t);
    must_rc(xactree_load(t, stream_next, &again, 70, &count), EINVAL);
    must_eq(count, 0);
    must(strstr(xactree_last_error(), "not above the one before") != NULL);
    expect_model(t);
    must_ok(xac_begin());
    must_ok(xactree_load(t, stream_next, &rest, 100, &count));
    must_ok(xac_abort());
    must_rc(xac_end(), XAC_ABORTED);
    expect_model(t);
    must_ok(xactree_load(t, stream_next, &rest, 100, &count));
    must_eq(count, N_KEYS - N_KEYS / 2);
    model_there(N_KEYS);
    expect_model(t);
    must_eq(run_steps(t, &rng, 100), 0);
    xactree_close(t);
    env_detach();
}
END_TEST

/* No entry is there in part: the last one that has no room is not there at all. */
START_TEST(load_keeps_whole_entries_when_full)
{
    uint64_t rng = env_seed(), count = 0;
    struct xactree_config config = config_of(0);
    struct stream all = {0, N_KEYS};
    size_t size = 20 * 4096;
    struct xactree *t;
    void *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, size);
    model_init(&rng);
    model_fill(&rng);
    must_ok(xactree_create(&t, NULL, base, size, &config));
    must_rc(xactree_load(t, stream_next, &all, 100, &count), ENOSPC);
    must(count > 5 && count < N_KEYS);
    model_there(count);
    expect_model(t);
    xactree_close(t);
    env_detach();
}
END_TEST

/* ---- What is refused -------------------------------------------------------------------- */

static void
expect_words(const char *words)
{
    if (strstr(xactree_last_error(), words) == NULL)
        env_fail(__FILE__, __LINE__, "no '%s' in '%s'", words, xactree_last_error());
}

/* Store a byte, and expect xactree_open() to say so; then put the old one back. */
static void
expect_refused(unsigned char *base, size_t offset, int code, const char *words)
{
    struct xactree *t = NULL;
    unsigned char old;

    must_ok(xac_begin());
    old = base[offset];
    base[offset] ^= 0x41;
    must_rc(xactree_open(&t, NULL, base, SIZE), code);
    must(t == NULL);
    expect_words(words);
    base[offset] = old;
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xactree_open(&t, NULL, base, SIZE));
    xactree_close(t);
}

START_TEST(foreign_and_damaged_segments_are_refused)
{
    struct xactree *t = NULL;
    unsigned char *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must_rc(xactree_open(&t, NULL, base, SIZE), ENOENT);
    expect_words("no tree");
    must_ok(xac_begin());
    base[4095] = 1;
    must_rc(xac_end(), XAC_COMMITTED);
    must_rc(xactree_open(&t, NULL, base, SIZE), XAC_EFOREIGN);
    expect_words("something else");
    must_rc(xactree_create(&t, NULL, base, SIZE, NULL), XAC_EFOREIGN);
    expect_words("not zero bytes");
    must_ok(xac_begin());
    base[4095] = 0;
    must_rc(xac_end(), XAC_COMMITTED);
    must_rc(xactree_create(&t, NULL, base, 8192, NULL), ENOSPC);
    expect_words("too few");
    must_rc(xactree_open(&t, NULL, base, SIZE), ENOENT);
    must_ok(xactree_create(&t, NULL, base, SIZE - 4096, NULL));
    xactree_close(t);
    t = NULL;
    must_rc(xactree_create(&t, NULL, base, SIZE, NULL), EEXIST);
    expect_words("there is a tree");
    must_rc(xactree_open(&t, NULL, base, SIZE - 8192), ENOSPC);
    expect_words("are mapped");
    expect_refused(base, 0, XAC_EFOREIGN, "something else");
    expect_refused(base, 8, XAC_EVERSION, "format version");
    for (size_t at = 12; at < 64; at++)
        expect_refused(base, at, XAC_EDAMAGED, "header is damaged");
    expect_refused(base, 4096, XAC_EDAMAGED, "blocks is damaged");
    expect_refused(base, 4096 + 12, XAC_EDAMAGED, "blocks is damaged");
    env_detach();
}
END_TEST

START_TEST(bad_configurations_are_refused)
{
    struct xactree_config config = config_of(0);
    struct {
        struct xactree_config known;
        uint64_t unknown;
    } later;
    struct xactree *t = NULL;
    unsigned char *base;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must_rc(xactree_create(NULL, NULL, base, SIZE, &config), EINVAL);
    must_rc(xactree_create(&t, NULL, base + 8, SIZE - 4096, &config), EINVAL);
    must_rc(xactree_create(&t, NULL, MAP_FAILED, SIZE, &config), EINVAL);
    config.key_max = XACTREE_KEY_MAX + 1;
    must_rc(xactree_create(&t, NULL, base, SIZE, &config), EINVAL);
    expect_words("key_max");
    config = config_of(0);
    config.piece_size = 0;
    must_rc(xactree_create(&t, NULL, base, SIZE, &config), EINVAL);
    config = config_of(0);
    config.block_size = 3000;
    must_rc(xactree_create(&t, NULL, base, SIZE, &config), EINVAL);
    config = config_of(0);
    config.reserved = 1;
    must_rc(xactree_create(&t, NULL, base, SIZE, &config), EINVAL);
    config = config_of(0);
    config.size = 1;
    must_rc(xactree_create(&t, NULL, base, SIZE, &config), EINVAL);
    expect_words("xactree_config_init");
    later.known = config_of(0);
    later.known.size = sizeof later;
    later.unknown = 1;
    must_rc(xactree_create(&t, NULL, base, SIZE, &later.known), EINVAL);
    expect_words("does not know");
    config = config_of(0);
    must(t == NULL);
    later.unknown = 0; /* of a program that was compiled with a later header */
    must_ok(xactree_create(&t, NULL, base, SIZE, &later.known));
    xactree_close(t);
    env_detach();
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct xactree_config config = config_of(0);
    struct xactree_bytes key;
    struct xactree_cursor *cursor;
    _Alignas(64) unsigned char bytes[KEY_MAX + 1] = {0}; /* bytes + 1 begins no page */
    struct xactree *t = NULL;
    unsigned char *base;
    size_t len;

    must_rc(xactree_open(&t, NULL, bytes + 1, SIZE), EINVAL);
    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must_ok(xactree_create(&t, NULL, base, SIZE, &config));
    must_rc(xactree_put(t, bytes, KEY_MAX + 1, NULL, 0, XACTREE_PUT), EINVAL);
    expect_words("at most 12");
    must_rc(xactree_put(t, NULL, 1, NULL, 0, XACTREE_PUT), EINVAL);
    must_rc(xactree_put(t, bytes, 1, NULL, 1, XACTREE_PUT), EINVAL);
    must_rc(xactree_put(t, bytes, 1, bytes, (size_t)XACTREE_VALUE_MAX + 1, XACTREE_PUT),
            EINVAL);
    must_rc(xactree_put(t, bytes, 1, bytes, 1, 3), EINVAL);
    must_rc(xactree_get(t, bytes, KEY_MAX + 1, NULL, 0, NULL), EINVAL);
    must_rc(xactree_get(NULL, bytes, 1, NULL, 0, NULL), EINVAL);
    must_rc(xactree_get(t, bytes, 1, NULL, 1, NULL), EINVAL);
    must_rc(xactree_delete(t, bytes, KEY_MAX + 1), EINVAL);
    must_rc(xactree_scan(t, NULL, NULL, NULL, NULL), EINVAL);
    must_rc(xactree_count(t, NULL, NULL, NULL), EINVAL);
    must_rc(xactree_load(t, NULL, NULL, 100, NULL), EINVAL);
    must_ok(xactree_cursor_open(&cursor, t));
    must_rc(xactree_cursor_seek(cursor, bytes, KEY_MAX + 1), EINVAL);
    must_rc(xactree_cursor_key(cursor, &key), ENOENT);
    must_rc(xactree_cursor_value(cursor, NULL, 0, &len), ENOENT);
    must_rc(xactree_cursor_next(NULL), EINVAL);
    xactree_cursor_close(cursor);
    xactree_cursor_close(NULL);
    must_ok(xac_begin_query());
    must_rc(xactree_put(t, bytes, 1, bytes, 1, XACTREE_PUT), XAC_EINQUERY);
    must_rc(xactree_get(t, bytes, 1, NULL, 0, NULL), ENOENT);
    must_ok(xac_end_query());
    must_ok(xactree_check(t, NULL, 0));
    xactree_close(t);
    xactree_close(NULL);
    env_detach();
    must_rc(xactree_open(&t, NULL, base, SIZE), XAC_ENOINIT);
}
END_TEST

/* Whatever bytes are damaged, the checker comes to an end; it finds what it promises to find. */
START_TEST(check_finds_damage)
{
    uint64_t rng = env_seed() + (uint64_t)_i;
    struct xactree_config config = config_of(0);
    struct xactree_report report;
    struct xactree *t;
    unsigned char *base;
    unsigned n_found = 0;

    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    model_init(&rng);
    must_ok(xactree_create(&t, NULL, base, SIZE, &config));
    must_eq(run_steps(t, &rng, 100), 0);
    for (unsigned i = 0; i < 300; i++) {
        must_ok(xac_begin());
        for (size_t n = rnd_below(&rng, 3) + 1; n > 0; n--) {
            size_t page = i % 2 == 0 ? 0 : 1 + rnd_below(&rng, 49);
            size_t most = page == 0 || rnd_below(&rng, 2) == 0 ? 64 : 4096;

            base[page * 4096 + rnd_below(&rng, most)] = (unsigned char)rnd_next(&rng);
        }
        if (xactree_check(t, &report, sizeof report) == XAC_EDAMAGED) {
            must(report.text[0] != '\0');
            n_found++;
        }
        must_ok(xac_abort());
        must_rc(xac_end(), XAC_ABORTED);
    }
    must(n_found > 150); /* in the header each change is found                      */
    expect_model(t);
    xactree_close(t);
    env_detach();
}
END_TEST

/* ---- Environments ----------------------------------------------------------------------- */

START_TEST(trees_lie_in_environments_of_their_own)
{
    struct xac_env *env[2];
    struct xactree *t[2];
    char value[4];
    void *base;
    size_t len;

    for (int i = 0; i < 2; i++) {
        env[i] = xac_open(i == 0 ? "one" : "two", NULL);
        must(env[i] != NULL);
        base = xac_mmap_in(env[i], i == 0 ? "one.map" : "two.map", SIZE);
        must(base != MAP_FAILED);
        must_ok(xactree_create(&t[i], env[i], base, SIZE, NULL));
    }
    must_ok(xac_begin_in(env[0]));
    must_ok(xactree_put(t[0], "a", 1, "0", 1, XACTREE_ADD));
    must_ok(xactree_put(t[1], "a", 1, "11", 2, XACTREE_ADD)); /* commits by itself */
    must_ok(xac_abort_in(env[0]));
    must_rc(xac_end_in(env[0]), XAC_ABORTED);
    must_rc(xactree_get(t[0], "a", 1, value, sizeof value, &len), ENOENT);
    must_ok(xactree_get(t[1], "a", 1, value, sizeof value, &len));
    must_eq(len, 2);
    for (int i = 0; i < 2; i++) {
        xactree_close(t[i]);
        must_ok(xac_close(env[i]));
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("xactree");
    TCase *tc = env_tcase(s, "xactree", 120);

    tcase_add_loop_test(tc, operations_agree_with_model, 0, N_CONFIGS);
    tcase_add_loop_test(tc, stores_are_announced, 0, N_CONFIGS);
    tcase_add_loop_test(tc, full_tree_keeps_what_it_has, 0, N_CONFIGS);
    tcase_add_loop_test(tc, load_takes_sorted_entries, 0, N_CONFIGS);
    tcase_add_test(tc, load_keeps_whole_entries_when_full);
    tcase_add_test(tc, foreign_and_damaged_segments_are_refused);
    tcase_add_test(tc, bad_configurations_are_refused);
    tcase_add_test(tc, bad_arguments_are_refused);
    tcase_add_loop_test(tc, check_finds_damage, 0, 3);
    tcase_add_test(tc, trees_lie_in_environments_of_their_own);
    return env_main(s);
}
