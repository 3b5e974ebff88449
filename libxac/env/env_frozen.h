/* SPDX-License-Identifier: MIT */
/*
 * env_frozen.h -- an environment that a reader sees as it was at one moment.
 *
 * WHAT      For XAC_READONLY where nobody is attached, or where this process may not write
 *           what participants write.  The state is that of the last checkpoint and the log
 *           behind it, redone onto private copies (frozen.h).  The process then has a region
 *           of its own in memory without a name, is the only participant there, and maps
 *           the copies.  Nothing is written to the environment, and nobody notices.
 * NOT HERE  Readers that take part (env_enter.h).
 * LOCK      None: others may commit, make checkpoints, archive log and recover meanwhile.
 *
 * INVARIANTS
 *   (1) All log from the redo position of the master record that was read before the
 *       first copy was there and valid until it had been read: it ends at or behind the
 *       redo position of the master record that is read afterwards, and that has the same
 *       generation.  Log that is needed is neither recycled nor archived, so that what is
 *       missing would lie before that position.
 */
#ifndef XAC_ENV_FROZEN_H
#define XAC_ENV_FROZEN_H

struct xac_env;

/*
 * xac_env_freeze -- make the copies; directory open.
 *
 * ret  0; EAGAIN if checkpoints and archiving have overtaken the copying again and again;
 *      ENOTSUP if there is no log that makes copies whole; errors of recovery, and of what
 *      could not be read.
 */
int xac_env_freeze(struct xac_env *env);

/* xac_env_frozen_enter -- a region of its own for this process; after xac_env_freeze, and
   in each child. */
int xac_env_frozen_enter(struct xac_env *env);

#endif /* XAC_ENV_FROZEN_H */
