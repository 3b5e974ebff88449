/* SPDX-License-Identifier: MIT */
/*
 * standby_redo.c -- see standby_redo.h.
 */
#include <config.h>

#include "recovery/standby_redo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/archive.h"
#include "checkpoint/checkpoint.h"
#include "log/block.h"
#include "log/log_keep.h"
#include "log/master.h"

/* ---- What the files hold -------------------------------------------------------------- */

int
xac_standby_note(struct xac_standby *s)
{
    struct xac_backup_note *note = &s->r.note;
    int rc;

    xac_assert(s->applied <= s->log.durable);
    if (note->end_lsn >= s->log.durable && !s->note_is_old)
        return 0;
    if (note->end_lsn < s->log.durable)
        note->end_lsn = s->log.durable;
    if (note->time_ns < s->r.rep.last_time_ns)
        note->time_ns = s->r.rep.last_time_ns;
    rc = xac_backup_note_write(s->dirfd, note);
    s->note_is_old = rc != 0;
    return rc;
}

/*
 * write_files -- the files hold everything that has been redone, synced; beside readers as far as these allow it.
 *
 * in/out  redop  redo may begin there afterwards; it becomes less if a reader holds back what it needs
 */
static int
write_files(struct xac_standby *s, uint64_t *redop)
{
    struct xac_ckpt_shipped shipped = {.begin_lsn = s->applied, .redo_lsn = *redop};
    int rc = xac_standby_note(s);

    xac_assert(!s->r.applying);
    xac_assert(*redop <= s->applied);
    s->r.sums.lsn = s->applied;
    if (rc != 0)
        return rc;
    if (s->env == NULL)
        return xac_redo_finish(&s->r.redo);
    rc = xac_checkpoint_redone(s->env, &shipped);
    *redop = shipped.redo_lsn; /* (5) */
    return rc;
}

int
xac_standby_write(struct xac_standby *s)
{
    uint64_t redo = s->applied;

    xac_assert(redo <= s->log.durable);
    return write_files(s, &redo);
}

/* release -- log that a recovery of the standby does not need. */
static void
release(const struct xac_standby *s)
{
    const struct xac_master_slot *m = &s->r.master;
    char **name = NULL;
    size_t n = 0;

    xac_assert(m->redo_lsn >= m->start_lsn);
    if (xac_log_is_kept(s->r.logfd))
        return;
    /* What cannot be removed now is garbage until the next time. */
    if (xac_archive_list(s->dir, m, m->redo_lsn, &name, &n) != 0)
        xac_err_clear();
    for (size_t i = 0; i < n; i++)
        (void)xac_sys.unlinkat(AT_FDCWD, name[i], 0);
    free(name);
}

int
xac_standby_move(struct xac_standby *s, struct xac_master_slot *m)
{
    bool is_lost;
    int rc;

    xac_assert(m->redo_lsn >= s->r.master.redo_lsn);
    rc = xac_master_write(s->dirfd, m, &is_lost);
    if (rc != 0)
        return rc;
    s->r.master = *m;
    release(s);
    return 0;
}

/* note_point -- the source has completed a checkpoint.  If there are many, one of them gives way. */
static void
note_point(struct xac_standby *s, const struct xac_block *blk,
           const struct xac_xcheckpt_end *end)
{
    xac_assert(s->n_points <= POINTS_MAX);
    if (s->n_points == POINTS_MAX)
        s->n_points--;
    s->point[s->n_points++] = (struct point){.redo_lsn = end->redo_lsn,
                                             .begin_lsn = end->begin_lsn,
                                             .lsn = blk->lsn,
                                             .end_lsn = blk->lsn + blk->length};
}

/* move_to -- redo may begin at that position: it begins at the newest point that needs no log from before; ret 0,
   also if there is none. */
static int
move_to(struct xac_standby *s, uint64_t redo)
{
    struct xac_master_slot m = s->r.master;
    const struct point *p = NULL;
    size_t n = s->n_points;
    int rc;

    xac_assert(n <= POINTS_MAX);
    while (n > 0 && p == NULL)
        p = s->point[--n].redo_lsn <= redo ? &s->point[n] : NULL; /* (5) */
    if (p == NULL)
        return 0;
    m.redo_lsn = p->redo_lsn;
    m.begin_lsn = p->begin_lsn;
    m.end_lsn = p->lsn;
    m.end_lsn_after = p->end_lsn;
    m.flags = (m.flags & ~XAC_MASTER_CLEAN) | XAC_MASTER_LOGGED;
    rc = xac_standby_move(s, &m);
    if (rc == 0) {
        s->n_points -= n + 1;
        memmove(s->point, p + 1, s->n_points * sizeof s->point[0]);
    }
    return rc;
}

/* restart_point -- the source has completed a checkpoint, and all before its end is redone. */
static int
restart_point(struct xac_standby *s, const struct xac_block *blk,
              const struct xac_xcheckpt_end *end)
{
    uint64_t redo = end->redo_lsn;
    int rc;

    xac_assert(s->applied == blk->lsn + blk->length);
    /* The copy began behind that checkpoint. */
    if (redo < s->r.master.redo_lsn || end->begin_lsn < s->r.master.redo_lsn)
        return 0;
    note_point(s, blk, end);
    rc = write_files(s, &redo);
    if (rc == 0)
        rc = move_to(s, redo);
    if (rc == 0)
        s->r.n_serials = 0; /* named in log that has gone, at most */
    return rc;
}

/* ---- Redo ----------------------------------------------------------------------------- */

/* pages_of -- how many pages the redo of a block may need. */
static uint64_t
pages_of(const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    uint64_t n = 0;

    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XDATAFILE)
            n += 2 * ((const struct xac_xdatafile *)(const void *)rec)->n_records;
        else
            n += 2; /* a copy has a source */
    }
    xac_assert(n > 0);
    return n;
}

/* tell_files -- the replayer knows the files that are needed. */
static int
tell_files(struct xac_standby *s)
{
    struct xac_redo *redo = &s->r.redo;
    int rc = 0;

    xac_assert(s->env != NULL);
    xac_assert(redo->replayer == &s->replayer);
    for (size_t i = 0; rc == 0 && i < redo->n_files; i++) {
        struct xac_redo_file *f = &redo->file[i];

        if (!xac_redo_is_wanted(f))
            continue;
        rc = xac_redo_file_open(redo, f, O_RDWR);
        if (rc == 0)
            rc = xac_replayer_file(&s->replayer, f->path, f->fd, f->length, &f->local);
    }
    return rc;
}

/* prepare -- files that have come, or are needed from now on. */
static int
prepare(struct xac_standby *s)
{
    struct xac_redo *redo = &s->r.redo;
    int rc;

    xac_assert(s->prepared <= redo->changes);
    if (s->prepared == redo->changes)
        return 0;
    rc = xac_redo_check_files(redo, false, true);
    if (rc == 0)
        rc = xac_redo_prepare(redo);
    if (rc == 0 && s->env != NULL)
        rc = tell_files(s);
    if (rc == 0)
        s->prepared = redo->changes;
    return rc;
}

/* publish -- redo a transaction beside readers, once. */
static int
publish(struct xac_standby *s, const struct xac_block *blk)
{
    int rc = xac_replayer_begin(&s->replayer), over;

    xac_assert(s->env != NULL);
    if (rc != 0)
        return rc;
    rc = xac_recovery_apply(&s->r, blk);
    over = xac_replayer_end(&s->replayer, rc == 0 ? blk->lsn : 0, blk->lsn + blk->length,
                            xac_block_commit(blk)->time_ns);
    return rc != 0 ? rc : over;
}

/* redo_beside -- the same; if there is no room for versions, the files take what they may. */
static int
redo_beside(struct xac_standby *s, const struct xac_block *blk)
{
    int rc = publish(s, blk);

    if (rc != ENOSPC && rc != ENOMEM)
        return rc;
    rc = xac_standby_write(s);
    return rc == 0 ? publish(s, blk) : rc;
}

/* redo_alone -- into pages in memory, which nobody else sees. */
static int
redo_alone(struct xac_standby *s, const struct xac_block *blk)
{
    const struct xac_redo_pages *pages = &s->r.redo.pages;
    int rc = 0;

    xac_assert(s->env == NULL);
    s->r.sums.lsn = s->applied;
    /* Pages are written while it is redone, if there is no room for them all. */
    if (pages->max - pages->n < pages_of(blk))
        rc = xac_standby_note(s);
    return rc == 0 ? xac_recovery_apply(&s->r, blk) : rc;
}

/* passed -- what a block that is redone says of checkpoints. */
static int
passed(struct xac_standby *s, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    xac_assert(s->applied == blk->lsn + blk->length);
    if (s->env != NULL)
        xac_replayer_passed(&s->replayer, s->applied);
    while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XCHECKPT_BEGIN && s->env != NULL)
            xac_replayer_mark(&s->replayer, blk->lsn);
        if (rec->type == XAC_XCHECKPT_END)
            rc =
                restart_point(s, blk, (const struct xac_xcheckpt_end *)(const void *)rec);
    }
    return rc;
}

int
xac_standby_redo(struct xac_standby *s, const struct xac_block *blk)
{
    int rc = 0;

    xac_assert(blk->lsn == s->applied);
    xac_assert(blk->lsn + blk->length <= s->log.durable);
    if (xac_block_commit(blk) != NULL) {
        rc = prepare(s);
        if (rc == 0)
            rc = s->env != NULL ? redo_beside(s, blk) : redo_alone(s, blk);
    }
    if (rc != 0)
        return rc;
    s->applied = blk->lsn + blk->length;
    return passed(s, blk);
}

/* check_forgotten -- a file that the log forgets later, and has to be redone before, would have its pages
   nowhere. */
static int
check_forgotten(const struct xac_standby *s)
{
    const struct xac_redo *redo = &s->r.redo;

    for (size_t i = 0; i < redo->n_files; i++) {
        const struct xac_redo_file *f = &redo->file[i];

        if (f->needed && f->is_forgotten && s->applied < s->r.end)
            return xac_err(XAC_ELIVE,
                           "%s: the log forgets a file, and readers have not seen all "
                           "before that; let them end, then receive again",
                           f->path);
    }
    return 0;
}

int
xac_standby_go_on(struct xac_standby *s)
{
    uint64_t applied = xac_replayer_applied(s->env);
    uint64_t start_lsn = s->r.master.start_lsn;
    const struct xac_block *blk;
    struct xac_place place;
    int rc;

    s->applied = applied > start_lsn ? applied : start_lsn;
    s->r.redo.replayer = &s->replayer;
    s->r.redo.changes++;                       /* this process does not know them yet */
    xac_replayer_turn(&s->replayer, &s->line); /* unless it has been noted */
    xac_replayer_durable(&s->replayer, s->log.durable);
    if (applied < start_lsn) /* a generation began: all before it is redone */
        xac_replayer_passed(&s->replayer, start_lsn);
    rc = check_forgotten(s);
    while (rc == 0 && s->applied < s->log.durable) {
        rc = xac_scan_block(&s->r.scan, s->applied, &blk, &place);
        if (rc == 0 && blk == NULL)
            rc = xac_err(EIO, "%s: offset %" PRIu64 ": changed while it was read",
                         place.file, place.offset);
        if (rc == 0)
            rc = xac_standby_redo(s, blk);
    }
    return rc;
}

int
xac_standby_end_generation(struct xac_standby *s)
{
    uint64_t redo = s->applied;
    int rc = write_files(s, &redo);

    if (rc == 0 && redo < s->applied) /* (6) */
        return xac_err(EAGAIN,
                       "%s: the source has begun another generation of its log; queries "
                       "that began before hold it up",
                       s->dir);
    s->note_is_old =
        true; /* names of files that come later have numbers of the next one */
    return rc == 0 ? xac_standby_note(s) : rc;
}
