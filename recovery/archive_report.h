/* SPDX-License-Identifier: MIT */
/*
 * archive_report.h -- what an archiver is asked for, and what it reports (archive_ship.h).
 *
 * OWNER     The caller of archive_run().
 */
#ifndef XAC_ARCHIVE_REPORT_H
#define XAC_ARCHIVE_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct archive_options {
    const char *dir, *dest;
    bool follows; /* go on until `stop`; else until all durable log is there            */
    bool quiet;
    uint64_t backup_every_ns; /* 0: only by the log that has been shipped              */
    uint64_t keep_ns;         /* moments that can be restored at least; 0: all         */
    const _Atomic bool *stop; /* set by a signal                                       */
};

struct archive_report {
    uint64_t objects, bytes; /* put                                                    */
    uint64_t log_bytes;
    uint64_t backups;
    uint64_t manifest; /* number of the last                                          */
    uint32_t generation;
    uint64_t lsn; /* the log up to there is in the archive                            */
};

#endif /* XAC_ARCHIVE_REPORT_H */
