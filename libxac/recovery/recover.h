/* SPDX-License-Identifier: MIT */
/*
 * recover.h -- after a crash: read the log, bring the files up to date, start a new
 * generation of the log.
 *
 * WHAT      The steps of ARCHITECTURE.md, "The life of a recovery".
 * NOT HERE  Taking the gate (env); the command line (recovery/xrecover.c).
 * LOCK      The caller holds the gate exclusively: nobody is attached.  With `frozen` no lock.
 *
 * INVARIANTS
 *   (1) Nothing valid in the log is rewritten, but by a promotion what lies behind its end; until the new master
 *       record is on disk a recovery may be killed anywhere and started again.
 *   (2) A file is written only after log, data files and master have been synced.
 *   (3) The first record that is redone for a page is a full image.
 *   (4) Damage before the last position known to have been synced is reported and nothing
 *       is written, unless `cut` is set.
 *   (5) In a copy of an environment's directory (xac_master_is_copied) nothing outside of it
 *       is written, neither a mapped file nor the log, unless the caller says that it
 *       belongs to the copy now.  When recovery is done, the copy is an environment of its
 *       own: its master record names its own directory.
 */
#ifndef XAC_RECOVER_H
#define XAC_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log_format.h"
#include "recovery/recover_report.h"

/*
 * xac_recover_dir -- recover the environment in a directory.
 *
 * out  report  filled in as far as it got, also on failure; may be NULL
 * out  master  the new master record (without dry_run); may be NULL
 * ret  0; XAC_ENOTENV; XAC_EDAMAGED, XAC_EFOREIGN, XAC_EVERSION, XAC_EPAGESIZE,
 *      XAC_EREPLACED, XAC_ECOPY, XAC_EINUSE; errno values.  EAGAIN: copies have been added
 *      to `frozen`, so the log must be read again.  Text is noted (err.h).
 */
int xac_recover_dir(int dirfd, const struct xac_recover_options *options,
                    struct xac_recover_report *report, struct xac_master_slot *master);

#endif /* XAC_RECOVER_H */
