/* SPDX-License-Identifier: MIT */
/*
 * competition.c -- the experiment `competition`: libxac on the page cache, and on frames
 * (XAC_OPT_FRAMES), with data larger than the memory, alone and beside a process that wants
 * memory, too (Thesis section 5.5, point 3).
 *
 * On the page cache there are two: one as it is, where the kernel reads ahead on each fault as
 * much as the device is set to, and one that only reads ahead what is touched in order
 * (XAC_OPT_READ_AHEAD_BYTES).
 *
 * Each of the three has a tree of its own with the same records, and a control group of its own
 * with the same limit, so that those that wait take no memory from the one at work.  They take
 * turns: durable inserts of random keys for a slice of time, then random searches, each found
 * value compared with the model.
 *
 * THE HOG   Is in the same group, and runs only while that group has its turn (hog.h).
 *           "anonymous": memory that can only be swapped out; where there is no swap space
 *           the page cache has so much less.  "file": pages of the page cache, as many as
 *           the limit allows altogether, so that the kernel must choose whose it keeps.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define XAC_NO_DEPRECATED
#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/memory.h"
#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/system.h"
#include "bench/kit/team.h"
#include "bench/kit/worker.h"
#include "bench/larger/hog.h"
#include "bench/main/xbench.h"
#include "bench/systems/tree_kind.h"

#define RECORD_BYTES  (BENCH_KEY_BYTES + BENCH_VALUE_BYTES)
#define FILL          0.69 /* of a B+-tree after random inserts                              */
#define LOG_BUFFER    (UINT64_C(256) << 10)
#define BLOCK_BYTES   4096u
#define READ_AHEAD    (UINT64_C(1) << 20)
#define SLICES_MAX    64u
#define INBLOCK_BYTES 512u  /* of what getrusage(2) counts                             */
#define INSERT_RATE   50000 /* per second, at the most: the tree has room for these     */
#define CKPT_SHARE    4u    /* a checkpoint for each so-manieth part of the frames      */
#define WARM_SLICES   2u    /* before those that count                                  */

struct options {
    struct bench_common common;
    uint64_t limit_bytes, data_bytes, frames_bytes;
    uint64_t hog_bytes,
        file_bytes; /* of the two kinds of hog                           */
    uint64_t slices, ms;
    uint64_t seed;
    uint64_t count; /* records loaded                                                   */
};

enum order_kind {
    ORDER_LOAD,
    ORDER_OPEN,
    ORDER_INSERT,
    ORDER_SEARCH,
    ORDER_CLOSE
};
static const char *const order_names[] = {"load", "open", "insert", "search", "close"};

/* Places of an answer's counts. */
enum count {
    COUNT_OPS,
    COUNT_FAULTS, /* major                                                              */
    COUNT_READ    /* bytes from the device                                              */
};

#define N_WORKS 2u /* inserts, searches */

/* What one of the three did under one condition, at one work. */
struct cell {
    size_t n;
    double us[SLICES_MAX]; /* per operation, by slice                                  */
    double ops, faults, read_bytes;
};

enum {
    AS_IS,
    IN_ORDER,
    FRAMES,
    N_CONTENDERS
};

/* One of the three; the member has a copy. */
struct contender {
    const char *name;
    bool is_bounded; /* by XAC_FRAMES                                                   */
    uint64_t read_ahead_bytes; /* XAC_OPT_READ_AHEAD_BYTES                              */
    const struct options *o;
    struct bench_cgroup group;
    bool has_group;
    char dir[BENCH_DIR_BYTES];
    struct bench_team team;
    struct bench_hog hog;
    uint64_t base_bytes; /* of the member before it opened                              */
    /* The member's. */
    void *handle;
    uint64_t inserted, searched;
    /* Under the present condition. */
    struct cell cell[N_WORKS];
    uint64_t most_bytes;  /* resident                                                   */
    uint64_t cache_bytes; /* least page cache of the group                              */
    double hog_bytes, hog_seconds;
};

struct condition {
    const char *name;
    uint64_t bytes; /* the hog's; 0: alone                                              */
    bool is_file;
};

/* ---- The process at work ------------------------------------------------------------------ */

static struct bench_config
config_of(const struct contender *c)
{
    const struct options *o = c->o;

    return (struct bench_config){
        .system = &bench_btree,
        .dir = c->dir,
        .durable = true,
        .hints = true,
        .count = o->count + (o->slices + WARM_SLICES) * 3 * o->ms * INSERT_RATE / 1000,
        .block_bytes = BLOCK_BYTES,
        .checkpoint_bytes = o->frames_bytes / CKPT_SHARE,
        .log_file_bytes = UINT64_C(4) << 20,
    };
}

/* load -- records into the file, without a limit and without libxac; the page cache forgets it. */
static int
load(struct contender *c)
{
    const struct bench_tree_kind *kind = &bench_kind_btree_serial;
    const struct bench_config config = config_of(c);
    const struct bench_tree_config sizes = {.count = config.count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = BLOCK_BYTES};
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    size_t size = kind->size(&sizes);
    char path[PATH_MAX];
    union bench_tree tree;
    void *base = MAP_FAILED;
    int fd, rc = 0;

    snprintf(path, sizeof path, "%s/insert.tree", c->dir); /* as in sys_xac.c */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return errno;
    rc = kind->create(&tree, base, size, &sizes);
    for (; c->inserted < c->o->count && rc == 0; c->inserted++) {
        bench_key_encode(bench_key(c->o->seed, c->inserted), key);
        bench_value_fill(bench_key(c->o->seed, c->inserted), value);
        rc = kind->insert(&tree, key, value, TREE_ADD);
    }
    if (rc == 0 && msync(base, size, MS_SYNC) != 0)
        rc = errno;
    (void)munmap(base, size);
    if (rc == 0)
        rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rc;
}

/* open_limited -- in the group. */
static int
open_limited(struct contender *c)
{
    struct bench_config config = config_of(c);
    char frames[32];
    int rc = bench_cgroup_enter(&c->group);

    snprintf(frames, sizeof frames, "%llu",
             (unsigned long long)(c->o->frames_bytes / BLOCK_BYTES));
    if (c->is_bounded)
        (void)setenv("XAC_FRAMES", frames, 1);
    else
        (void)unsetenv("XAC_FRAMES");
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, LOG_BUFFER);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_READ_AHEAD_BYTES, c->read_ahead_bytes);
    return rc == 0 ? bench_btree.open(&config, false, &c->handle) : rc;
}

/* insert_one, search_one -- ret 0 or a code. */
static int
insert_one(struct contender *c)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    uint64_t number = bench_key(c->o->seed, c->inserted), retries = 0;
    int rc;

    bench_key_encode(number, key);
    bench_value_fill(number, value);
    rc = bench_btree.insert(c->handle, key, value, &retries);
    c->inserted += rc == 0;
    return rc;
}

static int
search_one(struct contender *c)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    unsigned char model[BENCH_VALUE_BYTES];
    uint64_t number =
        bench_key(c->o->seed, bench_key(c->o->seed + 1, c->searched++) % c->inserted);
    int rc;

    bench_key_encode(number, key);
    bench_value_fill(number, model);
    rc = bench_btree.find(c->handle, key, value);
    return rc == 0 && memcmp(value, model, sizeof model) != 0 ? EBADMSG : rc;
}

/* slice -- of o->ms; ret 0 or a code. */
static int
slice(struct contender *c, int (*one)(struct contender *), struct bench_answer *a)
{
    struct rusage before, after;
    int rc = 0;

    getrusage(RUSAGE_SELF, &before);
    a->start_ns = bench_now_ns();
    do {
        rc = one(c);
        a->count[COUNT_OPS]++;
        a->end_ns = bench_now_ns();
    } while (rc == 0 && a->end_ns - a->start_ns < c->o->ms * 1000000);
    getrusage(RUSAGE_SELF, &after);
    a->count[COUNT_FAULTS] = (uint64_t)(after.ru_majflt - before.ru_majflt);
    a->count[COUNT_READ] =
        (uint64_t)(after.ru_inblock - before.ru_inblock) * INBLOCK_BYTES;
    return rc;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct contender *c = arg;

    (void)number;
    switch ((enum order_kind)order->kind) {
    case ORDER_LOAD:
        return load(c);
    case ORDER_OPEN:
        return open_limited(c);
    case ORDER_INSERT:
        return slice(c, insert_one, answer);
    case ORDER_SEARCH:
        return slice(c, search_one, answer);
    case ORDER_CLOSE:
        return bench_btree.close(c->handle);
    }
    return EINVAL;
}

static const char *
explain(int code)
{
    return code == EBADMSG ? "a value is not what had been inserted"
                           : bench_btree.explain(code);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* ask -- an order to a contender; ret 0, or 1 after a message. */
static int
ask(struct contender *c, enum order_kind kind, struct bench_answer *a)
{
    const struct bench_order order = {.kind = kind};

    if (bench_interrupted())
        return bench_fail("interrupted");
    return bench_team_ask(&c->team, 0, &order, a);
}

/* look -- at the memory that a contender and its group have. */
static void
look(struct contender *c)
{
    uint64_t own = bench_process_bytes(c->team.member[0].pid);
    uint64_t cache = bench_cgroup_cache_bytes(&c->group);
    char env[PATH_MAX];
    uint64_t all;

    snprintf(env, sizeof env, "%s/env", c->dir);
    all = (own > c->base_bytes ? own - c->base_bytes : 0) + bench_env_bytes(env);
    if (all > c->most_bytes)
        c->most_bytes = all;
    if (cache < c->cache_bytes)
        c->cache_bytes = cache;
}

/* turn -- both works for a slice; ret 0, or 1 after a message. */
static int
turn(struct contender *c, bool counts)
{
    static const enum order_kind works[N_WORKS] = {ORDER_INSERT, ORDER_SEARCH};
    uint64_t hog = bench_hog_bytes(&c->hog), began = bench_now_ns();
    int rc = 0;

    bench_hog_run(&c->hog, true);
    for (unsigned w = 0; w < N_WORKS && rc == 0; w++) {
        struct bench_answer a;
        struct cell *cell = &c->cell[w];

        rc = ask(c, works[w], &a);
        if (rc != 0 || !counts)
            continue;
        cell->us[cell->n++] =
            (double)(a.end_ns - a.start_ns) / 1e3 / (double)a.count[COUNT_OPS];
        cell->ops += (double)a.count[COUNT_OPS];
        cell->faults += (double)a.count[COUNT_FAULTS];
        cell->read_bytes += (double)a.count[COUNT_READ];
    }
    bench_hog_run(&c->hog, false);
    if (rc == 0)
        look(c);
    if (counts) {
        c->hog_bytes += (double)(bench_hog_bytes(&c->hog) - hog);
        c->hog_seconds += (double)(bench_now_ns() - began) / 1e9;
    }
    return rc;
}

/* ---- What is printed -------------------------------------------------------------------------- */

/* print -- what a contender did under a condition. */
static void
print(const struct contender *c, const struct condition *x)
{
    static const char *const works[N_WORKS] = {"insert", "search"};
    const struct options *o = c->o;
    double hog_mib =
        c->hog_seconds > 0 && x->bytes > 0 ? c->hog_bytes / 1048576 / c->hog_seconds : -1;

    for (unsigned w = 0; w < N_WORKS; w++) {
        const struct cell *cell = &c->cell[w];
        double us = bench_median(cell->us, cell->n);

        if (!o->common.json) {
            printf("%-10s %-11s %-7s %9.1f %9.0f %8.3f %9.1f %9.1f %9.1f %9.0f\n",
                   x->name, c->name, works[w], us, 1e6 / us, cell->faults / cell->ops,
                   cell->read_bytes / 1024 / cell->ops, (double)c->most_bytes / 1048576,
                   (double)c->cache_bytes / 1048576, hog_mib < 0 ? 0 : hog_mib);
            continue;
        }
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "competition");
        bench_json_str(stdout, "hog", x->name);
        bench_json_u64(stdout, "hog_bytes", x->bytes);
        bench_json_str(stdout, "memory", c->name);
        bench_json_str(stdout, "work", works[w]);
        bench_json_num(stdout, "us_per_operation", us);
        bench_json_num(stdout, "operations_per_second", 1e6 / us);
        bench_json_nums(stdout, "us_per_operation_by_slice", cell->us, cell->n);
        bench_json_num(stdout, "major_faults_per_operation", cell->faults / cell->ops);
        bench_json_num(stdout, "device_read_bytes_per_operation",
                       cell->read_bytes / cell->ops);
        bench_json_u64(stdout, "resident_bytes_most", c->most_bytes);
        bench_json_u64(stdout, "group_page_cache_bytes_least", c->cache_bytes);
        bench_json_num(stdout, "hog_mib_per_second", hog_mib);
        bench_json_u64(stdout, "limit_bytes", o->limit_bytes);
        bench_json_u64(stdout, "frames_bytes", c->is_bounded ? o->frames_bytes : 0);
        bench_json_u64(stdout, "data_bytes", o->data_bytes);
        bench_json_u64(stdout, "seed", o->seed);
        bench_json_end(stdout);
    }
    fflush(stdout);
}

/* ratio -- by how much b was faster than a, slice by slice; the median. */
static double
ratio(const struct cell *a, const struct cell *b)
{
    double r[SLICES_MAX];

    for (size_t i = 0; i < a->n; i++)
        r[i] = a->us[i] / b->us[i];
    return bench_median(r, a->n);
}

/* print_verdict -- frames beside each of the two on the page cache. */
static void
print_verdict(const struct options *o, const struct condition *x,
              const struct contender c[N_CONTENDERS])
{
    const struct contender *frames = &c[FRAMES];
    bool is_kept = frames->most_bytes <= o->frames_bytes + o->frames_bytes / 10;

    for (unsigned k = 0; k < FRAMES; k++) {
        double insert = ratio(&c[k].cell[0], &frames->cell[0]);
        double search = ratio(&c[k].cell[1], &frames->cell[1]);

        if (!o->common.json) {
            printf("hog: %s: frames by %s: inserts %.2f, searches %.2f; bound %s\n",
                   x->name, c[k].name, insert, search, is_kept ? "kept" : "exceeded");
            continue;
        }
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "competition");
        bench_json_str(stdout, "hog", x->name);
        bench_json_u64(stdout, "hog_bytes", x->bytes);
        bench_json_str(stdout, "memory", "frames by page cache");
        bench_json_str(stdout, "beside", c[k].name);
        bench_json_num(stdout, "insert_rate_ratio", insert);
        bench_json_num(stdout, "search_rate_ratio", search);
        bench_json_str(stdout, "verdict", is_kept ? "bound kept" : "bound exceeded");
        bench_json_end(stdout);
    }
    fflush(stdout);
}

/* ---- All of it ---------------------------------------------------------------------------------- */

/* run_turns -- warm, then counted, in changing order; ret 0, or 1 after a message. */
static int
run_turns(const struct options *o, struct contender c[N_CONTENDERS])
{
    int rc = 0;

    for (unsigned k = 0; k < N_CONTENDERS; k++) {
        memset(c[k].cell, 0, sizeof c[k].cell);
        c[k].most_bytes = 0;
        c[k].cache_bytes = UINT64_MAX;
        c[k].hog_bytes = c[k].hog_seconds = 0;
    }
    for (unsigned i = 0; i < o->slices + WARM_SLICES && rc == 0; i++)
        for (unsigned k = 0; k < N_CONTENDERS && rc == 0; k++) {
            bench_progress("slices", i, o->slices + WARM_SLICES);
            rc = turn(&c[(i + k) % N_CONTENDERS], i >= WARM_SLICES);
        }
    bench_progress_clear();
    return rc;
}

/* run_condition -- ret 0, or 1 after a message. */
static int
run_condition(const struct options *o, const struct condition *x,
              struct contender c[N_CONTENDERS])
{
    int rc = 0;

    for (unsigned k = 0; k < N_CONTENDERS && rc == 0 && x->bytes > 0; k++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/hog", c[k].dir);
        rc = bench_hog_start(&c[k].hog, &c[k].group, x->is_file ? path : NULL, x->bytes);
    }
    if (rc == 0)
        rc = run_turns(o, c);
    for (unsigned k = 0; k < N_CONTENDERS; k++) {
        bench_hog_stop(&c[k].hog);
        if (rc == 0)
            print(&c[k], x);
    }
    if (rc == 0)
        print_verdict(o, x, c);
    if (rc == 0 && c[FRAMES].most_bytes > o->frames_bytes + o->frames_bytes / 10)
        rc = bench_fail("competition: %llu bytes of memory, frames are %llu",
                        (unsigned long long)c[FRAMES].most_bytes,
                        (unsigned long long)o->frames_bytes);
    return rc;
}

/* prepare -- a contender: its directory, process and tree; ret 0, or 1 after a message. */
static int
prepare(const struct options *o, struct contender *c)
{
    struct bench_answer a;
    int rc = bench_dir_make(&o->common, c->dir);

    if (rc != 0) {
        c->dir[0] = '\0';
        return rc;
    }
    c->team = (struct bench_team){.label = c->name,
                                  .order_names = order_names,
                                  .arg = c,
                                  .obey = obey,
                                  .explain = explain};
    rc = bench_team_start(&c->team, 1);
    if (rc == 0)
        rc = ask(c, ORDER_LOAD, &a);
    c->base_bytes = rc == 0 ? bench_process_bytes(c->team.member[0].pid) : 0;
    return rc != 0 ? rc : ask(c, ORDER_OPEN, &a);
}

/* run -- everything, in groups that are there; ret exit status. */
static int
run(const struct options *o, struct contender c[N_CONTENDERS])
{
    const struct condition conditions[] = {
        {.name = "none"},
        {.name = "anonymous", .bytes = o->hog_bytes},
        {.name = "file", .bytes = o->file_bytes, .is_file = true},
    };
    struct bench_answer a;
    int rc = 0;

    if (!o->common.json)
        printf("%-10s %-11s %-7s %9s %9s %8s %9s %9s %9s %9s\n", "hog", "memory", "work",
               "us", "per s", "majflt", "KiB read", "MiB most", "cache MiB", "hog MiB/s");
    for (unsigned k = 0; k < N_CONTENDERS && rc == 0; k++)
        rc = prepare(o, &c[k]);
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0] && rc == 0; i++)
        rc = run_condition(o, &conditions[i], c);
    for (unsigned k = 0; k < N_CONTENDERS && rc == 0; k++)
        rc = ask(&c[k], ORDER_CLOSE, &a);
    for (unsigned k = 0; k < N_CONTENDERS; k++) {
        bench_team_stop(&c[k].team);
        if (c[k].dir[0] != '\0' && bench_dir_remove(c[k].dir) != 0)
            rc = 1;
    }
    return rc;
}

static void
usage(void)
{
    puts(
        "libxac on the page cache, the same without reading ahead, and on frames\n"
        "(XAC_OPT_FRAMES), each in a control group with limited memory, with the same\n"
        "B+-tree larger than that: durable inserts and searches by turns, alone, beside a process in the same group that keeps touching\n"
        "anonymous memory, and beside one that keeps touching a mapped file.  Every value\n"
        "found is compared with a model; more than a tenth beyond --frames fails.\n"
        "\n"
        "  --limit BYTES    of memory; default 128M\n"
        "  --frames BYTES   default three eighths of it\n"
        "  --data BYTES     of the tree, about; default four times --limit\n"
        "  --hog BYTES      of anonymous memory; default half of --limit\n"
        "  --file BYTES     of the mapped file; default --limit\n"
        "  --slices N       default 6;  --ms N, of each: default 1000\n"
        "  --quick          48M, twice as much data, 3 slices of 200 ms\n"
        "  --seed S         default 1\n"
        "  --dir DIR        where the trees go; default the current directory\n"
        "  --json, --quiet, --help");
}

/* complete -- what has not been given; ret 0, or 2 after a message. */
static int
complete(struct options *o)
{
    bool quick = o->common.quick;
    struct sysinfo info;

    if (o->limit_bytes == 0)
        o->limit_bytes = UINT64_C(1048576) * (quick ? 48 : 128);
    if (o->frames_bytes == 0)
        o->frames_bytes = o->limit_bytes * 3 / 8;
    if (o->data_bytes == 0)
        o->data_bytes = o->limit_bytes * (quick ? 2 : 4);
    if (o->hog_bytes == 0)
        o->hog_bytes = o->limit_bytes / 2;
    if (o->file_bytes == 0)
        o->file_bytes = o->limit_bytes;
    if (o->slices == 0)
        o->slices = quick ? 3 : 6;
    if (o->ms == 0)
        o->ms = quick ? 200 : 1000;
    o->count = (uint64_t)((double)o->data_bytes * FILL / RECORD_BYTES);
    /* The rest is for the process itself, and for the kernel's side of the group. */
    if (sysinfo(&info) == 0 && info.totalswap == 0
        && o->hog_bytes + o->frames_bytes > o->limit_bytes / 8 * 7)
        return 2
               * bench_fail(
                   "--hog and --frames together: at most seven eighths of --limit, "
                   "for this machine has no swap space");
    return 0;
}

/* skip -- there is no such group: say why; ret exit status. */
static int
skip(const struct options *o, const char *why)
{
    if (!o->common.json) {
        printf("competition: skipped: %s\n", why);
        return 0;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "competition");
    bench_json_str(stdout, "skipped", why);
    bench_json_end(stdout);
    return 0;
}

int
bench_competition_main(int argc, char **argv)
{
    static struct options o = {.seed = 1};
    static struct contender c[N_CONTENDERS] = {
        [AS_IS] = {.name = "page cache",
                   .o = &o,
                   .read_ahead_bytes = XAC_READ_AHEAD_SYSTEM},
        [IN_ORDER] = {.name = "in order", .o = &o, .read_ahead_bytes = READ_AHEAD},
        [FRAMES] = {.name = "frames",
                    .o = &o,
                    .is_bounded = true,
                    .read_ahead_bytes = XAC_READ_AHEAD_SYSTEM},
    };
    const uint64_t most = UINT64_C(1) << 40;
    const struct bench_option table[] = {
        {.name = "limit", .number = &o.limit_bytes, .low = 16 << 20, .high = most},
        {.name = "frames", .number = &o.frames_bytes, .low = 1 << 20, .high = most},
        {.name = "data", .number = &o.data_bytes, .low = 1 << 20, .high = most},
        {.name = "hog", .number = &o.hog_bytes, .low = BLOCK_BYTES, .high = most},
        {.name = "file", .number = &o.file_bytes, .low = BLOCK_BYTES, .high = most},
        {.name = "slices", .number = &o.slices, .low = 1, .high = SLICES_MAX},
        {.name = "ms", .number = &o.ms, .low = 1, .high = 60000},
        {.name = "seed", .number = &o.seed, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    char why[200] = "";
    int rc = 0;

    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (complete(&o) != 0)
        return 2;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    for (unsigned k = 0; k < N_CONTENDERS && why[0] == '\0'; k++)
        c[k].has_group =
            bench_cgroup_make(&c[k].group, k, o.limit_bytes, why, sizeof why);
    rc = why[0] != '\0' ? skip(&o, why) : run(&o, c);
    for (unsigned k = 0; k < N_CONTENDERS; k++)
        if (c[k].has_group)
            bench_cgroup_remove(&c[k].group);
    return rc;
}
