/* SPDX-License-Identifier: MIT */
/*
 * events.h -- the clock of a discrete-event simulation: what happens next, and things that one
 * processor has at a time.
 *
 * WHAT      A heap of events, the earliest first, and of those at one time the first that was added, so
 *           that a simulation gives the same each time; a resource is free from some time on.
 * THREADS   none.
 */
#ifndef XBENCH_EVENTS_H
#define XBENCH_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_EVENTS_MAX 256u /* one for each processor is enough                       */

struct bench_event {
    double at; /* ns                                                                    */
    uint64_t order;
    unsigned processor;
};

struct bench_events {
    struct bench_event heap[BENCH_EVENTS_MAX];
    unsigned n;
    uint64_t n_added;
};

/* bench_event_add -- there must be room. */
void bench_event_add(struct bench_events *e, double at, unsigned processor);

/* bench_event_next -- take the first one; false: there is none. */
bool bench_event_next(struct bench_events *e, struct bench_event *out);

/* A lock, or a line of memory: one processor at a time, who comes first has it first. */
struct bench_resource {
    double free_at;
    unsigned owner; /* that has had it last, plus 1; 0 nobody                           */
};

/*
 * bench_resource_use -- from `now` on, or when it is free.
 *
 * in   hold      ns that the owner needs it
 * in   transfer  ns more, if another processor has had it last
 * ret  when the processor is done with it
 */
double bench_resource_use(struct bench_resource *r, unsigned processor, double now,
                          double hold, double transfer);

#endif /* XBENCH_EVENTS_H */
