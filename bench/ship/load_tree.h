/* SPDX-License-Identifier: MIT */
/*
 * load_tree.h -- the tree into which ship_load and the writers of a group insert.
 *
 * WHAT      A libxactree in the file ship.tree of an environment, in whose directory it lies: so a standby and the nodes of a
 *           group have it under the same name.
 * THREADS   none; one tree for a process.
 */
#ifndef XBENCH_LOAD_TREE_H
#define XBENCH_LOAD_TREE_H

#include <xactree.h>

/* load_tree_open -- of an environment, which this opens, durably; both are made if they are not there.  ret 0; an error, with
   words in xac_last_error() or xactree_last_error(). */
int load_tree_open(const char *dir, struct xactree **treep);

/* load_tree_close -- the tree, and the environment; ret as xShutdown(). */
int load_tree_close(struct xactree *tree);

#endif /* XBENCH_LOAD_TREE_H */
