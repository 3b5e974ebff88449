/* SPDX-License-Identifier: MIT */
/*
 * undo.c -- see undo.h.
 *
 * LOG       A header of one page: magic number, epoch.  Records behind it: epoch, number of the
 *           page, checksum of these and of the page, the page.
 */
#include <config.h>

#include "bench/systems/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <xxhash.h>

#include "bench/kit/util.h"

#define MAGIC        UINT64_C(0x6f646e752d636178) /* "xac-undo"                        */
#define HEADER_BYTES 4096
#define LOG_BYTES    (UINT64_C(16) << 20) /* that are there before; it grows if it has to */
#define PAGE_MAX     65536u

struct header {
    uint64_t magic, epoch;
};

struct record {
    uint64_t epoch, page, sum;
};

/* The one of this process, for the handler. */
static struct bench_undo *active;
static struct sigaction before;

/* sum_of -- of a record and its page. */
static uint64_t
sum_of(const struct record *r, const void *page, size_t n)
{
    return XXH3_64bits(page, n) ^ XXH3_64bits(r, offsetof(struct record, sum));
}

static off_t
record_at(const struct bench_undo *u, uint64_t i)
{
    return (off_t)(HEADER_BYTES + i * (sizeof(struct record) + u->page_bytes));
}

static int
sync_fd(struct bench_undo *u, int fd)
{
    u->syncs++;
    return fdatasync(fd) == 0 ? 0 : errno;
}

/* ---- The first store to a page ------------------------------------------------------------- */

/* save -- the before-image of a page; ret 0 or errno.  Runs in the handler. */
static int
save(struct bench_undo *u, uint64_t page)
{
    unsigned char *at = u->base + page * u->page_bytes;
    struct record r = {.epoch = u->epoch, .page = page};
    const struct iovec parts[] = {{&r, sizeof r}, {at, u->page_bytes}};
    ssize_t n;

    r.sum = sum_of(&r, at, u->page_bytes);
    n = pwritev(u->log_fd, parts, 2, record_at(u, u->n_images));
    if (n != (ssize_t)(sizeof r + u->page_bytes))
        return n < 0 ? errno : EIO;
    u->n_images++;
    u->log_bytes += (uint64_t)n;
    return u->syncs_each ? sync_fd(u, u->log_fd) : 0;
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
    struct bench_undo *u = active;
    uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)(u != NULL ? u->base : NULL);
    int saved = errno, rc;

    (void)context;
    if (u == NULL || at >= u->size || !u->is_open || u->error != 0) {
        (void)sigaction(sig, &before, NULL); /* it comes again, as what it is */
        return;
    }
    u->traps++;
    rc = save(u, at / u->page_bytes);
    /* An image that is not saved must not be needed: the store is not made. */
    if (rc != 0)
        u->error = rc;
    else if (mprotect(u->base + at / u->page_bytes * u->page_bytes, u->page_bytes,
                      PROT_READ | PROT_WRITE)
             != 0)
        u->error = errno;
    errno = saved;
}

/* ---- Recovery, opening, closing -------------------------------------------------------------- */

/* set_epoch -- the log as it is counts no more; ret 0 or errno. */
static int
set_epoch(struct bench_undo *u, uint64_t epoch)
{
    const struct header h = {MAGIC, epoch};
    ssize_t n = pwrite(u->log_fd, &h, sizeof h, 0);

    if (n != (ssize_t)sizeof h)
        return n < 0 ? errno : EIO;
    u->epoch = epoch;
    u->n_images = 0;
    return sync_fd(u, u->log_fd);
}

/* put_back -- all before-images that count; ret 0 or errno. */
static int
put_back(struct bench_undo *u)
{
    static unsigned char page[PAGE_MAX];
    struct record r;

    for (uint64_t i = 0;; i++) {
        off_t at = record_at(u, i);

        if (pread(u->log_fd, &r, sizeof r, at) != (ssize_t)sizeof r
            || pread(u->log_fd, page, u->page_bytes, at + (off_t)sizeof r)
                   != (ssize_t)u->page_bytes
            || r.epoch != u->epoch || r.sum != sum_of(&r, page, u->page_bytes)
            || r.page >= u->size / u->page_bytes)
            break;
        if (pwrite(u->fd, page, u->page_bytes, (off_t)(r.page * u->page_bytes))
            != (ssize_t)u->page_bytes)
            return errno != 0 ? errno : EIO;
    }
    return sync_fd(u, u->fd);
}

/* recover -- ret 0 or errno. */
static int
recover(struct bench_undo *u)
{
    struct header h = {0};
    ssize_t n = pread(u->log_fd, &h, sizeof h, 0);
    int rc;

    if (n != (ssize_t)sizeof h)
        return n < 0 ? errno : EIO;
    if (h.magic != MAGIC)
        return h.magic == 0 ? set_epoch(u, 1) : EINVAL; /* it has just been made */
    u->epoch = h.epoch;
    rc = put_back(u);
    return rc != 0 ? rc : set_epoch(u, h.epoch + 1);
}

/* open_files -- ret 0 or errno. */
static int
open_files(struct bench_undo *u, const char *path)
{
    char log[PATH_MAX];

    snprintf(log, sizeof log, "%s.undo", path);
    u->fd = open(path, O_RDWR | O_CLOEXEC);
    u->log_fd = open(log, O_RDWR | O_CLOEXEC);
    if (u->fd < 0)
        u->fd = bench_zero_file(path, u->size);
    if (u->log_fd < 0)
        u->log_fd = bench_zero_file(log, LOG_BYTES);
    return u->fd < 0 || u->log_fd < 0 ? errno : 0;
}

/* map -- read-only, with the handler for stores; ret 0 or errno. */
static int
map(struct bench_undo *u)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    void *base = mmap(NULL, u->size, PROT_READ, MAP_SHARED, u->fd, 0);

    if (base == MAP_FAILED)
        return errno;
    u->base = base;
    active = u;
    return sigaction(SIGSEGV, &action, &before) == 0 ? 0 : errno;
}

int
bench_undo_open(struct bench_undo *u, const char *path, size_t size, bool syncs_each)
{
    int rc;

    *u = (struct bench_undo){.size = size,
                             .page_bytes = (size_t)sysconf(_SC_PAGESIZE),
                             .fd = -1,
                             .log_fd = -1,
                             .syncs_each = syncs_each};
    if (active != NULL || u->page_bytes > PAGE_MAX)
        return EBUSY;
    rc = open_files(u, path);
    rc = rc != 0 ? rc : recover(u);
    rc = rc != 0 ? rc : map(u);
    if (rc != 0)
        (void)bench_undo_close(u);
    return rc;
}

int
bench_undo_close(struct bench_undo *u)
{
    int rc = 0;

    if (active == u) {
        (void)sigaction(SIGSEGV, &before, NULL);
        active = NULL;
    }
    if (u->base != NULL && munmap(u->base, u->size) != 0)
        rc = errno;
    if (u->fd >= 0 && close(u->fd) != 0 && rc == 0)
        rc = errno;
    if (u->log_fd >= 0 && close(u->log_fd) != 0 && rc == 0)
        rc = errno;
    *u = (struct bench_undo){.fd = -1, .log_fd = -1};
    return rc;
}

/* ---- Transactions --------------------------------------------------------------------------------- */

int
bench_undo_begin(struct bench_undo *u)
{
    if (u->is_open || u->error != 0)
        return u->error != 0 ? u->error : EBUSY;
    u->is_open = true;
    return 0;
}

int
bench_undo_commit(struct bench_undo *u)
{
    int rc = u->error;

    u->is_open = false;
    if (rc != 0 || u->n_images == 0)
        return rc;
    if (!u->syncs_each)
        rc = sync_fd(u, u->log_fd); /* before-images before their pages */
    rc = rc != 0 ? rc : sync_fd(u, u->fd);
    rc = rc != 0 ? rc : set_epoch(u, u->epoch + 1);
    if (rc == 0 && mprotect(u->base, u->size, PROT_READ) != 0)
        rc = errno;
    u->error = rc;
    return rc;
}
