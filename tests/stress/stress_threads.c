/* SPDX-License-Identifier: MIT */
/*
 * stress_threads.c -- random transactions by the threads of a process, each with views of its
 * own (xView), judged from what they saw.
 *
 * GOAL    threads are isolated from each other as processes are (history.h); a thread that
 *         uses the process's own mapping, and another process, go on beside them.  Built
 *         with the thread sanitizer, no data race (scripts/sanitize.sh thread).
 * METHOD  as stress_iso.c, under each policy, durable and not.  Worker 0 has the mappings of
 *         the process, the last one is a process of its own, the others are threads with
 *         views, which they give up and take again.
 *
 * XAC_SECONDS per policy and mode (1), XAC_TRANSACTIONS, XAC_THREADS (8), XAC_SEED.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>

#include "env.h"
#include "worker.h"

static uint64_t *base[2]; /* the process's mappings */

static void
attach_process(struct worker *w)
{
    worker_options(w);
    env_init(w->setting->mode);
    base[0] = w->cells[0] = xMmap(WORKER_EVEN, WORKER_PAGES * env_page());
    base[1] = w->cells[1] = xMmap(WORKER_ODD, WORKER_PAGES * env_page());
    if (base[0] == MAP_FAILED || base[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

static void
detach_process(struct worker *w)
{
    (void)w;
    env_detach();
}

/* The process's own worker has been attached before the threads start, and stays. */
static void
attach_shared(struct worker *w)
{
    w->cells[0] = base[0];
    w->cells[1] = base[1];
}

static void
detach_shared(struct worker *w)
{
    (void)w;
}

static void
attach_views(struct worker *w)
{
    for (int i = 0; i < 2; i++) {
        w->cells[i] = xView(base[i]);
        if (w->cells[i] == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "xView: %s", xLastError());
        must(w->cells[i] != base[i]);
    }
}

static void
detach_views(struct worker *w)
{
    for (int i = 0; i < 2; i++)
        must_ok(xUnview(w->cells[i]));
}

static void *
run_thread(void *arg)
{
    worker_run(arg);
    return NULL;
}

static void
run_alone(void *arg)
{
    worker_run(arg);
}

static void
run_threads(const struct worker_setting *setting, uint64_t n_txns,
            struct history_report *report)
{
    struct worker workers[WORKERS_MAX];
    uint32_t n = setting->n_workers;
    struct history *h = worker_histories(n);
    struct worker_board *board = worker_board();
    pthread_t thread[WORKERS_MAX];
    pid_t other;

    for (uint32_t i = 0; i < n; i++)
        workers[i] = (struct worker){
            .number = i,
            .setting = setting,
            .board = board,
            .history = &h[i],
            .attach = i == 0       ? attach_shared
                      : i == n - 1 ? attach_process
                                   : attach_views,
            .detach = i == 0       ? detach_shared
                      : i == n - 1 ? detach_process
                                   : detach_views,
        };
    other = proc_spawn(run_alone, &workers[n - 1]);
    attach_process(&workers[0]);
    for (uint32_t i = 0; i < n - 1; i++)
        must(pthread_create(&thread[i], NULL, run_thread, &workers[i]) == 0);
    worker_let_run(board, n_txns, NULL, NULL);
    word_store(&board->stop, 1);
    for (uint32_t i = 0; i < n - 1; i++)
        must(pthread_join(thread[i], NULL) == 0);
    proc_join(other);
    detach_process(&workers[0]);
    worker_judge(h, n, report);
    worker_histories_free(h, n);
}

START_TEST(threads_are_isolated)
{
    struct worker_setting setting = {.policy = &worker_policies[(size_t)_i / 2],
                                     .mode = _i % 2 == 0 ? NONDURABLE : DURABLE,
                                     .kind = "workers (threads and a process)",
                                     .seed = env_seed()};
    uint64_t n_threads = env_number("XAC_THREADS", 8);
    char name[16];

    n_threads = n_threads < WORKERS_MAX - 1 ? n_threads : WORKERS_MAX - 1;
    setting.n_workers = (uint32_t)n_threads + 1; /* and the process beside them */
    snprintf(name, sizeof name, "%d", _i);
    worker_rounds(&setting, name, run_threads);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("stress_threads");
    TCase *tc = env_tcase(s, "stress", worker_time_limit());

    tcase_add_loop_test(tc, threads_are_isolated, 0, 2 * WORKER_POLICIES);
    return env_main(s);
}
