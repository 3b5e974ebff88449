/* SPDX-License-Identifier: MIT */
/*
 * logdir.c -- see logdir.h.
 */
#include <config.h>

#include "log/logdir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"

#define NOTE_NEW   XAC_LOGDIR_NOTE "-new"
#define MARK_NEW   XAC_LOGDIR_MARK "-new"
#define MARK_CHARS 33 /* 32 hexadecimal digits and a newline */

/* line_read -- the only line of a file, without its end; ret 0, errno, or XAC_EDAMAGED. */
static int
line_read(int dirfd, const char *name, char *buf, size_t size)
{
    int fd = xac_sys.openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    size_t got;
    int rc;

    xac_assert(size >= 2);
    if (fd < 0)
        return errno;
    rc = xac_read_full(fd, buf, size - 1, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return rc;
    buf[got] = '\0';
    if (got < 2 || strchr(buf, '\n') != buf + got - 1)
        return XAC_EDAMAGED;
    buf[got - 1] = '\0';
    return 0;
}

int
xac_logdir_noted(int dirfd, char **pathp)
{
    char path[PATH_MAX + 2];
    int rc = line_read(dirfd, XAC_LOGDIR_NOTE, path, sizeof path);

    xac_assert(dirfd >= 0);
    *pathp = NULL;
    if (rc == ENOENT)
        return 0;
    if (rc == 0 && path[0] != '/')
        rc = XAC_EDAMAGED;
    if (rc != 0)
        return xac_err(rc, "%s: where the log is", XAC_LOGDIR_NOTE);
    *pathp = strdup(path);
    return *pathp != NULL ? 0 : xac_err(ENOMEM, "%s", XAC_LOGDIR_NOTE);
}

static void
mark_text(const uint8_t identity[16], char text[MARK_CHARS + 1])
{
    for (int i = 0; i < 16; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", identity[i]);
    text[MARK_CHARS - 1] = '\n';
    text[MARK_CHARS] = '\0';
    xac_assert(strlen(text) == MARK_CHARS);
}

/* mark_check -- ret 0; ENOENT; XAC_EFOREIGN; errno values. */
static int
mark_check(int fd, const uint8_t identity[16])
{
    char found[MARK_CHARS + 2], text[MARK_CHARS + 1];
    int rc = line_read(fd, XAC_LOGDIR_MARK, found, sizeof found);

    xac_assert(fd >= 0);
    mark_text(identity, text);
    if (rc == 0 && strncmp(found, text, MARK_CHARS - 1) != 0)
        rc = XAC_EFOREIGN;
    return rc;
}

/* dir_open -- ret 0 or an error. */
static int
dir_open(const char *path, int *fdp)
{
    xac_assert(path[0] != '\0');
    *fdp = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return *fdp >= 0 ? 0 : xac_err(errno, "log directory %s", path);
}

/* open_marked -- a directory with our mark. */
static int
open_marked(const char *path, const uint8_t identity[16], int *fdp)
{
    int rc = dir_open(path, fdp);

    xac_assert(path[0] == '/');
    if (rc != 0)
        return rc;
    rc = mark_check(*fdp, identity);
    if (rc == 0)
        return 0;
    (void)xac_sys.close(*fdp);
    *fdp = -1;
    if (rc == ENOENT)
        return xac_err(rc, "log directory %s has no %s: not mounted, or moved?", path,
                       XAC_LOGDIR_MARK);
    return xac_err(rc, "log directory %s: %s", path, XAC_LOGDIR_MARK);
}

int
xac_logdir_open(int dirfd, const char *moved, const uint8_t identity[16], int *fdp,
                char **pathp)
{
    char *path;
    int rc = xac_logdir_noted(dirfd, &path);

    xac_assert(dirfd >= 0);
    *fdp = -1;
    *pathp = NULL;
    if (rc != 0)
        return rc;
    if (path == NULL && moved != NULL)
        return xac_err(EINVAL, "log directory %s: the log lies with the environment",
                       moved);
    if (path == NULL) {
        *fdp = xac_sys.openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        return *fdp >= 0 ? 0 : xac_err(errno, "environment directory: open");
    }
    if (moved != NULL) {
        free(path);
        path = realpath(moved, NULL);
        if (path == NULL)
            return xac_err(errno, "log directory %s", moved);
    }
    rc = open_marked(path, identity, fdp);
    if (rc == 0)
        *pathp = path;
    else
        free(path);
    xac_assert(rc != 0 || *fdp >= 0);
    return rc;
}

int
xac_logdir_recover(int dirfd, const struct xac_master_slot *master, const char *moved,
                   bool is_copy, bool may_note, int *fdp)
{
    char *path = NULL, *noted;
    int rc = xac_logdir_noted(dirfd, &noted);

    if (rc != 0)
        return rc;
    /* There is no log yet that could be elsewhere. */
    if (noted == NULL && (master->flags & XAC_MASTER_LOGGED) == 0)
        moved = NULL;
    rc = xac_logdir_open(dirfd, moved, master->identity, fdp, &path);
    /* Programs say it at every start: that it is said does not make it the copy's. */
    if (is_copy && noted != NULL
        && (moved == NULL || (rc == 0 && strcmp(path, noted) == 0)))
        rc = xac_err(XAC_ECOPY,
                     "%s: this directory is a copy of an environment, and the log in %s"
                     " may be the original's; copy that, too, and say where it is"
                     " (xrecover --log-dir, xSetLogDirectory)",
                     XAC_LOGDIR_NOTE, noted);
    if (rc == 0 && moved != NULL && may_note && strcmp(path, noted) != 0)
        rc = xac_logdir_note(dirfd, path);
    free(noted);
    free(path);
    return rc;
}

int
xac_logdir_note(int dirfd, const char *path)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = NOTE_NEW,
                            .name = XAC_LOGDIR_NOTE,
                            .is_synced = true};
    char *text = NULL;
    int rc;

    xac_assert(dirfd >= 0);
    xac_assert(path[0] == '/');
    if (asprintf(&text, "%s\n", path) < 0)
        return xac_err(ENOMEM, "%s", XAC_LOGDIR_NOTE);
    rc = xac_newfile_replace(&f, text, strlen(text), NULL);
    free(text);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_LOGDIR_NOTE);
}

/* mark_write -- name the environment of the log, in a file of the environment's owner. */
static int
mark_write(int dirfd, int fd, const uint8_t identity[16])
{
    struct xac_owner o;
    struct xac_newfile f = {.dirfd = fd,
                            .made = MARK_NEW,
                            .name = XAC_LOGDIR_MARK,
                            .owner = &o,
                            .is_synced = true};
    char text[MARK_CHARS + 1];
    int rc = xac_owner_get(dirfd, &o);

    xac_assert(fd >= 0);
    mark_text(identity, text);
    return rc == 0 ? xac_newfile_replace(&f, text, strlen(text), NULL) : rc;
}

int
xac_logdir_make(int dirfd, const char *path, const uint8_t identity[16])
{
    char *full = NULL;
    int fd = -1;
    int rc = xac_newdir_make(AT_FDCWD, path, dirfd);

    if (rc != 0 && rc != EEXIST)
        return xac_err(rc, "log directory %s", path);
    full = realpath(path, NULL);
    if (full == NULL)
        return xac_err(errno, "log directory %s", path);
    xac_assert(full[0] == '/');
    rc = dir_open(full, &fd);
    if (rc != 0)
        goto out;
    rc = mark_check(fd, identity);
    if (rc == ENOENT)
        rc = mark_write(dirfd, fd, identity);
    if (rc == 0)
        rc = xac_sync_parent(AT_FDCWD, full);
    /* Not readable: a user that may write there has put the directory there. */
    if (rc == EACCES)
        rc = 0;
    if (rc != 0)
        rc = xac_err(rc, "log directory %s: %s", full, XAC_LOGDIR_MARK);
    if (rc == 0)
        rc = xac_logdir_note(dirfd, full);
    (void)xac_sys.close(fd);
out:
    free(full);
    return rc;
}
