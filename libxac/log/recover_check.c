/* SPDX-License-Identifier: MIT */
/*
 * recover_check.c -- see recover_check.h.
 */
#include <config.h>

#include "log/recover_check.h"

#include <stdio.h>
#include <string.h>

#include "log/block.h"
#include "log/log.h"
#include "log/recover_data.h"

/* One walk. */
struct walk {
    struct xac_scan scan;
    int dirfd;
    xac_check_fn fn;
    void *arg;
    struct xac_check_report rep;
    uint32_t generation;     /* being read, 0 none yet                                */
    uint64_t end;            /* of the last right block                               */
    bool is_broken;          /* no right block stood at its end                       */
    struct xac_place broken; /* why                                                   */
};

static void
damage(struct walk *w, const struct xac_place *place)
{
    xac_assert(place->why[0] != '\0');
    if (strcmp(place->why, "segment is missing") == 0)
        return; /* see check_holes */
    w->rep.damages++;
    w->fn(w->arg, place);
}

/* note_broken -- the chain of blocks ends here, as far as can be told so far. */
static void
note_broken(struct walk *w, const struct xac_place *place)
{
    xac_assert(place->why[0] != '\0');
    if (!w->is_broken)
        w->broken = *place;
    w->is_broken = true;
}

/* check_datafile -- of a block; one that is gone has been archived. */
static int
check_datafile(struct walk *w, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
        struct xac_place place = {.offset = 0};
        bool ok = true;

        if (rec->type != XAC_XDATAFILE)
            continue;
        rc = xac_datafile_verify(w->dirfd, blk->generation,
                                 (const struct xac_xdatafile *)(const void *)rec, &ok,
                                 &place);
        w->rep.datafiles += ok;
        if (rc == 0 && !ok && strstr(place.why, "missing") == NULL)
            damage(w, &place);
    }
    return rc;
}

/* begin_generation -- its first block, or what is left of it.  A recovery has cut off what
   was broken at the end of the one before. */
static int
begin_generation(struct walk *w, const struct xac_block *head)
{
    uint64_t start = head->lsn - head->lsn % XAC_LSN_GENERATION_ALIGN;
    const struct xac_block *blk;
    struct xac_place place;
    int rc = 0;

    xac_assert(head->generation > w->generation);
    if (start != head->lsn && w->generation != 0) {
        rc = xac_scan_block(&w->scan, start, &blk, &place);
        if (rc == 0 && blk == NULL)
            damage(w, &place);
    }
    w->generation = head->generation;
    w->end = head->lsn;
    w->is_broken = false;
    return rc;
}

/* judge_broken -- the chain ends at w->end; does the header tell that it should not? */
static void
judge_broken(struct walk *w, const struct xac_block *head)
{
    /* Its `durable` was true when it was built, whole or not. */
    if (!w->is_broken || head->durable <= w->end)
        return;
    damage(w, &w->broken);
    w->is_broken = false;
    w->end = head->lsn;
}

/* at_block -- a header of the generation being read, or of a newer one, has been found. */
static int
at_block(struct walk *w, const struct xac_block *head, uint64_t *nextp)
{
    const struct xac_block *blk;
    struct xac_place place;
    int rc = 0;

    xac_assert(head->generation >= w->generation);
    if (head->generation != w->generation)
        rc = begin_generation(w, head);
    if (rc == 0 && !w->is_broken && head->lsn != w->end) {
        rc = xac_scan_block(&w->scan, w->end, &blk, &place);
        note_broken(w, &place);
    }
    judge_broken(w, head);
    if (rc == 0)
        rc = xac_scan_block(&w->scan, head->lsn, &blk, &place);
    if (rc != 0)
        return rc;
    if (blk == NULL) {
        note_broken(w, &place);
        *nextp = head->lsn + XAC_BLOCK_ALIGN;
        return 0;
    }
    *nextp = head->lsn + blk->length;
    if (!w->is_broken)
        w->end = *nextp;
    w->rep.blocks++;
    w->rep.bytes += blk->length;
    xac_assert(*nextp > head->lsn);
    return check_datafile(w, blk);
}

/* walk_log -- up to the redo position. */
static int
walk_log(struct walk *w, uint64_t redo_lsn)
{
    uint64_t lsn = 0;
    int rc = 0;

    while (rc == 0 && lsn < redo_lsn) {
        struct xac_block head;

        rc = xac_scan_next(&w->scan, lsn, &head);
        if (rc != 0 || head.length == 0 || head.lsn >= redo_lsn)
            break;
        lsn = head.lsn + XAC_BLOCK_ALIGN;
        if (head.generation < w->generation)
            continue; /* stale */
        w->scan.id.generation = head.generation;
        xac_assert(head.lsn % XAC_BLOCK_ALIGN == 0);
        rc = at_block(w, &head, &lsn);
    }
    return rc;
}

/* check_holes -- log files are archived oldest first, so none is missing between others. */
static void
check_holes(struct walk *w)
{
    const struct xac_scan_segment *seg = w->scan.segment;

    for (size_t i = 1; i < w->scan.n_segments; i++) {
        struct xac_place place = {.why = "segment is missing"};

        /* Numbers may leap where segments of another size begin. */
        if (seg[i].number == seg[i - 1].number + 1
            || seg[i].other_bytes != seg[i - 1].other_bytes)
            continue;
        xac_log_segment_name(place.file, seg[i - 1].number + 1);
        w->rep.damages++;
        w->fn(w->arg, &place);
    }
}

/* check_rest -- the walk has come to the redo position, or should have: all before it in
   the same generation had been synced. */
static int
check_rest(struct walk *w, const struct xac_master_slot *master)
{
    const struct xac_block *blk;
    struct xac_place place;
    int rc;

    if (w->generation != master->generation || w->end >= master->redo_lsn)
        return 0;
    if (w->is_broken) {
        damage(w, &w->broken);
        return 0;
    }
    w->scan.id.generation = w->generation;
    rc = xac_scan_block(&w->scan, w->end, &blk, &place);
    if (rc == 0 && blk == NULL)
        damage(w, &place);
    return rc;
}

/* check_segments -- walk through those of one size. */
static int
check_segments(struct walk *w, const struct xac_master_slot *master,
               uint64_t segment_bytes)
{
    struct xac_master_slot all = *master;
    int rc;

    all.redo_lsn = 0;
    all.segment_bytes = segment_bytes;
    rc = xac_scan_open(&w->scan, w->dirfd, &all);
    w->rep.segments = w->scan.n_segments;
    if (rc == 0)
        rc = walk_log(w, master->redo_lsn);
    return rc;
}

/* check_others -- walk through the segments of each other size, made before the last change. */
static int
check_others(struct walk *w, const struct xac_master_slot *master)
{
    int rc = 0;

    for (size_t i = 0; rc == 0; i++) {
        struct walk other = {.dirfd = w->dirfd,
                             .fn = w->fn,
                             .arg = w->arg,
                             .rep = w->rep};

        rc = xac_scan_other(&w->scan, &i);
        if (rc != 0 || i == w->scan.n_segments)
            break;
        rc = check_segments(&other, master, w->scan.segment[i].other_bytes);
        xac_scan_close(&other.scan);
        w->rep = other.rep;
    }
    return rc;
}

int
xac_check_log(int dirfd, const struct xac_master_slot *master, xac_check_fn fn, void *arg,
              struct xac_check_report *report)
{
    struct walk w = {.dirfd = dirfd, .fn = fn, .arg = arg};
    int rc = check_segments(&w, master, master->segment_bytes);

    xac_assert(fn != NULL);
    if (rc == 0)
        rc = check_rest(&w, master);
    if (rc == 0)
        rc = check_others(&w, master);
    if (rc == 0)
        check_holes(&w);
    xac_scan_close(&w.scan);
    *report = w.rep;
    return rc;
}
