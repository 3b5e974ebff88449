/* SPDX-License-Identifier: MIT */
/*
 * recover_report.c -- see recover_report.h.
 */
#include <config.h>

#include "recovery/recover_report.h"

void
xac_recover_clear_counters(struct xac_recover_report *rep)
{
    rep->blocks = rep->transactions = rep->transactions_redone = 0;
    rep->pages_redone = rep->datafiles = rep->last_commit = 0;
    xac_assert(rep->blocks == 0);
    xac_assert(rep->transactions_redone <= rep->transactions); /* (1) */
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
    xac_assert(sum.transactions_redone <= sum.transactions); /* (1) */
    xac_assert(sum.blocks >= one->blocks);
    xac_assert(sum.pages_redone >= one->pages_redone);
    *all = sum;
}
