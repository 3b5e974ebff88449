/* SPDX-License-Identifier: MIT */
/*
 * restore_chain.c -- see restore_chain.h.
 */
#include <config.h>

#include "backup/restore_chain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/stored.h"
#include "base/sys.h"

#define ENTRIES XAC_PAGELIST_ENTRIES

/* ---- The chain -------------------------------------------------------------------- */

/* link_open -- one backup. */
static int
link_open(struct xac_link *l, const char *dir)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    int rc;

    *l = (struct xac_link){.dir = dir, .pagesfd = -1, .changedfd = -1};
    l->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (l->dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = xac_manifest_read(&l->m, l->dirfd, dir);
    if (rc != 0)
        return rc;
    l->pagesfd = xac_sys.openat(l->dirfd, XAC_PAGES_NAME, flags, 0);
    if (l->pagesfd < 0)
        return xac_err(errno == ENOENT ? XAC_EDAMAGED : errno, "%s/%s: open", dir,
                       XAC_PAGES_NAME);
    if (xac_manifest_is_full(&l->m))
        return 0;
    l->changedfd = xac_sys.openat(l->dirfd, XAC_CHANGED_NAME, flags, 0);
    if (l->changedfd < 0)
        return xac_err(errno == ENOENT ? XAC_EDAMAGED : errno, "%s/%s: open", dir,
                       XAC_CHANGED_NAME);
    return 0;
}

/* is_id -- the same backup? */
static bool
is_id(const uint8_t a[16], const uint8_t b[16])
{
    return memcmp(a, b, 16) == 0;
}

/* not_next -- the k-th is not the increment of the one before: why. */
static int
not_next(const struct xac_chain *c, size_t k)
{
    const struct xac_link *l = &c->link[k], *before = &c->link[k - 1];

    if (xac_manifest_is_full(&l->m))
        return xac_err(
            EINVAL,
            "%s is a full backup: it stands first, and another full backup, %s,"
            " stands before it",
            l->dir, c->link[0].dir);
    for (size_t i = 0; i < c->n; i++) {
        if (i != k && is_id(l->m.head.base, c->link[i].m.head.id))
            return xac_err(EINVAL,
                           "wrong order: %s is the increment of %s, not of %s, behind"
                           " which it stands",
                           l->dir, c->link[i].dir, before->dir);
    }
    return xac_err(ENOENT,
                   "a backup is missing between %s (up to LSN %" PRIu64
                   ") and %s: the one up to LSN %" PRIu64
                   ", of which it is the increment",
                   before->dir, before->m.head.end_lsn, l->dir, l->m.head.base_lsn);
}

/* check_links -- is each the increment of the one before? */
static int
check_links(const struct xac_chain *c)
{
    const struct xac_manifest_head *first = &c->link[0].m.head;

    for (size_t k = 1; k < c->n; k++) {
        const struct xac_link *l = &c->link[k];

        if (memcmp(l->m.head.identity, first->identity, sizeof first->identity) != 0)
            return xac_err(XAC_EFOREIGN, "%s: the backup of another environment than %s",
                           l->dir, c->link[0].dir);
        if (xac_manifest_is_full(&l->m)
            || !is_id(l->m.head.base, c->link[k - 1].m.head.id))
            return not_next(c, k);
        if (l->m.head.page_size != first->page_size)
            return xac_err(XAC_EDAMAGED, "%s: pages of another size than those of %s",
                           l->dir, c->link[0].dir);
    }
    return 0;
}

int
xac_chain_open(struct xac_chain *c, const char *const *dir, size_t n, bool is_whole)
{
    int rc = 0;

    *c = (struct xac_chain){.n = 0};
    if (n == 0)
        return xac_err(EINVAL, "no backup was named");
    c->link = (struct xac_link *)calloc(n, sizeof c->link[0]);
    if (c->link == NULL)
        return xac_err(ENOMEM, "backups");
    while (rc == 0 && c->n < n) {
        rc = link_open(&c->link[c->n], dir[c->n]);
        c->n++;
    }
    if (rc == 0)
        rc = check_links(c);
    if (rc == 0 && is_whole && !xac_manifest_is_full(&c->link[0].m))
        return xac_err(
            ENOENT,
            "a backup is missing before %s: the one up to LSN %" PRIu64
            ", of which it is the increment; a chain begins with a full backup",
            c->link[0].dir, c->link[0].m.head.base_lsn);
    return rc;
}

void
xac_chain_close(struct xac_chain *c)
{
    for (size_t k = 0; k < c->n; k++) {
        struct xac_link *l = &c->link[k];
        int fds[] = {l->dirfd, l->pagesfd, l->changedfd};

        for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
            if (fds[i] >= 0)
                (void)xac_sys.close(fds[i]);
        }
        xac_manifest_free(&l->m);
    }
    free(c->link);
    *c = (struct xac_chain){.n = 0};
}

/* ---- A file ----------------------------------------------------------------------- */

/* open_copy -- the copy in a full backup. */
static int
open_copy(const struct xac_link *l, struct xac_chain_part *part)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct stat st;
    int rc = xac_stored_open(l->dirfd, part->f->copy, flags, &part->fd);

    if (rc == ENOENT)
        return xac_err(XAC_EDAMAGED, "%s/%s: missing", l->dir, part->f->copy);
    if (rc != 0)
        return rc;
    if (xac_sys.fstat(part->fd, &st) != 0)
        return xac_err(errno, "%s/%s: stat", l->dir, part->f->copy);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != part->f->length)
        return xac_err(XAC_EDAMAGED,
                       "%s/%s: %" PRIu64 " bytes long, and not the %" PRIu64
                       " that were copied",
                       l->dir, part->f->copy, (uint64_t)st.st_size, part->f->length);
    return 0;
}

int
xac_chain_file_open(struct xac_chain_file *cf, const struct xac_chain *c,
                    const struct xac_manifest_file *f)
{
    size_t bytes = ENTRIES * (size_t)xac_chain_last(c)->head.page_size;
    int rc = 0;

    *cf = (struct xac_chain_file){.chain = c, .f = f};
    cf->list = (struct xac_pagelist){.fd = c->link[c->n - 1].pagesfd,
                                     .first = f->list_block,
                                     .end = xac_manifest_blocks(xac_chain_last(c), f)};
    cf->known = (struct xac_pagelist){.fd = -1};
    cf->part = (struct xac_chain_part *)calloc(c->n, sizeof cf->part[0]);
    cf->pages = (uint8_t *)malloc(bytes);
    if (cf->part == NULL || cf->pages == NULL)
        return xac_err(ENOMEM, "pages of %s", f->path);
    for (size_t k = 0; k < c->n; k++) {
        struct xac_chain_part *part = &cf->part[k];

        part->fd = -1;
        part->f = xac_manifest_find(&c->link[k].m, f->path);
        if (part->f != NULL && part->f->is_missing)
            part->f = NULL;
        if (part->f == NULL)
            continue;
        part->run = part->f->first_run;
        part->at = part->f->first_page;
        if (rc == 0 && xac_manifest_is_full(&c->link[k].m))
            rc = open_copy(&c->link[k], part);
    }
    return rc;
}

void
xac_chain_file_close(struct xac_chain_file *cf)
{
    for (size_t k = 0; cf->part != NULL && k < cf->chain->n; k++) {
        if (cf->part[k].f != NULL && cf->part[k].fd >= 0)
            (void)xac_sys.close(cf->part[k].fd);
    }
    free(cf->part);
    free(cf->pages);
    cf->part = NULL;
    cf->pages = NULL;
}

/* take_full -- the pages of a full backup. */
static int
take_full(struct xac_chain_file *cf, size_t k, uint64_t first, size_t n)
{
    size_t size = xac_chain_last(cf->chain)->head.page_size;
    const struct xac_link *l = &cf->chain->link[k];
    size_t got;
    int rc = xac_read_full(cf->part[k].fd, cf->pages, n * size, first * size, &got);

    for (size_t i = 0; i < n; i++) {
        cf->from[i] = k;
        cf->at[i] = first + i;
    }
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: read", l->dir, cf->part[k].f->copy);
}

/* take_runs -- the pages of an increment that lie in the piece. */
static int
take_runs(struct xac_chain_file *cf, size_t k, uint64_t first, size_t n)
{
    size_t size = xac_chain_last(cf->chain)->head.page_size;
    const struct xac_link *l = &cf->chain->link[k];
    struct xac_chain_part *part = &cf->part[k];
    size_t end = part->f->first_run + part->f->n_runs, got;
    int rc = 0;

    while (rc == 0 && part->run < end) {
        const struct xac_manifest_run *run = &l->m.run[part->run];
        uint64_t from = run->page > first ? run->page : first;
        uint64_t to = run->page + run->n < first + n ? run->page + run->n : first + n;

        if (run->page >= first + n)
            break;
        if (from < to) {
            uint64_t at = part->at + (from - run->page);

            rc = xac_read_full(l->changedfd, cf->pages + (from - first) * size,
                               (size_t)(to - from) * size, at * size, &got);
            for (uint64_t p = from; p < to; p++) {
                cf->from[p - first] = k;
                cf->at[p - first] = at + (p - from);
            }
        }
        if (run->page + run->n > first + n)
            break;          /* it goes on in the next piece */
        part->at += run->n; /* (1) */
        part->run++;
    }
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: read", l->dir, XAC_CHANGED_NAME);
}

void
xac_chain_file_know(struct xac_chain_file *cf)
{
    size_t k = cf->chain->n - 1;

    xac_assert(cf->list.at == 0);
    if (k > 0 && cf->part[k - 1].f != NULL)
        cf->known =
            (struct xac_pagelist){.fd = cf->chain->link[k - 1].pagesfd,
                                  .first = cf->part[k - 1].f->list_block,
                                  .end = xac_manifest_blocks(&cf->chain->link[k - 1].m,
                                                             cf->part[k - 1].f)};
}

int
xac_chain_file_read(struct xac_chain_file *cf, uint64_t first, size_t n)
{
    size_t size = xac_chain_last(cf->chain)->head.page_size;
    int rc = xac_pagelist_get(&cf->list, cf->entry);
    bool any = false;

    xac_assert(n <= ENTRIES);
    xac_assert(first % ENTRIES == 0);
    if (rc == 0)
        rc = xac_pagelist_get(&cf->known, cf->was);
    if (rc != 0)
        return xac_err(rc, "%s/%s: read", cf->chain->link[cf->chain->n - 1].dir,
                       XAC_PAGES_NAME);
    for (size_t i = 0; i < n; i++) {
        any = any || cf->entry[i] != cf->was[i];
        cf->from[i] = cf->chain->n;
    }
    if (any)
        memset(cf->pages, 0, n * size);
    for (size_t k = 0; rc == 0 && any && k < cf->chain->n; k++) {
        if (cf->part[k].f == NULL)
            continue;
        rc =
            cf->part[k].fd >= 0 ? take_full(cf, k, first, n) : take_runs(cf, k, first, n);
    }
    return rc;
}

bool
xac_chain_file_is_right(const struct xac_chain_file *cf, size_t i)
{
    size_t size = xac_chain_last(cf->chain)->head.page_size;

    xac_assert(i < ENTRIES);
    return cf->entry[i] == 0 || cf->entry[i] == cf->was[i]
           || xac_pagelist_entry(cf->pages + i * size, size) == cf->entry[i];
}

int
xac_chain_file_damage(const struct xac_chain_file *cf, uint64_t first, size_t i)
{
    uint64_t size = xac_chain_last(cf->chain)->head.page_size;
    const struct xac_link *l;

    xac_assert(i < ENTRIES);
    if (cf->from[i] == cf->chain->n)
        return xac_err(XAC_EDAMAGED, "%s: no backup has page %" PRIu64 " of it",
                       cf->f->path, first + i);
    l = &cf->chain->link[cf->from[i]];
    return xac_err(XAC_EDAMAGED,
                   "%s/%s: offset %" PRIu64 ": checksum of page %" PRIu64 " of %s",
                   l->dir,
                   cf->part[cf->from[i]].fd >= 0 ? cf->part[cf->from[i]].f->copy
                                                 : XAC_CHANGED_NAME,
                   cf->at[i] * size, first + i, cf->f->path);
}

int
xac_chain_file_end(struct xac_chain_file *cf)
{
    if (cf->list.check == cf->f->list_check)
        return 0;
    return xac_err(XAC_EDAMAGED,
                   "%s/%s: offset %" PRIu64 ": checksum of the checksums of %s",
                   cf->chain->link[cf->chain->n - 1].dir, XAC_PAGES_NAME,
                   cf->f->list_block * XAC_PAGELIST_BLOCK, cf->f->path);
}
