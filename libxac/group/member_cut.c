/* SPDX-License-Identifier: MIT */
/*
 * member_cut.c -- see xac_member_cut() in member.h.
 *
 * The steps, each of which may be the last one of a process or before a power cut:
 *   (1) xac.backup says where the cut is
 *   (2) data files of the blocks behind it go
 *   (3) zeros from the cut on; segments behind go; synced
 *   (4) xac.follow
 * What a power cut leaves of (2) and (3) looks like damage, if it were to count.  So an attempt that comes later does not
 * keep more than (1) says, though more may have been accepted meanwhile: that comes again.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "group/member.h"
#include "group/member_dir.h"
#include "log/block.h"
#include "log/log_name.h"
#include "log/recover_scan.h"
#include "log/replica.h"

struct cutting {
    const struct xac_member *m;
    struct xac_scan scan;
    uint64_t cut; /* where the log is to end, or ends before                            */
};

/* ---- Where ---------------------------------------------------------------------------- */

/* check_kept -- does the environment need what lies behind the cut? */
static int
check_kept(const struct xac_member *m, uint64_t cut)
{
    const struct xac_master_slot *s = &m->master;
    uint64_t most = s->end_lsn_after > s->redo_lsn ? s->end_lsn_after : s->redo_lsn;

    xac_assert(s->start_lsn <= s->redo_lsn);
    if (cut >= most)
        return 0;
    return xac_err(XAC_EDAMAGED,
                   "%s: its log is to end at LSN %" PRIu64
                   ", but its master record needs it up to LSN %" PRIu64
                   ": it must be copied anew",
                   m->dir, cut, most);
}

/* find_cut -- from block to block; a log that ends before the cut is cut there. */
static int
find_cut(struct cutting *c, uint64_t cut)
{
    const struct xac_block *blk = NULL;
    struct xac_scan_found found;
    struct xac_place place;
    uint64_t at = c->m->master.redo_lsn;
    int rc = 0;

    do {
        rc = xac_scan_block(&c->scan, at, &blk, &place);
        if (rc == 0 && blk != NULL && at < cut)
            at += blk->length;
        else
            break;
    } while (true);
    if (rc != 0)
        return rc;
    if (at > cut)
        return xac_err(XAC_EFOREIGN, "%s: no block of its log ends at LSN %" PRIu64,
                       c->m->dir, cut);
    c->cut = at;
    if (at == cut)
        return 0;
    rc = xac_scan_search(&c->scan, at, &found);
    if (rc == 0 && found.durable > at)
        rc = xac_err(XAC_EDAMAGED, "%s: offset %" PRIu64 ": %s, but it had been synced",
                     place.file, place.offset, place.why);
    return rc;
}

/* ---- Data files (2) ------------------------------------------------------------------- */

/* remove_data -- the data file that a block names. */
static int
remove_data(const struct cutting *c, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    char name[XAC_LOG_NAME_MAX];

    xac_assert(blk->lsn >= c->cut);
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        const struct xac_xdatafile *d = (const struct xac_xdatafile *)(const void *)rec;

        if (rec->type != XAC_XDATAFILE)
            continue;
        xac_log_datafile_name(name, c->m->master.generation, d->serial);
        if (xac_sys.unlinkat(c->m->logfd, name, 0) != 0 && errno != ENOENT)
            return xac_err(errno, "%s: remove", name);
    }
    return 0;
}

/* remove_all_data -- of the blocks that follow each other behind the cut. */
static int
remove_all_data(struct cutting *c)
{
    const struct xac_block *blk = NULL;
    struct xac_place place;
    uint64_t at = c->cut;
    int rc;

    do {
        rc = xac_scan_block(&c->scan, at, &blk, &place);
        if (rc == 0 && blk != NULL)
            rc = remove_data(c, blk);
        if (rc == 0 && blk != NULL)
            at += blk->length;
    } while (rc == 0 && blk != NULL);
    xac_assert(at >= c->cut);
    return rc;
}

/* ---- The log (3) ------------------------------------------------------------------- */

/* clear -- a segment, from the cut on; one that lies behind it goes as a whole. */
static int
clear(const struct cutting *c, uint64_t number)
{
    uint64_t bytes = c->m->master.segment_bytes;
    uint64_t begin = (number - 1) * bytes, end = number * bytes;
    char name[XAC_LOG_NAME_MAX];

    xac_assert(number != 0);
    if (end <= c->cut)
        return 0;
    if (number <= xac_log_segment_of(c->cut, bytes))
        return xac_replica_clear(c->m->logfd, bytes, begin < c->cut ? c->cut : begin,
                                 end);
    xac_log_segment_name(name, number);
    return xac_sys.unlinkat(c->m->logfd, name, 0) == 0 || errno == ENOENT
               ? 0
               : xac_err(errno, "%s: remove", name);
}

/* clear_all -- likewise of all segments; and their names are synced. */
static int
clear_all(const struct cutting *c)
{
    int rc = 0;

    xac_assert(c->cut != 0);
    for (size_t i = 0; rc == 0 && i < c->scan.n_segments; i++)
        rc = clear(c, c->scan.segment[i].number);
    if (rc == 0 && (rc = xac_sync_dir(c->m->logfd)) != 0)
        rc = xac_err(rc, "the log of %s: sync", c->m->dir);
    return rc;
}

/* cut_log -- (2) and (3). */
static int
cut_log(struct cutting *c)
{
    int rc = remove_all_data(c);

    xac_assert(c->cut >= c->m->master.redo_lsn);
    xac_kill_point("cut data");
    if (rc == 0)
        rc = clear_all(c);
    xac_kill_point("cut behind");
    return rc;
}

/* ---- The whole ------------------------------------------------------------------------ */

/* cut -- with the gate. */
static int
cut(const struct xac_member *m, uint64_t lsn, uint64_t *endp)
{
    struct cutting c = {.m = m};
    int rc = xac_scan_open(&c.scan, m->logfd, &m->master);

    xac_assert(m->logfd >= 0);
    if (rc == 0)
        rc = xac_scan_sync(&c.scan);
    if (rc == 0)
        rc = xac_member_noted_end(m, &lsn);
    if (rc == 0)
        rc = find_cut(&c, lsn);
    if (rc == 0)
        rc = check_kept(m, c.cut);
    if (rc == 0)
        rc = xac_member_note_end(m, c.cut);
    if (rc == 0)
        rc = cut_log(&c);
    xac_scan_close(&c.scan);
    if (rc == 0)
        rc = xac_member_stand(m, c.cut);
    if (rc == 0)
        *endp = c.cut;
    return rc;
}

int
xac_member_cut(const char *dir, uint32_t generation, uint64_t cut_lsn, uint64_t *endp)
{
    struct xac_member m;
    int rc = xac_member_open(&m, dir);

    if (rc == 0)
        rc = xac_member_is_one(&m);
    if (rc == 0 && m.master.generation != generation)
        rc = xac_err(XAC_EFOREIGN,
                     "%s: its log is of generation %" PRIu32 ", and not %" PRIu32, dir,
                     m.master.generation, generation);
    if (rc == 0 && m.is_backup && m.is_follower)
        rc = xac_member_end(&m, endp);
    else if (rc == 0)
        rc = check_kept(&m, cut_lsn);
    if (rc == 0 && !(m.is_backup && m.is_follower))
        rc = cut(&m, cut_lsn, endp);
    xac_member_close(&m);
    return rc;
}
