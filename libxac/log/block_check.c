/* SPDX-License-Identifier: MIT */
/*
 * block_check.c -- proving that bytes from disk are the records of a block; see block.h.
 *
 * Nothing is believed before it has been compared with the room there is.  What passes
 * here may be walked with xac_record_next and its tables read without further checks;
 * only whether ranges fit the page size is left to xac_apply_page.
 */
#include <config.h>

#include "log/block.h"

#include <string.h>

#include <xac.h>

#include "base/digest.h"

static bool
all_zero(const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (p[i] != 0)
            return false;
    }
    return true;
}

/*
 * ends_at -- true if a record whose contents take `size` bytes has the length that
 * follows from it, and zeros in between.
 */
static bool
ends_at(const struct xac_record *rec, uint64_t size)
{
    xac_assert(rec->length % 8 == 0);
    if (size > rec->length || rec->length - size >= 8)
        return false;
    return all_zero((const uint8_t *)rec + size, rec->length - size);
}

static bool
txn_ok(const struct xac_record *rec)
{
    return rec->length == sizeof(struct xac_xtxn) && rec->flags == 0;
}

static bool
data_ok(const struct xac_record *rec)
{
    const struct xac_xdata *r = (const struct xac_xdata *)rec;
    const struct xac_range *range = (const struct xac_range *)(r + 1);
    uint64_t size = sizeof *r;
    uint32_t end = 0;

    if (rec->length < sizeof *r || rec->flags > XAC_XDATA_BASE || r->file == 0)
        return false;
    if (r->n_ranges > (rec->length - sizeof *r) / sizeof *range)
        return false;
    size += r->n_ranges * (uint64_t)sizeof *range;
    for (uint32_t i = 0; i < r->n_ranges; i++) {
        uint32_t len = range[i].length_less_1 + 1u;

        if (range[i].offset < end || range[i].offset + len > 65536)
            return false;
        end = range[i].offset + len;
        size += len;
    }
    return ends_at(rec, size);
}

static bool
file_ok(const struct xac_record *rec)
{
    const struct xac_xfile *r = (const struct xac_xfile *)rec;
    uint64_t head = sizeof *r + ((rec->flags & XAC_XFILE_BORN) != 0 ? 8 : 0);

    if (rec->length < head || (rec->flags & ~XAC_XFILE_BORN) != 0 || r->file == 0
        || r->path_len == 0)
        return false;
    if (!ends_at(rec, head + r->path_len))
        return false;
    return memchr(xac_xfile_path(r), '\0', r->path_len) == NULL;
}

static bool
datafile_ok(const struct xac_record *rec)
{
    static const size_t digest_bytes[] = {
        [XAC_CHECKSUM_XXH3] = 8, [XAC_CHECKSUM_MD5] = 16, [XAC_CHECKSUM_SHA1] = 20};
    const struct xac_xdatafile *r = (const struct xac_xdatafile *)rec;
    size_t n;

    if (rec->length != sizeof *r || rec->flags != 0 || r->reserved != 0)
        return false;
    if (r->serial == 0 || r->checksum_kind > XAC_CHECKSUM_SHA1)
        return false;
    n = digest_bytes[r->checksum_kind];
    return all_zero(r->digest + n, sizeof r->digest - n);
}

static bool
copy_ok(const struct xac_record *rec)
{
    const struct xac_xcopy *r = (const struct xac_xcopy *)rec;
    const struct xac_copy *copy = (const struct xac_copy *)(r + 1);
    uint32_t end = 0;

    if (rec->length < sizeof *r || (rec->flags & ~XAC_XDATA_FULL) != 0 || r->file == 0
        || r->source_file == 0 || r->reserved != 0 || r->n_copies == 0)
        return false;
    if (r->n_copies > (rec->length - sizeof *r) / sizeof *copy)
        return false;
    for (uint32_t i = 0; i < r->n_copies; i++) {
        uint32_t len = copy[i].length_less_1 + 1u;

        if (copy[i].to < end || copy[i].to + len > 65536 || copy[i].from + len > 65536)
            return false;
        end = copy[i].to + len;
    }
    return ends_at(rec, sizeof *r + r->n_copies * (uint64_t)sizeof *copy);
}

static bool
checkpt_end_ok(const struct xac_record *rec)
{
    const struct xac_xcheckpt_end *r = (const struct xac_xcheckpt_end *)rec;

    bool is_spread = rec->flags == XAC_XCHECKPT_SPREAD;

    return rec->length == sizeof *r + (is_spread ? 8 : 0)
           && (rec->flags & ~XAC_XCHECKPT_SPREAD) == 0 && r->redo_lsn <= r->begin_lsn
           && (!is_spread || xac_checkpt_files(r) > r->begin_lsn);
}

static bool
forget_ok(const struct xac_record *rec)
{
    const struct xac_xforget *r = (const struct xac_xforget *)rec;

    return rec->length == sizeof *r && rec->flags == 0 && r->file != 0
           && r->reserved == 0;
}

bool
xac_record_ok(const struct xac_record *rec, uint64_t room)
{
    if (room < sizeof *rec || rec->length < sizeof *rec || rec->length > room)
        return false;
    if (rec->length % 8 != 0 || rec->reserved != 0)
        return false;
    switch (rec->type) {
    case XAC_XBEGIN:
    case XAC_XCOMMIT:
    case XAC_XABORT:
    case XAC_XCHECKPT_BEGIN:
        return txn_ok(rec);
    case XAC_XDATA:
        return data_ok(rec);
    case XAC_XCOPY:
        return copy_ok(rec);
    case XAC_XFILE:
        return file_ok(rec);
    case XAC_XDATAFILE:
        return datafile_ok(rec);
    case XAC_XCHECKPT_END:
        return checkpt_end_ok(rec);
    case XAC_XFORGET:
        return forget_ok(rec);
    default:
        return false;
    }
}

/* records_ok -- true if the records are sound and fill records_len exactly. */
static bool
records_ok(const struct xac_block *blk)
{
    const uint8_t *at = (const uint8_t *)(blk + 1);
    uint64_t left = blk->records_len;
    uint64_t n = 0;

    while (left > 0) {
        const struct xac_record *rec = (const struct xac_record *)at;

        if (!xac_record_ok(rec, left))
            return false;
        at += rec->length;
        left -= rec->length;
        n++;
    }
    return blk->n_records == (n < UINT16_MAX ? n : UINT16_MAX);
}

bool
xac_block_body_ok(const struct xac_block *blk)
{
    const uint8_t *records = (const uint8_t *)(blk + 1);
    const uint8_t *trailer = records + blk->records_len;
    size_t trailer_len = xac_digest_trailer(blk->checksum_kind);
    uint8_t digest[XAC_DIGEST_MAX];

    if (xac_digest(blk->checksum_kind, records, blk->records_len, digest) != 0)
        return false;
    if (memcmp(&blk->records_check, digest, sizeof blk->records_check) != 0)
        return false;
    if (memcmp(trailer, digest, trailer_len) != 0)
        return false;
    if (!all_zero(trailer + trailer_len,
                  blk->length - sizeof *blk - blk->records_len - trailer_len))
        return false;
    return records_ok(blk);
}

const struct xac_record *
xac_record_next(const struct xac_block *blk, const struct xac_record *rec)
{
    const uint8_t *first = (const uint8_t *)(blk + 1);
    const uint8_t *next = rec == NULL ? first : (const uint8_t *)rec + rec->length;

    xac_assert(rec == NULL || rec->length != 0);
    return next < first + blk->records_len ? (const struct xac_record *)next : NULL;
}
