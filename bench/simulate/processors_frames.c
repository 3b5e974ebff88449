/* SPDX-License-Identifier: MIT */
/*
 * processors_frames.c -- users of page frames on many processors; see processors.h.
 *
 * A FIX     takes the page's own line of memory, for its counter, and so does the unfix; the line
 *           comes from the processor that has had it last.  In between the policy notes the hit.
 * NB        notes it in that line.
 * LRU       under the lock: what LRU costs more than Nb-GCLOCK with one thread is the time under it, and
 *           the lines under the lock come from its last holder.
 * BATCH     costs what BP-Wrapper costs more than Nb-GCLOCK, once for each batch of 32, all of it under the
 *           lock; with 32 in its queue a user tries the lock, with 64 it waits.
 */
#include <config.h>

#include "bench/simulate/processors.h"

#include <stdbool.h>
#include <string.h>

#include "bench/simulate/events.h"

#define PARTS     64u
#define THRESHOLD 32u
#define QUEUE     64u
#define N_PAGES   32768u

enum phase {
    FIX,
    NOTE,
    UNFIX
};

static struct {
    const struct bench_sim_costs *costs;
    enum bench_sim_frames kind;
    struct bench_events events;
    struct bench_resource pages[N_PAGES], locks[PARTS];
    struct user {
        enum phase phase;
        uint64_t i; /* of the references                                               */
        uint32_t page;
        unsigned queued[PARTS];
        uint64_t n_done;
        double waited;
    } users[BENCH_SIM_PROCS_MAX];
} sim;

/* part_of -- the lock of a page. */
static unsigned
part_of(uint32_t page)
{
    bool has_parts = sim.kind == BENCH_SIM_LRU_64 || sim.kind == BENCH_SIM_BATCH_64;

    return has_parts ? page % PARTS : 0;
}

/* lock -- hold a lock for so long; ret when it is over. */
static double
lock(unsigned p, struct bench_resource *l, double now, double hold)
{
    double transfer = sim.costs->line * sim.costs->lines_under_lock;

    sim.users[p].waited += l->free_at > now ? l->free_at - now : 0;
    return bench_resource_use(l, p, now, hold, transfer);
}

/* note -- the hit; ret when that is done. */
static double
note(unsigned p, double now)
{
    struct user *u = &sim.users[p];
    unsigned part = part_of(u->page);
    struct bench_resource *l = &sim.locks[part];

    if (sim.kind == BENCH_SIM_NB)
        return now;
    if (sim.kind == BENCH_SIM_LRU || sim.kind == BENCH_SIM_LRU_64)
        return lock(p, l, now, sim.costs->lru - sim.costs->nb);
    u->queued[part]++;
    if (u->queued[part] < THRESHOLD || (l->free_at > now && u->queued[part] < QUEUE))
        return now;
    now = lock(p, l, now, u->queued[part] * (sim.costs->batch - sim.costs->nb));
    u->queued[part] = 0;
    return now;
}

/* step -- what processor p does next; ret when that is done. */
static double
step(unsigned p, double now, double compute_ns, const uint32_t *refs, uint64_t n_refs)
{
    struct user *u = &sim.users[p];

    switch (u->phase) {
    case FIX:
        /* Each begins at another place of the same references. */
        u->page = refs[(u->i++ + p * (n_refs / BENCH_SIM_PROCS_MAX)) % n_refs] % N_PAGES;
        u->phase = NOTE;
        return bench_resource_use(&sim.pages[u->page], p, now, 0, sim.costs->line)
               + sim.costs->nb / 2;
    case NOTE:
        u->phase = UNFIX;
        return note(p, now);
    default:
        u->phase = FIX;
        u->n_done++;
        return bench_resource_use(&sim.pages[u->page], p, now, 0, sim.costs->line)
               + sim.costs->nb / 2 + compute_ns;
    }
}

struct bench_sim_fixes
bench_sim_frames_run(const struct bench_sim_costs *costs, enum bench_sim_frames kind,
                     unsigned n, double compute_ns, double ms, const uint32_t *refs,
                     uint64_t n_refs)
{
    struct bench_sim_fixes out = {0, 0};
    double end = ms * 1e6;
    struct bench_event e;

    memset(&sim, 0, sizeof sim);
    sim.costs = costs;
    sim.kind = kind;
    for (unsigned p = 0; p < n; p++)
        bench_event_add(&sim.events, p, p); /* not all at once */
    while (bench_event_next(&sim.events, &e) && e.at < end)
        bench_event_add(&sim.events, step(e.processor, e.at, compute_ns, refs, n_refs),
                        e.processor);
    for (unsigned p = 0; p < n; p++) {
        out.per_us += (double)sim.users[p].n_done / (ms * 1e3);
        out.waited += sim.users[p].waited / end / n;
    }
    return out;
}
