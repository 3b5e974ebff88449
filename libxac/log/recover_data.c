/* SPDX-License-Identifier: MIT */
/*
 * recover_data.c -- see recover_data.h.
 */
#include <config.h>

#include "log/recover_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "log/log.h"

#define CHUNK      (UINT64_C(1) << 20)
#define RECORD_MAX (UINT32_C(1) << 20) /* far above the record of a 64 KiB page */

/* A file being read front to back. */
struct stream {
    struct xac_rawfile file;
    uint64_t length; /* bytes of it that count */
    uint64_t offset; /* of the chunk           */
    uint8_t *chunk;
    size_t got;     /* bytes in the chunk                        */
    size_t at;      /* consumed of it                            */
    uint8_t *carry; /* a record that does not lie in one chunk */
};

static void
stream_close(struct stream *s)
{
    xac_rawfile_close(&s->file);
    free(s->chunk);
    free(s->carry);
}

/* wrong -- the data file is not what it should be. */
static void
wrong(bool *okp, struct xac_place *place, uint64_t offset, const char *why)
{
    *okp = false;
    place->offset = offset;
    (void)snprintf(place->why, sizeof place->why, "data file: %s", why);
}

/* stream_open -- ret 0 (also if the file is not right: *okp) or errno. */
static int
stream_open(struct stream *s, int dirfd, uint32_t generation,
            const struct xac_xdatafile *rec, bool *okp, struct xac_place *place)
{
    char name[XAC_LOG_NAME_MAX];
    int rc;

    xac_assert(rec->serial != 0);
    *s = (struct stream){.file = XAC_RAWFILE_CLOSED, .length = rec->length};
    *okp = true;
    xac_log_datafile_name(name, generation, rec->serial);
    (void)snprintf(place->file, sizeof place->file, "%s", name);
    rc = xac_rawfile_open(&s->file, dirfd, name);
    if (rc == ENOENT) {
        wrong(okp, place, 0, "missing");
        return 0;
    }
    if (rc != 0)
        return xac_err(rc, "%s: open", name);
    if (s->file.size < rec->length) {
        wrong(okp, place, s->file.size, "too short");
        return 0;
    }
    s->chunk = (uint8_t *)xac_rawfile_buffer(CHUNK);
    s->carry = (uint8_t *)malloc(RECORD_MAX);
    if (s->chunk == NULL || s->carry == NULL)
        return xac_err(ENOMEM, "%s", name);
    return 0;
}

/* stream_fill -- the next chunk; s->got = 0 at the end. */
static int
stream_fill(struct stream *s)
{
    int rc;

    s->offset += s->got;
    s->at = s->got = 0;
    /* Off the grid: the file has become shorter since it was opened. */
    if (s->offset >= s->length || s->offset % XAC_RAWFILE_ALIGN != 0)
        return 0;
    rc = xac_rawfile_read(&s->file, s->chunk, CHUNK, s->offset, &s->got);
    if (rc != 0)
        return xac_err(rc, "%s: read at offset %" PRIu64, s->file.name, s->offset);
    if (s->got > s->length - s->offset)
        s->got = (size_t)(s->length - s->offset);
    xac_assert(s->got <= CHUNK);
    return 0;
}

int
xac_datafile_verify(int dirfd, uint32_t generation, const struct xac_xdatafile *rec,
                    bool *okp, struct xac_place *place)
{
    uint8_t sum[XAC_DIGEST_MAX];
    struct xac_digester d = {.xxh = NULL};
    struct stream s;
    int rc = stream_open(&s, dirfd, generation, rec, okp, place);

    xac_assert(dirfd >= 0);
    if (rc != 0 || !*okp)
        goto out;
    if (rec->checksum_kind > XAC_CHECKSUM_SHA1) {
        wrong(okp, place, 0, "unknown checksum");
        goto out;
    }
    rc = xac_digest_begin(&d, (int)rec->checksum_kind);
    if (rc != 0) {
        (void)xac_err(rc, "%s: digest", s.file.name);
        goto out;
    }
    while ((rc = stream_fill(&s)) == 0 && s.got > 0)
        xac_digest_add(&d, s.chunk, s.got);
    if (rc != 0)
        goto out;
    xac_digest_end(&d, sum);
    if (s.offset != rec->length)
        wrong(okp, place, s.offset, "too short");
    else if (memcmp(sum, rec->digest, sizeof sum) != 0)
        wrong(okp, place, 0, "checksum");
out:
    xac_digest_free(&d);
    stream_close(&s);
    return rc;
}

/* stream_take -- n bytes, in place if they lie in one chunk, else gathered in carry; NULL
   at the end of the file.  rcp gets 0 or errno. */
static const uint8_t *
stream_take(struct stream *s, size_t n, size_t gathered, int *rcp)
{
    xac_assert(n <= RECORD_MAX);
    xac_assert(gathered <= n);
    *rcp = 0;
    if (gathered == 0 && s->got - s->at >= n) {
        s->at += n;
        return s->chunk + s->at - n;
    }
    while (gathered < n) {
        size_t here = s->got - s->at;

        if (here == 0) {
            *rcp = stream_fill(s);
            if (*rcp != 0 || s->got == 0)
                return NULL;
            continue;
        }
        if (here > n - gathered)
            here = n - gathered;
        memcpy(s->carry + gathered, s->chunk + s->at, here);
        s->at += here;
        gathered += here;
    }
    return s->carry;
}

/* stream_record -- the next record; NULL at the end or if it is none (*okp false). */
static const struct xac_xdata *
stream_record(struct stream *s, bool *okp, struct xac_place *place, int *rcp)
{
    uint64_t offset = s->offset + s->at;
    struct xac_record head;
    const uint8_t *p;

    if (offset >= s->length) {
        *rcp = 0;
        return NULL;
    }
    p = stream_take(s, sizeof head, 0, rcp);
    if (p == NULL) {
        if (*rcp == 0)
            wrong(okp, place, offset, "ends within a record");
        return NULL;
    }
    memcpy(&head, p, sizeof head);
    if (head.type != XAC_XDATA || head.length < sizeof(struct xac_xdata)
        || head.length % 8 != 0 || head.length > RECORD_MAX) {
        wrong(okp, place, offset, "no XDATA record");
        return NULL;
    }
    if (p != s->carry && s->got - (s->at - sizeof head) >= head.length) {
        s->at += head.length - sizeof head;
        return (const struct xac_xdata *)(const void *)p;
    }
    memmove(s->carry, &head, sizeof head);
    p = stream_take(s, head.length, sizeof head, rcp);
    if (p == NULL && *rcp == 0)
        wrong(okp, place, offset, "ends within a record");
    return (const struct xac_xdata *)(const void *)p;
}

int
xac_datafile_read(int dirfd, uint32_t generation, const struct xac_xdatafile *rec,
                  xac_datafile_fn fn, void *arg, bool *okp, struct xac_place *place)
{
    const struct xac_xdata *r;
    uint64_t n = 0;
    struct stream s;
    int rc = stream_open(&s, dirfd, generation, rec, okp, place);

    xac_assert(dirfd >= 0);
    xac_assert(fn != NULL);
    if (rc != 0 || !*okp)
        goto out;
    rc = stream_fill(&s);
    if (rc != 0)
        goto out;
    while ((r = stream_record(&s, okp, place, &rc)) != NULL) {
        n++;
        if (!xac_record_ok(&r->r, r->r.length)) {
            wrong(okp, place, s.offset + s.at - r->r.length, "malformed record");
            goto out;
        }
        rc = fn(arg, r);
        if (rc != 0)
            goto out;
    }
    if (rc == 0 && *okp && n != rec->n_records)
        wrong(okp, place, rec->length, "wrong number of records");
out:
    stream_close(&s);
    return rc;
}
