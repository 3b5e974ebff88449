/* SPDX-License-Identifier: MIT */
/*
 * swizzle.c -- the program xbench-swizzle: what references save and cost; see swizzle.h.
 *
 * Each cell is measured with references and without, in turn (ABBA...), on one space that is
 * switched between; the figure is the median of the ratios.  Pages that are not in frames are in
 * memory, behind a delay, so that no cache of the system is measured.
 */
#include <config.h>

#include "swizzle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#include "btree.h"
#include "options.h"
#include "util.h"

#define PAIRS_MAX     32
#define COLD_SAMPLES  10
#define LEAF_KEYS     226u /* 8-byte keys and values in 4 KiB */
#define PAGES_OF(n)   ((uint32_t)((n) + (n) / 64 + 512))
#define MISS_DELAY_NS 80000u

/* What look-ups do. */
struct keys {
    uint64_t n, working; /* keys; of them looked up: the first so many */
    bool skewed;         /* 15 of 16 in one hundredth */
};

static int
lookup_op(struct swzb_worker *w)
{
    const struct keys *k = w->arg;
    uint64_t r = swzb_next(&w->seed), id = (r >> 8) % k->working;
    unsigned char key[8], value[8];

    if (k->skewed && (r & 15) != 0)
        id = (r >> 8) % (k->working / 100 + 1) * 100 % k->working;
    tree_key_u64(id, key);
    return swz_search(w->th, 0, key, value);
}

/* space_of -- a tree of n keys in ascending order, so full leaves. */
static struct swz_space *
space_of(struct swz_config c, uint64_t n)
{
    unsigned char key[8], value[8] = {0};
    struct swz_space *s;
    struct swz_thread *th;
    int rc;

    c.n_threads = SWZB_THREADS_MAX + 1;
    rc = swz_open(NULL, &c, &s);
    if (rc == 0)
        rc = swz_join(s, &th);
    if (rc == 0)
        rc = swz_tree_create(th, 0, 8, 8);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        tree_key_u64(i, key);
        rc = swz_insert(th, 0, key, value, TREE_PUT);
    }
    if (rc != 0) {
        (void)bench_fail("swizzle: a tree of %llu keys: %s", (unsigned long long)n,
                         strerror(rc));
        exit(1);
    }
    swz_leave(th);
    (void)swz_checkpoint(s);
    return s;
}

/* ---- Pairs --------------------------------------------------------------------------- */

/* warm -- everything in its place: switched, and used. */
static int
warm(const struct swzb_options *o, struct swz_space *s, bool is_on, unsigned n_threads,
     swzb_op *op, void *arg)
{
    struct swzb_result ignored;

    swz_set_swizzling(s, is_on);
    return swzb_run(s, n_threads, o->seconds_ms / 2 + 20, op, arg, &ignored);
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* pairs -- on and off in turn; prints the median; ret it, or -1. */
static double
pairs(const struct swzb_options *o, const char *part, const char *what,
      struct swz_space *s, unsigned n_threads, swzb_op *op, void *arg)
{
    struct swzb_result results[2];
    double ratios[PAIRS_MAX];
    uint64_t n = o->pairs < PAIRS_MAX ? o->pairs : PAIRS_MAX;
    /* Look-ups that never wait: what others do on the machine then counts less. */
    bool by_cpu = strcmp(part, "lookup") == 0 || strcmp(part, "sweep") == 0;

    for (uint64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            int is_on = (k == 0) == (i % 2 == 0);

            if (warm(o, s, is_on, n_threads, op, arg) != 0
                || swzb_run(s, n_threads, o->seconds_ms, op, arg, &results[is_on]) != 0)
                return -1;
        }
        ratios[i] = by_cpu ? results[1].ops_per_cpu_s / results[0].ops_per_cpu_s
                           : results[1].ops_per_s / results[0].ops_per_s;
    }
    qsort(ratios, n, sizeof ratios[0], by_value);
    swzb_print(o, part, what, &results[1], &results[0], ratios[n / 2], ratios[0],
               ratios[n - 1]);
    return ratios[n / 2];
}

/* ---- Parts --------------------------------------------------------------------------- */

/* lookup_cells -- B01 to B03: everything in frames; "without" looks up in array or hash table. */
static int
lookup_cells(const struct swzb_options *o, bool has_hash)
{
    static const uint64_t leaves[] = {2000, 16000};
    const char *table = has_hash ? "hash" : "array";
    double product = 1;
    unsigned n_cells = 0;

    for (int size = 0; size < 2; size++) {
        uint64_t n_leaves = leaves[size] * o->scale / 100;
        struct keys k = {.n = n_leaves * LEAF_KEYS, .working = n_leaves * LEAF_KEYS};
        struct swz_space *s = space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves),
                                                           .n_frames = PAGES_OF(n_leaves),
                                                           .has_hash = has_hash},
                                       k.n);

        for (int cell = 0; cell < 4; cell++) {
            char what[64];
            double ratio;

            k.skewed = (cell & 1) != 0;
            (void)snprintf(what, sizeof what, "%s, %llu leaves, %s, %d thread%s", table,
                           (unsigned long long)n_leaves, k.skewed ? "skewed" : "uniform",
                           1 + cell / 2, cell < 2 ? "" : "s");
            ratio = pairs(o, "lookup", what, s, 1 + (unsigned)cell / 2, lookup_op, &k);
            if (ratio < 0)
                return 1;
            product *= ratio;
            n_cells++;
        }
        (void)swz_close(s);
    }
    if (!o->json)
        printf("%-9s geometric mean of the ratios against the %s %.2f\n", "lookup", table,
               pow(product, 1.0 / n_cells));
    return 0;
}

static int
part_lookup(const struct swzb_options *o)
{
    return lookup_cells(o, true) != 0 ? 1 : lookup_cells(o, false);
}

/* B04: nothing in frames. */
static int
part_miss(const struct swzb_options *o)
{
    static const uint32_t delays[] = {0, MISS_DELAY_NS};
    uint64_t n_leaves = 79000 * o->scale / 100;
    struct keys k = {.n = n_leaves * LEAF_KEYS, .working = n_leaves * LEAF_KEYS};

    for (int i = 0; i < 2; i++) {
        struct swz_space *s =
            space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves),
                                         .n_frames = (uint32_t)(n_leaves / 50 + 64),
                                         .delay_ns = delays[i]},
                     k.n);
        char what[64];
        int rc;

        (void)snprintf(what, sizeof what, "2 %% of %llu pages, device %u us",
                       (unsigned long long)n_leaves, delays[i] / 1000);
        rc = pairs(o, "miss", what, s, 1, lookup_op, &k) < 0;
        (void)swz_close(s);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* B05: the working set grows beyond the pool. */
static int
part_sweep(const struct swzb_options *o)
{
    static const unsigned percent[] = {10, 50, 90, 100, 110, 150, 300, 1000};
    uint64_t n_leaves = 64000 * o->scale / 100;
    struct keys k = {.n = n_leaves * LEAF_KEYS};
    uint32_t n_frames = (uint32_t)(n_leaves / 10 + 64);
    struct swz_space *s =
        space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves), .n_frames = n_frames},
                 k.n);
    int rc = 0;

    for (unsigned i = 0; i < 8 && rc == 0; i++) {
        char what[64];

        k.working = (uint64_t)n_frames * percent[i] / 100 * LEAF_KEYS;
        if (k.working > k.n)
            k.working = k.n;
        (void)snprintf(what, sizeof what, "working set %u %% of the pool", percent[i]);
        rc = pairs(o, "sweep", what, s, 2, lookup_op, &k) < 0;
    }
    (void)swz_close(s);
    return rc;
}

/* B10 to B12: each policy with a small pool. */
static int
part_policy(const struct swzb_options *o)
{
    static const struct {
        uint32_t policy, k;
        const char *name;
    } policies[] = {{XAC_FRAMES_SWEEP, 0, "sweep"},
                    {XAC_FRAMES_RANDOM, 0, "random"},
                    {XAC_FRAMES_CAR, 0, "car"},
                    {XAC_FRAMES_NB_GCLOCK, 0, "nb-gclock"},
                    {XAC_FRAMES_GCLOCK_K, 1, "gclock k 1"},
                    {XAC_FRAMES_GCLOCK_K, 2, "gclock k 2"},
                    {XAC_FRAMES_GCLOCK_K, 3, "gclock k 3"},
                    {XAC_FRAMES_GCLOCK_K, 5, "gclock k 5"},
                    {XAC_FRAMES_GCLOCK_K, 10, "gclock k 10"}};
    static const double pools[] = {0.02, 0.075, 0.15};
    uint32_t n_items = (uint32_t)(100000 * o->scale / 100);
    int rc = 0;

    for (unsigned p = 0; p < 3 && rc == 0; p++)
        for (unsigned i = 0; i < sizeof policies / sizeof policies[0] && rc == 0; i++) {
            struct swzb_tpcc *c = calloc(1, sizeof *c);
            uint32_t pages = n_items / 12 + n_items * 3 / 10 / 7 + 40000;
            struct swz_config config = {.n_pages = 8 * pages,
                                        .n_frames = (uint32_t)(pages * pools[p]) + 64,
                                        .n_threads = 4,
                                        .policy = policies[i].policy,
                                        .weight_max = policies[i].k};
            struct swz_space *s;
            char what[64];

            c->n_warehouses = 1;
            c->n_items = n_items;
            c->n_customers = (uint32_t)(3000 * o->scale / 100) + 1;
            rc = swz_open(NULL, &config, &s);
            rc = rc != 0 ? rc : swzb_tpcc_load(s, c);
            if (rc != 0)
                return bench_fail("swizzle: tpc-c: %s", strerror(rc));
            (void)snprintf(what, sizeof what, "%s, %.1f %% of the pages",
                           policies[i].name, 100 * pools[p]);
            rc = pairs(o, "policy", what, s, 1, swzb_tpcc_op, c) < 0;
            (void)swz_close(s);
            free(c);
        }
    return rc;
}

/* B08: uniform accounts, and a pool from little to all of it. */
static int
part_tpcb(const struct swzb_options *o)
{
    static const unsigned percent[] = {2, 5, 16, 40, 80, 160};
    int rc = 0;

    for (unsigned i = 0; i < 6 && rc == 0; i++) {
        struct swzb_tpcb b = {.n_accounts = 1900000 * o->scale / 100};
        uint32_t pages = (uint32_t)(b.n_accounts / 30);
        struct swz_config config = {.n_pages = 20 * pages + 100000,
                                    .n_frames = pages * percent[i] / 100 + 64,
                                    .n_threads = 4,
                                    .delay_ns = 20000};
        struct swz_space *s;
        char what[64];

        rc = swz_open(NULL, &config, &s);
        rc = rc != 0 ? rc : swzb_tpcb_load(s, &b);
        if (rc != 0)
            return bench_fail("swizzle: tpc-b: %s", strerror(rc));
        (void)snprintf(what, sizeof what, "pool %u %% of the accounts", percent[i]);
        rc = pairs(o, "tpc-b", what, s, 2, swzb_tpcb_op, &b) < 0;
        (void)swz_close(s);
    }
    return rc;
}

/* B06, B07, B16: pools from little to all; the first sample is cold. */
static int
part_tpcc(const struct swzb_options *o)
{
    static const double percent[] = {0.4, 0.75, 2, 4, 7.5, 15, 30, 60, 110};
    uint32_t n_items = (uint32_t)(100000 * o->scale / 100);
    int rc = 0;

    for (unsigned i = 0; i < 9 && rc == 0; i++) {
        struct swzb_tpcc *c = calloc(1, sizeof *c);
        uint32_t pages;
        struct swz_config config;
        struct swz_space *s;
        char what[64];

        c->n_warehouses = 6;
        c->n_items = n_items;
        c->n_customers = (uint32_t)(3000 * o->scale / 100) + 1;
        pages =
            c->n_warehouses * (n_items / 12 + SWZB_DISTRICTS * c->n_customers / 7) + 2000;
        config =
            (struct swz_config){.n_pages = 10 * pages + 200000,
                                .n_frames = (uint32_t)(pages * percent[i] / 100) + 64,
                                .n_threads = 4,
                                .delay_ns = 20000};
        rc = swz_open(NULL, &config, &s);
        rc = rc != 0 ? rc : swzb_tpcc_load(s, c);
        if (rc != 0)
            return bench_fail("swizzle: tpc-c: %s", strerror(rc));
        (void)snprintf(what, sizeof what, "6 warehouses, pool %.2f %%", percent[i]);
        rc = pairs(o, "tpc-c", what, s, 2, swzb_tpcc_op, c) < 0;
        (void)swz_close(s);
        free(c);
    }
    return rc;
}

/* B13, B14: eight threads evict at once; two fill the same tree with references. */
static int
part_parallel(const struct swzb_options *o)
{
    uint64_t n_leaves = 32000 * o->scale / 100;
    struct keys k = {.n = n_leaves * LEAF_KEYS, .working = n_leaves * LEAF_KEYS};
    struct swz_space *s =
        space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves),
                                     .n_frames = (uint32_t)(n_leaves / 50 + 64)},
                 k.n);
    int rc = pairs(o, "parallel", "8 threads, 2 % pool", s, 8, lookup_op, &k) < 0;

    if (rc == 0)
        rc = pairs(o, "parallel", "2 threads, 2 % pool", s, 2, lookup_op, &k) < 0;
    (void)swz_close(s);
    return rc;
}

/* cold_open -- TPC-B in files, opened with an empty pool; fresh: made first. */
static struct swz_space *
cold_open(const char *directory, struct swzb_tpcb *b, bool is_plain, bool is_fresh)
{
    uint32_t pages = (uint32_t)(b->n_accounts / 30);
    struct swz_config config = {.n_pages = 20 * pages + 100000,
                                .n_frames = pages * 11 / 10 + 5000,
                                .n_threads = 4,
                                .is_plain = is_plain,
                                .has_log = !is_fresh,
                                .is_direct = true};
    struct swz_space *s = NULL;
    int rc = swz_open(directory, &config, &s);

    if (rc == EINVAL) { /* no O_DIRECT here */
        config.is_direct = false;
        rc = swz_open(directory, &config, &s);
    }
    if (rc == 0 && is_fresh)
        rc = swzb_tpcb_load(s, b);
    if (rc != 0)
        (void)bench_fail("swizzle: %s: %s", directory, strerror(rc));
    return rc == 0 ? s : NULL;
}

/* B07, B16: from an empty pool on, with a log and a file; --ms 60000 for ten minutes. */
static int
part_cold(const struct swzb_options *o)
{
    struct swzb_tpcb b = {.n_accounts = 1900000 * o->scale / 100};
    char directory[] = "swizzle-XXXXXX";
    struct swzb_result samples[2][COLD_SAMPLES];
    struct swz_space *s;
    int rc = 0;

    if (mkdtemp(directory) == NULL)
        return bench_fail("swizzle: no directory: %s", strerror(errno));
    s = cold_open(directory, &b, false, true);
    if (s == NULL || swz_close(s) != 0)
        rc = 1;
    for (int is_on = 0; is_on < 2 && rc == 0; is_on++) {
        s = cold_open(directory, &b, is_on == 0, false);
        rc = s == NULL;
        for (int i = 0; i < COLD_SAMPLES && rc == 0; i++)
            rc = swzb_run(s, 2, o->seconds_ms, swzb_tpcb_op, &b, &samples[is_on][i]);
        if (s != NULL && swz_close(s) != 0)
            rc = 1;
    }
    for (int i = 0; i < COLD_SAMPLES && rc == 0; i++) {
        char what[64];

        (void)snprintf(what, sizeof what, "tpc-b in files, from %llu ms on",
                       (unsigned long long)o->seconds_ms * (unsigned)i);
        swzb_print(o, "cold", what, &samples[1][i], &samples[0][i],
                   samples[1][i].ops_per_s / samples[0][i].ops_per_s, -1, -1);
    }
    (void)bench_remove_tree(directory);
    return rc;
}

/* What B15 does: number 0 scans, the others look up in a hot set. */
static int
scan_op(struct swzb_worker *w)
{
    struct keys *k = w->arg;
    unsigned char key[8], value[8];

    if (w->number != 0) {
        tree_key_u64(swzb_next(&w->seed) % k->working, key);
        return swz_search(w->th, 0, key, value);
    }
    w->n_scanned = (w->n_scanned + LEAF_KEYS) % k->n; /* the next leaf */
    tree_key_u64(w->n_scanned, key);
    return swz_search(w->th, 0, key, value);
}

/* B15: each policy, one scanner, one with a hot set; a pool of 1.5 times that. */
static int
part_scan(const struct swzb_options *o)
{
    static const struct {
        uint32_t policy;
        const char *name;
    } policies[] = {{XAC_FRAMES_SWEEP, "sweep"},
                    {XAC_FRAMES_CAR, "car"},
                    {XAC_FRAMES_NB_GCLOCK, "nb-gclock"},
                    {XAC_FRAMES_GCLOCK_K, "gclock k 10"}};
    uint64_t n_leaves = 32000 * o->scale / 100;
    struct keys k = {.n = n_leaves * LEAF_KEYS, .working = n_leaves / 50 * LEAF_KEYS};
    int rc = 0;

    for (unsigned i = 0; i < 4 && rc == 0; i++) {
        struct swz_space *s =
            space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves),
                                         .n_frames = (uint32_t)(n_leaves * 3 / 100 + 64),
                                         .policy = policies[i].policy},
                     k.n);
        char what[64];

        (void)snprintf(what, sizeof what, "a scanner beside a hot set, %s",
                       policies[i].name);
        rc = pairs(o, "scan", what, s, 2, scan_op, &k) < 0;
        (void)swz_close(s);
    }
    return rc;
}

/* ---- One figure: the same look-ups by other means ---------------------------------------- */

/* timed -- look-ups a second in a tree on plain memory. */
static double
raw_lookups(const struct swzb_options *o, uint64_t n)
{
    size_t bytes = (size_t)PAGES_OF(n / LEAF_KEYS) * 4096 + (4 << 20);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct btree_config config = {.key_size = 8, .value_size = 8, .block_size = 4096};
    struct btree t = {0};
    unsigned char key[8], value[8] = {0};
    uint64_t seed = 7, n_ops = 0, start;
    double rate;

    if (base == MAP_FAILED || btree_serial_create(&t, base, bytes, &config) != 0)
        return -1;
    for (uint64_t i = 0; i < n; i++) {
        tree_key_u64(i, key);
        if (btree_serial_insert(&t, key, value, TREE_PUT, NULL) != 0)
            return -1;
    }
    start = bench_now_ns();
    while (bench_now_ns() - start < o->seconds_ms * 1000000)
        for (int i = 0; i < 256; i++, n_ops++) {
            tree_key_u64((swzb_next(&seed) >> 8) % n, key);
            (void)btree_serial_search(&t, key, value);
        }
    rate = (double)n_ops * 1e9 / (double)(bench_now_ns() - start);
    (void)munmap(base, bytes);
    return rate;
}

/* key_source -- keys 0, 1, ... for a bulk load. */
static bool
key_source(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    static unsigned char key[8], value[8];

    tree_key_u64(i, key);
    *keyp = key;
    *valuep = value;
    return i < *(const uint64_t *)arg;
}

/*
 * view_lookups -- the same tree in a file that xMmap() has mapped; `batch` look-ups to a query,
 * which is one snapshot.
 */
static double
view_lookups(const struct swzb_options *o, uint64_t n, unsigned batch)
{
    size_t bytes = (size_t)PAGES_OF(n / LEAF_KEYS) * 4096 + (4 << 20);
    struct btree_config config = {.key_size = 8, .value_size = 8, .block_size = 4096};
    char directory[] = "swizzle-XXXXXX", env[64], file[64];
    unsigned char key[8], value[8];
    struct btree t = {0};
    uint64_t seed = 7, n_ops = 0, start;
    double rate = -1;
    void *base;

    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(env, sizeof env, "%s/db", directory);
    (void)snprintf(file, sizeof file, "%s/tree", directory);
    if (xInit(env, NONDURABLE) == 0) {
        base = xMmap(file, bytes);
        if (base != MAP_FAILED && btree_create(&t, base, bytes, &config) == 0
            && btree_load(&t, key_source, &n, 100, NULL) == 0) {
            start = bench_now_ns();
            while (bench_now_ns() - start < o->seconds_ms * 1000000) {
                (void)xbeginQuery();
                for (unsigned i = 0; i < batch; i++, n_ops++) {
                    tree_key_u64((swzb_next(&seed) >> 8) % n, key);
                    (void)btree_search(&t, key, value);
                }
                (void)xendQuery();
            }
            rate = (double)n_ops * 1e9 / (double)(bench_now_ns() - start);
        }
        (void)xShutdown();
    }
    (void)bench_remove_tree(directory);
    return rate;
}

/* other_print -- look-ups by something that has no counters of frames. */
static void
other_print(const struct swzb_options *o, const char *what, double ops_per_s)
{
    if (!o->json) {
        printf("%-9s %-44s %8.0f ns for each look-up\n", "figure", what, 1e9 / ops_per_s);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "swizzle");
    bench_json_str(stdout, "part", "figure");
    bench_json_str(stdout, "what", what);
    bench_json_num(stdout, "ops_per_s", ops_per_s);
    bench_json_str(stdout, "command", o->command);
    bench_json_end(stdout);
}

/* frames_lookups -- by reference and by number, warm. */
static int
frames_lookups(const struct swzb_options *o, bool has_hash, struct swzb_result *on,
               struct swzb_result *off)
{
    uint64_t n_leaves = 16000 * o->scale / 100;
    struct keys k = {.n = n_leaves * LEAF_KEYS, .working = n_leaves * LEAF_KEYS};
    struct swz_space *s = space_of((struct swz_config){.n_pages = PAGES_OF(n_leaves),
                                                       .n_frames = PAGES_OF(n_leaves),
                                                       .has_hash = has_hash},
                                   k.n);
    int rc = warm(o, s, true, 1, lookup_op, &k)
             || swzb_run(s, 1, o->seconds_ms, lookup_op, &k, on)
             || warm(o, s, false, 1, lookup_op, &k)
             || swzb_run(s, 1, o->seconds_ms, lookup_op, &k, off);

    (void)swz_close(s);
    return rc;
}

static int
part_figure(const struct swzb_options *o)
{
    uint64_t n = 16000 * o->scale / 100 * LEAF_KEYS;
    struct swzb_result on, array, hash, ignored;
    double raw = raw_lookups(o, n);
    double view = view_lookups(o, n, 1), batch = view_lookups(o, n, 1000);

    if (raw < 0 || view < 0 || batch < 0)
        return bench_fail("swizzle: a mapped tree cannot be made");
    if (frames_lookups(o, true, &ignored, &hash) != 0
        || frames_lookups(o, false, &on, &array) != 0)
        return 1;
    other_print(o, "frames, hash table", hash.ops_per_s);
    other_print(o, "frames, array", array.ops_per_s);
    other_print(o, "frames, reference", on.ops_per_s);
    other_print(o, "mapped view, a query for each", view);
    other_print(o, "mapped view, 1000 in a query", batch);
    other_print(o, "plain memory", raw);
    return 0;
}

/* ---- Command line --------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct swzb_options *o);
} parts[] = {
    {"figure", part_figure}, {"lookup", part_lookup},     {"miss", part_miss},
    {"sweep", part_sweep},   {"tpc-b", part_tpcb},        {"tpc-c", part_tpcc},
    {"policy", part_policy}, {"parallel", part_parallel}, {"scan", part_scan},
    {"cold", part_cold},
};

#define N_PARTS (sizeof parts / sizeof parts[0])

static void
usage(void)
{
    printf(
        "usage: xbench swizzle [--part NAME | --all] [--ms N] [--pairs N] [--scale PERCENT]\n"
        "                      [--quick] [--json]\n"
        "  trees over page frames, with references between resident pages and without\n"
        "  --ms     of each sample (1000; quick: 30)\n"
        "  --pairs  samples with and without, in turn (7; quick: 1)\n"
        "  --scale  sizes of trees and pools (100; quick: 5)\n"
        "  parts:");
    for (unsigned i = 0; i < N_PARTS; i++)
        printf(" %s", parts[i].name);
    printf("\n");
}

int
main(int argc, char **argv)
{
    struct bench_common common = {.dir = "."};
    struct swzb_options o = {0};
    const char *part = NULL;
    bool all = false;
    uint64_t ms = 0, n_pairs = 0, scale = 0;
    const struct bench_option table[] = {
        {.name = "part", .text = &part},
        {.name = "all", .flag = &all},
        {.name = "ms", .number = &ms, .low = 1, .high = 600000},
        {.name = "pairs", .number = &n_pairs, .low = 1, .high = PAIRS_MAX},
        {.name = "scale", .number = &scale, .low = 1, .high = 1000},
        {0},
    };
    bool known = false;

    if (bench_options_parse(argc, argv, table, &common) != 0)
        return 2;
    if (common.help) {
        usage();
        return 0;
    }
    o.json = common.json;
    o.command = common.command;
    o.seconds_ms = ms != 0 ? ms : common.quick ? 30 : 1000;
    o.pairs = n_pairs != 0 ? n_pairs : common.quick ? 1 : 7;
    o.scale = scale != 0 ? scale : common.quick ? 5 : 100;
    for (unsigned i = 0; i < N_PARTS; i++)
        if (part == NULL || strcmp(part, parts[i].name) == 0) {
            known = true;
            if (parts[i].run(&o) != 0)
                return 1;
        }
    if (!known) {
        (void)bench_fail("swizzle: no part \"%s\"", part);
        return 2;
    }
    return 0;
}
