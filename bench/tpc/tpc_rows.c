/* SPDX-License-Identifier: MIT */
/*
 * tpc_rows.c -- what the transactions of `tpcb` and `tpcc` are written with; see tpc.h.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <string.h>

#include "bench/kit/util.h"

int64_t
bench_tpc_number(const void *row, unsigned n)
{
    int64_t v;

    memcpy(&v, (const unsigned char *)row + 8 * (size_t)n, sizeof v);
    return v;
}

void
bench_tpc_set_number(void *row, unsigned n, int64_t v)
{
    memcpy((unsigned char *)row + 8 * (size_t)n, &v, sizeof v);
}

int
bench_tpc_add(const struct bench_tpc_open *o, unsigned table, uint64_t id, int64_t amount,
              void *row)
{
    unsigned char own[BENCH_TPC_ROW_MAX];
    void *r = row != NULL ? row : own;
    int rc = o->system->get(o->handle, table, id, r, true);

    if (rc != 0)
        return rc;
    bench_tpc_set_number(r, 0, bench_tpc_number(r, 0) + amount);
    return bench_tpc_put(o, table, id, r);
}

struct sum {
    unsigned n;
    int64_t sum;
    uint64_t rows;
};

static int
visit_sum(void *arg, uint64_t id, const void *row)
{
    struct sum *s = arg;

    (void)id;
    s->sum += bench_tpc_number(row, s->n);
    s->rows++;
    return 0;
}

int
bench_tpc_sum(const struct bench_tpc_open *o, unsigned table, unsigned n, int64_t *sump,
              uint64_t *np)
{
    struct sum s = {.n = n};
    int rc = o->system->scan(o->handle, table, visit_sum, &s);

    *sump = s.sum;
    *np = s.rows;
    return rc;
}

uint64_t
bench_tpc_draw(const struct bench_tpc *tpc, uint64_t i, unsigned k, uint64_t n)
{
    return bench_key(bench_key(tpc->seed, i), k) % n;
}

uint64_t
bench_tpc_own_row(const struct bench_tpc *tpc, uint64_t i)
{
    uint64_t each = tpc->steps / tpc->n_procs + 1;

    return i % tpc->n_procs * each + i / tpc->n_procs;
}
