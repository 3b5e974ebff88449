/* SPDX-License-Identifier: MIT */
/*
 * changed.c -- see changed.h.
 */
#include <config.h>

#include "backup/changed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/annot.h"
#include "base/err.h"
#include "log/block.h"
#include "log/log_name.h"
#include "log/recover_data.h"
#include "log/recover_scan.h"

/* unknown -- note why. */
static int
unknown(struct xac_changed *c, const struct xac_place *place)
{
    c->is_known = false;
    (void)snprintf(c->why, sizeof c->why, "%s, offset %" PRIu64 ": %s", place->file,
                   place->offset, place->why);
    return 0;
}

/* file_of -- room for the bits of that file; NULL if out of memory. */
static struct xac_changed_file *
file_of(struct xac_changed *c, uint32_t id)
{
    if (id >= c->n_files) {
        size_t want = (size_t)id + 64;
        struct xac_changed_file *more =
            (struct xac_changed_file *)realloc(c->file, want * sizeof more[0]);

        if (more == NULL)
            return NULL;
        memset(more + c->n_files, 0, (want - c->n_files) * sizeof more[0]);
        c->file = more;
        c->n_files = want;
    }
    return &c->file[id];
}

/* set -- note a page; for xac_datafile_read, too. */
static int
set(void *arg, const struct xac_xdata *rec)
{
    struct xac_changed *c = (struct xac_changed *)arg;
    struct xac_changed_file *f;
    size_t word = (size_t)(rec->page / 64);

    if (c->is_check)
        return 0;
    f = file_of(c, rec->file);
    if (f == NULL)
        return xac_err(ENOMEM, "list of pages");
    if (word >= f->words) {
        size_t want = word + 1 + word / 2;
        uint64_t *more = (uint64_t *)realloc(f->bits, want * sizeof more[0]);

        if (more == NULL)
            return xac_err(ENOMEM, "list of pages");
        memset(more + f->words, 0, (want - f->words) * sizeof more[0]);
        f->bits = more;
        f->words = want;
    }
    f->bits[word] |= UINT64_C(1) << (rec->page % 64);
    return 0;
}

/* datafile -- the pages of a large transaction. */
static int
datafile(struct xac_changed *c, const struct xac_scan *s, const struct xac_xdatafile *rec)
{
    struct xac_place place = {.offset = 0};
    bool ok = true;
    int rc = xac_datafile_verify(s->dirfd, s->master.generation, rec, &ok, &place);

    if (rc == 0 && ok)
        rc = xac_datafile_read(s->dirfd, s->master.generation, rec, set, c, &ok, &place);
    if (rc == 0 && ok)
        c->read_bytes += rec->length;
    return rc == 0 && !ok ? unknown(c, &place) : rc;
}

/* visit -- the records of a transaction. */
static int
visit(struct xac_changed *c, const struct xac_scan *s, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    while (rc == 0 && c->is_known && (rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XDATA || rec->type == XAC_XCOPY)
            rc = set(c, (const struct xac_xdata *)(const void *)rec);
        else if (rec->type == XAC_XDATAFILE)
            rc = datafile(c, s, (const struct xac_xdatafile *)(const void *)rec);
    }
    return rc;
}

int
xac_changed_read(struct xac_changed *c, int logfd, const struct xac_master_slot *master,
                 uint64_t from, uint64_t to)
{
    struct xac_master_slot m = *master;
    const struct xac_block *blk;
    struct xac_place place;
    struct xac_scan scan;
    int rc;

    xac_assert(from >= m.start_lsn);
    xac_assert(from <= to);
    m.redo_lsn = from; /* the segments from there on are wanted */
    c->is_known = true;
    rc = xac_scan_open(&scan, logfd, &m);
    while (rc == 0 && c->is_known && from < to) {
        rc = xac_scan_block(&scan, from, &blk, &place);
        if (rc != 0)
            break;
        if (blk == NULL) {
            rc = unknown(c, &place);
            break;
        }
        rc = visit(c, &scan, blk);
        from += blk->length;
        c->read_bytes += blk->length;
    }
    if (rc == 0 && c->is_known && from != to) {
        place = (struct xac_place){.file = "log",
                                   .offset = from,
                                   .why = "a block goes on behind the end"};
        rc = unknown(c, &place);
    }
    xac_scan_close(&scan);
    return rc;
}

bool
xac_changed_has(const struct xac_changed *c, uint32_t file, uint64_t page, uint64_t n)
{
    const struct xac_changed_file *f;

    xac_assert(c->is_known); /* (1) */
    if (file >= c->n_files)
        return false;
    f = &c->file[file];
    for (uint64_t end = page + n; page < end && page / 64 < f->words;) {
        uint64_t word = f->bits[page / 64] >> (page % 64);
        uint64_t rest = 64 - page % 64;

        if (rest > end - page) {
            rest = end - page;
            word &= (UINT64_C(1) << rest) - 1;
        }
        if (word != 0)
            return true;
        page += rest;
    }
    return false;
}

void
xac_changed_free(struct xac_changed *c)
{
    for (size_t i = 0; i < c->n_files; i++)
        free(c->file[i].bits);
    free(c->file);
    *c = (struct xac_changed){.n_files = 0};
    xac_assert(c->file == NULL);
}
