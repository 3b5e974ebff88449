/* SPDX-License-Identifier: MIT */
/*
 * swizzle_start.c -- `xbench swizzle`: becomes the program xbench-swizzle beside it, which has the
 * library's inside and so cannot be a part of a program that uses it from outside.
 */
#include <config.h>

#include "bench/main/xbench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/kit/util.h"

int
bench_swizzle_main(int argc, char **argv)
{
    static const char *const places[] = {"xbench-swizzle", "../xbench-swizzle"};
    char self[PATH_MAX], path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    (void)argc;
    if (n <= 0)
        return bench_fail("swizzle: where is this program? %s", strerror(errno));
    self[n] = '\0';
    slash = strrchr(self, '/');
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", self, places[i]);
        (void)execv(path, argv);
    }
    return bench_fail("swizzle: cannot start %s: %s", path, strerror(errno));
}
