/* SPDX-License-Identifier: MIT */
/*
 * backoff.c -- the experiment `backoff`: how long a transaction should wait before it is tried
 * again, under each policy, in both trees (Thesis section 5.5, theory 1 and 2; section 6.1,
 * questions 5 and 6).
 */
#include <config.h>

#include "bench/contention/backoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define COUNT_MAX    UINT64_C(10000000)
#define ROUNDS_MAX   1000u
#define FIXED_US_MAX UINT64_C(1000000)
#define RESULTS_MAX  (BENCH_HOT_LIST_MAX * BENCH_HOT_LIST_MAX)
#define LOADED       UINT64_C(100)
#define COUNT        UINT64_C(2000)
#define COUNT_QUICK  UINT64_C(200)
#define ROUNDS       UINT64_C(5)
#define ROUNDS_QUICK UINT64_C(1)

/* A tree and a number of processes. */
struct run {
    const struct bench_backoff_options *options;
    unsigned tree;
    unsigned n_procs;
    unsigned n_results;
    struct bench_backoff_result results[RESULTS_MAX];
};

/* run_turn -- combination i once more; ret 0, or 1 after a message. */
static int
run_turn(struct run *run, unsigned i)
{
    const struct bench_backoff_options *o = run->options;
    struct bench_backoff_turn turn = {.options = o,
                                      .tree = o->trees[run->tree],
                                      .policy = o->policies[i % o->n_policies],
                                      .backoff = o->backoffs[i / o->n_policies],
                                      .n_procs = run->n_procs};
    struct bench_backoff_counts c, *all = &run->results[i].all;
    int rc;

    if (bench_dir_make(&o->common, turn.dir) != 0)
        return 1;
    rc = bench_backoff_turn(&turn, &c);
    if (bench_dir_remove(turn.dir) != 0 || rc != 0)
        return bench_fail("backoff: %s, %s, back-off %s, %u processes: no result",
                          turn.tree->name, turn.policy->name, turn.backoff->name,
                          turn.n_procs);
    bench_sample_add(&run->results[i].us, (double)c.ns / 1e3 / (double)c.commits);
    all->ns += c.ns;
    all->commits += c.commits;
    all->aborts += c.aborts;
    all->waited_ns += c.waited_ns;
    if (c.max_retries > all->max_retries)
        all->max_retries = c.max_retries;
    if (c.longest_ns > all->longest_ns)
        all->longest_ns = c.longest_ns;
    return 0;
}

/* run_rounds -- every combination once in each round, another one first. */
static int
run_rounds(struct run *run)
{
    const struct bench_backoff_options *o = run->options;

    for (uint64_t round = 0; round < o->rounds; round++)
        for (unsigned j = 0; j < run->n_results; j++) {
            unsigned i = (unsigned)((round + j) % run->n_results);
            char label[64];

            if (bench_interrupted())
                return bench_fail("interrupted");
            snprintf(label, sizeof label, "%s, %u procs, %s", o->trees[run->tree]->name,
                     run->n_procs, o->policies[i % o->n_policies]->name);
            bench_progress(label, round * run->n_results + j, o->rounds * run->n_results);
            if (run_turn(run, i) != 0)
                return 1;
        }
    return 0;
}

/* run_part -- a tree and a number of processes; ret 0, or 1 after a message. */
static int
run_part(struct run *run)
{
    const struct bench_backoff_options *o = run->options;
    int rc = 0;

    run->n_results = o->n_backoffs * o->n_policies;
    memset(run->results, 0, sizeof run->results);
    for (unsigned i = 0; i < run->n_results && rc == 0; i++)
        rc = bench_sample_init(&run->results[i].us, o->rounds);
    if (rc == 0)
        rc = run_rounds(run);
    bench_progress_clear();
    if (rc == 0)
        bench_backoff_print(o, run->tree, run->n_procs, run->results);
    for (unsigned i = 0; i < run->n_results; i++)
        bench_sample_free(&run->results[i].us);
    return rc;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(struct bench_backoff_options *o)
{
    static const struct bench_numbers procs = {3, {2, 4, 8}}, few = {2, {2, 8}};

    if (o->procs.n == 0)
        o->procs = o->common.quick ? few : procs;
    if (o->count == 0)
        o->count = o->common.quick ? COUNT_QUICK : COUNT;
    if (o->rounds == 0)
        o->rounds = o->common.quick ? ROUNDS_QUICK : ROUNDS;
}

/*
 * choose -- the rows of a table that a list names, or all of them.
 *
 * in   names  of the table, n of them
 * out  rows   places in the table, of those that were chosen
 * ret  how many; 0 after a message
 */
static unsigned
choose(const char *option, const struct bench_words *words, const char *const *names,
       unsigned n, unsigned *rows)
{
    for (unsigned i = 0; i < n && words->n == 0; i++)
        rows[i] = i;
    for (unsigned w = 0; w < words->n; w++) {
        unsigned i = 0;

        while (i < n && strcmp(names[i], words->v[w]) != 0)
            i++;
        if (i == n) {
            (void)bench_fail("--%s: there is no \"%s\"", option, words->v[w]);
            return 0;
        }
        rows[w] = i;
    }
    return words->n == 0 ? n : words->n;
}

/* CHOOSE -- from a table that ends with a NULL name, into a list of pointers to rows; *np how many, 0 after a
   message. */
#define CHOOSE(option, words, table, list, np)         \
 do {                                                  \
  const char *names[BENCH_HOT_LIST_MAX];               \
  unsigned rows[BENCH_HOT_LIST_MAX], n_table = 0;      \
                                                       \
  for (; (table)[n_table].name != NULL; n_table++)     \
   names[n_table] = (table)[n_table].name;             \
  *(np) = choose(option, words, names, n_table, rows); \
  for (unsigned i = 0; i < *(np); i++)                 \
   (list)[i] = &(table)[rows[i]];                      \
 } while (0)

/* set_lists -- ret 0, or 1 after a message. */
static int
set_lists(struct bench_backoff_options *o, const struct bench_words *trees,
          const struct bench_words *policies, const struct bench_words *backoffs)
{
    CHOOSE("trees", trees, bench_backoff_trees, o->trees, &o->n_trees);
    CHOOSE("policies", policies, bench_hot_policies, o->policies, &o->n_policies);
    CHOOSE("backoffs", backoffs, bench_backoffs, o->backoffs, &o->n_backoffs);
    return o->n_trees == 0 || o->n_policies == 0 || o->n_backoffs == 0;
}

int
bench_backoff_main(int argc, char **argv)
{
    static struct bench_backoff_options o = {.loaded = LOADED,
                                             .fixed_us = 100,
                                             .seed = 1};
    static struct run run = {.options = &o}; /* too large for the stack */
    struct bench_words trees = {0}, policies = {0}, backoffs = {0};
    const struct bench_option table[] = {
        {.name = "trees", .words = &trees},
        {.name = "policies", .words = &policies},
        {.name = "backoffs", .words = &backoffs},
        {.name = "procs", .numbers = &o.procs, .low = 1, .high = BENCH_TEAM_MAX},
        {.name = "loaded", .number = &o.loaded, .high = COUNT_MAX},
        {.name = "count", .number = &o.count, .low = BENCH_TEAM_MAX, .high = COUNT_MAX},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "fixed-us", .number = &o.fixed_us, .low = 1, .high = FIXED_US_MAX},
        {.name = "seed", .number = &o.seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc = 0;

    if (!bench_options_parse(argc, argv, table, bench_backoff_usage, &o.common, &rc))
        return rc;
    if (set_lists(&o, &trees, &policies, &backoffs) != 0)
        return 2;
    set_defaults(&o);
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    bench_backoff_print_head(&o);
    for (run.tree = 0; run.tree < o.n_trees && rc == 0; run.tree++)
        for (unsigned i = 0; i < o.procs.n && rc == 0; i++) {
            run.n_procs = (unsigned)o.procs.v[i];
            rc = run_part(&run);
        }
    return rc;
}
