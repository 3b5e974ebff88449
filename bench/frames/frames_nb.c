/* SPDX-License-Identifier: MIT */
/*
 * frames_nb.c -- rows of Nb-GCLOCK that compare threads: scaling, waiting, stopped threads, reads.
 *
 * "ttas" is a lock that spins with exponential back-off, as the papers' baselines have it;
 * "mutex" one that sleeps.
 */
#include <config.h>

#include <math.h>
#include <string.h>

#include "bench/frames/frames_table.h"
#include "bench/kit/util.h"

#define N_RESIDENT 32768u
#define N_LARGE    80000u
#define N_SMALL    8192u

/* resident -- all pages in frames. */
static struct load
resident(const struct table *t, uint32_t policy, uint32_t lock, unsigned n_threads)
{
    return (struct load){.config = {.n_pages = N_RESIDENT,
                                    .n_frames = N_RESIDENT,
                                    .policy = policy,
                                    .lock = lock},
                         .exponent = 0.14,
                         .scan_percent = 20,
                         .n_threads = n_threads,
                         .seconds = t->seconds};
}

/* missing -- a tenth of the pages are in frames; what is missing costs no read. */
static struct load
missing(const struct table *t, uint32_t policy, uint32_t lock, unsigned n_threads)
{
    struct load l = resident(t, policy, lock, n_threads);

    l.config.n_pages = N_LARGE;
    l.config.n_frames = N_SMALL;
    return l;
}

/* ---- nb-1, nb-2 ------------------------------------------------------------------------ */

static int
row_resident(struct table *t)
{
    enum {
        NB2,
        NB8,
        NB64,
        LRU2,
        LRU8,
        LRU64,
        MUTEX8,
        CLOCK8,
        TABLE8,
        N
    };
    struct load l[N] = {
        [NB2] = resident(t, XAC_FRAMES_NB_GCLOCK, 0, 2),
        [NB8] = resident(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [NB64] = resident(t, XAC_FRAMES_NB_GCLOCK, 0, 64),
        [LRU2] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SPIN, 2),
        [LRU8] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SPIN, 8),
        [LRU64] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SPIN, 64),
        [MUTEX8] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SLEEP, 8),
        [CLOCK8] = resident(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SPIN, 8),
        [TABLE8] = resident(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SPIN, 8),
    };
    struct load_got g[N];
    double nb, lru, apart;

    l[TABLE8].table_lock = true;
    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    nb = bench_load_ratio(&g[NB64], &g[NB2]);
    lru = bench_load_ratio(&g[LRU64], &g[LRU2]);
    apart = bench_load_ratio(&g[NB8], &g[LRU8]);
    bench_row(
        t, "nb-1", "all pages resident: more threads cost nothing, a lock does",
        "nb T64/T2 >= 0.7; lru ttas T64/T2 <= 0.2; nb >= 5 x lru ttas at T8",
        ROW_IF(nb >= 0.7 && lru <= 0.2 && apart >= 5),
        "nb T64/T2 %.2f, lru ttas T64/T2 %.3f; Mfix/s at T8: nb %.2f, lru ttas %.2f (nb "
        "%.1f x), lru mutex %.2f, gclock %.2f, gclock with a locked table %.2f",
        nb, lru, g[NB8].mfix_s, g[LRU8].mfix_s, apart, g[MUTEX8].mfix_s, g[CLOCK8].mfix_s,
        g[TABLE8].mfix_s);
    return 0;
}

static int
row_missing(struct table *t)
{
    enum {
        NB2,
        NB8,
        NB32,
        G2,
        G8,
        G32,
        N
    };
    struct load l[N] = {
        [NB2] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 2),
        [NB8] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [NB32] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 32),
        [G2] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SPIN, 2),
        [G8] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SPIN, 8),
        [G32] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SPIN, 32),
    };
    struct load_got g[N];

    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    bench_row(t, "nb-1b", "the other reading of resident: misses without a read", "none",
              ROW_REPORT,
              "nb over gclock ttas: T2 %.1f, T8 %.1f, T32 %.1f x (%.0f %% hits)",
              bench_load_ratio(&g[NB2], &g[G2]), bench_load_ratio(&g[NB8], &g[G8]),
              bench_load_ratio(&g[NB32], &g[G32]), g[NB8].hit_percent);
    return 0;
}

static int
row_waits(struct table *t)
{
    enum {
        NB8,
        NBM8,
        LRU8,
        LRU64,
        G8,
        N
    };
    struct load l[N] = {
        [NB8] = resident(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [NBM8] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [LRU8] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SLEEP, 8),
        [LRU64] = resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SLEEP, 64),
        [G8] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SLEEP, 8),
    };
    struct load_got g[N];

    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    bench_row(
        t, "nb-2", "nobody waits for a lock",
        "nb: 0 locks; lru mutex resident and gclock mutex missing wait >= 40 % of the time at "
        "T >= 8",
        ROW_IF(GOT_LOCKS(&g[NB8]) + GOT_LOCKS(&g[NBM8]) == 0 && g[LRU8].lock_share >= 0.4
               && g[LRU64].lock_share >= 0.4 && g[G8].lock_share >= 0.4),
        "locks per fix: nb %.0f, lru %.2f; waiting: lru T8 %.0f %%, T64 %.0f %%, gclock T8 "
        "%.0f %%",
        GOT_LOCKS(&g[NB8]) + GOT_LOCKS(&g[NBM8]), GOT_LOCKS(&g[LRU8]) / 1e6,
        100 * g[LRU8].lock_share, 100 * g[LRU64].lock_share, 100 * g[G8].lock_share);
    return 0;
}

/* ---- nb-3, nb-4 ------------------------------------------------------------------------ */

static int
row_convoy(struct table *t)
{
    enum {
        NB8,
        NB32,
        G8,
        G32,
        N
    };
    struct load l[N] = {
        [NB8] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [NB32] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 32),
        [G8] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SLEEP, 8),
        [G32] = missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SLEEP, 32),
    };
    struct load_got g[N];
    double few, many;

    for (int i = 0; i < N; i++) {
        l[i].harm = HARM_SLEEP;
        l[i].harm_us = 1000;
        l[i].harm_every = 1000;
        l[i].harm_at = i < G8 ? XAC_FRAMES_AT_TAKEN : XAC_FRAMES_AT_LOCKED;
    }
    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    few = bench_load_ratio(&g[NB8], &g[G8]);
    many = bench_load_ratio(&g[NB32], &g[G32]);
    bench_row(t, "nb-3", "who sleeps 1 ms in an eviction, once in 1000, holds up nobody",
              "nb over gclock mutex >= 2.5 at T8, >= 4 at T32",
              ROW_IF(few >= 2.5 && many >= 4),
              "T8 %.2f against %.2f Mfix/s: %.1f x; T32 %.2f against %.2f: %.1f x",
              g[NB8].mfix_s, g[G8].mfix_s, few, g[NB32].mfix_s, g[G32].mfix_s, many);
    return 0;
}

/* Where a thread is stopped; the others' share of their normal speed. */
struct stopped {
    const char *name;
    enum load_stop stop;
    enum xac_frames_step step;
    uint32_t policy;
    double share;
};

static int
stopped_measure(struct table *t, struct stopped *s)
{
    struct load l = missing(t, s->policy, XAC_FRAMES_SLEEP, 4);
    double shares[3];

    l.harm = s->stop == STOP_AT_STEP ? HARM_STOP : HARM_NONE;
    l.harm_at = s->step;
    l.config.page_bytes = s->stop == STOP_READ || s->stop == STOP_WRITE ? 64 : 0;
    if (s->stop == STOP_AT_STEP && s->step == XAC_FRAMES_AT_RESERVED) {
        l.cold = true;
        l.config.n_frames = 65536; /* not full at once */
    }
    for (int i = 0; i < 3; i++)
        if (bench_load_stopped(&l, s->stop, t->quick ? 0.05 : 0.6, &shares[i]) != 0)
            return 1;
    s->share = bench_median(shares, 3);
    return 0;
}

static int
row_stopped(struct table *t)
{
    struct stopped all[] = {
        {.name = "with a page fixed", .stop = STOP_FIXED},
        {.name = "vacancy reserved", .step = XAC_FRAMES_AT_RESERVED},
        {.name = "retired", .step = XAC_FRAMES_AT_RETIRED},
        {.name = "slot taken", .step = XAC_FRAMES_AT_TAKEN},
        {.name = "before put", .step = XAC_FRAMES_AT_PUT},
        {.name = "reading", .stop = STOP_READ},
        {.name = "writing", .stop = STOP_WRITE},
        {.name = "gclock locked",
         .step = XAC_FRAMES_AT_LOCKED,
         .policy = XAC_FRAMES_GCLOCK},
        {.name = "lru locked", .step = XAC_FRAMES_AT_LOCKED, .policy = XAC_FRAMES_LRU},
    };
    const size_t n = sizeof all / sizeof all[0], n_nb = n - 2;
    char text[300] = "";
    bool passes = true;

    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);

        if (stopped_measure(t, &all[i]) != 0)
            return 1;
        passes = passes && (i < n_nb ? all[i].share >= 0.5 : all[i].share < 0.01);
        (void)snprintf(text + at, sizeof text - at, "%s%s %.0f %%", at == 0 ? "" : ", ",
                       all[i].name, 100 * all[i].share);
    }
    bench_row(t, "nb-4", "a thread is stopped at a step: what three others do meanwhile",
              "nb >= 50 % of normal at every step; with a lock 0", ROW_IF(passes), "%s",
              text);
    return 0;
}

/* ---- nb-5, nb-6 ------------------------------------------------------------------------ */

/* reading -- each miss is a read of 0.2 ms. */
static struct load
reading(const struct table *t, unsigned n_threads, bool seek_lock)
{
    struct load l = missing(t, XAC_FRAMES_NB_GCLOCK, 0, n_threads);

    l.config.page_bytes = 64;
    l.read_us = 200;
    l.seek_lock = seek_lock;
    return l;
}

static int
row_reads(struct table *t)
{
    enum {
        P1,
        P8,
        P32,
        S1,
        S8,
        S32,
        N
    };
    struct load l[N] = {
        [P1] = reading(t, 1, false),   [P8] = reading(t, 8, false),
        [P32] = reading(t, 32, false), [S1] = reading(t, 1, true),
        [S8] = reading(t, 8, true),    [S32] = reading(t, 32, true),
    };
    struct load_got g[N];
    double few, many;

    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    few = bench_load_ratio(&g[P8], &g[S8]);
    many = bench_load_ratio(&g[P32], &g[S32]);
    bench_row(
        t, "nb-5", "reads of 0.2 ms at once, against one after the other",
        ">= 4 x at T8, >= 12 x at T32", ROW_IF(few >= 4 && many >= 12),
        "kfix/s T1 %.1f against %.1f: %.1f x; T8 %.1f against %.1f: %.1f x; T32 %.1f "
        "against %.1f: %.1f x",
        g[P1].mfix_s * 1e3, g[S1].mfix_s * 1e3, bench_load_ratio(&g[P1], &g[S1]),
        g[P8].mfix_s * 1e3, g[S8].mfix_s * 1e3, few, g[P32].mfix_s * 1e3,
        g[S32].mfix_s * 1e3, many);
    return 0;
}

#define VAIN(i)  ((unsigned long long)g[i].stats.reads_duplicate)
#define READS(i) ((unsigned long long)g[i].stats.reads)

/*
 * grows -- whether b's share of useless reads is not below a's, but by the chance that rare events
 * leave: two standard deviations of the difference, of counts that are Poisson's.
 */
static bool
grows(const struct load_got *a, const struct load_got *b)
{
    double reads_a = (double)a->stats.reads, reads_b = (double)b->stats.reads;
    double vain_a = (double)a->stats.reads_duplicate;
    double vain_b = (double)b->stats.reads_duplicate;
    /* A count of none has a deviation, too. */
    double deviation =
        sqrt((vain_a + 1) / (reads_a * reads_a) + (vain_b + 1) / (reads_b * reads_b));

    return vain_b / reads_b >= vain_a / reads_a - 2 * deviation;
}

static int
row_duplicates(struct table *t)
{
    enum {
        T2,
        T8,
        T32,
        T64,
        N
    };
    struct load l[N] = {
        [T2] = reading(t, 2, false),
        [T8] = reading(t, 8, false),
        [T32] = reading(t, 32, false),
        [T64] = reading(t, 64, false),
    };
    struct load_got g[N];

    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    bench_row(
        t, "nb-6", "reads in vain, since another thread has read the same page",
        "< 2 %, growing with T (within two deviations of the counts)",
        ROW_IF(g[T64].duplicate_percent < 2 && grows(&g[T2], &g[T8])
               && grows(&g[T8], &g[T32]) && grows(&g[T32], &g[T64])),
        "T2 %.3f %%, T8 %.3f %%, T32 %.3f %%, T64 %.3f %%; %llu, %llu, %llu, %llu of "
        "%llu, %llu, %llu, %llu",
        g[T2].duplicate_percent, g[T8].duplicate_percent, g[T32].duplicate_percent,
        g[T64].duplicate_percent, VAIN(T2), VAIN(T8), VAIN(T32), VAIN(T64), READS(T2),
        READS(T8), READS(T32), READS(T64));
    return 0;
}

/* ---- nb-10, nb-11, nb-13, nb-15 ----------------------------------------------------------- */

static int
row_cpu(struct table *t)
{
    struct load l[2] = {missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
                        missing(t, XAC_FRAMES_GCLOCK, XAC_FRAMES_SLEEP, 8)};
    struct load_got g[2];

    if (bench_load_run(l, 2, t->rounds, g) != 0)
        return 1;
    bench_row(t, "nb-10", "processor time per fix, misses, T8",
              "nb over gclock mutex <= 2.0", ROW_IF(g[0].cpu_ns <= 2 * g[1].cpu_ns),
              "%.0f against %.0f ns: %.2f x", g[0].cpu_ns, g[1].cpu_ns,
              g[0].cpu_ns / g[1].cpu_ns);
    return 0;
}

static int
row_striped(struct table *t)
{
    enum {
        P2,
        P8,
        S2,
        S8,
        N
    };
    struct load l[N] = {
        [P2] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 2),
        [P8] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
        [S2] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 2),
        [S8] = missing(t, XAC_FRAMES_NB_GCLOCK, 0, 8),
    };
    struct load_got g[N];
    double few, many;

    l[P2].config.hand_cells = l[P8].config.hand_cells = 1;
    l[S2].config.hand_cells = l[S8].config.hand_cells = 8;
    if (bench_load_run(l, N, t->rounds, g) != 0)
        return 1;
    few = bench_load_ratio(&g[S2], &g[P2]);
    many = bench_load_ratio(&g[S8], &g[P8]);
    bench_row(t, "nb-11",
              "a hand of eight words loses nothing here (gains on many cores)",
              "striped >= 0.9 x plain at T2 and T8, misses",
              ROW_IF(few >= 0.9 && many >= 0.9), "T2 %.2f, T8 %.2f of the plain hand",
              few, many);
    return 0;
}

static int
row_bp_misses(struct table *t)
{
    static const unsigned threads[] = {8, 32};
    double mfix[2][2][3]; /* threads; resident, half; nb, lru, wrapped lru */
    double hits = 0;

    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++) {
            struct load l[3] = {resident(t, XAC_FRAMES_NB_GCLOCK, 0, threads[k]),
                                resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SPIN, threads[k]),
                                resident(t, XAC_FRAMES_LRU, XAC_FRAMES_SPIN, threads[k])};
            struct load_got g[3];

            l[2].config.batch_queue = 64;
            l[2].config.batch_threshold = 32;
            for (int i = 0; i < 3 && half != 0; i++)
                l[i].config.n_frames = N_RESIDENT / 8;
            if (bench_load_run(l, 3, t->rounds, g) != 0)
                return 1;
            for (int i = 0; i < 3; i++)
                mfix[k][half][i] = g[i].mfix_s;
            hits = g[1].hit_percent;
        }
    bench_row(
        t, "nb-13", "BP-Wrapper without lists of free frames helps hits, not misses",
        "none", ROW_REPORT,
        "Mfix/s nb, lru ttas, wrapped: all hits T8 %.2f %.2f %.2f, T32 %.2f %.2f %.2f; "
        "%.0f %% hits T8 %.2f %.2f %.2f, T32 %.2f %.2f %.2f",
        mfix[0][0][0], mfix[0][0][1], mfix[0][0][2], mfix[1][0][0], mfix[1][0][1],
        mfix[1][0][2], hits, mfix[0][1][0], mfix[0][1][1], mfix[0][1][2], mfix[1][1][0],
        mfix[1][1][1], mfix[1][1][2]);
    return 0;
}

static int
row_cores(struct table *t)
{
    bench_row(
        t, "nb-15", "speed-up with processors, resident and reading",
        "nb >= 0.7 x linear at 16; locks flat past 16", ROW_NOT_RUN,
        "this needs 16 cores or more, as do the papers' curves up to 64 processors");
    return 0;
}

const struct row bench_nb_rows[] = {
    {"nb-1", row_resident},
    {"nb-1b", row_missing},
    {"nb-2", row_waits},
    {"nb-3", row_convoy},
    {"nb-4", row_stopped},
    {"nb-5", row_reads},
    {"nb-6", row_duplicates},
    {"nb-7", bench_row_instructions},
    {"nb-8", bench_row_hits},
    {"nb-9", bench_row_order},
    {NULL, NULL},
};
const struct row bench_nb_more_rows[] = {
    {"nb-10", row_cpu},
    {"nb-11", row_striped},
    {"nb-12", bench_row_cap},
    {"nb-13", row_bp_misses},
    {"nb-14", bench_row_tree},
    {"nb-15", row_cores},
    {NULL, NULL},
};
