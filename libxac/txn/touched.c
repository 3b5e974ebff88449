/* SPDX-License-Identifier: MIT */
/*
 * touched.c -- see touched.h.
 */
#include <config.h>

#include "txn/touched.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/tls.h"
#include "shared/env_state.h"

#define FIRST (UINT64_C(1) << XAC_TOUCH_NUMBER)

XAC_TLS struct xac_touched *xac_touched_now;

struct xac_touched xac_touched_none = {.store_number = FIRST, .load_number = FIRST};

_Atomic bool xac_touched_is_used;

/* loads_matter -- shall one of the thread's transactions record what it reads? */
static bool
loads_matter(const struct xac_ctx *opened)
{
    if (xac_team_mine() != NULL)
        return true;
    for (const struct xac_ctx *ctx = opened; ctx != NULL; ctx = ctx->next_open) {
        if (ctx->alone_epoch == 0)
            return true;
    }
    return false;
}

/* close_table -- the thread has no transaction any more. */
static void
close_table(struct xac_touched *t)
{
    if (t == &xac_touched_none) {
        xac_touched_now = NULL;
    } else if (t != NULL) {
        t->store_number = 0;
        t->load_number = 0;
        xac_assert(t->number % FIRST == 0);
    }
    xac_assert(xac_touched_now != &xac_touched_none); /* invariant (1) */
}

/* table_get -- the thread's table, made if there is memory for it. */
static struct xac_touched *
table_get(void)
{
    struct xac_touched *t = xac_touched_now;

    if (t != NULL && t != &xac_touched_none)
        return t;
    t = (struct xac_touched *)calloc(1, sizeof *t);
    return t != NULL ? t : &xac_touched_none;
}

void
xac_touched_renew_table(const struct xac_ctx *opened)
{
    struct xac_touched *t;

    if (opened == NULL && xac_team_mine() == NULL) {
        close_table(xac_touched_now);
        return;
    }
    t = table_get();
    xac_touched_now = t;
    if (t == &xac_touched_none)
        return;
    t->number += FIRST;
    if (t->number == 0) {
        memset(t, 0, sizeof *t);
        t->number = FIRST;
    }
    t->store_number = t->number;
    t->load_number = loads_matter(opened) ? t->number : 0;
    xac_assert(t->store_number % FIRST == 0);
    xac_assert(t->store_number != 0);
    xac_assert(t->load_number == 0 || t->load_number == t->store_number);
}

void
xac_touched_ended(void)
{
    struct xac_touched *t = xac_touched_now;

    xac_assert(t != &xac_touched_none);
    xac_assert(t == NULL || t->store_number == 0); /* invariant (1) */
    xac_touched_now = NULL;
    free(t);
}

void
xac_touched_note(const void *addr, size_t length, bool is_write)
{
    struct xac_touched *t = xac_touched_now;
    uint64_t unit = (uintptr_t)addr / XAC_TOUCH_UNIT;
    uint64_t last = ((uintptr_t)addr + length - 1) / XAC_TOUCH_UNIT;

    xac_assert(length > 0);
    xac_assert(t != NULL); /* invariant (1) */
    if (t == &xac_touched_none) {
        atomic_store_explicit(&xac_touched_is_used, true, memory_order_relaxed);
        return;
    }
    if (last - unit >= XAC_TOUCH_SLOTS)
        unit = last - (XAC_TOUCH_SLOTS - 1);
    xac_assert(last - unit < XAC_TOUCH_SLOTS);
    for (; unit <= last; unit++)
        (is_write ? t->store : t->load)[unit % XAC_TOUCH_SLOTS] = unit | t->store_number;
}
