/* SPDX-License-Identifier: MIT */
/*
 * swizzle_tpc.c -- transactions like those of TPC-B and TPC-C, as page work: the rows that they
 * read, change, insert and delete, without isolation between them (space.h has no transactions),
 * and a commit that hands the log to the system.
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROW_MAX 512u

static void
key_of(uint64_t id, unsigned char *key)
{
    tree_key_u64(id, key);
}

/* load -- n rows of a tree, in order. */
static int
load(struct swz_thread *th, unsigned tree, uint32_t row, uint64_t n)
{
    unsigned char key[8], value[ROW_MAX] = {1};
    int rc = swz_tree_create(th, tree, 8, row);

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        key_of(i, key);
        rc = swz_insert(th, tree, key, value, TREE_PUT);
    }
    return rc;
}

static void
add_one(void *arg, void *value)
{
    uint64_t n;

    (void)arg;
    memcpy(&n, value, sizeof n);
    n++;
    memcpy(value, &n, sizeof n);
}

static int
change(struct swzb_worker *w, unsigned tree, uint64_t id)
{
    unsigned char key[8];

    key_of(id, key);
    return swz_update(w->th, tree, key, add_one, NULL);
}

static int
look(struct swzb_worker *w, unsigned tree, uint64_t id)
{
    unsigned char key[8], value[ROW_MAX];
    int rc;

    key_of(id, key);
    rc = swz_search(w->th, tree, key, value);
    return rc == ENOENT ? 0 : rc;
}

/* add -- a row that may be there from an earlier run. */
static int
add(struct swzb_worker *w, unsigned tree, uint64_t id)
{
    unsigned char key[8], value[ROW_MAX] = {2};

    key_of(id, key);
    return swz_insert(w->th, tree, key, value, TREE_PUT);
}

/* ---- TPC-B --------------------------------------------------------------------------- */

enum {
    B_ACCOUNT,
    B_TELLER,
    B_BRANCH,
    B_HISTORY
};

#define ACCOUNTS_OF_BRANCH 100000u

int
swzb_tpcb_load(struct swz_space *space, struct swzb_tpcb *b)
{
    uint64_t branches = 1 + b->n_accounts / ACCOUNTS_OF_BRANCH;
    struct swz_thread *th;
    int rc = swz_join(space, &th);

    if (rc != 0)
        return rc;
    rc = load(th, B_ACCOUNT, 100, b->n_accounts);
    rc = rc != 0 ? rc : load(th, B_TELLER, 100, 10 * branches);
    rc = rc != 0 ? rc : load(th, B_BRANCH, 100, branches);
    rc = rc != 0 ? rc : load(th, B_HISTORY, 50, 0);
    swz_leave(th);
    return rc;
}

int
swzb_tpcb_op(struct swzb_worker *w)
{
    struct swzb_tpcb *b = w->arg;
    uint64_t branches = 1 + b->n_accounts / ACCOUNTS_OF_BRANCH;
    uint64_t teller = swzb_next(&w->seed) % (10 * branches);
    int rc = change(w, B_ACCOUNT, swzb_next(&w->seed) % b->n_accounts);

    rc = rc != 0 ? rc : change(w, B_TELLER, teller);
    rc = rc != 0 ? rc : change(w, B_BRANCH, teller / 10);
    rc = rc != 0 ? rc
                 : add(w, B_HISTORY,
                       atomic_fetch_add_explicit(&b->n_history, 1, memory_order_relaxed));
    return rc != 0 ? rc : swz_commit(w->th);
}

/* ---- TPC-C --------------------------------------------------------------------------- */

enum {
    C_WAREHOUSE,
    C_DISTRICT,
    C_CUSTOMER,
    C_STOCK,
    C_ITEM,
    C_ORDER,
    C_LINE,
    C_NEW_ORDER,
    C_HISTORY
};

#define ORDER_SPAN (UINT64_C(1) << 32) /* orders of a district, at most */
#define LINES_MAX  16u

uint32_t
swzb_tpcc_size(struct swzb_tpcc *c, uint32_t n_warehouses, uint64_t scale)
{
    c->n_warehouses = n_warehouses;
    c->n_items = (uint32_t)(100000 * scale / 100);
    c->n_customers = (uint32_t)(3000 * scale / 100) + 1;
    /* Leaves of stock, customers and items; the rest is little. */
    return n_warehouses * (c->n_items / 12 + SWZB_DISTRICTS * c->n_customers / 7)
           + c->n_items / 40 + 64;
}

int
swzb_tpcc_load(struct swz_space *space, struct swzb_tpcc *c)
{
    uint64_t districts = (uint64_t)c->n_warehouses * SWZB_DISTRICTS;
    struct swz_thread *th;
    int rc = swz_join(space, &th);

    if (rc != 0)
        return rc;
    rc = load(th, C_WAREHOUSE, 90, c->n_warehouses);
    rc = rc != 0 ? rc : load(th, C_DISTRICT, 96, districts);
    rc = rc != 0 ? rc : load(th, C_CUSTOMER, 512, districts * c->n_customers);
    rc = rc != 0 ? rc : load(th, C_STOCK, 304, (uint64_t)c->n_warehouses * c->n_items);
    rc = rc != 0 ? rc : load(th, C_ITEM, 80, c->n_items);
    rc = rc != 0 ? rc : load(th, C_ORDER, 32, 0);
    rc = rc != 0 ? rc : load(th, C_LINE, 56, 0);
    rc = rc != 0 ? rc : load(th, C_NEW_ORDER, 8, 0);
    rc = rc != 0 ? rc : load(th, C_HISTORY, 48, 0);
    swz_leave(th);
    return rc;
}

/* nurand -- TPC-C's uneven numbers, 0 .. n-1. */
static uint64_t
nurand(struct swzb_worker *w, uint64_t a, uint64_t n)
{
    uint64_t x = swzb_next(&w->seed) % (a + 1), y = swzb_next(&w->seed) % n;

    return ((x | y) + 123) % n;
}

static uint64_t
customer(struct swzb_worker *w, uint64_t district)
{
    struct swzb_tpcc *c = w->arg;

    return district * c->n_customers + nurand(w, 1023, c->n_customers);
}

static int
new_order(struct swzb_worker *w, uint32_t warehouse, uint32_t d)
{
    struct swzb_tpcc *c = w->arg;
    uint64_t district = (uint64_t)warehouse * SWZB_DISTRICTS + d;
    uint64_t order = district * ORDER_SPAN
                     + atomic_fetch_add_explicit(&c->next_order[warehouse][d], 1,
                                                 memory_order_relaxed);
    uint64_t n_lines = 5 + swzb_next(&w->seed) % 11;
    int rc = look(w, C_WAREHOUSE, warehouse);

    rc = rc != 0 ? rc : change(w, C_DISTRICT, district);
    rc = rc != 0 ? rc : look(w, C_CUSTOMER, customer(w, district));
    rc = rc != 0 ? rc : add(w, C_ORDER, order);
    rc = rc != 0 ? rc : add(w, C_NEW_ORDER, order);
    for (uint64_t i = 0; i < n_lines && rc == 0; i++) {
        uint64_t item = nurand(w, 8191, c->n_items);

        rc = look(w, C_ITEM, item);
        rc = rc != 0 ? rc : change(w, C_STOCK, (uint64_t)warehouse * c->n_items + item);
        rc = rc != 0 ? rc : add(w, C_LINE, order * LINES_MAX + i);
    }
    return rc;
}

static int
payment(struct swzb_worker *w, uint32_t warehouse, uint32_t d)
{
    struct swzb_tpcc *c = w->arg;
    uint64_t district = (uint64_t)warehouse * SWZB_DISTRICTS + d;
    int rc = change(w, C_WAREHOUSE, warehouse);

    rc = rc != 0 ? rc : change(w, C_DISTRICT, district);
    rc = rc != 0 ? rc : change(w, C_CUSTOMER, customer(w, district));
    return rc != 0
               ? rc
               : add(w, C_HISTORY,
                     atomic_fetch_add_explicit(&c->n_history, 1, memory_order_relaxed));
}

/* lines_look -- the lines of the last n orders of a district. */
static int
lines_look(struct swzb_worker *w, uint32_t warehouse, uint32_t d, uint64_t n)
{
    struct swzb_tpcc *c = w->arg;
    uint64_t district = (uint64_t)warehouse * SWZB_DISTRICTS + d;
    uint64_t last =
        atomic_load_explicit(&c->next_order[warehouse][d], memory_order_relaxed);
    int rc = 0;

    for (uint64_t i = 1; i <= n && i <= last && rc == 0; i++)
        for (uint64_t line = 0; line < 10 && rc == 0; line++)
            rc = look(w, C_LINE, (district * ORDER_SPAN + last - i) * LINES_MAX + line);
    return rc;
}

static int
delivery(struct swzb_worker *w, uint32_t warehouse)
{
    struct swzb_tpcc *c = w->arg;
    unsigned char key[8];
    int rc = 0;

    for (uint32_t d = 0; d < SWZB_DISTRICTS && rc == 0; d++) {
        uint64_t district = (uint64_t)warehouse * SWZB_DISTRICTS + d;
        uint64_t n =
            atomic_load_explicit(&c->next_delivery[warehouse][d], memory_order_relaxed);

        key_of(district * ORDER_SPAN + n, key);
        rc = swz_delete(w->th, C_NEW_ORDER, key);
        if (rc == ENOENT) { /* not ordered yet, or delivered by somebody else */
            rc = 0;
            continue;
        }
        atomic_fetch_add_explicit(&c->next_delivery[warehouse][d], 1,
                                  memory_order_relaxed);
        rc = rc != 0 ? rc : change(w, C_ORDER, district * ORDER_SPAN + n);
        rc = rc != 0 ? rc : change(w, C_CUSTOMER, customer(w, district));
    }
    return rc == ENOENT ? 0 : rc;
}

int
swzb_tpcc_op(struct swzb_worker *w)
{
    struct swzb_tpcc *c = w->arg;
    uint32_t warehouse = (uint32_t)(swzb_next(&w->seed) % c->n_warehouses);
    uint32_t d = (uint32_t)(swzb_next(&w->seed) % SWZB_DISTRICTS);
    uint64_t kind = swzb_next(&w->seed) % 100;
    int rc;

    if (kind < 45)
        rc = new_order(w, warehouse, d);
    else if (kind < 88)
        rc = payment(w, warehouse, d);
    else if (kind < 92)
        rc = lines_look(w, warehouse, d, 1); /* order-status */
    else if (kind < 96)
        rc = delivery(w, warehouse);
    else
        rc = lines_look(w, warehouse, d, 20); /* stock-level */
    return rc != 0 ? rc : swz_commit(w->th);
}
