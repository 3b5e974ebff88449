/* SPDX-License-Identifier: MIT */
/*
 * recover_pass.h -- going through the log during a recovery.
 *
 * WHAT      A pass visits the blocks from the redo position on, and hands their records to the redo
 *           (recover_redo.h): the first pass checks them, a second one applies them if the
 *           pages did not fit into memory.
 * NOT HERE  The order of the steps (recover.h).
 * OWNER     struct xac_recovery belongs to one call of xac_recover_dir().
 *
 * INVARIANTS
 *   (1) `applying` is set only after the whole log has been checked and the files are prepared.
 *   (2) Only a recovery that `writes` changes files of the environment.
 *   (3) A pass that ends without an error and is not `applying` has set `end`, which is at or
 *       behind the redo position.
 */
#ifndef XAC_RECOVER_PASS_H
#define XAC_RECOVER_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "checkpoint/pagesums.h"
#include "log/backup_note.h"
#include "log/manifest.h"
#include "log/master.h"
#include "log/received.h"
#include "log/recover_next.h"
#include "log/recover_scan.h"
#include "recovery/recover_redo.h"
#include "recovery/recover_report.h"

/* One recovery. */
struct xac_recovery {
    int dirfd;
    int logfd; /* of the directory of the log (logdir.h)                              */
    struct xac_identity dir; /* the environment's directory                           */
    const struct xac_recover_options *opt;
    bool writes; /* not only to copies                                                */
    struct xac_recover_report rep;
    struct xac_master_slot master; /* as found */
    struct xac_scan scan;
    struct xac_redo redo;
    bool applying; /* second pass: redo, and count nothing */

    uint64_t end;                /* the log ends here                                   */
    struct xac_place end_place;  /* and why                                             */
    bool stopped;                /* at the bound that was given                        */
    bool goes_on;                /* a later generation of the log follows              */
    struct xac_next next;        /* it                                                 */
    uint32_t next_generation;    /* its number, or of an empty one                     */
    struct xac_backup_note note; /* of a backup; rep.was_backup                        */
    struct xac_manifest manifest; /* likewise; zeros: it has none                      */
    struct xac_received_mark
        mark; /* of a standby: what is synced; else the blocks tell */
    struct xac_pagesums_store sums; /* for checksums of the pages that are redone       */
    bool content_wrong;          /* a valid block there names or holds what is not right*/
    struct xac_scan_found found; /* behind the end                                     */

    bool touched;          /* something of its transaction is redone                   */
    struct xac_place *bad; /* filled in if something about it is not right             */
    bool is_bad;

    uint64_t *serial; /* data files named by the log, in the order of the log          */
    size_t n_serials;
    uint64_t bytes_done; /* progress                                                   */
    uint64_t bytes_total;
};

/* xac_recovery_damage -- note it, unless other damage has been found; ret 0 if it is to be cut. */
int xac_recovery_damage(struct xac_recovery *r, const struct xac_place *place,
                        bool can_cut);

/*
 * xac_recovery_pass -- go through the log from the redo position to `limit` or to its end.
 *
 * out  r->end, r->end_place, r->content_wrong  where and why it ends
 */
int xac_recovery_pass(struct xac_recovery *r, uint64_t limit);

/* xac_recovery_load_checkpoint -- the end of the last complete checkpoint.  It had been synced before
   the master record named it, so anything wrong there is damage. */
int xac_recovery_load_checkpoint(struct xac_recovery *r);

/*
 * xac_recovery_start -- steps 1 to 4 of a recovery (recover.c) and no others: afterwards the files hold what
 * the log has, and no generation has begun.
 *
 * in   options  not those of a dry run; they must stay
 * ret  as xac_recover_dir(); xac_recovery_free() in any case.
 */
int xac_recovery_start(struct xac_recovery *r, int dirfd,
                       const struct xac_recover_options *options);
/* xac_recovery_look -- steps 1 to 3, which write nothing: what xac_recovery_apply() of blocks behind those that
   are in the files needs to know.  ret as xac_recovery_start(). */
int xac_recovery_look(struct xac_recovery *r, int dirfd,
                      const struct xac_recover_options *options);
void xac_recovery_free(struct xac_recovery *r);

/*
 * xac_recovery_check, xac_recovery_apply -- both passes for one block more, of a recovery that has been started:
 * first it is checked, then, after xac_redo_prepare(), applied.
 *
 * ret  0; XAC_EDAMAGED: its contents cannot be, or its data file is not right; errno.
 */
int xac_recovery_check(struct xac_recovery *r, const struct xac_block *blk);
int xac_recovery_apply(struct xac_recovery *r, const struct xac_block *blk);

#endif /* XAC_RECOVER_PASS_H */
