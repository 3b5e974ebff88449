/* SPDX-License-Identifier: MIT */
/*
 * larger_tree.c -- the trees of `larger`, on a plain shared mapping.
 *
 * The kernel is told not to read ahead (MADV_RANDOM), which would fill the little memory with
 * neighbours.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/larger/larger.h"

/* map -- the file, without reading ahead; ret 0 or errno. */
static int
map(struct bench_larger_set *s)
{
    s->base = mmap(NULL, s->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (s->base == MAP_FAILED)
        return errno;
    return madvise(s->base, s->size_bytes, MADV_RANDOM) == 0 ? 0 : errno;
}

static int
tree_create(struct bench_larger_set *s)
{
    const struct bench_tree_config config = {.count = s->count,
                                             .key_size = BENCH_LARGER_KEY,
                                             .block_size = (uint32_t)s->block_bytes,
                                             .scattered = s->scattered};
    int rc;

    s->size_bytes = s->tree_kind->size(&config);
    s->fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->size_bytes) != 0)
        return errno;
    rc = map(s);
    return rc != 0 ? rc : s->tree_kind->create(&s->tree, s->base, s->size_bytes, &config);
}

static int
tree_load(struct bench_larger_set *s, tree_source *source, void *arg)
{
    return s->tree_kind->load(&s->tree, source, arg, s->count);
}

static int
tree_forget(struct bench_larger_set *s)
{
    if (msync(s->base, s->size_bytes, MS_SYNC) != 0
        || munmap(s->base, s->size_bytes) != 0)
        return errno;
    s->base = MAP_FAILED;
    return posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int
tree_reopen(struct bench_larger_set *s)
{
    int rc = map(s);

    return rc != 0 ? rc : s->tree_kind->open(&s->tree, s->base, s->size_bytes);
}

static int
tree_insert(struct bench_larger_set *s, const void *key)
{
    return s->tree_kind->insert(&s->tree, key, key, TREE_ADD); /* values have size 0 */
}

static int
tree_search(struct bench_larger_set *s, const void *key)
{
    return s->tree_kind->search(&s->tree, key, NULL);
}

static int
tree_scan(struct bench_larger_set *s, tree_visit *visit, void *arg)
{
    return s->tree_kind->scan(&s->tree, NULL, visit, arg);
}

const struct bench_larger_kind bench_larger_tree = {
    .create = tree_create,
    .load = tree_load,
    .forget = tree_forget,
    .reopen = tree_reopen,
    .insert = tree_insert,
    .search = tree_search,
    .scan = tree_scan,
};
