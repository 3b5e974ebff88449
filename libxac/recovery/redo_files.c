/* SPDX-License-Identifier: MIT */
/*
 * redo_files.c -- the files that the log names, and their descriptors: see recover_redo.h.
 */
#include <config.h>

#include "recovery/recover_redo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/block.h"

#define OPEN_FDS_MAX   200u /* descriptors of mapped files at a time ... */
#define OPEN_FDS_SHARE 4u   /* ... and of those that the process may have */

/* file_position -- index of the first file with an id that is not smaller. */
static size_t
file_position(const struct xac_redo *r, uint32_t id)
{
    size_t lo = 0;
    size_t hi = r->n_files;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->file[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    xac_assert(lo == r->n_files || r->file[lo].id >= id); /* (5) */
    return lo;
}

struct xac_redo_file *
xac_redo_file_find(const struct xac_redo *r, uint32_t id)
{
    size_t at = file_position(r, id);

    return at < r->n_files && r->file[at].id == id ? &r->file[at] : NULL;
}

static struct xac_redo_file *
file_insert(struct xac_redo *r, uint32_t id)
{
    size_t at = file_position(r, id); /* mostly behind all others */
    struct xac_redo_file *grown = r->file;

    xac_assert(r->n_files <= r->files_size);
    xac_assert(at == r->n_files || r->file[at].id > id); /* (5) */
    if (r->n_files == r->files_size) {
        size_t want = r->files_size == 0 ? 64 : r->files_size * 2;

        grown = (struct xac_redo_file *)realloc(r->file, want * sizeof *grown);
        if (grown == NULL)
            return NULL;
        r->files_size = want;
    }
    r->file = grown;
    memmove(grown + at + 1, grown + at, (r->n_files - at) * sizeof *grown);
    r->n_files++;
    grown[at] = (struct xac_redo_file){.id = id, .fd = -1};
    return &grown[at];
}

/* path_of -- the path in a record, to be freed; ret 0, ENOMEM, XAC_EDAMAGED if there is none
   that the library can have written. */
static int
path_of(const struct xac_xfile *rec, char **pathp)
{
    const char *bytes = xac_xfile_path(rec);
    const char *end = (const char *)rec + rec->r.length;
    char *path;

    if (rec->r.length < sizeof *rec || bytes > end
        || rec->path_len > (size_t)(end - bytes) || rec->path_len == 0
        || memchr(bytes, '\0', rec->path_len) != NULL)
        return XAC_EDAMAGED;
    path = strndup(bytes, rec->path_len);
    if (path == NULL)
        return xac_err(ENOMEM, "table of files");
    if (path[0] != '/' && !xac_stored_is_inside(path)) {
        free(path);
        return XAC_EDAMAGED;
    }
    *pathp = path;
    return 0;
}

/* forget_name -- of an id whose first file never counted: another one has got it (registry.h, 1). */
static void
forget_name(struct xac_redo_file *f)
{
    xac_assert(f->path != NULL);
    free(f->path);
    f->path = NULL;
    f->length = 0;
}

/* take_name -- path, freed or kept, and identity of a file by the newest record that has been found. */
static int
take_name(struct xac_redo *r, struct xac_redo_file *f, char *path)
{
    struct xac_frozen_file *copied;
    int rc = 0;

    xac_assert(path != NULL);
    if (r->backup != NULL) {
        rc = xac_redo_place(r, f, path);
        free(path);
    } else {
        free(f->path);
        f->path = path;
    }
    return rc == 0 && r->frozen != NULL ? xac_frozen_take(r->frozen, f->path, &copied)
                                        : rc;
}

int
xac_redo_note_file(struct xac_redo *r, uint64_t lsn, const struct xac_xfile *rec)
{
    struct xac_identity who = {.device = rec->device,
                               .inode = rec->inode,
                               .birth_ns = xac_xfile_birth(rec)};
    struct xac_redo_file *f;
    char *path = NULL;
    int rc = path_of(rec, &path);

    if (rc != 0)
        return rc;
    r->changes++;
    f = xac_redo_file_find(r, rec->file);
    if (f == NULL)
        f = file_insert(r, rec->file);
    if (f == NULL) {
        free(path);
        return xac_err(ENOMEM, "table of files");
    }
    if (f->path != NULL && lsn > f->lsn && !xac_identity_is_same(&f->who, &who))
        forget_name(f);
    if (rec->length > f->length)
        f->length = rec->length;
    if (f->path != NULL && lsn <= f->lsn) {
        free(path);
        return 0;
    }
    if (f->path == NULL)
        f->since = lsn;
    f->lsn = lsn;
    f->who = who;
    return take_name(r, f, path);
}

void
xac_redo_forget(struct xac_redo *r, uint64_t lsn, const struct xac_xforget *rec)
{
    struct xac_redo_file *f = xac_redo_file_find(r, rec->file);

    xac_assert(f == NULL || f->id == rec->file);
    if (f == NULL || f->path == NULL) /* nothing of it is redone */
        return;
    r->changes++;
    f->is_gone = true;
    f->is_forgotten = true;
    if (r->backup != NULL)
        xac_redo_forget_in_backup(r, f, lsn);
}

void
xac_redo_file_close(struct xac_redo *r, struct xac_redo_file *f)
{
    xac_assert(f->fd < 0 || r->n_open_fds <= r->n_files); /* (6) */
    xac_assert(r->n_open_fds > 0 || f->fd < 0);
    if (f->fd < 0)
        return;
    (void)xac_sys.close(f->fd);
    f->fd = -1;
    r->n_open_fds--;
}

/* make_room_for_fd -- close one file, synced, if too many are open. */
static int
make_room_for_fd(struct xac_redo *r)
{
    xac_assert(r->n_open_fds <= r->n_files); /* (6) */
    xac_assert(r->fds_max > 0);
    if (r->n_open_fds < r->fds_max)
        return 0;
    for (size_t i = 0; i < r->n_files; i++) {
        struct xac_redo_file *f = &r->file[r->fd_hand++ % r->n_files];

        if (f->fd < 0 || f->is_forgotten) /* the only copy */
            continue;
        /* A write error must not get lost with the descriptor. */
        if (xac_sys.fdatasync(f->fd) != 0)
            return xac_err(errno, "%s: sync", f->path);
        xac_redo_file_close(r, f);
        break;
    }
    return 0;
}

int
xac_redo_file_open(struct xac_redo *r, struct xac_redo_file *f, int flags)
{
    int rc;

    if (f->fd >= 0)
        return 0;
    xac_assert(f->path != NULL);
    rc = make_room_for_fd(r);
    if (rc != 0)
        return rc;
    if (r->frozen != NULL || f->is_forgotten) {
        rc = xac_redo_open_copy(r, f);
        r->n_open_fds += rc == 0;
        return rc;
    }
    rc = xac_stored_open(r->dirfd, f->path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                         &f->fd);
    if (rc != 0)
        return rc;
    xac_assert(f->fd >= 0);
    r->n_open_fds++;
    return xac_claim_hold(f->fd, &r->claimant, (flags & O_ACCMODE) != O_RDONLY, f->path);
}

/* file_make -- one that is missing, as the environment's files are. */
static int
file_make(struct xac_redo *r, struct xac_redo_file *f)
{
    struct xac_owner owner;
    const char *name;
    int fd = -1;
    int rc = make_room_for_fd(r);

    xac_assert(f->fd < 0);
    xac_assert(f->is_missing);
    if (rc == 0)
        rc = xac_stored_parent(r->dirfd, f->path, &fd, &name);
    if (rc == 0)
        rc = xac_owner_get(r->dirfd, &owner);
    if (rc == 0)
        rc = xac_newfile_make(fd, name, &owner, &f->fd);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: create", f->path);
    xac_assert(f->fd >= 0);
    r->n_open_fds++;
    return xac_claim_hold(f->fd, &r->claimant, true, f->path);
}

/* other_file -- words for a file that is not the one that was mapped. */
static int
other_file(const struct xac_redo_file *f, const struct xac_identity *is)
{
    if (is->inode != f->who.inode)
        return xac_err(XAC_EREPLACED,
                       "%s: inode %" PRIu64 ", the log says inode %" PRIu64, f->path,
                       is->inode, f->who.inode);
    return xac_err(XAC_EREPLACED,
                   "%s: another file that has got the same inode number, %" PRIu64
                   ", was made later",
                   f->path, is->inode);
}

/* check_file -- is it the file that was mapped, and ours? */
static int
check_file(struct xac_redo *r, struct xac_redo_file *f, bool accept_replaced, int flags)
{
    bool is_outside = f->path[0] == '/';
    bool may_take = accept_replaced || (r->is_copy && r->takes_outside);
    bool may_differ = accept_replaced || f->is_moved || (r->is_copy && !is_outside);
    struct xac_identity is;
    struct stat st;
    int rc;

    xac_assert(!f->is_forgotten);
    xac_assert(r->frozen == NULL);
    if (r->is_copy && is_outside && !r->takes_outside)
        return xac_err(
            XAC_ECOPY,
            "%s: changes of it are to be redone, but this directory is a copy of"
            " an environment, and the file lies outside of it",
            f->path);
    rc = xac_redo_file_open(r, f, flags);

    f->is_missing = rc == ENOENT;
    if (f->is_missing)
        return accept_replaced || f->is_moved
                   ? 0
                   : xac_err(XAC_EREPLACED, "%s: missing", f->path);
    if (rc != 0)
        return rc;
    rc = xac_identity_of(f->fd, &is);
    if (rc == 0 && xac_sys.fstat(f->fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        return xac_err(rc, "%s: stat", f->path);
    if (!S_ISREG(st.st_mode))
        return xac_err(XAC_EREPLACED, "%s: no regular file", f->path);
    f->is_other = !xac_identity_is_same(&is, &f->who);
    if (f->is_other && !may_differ)
        return other_file(f, &is);
    return xac_claim_check(f->fd, &r->claimant, may_take, f->path);
}

int
xac_redo_check_files(struct xac_redo *r, bool accept_replaced, bool writable)
{
    int rc = xac_redo_check_backup(r, accept_replaced);

    if (rc == 0 && r->frozen != NULL)
        return xac_redo_check_copies(r);
    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        if (xac_redo_is_wanted(&r->file[i]))
            rc =
                check_file(r, &r->file[i], accept_replaced, writable ? O_RDWR : O_RDONLY);
    }
    return rc;
}

/* prepare_file -- see to it that the file exists and is long enough. */
static int
prepare_file(struct xac_redo *r, struct xac_redo_file *f)
{
    uint64_t want = f->reach > f->length ? f->reach : f->length;
    struct stat st;
    int rc = xac_redo_file_open(r, f, O_RDWR);

    xac_assert(want > 0 || f->is_anew);
    xac_assert(xac_redo_is_wanted(f));
    if (rc == ENOENT)
        rc = f->is_missing ? file_make(r, f) : xac_err(ENOENT, "%s: open", f->path);
    if (rc != 0)
        return rc;
    if (xac_sys.fstat(f->fd, &st) != 0)
        return xac_err(errno, "%s: stat", f->path);
    if (r->frozen == NULL)
        xac_claim_mark(f->fd, &r->claimant);
    if (f->is_anew && st.st_size > 0) {
        st.st_size = 0;
        if (xac_sys.ftruncate(f->fd, 0) != 0)
            return xac_err(errno, "%s: make empty", f->path);
    }
    if ((uint64_t)st.st_size < want) {
        f->is_made = true;
        if (xac_sys.ftruncate(f->fd, (off_t)want) != 0)
            return xac_err(errno, "%s: extend to %" PRIu64 " bytes", f->path, want);
    }
    if ((f->is_made || f->is_missing) && r->frozen == NULL && xac_sys.fsync(f->fd) != 0)
        return xac_err(errno, "%s: sync", f->path);
    /* Another file may be one that a recovery made which was killed before this sync. */
    if (f->is_missing || f->is_other)
        rc = xac_sync_parent(r->dirfd, f->path);
    return rc == 0 ? 0 : xac_err(rc, "%s: sync of its directory", f->path);
}

int
xac_redo_prepare(struct xac_redo *r)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        if (xac_redo_is_wanted(&r->file[i]))
            rc = prepare_file(r, &r->file[i]);
    }
    return rc;
}

size_t
xac_redo_fds_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0
        || limit.rlim_cur / OPEN_FDS_SHARE >= OPEN_FDS_MAX)
        return OPEN_FDS_MAX;
    return limit.rlim_cur >= OPEN_FDS_SHARE ? (size_t)limit.rlim_cur / OPEN_FDS_SHARE : 1;
}
