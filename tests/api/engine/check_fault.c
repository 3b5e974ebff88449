/* SPDX-License-Identifier: MIT */
/*
 * check_fault.c -- faults that are mistakes, and faults that are not ours.
 *
 * GOAL    an access outside a transaction, and a store in a query, stop the program with
 *         SIGABRT and a message with file, offset, process and a hint; all other faults go
 *         to the handler from before xInit(), and again after xShutdown().
 * METHOD  each access happens in a child, with its output captured.
 */
#include <config.h>

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

static char output[4096];

static volatile uint64_t sink;

static void
load(const void *at)
{
    sink = *(const volatile uint64_t *)at;
}

static void
store(void *at, uint64_t value)
{
    *(volatile uint64_t *)at = value;
}

/* ---- accesses that stop the program ---------------------------------------------------- */

struct access {
    bool is_store;
    bool alone; /* no other participant */
    enum {
        BEFORE,
        AFTER_COMMIT,
        AFTER_ABORT,
        AFTER_QUERY,
        IN_QUERY,
        NESTED_QUERY
    } when;
    uint64_t offset;
    uint64_t *pid; /* shared: which process it was */
};

static void
wrong_access(void *arg)
{
    const struct access *a = arg;
    char *x;

    /* The price of staying mapped: a load goes unnoticed.  A store never does. */
    env_checking = a->is_store ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    if (!a->alone)
        (void)env_companion(NONDURABLE, 4);
    x = env_attach(NONDURABLE, 4);
    *a->pid = (uint64_t)getpid();
    if (a->when == AFTER_COMMIT)
        env_put((uint64_t *)(void *)(x + (a->offset & ~UINT64_C(7))), 1);
    if (a->when == AFTER_ABORT) {
        must_ok(xbegin());
        store(x + a->offset, 1);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
    }
    if (a->when == AFTER_QUERY)
        (void)env_get((uint64_t *)(void *)(x + (a->offset & ~UINT64_C(7))));
    if (a->when == NESTED_QUERY)
        must_ok(xbegin());
    if (a->when == IN_QUERY || a->when == NESTED_QUERY) {
        must_ok(xbeginQuery());
        load(x + a->offset);
    }
    if (a->is_store)
        store(x + a->offset, 2);
    else
        load(x + a->offset);
    dprintf(STDOUT_FILENO, "the program went on\n");
}

static void
must_mention(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        env_fail(__FILE__, __LINE__, "no \"%s\" in: %s", what, text);
}

/* Offsets may be decimal or hexadecimal. */
static void
must_mention_number(const char *text, uint64_t number)
{
    char decimal[32], hexadecimal[32];

    snprintf(decimal, sizeof decimal, "%" PRIu64, number);
    snprintf(hexadecimal, sizeof hexadecimal, "0x%" PRIx64, number);
    if (strstr(text, decimal) == NULL && strstr(text, hexadecimal) == NULL)
        env_fail(__FILE__, __LINE__, "neither %s nor %s in: %s", decimal, hexadecimal,
                 text);
}

static void
must_stop(struct access a)
{
    int status;

    a.pid = proc_shared(sizeof *a.pid);
    status = proc_capture(wrong_access, &a, output, sizeof output);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        env_fail(__FILE__, __LINE__, "status 0x%x: %s", (unsigned)status, output);
    must_mention(output, ENV_FILE);
    must_mention_number(output, a.offset);
    must_mention_number(output, *a.pid);
    must_mention(output,
                 a.when == IN_QUERY || a.when == NESTED_QUERY ? "uery" : "xbegin");
}

/* _i: bit 0 a store, bit 1 alone, then when. */
START_TEST(access_outside_a_transaction_stops)
{
    must_stop((struct access){.is_store = (_i & 1) != 0,
                              .alone = (_i & 2) != 0,
                              .when = (unsigned)_i / 4,
                              .offset = 2 * env_page()});
}
END_TEST

START_TEST(store_in_a_query_stops)
{
    for (uint64_t page = 0; page < 3; page++) {
        must_stop((struct access){.is_store = true,
                                  .alone = _i == 1,
                                  .when = IN_QUERY,
                                  .offset = page * env_page()});
        must_stop((struct access){.is_store = true,
                                  .alone = _i == 1,
                                  .when = NESTED_QUERY,
                                  .offset = page * env_page()});
    }
}
END_TEST

static void
wrong_store_while_durable(void *arg)
{
    uint64_t *x = env_attach(DURABLE, 1);

    (void)arg;
    env_put(x, 41);
    store(x, 42);
}

/* The wrong store is not in the file, the commit before it is. */
START_TEST(stopped_program_has_lost_nothing)
{
    uint64_t *x;
    int status = proc_capture(wrong_store_while_durable, NULL, output, sizeof output);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    x = env_attach(DURABLE, 1);
    must_eq(env_get(x), 41);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 41);
}
END_TEST

static void
access_after_unmap(void *arg)
{
    uint64_t *x = env_attach(NONDURABLE, 1);

    (void)arg;
    env_put(x, 1);
    must_ok(xMunmap(ENV_FILE));
    must_ok(xbegin());
    store(x, 2);
    dprintf(STDOUT_FILENO, "the program went on\n");
}

START_TEST(access_after_unmap_stops)
{
    int status = proc_capture(access_after_unmap, NULL, output, sizeof output);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

/* ---- faults that are not ours -------------------------------------------------------------- */

static char *own_page; /* of the program, without access until its handler opens it */
static volatile sig_atomic_t n_handled;
static struct sigaction chained; /* what the program's own handler passes faults on to */

static void
open_own_page(void *address)
{
    char *at = address;

    if (at < own_page || at >= own_page + env_page())
        _exit(88);
    n_handled++;
    if (mprotect(own_page, env_page(), PROT_READ | PROT_WRITE) != 0)
        _exit(89);
}

static void
handler_with_info(int signo, siginfo_t *info, void *context)
{
    (void)context;
    if (signo != SIGSEGV)
        _exit(90);
    open_own_page(info->si_addr);
}

static void
plain_handler(int signo)
{
    if (signo != SIGSEGV)
        _exit(90);
    open_own_page(own_page);
}

static void
chaining_handler(int signo, siginfo_t *info, void *context)
{
    char *at = info->si_addr;

    if (at >= own_page && at < own_page + env_page())
        open_own_page(at);
    else if ((chained.sa_flags & SA_SIGINFO) != 0)
        chained.sa_sigaction(signo, info, context);
    else
        _exit(91);
}

static void
make_own_page(void)
{
    own_page = mmap(NULL, env_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(own_page != MAP_FAILED);
}

static void
install(int flags)
{
    struct sigaction action = {.sa_flags = flags};

    sigemptyset(&action.sa_mask);
    if ((flags & SA_SIGINFO) != 0)
        action.sa_sigaction = handler_with_info;
    else
        action.sa_handler = plain_handler;
    must(sigaction(SIGSEGV, &action, NULL) == 0);
}

/* One fault on the program's own page: handled once, by the program's handler. */
static void
fault_on_own_page(bool is_store)
{
    int before = n_handled;

    must(mprotect(own_page, env_page(), PROT_NONE) == 0);
    if (is_store)
        store(own_page + 64, 7);
    else
        load(own_page + 64);
    must_eq(n_handled, before + 1);
}

static void
old_handler_gets_its_faults(void *arg)
{
    const int *flags = arg;
    uint64_t *x;

    make_own_page();
    install(*flags);
    x = env_attach(NONDURABLE, 2);
    fault_on_own_page(false);
    must_ok(xbegin());
    x[0] = 1;
    fault_on_own_page(true);
    x[1] = 2;
    x[env_page() / 8] = 3;
    fault_on_own_page(false);
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    fault_on_own_page(true);
    must_eq(x[0] + x[1] + x[env_page() / 8], 6);
    must_ok(xendQuery());
    env_detach();
    fault_on_own_page(true);
    x = env_attach(NONDURABLE, 2);
    must_eq(env_get(x), 1);
    fault_on_own_page(false);
    env_detach();
}

START_TEST(old_handler_with_info_gets_its_faults)
{
    int flags = SA_SIGINFO;

    proc_run(old_handler_gets_its_faults, &flags);
}
END_TEST

START_TEST(old_plain_handler_gets_its_faults)
{
    int flags = 0;

    proc_run(old_handler_gets_its_faults, &flags);
}
END_TEST

static sigjmp_buf back;

static void
jumping_handler(int signo)
{
    siglongjmp(back, signo);
}

/* The old handler may leave by a jump, as programs that probe addresses do. */
START_TEST(old_handler_may_jump_out)
{
    struct sigaction action = {.sa_handler = jumping_handler};
    volatile int n = 0;
    uint64_t *volatile x;

    make_own_page();
    sigemptyset(&action.sa_mask);
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    x = env_attach(NONDURABLE, 2);
    for (n = 0; n < 5; n++) {
        must_ok(xbegin());
        x[0]++;
        if (sigsetjmp(back, 1) == 0) {
            load(own_page);
            ck_abort_msg("reached");
        }
        x[env_page() / 8]++;
        must_rc(xend(), COMMITTED);
    }
    must_eq(env_get(&x[0]), 5);
    must_eq(env_get(&x[env_page() / 8]), 5);
    env_detach();
}
END_TEST

static void
fault_nobody_handles(void *arg)
{
    const int *in_transaction = arg;

    make_own_page();
    (void)env_attach(NONDURABLE, 1);
    if (*in_transaction)
        must_ok(xbegin());
    load(own_page);
    dprintf(STDOUT_FILENO, "the program went on\n");
}

START_TEST(fault_nobody_handles_kills)
{
    int status = proc_capture(fault_nobody_handles, &_i, output, sizeof output);

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        env_fail(__FILE__, __LINE__, "status 0x%x: %s", (unsigned)status, output);
}
END_TEST

/* A handler installed later that passes on what is not its own leaves both working. */
START_TEST(later_handler_may_chain)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    uint64_t *x;

    make_own_page();
    x = env_attach(NONDURABLE, 2);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = chaining_handler;
    must(sigaction(SIGSEGV, &action, &chained) == 0);
    for (int n = 0; n < 3; n++) {
        must_ok(xbegin());
        x[0]++;
        fault_on_own_page(true);
        x[env_page() / 8]++;
        must_rc(xend(), COMMITTED);
    }
    must_eq(env_get(&x[0]) + env_get(&x[env_page() / 8]), 6);
    must_ok(xMunmap(ENV_FILE));
}
END_TEST

START_TEST(shutdown_brings_the_old_handler_back)
{
    struct sigaction before, after;

    make_own_page();
    for (int n = 0; n < 3; n++) {
        if (n == 1)
            install(SA_SIGINFO);
        if (n == 2)
            install(SA_RESTART);
        must(sigaction(SIGSEGV, NULL, &before) == 0);
        env_put(env_attach(NONDURABLE, 1), (uint64_t)n);
        env_detach();
        must(sigaction(SIGSEGV, NULL, &after) == 0);
        must(before.sa_handler == after.sa_handler);
        must(before.sa_sigaction == after.sa_sigaction);
        must_eq(before.sa_flags & SA_SIGINFO, after.sa_flags & SA_SIGINFO);
        if (n > 0)
            fault_on_own_page(true);
    }
}
END_TEST

/* Blocked signals stay blocked, open ones open: the handler leaves no trace. */
START_TEST(signal_mask_is_left_alone)
{
    sigset_t mask, now;
    uint64_t *x;

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    must(sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
    x = env_attach(DURABLE, 4);
    for (size_t p = 0; p < 4; p++)
        env_put(&x[p * env_page() / 8], 1);
    must_ok(xCheckpoint());
    must(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    for (int signo = 1; signo < 32; signo++)
        must_eq(sigismember(&now, signo), signo == SIGUSR1);
    env_detach();
    must(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    must(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGSEGV));
}
END_TEST

static Suite *
fault_suite(void)
{
    Suite *s = suite_create("fault");
    TCase *tc = env_tcase(s, "mistakes", 20);

    tcase_add_loop_test(tc, access_outside_a_transaction_stops, 0, 16);
    tcase_add_loop_test(tc, store_in_a_query_stops, 0, 2);
    tcase_add_test(tc, stopped_program_has_lost_nothing);
    tcase_add_test(tc, access_after_unmap_stops);

    tc = env_tcase(s, "not ours", 20);
    tcase_add_test(tc, old_handler_with_info_gets_its_faults);
    tcase_add_test(tc, old_plain_handler_gets_its_faults);
    tcase_add_test(tc, old_handler_may_jump_out);
    tcase_add_loop_test(tc, fault_nobody_handles_kills, 0, 2);
    tcase_add_test(tc, later_handler_may_chain);
    tcase_add_test(tc, shutdown_brings_the_old_handler_back);
    tcase_add_test(tc, signal_mask_is_left_alone);
    return s;
}

int
main(void)
{
    return env_main(fault_suite());
}
