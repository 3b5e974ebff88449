/* SPDX-License-Identifier: MIT */
/*
 * backup_report.h -- what a backup says of itself: while it is made, and afterwards.
 *
 * OWNER     The caller of xac_backup_run() or xac_restore_run().
 */
#ifndef XAC_BACKUP_REPORT_H
#define XAC_BACKUP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* How the pages of a file were found that have changed since the base (backup_files.c). */
enum xac_backup_way {
    XAC_WAY_WHOLE = 0, /* no base: all are copied                                      */
    XAC_WAY_LOG = 1,
    XAC_WAY_SUMS = 2,
    XAC_WAY_COMPARE = 3,
    XAC_WAYS
};

/* The result of a backup. */
struct xac_backup_report {
    uint64_t files;      /* mapped files copied                                       */
    uint64_t file_bytes; /* bytes of them that were copied, without holes             */
    uint64_t read_bytes; /* bytes of them that were read                              */
    uint64_t files_by[XAC_WAYS]; /* of an increment                                   */
    char why[512]; /* why the first file for which it did not was not asked of the
                            log; empty: there is none                                 */
    bool is_increment;
    uint32_t link;      /* increments since the full backup                          */
    uint64_t log_bytes; /* of the log, data files of large transactions included     */
    uint64_t redo_lsn;  /* where its recovery begins                                 */
    uint64_t end_lsn;   /* and ends                                                  */
    uint64_t time_ns;   /* of that, nanoseconds since 1970                           */
};

/* Called from time to time with the bytes copied and about how many there are to copy. */
struct xac_backup_progress {
    void (*fn)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

#endif /* XAC_BACKUP_REPORT_H */
