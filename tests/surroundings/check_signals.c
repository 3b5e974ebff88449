/* SPDX-License-Identifier: MIT */
/*
 * check_signals.c -- signals, and the stack that they are handled on.
 *
 * GOAL    A process that waits for one that is stopped can be ended with SIGTERM.  Faults are
 *         handled on a signal stack of a size that programs have.
 * METHOD  a process that commits is stopped again and again until another one waits for it; a
 *         signal stack filled with a pattern.
 */
#include <config.h>

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

#define PAGES 64

/* ---- Waiting --------------------------------------------------------------------------- */

struct board {
    _Atomic uint64_t ready, done, begun;
};

static void
commit_for_ever(void *arg)
{
    struct board *b = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);

    for (uint64_t n = 1;; n++) {
        env_put(base, n);
        word_store(&b->ready, n);
    }
}

static void
commit_once(void *arg)
{
    const struct sigaction dfl = {.sa_handler = SIG_DFL}; /* Check has one of its own */
    struct board *b = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);

    must(sigaction(SIGTERM, &dfl, NULL) == 0);
    word_store(&b->begun, 1);
    for (uint64_t n = 1; word_load(&b->done) < 10; n++) {
        env_put(env_cell(base, 1), n);
        word_add(&b->done, 1);
    }
    (void)pause();
}

/* waits_for -- does the second process wait for the first, which is stopped? */
static bool
waits_for(struct board *b, pid_t stopped)
{
    must(kill(stopped, SIGSTOP) == 0);
    word_store(&b->done, 0);
    for (int i = 0; i < 20; i++) {
        proc_sleep_us(10000);
        if (word_load(&b->done) >= 10)
            return false;
    }
    return true;
}

/* The lock that the stopped one holds, mostly the one around the sync, is waited for with
   signals let through. */
START_TEST(sigterm_ends_who_waits_for_a_stopped_process)
{
    struct board *b = proc_shared(sizeof *b);
    pid_t first = proc_spawn(commit_for_ever, b);
    int n_waited = 0;

    proc_await(&b->ready, 10, 30);
    for (int round = 0; round < 200 && n_waited < 5; round++) {
        uint64_t seen = word_load(&b->ready);
        pid_t second;
        bool waits;
        int status;

        word_store(&b->begun, 0);
        word_store(&b->done, 0);
        second = proc_spawn(commit_once, b);
        proc_await(&b->begun, 1, 30);
        waits = waits_for(b, first);
        must(kill(second, SIGTERM) == 0);
        status = -1;
        for (int i = 0; i < 200 && waitpid(second, &status, WNOHANG) == 0; i++)
            proc_sleep_us(10000);
        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        n_waited += waits;
        must(kill(first, SIGCONT) == 0);
        proc_await(&b->ready, seen + 3, 30);
    }
    printf("%d waited\n", n_waited);
    must(n_waited > 0);
    proc_kill(first);
}
END_TEST

/* ---- In the middle of xend() ------------------------------------------------------------ */

enum deed {
    RETURNS,
    JUMPS,
    CALLS,
    FORKS,
    EXECS,
    EXITS,
    DEEDS
};

#define TRIES 100

static volatile sig_atomic_t in_end, n_handled, is_child;
static sigjmp_buf back;
static volatile enum deed deed;
static volatile int child_status = -1;

/* fork_in_handler -- the child returns from the handler, or calls exec(). */
static void
fork_in_handler(bool calls_exec)
{
    pid_t pid = fork();
    int status = -1;

    must(pid >= 0);
    if (pid == 0) {
        is_child = 1;
        if (calls_exec) {
            (void)execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        return;
    }
    must(waitpid(pid, &status, 0) == pid);
    child_status = status;
}

static void
on_alarm(int signo)
{
    const struct itimerval soon = {.it_value.tv_usec = 300};

    (void)signo;
    if (is_child)
        return;
    if (!in_end) {
        (void)setitimer(ITIMER_REAL, &soon, NULL);
        return;
    }
    n_handled++;
    switch (deed) {
    case RETURNS:
        (void)setitimer(ITIMER_REAL, &soon, NULL);
        break;
    case JUMPS:
        siglongjmp(back, 1);
    case CALLS:
        (void)xbegin();
        _exit(0);
    case FORKS:
    case EXECS:
        fork_in_handler(deed == EXECS);
        break;
    default:
        exit(0);
    }
}

static volatile uint64_t policy; /* of the test */

static uint64_t *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_POLICY, policy));
    return env_attach(NONDURABLE, PAGES);
}

/* commit_with_alarms -- ends when the deed has been done. */
static void
commit_with_alarms(void *arg)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval first = {.it_value.tv_usec = 1000 + *(const int *)arg * 37};
    uint64_t *base = attach();
    int wanted = deed == RETURNS ? 50 : 1;

    must(sigaction(SIGALRM, &action, NULL) == 0);
    must(setitimer(ITIMER_REAL, &first, NULL) == 0);
    if (sigsetjmp(back, 1) != 0)
        _exit(xbegin() == 0 ? 0 : 1);
    for (uint64_t n = 1; n_handled < wanted; n++) {
        must_ok(xbegin());
        *env_cell(base, 0) = n;
        *env_cell(base, 1) = n;
        atomic_signal_fence(memory_order_seq_cst); /* the stores stay before */
        in_end = 1;
        must(xend() == COMMITTED || is_child);
        in_end = 0;
        atomic_signal_fence(memory_order_seq_cst);
        if (is_child)
            _exit(0);
    }
    if (deed == FORKS && WIFSIGNALED(child_status))
        _exit(WTERMSIG(child_status) == SIGABRT ? 3 : 4);
    _exit(child_status == -1 || child_status == 0 ? 0 : 5);
}

/* equal_after -- a participant that comes later finds what a commit has left whole. */
static void
equal_after(void *arg)
{
    uint64_t *base = attach();
    uint64_t x, y;

    (void)arg;
    must_ok(xbeginQuery());
    x = *env_cell(base, 0);
    y = *env_cell(base, 1);
    (void)xendQuery();
    must_eq(x, y);
    env_detach();
}

static void
attach_and_wait(void *arg)
{
    struct board *b = arg;

    (void)attach();
    word_store(&b->ready, 1);
    (void)pause();
}

/* must_be_whole -- the deed, in a process that is alone or not.  One that the library forbids is found
   out at least once, and says why; the next participant finds everything whole. */
static void
must_be_whole(enum deed now)
{
    static char text[1 << 14];
    bool is_forbidden = now == JUMPS || now == CALLS || now == FORKS;
    int n_stopped = 0;

    deed = now;
    for (int i = 0; i < TRIES && (!is_forbidden || n_stopped < 3); i++) {
        int status = proc_capture(commit_with_alarms, &i, text, sizeof text);
        bool is_stopped = now == FORKS
                              ? WIFEXITED(status) && WEXITSTATUS(status) == 3
                              : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;

        if (!is_stopped && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            env_fail(__FILE__, __LINE__, "deed %d, status 0x%x: %s", (int)now,
                     (unsigned)status, text);
        if (is_stopped && strstr(text, "signal handler") == NULL)
            env_fail(__FILE__, __LINE__, "deed %d is not named: %s", (int)now, text);
        n_stopped += is_stopped;
        proc_run(equal_after, NULL);
    }
    printf("deed %d: %d stopped\n", (int)now, n_stopped);
    must(is_forbidden ? n_stopped > 0 : n_stopped == 0);
}

START_TEST(handler_in_the_middle_of_xend)
{
    must_be_whole((enum deed)_i);
}
END_TEST

/* Under the serial policy beside another participant as well. */
START_TEST(handler_in_the_middle_of_a_serial_xend)
{
    struct board *b = proc_shared(sizeof *b);
    pid_t other;

    policy = XAC_POLICY_SERIAL;
    other = proc_spawn(attach_and_wait, b);
    proc_await(&b->ready, 1, 30);
    must_be_whole((enum deed)_i);
    proc_kill(other);
}
END_TEST

/* Under the other policies a signal waits until the transaction has been committed.  A handler that calls
   the library in the few instructions between that and the return of xend() is found out. */
/* end_first -- the first end of a thread. */
static void
end_first(void *arg)
{
    uint64_t *base = env_attach(*(const int *)arg, PAGES);
    size_t used;

    must_ok(xbegin());
    *env_cell(base, 0) += 1;
    used = mallinfo2().uordblks;
    must(xend() == COMMITTED);
    must_eq(mallinfo2().uordblks, used);
    env_detach();
}

/* A handler that calls exit() in the middle of malloc(3) finds a heap that is not whole. */
START_TEST(xend_takes_no_memory)
{
    const int flags[] = {NONDURABLE, DURABLE};

    for (size_t i = 0; i < 2; i++)
        proc_run(end_first, (void *)(uintptr_t)&flags[i]);
}
END_TEST

START_TEST(handler_waits_while_others_are_attached)
{
    static char text[1 << 14];
    struct board *b = proc_shared(sizeof *b);
    int n_stopped = 0;
    pid_t other;

    policy = XAC_POLICY_OLDEST_WINS;
    other = proc_spawn(attach_and_wait, b);
    proc_await(&b->ready, 1, 30);
    deed = CALLS;
    for (int i = 0; i < 20; i++) {
        int status = proc_capture(commit_with_alarms, &i, text, sizeof text);
        bool is_stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                          && strstr(text, "signal handler") != NULL;

        if (status != 0 && !is_stopped)
            env_fail(__FILE__, __LINE__, "status 0x%x: %s", (unsigned)status, text);
        n_stopped += is_stopped;
    }
    must(n_stopped <= 5);
    proc_kill(other);
}
END_TEST

/* ---- The signal stack ------------------------------------------------------------------- */

#define STACK_BYTES 65536
#define PATTERN     0xa5

/* What the library itself needs. */
#define STACK_MAX 4096

static void
touch(void *arg)
{
    uint64_t *base = env_attach(DURABLE, PAGES);
    uint8_t *stack = malloc(STACK_BYTES);
    stack_t ss = {.ss_sp = stack, .ss_size = STACK_BYTES};
    size_t left = 0;
    uint64_t sum = 0;

    must(stack != NULL);
    memset(stack, PATTERN, STACK_BYTES);
    must(sigaltstack(&ss, NULL) == 0);
    for (int round = 0; round < 20; round++) {
        must_ok(xbegin());
        for (uint64_t p = 0; p < PAGES; p++) {
            sum += *env_cell(base, p);
            if ((p + (uint64_t)round) % 3 == 0)
                *env_cell(base, p) = sum;
        }
        (void)xend();
    }
    while (left < STACK_BYTES && stack[left] == PATTERN)
        left++;
    *(uint64_t *)arg = STACK_BYTES - left;
    _exit(0);
}

/* In use, bytes, of which the kernel takes its part for the registers. */
START_TEST(faults_are_handled_on_a_small_stack)
{
    uint64_t *used = proc_shared(sizeof *used);
    pid_t other = env_companion(DURABLE, PAGES);

    proc_run(touch, used);
    printf("signal stack used: %llu bytes, of which the kernel's frame at least %ld\n",
           (unsigned long long)*used, sysconf(_SC_MINSIGSTKSZ));
    must(*used > 0);
    must(*used <= (uint64_t)sysconf(_SC_MINSIGSTKSZ) + STACK_MAX);
    proc_kill(other);
}
END_TEST

/* A stack that is too small is found out when nothing has happened yet. */
START_TEST(small_signal_stack_is_refused)
{
    size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 512;
    stack_t ss = {.ss_sp = malloc(size), .ss_size = size};

    must(ss.ss_sp != NULL && sigaltstack(&ss, NULL) == 0);
    must_refuse(xInit(ENV_DIR, NONDURABLE), ENOMEM);
    must(!file_exists(ENV_DIR));
    ss.ss_flags = SS_DISABLE;
    must(sigaltstack(&ss, NULL) == 0);
    env_init(NONDURABLE);
    env_detach();
    free(ss.ss_sp);
}
END_TEST

static Suite *
signals_suite(void)
{
    Suite *s = suite_create("signals");
    TCase *tc = env_tcase(s, "signals", 120);

    tcase_add_test(tc, sigterm_ends_who_waits_for_a_stopped_process);
    tcase_add_loop_test(tc, handler_in_the_middle_of_xend, RETURNS, DEEDS);
    tcase_add_loop_test(tc, handler_in_the_middle_of_a_serial_xend, RETURNS, DEEDS);
    tcase_add_test(tc, xend_takes_no_memory);
    tcase_add_test(tc, handler_waits_while_others_are_attached);
    tcase_add_test(tc, faults_are_handled_on_a_small_stack);
    tcase_add_test(tc, small_signal_stack_is_refused);
    return s;
}

int
main(void)
{
    return env_main(signals_suite());
}
