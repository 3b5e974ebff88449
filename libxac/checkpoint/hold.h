/* SPDX-License-Identifier: MIT */
/*
 * hold.h -- holding log back for followers, as far as XAC_OPT_LOG_KEEP_BYTES allows.
 *
 * WHAT      Makes and removes slots (slots.h), writes them to their file, and gives up those that hold
 *           back too much.
 * NOT HERE  Moving a slot: that is its follower's (ship/source.h).
 * LOCK      checkpoint.
 * THREADS   any thread of a participant; not the fault handler.
 *
 * INVARIANTS
 *   (1) A slot is in the file, synced, before xac_hold_make() returns its position.
 *   (2) The position of a new slot is the redo position of the master record at that time, and all log
 *       from there on is there: nobody has released it, because that takes the lock, too.
 *   (3) A slot is marked as lost before the log that it needs is released.
 */
#ifndef XAC_HOLD_H
#define XAC_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct xac_env;

/*
 * xac_hold_make -- make a slot for a follower.
 *
 * out  lsnp  its position: log from here on stays
 * ret  0; EINVAL: no such name can be; EEXIST; ENOSPC: too many; ENOTSUP: the environment is not
 *      durable; errno.
 */
int xac_hold_make(struct xac_env *env, const char *name, uint64_t *lsnp);

/* xac_hold_drop -- remove a slot, lost or not; ret 0; ENOENT; ENOTSUP; errno. */
int xac_hold_drop(struct xac_env *env, const char *name);

/* xac_hold_most -- bytes of log that a slot may hold back. */
uint64_t xac_hold_most(const struct xac_env *env);

/* xac_hold_checkpoint -- before a checkpoint releases log: give up slots that are too far behind, and
   write the file.  If it cannot be written, it has older positions than the region. */
void xac_hold_checkpoint(struct xac_env *env);

#endif /* XAC_HOLD_H */
