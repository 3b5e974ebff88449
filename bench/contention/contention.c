/* SPDX-License-Identifier: MIT */
/*
 * contention.c -- the experiment `contention`: what each policy makes of hot pages (Thesis
 * ch. 6, question 5).
 *
 * In a cell the processes of all policies are there at the same time, each policy in an
 * environment of its own; slice by slice those of one policy run while the others wait.
 */
#include <config.h>

#include "bench/contention/contention.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

/* The cell at work. */
struct run {
    const struct bench_hot_options *options;
    struct bench_hot_cell cell;
    uint64_t cells_done;
    uint64_t n_cells;
    struct bench_hot_crew crews[BENCH_HOT_LIST_MAX];
    struct bench_hot_result results[BENCH_HOT_LIST_MAX];
};

/* crew_start -- directory, memory, processes of policy i; ret 0, or 1 after a message. */
static int
crew_start(struct run *run, unsigned i, const char *dir)
{
    const struct bench_hot_options *o = run->options;
    struct bench_hot_crew *crew = &run->crews[i];

    crew->policy = run->results[i].policy = o->policies[i];
    crew->cell = run->cell;
    crew->seed = o->seed;
    snprintf(crew->dir, sizeof crew->dir, "%s/%u", dir, i);
    if (mkdir(crew->dir, 0755) != 0)
        return bench_fail("%s: %s", crew->dir, strerror(errno));
    run->results[i].slice_rate = calloc(o->slices, sizeof(double));
    if (run->results[i].slice_rate == NULL)
        return bench_fail("out of memory");
    return bench_hot_start(crew);
}

/* run_slice -- every policy once, starting with another one in each slice. */
static int
run_slice(struct run *run, uint64_t slice)
{
    const struct bench_hot_options *o = run->options;
    uint64_t ns = (uint64_t)(o->seconds * 1e9 / (double)o->slices);
    struct bench_hot_counts c;

    for (unsigned j = 0; j < o->n_policies; j++) {
        unsigned i = (unsigned)((slice + j) % o->n_policies);
        struct bench_hot_counts *all = &run->results[i].counts;
        char label[96];

        if (bench_interrupted())
            return bench_fail("interrupted");
        snprintf(label, sizeof label, "%s, %u proc, %llu pages, %s",
                 run->cell.length->name, run->cell.procs,
                 (unsigned long long)run->cell.pages, o->policies[i]->name);
        bench_progress(label, run->cells_done * o->slices + slice,
                       run->n_cells * o->slices);
        if (bench_hot_run(&run->crews[i], ns, &c) != 0)
            return 1;
        run->results[i].slice_rate[slice] = (double)c.commits * 1e9 / (double)c.ns;
        all->commits += c.commits;
        all->aborts += c.aborts;
        all->min_commits = c.min_commits;
        if (c.max_retries > all->max_retries)
            all->max_retries = c.max_retries;
    }
    return 0;
}

/* summarize -- median and extremes of the slices. */
static void
summarize(struct bench_hot_result *r, uint64_t n)
{
    r->rate_median = bench_median(r->slice_rate, n);
    r->rate_min = r->rate_max = r->slice_rate[0];
    for (uint64_t i = 1; i < n; i++) {
        if (r->slice_rate[i] < r->rate_min)
            r->rate_min = r->slice_rate[i];
        if (r->slice_rate[i] > r->rate_max)
            r->rate_max = r->slice_rate[i];
    }
}

/* run_work -- start, slices, close, check, print; the caller stops what runs. */
static int
run_work(struct run *run, const char *dir)
{
    const struct bench_hot_options *o = run->options;
    int rc = 0;

    for (unsigned i = 0; i < o->n_policies && rc == 0; i++)
        rc = crew_start(run, i, dir);
    for (uint64_t s = 0; s < o->slices && rc == 0; s++)
        rc = run_slice(run, s);
    for (unsigned i = 0; i < o->n_policies && rc == 0; i++) {
        rc = bench_hot_close(&run->crews[i]);
        if (rc == 0)
            rc = bench_hot_check(&run->crews[i], run->results[i].counts.commits);
        summarize(&run->results[i], o->slices);
    }
    bench_progress_clear();
    if (rc == 0)
        bench_hot_print_cell(o, &run->cell, run->results);
    return rc;
}

/* run_cell -- ret 0, or 1 after a message. */
static int
run_cell(struct run *run)
{
    const struct bench_hot_options *o = run->options;
    char dir[400];
    int rc;

    memset(run->crews, 0, sizeof run->crews);
    memset(run->results, 0, sizeof run->results);
    snprintf(dir, sizeof dir, "%s/xbench-XXXXXX", o->common.dir);
    if (mkdtemp(dir) == NULL)
        return bench_fail("%s: %s", dir, strerror(errno));
    rc = run_work(run, dir);
    for (unsigned i = 0; i < o->n_policies; i++) {
        bench_hot_stop(&run->crews[i]);
        free(run->results[i].slice_rate);
    }
    if (bench_remove_tree(dir) != 0)
        rc = bench_fail("%s: cannot be removed: %s", dir, strerror(errno));
    run->cells_done++;
    return rc;
}

/* run_all -- every cell of the command line; ret exit status. */
static int
run_all(const struct bench_hot_options *o)
{
    static struct run run; /* too large for the stack */
    int rc = 0;

    run.options = o;
    run.n_cells = (uint64_t)o->n_lengths * o->procs.n * o->pages.n;
    bench_catch_signals();
    bench_progress_enable(o->common.quiet);
    bench_hot_print_head(o);
    for (uint64_t i = 0; i < run.n_cells && rc == 0; i++) {
        run.cell = (struct bench_hot_cell){
            .length = o->lengths[i / o->pages.n / o->procs.n],
            .procs = (unsigned)o->procs.v[i / o->pages.n % o->procs.n],
            .pages = o->pages.v[i % o->pages.n],
        };
        rc = run_cell(&run);
    }
    if (rc == 0 && !o->common.json)
        puts("\nevery environment holds as many increments as were committed");
    return rc;
}

int
bench_contention_main(int argc, char **argv)
{
    static struct bench_hot_options o;
    int status;

    return bench_hot_parse(argc, argv, &o, &status) ? run_all(&o) : status;
}
