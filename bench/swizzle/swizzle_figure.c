/* SPDX-License-Identifier: MIT */
/*
 * swizzle_figure.c -- one figure: the same look-ups by reference, by table, in a mapped view of the
 * library, and on plain mmap; all of it in memory (under pressure: swizzle_pressure.c).
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
#include "btree.h"

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

/*
 * view_lookups -- the same tree in a file that xMmap() has mapped; `batch` look-ups to a query,
 * which is one snapshot.
 */
static double
view_lookups(const struct swzb_options *o, uint64_t n, unsigned batch)
{
    size_t bytes = (size_t)SWZB_PAGES_OF(n / SWZB_LEAF_KEYS) * 4096 + (4 << 20);
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
            && btree_load(&t, swzb_key_source, &n, 100, NULL) == 0) {
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

int
swzb_figure(const struct swzb_options *o)
{
    uint64_t n = 16000 * o->scale / 100 * SWZB_LEAF_KEYS;
    struct swzb_result on, array, hash, ignored;
    double raw = raw_lookups(o, n);
    double view = view_lookups(o, n, 1), batch = view_lookups(o, n, 1000);

    if (raw < 0 || view < 0 || batch < 0)
        return bench_fail("swizzle: a mapped tree cannot be made");
    if (frames_lookups(o, true, &ignored, &hash) != 0
        || frames_lookups(o, false, &on, &array) != 0)
        return 1;
    swzb_other_print(o, "figure", "hash table", "enough", hash.ops_per_s);
    swzb_other_print(o, "figure", "array", "enough", array.ops_per_s);
    swzb_other_print(o, "figure", "reference", "enough", on.ops_per_s);
    swzb_other_print(o, "figure", "view, query for each", "enough", view);
    swzb_other_print(o, "figure", "view, 1000 in a query", "enough", batch);
    swzb_other_print(o, "figure", "plain mmap", "enough", raw);
    return 0;
}
