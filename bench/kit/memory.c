/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
make_below(struct bench_cgroup *g, const char *parent, unsigned number,
           uint64_t limit_bytes)
{
    char text[32];
    int rc;

    if (snprintf(g->dir, sizeof g->dir, "%s/xbench-%ld-%u", parent, (long)getpid(),
                 number)
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
bench_cgroup_make(struct bench_cgroup *g, unsigned number, uint64_t limit_bytes,
                  char *why, size_t why_bytes)
{
    char parent[PATH_MAX - 64];
    int rc = ENOENT;

    g->is_v1 = true;
    if (own_group("memory", "/sys/fs/cgroup/memory", parent, sizeof parent)) {
        rc = make_below(g, parent, number, limit_bytes);
        /* Its own group may be one that only the host sees. */
        if (rc == ENOENT)
            rc = make_below(g, "/sys/fs/cgroup/memory", number, limit_bytes);
    }
    if (rc != 0) {
        g->is_v1 = false;
        if (own_group("", "/sys/fs/cgroup", parent, sizeof parent))
            rc = make_below(g, parent, number, limit_bytes);
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

uint64_t
bench_cgroup_cache_bytes(const struct bench_cgroup *g)
{
    char path[PATH_MAX + 64], line[100];
    unsigned long long n, cache = 0, shared = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/memory.stat", g->dir);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, g->is_v1 ? "cache %llu" : "file %llu", &n) == 1)
            cache = n;
        else if (sscanf(line, "shmem %llu", &n) == 1)
            shared = n;
    }
    if (f != NULL)
        fclose(f);
    return cache > shared ? cache - shared : 0;
}

int
bench_stop_reading_ahead(const char *end)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 100];
    unsigned long from, to;
    int rc = f == NULL ? errno : ENOENT;

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, end);

        if (at != NULL && at[strlen(end)] == '\n'
            && sscanf(line, "%lx-%lx", &from, &to) == 2)
            rc = madvise((void *)from, to - from, MADV_RANDOM) == 0 ? 0 : errno;
    }
    if (f != NULL)
        fclose(f);
    return rc;
}

uint64_t
bench_process_bytes(pid_t pid)
{
    char path[64], line[200];
    unsigned long long kib, sum = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "RssAnon: %llu", &kib) == 1
            || sscanf(line, "RssFile: %llu", &kib) == 1)
            sum += kib << 10;
    if (f != NULL)
        fclose(f);
    return sum;
}

uint64_t
bench_env_bytes(const char *env_dir)
{
    static const char *const tails[] = {"", ".frames", ".pool"};
    char path[PATH_MAX], name[PATH_MAX], file[PATH_MAX + 16];
    uint64_t sum = 0;
    struct stat st;
    FILE *f;

    snprintf(path, sizeof path, "%s/xac.lock", env_dir);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fgets(name, sizeof name, f) == NULL)
        name[0] = '\0';
    fclose(f);
    name[strcspn(name, "\n")] = '\0';
    for (size_t i = 0; i < sizeof tails / sizeof tails[0] && name[0] != '\0'; i++) {
        snprintf(file, sizeof file, "%s%s", name, tails[i]);
        if (stat(file, &st) == 0)
            sum += (uint64_t)st.st_blocks * 512;
    }
    return sum;
}
