/* SPDX-License-Identifier: MIT */
/*
 * manifest_format.h -- bytes on disk: xac.manifest, xac.pages and xac.changed, which a backup has
 * beside its files, and of which an increment consists.  Little-endian; sizes are bytes.
 *
 * xac.manifest: HEAD, MASTER, TABLE, RUNS, and nothing behind them.
 *
 * HEAD, 512 bytes
 *   OFFSET SIZE FIELD          MEANING
 *      0     8  magic          XAC_MANIFEST_MAGIC
 *      8     4  version        XAC_MANIFEST_VERSION
 *     12     4  page_size      of the environment
 *     16    16  id             of this backup, random
 *     32    16  base           id of the backup that this one is the increment of; zeros: none, it
 *                              is a full backup
 *     48    16  identity       of the environment
 *     64     4  generation     of the log
 *     68     4  link           increments from the full backup to this one; 0: it is full
 *     72     8  redo_lsn       where the recovery of the backup begins
 *     80     8  end_lsn        and where it ends: the moment that the backup is the state of
 *     88     8  time_ns        of that, nanoseconds since 1970
 *     96     8  base_lsn       end_lsn of the base, 0: none
 *    104     8  life_inode     st_ino and
 *    112     8  life_birth_ns  time of birth of the control region, 0 unknown: as long as it is the
 *                              same, no recovery has begun another log
 *    120     8  n_files        entries of the table
 *    128     8  table_bytes    of the table
 *    136     8  n_runs
 *    144     8  n_changed      pages of all runs
 *    152     8  body_check     XXH3-64 of all that stands behind the head
 *    160   344  reserved       zero
 *    504     8  checksum       XXH3-64 of bytes 0..503
 *
 * MASTER, 512 bytes: the slot of the master record (log_format.h) that a restored backup gets
 *
 * TABLE, an entry for each mapped file
 *      0     8  length         of the file
 *      8     8  list_check     of its part of xac.pages, see there
 *     16     8  n_runs         the file's, which follow those of the file before
 *     24     8  inode          st_ino and
 *     32     8  birth_ns       time of birth of the mapped file, 0 unknown
 *     40     8  held_lsn       end of the log before the file was copied, when somebody mapped it
 *     48     4  file           its id in the log, 0: nobody mapped it
 *     52     4  flags          XAC_MANIFEST_MISSING: it was not there
 *     56     4  path_len       bytes of the path as the log has it, without NUL
 *     60     4  copy_len       bytes of its path in the backup
 *     64     4  uid            owner, and
 *     68     4  gid            group of the file
 *     72     4  mode           its rights to read and write
 *     76     4  reserved       zero
 *     80        path, copy, zeros up to a multiple of 8
 *
 * RUNS, 16 bytes each: pages that have changed.  Ascending in each file, not overlapping.
 *      0     8  page           the first
 *      8     8  n              how many, at least 1
 *
 * It is VALID if and only if magic, version and both checksums are right, reserved is zero, the
 * master's slot is valid and of this environment, table and runs fill the rest exactly, names are
 * paths that stay in the backup, and every run lies in its file.
 *
 * xac.pages: 8 bytes for each page of each file, in the order of the table.  The part of a file
 * begins at a multiple of XAC_PAGELIST_BLOCK and is filled up with zeros.  The entry of a page is 0
 * if the page is zeros, else its XXH3-64, or 1 if that is 0; bytes behind the file's end count as
 * zeros.  list_check is c(n) for the n blocks of a part that are not all zeros: c(0) = 0, and c(i)
 * is the XXH3-64 of 24 bytes: c(i-1), the number of the block in its part, the block's XXH3-64.
 *
 * xac.changed: the pages of the runs, one after the other.  A page that has become zeros
 * is in no run: its entry in xac.pages says so.
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_MANIFEST_FORMAT_H
#define XAC_MANIFEST_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log_format.h"

#define XAC_MANIFEST_MAGIC   "XACBKUP1"
#define XAC_MANIFEST_VERSION 1u
#define XAC_MANIFEST_MISSING 1u

#define XAC_PAGELIST_BLOCK   4096u
#define XAC_PAGELIST_ENTRIES (XAC_PAGELIST_BLOCK / sizeof(uint64_t))

struct xac_manifest_head {
    char magic[8];
    uint32_t version;
    uint32_t page_size;
    uint8_t id[16];
    uint8_t base[16];
    uint8_t identity[16];
    uint32_t generation;
    uint32_t link;
    uint64_t redo_lsn;
    uint64_t end_lsn;
    uint64_t time_ns;
    uint64_t base_lsn;
    uint64_t life_inode;
    uint64_t life_birth_ns;
    uint64_t n_files;
    uint64_t table_bytes;
    uint64_t n_runs;
    uint64_t n_changed;
    uint64_t body_check;
    uint8_t reserved[344];
    uint64_t checksum;
};
static_assert(sizeof(struct xac_manifest_head) == 512, "format");
static_assert(offsetof(struct xac_manifest_head, redo_lsn) == 72, "format");
static_assert(offsetof(struct xac_manifest_head, body_check) == 152, "format");
static_assert(offsetof(struct xac_manifest_head, checksum) == 504, "format");
static_assert(sizeof(struct xac_master_slot) == 512, "format");

struct xac_manifest_entry {
    uint64_t length;
    uint64_t list_check;
    uint64_t n_runs;
    uint64_t inode;
    uint64_t birth_ns;
    uint64_t held_lsn;
    uint32_t file;
    uint32_t flags;
    uint32_t path_len;
    uint32_t copy_len;
    uint32_t uid;
    uint32_t gid;
    uint32_t mode;
    uint32_t reserved;
};
static_assert(sizeof(struct xac_manifest_entry) == 80, "format");
static_assert(offsetof(struct xac_manifest_entry, file) == 48, "format");

struct xac_manifest_run {
    uint64_t page;
    uint64_t n;
};
static_assert(sizeof(struct xac_manifest_run) == 16, "format");

#endif /* XAC_MANIFEST_FORMAT_H */
