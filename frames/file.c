/* SPDX-License-Identifier: MIT */
/*
 * file.c -- pages of a pool in a file: pread and pwrite, past the page cache if asked for, and many
 * reads at once by io_uring where the kernel has it.
 *
 * There is one ring.  A thread that finds another one using it reads for itself, one page after the
 * other, rather than wait; and so does everybody where there is no ring.
 */
#include <config.h>

#include "xac_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/sys.h"
#include "frames/uring.h"

#define DIRECT_ALIGN 4096 /* of the bytes of a page and of its place */

struct xac_frames_file {
    int fd;
    uint32_t page_bytes;
    unsigned flags;
    struct uring ring;
    pid_t ring_owner; /* a child of it shares the file, not the ring */
    xac_shared _Atomic uint32_t ring_used;
};

/* ---- One page ---------------------------------------------------------------------- */

static int
file_read(void *arg, uint64_t page, void *data)
{
    const struct xac_frames_file *f = arg;
    size_t got; /* behind the end there are zeros */

    xac_assert(f->page_bytes > 0);
    return xac_read_full(f->fd, data, f->page_bytes, page * f->page_bytes, &got);
}

static int
file_write(void *arg, uint64_t page, const void *data)
{
    const struct xac_frames_file *f = arg;

    xac_assert(f->page_bytes > 0);
    return xac_write_full(f->fd, data, f->page_bytes, page * f->page_bytes);
}

/* ---- Many -------------------------------------------------------------------------- */

/* many_by_ring -- ret false if nothing was read so. */
static bool
many_by_ring(struct xac_frames_file *f, unsigned n, const uint64_t *pages,
             void *const *datas, int *rcs)
{
    uint32_t is_free = 0;
    bool done;

    xac_assert(n <= XAC_FRAMES_MANY);
    if ((f->flags & XAC_FRAMES_NO_URING) != 0 || f->ring_owner != getpid()
        || !atomic_compare_exchange_strong_explicit(/* pairs with the store below */
                                                    &f->ring_used, &is_free, 1,
                                                    memory_order_acquire,
                                                    memory_order_relaxed))
        return false;
    for (unsigned i = 0; i < n; i++)
        xac_uring_read(&f->ring, f->fd, datas[i], f->page_bytes, pages[i] * f->page_bytes,
                       i);
    done = xac_uring_wait(&f->ring, n, rcs) == 0;
    if (done) /* else the ring stays in use: it is of none */
        /* Pairs with the step above: the ring as it is left here. */
        atomic_store_explicit(&f->ring_used, 0, memory_order_release);
    return done;
}

static void
file_read_many(void *arg, unsigned n, const uint64_t *pages, void *const *datas, int *rcs)
{
    struct xac_frames_file *f = arg;
    bool by_ring = many_by_ring(f, n, pages, datas, rcs);

    xac_assert(n <= XAC_FRAMES_MANY);
    /* What came short or not at all is read again: the end of the file, a signal. */
    for (unsigned i = 0; i < n; i++)
        if (!by_ring || rcs[i] != (int)f->page_bytes)
            rcs[i] = by_ring && rcs[i] < 0 && rcs[i] != -EINTR && rcs[i] != -EAGAIN
                         ? -rcs[i]
                         : file_read(f, pages[i], datas[i]);
        else
            rcs[i] = 0;
}

/* ---- Open, close ------------------------------------------------------------------- */

int
xac_frames_file_open(const char *path, uint32_t page_bytes, unsigned flags,
                     struct xac_frames_io *io, struct xac_frames_file **filep)
{
    bool direct = (flags & XAC_FRAMES_DIRECT) != 0;
    struct xac_frames_file *f;
    int fd = -1;

    if (page_bytes == 0 || (flags & ~(XAC_FRAMES_DIRECT | XAC_FRAMES_NO_URING)) != 0
        || (direct && page_bytes % DIRECT_ALIGN != 0))
        return EINVAL;
    if (direct)
        fd =
            xac_sys.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0666);
    if (fd < 0 && (!direct || errno == EINVAL)) { /* a file system without */
        flags &= ~XAC_FRAMES_DIRECT;
        fd = xac_sys.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        return errno;
    f = calloc(1, sizeof *f);
    if (f == NULL) {
        (void)xac_sys.close(fd);
        return ENOMEM;
    }
    *f = (struct xac_frames_file){.fd = fd,
                                  .page_bytes = page_bytes,
                                  .flags = flags,
                                  .ring_owner = getpid()};
    if ((flags & XAC_FRAMES_NO_URING) == 0
        && xac_uring_open(&f->ring, XAC_FRAMES_MANY) != 0)
        f->flags |= XAC_FRAMES_NO_URING;
    io->read = file_read;
    io->write = file_write;
    io->read_many = file_read_many;
    io->arg = f;
    *filep = f;
    return 0;
}

int
xac_frames_file_sync(struct xac_frames_file *file)
{
    xac_assert(file->fd >= 0);
    return xac_sys.fdatasync(file->fd) == 0 ? 0 : errno;
}

unsigned
xac_frames_file_flags(const struct xac_frames_file *file)
{
    return file->flags;
}

void
xac_frames_file_close(struct xac_frames_file *file)
{
    xac_assert(file->fd >= 0);
    if ((file->flags & XAC_FRAMES_NO_URING) == 0)
        xac_uring_close(&file->ring);
    (void)xac_sys.close(file->fd);
    free(file);
}
