/* SPDX-License-Identifier: MIT */
/*
 * xactree_handle.h -- what the sources of libxactree share: the handle, transactions, errors.
 *
 * WHAT      The handle behind xactree.h; running a body as an update until it commits or as a
 *           query, in the handle's environment; noting an error in words.
 * NOT HERE  The map itself (vtree.h), the header of the segment (xactree_format.h).
 * THREADS   A handle does not change once it is open.  The words of an error are the thread's.
 */
#ifndef TREES_XACTREE_HANDLE_H
#define TREES_XACTREE_HANDLE_H

#include "xactree_build.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <xac_env.h>
#include <xactree.h>

#include "vtree.h"

struct xactree {
    struct xac_env *env; /* NULL: the default environment                             */
    unsigned char *base; /* of the segment: the header, then the blocks               */
    size_t length;       /* of the tree, bytes                                        */
    struct vtree v;
};

/* xactree_err -- note a failure in words.  ret code */
int xactree_err(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

typedef int xactree_body(struct xactree *t, void *arg);

/* Run a body as one updating transaction until it commits, or as a part of the caller's.
   ret what it returned, or an error of xbegin() or xend(). */
int xactree_update(struct xactree *t, xactree_body *run, void *arg);

/* Run a body that only reads, on a snapshot. */
int xactree_query(struct xactree *t, xactree_body *run, void *arg);

#endif /* TREES_XACTREE_HANDLE_H */
