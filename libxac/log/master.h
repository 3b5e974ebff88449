/* SPDX-License-Identifier: MIT */
/*
 * master.h -- the master record of an environment (log_format.h): which environment this
 * is, and where recovery starts.
 *
 * It has two slots.  An update goes to the older one, after a sync that makes sure that the
 * newer one is on disk, not only in the page cache.
 * LOCK      written by the holder of the checkpoint lock, or with the gate held.
 */
#ifndef XAC_MASTER_H
#define XAC_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/identity.h"
#include "log/log_format.h"

/*
 * xac_master_read -- the newest valid slot.
 *
 * ret  0; ENOENT if there is no master file (no environment); XAC_EVERSION; XAC_EPAGESIZE;
 *      XAC_EDAMAGED if no slot is valid; errno values.
 */
int xac_master_read(int dirfd, struct xac_master_slot *out);

/* xac_master_is_valid -- is the slot, wherever it was stored, one that xac_master_read() would
   return? */
bool xac_master_is_valid(const struct xac_master_slot *slot);

/*
 * xac_master_missing -- note the error that a directory has no master record: it has never been an
 * environment, or, if it has a log, the record has been removed.
 *
 * in   may_be_new  an environment is to be made, unless there is a log
 * ret  XAC_ENOTENV; 0 if a new one may be made; errno.
 */
int xac_master_missing(int dirfd, bool may_be_new);

/*
 * xac_master_write -- make *slot the newest: sync, write the older slot, sync.
 *
 * in   slot      magic, version, sequence, time and checksum are filled in here
 * out  is_lostp  a write or sync has failed: the environment must be poisoned.  False if
 *                nothing was written (no descriptor was free)
 * ret  0 or errno (the record before is still valid).
 */
int xac_master_write(int dirfd, struct xac_master_slot *slot, bool *is_lostp);

/*
 * xac_master_put_dir -- say that the record belongs to the environment in the directory `dir`;
 * zeros: to none in particular, as in a backup.
 */
void xac_master_put_dir(struct xac_master_slot *slot, const struct xac_identity *dir);

/* xac_master_is_copied -- was the record made in another directory than `dir`, and copied to
   it?  A renamed directory is the same one. */
bool xac_master_is_copied(const struct xac_master_slot *slot,
                          const struct xac_identity *dir);

/*
 * xac_master_create -- a new environment: random identity, generation 1, empty log.
 *
 * Written to a temporary name, synced, renamed, directory synced.
 * in   page_size, segment_bytes
 * ret  0 or errno.
 */
int xac_master_create(int dirfd, uint32_t page_size, uint64_t segment_bytes,
                      struct xac_master_slot *out);

/*
 * xac_master_sync -- make the record that xac_master_read() has returned durable.
 *
 * Its writer may not have synced it yet; do not act on the record before that.
 * out  is_lostp  the sync itself has failed: another one would succeed without effect, so the
 *                environment must be poisoned
 * ret  0 or an error.
 */
int xac_master_sync(int dirfd, bool *is_lostp);

#endif /* XAC_MASTER_H */
