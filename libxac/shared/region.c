/* SPDX-License-Identifier: MIT */
/*
 * region.c -- see region.h.
 */
#include <config.h>

#include "shared/region.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/lost.h"
#include "base/names.h"
#include "base/sys.h"
#include "log/recover_scan.h"
#include "shared/control_check.h"
#include "shared/env_state.h"
#include "shared/registry.h"

#define SHM_DIR "/dev/shm"

#define NS_PER_S UINT64_C(1000000000)

/* Bytes of a region of which the participants are looked at. */
#define COPY_MAX ((uint64_t)1 << 30)

/* Free bytes of a file system that are enough for a region to begin with. */
#define ROOM_ENOUGH ((uint64_t)16 << 20)

/* ---- Names ----------------------------------------------------------------------------- */

const char *
xac_region_shm_dir(void)
{
    const char *wanted = secure_getenv("XAC_SHM_DIR");

    return wanted != NULL && *wanted != '\0' ? wanted : SHM_DIR;
}

char *
xac_region_path(int lockfd)
{
    char text[PATH_MAX + 1];
    size_t got;
    char *end;

    xac_assert(lockfd >= 0);
    errno = xac_read_full(lockfd, text, sizeof text - 1, 0, &got);
    if (errno != 0)
        return NULL;
    text[got] = '\0';
    end = strchr(text, '\n');
    if (end == NULL || end == text) {
        errno = ENOENT;
        return NULL;
    }
    *end = '\0';
    return strdup(text);
}

int
xac_region_path_write(int lockfd, const char *path)
{
    char text[PATH_MAX + 2];
    int n = snprintf(text, sizeof text, "%s\n", path);

    xac_assert(lockfd >= 0);
    xac_assert(xac_region_is_path(path));
    if (n < 0 || (size_t)n >= sizeof text)
        return ENAMETOOLONG;
    if (xac_sys.ftruncate(lockfd, 0) != 0)
        return errno;
    return xac_write_full(lockfd, text, (size_t)n, 0);
}

/* room_in -- free bytes of the file system that a descriptor is of. */
static uint64_t
room_in(int fd)
{
    struct statfs fs;

    xac_assert(fd >= 0);
    if (xac_sys.fstatfs(fd, &fs) != 0)
        return 0;
    /* A tmpfs that was mounted without a size has no blocks to count. */
    return fs.f_blocks != 0 ? (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize : UINT64_MAX;
}

int
xac_region_room(const char *shm_dir, int dirfd)
{
    uint64_t room;
    int fd;

    xac_assert(dirfd >= 0);
    if (shm_dir[0] != '/') /* it would be another one for each process */
        return EINVAL;
    fd = xac_sys.openat(AT_FDCWD, shm_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    room = room_in(fd);
    (void)xac_sys.close(fd);
    return room < ROOM_ENOUGH && room < room_in(dirfd) ? ENOSPC : 0;
}

char *
xac_region_path_new(const char *shm_dir)
{
    uint64_t r;
    char *path = NULL;

    if (getentropy(&r, sizeof r) != 0
        || asprintf(&path, "%s%s" XAC_REGION_PREFIX "%016llx" XAC_REGION_SUFFIX,
                    shm_dir != NULL ? shm_dir : "", shm_dir != NULL ? "/" : "",
                    (unsigned long long)r)
               < 0)
        return NULL;
    xac_assert(xac_region_is_path(path));
    return path;
}

/* is_name -- of a region, without its directory? */
static bool
is_name(const char *name)
{
    size_t n = strlen(name), n_suffix = strlen(XAC_REGION_SUFFIX);

    return strncmp(name, XAC_REGION_PREFIX, strlen(XAC_REGION_PREFIX)) == 0
           && n > n_suffix && strcmp(name + n - n_suffix, XAC_REGION_SUFFIX) == 0;
}

bool
xac_region_is_path(const char *path)
{
    return is_name(path[0] == '/' ? strrchr(path, '/') + 1 : path)
           && (path[0] == '/' || strchr(path, '/') == NULL);
}

/* ---- Trust ------------------------------------------------------------------------------ */

XAC_SIGSAFE int
xac_region_trust(int dirfd, int fd)
{
    struct stat dir, st;

    xac_assert(fd >= 0);
    if (xac_sys.fstat(fd, &st) != 0 || xac_sys.fstat(dirfd, &dir) != 0)
        return errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        return XAC_EUNTRUSTED;
    if (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == dir.st_uid)
        return 0;
    if ((dir.st_mode & S_IWGRP) != 0 && st.st_gid == dir.st_gid)
        return 0; /* only who is of the group can have made such a file */
    return (dir.st_mode & S_IWOTH) != 0 ? 0 : XAC_EUNTRUSTED;
}

XAC_SIGSAFE int
xac_region_open(int dirfd, const char *path, int *fdp)
{
    int fd = xac_sys.openat(dirfd, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    int rc;

    xac_assert(fdp != NULL);
    if (fd < 0 && errno == ENOENT)
        fd = xac_lost_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? XAC_EUNTRUSTED : errno;
    rc = xac_region_trust(dirfd, fd);
    if (rc != 0)
        (void)xac_sys.close(fd);
    else
        *fdp = fd;
    return rc;
}

/* ---- Whose, and in use? ----------------------------------------------------------------- */

/* file_bytes -- memory of a file beside a region. */
static uint64_t
file_bytes(int dirfd, const char *path, const char *suffix)
{
    char *name = NULL;
    struct statx st;
    uint64_t bytes = 0;

    xac_assert(suffix[0] == '.');
    if (asprintf(&name, "%s%s", path, suffix) < 0)
        return 0;
    if (xac_sys.statx(dirfd, name, AT_SYMLINK_NOFOLLOW, STATX_BLOCKS, &st) == 0)
        bytes = st.stx_blocks * 512;
    free(name);
    return bytes;
}

/* look_at_head -- of a region that is open.  Not through a mapping: its maker may
   make it shorter. */
static int
look_at_head(int fd, struct xac_region_info *info)
{
    struct xac_control *head = (struct xac_control *)calloc(1, sizeof *head);
    size_t got;
    int rc;

    xac_assert(fd >= 0);
    if (head == NULL)
        return ENOMEM;
    rc = xac_read_full(fd, head, XAC_CONTROL_HEAD_BYTES, 0, &got);
    info->kind = XAC_REGION_INCOMPLETE;
    if (rc == 0 && head->magic == XAC_CONTROL_MAGIC) {
        info->kind = XAC_REGION_OTHER;
        info->version = head->version;
    }
    if (info->version == XAC_CONTROL_VERSION && head->bytes == sizeof *head) {
        info->kind = XAC_REGION_OURS;
        info->home = head->home;
        info->dir = strndup(head->dir, sizeof head->dir);
        rc = info->dir != NULL ? 0 : ENOMEM;
    } else if (info->kind == XAC_REGION_OTHER && info->use == XAC_REGION_UNUSED) {
        info->use = XAC_REGION_UNKNOWN; /* its participants may hold no bytes */
    }
    free(head);
    return rc;
}

int
xac_region_look(int dirfd, const char *path, struct xac_region_info *info)
{
    struct stat st;
    int rc = 0;
    int fd =
        xac_sys.openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

    xac_assert(path[0] != '\0');
    *info = (struct xac_region_info){.kind = XAC_REGION_NONE};
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    if (xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    else if (!S_ISREG(st.st_mode))
        rc = XAC_EUNTRUSTED;
    if (rc == 0) {
        uint64_t now = xac_clock_read(CLOCK_REALTIME) / NS_PER_S;

        info->uid = st.st_uid;
        info->age_s =
            now > (uint64_t)st.st_mtim.tv_sec ? now - (uint64_t)st.st_mtim.tv_sec : 0;
        info->bytes = (uint64_t)st.st_blocks * 512 + file_bytes(dirfd, path, ".frames")
                      + file_bytes(dirfd, path, ".pool");
        info->use = xac_lockfile_is_held(fd) ? XAC_REGION_USED : XAC_REGION_UNUSED;
        rc = look_at_head(fd, info);
    }
    (void)xac_sys.close(fd);
    if (rc != 0)
        xac_region_info_fini(info);
    return rc;
}

void
xac_region_info_fini(struct xac_region_info *info)
{
    free(info->dir);
    info->dir = NULL;
}

/* find_user -- in a copy of a region: the id of a process that takes part and maps it; 0: none. */
static uint32_t
find_user(const char *path, int fd, const struct xac_handle *handle, uint8_t *copy,
          uint64_t bytes)
{
    struct xac_env env = {
        .dirfd = -1,
        .lockfd = fd,
        .lock_handle = *handle,
        .self = UINT32_MAX,
        .region = (char *)(uintptr_t)path,
        .shm = {.base = copy, .reserve = bytes, .fd = fd, .handle = *handle},
        .ctl = (struct xac_control *)(void *)copy};
    uint64_t n = atomic_load_explicit(&env.ctl->participants.count, memory_order_relaxed);

    xac_assert(bytes >= sizeof(struct xac_control));
    xac_registry_identify(&env);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t pid = xac_participant_at(&env, (uint32_t)i)->pid;

        if (xac_registry_alive(&env, (uint32_t)i) && xac_registry_maps(&env, pid))
            return pid;
    }
    return 0;
}

/*
 * user_of -- who takes part by way of a region though nobody holds a byte of the lock file?
 *
 * Children of the dead may still map it, too: they are nobody until they come.
 * ret  0 or errno.
 */
static int
user_of(int dirfd, const char *path, uint32_t *pidp)
{
    struct xac_handle handle = {.device = 0};
    struct stat st;
    uint8_t *copy = NULL;
    size_t got = 0;
    int rc = 0;
    int fd = xac_sys.openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(pidp != NULL);
    *pidp = 0;
    if (fd < 0)
        return errno;
    if (xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    else
        handle = (struct xac_handle){.device = st.st_dev, .inode = st.st_ino};
    if (rc == 0 && (uint64_t)st.st_size <= COPY_MAX)
        rc = (copy = (uint8_t *)malloc((size_t)st.st_size)) != NULL ? 0 : ENOMEM;
    for (int i = 0; copy != NULL && i < XAC_CONTROL_TRIES;
         i++) { /* it may change meanwhile */
        rc = xac_read_full(fd, copy, (size_t)st.st_size, 0, &got);
        if (rc != 0)
            break;
        if (xac_control_validate(copy, got, path) == 0) {
            *pidp = find_user(path, fd, &handle, copy, got);
            break;
        }
    }
    xac_err_clear();
    free(copy);
    (void)xac_sys.close(fd);
    return rc;
}

bool
xac_region_is_home(const struct xac_region_info *info, int dirfd)
{
    struct xac_identity home;

    xac_assert(dirfd >= 0);
    return info->kind == XAC_REGION_OURS && xac_identity_of(dirfd, &home) == 0
           && xac_identity_is_same(&home, &info->home);
}

int
xac_region_attached(int dirfd, const char *dir, int lockfd)
{
    struct xac_region_info info;
    uint32_t pid = 0;
    char *path;
    int rc = xac_attached(dirfd, dir, lockfd);

    xac_assert(dir[0] != '\0');
    if (rc != 0 || lockfd < 0)
        return rc;
    path = xac_region_path(lockfd);
    if (path == NULL)
        return errno == ENOENT ? 0 : xac_err(errno, "%s/%s", dir, XAC_LOCK_NAME);
    rc = xac_region_is_path(path) ? xac_region_look(dirfd, path, &info) : ENOENT;
    if (rc != 0) { /* no participant may look absent because memory is short */
        rc = rc == ENOMEM ? xac_err(rc, "control region %s", path) : 0;
        free(path);
        return rc;
    }
    if (info.use == XAC_REGION_USED && xac_region_is_home(&info, dirfd))
        rc = user_of(dirfd, path, &pid);
    if (rc != 0)
        rc = xac_err(rc, "control region %s", path);
    else if (pid != 0)
        rc = XAC_ELIVE;
    xac_region_info_fini(&info);
    free(path);
    return rc;
}

/* A scan of a directory. */
struct scan {
    const char *dir;
    int (*fn)(void *arg, const char *path);
    void *arg;
};

/* scan_one -- for xac_scan_names. */
static int
scan_one(void *arg, const char *name)
{
    const struct scan *s = (const struct scan *)arg;
    char *path = NULL;
    int rc;

    if (!is_name(name))
        return 0;
    if (asprintf(&path, "%s/%s", s->dir, name) < 0)
        return ENOMEM;
    rc = s->fn(s->arg, path);
    free(path);
    return rc;
}

int
xac_region_scan(const char *dir, int (*fn)(void *arg, const char *path), void *arg)
{
    struct scan s = {.dir = dir, .fn = fn, .arg = arg};
    int fd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int rc;

    xac_assert(dir[0] != '\0');
    xac_assert(fn != NULL);
    if (fd < 0)
        return errno;
    rc = xac_scan_names(fd, XAC_REGION_PREFIX, scan_one, &s);
    (void)xac_sys.close(fd);
    return rc;
}
