/* SPDX-License-Identifier: MIT */
/*
 * check_memory.c -- how much memory there is.
 *
 * GOAL    The least limit of the control groups that a process is in counts, of both versions, on
 *         each level; without one the machine's memory does.  An environment knows it when it is opened,
 *         and a child that takes part in it knows its own.
 * METHOD  openat of the table of system calls finds the files of control groups below a directory of
 *         the test, which makes them.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "tests/common/env.h"
#include "base/memory.h"
#include "base/sys.h"

#define MIB     (UINT64_C(1) << 20)
#define V1      "/sys/fs/cgroup/memory"
#define V2      "/sys/fs/cgroup"
#define V1_FILE "/memory.limit_in_bytes"

static struct xac_sys real;
static char
    root[PATH_MAX]; /* what lies below it is found instead of the machine's        */

static int
made_up_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    char other[2 * PATH_MAX];

    if (strcmp(path, "/proc/self/cgroup") != 0 && strncmp(path, V2 "/", sizeof V2) != 0)
        return real.openat(dirfd, path, flags, mode);
    (void)snprintf(other, sizeof other, "%s%s", root, path);
    return real.openat(dirfd, other, flags, mode);
}

/* put -- a file below the test's directory, and the directories that it lies in. */
static void
put(const char *path, const char *text)
{
    char name[2 * PATH_MAX];

    (void)snprintf(name, sizeof name, "%s%s", root, path);
    for (char *p = strchr(name + strlen(root) + 1, '/'); p != NULL;
         p = strchr(p + 1, '/')) {
        *p = '\0';
        must(mkdir(name, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
    file_write(name, 0, text, strlen(text));
    must(truncate(name, (off_t)strlen(text)) == 0);
}

static void
setup(void)
{
    env_setup();
    must(getcwd(root, sizeof root - 10) != NULL);
    (void)strcat(root, "/root");
    must(mkdir(root, 0700) == 0);
    real = xac_sys;
    xac_sys.openat = made_up_openat;
}

static uint64_t
machine(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * env_page();
}

START_TEST(without_a_limit_it_is_the_machines)
{
    must_eq(xac_memory_bytes(), machine()); /* no /proc */
    put("/proc/self/cgroup", "");
    must_eq(xac_memory_bytes(), machine());
    put("/proc/self/cgroup", "0::/a\nnonsense\n4:memory:/b\n");
    must_eq(xac_memory_bytes(), machine()); /* no files of groups */
    put(V2 "/a/memory.max", "max\n");
    put(V2 "/a/memory.high", "max\n");
    put(V1 "/b" V1_FILE, "9223372036854771712\n");
    must_eq(xac_memory_bytes(), machine());
}
END_TEST

START_TEST(limits_of_version_2_count)
{
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put(V2 "/a/memory.max", "104857600\n");
    must_eq(xac_memory_bytes(), 100 * MIB);
    put(V2 "/a/b/c/memory.max", "83886080\n");
    must_eq(xac_memory_bytes(), 80 * MIB);
    put(V2 "/a/b/memory.max", "62914560\n");
    must_eq(xac_memory_bytes(), 60 * MIB);
    put(V2 "/a/b/c/memory.high", "41943040\n");
    must_eq(xac_memory_bytes(), 40 * MIB);
    put(V2 "/other/memory.max", "1048576\n"); /* not ours */
    must_eq(xac_memory_bytes(), 40 * MIB);
    /* In a container the group that is mounted is the container's own. */
    put(V2 "/memory.max", "20971520\n");
    must_eq(xac_memory_bytes(), 20 * MIB);
}
END_TEST

START_TEST(limits_of_version_1_count)
{
    put("/proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/a/b\n0::/\n");
    put(V1 "/x" V1_FILE, "1048576\n"); /* another hierarchy's group */
    must_eq(xac_memory_bytes(), machine());
    put(V1 "/a" V1_FILE, "104857600\n");
    must_eq(xac_memory_bytes(), 100 * MIB);
    put(V1 "/a/b" V1_FILE, "83886080\n");
    must_eq(xac_memory_bytes(), 80 * MIB);
    put(V1 V1_FILE, "62914560\n");
    must_eq(xac_memory_bytes(), 60 * MIB);
}
END_TEST

static void
be_in_another_group(void *arg)
{
    uint64_t *base = arg;

    put(V2 "/a/memory.max", "41943040\n");
    env_increment(base);
    must_eq(xac_api_all->memory_bytes, 40 * MIB);
}

START_TEST(an_environment_knows_it)
{
    uint64_t *base;

    put("/proc/self/cgroup", "0::/a\n");
    put(V2 "/a/memory.max", "104857600\n");
    base = env_attach(NONDURABLE, 1);
    must_eq(xac_api_all->memory_bytes, 100 * MIB);
    proc_run(be_in_another_group, base);
    must_eq(xac_api_all->memory_bytes, 100 * MIB);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("memory");
    TCase *tc = env_tcase_with(s, "memory", 60, setup);

    tcase_add_test(tc, without_a_limit_it_is_the_machines);
    tcase_add_test(tc, limits_of_version_2_count);
    tcase_add_test(tc, limits_of_version_1_count);
    tcase_add_test(tc, an_environment_knows_it);
    return env_main(s);
}
