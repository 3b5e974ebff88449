/* SPDX-License-Identifier: MIT */
/*
 * forget.c -- see forget.h.
 */
#include <config.h>

#include "checkpoint/forget.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "log/claim.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "view/file_register.h"
#include "view/view.h"

/* forget_file -- files lock held; see xac_forget_file. */
static int
forget_file(struct xac_env *env, const char *name, uint32_t id, bool is_there)
{
    const struct xac_file *f = xac_file_at(env, id);
    int rc;

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(id != 0);
    if (xac_registry_is_held(env, id))
        return xac_err(EBUSY, "xForget: %s is mapped", name);
    if (is_there && !xac_ptab_is_clear(&env->shm, &f->root))
        return xac_err(EBUSY, "xForget: somebody still reads an older state of %s", name);
    rc = xac_registry_forget(env, id);
    if (rc == 0 && xac_env_is_durable(env))
        rc = xac_group_sync(env);
    return rc;
}

/* unclaim -- others may have a file that is forgotten; if that cannot be, they cannot yet. */
static void
unclaim(struct xac_env *env, const char *name)
{
    struct xac_claimant claimant = xac_env_claimant(env);
    int fd = xac_sys.openat(AT_FDCWD, name, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);

    xac_assert(name[0] != '\0');
    if (fd < 0)
        return;
    xac_claim_drop(fd, &claimant);
    (void)xac_sys.close(fd);
}

int
xac_forget_file(struct xac_env *env, const char *name)
{
    char *path = xac_view_stored_path(env, name);
    bool is_there = access(name, F_OK) == 0;
    uint32_t id;
    int rc = path == NULL ? xac_err(errno, "%s", name) : 0;

    xac_assert(!xac_lock_is_mine(&env->ctl->checkpoint));
    xac_registry_enter(env);
    id = rc == 0 ? xac_registry_named(env, path) : 0;
    if (id != 0 && xac_registry_is_held(env, id))
        rc = xac_err(EBUSY, "xForget: %s is mapped", name);
    xac_registry_exit(env);
    if (rc == 0 && id != 0 && is_there)
        rc = xac_checkpoint_run(env, false); /* what was committed is not to be lost */
    xac_registry_enter(env);
    id = rc == 0 ? xac_registry_named(env, path) : 0; /* it may have been left by now */
    if (id != 0)
        rc = forget_file(env, name, id, is_there);
    if (rc == 0 && is_there)
        unclaim(env, name);
    xac_registry_exit(env);
    free(path);
    return rc;
}
