/* SPDX-License-Identifier: MIT */
/*
 * tool_run.h -- run one of the tools, and look at what it says.
 *
 * Defines `output`, so it is included once per program.
 */
#ifndef XAC_TEST_TOOL_RUN_H
#define XAC_TEST_TOOL_RUN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

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

#define ck_says(words) ck_assert_msg(strstr(output, words) != NULL, "%s", output)

#endif /* XAC_TEST_TOOL_RUN_H */
