/* SPDX-License-Identifier: MIT */
/*
 * store.c -- where a space's pages are: a file, or memory that can be as slow as a device.
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "err.h"
#include "sys.h"

static uint64_t
now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* delay -- a device's time; the processor is somebody else's meanwhile. */
static void
delay(uint64_t ns)
{
    uint64_t end;

    if (ns == 0)
        return;
    end = now_ns() + ns;
    while (now_ns() < end)
        (void)sched_yield();
}

int
swz_store_read(void *store, uint64_t page, void *data)
{
    struct swz_store *s = store;
    int rc = atomic_load_explicit(&s->read_rc, memory_order_relaxed);
    size_t got;

    if (rc != 0)
        return rc;
    if (s->fd < 0) {
        delay(s->delay_ns);
        memcpy(data, s->memory + page * s->page_bytes, s->page_bytes);
    } else {
        rc = xac_read_full(s->fd, data, s->page_bytes, page * s->page_bytes, &got);
        if (rc != 0)
            return xac_err(rc, "page %llu of a space cannot be read",
                           (unsigned long long)page);
    }
    return 0;
}

int
swz_store_write(void *store, uint64_t page, const void *data)
{
    struct swz_store *s = store;
    int rc = 0;

    if (s->fd < 0)
        memcpy(s->memory + page * s->page_bytes, data, s->page_bytes);
    else
        rc = xac_write_full(s->fd, data, s->page_bytes, page * s->page_bytes);
    if (rc != 0)
        return xac_err(rc, "page %llu of a space cannot be written",
                       (unsigned long long)page);
    return 0;
}

/* file_open -- sparse, as long as it has to be. */
static int
file_open(struct swz_store *s, int dir_fd, const struct swz_config *config)
{
    uint64_t n_bytes = (uint64_t)s->n_pages * s->page_bytes;
    struct stat st;

    s->fd =
        xac_sys.openat(dir_fd, "pages",
                       O_RDWR | O_CREAT | O_CLOEXEC | (config->is_direct ? O_DIRECT : 0),
                       0666);
    if (s->fd < 0)
        return xac_err(errno, "the file \"pages\" of a space cannot be opened");
    if (xac_sys.fstat(s->fd, &st) != 0
        || ((uint64_t)st.st_size < n_bytes
            && xac_sys.ftruncate(s->fd, (off_t)n_bytes) != 0))
        return xac_err(errno, "the file \"pages\" cannot be made %llu bytes long",
                       (unsigned long long)n_bytes);
    return 0;
}

int
swz_store_open(struct swz_store *store, int dir_fd, const struct swz_config *config)
{
    size_t n_bytes = (size_t)store->n_pages * store->page_bytes;
    void *memory;

    store->fd = -1;
    if (dir_fd >= 0)
        return file_open(store, dir_fd, config);
    memory = xac_sys.mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return xac_err(ENOMEM, "no memory for a space of %zu bytes", n_bytes);
    store->memory = memory;
    return 0;
}

int
swz_store_sync(struct swz_store *store)
{
    if (store->fd >= 0 && xac_sys.fdatasync(store->fd) != 0)
        return xac_err(errno, "the file \"pages\" of a space cannot be synced");
    return 0;
}

void
swz_store_close(struct swz_store *store)
{
    if (store->memory != NULL)
        (void)xac_sys.munmap(store->memory, (size_t)store->n_pages * store->page_bytes);
    if (store->fd >= 0)
        (void)xac_sys.close(store->fd);
}
