/* SPDX-License-Identifier: MIT */
/*
 * sys_mmap.c -- the same B+-tree built without libxac, on a plain shared mapping.
 *
 * WHAT      trees/btree.c compiled serially, in a file mapped with MAP_SHARED; one
 *           process.  The file is zero-filled and synced first, so that the inserts
 *           change no metadata.
 * DURABLE   fdatasync(2) of the file after each insert.  On Linux that writes just the
 *           pages made dirty since the last one, as msync(MS_SYNC) of those pages would.
 *           Each insert is then on disk, but is not atomic: a crash in the middle of a
 *           sync can leave a torn tree, which the other systems exclude.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/systems/tree_kind.h"

struct mapped_tree {
    const struct bench_tree_kind *kind;
    union bench_tree tree;
    int fd;
    void *base;  /* MAP_FAILED before the mapping                                  */
    size_t size; /* bytes mapped                                                   */
    bool durable;
    uint64_t syncs;
};

static int
mmap_close(void *handle)
{
    struct mapped_tree *m = handle;
    int rc = 0;

    if (m->base != MAP_FAILED && munmap(m->base, m->size) != 0)
        rc = errno;
    if (m->fd >= 0 && close(m->fd) != 0 && rc == 0)
        rc = errno;
    free(m);
    return rc;
}

/* map_tree -- file, mapping and tree; ret 0 or errno. */
static int
map_tree(struct mapped_tree *m, const struct bench_config *config, bool first)
{
    const struct bench_tree_config sizes = {.count = config->count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = (uint32_t)config->block_bytes};
    char path[PATH_MAX];

    m->size = m->kind->size(&sizes);
    snprintf(path, sizeof path, "%s/insert.tree", config->dir);
    m->fd = first ? bench_zero_file(path, m->size) : open(path, O_RDWR | O_CLOEXEC);
    if (m->fd < 0)
        return errno;
    m->base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (m->base == MAP_FAILED)
        return errno;
    return first ? m->kind->create(&m->tree, m->base, m->size, &sizes)
                 : m->kind->open(&m->tree, m->base, m->size);
}

static int
open_kind(const struct bench_tree_kind *kind, const struct bench_config *config,
          bool first, void **handlep)
{
    struct mapped_tree *m = calloc(1, sizeof *m);
    int rc;

    if (m == NULL)
        return ENOMEM;
    m->kind = kind;
    m->base = MAP_FAILED;
    m->fd = -1;
    m->durable = config->durable;
    rc = map_tree(m, config, first);
    if (rc != 0) {
        (void)mmap_close(m);
        return rc;
    }
    *handlep = m;
    return 0;
}

static int
mmap_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_kind(&bench_kind_btree_serial, config, first, handlep);
}

static int
mmap_co_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_kind(&bench_kind_cobtree_serial, config, first, handlep);
}

/* update -- insert or put, and what makes it durable. */
static int
update(struct mapped_tree *m, const void *key, const void *value, int mode)
{
    int rc = m->kind->insert(&m->tree, key, value, mode);

    if (rc != 0 || !m->durable)
        return rc;
    m->syncs++;
    return fdatasync(m->fd) == 0 ? 0 : errno;
}

static int
mmap_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp;
    return update(handle, key, value, TREE_ADD);
}

static int
mmap_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp;
    return update(handle, key, value, TREE_PUT);
}

static int
mmap_find(void *handle, const void *key, void *value)
{
    struct mapped_tree *m = handle;

    return m->kind->search(&m->tree, key, value);
}

static int
mmap_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct mapped_tree *m = handle;

    return m->kind->scan(&m->tree, from, visit, arg);
}

static int
mmap_counters(void *handle, struct bench_counters *out)
{
    struct mapped_tree *m = handle;

    out->syncs = m->syncs;
    return 0;
}

static const char *
mmap_explain(int code)
{
    return strerror(code);
}

#define MMAP_OPERATIONS                                                        \
 .insert = mmap_insert, .put = mmap_put, .find = mmap_find, .scan = mmap_scan, \
 .counters = mmap_counters, .close = mmap_close, .explain = mmap_explain

const struct bench_system bench_mmap = {
    .name = "mmap",
    .what = "the same B+-tree without libxac, on a MAP_SHARED file; one process",
    .durably = "fdatasync of the file after each insert (durable but not atomic)",
    .abilities = BENCH_NONDURABLE | BENCH_KEEPS,
    .open = mmap_open,
    MMAP_OPERATIONS,
};

const struct bench_system bench_mmap_co = {
    .name = "mmap-co",
    .what = "the cache-oblivious B-tree without libxac, likewise",
    .durably = "as mmap",
    .abilities = BENCH_NONDURABLE | BENCH_KEEPS,
    .open = mmap_co_open,
    MMAP_OPERATIONS,
};
