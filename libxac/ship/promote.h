/* SPDX-License-Identifier: MIT */
/*
 * promote.h -- a standby becomes an environment of its own.
 *
 * WHAT      Recovers the standby to the end of the log that it has, and begins a generation with a branch of its own,
 *           as the recovery of a backup does.  Then xac.follow goes.
 * NOT HERE  The recovery (recovery/recover.h).  Keeping the source from going on: nothing here does.
 * LOCK      The gate of the directory, all the time: nobody takes part.
 *
 * INVARIANT
 *   (1) Killed anywhere, the directory is a standby, of its source or of nobody, until it is promoted: nobody can
 *       open it to write.  Promoting again completes it.
 */
#ifndef XAC_PROMOTE_H
#define XAC_PROMOTE_H

#include <stdint.h>

/*
 * xac_promote -- in  dir  of a standby
 * out  generationp  of the log that begins; lsnp  up to where the log of the source is in it
 * ret  0; XAC_ELIVE: a process receives into it, or has it open; EINVAL: no standby; as xac_recover_dir(); words noted.
 */
int xac_promote(const char *dir, uint32_t *generationp, uint64_t *lsnp);

#endif /* XAC_PROMOTE_H */
