/* SPDX-License-Identifier: MIT */
/*
 * pagesums_check.c -- see pagesums_check.h.
 */
#include <config.h>

#include "recovery/pagesums_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/rawfile.h"
#include "base/sys.h"
#include "checkpoint/pagesums.h"
#include "log/recover_scan.h"

#define ENTRIES 256u /* looked at together */

/* One check. */
struct verify {
    int dirfd;
    const struct xac_master_slot *master;
    uint64_t end_lsn;
    xac_pagesums_redone_fn is_redone;
    void *redone_arg;
    struct xac_pagesums_check *c;
    uint8_t *bytes;                /* ENTRIES pages                                   */
    struct xac_pagesums_head head; /* of the file being compared                      */
    const char *name;              /* of the file with its checksums                  */
    struct xac_rawfile data;
};

static void
damage(struct verify *v, const struct xac_pagesums_damage *d)
{
    xac_assert(d->file != NULL);
    v->c->damages++;
    v->c->damage(v->c->arg, d);
}

/* is_asked -- does the entry say something of its page? */
static bool
is_asked(struct verify *v, const struct xac_pagesum *e, uint64_t page)
{
    static const struct xac_pagesum none;

    xac_assert(v->is_redone != NULL);
    if (memcmp(e, &none, sizeof none) == 0
        || v->is_redone(v->redone_arg, v->head.inode, page))
        return false;
    if (e->page != page || e->check != xac_pagesum_check(e)) {
        v->c->lost++;
        return false;
    }
    return e->lsn <= v->end_lsn;
}

/* compare -- a page that has been read; rc of the reading. */
static void
compare(struct verify *v, const struct xac_pagesum *e, const uint8_t *bytes, int rc)
{
    struct xac_pagesums_damage d = {
        .kind = rc == 0 ? XAC_PAGESUMS_PAGE : XAC_PAGESUMS_UNREAD,
        .file = v->head.path,
        .page = e->page,
        .offset = e->page * v->head.page_size,
        .expected = e->checksum,
        .found = rc == 0 ? xac_xxh64(bytes, v->head.page_size) : (uint64_t)rc,
    };

    xac_assert(bytes >= v->bytes);
    xac_assert(bytes < v->bytes + (size_t)ENTRIES * v->head.page_size);
    v->c->pages++;
    if (rc != 0 || d.found != d.expected)
        damage(v, &d);
}

/* compare_run -- pages that are neighbours; where they cannot be read, one by one. */
static void
compare_run(struct verify *v, const struct xac_pagesum *e, size_t n)
{
    size_t size = v->head.page_size;
    size_t got;
    int rc = xac_rawfile_read(&v->data, v->bytes, n * size, e->page * size, &got);

    xac_assert(n > 0);
    xac_assert(n <= ENTRIES);
    xac_assert(size == v->master->page_size); /* v->bytes has room for n pages */
    for (size_t i = 0; i < n; i++) {
        uint8_t *page = v->bytes + i * size;
        int one = rc;

        if (rc != 0)
            one = xac_rawfile_read(&v->data, page, size, e[i].page * size, &got);
        compare(v, &e[i], page, one);
    }
}

/* verify_some -- the entries from page `first` on. */
static void
verify_some(struct verify *v, const struct xac_pagesum *e, size_t n, uint64_t first)
{
    size_t run = 0; /* entries before the i-th with pages to be compared */

    xac_assert(n <= ENTRIES);
    xac_assert(first % ENTRIES == 0);
    for (size_t i = 0; i <= n; i++) {
        if (i < n && is_asked(v, &e[i], first + i)) {
            run++;
        } else if (run > 0) {
            compare_run(v, &e[i - run], run);
            run = 0;
        }
    }
    xac_assert(run == 0);
}

/* verify_entries -- all entries of an open file with checksums. */
static int
verify_entries(struct verify *v, int sums)
{
    struct xac_pagesum e[ENTRIES];
    uint64_t first = 0;
    size_t got;
    int rc;

    xac_assert(sums >= 0);
    do {
        rc = xac_read_full(sums, e, sizeof e, sizeof v->head + first * sizeof e[0], &got);
        if (rc != 0)
            return xac_err(rc, "%s: read", v->name);
        verify_some(v, e, got / sizeof e[0], first);
        first += ENTRIES;
    } while (got == sizeof e);
    return 0;
}

/* open_data -- the mapped file, if it is still the same. */
static int
open_data(struct verify *v, bool *is_samep)
{
    struct xac_identity was = xac_pagesums_who(&v->head), is;
    int rc = xac_rawfile_open(&v->data, v->dirfd, v->head.path);

    /* xac_pagesums_head_valid has checked it. */
    xac_assert(v->head.page_size == v->master->page_size);
    *is_samep = false;
    if (rc == ENOENT || rc == ENOTDIR)
        return 0;
    if (rc == 0)
        rc = xac_identity_of(v->data.fd, &is);
    if (rc != 0)
        return xac_err(rc, "%s: open", v->head.path);
    *is_samep = xac_identity_is_same(&was, &is);
    return 0;
}

/* verify_file -- header read. */
static int
verify_file(struct verify *v, int sums)
{
    bool is_same;
    int rc;

    xac_assert(sums >= 0);
    if (!xac_pagesums_head_valid(&v->head, v->master->identity, v->master->page_size)) {
        damage(v, &(struct xac_pagesums_damage){.kind = XAC_PAGESUMS_HEADER,
                                                .file = v->name});
        return 0;
    }
    v->data = (struct xac_rawfile)XAC_RAWFILE_CLOSED;
    rc = open_data(v, &is_same);
    if (rc == 0 && is_same)
        rc = verify_entries(v, sums);
    v->c->files += is_same;
    v->c->skipped += !is_same;
    xac_rawfile_close(&v->data);
    return rc;
}

/* verify_named -- for xac_scan_names. */
static int
verify_named(void *arg, const char *name)
{
    struct verify *v = (struct verify *)arg;
    size_t got;
    int fd = xac_sys.openat(v->dirfd, name, O_RDONLY | O_CLOEXEC, 0);
    int rc;

    xac_assert(name[0] != '\0');
    xac_assert(v->bytes != NULL);
    if (fd < 0)
        return xac_err(errno, "%s: open", name);
    v->name = name;
    memset(&v->head, 0, sizeof v->head);
    rc = xac_read_full(fd, &v->head, sizeof v->head, 0, &got);
    rc = rc == 0 ? verify_file(v, fd) : xac_err(rc, "%s: read", name);
    (void)xac_sys.close(fd);
    return rc;
}

int
xac_pagesums_verify(int dirfd, const struct xac_master_slot *master, uint64_t end_lsn,
                    xac_pagesums_redone_fn is_redone, void *redone_arg,
                    struct xac_pagesums_check *c)
{
    struct verify *v = (struct verify *)calloc(1, sizeof *v);
    int rc;

    xac_assert(is_redone != NULL);
    xac_assert(master->page_size != 0);
    xac_assert(c->damage != NULL);
    c->files = c->skipped = c->pages = c->lost = c->damages = 0;
    if (v == NULL)
        return xac_err(ENOMEM, "checking pages");
    *v = (struct verify){.dirfd = dirfd,
                         .master = master,
                         .end_lsn = end_lsn,
                         .is_redone = is_redone,
                         .redone_arg = redone_arg,
                         .c = c};
    v->bytes = (uint8_t *)xac_rawfile_buffer((size_t)ENTRIES * master->page_size);
    if (v->bytes == NULL)
        rc = xac_err(ENOMEM, "checking pages");
    else
        rc = xac_scan_names(dirfd, XAC_PAGESUMS_PREFIX, verify_named, v);
    free(v->bytes);
    free(v);
    return rc;
}
