/* SPDX-License-Identifier: MIT */
/*
 * file_register.c -- see file_register.h.
 */
#include <config.h>

#include "view/file_register.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "txn/ckpt_log.h"
#include "txn/ctree.h"

/* fill_in -- describe a new file in the entry behind the last one. */
static int
fill_in(struct xac_env *env, struct xac_file *f, const char *path,
        const struct xac_identity *who, uint64_t size)
{
    size_t n = strlen(path);
    uint64_t at = xac_shm_alloc(&env->shm, n + 1);

    xac_assert(path[0] != '\0');
    xac_assert(who->inode != 0);
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (at == 0)
        return xac_err(ENOMEM, "registering %s", path);
    memcpy(xac_shm_at(&env->shm, at), path, n + 1);
    f->who = *who;
    f->path = at;
    f->path_len = (uint32_t)n;
    atomic_store_explicit(&f->state, XAC_FILE_NEW, memory_order_relaxed);
    atomic_store_explicit(&f->blank_from, (size + env->page_size - 1) >> env->page_shift,
                          memory_order_relaxed);
    return 0;
}

/* add -- an entry for a new file, which does not count yet. */
static int
add(struct xac_env *env, const char *path, const struct xac_identity *who, uint64_t size,
    uint32_t *idp)
{
    struct xac_array *files = &env->ctl->files;
    int rc;

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    rc = xac_file_index_reserve(env);
    *idp = (uint32_t)atomic_load_explicit(&files->count, memory_order_relaxed) + 1;
    if (rc == 0)
        rc = xac_array_reserve(&env->shm, files, *idp - 1);
    xac_assert(*idp != 0);
    return rc != 0 ? xac_err(rc, "registering %s", path)
                   : fill_in(env, xac_file_at(env, *idp), path, who, size);
}

/* set_state -- with what is counted by it. */
static void
set_state(struct xac_env *env, struct xac_file *f, enum xac_file_state state)
{
    bool was_known =
        atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN;

    xac_assert(state != XAC_FILE_NEW);
    atomic_store_explicit(&f->state, (uint32_t)state, memory_order_relaxed);
    if (state == XAC_FILE_KNOWN)
        xac_count(&env->ctl->files_known, 1);
    else if (was_known)
        xac_count(&env->ctl->files_known, UINT64_MAX); /* one less */
}

/* A new entry that is in the log counts. */
void
xac_registry_settle(struct xac_env *env, uint32_t id)
{
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(id
               == atomic_load_explicit(&env->ctl->files.count, memory_order_relaxed) + 1);
    /* Relaxed: those who count files have the lock. */
    atomic_store_explicit(&env->ctl->files.count, id, memory_order_relaxed);
    xac_kill_point("file counts");
    set_state(env, xac_file_at(env, id), XAC_FILE_KNOWN);
    xac_file_index_add(env, id);
}

int
xac_registry_add(struct xac_env *env, const char *path, const struct xac_identity *who,
                 uint64_t size, uint64_t length, uint32_t *idp)
{
    struct xac_file *f;
    uint32_t named;
    bool is_new;
    int rc = xac_registry_find(env, path, who, idp);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    is_new = rc == 0 && *idp == 0;
    named = xac_file_index_path(env, path);
    if (is_new && named != 0) /* removed, for now another one has its name */
        rc = xac_registry_forget(env, named);
    if (is_new && rc == 0)
        rc = add(env, path, who, size, idp);
    if (rc != 0)
        return rc;
    f = xac_file_at(env, *idp);
    xac_assert(f->path != 0);
    if (is_new || f->is_unnamed != 0
        || atomic_load_explicit(&f->length, memory_order_relaxed) < length) {
        uint64_t known = atomic_load_explicit(&f->length, memory_order_relaxed);

        length = length > known ? length : known;
        /* In the log first: what refers to the file comes after it. */
        rc = xac_checkpoint_log_file(env, *idp, length);
        if (rc != 0)
            return rc;
        atomic_store_explicit(&f->length, length, memory_order_relaxed);
        f->is_unnamed = 0;
    }
    if (is_new)
        xac_registry_settle(env, *idp);
    xac_assert(atomic_load_explicit(&f->length, memory_order_relaxed) >= length);
    xac_assert(f->is_unnamed == 0);
    xac_debug(xac_ptab_assert(&env->shm, &f->root, *idp));
    return 0;
}

int
xac_registry_announce(struct xac_env *env, const char *path,
                      const struct xac_identity *who, uint64_t size, uint32_t *idp)
{
    int rc = add(env, path, who, size, idp);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(path[0] != '\0');
    if (rc == 0)
        rc = xac_checkpoint_log_file(env, *idp, size);
    if (rc == 0)
        atomic_store_explicit(&xac_file_at(env, *idp)->length, size,
                              memory_order_relaxed);
    return rc;
}

int
xac_registry_forget(struct xac_env *env, uint32_t file)
{
    struct xac_file *f = xac_file_at(env, file);
    int rc = xac_checkpoint_log_forget(env, file);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(file != 0);
    if (rc != 0)
        return rc;
    xac_kill_point("forget logged");
    xac_file_index_remove(env, file);
    set_state(env, f, XAC_FILE_GONE);
    xac_count(&env->ctl->files_forgotten, 1);
    return 0;
}

void
xac_registry_leave_file(struct xac_env *env, uint32_t file)
{
    struct xac_file *f = xac_file_at(env, file);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(!xac_registry_is_held(env, file));
    xac_debug(xac_ptab_assert(&env->shm, &f->root, file));
    if (atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN)
        xac_file_index_remove(env, file);
    set_state(env, f, XAC_FILE_LEFT);
    xac_kill_point("file left");
    /* The pool knows pages by where their entries lie: it keeps them. */
    if (xac_outofcore_is_on(env))
        return;
    xac_gc_lock(env);
    xac_ptab_free(&env->shm, &f->root);
    xac_gc_unlock(env);
}

int
xac_registry_file(struct xac_env *env, const char *path, int fd, uint64_t length,
                  uint32_t *idp, uint64_t *holdp)
{
    struct xac_identity who;
    struct stat st;
    int rc = xac_identity_of(fd, &who);

    xac_assert(fd >= 0);
    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        return xac_err(rc, "%s", path);
    xac_registry_enter(env);
    rc = xac_registry_find(env, path, &who, idp);
    /* Nobody knew it for a moment: it may have been renamed or removed. */
    if (rc == 0 && *idp == 0 && env->frozen == NULL
        && xac_identity_check(env->dirfd, path, &who) != 0)
        rc = xac_err(XAC_EREPLACED, "%s", path);
    if (rc == 0)
        rc = xac_registry_add(env, path, &who, (uint64_t)st.st_size, length, idp);
    if (rc == 0)
        rc = xac_registry_hold(env, *idp, holdp);
    xac_registry_exit(env);
    xac_assert(rc != 0 || *holdp != 0);
    return rc;
}
