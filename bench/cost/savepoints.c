/* SPDX-License-Identifier: MIT */
/*
 * savepoints.c -- the experiment `savepoints`: what a savepoint costs, and does that depend on how much the
 * transaction has written before?
 *
 * A transaction stores to n pages; takes a savepoint (the first one, which has to protect the n pages);
 * stores to some of them again; takes a second savepoint, and does the same behind it; rolls back to it; and
 * releases both.  Each step is timed.  In each round each n has its turn, and each of two ways to notice stores: by
 * traps, and announced (XAC_CHECKING_TRUSTED), each in an environment of its own.  Beside them is a
 * transaction of the same stores without a savepoint.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>
#include <xac_env.h>

#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define PAGES_MAX    (UINT64_C(1) << 20)
#define ROUNDS       UINT64_C(200)
#define ROUNDS_QUICK UINT64_C(5)
#define ROUNDS_MAX   UINT64_C(1000000)
#define AGAIN        10 /* pages stored to again behind a savepoint               */

enum way {
    TRAPS,
    ANNOUNCED,
    N_WAYS
};

/* What is timed; stores and roll-backs per page. */
enum step {
    WITHOUT, /* the whole transaction, without savepoints                           */
    WITH,    /* with them                                                           */
    FIRST,
    STORE_1,
    SECOND,
    STORE_2,
    ROLL_BACK,
    RELEASE,
    N_STEPS
};

static const char *const way_names[N_WAYS] = {"traps", "announced"};
static const char *const step_names[N_STEPS] = {
    "transaction without", "transaction with", "first savepoint", "store after it",
    "second savepoint",    "store after it",   "roll back",       "release",
};
static const char *const json_names[N_STEPS] = {
    "without",
    "with",
    "first",
    "store_after_first",
    "second",
    "store_after_second",
    "roll_back_per_page",
    "release",
};

struct options {
    struct bench_common common;
    struct bench_numbers before;
    uint64_t rounds;
};

struct place {
    struct xac_env *env;
    uint8_t *base;
    enum way way;
    size_t page_bytes;
    uint64_t value;
};

static void
usage(void)
{
    puts(
        "What a savepoint costs in a transaction that has written n pages: the first one, and a\n"
        "second one behind ten stores; a store behind a savepoint, to a page that was written\n"
        "before; rolling ten pages back; releasing both.  Stores trap, or are announced.\n"
        "\n"
        "  --before LIST       pages written before the first savepoint; default 10,10000\n"
        "  --rounds N          default 200\n"
        "  --dir DIR           for the files; default the current directory\n"
        "  --json              one JSON object per way and number of pages\n"
        "  --quick             5 rounds\n"
        "  --quiet             no progress bar\n"
        "  --help");
}

static int
fail(const char *what, int rc)
{
    return bench_fail("%s: %s", what, bench_xac_explain(rc));
}

static int
open_place(struct place *p, const char *dir, enum way way, uint64_t n_pages)
{
    struct xac_options options;
    char env[BENCH_DIR_BYTES + 48], file[BENCH_DIR_BYTES + 64];

    xac_options_init(&options, sizeof options);
    options.flags = XAC_NONDURABLE;
    options.value[XAC_OPT_CHECKING] =
        way == ANNOUNCED ? XAC_CHECKING_TRUSTED : XAC_CHECKING_FAST;
    snprintf(env, sizeof env, "%s/env-%s-%llu", dir, way_names[way],
             (unsigned long long)n_pages);
    snprintf(file, sizeof file, "%s/pages", env);
    *p = (struct place){.way = way, .page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    p->env = xac_open(env, &options);
    if (p->env == NULL)
        return fail("xac_open", errno);
    p->base = xac_mmap_in(p->env, file, n_pages * p->page_bytes);
    return (void *)p->base == MAP_FAILED ? fail("xMmap", errno) : 0;
}

/* store -- to the first n pages; ret 0 or a code. */
static int
store(struct place *p, uint64_t n)
{
    int rc = 0;

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        uint64_t *at = (uint64_t *)(void *)(p->base + i * p->page_bytes);

        if (p->way == ANNOUNCED)
            rc = xac_set_page_access_in(p->env, at, XAC_READ_WRITE);
        if (rc == 0)
            *(volatile uint64_t *)at = ++p->value;
    }
    return rc;
}

/* end -- ret 0, or 1 after a message. */
static int
end(struct place *p, int rc)
{
    int rc2 = xac_end_in(p->env);

    if (rc != 0)
        return fail("a step", rc);
    return rc2 == XAC_COMMITTED ? 0 : fail("xend", rc2);
}

/* go_with -- the transaction with savepoints; out at  the clock before and after each step from FIRST on. */
static int
go_with(struct place *p, uint64_t n, uint64_t at[N_STEPS + 1])
{
    uint64_t first, second = 0, again = n < AGAIN ? n : AGAIN;
    int rc = store(p, n);

    at[FIRST] = bench_ticks();
    first = xac_savepoint_in(p->env);
    at[STORE_1] = bench_ticks();
    if (rc == 0)
        rc = first == 0 ? ENOMEM : store(p, again);
    at[SECOND] = bench_ticks();
    if (rc == 0)
        second = xac_savepoint_in(p->env);
    at[STORE_2] = bench_ticks();
    if (rc == 0)
        rc = second == 0 ? ENOMEM : store(p, again);
    at[ROLL_BACK] = bench_ticks();
    if (rc == 0)
        rc = xac_rollback_to_in(p->env, second);
    at[RELEASE] = bench_ticks();
    if (rc == 0)
        rc = xac_release_in(p->env, first);
    at[N_STEPS] = bench_ticks();
    return rc;
}

/* run_round -- one of each transaction; ret 0, or 1 after a message. */
static int
run_round(struct place *p, uint64_t n, struct bench_sample sample[N_STEPS])
{
    uint64_t at[N_STEPS + 1], t0, t1, t2, t3, again = n < AGAIN ? n : AGAIN;
    int rc;

    t0 = bench_ticks();
    rc = xac_begin_in(p->env);
    if (rc == 0)
        rc = store(p, n);
    if (rc == 0)
        rc = store(p, again);
    if (rc == 0)
        rc = store(p, again);
    if (end(p, rc) != 0)
        return 1;
    t1 = bench_ticks();
    bench_sample_add(&sample[WITHOUT], (double)(t1 - t0));
    t2 = bench_ticks();
    rc = xac_begin_in(p->env);
    if (rc == 0)
        rc = go_with(p, n, at);
    if (end(p, rc) != 0)
        return 1;
    t3 = bench_ticks();
    bench_sample_add(&sample[WITH], (double)(t3 - t2));
    for (int s = FIRST; s < N_STEPS; s++) {
        bool is_paged = s == STORE_1 || s == STORE_2 || s == ROLL_BACK;

        bench_sample_add(&sample[s],
                         (double)(at[s + 1] - at[s]) / (is_paged ? (double)again : 1));
    }
    return 0;
}

/* report -- all steps behind so many pages. */
static void
report(const struct options *o, enum way way, uint64_t n,
       struct bench_sample sample[N_STEPS])
{
    if (o->common.json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "savepoints");
        bench_json_str(stdout, "way", way_names[way]);
        bench_json_u64(stdout, "pages", n);
    }
    for (int s = 0; s < N_STEPS; s++) {
        struct bench_summary sum = bench_summarize(&sample[s]);
        char label[64];

        if (o->common.json) {
            snprintf(label, sizeof label, "us_%s", json_names[s]);
            bench_json_summary(stdout, label, &sum, bench_ticks_per_us());
            continue;
        }
        snprintf(label, sizeof label, "%6llu %s, %s", (unsigned long long)n,
                 way_names[way], step_names[s]);
        bench_print_row(label, &sum, bench_ticks_per_us());
    }
    if (o->common.json) {
        bench_json_str(stdout, "command", o->common.command);
        bench_json_end(stdout);
    }
}

/* measure -- all numbers of pages and ways, woven; ret 0, or 1 after a message. */
static int
measure(const struct options *o, struct place place[][N_WAYS])
{
    static struct bench_sample sample[BENCH_NUMBERS_MAX][N_WAYS][N_STEPS];
    int rc = 0;

    for (unsigned i = 0; i < o->before.n; i++)
        for (int w = 0; w < N_WAYS; w++)
            for (int s = 0; s < N_STEPS && rc == 0; s++)
                rc = bench_sample_init(&sample[i][w][s], o->rounds);
    for (uint64_t r = 0; r < o->rounds && rc == 0; r++) {
        bench_progress("savepoints", r, o->rounds);
        for (unsigned i = 0; i < o->before.n && rc == 0; i++)
            for (int w = 0; w < N_WAYS && rc == 0; w++)
                rc = bench_interrupted()
                         ? bench_fail("interrupted")
                         : run_round(&place[i][w], o->before.v[i], sample[i][w]);
    }
    bench_progress_clear();
    for (unsigned i = 0; i < o->before.n; i++) {
        for (int w = 0; w < N_WAYS; w++) {
            if (rc == 0)
                report(o, (enum way)w, o->before.v[i], sample[i][w]);
            for (int s = 0; s < N_STEPS; s++)
                bench_sample_free(&sample[i][w][s]);
        }
    }
    return rc;
}

/* run -- in a directory; ret exit status. */
static int
run(const struct options *o, const char *dir)
{
    static struct place place[BENCH_NUMBERS_MAX][N_WAYS];
    int rc = 0;

    if (!o->common.json) {
        bench_print_command(&o->common,
                            "nondurable transactions, alone; microseconds, of stores and "
                            "roll-backs per page");
        bench_print_columns("pages written before, step", "us");
    }
    for (unsigned i = 0; i < o->before.n; i++)
        for (int w = 0; w < N_WAYS && rc == 0; w++)
            rc = open_place(&place[i][w], dir, (enum way)w, o->before.v[i]);
    if (rc == 0)
        rc = measure(o, place);
    for (unsigned i = 0; i < o->before.n; i++) {
        for (int w = 0; w < N_WAYS; w++) {
            int rc2 = place[i][w].env != NULL ? xac_close(place[i][w].env) : 0;

            if (rc2 != 0)
                rc = fail("xac_close", rc2);
        }
    }
    return rc;
}

int
bench_savepoints_main(int argc, char **argv)
{
    static const struct bench_numbers both_ends = {2, {10, 10000}};
    struct options o = {.rounds = 0};
    const struct bench_option options[] = {
        {.name = "before", .numbers = &o.before, .low = 1, .high = PAGES_MAX},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    char dir[BENCH_DIR_BYTES];
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &o.common, &rc))
        return rc;
    if (o.before.n == 0)
        o.before = both_ends;
    if (o.rounds == 0)
        o.rounds = o.common.quick ? ROUNDS_QUICK : ROUNDS;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (bench_dir_make(&o.common, dir) != 0)
        return 1;
    rc = run(&o, dir);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}
