/* SPDX-License-Identifier: MIT */
/*
 * follow.c -- see follow.h.
 */
#include <config.h>

#include "log/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/log_name.h"
#include "log/log_segment.h"
#include "log/recover_data.h"
#include "log/recover_scan.h"

/* Bytes read at a time, if there are so many. */
#define CHUNK ((size_t)256 << 10)

/* ---- Opening ---------------------------------------------------------------------- */

int
xac_follow_open(struct xac_follow *f, int dirfd, const struct xac_master_slot *master,
                uint64_t lsn)
{
    xac_assert(dirfd >= 0);
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    *f = (struct xac_follow){.dirfd = dirfd,
                             .page_size = master->page_size,
                             .segment_bytes = master->segment_bytes,
                             .id = {.generation = master->generation},
                             .lsn = lsn,
                             .fd = -1,
                             .datafd = -1,
                             .size = CHUNK};
    memcpy(f->identity, master->identity, sizeof f->identity);
    memcpy(&f->id.identity, master->identity, sizeof f->id.identity);
    f->buf = (uint8_t *)malloc(f->size);
    return f->buf != NULL ? 0 : xac_err(ENOMEM, "following the log");
}

void
xac_follow_close(struct xac_follow *f)
{
    xac_assert(f->at <= f->n);
    xac_close_fd(&f->fd);
    xac_close_fd(&f->datafd);
    free(f->buf);
    f->buf = NULL;
}

void
xac_follow_turn(struct xac_follow *f, uint32_t generation, uint64_t lsn,
                uint64_t segment_bytes)
{
    xac_assert(generation > f->id.generation);
    xac_assert(lsn >= f->lsn); /* (1) */
    xac_close_fd(&f->fd);
    f->number = 0;
    f->id.generation = generation;
    f->lsn = lsn;
    f->segment_bytes = segment_bytes;
    f->at = f->n = 0;
}

/* ---- What is missing -------------------------------------------------------------- */

/* The nearest segment behind a number. */
struct nearest {
    uint64_t from, number; /* UINT64_MAX: none                                        */
};

/* note_nearest -- for xac_scan_names. */
static int
note_nearest(void *arg, const char *name)
{
    struct nearest *n = (struct nearest *)arg;
    uint64_t number;

    xac_assert(name[0] != '\0');
    if (xac_log_segment_named(name, &number) && number > n->from && number < n->number)
        n->number = number;
    return 0;
}

/* segment_behind -- number of the first segment behind one; UINT64_MAX none. */
static int
segment_behind(const struct xac_follow *f, uint64_t from, uint64_t *numberp)
{
    struct nearest n = {.from = from, .number = UINT64_MAX};
    int rc = xac_scan_names(f->dirfd, XAC_LOG_PREFIX, note_nearest, &n);

    *numberp = n.number;
    xac_assert(n.number > n.from);
    return rc;
}

int
xac_follow_oldest(const struct xac_follow *f, uint64_t *lsnp)
{
    uint64_t number;
    int rc = segment_behind(f, 0, &number);

    xac_assert(f->segment_bytes != 0);
    if (rc == 0)
        *lsnp = number == UINT64_MAX ? 0 : (number - 1) * f->segment_bytes;
    return rc;
}

int
xac_follow_cut_off(const struct xac_follow *f)
{
    uint64_t number;
    int rc = segment_behind(f, xac_log_segment_of(f->lsn, f->segment_bytes), &number);

    xac_assert(f->lsn != 0);
    if (rc != 0)
        return rc;
    if (number == UINT64_MAX)
        return xac_err(XAC_ECUTOFF,
                       "the log at LSN %" PRIu64 ", generation %" PRIu32
                       ", has been removed, and so has all behind it; begin anew from a "
                       "backup",
                       f->lsn, f->id.generation);
    return xac_err(XAC_ECUTOFF,
                   "the log at LSN %" PRIu64 ", generation %" PRIu32
                   ", has been used again or removed; the oldest that there is begins at "
                   "LSN %" PRIu64 "; begin anew from a backup, or put the log back",
                   f->lsn, f->id.generation, (number - 1) * f->segment_bytes);
}

/* ---- Bytes ------------------------------------------------------------------------ */

/* What became of a segment. */
enum segment {
    SEGMENT_OURS,
    SEGMENT_OTHER, /* has the number, but belongs to a later generation, of another size */
    SEGMENT_GONE   /* missing, or used again                                          */
};

/* segment_open -- make a segment the open one; *isp GONE: there is none. */
static int
segment_open(struct xac_follow *f, uint64_t number, enum segment *isp)
{
    char name[XAC_LOG_NAME_MAX];

    xac_assert(number != 0);
    *isp = SEGMENT_OURS;
    if (f->number == number && f->fd >= 0)
        return 0;
    xac_close_fd(&f->fd);
    xac_log_segment_name(name, number);
    f->fd = xac_sys.openat(f->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    f->number = number;
    if (f->fd >= 0)
        return 0;
    *isp = SEGMENT_GONE;
    return errno == ENOENT ? 0 : xac_err(errno, "%s: open", name);
}

/* segment_look -- is it still what it was, after bytes of it have been read (3)? */
static int
segment_look(const struct xac_follow *f, enum segment *isp)
{
    struct xac_segment_header head;
    char name[XAC_LOG_NAME_MAX];
    size_t got;
    int rc = xac_read_full(f->fd, &head, sizeof head, 0, &got);

    xac_assert(f->fd >= 0);
    xac_assert(f->number != 0);
    xac_log_segment_name(name, f->number);
    if (rc != 0)
        return xac_err(rc, "%s: read at offset 0", name);
    rc = xac_log_segment_check(&head, name, f->identity, f->number, f->segment_bytes,
                               f->page_size);
    *isp = SEGMENT_OURS;
    if (rc == 0)
        return 0;
    *isp = head.number == f->number && head.segment_bytes != f->segment_bytes
               ? SEGMENT_OTHER
               : SEGMENT_GONE;
    /* Of another environment: this is no log of ours, and never was. */
    if (rc != XAC_EDAMAGED)
        return rc;
    xac_err_clear(); /* no failure */
    return 0;
}

/* read_some -- append bytes of the log to those in the buffer, of one segment; *gotp 0: there are
   none, see *isp. */
static int
read_some(struct xac_follow *f, uint64_t limit, size_t *gotp, enum segment *isp)
{
    uint64_t from = f->lsn + (f->n - f->at);
    uint64_t offset = from & (f->segment_bytes - 1);
    uint64_t room = f->segment_bytes - offset;
    int rc = segment_open(f, xac_log_segment_of(from, f->segment_bytes), isp);

    xac_assert(from < limit);
    *gotp = 0;
    if (rc != 0 || *isp != SEGMENT_OURS)
        return rc;
    if (room > f->size - f->n)
        room = f->size - f->n;
    if (room > limit - from)
        room = limit - from;
    rc = xac_read_full(f->fd, f->buf + f->n, (size_t)room, XAC_SEGMENT_HEADER + offset,
                       gotp);
    if (rc != 0)
        return xac_err(rc, "log segment %" PRIu64 ": read", f->number);
    rc = segment_look(f, isp);
    if (*isp != SEGMENT_OURS)
        *gotp = 0;
    f->n += *gotp;
    xac_assert(f->n <= f->size);
    return rc;
}

/* make_room -- for `want` bytes from the cursor on. */
static int
make_room(struct xac_follow *f, size_t want)
{
    uint8_t *grown;

    xac_assert(f->at <= f->n);
    memmove(f->buf, f->buf + f->at, f->n - f->at);
    f->n -= f->at;
    f->at = 0;
    if (want <= f->size)
        return 0;
    grown = (uint8_t *)realloc(f->buf, want);
    if (grown == NULL)
        return xac_err(ENOMEM, "log block of %zu bytes", want);
    f->buf = grown;
    f->size = want;
    return 0;
}

/* fill -- have `want` bytes in the buffer; if the log has fewer, *isp says why. */
static int
fill(struct xac_follow *f, size_t want, uint64_t limit, enum segment *isp)
{
    size_t got = 1;
    int rc = 0;

    xac_assert(want > 0);
    *isp = SEGMENT_OURS;
    if (f->n - f->at < want)
        rc = make_room(f, want);
    while (rc == 0 && got > 0 && f->n - f->at < want && f->lsn + (f->n - f->at) < limit)
        rc = read_some(f, limit, &got, isp);
    return rc;
}

/* ---- Blocks ----------------------------------------------------------------------- */

/* damaged -- there must be a block, and there is none. */
static int
damaged(const struct xac_follow *f, const char *why)
{
    char name[XAC_LOG_NAME_MAX];

    xac_assert(why[0] != '\0');
    xac_log_segment_name(name, xac_log_segment_of(f->lsn, f->segment_bytes));
    return xac_err(XAC_EDAMAGED, "%s: offset %" PRIu64 ": %s", name,
                   XAC_SEGMENT_HEADER + (f->lsn & (f->segment_bytes - 1)), why);
}

/*
 * none -- there is no block at the cursor: it is the end of a generation that is over; or the log
 * there has gone; or it is damaged.
 */
static int
none(const struct xac_follow *f, uint64_t limit, enum segment is, const char *why)
{
    uint64_t behind;
    int rc;

    xac_assert(f->lsn < limit);
    if (is == SEGMENT_OTHER && limit == XAC_FOLLOW_SEALED)
        return 0;
    if (is != SEGMENT_GONE)
        return limit == XAC_FOLLOW_SEALED ? 0 : damaged(f, why);
    if (limit != XAC_FOLLOW_SEALED)
        return xac_follow_cut_off(f);
    /* No segment behind the last one has been made yet; else what is missing has been there. */
    rc = segment_behind(f, xac_log_segment_of(f->lsn + (f->n - f->at), f->segment_bytes),
                        &behind);
    if (rc == 0 && behind != UINT64_MAX)
        rc = xac_follow_cut_off(f);
    return rc;
}

/* take_data -- open and check the data file that a block names. */
static int
take_data(struct xac_follow *f, const struct xac_xdatafile *rec, struct xac_followed *out)
{
    char name[XAC_LOG_NAME_MAX];
    struct xac_place place = {.offset = 0};
    bool ok = true;
    int rc;

    xac_assert(f->datafd == -1);
    xac_log_datafile_name(name, f->id.generation, rec->serial);
    f->datafd = xac_sys.openat(f->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (f->datafd < 0)
        return errno == ENOENT ? xac_follow_cut_off(f) : xac_err(errno, "%s: open", name);
    rc = xac_datafile_verify(f->dirfd, f->id.generation, rec, &ok, &place);
    if (rc == 0 && !ok)
        rc = faccessat(f->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0
                 ? xac_follow_cut_off(f)
                 : xac_err(XAC_EDAMAGED, "%s: offset %" PRIu64 ": %s", name, place.offset,
                           place.why);
    out->data = rec;
    out->datafd = f->datafd;
    return rc;
}

/* data_of -- the record that names the block's data file; NULL if it has none. */
static const struct xac_xdatafile *
data_of(const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;

    xac_assert(blk->length >= sizeof *blk);
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XDATAFILE)
            return (const struct xac_xdatafile *)(const void *)rec;
    }
    return NULL;
}

/* block_at_cursor -- in the buffer; *whyp: there is none. */
static int
block_at_cursor(struct xac_follow *f, uint64_t limit, const struct xac_block **blkp,
                enum segment *isp, const char **whyp)
{
    const struct xac_block *blk;
    struct xac_block head;
    int rc = fill(f, sizeof head, limit, isp);

    xac_assert(f->lsn % XAC_BLOCK_ALIGN == 0);
    *blkp = NULL;
    *whyp = "the log is too short";
    if (rc != 0 || f->n - f->at < sizeof head)
        return rc;
    memcpy(&head, f->buf + f->at, sizeof head);
    *whyp = "no block of this log";
    if (!xac_block_head_ok(&head, f->id, f->lsn))
        return 0;
    *whyp = "a block beyond the end of the log";
    if (head.length > limit - f->lsn) /* (2) */
        return 0;
    rc = fill(f, head.length, limit, isp);
    *whyp = "the log is too short for its block";
    if (rc != 0 || f->n - f->at < head.length)
        return rc;
    blk = (const struct xac_block *)(const void *)(f->buf + f->at);
    *whyp = "torn block: checksum";
    if (xac_block_body_ok(blk))
        *blkp = blk;
    else
        rc = xac_digest(head.checksum_kind, "", 0, (uint8_t[XAC_DIGEST_MAX]){0});
    return rc == 0 ? 0 : xac_err(rc, "checksum of kind %u", head.checksum_kind);
}

int
xac_follow_next(struct xac_follow *f, uint64_t limit, struct xac_followed *out)
{
    const struct xac_xdatafile *data;
    enum segment is;
    const char *why;
    int rc;

    xac_assert(f->buf != NULL);
    xac_assert(limit == XAC_FOLLOW_SEALED || limit % XAC_BLOCK_ALIGN == 0);
    *out = (struct xac_followed){.blk = NULL, .datafd = -1};
    xac_close_fd(&f->datafd);
    if (f->lsn >= limit)
        return 0;
    rc = block_at_cursor(f, limit, &out->blk, &is, &why);
    if (rc == 0 && out->blk == NULL)
        return none(f, limit, is, why);
    data = rc == 0 ? data_of(out->blk) : NULL;
    if (data != NULL)
        rc = take_data(f, data, out); /* (4) */
    if (rc != 0) {
        out->blk = NULL;
        return rc;
    }
    xac_assert(out->blk->lsn == f->lsn);
    f->at += out->blk->length; /* (1) */
    f->lsn += out->blk->length;
    return 0;
}

int
xac_follow_begins(struct xac_follow *f, uint64_t lsn, uint32_t *generationp)
{
    struct xac_log_id id = f->id;
    struct xac_block head;
    enum segment is;
    size_t got = 0;
    int rc = segment_open(f, xac_log_segment_of(lsn, f->segment_bytes), &is);

    xac_assert(lsn % XAC_LSN_GENERATION_ALIGN == 0);
    xac_assert(lsn >= f->lsn);
    *generationp = 0;
    if (rc != 0 || is != SEGMENT_OURS)
        return rc;
    rc = xac_read_full(f->fd, &head, sizeof head,
                       XAC_SEGMENT_HEADER + (lsn & (f->segment_bytes - 1)), &got);
    if (rc == 0)
        rc = segment_look(f, &is);
    id.generation = head.generation;
    if (rc == 0 && got == sizeof head && is == SEGMENT_OURS
        && head.generation > f->id.generation && xac_block_head_ok(&head, id, lsn))
        *generationp = head.generation;
    return rc;
}
