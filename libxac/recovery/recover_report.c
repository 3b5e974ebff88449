/* SPDX-License-Identifier: MIT */
/*
 * recover_report.c -- the counters of a recovery: see recover.h.
 */
#include <config.h>

#include "recovery/recover.h"

void
xac_recover_clear_counters(struct xac_recover_report *rep)
{
    rep->blocks = rep->transactions = rep->transactions_redone = 0;
    rep->pages_redone = rep->datafiles = rep->last_commit = 0;
    xac_assert(rep->blocks == 0);
}

void
xac_recover_add_up(struct xac_recover_report *all, const struct xac_recover_report *one)
{
    struct xac_recover_report sum = *one;

    sum.was_backup |= all->was_backup;
    sum.was_copy |= all->was_copy;
    sum.blocks += all->blocks;
    sum.transactions += all->transactions;
    sum.transactions_redone += all->transactions_redone;
    sum.pages_redone += all->pages_redone;
    sum.datafiles += all->datafiles;
    sum.orphans_removed += all->orphans_removed;
    if (one->last_commit == 0) {
        sum.last_commit = all->last_commit;
        sum.last_time_ns = all->last_time_ns;
    }
    if (all->files > sum.files)
        sum.files = all->files;
    if (all->transactions != 0)
        sum.redo_lsn = all->redo_lsn;
    xac_assert(sum.transactions_redone <= sum.transactions);
    *all = sum;
}
