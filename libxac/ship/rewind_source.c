/* SPDX-License-Identifier: MIT */
/*
 * rewind_source.c -- see rewind_source.h.
 */
#include <config.h>

#include "ship/rewind_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/recover_scan.h"

/* Times to look again if a generation begins while we look. */
#define LOOK_TRIES 20

/* ---- Files ---------------------------------------------------------------------------- */

/* open_file -- a mapped one, with its length; ENOENT without words. */
static int
open_file(int dirfd, const char *path, int *fdp, uint64_t *lengthp)
{
    struct stat st;
    int rc =
        xac_stored_open(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, fdp);

    xac_assert(path[0] != '/');
    if (rc == 0 && xac_sys.fstat(*fdp, &st) != 0)
        rc = xac_err(errno, "%s: stat", path);
    else if (rc == 0 && !S_ISREG(st.st_mode))
        rc = xac_err(EINVAL, "%s: no regular file", path);
    if (rc == 0)
        *lengthp = (uint64_t)st.st_size;
    return rc == 0 || rc == ENOENT ? rc : xac_err(rc, "%s: open", path);
}

/* Where the list of files goes. */
struct listing {
    struct xac_wire *w;
    int dirfd;
    const char *below; /* directory that is listed; NULL: that of the environment       */
};

/* is_from_outside -- is it a mapped file that had another place where this environment was copied from?  Since it was
   promoted nobody may have mapped it. */
static bool
is_from_outside(const char *path)
{
    return strncmp(path, XAC_OUTSIDE_NAME "/", strlen(XAC_OUTSIDE_NAME "/")) == 0
           || strncmp(path, XAC_LATER_PREFIX, strlen(XAC_LATER_PREFIX)) == 0;
}

/* list_file -- if it is there. */
static int
list_file(const struct listing *l, const char *path)
{
    struct xac_wire_file head = {.total = 0};
    int fd = -1;
    int rc;

    xac_assert(l->dirfd >= 0);
    if (!xac_stored_is_inside(path) || strlen(path) > XAC_WIRE_PATH_MAX)
        return 0;
    rc = open_file(l->dirfd, path, &fd, &head.length);
    if (rc == 0)
        rc = xac_wire_put(l->w, XAC_WIRE_FILE, &head, sizeof head, path, strlen(path));
    xac_close_fd(&fd);
    return rc == ENOENT ? 0 : rc;
}

/* list_one -- for xac_scan_names. */
static int
list_one(void *arg, const char *name)
{
    const struct listing *l = (const struct listing *)arg;
    char path[XAC_WIRE_PATH_MAX + 1];

    xac_assert(name[0] != '\0');
    if (name[0] == '.')
        return 0;
    (void)snprintf(path, sizeof path, "%s%s%s", l->below != NULL ? l->below : "",
                   l->below != NULL ? "/" : "", name);
    return list_file(l, path);
}

/* list_outside -- what lay outside, once. */
static int
list_outside(struct listing *l)
{
    int at = -1;
    int rc = xac_scan_names(l->dirfd, XAC_LATER_PREFIX, list_one, l);

    xac_assert(l->below == NULL);
    l->below = XAC_OUTSIDE_NAME;
    if (rc == 0)
        rc = xac_stored_open(l->dirfd, XAC_OUTSIDE_NAME,
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC, &at);
    if (rc == ENOENT)
        return 0;
    if (rc == 0)
        rc = xac_scan_names(at, "", list_one, l);
    xac_close_fd(&at);
    return rc;
}

int
xac_rewind_list_files(struct xac_wire *w, int dirfd, const struct xac_address_list *known)
{
    struct listing l = {.w = w, .dirfd = dirfd};
    int rc = 0;

    xac_assert(dirfd >= 0);
    for (uint32_t i = 0; rc == 0 && i < known->n_lines; i++) {
        const char *path = xac_address_list_path(known, &known->line[i]);

        if (!is_from_outside(path)
            && xac_address_list_find(known, path) == &known->line[i])
            rc = list_file(&l, path);
    }
    return rc == 0 ? list_outside(&l) : rc;
}

int
xac_rewind_list_lines(struct xac_wire *w, const struct xac_lineage *l)
{
    struct xac_wire_line *line =
        (struct xac_wire_line *)calloc(XAC_LINEAGE_LINES, sizeof *line);
    int rc;

    xac_assert(l->n <= XAC_LINEAGE_LINES);
    if (line == NULL)
        return xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME);
    for (size_t i = 0; i < l->n; i++)
        xac_wire_line_put(&l->line[i], &line[i]);
    rc = xac_wire_put(w, XAC_WIRE_LINES, NULL, 0, line, l->n * sizeof *line);
    free(line);
    return rc == 0 ? xac_wire_flush(w) : rc;
}

/* What is being answered. */
struct answer {
    struct xac_wire *w;
    int fd;
    const char *path;
    uint64_t length;
    uint8_t *piece;
};

/* send_run -- [at, end) of the file, as far as it goes. */
static int
send_run(const struct answer *a, uint64_t at, uint64_t end, bool zeros_too)
{
    struct xac_wire_piece head = {.offset = at};
    size_t got = 1;
    int rc = 0;

    xac_assert(at <= end);
    end = end < a->length ? end : a->length;
    while (rc == 0 && got > 0 && head.offset < end) {
        size_t n = end - head.offset < XAC_WIRE_PIECE_BYTES ? (size_t)(end - head.offset)
                                                            : XAC_WIRE_PIECE_BYTES;

        rc = xac_read_full(a->fd, a->piece, n, head.offset, &got);
        if (rc != 0)
            return xac_err(rc, "%s: read", a->path);
        if (got > 0 && (zeros_too || !xac_bytes_are_zero(a->piece, got)))
            rc = xac_wire_put(a->w, XAC_WIRE_PIECE, &head, sizeof head, a->piece, got);
        head.offset += got;
    }
    return rc;
}

/* send_wanted -- the pieces. */
static int
send_wanted(struct answer *a, const struct xac_wire_want *want,
            const struct xac_wire_run *run)
{
    int rc = 0;

    xac_assert(a->fd >= 0);
    a->piece = (uint8_t *)malloc(XAC_WIRE_PIECE_BYTES);
    if (a->piece == NULL)
        return xac_err(ENOMEM, "%s", a->path);
    if ((want->flags & XAC_WIRE_WANT_WHOLE) != 0)
        rc = send_run(a, 0, UINT64_MAX, false);
    for (uint32_t i = 0; rc == 0 && i < want->n_runs; i++)
        rc = send_run(a, run[i].offset, run[i].offset + run[i].length, true);
    free(a->piece);
    return rc;
}

/* wrong -- what has been asked for cannot be. */
static int
wrong(void)
{
    return xac_err(XAC_EDAMAGED, "the standby wants what no file has");
}

/* take_want -- check it; the path gets its NUL, the runs are where they stand. */
static int
take_want(const struct xac_wire_frame *f, struct xac_wire_want *want, char *path,
          const struct xac_wire_run **runp)
{
    size_t room = f->n - sizeof *want, padded;

    xac_assert(f->type == XAC_WIRE_WANT);
    memcpy(want, f->body, sizeof *want);
    padded = ((size_t)want->path_len + 7) & ~(size_t)7;
    if (want->path_len == 0 || want->path_len > XAC_WIRE_PATH_MAX || padded > room
        || (room - padded) != want->n_runs * sizeof **runp || want->reserved != 0
        || (want->flags & ~XAC_WIRE_WANT_WHOLE) != 0)
        return wrong();
    memcpy(path, (const uint8_t *)f->body + sizeof *want, want->path_len);
    path[want->path_len] = '\0';
    *runp = (const struct xac_wire_run *)(const void *)((const uint8_t *)f->body
                                                        + sizeof *want + padded);
    for (uint32_t i = 0; i < want->n_runs; i++) {
        if ((*runp)[i].length > INT64_MAX || (*runp)[i].offset > INT64_MAX)
            return wrong();
    }
    return strlen(path) == want->path_len && xac_stored_is_inside(path) ? 0 : wrong();
}

int
xac_rewind_answer(struct xac_wire *w, int dirfd, const struct xac_address_list *known,
                  const struct xac_wire_frame *f)
{
    struct xac_wire_file head = {.length = XAC_WIRE_NO_FILE};
    struct xac_wire_run *copied = NULL;
    const struct xac_wire_run *run = NULL;
    struct xac_wire_want want;
    char path[XAC_WIRE_PATH_MAX + 1];
    struct answer a = {.w = w, .fd = -1, .path = path};
    int rc = take_want(f, &want, path, &run);

    xac_assert(dirfd >= 0);
    if (rc == 0 && !is_from_outside(path)
        && xac_address_list_find(known, path) == NULL) /* (1) */
        rc = wrong();
    /* The frame is not good any more once something is sent. */
    if (rc == 0 && want.n_runs > 0
        && (copied = (struct xac_wire_run *)malloc(want.n_runs * sizeof *copied)) == NULL)
        rc = xac_err(ENOMEM, "%s", path);
    if (rc != 0)
        return rc;
    if (want.n_runs > 0)
        memcpy(copied, run, want.n_runs * sizeof *copied);
    rc = open_file(dirfd, path, &a.fd, &a.length);
    if (rc == 0)
        head.length = a.length;
    if (rc == 0 || rc == ENOENT)
        rc = xac_wire_put(w, XAC_WIRE_FILE, &head, sizeof head, path, strlen(path));
    if (rc == 0 && a.fd >= 0)
        rc = send_wanted(&a, &want, copied);
    if (rc == 0)
        rc = xac_wire_put(w, XAC_WIRE_WANTED, NULL, 0, NULL, 0);
    xac_close_fd(&a.fd);
    free(copied);
    return rc == 0 ? xac_wire_flush(w) : rc;
}

/* ---- Log ------------------------------------------------------------------------------ */

/* last_block -- where it ends: generations without one are passed over. */
static int
last_block(const struct xac_source *s, uint64_t *endp)
{
    struct xac_lineage_line line;
    uint32_t generation = s->follow.id.generation;
    int rc;

    xac_assert(s->follow.buf != NULL);
    do {
        rc = xac_source_line(s, generation, &line);
        if (rc != 0 || line.generation == 0 || *endp != line.start_lsn)
            return rc;
        *endp = line.end_lsn;
        generation = line.previous;
    } while (generation != 0);
    return 0;
}

/* look_at_end -- ret EAGAIN: another generation has begun meanwhile. */
static int
look_at_end(const char *dir, uint64_t *endp)
{
    struct xac_source s;
    int rc = xac_source_open(&s, dir);

    xac_assert(dir[0] != '\0');
    if (rc == 0)
        rc = xac_source_seek(&s, s.master.generation, s.master.start_lsn, 0);
    if (rc == 0 && s.is_over)
        rc = EAGAIN;
    *endp = s.limit;
    if (rc == 0)
        rc = last_block(&s, endp);
    xac_source_close(&s);
    return rc;
}

int
xac_rewind_look(const char *dir, const struct xac_lineage_line *line, uint64_t lsn,
                uint64_t *endp)
{
    struct xac_followed got;
    struct xac_source s;
    int rc = xac_source_open(&s, dir);

    xac_assert(lsn >= line->start_lsn);
    if (rc == 0)
        rc = xac_source_seek(&s, line->generation, lsn, line->segment_bytes);
    if (rc == 0)
        rc = xac_source_next(&s, &got);
    xac_source_close(&s);
    if (rc != 0)
        return rc;
    rc = EAGAIN;
    for (int i = 0; i < LOOK_TRIES && rc == EAGAIN; i++)
        rc = look_at_end(dir, endp);
    return rc == EAGAIN ? xac_err(rc, "%s: processes come and go", dir) : rc;
}
