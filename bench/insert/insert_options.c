/* SPDX-License-Identifier: MIT */
/*
 * insert_options.c -- command line of the experiment `insert`.
 */
#include <config.h>

#include "bench/insert/insert.h"

#include <stdio.h>
#include <string.h>

#include "bench/kit/machine.h"
#include "bench/kit/util.h"
#include "bench/kit/worker.h"

/* Without --cache: room for this many bytes a record, and no less than the minimum. */
#define CACHE_PER_RECORD 2048u
#define CACHE_MIN        (UINT64_C(64) << 20)

/* Records that are there before: not told, and where a workload needs some. */
#define NOT_TOLD       UINT64_MAX
#define LOADED_DEFAULT 100000

#define COUNT_MAX  UINT64_C(1000000000)
#define SLICES_MAX 10000u

/* --keys paths: of the files below it. */
#define PATHS_OF "/usr"

/* set_workloads -- "ycsb-a,ycsb-b". */
static int
set_workloads(struct bench_insert_options *o, const struct bench_words *words)
{
    for (unsigned i = 0; i < words->n; i++) {
        const struct bench_workload *w = bench_workloads;

        while (w->name != NULL && strcmp(w->name, words->v[i]) != 0)
            w++;
        if (w->name == NULL)
            return bench_fail("--workload %s: there is no such workload; see --help",
                              words->v[i]);
        o->workloads[o->n_workloads++] = w;
    }
    if (words->n == 0)
        o->workloads[o->n_workloads++] = &bench_workloads[0];
    return 0;
}

/* set_keys -- random, sorted, paths. */
static int
set_keys(struct bench_insert_options *o, const char *text)
{
    static const char *const names[] = {[BENCH_KEYS_RANDOM] = "random",
                                        [BENCH_KEYS_SORTED] = "sorted",
                                        [BENCH_KEYS_PATHS] = "paths"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            o->keys = (enum bench_keys)i;
            return 0;
        }
    return bench_fail("--keys %s: random, sorted or paths is wanted", text);
}

/* say_missing -- a system that is left out. */
static void
say_missing(const char *name)
{
    fprintf(stderr, "xbench: %s is not in this build and is left out\n", name);
}

/* default_systems -- those of the usual table that are in this build. */
static void
default_systems(struct bench_insert_options *o)
{
    static const char *const names[] = {"btree",
                                        "btree-oldest-wins",
                                        "btree-serial-announced",
                                        "cobtree",
                                        "bdb",
                                        "bdb-zero",
                                        "lmdb",
                                        "sqlite",
                                        "mmap",
                                        "sync"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct bench_system *system = bench_system_find(names[i]);

        if (system != NULL)
            o->systems[o->n_systems++] = system;
        else
            say_missing(names[i]);
    }
}

/* set_systems -- "btree,bdb"; each at most once. */
static int
set_systems(struct bench_insert_options *o, const struct bench_words *words)
{
    for (unsigned k = 0; k < words->n; k++) {
        const char *name = words->v[k];
        const struct bench_system *system = bench_system_find(name);

        if (system == NULL && bench_system_missing(name)) {
            say_missing(name);
            continue;
        }
        if (system == NULL)
            return bench_fail(
                "--systems: no system \"%s\" in this build; see xbench list", name);
        for (unsigned i = 0; i < o->n_systems; i++)
            if (o->systems[i] == system)
                return bench_fail("--systems: %s is there twice", name);
        o->systems[o->n_systems++] = system;
    }
    if (words->n == 0)
        default_systems(o);
    return o->n_systems > 0 ? 0 : bench_fail("--systems: the list is empty");
}

/* set_over -- the systems that others are compared with, in this build or not. */
static int
set_over(struct bench_insert_options *o)
{
    static char bdb[] = "bdb", lmdb[] = "lmdb", sqlite[] = "sqlite";
    static char *const usual[] = {bdb, lmdb, sqlite};

    for (unsigned i = 0; i < o->over.n; i++)
        if (bench_system_find(o->over.v[i]) == NULL
            && !bench_system_missing(o->over.v[i]))
            return bench_fail("--over: no system \"%s\"; see xbench list", o->over.v[i]);
    if (o->over.n == 0) {
        o->over.n = sizeof usual / sizeof usual[0];
        memcpy(o->over.v, usual, sizeof usual);
    }
    return 0;
}

/* set_hints -- on, off, both. */
static int
set_hints(struct bench_insert_options *o, const char *text)
{
    bool both = strcmp(text, "both") == 0;

    o->hints_on = both || strcmp(text, "on") == 0;
    o->hints_off = both || strcmp(text, "off") == 0;
    return o->hints_on || o->hints_off
               ? 0
               : bench_fail("--hints %s: on, off or both is wanted", text);
}

/* inserts_most -- of any of the workloads. */
static uint64_t
inserts_most(const struct bench_insert_options *o)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < o->n_workloads; i++) {
        const struct bench_job job = {.workload = o->workloads[i]};
        uint64_t n = bench_job_records(&job, o->count);

        most = n > most ? n : most;
    }
    return most;
}

/* check_options -- what concerns several options; ret 0, or 1 after a message. */
static int
check_options(struct bench_insert_options *o)
{
    if (o->count < o->slices)
        return bench_fail("fewer records (%llu) than slices (%llu)",
                          (unsigned long long)o->count, (unsigned long long)o->slices);
    for (unsigned i = 0; i < o->n_workloads; i++) {
        const struct bench_workload *w = o->workloads[i];
        bool needs_records = w->insert_every != 1 || w->has_writer;

        if (needs_records && o->loaded == 0)
            return bench_fail("--workload %s needs records: --loaded", w->name);
        if (o->loaded == NOT_TOLD)
            o->loaded = needs_records ? LOADED_DEFAULT : NOT_TOLD;
    }
    if (o->loaded == NOT_TOLD)
        o->loaded = 0;
    for (unsigned i = 0; i < o->groups.n * o->n_workloads; i++) {
        const struct bench_workload *w = o->workloads[i / o->groups.n];

        if (o->groups.v[i % o->groups.n] > 1 && (w->changes || w->insert_every != 0))
            return bench_fail("--groups: %s does more than read", w->name);
    }
    for (unsigned i = 0; i < o->procs.n && o->warm; i++)
        if (o->procs.v[i] > 1)
            return bench_fail("--warm: with several processes they would not start "
                              "together");
    if ((o->block_bytes & (o->block_bytes - 1)) != 0)
        return bench_fail("--block %llu: a power of two is wanted",
                          (unsigned long long)o->block_bytes);
    if (o->durabilities & BENCH_DURABLE
        && strcmp(bench_fs_name(o->common.dir), "tmpfs") == 0)
        fprintf(stderr,
                "xbench: %s is in memory (tmpfs): syncs cost nothing there and "
                "say nothing about durability; use --dir\n",
                o->common.dir);
    if (o->cache_bytes == 0) {
        o->cache_bytes = (o->loaded + inserts_most(o)) * CACHE_PER_RECORD;
        o->cache_bytes = o->cache_bytes < CACHE_MIN ? CACHE_MIN : o->cache_bytes;
    }
    return 0;
}

bool
bench_insert_parse(int argc, char **argv, struct bench_insert_options *o, int *statusp)
{
    struct bench_words workloads = {0}, systems = {0};
    const char *keys = "random", *hints = "on";
    const uint64_t all = BENCH_DURABLE | BENCH_NOT_DURABLE, tera = UINT64_C(1) << 40;
    const struct bench_option table[] = {
        {.name = "durable", .constant = &o->durabilities, .low = BENCH_DURABLE},
        {.name = "nondurable", .constant = &o->durabilities, .low = BENCH_NOT_DURABLE},
        {.name = "both", .constant = &o->durabilities, .low = all},
        {.name = "procs", .numbers = &o->procs, .low = 1, .high = BENCH_PROCS_MAX - 1},
        {.name = "count", .number = &o->count, .low = 1, .high = COUNT_MAX},
        {.name = "workload", .words = &workloads},
        {.name = "keys", .text = &keys},
        {.name = "loaded", .number = &o->loaded, .low = 0, .high = COUNT_MAX},
        {.name = "scan-length", .number = &o->scan_length, .low = 1, .high = COUNT_MAX},
        {.name = "groups", .numbers = &o->groups, .low = 1, .high = COUNT_MAX},
        {.name = "kth", .flag = &o->kth},
        {.name = "warm", .flag = &o->warm},
        {.name = "slices", .number = &o->slices, .low = 1, .high = SLICES_MAX},
        {.name = "systems", .words = &systems},
        {.name = "over", .words = &o->over},
        {.name = "hints", .text = &hints},
        {.name = "cache", .number = &o->cache_bytes, .low = 1 << 20, .high = tera},
        {.name = "block", .number = &o->block_bytes, .low = 4096, .high = 65536},
        {.name = "checkpoint", .number = &o->checkpoint_bytes, .low = 0, .high = tera},
        {.name = "sync-bytes",
         .number = &o->sync_bytes,
         .low = BENCH_KEY_BYTES,
         .high = 1 << 20},
        {.name = "seed", .number = &o->seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o->common),
        {0},
    };

    *o = (struct bench_insert_options){
        .name = argv[0],
        .durabilities = BENCH_DURABLE,
        .procs = {1, {1}},
        .groups = {1, {1}},
        .scan_length = 100,
        .count = 20000,
        .loaded = NOT_TOLD,
        .slices = 9,
        .seed = 1,
        .block_bytes = 4096,
        .checkpoint_bytes = UINT64_C(256) << 20,
        .sync_bytes = 700,
    };
    if (!bench_options_parse(argc, argv, table, bench_insert_usage, &o->common, statusp))
        return false;
    if (bench_options_no_quick(&o->common) != 0 || set_workloads(o, &workloads) != 0
        || set_keys(o, keys) != 0 || set_systems(o, &systems) != 0 || set_over(o) != 0
        || set_hints(o, hints) != 0 || check_options(o) != 0
        || (o->keys == BENCH_KEYS_PATHS
            && bench_keys_paths(PATHS_OF, &o->ranks, &o->n_ranks) != 0))
        *statusp = 2;
    return *statusp == 0;
}
