/* SPDX-License-Identifier: MIT */
/*
 * stress_iso.c -- random transactions by several processes, judged from what they saw.
 *
 * GOAL    every committed history is serializable, in real time too, and every transaction
 *         and query saw one state, those included that went on to abort (history.h).
 * METHOD  under each policy, durable and not, processes run random transactions, queries,
 *         nested ones, hints, aborts and checkpoints on a few cells, some of which share a
 *         page, and write down what they read and wrote.  Every written value is new.  A
 *         history with errors planted in it must be found wrong first.
 *
 * XAC_SECONDS per policy and mode (2); or XAC_TRANSACTIONS=n, so many per policy and mode, in
 * rounds, each in an environment of its own, with the next seed, and judged by itself.
 * XAC_PROCESSES (4), XAC_SEED.
 */
#include <config.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "history.h"

#define N_CELLS       14
#define CELLS_A_PAGE  2
#define N_PAGES       (N_CELLS / CELLS_A_PAGE)
#define PROCESSES_MAX 16
#define TXNS_MAX      400000
#define OPS_MAX       8

/* Transactions of a round, all processes together, about. */
#define ROUND_MIN 5000
#define ROUND_MAX 250000

static const struct policy {
    const char *name;
    uint64_t kind;
} policies[] = {
    {"oldest-wins", XAC_POLICY_OLDEST_WINS}, {"self-abort", XAC_POLICY_SELF_ABORT},
    {"selfish", XAC_POLICY_SELFISH},         {"youngest-wins", XAC_POLICY_YOUNGEST_WINS},
    {"optimistic", XAC_POLICY_OPTIMISTIC},
};
#define N_POLICIES (sizeof policies / sizeof *policies)

/* What one test runs. */
struct setting {
    const struct policy *policy;
    int mode;
    uint32_t n_processes;
    uint64_t seed;
};

struct worker {
    uint32_t number;
    const struct setting *setting;
    uint64_t rnd;
    uint64_t next_value;
    struct history *history; /* shared */
    uint64_t *cells[2];      /* two files: even and odd pages                       */
};

/* Shared by the processes of a round. */
struct board {
    _Atomic uint64_t stop;
    _Atomic uint64_t n_txns[PROCESSES_MAX]; /* ended so far, by process               */
};

static struct board *board;

static uint64_t
now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static volatile uint64_t *
cell_at(const struct worker *w, uint32_t cell)
{
    size_t page = cell / CELLS_A_PAGE;
    size_t word = page / 2 * (env_page() / 8) + cell % CELLS_A_PAGE * 300;

    return &w->cells[page % 2][word];
}

/* The transaction's entry for a cell; a new one reads the cell. */
static struct history_access *
access_of(struct worker *w, struct history_txn *txn, uint32_t cell)
{
    struct history_access *a = &w->history->accesses[txn->first];

    for (uint32_t i = 0; i < txn->count; i++, a++) {
        if (a->cell == cell) {
            uint64_t expected = a->wrote ? a->given : a->seen;
            uint64_t seen = *cell_at(w, cell);

            if (seen != expected)
                env_fail(__FILE__, __LINE__,
                         "cell %u changed within a transaction: %" PRIx64 " was %" PRIx64,
                         cell, seen, expected);
            return a;
        }
    }
    txn->count++;
    *a = (struct history_access){.cell = cell, .seen = *cell_at(w, cell)};
    return a;
}

static void
pause_a_little(struct worker *w)
{
    uint64_t r = rnd_below(&w->rnd, 40);

    if (r == 0)
        proc_sleep_us(rnd_below(&w->rnd, 300));
    else if (r < 8)
        sched_yield();
}

static void
do_operations(struct worker *w, struct history_txn *txn, bool may_store)
{
    uint64_t n = 1 + rnd_below(&w->rnd, OPS_MAX);

    for (uint64_t i = 0; i < n; i++) {
        uint32_t cell = (uint32_t)rnd_below(&w->rnd, N_CELLS);
        bool store = may_store && rnd_below(&w->rnd, 5) < 2;
        bool nested = rnd_below(&w->rnd, 12) == 0;
        struct history_access *a;

        if (nested)
            must_ok(may_store ? xbegin() : xbeginQuery());
        if (rnd_below(&w->rnd, 10) == 0) {
            void *page = (void *)(uintptr_t)cell_at(w, cell);

            must_ok(setPageAccess(page, store ? READ_WRITE : READ));
        }
        a = access_of(w, txn, cell);
        if (store) {
            a->wrote = true;
            a->given = ++w->next_value;
            *cell_at(w, cell) = a->given;
        }
        if (nested && may_store) {
            int rc = xend();

            must(rc == PENDING || rc == FAILED);
        } else if (nested) {
            must_ok(xendQuery());
        }
        pause_a_little(w);
    }
}

static void
run_query(struct worker *w, struct history_txn *txn)
{
    must_ok(xbeginQuery());
    pause_a_little(w);
    do_operations(w, txn, false);
    must_ok(xendQuery());
    txn->outcome = HISTORY_QUERY;
}

static void
run_transaction(struct worker *w, struct history_txn *txn)
{
    bool read_only = rnd_below(&w->rnd, 6) == 0;
    int rc;

    must_ok(xbegin());
    do_operations(w, txn, !read_only);
    if (rnd_below(&w->rnd, 20) == 0)
        must_ok(xAbort());
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    txn->outcome = rc == COMMITTED ? HISTORY_COMMITTED : HISTORY_ABORTED;
}

static void
attach(struct worker *w)
{
    must_ok(xSetOption(XAC_OPT_POLICY, w->setting->policy->kind));
    env_init(w->setting->mode);
    w->cells[0] = xMmap("even.db", N_PAGES * env_page());
    w->cells[1] = xMmap("odd.db", N_PAGES * env_page());
    if (w->cells[0] == MAP_FAILED || w->cells[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

static void
work(void *arg)
{
    struct worker *w = arg;
    struct history *h = w->history;

    w->rnd = w->setting->seed + w->number * 1000;
    w->next_value = (uint64_t)(w->number + 1) << 40;
    attach(w);
    while (word_load(&board->stop) == 0 && h->n_txns < h->txns_max
           && h->n_accesses + OPS_MAX <= h->accesses_max) {
        struct history_txn *txn = &h->txns[h->n_txns];
        uint64_t what = rnd_below(&w->rnd, 500);

        *txn = (struct history_txn){.process = w->number,
                                    .first = (uint32_t)h->n_accesses,
                                    .outcome = HISTORY_UNKNOWN};
        txn->begin_ns = now_ns();
        if (what < 100)
            run_query(w, txn);
        else
            run_transaction(w, txn);
        txn->end_ns = now_ns();
        h->n_accesses += txn->count;
        h->n_txns++;
        word_store(&board->n_txns[w->number], h->n_txns);
        if (what == 499)
            must_ok(xCheckpoint());
        if (what == 498 && rnd_below(&w->rnd, 10) == 0) {
            env_detach();
            attach(w);
        }
    }
    env_detach();
}

/* ---- the checker finds what is planted ------------------------------------------------ */

#define PLANTED_MAX 4

struct planted {
    const char *what;
    size_t n_txns;
    struct {
        uint32_t outcome;
        uint64_t begin, end;
        struct history_access accesses[2];
        uint32_t count;
    } txns[PLANTED_MAX];
    uint64_t last[2];
    bool is_right;
};

static const struct planted planted[] = {
    {"serial updates",
     2,
     {{HISTORY_COMMITTED, 1, 2, {{0, true, 0, 11}}, 1},
      {HISTORY_COMMITTED, 3, 4, {{0, true, 11, 12}}, 1}},
     {12, 0},
     true},
    {"lost update",
     2,
     {{HISTORY_COMMITTED, 1, 5, {{0, true, 0, 11}}, 1},
      {HISTORY_COMMITTED, 1, 5, {{0, true, 0, 12}}, 1}},
     {12, 0},
     false},
    {"write skew",
     2,
     {{HISTORY_COMMITTED, 1, 5, {{0, true, 0, 11}, {1, false, 0, 0}}, 2},
      {HISTORY_COMMITTED, 1, 5, {{1, true, 0, 12}, {0, false, 0, 0}}, 2}},
     {11, 12},
     false},
    {"aborted read",
     2,
     {{HISTORY_ABORTED, 1, 5, {{0, true, 0, 11}}, 1},
      {HISTORY_QUERY, 2, 5, {{0, false, 11, 0}}, 1}},
     {0, 0},
     false},
    {"torn snapshot of an aborted transaction",
     2,
     {{HISTORY_COMMITTED, 1, 5, {{0, true, 0, 11}, {1, true, 0, 12}}, 2},
      {HISTORY_ABORTED, 1, 5, {{0, false, 11, 0}, {1, false, 0, 0}}, 2}},
     {11, 12},
     false},
    {"whole snapshot of an aborted transaction",
     2,
     {{HISTORY_COMMITTED, 1, 5, {{0, true, 0, 11}, {1, true, 0, 12}}, 2},
      {HISTORY_ABORTED, 1, 5, {{0, true, 11, 13}, {1, false, 12, 0}}, 2}},
     {11, 12},
     true},
    {"stale read",
     2,
     {{HISTORY_COMMITTED, 1, 2, {{0, true, 0, 11}}, 1},
      {HISTORY_QUERY, 3, 4, {{0, false, 0, 0}}, 1}},
     {11, 0},
     false},
    {"read-only anomaly",
     3,
     {{HISTORY_COMMITTED, 1, 9, {{0, true, 0, 11}, {1, false, 0, 0}}, 2},
      {HISTORY_COMMITTED, 1, 9, {{1, true, 0, 12}}, 1},
      {HISTORY_QUERY, 1, 9, {{0, false, 0, 0}, {1, false, 12, 0}}, 2}},
     {11, 12},
     false},
    {"last value lost",
     1,
     {{HISTORY_COMMITTED, 1, 2, {{0, true, 0, 11}}, 1}},
     {0, 0},
     false},
};

START_TEST(find_what_is_planted)
{
    const struct planted *p = &planted[_i];
    struct history_access accesses[2 * PLANTED_MAX];
    struct history_txn txns[PLANTED_MAX];
    struct history h = {.n_txns = p->n_txns, .txns = txns, .accesses = accesses};
    struct history_report report;

    for (uint32_t t = 0; t < p->n_txns; t++) {
        txns[t] = (struct history_txn){.begin_ns = p->txns[t].begin,
                                       .end_ns = p->txns[t].end,
                                       .first = 2 * t,
                                       .count = p->txns[t].count,
                                       .outcome = p->txns[t].outcome};
        memcpy(&accesses[2 * t], p->txns[t].accesses, sizeof p->txns[t].accesses);
    }
    h.n_accesses = 2 * p->n_txns;
    history_check(&h, 1, p->last, 2, &report);
    if ((report.n_errors == 0) != p->is_right)
        env_fail(__FILE__, __LINE__, "%s: %zu errors found", p->what, report.n_errors);
}
END_TEST

/* ---- the stress ------------------------------------------------------------------------- */

/* Pages that are never touched take no memory. */
static void *
shared_array(size_t n, size_t size)
{
    void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(p != MAP_FAILED);
    return p;
}

static struct history *
make_histories(size_t n)
{
    struct history *h = proc_shared(n * sizeof *h);

    for (size_t i = 0; i < n; i++) {
        h[i].txns_max = TXNS_MAX;
        h[i].accesses_max = TXNS_MAX * OPS_MAX / 2;
        h[i].txns = shared_array(h[i].txns_max, sizeof *h[i].txns);
        h[i].accesses = shared_array(h[i].accesses_max, sizeof *h[i].accesses);
    }
    return h;
}

static void
free_histories(struct history *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        munmap(h[i].txns, h[i].txns_max * sizeof *h[i].txns);
        munmap(h[i].accesses, h[i].accesses_max * sizeof *h[i].accesses);
    }
}

static void
read_last_values(uint64_t *last)
{
    for (uint32_t cell = 0; cell < N_CELLS; cell++) {
        uint64_t page = cell / CELLS_A_PAGE;
        uint64_t at = page / 2 * env_page() + cell % CELLS_A_PAGE * 300 * 8;

        last[cell] = file_u64(page % 2 == 0 ? "even.db" : "odd.db", at);
    }
}

static uint64_t
count_txns(void)
{
    uint64_t n = 0;

    for (size_t i = 0; i < PROCESSES_MAX; i++)
        n += word_load(&board->n_txns[i]);
    return n;
}

/* Sleep for XAC_SECONDS, or until the processes have run `n_txns` transactions. */
static void
let_them_run(uint64_t n_txns)
{
    uint64_t before = 0, now;
    double moved = env_now();

    if (n_txns == 0) {
        proc_sleep_us(env_number("XAC_SECONDS", 2) * 1000000);
        return;
    }
    while ((now = count_txns()) < n_txns && !proc_any_failed()) {
        if (now > before)
            moved = env_now();
        before = now;
        if (env_now() - moved > 30)
            env_fail(__FILE__, __LINE__, "nothing has ended for 30 s");
        proc_sleep_us(20000);
    }
}

/*
 * One round in the current directory: run the processes, judge what they wrote down.
 *
 * in   n_txns  about so many transactions; 0: XAC_SECONDS
 */
static void
run_round(const struct setting *setting, uint64_t n_txns, struct history_report *report)
{
    static struct worker workers[PROCESSES_MAX];
    uint32_t n = setting->n_processes;
    struct history *h = make_histories(n);
    uint64_t last[N_CELLS];
    pid_t pid[PROCESSES_MAX];

    board = proc_shared(sizeof *board);
    for (uint32_t i = 0; i < n; i++) {
        workers[i] = (struct worker){.number = i, .setting = setting, .history = &h[i]};
        pid[i] = proc_spawn(work, &workers[i]);
    }
    let_them_run(n_txns);
    word_store(&board->stop, 1);
    for (uint32_t i = 0; i < n; i++)
        proc_join(pid[i]);
    read_last_values(last);
    history_check(h, n, last, N_CELLS, report);
    free_histories(h, n);
}

static void
print_report(const struct setting *s, uint64_t first_seed, const struct history_report *r)
{
    printf("%s, %s, %u processes: %zu transactions, %zu committed, %zu aborted, "
           "%zu queries, %zu edges, %zu violations, seed %" PRIu64,
           s->policy->name, s->mode == NONDURABLE ? "nondurable" : "durable",
           s->n_processes, r->n_committed + r->n_aborted + r->n_queries, r->n_committed,
           r->n_aborted, r->n_queries, r->n_edges, r->n_errors, first_seed);
    if (s->seed != first_seed)
        printf(" to %" PRIu64, s->seed);
    printf("\n");
}

START_TEST(histories_are_serializable)
{
    struct setting setting = {.policy = &policies[(size_t)_i / 2],
                              .mode = _i % 2 == 0 ? NONDURABLE : DURABLE,
                              .n_processes = (uint32_t)env_number("XAC_PROCESSES", 4),
                              .seed = env_seed()};
    uint64_t left = env_number("XAC_TRANSACTIONS", 0);
    struct history_report sum = {0};
    char name[32];

    if (setting.n_processes > PROCESSES_MAX)
        setting.n_processes = PROCESSES_MAX;
    for (;; setting.seed++) {
        struct history_report r;
        uint64_t goal = left < ROUND_MAX ? left : ROUND_MAX;
        uint64_t done;

        if (left > 0 && left < ROUND_MIN)
            goal = ROUND_MIN;
        snprintf(name, sizeof name, "../%d-%" PRIu64, _i, setting.seed);
        must(mkdir(name, 0755) == 0 && chdir(name) == 0);
        run_round(&setting, goal, &r);
        sum.n_committed += r.n_committed;
        sum.n_aborted += r.n_aborted;
        sum.n_queries += r.n_queries;
        sum.n_edges += r.n_edges;
        sum.n_errors += r.n_errors;
        done = r.n_committed + r.n_aborted + r.n_queries;
        must(r.n_committed > 100 && r.n_aborted > 10 && r.n_queries > 10);
        left = done < left ? left - done : 0;
        if (left == 0 || r.n_errors != 0)
            break;
        print_report(&setting, env_seed(), &sum); /* progress */
    }
    print_report(&setting, env_seed(), &sum);
    must_eq(sum.n_errors, 0);
}
END_TEST

static Suite *
stress_suite(void)
{
    Suite *s = suite_create("stress_iso");
    TCase *tc = env_tcase(s, "checker", 10);

    tcase_add_loop_test(tc, find_what_is_planted, 0, sizeof planted / sizeof *planted);
    tc = env_tcase(s, "stress",
                   60 + 3 * (double)env_number("XAC_SECONDS", 2)
                       + (double)env_number("XAC_TRANSACTIONS", 0) / 200);
    tcase_add_loop_test(tc, histories_are_serializable, 0, 2 * (int)N_POLICIES);
    return s;
}

int
main(void)
{
    return env_main(stress_suite());
}
