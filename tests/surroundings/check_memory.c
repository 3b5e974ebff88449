/* SPDX-License-Identifier: MIT */
/*
 * check_memory.c -- where the shared memory lies, and what becomes of it.
 *
 * GOAL    Where /dev/shm is too small, read-only, closed or not there at all,
 * everything works with shared memory in the environment's directory, and xstat
 * says where it lies and why.  When somebody removes its files while processes
 * are attached, others go on joining, and are told in words when they cannot.
 * METHOD  mount namespaces with a /dev/shm of their own, which takes root;
 * processes that count their commits, come, go and are killed.
 */
#include <config.h>

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor.h"

#define SHM    "/dev/shm"
#define NOBODY 65534

/* In the environment's directory. */
#define INSIDE ENV_DIR "/xac-*.control"

/* Pages of a transaction whose versions take 8 MiB. */
#define MANY 2048u

/* ---- What is where
 * --------------------------------------------------------------------- */

/* n_files -- how many names fit a pattern. */
static size_t
n_files(const char *pattern)
{
    glob_t g;
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;

    globfree(&g);
    return n;
}

/* is_apart -- a mount namespace of this test's own; false where one cannot be
 * had. */
static bool
is_apart(void)
{
    if (unshare(CLONE_NEWNS) == 0
        && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return unsetenv("XAC_SHM_DIR") == 0;
    printf("skipped: mounting: %s\n", strerror(errno));
    return false;
}

/* mount_shm -- a /dev/shm of this test's own. */
static void
mount_shm(unsigned long flags, const char *options)
{
    (void)mkdir(SHM, 0755); /* there may be none on this machine */
    must(mount("shm", SHM, "tmpfs", flags, options) == 0);
}

/* keep -- a device of the old /dev in the new one, if there is one. */
static void
keep(const char *name)
{
    char from[100], to[100];
    int fd;

    (void)snprintf(from, sizeof from, "dev/%s", name);
    (void)snprintf(to, sizeof to, "/dev/%s", name);
    if (!file_exists(from))
        return;
    fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    must(fd >= 0 && close(fd) == 0);
    must(mount(from, to, NULL, MS_BIND, NULL) == 0);
}

/* without_shm -- a /dev in which there is no /dev/shm. */
static void
without_shm(void)
{
    must(mkdir("dev", 0755) == 0);
    must(mount("/dev", "dev", NULL, MS_BIND | MS_REC, NULL) == 0);
    must(mount("dev", "/dev", "tmpfs", 0, "mode=755") == 0);
    keep("null");
    keep("urandom");
    keep("userfaultfd");
    must(umount2("dev", MNT_DETACH)
         == 0); /* what lies there must not be removed with it */
    must(!file_exists(SHM));
}

/* ---- Shared memory in the directory
 * ------------------------------------------------------ */

/* must_work -- several processes, one that is killed, a crash of all; nothing
 * stays behind. */
static void
must_work(const char *why)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10);
    struct actor *b = actor_start(ENV_DIR, ENV_FILE, 20); /* it found 10 */

    must_eq(n_files(INSIDE), 1);
    actor_count(a, 15);
    must_eq(tool_run("xstat", "", ENV_DIR), 0);
    ck_says("shared memory in " ENV_DIR "/xac-");
    ck_says(why);
    must_eq(tool_run("xstat", "--json", ENV_DIR), 0);
    ck_says("\"shared_memory\": \"" ENV_DIR "/xac-");
    must_eq(tool_run("xbackup", "", ENV_DIR " backup"), 0);
    proc_kill(b->pid);
    actor_count(a, 20);
    proc_kill(a->pid); /* all have crashed */
    must_eq(n_files(INSIDE), 1);
    must_eq(tool_run("xrecover", "", ENV_DIR), 0);
    must_eq(n_files(ENV_DIR "/xac-*.control*"), 0);
    a = actor_start(ENV_DIR, ENV_FILE, 0);
    must_eq(word_load(&a->count), 30);
    actor_leave(a);
    must_eq(n_files(ENV_DIR "/xac-*.control*"), 0);
}

START_TEST(small_memory_is_not_used)
{
    if (!is_apart())
        return;
    mount_shm(0, "size=1m");
    must_work("No space left on device");
    must_eq(n_files(SHM "/*"), 0);
}
END_TEST

START_TEST(read_only_memory_is_not_used)
{
    if (!is_apart())
        return;
    mount_shm(MS_RDONLY, "size=64m");
    must_work("Read-only file system");
}
END_TEST

START_TEST(absent_memory_is_not_missed)
{
    if (!is_apart())
        return;
    without_shm();
    must_work("No such file or directory");
}
END_TEST

START_TEST(closed_memory_is_not_used)
{
    if (!is_apart())
        return;
    mount_shm(0, "size=64m,mode=700");
    must(chmod(".", 0777) == 0);
    must(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0
         && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    must_work("Permission denied");
}
END_TEST

/* The pieces behind the first one: less than they take, more than the first
 * takes. */
START_TEST(memory_for_a_part_is_not_used)
{
    if (!is_apart())
        return;
    mount_shm(0, "size=64m");
    shell("fallocate -l 45M " SHM "/fill");        /* enough to begin there */
    must(setenv("XAC_FRAMES", "2000000", 1) == 0); /* not for the pool */
    must_work("No space left on device");
    must_eq(n_files(SHM "/xac-*"), 0);
}
END_TEST

START_TEST(relative_path_is_no_memory)
{
    must(mkdir("shm", 0777) == 0 && setenv("XAC_SHM_DIR", "shm", 1) == 0);
    must_work("Invalid argument");
    must_eq(n_files("shm/*"), 0);
}
END_TEST

/* see_many -- another process sees what write_many() has written. */
static void
see_many(void *arg)
{
    uint64_t *x = env_attach(XAC_DURABLE, MANY);

    (void)arg;
    must_ok(xac_begin_query());
    for (size_t i = 0; i < MANY; i++)
        must_eq(*env_cell(x, i), i + 1);
    must_ok(xac_end_query());
    env_detach();
}

/* write_many -- a large transaction, and a look at where its versions lie. */
static void
write_many(void *arg)
{
    const char *where = (const char *)arg;
    uint64_t *x = env_attach(XAC_DURABLE, MANY);

    must_ok(xac_begin());
    for (size_t i = 0; i < MANY; i++)
        *env_cell(x, i) = i + 1;
    must_ok(xac_end());
    must_eq(tool_run("xstat", "", ENV_DIR), 0);
    ck_says(where);
    env_detach();
}

START_TEST(memory_that_fills_up_later_stops_nobody)
{
    struct actor *a;

    if (!is_apart())
        return;
    mount_shm(0, "size=64m");
    a = actor_start(ENV_DIR, "other.db", 1);
    shell("head -c 64M /dev/zero > " SHM "/fill 2>/dev/null; true");
    proc_run(write_many, (void *)(uintptr_t) "that have no room there, in " ENV_DIR);
    proc_run(see_many, NULL);
    actor_count(a, 10);
    actor_leave(a);
    must_eq(n_files(SHM "/xac-*"), 0);
}
END_TEST

START_TEST(renamed_directory_takes_its_memory_along)
{
    struct actor *a, *b;

    must(setenv("XAC_SHM_DIR", "/nowhere", 1) == 0);
    a = actor_start(ENV_DIR, ENV_FILE, 3);
    must(rename(ENV_DIR, "renamed") == 0);
    b = actor_start("renamed", ENV_FILE, 6);
    actor_count(a, 4);
    actor_leave(a);
    actor_leave(b);
    must_eq(n_files("renamed/xac-*.control*"), 0);
}
END_TEST

START_TEST(copy_sheds_the_memory_of_the_original)
{
    struct actor *a, *b;

    must(setenv("XAC_SHM_DIR", "/nowhere", 1) == 0);
    a = actor_start(ENV_DIR, ENV_DIR "/in.db", 5);
    shell("cp -a " ENV_DIR " copy");
    must_eq(n_files("copy/xac-*.control"), 1);
    b = actor_start("copy", "copy/in.db", 7);
    must_eq(n_files("copy/xac-*.control"), 1); /* its own */
    actor_count(a, 6);
    actor_leave(b);
    must_eq(n_files("copy/xac-*.control*"), 0);
    must_eq(n_files(INSIDE), 1);
    actor_leave(a);
}
END_TEST

/* ---- Removed
 * ------------------------------------------------------------------------------
 */

/* remove_memory -- what systemd-logind does when a user logs out. */
static void
remove_memory(void)
{
    char region[4200], command[9000];

    env_region(ENV_DIR, region);
    must(file_exists(region));
    (void)snprintf(command, sizeof command, "rm %s*", region);
    shell(command);
    must(!file_exists(region));
}

/* must_go_on -- newcomers find those who are there, and each sees what the
 * other commits. */
static void
must_go_on(struct actor *a)
{
    uint64_t n = word_load(&a->count);
    struct actor *b, *c;

    b = actor_start(ENV_DIR, ENV_FILE, n + 5);
    must_eq(tool_run("xstat", "--json", ENV_DIR), 0);
    ck_says("\"participants\": 2");
    ck_says("\"shared_memory_removed\": true");
    must_eq(tool_run("xbackup", "", ENV_DIR " backup"), 0);
    must_eq(tool_run("xrecover", "", ENV_DIR), 4); /* in use */
    actor_count(a, n + 5);                         /* adds 5 to what b has made of it */
    c = actor_start(ENV_DIR, ENV_FILE, 0);
    must_eq(word_load(&c->count), n + 10);
    proc_kill(a->pid); /* those who came later have one another */
    actor_leave(b);
    a = actor_start(ENV_DIR, ENV_FILE, n + 12);
    actor_count(c, n + 11);
    actor_leave(c);
    actor_leave(a);
    a = actor_start(ENV_DIR, ENV_FILE, 0);
    must_eq(word_load(&a->count), n + 13);
    must_eq(tool_run("xstat", "--json", ENV_DIR), 0);
    ck_says("\"shared_memory_removed\": false");
    actor_leave(a);
}

START_TEST(removed_memory_is_found_in_its_participants)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 5);

    remove_memory();
    actor_count(a, 10);
    must_go_on(a);
}
END_TEST

START_TEST(removed_pool_is_found_in_its_participants)
{
    struct actor *a;

    must(setenv("XAC_FRAMES", "512", 1) == 0);
    a = actor_start(ENV_DIR, ENV_FILE, 5);
    remove_memory();
    must_go_on(a);
}
END_TEST

START_TEST(removed_memory_grows)
{
    struct actor *a = actor_start(ENV_DIR, "other.db", 5);

    remove_memory();
    proc_run(write_many, (void *)(uintptr_t) "files were removed");
    proc_run(see_many, NULL);
    actor_count(a, 10);
    actor_leave(a);
}
END_TEST

/* lose_descriptors -- all of them, when the memory has lost its name; and go on. */
static void
lose_descriptors(void *arg)
{
    _Atomic uint64_t *stage = (_Atomic uint64_t *)arg;
    uint64_t *x = env_attach(XAC_DURABLE, 1);

    word_store(stage, 1);
    proc_await(stage, 2, 60);
    closefrom(3);
    proc_sleep_us(50000); /* until it looks again */
    env_increment(x);
    env_detach();
}

START_TEST(removed_memory_is_opened_again)
{
    _Atomic uint64_t *stage = (_Atomic uint64_t *)proc_shared(sizeof *stage);
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 5), *b;
    pid_t pid = proc_spawn(lose_descriptors, stage);

    proc_await(stage, 1, 60);
    remove_memory();
    word_store(stage, 2);
    proc_join(pid);
    b = actor_start(ENV_DIR, ENV_FILE, 0);
    must_eq(word_load(&b->count), 6);
    actor_leave(b);
    actor_leave(a);
}
END_TEST

/* be_refused -- as somebody who may write the directory, but not look at its
 * participants. */
static void
be_refused(void *arg)
{
    (void)arg;
    must(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0
         && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_ENOTSHARED);
    must(strstr(xac_last_error(), "RemoveIPC=no") != NULL);
    must(tool_run("xstat", "", ENV_DIR) == 1);
    ck_says("RemoveIPC=no");
}

START_TEST(removed_memory_of_another_user_is_named)
{
    struct actor *a;

    if (geteuid() != 0) {
        printf("skipped: only root may become another user\n");
        return;
    }
    must(chmod(".", 0777) == 0 && mkdir(ENV_DIR, 0777) == 0 && chmod(ENV_DIR, 0777) == 0);
    a = actor_start(ENV_DIR, ENV_FILE, 5);
    remove_memory();
    proc_run(be_refused, NULL);
    actor_count(a, 6);
    actor_leave(a);
}
END_TEST

START_TEST(memory_of_another_namespace_is_not_joined)
{
    struct actor *a;

    if (!is_apart())
        return;
    mount_shm(0, "size=64m");
    a = actor_start(ENV_DIR, ENV_FILE, 5);
    must(unshare(CLONE_NEWNS) == 0);
    mount_shm(0, "size=64m"); /* over the other one */
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_ENOTSHARED);
    actor_leave(a);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("memory");
    TCase *tc = env_tcase(s, "directory", 100);

    if (geteuid() == 0) {
        tcase_add_test(tc, small_memory_is_not_used);
        tcase_add_test(tc, read_only_memory_is_not_used);
        tcase_add_test(tc, absent_memory_is_not_missed);
        tcase_add_test(tc, closed_memory_is_not_used);
        tcase_add_test(tc, memory_for_a_part_is_not_used);
        tcase_add_test(tc, memory_that_fills_up_later_stops_nobody);
    }
    tcase_add_test(tc, relative_path_is_no_memory);
    tcase_add_test(tc, renamed_directory_takes_its_memory_along);
    tcase_add_test(tc, copy_sheds_the_memory_of_the_original);
    tc = env_tcase(s, "removed", 100);
    tcase_add_test(tc, removed_memory_is_found_in_its_participants);
    tcase_add_test(tc, removed_pool_is_found_in_its_participants);
    tcase_add_test(tc, removed_memory_grows);
    tcase_add_test(tc, removed_memory_is_opened_again);
    tcase_add_test(tc, removed_memory_of_another_user_is_named);
    if (geteuid() == 0)
        tcase_add_test(tc, memory_of_another_namespace_is_not_joined);
    return actor_main(s);
}
