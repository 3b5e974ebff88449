/* SPDX-License-Identifier: MIT */
/*
 * swizzle_figure.c -- one figure: the same look-ups by reference, by table, in a mapped view of the
 * library whose accesses trap or are announced by the compiler, and on plain mmap; all of it in memory
 * (under pressure: swizzle_pressure.c).
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "bench/kit/util.h"

#define QUERY_MANY 1000u /* look-ups in a query */

const struct swzb_view swzb_view_trapped = {.create = btree_create,
                                            .open = btree_open,
                                            .load = btree_load,
                                            .search = btree_search,
                                            .checking = XAC_CHECKING_FAST};

#ifdef HAVE_COMPILED
/* The B+-tree as xac-cc compiles it (bench/systems/Makefile.inc). */
extern __typeof__(btree_create) compiled_btree_create;
extern __typeof__(btree_open) compiled_btree_open;
extern __typeof__(btree_load) compiled_btree_load;
extern __typeof__(btree_search) compiled_btree_search;

const struct swzb_view swzb_view_compiled = {.create = compiled_btree_create,
                                             .open = compiled_btree_open,
                                             .load = compiled_btree_load,
                                             .search = compiled_btree_search,
                                             .checking = XAC_CHECKING_TRUSTED};
#endif

/* raw_map -- a file without a name. */
static void *
raw_map(size_t bytes)
{
    char name[] = "swizzle-XXXXXX";
    int fd = mkstemp(name);
    void *base = MAP_FAILED;

    if (fd < 0)
        return base;
    (void)unlink(name);
    if (ftruncate(fd, (off_t)bytes) == 0)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return base;
}

/* raw_lookups -- look-ups a second in a tree on plain mmap. */
static double
raw_lookups(const struct swzb_options *o, uint64_t n)
{
    size_t bytes = (size_t)SWZB_PAGES_OF(n / SWZB_LEAF_KEYS) * 4096 + (4 << 20);
    void *base = raw_map(bytes);
    struct btree_config config = {.key_size = 8, .value_size = 8, .block_size = 4096};
    struct btree t = {0};
    unsigned char key[8], value[8];
    uint64_t seed = 7, n_ops = 0, start;
    double rate;

    if (base == MAP_FAILED || btree_serial_create(&t, base, bytes, &config) != 0
        || btree_serial_load(&t, swzb_key_source, &n, 100, NULL) != 0)
        return -1;
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

bool
swzb_key_source(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    static unsigned char key[8], value[8];

    tree_key_u64(i, key);
    *keyp = key;
    *valuep = value;
    return i < *(const uint64_t *)arg;
}

/* query_rate -- look-ups a second, `batch` of them to a query, which is one snapshot; -1: one has found nothing. */
static double
query_rate(const struct swzb_options *o, const struct swzb_view *view, struct btree *t,
           uint64_t n, unsigned batch)
{
    uint64_t seed = 7, n_ops = 0, start = bench_now_ns();
    unsigned char key[8], value[8];
    int rc = 0;

    while (rc == 0 && bench_now_ns() - start < o->seconds_ms * 1000000) {
        (void)xbeginQuery();
        for (unsigned i = 0; i < batch && rc == 0; i++, n_ops++) {
            tree_key_u64((swzb_next(&seed) >> 8) % n, key);
            rc = view->search(t, key, value);
        }
        (void)xendQuery();
    }
    if (rc != 0)
        return -1;
    return (double)n_ops * 1e9 / (double)(bench_now_ns() - start);
}

/*
 * view_lookups -- the same tree in a file that xMmap() has mapped.
 *
 * out  ratesp  a query for each, and one for QUERY_MANY
 * ret  0, or 1: it cannot be made, or a key is not found
 */
static int
view_lookups(const struct swzb_options *o, const struct swzb_view *view, uint64_t n,
             double *ratesp)
{
    size_t bytes = (size_t)SWZB_PAGES_OF(n / SWZB_LEAF_KEYS) * 4096 + (4 << 20);
    struct btree_config config = {.key_size = 8, .value_size = 8, .block_size = 4096};
    char directory[] = "swizzle-XXXXXX", env[64], file[64];
    struct btree t = {0};
    void *base;
    int rc = 1;

    if (mkdtemp(directory) == NULL)
        return 1;
    (void)snprintf(env, sizeof env, "%s/db", directory);
    (void)snprintf(file, sizeof file, "%s/tree", directory);
    if (xac_set_option(XAC_OPT_CHECKING, view->checking) == 0
        && xInit(env, NONDURABLE) == 0) {
        base = xMmap(file, bytes);
        if (base != MAP_FAILED && view->create(&t, base, bytes, &config) == 0
            && view->load(&t, swzb_key_source, &n, 100, NULL) == 0) {
            ratesp[0] = query_rate(o, view, &t, n, 1);
            ratesp[1] = query_rate(o, view, &t, n, QUERY_MANY);
            rc = ratesp[0] < 0 || ratesp[1] < 0;
        }
        (void)xShutdown();
    }
    (void)bench_remove_tree(directory);
    return rc;
}

void
swzb_other_print(const struct swzb_options *o, const char *part, const char *what,
                 const char *memory, double ops_per_s)
{
    if (!o->json) {
        printf("%-9s %-40s %-22s %10.0f ns for each look-up\n", part, what, memory,
               1e9 / ops_per_s);
        (void)fflush(stdout);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "swizzle");
    bench_json_str(stdout, "part", part);
    bench_json_str(stdout, "what", what);
    bench_json_str(stdout, "memory", memory);
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
    struct swzb_keys k = {.n = n_leaves * SWZB_LEAF_KEYS,
                          .working = n_leaves * SWZB_LEAF_KEYS};
    struct swz_space *s =
        swzb_space_of((struct swz_config){.n_pages = SWZB_PAGES_OF(n_leaves),
                                          .n_frames = SWZB_PAGES_OF(n_leaves),
                                          .has_hash = has_hash},
                      k.n);
    int rc = swzb_warm(o, s, true, 1, swzb_lookup_op, &k)
             || swzb_run(s, 1, o->seconds_ms, swzb_lookup_op, &k, on)
             || swzb_warm(o, s, false, 1, swzb_lookup_op, &k)
             || swzb_run(s, 1, o->seconds_ms, swzb_lookup_op, &k, off);

    (void)swz_close(s);
    return rc;
}

/* view_print -- look-ups of one kind of view; ret 0, or 1 after a message. */
static int
view_print(const struct swzb_options *o, const struct swzb_view *view, const char *name,
           uint64_t n)
{
    double rates[2];
    char what[64];

    if (view_lookups(o, view, n, rates) != 0)
        return bench_fail("swizzle: %s: a tree cannot be made, or a key is not found",
                          name);
    (void)snprintf(what, sizeof what, "%s, query for each", name);
    swzb_other_print(o, "figure", what, "enough", rates[0]);
    (void)snprintf(what, sizeof what, "%s, %u in a query", name, QUERY_MANY);
    swzb_other_print(o, "figure", what, "enough", rates[1]);
    return 0;
}

int
swzb_figure(const struct swzb_options *o)
{
    uint64_t n = 16000 * o->scale / 100 * SWZB_LEAF_KEYS;
    struct swzb_result on, array, hash, ignored;
    double raw;

    if (frames_lookups(o, true, &ignored, &hash) != 0
        || frames_lookups(o, false, &on, &array) != 0)
        return 1;
    swzb_other_print(o, "figure", "hash table", "enough", hash.ops_per_s);
    swzb_other_print(o, "figure", "array", "enough", array.ops_per_s);
    swzb_other_print(o, "figure", "reference", "enough", on.ops_per_s);
    if (view_print(o, &swzb_view_trapped, "view", n) != 0)
        return 1;
#ifdef HAVE_COMPILED
    if (view_print(o, &swzb_view_compiled, "compiled", n) != 0)
        return 1;
#endif
    raw = raw_lookups(o, n);
    if (raw < 0)
        return bench_fail("swizzle: a mapped tree cannot be made");
    swzb_other_print(o, "figure", "plain mmap", "enough", raw);
    return 0;
}
