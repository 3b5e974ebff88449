/* SPDX-License-Identifier: MIT */
/*
 * check_polite.c -- begins that wait for other threads of the process, and limits of attempts and time
 * (XAC_OPT_WAIT_MS, xac_limits.h).
 *
 * GOAL    a begin that may wait gets the mappings when they are free, also beside a thread that never pauses; one
 *         that may not, or not so long, is refused in time, and nothing has happened.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <xac_limits.h>

#include "env.h"

#define N_PAGES 4

static uint64_t *x;
static struct board {
    _Atomic uint64_t step, stop, asked, done;
} * board;

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

/* ---- waiting for a thread ------------------------------------------------------------------- */

static void *
hold_for(void *arg)
{
    must_ok(xbegin());
    word_store(&board->step, 1);
    proc_sleep_us(*(const uint64_t *)arg);
    *x += 1;
    must_rc(xend(), COMMITTED);
    return NULL;
}

START_TEST(begin_waits_for_another_thread)
{
    const uint64_t wait_ms[] = {0, 100, 20000};
    uint64_t hold_us = 1000000;
    pthread_t t;
    double since, took;

    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, wait_ms[_i]));
    must_eq(pthread_create(&t, NULL, hold_for, &hold_us), 0);
    proc_await(&board->step, 1, 20);
    since = env_now();
    if (_i < 2)
        must_refuse(xbegin(), EBUSY);
    else
        must_ok(xbegin());
    took = env_now() - since;
    if (_i == 0)
        must(took < 0.09);
    else if (_i == 1)
        must(took > 0.09 && took < 0.9);
    if (_i == 2)
        must_rc(xend(), COMMITTED);
    must_eq(pthread_join(t, NULL), 0);
    must_eq(env_get(x), 1);
    env_detach();
}
END_TEST

static void *
never_pause(void *arg)
{
    (void)arg;
    while (word_load(&board->stop) == 0) {
        must_ok(xbegin());
        *x += 1;
        must_rc(xend(), COMMITTED);
        word_store(&board->step, 1);
    }
    return NULL;
}

START_TEST(one_that_never_pauses_lets_others_go)
{
    pthread_t t;

    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 20000));
    must_eq(pthread_create(&t, NULL, never_pause, NULL), 0);
    proc_await(&board->step, 1, 20);
    for (int i = 0; i < 50; i++) {
        must_ok(i % 2 == 0 ? xbegin() : xbeginQuery());
        must_rc(i % 2 == 0 ? xend() : xendQuery(), COMMITTED);
    }
    word_store(&board->stop, 1);
    must_eq(pthread_join(t, NULL), 0);
    env_detach();
}
END_TEST

/* Begins of one thread, and how often another one, which has the mappings nearly all the time, may be before it
   in all of them together.  By the rule that who comes while others wait sleeps once, it is hardly ever; without the
   rule it is several times in each. */
#define BEGINS    40
#define OVERTAKEN BEGINS

static void *
hold_again_and_again(void *arg)
{
    (void)arg;
    while (word_load(&board->stop) == 0) {
        must_ok(xbegin());
        word_store(&board->step, word_load(&board->step) + 1);
        proc_sleep_us(2000);
        must_rc(xend(), COMMITTED);
    }
    return NULL;
}

START_TEST(one_that_begins_again_is_not_the_first)
{
    uint64_t n_before = 0, since;
    pthread_t t;

    (void)env_attach(NONDURABLE, N_PAGES);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 20000));
    must_eq(pthread_create(&t, NULL, hold_again_and_again, NULL), 0);
    proc_await(&board->step, 1, 20);
    for (int i = 0; i < BEGINS && n_before <= OVERTAKEN; i++) {
        since = word_load(&board->step);
        must_ok(xbegin());
        n_before += word_load(&board->step) - since;
        must_rc(xend(), COMMITTED);
        proc_sleep_us(3000); /* the other one goes on */
    }
    word_store(&board->stop, 1);
    must_eq(pthread_join(t, NULL), 0);
    must(n_before <= OVERTAKEN);
    env_detach();
}
END_TEST

#define THREADS 8
#define EACH    300

static void *
add_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < EACH; i++) {
        must_ok(xbegin());
        *x += 1;
        must_rc(xend(), COMMITTED);
    }
    return NULL;
}

START_TEST(threads_share_the_mappings_in_turn)
{
    pthread_t t[THREADS];

    x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 60000));
    for (int i = 0; i < THREADS; i++)
        must_eq(pthread_create(&t[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        must_eq(pthread_join(t[i], NULL), 0);
    must_eq(env_get(x), THREADS * EACH);
    env_detach();
}
END_TEST

/* ---- limits ------------------------------------------------------------------------------- */

static void
store_when_asked(void *arg)
{
    uint64_t *mine;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    mine = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    word_store(&board->step, 1);
    for (uint64_t n = 1;; n++) {
        proc_await(&board->asked, n, 60);
        env_increment(mine);
        word_store(&board->done, n);
    }
}

/* lose -- a transaction that another one always overtakes. */
static int
lose(void *arg)
{
    uint64_t n = word_load(&board->asked) + 1;

    *env_cell(x, 1) = *x + 1; /* one that changes nothing would commit */
    proc_sleep_us(*(const uint64_t *)arg);
    word_store(&board->asked, n);
    proc_await(&board->done, n, 20);
    return 0;
}

START_TEST(attempts_and_time_end)
{
    struct xac_limits limits = {.size = sizeof limits, .attempts = 3};
    uint64_t sleep_us = 0;
    pid_t other = proc_spawn(store_when_asked, NULL);

    proc_await(&board->step, 1, 20);
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_rc(xTransactLimited(lose, &sleep_us, &limits), XAC_ABORTED);
    must_eq(word_load(&board->asked), 3);
    env_put(env_cell(x, 2), 1); /* the next one has lost no race */
    limits = (struct xac_limits){.size = sizeof limits, .wait_ms = 100};
    sleep_us = 70000;
    must_refuse(xTransactLimited(lose, &sleep_us, &limits), ETIMEDOUT);
    must(word_load(&board->asked) <= 5);
    must_eq(env_get(env_cell(x, 1)), 0);
    proc_kill(other);
    env_detach();
}
END_TEST

static int
store_five(void *arg)
{
    *(uint64_t *)arg = 5;
    return 0;
}

static int
fail_with_seven(void *arg)
{
    *(uint64_t *)arg = 6;
    return 7;
}

START_TEST(limits_are_checked)
{
    struct {
        struct xac_limits known;
        uint64_t more;
    } later = {.known = {.size = sizeof later}, .more = 1};
    struct xac_limits limits = {.size = 4};

    must_refuse(xTransactLimited(store_five, NULL, NULL), EINVAL);
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_refuse(xTransactLimited(store_five, x, NULL), EINVAL);
    must_refuse(xTransactLimited(store_five, x, &limits), EINVAL);
    must_refuse(xTransactLimited(store_five, x, &later.known), EINVAL);
    must_eq(env_get(x), 0);
    later.more = 0;
    must_ok(xTransactLimited(store_five, x, &later.known));
    must_eq(env_get(x), 5);
    limits = (struct xac_limits){.size = sizeof limits, .attempts = 1, .wait_ms = 1000};
    must_rc(xTransactLimited(fail_with_seven, x, &limits), 7);
    must_refuse(xTransactLimited(NULL, x, &limits), EINVAL);
    must_ok(xac_transact_limited_in(NULL, store_five, x, &limits) == XAC_ENOINIT ? 0 : 1);
    must_eq(env_get(x), 5);
    env_detach();
}
END_TEST

static void
keep_the_turn(void *arg)
{
    uint64_t *mine = (uint64_t *)env_attach(NONDURABLE, N_PAGES);

    (void)arg;
    must_ok(xbegin());
    *mine += 1;
    word_store(&board->step, 1);
    proc_sleep_us(60000000);
}

/* Under the serial policy: the begin waits for the turn of another process, as long as it may. */
START_TEST(begin_keeps_to_the_deadline)
{
    struct xac_limits limits = {.size = sizeof limits, .wait_ms = 150};
    pid_t other;
    double since;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    other = proc_spawn(keep_the_turn, NULL);
    proc_await(&board->step, 1, 20);
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    since = env_now();
    must_refuse(xTransactLimited(store_five, x, &limits), ETIMEDOUT);
    must(env_now() - since > 0.14 && env_now() - since < 5);
    proc_kill(other);
    must_ok(xTransact(store_five, x)); /* the limits were those of the call */
    must_eq(env_get(x), 5);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("polite");
    TCase *tc = env_tcase_with(s, "waits", 120, setup);

    tcase_add_loop_test(tc, begin_waits_for_another_thread, 0, 3);
    tcase_add_test(tc, one_that_never_pauses_lets_others_go);
    tcase_add_test(tc, one_that_begins_again_is_not_the_first);
    tcase_add_loop_test(tc, threads_share_the_mappings_in_turn, 0, 2);
    tcase_add_test(tc, attempts_and_time_end);
    tcase_add_test(tc, limits_are_checked);
    tcase_add_test(tc, begin_keeps_to_the_deadline);
    return env_main(s);
}
