/* SPDX-License-Identifier: MIT */
/*
 * recover_scan.c -- see recover_scan.h.
 */
#include <config.h>

#include "log/recover_scan.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/log.h"
#include "log/log_segment.h"

#define WINDOW_MAX (UINT64_C(2) << 20)

/* A stray file so many segments ahead is in the way of the log: the next generation begins
   behind it.  One further away does not move the log. */
#define STRAY_NEAR 65536u

/* ---- The directory ---------------------------------------------------------------- */

int
xac_scan_names(int dirfd, const char *prefix, int (*fn)(void *arg, const char *name),
               void *arg)
{
    size_t n = strlen(prefix);
    struct dirent *e;
    DIR *dir;
    int rc = 0;
    int fd = xac_sys.openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return xac_err(errno, "environment directory: open");
    dir = fdopendir(fd);
    if (dir == NULL) {
        rc = xac_err(errno, "environment directory: open");
        (void)xac_sys.close(fd);
        return rc;
    }
    while (rc == 0) {
        errno = 0;
        e = readdir(dir);
        if (e == NULL) {
            if (errno != 0)
                rc = xac_err(errno, "environment directory: read");
            break;
        }
        if (strncmp(e->d_name, prefix, n) == 0)
            rc = fn(arg, e->d_name);
    }
    (void)closedir(dir);
    return rc;
}

/* is_far -- so far ahead that the log will not come to it soon? */
static bool
is_far(const struct xac_scan *s, uint64_t number)
{
    uint64_t redo = xac_log_segment_of(s->master.redo_lsn, s->master.segment_bytes);

    return number > redo && number - redo > STRAY_NEAR;
}

/* is_proven -- has the file the header of a segment of that number, of any size? */
static int
is_proven(const struct xac_scan *s, const char *name, uint64_t number, bool *isp)
{
    struct xac_segment_header head;
    size_t got = 0;
    int fd = xac_sys.openat(s->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    int rc = fd < 0 ? errno : xac_read_full(fd, &head, sizeof head, 0, &got);

    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: read", name);
    *isp = xac_log_segment_check(&head, name, s->master.identity, number,
                                 head.segment_bytes, s->master.page_size)
           == 0;
    if (!*isp)
        xac_err_clear(); /* no failure */
    return 0;
}

/* is_segment -- may the file of that name be a segment?  One that is far ahead must prove it. */
static int
is_segment(const struct xac_scan *s, const char *name, uint64_t number, bool *isp)
{
    unsigned want = STATX_TYPE | STATX_SIZE;
    struct statx st;

    *isp = false;
    if (number > xac_log_last_segment(s->master.segment_bytes))
        return 0;
    if (xac_sys.statx(s->dirfd, name, AT_SYMLINK_NOFOLLOW, want, &st) != 0)
        return xac_err(errno, "%s: stat", name);
    *isp = S_ISREG(st.stx_mode) && st.stx_size >= XAC_SEGMENT_HEADER;
    return *isp && is_far(s, number) ? is_proven(s, name, number, isp) : 0;
}

/* note_stray -- one that is none; number 0 if it is misnamed. */
static void
note_stray(struct xac_scan *s, const char *name, uint64_t number)
{
    uint64_t redo = xac_log_segment_of(s->master.redo_lsn, s->master.segment_bytes);

    if (s->strays.n++ == 0)
        (void)snprintf(s->strays.first, sizeof s->strays.first, "%s", name);
    if (number < redo || is_far(s, number))
        return;
    s->strays.is_in_the_way = true;
    if (number > s->max_number)
        s->max_number = number;
}

/* note_segment -- remember a segment, if it is one. */
static int
note_segment(void *arg, const char *name)
{
    struct xac_scan *s = (struct xac_scan *)arg;
    struct xac_scan_segment *grown;
    uint64_t number = 0;
    bool is = xac_log_segment_named(name, &number);
    int rc = 0;

    if (is)
        rc = is_segment(s, name, number, &is);
    if (rc != 0)
        return rc;
    if (!is) {
        note_stray(s, name, number);
        return 0;
    }
    if (number > s->max_number)
        s->max_number = number;
    if (number < xac_log_segment_of(s->master.redo_lsn, s->master.segment_bytes))
        return 0;
    grown = (struct xac_scan_segment *)realloc(s->segment,
                                               (s->n_segments + 1) * sizeof *grown);
    if (grown == NULL)
        return xac_err(ENOMEM, "list of log segments");
    s->segment = grown;
    s->segment[s->n_segments++] = (struct xac_scan_segment){.number = number};
    return 0;
}

static int
by_number(const void *a, const void *b)
{
    const struct xac_scan_segment *x = (const struct xac_scan_segment *)a;
    const struct xac_scan_segment *y = (const struct xac_scan_segment *)b;

    return (x->number > y->number) - (x->number < y->number);
}

int
xac_scan_open(struct xac_scan *s, int dirfd, const struct xac_master_slot *master)
{
    int rc;

    *s = (struct xac_scan){.dirfd = dirfd, .master = *master};
    s->file = (struct xac_rawfile)XAC_RAWFILE_CLOSED;
    s->window_lsn = s->spare_lsn = UINT64_MAX;
    memcpy(&s->id.identity, master->identity, sizeof s->id.identity);
    s->id.generation = master->generation;
    s->window_bytes =
        (size_t)(master->segment_bytes < WINDOW_MAX ? master->segment_bytes : WINDOW_MAX);
    s->window = (uint8_t *)xac_rawfile_buffer(s->window_bytes);
    if (s->window == NULL)
        return xac_err(ENOMEM, "buffer for the log");
    rc = xac_scan_names(dirfd, XAC_LOG_PREFIX, note_segment, s);
    if (rc == 0 && s->n_segments > 0)
        qsort(s->segment, s->n_segments, sizeof s->segment[0], by_number);
    return rc;
}

void
xac_scan_close(struct xac_scan *s)
{
    size_t got;

    if (s->spare_lsn != UINT64_MAX && s->ahead.is_made)
        (void)xac_ahead_wait(&s->ahead, &got);
    xac_ahead_stop(&s->ahead);
    xac_rawfile_close(&s->file);
    free(s->window);
    free(s->spare);
    free(s->block);
    free(s->segment);
    s->window = s->spare = s->block = NULL;
    s->segment = NULL;
}

/* sync_name -- fdatasync a file by name. */
static int
sync_name(const struct xac_scan *s, const char *name)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int rc = 0;
    int fd = xac_sys.openat(s->dirfd, name, flags, 0);

    if (fd < 0 || xac_sys.fdatasync(fd) != 0)
        rc = xac_err(errno, "%s: sync", name);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc;
}

/* sync_datafile -- for xac_scan_names. */
static int
sync_datafile(void *arg, const char *name)
{
    uint32_t generation;
    uint64_t serial;

    if (!xac_log_datafile_named(name, &generation, &serial))
        return 0;
    return sync_name((const struct xac_scan *)arg, name);
}

int
xac_scan_sync(struct xac_scan *s)
{
    char name[XAC_LOG_NAME_MAX];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->n_segments; i++) {
        xac_log_segment_name(name, s->segment[i].number);
        rc = sync_name(s, name);
    }
    if (rc == 0)
        rc = xac_scan_names(s->dirfd, XAC_DATA_PREFIX, sync_datafile, s);
    /* Who made the last segment may have died before its name was durable. */
    if (rc == 0 && xac_sync_dir(s->dirfd) != 0)
        rc = xac_err(errno, "environment directory: sync");
    return rc;
}

uint64_t
xac_scan_limit(const struct xac_scan *s)
{
    if (s->n_segments == 0)
        return 0;
    return s->segment[s->n_segments - 1].number * s->master.segment_bytes;
}

bool
xac_scan_is_lost(const struct xac_scan *s)
{
    return (s->master.flags & XAC_MASTER_LOGGED) != 0
           && xac_scan_limit(s) <= s->master.redo_lsn;
}

int
xac_scan_lost(const char *name)
{
    return xac_err(
        XAC_EDAMAGED,
        "%s: missing or cut short, though %s or the log names it; put it back, or restore a"
        " backup",
        name, XAC_MASTER_NAME);
}

/* ---- Bytes of the log ------------------------------------------------------------- */

static struct xac_scan_segment *
segment_find(struct xac_scan *s, uint64_t number)
{
    struct xac_scan_segment key = {.number = number};

    if (s->n_segments == 0)
        return NULL;
    return (struct xac_scan_segment *)bsearch(&key, s->segment, s->n_segments, sizeof key,
                                              by_number);
}

static uint64_t
segment_of(const struct xac_scan *s, uint64_t lsn)
{
    return xac_log_segment_of(lsn, s->master.segment_bytes);
}

static uint64_t
file_offset(const struct xac_scan *s, uint64_t lsn)
{
    return XAC_SEGMENT_HEADER + lsn % s->master.segment_bytes;
}

static void
place_set(const struct xac_scan *s, struct xac_place *p, uint64_t lsn)
{
    xac_log_segment_name(p->file, segment_of(s, lsn));
    p->offset = file_offset(s, lsn);
    p->why[0] = '\0';
    p->is_missing = false;
}

/* is_size -- can segments have it?  A header that proves itself may still hold nonsense. */
static bool
is_size(uint64_t bytes)
{
    return bytes >= XAC_SEGMENT_HEADER && bytes <= UINT32_MAX
           && (bytes & (bytes - 1)) == 0;
}

/*
 * segment_use -- make a segment the open one and verify its header, once.
 *
 * out  segp  NULL if there is no such segment
 */
static int
segment_use(struct xac_scan *s, uint64_t number, struct xac_scan_segment **segp)
{
    char name[XAC_LOG_NAME_MAX];
    const struct xac_segment_header *head;
    uint8_t *buf;
    size_t got;
    int rc;

    *segp = segment_find(s, number);
    if (*segp == NULL || (s->file_number == number && s->file.fd >= 0))
        return 0;
    xac_rawfile_close(&s->file);
    xac_log_segment_name(name, number);
    rc = xac_rawfile_open(&s->file, s->dirfd, name);
    if (rc != 0)
        return xac_err(rc, "%s: open", name);
    s->file_number = number;
    if ((*segp)->state != XAC_SEGMENT_UNREAD)
        return 0;
    buf = (uint8_t *)xac_rawfile_buffer(XAC_SEGMENT_HEADER);
    if (buf == NULL)
        return xac_err(ENOMEM, "%s", name);
    rc = xac_rawfile_read(&s->file, buf, XAC_SEGMENT_HEADER, 0, &got);
    if (rc != 0) {
        (void)xac_err(rc, "%s: read at offset 0", name);
        goto out;
    }
    head = (const struct xac_segment_header *)buf;
    rc = xac_log_segment_check(head, name, s->master.identity, number,
                               s->master.segment_bytes, s->master.page_size);
    (*segp)->state = rc == 0 ? XAC_SEGMENT_GOOD : XAC_SEGMENT_BAD;
    if (rc == XAC_EDAMAGED && is_size(head->segment_bytes)
        && xac_log_segment_check(head, name, s->master.identity, number,
                                 head->segment_bytes, s->master.page_size)
               == 0)
        (*segp)->other_bytes = head->segment_bytes;
    /* A damaged header is judged later; another environment's log never is. */
    if (rc == XAC_EDAMAGED)
        rc = 0;
out:
    free(buf);
    return rc;
}

/*
 * ahead_start -- begin to read what lies behind the window, in the segment that is open.
 *
 * Only if the window before it was the one read last: random reads, and a short log, need no
 * thread.
 */
static void
ahead_start(struct xac_scan *s, uint64_t last)
{
    uint64_t next = s->window_lsn + s->window_bytes;

    if (last + s->window_bytes != s->window_lsn || s->window_got < s->window_bytes
        || segment_of(s, next) != segment_of(s, s->window_lsn))
        return;
    if (s->spare == NULL)
        s->spare = (uint8_t *)xac_rawfile_buffer(s->window_bytes);
    if (s->spare != NULL
        && xac_ahead_start(&s->ahead, &s->file, s->spare, s->window_bytes,
                           file_offset(s, next)))
        s->spare_lsn = next;
}

/* read_failed -- words for a read of the window. */
static int
read_failed(const struct xac_scan *s, uint64_t from, int rc)
{
    return xac_err(rc, "%s: read at offset %" PRIu64, s->file.name, file_offset(s, from));
}

/* ahead_take -- if it is `from` that has been read ahead, make it the window.  No read is
   under way afterwards. */
static int
ahead_take(struct xac_scan *s, uint64_t from, bool *takenp)
{
    uint8_t *bytes = s->window;
    size_t got;
    int rc;

    *takenp = false;
    if (s->spare_lsn == UINT64_MAX)
        return 0;
    rc = xac_ahead_wait(&s->ahead, &got);
    *takenp = s->spare_lsn == from;
    s->spare_lsn = UINT64_MAX;
    if (!*takenp)
        return 0;
    if (rc != 0)
        return read_failed(s, from, rc);
    s->window = s->spare;
    s->spare = bytes;
    s->window_got = got;
    return 0;
}

/* window_read -- the window from there. */
static int
window_read(struct xac_scan *s, uint64_t from)
{
    struct xac_scan_segment *seg;
    bool taken;
    int rc = ahead_take(s, from, &taken);

    if (rc == 0 && taken)
        return 0;
    if (rc == 0)
        rc = segment_use(s, segment_of(s, from), &seg);
    if (rc != 0 || seg == NULL || (seg->state != XAC_SEGMENT_GOOD && !s->trusts_bad))
        return rc;
    rc = xac_rawfile_read(&s->file, s->window, s->window_bytes, file_offset(s, from),
                          &s->window_got);
    return rc == 0 ? 0 : read_failed(s, from, rc);
}

/* bytes_at -- the bytes of the log from lsn that are in one window; *np = 0 if the log has
   none there. */
static int
bytes_at(struct xac_scan *s, uint64_t lsn, const uint8_t **pp, size_t *np)
{
    uint64_t from = lsn & ~(uint64_t)(s->window_bytes - 1);
    uint64_t last = s->window_lsn;
    int rc;

    if (from != last) {
        s->window_lsn = UINT64_MAX;
        s->window_got = 0;
        rc = window_read(s, from);
        if (rc != 0)
            return rc;
        if (s->progress != NULL && s->window_got > 0)
            s->progress(s->progress_arg, s->window_got);
        s->window_lsn = from;
        ahead_start(s, last);
    }
    *pp = s->window + (lsn - from);
    *np = lsn - from < s->window_got ? s->window_got - (size_t)(lsn - from) : 0;
    return 0;
}

/* copy_bytes -- n bytes of the log from lsn; *gotp fewer if it breaks off before. */
static int
copy_bytes(struct xac_scan *s, uint64_t lsn, void *to, size_t n, size_t *gotp)
{
    size_t got = 0;

    while (got < n) {
        const uint8_t *p;
        size_t here;
        int rc = bytes_at(s, lsn + got, &p, &here);

        if (rc != 0)
            return rc;
        if (here == 0)
            break;
        if (here > n - got)
            here = n - got;
        memcpy((uint8_t *)to + got, p, here);
        got += here;
    }
    *gotp = got;
    return 0;
}

/* ---- Blocks ----------------------------------------------------------------------- */

/* why_missing -- the log breaks off at lsn: put it in words, and name the segment. */
static void
why_missing(struct xac_scan *s, uint64_t lsn, struct xac_place *place)
{
    uint64_t number = segment_of(s, lsn);
    const struct xac_scan_segment *seg = segment_find(s, number);

    place_set(s, place, lsn);
    if (seg == NULL) {
        place->offset = 0;
        place->is_missing = true;
        (void)snprintf(place->why, sizeof place->why, "%s",
                       number > s->max_number ? "end of the last segment"
                                              : "segment is missing");
    } else if (seg->state == XAC_SEGMENT_BAD) {
        place->offset = 0;
        (void)snprintf(place->why, sizeof place->why, "segment header is not right");
    } else {
        (void)snprintf(place->why, sizeof place->why, "segment is too short");
    }
}

/* why_no_header -- the bytes at lsn are no header of a block of this log. */
static void
why_no_header(const struct xac_scan *s, const struct xac_block *h, uint64_t lsn,
              struct xac_place *place)
{
    static const struct xac_block zeros;
    char *why = place->why;
    size_t n = sizeof place->why;

    if (memcmp(h, &zeros, sizeof zeros) == 0)
        (void)snprintf(why, n, "no block: zeros");
    else if (h->magic != XAC_BLOCK_MAGIC)
        (void)snprintf(why, n, "no block: other bytes");
    else if (h->identity != s->id.identity)
        (void)snprintf(why, n, "block of another environment");
    else if (h->generation != s->id.generation)
        (void)snprintf(why, n, "block of generation %" PRIu32 ", the log's is %" PRIu32,
                       h->generation, s->id.generation);
    else if (h->lsn != lsn)
        (void)snprintf(why, n, "block that belongs to LSN %" PRIu64, h->lsn);
    else
        (void)snprintf(why, n, "torn block: header checksum");
}

/* digest_missing -- a digest that this machine does not offer (MD5 in FIPS mode) makes no
   block a torn one. */
static int
digest_missing(int kind, const struct xac_place *place)
{
    uint8_t sum[XAC_DIGEST_MAX];
    int rc = xac_digest(kind, "", 0, sum);

    if (rc != 0)
        return xac_err(rc, "%s: offset %" PRIu64 ": checksum of kind %d", place->file,
                       place->offset, kind);
    return 0;
}

static int
block_reserve(struct xac_scan *s, size_t n)
{
    uint8_t *grown;

    if (n <= s->block_size)
        return 0;
    grown = (uint8_t *)realloc(s->block, n);
    if (grown == NULL)
        return xac_err(ENOMEM, "log block of %zu bytes", n);
    s->block = grown;
    s->block_size = n;
    return 0;
}

/* block_bytes -- n bytes of the log from lsn in one piece: in the window where they lie
   there, else copied; *gotp fewer if the log breaks off before. */
static int
block_bytes(struct xac_scan *s, uint64_t lsn, size_t n, const struct xac_block **blkp,
            size_t *gotp)
{
    const uint8_t *p;
    int rc = bytes_at(s, lsn, &p, gotp);

    if (rc == 0 && *gotp < n) {
        rc = block_reserve(s, n);
        if (rc == 0)
            rc = copy_bytes(s, lsn, s->block, n, gotp);
        p = s->block;
    }
    *blkp = (const struct xac_block *)(const void *)p;
    return rc;
}

int
xac_scan_block(struct xac_scan *s, uint64_t lsn, const struct xac_block **blkp,
               struct xac_place *place)
{
    const struct xac_block *blk;
    struct xac_block head;
    size_t got;
    int rc;

    *blkp = NULL;
    place_set(s, place, lsn);
    rc = copy_bytes(s, lsn, &head, sizeof head, &got);
    if (rc != 0)
        return rc;
    if (got < sizeof head) {
        why_missing(s, lsn + got, place);
        return 0;
    }
    if (!xac_block_head_ok(&head, s->id, lsn)) {
        why_no_header(s, &head, lsn, place);
        return 0;
    }
    if (lsn + head.length > xac_scan_limit(s)) {
        why_missing(s, xac_scan_limit(s), place);
        return 0;
    }
    rc = block_bytes(s, lsn, head.length, &blk, &got);
    if (rc != 0)
        return rc;
    if (got < head.length) {
        why_missing(s, lsn + got, place);
    } else if (xac_block_body_ok(blk)) {
        *blkp = blk;
    } else {
        rc = digest_missing(head.checksum_kind, place);
        (void)snprintf(place->why, sizeof place->why, "torn block: checksum");
    }
    return rc;
}

/* ---- Search ----------------------------------------------------------------------- */

/* next_magic -- offset of the next aligned word that looks like a block, or n. */
static size_t
next_magic(const uint8_t *p, size_t n)
{
    size_t at;
    uint32_t word;

    for (at = 0; at < n; at += XAC_BLOCK_ALIGN) {
        memcpy(&word, p + at, sizeof word);
        if (word == XAC_BLOCK_MAGIC)
            break;
    }
    return at;
}

/* candidate -- bytes that look like a block; *stepp := how far to go on. */
static int
candidate(struct xac_scan *s, uint64_t lsn, struct xac_scan_found *out, uint64_t *stepp)
{
    const struct xac_block *blk;
    struct xac_place place;
    struct xac_block head;
    struct xac_log_id newer = s->id;
    size_t got;
    int rc = copy_bytes(s, lsn, &head, sizeof head, &got);

    *stepp = XAC_BLOCK_ALIGN;
    if (rc != 0 || got < sizeof head)
        return rc;
    newer.generation = head.generation;
    if (head.generation > s->id.generation && xac_block_head_ok(&head, newer, lsn)
        && head.generation > out->newer)
        out->newer = head.generation;
    if (!xac_block_head_ok(&head, s->id, lsn))
        return 0;
    if (head.durable > out->durable && head.durable <= lsn)
        out->durable = head.durable;
    if (lsn + head.length > out->end_lsn)
        out->end_lsn = lsn + head.length;
    rc = xac_scan_block(s, lsn, &blk, &place);
    if (rc == 0 && blk != NULL) {
        out->blocks++;
        *stepp = blk->length;
    }
    return rc;
}

/* search_range -- blocks that begin in [*lsnp, end), a part of one segment. */
static int
search_range(struct xac_scan *s, uint64_t *lsnp, uint64_t end, struct xac_scan_found *out)
{
    int rc = 0;

    while (rc == 0 && *lsnp < end) {
        const uint8_t *p;
        uint64_t step;
        size_t n;

        rc = bytes_at(s, *lsnp, &p, &n);
        n -= n % XAC_BLOCK_ALIGN;
        if (rc != 0 || n == 0)
            break;
        step = next_magic(p, n);
        if (step == 0)
            rc = candidate(s, *lsnp, out, &step);
        *lsnp += step;
    }
    return rc;
}

/* next_in -- the first header in [*lsnp, end), a part of one segment. */
static int
next_in(struct xac_scan *s, uint64_t *lsnp, uint64_t end, struct xac_block *headp)
{
    int rc = 0;

    xac_assert(*lsnp % XAC_BLOCK_ALIGN == 0);
    while (*lsnp < end) {
        struct xac_log_id id = s->id;
        const uint8_t *p;
        uint64_t step;
        size_t n, got;

        rc = bytes_at(s, *lsnp, &p, &n);
        n -= n % XAC_BLOCK_ALIGN;
        if (rc != 0 || n == 0)
            break;
        step = next_magic(p, n);
        if (step == 0) {
            rc = copy_bytes(s, *lsnp, headp, sizeof *headp, &got);
            id.generation = headp->generation;
            if (rc != 0 || (got == sizeof *headp && xac_block_head_ok(headp, id, *lsnp)))
                return rc;
            step = XAC_BLOCK_ALIGN;
        }
        *lsnp += step;
    }
    headp->length = 0;
    return rc;
}

int
xac_scan_next(struct xac_scan *s, uint64_t lsn, struct xac_block *headp)
{
    uint64_t bytes = s->master.segment_bytes;
    int rc = 0;

    headp->length = 0;
    for (size_t i = 0; rc == 0 && headp->length == 0 && i < s->n_segments; i++) {
        uint64_t begin = (s->segment[i].number - 1) * bytes;

        if (begin + bytes <= lsn)
            continue;
        if (lsn < begin)
            lsn = begin;
        rc = next_in(s, &lsn, begin + bytes, headp);
    }
    return rc;
}

/* is_listed_before -- has a segment before the i-th the same other size? */
static bool
is_listed_before(const struct xac_scan *s, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (s->segment[k].other_bytes == s->segment[i].other_bytes)
            return true;
    }
    return false;
}

int
xac_scan_other(struct xac_scan *s, size_t *ip)
{
    int rc = 0;

    for (; *ip < s->n_segments; (*ip)++) {
        struct xac_scan_segment *seg;

        rc = segment_use(s, s->segment[*ip].number, &seg);
        if (rc != 0 || (seg->other_bytes != 0 && !is_listed_before(s, *ip)))
            break;
    }
    return rc;
}

int
xac_scan_search(struct xac_scan *s, uint64_t lsn, struct xac_scan_found *out)
{
    uint64_t bytes = s->master.segment_bytes;
    int rc = 0;

    *out = (struct xac_scan_found){.end_lsn = lsn};
    s->trusts_bad = true;
    s->window_lsn = UINT64_MAX;
    for (size_t i = 0; rc == 0 && i < s->n_segments; i++) {
        uint64_t begin = (s->segment[i].number - 1) * bytes;
        struct xac_scan_segment *seg;

        if (begin + bytes <= lsn)
            continue;
        if (lsn < begin)
            lsn = begin;
        rc = segment_use(s, s->segment[i].number, &seg);
        if (rc != 0)
            break;
        if (seg->state != XAC_SEGMENT_GOOD || s->file.size < XAC_SEGMENT_HEADER + bytes)
            out->any_bad = true;
        rc = search_range(s, &lsn, begin + bytes, out);
    }
    s->trusts_bad = false;
    s->window_lsn = UINT64_MAX;
    return rc;
}
