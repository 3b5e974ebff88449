/* SPDX-License-Identifier: MIT */
/*
 * concurrency.c -- the experiment `concurrency`: independent transactions in several
 * processes (Thesis section 4.4, figures 4-5 and 4-6, tables 4.9, 4.10, C.9, C.10).
 *
 * Each process has a page of its own, and increments in each transaction: test A the first
 * int of it, test B every int, test C every int 1,000 times.  The number of transactions is
 * the same for any number of processes, which share it.  As in the Thesis the advisory
 * function announces the page.
 *
 * The processes of all numbers are there at the same time, each number in an environment of
 * its own; slice by slice those of one number run while the others wait.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/micro.h"
#include "bench/kit/team.h"
#include "bench/kit/thesis.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define COUNT               UINT64_C(10000)
#define COUNT_QUICK         UINT64_C(1000)
#define COUNT_DURABLE_QUICK UINT64_C(200)
#define COUNT_MAX           UINT64_C(1000000000)
#define SLICES              UINT64_C(10)
#define SLICES_QUICK        UINT64_C(3)
#define SLICES_MAX          UINT64_C(1000)
#define N_TESTS             3u
#define TURN_TIMEOUT_MS     (15u * 60 * 1000)

static const struct {
    const char *name;
    const char *what;
    bool all_ints;   /* of the page, or the first one only                             */
    unsigned passes; /* increments of each                                             */
} tests[N_TESTS] = {
    {"A", "increments the first int of a page", false, 1},
    {"B", "increments every int of a page", true, 1},
    {"C", "increments every int of a page 1,000 times", true, 1000},
};

struct options {
    struct bench_common common;
    struct bench_numbers procs;
    uint64_t count; /* transactions of a slice, all processes together                 */
    uint64_t slices;
    const char *tests; /* their letters                                                */
    bool durable;
    bool no_hint;
};

/* The processes of one number, in an environment of their own. */
struct crew {
    const struct options *options;
    unsigned test;
    unsigned n_procs;
    char dir[BENCH_DIR_BYTES + 8];
    char file[BENCH_DIR_BYTES + 16];
    struct bench_team team;
    struct bench_sample us; /* per transaction, one per slice                          */
    uint64_t transactions, aborts;
    /* Of a process: */
    size_t page_bytes;
    volatile unsigned *page; /* its own                                                */
    void *base;
};

enum order_kind {
    ORDER_OPEN,
    ORDER_RUN,
    ORDER_CLOSE
};
static const char *const order_names[] = {"open", "run", "close"};

enum {
    COUNT_COMMITS,
    COUNT_ABORTS
};

static void
usage(void)
{
    static const struct bench_help options[] = {
        {"tests", "LETTERS", "of A, B and C", "ABC"},
        {"procs", "LIST", "numbers of processes", "1,2,4"},
        {"count", "N", "transactions of a slice, shared by the processes",
         "10000, as in the Thesis"},
        {"slices", "K", "in each, every number of processes has its turn", "10"},
        {"durable", NULL, "durable transactions instead of nondurable ones", NULL},
        {"no-hint", NULL, "without setPageAccess()", NULL},
        {"quick", NULL, "3 slices of 1000; with --durable 200", NULL},
        {0},
    };

    puts(
        "Independent transactions in several processes (Thesis figures 4-5, 4-6, tables\n"
        "4.9, 4.10, C.9, C.10).  Each process has a page of its own, announced by\n"
        "setPageAccess(), and increments in each transaction: in test A the first int, in B\n"
        "every int, in C every int 1,000 times.  Time per transaction is that of all\n"
        "transactions over their number; speed-up is the median of one process over that\n"
        "of several.  At the end the ints in the files must be what was committed.\n");
    bench_options_help(options);
}

/* ---- A process ------------------------------------------------------------------------- */

/* crew_open -- ret 0 or a code. */
static int
crew_open(struct crew *c, unsigned number)
{
    char env[BENCH_DIR_BYTES + 16];
    int rc;

    snprintf(env, sizeof env, "%s/env", c->dir);
    /* Transactions of several processes run at the same time, as in the Thesis. */
    rc = xac_set_option(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS);
    if (rc == 0)
        rc = xac_init(env, c->options->durable ? XAC_DURABLE : XAC_NONDURABLE);
    if (rc != 0)
        return rc;
    c->base = xac_mmap(c->file, c->n_procs * c->page_bytes);
    if (c->base == MAP_FAILED)
        return errno;
    c->page = (volatile unsigned *)(void *)((char *)c->base + number * c->page_bytes);
    return 0;
}

/* crew_close -- ret 0 or a code. */
static int
crew_close(struct crew *c)
{
    int rc = xac_munmap(c->file), rc2 = xac_shutdown();

    return rc != 0 ? rc : rc2;
}

/* attempt -- a transaction; ret what xac_end() returned, or an error. */
static int
attempt(const struct crew *c)
{
    size_t n_ints = tests[c->test].all_ints ? c->page_bytes / sizeof(unsigned) : 1;
    unsigned passes = tests[c->test].passes;
    int rc = xac_begin(), rc2;

    if (rc != 0)
        return rc;
    if (!c->options->no_hint)
        rc = xac_set_page_access((void *)(uintptr_t)c->page, XAC_READ_WRITE);
    for (unsigned k = 0; k < passes && rc == 0; k++)
        for (size_t j = 0; j < n_ints; j++)
            c->page[j]++;
    rc2 = xac_end();
    return rc != 0 ? rc : rc2;
}

/* crew_run -- n transactions; ret 0 or a code. */
static int
crew_run(struct crew *c, uint64_t n, struct bench_answer *answer)
{
    int rc;

    answer->start_ns = bench_now_ns();
    while (answer->count[COUNT_COMMITS] < n) {
        rc = attempt(c);
        if (rc == XAC_COMMITTED)
            answer->count[COUNT_COMMITS]++;
        else if (rc == XAC_ABORTED)
            answer->count[COUNT_ABORTS]++;
        else
            return rc;
    }
    answer->end_ns = bench_now_ns();
    return 0;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct crew *c = arg;

    switch (order->kind) {
    case ORDER_OPEN:
        return crew_open(c, number);
    case ORDER_RUN:
        return crew_run(c, order->arg, answer);
    default:
        return crew_close(c);
    }
}

/* ---- The crew ------------------------------------------------------------------------------ */

/* crew_start -- directory, memory, processes; ret 0, or 1 after a message. */
static int
crew_start(struct crew *c, const struct options *o, unsigned test, unsigned n_procs,
           const char *dir)
{
    const struct bench_order order = {.kind = ORDER_OPEN};
    struct bench_answer answer;
    int rc;

    *c = (struct crew){.options = o, .test = test, .n_procs = n_procs};
    c->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    snprintf(c->dir, sizeof c->dir, "%s/%u", dir, n_procs);
    snprintf(c->file, sizeof c->file, "%s/pages", c->dir);
    if (mkdir(c->dir, 0755) != 0)
        return bench_fail("%s: %s", c->dir, strerror(errno));
    if (bench_sample_init(&c->us, o->slices) != 0)
        return 1;
    c->team = (struct bench_team){.label = "concurrency",
                                  .order_names = order_names,
                                  .arg = c,
                                  .obey = obey,
                                  .explain = bench_xac_explain};
    rc = bench_team_start(&c->team, n_procs);
    for (unsigned w = 0; w < n_procs && rc == 0; w++)
        rc = bench_team_ask(&c->team, w, &order, &answer);
    return rc;
}

/* crew_slice -- share the transactions of a slice; out usp, per transaction. */
static int
crew_slice(struct crew *c, double *usp)
{
    const struct bench_order order = {.kind = ORDER_RUN,
                                      .arg = c->options->count / c->n_procs,
                                      .timeout_ms = TURN_TIMEOUT_MS};
    struct bench_answer answers[BENCH_TEAM_MAX];

    if (bench_team_ask_all(&c->team, &order, answers) != 0)
        return 1;
    *usp =
        (double)bench_team_ns(&c->team, answers) / 1e3 / (double)(order.arg * c->n_procs);
    for (unsigned w = 0; w < c->n_procs; w++) {
        c->transactions += answers[w].count[COUNT_COMMITS];
        c->aborts += answers[w].count[COUNT_ABORTS];
    }
    return 0;
}

/* crew_end -- close the environment everywhere, the one that made it last. */
static int
crew_end(struct crew *c)
{
    const struct bench_order order = {.kind = ORDER_CLOSE};
    struct bench_answer answer;
    int rc = 0;

    for (unsigned w = c->n_procs; w-- > 0 && rc == 0;)
        rc = bench_team_ask(&c->team, w, &order, &answer);
    return rc;
}

/* crew_check -- do the files, read without the library, hold what was committed? */
static int
crew_check(const struct crew *c)
{
    size_t n = c->page_bytes / sizeof(unsigned);
    unsigned want = (unsigned)(c->transactions / c->n_procs * tests[c->test].passes);
    int fd = open(c->file, O_RDONLY | O_CLOEXEC);
    unsigned *page = malloc(c->page_bytes);
    int rc = 0;

    for (unsigned w = 0; w < c->n_procs && rc == 0; w++) {
        if (fd < 0 || page == NULL
            || pread(fd, page, c->page_bytes, (off_t)(w * c->page_bytes))
                   != (ssize_t)c->page_bytes)
            rc = bench_fail("%s: page %u cannot be read", c->file, w);
        for (size_t j = 0; j < n && rc == 0; j++)
            if (page[j] != (j == 0 || tests[c->test].all_ints ? want : 0))
                rc = bench_fail("test %s: int %zu of page %u is %u after increments "
                                "to %u were committed",
                                tests[c->test].name, j, w, page[j], want);
    }
    free(page);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- A test --------------------------------------------------------------------------------- */

struct run {
    const struct options *options;
    unsigned test;
    struct crew crews[BENCH_NUMBERS_MAX];
};

/* run_slices -- every number of processes once per slice, another one first each time. */
static int
run_slices(struct run *run)
{
    const struct options *o = run->options;
    double us;

    for (uint64_t s = 0; s < o->slices; s++) {
        for (unsigned j = 0; j < o->procs.n; j++) {
            unsigned i = (unsigned)((s + j) % o->procs.n);

            bench_progress(tests[run->test].what, s * o->procs.n + j,
                           o->slices * o->procs.n);
            if (bench_interrupted())
                return bench_fail("interrupted");
            if (crew_slice(&run->crews[i], &us) != 0)
                return 1;
            bench_sample_add(&run->crews[i].us, us);
        }
    }
    return 0;
}

/* alone_us -- median time of one process; NAN if none was measured. */
static double
alone_us(struct run *run)
{
    for (unsigned i = 0; i < run->options->procs.n; i++)
        if (run->options->procs.v[i] == 1)
            return bench_summarize(&run->crews[i].us).median;
    return NAN;
}

/* thesis_range -- " (Thesis: ...)", least and most of the machines in tables 4.9 and 4.10, which
   had two processors; nothing if they do not say. */
static void
thesis_range(const struct crew *c, char *out, size_t size)
{
    const char *name = c->options->durable ? "concurrency-durable" : "concurrency";
    double low = INFINITY, high = 0;
    char where[64];

    snprintf(where, sizeof where, "test=%s processes=%u", tests[c->test].name,
             c->n_procs);
    for (const struct bench_thesis_row *r = bench_thesis_rows; r->table != NULL; r++) {
        if (r->table[0] != '4' || strcmp(r->experiment, name) != 0
            || strcmp(r->where, where) != 0 || strcmp(r->keys, "speedup") != 0)
            continue;
        for (const struct bench_thesis_value *v = r->values; v->machine != NULL; v++) {
            low = fmin(low, v->v[BENCH_THESIS_MEAN]);
            high = fmax(high, v->v[BENCH_THESIS_MEAN]);
        }
    }
    out[0] = '\0';
    if (high > 0)
        snprintf(out, size, " (Thesis: %.2f to %.2f)", low, high);
}

/* report -- one number of processes. */
static void
report(const struct options *o, struct crew *c, double alone)
{
    struct bench_summary s = bench_summarize(&c->us);
    double speedup = alone / s.median;
    char label[64], thesis[64];

    if (!o->common.json) {
        snprintf(label, sizeof label, "test %s, %u process%s", tests[c->test].name,
                 c->n_procs, c->n_procs == 1 ? "" : "es");
        thesis_range(c, thesis, sizeof thesis);
        bench_print_row(label, &s, 1);
        printf("%-28s %8s speed-up %.2f%s, %llu aborts in %llu transactions\n", "", "",
               speedup, thesis, (unsigned long long)c->aborts,
               (unsigned long long)c->transactions);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "concurrency");
    bench_json_str(stdout, "test", tests[c->test].name);
    bench_json_str(stdout, "what", tests[c->test].what);
    bench_json_bool(stdout, "durable", o->durable);
    bench_json_bool(stdout, "hint", !o->no_hint);
    bench_json_u64(stdout, "processes", c->n_procs);
    bench_json_u64(stdout, "slices", s.n);
    bench_json_summary(stdout, "us_per_transaction", &s, 1);
    bench_json_num(stdout, "speedup", speedup);
    bench_json_u64(stdout, "transactions", c->transactions);
    bench_json_u64(stdout, "aborts", c->aborts);
    bench_json_str(stdout, "command", o->common.command);
    bench_json_end(stdout);
}

/* run_crews -- start, slices, end, check, report; the caller stops what runs. */
static int
run_crews(struct run *run, const char *dir)
{
    const struct options *o = run->options;
    int rc = 0;

    for (unsigned i = 0; i < o->procs.n && rc == 0; i++)
        rc = crew_start(&run->crews[i], o, run->test, (unsigned)o->procs.v[i], dir);
    if (rc == 0)
        rc = run_slices(run);
    for (unsigned i = 0; i < o->procs.n && rc == 0; i++) {
        rc = crew_end(&run->crews[i]);
        if (rc == 0)
            rc = crew_check(&run->crews[i]);
    }
    bench_progress_clear();
    for (unsigned i = 0; i < o->procs.n && rc == 0; i++)
        report(o, &run->crews[i], alone_us(run));
    return rc;
}

/* run_test -- in a directory of its own; ret 0, or 1 after a message. */
static int
run_test(struct run *run)
{
    char dir[BENCH_DIR_BYTES];
    int rc;

    memset(run->crews, 0, sizeof run->crews);
    if (bench_dir_make(&run->options->common, dir) != 0)
        return 1;
    rc = run_crews(run, dir);
    for (unsigned i = 0; i < run->options->procs.n; i++) {
        bench_team_stop(&run->crews[i].team);
        bench_sample_free(&run->crews[i].us);
    }
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(struct options *o)
{
    static const struct bench_numbers procs = {3, {1, 2, 4}};

    if (o->tests == NULL)
        o->tests = "ABC";
    if (o->procs.n == 0)
        o->procs = procs;
    if (o->slices == 0)
        o->slices = o->common.quick ? SLICES_QUICK : SLICES;
    if (o->count == 0 && o->common.quick)
        o->count = o->durable ? COUNT_DURABLE_QUICK : COUNT_QUICK;
    else if (o->count == 0)
        o->count = COUNT;
}

int
bench_concurrency_main(int argc, char **argv)
{
    static struct options o;
    static struct run run = {.options = &o}; /* too large for the stack */
    const struct bench_option options[] = {
        {.name = "tests", .text = &o.tests},
        {.name = "procs", .numbers = &o.procs, .low = 1, .high = BENCH_TEAM_MAX},
        {.name = "count", .number = &o.count, .low = BENCH_TEAM_MAX, .high = COUNT_MAX},
        {.name = "slices", .number = &o.slices, .low = 1, .high = SLICES_MAX},
        {.name = "durable", .flag = &o.durable},
        {.name = "no-hint", .flag = &o.no_hint},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc = 0;

    if (!bench_options_parse(argc, argv, options, usage, &o.common, &rc))
        return rc;
    set_defaults(&o);
    if (o.tests[0] == '\0' || o.tests[strspn(o.tests, "ABC")] != '\0') {
        (void)bench_fail("--tests %s: letters of ABC are wanted", o.tests);
        return 2;
    }
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (!o.common.json) {
        bench_print_command(&o.common, o.durable
                                           ? "durable; microseconds per transaction"
                                           : "nondurable; microseconds per transaction");
        bench_print_columns("test", "us");
    }
    for (run.test = 0; run.test < N_TESTS && rc == 0; run.test++)
        if (strchr(o.tests, tests[run.test].name[0]) != NULL)
            rc = run_test(&run);
    return rc;
}
