/* SPDX-License-Identifier: MIT */
/*
 * worker.c -- see worker.h.
 */
#include <config.h>

#include "worker.h"

#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xac_translate.h>

#include "compiled.h"
#include "env.h"

#define TXNS_MAX 400000
#define OPS_MAX  8

/* Some of the 500 numbers of which each transaction draws one, see run_one(). */
#define QUERIES     100
#define PAST        20 /* of these, query the past */
#define SNAPSHOTS   20 /* of these, take or release a snapshot or query one */
#define STOPPED     494
#define KILLED      495
#define FORKED      496
#define INTERRUPTED 497

/* Transactions of a round, all workers together, about. */
#define ROUND_MIN 5000
#define ROUND_MAX 250000

/* What worker_let_run() takes for a standstill, s. */
#define STANDSTILL 60

const struct worker_policy worker_policies[WORKER_POLICIES] = {
    {"oldest-wins", XAC_POLICY_OLDEST_WINS}, {"self-abort", XAC_POLICY_SELF_ABORT},
    {"selfish", XAC_POLICY_SELFISH},         {"youngest-wins", XAC_POLICY_YOUNGEST_WINS},
    {"optimistic", XAC_POLICY_OPTIMISTIC},   {"serial", XAC_POLICY_SERIAL},
};

/* ---- transactions ---------------------------------------------------------------------- */

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
    size_t page = cell / WORKER_CELLS_MAX;
    size_t word = page / 2 * (env_page() / 8) + cell % WORKER_CELLS_MAX * 300;

    return &w->cells[page % 2][word];
}

static uint64_t
load(const struct worker *w, uint32_t cell)
{
#ifdef HAVE_COMPILED
    if (w->is_compiled)
        return compiled_load(cell_at(w, cell));
#endif
    return *cell_at(w, cell);
}

static void
store(const struct worker *w, uint32_t cell, uint64_t value)
{
#ifdef HAVE_COMPILED
    if (w->is_compiled) {
        compiled_store(cell_at(w, cell), value);
        return;
    }
#endif
    *cell_at(w, cell) = value;
}

/* The transaction's entry for a cell; a new one reads the cell. */
static struct history_access *
access_of(struct worker *w, struct history_txn *txn, uint32_t cell)
{
    struct history_access *a = &w->history->accesses[txn->first];

    for (uint32_t i = 0; i < txn->count; i++, a++) {
        if (a->cell == cell) {
            uint64_t expected = a->wrote ? a->given : a->seen;
            uint64_t seen = load(w, cell);

            if (seen != expected)
                env_fail(__FILE__, __LINE__,
                         "cell %u changed within a transaction: %" PRIx64 " was %" PRIx64,
                         cell, seen, expected);
            return a;
        }
    }
    txn->count++;
    *a = (struct history_access){.cell = cell, .seen = load(w, cell)};
    return a;
}

/* Savepoints of a transaction, and what it had done when each was taken. */
#define SAVED_MAX 3

struct saved {
    unsigned n;
    struct {
        uint64_t mark;
        uint32_t count;
        struct history_access accesses[OPS_MAX];
    } at[SAVED_MAX];
};

static void
take_savepoint(struct worker *w, const struct history_txn *txn, struct saved *s)
{
    if (s->n == SAVED_MAX)
        return;
    s->at[s->n].mark = xSavepoint();
    must(s->at[s->n].mark != 0);
    s->at[s->n].count = txn->count;
    memcpy(s->at[s->n].accesses, &w->history->accesses[txn->first],
           txn->count * sizeof s->at[s->n].accesses[0]);
    s->n++;
}

/* roll_back -- what has been read since stays read; all stores since are undone. */
static void
roll_back(struct worker *w, const struct history_txn *txn, struct saved *s)
{
    struct history_access *a = &w->history->accesses[txn->first];
    unsigned i = (unsigned)rnd_below(&w->rnd, s->n);
    int rc = xRollbackTo(s->at[i].mark);

    must(rc == 0 || rc == FAILED);
    for (uint32_t k = 0; k < txn->count; k++) {
        bool was_there = k < s->at[i].count;

        a[k].wrote = was_there && s->at[i].accesses[k].wrote;
        a[k].given = was_there ? s->at[i].accesses[k].given : 0;
    }
    s->n = i + 1;
}

/* save_or_roll_back -- some transactions do, between their operations. */
static void
save_or_roll_back(struct worker *w, struct history_txn *txn, struct saved *s)
{
    switch (rnd_below(&w->rnd, 10)) {
    case 0:
    case 1:
        take_savepoint(w, txn, s);
        break;
    case 2:
        if (s->n > 0)
            roll_back(w, txn, s);
        break;
    case 3:
        if (s->n > 0)
            must_ok(xRelease(s->at[--s->n].mark));
        break;
    default:
        break;
    }
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
    struct saved saved = {.n = 0};

    for (uint64_t i = 0; i < n; i++) {
        uint32_t cell = (uint32_t)rnd_below(&w->rnd, WORKER_CELLS);
        bool stores = may_store && rnd_below(&w->rnd, 5) < 2;
        bool nested = rnd_below(&w->rnd, 12) == 0;
        struct history_access *a;

        if (may_store)
            save_or_roll_back(w, txn, &saved);
        if (nested)
            must_ok(may_store ? xbegin() : xbeginQuery());
        if (rnd_below(&w->rnd, 10) == 0
            || (stores && env_checking == XAC_CHECKING_TRUSTED && !w->is_compiled)) {
            void *page = (void *)(uintptr_t)cell_at(w, cell);

            must_ok(setPageAccess(page, stores ? READ_WRITE : READ));
        }
        a = access_of(w, txn, cell);
        if (stores) {
            a->wrote = true;
            a->given = ++w->next_value;
            store(w, cell, a->given);
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

/*
 * change_snapshot -- release the snapshot in a place, if there is one, and take another: mostly of the present,
 * sometimes of what a query sees.
 */
static void
change_snapshot(struct worker *w, struct worker_snapshot *s)
{
    uint64_t state = word_load(&s->state), id = word_load(&s->id), begin;
    bool in_query = rnd_below(&w->rnd, 3) == 0;
    int rc;

    if (state % 2 != 0
        || !atomic_compare_exchange_strong_explicit(&s->state, &state, state + 1,
                                                    memory_order_acq_rel,
                                                    memory_order_relaxed))
        return; /* another worker is at it, or has died there */
    if (id != 0) {
        rc = xSnapshotRelease(id);
        must(rc == 0 || rc == XAC_ENOSTATE); /* who took it has gone */
    }
    begin = now_ns();
    if (in_query)
        must_ok(xbeginQuery());
    if (in_query)
        word_store(&s->end_ns, now_ns());
    must_ok(xSnapshot(&id));
    if (in_query)
        must_ok(xendQuery());
    else
        word_store(&s->end_ns, now_ns());
    word_store(&s->begin_ns, begin);
    word_store(&s->id, id);
    word_store(&s->state, state + 2);
}

/*
 * run_at -- a query at a snapshot that any worker has taken.  It sees the state of the moment when that
 * was taken, so it is written down as a query of that time.
 */
static void
run_at(struct worker *w, struct history_txn *txn)
{
    struct worker_snapshot *s = &w->board->snapshot[rnd_below(&w->rnd, WORKER_SNAPSHOTS)];
    uint64_t state, id, begin, end;
    int rc;

    if (rnd_below(&w->rnd, 6) == 0)
        change_snapshot(w, s);
    state = word_load(&s->state);
    id = word_load(&s->id);
    begin = word_load(&s->begin_ns);
    end = word_load(&s->end_ns);
    if (state % 2 != 0 || id == 0 || word_load(&s->state) != state) {
        run_query(w, txn);
        return;
    }
    rc = xbeginQueryAt(id);
    must(rc == 0 || rc == XAC_ENOSTATE);
    if (rc != 0) {
        run_query(w, txn);
        return;
    }
    txn->begin_ns = begin;
    txn->at_ns = end;
    pause_a_little(w);
    do_operations(w, txn, false);
    must_ok(xendQuery());
    txn->outcome = HISTORY_QUERY;
}

/*
 * run_past -- a query of the past: of a state that this worker, or another one, has seen in a query.  It
 * is written down as a query of the time of that one.
 */
static void
run_past(struct worker *w, struct history_txn *txn)
{
    struct worker_snapshot *s = &w->board->past[rnd_below(&w->rnd, WORKER_SNAPSHOTS)];
    uint64_t state = word_load(&s->state), number = word_load(&s->id);
    uint64_t begin = word_load(&s->begin_ns), end = word_load(&s->end_ns), one = state;
    int rc = XAC_ENOSTATE;

    if (state % 2 == 0 && number != 0 && word_load(&s->state) == state)
        rc = xbeginQueryAt(XAC_AT_COMMIT(number));
    must(rc == 0 || rc == XAC_ENOSTATE);
    if (rc == 0) {
        txn->begin_ns = begin;
        txn->at_ns = end;
        pause_a_little(w);
        do_operations(w, txn, false);
        must_ok(xendQuery());
        txn->outcome = HISTORY_QUERY;
        return;
    }
    must_ok(xbeginQuery());
    end = now_ns();
    number = xac_position();
    do_operations(w, txn, false);
    must_ok(xendQuery());
    txn->outcome = HISTORY_QUERY;
    if (state % 2 != 0
        || !atomic_compare_exchange_strong_explicit(&s->state, &one, state + 1,
                                                    memory_order_acq_rel,
                                                    memory_order_relaxed))
        return;
    word_store(&s->begin_ns, txn->begin_ns);
    word_store(&s->end_ns, end);
    word_store(&s->id, number);
    word_store(&s->state, state + 2);
}

static void
end_transaction(struct history_txn *txn)
{
    int rc = xend();

    must(rc == COMMITTED || rc == ABORTED);
    txn->outcome = rc == COMMITTED ? HISTORY_COMMITTED : HISTORY_ABORTED;
}

static void
run_transaction(struct worker *w, struct history_txn *txn)
{
    bool read_only = rnd_below(&w->rnd, 6) == 0;

    must_ok(xbegin());
    do_operations(w, txn, !read_only);
    if (rnd_below(&w->rnd, 20) == 0)
        must_ok(xAbort());
    end_transaction(txn);
}

static _Thread_local sigjmp_buf back;

static void
jump_back(int signo)
{
    (void)signo;
    siglongjmp(back, 1);
}

/* A signal handler leaves the middle of a transaction, which is then rolled back. */
static void
run_interrupted(struct worker *w, struct history_txn *txn)
{
    struct sigaction jump = {.sa_handler = jump_back};

    must(sigaction(SIGUSR2, &jump, NULL) == 0);
    must_ok(xbegin());
    if (sigsetjmp(back, 1) == 0) {
        do_operations(w, txn, true);
        raise(SIGUSR2);
        must(false);
    }
    must_ok(xAbort());
    end_transaction(txn);
}

/* The process is killed or stopped within so many ns, perhaps behind the end. */
#define THREAT_NS 400000

static void
run_threatened(struct worker *w, struct history_txn *txn, int signo)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo};
    struct itimerspec soon = {.it_value.tv_sec = 0};
    timer_t timer;

    soon.it_value.tv_nsec = 1 + (long)rnd_below(&w->rnd, THREAT_NS);
    must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    must(timer_settime(timer, 0, &soon, NULL) == 0);
    run_transaction(w, txn);
    must(timer_delete(timer) == 0);
}

static void run_one(struct worker *w, uint64_t what);

/* A process forks in the middle of a transaction.  The child, which has none, runs one of its own
   and records it behind its parent's. */
static void
run_forked(struct worker *w, struct history_txn *txn)
{
    struct history of_child = *w->history;
    int status;
    pid_t child;

    must_ok(xbegin());
    do_operations(w, txn, true);
    child = fork();
    must(child >= 0);
    if (child == 0) {
        w->next_value += OPS_MAX;
        of_child.n_txns++;
        of_child.n_accesses += txn->count;
        w->history = &of_child;
        run_one(w, rnd_below(&w->rnd, 2 * QUERIES));
        _exit(0);
    }
    end_transaction(txn);
    must(waitpid(child, &status, 0) == child && status == 0);
    w->next_value += 2 * OPS_MAX;
}

static void
run_one(struct worker *w, uint64_t what)
{
    struct history *h = w->history;
    struct history_txn *txn = &h->txns[h->n_txns];

    *txn = (struct history_txn){.process = w->number,
                                .first = (uint32_t)h->n_accesses,
                                .outcome = HISTORY_UNKNOWN};
    txn->begin_ns = now_ns();
    if (what < SNAPSHOTS)
        run_at(w, txn);
    else if (what < SNAPSHOTS + PAST)
        run_past(w, txn);
    else if (what < QUERIES)
        run_query(w, txn);
    else if (what == INTERRUPTED)
        run_interrupted(w, txn);
    else if (what == FORKED && w->setting->has_forks)
        run_forked(w, txn);
    else if ((what == KILLED || what == STOPPED) && w->setting->has_deaths)
        run_threatened(w, txn, what == KILLED ? SIGKILL : SIGSTOP);
    else
        run_transaction(w, txn);
    txn->end_ns = txn->at_ns != 0 ? txn->at_ns : now_ns();
    h->n_accesses += txn->count;
    h->n_txns++;
    if (what == FORKED && w->setting->has_forks) { /* the child's */
        h->n_accesses += h->txns[h->n_txns].count;
        h->n_txns++;
    }
    word_store(&w->board->n_txns[w->number], h->n_txns);
}

void
worker_bury(struct worker *w)
{
    struct history *h = w->history;
    struct history_txn *txn = &h->txns[h->n_txns];

    txn->end_ns = now_ns();
    h->n_accesses += txn->count;
    h->n_txns++;
    w->generation++;
    word_store(&w->board->n_txns[w->number], h->n_txns);
}

void
worker_run(struct worker *w)
{
    const struct history *h = w->history;

    w->rnd = w->setting->seed + w->number * 1000 + w->generation * 100000;
    w->next_value = (uint64_t)(w->number + 1) << 48 | (uint64_t)w->generation << 32;
    w->attach(w);
    while (word_load(&w->board->stop) == 0 && h->n_txns + 1 < h->txns_max
           && h->n_accesses + 2 * OPS_MAX <= h->accesses_max) {
        uint64_t what = rnd_below(&w->rnd, 500);

        run_one(w, what);
        if (what == 499)
            must_ok(xCheckpoint());
        if (what == 498 && rnd_below(&w->rnd, 10) == 0) {
            w->detach(w);
            w->attach(w);
        }
    }
    w->detach(w);
}

/* Every second one has hooks.  With the seed of a run without XAC_SEED the first one has also promised
   to announce its stores, and an engine that leaves pages writable.  The environment counts more:
   XAC_ENGINE, and XAC_CHECKING at first. */
void
worker_options(struct worker *w)
{
    uint64_t turn = w->setting->seed + 5 + w->number / 2 + w->number % 2 * 3;

    turn += w->n_attached++;
#ifdef HAVE_COMPILED
    w->is_compiled = w->number % 2 == 0;
#endif
    must_ok(xSetOption(XAC_OPT_POLICY, w->setting->policy->kind));
    must_ok(xSetOption(XAC_OPT_HISTORY, w->setting->history));
    if (w->setting->policy->kind != XAC_POLICY_SERIAL)
        return;
    env_checking = turn % (XAC_CHECKING_TRUSTED + 1);
    must_ok(xSetOption(XAC_OPT_ENGINE,
                       turn / 3 % 2 == 0 ? XAC_ENGINE_BEST : XAC_ENGINE_PORTABLE));
}

/* ---- histories ------------------------------------------------------------------------- */

struct worker_board *
worker_board(void)
{
    return proc_shared(sizeof(struct worker_board));
}

/* Pages that are never touched take no memory. */
static void *
shared_array(size_t n, size_t size)
{
    void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(p != MAP_FAILED);
    return p;
}

struct history *
worker_histories(size_t n)
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

void
worker_histories_free(struct history *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        munmap(h[i].txns, h[i].txns_max * sizeof *h[i].txns);
        munmap(h[i].accesses, h[i].accesses_max * sizeof *h[i].accesses);
    }
}

void
worker_judge(struct history *h, size_t n, struct history_report *report)
{
    uint64_t last[WORKER_CELLS];

    for (uint32_t cell = 0; cell < WORKER_CELLS; cell++) {
        uint64_t page = cell / WORKER_CELLS_MAX;
        uint64_t at = page / 2 * env_page() + cell % WORKER_CELLS_MAX * 300 * 8;

        last[cell] = file_u64(page % 2 == 0 ? WORKER_EVEN : WORKER_ODD, at);
    }
    history_settle(h, n, last, WORKER_CELLS);
    history_check(h, n, last, WORKER_CELLS, report);
}

/* ---- rounds ------------------------------------------------------------------------------ */

static uint64_t
count_txns(const struct worker_board *board)
{
    uint64_t n = 0;

    for (size_t i = 0; i < WORKERS_MAX; i++)
        n += word_load(&board->n_txns[i]);
    return n;
}

void
worker_let_run(const struct worker_board *board, uint64_t n_txns, void (*tend)(void *arg),
               void *arg)
{
    uint64_t before = 0, now;
    double moved = env_now();
    double end = moved + (double)env_number("XAC_SECONDS", 1);

    while (((now = count_txns(board)) < n_txns || (n_txns == 0 && env_now() < end))
           && !proc_any_failed()) {
        if (tend != NULL)
            tend(arg);
        if (now > before)
            moved = env_now();
        before = now;
        if (env_now() - moved > STANDSTILL)
            env_fail(__FILE__, __LINE__, "nothing has ended for %d s", STANDSTILL);
        proc_sleep_us(20000);
    }
}

static void
print_totals(const struct worker_setting *s, uint64_t first_seed,
             const struct history_report *r)
{
    printf(
        "%s, %s, %u %s: %zu transactions, %zu committed, %zu aborted, "
        "%zu queries, %zu of them at snapshots, %zu edges, %zu violations, seed %" PRIu64,
        s->policy->name, s->mode == NONDURABLE ? "nondurable" : "durable", s->n_workers,
        s->kind, r->n_committed + r->n_aborted + r->n_queries, r->n_committed,
        r->n_aborted, r->n_queries, r->n_at, r->n_edges, r->n_errors, first_seed);
    if (s->seed != first_seed)
        printf(" to %" PRIu64, s->seed);
    printf("\n");
}

/* run_round -- one more round, in a directory of its own; ret transactions. */
static uint64_t
run_round(struct worker_setting *setting, const char *name, uint64_t left,
          void (*round)(const struct worker_setting *setting, uint64_t n_txns,
                        struct history_report *report),
          struct history_report *sum)
{
    uint64_t goal = left < ROUND_MAX ? left : ROUND_MAX;
    struct history_report r;
    char dir[64];

    if (left > 0 && left < ROUND_MIN)
        goal = ROUND_MIN;
    snprintf(dir, sizeof dir, "../%s-%" PRIu64, name, setting->seed);
    must(mkdir(dir, 0755) == 0 && chdir(dir) == 0);
    round(setting, goal, &r);
    must(r.n_committed > 100 && r.n_aborted > 10 && r.n_queries > 10 && r.n_at > 0);
    sum->n_committed += r.n_committed;
    sum->n_aborted += r.n_aborted;
    sum->n_queries += r.n_queries;
    sum->n_at += r.n_at;
    sum->n_edges += r.n_edges;
    sum->n_errors += r.n_errors;
    return r.n_committed + r.n_aborted + r.n_queries;
}

void
worker_rounds(struct worker_setting *setting, const char *name,
              void (*round)(const struct worker_setting *setting, uint64_t n_txns,
                            struct history_report *report))
{
    uint64_t left = env_number("XAC_TRANSACTIONS", 0), first_seed = setting->seed;
    struct history_report sum = {0};

    for (;; setting->seed++) {
        /* With every second seed, for with a history nothing is updated in place. */
        setting->history = setting->seed % 2 == 0 ? 0 : XAC_HISTORY_COMMITS(2000);
        uint64_t done = run_round(setting, name, left, round, &sum);

        left = done < left ? left - done : 0;
        print_totals(setting, first_seed, &sum);
        if (left == 0 || sum.n_errors != 0)
            break;
    }
    must_eq(sum.n_errors, 0);
}

double
worker_time_limit(void)
{
    return 60 + 3 * (double)env_number("XAC_SECONDS", 1)
           + (double)env_number("XAC_TRANSACTIONS", 0) / 200;
}
