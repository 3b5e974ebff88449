/* SPDX-License-Identifier: MIT */
/*
 * file_fds.h -- descriptors of registered files, a few at a time, for checkpoints.
 */
#ifndef XAC_FILE_FDS_H
#define XAC_FILE_FDS_H

#include "shared/env_state.h"

struct xac_view;

/*
 * xac_file_fd -- this process's descriptor for a registered file, until the next call.
 *
 * A file that has lost its name is found as long as this process maps it.  The descriptor that was
 * used least recently may be closed; in a durable environment it is synced before.
 * ret  -1 with errno: ENOENT, ESTALE if another file lies there, EBUSY if another environment
 *      holds it; others of open(2).
 */
int xac_file_fd(struct xac_env *env, uint32_t file);

/*
 * xac_file_is_moved -- does a mapped file still exist, but not under its name?
 *
 * Only its mappings lead to it.  So a checkpoint must write it before the last one goes: afterwards it
 * looks like a file that has been removed, of which nothing is kept.
 */
bool xac_file_is_moved(struct xac_env *env, struct xac_view *v);

/* xac_file_fd_dirty -- it has been written. */
void xac_file_fd_dirty(struct xac_env *env, uint32_t file);

/*
 * xac_file_fds_each -- call fn for each file that is written and not synced, until a call fails.
 */
int xac_file_fds_each(struct xac_env *env,
                      int (*fn)(struct xac_env *env, uint32_t file, int fd));

/* xac_file_fds_synced -- say that all are synced. */
void xac_file_fds_synced(struct xac_env *env);

/* xac_file_fds_close -- close all. */
void xac_file_fds_close(struct xac_env *env);

#endif /* XAC_FILE_FDS_H */
