/* SPDX-License-Identifier: MIT */
/*
 * fileindex_walk.c -- see fileindex_walk.h.
 */
#include <config.h>

#include "fileindex_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
fi_list_add(struct fi_list *list, const char *text, size_t length)
{
    char *copy;

    if (list->n == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 1024;
        char **paths = realloc(list->paths, room * sizeof *paths);

        if (paths == NULL)
            return ENOMEM;
        list->paths = paths;
        list->room = room;
    }
    copy = strndup(text, length);
    if (copy == NULL)
        return ENOMEM;
    list->paths[list->n++] = copy;
    return 0;
}

void
fi_list_free(struct fi_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct fi_list){0};
}

/*
 * Go so far along a path that the rest is short enough for a system call.
 *
 * out  restp  the rest
 * ret  descriptor of the directory that the rest starts from, or AT_FDCWD; -1 and errno
 */
static int
approach(const char *path, const char **restp)
{
    char piece[PATH_MAX];
    int at = AT_FDCWD;

    while (strlen(path) >= PATH_MAX) {
        const char *slash = memrchr(path, '/', PATH_MAX - 1);
        int fd;

        if (slash == NULL || slash == path) {
            errno = ENAMETOOLONG;
            fd = -1;
        } else {
            memcpy(piece, path, (size_t)(slash - path));
            piece[slash - path] = '\0';
            fd = openat(at, piece, O_PATH | O_DIRECTORY | O_CLOEXEC);
            path = slash + 1;
        }
        if (at != AT_FDCWD)
            close(at);
        if (fd < 0)
            return -1;
        at = fd;
    }
    *restp = path;
    return at;
}

int
fi_record_read(const char *path, struct fi_record *record)
{
    const char *rest;
    struct stat st;
    int at = approach(path, &rest), rc = 0;

    if (at == -1)
        return errno;
    if (fstatat(at, rest, &st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = errno;
    if (at != AT_FDCWD)
        close(at);
    if (rc != 0)
        return rc;
    *record = (struct fi_record){.size = (uint64_t)st.st_size,
                                 .mtime = st.st_mtim.tv_sec,
                                 .ctime = st.st_ctim.tv_sec,
                                 .mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
                                 .ctime_ns = (uint32_t)st.st_ctim.tv_nsec,
                                 .mode = st.st_mode,
                                 .uid = st.st_uid,
                                 .gid = st.st_gid,
                                 .n_links = (uint32_t)st.st_nlink,
                                 .inode = st.st_ino,
                                 .device = st.st_dev};
    return 0;
}

/* Open a directory of any path length.  ret NULL and errno. */
static DIR *
directory_open(const char *path)
{
    const char *rest;
    int at = approach(path, &rest), fd, saved;
    DIR *dir = NULL;

    if (at == -1)
        return NULL;
    fd = openat(at, rest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        dir = fdopendir(fd);
    saved = errno;
    if (fd >= 0 && dir == NULL)
        close(fd);
    if (at != AT_FDCWD)
        close(at);
    errno = saved;
    return dir;
}

static bool
is_directory(DIR *dir, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
           && S_ISDIR(st.st_mode);
}

/* Add the entries of an open directory to the tree, its directories to `todo` as well. */
static int
directory_read(DIR *dir, const char *path, struct fi_tree *tree, struct fi_list *todo)
{
    const char *slash = strcmp(path, "/") == 0 ? "" : "/";
    const struct dirent *entry;
    int rc = 0;

    while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
        char *full;
        int n;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n = asprintf(&full, "%s%s%s", path, slash, entry->d_name);
        if (n < 0)
            return ENOMEM;
        rc = fi_list_add(&tree->found, full, (size_t)n);
        if (rc == 0 && is_directory(dir, entry))
            rc = fi_list_add(todo, full, (size_t)n);
        free(full);
    }
    return rc != 0 ? rc : errno;
}

/* One directory: list it, unless it is on another file system than `device`. */
static int
directory_list(const char *path, const dev_t *device, struct fi_tree *tree,
               struct fi_list *todo)
{
    DIR *dir = directory_open(path);
    struct stat st;
    int rc = 0;

    if (dir == NULL) {
        rc = errno;
    } else {
        if (device == NULL || (fstat(dirfd(dir), &st) == 0 && st.st_dev == *device))
            rc = directory_read(dir, path, tree, todo);
        closedir(dir);
    }
    if (rc == 0 || rc == ENOMEM || rc == ENOENT || rc == ENOTDIR)
        return rc == ENOMEM ? rc : 0; /* or it went away just now */
    fprintf(stderr, "fileindex: %s: %s\n", path, strerror(rc));
    return fi_list_add(&tree->unreadable, path, strlen(path));
}

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int
fi_tree_list(const char *dir, bool one_fs, struct fi_tree *tree)
{
    struct fi_list todo = {0};
    struct stat st;
    int rc;

    *tree = (struct fi_tree){0};
    if (stat(dir, &st) != 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    if (access(dir, R_OK | X_OK) != 0)
        return errno;
    rc = fi_list_add(&tree->found, dir, strlen(dir));
    if (rc == 0)
        rc = fi_list_add(&todo, dir, strlen(dir));
    while (rc == 0 && todo.n > 0) {
        char *path = todo.paths[--todo.n];

        rc = directory_list(path, one_fs ? &st.st_dev : NULL, tree, &todo);
        free(path);
    }
    fi_list_free(&todo);
    if (rc == 0)
        qsort(tree->found.paths, tree->found.n, sizeof(char *), compare);
    return rc;
}

void
fi_tree_free(struct fi_tree *tree)
{
    fi_list_free(&tree->found);
    fi_list_free(&tree->unreadable);
}
