/* SPDX-License-Identifier: MIT */
/*
 * send.c -- see send.h.
 */
#include <config.h>

#include "ship/send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/block.h"
#include "log/master.h"
#include "shared/address_list.h"
#include "ship/rewind_source.h"
#include "ship/source.h"
#include "ship/wire.h"

/* How long to sleep when there is no log, before looking at what the standby says. */
#define LOOK_MS 100

/* After log has been sent, how long more of it is gathered.  What travels together is synced together: a standby that
   synced each commit by itself would take a third of the commits from a source on the same disk, and much of a
   processor anywhere. */
#define GATHER_MS 10

#define SECOND_NS UINT64_C(1000000000)

/* How long to wait for the standby's greeting, and for its last acknowledgement. */
#define HELLO_SECONDS 120
#define END_SECONDS   60

#define ANEW "remove the standby's directory, and receive anew from a backup"

struct sending {
    const struct xac_send_options *opt;
    struct xac_send_report *rep;
    struct xac_wire w;
    struct xac_source source;
    int lockfd;
    struct xac_wire_hello standby;
    uint8_t *piece;
    uint32_t generation; /* of the block sent last, or of the standby's end            */
    uint64_t sent;       /* LSN behind it                                             */
    uint64_t beat_ns;    /* time of the last BEAT                                     */
    uint64_t lag_ns;     /* when the lag was told last                                */
    uint64_t goal_lsn, goal_ns; /* durable at that time                               */
    uint64_t reached_ns;        /* the standby had all that was durable then           */
    struct stat addresses;      /* of xac.addresses as it was sent last                */
};

/* ---- Who may send -------------------------------------------------------------------- */

/* lock_slot -- nobody else sends for this slot. */
static int
lock_slot(struct sending *s)
{
    const char *slot = s->opt->slot;
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct xac_owner owner;
    int rc;

    lk.l_start = (off_t)(xac_xxh64(slot, strlen(slot)) >> 2);
    rc = xac_owner_get(s->source.dirfd, &owner);
    xac_assert(lk.l_start >= 0);
    if (rc == 0)
        rc = xac_newfile_open(s->source.dirfd, XAC_SENDING_LOCK, &owner, &s->lockfd);
    if (rc == 0 && xac_sys.lock(s->lockfd, F_OFD_SETLK, &lk) != 0)
        rc = errno;
    if (rc == EAGAIN || rc == EACCES)
        return xac_err(EBUSY, "%s: another process sends to the standby of slot %s",
                       s->opt->dir, slot);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s", s->opt->dir, XAC_SENDING_LOCK);
}

/* is_stopped -- by a signal. */
static bool
is_stopped(const struct sending *s)
{
    xac_assert(s->opt != NULL);
    /* relaxed: nothing else is read because of it. */
    return s->opt->stop != NULL
           && atomic_load_explicit(s->opt->stop, memory_order_relaxed);
}

/* ---- What the standby says ------------------------------------------------------------ */

/* take_ack -- the slot moves (2). */
static int
take_ack(struct sending *s, const struct xac_wire_frame *f)
{
    const struct xac_wire_ack *ack = (const struct xac_wire_ack *)f->body;

    xac_assert(f->n == sizeof *ack);
    if (ack->generation > s->generation || ack->durable > s->sent
        || ack->applied > ack->durable || ack->reserved != 0)
        return xac_err(XAC_EDAMAGED,
                       "the standby acknowledges LSN %" PRIu64
                       ", which it has not been sent",
                       ack->durable);
    if (ack->durable < s->rep->acknowledged)
        return 0;
    s->rep->acknowledged = ack->durable;
    s->rep->generation = ack->generation;
    if (s->source.follow.buf != NULL)
        xac_source_keep(&s->source, ack->durable);
    return 0;
}

/* hear -- what has come from the standby; wait for it if there is nothing. */
static int
hear(struct sending *s, unsigned timeout_ms)
{
    struct xac_wire_frame f;
    int rc;

    do {
        rc = xac_wire_get(&s->w, timeout_ms, &f);
        timeout_ms = 0;
        if (rc == 0 && f.type == XAC_WIRE_ACK)
            rc = take_ack(s, &f);
        else if (rc == 0 && f.type != XAC_WIRE_NONE)
            rc = xac_err(XAC_EDAMAGED, "the standby has sent what only a source sends");
    } while (rc == 0 && f.type != XAC_WIRE_NONE);
    xac_assert(s->rep->acknowledged <= s->sent || s->rep->acknowledged == 0);
    return rc;
}

/* hear_hello -- the standby's greeting. */
static int
hear_hello(struct sending *s)
{
    uint64_t until_ns = xac_clock_ns() + HELLO_SECONDS * SECOND_NS;
    struct xac_wire_frame f = {.type = XAC_WIRE_NONE};
    int rc = 0;

    xac_assert(s->w.in_buf != NULL);
    while (rc == 0 && f.type == XAC_WIRE_NONE) {
        rc = xac_wire_get(&s->w, LOOK_MS, &f);
        if (rc == 0 && f.type == XAC_WIRE_NONE
            && (is_stopped(s) || xac_clock_ns() > until_ns))
            rc = xac_err(ETIMEDOUT, "the standby says nothing");
    }
    if (rc != 0)
        return rc;
    if (f.type != XAC_WIRE_HELLO)
        return xac_err(XAC_EDAMAGED, "the standby does not begin with its greeting");
    memcpy(&s->standby, f.body, sizeof s->standby);
    if (s->standby.version != XAC_WIRE_VERSION
        && s->standby.version != XAC_WIRE_VERSION_REWIND)
        return xac_err(XAC_EVERSION,
                       "the standby speaks version %" PRIu32
                       " of the protocol, this is %u",
                       s->standby.version, XAC_WIRE_VERSION);
    return 0;
}

/* say_hello -- the source's greeting. */
static int
say_hello(struct sending *s)
{
    struct xac_wire_hello hello = {.version = XAC_WIRE_VERSION,
                                   .page_size = s->source.master.page_size};
    int rc;

    xac_assert(s->w.sent == 0);
    memcpy(hello.identity, s->source.master.identity, sizeof hello.identity);
    rc = xac_wire_put(&s->w, XAC_WIRE_HELLO, &hello, sizeof hello, NULL, 0);
    return rc == 0 ? xac_wire_flush(&s->w) : rc;
}

/* ---- A copy --------------------------------------------------------------------------- */

/* send_copy -- of the backup that lies in a directory, and wait until it is a standby. */
static int
send_copy(struct sending *s, int dirfd)
{
    struct xac_copy_sent sent;
    int rc = xac_copy_send(&s->w, dirfd, &s->source, s->opt->progress, &sent);

    xac_assert(dirfd >= 0);
    s->generation = sent.generation;
    s->sent = sent.end_lsn;
    while (rc == 0 && s->rep->acknowledged == 0 && !is_stopped(s))
        rc = hear(s, LOOK_MS);
    if (rc == 0)
        xac_wire_line_put(&(struct xac_lineage_line){.generation = sent.generation,
                                                     .segment_bytes = sent.segment_bytes},
                          &s->standby.line);
    s->standby.lsn = s->rep->acknowledged;
    s->rep->was_copied = rc == 0;
    return rc;
}

/* give_copy -- make a backup in the environment's directory, send it, and remove it. */
static int
give_copy(struct sending *s)
{
    char name[sizeof XAC_SENDING_PREFIX + XAC_SLOT_NAME_BYTES];
    char *to = NULL;
    int dirfd = -1;
    int rc, left;

    xac_assert(s->lockfd >= 0);
    (void)snprintf(name, sizeof name, "%s%s", XAC_SENDING_PREFIX, s->opt->slot);
    rc = xac_copy_remove(s->source.dirfd, name); /* of a sender that was killed */
    if (rc == 0 && asprintf(&to, "%s/%s", s->opt->dir, name) < 0)
        rc = xac_err(ENOMEM, "%s", s->opt->dir);
    if (rc == 0)
        rc = s->opt->copy(s->opt->copy_arg, s->opt->slot, to);
    if (rc == 0) {
        dirfd = xac_sys.openat(s->source.dirfd, name,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        rc = dirfd < 0 ? xac_err(errno, "%s", to) : send_copy(s, dirfd);
    }
    if (dirfd >= 0)
        (void)xac_sys.close(dirfd);
    free(to);
    left = xac_copy_remove(s->source.dirfd, name);
    return rc != 0 ? rc : left;
}

/* ---- Where to go on -------------------------------------------------------------------- */

/* lineage_of -- the environment's, with a line for generation 1, which has none; not if the line of generation 2
   is gone, too: then it is not known where generation 1 has ended. */
static int
lineage_of(struct sending *s, struct xac_lineage *l)
{
    int rc = xac_master_read(s->source.dirfd, &s->source.master);

    xac_assert(l != NULL);
    if (rc == 0)
        rc = xac_lineage_read(s->source.dirfd, s->source.master.generation, l);
    if (rc != 0 || s->standby.line.generation != 1 || xac_lineage_of(l, 1) != NULL
        || (l->n > 0 && l->line[0].generation != 2))
        return rc;
    if (l->n == XAC_LINEAGE_LINES)
        l->n--;
    memmove(&l->line[1], &l->line[0], l->n * sizeof l->line[0]);
    l->n++;
    return xac_source_line(&s->source, 1, &l->line[0]);
}

/* no_fork -- what a standby is told that does not fit: how it may follow all the same. */
static int
no_fork(const struct sending *s, const struct xac_lineage_line *last, uint64_t fork_lsn)
{
    xac_assert(s->standby.lsn != 0);
    return xac_err(
        XAC_EFOREIGN,
        "%s: the standby's log, which ends at LSN %" PRIu64 ", generation %" PRIu32
        ", has parted from this one at LSN %" PRIu64
        "; if it is an environment of its own, xship rewind has it follow; else " ANEW,
        s->opt->dir, s->standby.lsn, last->generation, fork_lsn);
}

/* must_fit -- (1). */
static int
must_fit(struct sending *s)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    struct xac_lineage_line last;
    uint64_t fork_lsn;
    int rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME) : lineage_of(s, l);

    if (rc == 0 && (!xac_wire_line_get(&s->standby.line, &last) || s->standby.lsn == 0))
        rc = xac_err(
            XAC_EDAMAGED,
            "the standby is in a generation, or ends at an LSN, that no log can have");
    if (rc == 0
        && (xac_lineage_of(l, last.generation) == NULL
            || (last.generation != 1
                && xac_bytes_are_zero(last.branch, sizeof last.branch))))
        rc = xac_err(XAC_EFOREIGN,
                     "%s: it is not known whether the standby's generation %" PRIu32
                     " is one of this environment; " ANEW,
                     s->opt->dir, last.generation);
    if (rc == 0 && !xac_lineage_fits(l, &last, s->standby.lsn, &fork_lsn))
        rc = no_fork(s, &last, fork_lsn);
    free(l);
    xac_assert(rc != 0 || s->standby.lsn != 0);
    return rc;
}

/* check_identity -- of one that has something. */
static int
check_identity(const struct sending *s)
{
    const struct xac_wire_hello *h = &s->standby;

    xac_assert(h->line.generation != 0);
    if (memcmp(h->identity, s->source.master.identity, sizeof h->identity) != 0)
        return xac_err(XAC_EFOREIGN, "%s: the standby follows another environment",
                       s->opt->dir);
    if (h->page_size != s->source.master.page_size)
        return xac_err(XAC_EPAGESIZE, "%s: the standby has pages of %" PRIu32 " bytes",
                       s->opt->dir, h->page_size);
    return 0;
}

/* check_standby -- the same, and its log. */
static int
check_standby(struct sending *s)
{
    int rc = check_identity(s);

    return rc == 0 ? must_fit(s) : rc;
}

/* go_there -- where the standby's log ends. */
static int
go_there(struct sending *s)
{
    const struct xac_wire_hello *h = &s->standby;
    uint64_t lsn;
    int rc = xac_source_hold(&s->source, s->opt->slot, &lsn);

    xac_assert(h->lsn != 0);
    if (rc == 0)
        rc = xac_source_seek(&s->source, h->line.generation, h->lsn,
                             h->line.segment_bytes);
    if (rc != 0)
        return rc;
    s->generation = h->line.generation;
    s->sent = h->lsn;
    s->rep->acknowledged = h->lsn;
    xac_source_keep(&s->source, h->lsn);
    return 0;
}

/* ---- Log ------------------------------------------------------------------------------- */

/* send_addresses -- xac.addresses, if it has changed since. */
static int
send_addresses(struct sending *s)
{
    struct xac_wire_note head = {.offset = 0};
    struct stat st;
    size_t got = 1;
    int rc = 0;
    int fd = xac_sys.openat(s->source.dirfd, XAC_ADDRESSES_NAME,
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(s->piece != NULL);
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", XAC_ADDRESSES_NAME);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s: stat", XAC_ADDRESSES_NAME);
    head.length = rc == 0 ? (uint64_t)st.st_size : 0;
    if (rc == 0 && st.st_ino == s->addresses.st_ino && st.st_size == s->addresses.st_size
        && st.st_mtim.tv_sec == s->addresses.st_mtim.tv_sec
        && st.st_mtim.tv_nsec == s->addresses.st_mtim.tv_nsec)
        got = 0;
    while (rc == 0 && got > 0) {
        size_t want = head.length - head.offset < XAC_WIRE_PIECE_BYTES
                          ? (size_t)(head.length - head.offset)
                          : XAC_WIRE_PIECE_BYTES;

        rc = xac_read_full(fd, s->piece, want, head.offset, &got);
        if (rc != 0)
            (void)xac_err(rc, "%s: read", XAC_ADDRESSES_NAME);
        if (rc == 0 && (got > 0 || head.length == 0))
            rc = xac_wire_put(&s->w, XAC_WIRE_NOTE, &head, sizeof head, s->piece, got);
        head.offset += got;
        if (head.offset == head.length) {
            s->addresses = st;
            got = 0;
        }
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* send_turn -- the block begins another generation (3). */
static int
send_turn(struct sending *s, const struct xac_block *blk)
{
    struct xac_lineage_line line;
    struct xac_wire_line w;
    int rc = xac_source_line(&s->source, blk->generation, &line);

    xac_assert(blk->generation > s->generation);
    if (rc != 0)
        return rc;
    if (line.generation == 0)
        line = (struct xac_lineage_line){.generation = blk->generation,
                                         .previous = s->generation,
                                         .start_lsn = blk->lsn,
                                         .end_lsn = s->sent,
                                         .segment_bytes = s->source.follow.segment_bytes};
    xac_wire_line_put(&line, &w);
    s->generation = blk->generation;
    return xac_wire_put(&s->w, XAC_WIRE_TURN, &w, sizeof w, NULL, 0);
}

/* send_data -- the data file of a block. */
static int
send_data(struct sending *s, const struct xac_followed *got)
{
    struct xac_wire_data head = {.serial = got->data->serial};
    size_t n;
    int rc = 0;

    xac_assert(got->datafd >= 0);
    do {
        rc = xac_read_full(got->datafd, s->piece, XAC_WIRE_PIECE_BYTES, head.offset, &n);
        if (rc != 0)
            return xac_err(rc, "data file %" PRIu64 ": read", head.serial);
        rc = xac_wire_put(&s->w, XAC_WIRE_DATA, &head, sizeof head, s->piece, n);
        head.offset += n;
    } while (rc == 0 && n > 0 && head.offset < got->data->length);
    s->rep->bytes += head.offset;
    return rc;
}

/* names_file -- is the block about a file, which may have got an address? */
static bool
names_file(const struct xac_block *blk)
{
    const struct xac_record *rec = xac_record_next(blk, NULL);

    xac_assert(rec != NULL);
    return rec->type == XAC_XFILE;
}

/* send_block -- and what must stand before it. */
static int
send_block(struct sending *s, const struct xac_followed *got)
{
    const struct xac_block *blk = got->blk;
    const uint8_t *bytes = (const uint8_t *)blk;
    struct xac_wire_log head = {.lsn = blk->lsn};
    size_t n = blk->length;
    int rc = 0;

    if (blk->generation != s->generation)
        rc = send_turn(s, blk);
    if (rc == 0 && names_file(blk))
        rc = send_addresses(s);
    if (rc == 0 && got->data != NULL)
        rc = send_data(s, got);
    while (rc == 0 && n > 0) {
        size_t part = n < XAC_WIRE_PIECE_BYTES ? n : XAC_WIRE_PIECE_BYTES;

        rc = xac_wire_put(&s->w, XAC_WIRE_LOG, &head, sizeof head, bytes, part);
        head.lsn += part;
        bytes += part;
        n -= part;
    }
    xac_assert(rc != 0 || blk->lsn >= s->sent);
    s->sent = blk->lsn + blk->length;
    s->rep->blocks++;
    s->rep->bytes += blk->length;
    return rc;
}

/* durable_limit -- up to where there is log to be sent. */
static uint64_t
durable_limit(const struct sending *s)
{
    xac_assert(s->source.follow.buf != NULL);
    return s->source.limit == XAC_FOLLOW_SEALED ? s->sent : s->source.limit;
}

/* note_lag -- since when has the standby all that was durable?  A goal is noted, and the next one when it has
   been reached, so the answer is late by a round trip at most. */
static void
note_lag(struct sending *s, uint64_t now_ns)
{
    xac_assert(now_ns >= s->goal_ns);
    if (s->rep->acknowledged >= s->goal_lsn) {
        s->reached_ns = s->goal_ns;
        s->goal_lsn = durable_limit(s);
        s->goal_ns = now_ns;
    }
    if (s->rep->acknowledged >= durable_limit(s))
        s->reached_ns = now_ns;
}

/* tell_lag -- to the caller, when it is time. */
static void
tell_lag(struct sending *s, uint64_t now_ns)
{
    uint64_t limit = durable_limit(s);
    struct xac_send_lag lag = {.ns = now_ns - s->reached_ns};

    xac_assert(now_ns >= s->reached_ns);
    if (s->opt->lag == NULL || now_ns - s->lag_ns < s->opt->lag_ms * (SECOND_NS / 1000))
        return;
    s->lag_ns = now_ns;
    if (limit > s->rep->acknowledged)
        lag.bytes = limit - s->rep->acknowledged;
    s->opt->lag(s->opt->lag_arg, &lag);
}

/* beat -- once a second: the standby hears that the source is there, and answers. */
static int
beat(struct sending *s)
{
    uint64_t now_ns = xac_clock_ns();
    struct xac_wire_beat b = {.lsn = durable_limit(s),
                              .time_ns = xac_clock_read(CLOCK_REALTIME)};
    int rc;

    note_lag(s, now_ns);
    tell_lag(s, now_ns);
    if (now_ns - s->beat_ns < SECOND_NS)
        return 0;
    s->beat_ns = now_ns;
    rc = send_addresses(s);
    xac_assert(s->piece != NULL);
    if (rc == 0)
        rc = xac_wire_put(&s->w, XAC_WIRE_BEAT, &b, sizeof b, NULL, 0);
    return rc == 0 ? xac_wire_flush(&s->w) : rc;
}

/* gather -- let more log come together, and hear the standby meanwhile. */
static int
gather(struct sending *s)
{
    uint64_t now_ns = xac_clock_ns();
    uint64_t until_ns = now_ns + GATHER_MS * (SECOND_NS / 1000);
    int rc = 0;

    xac_assert(s->source.follow.buf != NULL);
    while (rc == 0 && now_ns < until_ns && !is_stopped(s)) {
        rc = hear(s, (unsigned)((until_ns - now_ns) / (SECOND_NS / 1000)) + 1);
        now_ns = xac_clock_ns();
    }
    return rc;
}

/* stream -- log, until `stop`. */
static int
stream(struct sending *s)
{
    struct xac_followed got;
    uint64_t gathered = s->sent; /* LSN up to which there has been time to gather      */
    int rc = send_addresses(s);

    s->reached_ns = s->goal_ns = xac_clock_ns();
    while (rc == 0 && !is_stopped(s)) {
        rc = xac_source_next(&s->source, &got);
        if (rc == 0 && got.blk != NULL)
            rc = send_block(s, &got);
        else if (rc == 0)
            rc = xac_wire_flush(&s->w);
        if (rc == 0)
            rc = hear(s, 0);
        if (rc == 0)
            rc = beat(s);
        if (rc != 0 || got.blk != NULL)
            continue;
        if (s->sent != gathered)
            rc = gather(s);
        else
            xac_source_wait(&s->source, LOOK_MS);
        gathered = s->sent;
    }
    xac_assert(rc != 0 || is_stopped(s));
    return rc;
}

/* end -- in order: the standby has everything. */
static int
end(struct sending *s)
{
    uint64_t until_ns = xac_clock_ns() + END_SECONDS * SECOND_NS;
    int rc = xac_wire_put(&s->w, XAC_WIRE_END, NULL, 0, NULL, 0);

    if (rc == 0)
        rc = xac_wire_flush(&s->w);
    while (rc == 0 && s->rep->acknowledged < s->sent && xac_clock_ns() < until_ns)
        rc = hear(s, LOOK_MS);
    if (rc == 0 && s->rep->acknowledged < s->sent)
        rc = xac_err(ETIMEDOUT, "the standby does not acknowledge what it was sent");
    /* It closes the connection when it is done. */
    while (rc == 0 && xac_clock_ns() < until_ns)
        rc = hear(s, LOOK_MS);
    xac_assert(s->rep->acknowledged <= s->sent);
    return rc == EPIPE && s->rep->acknowledged == s->sent ? 0 : rc;
}

/* ---- Another environment is rewound ------------------------------------------------------ */

/* take_from -- log is wanted from there on; *isp: it goes on as any standby. */
static int
take_from(struct sending *s, const struct xac_wire_frame *f, bool *isp)
{
    struct xac_wire_from from;
    struct xac_wire_beat b = {.time_ns = xac_clock_read(CLOCK_REALTIME)};
    struct xac_lineage_line line;
    int rc;

    xac_assert(f->type == XAC_WIRE_FROM);
    memcpy(&from, f->body, sizeof from);
    if (!xac_wire_line_get(&from.line, &line) || from.lsn < line.start_lsn
        || from.reserved != 0 || (from.flags & ~XAC_WIRE_FROM_GO) != 0)
        return xac_err(XAC_EDAMAGED, "the standby wants log that cannot be");
    s->standby.line = from.line;
    s->standby.lsn = from.lsn;
    *isp = from.flags != 0;
    rc = must_fit(s);
    if (rc == 0)
        rc = xac_rewind_look(s->opt->dir, &line, from.lsn, &b.lsn);
    if (rc == 0)
        rc = xac_wire_put(&s->w, XAC_WIRE_BEAT, &b, sizeof b, NULL, 0);
    return rc == 0 ? xac_wire_flush(&s->w) : rc;
}

/* answer_all -- until the other side goes on with the log. */
static int
answer_all(struct sending *s, const struct xac_address_list *known)
{
    struct xac_wire_frame f;
    bool goes_on = false;
    int rc = 0;

    xac_assert(s->standby.version == XAC_WIRE_VERSION_REWIND);
    while (rc == 0 && !goes_on && !is_stopped(s)) {
        rc = xac_wire_get(&s->w, LOOK_MS, &f);
        if (rc != 0 || f.type == XAC_WIRE_NONE)
            continue;
        if (f.type == XAC_WIRE_WANT)
            rc = xac_rewind_answer(&s->w, s->source.dirfd, known, &f);
        else if (f.type == XAC_WIRE_FROM)
            rc = take_from(s, &f, &goes_on);
        else
            rc = xac_err(XAC_EDAMAGED, "the standby has sent what only a source sends");
    }
    if (!goes_on)
        s->standby.lsn = 0; /* nothing has been sent */
    s->rep->was_rewound = rc == 0 && goes_on;
    return rc;
}

/* rewind_other -- it has log that has parted from this one: it gets what it needs to follow. */
static int
rewind_other(struct sending *s)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    struct xac_address_list known;
    int rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME) : check_identity(s);

    xac_assert(s->opt->hold != NULL);
    memset(&known, 0, sizeof known);
    if (rc == 0)
        rc = s->opt->hold(s->opt->copy_arg, s->opt->slot);
    if (rc == 0)
        rc = xac_address_list_read(&known, s->source.dirfd);
    if (rc == 0)
        rc = xac_rewind_list_files(&s->w, s->source.dirfd, &known);
    if (rc == 0)
        rc = xac_master_read(s->source.dirfd, &s->source.master);
    if (rc == 0)
        rc = xac_lineage_read(s->source.dirfd, s->source.master.generation, l);
    if (rc == 0)
        rc = xac_rewind_list_lines(&s->w, l);
    free(l);
    if (rc == 0)
        rc = answer_all(s, &known);
    xac_address_list_free(&known);
    return rc;
}

/* welcome -- the other side has greeted: what it needs before log is sent. */
static int
welcome(struct sending *s)
{
    xac_assert(s->standby.version != 0);
    if (s->standby.line.generation == 0)
        return give_copy(s);
    return s->standby.version == XAC_WIRE_VERSION_REWIND ? rewind_other(s)
                                                         : check_standby(s);
}

/* begin -- up to where log is sent. */
static int
begin(struct sending *s)
{
    int rc = xac_source_open(&s->source, s->opt->dir);

    xac_assert(s->lockfd == -1);
    if (rc == 0 && !xac_slot_name_ok(s->opt->slot))
        rc = xac_err(EINVAL, "slot \"%s\": a name has 1 to %u letters, digits, and . _ -",
                     s->opt->slot, XAC_SLOT_NAME_BYTES - 1);
    if (rc == 0)
        rc = lock_slot(s);
    s->piece = (uint8_t *)malloc(XAC_WIRE_PIECE_BYTES);
    if (rc == 0 && s->piece == NULL)
        rc = xac_err(ENOMEM, "sending log");
    if (rc == 0)
        rc = say_hello(s);
    if (rc == 0)
        rc = hear_hello(s);
    if (rc == 0)
        rc = welcome(s);
    return rc;
}

int
xac_send_run(const struct xac_send_options *options, struct xac_send_report *report)
{
    struct sending s = {.opt = options, .rep = report, .lockfd = -1};
    int rc;

    xac_assert(options->copy != NULL);
    *report = (struct xac_send_report){.was_copied = false};
    s.source.dirfd = s.source.logfd = s.source.notify = -1;
    s.source.follow.fd = s.source.follow.datafd = -1;
    rc = xac_wire_open(&s.w, options->in, options->out);
    if (rc == 0)
        rc = begin(&s);
    if (rc == 0
        && s.standby.lsn != 0) { /* else `stop` has come while the copy was sent */
        rc = go_there(&s);
        if (rc == 0)
            rc = stream(&s);
    }
    if (rc == 0)
        rc = end(&s);
    if (rc != 0 && rc != EPIPE)
        xac_wire_say(&s.w, rc);
    xac_source_close(&s.source);
    xac_wire_close(&s.w);
    if (s.lockfd >= 0)
        (void)xac_sys.close(s.lockfd);
    free(s.piece);
    return rc;
}
