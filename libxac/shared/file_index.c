/* SPDX-License-Identifier: MIT */
/*
 * file_index.c -- finding a registered file by its path or its inode: see registry.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "shared/env_state.h"
#include "shared/registry.h"

#define SIZE_FIRST 6u /* logarithm */
#define SIZE_STEP  2u

static struct xac_file_index *
index_of(const struct xac_env *env)
{
    return &env->ctl->file_index;
}

/* n_buckets -- of each kind. */
static uint64_t
n_buckets(const struct xac_file_index *x)
{
    xac_assert((x->buckets & XAC_FILE_INDEX_SIZE_MASK) >= SIZE_FIRST);
    return UINT64_C(1) << (x->buckets & XAC_FILE_INDEX_SIZE_MASK);
}

/* place_of -- offset of the buckets; 0: there are none yet. */
static uint64_t
place_of(const struct xac_file_index *x)
{
    return x->buckets & ~XAC_FILE_INDEX_SIZE_MASK;
}

static size_t
bytes_of(uint64_t n)
{
    xac_assert(n > 0);
    return 2 * (size_t)n * sizeof(uint32_t);
}

/* bucket_by_path, bucket_by_inode -- the head of the chain that a file belongs to. */
static uint32_t *
bucket_by_path(const struct xac_env *env, const char *path)
{
    const struct xac_file_index *x = index_of(env);
    uint32_t *bucket = (uint32_t *)xac_shm_at(&env->shm, place_of(x));

    xac_assert(x->buckets != 0);
    xac_assert(path != NULL);
    return &bucket[xac_xxh64(path, strlen(path)) & (n_buckets(x) - 1)];
}

static uint32_t *
bucket_by_inode(const struct xac_env *env, uint64_t inode)
{
    const struct xac_file_index *x = index_of(env);
    uint32_t *bucket = (uint32_t *)xac_shm_at(&env->shm, place_of(x));

    xac_assert(x->buckets != 0);
    return &bucket[n_buckets(x) + (xac_xxh64(&inode, sizeof inode) & (n_buckets(x) - 1))];
}

/* link_in -- put a file in front of its chains. */
static void
link_in(struct xac_env *env, uint32_t file)
{
    struct xac_file *f = xac_file_at(env, file);
    uint32_t *by_path = bucket_by_path(env, xac_file_path(env, file));
    uint32_t *by_inode = bucket_by_inode(env, f->who.inode);

    xac_assert(*by_path != file);
    xac_assert(*by_inode != file);
    f->next_by_path = *by_path;
    *by_path = file;
    f->next_by_inode = *by_inode;
    *by_inode = file;
    index_of(env)->n_files++;
}

/* fill -- all files that are known, into empty chains. */
static void
fill(struct xac_env *env)
{
    uint32_t count =
        (uint32_t)atomic_load_explicit(&env->ctl->files.count, memory_order_relaxed);

    xac_assert(index_of(env)->buckets != 0);
    memset(xac_shm_at(&env->shm, place_of(index_of(env))), 0,
           bytes_of(n_buckets(index_of(env))));
    index_of(env)->n_files = 0;
    for (uint32_t file = 1; file <= count; file++) {
        if (atomic_load_explicit(&xac_file_at(env, file)->state, memory_order_relaxed)
            == XAC_FILE_KNOWN)
            link_in(env, file);
    }
    xac_assert(index_of(env)->n_files <= count);
}

int
xac_file_index_reserve(struct xac_env *env)
{
    struct xac_file_index *x = index_of(env);
    struct xac_file_index old = *x;
    uint64_t size = old.buckets == 0
                        ? SIZE_FIRST
                        : (old.buckets & XAC_FILE_INDEX_SIZE_MASK) + SIZE_STEP;
    uint64_t made;

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (old.buckets != 0 && old.n_files < n_buckets(&old))
        return 0;
    made = xac_shm_alloc(&env->shm, bytes_of(UINT64_C(1) << size));
    if (made == 0) /* longer chains will do */
        return old.buckets != 0 ? 0 : ENOMEM;
    xac_assert((made & XAC_FILE_INDEX_SIZE_MASK) == 0);
    x->buckets = made | size;
    fill(env);
    if (old.buckets != 0)
        xac_shm_free(&env->shm, place_of(&old), bytes_of(n_buckets(&old)));
    xac_assert(x->n_files == old.n_files);
    return 0;
}

void
xac_file_index_add(struct xac_env *env, uint32_t file)
{
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(index_of(env)->buckets != 0);
    xac_assert(file != 0);
    link_in(env, file);
}

void
xac_file_index_remove(struct xac_env *env, uint32_t file)
{
    struct xac_file *f = xac_file_at(env, file);
    uint32_t *by_path = bucket_by_path(env, xac_file_path(env, file));
    uint32_t *by_inode = bucket_by_inode(env, f->who.inode);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(file != 0);
    xac_require(index_of(env)->n_files > 0);
    while (*by_path != file)
        by_path = &xac_file_at(env, *by_path)->next_by_path;
    while (*by_inode != file)
        by_inode = &xac_file_at(env, *by_inode)->next_by_inode;
    *by_path = f->next_by_path;
    *by_inode = f->next_by_inode;
    index_of(env)->n_files--;
}

void
xac_file_index_mend(struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (index_of(env)->buckets != 0)
        fill(env);
}

uint32_t
xac_file_index_inode(const struct xac_env *env, const struct xac_identity *who)
{
    uint32_t file = index_of(env)->buckets == 0 ? 0 : *bucket_by_inode(env, who->inode);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    while (file != 0) {
        const struct xac_file *f = xac_file_at(env, file);

        /* While it is registered its device keeps its number. */
        if (f->who.device == who->device && xac_identity_is_same(&f->who, who))
            break;
        file = f->next_by_inode;
    }
    xac_assert(file == 0 || xac_file_at(env, file)->who.inode == who->inode);
    return file;
}

uint32_t
xac_file_index_path(const struct xac_env *env, const char *path)
{
    uint32_t file = index_of(env)->buckets == 0 ? 0 : *bucket_by_path(env, path);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    while (file != 0 && strcmp(xac_file_path(env, file), path) != 0)
        file = xac_file_at(env, file)->next_by_path;
    return file;
}
