/* SPDX-License-Identifier: MIT */
/*
 * files.c -- the table of mapped files: see registry.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "env/env.h"
#include "base/err.h"
#include "shared/registry.h"
#include "base/sys.h"

XAC_SIGSAFE struct xac_file *
xac_file_at(const struct xac_env *env, uint32_t id)
{
    xac_assert(id >= 1);
    return (struct xac_file *)xac_array_at(&env->shm, &env->ctl->files, id - 1);
}

const char *
xac_file_path(const struct xac_env *env, uint32_t id)
{
    return (const char *)xac_shm_at(&env->shm, xac_file_at(env, id)->path);
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
    atomic_store_explicit(&f->state, XAC_FILE_NEW, memory_order_relaxed);
    atomic_store_explicit(&f->blank_from, (size + env->page_size - 1) >> env->page_shift,
                          memory_order_relaxed);
    return 0;
}

int
xac_registry_find(const struct xac_env *env, const char *path,
                  const struct xac_identity *who, uint32_t *idp)
{
    uint32_t id = xac_file_index_inode(env, who);
    uint32_t named = xac_file_index_path(env, path);

    if (named != 0 && named != id && xac_registry_is_held(env, named))
        return xac_err(XAC_EREPLACED, "%s", path);
    *idp = id;
    return 0;
}

uint32_t
xac_registry_named(const struct xac_env *env, const char *path)
{
    return xac_file_index_path(env, path);
}

void
xac_registry_enter(struct xac_env *env)
{
    if (xac_lock_acquire(&env->ctl->files_lock) == XAC_LOCK_OWNER_DIED) {
        /* An entry counts when `count` says so, and holds are found by `next` alone. */
        xac_file_index_mend(env);
        xac_lock_repaired(&env->ctl->files_lock);
    }
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

    rc = xac_file_index_reserve(env);
    *idp = (uint32_t)atomic_load_explicit(&files->count, memory_order_relaxed) + 1;
    if (rc == 0)
        rc = xac_array_reserve(&env->shm, files, *idp - 1);
    return rc != 0 ? xac_err(rc, "registering %s", path)
                   : fill_in(env, xac_file_at(env, *idp), path, who, size);
}

/* set_state -- with what is counted by it. */
static void
set_state(struct xac_env *env, struct xac_file *f, enum xac_file_state state)
{
    bool was_known =
        atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN;

    atomic_store_explicit(&f->state, (uint32_t)state, memory_order_relaxed);
    if (state == XAC_FILE_KNOWN)
        xac_count(&env->ctl->files_known, 1);
    else if (was_known)
        xac_count(&env->ctl->files_known, UINT64_MAX); /* one less */
}

/* settle -- a new entry that is in the log counts. */
static void
settle(struct xac_env *env, uint32_t id)
{
    /* Release: pairs with the acquire in checkpoints. */
    atomic_store_explicit(&env->ctl->files.count, id, memory_order_release);
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

    is_new = rc == 0 && *idp == 0;
    named = xac_file_index_path(env, path);
    if (is_new && named != 0) /* removed, for now another one has its name */
        rc = xac_registry_forget(env, named);
    if (is_new && rc == 0)
        rc = add(env, path, who, size, idp);
    if (rc != 0)
        return rc;
    f = xac_file_at(env, *idp);
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
        settle(env, *idp);
    return 0;
}

int
xac_registry_forget(struct xac_env *env, uint32_t file)
{
    struct xac_file *f = xac_file_at(env, file);
    int rc = xac_checkpoint_log_forget(env, file);

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

    if (atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN)
        xac_file_index_remove(env, file);
    set_state(env, f, XAC_FILE_LEFT);
    xac_kill_point("file left");
    /* The pool knows pages by where their entries lie: it keeps them. */
    if (xac_outofcore_is_on(env))
        return;
    xac_collapse_lock(env);
    xac_ptab_free(&env->shm, &f->root);
    xac_collapse_unlock(env);
}

int
xac_registry_file(struct xac_env *env, const char *path, int fd, uint64_t length,
                  uint32_t *idp, uint64_t *holdp)
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
    if (rc == 0)
        rc = xac_registry_hold(env, *idp, holdp);
    xac_registry_exit(env);
    return rc;
}

/* ---- Who maps it ------------------------------------------------------------------------ */

static struct xac_hold *
hold_at(const struct xac_env *env, uint64_t at)
{
    return (struct xac_hold *)xac_shm_at(&env->shm, at);
}

int
xac_registry_hold(struct xac_env *env, uint32_t file, uint64_t *holdp)
{
    struct xac_participant *p = xac_participant_at(env, env->self);
    uint64_t at = xac_shm_alloc(&env->shm, sizeof(struct xac_hold));

    if (at == 0)
        return xac_err(ENOMEM, "mapping a file");
    *hold_at(env, at) = (struct xac_hold){.next = p->holds, .file = file};
    if (p->holds != 0)
        hold_at(env, p->holds)->prev = at;
    p->holds = at;
    *holdp = at;
    return 0;
}

/* let_go -- of a hold that is in no chain any more. */
static void
let_go(struct xac_env *env, uint64_t at)
{
    struct xac_file *f = xac_file_at(env, (uint32_t)hold_at(env, at)->file);

    /* What has been committed through it lies before the end of the log. */
    if (xac_env_is_durable(env))
        f->idle_lsn = atomic_load_explicit(&env->ctl->log.tail, memory_order_relaxed);
    xac_shm_free(&env->shm, at, sizeof(struct xac_hold));
}

void
xac_registry_drop(struct xac_env *env, uint64_t at)
{
    struct xac_participant *p = xac_participant_at(env, env->self);
    const struct xac_hold *h;

    xac_registry_enter(env);
    h = hold_at(env, at);
    if (h->prev != 0)
        hold_at(env, h->prev)->next = h->next;
    else
        p->holds = h->next;
    if (h->next != 0)
        hold_at(env, h->next)->prev = h->prev;
    let_go(env, at);
    xac_registry_exit(env);
}

void
xac_registry_drop_all(struct xac_env *env, uint32_t participant)
{
    struct xac_participant *p = xac_participant_at(env, participant);

    xac_registry_enter(env);
    while (p->holds != 0) {
        uint64_t at = p->holds;

        p->holds = hold_at(env, at)->next;
        let_go(env, at);
    }
    xac_registry_exit(env);
}

void
xac_registry_each_held(const struct xac_env *env, void (*fn)(void *arg, uint32_t file),
                       void *arg)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t at = xac_participant_at(env, i)->holds; at != 0;
             at = hold_at(env, at)->next)
            fn(arg, (uint32_t)hold_at(env, at)->file);
    }
}

/* A file that is looked for among those that are held. */
struct sought {
    uint32_t file;
    bool is_held;
};

static void
compare(void *arg, uint32_t file)
{
    struct sought *s = (struct sought *)arg;

    s->is_held = s->is_held || s->file == file;
}

bool
xac_registry_is_held(const struct xac_env *env, uint32_t file)
{
    struct sought s = {.file = file};

    xac_registry_each_held(env, compare, &s);
    return s.is_held;
}
