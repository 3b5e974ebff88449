/* SPDX-License-Identifier: MIT */
/*
 * swizzle.c -- the program xbench-swizzle: what references save and cost; see swizzle.h.
 *
 * Each cell is measured with references and without, in turn (ABBA...), on one space that is
 * switched between; the figure is the median of the ratios.  Pages that are not in frames are in
 * memory, behind a delay, so that no cache of the system is measured.
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/options.h"
#include "bench/kit/util.h"

#define PAIRS_MAX     32
#define FEW           3 /* pairs, where an operation is long */
#define MISS_DELAY_NS 80000u

uint64_t
swzb_key_next(const struct swzb_keys *k, uint64_t *seed)
{
    uint64_t r = swzb_next(seed), id = (r >> 8) % k->working;

    if (k->skewed && (r & 15) != 0) { /* each hundredth leaf */
        uint64_t hot = id % (k->working / 100 + 1);

        id = (hot / SWZB_LEAF_KEYS * 100 * SWZB_LEAF_KEYS + hot % SWZB_LEAF_KEYS)
             % k->working;
    }
    return id;
}

int
swzb_lookup_op(struct swzb_worker *w)
{
    unsigned char key[8], value[8];

    tree_key_u64(swzb_key_next(w->arg, &w->seed), key);
    return swz_search(w->th, 0, key, value);
}

int
swzb_fill(struct swz_space *s, uint64_t n)
{
    unsigned char key[8], value[8] = {0};
    struct swz_thread *th;
    int rc = swz_join(s, &th);

    if (rc != 0)
        return rc;
    rc = swz_tree_create(th, 0, 8, 8);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        tree_key_u64(i, key);
        rc = swz_insert(th, 0, key, value, TREE_PUT);
    }
    swz_leave(th);
    return rc;
}

struct swz_space *
swzb_space_of(struct swz_config c, uint64_t n)
{
    struct swz_space *s;
    int rc;

    c.n_threads = SWZB_THREADS_MAX + 1;
    rc = swz_open(NULL, &c, &s);
    rc = rc != 0 ? rc : swzb_fill(s, n);
    if (rc != 0) {
        (void)bench_fail("swizzle: a tree of %llu keys: %s", (unsigned long long)n,
                         strerror(rc));
        exit(1);
    }
    (void)swz_checkpoint(s);
    return s;
}

/* ---- Pairs --------------------------------------------------------------------------- */

int
swzb_warm(const struct swzb_options *o, struct swz_space *s, bool is_on,
          unsigned n_threads, swzb_op *op, void *arg)
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

/* pairs -- on and off in turn; prints the median; out r[0] off, r[1] on: the last; ret it, or -1. */
static double
pairs(const struct swzb_options *o, const char *part, const char *what,
      struct swz_space *s, unsigned n_threads, swzb_op *op, void *arg,
      struct swzb_result *results)
{
    double ratios[PAIRS_MAX];
    uint64_t n = o->pairs < PAIRS_MAX ? o->pairs : PAIRS_MAX;
    /* Look-ups that never wait: what others do on the machine then counts less. */
    bool by_cpu = strcmp(part, "lookup") == 0 || strcmp(part, "sweep") == 0;

    for (uint64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            int is_on = (k == 0) == (i % 2 == 0);

            if (swzb_warm(o, s, is_on, n_threads, op, arg) != 0
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

/* few -- the same options with fewer pairs. */
static struct swzb_options
few(const struct swzb_options *o)
{
    struct swzb_options c = *o;

    c.pairs = o->pairs < FEW ? o->pairs : FEW;
    return c;
}

static double
least(double a, double b)
{
    return a < b ? a : b;
}

static double
most(double a, double b)
{
    return a > b ? a : b;
}

static double
per_eviction(const struct swzb_result *r, uint64_t n)
{
    return r->pool.evictions == 0 ? 0 : (double)n / (double)r->pool.evictions;
}

/* ---- Parts --------------------------------------------------------------------------- */

/* What the cells of part_lookup() come to. */
struct looked {
    double product, fix_product; /* of the ratios of throughput; of times of a fix */
    double worst, most_on, least_off;
    unsigned n, n_fix;
};

static int
lookup_cell(const struct swzb_options *o, struct swz_space *s, const char *table,
            uint64_t n_leaves, unsigned cell, struct looked *sum)
{
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves * SWZB_LEAF_KEYS,
                          .skewed = (cell & 1) != 0};
    struct swzb_result r[2] = {0};
    double ratio, on, off;
    char what[64];

    (void)snprintf(what, sizeof what, "%s, %llu leaves, %s, %u thread%s", table,
                   (unsigned long long)n_leaves, k.skewed ? "skewed" : "uniform",
                   1 + cell / 2, cell < 2 ? "" : "s");
    ratio = pairs(o, "lookup", what, s, 1 + cell / 2, swzb_lookup_op, &k, r);
    if (ratio < 0)
        return 1;
    sum->product *= ratio;
    sum->worst = least(sum->worst, ratio);
    sum->most_on = most(sum->most_on, swzb_per_fix(&r[1]));
    sum->least_off = least(sum->least_off, swzb_per_fix(&r[0]));
    sum->n++;
    on = swzb_ns(&r[1], 0, SWZ_SWIZZLED);
    off = swzb_ns(&r[0], 0, SWZ_LOOKUP);
    if (on > 0 && off > 0) {
        sum->fix_product *= on / off;
        sum->n_fix++;
    }
    return 0;
}

/* lookup_cells -- B01 to B03: everything in frames; "without" looks up in array or hash table. */
static int
lookup_cells(const struct swzb_options *o, bool has_hash)
{
    static const uint64_t leaves[] = {2000, 16000};
    const char *table = has_hash ? "hash" : "array";
    struct looked sum = {.product = 1, .fix_product = 1, .worst = 1e9, .least_off = 1};
    char what[64];

    for (int size = 0; size < 2; size++) {
        uint64_t n_leaves = leaves[size] * o->scale / 100;
        struct swz_space *s =
            swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                              .n_frames = SWZB_PAGES_OF(n_leaves),
                                              .has_hash = has_hash},
                          n_leaves * SWZB_LEAF_KEYS);
        int rc = 0;

        for (unsigned cell = 0; cell < 4 && rc == 0; cell++)
            rc = lookup_cell(o, s, table, n_leaves, cell, &sum);
        (void)swz_close(s);
        if (rc != 0)
            return rc;
    }
    (void)snprintf(what, sizeof what, "look-ups against the %s, geometric mean", table);
    swzb_verdict(o, "B01", what, pow(sum.product, 1.0 / sum.n), true, 1.2);
    (void)snprintf(what, sizeof what, "look-ups against the %s, least cell", table);
    swzb_verdict(o, "B01", what, sum.worst, true, 1.1);
    if (sum.n_fix > 0) {
        (void)snprintf(what, sizeof what, "time of a fix, times that by the %s", table);
        swzb_verdict(o, "B02", what, pow(sum.fix_product, 1.0 / sum.n_fix), false, 0.85);
    }
    swzb_verdict(o, "B03", "look-ups for each fix, on", sum.most_on, false, 0.01);
    swzb_verdict(o, "B03", "look-ups for each fix, off", sum.least_off, true, 0.99);
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
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves * SWZB_LEAF_KEYS};

    for (int i = 0; i < 2; i++) {
        struct swz_space *s =
            swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                              .n_frames = (uint32_t)(n_leaves / 50 + 64),
                                              .delay_ns = delays[i]},
                          k.n);
        struct swzb_result r[2] = {0};
        char what[64];
        int rc;

        (void)snprintf(what, sizeof what, "2 %% of %llu pages, device %u us",
                       (unsigned long long)n_leaves, delays[i] / 1000);
        rc = pairs(o, "miss", what, s, 1, swzb_lookup_op, &k, r) < 0;
        (void)swz_close(s);
        if (rc != 0)
            return rc;
        (void)snprintf(what, sizeof what, "time of a miss on/off, device %u us",
                       delays[i] / 1000);
        swzb_verdict(o, "B04", what,
                     swzb_ns(&r[1], 0, SWZ_MISS) / swzb_ns(&r[0], 0, SWZ_MISS), false,
                     i == 0 ? 1.25 : 1.03);
    }
    return 0;
}

/* B05: the working set grows beyond the pool. */
static int
part_sweep(const struct swzb_options *o)
{
    static const unsigned percent[] = {10, 50, 90, 100, 110, 150, 300, 1000};
    uint64_t n_leaves = 64000 * o->scale / 100;
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS};
    uint32_t n_frames = (uint32_t)(n_leaves / 10 + 64);
    struct swz_space *s =
        swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                          .n_frames = n_frames},
                      k.n);
    double inside = 1e9, outside = 1e9;
    int rc = 0;

    for (unsigned i = 0; i < 8 && rc == 0; i++) {
        struct swzb_result r[2] = {0};
        double ratio;
        char what[64];

        k.working = (uint64_t)n_frames * percent[i] / 100 * SWZB_LEAF_KEYS;
        if (k.working > k.n)
            k.working = k.n;
        (void)snprintf(what, sizeof what, "working set %u %% of the pool", percent[i]);
        ratio = pairs(o, "sweep", what, s, 2, swzb_lookup_op, &k, r);
        rc = ratio < 0;
        inside = percent[i] <= 100 ? least(inside, ratio) : inside;
        outside = percent[i] > 150 ? least(outside, ratio) : outside;
    }
    swzb_verdict(o, "B05", "least on/off, working set within the pool", inside, true,
                 1.1);
    swzb_verdict(o, "B05", "least on/off, more than 1.5 times the pool", outside, true,
                 0.8);
    (void)swz_close(s);
    return rc;
}

/* tpcc_open -- a space with a pool for this part of its pages; `config` has its policy and its device. */
static struct swz_space *
tpcc_open(const struct swzb_options *o, struct swzb_tpcc *c, unsigned n_warehouses,
          double percent, struct swz_config config)
{
    uint32_t pages = swzb_tpcc_size(c, n_warehouses, o->scale);
    struct swz_space *s = NULL;
    int rc;

    config.n_pages = 10 * pages + 200000;
    config.n_frames = (uint32_t)(pages * percent / 100) + 64;
    config.n_threads = 4;
    rc = swz_open(NULL, &config, &s);
    rc = rc != 0 ? rc : swzb_tpcc_load(s, c);
    if (rc != 0) {
        (void)bench_fail("swizzle: tpc-c: %s", strerror(rc));
        return NULL;
    }
    return s;
}

/* The policies of part_policy(). */
enum {
    ROW_SWEEP = 0,
    ROW_CAR = 2,
    ROW_GCLOCK = 8,
    ROW_ON_UNFIX = 10,
    N_POLICY_ROWS = 11
};
static const struct policy_row {
    const char *name;
    uint32_t policy, k;
    bool counts_first_fix;
} policy_rows[N_POLICY_ROWS] = {
    [ROW_SWEEP] = {"sweep", XAC_FRAMES_SWEEP, 0, false},
    {"random", XAC_FRAMES_RANDOM, 0, false},
    [ROW_CAR] = {"car", XAC_FRAMES_CAR, 0, false},
    {"nb-gclock", XAC_FRAMES_NB_GCLOCK, 0, false},
    {"gclock k 1", XAC_FRAMES_GCLOCK_K, 1, false},
    {"gclock k 2", XAC_FRAMES_GCLOCK_K, 2, false},
    {"gclock k 3", XAC_FRAMES_GCLOCK_K, 3, false},
    {"gclock k 5", XAC_FRAMES_GCLOCK_K, 5, false},
    [ROW_GCLOCK] = {"gclock k 10", XAC_FRAMES_GCLOCK_K, 10, false},
    {"gclock k 20", XAC_FRAMES_GCLOCK_K, 20, false},
    [ROW_ON_UNFIX] = {"gclock k 10, set on unfix", XAC_FRAMES_GCLOCK_K, 10, true},
};

/* What one of them did with a pool. */
struct policy_cost {
    double misses; /* for each fix */
    double steps;  /* for each eviction */
};

/* policy_cell -- one policy, one pool; ret 0, or 1 after a message. */
static int
policy_cell(const struct swzb_options *o, const struct policy_row *row, double pool,
            struct policy_cost *costp)
{
    const struct swz_config config = {.policy = row->policy,
                                      .weight_max = row->k,
                                      .counts_first_fix = row->counts_first_fix};
    bool is_of_k = row->policy == XAC_FRAMES_GCLOCK_K && !row->counts_first_fix;
    struct swzb_tpcc *c = calloc(1, sizeof *c);
    struct swz_space *s = c == NULL ? NULL : tpcc_open(o, c, 1, pool, config);
    struct swzb_result r[2] = {0};
    char what[96];
    int rc;

    (void)snprintf(what, sizeof what, "%s, %.1f %% of the pages", row->name, pool);
    rc = s == NULL || pairs(o, "policy", what, s, 1, swzb_tpcc_op, c, r) < 0;
    if (rc == 0) {
        costp->misses = swzb_miss_rate(&r[1]);
        costp->steps = per_eviction(&r[1], r[1].pool.sweep_steps);
        (void)snprintf(what, sizeof what, "misses %%, %s, pool %.1f %%", row->name, pool);
        swzb_verdict(o, is_of_k ? "B11" : "B09", what, 100 * costp->misses, false, NAN);
        (void)snprintf(what, sizeof what, "steps for each eviction, %s", row->name);
        swzb_verdict(o, "B10", what, costp->steps, false, NAN);
        (void)snprintf(what, sizeof what, "ns of a miss, an eviction in it, %s",
                       row->name);
        swzb_verdict(o, "B10", what, swzb_ns(&r[1], 0, SWZ_MISS), false, NAN);
    }
    if (s != NULL)
        (void)swz_close(s);
    free(c);
    return rc;
}

/* policy_ranks -- B09: the order of misses; with the smallest pool it is only reported, as in the plan. */
static void
policy_ranks(const struct swzb_options *o, const struct policy_cost *costs, double pool)
{
    static const struct {
        const char *what;
        unsigned better, worse;
    } ranks[] = {
        {"car's misses, times those of gclock set on unfix", ROW_CAR, ROW_ON_UNFIX},
        {"gclock's, times those of gclock set on unfix", ROW_GCLOCK, ROW_ON_UNFIX},
        {"gclock's set on unfix, times those of sweep", ROW_ON_UNFIX, ROW_SWEEP}};
    char what[96];

    for (unsigned i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        (void)snprintf(what, sizeof what, "%s, pool %.1f %%", ranks[i].what, pool);
        swzb_verdict(o, "B09", what,
                     costs[ranks[i].better].misses / costs[ranks[i].worse].misses, false,
                     pool >= 4 ? 1 : NAN);
    }
}

/* B09 to B11: each policy with a small pool; "tpc-c-like" under all of them. */
static int
part_policy(const struct swzb_options *o)
{
    static const double pools[] = {2, 7.5, 15};
    const struct swzb_options fewer = few(o);
    int rc = 0;

    for (unsigned p = 0; p < 3 && rc == 0; p++) {
        struct policy_cost costs[N_POLICY_ROWS] = {{0}};

        for (unsigned i = 0; i < N_POLICY_ROWS && rc == 0; i++)
            rc = policy_cell(&fewer, &policy_rows[i], pools[p], &costs[i]);
        if (rc != 0)
            break;
        policy_ranks(o, costs, pools[p]);
        swzb_verdict(o, "B10", "steps of car, times those of gclock k 10",
                     costs[ROW_CAR].steps / costs[ROW_GCLOCK].steps, false, 3);
    }
    return rc;
}

/* part_structure -- B12: what the structural rule costs SWEEP; only look-ups, so nothing is dirty. */
static int
part_structure(const struct swzb_options *o)
{
    static const double percent[] = {0.4, 2, 15};
    const struct swzb_options fewer = few(o);
    uint64_t n_leaves = 64000 * o->scale / 100;
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves * SWZB_LEAF_KEYS};
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++) {
        struct swz_space *s = swzb_space_of(
            (struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                .n_frames =
                                    (uint32_t)((double)n_leaves * percent[i] / 100) + 64,
                                .policy = XAC_FRAMES_SWEEP},
            k.n);
        struct swzb_result r[2] = {0};
        char what[64];

        (void)snprintf(what, sizeof what, "sweep, pool %.1f %%", percent[i]);
        rc = pairs(&fewer, "structure", what, s, 1, swzb_lookup_op, &k, r) < 0;
        (void)snprintf(what, sizeof what,
                       "refused for children, for each eviction, %.1f %%", percent[i]);
        swzb_verdict(o, "B12", what, per_eviction(&r[1], r[1].stats.refused_children),
                     false, 0.42);
        (void)swzb_warm(o, s, true, 1, swzb_lookup_op, &k);
        (void)snprintf(what, sizeof what, "ns to ask for children, %.1f %%", percent[i]);
        swzb_verdict(o, "B12", what, swzb_barred_ns(s), false, 20);
        (void)swz_close(s);
    }
    return rc;
}

/* linearity -- R squared of a line through (x, y). */
static double
linearity(const double *x, const double *y, unsigned n)
{
    double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;

    for (unsigned i = 0; i < n; i++) {
        mx += x[i] / n;
        my += y[i] / n;
    }
    for (unsigned i = 0; i < n; i++) {
        xy += (x[i] - mx) * (y[i] - my);
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
    }
    return xx * yy > 0 ? xy * xy / (xx * yy) : 0;
}

/* B08: uniform accounts, and a pool from little to all of it. */
static int
part_tpcb(const struct swzb_options *o)
{
    static const double percent[] = {2, 5, 16, 40, 80, 160};
    const struct swzb_options fewer = few(o);
    double ops[6] = {0}, large = 1e9, small = 1e9;
    int rc = 0;

    for (unsigned i = 0; i < 6 && rc == 0; i++) {
        struct swzb_tpcb b = {.n_accounts = 1900000 * o->scale / 100};
        uint32_t pages = (uint32_t)(b.n_accounts / 30);
        struct swz_config config = {.n_pages = 20 * pages + 100000,
                                    .n_frames = (uint32_t)(pages * percent[i] / 100) + 64,
                                    .n_threads = 4,
                                    .delay_ns = 20000};
        struct swzb_result r[2] = {0};
        struct swz_space *s;
        double ratio;
        char what[64];

        rc = swz_open(NULL, &config, &s);
        rc = rc != 0 ? rc : swzb_tpcb_load(s, &b);
        if (rc != 0)
            return bench_fail("swizzle: tpc-b: %s", strerror(rc));
        (void)snprintf(what, sizeof what, "pool %.0f %% of the accounts", percent[i]);
        ratio = pairs(&fewer, "tpc-b", what, s, 2, swzb_tpcb_op, &b, r);
        rc = ratio < 0;
        ops[i] = r[1].ops_per_s;
        large = percent[i] >= 80 ? least(large, ratio) : large;
        small = percent[i] < 80 ? least(small, ratio) : small;
        (void)swz_close(s);
    }
    swzb_verdict(o, "B08", "growth up to 80 % is linear, R squared",
                 linearity(percent, ops, 5), true, 0.95);
    swzb_verdict(o, "B08", "least on/off, pools of 80 % and more", large, true, 1.02);
    swzb_verdict(o, "B08", "least on/off, smaller pools", small, true, 0.92);
    return rc;
}

/* B06, B09: pools from little to all, three policies. */
static int
part_tpcc(const struct swzb_options *o)
{
    static const double percent[] = {0.4, 0.75, 2, 4, 7.5, 15, 30, 60, 110};
    static const struct {
        uint32_t policy;
        const char *name;
    } policies[] = {{XAC_FRAMES_SWEEP, "sweep"},
                    {XAC_FRAMES_GCLOCK_K, "gclock"},
                    {XAC_FRAMES_CAR, "car"}};
    const struct swzb_options fewer = few(o);
    int rc = 0;

    for (unsigned p = 0; p < 3 && rc == 0; p++) {
        double worst = 1e9, ops[9] = {0};
        char what[64];

        for (unsigned i = 0; i < 9 && rc == 0; i++) {
            struct swzb_tpcc *c = calloc(1, sizeof *c);
            struct swz_space *s =
                tpcc_open(o, c, 6, percent[i],
                          (struct swz_config){.policy = policies[p].policy,
                                              .delay_ns = 20000});
            struct swzb_result r[2] = {0};
            double ratio = -1;

            (void)snprintf(what, sizeof what, "6 warehouses, %s, pool %.2f %%",
                           policies[p].name, percent[i]);
            if (s != NULL)
                ratio = pairs(&fewer, "tpc-c", what, s, 2, swzb_tpcc_op, c, r);
            rc = ratio < 0;
            worst = least(worst, ratio);
            ops[i] = r[1].ops_per_s;
            if (s != NULL)
                (void)swz_close(s);
            free(c);
        }
        (void)snprintf(what, sizeof what, "least on/off of all pools, %s",
                       policies[p].name);
        swzb_verdict(o, "B06", what, worst, true, 0.95);
        (void)snprintf(what, sizeof what, "tx/s with 60 %% of those with 110 %%, %s",
                       policies[p].name);
        swzb_verdict(o, "B06", what, ops[7] / ops[8], false, NAN);
    }
    return rc;
}

/* B13, B14: eight threads evict at once; two fill the same tree with references. */
static int
part_parallel(const struct swzb_options *o)
{
    uint64_t n_leaves = 32000 * o->scale / 100;
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves * SWZB_LEAF_KEYS};
    struct swz_space *s =
        swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                          .n_frames = (uint32_t)(n_leaves / 50 + 64)},
                      k.n);
    struct swzb_result r[2] = {0};
    int rc = pairs(o, "parallel", "8 threads, 2 % pool", s, 8, swzb_lookup_op, &k, r) < 0;

    swzb_verdict(o, "B13", "longest time of 16 look-ups, s", r[1].longest_s, false, 1);
    swzb_verdict(o, "B13", "evictions refused for a latch, for each one",
                 per_eviction(&r[1], r[1].stats.refused_latch), false, NAN);
    if (rc == 0)
        rc = pairs(o, "parallel", "2 threads, 2 % pool", s, 2, swzb_lookup_op, &k, r) < 0;
    (void)swz_close(s);
    if (rc != 0)
        return rc;
    s = swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                          .n_frames = SWZB_PAGES_OF(n_leaves)},
                      k.n);
    swz_set_swizzling(s, false); /* numbers only, */
    swz_set_swizzling(s, true);  /* then made references by both */
    rc = swzb_run(s, 2, o->seconds_ms, swzb_lookup_op, &k, &r[1]);
    swzb_verdict(o, "B14", "pages latched exclusively while two threads swizzle",
                 (double)r[1].stats.latched_x, false, 0);
    swzb_verdict(o, "B14", "... pages swizzled", (double)r[1].stats.swizzles, true, 1);
    (void)swz_close(s);
    return rc;
}

/* What B15 does: number 0 scans unless `skewed`, the others look up in a hot set. */
static int
scan_op(struct swzb_worker *w)
{
    struct swzb_keys *k = w->arg;
    unsigned char key[8], value[8];

    if (w->number != 0 || k->skewed) {
        tree_key_u64(swzb_next(&w->seed) % k->working, key);
        return swz_search(w->th, 0, key, value);
    }
    w->n_scanned = (w->n_scanned + SWZB_LEAF_KEYS) % k->n; /* the next leaf */
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
        bool is_judged;
    } policies[] = {{XAC_FRAMES_SWEEP, "sweep", false},
                    {XAC_FRAMES_RANDOM, "random", false},
                    {XAC_FRAMES_CAR, "car", true},
                    {XAC_FRAMES_NB_GCLOCK, "nb-gclock", false},
                    {XAC_FRAMES_GCLOCK_K, "gclock k 10", true}};
    const struct swzb_options fewer = few(o);
    uint64_t n_leaves = 32000 * o->scale / 100;
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves / 50 * SWZB_LEAF_KEYS};
    int rc = 0;

    for (unsigned i = 0; i < 5 && rc == 0; i++) {
        struct swzb_result alone, r[2] = {0};
        struct swz_space *s =
            swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                              .n_frames =
                                                  (uint32_t)(n_leaves * 3 / 100 + 64),
                                              .policy = policies[i].policy},
                          k.n);
        char what[64];

        (void)snprintf(what, sizeof what, "a scanner beside a hot set, %s",
                       policies[i].name);
        k.skewed = true; /* nobody scans */
        rc = swzb_warm(o, s, true, 2, scan_op, &k)
             || swzb_run(s, 2, o->seconds_ms, scan_op, &k, &alone);
        k.skewed = false;
        rc = rc || pairs(&fewer, "scan", what, s, 2, scan_op, &k, r) < 0;
        (void)snprintf(what, sizeof what, "points more of misses beside a scan, %s",
                       policies[i].name);
        swzb_verdict(o, "B15", what, 100 * (r[1].last_miss_rate - alone.last_miss_rate),
                     false, policies[i].is_judged ? 1 : NAN);
        (void)swz_close(s);
    }
    return rc;
}

/* ---- Command line --------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct swzb_options *o);
} parts[] = {
    {"figure", swzb_figure},       {"pressure", swzb_pressure},
    {"lookup", part_lookup},       {"miss", part_miss},
    {"sweep", part_sweep},         {"tpc-b", part_tpcb},
    {"tpc-c", part_tpcc},          {"policy", part_policy},
    {"structure", part_structure}, {"parallel", part_parallel},
    {"scan", part_scan},           {"start", swzb_curve},
};

#define N_PARTS (sizeof parts / sizeof parts[0])

static void
usage(void)
{
    static const struct bench_help options[] = {
        {"all", NULL, "all parts, as without --part", NULL},
        {"part", "NAME", "one of them", NULL},
        {"ms", "N", "of each sample", "1000; with --quick 30"},
        {"pairs", "N", "samples with references and without, in turn",
         "7; with --quick 1"},
        {"scale", "PERCENT", "of the sizes of trees and pools", "100; with --quick 5"},
        {"seconds", "N", "the part start: of each side",
         "20; with --quick 1, with --curve 600"},
        {"pools", "LIST", "the part start: percent of the pages", "7,30,110"},
        {"intervals", "N", "the part start: in how many the time is measured",
         "10; with --curve 20"},
        {"curve", NULL, "the part start alone, an hour", NULL},
        {"quick", NULL, "small and short: shows that it runs", NULL},
        {0},
    };

    puts("Trees over page frames, with references between resident pages and without.\n");
    bench_options_help(options);
    fputs("\nParts:", stdout);
    for (unsigned i = 0; i < N_PARTS; i++)
        printf(" %s", parts[i].name);
    puts(
        "\n\nA line that begins with B and a number is a row of the plan, and its verdict.  Exit\n"
        "code 3: one has missed its line.");
}

/* curve_options -- what the part start does if it is not told; 0, and no pools: not told. */
static void
curve_options(struct swzb_options *o, bool is_curve, uint64_t seconds, uint64_t intervals,
              bool is_quick)
{
    static const struct bench_numbers pools = {3, {7, 30, 110}};

    o->seconds = seconds != 0 ? seconds : is_quick ? 1 : is_curve ? 600 : 20;
    o->intervals = intervals != 0 ? intervals : is_curve ? 20 : 10;
    if (o->pools.n == 0)
        o->pools = pools;
}

int
main(int argc, char **argv)
{
    struct bench_common common = {.dir = "."};
    struct swzb_options o = {0};
    const char *part = NULL;
    bool all = false, curve = false;
    uint64_t ms = 0, n_pairs = 0, scale = 0, seconds = 0, intervals = 0;
    const struct bench_option table[] = {
        {.name = "part", .text = &part},
        {.name = "all", .flag = &all},
        {.name = "ms", .number = &ms, .low = 1, .high = 600000},
        {.name = "pairs", .number = &n_pairs, .low = 1, .high = PAIRS_MAX},
        {.name = "seconds", .number = &seconds, .low = 1, .high = 36000},
        {.name = "curve", .flag = &curve},
        {.name = "intervals", .number = &intervals, .low = 4, .high = SWZB_INTERVALS_MAX},
        {.name = "pools", .numbers = &o.pools, .low = 1, .high = 1000},
        {.name = "scale", .number = &scale, .low = 1, .high = 1000},
        {0},
    };
    bool known = false;
    int rc;

    if (!bench_options_parse(argc, argv, table, usage, &common, &rc))
        return rc;
    o.json = common.json;
    o.command = common.command;
    o.seconds_ms = ms != 0 ? ms : common.quick ? 30 : 1000;
    o.pairs = n_pairs != 0 ? n_pairs : common.quick ? 1 : 7;
    o.scale = scale != 0 ? scale : common.quick ? 5 : 100;
    curve_options(&o, curve, seconds, intervals, common.quick);
    if (curve && part == NULL)
        part = "start";
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
    return swzb_missed() > 0 ? BENCH_SHORT : 0;
}
