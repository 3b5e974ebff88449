/* SPDX-License-Identifier: MIT */
/*
 * recover.c -- see recover.h: the order of the steps.
 *
 *   (1) sync master, log and data files, so that nothing is redone that a power cut could
 *       still take from the log; then read past the page cache
 *   (2) read and check the log to its end; decide whether that is a torn tail or damage
 *   (3) check the files
 *   (4) redo, sync the files
 *   (5) of a promotion: zeros behind the end of the log; its line in xac.history, then the new master record:
 *       new generation, empty log
 *   (6) remove data files
 * Steps 1 to 3 write nothing.
 */
#include <config.h>

#include "recovery/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/filesystem.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/block.h"
#include "log/group_note.h"
#include "log/lineage.h"
#include "log/log.h"
#include "log/logdir.h"
#include "log/manifest.h"
#include "log/master.h"
#include "log/recover_data.h"
#include "log/recover_next.h"
#include "log/recover_scan.h"
#include "log/replica.h"
#include "log/rewind_note.h"
#include "log/standby_note.h"
#include "recovery/recover_pass.h"

static void
progress(void *arg, uint64_t bytes)
{
    struct xac_recovery *r = (struct xac_recovery *)arg;

    r->bytes_done += bytes;
    if (r->bytes_done > r->bytes_total)
        r->bytes_total = r->bytes_done;
    xac_assert(r->bytes_done <= r->bytes_total);
    if (r->opt->progress != NULL)
        r->opt->progress(r->opt->progress_arg, r->bytes_done, r->bytes_total);
}

/* ---- Torn tail or damage ---------------------------------------------------------- */

/* look_on -- does a later generation of the log follow right behind this one? */
static int
look_on(struct xac_recovery *r, struct xac_place *place)
{
    xac_assert(r->next.newest != 0);
    xac_assert(!r->goes_on);
    if (!r->opt->forward) {
        (void)snprintf(place->why, sizeof place->why,
                       "the log has blocks of generation %" PRIu32
                       ", the newest valid record is of %" PRIu32,
                       r->next.newest, r->master.generation);
        /* Redoing an older log onto newer files would destroy what they have. */
        return xac_recovery_damage(r, place, false);
    }
    if (r->next.follows) {
        r->goes_on = true;
        r->next_generation = r->next.generation;
        return 0;
    }
    (void)snprintf(place->why, sizeof place->why,
                   "the log ends at LSN %" PRIu64 " and goes on at LSN %" PRIu64
                   ", generation %" PRIu32 ": log files are missing",
                   r->end, r->next.lsn, r->next.generation);
    return xac_recovery_damage(r, place, false);
}

/* note_synced -- up to where the log is known to have been synced.  What the blocks of a standby say of it is true
   of its source. */
static void
note_synced(struct xac_recovery *r)
{
    uint64_t said = r->mark.counts ? r->mark.lsn : r->found.durable;

    xac_assert(!r->applying);
    if (r->master.end_lsn_after > r->rep.synced_lsn)
        r->rep.synced_lsn = r->master.end_lsn_after;
    if (said > r->rep.synced_lsn)
        r->rep.synced_lsn = said;
    if (r->note.end_lsn > r->rep.synced_lsn && !r->opt->is_rewind)
        r->rep.synced_lsn = r->note.end_lsn;
}

/* judge -- is the end of the log one that a crash can have left? */
static int
judge(struct xac_recovery *r)
{
    struct xac_place master = {.file = XAC_MASTER_NAME};
    uint32_t newest;
    int rc = xac_scan_search(&r->scan, r->end, &r->found);

    xac_assert(r->end >= r->master.redo_lsn); /* (3) of recover_pass.h */
    xac_assert(!r->applying);
    if (rc == 0 && (r->found.newer != 0 || r->found.any_bad))
        rc = xac_next_find(&r->scan, r->end, &r->next);
    if (rc != 0)
        return rc;
    if (r->found.newer > r->next.newest)
        r->next.newest = r->found.newer; /* in a segment with a wrong header */
    r->rep.end_lsn = r->end;
    r->rep.discarded_bytes = r->found.end_lsn - r->end;
    r->rep.discarded_blocks = r->found.blocks;
    note_synced(r);
    (void)snprintf(r->rep.end_reason, sizeof r->rep.end_reason, "%s", r->end_place.why);
    newest =
        r->next.newest > r->master.generation ? r->next.newest : r->master.generation;
    r->next_generation = newest + 1;
    if (!xac_log_generation_ok(r->next_generation))
        return xac_err(EFBIG, "the log has no generations left behind %" PRIu32, newest);
    if (r->stopped) {
        r->rep.until_reached = true;
        return xac_backup_note_check(&r->note, r->end, UINT64_MAX);
    }
    if (r->next.newest != 0 && !r->opt->forward)
        return look_on(r, &master);
    if (r->content_wrong || r->end < r->rep.synced_lsn || xac_scan_is_lost(&r->scan)) {
        /* Others have appended since the end was read: it was the end. */
        if (r->opt->frozen != NULL && !r->content_wrong
            && xac_next_has_come(&r->scan, r->end))
            return 0;
        return xac_recovery_damage(r, &r->end_place, true);
    }
    return r->next.newest != 0 ? look_on(r, &master) : 0;
}

/* read_log -- step 2. */
static int
read_log(struct xac_recovery *r)
{
    int rc = xac_recovery_load_checkpoint(r);

    if (rc == 0)
        rc = xac_recovery_pass(r, UINT64_MAX);
    if (rc == 0)
        rc = judge(r);
    /* What was noted of the block that is cut off must be forgotten. */
    if (rc == 0 && r->content_wrong) {
        uint64_t end = r->end;

        xac_recover_clear_counters(&r->rep);
        r->n_serials = 0;
        rc = xac_recovery_pass(r, end);
    }
    xac_assert(!r->goes_on || r->next_generation > r->master.generation);
    r->rep.files = xac_redo_files_needed(&r->redo);
    r->rep.was_clean = !r->goes_on && (r->master.flags & XAC_MASTER_CLEAN) != 0
                       && r->end == r->master.end_lsn_after && r->rep.discarded_bytes == 0
                       && !r->rep.damaged;
    return rc;
}

/* ---- Writing ---------------------------------------------------------------------- */

/* redo_all -- step 4. */
static int
redo_all(struct xac_recovery *r)
{
    int rc;

    xac_assert(r->writes || r->opt->frozen != NULL);
    xac_assert(!r->opt->dry_run);
    /* The files are about to hold what stands before the end: an earlier bound is out of
       question from now on. */
    if (r->writes && r->rep.was_backup && r->end > r->note.end_lsn) {
        r->note.end_lsn = r->end;
        r->note.time_ns = r->rep.last_time_ns;
        rc = xac_backup_note_write(r->dirfd, &r->note);
        if (rc != 0)
            return rc;
    }
    /* The files may hold what has been cut off. */
    if (r->writes && (r->rep.damaged || r->stopped)) {
        rc = xac_pagesums_drop_all(r->dirfd);
        if (rc != 0)
            return rc;
    }
    if (r->rep.files == 0)
        return 0;
    r->sums = (struct xac_pagesums_store){.dirfd = r->dirfd,
                                          .identity = r->master.identity,
                                          .page_size = r->master.page_size,
                                          .lsn = r->end,
                                          .file = xac_redo_file_is,
                                          .arg = &r->redo};
    r->redo.sums_store = r->writes ? &r->sums : NULL;
    rc = xac_redo_prepare(&r->redo);
    if (rc != 0)
        return rc;
    if (!xac_redo_is_kept(&r->redo)) {
        r->applying = true;
        r->bytes_total = r->bytes_done + (r->end - r->master.redo_lsn);
        rc = xac_recovery_pass(r, r->end);
    }
    return rc == 0 ? xac_redo_finish(&r->redo) : rc;
}

/*
 * next_start -- where the next generation of the log begins.
 *
 * Behind the old one, in a sector of its own.  Behind all segments there are if these
 * cannot be used: made for another size, or damaged.
 */
static int
next_start(const struct xac_recovery *r, uint64_t segment_bytes, uint64_t *startp)
{
    const struct xac_scan *s = &r->scan;
    uint64_t start = xac_next_start(r->end);
    bool is_behind = false;

    xac_assert(start >= r->end);
    if (r->goes_on)
        start = r->next.lsn;
    else if (r->opt->begins != NULL)
        is_behind = false; /* check_begins() */
    else if (r->stopped)
        /* What has been cut off may have been archived; its numbers are not used again. */
        is_behind = s->max_number * r->master.segment_bytes > start;
    else if (segment_bytes != r->master.segment_bytes || r->found.any_bad
             || s->strays.is_in_the_way)
        is_behind = xac_log_segment_of(start, segment_bytes) <= s->max_number;
    if (is_behind && s->max_number >= xac_log_last_segment(segment_bytes))
        return xac_err(EFBIG, "the log has no positions left behind segment %" PRIu64,
                       s->max_number);
    *startp = is_behind ? s->max_number * segment_bytes : start;
    return 0;
}

/* note_lineage -- the line of the generation that begins, before its master record. */
static int
note_lineage(const struct xac_recovery *r, const struct xac_master_slot *m)
{
    struct xac_lineage_line line = {.generation = m->generation,
                                    .previous = r->master.generation,
                                    .start_lsn = m->start_lsn,
                                    .end_lsn = r->end,
                                    .segment_bytes = m->segment_bytes};

    xac_assert(r->writes);
    xac_assert(m->generation == r->next_generation);
    if (r->opt->begins != NULL)
        return xac_lineage_copy(r->dirfd, r->opt->begins);
    /* A copy goes on beside the original. */
    return xac_lineage_add(r->dirfd, &line, r->rep.was_backup || r->rep.was_copy);
}

/* write_master -- step 5. */
static int
write_master(struct xac_recovery *r, struct xac_master_slot *out)
{
    struct xac_master_slot m = r->master;
    bool is_lost; /* recovery begins anew in any case */
    int rc;

    xac_assert(r->writes);
    if (r->goes_on)
        m.segment_bytes = r->next.segment_bytes;
    else if (r->opt->new_segment_bytes != 0)
        m.segment_bytes = r->opt->new_segment_bytes;
    m.generation = r->next_generation;
    m.flags = r->goes_on ? XAC_MASTER_LOGGED : XAC_MASTER_CLEAN;
    rc = next_start(r, m.segment_bytes, &m.start_lsn);
    if (rc != 0)
        return rc;
    xac_assert(m.start_lsn >= r->end);
    xac_assert(m.generation > r->master.generation);
    m.redo_lsn = m.end_lsn_after = m.start_lsn;
    m.begin_lsn = m.end_lsn = 0;
    xac_master_put_dir(&m, &r->dir);
    if (m.segment_bytes == r->master.segment_bytes
        && xac_scan_limit(&r->scan) > m.start_lsn)
        m.flags |= XAC_MASTER_LOGGED;
    *out = m;
    rc = note_lineage(r, &m);
    xac_kill_point("recovered history");
    return rc == 0 ? xac_master_write(r->dirfd, out, &is_lost) : rc;
}

/* clear_tail -- of a standby that becomes an environment: its blocks behind the end would say in the log of that one that
   more had been synced. */
static int
clear_tail(const struct xac_recovery *r)
{
    xac_assert(r->writes);
    if (!r->opt->promotes || r->goes_on || r->found.end_lsn <= r->end)
        return 0;
    return xac_replica_clear(r->logfd, r->master.segment_bytes, r->end, r->found.end_lsn);
}

/* is_named -- true if the log that was read names the data file. */
static bool
is_named(const struct xac_recovery *r, uint64_t serial)
{
    for (size_t i = 0; i < r->n_serials; i++) {
        if (serial == r->serial[i])
            return true;
    }
    return false;
}

/*
 * remove_datafile -- of a transaction that never committed.  Failing to remove it is no
 * harm: the next recovery will try again.  Those that the log names, behind the last
 * checkpoint or before it, go with its segments (xArchive), for a backup may be rolled
 * forward with them; so where not all of the log has been read, none is removed.
 */
static int
remove_datafile(void *arg, const char *name)
{
    struct xac_recovery *r = (struct xac_recovery *)arg;
    uint32_t generation;
    uint64_t serial;

    xac_assert(r->writes);
    if (!xac_log_datafile_named(name, &generation, &serial)
        || generation != r->master.generation || r->master.redo_lsn != r->master.start_lsn
        || is_named(r, serial))
        return 0;
    if (xac_sys.unlinkat(r->logfd, name, 0) == 0)
        r->rep.orphans_removed++;
    return 0;
}

/* ---- The whole -------------------------------------------------------------------- */

/*
 * check_copy -- is the directory a copy?
 *
 * One that was made of hard links has the files of the original: what is written to them is
 * written there, too.
 */
static int
check_copy(struct xac_recovery *r, nlink_t links)
{
    r->rep.was_copy = xac_master_is_copied(&r->master, &r->dir);
    if (r->rep.was_copy && links > 1)
        return xac_err(
            XAC_ECOPY,
            "%s: a hard link to that of the original; copy the files themselves",
            XAC_MASTER_NAME);
    return 0;
}

/* check_finished -- a restore that was killed may have brought the files to another moment. */
static int
check_finished(const struct xac_recovery *r)
{
    struct xac_identity is;

    if (r->opt->is_restore || xac_identity_at(r->dirfd, XAC_UNFINISHED_NAME, &is) != 0)
        return 0;
    return xac_err(XAC_ENOTENV, "a restore that was not finished (%s): run it again",
                   XAC_UNFINISHED_NAME);
}

/* read_master -- step 1 for the master record, then read it. */
static int
read_master(struct xac_recovery *r)
{
    struct stat st;
    nlink_t links = 0;
    int rc = 0;
    int fd = xac_sys.openat(r->dirfd, XAC_MASTER_NAME, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0 && errno == ENOENT)
        return xac_master_missing(r->dirfd, false);
    if (fd < 0)
        return xac_err(errno, "%s: open", XAC_MASTER_NAME);
    rc = check_finished(r);
    if (rc == 0 && r->writes && xac_sys.fdatasync(fd) != 0)
        rc = xac_err(errno, "%s: sync", XAC_MASTER_NAME);
    if (rc == 0 && xac_sys.fstat(fd, &st) == 0)
        links = st.st_nlink;
    (void)xac_sys.close(fd);
    if (rc == 0 && (rc = xac_identity_of(r->dirfd, &r->dir)) != 0)
        (void)xac_err(rc, "environment directory: stat");
    if (rc == 0)
        rc = xac_master_read(r->dirfd, &r->master);
    xac_assert(rc != 0 || r->master.redo_lsn >= r->master.start_lsn);
    if (r->opt->frozen != NULL)
        r->master = r->opt->frozen->master;
    if (rc == 0)
        rc = check_copy(r, links);
    r->rep.generation = r->master.generation;
    r->rep.redo_lsn = r->rep.end_lsn = r->rep.synced_lsn = r->master.redo_lsn;
    return rc;
}

/*
 * read_manifest -- which files a backup has, and up to where.
 *
 * The note tells that only until the backup is being rolled forward.  In a later generation of the log the files
 * may be others, of a copy of the environment, and nothing of it is in the backup.
 */
static int
read_manifest(struct xac_recovery *r)
{
    int rc = xac_manifest_load(&r->manifest, r->dirfd, ".");

    /* A rewind takes the files as they are called at the redo position: others that come are told apart. */
    r->redo.backup_lsn = r->opt->is_rewind ? r->master.redo_lsn : r->note.end_lsn;
    if (rc == ENOENT)
        return 0;
    if (rc == 0 && r->manifest.head.generation == r->master.generation) {
        r->redo.manifest = &r->manifest;
        r->redo.backup_lsn = r->manifest.head.end_lsn;
    } else {
        r->redo.backup_lsn = 0;
    }
    return rc;
}

/* read_note -- is it a backup? */
static int
read_note(struct xac_recovery *r)
{
    uint64_t lsn = r->opt->until_lsn;
    uint64_t time_ns = r->opt->until_ns;
    int rc = xac_backup_note_read(r->dirfd, &r->note);

    r->rep.was_backup = rc == 0;
    if (rc == 0) {
        r->redo.backup = &r->note;
        rc = read_manifest(r);
        if (rc == 0)
            rc = xac_received_read(r->dirfd, &r->master, &r->mark);
        return rc != 0 ? rc
                       : xac_backup_note_check(&r->note, lsn != 0 ? lsn : UINT64_MAX,
                                               time_ns != 0 ? time_ns : UINT64_MAX);
    }
    if (rc == ENOENT && (lsn != 0 || time_ns != 0))
        return xac_err(EINVAL, "no backup (no %s): its files may hold later changes",
                       XAC_BACKUP_NAME);
    return rc == ENOENT ? 0 : rc;
}

/* open_all -- step 1 for the log, and the parts that work on it. */
static int
open_all(struct xac_recovery *r)
{
    uint64_t limit;
    int rc =
        xac_logdir_recover(r->dirfd, &r->master, r->opt->log_dir,
                           r->rep.was_copy && !r->opt->outside, r->writes, &r->logfd);

    if (rc == 0 && r->writes)
        rc = xac_filesystem_check(r->logfd, "log directory");
    if (rc == 0)
        rc = xac_scan_open(&r->scan, r->logfd, &r->master);
    r->rep.strays = r->scan.strays.n;
    memcpy(r->rep.stray_file, r->scan.strays.first, sizeof r->rep.stray_file);
    if (rc == 0)
        rc = xac_redo_init(&r->redo, r->dirfd, r->master.page_size, r->opt->memory_bytes);
    r->redo.claimant = (struct xac_claimant){.dir = r->dir, .dirfd = r->dirfd};
    r->redo.is_copy = r->rep.was_copy;
    r->redo.takes_outside = r->opt->outside;
    if (rc == 0)
        rc = read_note(r);
    r->redo.frozen = r->opt->frozen;
    if (rc == 0 && r->writes)
        rc = xac_scan_sync(&r->scan);
    limit = xac_scan_limit(&r->scan);
    if (limit > r->master.redo_lsn)
        r->bytes_total = limit - r->master.redo_lsn;
    r->scan.progress = progress;
    r->scan.progress_arg = r;
    return rc;
}

/* examine -- steps 1 to 3. */
static int
examine(struct xac_recovery *r)
{
    int rc = read_master(r);

    xac_assert(!r->applying);

    if (rc == 0)
        rc = open_all(r);
    if (rc == 0)
        rc = read_log(r);
    if (rc == 0)
        rc = xac_redo_check_files(&r->redo, r->opt->accept_replaced, !r->opt->dry_run);
    return rc;
}

/* check_begins -- does the log end where the generation that is to begin says that it does? */
static int
check_begins(struct xac_recovery *r)
{
    const struct xac_lineage_line *l = r->opt->begins;

    xac_assert(l->start_lsn == xac_next_start(l->end_lsn));
    if (r->master.generation >= l->generation)
        return xac_err(EEXIST, "generation %" PRIu32 " of the log has begun already",
                       l->generation);
    if (r->master.generation != l->previous || r->end != l->end_lsn)
        return xac_err(XAC_EFOREIGN,
                       "the log ends at LSN %" PRIu64 ", generation %" PRIu32
                       ", and not at LSN %" PRIu64 ", generation %" PRIu32,
                       r->end, r->master.generation, l->end_lsn, l->previous);
    if (r->master.segment_bytes != l->segment_bytes || r->next_generation > l->generation
        || r->goes_on || r->rep.damaged || r->scan.strays.is_in_the_way)
        return xac_err(XAC_EDAMAGED,
                       "generation %" PRIu32 " cannot begin at LSN %" PRIu64
                       ": what lies there is in the way",
                       l->generation, l->start_lsn);
    r->next_generation = l->generation;
    return 0;
}

/* run -- all steps; the parts have been made empty. */
static int
run(struct xac_recovery *r, struct xac_master_slot *master)
{
    int rc = examine(r);

    xac_assert(rc != 0 || r->end >= r->master.redo_lsn);
    if (rc == 0 && r->opt->begins != NULL)
        rc = check_begins(r);
    if (rc == 0 && r->opt->dry_run && r->opt->pages != NULL)
        rc = xac_pagesums_verify(r->dirfd, &r->master, r->end, xac_redo_is_redone,
                                 &r->redo, r->opt->pages);
    if (rc == 0 && r->opt->dry_run && r->opt->file != NULL)
        xac_redo_files_each(&r->redo, r->opt->file, r->opt->file_arg);
    if (rc != 0 || r->opt->dry_run)
        return rc;
    rc = redo_all(r);
    if (!r->writes)
        return rc;
    xac_kill_point("recovered files");
    if (rc == 0)
        rc = clear_tail(r);
    if (rc == 0)
        rc = write_master(r, master);
    xac_kill_point("recovered master");
    if (rc == 0 && !r->goes_on)
        rc = xac_backup_note_remove(r->dirfd);
    xac_kill_point("recovered backup");
    if (rc == 0 && !r->goes_on && r->opt->promotes)
        rc = xac_standby_note_remove(r->dirfd);
    xac_kill_point("recovered follow");
    if (rc == 0)
        (void)xac_scan_names(r->logfd, XAC_DATA_PREFIX, remove_datafile, r);
    return rc;
}

/* begin -- nothing has been done. */
static int
begin(struct xac_recovery *r, int dirfd, const struct xac_recover_options *options)
{
    *r = (struct xac_recovery){.dirfd = dirfd,
                               .logfd = -1,
                               .opt = options,
                               .writes = !options->dry_run && options->frozen == NULL};
    r->scan.file = (struct xac_rawfile)XAC_RAWFILE_CLOSED;
    xac_assert(dirfd >= 0);
    return r->writes ? xac_filesystem_check(dirfd, "environment directory") : 0;
}

void
xac_recovery_free(struct xac_recovery *r)
{
    free(r->serial);
    r->serial = NULL;
    xac_backup_note_free(&r->note);
    xac_manifest_free(&r->manifest);
    xac_redo_free(&r->redo);
    xac_scan_close(&r->scan);
    xac_close_fd(&r->logfd);
    xac_assert(r->redo.n_files == 0);
}

/* run_once -- recover one generation of the log; *againp if another one follows. */
static int
run_once(int dirfd, const struct xac_recover_options *options,
         struct xac_recover_report *report, struct xac_master_slot *made, bool *againp)
{
    struct xac_recovery r;
    int rc = begin(&r, dirfd, options);

    if (rc == 0)
        rc = xac_rewind_note_refuse(dirfd);
    if (rc == 0 && r.writes && options->begins == NULL)
        rc = xac_group_note_refuse(dirfd);
    if (rc == 0 && r.writes && !options->promotes)
        rc = xac_standby_note_refuse(dirfd);
    if (rc == 0)
        rc = run(&r, made);
    *report = r.rep;
    *againp = rc == 0 && r.goes_on;
    xac_recovery_free(&r);
    return rc;
}

int
xac_recovery_start(struct xac_recovery *r, int dirfd,
                   const struct xac_recover_options *options)
{
    int rc = begin(r, dirfd, options);

    xac_assert(r->writes);
    if (rc == 0)
        rc = examine(r);
    return rc == 0 ? redo_all(r) : rc;
}

int
xac_recovery_look(struct xac_recovery *r, int dirfd,
                  const struct xac_recover_options *options)
{
    int rc = begin(r, dirfd, options);

    if (rc == 0)
        rc = examine(r);
    xac_redo_pages_clear(&r->redo.pages);
    r->redo.keeping = false;
    xac_assert(rc != 0 || r->end >= r->master.redo_lsn);
    return rc;
}

int
xac_recover_dir(int dirfd, const struct xac_recover_options *options,
                struct xac_recover_report *report, struct xac_master_slot *master)
{
    static const struct xac_recover_options none;
    const struct xac_recover_options *o = options != NULL ? options : &none;
    struct xac_recover_report all = {.was_clean = false};
    struct xac_master_slot made;
    bool again;
    int rc;

    do {
        struct xac_recover_report one;
        rc = run_once(dirfd, o, &one, &made, &again);
        xac_recover_add_up(&all, &one);
    } while (again && !o->dry_run);
    if (rc == 0 && master != NULL && !o->dry_run && o->frozen == NULL)
        *master = made;
    if (report != NULL)
        *report = all;
    return rc;
}
