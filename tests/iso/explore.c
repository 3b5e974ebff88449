/* SPDX-License-Identifier: MIT */
/*
 * explore.c -- all interleavings of a few transactions, compared with a model.
 *
 * GOAL    the library's modules do what model.h says in every order of events; the
 *         invariants of ctree.h, conflict.h and version.h hold after every step.
 * METHOD  participants are coroutines of one thread (sim.h), which switch between steps
 *         and, a few times a run, at any atomic operation; all schedules of all programs up
 *         to a size are tried, and those of the scenarios below.
 *
 * XAC_LONG=1     larger sizes, and random samples of what is too large for that
 * XAC_SEED=n     of the samples; XAC_RUNS=n how many (200,000 in the long form)
 * XAC_ONLY=text  families and scenarios whose name begins so
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scenarios.h"
#include "search.h"

#define PROGRAM_MAX 48

/* ---- All programs up to a size ----------------------------------------------------------- */

#define FAMILY_ACCESSES 3

/* All programs of a kind: `n_txns` participants, each with `n_accesses` to `n_pages`. */
struct family {
    const char *name;
    int n_txns, n_pages, n_accesses;
    const char
        *accesses;     /* out of r, w, s                                              */
    const char *extra; /* program of one more participant, or NULL                    */
    int preempts, deaths;
    bool is_long;
    uint32_t window;                         /* as in struct scenario                  */
    const char *before[FAMILY_ACCESSES + 1]; /* steps before each access, and the end  */
};

/* A window of the past, and the steps before each access and the end: what the second access does is rolled back;
   so is what the third one does; or its savepoint is released. */
/* clang-format off */
#define PLAIN             0,  {NULL, NULL, NULL, NULL}
#define PAST              16, {NULL, NULL, NULL, NULL}
#define ROLLED_BACK       0,  {NULL, "m ", "u0 ", NULL}
#define ROLLED_BACK_TWICE 0,  {NULL, "m ", "u0 ", "u0 "}
#define RELEASED          0,  {NULL, "m ", "f0 ", NULL}

static const struct family families[] = {
    {"2 txns, 2 pages, 2 accesses", 2, 2, 2, "rw", NULL, 0, 0, false, PLAIN},
    {"2 txns, 3 pages, 2 accesses", 2, 3, 2, "rw", NULL, 0, 0, false, PLAIN},
    {"3 txns, 2 pages, 1 access", 3, 2, 1, "rw", NULL, 0, 0, false, PLAIN},
    {"2 txns, 2 pages, 1 access, 1 preemption", 2, 2, 1, "rws", NULL, 1, 0, false, PLAIN},
    {"2 txns, 2 pages, 1 access, 1 death", 2, 2, 1, "rw", NULL, 0, 1, false, PLAIN},
    {"2 txns, 2 pages, 1 access, gc", 2, 2, 1, "rw", "c", 0, 0, false, PLAIN},
    {"2 txns, 2 pages, 1 access, checkpoint", 2, 2, 1, "rw", "k", 0, 0, false, PLAIN},
    {"2 txns, 2 pages, 1 access, query", 2, 2, 1, "rw", "q r0 r1 e", 0, 0, false, PLAIN},
    {"savepoints: 2 txns, 2 pages, 2 accesses", 2, 2, 2, "rw", NULL, 0, 0, false, ROLLED_BACK},
    {"snapshots: 2 txns, 2 pages, 1 access", 2, 2, 1, "rw", "h0 t0 r0 r1 e", 0, 0, false, PLAIN},
    {"past: 2 txns, 2 pages, 1 access", 2, 2, 1, "rw", "p1 r0 r1 e", 0, 0, false, PAST},
    {"2 txns, 2 pages, 3 accesses", 2, 2, 3, "rw", NULL, 0, 0, true, PLAIN},
    {"2 txns, 3 pages, 3 accesses", 2, 3, 3, "rw", NULL, 0, 0, true, PLAIN},
    {"3 txns, 2 pages, 2 accesses", 3, 2, 2, "rw", NULL, 0, 0, true, PLAIN},
    {"3 txns, 3 pages, 1 access", 3, 3, 1, "rws", NULL, 0, 0, true, PLAIN},
    {"2 txns, 2 pages, 2 accesses, 1 preemption", 2, 2, 2, "rws", NULL, 1, 0, true, PLAIN},
    {"2 txns, 2 pages, 1 access, 2 preemptions", 2, 2, 1, "rw", NULL, 2, 0, true, PLAIN},
    {"3 txns, 2 pages, 1 access, 1 preemption", 3, 2, 1, "rw", NULL, 1, 0, true, PLAIN},
    {"2 txns, 2 pages, 2 accesses, 1 death", 2, 2, 2, "rw", NULL, 0, 1, true, PLAIN},
    {"2 txns, 2 pages, 1 access, death, preemption", 2, 2, 1, "rw", NULL, 1, 1, true, PLAIN},
    {"2 txns, 2 pages, 2 accesses, query", 2, 2, 2, "rw", "q r0 r1 e", 0, 0, true, PLAIN},
    {"2 txns, 2 pages, 2 accesses, gc", 2, 2, 2, "rw", "c", 0, 0, true, PLAIN},
    {"2 txns, 2 pages, 2 accesses, checkpoint", 2, 2, 2, "rw", "k", 0, 0, true, PLAIN},
    {"2 txns, 2 pages, 1 access, checkpoint, preemption", 2, 2, 1, "rw", "k", 1, 0, true, PLAIN},
    {"2 txns, 2 pages, 1 access, gc, preemption", 2, 2, 1, "rw", "c", 1, 0, true, PLAIN},
    {"savepoints: 2 txns, 2 pages, 3 accesses", 2, 2, 3, "rw", NULL, 0, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 3 accesses, twice", 2, 2, 3, "rw", NULL, 0, 0, true, ROLLED_BACK_TWICE},
    {"savepoints: 2 txns, 2 pages, 3 accesses, released", 2, 2, 3, "rw", NULL, 0, 0, true, RELEASED},
    {"savepoints: 3 txns, 2 pages, 2 accesses", 3, 2, 2, "rw", NULL, 0, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 2 accesses, query", 2, 2, 2, "rw", "q r0 r1 e", 0, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 2 accesses, gc", 2, 2, 2, "rw", "c", 0, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 2 accesses, checkpoint", 2, 2, 2, "rw", "k", 0, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 2 accesses, preemption", 2, 2, 2, "rw", NULL, 1, 0, true, ROLLED_BACK},
    {"savepoints: 2 txns, 2 pages, 2 accesses, death", 2, 2, 2, "rw", NULL, 0, 1, true, ROLLED_BACK},
    {"snapshots: 2 txns, 2 pages, 2 accesses", 2, 2, 2, "rw", "h0 t0 r0 r1 e", 0, 0, true, PLAIN},
    {"snapshots: 2 txns, 2 pages, 1 access, preemption", 2, 2, 1, "rw", "h0 t0 r0 r1 e", 1, 0, true, PLAIN},
    {"snapshots: 2 txns, 2 pages, 1 access, death", 2, 2, 1, "rw", "h0 t0 r0 r1 e", 0, 1, true, PLAIN},
    {"snapshots: 2 txns, 2 pages, 1 access, released", 2, 2, 1, "rw", "h0 o0 c t0 r0 e", 1, 0, true, PLAIN},
    {"past: 2 txns, 2 pages, 2 accesses", 2, 2, 2, "rw", "p1 r0 r1 e p2 r0 r1 e", 0, 0, true, PAST},
    {"past: 2 txns, 2 pages, 1 access, gc, preemption", 2, 2, 1, "rw", "c p1 r0 e", 1, 0, true, PAST},
    {"past: 2 txns, 2 pages, 1 access, checkpoint, preemption", 2, 2, 1, "rw", "k p1 r0 e", 1, 0, true, PAST},
};
/* clang-format on */

/* A page permutation, or all of them, of up to three pages. */
static const int permutations[][MODEL_PAGES] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                                {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};

/* permuted -- a program's code with its pages renamed; a digit is kind * pages + page. */
static int
permuted(const struct family *f, int code, const int *permutation)
{
    int base = f->n_pages * (int)strlen(f->accesses);
    int out = 0, scale = 1;

    for (int i = 0; i < f->n_accesses; i++, code /= base, scale *= base) {
        int digit = code % base;

        out +=
            (digit / f->n_pages * f->n_pages + permutation[digit % f->n_pages]) * scale;
    }
    return out;
}

static void
sort(int *code, int n)
{
    for (int i = 1; i < n; i++) {
        for (int k = i; k > 0 && code[k] < code[k - 1]; k--) {
            int swap = code[k];

            code[k] = code[k - 1];
            code[k - 1] = swap;
        }
    }
}

/* is_canonical -- the first of those that differ by names of pages and participants. */
static bool
is_canonical(const struct family *f, const int *code)
{
    int n = f->n_pages == 3 ? 6 : 2;

    for (int i = 0; i < n; i++) {
        int other[MODEL_ACTORS];
        int k = 0;

        for (int t = 0; t < f->n_txns; t++)
            other[t] = permuted(f, code[t], permutations[i]);
        sort(other, f->n_txns);
        while (k < f->n_txns && other[k] == code[k])
            k++;
        if (k < f->n_txns && other[k] < code[k])
            return false;
    }
    return true;
}

static const char *
before(const struct family *f, int i)
{
    return f->before[i] != NULL ? f->before[i] : "";
}

static void
spell(const struct family *f, int code, char *out)
{
    int base = f->n_pages * (int)strlen(f->accesses);

    out += sprintf(out, "b");
    for (int i = 0; i < f->n_accesses; i++, code /= base)
        out += sprintf(out, " %s%c%d", before(f, i),
                       f->accesses[code % base / f->n_pages], code % base % f->n_pages);
    (void)sprintf(out, " %se", before(f, f->n_accesses));
}

/* next_codes -- the next non-decreasing row of codes; false: that was the last. */
static bool
next_codes(int *code, int n, int limit)
{
    int i = n - 1;

    while (i >= 0 && code[i] == limit - 1)
        i--;
    if (i < 0)
        return false;
    code[i]++;
    for (int k = i + 1; k < n; k++)
        code[k] = code[i];
    return true;
}

static void
explore_family(const struct family *f, enum model_policy policy, struct tally *t)
{
    int limit = 1, code[MODEL_ACTORS] = {0};
    char program[MODEL_ACTORS][PROGRAM_MAX];

    for (int i = 0; i < f->n_accesses; i++)
        limit *= f->n_pages * (int)strlen(f->accesses);
    do {
        struct scenario s = {.name = f->name,
                             .policy = policy,
                             .preempts = f->preempts,
                             .deaths = f->deaths,
                             .window = f->window,
                             .mortals = (1u << f->n_txns) - 1};

        if (!is_canonical(f, code))
            continue;
        for (int i = 0; i < f->n_txns; i++) {
            spell(f, code[i], program[i]);
            s.program[i] = program[i];
        }
        s.program[f->n_txns] = f->extra;
        search_all(&s, t);
    } while (next_codes(code, f->n_txns, limit));
}

/* ---- Samples ----------------------------------------------------------------------------- */

/* one_in -- true once in n times. */
static bool
one_in(uint64_t *seed, uint64_t n)
{
    return search_random_below(seed, n) == 0;
}

/* random_query -- the begin of one, also at a snapshot that any may hold, and in the past; ret where to go on. */
static char *
random_query(uint64_t *seed, char *out)
{
    switch (search_random_below(seed, 4)) {
    case 0:
        return out + sprintf(out, "t%d ", (int)search_random_below(seed, MODEL_HELD));
    case 1:
        return out + sprintf(out, "p%d ", (int)search_random_below(seed, 4));
    default:
        return out + sprintf(out, "q ");
    }
}

/* random_update -- accesses of a transaction, with savepoints among them. */
static char *
random_update(uint64_t *seed, char *out)
{
    static const char kinds[] = "rrrrwwwws";
    uint64_t n_accesses = 1 + search_random_below(seed, 3);
    int n_marks = 0;

    for (uint64_t i = 0; i < n_accesses; i++) {
        if (n_marks < MODEL_MARKS && one_in(seed, 3)) {
            out += sprintf(out, "m ");
            n_marks++;
        }
        out += sprintf(out, "%c%d ", kinds[search_random_below(seed, 9)],
                       (int)search_random_below(seed, MODEL_PAGES));
        if (n_marks > 0 && one_in(seed, 2))
            out += sprintf(out, "%c%d ", one_in(seed, 4) ? 'f' : 'u',
                           (int)search_random_below(seed, (uint64_t)n_marks));
    }
    if (one_in(seed, 12))
        out += sprintf(out, "a ");
    return out;
}

/* random_program -- two transactions, queries or other steps with a few accesses; of the snapshots
   the participant takes one, and may release any. */
static void
random_program(uint64_t *seed, int a, char *out)
{
    bool may_hold = true;

    for (int n = 0; n < 2; n++) {
        bool is_query = one_in(seed, 3);

        if (one_in(seed, 5))
            out += sprintf(out, "%c ", "ckx"[search_random_below(seed, 3)]);
        if (one_in(seed, 8))
            out += sprintf(out, "o%d ", (int)search_random_below(seed, MODEL_HELD));
        out = is_query ? random_query(seed, out) : out + sprintf(out, "b ");
        for (int i = 0; i < 2 && is_query; i++)
            out += sprintf(out, "r%d ", (int)search_random_below(seed, MODEL_PAGES));
        if (!is_query)
            out = random_update(seed, out);
        else if (may_hold && one_in(seed, 4)) {
            out += sprintf(out, "h%d ", a);
            may_hold = false;
        }
        out += sprintf(out, "e ");
        if (may_hold && one_in(seed, 4)) {
            out += sprintf(out, "h%d ", a);
            may_hold = false;
        }
    }
}

static void
explore_samples(uint64_t n, uint64_t *seed, struct tally *t)
{
    char program[3][2 * PROGRAM_MAX];

    for (uint64_t i = 0; i < n; i += 20) {
        struct scenario s = {.name = "sample",
                             .policy =
                                 (enum model_policy)search_random_below(seed,
                                                                        MODEL_POLICIES),
                             .preempts = (int)search_random_below(seed, 4),
                             .deaths = search_random_below(seed, 3) == 0,
                             .window = (uint32_t)search_random_below(seed, 3) * 8,
                             .mortals = 7};

        for (int a = 0; a < 3; a++) {
            random_program(seed, a, program[a]);
            s.program[a] = program[a];
        }
        search_random(&s, 20, seed, t);
    }
}

/* ---- All of it --------------------------------------------------------------------------- */

static double
now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static bool
is_wanted(const char *name)
{
    const char *only = getenv("XAC_ONLY");

    return only == NULL || strncmp(name, only, strlen(only)) == 0;
}

static void
report(const char *name, const struct tally *t, double since, struct tally *all)
{
    printf("%-62s %6" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8" PRIu64
           " %8" PRIu64 " %6.1f\n",
           name, t->scenarios, t->schedules, t->pruned, t->states, t->commits, t->aborts,
           now_s() - since);
    (void)fflush(stdout);
    all->scenarios += t->scenarios;
    all->schedules += t->schedules;
    all->pruned += t->pruned;
    all->states += t->states;
    all->commits += t->commits;
    all->aborts += t->aborts;
}

/* The first policy is the default; the others are told apart by a letter. */
static const char *const policy_marks[MODEL_POLICIES] = {
    "", " [self-abort]", " [selfish]", " [youngest]", " [optimistic]", " [serial]"};

static void
explore_scenarios(enum model_policy policy, bool is_long, struct tally *all)
{
    for (const struct scenario *listed = scenarios; listed->name != NULL; listed++) {
        struct scenario s = *listed;
        struct tally t = {0};
        double since = now_s();
        char name[96];

        (void)snprintf(name, sizeof name, "%s%s", s.name, policy_marks[policy]);
        /* Those of no particular policy are run under the others in the long form. */
        if ((s.policy != MODEL_OLDEST_WINS && s.policy != policy)
            || (s.policy != policy && !is_long) || (s.is_long && !is_long)
            || (s.stays_mapped && policy != MODEL_OLDEST_WINS && policy != MODEL_SERIAL)
            || !is_wanted(name))
            continue;
        s.policy = policy;
        search_all(&s, &t);
        report(name, &t, since, all);
    }
}

static void
explore_families(enum model_policy policy, bool is_long, struct tally *all)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct tally t = {0};
        double since = now_s();
        char name[96];

        (void)snprintf(name, sizeof name, "%s%s", families[i].name, policy_marks[policy]);
        if ((families[i].is_long && !is_long) || !is_wanted(name))
            continue;
        explore_family(&families[i], policy, &t);
        report(name, &t, since, all);
    }
}

int
main(void)
{
    bool is_long = number("XAC_LONG", 0) != 0;
    uint64_t seed = number("XAC_SEED", 20051),
             runs = number("XAC_RUNS", is_long ? 200000 : 4000);
    struct tally all = {0};
    double start = now_s();

    search_open();
    printf("seed %" PRIu64 "\n%-62s %6s %9s %9s %9s %8s %8s %6s\n", seed, "", "progr.",
           "schedules", "cut", "states", "commits", "aborts", "s");
    for (int policy = 0; policy < MODEL_POLICIES; policy++) {
        explore_scenarios((enum model_policy)policy, is_long, &all);
        explore_families((enum model_policy)policy, is_long, &all);
    }
    if (is_wanted("sample")) {
        struct tally t = {0};
        double since = now_s();

        explore_samples(runs, &seed, &t);
        report("samples: 3 participants, 3 pages, 2 txns each", &t, since, &all);
    }
    report("all", &all, start, &(struct tally){0});
    search_close(true);
    return all.schedules > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
