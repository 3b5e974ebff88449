/* SPDX-License-Identifier: MIT */
/*
 * long_query.c -- one long query beside four writers: what it sees, and what it costs them.
 *
 * GOAL    the query sees the state of its begin from its first read to its last, however many
 *         commits go by; measured, not judged: the writers' throughput beside it.
 * METHOD  Writers commit without pause, each on pages of its own: transaction n of a writer
 *         stores n in its page 0 and in some other pages that follow from n.  Spells without
 *         and with a query take turns.  The query reads all pages again and again, with pauses
 *         so that it takes no processor from the writers, and compares each page with what the
 *         writers' numbers of the first read say: a state that existed, with every number
 *         between what had been acknowledged before the begin and what had been begun after
 *         it.  Throughput is counted each half second; medians are compared.
 *
 * long_query [--durable] [--seconds S] [--rounds R]
 *   S seconds of each query (1), R rounds (1), each a spell without and one with a query.
 * Exit code 1 if the query saw anything else.  XAC_SEED.
 */
#include <config.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#define N_WRITERS 4
#define STRETCH   64 /* pages of a writer                                              */
#define STORES    3  /* of a transaction, besides page 0                               */
#define N_PAGES   (N_WRITERS * STRETCH)
#define WINDOW_S  0.5
#define WINDOWS   4096
#define PASSES    100 /* of the query over all pages, so that pauses are short         */

/* Shared with the writers. */
struct board {
    _Atomic uint64_t stop;
    _Atomic uint64_t begun[N_WRITERS], committed[N_WRITERS], aborted[N_WRITERS];
};

/* Commits per second of the windows of all spells of a kind. */
struct rates {
    double rate[WINDOWS];
    size_t n;
};

static struct board *board;
static uint64_t *base;
static int mode = NONDURABLE;

static volatile uint64_t *
cell(uint64_t writer, uint64_t page)
{
    return &base[(writer * STRETCH + page) * (env_page() / 8)];
}

/* The k-th page that transaction `number` of a writer stores its number in. */
static uint64_t
page_of(uint64_t writer, uint64_t number, uint64_t k)
{
    uint64_t rnd = env_seed() + writer * 1000003 + number * 7919 + k;

    return k == 0 ? 0 : 1 + rnd_next(&rnd) % (STRETCH - 1);
}

static void
write_on(void *arg)
{
    uint64_t w = *(const uint64_t *)arg;

    base = env_attach(mode, N_PAGES);
    for (uint64_t n = 1; word_load(&board->stop) == 0; n++) {
        int rc;

        word_store(&board->begun[w], n);
        do {
            must_ok(xbegin());
            for (uint64_t k = 0; k <= STORES; k++)
                *cell(w, page_of(w, n, k)) = n;
            rc = xend();
            word_add(&board->aborted[w], rc == ABORTED);
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&board->committed[w], n);
    }
    env_detach();
}

/* ---- the query ------------------------------------------------------------------------------ */

/* What the pages hold after so many transactions of each writer. */
static void
model_of(const uint64_t *numbers, uint64_t value[N_WRITERS][STRETCH])
{
    memset(value, 0, sizeof(uint64_t) * N_PAGES);
    for (uint64_t w = 0; w < N_WRITERS; w++) {
        for (uint64_t n = 1; n <= numbers[w]; n++) {
            for (uint64_t k = 0; k <= STORES; k++)
                value[w][page_of(w, n, k)] = n;
        }
    }
}

static void
read_numbers(uint64_t *begun, uint64_t *committed)
{
    for (uint64_t w = 0; w < N_WRITERS; w++) {
        if (committed != NULL)
            committed[w] = word_load(&board->committed[w]);
        if (begun != NULL)
            begun[w] = word_load(&board->begun[w]);
    }
}

static uint64_t
total_commits(void)
{
    uint64_t n = 0;

    for (uint64_t w = 0; w < N_WRITERS; w++)
        n += word_load(&board->committed[w]);
    return n;
}

/* Count commits until `until`; in a window of WINDOW_S each. */
struct counting {
    double since;
    uint64_t commits;
    struct rates *rates;
};

static void
count_windows(struct counting *c)
{
    double now = env_now();

    if (now - c->since < WINDOW_S)
        return;
    if (c->rates->n < WINDOWS)
        c->rates->rate[c->rates->n++] =
            (double)(total_commits() - c->commits) / (now - c->since);
    c->since = now;
    c->commits = total_commits();
}

static struct counting
counting_start(struct rates *rates)
{
    return (
        struct counting){.since = env_now(), .commits = total_commits(), .rates = rates};
}

static void
print_stats(const char *when)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    printf("  %-7s %8" PRIu64 " versions live, %6" PRIu64 " held for readers, %6" PRIu64
           " of them for the oldest; it is %8" PRIu64 " commits and %5.1f s old\n",
           when, s.versions_live, s.versions_held, s.versions_oldest, s.oldest_behind,
           (double)s.oldest_age_ns * 1e-9);
}

/* Read page after page, all of them PASSES times, in `seconds`; ret pages that were wrong. */
static uint64_t
read_on(double seconds, uint64_t value[N_WRITERS][STRETCH], struct counting *counting)
{
    uint64_t n_wrong = 0, n_reads = 0;
    double start = env_now();

    while (env_now() - start < seconds) {
        double due = start + seconds * (double)n_reads / (PASSES * N_PAGES);
        uint64_t w = n_reads / STRETCH % N_WRITERS, page = n_reads % STRETCH;

        count_windows(counting);
        if (env_now() < due) {
            proc_sleep_us(2000);
            continue;
        }
        if (*cell(w, page) != value[w][page]) {
            n_wrong++;
            fprintf(stderr,
                    "writer %" PRIu64 ", page %" PRIu64 ": %" PRIu64 ", not %" PRIu64
                    "\n",
                    w, page, *cell(w, page), value[w][page]);
        }
        n_reads++;
        if (n_reads == (PASSES / 2) * N_PAGES)
            print_stats("during");
    }
    printf("  query: %" PRIu64 " reads of %d pages in %.1f s, %" PRIu64 " wrong\n",
           n_reads, N_PAGES, env_now() - start, n_wrong);
    return n_wrong;
}

/* A spell with a query; ret what it saw that was wrong. */
static uint64_t
spell_with(double seconds, struct rates *rates)
{
    static uint64_t value[N_WRITERS][STRETCH];
    uint64_t committed[N_WRITERS], begun[N_WRITERS], numbers[N_WRITERS];
    uint64_t n_wrong = 0;
    struct counting counting;

    print_stats("before");
    read_numbers(NULL, committed);
    must_ok(xbeginQuery());
    read_numbers(begun, NULL);
    counting = counting_start(rates);
    for (uint64_t w = 0; w < N_WRITERS; w++) {
        numbers[w] = *cell(w, 0);
        n_wrong += numbers[w] < committed[w] || numbers[w] > begun[w];
    }
    model_of(numbers, value);
    n_wrong += read_on(seconds, value, &counting);
    must_ok(xendQuery());
    return n_wrong;
}

static void
spell_without(double seconds, struct rates *rates)
{
    struct counting counting = counting_start(rates);
    double end = env_now() + seconds;

    while (env_now() < end) {
        count_windows(&counting);
        proc_sleep_us(2000);
    }
}

/* ---- the program ---------------------------------------------------------------------------- */

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(struct rates *r)
{
    qsort(r->rate, r->n, sizeof *r->rate, by_size);
    return r->n == 0 ? 0 : r->rate[r->n / 2];
}

static uint64_t
run(double seconds, unsigned rounds)
{
    static struct rates without, with;
    uint64_t numbers[N_WRITERS], n_wrong = 0;
    pid_t pid[N_WRITERS];

    board = proc_shared(sizeof *board);
    for (uint64_t w = 0; w < N_WRITERS; w++) {
        numbers[w] = w;
        pid[w] = proc_spawn(write_on, &numbers[w]);
    }
    base = env_attach(mode, N_PAGES);
    for (uint64_t w = 0; w < N_WRITERS; w++)
        proc_await(&board->committed[w], 1, 60);
    for (unsigned r = 0; r < rounds; r++) {
        struct rates a = {.n = 0}, b = {.n = 0};

        spell_without(seconds, &a);
        n_wrong += spell_with(seconds, &b);
        memcpy(&without.rate[without.n], a.rate, a.n * sizeof *a.rate);
        memcpy(&with.rate[with.n], b.rate, b.n * sizeof *b.rate);
        without.n += a.n;
        with.n += b.n;
        printf("round %u: %.0f commits/s without, %.0f with, ratio %.3f\n", r + 1,
               median(&a), median(&b), median(&b) / median(&a));
    }
    print_stats("after");
    word_store(&board->stop, 1);
    for (uint64_t w = 0; w < N_WRITERS; w++)
        proc_join(pid[w]);
    print_stats("at rest");
    env_detach();
    printf("%s, %d writers: %.0f commits/s without a query, %.0f beside one of %.0f s, "
           "ratio of medians %.3f, of %zu and %zu windows; %" PRIu64 " commits, %" PRIu64
           " wrong reads\n",
           mode == NONDURABLE ? "nondurable" : "durable", N_WRITERS, median(&without),
           median(&with), seconds, median(&with) / median(&without), without.n, with.n,
           total_commits(), n_wrong);
    return n_wrong;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"durable", no_argument, NULL, 'd'},
        {"seconds", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {0},
    };
    double seconds = 1;
    unsigned rounds = 1;
    uint64_t n_wrong;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'd')
            mode = DURABLE;
        else if (c == 's')
            seconds = strtod(optarg, NULL);
        else if (c == 'r')
            rounds = (unsigned)strtoul(optarg, NULL, 0);
        else
            return 2;
    }
    if (!(seconds >= 1) || rounds < 1 || 2 * seconds * rounds / WINDOW_S > WINDOWS) {
        fprintf(stderr, "long_query: from 1 s, from 1 round, up to %g s in all\n",
                WINDOWS * WINDOW_S);
        return 2;
    }
    env_open();
    n_wrong = run(seconds, rounds);
    env_close();
    return n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
