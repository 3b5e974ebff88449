/* SPDX-License-Identifier: MIT */
/*
 * backup_files.c -- copying mapped files: see backup_files.h.
 *
 * A file is read in pieces of XAC_PAGELIST_ENTRIES pages, one block of xac.pages.  Which pages have
 * changed since the base is found in one of three ways, the first that can be trusted:
 *
 *   log      The control region is still the one that was there at the base, so this is the same
 *            log, nothing of it was cut, and the file has its id.  Since the base nobody has
 *            unmapped it, so nothing but checkpoints has written it.  The pages that the log
 *            names are read, no others.
 *   sums     The environment keeps checksums of pages.  A page with the checksum that the base has for it
 *            is the same; others, and those of which nothing is known, are read.
 *   compare  All pages are read, and compared with the checksums of the base.
 *
 * Each way gives what a full backup would have read at this moment, up to pages of which the log that
 * is copied later has a full image.
 */
#include <config.h>

#include "backup/backup_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "backup/backup_job.h"
#include "backup/pagelist.h"
#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/identity.h"
#include "base/stored.h"
#include "base/sys.h"
#include "checkpoint/pagesums.h"
#include "shared/env_state.h"
#include "shared/registry.h"

#define ENTRIES XAC_PAGELIST_ENTRIES

/* The work on one file. */
struct work {
    struct xac_backup_job *job;
    struct xac_manifest_file *f; /* the last one of the manifest                      */
    const char *path;
    int in;
    int out;  /* its copy; -1: an increment has none                                  */
    int sums; /* its checksums; -1: none                                              */
    enum xac_backup_way way;
    uint64_t pages, base_pages;
    uint64_t data_from, data_end; /* what lies between is no hole                      */
    uint64_t zeros_sum;
    struct xac_pagelist list, base;
    uint64_t entry[ENTRIES], was[ENTRIES];
    bool is_wanted[ENTRIES]; /* to be read                                            */
};

/* make_copy -- the file for a copy of the one that is open. */
static int
make_copy(struct work *w)
{
    const char *name;
    int fd = -1;
    int rc = xac_stored_parent(w->job->dirfd, w->f->copy, &fd, &name);
    if (rc == 0)
        rc = xac_newfile_make(fd, name, &w->f->owner, &w->out);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: create", w->job->dir, w->f->copy);
}

/* ---- Which way -------------------------------------------------------------------- */

/* open_sums -- checksums that the environment keeps of the file; without them w->sums stays -1. */
static int
open_sums(struct work *w, const struct xac_identity *who)
{
    struct xac_env *env = w->job->env;
    struct xac_pagesums_head *h = (struct xac_pagesums_head *)malloc(sizeof *h);
    struct xac_identity of;
    char name[32];
    size_t got = 0;
    int rc = 0;

    if (h == NULL)
        return xac_err(ENOMEM, "backup");
    xac_pagesums_name(name, who->inode);
    w->sums = xac_sys.openat(env->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (w->sums < 0 && errno != ENOENT)
        rc = xac_err(errno, "%s: open", name);
    if (w->sums >= 0) {
        rc = xac_read_full(w->sums, h, sizeof *h, 0, &got);
        if (rc != 0)
            (void)xac_err(rc, "%s: read", name);
        of = xac_pagesums_who(h);
        if (rc != 0 || got != sizeof *h
            || !xac_pagesums_head_valid(h, (const uint8_t *)env->ctl->identity,
                                        (uint32_t)env->page_size)
            || !xac_identity_is_same(&of, who)) {
            (void)xac_sys.close(w->sums);
            w->sums = -1;
        }
    }
    free(h);
    return rc;
}

/* log_speaks -- does the log tell of all changes of the file since the base?  *whyp if not. */
static bool
log_speaks(const struct work *w, const struct xac_manifest_file *was, const char **whyp)
{
    const struct xac_manifest_file *f = w->f;
    uint64_t idle;

    if (!w->job->changed.is_known) {
        *whyp = w->job->changed.why;
        return false;
    }
    *whyp = "it is another file than then, or nobody maps it, or nobody did then";
    if (f->id == 0 || f->id != was->id || f->length < was->length
        || !xac_identity_is_same(&f->who, &was->who))
        return false;
    xac_registry_enter(w->job->env);
    idle = xac_file_at(w->job->env, f->id)->idle_lsn;
    xac_registry_exit(w->job->env);
    *whyp = "somebody has unmapped it since, so that others may have written it";
    return idle < was->held_lsn;
}

/* choose_way -- see the head of this file. */
static int
choose_way(struct work *w)
{
    struct xac_backup_job *job = w->job;
    const struct xac_manifest_file *was = NULL;
    struct xac_backup_report *rep = &job->rep;
    const char *why = "the base does not have it";
    int rc = 0;

    w->base = (struct xac_pagelist){.fd = -1};
    if (job->base.dirfd < 0)
        return 0;
    was = xac_manifest_find(&job->base.m, w->path);
    w->way = XAC_WAY_COMPARE;
    if (was != NULL && !was->is_missing) {
        w->base = (struct xac_pagelist){.fd = job->base.pagesfd,
                                        .first = was->list_block,
                                        .end = xac_manifest_blocks(&job->base.m, was)};
        w->base_pages = xac_manifest_pages(&job->base.m, was);
        if (log_speaks(w, was, &why))
            w->way = XAC_WAY_LOG;
        else
            rc = open_sums(w, &w->f->who);
        if (w->sums >= 0)
            w->way = XAC_WAY_SUMS;
    }
    rep->files_by[w->way]++;
    if (w->way != XAC_WAY_LOG && rep->why[0] == '\0')
        (void)snprintf(rep->why, sizeof rep->why, "%s: %s", w->path, why);
    return rc;
}

/* ---- Pages ------------------------------------------------------------------------ */

/* is_data -- is a part of [at, end) no hole?  Where the file system cannot say, all is data. */
static bool
is_data(struct work *w, uint64_t at, uint64_t end)
{
    off_t data, hole;

    xac_assert(at < end);
    if (at >= w->data_end && end > w->data_from) {
        data = lseek(w->in, (off_t)at, SEEK_DATA);
        hole = data >= 0 ? lseek(w->in, data, SEEK_HOLE) : -1;
        w->data_from = data >= 0 ? (uint64_t)data : errno == ENXIO ? UINT64_MAX : at;
        w->data_end = hole >= 0 ? (uint64_t)hole : UINT64_MAX;
    }
    return end > w->data_from;
}

/* want_by_sums -- pages that have the base's checksum are not wanted. */
static int
want_by_sums(struct work *w, uint64_t first, size_t n)
{
    struct xac_pagesum e[ENTRIES];
    size_t got;
    int rc = xac_read_full(w->sums, e, n * sizeof e[0],
                           sizeof(struct xac_pagesums_head) + first * sizeof e[0], &got);

    if (rc != 0)
        return xac_err(rc, "%s: checksums of its pages", w->path);
    for (size_t i = 0; i < n; i++) {
        if (e[i].page != first + i || e[i].lsn == 0 || e[i].lsn > w->job->tail
            || e[i].check != xac_pagesum_check(&e[i]))
            w->is_wanted[i] = true;
        else
            w->is_wanted[i] =
                xac_pagelist_of_sum(e[i].checksum, w->zeros_sum) != w->was[i];
    }
    return 0;
}

/* want -- which of these pages are read; the others are as the base has them. */
static int
want(struct work *w, uint64_t first, size_t n, bool *anyp)
{
    const struct xac_changed *c = &w->job->changed;
    int rc = 0;

    if (w->way == XAC_WAY_SUMS)
        rc = want_by_sums(w, first, n);
    *anyp = false;
    for (size_t i = 0; i < n; i++) {
        if (w->way == XAC_WAY_LOG)
            w->is_wanted[i] =
                first + i >= w->base_pages || xac_changed_has(c, w->f->id, first + i, 1);
        else if (w->way != XAC_WAY_SUMS)
            w->is_wanted[i] = true;
        *anyp = *anyp || w->is_wanted[i];
    }
    return rc;
}

/* read_wanted -- these pages, and their entries. */
static int
read_wanted(struct work *w, uint64_t first, size_t n)
{
    struct xac_backup_job *job = w->job;
    size_t size = job->env->page_size;
    int rc = 0;

    for (size_t i = 0, run; rc == 0 && i < n; i += run) {
        size_t got;

        run = 1;
        if (!w->is_wanted[i])
            continue;
        while (i + run < n && w->is_wanted[i + run])
            run++;
        rc = xac_read_full(w->in, job->pages + i * size, run * size, (first + i) * size,
                           &got);
        for (size_t k = i; k < i + run; k++)
            w->entry[k] = xac_pagelist_entry(job->pages + k * size, size);
        job->rep.read_bytes += got;
    }
    return rc == 0 ? 0 : xac_err(rc, "backup: %s: read", w->path);
}

/* store -- pages that are neighbours, to the copy or behind those that have changed already. */
static int
store(struct work *w, uint64_t page, const uint8_t *bytes, size_t n)
{
    struct xac_backup_job *job = w->job;
    uint64_t size = job->env->page_size;
    uint64_t at = page * size, len = n * size;
    int fd = w->out, rc = 0;

    if (fd < 0) {
        fd = job->changedfd;
        at = job->m.head.n_changed * size;
    } else if (len > w->f->length - at) {
        len = w->f->length - at; /* the last page is shorter */
    }
    for (size_t i = 0; w->out < 0 && rc == 0 && i < n; i++)
        rc = xac_manifest_add_page(&job->m, page + i);
    if (rc == 0) {
        rc = xac_write_full(fd, bytes, (size_t)len, at);
        if (rc != 0)
            (void)xac_err(rc, "backup: %s to %s", w->path, job->dir);
    }
    job->rep.file_bytes += len;
    return rc;
}

/* store_changed -- all pages that the base does not have so; zeros need no bytes. */
static int
store_changed(struct work *w, uint64_t first, size_t n)
{
    size_t size = w->job->env->page_size;
    int rc = 0;

    for (size_t i = 0, run; rc == 0 && i < n; i += run) {
        run = 1;
        if (w->entry[i] == w->was[i] || w->entry[i] == 0)
            continue;
        while (i + run < n && w->entry[i + run] != w->was[i + run]
               && w->entry[i + run] != 0)
            run++;
        rc = store(w, first + i, w->job->pages + i * size, run);
    }
    return rc;
}

/* copy_piece -- one block of entries, and its pages. */
static int
copy_piece(struct work *w, uint64_t first)
{
    struct xac_backup_job *job = w->job;
    size_t size = job->env->page_size;
    size_t n = w->pages - first < ENTRIES ? (size_t)(w->pages - first) : ENTRIES;
    bool any = false;
    int rc = xac_pagelist_get(&w->base, w->was);

    if (rc != 0)
        return xac_err(rc, "%s/%s: read", job->base.dir, XAC_PAGES_NAME);
    memcpy(w->entry, w->was, sizeof w->entry);
    memset(w->entry + n, 0, (ENTRIES - n) * sizeof w->entry[0]);
    if (w->way == XAC_WAY_LOG && first + n <= w->base_pages
        && !xac_changed_has(&job->changed, w->f->id, first, n))
        any = false;
    else if (!is_data(w, first * size, (first + n) * size))
        memset(w->entry, 0, n * sizeof w->entry[0]);
    else
        rc = want(w, first, n, &any);
    if (rc == 0 && any)
        rc = read_wanted(w, first, n);
    if (rc == 0 && any)
        rc = store_changed(w, first, n);
    if (rc == 0 && (rc = xac_pagelist_put(&w->list, w->entry)) != 0)
        (void)xac_err(rc, "%s/%s: write", job->dir, XAC_PAGES_NAME);
    for (size_t i = 0; i < n; i++)
        job->seen += w->entry[i] != 0 ? size : 0;
    if (rc == 0 && job->copier.progress != NULL)
        job->copier.progress(job, job->copier.bytes);
    return rc;
}

/* check_base -- is the part of the base's checksums right that was read?  Read the rest. */
static int
check_base(struct work *w)
{
    struct xac_backup_base *b = &w->job->base;
    const struct xac_manifest_file *was = xac_manifest_find(&b->m, w->path);
    int rc = 0;

    if (w->base.fd < 0)
        return 0;
    while (rc == 0 && w->base.at < xac_manifest_blocks(&b->m, was))
        rc = xac_pagelist_get(&w->base, w->was);
    if (rc == 0 && w->base.check != was->list_check)
        return xac_err(XAC_EDAMAGED,
                       "%s/%s: offset %llu: checksum of the checksums of %s", b->dir,
                       XAC_PAGES_NAME,
                       (unsigned long long)(was->list_block * XAC_PAGELIST_BLOCK),
                       w->path);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: read", b->dir, XAC_PAGES_NAME);
}

/* copy_open -- a file that is open. */
static int
copy_open(struct work *w)
{
    struct xac_backup_job *job = w->job;
    struct stat st;
    int rc;

    if (xac_sys.fstat(w->in, &st) != 0)
        return xac_err(errno, "backup: %s: stat", w->path);
    if (!S_ISREG(st.st_mode))
        return xac_err(EINVAL, "backup: %s: no regular file", w->path);
    rc = xac_identity_of(w->in, &w->f->who);
    if (rc == 0)
        rc = xac_owner_of_file(w->in, &w->f->owner);
    w->f->length = (uint64_t)st.st_size;
    if (rc == 0)
        rc = choose_way(w);
    if (rc == 0 && job->changedfd < 0)
        rc = make_copy(w);
    if (rc == 0 && w->out >= 0 && xac_sys.ftruncate(w->out, st.st_size) != 0)
        rc = xac_err(errno, "backup: %s/%s: length", job->dir, w->f->copy);
    w->pages = xac_manifest_pages(&job->m, w->f);
    w->list = (struct xac_pagelist){.fd = job->pagesfd, .first = w->f->list_block};
    for (uint64_t page = 0; rc == 0 && page < w->pages; page += ENTRIES)
        rc = copy_piece(w, page);
    if (rc == 0)
        rc = check_base(w);
    w->f->list_check = w->list.check;
    if (rc == 0 && w->out >= 0 && xac_sys.fsync(w->out) != 0)
        rc = xac_err(errno, "backup: %s/%s: sync", job->dir, w->f->copy);
    return rc;
}

/* is_held -- does anybody map the file?  The end of the log then, too. */
static bool
is_held(struct xac_env *env, uint32_t id, uint64_t *tailp)
{
    bool is;

    xac_registry_enter(env);
    is = xac_registry_is_held(env, id);
    /* Under the lock: a process that unmaps it later stores a position that is not smaller. */
    *tailp = atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed);
    xac_registry_exit(env);
    return is;
}

/* note_file -- a place in note and manifest. */
static struct xac_manifest_file *
note_file(struct xac_backup_job *job, const char *path)
{
    const char *last = strrchr(path, '/');
    struct xac_manifest_file *f = NULL;
    char *outside = NULL;

    if (path[0] == '/'
        && asprintf(&outside, XAC_OUTSIDE_NAME "/%zu-%s", job->note.n_files + 1, last + 1)
               < 0) {
        (void)xac_err(ENOMEM, "backup");
        return NULL;
    }
    if (xac_backup_note_add(&job->note, path, outside != NULL ? outside : path) == 0)
        f = xac_manifest_add(&job->m, path, outside != NULL ? outside : path);
    free(outside);
    return f;
}

int
xac_backup_mapped(struct xac_backup_job *job, const char *path, uint32_t id)
{
    struct work *w;
    uint64_t tail = 0;
    bool held;
    int rc;

    if (xac_backup_note_find(&job->note, path) != NULL)
        return 0;
    w = (struct work *)calloc(1, sizeof *w);
    if (w == NULL)
        return xac_err(ENOMEM, "backup");
    *w = (struct work){.job = job, .path = path, .in = -1, .out = -1, .sums = -1};
    held = id != 0 && is_held(job->env, id, &tail);
    w->zeros_sum = job->zeros_sum;
    w->f = note_file(job, path);
    if (w->f == NULL) {
        free(w);
        return strchr(path, '\n') != NULL ? EINVAL : ENOMEM;
    }
    w->f->id = held ? id : 0;
    w->f->held_lsn = held ? tail : 0;
    /* Recovery may make a file that is missing. */
    rc = job->changedfd < 0
             ? xac_backup_dir_parents(job->dirfd, job->dir, job->env->dirfd, w->f->copy)
             : 0;
    if (rc == 0)
        rc = xac_stored_open(job->env->dirfd, path,
                             O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, &w->in);
    if (rc == ENOENT)
        rc = held ? xac_err(rc, "backup: %s: open", path) : 0;
    else if (rc == 0)
        rc = copy_open(w);
    w->f->is_missing = w->in < 0;
    job->rep.files += rc == 0;
    if (w->out >= 0)
        (void)xac_sys.close(w->out);
    if (w->sums >= 0)
        (void)xac_sys.close(w->sums);
    if (w->in >= 0)
        (void)xac_sys.close(w->in);
    free(w);
    return rc;
}
