/* SPDX-License-Identifier: MIT */
/*
 * check_lock.c -- ranked robust locks: exclusion between processes, order of ranks, death
 * of holders and of those who repair after them, fork.
 */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/lock.h"

/* In memory that children share. */
struct world {
    struct xac_lock low, high;
    uint64_t a, b; /* equal whenever nobody holds `low` */
    _Atomic uint64_t step;
    _Atomic uint64_t repairs;
};

static struct world *world;

static void
make_world(void)
{
    world = proc_shared(sizeof *world);
    must_eq(xac_lock_init(&world->low, XAC_RANK_GC), 0);
    must_eq(xac_lock_init(&world->high, XAC_RANK_PUBLISH), 0);
}

static _Atomic uint64_t n_handled;

static void
on_signal(int sig)
{
    (void)sig;
    must(xac_lock_none_held());
    n_handled++;
    atomic_fetch_add_explicit(&world->step, 1, memory_order_relaxed);
}

/* wait_blocked -- as all callers do; with another lock held if asked. */
static void
wait_blocked(void *arg)
{
    const struct sigaction sa = {.sa_handler = on_signal};
    const struct sigaction dfl = {.sa_handler = SIG_DFL}; /* Check has one of its own */
    bool holds = arg != NULL;
    sigset_t signals;

    xac_lock_forget(); /* the parent's */
    must(sigaction(SIGUSR1, &sa, NULL) == 0 && sigaction(SIGTERM, &dfl, NULL) == 0);
    xac_signals_block(&signals);
    if (holds)
        must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OK);
    must_eq(xac_lock_acquire(&world->high), XAC_LOCK_OK);
    must(n_handled == (holds ? 0 : 1));
    xac_lock_release(&world->high);
    if (holds)
        xac_lock_release(&world->low);
    xac_signals_restore(&signals);
    must_eq(n_handled, 1);
}

/* The holder never lets go: a waiting process can be ended, and handlers run. */
START_TEST(let_signals_through_while_waiting)
{
    int status;
    pid_t pid;

    must_eq(xac_lock_acquire(&world->high), XAC_LOCK_OK);
    pid = proc_spawn(wait_blocked, NULL);
    proc_sleep_us(100000);
    must(kill(pid, SIGUSR1) == 0);
    proc_await(&world->step, 1, 10);
    must(kill(pid, SIGTERM) == 0);
    status = proc_wait(pid);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    pid = proc_spawn(wait_blocked, NULL);
    proc_sleep_us(100000);
    must(kill(pid, SIGUSR1) == 0);
    proc_await(&world->step, 2, 10);
    xac_lock_release(&world->high);
    proc_join(pid);
}
END_TEST

/* What another lock protects may be half changed: signals wait. */
START_TEST(keep_signals_blocked_while_holding)
{
    pid_t pid;

    must_eq(xac_lock_acquire(&world->high), XAC_LOCK_OK);
    pid = proc_spawn(wait_blocked, world);
    proc_sleep_us(100000);
    must(kill(pid, SIGUSR1) == 0);
    proc_sleep_us(200000);
    must_eq(world->step, 0);
    xac_lock_release(&world->high);
    proc_join(pid);
    must_eq(world->step, 1);
}
END_TEST

static void
count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OK);
        must_eq(world->a, world->b);
        world->a++;
        world->b++;
        xac_lock_release(&world->low);
    }
}

START_TEST(exclude_other_processes)
{
    pid_t pid[3];

    for (int i = 0; i < 3; i++)
        pid[i] = proc_spawn(count_up, NULL);
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    must_eq(world->a, 60000);
}
END_TEST

static void
take_in_order(void *arg)
{
    (void)arg;
    must(xac_lock_none_held());
    (void)xac_lock_acquire(&world->low);
    (void)xac_lock_acquire(&world->high);
    must(!xac_lock_none_held());
    xac_lock_release(&world->low);   /* in any order */
    (void)xac_lock_try(&world->low); /* a try never waits, so any rank will do */
    xac_lock_release(&world->high);
    xac_lock_release(&world->low);
    must(xac_lock_none_held());
}

static void
take_against_order(void *arg)
{
    (void)arg;
    (void)xac_lock_acquire(&world->high);
    (void)xac_lock_acquire(&world->low);
}

static void
take_twice(void *arg)
{
    (void)arg;
    (void)xac_lock_acquire(&world->low);
    (void)xac_lock_acquire(&world->low);
}

START_TEST(abort_when_order_is_wrong)
{
    static void (*const wrong[])(void *) = {take_against_order, take_twice};
    char text[512];

    proc_run(take_in_order, NULL);
#ifdef NDEBUG
    (void)wrong;
    (void)text;
#else
    for (int i = 0; i < 2; i++) {
        int status = proc_capture(wrong[i], NULL, text, sizeof text);

        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        must(strstr(text, "rank_allowed") != NULL);
        make_world(); /* it died holding one */
    }
#endif
}
END_TEST

static void
die_holding(void *arg)
{
    (void)arg;
    (void)xac_lock_acquire(&world->low);
    world->a++;
    kill(getpid(), SIGKILL);
}

/* A repairer that dies at its work is followed by the next. */
static void
die_repairing(void *arg)
{
    enum xac_lock_result r =
        arg != NULL ? xac_lock_try(&world->low) : xac_lock_acquire(&world->low);

    if (r == XAC_LOCK_OWNER_DIED)
        word_add(&world->repairs, 1);
    kill(getpid(), SIGKILL);
}

START_TEST(tell_each_who_follows_a_death)
{
    (void)proc_wait(proc_spawn(die_holding, NULL));
    for (int i = 0; i < 5; i++)
        (void)proc_wait(proc_spawn(die_repairing, i % 2 == 0 ? NULL : world));
    must_eq(word_load(&world->repairs), 5);
    must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OWNER_DIED);
    world->b = world->a;
    xac_lock_repaired(&world->low);
    xac_lock_release(&world->low);
    must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OK);
    xac_lock_release(&world->low);
}
END_TEST

static void
hold_until_told(void *arg)
{
    (void)arg;
    (void)xac_lock_acquire(&world->low);
    word_store(&world->step, 1);
    proc_await(&world->step, 2, 10);
    xac_lock_release(&world->low);
}

START_TEST(be_busy_when_held)
{
    pid_t pid = proc_spawn(hold_until_told, NULL);

    proc_await(&world->step, 1, 10);
    must_eq(xac_lock_try(&world->low), XAC_LOCK_BUSY);
    must(xac_lock_none_held());
    word_store(&world->step, 2);
    must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OK);
    xac_lock_release(&world->low);
    proc_join(pid);
}
END_TEST

static void
die_waiting(void *arg)
{
    (void)arg;
    xac_lock_forget();
    word_add(&world->step, 1);
    (void)xac_lock_acquire(&world->low);
    xac_lock_release(&world->low);
}

START_TEST(stay_usable_when_waiters_die)
{
    pid_t pid[4];

    (void)xac_lock_acquire(&world->low);
    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(die_waiting, NULL);
    proc_await(&world->step, 4, 10);
    proc_sleep_us(20000);
    for (int i = 0; i < 3; i++)
        proc_kill(pid[i]);
    xac_lock_release(&world->low);
    proc_join(pid[3]);
    must_eq(xac_lock_acquire(&world->low), XAC_LOCK_OK);
    xac_lock_release(&world->low);
}
END_TEST

static void
forget_in_child(void *arg)
{
    (void)arg;
    must(!xac_lock_none_held()); /* as inherited */
    xac_lock_forget();
    must(xac_lock_none_held());
    must_eq(xac_lock_try(&world->low), XAC_LOCK_BUSY); /* still the parent's */
}

START_TEST(forget_after_fork)
{
    (void)xac_lock_acquire(&world->low);
    proc_run(forget_in_child, NULL);
    must(!xac_lock_none_held());
    xac_lock_release(&world->low);
}
END_TEST

static volatile sig_atomic_t caught;

static void catch (int sig)
{
    (void)sig;
    caught++;
}

START_TEST(block_signals_but_synchronous_ones)
{
    struct sigaction act = {.sa_handler = catch};
    sigset_t old, now;

    must(sigaction(SIGUSR1, &act, NULL) == 0);
    xac_signals_block(&old);
    raise(SIGUSR1);
    must_eq(caught, 0);
    must(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
    must(!sigismember(&now, SIGSEGV) && !sigismember(&now, SIGBUS)
         && !sigismember(&now, SIGABRT));
    xac_signals_restore(&old);
    must_eq(caught, 1);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("lock");
    TCase *tc = env_tcase(s, "lock", 60);

    tcase_add_checked_fixture(tc, make_world, NULL);
    tcase_add_test(tc, exclude_other_processes);
    tcase_add_test(tc, abort_when_order_is_wrong);
    tcase_add_test(tc, tell_each_who_follows_a_death);
    tcase_add_test(tc, be_busy_when_held);
    tcase_add_test(tc, stay_usable_when_waiters_die);
    tcase_add_test(tc, forget_after_fork);
    tcase_add_test(tc, block_signals_but_synchronous_ones);
    tcase_add_test(tc, let_signals_through_while_waiting);
    tcase_add_test(tc, keep_signals_blocked_while_holding);
    return env_main(s);
}
