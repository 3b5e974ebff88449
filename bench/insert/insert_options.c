/* SPDX-License-Identifier: MIT */
/*
 * insert_options.c -- command line of the experiment `insert`.
 */
#include <config.h>

#include "bench/insert/insert.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kit/util.h"
#include "bench/kit/worker.h"

/* Without --cache: room for this many bytes a record, and no less than the minimum. */
#define CACHE_PER_RECORD 2048u
#define CACHE_MIN        (UINT64_C(64) << 20)

#define COUNT_MAX  UINT64_C(1000000000)
#define SLICES_MAX 10000u

/* --keys paths: of the files below it. */
#define PATHS_OF "/usr"

enum option_code {
    OPT_DURABLE = 1,
    OPT_NONDURABLE,
    OPT_BOTH,
    OPT_PROCS,
    OPT_COUNT,
    OPT_WORKLOADS,
    OPT_KEYS,
    OPT_LOADED,
    OPT_SCAN_LENGTH,
    OPT_GROUPS,
    OPT_KTH,
    OPT_WARM,
    OPT_SLICES,
    OPT_SYSTEMS,
    OPT_HINTS,
    OPT_CACHE,
    OPT_BLOCK,
    OPT_CHECKPOINT,
    OPT_SYNC_BYTES,
    OPT_SEED,
    OPT_DIR,
    OPT_JSON,
    OPT_QUIET,
    OPT_HELP
};

static const struct option long_options[] = {
    {"durable", no_argument, NULL, OPT_DURABLE},
    {"nondurable", no_argument, NULL, OPT_NONDURABLE},
    {"both", no_argument, NULL, OPT_BOTH},
    {"procs", required_argument, NULL, OPT_PROCS},
    {"count", required_argument, NULL, OPT_COUNT},
    {"workload", required_argument, NULL, OPT_WORKLOADS},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"loaded", required_argument, NULL, OPT_LOADED},
    {"scan-length", required_argument, NULL, OPT_SCAN_LENGTH},
    {"groups", required_argument, NULL, OPT_GROUPS},
    {"kth", no_argument, NULL, OPT_KTH},
    {"warm", no_argument, NULL, OPT_WARM},
    {"slices", required_argument, NULL, OPT_SLICES},
    {"systems", required_argument, NULL, OPT_SYSTEMS},
    {"hints", required_argument, NULL, OPT_HINTS},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"block", required_argument, NULL, OPT_BLOCK},
    {"checkpoint", required_argument, NULL, OPT_CHECKPOINT},
    {"sync-bytes", required_argument, NULL, OPT_SYNC_BYTES},
    {"seed", required_argument, NULL, OPT_SEED},
    {"dir", required_argument, NULL, OPT_DIR},
    {"json", no_argument, NULL, OPT_JSON},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

/* parse_procs -- "1,2,4". */
static int
parse_procs(struct bench_insert_options *o, char *list)
{
    char *save = NULL;

    o->n_procs = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        uint64_t v = 0;

        if (o->n_procs == BENCH_LIST_MAX)
            return bench_fail("--procs: more than %u numbers", BENCH_LIST_MAX);
        if (bench_parse_number("procs", p, 1, BENCH_PROCS_MAX, &v) != 0)
            return 1;
        o->procs[o->n_procs++] = (unsigned)v;
    }
    return o->n_procs > 0 ? 0 : bench_fail("--procs: the list is empty");
}

/* parse_groups -- "1,1000". */
static int
parse_groups(struct bench_insert_options *o, char *list)
{
    char *save = NULL;

    o->n_groups = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        if (o->n_groups == BENCH_LIST_MAX)
            return bench_fail("--groups: more than %u numbers", BENCH_LIST_MAX);
        if (bench_parse_number("groups", p, 1, COUNT_MAX, &o->groups[o->n_groups++]) != 0)
            return 1;
    }
    return o->n_groups > 0 ? 0 : bench_fail("--groups: the list is empty");
}

/* parse_workloads -- "ycsb-a,ycsb-b". */
static int
parse_workloads(struct bench_insert_options *o, char *list)
{
    char *save = NULL;

    o->n_workloads = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        const struct bench_workload *w = bench_workloads;

        while (w->name != NULL && strcmp(w->name, p) != 0)
            w++;
        if (w->name == NULL)
            return bench_fail("--workload %s: there is no such workload; see --help", p);
        if (o->n_workloads == BENCH_LIST_MAX)
            return bench_fail("--workload: more than %u", BENCH_LIST_MAX);
        o->workloads[o->n_workloads++] = w;
    }
    return o->n_workloads > 0 ? 0 : bench_fail("--workload: the list is empty");
}

/* parse_keys -- random, sorted, paths. */
static int
parse_keys(struct bench_insert_options *o, const char *text)
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

/* find_system -- by name, NULL if it is not in this build. */
static const struct bench_system *
find_system(const char *name)
{
    for (size_t i = 0; bench_systems[i] != NULL; i++)
        if (strcmp(bench_systems[i]->name, name) == 0)
            return bench_systems[i];
    return NULL;
}

/* is_optional -- whether it is a system that configure may not have found. */
static bool
is_optional(const char *name)
{
    static const char *const names[] = {"bdb", "bdb-zero", "lmdb", "sqlite"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* parse_systems -- "btree,bdb"; each at most once. */
static int
parse_systems(struct bench_insert_options *o, char *list)
{
    char *save = NULL;

    o->n_systems = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        const struct bench_system *system = find_system(p);

        if (system == NULL && is_optional(p)) {
            fprintf(stderr, "xbench: %s is not in this build and is left out\n", p);
            continue;
        }
        if (system == NULL)
            return bench_fail(
                "--systems: no system \"%s\" in this build; see xbench list", p);
        for (unsigned i = 0; i < o->n_systems; i++)
            if (o->systems[i] == system)
                return bench_fail("--systems: %s is there twice", p);
        if (o->n_systems == BENCH_LIST_MAX)
            return bench_fail("--systems: more than %u", BENCH_LIST_MAX);
        o->systems[o->n_systems++] = system;
    }
    return o->n_systems > 0 ? 0 : bench_fail("--systems: the list is empty");
}

/* parse_hints -- on, off, both. */
static int
parse_hints(struct bench_insert_options *o, const char *text)
{
    bool both = strcmp(text, "both") == 0;

    o->hints_on = both || strcmp(text, "on") == 0;
    o->hints_off = both || strcmp(text, "off") == 0;
    return o->hints_on || o->hints_off
               ? 0
               : bench_fail("--hints %s: on, off or both is wanted", text);
}

/* parse_flag -- an option without an argument. */
static int
parse_flag(struct bench_insert_options *o, int code)
{
    switch (code) {
    case OPT_KTH:
        o->kth = true;
        return 0;
    case OPT_WARM:
        o->warm = true;
        return 0;
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_QUIET:
        o->quiet = true;
        return 0;
    default: /* getopt has said what is wrong */
        return 1;
    }
}

/* parse_option -- one option; only dispatches.  ret 0, or 1 after a message. */
static int
parse_option(struct bench_insert_options *o, int code, char *arg)
{
    uint64_t giga = UINT64_C(1) << 30;

    switch (code) {
    case OPT_DURABLE:
    case OPT_NONDURABLE:
    case OPT_BOTH:
        o->durable = code != OPT_NONDURABLE;
        o->nondurable = code != OPT_DURABLE;
        return 0;
    case OPT_PROCS:
        return parse_procs(o, arg);
    case OPT_COUNT:
        return bench_parse_number("count", arg, 1, COUNT_MAX, &o->count);
    case OPT_WORKLOADS:
        return parse_workloads(o, arg);
    case OPT_KEYS:
        return parse_keys(o, arg);
    case OPT_LOADED:
        return bench_parse_number("loaded", arg, 0, COUNT_MAX, &o->loaded);
    case OPT_SCAN_LENGTH:
        return bench_parse_number("scan-length", arg, 1, COUNT_MAX, &o->scan_length);
    case OPT_GROUPS:
        return parse_groups(o, arg);
    case OPT_SLICES:
        return bench_parse_number("slices", arg, 1, SLICES_MAX, &o->slices);
    case OPT_SYSTEMS:
        return parse_systems(o, arg);
    case OPT_HINTS:
        return parse_hints(o, arg);
    case OPT_CACHE:
        return bench_parse_number("cache", arg, 1 << 20, 1024 * giga, &o->cache_bytes);
    case OPT_BLOCK:
        return bench_parse_number("block", arg, 4096, 65536, &o->block_bytes);
    case OPT_CHECKPOINT:
        return bench_parse_number("checkpoint", arg, 0, 1024 * giga,
                                  &o->checkpoint_bytes);
    case OPT_SYNC_BYTES:
        return bench_parse_number("sync-bytes", arg, BENCH_KEY_BYTES, 1 << 20,
                                  &o->sync_bytes);
    case OPT_SEED:
        return bench_parse_number("seed", arg, 0, UINT64_MAX, &o->seed);
    case OPT_DIR:
        o->dir = arg;
        return 0;
    default:
        return parse_flag(o, code);
    }
}

/* default_systems -- those of the usual table that are in this build. */
static void
default_systems(struct bench_insert_options *o)
{
    static const char *const names[] = {"btree",  "btree-stay", "cobtree",
                                        "bdb",    "bdb-zero",   "lmdb",
                                        "sqlite", "mmap",       "sync"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct bench_system *system = find_system(names[i]);

        if (system != NULL)
            o->systems[o->n_systems++] = system;
        else
            fprintf(stderr, "xbench: %s is not in this build and is left out\n",
                    names[i]);
    }
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
    struct stat st;

    if (o->count < o->slices)
        return bench_fail("fewer records (%llu) than slices (%llu)",
                          (unsigned long long)o->count, (unsigned long long)o->slices);
    for (unsigned i = 0; i < o->n_workloads; i++)
        if (o->workloads[i]->insert_every != 1 && o->loaded == 0)
            return bench_fail("--workload %s needs records: --loaded",
                              o->workloads[i]->name);
    for (unsigned i = 0; i < o->n_groups * o->n_workloads; i++) {
        const struct bench_workload *w = o->workloads[i / o->n_groups];

        if (o->groups[i % o->n_groups] > 1 && (w->changes || w->insert_every != 0))
            return bench_fail("--groups: %s does more than read", w->name);
    }
    for (unsigned i = 0; i < o->n_procs && o->warm; i++)
        if (o->procs[i] > 1)
            return bench_fail("--warm: with several processes they would not start "
                              "together");
    if ((o->block_bytes & (o->block_bytes - 1)) != 0)
        return bench_fail("--block %llu: a power of two is wanted",
                          (unsigned long long)o->block_bytes);
    if (stat(o->dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return bench_fail("--dir %s: no such directory", o->dir);
    if (strlen(o->dir) > 300)
        return bench_fail("--dir: the name is too long");
    if (o->durable && strcmp(bench_fs_name(o->dir), "tmpfs") == 0)
        fprintf(stderr,
                "xbench: %s is in memory (tmpfs): syncs cost nothing there and "
                "say nothing about durability; use --dir\n",
                o->dir);
    if (o->cache_bytes == 0) {
        o->cache_bytes = (o->loaded + inserts_most(o)) * CACHE_PER_RECORD;
        o->cache_bytes = o->cache_bytes < CACHE_MIN ? CACHE_MIN : o->cache_bytes;
    }
    return 0;
}

int
bench_insert_parse(int argc, char **argv, struct bench_insert_options *o)
{
    int code;

    *o = (struct bench_insert_options){
        .durable = true,
        .hints_on = true,
        .n_procs = 1,
        .procs = {1},
        .n_workloads = 1,
        .workloads = {&bench_workloads[0]},
        .n_groups = 1,
        .groups = {1},
        .scan_length = 100,
        .count = 20000,
        .slices = 9,
        .seed = 1,
        .block_bytes = 4096,
        .checkpoint_bytes = UINT64_C(256) << 20,
        .sync_bytes = 700,
        .dir = ".",
    };
    o->name = argv[0];
    bench_join_command(o->command, sizeof o->command, argc, argv);
    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (code == OPT_HELP || code == 'h') {
            o->help = true;
            return 0;
        }
        if (parse_option(o, code, optarg) != 0)
            return 1;
    }
    if (optind < argc)
        return bench_fail("%s: unexpected argument \"%s\"", argv[0], argv[optind]);
    if (o->n_systems == 0)
        default_systems(o);
    if (check_options(o) != 0)
        return 1;
    return o->keys == BENCH_KEYS_PATHS
               ? bench_keys_paths(PATHS_OF, &o->ranks, &o->n_ranks)
               : 0;
}
