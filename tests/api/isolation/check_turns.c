/* SPDX-License-Identifier: MIT */
/*
 * check_turns.c -- the turn, attacked by process ids, threads, signal handlers and limits.
 *
 * GOAL    A process that has died with the turn is not mistaken for the next one with its id, and one
 *         that lives is not taken for dead.  A thread that ends gives up the turn.  A handler that does
 *         what the manual forbids stops its own process only.  Signals and limits make nobody wait
 *         for ever.
 * METHOD  As in check_serial.c.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/sched.h>

#include "check_serial.h"

/* More than any of these waits takes, as long as it ends. */
#define EVER_MS 20000

/* commit_some -- the test commits, unless it waits for ever. */
static void
commit_some(uint64_t *x)
{
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, EVER_MS));
    for (int i = 0; i < 3; i++) {
        must_ok(xac_begin());
        *env_cell(x, 1) += 1;
        must_rc(xac_end(), XAC_COMMITTED);
    }
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
}

static uint64_t *
view_of(uint64_t *x)
{
    uint64_t *v = (uint64_t *)xac_view(x);

    must(v != MAP_FAILED);
    return v;
}

/* ---- Process ids ------------------------------------------------------------------------- */

/* fork_as -- a child with this process id, of which the library does not know; -1: not allowed. */
static pid_t
fork_as(pid_t pid, bool executes)
{
    struct clone_args args = {.exit_signal = SIGCHLD,
                              .set_tid = (uint64_t)(uintptr_t)&pid,
                              .set_tid_size = 1};
    long rc = syscall(SYS_clone3, &args, sizeof args);

    if (rc != 0)
        return (pid_t)rc;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (executes)
        (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
    for (;;)
        (void)pause();
}

static void
die_with_the_turn(void *arg)
{
    (void)arg;
    (void)take_turn();
    (void)raise(SIGKILL);
}

/* By a child that maps what its parent maps, or by another program. */
START_TEST(the_process_id_of_a_dead_holder_is_used_again)
{
    pid_t holder, next;
    uint64_t *x;

    choose(_i / 2);
    holder = proc_spawn(die_with_the_turn, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    proc_sleep_us(20000); /* start times are counted in steps of 10 ms */
    must(WIFSIGNALED(proc_wait(holder)));
    next = fork_as(holder, _i % 2 != 0);
    if (next < 0) {
        must_eq(errno, EPERM);
        printf("may not choose a process id: not tested\n");
    } else {
        must_eq(next, holder);
        commit_some(x);
        proc_kill(next);
    }
    env_detach();
}
END_TEST

static void *
hold_for_a_while(void *arg)
{
    uint64_t *v = view_of((uint64_t *)arg);

    must_ok(xac_begin());
    *v = 1;
    word_store(&board->has_turn, 1);
    proc_sleep_us(200000);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_unview(v));
    return NULL;
}

/* end_the_first_thread -- the process is a zombie to look at, and goes on. */
static void
end_the_first_thread(void *arg)
{
    pthread_t thread;

    (void)arg;
    must_eq(pthread_create(&thread, NULL, hold_for_a_while, attach()), 0);
    pthread_exit(NULL);
}

START_TEST(a_process_without_its_first_thread_keeps_the_turn)
{
    uint64_t *x;
    pid_t child;

    choose(_i);
    child = proc_spawn(end_the_first_thread, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    commit_some(x);
    must_eq(env_get(x), 1);
    proc_join(child);
    env_detach();
}
END_TEST

/* A holder has forked a child that lives on, and has died. */
static void
fork_and_die(void *arg)
{
    pid_t child;

    (void)arg;
    (void)take_turn();
    child = fork();
    must(child >= 0);
    if (child == 0) {
        proc_await(&board->go, 1, 60);
        _exit(0);
    }
    (void)raise(SIGKILL);
}

START_TEST(the_child_of_a_dead_holder_has_no_turn)
{
    uint64_t *x;
    pid_t holder;

    choose(_i);
    holder = proc_spawn(fork_and_die, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    commit_some(x); /* the holder is a zombie */
    must(WIFSIGNALED(proc_wait(holder)));
    commit_some(x);
    word_store(&board->go, 1);
    env_detach();
}
END_TEST

/* ---- Threads ----------------------------------------------------------------------------- */

enum ending {
    RETURNS,
    EXITS,
    IS_CANCELLED,
    N_ENDINGS
};

static enum ending ending;

static int
end_with_the_turn(void *arg)
{
    *(uint64_t *)arg = 1;
    word_store(&board->has_turn, 1);
    if (ending == EXITS)
        pthread_exit(NULL);
    while (ending == IS_CANCELLED)
        (void)pause();
    return 0;
}

static void *
begin_and_end(void *arg)
{
    uint64_t *v = view_of((uint64_t *)arg);

    must_ok(xac_begin());
    (void)end_with_the_turn(v);
    return NULL;
}

static void *
transact_and_end(void *arg)
{
    (void)xac_transact(end_with_the_turn, view_of((uint64_t *)arg));
    return NULL;
}

static void *
wait_in_a_view(void *arg)
{
    uint64_t *v = view_of((uint64_t *)arg);

    proc_await(&board->has_turn, 1, 20);
    commit_some(v);
    must_ok(xac_unview(v));
    return NULL;
}

/* end_a_thread -- by xTransact() or without, while another thread waits. */
static void
end_a_thread(void *arg)
{
    uint64_t *x = attach();
    pthread_t thread, other;

    must_eq(pthread_create(&other, NULL, wait_in_a_view, x), 0);
    must_eq(pthread_create(&thread, NULL,
                           *(const bool *)arg ? transact_and_end : begin_and_end, x),
            0);
    proc_await(&board->has_turn, 1, 20);
    if (ending == IS_CANCELLED)
        must_eq(pthread_cancel(thread), 0);
    must_eq(pthread_join(thread, NULL), 0);
    must_eq(pthread_join(other, NULL), 0);
    word_store(&board->go, 1);
    proc_await(&board->go, 2, 60); /* the process lives on */
}

START_TEST(a_thread_that_ends_gives_up_the_turn)
{
    bool transacts = _i % 2 != 0;
    uint64_t *x;
    pid_t child;

    choose(_i / 2 / N_ENDINGS);
    ending = (enum ending)(_i / 2 % N_ENDINGS);
    child = proc_spawn(end_a_thread, &transacts);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    commit_some(x);
    proc_await(&board->go, 1, 20);
    must_eq(env_get(x), transacts && ending == RETURNS);
    must_eq(env_get(env_cell(x, 1)), 6);
    word_store(&board->go, 2);
    proc_join(child);
    env_detach();
}
END_TEST

/* fork_beside_a_wait -- by another thread than the one that waits. */
static void
fork_beside_a_wait(void *arg)
{
    uint64_t *x = attach();
    pthread_t thread;
    pid_t child;

    must_eq(pthread_create(&thread, NULL, wait_in_a_view, x), 0);
    proc_await(&board->has_turn, 1, 20);
    proc_sleep_us(20000);
    child = fork();
    must(child >= 0);
    if (child == 0) {
        if (*(const bool *)arg)
            commit_some(x);
        _exit(0);
    }
    word_store(&board->go, 1);
    proc_join(child);
    must_eq(pthread_join(thread, NULL), 0);
    must_ok(xac_shutdown());
}

START_TEST(a_process_forks_while_a_thread_waits)
{
    bool commits = _i % 2 != 0;
    uint64_t *x;
    pid_t child;

    choose(_i / 2);
    child = proc_spawn(fork_beside_a_wait, &commits);
    x = take_turn();
    proc_await(&board->go, 1, 20);
    proc_sleep_us(20000);
    must_rc(xac_end(), XAC_COMMITTED);
    commit_some(x);
    proc_join(child);
    must_eq(env_get(env_cell(x, 1)), commits ? 9 : 6);
    env_detach();
}
END_TEST

/* ---- Signal handlers of processes that wait ------------------------------------------------ */

enum deed {
    CALLS,
    FORKS_AND_EXECUTES,
    FORKS_AND_EXITS,
    FORKS_AND_GOES_ON,
    N_DEEDS
};

static enum deed deed;

static int
nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void
misbehave(int signo)
{
    pid_t child;
    int status;

    (void)signo;
    word_store(&board->attempts, 1);
    if (deed == CALLS) {
        (void)xac_transact(nothing, NULL);
        _exit(1);
    }
    child = fork();
    must(child >= 0);
    if (child == 0) {
        if (deed == FORKS_AND_EXITS)
            _exit(0);
        if (deed == FORKS_AND_EXECUTES)
            (void)execl("/bin/true", "true", (char *)NULL);
        return; /* into the wait of the parent */
    }
    must(waitpid(child, &status, 0) == child);
    word_store(&board->revoked, (uint64_t)status);
    word_store(&board->go, 1);
}

/* wait_with_a_handler -- and commit, if the process is still there. */
static void
wait_with_a_handler(void *arg)
{
    const struct sigaction action = {.sa_handler = misbehave};
    const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    uint64_t *x = attach();

    (void)arg;
    proc_await(&board->has_turn, 1, 20);
    must(freopen("said", "w", stderr) != NULL);
    must(sigaction(SIGALRM, &action, NULL) == 0);
    must(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    commit_some(x);
    must_ok(xac_shutdown());
}

/* must_be_said -- on standard error of the child. */
static void
must_be_said(const char *words)
{
    char text[4096] = "";
    size_t n = file_size("said");

    must(n < sizeof text);
    file_read("said", 0, text, n);
    if (strstr(text, words) == NULL)
        env_fail(__FILE__, __LINE__, "%s is not said, but: %s", words, text);
}

START_TEST(a_handler_in_the_wait_harms_its_own_process_only)
{
    uint64_t *x;
    pid_t child;
    int status;

    choose(_i / N_DEEDS);
    deed = (enum deed)(_i % N_DEEDS);
    child = proc_spawn(wait_with_a_handler, NULL);
    x = take_turn();
    if (deed == CALLS) {
        status = proc_wait(child);
        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        must_be_said("a signal handler called it");
    } else {
        proc_await(&board->go, 1, 20);
    }
    must_rc(xac_end(), XAC_COMMITTED);
    commit_some(x);
    if (deed != CALLS)
        proc_join(child);
    must_eq(env_get(env_cell(x, 1)), deed == CALLS ? 3 : 6);
    status = (int)word_load(&board->revoked);
    if (deed == FORKS_AND_GOES_ON) {
        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        must_be_said("a signal handler has forked");
    } else {
        must_eq(status, 0);
    }
    env_detach();
}
END_TEST

/* A handler ends a thread that commits, at any moment. */
static volatile sig_atomic_t in_end;

static void
end_the_thread(int signo)
{
    (void)signo;
    if (in_end)
        pthread_exit(NULL);
}

static void *
commit_until_ended(void *arg)
{
    uint64_t *v = view_of((uint64_t *)arg);

    for (;;) {
        must_ok(xac_begin());
        *v += 1;
        in_end = 1;
        must_rc(xac_end(), XAC_COMMITTED);
        in_end = 0;
        word_add(&board->has_turn, 1);
    }
    return NULL;
}

/* end_threads -- until the library stops the process. */
static void
end_threads(void *arg)
{
    const struct sigaction action = {.sa_handler = end_the_thread};
    uint64_t *x = attach(), before;
    pthread_t thread;

    (void)arg;
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 1000; i++) {
        before = word_load(&board->has_turn);
        must_eq(pthread_create(&thread, NULL, commit_until_ended, x), 0);
        proc_await(&board->has_turn, before + 2, 20);
        while (pthread_tryjoin_np(thread, NULL) == EBUSY)
            (void)pthread_kill(thread, SIGUSR1);
    }
}

START_TEST(a_thread_that_a_handler_ends_holds_nobody_up)
{
    char text[4096];
    pid_t other;
    int status;

    choose(2 * _i);
    other = env_companion(mode, N_PAGES);
    status = proc_capture(end_threads, NULL, text, sizeof text);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (strstr(text, "pthread_exit()") == NULL)
        env_fail(__FILE__, __LINE__, "it says: %s", text);
    commit_some(attach());
    env_detach();
    proc_kill(other);
}
END_TEST

/* A waiting process gets many signals. */
static volatile sig_atomic_t n_signals;

static void
count_signal(int signo)
{
    (void)signo;
    n_signals++;
}

static void
commit_under_signals(void *arg)
{
    const struct sigaction action = {.sa_handler = count_signal};
    const struct itimerval often = {.it_interval = {.tv_usec = 300},
                                    .it_value = {.tv_usec = 300}};
    const struct itimerval never = {.it_value = {.tv_usec = 0}};
    uint64_t *x = attach();

    (void)arg;
    must(sigaction(SIGALRM, &action, NULL) == 0);
    must(setitimer(ITIMER_REAL, &often, NULL) == 0);
    word_add(&board->has_turn, 1);
    for (int i = 0; i < 10 || n_signals < 10; i++)
        commit_some(x);
    must(setitimer(ITIMER_REAL, &never, NULL) == 0);
    word_add(&board->go, 1);
    must_ok(xac_shutdown());
}

START_TEST(signals_keep_nobody_from_the_turn)
{
    pid_t child[2];
    uint64_t *x, n = 0;

    choose(_i);
    for (int i = 0; i < 2; i++)
        child[i] = proc_spawn(commit_under_signals, NULL);
    x = attach();
    proc_await(&board->has_turn, 2, 20);
    while (word_load(&board->go) < 2 && !proc_any_failed()) {
        must_ok(xac_begin());
        *x += 1;
        proc_sleep_us(3000);
        must_rc(xac_end(), XAC_COMMITTED);
        n++;
    }
    for (int i = 0; i < 2; i++)
        proc_join(child[i]);
    must_eq(env_get(x), n);
    must(env_get(env_cell(x, 1)) >= 60);
    env_detach();
}
END_TEST

/* ---- Limits -------------------------------------------------------------------------------- */

enum limit {
    DESCRIPTORS,
    FILE_SIZE,
    MEMORY,
    N_LIMITS
};

static enum limit limit;

static void
set_limit(void)
{
    static const int resource[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS};
    struct rlimit none;

    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    must(getrlimit((__rlimit_resource_t)resource[limit], &none) == 0);
    none.rlim_cur = 0;
    must(setrlimit((__rlimit_resource_t)resource[limit], &none) == 0);
}

/* end_without -- end a transaction of many pages, whatever comes of it, and stay. */
static void
end_without(void *arg)
{
    uint64_t *x = take_turn();
    int rc;

    (void)arg;
    set_limit();
    for (size_t page = 2; page < N_PAGES; page++)
        *env_cell(x, page) = 1;
    rc = xac_end();
    word_store(&board->attempts, rc == XAC_COMMITTED || rc == XAC_ENOTDURABLE);
    word_store(&board->go, 1);
    proc_await(&board->go, 2, 60);
}

START_TEST(a_holder_meets_a_limit)
{
    uint64_t *x;
    pid_t child;

    choose(_i / N_LIMITS);
    limit = (enum limit)(_i % N_LIMITS);
    child = proc_spawn(end_without, NULL);
    x = attach();
    proc_await(&board->has_turn, 1, 20);
    commit_some(x);
    proc_await(&board->go, 1, 20);
    must_eq(env_get(x), word_load(&board->attempts));
    must_eq(env_get(env_cell(x, 3)), word_load(&board->attempts));
    word_store(&board->go, 2);
    (void)proc_wait(child);
    env_detach();
}
END_TEST

static void
die_or_stop(void *arg)
{
    (void)take_turn();
    (void)raise(*(const int *)arg);
}

/* wait_without -- for a turn that is taken away. */
static void
wait_without(void *arg)
{
    (void)arg;
    (void)attach();
    proc_await(&board->has_turn, 1, 20);
    set_limit();
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, EVER_MS));
    must_ok(xac_begin());
    (void)xac_end(); /* may fail, too */
}

START_TEST(one_that_waits_meets_a_limit)
{
    pid_t holder, child;
    uint64_t *x;
    int signal;

    choose(_i / 2 / N_LIMITS);
    limit = (enum limit)(_i / 2 % N_LIMITS);
    /* That a process is stopped cannot be told without a descriptor. */
    signal = _i % 2 == 0 || limit == DESCRIPTORS ? SIGKILL : SIGSTOP;
    holder = proc_spawn(die_or_stop, &signal);
    child = proc_spawn(wait_without, NULL);
    x = attach();
    proc_join(child);
    commit_some(x);
    proc_kill(holder);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("turns");
    TCase *tc = env_tcase_with(s, "turns", 60, setup);

    tcase_add_loop_test(tc, the_process_id_of_a_dead_holder_is_used_again, 0, 2 * WAYS);
    tcase_add_loop_test(tc, a_process_without_its_first_thread_keeps_the_turn, 0, WAYS);
    tcase_add_loop_test(tc, the_child_of_a_dead_holder_has_no_turn, 0, WAYS);
    tcase_add_loop_test(tc, a_thread_that_ends_gives_up_the_turn, 0,
                        2 * N_ENDINGS * WAYS);
    tcase_add_loop_test(tc, a_process_forks_while_a_thread_waits, 0, 2 * WAYS);
    tcase_add_loop_test(tc, a_handler_in_the_wait_harms_its_own_process_only, 0,
                        N_DEEDS * WAYS);
    tcase_add_loop_test(tc, a_thread_that_a_handler_ends_holds_nobody_up, 0, WAYS / 2);
    tcase_add_loop_test(tc, signals_keep_nobody_from_the_turn, 0, WAYS);
    tcase_add_loop_test(tc, a_holder_meets_a_limit, 0, N_LIMITS * WAYS);
    tcase_add_loop_test(tc, one_that_waits_meets_a_limit, 0, 2 * N_LIMITS * WAYS);
    return env_main(s);
}
