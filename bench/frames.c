/* SPDX-License-Identifier: MIT */
/*
 * frames.c -- the experiment `frames`: hits of each policy on a recorded trace of pages.
 *
 * The pool itself plays the trace, with frames that have no memory and without I/O.
 */
#include <config.h>

#include "frames.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util.h"
#include "xbench.h"

#define SIZES_MAX  64
#define LINE_BYTES 64

static const char *const policy_names[XAC_FRAMES_N_POLICIES] = {
    [XAC_FRAMES_NB_GCLOCK] = "nb-gclock",
    [XAC_FRAMES_LRU] = "lru",
    [XAC_FRAMES_CLOCK] = "clock",
    [XAC_FRAMES_GCLOCK] = "gclock",
    [XAC_FRAMES_2Q] = "2q",
    [XAC_FRAMES_LIRS] = "lirs",
    [XAC_FRAMES_MQ] = "mq",
    [XAC_FRAMES_CAR] = "car",
    [XAC_FRAMES_RANDOM] = "random",
    [XAC_FRAMES_SWEEP] = "sweep",
    [XAC_FRAMES_GCLOCK_K] = "gclock-k",
};

struct options {
    const char *trace;
    bool policies[XAC_FRAMES_N_POLICIES];
    uint64_t sizes[SIZES_MAX];
    unsigned n_sizes;
    uint64_t threads[SIZES_MAX];
    unsigned n_threads;
    bool batch;
    bool json;
};

struct trace {
    uint64_t *pages;
    size_t n, room;
    uint64_t page_max;
};

/* ---- Command line ------------------------------------------------------------------ */

static const struct option long_options[] = {
    {"trace", required_argument, NULL, 't'},   {"policy", required_argument, NULL, 'p'},
    {"sizes", required_argument, NULL, 's'},   {"batch", no_argument, NULL, 'b'},
    {"threads", required_argument, NULL, 'T'}, {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},          {0},
};

static void
usage(FILE *f)
{
    fputs(
        "usage: xbench frames --trace FILE --sizes N[,N...] [--policy P[,P...]] [--batch]\n"
        "       xbench frames --threads N[,N...] [--policy P[,P...]]\n\n"
        "  --trace FILE  one page number per line, plain or compressed by gzip; a line that\n"
        "                is empty or begins with * or # is no reference\n"
        "  --sizes LIST  frames\n"
        "  --policy LIST of: all",
        f);
    for (unsigned i = 0; i < XAC_FRAMES_N_POLICIES; i++)
        fprintf(f, ", %s", policy_names[i]);
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
        if (strcmp(name, "all") == 0 || strcmp(name, policy_names[i]) == 0)
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
        else if (code == 'j')
            o->json = true;
        else if (code == 'p' && list_add(o, optarg, policy_add))
            any = true;
        else if (code == 'T' && list_add(o, optarg, threads_add))
            continue;
        else if (code != 's' || !list_add(o, optarg, size_add))
            return code == '?' ? 2 : 2 * bench_fail("frames: no such list: %s", optarg);
    }
    if (optind < argc)
        return 2 * bench_fail("frames: unexpected argument \"%s\"", argv[optind]);
    if (o->n_threads == 0 && (o->trace == NULL || o->n_sizes == 0))
        return 2 * bench_fail("frames: --trace and --sizes, or --threads, are needed");
    if (!any)
        (void)policy_add(o, "all");
    return 0;
}

/* ---- Trace ------------------------------------------------------------------------- */

static int
trace_add(struct trace *t, uint64_t page)
{
    if (t->n == t->room) {
        size_t room = t->room == 0 ? 65536 : 2 * t->room;
        uint64_t *pages = realloc(t->pages, room * sizeof *pages);

        if (pages == NULL)
            return bench_fail("frames: no memory for the trace");
        t->pages = pages;
        t->room = room;
    }
    t->pages[t->n++] = page;
    t->page_max = page > t->page_max ? page : t->page_max;
    return 0;
}

/* line_add -- ret 0, or 1 after a message. */
static int
line_add(struct trace *t, const char *name, uint64_t number, char *line)
{
    char *text = line + strspn(line, " \t"), *end;
    uint64_t page;

    if (strchr("*#\r\n", *text) != NULL)
        return 0;
    errno = 0;
    page = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *text == '-' || end[strspn(end, " \t\r\n")] != '\0'
        || page >= (UINT64_C(1) << 40))
        return bench_fail("%s:%llu: not a page number", name, (unsigned long long)number);
    return trace_add(t, page);
}

static int
trace_load(struct trace *t, const char *name)
{
    gzFile file = gzopen(name, "rb");
    char line[LINE_BYTES];
    uint64_t number = 0;
    int rc = 0, gz_rc;

    if (file == NULL)
        return bench_fail("%s: %s", name, errno != 0 ? strerror(errno) : "cannot open");
    while (rc == 0 && gzgets(file, line, sizeof line) != NULL)
        rc = line_add(t, name, ++number, line);
    (void)gzerror(file, &gz_rc);
    if (rc == 0 && gz_rc != Z_OK && gz_rc != Z_STREAM_END)
        rc = bench_fail("%s: damaged, or cut off", name);
    (void)gzclose(file);
    if (rc == 0 && t->n == 0)
        rc = bench_fail("%s: no page in it", name);
    return rc;
}

/* ---- Play -------------------------------------------------------------------------- */

/* play -- ret 0, or 1 after a message. */
static int
play(const struct trace *t, const struct xac_frames_config *config, uint64_t *hitsp)
{
    struct xac_frames_user *user = NULL;
    struct xac_frames_stats stats;
    struct xac_frames *pool;
    struct xac_frames_pin pin;
    int rc = xac_frames_create(config, NULL, NULL, &pool);

    if (rc != 0)
        return bench_fail("frames: no pool: %s", strerror(rc));
    rc = xac_frames_join(pool, &user);
    for (size_t i = 0; i < t->n && rc == 0; i++) {
        rc = xac_frames_fix(user, t->pages[i], 0, &pin);
        if (rc == 0)
            xac_frames_unfix(user, &pin);
    }
    xac_frames_get_stats(pool, &stats);
    if (user != NULL)
        xac_frames_leave(user);
    xac_frames_close(pool);
    if (rc != 0)
        return bench_fail("frames: %s", strerror(rc));
    *hitsp = stats.hits;
    return 0;
}

/* hits_print_json -- of one policy with n frames. */
static void
hits_print_json(const struct options *o, const struct trace *t, uint32_t policy,
                uint64_t n, uint64_t hits)
{
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "frames");
    bench_json_str(stdout, "trace", o->trace);
    bench_json_str(stdout, "policy", policy_names[policy]);
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
        printf("%-10s", policy_names[policy]);
    for (unsigned i = 0; i < o->n_sizes; i++) {
        struct xac_frames_config config = {.n_pages = t->page_max + 1,
                                           .n_frames = (uint32_t)o->sizes[i],
                                           .n_users = 1,
                                           .policy = policy,
                                           .batch_queue =
                                               o->batch ? BENCH_BATCH_QUEUE : 0,
                                           .batch_threshold =
                                               o->batch ? BENCH_BATCH_TRY : 0};
        uint64_t hits = 0;

        if (play(t, &config, &hits) != 0)
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
            rc = bench_frames_threads(policy, policy_names[policy],
                                      (unsigned)o->threads[i], o->json);
    return rc;
}

int
bench_frames_main(int argc, char **argv)
{
    struct options o = {0};
    struct trace t = {0};
    int rc = options_parse(&o, argc, argv);

    if (rc != 0) {
        usage(rc < 0 ? stdout : stderr);
        return rc < 0 ? 0 : rc;
    }
    if (o.n_threads > 0)
        return threads_report(&o);
    rc = trace_load(&t, o.trace);
    if (rc == 0 && !o.json) {
        printf("%s: %zu references, pages up to %llu\n%-10s", o.trace, t.n,
               (unsigned long long)t.page_max, "frames");
        for (unsigned i = 0; i < o.n_sizes; i++)
            printf(" %15llu", (unsigned long long)o.sizes[i]);
        putchar('\n');
    }
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES && rc == 0; policy++)
        if (o.policies[policy])
            rc = policy_report(&o, &t, policy);
    free(t.pages);
    return rc;
}
