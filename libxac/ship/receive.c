/* SPDX-License-Identifier: MIT */
/*
 * receive.c -- see receive.h.
 */
#include <config.h>

#include "ship/receive.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "env/env.h"
#include "log/block.h"
#include "log/group_note.h"
#include "log/lineage.h"
#include "log/rewind_note.h"
#include "recovery/standby.h"
#include "ship/rewind.h"
#include "ship/ship_copy.h"
#include "ship/ship_note.h"
#include "ship/ship_open.h"
#include "ship/wire.h"

/* How long to wait for a frame before looking at `stop`. */
#define LOOK_MS 200

/* So many looks for what the source says to an environment of its own. */
#define FORK_LOOKS 50

/* How long to wait between looks whether queries are over that hold up another generation; every so many looks the
   source hears that this side is there. */
#define TURN_MS   50
#define TURN_ACKS 20

struct receiving {
    const struct xac_receive_options *opt;
    struct xac_wire w;
    int dirfd, lockfd; /* the lock: until there is a standby, which others may read     */
    struct xac_env *env; /* of the standby, for those who read                         */
    struct xac_standby *s;
    struct xac_copy_in copy;
    struct xac_wire_hello source;
    struct xac_receive_report *rep;
    bool is_over; /* the source has stopped, or it is enough                         */
    uint64_t
        whole_lsn; /* it is being rewound: nobody may see it before it has all up to there; 0: it is whole */
    uint8_t *block; /* that is coming, piece by piece: `has` bytes of it             */
    size_t has, room;
    uint64_t block_lsn;
    struct xac_ship_note note; /* xac.addresses, likewise                              */
};

/* ---- The directory ------------------------------------------------------------------ */

/* open_dir -- made if it is not there. */
static int
open_dir(struct receiving *r)
{
    const char *dir = r->opt->dir;
    int rc;

    xac_assert(dir[0] != '\0');
    if (xac_sys.mkdirat(AT_FDCWD, dir, 0700) == 0)
        rc = xac_sync_parent(AT_FDCWD, dir);
    else
        rc = errno == EEXIST ? 0 : errno;
    if (rc != 0)
        return xac_err(rc, "%s", dir);
    r->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return r->dirfd >= 0 ? 0 : xac_err(errno, "%s", dir);
}

/* begin_copy -- there is no standby yet. */
static int
begin_copy(struct receiving *r)
{
    int rc;

    xac_assert(r->s == NULL);
    rc = xac_standby_lock(r->dirfd, r->opt->dir, &r->lockfd);
    return rc == 0 ? xac_copy_begin(&r->copy, r->dirfd, r->opt->dir) : rc;
}

/* has_master -- is there more than an unfinished copy? */
static bool
has_master(const struct receiving *r)
{
    xac_assert(r->dirfd >= 0);
    return faccessat(r->dirfd, XAC_MASTER_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- The beginning ------------------------------------------------------------------ */

/* is_own -- is it an environment that follows nobody? */
static bool
is_own(const struct receiving *r)
{
    xac_assert(r->dirfd >= 0);
    return has_master(r)
           && faccessat(r->dirfd, XAC_BACKUP_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0
           && faccessat(r->dirfd, XAC_FOLLOW_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
}

/* greet -- the other side. */
static int
greet(struct receiving *r, const struct xac_wire_hello *hello)
{
    int rc = xac_wire_put(&r->w, XAC_WIRE_HELLO, hello, sizeof *hello, NULL, 0);

    xac_assert(hello->version != 0);
    return rc == 0 ? xac_wire_flush(&r->w) : rc;
}

/* say_hello -- what is here. */
static int
say_hello(struct receiving *r)
{
    struct xac_wire_hello hello = {.version = XAC_WIRE_VERSION};
    struct xac_standby_place at;

    if (r->s != NULL) {
        xac_standby_where(r->s, &at);
        hello.page_size = at.page_size;
        memcpy(hello.identity, at.identity, sizeof hello.identity);
        hello.lsn = at.durable;
        xac_wire_line_put(&at.line, &hello.line);
        xac_assert(at.applied <= at.durable);
    }
    return greet(r, &hello);
}

/* say_own_hello -- what an environment of its own has, in which nobody takes part. */
static int
say_own_hello(struct receiving *r)
{
    struct xac_wire_hello hello = {.version = XAC_WIRE_VERSION};
    struct xac_rewind_own *own = (struct xac_rewind_own *)calloc(1, sizeof *own);
    int rc = own == NULL ? xac_err(ENOMEM, "%s", r->opt->dir)
                         : xac_standby_lock(r->dirfd, r->opt->dir, &r->lockfd);

    xac_assert(r->s == NULL);
    if (own == NULL)
        return rc;
    own->dir = r->opt->dir;
    own->dirfd = r->dirfd;
    own->logfd = -1;
    if (rc == 0)
        rc = xac_rewind_own_read(own);
    if (rc == 0)
        xac_rewind_own_greet(own, &hello);
    xac_rewind_own_close(own);
    free(own);
    return rc == 0 ? greet(r, &hello) : rc;
}

/*
 * refuse_own -- an environment of its own does not follow.  It may be the old source of a standby that has been
 * promoted: then the source tells where the two have parted.
 *
 * ret  XAC_EFOREIGN, with that; EINVAL, or another error; never 0.
 */
static int
refuse_own(struct receiving *r)
{
    struct xac_wire_frame f = {.type = XAC_WIRE_HELLO};
    int rc = say_own_hello(r);

    for (int i = 0; rc == 0 && f.type <= XAC_WIRE_HELLO && i < FORK_LOOKS; i++)
        rc = xac_wire_get(&r->w, LOOK_MS, &f);
    if (rc == XAC_EFOREIGN || rc == XAC_ELIVE)
        return rc;
    xac_assert(r->s == NULL);
    return xac_err(
        EINVAL,
        "%s: an environment of its own, by now: it follows the one that was its standby "
        "if it gives up what it has committed since (xship rewind); or remove it and "
        "receive anew",
        r->opt->dir);
}

/* check_hello -- does the source fit? */
static int
check_hello(const struct receiving *r)
{
    const struct xac_wire_hello *h = &r->source;
    struct xac_standby_place at;

    xac_assert(r->opt->dir != NULL);
    if (h->version != XAC_WIRE_VERSION)
        return xac_err(XAC_EVERSION,
                       "the source speaks version %" PRIu32
                       " of the protocol, this is %u",
                       h->version, XAC_WIRE_VERSION);
    if (h->page_size != (uint32_t)sysconf(_SC_PAGESIZE))
        return xac_err(XAC_EPAGESIZE, "the source has pages of %" PRIu32 " bytes",
                       h->page_size);
    if (r->s == NULL)
        return 0;
    xac_standby_where(r->s, &at);
    if (memcmp(h->identity, at.identity, sizeof h->identity) != 0)
        return xac_err(XAC_EFOREIGN, "%s follows another environment than the source is",
                       r->opt->dir);
    return 0;
}

/* open_standby -- from here on others may query it. */
static int
open_standby(struct receiving *r)
{
    int rc;

    xac_assert(r->s == NULL);
    xac_close_fd(&r->lockfd); /* the environment takes the gate itself */
    /* Of a group: its daemon has it follow the leader. */
    rc = r->opt->is_member ? 0 : xac_group_note_refuse(r->dirfd);
    if (rc == 0)
        rc = xac_ship_open(r->opt->dir, &r->env, &r->s);
    /* Left over if the end of a copy was interrupted. */
    if (rc == 0)
        (void)xac_sys.unlinkat(r->dirfd, XAC_RECEIVING_NAME, 0);
    return rc;
}

/* is_stopped -- by a signal. */
static bool
is_stopped(const struct receiving *r)
{
    xac_assert(r->opt != NULL);
    /* relaxed: nothing else is read because of it. */
    return r->opt->stop != NULL
           && atomic_load_explicit(r->opt->stop, memory_order_relaxed);
}

/* ---- Log ---------------------------------------------------------------------------- */

/* say_ack -- what is durable (1). */
static int
say_ack(struct receiving *r)
{
    struct xac_standby_place at;
    struct xac_wire_ack ack;
    int rc;

    xac_assert(r->s != NULL);
    xac_standby_where(r->s, &at);
    ack = (struct xac_wire_ack){.durable = at.durable,
                                .applied = at.applied,
                                .generation = at.line.generation};
    r->rep->durable = at.durable;
    r->rep->generation = at.line.generation;
    r->rep->transactions = at.transactions;
    if (r->opt->is_enough != NULL
        && r->opt->is_enough(r->opt->enough_arg, at.line.generation, at.durable))
        r->is_over = true;
    rc = xac_wire_put(&r->w, XAC_WIRE_ACK, &ack, sizeof ack, NULL, 0);
    return rc == 0 ? xac_wire_flush(&r->w) : rc;
}

/* settle -- what has come is durable, acknowledged, and redone. */
static int
settle(struct receiving *r)
{
    int rc = xac_standby_sync(r->s);

    xac_assert(r->s != NULL);
    if (rc == 0)
        rc = say_ack(r);
    return rc == 0 ? xac_standby_apply(r->s) : rc;
}

/* take_beat -- the source says how far it is, and hears how far this is. */
static int
take_beat(struct receiving *r, const struct xac_wire_frame *f)
{
    uint64_t lsn = ((const struct xac_wire_beat *)f->body)->lsn;
    int rc = settle(r); /* then the frame is not good any more */

    xac_assert(r->opt != NULL);
    if (rc == 0)
        rc = xac_standby_mark(r->s);
    if (rc == 0 && r->opt->behind != NULL)
        r->opt->behind(r->opt->behind_arg,
                       lsn > r->rep->durable ? lsn - r->rep->durable : 0);
    return rc;
}

/* strange -- a frame that cannot come now. */
static int
strange(const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "the source has sent %s", why);
}

/* grow -- room for the bytes of a block that have come (2). */
static int
grow(struct receiving *r, size_t n)
{
    uint8_t *grown;

    xac_assert(r->has <= r->room);
    if (n <= r->room - r->has)
        return 0;
    grown = (uint8_t *)realloc(r->block, 2 * (r->has + n));
    if (grown == NULL)
        return xac_err(ENOMEM, "log block");
    r->block = grown;
    r->room = 2 * (r->has + n);
    return 0;
}

/* take_log -- bytes of a block. */
static int
take_log(struct receiving *r, const struct xac_wire_frame *f)
{
    const struct xac_wire_log *head = (const struct xac_wire_log *)f->body;
    size_t n = f->n - sizeof *head;
    struct xac_block blk;
    int rc;

    xac_assert(n > 0);
    if (r->has == 0 && n < sizeof blk)
        return strange("too short a part of a log block");
    if (r->has > 0 && head->lsn != r->block_lsn + r->has)
        return strange("parts of a log block in a wrong order");
    rc = grow(r, n);
    if (rc != 0)
        return rc;
    if (r->has == 0)
        r->block_lsn = head->lsn;
    memcpy(r->block + r->has, head + 1, n);
    r->has += n;
    memcpy(&blk, r->block, sizeof blk);
    if (r->has > blk.length)
        return strange("more than one log block at a time");
    if (r->has < blk.length)
        return 0;
    r->has = 0;
    return xac_standby_take(r->s, (const struct xac_block *)(const void *)r->block,
                            blk.length);
}

/* take_data -- a piece of a data file. */
static int
take_data(struct receiving *r, const struct xac_wire_frame *f)
{
    const struct xac_wire_data *head = (const struct xac_wire_data *)f->body;

    xac_assert(f->n >= sizeof *head);
    return xac_standby_data(r->s, head->serial, head->offset, head + 1,
                            f->n - sizeof *head);
}

/* take_turn -- another generation begins, once no query sees what was before that. */
static int
take_turn(struct receiving *r, const struct xac_wire_frame *f)
{
    struct xac_lineage_line line;
    int rc;

    xac_assert(f->n == sizeof(struct xac_wire_line));
    if (r->has > 0 || !xac_wire_line_get((const struct xac_wire_line *)f->body, &line))
        return strange("a generation that no log can have");
    rc = xac_standby_turn(r->s, &line);
    for (unsigned i = 1; rc == EAGAIN && !is_stopped(r); i++) {
        (void)poll(NULL, 0, TURN_MS);
        /* Which tells also whether the source is still there. */
        rc = i % TURN_ACKS == 0 ? say_ack(r) : 0;
        if (rc == 0)
            rc = xac_standby_turn(r->s, &line);
    }
    return rc == EAGAIN ? 0 : rc; /* stopped: it comes again */
}

/* take_note -- a piece of xac.addresses. */
static int
take_note(struct receiving *r, const struct xac_wire_frame *f)
{
    const struct xac_wire_note *head = (const struct xac_wire_note *)f->body;
    int rc;

    xac_assert(f->n >= sizeof *head);
    rc = xac_ship_note_piece(&r->note, r->dirfd, head->length, head->offset, head + 1,
                             f->n - sizeof *head);
    return rc == EINVAL ? strange("a list of addresses that cannot be") : rc;
}

/* ---- Rewinding ---------------------------------------------------------------------- */

/* take_hello -- the first frame of the source. */
static int
take_hello(struct receiving *r, const struct xac_wire_frame *f)
{
    int rc;

    if (r->source.version != 0)
        return strange("its greeting again");
    xac_assert(f->n == sizeof r->source);
    memcpy(&r->source, f->body, sizeof r->source);
    rc = check_hello(r);
    r->source.version = XAC_WIRE_VERSION;
    return rc;
}

/* must_rewind -- is it an environment of its own that is to follow, or on its way to that? */
static bool
must_rewind(const struct receiving *r)
{
    xac_assert(r->dirfd >= 0);
    return faccessat(r->dirfd, XAC_REWIND_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0
           || (r->opt->rewinds && is_own(r));
}

/* hear_hello -- of the source; its words if it says no. */
static int
hear_hello(struct receiving *r, const struct xac_wire_hello *own)
{
    struct xac_wire_frame f = {.type = XAC_WIRE_NONE};
    int rc = 0;

    xac_assert(r->source.version == 0);
    while (rc == 0 && f.type == XAC_WIRE_NONE && !is_stopped(r))
        rc = xac_wire_get(&r->w, LOOK_MS, &f);
    if (rc == 0 && f.type == XAC_WIRE_NONE)
        return xac_err(EPIPE, "stopped before the source said anything");
    if (rc == 0 && f.type != XAC_WIRE_HELLO)
        rc = strange("something else than its greeting first");
    if (rc == 0)
        rc = take_hello(r, &f);
    if (rc == 0 && memcmp(r->source.identity, own->identity, sizeof own->identity) != 0)
        rc = xac_err(XAC_EFOREIGN, "%s is another environment than the source",
                     r->opt->dir);
    return rc;
}

/* rewind_files -- all but the log; the source then sends log from where the standby's begins. */
static int
rewind_files(struct receiving *r)
{
    struct xac_rewind *rw = (struct xac_rewind *)calloc(1, sizeof *rw);
    struct xac_wire_hello hello;
    int rc;

    xac_assert(r->lockfd >= 0);
    if (rw == NULL)
        return xac_err(ENOMEM, "%s", r->opt->dir);
    rw->w = &r->w;
    rw->stop = r->opt->stop;
    rw->own.dir = r->opt->dir;
    rw->own.dirfd = r->dirfd;
    rc = xac_rewind_open(rw, &hello);
    if (rc == 0)
        rc = greet(r, &hello);
    if (rc == 0)
        rc = hear_hello(r, &hello);
    if (rc == 0)
        rc = xac_rewind_run(rw);
    r->whole_lsn = rw->note.whole_lsn;
    r->rep->was_rewound = rc == 0;
    r->rep->fork_lsn = rw->note.line.end_lsn;
    r->rep->pages = rw->pages;
    xac_rewind_close(rw);
    free(rw);
    return rc;
}

/* begin_rewind -- or go on with one; then it is a standby that nobody may see. */
static int
begin_rewind(struct receiving *r)
{
    struct xac_rewind_note note = {.n_files = 0};
    bool is_new;
    /* Before a lock file is made. */
    int rc = is_own(r) ? xac_group_note_refuse(r->dirfd) : 0;

    xac_assert(r->s == NULL);
    if (rc == 0)
        rc = xac_standby_lock(r->dirfd, r->opt->dir, &r->lockfd);
    if (rc == 0)
        rc = xac_rewind_note_read(r->dirfd, &note);
    r->whole_lsn = rc == 0 ? note.whole_lsn : 0;
    if (rc == ENOENT)
        rc = 0;
    xac_rewind_note_free(&note);
    is_new = r->whole_lsn == 0;
    if (rc == 0 && is_new)
        rc = rewind_files(r);
    if (rc == 0)
        rc = xac_standby_start_rewound(r->dirfd, r->opt->dir, &r->s);
    if (rc == 0)
        rc = is_new ? say_ack(r) : say_hello(r);
    return rc;
}

/* become_whole -- once it has all that its files have: from then on it is a standby as any other. */
static int
become_whole(struct receiving *r)
{
    struct xac_standby_place at;
    int rc;

    xac_assert(r->s != NULL);
    xac_standby_where(r->s, &at);
    if (r->whole_lsn == 0 || at.durable < r->whole_lsn)
        return 0;
    rc = xac_standby_rest(r->s);
    xac_standby_close(r->s);
    r->s = NULL;
    if (rc == 0)
        rc = xac_rewind_note_remove(r->dirfd);
    xac_kill_point("rewind done");
    r->whole_lsn = 0;
    return rc == 0 ? open_standby(r) : rc;
}

/* ---- Frames ------------------------------------------------------------------------- */

/* take_copied -- the copy is complete. */
static int
take_copied(struct receiving *r, const struct xac_wire_frame *f)
{
    int rc = xac_copy_end(&r->copy, f, r->source.identity);

    xac_assert(r->s == NULL);
    if (rc == 0)
        rc = open_standby(r);
    r->rep->was_copied = rc == 0;
    return rc == 0 ? say_ack(r) : rc;
}

/* take_for_copy -- a frame while there is no standby yet. */
static int
take_for_copy(struct receiving *r, const struct xac_wire_frame *f)
{
    xac_assert(r->s == NULL);
    switch (f->type) {
    case XAC_WIRE_FILE:
        return xac_copy_file_begin(&r->copy, f);
    case XAC_WIRE_PIECE:
        return xac_copy_piece(&r->copy, f);
    case XAC_WIRE_COPIED:
        return take_copied(r, f);
    case XAC_WIRE_BEAT:
        return 0;
    default:
        return strange("log, before the copy is complete");
    }
}

/* take -- a frame. */
static int
take(struct receiving *r, const struct xac_wire_frame *f)
{
    xac_assert(f->type != XAC_WIRE_NONE);
    if (f->type == XAC_WIRE_HELLO)
        return take_hello(r, f);
    if (r->source.version == 0)
        return strange("something else than its greeting first");
    if (f->type == XAC_WIRE_END) {
        r->is_over = true;
        return 0;
    }
    if (r->s == NULL)
        return take_for_copy(r, f);
    switch (f->type) {
    case XAC_WIRE_LOG:
        return take_log(r, f);
    case XAC_WIRE_DATA:
        return take_data(r, f);
    case XAC_WIRE_TURN:
        return take_turn(r, f);
    case XAC_WIRE_NOTE:
        return take_note(r, f);
    case XAC_WIRE_BEAT:
        return take_beat(r, f);
    default:
        return strange("what only a standby sends, or a copy that nobody has asked for");
    }
}

/* follow -- until the source ends. */
static int
follow(struct receiving *r)
{
    struct xac_wire_frame f;
    bool has_news = false; /* something has come that is not acknowledged             */
    int rc = 0;

    xac_assert(!r->is_over);
    while (rc == 0 && !r->is_over && !is_stopped(r)) {
        rc = xac_wire_get(&r->w, LOOK_MS, &f);
        if (rc != 0 || f.type == XAC_WIRE_NONE)
            continue;
        rc = take(r, &f);
        has_news = has_news || f.type == XAC_WIRE_LOG;
        if (rc == 0 && has_news && r->s != NULL
            && (xac_standby_is_full(r->s) || !xac_wire_is_waiting(&r->w))) {
            rc = settle(r);
            if (rc == 0)
                rc = become_whole(r);
            has_news = false;
        }
    }
    return rc;
}

/* rest -- a stop in order. */
static int
rest(struct receiving *r)
{
    int rc;

    if (r->s == NULL)
        return r->is_over ? strange("its end, before the copy is complete") : 0;
    rc = xac_standby_rest(r->s);
    if (rc == 0)
        rc = say_ack(r);
    xac_assert(r->s != NULL);
    /* The source may have stopped waiting for it. */
    return rc == EPIPE ? 0 : rc;
}

/* free_all -- what has been taken; what is durable stays. */
static void
free_all(struct receiving *r)
{
    xac_assert(r->opt != NULL);
    xac_copy_close(&r->copy);
    if (r->s != NULL)
        xac_standby_close(r->s);
    if (r->env != NULL)
        (void)xac_env_close(r->env);
    xac_close_fd(&r->lockfd);
    xac_wire_close(&r->w);
    xac_close_fd(&r->dirfd);
    free(r->block);
    xac_ship_note_free(&r->note);
}

/* start -- up to where the source sends a copy, or log. */
static int
start(struct receiving *r)
{
    int rc;

    if (must_rewind(r)) {
        rc = begin_rewind(r);
        return rc == 0 ? become_whole(r) : rc;
    }
    rc = is_own(r) ? refuse_own(r) : 0;
    if (rc == 0)
        rc = has_master(r) ? open_standby(r) : begin_copy(r);
    xac_assert(rc != 0 || r->dirfd >= 0);
    return rc == 0 ? say_hello(r) : rc;
}

int
xac_receive_run(const struct xac_receive_options *options,
                struct xac_receive_report *report)
{
    struct receiving r = {.opt = options, .dirfd = -1, .lockfd = -1, .rep = report};
    int rc = xac_wire_open(&r.w, options->in, options->out);

    *report = (struct xac_receive_report){.was_copied = false};
    r.copy = (struct xac_copy_in){.fd = -1, .progress = options->progress};
    if (rc == 0)
        rc = open_dir(&r);
    if (rc == 0)
        rc = start(&r);
    if (rc == 0)
        rc = follow(&r);
    if (rc == 0)
        rc = rest(&r);
    xac_assert(rc != 0 || r.dirfd >= 0);
    if (rc != 0 && rc != EPIPE)
        xac_wire_say(&r.w, rc);
    free_all(&r);
    return rc;
}
