/* SPDX-License-Identifier: MIT */
/*
 * tpc_b.c -- transactions like those of TPC-B: an account, a teller and a branch get an amount,
 * and the history a row.
 *
 * CHECK     Accounts, tellers, branches and the history add up to the same: the amounts of all
 *           transactions.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <errno.h>
#include <string.h>

#include "bench/kit/util.h"

enum {
    ACCOUNT,
    TELLER,
    BRANCH,
    HISTORY,
    N_TABLES
};

#define TELLERS_OF_BRANCH 10u
#define AMOUNT_MAX        999999

static void
set_up(struct bench_tpc *t)
{
    const uint64_t rows[N_TABLES] = {t->scale * t->size, t->scale * TELLERS_OF_BRANCH,
                                     t->scale, t->steps + t->n_procs};
    static const char *const names[N_TABLES] = {"account", "teller", "branch", "history"};

    t->n_tables = N_TABLES;
    for (unsigned k = 0; k < N_TABLES; k++)
        t->tables[k] =
            (struct bench_tpc_table){names[k], k == HISTORY ? 50 : 100, rows[k], rows[k]};
}

static bool
load(const struct bench_tpc *t, unsigned table, uint64_t id, void *row)
{
    memset(row, ' ', t->tables[table].row_bytes);
    bench_tpc_set_number(row, 0, 0);
    (void)id;
    return table != HISTORY;
}

static int64_t
amount_of(const struct bench_tpc *t, uint64_t i)
{
    return (int64_t)bench_tpc_draw(t, i, 0, 2 * AMOUNT_MAX + 1) - AMOUNT_MAX;
}

static int
body(const struct bench_tpc_open *o, void *arg)
{
    const struct bench_tpc *t = o->tpc;
    uint64_t i = *(const uint64_t *)arg;
    uint64_t account = bench_tpc_draw(t, i, 1, t->tables[ACCOUNT].rows);
    uint64_t teller = bench_tpc_draw(t, i, 2, t->tables[TELLER].rows);
    unsigned char row[BENCH_TPC_ROW_MAX] = {0};
    int64_t amount = amount_of(t, i);
    int rc = bench_tpc_add(o, ACCOUNT, account, amount, NULL);

    rc = rc != 0 ? rc : bench_tpc_add(o, TELLER, teller, amount, NULL);
    rc =
        rc != 0 ? rc : bench_tpc_add(o, BRANCH, teller / TELLERS_OF_BRANCH, amount, NULL);
    if (rc != 0)
        return rc;
    bench_tpc_set_number(row, 0, amount);
    bench_tpc_set_number(row, 1, (int64_t)account);
    bench_tpc_set_number(row, 2, (int64_t)teller);
    return bench_tpc_put(o, HISTORY, bench_tpc_own_row(t, i), row);
}

static int
check(const struct bench_tpc_open *o, void *arg)
{
    const struct bench_tpc *t = o->tpc;
    int64_t want = 0, sum;
    uint64_t n;

    (void)arg;
    for (uint64_t i = 0; i < t->steps; i++)
        want += amount_of(t, i);
    for (unsigned table = 0; table < N_TABLES; table++) {
        uint64_t rows = table == HISTORY ? t->steps : t->tables[table].rows;
        int rc = bench_tpc_sum(o, table, 0, &sum, &n);

        if (rc != 0)
            return rc;
        if (sum != want || n != rows) {
            (void)bench_fail("%s: table %s: %llu rows with %lld; %llu with %lld are "
                             "wanted",
                             o->system->name, t->tables[table].name,
                             (unsigned long long)n, (long long)sum,
                             (unsigned long long)rows, (long long)want);
            return EBADMSG;
        }
    }
    return 0;
}

const struct bench_tpc_work bench_tpc_b = {
    .name = "tpcb",
    .what = "an amount for an account, its teller and branch; a row of history",
    .set_up = set_up,
    .load = load,
    .body = body,
    .check = check,
};
