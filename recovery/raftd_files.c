/* SPDX-License-Identifier: MIT */
/*
 * raftd_files.c -- see raftd_files.h.
 */
#include <config.h>

#include "raftd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "recovery/standby.h"

#define FIRST_LINE "libxac node files 1\n"
#define LAST_LINE  "end\n"

/* What to do when one is lost. */
#define REMEDY                                                                 \
 "; put it back; or have the group remove this node, and add another one; if " \
 "nobody in the group wants the file any more, remove its line from " XAC_NODE_FILES_NAME

/* ---- The list ----------------------------------------------------------------------- */

/* place_of -- index of the first file with a path that is not smaller. */
static size_t
place_of(const struct raftd_files *f, const char *path)
{
    size_t lo = 0, hi = f->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(f->file[mid].path, path) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* put -- a file, or its new length; ret 0 or ENOMEM, words noted. */
static int
put(struct raftd_files *f, const char *path, uint64_t length)
{
    size_t at = place_of(f, path);
    struct raftd_file *grown = f->file;
    char *copy;

    if (at < f->n && strcmp(f->file[at].path, path) == 0) {
        f->file[at].length = length;
        return 0;
    }
    if (f->n == f->room)
        grown = (struct raftd_file *)realloc(f->file, (2 * f->n + 16) * sizeof *grown);
    copy = strdup(path);
    if (grown != NULL && f->n == f->room) {
        f->file = grown;
        f->room = 2 * f->n + 16;
    }
    if (grown == NULL || copy == NULL) {
        free(copy);
        return xac_err(ENOMEM, "%s", XAC_NODE_FILES_NAME);
    }
    memmove(f->file + at + 1, f->file + at, (f->n - at) * sizeof f->file[0]);
    f->file[at] = (struct raftd_file){.path = copy, .length = length};
    f->n++;
    return 0;
}

/* take_out -- a file that the log has forgotten (2). */
static void
take_out(struct raftd_files *f, const char *path)
{
    size_t at = place_of(f, path);

    if (at == f->n || strcmp(f->file[at].path, path) != 0)
        return;
    free(f->file[at].path);
    f->n--;
    memmove(f->file + at, f->file + at + 1, (f->n - at) * sizeof f->file[0]);
}

void
raftd_files_free(struct raftd_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->file[i].path);
    free(f->file);
    *f = (struct raftd_files){.n = 0};
}

/* ---- Reading ------------------------------------------------------------------------ */

/* read_text -- the whole file, with a NUL, to be freed; NULL and ENOENT: there is none. */
static int
read_text(int dirfd, char **textp)
{
    int fd =
        xac_sys.openat(dirfd, XAC_NODE_FILES_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct stat st;
    size_t got = 0;
    int rc = 0;

    if (fd < 0)
        return errno == ENOENT ? ENOENT : xac_err(errno, "%s: open", XAC_NODE_FILES_NAME);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    *textp = rc == 0 ? (char *)malloc((size_t)st.st_size + 1) : NULL;
    if (rc == 0 && *textp == NULL)
        rc = ENOMEM;
    if (rc == 0)
        rc = xac_read_full(fd, *textp, (size_t)st.st_size, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0) {
        free(*textp);
        return xac_err(rc, "%s: read", XAC_NODE_FILES_NAME);
    }
    (*textp)[got] = '\0';
    return 0;
}

/* parse -- ret 0; XAC_EDAMAGED; ENOMEM; words noted. */
static int
parse(struct raftd_files *f, char *text, const char *dir)
{
    size_t n = strlen(text), first = sizeof FIRST_LINE - 1, last = sizeof LAST_LINE - 1;
    bool is_so = n >= first + last && strncmp(text, FIRST_LINE, first) == 0
                 && strcmp(text + n - last, LAST_LINE) == 0 && text[n - last - 1] == '\n';
    char *rest = NULL;
    int rc = 0;

    if (is_so)
        text[n - last] = '\0';
    for (char *line = is_so ? strtok_r(text + first, "\n", &rest) : NULL;
         rc == 0 && is_so && line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *path = NULL;
        uint64_t length = strtoull(line, &path, 10);

        is_so = path != line && path[0] == ' ' && path[1] != '\0';
        if (is_so)
            rc = put(f, path + 1, length);
    }
    return is_so ? rc
                 : xac_err(XAC_EDAMAGED, "%s/%s: not as xraftd writes it", dir,
                           XAC_NODE_FILES_NAME);
}

/* check_file -- is it there, as long as it was (1)? */
static int
check_file(const struct raftd_file *file, int dirfd, const char *dir)
{
    struct stat st;

    if (fstatat(dirfd, file->path, &st, 0) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? xac_err_whole(XAC_EREPLACED, "%s/%s: missing" REMEDY, dir,
                                   file->path)
                   : xac_err(errno, "%s/%s", dir, file->path);
    return (uint64_t)st.st_size >= file->length
               ? 0
               : xac_err_whole(XAC_EDAMAGED,
                               "%s/%s: it has %" PRIu64 " bytes, and had %" PRIu64 REMEDY,
                               dir, file->path, (uint64_t)st.st_size, file->length);
}

int
raftd_files_check(struct raftd_files *f, int dirfd, const char *dir)
{
    char *text = NULL;
    int rc = read_text(dirfd, &text);

    xac_assert(f->n == 0);
    if (rc == ENOENT)
        return 0;
    if (rc == 0)
        rc = parse(f, text, dir);
    free(text);
    for (size_t i = 0; rc == 0 && i < f->n; i++)
        rc = check_file(&f->file[i], dirfd, dir);
    return rc;
}

/* ---- Writing ------------------------------------------------------------------------ */

struct noting {
    struct raftd_files *f;
    int dirfd;
};

/* length_on_disk -- of a file, which is there, after a power cut, too (1).  ret 0; ENOENT; errno, words noted. */
static int
length_on_disk(int dirfd, const char *path, uint64_t *length)
{
    int fd = xac_sys.openat(dirfd, path, O_RDONLY | O_CLOEXEC, 0);
    struct stat st;
    int rc = fd < 0 ? errno : 0;

    if (rc == ENOENT)
        return rc;
    if (rc == 0 && (xac_sys.fsync(fd) != 0 || xac_sys.fstat(fd, &st) != 0))
        rc = errno;
    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc == 0)
        rc = xac_sync_parent(dirfd, path);
    if (rc != 0)
        return xac_err(rc, "%s: sync", path);
    *length = (uint64_t)st.st_size;
    return 0;
}

/* note -- for xac_standby_files(). */
static int
note(void *arg, const char *path, bool is_gone)
{
    const struct noting *n = (const struct noting *)arg;
    uint64_t length = 0;
    int rc;

    if (is_gone)
        take_out(n->f, path);
    if (is_gone || strchr(path, '\n') != NULL)
        return 0;
    rc = length_on_disk(n->dirfd, path, &length);
    if (rc != 0)
        return rc == ENOENT ? 0 : rc;
    return put(n->f, path, length);
}

/* write_list -- in place of the one before. */
static int
write_list(const struct raftd_files *f, int dirfd)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_NODE_FILES_NAME "-new",
                               .name = XAC_NODE_FILES_NAME,
                               .is_synced = true};
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    int rc = out == NULL ? ENOMEM : 0;

    if (rc == 0) {
        fputs(FIRST_LINE, out);
        for (size_t i = 0; i < f->n; i++)
            fprintf(out, "%" PRIu64 " %s\n", f->file[i].length, f->file[i].path);
        fputs(LAST_LINE, out);
        rc = fclose(out) == 0 ? 0 : ENOMEM;
    }
    if (rc == 0)
        rc = xac_newfile_replace(&file, text, n, NULL);
    free(text);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_NODE_FILES_NAME);
}

int
raftd_files_note(struct raftd_files *f, int dirfd, const struct xac_standby *s,
                 bool is_whole)
{
    struct noting n = {.f = f, .dirfd = dirfd};
    uint64_t changes = xac_standby_file_changes(s);
    int rc;

    if (!is_whole && changes == f->changes)
        return 0;
    rc = xac_standby_files(s, note, &n);
    if (rc == 0)
        rc = write_list(f, dirfd);
    if (rc == 0)
        f->changes = changes;
    return rc;
}

int
raftd_files_drop(struct raftd_files *f, int dirfd)
{
    raftd_files_free(f);
    return xac_sys.unlinkat(dirfd, XAC_NODE_FILES_NAME, 0) == 0 || errno == ENOENT
               ? 0
               : xac_err(errno, "%s: remove", XAC_NODE_FILES_NAME);
}
