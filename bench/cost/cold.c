/* SPDX-License-Identifier: MIT */
/*
 * cold.c -- the experiment `cold`: a file that is not in the page cache is read through libxac,
 * in order and at random, for each way to read ahead (XAC_OPT_READ_AHEAD_BYTES).
 *
 * Before each measurement the file is dropped from the page cache.  Ways and works take turns.
 * Each page is touched by one load: in order in one query, at random each in a query of its
 * own, few of the pages, or enough to meet nearly all of them.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/cost/touch.h"
#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define INBLOCK_BYTES 512u /* of what getrusage(2) counts                               */
#define FEW           20u  /* one page of so many                                       */
#define NEARLY_ALL    3u   /* so many touches for each page                             */
#define ROUNDS_MAX    1000u

struct options {
    struct bench_common common;
    uint64_t data_bytes, rounds, seed;
};

static const struct {
    const char *name;
    uint64_t bytes;
} ways[] = {{"system", XAC_READ_AHEAD_SYSTEM},
            {"0", 0},
            {"128K", UINT64_C(128) << 10},
            {"1M", UINT64_C(1) << 20},
            {"8M", UINT64_C(8) << 20}};
#define N_WAYS (sizeof ways / sizeof ways[0])

enum work {
    IN_ORDER,
    RANDOM_FEW,
    RANDOM_ALL,
    N_WORKS
};
static const char *const works[] = {"in order", "random, few", "random, nearly all"};

struct cell {
    struct bench_sample ms;
    uint64_t read_bytes; /* of the last round: it does not change                       */
};

static void
usage(void)
{
    puts("Reads a file that is not in the page cache through libxac, in order and at\n"
         "random, with each value of XAC_OPT_READ_AHEAD_BYTES.\n"
         "\n"
         "  --data BYTES  size of the file; default 256M\n"
         "  --rounds N    of each; default 5\n"
         "  --seed N      of the pages touched at random\n"
         "  --dir DIR     where the file goes; default .\n"
         "  --json        one JSON object per way and work\n"
         "  --quick       16M, 1 round\n"
         "  --quiet       no progress bar\n"
         "  --help");
}

/* make_cold -- the file is written and not in the page cache; ret 0 or errno. */
static int
make_cold(const char *dir, uint64_t bytes)
{
    char path[BENCH_DIR_BYTES + 16];
    int fd, rc;

    snprintf(path, sizeof path, "%s/pages", dir); /* as in touch.c */
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fd = bench_zero_file(path, bytes);
    if (fd < 0)
        return errno;
    rc = fsync(fd) != 0 ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rc;
}

/* touch_all -- do the work; ret 0 or a code. */
static int
touch_all(const struct bench_touch *t, enum work work, uint64_t seed)
{
    uint64_t n = work == RANDOM_FEW   ? t->n_pages / FEW
                 : work == RANDOM_ALL ? t->n_pages * NEARLY_ALL
                                      : t->n_pages;
    int rc = work == IN_ORDER ? xac_begin_query() : 0;

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        uint64_t page = work == IN_ORDER ? i : bench_key(seed, i) % t->n_pages;

        rc = work == IN_ORDER ? 0 : xac_begin_query();
        if (rc == 0)
            (void)*(volatile const uint8_t *)(t->base + page * t->page_bytes);
        if (rc == 0 && work != IN_ORDER)
            rc = xac_end_query();
    }
    return rc == 0 && work == IN_ORDER ? xac_end_query() : rc;
}

/* measure -- one way, one work; ret 0, or 1 after a message. */
static int
measure(const struct options *o, const char *dir, unsigned way, enum work work,
        struct cell *cell)
{
    struct bench_touch_mode mode = {.durable = false};
    struct rusage before, after;
    struct bench_touch t;
    uint64_t start;
    int rc = make_cold(dir, o->data_bytes);

    if (rc == 0)
        rc = xac_set_option(XAC_OPT_READ_AHEAD_BYTES, ways[way].bytes);
    if (rc != 0)
        return bench_fail("%s: %s", dir, xac_strerror(rc));
    if (bench_touch_open(&t, dir, mode, o->data_bytes / (uint64_t)sysconf(_SC_PAGESIZE))
        != 0)
        return 1;
    getrusage(RUSAGE_SELF, &before);
    start = bench_now_ns();
    rc = touch_all(&t, work, o->seed);
    bench_sample_add(&cell->ms, (double)(bench_now_ns() - start) / 1e6);
    getrusage(RUSAGE_SELF, &after);
    cell->read_bytes = (uint64_t)(after.ru_inblock - before.ru_inblock) * INBLOCK_BYTES;
    if (bench_touch_close(&t) != 0)
        return 1;
    return rc == 0 ? 0 : bench_fail("%s: %s", works[work], xac_strerror(rc));
}

static void
report(const struct options *o, unsigned way, unsigned work, struct cell *cell)
{
    struct bench_summary s = bench_summarize(&cell->ms);

    if (!o->common.json) {
        printf("%-20s %-8s %10.1f %10.1f %10.1f %10.1f\n", works[work], ways[way].name,
               s.median, s.min, s.max, (double)cell->read_bytes / 1048576);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "cold");
    bench_json_str(stdout, "work", works[work]);
    bench_json_str(stdout, "read_ahead", ways[way].name);
    bench_json_u64(stdout, "data_bytes", o->data_bytes);
    bench_json_num(stdout, "ms_median", s.median);
    bench_json_num(stdout, "ms_min", s.min);
    bench_json_num(stdout, "ms_max", s.max);
    bench_json_u64(stdout, "device_read_bytes", cell->read_bytes);
    bench_json_str(stdout, "command", o->common.command);
    bench_json_end(stdout);
}

/* run -- all rounds; ret 0, or 1 after a message. */
static int
run(const struct options *o, const char *dir)
{
    static struct cell cell[N_WORKS][N_WAYS];
    int rc = 0;

    for (unsigned i = 0; i < N_WORKS * N_WAYS && rc == 0; i++)
        rc = bench_sample_init(&cell[i / N_WAYS][i % N_WAYS].ms, o->rounds);
    for (uint64_t r = 0; r < o->rounds; r++) {
        for (unsigned i = 0; i < N_WORKS * N_WAYS && rc == 0; i++) {
            unsigned way = (unsigned)((i + r) % N_WAYS);

            bench_progress("cold", r * N_WORKS * N_WAYS + i,
                           o->rounds * N_WORKS * N_WAYS);
            rc = measure(o, dir, way, (enum work)(i / N_WAYS), &cell[i / N_WAYS][way]);
        }
    }
    bench_progress_clear();
    if (rc == 0 && !o->common.json) {
        bench_print_command(&o->common, "milliseconds; read: MiB from the device");
        printf("%-20s %-8s %10s %10s %10s %10s\n", "work", "ahead", "median", "min",
               "max", "read");
    }
    for (unsigned i = 0; i < N_WORKS * N_WAYS; i++) {
        if (rc == 0)
            report(o, i % N_WAYS, i / N_WAYS, &cell[i / N_WAYS][i % N_WAYS]);
        bench_sample_free(&cell[i / N_WAYS][i % N_WAYS].ms);
    }
    return rc;
}

int
bench_cold_main(int argc, char **argv)
{
    struct options o = {.seed = 1};
    const struct bench_option options[] = {
        {.name = "data",
         .number = &o.data_bytes,
         .low = 1 << 20,
         .high = UINT64_C(1) << 40},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "seed", .number = &o.seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    char dir[BENCH_DIR_BYTES];
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &o.common, &rc))
        return rc;
    if (o.data_bytes == 0)
        o.data_bytes = UINT64_C(1) << (o.common.quick ? 24 : 28);
    if (o.rounds == 0)
        o.rounds = o.common.quick ? 1 : 5;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (bench_dir_make(&o.common, dir) != 0)
        return 1;
    rc = run(&o, dir);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}
