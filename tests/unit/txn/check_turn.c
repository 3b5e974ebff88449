/* SPDX-License-Identifier: MIT */
/*
 * check_turn.c -- the turn: in the order of tickets, for one at a time, and taken away from a
 * process that is killed or stopped at any of its kill points.
 *
 * METHOD  In place of transactions, workers count: each takes the turn, notes the count, and under
 *         the publish lock, if the turn is still its own, adds one.  Then nobody else may
 *         have counted since.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "txn/ctree.h"
#include "txn/policy.h"
#include "txn/reap.h"
#include "txn/turn.h"

#define HANG_S 20.0

/* ---- One process ------------------------------------------------------------------------- */

/* A participant that waits for the turn in a thread of its own. */
struct waiting {
    struct xac_env *env;
    pthread_t thread;
    _Atomic uint64_t has_turn;
};

static void *
wait_for_turn(void *arg)
{
    struct waiting *w = (struct waiting *)arg;

    must_eq(xac_turn_take(w->env, &w->env->ctx), 0);
    word_store(&w->has_turn, 1);
    return NULL;
}

static bool
has_turn(const struct xac_env *env)
{
    return xac_turn_is_mine(env, env->ctx.slot);
}

static uint64_t
ticket_of(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctx.txn->ticket, memory_order_acquire);
}

/* start -- and see its ticket. */
static void
start(struct waiting *w)
{
    w->env = world_open(XAC_NONDURABLE);
    must(pthread_create(&w->thread, NULL, wait_for_turn, w) == 0);
    while (ticket_of(w->env) == 0)
        proc_sleep_us(100);
}

/* leave -- two participants, the last one of the environment behind the other. */
static void
leave(struct xac_env *one, struct xac_env *last)
{
    must_eq(xac_env_close(one), 0);
    must_eq(xac_env_close(last), 0);
}

START_TEST(take_the_turn_in_the_order_of_tickets)
{
    struct xac_env *first = world_open(XAC_NONDURABLE);
    struct waiting second = {.env = NULL}, third = {.env = NULL};

    must(xac_turn_is_free(first));
    must_eq(xac_turn_take(first, &first->ctx), 0);
    must(has_turn(first) && !xac_turn_is_free(first));
    start(&second);
    start(&third);
    must(ticket_of(first) < ticket_of(second.env));
    must(ticket_of(second.env) < ticket_of(third.env));
    proc_sleep_us(20000);
    must(word_load(&second.has_turn) == 0 && word_load(&third.has_turn) == 0);
    xac_turn_pass(first, first->ctx.slot);
    must(!has_turn(first));
    proc_await(&second.has_turn, 1, HANG_S);
    must(has_turn(second.env) && !has_turn(third.env));
    proc_sleep_us(20000);
    must_eq(word_load(&third.has_turn), 0);
    xac_turn_pass(second.env, second.env->ctx.slot);
    proc_await(&third.has_turn, 1, HANG_S);
    xac_turn_pass(third.env, third.env->ctx.slot);
    must(xac_turn_is_free(first));
    must(pthread_join(second.thread, NULL) == 0);
    must(pthread_join(third.thread, NULL) == 0);
    must_eq(xac_env_close(third.env), 0);
    leave(second.env, first);
}
END_TEST

/* queue -- as if the participant waited with a ticket of its own. */
static void
queue(const struct xac_env *env, uint64_t ticket, bool is_asleep, bool is_late)
{
    struct xac_txn *txn = env->ctx.txn;

    atomic_store_explicit(&txn->is_asleep, is_asleep, memory_order_relaxed);
    atomic_store_explicit(&txn->is_late, is_late, memory_order_relaxed);
    atomic_store_explicit(&txn->ticket, ticket, memory_order_release);
}

static bool
sleeps(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctx.txn->is_asleep, memory_order_relaxed) != 0;
}

/* pass -- take the turn, free or our own already, and pass it. */
static void
pass(struct xac_env *env)
{
    if (!has_turn(env))
        must_eq(xac_turn_take(env, &env->ctx), 0);
    xac_turn_pass(env, env->ctx.slot);
}

START_TEST(pass_to_the_first_of_those_that_are_late)
{
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE),
                   *third = world_open(XAC_NONDURABLE);

    queue(second, 1001, true, false);
    queue(third, 1002, true, false);
    pass(first);
    must(xac_turn_is_free(first)); /* nobody is late */
    must(!sleeps(second) && sleeps(third));
    pass(first);
    must(xac_turn_is_free(first));
    must(sleeps(third)); /* the second one is awake and may take it */
    queue(third, 1002, true, true);
    pass(first);
    must(has_turn(third) && !sleeps(third));
    xac_turn_pass(third, third->ctx.slot);
    must(xac_turn_is_free(first));
    queue(third, 1003, false, true);
    queue(second, 1001, true, true);
    pass(first);
    must(has_turn(second) && !sleeps(second));
    xac_turn_pass(second, second->ctx.slot);
    must(has_turn(third));
    xac_turn_pass(third, third->ctx.slot);
    must_eq(xac_env_close(third), 0);
    leave(second, first);
}
END_TEST

/* must_become_late -- the participant, with another ticket than this one; ret its ticket. */
static uint64_t
must_become_late(const struct xac_env *env, uint64_t but)
{
    double since = env_now();
    uint64_t ticket;

    /* The ticket is stored behind is_late = 0. */
    while ((ticket = ticket_of(env)) == but || ticket == 0
           || atomic_load_explicit(&env->ctx.txn->is_late, memory_order_relaxed) == 0) {
        must(env_now() - since < HANG_S);
        proc_sleep_us(100);
    }
    return ticket;
}

/* Or all others would pass it by. */
START_TEST(become_late_again_with_another_ticket)
{
    struct xac_env *first = world_open(XAC_NONDURABLE);
    struct waiting second = {.env = NULL};
    uint64_t ticket;

    must_eq(xac_turn_take(first, &first->ctx), 0);
    start(&second);
    ticket = must_become_late(second.env, 0);
    /* As one that takes the turn away from it. */
    atomic_store_explicit(&second.env->ctx.txn->ticket, 0, memory_order_release);
    (void)must_become_late(second.env, ticket);
    must_eq(word_load(&second.has_turn), 0);
    xac_turn_pass(first, first->ctx.slot);
    must(pthread_join(second.thread, NULL) == 0);
    must(has_turn(second.env));
    xac_turn_pass(second.env, second.env->ctx.slot);
    leave(second.env, first);
}
END_TEST

/* A ticket that is drawn after a wait has waited for nobody. */
START_TEST(be_late_in_one_wait_only)
{
    struct xac_env *first = world_open(XAC_NONDURABLE);
    struct waiting second = {.env = NULL};

    must_eq(xac_turn_take(first, &first->ctx), 0);
    start(&second);
    (void)must_become_late(second.env, 0);
    xac_turn_pass(first, first->ctx.slot);
    must(pthread_join(second.thread, NULL) == 0);
    must(has_turn(second.env));
    xac_turn_pass(second.env, second.env->ctx.slot);
    must_eq(xac_turn_take(second.env, &second.env->ctx), 0);
    must_eq(atomic_load_explicit(&second.env->ctx.txn->is_late, memory_order_relaxed), 0);
    xac_turn_pass(second.env, second.env->ctx.slot);
    leave(second.env, first);
}
END_TEST

START_TEST(pass_once)
{
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE);

    must_eq(xac_turn_take(first, &first->ctx), 0);
    xac_turn_pass(first, first->ctx.slot);
    must_eq(xac_turn_take(second, &second->ctx), 0);
    xac_turn_pass(first, first->ctx.slot); /* it is not ours any more */
    must(has_turn(second) && !has_turn(first));
    xac_turn_pass(second, second->ctx.slot);
    must(xac_turn_is_free(first));
    leave(second, first);
}
END_TEST

START_TEST(give_up_waiting)
{
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE);
    double since = env_now();

    must_eq(xac_turn_take(first, &first->ctx), 0);
    xac_wait_limit(50);
    must_eq(xac_turn_take(second, &second->ctx), ETIMEDOUT);
    xac_wait_limit(0);
    must(env_now() - since >= 0.049 && env_now() - since < HANG_S);
    must_eq(ticket_of(second), 0);
    must(has_turn(first));
    xac_turn_pass(first, first->ctx.slot);
    must(xac_turn_is_free(first)); /* not given to the one that has given up */
    leave(second, first);
}
END_TEST

START_TEST(take_away_a_turn_that_nobody_claims)
{
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE);

    must_eq(xac_turn_take(first, &first->ctx), 0);
    atomic_store_explicit(&first->ctx.txn->ticket, 0, memory_order_release);
    must_eq(xac_turn_take(second, &second->ctx), 0);
    must(has_turn(second) && !has_turn(first));
    leave(second, first);
}
END_TEST

/* stop_late -- stop with the turn, as one that was late when it got it. */
static void
stop_late(void *arg)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    *(uint64_t *)arg = env->ctx.slot;
    must_eq(xac_turn_take(env, &env->ctx), 0);
    atomic_store_explicit(&env->ctx.txn->is_late, 1, memory_order_relaxed);
    (void)raise(SIGSTOP);
}

/* It would be given the turn again and again. */
START_TEST(take_the_ticket_away_with_the_turn)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);
    uint64_t *slot = proc_shared(sizeof *slot);
    pid_t stopped = proc_spawn(stop_late, slot);
    int status;

    must(waitpid(stopped, &status, WUNTRACED) == stopped && WIFSTOPPED(status));
    xac_wait_limit((unsigned)(1000 * HANG_S));
    must_eq(xac_turn_take(env, &env->ctx), 0);
    xac_wait_limit(0);
    must_eq(atomic_load_explicit(&xac_txn_at(env, *slot)->ticket, memory_order_relaxed),
            0);
    xac_turn_pass(env, env->ctx.slot);
    must(xac_turn_is_free(env));
    must(kill(stopped, SIGKILL) == 0 && waitpid(stopped, &status, 0) == stopped);
    must_eq(xac_env_close(env), 0);
}
END_TEST

/* wait_late -- wait with the turn's line until it is killed. */
static void
wait_late(void *arg)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    *(uint64_t *)arg = env->ctx.slot;
    (void)xac_turn_take(env, &env->ctx);
}

/* reap -- clean up after the dead. */
static void
reap(struct xac_env *env)
{
    sigset_t signals;

    xac_signals_block(&signals);
    xac_reap_dead(env);
    xac_signals_restore(&signals);
}

/* Or the turn would come to the slot's next owner, who does not wait for it. */
START_TEST(take_the_ticket_of_the_dead_away)
{
    struct xac_env *env = world_open(XAC_NONDURABLE), *next;
    uint64_t *slot = proc_shared(sizeof *slot);
    double since = env_now();
    pid_t child;

    must_eq(xac_turn_take(env, &env->ctx), 0);
    child = proc_spawn(wait_late, slot);
    while (*(volatile uint64_t *)slot == 0
           || atomic_load_explicit(&xac_txn_at(env, *slot)->is_late, memory_order_relaxed)
                  == 0) {
        must(env_now() - since < HANG_S);
        proc_sleep_us(1000);
    }
    proc_kill(child);
    reap(env);
    next = world_open(XAC_NONDURABLE);
    must_eq(next->ctx.slot, *slot);
    must_eq(ticket_of(next), 0);
    xac_turn_pass(env, env->ctx.slot);
    must(xac_turn_is_free(env));
    leave(next, env);
}
END_TEST

/* The word of the turn has room for the low bits of a ticket only; 0 is none. */
START_TEST(take_the_turn_when_the_tickets_are_used_up)
{
    static const uint64_t ends[] = {UINT64_C(1) << (64 - XAC_TURN_SLOT_BITS), 0};
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE);

    atomic_store_explicit(&first->ctl->next_ticket, ends[_i] - 4, memory_order_relaxed);
    for (int i = 0; i < 8; i++) {
        struct xac_env *one = i % 2 == 0 ? first : second,
                       *other = i % 2 == 0 ? second : first;

        must_eq(xac_turn_take(one, &one->ctx), 0);
        must(has_turn(one) && !has_turn(other));
        xac_wait_limit(5);
        must_eq(xac_turn_take(other, &other->ctx), ETIMEDOUT);
        xac_wait_limit(0);
        xac_turn_pass(one, one->ctx.slot);
        must(xac_turn_is_free(first));
    }
    leave(second, first);
}
END_TEST

/* A damaged region names a holder whose slot does not exist. */
static const uint64_t damaged_turns[] = {
    UINT64_MAX,
    UINT64_C(7) << XAC_TURN_SLOT_BITS,                      /* no slot */
    UINT64_C(7) << XAC_TURN_SLOT_BITS | XAC_TURN_SLOT_MASK, /* the last one */
    UINT64_C(7) << XAC_TURN_SLOT_BITS | (XAC_TURN_SLOT_MASK / 2),
    UINT64_C(7) << XAC_TURN_SLOT_BITS | 2, /* one that nobody has ever used */
};

START_TEST(take_away_a_turn_that_is_damaged)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    atomic_store_explicit(&env->ctl->turn, damaged_turns[_i], memory_order_release);
    must(!has_turn(env));
    must_eq(xac_turn_take(env, &env->ctx), 0);
    must(has_turn(env));
    xac_turn_pass(env, env->ctx.slot);
    must(xac_turn_is_free(env));
    must_eq(xac_env_close(env), 0);
}
END_TEST

/* may_publish -- what the policy says under the publish lock; XAC_UNGUARDED: a lock of the test's. */
XAC_UNGUARDED static bool
may_publish(struct xac_env *env)
{
    sigset_t signals;
    uint64_t page = 0;
    bool may;

    xac_signals_block(&signals);
    xac_chain_lock(env);
    may = xac_policy_serial.validate(env, env->ctx.slot, &page);
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    return may;
}

START_TEST(publish_with_the_turn_only)
{
    struct xac_env *first = world_open(XAC_NONDURABLE),
                   *second = world_open(XAC_NONDURABLE);

    first->policy = second->policy = &xac_policy_serial;
    must(!may_publish(first) && !may_publish(second));
    must_eq(xac_turn_take(first, &first->ctx), 0);
    must(may_publish(first) && !may_publish(second));
    atomic_store_explicit(&first->ctx.txn->ticket, 0, memory_order_release);
    must_eq(xac_turn_take(second, &second->ctx), 0); /* takes it away */
    must(!may_publish(first) && may_publish(second));
    xac_turn_pass(second, second->ctx.slot);
    must(!may_publish(first) && !may_publish(second));
    leave(second, first);
}
END_TEST

/* begin_as_loser -- as an optimistic transaction that has lost many races. */
static void *
begin_as_loser(void *arg)
{
    struct waiting *w = (struct waiting *)arg;

    w->env->ctx.n_lost = 1000;
    must_eq(xac_policy_optimistic.begin(w->env, &w->env->ctx), 0);
    word_store(&w->has_turn, 1);
    return NULL;
}

/* Those that publish have looked at the turn before it was taken. */
XAC_UNGUARDED
START_TEST(wait_for_those_that_publish)
{
    struct xac_env *first = world_open(XAC_NONDURABLE);
    struct waiting loser = {.env = world_open(XAC_NONDURABLE)};
    sigset_t signals;

    xac_signals_block(&signals);
    xac_chain_lock(first);
    must(pthread_create(&loser.thread, NULL, begin_as_loser, &loser) == 0);
    while (xac_turn_is_free(first))
        proc_sleep_us(100);
    proc_sleep_us(20000);
    must_eq(word_load(&loser.has_turn), 0);
    xac_chain_unlock(first);
    xac_signals_restore(&signals);
    proc_await(&loser.has_turn, 1, HANG_S);
    must(pthread_join(loser.thread, NULL) == 0);
    xac_turn_pass(loser.env, loser.env->ctx.slot);
    leave(loser.env, first);
}
END_TEST

/* ---- Waking --------------------------------------------------------------------------------- */

/* A sleep of the turn, which ends after a millisecond at worst, lasts so long in this test; for so long
   nobody has passed the turn, and it is free, if somebody should have been woken. */
#define LONG_MS  5000
#define STALL_NS UINT64_C(2000000000)

#define N_SLEEPERS 6
#define N_TURNS    300

static struct night {
    _Atomic uint64_t n_here, go, passed_ns, n_sleeps, n_lost;
} * night;
static const struct xac_env *sleeper;

void __real_xac_futex_wait(xac_shared _Atomic uint32_t *word, uint32_t seen,
                           unsigned timeout_ms);
void __wrap_xac_futex_wait(xac_shared _Atomic uint32_t *word, uint32_t seen,
                           unsigned timeout_ms);

void
__wrap_xac_futex_wait(xac_shared _Atomic uint32_t *word, uint32_t seen,
                      unsigned timeout_ms)
{
    if (sleeper == NULL) {
        __real_xac_futex_wait(word, seen, timeout_ms);
        return;
    }
    __real_xac_futex_wait(word, seen, LONG_MS);
    word_add(&night->n_sleeps, 1);
    if (xac_turn_is_free(sleeper)
        && xac_clock_ns() >= word_load(&night->passed_ns) + STALL_NS)
        word_add(&night->n_lost, 1);
}

static void
take_turns(void *arg)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);
    uint64_t rnd = env_seed() + (uint64_t)getpid();

    (void)arg;
    word_add(&night->n_here, 1);
    proc_await(&night->go, 1, HANG_S);
    sleeper = env;
    for (int i = 0; i < N_TURNS; i++) {
        must_eq(xac_turn_take(env, &env->ctx), 0);
        if (rnd_below(&rnd, 4) == 0)
            proc_sleep_us(rnd_below(&rnd, 300)); /* the others fall asleep */
        word_store(&night->passed_ns, xac_clock_ns());
        xac_turn_pass(env, env->ctx.slot);
        if (rnd_below(&rnd, 4) == 0)
            proc_sleep_us(rnd_below(&rnd, 300));
    }
    must_eq(xac_env_close(env), 0);
}

START_TEST(no_sleep_ends_by_its_time_only)
{
    pid_t pid[N_SLEEPERS];

    night = proc_shared(sizeof *night);
    for (int i = 0; i < N_SLEEPERS; i++)
        pid[i] = proc_spawn(take_turns, NULL);
    proc_await(&night->n_here, N_SLEEPERS, HANG_S);
    word_store(&night->go, 1);
    for (int i = 0; i < N_SLEEPERS; i++)
        proc_join(pid[i]);
    printf("%d sleeps, %d of them were to be ended before\n",
           (int)word_load(&night->n_sleeps), (int)word_load(&night->n_lost));
    must(word_load(&night->n_sleeps) > 0);
    must_eq(word_load(&night->n_lost), 0);
}
END_TEST

/* ---- Killed and stopped ------------------------------------------------------------------ */

#ifdef XAC_DEBUG

enum {
    N_SURVIVORS = 2,
    VICTIM = N_SURVIVORS,
    N_WORKERS
};

static struct board {
    _Atomic uint64_t n_done[N_WORKERS]; /* added, as each knows                         */
    _Atomic uint64_t n_lost[N_WORKERS]; /* turns that were taken away                   */
    _Atomic uint64_t order, held;       /* the victim goes to its point; it is there    */
    _Atomic uint64_t has_company;       /* somebody only takes part                     */
    _Atomic uint64_t held_turn;         /* the forerunner has the turn                  */
    _Atomic uint64_t end;
    uint64_t count; /* under publish                                                  */
} * board;

static const char *point;
static int deadly_signal;

static void
meet(const char *name)
{
    if (word_load(&board->order) == 0 || word_load(&board->held) != 0
        || strcmp(name, point) != 0)
        return;
    word_store(&board->held, 1);
    (void)kill(getpid(), deadly_signal);
}

/* count -- one turn; XAC_UNGUARDED: the lock is a word of the test's. */
XAC_UNGUARDED static void
count(struct xac_env *env, int w)
{
    uint64_t before;
    sigset_t signals;
    bool is_mine;

    must_eq(xac_turn_take(env, &env->ctx), 0);
    before = *(volatile uint64_t *)&board->count;
    xac_signals_block(&signals);
    xac_chain_lock(env);
    is_mine = has_turn(env);
    if (is_mine) {
        must_eq(*(volatile uint64_t *)&board->count, before);
        if (w == VICTIM)
            meet("mine");
        board->count++;
    }
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    word_add(is_mine ? &board->n_done[w] : &board->n_lost[w], 1);
    xac_turn_pass(env, env->ctx.slot);
}

static void
run_worker(void *arg)
{
    int w = *(const int *)arg;
    struct xac_env *env = world_open(XAC_NONDURABLE);

    if (w == VICTIM)
        xac_kill_hook = meet;
    while (word_load(&board->end) == 0)
        count(env, w);
    must_eq(xac_env_close(env), 0);
}

/* run_forerunner -- takes the turn and never passes it. */
static void
run_forerunner(void *arg)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    (void)arg;
    must_eq(xac_turn_take(env, &env->ctx), 0);
    word_store(&board->held_turn, 1);
    for (;;)
        (void)pause();
}

/* run_company -- takes part, so that the region stays when the others are dead. */
static void
run_company(void *arg)
{
    (void)arg;
    (void)world_open(XAC_NONDURABLE);
    word_store(&board->has_company, 1);
    for (;;)
        (void)pause();
}

/* must_go_on -- each of these workers gets turns. */
static void
must_go_on(int n)
{
    for (int w = 0; w < n; w++)
        proc_await(&board->n_done[w], word_load(&board->n_done[w]) + 20, HANG_S);
}

/* meet_point -- wait until the victim has stopped or died; ret its status. */
static int
meet_point(pid_t victim)
{
    int status;

    word_store(&board->order, 1);
    proc_await(&board->held, 1, HANG_S);
    must(waitpid(victim, &status, WUNTRACED) == victim);
    return status;
}

static pid_t pid[N_WORKERS];

static void
spawn(int first, int n)
{
    static int number[N_WORKERS] = {0, 1, VICTIM};

    for (int w = first; w < first + n; w++)
        pid[w] = proc_spawn(run_worker, &number[w]);
}

/* start_all -- everybody gets turns; the victim will get this signal at this point. */
static void
start_all(const char *where, int signal)
{
    board = proc_shared(sizeof *board);
    point = where;
    deadly_signal = signal;
    spawn(0, N_WORKERS);
    must_go_on(N_WORKERS);
}

/* end_all -- everybody ends; the count is what they have counted, or one more; only the victim has
   lost. */
static void
end_all(bool is_killed)
{
    uint64_t sum = 0;

    word_store(&board->end, 1);
    for (int w = 0; w < (is_killed ? N_SURVIVORS : N_WORKERS); w++)
        proc_join(pid[w]);
    for (int w = 0; w < N_WORKERS; w++)
        sum += word_load(&board->n_done[w]);
    must(board->count >= sum && board->count <= sum + (is_killed ? 1 : 0));
    must_eq(word_load(&board->n_lost[0]) + word_load(&board->n_lost[1]), 0);
}

static const struct place {
    const char *point;
    bool loses_turn; /* what a stopped one loses there                               */
} places[] = {{"ta", false}, {"ts", false}, {"tb", true}, {"td", false}, {"te", false}};

START_TEST(go_on_beside_one_killed)
{
    start_all(places[_i].point, SIGKILL);
    must(WIFSIGNALED(meet_point(pid[VICTIM])));
    must_go_on(N_SURVIVORS);
    end_all(true);
}
END_TEST

START_TEST(go_on_beside_one_stopped)
{
    start_all(places[_i].point, SIGSTOP);
    must(WIFSTOPPED(meet_point(pid[VICTIM])));
    must_go_on(N_SURVIVORS);
    must(kill(pid[VICTIM], SIGCONT) == 0);
    must_go_on(N_WORKERS);
    end_all(false);
    must_eq(word_load(&board->n_lost[VICTIM]), places[_i].loses_turn);
}
END_TEST

/* Stopped behind its look at the turn: nobody may have the turn until it goes on and counts. */
START_TEST(wait_for_one_stopped_with_the_lock)
{
    start_all("mine", SIGSTOP);
    must(WIFSTOPPED(meet_point(pid[VICTIM])));
    proc_sleep_us(50000);
    must(kill(pid[VICTIM], SIGCONT) == 0);
    must_go_on(N_WORKERS);
    end_all(false);
}
END_TEST

START_TEST(take_away_what_the_dead_was_taking_away)
{
    pid_t forerunner, company;

    board = proc_shared(sizeof *board);
    point = "tf";
    deadly_signal = SIGKILL;
    company = proc_spawn(run_company, NULL);
    proc_await(&board->has_company, 1, HANG_S);
    forerunner = proc_spawn(run_forerunner, NULL);
    proc_await(&board->held_turn, 1, HANG_S);
    if (_i == 0)
        proc_kill(forerunner);
    else
        must(kill(forerunner, SIGSTOP) == 0);
    word_store(&board->order, 1);
    spawn(VICTIM, 1);
    must(WIFSIGNALED(meet_point(pid[VICTIM])));
    spawn(0, N_SURVIVORS);
    must_go_on(N_SURVIVORS);
    end_all(true);
    if (_i != 0)
        proc_kill(forerunner);
    proc_kill(company);
}
END_TEST

#endif /* XAC_DEBUG */

int
main(void)
{
    Suite *s = suite_create("turn");
    TCase *tc = env_tcase(s, "one process", 60);

    tcase_add_test(tc, take_the_turn_in_the_order_of_tickets);
    tcase_add_test(tc, pass_to_the_first_of_those_that_are_late);
    tcase_add_test(tc, become_late_again_with_another_ticket);
    tcase_add_test(tc, be_late_in_one_wait_only);
    tcase_add_test(tc, pass_once);
    tcase_add_test(tc, give_up_waiting);
    tcase_add_test(tc, take_away_a_turn_that_nobody_claims);
    tcase_add_test(tc, take_the_ticket_away_with_the_turn);
    tcase_add_test(tc, take_the_ticket_of_the_dead_away);
    tcase_add_loop_test(tc, take_away_a_turn_that_is_damaged, 0,
                        sizeof damaged_turns / sizeof *damaged_turns);
    tcase_add_loop_test(tc, take_the_turn_when_the_tickets_are_used_up, 0, 2);
    tcase_add_test(tc, publish_with_the_turn_only);
    tcase_add_test(tc, wait_for_those_that_publish);
    tc = env_tcase(s, "waking", 120);
    tcase_add_test(tc, no_sleep_ends_by_its_time_only);
#ifdef XAC_DEBUG
    tc = env_tcase(s, "killed and stopped", 120);
    tcase_add_loop_test(tc, go_on_beside_one_killed, 0,
                        (int)(sizeof places / sizeof places[0]));
    tcase_add_loop_test(tc, go_on_beside_one_stopped, 0,
                        (int)(sizeof places / sizeof places[0]));
    tcase_add_test(tc, wait_for_one_stopped_with_the_lock);
    tcase_add_loop_test(tc, take_away_what_the_dead_was_taking_away, 0, 2);
#endif
    return env_main(s);
}
