/* SPDX-License-Identifier: MIT */
/*
 * log.c -- the log of a space (space_format.h): one record for each operation, bytes of pages.
 *
 * A position is a number of bytes since the space was opened; position - base is the offset in
 * the file.  Records are made by threads, appended under the lock while the pages they describe
 * are latched, so that they are in the order of the changes.
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"

#define BUFFER_BYTES (4 * (size_t)SWZ_RECORD)
#define BUFFER_HAND  (SWZ_RECORD) /* handed to the system from here on */

static uint64_t
sum_of(const struct swz_record *r, uint64_t epoch, uint64_t offset)
{
    return xac_xxh64(r + 1, r->n_used - sizeof *r) + epoch + offset;
}

/* ---- Making records ------------------------------------------------------------------ */

void
swz_log_add(struct swz_thread *th, uint32_t page, const void *data, size_t offset,
            size_t n)
{
    struct swz_piece piece = {.page = page,
                              .offset = (uint16_t)offset,
                              .length = (uint16_t)n};

    if (th->space->log.fd < 0 || n == 0)
        return;
    if (th->n_record == 0)
        th->n_record = sizeof(struct swz_record);
    xac_require(th->n_record + sizeof piece + n + 8 <= SWZ_RECORD);
    memcpy(th->record + th->n_record, &piece, sizeof piece);
    memcpy(th->record + th->n_record + sizeof piece, (const char *)data + offset, n);
    th->n_record += (uint32_t)(sizeof piece + n);
}

void
swz_log_add_page(struct swz_thread *th, const struct swz_page *page)
{
    static _Thread_local alignas(64) unsigned char copy[SWZ_PAGE_MAX];

    if (th->space->log.fd < 0)
        return;
    swz_page_copy_plain(th->space, page->node, copy);
    swz_log_add(th, page_number(th->space, page->frame), copy, 0, th->space->page_bytes);
}

/* write_out -- under lock: what is buffered. */
static int
write_out(struct swz_log *log)
{
    if (log->rc != 0 || log->n_buffered == 0)
        return log->rc;
    log->rc =
        xac_write_full(log->fd, log->buffer, log->n_buffered, log->written - log->base);
    if (log->rc != 0)
        return log->rc = xac_err(log->rc, "the log of a space cannot be written");
    log->written += log->n_buffered;
    log->n_buffered = 0;
    return 0;
}

uint64_t
swz_log_append(struct swz_thread *th)
{
    struct swz_log *log = &th->space->log;
    struct swz_record *r = (struct swz_record *)(void *)th->record;
    uint32_t n_padded = (th->n_record + 7) & ~UINT32_C(7);

    if (log->fd < 0 || th->n_record == 0)
        return 0;
    memset(th->record + th->n_record, 0, n_padded - th->n_record);
    r->n_bytes = n_padded;
    r->n_used = th->n_record;
    th->n_record = 0;
    (void)pthread_mutex_lock(&log->lock);
    r->sum = sum_of(r, log->epoch, log->end - log->base);
    if (log->n_buffered + n_padded > BUFFER_BYTES)
        (void)write_out(log); /* an error stays in log->rc */
    if (log->rc == 0) {
        memcpy(log->buffer + log->n_buffered, r, n_padded);
        log->n_buffered += n_padded;
        log->end += n_padded;
        if (log->n_buffered >= BUFFER_HAND)
            (void)write_out(log);
    }
    th->lsn = log->end;
    (void)pthread_mutex_unlock(&log->lock);
    swz_event(th->space, SWZ_LOG_BYTES, n_padded);
    return th->lsn;
}

int
swz_log_write(struct swz_log *log, uint64_t upto)
{
    int rc;

    if (log->fd < 0)
        return 0;
    (void)pthread_mutex_lock(&log->lock);
    rc = upto > log->written ? write_out(log) : log->rc;
    (void)pthread_mutex_unlock(&log->lock);
    return rc;
}

int
swz_log_sync(struct swz_space *s, uint64_t upto)
{
    struct swz_log *log = &s->log;
    int rc;

    /* Acquire pairs with the store below; the second thread finds it done. */
    if (log->fd < 0 || upto <= atomic_load_explicit(&log->synced, memory_order_acquire))
        return 0;
    (void)pthread_mutex_lock(&log->lock);
    rc = log->rc;
    if (rc == 0 && upto > atomic_load_explicit(&log->synced, memory_order_relaxed)) {
        rc = write_out(log);
        if (rc == 0 && xac_sys.fdatasync(log->fd) != 0)
            rc = log->rc = xac_err(errno, "the log of a space cannot be synced");
        if (rc == 0) {
            /* Release pairs with the load above. */
            atomic_store_explicit(&log->synced, log->written, memory_order_release);
            swz_event(s, SWZ_LOG_SYNCS, 1);
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
    return rc;
}

int
swz_log_error(struct swz_log *log)
{
    int rc;

    if (log->fd < 0)
        return 0;
    (void)pthread_mutex_lock(&log->lock);
    rc = log->rc;
    (void)pthread_mutex_unlock(&log->lock);
    return rc;
}

/* ---- Recovery ------------------------------------------------------------------------ */

/* record_play -- its pieces into the file of pages; EUCLEAN if they do not fit in it. */
static int
record_play(struct swz_space *s, const struct swz_record *r)
{
    const char *at = (const char *)(r + 1), *end = (const char *)r + r->n_used;

    while (at < end) {
        struct swz_piece piece;
        int rc;

        if ((size_t)(end - at) < sizeof piece)
            return EUCLEAN;
        memcpy(&piece, at, sizeof piece);
        at += sizeof piece;
        if (piece.length > end - at || piece.page >= s->store.n_pages
            || (uint32_t)piece.offset + piece.length > s->page_bytes)
            return EUCLEAN;
        rc = xac_write_full(s->store.fd, at, piece.length,
                            (uint64_t)piece.page * s->page_bytes + piece.offset);
        if (rc != 0)
            return rc;
        at += piece.length;
    }
    return 0;
}

/* log_play -- all records up to the first that is not valid. */
static int
log_play(struct swz_space *s, const char *bytes, size_t n_bytes)
{
    struct swz_log_header header;
    uint64_t offset = sizeof header;
    int rc = 0;

    if (n_bytes < sizeof header)
        return xac_err(EUCLEAN, "the file \"log\" of a space is cut short");
    memcpy(&header, bytes, sizeof header);
    if (header.magic != SWZ_LOG_MAGIC)
        return xac_err(EUCLEAN, "the file \"log\" is not a space's");
    s->log.epoch = header.epoch;
    while (rc == 0 && n_bytes - offset >= sizeof(struct swz_record)) {
        const struct swz_record *r = (const void *)(bytes + offset);

        if (r->n_bytes < sizeof *r || r->n_bytes > n_bytes - offset || r->n_bytes % 8 != 0
            || r->n_used < sizeof *r || r->n_used > r->n_bytes
            || r->sum != sum_of(r, header.epoch, offset))
            break;
        rc = record_play(s, r);
        if (rc != 0)
            return xac_err(rc, "the log of a space cannot be played at offset %llu",
                           (unsigned long long)offset);
        offset += r->n_bytes;
    }
    return rc;
}

int
swz_log_recover(struct swz_space *s)
{
    int fd = xac_sys.openat(s->dir_fd, "log", O_RDONLY | O_CLOEXEC, 0);
    char *bytes = NULL;
    struct stat st;
    size_t got;
    int rc;

    if (fd < 0)
        return errno == ENOENT ? 0
                               : xac_err(errno, "the log of a space cannot be opened");
    if (xac_sys.fstat(fd, &st) != 0) {
        rc = xac_err(errno, "the log of a space cannot be read");
        goto out;
    }
    bytes = malloc((size_t)st.st_size + 8);
    if (bytes == NULL) {
        rc = xac_err(ENOMEM, "no memory for a log of %lld bytes", (long long)st.st_size);
        goto out;
    }
    rc = xac_read_full(fd, bytes, (size_t)st.st_size, 0, &got);
    if (rc == 0)
        rc = log_play(s, bytes, got);
    if (rc == 0)
        rc = swz_store_sync(&s->store);
out:
    free(bytes);
    (void)xac_sys.close(fd);
    return rc;
}

/* ---- Epochs -------------------------------------------------------------------------- */

/* fresh_log -- a file with nothing but the header, under its final name; ret descriptor. */
static int
fresh_log(struct swz_space *s, uint64_t epoch, int *fdp)
{
    struct swz_log_header header = {.magic = SWZ_LOG_MAGIC, .epoch = epoch};
    int fd = xac_sys.openat(s->dir_fd, "log.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                            0666);
    int rc;

    if (fd < 0)
        return xac_err(errno, "a log of a space cannot be created");
    rc = xac_write_full(fd, &header, sizeof header, 0);
    if (rc == 0 && xac_sys.fsync(fd) != 0)
        rc = errno;
    if (rc == 0 && xac_sys.renameat(s->dir_fd, "log.new", s->dir_fd, "log") != 0)
        rc = errno;
    if (rc == 0)
        rc = xac_sync_dir(s->dir_fd);
    if (rc != 0) {
        (void)xac_sys.close(fd);
        return xac_err(rc, "a log of a space cannot be begun");
    }
    *fdp = fd;
    return 0;
}

int
swz_log_begin(struct swz_space *s)
{
    struct swz_log *log = &s->log;
    int fd = -1;
    int rc;

    if (log->buffer == NULL) {
        log->buffer = malloc(BUFFER_BYTES);
        if (log->buffer == NULL)
            return xac_err(ENOMEM, "no memory for the log of a space");
    }
    (void)pthread_mutex_lock(&log->lock);
    rc = log->rc != 0 ? log->rc : fresh_log(s, log->epoch + 1, &fd);
    if (rc == 0) {
        if (log->fd >= 0)
            (void)xac_sys.close(log->fd);
        log->fd = fd;
        log->epoch++;
        xac_assert(log->n_buffered == 0 && log->written == log->end);
        log->base = log->end - sizeof(struct swz_log_header);
        /* Pairs with swz_log_sync(). */
        atomic_store_explicit(&log->synced, log->end, memory_order_release);
    }
    (void)pthread_mutex_unlock(&log->lock);
    return rc;
}

void
swz_log_close(struct swz_log *log)
{
    if (log->fd >= 0)
        (void)xac_sys.close(log->fd);
    free(log->buffer);
}
