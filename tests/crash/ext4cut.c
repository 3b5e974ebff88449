/* SPDX-License-Identifier: MIT */
/*
 * ext4cut.c -- power cuts of a real file system.
 *
 * Another judge than tests/crash/powercut, which plays a disk of our own idea: here the files
 * lie on ext4, on a loop device, and in the middle of the load the file system is shut
 * down without a flush of its journal (EXT4_IOC_SHUTDOWN).  Changes not synced are lost
 * then, in the way that ext4 loses it.  It is unmounted, mounted again (which replays the
 * journal), recovered and compared with what the writers had been promised; they are those of
 * powercut_work.c.  In some rounds the recovery is cut as well.
 *
 *   ext4cut               XAC_ROUNDS (3) rounds
 *   XAC_SEED=n            other histories; the processes' timing is chance all the same
 *   XAC_KEEP=directory    the files of rounds that went wrong are left there, as they were
 *                         before their recovery
 *
 * Mounts are made in a name space of their own and end with the program.  Exit code 0 if all
 * rounds came out right, 77 if this cannot be done here: it takes root, a loop device
 * and mkfs.ext4.
 */
#define _GNU_SOURCE
#include <config.h>

#include "powercut.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "../common/env.h"

#define IMAGE       "disk.img"
#define IMAGE_BYTES ((off_t)96 << 20)
#define MOUNT       "mnt"
#define HANG_S      60u
#define SKIPPED     77

/* Not in a public header of the kernel's. */
#define EXT4_IOC_SHUTDOWN      _IOR('X', 125, uint32_t)
#define EXT4_SHUTDOWN_NO_FLUSH 2u

struct totals {
    _Atomic uint64_t outcome[OUTCOMES];
    _Atomic uint64_t promised; /* transactions that were acknowledged by a cut          */
    _Atomic uint64_t tried;    /* and those that may or may not be there                */
    _Atomic uint64_t recoveries_cut;
};

static struct totals *totals;

/* ---- The disk -------------------------------------------------------------------------- */

/* skip -- say why this cannot be done here. */
static void
skip(const char *why)
{
    printf("ext4cut: skipped: %s\n", why);
    exit(SKIPPED);
}

static bool
run(const char *command)
{
    int status = system(command);

    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool
disk_mount(void)
{
    return run("mount -t ext4 -o loop " IMAGE " " MOUNT " 2>mount.log");
}

/* disk_unmount -- once those who were killed have let go of it. */
static void
disk_unmount(void)
{
    for (int i = 0; umount(MOUNT) != 0; i++) {
        must(errno == EBUSY && i < 1000);
        proc_sleep_us(2000);
    }
}

static void
disk_open(void)
{
    int fd;

    if (geteuid() != 0)
        skip("not root");
    if (access("/dev/loop-control", F_OK) != 0)
        skip("no loop devices");
    if (unshare(CLONE_NEWNS) != 0
        || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip("no mount name spaces");
    fd = open(IMAGE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0 && ftruncate(fd, IMAGE_BYTES) == 0);
    (void)close(fd);
    if (!run("mkfs.ext4 -q -F " IMAGE " 2>mkfs.log"))
        skip("mkfs.ext4 is missing or fails");
    must(mkdir(MOUNT, 0755) == 0);
    if (!disk_mount())
        skip("a loop device cannot be mounted");
}

/* disk_cut -- the power fails: nothing reaches the disk any more. */
static void
disk_cut(void)
{
    uint32_t how = EXT4_SHUTDOWN_NO_FLUSH;
    int fd = open(MOUNT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0);
    if (ioctl(fd, EXT4_IOC_SHUTDOWN, &how) != 0)
        skip("the kernel does not shut file systems down");
    (void)close(fd);
}

/* disk_back -- and comes back; memory has forgotten all. */
static void
disk_back(void)
{
    disk_unmount();
    disk_empty_dir("shm");
    must(disk_mount());
}

/* ---- A round --------------------------------------------------------------------------- */

static void
kill_all(const pid_t pid[WRITERS])
{
    for (unsigned w = 0; w < WRITERS; w++)
        (void)kill(pid[w], SIGKILL);
    for (unsigned w = 0; w < WRITERS; w++) {
        int status = proc_wait(pid[w]);

        must(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                 : WEXITSTATUS(status) == 0);
    }
}

static uint64_t
acknowledged(void)
{
    struct promise p;
    uint64_t sum = 0;

    work_promise(&p);
    for (unsigned w = 0; w < WRITERS; w++)
        sum += p.acknowledged[w];
    return sum;
}

/* wait_for -- so many transactions, or half a second, and a moment more. */
static void
wait_for(uint64_t transactions, uint64_t *seed)
{
    double end = env_now() + 0.5;

    while (acknowledged() < transactions && env_now() < end)
        proc_sleep_us(50);
    proc_sleep_us(rnd_below(seed, 2000));
}

/* load_and_cut -- some sessions that are killed, then one that loses its disk. */
static void
load_and_cut(struct run *r, uint64_t *seed)
{
    uint64_t sessions = rnd_below(seed, 3);
    pid_t pid[WRITERS];

    for (unsigned s = 0; s <= sessions; s++) {
        work_start(r, s, pid);
        wait_for(acknowledged() + rnd_below(seed, 60), seed);
        if (s == sessions)
            disk_cut();
        kill_all(pid);
    }
    disk_back();
}

static void
recover_only(void *arg)
{
    (void)xac_recover((const char *)arg);
}

/* cut_recovery -- it is under way when the disk goes. */
static void
cut_recovery(const struct run *r, uint64_t *seed)
{
    char db[500];
    pid_t pid;

    snprintf(db, sizeof db, "%s/%s", r->root, work_path[0]);
    pid = proc_spawn(recover_only, db);
    proc_sleep_us(rnd_below(seed, 8000));
    disk_cut();
    (void)kill(pid, SIGKILL);
    (void)proc_wait(pid);
    disk_back();
    word_add(&totals->recoveries_cut, 1);
}

struct judged {
    const struct run *run;
    struct promise promise;
    uint64_t seed;
};

/* judge -- in a process of its own, which may crash or hang. */
static void
judge(void *arg)
{
    const struct judged *j = (const struct judged *)arg;
    char what[WORDS_MAX] = "";
    enum outcome o;

    alarm(HANG_S);
    o = judge_recovery(j->run, &j->promise, true, j->seed, what, sizeof what);
    word_add(&totals->outcome[o], 1);
    if (o != OUTCOME_RIGHT)
        printf("%s: round of seed %llu (flags %u): %s\n", outcome_name[o],
               (unsigned long long)j->run->seed, j->run->script->flags, what);
    fflush(stdout);
}

/* script_of -- what a round plays. */
static struct script
script_of(uint64_t *seed)
{
    static const unsigned flags[] = {WITH_CHECKPOINTS, WITH_LARGE,      WITH_GROWTH,
                                     WITH_ARCHIVE,     WITH_OPTIMISTIC, WITH_DIGESTS,
                                     WITH_RECYCLE};
    struct script s = {"ext4", WITH_FAILURE, 1, TXNS_MAX / 4};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        s.flags |= rnd_below(seed, 3) != 0 ? flags[i] : 0;
    return s;
}

/* keep -- a copy of the files as they are before their recovery, until it comes out right. */
static void
keep(const struct run *r, const char *dir)
{
    char command[1000];

    snprintf(command, sizeof command,
             "mkdir -p '%s' && cp -a --sparse=always '%s' '%s/%llu'", dir, r->root, dir,
             (unsigned long long)r->seed);
    must(run(command));
}

static void
keep_no_more(const struct run *r, const char *dir)
{
    char command[500];

    snprintf(command, sizeof command, "rm -r '%s/%llu'", dir,
             (unsigned long long)r->seed);
    must(run(command));
}

static void
one_round(struct run *r, uint64_t number)
{
    uint64_t seed = number;
    struct script script = script_of(&seed);
    struct judged j = {.run = r, .seed = number};
    const char *dir = getenv("XAC_KEEP");
    uint64_t right = word_load(&totals->outcome[OUTCOME_RIGHT]);
    int status;

    r->script = &script;
    r->seed = number;
    work_history(r);
    work_prepare(r);
    load_and_cut(r, &seed);
    work_promise(&j.promise);
    for (unsigned w = 0; w < WRITERS; w++) {
        word_add(&totals->promised, j.promise.acknowledged[w]);
        word_add(&totals->tried, j.promise.tried[w] - j.promise.acknowledged[w]);
    }
    if (rnd_below(&seed, 3) == 0)
        cut_recovery(r, &seed);
    if (dir != NULL)
        keep(r, dir);
    status = proc_wait(proc_spawn(judge, &j));
    if (dir != NULL && word_load(&totals->outcome[OUTCOME_RIGHT]) > right)
        keep_no_more(r, dir);
    if (status != 0) {
        word_add(&totals->outcome[OUTCOME_FAILED], 1);
        printf("failed: round of seed %llu: %s\n", (unsigned long long)r->seed,
               WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
    }
}

int
main(void)
{
    static struct run run;
    uint64_t rounds = env_number("XAC_ROUNDS", 3), wrong = 0;
    uint64_t seed;
    double shown = env_now();
    char cwd[300], shm[400];

    env_open();
    seed = env_seed();
    must(getcwd(cwd, sizeof cwd) != NULL);
    disk_open();
    snprintf(shm, sizeof shm, "%s/shm", cwd);
    must(mkdir(shm, 0777) == 0 && setenv("XAC_SHM_DIR", shm, 1) == 0);
    snprintf(run.root, sizeof run.root, "%s/" MOUNT "/root", cwd);
    must(mkdir(run.root, 0777) == 0);
    totals = (struct totals *)proc_shared(sizeof *totals);
    for (uint64_t i = 0; i < rounds; i++) {
        one_round(&run, seed + i);
        if (env_now() > shown + 10) {
            printf("%llu rounds\n", (unsigned long long)(i + 1));
            fflush(stdout);
            shown = env_now();
        }
    }
    disk_unmount();
    for (unsigned o = OUTCOME_RIGHT + 1; o < OUTCOMES; o++)
        wrong += word_load(&totals->outcome[o]);
    printf(
        "%llu power cuts of ext4, %llu recoveries cut; %llu transactions promised, %llu "
        "under way; %llu rounds right, %llu wrong\n",
        (unsigned long long)rounds,
        (unsigned long long)word_load(&totals->recoveries_cut),
        (unsigned long long)word_load(&totals->promised),
        (unsigned long long)word_load(&totals->tried),
        (unsigned long long)word_load(&totals->outcome[OUTCOME_RIGHT]),
        (unsigned long long)wrong);
    env_close();
    return wrong != 0;
}
