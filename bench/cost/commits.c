/* SPDX-License-Identifier: MIT */
/*
 * commits.c -- the experiment `commits`: ways to make the stores of a transaction durable.  A
 * checksum of the commit, or two syncs (Thesis section 5.5, point 1); redo records, or
 * before-images as in RMS and Rhino (section 3.2).  Each way has a process and a file of its own, and
 * they take turns.
 */
#include <config.h>

#include "bench/cost/commits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/micro.h"
#include "bench/kit/team.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define ROUNDS       UINT64_C(50)
#define ROUNDS_QUICK UINT64_C(5)
#define ROUNDS_MAX   UINT64_C(100000)
#define WAYS_MAX     8u

#define ON_XAC                                                       \
 .open = bench_commit_xac_open, .begin = bench_commit_xac_begin,     \
 .commit = bench_commit_xac_commit, .close = bench_commit_xac_close, \
 .syncs = bench_commit_xac_syncs, .explain = bench_xac_explain

#define ON_UNDO                                                          \
 .open = bench_commit_undo_open, .begin = bench_commit_undo_begin,       \
 .commit = bench_commit_undo_commit, .close = bench_commit_undo_close,   \
 .syncs = bench_commit_undo_syncs, .explain = bench_commit_undo_explain, \
 .torn = bench_commit_undo_torn

const struct bench_commit_way bench_commit_ways[] = {
    {.name = "xxh3",
     .what = "libxac: one sync, a checksum by XXH3 of 64 bits: the default",
     .checksum = XAC_CHECKSUM_XXH3,
     ON_XAC},
    {.name = "md5",
     .what = "libxac: one sync, MD5, the Thesis' proposal",
     .checksum = XAC_CHECKSUM_MD5,
     ON_XAC},
    {.name = "sha1",
     .what = "libxac: one sync, SHA-1",
     .checksum = XAC_CHECKSUM_SHA1,
     ON_XAC},
    {.name = "two-syncs",
     .what = "libxac: two syncs, the end of the log written between them; XXH3, too",
     .checksum = XAC_CHECKSUM_XXH3,
     .is_other = true,
     ON_XAC},
    {.name = "undo-rms",
     .what =
         "before-images in a log, each synced before its page is stored to, as in RMS",
     .is_other = true,
     ON_UNDO},
    {.name = "undo-rhino",
     .what =
         "before-images synced once, by the commit: Rhino, without a system that asks "
         "before it writes a page out",
     ON_UNDO},
    {.name = NULL},
};

static struct options {
    struct bench_common common;
    struct bench_numbers pages;
    uint64_t rounds;
    bool ints;
} o;

/* The process of one way. */
static struct crew {
    const struct bench_commit_way *way;
    char dir[BENCH_DIR_BYTES + 16];
    struct bench_team team;
    struct bench_sample us[BENCH_NUMBERS_MAX]; /* per transaction, by the list of pages */
    struct bench_sample syncs[BENCH_NUMBERS_MAX]; /* likewise                           */
    /* Of the process: */
    unsigned char *base;
    unsigned char byte; /* that the next transaction stores                             */
} crews[WAYS_MAX];
static unsigned n_ways;

enum order_kind {
    ORDER_OPEN,
    ORDER_RUN, /* arg: pages                                                            */
    ORDER_CLOSE
};
static const char *const order_names[] = {"open", "run", "close"};

static void
usage(void)
{
    static const struct bench_help options[] = {
        {"pages", "LIST", "pages of a transaction", "1,16,256,1024"},
        {"ints", NULL, "change the first int of each page only", NULL},
        {"rounds", "N", "in each, every way and number of pages has its turn", "50"},
        {"quick", NULL, "5 rounds of 1 and 64 pages", NULL},
        {0},
    };

    puts(
        "Durable transactions that change every byte of so many pages, by each of these\n"
        "ways, each in a process and on a file of its own:\n");
    for (const struct bench_commit_way *w = bench_commit_ways; w->name != NULL; w++)
        printf("  %-10s %s\n", w->name, w->what);
    puts(
        "\n"
        "Ways of undo store in place, and bring the pages themselves to disk.  At their end a\n"
        "process is killed in a transaction, and the file is recovered.\n"
        "\n"
        "two-syncs is made in the benchmark, by the library's table of system calls: what the\n"
        "library syncs is synced, its last 512 bytes are written once more, and synced, as\n"
        "a commit record behind its data would be (Thesis section 5.5, point 1).  It cannot do\n"
        "without its checksum; xbench checksum says what XXH3 costs.\n"
        "\n"
        "over xxh3: median of the quotients of each round.  At the end the files hold what\n"
        "was committed last.\n");
    bench_options_help(options);
}

/* page_bytes -- of the machine. */
static size_t
page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* pages_most -- of the list. */
static uint64_t
pages_most(void)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < o.pages.n; i++)
        most = o.pages.v[i] > most ? o.pages.v[i] : most;
    return most;
}

/* ---- The process ---------------------------------------------------------------------------- */

/* store -- what a transaction changes. */
static void
store(struct crew *c, uint64_t pages)
{
    size_t n = o.ints ? sizeof(int) : page_bytes();

    c->byte++;
    for (uint64_t p = 0; p < pages; p++)
        memset(c->base + p * page_bytes(), c->byte, n);
}

/* crew_run -- one transaction; ret 0 or a code. */
static int
crew_run(struct crew *c, uint64_t pages, struct bench_answer *answer)
{
    uint64_t before = c->way->syncs();
    int rc;

    answer->start_ns = bench_now_ns();
    rc = c->way->begin();
    if (rc != 0)
        return rc;
    store(c, pages);
    rc = c->way->commit();
    answer->end_ns = bench_now_ns();
    answer->count[0] = c->way->syncs() - before;
    return rc;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct crew *c = arg;

    (void)number;
    switch (order->kind) {
    case ORDER_OPEN:
        return c->way->open(c->way, c->dir, pages_most(), &c->base);
    case ORDER_RUN:
        return crew_run(c, order->arg, answer);
    default:
        return c->way->close();
    }
}

/* ---- The run ---------------------------------------------------------------------------------- */

/* crew_start -- of way number j; ret 0, or 1 after a message. */
static int
crew_start(unsigned j, const char *dir)
{
    const struct bench_order order = {.kind = ORDER_OPEN};
    struct crew *c = &crews[j];
    struct bench_answer answer;
    int rc = 0;

    c->way = &bench_commit_ways[j];
    snprintf(c->dir, sizeof c->dir, "%s/%u", dir, j);
    if (mkdir(c->dir, 0755) != 0)
        return bench_fail("%s: %s", c->dir, strerror(errno));
    for (unsigned i = 0; i < o.pages.n && rc == 0; i++) {
        rc = bench_sample_init(&c->us[i], o.rounds);
        rc = rc != 0 ? rc : bench_sample_init(&c->syncs[i], o.rounds);
    }
    c->team = (struct bench_team){.label = c->way->name,
                                  .order_names = order_names,
                                  .arg = c,
                                  .obey = obey,
                                  .explain = c->way->explain};
    rc = rc != 0 ? rc : bench_team_start(&c->team, 1);
    return rc != 0 ? rc : bench_team_ask(&c->team, 0, &order, &answer);
}

/* crew_turn -- a transaction of pages.v[i]; round 0 is not counted. */
static int
crew_turn(struct crew *c, unsigned i, uint64_t round)
{
    const struct bench_order order = {.kind = ORDER_RUN, .arg = o.pages.v[i]};
    struct bench_answer answer;

    if (bench_team_ask(&c->team, 0, &order, &answer) != 0)
        return 1;
    if (round == 0)
        return 0;
    bench_sample_add(&c->us[i], (double)(answer.end_ns - answer.start_ns) / 1e3);
    bench_sample_add(&c->syncs[i], (double)answer.count[0]);
    return 0;
}

/* file_holds -- whether the first page of the file is full of a byte; a message if not. */
static int
file_holds(const struct crew *c, unsigned char want)
{
    unsigned char got[65536];
    size_t n = o.ints ? sizeof(int) : page_bytes();
    char file[BENCH_DIR_BYTES + 32];
    int rc = 0;
    FILE *f;

    snprintf(file, sizeof file, "%s/" BENCH_COMMITS_FILE, c->dir);
    f = fopen(file, "re");
    if (f == NULL || n > sizeof got || fread(got, 1, n, f) != n)
        rc = bench_fail("%s: cannot be read", file);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (got[i] != want)
            rc = bench_fail("%s: byte %zu is %u; %u was committed last", file, i, got[i],
                            want);
    if (f != NULL)
        fclose(f);
    return rc;
}

/* crew_check -- close, tear a transaction where the way can, and read without it what the last one has left. */
static int
crew_check(struct crew *c)
{
    const struct bench_order order = {.kind = ORDER_CLOSE};
    struct bench_answer answer;
    int rc = bench_team_ask(&c->team, 0, &order, &answer);

    bench_team_stop(&c->team);
    if (rc == 0 && c->way->torn != NULL)
        rc = c->way->torn(c->way, c->dir, pages_most());
    return rc != 0 ? rc : file_holds(c, (unsigned char)((o.rounds + 1) * o.pages.n));
}

/* run_rounds -- another way first in each. */
static int
run_rounds(void)
{
    int rc = 0;

    for (uint64_t round = 0; round <= o.rounds && rc == 0; round++)
        for (unsigned i = 0; i < o.pages.n && rc == 0; i++)
            for (unsigned j = 0; j < n_ways && rc == 0; j++) {
                bench_progress("commits", round, o.rounds + 1);
                rc = bench_interrupted()
                         ? bench_fail("interrupted")
                         : crew_turn(&crews[(round + j) % n_ways], i, round);
            }
    for (unsigned j = 0; j < n_ways && rc == 0; j++)
        rc = crew_check(&crews[j]);
    return rc;
}

/* over_first -- time over that of the first way, median of the rounds; the samples are in their order still. */
static double
over_first(const struct crew *c, unsigned i)
{
    double *ratio = malloc(o.rounds * sizeof *ratio), median;

    if (ratio == NULL)
        abort();
    for (uint64_t r = 0; r < o.rounds; r++)
        ratio[r] = c->us[i].v[r] / crews[0].us[i].v[r];
    median = bench_median(ratio, o.rounds);
    free(ratio);
    return median;
}

/* report_way -- one way, one number of pages. */
static void
report_way(struct crew *c, unsigned i, double over)
{
    struct bench_summary s = bench_summarize(&c->us[i]),
                         syncs = bench_summarize(&c->syncs[i]);
    char label[64];

    if (!o.common.json) {
        snprintf(label, sizeof label, "%llu pages, %s", (unsigned long long)o.pages.v[i],
                 c->way->name);
        bench_print_row(label, &s, 1);
        printf("%-28s %8s over xxh3 %.2f\n", "", "", over);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "commits");
    bench_json_str(stdout, "way", c->way->name);
    bench_json_str(stdout, "what", c->way->what);
    bench_json_str(stdout, "change", o.ints ? "an int of each page" : "every byte");
    bench_json_u64(stdout, "pages", o.pages.v[i]);
    bench_json_u64(stdout, "rounds", s.n);
    bench_json_summary(stdout, "us_per_transaction", &s, 1);
    bench_json_num(stdout, "time_over_xxh3_median", over);
    bench_json_num(stdout, "syncs_per_transaction_median", syncs.median);
    bench_json_bool(stdout, "verified", true);
    bench_json_str(stdout, "command", o.common.command);
    bench_json_end(stdout);
}

/* report -- one number of pages. */
static void
report(unsigned i)
{
    double over[WAYS_MAX];

    for (unsigned j = 0; j < n_ways; j++)
        over[j] = over_first(&crews[j], i);
    for (unsigned j = 0; j < n_ways; j++)
        report_way(&crews[j], i, over[j]);
}

/* run_all -- ret exit status. */
static int
run_all(void)
{
    char dir[BENCH_DIR_BYTES];
    int rc = bench_dir_make(&o.common, dir);

    if (rc != 0)
        return rc;
    while (bench_commit_ways[n_ways].name != NULL)
        n_ways++;
    for (unsigned j = 0; j < n_ways && rc == 0; j++)
        rc = crew_start(j, dir);
    if (rc == 0)
        rc = run_rounds();
    bench_progress_clear();
    for (unsigned i = 0; i < o.pages.n && rc == 0; i++)
        report(i);
    for (unsigned j = 0; j < n_ways; j++) {
        bench_team_stop(&crews[j].team);
        for (unsigned i = 0; i < o.pages.n; i++) {
            bench_sample_free(&crews[j].us[i]);
            bench_sample_free(&crews[j].syncs[i]);
        }
    }
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}

int
bench_commits_main(int argc, char **argv)
{
    static const struct bench_numbers pages = {4, {1, 16, 256, 1024}}, few = {2, {1, 64}};
    const struct bench_option table[] = {
        {.name = "pages", .numbers = &o.pages, .low = 1, .high = BENCH_COMMITS_PAGES_MAX},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "ints", .flag = &o.ints},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc = 0;

    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (o.pages.n == 0)
        o.pages = o.common.quick ? few : pages;
    if (o.rounds == 0)
        o.rounds = o.common.quick ? ROUNDS_QUICK : ROUNDS;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (!o.common.json) {
        bench_print_command(&o.common, "durable; microseconds per transaction");
        bench_print_columns("pages, way", "us");
    }
    return run_all();
}
