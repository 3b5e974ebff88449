/* SPDX-License-Identifier: MIT */
/*
 * check_serial.c -- one writer at a time, tried from outside by processes that do not behave.
 *
 * GOAL    A process that holds the turn and exits, is killed, is stopped, forks, executes another
 *         program or loses the thread makes nobody wait for ever, and a stop costs one attempt.
 *         Queries wait for nobody.  (Waits that end in time: surroundings/check_waits.c.)
 * METHOD  A child takes the turn, says so, and does something.  The test then commits, under a limit
 *         of time that only a wait for ever would reach.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "check_serial.h"

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

/* ---- A wait that a signal handler leaves ----------------------------------------------- */

static sigjmp_buf out_of_the_wait;

static void
jump_out(int signo)
{
    (void)signo;
    siglongjmp(out_of_the_wait, 1);
}

/* leave_the_wait -- after it has become late, and then do something else. */
static void
leave_the_wait(void *arg)
{
    struct sigaction jump = {.sa_handler = jump_out};
    struct itimerval soon = {.it_value = {.tv_usec = 100000}};

    (void)arg;
    (void)attach();
    proc_await(&board->has_turn, 1, 20);
    must(sigaction(SIGALRM, &jump, NULL) == 0);
    if (sigsetjmp(out_of_the_wait, 1) == 0) {
        must(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        (void)xac_begin();
        must(false);
    }
    word_store(&board->go, 1);
    proc_await(&board->go, 2, 40);
    (void)xac_begin(); /* says what is wrong, and stops us */
}

/* The turn is not given to a process that does not wait any more. */
START_TEST(a_wait_that_was_left_holds_nobody_up)
{
    uint64_t *x;
    pid_t child;
    int status;

    choose(_i);
    child = proc_spawn(leave_the_wait, NULL);
    x = take_turn();
    proc_await(&board->go, 1, 20);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 10000));
    for (int i = 0; i < 3; i++) {
        must_ok(xac_begin());
        *env_cell(x, 1) += 1;
        must_rc(xac_end(), XAC_COMMITTED);
    }
    word_store(&board->go, 2);
    status = proc_wait(child);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must_eq(env_get(env_cell(x, 1)), 3);
    env_detach();
}
END_TEST

/* wait_for_the_parent -- in a child, as long as it may; then until the parent has committed. */
static void
wait_for_the_parent(uint64_t *x)
{
    must_refuse(xac_end(), XAC_EFORKED);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 30));
    must_refuse(xac_begin(), ETIMEDOUT);
    must(strstr(xac_last_error(), "xstat") != NULL);
    must_eq(env_get(x), 0); /* a query does not wait */
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
    word_store(&board->go, 1);
    must_ok(xac_begin());
    must_eq(*x, 3);
    *x = 4;
    must_rc(xac_end(), XAC_COMMITTED);
}

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
        wait_for_the_parent(x);
        _exit(0);
    }
    proc_await(&board->go, 1, 20);
    must_rc(xac_end(), XAC_COMMITTED);
    proc_join(child);
    must_eq(env_get(x), 4);
    env_detach();
}
END_TEST

/* fork_beside -- fork in the transaction that has the turn; the child begins one of its own. */
static pid_t
fork_beside(uint64_t *x, int expected)
{
    pid_t child = fork();

    must(child >= 0);
    if (child != 0)
        return child;
    must_rc(xac_end(), XAC_EFORKED);
    word_store(&board->go, 1);
    must_rc(xac_begin(), expected);
    if (expected == 0) {
        *env_cell(x, 1) += 1;
        must_rc(xac_end(), XAC_COMMITTED);
    } else {
        must(strstr(xac_last_error(), "forked") != NULL);
        must(strstr(xac_last_error(), "let it end that transaction before it waits")
             != NULL);
        must_rc(xac_end(), XAC_ENOTXN);
    }
    must_eq(env_get(x), expected == 0 ? 9 : 0); /* a query does not wait */
    _exit(0);
}

/* A parent that waits for its child inside of a transaction gets it back, without XAC_OPT_WAIT_MS, too. */
START_TEST(a_child_gives_up_waiting_for_its_parent)
{
    uint64_t *x, *v;
    pid_t child;

    choose(_i / 2 * 3);
    x = attach();
    v = _i % 2 == 0 ? x : (uint64_t *)xac_view(x);
    must_ok(xac_begin());
    *v = 9;
    child = fork_beside(v, EDEADLK);
    proc_join(child);
    must_rc(xac_end(), XAC_COMMITTED);
    must_eq(env_get(v), 9);
    env_detach();
}
END_TEST

static void
wait_and_hold(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    proc_await(&board->has_turn, 1, 20);
    word_store(&board->attempts, 1);
    must_ok(xac_begin());
    *env_cell(x, 2) += 1;
    proc_sleep_us(4000000);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_shutdown());
}

/* For others than the parent a child waits like anybody, although it has waited for the parent first. */
START_TEST(a_child_waits_for_others)
{
    pid_t child, other;
    uint64_t *x;

    choose(0);
    other = proc_spawn(wait_and_hold, NULL);
    x = take_turn();
    *x = 9;
    proc_await(&board->attempts, 1, 20);
    proc_sleep_us(200000); /* it is late by now, and before the child */
    child = fork_beside(x, 0);
    proc_await(&board->go, 1, 20);
    proc_sleep_us(200000);
    must_rc(xac_end(), XAC_COMMITTED);
    proc_join(other);
    proc_join(child);
    must_eq(env_get(env_cell(x, 1)), 1);
    must_eq(env_get(env_cell(x, 2)), 1);
    env_detach();
}
END_TEST

/* ---- Two processes take the turns of two environments in different orders -------------------------- */

static uint64_t limit_ms = 50; /* 0: none */

static struct xac_env *
open_one(const char *dir, const char *file, uint64_t **xp)
{
    struct xac_options o;
    struct xac_env *env;

    xac_options_init(&o, sizeof o);
    o.value[XAC_OPT_POLICY] = XAC_POLICY_SERIAL;
    o.value[XAC_OPT_WAIT_MS] = limit_ms;
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
            proc_sleep_us((uint64_t)gettid() % 7 * 10000);
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

/* The same by two threads of a process, with views of their own. */
struct circle {
    struct xac_env *first, *second;
    uint64_t *x, *y;
};

static void *
go_round(void *arg)
{
    const struct circle *c = (const struct circle *)arg;
    uint64_t *x = (uint64_t *)xac_view_in(c->first, c->x);
    uint64_t *y = (uint64_t *)xac_view_in(c->second, c->y);

    must(x != MAP_FAILED && y != MAP_FAILED);
    for (int i = 0; i < 20; i++)
        both(c->first, c->second, x, y);
    must_ok(xac_unview_in(c->first, x));
    must_ok(xac_unview_in(c->second, y));
    return NULL;
}

START_TEST(a_circle_of_two_threads_ends)
{
    struct circle there, back;
    pthread_t thread[2];

    there.first = back.second = open_one("a", "a.db", &there.x);
    there.second = back.first = open_one("b", "b.db", &there.y);
    back.x = there.y;
    back.y = there.x;
    must_eq(pthread_create(&thread[0], NULL, go_round, &there), 0);
    must_eq(pthread_create(&thread[1], NULL, go_round, &back), 0);
    must_eq(pthread_join(thread[0], NULL), 0);
    must_eq(pthread_join(thread[1], NULL), 0);
    must_ok(xac_begin_query_in(there.first));
    must_eq(*there.x, 40);
    must_ok(xac_end_query_in(there.first));
    must_ok(xac_close(there.second));
    must_ok(xac_close(there.first));
}
END_TEST

/* ---- Many who wait --------------------------------------------------------------------------- */

#define MANY         64u
#define TURNS_OF_ONE 6u

static uint64_t
n_turns(const uint64_t *x)
{
    return *(const volatile uint64_t *)x;
}

/* take_turns -- note the most turns that others have had while we waited for one. */
static void
take_turns(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    word_add(&board->has_turn, 1);
    proc_await(&board->go, 1, 60);
    for (unsigned i = 0; i < TURNS_OF_ONE; i++) {
        uint64_t before = word_load(&board->n_turns), waited, most;

        must_ok(xac_begin());
        waited = n_turns(x) - before;
        most = word_load(&board->longest);
        while (waited > most
               && !atomic_compare_exchange_weak_explicit(&board->longest, &most, waited,
                                                         memory_order_acq_rel,
                                                         memory_order_acquire)) {
        }
        proc_sleep_us(1000); /* all others come to wait */
        *x += 1;
        must_rc(xac_end(), XAC_COMMITTED);
        word_add(&board->n_turns, 1);
    }
    must_ok(xac_shutdown());
}

/* A process is late after 4 ms, that is a few turns; then each other one may pass it by once. */
START_TEST(nobody_waits_much_longer_than_all_others_take)
{
    pid_t pid[MANY];

    choose(_i);
    for (unsigned i = 0; i < MANY; i++)
        pid[i] = proc_spawn(take_turns, NULL);
    proc_await(&board->has_turn, MANY, 60);
    word_store(&board->go, 1);
    for (unsigned i = 0; i < MANY; i++)
        proc_join(pid[i]);
    printf("most turns of others before a turn, of %u that wait: %d\n", MANY,
           (int)word_load(&board->longest));
    must_eq(word_load(&board->n_turns), MANY * TURNS_OF_ONE);
    must(word_load(&board->longest) <= 2 * MANY);
    must_eq(env_get(attach()), MANY * TURNS_OF_ONE);
    env_detach();
}
END_TEST

/* ---- Readers --------------------------------------------------------------------------------- */

/* A participant that may not write has no part in the turn. */
static void
read_only(void *arg)
{
    const uint64_t *x;

    (void)arg;
    proc_await(&board->has_turn, 1, 20);
    must_ok(xac_init(ENV_DIR, XAC_READONLY));
    x = (const uint64_t *)xac_mmap(ENV_FILE, N_PAGES * env_page());
    must(x != MAP_FAILED);
    for (int i = 0; i < 100; i++)
        must_eq(env_get(x), 0);
    must_refuse(xac_begin(), XAC_EREADONLY);
    must_ok(xac_shutdown());
}

START_TEST(a_reader_waits_for_nobody)
{
    uint64_t *x;
    pid_t child;

    choose(_i);
    child = proc_spawn(read_only, NULL);
    x = take_turn();
    proc_join(child);
    must_rc(xac_end(), XAC_COMMITTED);
    must_eq(env_get(x), 1);
    env_detach();
}
END_TEST

/* cross -- begin in one environment, and in the other one when the other process has begun, too; ret
   whether this process had to give up. */
static bool
cross(struct xac_env *first, struct xac_env *second, uint64_t *x, uint64_t *y)
{
    int rc;

    must_ok(xac_begin_in(first));
    *x += 1;
    word_add(&board->has_turn, 1);
    proc_await(&board->has_turn, 2, 20);
    rc = xac_begin_in(second);
    if (rc != 0) {
        must_eq(rc, EDEADLK);
        must(strstr(xac_last_error(), "another environment") != NULL);
        must(strstr(xac_last_error(), "end or abort that one, then try again") != NULL);
        must_ok(xac_abort_in(first));
        must_rc(xac_end_in(first), XAC_ABORTED);
        return true;
    }
    *y += 1;
    must_rc(xac_end_in(second), XAC_COMMITTED);
    must_rc(xac_end_in(first), XAC_COMMITTED);
    return false;
}

static void
cross_in_the_other_order(void *arg)
{
    uint64_t *x, *y;
    struct xac_env *a = open_one("a", "a.db", &x), *b = open_one("b", "b.db", &y);

    (void)arg;
    proc_sleep_us(100000); /* so that the other one gives up first, as a rule */
    word_add(&board->revoked, cross(b, a, y, x));
    must_ok(xac_close(b));
    must_ok(xac_close(a));
}

START_TEST(a_circle_ends_without_a_limit)
{
    uint64_t *x, *y, n_given_up;
    struct xac_env *a, *b;
    pid_t child;

    limit_ms = 0;
    child = proc_spawn(cross_in_the_other_order, NULL);
    a = open_one("a", "a.db", &x);
    b = open_one("b", "b.db", &y);
    n_given_up = cross(a, b, x, y);
    proc_join(child);
    n_given_up += word_load(&board->revoked);
    must(n_given_up >= 1);
    must_ok(xac_begin_query_in(a));
    must_eq(*x, 2 - n_given_up);
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
    tcase_add_loop_test(tc, a_query_waits_for_nobody, 0, WAYS);
    tcase_add_loop_test(tc, a_wait_that_was_left_holds_nobody_up, 0, WAYS);
    tcase_add_loop_test(tc, the_turn_stays_with_the_parent, 0, WAYS);
    tcase_add_loop_test(tc, a_child_gives_up_waiting_for_its_parent, 0, 4);
    tcase_add_test(tc, a_child_waits_for_others);
    tcase_add_test(tc, a_circle_of_two_environments_ends);
    tcase_add_test(tc, a_circle_of_two_threads_ends);
    tcase_add_loop_test(tc, nobody_waits_much_longer_than_all_others_take, 0, 2);
    tcase_add_loop_test(tc, a_reader_waits_for_nobody, 0, WAYS);
    tcase_add_test(tc, a_circle_ends_without_a_limit);
    tcase_add_loop_test(tc, the_policy_is_that_of_the_first, 0, 2 * WAYS);
    return env_main(s);
}
