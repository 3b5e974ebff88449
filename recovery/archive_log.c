/* SPDX-License-Identifier: MIT */
/*
 * archive_log.c -- pieces of log, and what goes with them, become objects; see archive_job.h.
 *
 * Durable log of a segment goes in parts, so that little is missing if the machine burns.  A full segment goes
 * once more, as one object, and the parts are not named any more.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "archive_job.h"
#include "base/annot.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/log_name.h"

#define SEGMENT "segment" /* in the stage                                              */
#define PART    "part"
#define DATA    "data"
#define NOTE    "note"

/* Files that go with the log, and are not in it. */
static const char *const note_name[] = {XAC_ADDRESSES_NAME, XAC_LINEAGE_NAME};

/* stage_copy -- a part of a file becomes a synced one of the stage. */
static int
stage_copy(struct archive_job *j, int in, uint64_t from, uint64_t end, const char *name)
{
    uint8_t *chunk = (uint8_t *)malloc(XAC_COPY_CHUNK);
    uint64_t at = from;
    size_t got = 1;
    int fd = -1, rc = chunk == NULL ? ENOMEM : archive_stage_file(j, name, &fd);

    while (rc == 0 && at < end && got > 0) {
        size_t n = end - at < XAC_COPY_CHUNK ? (size_t)(end - at) : XAC_COPY_CHUNK;

        rc = xac_read_full(in, chunk, n, at, &got);
        if (rc == 0)
            rc = xac_write_full(fd, chunk, got, at - from);
        at += got;
    }
    if (rc == 0 && xac_sys.fsync(fd) != 0)
        rc = errno;
    xac_close_fd(&fd);
    free(chunk);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: write", j->store.stage, name);
}

/* ---- Segments --------------------------------------------------------------------- */

void
archive_segment_drop(struct archive_job *j)
{
    xac_close_fd(&j->seg.fd);
    j->seg = (struct archive_segment){.fd = -1};
}

/* begin -- with a block. */
static int
begin(struct archive_job *j, const struct xac_block *blk)
{
    struct archive_segment *seg = &j->seg;
    int rc;

    xac_assert(seg->fd < 0);
    *seg = (struct archive_segment){.fd = -1,
                                    .segment_bytes = j->source.follow.segment_bytes,
                                    .start = blk->lsn,
                                    .put = blk->lsn,
                                    .end = blk->lsn};
    rc = xac_source_line(&j->source, blk->generation, &seg->line);
    if (rc != 0)
        return rc;
    seg->line.generation = blk->generation;
    if (!j->is_anew) {
        seg->previous_generation = j->a.at.generation;
        seg->previous_end = j->a.at_lsn;
    }
    j->is_anew = false;
    return archive_stage_file(j, SEGMENT, &seg->fd);
}

/* put_blocks -- the staged file has [from, seg->end). */
static int
put_blocks(struct archive_job *j, const char *staged, uint64_t from)
{
    const struct archive_segment *seg = &j->seg;
    char rest[80], name[ARCHIVE_NAME_MAX];
    struct archive_object o = {.kind = ARCHIVE_LOG,
                               .name = name,
                               .generation = seg->line.generation,
                               .start = from,
                               .end = seg->end,
                               .segment_bytes = seg->segment_bytes,
                               .previous_generation = seg->previous_generation,
                               .previous_end = seg->previous_end,
                               .time_ns = seg->time_ns};

    if (from != seg->start) {
        o.previous_generation = seg->line.generation;
        o.previous_end = from;
        o.time_ns = seg->put_time_ns;
    }
    (void)snprintf(rest, sizeof rest, "%" PRIu32 ".%" PRIu64 ".%" PRIu64,
                   seg->line.generation, from, seg->end);
    archive_object_name(j, name, "log", rest);
    return archive_put(j, staged, &o);
}

/* is_put -- all blocks of the segment are in the archive: the log goes on behind them. */
static void
is_put(struct archive_job *j)
{
    struct archive_segment *seg = &j->seg;

    j->since_backup += seg->end - seg->put;
    j->rep->log_bytes += seg->end - seg->put;
    seg->put = seg->end;
    seg->put_time_ns = 0;
    j->a.at = seg->line;
    j->a.at.segment_bytes = seg->segment_bytes;
    j->a.at_lsn = seg->end;
}

/* put_part -- what has not been put. */
static int
put_part(struct archive_job *j)
{
    struct archive_segment *seg = &j->seg;
    int rc = stage_copy(j, seg->fd, seg->put - seg->start, seg->end - seg->start, PART);

    xac_assert(seg->put < seg->end);
    if (rc == 0)
        rc = put_blocks(j, PART, seg->put);
    if (rc != 0)
        return rc;
    is_put(j);
    seg->n_parts++;
    return 0;
}

/* drop_parts -- from the list: they are in the object that has been put last. */
static void
drop_parts(struct archive_job *j)
{
    const struct archive_object whole = j->a.object[j->a.n - 1];
    struct archive *a = &j->a;
    size_t n = 0, n_named = 0;

    for (size_t i = 0; i < a->n; i++) {
        struct archive_object *o = &a->object[i];
        bool is_part = i + 1 < a->n && o->kind == ARCHIVE_LOG
                       && o->generation == whole.generation && o->start >= whole.start
                       && o->end <= whole.end;

        if (is_part) {
            free(o->name);
            j->wants_full = true;
            continue;
        }
        n_named += i < a->n_named;
        a->object[n++] = *o;
    }
    a->n = n;
    a->n_named = n_named;
}

/* finish -- the segment is full, or its generation over: one object for all. */
static int
finish(struct archive_job *j)
{
    struct archive_segment *seg = &j->seg;
    int rc = 0;

    xac_assert(seg->start < seg->end);
    if (seg->n_parts == 1 && seg->put == seg->end) { /* it is one object already */
        archive_segment_drop(j);
        return 0;
    }
    if (xac_sys.fsync(seg->fd) != 0)
        rc = xac_err(errno, "%s/" SEGMENT, j->store.stage);
    if (rc == 0)
        rc = put_blocks(j, SEGMENT, seg->start);
    if (rc != 0)
        return rc;
    is_put(j);
    drop_parts(j);
    archive_segment_drop(j);
    return 0;
}

/* ---- Blocks ----------------------------------------------------------------------- */

/* time_of -- of the last commit in a block; 0 none. */
static uint64_t
time_of(const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    uint64_t time_ns = 0;

    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XCOMMIT)
            time_ns = ((const struct xac_xcommit *)(const void *)rec)->time_ns;
    }
    return time_ns;
}

/* put_data -- the data file of a block, before the block. */
static int
put_data(struct archive_job *j, const struct xac_followed *f)
{
    char rest[60], name[ARCHIVE_NAME_MAX];
    struct archive_object o = {.kind = ARCHIVE_DATA,
                               .name = name,
                               .generation = f->blk->generation,
                               .start = f->blk->lsn,
                               .serial = f->data->serial};
    int rc = stage_copy(j, f->datafd, 0, f->data->length, DATA);

    (void)snprintf(rest, sizeof rest, "%" PRIu32 ".%" PRIu64, o.generation, o.serial);
    archive_object_name(j, name, "data", rest);
    return rc == 0 ? archive_put(j, DATA, &o) : rc;
}

int
archive_take(struct archive_job *j, const struct xac_followed *f)
{
    struct archive_segment *seg = &j->seg;
    const struct xac_block *blk = f->blk;
    uint64_t time_ns = time_of(blk);
    int rc = 0;

    if (seg->fd >= 0 && seg->line.generation != blk->generation)
        rc = finish(j);
    if (rc == 0 && f->data != NULL)
        rc = put_data(j, f);
    if (rc == 0 && seg->fd < 0)
        rc = begin(j, blk);
    if (rc != 0)
        return rc;
    xac_assert(seg->end == blk->lsn);
    rc = xac_write_full(seg->fd, blk, blk->length, seg->end - seg->start);
    if (rc != 0)
        return xac_err(rc, "%s/" SEGMENT ": write", j->store.stage);
    seg->end += blk->length;
    if (time_ns > seg->time_ns)
        seg->time_ns = time_ns;
    if (time_ns > seg->put_time_ns)
        seg->put_time_ns = time_ns;
    if (xac_log_segment_of(seg->end, seg->segment_bytes)
        != xac_log_segment_of(seg->start, seg->segment_bytes))
        rc = finish(j);
    return rc;
}

/* ---- Notes ------------------------------------------------------------------------ */

/* put_note -- a file of the environment, if it is not as it was archived last. */
static int
put_note(struct archive_job *j, size_t i)
{
    int fd = xac_sys.openat(j->source.dirfd, note_name[i],
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    char rest[60], name[ARCHIVE_NAME_MAX];
    struct archive_object o = {.kind = ARCHIVE_NOTE, .name = name};
    struct archive_sum sum;
    int rc;

    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s", note_name[i]);
    rc = archive_sum_of(fd, &sum);
    if (rc == 0 && archive_sum_is_same(&sum, &j->noted[i])) {
        (void)xac_sys.close(fd);
        return 0;
    }
    if (rc == 0)
        rc = stage_copy(j, fd, 0, sum.length, NOTE);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s", note_name[i]);
    (void)snprintf(rest, sizeof rest, "%s.%016" PRIx64, note_name[i] + 4, sum.xxh);
    archive_object_name(j, name, "note", rest);
    o.path = (char *)(uintptr_t)note_name[i];
    rc = archive_put(j, NOTE, &o);
    if (rc == 0)
        j->noted[i] = sum;
    return rc;
}

int
archive_ship_all(struct archive_job *j)
{
    int rc = 0;

    if (j->seg.fd >= 0 && j->seg.put < j->seg.end)
        rc = put_part(j);
    for (size_t i = 0; rc == 0 && i < sizeof note_name / sizeof note_name[0]; i++)
        rc = put_note(j, i);
    if (rc == 0 && (j->a.n > j->a.n_named || j->wants_full))
        rc = archive_name_all(j);
    return rc;
}
