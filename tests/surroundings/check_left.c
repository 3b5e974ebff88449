/* SPDX-License-Identifier: MIT */
/*
 * check_left.c -- transactions that control leaves in another way than by their end.
 *
 * GOAL    What is left by longjmp() out of xTransact(), by the end of the thread or by exit()
 *         is rolled back, and is said on standard error; what comes next commits.  What looks
 *         like it and is not goes on: nested transactions, another stack, a child process.
 * METHOD  children; their standard error is read.  (Exceptions: api/basics/check_unwind.cpp.)
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "env.h"

#define PAGES 8

static uint64_t *cell;
static jmp_buf back;

/* run -- a child's function; ret exit code.  It says these words so many times. */
static int
run(void (*fn)(void *), const char *words, int times)
{
    char text[8192];
    int n = 0, status = proc_capture(fn, NULL, text, sizeof text);

    for (const char *p = text; (p = strstr(p, words)) != NULL; p++)
        n++;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 97 || n != times)
        printf("status %#x: %s\n", (unsigned)status, text);
    must(WIFEXITED(status));
    must_eq(n, times);
    return WEXITSTATUS(status);
}

static int
store_1(void *arg)
{
    (void)arg;
    *cell = 1;
    return 0;
}

static int
store_and_jump(void *arg)
{
    (void)arg;
    *cell = 2;
    longjmp(back, 1);
}

/* must_hold -- a new transaction commits, and what was left has not.  In a frame of its own, below the one that
   has been left, it would look like a nested one; so it has none, without optimization, too. */
__attribute__((always_inline)) static inline void
must_hold(void)
{
    must_ok(xTransact(store_1, NULL));
    must_eq(env_get(cell), 1);
}

/* ---- longjmp() ---------------------------------------------------------------------------- */

#define LEFT "xTransact() was left by longjmp()"

static void
jump(void)
{
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
}

static void
left_then_transact(void *arg)
{
    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    for (int i = 0; i < 3; i++) {
        if (setjmp(back) == 0)
            (void)xTransact(store_and_jump, NULL);
        must_hold();
    }
    for (int i = 0; i < 3; i++) {
        jump();
        must_hold();
    }
    env_detach();
}

static void
left_then_begin(void *arg)
{
    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    env_put(cell, 0);
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
    must_ok(xbegin());
    must_eq(*cell, 0);
    *cell = 3;
    must_rc(xend(), COMMITTED);
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
    must_eq(env_get(cell), 3);
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
    must_rc(xend(), XAC_ENOTXN);
    must_eq(env_get(cell), 3);
    env_detach();
}

/* A part of a transaction that is open: that one aborts. */
static void
left_within(void *arg)
{
    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    must_ok(xbegin());
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
    must_rc(xend(), XAC_ABORTED);
    must_hold();
    env_detach();
}

static void *
left_in_thread(void *arg)
{
    if (setjmp(back) == 0)
        (void)xTransact(store_and_jump, NULL);
    must_hold();
    return arg;
}

static void
left_by_thread(void *arg)
{
    pthread_t t;

    cell = env_attach(NONDURABLE, PAGES);
    must_ok(pthread_create(&t, NULL, left_in_thread, arg));
    must_ok(pthread_join(t, NULL));
    env_detach();
}

START_TEST(transaction_left_by_longjmp_is_rolled_back)
{
    must_eq(run(left_then_transact, LEFT, 1), 0);
    must_eq(run(left_then_begin, LEFT, 1), 0);
    must_eq(run(left_within, LEFT, 1), 0);
    must_eq(run(left_by_thread, LEFT, 1), 0);
}
END_TEST

/* ---- What is not left ---------------------------------------------------------------------- */

static int
nested(void *arg)
{
    int *depth = arg;
    char deep[5000];

    memset(deep, *depth, sizeof deep);
    ++*cell;
    if (--*depth > 0)
        must_ok(xTransact(nested, arg));
    must_ok(xbegin());
    ++*cell;
    must_rc(xend(), XAC_PENDING);
    must_ok(xbeginQuery());
    must_ok(xendQuery());
    return deep[17] == 99;
}

static ucontext_t here, there;

static void
on_other_stack(void)
{
    must_ok(xbegin());
    ++*cell;
    must_rc(xend(), XAC_PENDING);
}

static int
switch_stack(void *arg)
{
    must_ok(getcontext(&there));
    there.uc_stack.ss_sp = arg;
    there.uc_stack.ss_size = 1 << 18;
    there.uc_link = &here;
    makecontext(&there, on_other_stack, 0);
    must_ok(swapcontext(&here, &there));
    return 0;
}

static void *
switch_in_thread(void *arg)
{
    must_ok(xTransact(switch_stack, arg));
    return NULL;
}

static void
not_left(void *arg)
{
    void *low = malloc(1 << 18), *high;
    int depth = 20;
    pthread_t t;

    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    env_put(cell, 0);
    must_ok(xTransact(nested, &depth));
    must_eq(env_get(cell), 40);
    must(low != NULL);
    must_ok(xTransact(switch_stack, low)); /* below the main thread's stack */
    must_eq(env_get(cell), 41);
    high = alloca(1 << 18); /* above the other thread's */
    must_ok(pthread_create(&t, NULL, switch_in_thread, high));
    must_ok(pthread_join(t, NULL));
    must_eq(env_get(cell), 42);
    env_detach();
    free(low);
}

START_TEST(nested_and_on_another_stack_is_not_left)
{
    must_eq(run(not_left, LEFT, 0), 0);
}
END_TEST

/* ---- Missing ends -------------------------------------------------------------------------- */

static int
begin_only(void *arg)
{
    must_ok(xbegin());
    if (arg != NULL)
        must_ok(xbeginQuery());
    else
        *cell = 2;
    return 0;
}

static void
missing_end(void *arg)
{
    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    must_refuse(xTransact(begin_only, NULL), XAC_EINTXN);
    must_hold();
    must_refuse(xTransact(begin_only, cell), XAC_EINTXN);
    must_hold();
    for (int i = 0; i < 1200; i++)
        must_ok(xbegin());
    for (int i = 1; i < 1200; i++)
        must_rc(xend(), XAC_PENDING);
    must_rc(xend(), COMMITTED);
    env_detach();
}

START_TEST(missing_end_is_named)
{
    must_eq(run(missing_end, "is an xend() or xendQuery() missing", 1), 0);
}
END_TEST

/* ---- Threads that end ----------------------------------------------------------------------- */

static void *
begin_and_end_thread(void *arg)
{
    must_ok(xbegin());
    *cell = 2;
    return arg;
}

static int
end_thread(void *arg)
{
    *cell = 2;
    pthread_exit(arg);
}

static void *
transact_and_end_thread(void *arg)
{
    (void)xTransact(end_thread, arg);
    return arg;
}

static int
be_cancelled(void *arg)
{
    *cell = 2;
    word_store(arg, 1);
    for (;;)
        (void)pause();
    return 0;
}

static void *
transact_and_be_cancelled(void *arg)
{
    (void)xTransact(be_cancelled, arg);
    return arg;
}

static void
end_threads(void *arg)
{
    _Atomic uint64_t ready = 0;
    pthread_t t;

    (void)arg;
    cell = env_attach(NONDURABLE, PAGES);
    for (int i = 0; i < 3; i++) {
        must_ok(pthread_create(&t, NULL, begin_and_end_thread, NULL));
        must_ok(pthread_join(t, NULL));
        must_hold();
    }
    must_ok(pthread_create(&t, NULL, transact_and_end_thread, NULL));
    must_ok(pthread_join(t, NULL));
    must_hold();
    must_ok(pthread_create(&t, NULL, transact_and_be_cancelled, &ready));
    proc_await(&ready, 1, 30);
    must_ok(pthread_cancel(t));
    must_ok(pthread_join(t, NULL));
    must_hold();
    env_detach();
}

/* pthread_exit() and cancellation unwind xTransact(), so that the end of the thread finds
   nothing to say. */
START_TEST(thread_that_ends_leaves_nothing_open)
{
    must_eq(run(end_threads, "a thread has ended inside of a transaction", 1), 0);
}
END_TEST

/* ---- exit() --------------------------------------------------------------------------------- */

#define EXITED "exit() was called inside of a transaction"

static int
store_and_exit(void *arg)
{
    (void)arg;
    *cell = 2;
    exit(11);
}

static void
exit_in_transact(void *arg)
{
    (void)arg;
    cell = env_attach(DURABLE, PAGES);
    (void)xTransact(store_and_exit, NULL);
}

static void
exit_in_begin(void *arg)
{
    (void)arg;
    cell = env_attach(DURABLE, PAGES);
    must_ok(xbegin());
    *cell = 2;
    must_ok(xbeginQuery());
    exit(12);
}

/* In a child of fork() it is its parent's; in a query there is nothing to lose; outside of one
   there is none. */
static void
exit_without(void *arg)
{
    pid_t child;
    int status;

    (void)arg;
    cell = env_attach(DURABLE, PAGES);
    must_ok(xbegin());
    *cell = 3;
    child = fork();
    if (child == 0)
        exit(14);
    must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 14);
    must_rc(xend(), COMMITTED);
    child = fork();
    if (child == 0) {
        must_ok(xbeginQuery());
        exit(15);
    }
    must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 15);
    exit(13);
}

/* The other one holds what the first has stored to, until that is known to be gone. */
START_TEST(exit_rolls_back_and_says_so)
{
    pid_t other = env_companion(DURABLE, PAGES);

    must_eq(run(exit_in_transact, EXITED, 1), 11);
    must_eq(run(exit_in_begin, EXITED, 1), 12);
    cell = env_attach(DURABLE, PAGES);
    must_eq(env_get(cell), 0);
    must_eq(env_stats().aborts_user, 2);
    env_detach();
    must_eq(run(exit_without, EXITED, 0), 13);
    cell = env_attach(DURABLE, PAGES);
    must_eq(env_get(cell), 3);
    env_detach();
    proc_kill(other);
}
END_TEST

/* setup -- what children that die leave in shared memory goes with the directory. */
static void
setup(void)
{
    char dir[4096];

    env_setup();
    must(getcwd(dir, sizeof dir) != NULL);
    must_ok(setenv("XAC_SHM_DIR", dir, 1));
}

static Suite *
left_suite(void)
{
    Suite *s = suite_create("left");
    TCase *tc = env_tcase_with(s, "left", 60, setup);

    tcase_add_test(tc, transaction_left_by_longjmp_is_rolled_back);
    tcase_add_test(tc, nested_and_on_another_stack_is_not_left);
    tcase_add_test(tc, missing_end_is_named);
    tcase_add_test(tc, thread_that_ends_leaves_nothing_open);
    tcase_add_test(tc, exit_rolls_back_and_says_so);
    return s;
}

int
main(void)
{
    return env_main(left_suite());
}
