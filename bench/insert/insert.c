/* SPDX-License-Identifier: MIT */
/*
 * insert.c -- the experiment `insert`, and those made of it.
 *
 * A run is one combination of workload, group, durability and number of processes.  All its
 * systems are open at the same time; slice by slice each does the next share of the steps.
 */
#include <config.h>

#include "bench/insert/insert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define LOG_FILE_BYTES (UINT64_C(16) << 20) /* of every system that has a log */

/* One system in a run. */
struct entry {
    struct bench_crew crew;
    struct bench_insert_result result;
    struct bench_counters before; /* after all had opened */
    uint64_t warm_traps;          /* of all slices */
    uint64_t written, writer_ns;  /* likewise; by the writer */
    char dir[512];
};

struct run {
    const struct bench_insert_options *options;
    bool durable;
    unsigned procs;
    uint64_t group;
    struct bench_job job;
    unsigned n_entries;
    struct entry entries[BENCH_ENTRY_MAX];
};

/* ---- Running ---------------------------------------------------------------------- */

bool
bench_insert_can_run(const struct bench_system *system,
                     const struct bench_workload *workload, bool durable, unsigned procs)
{
    bool has_workers = (system->abilities & (BENCH_MULTI | BENCH_THREADS)) != 0;
    bool fits = durable ? !(system->abilities & BENCH_NEVER_DURABLE)
                        : (system->abilities & BENCH_NONDURABLE) != 0;
    bool only_inserts = workload->insert_every == 1 && !workload->has_writer;

    return fits && (only_inserts || system->abilities & BENCH_KEEPS)
           && (procs + workload->has_writer == 1 || has_workers);
}

/* entry_add -- a system, if it can do what the run is about. */
static void
entry_add(struct run *run, const struct bench_system *system, bool hints)
{
    struct entry *e = &run->entries[run->n_entries];

    if (!bench_insert_can_run(system, run->job.workload, run->durable, run->procs))
        return;
    e->result = (struct bench_insert_result){.system = system,
                                             .workload = run->job.workload,
                                             .group = run->group,
                                             .procs = run->procs,
                                             .durable = run->durable,
                                             .hints = hints};
    run->n_entries++;
}

/* entries_choose -- all systems of the command line, with hints on, off or both. */
static void
entries_choose(struct run *run)
{
    const struct bench_insert_options *o = run->options;

    for (unsigned i = 0; i < o->n_systems; i++) {
        bool has_hints = (o->systems[i]->abilities & BENCH_HINTS) != 0;

        if (!has_hints || o->hints_on)
            entry_add(run, o->systems[i], has_hints);
        if (has_hints && o->hints_off)
            entry_add(run, o->systems[i], false);
    }
}

struct bench_config
bench_insert_config(const struct bench_insert_options *o, const struct bench_job *job,
                    const struct bench_system *system, const char *dir, bool durable,
                    bool hints)
{
    return (struct bench_config){.system = system,
                                 .dir = dir,
                                 .durable = durable,
                                 .hints = hints,
                                 .count = bench_job_records(job, o->count),
                                 .cache_bytes = o->cache_bytes,
                                 .block_bytes = o->block_bytes,
                                 .checkpoint_bytes = o->checkpoint_bytes,
                                 .log_file_bytes = LOG_FILE_BYTES,
                                 .sync_bytes = o->sync_bytes};
}

/* entry_start -- directory, memory and processes; ret 0, or 1 after a message. */
static int
entry_start(struct run *run, struct entry *e, unsigned number, const char *dir)
{
    const struct bench_insert_options *o = run->options;
    const struct bench_system *system = e->result.system;
    struct bench_config config =
        bench_insert_config(o, &run->job, system, e->dir, run->durable, e->result.hints);
    char label[48];
    int n = snprintf(e->dir, sizeof e->dir, "%s/%u-%s", dir, number, system->name);

    if (n < 0 || (size_t)n >= sizeof e->dir)
        return bench_fail("the name of the directory is too long");
    if (mkdir(e->dir, 0755) != 0)
        return bench_fail("%s: %s", e->dir, strerror(errno));
    e->result.slice_us = calloc(o->slices, sizeof *e->result.slice_us);
    if (e->result.slice_us == NULL)
        return bench_fail("out of memory");
    snprintf(label, sizeof label, "%s%s", system->name,
             !(system->abilities & BENCH_HINTS) ? ""
             : e->result.hints                  ? " (hints)"
                                                : " (no hints)");
    return bench_crew_start(&e->crew, &config, label, &run->job, run->group, o->warm,
                            run->procs);
}

/* run_slice -- every system inserts slice number `slice`, starting with another. */
static int
run_slice(struct run *run, uint64_t slice)
{
    const struct bench_insert_options *o = run->options;
    uint64_t first = o->count * slice / o->slices;
    uint64_t n = o->count * (slice + 1) / o->slices - first;
    struct bench_outcome outcome;

    for (unsigned j = 0; j < run->n_entries; j++) {
        struct entry *e = &run->entries[(slice + j) % run->n_entries];
        char label[96];

        snprintf(label, sizeof label, "%s, %u proc, %s", e->crew.label, run->procs,
                 run->durable ? "durable" : "nondurable");
        bench_progress(label, slice * run->n_entries + j, o->slices * run->n_entries);
        if (bench_crew_run(&e->crew, first, n, &outcome) != 0)
            return 1;
        e->result.slice_us[slice] = (double)outcome.ns / 1e3 / (double)n;
        e->result.us_mean += (double)outcome.ns / 1e3 / (double)o->count;
        e->result.retries += outcome.retries;
        e->warm_traps += outcome.warm_traps;
        e->written += outcome.written;
        e->writer_ns += outcome.writer_ns;
    }
    return 0;
}

/* per_insert -- growth of a counter over the run, -1 if there is none. */
static double
per_insert(uint64_t before, uint64_t after, uint64_t count)
{
    return before == BENCH_NONE || after == BENCH_NONE
               ? -1
               : (double)(after - before) / (double)count;
}

/* entry_finish -- counters, percentiles, close, check; ret 0, or 1 after a message. */
static int
entry_finish(struct run *run, struct entry *e)
{
    uint64_t count = run->options->count;
    struct bench_insert_result *r = &e->result;
    struct bench_counters after;

    if (bench_crew_counters(&e->crew, &after) != 0)
        return 1;
    r->writer_us = e->written > 0 ? (double)e->writer_ns / 1e3 / (double)e->written : -1;
    if (run->job.workload->has_writer) /* counters would be its, too */
        after.log_bytes = after.syncs = after.traps = BENCH_NONE;
    r->log_bytes = per_insert(e->before.log_bytes, after.log_bytes, count);
    r->syncs = per_insert(e->before.syncs, after.syncs, count);
    r->per_sync = r->syncs > 0 ? 1 / r->syncs : -1;
    r->traps = per_insert(e->before.traps, after.traps, count);
    if (r->traps >= 0)
        r->traps -= (double)e->warm_traps / (double)count;
    r->retries += after.retries - e->before.retries;
    bench_sort_u32(e->crew.latencies, count);
    r->p50_us = bench_percentile(e->crew.latencies, count, 50) / 1e3;
    r->p99_us = bench_percentile(e->crew.latencies, count, 99) / 1e3;
    r->max_us = e->crew.latencies[count - 1] / 1e3;
    r->ns = e->crew.latencies;
    if (bench_crew_close(&e->crew) != 0)
        return 1;
    if (!(r->system->abilities & BENCH_KEEPS))
        return 0;
    bench_progress("checking what is there", 1, 1);
    return bench_crew_verify(&e->crew);
}

/* min_max -- of n > 0 values. */
static void
min_max(const double *v, size_t n, double *minp, double *maxp)
{
    *minp = *maxp = v[0];
    for (size_t i = 1; i < n; i++) {
        *minp = v[i] < *minp ? v[i] : *minp;
        *maxp = v[i] > *maxp ? v[i] : *maxp;
    }
}

/* find_result -- of a system in this run, NULL if it did not take part. */
static const struct bench_insert_result *
find_result(const struct run *run, const char *name)
{
    for (unsigned i = 0; i < run->n_entries; i++)
        if (strcmp(run->entries[i].result.system->name, name) == 0)
            return &run->entries[i].result;
    return NULL;
}

/* ratio_slices -- a's time over b's, slice by slice. */
static void
ratio_slices(const struct bench_insert_result *a, const struct bench_insert_result *b,
             double *ratios, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ratios[i] = a->slice_us[i] / b->slice_us[i];
}

/* compare_over -- the time of `other`, NULL if it did not take part, over r's. */
static struct bench_insert_ratio
compare_over(const struct bench_insert_result *other, const struct bench_insert_result *r,
             double *ratios, size_t n)
{
    struct bench_insert_ratio out = {-1, -1, -1, -1};

    if (other == NULL)
        return out;
    ratio_slices(other, r, ratios, n);
    out.median = bench_median(ratios, n);
    out.mean = other->us_mean / r->us_mean;
    min_max(ratios, n, &out.min, &out.max);
    return out;
}

/* compare -- r beside the other systems of the run, with room for n ratios. */
static void
compare(const struct run *run, struct bench_insert_result *r, double *ratios, size_t n)
{
    const struct bench_words *over = &run->options->over;
    const struct bench_insert_result *sync = find_result(run, "sync");
    bool is_co = strncmp(r->system->name, "cobtree", 7) == 0;
    const struct bench_insert_result *plain =
        find_result(run, is_co ? "mmap-co" : "mmap");

    for (unsigned i = 0; i < over->n; i++)
        r->over[i] = compare_over(find_result(run, over->v[i]), r, ratios, n);
    r->over_sync = r->over_mmap = -1;
    if (sync != NULL) {
        ratio_slices(r, sync, ratios, n);
        r->over_sync = bench_median(ratios, n);
    }
    if (plain != NULL) {
        ratio_slices(r, plain, ratios, n);
        r->over_mmap = bench_median(ratios, n);
    }
}

/* summarize -- medians, and ratios slice by slice; ret 0 or 1. */
static int
summarize(const struct run *run, struct bench_insert_result *r)
{
    size_t n = run->options->slices;
    double *ratios = calloc(n, sizeof *ratios);

    if (ratios == NULL)
        return bench_fail("out of memory");
    r->us_median = bench_median(r->slice_us, n);
    min_max(r->slice_us, n, &r->us_min, &r->us_max);
    compare(run, r, ratios, n);
    free(ratios);
    return 0;
}

/* run_work -- start, slices, finish, print; the caller stops what runs. */
static int
run_work(struct run *run, const char *dir)
{
    const struct bench_insert_options *o = run->options;
    int rc = 0;

    for (unsigned i = 0; i < run->n_entries && rc == 0; i++)
        rc = entry_start(run, &run->entries[i], i, dir);
    for (unsigned i = 0; i < run->n_entries && rc == 0; i++) {
        bench_progress("records that are there before", i, run->n_entries);
        rc = bench_crew_load(&run->entries[i].crew);
    }
    for (unsigned i = 0; i < run->n_entries && rc == 0; i++)
        rc = bench_crew_counters(&run->entries[i].crew, &run->entries[i].before);
    for (uint64_t s = 0; s < o->slices && rc == 0; s++)
        rc = run_slice(run, s);
    for (unsigned i = 0; i < run->n_entries && rc == 0; i++)
        rc = entry_finish(run, &run->entries[i]);
    bench_progress_clear();
    for (unsigned i = 0; i < run->n_entries && rc == 0; i++) {
        rc = summarize(run, &run->entries[i].result);
        if (rc == 0)
            bench_insert_print_row(o, &run->entries[i].result);
    }
    return rc;
}

/* run_one -- the run that is described; ret 0 or 1. */
static int
run_one(struct run *run)
{
    const struct bench_insert_options *o = run->options;
    char dir[400];
    int rc;

    entries_choose(run);
    if (run->n_entries == 0)
        return 0;
    if (o->ranks != NULL && o->n_ranks < bench_job_records(&run->job, o->count))
        return bench_fail("--keys paths: there are %llu only",
                          (unsigned long long)o->n_ranks);
    snprintf(dir, sizeof dir, "%s/xbench-XXXXXX", o->common.dir);
    if (mkdtemp(dir) == NULL)
        return bench_fail("%s: %s", dir, strerror(errno));
    rc = run_work(run, dir);
    for (unsigned i = 0; i < run->n_entries; i++) {
        bench_crew_stop(&run->entries[i].crew);
        free(run->entries[i].result.slice_us);
    }
    if (bench_remove_tree(dir) != 0)
        rc = bench_fail("%s: cannot be removed: %s", dir, strerror(errno));
    return rc;
}

struct bench_job
bench_insert_job(const struct bench_insert_options *o,
                 const struct bench_workload *workload)
{
    struct bench_job job = {.workload = workload,
                            .keys = o->keys,
                            .seed = o->seed,
                            .loaded = o->loaded,
                            .steps = o->count,
                            .scan_length = o->scan_length,
                            .ranks = o->ranks};

    bench_job_prepare(&job);
    return job;
}

/* run_workload -- with each number of processes and each group; ret 0 or 1. */
static int
run_workload(const struct bench_insert_options *o, const struct bench_workload *workload,
             bool durable)
{
    static struct run run; /* too large for the stack */
    struct bench_job job = bench_insert_job(o, workload);
    int rc = 0;

    for (unsigned i = 0; i < o->procs.n * o->groups.n && rc == 0; i++) {
        run = (struct run){.options = o,
                           .durable = durable,
                           .procs = (unsigned)o->procs.v[i / o->groups.n],
                           .group = o->groups.v[i % o->groups.n],
                           .job = job};
        rc = run_one(&run);
    }
    return rc;
}

/* run_all -- every run of the command line; ret exit status. */
static int
run_all(const struct bench_insert_options *o)
{
    int rc = 0;

    bench_catch_signals();
    bench_progress_enable(o->common.quiet);
    bench_insert_print_head(o);
    for (unsigned i = 0; i < o->n_workloads && rc == 0; i++) {
        if (o->durabilities & BENCH_DURABLE)
            rc = run_workload(o, o->workloads[i], true);
        if (rc == 0 && o->durabilities & BENCH_NOT_DURABLE)
            rc = run_workload(o, o->workloads[i], false);
    }
    free(o->ranks);
    if (rc == 0 && !o->common.json)
        puts("\nall records found again in every system that keeps them");
    return rc;
}

int
bench_insert_main(int argc, char **argv)
{
    static struct bench_insert_options o;
    int status;

    return bench_insert_parse(argc, argv, &o, &status) ? run_all(&o) : status;
}
