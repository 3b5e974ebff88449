/* SPDX-License-Identifier: MIT */
/*
 * log_format.h -- bytes on disk: master record, log segments, log blocks; nothing else.
 *
 * Every multi-byte field is little-endian.  Sizes are bytes.  The layout is frozen per
 * XAC_FORMAT_VERSION; a change adds a row to the history at the end of this comment.
 * What XAC_FORMAT_VERSION_LEAST and later versions wrote is read; only XAC_FORMAT_VERSION
 * is written.
 *
 * FILES of an environment directory
 *   xac.lock           byte-range locks (lockfile.h), and the path of the control region
 *   xac.master         the master record, two slots
 *   xac-log.%08llu     log segments, numbered from 1 in decimal
 *   xac-log-new        a segment in the making; worth nothing after a crash
 *   xac-data.%08x.%08llx   data file of one large transaction: generation (hex), serial
 *                      (hex)
 *
 * The log is one stream of bytes; a position in it is an LSN.  Segment k holds the LSNs
 * [(k-1)*S, k*S) behind its header of XAC_SEGMENT_HEADER bytes, S = segment_bytes of the
 * master record.  A block may continue in the next segment.  LSN 0 is never used: the
 * first block of a new environment stands at XAC_LSN_FIRST.
 *
 * MASTER SLOT, 512 bytes, at offsets 0 and 4096 of xac.master
 *   OFFSET SIZE FIELD          MEANING
 *      0     8  magic          XAC_MASTER_MAGIC
 *      8     4  version        XAC_FORMAT_VERSION
 *     12     4  page_size      of the machine that made the environment
 *     16    16  identity       random, made with the environment
 *     32     8  sequence       the newest valid slot is the one with the larger number
 *     40     8  segment_bytes  S, a power of two
 *     48     4  generation     of the log: + 1 whenever a recovery has emptied it
 *     52     4  flags          XAC_MASTER_CLEAN: the last participant shut down; nothing
 *                              to redo, for end_lsn describes the end of the log.
 *                              XAC_MASTER_LOGGED: the segment of start_lsn had been
 *                              made; if it is gone, the log has been lost
 *     56     8  start_lsn      where this generation begins
 *     64     8  redo_lsn       recovery reads from here: the smallest LSN needed
 *     72     8  begin_lsn      of the XCHECKPT_BEGIN block, 0 if no checkpoint yet
 *     80     8  end_lsn        of the XCHECKPT_END block, 0 if no checkpoint yet
 *     88     8  end_lsn_after  first LSN behind that block; everything below had been
 *                              synced when this slot was written (start_lsn if none)
 *     96     8  time_ns        wall clock when written, nanoseconds since 1970
 *    104     8  dir_device     st_dev,
 *    112     8  dir_inode      st_ino and
 *    120     8  dir_birth_ns   time of birth (0 unknown) of the directory of
 *                              this environment: any other directory holds
 *                              a copy.  All three 0: not known (version 4, backups)
 *    128   376  reserved       zero
 *    504     8  checksum       XXH3-64 of bytes 0..503
 *   A slot is VALID if and only if magic and version match, reserved is zero, and the
 *   checksum is right.  In version 4 the fields from 104 on were reserved.
 *
 * SEGMENT HEADER, 512 bytes used of XAC_SEGMENT_HEADER, at offset 0 of a segment
 *      0     8  magic          XAC_SEGMENT_MAGIC
 *      8     4  version        XAC_FORMAT_VERSION when it was made.  Blocks of a later
 *                              version may follow in it: they tell by their records
 *     12     4  page_size
 *     16    16  identity       of the environment
 *     32     8  number         k
 *     40     8  segment_bytes  S
 *     48   456  reserved       zero
 *    504     8  checksum       XXH3-64 of bytes 0..503
 *
 * BLOCK HEADER, 64 bytes, at an LSN that is a multiple of XAC_BLOCK_ALIGN
 *      0     4  magic          XAC_BLOCK_MAGIC
 *      4     4  length         of the block: header, records, digest, padding; a
 *                              multiple of XAC_BLOCK_ALIGN
 *      8     8  lsn            position of the block
 *     16     8  identity       first 8 bytes of the environment's identity
 *     24     4  generation
 *     28     1  checksum_kind  enum xac_checksum
 *     29     1  reserved       zero
 *     30     2  n_records      records in the block, at least 1
 *     32     8  durable        the log was synced up to here when the block was built
 *     40     8  commit         commit number of XCOMMIT and checkpoint blocks, else 0
 *     48     4  records_len    bytes of all records, multiple of 8
 *     52     4  header_check   low 32 bits of XXH3-64 of bytes 0..63 with this field zero
 *     56     8  records_check  checksum of the records (see below)
 *   Then records_len bytes of records, then a digest of 0, 16 or 24 bytes: the MD5 (16)
 *   or SHA-1 (20 and 4 zero) of the records.  records_check is the XXH3-64 of the
 *   records, or the first 8 bytes of the digest.  Then zero padding to `length`.
 *   A block is VALID at a position if and only if magic, identity, generation and lsn
 *   (its own position) match, length and records_len are sane, header_check,
 *   records_check and the digest are right, and the records fill records_len exactly.
 *
 * RECORDS, each padded with zeros to a multiple of 8; every record begins with
 *      0     1  type           enum xac_record_type
 *      1     1  flags
 *      2     2  reserved       zero
 *      4     4  length         of the record with this header and padding
 *   XBEGIN    8  8  txn            number of the transaction (age), unique per region
 *   XDATA     8  4  file           id of the file (XFILE)
 *            12  4  n_ranges
 *            16  8  page           page number within the file
 *            24     n_ranges times { 2 offset, 2 length-1 } then the bytes of all ranges
 *                  in order.  Ranges ascend and do not overlap.  With flag
 *                  XAC_XDATA_FULL the ranges apply to a page of zeros (a full page
 *                  image), with XAC_XDATA_BASE to what the file holds, in whatever state
 *                  since; otherwise to the page's previous version.
 *   XCOPY     8  4  file           as XDATA
 *            12  4  n_copies       at least 1
 *            16  8  page           as XDATA
 *            24  8  source_page    page that the bytes come from, and
 *            32  4  source_file    the id of its file
 *            36  4  reserved       zero
 *            40     n_copies times { 2 to, 2 from, 2 length-1 }, offsets in the page and in
 *                  the source.  `to` ascends without overlap.  With flag XAC_XDATA_FULL
 *                  the page is zeros before.  The source is as the records before this
 *                  one have left it, and may be the page itself.
 *   XCOMMIT   8  8  time_ns        wall clock when the block was built, nanoseconds since
 *                                  1970; the transaction is the block's XBEGIN
 *   XABORT    8  8  txn            informative: nothing of the transaction was logged
 *   XFILE     8  4  file           id, unique within a generation, from 1
 *            12  4  path_len       bytes of path, without NUL
 *            16  8  length         bytes mapped so far; recovery extends the file to it
 *            24  8  device         st_dev and
 *            32  8  inode          st_ino of the file when it was mapped
 *            40  8  birth_ns       with flag XAC_XFILE_BORN only: its time of birth
 *            40, 48 path           absolute, or relative to the environment directory
 *   XDATAFILE 8  8  serial         of the data file, from 1, see FILES
 *            16  8  length         bytes of it: XDATA records, nothing else
 *            24  8  n_records
 *            32  4  checksum_kind
 *            36  4  reserved       zero
 *            40 24  digest         XXH3-64 (8), MD5 (16) or SHA-1 (20), zero-padded
 *   XCHECKPT_BEGIN  8  8  data_serial  data files of this generation with smaller serials
 *                                  are of transactions before this block, or of none
 *   XCHECKPT_END    8  8  begin_lsn
 *            16  8  redo_lsn       everything committed from here on must be redone: begin_lsn,
 *                                  or that of an earlier checkpoint (finished or not), or
 *                                  the start of the log.  The first record of any page
 *                                  from here on is a full image, or has XAC_XDATA_BASE
 *            24  8  files_lsn      with flag XAC_XCHECKPT_SPREAD only: the XFILE records lie
 *                                  in the file blocks from here on, between begin_lsn and
 *                                  this block, and in this block
 *   XFORGET   8  4  file           id: nobody maps the file any more, and its user has
 *                                  removed it, or told the library to forget it.  Records
 *                                  of it in this generation are not redone to a file
 *            12  4  reserved       zero
 *
 * BLOCKS
 *   transaction       XBEGIN, XCOPY or XDATA... or one XDATAFILE, XCOMMIT
 *   file              XFILE (one; of a checkpoint, any number), or XFORGET (one)
 *   checkpoint begin  XCHECKPT_BEGIN
 *   checkpoint end    XFILE... (every file that a block from redo_lsn on may name),
 *                     XCHECKPT_END
 *
 * HISTORY   1  first format.
 *           2  XCOMMIT holds the time instead of repeating the transaction's number.
 *           3  XCOPY; XCHECKPT_END without a list of pages.
 *           4  XCHECKPT_BEGIN says which data files are of the log before it; XAC_XDATA_BASE.
 *           5  The master record knows its directory; XFILE the birth of its file; XFORGET;
 *              the files of a checkpoint may lie in several blocks (XAC_XCHECKPT_SPREAD).
 */
#ifndef XAC_LOG_FORMAT_H
#define XAC_LOG_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

#define XAC_FORMAT_VERSION       5u
#define XAC_FORMAT_VERSION_LEAST 4u

#define XAC_MASTER_MAGIC  UINT64_C(0x315453414d434158) /* "XACMAST1" */
#define XAC_SEGMENT_MAGIC UINT64_C(0x314745534c434158) /* "XACLSEG1" */
#define XAC_BLOCK_MAGIC   UINT32_C(0x4b4c4258)         /* "XBLK" */

#define XAC_MASTER_SLOT_STRIDE 4096u
#define XAC_MASTER_CLEAN       1u
#define XAC_MASTER_LOGGED      2u
#define XAC_SEGMENT_HEADER     4096u
#define XAC_BLOCK_ALIGN        8u
#define XAC_LSN_FIRST          4096u
/* A new generation starts at a multiple of this, so that no valid sector is rewritten. */
#define XAC_LSN_GENERATION_ALIGN 4096u

/* xac_log_generation_ok -- a number that a log can have: the first is 1, and the last has a
   successor, or the next recovery would take its blocks for newer ones. */
static inline bool
xac_log_generation_ok(uint32_t generation)
{
    return generation != 0 && generation != UINT32_MAX;
}

struct xac_master_slot {
    uint64_t magic;         /* 000 */
    uint32_t version;       /* 008 */
    uint32_t page_size;     /* 012 */
    uint8_t identity[16];   /* 016 */
    uint64_t sequence;      /* 032 */
    uint64_t segment_bytes; /* 040 */
    uint32_t generation;    /* 048 */
    uint32_t flags;         /* 052 */
    uint64_t start_lsn;     /* 056 */
    uint64_t redo_lsn;      /* 064 */
    uint64_t begin_lsn;     /* 072 */
    uint64_t end_lsn;       /* 080 */
    uint64_t end_lsn_after; /* 088 */
    uint64_t time_ns;       /* 096 */
    uint64_t dir_device;    /* 104 */
    uint64_t dir_inode;     /* 112 */
    uint64_t dir_birth_ns;  /* 120 */
    uint8_t reserved[376];  /* 128 */
    uint64_t checksum;      /* 504 */
};

struct xac_segment_header {
    uint64_t magic;         /* 000 */
    uint32_t version;       /* 008 */
    uint32_t page_size;     /* 012 */
    uint8_t identity[16];   /* 016 */
    uint64_t number;        /* 032 */
    uint64_t segment_bytes; /* 040 */
    uint8_t reserved[456];  /* 048 */
    uint64_t checksum;      /* 504 */
};

struct xac_block {
    uint32_t magic;         /* 00 */
    uint32_t length;        /* 04 */
    uint64_t lsn;           /* 08 */
    uint64_t identity;      /* 16 */
    uint32_t generation;    /* 24 */
    uint8_t checksum_kind;  /* 28 */
    uint8_t reserved;       /* 29 */
    uint16_t n_records;     /* 30; 65535 stands for "at least that many" */
    uint64_t durable;       /* 32 */
    uint64_t commit;        /* 40 */
    uint32_t records_len;   /* 48 */
    uint32_t header_check;  /* 52 */
    uint64_t records_check; /* 56 */
};

enum xac_record_type {
    XAC_XBEGIN = 1,
    XAC_XDATA = 2,
    XAC_XCOMMIT = 3,
    XAC_XABORT = 4,
    XAC_XCHECKPT_BEGIN = 5,
    XAC_XCHECKPT_END = 6,
    XAC_XFILE = 7,
    XAC_XDATAFILE = 8,
    XAC_XCOPY = 9,
    XAC_XFORGET = 10,
};

#define XAC_XDATA_FULL      1u /* flag of XDATA and XCOPY: the page was zeros before */
#define XAC_XDATA_BASE      2u /* flag of XDATA: the page was as its file has it */
#define XAC_XFILE_BORN      1u /* flag of XFILE: the time of birth stands before the path */
#define XAC_XCHECKPT_SPREAD 1u /* flag of XCHECKPT_END: files_lsn stands behind it */

struct xac_record {
    uint8_t type;      /* 0 enum xac_record_type */
    uint8_t flags;     /* 1 */
    uint16_t reserved; /* 2 */
    uint32_t length;   /* 4 */
};

struct xac_xtxn {        /* XBEGIN, XABORT */
    struct xac_record r; /* 00 */
    uint64_t txn;        /* 08 */
};

struct xac_xcheckpt_begin {
    struct xac_record r;  /* 00 */
    uint64_t data_serial; /* 08 */
};

struct xac_xcommit {
    struct xac_record r; /* 00 */
    uint64_t time_ns;    /* 08 */
};

struct xac_range {
    uint16_t offset;        /* 0 within the page                                      */
    uint16_t length_less_1; /* 2 so that 65536 bytes fit                              */
};

struct xac_xdata {
    struct xac_record r; /* 00 */
    uint32_t file;       /* 08 */
    uint32_t n_ranges;   /* 12 */
    uint64_t page;       /* 16 */
    /* 24 ranges, then bytes */
};

struct xac_copy {
    uint16_t to;            /* 0 within the page                                      */
    uint16_t from;          /* 2 within the source                                    */
    uint16_t length_less_1; /* 4 */
};

struct xac_xcopy {
    struct xac_record r;  /* 00 */
    uint32_t file;        /* 08 as in XDATA */
    uint32_t n_copies;    /* 12 */
    uint64_t page;        /* 16 as in XDATA */
    uint64_t source_page; /* 24 */
    uint32_t source_file; /* 32 */
    uint32_t reserved;    /* 36 */
    /* 40 copies */
};

struct xac_xfile {
    struct xac_record r; /* 00 */
    uint32_t file;       /* 08 */
    uint32_t path_len;   /* 12 */
    uint64_t length;     /* 16 */
    uint64_t device;     /* 24 */
    uint64_t inode;      /* 32 */
    /* 40 path */
};

struct xac_xdatafile {
    struct xac_record r;    /* 00 */
    uint64_t serial;        /* 08 */
    uint64_t length;        /* 16 */
    uint64_t n_records;     /* 24 */
    uint32_t checksum_kind; /* 32 */
    uint32_t reserved;      /* 36 */
    uint8_t digest[24];     /* 40 */
};

struct xac_xcheckpt_end {
    struct xac_record r; /* 00 */
    uint64_t begin_lsn;  /* 08 */
    uint64_t redo_lsn;   /* 16 */
    /* 24 files_lsn, with XAC_XCHECKPT_SPREAD */
};

struct xac_xforget {
    struct xac_record r; /* 00 */
    uint32_t file;       /* 08 */
    uint32_t reserved;   /* 12 */
};

static_assert(sizeof(struct xac_xforget) == 16, "XFORGET");
static_assert(sizeof(struct xac_master_slot) == 512, "master slot");
static_assert(offsetof(struct xac_master_slot, time_ns) == 96, "master time");
static_assert(offsetof(struct xac_master_slot, dir_device) == 104, "master directory");
static_assert(offsetof(struct xac_master_slot, checksum) == 504, "master checksum");
static_assert(sizeof(struct xac_segment_header) == 512, "segment header");
static_assert(offsetof(struct xac_segment_header, checksum) == 504, "segment checksum");
static_assert(sizeof(struct xac_block) == 64, "block header");
static_assert(offsetof(struct xac_block, header_check) == 52, "block header check");
static_assert(sizeof(struct xac_record) == 8, "record header");
static_assert(sizeof(struct xac_xtxn) == 16, "XBEGIN, XABORT");
static_assert(sizeof(struct xac_xcheckpt_begin) == 16, "XCHECKPT_BEGIN");
static_assert(sizeof(struct xac_xcommit) == 16, "XCOMMIT");
static_assert(sizeof(struct xac_range) == 4, "range");
static_assert(sizeof(struct xac_xdata) == 24, "XDATA");
static_assert(sizeof(struct xac_xfile) == 40, "XFILE");
static_assert(sizeof(struct xac_xdatafile) == 64, "XDATAFILE");
static_assert(sizeof(struct xac_copy) == 6, "copy");
static_assert(sizeof(struct xac_xcopy) == 40, "XCOPY");
static_assert(offsetof(struct xac_xcopy, page) == offsetof(struct xac_xdata, page),
              "page");
static_assert(sizeof(struct xac_xcheckpt_end) == 24, "XCHECKPT_END");

#endif /* XAC_LOG_FORMAT_H */
