/* SPDX-License-Identifier: MIT */
/*
 * raftd_place.c -- see raftd_place.h.
 */
#include <config.h>

#include "raftd_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/names.h"
#include "base/sys.h"
#include "env/env.h"
#include "group/member.h"
#include "log/block.h"
#include "raftd_install.h"
#include "recovery/standby.h"
#include "ship/ship_open.h"
#include "shared/group.h"

/* How long the programs of a deposed environment may take to detach by themselves, and how long to wait between looks. */
#define DETACH_MS 1000
#define LOOK_MS   100

/* How long to wait between looks whether queries are over that hold up another generation. */
#define TURN_MS 20

/* How often to begin to lead again while a program comes that finds itself refused. */
#define LEAD_TRIES 50

/* How often the mark of what is durable (log/received.h) is synced. */
#define MARK_NS UINT64_C(1000000000)

/* ---- A standby ---------------------------------------------------------------------- */

/* look -- where the standby is. */
static void
look(struct raftd_place *p)
{
    struct xac_standby_place at;

    xac_assert(p->state == RAFTD_STANDBY);
    xac_standby_where(p->s, &at);
    p->generation = at.line.generation;
    p->durable = at.durable;
    p->applied = at.applied;
}

/* open_standby -- from here on others may query it. */
static int
open_standby(struct raftd_place *p)
{
    int rc = xac_ship_open(p->dir, &p->env, &p->s);

    if (rc != 0)
        return rc;
    p->state = RAFTD_STANDBY;
    p->has_news = false;
    look(p);
    p->end = p->durable;
    return raftd_files_note(&p->files, p->dirfd, p->s, true);
}

/* close_standby -- what has come is in the files.  in  stays_one  it is one when it is opened again */
static int
close_standby(struct raftd_place *p, bool stays_one)
{
    int left = 0, rc = p->s != NULL ? xac_standby_rest(p->s) : 0;

    if (p->s != NULL && rc == 0 && stays_one)
        rc = raftd_files_note(&p->files, p->dirfd, p->s, true);
    if (p->s != NULL)
        xac_standby_close(p->s);
    p->s = NULL;
    if (p->env != NULL)
        left = xac_env_close(p->env);
    p->env = NULL;
    raftd_files_free(&p->files);
    p->state = RAFTD_CLOSED;
    return rc != 0 ? rc : left;
}

/* is_there -- a file of the environment. */
static bool
is_there(const struct raftd_place *p, const char *name)
{
    xac_assert(p->dirfd >= 0);
    return faccessat(p->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* detach -- all others leave the region, or are killed (3). */
static int
detach(struct raftd_place *p, const char *leader)
{
    unsigned ms = DETACH_MS;
    int rc;

    xac_assert(p->env != NULL);
    xac_member_depose(p->env, leader);
    do {
        rc = xac_member_detach(p->env, ms, ms + LOOK_MS);
        ms = 0; /* who is left now may not be killed: wait for him */
    } while (rc == EBUSY);
    return rc;
}

/* drop_left_over -- the region that a former life of the daemon, which has led, has left to others. */
static int
drop_left_over(struct raftd_place *p)
{
    int left, rc = xac_member_attach(p->dir, &p->env);

    if (rc == XAC_ENOTLEADER)
        return 0; /* nobody is there */
    if (rc != 0)
        return rc;
    rc = detach(p, "");
    left = xac_env_close(p->env);
    p->env = NULL;
    return rc != 0 ? rc : left;
}

/* open_stray -- up to where its log can be read is synced. */
static int
open_stray(struct raftd_place *p)
{
    struct xac_member_place at;
    struct xac_group_note note;
    int rc = xac_member_look(p->dir, &note, &at);

    if (rc != 0)
        return rc;
    p->state = RAFTD_STRAY;
    p->generation = at.generation;
    p->end = p->durable = at.end_lsn;
    return 0;
}

int
raftd_place_open(struct raftd_place *p, int dirfd, const char *dir)
{
    int rc;

    *p = (struct raftd_place){.dir = dir, .dirfd = dirfd};
    rc = raftd_install_resume(dirfd, dir);
    if (rc != 0)
        return rc;
    if (!is_there(p, XAC_MASTER_NAME)) {
        p->state = RAFTD_EMPTY;
        return 0;
    }
    rc = raftd_files_check(&p->files, dirfd, dir); /* (4) */
    if (rc != 0)
        return rc;
    /* Else it is a leader's, or the end of its leading was cut short (member.h). */
    if (is_there(p, XAC_FOLLOW_NAME) && is_there(p, XAC_BACKUP_NAME))
        return open_standby(p);
    rc = drop_left_over(p);
    return rc == 0 ? open_stray(p) : rc;
}

int
raftd_place_close(struct raftd_place *p)
{
    int rc = 0;

    if (p->s != NULL)
        rc = close_standby(p, true);
    else if (p->env != NULL)
        rc = xac_env_close(p->env);
    p->env = NULL;
    p->state = RAFTD_CLOSED;
    raftd_files_free(&p->files);
    xac_ship_note_free(&p->note);
    return rc;
}

/* ---- Taking log --------------------------------------------------------------------- */

/* take_batch -- the blocks that are not there yet. */
static int
take_batch(struct raftd_place *p, const struct raftd_entry *e)
{
    const uint8_t *at = (const uint8_t *)e->body;
    size_t left = e->n;
    int rc = 0;

    xac_assert(p->state == RAFTD_STANDBY);
    while (rc == 0 && left > 0) {
        const struct xac_block *blk = (const struct xac_block *)(const void *)at;

        if (blk->lsn >= p->end) { /* (1) */
            rc = xac_standby_take(p->s, blk, blk->length);
            if (rc == 0)
                p->end = blk->lsn + blk->length;
            p->has_news = true;
        }
        at += blk->length;
        left -= blk->length;
    }
    return rc;
}

/* take_note -- a piece of xac.addresses.  If its first piece came before the snapshot, the list comes again. */
static int
take_note(struct raftd_place *p, const struct raftd_entry *e)
{
    struct xac_raftd_piece head;
    int rc;

    memcpy(&head, e->body, sizeof head);
    rc = xac_ship_note_piece(&p->note, p->dirfd, head.what, head.offset,
                             (const uint8_t *)e->body + sizeof head, e->n - sizeof head);
    return rc == EINVAL ? 0 : rc;
}

/* take_data -- a piece of the data file of the next block. */
static int
take_data(struct raftd_place *p, const struct raftd_entry *e)
{
    struct xac_raftd_piece head;

    xac_assert(e->n >= sizeof head);
    if (e->lsn < p->end) /* its block is there already */
        return 0;
    memcpy(&head, e->body, sizeof head);
    return xac_standby_data(p->s, head.what, head.offset,
                            (const uint8_t *)e->body + sizeof head, e->n - sizeof head);
}

int
raftd_place_take(struct raftd_place *p, const struct raftd_entry *e)
{
    xac_assert(p->state == RAFTD_STANDBY);
    if (e->generation < p->generation)
        return 0;
    if (e->generation > p->generation)
        return xac_err(XAC_EFOREIGN,
                       "%s: its log is of generation %" PRIu32
                       ", and what comes is of %" PRIu32,
                       p->dir, p->generation, e->generation);
    if (e->kind == RAFTD_NOTE)
        return take_note(p, e);
    if (e->lsn > p->end)
        return xac_err(XAC_EFOREIGN,
                       "%s: its log ends at LSN %" PRIu64
                       ", and what comes begins at LSN %" PRIu64,
                       p->dir, p->end, e->lsn);
    return e->kind == RAFTD_DATA ? take_data(p, e) : take_batch(p, e);
}

bool
raftd_place_is_full(const struct raftd_place *p)
{
    return p->state == RAFTD_STANDBY && xac_standby_is_full(p->s);
}

/* mark -- damage to what is durable is to be named after a power cut, too; once a second. */
static int
mark(struct raftd_place *p)
{
    uint64_t now = xac_clock_ns();
    int rc;

    xac_assert(p->state == RAFTD_STANDBY);
    if (!p->needs_mark || now - p->marked_ns < MARK_NS)
        return 0;
    p->needs_mark = false;
    p->marked_ns = now;
    rc = xac_standby_mark(p->s);
    return rc == 0 ? raftd_files_note(&p->files, p->dirfd, p->s, false) : rc;
}

int
raftd_place_settle(struct raftd_place *p)
{
    int rc = 0;

    xac_assert(p->state == RAFTD_STANDBY);
    if (p->has_news) {
        rc = xac_standby_sync(p->s);
        if (rc == 0)
            rc = xac_standby_apply(p->s);
        p->has_news = rc != 0;
        p->needs_mark = true;
        look(p);
    }
    return rc == 0 ? mark(p) : rc;
}

/* ---- Another generation ------------------------------------------------------------- */

/* line_of -- the generation that has been accepted last. */
static struct xac_lineage_line
line_of(const struct raftd_accepted *a)
{
    struct xac_lineage_line line = {.generation = a->generation,
                                    .previous = a->generation - 1,
                                    .start_lsn = a->start,
                                    .end_lsn = a->cut,
                                    .segment_bytes = a->segment_bytes};

    xac_assert(a->node != 0);
    memcpy(line.branch, a->nonce, sizeof line.branch);
    return line;
}

int
raftd_place_turn(struct raftd_place *p, const struct raftd_accepted *a,
                 bool (*wait)(void *arg), void *arg)
{
    struct xac_lineage_line line = line_of(a);
    int rc = 0;

    if (p->generation >= a->generation)
        return 0; /* this life has begun behind that */
    xac_assert(p->state == RAFTD_STANDBY);
    if (p->generation + 1 != a->generation || p->end != a->cut)
        rc = xac_err(XAC_EFOREIGN,
                     "%s: its log ends at LSN %" PRIu64 ", generation %" PRIu32
                     ", but generation %" PRIu32 " begins behind LSN %" PRIu64,
                     p->dir, p->end, p->generation, a->generation, a->cut);
    if (rc != 0)
        return rc;
    rc = xac_standby_turn(p->s, &line);
    while (rc == EAGAIN && wait(arg)) {
        (void)poll(NULL, 0, TURN_MS);
        rc = xac_standby_turn(p->s, &line);
    }
    if (rc == EAGAIN)
        return ECANCELED;
    if (rc == 0) {
        look(p);
        p->end = a->start;
        p->has_news = false;
        p->files.changes = 0; /* they are counted anew */
    }
    return rc;
}

int
raftd_place_cut(struct raftd_place *p, uint64_t end)
{
    uint64_t there = 0;
    int rc = xac_member_cut(p->dir, p->generation, end, &there);

    xac_assert(p->state == RAFTD_STRAY);
    if (rc == 0)
        rc = open_standby(p);
    xac_assert(rc != 0 || p->end <= end);
    return rc;
}

/* ---- Leading ------------------------------------------------------------------------ */

int
raftd_place_retreat(struct raftd_place *p, const char *why)
{
    int left, rc;

    if (p->state != RAFTD_STANDBY)
        return 0;
    rc = detach(p, why);
    left = close_standby(p, false);
    return rc != 0 ? rc : left;
}

int
raftd_place_lead(struct raftd_place *p, const struct raftd_accepted *a)
{
    struct xac_lineage_line line = line_of(a);
    int rc = XAC_ELIVE;

    xac_assert(p->state == RAFTD_STANDBY);
    for (int i = 0; i < LEAD_TRIES && rc == XAC_ELIVE; i++) {
        if (i > 0)
            (void)poll(NULL, 0, TURN_MS);
        rc = raftd_place_retreat(p, "this node is about to lead"); /* (3) */
        if (rc == 0)
            rc = raftd_files_drop(&p->files, p->dirfd);
        if (rc == 0)
            rc = xac_member_lead(p->dir, &line, NULL, &p->env);
    }
    if (rc != 0)
        return rc;
    p->state = RAFTD_LEADER;
    p->generation = a->generation;
    p->end = p->durable = p->applied = a->start;
    p->has_news = false;
    return 0;
}

void
raftd_place_raise(struct raftd_place *p, uint64_t end)
{
    xac_assert(p->state == RAFTD_LEADER);
    xac_member_raise(p->env, end);
    p->end = p->applied = end;
    raftd_place_look(p);
}

void
raftd_place_look(struct raftd_place *p)
{
    if (p->state == RAFTD_LEADER)
        p->durable = xac_group_bound(p->env);
}

bool
raftd_place_has(const struct raftd_place *p, uint64_t end)
{
    xac_assert(p->env != NULL);
    return xac_group_bound(p->env) >= end;
}

bool
raftd_place_is_deposed(const struct raftd_place *p)
{
    return p->state == RAFTD_LEADER && xac_group_is_deposed(p->env);
}

int
raftd_place_leave(struct raftd_place *p, const char *leader)
{
    int left, rc = detach(p, leader);

    xac_assert(p->state == RAFTD_LEADER);
    raftd_place_look(p);
    p->end = p->durable;
    left = xac_env_close(p->env);
    p->env = NULL;
    p->state = RAFTD_STRAY;
    return rc != 0 ? rc : left;
}
