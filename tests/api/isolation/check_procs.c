/* SPDX-License-Identifier: MIT */
/*
 * check_procs.c -- processes that come, fork, stop, vanish and go.
 *
 * GOAL    nobody waits for the dead or, without a conflict, for the stopped; nothing of an
 *         open transaction of theirs is seen; a child of fork() is a participant of its
 *         own; the last one out leaves complete files.
 * METHOD  children that attach themselves are forked before the parent does; fork() tests
 *         fork after xMmap().
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

/* Bit 0 of a loop variable: the mode; bit 1: a third process is
   attached, idle; bit 2: XAC_CHECKING_FAST. */
#define MODE(i) (((i)&1) == 0 ? NONDURABLE : DURABLE)
#define N_PAGES 16

struct board {
    _Atomic uint64_t step;
    _Atomic uint64_t stop;
    _Atomic uint64_t attached; /* children, see meet() */
    _Atomic uint64_t parent_attached;
    _Atomic uint64_t commits[64];
};

static struct board *board;
static int mode; /* of the test that runs */

static uint64_t
participants(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s.participants;
}

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

/* The children's side of meet(): attached, and so is the parent. */
static void
meet_parent(void)
{
    word_add(&board->attached, 1);
    proc_await(&board->parent_attached, 1, 20);
}

/* Attach when `n` children have; from now on nobody is alone. */
static uint64_t *
meet(uint64_t n)
{
    uint64_t *x;

    proc_await(&board->attached, n, 20);
    x = env_attach(mode, N_PAGES);
    word_store(&board->parent_attached, 1);
    return x;
}

/* Begin, store in page 0, and stay there until the end. */
static void
hold_page_0(void *arg)
{
    uint64_t *x = env_attach(mode, N_PAGES);

    (void)arg;
    meet_parent();
    must_ok(xbegin());
    *env_cell(x, 0) = 666;
    (void)*(volatile uint64_t *)env_cell(x, 1);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 60);
    must_rc(xend(), COMMITTED);
    env_detach();
}

/* ---- stopped and killed ------------------------------------------------------------------------ */

START_TEST(stopped_process_does_not_stop_others)
{
    uint64_t *x;
    pid_t child;
    int status;

    env_let_overlap();
    mode = MODE(_i);
    child = proc_spawn(hold_page_0, NULL);
    x = meet(1);
    proc_await(&board->step, 1, 20);
    must(kill(child, SIGSTOP) == 0);
    must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    for (uint64_t i = 1; i <= 500; i++)
        env_put(env_cell(x, 2 + i % 3), i);
    must_eq(env_get(env_cell(x, 0)), 0);
    must_ok(xbegin());
    must_eq(*(volatile uint64_t *)env_cell(x, 1), 0);
    *env_cell(x, 5) = 1;
    must_rc(xend(), COMMITTED);
    must_ok(xCheckpoint());
    must_eq(env_get(env_cell(x, 4)), 500);
    word_store(&board->step, 2);
    must(kill(child, SIGCONT) == 0);
    proc_join(child);
    must_eq(env_get(env_cell(x, 0)), 666);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 666);
    must_eq(file_u64(ENV_FILE, 5 * env_page()), 1);
}
END_TEST

START_TEST(killed_process_leaves_nothing_behind)
{
    struct xac_stats s;
    double began;
    uint64_t *x;
    pid_t child;

    mode = MODE(_i);
    child = proc_spawn(hold_page_0, NULL);
    x = meet(1);
    proc_await(&board->step, 1, 20);
    proc_kill(child);
    began = env_now();
    env_put(env_cell(x, 2), 1);
    must_eq(env_get(env_cell(x, 0)), 0);
    must_ok(xbegin());
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 0);
    *env_cell(x, 0) = 1;
    *env_cell(x, 1) = 2;
    must_rc(xend(), COMMITTED);
    must(env_now() - began < 2);
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must_eq(s.dead_cleaned, 1);
    must_eq(s.participants, 1);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 1);
    must_eq(file_u64(ENV_FILE, env_page()), 2);
}
END_TEST

/* A query of a dead process must not hold old versions for ever. */
static void
hold_a_query(void *arg)
{
    uint64_t *x = env_attach(mode, N_PAGES);

    (void)arg;
    must_ok(xbeginQuery());
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 0);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 60);
}

START_TEST(killed_query_lets_versions_go)
{
    struct xac_stats held, s;
    uint64_t *x;
    pid_t child;

    child = proc_spawn(hold_a_query, NULL);
    x = env_attach(NONDURABLE, N_PAGES);
    proc_await(&board->step, 1, 20);
    for (uint64_t i = 1; i <= 300; i++)
        env_put(env_cell(x, i % N_PAGES), i);
    proc_kill(child);
    must_ok(xStats(&held, sizeof held));
    for (uint64_t i = 301; i <= 3000; i++)
        env_put(env_cell(x, i % N_PAGES), i);
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must(s.versions_live < 200);
    env_detach();
    must_eq(file_u64(ENV_FILE, 8 * env_page()), 3000);
}
END_TEST

static void
commit_until_killed(void *arg)
{
    size_t self = (size_t) * (const int *)arg;
    uint64_t *x = env_attach(mode, N_PAGES);

    for (uint64_t i = 1; word_load(&board->stop) == 0; i++) {
        int rc;

        must_ok(xbegin());
        *env_cell(x, self) += 1;
        *env_cell(x, 15) += 1;
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
        if (rc == COMMITTED)
            word_store(&board->commits[self], i);
    }
    env_detach();
}

/* Killed anywhere: the survivor goes on at once, every time. */
START_TEST(survivor_goes_on_after_each_kill)
{
    static int numbers[] = {0, 1};
    uint64_t rnd = env_seed();
    uint64_t sum;
    pid_t survivor, victim;
    uint64_t *x;

    mode = MODE(_i);
    survivor = proc_spawn(commit_until_killed, &numbers[0]);
    proc_await(&board->commits[0], 1, 20);
    for (int round = 0; round < 40; round++) {
        word_store(&board->commits[1], 0);
        victim = proc_spawn(commit_until_killed, &numbers[1]);
        proc_await(&board->commits[1], 1, 20);
        proc_sleep_us(rnd_below(&rnd, 3000));
        proc_kill(victim);
        proc_await(&board->commits[0], word_load(&board->commits[0]) + 5, 2);
    }
    word_store(&board->stop, 1);
    proc_join(survivor);
    x = env_attach(mode, N_PAGES);
    must_ok(xbeginQuery());
    sum = *env_cell(x, 0) + *env_cell(x, 1);
    must_eq(*env_cell(x, 15), sum);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* A third process, and staying mapped, if the loop variable says so. */
static pid_t
company(int i)
{
    env_checking = (i & 4) != 0 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    return (i & 2) != 0 ? env_companion(MODE(i), N_PAGES) : 0;
}

static void
dismiss(pid_t companion)
{
    if (companion != 0)
        proc_kill(companion);
}

/* ---- fork after xMmap ------------------------------------------------------------------------------ */

static void
forked_child_commits(void *arg)
{
    uint64_t *x = arg;

    must_eq(env_get(env_cell(x, 0)), 5);
    must(participants() >= 2);
    env_put(env_cell(x, 1), 6);
    must_ok(xbegin());
    *env_cell(x, 2) = *env_cell(x, 1) + 1;
    must_rc(xend(), COMMITTED);
    env_detach();
    must_refuse(xbegin(), XAC_ENOINIT);
}

START_TEST(forked_child_is_a_participant)
{
    pid_t companion = company(_i);
    uint64_t *x = env_attach(MODE(_i), N_PAGES);

    env_put(env_cell(x, 0), 5);
    proc_run(forked_child_commits, x);
    must_eq(env_get(env_cell(x, 1)), 6);
    must_eq(participants(), companion != 0 ? 2 : 1);
    must_ok(xbegin());
    must_eq(*env_cell(x, 2), 7);
    *env_cell(x, 2) += 1;
    must_rc(xend(), COMMITTED);
    dismiss(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 8);
}
END_TEST

struct fork_arg {
    uint64_t *x;
    bool is_query;
};

/* The child inherited an open transaction, or query, that is not its own. */
static void
child_of_open_transaction(void *arg)
{
    const struct fork_arg *a = arg;

    if (a->is_query) {
        must_refuse(xendQuery(), XAC_EFORKED);
    } else {
        must_refuse(xValidate(), XAC_EFORKED);
        must_refuse(xend(), XAC_EFORKED);
    }
    must_refuse(xend(), XAC_ENOTXN);
    must_eq(env_get(env_cell(a->x, 0)), 5);
    env_put(env_cell(a->x, 1), 11);
    word_store(&board->step, 1);
    env_detach();
}

START_TEST(open_transaction_belongs_to_the_parent)
{
    struct xac_conflict why;
    struct fork_arg arg;
    pid_t companion;
    uint64_t *x;
    int rc;

    env_let_overlap();
    companion = company(_i);
    x = env_attach(MODE(_i), N_PAGES);
    arg = (struct fork_arg){.x = x};
    env_put(env_cell(x, 0), 5);
    must_ok(xbegin());
    *env_cell(x, 0) = 50;
    must_eq(*(volatile uint64_t *)env_cell(x, 3), 0);
    proc_run(child_of_open_transaction, &arg);
    must_eq(*env_cell(x, 0), 50);
    *env_cell(x, 2) = 51;
    rc = xend();
    if (companion == 0 && rc == ABORTED) {
        /* It had been alone, and nobody knew what it had read: documented. */
        must_ok(xConflict(&why, sizeof why));
        must_eq(why.kind, XAC_CONFLICT_REVOKED);
        must_eq(env_get(env_cell(x, 0)), 5);
        must_eq(env_get(env_cell(x, 2)), 0);
        env_put(env_cell(x, 0), 50);
        env_put(env_cell(x, 2), 51);
    } else {
        must_rc(rc, COMMITTED);
    }
    must_eq(env_get(env_cell(x, 0)), 50);
    must_eq(env_get(env_cell(x, 1)), 11);
    must_eq(env_get(env_cell(x, 2)), 51);
    dismiss(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 50);
}
END_TEST

START_TEST(open_query_belongs_to_the_parent)
{
    pid_t companion = company(_i);
    uint64_t *x = env_attach(MODE(_i), N_PAGES);
    struct fork_arg arg = {.x = x, .is_query = true};

    env_put(env_cell(x, 0), 5);
    must_ok(xbeginQuery());
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 5);
    proc_run(child_of_open_transaction, &arg);
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 5);
    must_eq(*(volatile uint64_t *)env_cell(x, 1), 0);
    must_ok(xendQuery());
    must_eq(env_get(env_cell(x, 1)), 11);
    dismiss(companion);
    env_detach();
}
END_TEST

/* The child vanishes at once, without a call: the parent's transaction is untouched. */
static void
vanish(void *arg)
{
    (void)arg;
}

START_TEST(child_that_does_nothing_does_no_harm)
{
    pid_t companion = company(_i);
    uint64_t *x = env_attach(MODE(_i), N_PAGES);

    for (uint64_t i = 0; i < 20; i++) {
        must_ok(xbegin());
        *env_cell(x, i % 4) += 1;
        proc_run(vanish, NULL);
        *env_cell(x, 4) += 1;
        must_rc(xend(), COMMITTED);
        proc_run(vanish, NULL);
    }
    must_eq(env_get(env_cell(x, 4)), 20);
    dismiss(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 4 * env_page()), 20);
}
END_TEST

static void
increment_hundred(void *arg)
{
    uint64_t *x = arg;

    for (int i = 0; i < 100; i++)
        env_increment(env_cell(x, 0));
}

/* Children that attach by fork and leave without xShutdown, grandchildren too. */
static void
increment_and_multiply(void *arg)
{
    pid_t child = proc_spawn(increment_hundred, arg);

    increment_hundred(arg);
    proc_join(child);
    env_detach();
}

START_TEST(descendants_increment_together)
{
    pid_t companion = company(_i);
    uint64_t *x = env_attach(MODE(_i), N_PAGES);
    pid_t pid[4];

    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(increment_and_multiply, x);
    increment_hundred(x);
    for (int i = 0; i < 4; i++)
        proc_join(pid[i]);
    must_eq(env_get(env_cell(x, 0)), 900);
    dismiss(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 900);
}
END_TEST

/* The parent leaves, the child stays and is the last one out. */
static void
outlive_the_parent(void *arg)
{
    uint64_t *x = arg;

    env_put(env_cell(x, 1), 1);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    env_put(env_cell(x, 1), 2);
    env_detach();
    must_eq(file_u64(ENV_FILE, env_page()), 2);
}

START_TEST(child_outlives_the_parent)
{
    pid_t companion = company(_i);
    uint64_t *x = env_attach(MODE(_i), N_PAGES);
    pid_t child;

    env_put(env_cell(x, 0), 1);
    child = proc_spawn(outlive_the_parent, x);
    proc_await(&board->step, 1, 20);
    dismiss(companion);
    env_detach();
    word_store(&board->step, 2);
    proc_join(child);
    must_eq(file_u64(ENV_FILE, 0), 1);
}
END_TEST

/* A program run by fork and exec keeps no dead participant alive. */
static void
exec_and_vanish(void *arg)
{
    uint64_t *x = env_attach(DURABLE, 1);
    pid_t child;

    (void)arg;
    env_put(x, 7);
    child = fork();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "5", (char *)NULL);
        _exit(127);
    }
    proc_sleep_us(200000);
    word_store(&board->step, (uint64_t)child);
}

START_TEST(executed_program_keeps_nobody_alive)
{
    proc_run(exec_and_vanish, NULL);
    must_ok(xRecover(ENV_DIR));
    must_eq(file_u64(ENV_FILE, 0), 7);
    must(kill((pid_t)word_load(&board->step), SIGKILL) == 0);
}
END_TEST

/* ---- coming and going ---------------------------------------------------------------------------------- */

static void
leave_without_shutdown(void *arg)
{
    uint64_t *x = env_attach(mode, N_PAGES);

    (void)arg;
    proc_await(&board->step, 1, 20);
    env_put(env_cell(x, 0), 3);
    must_ok(xbegin());
    *env_cell(x, 0) = 4;
    *env_cell(x, 1) = 4;
}

START_TEST(exit_without_shutdown_is_a_death)
{
    uint64_t *x;
    pid_t child;

    mode = MODE(_i);
    child = proc_spawn(leave_without_shutdown, NULL);
    x = env_attach(mode, N_PAGES);
    env_put(env_cell(x, 2), 1);
    word_store(&board->step, 1);
    proc_join(child);
    must_ok(xbegin());
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 3);
    *env_cell(x, 1) += 1;
    must_rc(xend(), COMMITTED);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 3);
    must_eq(file_u64(ENV_FILE, env_page()), 1);
}
END_TEST

static void
come_and_go(void *arg)
{
    uint64_t rnd = env_seed() + (uint64_t) * (const int *)arg;

    for (int visit = 0; visit < 3; visit++) {
        uint64_t *x;

        proc_sleep_us(rnd_below(&rnd, 30000));
        x = env_attach(mode, N_PAGES);
        for (uint64_t i = rnd_below(&rnd, 6); i > 0; i--) {
            int rc;

            do {
                must_ok(xbegin());
                *env_cell(x, rnd_below(&rnd, 4)) += 1;
                *env_cell(x, 8) += 1;
                rc = xend();
            } while (rc == ABORTED);
            must_rc(rc, COMMITTED);
            word_add(&board->commits[0], 1);
        }
        if (rnd_below(&rnd, 4) == 0)
            must_ok(xMunmap(ENV_FILE));
        env_detach();
    }
}

/* Forty processes attach and detach at random; now and then nobody is there. */
START_TEST(forty_processes_come_and_go)
{
    static int numbers[40];
    pid_t pid[40];
    uint64_t sum = 0;

    mode = MODE(_i);
    for (int i = 0; i < 40; i++) {
        numbers[i] = i;
        pid[i] = proc_spawn(come_and_go, &numbers[i]);
    }
    for (int i = 0; i < 40; i++)
        proc_join(pid[i]);
    for (size_t p = 0; p < 4; p++)
        sum += file_u64(ENV_FILE, p * env_page());
    must_eq(sum, word_load(&board->commits[0]));
    must_eq(file_u64(ENV_FILE, 8 * env_page()), sum);
}
END_TEST

/* The same, and some are killed on the way; somebody is there all the time. */
START_TEST(some_of_them_die)
{
    static int numbers[12];
    uint64_t rnd = env_seed(), sum = 0;
    pid_t pid[12];
    uint64_t *x;

    mode = MODE(_i);
    for (int i = 0; i < 12; i++) {
        numbers[i] = i;
        pid[i] = proc_spawn(come_and_go, &numbers[i]);
    }
    x = env_attach(mode, N_PAGES);
    for (int i = 0; i < 12; i++) {
        proc_sleep_us(rnd_below(&rnd, 8000));
        if (i % 2 == 0)
            proc_kill(pid[i]);
    }
    for (int i = 1; i < 12; i += 2)
        proc_join(pid[i]);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < 4; p++)
        sum += *env_cell(x, p);
    must_eq(*env_cell(x, 8), sum);
    must_ok(xendQuery());
    must(sum >= word_load(&board->commits[0]));
    env_detach();
}
END_TEST

/* Who is not the last one out leaves the work to the others; the last one does it. */
static void
commit_and_detach(void *arg)
{
    uint64_t *x = env_attach(mode, N_PAGES);
    uint64_t self = (uint64_t) * (const int *)arg;

    env_put(env_cell(x, self), 100 + self);
    word_add(&board->step, 1);
    proc_await(&board->step, 3, 20);
    env_detach();
}

START_TEST(last_one_out_completes_the_files)
{
    static int numbers[] = {0, 1, 2};
    pid_t pid[3];

    mode = MODE(_i);
    for (int i = 0; i < 3; i++)
        pid[i] = proc_spawn(commit_and_detach, &numbers[i]);
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    for (uint64_t i = 0; i < 3; i++)
        must_eq(file_u64(ENV_FILE, i * env_page()), 100 + i);
}
END_TEST

/* All die in an environment that promises nothing: it must open again all the same. */
START_TEST(nondurable_environment_opens_after_all_died)
{
    static int numbers[] = {0, 1};
    uint64_t *x;
    pid_t a, b;

    mode = NONDURABLE;
    for (int round = 0; round < 5; round++) {
        word_store(&board->commits[0], 0);
        word_store(&board->commits[1], 0);
        a = proc_spawn(commit_until_killed, &numbers[0]);
        b = proc_spawn(commit_until_killed, &numbers[1]);
        proc_await(&board->commits[0], 10, 20);
        proc_await(&board->commits[1], 10, 20);
        must(kill(a, SIGKILL) == 0);
        proc_kill(b);
        (void)proc_wait(a);
    }
    x = env_attach(NONDURABLE, N_PAGES);
    env_put(env_cell(x, 3), 9);
    must_eq(env_get(env_cell(x, 3)), 9);
    env_detach();
    must_eq(file_u64(ENV_FILE, 3 * env_page()), 9);
}
END_TEST

/*
 * A daemon that has closed all its descriptors, the library's too, is alive: what it has
 * open still counts, though its commit may fail for lack of a descriptor.
 */
static void
close_everything(void *arg)
{
    uint64_t *x = env_attach(NONDURABLE, N_PAGES);
    int rc;

    (void)arg;
    meet_parent();
    must_ok(xbegin());
    *env_cell(x, 0) = 1;
    *env_cell(x, 1) = 1;
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    word_store(&board->commits[0], rc == COMMITTED ? 1 : 0);
    word_store(&board->step, 3);
    proc_await(&board->step, 4, 20);
}

START_TEST(closing_descriptors_is_not_death)
{
    struct xac_stats s;
    uint64_t *x;
    uint64_t expected;
    pid_t child;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    mode = NONDURABLE;
    child = proc_spawn(close_everything, NULL);
    x = meet(1);
    proc_await(&board->step, 1, 20);
    must_ok(xbegin());
    *env_cell(x, 0) = 2;
    must_rc(xend(), ABORTED);
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must_eq(s.dead_cleaned, 0);
    word_store(&board->step, 2);
    proc_await(&board->step, 3, 20);
    expected = word_load(&board->commits[0]);
    must_eq(env_get(env_cell(x, 0)), expected);
    must_eq(env_get(env_cell(x, 1)), expected);
    word_store(&board->step, 4);
    proc_join(child);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), expected);
}
END_TEST

static TCase *
procs_tcase(Suite *s, const char *name, double timeout_s)
{
    return env_tcase_with(s, name, timeout_s, setup);
}

static Suite *
procs_suite(void)
{
    Suite *s = suite_create("procs");
    TCase *tc = procs_tcase(s, "stopped and killed", 60);

    tcase_add_loop_test(tc, stopped_process_does_not_stop_others, 0, 2);
    tcase_add_loop_test(tc, killed_process_leaves_nothing_behind, 0, 2);
    tcase_add_test(tc, killed_query_lets_versions_go);
    tcase_add_loop_test(tc, survivor_goes_on_after_each_kill, 0, 2);

    tc = procs_tcase(s, "fork", 30);
    tcase_add_loop_test(tc, forked_child_is_a_participant, 0, 8);
    tcase_add_loop_test(tc, open_transaction_belongs_to_the_parent, 0, 8);
    tcase_add_loop_test(tc, open_query_belongs_to_the_parent, 0, 8);
    tcase_add_loop_test(tc, child_that_does_nothing_does_no_harm, 0, 8);
    tcase_add_loop_test(tc, descendants_increment_together, 0, 8);
    tcase_add_loop_test(tc, child_outlives_the_parent, 0, 8);
    tcase_add_test(tc, executed_program_keeps_nobody_alive);

    tc = procs_tcase(s, "come and go", 60);
    tcase_add_loop_test(tc, exit_without_shutdown_is_a_death, 0, 2);
    tcase_add_loop_test(tc, forty_processes_come_and_go, 0, 2);
    tcase_add_loop_test(tc, some_of_them_die, 0, 2);
    tcase_add_loop_test(tc, last_one_out_completes_the_files, 0, 2);
    tcase_add_test(tc, nondurable_environment_opens_after_all_died);
    tcase_add_test(tc, closing_descriptors_is_not_death);
    return s;
}

int
main(void)
{
    return env_main(procs_suite());
}
