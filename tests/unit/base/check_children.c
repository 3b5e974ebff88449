/* SPDX-License-Identifier: MIT */
/*
 * check_children.c -- what a test has started ends with it, and a test ends with the program that runs it.
 *
 * GOAL    No process is left of a test that is killed, or of a whole test program.
 * METHOD  A child starts another program, and is killed.  This process inherits that program, and sees how it has ended.
 */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"

static _Atomic uint64_t *program; /* its process                                       */

/*
 * start_program -- in a child: one that would end by itself, but late.
 *
 * The program says itself that it is there: until then the kernel may not know yet that it ends with its parent, and it
 * would end by what proc_end_with() sees, not by a signal.
 */
static void
start_program(void *arg)
{
    pid_t pid = proc_fork();

    (void)arg;
    if (pid == 0) {
        word_store(program, (uint64_t)getpid());
        (void)execl("/bin/sleep", "sleep", "5", (char *)NULL);
        _exit(127);
    }
    for (;;)
        (void)pause();
}

START_TEST(a_program_ends_with_the_child_that_has_started_it)
{
    pid_t child, pid;
    int status;

    program = (_Atomic uint64_t *)proc_shared(sizeof *program);
    must_ok(prctl(PR_SET_CHILD_SUBREAPER, 1));
    child = proc_spawn(start_program, NULL);
    proc_await(program, 1, 60);
    pid = (pid_t)word_load(program);
    proc_kill(child);
    must_eq(waitpid(pid, &status, 0), pid);
    must(WIFSIGNALED(status));
    must_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

START_TEST(a_test_ends_with_its_program)
{
    const char *fork_mode = getenv("CK_FORK");
    int signal = 0;

    if (fork_mode != NULL && strcmp(fork_mode, "no") == 0)
        return; /* it is the program */
    must_ok(prctl(PR_GET_PDEATHSIG, &signal));
    must_eq(signal, SIGKILL);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("children");
    TCase *t = env_tcase(s, "children", 60);

    tcase_add_test(t, a_program_ends_with_the_child_that_has_started_it);
    tcase_add_test(t, a_test_ends_with_its_program);
    return env_main(s);
}
