/* SPDX-License-Identifier: MIT */
/*
 * check_threads_ends.c -- threads with views of their own that end, are cancelled, fork, or
 * are killed with their process.
 *
 * GOAL    what a thread leaves open is taken back at its end and holds nobody up; a child
 *         of fork() has the views of the thread that forked, and nothing else; a crash
 *         loses no commit that was acknowledged to any thread.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_threads.h"

/* ---- ends ------------------------------------------------------------------------------- */

/* Ends inside a transaction (0), a nested one (1), a query (2), a failed one (3). */
static void *
end_inside(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    if (w->i == 2) {
        must_ok(xbeginQuery());
        must_eq(*env_cell(v, 0), 0);
        return NULL;
    }
    must_ok(xbegin());
    *env_cell(v, 0) = 666;
    *env_cell(v, 1) += *env_cell(v, 2);
    if (w->i == 1)
        must_ok(xbegin());
    if (w->i == 3)
        must_ok(xAbort());
    return NULL;
}

static void
must_be_free(uint64_t *x)
{
    struct xac_stats s;

    must_eq(env_get(env_cell(x, 0)), 0);
    must_ok(xbegin());
    *env_cell(x, 0) += 1;
    *env_cell(x, 1) += 1;
    *env_cell(x, 2) += 1;
    must_rc(xend(), COMMITTED);
    for (uint64_t i = 0; i < 200; i++)
        env_put(env_cell(x, 3 + i % 4), i);
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must(s.versions_live < 100); /* no reader is left that needs old ones */
}

START_TEST(transaction_ends_with_its_thread)
{
    uint64_t *x;
    struct worker w;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i / 4));
    x = (uint64_t *)env_attach(_i % 3 == 0 ? DURABLE : NONDURABLE, N_PAGES);
    worker_start(&w, end_inside, x, _i % 4);
    worker_join(&w);
    must_be_free(x);
    must_ok(xMunmap(ENV_FILE));
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 1);
}
END_TEST

static void *
end_detached(void *arg)
{
    uint64_t *v = view_of(arg);

    env_increment(env_cell(v, 7));
    word_add(&board->ready, 1);
    must_ok(xbegin());
    *env_cell(v, 0) = 666;
    return NULL;
}

START_TEST(detached_threads_leave_nothing_behind)
{
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    pthread_attr_t detached;
    pthread_t t;

    must_eq(pthread_attr_init(&detached), 0);
    must_eq(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED), 0);
    for (int i = 0; i < 20; i++)
        must_eq(pthread_create(&t, &detached, end_detached, x), 0);
    proc_await(&board->ready, 20, 20);
    for (double until = env_now() + 20; xMunmap(ENV_FILE) == EBUSY;) {
        must(env_now() < until);
        proc_sleep_us(1000);
    }
    x = (uint64_t *)xMmap(ENV_FILE, N_PAGES * env_page());
    must_eq(env_get(env_cell(x, 7)), 20);
    must_be_free(x);
    env_detach();
}
END_TEST

/* A destructor that the program has registered may use the library, too. */
static pthread_key_t program_s_key;

static void
use_library_at_the_end(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    env_increment(env_cell(v, 1));
}

static void *
end_with_destructor(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    must_eq(pthread_setspecific(program_s_key, w), 0);
    env_increment(env_cell(v, 1));
    return NULL;
}

START_TEST(destructors_of_the_program_may_use_views)
{
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    pthread_key_t before;
    struct worker w;

    must_eq(pthread_key_create(&before, use_library_at_the_end), 0);
    must_ok(xUnview(view_of(x))); /* the library has its own key by now */
    must_eq(pthread_key_create(&program_s_key, use_library_at_the_end), 0);
    for (int i = 0; i < 2; i++) {
        worker_start(&w, end_with_destructor, x, 0);
        worker_join(&w);
        program_s_key = before;
    }
    must_eq(env_get(env_cell(x, 1)), 4);
    must_ok(xMunmap(ENV_FILE));
    env_detach();
}
END_TEST

/* ---- cancellation ------------------------------------------------------------------------- */

/* must_be_out -- a cancelled thread's last words. */
static void
must_be_out(void *arg)
{
    must(word_load((_Atomic uint64_t *)arg) != 0);
}

static void *
commit_until_cancelled(void *arg)
{
    struct worker *w = (struct worker *)arg;
    _Atomic uint64_t is_out = 0; /* of the library */
    int rc;

    pthread_cleanup_push(must_be_out, &is_out);
    for (;;) {
        uint64_t *v = view_of(w->base);

        for (int i = 0; i < 5; i++) {
            must_ok(xbegin());
            *env_cell(v, 0) += 1;
            *env_cell(v, 1 + (size_t)w->i) += 1;
            rc = xend();
            must(rc == COMMITTED || rc == ABORTED);
        }
        if (w->i == 1)
            must_ok(xCheckpoint());
        must_ok(xUnview(v));
        word_add(&board->count[w->i], 1);
        word_store(&is_out, 1);
        pthread_testcancel();
        word_store(&is_out, 0);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

#define ROUNDS 10

static void
cancel_some(uint64_t *x)
{
    uint64_t rnd = env_seed(), sum = 0;
    struct worker w[3];
    void *result;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++)
            word_store(&board->count[i], 0);
        for (int i = 0; i < 3; i++)
            worker_start(&w[i], commit_until_cancelled, x, i);
        proc_await(&board->count[round % 3], 1, 20);
        proc_sleep_us(rnd_below(&rnd, 2000));
        for (int i = 0; i < 3; i++)
            must_eq(pthread_cancel(w[i].thread), 0);
        for (int i = 0; i < 3; i++) {
            must_eq(pthread_join(w[i].thread, &result), 0);
            must(result == PTHREAD_CANCELED);
        }
        must_ok(xbeginQuery());
        sum = *env_cell(x, 1) + *env_cell(x, 2) + *env_cell(x, 3);
        must_eq(*env_cell(x, 0), sum);
        must_ok(xendQuery());
        env_increment(env_cell(x, 9));
    }
    must(sum > 0);
}

/* Wherever a cancelled thread stands, inside the library it goes on until it is out. */
START_TEST(cancelled_thread_holds_nobody_up)
{
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i / 2));
    x = (uint64_t *)env_attach(_i % 2 == 0 ? NONDURABLE : DURABLE, N_PAGES);
    cancel_some(x);
    must_eq(env_get(env_cell(x, 9)), ROUNDS);
    must_ok(xMunmap(ENV_FILE));
    env_detach();
    must_eq(file_u64(ENV_FILE, 9 * env_page()), ROUNDS);
}
END_TEST

/* ---- fork --------------------------------------------------------------------------------- */

static void
use_inherited_views(uint64_t *x, uint64_t *v)
{
    must_refuse(xend(), v != NULL ? XAC_EFORKED : XAC_ENOTXN);
    must_refuse(xend(), XAC_ENOTXN);
    if (v != NULL) {
        must(view_of(x) == v);
        must_eq(env_get(env_cell(v, 0)), 0);
        env_increment(env_cell(v, 1));
        must_ok(xUnview(v));
    }
    env_increment(env_cell(x, 1));
    v = view_of(x);
    env_increment(env_cell(v, 1));
}

static void
fork_again(void *arg)
{
    uint64_t *x = ((uint64_t **)arg)[0], *v = ((uint64_t **)arg)[1];
    pid_t grandchild;

    grandchild = fork(); /* before this child has joined */
    if (grandchild == 0) {
        use_inherited_views(x, v);
        _exit(0);
    }
    proc_join(grandchild);
    use_inherited_views(x, v);
    env_detach();
}

/* The parent's transaction goes on, in its own view or, _i % 2, in the process's. */
START_TEST(child_has_the_views_of_the_thread_that_forked)
{
    uint64_t *x, *v, *in[2];

    env_let_overlap(); /* the child commits while its parent's transaction is open */
    env_checking = _i / 4 == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    x = (uint64_t *)env_attach(_i / 2 % 2 == 0 ? NONDURABLE : DURABLE, N_PAGES);
    v = _i % 2 == 0 ? view_of(x) : NULL;
    in[0] = x;
    in[1] = v;
    if (v != NULL) {
        must_ok(xbegin());
        *env_cell(v, 0) = 5;
    }
    proc_run(fork_again, in);
    if (v != NULL) {
        must_eq(*env_cell(v, 0), 5);
        must_rc(xend(), COMMITTED);
        must_eq(env_get(env_cell(v, 0)), 5);
    }
    must_eq(env_get(env_cell(v != NULL ? v : x, 1)), v != NULL ? 6 : 4);
    env_detach();
}
END_TEST

static void *
work_until_told(void *arg)
{
    struct worker *w = (struct worker *)arg;

    while (word_load(&board->stop) == 0) {
        uint64_t *v = view_of(w->base);

        for (int i = 0; i < 20; i++)
            env_increment(env_cell(v, 2 + (size_t)w->i));
        word_add(&board->count[w->i], 20);
        must_ok(xUnview(v));
    }
    return NULL;
}

struct forked {
    uint64_t *x;
    int round;
};

/* In a child the others' threads are gone, whatever they were doing. */
static void
go_on_without_them(void *arg)
{
    const struct forked *in = (const struct forked *)arg;
    uint64_t *x = in->x;
    struct worker w[2] = {{.i = 0}};

    (void)w;
    if (in->round % 2 == 0) {
        must_ok(xMunmap(ENV_FILE));
        x = (uint64_t *)xMmap(ENV_FILE, N_PAGES * env_page());
        must(x != MAP_FAILED);
    }
#if !defined(__SANITIZE_THREAD__) /* which takes the parent's threads for the child's */
    board = (struct board *)proc_shared(sizeof *board); /* of the child */
    for (int i = 0; i < 2; i++)
        worker_start(&w[i], work_until_told, x, i);
    proc_await(&board->count[1], 20, 20);
    word_store(&board->stop, 1);
    for (int i = 0; i < 2; i++)
        worker_join(&w[i]);
#endif
    env_increment(env_cell(x, 1));
    env_detach();
}

START_TEST(fork_beside_busy_threads)
{
    uint64_t *x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    struct worker w[3];

    for (int i = 0; i < 3; i++)
        worker_start(&w[i], work_until_told, x, i);
    proc_await(&board->count[0], 20, 20);
    for (int round = 0; round < 21; round++) {
        struct forked in = {x, round};

        proc_run(go_on_without_them, &in);
        if (round % 20 == 0)
            env_increment(env_cell(x, 1));
    }
    word_store(&board->stop, 1);
    for (int i = 0; i < 3; i++)
        worker_join(&w[i]);
    must_eq(env_get(env_cell(x, 1)), 21 + 2);
    env_detach();
}
END_TEST

/* Several threads of a child are the first to use it, all at once. */
static void *
join_at_once(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v;

    word_add(&board->ready, 1);
    while (word_load(&board->ready) % 5 != 0)
        ;
    if (w->i == 0) { /* has the view already */
        env_increment(env_cell(*(uint64_t **)(void *)w->base, 1));
        return NULL;
    }
    v = view_of(((uint64_t **)(void *)w->base)[1]);
    env_increment(env_cell(v, 1));
    return NULL;
}

static void
start_threads_at_once(void *arg)
{
    uint64_t **in = (uint64_t **)arg; /* own view, process's mapping */
    struct worker w[5];
    struct worker me = {.base = (uint64_t *)(void *)in, .i = 0};
    struct xac_stats s;

    for (int i = 1; i < 5; i++)
        worker_start(&w[i], join_at_once, (uint64_t *)(void *)in, i);
    (void)join_at_once(&me);
    for (int i = 1; i < 5; i++)
        worker_join(&w[i]);
    must_ok(xStats(&s, sizeof s));
    must_eq(s.participants, 2);
    env_detach();
}

START_TEST(threads_of_a_child_join_together)
{
    uint64_t *x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    uint64_t *in[2] = {view_of(x), x};

    for (int round = 0; round < 10; round++)
        proc_run(start_threads_at_once, in);
    must_eq(env_get(env_cell(in[0], 1)), 50);
    env_detach();
}
END_TEST

/* ---- crashes ------------------------------------------------------------------------------ */

static void *
commit_and_tell(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    for (uint64_t n = 1; n != 0; n++) {
        int rc;

        do {
            must_ok(xbegin());
            *env_cell(v, (size_t)w->i) = n;
            *env_cell(v, 8 + (size_t)w->i) = n;
            if (n % 16 == 0)
                *env_cell(v, 15) += 1;
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&board->count[w->i], n);
    }
    return NULL;
}

#define KILLED_THREADS 6

static void
commit_in_threads(void *arg)
{
    uint64_t *x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    struct worker w[KILLED_THREADS];

    (void)arg;
    for (int i = 0; i < KILLED_THREADS; i++)
        worker_start(&w[i], commit_and_tell, x, i);
    for (int i = 0; i < KILLED_THREADS; i++)
        worker_join(&w[i]);
}

/* Group commit among threads: what each was told is there after the crash. */
START_TEST(killed_process_loses_no_thread_s_commit)
{
    uint64_t rnd = env_seed();

    for (int round = 0; round < 8; round++) {
        uint64_t told[KILLED_THREADS], sum = 0;
        uint64_t *x;
        pid_t child = proc_spawn(commit_in_threads, NULL);

        for (int i = 0; i < KILLED_THREADS; i++)
            proc_await(&board->count[i], 3, 20);
        proc_sleep_us(rnd_below(&rnd, 20000));
        proc_kill(child);
        for (int i = 0; i < KILLED_THREADS; i++)
            told[i] = word_load(&board->count[i]);
        x = (uint64_t *)env_attach(DURABLE, N_PAGES);
        must_ok(xbegin());
        for (size_t i = 0; i < KILLED_THREADS; i++) {
            must(*env_cell(x, i) == told[i] || *env_cell(x, i) == told[i] + 1);
            must_eq(*env_cell(x, i), *env_cell(x, 8 + i));
            sum += *env_cell(x, i) / 16;
            *env_cell(x, i) = *env_cell(x, 8 + i) = 0;
            word_store(&board->count[i], 0);
        }
        must_eq(*env_cell(x, 15), sum);
        *env_cell(x, 15) = 0;
        must_rc(xend(), COMMITTED);
        env_detach();
    }
}
END_TEST

/* A survivor cleans up after all the threads of the dead. */
static void
work_in_threads(void *arg)
{
    struct worker w[4];
    uint64_t *x = (uint64_t *)arg;

    for (int i = 0; i < 4; i++)
        worker_start(&w[i], commit_and_tell, x, i);
    for (int i = 0; i < 4; i++)
        worker_join(&w[i]);
}

START_TEST(survivor_cleans_up_after_threads)
{
    uint64_t *x, rnd = env_seed();
    struct xac_stats s;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    for (int round = 0; round < 8; round++) {
        pid_t child = proc_spawn(work_in_threads, x);
        int rc;

        proc_await(&board->count[3], 20, 20);
        proc_sleep_us(rnd_below(&rnd, 3000));
        proc_kill(child);
        do { /* a commit that the dead had under way may cost us an attempt */
            must_ok(xbegin());
            for (size_t i = 0; i < 4; i++) {
                must_eq(*env_cell(x, i), *env_cell(x, 8 + i));
                must(*env_cell(x, i) >= word_load(&board->count[i]));
                *env_cell(x, i) = *env_cell(x, 8 + i) = *env_cell(x, 15) = 0;
            }
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        for (size_t i = 0; i < 4; i++)
            word_store(&board->count[i], 0);
    }
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must_eq(s.participants, 1);
    must_eq(s.dead_cleaned, 8);
    env_detach();
}
END_TEST

void
add_ends(Suite *s)
{
    TCase *tc = threads_tcase(s, "ends", 60);

    tcase_add_loop_test(tc, transaction_ends_with_its_thread, 0,
                        4 * (XAC_POLICY_SERIAL + 1));
    tcase_add_test(tc, detached_threads_leave_nothing_behind);
    tcase_add_test(tc, destructors_of_the_program_may_use_views);
    tcase_add_loop_test(tc, cancelled_thread_holds_nobody_up, 0,
                        2 * (XAC_POLICY_SERIAL + 1));

    tc = threads_tcase(s, "fork", 60);
    tcase_add_loop_test(tc, child_has_the_views_of_the_thread_that_forked, 0, 8);
    tcase_add_loop_test(tc, fork_beside_busy_threads, 0, 2);
    tcase_add_loop_test(tc, threads_of_a_child_join_together, 0, 2);

    tc = threads_tcase(s, "crashes", 120);
    tcase_add_test(tc, killed_process_loses_no_thread_s_commit);
    tcase_add_loop_test(tc, survivor_cleans_up_after_threads, 0, XAC_POLICY_SERIAL + 1);
}
