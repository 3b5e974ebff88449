/* SPDX-License-Identifier: MIT */
/*
 * frames.c -- the experiment `frames`: its command line, and short reports.
 */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/frames/frames_table.h"
#include "bench/frames/frames_threads.h"
#include "bench/frames/frames_trace.h"
#include "bench/kit/util.h"
#include "bench/main/xbench.h"

#define SIZES_MAX  64
#define LINE_BYTES 64

struct options {
    const char *trace;
    bool policies[XAC_FRAMES_N_POLICIES];
    uint64_t sizes[SIZES_MAX];
    unsigned n_sizes;
    uint64_t threads[SIZES_MAX];
    unsigned n_threads;
    bool batch;
    bool json;
    bool all, hits, quick;
    const char *rows, *count, *record;
};

/* ---- Command line ------------------------------------------------------------------ */

static const struct option long_options[] = {
    {"trace", required_argument, NULL, 't'},   {"policy", required_argument, NULL, 'p'},
    {"sizes", required_argument, NULL, 's'},   {"batch", no_argument, NULL, 'b'},
    {"threads", required_argument, NULL, 'T'}, {"json", no_argument, NULL, 'j'},
    {"all", no_argument, NULL, 'a'},           {"rows", required_argument, NULL, 'r'},
    {"hits", no_argument, NULL, 'H'},          {"record", required_argument, NULL, 'R'},
    {"quick", no_argument, NULL, 'q'},         {"count", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},          {0},
};

static void
usage(FILE *f)
{
    fputs(
        "usage: xbench frames --all [--quick] [--rows NAME]\n"
        "       xbench frames --hits [--sizes N[,N...]] TRACE...\n"
        "       xbench frames --trace FILE --sizes N[,N...] [--policy P[,P...]] [--batch]\n"
        "       xbench frames --record FILE\n"
        "       xbench frames --threads N[,N...] [--policy P[,P...]]\n\n"
        "  --all         what two papers claim of page frames, each with the line to pass; about\n"
        "                ten minutes, with --quick two and less sure\n"
        "  --rows NAME   of them one, as nb-4, or all that begin so, as bp\n"
        "  --hits        every policy's hits on traces, LRU against stack distances, batches\n"
        "                against none, eight users against one\n"
        "  --trace FILE  one page number per line, plain or compressed by gzip; a line that\n"
        "                is empty or begins with * or # is no reference\n"
        "  --record FILE write such a trace: the pages that 200,000 inserts of random keys into our\n"
        "                B+-tree touch\n"
        "  --sizes LIST  frames\n"
        "  --policy LIST of: all",
        f);
    for (unsigned i = 0; i < XAC_FRAMES_N_POLICIES; i++)
        fprintf(f, ", %s", bench_policy_names[i]);
    fputs(
        "\n                (default all)\n"
        "  --batch       the policies under a lock with BP-Wrapper, queue 64, threshold 32\n"
        "  --json        one JSON object per measurement\n\n"
        "With --threads hits only: millions of fixes per second, and per million fixes how often\n"
        "the lock was taken and waited for, without and with BP-Wrapper.\n"
        "Prints a line per policy, and per size hits and hits in percent of references.\n",
        f);
}

static bool
policy_add(struct options *o, const char *name)
{
    bool found = false;

    for (unsigned i = 0; i < XAC_FRAMES_N_POLICIES; i++)
        if (strcmp(name, "all") == 0 || strcmp(name, bench_policy_names[i]) == 0)
            found = o->policies[i] = true;
    return found;
}

static bool
size_add(struct options *o, const char *text)
{
    uint64_t size;

    if (o->n_sizes == SIZES_MAX || !bench_parse_u64(text, &size) || size == 0
        || size > UINT64_C(1) << 30)
        return false;
    o->sizes[o->n_sizes++] = size;
    return true;
}

static bool
threads_add(struct options *o, const char *text)
{
    if (o->n_threads == SIZES_MAX || !bench_parse_u64(text, &o->threads[o->n_threads]))
        return false;
    o->n_threads++;
    return true;
}

/* list_add -- each word of a list with commas; false at the first that is wrong. */
static bool
list_add(struct options *o, const char *list, bool (*add)(struct options *, const char *))
{
    char word[LINE_BYTES];

    for (;;) {
        size_t n = strcspn(list, ",");

        if (n >= sizeof word)
            return false;
        memcpy(word, list, n);
        word[n] = '\0';
        if (!add(o, word))
            return false;
        if (list[n] == '\0')
            return true;
        list += n + 1;
    }
}

/* options_parse -- ret 0, 2 after a message, or -1 if help was asked for. */
static int
options_parse(struct options *o, int argc, char **argv)
{
    bool any = false;
    int code;

    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (code == 'h')
            return -1;
        if (code == 't')
            o->trace = optarg;
        else if (code == 'b')
            o->batch = true;
        else if (code == 'a')
            o->all = true;
        else if (code == 'H')
            o->hits = true;
        else if (code == 'q')
            o->quick = true;
        else if (code == 'r')
            o->rows = optarg;
        else if (code == 'R')
            o->record = optarg;
        else if (code == 'c')
            o->count = optarg;
        else if (code == 'j')
            o->json = true;
        else if (code == 'p' && list_add(o, optarg, policy_add))
            any = true;
        else if (code == 'T' && list_add(o, optarg, threads_add))
            continue;
        else if (code != 's' || !list_add(o, optarg, size_add))
            return code == '?' ? 2 : 2 * bench_fail("frames: no such list: %s", optarg);
    }
    if (o->hits && optind == argc)
        return 2 * bench_fail("frames: --hits of which traces?");
    if (!o->hits && optind < argc)
        return 2 * bench_fail("frames: unexpected argument \"%s\"", argv[optind]);
    if (!o->all && !o->hits && o->count == NULL && o->record == NULL && o->n_threads == 0
        && (o->trace == NULL || o->n_sizes == 0))
        return 2
               * bench_fail(
                   "frames: --all, --hits, --trace and --sizes, or --threads are "
                   "needed");
    if (!any)
        (void)policy_add(o, "all");
    return 0;
}

/* ---- Reports ----------------------------------------------------------------------- */

/* hits_print_json -- of one policy with n frames. */
static void
hits_print_json(const struct options *o, const struct trace *t, uint32_t policy,
                uint64_t n, uint64_t hits)
{
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "frames");
    bench_json_str(stdout, "trace", o->trace);
    bench_json_str(stdout, "policy", bench_policy_names[policy]);
    bench_json_bool(stdout, "batched", o->batch);
    bench_json_u64(stdout, "frames", n);
    bench_json_u64(stdout, "references", t->n);
    bench_json_u64(stdout, "hits", hits);
    bench_json_end(stdout);
}

static int
policy_report(const struct options *o, const struct trace *t, uint32_t policy)
{
    if (!o->json)
        printf("%-10s", bench_policy_names[policy]);
    for (unsigned i = 0; i < o->n_sizes; i++) {
        struct xac_frames_config config = {.n_frames = (uint32_t)o->sizes[i],
                                           .policy = policy,
                                           .batch_queue =
                                               o->batch ? BENCH_BATCH_QUEUE : 0,
                                           .batch_threshold =
                                               o->batch ? BENCH_BATCH_TRY : 0};
        uint64_t hits = 0;

        if (bench_trace_play(t, &config, 1, 0, &hits) != 0)
            return 1;
        if (o->json)
            hits_print_json(o, t, policy, o->sizes[i], hits);
        else
            printf(" %8llu %5.1f%%", (unsigned long long)hits,
                   100.0 * (double)hits / (double)t->n);
        (void)fflush(stdout);
    }
    if (!o->json)
        putchar('\n');
    return 0;
}

/* threads_report -- every policy that locks, with each number of threads. */
static int
threads_report(const struct options *o)
{
    int rc = 0;

    if (!o->json)
        printf("%-10s %-8s %7s %10s %12s %12s\n", "policy", "hits", "threads", "Mfixes/s",
               "locks/M", "waits/M");
    for (uint32_t policy = XAC_FRAMES_LRU; policy < XAC_FRAMES_N_POLICIES; policy++)
        for (unsigned i = 0; i < o->n_threads && rc == 0 && o->policies[policy]; i++)
            rc = bench_frames_threads(policy, bench_policy_names[policy],
                                      (unsigned)o->threads[i], o->json);
    return rc;
}

static int
trace_report(const struct options *o)
{
    struct trace t = {0};
    int rc = bench_trace_load(&t, o->trace);

    if (rc == 0 && !o->json) {
        printf("%s: %zu references, pages up to %llu\n%-10s", o->trace, t.n,
               (unsigned long long)t.page_max, "frames");
        for (unsigned i = 0; i < o->n_sizes; i++)
            printf(" %15llu", (unsigned long long)o->sizes[i]);
        putchar('\n');
    }
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES && rc == 0; policy++)
        if (o->policies[policy])
            rc = policy_report(o, &t, policy);
    free(t.pages);
    return rc;
}

/* record -- a trace of our own. */
static int
record(const char *name)
{
    struct trace t;
    int rc = bench_trace_record(&t, 200000, 1);

    if (rc == 0)
        rc = bench_trace_write(&t, name);
    free(t.pages);
    return rc;
}

int
bench_frames_main(int argc, char **argv)
{
    struct options o = {0};
    struct table all;
    int rc = options_parse(&o, argc, argv);

    if (rc != 0) {
        usage(rc < 0 ? stdout : stderr);
        return rc < 0 ? 0 : rc;
    }
    all = (struct table){.quick = o.quick,
                         .json = o.json,
                         .seconds = o.quick ? 0.04 : 0.12,
                         .rounds = o.quick ? 3 : 13,
                         .only = o.rows};
    if (o.count != NULL)
        return bench_frames_count(o.count);
    if (o.record != NULL)
        return record(o.record);
    if (o.all)
        return bench_frames_all(&all);
    if (o.hits)
        return bench_trace_hits(argv + optind, argc - optind, o.sizes, o.n_sizes);
    return o.n_threads > 0 ? threads_report(&o) : trace_report(&o);
}
