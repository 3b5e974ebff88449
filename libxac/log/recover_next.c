/* SPDX-License-Identifier: MIT */
/*
 * recover_next.c -- see recover_next.h.
 */
#include <config.h>

#include "log/recover_next.h"

#include "log/log_name.h"

uint64_t
xac_next_start(uint64_t end)
{
    xac_assert(end <= XAC_LSN_LIMIT);
    return (end + XAC_LSN_GENERATION_ALIGN - 1) / XAC_LSN_GENERATION_ALIGN
           * XAC_LSN_GENERATION_ALIGN;
}

/* look -- through all headers behind `end` in segments of the scan's size. */
static int
look(struct xac_scan *s, uint64_t end, struct xac_next *out)
{
    struct xac_block head = {.lsn = end};

    for (;;) {
        int rc = xac_scan_next(s, head.lsn, &head);

        if (rc != 0 || head.length == 0)
            return rc;
        if (head.generation > s->master.generation && head.generation > out->newest)
            out->newest = head.generation;
        if (head.generation > s->master.generation
            && (out->generation == 0 || head.lsn < out->lsn)) {
            out->generation = head.generation;
            out->lsn = head.lsn;
            out->segment_bytes = s->master.segment_bytes;
        }
        head.lsn += XAC_BLOCK_ALIGN;
    }
}

/* look_in_others -- the same for each other size that a segment has. */
static int
look_in_others(struct xac_scan *s, uint64_t end, struct xac_next *out)
{
    int rc = 0;

    for (size_t i = 0; rc == 0; i++) {
        struct xac_master_slot master = s->master;
        struct xac_scan other;

        rc = xac_scan_other(s, &i);
        if (rc != 0 || i == s->n_segments)
            break;
        master.segment_bytes = s->segment[i].other_bytes;
        master.redo_lsn = end;
        rc = xac_scan_open(&other, s->dirfd, &master);
        if (rc == 0)
            rc = look(&other, end, out);
        xac_scan_close(&other);
    }
    return rc;
}

/*
 * is_behind -- has a recovery that changed the size of segments begun there?
 *
 * It did so at the usual place if the segment of the new size there has a number that was
 * free, else in one behind all that there were.
 */
static bool
is_behind(const struct xac_scan *s, const struct xac_next *next)
{
    uint64_t number = xac_log_segment_of(next->lsn, next->segment_bytes);

    if (next->segment_bytes == s->master.segment_bytes
        || next->lsn != (number - 1) * next->segment_bytes)
        return false;
    for (size_t i = 0; i < s->n_segments; i++) {
        if (s->segment[i].number == number - 1)
            return s->segment[i].other_bytes == 0;
    }
    return false;
}

int
xac_next_find(struct xac_scan *scan, uint64_t end, struct xac_next *out)
{
    int rc;

    *out = (struct xac_next){.generation = 0};
    rc = look(scan, end, out);
    if (rc == 0)
        rc = look_in_others(scan, end, out);
    out->follows =
        out->generation != 0 && (out->lsn == xac_next_start(end) || is_behind(scan, out));
    xac_assert(!out->follows || out->generation > scan->master.generation);
    return rc;
}

bool
xac_next_has_come(const struct xac_scan *scan, uint64_t end)
{
    struct xac_scan anew = {.file = XAC_RAWFILE_CLOSED}; /* has no old bytes in memory */
    const struct xac_block *blk = NULL;
    struct xac_place place;
    int rc = xac_scan_open(&anew, scan->dirfd, &scan->master);

    if (rc == 0)
        rc = xac_scan_block(&anew, end, &blk, &place);
    xac_scan_close(&anew);
    return rc == 0 && blk != NULL;
}
