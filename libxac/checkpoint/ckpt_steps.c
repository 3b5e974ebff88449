/* SPDX-License-Identifier: MIT */
/*
 * ckpt_steps.c -- see ckpt_steps.h.  The letters are those of its steps.
 */
#include <config.h>

#include "checkpoint/ckpt_steps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/probe.h"
#include "base/sys.h"
#include "checkpoint/archive.h"
#include "checkpoint/file_fds.h"
#include "checkpoint/hold.h"
#include "log/block.h"
#include "log/log_keep.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/ckpt_log.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "txn/slot.h"
#include "txn/txn_datafile.h"

/* Writes by one descriptor before it is looked at again: as many as a step of a checkpoint that is due
   makes. */
#define FD_WRITES 16

/* steps_assert -- stop the program unless (1) to (4) hold. */
static void
steps_assert(const struct xac_ckpt *r)
{
    xac_assert(xac_lock_is_mine(&r->env->ctl->checkpoint));
    xac_assert(r->bound <= r->begin_commit); /* (1) */
    xac_assert(r->redo_lsn <= r->begin_lsn); /* (2) */
    xac_assert(r->run.n == 0);               /* (3) */
    xac_assert(r->n_unlinked <= r->n_pages && r->n_pages <= r->pages_size);
    xac_assert(r->phase == XAC_CKPT_COPY || r->next_vslot > r->n_vslots); /* (4) */
}

/* ---- Steps m to r ------------------------------------------------------------------- */

/* begin -- step m: the log up to here is made durable, in a group by a majority, so all versions up to Cb are. */
static int
begin(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    uint64_t buf[64];
    struct xac_builder b;
    uint64_t end;
    int rc;

    if (!xac_env_is_durable(env) || r->shipped != NULL) {
        r->begin_commit = xac_chain_commit(env);
        r->begin_lsn = r->shipped != NULL ? r->shipped->begin_lsn : 0;
        r->redo_lsn = r->shipped != NULL ? r->shipped->redo_lsn : 0;
        return 0; /* what is published on a standby is durable */
    }
    xac_builder_init(&b, buf, sizeof buf);
    /* Worked out before the block has its place, so it may be smaller than need be. */
    r->data_serial = xac_commit_data_serial(env);
    (void)xac_put_checkpt_begin(&b, r->data_serial);
    rc = xac_ckpt_log_put(env, &b, true, &r->begin_lsn, &end);
    if (rc != 0)
        return rc;
    r->redo_lsn = r->begin_lsn;
    r->begin_commit = ((const struct xac_block *)(const void *)buf)->commit;
    return xac_group_wait_durable(env, end);
}

/* pin -- step n: a query that holds the bound. */
static int
pin(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    struct xac_txn *t;
    uint64_t word;

    r->query = xac_txn_claim(env, env->self);
    if (r->query == UINT64_MAX)
        return xac_err(ENOMEM, "no transaction slot for the checkpoint");
    t = xac_txn_at(env, r->query);
    word = atomic_load_explicit(&t->word, memory_order_relaxed);
    xac_kill_point("n slot");
    xac_gc_lock(env);
    r->bound = xac_gc_bound(env, NULL);
    if (r->bound > r->begin_commit)
        r->bound = r->begin_commit; /* later versions need not be durable yet */
    atomic_store_explicit(&t->parent, r->bound, memory_order_relaxed);
    atomic_store_explicit(&t->start, r->bound, memory_order_relaxed);
    atomic_store_explicit(&t->begin_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    /* Release: pairs with the acquire of a process that scans the slots. */
    atomic_store_explicit(&t->word,
                          xac_txn_word(xac_txn_serial(word), env->self, XAC_TXN_QUERY),
                          memory_order_release);
    xac_gc_unlock(env);
    xac_assert(r->bound <= r->begin_commit); /* (1) */
    env->ctl->ckpt_serial = xac_txn_serial(word);
    env->ctl->ckpt_query = r->query + 1;
    return 0;
}

void
xac_ckpt_unpin(struct xac_ckpt *r)
{
    if (r->query != UINT64_MAX) {
        r->env->ctl->ckpt_query = 0;
        xac_txn_drop(r->env, r->query, r->query, XAC_TXN_FREE);
    }
    r->query = UINT64_MAX;
}

/* note_copied -- remember a page; ret 0 or ENOMEM. */
static int
note_copied(struct xac_ckpt *r, struct xac_page *page)
{
    if (r->n_pages == r->pages_size) {
        size_t want = r->pages_size == 0 ? 1024 : r->pages_size * 2;
        struct xac_page **more =
            (struct xac_page **)realloc(r->page, want * sizeof more[0]);

        if (more == NULL)
            return xac_err(ENOMEM, "checkpoint");
        r->page = more;
        r->pages_size = want;
    }
    r->page[r->n_pages++] = page;
    xac_assert(r->n_pages <= r->pages_size);
    return 0;
}

/* note_open -- a page whose newest version up to Cb stays out of its file: recovery needs
   what was committed since the checkpoint in which its full image lies. */
static void
note_open(struct xac_ckpt *r, const struct xac_page *page)
{
    uint64_t since = atomic_load_explicit(&page->full_since, memory_order_relaxed);

    /* What an earlier checkpoint has closed needs no log that has been released since. */
    if (since < r->master.redo_lsn)
        since = r->master.redo_lsn;
    if (since < r->redo_lsn)
        r->redo_lsn = since;
}

/* reopen -- pages of a file that has been lost on the way are not closed: what was written of
   it may be written again. */
static void
reopen(struct xac_ckpt *r, uint32_t file)
{
    for (size_t i = 0; i < r->n_pages; i++) {
        uint64_t id = atomic_load_explicit(&r->page[i]->id, memory_order_relaxed);

        if (xac_page_file(id) == file)
            note_open(r, r->page[i]);
    }
}

/* lose -- a file that cannot be opened or written. */
static int
lose(struct xac_ckpt *r, uint32_t file, int error)
{
    int rc = xac_ckpt_files_lose(&r->files, r->env, file, error);

    if (rc == 0 && (r->files.fate[file] & XAC_CKPT_SKIPPED) != 0)
        reopen(r, file);
    return rc;
}

/* set_aside -- a page of a file that is not written: forgotten, or skipped. */
static int
set_aside(struct xac_ckpt *r, struct xac_page *page, uint32_t file)
{
    if ((r->files.fate[file] & XAC_CKPT_GONE) != 0)
        return note_copied(r, page);
    note_open(r, page);
    return 0;
}

/* has_lost -- has the file been found lost, in this run or by another one? */
static bool
has_lost(struct xac_ckpt *r, uint32_t file)
{
    if (atomic_load_explicit(&xac_file_at(r->env, file)->state, memory_order_relaxed)
        == XAC_FILE_GONE)
        r->files.fate[file] |= XAC_CKPT_GONE;
    return (r->files.fate[file] & (XAC_CKPT_SKIPPED | XAC_CKPT_GONE)) != 0;
}

/* note_run -- what has been written is noted. */
static int
note_run(struct xac_ckpt *r, uint64_t n)
{
    struct xac_ckpt_run *run = &r->run;
    struct xac_env *env = r->env;
    int rc = 0;

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        const uint8_t *bytes = run->bytes + i * env->page_size;

        if (r->keeps_sums)
            rc = xac_pagesums_add(&r->sums, run->file, run->first + i, bytes,
                                  env->page_size);
        if (rc == 0)
            rc = xac_outofcore_written(env, run->page[i], bytes);
        if (rc == 0)
            rc = note_copied(r, run->page[i]);
    }
    return rc;
}

/* fd_of -- the descriptor of a file for the next write; -1 with errno.  Whether the program has closed
   it is looked at for a new file, and again after FD_WRITES. */
static int
fd_of(struct xac_ckpt *r, uint32_t file)
{
    if (r->fd_file != file || r->n_fd_writes == FD_WRITES) {
        r->fd = xac_file_fd(r->env, file);
        r->fd_file = r->fd >= 0 ? file : 0;
        r->n_fd_writes = 0;
    }
    r->n_fd_writes++;
    xac_assert(r->n_fd_writes <= FD_WRITES);
    return r->fd;
}

/* write_run -- what has been collected (ckpt_run.h); ret 0 or an error. */
static int
write_run(struct xac_ckpt *r)
{
    struct xac_ckpt_run *run = &r->run;
    struct xac_env *env = r->env;
    uint64_t n = run->n;
    int fd = fd_of(r, run->file);
    int rc = fd < 0 ? errno : 0;

    xac_assert(n > 0 && n <= run->most);
    run->n = 0;
    if (rc == 0) {
        xac_file_write_begin(xac_file_at(env, run->file), run->first + n);
        xac_file_fd_dirty(env, run->file);
        rc = xac_write_full(fd, run->bytes, n * env->page_size,
                            run->first << env->page_shift);
    }
    if (rc != 0) {
        rc = lose(r, run->file, rc);
        for (uint64_t i = 0; i < n && rc == 0; i++)
            rc = set_aside(r, run->page[i], run->file);
        return rc;
    }
    xac_kill_point("o page");
    rc = xac_outofcore_add_file(env, run->file, fd);
    return rc == 0 ? note_run(r, n) : rc;
}

/* copy_page -- step o for one page: its version goes to the file, or to the run. */
static int
copy_page(struct xac_ckpt *r, struct xac_page *page, uint64_t vslot)
{
    struct xac_env *env = r->env;
    uint64_t id = atomic_load_explicit(&page->id, memory_order_relaxed);
    uint32_t file = xac_page_file(id);
    uint8_t *fate = &r->files.fate[file];
    const uint8_t *bytes;
    int rc = 0;

    if (has_lost(r, file))
        return set_aside(r, page, file);
    bytes = xac_version_bytes(env, vslot);
    if (bytes == NULL)
        return xac_err(errno, "checkpoint: file %s", xac_file_path(env, file));
    if ((*fate & XAC_CKPT_TOUCHED) == 0) {
        if (xac_file_fd(env, file) < 0) {
            rc = lose(r, file, errno);
            return rc == 0 ? set_aside(r, page, file) : rc;
        }
        if (!r->keeps_sums)
            rc = xac_pagesums_drop(env->dirfd, xac_file_at(env, file)->who.inode,
                                   &r->is_dir_synced);
        *fate |= rc == 0 ? XAC_CKPT_TOUCHED : 0;
    }
    if (rc == 0 && !xac_ckpt_run_takes(&r->run, id))
        rc = write_run(r);
    if (rc == 0 && has_lost(r, file)) /* just now */
        return set_aside(r, page, file);
    if (rc == 0)
        xac_ckpt_run_add(&r->run, page, id, bytes, env->page_size);
    return rc;
}

/* newest_by -- commit of the newest version numbered at or below c; 0 none. */
static uint64_t
newest_by(const struct xac_env *env, const struct xac_page *page, uint64_t c)
{
    uint64_t commit;

    (void)xac_version_find(env, page, c, &commit);
    xac_assert(commit <= c);
    return commit;
}

static struct xac_file *
file_of(const struct xac_env *env, const struct xac_page *page)
{
    return xac_file_at(env, xac_page_file(
                                atomic_load_explicit(&page->id, memory_order_relaxed)));
}

/* is_closed -- has an earlier checkpoint found the page's version in its file, synced? */
static bool
is_closed(const struct xac_ckpt *r, const struct xac_page *page, uint64_t commit)
{
    return commit <= atomic_load_explicit(&r->env->ctl->ckpt_bound, memory_order_relaxed)
           && file_of(r->env, page)->is_behind == 0;
}

/* copy_vslot -- step o for one version slot; and the redo position for step q. */
static int
copy_vslot(struct xac_ckpt *r, uint64_t f)
{
    struct xac_env *env = r->env;
    struct xac_vslot *vslot = xac_vslot_at(env, f);
    struct xac_page *page;
    uint64_t commit, newest;

    /* Acquire: pairs with the release that made it a version. */
    if (xac_vslot_state(atomic_load_explicit(&vslot->word, memory_order_acquire))
        != XAC_VSLOT_VERSION)
        return 0;
    commit = atomic_load_explicit(&vslot->commit, memory_order_relaxed);
    page = (struct xac_page *)xac_shm_at(&env->shm,
                                         atomic_load_explicit(&vslot->page,
                                                              memory_order_relaxed));
    if (commit <= r->bound && xac_version_find(env, page, r->bound, &newest) == f)
        return is_closed(r, page, commit) ? note_copied(r, page) : copy_page(r, page, f);
    /* Open: its newest version up to Cb is not the one that the file holds now. */
    if (commit > r->bound && commit == newest_by(env, page, r->begin_commit)
        && atomic_load_explicit(&file_of(env, page)->state, memory_order_relaxed)
               != XAC_FILE_GONE)
        note_open(r, page);
    return 0;
}

/* write_out -- for xac_file_fds_each. */
static int
write_out(struct xac_env *env, uint32_t file, int fd)
{
    (void)env;
    (void)file;
    (void)xac_sys.sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* start_writing -- let the device begin with what has been copied, so that the sync has
   less to wait for; a hint, which may fail. */
static void
start_writing(const struct xac_ckpt *r)
{
    if (xac_env_is_durable(r->env))
        (void)xac_file_fds_each(r->env, write_out);
}

/* copy_some -- step o for at most so many pages and version slots. */
static int
copy_some(struct xac_ckpt *r, uint64_t pages_max, uint64_t vslots_max)
{
    uint64_t n_pages = r->n_pages, vslot;
    int rc = 0;

    if (!xac_ckpt_run_order(&r->run, r->env))
        return 0;
    r->fd_file = 0; /* since the last step the program may have closed the descriptor */
    for (uint64_t i = 0; i < vslots_max && r->next_vslot <= r->n_vslots && rc == 0; i++) {
        vslot = xac_ckpt_run_vslot(&r->run, r->next_vslot);
        r->next_vslot = vslot != 0 ? r->next_vslot + 1 : r->n_vslots + 1;
        rc = vslot != 0 ? copy_vslot(r, vslot) : 0;
        if (r->n_pages + r->run.n - n_pages >= pages_max)
            break;
    }
    if (rc == 0 && r->run.n > 0)
        rc = write_run(r);
    if (rc == 0 && r->n_pages > n_pages && pages_max != UINT64_MAX)
        start_writing(r);
    return rc;
}

/* sync_one -- for xac_file_fds_each. */
static int
sync_one(struct xac_env *env, uint32_t file, int fd)
{
    if (xac_sys.fdatasync(fd) != 0) {
        int rc = errno;

        xac_log_poison(&env->log, rc);
        return xac_err(rc, "checkpoint: syncing %s", xac_file_path(env, file));
    }
    xac_outofcore_uncache(env, fd);
    return 0;
}

/* sync_files -- step p; a failed sync poisons, for a second one would lie.  Descriptors that
   were closed meanwhile have been synced before. */
static int
sync_files(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    int rc = xac_env_is_durable(env) ? xac_file_fds_each(env, sync_one) : 0;

    if (rc != 0)
        return rc;
    xac_file_fds_synced(env);
    return xac_pagesums_checkpoint(env, &r->sums, r->begin_lsn);
}

/*
 * release_log -- what lies before the redo position is not needed, unless a follower needs it (hold.h),
 * or a backup under way: that has pinned everything before it took the checkpoint lock, which we
 * hold, to begin with a checkpoint of its own.  So it is pinned now, or it will begin with
 * this checkpoint's master record or a later one, and needs nothing of what we release.
 * Data files that are not needed are removed; a failure leaves them to the next one.
 */
static void
release_log(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    struct xac_master_slot master = r->master;
    bool recycle = !xac_log_is_kept(env->logfd);

    xac_hold_checkpoint(env);
    master.redo_lsn = xac_registry_log_needed(env, r->redo_lsn);
    xac_kill_point("r release");
    if (recycle)
        xac_archive_remove_data(env, &master);
    xac_log_release(&env->log, recycle ? master.redo_lsn : 0);
}

/* end -- steps q and r. */
static int
end(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    struct xac_ckpt_end what = {.begin_lsn = r->begin_lsn, .redo_lsn = r->redo_lsn};
    uint64_t lsn = 0, after = 0;
    bool is_lost;
    int rc;

    if (r->shipped != NULL) { /* every file stays known: the source leaves them */
        r->shipped->redo_lsn = r->redo_lsn;
        return 0;
    }
    rc = xac_ckpt_files_choose(&r->files, env, r->redo_lsn);
    if (rc != 0 || !xac_env_is_durable(env))
        return rc;
    what.file = r->files.named;
    what.n_files = r->files.n_named;
    rc = xac_ckpt_log_end(env, &what, &lsn, &after);
    xac_kill_point("q appended");
    if (rc == 0) /* a master record that names an END which is cut off is damage */
        rc = xac_group_wait_durable(env, after);
    xac_kill_point("q");
    if (rc != 0)
        return rc;
    r->master.redo_lsn = r->redo_lsn;
    r->master.begin_lsn = r->begin_lsn;
    r->master.end_lsn = lsn;
    r->master.end_lsn_after = after;
    r->master.flags =
        XAC_MASTER_LOGGED | (r->is_final && r->files.error == 0 ? XAC_MASTER_CLEAN : 0);
    rc = xac_master_write(env->dirfd, &r->master, &is_lost);
    if (is_lost)
        xac_log_poison(&env->log, rc);
    if (rc == 0)
        release_log(r);
    return rc;
}

/* ---- Step s ------------------------------------------------------------------------- */

/* unlink_some -- take versions out that their files now hold, in one unlink. */
static void
unlink_some(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    size_t n = r->n_pages - r->n_unlinked;

    xac_assert(n > 0);
    n = n < XAC_UNLINK_PAGES ? n : XAC_UNLINK_PAGES;
    xac_gc_lock(env);
    xac_chain_lock(env);
    while (!xac_version_is_ready(env)) {
        xac_chain_unlock(env);
        xac_version_ready(env);
        xac_chain_lock(env);
    }
    xac_kill_point("s locked");
    xac_chain_unlink(env, r->page + r->n_unlinked, (uint32_t)n, r->bound);
    xac_chain_unlock(env);
    xac_gc_unlock(env);
    r->n_unlinked += n;
}

/* settle -- step t, or a part of it, and the end.  ret true: it is done. */
static bool
settle(struct xac_ckpt *r, bool is_whole)
{
    struct xac_env *env = r->env;
    bool is_done;

    xac_ckpt_unpin(r);
    xac_kill_point("t before");
    xac_gc_lock(env);
    is_done = xac_gc_settle(env, is_whole, &r->settle_goal);
    xac_kill_point("t");
    xac_gc_unlock(env);
    if (!is_done)
        return false;
    xac_ckpt_files_leave(&r->files, env);
    xac_count(&env->ctl->counters.checkpoints, 1);
    xac_count(&env->ctl->counters.pages_checkpointed, r->n_pages);
    XAC_PROBE2(checkpoint, r->n_pages, env->dir);
    return true;
}

/* ---- The steps in their order ------------------------------------------------------- */

/* may_go_on -- not behind a failed sync, and not when another node has, or may have, begun to lead.  (A standby
   that is about to lead brings its files up to date.) */
static int
may_go_on(struct xac_env *env)
{
    int rc = xac_env_poisoned(env);

    return rc == 0 && xac_group_leads(env) ? xac_group_check(env, "checkpoint") : rc;
}

int
xac_ckpt_begin(struct xac_ckpt *r)
{
    struct xac_env *env = r->env;
    int rc = may_go_on(env);

    r->epoch = ++env->ctl->ckpt_epoch;
    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc == 0 && xac_env_is_durable(env))
        rc = xac_master_read(env->dirfd, &r->master); /* step l */
    xac_kill_point("l");
    if (rc == 0)
        rc = begin(r);
    xac_kill_point("m");
    if (rc == 0)
        rc = pin(r);
    xac_kill_point("n");
    if (rc == 0)
        rc = xac_ckpt_files_init(&r->files, env); /* later ones have no such versions */
    r->keeps_sums =
        xac_env_is_durable(env)
        && atomic_load_explicit(&env->ctl->page_checksums, memory_order_relaxed) != 0;
    r->next_vslot = 1;
    /* Acquire: pairs with the release of the store's growth. */
    r->n_vslots =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire);
    return rc == 0 ? xac_ckpt_run_init(&r->run, env, r->n_vslots) : rc;
}

int
xac_ckpt_step(struct xac_ckpt *r, uint64_t pages_max, uint64_t vslots_max)
{
    struct xac_env *env = r->env;
    int rc = may_go_on(env);

    steps_assert(r);
    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc != 0)
        return rc;
    switch (r->phase) {
    case XAC_CKPT_COPY:
        rc = copy_some(r, pages_max, vslots_max);
        if (r->next_vslot > r->n_vslots)
            r->phase = XAC_CKPT_SYNC;
        break;
    case XAC_CKPT_SYNC:
        xac_kill_point("o");
        rc = sync_files(r);
        if (rc == 0) {
            xac_ckpt_files_synced(&r->files, env);
            atomic_store_explicit(&env->ctl->ckpt_bound, r->bound, memory_order_relaxed);
        }
        xac_kill_point("p");
        r->phase = XAC_CKPT_END;
        break;
    case XAC_CKPT_END:
        rc = end(r);
        xac_kill_point("r");
        r->phase = r->n_pages > 0 ? XAC_CKPT_UNLINK : XAC_CKPT_SETTLE;
        break;
    case XAC_CKPT_UNLINK:
        unlink_some(r);
        if (r->n_unlinked == r->n_pages)
            r->phase = XAC_CKPT_SETTLE;
        break;
    case XAC_CKPT_SETTLE:
        if (settle(r, vslots_max == UINT64_MAX))
            r->phase = XAC_CKPT_DONE;
        break;
    case XAC_CKPT_DONE:
        break;
    }
    if (rc == 0)
        steps_assert(r);
    return rc;
}

void
xac_ckpt_free(struct xac_ckpt *r)
{
    xac_ckpt_run_fini(&r->run);
    /* The next one is to find out if a file has lost its name. */
    xac_file_fds_close(r->env);
    free(r->page);
    xac_ckpt_files_free(&r->files);
    xac_pagesums_free(&r->sums);
    r->page = NULL;
}
