/* SPDX-License-Identifier: MIT */
/*
 * fault_engine.c -- which engine a process uses: see fault.h.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/sys.h"
#include "fault/fault_signal.h"
#include "fault/fault_valgrind.h"
#include "shared/env_state.h"
#include "store/outofcore.h"
#include "view/fault.h"
#include "view/view.h"

static const struct xac_engine *const engines[] = {&xac_engine_uffd, &xac_engine_scan,
                                                   &xac_engine_sigsegv,
                                                   &xac_engine_thesis};

static const struct xac_engine *chosen = &xac_engine_sigsegv;
static int
    fell_back; /* errno value for which it is not the one that was wanted, or 0    */
static enum xac_scanning scanning = XAC_SCAN_NEVER;

/* named -- by XAC_ENGINE; NULL: there is none of that name. */
static const struct xac_engine *
named(const char *name)
{
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i];
    }
    return NULL;
}

int
xac_engine_start(void)
{
    const char *name = secure_getenv("XAC_ENGINE");
    bool is_free = name == NULL || *name == '\0';
    const struct xac_engine *wanted = is_free ? engines[0] : named(name);
    int rc;

    if (wanted == NULL)
        return xac_err(EINVAL, "XAC_ENGINE=%s: there are uffd, scan, sigsegv and thesis",
                       name);
    rc = xac_valgrind_check();
    if (rc != 0)
        return rc;
    fell_back = wanted->start();
    chosen = fell_back == 0 ? wanted : &xac_engine_sigsegv;
    scanning = chosen == &xac_engine_scan ? XAC_SCAN_ALWAYS
               : is_free                  ? XAC_SCAN_IF_CHEAPER
                                          : XAC_SCAN_NEVER;
    if (fell_back != 0 && wanted == &xac_engine_scan && xac_engine_uffd.start() == 0)
        chosen = &xac_engine_uffd;
    else if (fell_back != 0)
        rc = chosen->start();
    return rc == 0 ? 0 : xac_err(rc, "installing the fault handler");
}

enum xac_scanning
xac_engine_scanning(void)
{
    return scanning;
}

void
xac_engine_stop(void)
{
    chosen->stop();
}

void
xac_engine_forked(void)
{
    xac_signal_forked();
    chosen->forked();
}

int
xac_engine_kind(int *whyp)
{
    *whyp = fell_back;
    return chosen->kind;
}

/* ---- One view -------------------------------------------------------------------------- */

XAC_SIGSAFE int
xac_engine_discard(struct xac_view *view, uint64_t first, uint64_t n)
{
    return xac_sys.madvise(view->base + first * view->page_size, n * view->page_size,
                           xac_view_shares(view) ? MADV_REMOVE : MADV_DONTNEED)
                   == 0
               ? 0
               : errno;
}

XAC_SIGSAFE int
xac_batch_flush(struct xac_page_batch *b)
{
    size_t n = b->n;

    b->n = 0;
    return n > 0 ? b->view->ops->take_back(b->view, b->range, n) : 0;
}

XAC_SIGSAFE int
xac_batch_add(struct xac_page_batch *b, struct xac_view *v, uint64_t page_no)
{
    struct xac_page_range *last = b->n > 0 ? &b->range[b->n - 1] : NULL;
    int rc = 0;

    if (last != NULL && b->view == v && last->first + last->n == page_no) {
        last->n++;
        return 0;
    }
    if (b->n == XAC_BATCH_MAX || b->view != v)
        rc = xac_batch_flush(b);
    b->view = v;
    b->range[b->n++] = (struct xac_page_range){.first = page_no, .n = 1};
    return rc;
}

int
xac_engine_attach(struct xac_view *v)
{
    int rc;

    v->ops = chosen;
    rc = v->ops->attach(v);
    if (rc == 0 || v->ops == &xac_engine_sigsegv || xac_outofcore_is_on(v->env))
        return rc;
    fell_back = rc;
    v->ops = &xac_engine_sigsegv;
    rc = xac_view_map_file(v, 0, v->n_pages);
    return rc == 0 ? v->ops->attach(v) : rc;
}

int
xac_engine_fall_back(struct xac_view *v)
{
    int rc;

    if (xac_outofcore_is_on(v->env)) /* the file's pages must not be shown */
        return ENOTSUP;
    rc = v->ops->leave != NULL ? v->ops->leave(v) : 0;

    if (rc == 0)
        v->ops = &xac_engine_sigsegv;
    return rc;
}

int
xac_engine_moved(struct xac_view *v)
{
    int rc = v->ops->moved(v);

    return rc == 0 || v->ops->leave == NULL ? rc : xac_engine_fall_back(v);
}

int
xac_engine_rejoin(struct xac_view *v)
{
    int rc = v->ops->rejoin(v);

    if (rc == 0 || v->ops->leave == NULL)
        return rc;
    fell_back = rc;
    return xac_engine_fall_back(v);
}
