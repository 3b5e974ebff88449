/* SPDX-License-Identifier: MIT */
/*
 * check_newfile.c -- goal: a new file has the owner and mode that its directory says, with any
 * umask, and nothing that lies at its name is followed or emptied; a stored path does not leave
 * its directory.  Method: directories of each kind, links and files put in the way, and
 * kernels that lack a call.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"

#include "tests/common/env.h"

static int dirfd;
static struct xac_sys real;

static void
setup(void)
{
    env_setup();
    dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dirfd, 0);
    real = xac_sys;
}

static void
teardown(void)
{
    xac_sys = real;
    close(dirfd);
}

static struct stat
look(const char *name)
{
    struct stat st;

    ck_assert_int_eq(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st;
}

static void
put(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static const char *
get(const char *name)
{
    static char text[64];
    FILE *f = fopen(name, "r");

    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    fclose(f);
    return text;
}

/* made -- mode of a file made in a directory of that mode, with that umask. */
static mode_t
made(mode_t dir, mode_t mask)
{
    struct xac_owner o;
    int fd;

    ck_assert_int_eq(fchmod(dirfd, dir), 0);
    (void)umask(mask);
    ck_assert_int_eq(xac_owner_get(dirfd, &o), 0);
    ck_assert_int_eq(xac_newfile_remake(dirfd, "new", &o, &fd), 0);
    close(fd);
    return look("new").st_mode & 07777u;
}

START_TEST(mode_is_that_of_the_directory)
{
    static const struct {
        mode_t dir, file;
    } want[] = {
        {0700, 0600},  {0750, 0600}, {0755, 0600},  {0770, 0660},
        {02770, 0660}, {0775, 0660}, {0777, 0666},  {01777, 0600},
        {01770, 0600}, {0760, 0600}, {03775, 0600}, {02775, 0660},
    };
    static const mode_t mask[] = {0, 022, 077, 0777};

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        for (size_t k = 0; k < 4; k++)
            ck_assert_uint_eq(made(want[i].dir, mask[k]), want[i].file);
    }
}
END_TEST

START_TEST(mode_is_that_of_the_master_record)
{
    put("xac.master", "x");
    ck_assert_int_eq(chmod("xac.master", 0644), 0);
    ck_assert_uint_eq(made(0700, 077), 0644);
    ck_assert_int_eq(rename("xac.master", "xac.log-of"), 0);
    ck_assert_uint_eq(made(0700, 077), 0644);
}
END_TEST

START_TEST(shared_mode_is_for_those_who_write)
{
    static const struct {
        mode_t master, shared;
    } want[] = {{0664, 0660}, {0644, 0600}, {0606, 0606}, {0666, 0666}, {0640, 0600}};
    struct xac_owner o;

    put("xac.master", "x");
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_int_eq(chmod("xac.master", want[i].master), 0);
        ck_assert_int_eq(xac_owner_get_shared(dirfd, &o), 0);
        ck_assert_uint_eq(o.mode, want[i].shared);
    }
    ck_assert(xac_owner_mode_ok(0640) && xac_owner_mode_ok(0666));
    ck_assert(!xac_owner_mode_ok(0620) && !xac_owner_mode_ok(0440));
    ck_assert(!xac_owner_mode_ok(0700) && !xac_owner_mode_ok(04600));
}
END_TEST

static int
refuse_chown(int fd, uid_t uid, gid_t gid)
{
    (void)fd;
    (void)uid;
    (void)gid;
    errno = EPERM;
    return -1;
}

START_TEST(group_that_cannot_be_given_gets_nothing)
{
    struct xac_owner o = {.uid = getuid(), .gid = getgid() + 1, .mode = 0660};
    int fd;

    xac_sys.fchown = refuse_chown;
    ck_assert_int_eq(xac_newfile_make(dirfd, "new", &o, &fd), 0);
    close(fd);
    ck_assert_uint_eq(look("new").st_mode & 0777u, 0600);
    o.mode = 0666;
    ck_assert_int_eq(xac_newfile_remake(dirfd, "new", &o, &fd), 0);
    ck_assert_uint_eq(look("new").st_mode & 0777u, 0666);
    o.mode = 0660;
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(xac_newfile_widen(fd, &o), 0);
    ck_assert_uint_eq(look("new").st_mode & 0777u, 0644);
    close(fd);
}
END_TEST

START_TEST(owner_and_group_are_given)
{
    struct xac_owner o = {.uid = 65534, .gid = 65534, .mode = 0660};
    int fd;

    if (getuid() != 0) {
        printf("skipped: only root may give files away\n");
        return;
    }
    ck_assert_int_eq(xac_newfile_make(dirfd, "new", &o, &fd), 0);
    close(fd);
    ck_assert_uint_eq(look("new").st_uid, 65534);
    ck_assert_uint_eq(look("new").st_gid, 65534);
}
END_TEST

static int
refuse_chmod(int fd, mode_t mode)
{
    (void)fd;
    (void)mode;
    errno = EIO;
    return -1;
}

START_TEST(failure_leaves_nothing)
{
    struct xac_owner o = {.uid = getuid(), .gid = getgid(), .mode = 0660};
    int fd;

    xac_sys.fchmod = refuse_chmod;
    ck_assert_int_eq(xac_newfile_make(dirfd, "new", &o, &fd), EIO);
    ck_assert_int_eq(access("new", F_OK), -1);
}
END_TEST

START_TEST(link_is_not_followed)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = "new",
                            .name = "name",
                            .is_synced = true};
    struct xac_owner o = {getuid(), getgid(), 0600};
    int fd;

    put("victim", "victim");
    ck_assert_int_eq(symlink("victim", "new"), 0);
    ck_assert_int_eq(symlink("victim", "name"), 0);
    ck_assert_int_eq(xac_newfile_make(dirfd, "new", &o, &fd), EEXIST);
    ck_assert_int_eq(xac_newfile_open(dirfd, "new", &o, &fd), ELOOP);
    ck_assert_int_eq(xac_newfile_replace(&f, "text", 4, NULL), 0);
    ck_assert_str_eq(get("victim"), "victim");
    ck_assert_str_eq(get("name"), "text");
    ck_assert(S_ISREG(look("name").st_mode));
    ck_assert_int_eq(access("new", F_OK), -1);
}
END_TEST

START_TEST(another_link_to_a_file_is_not_emptied)
{
    struct xac_newfile f = {.dirfd = dirfd, .made = "new", .name = "name"};
    char text[5] = "";
    int fd;

    put("victim", "victim");
    ck_assert_int_eq(link("victim", "new"), 0);
    ck_assert_int_eq(xac_newfile_replace(&f, "text", 4, &fd), 0);
    ck_assert_str_eq(get("victim"), "victim");
    ck_assert_int_eq(pread(fd, text, 4, 0), 4);
    ck_assert_str_eq(text, "text");
    close(fd);
}
END_TEST

START_TEST(stored_paths_that_lead_out_are_refused)
{
    static const char *const bad[] = {"..",   "../x", "a/../../x", "a/..", "",
                                      "a//b", "./a",  "a/.",       "a/",   "."};
    static const char *const good[] = {"a", "a/b", "..a", "a/..b", "a.", "...", "\ta"};
    const char *name;
    int fd = -1;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert(!xac_stored_is_inside(bad[i]));
        ck_assert_int_eq(xac_stored_open(dirfd, bad[i], O_RDONLY, &fd), XAC_EDAMAGED);
        ck_assert_int_eq(xac_stored_parent(dirfd, bad[i], &fd, &name), XAC_EDAMAGED);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert(xac_stored_is_inside(good[i]));
    ck_assert_int_eq(fd, -1);
}
END_TEST

/* see_links -- files are opened by stored paths, links are not. */
static void
see_links(void)
{
    const char *name;
    int fd;

    ck_assert_int_eq(xac_stored_open(dirfd, "dir/sub/file", O_RDWR, &fd), 0);
    close(fd);
    ck_assert_int_eq(xac_stored_open(dirfd, "dir/sub/none", O_RDWR, &fd), ENOENT);
    ck_assert_int_eq(xac_stored_open(dirfd, "none/file", O_RDWR, &fd), ENOENT);
    ck_assert_int_eq(xac_stored_open(dirfd, "dir/sub/link", O_RDWR, &fd), XAC_EUNTRUSTED);
    ck_assert_int_eq(xac_stored_open(dirfd, "over/file", O_RDWR, &fd), XAC_EUNTRUSTED);
    ck_assert_int_eq(xac_stored_parent(dirfd, "over/new", &fd, &name), XAC_EUNTRUSTED);
    ck_assert_int_eq(xac_stored_parent(dirfd, "dir/sub/new", &fd, &name), 0);
    ck_assert_str_eq(name, "new");
    ck_assert_int_eq(faccessat(fd, "file", F_OK, 0), 0);
    close(fd);
    ck_assert_int_eq(xac_stored_parent(dirfd, "new", &fd, &name), 0);
    ck_assert_int_eq(faccessat(fd, "dir", F_OK, 0), 0);
    close(fd);
}

static int
no_openat2(int at, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    (void)at;
    (void)path;
    (void)flags;
    (void)mode;
    (void)resolve;
    errno = ENOSYS;
    return -1;
}

START_TEST(stored_paths_do_not_follow_links)
{
    ck_assert_int_eq(mkdir("dir", 0755), 0);
    ck_assert_int_eq(mkdir("dir/sub", 0755), 0);
    put("dir/sub/file", "x");
    ck_assert_int_eq(symlink("file", "dir/sub/link"), 0);
    ck_assert_int_eq(symlink("dir/sub", "over"), 0);
    see_links();
    xac_sys.openat2 = no_openat2;
    see_links();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("newfile");
    TCase *tc = env_tcase_with(suite, "newfile", 60, setup);

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, mode_is_that_of_the_directory);
    tcase_add_test(tc, mode_is_that_of_the_master_record);
    tcase_add_test(tc, shared_mode_is_for_those_who_write);
    tcase_add_test(tc, group_that_cannot_be_given_gets_nothing);
    tcase_add_test(tc, owner_and_group_are_given);
    tcase_add_test(tc, failure_leaves_nothing);
    tcase_add_test(tc, link_is_not_followed);
    tcase_add_test(tc, another_link_to_a_file_is_not_emptied);
    tcase_add_test(tc, stored_paths_that_lead_out_are_refused);
    tcase_add_test(tc, stored_paths_do_not_follow_links);
    return env_main(suite);
}
