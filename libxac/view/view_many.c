/* SPDX-License-Identifier: MIT */
/*
 * view_many.c -- many pages by one system call: ranges that are announced, and the pages
 * behind one of a sequence.  See view.h.
 */
#include <config.h>

#include <errno.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "txn/reader_limit.h"
#include "txn/team.h"
#include "view/view.h"

/* shows_file -- is a page absent, without a version at or below the parent? */
XAC_SIGSAFE static bool
shows_file(const struct xac_view *v, uint64_t page_no, uint64_t parent)
{
    struct xac_file *file = xac_file_at(v->env, v->file);
    const struct xac_page *page;
    uint64_t commit;

    xac_assert(page_no < v->area.n_pages);
    if (v->pages.at[page_no].state != XAC_PAGE_ABSENT)
        return false;
    page = xac_ptab_find(&v->env->shm, &file->root, v->area.first + page_no);
    return page == NULL || xac_version_find(v->env, page, parent, &commit) == 0;
}

/* file_run -- how many of the pages [first, end) in a row are like that? */
XAC_SIGSAFE static uint64_t
file_run(const struct xac_view *v, uint64_t first, uint64_t end, uint64_t parent)
{
    uint64_t p = first;

    xac_assert(end <= v->area.n_pages);
    while (p < end && shows_file(v, p, parent))
        p++;
    return p - first;
}

/* fill_run -- the first n of those pages, or of n as many as lie in one piece; they hold the
   file's bytes then.  ret 0 or errno. */
XAC_SIGSAFE static int
fill_run(struct xac_view *v, uint64_t first, uint64_t *n, bool is_write)
{
    const uint8_t *bytes;
    int rc;

    /* If it fails in the middle, what has been filled is dropped.  Another thread may have stored there. */
    if (is_write && xac_team_is_on(v->ctx))
        *n = 1;
    bytes = xac_view_file_run(v, first, n);
    rc = v->area.ops->fills->fill(&v->area, first, *n, bytes,
                                  is_write ? XAC_PROT_WRITE : XAC_PROT_READ);

    xac_assert(*n > 0);
    xac_assert(first + *n <= v->area.n_pages);
    for (uint64_t p = first; p < first + *n && rc == 0; p++)
        xac_view_gain(v, &v->pages.at[p]);
    return rc;
}

/* ---- Reading the file ------------------------------------------------------------------ */

/* Bytes that one call asks for: the kernel reads no more of a range than the device takes. */
#define ASK_BYTES ((uint64_t)128 << 10)

/* pages_ahead -- that may be asked for; 0: none, or that is the system's. */
XAC_SIGSAFE static uint64_t
pages_ahead(const struct xac_view *v)
{
    uint64_t bytes = v->env->options.read_ahead;

    return bytes == XAC_READ_AHEAD_SYSTEM ? 0 : bytes / v->area.page_size;
}

/* ask -- for n pages of the file, but for blank ones; a hint.  Behind the last page there are 0. */
XAC_SIGSAFE static void
ask(const struct xac_view *v, uint64_t first, uint64_t n)
{
    const uint8_t *at;
    uint64_t left;

    xac_assert(first + n <= v->area.n_pages);
    if (n == 0)
        return;
    at = xac_view_file_run(v, first, &n);
    left = n * v->area.page_size;
    xac_assert(n > 0);
    if (at != v->file_bytes + first * v->area.page_size)
        return;
    for (uint64_t bytes; left > 0; at += bytes, left -= bytes) {
        bytes = left < ASK_BYTES ? left : ASK_BYTES;
        (void)xac_sys.madvise((void *)(uintptr_t)at, bytes, MADV_WILLNEED);
    }
}

/* read_on -- a page of a sequence is going to be shown. */
XAC_SIGSAFE static void
read_on(struct xac_view *v, uint64_t page_no)
{
    uint64_t most = pages_ahead(v), n = XAC_READ_FIRST;

    xac_assert(page_no < v->area.n_pages);
    /* When they were asked for, no more than half as many were left of those before. */
    if (page_no < v->pages.asked && v->pages.asked - page_no <= v->pages.asked_n * 2) {
        if (v->pages.asked - page_no > v->pages.asked_n / 2)
            return;
        n = v->pages.asked_n * 2;
    } else {
        v->pages.asked = page_no;
    }
    n = n > most ? most : n;
    n = n > v->area.n_pages - v->pages.asked ? v->area.n_pages - v->pages.asked : n;
    ask(v, v->pages.asked, n);
    v->pages.asked += n;
    v->pages.asked_n = n;
    xac_assert(v->pages.asked <= v->area.n_pages);
}

/* ---- Announced ranges ------------------------------------------------------------------ */

/* unprotect_run -- pages from first on that are readable, at most up to end; ret how many,
   0 with errno. */
XAC_SIGSAFE static uint64_t
unprotect_run(struct xac_view *v, uint64_t first, uint64_t end)
{
    uint32_t state = v->pages.at[first].state;
    uint64_t p = first;

    xac_assert(first < end);
    xac_assert(end <= v->area.n_pages);
    while (p < end && v->pages.at[p].state == state)
        p++;
    if (state != XAC_PAGE_LOOSE) {
        int rc = state == XAC_PAGE_DIRTY /* behind a savepoint */
                     ? xac_view_open_again(v, first, p)
                     : v->area.ops->protect(&v->area, first, p - first, XAC_PROT_WRITE);

        if (rc != 0) {
            errno = rc;
            return 0;
        }
    }
    xac_assert(p > first);
    return p - first;
}

/* show_some -- pages from first on that are alike; ret how many, 0 with errno. */
XAC_SIGSAFE static uint64_t
show_some(struct xac_env *env, struct xac_view *v, uint64_t first, uint64_t end,
          uint64_t parent, bool is_write)
{
    struct xac_file *file = xac_file_at(env, v->file);
    uint64_t most = pages_ahead(v), n;
    int rc;

    xac_assert(first < end);
    if (most > 0 && end - first > most)
        end = first + most;
    if (v->pages.at[first].state != XAC_PAGE_ABSENT) {
        n = unprotect_run(v, first, end);
    } else {
        n = file_run(v, first, end, parent);
        if (most > 0 && n > 1)
            ask(v, first, n);
        rc = n > 0 ? fill_run(v, first, &n, is_write)
                   : xac_view_show(env, v, first,
                                   xac_ptab_find(&env->shm, &file->root,
                                                 v->area.first + first),
                                   parent, is_write);
        n = n > 0 ? n : 1;
        if (rc != 0) {
            errno = rc;
            return 0;
        }
    }
    for (uint64_t p = first; p < first + n; p++) {
        xac_view_note(v, p, is_write);
        if (is_write && xac_unlikely(v->ctx->save_epoch != 0))
            xac_view_first_store(v, p);
    }
    return n;
}

/* show_run -- step 5 for pages [first, end) of an engine that fills; ret how many
   of them have been shown. */
XAC_SIGSAFE static uint64_t
show_run(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v, uint64_t first,
         uint64_t end, bool is_write)
{
    uint64_t parent = xac_view_parent(env, ctx);
    uint64_t p = first, n = 1;

    xac_assert(first <= end);
    while (p < end && n > 0) {
        n = show_some(env, v, p, end, parent, is_write);
        p += n;
    }
    xac_assert(p <= end);
    return p - first;
}

XAC_SIGSAFE int
xac_view_access_run(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
                    uint64_t first, uint64_t n, bool is_write)
{
    bool may = n > 1 && v->aliases == NULL && !ctx->is_unrecorded && ctx->unit_shift == 0
               && ctx->outofcore == NULL; /* bounded: one by one */
    uint64_t done = 0;
    int rc = 0;

    xac_assert(n > 0);
    xac_assert(first + n <= v->area.n_pages);
    if (may && v->area.ops->maps != NULL && v->area.ops->maps->show == NULL
        && ctx->n_islands < ctx->islands_max) {
        if (xac_unit_give(env, ctx, v, first, first + n, is_write) == 0)
            done = n;
    } else if (may && v->area.ops->fills != NULL) {
        while (done < n && xac_view_register(env, ctx, v, first + done, is_write) != NULL)
            done++;
        done = show_run(env, ctx, v, first, first + done, is_write);
    }
    /* One by one, as traps do it: what is left, and says why it cannot be. */
    for (; done < n && rc == 0; done++)
        rc = xac_view_access(env, ctx, v, first + done, is_write);
    if (rc == 0 && ctx->is_query && xac_unlikely(xac_txn_is_cut(ctx->txn)))
        rc = xac_view_cut(ctx);
    return rc;
}

/* ---- Read-ahead ---------------------------------------------------------------------- */

/* is_legal -- may pages be shown that are not touched?  To be stored to as well: only if
   all stores are announced. */
XAC_SIGSAFE static bool
is_legal(const struct xac_view *v, bool is_write)
{
    if (v->area.ops->maps != NULL || v->aliases != NULL || v->ctx->is_unrecorded
        || v->ctx->outofcore != NULL)
        return false;
    if (is_write)
        return v->staying.is_alone && xac_env_checking(v->env) == XAC_CHECKING_TRUSTED;
    return v->staying.is_alone || v->ctx->is_query;
}

/* keep -- a page that has been filled ahead. */
XAC_SIGSAFE static void
keep(struct xac_view *v, uint64_t page_no, bool is_write)
{
    if (is_write)
        v->pages.at[page_no].state = XAC_PAGE_LOOSE;
    else
        xac_view_note(v, page_no, false);
}

/*
 * take_in -- a query that nothing outlasts has the pages in its set, for that is what is taken
 * back at its end.  ret how many of them are.
 */
XAC_SIGSAFE static uint64_t
take_in(struct xac_view *v, uint64_t first, uint64_t n)
{
    uint64_t k = 0;

    xac_assert(first + n <= v->area.n_pages);
    if (v->staying.is_alone || v->ctx->keeps)
        return n;
    while (k < n && xac_view_register(v->env, v->ctx, v, first + k, false) != NULL)
        k++;
    xac_assert(k <= n);
    return k;
}

/* is_blank -- has the file no bytes for a page yet? */
XAC_SIGSAFE static bool
is_blank(const struct xac_view *v, uint64_t page_no)
{
    xac_assert(page_no < v->area.n_pages);
    return v->area.first + page_no >= xac_file_blank_from(xac_file_at(v->env, v->file));
}

XAC_SIGSAFE bool
xac_ahead_fill(struct xac_view *v, uint64_t page_no, uint64_t parent, bool is_write)
{
    uint64_t n =
        v->pages.ahead_n < XAC_AHEAD_FIRST ? XAC_AHEAD_FIRST : v->pages.ahead_n * 2;
    uint64_t most = is_write && is_blank(v, page_no) ? XAC_AHEAD_GROWN : XAC_AHEAD_MAX;

    xac_assert(page_no < v->area.n_pages);
    if (pages_ahead(v) > 0)
        read_on(v, page_no);
    if (!is_legal(v, is_write))
        return false;
    n = n > most ? most : n;
    n = n > v->area.n_pages - page_no ? v->area.n_pages - page_no : n;
    n = file_run(v, page_no, page_no + n, parent);
    if (n > 1)
        n = 1 + take_in(v, page_no + 1, n - 1);
    if (n < 2 || fill_run(v, page_no, &n, is_write) != 0)
        return false;
    for (uint64_t p = page_no + 1; p < page_no + n; p++)
        keep(v, p, is_write);
    v->pages.ahead_next = page_no + n;
    v->pages.ahead_n = n;
    return true;
}
