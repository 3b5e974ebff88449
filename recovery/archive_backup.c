/* SPDX-License-Identifier: MIT */
/*
 * archive_backup.c -- full backups of an archiver: when, and which are kept; see archive_job.h.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive_job.h"
#include "backup/backup.h"
#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "ship/ship_copy.h"
#include "tool.h"

/* Log that brings a backup is no less than this: small environments need none often. */
#define LEAST_LOG (UINT64_C(64) << 20)

#define COPY "backup" /* in the stage                                                  */

/* ---- When ------------------------------------------------------------------------- */

/* last_backup -- NULL: there is none. */
static const struct archive_object *
last_backup(const struct archive *a)
{
    for (size_t i = a->n; i-- > 0;) {
        if (a->object[i].kind == ARCHIVE_BACKUP)
            return &a->object[i];
    }
    return NULL;
}

/* is_reached -- does the log that is archived go on behind a backup without a gap? */
static bool
is_reached(const struct archive *a, const struct archive_object *b)
{
    uint64_t end = b->end;
    bool is_whole = true;

    for (size_t i = 0; i < a->n; i++) {
        const struct archive_object *o = &a->object[i];

        if (o->kind == ARCHIVE_LOG && o->end > end && o->previous_generation == 0
            && o->start > end)
            is_whole = false;
    }
    return is_whole;
}

/* size_of -- bytes of the files of a backup. */
static uint64_t
size_of(const struct archive *a, const struct archive_object *b)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < a->n; i++) {
        if (a->object[i].kind == ARCHIVE_FILE && a->object[i].end == b->end)
            bytes += a->object[i].sum.length;
    }
    return bytes;
}

/* has_commits -- has anything been committed since a backup? */
static bool
has_commits(const struct archive *a, const struct archive_object *b)
{
    for (size_t i = a->n; i-- > 0;) {
        if (a->object[i].kind == ARCHIVE_LOG && a->object[i].time_ns > b->time_ns)
            return true;
    }
    return false;
}

bool
archive_backup_is_due(const struct archive_job *j)
{
    const struct archive_object *b = last_backup(&j->a);
    uint64_t most, now_ns = xac_clock_read(CLOCK_REALTIME);

    if (b == NULL || j->wants_backup || !is_reached(&j->a, b))
        return true;
    if (!has_commits(&j->a, b))
        return false;
    most = size_of(&j->a, b) / 2;
    if (j->since_backup >= (most > LEAST_LOG ? most : LEAST_LOG))
        return true;
    return j->opt->backup_every_ns != 0 && now_ns >= b->time_ns + j->opt->backup_every_ns;
}

/* ---- Which are kept ---------------------------------------------------------------- */

/* oldest_kept -- the newest backup that is older than the moments to be kept, or the oldest one there is. */
static const struct archive_object *
oldest_kept(const struct archive *a, uint64_t since_ns)
{
    const struct archive_object *kept = NULL;

    for (size_t i = 0; i < a->n; i++) {
        const struct archive_object *o = &a->object[i];

        if (o->kind == ARCHIVE_BACKUP && (kept == NULL || o->time_ns <= since_ns))
            kept = o;
    }
    return kept;
}

/* is_needed -- by the oldest backup that is kept, or behind it. */
static bool
is_needed(const struct archive_object *o, uint64_t redo, uint64_t end)
{
    switch (o->kind) {
    case ARCHIVE_LOG:
        return o->end > redo;
    case ARCHIVE_DATA:
        return o->start >= redo;
    case ARCHIVE_FILE:
    case ARCHIVE_BACKUP:
        return o->end >= end;
    default:
        return true;
    }
}

/* is_replaced -- is there a later note of the same file? */
static bool
is_replaced(const struct archive *a, size_t i)
{
    for (size_t k = i + 1; k < a->n; k++) {
        if (a->object[k].kind == ARCHIVE_NOTE
            && strcmp(a->object[k].path, a->object[i].path) == 0)
            return true;
    }
    return false;
}

/* drop_old -- from the list: objects that the next manifest does not name any more. */
static void
drop_old(struct archive_job *j)
{
    uint64_t now_ns = xac_clock_read(CLOCK_REALTIME), redo = 0, end = 0;
    uint64_t since_ns = now_ns > j->opt->keep_ns ? now_ns - j->opt->keep_ns : 0;
    const struct archive_object *oldest = oldest_kept(&j->a, since_ns);
    struct archive *a = &j->a;
    size_t n = 0;

    if (j->opt->keep_ns != 0 && oldest != NULL) {
        redo = oldest->start;
        end = oldest->end;
    }
    for (size_t i = 0; i < a->n; i++) {
        struct archive_object *o = &a->object[i];

        if (is_needed(o, redo, end) && (o->kind != ARCHIVE_NOTE || !is_replaced(a, i))) {
            a->object[n++] = *o;
        } else {
            free(o->name);
            free(o->path);
            o->name = o->path = NULL;
            j->wants_full = true;
        }
    }
    a->n = n;
    if (a->n_named > n)
        a->n_named = n; /* the next one is full and names all */
}

/* ---- Making one -------------------------------------------------------------------- */

/* What copy() is given. */
struct copy {
    struct archive_job *j;
    char *to;
    struct xac_backup_report rep;
};

/* copy -- as a participant. */
static int
copy(void *arg, struct xac_env *env)
{
    struct copy *c = (struct copy *)arg;
    struct progress shown = progress_start("files and log copied");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
    bool is_shown = !c->j->opt->quiet && progress_is_wanted();
    int rc = xac_backup_run(env, c->to, NULL, is_shown ? &progress : NULL, &c->rep);

    progress_end(&shown);
    return rc;
}

/* A directory of the backup, while its files are put. */
struct files {
    struct archive_job *j;
    int dirfd;
    const char
        *path; /* below the backup, with a slash at its end; "" the backup itself */
    const struct xac_backup_report *rep;
    uint64_t *countp; /* of files put                                                  */
};

static int put_file(void *arg, const char *name);

/* put_below -- the files of a directory in it. */
static int
put_below(const struct files *f, const char *name)
{
    struct files below = *f;
    char *path;
    int rc;

    if (asprintf(&path, "%s%s/", f->path, name) < 0)
        return xac_err(ENOMEM, "backup");
    below.path = path;
    below.dirfd = xac_sys.openat(f->dirfd, name,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    rc = below.dirfd < 0 ? xac_err(errno, "%s", path)
                         : xac_scan_names(below.dirfd, "", put_file, &below);
    if (below.dirfd >= 0)
        (void)xac_sys.close(below.dirfd);
    free(path);
    return rc;
}

/* put_file -- for xac_scan_names: move it to the place of the stage where objects are taken from. */
static int
put_file(void *arg, const char *name)
{
    struct files *f = (struct files *)arg;
    char rest[60], object[ARCHIVE_NAME_MAX], *path;
    struct archive_object o = {.kind = ARCHIVE_FILE, .end = f->rep->end_lsn};
    struct stat st;
    int rc;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (fstatat(f->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return xac_err(errno, "backup: %s%s", f->path, name);
    if (S_ISDIR(st.st_mode))
        return put_below(f, name);
    if (archive_is_stopped(f->j))
        return xac_err(EINTR, "backup");
    (void)snprintf(rest, sizeof rest, "%" PRIu64 ".%" PRIu64, f->rep->end_lsn,
                   (*f->countp)++);
    archive_object_name(f->j, object, "backup", rest);
    if (asprintf(&path, "%s%s", f->path, name) < 0)
        return xac_err(ENOMEM, "backup");
    o.name = object;
    o.path = path;
    rc = 0;
    if (xac_sys.renameat(f->dirfd, name, f->j->store.stagefd, "file") != 0)
        rc = xac_err(errno, "backup: %s", path);
    if (rc == 0)
        rc = archive_put(f->j, "file", &o);
    free(path);
    return rc;
}

/* put_files -- all of them, then the backup itself. */
static int
put_files(struct archive_job *j, const struct xac_backup_report *rep)
{
    uint64_t count = 0;
    struct files f = {.j = j, .path = "", .rep = rep, .countp = &count};
    struct xac_master_slot master;
    int rc;

    f.dirfd =
        xac_sys.openat(j->store.stagefd, COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (f.dirfd < 0)
        return xac_err(errno, "%s/" COPY, j->store.stage);
    rc = xac_master_read(f.dirfd, &master);
    if (rc == 0)
        rc = xac_scan_names(f.dirfd, "", put_file, &f);
    (void)xac_sys.close(f.dirfd);
    if (rc == 0
        && archive_add(&j->a,
                       &(struct archive_object){.kind = ARCHIVE_BACKUP,
                                                .generation = master.generation,
                                                .start = rep->redo_lsn,
                                                .end = rep->end_lsn,
                                                .segment_bytes = master.segment_bytes,
                                                .time_ns = rep->time_ns})
               == NULL)
        rc = ENOMEM;
    return rc;
}

/* forget_put -- an attempt has failed: the files that it has put are not named. */
static void
forget_put(struct archive *a, size_t n)
{
    while (a->n > n) {
        a->n--;
        free(a->object[a->n].name);
        free(a->object[a->n].path);
    }
}

int
archive_backup(struct archive_job *j)
{
    struct copy c = {.j = j};
    size_t n = j->a.n;
    int rc = xac_copy_remove(j->store.stagefd, COPY);

    xac_assert(j->a.n_named == j->a.n);
    if (rc == 0 && asprintf(&c.to, "%s/" COPY, j->store.stage) < 0)
        return xac_err(ENOMEM, "backup");
    if (rc == 0)
        rc = tool_take_part(j->opt->dir, NULL, "xBackup", copy, &c);
    free(c.to);
    if (rc == 0)
        rc = put_files(j, &c.rep);
    if (rc != 0) {
        forget_put(&j->a, n);
        return rc;
    }
    (void)xac_copy_remove(j->store.stagefd, COPY);
    drop_old(j);
    j->wants_full = true;
    rc = archive_name_all(j);
    if (rc != 0)
        return rc;
    j->since_backup = 0;
    j->wants_backup = false;
    j->rep->backups++;
    return 0;
}
