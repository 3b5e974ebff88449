/* SPDX-License-Identifier: MIT */
/*
 * backoff_report.c -- what the experiment `backoff` prints.
 */
#include <config.h>

#include "bench/contention/backoff.h"

#include <stdio.h>

#define COLUMN 24 /* characters of a cell                                            */

void
bench_backoff_usage(void)
{
    puts(
        "Processes insert random keys into one small tree, nondurable, under each policy and\n"
        "with each way to wait between an abort and the next attempt (Thesis sections 5.5 and\n"
        "6.1, questions 5 and 6).  A turn is one policy and one back-off, in an environment\n"
        "and a tree of its own that begin with the same records; each turn inserts the same\n"
        "keys.  In each round every turn is made once, another one first.  After each turn a\n"
        "new process finds every record, and no other.\n"
        "\n"
        "  --trees LIST      btree,cobtree; default both\n"
        "  --policies LIST   default oldest-wins,self-abort,selfish,youngest-wins,\n"
        "                    optimistic,serial\n"
        "  --backoffs LIST   default all:");
    for (const struct bench_backoff *b = bench_backoffs; b->name != NULL; b++)
        printf("                      %-12s %s\n", b->name, b->what);
    puts(
        "  --procs LIST      default 2,4,8\n"
        "  --loaded N        records there before; default 100\n"
        "  --count N         inserts of a turn, shared by the processes; default 2000\n"
        "  --rounds N        default 5\n"
        "  --fixed-us N      that `fixed` sleeps; default 100\n"
        "  --seed S          default 1\n"
        "  --dir DIR         for the files; default the current directory\n"
        "  --json            one JSON object per combination\n"
        "  --quick           2 and 8 processes, one round of 200\n"
        "  --quiet           no progress bar\n"
        "  --help\n"
        "\n"
        "In each column: microseconds per insert, all processes together, median of the\n"
        "rounds; percentage of attempts that aborted; the largest number of retries of one\n"
        "insert.  oldest-wins waits by itself until the older transaction is over, whatever\n"
        "the back-off does besides; serial aborts nothing.");
}

void
bench_backoff_print_head(const struct bench_backoff_options *o)
{
    if (o->common.json)
        return;
    bench_print_command(&o->common,
                        "nondurable; us per insert, aborts over attempts, most "
                        "retries of one insert");
}

/* abort_rate -- aborts over attempts, 0 to 1. */
static double
abort_rate(const struct bench_backoff_counts *c)
{
    return (double)c->aborts / (double)(c->commits + c->aborts);
}

static void
print_json(const struct bench_backoff_options *o, unsigned tree, unsigned n_procs,
           const struct bench_hot_policy *policy, const struct bench_backoff *backoff,
           struct bench_backoff_result *r)
{
    struct bench_summary s = bench_summarize(&r->us);
    double inserts = (double)r->all.commits;

    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "backoff");
    bench_json_str(stdout, "tree", o->trees[tree]->name);
    bench_json_str(stdout, "policy", policy->name);
    bench_json_str(stdout, "backoff", backoff->name);
    bench_json_u64(stdout, "processes", n_procs);
    bench_json_u64(stdout, "rounds", s.n);
    bench_json_summary(stdout, "us_per_insert", &s, 1);
    bench_json_num(stdout, "abort_rate", abort_rate(&r->all));
    bench_json_u64(stdout, "inserts", r->all.commits);
    bench_json_u64(stdout, "aborts", r->all.aborts);
    bench_json_u64(stdout, "max_retries", r->all.max_retries);
    bench_json_num(stdout, "longest_insert_ms", (double)r->all.longest_ns / 1e6);
    bench_json_num(stdout, "us_waited_per_insert",
                   (double)r->all.waited_ns / 1e3 / inserts);
    bench_json_u64(stdout, "loaded", o->loaded);
    bench_json_u64(stdout, "inserts_per_round", o->count);
    bench_json_u64(stdout, "fixed_us", o->fixed_us);
    bench_json_bool(stdout, "verified", true);
    bench_json_str(stdout, "command", o->common.command);
    bench_json_end(stdout);
}

void
bench_backoff_print(const struct bench_backoff_options *o, unsigned tree,
                    unsigned n_procs, struct bench_backoff_result *results)
{
    if (!o->common.json) {
        printf("%s, %u processes\n\n| %-12s |", o->trees[tree]->name, n_procs,
               "back-off");
        for (unsigned i = 0; i < o->n_policies; i++)
            printf(" %-*s |", COLUMN, o->policies[i]->name);
        printf("\n|:-------------|");
        for (unsigned i = 0; i < o->n_policies; i++)
            printf("%.*s:|", COLUMN + 1, "--------------------------------");
        putchar('\n');
    }
    for (unsigned b = 0; b < o->n_backoffs; b++) {
        if (!o->common.json)
            printf("| %-12s |", o->backoffs[b]->name);
        for (unsigned i = 0; i < o->n_policies; i++) {
            struct bench_backoff_result *r = &results[b * o->n_policies + i];

            if (o->common.json)
                print_json(o, tree, n_procs, o->policies[i], o->backoffs[b], r);
            else
                printf(" %7.1f us, %4.1f %%, %5llu |", bench_summarize(&r->us).median,
                       abort_rate(&r->all) * 100, (unsigned long long)r->all.max_retries);
        }
        if (!o->common.json)
            putchar('\n');
    }
    if (!o->common.json)
        putchar('\n');
    fflush(stdout);
}
