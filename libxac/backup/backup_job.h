/* SPDX-License-Identifier: MIT */
/*
 * backup_job.h -- what the parts of one backup know of it.
 *
 * WHAT      backup.c has the order of the steps, backup_files.c copies mapped files.
 * OWNER     One call of xac_backup_run(), one thread.
 */
#ifndef XAC_BACKUP_JOB_H
#define XAC_BACKUP_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backup/backup_report.h"
#include "backup/changed.h"
#include "base/copy.h"
#include "base/newfile.h"
#include "log/backup_note.h"
#include "log/manifest.h"

struct xac_env;

/* The backup that this one is the increment of. */
struct xac_backup_base {
    const char *dir;
    int dirfd;   /* -1: there is none                                                 */
    int pagesfd; /* its xac.pages                                                     */
    struct xac_manifest m;
};

/* One backup. */
struct xac_backup_job {
    struct xac_env *env;
    const char *dir;
    int dirfd;              /* of the backup                                          */
    struct xac_owner owner; /* of log files there: no wider than the environment's    */
    struct xac_copier copier;
    const struct xac_backup_progress *progress; /* NULL: nobody wants to know         */
    uint64_t seen;  /* bytes of mapped files that are done, read or not               */
    uint64_t total; /* bytes to be done, log included, about                          */
    struct xac_master_slot master;
    struct xac_backup_note note;
    struct xac_manifest m;
    uint64_t tail;        /* of the log after the checkpoint                            */
    uint64_t data_serial; /* data files with smaller ones are not needed               */
    uint64_t zeros_sum;   /* XXH3-64 of a page of zeros                                 */
    struct xac_backup_report rep;
    uint32_t n_done; /* registered files copied                                       */
    struct xac_backup_base base;
    struct xac_changed changed; /* since the base                                     */
    int pagesfd;                /* xac.pages, and                                     */
    int changedfd;              /* xac.changed of this backup; -1: it is full         */
    uint8_t *pages;             /* XAC_PAGELIST_ENTRIES pages                         */
};

#endif /* XAC_BACKUP_JOB_H */
