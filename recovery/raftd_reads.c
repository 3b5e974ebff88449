/* SPDX-License-Identifier: MIT */
/*
 * raftd_reads.c -- see raftd_reads.h.
 */
#include <config.h>

#include "raftd_reads.h"

#include <errno.h>
#include <time.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "raftd_status.h"
#include "shared/group.h"

/* How long to sleep at most before looking whether to stop. */
#define LOOK_MS 50

/* How long to wait after a round that has said nothing: there may be no leader for a moment. */
#define RETRY_NS UINT64_C(20000000)

/* How long to wait for a round. */
#define ROUND_NS UINT64_C(3000000000)

#define NS_PER_S UINT64_C(1000000000)

/* ---- Rounds (1) --------------------------------------------------------------------- */

/* begin_next -- the next round, if somebody wants it and none is under way; with the lock. */
static void
begin_next(struct raftd_reads *r, struct raftd_round *round)
{
    uint64_t term = raftd_raft_term(r->raft);

    if (round->begun > round->done || round->wanted <= round->begun)
        return;
    round->begun++;
    if (round == &r->own
        && (term == 0 || raftd_raft_barrier(r->raft, RAFTD_ITEM_READ, term) != 0))
        round->done = round->begun; /* it says nothing */
    xac_assert(round->done + 1 >= round->begun);
    (void)pthread_cond_broadcast(&r->changed);
}

/* end_round -- the one under way is over; with the lock. */
static void
end_round(struct raftd_reads *r, struct raftd_round *round, bool is_good, uint64_t lsn)
{
    xac_assert(round->begun == round->done + 1);
    round->done = round->begun;
    if (is_good) {
        round->good = round->done;
        round->lsn = lsn;
    }
    begin_next(r, round);
    (void)pthread_cond_broadcast(&r->changed);
}

/* sleep_until -- or until something has changed; with the lock.  ret 0 or ETIMEDOUT. */
static int
sleep_until(struct raftd_reads *r, uint64_t until_ns)
{
    struct timespec end = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                           .tv_nsec = (long)(until_ns % NS_PER_S)};

    xac_assert(until_ns != 0);
    return pthread_cond_timedwait(&r->changed, &r->lock, &end);
}

/*
 * await_round -- one that begins from now on; with the lock.
 *
 * in   is_ear  it is the thread that hears programs, which may have to end
 * ret  as raftd_reads_position().
 */
static int
await_round(struct raftd_reads *r, struct raftd_round *round, bool is_ear,
            uint64_t until_ns, uint64_t *lsnp)
{
    uint64_t goal = round->begun + 1;
    int rc = 0;

    if (round->wanted < goal)
        round->wanted = goal;
    begin_next(r, round);
    while (rc == 0 && round->done < goal) {
        if (r->is_over || (is_ear && r->is_deaf))
            return ECANCELED;
        rc = sleep_until(r, until_ns);
    }
    if (round->good < goal)
        return rc != 0 ? ETIMEDOUT : EAGAIN;
    *lsnp = round->lsn;
    return 0;
}

int
raftd_reads_position(struct raftd_reads *r, uint64_t until_ns, uint64_t *lsnp)
{
    int rc;

    (void)pthread_mutex_lock(&r->lock);
    rc = r->is_over ? ECANCELED : await_round(r, &r->own, false, until_ns, lsnp);
    (void)pthread_mutex_unlock(&r->lock);
    return rc;
}

void
raftd_reads_barrier_done(struct raftd_reads *r, bool is_good, uint64_t lsn)
{
    (void)pthread_mutex_lock(&r->lock);
    end_round(r, &r->own, is_good, lsn);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- Asking the node that leads ------------------------------------------------------- */

/* ask_leader -- ret is there an answer? */
static bool
ask_leader(struct raftd_reads *r, uint64_t *lsnp)
{
    uint32_t leader = raftd_status_leader(r->status, 0);

    xac_assert(r->far.arg != NULL);
    return leader != 0
           && r->far.ask(r->far.arg, leader, xac_clock_ns() + ROUND_NS, lsnp) == 0;
}

/* speak -- the thread that asks other nodes. */
static void *
speak(void *arg)
{
    struct raftd_reads *r = (struct raftd_reads *)arg;

    (void)pthread_mutex_lock(&r->lock);
    while (!r->is_over) {
        uint64_t lsn = 0;
        bool is_good;

        if (r->others.begun == r->others.done) {
            (void)pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&r->lock);
        is_good = ask_leader(r, &lsn);
        (void)pthread_mutex_lock(&r->lock);
        end_round(r, &r->others, is_good, lsn);
    }
    (void)pthread_mutex_unlock(&r->lock);
    r->far.end(r->far.arg);
    return NULL;
}

/* ---- Hearing programs ----------------------------------------------------------------- */

/* is_deaf -- is the thread to end? */
static bool
is_deaf(struct raftd_reads *r)
{
    bool is;

    (void)pthread_mutex_lock(&r->lock);
    is = r->is_deaf || r->is_over;
    (void)pthread_mutex_unlock(&r->lock);
    return is;
}

/* find_out -- what is newest; ret 0: there is an answer.  If there is none it waits for a moment. */
static int
find_out(struct raftd_reads *r, uint64_t *lsnp)
{
    /* (3) */
    bool is_own = xac_group_leads(r->env) || raftd_raft_term(r->raft) != 0;
    uint64_t until_ns = xac_clock_ns() + ROUND_NS;
    int rc = EAGAIN;

    (void)pthread_mutex_lock(&r->lock);
    if (is_own || r->has_mouth)
        rc = await_round(r, is_own ? &r->own : &r->others, true, until_ns, lsnp);
    if (rc == EAGAIN) {
        until_ns = xac_clock_ns() + RETRY_NS;
        while (!r->is_deaf && !r->is_over && sleep_until(r, until_ns) == 0)
            continue;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return rc;
}

/* hear -- the thread that hears programs. */
static void *
hear(void *arg)
{
    struct raftd_reads *r = (struct raftd_reads *)arg;

    while (!is_deaf(r)) {
        uint64_t n, lsn = 0;

        xac_group_hear(r->env, LOOK_MS);
        n = xac_group_asked(r->env); /* before the round begins (1) */
        if (n != xac_group_answered(r->env) && find_out(r, &lsn) == 0)
            xac_group_answer(r->env, n, lsn);
    }
    return NULL;
}

int
raftd_reads_listen(struct raftd_reads *r, struct xac_env *env)
{
    int rc;

    xac_assert(r->env == NULL || r->env == env);
    if (r->env == env)
        return 0;
    r->env = env;
    r->is_deaf = false; /* no thread looks at it */
    rc = pthread_create(&r->ear, NULL, hear, r);
    if (rc == 0)
        return 0;
    r->env = NULL;
    return xac_err(rc, "thread");
}

void
raftd_reads_deafen(struct raftd_reads *r)
{
    if (r->env == NULL)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->is_deaf = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->ear, NULL); /* within LOOK_MS */
    r->env = NULL;
}

/* ---- Life --------------------------------------------------------------------------- */

void
raftd_reads_init(struct raftd_reads *r, struct raftd_status *status)
{
    pthread_condattr_t attr;

    *r = (struct raftd_reads){.status = status};
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void
raftd_reads_fini(struct raftd_reads *r)
{
    xac_assert(r->env == NULL);
    xac_assert(!r->has_mouth);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
}

int
raftd_reads_start(struct raftd_reads *r, struct raftd_raft *raft,
                  const struct raftd_reads_far *far)
{
    int rc;

    r->raft = raft;
    r->far = *far;
    if (far->arg == NULL)
        return 0;
    rc = pthread_create(&r->mouth, NULL, speak, r);
    r->has_mouth = rc == 0;
    return rc == 0 ? 0 : xac_err(rc, "thread");
}

void
raftd_reads_stop(struct raftd_reads *r)
{
    raftd_reads_deafen(r);
    (void)pthread_mutex_lock(&r->lock);
    r->is_over = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    if (r->has_mouth)
        r->far.cut(r->far.arg);
    if (r->has_mouth)
        (void)pthread_join(r->mouth, NULL);
    r->has_mouth = false;
}
