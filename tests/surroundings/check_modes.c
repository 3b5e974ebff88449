/* SPDX-License-Identifier: MIT */
/*
 * check_modes.c -- goal: nothing that the library makes can be read or written by a user who may
 * not, and all who may write the directory can take part, whatever their umask.
 * Method: environments with logs, data files of large transactions, checksums, notes, a backup
 * and shared memory in directories of each mode, made with several umasks; all files below them
 * are looked at, and opened by another account.  Needs root.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"

#define GROUP    54321u /* an account needs no name */
#define ALICE    54322u
#define BOB      54323u
#define STRANGER 65534u
#define PAGES    64u

/* Who a child is. */
struct account {
    uid_t uid;
    gid_t gid;
    mode_t mask;
};

static void
become(const struct account *who)
{
    (void)umask(who->mask);
    must_eq(setgroups(0, NULL), 0);
    must_eq(setresgid(who->gid, who->gid, who->gid), 0);
    must_eq(setresuid(who->uid, who->uid, who->uid), 0);
}

static void
setup(void)
{
    char shm[4096];

    env_setup();
    must(getcwd(shm, sizeof shm - 4) != NULL);
    strcat(shm, "/shm");
    must_eq(chmod(".", 0755), 0);
    must_eq(mkdir("shm", 0777), 0);
    must_eq(chmod("shm", 01777), 0);
    must_eq(setenv("XAC_SHM_DIR", shm, 1), 0);
    must_eq(setenv("XAC_FRAMES", "0", 1), 0);
}

/* make_dir -- the directory of the environment. */
static void
make_dir(mode_t mode, uid_t uid, gid_t gid)
{
    must_eq(mkdir(ENV_DIR, 0700), 0);
    must_eq(chown(ENV_DIR, uid, gid), 0);
    must_eq(chmod(ENV_DIR, mode), 0);
}

/* scribble -- bytes that no record can be short about. */
static void
scribble(uint64_t *to, size_t n)
{
    static uint64_t seed;

    for (size_t i = 0; i < n / sizeof *to; i++)
        to[i] = rnd_next(&seed);
}

/* fill -- attach, and make each kind of file that there is. */
static uint64_t *
fill(void)
{
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    must_ok(xInit(ENV_DIR, DURABLE));
    x = (uint64_t *)xMmap(ENV_DIR "/data.db", PAGES * env_page());
    must((void *)x != MAP_FAILED);
    must_ok(xbegin()); /* more than a quarter of the log buffer: a data file */
    for (size_t i = 0; i < PAGES; i++) {
        ++*env_cell(x, i);
        scribble(env_cell(x, i) + 1, 1024);
    }
    must_rc(xend(), COMMITTED);
    for (size_t i = 0; i < PAGES; i++) { /* more than a segment */
        must_ok(xbegin());
        ++*env_cell(x, i);
        scribble(env_cell(x, i) + 256, 1536);
        must_rc(xend(), COMMITTED);
    }
    must_ok(xCheckpoint());
    return x;
}

/* ---- Who may open what -------------------------------------------------------------- */

static mode_t may; /* bits that a file may have */
static unsigned n_looked;

/* look -- for nftw: of the library's files none has more, of the user's others no less. */
static int
look(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const char *name = path + at->base;

    if (type != FTW_F || strncmp(name, "xac", 3) != 0)
        return 0;
    n_looked++;
    if ((st->st_mode & 07777u) != may)
        env_fail(__FILE__, __LINE__, "%s: mode %o instead of %o", path,
                 (unsigned)st->st_mode & 07777u, (unsigned)may);
    return 0;
}

/* look_everywhere -- while somebody is attached, so that there is shared memory. */
static void
look_everywhere(mode_t bits)
{
    may = bits;
    n_looked = 0;
    must_eq(nftw(ENV_DIR, look, 16, FTW_PHYS), 0);
    must(file_exists(ENV_DIR "/xac-data.00000002.00000001"));
    must(n_looked >= 7); /* lock, master, addresses, sums, two segments, data file */
    n_looked = 0;
    must_eq(nftw("shm", look, 16, FTW_PHYS), 0);
    must(n_looked >= 2);
}

static const struct {
    mode_t dir, file;
} kinds[] = {
    {0700, 0600}, {0755, 0600}, {0750, 0600}, {0770, 0660}, {02770, 0660}, {0777, 0666},
};
static const mode_t masks[] = {0, 022, 077};

/* make_files -- in a directory of that kind, with that umask. */
static void
make_files(void *arg)
{
    const int *i = (const int *)arg;

    (void)umask(masks[*i % 3]);
    make_dir(kinds[*i / 3].dir, 0, GROUP);
    (void)fill();
    look_everywhere(kinds[*i / 3].file);
    must_ok(xBackup("backup"));
    may = 0600;
    n_looked = 0;
    must_eq(nftw("backup", look, 16, FTW_PHYS), 0);
    must(n_looked >= 4);
    must_ok(xShutdown());
}

START_TEST(files_have_the_mode_of_the_directory)
{
    proc_run(make_files, &_i);
}
END_TEST

static int
open_it(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const char *name = path + at->base;
    int fd;

    (void)st;
    if (type != FTW_F || strncmp(name, "xac", 3) != 0)
        return 0;
    n_looked++;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        env_fail(__FILE__, __LINE__, "%s: a stranger can read it", path);
    must_eq(errno, EACCES);
    return 0;
}

static void
open_all(void *arg)
{
    struct account stranger = {STRANGER, STRANGER, 022};

    (void)arg;
    become(&stranger);
    must_eq(nftw(ENV_DIR, open_it, 16, FTW_PHYS), 0);
    must_eq(nftw("shm", open_it, 16, FTW_PHYS), 0);
    must(n_looked >= 9);
    must_refuse(xInit(ENV_DIR, DURABLE), EACCES);
}

static _Atomic uint64_t *is_filled;

static void
stay(void *arg)
{
    (void)arg;
    (void)umask(0);
    make_dir(0755, 0, 0);
    (void)fill();
    word_store(is_filled, 1);
    for (;;)
        proc_sleep_us(1000000);
}

START_TEST(stranger_reads_nothing)
{
    pid_t pid;

    is_filled = (_Atomic uint64_t *)proc_shared(sizeof *is_filled);
    pid = proc_spawn(stay, NULL);
    proc_await(is_filled, 1, 60);
    proc_run(open_all, NULL);
    proc_kill(pid);
}
END_TEST

/* ---- A group ------------------------------------------------------------------------- */

struct turns {
    _Atomic uint64_t now;
};

static struct turns *turns;
static struct account members[2] = {{ALICE, GROUP, 077}, {BOB, GROUP, 022}};

/* take_turns -- one after the other, so that both make segments; then one leaves. */
static void
take_turns(void *arg)
{
    uint64_t me = *(const uint64_t *)arg;
    uint64_t *x;

    if (me == 1)
        proc_await(&turns->now, 1, 60);
    become(&members[me]);
    x = fill();
    word_add(&turns->now, 1);
    for (uint64_t turn = 2 + me; turn < 20; turn += 2) {
        proc_await(&turns->now, turn, 60);
        for (size_t i = 0; i < 30; i++)
            env_increment(env_cell(x, i));
        must_ok(xCheckpoint());
        word_add(&turns->now, 1);
    }
    proc_await(&turns->now, 20, 60);
    must_ok(xShutdown());
}

START_TEST(group_shares_a_directory)
{
    static uint64_t me[2] = {0, 1};
    pid_t pid[2];

    turns = (struct turns *)proc_shared(sizeof *turns);
    make_dir(02770, ALICE, GROUP);
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(take_turns, &me[i]);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    must_eq(file_u64(ENV_DIR "/data.db", 0), 2 + 2 * 30 * 0 + 2 + 18);
}
END_TEST

/* owned -- for nftw. */
static int
owned(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    if (type == FTW_F && (st->st_uid != ALICE || st->st_gid != GROUP))
        env_fail(__FILE__, __LINE__, "%s: of user %u, group %u", path,
                 (unsigned)st->st_uid, (unsigned)st->st_gid);
    return 0;
}

static void
fill_as_root(void *arg)
{
    (void)arg;
    (void)umask(077);
    (void)fill();
    must_eq(nftw(ENV_DIR, owned, 16, FTW_PHYS), 0);
    must_eq(nftw("shm", owned, 16, FTW_PHYS), 0);
    must_ok(xShutdown());
}

static void
fill_as_member(void *arg)
{
    become((const struct account *)arg);
    (void)fill();
    must_ok(xShutdown());
}

START_TEST(what_root_makes_belongs_to_the_directory)
{
    make_dir(0700, ALICE, GROUP);
    proc_run(fill_as_root, NULL);
    proc_run(fill_as_member, &members[0]);
}
END_TEST

/* ---- The option ---------------------------------------------------------------------- */

static mode_t
mode_of(const char *path)
{
    struct stat st;

    must_eq(stat(path, &st), 0);
    return st.st_mode & 07777u;
}

static void
fill_readable(void *arg)
{
    (void)arg;
    must_ok(xSetOption(XAC_OPT_MODE, 0644));
    (void)fill();
    must_eq(mode_of(ENV_DIR "/xac.master"), 0644);
    must_eq(mode_of(ENV_DIR "/xac-log.00000001"), 0644);
    may = 0600;
    must_eq(nftw("shm", look, 16, FTW_PHYS), 0);
    must_eq(n_looked, 2);
    must_ok(xShutdown());
}

static void
fill_kept(void *arg)
{
    (void)arg;
    (void)umask(077);
    (void)fill();
    must_eq(mode_of(ENV_DIR "/xac-log.00000002"), 0644);
    must_eq(mode_of(ENV_DIR "/xac.addresses"), 0644);
    must_ok(xShutdown());
}

static void
set_as_another(void *arg)
{
    become((const struct account *)arg);
    must_ok(xSetOption(XAC_OPT_MODE, 0600));
    must_refuse(xInit(ENV_DIR, DURABLE), EPERM);
}

START_TEST(option_says_the_mode_and_stays)
{
    make_dir(0770, 0, GROUP);
    proc_run(fill_readable, NULL);
    proc_run(fill_kept, NULL);
    must_refuse(xSetOption(XAC_OPT_MODE, 0622), EINVAL);
    must_refuse(xSetOption(XAC_OPT_MODE, 0700), EINVAL);
    must_eq(chmod(ENV_DIR "/xac.master", 0666), 0);
    must_eq(chmod(ENV_DIR "/xac.lock", 0666), 0);
    proc_run(set_as_another, &members[1]);
}
END_TEST

/* ---- Log directory, backup ----------------------------------------------------------- */

static void
fill_elsewhere(void *arg)
{
    (void)arg;
    (void)umask(022);
    must_ok(xSetLogDirectory("log"));
    (void)fill();
    must_eq(mode_of("log"), 02770);
    may = 0660;
    n_looked = 0;
    must_eq(nftw("log", look, 16, FTW_PHYS), 0);
    must(n_looked >= 2);
    must_ok(xShutdown());
}

START_TEST(log_directory_is_as_private)
{
    make_dir(02770, 0, GROUP);
    proc_run(fill_elsewhere, NULL);
}
END_TEST

static void
back_up(void *arg)
{
    uint64_t *x;

    (void)arg;
    (void)umask(0);
    make_dir(0755, 0, 0);
    must_eq(mkdir(ENV_DIR "/sub", 0750), 0);
    must_ok(xInit(ENV_DIR, DURABLE));
    x = (uint64_t *)xMmap(ENV_DIR "/sub/secret.db", env_page());
    must((void *)x != MAP_FAILED);
    must_eq(chmod(ENV_DIR "/sub/secret.db", 0600), 0);
    must_eq(chown(ENV_DIR "/sub/secret.db", ALICE, GROUP), 0);
    env_increment(x);
    must_ok(xBackup("backup"));
    must_ok(xShutdown());
}

START_TEST(backup_is_as_private)
{
    struct stat st;

    proc_run(back_up, NULL);
    must_eq(mode_of("backup"), 0700);
    must_eq(mode_of("backup/sub"), 0750);
    must_eq(mode_of("backup/sub/secret.db"), 0600);
    must_eq(stat("backup/sub/secret.db", &st), 0);
    must_eq(st.st_uid, ALICE);
    must_eq(st.st_gid, GROUP);
    must_eq(mode_of("backup/xac-log.00000001"), 0600);
    must_eq(mode_of("backup/xac.master"), 0600);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("modes");
    TCase *tc;

    if (geteuid() != 0) {
        puts("skipped: only root may become another user");
        return 77;
    }
    tc = env_tcase_with(s, "modes", 120, setup);
    tcase_add_loop_test(tc, files_have_the_mode_of_the_directory, 0, 18);
    tcase_add_test(tc, stranger_reads_nothing);
    tcase_add_test(tc, group_shares_a_directory);
    tcase_add_test(tc, what_root_makes_belongs_to_the_directory);
    tcase_add_test(tc, option_says_the_mode_and_stays);
    tcase_add_test(tc, log_directory_is_as_private);
    tcase_add_test(tc, backup_is_as_private);
    return env_main(s);
}
