/* SPDX-License-Identifier: MIT */
/*
 * memory.c -- see memory.h.
 */
#include <config.h>

#include "base/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

#define N_FILES 2

/* Where the groups of a version are mounted, and the files in which they have their limits. */
struct hierarchy {
    const char *mount;
    const char *file[N_FILES]; /* up to the first NULL                                  */
};

static const struct hierarchy version_2 = {.mount = "/sys/fs/cgroup",
                                           .file = {"memory.max", "memory.high"}};
static const struct hierarchy version_1 = {.mount = "/sys/fs/cgroup/memory",
                                           .file = {"memory.limit_in_bytes"}};

static uint64_t
lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

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

/* limit_of_group -- the least limit of a control group and those that it is in; the name is cut. */
static uint64_t
limit_of_group(const struct hierarchy *h, char *group)
{
    uint64_t least = UINT64_MAX;
    char *slash = group + strlen(group);

    xac_assert(h->file[0] != NULL);
    while (slash != NULL) {
        *slash = '\0'; /* the next one up; "" is the root */
        for (size_t i = 0; i < N_FILES && h->file[i] != NULL; i++)
            least = lesser(least, limit_in(h->mount, group, h->file[i]));
        slash = strrchr(group, '/');
    }
    return least;
}

/* limit_of_groups -- of this process's control groups, version 2 or 1; UINT64_MAX: none. */
static uint64_t
limit_of_groups(void)
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

        if (group == NULL)
            continue;
        *group++ = '\0';
        if (kinds[1] == '\0')
            least = lesser(least, limit_of_group(&version_2, group));
        else if (strstr(kinds + 1, "memory") != NULL)
            least = lesser(least, limit_of_group(&version_1, group));
    }
    return least;
}

/* machine_bytes -- UINT64_MAX: it is not known. */
static uint64_t
machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size
                                      : UINT64_MAX;
}

uint64_t
xac_memory_bytes(void)
{
    return lesser(machine_bytes(), limit_of_groups());
}
