/* SPDX-License-Identifier: MIT */
/*
 * files.c -- the table of mapped files: see registry.h.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "claim.h"
#include "env.h"
#include "err.h"
#include "registry.h"
#include "sys.h"

XAC_SIGSAFE struct xac_file *
xac_file_at(const struct xac_env *env, uint32_t id)
{
    xac_assert(id >= 1);
    return (struct xac_file *)xac_array_at(&env->shm, &env->ctl->files, id - 1);
}

static const char *
path_of(const struct xac_env *env, const struct xac_file *f)
{
    return (const char *)xac_shm_at(&env->shm, f->path);
}

/* fill_in -- describe a new file in the entry behind the last one. */
static int
fill_in(struct xac_env *env, struct xac_file *f, const char *path,
        const struct xac_identity *who, uint64_t size)
{
    size_t n = strlen(path);
    uint64_t at = xac_shm_alloc(&env->shm, n + 1);

    if (at == 0)
        return xac_err(ENOMEM, "registering %s", path);
    memcpy(xac_shm_at(&env->shm, at), path, n + 1);
    f->who = *who;
    f->path = at;
    f->path_len = (uint32_t)n;
    atomic_store_explicit(&f->blank_from, (size + env->page_size - 1) >> env->page_shift,
                          memory_order_relaxed);
    return 0;
}

/* is_file -- is it that registered file?  While it is registered its device keeps its
   number. */
static bool
is_file(const struct xac_file *f, const struct xac_identity *who)
{
    return f->who.device == who->device && xac_identity_is_same(&f->who, who);
}

int
xac_registry_find(const struct xac_env *env, const char *path,
                  const struct xac_identity *who, uint32_t *idp)
{
    uint64_t n = atomic_load_explicit(&env->ctl->files.count, memory_order_relaxed);

    *idp = 0;
    for (uint32_t id = 1; id <= n; id++) {
        const struct xac_file *f = xac_file_at(env, id);

        if (is_file(f, who))
            *idp = id;
        else if (strcmp(path_of(env, f), path) == 0)
            return xac_err(XAC_EREPLACED, "%s", path);
    }
    return 0;
}

void
xac_registry_enter(struct xac_env *env)
{
    if (xac_lock_acquire(&env->ctl->files_lock) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(
            &env->ctl->files_lock); /* an entry counts when `count` says so */
}

void
xac_registry_exit(struct xac_env *env)
{
    xac_lock_release(&env->ctl->files_lock);
}

/* add -- an entry for a new file, which does not count yet. */
static int
add(struct xac_env *env, const char *path, const struct xac_identity *who, uint64_t size,
    uint32_t *idp)
{
    struct xac_array *files = &env->ctl->files;
    int rc;

    *idp = (uint32_t)atomic_load_explicit(&files->count, memory_order_relaxed) + 1;
    rc = xac_array_reserve(&env->shm, files, *idp - 1);
    return rc != 0 ? rc : fill_in(env, xac_file_at(env, *idp), path, who, size);
}

int
xac_registry_add(struct xac_env *env, const char *path, const struct xac_identity *who,
                 uint64_t size, uint64_t length, uint32_t *idp)
{
    struct xac_file *f;
    bool is_new;
    int rc = xac_registry_find(env, path, who, idp);

    is_new = rc == 0 && *idp == 0;
    if (is_new)
        rc = add(env, path, who, size, idp);
    if (rc != 0)
        return rc;
    f = xac_file_at(env, *idp);
    if (is_new || atomic_load_explicit(&f->length, memory_order_relaxed) < length) {
        /* In the log first: what refers to the file comes after it. */
        rc = xac_checkpoint_log_file(env, *idp, length);
        if (rc != 0)
            return rc;
        atomic_store_explicit(&f->length, length, memory_order_relaxed);
    }
    if (is_new)
        /* Release: pairs with the acquire in checkpoints. */
        atomic_store_explicit(&env->ctl->files.count, *idp, memory_order_release);
    return 0;
}

int
xac_registry_file(struct xac_env *env, const char *path, int fd, uint64_t length,
                  uint32_t *idp)
{
    struct xac_identity who;
    struct stat st;
    int rc = xac_identity_of(fd, &who);

    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        return xac_err(rc, "%s", path);
    xac_registry_enter(env);
    rc = xac_registry_add(env, path, &who, (uint64_t)st.st_size, length, idp);
    xac_registry_exit(env);
    return rc;
}

int
xac_registry_file_fd(struct xac_env *env, uint32_t file)
{
    const struct xac_file *f = xac_file_at(env, file);
    struct xac_handle handle = {.device = f->who.device, .inode = f->who.inode};
    struct xac_claimant claimant = xac_env_claimant(env);
    struct xac_identity who;
    int fd;

    if (file >= env->n_file_fd) {
        uint32_t want = file + 16;
        int *more = (int *)malloc(want * sizeof more[0]), *old = env->file_fd;

        if (more == NULL) {
            errno = ENOMEM;
            return -1;
        }
        for (uint32_t i = 0; i < want; i++)
            more[i] = i < env->n_file_fd ? old[i] : -1;
        /* In this order: a child that is forked meanwhile closes what it finds here. */
        env->file_fd = more;
        env->n_file_fd = want;
        free(old);
    }
    /* Relative paths are relative to the environment directory. */
    if (xac_handle_is_ours(env->file_fd[file], &handle))
        return env->file_fd[file];
    fd = xac_handle_keep(xac_sys.openat(xac_env_dirfd(env), path_of(env, f),
                                        O_RDWR | O_CLOEXEC, 0),
                         &handle);
    env->file_fd[file] = -1;
    if (fd < 0)
        return -1;
    if (xac_identity_of(fd, &who) != 0 || !is_file(f, &who)) {
        xac_handle_close(fd, &handle);
        errno = ESTALE;
        return -1;
    }
    if (xac_claim_hold(fd, &claimant, true, path_of(env, f)) != 0) {
        xac_handle_close(fd, &handle);
        errno = EBUSY;
        return -1;
    }
    env->file_fd[file] = fd;
    return fd;
}

void
xac_registry_file_close(struct xac_env *env, uint32_t file)
{
    struct xac_handle handle;

    if (env->file_fd[file] < 0)
        return;
    handle.device = xac_file_at(env, file)->who.device;
    handle.inode = xac_file_at(env, file)->who.inode;
    xac_handle_close(env->file_fd[file], &handle);
    env->file_fd[file] = -1;
}
