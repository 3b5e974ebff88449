/* SPDX-License-Identifier: MIT */
/*
 * files.c -- the table of mapped files: see registry.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"

const char *
xac_file_path(const struct xac_env *env, uint32_t id)
{
    xac_assert(xac_file_at(env, id)->path != 0);
    return (const char *)xac_shm_at(&env->shm, xac_file_at(env, id)->path);
}

int
xac_registry_find(const struct xac_env *env, const char *path,
                  const struct xac_identity *who, uint32_t *idp)
{
    uint32_t id = xac_file_index_inode(env, who);
    uint32_t named = xac_file_index_path(env, path);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (named != 0 && named != id && xac_registry_is_held(env, named))
        return xac_err(XAC_EREPLACED, "%s", path);
    *idp = id;
    return 0;
}

uint32_t
xac_registry_named(const struct xac_env *env, const char *path)
{
    xac_assert(path != NULL);
    return xac_file_index_path(env, path);
}

XAC_UNGUARDED void
xac_registry_enter(struct xac_env *env)
{
    if (xac_lock_acquire(&env->ctl->files_lock) == XAC_LOCK_OWNER_DIED) {
        /* An entry counts when `count` says so, and holds are found by `next` alone. */
        xac_file_index_mend(env);
        xac_lock_repaired(&env->ctl->files_lock);
    }
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
}

XAC_UNGUARDED void
xac_registry_exit(struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_lock_release(&env->ctl->files_lock);
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

    xac_assert(file != 0);
    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(p->holds == 0 || hold_at(env, p->holds)->prev == 0);
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

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_require(hold_at(env, at)->file != 0);
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

    xac_assert(at != 0);
    xac_registry_enter(env);
    h = hold_at(env, at);
    xac_require((h->prev != 0 ? hold_at(env, h->prev)->next : p->holds) == at);
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
    xac_assert(p->holds == 0);
    xac_registry_exit(env);
}

void
xac_registry_each_held(const struct xac_env *env, void (*fn)(void *arg, uint32_t file),
                       void *arg)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    xac_assert(fn != NULL);
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t at = xac_participant_at(env, i)->holds; at != 0;
             at = hold_at(env, at)->next)
            fn(arg, (uint32_t)hold_at(env, at)->file);
    }
}

uint32_t
xac_registry_holder(const struct xac_env *env, uint32_t file)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    xac_assert(file != 0);
    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        for (uint64_t at = p->holds; at != 0; at = hold_at(env, at)->next) {
            if (hold_at(env, at)->file == file)
                return p->pid;
        }
    }
    return 0;
}

bool
xac_registry_is_held(const struct xac_env *env, uint32_t file)
{
    return xac_registry_holder(env, file) != 0;
}
