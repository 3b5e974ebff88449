/* SPDX-License-Identifier: MIT */
/*
 * log_put.c -- see log_put.h.
 */
#include <config.h>

#include "log/log_put.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/log_format.h"
#include "log/log_name.h"
#include "log/log_segment.h"

#define CHUNK ((size_t)1 << 20)

/* segment_make -- empty, with its length and header. */
static int
segment_make(int dirfd, const char *name, const struct xac_owner *owner,
             const struct xac_log_piece *p, uint64_t number, int *fdp)
{
    int rc = xac_newfile_make(dirfd, name, owner, fdp);

    xac_assert(number != 0);
    if (rc == 0
        && xac_sys.ftruncate(*fdp, (off_t)(XAC_SEGMENT_HEADER + p->segment_bytes)) != 0)
        rc = errno;
    if (rc == 0)
        rc = xac_log_segment_mark(*fdp, p->identity, number, p->segment_bytes,
                                  p->page_size);
    return rc == 0 ? 0 : xac_err(rc, "%s: make", name);
}

/* segment_open -- the one that has an LSN (1). */
static int
segment_open(int dirfd, const struct xac_owner *owner, const struct xac_log_piece *p,
             uint64_t lsn, int *fdp)
{
    uint64_t number = xac_log_segment_of(lsn, p->segment_bytes);
    char name[XAC_LOG_NAME_MAX];
    struct stat st;

    xac_assert(lsn >= p->start && lsn < p->end);
    xac_log_segment_name(name, number);
    *fdp = xac_sys.openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (*fdp >= 0)
        return xac_log_segment_verify(*fdp, name, p->identity, number, p->segment_bytes,
                                      p->page_size, &st);
    if (errno != ENOENT)
        return xac_err(errno, "%s: open", name);
    return segment_make(dirfd, name, owner, p, number, fdp);
}

/* put_bytes -- n bytes of the piece, of one segment. */
static int
put_bytes(const struct xac_log_piece *p, int fd, uint64_t lsn, uint64_t n, uint8_t *chunk)
{
    uint64_t to = XAC_SEGMENT_HEADER + (lsn & (p->segment_bytes - 1));
    int rc = 0;

    for (uint64_t done = 0; rc == 0 && done < n;) {
        size_t some = n - done < CHUNK ? (size_t)(n - done) : CHUNK, got = 0;

        rc = xac_read_full(p->fd, chunk, some, lsn - p->start + done, &got);
        if (rc == 0 && got < some)
            rc = EIO;
        if (rc == 0)
            rc = xac_write_full(fd, chunk, some, to + done);
        done += some;
    }
    if (rc == 0 && xac_sys.fsync(fd) != 0) /* (2) */
        rc = errno;
    return rc == 0 ? 0 : xac_err(rc, "log at LSN %" PRIu64 ": write", lsn);
}

int
xac_log_put(int dirfd, const struct xac_owner *owner, const struct xac_log_piece *piece)
{
    uint8_t *chunk = (uint8_t *)malloc(CHUNK);
    int rc = chunk == NULL ? xac_err(ENOMEM, "log") : 0;

    xac_assert(piece->start <= piece->end);
    xac_assert((piece->segment_bytes & (piece->segment_bytes - 1)) == 0);
    for (uint64_t lsn = piece->start; rc == 0 && lsn < piece->end;) {
        uint64_t n = piece->segment_bytes - (lsn & (piece->segment_bytes - 1));
        int fd = -1;

        if (n > piece->end - lsn)
            n = piece->end - lsn;
        rc = segment_open(dirfd, owner, piece, lsn, &fd);
        if (rc == 0)
            rc = put_bytes(piece, fd, lsn, n, chunk);
        xac_close_fd(&fd);
        lsn += n;
    }
    free(chunk);
    return rc;
}
