/* SPDX-License-Identifier: MIT */
/*
 * view_path.c -- how the environment calls a file: see view.h.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "shared/env_state.h"
#include "view/view.h"

/* real_path -- as realpath(3), also of a name that nothing has any more, in a directory that
   is there. */
static char *
real_path(const char *name)
{
    char *path = realpath(name, NULL);
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    char *dir, *dir_path = NULL;

    if (path != NULL || errno != ENOENT || *base == '\0')
        return path;
    dir = slash == NULL   ? strdup(".")
          : slash == name ? strdup("/")
                          : strndup(name, (size_t)(slash - name));
    if (dir != NULL)
        dir_path = realpath(dir, NULL);
    if (dir_path != NULL
        && asprintf(&path, "%s/%s", strcmp(dir_path, "/") == 0 ? "" : dir_path, base) < 0)
        path = NULL;
    free(dir);
    free(dir_path);
    return path;
}

char *
xac_view_stored_path(const struct xac_env *env, const char *name)
{
    char *path = real_path(name);
    size_t n = strlen(env->dir);
    char *tail;

    xac_assert(name[0] != '\0');
    if (path == NULL || strncmp(path, env->dir, n) != 0 || path[n] != '/')
        return path;
    tail = strdup(path + n + 1);
    free(path);
    return tail;
}

int
xac_view_check_path(const char *path, const char *name)
{
    bool is_own = strncmp(path, "xac.", 4) == 0 || strncmp(path, "xac-", 4) == 0;

    xac_assert(path[0] != '\0');
    if (strchr(path, '\n') != NULL)
        return xac_err(EINVAL, "%s: the name has a newline", name);
    /* Relative is what lies in it; below a directory it is the user's (xac-outside/...). */
    if (!is_own || strchr(path, '/') != NULL)
        return 0;
    return xac_err(EINVAL, "%s: the name is reserved for the environment's own files",
                   name);
}
