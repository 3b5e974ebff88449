/* SPDX-License-Identifier: MIT */
/*
 * ship_copy.c -- see ship_copy.h.
 */
#include <config.h>

#include "ship/ship_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/log_keep.h"
#include "log/manifest.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "log/standby_note.h"

/* Directories in each other; a copy has as many as the paths of its files. */
#define DEPTH_MAX 64

static const char receiving_text[] =
    "xship receive copies an environment to this directory.  While this file is here and\n"
    "xac.master is not, the next xship receive removes everything in it.\n";

/* ---- Sending ------------------------------------------------------------------------ */

/* What is being sent. */
struct sending {
    struct xac_wire *w;
    int dirfd;
    const struct xac_backup_progress *progress;
    uint64_t done, total;
    bool is_counted; /* not yet: sizes are added up                                   */
    uint8_t *piece;
};

/* send_pieces -- of an open file, but for what is zeros. */
static int
send_pieces(struct sending *s, int fd, const char *path, uint64_t length)
{
    struct xac_wire_piece head = {.offset = 0};
    size_t got = 1;
    int rc = 0;

    xac_assert(fd >= 0);
    while (rc == 0 && got > 0 && head.offset < length) {
        rc = xac_read_full(fd, s->piece, XAC_WIRE_PIECE_BYTES, head.offset, &got);
        if (rc != 0)
            return xac_err(rc, "%s: read", path);
        if (got > 0 && !xac_bytes_are_zero(s->piece, got))
            rc = xac_wire_put(s->w, XAC_WIRE_PIECE, &head, sizeof head, s->piece, got);
        head.offset += got;
        s->done += got;
        if (s->progress != NULL)
            s->progress->fn(s->progress->arg, s->done, s->total);
    }
    return rc;
}

/* send_file -- one of the backup, or add up its length. */
static int
send_file(struct sending *s, const char *path)
{
    struct xac_wire_file head = {.total = s->total};
    struct stat st;
    int fd = -1;
    int rc = xac_stored_open(s->dirfd, path, O_RDONLY | O_CLOEXEC, &fd);

    if (rc == ENOENT)
        return 0; /* it was missing when the backup was made */
    if (rc != 0)
        return xac_err(rc, "%s: open", path);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s: stat", path);
    else if (strlen(path) > XAC_WIRE_PATH_MAX)
        rc = xac_err(ENAMETOOLONG, "%s", path);
    else if (!s->is_counted)
        s->total += (uint64_t)st.st_size;
    xac_assert(rc != 0 || st.st_size >= 0);
    if (rc == 0 && s->is_counted) {
        head.length = (uint64_t)st.st_size;
        rc = xac_wire_put(s->w, XAC_WIRE_FILE, &head, sizeof head, path, strlen(path));
        if (rc == 0)
            rc = send_pieces(s, fd, path, head.length);
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* is_apart -- files that the standby makes itself, or has no use for. */
static bool
is_apart(const char *name)
{
    static const char *const apart[] = {XAC_MASTER_NAME, XAC_LOCK_NAME,
                                        XAC_UNFINISHED_NAME, XAC_LOG_KEPT};

    xac_assert(name[0] != '\0');
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        if (strcmp(name, apart[i]) == 0)
            return true;
    }
    return false;
}

/* send_own -- for xac_scan_names: a file of the library's. */
static int
send_own(void *arg, const char *name)
{
    struct sending *s = (struct sending *)arg;
    struct stat st;

    xac_assert(s->dirfd >= 0);
    if (is_apart(name) || fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0
        || !S_ISREG(st.st_mode))
        return 0;
    return send_file(s, name);
}

/* send_all -- or add up their lengths. */
static int
send_all(struct sending *s, const struct xac_backup_note *note)
{
    int rc = xac_scan_names(s->dirfd, "xac", send_own, s);

    xac_assert(note->n_files == 0 || note->file != NULL);
    for (size_t i = 0; rc == 0 && i < note->n_files; i++) {
        /* One in the directory itself may be called like the library's. */
        bool is_sent = strchr(note->file[i].copy, '/') == NULL
                       && strncmp(note->file[i].copy, "xac", 3) == 0;

        if (!is_sent)
            rc = send_file(s, note->file[i].copy);
    }
    return rc;
}

int
xac_copy_send(struct xac_wire *w, int dirfd, const struct xac_source *source,
              const struct xac_backup_progress *progress, struct xac_copy_sent *out)
{
    struct sending s = {.w = w, .dirfd = dirfd, .progress = progress};
    struct xac_wire_copied end;
    struct xac_backup_note note;
    struct xac_lineage_line line;
    int rc = xac_backup_note_read(dirfd, &note);

    xac_assert(dirfd >= 0);
    memset(&end, 0, sizeof end);
    if (rc == 0)
        rc = xac_master_read(dirfd, &end.master);
    if (rc == 0)
        rc = xac_source_line(source, end.master.generation, &line);
    s.piece = (uint8_t *)malloc(XAC_WIRE_PIECE_BYTES);
    if (rc == 0 && s.piece == NULL)
        rc = xac_err(ENOMEM, "sending a copy");
    if (rc == 0)
        rc = send_all(&s, &note);
    s.is_counted = true;
    if (rc == 0)
        rc = send_all(&s, &note);
    if (rc == 0 && line.generation != 0)
        xac_wire_line_put(&line, &end.line);
    if (rc == 0)
        rc = xac_wire_put(w, XAC_WIRE_COPIED, &end, sizeof end, NULL, 0);
    if (rc == 0)
        rc = xac_wire_flush(w);
    *out = (struct xac_copy_sent){.generation = end.master.generation,
                                  .segment_bytes = end.master.segment_bytes,
                                  .end_lsn = note.end_lsn};
    xac_backup_note_free(&note);
    free(s.piece);
    return rc;
}

/* ---- Removing ----------------------------------------------------------------------- */

/* What is being emptied. */
struct emptying {
    int dirfd;
    int depth;
    bool is_root; /* the marks stay                                                   */
};

/* remove_one -- for xac_scan_names. */
static int
remove_one(void *arg, const char *name)
{
    const struct emptying *e = (const struct emptying *)arg;
    struct emptying below = {.depth = e->depth + 1};
    int rc = 0;

    xac_assert(e->dirfd >= 0);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0
        || (e->is_root
            && (strcmp(name, XAC_RECEIVING_NAME) == 0
                || strcmp(name, XAC_LOCK_NAME) == 0)))
        return 0;
    if (xac_sys.unlinkat(e->dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if ((errno != EISDIR && errno != EPERM) || e->depth == DEPTH_MAX)
        return xac_err(errno, "%s: remove", name);
    below.dirfd = xac_sys.openat(e->dirfd, name,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (below.dirfd < 0)
        return xac_err(errno, "%s: open", name);
    rc = xac_scan_names(below.dirfd, "", remove_one, &below);
    (void)xac_sys.close(below.dirfd);
    if (rc == 0 && xac_sys.unlinkat(e->dirfd, name, AT_REMOVEDIR) != 0)
        rc = xac_err(errno, "%s: remove", name);
    return rc;
}

int
xac_copy_remove(int dirfd, const char *name)
{
    struct emptying e = {.dirfd = dirfd};

    xac_assert(dirfd >= 0);
    return remove_one(&e, name);
}

/* ---- Receiving ---------------------------------------------------------------------- */

/* not_empty -- for xac_scan_names. */
static int
not_empty(void *arg, const char *name)
{
    xac_assert(name[0] != '\0');
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0
        || strcmp(name, XAC_LOCK_NAME) == 0)
        return 0;
    return xac_err(EEXIST, "%s: holds %s, and no standby", (const char *)arg, name);
}

/* mark -- the directory is empty: what comes into it may be removed (3). */
static int
mark(const struct xac_copy_in *c)
{
    struct xac_newfile f = {.dirfd = c->dirfd,
                            .made = XAC_RECEIVING_NAME "-new",
                            .name = XAC_RECEIVING_NAME,
                            .owner = &c->owner,
                            .is_synced = true};
    int rc = xac_newfile_replace(&f, receiving_text, sizeof receiving_text - 1, NULL);

    xac_assert(c->dirfd >= 0);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: make", c->dir, XAC_RECEIVING_NAME);
}

int
xac_copy_begin(struct xac_copy_in *c, int dirfd, const char *dir)
{
    struct emptying e = {.dirfd = dirfd, .is_root = true};
    char words[512];
    int rc;

    xac_assert(dirfd >= 0);
    *c = (struct xac_copy_in){.dirfd = dirfd,
                              .dir = dir,
                              .fd = -1,
                              .progress = c->progress};
    (void)snprintf(words, sizeof words, "%s", dir);
    rc = xac_owner_of_dir(dirfd, &c->owner);
    if (rc != 0)
        return xac_err(rc, "%s", dir);
    if (faccessat(dirfd, XAC_RECEIVING_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        rc = xac_scan_names(dirfd, "", remove_one, &e);
    else
        rc = xac_scan_names(dirfd, "", not_empty, words);
    if (rc == 0)
        rc = mark(c);
    return rc == 0 ? xac_manifest_begin(dirfd, &c->owner) : rc;
}

/* finish_file -- all of it has come. */
static int
finish_file(struct xac_copy_in *c)
{
    int rc = 0;

    if (c->fd < 0)
        return 0;
    xac_assert(c->at <= c->length);
    if (xac_sys.ftruncate(c->fd, (off_t)c->length) != 0 || xac_sys.fsync(c->fd) != 0)
        rc = xac_err(errno, "%s/%s: sync", c->dir, c->path);
    xac_close_fd(&c->fd);
    return rc;
}

void
xac_copy_close(struct xac_copy_in *c)
{
    xac_assert(c->at <= c->length);
    xac_close_fd(&c->fd);
}

/* refuse -- what the source has sent is no part of a copy. */
static int
refuse(const struct xac_copy_in *c, const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "%s: what the source sends of %s: %s", c->dir,
                   c->path[0] != '\0' ? c->path : "the copy", why);
}

/* is_own -- would the file be one that says what the directory is? */
static bool
is_own(const char *path)
{
    xac_assert(path[0] != '\0');
    return is_apart(path)
           || strncmp(path, XAC_RECEIVING_NAME, strlen(XAC_RECEIVING_NAME)) == 0;
}

int
xac_copy_file_begin(struct xac_copy_in *c, const struct xac_wire_frame *f)
{
    const struct xac_wire_file *head = (const struct xac_wire_file *)f->body;
    size_t n = f->n - sizeof *head;
    const char *name;
    int fd = -1;
    int rc = finish_file(c);

    xac_assert(n >= 1 && n <= XAC_WIRE_PATH_MAX);
    if (rc != 0)
        return rc;
    c->before += c->length;
    c->total = head->total;
    memcpy(c->path, head + 1, n);
    c->path[n] = '\0';
    c->length = head->length;
    c->at = 0;
    if (strlen(c->path) != n || !xac_stored_is_inside(c->path)
        || is_own(c->path)) { /* (1) */
        c->path[0] = '\0';
        return refuse(c, "a path that no copy has");
    }
    if (c->length > INT64_MAX)
        return refuse(c, "a length that no file has");
    rc = xac_backup_dir_parents(c->dirfd, c->dir, c->dirfd, c->path);
    if (rc == 0)
        rc = xac_stored_parent(c->dirfd, c->path, &fd, &name);
    if (rc == 0)
        rc = xac_newfile_make(fd, name, &c->owner, &c->fd);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: create", c->dir, c->path);
}

int
xac_copy_piece(struct xac_copy_in *c, const struct xac_wire_frame *f)
{
    const struct xac_wire_piece *head = (const struct xac_wire_piece *)f->body;
    size_t n = f->n - sizeof *head;
    int rc;

    xac_assert(n >= 1);
    if (c->fd < 0)
        return refuse(c, "bytes of no file");
    if (head->offset < c->at || head->offset > c->length || n > c->length - head->offset)
        return refuse(c, "bytes outside of it, or again");
    rc = xac_write_full(c->fd, head + 1, n, head->offset);
    if (rc != 0)
        return xac_err(rc, "%s/%s: write", c->dir, c->path);
    c->at = head->offset + n;
    if (c->progress != NULL && c->before + c->at <= c->total)
        c->progress->fn(c->progress->arg, c->before + c->at, c->total);
    return 0;
}

/* settle -- all files have come: names and history. */
static int
settle(struct xac_copy_in *c, const struct xac_wire_copied *end)
{
    struct xac_backup_note note;
    struct xac_lineage_line line;
    bool has_line = !xac_bytes_are_zero(&end->line, sizeof end->line);
    int rc = finish_file(c);

    xac_assert(c->fd == -1);
    if (rc != 0)
        return rc;
    c->path[0] = '\0';
    if (has_line
        && (!xac_wire_line_get(&end->line, &line)
            || line.generation != end->master.generation))
        return refuse(c, "its generation");
    rc = xac_backup_note_read(c->dirfd, &note);
    if (rc == ENOENT)
        rc = refuse(c, "it is no backup");
    if (rc == 0)
        rc = xac_backup_dir_sync(c->dirfd, c->dir, &note);
    xac_backup_note_free(&note);
    if (rc == 0 && has_line && !xac_bytes_are_zero(line.branch, sizeof line.branch))
        rc = xac_lineage_copy(c->dirfd, &line);
    return rc;
}

int
xac_copy_end(struct xac_copy_in *c, const struct xac_wire_frame *f,
             const uint8_t identity[16])
{
    const struct xac_wire_copied *end = (const struct xac_wire_copied *)f->body;
    struct xac_master_slot master = end->master;
    int rc;

    xac_assert(f->n == sizeof *end);
    if (!xac_master_is_valid(&master)
        || memcmp(master.identity, identity, sizeof master.identity) != 0)
        return refuse(c, "its master record");
    rc = settle(c, end);
    if (rc == 0)
        rc = xac_manifest_unmark(c->dirfd);
    if (rc == 0)
        rc = xac_standby_note_write(c->dirfd);
    if (rc == 0)
        rc = xac_backup_dir_master(c->dirfd, c->dir, &c->owner, &master); /* (2) */
    if (rc == 0 && xac_sys.unlinkat(c->dirfd, XAC_RECEIVING_NAME, 0) != 0)
        rc = xac_err(errno, "%s/%s: remove", c->dir, XAC_RECEIVING_NAME);
    return rc;
}
