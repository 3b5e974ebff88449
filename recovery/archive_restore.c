/* SPDX-License-Identifier: MIT */
/*
 * archive_restore.c -- see archive_restore.h.  The steps:
 *   (1) the directory is made, or is empty, or has what an attempt has left, which goes; it is marked
 *   (2) the files of the backup, but for the master record; data files; notes
 *   (3) log, into segments
 *   (4) all names are synced; the master record
 *   (5) recovery up to the moment; the mark goes
 */
#include <config.h>

#include "archive_restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "base/annot.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "env/region_clear.h"
#include "log/log_name.h"
#include "log/log_put.h"
#include "log/manifest.h"
#include "log/recover_scan.h"
#include "recovery/recover.h"
#include "ship/ship_copy.h"

/* What is being brought. */
#define FETCHED "xac.fetched"

/* The mark, until it is whole. */
#define MARK_NEW XAC_UNFINISHED_NAME "-new"

/* The mark says who has made it. */
static const char mark_text[] = "xrestore has not finished; run it again\n";

struct restore {
    struct archive_store *store;
    const struct archive *a;
    const struct archive_plan *plan;
    const struct archive_restore_options *opt;
    int dirfd;
    int gatefd;
    struct xac_owner owner;
    uint64_t done;
};

/* ---- The directory ---------------------------------------------------------------- */

/* is_ours -- has the directory our mark? */
static int
is_ours(const struct restore *r, bool *oursp)
{
    char text[sizeof mark_text] = "";
    int fd = xac_sys.openat(r->dirfd, XAC_UNFINISHED_NAME,
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    size_t got = 0;
    int rc = fd < 0 ? errno : xac_read_full(fd, text, sizeof text - 1, 0, &got);

    if (fd >= 0)
        (void)xac_sys.close(fd);
    *oursp = rc == 0 && strcmp(text, mark_text) == 0;
    return rc == ENOENT ? 0 : rc;
}

/* not_empty -- for xac_scan_names. */
static int
not_empty(void *arg, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0
        || strcmp(name, XAC_LOCK_NAME) == 0 || strcmp(name, "lost+found") == 0
        || strcmp(name, MARK_NEW) == 0)
        return 0;
    return xac_err_whole(EEXIST, "%s: is not empty, it holds %s", (const char *)arg,
                         name);
}

/* remove_left -- for xac_scan_names: all but the mark and the lock. */
static int
remove_left(void *arg, const char *name)
{
    const struct restore *r = (const struct restore *)arg;

    if (strcmp(name, XAC_UNFINISHED_NAME) == 0 || strcmp(name, XAC_LOCK_NAME) == 0
        || strcmp(name, "lost+found") == 0)
        return 0;
    return xac_copy_remove(r->dirfd, name);
}

/* mark -- the directory is ours from now on (3). */
static int
mark(const struct restore *r)
{
    struct xac_newfile f = {.dirfd = r->dirfd,
                            .made = MARK_NEW,
                            .name = XAC_UNFINISHED_NAME,
                            .owner = &r->owner,
                            .is_synced = true};
    int rc = xac_newfile_replace(&f, mark_text, sizeof mark_text - 1, NULL);

    return rc == 0 ? 0 : xac_err(rc, "%s/%s: make", r->opt->dir, XAC_UNFINISHED_NAME);
}

/* enter -- step 1. */
static int
enter(struct restore *r)
{
    const char *dir = r->opt->dir;
    char words[512];
    bool ours = false;
    int rc;

    if (xac_sys.mkdirat(AT_FDCWD, dir, 0777) != 0 && errno != EEXIST)
        return xac_err(errno, "%s: make", dir);
    r->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (r->dirfd < 0)
        return xac_err(errno, "%s", dir);
    (void)snprintf(words, sizeof words, "%s", dir);
    rc = is_ours(r, &ours);
    if (rc == 0 && !ours)
        rc = xac_scan_names(r->dirfd, "", not_empty, words);
    if (rc == 0 && (rc = xac_owner_of_dir(r->dirfd, &r->owner)) != 0)
        (void)xac_err(rc, "%s", dir);
    if (rc == 0)
        rc = xac_gate_open(r->dirfd, dir, &r->gatefd);
    if (rc == 0 && ours)
        rc = xac_scan_names(r->dirfd, "", remove_left, r);
    else if (rc == 0)
        rc = mark(r);
    return rc;
}

/* ---- Objects ---------------------------------------------------------------------- */

/* wrong -- an object is not what the manifest says. */
static int
wrong(const struct restore *r, const struct archive_object *o, const char *why)
{
    return xac_err_whole(XAC_EDAMAGED, "%s: object %s %s", r->store->dest, o->name, why);
}

/* fetch -- an object to the file FETCHED, which is open at *fdp then (1). */
static int
fetch(struct restore *r, const struct archive_object *o, int *fdp)
{
    struct archive_sum sum;
    int fd = -1, rc = xac_newfile_remake(r->dirfd, FETCHED, &r->owner, &fd);

    if (rc != 0)
        return xac_err(rc, "%s/" FETCHED ": create", r->opt->dir);
    rc = archive_store_get(r->store, o->name, fd);
    if (rc == ENOENT)
        rc = wrong(r, o, "is missing");
    if (rc == 0 && (rc = archive_sum_of(fd, &sum)) != 0)
        (void)xac_err(rc, "%s/" FETCHED, r->opt->dir);
    if (rc == 0 && sum.length != o->sum.length)
        rc = wrong(r, o, "has another length");
    else if (rc == 0 && !archive_sum_is_same(&sum, &o->sum))
        rc = wrong(r, o, "has other bytes");
    if (rc != 0) {
        xac_close_fd(&fd);
        return rc;
    }
    r->done += o->sum.length;
    if (r->opt->progress != NULL)
        r->opt->progress(r->opt->progress_arg, r->done, r->plan->bytes);
    *fdp = fd;
    return 0;
}

/* place -- what has been fetched is a file of the environment. */
static int
place(struct restore *r, const struct archive_object *o, const char *path)
{
    const char *name;
    int fd = -1, at = -1, rc;

    if (!xac_stored_is_inside(path))
        return wrong(r, o, "has a path that no backup has");
    rc = fetch(r, o, &fd);
    if (rc == 0 && xac_sys.fsync(fd) != 0)
        rc = xac_err(errno, "%s/" FETCHED ": sync", r->opt->dir);
    xac_close_fd(&fd);
    if (rc == 0)
        rc = xac_backup_dir_parents(r->dirfd, r->opt->dir, r->dirfd, path);
    if (rc == 0)
        rc = xac_stored_parent(r->dirfd, path, &at, &name);
    if (rc == 0 && xac_sys.renameat(r->dirfd, FETCHED, at, name) != 0)
        rc = xac_err(errno, "%s/%s", r->opt->dir, path);
    xac_close_fd(&at);
    return rc;
}

/* place_files -- step 2; is_master: only the master record, which is step 4. */
static int
place_files(struct restore *r, bool is_master)
{
    char name[XAC_LOG_NAME_MAX];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->a->n; i++) {
        const struct archive_object *o = &r->a->object[i];
        const char *path = o->path;

        if (!r->plan->is_used[i] || o->kind == ARCHIVE_LOG)
            continue;
        if (o->kind == ARCHIVE_DATA) {
            xac_log_datafile_name(name, o->generation, o->serial);
            path = name;
        } else if (o->kind == ARCHIVE_NOTE && strcmp(path, XAC_ADDRESSES_NAME) != 0) {
            continue; /* the environment begins a history of its own */
        }
        if ((strcmp(path, XAC_MASTER_NAME) == 0) == is_master)
            rc = place(r, o, path);
    }
    return rc;
}

/* ---- Log -------------------------------------------------------------------------- */

/* place_log -- step 3. */
static int
place_log(struct restore *r)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->a->n; i++) {
        const struct archive_object *o = &r->a->object[i];
        struct xac_log_piece piece = {.identity = r->a->identity,
                                      .page_size = r->a->page_size,
                                      .segment_bytes = o->segment_bytes,
                                      .start = o->start,
                                      .end = o->end,
                                      .fd = -1};

        if (!r->plan->is_used[i] || o->kind != ARCHIVE_LOG)
            continue;
        if (o->sum.length != o->end - o->start)
            rc = wrong(r, o, "has a length that is not that of its log");
        if (rc == 0)
            rc = fetch(r, o, &piece.fd);
        if (rc == 0)
            rc = xac_log_put(r->dirfd, &r->owner, &piece);
        xac_close_fd(&piece.fd);
    }
    return rc;
}

/* ---- The whole -------------------------------------------------------------------- */

/* settle -- step 4. */
static int
settle(struct restore *r)
{
    struct xac_backup_note note;
    int rc;

    if (xac_sys.unlinkat(r->dirfd, FETCHED, 0) != 0 && errno != ENOENT)
        return xac_err(errno, "%s/" FETCHED, r->opt->dir);
    rc = xac_backup_note_read(r->dirfd, &note);
    if (rc == ENOENT)
        rc = xac_err_whole(XAC_EDAMAGED, "%s: the backup has no %s", r->store->dest,
                           XAC_BACKUP_NAME);
    if (rc == 0)
        rc = xac_backup_dir_sync(r->dirfd, r->opt->dir, &note);
    xac_backup_note_free(&note);
    if (rc == 0)
        rc = place_files(r, true);
    return rc == 0 ? xac_sync_dir(r->dirfd) : rc;
}

/* recover -- step 5. */
static int
recover(struct restore *r, struct xac_recover_report *report)
{
    struct xac_recover_options o = {.forward = true,
                                    .until_lsn = r->opt->until.lsn,
                                    .until_ns = r->opt->until.time_ns,
                                    .is_restore = true};
    int rc = xac_recover_dir(r->dirfd, &o, report, NULL);

    if (rc == 0) {
        xac_region_clear(r->dirfd, r->gatefd);
        rc = xac_manifest_unmark(r->dirfd);
    }
    if (rc == 0 && (rc = xac_sync_dir(r->dirfd)) != 0)
        (void)xac_err(rc, "%s", r->opt->dir);
    return rc;
}

int
archive_restore(struct archive_store *s, const struct archive *a,
                const struct archive_plan *p,
                const struct archive_restore_options *options,
                struct xac_recover_report *report)
{
    struct restore r = {
        .store = s, .a = a, .plan = p, .opt = options, .dirfd = -1, .gatefd = -1};
    int rc = enter(&r);

    if (rc == 0)
        rc = place_files(&r, false);
    if (rc == 0)
        rc = place_log(&r);
    if (rc == 0)
        rc = settle(&r);
    if (rc == 0)
        rc = recover(&r, report);
    xac_close_fd(&r.gatefd);
    xac_close_fd(&r.dirfd);
    return rc;
}
