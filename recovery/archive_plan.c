/* SPDX-License-Identifier: MIT */
/*
 * archive_plan.c -- which objects lead to a moment; see archive_restore.h.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive_restore.h"
#include "base/annot.h"
#include "base/err.h"
#include "tool.h"

/* is_before -- is a backup whole before the moment? */
static bool
is_before(const struct archive_object *b, const struct archive_moment *until)
{
    if (until->lsn != 0)
        return b->end <= until->lsn;
    return until->time_ns == 0 || b->time_ns <= until->time_ns;
}

/* choose_backup -- the newest before the moment. */
static int
choose_backup(struct archive_plan *p, const struct archive *a, const char *src,
              const struct archive_moment *until)
{
    const struct archive_object *oldest = NULL;
    char words[40];

    for (size_t i = 0; i < a->n; i++) {
        const struct archive_object *o = &a->object[i];

        if (o->kind != ARCHIVE_BACKUP)
            continue;
        if (oldest == NULL)
            oldest = o;
        if (is_before(o, until))
            p->backup = o;
    }
    if (oldest == NULL)
        return xac_err_whole(ENOENT, "%s: there is no backup yet", src);
    if (p->backup == NULL)
        return xac_err_whole(ERANGE,
                             "%s: the oldest moment that can be restored is LSN %" PRIu64
                             ", %s",
                             src, oldest->end, tool_time_words(oldest->time_ns, words));
    return 0;
}

/* use -- an object. */
static void
use(struct archive_plan *p, const struct archive *a, size_t i)
{
    p->is_used[i] = true;
    p->bytes += a->object[i].sum.length;
}

/* goes_on -- is the piece of log the next one? */
static bool
goes_on(const struct archive_plan *p, const struct archive_object *o)
{
    if (o->generation == p->generation)
        return o->start <= p->end_lsn && o->end > p->end_lsn;
    return o->previous_generation == p->generation && o->previous_end == p->end_lsn;
}

/* is_behind -- does the log that is used go beyond the moment? */
static bool
is_behind(const struct archive_plan *p, const struct archive_moment *until)
{
    if (until->lsn != 0)
        return p->end_lsn > until->lsn;
    return until->time_ns != 0 && p->time_ns > until->time_ns;
}

/* use_log -- pieces, one behind the other, until the moment is behind. */
static void
use_log(struct archive_plan *p, const struct archive *a,
        const struct archive_moment *until)
{
    for (size_t i = 0; i < a->n && !is_behind(p, until); i++) {
        const struct archive_object *o = &a->object[i];

        if (o->kind != ARCHIVE_LOG || o->end <= p->end_lsn)
            continue;
        if (!goes_on(p, o)) {
            p->is_cut = true;
            break;
        }
        use(p, a, i);
        p->generation = o->generation;
        p->end_lsn = o->end;
        if (o->time_ns > p->time_ns)
            p->time_ns = o->time_ns;
    }
}

/* begin -- with the backup. */
static int
begin(struct archive_plan *p, const struct archive *a, const struct archive_moment *until)
{
    p->is_used = (bool *)calloc(a->n, sizeof *p->is_used);
    if (p->is_used == NULL)
        return xac_err(ENOMEM, "list of objects");
    p->generation = p->backup->generation;
    p->end_lsn = p->backup->end;
    p->time_ns = p->backup->time_ns;
    use_log(p, a, until);
    return 0;
}

/* use_rest -- the files of the backup, data files of the log, the last notes. */
static void
use_rest(struct archive_plan *p, const struct archive *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct archive_object *o = &a->object[i];
        bool wanted = o->kind == ARCHIVE_FILE && o->end == p->backup->end;

        if (o->kind == ARCHIVE_DATA)
            wanted = o->start >= p->backup->start && o->start < p->end_lsn;
        if (o->kind == ARCHIVE_NOTE) {
            wanted = true;
            for (size_t k = i + 1; k < a->n; k++)
                wanted = wanted
                         && (a->object[k].kind != ARCHIVE_NOTE
                             || strcmp(a->object[k].path, o->path) != 0);
        }
        if (wanted)
            use(p, a, i);
    }
}

int
archive_plan_from(struct archive_plan *p, const struct archive *a,
                  const struct archive_object *backup)
{
    static const struct archive_moment end;

    *p = (struct archive_plan){.backup = backup};
    return begin(p, a, &end);
}

int
archive_plan_make(struct archive_plan *p, const struct archive *a, const char *src,
                  const struct archive_moment *until)
{
    char words[40];
    int rc;

    *p = (struct archive_plan){.backup = NULL};
    rc = choose_backup(p, a, src, until);
    if (rc != 0)
        return rc;
    rc = begin(p, a, until);
    if (rc != 0)
        return rc;
    if (p->is_cut && (until->lsn != 0 || until->time_ns != 0) && !is_behind(p, until))
        return xac_err_whole(ERANGE,
                             "%s: log behind LSN %" PRIu64
                             ", %s, is missing: that moment "
                             "cannot be restored",
                             src, p->end_lsn, tool_time_words(p->time_ns, words));
    use_rest(p, a);
    return 0;
}

void
archive_plan_free(struct archive_plan *p)
{
    free(p->is_used);
    p->is_used = NULL;
}
