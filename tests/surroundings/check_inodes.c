/* SPDX-License-Identifier: MIT */
/*
 * check_inodes.c -- a removed file whose inode number goes to a new one.
 *
 * GOAL    what belongs to the file that was mapped, changes in the log and checksums of its
 *         pages, is not taken for the new file's.
 * METHOD  a process counts in a file; the file is removed and others are made under its
 *         name until one has its inode number, which ext4 gives away at once.  Where the
 *         number does not come back nothing is tested.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor.h"

#define TRIES 200

/* replace -- remove ENV_FILE and make another one with its inode number and this word at its
   start; false if none comes. */
static bool
replace(uint64_t word)
{
    char kept[32];
    struct stat was, is;

    must(stat(ENV_FILE, &was) == 0 && unlink(ENV_FILE) == 0);
    for (int i = 0; i < TRIES; i++) {
        file_write(ENV_FILE, 0, &word, sizeof word);
        must(stat(ENV_FILE, &is) == 0);
        if (is.st_ino == was.st_ino)
            return truncate(ENV_FILE, was.st_size) == 0;
        (void)snprintf(kept, sizeof kept, "kept-%d", i);
        must(rename(ENV_FILE, kept) == 0);
    }
    printf("the inode number does not come back here: nothing tested\n");
    return false;
}

START_TEST(recovery_knows_a_new_file_with_an_old_number)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10);

    proc_kill(a->pid);
    if (!replace(77))
        return;
    must_refuse(xac_recover(ENV_DIR), XAC_EREPLACED);
    must(strstr(xac_last_error(), "the same inode number") != NULL);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_EREPLACED);
    must_eq(file_u64(ENV_FILE, 0), 77);
    must_eq(tool_run("xrecover", "--accept-replaced", ENV_DIR), 0);
    must_eq(file_u64(ENV_FILE, 0), 10);
}
END_TEST

/* The new file is another one, to which nothing of the removed one is written. */
START_TEST(live_environment_knows_it_too)
{
    env_put((uint64_t *)env_attach(XAC_DURABLE, 1), 10);
    must_ok(xac_munmap(ENV_FILE));
    if (replace(77)) {
        uint64_t *at = (uint64_t *)xac_mmap(ENV_FILE, env_page());

        must(at != MAP_FAILED);
        must_eq(env_get(at), 77);
        must_ok(xac_checkpoint()); /* without the file that is gone */
        must_eq(file_u64(ENV_FILE, 0), 77);
        env_put(at, 78);
        must_ok(xac_shutdown());
        must_eq(file_u64(ENV_FILE, 0), 78);
    }
}
END_TEST

static void
keep_sums(void *arg)
{
    struct actor *a = (struct actor *)arg;

    must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1));
    play(a);
}

START_TEST(checksums_are_of_the_file_that_was_mapped)
{
    struct actor *a = actor_new(ENV_DIR, ENV_FILE);

    a->pid = proc_spawn(keep_sums, a);
    proc_await(&a->mapped, 1, 60);
    actor_count(a, 10);
    actor_leave(a);
    must_eq(tool_run("xrecover", "--check", ENV_DIR), 0);
    ck_says("1 page of 1 mapped file");
    if (!replace(77))
        return;
    must_eq(tool_run("xrecover", "--check", ENV_DIR), 0);
    ck_says("1 file gone or replaced");
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("inodes");
    TCase *tc = env_tcase(s, "inodes", 120);

    tcase_add_test(tc, recovery_knows_a_new_file_with_an_old_number);
    tcase_add_test(tc, live_environment_knows_it_too);
    tcase_add_test(tc, checksums_are_of_the_file_that_was_mapped);
    return actor_main(s);
}
