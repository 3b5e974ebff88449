/* SPDX-License-Identifier: MIT */
/*
 * stress_iso.c -- random transactions by several processes, judged from what they saw.
 *
 * GOAL    every committed history is serializable, in real time too, and every transaction
 *         and query saw one state, those included that went on to abort (history.h).
 * METHOD  under each policy, durable and not, processes do what worker.h says; under serial with
 *         every checking and engine beside each other, and some are stopped or killed at random moments
 *         of their transactions.  Transactions take savepoints, and roll parts of themselves back.  A history with errors planted in it must be
 *         found wrong first.
 *
 * XAC_SECONDS per policy and mode (1); or XAC_TRANSACTIONS=n, so many per policy and mode, in
 * rounds, each in an environment of its own, with the next seed, and judged by itself.
 * XAC_PROCESSES (4), XAC_SEED.  CK_RUN_CASE=serial: this policy only, CK_RUN_CASE=stress: the others.
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "env.h"
#include "history.h"
#include "worker.h"

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

static void
attach(struct worker *w)
{
    worker_options(w);
    env_init(w->setting->mode);
    w->cells[0] = xMmap(WORKER_EVEN, WORKER_PAGES * env_page());
    w->cells[1] = xMmap(WORKER_ODD, WORKER_PAGES * env_page());
    if (w->cells[0] == MAP_FAILED || w->cells[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

static void
detach(struct worker *w)
{
    (void)w;
    env_detach();
}

static void
work(void *arg)
{
    worker_run(arg);
}

/* What keeps the others company: if all of them are dead at once, what is not durable would be lost else, and commits be counted
   anew, so that numbers of before would name other states. */
static void
attach_keeper(void *arg)
{
    attach((struct worker *)arg);
}

static void
detach_keeper(void *arg)
{
    detach((struct worker *)arg);
}

/* The processes of a round. */
struct crew {
    struct worker worker[WORKERS_MAX];
    pid_t pid[WORKERS_MAX]; /* 0: has ended                                            */
    uint32_t n;
    unsigned n_stopped, n_killed;
};

/* tend -- let those go on that were stopped, and replace those that were killed. */
static void
tend(void *arg)
{
    struct crew *crew = (struct crew *)arg;

    for (uint32_t i = 0; i < crew->n; i++) {
        struct worker *w = &crew->worker[i];
        int status;

        if (crew->pid[i] == 0
            || waitpid(crew->pid[i], &status, WNOHANG | WUNTRACED) != crew->pid[i])
            continue;
        if (WIFSTOPPED(status)) {
            crew->n_stopped++;
            must(kill(crew->pid[i], SIGCONT) == 0);
            continue;
        }
        crew->pid[i] = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            env_fail(__FILE__, __LINE__, "worker %u has failed, status %d", i, status);
        crew->n_killed++;
        worker_bury(w);
        if (word_load(&w->board->stop) == 0)
            crew->pid[i] = proc_spawn(work, w);
    }
}

static bool
is_over(const struct crew *crew)
{
    for (uint32_t i = 0; i < crew->n; i++) {
        if (crew->pid[i] != 0)
            return false;
    }
    return true;
}

static void
run_processes(const struct worker_setting *setting, uint64_t n_txns,
              struct history_report *report)
{
    struct crew crew = {.n = setting->n_workers};
    struct history *h = worker_histories(crew.n);
    struct worker_board *board = worker_board();
    struct worker keeper = {.setting = setting};
    struct env_company company = {.pid = 0};

    if (setting->has_deaths)
        company = env_company_begin(attach_keeper, detach_keeper, &keeper);

    for (uint32_t i = 0; i < crew.n; i++) {
        crew.worker[i] = (struct worker){.number = i,
                                         .setting = setting,
                                         .board = board,
                                         .history = &h[i],
                                         .attach = attach,
                                         .detach = detach};
        crew.pid[i] = proc_spawn(work, &crew.worker[i]);
    }
    worker_let_run(board, n_txns, tend, &crew);
    word_store(&board->stop, 1);
    for (tend(&crew); !is_over(&crew); tend(&crew))
        proc_sleep_us(2000);
    if (setting->has_deaths) {
        env_company_end(&company);
        printf("stopped %u times, killed %u times\n", crew.n_stopped, crew.n_killed);
    }
    worker_judge(h, crew.n, report);
    worker_histories_free(h, crew.n);
}

START_TEST(histories_are_serializable)
{
    struct worker_setting setting = {.policy = &worker_policies[(size_t)_i / 2],
                                     .mode = _i % 2 == 0 ? NONDURABLE : DURABLE,
                                     .kind = "processes",
                                     .n_workers =
                                         (uint32_t)env_number("XAC_PROCESSES", 4),
                                     .seed = env_seed(),
                                     .has_forks = true,
                                     .has_deaths = _i / 2 == WORKER_SERIAL};
    char name[16];

    if (setting.n_workers > WORKERS_MAX)
        setting.n_workers = WORKERS_MAX;
    snprintf(name, sizeof name, "%d", _i);
    worker_rounds(&setting, name, run_processes);
}
END_TEST

static Suite *
stress_suite(void)
{
    Suite *s = suite_create("stress_iso");
    TCase *tc = env_tcase(s, "checker", 10);

    tcase_add_loop_test(tc, find_what_is_planted, 0, sizeof planted / sizeof *planted);
    tc = env_tcase(s, "stress", worker_time_limit());
    tcase_add_loop_test(tc, histories_are_serializable, 0, 2 * WORKER_SERIAL);
    tc = env_tcase(s, "serial", worker_time_limit());
    tcase_add_loop_test(tc, histories_are_serializable, 2 * WORKER_SERIAL,
                        2 * WORKER_POLICIES);
    return s;
}

int
main(void)
{
    return env_main(stress_suite());
}
