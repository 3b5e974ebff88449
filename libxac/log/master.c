/* SPDX-License-Identifier: MIT */
/*
 * master.c -- see master.h.
 */
#include <config.h>

#include "log/master.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/rawfile.h"
#include "base/sys.h"
#include "log/log.h"
#include "log/logdir.h"
#include "log/recover_scan.h"
#include "log/rewind_note.h"

#define MASTER_BYTES (2 * XAC_MASTER_SLOT_STRIDE)
#define MASTER_NEW   XAC_MASTER_NAME ".new"
/* A sequence number behind it could have no successor: the next slot would be the older one. */
#define SEQUENCE_END (UINT64_C(1) << 63)

enum slot_state {
    SLOT_INVALID = 0,
    SLOT_VALID = 1,
    SLOT_OTHER_VERSION = 2, /* looks like a master record, of another format version */
};

/* Both slots as they are on disk. */
struct slots {
    struct xac_master_slot slot[2];
    enum slot_state state[2];
};

static uint64_t
slot_checksum(const struct xac_master_slot *s)
{
    xac_assert(s != NULL);
    return xac_xxh64(s, offsetof(struct xac_master_slot, checksum));
}

/* slot_state -- valid if and only if what log_format.h says. */
static enum slot_state
slot_state(const struct xac_master_slot *s)
{
    if (s->magic != XAC_MASTER_MAGIC)
        return SLOT_INVALID;
    if (s->version < XAC_FORMAT_VERSION_LEAST || s->version > XAC_FORMAT_VERSION)
        return SLOT_OTHER_VERSION;
    if (s->checksum != slot_checksum(s)
        || !xac_bytes_are_zero(s->reserved, sizeof s->reserved))
        return SLOT_INVALID;
    if (s->version == 4 && (s->dir_device | s->dir_inode | s->dir_birth_ns) != 0)
        return SLOT_INVALID; /* it had reserved them */
    return SLOT_VALID;
}

/* slots_read -- from the disk and not from the page cache: after a failed sync the slot is
   still there, marked clean, and must not count as the newest. */
static int
slots_read(int dirfd, struct slots *out)
{
    struct xac_rawfile f;
    uint8_t *buf = NULL;
    size_t got;
    int rc = xac_rawfile_open(&f, dirfd, XAC_MASTER_NAME);

    xac_assert(dirfd >= 0);
    if (rc != 0)
        return xac_err(rc, "%s: open", XAC_MASTER_NAME);
    buf = xac_rawfile_buffer(MASTER_BYTES);
    if (buf == NULL) {
        rc = xac_err(ENOMEM, "%s", XAC_MASTER_NAME);
        goto out;
    }
    rc = xac_rawfile_read(&f, buf, MASTER_BYTES, 0, &got);
    if (rc != 0) {
        (void)xac_err(rc, "%s: read", XAC_MASTER_NAME);
        goto out;
    }
    for (int i = 0; i < 2; i++) {
        memcpy(&out->slot[i], buf + (size_t)i * XAC_MASTER_SLOT_STRIDE,
               sizeof out->slot[i]);
        out->state[i] = slot_state(&out->slot[i]);
    }
out:
    free(buf);
    xac_rawfile_close(&f);
    return rc;
}

/* slots_newest -- index of the newest valid slot, or -1. */
static int
slots_newest(const struct slots *s)
{
    bool valid0 = s->state[0] == SLOT_VALID;
    bool valid1 = s->state[1] == SLOT_VALID;

    xac_assert(s->state[0] <= SLOT_OTHER_VERSION);
    xac_assert(s->state[1] <= SLOT_OTHER_VERSION);
    if (valid0 && valid1)
        return s->slot[1].sequence > s->slot[0].sequence ? 1 : 0;
    if (valid1)
        return 1;
    return valid0 ? 0 : -1;
}

/* slots_other_version -- true if a later version of the library has been here.  Its slot
   counts if its checksum is where ours is, or if there is no other. */
static bool
slots_other_version(const struct slots *s)
{
    int newest = slots_newest(s);

    for (int i = 0; i < 2; i++) {
        if (s->state[i] == SLOT_OTHER_VERSION
            && (newest < 0 || s->slot[i].checksum == slot_checksum(&s->slot[i])))
            return true;
    }
    return false;
}

/* values_sane -- a right checksum over fields that cannot be. */
static bool
values_sane(const struct xac_master_slot *s)
{
    uint64_t size = s->segment_bytes;

    return size >= XAC_SEGMENT_HEADER && size <= XAC_LSN_LIMIT && (size & (size - 1)) == 0
           && s->redo_lsn <= XAC_LSN_LIMIT && s->end_lsn_after <= XAC_LSN_LIMIT
           && s->sequence < SEQUENCE_END && xac_log_generation_ok(s->generation)
           && s->redo_lsn % XAC_BLOCK_ALIGN == 0 && s->start_lsn != 0
           && s->redo_lsn >= s->start_lsn;
}

int
xac_master_read(int dirfd, struct xac_master_slot *out)
{
    struct slots s;
    int newest;
    int rc = slots_read(dirfd, &s);

    if (rc != 0)
        return rc;
    if (slots_other_version(&s))
        return xac_err(XAC_EVERSION, "%s", XAC_MASTER_NAME);
    newest = slots_newest(&s);
    if (newest < 0)
        return xac_err(XAC_EDAMAGED, "%s: offsets 0 and %u: no valid master record",
                       XAC_MASTER_NAME, XAC_MASTER_SLOT_STRIDE);
    *out = s.slot[newest];
    if (out->page_size != (uint32_t)getpagesize())
        return xac_err(XAC_EPAGESIZE, "%s: pages of %u bytes, here they have %d",
                       XAC_MASTER_NAME, out->page_size, getpagesize());
    if (!values_sane(out))
        return xac_err(XAC_EDAMAGED, "%s: offset %u: values out of range",
                       XAC_MASTER_NAME, (unsigned)newest * XAC_MASTER_SLOT_STRIDE);
    xac_assert(out->segment_bytes >= XAC_SEGMENT_HEADER);
    xac_assert(out->redo_lsn >= out->start_lsn);
    return 0;
}

/* log_found -- for xac_scan_names: the name of a segment, in *arg; ends the search. */
static int
log_found(void *arg, const char *name)
{
    uint64_t number;

    xac_assert(name[0] != '\0');
    if (!xac_log_segment_named(name, &number))
        return 0;
    (void)snprintf((char *)arg, XAC_LOG_NAME_MAX, "%s", name);
    return EEXIST;
}

bool
xac_master_is_valid(const struct xac_master_slot *slot)
{
    xac_assert(slot != NULL);
    return slot_state(slot) == SLOT_VALID && values_sane(slot);
}

int
xac_master_missing(int dirfd, bool may_be_new)
{
    char name[XAC_LOG_NAME_MAX] = "";
    struct xac_identity is;
    int rc = xac_rewind_note_refuse(dirfd);

    xac_assert(dirfd >= 0);
    if (rc != 0)
        return rc;
    if (xac_identity_at(dirfd, XAC_UNFINISHED_NAME, &is) == 0)
        return xac_err(XAC_ENOTENV,
                       "no %s: a backup or a restore that was not finished (%s)",
                       XAC_MASTER_NAME, XAC_UNFINISHED_NAME);
    if (xac_identity_at(dirfd, XAC_MANIFEST_NAME, &is) == 0)
        return xac_err(XAC_ENOTENV,
                       "no %s: an increment of a backup (xbackup --restore makes an"
                       " environment of it and those before it)",
                       XAC_MASTER_NAME);
    if (xac_identity_at(dirfd, XAC_LOGDIR_MARK, &is) == 0)
        return xac_err(XAC_ENOTENV,
                       "no %s: this is where an environment has its log (%s)",
                       XAC_MASTER_NAME, XAC_LOGDIR_MARK);
    if (xac_identity_at(dirfd, XAC_LOGDIR_NOTE, &is) == 0)
        (void)snprintf(name, sizeof name, "%s", XAC_LOGDIR_NOTE);
    else
        rc = xac_scan_names(dirfd, XAC_LOG_PREFIX, log_found, name);
    if (rc != 0 && rc != EEXIST)
        return rc;
    if (name[0] == '\0')
        return may_be_new ? 0 : xac_err(XAC_ENOTENV, "no %s", XAC_MASTER_NAME);
    return xac_err(XAC_ENOTENV,
                   "no %s, though there is %s: it was removed (put it back; or restore a"
                   " backup, put this log beside it, and xrecover --until end), or a"
                   " backup was not finished; to begin anew, remove the log",
                   XAC_MASTER_NAME, name);
}

int
xac_master_sync(int dirfd, bool *is_lostp)
{
    int fd = xac_sys.openat(dirfd, XAC_MASTER_NAME, O_RDONLY | O_CLOEXEC, 0);
    int rc = 0;

    *is_lostp = false;
    if (fd < 0)
        return xac_err(errno, "%s: open", XAC_MASTER_NAME);
    if (xac_sys.fdatasync(fd) != 0) {
        rc = xac_err(errno, "%s: sync", XAC_MASTER_NAME);
        *is_lostp = true;
    }
    (void)xac_sys.close(fd);
    xac_assert(!*is_lostp || rc != 0);
    return rc;
}

/* slot_finish -- fill in what every slot has in common. */
static void
slot_finish(struct xac_master_slot *s, uint64_t sequence)
{
    xac_assert(sequence != 0);
    xac_assert((s->segment_bytes & (s->segment_bytes - 1)) == 0);
    xac_assert(s->redo_lsn >= s->start_lsn);
    s->magic = XAC_MASTER_MAGIC;
    s->version = XAC_FORMAT_VERSION;
    s->sequence = sequence;
    s->time_ns = xac_clock_read(CLOCK_REALTIME);
    memset(s->reserved, 0, sizeof s->reserved);
    s->checksum = slot_checksum(s);
}

void
xac_master_put_dir(struct xac_master_slot *slot, const struct xac_identity *dir)
{
    slot->dir_device = dir->device;
    slot->dir_inode = dir->inode;
    slot->dir_birth_ns = dir->birth_ns;
    slot->checksum = slot_checksum(slot);
}

bool
xac_master_is_copied(const struct xac_master_slot *slot, const struct xac_identity *dir)
{
    struct xac_identity was = {.device = slot->dir_device,
                               .inode = slot->dir_inode,
                               .birth_ns = slot->dir_birth_ns};

    return was.inode != 0 && !xac_identity_is_same(&was, dir);
}

int
xac_master_write(int dirfd, struct xac_master_slot *slot, bool *is_lostp)
{
    struct slots s;
    size_t done;
    int newest;
    int rc;
    int fd = xac_sys.openat(dirfd, XAC_MASTER_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(slot->start_lsn != 0);
    xac_assert(slot->redo_lsn >= slot->start_lsn);
    *is_lostp = false;
    if (fd < 0)
        return xac_err(errno, "%s: open", XAC_MASTER_NAME);
    /* Else the slot that looks newest may be one that a power cut takes away, and the
       one about to be overwritten the only good one. */
    if (xac_sys.fdatasync(fd) != 0) {
        *is_lostp = true;
        rc = xac_err(errno, "%s: sync", XAC_MASTER_NAME);
        goto out;
    }
    rc = slots_read(dirfd, &s);
    if (rc != 0)
        goto out;
    newest = slots_newest(&s);
    if (newest < 0) {
        *is_lostp = true;
        rc = xac_err(XAC_EDAMAGED, "%s: no valid master record", XAC_MASTER_NAME);
        goto out;
    }
    slot_finish(slot, s.slot[newest].sequence + 1);
    rc = xac_write_part(fd, slot, sizeof *slot, newest == 0 ? XAC_MASTER_SLOT_STRIDE : 0,
                        &done);
    if (rc == 0 && xac_sys.fdatasync(fd) != 0)
        rc = errno;
    if (rc != 0)
        (void)xac_err(rc, "%s: write", XAC_MASTER_NAME);
    *is_lostp = rc != 0 && done > 0;
out:
    (void)xac_sys.close(fd);
    return rc;
}

int
xac_master_create(int dirfd, uint32_t page_size, uint64_t segment_bytes,
                  struct xac_master_slot *out)
{
    struct xac_master_slot s = {.page_size = page_size, .segment_bytes = segment_bytes};
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = MASTER_NEW,
                            .name = XAC_MASTER_NAME,
                            .is_synced = true};
    uint8_t buf[MASTER_BYTES] = {0};
    struct xac_identity dir;
    int rc = xac_identity_of(dirfd, &dir);

    xac_assert(page_size != 0);
    xac_assert((segment_bytes & (segment_bytes - 1)) == 0);
    xac_assert(segment_bytes >= XAC_SEGMENT_HEADER);
    if (rc != 0)
        return xac_err(rc, "environment directory: stat");
    if (getentropy(s.identity, sizeof s.identity) != 0)
        return xac_err(errno != 0 ? errno : EIO, "random numbers");
    xac_master_put_dir(&s, &dir);
    s.generation = 1;
    s.flags = XAC_MASTER_CLEAN;
    s.start_lsn = s.redo_lsn = s.end_lsn_after = XAC_LSN_FIRST;
    slot_finish(&s, 1);
    xac_assert(values_sane(&s));
    memcpy(buf, &s, sizeof s);
    rc = xac_newfile_replace(&f, buf, sizeof buf, NULL);
    if (rc != 0)
        return xac_err(rc, "%s: create", XAC_MASTER_NAME);
    *out = s;
    return 0;
}
