/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "larger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVE_TRIES \
 100u /* of 10 ms: a group is busy for a moment after its last process */

/* write_file -- ret 0 or errno. */
static int
write_file(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    int fd, rc = 0;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (write(fd, text, strlen(text)) < 0)
        rc = errno;
    close(fd);
    return rc;
}

/* own_group -- this process's group below `root`, as /proc/self/cgroup has it. */
static bool
own_group(const char *controller, const char *root, char *out, size_t out_bytes)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        char *list = strchr(line, ':');
        char *path = list == NULL ? NULL : strchr(list + 1, ':');

        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = strcmp(list + 1, controller) == 0
                && snprintf(out, out_bytes, "%s%s", root, path) < (int)out_bytes;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* make_below -- a group in `parent`, and its limit; ret 0 or errno. */
static int
make_below(struct bench_cgroup *g, const char *parent, uint64_t limit_bytes)
{
    char text[32];
    int rc;

    if (snprintf(g->dir, sizeof g->dir, "%s/xbench-%ld", parent, (long)getpid())
        >= (int)sizeof g->dir)
        return ENAMETOOLONG;
    if (mkdir(g->dir, 0755) != 0)
        return errno;
    snprintf(text, sizeof text, "%llu", (unsigned long long)limit_bytes);
    rc = write_file(g->dir, g->is_v1 ? "memory.limit_in_bytes" : "memory.max", text);
    if (rc != 0)
        (void)rmdir(g->dir);
    return rc;
}

bool
bench_cgroup_make(struct bench_cgroup *g, uint64_t limit_bytes, char *why,
                  size_t why_bytes)
{
    char parent[PATH_MAX - 64];
    int rc = ENOENT;

    g->is_v1 = true;
    if (own_group("memory", "/sys/fs/cgroup/memory", parent, sizeof parent)) {
        rc = make_below(g, parent, limit_bytes);
        /* Its own group may be one that only the host sees. */
        if (rc == ENOENT)
            rc = make_below(g, "/sys/fs/cgroup/memory", limit_bytes);
    }
    if (rc != 0) {
        g->is_v1 = false;
        if (own_group("", "/sys/fs/cgroup", parent, sizeof parent))
            rc = make_below(g, parent, limit_bytes);
    }
    if (rc != 0)
        snprintf(why, why_bytes, "no control group that limits memory: %s", strerror(rc));
    return rc == 0;
}

int
bench_cgroup_enter(const struct bench_cgroup *g)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", (long)getpid());
    return write_file(g->dir, "cgroup.procs", text);
}

void
bench_cgroup_remove(const struct bench_cgroup *g)
{
    for (unsigned i = 0; i < REMOVE_TRIES && rmdir(g->dir) != 0 && errno == EBUSY; i++)
        usleep(10000);
}
