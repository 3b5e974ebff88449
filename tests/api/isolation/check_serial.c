/* SPDX-License-Identifier: MIT */
/*
 * check_serial.c -- one writer at a time, tried from outside by processes that do not behave.
 *
 * GOAL    A process that holds the turn and exits, is killed, is stopped, forks, executes another
 *         program or loses the thread makes nobody wait for ever, and a stop costs one attempt.
 *         A wait ends after XAC_OPT_WAIT_MS.  Queries wait for nobody.
 * METHOD  A child takes the turn, says so, and does something.  The test then commits, under a limit
 *         of time that only a wait for ever would reach.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "tests/common/env.h"

#define N_PAGES 4
#define WAYS    4 /* durable or not; each access watched or not */

struct board {
    _Atomic uint64_t has_turn, go, attempts, revoked;
};

static struct board *board;
static int mode;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

/* choose -- the way of this run of a test. */
static void
choose(int way)
{
    mode = (way & 1) != 0 ? XAC_DURABLE : XAC_NONDURABLE;
    env_checking = (way & 2) != 0 ? XAC_CHECKING_STRICT : XAC_CHECKING_FAST;
}

static uint64_t *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    return (uint64_t *)env_attach(mode, N_PAGES);
}

/* take_turn -- begin, store 1 in page 0, and say so. */
static uint64_t *
take_turn(void)
{
    uint64_t *x = attach();

    must_ok(xac_begin());
    *x = 1;
    word_store(&board->has_turn, 1);
    return x;
}

/* commit_beside -- the test can commit, and finds nothing of what the child has stored. */
static void
commit_beside(uint64_t *x)
{
    proc_await(&board->has_turn, 1, 20);
    must_ok(xac_begin());
    must_eq(*x, 0);
    *env_cell(x, 1) = 7;
    must_rc(xac_end(), XAC_COMMITTED);
}

/* ---- Holders that go away -------------------------------------------------------------- */

static void *
take_turn_in_a_thread(void *arg)
{
    uint64_t *base = (uint64_t *)arg;
    uint64_t *mine = (uint64_t *)xac_view(base);

    must(mine != MAP_FAILED);
    must_ok(xac_begin());
    *mine = 1;
    return NULL;
}

enum leaving {
    EXITS,
    EXITS_AT_ONCE,
    IS_KILLED,
    EXECUTES,
    SHUTS_DOWN,
    LOSES_ITS_THREAD,
    N_LEAVINGS
};

static void
leave(void *arg)
{
    enum leaving how = *(const enum leaving *)arg;
    pthread_t thread;
    uint64_t *x;

    if (how == LOSES_ITS_THREAD) {
        x = attach();
        must_eq(pthread_create(&thread, NULL, take_turn_in_a_thread, x), 0);
        must_eq(pthread_join(thread, NULL), 0);
        word_store(&board->has_turn, 1);
        proc_await(&board->go, 1, 20);
        return;
    }
    (void)take_turn();
    if (how == EXITS)
        exit(0);
    if (how == EXITS_AT_ONCE)
        _exit(0);
    if (how == IS_KILLED)
        (void)raise(SIGKILL);
    if (how == EXECUTES)
        (void)execl("/bin/sleep", "sleep", "0.2", (char *)NULL);
    if (how == SHUTS_DOWN)
        (void)xac_shutdown();
}

START_TEST(others_commit_when_the_holder_leaves)
{
    enum leaving how = (enum leaving)(_i / WAYS);
    uint64_t *x;
    pid_t child;

    choose(_i % WAYS);
    child = proc_spawn(leave, &how);
    x = attach();
    commit_beside(x);
    word_store(&board->go, 1);
    (void)proc_wait(child);
    commit_beside(x);
    env_detach();
}
END_TEST

/* ---- A holder that is stopped ---------------------------------------------------------- */

static void
stop_with_the_turn(void *arg)
{
    struct xac_conflict why;
    uint64_t *x = take_turn();
    int rc;

    (void)arg;
    (void)raise(SIGSTOP);
    for (;;) {
        word_add(&board->attempts, 1);
        rc = xac_end();
        if (rc == XAC_COMMITTED)
            break;
        must_eq(rc, XAC_ABORTED);
        must_ok(xac_get_conflict(&why, sizeof why));
        word_add(&board->revoked, why.kind == XAC_CONFLICT_REVOKED);
        must_ok(xac_begin());
        must_eq(*env_cell(x, 1), 7);
        *x += 1;
    }
    must_ok(xac_shutdown());
}

START_TEST(a_stop_costs_one_attempt)
{
    pid_t child;
    int status;

    choose(_i);
    child = proc_spawn(stop_with_the_turn, NULL);
    must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    commit_beside(attach());
    must_eq(kill(child, SIGCONT), 0);
    proc_join(child);
    must_eq(word_load(&board->attempts), 2);
    must_eq(word_load(&board->revoked), 1);
    env_detach();
}
END_TEST

/* ---- Waiting ----------------------------------------------------------------------------- */

static void
hold(void *arg)
{
    (void)arg;
    (void)take_turn();
    proc_await(&board->go, 1, 20);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_shutdown());
}

START_TEST(a_wait_ends_in_time)
{
    uint64_t *x;
    double since;
    pid_t child;

    choose(_i);
    child = proc_spawn(hold, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 30));
    since = env_now();
    must_refuse(xac_begin(), ETIMEDOUT);
    must(env_now() - since >= 0.029);
    must_rc(xac_end(), XAC_ENOTXN);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
    word_store(&board->go, 1);
    must_ok(xac_begin());
    must_eq(*x, 1);
    *x = 5;
    must_rc(xac_end(), XAC_COMMITTED);
    proc_join(child);
    env_detach();
}
END_TEST

START_TEST(a_query_waits_for_nobody)
{
    uint64_t *x;
    pid_t child;

    choose(_i);
    child = proc_spawn(hold, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    for (int i = 0; i < 100; i++) {
        must_ok(xac_begin_query());
        must_eq(*x, 0);
        must_ok(xac_end_query());
    }
    word_store(&board->go, 1);
    proc_join(child);
    must_ok(xac_begin_query());
    must_eq(*x, 1);
    must_ok(xac_end_query());
    env_detach();
}
END_TEST

/* A child of fork() has no transaction.  It waits for its parent's turn, and no longer. */
START_TEST(the_turn_stays_with_the_parent)
{
    uint64_t *x;
    pid_t child;

    choose(_i);
    x = attach();
    must_ok(xac_begin());
    *x = 3;
    child = fork();
    must(child >= 0);
    if (child == 0) {
        int rc = xac_set_option(XAC_OPT_WAIT_MS, 30);

        rc = rc == 0 ? xac_begin() : rc;
        if (rc == ETIMEDOUT)
            rc = xac_set_option(XAC_OPT_WAIT_MS, 0);
        word_store(&board->go, 1);
        rc = rc == 0 ? xac_begin() : rc;
        if (rc == 0)
            rc = *x == 3 ? 0 : 1;
        *x = 4;
        if (xac_end() != XAC_COMMITTED)
            rc = 2;
        _exit(rc);
    }
    proc_await(&board->go, 1, 20);
    must_rc(xac_end(), XAC_COMMITTED);
    proc_join(child);
    must_eq(env_get(x), 4);
    env_detach();
}
END_TEST

/* ---- Two processes take the turns of two environments in different orders -------------------------- */

static struct xac_env *
open_one(const char *dir, const char *file, uint64_t **xp)
{
    struct xac_options o;
    struct xac_env *env;

    xac_options_init(&o, sizeof o);
    o.value[XAC_OPT_POLICY] = XAC_POLICY_SERIAL;
    o.value[XAC_OPT_WAIT_MS] = 50;
    env = xac_open(dir, &o);
    must(env != NULL);
    *xp = (uint64_t *)xac_mmap_in(env, file, env_page());
    must(*xp != MAP_FAILED);
    return env;
}

/* both -- add 1 in both environments, in this order, until the times out are over. */
static void
both(struct xac_env *first, struct xac_env *second, uint64_t *x, uint64_t *y)
{
    for (;;) {
        int rc = xac_begin_in(first);

        if (rc == ETIMEDOUT)
            continue;
        must_ok(rc);
        rc = xac_begin_in(second);
        if (rc == ETIMEDOUT) {
            (void)xac_abort_in(first);
            (void)xac_end_in(first);
            proc_sleep_us((uint64_t)getpid() % 7 * 10000);
            continue;
        }
        must_ok(rc);
        *x += 1;
        *y += 1;
        must_rc(xac_end_in(second), XAC_COMMITTED);
        must_rc(xac_end_in(first), XAC_COMMITTED);
        return;
    }
}

static void
other_order(void *arg)
{
    uint64_t *x, *y;
    struct xac_env *a = open_one("a", "a.db", &x), *b = open_one("b", "b.db", &y);

    (void)arg;
    for (int i = 0; i < 20; i++)
        both(b, a, y, x);
    must_ok(xac_close(b));
    must_ok(xac_close(a));
}

START_TEST(a_circle_of_two_environments_ends)
{
    uint64_t *x, *y;
    struct xac_env *a, *b;
    pid_t child;

    child = proc_spawn(other_order, NULL);
    a = open_one("a", "a.db", &x);
    b = open_one("b", "b.db", &y);
    for (int i = 0; i < 20; i++)
        both(a, b, x, y);
    proc_join(child);
    must_ok(xac_begin_query_in(a));
    must_eq(*x, 40);
    must_ok(xac_end_query_in(a));
    must_ok(xac_close(b));
    must_ok(xac_close(a));
}
END_TEST

/* ---- Another policy ------------------------------------------------------------------------- */

/* The policy is the first participant's: a process that wishes another one waits, too. */
static void
wish_another_policy(void *arg)
{
    uint64_t *x;

    must_ok(xac_set_option(XAC_OPT_POLICY, *(const uint64_t *)arg));
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 30));
    x = (uint64_t *)env_attach(mode, N_PAGES);
    must_refuse(xac_begin(), ETIMEDOUT);
    word_store(&board->go, 1);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
    must_ok(xac_begin());
    must_eq(*x, 1);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_shutdown());
}

START_TEST(the_policy_is_that_of_the_first)
{
    static const uint64_t policies[] = {XAC_POLICY_OLDEST_WINS, XAC_POLICY_OPTIMISTIC};

    uint64_t wish = policies[_i / WAYS];
    pid_t holder, other;

    choose(_i % WAYS);
    holder = proc_spawn(hold, NULL);
    proc_await(&board->has_turn, 1, 20);
    other = proc_spawn(wish_another_policy, &wish);
    proc_join(other);
    proc_join(holder);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("serial");
    TCase *tc = env_tcase_with(s, "serial", 60, setup);

    tcase_add_loop_test(tc, others_commit_when_the_holder_leaves, 0, WAYS * N_LEAVINGS);
    tcase_add_loop_test(tc, a_stop_costs_one_attempt, 0, WAYS);
    tcase_add_loop_test(tc, a_wait_ends_in_time, 0, WAYS);
    tcase_add_loop_test(tc, a_query_waits_for_nobody, 0, WAYS);
    tcase_add_loop_test(tc, the_turn_stays_with_the_parent, 0, WAYS);
    tcase_add_test(tc, a_circle_of_two_environments_ends);
    tcase_add_loop_test(tc, the_policy_is_that_of_the_first, 0, 2 * WAYS);
    return env_main(s);
}
