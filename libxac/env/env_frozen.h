/* SPDX-License-Identifier: MIT */
/*
 * env_frozen.h -- an environment that a reader sees as it was at one moment.
 *
 * WHAT      For XAC_READONLY if nobody is attached, or if this process may not write the files
 *           that participants write.  The state is that of the last checkpoint and the log
 *           behind it, redone onto private copies (frozen.h).  The process then has a region
 *           of its own in memory without a name, is the only participant there, and maps
 *           the copies.  Nothing is written to the environment.
 * NOT HERE  Readers that take part (env_enter.h).
 * LOCK      None: others may commit, make checkpoints, archive log and recover meanwhile.
 *
 * INVARIANTS
 *   (1) The log that was read begins at the redo position of the master record that was read
 *       before the first copy, and ends at or behind the redo position of the master record
 *       that is read afterwards; both have the same generation.  Log from that position on is
 *       neither reused nor archived.  So no log that was needed had gone before it was read.
 */
#ifndef XAC_ENV_FROZEN_H
#define XAC_ENV_FROZEN_H

struct xac_env;

/*
 * xac_env_freeze -- make the copies; directory open.
 *
 * ret  0; EAGAIN if the log was reused during each of several attempts; ENOTSUP if the log has no
 *      full images; errors of recovery and of files that could not be read.
 */
int xac_env_freeze(struct xac_env *env);

/* xac_env_frozen_enter -- a region of its own for this process; after xac_env_freeze, and
   in each child. */
int xac_env_frozen_enter(struct xac_env *env);

#endif /* XAC_ENV_FROZEN_H */
