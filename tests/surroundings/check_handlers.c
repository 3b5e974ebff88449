/* SPDX-License-Identifier: MIT */
/*
 * check_handlers.c -- programs that install handlers of SIGSEGV and SIGBUS after xInit().
 *
 * GOAL    The next transaction works, and the program is told once on standard error.  The
 *         program's handler gets all faults that are not the library's, as the system would call
 *         it: flags, mask, address; the default action stays the default.  A
 *         handler that calls the one before it, or puts that back and raises the signal
 *         again, comes to an end.
 * METHOD  children with each engine and each of the two signals; a page without access, or
 *         one behind the end of its file, for a fault of the program's own.  That they are noticed
 *         at all fails without the look in xbegin(): the child ends by SIGBUS or SIGSEGV.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "env.h"

#define PAGES 64

static const struct way {
    const char *engine;
    int signal;
} ways[] = {{"uffd", SIGBUS}, {"uffd", SIGSEGV}, {"sigsegv", SIGSEGV}};
#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

/* Of a child. */
static const struct way *way;
static uint64_t *segment;
static size_t n_touched;
static char *volatile own_page; /* a load from it is a fault of the program's own */
static int own_file;
static volatile sig_atomic_t n_calls;
static struct sigaction before; /* what the program's handler has replaced */

/* touch -- a transaction with a trap. */
static void
touch(void)
{
    must(n_touched < PAGES);
    env_put(env_cell(segment, n_touched), n_touched + 1);
    n_touched++;
}

static void
start(const void *arg)
{
    way = arg;
    must_ok(setenv("XAC_ENGINE", way->engine, 1));
    segment = env_attach(NONDURABLE, PAGES);
    own_file = way->signal == SIGBUS ? open("own", O_RDWR | O_CREAT, 0600) : -1;
    own_page =
        mmap(NULL, env_page(), own_file >= 0 ? PROT_READ : PROT_NONE,
             own_file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, own_file, 0);
    must(own_page != MAP_FAILED);
    touch();
}

/* mend -- the load can be repeated; async-signal-safe. */
static void
mend(void)
{
    if ((own_file >= 0 ? ftruncate(own_file, (off_t)env_page())
                       : mprotect(own_page, env_page(), PROT_READ))
        != 0)
        _exit(2);
}

static void
damage(void)
{
    must_ok(own_file >= 0 ? ftruncate(own_file, 0)
                          : mprotect(own_page, env_page(), PROT_NONE));
}

static void
load(void)
{
    must_eq(*(volatile char *)own_page, 0);
}

static void
on_plain(int sig)
{
    if (sig != way->signal)
        _exit(3);
    n_calls++;
    mend();
}

/* What on_info found, and what it should have found: of which signals. */
static sigset_t found;

static void
on_info(int sig, siginfo_t *info, void *context)
{
    if (sig != way->signal || info->si_addr != own_page || context == NULL)
        _exit(3);
    (void)sigprocmask(SIG_BLOCK, NULL, &found);
    errno = 12345;
    n_calls++;
    mend();
}

/* on_forward -- calls the handler before it: the library's, which ends the program. */
static void
on_forward(int sig, siginfo_t *info, void *context)
{
    n_calls++;
    if (n_calls > 1)
        _exit(4);
    before.sa_sigaction(sig, info, context);
}

/* on_restore -- like Python's faulthandler: the handler before it again, and the signal. */
static void
on_restore(int sig)
{
    n_calls++;
    if (n_calls > 1)
        _exit(4);
    (void)sigaction(sig, &before, NULL);
    (void)raise(sig);
}

static void
install(int flags, void (*plain)(int), void (*info)(int, siginfo_t *, void *))
{
    struct sigaction sa;

    memset(&sa, 0, sizeof sa);
    sa.sa_flags = flags | (info != NULL ? SA_SIGINFO : 0);
    if (info != NULL)
        sa.sa_sigaction = info;
    else
        sa.sa_handler = plain;
    (void)sigaddset(&sa.sa_mask, SIGUSR1);
    must_ok(sigaction(way->signal, &sa, &before));
    touch();
}

/* run -- a child's function, in one of the ways; ret its status.  It was told once, or not. */
static int
run(void (*fn)(void *), int which, int n_told)
{
    char text[8192];
    int n = 0,
        status = proc_capture(fn, (void *)(uintptr_t)&ways[which], text, sizeof text);

    for (const char *p = text; (p = strstr(p, "has replaced the handler")) != NULL; p++)
        n++;
    if (n != n_told || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
        printf("%s, signal %d: %s\n", ways[which].engine, ways[which].signal, text);
    must_eq(n, n_told);
    return status;
}

#define must_exit(status) must_eq(status, 0)
#define must_end_by(status) \
 must(WIFSIGNALED(status) && WTERMSIG(status) == ways[_i].signal)

/* ---- Handlers that return ---------------------------------------------------------------- */

static void
use_signal(void *arg)
{
    start(arg);
    must(signal(way->signal, on_plain) != SIG_ERR);
    for (int i = 0; i < 3; i++)
        touch();
    must_eq(n_calls, 0);
    for (int i = 1; i <= 3; i++) {
        load();
        must_eq(n_calls, i);
        damage();
        touch();
    }
    env_detach();
    load(); /* the program's handler is the process's again */
    must_eq(n_calls, 4);
}

START_TEST(handler_by_signal_gets_what_is_not_ours)
{
    must_exit(run(use_signal, _i, 1));
}
END_TEST

static void
use_info(void *arg)
{
    volatile int *error = &errno; /* which the compiler does not see changing */
    sigset_t mine;

    start(arg);
    must_ok(sigemptyset(&mine));
    must_ok(sigaddset(&mine, SIGUSR2));
    must_ok(sigprocmask(SIG_BLOCK, &mine, NULL));
    install(0, NULL, on_info);
    *error = 0;
    load();
    must_eq(*error, 12345);
    must_eq(n_calls, 1);
    must(sigismember(&found, way->signal) == 1 && sigismember(&found, SIGUSR1) == 1);
    must(sigismember(&found, SIGUSR2) == 1 && sigismember(&found, SIGTERM) == 0);
    damage();
    install(SA_NODEFER, NULL, on_info);
    load();
    must_eq(n_calls, 2);
    must(sigismember(&found, way->signal) == 0 && sigismember(&found, SIGUSR1) == 1);
    must_ok(sigprocmask(SIG_BLOCK, NULL, &found));
    must(sigismember(&found, SIGUSR2) == 1 && sigismember(&found, SIGUSR1) == 0);
    env_detach();
}

START_TEST(handler_is_called_with_its_mask_and_the_address)
{
    must_exit(run(use_info, _i, 1));
}
END_TEST

static void
use_several(void *arg)
{
    start(arg);
    for (int i = 0; i < 10; i++) {
        install(0, i % 2 == 0 ? on_plain : NULL, i % 2 == 0 ? NULL : on_info);
        load();
        must_eq(n_calls, i + 1);
        damage();
    }
    must_ok(sigaction(way->signal, &before, NULL)); /* the last but one, of the library */
    touch();
    env_detach();
    segment = env_attach(NONDURABLE, PAGES);
    touch();
    env_detach();
}

START_TEST(handlers_may_come_and_go)
{
    must_exit(run(use_several, _i, 1));
}
END_TEST

/* Here the program's are called by the library's from the first on: no news. */
static void
use_earlier(void *arg)
{
    way = arg;
    must(signal(way->signal, on_plain) != SIG_ERR);
    start(arg);
    load();
    must_eq(n_calls, 1);
    touch();
    env_detach();
}

START_TEST(handler_before_the_library_is_no_news)
{
    must_exit(run(use_earlier, _i, 0));
}
END_TEST

static void
begin_many(int n)
{
    for (int i = 0; i < n; i++) {
        must_ok(xbegin());
        must_rc(xend(), COMMITTED);
    }
}

/* begin_for -- transactions in a loop, for so many milliseconds. */
static void
begin_for(int ms)
{
    double until = env_now() + ms / 1000.0;

    while (env_now() < until)
        begin_many(1);
}

/* More transactions than are looked at one by one; then what notices it has no trap. */
static void
use_busy(void *arg)
{
    start(arg);
    begin_many(10000);
    must(signal(way->signal, on_plain) != SIG_ERR);
    begin_for(20); /* xac.h says 10; the clock itself goes in steps of up to 10 */
    touch();
    must_eq(n_calls, 0);
    env_detach();
}

START_TEST(busy_loop_notices_soon)
{
    must_exit(run(use_busy, _i, 1));
}
END_TEST

/* Like a program that protects itself around each call. */
static void
use_around(void *arg)
{
    start(arg);
    for (int i = 0; i < 2000; i++) {
        void (*old)(int) = signal(way->signal, on_plain);

        must(old != SIG_ERR);
        env_put(segment, (uint64_t)i);
        must(signal(way->signal, old) != SIG_ERR);
    }
    must_eq(n_calls, 0);
    env_detach();
}

START_TEST(handler_for_each_transaction_is_noticed)
{
    must_exit(run(use_around, _i, 1));
}
END_TEST

/* ---- Programs that end ------------------------------------------------------------------- */

static void
use_once(void *arg)
{
    start(arg);
    install((int)SA_RESETHAND, NULL, on_info);
    load();
    must_eq(n_calls, 1);
    touch();
    damage();
    load();
}

START_TEST(handler_for_one_time_is_called_once)
{
    must_end_by(run(use_once, _i, 1));
}
END_TEST

static void
use_default(void *arg)
{
    start(arg);
    must(signal(way->signal, SIG_DFL) != SIG_ERR);
    touch();
    load();
}

START_TEST(default_action_stays)
{
    must_end_by(run(use_default, _i, 1));
}
END_TEST

static void
use_forward(void *arg)
{
    start(arg);
    install(0, NULL, on_forward);
    touch();
    load();
}

static void
use_restore(void *arg)
{
    start(arg);
    install(SA_NODEFER, on_restore, NULL);
    touch();
    load();
}

static void
use_kill(void *arg)
{
    start(arg);
    must_ok(raise(way->signal));
}

START_TEST(handler_that_calls_the_one_before_ends)
{
    must_end_by(run(use_forward, _i, 1));
    must_end_by(run(use_restore, _i, 1));
}
END_TEST

START_TEST(signal_that_is_sent_is_no_fault)
{
    must_end_by(run(use_kill, _i, 0));
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
handlers_suite(void)
{
    Suite *s = suite_create("handlers");
    TCase *tc = env_tcase_with(s, "handlers", 60, setup);

    tcase_add_loop_test(tc, handler_by_signal_gets_what_is_not_ours, 0, N_WAYS);
    tcase_add_loop_test(tc, handler_is_called_with_its_mask_and_the_address, 0, N_WAYS);
    tcase_add_loop_test(tc, handlers_may_come_and_go, 0, N_WAYS);
    tcase_add_loop_test(tc, handler_before_the_library_is_no_news, 0, N_WAYS);
    tcase_add_loop_test(tc, busy_loop_notices_soon, 0, N_WAYS);
    tcase_add_loop_test(tc, handler_for_each_transaction_is_noticed, 0, N_WAYS);
    tcase_add_loop_test(tc, handler_for_one_time_is_called_once, 0, N_WAYS);
    tcase_add_loop_test(tc, default_action_stays, 0, N_WAYS);
    tcase_add_loop_test(tc, handler_that_calls_the_one_before_ends, 0, N_WAYS);
    tcase_add_loop_test(tc, signal_that_is_sent_is_no_fault, 0, N_WAYS);
    return s;
}

int
main(void)
{
    return env_main(handlers_suite());
}
