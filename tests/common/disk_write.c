/* SPDX-License-Identifier: MIT */
/*
 * disk_write.c -- crash states in a real directory: see disk.h.
 */
#include <config.h>

#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk_state.h"
#include "env.h"

static void
empty_fd(int fd)
{
    DIR *dir = fdopendir(fd);
    struct dirent *e;

    must(dir != NULL);
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, e->d_name, 0) == 0)
            continue;
        empty_fd(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        must(unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0);
    }
    (void)closedir(dir);
}

void
disk_empty_dir(const char *path)
{
    empty_fd(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void
write_file(int dirfd, const char *name, const struct file *f, struct record_trace *t)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct stat st;

    must(fd >= 0 && fstat(fd, &st) == 0);
    must(write(fd, f->bytes, f->size) == (ssize_t)f->size);
    (void)close(fd);
    record_track(t, (uint64_t)st.st_ino, f->ino);
}

static void
write_dir(const struct disk_state *s, const struct file *dir, int dirfd,
          struct record_trace *t)
{
    struct stat st;

    must(fstat(dirfd, &st) == 0);
    record_track(t, (uint64_t)st.st_ino, dir->ino);
    for (size_t i = 0; i < dir->names.n; i++) {
        const struct entry *e = &dir->names.entry[i];
        const struct file *f = disk_state_find(s, e->ino);
        int fd;

        if (!f->is_dir) {
            write_file(dirfd, e->name, f, t);
            continue;
        }
        must(mkdirat(dirfd, e->name, 0777) == 0);
        fd = openat(dirfd, e->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(fd >= 0);
        write_dir(s, f, fd, t);
        (void)close(fd);
    }
}

void
disk_state_write(const struct disk_state *s, const char *root, struct record_trace *t)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0);
    disk_empty_dir(root);
    record_forget(t);
    record_reserve(t, s->max_ino + 1);
    write_dir(s, disk_state_find(s, s->root), fd, t);
    (void)close(fd);
}
