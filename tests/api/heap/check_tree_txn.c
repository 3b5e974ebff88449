/* SPDX-License-Identifier: MIT */
/*
 * check_tree_txn.c -- a tree on transactional segments; built once for each kind of tree.
 *
 * GOAL    it agrees with a sorted array as the serial build does; operations of a caller's
 *         transaction take effect together or not at all; processes that insert and delete
 *         at once leave what their operations said.
 * METHOD  the model of the serial tests; several processes on disjoint and on the same
 *         keys; a reader that must always find a sum unchanged.
 */
#include <config.h>

#include "tree_model.h"

#include <unistd.h>

#define SEGMENT    ((size_t)16 << 20)
#define MOST_PROCS 4

/* Do the tree's hints announce every store, so that it may promise that? */
#ifdef MODEL_COBTREE
# define HINTS_ALL_STORES 0
# define SUITE            "cobtree_txn"
# define SIZES(key, value, block)           \
  {                                         \
   .key_size = (key), .value_size = (value) \
  }
#else
# define HINTS_ALL_STORES 1
# define SUITE            "btree_txn"
# define SIZES(key, value, block)                                  \
  {                                                                \
   .key_size = (key), .value_size = (value), .block_size = (block) \
  }
#endif

static const struct TREE(config) geometries[] = {
    SIZES(8, 512, 4096), SIZES(8, 8, 2048),    SIZES(128, 64, 4096),  SIZES(1, 0, 4096),
    SIZES(8, 64, 16384), SIZES(1024, 0, 4096), SIZES(16, 700, 65536),
};
#define N_GEOMETRIES ((int)(sizeof geometries / sizeof geometries[0]))

static const struct TREE(config) plain = SIZES(8, 64, 4096);

/* Map a file and make or open the tree in it. */
static void
tree_attach(struct model_tree *t, const char *name, const struct TREE(config) * config)
{
    void *base = xMmap(name, SEGMENT);
    int rc;

    must(base != MAP_FAILED);
    rc = TREE(create)(t, base, SEGMENT, config);
    if (rc == EEXIST)
        rc = TREE(open)(t, base, SEGMENT);
    must_ok(rc);
}

static void
tree_begin_env(struct model_tree *t, int flags, const struct TREE(config) * config)
{
    must_ok(xInit(ENV_DIR, flags));
    tree_attach(t, ENV_FILE, config);
}

/* ---- one process ------------------------------------------------------------------- */

START_TEST(operations_agree_with_model)
{
    const struct TREE(config) *config = &geometries[_i / 3];
    uint64_t rng = env_seed() + (uint64_t)_i;
    uint64_t n_keys = config->key_size == 1 ? 256 : 1000;
    struct model_tree t;
    struct model m;

    if (_i % 3 == 2 && HINTS_ALL_STORES)
        env_announce();
    tree_begin_env(&t, NONDURABLE, config);
    t.hints = _i % 3 != 0;
    model_init(&m, config);
    model_run(&m, &t, &rng, 1500, n_keys, 80);
    model_run(&m, &t, &rng, 1000, n_keys, 20);
    model_run_empty(&m, &t, &rng);
    model_fini(&m);
    env_detach();
}
END_TEST

#ifndef MODEL_COBTREE
/* traps_now -- of this process, for it is alone. */
static double
traps_now(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return (double)(s.traps_read + s.traps_write);
}

/* traps_each -- of 2000 warm operations with random keys of a tree that has so many; *pagesp: the pages that each
   has written. */
static double
traps_each(struct model_tree *t, uint64_t *rng, uint64_t n_keys, bool is_insert,
           double *pagesp)
{
    unsigned char key[8], value[64] = {0};
    double before = traps_now();
    uint64_t pages = env_stats().pages_written;

    for (int k = 0; k < 2000; k++) {
        int rc;

        tree_key_u64(rnd_below(rng, n_keys) * 2 + is_insert, key);
        rc = is_insert ? TREE(insert)(t, key, value, TREE_PUT, NULL)
                       : TREE(search)(t, key, value);
        must(rc == 0 || (rc == ENOENT && !is_insert));
    }
    *pagesp = (double)(env_stats().pages_written - pages) / 2000;
    return (traps_now() - before) / 2000;
}

/* Which inserts trap how often, without hints: once for each page that they write, so one that
   splits nothing once.  Their shares are printed. */
START_TEST(inserts_trap_once_for_each_page_they_write)
{
    enum {
        KEYS = 8000
    };
    static const struct TREE(config) wide = SIZES(8, 512, 4096);
    unsigned n[2][5] = {{0}};
    unsigned char key[8], value[512] = {0};
    uint64_t rng = env_seed();
    struct xac_stats a, b;
    struct model_tree t;

    env_without_frames("a tree larger than they are is never warm");
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_FAST));
    tree_begin_env(&t, NONDURABLE, &wide);
    for (unsigned k = 0; k < 2 * KEYS; k++) {
        uint64_t traps, pages;

        tree_key_u64(rnd_next(&rng), key);
        must_ok(xStats(&a, sizeof a));
        must_ok(TREE(insert)(&t, key, value, TREE_ADD, NULL));
        must_ok(xStats(&b, sizeof b));
        traps = b.traps_read + b.traps_write - a.traps_read - a.traps_write;
        pages = b.pages_written - a.pages_written;
        if (k >= KEYS)
            n[pages > 1][traps < 4 ? traps : 4]++;
        must(k < KEYS || traps <= pages || b.engine != XAC_ENGINE_UFFD);
    }
    for (int s = 0; s < 2; s++)
        printf("inserts that split %s: traps 0 %.2f %%, 1 %.2f %%, 2 %.2f %%, 3 %.2f %%, "
               "more %.2f %%\n",
               s ? "something" : "nothing", n[s][0] * 100.0 / KEYS,
               n[s][1] * 100.0 / KEYS, n[s][2] * 100.0 / KEYS, n[s][3] * 100.0 / KEYS,
               n[s][4] * 100.0 / KEYS);
    if (b.engine == XAC_ENGINE_SCAN) /* but for new pages stores do not trap */
        must(n[0][0] > KEYS / 2 && n[1][1] > 0);
    else
        must(n[0][1] > KEYS / 2 && n[1][3] + n[1][4] > 0);
    env_detach();
}
END_TEST

/* What an operation costs in traps; printed, and wanted: 0 with hints and for searches; for an insert without
   one for each page that it writes, which is one unless it splits something. */
START_TEST(warm_operations_hardly_trap)
{
    enum {
        KEYS = 20000
    };
    uint64_t rng = env_seed();
    double insert, hinted, search, pages, pages_hinted, none;
    unsigned char key[8], value[64] = {0};
    struct model_tree t;
    struct xac_stats s;

    env_without_frames("a tree larger than they are is never warm");
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_FAST));
    tree_begin_env(&t, NONDURABLE, &plain);
    for (uint64_t k = 0; k < KEYS; k++) {
        tree_key_u64(2 * k, key);
        must_ok(TREE(insert)(&t, key, value, TREE_ADD, NULL));
    }
    search = traps_each(&t, &rng, KEYS, false, &none);
    insert = traps_each(&t, &rng, KEYS, true, &pages);
    t.hints = true;
    hinted = traps_each(&t, &rng, KEYS, true, &pages_hinted);
    must_ok(xStats(&s, sizeof s));
    printf(
        "traps of a warm operation, engine %d: search %.2f, insert %.2f (pages written "
        "%.2f), with hints %.2f\n",
        (int)s.engine, search, insert, pages, hinted);
    if (s.engine == XAC_ENGINE_UFFD) {
        must(search <= 0.05);
        must(none == 0 && insert <= pages && pages_hinted > 0);
        must(hinted <= 0.05);
    }
    env_detach();
}
END_TEST
#endif

START_TEST(durable_tree_is_there_again)
{
    uint64_t rng = env_seed();
    struct model_tree t;
    struct model m;

    tree_begin_env(&t, DURABLE, &plain);
    model_init(&m, &plain);
    model_run(&m, &t, &rng, 400, 1000, 90);
    env_detach();
    tree_begin_env(&t, DURABLE, &plain);
    model_compare(&m, &t);
    model_run(&m, &t, &rng, 200, 1000, 50);
    env_detach();
    tree_begin_env(&t, NONDURABLE, &plain);
    model_compare(&m, &t);
    model_fini(&m);
    env_detach();
}
END_TEST

static void
put(struct model_tree *t, uint64_t id, uint64_t number, int want)
{
    unsigned char key[8], value[64] = {0};

    tree_key_u64(id, key);
    memcpy(value, &number, sizeof number);
    must_rc(TREE(insert)(t, key, value, TREE_PUT, NULL), want);
}

/* ret the number of an entry, UINT64_MAX if there is none. */
static uint64_t
get(struct model_tree *t, uint64_t id)
{
    unsigned char key[8], value[64];
    uint64_t number = UINT64_MAX;
    int rc;

    tree_key_u64(id, key);
    rc = TREE(search)(t, key, value);
    must(rc == 0 || rc == ENOENT);
    if (rc == 0)
        memcpy(&number, value, sizeof number);
    return number;
}

START_TEST(group_takes_effect_together)
{
    struct model_tree t;
    unsigned char key[8];

    tree_begin_env(&t, NONDURABLE, &plain);
    put(&t, 1, 11, 0);

    must_ok(xbegin()); /* committed: all of it */
    put(&t, 2, 22, 0);
    put(&t, 1, 12, 0);
    must_eq(get(&t, 2), 22); /* a transaction sees its own operations */
    must_eq(xend(), COMMITTED);
    must_eq(get(&t, 1), 12);
    must_eq(get(&t, 2), 22);

    must_ok(xbegin()); /* rolled back: nothing of it */
    for (uint64_t i = 100; i < 1000; i++)
        put(&t, i, i, 0);
    tree_key_u64(1, key);
    must_ok(TREE(delete)(&t, key));
    must_ok(xAbort());
    put(&t, 3, 33, XAC_FAILED);
    must_eq(xend(), ABORTED);
    must_eq(get(&t, 1), 12);
    must_eq(get(&t, 3), UINT64_MAX);
    must_eq(get(&t, 500), UINT64_MAX);
    {
        struct TREE(report) report;

        must_ok(TREE(check)(&t, &report));
        must_eq(report.entries, 2);
        must_eq(report.height, 0);
    }
    env_detach();
}
END_TEST

/* Source of a load: the numbers below *arg. */
static bool
next_number(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    static unsigned char key[8], value[64];

    if (i >= *(uint64_t *)arg)
        return false;
    tree_key_u64(i, key);
    memcpy(value, &i, sizeof i);
    *keyp = key;
    *valuep = value;
    return true;
}

static int
load_numbers(struct model_tree *t, uint64_t n)
{
#ifdef MODEL_COBTREE
    return cobtree_load(t, next_number, &n, n, 80);
#else
    return btree_load(t, next_number, &n, 80, NULL);
#endif
}

static void
must_hold(struct model_tree *t, uint64_t n)
{
    struct TREE(report) report;

    must_ok(TREE(check)(t, &report));
    must_eq(report.entries, n);
}

START_TEST(load_is_one_transaction)
{
    struct model_tree t;

    tree_begin_env(&t, NONDURABLE, &plain);
    must_ok(xbegin());
    must_ok(load_numbers(&t, 3000));
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must_hold(&t, 0);
    must_ok(load_numbers(&t, 3000));
    must_hold(&t, 3000);
    for (uint64_t i = 0; i < 3000; i++)
        must_eq(get(&t, i), i);
    env_detach();
}
END_TEST

/* To the end and back; then over entries that a transaction took out and gave back. */
START_TEST(cursor_walks_both_ways)
{
    struct model_tree t;
    struct TREE(cursor) c = {.t = &t};
    unsigned char key[8];
    uint64_t n = 1000;

    tree_begin_env(&t, NONDURABLE, &plain);
    must_ok(load_numbers(&t, n));
    must_ok(xbeginQuery());
    for (uint64_t i = 0; i < n; i++) {
        must_ok(TREE(cursor_next)(&c, key, NULL));
        must_eq(tree_u64_key(key), i);
    }
    must_rc(TREE(cursor_next)(&c, key, NULL), ENOENT);
    must_ok(xendQuery());
    for (uint64_t i = n - 1; i-- > 0;) { /* each step on a snapshot of its own */
        must_ok(TREE(cursor_prev)(&c, key, NULL));
        must_eq(tree_u64_key(key), i);
    }
    must_rc(TREE(cursor_prev)(&c, key, NULL), ENOENT);

    must_ok(xbegin());
    for (uint64_t i = 0; i < n - 1; i++) {
        tree_key_u64(i, key);
        must_ok(TREE(delete)(&t, key));
    }
    must_ok(TREE(cursor_next)(&c, key, NULL));
    must_eq(tree_u64_key(key), n - 1);
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must_ok(TREE(cursor_prev)(&c, key, NULL));
    must_eq(tree_u64_key(key), n - 2);
    env_detach();
}
END_TEST

START_TEST(calls_out_of_place_are_refused)
{
    struct model_tree t;

    tree_begin_env(&t, NONDURABLE, &plain);
    put(&t, 1, 11, 0);
    must_ok(xbeginQuery());
    put(&t, 2, 22, XAC_EINQUERY);
    must_eq(get(&t, 1), 11);
    must_ok(xendQuery());
    env_detach();
    must_rc(TREE(search)(&t, "12345678", NULL), XAC_ENOINIT);
    put(&t, 3, 33, XAC_ENOINIT);
}
END_TEST

/* A tree that fills its segment says so, and its transaction can go on. */
START_TEST(full_segment_ends_in_enospc)
{
    static const struct TREE(config) big = SIZES(8, 1000, 4096);
    size_t size = 24 * (size_t)4096;
    unsigned char key[8], value[1000] = {0};
    struct TREE(report) report;
    struct model_tree t;
    uint64_t n = 0, rng = env_seed();
    void *base;
    int rc;

    must_ok(xInit(ENV_DIR, NONDURABLE));
    base = xMmap(ENV_FILE, size);
    must(base != MAP_FAILED);
    must_ok(TREE(create)(&t, base, size, &big));
    do {
        tree_key_u64(rnd_next(&rng), key);
        must_ok(xbegin());
        rc = TREE(insert)(&t, key, value, TREE_ADD, NULL);
        must_eq(xend(), COMMITTED);
        n += rc == 0;
    } while (rc == 0);
    must_eq(rc, ENOSPC);
    must(n > 15);
    must_ok(TREE(check)(&t, &report));
    must_eq(report.entries, n);
    env_detach();
}
END_TEST

/* ---- several processes ------------------------------------------------------------- */

/* What the processes of a test share. */
struct shared {
    _Atomic uint64_t ready; /* processes that have attached                */
    uint64_t n_procs;       /* processes                                   */
    uint64_t count;         /* keys, or operations                         */
    bool hints;             /* as in struct model_tree                          */
    _Atomic uint64_t added; /* inserts that did not find the key           */
    _Atomic uint64_t stop;  /* the reader may end                          */
    _Atomic uint64_t sums;  /* sums that the reader has taken              */
    unsigned char present[MOST_PROCS][2000]; /* mixed: which of its keys a process left */
};

struct worker {
    struct shared *shared;
    unsigned me;
};

/* Attach and wait for the others. */
static void
worker_begin(const struct worker *w, struct model_tree *t)
{
    struct shared *s = w->shared;

    tree_begin_env(t, NONDURABLE, &plain);
    t->hints = s->hints;
#ifndef MODEL_COBTREE
    t->arena = w->me % t->n_arenas;
#endif
    atomic_fetch_add(&s->ready, 1);
    proc_await(&s->ready, s->n_procs, 60);
}

/* Keys me, me + n_procs, ...: close neighbours belong to different processes. */
static void
insert_disjoint(void *arg)
{
    const struct worker *w = arg;
    struct model_tree t;

    worker_begin(w, &t);
    for (uint64_t i = 0; i < w->shared->count; i++) {
        uint64_t id = i * 7919 % w->shared->count;

        put(&t, id * w->shared->n_procs + w->me, id, 0);
        if (i % 10 == 0)
            must_eq(get(&t, id * w->shared->n_procs + w->me), id);
    }
    env_detach();
}

/* All processes add all keys: each key is added once. */
static void
insert_overlapping(void *arg)
{
    const struct worker *w = arg;
    uint64_t rng = env_seed() + w->me, n = w->shared->count;
    uint64_t start = rnd_below(&rng, n);
    struct model_tree t;

    worker_begin(w, &t);
    for (uint64_t i = 0; i < n; i++) {
        unsigned char key[8], value[64] = {0};
        bool existed;
        int rc;

        tree_key_u64((start + i * 7919) % n, key);
        value[0] = (unsigned char)(w->me + 1);
        rc = TREE(insert)(&t, key, value, TREE_ADD, &existed);
        must(rc == 0 || rc == EEXIST);
        must_eq(existed, rc == EEXIST);
        if (rc == 0)
            atomic_fetch_add(&w->shared->added, 1);
    }
    env_detach();
}

/* Random inserts and deletes of one's own keys, which lie between those of others. */
static void
mix_disjoint(void *arg)
{
    const struct worker *w = arg;
    unsigned char *present = w->shared->present[w->me];
    uint64_t rng = env_seed() + 31 * w->me;
    struct model_tree t;

    worker_begin(w, &t);
    for (uint64_t i = 0; i < w->shared->count; i++) {
        uint64_t id = rnd_below(&rng, sizeof w->shared->present[0]);
        uint64_t number = id * w->shared->n_procs + w->me;
        unsigned char key[8];
        bool add = rnd_below(&rng, 100) < (i < w->shared->count / 2 ? 70 : 20);

        tree_key_u64(number, key);
        if (add)
            put(&t, number, id, 0);
        else
            must_rc(TREE(delete)(&t, key), present[id] ? 0 : ENOENT);
        present[id] = add;
    }
    env_detach();
}

/* Run the processes to their end, the environment empty before and after. */
static struct shared *
run_workers(void (*fn)(void *), uint64_t n_procs, uint64_t count, bool hints)
{
    struct shared *s = proc_shared(sizeof *s);
    struct worker w[MOST_PROCS];
    pid_t pid[MOST_PROCS];
    struct model_tree t;

    s->n_procs = n_procs;
    s->count = count;
    s->hints = hints;
    tree_begin_env(&t, NONDURABLE, &plain);
    env_detach();
    for (unsigned i = 0; i < n_procs; i++) {
        w[i] = (struct worker){.shared = s, .me = i};
        pid[i] = proc_spawn(fn, &w[i]);
    }
    for (unsigned i = 0; i < n_procs; i++)
        proc_join(pid[i]);
    return s;
}

/* The tree as the processes left it: sound, and with so many entries. */
static void
expect_entries(struct model_tree *t, uint64_t n)
{
    struct TREE(report) report;
    int rc;

    tree_begin_env(t, NONDURABLE, &plain);
    rc = TREE(check)(t, &report);
    if (rc != 0)
        env_fail(__FILE__, __LINE__, "check: %d %s", rc, report.text);
    must_eq(report.entries, n);
}

static const struct {
    uint64_t n_procs;
    bool hints;
} crowds[] = {{2, false}, {2, true}, {4, false}};
#define N_CROWDS 3

START_TEST(disjoint_inserts_are_all_there)
{
    uint64_t n = crowds[_i].n_procs, count = 2000;
    struct model_tree t;

    run_workers(insert_disjoint, n, count, crowds[_i].hints);
    expect_entries(&t, n * count);
    for (uint64_t id = 0; id < n * count; id++)
        must_eq(get(&t, id), id / n);
    env_detach();
}
END_TEST

START_TEST(overlapping_inserts_add_each_once)
{
    uint64_t n = crowds[_i].n_procs, count = 2003;
    struct shared *s = run_workers(insert_overlapping, n, count, crowds[_i].hints);
    struct model_tree t;

    must_eq(s->added, count);
    expect_entries(&t, count);
    for (uint64_t id = 0; id < count; id++) {
        uint64_t who = get(&t, id);

        must(who >= 1 && who <= n);
    }
    env_detach();
}
END_TEST

START_TEST(mixed_changes_leave_what_was_said)
{
    uint64_t n = crowds[_i].n_procs, total = 0;
    struct shared *s = run_workers(mix_disjoint, n, 4000, crowds[_i].hints);
    struct model_tree t;

    for (uint64_t p = 0; p < n; p++)
        for (size_t id = 0; id < sizeof s->present[0]; id++)
            total += s->present[p][id];
    expect_entries(&t, total);
    for (uint64_t p = 0; p < n; p++)
        for (size_t id = 0; id < sizeof s->present[0]; id++)
            must_eq(get(&t, id * n + p), s->present[p][id] ? id : UINT64_MAX);
    env_detach();
}
END_TEST

/* ---- a transaction over two trees ---------------------------------------------------- */

#define ACCOUNTS 300u
#define TOTAL    (ACCOUNTS * UINT64_C(1000))

/* Move amounts from accounts in one tree to accounts in the other. */
static void
move_amounts(void *arg)
{
    const struct worker *w = arg;
    uint64_t rng = env_seed() + w->me;
    struct model_tree a, b;

    worker_begin(w, &a);
    tree_attach(&b, "other.db", &plain);
    for (uint64_t i = 0; i < w->shared->count; i++) {
        uint64_t from = rnd_below(&rng, ACCOUNTS), to = rnd_below(&rng, ACCOUNTS);
        uint64_t amount = 1 + rnd_below(&rng, 5), rc;

        do {
            uint64_t had, gets;

            must_ok(xbegin());
            had = get(&a, from);
            gets = get(&b, to);
            if (had >= amount) {
                unsigned char key[8], value[64] = {0};

                had -= amount;
                gets = gets == UINT64_MAX ? amount : gets + amount;
                tree_key_u64(from, key);
                memcpy(value, &had, sizeof had);
                (void)TREE(insert)(&a, key, value, TREE_PUT, NULL);
                tree_key_u64(to, key);
                memcpy(value, &gets, sizeof gets);
                (void)TREE(insert)(&b, key, value, TREE_PUT, NULL);
            }
            rc = (uint64_t)xend();
        } while (rc == ABORTED);
        must_eq(rc, COMMITTED);
    }
    env_detach();
}

static int
add_up(void *arg, const void *key, const void *value)
{
    uint64_t number;

    (void)key;
    memcpy(&number, value, sizeof number);
    *(uint64_t *)arg += number;
    return 0;
}

static uint64_t
sum_of(struct model_tree *a, struct model_tree *b)
{
    uint64_t sum = 0;

    must_ok(xbeginQuery());
    must_ok(TREE(scan)(a, NULL, NULL, add_up, &sum));
    must_ok(TREE(scan)(b, NULL, NULL, add_up, &sum));
    must_ok(xendQuery());
    return sum;
}

/* Every snapshot has the whole sum. */
static void
watch_sum(void *arg)
{
    const struct worker *w = arg;
    struct model_tree a, b;

    worker_begin(w, &a);
    tree_attach(&b, "other.db", &plain);
    while (w->shared->stop == 0 || w->shared->sums == 0) {
        must_eq(sum_of(&a, &b), TOTAL);
        atomic_fetch_add(&w->shared->sums, 1);
    }
    env_detach();
}

START_TEST(transfers_keep_the_sum)
{
    struct shared *s = proc_shared(sizeof *s);
    struct worker w[3];
    pid_t pid[3];
    struct model_tree a, b;

    s->n_procs = 3;
    s->count = 600;
    tree_begin_env(&a, NONDURABLE, &plain);
    tree_attach(&b, "other.db", &plain);
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        put(&a, i, 1000, 0);
    env_detach();
    for (unsigned i = 0; i < 3; i++) {
        w[i] = (struct worker){.shared = s, .me = i};
        pid[i] = proc_spawn(i < 2 ? move_amounts : watch_sum, &w[i]);
    }
    proc_join(pid[0]);
    proc_join(pid[1]);
    s->stop = 1;
    proc_join(pid[2]);
    tree_begin_env(&a, NONDURABLE, &plain);
    tree_attach(&b, "other.db", &plain);
    must_eq(sum_of(&a, &b), TOTAL);
    env_detach();
}
END_TEST

/* A handle that fork() copied goes on working in both processes. */
static void
insert_in_child(void *arg)
{
    struct model_tree *t = arg;

    for (uint64_t i = 1; i < 400; i += 2)
        put(t, i, i, 0);
    env_detach();
}

START_TEST(handle_survives_fork)
{
    struct model_tree t;
    pid_t pid;

    tree_begin_env(&t, NONDURABLE, &plain);
    put(&t, 1000, 1, 0);
    pid = proc_spawn(insert_in_child, &t);
    for (uint64_t i = 0; i < 400; i += 2)
        put(&t, i, i, 0);
    proc_join(pid);
    for (uint64_t i = 0; i < 400; i++)
        must_eq(get(&t, i), i);
    env_detach();
    expect_entries(&t, 401);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create(SUITE);
    TCase *one = env_tcase(s, "one process", 120);
    TCase *many = env_tcase(s, "several processes", 120);

    tcase_add_loop_test(one, operations_agree_with_model, 0, 3 * N_GEOMETRIES);
#ifndef MODEL_COBTREE
    tcase_add_test(one, warm_operations_hardly_trap);
    tcase_add_test(one, inserts_trap_once_for_each_page_they_write);
#endif
    tcase_add_test(one, durable_tree_is_there_again);
    tcase_add_test(one, group_takes_effect_together);
    tcase_add_test(one, load_is_one_transaction);
    tcase_add_test(one, cursor_walks_both_ways);
    tcase_add_test(one, calls_out_of_place_are_refused);
    tcase_add_test(one, full_segment_ends_in_enospc);
    tcase_add_loop_test(many, disjoint_inserts_are_all_there, 0, N_CROWDS);
    tcase_add_loop_test(many, overlapping_inserts_add_each_once, 0, N_CROWDS);
    tcase_add_loop_test(many, mixed_changes_leave_what_was_said, 0, N_CROWDS);
    tcase_add_test(many, transfers_keep_the_sum);
    tcase_add_test(many, handle_survives_fork);
    return env_main(s);
}
