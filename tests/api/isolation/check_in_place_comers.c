/* SPDX-License-Identifier: MIT */
/*
 * check_in_place_comers.c -- others come while a process updates its pages in place.
 *
 * GOAL    Nobody sees a difference: what is committed is there for all who come, at any moment; what is
 *         not is nowhere, whether a transaction gives up or is revoked.
 * METHOD  Processes, children and threads come at random moments; the process that is alone is stopped, or
 *         killed.
 */
#include <config.h>

#include "check_in_place.h"

/* ---- Somebody comes ------------------------------------------------------------------------- */

static void
be_revoked(uint64_t *base, void (*come)(void *), bool is_aborted_first)
{
    uint64_t sum;
    struct xac_conflict why;

    enter(base, PAGES);
    must(!has_engine() || is_in_place());
    sum = env_get(base);
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p += 3) {
        must_ok(setPageAccess(env_cell(base, p), READ_WRITE));
        set_page(base, p, 7777777);
    }
    if (is_aborted_first)
        must_ok(xAbort());
    come(&(struct look){.sum = sum});
    for (uint64_t p = 0; p < PAGES; p += 5) {
        must_ok(setPageAccess(env_cell(base, p), READ_WRITE));
        set_page(base, p, 8888888);
    }
    come(&(struct look){.sum = sum});
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, is_aborted_first ? XAC_CONFLICT_USER : XAC_CONFLICT_REVOKED);
    must_ok(xbeginQuery());
    must_eq(must_be_whole(base, PAGES), sum);
    must_ok(xendQuery());
    come(&(struct look){.sum = sum});
}

static uint64_t *shared_base;

static void
look_as_a_child(void *arg)
{
    const struct look *l = arg;

    while (xend() == XAC_EFORKED)
        ;
    must_ok(xbeginQuery());
    must_eq(must_be_whole(shared_base, PAGES), l->sum);
    must_ok(xendQuery());
    env_detach();
}

static void
child_comes(void *arg)
{
    proc_run(look_as_a_child, arg);
}

static void *
look_as_a_thread(void *arg)
{
    const struct look *l = arg;
    uint64_t *view = xView(shared_base);

    must(view != NULL && view != MAP_FAILED);
    must_ok(xbeginQuery());
    must_eq(must_be_whole(view, PAGES), l->sum);
    must_ok(xendQuery());
    must_ok(xUnview(view));
    return NULL;
}

static void
thread_comes(void *arg)
{
    pthread_t t;

    must_eq(pthread_create(&t, NULL, look_as_a_thread, arg), 0);
    must_eq(pthread_join(t, NULL), 0);
}

static void (*const comers[])(void *) = {process_comes, child_comes, thread_comes};

START_TEST(revoked_stores_are_nowhere)
{
    pid_t pid;

    pid = serve_looks();
    shared_base = attach();
    for (int k = 0; k < 3; k++)
        be_revoked(shared_base, comers[_i], k == 1);
    env_detach();
    proc_kill(pid);
}
END_TEST

/* visit -- come, look, perhaps work, and go, again and again; one that is mortal goes without a word some time.
   Nobody is alone then until another one has left. */
static void
visit(void *arg)
{
    uint64_t seed = env_seed() + (uint64_t)getpid();

    while (word_load(&board->stop) == 0) {
        uint64_t *base;

        proc_sleep_us(rnd_below(&seed, 30000));
        base = attach();
        must_be_whole_now(base, PAGES);
        for (uint64_t k = rnd_below(&seed, 6); k > 0; k--)
            (void)try(base, PAGES, &seed);
        must_be_whole_now(base, PAGES);
        if (arg != NULL && rnd_below(&seed, 8) == 0)
            _exit(0); /* as one that is killed between transactions */
        env_detach();
    }
}

static void
visit_by_child(void *arg)
{
    uint64_t seed = env_seed() + (uint64_t)getpid();

    (void)arg;
    while (xend() == XAC_EFORKED)
        ;
    must_be_whole_now(shared_base, PAGES);
    for (uint64_t k = rnd_below(&seed, 6); k > 0; k--)
        (void)try(shared_base, PAGES, &seed);
    env_detach();
}

static void *
visit_by_thread(void *arg)
{
    uint64_t seed = env_seed() ^ (uint64_t)(uintptr_t)arg;

    while (word_load(&board->stop) == 0) {
        uint64_t *view;

        proc_sleep_us(rnd_below(&seed, 10000));
        view = xView(shared_base);
        must(view != NULL && view != MAP_FAILED);
        for (uint64_t k = 1 + rnd_below(&seed, 3); k > 0; k--) {
            must_be_whole_now(view, PAGES);
            (void)try(view, PAGES, &seed);
        }
        must_ok(xUnview(view));
    }
    return NULL;
}

/* work -- transactions beside visitors, with checkpoints and queries, for a while; where other processes leave little time, for a
   minute more, until some were in place. */
static void
work(uint64_t *base, double seconds, bool forks)
{
    uint64_t seed = env_seed(), n_in_place = 0;
    double end = env_now() + seconds;

    while (env_now() < end || (has_engine() && n_in_place == 0 && env_now() < end + 60)) {
        pid_t pid = 0;

        must(!proc_any_failed());
        for (int k = 0; k < 100; k++)
            (void)try(base, PAGES, &seed);
        n_in_place += is_in_place();
        if (rnd_below(&seed, 10) == 0)
            must_ok(xCheckpoint());
        if (forks) {
            must_ok(xbegin());
            step(base, PAGES, &seed);
            pid = proc_spawn(visit_by_child, NULL);
            step(base, PAGES, &seed);
            (void)xend();
            for (int k = 0; k < 20; k++)
                (void)try(base, PAGES, &seed);
            proc_join(pid);
        }
        must_ok(xbeginQuery());
        (void)must_be_whole(base, PAGES);
        proc_sleep_us(rnd_below(&seed, 500));
        (void)must_be_whole(base, PAGES);
        must_ok(xendQuery());
    }
    must(!has_engine() || n_in_place > 0);
}

START_TEST(visitors_at_any_moment)
{
    pid_t pid[2];

    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(visit, i == 0 ? NULL : board);
    shared_base = attach();
    work(shared_base, (double)env_number("XAC_SECONDS", 2), false);
    word_store(&board->stop, 1);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    must_be_whole_now(shared_base, PAGES);
    env_detach();
    proc_run(look, &(struct look){.is_any = true});
}
END_TEST

START_TEST(children_at_any_moment)
{
    shared_base = attach();
    work(shared_base, (double)env_number("XAC_SECONDS", 2), true);
    env_detach();
    proc_run(look, &(struct look){.is_any = true});
}
END_TEST

START_TEST(threads_at_any_moment)
{
    pthread_t t;

    shared_base = attach();
    must_eq(pthread_create(&t, NULL, visit_by_thread, board), 0);
    work(shared_base, (double)env_number("XAC_SECONDS", 2), false);
    word_store(&board->stop, 1);
    must_eq(pthread_join(t, NULL), 0);
    must_be_whole_now(shared_base, PAGES);
    env_detach();
    proc_run(look, &(struct look){.is_any = true});
}
END_TEST

static void
work_until_told(void *arg)
{
    uint64_t seed = env_seed() + 1, *base = arg;

    for (uint64_t n = 0; word_load(&board->stop) == 0; n++) {
        (void)try(base, PAGES, &seed);
        if (n == 100)
            word_store(&board->phase, 1);
    }
    env_detach();
}

/* Beside others a view gets memory that is mapped twice, to be refreshed: alone again, it is updated in place
   once more. */
START_TEST(alone_again_it_is_updated_in_place_again)
{
    uint64_t seed = env_seed(), *base;
    pid_t pid = serve_looks(), child;

    base = attach();
    for (int k = 0; k < 3; k++) {
        enter(base, PAGES);
        word_store(&board->stop, 0);
        word_store(&board->phase, 0);
        child = proc_spawn(work_until_told, base);
        proc_await(&board->phase, 1, 60);
        for (int i = 0; i < 300; i++)
            (void)try(base, PAGES, &seed);
        must(!is_in_place());
        word_store(&board->stop, 1);
        proc_join(child);
        must_be_whole_now(base, PAGES);
    }
    enter(base, PAGES);
    process_comes(&(struct look){.is_any = true});
    proc_kill(pid);
    env_detach();
}
END_TEST

/* ---- Stopped -------------------------------------------------------------------------------- */

static void
work_and_be_stopped(void *arg)
{
    uint64_t seed = env_seed(), *base = attach();

    (void)arg;
    enter(base, PAGES);
    word_store(&board->phase, 1);
    while (word_load(&board->stop) == 0) {
        (void)try(base, PAGES, &seed);
        word_add(&board->committed, 1);
    }
    must_be_whole_now(base, PAGES);
    env_detach();
}

/* wake -- let a process go on that has been stopped for 3 s: if it has the publish lock, all wait for it, as
   the manual says. */
static void
wake(void *arg)
{
    proc_sleep_us(3000000);
    (void)kill(*(const pid_t *)arg, SIGCONT);
    for (;;)
        pause();
}

/* A process that is stopped at any moment while it is alone: another one comes, works, and goes, or is
   killed; then the first one goes on, or is killed. */
START_TEST(stopped_while_alone)
{
    uint64_t seed = env_seed();

    for (int k = 0; k < 20; k++) {
        pid_t pid = proc_spawn(work_and_be_stopped, NULL);
        bool is_killed = k % 4 == 3;
        uint64_t *base;
        pid_t waker;

        proc_await(&board->phase, 1, 60);
        proc_sleep_us(rnd_below(&seed, 3000));
        must(kill(pid, SIGSTOP) == 0);
        waker = proc_spawn(wake, &pid);
        base = attach();
        must_be_whole_now(base, PAGES);
        proc_kill(waker);
        for (int i = 0; i < 20; i++)
            (void)try(base, PAGES, &seed);
        must_be_whole_now(base, PAGES);
        if (is_killed)
            proc_kill(pid);
        else
            must(kill(pid, SIGCONT) == 0);
        for (int i = 0; i < 20; i++)
            (void)try(base, PAGES, &seed);
        must_be_whole_now(base, PAGES);
        if (!is_killed)
            proc_await(&board->committed, word_load(&board->committed) + 5, 60);
        word_store(&board->stop, 1);
        if (!is_killed)
            proc_join(pid);
        word_store(&board->stop, 0);
        word_store(&board->phase, 0);
        must_be_whole_now(base, PAGES);
        env_detach();
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("in_place_comers");
    TCase *t = env_tcase_with(s, "comers", 120, setup);

    tcase_add_loop_test(t, revoked_stores_are_nowhere, 0, 3);
    tcase_add_test(t, visitors_at_any_moment);
    tcase_add_test(t, children_at_any_moment);
    tcase_add_test(t, threads_at_any_moment);
    tcase_add_test(t, alone_again_it_is_updated_in_place_again);
    t = env_tcase_with(s, "stopped", 120, setup);
    tcase_add_test(t, stopped_while_alone);
    return env_main(s);
}
