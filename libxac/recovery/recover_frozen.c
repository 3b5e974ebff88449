/* SPDX-License-Identifier: MIT */
/*
 * recover_frozen.c -- redoing onto copies of the files: see recover_redo.h.
 */
#include <config.h>

#include <errno.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "recovery/recover_redo.h"

/* verdict_on -- may that file be what the log speaks of?  ret 0, XAC_ECOPY, XAC_EREPLACED. */
static int
verdict_on(const struct xac_redo *r, const struct xac_redo_file *f,
           const struct xac_identity *is)
{
    bool is_outside = f->path[0] == '/';

    xac_assert(f->path != NULL);
    xac_assert(!f->is_forgotten);
    if (r->is_copy && is_outside)
        return r->takes_outside ? 0 : XAC_ECOPY;
    return f->is_moved || r->is_copy || xac_identity_is_same(is, &f->who) ? 0
                                                                          : XAC_EREPLACED;
}

int
xac_redo_check_copies(struct xac_redo *r)
{
    xac_assert(r->frozen != NULL);
    for (size_t i = 0; i < r->n_files; i++) {
        struct xac_frozen_file *copy = xac_frozen_find(r->frozen, r->file[i].path);

        xac_assert(copy != NULL); /* taken when its path was noted */
        if (copy->error == 0 && !r->file[i].is_forgotten)
            copy->error = verdict_on(r, &r->file[i], &copy->who);
    }
    return r->frozen->has_grown ? EAGAIN : 0;
}

int
xac_redo_open_copy(const struct xac_redo *r, struct xac_redo_file *f)
{
    xac_assert(f->fd < 0);
    xac_assert(r->frozen != NULL || f->is_forgotten);
    if (r->frozen == NULL)
        f->fd = xac_sys.openat(r->dirfd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    else if (f->is_forgotten)
        f->fd = xac_frozen_nameless();
    else
        f->fd = xac_sys.dup_above(xac_frozen_find(r->frozen, f->path)->fd, 0);
    return f->fd >= 0 ? 0 : xac_err(errno, "%s: a copy without a name", f->path);
}

uint64_t
xac_redo_files_needed(const struct xac_redo *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->n_files; i++)
        n += xac_redo_is_wanted(&r->file[i]);
    xac_assert(n <= r->n_files);
    return n;
}
