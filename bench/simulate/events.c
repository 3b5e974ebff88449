/* SPDX-License-Identifier: MIT */
/*
 * events.c -- see events.h.
 */
#include <config.h>

#include "bench/simulate/events.h"

#include <stdlib.h>

/* is_before -- order of two events. */
static bool
is_before(const struct bench_event *a, const struct bench_event *b)
{
    return a->at < b->at || (a->at <= b->at && a->order < b->order);
}

static void
swap(struct bench_event *a, struct bench_event *b)
{
    struct bench_event c = *a;

    *a = *b;
    *b = c;
}

void
bench_event_add(struct bench_events *e, double at, unsigned processor)
{
    unsigned i = e->n++;

    if (i >= BENCH_EVENTS_MAX)
        abort();
    e->heap[i] = (struct bench_event){at, e->n_added++, processor};
    for (; i > 0 && is_before(&e->heap[i], &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&e->heap[i], &e->heap[(i - 1) / 2]);
}

bool
bench_event_next(struct bench_events *e, struct bench_event *out)
{
    unsigned i = 0;

    if (e->n == 0)
        return false;
    *out = e->heap[0];
    e->heap[0] = e->heap[--e->n];
    for (;;) {
        unsigned least = i;

        for (unsigned child = 2 * i + 1; child <= 2 * i + 2 && child < e->n; child++)
            if (is_before(&e->heap[child], &e->heap[least]))
                least = child;
        if (least == i)
            return true;
        swap(&e->heap[i], &e->heap[least]);
        i = least;
    }
}

double
bench_resource_use(struct bench_resource *r, unsigned processor, double now, double hold,
                   double transfer)
{
    double from = r->free_at > now ? r->free_at : now;

    r->free_at =
        from + hold + (r->owner != processor + 1 && r->owner != 0 ? transfer : 0);
    r->owner = processor + 1;
    return r->free_at;
}
