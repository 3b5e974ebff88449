/* SPDX-License-Identifier: MIT */
/*
 * many.c -- the experiment `touch-many`: a nondurable transaction that touches very many
 * scattered pages, each random one loaded or, every second, incremented, under each engine.
 *
 * The engine belongs to the process, so each has one of its own.  All are alone in an
 * environment of their own, in which a query has touched all pages before; round by round each
 * runs the same transaction, another one first each time.  A time is that of the process's processor, from xbegin() to the end of xend().
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/cost/engine_thesis.h"
#include "bench/kit/micro.h"
#include "bench/kit/team.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define PAGES         UINT64_C(4096)
#define OF            UINT64_C(32768)
#define ROUNDS        UINT64_C(51)
#define ROUNDS_QUICK  UINT64_C(5)
#define BASELINE      1u /* place of sigsegv in ways */
#define FASTER_WANTED 3.0

/* How the segment is used. */
static const struct way {
    const char *name, *engine;
    uint64_t checking;
    bool hints;
} ways[] = {
    {"thesis", "thesis", XAC_CHECKING_STRICT, false},
    {"sigsegv", "sigsegv", XAC_CHECKING_STRICT, false},
    {"sigsegv, stays mapped", "sigsegv", XAC_CHECKING_FAST, false},
    {"uffd", "uffd", XAC_CHECKING_STRICT, false},
    {"uffd, hints", "uffd", XAC_CHECKING_STRICT, true},
    {"uffd, stays mapped", "uffd", XAC_CHECKING_FAST, false},
    {"uffd, stays mapped, hints", "uffd", XAC_CHECKING_FAST, true},
    {"uffd, stays mapped, declared", "uffd", XAC_CHECKING_TRUSTED, true},
    {"scan, stays mapped", "scan", XAC_CHECKING_FAST, false},
    {"default, stays mapped", "", XAC_CHECKING_FAST, false},
};
#define N_WAYS ((unsigned)(sizeof ways / sizeof ways[0]))

enum {
    ORDER_OPEN,
    ORDER_RUN,
    ORDER_CLOSE
};

static const char *const order_names[] = {"open", "transaction", "close"};

/* What is counted of a transaction. */
enum {
    COUNT_NS,
    COUNT_TRAPS
};

struct many {
    struct bench_common common;
    uint64_t pages, of, rounds;
    char dir[BENCH_DIR_BYTES];
    size_t page_bytes;
    uint8_t *base; /* in a member                                                     */
};

static void
usage(void)
{
    puts("A nondurable transaction that touches very many random pages, half of them\n"
         "stored to, under each engine, in processes that are alone: microseconds of\n"
         "processor time per page.\n"
         "\n"
         "  --pages N   that a transaction touches; default 4096\n"
         "  --of N      pages of the segment; default 32768\n"
         "  --rounds N  default 51\n"
         "  --dir DIR   for the files; default the current directory\n"
         "  --json      one JSON object per engine\n"
         "  --quick     5 rounds\n"
         "  --quiet     no progress bar\n"
         "  --help");
}

/* ---- In a member ------------------------------------------------------------------------- */

/* touch_all -- in one query; ret 0 or an error. */
static int
touch_all(const struct many *m)
{
    int rc = xac_begin_query();

    if (rc != 0)
        return rc;
    for (uint64_t i = 0; i < m->of; i++)
        (void)*(volatile uint8_t *)(m->base + i * m->page_bytes);
    return xac_end_query();
}

static int
open_segment(struct many *m, const struct way *way, unsigned number)
{
    char name[BENCH_DIR_BYTES + 32];
    int rc = bench_engine_choose(way->engine);

    snprintf(name, sizeof name, "%s/env%u", m->dir, number);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_CHECKING, way->checking);
    if (rc == 0)
        rc = xac_init(name, XAC_NONDURABLE);
    if (rc != 0)
        return rc;
    snprintf(name, sizeof name, "%s/pages%u", m->dir, number);
    m->base = xac_mmap(name, m->of * m->page_bytes);
    return (void *)m->base == MAP_FAILED ? errno : touch_all(m);
}

/* touch -- the pages of one transaction; ret 0 or an error. */
static int
touch(const struct many *m, const struct way *way, uint64_t seed)
{
    int rc = 0;

    for (uint64_t i = 0; i < m->pages && rc == 0; i++) {
        uint64_t page = bench_key(seed, i) % m->of;
        volatile unsigned *first =
            (volatile unsigned *)(void *)(m->base + page * m->page_bytes);

        if (way->hints)
            rc = xac_set_page_access((void *)(uintptr_t)first,
                                     i % 2 == 0 ? XAC_READ : XAC_READ_WRITE);
        if (rc == 0 && i % 2 == 0)
            (void)*first;
        else if (rc == 0)
            ++*first;
    }
    return rc;
}

/* transact -- ret 0 or an error. */
static int
transact(const struct many *m, const struct way *way, uint64_t seed,
         struct bench_answer *answer)
{
    struct xac_stats before, after;
    uint64_t ns;
    int rc = xac_get_stats(&before, sizeof before), rc2;

    ns = bench_cpu_ns();
    if (rc == 0)
        rc = xac_begin();
    if (rc != 0)
        return rc;
    rc = touch(m, way, seed);
    rc2 = xac_end();
    answer->count[COUNT_NS] = bench_cpu_ns() - ns;
    rc = rc != 0 ? rc : rc2;
    if (rc == 0)
        rc = xac_get_stats(&after, sizeof after);
    if (rc == 0)
        answer->count[COUNT_TRAPS] =
            after.traps_read + after.traps_write - before.traps_read - before.traps_write;
    return rc;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct many *m = arg;

    if (order->kind == ORDER_OPEN)
        answer->code = open_segment(m, &ways[number], number);
    else if (order->kind == ORDER_RUN)
        answer->code = transact(m, &ways[number], order->arg, answer);
    else
        answer->code = xac_shutdown();
    return answer->code;
}

/* ---- The experiment ---------------------------------------------------------------------- */

/* run_rounds -- out samples of us per page, and traps per page of the last round. */
static int
run_rounds(struct many *m, struct bench_team *team, struct bench_sample *us,
           double *traps)
{
    struct bench_order order = {.kind = ORDER_OPEN};
    struct bench_answer answer;
    int rc = 0;

    for (unsigned w = 0; w < N_WAYS && rc == 0; w++)
        rc = bench_team_ask(team, w, &order, &answer);
    for (uint64_t round = 0; round <= m->rounds && rc == 0; round++) {
        bench_progress("touch-many", round, m->rounds);
        order = (struct bench_order){.kind = ORDER_RUN, .arg = round};
        for (unsigned i = 0; i < N_WAYS && rc == 0; i++) {
            unsigned w = (unsigned)((round + i) % N_WAYS);

            if (bench_interrupted())
                return bench_fail("interrupted");
            rc = bench_team_ask(team, w, &order, &answer);
            if (rc != 0 || round == 0) /* the first one finds nothing in its place */
                continue;
            bench_sample_add(&us[w],
                             (double)answer.count[COUNT_NS] / 1e3 / (double)m->pages);
            traps[w] = (double)answer.count[COUNT_TRAPS] / (double)m->pages;
        }
    }
    order = (struct bench_order){.kind = ORDER_CLOSE};
    for (unsigned w = 0; w < N_WAYS && rc == 0; w++)
        rc = bench_team_ask(team, w, &order, &answer);
    bench_progress_clear();
    return rc;
}

/* report -- and how much faster than the baseline. */
static void
report(const struct many *m, struct bench_sample *us, const double *traps)
{
    double baseline = bench_summarize(&us[BASELINE]).median;

    if (!m->common.json) {
        bench_print_command(&m->common, "random pages, half of them stored to; us of "
                                        "processor time per page");
        printf("%-30s %8s %8s %8s %8s %12s\n", "engine", "median", "min", "max", "traps",
               "sigsegv/this");
    }
    for (unsigned w = 0; w < N_WAYS; w++) {
        struct bench_summary s = bench_summarize(&us[w]);
        double faster = baseline / s.median;

        if (!m->common.json) {
            printf("%-30s %8.2f %8.2f %8.2f %8.2f %12.2f %s\n", ways[w].name, s.median,
                   s.min, s.max, traps[w], faster,
                   w <= BASELINE             ? ""
                   : faster >= FASTER_WANTED ? "wanted 3: met"
                                             : "wanted 3: missed");
            continue;
        }
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "touch-many");
        bench_json_str(stdout, "engine", ways[w].name);
        bench_json_u64(stdout, "pages", m->pages);
        bench_json_u64(stdout, "of", m->of);
        bench_json_u64(stdout, "n", s.n);
        bench_json_summary(stdout, "us_per_page", &s, 1);
        bench_json_num(stdout, "traps_per_page", traps[w]);
        bench_json_num(stdout, "sigsegv_over_this", faster);
        bench_json_str(stdout, "command", m->common.command);
        bench_json_end(stdout);
    }
}

/* run -- in a directory; ret exit status. */
static int
run(struct many *m)
{
    struct bench_team team = {.label = "touch-many",
                              .order_names = order_names,
                              .arg = m,
                              .obey = obey,
                              .explain = bench_xac_explain};
    struct bench_sample us[N_WAYS] = {{0}};
    double traps[N_WAYS] = {0};
    int rc = 0;

    for (unsigned w = 0; w < N_WAYS && rc == 0; w++)
        rc = bench_sample_init(&us[w], m->rounds);
    if (rc == 0) {
        rc = bench_team_start(&team, N_WAYS);
        if (rc == 0)
            rc = run_rounds(m, &team, us, traps);
        bench_team_stop(&team);
    }
    if (rc == 0)
        report(m, us, traps);
    for (unsigned w = 0; w < N_WAYS; w++)
        bench_sample_free(&us[w]);
    return rc;
}

int
bench_many_main(int argc, char **argv)
{
    static struct many m = {.pages = PAGES, .of = OF};
    const struct bench_option options[] = {
        {.name = "pages", .number = &m.pages, .low = 1, .high = UINT64_C(1) << 20},
        {.name = "of", .number = &m.of, .low = 1, .high = UINT64_C(1) << 24},
        {.name = "rounds", .number = &m.rounds, .low = 1, .high = 1000000},
        BENCH_OPTION_DIR(&m.common),
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &m.common, &rc))
        return rc;
    if (m.rounds == 0)
        m.rounds = m.common.quick ? ROUNDS_QUICK : ROUNDS;
    m.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    bench_catch_signals();
    bench_progress_enable(m.common.quiet);
    if (bench_dir_make(&m.common, m.dir) != 0)
        return 1;
    rc = run(&m);
    return bench_dir_remove(m.dir) != 0 ? 1 : rc;
}
