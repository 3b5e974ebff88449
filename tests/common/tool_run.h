/* SPDX-License-Identifier: MIT */
/*
 * tool_run.h -- run one of the tools, and look at what it says.
 *
 * Defines `output`, so it is included once per program.
 */
#ifndef XAC_TEST_TOOL_RUN_H
#define XAC_TEST_TOOL_RUN_H

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[1 << 16]; /* stdout and stderr of the last run */

/* tool_run -- a tool of the build, or one at a path, with some arguments on a directory;
   ret its exit code. */
static inline int
tool_run(const char *tool, const char *arguments, const char *dir)
{
    const char *top = getenv("top_builddir");
    char command[5000];
    size_t n;
    FILE *p;
    int status;

    (void)snprintf(command, sizeof command, "%s%s%s %s %s 2>&1",
                   tool[0] == '/' ? "" : (top != NULL ? top : "."),
                   tool[0] == '/' ? "" : "/", tool, arguments, dir);
    p = popen(command, "re");
    ck_assert_ptr_nonnull(p);
    n = fread(output, 1, sizeof output - 1, p);
    output[n] = '\0';
    status = pclose(p);
    ck_assert_msg(WIFEXITED(status), "%s", command);
    return WEXITSTATUS(status);
}

/* tool_children -- the numbers of the processes that a tool has begun, a blank behind each. */
static inline void
tool_children(pid_t pid, char text[8000])
{
    char path[100];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    n = read(fd, text, 7999);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    (void)close(fd);
}

/* tool_n_children -- so many. */
static inline unsigned
tool_n_children(pid_t pid)
{
    char text[8000];
    unsigned n = 0;

    tool_children(pid, text);
    for (const char *p = text; *p != '\0'; p++)
        n += *p == ' ';
    return n;
}

#define ck_says(words) ck_assert_msg(strstr(output, words) != NULL, "%s", output)

#endif /* XAC_TEST_TOOL_RUN_H */
