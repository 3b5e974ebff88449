/* SPDX-License-Identifier: MIT */
/*
 * sim.c -- see sim.h.
 */
#include <config.h>

#include "sim.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "base/futex.h"
#include "base/lock.h"

#define STACK_BYTES ((size_t)512 << 10)
#define HELD_MAX    8
#define TIME_STEP   10000000u

/* Rounds in which nobody can do anything but spin, before that counts as for ever. */
#define STUCK_MAX 2000

/* Owner of a lock that is taken outside of all coroutines. */
#define OUTSIDE (SIM_FIBERS + 1)

struct fiber {
    enum sim_state state;
    ucontext_t uc;
    uint8_t *stack;
    uint8_t *sp; /* where it stands, about; all that is live lies above          */
    void (*body)(int i);
    struct xac_lock *waits;
    struct xac_lock *held[HELD_MAX];
    int n_held;
    bool is_fresh;    /* has done nothing yet since it was between steps               */
    bool is_spinning; /* has yielded in this step                                      */
    uint64_t seen;    /* `progress` when it last yielded                               */
};

/* What a lock's memory holds here. */
struct owner {
    uint32_t who; /* coroutine + 1, OUTSIDE, 0 free */
    uint32_t is_dead;
};

static struct fiber fibers[SIM_FIBERS];
static struct sim_hooks hooks;
static ucontext_t driver;
static int current = -1;
static uint64_t now_ns;
static uint64_t progress;
static unsigned stuck;
static uint64_t outside_held; /* bits of ranks, as xac_lock_held */

/* In place of lock.c: the ranks held by the coroutine that runs. */
XAC_TLS uint64_t xac_lock_held;
XAC_TLS struct xac_half_done xac_half_done;

/* ---- Coroutines ---------------------------------------------------------------------- */

void
sim_init(const struct sim_hooks *h)
{
    hooks = *h;
    for (int i = 0; i < SIM_FIBERS; i++) {
        void *p = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        sim_must(p != MAP_FAILED);
        fibers[i].stack = p;
    }
}

void
sim_reset(void)
{
    sim_must(current < 0);
    for (int i = 0; i < SIM_FIBERS; i++) {
        uint8_t *stack = fibers[i].stack;

        memset(&fibers[i], 0, sizeof fibers[i]);
        fibers[i].stack = stack;
    }
    now_ns = 1000000000;
    progress = 0;
    stuck = 0;
}

/* enter -- first frame of a coroutine. */
static void
enter(int i)
{
    fibers[i].body(i);
    fibers[i].state = SIM_DONE;
    swapcontext(&fibers[i].uc, &driver);
}

void
sim_spawn(int i, void (*body)(int i))
{
    struct fiber *f = &fibers[i];

    f->body = body;
    f->state = SIM_BETWEEN;
    f->is_fresh = true;
    getcontext(&f->uc);
    f->uc.uc_stack.ss_sp = f->stack;
    f->uc.uc_stack.ss_size = STACK_BYTES;
    f->uc.uc_link = NULL;
    makecontext(&f->uc, (void (*)(void))enter, 1, i);
}

/* leave -- the running coroutine goes back to the driver. */
static void
leave(enum sim_state state)
{
    struct fiber *f = &fibers[current];

    f->state = state;
    f->sp = (uint8_t *)__builtin_frame_address(0) - 1024;
    swapcontext(&f->uc, &driver);
}

void
sim_between(void)
{
    struct fiber *f = &fibers[current];

    sim_must(f->n_held == 0);
    f->is_fresh = true;
    f->is_spinning = false;
    leave(SIM_BETWEEN);
}

/* ranks_held -- what xac_lock_held is while a coroutine runs. */
static uint64_t
ranks_held(const struct fiber *f)
{
    uint64_t ranks = 0;

    for (int k = 0; k < f->n_held; k++)
        ranks |= UINT64_C(1) << f->held[k]->rank;
    return ranks;
}

void
sim_run(int i)
{
    struct fiber *f = &fibers[i];

    sim_must(current < 0 && sim_is_runnable(i));
    if (f->state != SIM_SPINNING) {
        progress++;
        stuck = 0;
    }
    current = i;
    xac_lock_held = ranks_held(f);
    swapcontext(&driver, &f->uc);
    current = -1;
    xac_lock_held = outside_held;
}

static struct owner *
owner_of(struct xac_lock *lk)
{
    return (struct owner *)(void *)&lk->mutex;
}

/* bury -- what a dead coroutine held is held by a dead owner. */
static void
bury(int i)
{
    struct fiber *f = &fibers[i];

    for (int k = 0; k < f->n_held; k++)
        owner_of(f->held[k])->is_dead = 1;
    f->n_held = 0;
    hooks.died(i);
}

void
sim_kill(int i)
{
    bury(i);
    if (i == current)
        leave(SIM_DEAD);
    fibers[i].state = SIM_DEAD;
}

enum sim_state
sim_state(int i)
{
    return fibers[i].state;
}

bool
sim_is_runnable(int i)
{
    const struct fiber *f = &fibers[i];

    switch (f->state) {
    case SIM_BETWEEN:
    case SIM_MIDWAY:
        return true;
    case SIM_BLOCKED:
        return owner_of(f->waits)->who == 0 || owner_of(f->waits)->is_dead == 1;
    case SIM_SPINNING:
        return f->seen != progress;
    default:
        return false;
    }
}

int
sim_current(void)
{
    return current;
}

bool
sim_time_passes(void)
{
    for (int i = 0; i < SIM_FIBERS; i++) {
        if (fibers[i].state == SIM_SPINNING) {
            if (++stuck > STUCK_MAX)
                sim_fail(__FILE__, __LINE__, "participant %d spins for ever", i);
            now_ns += TIME_STEP;
            progress++;
            return true;
        }
    }
    return false;
}

uint64_t
sim_clock(void)
{
    return now_ns;
}

void
sim_clock_advance(uint64_t ns)
{
    now_ns += ns;
}

void
sim_place(int i, const void **regs, size_t *n_regs, const void **stack, size_t *n_stack)
{
    const struct fiber *f = &fibers[i];

    *regs = &f->uc.uc_mcontext.gregs;
    *n_regs = sizeof f->uc.uc_mcontext.gregs;
    *stack = f->sp;
    *n_stack = (size_t)(f->stack + STACK_BYTES - f->sp);
}

/* ---- Points -------------------------------------------------------------------------- */

void sim_point(const volatile void *at, int is_store);
void sim_stored(const volatile void *at);
int sim_sched_yield(void);
int sim_clock_gettime(clockid_t clock, struct timespec *ts);
int sim_nanosleep(const struct timespec *want, struct timespec *left);

void
sim_point(const volatile void *at, int is_store)
{
    struct fiber *f = &fibers[current < 0 ? 0 : current];

    if (current < 0 || f->is_spinning)
        return;
    switch (hooks.decide(at, is_store != 0)) {
    case SIM_GO_ON:
        break;
    case SIM_PREEMPT:
        leave(SIM_MIDWAY);
        break;
    case SIM_DIE:
        sim_kill(current);
        break;
    }
}

void
sim_stored(const volatile void *at)
{
    hooks.stored(at);
}

int
sim_sched_yield(void)
{
    struct fiber *f = &fibers[current < 0 ? 0 : current];

    if (current < 0) { /* between runs: nobody else will end the wait */
        sim_clock_advance(1000000);
        return 0;
    }
    f->is_spinning = true;
    f->seen = progress;
    leave(SIM_SPINNING);
    return 0;
}

int
sim_clock_gettime(clockid_t clock, struct timespec *ts)
{
    (void)clock;
    ts->tv_sec = (time_t)(now_ns / 1000000000u);
    ts->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

int
sim_nanosleep(const struct timespec *want, struct timespec *left)
{
    (void)want;
    (void)left;
    return sim_sched_yield();
}

void
xac_futex_wait(_Atomic uint32_t *word, uint32_t seen, unsigned timeout_ms)
{
    (void)word;
    (void)seen;
    (void)timeout_ms;
    (void)sim_sched_yield();
}

uint64_t
xac_futex_spin(const _Atomic uint64_t *word, uint64_t wanted)
{
    (void)wanted;
    (void)sim_sched_yield();
    return atomic_load_explicit(word, memory_order_relaxed);
}

void
xac_futex_wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

void
xac_futex_wake_one(_Atomic uint32_t *word)
{
    (void)word;
}

/* ---- Locks: lock.h ------------------------------------------------------------------- */

int
xac_lock_init(struct xac_lock *lk, enum xac_lock_rank rank)
{
    memset(lk, 0, sizeof *lk);
    lk->rank = (int)rank;
    return 0;
}

/* held_push -- remember a lock; the order of ranks is checked as in lock.c. */
static void
held_push(struct xac_lock *lk, bool is_try)
{
    struct fiber *f = &fibers[current < 0 ? 0 : current];

    if (current < 0) {
        xac_lock_held = outside_held |= UINT64_C(1) << lk->rank;
        return;
    }
    sim_must(f->n_held < HELD_MAX);
    for (int k = 0; k < f->n_held && !is_try; k++)
        sim_must(f->held[k]->rank < lk->rank);
    f->held[f->n_held++] = lk;
    xac_lock_held = ranks_held(f);
}

static enum xac_lock_result
lock_take(struct xac_lock *lk, bool is_try)
{
    struct owner *o = owner_of(lk);
    bool was_dead = o->is_dead != 0;

    o->who = current < 0 ? OUTSIDE : (uint32_t)current + 1;
    o->is_dead = 0;
    held_push(lk, is_try);
    if (was_dead)
        o->is_dead = 2; /* to be repaired: nobody else may take it */
    return was_dead ? XAC_LOCK_OWNER_DIED : XAC_LOCK_OK;
}

enum xac_lock_result
xac_lock_acquire(struct xac_lock *lk)
{
    struct owner *o = owner_of(lk);

    sim_point(lk, 1);
    while (o->who != 0 && o->is_dead != 1) {
        sim_must(current >= 0);
        sim_must(o->who != (uint32_t)current + 1);
        fibers[current].waits = lk;
        leave(SIM_BLOCKED);
    }
    return lock_take(lk, false);
}

/* Nobody's patience is limited here: a schedule in which a lock is never released is found. */
enum xac_lock_result
xac_lock_acquire_limited(struct xac_lock *lk)
{
    return xac_lock_acquire(lk);
}

void
xac_wait_limit(uint32_t ms)
{
    (void)ms;
}

uint32_t
xac_wait_limit_ms(void)
{
    return 0;
}

bool
xac_wait_is_limited(void)
{
    return false;
}

unsigned
xac_wait_slice(unsigned ms)
{
    return ms;
}

bool
xac_wait_is_over(void)
{
    return false;
}

void
xac_lock_watch(struct xac_lock *lk, struct xac_watch *w)
{
    (void)lk;
    (void)w;
}

void
xac_lock_holder(const struct xac_lock *lk, struct xac_holder *out)
{
    (void)lk;
    memset(out, 0, sizeof *out);
}

enum xac_lock_result
xac_lock_try(struct xac_lock *lk)
{
    struct owner *o = owner_of(lk);

    sim_point(lk, 1);
    return o->who != 0 && o->is_dead != 1 ? XAC_LOCK_BUSY : lock_take(lk, true);
}

void
xac_lock_repaired(struct xac_lock *lk)
{
    sim_must(owner_of(lk)->is_dead == 2);
    owner_of(lk)->is_dead = 0;
}

void
xac_lock_release(struct xac_lock *lk)
{
    struct owner *o = owner_of(lk);
    struct fiber *f = &fibers[current < 0 ? 0 : current];
    int k = f->n_held - 1;

    sim_point(lk, 1);
    sim_must(o->is_dead == 0);
    sim_must(o->who == (current < 0 ? OUTSIDE : (uint32_t)current + 1));
    memset(o, 0, sizeof *o);
    if (current < 0) {
        xac_lock_held = outside_held &= ~(UINT64_C(1) << lk->rank);
        return;
    }
    while (k >= 0 && f->held[k] != lk)
        k--;
    sim_must(k >= 0);
    for (; k < f->n_held - 1; k++)
        f->held[k] = f->held[k + 1];
    f->n_held--;
    xac_lock_held = ranks_held(f);
}

void
xac_lock_forget(void)
{
    sim_fail(__FILE__, __LINE__, "nobody forks here");
}

void
xac_signals_block(sigset_t *old)
{
    (void)sigemptyset(old);
}

void
xac_signals_restore(const sigset_t *old)
{
    (void)old;
}

void
xac_signals_glance(void)
{
}

bool
xac_signals_are_pending(void)
{
    return false;
}

bool
xac_signals_are_blocked(void)
{
    return false;
}

void
xac_signals_pin(bool is_pinned)
{
    (void)is_pinned;
}
