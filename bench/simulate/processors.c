/* SPDX-License-Identifier: MIT */
/*
 * processors.c -- the experiment `processors`: command line and output; see processors.h.
 */
#include <config.h>

#include "bench/simulate/processors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/frames/frames_load.h"
#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define N_REFS            65536u
#define LINES_MAX         20.0
#define NS_MAX            1000000
#define CALIBRATION_PAGES 4096u /* nobody meets anybody, nearly                         */

static const char *const frames_names[BENCH_SIM_N_FRAMES] = {
    [BENCH_SIM_NB] = "nb-gclock",          [BENCH_SIM_LRU] = "lru",
    [BENCH_SIM_LRU_64] = "lru-64",         [BENCH_SIM_BATCH] = "lru-batch",
    [BENCH_SIM_BATCH_64] = "lru-batch-64",
};

static struct options {
    struct bench_common common;
    struct bench_numbers procs, pages, compute;
    const char *part;
    uint64_t line_ns, nb_ns, lru_ns, batch_ns, commit_ns, transaction_ns, page_ns;
    uint64_t ms; /* of simulated time                                                   */
    double seconds; /* of each measurement                                              */
} o;

static struct bench_sim_costs costs;
static uint32_t refs[N_REFS];

static void
usage(void)
{
    puts(
        "What would be on a machine with more processors than there are: a discrete-event\n"
        "simulation, with costs that are measured here first.  It is no measurement of such\n"
        "a machine.  For 2 processors it stands beside what this machine does (measured).\n"
        "\n"
        "  frames    hits on page frames, all pages in frames (the claims of Nb-GCLOCK and\n"
        "            BP-Wrapper for 16 to 64 processors): Nb-GCLOCK; LRU with a lock for each\n"
        "            hit, in 64 partitions, in batches (BP-Wrapper), and with both; fixes per\n"
        "            microsecond, speed-up over 1 processor, share of time that is waited for locks\n"
        "  policies  transactions as those of xbench contention, one process a processor\n"
        "\n"
        "  --part NAME        frames or policies; default both\n"
        "  --procs LIST       default 1,2,4,8,16,32,64\n"
        "  --compute-ns LIST  frames: work between two fixes; default 0,1000\n"
        "  --pages LIST       policies: hot pages, at most 4096; default 1,8,64,4096\n"
        "  --ms N             of simulated time; default 5 (frames) and 100 (policies)\n"
        "  --commit-ns N      that the lock of a commit is held; default 120\n"
        "  --line-ns N, --nb-ns N, --lru-ns N, --batch-ns N, --transaction-ns N, --page-ns N\n"
        "                     costs that are not to be measured: a line of memory from another\n"
        "                     processor, fix and unfix alone, begin and end of a transaction, each of\n"
        "                     its pages.  With the first four, or the first and the last two,\n"
        "                     nothing is measured\n"
        "  --dir DIR          for measurements; default the current directory\n"
        "  --quick            1, 2, 16 and 64 processors, 1 and 20 ms\n"
        "  --json, --quiet, --help");
}

/* ---- Frames ------------------------------------------------------------------------------------ */

/*
 * fit_lines -- how many lines of memory a critical section takes from its last holder: such a number that
 * LRU with two processors does what it was measured to do.
 */
static double
fit_lines(double measured, double ms)
{
    double best = 0, least = INFINITY;

    for (double lines = 0; lines <= LINES_MAX; lines += 0.5) {
        double off;

        costs.lines_under_lock = lines;
        off = fabs(
            bench_sim_frames_run(&costs, BENCH_SIM_LRU, 2, 0, ms, refs, N_REFS).per_us
            - measured);
        if (off < least) {
            least = off;
            best = lines;
        }
    }
    return best;
}

/* print_costs -- what the simulation goes by. */
static void
print_costs(const char *part)
{
    if (!o.common.json) {
        printf("costs, ns: line of memory %.1f, fix and unfix nb-gclock %.1f, lru %.1f, "
               "lru-batch %.1f; lines under a lock %.1f; commit %.0f\n\n",
               costs.line, costs.nb, costs.lru, costs.batch, costs.lines_under_lock,
               costs.commit);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "processors");
    bench_json_str(stdout, "part", part);
    bench_json_str(stdout, "row", "costs");
    bench_json_num(stdout, "line_ns", costs.line);
    bench_json_num(stdout, "nb_gclock_ns", costs.nb);
    bench_json_num(stdout, "lru_ns", costs.lru);
    bench_json_num(stdout, "lru_batch_ns", costs.batch);
    bench_json_num(stdout, "lines_under_lock", costs.lines_under_lock);
    bench_json_num(stdout, "commit_ns", costs.commit);
    bench_json_end(stdout);
}

/* print_frames -- one line. */
static void
print_frames(enum bench_sim_frames kind, unsigned n, double compute_ns,
             const struct bench_sim_fixes *f, double alone, double measured)
{
    if (!o.common.json) {
        printf("%-14s %6.0f %6u %10.2f %9.2f %8.1f ", frames_names[kind], compute_ns, n,
               f->per_us, f->per_us / alone, f->waited * 100);
        if (measured > 0)
            printf("%9.2f\n", measured);
        else
            puts("        -");
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "processors");
    bench_json_str(stdout, "part", "frames");
    bench_json_str(stdout, "row", "simulated");
    bench_json_str(stdout, "policy", frames_names[kind]);
    bench_json_num(stdout, "compute_ns", compute_ns);
    bench_json_u64(stdout, "processors", n);
    bench_json_num(stdout, "fixes_per_us", f->per_us);
    bench_json_num(stdout, "speedup", f->per_us / alone);
    bench_json_num(stdout, "share_waited", f->waited);
    bench_json_num(stdout, "measured_fixes_per_us", measured > 0 ? measured : -1);
    bench_json_bool(stdout, "simulated", true);
    bench_json_str(stdout, "command", o.common.command);
    bench_json_end(stdout);
}

/* frames_costs -- measure what was not given; ret 0, or 1 after a message. */
static int
frames_costs(double ms, struct bench_sim_measured *two)
{
    const struct load draw = {.config = {.n_pages = 32768},
                              .exponent = 0.14,
                              .scan_percent = 20};

    if (bench_load_draw(&draw, 1, refs, N_REFS) != 0)
        return 1;
    if (costs.nb > 0 && costs.lru > 0 && costs.batch > 0)
        return 0; /* lines under a lock: none */
    if (bench_sim_frames_costs(&costs, o.seconds, two) != 0)
        return 1;
    costs.lines_under_lock = fit_lines(two->per_us[BENCH_SIM_LRU], ms);
    return 0;
}

/* run_frames -- ret 0, or 1 after a message. */
static int
run_frames(void)
{
    double ms = o.ms != 0 ? (double)o.ms : o.common.quick ? 1 : 5;
    struct bench_sim_measured two = {{0}};

    if (frames_costs(ms, &two) != 0)
        return 1;
    print_costs("frames");
    if (!o.common.json)
        printf("%-14s %6s %6s %10s %9s %8s %9s\n", "frames", "work", "procs", "fixes/us",
               "speed-up", "% waited", "measured");
    for (unsigned k = 0; k < o.compute.n; k++)
        for (int kind = 0; kind < BENCH_SIM_N_FRAMES; kind++) {
            double compute = (double)o.compute.v[k];
            double alone = bench_sim_frames_run(&costs, (enum bench_sim_frames)kind, 1,
                                                compute, ms, refs, N_REFS)
                               .per_us;

            for (unsigned i = 0; i < o.procs.n; i++) {
                unsigned n = (unsigned)o.procs.v[i];
                struct bench_sim_fixes f =
                    bench_sim_frames_run(&costs, (enum bench_sim_frames)kind, n, compute,
                                         ms, refs, N_REFS);

                print_frames((enum bench_sim_frames)kind, n, compute, &f, alone,
                             n == 2 && compute <= 0 ? two.per_us[kind] : 0);
                if (bench_interrupted())
                    return bench_fail("interrupted");
            }
        }
    return 0;
}

/* ---- Policies ----------------------------------------------------------------------------------- */

/* print_policy -- one line. */
static void
print_policy(const struct bench_hot_policy *policy, const struct bench_hot_length *length,
             uint64_t pages, unsigned n, const struct bench_sim_commits *c,
             const struct bench_sim_txn_costs *each, double measured)
{
    if (!o.common.json) {
        printf("%-14s %-6s %6llu %6u %10.1f %7.1f %8llu ", policy->name, length->name,
               (unsigned long long)pages, n, c->per_second / 1e3, c->abort_rate * 100,
               (unsigned long long)c->max_retries);
        if (measured > 0)
            printf("%9.1f\n", measured / 1e3);
        else
            puts("        -");
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "processors");
    bench_json_str(stdout, "part", "policies");
    bench_json_str(stdout, "row", "simulated");
    bench_json_str(stdout, "policy", policy->name);
    bench_json_str(stdout, "length", length->name);
    bench_json_u64(stdout, "pages", pages);
    bench_json_u64(stdout, "processors", n);
    bench_json_num(stdout, "commits_per_second", c->per_second);
    bench_json_num(stdout, "abort_rate", c->abort_rate);
    bench_json_u64(stdout, "max_retries", c->max_retries);
    bench_json_num(stdout, "own_ns", each->own);
    bench_json_num(stdout, "page_ns", each->page);
    bench_json_num(stdout, "measured_commits_per_second", measured > 0 ? measured : -1);
    bench_json_bool(stdout, "simulated", true);
    bench_json_str(stdout, "command", o.common.command);
    bench_json_end(stdout);
}

/*
 * txn_costs -- of a policy, by two processes on many pages, which have others' versions to look at as
 * all processes of a larger machine would: from the difference of short and long transactions.
 */
static int
txn_costs(const struct bench_hot_policy *policy, const char *dir,
          struct bench_sim_txn_costs *out)
{
    const struct bench_hot_length *few = &bench_hot_lengths[0], *many = few + 1;
    double n_few = few->reads + few->writes, n_many = many->reads + many->writes;
    double per_second[2], ns[2];

    *out = (struct bench_sim_txn_costs){(double)o.transaction_ns, (double)o.page_ns};
    if (o.transaction_ns != UINT64_MAX)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        if (bench_sim_transactions(policy, &few[i], 2, CALIBRATION_PAGES, dir, o.seconds,
                                   &per_second[i])
            != 0)
            return 1;
        ns[i] = (policy->kind == XAC_POLICY_SERIAL ? 1 : 2) * 1e9 / per_second[i];
    }
    out->page = fmax((ns[1] - ns[0]) / (n_many - n_few), 0);
    out->own = fmax(ns[0] - n_few * out->page, 0);
    return 0;
}

/* run_policy -- a policy and a length, all pages and processors; ret 0, or 1 after a message. */
static int
run_policy(const struct bench_hot_policy *policy, const struct bench_hot_length *length,
           const struct bench_sim_txn_costs *each, const char *dir)
{
    double ms = o.ms != 0 ? (double)o.ms : o.common.quick ? 20 : 100;

    for (unsigned k = 0; k < o.pages.n; k++)
        for (unsigned i = 0; i < o.procs.n; i++) {
            unsigned n = (unsigned)o.procs.v[i];
            struct bench_sim_commits c =
                bench_sim_policy_run(&costs, policy->kind, length, o.pages.v[k], n, each,
                                     ms);
            double measured = 0;

            if (n == 2 && o.transaction_ns == UINT64_MAX && policy->kind != BENCH_SIM_VO
                && bench_sim_transactions(policy, length, n, o.pages.v[k], dir, o.seconds,
                                          &measured)
                       != 0)
                return 1;
            print_policy(policy, length, o.pages.v[k], n, &c, each, measured);
            if (bench_interrupted())
                return bench_fail("interrupted");
        }
    return 0;
}

/* What is simulated only; it takes as long as `optimistic`. */
static const struct bench_hot_policy vo = {"vo", BENCH_SIM_VO};

/* all_lengths -- of a policy that has been measured, and of VO. */
static int
all_lengths(const struct bench_hot_policy *policy, const char *dir)
{
    struct bench_sim_txn_costs each;
    int rc = txn_costs(policy, dir, &each);

    for (const struct bench_hot_length *l = bench_hot_lengths; l->name != NULL && rc == 0;
         l++) {
        rc = run_policy(policy, l, &each, dir);
        if (rc == 0 && policy->kind == XAC_POLICY_OPTIMISTIC)
            rc = run_policy(&vo, l, &each, dir);
    }
    return rc;
}

/* run_policies -- ret 0, or 1 after a message. */
static int
run_policies(void)
{
    char dir[BENCH_DIR_BYTES];
    int rc = bench_dir_make(&o.common, dir);

    if (rc != 0)
        return rc;
    print_costs("policies");
    if (!o.common.json)
        printf("%-14s %-6s %6s %6s %10s %7s %8s %9s\n", "policy", "length", "pages",
               "procs", "k/s", "% abort", "retries", "measured");
    for (const struct bench_hot_policy *p = bench_hot_policies;
         p->name != NULL && rc == 0; p++)
        rc = all_lengths(p, dir);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(void)
{
    static const struct bench_numbers procs = {7, {1, 2, 4, 8, 16, 32, 64}},
                                      few = {4, {1, 2, 16, 64}}, compute = {2, {0, 1000}},
                                      pages = {4, {1, 8, 64, 4096}};

    if (o.procs.n == 0)
        o.procs = o.common.quick ? few : procs;
    if (o.compute.n == 0)
        o.compute = compute;
    if (o.pages.n == 0)
        o.pages = pages;
    o.seconds = o.common.quick ? 0.05 : 0.5;
    costs = (struct bench_sim_costs){.line = (double)o.line_ns,
                                     .nb = (double)o.nb_ns,
                                     .lru = (double)o.lru_ns,
                                     .batch = (double)o.batch_ns,
                                     .commit = (double)o.commit_ns};
}

/* run_all -- ret exit status. */
static int
run_all(void)
{
    int rc = 0;

    if (!o.common.json)
        bench_print_command(&o.common, "simulated, with costs measured here");
    if (o.line_ns == UINT64_MAX)
        rc = bench_sim_line_ns(&costs.line);
    if (rc == 0 && (o.part == NULL || strcmp(o.part, "frames") == 0))
        rc = run_frames();
    if (rc == 0 && o.part == NULL && !o.common.json)
        putchar('\n');
    if (rc == 0 && (o.part == NULL || strcmp(o.part, "policies") == 0))
        rc = run_policies();
    return rc;
}

int
bench_processors_main(int argc, char **argv)
{
    const struct bench_option table[] = {
        {.name = "part", .text = &o.part},
        {.name = "procs", .numbers = &o.procs, .low = 1, .high = BENCH_SIM_PROCS_MAX},
        {.name = "compute-ns", .numbers = &o.compute, .high = NS_MAX},
        {.name = "pages", .numbers = &o.pages, .low = 1, .high = CALIBRATION_PAGES},
        {.name = "ms", .number = &o.ms, .low = 1, .high = 10000},
        {.name = "commit-ns", .number = &o.commit_ns, .high = NS_MAX},
        {.name = "line-ns", .number = &o.line_ns, .high = NS_MAX},
        {.name = "nb-ns", .number = &o.nb_ns, .low = 1, .high = NS_MAX},
        {.name = "lru-ns", .number = &o.lru_ns, .low = 1, .high = NS_MAX},
        {.name = "batch-ns", .number = &o.batch_ns, .low = 1, .high = NS_MAX},
        {.name = "transaction-ns", .number = &o.transaction_ns, .high = NS_MAX},
        {.name = "page-ns", .number = &o.page_ns, .high = NS_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc = 0;

    o.commit_ns = 120;
    o.line_ns = o.transaction_ns = UINT64_MAX; /* not given */
    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (o.part != NULL && strcmp(o.part, "frames") != 0
        && strcmp(o.part, "policies") != 0)
        return 2 * bench_fail("--part %s: frames or policies is wanted", o.part);
    set_defaults();
    bench_catch_signals();
    return run_all();
}
