/* SPDX-License-Identifier: MIT */
/*
 * msync.c -- the experiment `msync`: bringing modified pages of a mapped file to disk, and
 * writing a file page by page (Thesis sections 4.3 and C.4, tables 4.8, C.6, C.7).
 *
 * The Thesis increments an int on a random page of 10,000, calls msync(MS_ASYNC) on that
 * page, and fsync() on the file.  Here so many pages are modified, and beside that pair
 * msync(MS_SYNC) and fdatasync() have their turns.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define FILE_PAGES   UINT64_C(10000) /* as in the Thesis                                 */
#define ROUNDS       UINT64_C(1000)
#define ROUNDS_QUICK UINT64_C(50)
#define WRITES       UINT64_C(100)
#define WRITES_QUICK UINT64_C(5)
#define ROUNDS_MAX   UINT64_C(1000000)

enum op {
    MSYNC_ASYNC,
    FSYNC,
    MSYNC_SYNC,
    FDATASYNC,
    N_SYNCS, /* the operations above are measured for a number of pages                  */
    LSEEK = N_SYNCS,
    WRITE_ALL,
    WRITE_SYNC,
    N_OPS
};

static const struct {
    const char *name;
    const char *what;
} ops[N_OPS] = {
    [MSYNC_ASYNC] = {"msync_async", "msync(MS_ASYNC) of each modified page"},
    [FSYNC] = {"fsync", "fsync of the file after that"},
    [MSYNC_SYNC] = {"msync_sync", "msync(MS_SYNC) of the whole file"},
    [FDATASYNC] = {"fdatasync", "fdatasync of the file"},
    [LSEEK] = {"lseek", "to the start of the file"},
    [WRITE_ALL] = {"write_all", "write of 10,000 pages, one at a time"},
    [WRITE_SYNC] = {"write_sync", "fdatasync after that"},
};

struct options {
    struct bench_common common;
    struct bench_numbers pages;
    uint64_t rounds;
    uint64_t writes;
};

/* A run. */
struct run {
    const struct options *options;
    int fd;
    uint8_t
        *base; /* the file, mapped shared                                            */
    size_t page_bytes;
    uint64_t
        n_drawn; /* random numbers so far                                           */
    struct bench_sample sample[N_OPS];
};

static void
usage(void)
{
    puts(
        "Random pages of a mapped file of 10,000 pages are modified and brought to disk, by\n"
        "msync(MS_ASYNC) and fsync as in the Thesis (tables 4.8, C.6), by msync(MS_SYNC), by\n"
        "fdatasync, which take turns.  Then the file is written page by page (table C.7).\n"
        "\n"
        "  --pages LIST  pages modified; default 1,16,256\n"
        "  --rounds N    for each; default 1000, as in the Thesis\n"
        "  --writes N    times the file is written; default 100\n"
        "  --dir DIR     for the file, on the disk to be measured; default the current\n"
        "                directory\n"
        "  --json        one JSON object per operation and number of pages\n"
        "  --quick       50 rounds, 5 writes\n"
        "  --quiet       no progress bar\n"
        "  --help");
}

/* modify -- increment an int on n random pages; firsts[i], one of each if not NULL. */
static void
modify(struct run *run, uint64_t n, uint8_t *firsts[])
{
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *page =
            run->base + bench_key(1, run->n_drawn++) % FILE_PAGES * run->page_bytes;

        *(volatile unsigned *)(void *)page += 1;
        if (firsts != NULL)
            firsts[i] = page;
    }
}

/* timed -- add the time since *t0p, which moves on; ret rc's error, said, or 0. */
static int
timed(struct run *run, enum op op, int rc, uint64_t *t0p)
{
    uint64_t t1 = bench_ticks();

    bench_sample_add(&run->sample[op], (double)(t1 - *t0p));
    *t0p = bench_ticks();
    return rc == 0 ? 0 : bench_fail("%s: %s", ops[op].name, strerror(errno));
}

/* sync_thesis -- msync of each page, then fsync. */
static int
sync_thesis(struct run *run, uint64_t n)
{
    static uint8_t *firsts[FILE_PAGES];
    uint64_t t0;
    int rc = 0;

    modify(run, n, firsts);
    t0 = bench_ticks();
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = msync(firsts[i], run->page_bytes, MS_ASYNC);
    rc = timed(run, MSYNC_ASYNC, rc, &t0);
    return rc == 0 ? timed(run, FSYNC, fsync(run->fd), &t0) : rc;
}

/* sync_other -- msync(MS_SYNC) or fdatasync. */
static int
sync_other(struct run *run, uint64_t n, enum op op)
{
    uint64_t t0;

    modify(run, n, NULL);
    t0 = bench_ticks();
    return timed(run, op,
                 op == FDATASYNC
                     ? fdatasync(run->fd)
                     : msync(run->base, FILE_PAGES * run->page_bytes, MS_SYNC),
                 &t0);
}

/* run_syncs -- rounds with n pages, in which each way has its turn. */
static int
run_syncs(struct run *run, uint64_t n)
{
    char label[40];
    int rc = 0;

    snprintf(label, sizeof label, "sync of %llu pages", (unsigned long long)n);
    for (uint64_t i = 0; i < run->options->rounds && rc == 0; i++) {
        bench_progress(label, i, run->options->rounds);
        for (unsigned j = 0; j < 3 && rc == 0; j++) {
            if (bench_interrupted())
                return bench_fail("interrupted");
            if ((i + j) % 3 == 0)
                rc = sync_thesis(run, n);
            else
                rc = sync_other(run, n, (i + j) % 3 == 1 ? MSYNC_SYNC : FDATASYNC);
        }
    }
    return rc;
}

/* write_file -- lseek, all pages, fdatasync. */
static int
write_file(struct run *run)
{
    static uint8_t page[65536];
    uint64_t t0 = bench_ticks();
    bool is_short = false;
    int rc = timed(run, LSEEK, lseek(run->fd, 0, SEEK_SET) == 0 ? 0 : -1, &t0);

    page[0]++;
    for (uint64_t i = 0; i < FILE_PAGES && rc == 0 && !is_short; i++)
        is_short = write(run->fd, page, run->page_bytes) != (ssize_t)run->page_bytes;
    if (rc == 0)
        rc = timed(run, WRITE_ALL, is_short ? -1 : 0, &t0);
    return rc == 0 ? timed(run, WRITE_SYNC, fdatasync(run->fd), &t0) : rc;
}

/* run_writes -- the file, so many times. */
static int
run_writes(struct run *run)
{
    int rc = 0;

    for (uint64_t i = 0; i < run->options->writes && rc == 0; i++) {
        bench_progress("write of 10,000 pages", i, run->options->writes);
        rc = bench_interrupted() ? bench_fail("interrupted") : write_file(run);
    }
    return rc;
}

/* report -- one operation, with so many pages. */
static void
report(struct run *run, enum op op, uint64_t n_pages)
{
    struct bench_summary s = bench_summarize(&run->sample[op]);
    const struct options *o = run->options;
    char label[64];

    if (!o->common.json) {
        snprintf(label, sizeof label, "%5llu %s", (unsigned long long)n_pages,
                 ops[op].name);
        bench_print_row(label, &s, bench_ticks_per_us());
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "msync");
    bench_json_str(stdout, "operation", ops[op].name);
    bench_json_str(stdout, "what", ops[op].what);
    bench_json_u64(stdout, "pages", n_pages);
    bench_json_ticks(stdout, &s);
    if (op != LSEEK && op != MSYNC_ASYNC)
        bench_json_num(stdout, "mb_per_s_median",
                       (double)(n_pages * run->page_bytes) * bench_ticks_per_us()
                           / s.median);
    bench_json_str(stdout, "command", o->common.command);
    bench_json_end(stdout);
}

/* run_all -- on an open file; ret 0, or 1 after a message. */
static int
run_all(struct run *run)
{
    const struct options *o = run->options;
    int rc = 0;

    for (unsigned i = 0; i < o->pages.n && rc == 0; i++) {
        for (unsigned op = 0; op < N_SYNCS; op++)
            run->sample[op].n = 0;
        rc = run_syncs(run, o->pages.v[i]);
        bench_progress_clear();
        for (unsigned op = 0; op < N_SYNCS && rc == 0; op++)
            report(run, (enum op)op, o->pages.v[i]);
    }
    if (rc == 0)
        rc = run_writes(run);
    bench_progress_clear();
    for (unsigned op = N_SYNCS; op < N_OPS && rc == 0; op++)
        report(run, (enum op)op, FILE_PAGES);
    return rc;
}

/* run_in -- make the file in a directory; ret 0, or 1 after a message. */
static int
run_in(struct run *run, const char *dir)
{
    size_t bytes = FILE_PAGES * run->page_bytes;
    char file[BENCH_DIR_BYTES + 16];
    void *base;
    int rc;

    snprintf(file, sizeof file, "%s/file", dir);
    run->fd = bench_zero_file(file, bytes);
    if (run->fd < 0)
        return bench_fail("%s: %s", file, strerror(errno));
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, run->fd, 0);
    run->base = base;
    rc = base == MAP_FAILED ? bench_fail("mmap: %s", strerror(errno)) : run_all(run);
    if (base != MAP_FAILED)
        munmap(base, bytes);
    close(run->fd);
    return rc;
}

/* run -- ret exit status. */
static int
run(const struct options *o)
{
    struct run run = {.options = o, .page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    char dir[BENCH_DIR_BYTES];
    int rc = 0;

    if (!o->common.json) {
        bench_print_command(&o->common, "in microseconds");
        bench_print_columns("pages, operation", "us");
    }
    for (unsigned op = 0; op < N_OPS && rc == 0; op++)
        rc = bench_sample_init(&run.sample[op], op < N_SYNCS ? o->rounds : o->writes);
    if (rc == 0)
        rc = bench_dir_make(&o->common, dir);
    if (rc == 0) {
        rc = run_in(&run, dir);
        rc = bench_dir_remove(dir) != 0 ? 1 : rc;
    }
    for (unsigned op = 0; op < N_OPS; op++)
        bench_sample_free(&run.sample[op]);
    return rc;
}

int
bench_msync_main(int argc, char **argv)
{
    static const struct bench_numbers pages = {3, {1, 16, 256}};
    struct options o = {.rounds = 0};
    const struct bench_option options[] = {
        {.name = "pages", .numbers = &o.pages, .low = 1, .high = FILE_PAGES},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "writes", .number = &o.writes, .low = 1, .high = ROUNDS_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &o.common, &rc))
        return rc;
    if (o.pages.n == 0)
        o.pages = pages;
    if (o.rounds == 0)
        o.rounds = o.common.quick ? ROUNDS_QUICK : ROUNDS;
    if (o.writes == 0)
        o.writes = o.common.quick ? WRITES_QUICK : WRITES;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    return run(&o);
}
