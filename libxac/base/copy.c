/* SPDX-License-Identifier: MIT */
/*
 * copy.c -- see copy.h.
 */
#include <config.h>

#include "base/copy.h"

#include <errno.h>
#include <unistd.h>

#include "base/sys.h"

int
xac_copy_range(int in, int out, uint64_t at, uint64_t end, struct xac_copier *copier)
{
    uint8_t *chunk = copier->chunk;

    while (at < end) {
        size_t want = end - at < XAC_COPY_CHUNK ? (size_t)(end - at) : XAC_COPY_CHUNK;
        size_t got;
        int rc = xac_read_full(in, chunk, want, at, &got);

        if (rc == 0 && got > 0)
            rc = xac_write_full(out, chunk, got, at);
        if (rc != 0 || got == 0)
            return rc;
        copier->bytes += got;
        at += got;
        if (copier->progress != NULL)
            copier->progress(copier->progress_arg, copier->bytes);
    }
    return 0;
}

/* copy_data -- what of a file is not a hole.  Where the file system cannot say, all. */
static int
copy_data(int in, int out, uint64_t length, struct xac_copier *copier)
{
    off_t at = 0;
    int rc = 0;

    while (rc == 0 && (uint64_t)at < length) {
        off_t data = lseek(in, at, SEEK_DATA);
        off_t hole;

        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0)
            return xac_copy_range(in, out, 0, length, copier);
        hole = lseek(in, data, SEEK_HOLE);
        if (hole < 0 || (uint64_t)hole > length)
            hole = (off_t)length;
        rc = xac_copy_range(in, out, (uint64_t)data, (uint64_t)hole, copier);
        at = hole;
    }
    return rc;
}

int
xac_copy_file(int in, int out, struct xac_copier *copier)
{
    struct stat st;

    if (xac_sys.fstat(in, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EINVAL;
    if (xac_sys.ftruncate(out, st.st_size) != 0)
        return errno;
    return copy_data(in, out, (uint64_t)st.st_size, copier);
}
