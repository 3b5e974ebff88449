/* SPDX-License-Identifier: MIT */
/*
 * recover_redo.c -- see recover_redo.h.
 */
#include <config.h>

#include "recovery/recover_redo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/block.h"
#include "shared/ptab.h"

#define GATHER_BYTES (UINT32_C(1) << 20) /* of one write */

/* ---- What is known of pages ------------------------------------------------------- */

/* seen_find -- the word with a page's bit; NULL if that has never been set. */
static uint64_t *
seen_find(const struct xac_redo_file *f, uint64_t page)
{
    return page / 64 < f->seen_words ? &f->seen[page / 64] : NULL;
}

static bool
is_seen(const struct xac_redo_file *f, uint64_t page)
{
    const uint64_t *word = seen_find(f, page);

    return word != NULL && (*word >> page % 64 & 1) != 0;
}

/* seen_set -- ret 0 or ENOMEM. */
static int
seen_set(struct xac_redo *r, struct xac_redo_file *f, uint64_t page)
{
    uint64_t *word = seen_find(f, page);

    if (word == NULL) {
        uint64_t told = f->length / r->page_size; /* by the log */
        uint64_t pages = told <= XAC_PAGE_NO_MAX ? told : XAC_PAGE_NO_MAX + 1;
        uint64_t words = (page < pages ? pages : page + page / 2 + 64) / 64 + 1;
        xac_assert(words > page / 64);
        xac_assert(words > f->seen_words);
        /* calloc of much gives memory that takes no room before it is used. */
        uint64_t *grown = (uint64_t *)calloc(words, sizeof grown[0]);

        if (grown == NULL)
            return xac_err(ENOMEM, "%s: table of its pages", f->path);
        if (f->seen != NULL)
            memcpy(grown, f->seen, f->seen_words * sizeof grown[0]);
        free(f->seen);
        f->seen = grown;
        f->seen_words = words;
        word = seen_find(f, page);
    }
    *word |= UINT64_C(1) << page % 64;
    xac_assert(is_seen(f, page));
    return 0;
}

/* copy_of -- the record as XCOPY, NULL if it is XDATA. */
static const struct xac_xcopy *
copy_of(const struct xac_xdata *rec)
{
    return rec->r.type == XAC_XCOPY ? (const struct xac_xcopy *)(const void *)rec : NULL;
}

/* has_source -- have the bytes that a record copies, if it does, been redone? */
static bool
has_source(const struct xac_redo *r, const struct xac_xdata *rec)
{
    const struct xac_xcopy *copy = copy_of(rec);
    struct xac_redo_file *f;

    if (copy == NULL)
        return true;
    f = xac_redo_file_find(r, copy->source_file);
    if (f == NULL || !is_seen(f, copy->source_page))
        return false;
    f->is_source = f->is_source || copy->source_file != rec->file;
    return true;
}

/* decide -- the verdict on a record, the same in every pass. */
static int
decide(struct xac_redo *r, struct xac_redo_file *f, const struct xac_xdata *rec,
       enum xac_redo_verdict *verdictp)
{
    bool is_first = rec->r.flags != 0; /* an image, or a difference to the file */

    xac_assert(f == NULL || f->id == rec->file);
    *verdictp = XAC_REDO_NO_FILE;
    if (f == NULL)
        return 0;
    *verdictp = XAC_REDO_NO_FULL;
    if ((!is_first && !is_seen(f, rec->page)) || !has_source(r, rec))
        return 0;
    *verdictp = XAC_REDO_MALFORMED;
    if (rec->page >= f->length / r->page_size || rec->page > XAC_PAGE_NO_MAX)
        return 0; /* behind all that has been mapped of the file */
    *verdictp = XAC_REDO_APPLY;
    return is_first ? seen_set(r, f, rec->page) : 0;
}

void
xac_redo_files_each(const struct xac_redo *r,
                    void (*fn)(void *arg, const char *path, uint64_t pages, bool is_made),
                    void *arg)
{
    for (size_t i = 0; i < r->n_files; i++) {
        const struct xac_redo_file *f = &r->file[i];
        uint64_t pages = 0;

        for (uint64_t k = 0; k < f->seen_words; k++)
            pages += (uint64_t)__builtin_popcountll(f->seen[k]);
        if (f->needed)
            fn(arg, f->path, pages, f->is_missing);
    }
}

/* apply_to -- apply a record; source is the page that it copies from, if it does. */
static bool
apply_to(const struct xac_xdata *rec, const uint8_t *source, uint8_t *page,
         size_t page_size)
{
    const struct xac_xcopy *copy = copy_of(rec);

    return copy != NULL ? xac_apply_copy(copy, source, page, page_size)
                        : xac_apply_page(rec, page, page_size);
}

/* source_place -- where a copy's source is put: it may be the page itself, or give way to
   it. */
static uint8_t *
source_place(const struct xac_redo *r)
{
    return r->scratch + r->page_size;
}

/* kept_source -- the source of a copy in the first pass; whatever if pages are not kept. */
static const uint8_t *
kept_source(const struct xac_redo *r, const struct xac_xcopy *copy)
{
    const uint8_t *bytes = NULL;

    if (copy != NULL && r->keeping)
        bytes = xac_redo_pages_find(&r->pages, copy->source_file, copy->source_page);
    if (bytes != NULL)
        memcpy(source_place(r), bytes, r->page_size);
    return source_place(r);
}

/* kept_bytes -- where to try a record in the first pass: its page, if pages are kept. */
static uint8_t *
kept_bytes(struct xac_redo *r, const struct xac_xdata *rec)
{
    uint8_t *bytes = NULL;

    /* The file is not looked at before the whole log has been found right. */
    if ((rec->r.flags & XAC_XDATA_BASE) != 0) {
        r->keeping = false;
        if (r->frozen != NULL)
            r->frozen->has_base = true;
    }
    if (r->keeping) {
        bytes = xac_redo_pages_find(&r->pages, rec->file, rec->page);
        if (bytes == NULL)
            bytes = xac_redo_pages_add(&r->pages, rec->file, rec->page);
        r->keeping = bytes != NULL;
    }
    xac_assert(bytes == NULL || r->keeping); /* (3) */
    return bytes != NULL ? bytes : r->scratch;
}

int
xac_redo_check(struct xac_redo *r, const struct xac_xdata *rec,
               enum xac_redo_verdict *verdictp)
{
    struct xac_redo_file *f = xac_redo_file_find(r, rec->file);
    uint64_t end;
    const uint8_t *source;
    int rc = decide(r, f, rec, verdictp);

    if (rc != 0 || *verdictp != XAC_REDO_APPLY)
        return rc;
    source = kept_source(r, copy_of(rec));
    if (!apply_to(rec, source, kept_bytes(r, rec), r->page_size)) {
        *verdictp = XAC_REDO_MALFORMED;
        return 0;
    }
    r->changes += !f->needed;
    f->needed = true;
    end = (rec->page + 1) * r->page_size;
    if (end > f->reach)
        f->reach = end;
    return 0;
}

bool
xac_redo_is_kept(const struct xac_redo *r)
{
    return r->keeping;
}

bool
xac_redo_is_redone(void *arg, uint64_t inode, uint64_t page)
{
    const struct xac_redo *r = (const struct xac_redo *)arg;

    for (size_t i = 0; i < r->n_files; i++) {
        const struct xac_redo_file *f = &r->file[i];

        if (f->who.inode == inode && is_seen(f, page))
            return true;
    }
    return false;
}

int
xac_redo_file_is(void *arg, uint32_t file, struct xac_pagesums_file *out)
{
    struct xac_redo *r = (struct xac_redo *)arg;
    struct xac_redo_file *f = xac_redo_file_find(r, file);
    int rc = xac_redo_file_open(r, f, O_RDWR);

    if (rc == 0)
        rc = xac_identity_of(f->fd, &out->who);
    if (rc != 0)
        return xac_err(rc, "%s: open", f->path);
    out->path = f->path;
    return 0;
}

/* ---- Writing ---------------------------------------------------------------------- */

/* run_length -- how many frames from the i-th on are neighbours in one file. */
static uint32_t
run_length(const struct xac_redo *r, uint32_t i)
{
    const struct xac_redo_frame *frame = &r->pages.frame[i];
    uint32_t most = GATHER_BYTES / r->page_size;
    uint32_t n = 1;

    xac_assert(i < r->pages.n);
    while (n < most && i + n < r->pages.n && frame[n].file == frame->file
           && frame[n].page == frame->page + n)
        n++;
    xac_assert(i + n <= r->pages.n);
    xac_assert(n == 1 || (uint64_t)n * r->page_size <= GATHER_BYTES);
    return n;
}

/* run_write -- so many neighbours, in one piece. */
static int
run_write(struct xac_redo *r, uint32_t i, uint32_t n)
{
    const struct xac_redo_frame *frame = &r->pages.frame[i];
    struct xac_redo_file *f = xac_redo_file_find(r, frame->file);
    const uint8_t *bytes = xac_redo_pages_at(&r->pages, frame);
    bool keeps_sums = r->sums_store != NULL && !f->is_forgotten;
    int rc;

    xac_assert(n > 0);
    xac_assert(f != NULL);
    xac_assert(is_seen(f, frame->page)); /* (1) */
    if (f->is_forgotten && !f->is_source)
        return 0; /* nobody reads it again */
    rc = xac_redo_file_open(r, f, O_RDWR);
    if (n > 1) {
        for (uint32_t k = 0; k < n; k++)
            memcpy(r->gather + (size_t)k * r->page_size,
                   xac_redo_pages_at(&r->pages, &frame[k]), r->page_size);
        bytes = r->gather;
    }
    for (uint32_t k = 0; rc == 0 && keeps_sums && k < n; k++)
        rc = xac_pagesums_add(&r->sums, frame->file, frame->page + k,
                              bytes + (size_t)k * r->page_size, r->page_size);
    if (rc == 0)
        rc = xac_write_full(f->fd, bytes, (size_t)n * r->page_size,
                            frame->page * r->page_size);
    return rc == 0 ? 0
                   : xac_err(rc, "%s: write %" PRIu32 " pages from page %" PRIu64,
                             f->path, n, frame->page);
}

/* pages_write -- write all pages held to their files, in the order of the files, and
   hold none. */
static int
pages_write(struct xac_redo *r)
{
    uint32_t n;
    int rc = 0;

    xac_redo_pages_sort(&r->pages);
    for (uint32_t i = 0; rc == 0 && i < r->pages.n; i += n) {
        n = run_length(r, i);
        rc = run_write(r, i, n);
    }
    if (rc == 0 && r->sums_store != NULL)
        rc = xac_pagesums_put(&r->sums, r->sums_store);
    xac_redo_pages_clear(&r->pages);
    xac_assert(r->pages.n == 0);
    return rc;
}

/* page_load -- bytes of a page that was written in this run and let go. */
static int
page_load(struct xac_redo *r, struct xac_redo_file *f, uint64_t page, uint8_t *to)
{
    size_t got;
    int rc = xac_redo_file_open(r, f, O_RDWR);

    xac_assert(is_seen(f, page));
    if (rc == 0)
        rc = xac_read_full(f->fd, to, r->page_size, page * r->page_size, &got);
    if (rc == 0 && got != r->page_size)
        rc = EIO;
    return rc == 0 ? 0 : xac_err(rc, "%s: read page %" PRIu64, f->path, page);
}

/* page_get -- the bytes of a page, in memory; of a full image whatever they are. */
static int
page_get(struct xac_redo *r, uint32_t file, uint64_t page, bool is_full, uint8_t **bytesp)
{
    int rc = 0;

    xac_assert(xac_redo_file_find(r, file) != NULL);
    *bytesp = xac_redo_pages_find(&r->pages, file, page);
    if (*bytesp != NULL)
        return 0;
    *bytesp = xac_redo_pages_add(&r->pages, file, page);
    if (*bytesp == NULL) {
        rc = pages_write(r);
        *bytesp = xac_redo_pages_add(&r->pages, file, page);
    }
    if (rc == 0 && !is_full)
        rc = page_load(r, xac_redo_file_find(r, file), page, *bytesp);
    xac_assert(rc != 0 || *bytesp != NULL);
    return rc;
}

/* beside -- a page as the replayer is asked for it. */
static int
beside(struct xac_redo *r, uint32_t file, uint64_t page, struct xac_replayed_page *out)
{
    struct xac_redo_file *f = xac_redo_file_find(r, file);
    int rc;

    xac_assert(f != NULL);
    if (f->local == 0) /* the first pass has found the file named */
        return xac_err(EIO, "file %u of the log has not been prepared", file);
    rc = xac_redo_file_open(r, f, O_RDWR);
    *out = (struct xac_replayed_page){.file = file,
                                      .local = f->local,
                                      .page = page,
                                      .fd = f->fd};
    return rc == 0 ? 0 : xac_err(rc, "%s: open", f->path);
}

/* changed_get -- the page that a record changes. */
static int
changed_get(struct xac_redo *r, const struct xac_xdata *rec, uint8_t **bytesp)
{
    struct xac_replayed_page which;
    int rc;

    if (r->replayer == NULL)
        return page_get(r, rec->file, rec->page, (rec->r.flags & XAC_XDATA_FULL) != 0,
                        bytesp);
    rc = beside(r, rec->file, rec->page, &which);
    return rc == 0 ? xac_replayer_page(r->replayer, &which, rec->r.flags, bytesp) : rc;
}

/* source_get -- the page that a record copies from. */
static int
source_get(struct xac_redo *r, const struct xac_xcopy *copy)
{
    struct xac_replayed_page which;
    uint8_t *bytes;
    int rc;

    if (copy == NULL)
        return 0;
    if (r->replayer != NULL) {
        rc = beside(r, copy->source_file, copy->source_page, &which);
        return rc == 0 ? xac_replayer_read(r->replayer, &which, source_place(r)) : rc;
    }
    rc = page_get(r, copy->source_file, copy->source_page, false, &bytes);
    xac_assert(rc != 0 || bytes != NULL);
    if (rc == 0)
        memcpy(source_place(r), bytes, r->page_size);
    return rc;
}

int
xac_redo_apply(struct xac_redo *r, const struct xac_xdata *rec)
{
    struct xac_redo_file *f = xac_redo_file_find(r, rec->file);
    enum xac_redo_verdict verdict;
    uint8_t *bytes;
    int rc = decide(r, f, rec, &verdict);

    if (rc != 0)
        return rc;
    /* The first pass has seen the same records and found them right. */
    if (verdict != XAC_REDO_APPLY)
        return xac_err(EIO, "the log has changed while it was read");
    if (f->is_forgotten && !f->is_source)
        return 0;
    f->needed = true;
    rc = source_get(r, copy_of(rec));
    if (rc == 0)
        rc = changed_get(r, rec, &bytes);
    if (rc == 0 && !apply_to(rec, source_place(r), bytes, r->page_size))
        rc = xac_err(EIO, "the log has changed while it was read");
    return rc;
}

int
xac_redo_finish(struct xac_redo *r)
{
    int rc = pages_write(r);

    xac_assert(rc != 0 || r->pages.n == 0);
    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        struct xac_redo_file *f = &r->file[i];

        if (!xac_redo_is_wanted(f) || r->frozen != NULL)
            continue;
        rc = xac_redo_file_open(r, f, O_RDWR);
        if (rc == 0 && xac_sys.fdatasync(f->fd) != 0)
            rc = xac_err(errno, "%s: sync", f->path);
    }
    return rc;
}

/* ---- Life ------------------------------------------------------------------------- */

int
xac_redo_init(struct xac_redo *r, int dirfd, uint32_t page_size, uint64_t bytes_max)
{
    int rc;

    *r = (struct xac_redo){.dirfd = dirfd,
                           .page_size = page_size,
                           .fds_max = xac_redo_fds_max()};
    xac_assert(r->fds_max > 0);
    xac_assert(page_size <= GATHER_BYTES);
    rc = xac_redo_pages_init(&r->pages, page_size,
                             bytes_max != 0 ? bytes_max : XAC_REDO_BYTES_DEFAULT);
    r->scratch = (uint8_t *)calloc(2, page_size);
    r->gather = (uint8_t *)malloc(GATHER_BYTES);
    return rc == 0 && r->scratch != NULL && r->gather != NULL
               ? 0
               : xac_err(ENOMEM, "pages for recovery");
}

void
xac_redo_free(struct xac_redo *r)
{
    for (size_t i = 0; i < r->n_files; i++) {
        xac_redo_file_close(r, &r->file[i]);
        free(r->file[i].path);
        free(r->file[i].renamed);
        free(r->file[i].seen);
    }
    xac_assert(r->n_open_fds == 0); /* (6) */
    free(r->file);
    free(r->scratch);
    free(r->gather);
    xac_pagesums_free(&r->sums);
    xac_redo_pages_free(&r->pages);
    *r = (struct xac_redo){.dirfd = -1};
}

void
xac_redo_restart(struct xac_redo *r, bool keep)
{
    xac_redo_pages_clear(&r->pages);
    xac_assert(r->pages.n == 0);
    r->keeping = keep;
    for (size_t i = 0; i < r->n_files; i++) {
        struct xac_redo_file *f = &r->file[i];

        free(f->seen);
        f->seen = NULL;
        f->seen_words = 0;
        f->needed = false;
        f->reach = 0;
    }
}
