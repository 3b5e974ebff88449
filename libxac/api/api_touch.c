/* SPDX-License-Identifier: MIT */
/*
 * api_touch.c -- accesses that are announced one by one: see xac_touch.h.
 */
#include <config.h>

#include <errno.h>

#include <xac_touch.h>

#include "api/api.h"
#include "base/lock.h"
#include "txn/ctx.h"
#include "txn/team.h"
#include "txn/touched.h"
#include "view/fault.h"
#include "view/view.h"

/* view_at -- the view of an open transaction of the thread, or NULL. */
static struct xac_view *
view_at(const uint8_t *at)
{
    struct xac_view *v = NULL;

    for (struct xac_ctx *ctx = xac_ctx_opened; ctx != NULL && v == NULL;
         ctx = ctx->next_open)
        v = xac_view_at(ctx, at);
    return v;
}

/* announce -- length bytes of a view. */
static void
announce(struct xac_view *v, const uint8_t *at, size_t length, bool is_write)
{
    struct xac_ctx *ctx = v->ctx;
    uint64_t last = xac_area_page_no(&v->area, at + length - 1);
    int rc;

    xac_assert(length > 0);
    xac_assert(ctx->depth > 0);
    if (xac_unlikely(xac_half_done_any()))
        xac_fault_stop(v, at, is_write, "by a signal handler, in the middle of xend()",
                       "a signal handler must not touch a segment (xac.h, rule 5)");
    if (is_write && (ctx->is_query || ctx->query_depth > 0))
        xac_fault_stop(v, at, is_write, "inside a query",
                       "xbeginQuery() promises not to write; use xbegin()");
    rc = xac_api_hint(ctx, v, xac_area_page_no(&v->area, at), last + 1, is_write);
    if (rc != 0)
        xac_fault_unserved(v, at, is_write, rc);
}

/* announce_for -- the same of a view of a transaction that the thread has joined: its team is locked. */
static void
announce_for(struct xac_view *v, const uint8_t *at, size_t length, bool is_write)
{
    int rc = xac_api_hint_locked(v->ctx, at, length, is_write);

    if (rc == XAC_EINQUERY)
        xac_fault_stop(v, at, is_write, "inside a query",
                       "xbeginQuery() promises not to write; use xbegin()");
    if (rc != 0)
        xac_fault_unserved(v, at, is_write, rc);
}

/* gap -- bytes from an address in no view to the next view of an open transaction. */
static size_t
gap(const uint8_t *at)
{
    size_t least = xac_team_mine() != NULL ? xac_api_team_gap(at) : SIZE_MAX;

    xac_assert(view_at(at) == NULL);
    for (const struct xac_ctx *ctx = xac_ctx_opened; ctx != NULL; ctx = ctx->next_open) {
        for (const struct xac_view *v = ctx->views; v != NULL; v = v->next) {
            if (v->area.base > at && (size_t)(v->area.base - at) < least)
                least = (size_t)(v->area.base - at);
        }
    }
    return least;
}

/* touch -- a range, which may begin and end anywhere: view by view, and what lies between.  It ends
   where addresses end.  Numbers, for a pointer must not go so far. */
static void
touch(uintptr_t at, size_t length, bool is_write)
{
    int saved_errno = errno;

    if (length > UINTPTR_MAX - at)
        length = UINTPTR_MAX - at;
    while (length > 0 && (xac_ctx_opened != NULL || xac_team_mine() != NULL)) {
        const uint8_t *addr = (const uint8_t *)at;
        struct xac_view *own = view_at(addr);
        sigset_t signals;
        struct xac_view *v = own != NULL ? own : xac_api_team_view(addr, &signals);
        size_t n = v != NULL ? (size_t)(v->area.base + v->area.length - addr)
                             : XAC_TOUCH_UNIT - at % XAC_TOUCH_UNIT;

        if (v == NULL && n < length)
            n = gap(addr);
        n = n < length ? n : length;
        if (own != NULL) {
            announce(own, addr, n, is_write);
        } else if (v != NULL) {
            announce_for(v, addr, n, is_write);
            xac_api_team_done(v, &signals);
        }
        xac_touched_note(addr, n, is_write);
        at += n;
        length -= n;
    }
    errno = saved_errno;
}

void
xac_touch_load(const void *addr, size_t length)
{
    touch((uintptr_t)addr, length, false);
}

void
xac_touch_store(const void *addr, size_t length)
{
    touch((uintptr_t)addr, length, true);
}

int
xac_touch_is_segment(const void *addr)
{
    struct xac_view *v = view_at((const uint8_t *)addr);
    sigset_t signals;

    if (v != NULL)
        return true;
    v = xac_api_team_view(addr, &signals);
    if (v != NULL)
        xac_api_team_done(v, &signals);
    return v != NULL;
}
