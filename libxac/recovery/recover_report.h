/* SPDX-License-Identifier: MIT */
/*
 * recover_report.h -- what a recovery is asked for, and what it reports (recover.h).
 *
 * WHAT      The options and the report of xac_recover_dir(); the counters of the report.
 * OWNER     The caller.
 *
 * INVARIANT
 *   (1) No more transactions have been redone than there were.
 */
#ifndef XAC_RECOVER_REPORT_H
#define XAC_RECOVER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "log/lineage.h"
#include "recovery/pagesums_check.h"
#include "store/frozen.h"

struct xac_recover_options {
    bool dry_run;         /* look and report, write nothing                           */
    bool cut;             /* cut a damaged log at the damage instead of refusing      */
    bool accept_replaced; /* redo into a file whose inode has changed                 */
    bool is_restore;      /* it is a step of a restore that is not finished           */
    bool is_rewind; /* of a standby that is not whole yet (ship/rewind.h): its files hold
                             more than its log, which is still to come                  */
    bool outside;   /* of a copy: files outside of it belong to it now          */
    /* Called from time to time with the bytes done and their total; may be NULL. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
    uint64_t new_segment_bytes; /* segment size from now on, 0 to keep                */
    const char *log_dir;        /* the log lies there now (logdir.h); NULL: as noted,
                                   if the directory is no copy                        */
    /* Roll a backup (backup_note.h) forward: redo only the log before an LSN, or before the
       first commit later than a time (ns since 1970), 0 no bound; and go on through later
       generations of the log that have been put beside it. */
    bool forward;
    uint64_t until_lsn;
    uint64_t until_ns;
    uint64_t memory_bytes; /* for pages while redoing, 0 for the default         */
    /* dry_run: called for each file that would be written, with the number of its pages that
       would be, and whether it would be made; may be NULL. */
    void (*file)(void *arg, const char *path, uint64_t pages, bool is_made);
    void *file_arg;
    struct xac_pagesums_check *pages; /* dry_run: compare pages with their checksums,
                                         NULL: do not                             */
    /* The generation that begins, of a group (group/member.h): the log must end where it says.  NULL: the
       recovery chooses. */
    const struct xac_lineage_line *begins;
    bool
        promotes; /* a standby becomes an environment of its own; else it is refused       */
    /* Redo onto these copies, from the redo position of their master record, and write nothing
       else; others may be attached.  NULL: redo onto the files. */
    struct xac_frozen *frozen;
};

struct xac_recover_report {
    bool was_clean;               /* the last participant had shut down                */
    uint32_t generation;          /* of the log that was read                          */
    uint64_t redo_lsn;            /* where reading started                             */
    uint64_t end_lsn;             /* where the log ended                               */
    uint64_t synced_lsn;          /* known to have been synced at least up to here     */
    uint64_t blocks;              /* valid blocks read                                 */
    uint64_t transactions;        /* committed transactions in them                    */
    uint64_t transactions_redone; /* of which at least one page was redone             */
    uint64_t pages_redone;        /* XDATA and XCOPY records applied                   */
    uint64_t files;               /* files touched                                     */
    uint64_t discarded_bytes;     /* behind the end: torn tail                         */
    uint64_t discarded_blocks;    /* valid blocks found behind the end                 */
    uint64_t datafiles;           /* data files of large transactions read             */
    uint64_t orphans_removed;     /* data files that no commit names                   */
    uint64_t last_commit;         /* number of the last commit redone, 0 if none       */
    uint64_t last_time_ns;        /* its time, 0 if none                               */
    bool was_backup;              /* xac.backup was there                              */
    bool was_copy;                /* the directory is a copy of an environment's       */
    bool until_reached;           /* the log goes on behind the bound                  */
    bool damaged;                 /* damage was found (and cut, if asked for)          */
    char damage_file[64];         /* name of the log file                              */
    uint64_t damage_offset;       /* bytes, within it                                  */
    char end_reason[128];         /* why the log ends where it does                    */
    uint64_t strays;              /* files that are named like log segments            */
    char stray_file[64];          /* one of them                                       */
};

/* xac_recover_clear_counters -- call it before the log is read again. */
void xac_recover_clear_counters(struct xac_recover_report *rep);

/* xac_recover_add_up -- add the counters of earlier generations to the report on the last one. */
void xac_recover_add_up(struct xac_recover_report *all,
                        const struct xac_recover_report *one);

#endif /* XAC_RECOVER_REPORT_H */
