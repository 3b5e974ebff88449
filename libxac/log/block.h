/* SPDX-License-Identifier: MIT */
/*
 * block.h -- building and checking log blocks (log_format.h) in memory.
 *
 * A block is built in three steps.  Records are put one after the other.  xac_block_close
 * computes everything that does not depend on the place in the log, without a lock.
 * xac_block_seal fills in place and commit number under the publish lock, in constant
 * time.
 */
#ifndef XAC_BLOCK_H
#define XAC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "log/log_format.h"

/* A block under construction, in a buffer of the caller's. */
struct xac_builder {
    uint8_t *buf;     /* 8-aligned; the block starts here                             */
    size_t size;      /* of buf, bytes                                                */
    size_t used;      /* bytes so far, header included                                */
    uint32_t records; /* put so far                                                   */
};

/* What identifies a log; every block of it carries this. */
struct xac_log_id {
    uint64_t identity;
    uint32_t generation;
};

void xac_builder_init(struct xac_builder *b, void *buf, size_t size);

/*
 * Put a record.  ret true, or false if the buffer is too small (nothing put).
 */
bool xac_put_txn(struct xac_builder *b, enum xac_record_type type, uint64_t txn);
/* time_ns: wall clock, nanoseconds since 1970. */
bool xac_put_commit(struct xac_builder *b, uint64_t time_ns);
/* head: file, length, device, inode; path_len is that of the string; birth_ns 0: not known. */
bool xac_put_file(struct xac_builder *b, const struct xac_xfile *head, uint64_t birth_ns,
                  const char *path);
/* head: all but the record header. */
bool xac_put_datafile(struct xac_builder *b, const struct xac_xdatafile *head);
bool xac_put_checkpt_begin(struct xac_builder *b, uint64_t data_serial);
/* files_lsn: of the first of several blocks with its files; 0: all are in this one. */
bool xac_put_checkpt_end(struct xac_builder *b, uint64_t begin_lsn, uint64_t redo_lsn,
                         uint64_t files_lsn);
bool xac_put_forget(struct xac_builder *b, uint32_t file);

/*
 * xac_put_page -- put an XDATA record with the differences between two pages.
 *
 * in   from       previous version of the page, or NULL for a full image
 * in   to         new version
 * in   page_size  bytes of both, a multiple of 64, at most 65536
 * ret  as above; a page without differences puts a record without ranges.
 */
bool xac_put_page(struct xac_builder *b, uint32_t file, uint64_t page,
                  const uint8_t *from, const uint8_t *to, size_t page_size);

/* A change of a page, and the page from which its bytes may come. */
struct xac_page_change {
    bool is_base; /* a difference to the page in the file: XAC_XDATA_BASE             */
    uint32_t file;
    uint32_t source_file;
    uint64_t page;
    uint64_t source_page;
    const uint8_t *from;   /* previous version, NULL: a full image                    */
    const uint8_t *to;     /* new version                                             */
    const uint8_t *source; /* bytes that the source has at this place of the log; NULL:
                              none                                                    */
};

/* Records smaller than this are not searched for copies. */
#define XAC_COPY_WORTH 160u

/*
 * xac_put_change -- put a change of a page as XCOPY and XDATA if that is shorter than as
 * XDATA alone; ret as above.
 */
bool xac_put_change(struct xac_builder *b, const struct xac_page_change *c,
                    size_t page_size);

/* xac_page_record_max -- most bytes that xac_put_page takes for one page. */
size_t xac_page_record_max(size_t page_size);

/*
 * xac_block_close -- pad, checksum the records.
 *
 * in   kind  enum xac_checksum
 * ret  0; ENOSPC if the digest does not fit; ENOTSUP (xac_digest).
 * out  the block's final length is in its header and in b->used.
 */
int xac_block_close(struct xac_builder *b, struct xac_log_id id, int kind);

/* xac_block_seal -- give a closed block its place. */
void xac_block_seal(struct xac_block *blk, uint64_t lsn, uint64_t durable,
                    uint64_t commit);

/*
 * xac_block_head_ok -- true if the 64 bytes are the header of a block of this log at lsn.
 */
bool xac_block_head_ok(const struct xac_block *blk, struct xac_log_id id, uint64_t lsn);

/*
 * xac_block_body_ok -- true if records_check, digest, padding and the chain of records
 * are right.  The header must have passed xac_block_head_ok, and blk->length bytes must
 * be present.
 */
bool xac_block_body_ok(const struct xac_block *blk);

/*
 * xac_record_ok -- true if a record is right: type, length, flags, tables, padding.
 *
 * xac_block_body_ok does this for each record; this function is for records outside of
 * blocks, in data files.
 * in   rec   8-aligned
 * in   room  bytes present from rec on
 */
bool xac_record_ok(const struct xac_record *rec, uint64_t room);

/*
 * xac_record_next -- iterate over the records of a checked block.
 *
 * in   rec  NULL for the first
 * ret  the record after rec, or NULL.
 */
const struct xac_record *xac_record_next(const struct xac_block *blk,
                                         const struct xac_record *rec);

/* xac_xfile_birth -- of the file of an XFILE record, 0 unknown; xac_xfile_path -- its path,
   path_len bytes without NUL. */
static inline uint64_t
xac_xfile_birth(const struct xac_xfile *rec)
{
    uint64_t birth_ns = 0;

    if ((rec->r.flags & XAC_XFILE_BORN) != 0)
        memcpy(&birth_ns, rec + 1, sizeof birth_ns);
    return birth_ns;
}

/* xac_checkpt_files -- where the file blocks of a checkpoint begin; 0: it has none. */
static inline uint64_t
xac_checkpt_files(const struct xac_xcheckpt_end *rec)
{
    uint64_t lsn = 0;

    if ((rec->r.flags & XAC_XCHECKPT_SPREAD) != 0)
        memcpy(&lsn, rec + 1, sizeof lsn);
    return lsn;
}

static inline const char *
xac_xfile_path(const struct xac_xfile *rec)
{
    return (const char *)(rec + 1)
           + ((rec->r.flags & XAC_XFILE_BORN) != 0 ? sizeof(uint64_t) : 0);
}

/*
 * xac_apply_page -- apply an XDATA record to a page.
 *
 * A full image clears the page first.
 * ret  true; false if a range leaves the page or the record (page then unspecified).
 */
bool xac_apply_page(const struct xac_xdata *rec, uint8_t *page, size_t page_size);

/*
 * xac_apply_copy -- apply an XCOPY record to a page.
 *
 * in   source  bytes of the source; not the page itself, but maybe a copy of it
 * ret  true; false if a copy leaves a page (page then unspecified).
 */
bool xac_apply_copy(const struct xac_xcopy *rec, const uint8_t *source, uint8_t *page,
                    size_t page_size);

/* xac_block_commit -- the block's XCOMMIT record; NULL if it has none. */
const struct xac_xcommit *xac_block_commit(const struct xac_block *blk);

#endif /* XAC_BLOCK_H */
