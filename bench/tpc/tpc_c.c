/* SPDX-License-Identifier: MIT */
/*
 * tpc_c.c -- the two frequent transactions of TPC-C: new-order and payment, 45 to 43.  One in a
 * hundred new orders has an item that there is not, and is rolled back.
 *
 * CHECK     Warehouses and their districts got the same payments, and all of them; the districts'
 *           next order numbers count the orders; orders and lines, lines and stock agree.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <errno.h>
#include <string.h>

#include "bench/kit/util.h"

/* Numbers of a row: 0 is what it is about, see each. */
enum {
    WAREHOUSE, /* payments                                                              */
    DISTRICT,  /* payments; next order                                                  */
    CUSTOMER,  /* balance                                                               */
    STOCK,     /* ordered so far                                                        */
    ITEM,      /* price                                                                 */
    ORDER,     /* lines; customer                                                       */
    NEW_ORDER, /* 1                                                                     */
    LINE,      /* quantity; item                                                        */
    HISTORY,   /* amount                                                                */
    N_TABLES
};

#define DISTRICTS       10u
#define CUSTOMERS       300u /* of a district                                            */
#define LINES_MAX       15u
#define AMOUNT_MAX      500000
#define NEW_ORDER_OF_88 45u
#define ROLLED_BACK_OF  100u
#define SKEW_CUSTOMER   1023u
#define SKEW_ITEM       8191u

/* What transaction i is. */
struct step {
    uint64_t i;
    uint64_t warehouse, district, customer;
    bool is_new_order, gives_up;
    unsigned n_lines;
    int64_t amount;
};

static void
set_up(struct bench_tpc *t)
{
    uint64_t districts = t->scale * DISTRICTS, steps = t->steps;
    /* Any district may get all orders. */
    const struct bench_tpc_table tables[N_TABLES] = {
        [WAREHOUSE] = {"warehouse", 90, t->scale, t->scale},
        [DISTRICT] = {"district", 96, districts, districts},
        [CUSTOMER] = {"customer", 512, districts * CUSTOMERS, districts * CUSTOMERS},
        [STOCK] = {"stock", 304, t->scale * t->size, t->scale * t->size},
        [ITEM] = {"item", 80, t->size, t->size},
        [ORDER] = {"orders", 32, districts * steps, steps},
        [NEW_ORDER] = {"new_order", 8, districts * steps, steps},
        [LINE] = {"line", 56, districts * steps * LINES_MAX, steps * LINES_MAX},
        [HISTORY] = {"history", 48, steps + t->n_procs, steps},
    };

    t->n_tables = N_TABLES;
    memcpy(t->tables, tables, sizeof tables);
}

static bool
load(const struct bench_tpc *t, unsigned table, uint64_t id, void *row)
{
    memset(row, ' ', t->tables[table].row_bytes);
    bench_tpc_set_number(row, 0, table == ITEM ? (int64_t)(100 + id % 9900) : 0);
    if (table == DISTRICT)
        bench_tpc_set_number(row, 1, 0);
    return table <= ITEM;
}

/* uneven -- TPC-C's uneven numbers, 0 .. n - 1. */
static uint64_t
uneven(const struct bench_tpc *t, uint64_t i, unsigned k, uint64_t a, uint64_t n)
{
    uint64_t x = bench_tpc_draw(t, i, k, a + 1), y = bench_tpc_draw(t, i, k + 1, n);

    return ((x | y) + 123) % n;
}

static struct step
step_of(const struct bench_tpc *t, uint64_t i)
{
    struct step s = {.i = i};

    s.warehouse = bench_tpc_draw(t, i, 0, t->scale);
    s.district = s.warehouse * DISTRICTS + bench_tpc_draw(t, i, 1, DISTRICTS);
    s.customer = s.district * CUSTOMERS + uneven(t, i, 2, SKEW_CUSTOMER, CUSTOMERS);
    s.is_new_order = bench_tpc_draw(t, i, 4, 88) < NEW_ORDER_OF_88;
    s.gives_up = s.is_new_order && bench_tpc_draw(t, i, 5, ROLLED_BACK_OF) == 0;
    s.n_lines = 5 + (unsigned)bench_tpc_draw(t, i, 6, LINES_MAX - 4);
    s.amount = 100 + (int64_t)bench_tpc_draw(t, i, 7, AMOUNT_MAX);
    return s;
}

/* line_of -- item and quantity of line k. */
static uint64_t
line_of(const struct bench_tpc *t, const struct step *s, unsigned k, int64_t *quantityp)
{
    *quantityp = 1 + (int64_t)bench_tpc_draw(t, s->i, 100 + 3 * k, 10);
    return uneven(t, s->i, 101 + 3 * k, SKEW_ITEM, t->size);
}

/* order_line -- line k of an order. */
static int
order_line(const struct bench_tpc_open *o, const struct step *s, uint64_t order,
           unsigned k)
{
    unsigned char row[BENCH_TPC_ROW_MAX] = {0};
    int64_t quantity;
    uint64_t item = line_of(o->tpc, s, k, &quantity);
    int rc = bench_tpc_get(o, ITEM, item, row);

    rc = rc != 0 ? rc
                 : bench_tpc_add(o, STOCK, s->warehouse * o->tpc->size + item, quantity,
                                 NULL);
    if (rc != 0)
        return rc;
    memset(row, 0, sizeof row);
    bench_tpc_set_number(row, 0, quantity);
    bench_tpc_set_number(row, 1, (int64_t)item);
    return bench_tpc_put(o, LINE, order * LINES_MAX + k, row);
}

static int
new_order(const struct bench_tpc_open *o, const struct step *s)
{
    unsigned char row[BENCH_TPC_ROW_MAX] = {0};
    uint64_t order;
    int rc = bench_tpc_get(o, WAREHOUSE, s->warehouse, row);

    rc = rc != 0 ? rc : o->system->get(o->handle, DISTRICT, s->district, row, true);
    if (rc != 0)
        return rc;
    order = s->district * o->tpc->steps + (uint64_t)bench_tpc_number(row, 1);
    bench_tpc_set_number(row, 1, bench_tpc_number(row, 1) + 1);
    rc = bench_tpc_put(o, DISTRICT, s->district, row);
    rc = rc != 0 ? rc : bench_tpc_get(o, CUSTOMER, s->customer, row);
    memset(row, 0, sizeof row);
    bench_tpc_set_number(row, 0, s->n_lines);
    bench_tpc_set_number(row, 1, (int64_t)s->customer);
    rc = rc != 0 ? rc : bench_tpc_put(o, ORDER, order, row);
    bench_tpc_set_number(row, 0, 1);
    rc = rc != 0 ? rc : bench_tpc_put(o, NEW_ORDER, order, row);
    for (unsigned k = 0; k < s->n_lines && rc == 0; k++)
        rc = order_line(o, s, order, k);
    return rc == 0 && s->gives_up ? BENCH_TPC_GIVE_UP : rc;
}

static int
payment(const struct bench_tpc_open *o, const struct step *s)
{
    unsigned char row[BENCH_TPC_ROW_MAX] = {0};
    int rc = bench_tpc_add(o, WAREHOUSE, s->warehouse, s->amount, NULL);

    rc = rc != 0 ? rc : bench_tpc_add(o, DISTRICT, s->district, s->amount, NULL);
    rc = rc != 0 ? rc : bench_tpc_add(o, CUSTOMER, s->customer, -s->amount, NULL);
    bench_tpc_set_number(row, 0, s->amount);
    return rc != 0 ? rc : bench_tpc_put(o, HISTORY, bench_tpc_own_row(o->tpc, s->i), row);
}

static int
body(const struct bench_tpc_open *o, void *arg)
{
    struct step s = step_of(o->tpc, *(const uint64_t *)arg);

    return s.is_new_order ? new_order(o, &s) : payment(o, &s);
}

/* One sum that is checked. */
struct wanted {
    unsigned table, number;
    int64_t sum;
    bool has_rows; /* it is known how many                                             */
    uint64_t rows;
};

/* all_wanted -- what all transactions leave. */
static unsigned
all_wanted(const struct bench_tpc *t, struct wanted *out)
{
    int64_t paid = 0, orders = 0, lines = 0, items = 0, payments = 0;

    for (uint64_t i = 0; i < t->steps; i++) {
        struct step s = step_of(t, i);
        int64_t quantity;

        if (!s.is_new_order) {
            paid += s.amount;
            payments++;
        }
        if (!s.is_new_order || s.gives_up)
            continue;
        orders++;
        lines += s.n_lines;
        for (unsigned k = 0; k < s.n_lines; k++) {
            (void)line_of(t, &s, k, &quantity);
            items += quantity;
        }
    }
    out[0] = (struct wanted){WAREHOUSE, 0, paid, true, t->scale};
    out[1] = (struct wanted){DISTRICT, 0, paid, true, t->scale * DISTRICTS};
    out[2] = (struct wanted){DISTRICT, 1, orders, true, t->scale * DISTRICTS};
    out[3] = (struct wanted){CUSTOMER, 0, -paid, false, 0};
    out[4] = (struct wanted){STOCK, 0, items, false, 0};
    out[5] = (struct wanted){ORDER, 0, lines, true, (uint64_t)orders};
    out[6] = (struct wanted){NEW_ORDER, 0, orders, true, (uint64_t)orders};
    out[7] = (struct wanted){LINE, 0, items, true, (uint64_t)lines};
    out[8] = (struct wanted){HISTORY, 0, paid, true, (uint64_t)payments};
    return 9;
}

static int
check(const struct bench_tpc_open *o, void *arg)
{
    struct wanted wanted[9];
    unsigned n = all_wanted(o->tpc, wanted);

    (void)arg;
    for (unsigned k = 0; k < n; k++) {
        const struct wanted *w = &wanted[k];
        int64_t sum;
        uint64_t rows;
        int rc = bench_tpc_sum(o, w->table, w->number, &sum, &rows);

        if (rc != 0)
            return rc;
        if (sum != w->sum || (w->has_rows && rows != w->rows)) {
            (void)bench_fail("%s: table %s: %llu rows, number %u adds up to %lld; "
                             "%lld is wanted",
                             o->system->name, o->tpc->tables[w->table].name,
                             (unsigned long long)rows, w->number, (long long)sum,
                             (long long)w->sum);
            return EBADMSG;
        }
    }
    return 0;
}

const struct bench_tpc_work bench_tpc_c = {
    .name = "tpcc",
    .what = "new orders of 5 to 15 lines, and payments, 45 to 43",
    .set_up = set_up,
    .load = load,
    .body = body,
    .check = check,
};
