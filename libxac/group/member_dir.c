/* SPDX-License-Identifier: MIT */
/*
 * member_dir.c -- see member_dir.h.
 */
#include <config.h>

#include "group/member_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/block.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "log/rewind_note.h"
#include "log/standby_note.h"
#include "shared/address_list.h"

/* is_there -- has the directory a file of that name? */
static bool
is_there(const struct xac_member *m, const char *name)
{
    xac_assert(m->dirfd >= 0);
    return faccessat(m->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int
xac_member_read_notes(struct xac_member *m)
{
    int rc = xac_group_note_read(m->dirfd, &m->note);

    m->is_member = rc == 0;
    m->is_backup = is_there(m, XAC_BACKUP_NAME);
    m->is_follower = is_there(m, XAC_FOLLOW_NAME);
    xac_assert(!m->is_member || m->note.node != 0);
    return rc == ENOENT ? 0 : rc;
}

/* read_master -- and where the log lies. */
static int
read_master(struct xac_member *m)
{
    char *path = NULL;
    int rc = xac_master_read(m->dirfd, &m->master);

    xac_assert(m->logfd == -1);
    if (rc == ENOENT)
        return xac_err(XAC_ENOTENV, "%s: no %s", m->dir, XAC_MASTER_NAME);
    if (rc == 0)
        rc = xac_logdir_open(m->dirfd, NULL, m->master.identity, &m->logfd, &path);
    free(path);
    return rc;
}

int
xac_member_open(struct xac_member *m, const char *dir)
{
    int rc;

    xac_assert(dir[0] != '\0');
    *m = (struct xac_member){.dir = dir, .dirfd = -1, .lockfd = -1, .logfd = -1};
    m->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (m->dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = xac_rewind_note_refuse(m->dirfd);
    if (rc != 0)
        return rc;
    if (!is_there(m, XAC_MASTER_NAME)) /* no lock file is made where no environment is */
        return xac_err(XAC_ENOTENV, "%s: no %s", dir, XAC_MASTER_NAME);
    rc = xac_gate_open(m->dirfd, dir, &m->lockfd);
    if (rc == 0)
        rc = xac_attached(m->dirfd, dir, m->lockfd);
    if (rc == XAC_ELIVE)
        rc = xac_err(rc, "%s: processes use it", dir);
    if (rc == 0)
        rc = xac_member_read_notes(m);
    return rc == 0 ? read_master(m) : rc;
}

void
xac_member_close(struct xac_member *m)
{
    xac_assert(m->dir != NULL);
    xac_close_fd(&m->logfd);
    if (m->lockfd >= 0)
        xac_gate_leave(m->lockfd);
    xac_close_fd(&m->lockfd);
    xac_close_fd(&m->dirfd);
}

int
xac_member_is_one(const struct xac_member *m)
{
    xac_assert(m->dir != NULL);
    return m->is_member ? 0
                        : xac_err(XAC_ENOTENV, "%s: no member of a group (no %s)", m->dir,
                                  XAC_GROUP_NAME);
}

int
xac_member_end(const struct xac_member *m, uint64_t *endp)
{
    const struct xac_block *blk = NULL;
    struct xac_place place;
    struct xac_scan scan;
    uint64_t end = m->master.redo_lsn, most = UINT64_MAX;
    int rc = xac_scan_open(&scan, m->logfd, &m->master);

    if (rc == 0)
        rc = xac_scan_sync(&scan);
    if (rc == 0 && !m->is_follower)
        rc = xac_member_noted_end(m, &most);
    do {
        if (rc == 0)
            rc = xac_scan_block(&scan, end, &blk, &place);
        if (rc == 0 && blk != NULL)
            end += blk->length;
    } while (rc == 0 && blk != NULL);
    xac_scan_close(&scan);
    xac_assert(end >= m->master.redo_lsn);
    if (rc == 0)
        *endp = end < most ? end : most;
    return rc;
}

int
xac_member_noted_end(const struct xac_member *m, uint64_t *lsnp)
{
    struct xac_backup_note note;
    int rc = xac_backup_note_read(m->dirfd, &note);

    xac_assert(m->is_backup || rc != 0);
    if (rc == 0 && note.end_lsn < *lsnp)
        *lsnp = note.end_lsn;
    xac_backup_note_free(&note);
    return rc == ENOENT ? 0 : rc;
}

/* add_files -- all that have been mapped lie where their names say. */
static int
add_files(const struct xac_member *m, struct xac_backup_note *note)
{
    struct xac_address_list list;
    int rc;

    xac_assert(note->n_files == 0);
    memset(&list, 0, sizeof list);
    rc = xac_address_list_read(&list, m->dirfd);
    for (uint32_t i = 0; rc == 0 && i < list.n_lines; i++) {
        const char *path = xac_address_list_path(&list, &list.line[i]);

        if (xac_address_list_find(&list, path) == &list.line[i] && is_there(m, path))
            rc = xac_backup_note_add(note, path, path);
    }
    xac_address_list_free(&list);
    return rc;
}

int
xac_member_note_end(const struct xac_member *m, uint64_t end_lsn)
{
    struct xac_backup_note note;
    int rc = xac_backup_note_read(m->dirfd, &note);

    xac_assert(end_lsn >= m->master.redo_lsn);
    if (rc == ENOENT) {
        note.end_lsn = end_lsn;
        note.time_ns = xac_clock_read(CLOCK_REALTIME);
        rc = add_files(m, &note);
        if (rc == 0)
            rc = xac_backup_note_write(m->dirfd, &note);
    }
    xac_backup_note_free(&note);
    xac_kill_point("stand backup");
    return rc;
}

int
xac_member_stand(const struct xac_member *m, uint64_t end_lsn)
{
    int rc = xac_member_note_end(m, end_lsn);

    xac_assert(m->dirfd >= 0);
    return rc == 0 ? xac_standby_note_write(m->dirfd) : rc;
}
