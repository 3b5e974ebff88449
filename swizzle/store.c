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

#include "base/err.h"
#include "base/sys.h"

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

/*
 * children_are_pages -- an inner node's words are numbers of pages (I8): what is read has been
 * written by anybody.
 */
static bool
children_are_pages(const struct swz_space *s, uint64_t page,
                   const struct btree_node *node)
{
    const struct btree *t;

    if (page == 0 || node->level == 0 || node->level == BTREE_LEVEL_FREE)
        return true;
    if (node->level >= BTREE_DEPTH_MAX || node->zero >= SWZ_TREES)
        return false;
    t = &s->trees[node->zero].layout;
    if (node->n > t->inner_cap || node->link >= s->store.n_pages)
        return false;
    for (unsigned i = 0; i < node->n; i++)
        if (node->slots[i] >= t->inner_cap
            || *cell_child(t, (struct btree_node *)(uintptr_t)node, node->slots[i])
                   >= s->store.n_pages)
            return false;
    return true;
}

/*
 * memory_read -- of two threads that miss a page one may still be reading when the other one has
 * changed it and writes it back; the pool throws away what the first has read.
 */
XAC_RACY static void
memory_read(const struct swz_store *s, uint64_t page, void *data)
{
    const char *from = s->memory + page * s->page_bytes;
#ifdef __SANITIZE_THREAD__ /* which looks into memcpy(), also of ours */
    for (uint32_t i = 0; i < s->page_bytes; i++)
        ((volatile char *)data)[i] = from[i];
#else
    memcpy(data, from, s->page_bytes);
#endif
}

int
swz_store_read(void *space, uint64_t page, void *data)
{
    struct swz_store *s = &((struct swz_space *)space)->store;
    int rc = atomic_load_explicit(&s->read_rc, memory_order_relaxed);
    size_t got;

    if (rc != 0)
        return rc;
    if (s->fd < 0) {
        delay(s->delay_ns);
        memory_read(s, page, data);
    } else {
        rc = xac_read_full(s->fd, data, s->page_bytes, page * s->page_bytes, &got);
        if (rc != 0)
            return xac_err(rc, "page %llu of a space cannot be read",
                           (unsigned long long)page);
    }
    if (!children_are_pages(space, page, data))
        return xac_err(EUCLEAN, "page %llu of a space is damaged",
                       (unsigned long long)page);
    return 0;
}

int
swz_store_write(void *space, uint64_t page, const void *data)
{
    struct swz_store *s = &((struct swz_space *)space)->store;
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
