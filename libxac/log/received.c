/* SPDX-License-Identifier: MIT */
/*
 * received.c -- see received.h.
 */
#include <config.h>

#include "log/received.h"

#include <errno.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/received_format.h"

/* Both slots as they are read. */
struct slots {
    struct xac_received_slot slot[2];
    bool is_valid[2];
    bool is_other; /* one looks like that of another version                          */
};

/* ---- Slots ---------------------------------------------------------------------------- */

static uint64_t
checksum_of(const struct xac_received_slot *s)
{
    xac_assert(s != NULL);
    return xac_xxh64(s, offsetof(struct xac_received_slot, checksum));
}

/* is_valid -- if and only if what received_format.h says. */
static bool
is_valid(const struct xac_received_slot *s, const uint8_t identity[16])
{
    return s->magic == XAC_RECEIVED_MAGIC && s->version == XAC_RECEIVED_VERSION
           && memcmp(s->identity, identity, sizeof s->identity) == 0
           && xac_bytes_are_zero(s->reserved, sizeof s->reserved)
           && s->checksum == checksum_of(s);
}

/* slots_read -- both; ret 0 or errno, words noted. */
static int
slots_read(int fd, const uint8_t identity[16], struct slots *out)
{
    *out = (struct slots){.is_other = false};
    for (unsigned i = 0; i < 2; i++) {
        struct xac_received_slot *s = &out->slot[i];
        size_t got;
        int rc = xac_read_full(fd, s, sizeof *s, (uint64_t)i * XAC_RECEIVED_STRIDE, &got);

        xac_assert(fd >= 0);
        if (rc != 0)
            return xac_err(rc, "%s: read", XAC_RECEIVED_NAME);
        out->is_valid[i] = is_valid(s, identity);
        out->is_other |=
            s->magic == XAC_RECEIVED_MAGIC && s->version != XAC_RECEIVED_VERSION;
    }
    return 0;
}

/* is_newer -- of two valid slots. */
static bool
is_newer(const struct xac_received_slot *a, const struct xac_received_slot *b)
{
    return a->generation != b->generation ? a->generation > b->generation
                                          : a->lsn > b->lsn;
}

/* newest -- the slot that must stay; -1: none is valid. */
static int
newest(const struct slots *s)
{
    if (s->is_valid[0] && s->is_valid[1])
        return is_newer(&s->slot[1], &s->slot[0]) ? 1 : 0;
    if (s->is_valid[1])
        return 1;
    return s->is_valid[0] ? 0 : -1;
}

/* ---- Reading -------------------------------------------------------------------------- */

int
xac_received_read(int dirfd, const struct xac_master_slot *master,
                  struct xac_received_mark *out)
{
    struct slots s;
    int fd, rc;

    *out = (struct xac_received_mark){.counts = false};
    fd = xac_sys.openat(dirfd, XAC_RECEIVED_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", XAC_RECEIVED_NAME);
    rc = slots_read(fd, master->identity, &s);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return rc;
    if (newest(&s) < 0 && s.is_other)
        return xac_err(XAC_EVERSION, "%s", XAC_RECEIVED_NAME);
    if (newest(&s) < 0)
        return xac_err(XAC_EDAMAGED,
                       "%s: no valid mark of how far the log of this standby had been "
                       "synced",
                       XAC_RECEIVED_NAME);
    for (unsigned i = 0; i < 2; i++) {
        if (!s.is_valid[i] || s.slot[i].generation != master->generation)
            continue;
        out->counts = true;
        if (s.slot[i].lsn > out->lsn)
            out->lsn = s.slot[i].lsn;
    }
    xac_assert(out->counts || out->lsn == 0);
    return 0;
}

/* ---- Writing -------------------------------------------------------------------------- */

void
xac_received_open(struct xac_received *r, int dirfd, const struct xac_master_slot *master)
{
    xac_assert(dirfd >= 0);
    *r = (struct xac_received){.dirfd = dirfd,
                               .generation = master->generation,
                               .fd = -1,
                               .is_synced = true};
    memcpy(r->identity, master->identity, sizeof r->identity);
}

void
xac_received_close(struct xac_received *r)
{
    xac_close_fd(&r->fd);
    xac_assert(r->fd == -1);
}

/* fill -- a slot. */
static void
fill(const struct xac_received *r, uint64_t lsn, struct xac_received_slot *s)
{
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    *s = (struct xac_received_slot){.magic = XAC_RECEIVED_MAGIC,
                                    .version = XAC_RECEIVED_VERSION,
                                    .generation = r->generation,
                                    .lsn = lsn};
    memcpy(s->identity, r->identity, sizeof s->identity);
    s->checksum = checksum_of(s);
}

/* make -- the file, with the mark in its first slot, on disk. */
static int
make(struct xac_received *r, uint64_t lsn)
{
    struct xac_newfile file = {.dirfd = r->dirfd,
                               .made = XAC_RECEIVED_NAME "-new",
                               .name = XAC_RECEIVED_NAME,
                               .is_synced = true};
    uint8_t bytes[XAC_RECEIVED_BYTES] = {0};
    struct xac_received_slot s;
    int rc;

    xac_assert(r->fd == -1);
    fill(r, lsn, &s);
    memcpy(bytes, &s, sizeof s);
    rc = xac_newfile_replace(&file, bytes, sizeof bytes, &r->fd);
    if (rc != 0) {
        xac_close_fd(&r->fd);
        return xac_err(rc, "%s: make", XAC_RECEIVED_NAME);
    }
    r->slot = 1;
    return 0;
}

/* go_on -- with the file that is there: after a kill its newest slot may be in the page cache only. */
static int
go_on(struct xac_received *r, uint64_t lsn)
{
    struct slots s;
    int rc =
        xac_sys.fdatasync(r->fd) == 0 ? 0 : xac_err(errno, "%s: sync", XAC_RECEIVED_NAME);

    xac_assert(r->fd >= 0);
    if (rc == 0)
        rc = slots_read(r->fd, r->identity, &s);
    if (rc == 0) {
        r->slot = newest(&s) == 0 ? 1 : 0;
        rc = xac_received_note(r, lsn);
    }
    if (rc == 0)
        rc = xac_received_sync(r);
    if (rc != 0)
        xac_close_fd(&r->fd);
    return rc;
}

int
xac_received_begin(struct xac_received *r, uint64_t lsn)
{
    if (r->fd >= 0)
        return 0;
    r->fd =
        xac_sys.openat(r->dirfd, XAC_RECEIVED_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (r->fd < 0 && errno != ENOENT)
        return xac_err(errno, "%s: open", XAC_RECEIVED_NAME);
    return r->fd < 0 ? make(r, lsn) : go_on(r, lsn); /* (3) */
}

int
xac_received_note(struct xac_received *r, uint64_t lsn)
{
    struct xac_received_slot s;
    int rc;

    xac_assert(r->slot <= 1);
    if (r->fd < 0)
        return 0;
    fill(r, lsn, &s);
    r->is_synced = false;
    rc = xac_write_full(r->fd, &s, sizeof s, (uint64_t)r->slot * XAC_RECEIVED_STRIDE);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_RECEIVED_NAME);
}

int
xac_received_sync(struct xac_received *r)
{
    xac_assert(r->slot <= 1);
    if (r->is_synced)
        return 0;
    xac_assert(r->fd >= 0);
    if (xac_sys.fdatasync(r->fd) != 0)
        return xac_err(errno, "%s: sync", XAC_RECEIVED_NAME);
    r->slot = 1 - r->slot; /* (2) */
    r->is_synced = true;
    return 0;
}
