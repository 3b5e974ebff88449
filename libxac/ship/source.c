/* SPDX-License-Identifier: MIT */
/*
 * source.c -- see source.h.
 */
#include <config.h>

#include "ship/source.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "env/peek.h"
#include "log/group_note.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_next.h"
#include "log/recover_scan.h"
#include "log/rewind_note.h"
#include "log/slots.h"
#include "log/wakes.h"
#include "shared/group.h"
#include "shared/region.h"

/* How long to sleep before looking whether anybody is still attached. */
#define LOOK_MS 1000

/* Times to look again if somebody comes or goes while we look. */
#define LOOK_TRIES 100

/* ---- Opening ---------------------------------------------------------------------- */

/* watch -- note changes in the directory from now on.  Without it we look again after LOOK_MS. */
static void
watch(struct xac_source *s)
{
    xac_assert(s->dir != NULL);
    if (s->notify >= 0)
        (void)xac_sys.close(s->notify);
    s->notify = inotify_init1(IN_CLOEXEC);
    if (s->notify >= 0)
        (void)inotify_add_watch(s->notify, s->dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
}

int
xac_source_open(struct xac_source *s, const char *dir)
{
    char *path = NULL;
    int rc;

    xac_assert(dir[0] != '\0');
    *s = (struct xac_source){.dirfd = -1,
                             .logfd = -1,
                             .notify = -1,
                             .follow = {.fd = -1, .datafd = -1},
                             .env = {.dirfd = -1, .lockfd = -1}};
    s->dir = strdup(dir);
    if (s->dir == NULL)
        return xac_err(ENOMEM, "%s", dir);
    s->dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (s->dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = xac_rewind_note_refuse(s->dirfd);
    if (rc == 0)
        rc = xac_master_read(s->dirfd, &s->master);
    if (rc == ENOENT)
        return xac_err(XAC_ENOTENV, "%s: no %s", dir, XAC_MASTER_NAME);
    if (rc == 0)
        rc = xac_logdir_open(s->dirfd, NULL, s->master.identity, &s->logfd, &path);
    free(path);
    watch(s);
    return rc;
}

/* detach -- from a region that is over. */
static void
detach(struct xac_source *s)
{
    if (s->pages != NULL)
        (void)xac_sys.munmap(s->pages, s->pages_bytes);
    s->pages = NULL;
    s->followers = NULL;
    s->slot = NULL;
    xac_assert(!s->is_at_rest || !s->is_live);
    if (s->is_live)
        xac_peek_close(&s->env);
    s->is_live = false;
}

void
xac_source_close(struct xac_source *s)
{
    int fds[] = {s->dirfd, s->logfd, s->notify};

    detach(s);
    xac_assert(!s->is_live);
    xac_follow_close(&s->follow);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0)
            (void)xac_sys.close(fds[i]);
    }
    s->dirfd = s->logfd = s->notify = -1;
    free(s->dir);
    s->dir = NULL;
}

/* ---- How far the log may be read -------------------------------------------------- */

/* map_followers -- the pages of the region in which followers store. */
static int
map_followers(struct xac_source *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t at = offsetof(struct xac_control, log.followers);
    size_t from = at & ~(page - 1);
    size_t end = at + sizeof *s->followers;
    struct stat st;
    int fd, rc;

    xac_assert(s->is_live);
    xac_assert(s->pages == NULL);
    rc = xac_region_open(s->dirfd, s->env.region, &fd);

    if (rc != 0)
        return xac_err(rc, "control region %s", s->env.region);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    else if (st.st_ino != s->env.shm.handle.inode
             || st.st_dev != s->env.shm.handle.device)
        rc = EAGAIN; /* another one by now */
    s->pages_bytes = ((end + page - 1) & ~(page - 1)) - from;
    if (rc == 0) {
        s->pages = xac_sys.mmap(NULL, s->pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                fd, (off_t)from);
        rc = s->pages == MAP_FAILED ? errno : 0;
    }
    (void)xac_sys.close(fd);
    if (rc != 0) {
        s->pages = NULL;
        return xac_err(rc, "control region %s", s->env.region);
    }
    s->followers =
        (struct xac_log_followers *)(void *)((uint8_t *)s->pages + (at - from));
    return 0;
}

/* ---- The slot --------------------------------------------------------------------- */

/* slot_lost -- ret XAC_ECUTOFF, or errno. */
static int
slot_lost(const struct xac_source *s)
{
    struct xac_follow any = {.dirfd = s->logfd, .segment_bytes = s->master.segment_bytes};
    uint64_t oldest = 0;
    int rc = xac_follow_oldest(&any, &oldest);

    xac_assert(s->slot_name[0] != '\0');
    if (rc != 0)
        return rc;
    return xac_err(XAC_ECUTOFF,
                   "%s: slot %s has been given up, because it held back more than "
                   "XAC_OPT_LOG_KEEP_BYTES; the oldest log that there is begins at LSN "
                   "%" PRIu64 "; begin anew from a backup",
                   s->dir, s->slot_name, oldest);
}

/* slot_check -- is it still ours? */
static int
slot_check(const struct xac_source *s, uint64_t word)
{
    xac_assert(s->slot_name[0] != '\0');
    if (xac_slot_lsn(word) == XAC_SLOT_LOST)
        return slot_lost(s);
    if (xac_slot_lsn(word) == XAC_SLOT_FREE
        || ((word ^ s->slot_word) & XAC_SLOT_SERIAL_MASK) != 0)
        return xac_err(XAC_ECUTOFF,
                       "%s: slot %s has been removed; begin anew from a backup", s->dir,
                       s->slot_name);
    return 0;
}

/* slot_move -- to the last mark that has been kept (3). */
static void
slot_move(struct xac_source *s)
{
    xac_assert(s->slot_name[0] != '\0' || s->slot == NULL);
    if (s->slot != NULL && s->kept > xac_slot_lsn(s->slot_word)
        && slot_check(s, s->slot_word) == 0)
        s->slot_word = xac_slot_move(s->slot, s->slot_word, s->kept);
}

/* slot_bind -- find it in the region, or among those of the file. */
static int
slot_bind(struct xac_source *s, struct xac_log_followers *f)
{
    struct xac_log_slot *slot = xac_slots_find(f, s->slot_name);

    xac_assert(s->slot_name[0] != '\0');
    if (slot == NULL)
        return xac_err(XAC_ECUTOFF, "%s: there is no slot %s", s->dir, s->slot_name);
    s->slot_word = xac_slot_load(slot);
    s->slot = f == s->followers ? slot : NULL;
    slot_move(s);
    return slot_check(s, s->slot_word);
}

/* note_mark -- a block that is handed out may be one. */
static void
note_mark(struct xac_source *s, const struct xac_block *blk)
{
    const struct xac_record *rec = xac_record_next(blk, NULL);

    xac_assert(rec != NULL);
    if (rec->type == XAC_XCHECKPT_BEGIN && s->n_marks < XAC_SOURCE_MARKS)
        s->mark[s->n_marks++] = blk->lsn;
}

void
xac_source_keep(struct xac_source *s, uint64_t lsn)
{
    size_t n = 0;

    xac_assert(lsn <= s->follow.lsn);
    while (n < s->n_marks && s->mark[n] <= lsn)
        s->kept = s->mark[n++];
    memmove(s->mark, s->mark + n, (s->n_marks - n) * sizeof s->mark[0]);
    s->n_marks -= n;
    slot_move(s);
}

/* ---- Who is attached -------------------------------------------------------------- */

/* attach -- look at the region; ret 0; ENOENT: nobody is attached; EAGAIN: it has just gone; as
   xac_peek_open(). */
static int
attach(struct xac_source *s)
{
    int rc = xac_peek_open(s->dirfd, s->dir, &s->env);

    xac_assert(!s->is_live);
    if (rc != 0)
        return rc;
    s->is_live = true;
    s->is_at_rest = false;
    if (memcmp((const void *)s->env.ctl->identity, s->master.identity,
               sizeof s->master.identity)
        != 0)
        rc = xac_err(XAC_EFOREIGN, "control region %s", s->env.region);
    else if (!xac_env_is_durable(&s->env))
        rc = xac_err(ENOTSUP, "%s is not durable: it has no log to follow", s->dir);
    if (rc == 0)
        rc = map_followers(s);
    if (rc == 0 && xac_peek_is_over(&s->env))
        rc = EAGAIN;
    if (rc == 0 && s->slot_name[0] != '\0')
        rc = slot_bind(s, s->followers);
    if (rc != 0)
        detach(s);
    return rc;
}

/* bound -- of the region. */
static uint64_t
bound(const struct xac_source *s)
{
    xac_assert(s->is_live);
    /* acquire: pairs with the release in note_written. */
    return s->is_ahead
               ? atomic_load_explicit(&s->env.ctl->log.written, memory_order_acquire)
               : xac_group_bound(&s->env);
}

void
xac_source_go_ahead(struct xac_source *s)
{
    xac_assert(s->follow.buf == NULL);
    s->is_ahead = true;
}

/* end_at_rest -- nobody is attached and the gate is held: sync the log, and find its end from the
   redo position on, as a recovery would. */
static int
end_at_rest(struct xac_source *s, uint64_t *endp)
{
    const struct xac_block *blk = NULL;
    struct xac_place place;
    struct xac_scan scan;
    int rc = xac_scan_open(&scan, s->logfd, &s->master);

    if (rc == 0)
        rc = xac_scan_sync(&scan);
    *endp = s->master.redo_lsn;
    do {
        if (rc == 0)
            rc = xac_scan_block(&scan, *endp, &blk, &place);
        if (rc == 0 && blk != NULL)
            *endp += blk->length;
    } while (rc == 0 && blk != NULL);
    xac_scan_close(&scan);
    xac_assert(rc != 0 || *endp >= s->master.redo_lsn);
    return rc;
}

/* look_at_rest -- nobody seems to be attached.  ret 0; EAGAIN: somebody is. */
static int
look_at_rest(struct xac_source *s)
{
    uint64_t end;
    int fd, rc;

    xac_assert(!s->is_live);
    rc = xac_master_read(s->dirfd, &s->master);
    if (rc != 0)
        return rc;
    /* Each region comes with a generation of its own: this one has not gone on. */
    if (s->is_at_rest && s->master.generation == s->follow.id.generation)
        return 0;
    rc = xac_gate_open(s->dirfd, s->dir, &fd);
    if (rc != 0)
        return rc;
    rc = xac_region_attached(s->dirfd, s->dir, fd);
    if (rc == XAC_ELIVE)
        rc = EAGAIN;
    if (rc == 0)
        rc = xac_group_note_refuse_tail(s->dirfd);
    if (rc == 0)
        rc = xac_master_read(s->dirfd, &s->master);
    if (rc == 0 && s->master.generation == s->follow.id.generation) {
        rc = end_at_rest(s, &end);
        if (rc == 0 && s->limit < end)
            s->limit = end;
        s->is_at_rest = rc == 0;
    }
    xac_gate_leave(fd);
    (void)xac_sys.close(fd);
    return rc;
}

/* end_sealed -- the cursor's generation is over: where it ends, if xac.history says so. */
static int
end_sealed(struct xac_source *s, uint32_t present)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    const struct xac_lineage_line *next;
    int rc;

    if (l == NULL)
        return xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME);
    rc = xac_lineage_read(s->dirfd, present, l);
    if (rc == 0) {
        next = xac_lineage_behind(l, s->follow.id.generation);
        s->next = next != NULL ? *next : (struct xac_lineage_line){.generation = 0};
        s->limit = next != NULL ? next->end_lsn : XAC_FOLLOW_SEALED;
        s->is_over = true;
    }
    free(l);
    xac_assert(rc != 0 || s->is_over);
    return rc;
}

/*
 * look_once -- who is attached, and how far the cursor's generation goes.
 *
 * The region's generation counts while there is one, else that of the master record.
 */
static int
look_once(struct xac_source *s)
{
    uint32_t cursor = s->follow.id.generation, present;
    int rc = 0;

    xac_assert(xac_log_generation_ok(cursor));
    if (s->is_live && xac_peek_is_over(&s->env))
        detach(s);
    if (!s->is_live) {
        rc = attach(s);
        if (rc == ENOENT)
            rc = look_at_rest(s);
    }
    if (rc == 0 && s->is_live && xac_env_is_standby(&s->env))
        rc = xac_err(XAC_ENOTLEADER, "%s: a standby; its source has the log to follow",
                     s->dir); /* its region stays over generations */
    if (rc != 0)
        return rc;
    present = s->is_live ? s->env.ctl->generation : s->master.generation;
    if (present < cursor)
        return xac_err(EINVAL,
                       "%s: its log is of generation %" PRIu32 ", not yet %" PRIu32,
                       s->dir, present, cursor);
    if (present > cursor)
        return end_sealed(s, present);
    if (s->is_live && bound(s) > s->limit) /* (2) */
        s->limit = bound(s);
    xac_assert(s->is_live || s->is_at_rest);
    return 0;
}

/* look -- the same, again if somebody comes or goes meanwhile. */
static int
look(struct xac_source *s)
{
    int rc = EAGAIN;

    xac_assert(!s->is_over);
    for (int i = 0; i < LOOK_TRIES && rc == EAGAIN; i++)
        rc = look_once(s);
    return rc == EAGAIN ? xac_err(rc, "%s: processes come and go", s->dir) : rc;
}

/* hold_at_rest -- as the file has the slot. */
static int
hold_at_rest(struct xac_source *s)
{
    struct xac_log_followers f = {.wakes = 0};
    int rc = xac_slots_read(s->dirfd, &f);

    xac_assert(!s->is_live);
    return rc == 0 ? slot_bind(s, &f) : rc;
}

int
xac_source_hold(struct xac_source *s, const char *name, uint64_t *lsnp)
{
    int rc;

    xac_assert(s->follow.buf == NULL);
    if (!xac_slot_name_ok(name))
        return xac_err(XAC_ECUTOFF, "%s: there is no slot \"%s\"", s->dir, name);
    memcpy(s->slot_name, name, strlen(name) + 1);
    rc = attach(s);
    if (rc == ENOENT)
        rc = hold_at_rest(s);
    if (rc == 0)
        *lsnp = xac_slot_lsn(s->slot_word);
    return rc;
}

int
xac_source_seek(struct xac_source *s, uint32_t generation, uint64_t lsn,
                uint64_t segment_bytes)
{
    struct xac_master_slot at = s->master;
    int rc;

    xac_assert(s->follow.buf == NULL);
    at.generation = generation;
    if (segment_bytes != 0)
        at.segment_bytes = segment_bytes;
    if (!xac_log_generation_ok(generation) || lsn % XAC_BLOCK_ALIGN != 0
        || lsn < XAC_LSN_FIRST || lsn > XAC_LSN_LIMIT
        || at.segment_bytes < XAC_SEGMENT_HEADER
        || (at.segment_bytes & (at.segment_bytes - 1)) != 0)
        return xac_err(EINVAL, "%s: LSN %" PRIu64 " is no place in a log", s->dir, lsn);
    rc = xac_follow_open(&s->follow, s->logfd, &at, lsn);
    if (rc == 0)
        rc = look(s);
    if (rc == 0 && s->limit < lsn)
        rc = xac_err(EINVAL, "%s: its log ends at LSN %" PRIu64 ", before LSN %" PRIu64,
                     s->dir, s->limit, lsn);
    return rc;
}

int
xac_source_line(const struct xac_source *s, uint32_t generation,
                struct xac_lineage_line *line)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    const struct xac_lineage_line *found;
    int rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME)
                       : xac_lineage_read(s->dirfd, generation, l);

    xac_assert(xac_log_generation_ok(generation));
    *line = (struct xac_lineage_line){.generation = 0};
    if (rc == 0) {
        found = xac_lineage_of(l, generation);
        if (found != NULL)
            *line = *found;
        else if (generation == 1)
            *line = (struct xac_lineage_line){.generation = 1,
                                              .start_lsn = XAC_LSN_FIRST,
                                              .end_lsn = XAC_LSN_FIRST,
                                              .segment_bytes = s->master.segment_bytes};
    }
    free(l);
    return rc;
}

/* ---- The next generation ---------------------------------------------------------- */

/* goes_on -- the cursor is at the end of a generation that is over: where does the next one
   begin?  *nextp generation 0: the log does not go on. */
static int
goes_on(struct xac_source *s, struct xac_next *nextp)
{
    struct xac_follow *f = &s->follow;
    struct xac_master_slot at = s->master;
    struct xac_scan scan;
    int rc;

    xac_assert(s->is_over);
    *nextp = (struct xac_next){.lsn = xac_next_start(f->lsn),
                               .segment_bytes = f->segment_bytes,
                               .follows = true};
    rc = xac_follow_begins(f, nextp->lsn, &nextp->generation);
    if (rc != 0 || nextp->generation != 0)
        return rc;
    at.generation = f->id.generation;
    at.segment_bytes = f->segment_bytes;
    at.redo_lsn = f->lsn;
    rc = xac_scan_open(&scan, s->logfd, &at);
    if (rc == 0)
        rc = xac_next_find(&scan, f->lsn, nextp);
    xac_scan_close(&scan);
    if (rc != 0 || nextp->generation != 0)
        return rc;
    /* All generations behind this one have no block yet, so the last one begins where each of them
       has begun. */
    nextp->generation = s->master.generation;
    nextp->lsn = s->master.start_lsn;
    nextp->segment_bytes = s->master.segment_bytes;
    nextp->follows = nextp->lsn >= f->lsn;
    return 0;
}

/* turn -- to the next generation. */
static int
turn(struct xac_source *s)
{
    struct xac_follow *f = &s->follow;
    struct xac_next next;
    int rc = xac_master_read(s->dirfd, &s->master);

    xac_assert(s->is_over);
    if (rc == 0 && s->next.generation != 0)
        next = (struct xac_next){.generation = s->next.generation,
                                 .lsn = s->next.start_lsn,
                                 .segment_bytes = s->next.segment_bytes,
                                 .follows = true};
    else if (rc == 0)
        rc = goes_on(s, &next);
    if (rc != 0)
        return rc;
    if (!next.follows || next.generation <= f->id.generation)
        return xac_err(XAC_ECUTOFF,
                       "generation %" PRIu32 " of the log ends at LSN %" PRIu64
                       ", and the next one there is, %" PRIu32 ", begins at LSN %" PRIu64
                       ": log between them is missing; begin anew from a backup",
                       f->id.generation, f->lsn, next.generation, next.lsn);
    xac_assert(next.lsn >= f->lsn); /* (4) */
    if (s->n_marks < XAC_SOURCE_MARKS)
        s->mark[s->n_marks++] = next.lsn;
    xac_follow_turn(f, next.generation, next.lsn, next.segment_bytes);
    s->limit = 0;
    s->is_at_rest = s->is_over = false;
    return look(s);
}

int
xac_source_next(struct xac_source *s, struct xac_followed *out)
{
    xac_assert(s->follow.buf != NULL);
    for (;;) {
        uint64_t limit = s->limit;
        uint32_t generation = s->follow.id.generation;
        int rc = s->slot != NULL ? slot_check(s, xac_slot_load(s->slot)) : 0;

        *out = (struct xac_followed){.blk = NULL, .datafd = -1};
        if (rc == 0)
            rc = xac_follow_next(&s->follow, limit, out);
        if (rc == 0 && out->blk != NULL)
            note_mark(s, out->blk);
        if (rc != 0 || out->blk != NULL)
            return rc;
        if (s->is_over && s->limit < s->follow.lsn)
            return xac_err(XAC_ECUTOFF,
                           "%s: generation %" PRIu32
                           " of its log was cut off at LSN %" PRIu64
                           ", before LSN %" PRIu64 "; begin anew from a backup",
                           s->dir, generation, s->limit, s->follow.lsn);
        rc = s->is_over ? turn(s) : look(s);
        if (rc != 0
            || (s->limit == limit && s->follow.id.generation == generation
                && !s->is_over))
            return rc;
    }
}

/* ---- Waiting ---------------------------------------------------------------------- */

/* wait_live -- for the bound to move. */
static void
wait_live(struct xac_source *s, unsigned timeout_ms)
{
    xac_shared _Atomic uint32_t *wakes =
        s->is_ahead ? &s->followers->written_wakes : &s->followers->wakes;
    uint32_t seen;

    xac_assert(s->is_live);
    do {
        seen = xac_wakes_read(wakes);
        /* relaxed: xac_wakes_read() comes before. */
        if (bound(s) > s->limit
            || atomic_load_explicit(&s->env.ctl->closed, memory_order_relaxed) != 0)
            return;
    } while (!xac_wakes_is_announced(wakes, seen));
    xac_futex_wait(wakes, seen, timeout_ms);
}

/* wait_at_rest -- for a change in the directory. */
static void
wait_at_rest(struct xac_source *s, unsigned timeout_ms)
{
    struct pollfd p = {.fd = s->notify, .events = POLLIN};

    xac_assert(!s->is_live);
    if (poll(&p, 1, (int)timeout_ms) > 0)
        watch(s); /* before the look that follows */
}

void
xac_source_wait(struct xac_source *s, unsigned timeout_ms)
{
    xac_assert(s->follow.buf != NULL);
    if (s->is_over)
        return;
    if (timeout_ms > LOOK_MS)
        timeout_ms = LOOK_MS;
    if (s->is_live)
        wait_live(s, timeout_ms);
    else
        wait_at_rest(s, timeout_ms);
}
