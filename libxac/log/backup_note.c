/* SPDX-License-Identifier: MIT */
/*
 * backup_note.c -- see backup_note.h.
 */
#include <config.h>

#include "log/backup_note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"

#define NEW_NAME      "xac-backup-new"
#define FIRST_LINE    "xac-backup 1"
#define LAST_LINE     "end"
#define SIZE_MAX_NOTE ((uint64_t)64 << 20)

int
xac_backup_note_add(struct xac_backup_note *note, const char *path, const char *copy)
{
    struct xac_backup_file *grown;
    char *p, *c;

    xac_assert(path[0] != '\0');
    xac_assert(copy[0] != '\0');
    if (strchr(path, '\n') != NULL || strchr(copy, '\n') != NULL)
        return xac_err(EINVAL, "backup: newline in the name %s", path);
    grown = (struct xac_backup_file *)realloc(note->file,
                                              (note->n_files + 1) * sizeof grown[0]);
    if (grown == NULL)
        return xac_err(ENOMEM, "backup: list of files");
    note->file = grown;
    p = strdup(path);
    c = strdup(copy);
    if (p == NULL || c == NULL) {
        free(p);
        free(c);
        return xac_err(ENOMEM, "backup: list of files");
    }
    grown[note->n_files++] = (struct xac_backup_file){p, c};
    xac_assert(note->n_files > 0);
    return 0;
}

const char *
xac_backup_note_find(const struct xac_backup_note *note, const char *path)
{
    for (size_t i = 0; i < note->n_files; i++) {
        if (strcmp(note->file[i].path, path) == 0)
            return note->file[i].copy;
    }
    return NULL;
}

void
xac_backup_note_free(struct xac_backup_note *note)
{
    for (size_t i = 0; i < note->n_files; i++) {
        free(note->file[i].path);
        free(note->file[i].copy);
    }
    free(note->file);
    *note = (struct xac_backup_note){.n_files = 0};
    xac_assert(note->file == NULL);
}

/* ---- Reading ---------------------------------------------------------------------- */

/* text_read -- the whole file, NUL-terminated; to be freed. */
static int
text_read(int dirfd, char **textp)
{
    struct stat st;
    size_t got;
    int rc = 0;
    int fd = xac_sys.openat(dirfd, XAC_BACKUP_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    *textp = NULL;
    if (fd < 0)
        return errno == ENOENT ? ENOENT : xac_err(errno, "%s: open", XAC_BACKUP_NAME);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s: stat", XAC_BACKUP_NAME);
    else if ((uint64_t)st.st_size > SIZE_MAX_NOTE)
        rc = xac_err(XAC_EDAMAGED, "%s: too long", XAC_BACKUP_NAME);
    else if ((*textp = (char *)calloc(1, (size_t)st.st_size + 1)) == NULL)
        rc = xac_err(ENOMEM, "%s", XAC_BACKUP_NAME);
    if (rc == 0) {
        rc = xac_read_full(fd, *textp, (size_t)st.st_size, 0, &got);
        if (rc != 0)
            (void)xac_err(rc, "%s: read", XAC_BACKUP_NAME);
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* line_take -- the next line, cut out of the text; NULL at its end. */
static char *
line_take(char **textp)
{
    char *begin = *textp;
    char *end = strchr(begin, '\n');

    if (end == NULL)
        return NULL;
    *end = '\0';
    *textp = end + 1;
    return begin;
}

/* check_names -- a copy lies in the backup, whatever the note says. */
static int
check_names(const char *path, const char *copy, uint64_t line)
{
    if (path[0] != '/' && !xac_stored_is_inside(path))
        return xac_err(XAC_EDAMAGED, "%s: line %" PRIu64 ": %s is no path of a file",
                       XAC_BACKUP_NAME, line, path);
    if (!xac_stored_is_inside(copy))
        return xac_err(XAC_EDAMAGED, "%s: line %" PRIu64 ": %s is outside of the backup",
                       XAC_BACKUP_NAME, line + 1, copy);
    return 0;
}

/* parse -- all lines. */
static int
parse(char *text, struct xac_backup_note *note)
{
    const char *line = line_take(&text);
    int rc = 0;

    if (line == NULL || strcmp(line, FIRST_LINE) != 0)
        return xac_err(line != NULL && strncmp(line, FIRST_LINE, 11) == 0 ? XAC_EVERSION
                                                                          : XAC_EDAMAGED,
                       "%s: first line", XAC_BACKUP_NAME);
    line = line_take(&text);
    if (line == NULL
        || sscanf(line, "%" SCNu64 " %" SCNu64, &note->end_lsn, &note->time_ns) != 2)
        return xac_err(XAC_EDAMAGED, "%s: second line", XAC_BACKUP_NAME);
    for (uint64_t n = 3; rc == 0; n += 2) {
        const char *path = line_take(&text);
        const char *copy;

        if (path != NULL && strcmp(path, LAST_LINE) == 0)
            return 0;
        copy = line_take(&text);
        if (path == NULL || copy == NULL)
            return xac_err(XAC_EDAMAGED, "%s: breaks off", XAC_BACKUP_NAME);
        rc = check_names(path, copy, n);
        if (rc == 0)
            rc = xac_backup_note_add(note, path, copy);
    }
    return rc;
}

int
xac_backup_note_read(int dirfd, struct xac_backup_note *note)
{
    char *text;
    int rc = text_read(dirfd, &text);

    *note = (struct xac_backup_note){.n_files = 0};
    if (rc == 0)
        rc = parse(text, note);
    free(text);
    return rc;
}

/* ---- Writing ---------------------------------------------------------------------- */

/* text_make -- to be freed; NULL if out of memory. */
static char *
text_make(const struct xac_backup_note *note, size_t *np)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, np);

    xac_assert(note->n_files == 0 || note->file != NULL);
    if (f == NULL)
        return NULL;
    fprintf(f, "%s\n%" PRIu64 " %" PRIu64 "\n", FIRST_LINE, note->end_lsn, note->time_ns);
    for (size_t i = 0; i < note->n_files; i++)
        fprintf(f, "%s\n%s\n", note->file[i].path, note->file[i].copy);
    fprintf(f, "%s\n", LAST_LINE);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int
xac_backup_note_write(int dirfd, const struct xac_backup_note *note)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = NEW_NAME,
                            .name = XAC_BACKUP_NAME,
                            .is_synced = true};
    size_t n = 0;
    char *text = text_make(note, &n);
    int rc;

    xac_assert(dirfd >= 0);
    if (text == NULL)
        return xac_err(ENOMEM, "%s", XAC_BACKUP_NAME);
    rc = xac_newfile_replace(&f, text, n, NULL);
    free(text);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_BACKUP_NAME);
}

int
xac_backup_note_remove(int dirfd)
{
    xac_assert(dirfd >= 0);
    if (xac_sys.unlinkat(dirfd, XAC_BACKUP_NAME, 0) != 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: remove", XAC_BACKUP_NAME);
    /* Without the note they say nothing; a failure leaves garbage. */
    (void)xac_sys.unlinkat(dirfd, XAC_MANIFEST_NAME, 0);
    (void)xac_sys.unlinkat(dirfd, XAC_PAGES_NAME, 0);
    return xac_sync_dir(dirfd);
}

int
xac_backup_note_check(const struct xac_backup_note *note, uint64_t lsn, uint64_t time_ns)
{
    if (lsn >= note->end_lsn && time_ns >= note->time_ns)
        return 0;
    return xac_err(EINVAL,
                   "the backup is whole only from LSN %" PRIu64 ", time @%" PRIu64
                   ".%09" PRIu64 " on",
                   note->end_lsn, note->time_ns / 1000000000, note->time_ns % 1000000000);
}
