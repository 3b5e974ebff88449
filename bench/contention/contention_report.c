/* SPDX-License-Identifier: MIT */
/*
 * contention_report.c -- what the experiment `contention` prints.
 */
#include <config.h>

#include "bench/contention/contention.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/kit/util.h"

#define COLUMN 23 /* characters of a cell                                            */

void
bench_hot_usage(void)
{
    puts(
        "Processes run transactions on few pages under each policy, nondurable, each\n"
        "policy in an environment of its own.  A cell is a length of transactions, a\n"
        "number of processes and a number of pages.  Its time is cut in slices; in each\n"
        "slice every policy has its turn, in rotating order.  At the end the counters on\n"
        "the pages must add up to the increments that were committed.\n"
        "\n"
        "  --policies LIST    default oldest-wins,self-abort,selfish,youngest-wins,\n"
        "                     optimistic,serial\n"
        "  --procs LIST       default 2,8\n"
        "  --pages LIST       default 1,8,64,4096\n"
        "  --lengths LIST     short: reads 1 random page, increments a counter on 1;\n"
        "                     long: 16 and 4; default short,long\n"
        "  --seconds-per-cell S  of each policy; default 1\n"
        "  --slices K         default 5\n"
        "  --seed S           default 1\n"
        "  --dir DIR          where to put the files, in a directory that is removed\n"
        "                     at the end; default the current directory\n"
        "  --json             one JSON object per cell and policy\n"
        "  --quiet            no progress bar\n"
        "  --help\n"
        "\n"
        "In each column: thousands of committed transactions per second, all processes\n"
        "together, median of slices; percentage of attempts that aborted; the largest\n"
        "number of retries of one transaction.");
}

void
bench_hot_print_head(const struct bench_hot_options *o)
{
    struct utsname un;

    if (o->common.json)
        return;
    uname(&un);
    printf("$ %s\n", o->common.command);
    printf("%s %s, %ld cpus; %llu slices of %g s, seed %llu\n\n", un.sysname, un.release,
           sysconf(_SC_NPROCESSORS_ONLN), (unsigned long long)o->slices,
           o->seconds / (double)o->slices, (unsigned long long)o->seed);
    printf("| length | procs | pages |");
    for (unsigned i = 0; i < o->n_policies; i++)
        printf(" %-*s |", COLUMN, o->policies[i]->name);
    printf("\n|:-------|------:|------:|");
    for (unsigned i = 0; i < o->n_policies; i++)
        printf("%.*s:|", COLUMN + 1, "--------------------------------");
    putchar('\n');
    fflush(stdout);
}

/* abort_rate -- aborts over attempts, 0 to 1. */
static double
abort_rate(const struct bench_hot_counts *c)
{
    return c->commits == 0 ? 1 : (double)c->aborts / (double)(c->commits + c->aborts);
}

/* print_json -- the result and what is needed to repeat it. */
static void
print_json(const struct bench_hot_options *o, const struct bench_hot_cell *cell,
           const struct bench_hot_result *r)
{
    FILE *f = stdout;
    struct utsname un;

    uname(&un);
    bench_json_begin(f);
    bench_json_str(f, "experiment", "contention");
    bench_json_str(f, "policy", r->policy->name);
    bench_json_str(f, "length", cell->length->name);
    bench_json_u64(f, "processes", cell->procs);
    bench_json_u64(f, "pages", cell->pages);
    bench_json_num(f, "commits_per_second_median", r->rate_median);
    bench_json_num(f, "commits_per_second_min", r->rate_min);
    bench_json_num(f, "commits_per_second_max", r->rate_max);
    bench_json_nums(f, "commits_per_second_slices", r->slice_rate, o->slices);
    bench_json_num(f, "abort_rate", abort_rate(&r->counts));
    bench_json_u64(f, "commits", r->counts.commits);
    bench_json_u64(f, "aborts", r->counts.aborts);
    bench_json_u64(f, "max_retries", r->counts.max_retries);
    bench_json_u64(f, "commits_of_slowest_worker", r->counts.min_commits);
    bench_json_bool(f, "sum_checked", true);
    bench_json_u64(f, "slices", o->slices);
    bench_json_num(f, "seconds", o->seconds);
    bench_json_u64(f, "seed", o->seed);
    bench_json_str(f, "kernel", un.release);
    bench_json_u64(f, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    bench_json_str(f, "command", o->common.command);
    bench_json_end(f);
}

void
bench_hot_print_cell(const struct bench_hot_options *o, const struct bench_hot_cell *cell,
                     const struct bench_hot_result *results)
{
    if (!o->common.json)
        printf("| %-6s | %5u | %5llu |", cell->length->name, cell->procs,
               (unsigned long long)cell->pages);
    for (unsigned i = 0; i < o->n_policies; i++) {
        const struct bench_hot_result *r = &results[i];

        if (o->common.json)
            print_json(o, cell, r);
        else
            printf(" %6.1f k, %4.1f %%, %6llu |", r->rate_median / 1e3,
                   abort_rate(&r->counts) * 100,
                   (unsigned long long)r->counts.max_retries);
    }
    if (!o->common.json)
        putchar('\n');
    fflush(stdout);
}
