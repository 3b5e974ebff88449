/* SPDX-License-Identifier: MIT */
/*
 * backup_dir.c -- see backup_dir.h.
 */
#include <config.h>

#include "backup/backup_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/recover_scan.h"

/* not_empty -- for xac_scan_names. */
static int
not_empty(void *arg, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    return xac_err(EEXIST, "%s: holds %s already", (const char *)arg, name);
}

int
xac_backup_dir_open(const char *dir, int *fdp)
{
    char words[512];

    xac_assert(dir[0] != '\0');
    if (xac_sys.mkdirat(AT_FDCWD, dir, 0700) != 0 && errno != EEXIST)
        return xac_err(errno, "%s", dir);
    *fdp = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (*fdp < 0)
        return xac_err(errno, "%s", dir);
    (void)snprintf(words, sizeof words, "%s", dir);
    return xac_scan_names(*fdp, "", not_empty, words);
}

/* make_parent -- one directory, as the one that it stands for. */
static int
make_parent(int dirfd, const char *dir, int like, const char *path)
{
    const char *name;
    int was = -1, fd = -1;
    int rc = xac_stored_open(like, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &was);

    if (rc == 0 || rc == ENOENT) /* one for files from outside, or gone by now */
        rc = xac_stored_parent(dirfd, path, &fd, &name);
    if (rc == 0)
        rc = xac_newdir_make(fd, name, was >= 0 ? was : dirfd);
    if (was >= 0)
        (void)xac_sys.close(was);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 || rc == EEXIST ? 0 : xac_err(rc, "%s/%s", dir, path);
}

int
xac_backup_dir_parents(int dirfd, const char *dir, int like, const char *path)
{
    char *part = strdup(path);
    int rc = part != NULL ? 0 : xac_err(ENOMEM, "backup");

    xac_assert(xac_stored_is_inside(path));
    for (char *p = part; rc == 0 && (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        rc = make_parent(dirfd, dir, like, part);
        *p = '/';
    }
    free(part);
    return rc;
}

/* sync_path -- every directory of the path. */
static int
sync_path(int dirfd, const char *dir, const char *copy)
{
    char *path = strdup(copy), *slash;
    int rc = path != NULL ? 0 : xac_err(ENOMEM, "backup");

    while (rc == 0 && (slash = strrchr(path, '/')) != NULL) {
        int fd = -1;

        *slash = '\0';
        rc = xac_stored_open(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &fd);
        if (rc != 0 || (rc = xac_sync_dir(fd)) != 0)
            rc = xac_err(rc, "%s/%s: sync", dir, path);
        if (fd >= 0)
            (void)xac_sys.close(fd);
    }
    free(path);
    return rc;
}

int
xac_backup_dir_copy(int from, const char *name, int to, const struct xac_owner *owner,
                    struct xac_copier *copier)
{
    int in = -1, out = -1;
    int rc =
        xac_stored_open(from, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, &in);

    if (rc == ENOENT)
        return 0;
    if (rc == 0)
        rc = xac_newfile_make(to, name, owner, &out);
    if (rc == 0)
        rc = xac_copy_file(in, out, copier);
    if (rc == 0 && xac_sys.fsync(out) != 0)
        rc = errno;
    if (out >= 0)
        (void)xac_sys.close(out);
    if (in >= 0)
        (void)xac_sys.close(in);
    return rc;
}

int
xac_backup_dir_sync(int dirfd, const char *dir, const struct xac_backup_note *note)
{
    int rc = xac_sync_parent(dirfd, "../");

    if (rc != 0)
        rc = rc == EACCES ? 0 : xac_err(rc, "syncing the directory of %s", dir);
    for (size_t i = 0; rc == 0 && i < note->n_files; i++)
        rc = sync_path(dirfd, dir, note->file[i].copy);
    return rc;
}

int
xac_backup_dir_master(int dirfd, const char *dir, const struct xac_owner *owner,
                      const struct xac_master_slot *slot)
{
    uint8_t bytes[2 * XAC_MASTER_SLOT_STRIDE] = {0};
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = XAC_MASTER_NAME ".new",
                            .name = XAC_MASTER_NAME,
                            .owner = owner,
                            .is_synced = true};
    int rc;

    xac_assert(slot->magic == XAC_MASTER_MAGIC);
    memcpy(bytes, slot, sizeof *slot);
    rc = xac_newfile_replace(&f, bytes, sizeof bytes, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s", dir, XAC_MASTER_NAME);
}
