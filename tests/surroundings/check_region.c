/* SPDX-License-Identifier: MIT */
/*
 * check_region.c -- the owner of shared memory: copies of an environment, files that a stranger
 * may have made, set-user-ID programs, closed descriptors, what the dead have left behind.
 *
 * METHOD  each test is a mistake of a user, or an attempt of a stranger.  This program is
 *         linked with the library's inside, so that a copy of it can be a set-user-ID program.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/tool_run.h"

#define STRANGER 12345

static void
run(const char *command)
{
    if (system(command) != 0)
        env_fail(__FILE__, __LINE__, "%s", command);
}

/* must_be_usable -- somebody can join, and commit. */
static void
must_be_usable(void *arg)
{
    uint64_t *x = env_attach(XAC_DURABLE, 4);

    (void)arg;
    env_increment(x);
    env_detach();
}

/* ---- Copies ------------------------------------------------------------------------------- */

static void
open_copy(void *arg)
{
    int rc = xac_init("copy", XAC_DURABLE);

    (void)arg;
    if (rc == 0)
        must_ok(xac_shutdown());
    else
        printf("opening the copy: %d, %s\n", rc, xac_last_error());
    rc = xac_recover("copy");
    printf("recovering the copy: %d, %s\n", rc, rc != 0 ? xac_last_error() : "");
    fflush(stdout);
}

START_TEST(copy_leaves_the_shared_memory_alone)
{
    pid_t pid = env_companion(XAC_DURABLE, 4);
    char region[4200], frames[5000];

    proc_run(must_be_usable, NULL);
    run("cp -a " ENV_DIR " copy");
    env_region("copy", region);
    snprintf(frames, sizeof frames, "%s.frames", region);
    proc_run(open_copy, NULL);
    (void)tool_run("xrecover", "", "copy");
    must(file_exists(region) && file_exists(frames));
    proc_run(must_be_usable, NULL);
    proc_kill(pid);
    /* Of nobody who is alive either: it is the original's to clear. */
    must(system("rm -r copy") == 0);
    run("cp -a " ENV_DIR " copy");
    proc_run(open_copy, NULL);
    must(file_exists(region) && file_exists(frames));
    proc_run(must_be_usable, NULL);
    must(!file_exists(region) && !file_exists(frames));
}
END_TEST

/* ---- Strangers ---------------------------------------------------------------------------- */

/* must_not_trust -- nobody joins. */
static void
must_not_trust(void *arg)
{
    (void)arg;
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_EUNTRUSTED);
}

/* try_suffix -- a region's file that is a link, has two names, is a stranger's. */
static void
try_suffix(const char *suffix)
{
    char region[4200], path[4300], other[4400];

    env_region(ENV_DIR, region);
    snprintf(path, sizeof path, "%s%s", region, suffix);
    snprintf(other, sizeof other, "%s.moved", path);
    must(rename(path, other) == 0 && symlink(other, path) == 0);
    proc_run(must_not_trust, NULL);
    must(unlink(path) == 0 && link(other, path) == 0);
    proc_run(must_not_trust, NULL);
    must(unlink(other) == 0);
    proc_run(must_be_usable, NULL);
    if (geteuid() != 0)
        return;
    must(chown(path, STRANGER, STRANGER) == 0);
    proc_run(must_not_trust, NULL);
    must(chown(path, 0, 0) == 0);
    proc_run(must_be_usable, NULL);
    must(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    proc_run(must_not_trust, NULL);
    must(unlink(path) == 0);
}

START_TEST(region_of_a_stranger_is_not_attached)
{
    pid_t pid = env_companion(XAC_DURABLE, 4);

    must(chmod(ENV_DIR, 0755) == 0);
    try_suffix("");
    proc_kill(pid);
}
END_TEST

START_TEST(buffer_file_of_a_stranger_is_not_attached)
{
    pid_t pid = env_companion(XAC_DURABLE, 4);

    must(chmod(ENV_DIR, 0755) == 0);
    try_suffix(".frames");
    proc_kill(pid);
}
END_TEST

/* ---- Set-user-ID --------------------------------------------------------------------------- */

/* show_region -- what a copy of this program does: open, and say where the region is. */
static int
show_region(void)
{
    char region[4200];

    if (xac_init("db", XAC_NONDURABLE) != 0) {
        printf("xInit: %s\n", xac_last_error());
        return 1;
    }
    env_region("db", region);
    printf("%s\n", region);
    return xac_shutdown();
}

/* as_stranger -- run a copy of this program. */
static void
as_stranger(void *arg)
{
    const char *program = arg;

    char *memory = realpath("memory", NULL);

    must(memory != NULL && setenv("XAC_SHM_DIR", memory, 1) == 0);
    must(setresgid(STRANGER, STRANGER, STRANGER) == 0
         && setresuid(STRANGER, STRANGER, STRANGER) == 0);
    execl(program, program, "--show-region", (char *)NULL);
    must(false);
}

START_TEST(set_user_id_programs_do_not_look_at_the_environment)
{
    char text[8192];

    if (geteuid() != 0) {
        printf("skipped: only root may make a program of another user\n");
        return;
    }
    must(mkdir("memory", 0777) == 0 && chmod("memory", 0777) == 0
         && chmod(".", 0777) == 0);
    run("cp /proc/$PPID/exe plain && cp plain privileged && "
        "chown 65534:65534 privileged && chmod 4755 privileged");
    must_eq(proc_capture(as_stranger, (void *)(uintptr_t) "./plain", text, sizeof text),
            0);
    must(strstr(text, "/memory/xac-") != NULL); /* its owner may choose */
    run("rm -r db");
    must_eq(proc_capture(as_stranger, (void *)(uintptr_t) "./privileged", text,
                         sizeof text),
            0);
    if (strncmp(text, "/dev/shm/", 9) != 0)
        env_fail(__FILE__, __LINE__, "region: %s", text);
}
END_TEST

/* ---- Left behind --------------------------------------------------------------------------- */

/* close_all_and_wait -- as some daemons do. */
static void
close_all_and_wait(void *arg)
{
    _Atomic uint64_t *ready = arg;
    uint64_t *x = env_attach(XAC_DURABLE, 4);

    env_increment(x);
    closefrom(3);
    word_store(ready, 1);
    for (;;)
        proc_sleep_us(1000000);
}

START_TEST(program_without_descriptors_is_alive)
{
    _Atomic uint64_t *ready = proc_shared(sizeof *ready);
    char region[4200];
    pid_t pid = proc_spawn(close_all_and_wait, ready);
    uint64_t *x;

    proc_await(ready, 1, 20);
    env_region(ENV_DIR, region);
    must_refuse(xac_recover(ENV_DIR), XAC_ELIVE);
    x = env_attach(XAC_DURABLE, 4); /* beside it, not in its place */
    must_eq(env_stats().participants, 2);
    must_eq(env_get(x), 1);
    env_increment(x);
    env_detach();
    must(file_exists(region));
    proc_kill(pid);
    proc_run(must_be_usable, NULL);
    must(!file_exists(region));
}
END_TEST

START_TEST(region_that_was_never_named_is_cleared)
{
    pid_t pid = env_companion(XAC_DURABLE, 4);
    char region[4200], other[4200];
    pid_t neighbour;

    env_region(ENV_DIR, region);
    proc_kill(pid);
    must(rename(ENV_DIR, "away") == 0);
    neighbour = env_companion(XAC_DURABLE, 4); /* another environment, in use ... */
    env_region(ENV_DIR, other);
    proc_kill(neighbour); /* ... and left as well */
    must(rename(ENV_DIR, "neighbour") == 0 && rename("away", ENV_DIR) == 0);
    must(truncate(ENV_DIR "/xac.lock", 0) == 0); /* died before it named its region */
    must(file_exists(region) && file_exists(other));
    proc_run(must_be_usable, NULL);
    must(!file_exists(region) && file_exists(other));
    must_ok(xac_recover("neighbour"));
    must(!file_exists(other));
}
END_TEST

/* must_say -- a line of the last tool about a region. */
static void
must_say(const char *region, const char *words)
{
    const char *at = strstr(output, region);
    const char *end = at != NULL ? strchr(at, '\n') : NULL;
    const char *said = at != NULL ? strstr(at, words) : NULL;

    if (said == NULL || said > end)
        env_fail(__FILE__, __LINE__, "%s: not %s: %s", region, words, output);
}

START_TEST(tool_lists_and_removes_what_nobody_maps)
{
    pid_t dead = env_companion(XAC_DURABLE, 4), pid;
    char lost[4200], used[4200], frames[5000], dir[4096];

    env_region(ENV_DIR, lost);
    snprintf(frames, sizeof frames, "%s.frames", lost);
    must(realpath(ENV_DIR, dir) != NULL);
    proc_kill(dead);
    run("rm -r " ENV_DIR); /* nobody clears it any more */
    pid = env_companion(XAC_DURABLE, 4);
    env_region(ENV_DIR, used);
    must_eq(tool_run("xrecover", "--shm", ""), 0);
    must_say(lost, "unused");
    must_say(lost, dir);
    must_say(used, "in use");
    must_eq(tool_run("xrecover", "--shm --remove", ""), 0);
    must_say(lost, "removed");
    must_say(used, "in use");
    must(!file_exists(lost) && !file_exists(frames) && file_exists(used));
    proc_run(must_be_usable, NULL);
    must_eq(tool_run("xrecover", "--shm --json", ""), 0);
    must(strstr(output, "\"use\": \"in use\"") != NULL);
    must_eq(tool_run("xrecover", "--remove", ENV_DIR), 2);
    proc_kill(pid);
}
END_TEST

int
main(int argc, char **argv)
{
    Suite *s;
    TCase *tc;

    if (argc > 1 && strcmp(argv[1], "--show-region") == 0)
        return show_region();
    s = suite_create("region");
    tc = env_tcase(s, "region", 60);
    tcase_add_test(tc, copy_leaves_the_shared_memory_alone);
    tcase_add_test(tc, region_of_a_stranger_is_not_attached);
    tcase_add_test(tc, buffer_file_of_a_stranger_is_not_attached);
    tcase_add_test(tc, set_user_id_programs_do_not_look_at_the_environment);
    tcase_add_test(tc, program_without_descriptors_is_alive);
    tcase_add_test(tc, region_that_was_never_named_is_cleared);
    tcase_add_test(tc, tool_lists_and_removes_what_nobody_maps);
    return env_main(s);
}
