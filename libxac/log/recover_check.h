/* SPDX-License-Identifier: MIT */
/*
 * recover_check.h -- verifying the log that recovery does not read any more, but that a backup
 * may need to be rolled forward.
 *
 * WHAT      Checks every segment before the redo position: headers, blocks, that each block
 *           begins where the one before ends, and the data files that still exist.
 * NOT HERE  The log from the redo position on (a dry run of recover.h), the mapped files.
 * LOCK      The caller holds the gate.  Nothing here writes.
 */
#ifndef XAC_RECOVER_CHECK_H
#define XAC_RECOVER_CHECK_H

#include <stdint.h>

#include "log/recover_scan.h"

struct xac_check_report {
    uint64_t segments; /* there are                                                   */
    uint64_t blocks;   /* right ones, before the redo position                        */
    uint64_t bytes;    /* of them                                                     */
    uint64_t datafiles;
    uint64_t damages;
};

/* Called for each damage. */
typedef void (*xac_check_fn)(void *arg, const struct xac_place *place);

/*
 * xac_check_log -- walk through the log before the redo position.
 *
 * in   dirfd  of the directory of the log
 *
 * A place without a valid block is damage if a later block of the same generation says that it
 * had been synced; else it is the torn tail that a recovery has discarded.
 * ret  0, damaged or not; XAC_EFOREIGN and others of xac_scan_block; ENOMEM; errno.
 */
int xac_check_log(int dirfd, const struct xac_master_slot *master, xac_check_fn fn,
                  void *arg, struct xac_check_report *report);

#endif /* XAC_RECOVER_CHECK_H */
