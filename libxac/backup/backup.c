/* SPDX-License-Identifier: MIT */
/*
 * backup.c -- see backup.h.  The steps:
 *   (1) the log is pinned; a checkpoint makes what is to be copied of it short
 *   (2) the master record is read
 *   (3) the mapped files are copied
 *   (4) the end of the log is made durable and noted; files that have been registered
 *       meanwhile are copied, too
 *   (5) segments and data files are copied
 *   (6) xac.backup, then xac.master
 */
#include <config.h>

#include "backup/backup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "log/backup_note.h"
#include "log/log.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "shared/address_list.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "view/address.h"

/* One backup. */
struct run {
    struct xac_env *env;
    const char *dir;
    int dirfd;              /* of the backup                                          */
    struct xac_owner owner; /* of log files there: no wider than the environment's    */
    struct xac_copier copier;
    const struct xac_backup_progress *progress; /* NULL: nobody wants to know         */
    uint64_t total;                             /* bytes to copy, about               */
    struct xac_master_slot master;
    struct xac_backup_note note;
    struct xac_backup_report rep;
    uint32_t n_done; /* registered files copied                                       */
};

/* ---- A file ----------------------------------------------------------------------- */

/* make_parent -- one directory of the backup, as the one that it stands for. */
static int
make_parent(struct run *r, const char *path)
{
    const char *name;
    int like = -1, fd = -1;
    int rc =
        xac_stored_open(r->env->dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &like);

    if (rc == 0 || rc == ENOENT) /* one for files from outside, or gone by now */
        rc = xac_stored_parent(r->dirfd, path, &fd, &name);
    if (rc == 0)
        rc = xac_newdir_make(fd, name, like >= 0 ? like : r->dirfd);
    if (like >= 0)
        (void)xac_sys.close(like);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 || rc == EEXIST ? 0 : xac_err(rc, "%s/%s", r->dir, path);
}

/* make_parents -- directories of a relative path; those that are there are fine. */
static int
make_parents(struct run *r, const char *copy)
{
    char *path = strdup(copy);
    int rc = path != NULL ? 0 : xac_err(ENOMEM, "backup");

    for (char *p = path; rc == 0 && (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        rc = make_parent(r, path);
        *p = '/';
    }
    free(path);
    return rc;
}

/* copy_open -- a mapped file, both ends open; synced. */
static int
copy_open(struct run *r, int in, int out)
{
    uint64_t before = r->copier.bytes;
    int rc = xac_copy_file(in, out, &r->copier);

    r->rep.file_bytes += r->copier.bytes - before;
    if (rc == 0 && xac_sys.fsync(out) != 0)
        rc = errno;
    return rc;
}

/* make_copy -- the file for a copy of what is open as `in`. */
static int
make_copy(struct run *r, int in, const char *copy, const struct xac_owner *owner,
          int *outp)
{
    struct xac_owner same;
    const char *name;
    int fd = -1;
    int rc = xac_stored_parent(r->dirfd, copy, &fd, &name);

    if (rc == 0 && owner == NULL)
        rc = xac_owner_of_file(in, &same);
    if (rc == 0)
        rc = xac_newfile_make(fd, name, owner != NULL ? owner : &same, outp);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: create", r->dir, copy);
}

/*
 * copy_file -- a file of the environment, under a name in the backup.
 *
 * in   dirfd        that the path is relative to
 * in   owner        of the copy; NULL: as the file
 * in   may_be_gone  a missing one is no error
 */
static int
copy_file(struct run *r, int dirfd, const char *path, const char *copy,
          const struct xac_owner *owner, bool may_be_gone)
{
    int in = -1, out = -1;
    int rc = make_parents(r, copy);

    if (rc == 0)
        rc = xac_stored_open(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                             &in);
    if (rc == ENOENT)
        return may_be_gone ? 0 : xac_err(rc, "backup: %s: open", path);
    if (rc == 0)
        rc = make_copy(r, in, copy, owner, &out);
    if (rc == 0) {
        rc = copy_open(r, in, out);
        if (rc != 0)
            (void)xac_err(rc, "backup: %s to %s/%s", path, r->dir, copy);
    }
    if (out >= 0)
        (void)xac_sys.close(out);
    if (in >= 0)
        (void)xac_sys.close(in);
    return rc;
}

/* ---- All files -------------------------------------------------------------------- */

/* copy_mapped -- a file that is or was mapped, unless it has been copied: below the
   directory under the same name, others side by side. */
static int
copy_mapped(struct run *r, const char *path, bool may_be_gone)
{
    const char *base = strrchr(path, '/');
    char *outside = NULL;
    int rc;

    if (xac_backup_note_find(&r->note, path) != NULL)
        return 0;
    if (path[0] == '/'
        && asprintf(&outside, "xac-outside/%zu-%s", r->note.n_files + 1, base + 1) < 0)
        return xac_err(ENOMEM, "backup");
    rc = xac_backup_note_add(&r->note, path, outside != NULL ? outside : path);
    if (rc == 0)
        rc = copy_file(r, r->env->dirfd, path, outside != NULL ? outside : path, NULL,
                       may_be_gone);
    if (rc == 0)
        r->rep.files++;
    free(outside);
    return rc;
}

/* is_held -- does anybody map the file? */
static bool
is_held(struct xac_env *env, uint32_t file)
{
    bool is;

    xac_registry_enter(env);
    is = xac_registry_is_held(env, file);
    xac_registry_exit(env);
    return is;
}

/* copy_registered -- files of the region that have not been copied yet. */
static int
copy_registered(struct run *r)
{
    /* Acquire: pairs with the release in xac_registry_add. */
    uint32_t n =
        (uint32_t)atomic_load_explicit(&r->env->ctl->files.count, memory_order_acquire);
    int rc = 0;

    while (rc == 0 && r->n_done < n) {
        const struct xac_file *f = xac_file_at(r->env, ++r->n_done);
        bool is_known =
            atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN;

        /* What is left has nothing in the log that is copied; of one that somebody maps still
           the name must be there. */
        if (is_known)
            rc = copy_mapped(r, (const char *)xac_shm_at(&r->env->shm, f->path),
                             !is_held(r->env, r->n_done));
    }
    return rc;
}

/* copy_one_remembered -- for xac_address_each. */
static int
copy_one_remembered(void *arg, const char *path)
{
    return copy_mapped((struct run *)arg, path, true);
}

/* ---- The log ---------------------------------------------------------------------- */

/* copy_segment -- of a segment what lies before the end; a hole behind, as log_segment.h has it. */
static int
copy_segment(struct run *r, uint64_t number)
{
    uint64_t bytes = r->master.segment_bytes;
    uint64_t begin = (number - 1) * bytes;
    uint64_t used = r->rep.end_lsn - begin < bytes ? r->rep.end_lsn - begin : bytes;
    uint64_t at = XAC_SEGMENT_HEADER + used, before = r->copier.bytes;
    char name[XAC_LOG_NAME_MAX];
    int out = -1;
    int in, rc;

    xac_log_segment_name(name, number);
    in = xac_sys.openat(r->env->logfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    rc = in < 0 ? errno : xac_newfile_make(r->dirfd, name, &r->owner, &out);
    if (rc == 0)
        rc = xac_copy_range(in, out, 0, at, &r->copier);
    r->rep.log_bytes += r->copier.bytes - before;
    if (rc == 0 && xac_sys.ftruncate(out, (off_t)(XAC_SEGMENT_HEADER + bytes)) != 0)
        rc = errno;
    if (rc == 0 && xac_sys.fsync(out) != 0)
        rc = errno;
    if (in >= 0)
        (void)xac_sys.close(in);
    if (out >= 0)
        (void)xac_sys.close(out);
    return rc == 0 ? 0 : xac_err(rc, "backup: %s", name);
}

/* copy_datafile -- of this generation of the log; one that is gone by now has aborted. */
static int
copy_datafile(void *arg, const char *name)
{
    struct run *r = (struct run *)arg;
    uint32_t generation;
    uint64_t serial;

    if (!xac_log_datafile_named(name, &generation, &serial)
        || generation != r->master.generation)
        return 0;
    return copy_file(r, r->env->logfd, name, name, &r->owner, true);
}

/* copy_log -- steps 4 and 5. */
static int
copy_log(struct run *r)
{
    struct xac_env *env = r->env;
    /* Acquire: pairs with the release of a process that appends. */
    uint64_t tail = atomic_load_explicit(&env->log.sh->tail, memory_order_acquire);
    uint64_t bytes = r->master.segment_bytes;
    int rc = xac_log_wait_durable(&env->log, tail);

    r->rep.time_ns = xac_clock_read(CLOCK_REALTIME);
    r->rep.end_lsn = tail;
    r->rep.redo_lsn = r->master.redo_lsn;
    if (rc == 0)
        rc = copy_registered(r);
    for (uint64_t k = xac_log_segment_of(r->master.redo_lsn, bytes);
         rc == 0 && (k - 1) * bytes < tail; k++)
        rc = copy_segment(r, k);
    return rc == 0 ? xac_scan_names(env->logfd, XAC_DATA_PREFIX, copy_datafile, r) : rc;
}

/* ---- The directory ---------------------------------------------------------------- */

/* write_master -- step 6: the record as it was read but for the directory, under its name when it is
   synced; all other names have been synced behind the note. */
static int
write_master(struct run *r)
{
    struct xac_newfile f = {.dirfd = r->dirfd,
                            .made = XAC_MASTER_NAME ".new",
                            .name = XAC_MASTER_NAME,
                            .owner = &r->owner,
                            .is_synced = true};
    int rc;

    xac_master_put_dir(&r->master, &(struct xac_identity){0}); /* wherever it is put */
    memset(r->copier.chunk, 0, 2 * XAC_MASTER_SLOT_STRIDE);
    memcpy(r->copier.chunk, &r->master, sizeof r->master);
    rc = xac_newfile_replace(&f, r->copier.chunk, 2 * XAC_MASTER_SLOT_STRIDE, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s", r->dir, XAC_MASTER_NAME);
}

/* not_empty -- for xac_scan_names. */
static int
not_empty(void *arg, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    return xac_err(EEXIST, "%s: holds %s already", (const char *)arg, name);
}

/* owner_of -- log files of the backup are for those who may write there, and may read the
   environment's. */
static int
owner_of(struct run *r)
{
    struct xac_owner of_env;
    int rc = xac_owner_of_dir(r->dirfd, &r->owner);

    if (rc == 0)
        rc = xac_owner_get(r->env->dirfd, &of_env);
    if (rc != 0)
        return xac_err(rc, "%s", r->dir);
    r->owner.mode &= of_env.mode;
    if (r->owner.gid != of_env.gid)
        r->owner.mode &= ~(mode_t)070;
    return 0;
}

/* open_dir -- the directory of the backup: made, or empty. */
static int
open_dir(struct run *r)
{
    char words[512];
    int rc;

    if (xac_sys.mkdirat(AT_FDCWD, r->dir, 0700) != 0 && errno != EEXIST)
        return xac_err(errno, "%s", r->dir);
    r->dirfd = xac_sys.openat(AT_FDCWD, r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (r->dirfd < 0)
        return xac_err(errno, "%s", r->dir);
    (void)snprintf(words, sizeof words, "%s", r->dir);
    rc = xac_scan_names(r->dirfd, "", not_empty, words);
    return rc == 0 ? owner_of(r) : rc;
}

/* sync_parents -- names in the directories of the copies must stay, too, and that of the backup
   itself, unless it lies where we may not read: then somebody else has put it there. */
static int
sync_parents(struct run *r)
{
    int rc = xac_sync_parent(r->dirfd, "../");

    if (rc != 0)
        rc = rc == EACCES ? 0 : xac_err(rc, "syncing the directory of %s", r->dir);
    for (size_t i = 0; rc == 0 && i < r->note.n_files; i++) {
        char *path = strdup(r->note.file[i].copy);
        char *slash = path != NULL ? path + strlen(path) : NULL;

        if (path == NULL)
            return xac_err(ENOMEM, "backup");
        while (rc == 0 && (slash = strrchr(path, '/')) != NULL) {
            int fd = -1;

            *slash = '\0';
            rc = xac_stored_open(r->dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &fd);
            if (rc != 0 || (rc = xac_sync_dir(fd)) != 0)
                rc = xac_err(rc, "%s/%s: sync", r->dir, path);
            if (fd >= 0)
                (void)xac_sys.close(fd);
        }
        free(path);
    }
    return rc;
}

/* ---- Progress --------------------------------------------------------------------- */

/* add_size -- what of a file is no hole, for xac_address_each; one that is gone has nothing. */
static int
add_size(void *arg, const char *path)
{
    struct run *r = (struct run *)arg;
    struct stat st;

    if (fstatat(r->env->dirfd, path, &st, 0) == 0 && S_ISREG(st.st_mode))
        r->total += (uint64_t)st.st_blocks * 512;
    return 0;
}

/* tell -- for struct xac_copier. */
static void
tell(void *arg, uint64_t bytes)
{
    struct run *r = (struct run *)arg;

    if (r->total < bytes)
        r->total = bytes;
    r->progress->fn(r->progress->arg, bytes, r->total);
}

/* start_progress -- how much there is to copy.  Nothing depends on it but what is shown. */
static void
start_progress(struct run *r)
{
    if (r->progress == NULL)
        return;
    (void)xac_address_each(r->env, add_size, r);
    r->total += atomic_load_explicit(&r->env->log.sh->tail, memory_order_relaxed)
                - r->master.redo_lsn;
    r->copier.progress = tell;
    r->copier.progress_arg = r;
}

/* ---- The whole -------------------------------------------------------------------- */

/* copy_all -- steps 2 to 6; the log is pinned. */
static int
copy_all(struct run *r)
{
    struct xac_env *env = r->env;
    int rc = xac_master_read(env->dirfd, &r->master);

    if (rc != 0)
        return rc;
    /* Release: pairs with the acquire in xac_registry_log_needed. */
    atomic_store_explicit(&xac_participant_at(env, env->self)->log_pin,
                          r->master.redo_lsn, memory_order_release);
    start_progress(r);
    rc = copy_registered(r);
    if (rc == 0)
        rc = xac_address_each(env, copy_one_remembered, r);
    if (rc == 0)
        rc = copy_log(r);
    if (rc == 0)
        rc = copy_file(r, env->dirfd, XAC_ADDRESSES_NAME, XAC_ADDRESSES_NAME, &r->owner,
                       true);
    if (rc == 0 && xac_log_is_kept(env->logfd))
        rc = xac_log_keep(r->dirfd, true, NULL); /* it goes on where this one did */
    if (rc == 0)
        rc = sync_parents(r);
    r->note.end_lsn = r->rep.end_lsn;
    r->note.time_ns = r->rep.time_ns;
    if (rc == 0)
        rc = xac_backup_note_write(r->dirfd, &r->note);
    return rc == 0 ? write_master(r) : rc;
}

int
xac_backup_run(struct xac_env *env, const char *dir,
               const struct xac_backup_progress *progress,
               struct xac_backup_report *report)
{
    struct run r = {.env = env, .dir = dir, .dirfd = -1, .progress = progress};
    _Atomic uint64_t *pin = &xac_participant_at(env, env->self)->log_pin;
    int rc;

    if (!xac_env_is_durable(env))
        return xac_err(ENOTSUP, "%s is not durable: it has no log to make a copy whole",
                       env->dir);
    if (env->ctl->full_images == 0)
        return xac_err(ENOTSUP,
                       "%s logs no full images (XAC_OPT_FULL_IMAGES), which would"
                       " mend pages that are written while they are copied",
                       env->dir);
    r.copier.chunk = (uint8_t *)malloc(XAC_COPY_CHUNK);
    if (r.copier.chunk == NULL)
        return xac_err(ENOMEM, "backup");
    rc = open_dir(&r);
    /* Everything, until it is known what.  Release: pairs with the acquire in
       xac_registry_log_needed. */
    atomic_store_explicit(pin, 1, memory_order_release);
    if (rc == 0)
        rc = xac_checkpoint_run(env, false);
    if (rc == 0)
        rc = copy_all(&r);
    atomic_store_explicit(pin, 0, memory_order_release); /* pairs with the same */
    if (r.dirfd >= 0)
        (void)xac_sys.close(r.dirfd);
    if (report != NULL)
        *report = r.rep;
    xac_backup_note_free(&r.note);
    free(r.copier.chunk);
    return rc;
}
