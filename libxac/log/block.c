/* SPDX-License-Identifier: MIT */
/*
 * block.c -- building log blocks and checking their headers; see block.h.
 */
#include <config.h>

#include "log/block.h"

#include <errno.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"

void
xac_builder_init(struct xac_builder *b, void *buf, size_t size)
{
    xac_assert((uintptr_t)buf % 8 == 0 && size >= sizeof(struct xac_block));
    b->buf = (uint8_t *)buf;
    b->size = size;
    b->used = sizeof(struct xac_block);
    b->records = 0;
}

/*
 * put -- take room for a record and write its header; padding is zeroed.
 *
 * in   size  bytes without padding
 * ret  the record, or NULL if it does not fit.
 */
static void *
put(struct xac_builder *b, enum xac_record_type type, uint64_t size)
{
    struct xac_record *rec = (struct xac_record *)(b->buf + b->used);
    uint64_t padded = (size + 7) & ~UINT64_C(7);

    xac_assert(size >= sizeof(struct xac_record));
    xac_assert(b->used % 8 == 0);
    xac_assert(b->used <= b->size);
    if (padded > b->size - b->used || padded > UINT32_MAX)
        return NULL;
    memset((uint8_t *)rec + padded - 8, 0, 8);
    *rec = (struct xac_record){.type = (uint8_t)type, .length = (uint32_t)padded};
    b->used += padded;
    b->records++;
    xac_assert(b->used % 8 == 0);
    xac_assert(b->used <= b->size);
    return rec;
}

bool
xac_put_txn(struct xac_builder *b, enum xac_record_type type, uint64_t txn)
{
    struct xac_xtxn *rec = (struct xac_xtxn *)put(b, type, sizeof *rec);

    if (rec == NULL)
        return false;
    rec->txn = txn;
    return true;
}

bool
xac_put_commit(struct xac_builder *b, uint64_t time_ns)
{
    struct xac_xcommit *rec = (struct xac_xcommit *)put(b, XAC_XCOMMIT, sizeof *rec);

    if (rec == NULL)
        return false;
    rec->time_ns = time_ns;
    return true;
}

bool
xac_put_file(struct xac_builder *b, const struct xac_xfile *head, uint64_t birth_ns,
             const char *path)
{
    size_t len = strlen(path);
    size_t born = birth_ns != 0 ? sizeof birth_ns : 0;
    struct xac_xfile *rec =
        (struct xac_xfile *)put(b, XAC_XFILE, sizeof *rec + born + len);

    xac_assert(head->file != 0);
    xac_assert(len > 0);
    if (rec == NULL)
        return false;
    rec->r.flags = birth_ns != 0 ? XAC_XFILE_BORN : 0;
    rec->file = head->file;
    rec->path_len = (uint32_t)len;
    rec->length = head->length;
    rec->device = head->device;
    rec->inode = head->inode;
    memcpy(rec + 1, &birth_ns, born);
    memcpy((uint8_t *)(rec + 1) + born, path, len);
    return true;
}

bool
xac_put_datafile(struct xac_builder *b, const struct xac_xdatafile *head)
{
    struct xac_xdatafile *rec =
        (struct xac_xdatafile *)put(b, XAC_XDATAFILE, sizeof *rec);

    xac_assert(head->checksum_kind <= XAC_CHECKSUM_SHA1);
    if (rec == NULL)
        return false;
    rec->serial = head->serial;
    rec->length = head->length;
    rec->n_records = head->n_records;
    rec->checksum_kind = head->checksum_kind;
    rec->reserved = 0;
    memcpy(rec->digest, head->digest, sizeof rec->digest);
    return true;
}

bool
xac_put_checkpt_begin(struct xac_builder *b, uint64_t data_serial)
{
    struct xac_xcheckpt_begin *rec =
        (struct xac_xcheckpt_begin *)put(b, XAC_XCHECKPT_BEGIN, sizeof *rec);

    if (rec == NULL)
        return false;
    rec->data_serial = data_serial;
    return true;
}

bool
xac_put_checkpt_end(struct xac_builder *b, uint64_t begin_lsn, uint64_t redo_lsn,
                    uint64_t files_lsn)
{
    size_t spread = files_lsn != 0 ? sizeof files_lsn : 0;
    struct xac_xcheckpt_end *rec =
        (struct xac_xcheckpt_end *)put(b, XAC_XCHECKPT_END, sizeof *rec + spread);

    xac_assert(redo_lsn <= begin_lsn);
    xac_assert(files_lsn == 0 || files_lsn > begin_lsn);
    if (rec == NULL)
        return false;
    rec->r.flags = files_lsn != 0 ? XAC_XCHECKPT_SPREAD : 0;
    rec->begin_lsn = begin_lsn;
    rec->redo_lsn = redo_lsn;
    memcpy(rec + 1, &files_lsn, spread);
    return true;
}

bool
xac_put_forget(struct xac_builder *b, uint32_t file)
{
    struct xac_xforget *rec = (struct xac_xforget *)put(b, XAC_XFORGET, sizeof *rec);

    xac_assert(file != 0);
    if (rec == NULL)
        return false;
    rec->file = file;
    rec->reserved = 0;
    return true;
}

int
xac_block_close(struct xac_builder *b, struct xac_log_id id, int kind)
{
    struct xac_block *blk = (struct xac_block *)b->buf;
    size_t records_len = b->used - sizeof *blk;
    size_t trailer = xac_digest_trailer(kind);
    uint8_t digest[XAC_DIGEST_MAX];
    int rc;

    xac_assert(b->records > 0);
    xac_assert(b->used > sizeof *blk);
    xac_assert(b->used % 8 == 0);
    xac_assert(records_len <= UINT32_MAX);
    if (trailer > b->size - b->used || b->used + trailer > UINT32_MAX)
        return ENOSPC;
    rc = xac_digest(kind, blk + 1, records_len, digest);
    if (rc != 0)
        return rc;
    memcpy(b->buf + b->used, digest, trailer);
    b->used += trailer;
    *blk = (struct xac_block){
        .magic = XAC_BLOCK_MAGIC,
        .length = (uint32_t)b->used,
        .identity = id.identity,
        .generation = id.generation,
        .checksum_kind = (uint8_t)kind,
        .n_records = (uint16_t)(b->records < UINT16_MAX ? b->records : UINT16_MAX),
        .records_len = (uint32_t)records_len,
    };
    memcpy(&blk->records_check, digest, sizeof blk->records_check);
    xac_assert(blk->length == b->used);
    xac_assert(blk->length % XAC_BLOCK_ALIGN == 0);
    return 0;
}

/* header_check -- what the field of that name must hold. */
static uint32_t
header_check(const struct xac_block *blk)
{
    struct xac_block copy = *blk;

    copy.header_check = 0;
    return (uint32_t)xac_xxh64(&copy, sizeof copy);
}

void
xac_block_seal(struct xac_block *blk, uint64_t lsn, uint64_t durable, uint64_t commit)
{
    xac_assert(blk->magic == XAC_BLOCK_MAGIC && lsn % XAC_BLOCK_ALIGN == 0);
    xac_assert(durable <= lsn);
    blk->lsn = lsn;
    blk->durable = durable;
    blk->commit = commit;
    blk->header_check = header_check(blk);
}

bool
xac_block_head_ok(const struct xac_block *blk, struct xac_log_id id, uint64_t lsn)
{
    uint64_t least;

    if (blk->magic != XAC_BLOCK_MAGIC || blk->lsn != lsn || lsn % XAC_BLOCK_ALIGN != 0)
        return false;
    if (blk->identity != id.identity || blk->generation != id.generation
        || !xac_log_generation_ok(id.generation))
        return false;
    if (blk->checksum_kind > XAC_CHECKSUM_SHA1 || blk->reserved != 0)
        return false;
    if (blk->length % XAC_BLOCK_ALIGN != 0 || blk->records_len % 8 != 0)
        return false;
    if (blk->n_records == 0 || blk->records_len < sizeof(struct xac_record))
        return false;
    least =
        sizeof *blk + (uint64_t)blk->records_len + xac_digest_trailer(blk->checksum_kind);
    return blk->length >= least && blk->header_check == header_check(blk);
}

const struct xac_xcommit *
xac_block_commit(const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;

    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XCOMMIT)
            return (const struct xac_xcommit *)(const void *)rec;
    }
    return NULL;
}
