/* SPDX-License-Identifier: MIT */
/*
 * redo_backup.c -- which files of a backup the log speaks of: see recover_redo.h, (7) to (9).
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "recovery/recover_redo.h"

/* is_late -- is what the log has there missing in the files of the backup? */
static bool
is_late(const struct xac_redo *r, uint64_t lsn)
{
    xac_assert(r->backup != NULL);
    return lsn >= r->backup_lsn;
}

/* is_there -- has the backup a file at that place? */
static bool
is_there(const struct xac_redo *r, const char *place)
{
    struct xac_identity is;

    return xac_identity_at(r->dirfd, place, &is) == 0;
}

/* find_before -- the last id before that one of the same file; NULL: none. */
static const struct xac_redo_file *
find_before(const struct xac_redo *r, const struct xac_redo_file *f)
{
    for (const struct xac_redo_file *g = f; g-- > r->file;) {
        if (g->path != NULL && xac_identity_is_same(&g->who, &f->who))
            return g;
    }
    return NULL;
}

/* Bytes of the last part of a path that the name of such a file has: with the rest no more than a name may have. */
#define LATER_BYTES 200

/*
 * place_by_name -- where the backup has, or gets, what the log calls so; NULL: out of memory.
 *
 * One that lies elsewhere gets a name of its own, for nothing outside of the backup may be touched: by its whole
 * path, so that each generation of the log, and an attempt that was killed, finds the same file.
 */
static char *
place_by_name(const struct xac_redo *r, const char *name)
{
    const char *copy = xac_backup_note_find(r->backup, name);
    char *place = NULL;

    xac_assert(name[0] != '\0');
    if (copy != NULL || name[0] != '/')
        return strdup(copy != NULL ? copy : name);
    if (asprintf(&place, XAC_LATER_PREFIX "%016" PRIx64 "-%.*s",
                 xac_xxh64(name, strlen(name)), LATER_BYTES, strrchr(name, '/') + 1)
        < 0)
        return NULL;
    return place;
}

/* is_other -- does the backup have another file at the place that this one has got by its name? */
static bool
is_other(const struct xac_redo *r, const struct xac_redo_file *f, const char *name)
{
    const struct xac_manifest_file *had;

    if (r->manifest != NULL) {
        had = xac_manifest_find(r->manifest, name);
        return had != NULL && !had->is_missing
               && !xac_identity_is_same(&had->who, &f->who);
    }
    for (const struct xac_redo_file *g = r->file; g < f; g++) {
        if (g->path != NULL
            && strcmp(g->path, f->path) == 0) /* the first that was there */
            return is_there(r, f->path) && !xac_identity_is_same(&g->who, &f->who);
    }
    return false;
}

/* move_here -- a file that the backup does not have is made where it is in the end; ret 0 or ENOMEM. */
static int
move_here(struct xac_redo *r, const struct xac_redo_file *f)
{
    for (struct xac_redo_file *g = r->file; g < f; g++) {
        if (g->path == NULL || !xac_identity_is_same(&g->who, &f->who))
            continue;
        free(g->path);
        g->path = strdup(f->path);
        if (g->path == NULL)
            return xac_err(ENOMEM, "table of files");
    }
    return 0;
}

/* stay_there -- a file stays where the backup has it, under its old name; ret 0 or ENOMEM. */
static int
stay_there(struct xac_redo_file *f, const struct xac_redo_file *before, const char *name)
{
    char *place = strdup(before->path);

    xac_assert(f->renamed == NULL);
    f->renamed = strdup(name);
    if (place == NULL || f->renamed == NULL) {
        free(place);
        return xac_err(ENOMEM, "table of files");
    }
    free(f->path);
    f->path = place;
    return 0;
}

int
xac_redo_place(struct xac_redo *r, struct xac_redo_file *f, const char *name)
{
    const struct xac_redo_file *before = NULL;
    bool is_moved = false;
    int rc = 0;

    free(f->path);
    free(f->renamed);
    f->renamed = NULL;
    f->is_moved = true;
    f->path = place_by_name(r, name);
    if (f->path == NULL)
        return xac_err(ENOMEM, "table of files");
    if (is_late(r, f->since))
        before = find_before(r, f);
    if (before != NULL && strcmp(before->path, f->path) != 0) {
        is_moved = !is_there(r, before->path);
        rc = is_moved ? move_here(r, f) : stay_there(f, before, name);
    }
    f->is_anew = before != NULL && !is_moved
                     ? before->is_anew
                     : is_late(r, f->since) && is_other(r, f, name);
    for (struct xac_redo_file *g = r->file; rc == 0 && g < f; g++) {
        if (g->path != NULL && strcmp(g->path, f->path) == 0)
            g->is_forgotten = !xac_identity_is_same(&g->who, &f->who);
    }
    return rc;
}

void
xac_redo_forget_in_backup(struct xac_redo *r, struct xac_redo_file *f, uint64_t lsn)
{
    bool is_kept = is_late(r, lsn) && !f->is_anew && is_there(r, f->path);

    xac_assert(f->is_gone);
    f->is_forgotten = !is_kept;
    for (struct xac_redo_file *g = r->file; !is_kept && is_late(r, lsn) && g < f; g++) {
        if (g->path != NULL && xac_identity_is_same(&g->who, &f->who))
            g->is_forgotten = true;
        else if (g->path != NULL && strcmp(g->path, f->path) == 0 && !g->is_anew)
            g->is_forgotten =
                !is_there(r, g->path); /* the one before has its place again */
    }
}

/* find_last -- the last id of the same file. */
static const struct xac_redo_file *
find_last(const struct xac_redo *r, const struct xac_redo_file *f)
{
    const struct xac_redo_file *last = f;

    xac_assert(f->path != NULL);
    for (const struct xac_redo_file *g = f + 1; g < r->file + r->n_files; g++) {
        if (g->path != NULL && xac_identity_is_same(&g->who, &f->who))
            last = g;
    }
    return last;
}

int
xac_redo_check_backup(const struct xac_redo *r, bool accept_replaced)
{
    for (size_t i = 0; r->backup != NULL && i < r->n_files; i++) {
        const struct xac_redo_file *f = &r->file[i];
        const struct xac_redo_file *last =
            f->is_anew || f->renamed != NULL ? find_last(r, f) : NULL;

        if (last == NULL || last->is_gone)
            continue;
        if (f->renamed != NULL && last->renamed != NULL)
            return xac_err(EINVAL,
                           "%s: has been called %s since the backup was made: roll it"
                           " forward to before that (xrecover --until %" PRIu64
                           "), or restore a later backup",
                           f->path, last->renamed, f->since);
        if (f->is_anew && !f->is_forgotten && !accept_replaced)
            return xac_err(
                XAC_EREPLACED,
                "%s: the backup has another file, which has been replaced since:"
                " roll it forward to before that (xrecover --until %" PRIu64
                "), restore a later backup, or have the new file begin empty"
                " (--accept-replaced)",
                f->path, f->since);
    }
    return 0;
}
