/* SPDX-License-Identifier: MIT */
/*
 * recover_pass.c -- see recover_pass.h.
 */
#include <config.h>

#include "recovery/recover_pass.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "log/block.h"
#include "log/recover_data.h"

/* ---- Records ---------------------------------------------------------------------- */

/* content_bad -- a valid block whose contents cannot be: note why, where the block is. */
static int
content_bad(struct xac_recovery *r, const char *why)
{
    xac_assert(r->bad != NULL);
    xac_assert(why[0] != '\0');
    (void)snprintf(r->bad->why, sizeof r->bad->why, "%s", why);
    r->is_bad = true;
    return 0;
}

/* check_record -- first pass. */
static int
check_record(struct xac_recovery *r, const struct xac_xdata *rec)
{
    enum xac_redo_verdict verdict;
    int rc = xac_redo_check(&r->redo, rec, &verdict);

    xac_assert(!r->applying);
    xac_assert(!r->is_bad);
    if (rc != 0)
        return rc;
    switch (verdict) {
    case XAC_REDO_APPLY:
        r->touched = true;
        r->rep.pages_redone++;
        return 0;
    case XAC_REDO_NO_FULL:
        return content_bad(r, "no full image of a page before its first difference");
    case XAC_REDO_NO_FILE:
        return content_bad(r, "page of a file that the log does not name");
    case XAC_REDO_MALFORMED:
        return content_bad(r, "ranges leave the page or the record");
    }
    return 0;
}

static int
visit_record(void *arg, const struct xac_xdata *rec)
{
    struct xac_recovery *r = (struct xac_recovery *)arg;

    if (r->applying)
        return xac_redo_apply(&r->redo, rec);
    return r->is_bad ? 0 : check_record(r, rec);
}

static int
note_serial(struct xac_recovery *r, uint64_t serial)
{
    uint64_t *grown = (uint64_t *)realloc(r->serial, (r->n_serials + 1) * sizeof *grown);

    xac_assert(!r->applying);
    if (grown == NULL)
        return xac_err(ENOMEM, "list of data files");
    r->serial = grown;
    r->serial[r->n_serials++] = serial;
    return 0;
}

/* visit_datafile -- the records of a large transaction. */
static int
visit_datafile(struct xac_recovery *r, const struct xac_xdatafile *rec)
{
    uint32_t generation = r->master.generation;
    struct xac_place place = {.offset = 0};
    bool ok = true;
    int rc = 0;

    if (!r->applying) {
        r->rep.datafiles++;
        rc = note_serial(r, rec->serial);
        if (rc == 0)
            rc = xac_datafile_verify(r->logfd, generation, rec, &ok, &place);
    }
    if (rc == 0 && ok)
        rc = xac_datafile_read(r->logfd, generation, rec, visit_record, r, &ok, &place);
    if (rc != 0 || ok)
        return rc;
    if (r->applying)
        return xac_err(EIO, "%s: changed while it was read", place.file);
    *r->bad = place;
    r->is_bad = true;
    return 0;
}

/* note_file -- an XFILE record. */
static int
note_file(struct xac_recovery *r, uint64_t lsn, const struct xac_record *rec)
{
    int rc = xac_redo_note_file(&r->redo, lsn, (const struct xac_xfile *)rec);

    return rc == XAC_EDAMAGED ? content_bad(r, "malformed XFILE record") : rc;
}

/* note_files -- what a block that is no transaction says of files. */
static int
note_files(struct xac_recovery *r, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XFILE)
            rc = note_file(r, blk->lsn, rec);
        else if (rec->type == XAC_XFORGET)
            xac_redo_forget(&r->redo, blk->lsn,
                            (const struct xac_xforget *)(const void *)rec);
    }
    return rc;
}

/* is_beyond -- does the block lie behind the bound that was given? */
static bool
is_beyond(const struct xac_recovery *r, const struct xac_block *blk)
{
    const struct xac_recover_options *o = r->opt;
    const struct xac_xcommit *commit;

    if (o->until_lsn != 0 && blk->lsn >= o->until_lsn)
        return true;
    if (o->until_ns == 0)
        return false;
    commit = xac_block_commit(blk);
    return commit != NULL && commit->time_ns > o->until_ns;
}

/* visit_transaction -- a block with a committed transaction. */
static int
visit_transaction(struct xac_recovery *r, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    xac_assert(!r->is_bad);
    r->touched = false;
    while (rc == 0 && !r->is_bad && (rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XDATA || rec->type == XAC_XCOPY)
            rc = visit_record(r, (const struct xac_xdata *)rec);
        else if (rec->type == XAC_XDATAFILE)
            rc = visit_datafile(r, (const struct xac_xdatafile *)rec);
    }
    if (rc != 0 || r->is_bad || r->applying)
        return rc;
    r->rep.transactions++;
    r->rep.transactions_redone += r->touched;
    r->rep.last_commit = blk->commit;
    r->rep.last_time_ns = xac_block_commit(blk)->time_ns;
    xac_assert(r->rep.transactions_redone <= r->rep.transactions);
    return 0;
}

static int
visit_block(struct xac_recovery *r, const struct xac_block *blk)
{
    int rc = 0;

    xac_assert(blk->lsn >= r->master.redo_lsn);
    if (xac_block_commit(blk) != NULL)
        rc = visit_transaction(r, blk);
    else if (!r->applying)
        rc = note_files(r, blk);
    if (!r->applying && !r->is_bad) {
        r->rep.blocks++;
        if (!r->mark.counts && blk->durable > r->rep.synced_lsn)
            r->rep.synced_lsn = blk->durable;
    }
    return rc;
}

int
xac_recovery_damage(struct xac_recovery *r, const struct xac_place *place, bool can_cut)
{
    xac_assert(!r->applying); /* the files are being written */
    if (!r->rep.damaged) {
        (void)snprintf(r->rep.damage_file, sizeof r->rep.damage_file, "%s", place->file);
        r->rep.damage_offset = place->offset;
    }
    r->rep.damaged = true;
    xac_assert(r->rep.damaged);
    if (r->opt->cut && can_cut)
        return 0;
    if (place->is_missing)
        return xac_scan_lost(place->file);
    return xac_err(XAC_EDAMAGED, "%s: offset %" PRIu64 ": %s", place->file, place->offset,
                   place->why);
}

/* ---- Passes ----------------------------------------------------------------------- */

int
xac_recovery_pass(struct xac_recovery *r, uint64_t limit)
{
    const struct xac_block *blk;
    struct xac_place place;
    uint64_t lsn = r->master.redo_lsn;
    int rc;

    xac_assert(!r->applying || limit == r->end); /* (1) */
    r->is_bad = r->stopped = false;
    r->bad = &place;
    xac_redo_restart(&r->redo, !r->applying && !r->opt->dry_run);
    while (lsn < limit) {
        rc = xac_scan_block(&r->scan, lsn, &blk, &place);
        if (rc != 0)
            return rc;
        if (blk != NULL && is_beyond(r, blk)) {
            (void)snprintf(place.why, sizeof place.why, "the bound that was given");
            r->stopped = true;
            break;
        }
        if (blk == NULL)
            break;
        rc = visit_block(r, blk);
        if (rc != 0)
            return rc;
        if (r->is_bad)
            break;
        lsn += blk->length;
    }
    if (lsn >= limit)
        return 0;
    if (r->applying)
        return xac_err(EIO, "%s: offset %" PRIu64 ": changed while it was read",
                       place.file, place.offset);
    xac_assert(lsn >= r->master.redo_lsn); /* (3) */
    r->end = lsn;
    r->end_place = place;
    r->content_wrong = r->is_bad;
    return 0;
}

int
xac_recovery_check(struct xac_recovery *r, const struct xac_block *blk)
{
    struct xac_place place = {.offset = 0};
    int rc;

    xac_assert(!r->redo.keeping); /* nothing is applied by being checked */
    r->applying = r->is_bad = false;
    r->bad = &place;
    rc = visit_block(r, blk);
    r->bad = NULL;
    if (rc != 0 || !r->is_bad)
        return rc;
    return xac_err(XAC_EDAMAGED, "log block at LSN %" PRIu64 "%s%s: %s", blk->lsn,
                   place.file[0] != '\0' ? ": " : "", place.file, place.why);
}

int
xac_recovery_apply(struct xac_recovery *r, const struct xac_block *blk)
{
    int rc;

    xac_assert(!r->redo.keeping);
    xac_assert(!r->is_bad);
    r->applying = true;
    rc = visit_block(r, blk);
    r->applying = false;
    return rc;
}

/* note_checkpoint -- what the XCHECKPT_END block says: files, and where more of them are;
   *filesp 0: nowhere. */
static int
note_checkpoint(struct xac_recovery *r, const struct xac_block *blk, uint64_t *filesp,
                bool *okp)
{
    const struct xac_record *rec = NULL;
    const struct xac_xcheckpt_end *end = NULL;
    int rc;

    xac_assert(r->master.begin_lsn != 0);
    r->is_bad = false;
    rc = note_files(r, blk);
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XCHECKPT_END)
            end = (const struct xac_xcheckpt_end *)rec;
    }
    *okp = rc == 0 && !r->is_bad && end != NULL && end->begin_lsn == r->master.begin_lsn
           && end->redo_lsn == r->master.redo_lsn;
    if (*okp) {
        *filesp = xac_checkpt_files(end);
        *okp = *filesp < r->master.end_lsn; /* 0, or behind the begin: block_check.c */
    }
    return rc;
}

/* load_files -- the file blocks of the last checkpoint, from there to its end; all had been
   synced before the master record named it.  *okp false: one is not right, see place. */
static int
load_files(struct xac_recovery *r, uint64_t lsn, struct xac_place *place, bool *okp)
{
    const struct xac_block *blk;
    int rc = 0;

    xac_assert(lsn < r->master.end_lsn);
    while (rc == 0 && *okp && lsn < r->master.end_lsn) {
        rc = xac_scan_block(&r->scan, lsn, &blk, place);
        *okp = rc == 0 && blk != NULL;
        if (!*okp)
            break;
        if (xac_block_commit(blk) == NULL)
            rc = note_files(r, blk);
        lsn += blk->length;
        *okp = !r->is_bad;
    }
    return rc;
}

int
xac_recovery_load_checkpoint(struct xac_recovery *r)
{
    const struct xac_block *blk;
    struct xac_place place;
    uint64_t files = 0;
    bool ok = false;
    int rc;

    xac_assert(!r->applying);
    if (r->master.begin_lsn == 0)
        return 0;
    r->bad = &place;
    rc = xac_scan_block(&r->scan, r->master.end_lsn, &blk, &place);
    if (rc == 0 && blk != NULL)
        rc = note_checkpoint(r, blk, &files, &ok);
    if (rc == 0 && blk != NULL && !ok)
        (void)snprintf(place.why, sizeof place.why, "not the checkpoint that %s names",
                       XAC_MASTER_NAME);
    if (rc == 0 && ok && files != 0)
        rc = load_files(r, files, &place, &ok);
    if (rc == 0 && !ok) {
        (void)snprintf(r->rep.end_reason, sizeof r->rep.end_reason, "%s", place.why);
        rc = xac_recovery_damage(r, &place, true);
    }
    r->bad = NULL;
    return rc;
}
