/* SPDX-License-Identifier: MIT */
/*
 * archive_ship.h -- an archiver: the log and backups of an environment to an archive (doc/archive.md).
 *
 * WHAT      Ships durable log, and what belongs to it, and makes backups; holds log back until it is there.
 * NOT HERE  Reading the log (ship/source.h); the place it goes to (archive_store.h, archive_place.h);
 *           restoring (archive_restore.h).
 * LOCK      One archiver for each DIR and DEST: a lock on a file, and a claim in DEST.
 * THREADS   one.  It is no participant but for a moment: to make its slot, and backups.
 *
 * INVARIANTS
 *   (1) Objects are there before the manifest that names them is put.
 *   (2) The slot moves when a manifest that names the log before it is there.
 *   (3) Nothing that is there is overwritten.  What no manifest has named for a day is removed, in a later
 *       round.
 *   (4) A backup is dropped only if a newer one is older than the time that moments are kept, and log only
 *       below the redo position of the oldest backup kept.
 */
#ifndef XAC_ARCHIVE_SHIP_H
#define XAC_ARCHIVE_SHIP_H

#include "archive_report.h"

/*
 * archive_run -- see struct archive_options.
 *
 * out  report  filled in as far as it got
 * ret  0; EBUSY: another archiver is at work; XAC_EFOREIGN: DEST has the log of another environment, or the two
 *      have parted; ESTALE: manifests are missing that have been there; XAC_EDAMAGED; those of source.h and
 *      archive_store.h.  With `follows` an archive that cannot be reached is tried again.
 */
int archive_run(const struct archive_options *options, struct archive_report *report);

#endif /* XAC_ARCHIVE_SHIP_H */
