/* SPDX-License-Identifier: MIT */
/*
 * restore.c -- see restore.h.  The steps of a restore:
 *   (1) the chain is opened and checked; the directory is made, or is empty, and marked
 *   (2) the mapped files and xac.pages
 *   (3) the log of the last backup, which is read once more; xac.addresses
 *   (4) xac.backup, xac.manifest, then xac.master
 */
#include <config.h>

#include "backup/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "backup/changed.h"
#include "backup/restore_chain.h"
#include "base/annot.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/log_keep.h"
#include "log/log_name.h"
#include "log/recover_scan.h"

#define ENTRIES XAC_PAGELIST_ENTRIES

/* One restore, or one verification. */
struct restore {
    struct xac_chain chain;
    const char *dir; /* what is made; NULL: nothing, the chain is verified             */
    int dirfd;
    int pagesfd; /* xac.pages there                                                   */
    struct xac_owner owner;
    struct xac_copier copier;
    struct xac_backup_note note;
    struct xac_manifest m; /* of what is made                                         */
    const struct xac_backup_progress *progress;
    uint64_t done, total;
    xac_restore_fn damage; /* verification: whom to tell                              */
    void *damage_arg;
    struct xac_restore_report rep;
};

/* tell -- how far it is. */
static void
tell(struct restore *r, uint64_t bytes)
{
    r->done += bytes;
    if (r->total < r->done)
        r->total = r->done;
    if (r->progress != NULL)
        r->progress->fn(r->progress->arg, r->done, r->total);
}

/* add_total -- lengths of the files of a backup. */
static void
add_total(struct restore *r, const struct xac_manifest *m)
{
    for (size_t i = 0; i < m->n_files; i++)
        r->total += m->file[i].length;
}

/* ---- Mapped files ----------------------------------------------------------------- */

/* make_file -- empty, with its length. */
static int
make_file(struct restore *r, const struct xac_manifest_file *f, int *fdp)
{
    const char *name;
    int fd = -1;
    int rc = xac_stored_parent(r->dirfd, f->copy, &fd, &name);

    if (rc == 0)
        rc = xac_newfile_make(fd, name, &f->owner, fdp);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc == 0 && xac_sys.ftruncate(*fdp, (off_t)f->length) != 0)
        rc = errno;
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: create", r->dir, f->copy);
}

/* write_piece -- those pages that are no zeros; each has been compared. */
static int
write_piece(struct restore *r, const struct xac_chain_file *cf, int out, uint64_t first,
            size_t n)
{
    uint64_t size = r->m.head.page_size;
    int rc = 0;

    for (size_t i = 0, run; rc == 0 && i < n; i += run) {
        uint64_t at = (first + i) * size, len;

        run = 1;
        if (cf->entry[i] == 0)
            continue;
        while (i + run < n && cf->entry[i + run] != 0)
            run++;
        len = run * size;
        if (len > cf->f->length - at)
            len = cf->f->length - at; /* the last page is shorter */
        rc = xac_write_full(out, cf->pages + i * size, (size_t)len, at);
        r->rep.file_bytes += len;
    }
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: write", r->dir, cf->f->copy);
}

/* restore_pages -- all pages of a file that has been made.  Only what is right is written (1). */
static int
restore_pages(struct restore *r, struct xac_chain_file *cf, int out,
              struct xac_pagelist *list)
{
    uint64_t pages = xac_manifest_pages(&r->m, cf->f);
    int rc = 0;

    for (uint64_t first = 0; rc == 0 && first < pages; first += ENTRIES) {
        size_t n = pages - first < ENTRIES ? (size_t)(pages - first) : ENTRIES;

        rc = xac_chain_file_read(cf, first, n);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            if (!xac_chain_file_is_right(cf, i))
                rc = xac_chain_file_damage(cf, first, i);
        }
        if (rc == 0)
            rc = write_piece(r, cf, out, first, n);
        if (rc == 0 && (rc = xac_pagelist_put(list, cf->entry)) != 0)
            (void)xac_err(rc, "%s/%s: write", r->dir, XAC_PAGES_NAME);
        tell(r, n * (uint64_t)r->m.head.page_size);
    }
    return rc == 0 ? xac_chain_file_end(cf) : rc;
}

/* restore_file -- one file of the last backup, and its place in note and manifest. */
static int
restore_file(struct restore *r, const struct xac_manifest_file *f)
{
    struct xac_manifest_file *to;
    struct xac_chain_file cf;
    struct xac_pagelist list;
    int out = -1;
    int rc = xac_backup_note_add(&r->note, f->path, f->copy);

    if (rc == 0)
        rc = xac_backup_dir_parents(r->dirfd, r->dir, r->chain.link[0].dirfd, f->copy);
    if (rc != 0)
        return rc;
    to = xac_manifest_add(&r->m, f->path, f->copy);
    if (to == NULL)
        return ENOMEM;
    to->length = f->length;
    to->list_check = f->list_check;
    to->who = f->who;
    to->owner = f->owner;
    to->held_lsn = f->held_lsn;
    to->id = f->id;
    to->is_missing = f->is_missing;
    if (f->is_missing)
        return 0;
    list = (struct xac_pagelist){.fd = r->pagesfd, .first = to->list_block};
    rc = xac_chain_file_open(&cf, &r->chain, f);
    if (rc == 0)
        rc = make_file(r, f, &out);
    if (rc == 0)
        rc = restore_pages(r, &cf, out, &list);
    if (rc == 0 && xac_sys.fsync(out) != 0)
        rc = xac_err(errno, "%s/%s: sync", r->dir, f->copy);
    if (out >= 0)
        (void)xac_sys.close(out);
    xac_chain_file_close(&cf);
    r->rep.files += rc == 0;
    return rc;
}

/* restore_files -- step 2. */
static int
restore_files(struct restore *r)
{
    const struct xac_manifest *last = xac_chain_last(&r->chain);
    uint64_t blocks = 0;
    int rc = xac_newfile_make(r->dirfd, XAC_PAGES_NAME, &r->owner, &r->pagesfd);

    if (rc != 0)
        return xac_err(rc, "%s/%s: create", r->dir, XAC_PAGES_NAME);
    for (size_t i = 0; rc == 0 && i < last->n_files; i++) {
        rc = restore_file(r, &last->file[i]);
        blocks += xac_manifest_blocks(last, &last->file[i]);
    }
    if (rc == 0
        && (xac_sys.ftruncate(r->pagesfd, (off_t)(blocks * XAC_PAGELIST_BLOCK)) != 0
            || xac_sys.fsync(r->pagesfd) != 0))
        rc = xac_err(errno, "%s/%s: write", r->dir, XAC_PAGES_NAME);
    return rc;
}

/* ---- The log ---------------------------------------------------------------------- */

/* copy_one -- a file of the last backup under its name; one that is not there is no error. */
static int
copy_one(struct restore *r, const char *name)
{
    const struct xac_link *l = &r->chain.link[r->chain.n - 1];
    uint64_t before = r->copier.bytes;
    int rc = xac_backup_dir_copy(l->dirfd, name, r->dirfd, &r->owner, &r->copier);

    if (rc != 0)
        (void)xac_err(rc, "%s/%s to %s", l->dir, name, r->dir);
    r->rep.log_bytes += r->copier.bytes - before;
    return rc;
}

/* copy_log -- for xac_scan_names: segments and data files of the log. */
static int
copy_log(void *arg, const char *name)
{
    uint32_t generation;
    uint64_t number;

    if (!xac_log_segment_named(name, &number)
        && !xac_log_datafile_named(name, &generation, &number))
        return 0;
    return copy_one((struct restore *)arg, name);
}

/*
 * check_log -- are all blocks and data files of the log of a backup there and right?
 *
 * in   dir, dirfd  the backup, or what has been restored of it
 */
static int
check_log(const char *dir, int dirfd, const struct xac_manifest *m, uint64_t *bytesp)
{
    struct xac_changed c = {.is_check = true};
    int rc = xac_changed_read(&c, dirfd, &m->master, m->head.redo_lsn, m->head.end_lsn);

    *bytesp += c.read_bytes;
    if (rc == 0 && !c.is_known)
        rc = xac_err(XAC_EDAMAGED, "%s/%s", dir, c.why);
    xac_changed_free(&c);
    return rc;
}

/* restore_log -- step 3. */
static int
restore_log(struct restore *r)
{
    const struct xac_link *l = &r->chain.link[r->chain.n - 1];
    uint64_t bytes = 0;
    int rc = xac_scan_names(l->dirfd, "xac-", copy_log, r);

    if (rc == 0)
        rc = check_log(r->dir, r->dirfd, &l->m, &bytes);
    if (rc == 0)
        rc = copy_one(r, XAC_ADDRESSES_NAME);
    if (rc == 0 && xac_log_is_kept(l->dirfd))
        rc = xac_log_keep(r->dirfd, true, NULL);
    return rc;
}

/* ---- Restoring -------------------------------------------------------------------- */

/* start -- step 1, the directory. */
static int
start(struct restore *r)
{
    const struct xac_manifest *last = xac_chain_last(&r->chain);
    int rc;

    r->m.head = last->head;
    r->m.head.n_changed = 0;
    r->m.head.link = 0; /* (3) */
    r->m.head.base_lsn = 0;
    memset(r->m.head.base, 0, sizeof r->m.head.base);
    r->m.master = last->master;
    r->note.end_lsn = r->rep.end_lsn = last->head.end_lsn;
    r->note.time_ns = r->rep.time_ns = last->head.time_ns;
    add_total(r, last);
    r->copier.chunk = (uint8_t *)malloc(XAC_COPY_CHUNK);
    if (r->copier.chunk == NULL)
        return xac_err(ENOMEM, "restore");
    rc = xac_backup_dir_open(r->dir, &r->dirfd);
    if (rc == 0 && (rc = xac_owner_of_dir(r->dirfd, &r->owner)) != 0)
        (void)xac_err(rc, "%s", r->dir);
    return rc == 0 ? xac_manifest_begin(r->dirfd, &r->owner) : rc;
}

/* finish -- step 4. */
static int
finish(struct restore *r)
{
    int rc = xac_backup_dir_sync(r->dirfd, r->dir, &r->note);

    if (rc == 0)
        rc = xac_backup_note_write(r->dirfd, &r->note);
    if (rc == 0)
        rc = xac_manifest_write(&r->m, r->dirfd, &r->owner);
    if (rc == 0)
        rc = xac_manifest_unmark(r->dirfd);
    return rc == 0 ? xac_backup_dir_master(r->dirfd, r->dir, &r->owner, &r->m.master)
                   : rc;
}

/* close_all -- free what was taken. */
static void
close_all(struct restore *r, struct xac_restore_report *report)
{
    if (r->pagesfd >= 0)
        (void)xac_sys.close(r->pagesfd);
    if (r->dirfd >= 0)
        (void)xac_sys.close(r->dirfd);
    xac_chain_close(&r->chain);
    xac_backup_note_free(&r->note);
    xac_manifest_free(&r->m);
    free(r->copier.chunk);
    if (report != NULL)
        *report = r->rep;
}

int
xac_restore_run(const char *const *chain, size_t n, const char *dir,
                const struct xac_backup_progress *progress,
                struct xac_restore_report *report)
{
    struct restore r = {.dir = dir, .dirfd = -1, .pagesfd = -1, .progress = progress};
    int rc = xac_chain_open(&r.chain, chain, n, true);

    if (rc == 0)
        rc = start(&r);
    if (rc == 0)
        rc = restore_files(&r);
    if (rc == 0)
        rc = restore_log(&r);
    if (rc == 0)
        rc = finish(&r);
    close_all(&r, report);
    return rc;
}

/* ---- Verifying -------------------------------------------------------------------- */

/* damaged -- tell of what has been noted, and go on; ret 0, or what is no damage. */
static int
damaged(struct restore *r, int rc)
{
    if (rc != XAC_EDAMAGED)
        return rc;
    r->rep.damages++;
    r->damage(r->damage_arg, xac_err_text());
    return 0;
}

/*
 * verify_file -- each page of a file at the last backup of a chain that has been cut behind it.
 *
 * in   c         ends with the backup that is verified
 * in   is_alone  its base is not there: pages that it does not have cannot be compared
 */
static int
verify_file(struct restore *r, const struct xac_chain *c,
            const struct xac_manifest_file *f, bool is_alone)
{
    uint64_t pages = xac_manifest_pages(xac_chain_last(c), f);
    uint64_t size = xac_chain_last(c)->head.page_size;
    struct xac_chain_file cf;
    int rc = xac_chain_file_open(&cf, c, f);

    if (rc != 0) {
        xac_chain_file_close(&cf);
        return damaged(r, rc);
    }
    xac_chain_file_know(&cf);
    for (uint64_t first = 0; rc == 0 && first < pages; first += ENTRIES) {
        size_t n = pages - first < ENTRIES ? (size_t)(pages - first) : ENTRIES;

        rc = xac_chain_file_read(&cf, first, n);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            if (is_alone && cf.from[i] == c->n)
                continue;
            r->rep.file_bytes += cf.entry[i] != cf.was[i] ? size : 0;
            if (!xac_chain_file_is_right(&cf, i))
                rc = damaged(r, xac_chain_file_damage(&cf, first, i));
        }
        tell(r, n * size);
    }
    if (rc == 0)
        rc = damaged(r, xac_chain_file_end(&cf));
    xac_chain_file_close(&cf);
    return rc;
}

/* verify_link -- the state at the k-th backup, and its log. */
static int
verify_link(struct restore *r, size_t k)
{
    struct xac_chain upto = {.link = r->chain.link, .n = k + 1};
    const struct xac_link *l = &r->chain.link[k];
    bool is_alone = !xac_manifest_is_full(&r->chain.link[0].m);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < l->m.n_files; i++) {
        if (!l->m.file[i].is_missing)
            rc = verify_file(r, &upto, &l->m.file[i], is_alone);
        r->rep.files += rc == 0;
    }
    return rc == 0 ? damaged(r, check_log(l->dir, l->dirfd, &l->m, &r->rep.log_bytes))
                   : rc;
}

int
xac_restore_verify(const char *const *chain, size_t n, xac_restore_fn fn, void *arg,
                   const struct xac_backup_progress *progress,
                   struct xac_restore_report *report)
{
    struct restore r = {.dirfd = -1,
                        .pagesfd = -1,
                        .progress = progress,
                        .damage = fn,
                        .damage_arg = arg};
    int rc = xac_chain_open(&r.chain, chain, n, false);

    xac_assert(fn != NULL);
    for (size_t k = 0; rc == 0 && k < r.chain.n; k++)
        add_total(&r, &r.chain.link[k].m);
    for (size_t k = 0; rc == 0 && k < r.chain.n; k++) {
        rc = verify_link(&r, k);
        r.rep.end_lsn = r.chain.link[k].m.head.end_lsn;
        r.rep.time_ns = r.chain.link[k].m.head.time_ns;
    }
    if (rc == 0 && r.rep.damages > 0)
        rc = xac_err(XAC_EDAMAGED, "%" PRIu64 " damage%s", r.rep.damages,
                     r.rep.damages == 1 ? "" : "s");
    close_all(&r, report);
    return rc;
}
