/* SPDX-License-Identifier: MIT */
/*
 * processors_policies.c -- transactions under each policy on many processors; see processors.h.
 *
 * A TRANSACTION  begins, touches random pages, each of which costs something the first time, and ends;
 *           then it takes the lock under which commits are published.  A retry touches the same
 *           pages.
 * EAGER     A transaction meets at each touch the others that have the page, and the policy says which one
 *           fails; one that has been failed by another notices at its next touch.  The next attempt begins at
 *           once, under oldest-wins when the winner is over.
 * OPTIMISTIC  A page that was committed since the begin fails the end.  After 4 lost races a transaction
 *           has the turn: nobody else commits.  Under VO only pages that it has written count.
 * SERIAL    It waits for its turn first.
 * TIMES     What a transaction does takes half as long to one and a half times as long, at random.  If it always
 *           took the same time, transactions that have failed each other once would do so for ever, in step.
 */
#include <config.h>

#include "bench/simulate/processors.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"
#include "bench/simulate/events.h"

#define TOUCHES_MAX 32u
#define PAGES_MAX   4096u
#define ATTEMPT_NS \
 1000.0 /* that an attempt takes at least, so that retries at once pass time */
#define RACES_MAX 4u /* as the library has it                                         */
#define NOBODY    BENCH_SIM_PROCS_MAX

static struct {
    const struct bench_sim_costs *costs;
    uint64_t policy, n_pages;
    const struct bench_hot_length *length;
    unsigned n;
    struct bench_sim_txn_costs each;
    struct bench_events events;
    struct bench_resource publish;
    uint64_t readers[PAGES_MAX]; /* bit for each processor                              */
    unsigned writer[PAGES_MAX];  /* NOBODY: none                                        */
    uint64_t version[PAGES_MAX]; /* commit that has written it last                     */
    uint64_t n_commits, n_ages;
    uint64_t n_times; /* drawn; see TIMES                                             */
    unsigned turn; /* processor that has it                                            */
    struct txn {
        uint16_t pages[TOUCHES_MAX];
        unsigned at; /* touches made                                                   */
        bool has_begun, failed, waits_turn;
        bool is_over; /* has committed with the turn, and gives it back               */
        unsigned waits_for; /* processor; NOBODY                                        */
        unsigned lost_to;
        uint64_t age, begin_commit, n_drawn, retries;
    } txn[BENCH_SIM_PROCS_MAX];
    uint64_t commits, aborts, max_retries;
} sim;

static unsigned
n_touches(void)
{
    return sim.length->reads + sim.length->writes;
}

/* vary -- a time that is ns on average. */
static double
vary(double ns)
{
    return ns * (0.5 + (double)(bench_key(0, sim.n_times++) % 1024) / 1024);
}

/* leave -- all pages of a processor. */
static void
leave(unsigned p)
{
    for (unsigned i = 0; i < n_touches(); i++) {
        unsigned page = sim.txn[p].pages[i];

        sim.readers[page] &= ~(UINT64_C(1) << p);
        if (sim.writer[page] == p)
            sim.writer[page] = NOBODY;
    }
}

/* draw -- pages of a new transaction. */
static void
draw(unsigned p)
{
    struct txn *t = &sim.txn[p];

    for (unsigned i = 0; i < n_touches(); i++)
        t->pages[i] = (uint16_t)(bench_key(p + 1, t->n_drawn++) % sim.n_pages);
    t->age = sim.n_ages++;
    t->retries = 0;
}

/* wake -- those who wait for a processor's transaction to be over, or for the turn; next ones first. */
static void
wake(unsigned p, double now)
{
    bool turn_is_free = sim.turn == NOBODY;

    for (unsigned k = 1; k <= sim.n; k++) {
        unsigned q = (p + k) % sim.n;
        struct txn *t = &sim.txn[q];

        if (t->waits_for != p && !(turn_is_free && t->waits_turn))
            continue;
        t->waits_for = NOBODY;
        t->waits_turn = false;
        bench_event_add(&sim.events, now, q);
    }
}

/* needs_turn -- before it begins. */
static bool
needs_turn(const struct txn *t)
{
    return sim.policy == XAC_POLICY_SERIAL
           || (sim.policy == XAC_POLICY_OPTIMISTIC && t->retries >= RACES_MAX);
}

/* loses -- whether p, that has met q, fails: else q does. */
static bool
loses(unsigned p, unsigned q)
{
    switch (sim.policy) {
    case XAC_POLICY_SELF_ABORT:
        return true;
    case XAC_POLICY_SELFISH:
        return false;
    case XAC_POLICY_YOUNGEST_WINS:
        return sim.txn[p].age < sim.txn[q].age;
    default:
        return sim.txn[p].age > sim.txn[q].age;
    }
}

/* meet -- p wants a page; ret false: it has failed. */
static bool
meet(unsigned p, unsigned page, bool writes)
{
    uint64_t others = sim.readers[page] & ~(UINT64_C(1) << p);

    if (!writes)
        others = sim.writer[page] == NOBODY || sim.writer[page] == p
                     ? 0
                     : UINT64_C(1) << sim.writer[page];
    for (unsigned q = 0; q < sim.n; q++)
        if ((others >> q & 1) != 0 && loses(p, q)) {
            sim.txn[p].lost_to = q;
            return false;
        }
    for (unsigned q = 0; q < sim.n; q++)
        if ((others >> q & 1) != 0) {
            sim.txn[q].failed = true;
            sim.txn[q].lost_to = p;
            leave(q);
        }
    sim.readers[page] |= UINT64_C(1) << p;
    if (writes)
        sim.writer[page] = p;
    return true;
}

/* give_up -- an attempt has failed. */
static void
give_up(unsigned p, double now)
{
    struct txn *t = &sim.txn[p];

    leave(p);
    sim.aborts++;
    t->retries++;
    t->has_begun = t->failed = false;
    if (sim.policy == XAC_POLICY_OLDEST_WINS && sim.txn[t->lost_to].has_begun
        && sim.txn[t->lost_to].age < t->age)
        t->waits_for = t->lost_to;
    else
        bench_event_add(&sim.events, now, p);
}

/* begin -- or wait for the turn. */
static void
begin(unsigned p, double now)
{
    struct txn *t = &sim.txn[p];

    if (needs_turn(t) && sim.turn != NOBODY && sim.turn != p) {
        t->waits_turn = true;
        return;
    }
    if (needs_turn(t)) {
        sim.turn = p;
        now += sim.costs->line;
    }
    t->has_begun = true;
    t->at = 0;
    t->begin_commit = sim.n_commits;
    bench_event_add(&sim.events, now + vary(fmax(sim.each.own / 2, ATTEMPT_NS)), p);
}

/* is_stale -- optimistic: a page was committed since the begin. */
static bool
is_stale(const struct txn *t)
{
    bool stale = false;

    for (unsigned i = sim.policy == BENCH_SIM_VO ? sim.length->reads : 0; i < n_touches();
         i++)
        stale |= sim.version[t->pages[i]] > t->begin_commit;
    return stale;
}

/* commit -- and begin the next one. */
static void
commit(unsigned p, double now)
{
    struct txn *t = &sim.txn[p];
    double done;

    if (sim.policy == XAC_POLICY_OPTIMISTIC && sim.turn != NOBODY && sim.turn != p) {
        t->waits_turn = true; /* and comes here again */
        return;
    }
    if ((sim.policy == XAC_POLICY_OPTIMISTIC || sim.policy == BENCH_SIM_VO)
        && is_stale(t)) {
        give_up(p, now);
        return;
    }
    done = bench_resource_use(&sim.publish, p, now, sim.costs->commit, sim.costs->line);
    sim.n_commits++;
    for (unsigned i = sim.length->reads; i < n_touches(); i++)
        sim.version[t->pages[i]] = sim.n_commits;
    leave(p);
    sim.commits++;
    if (t->retries > sim.max_retries)
        sim.max_retries = t->retries;
    t->has_begun = false;
    t->is_over = sim.turn == p;
    draw(p);
    bench_event_add(&sim.events, done, p);
    wake(p, done);
}

/* touch_ns -- how long touch i takes: nothing if the attempt has the page already; the last one, and the end. */
static double
touch_ns(const struct txn *t, unsigned i)
{
    bool has_it = false;

    for (unsigned k = 0; k < i; k++)
        has_it |= t->pages[k] == t->pages[i];
    return (has_it ? 0 : sim.each.page) + (i + 1 == n_touches() ? sim.each.own / 2 : 0);
}

/* step -- what processor p does next. */
static void
step(unsigned p, double now)
{
    struct txn *t = &sim.txn[p];
    bool is_eager = sim.policy != XAC_POLICY_OPTIMISTIC && sim.policy != BENCH_SIM_VO
                    && sim.policy != XAC_POLICY_SERIAL;

    if (t->is_over) {
        t->is_over = false;
        sim.turn = NOBODY;
        wake(p, now);
        bench_event_add(&sim.events, now, p); /* behind them */
    } else if (!t->has_begun) {
        begin(p, now);
    } else if (t->failed) {
        give_up(p, now);
    } else if (t->at == n_touches()) {
        commit(p, now);
    } else {
        unsigned i = t->at++;

        if (is_eager && !meet(p, t->pages[i], i >= sim.length->reads))
            give_up(p, now);
        else
            bench_event_add(&sim.events, now + vary(touch_ns(t, i)), p);
    }
}

struct bench_sim_commits
bench_sim_policy_run(const struct bench_sim_costs *costs, uint64_t policy,
                     const struct bench_hot_length *length, uint64_t n_pages, unsigned n,
                     const struct bench_sim_txn_costs *each, double ms)
{
    struct bench_sim_commits out;
    struct bench_event e;

    memset(&sim, 0, sizeof sim);
    sim.costs = costs;
    sim.policy = policy;
    sim.length = length;
    sim.n = n;
    sim.n_pages = n_pages < PAGES_MAX ? n_pages : PAGES_MAX;
    sim.turn = NOBODY;
    sim.each = *each;
    for (unsigned i = 0; i < PAGES_MAX; i++)
        sim.writer[i] = NOBODY;
    for (unsigned p = 0; p < n; p++) {
        sim.txn[p].waits_for = NOBODY;
        draw(p);
        bench_event_add(&sim.events, p, p); /* not all at once */
    }
    while (bench_event_next(&sim.events, &e) && e.at < ms * 1e6)
        step(e.processor, e.at);
    out.per_second = (double)sim.commits * 1e3 / ms;
    out.abort_rate = (double)sim.aborts / (double)(sim.commits + sim.aborts);
    out.max_retries = sim.max_retries;
    return out;
}
