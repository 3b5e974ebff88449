/* SPDX-License-Identifier: MIT */
/*
 * check_waits.c -- commits beside a participant that is stopped while it holds a lock.
 *
 * GOAL    With XAC_OPT_WAIT_MS, xend() comes back in time and says what has become of the
 *         transaction; everybody goes on when the stopped one does, and nothing is lost.
 *         xstat names the holder.  The same for xbegin() and the turn, in the cases in which
 *         a program would wait for itself.
 * METHOD  The lock's functions are wrapped by the linker: a process stops itself right after it
 *         has taken the lock of a given rank.  The time of day jumps by an hour, to and fro, at each
 *         look, and no wait depends on it.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/tool_run.h"
#include "base/lock.h"

#define WAIT_MS 200

/* More than the wait itself, for this machine has others to serve. */
#define LATE_S 5.0

#define N_POLICIES (XAC_POLICY_SERIAL + 1)
#define N_PAGES    2048

/* ---- Stopping with a lock -------------------------------------------------------------------- */

static int stop_rank; /* 0: nowhere */

enum xac_lock_result __real_xac_lock_acquire(struct xac_lock *lk);
enum xac_lock_result __wrap_xac_lock_acquire(struct xac_lock *lk);
enum xac_lock_result __real_xac_lock_acquire_limited(struct xac_lock *lk);
enum xac_lock_result __wrap_xac_lock_acquire_limited(struct xac_lock *lk);
enum xac_lock_result __real_xac_lock_try(struct xac_lock *lk);
enum xac_lock_result __wrap_xac_lock_try(struct xac_lock *lk);

static void
stop_here(const struct xac_lock *lk)
{
    if (lk->rank != stop_rank)
        return;
    stop_rank = 0;
    (void)raise(SIGSTOP);
}

enum xac_lock_result
__wrap_xac_lock_acquire(struct xac_lock *lk)
{
    enum xac_lock_result got = __real_xac_lock_acquire(lk);

    stop_here(lk);
    return got;
}

enum xac_lock_result
__wrap_xac_lock_acquire_limited(struct xac_lock *lk)
{
    enum xac_lock_result got = __real_xac_lock_acquire_limited(lk);

    if (got != XAC_LOCK_TIMED_OUT)
        stop_here(lk);
    return got;
}

enum xac_lock_result
__wrap_xac_lock_try(struct xac_lock *lk)
{
    enum xac_lock_result got = __real_xac_lock_try(lk);

    if (got != XAC_LOCK_BUSY)
        stop_here(lk);
    return got;
}

/* ---- A clock that is set again and again --------------------------------------------------------- */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    static _Atomic long hours = 1;
    int rc = __real_clock_gettime(clock, now);

    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += 3600 /* 1, -1, ... */
                       * atomic_fetch_xor_explicit(&hours, -2L, memory_order_relaxed);
    return rc;
}

/* ---- The stopped one ---------------------------------------------------------------------------- */

struct board {
    _Atomic uint64_t ready, acknowledged, go, stop;
    enum xac_policy_kind policy;
    int flags;
    int rank;
};

static struct board *board;
static char xstat[PATH_MAX];

static uint64_t *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_POLICY, (uint64_t)board->policy));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 1 << 16));
    return env_attach(board->flags, N_PAGES);
}

/* Adds to the number of page 0; stops in its third commit, once it may. */
static void
stop_in_commit(void *arg)
{
    uint64_t *base = attach();

    (void)arg;
    for (uint64_t n = 1; word_load(&board->stop) == 0; n++) {
        if (n == 3) {
            proc_await(&board->go, 1, 30);
            stop_rank = board->rank;
        }
        env_increment(base);
        word_add(&board->acknowledged, 1);
        word_add(&board->ready, 1);
    }
    env_detach();
}

/* stop_another -- attach beside a process that has stopped then; ret the mapping. */
static uint64_t *
stop_another(int rank, int flags, enum xac_policy_kind policy, pid_t *pidp)
{
    uint64_t *base;
    int status;

    board->rank = rank;
    board->flags = flags;
    board->policy = policy;
    *pidp = proc_spawn(stop_in_commit, NULL);
    proc_await(&board->ready, 2, 30);
    base = attach();
    env_increment(env_cell(base, 2)); /* what is done once is done */
    word_store(&board->go, 1);
    must(waitpid(*pidp, &status, WUNTRACED) == *pidp && WIFSTOPPED(status));
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, WAIT_MS));
    return base;
}

/* add -- to a number, once; ret as xend(). */
static int
add(uint64_t *cell)
{
    int rc = xbegin();

    if (rc != 0)
        return rc;
    ++*cell;
    return xend();
}

/* go_on -- the stopped one, to its end; and this one commits again. */
static void
go_on(pid_t pid, uint64_t *base)
{
    uint64_t seen = word_load(&board->ready);

    must(kill(pid, SIGCONT) == 0);
    proc_await(&board->ready, seen + 3, 30);
    word_store(&board->stop, 1);
    proc_join(pid);
    env_increment(base);
    word_add(&board->acknowledged, 1);
    must_eq(env_get(base), word_load(&board->acknowledged));
}

/* names_holder -- does xstat say which process has that? */
static bool
names_holder(const char *what, pid_t pid)
{
    char words[80];

    must_eq(tool_run(xstat, "", ENV_DIR), 0);
    (void)snprintf(words, sizeof words, "%s: held by process %d for ", what, (int)pid);
    if (strstr(output, words) == NULL)
        fputs(output, stderr);
    return strstr(output, words) != NULL;
}

static const int flags_of[] = {XAC_NONDURABLE, XAC_DURABLE};

/* ---- Publish ------------------------------------------------------------------------------------ */

static int
add_to_all(void *arg)
{
    uint64_t *base = arg;

    for (size_t p = 1; p < 512; p++)
        ++*env_cell(base, p);
    return 0;
}

START_TEST(stopped_with_publish)
{
    enum xac_policy_kind policy = (enum xac_policy_kind)(_i % N_POLICIES);
    int flags = flags_of[_i / N_POLICIES];
    pid_t pid;
    uint64_t *base = stop_another(XAC_RANK_PUBLISH, flags, policy, &pid);

    for (int i = 0; i < 6; i++) {
        double start = env_now();

        must_rc(add(env_cell(base, 1)), ETIMEDOUT);
        must(env_now() - start > WAIT_MS / 1000.0 - 0.01);
        must(env_now() - start < WAIT_MS / 1000.0 + LATE_S);
        must_eq(env_get(env_cell(base, 1)), 0);
    }
    must(names_holder("publish lock", pid));
    /* A large one, and by a function. */
    must_rc(xTransact(add_to_all, base), ETIMEDOUT);
    must_eq(env_get(env_cell(base, 500)), 0);
    go_on(pid, base);
    must_ok(xTransact(add_to_all, base));
    must_eq(env_get(env_cell(base, 500)), 1);
    env_detach();
}
END_TEST

/* ---- Flush -------------------------------------------------------------------------------------- */

START_TEST(stopped_with_flush)
{
    enum xac_policy_kind policy = (enum xac_policy_kind)_i;
    uint64_t n = 0;
    double start;
    pid_t pid;
    uint64_t *base = stop_another(XAC_RANK_FLUSH, XAC_DURABLE, policy, &pid);
    int rc;

    start = env_now();
    must_rc(add(env_cell(base, 1)), XAC_EUNCERTAIN);
    must(env_now() - start > WAIT_MS / 1000.0 - 0.01);
    must(env_now() - start < WAIT_MS / 1000.0 + LATE_S);
    n++;
    /* It is published: a query sees it, and says as much. */
    must_ok(xbeginQuery());
    must_eq(*env_cell(base, 1), n);
    must_rc(xendQuery(), XAC_EUNCERTAIN);
    must(names_holder("flush lock", pid));
    /* When the log buffer is full nothing can be published. */
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 1));
    while ((rc = add(env_cell(base, 1))) == XAC_EUNCERTAIN)
        n++;
    must_eq(rc, ETIMEDOUT);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
    must(kill(pid, SIGCONT) == 0);
    must_ok(xSync());
    must_eq(env_get(env_cell(base, 1)), n);
    go_on(pid, base);
    env_detach();
}
END_TEST

/* ---- Everyday --------------------------------------------------------------------------------- */

#define N_EACH 300

static void
add_with_limit(void *arg)
{
    uint64_t *base = attach();

    (void)arg;
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 60000));
    for (int i = 0; i < N_EACH; i++) {
        int rc;

        while ((rc = add(base)) == XAC_ABORTED)
            ;
        must_eq(rc, XAC_COMMITTED);
    }
    env_detach();
}

START_TEST(commits_with_a_limit_lose_nothing)
{
    pid_t pid[3];

    board->policy = (enum xac_policy_kind)(_i % N_POLICIES);
    board->flags = flags_of[_i / N_POLICIES];
    for (int i = 0; i < 3; i++)
        pid[i] = proc_spawn(add_with_limit, NULL);
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    must_eq(env_get(attach()), 3 * N_EACH);
    env_detach();
}
END_TEST

/* hold_until_told -- a transaction that is open until it is told to end, and then returns `want`. */
static uint64_t *
hold_until_told(int want)
{
    uint64_t *base = attach();

    must_ok(xbegin());
    ++*base;
    word_store(&board->ready, 1);
    proc_await(&board->go, 1, 60);
    must_rc(xend(), want);
    return base;
}

static void
hold_turn(void *arg)
{
    (void)arg;
    (void)hold_until_told(XAC_COMMITTED);
    env_detach();
}

START_TEST(begin_gives_up_waiting_for_its_turn)
{
    double start;
    uint64_t *base;
    pid_t pid;

    board->policy = XAC_POLICY_SERIAL;
    board->flags = flags_of[_i % 2];
    env_checking = _i / 2 == 0 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    pid = proc_spawn(hold_turn, NULL);
    proc_await(&board->ready, 1, 30);
    base = attach();
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, WAIT_MS));
    for (int i = 0; i < 3; i++) {
        start = env_now();
        must_refuse(xbegin(), ETIMEDOUT);
        must(env_now() - start > WAIT_MS / 1000.0 - 0.01);
        must(env_now() - start < WAIT_MS / 1000.0 + LATE_S);
        must_refuse(xend(), XAC_ENOTXN);
        must_eq(env_get(base), 0); /* a query does not wait */
    }
    must_rc(xTransact(add_to_all, base), ETIMEDOUT);
    must(names_holder("turn", pid));
    word_store(&board->go, 1);
    proc_join(pid);
    must(!names_holder("turn", pid));
    must_rc(add(base), XAC_COMMITTED);
    must_eq(env_get(base), 2);
    env_detach();
}
END_TEST

/* wait_in_view -- a thread with a view of its own, beside the transaction of another one. */
static void *
wait_in_view(void *arg)
{
    uint64_t *x = xView(arg);

    must(x != MAP_FAILED);
    must_refuse(xbegin(), ETIMEDOUT);
    must_eq(env_get(x), 0);
    must_ok(xUnview(x));
    return NULL;
}

/* No thread waits for itself: it cannot have a second transaction in an environment. */
START_TEST(thread_waits_for_the_turn_of_another)
{
    pthread_t thread;
    uint64_t *base;

    board->policy = XAC_POLICY_SERIAL;
    board->flags = XAC_NONDURABLE;
    base = attach();
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, WAIT_MS));
    must_ok(xbegin());
    ++*base;
    must(xView(base) == MAP_FAILED && errno == EPERM);
    must_ok(xbegin()); /* a nested one has the turn */
    must_rc(xend(), XAC_PENDING);
    must(pthread_create(&thread, NULL, wait_in_view, base) == 0);
    must(pthread_join(thread, NULL) == 0);
    must_rc(xend(), XAC_COMMITTED);
    must_ok(xbeginQuery());
    must_refuse(xbegin(), XAC_EINQUERY);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* lose_turn -- a transaction that aborts, since its process has been stopped meanwhile. */
static void
lose_turn(void *arg)
{
    (void)arg;
    must_rc(add(hold_until_told(XAC_ABORTED)), XAC_COMMITTED);
    env_detach();
}

START_TEST(process_under_a_debugger_loses_the_turn)
{
    uint64_t *base;
    int status;
    pid_t pid;

    board->policy = XAC_POLICY_SERIAL;
    board->flags = XAC_NONDURABLE;
    pid = proc_spawn(lose_turn, NULL);
    proc_await(&board->ready, 1, 30);
    base = attach();
    must(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
    must(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
    must(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
    must_rc(add(base), XAC_COMMITTED);
    must_rc(add(base), XAC_COMMITTED);
    word_store(&board->go, 1);
    must(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
    proc_join(pid);
    must_eq(env_get(base), 3);
    env_detach();
}
END_TEST

START_TEST(option_is_checked)
{
    must_rc(xac_set_option(XAC_OPT_WAIT_MS, 3600 * 1000 + 1), EINVAL);
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 3600 * 1000));
    must_ok(xac_set_option(XAC_OPT_WAIT_MS, 0));
    must(strstr(xStrerror(XAC_EUNCERTAIN), "XAC_OPT_WAIT_MS") != NULL);
}
END_TEST

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

int
main(void)
{
    Suite *s = suite_create("waits");
    TCase *t = env_tcase_with(s, "waits", 120, setup);

    must(realpath("xstat", xstat) != NULL); /* the tests are run in other directories */
    tcase_add_loop_test(t, stopped_with_publish, 0, 2 * N_POLICIES);
    tcase_add_loop_test(t, stopped_with_flush, 0, N_POLICIES);
    tcase_add_loop_test(t, commits_with_a_limit_lose_nothing, 0, 2 * N_POLICIES);
    tcase_add_loop_test(t, begin_gives_up_waiting_for_its_turn, 0, 4);
    tcase_add_test(t, thread_waits_for_the_turn_of_another);
    tcase_add_test(t, process_under_a_debugger_loses_the_turn);
    tcase_add_test(t, option_is_checked);
    return env_main(s);
}
