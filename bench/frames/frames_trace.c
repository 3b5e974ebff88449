/* SPDX-License-Identifier: MIT */
/*
 * frames_trace.c -- see frames_trace.h.
 */
#include <config.h>

#include "bench/frames/frames_trace.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZLIB
# include <zlib.h>
#endif

#include "bench/kit/util.h"

#define LINE_BYTES  64
#define THREADS     8 /* of the concurrent play, of which the median is taken */
#define PLAYS       5
#define TOLERANCE   0.5
#define TOLERANCE_T 2.0

/* Hits that users may hold in their queues: with all in turn the lock is free when a queue has as many as it tries at. */
#define QUEUED (THREADS * (BENCH_BATCH_TRY - 1))

const char *const bench_policy_names[XAC_FRAMES_N_POLICIES] = {
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

/* ---- Loading ------------------------------------------------------------------------- */

int
bench_trace_add(struct trace *t, uint64_t page)
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
    return bench_trace_add(t, page);
}

#ifdef HAVE_ZLIB
/* lines_add -- all of a file's, plain or compressed. */
static int
lines_add(struct trace *t, const char *name)
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
    return rc;
}
#else
static int
lines_add(struct trace *t, const char *name)
{
    FILE *file = fopen(name, "rbe");
    char line[LINE_BYTES];
    uint64_t number = 0;
    int rc = 0;

    if (file == NULL)
        return bench_fail("%s: %s", name, strerror(errno));
    if (fread(line, 1, 2, file) == 2 && memcmp(line, "\x1f\x8b", 2) == 0)
        rc =
            bench_fail("%s: compressed, which this program reads only if built with zlib",
                       name);
    rewind(file);
    while (rc == 0 && fgets(line, sizeof line, file) != NULL)
        rc = line_add(t, name, ++number, line);
    if (rc == 0 && ferror(file))
        rc = bench_fail("%s: cannot be read", name);
    (void)fclose(file);
    return rc;
}
#endif

int
bench_trace_load(struct trace *t, const char *name)
{
    int rc = lines_add(t, name);

    if (rc == 0 && t->n == 0)
        rc = bench_fail("%s: no page in it", name);
    return rc;
}

/* ---- Playing ------------------------------------------------------------------------- */

static int
fix_one(struct xac_frames_user *user, uint64_t page)
{
    struct xac_frames_pin pin;
    int rc = xac_frames_fix(user, page, 0, &pin);

    if (rc == 0)
        xac_frames_unfix(user, &pin);
    return rc;
}

int
bench_trace_pool(const struct trace *t, const struct xac_frames_config *config,
                 unsigned n_users, const struct xac_frames_io *io,
                 struct xac_frames **poolp)
{
    struct xac_frames_config c = *config;
    int rc;

    c.n_pages = t->page_max + 1;
    c.n_users = n_users;
    rc = xac_frames_create(&c, NULL, io, poolp);
    return rc == 0 ? 0 : bench_fail("frames: no pool: %s", strerror(rc));
}

int
bench_trace_play(const struct trace *t, const struct xac_frames_config *config,
                 unsigned n_users, size_t skip, uint64_t *hitsp)
{
    struct xac_frames_user *users[TRACE_USERS_MAX] = {NULL};
    struct xac_frames_stats skipped = {0}, stats;
    struct xac_frames *pool;
    int rc = bench_trace_pool(t, config, n_users, NULL, &pool);

    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < n_users && rc == 0; i++)
        rc = xac_frames_join(pool, &users[i]);
    for (size_t i = 0; i < t->n && rc == 0; i++) {
        if (i == skip)
            xac_frames_get_stats(pool, &skipped, sizeof skipped);
        rc = fix_one(users[i % n_users], t->pages[i]);
    }
    xac_frames_get_stats(pool, &stats, sizeof stats);
    for (unsigned i = 0; i < n_users && users[i] != NULL; i++)
        xac_frames_leave(users[i]);
    xac_frames_close(pool);
    *hitsp = stats.hits - skipped.hits;
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}

/* ---- The table ------------------------------------------------------------------------------ */

/* What was farthest off, of all traces. */
struct worst {
    double points;
    char where[80];
};

static void
worst_note(struct worst *w, double points, const char *trace, uint64_t size,
           const char *policy)
{
    if (points <= w->points)
        return;
    w->points = points;
    (void)snprintf(w->where, sizeof w->where, "%s, %llu frames, %s", trace,
                   (unsigned long long)size, policy);
}

/* How far Nb-GCLOCK by several users is from one, in points: medians of PLAYS. */
struct apart {
    struct worst median;
    uint64_t n, n_off, n_low;
};

/* Why a play with the trace dealt out may differ; what is compared with it is in percent of the references. */
enum reason {
    NONE,
    QUEUES, /* fewer frames than hits that the queues may hold                         */
    LOOPS, /* as many references as differ, or more, are of loops about as long as the pool */
    BOTH,
    EDGE, /* neither; as many come back after about as many others as there are frames */
    N_REASONS
};

/* One with the trace dealt out; hits, and references of such loops, and at the edge, in percent. */
struct play {
    const char *trace;
    uint64_t n_frames;
    uint32_t policy;
    double alone, dealt, loops, edge;
};

/* Plays with the trace dealt out; of those that differ and of the others, how many for which reason. */
struct many {
    struct worst worst;
    uint64_t n, n_off, off[N_REASONS], within[N_REASONS];
};

/* Against one user who plays the trace; against one who does what the users did. */
struct report {
    struct worst batched;
    struct many many;
    struct apart threads, threads_history, woven, woven_history;
    uint64_t n_lru, n_lru_wrong;
};

static double
percent(const struct trace *t, uint64_t hits)
{
    return 100.0 * (double)hits / (double)t->n;
}

static void
apart_note(struct apart *a, const double *points, const char *name,
           const struct xac_frames_config *c)
{
    double median = bench_median(points, PLAYS);

    worst_note(&a->median, fabs(median), name, c->n_frames,
               bench_policy_names[c->policy]);
    a->n++;
    a->n_off += fabs(median) > TOLERANCE_T;
    a->n_low += median < -TOLERANCE_T;
}

/* users_report -- Nb-GCLOCK by threads, or by users woven together. */
static int
users_report(struct apart *trace, struct apart *history, const struct trace *t,
             const char *name, const struct xac_frames_config *c, uint64_t hits,
             bool is_woven)
{
    double points[PLAYS], points_history[PLAYS];
    uint64_t other, again;
    struct history h;
    int rc = bench_history_init(&h, t);

    for (unsigned i = 0; i < PLAYS && rc == 0; i++) {
        rc = is_woven ? bench_trace_play_woven(t, c, THREADS, i + 1, &h, &other)
                      : bench_trace_play_threads(t, c, THREADS, &h, &other);
        rc = rc == 0 ? bench_history_replay(t, c, &h, &again) : rc;
        points[i] = rc == 0 ? percent(t, other) - percent(t, hits) : 0;
        points_history[i] = rc == 0 ? percent(t, other) - percent(t, again) : 0;
    }
    free(h.events);
    if (rc != 0)
        return 1;
    apart_note(trace, points, name, c);
    apart_note(history, points_history, name, c);
    return 0;
}

/* reason_of -- in  off  points by which it differs. */
static enum reason
reason_of(const struct play *p, double off)
{
    bool by_queues = p->n_frames < QUEUED;
    bool by_loops = p->loops > TOLERANCE && p->loops >= off;

    if (by_queues || by_loops)
        return by_queues && by_loops ? BOTH : by_queues ? QUEUES : LOOPS;
    return p->edge > TOLERANCE && p->edge >= off ? EDGE : NONE;
}

/* many_note -- a play with the trace dealt out; prints it if it differs. */
static void
many_note(struct many *m, const struct play *p)
{
    static const char *const words[N_REASONS] = {"none", "queues", "loops",
                                                 "queues, loops", "edge"};
    const char *policy = bench_policy_names[p->policy];
    double off = fabs(p->dealt - p->alone);
    enum reason why = reason_of(p, off);

    worst_note(&m->worst, off, p->trace, p->n_frames, policy);
    m->n++;
    if (off <= TOLERANCE) {
        m->within[why]++;
        return;
    }
    m->n_off++;
    m->off[why]++;
    printf(
        "%9s %s dealt out to %d users: %.2f, not %.2f; %.2f in loops, %.2f at the edge: "
        "%s\n",
        "", policy, THREADS, p->dealt, p->alone, p->loops, p->edge, words[why]);
}

/* many_report -- lines of the end. */
static void
many_report(const struct many *m)
{
    printf(
        "report  batches, the trace dealt out to %d users: %llu of %llu plays more than %.1f points "
        "off, at most %.3f (%s)\n",
        THREADS, (unsigned long long)m->n_off, (unsigned long long)m->n, TOLERANCE,
        m->worst.points, m->worst.where);
    for (int k = 0; k < 2; k++) {
        const uint64_t *n = k == 0 ? m->off : m->within;

        printf(
            "report  reasons of %s: queues %llu, loops %llu, both %llu, edge %llu, none "
            "%llu\n",
            k == 0 ? "those" : "the others", (unsigned long long)n[QUEUES],
            (unsigned long long)n[LOOPS], (unsigned long long)n[BOTH],
            (unsigned long long)n[EDGE], (unsigned long long)n[NONE]);
    }
    printf(
        "        queues: fewer than %d frames, for so many hits %d queues may hold; edge: as many references as "
        "differ, or more, come back after as many other pages as there are frames, give or take %d; loops: after as many "
        "as the time before, too\n",
        QUEUED, THREADS, QUEUED);
}

/* size_report -- one line: each policy's hits; and the comparisons. */
static int
size_report(struct report *r, const struct distances *d, const char *name, uint64_t size)
{
    const struct trace *t = d->trace;
    double loops = percent(t, bench_distances_loop(d, size, QUEUED));
    double edge = percent(t, bench_distances_edge(d, size, QUEUED));
    struct play plays[XAC_FRAMES_N_POLICIES];

    printf("%9llu", (unsigned long long)size);
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config c = {.n_frames = (uint32_t)size, .policy = policy};
        uint64_t hits, batched, many;

        if (bench_trace_play(t, &c, 1, 0, &hits) != 0)
            return 1;
        printf(" %9.2f", percent(t, hits));
        (void)fflush(stdout);
        if (policy == XAC_FRAMES_NB_GCLOCK) {
            if (users_report(&r->threads, &r->threads_history, t, name, &c, hits, false)
                    != 0
                || users_report(&r->woven, &r->woven_history, t, name, &c, hits, true)
                       != 0)
                return 1;
            continue;
        }
        c.batch_queue = BENCH_BATCH_QUEUE;
        c.batch_threshold = BENCH_BATCH_TRY;
        if (bench_trace_play(t, &c, 1, 0, &batched) != 0
            || bench_trace_play(t, &c, THREADS, 0, &many) != 0)
            return 1;
        worst_note(&r->batched, fabs(percent(t, batched) - percent(t, hits)), name, size,
                   bench_policy_names[policy]);
        plays[policy] =
            (struct play){name,  size, policy, percent(t, hits), percent(t, many),
                          loops, edge};
        r->n_lru += policy == XAC_FRAMES_LRU;
        r->n_lru_wrong +=
            policy == XAC_FRAMES_LRU && hits != bench_distances_lru(d, size);
    }
    putchar('\n');
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++)
        if (policy != XAC_FRAMES_NB_GCLOCK)
            many_note(&r->many, &plays[policy]);
    return 0;
}

static int
trace_report(struct report *r, const char *path, const uint64_t *sizes, unsigned n_sizes)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    struct distances d = {.others = NULL};
    struct trace t = {0};
    int rc = bench_trace_load(&t, path);

    if (rc == 0)
        rc = bench_distances(&d, &t);
    if (rc == 0) {
        printf("%s: %zu references to %llu pages; hits in percent\n%9s", name, t.n,
               (unsigned long long)d.n_pages, "frames");
        for (unsigned i = 0; i < XAC_FRAMES_N_POLICIES; i++)
            printf(" %9s", bench_policy_names[i]);
        putchar('\n');
    }
    for (unsigned i = 0; i < n_sizes && rc == 0; i++)
        if (sizes[i] < d.n_pages) /* else all but the first references hit */
            rc = size_report(r, &d, name, sizes[i]);
    free(t.pages);
    bench_distances_free(&d);
    return rc;
}

/* verdict -- a line of the end. */
static void __attribute__((format(printf, 3, 4)))
verdict(bool *allp, bool passes, const char *format, ...)
{
    va_list args;

    *allp = *allp && passes;
    printf("%-7s ", passes ? "pass" : "FAIL");
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* apart_report -- a line, which is to be within the tolerance or is only reported. */
static void
apart_report(bool *allp, const struct apart *a, bool is_judged, const char *what)
{
    bool passes = a->n_off == 0;

    *allp = *allp && (passes || !is_judged);
    printf(
        "%-7s nb-gclock, %d %s, medians of %d plays: %llu of %llu more than %.1f points off "
        "(%llu lower), at most %.3f (%s)\n",
        !is_judged ? "report"
        : passes   ? "pass"
                   : "FAIL",
        THREADS, what, PLAYS, (unsigned long long)a->n_off, (unsigned long long)a->n,
        TOLERANCE_T, (unsigned long long)a->n_low, a->median.points, a->median.where);
}

int
bench_trace_hits(char **names, int n_names, const uint64_t *sizes, unsigned n_sizes)
{
    static const uint64_t usual[] = {50, 100, 200, 500, 1000, 1500, 2000, 2500, 3000};
    struct report r = {0};
    bool all = true;

    if (n_sizes == 0) {
        sizes = usual;
        n_sizes = sizeof usual / sizeof usual[0];
    }
    for (int i = 0; i < n_names; i++)
        if (trace_report(&r, names[i], sizes, n_sizes) != 0)
            return 1;
    verdict(&all, r.n_lru_wrong == 0, "lru: %llu of %llu plays equal to stack distances",
            (unsigned long long)(r.n_lru - r.n_lru_wrong), (unsigned long long)r.n_lru);
    verdict(&all, r.batched.points <= TOLERANCE,
            "batches change at most %.3f points; %.1f are allowed", r.batched.points,
            TOLERANCE);
    many_report(&r.many);
    apart_report(&all, &r.threads_history, true, "threads, against the same history");
    apart_report(&all, &r.threads, false, "threads, against the trace in its order");
    apart_report(&all, &r.woven_history, true,
                 "woven users (seeds 1 to 5), against the same history");
    apart_report(&all, &r.woven, false, "woven users, against the trace in its order");
    return all ? 0 : 1;
}
