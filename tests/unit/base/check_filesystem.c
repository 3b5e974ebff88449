/* SPDX-License-Identifier: MIT */
/*
 * check_filesystem.c -- file systems that lose locks, and those that take memory.
 *
 * GOAL    an environment or a log on a file system of the network is refused unless the user
 *         allows it; versions take a share of memory and no more, and whatever the reason is
 *         that the file in memory cannot grow, they go on in the one on disk.
 * METHOD  fstatfs and fallocate of the table of system calls are false.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "base/filesystem.h"
#include "base/sys.h"
#include "recovery/recover.h"
#include "store/version.h"

#define TMPFS_TYPE 0x01021994

static struct statfs made_up;
static struct stat where; /* the directory that it is said of; inode 0: of all */

static int
made_up_fstatfs(int fd, struct statfs *fs)
{
    struct stat st;

    must(fstat(fd, &st) == 0);
    if (where.st_ino != 0 && st.st_ino != where.st_ino) {
        *fs = (struct statfs){.f_type = 0xef53, .f_bsize = 4096, .f_blocks = 1 << 20};
        return 0;
    }
    *fs = made_up;
    return 0;
}

/* pretend -- a file system of that type and size, everywhere or in one directory. */
static void
pretend(long type, uint64_t bytes, const char *dir)
{
    made_up = (struct statfs){.f_type = type, .f_bsize = 4096};
    made_up.f_blocks = bytes / 4096;
    where.st_ino = 0;
    must(dir == NULL || stat(dir, &where) == 0);
    xac_sys.fstatfs = made_up_fstatfs;
}

/* ---- Locks ------------------------------------------------------------------------- */

static const long network[] = {0x6969,     0x517b,     (long)0xff534d42, (long)0xfe534d42,
                               0x01021997, 0x00c36400, 0x0bd00bd0,       0x5346414f};
#define N_NETWORK ((int)(sizeof network / sizeof network[0]))

START_TEST(refuse_a_file_system_of_the_network)
{
    pretend(network[_i], 1 << 30, NULL);
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EFILESYSTEM);
    must_refuse(xInit(ENV_DIR, NONDURABLE), XAC_EFILESYSTEM);
    must(access(ENV_DIR "/xac.lock", F_OK) != 0); /* nothing has been made there */
    must(setenv("XAC_ALLOW_NETWORK_FS", "0", 1) == 0);
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EFILESYSTEM);
    must(setenv("XAC_ALLOW_NETWORK_FS", "1", 1) == 0);
    must_ok(xInit(ENV_DIR, DURABLE));
    must_ok(xShutdown());
    must(unsetenv("XAC_ALLOW_NETWORK_FS") == 0);
    must_refuse(xRecover(ENV_DIR), XAC_EFILESYSTEM);
}
END_TEST

START_TEST(refuse_a_log_on_the_network)
{
    must(mkdir("log", 0700) == 0);
    must_ok(xSetLogDirectory("log"));
    pretend(0x6969, 1 << 30, "log");
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EFILESYSTEM);
    must(setenv("XAC_ALLOW_NETWORK_FS", "1", 1) == 0);
    must_ok(xInit(ENV_DIR, DURABLE));
    must_ok(xShutdown());
}
END_TEST

static _Atomic uint64_t *phase;

static void
stay(void *arg)
{
    (void)arg;
    must_ok(xInit(ENV_DIR, DURABLE));
    word_store(&phase[0], 1);
    proc_await(&phase[1], 1, 30);
    must_ok(xShutdown());
}

/* Also to a process that comes later, when others have the log open. */
START_TEST(refuse_to_join_a_log_on_the_network)
{
    pid_t pid;

    phase = proc_shared(2 * sizeof *phase);
    must(mkdir("log", 0700) == 0);
    must_ok(xSetLogDirectory("log"));
    pid = proc_spawn(stay, NULL);
    proc_await(&phase[0], 1, 30);
    pretend(0x6969, 1 << 30, "log");
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EFILESYSTEM);
    must(setenv("XAC_ALLOW_NETWORK_FS", "1", 1) == 0);
    must_ok(xInit(ENV_DIR, DURABLE));
    must_ok(xShutdown());
    word_store(&phase[1], 1);
    proc_join(pid);
}
END_TEST

/* recover -- as the tools do. */
static int
recover(bool is_dry)
{
    struct xac_recover_options how = {.dry_run = is_dry};
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    must(fd >= 0);
    rc = xac_recover_dir(fd, &how, NULL, NULL);
    must(close(fd) == 0);
    return rc;
}

START_TEST(refuse_to_recover_on_the_network)
{
    must(mkdir("log", 0700) == 0);
    must_ok(xSetLogDirectory("log"));
    must_ok(xInit(ENV_DIR, DURABLE));
    must_ok(xShutdown());
    pretend(0x6969, 1 << 30, _i == 0 ? "log" : ENV_DIR);
    must_refuse(recover(false), XAC_EFILESYSTEM);
    must_ok(recover(true)); /* which only looks */
    must(setenv("XAC_ALLOW_NETWORK_FS", "1", 1) == 0);
    must_ok(recover(false));
}
END_TEST

START_TEST(accept_local_file_systems)
{
    static const long local[] = {0xef53,     0x58465342, (long)0x9123683e, 0x794c7630,
                                 TMPFS_TYPE, 0x2fc12fc1, (long)0xf2f52010, 0x65735546};

    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        pretend(local[i], UINT64_C(1) << 34, NULL);
        must_ok(xInit(ENV_DIR, DURABLE));
        must_ok(xShutdown());
    }
}
END_TEST

/* ---- Memory ------------------------------------------------------------------------ */

static int frames_fd;
static int frames_error; /* of growing that file */
static int (*real_fallocate)(int, int, off_t, off_t);

static int
failing_fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (fd == frames_fd) {
        errno = frames_error;
        return -1;
    }
    return real_fallocate(fd, mode, offset, length);
}

/* take -- so many frames, each of which can be stored to. */
static void
take(struct xac_env *env, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t frame;

        must_ok(xac_version_take(env, env->ctx.slot, &frame));
        must(xac_version_bytes(env, frame) != NULL);
        xac_version_bytes(env, frame)[0] = 1;
    }
}

static uint64_t
spill_of(struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->versions.spill, memory_order_relaxed);
}

START_TEST(spill_for_every_error)
{
    static const int errors[] = {ENOSPC, EDQUOT, ENOMEM, EFBIG, EIO, EOPNOTSUPP};
    struct xac_env *env = world_open(XAC_NONDURABLE);

    take(env, 10);
    real_fallocate = xac_sys.fallocate;
    frames_fd = env->buffers.fd[0];
    frames_error = errors[_i];
    xac_sys.fallocate = failing_fallocate;
    take(env, 1000);
    must(spill_of(env) > 10);
    must_ok(xac_env_close(env));
}
END_TEST

START_TEST(versions_take_a_quarter_of_memory)
{
    struct xac_env *env, *other;
    struct stat st;

    pretend(0xef53, UINT64_C(1) << 34, NULL);
    must_eq(xac_filesystem_share(0, 1), UINT64_MAX); /* a disk takes no memory */
    pretend(TMPFS_TYPE, 4 * 1000 * env_page(), NULL);
    env = world_open(XAC_NONDURABLE);
    must_eq(xac_filesystem_share(0, UINT64_MAX), 1000 * env_page());
    must_eq(xac_filesystem_share(0, 4 * 900 * env_page()), 900 * env_page());
    take(env, 2000);
    must_eq(spill_of(env), 1001);
    must(fstat(env->buffers.fd[0], &st) == 0);
    must((uint64_t)st.st_size <= 1000 * env_page());
    other = world_open(XAC_NONDURABLE);
    must_ok(xac_env_close(other));
    must_ok(xac_env_close(env));
}
END_TEST

/* Who comes later may be in a smaller control group. */
START_TEST(versions_take_the_least_share_of_all)
{
    struct xac_env *env, *other;

    pretend(TMPFS_TYPE, 4 * 5000 * env_page(), NULL);
    env = world_open(XAC_NONDURABLE);
    pretend(TMPFS_TYPE, 4 * 600 * env_page(), NULL);
    other = world_open(XAC_NONDURABLE);
    must_eq(xac_buffers_bound(env), 600);
    take(env, 700);
    must_eq(spill_of(env), 601);
    must_ok(xac_env_close(other));
    must_ok(xac_env_close(env));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("filesystem");
    TCase *tc = env_tcase(s, "filesystem", 60);

    tcase_add_loop_test(tc, refuse_a_file_system_of_the_network, 0, N_NETWORK);
    tcase_add_test(tc, refuse_a_log_on_the_network);
    tcase_add_test(tc, refuse_to_join_a_log_on_the_network);
    tcase_add_loop_test(tc, refuse_to_recover_on_the_network, 0, 2);
    tcase_add_test(tc, accept_local_file_systems);
    tcase_add_loop_test(tc, spill_for_every_error, 0, 6);
    tcase_add_test(tc, versions_take_a_quarter_of_memory);
    tcase_add_test(tc, versions_take_the_least_share_of_all);
    return env_main(s);
}
