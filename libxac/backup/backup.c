/* SPDX-License-Identifier: MIT */
/*
 * backup.c -- see backup.h.  The steps:
 *   (1) the log is pinned; a checkpoint makes what is to be copied of it short
 *   (2) the master record is read; for an increment, the log since the base
 *   (3) the mapped files are copied, or what of them has changed (backup_files.c)
 *   (4) the end of the log is made durable and noted; files that have been registered
 *       meanwhile are copied, too
 *   (5) segments and data files are copied
 *   (6) xac.backup, xac.manifest, then xac.master; of an increment xac.manifest alone
 */
#include <config.h>

#include "backup/backup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "backup/backup_files.h"
#include "backup/backup_job.h"
#include "backup/pagelist.h"
#include "base/clock.h"
#include "base/copy.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "checkpoint/archive.h"
#include "checkpoint/checkpoint.h"
#include "log/backup_note.h"
#include "log/log.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "shared/address_list.h"
#include "shared/env_state.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "view/address.h"

/* ---- A file of the library's ------------------------------------------------------ */

/*
 * copy_file -- a file of the environment or of its log, under the same name; one that is gone is no
 * error.
 */
static int
copy_file(struct xac_backup_job *r, int dirfd, const char *name, uint64_t *bytesp)
{
    uint64_t before = r->copier.bytes;
    int rc = xac_backup_dir_copy(dirfd, name, r->dirfd, &r->owner, &r->copier);

    if (rc != 0)
        (void)xac_err(rc, "backup: %s to %s", name, r->dir);
    *bytesp += r->copier.bytes - before;
    return rc;
}

/* ---- All files -------------------------------------------------------------------- */

/* copy_registered -- files of the region that have not been copied yet. */
static int
copy_registered(struct xac_backup_job *r)
{
    uint32_t n;
    int rc = 0;

    /* With the lock: a process that is registering, removing or renaming a file has done so; one that
       comes later sees the pin of the log. */
    xac_registry_enter(r->env);
    n = (uint32_t)atomic_load_explicit(&r->env->ctl->files.count, memory_order_relaxed);
    xac_registry_exit(r->env);
    while (rc == 0 && r->n_done < n) {
        const struct xac_file *f = xac_file_at(r->env, ++r->n_done);
        bool is_known =
            atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_KNOWN;

        /* What is left has nothing in the log that is copied. */
        if (is_known)
            rc = xac_backup_mapped(r, (const char *)xac_shm_at(&r->env->shm, f->path),
                                   r->n_done);
    }
    return rc;
}

/* copy_one_remembered -- for xac_address_each. */
static int
copy_one_remembered(void *arg, const char *path)
{
    return xac_backup_mapped((struct xac_backup_job *)arg, path, 0);
}

/* ---- The log ---------------------------------------------------------------------- */

/* copy_segment -- of a segment what lies before the end, of an increment's only what recovery reads; a
   hole behind, as log_segment.h has it. */
static int
copy_segment(struct xac_backup_job *r, uint64_t number)
{
    uint64_t bytes = r->master.segment_bytes;
    uint64_t begin = (number - 1) * bytes;
    uint64_t used = r->rep.end_lsn - begin < bytes ? r->rep.end_lsn - begin : bytes;
    uint64_t at = XAC_SEGMENT_HEADER + used, before = r->copier.bytes;
    uint64_t from = XAC_SEGMENT_HEADER;
    char name[XAC_LOG_NAME_MAX];
    int out = -1;
    int in, rc;

    xac_log_segment_name(name, number);
    in = xac_sys.openat(r->env->logfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    rc = in < 0 ? errno : xac_newfile_make(r->dirfd, name, &r->owner, &out);
    if (r->base.dirfd >= 0 && r->master.redo_lsn > begin)
        from += (r->master.redo_lsn - begin) & ~(uint64_t)(XAC_SEGMENT_HEADER - 1);
    if (rc == 0)
        rc = xac_copy_range(in, out, 0, XAC_SEGMENT_HEADER, &r->copier);
    if (rc == 0)
        rc = xac_copy_range(in, out, from, at, &r->copier);
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
    struct xac_backup_job *r = (struct xac_backup_job *)arg;
    uint32_t generation;
    uint64_t serial;

    if (!xac_log_datafile_named(name, &generation, &serial)
        || generation != r->master.generation || serial < r->data_serial)
        return 0;
    return copy_file(r, r->env->logfd, name, &r->rep.log_bytes);
}

/* copy_log -- steps 4 and 5. */
static int
copy_log(struct xac_backup_job *r)
{
    struct xac_env *env = r->env;
    /* Acquire: pairs with the release of a process that appends. */
    uint64_t tail = atomic_load_explicit(&env->log.sh->tail, memory_order_acquire);
    uint64_t bytes = r->master.segment_bytes;
    int rc = xac_group_wait_durable(env, tail);

    r->rep.time_ns = xac_clock_read(CLOCK_REALTIME);
    r->rep.end_lsn = tail;
    r->rep.redo_lsn = r->master.redo_lsn;
    if (rc == 0)
        rc = copy_registered(r);
    for (uint64_t k = xac_log_segment_of(r->master.redo_lsn, bytes);
         rc == 0 && (k - 1) * bytes < tail; k++)
        rc = copy_segment(r, k);
    if (rc == 0 && r->base.dirfd >= 0)
        rc = xac_archive_data_serial(env->logfd, &r->master, &r->data_serial);
    return rc == 0 ? xac_scan_names(env->logfd, XAC_DATA_PREFIX, copy_datafile, r) : rc;
}

/* owner_of -- log files of the backup are for those who may write there, and may read the
   environment's. */
static int
owner_of(struct xac_backup_job *r)
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

/* ---- Progress --------------------------------------------------------------------- */

/* add_size -- what of a file is no hole, for xac_address_each; one that is gone has nothing. */
static int
add_size(void *arg, const char *path)
{
    struct xac_backup_job *r = (struct xac_backup_job *)arg;
    struct stat st;

    if (fstatat(r->env->dirfd, path, &st, 0) == 0 && S_ISREG(st.st_mode))
        r->total += (uint64_t)st.st_blocks * 512;
    return 0;
}

/* tell -- for struct xac_copier. */
static void
tell(void *arg, uint64_t bytes)
{
    struct xac_backup_job *r = (struct xac_backup_job *)arg;

    bytes += r->seen;
    if (r->total < bytes)
        r->total = bytes;
    r->progress->fn(r->progress->arg, bytes, r->total);
}

/* start_progress -- how much there is to copy.  Nothing depends on it but what is shown. */
static void
start_progress(struct xac_backup_job *r)
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

/* open_base -- the backup that this one is the increment of; it must be one of this environment. */
static int
open_base(struct xac_backup_job *r, const char *dir)
{
    struct xac_backup_base *b = &r->base;
    int rc;

    b->dir = dir;
    b->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (b->dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = xac_manifest_read(&b->m, b->dirfd, dir);
    if (rc != 0)
        return rc;
    if (memcmp(b->m.head.identity, (const void *)r->env->ctl->identity,
               sizeof b->m.head.identity)
        != 0)
        return xac_err(XAC_EFOREIGN, "%s: the backup of another environment than %s", dir,
                       r->env->dir);
    if (b->m.head.page_size != r->env->page_size)
        return xac_err(XAC_EPAGESIZE, "%s: pages of %u bytes", dir, b->m.head.page_size);
    b->pagesfd =
        xac_sys.openat(b->dirfd, XAC_PAGES_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    return b->pagesfd >= 0 ? 0 : xac_err(errno, "%s/%s: open", dir, XAC_PAGES_NAME);
}

/* fill_head -- of the manifest, what is known at the start. */
static int
fill_head(struct xac_backup_job *r)
{
    const struct xac_manifest_head *base = &r->base.m.head;
    struct xac_manifest_head *h = &r->m.head;
    struct xac_identity life;
    int rc = xac_identity_of(r->env->shm.fd, &life);

    if (rc != 0)
        return xac_err(rc, "control region: stat");
    if (getentropy(h->id, sizeof h->id) != 0)
        return xac_err(errno != 0 ? errno : EIO, "random numbers");
    h->page_size = (uint32_t)r->env->page_size;
    memcpy(h->identity, (const void *)r->env->ctl->identity, sizeof h->identity);
    h->life_inode = life.inode;
    h->life_birth_ns = life.birth_ns;
    if (r->base.dirfd < 0)
        return 0;
    memcpy(h->base, base->id, sizeof h->base);
    h->base_lsn = base->end_lsn;
    h->link = r->rep.link = base->link + 1;
    r->rep.is_increment = true;
    return h->link != 0 ? 0 : xac_err(EOVERFLOW, "%s: too many increments", r->base.dir);
}

/* read_changes -- step 2 of an increment.  The log is asked only if it is certainly the one that
   was there at the base: same region, so no recovery, cut or copy has come between. */
static int
read_changes(struct xac_backup_job *r)
{
    const struct xac_manifest_head *base = &r->base.m.head;
    const struct xac_manifest_head *h = &r->m.head;
    struct xac_changed *c = &r->changed;

    if (r->base.dirfd < 0)
        return 0;
    if (h->life_birth_ns == 0 || base->life_birth_ns != h->life_birth_ns
        || base->life_inode != h->life_inode || base->generation != r->master.generation
        || base->redo_lsn < r->master.start_lsn || base->redo_lsn > r->master.redo_lsn) {
        (void)snprintf(
            c->why, sizeof c->why,
            "all processes have ended since, or a recovery has begun another log");
        return 0;
    }
    return xac_changed_read(c, r->env->logfd, &r->master, base->redo_lsn,
                            r->master.redo_lsn);
}

/* make_lists -- xac.pages, and of an increment xac.changed. */
static int
make_lists(struct xac_backup_job *r)
{
    int rc = xac_newfile_make(r->dirfd, XAC_PAGES_NAME, &r->owner, &r->pagesfd);

    if (rc == 0 && r->base.dirfd >= 0)
        rc = xac_newfile_make(r->dirfd, XAC_CHANGED_NAME, &r->owner, &r->changedfd);
    return rc == 0 ? 0 : xac_err(rc, "%s: create", r->dir);
}

/* sync_lists -- before the manifest names what they hold; xac.pages ends behind the last part. */
static int
sync_lists(struct xac_backup_job *r)
{
    const struct xac_manifest_file *last =
        r->m.n_files > 0 ? &r->m.file[r->m.n_files - 1] : NULL;
    uint64_t blocks =
        last != NULL ? last->list_block + xac_manifest_blocks(&r->m, last) : 0;

    if (xac_sys.ftruncate(r->pagesfd, (off_t)(blocks * XAC_PAGELIST_BLOCK)) != 0
        || xac_sys.fsync(r->pagesfd) != 0)
        return xac_err(errno, "%s/%s: write", r->dir, XAC_PAGES_NAME);
    if (r->changedfd >= 0 && xac_sys.fsync(r->changedfd) != 0)
        return xac_err(errno, "%s/%s: write", r->dir, XAC_CHANGED_NAME);
    return 0;
}

/* finish -- step 6. */
static int
finish(struct xac_backup_job *r)
{
    struct xac_backup_note names = {.n_files = 0}; /* an increment has no copies       */
    int rc = sync_lists(r);

    if (r->base.dirfd < 0)
        names = r->note;
    if (rc == 0)
        rc = xac_backup_dir_sync(r->dirfd, r->dir, &names);
    r->note.end_lsn = r->m.head.end_lsn = r->rep.end_lsn;
    r->note.time_ns = r->m.head.time_ns = r->rep.time_ns;
    r->m.head.redo_lsn = r->master.redo_lsn;
    r->m.head.generation = r->master.generation;
    r->m.master = r->master;
    if (rc == 0 && r->base.dirfd < 0)
        rc = xac_backup_note_write(r->dirfd, &r->note);
    if (rc == 0 && r->base.dirfd >= 0)
        rc = xac_manifest_unmark(r->dirfd);
    if (rc == 0)
        rc = xac_manifest_write(&r->m, r->dirfd, &r->owner);
    if (rc != 0 || r->base.dirfd >= 0)
        return rc;
    rc = xac_manifest_unmark(r->dirfd);
    return rc == 0 ? xac_backup_dir_master(r->dirfd, r->dir, &r->owner, &r->master) : rc;
}

/* copy_all -- steps 2 to 6; the log is pinned. */
static int
copy_all(struct xac_backup_job *r)
{
    struct xac_env *env = r->env;
    uint64_t other = 0;
    int rc = xac_master_read(env->dirfd, &r->master);

    if (rc != 0)
        return rc;
    xac_master_put_dir(&r->master, &(struct xac_identity){0}); /* wherever it is put */
    /* Acquire: pairs with the release of a process that appends. */
    r->tail = atomic_load_explicit(&env->log.sh->tail, memory_order_acquire);
    rc = read_changes(r);
    /* Release: pairs with the acquire in xac_registry_log_needed. */
    atomic_store_explicit(&xac_participant_at(env, env->self)->log_pin,
                          r->master.redo_lsn, memory_order_release);
    start_progress(r);
    if (rc == 0)
        rc = make_lists(r);
    if (rc == 0)
        rc = copy_registered(r);
    if (rc == 0)
        rc = xac_address_each(env, copy_one_remembered, r);
    if (rc == 0)
        rc = copy_log(r);
    if (rc == 0)
        rc = copy_file(r, env->dirfd, XAC_ADDRESSES_NAME, &other);
    if (rc == 0 && xac_log_is_kept(env->logfd))
        rc = xac_log_keep(r->dirfd, true, NULL); /* it goes on where this one did */
    return rc == 0 ? finish(r) : rc;
}

/* start -- everything that can be refused before anything is made; then the directory. */
static int
start(struct xac_backup_job *r, const char *base)
{
    size_t size = r->env->page_size;
    int rc = 0;

    if (!xac_env_is_durable(r->env))
        return xac_err(ENOTSUP, "%s is not durable: it has no log to make a copy whole",
                       r->env->dir);
    if (r->env->ctl->full_images == 0)
        return xac_err(ENOTSUP,
                       "%s logs no full images (XAC_OPT_FULL_IMAGES), which would"
                       " mend pages that are written while they are copied",
                       r->env->dir);
    r->copier.chunk = (uint8_t *)malloc(XAC_COPY_CHUNK);
    r->pages = (uint8_t *)calloc(XAC_PAGELIST_ENTRIES, size);
    if (r->copier.chunk == NULL || r->pages == NULL)
        return xac_err(ENOMEM, "backup");
    r->zeros_sum = xac_xxh64(r->pages, size);
    if (base != NULL)
        rc = open_base(r, base);
    if (rc == 0)
        rc = fill_head(r);
    if (rc == 0)
        rc = xac_backup_dir_open(r->dir, &r->dirfd);
    if (rc == 0)
        rc = owner_of(r);
    return rc == 0 ? xac_manifest_begin(r->dirfd, &r->owner) : rc;
}

/* close_all -- free what the backup has taken. */
static void
close_all(struct xac_backup_job *r)
{
    int fds[] = {r->dirfd, r->pagesfd, r->changedfd, r->base.dirfd, r->base.pagesfd};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0)
            (void)xac_sys.close(fds[i]);
    }
    xac_backup_note_free(&r->note);
    xac_manifest_free(&r->m);
    xac_manifest_free(&r->base.m);
    xac_changed_free(&r->changed);
    free(r->copier.chunk);
    free(r->pages);
}

int
xac_backup_run(struct xac_env *env, const char *dir, const char *base,
               const struct xac_backup_progress *progress,
               struct xac_backup_report *report)
{
    struct xac_backup_job r = {.env = env,
                               .dir = dir,
                               .dirfd = -1,
                               .pagesfd = -1,
                               .changedfd = -1,
                               .base = {.dirfd = -1, .pagesfd = -1},
                               .progress = progress};
    _Atomic uint64_t *pin = &xac_participant_at(env, env->self)->log_pin;
    int rc = start(&r, base);

    /* Everything, until it is known what.  Release: pairs with the acquire in
       xac_registry_log_needed. */
    atomic_store_explicit(pin, 1, memory_order_release);
    if (rc == 0)
        rc = xac_checkpoint_run(env, false);
    if (rc == 0)
        rc = copy_all(&r);
    atomic_store_explicit(pin, 0, memory_order_release); /* pairs with the same */
    if (report != NULL)
        *report = r.rep;
    close_all(&r);
    return rc;
}
