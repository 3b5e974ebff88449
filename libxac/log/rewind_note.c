/* SPDX-License-Identifier: MIT */
/*
 * rewind_note.c -- see rewind_note.h.
 */
#include <config.h>

#include "log/rewind_note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"

/* The longest file: runs of some tens of millions of pages. */
#define BYTES_MAX ((uint64_t)1 << 30)

static size_t
padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* ---- In memory ---------------------------------------------------------------------- */

struct xac_rewind_file *
xac_rewind_note_add(struct xac_rewind_note *note, enum xac_rewind_what what,
                    const char *path)
{
    struct xac_rewind_file *grown = note->file;
    char *copy = strdup(path);

    xac_assert(xac_stored_is_inside(path));
    if (copy != NULL && note->n_files == note->files_size) {
        size_t want = 2 * note->files_size + 16;

        grown = (struct xac_rewind_file *)realloc(note->file, want * sizeof *grown);
        if (grown != NULL) {
            note->file = grown;
            note->files_size = want;
        }
    }
    if (copy == NULL || grown == NULL) {
        free(copy);
        (void)xac_err(ENOMEM, "%s", XAC_REWIND_NAME);
        return NULL;
    }
    grown[note->n_files] = (struct xac_rewind_file){.what = what, .path = copy};
    return &grown[note->n_files++];
}

int
xac_rewind_file_add(struct xac_rewind_file *f, uint64_t page)
{
    struct xac_rewind_run *last = f->n_runs > 0 ? &f->run[f->n_runs - 1] : NULL;

    xac_assert(f->what == XAC_REWIND_PAGES);
    xac_assert(last == NULL || page >= last->page + last->n);
    if (last != NULL && page == last->page + last->n) {
        last->n++;
        return 0;
    }
    if (f->n_runs == f->runs_size) {
        size_t want = 2 * f->runs_size + 16;
        struct xac_rewind_run *grown =
            (struct xac_rewind_run *)realloc(f->run, want * sizeof *grown);

        if (grown == NULL)
            return xac_err(ENOMEM, "%s", XAC_REWIND_NAME);
        f->run = grown;
        f->runs_size = want;
    }
    f->run[f->n_runs++] = (struct xac_rewind_run){.page = page, .n = 1};
    return 0;
}

void
xac_rewind_note_free(struct xac_rewind_note *note)
{
    xac_assert(note->n_files <= note->files_size);
    for (size_t i = 0; i < note->n_files; i++) {
        free(note->file[i].path);
        free(note->file[i].run);
    }
    free(note->file);
    *note = (struct xac_rewind_note){.n_files = 0};
    xac_assert(note->file == NULL);
}

/* ---- Reading ------------------------------------------------------------------------ */

/* bad -- the file is not right. */
static int
bad(const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "%s: %s", XAC_REWIND_NAME, why);
}

/* runs_ok -- do they ascend, and stay in a file? */
static bool
runs_ok(const struct xac_rewind_run *run, uint64_t n)
{
    uint64_t from = 0;

    xac_assert(n == 0 || run != NULL);
    for (uint64_t i = 0; i < n; i++) {
        if (run[i].n == 0 || run[i].page < from || run[i].page > INT64_MAX / 512
            || run[i].n > INT64_MAX / 512 - run[i].page)
            return false;
        from = run[i].page + run[i].n + 1;
    }
    return true;
}

/* take_file -- the entry at *atp, which moves behind it; ret 0, XAC_EDAMAGED, ENOMEM. */
static int
take_file(const uint8_t *body, size_t n, size_t *atp, struct xac_rewind_note *note)
{
    const struct xac_rewind_run *run;
    struct xac_rewind_file *f;
    struct xac_rewind_entry e;
    size_t room = n - *atp;
    char path[4097];

    xac_assert(*atp % 8 == 0);
    if (room < sizeof e)
        return bad("it breaks off");
    memcpy(&e, body + *atp, sizeof e);
    room -= sizeof e;
    if (e.path_len == 0 || e.path_len >= sizeof path || padded(e.path_len) > room
        || e.n_runs > (room - padded(e.path_len)) / sizeof *run)
        return bad("a file that it cannot have");
    memcpy(path, body + *atp + sizeof e, e.path_len);
    path[e.path_len] = '\0';
    *atp += sizeof e + padded(e.path_len);
    run = (const struct xac_rewind_run *)(const void *)(body + *atp);
    *atp += (size_t)e.n_runs * sizeof *run;
    if (strlen(path) != e.path_len || !xac_stored_is_inside(path)
        || e.what < XAC_REWIND_PAGES || e.what > XAC_REWIND_GONE
        || (e.n_runs > 0 && e.what != XAC_REWIND_PAGES) || !runs_ok(run, e.n_runs))
        return bad("a file that it cannot have");
    f = xac_rewind_note_add(note, (enum xac_rewind_what)e.what, path);
    if (f == NULL)
        return ENOMEM;
    if (e.n_runs == 0)
        return 0;
    f->run = (struct xac_rewind_run *)malloc((size_t)e.n_runs * sizeof *run);
    if (f->run == NULL)
        return xac_err(ENOMEM, "%s", XAC_REWIND_NAME);
    memcpy(f->run, run, (size_t)e.n_runs * sizeof *run);
    f->n_runs = f->runs_size = (size_t)e.n_runs;
    return 0;
}

/* take_head -- ret 0, XAC_EDAMAGED or XAC_EVERSION. */
static int
take_head(const struct xac_rewind_head *h, struct xac_rewind_note *note)
{
    xac_assert(note->n_files == 0);
    if (memcmp(h->magic, XAC_REWIND_MAGIC, sizeof h->magic) != 0
        || h->checksum != xac_xxh64(h, offsetof(struct xac_rewind_head, checksum)))
        return bad("checksum of its head");
    if (h->version != XAC_REWIND_VERSION)
        return xac_err(XAC_EVERSION, "%s", XAC_REWIND_NAME);
    note->whole_lsn = h->whole_lsn;
    note->own_bytes = h->own_bytes;
    note->master = h->master;
    note->line = (struct xac_lineage_line){.generation = h->generation,
                                           .previous = h->previous,
                                           .start_lsn = h->start_lsn,
                                           .end_lsn = h->end_lsn,
                                           .segment_bytes = h->segment_bytes};
    memcpy(note->line.branch, h->branch, sizeof note->line.branch);
    if (!xac_bytes_are_zero(h->reserved, sizeof h->reserved)
        || !xac_lineage_is_sound(&note->line)
        || note->master.redo_lsn != note->line.start_lsn || note->own_bytes == 0
        || (note->own_bytes & (note->own_bytes - 1)) != 0)
        return bad("a head that it cannot have");
    return 0;
}

/* parse -- the whole file. */
static int
parse(const uint8_t *bytes, size_t n, struct xac_rewind_note *note)
{
    struct xac_rewind_head h;
    size_t at = 0;
    int rc;

    if (n < sizeof h)
        return bad("too short");
    memcpy(&h, bytes, sizeof h);
    rc = take_head(&h, note);
    if (rc == 0
        && (h.body_bytes != n - sizeof h
            || h.body_check != xac_xxh64(bytes + sizeof h, n - sizeof h)))
        rc = bad("checksum of its files");
    for (uint32_t i = 0; rc == 0 && i < h.n_files; i++)
        rc = take_file(bytes + sizeof h, n - sizeof h, &at, note);
    if (rc == 0 && at != n - sizeof h)
        rc = bad("something behind its files");
    return rc;
}

int
xac_rewind_note_read(int dirfd, struct xac_rewind_note *note)
{
    uint8_t *bytes = NULL;
    struct stat st;
    size_t got = 0;
    int rc = 0;
    int fd = xac_sys.openat(dirfd, XAC_REWIND_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(dirfd >= 0);
    *note = (struct xac_rewind_note){.n_files = 0};
    if (fd < 0)
        return errno == ENOENT ? ENOENT : xac_err(errno, "%s: open", XAC_REWIND_NAME);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s: stat", XAC_REWIND_NAME);
    else if ((uint64_t)st.st_size > BYTES_MAX)
        rc = bad("too long");
    else if ((bytes = (uint8_t *)malloc((size_t)st.st_size + 1)) == NULL)
        rc = xac_err(ENOMEM, "%s", XAC_REWIND_NAME);
    if (rc == 0 && (rc = xac_read_full(fd, bytes, (size_t)st.st_size, 0, &got)) != 0)
        (void)xac_err(rc, "%s: read", XAC_REWIND_NAME);
    (void)xac_sys.close(fd);
    if (rc == 0)
        rc = parse(bytes, got, note);
    free(bytes);
    return rc;
}

/* ---- Writing ------------------------------------------------------------------------ */

/* body_bytes -- of all files. */
static size_t
body_bytes(const struct xac_rewind_note *note)
{
    size_t n = 0;

    for (size_t i = 0; i < note->n_files; i++)
        n += sizeof(struct xac_rewind_entry) + padded(strlen(note->file[i].path))
             + note->file[i].n_runs * sizeof(struct xac_rewind_run);
    xac_assert(n % 8 == 0);
    return n;
}

/* put_files -- into zeros. */
static void
put_files(const struct xac_rewind_note *note, uint8_t *to)
{
    for (size_t i = 0; i < note->n_files; i++) {
        const struct xac_rewind_file *f = &note->file[i];
        size_t path_len = strlen(f->path);
        struct xac_rewind_entry e = {.what = f->what,
                                     .path_len = (uint32_t)path_len,
                                     .n_runs = f->n_runs};

        xac_assert(note->n_files == 0 || note->file != NULL);
        xac_assert(f->n_runs == 0 || f->what == XAC_REWIND_PAGES);
        memcpy(to, &e, sizeof e);
        memcpy(to + sizeof e, f->path, path_len);
        to += sizeof e + padded(path_len);
        if (f->n_runs > 0)
            memcpy(to, f->run, f->n_runs * sizeof f->run[0]);
        to += f->n_runs * sizeof f->run[0];
    }
}

/* put_head -- before the body, which is there. */
static void
put_head(const struct xac_rewind_note *note, uint8_t *bytes, size_t n_body)
{
    struct xac_rewind_head h = {.version = XAC_REWIND_VERSION,
                                .n_files = (uint32_t)note->n_files,
                                .whole_lsn = note->whole_lsn,
                                .own_bytes = note->own_bytes,
                                .body_bytes = n_body,
                                .generation = note->line.generation,
                                .previous = note->line.previous,
                                .start_lsn = note->line.start_lsn,
                                .end_lsn = note->line.end_lsn,
                                .segment_bytes = note->line.segment_bytes,
                                .master = note->master};

    xac_assert(note->master.redo_lsn == note->line.start_lsn);
    memcpy(h.magic, XAC_REWIND_MAGIC, sizeof h.magic);
    memcpy(h.branch, note->line.branch, sizeof h.branch);
    h.body_check = xac_xxh64(bytes + sizeof h, n_body);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_rewind_head, checksum));
    memcpy(bytes, &h, sizeof h);
}

int
xac_rewind_note_write(int dirfd, const struct xac_rewind_note *note)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_REWIND_NAME "-new",
                               .name = XAC_REWIND_NAME,
                               .is_synced = true};
    size_t n = body_bytes(note);
    uint8_t *bytes = (uint8_t *)calloc(1, sizeof(struct xac_rewind_head) + n);
    struct xac_owner owner;
    int rc;

    xac_assert(dirfd >= 0);
    if (bytes == NULL)
        return xac_err(ENOMEM, "%s", XAC_REWIND_NAME);
    put_files(note, bytes + sizeof(struct xac_rewind_head));
    put_head(note, bytes, n);
    rc = xac_owner_get(dirfd, &owner);
    file.owner = &owner;
    if (rc == 0)
        rc = xac_newfile_replace(&file, bytes, sizeof(struct xac_rewind_head) + n, NULL);
    free(bytes);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_REWIND_NAME);
}

int
xac_rewind_note_remove(int dirfd)
{
    int rc = xac_sys.unlinkat(dirfd, XAC_REWIND_NAME, 0) == 0 ? 0 : errno;

    xac_assert(dirfd >= 0);
    if (rc == 0)
        rc = xac_sync_dir(dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s: remove", XAC_REWIND_NAME);
}

int
xac_rewind_note_refuse(int dirfd)
{
    xac_assert(dirfd >= 0);
    if (faccessat(dirfd, XAC_REWIND_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return xac_err(XAC_ENOTENV,
                       "%s: it is becoming a standby, and is not whole yet; start xship "
                       "rewind again",
                       XAC_REWIND_NAME);
    return errno == ENOENT ? 0 : xac_err(errno, "%s", XAC_REWIND_NAME);
}
