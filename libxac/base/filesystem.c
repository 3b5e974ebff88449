/* SPDX-License-Identifier: MIT */
/*
 * filesystem.c -- see filesystem.h.
 */
#include <config.h>

#include "base/filesystem.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"

#define SHARE_DIVISOR 4

#define TMPFS_TYPE UINT32_C(0x01021994)
#define RAMFS_TYPE UINT32_C(0x858458f6)

/*
 * File systems of the network, or shared by several machines.  Those that a program serves
 * (FUSE) are not among them: for them the kernel itself keeps the locks of one machine, and
 * it cannot be told from outside whether there is another.
 */
static const struct {
    uint32_t type;
    const char *name;
} network[] = {
    {UINT32_C(0x00006969), "NFS"},    {UINT32_C(0x0000517b), "SMB"},
    {UINT32_C(0xff534d42), "CIFS"},   {UINT32_C(0xfe534d42), "SMB2"},
    {UINT32_C(0x0000564c), "NCP"},    {UINT32_C(0x73757245), "Coda"},
    {UINT32_C(0x5346414f), "AFS"},    {UINT32_C(0x6b414653), "AFS"},
    {UINT32_C(0x01021997), "9p"},     {UINT32_C(0x00c36400), "Ceph"},
    {UINT32_C(0x0bd00bd0), "Lustre"}, {UINT32_C(0x47504653), "GPFS"},
    {UINT32_C(0x01161970), "GFS2"},   {UINT32_C(0x7461636f), "OCFS2"},
    {UINT32_C(0x19830326), "BeeGFS"}, {UINT32_C(0x20030528), "OrangeFS"},
};

/* type_of -- 32 bits, as statfs(2) has it on all machines. */
static uint32_t
type_of(const struct statfs *fs)
{
    return (uint32_t)fs->f_type;
}

int
xac_filesystem_check(int fd, const char *path)
{
    const char *allowed = secure_getenv("XAC_ALLOW_NETWORK_FS");
    struct statfs fs;

    if (xac_sys.fstatfs(fd, &fs) != 0)
        return xac_err(errno, "%s: file system", path);
    if (allowed != NULL && strcmp(allowed, "1") == 0)
        return 0;
    for (size_t i = 0; i < sizeof network / sizeof network[0]; i++) {
        if (type_of(&fs) == network[i].type)
            return xac_err(XAC_EFILESYSTEM,
                           "%s lies on %s; XAC_ALLOW_NETWORK_FS=1 allows it, for one "
                           "machine at a time",
                           path, network[i].name);
    }
    return 0;
}

/* ---- Memory --------------------------------------------------------------------------- */

/* read_text -- the beginning of a small file; false: it cannot be read. */
static bool
read_text(const char *path, char *text, size_t size)
{
    size_t got = 0;
    int fd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return false;
    rc = xac_read_full(fd, text, size - 1, 0, &got);
    (void)xac_sys.close(fd);
    text[rc == 0 ? got : 0] = '\0';
    return rc == 0;
}

/* limit_in -- the number in a file of the control group; UINT64_MAX: none, or "max". */
static uint64_t
limit_in(const char *mount, const char *group, const char *file)
{
    char path[PATH_MAX + 64], text[64];
    char *end;
    unsigned long long bytes;
    int n = snprintf(path, sizeof path, "%s%s/%s", mount, group, file);

    if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text, sizeof text))
        return UINT64_MAX;
    bytes = strtoull(text, &end, 10);
    return end == text ? UINT64_MAX : bytes;
}

/* group_limit -- the smallest limit of a control group and those that it is in. */
static uint64_t
group_limit(const char *mount, char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    char *slash = group + strlen(group);

    while (slash != NULL) {
        uint64_t bytes;

        *slash = '\0'; /* the next one up; "" is the root */
        bytes = limit_in(mount, group, file);
        least = bytes < least ? bytes : least;
        slash = strrchr(group, '/');
    }
    return least;
}

/* memory_limit -- of this process's control groups, version 2 or 1; UINT64_MAX: none. */
static uint64_t
memory_limit(void)
{
    char text[2 * PATH_MAX];
    char *rest = NULL;
    uint64_t least = UINT64_MAX;

    if (!read_text("/proc/self/cgroup", text, sizeof text))
        return UINT64_MAX;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *kinds = strchr(line, ':');
        char *group = kinds != NULL ? strchr(kinds + 1, ':') : NULL;
        uint64_t bytes = UINT64_MAX;

        if (group == NULL)
            continue;
        *group++ = '\0';
        if (kinds[1] == '\0')
            bytes = group_limit("/sys/fs/cgroup", group, "memory.max");
        else if (strstr(kinds + 1, "memory") != NULL)
            bytes = group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        least = bytes < least ? bytes : least;
    }
    return least;
}

uint64_t
xac_filesystem_share(int fd)
{
    struct statfs fs;
    uint64_t bytes, limit;

    if (xac_sys.fstatfs(fd, &fs) != 0
        || (type_of(&fs) != TMPFS_TYPE && type_of(&fs) != RAMFS_TYPE))
        return UINT64_MAX;
    limit = memory_limit();
    /* A tmpfs that was mounted without a size has no blocks to count. */
    bytes = fs.f_blocks != 0 ? (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize : UINT64_MAX;
    bytes = bytes < limit ? bytes : limit;
    return bytes == UINT64_MAX ? bytes : bytes / SHARE_DIVISOR;
}
