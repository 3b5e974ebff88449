/* SPDX-License-Identifier: MIT */
/*
 * raftd_gather.c -- see raftd_gather.h.
 */
#include <config.h>

#include "raftd_gather.h"

#include "base/annot.h"
#include "base/err.h"

/* note -- for other threads. */
static void
note(struct raftd_gather *g)
{
    /* relaxed: nothing else is read because of it. */
    atomic_store_explicit(&g->is_late, g->bytes >= 2 * g->most, memory_order_relaxed);
}

void
raftd_gather_init(struct raftd_gather *g, uint64_t most)
{
    *g = (struct raftd_gather){.most = most};
}

bool
raftd_gather_add(struct raftd_gather *g, size_t bytes)
{
    g->n_all++;
    g->n++;
    g->bytes += bytes;
    note(g);
    return g->bytes >= g->most;
}

void
raftd_gather_clear(struct raftd_gather *g)
{
    g->n = g->bytes = 0;
    note(g);
}

unsigned
raftd_gather_entries(const struct raftd_gather *g, unsigned least, unsigned most)
{
    uint64_t n = g->bytes > 0 ? g->most * g->n / g->bytes : 0;

    xac_assert(least <= most);
    if (n > most)
        return most;
    return n > least ? (unsigned)n : least;
}

bool
raftd_gather_is_late(const struct raftd_gather *g)
{
    /* relaxed: pairs with nothing; the next look sees it. */
    return atomic_load_explicit(&g->is_late, memory_order_relaxed);
}
