/* SPDX-License-Identifier: MIT */
/*
 * two_syncs.c -- see two_syncs.h.
 */
#include <config.h>

#include "bench/kit/two_syncs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libxac/base/sys.h"

#define RECORD_BYTES 512u /* of the last write, that come once more                    */

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t n, off_t offset);
static int (*real_fdatasync)(int fd);
static int (*real_close)(int fd);

/* The end of what this thread has written last. */
static _Thread_local struct {
    int fd;
    off_t at;
    size_t n; /* 0: nothing since the last sync                                        */
    unsigned char bytes[RECORD_BYTES];
} last;

static ssize_t
noting_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    ssize_t done = real_pwrite(fd, buf, n, offset);

    if (done > 0) {
        last.fd = fd;
        last.n = (size_t)done < RECORD_BYTES ? (size_t)done : RECORD_BYTES;
        last.at = offset + done - (off_t)last.n;
        memcpy(last.bytes, (const unsigned char *)buf + done - last.n, last.n);
    }
    return done;
}

/* forgetting_close -- the number may come again, as another file. */
static int
forgetting_close(int fd)
{
    if (last.fd == fd)
        last.n = 0;
    return real_close(fd);
}

static uint64_t n_more; /* syncs that the library does not know of                     */

uint64_t
bench_two_syncs_more(void)
{
    return n_more;
}

/* is_zero -- so ends what room is made by; a block of the log ends with a record. */
static bool
is_zero(const unsigned char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] == 0)
        i++;
    return i == n;
}

static int
second_fdatasync(int fd)
{
    ssize_t n;

    if (real_fdatasync(fd) != 0)
        return -1;
    if (last.n == 0 || last.fd != fd || is_zero(last.bytes, last.n))
        return 0;
    n = real_pwrite(fd, last.bytes, last.n, last.at);
    if (n >= 0 && (size_t)n != last.n)
        errno = EIO;
    if (n < 0 || (size_t)n != last.n)
        return -1;
    last.n = 0;
    n_more++;
    return real_fdatasync(fd);
}

void
bench_two_syncs(void)
{
    if (real_pwrite != NULL)
        return;
    real_pwrite = xac_sys.pwrite;
    real_fdatasync = xac_sys.fdatasync;
    real_close = xac_sys.close;
    xac_sys.pwrite = noting_pwrite;
    xac_sys.fdatasync = second_fdatasync;
    xac_sys.close = forgetting_close;
}
