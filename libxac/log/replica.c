/* SPDX-License-Identifier: MIT */
/*
 * replica.c -- see replica.h.
 */
#include <config.h>

#include "log/replica.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/log_name.h"
#include "log/log_segment.h"

void
xac_replica_open(struct xac_replica *r, int dirfd, int envfd,
                 const struct xac_master_slot *master, uint64_t end)
{
    xac_assert(dirfd >= 0);
    xac_assert(end % XAC_BLOCK_ALIGN == 0);
    xac_assert(end >= master->redo_lsn);
    *r = (struct xac_replica){.dirfd = dirfd,
                              .page_size = master->page_size,
                              .generation = master->generation,
                              .segment_bytes = master->segment_bytes,
                              .end = end,
                              .durable = end,
                              .fd = -1,
                              .datafd = -1};
    memcpy(r->identity, master->identity, sizeof r->identity);
    xac_received_open(&r->received, envfd, master);
}

void
xac_replica_close(struct xac_replica *r)
{
    xac_assert(r->durable <= r->end);
    xac_close_fd(&r->fd);
    xac_close_fd(&r->datafd);
    xac_received_close(&r->received);
}

/* ---- Segments ----------------------------------------------------------------------- */

/* fill -- room for the bytes of a new segment, so that a full disk is found at once, and its header. */
static int
fill(const struct xac_replica *r, int fd, uint64_t number)
{
    uint64_t length = XAC_SEGMENT_HEADER + r->segment_bytes;
    int rc = xac_allocate(fd, 0, length);

    if (rc == EOPNOTSUPP || rc == ENOSYS)
        rc = xac_sys.ftruncate(fd, (off_t)length) == 0 ? 0 : errno;
    xac_assert(number != 0);
    return rc == 0 ? xac_log_segment_mark(fd, r->identity, number, r->segment_bytes,
                                          r->page_size)
                   : rc;
}

/* make -- the segment, complete before it gets its name (3). */
static int
make(struct xac_replica *r, const char *name, uint64_t number)
{
    struct xac_owner owner;
    int rc = xac_owner_get(r->dirfd, &owner);

    xac_assert(r->fd == -1);
    if (rc == 0)
        rc = xac_newfile_remake(r->dirfd, XAC_LOG_NEW_NAME, &owner, &r->fd);
    if (rc == 0)
        rc = fill(r, r->fd, number);
    return xac_log_segment_publish(r->dirfd, name, XAC_SEGMENT_HEADER + r->segment_bytes,
                                   rc);
}

/* turn_to -- make a segment the open one; what is in the one before is synced. */
static int
turn_to(struct xac_replica *r, uint64_t number)
{
    char name[XAC_LOG_NAME_MAX];
    struct stat st;
    int rc = 0;

    xac_assert(number != 0);
    if (r->fd >= 0 && r->number == number)
        return 0;
    if (r->fd >= 0 && xac_sys.fdatasync(r->fd) != 0)
        rc = xac_err(errno, "log segment %" PRIu64 ": sync", r->number);
    xac_close_fd(&r->fd);
    if (rc != 0)
        return rc;
    xac_log_segment_name(name, number);
    r->number = number;
    r->fd = xac_sys.openat(r->dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (r->fd < 0)
        rc = errno == ENOENT ? make(r, name, number) : xac_err(errno, "%s: open", name);
    else
        rc = xac_log_segment_verify(r->fd, name, r->identity, number, r->segment_bytes,
                                    r->page_size, &st);
    if (rc != 0)
        xac_close_fd(&r->fd);
    return rc;
}

/* ---- Blocks ------------------------------------------------------------------------- */

int
xac_replica_sync(struct xac_replica *r)
{
    xac_assert(r->durable <= r->end);
    if (r->durable == r->end)
        return 0;
    xac_assert(r->fd >= 0);
    if (xac_sys.fdatasync(r->fd) != 0)
        return xac_err(errno, "log segment %" PRIu64 ": sync", r->number);
    r->durable = r->end; /* (2): segments before have been synced when they were left */
    return xac_received_note(&r->received, r->durable);
}

int
xac_replica_sync_mark(struct xac_replica *r)
{
    xac_assert(r->durable <= r->end);
    return xac_received_sync(&r->received);
}

int
xac_replica_put(struct xac_replica *r, const struct xac_block *blk)
{
    const uint8_t *bytes = (const uint8_t *)blk;
    size_t n = blk->length;
    uint64_t at = r->end;
    int rc = blk->durable > r->durable ? xac_received_begin(&r->received, r->durable)
                                       : 0; /* (1) */

    xac_assert(blk->lsn == r->end);
    xac_assert(blk->generation == r->generation);
    while (rc == 0 && n > 0) {
        uint64_t offset = at & (r->segment_bytes - 1);
        size_t part =
            r->segment_bytes - offset < n ? (size_t)(r->segment_bytes - offset) : n;

        rc = turn_to(r, xac_log_segment_of(at, r->segment_bytes));
        if (rc != 0)
            return rc;
        rc = xac_write_full(r->fd, bytes, part, XAC_SEGMENT_HEADER + offset);
        if (rc != 0)
            return xac_err(rc, "log segment %" PRIu64 ": write", r->number);
        bytes += part;
        at += part;
        n -= part;
    }
    if (rc == 0)
        r->end = at;
    return rc;
}

/* clear_part -- of one segment, the bytes from there on. */
static int
clear_part(int dirfd, uint64_t number, uint64_t offset, uint64_t n)
{
    static const uint8_t zeros[16384];
    char name[XAC_LOG_NAME_MAX];
    int fd, rc = 0;

    xac_assert(number != 0);
    xac_log_segment_name(name, number);
    fd = xac_sys.openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", name);
    for (uint64_t done = 0; rc == 0 && done < n; done += sizeof zeros)
        rc = xac_write_full(fd, zeros,
                            n - done < sizeof zeros ? (size_t)(n - done) : sizeof zeros,
                            XAC_SEGMENT_HEADER + offset + done);
    if (rc == 0 && xac_sys.fdatasync(fd) != 0)
        rc = errno;
    (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s: clear its end", name);
}

int
xac_replica_clear(int dirfd, uint64_t segment_bytes, uint64_t from, uint64_t to)
{
    int rc = 0;

    xac_assert(dirfd >= 0);
    xac_assert((segment_bytes & (segment_bytes - 1)) == 0);
    while (rc == 0 && from < to) {
        uint64_t offset = from & (segment_bytes - 1);
        uint64_t n =
            segment_bytes - offset < to - from ? segment_bytes - offset : to - from;

        rc = clear_part(dirfd, xac_log_segment_of(from, segment_bytes), offset, n);
        from += n;
    }
    return rc;
}

/* ---- Data files --------------------------------------------------------------------- */

int
xac_replica_data(struct xac_replica *r, uint64_t serial, uint64_t offset,
                 const void *bytes, size_t n)
{
    char name[XAC_LOG_NAME_MAX];
    struct xac_owner owner;
    int rc = 0;

    xac_assert(r->dirfd >= 0);
    xac_log_datafile_name(name, r->generation, serial);
    if (offset == 0) {
        xac_close_fd(&r->datafd);
        rc = xac_owner_get(r->dirfd, &owner);
        if (rc == 0)
            rc = xac_newfile_remake(r->dirfd, name, &owner, &r->datafd);
        r->serial = serial;
        r->data_bytes = 0;
    } else if (r->datafd < 0 || serial != r->serial || offset != r->data_bytes) {
        return xac_err(XAC_EDAMAGED, "%s: pieces of it are missing", name);
    }
    if (rc == 0)
        rc = xac_write_full(r->datafd, bytes, n, offset);
    if (rc != 0)
        return xac_err(rc, "%s: write", name);
    r->data_bytes += n;
    return 0;
}

int
xac_replica_data_end(struct xac_replica *r)
{
    char name[XAC_LOG_NAME_MAX];
    int rc = 0;

    xac_assert(r->dirfd >= 0);
    if (r->datafd < 0)
        return 0;
    xac_log_datafile_name(name, r->generation, r->serial);
    if (xac_sys.fdatasync(r->datafd) != 0)
        rc = errno;
    xac_close_fd(&r->datafd);
    if (rc == 0)
        rc = xac_sync_dir(r->dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s: sync", name);
}
