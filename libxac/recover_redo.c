/* SPDX-License-Identifier: MIT */
/*
 * recover_redo.c -- see recover_redo.h.
 */
#include <config.h>

#include "recover_redo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "annot.h"
#include "block.h"
#include "err.h"
#include "sys.h"

#define OPEN_FDS_MAX 200u /* descriptors of mapped files at a time */
#define FRAMES_MIN   16u

static uint64_t
hash_page(uint32_t file, uint64_t page)
{
    uint64_t h = (page + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)file + 1))
                 * UINT64_C(0xbf58476d1ce4e5b9);

    return h ^ (h >> 29);
}

/* ---- Files ------------------------------------------------------------------------ */

/* file_position -- index of the first file whose id is not smaller. */
static size_t
file_position(const struct xac_redo *r, uint32_t id)
{
    size_t lo = 0;
    size_t hi = r->n_files;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->file[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct xac_redo_file *
file_find(const struct xac_redo *r, uint32_t id)
{
    size_t at = file_position(r, id);

    return at < r->n_files && r->file[at].id == id ? &r->file[at] : NULL;
}

static struct xac_redo_file *
file_insert(struct xac_redo *r, uint32_t id)
{
    size_t at = file_position(r, id);
    struct xac_redo_file *grown =
        (struct xac_redo_file *)realloc(r->file, (r->n_files + 1) * sizeof *grown);

    if (grown == NULL)
        return NULL;
    r->file = grown;
    memmove(grown + at + 1, grown + at, (r->n_files - at) * sizeof *grown);
    r->n_files++;
    grown[at] = (struct xac_redo_file){.id = id, .fd = -1};
    return &grown[at];
}

int
xac_redo_note_file(struct xac_redo *r, uint64_t lsn, const struct xac_xfile *rec)
{
    const char *path = (const char *)(rec + 1);
    struct xac_redo_file *f;
    char *copy;

    if (rec->r.length < sizeof *rec || rec->path_len > rec->r.length - sizeof *rec
        || rec->path_len == 0 || memchr(path, '\0', rec->path_len) != NULL)
        return XAC_EDAMAGED;
    f = file_find(r, rec->file);
    if (f == NULL)
        f = file_insert(r, rec->file);
    if (f == NULL)
        return xac_err(ENOMEM, "table of files");
    if (rec->length > f->length)
        f->length = rec->length;
    if (f->path != NULL && lsn <= f->lsn)
        return 0;
    copy = strndup(path, rec->path_len);
    if (copy == NULL)
        return xac_err(ENOMEM, "table of files");
    free(f->path);
    f->path = copy;
    f->lsn = lsn;
    f->device = rec->device;
    f->inode = rec->inode;
    return 0;
}

static void
file_close(struct xac_redo *r, struct xac_redo_file *f)
{
    if (f->fd < 0)
        return;
    (void)xac_sys.close(f->fd);
    f->fd = -1;
    r->n_open_fds--;
}

/* make_room_for_fd -- close one file, synced, if too many are open. */
static int
make_room_for_fd(struct xac_redo *r)
{
    if (r->n_open_fds < OPEN_FDS_MAX)
        return 0;
    for (size_t i = 0; i < r->n_files; i++) {
        struct xac_redo_file *f = &r->file[i];

        if (f->fd < 0)
            continue;
        /* A write error must not get lost with the descriptor. */
        if (xac_sys.fdatasync(f->fd) != 0)
            return xac_err(errno, "%s: sync", f->path);
        file_close(r, f);
        break;
    }
    return 0;
}

/* file_open -- ret 0 or errno (words noted, except for ENOENT). */
static int
file_open(struct xac_redo *r, struct xac_redo_file *f, int flags)
{
    int rc;

    if (f->fd >= 0)
        return 0;
    rc = make_room_for_fd(r);
    if (rc != 0)
        return rc;
    f->fd = xac_sys.openat(r->dirfd, f->path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    if (f->fd < 0)
        return errno == ENOENT ? ENOENT : xac_err(errno, "%s: open", f->path);
    r->n_open_fds++;
    return 0;
}

/* check_file -- is it the file that was mapped? */
static int
check_file(struct xac_redo *r, struct xac_redo_file *f, bool accept_replaced, int flags)
{
    struct stat st;
    int rc = file_open(r, f, flags);

    f->is_missing = rc == ENOENT;
    if (f->is_missing)
        return accept_replaced ? 0 : xac_err(XAC_EREPLACED, "%s: missing", f->path);
    if (rc != 0)
        return rc;
    if (xac_sys.fstat(f->fd, &st) != 0)
        return xac_err(errno, "%s: stat", f->path);
    f->is_other = st.st_dev != f->device || st.st_ino != f->inode;
    if (f->is_other && !accept_replaced)
        return xac_err(XAC_EREPLACED,
                       "%s: device %" PRIu64 " inode %" PRIu64 ", the log says device"
                       " %" PRIu64 " inode %" PRIu64,
                       f->path, (uint64_t)st.st_dev, (uint64_t)st.st_ino, f->device,
                       f->inode);
    return 0;
}

int
xac_redo_check_files(struct xac_redo *r, bool accept_replaced, bool writable)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        if (r->file[i].needed)
            rc =
                check_file(r, &r->file[i], accept_replaced, writable ? O_RDWR : O_RDONLY);
    }
    return rc;
}

/* sync_parent -- make the name of a new file durable. */
static int
sync_parent(const struct xac_redo *r, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int rc = 0;
    int fd;

    if (dir == NULL)
        return ENOMEM;
    fd = xac_sys.openat(r->dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        rc = errno;
    else
        rc = xac_sync_dir(fd);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    free(dir);
    return rc;
}

/* prepare_file -- see to it that the file exists and is long enough. */
static int
prepare_file(struct xac_redo *r, struct xac_redo_file *f)
{
    uint64_t want = f->reach > f->length ? f->reach : f->length;
    struct stat st;
    int rc = file_open(r, f, f->is_missing ? O_RDWR | O_CREAT : O_RDWR);

    if (rc == ENOENT)
        return xac_err(ENOENT, "%s: create", f->path);
    if (rc != 0)
        return rc;
    if (xac_sys.fstat(f->fd, &st) != 0)
        return xac_err(errno, "%s: stat", f->path);
    if ((uint64_t)st.st_size < want) {
        f->is_made = true;
        if (xac_sys.ftruncate(f->fd, (off_t)want) != 0)
            return xac_err(errno, "%s: extend to %" PRIu64 " bytes", f->path, want);
    }
    if ((f->is_made || f->is_missing) && xac_sys.fsync(f->fd) != 0)
        return xac_err(errno, "%s: sync", f->path);
    /* Another file may be one that a recovery made which was killed before this sync. */
    if (f->is_missing || f->is_other)
        rc = sync_parent(r, f->path);
    return rc == 0 ? 0 : xac_err(rc, "%s: sync of its directory", f->path);
}

int
xac_redo_prepare(struct xac_redo *r)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        if (r->file[i].needed)
            rc = prepare_file(r, &r->file[i]);
    }
    return rc;
}

uint64_t
xac_redo_files_needed(const struct xac_redo *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->n_files; i++)
        n += r->file[i].needed;
    return n;
}

/* ---- What is known of pages ------------------------------------------------------- */

/* page_slot -- where the page is in the table, or the free place for it. */
static struct xac_redo_page *
page_slot(struct xac_redo_page *table, size_t slots, uint32_t file, uint64_t page)
{
    size_t i = (size_t)hash_page(file, page) & (slots - 1);

    while (table[i].used && (table[i].file != file || table[i].page != page))
        i = (i + 1) & (slots - 1);
    return &table[i];
}

static int
pages_grow(struct xac_redo *r)
{
    size_t slots = r->page_slots == 0 ? 1024 : r->page_slots * 2;
    struct xac_redo_page *table =
        (struct xac_redo_page *)calloc(slots, sizeof(struct xac_redo_page));

    if (table == NULL)
        return xac_err(ENOMEM, "table of pages");
    for (size_t i = 0; i < r->page_slots; i++) {
        const struct xac_redo_page *p = &r->page[i];

        if (p->used)
            *page_slot(table, slots, p->file, p->page) = *p;
    }
    free(r->page);
    r->page = table;
    r->page_slots = slots;
    return 0;
}

/* page_find -- NULL if nothing is known of the page. */
static struct xac_redo_page *
page_find(const struct xac_redo *r, uint32_t file, uint64_t page)
{
    struct xac_redo_page *p;

    if (r->page_slots == 0)
        return NULL;
    p = page_slot(r->page, r->page_slots, file, page);
    return p->used ? p : NULL;
}

/* page_get -- the page, entered if new; NULL if out of memory. */
static struct xac_redo_page *
page_get(struct xac_redo *r, uint32_t file, uint64_t page)
{
    struct xac_redo_page *p = page_find(r, file, page);

    if (p != NULL)
        return p;
    if (r->n_pages * 4 >= r->page_slots * 3 && pages_grow(r) != 0)
        return NULL;
    p = page_slot(r->page, r->page_slots, file, page);
    *p = (struct xac_redo_page){.page = page, .file = file, .used = true};
    r->n_pages++;
    return p;
}

int
xac_redo_note_open(struct xac_redo *r, const struct xac_open_page *open)
{
    struct xac_redo_page *p = page_get(r, open->file, open->page);

    if (p == NULL)
        return ENOMEM;
    p->is_open = true;
    p->full_lsn = open->full_lsn;
    return 0;
}

/*
 * is_superseded -- a record from before the last checkpoint that the file has already.
 *
 * Of pages that are not open the file has everything up to the checkpoint.  If the open
 * pages are not known (a log cut before the end of its checkpoint), every page is redone
 * from its first full image on: that leads to the same bytes.
 */
static bool
is_superseded(const struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec)
{
    const struct xac_redo_page *p = page_find(r, rec->file, rec->page);
    bool is_full = (rec->r.flags & XAC_XDATA_FULL) != 0;

    if (lsn >= r->begin_lsn)
        return false;
    if (r->open_known)
        return p == NULL || !p->is_open || lsn < p->full_lsn;
    return !is_full && (p == NULL || !p->seen);
}

/* decide -- the verdict on a record, the same in every pass. */
static int
decide(struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec,
       enum xac_redo_verdict *verdictp)
{
    struct xac_redo_page *p;

    *verdictp = XAC_REDO_SKIP;
    if (is_superseded(r, lsn, rec))
        return 0;
    p = page_get(r, rec->file, rec->page);
    if (p == NULL)
        return ENOMEM;
    *verdictp = XAC_REDO_NO_FULL;
    if (!p->seen && (rec->r.flags & XAC_XDATA_FULL) == 0)
        return 0;
    p->seen = true;
    *verdictp = XAC_REDO_APPLY;
    return 0;
}

int
xac_redo_check(struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec,
               enum xac_redo_verdict *verdictp)
{
    struct xac_redo_file *f;
    uint64_t end;
    int rc = decide(r, lsn, rec, verdictp);

    if (rc != 0 || *verdictp != XAC_REDO_APPLY)
        return rc;
    f = file_find(r, rec->file);
    if (f == NULL) {
        *verdictp = XAC_REDO_NO_FILE;
        return 0;
    }
    if (rec->page >= (uint64_t)INT64_MAX / r->page_size
        /* Frame 0 serves as scratch: in this pass no page is held. */
        || !xac_apply_page(rec, r->frame_bytes, r->page_size)) {
        *verdictp = XAC_REDO_MALFORMED;
        return 0;
    }
    f->needed = true;
    end = (rec->page + 1) * r->page_size;
    if (end > f->reach)
        f->reach = end;
    return 0;
}

/* ---- Pages in memory -------------------------------------------------------------- */

static uint8_t *
frame_at(const struct xac_redo *r, uint32_t no)
{
    return r->frame_bytes + (size_t)no * r->page_size;
}

static int
by_file_and_page(const void *a, const void *b)
{
    const struct xac_redo_frame *x = (const struct xac_redo_frame *)a;
    const struct xac_redo_frame *y = (const struct xac_redo_frame *)b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

/* frames_write -- write all pages held to their files, in the order of the files, and
   hold none. */
static int
frames_write(struct xac_redo *r)
{
    int rc = 0;

    qsort(r->frame, r->n_frames, sizeof r->frame[0], by_file_and_page);
    for (uint32_t i = 0; rc == 0 && i < r->n_frames; i++) {
        const struct xac_redo_frame *fr = &r->frame[i];
        struct xac_redo_file *f = file_find(r, fr->file);

        rc = file_open(r, f, O_RDWR);
        if (rc == 0)
            rc = xac_write_full(f->fd, frame_at(r, fr->no), r->page_size,
                                fr->page * r->page_size);
        if (rc != 0)
            (void)xac_err(rc, "%s: write page %" PRIu64, f->path, fr->page);
    }
    memset(r->frame_slot, 0, r->frame_slots * sizeof r->frame_slot[0]);
    r->n_frames = 0;
    return rc;
}

/* frame_slot_of -- the table's entry for a page, or the free one for it. */
static uint32_t *
frame_slot_of(struct xac_redo *r, uint32_t file, uint64_t page)
{
    uint32_t i = (uint32_t)hash_page(file, page) & (r->frame_slots - 1);

    while (r->frame_slot[i] != 0) {
        const struct xac_redo_frame *fr = &r->frame[r->frame_slot[i] - 1];

        if (fr->file == file && fr->page == page)
            break;
        i = (i + 1) & (r->frame_slots - 1);
    }
    return &r->frame_slot[i];
}

/* frame_load -- bytes of a page that was written in this run and let go. */
static int
frame_load(struct xac_redo *r, struct xac_redo_file *f, uint64_t page, uint8_t *to)
{
    size_t got;
    int rc = file_open(r, f, O_RDWR);

    if (rc == 0)
        rc = xac_read_full(f->fd, to, r->page_size, page * r->page_size, &got);
    if (rc == 0 && got != r->page_size)
        rc = EIO;
    return rc == 0 ? 0 : xac_err(rc, "%s: read page %" PRIu64, f->path, page);
}

/* frame_get -- the bytes of a page, in memory. */
static int
frame_get(struct xac_redo *r, const struct xac_xdata *rec, uint8_t **bytesp)
{
    uint32_t *slot = frame_slot_of(r, rec->file, rec->page);
    uint32_t no;
    int rc = 0;

    if (*slot != 0) {
        *bytesp = frame_at(r, r->frame[*slot - 1].no);
        return 0;
    }
    if (r->n_frames == r->frames_max) {
        rc = frames_write(r);
        if (rc != 0)
            return rc;
        slot = frame_slot_of(r, rec->file, rec->page);
    }
    no = r->n_frames;
    *bytesp = frame_at(r, no);
    if ((rec->r.flags & XAC_XDATA_FULL) == 0)
        rc = frame_load(r, file_find(r, rec->file), rec->page, *bytesp);
    if (rc != 0)
        return rc;
    r->frame[no] =
        (struct xac_redo_frame){.page = rec->page, .file = rec->file, .no = no};
    r->n_frames++;
    *slot = no + 1;
    return 0;
}

int
xac_redo_apply(struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec)
{
    enum xac_redo_verdict verdict;
    struct xac_redo_file *f;
    uint8_t *bytes;
    int rc = decide(r, lsn, rec, &verdict);

    if (rc != 0 || verdict == XAC_REDO_SKIP)
        return rc;
    f = file_find(r, rec->file);
    /* The first pass has seen the same records and found them right. */
    if (verdict != XAC_REDO_APPLY || f == NULL)
        return xac_err(EIO, "the log has changed while it was read");
    f->needed = true;
    rc = frame_get(r, rec, &bytes);
    if (rc == 0 && !xac_apply_page(rec, bytes, r->page_size))
        rc = xac_err(EIO, "the log has changed while it was read");
    return rc;
}

int
xac_redo_finish(struct xac_redo *r)
{
    int rc = frames_write(r);

    for (size_t i = 0; rc == 0 && i < r->n_files; i++) {
        struct xac_redo_file *f = &r->file[i];

        if (!f->needed)
            continue;
        rc = file_open(r, f, O_RDWR);
        if (rc == 0 && xac_sys.fdatasync(f->fd) != 0)
            rc = xac_err(errno, "%s: sync", f->path);
    }
    return rc;
}

/* ---- Life ------------------------------------------------------------------------- */

int
xac_redo_init(struct xac_redo *r, int dirfd, uint32_t page_size)
{
    uint64_t frames = XAC_REDO_BYTES_MAX / page_size;

    *r = (struct xac_redo){.dirfd = dirfd, .page_size = page_size};
    if (frames > XAC_REDO_PAGES_MAX)
        frames = XAC_REDO_PAGES_MAX;
    r->frames_max = frames < FRAMES_MIN ? FRAMES_MIN : (uint32_t)frames;
    r->frame_slots = 1;
    while (r->frame_slots < 2 * r->frames_max)
        r->frame_slots *= 2;
    r->frame = (struct xac_redo_frame *)calloc(r->frames_max, sizeof r->frame[0]);
    r->frame_slot = (uint32_t *)calloc(r->frame_slots, sizeof r->frame_slot[0]);
    r->frame_bytes = (uint8_t *)malloc((size_t)r->frames_max * page_size);
    if (r->frame == NULL || r->frame_slot == NULL || r->frame_bytes == NULL)
        return xac_err(ENOMEM, "pages for recovery");
    return 0;
}

void
xac_redo_free(struct xac_redo *r)
{
    for (size_t i = 0; i < r->n_files; i++) {
        file_close(r, &r->file[i]);
        free(r->file[i].path);
    }
    free(r->file);
    free(r->page);
    free(r->frame);
    free(r->frame_slot);
    free(r->frame_bytes);
    *r = (struct xac_redo){.dirfd = -1};
}

void
xac_redo_restart(struct xac_redo *r)
{
    for (size_t i = 0; i < r->page_slots; i++)
        r->page[i].seen = false;
    for (size_t i = 0; i < r->n_files; i++) {
        r->file[i].needed = false;
        r->file[i].reach = 0;
    }
}
