/* SPDX-License-Identifier: MIT */
/*
 * load_tree.c -- see load_tree.h.
 */
#include <config.h>

#include "load_tree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#include <xac.h>

#define TREE_BYTES ((size_t)1 << 30)

int
load_tree_open(const char *dir, struct xactree **treep)
{
    char file[PATH_MAX];
    void *base;
    int rc = xInit(dir, XAC_DURABLE);

    if (rc != 0)
        return rc;
    (void)snprintf(file, sizeof file, "%s/ship.tree", dir);
    base = xMmap(file, TREE_BYTES);
    if (base == MAP_FAILED)
        return errno;
    rc = xactree_open(treep, NULL, base, TREE_BYTES);
    if (rc == ENOENT)
        rc = xactree_create(treep, NULL, base, TREE_BYTES, NULL);
    return rc;
}

int
load_tree_close(struct xactree *tree)
{
    xactree_close(tree);
    return xShutdown();
}
