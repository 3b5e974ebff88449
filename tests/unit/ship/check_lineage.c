/* SPDX-License-Identifier: MIT */
/*
 * check_lineage.c -- the generations of a log and their branches (libxac/log/lineage.h, xac.history).
 *
 * GOAL    Each recovery adds the line of its generation, before the master record; it keeps the branch,
 *         and a backup or a copy gets another one.  Whether a log fits another one is told right.  With the
 *         line a follower notices that the end of an old generation is damaged.
 * METHOD  Environments that are opened again and again, killed at each system call of a recovery, copied
 *         and backed up; files written by hand.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_env.h"
#include "tests/common/sysfault.h"
#include "log/lineage.h"
#include "log/master.h"
#include "log/recover_next.h"

#define FILE_NAME ENV_DIR "/" XAC_LINEAGE_NAME

static struct xac_lineage l;
static struct xac_master_slot m;
static uint64_t n_fault;

/* look -- read the file and the master record of an environment. */
static void
look(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);

    must_ok(xac_master_read(fd, &m));
    must_ok(xac_lineage_read(fd, m.generation, &l));
    close(fd);
}

/* must_be_whole -- each line follows from the one before, and the last is that of the master record. */
static void
must_be_whole(size_t n)
{
    must_eq(l.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct xac_lineage_line *line = &l.line[i];

        must_eq(line->start_lsn, xac_next_start(line->end_lsn));
        must_eq(memcmp(line->branch, l.line[0].branch, XAC_BRANCH_BYTES), 0);
        if (i > 0)
            must_eq(line->previous, l.line[i - 1].generation);
        if (i > 0)
            must(line->end_lsn >= l.line[i - 1].start_lsn);
    }
    must_eq(l.line[n - 1].generation, m.generation);
    must_eq(l.line[n - 1].start_lsn, m.start_lsn);
    must_eq(l.line[n - 1].segment_bytes, m.segment_bytes);
}

static void
write_little(void *arg)
{
    uint64_t seed = board->seed, *x = attach();

    for (uint64_t i = 0; i < 10; i++)
        (void)change(x, &seed, 2);
    if (arg == NULL)
        env_detach();
}

/* run -- a life of the environment; `dies`: that ends without a checkpoint. */
static void
run(bool dies)
{
    proc_run(write_little, dies ? board : NULL);
}

START_TEST(each_recovery_adds_its_line)
{
    for (size_t i = 1; i <= 5; i++) {
        run(i % 2 == 0);
        look(ENV_DIR);
        must_be_whole(i);
    }
    must(l.line[0].generation >= 2);
}
END_TEST

static void
back_up(void *arg)
{
    (void)arg;
    (void)attach();
    must_ok(xBackup("backup"));
    env_detach();
}

static void
open_copy(void *arg)
{
    must_ok(xInit((const char *)arg, DURABLE));
    must_ok(xShutdown());
}

START_TEST(backup_and_copy_get_another_branch)
{
    static const char *const dirs[] = {"copy", "backup"};
    uint8_t branch[3][XAC_BRANCH_BYTES];

    run(false);
    proc_run(back_up, NULL);
    must_ok(system("cp -a " ENV_DIR " copy"));
    run(false);
    look(ENV_DIR);
    must_be_whole(3);
    memcpy(branch[2], l.line[2].branch, XAC_BRANCH_BYTES);
    for (int i = 0; i < 2; i++) {
        proc_run(open_copy, (void *)(uintptr_t)dirs[i]);
        look(dirs[i]);
        must_eq(l.line[l.n - 1].generation, m.generation);
        memcpy(branch[i], l.line[l.n - 1].branch, XAC_BRANCH_BYTES);
        proc_run(open_copy, (void *)(uintptr_t)dirs[i]); /* which it keeps */
        look(dirs[i]);
        must_eq(memcmp(branch[i], l.line[l.n - 1].branch, XAC_BRANCH_BYTES), 0);
    }
    for (int i = 0; i < 3; i++)
        must(memcmp(branch[i], branch[(i + 1) % 3], XAC_BRANCH_BYTES) != 0);
}
END_TEST

/* An environment of before, and files that are not right: a new branch, and all else goes on. */
START_TEST(missing_or_wrong_file_counts_as_none)
{
    static const char *const texts[] = {
        "",
        "xac-history 2\nend\n",
        "xac-history 1\n",
        "xac-history 1\n2 4096 65536 1 4096 00112233445566778899aabbccddeeff\n",
        "xac-history 1\n2 4096 65536 1 4096 00112233445566778899aabbccddeef\nend\n",
        "xac-history 1\n2 4096 65536 1 4096 00112233445566778899aabbccddeefff\nend\n",
        "xac-history 1\n2 4096 65536 1 4096 00112233445566778899aabbccddeefg\nend\n",
        "xac-history 1\n2 4096 65536 2 4096 00112233445566778899aabbccddeeff\nend\n",
        "xac-history 1\n2 4097 65536 1 4096 00112233445566778899aabbccddeeff\nend\n",
        "xac-history 1\n2 4096 65537 1 4096 00112233445566778899aabbccddeeff\nend\n",
        "xac-history 1\n2 4096 65536 1 8192 00112233445566778899aabbccddeeff\nend\n",
    };
    static const char right[] =
        "xac-history 1\n2 4096 65536 1 4096 00112233445566778899aabbccddeeff\nend\n";
    uint8_t branch[XAC_BRANCH_BYTES];

    run(false);
    run(false);
    look(ENV_DIR);
    memcpy(branch, l.line[0].branch, sizeof branch);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        must_ok(unlink(FILE_NAME));
        if (texts[i][0] != '\0')
            file_write(FILE_NAME, 0, texts[i], strlen(texts[i]));
        run(i % 2 == 0);
        look(ENV_DIR);
        must_be_whole(1);
        must(memcmp(l.line[0].branch, branch, sizeof branch) != 0);
        memcpy(branch, l.line[0].branch, sizeof branch);
    }
    must_ok(unlink(FILE_NAME));
    file_write(FILE_NAME, 0, right, sizeof right - 1);
    run(false);
    look(ENV_DIR);
    must_eq(l.n, 2);
    must_eq(l.line[1].branch[1], 0x11);
}
END_TEST

static void
recover(void *arg)
{
    (void)arg;
    sysfault_arm(SYSFAULT_DIE, SYSFAULT_EVERY, n_fault, 0);
    must_ok(xRecover(ENV_DIR));
    sysfault_disarm();
}

/* Killed at each system call of a recovery: a line without a master record does not count, and
   is replaced. */
START_TEST(recovery_may_die_anywhere)
{
    uint64_t early = 0;
    size_t lines;
    bool dies = true;

    run(false);
    look(ENV_DIR);
    lines = l.n;
    for (n_fault = 1; dies && n_fault < 2000; n_fault++) {
        struct xac_lineage all;
        int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY);

        run(true);
        look(ENV_DIR);
        must_be_whole(++lines);
        dies = proc_wait(proc_spawn(recover, NULL)) != 0;
        must_ok(xac_lineage_read(fd, UINT32_MAX, &all));
        close(fd);
        look(ENV_DIR);
        early += all.n > l.n;
        lines = l.n;
        must_be_whole(lines);
    }
    printf("killed at %llu calls, %llu times between line and record\n",
           (unsigned long long)n_fault, (unsigned long long)early);
    must(early > 0 && n_fault > 20 && !dies);
}
END_TEST

static ssize_t
full_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    (void)fd, (void)buf, (void)n, (void)offset;
    errno = ENOSPC;
    return -1;
}

/* A full disk keeps nobody from opening; 1,001 lines become 1,000. */
START_TEST(file_has_room_and_bounds)
{
    struct xac_lineage_line line = {.segment_bytes = 65536};
    struct xac_sys real = xac_sys;
    uint8_t branch[XAC_BRANCH_BYTES];
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    for (uint32_t i = 1; i <= XAC_LINEAGE_LINES + 1; i++) {
        line.previous = i;
        line.generation = i + 1;
        line.end_lsn = i * (uint64_t)1000 * 8;
        line.start_lsn = xac_next_start(line.end_lsn);
        if (i == 1 || i > XAC_LINEAGE_LINES - 2) {
            must_ok(xac_lineage_add(fd, &line, false));
            must_ok(xac_lineage_read(fd, i + 1, &l));
        } else { /* quicker */
            l.line[l.n] = line;
            memcpy(l.line[l.n++].branch, l.line[0].branch, XAC_BRANCH_BYTES);
            if (i == XAC_LINEAGE_LINES - 2) {
                FILE *f = fopen(XAC_LINEAGE_NAME, "w");

                fputs("xac-history 1\n", f);
                for (size_t k = 0; k < l.n; k++) {
                    fprintf(f, "%u %llu 65536 %u %llu ", l.line[k].generation,
                            (unsigned long long)l.line[k].start_lsn, l.line[k].previous,
                            (unsigned long long)l.line[k].end_lsn);
                    for (int b = 0; b < XAC_BRANCH_BYTES; b++)
                        fprintf(f, "%02x", l.line[k].branch[b]);
                    fputs("\n", f);
                }
                fputs("end\n", f);
                fclose(f);
            }
        }
    }
    must_eq(l.n, XAC_LINEAGE_LINES);
    must_eq(l.line[0].generation, 3);
    memcpy(branch, l.line[0].branch, sizeof branch);
    xac_sys.pwrite = full_pwrite;
    line.previous = line.generation++;
    must_ok(xac_lineage_add(fd, &line, false));
    xac_sys = real;
    must_ok(xac_lineage_read(fd, UINT32_MAX, &l));
    must_eq(l.n, XAC_LINEAGE_LINES);
    must_ok(xac_lineage_add(fd, &line, true));
    must_ok(xac_lineage_read(fd, UINT32_MAX, &l));
    must(memcmp(branch, l.line[l.n - 1].branch, sizeof branch) != 0);
    close(fd);
}
END_TEST

START_TEST(fork_is_found)
{
    struct xac_lineage_line a = {2, 1, 4096, 4096, 65536, "a"},
                            b = {3, 2, 8192, 8000, 65536, "a"},
                            c = {4, 3, 16384, 16000, 65536, "a"}, other = b;
    uint64_t fork;

    l = (struct xac_lineage){.n = 3, .line = {a, b, c}};
    must(xac_lineage_fits(&l, &c, 99992, &fork)); /* the last one: no end is known */
    must(xac_lineage_fits(&l, &b, 16000, &fork));
    must(xac_lineage_fits(&l, &b, 8192, &fork));
    must(!xac_lineage_fits(&l, &b, 16008, &fork) && fork == 16000);
    must(!xac_lineage_fits(&l, &a, 8008, &fork) && fork == 8000);
    other.branch[0] = 'o'; /* both have recovered */
    must(!xac_lineage_fits(&l, &other, 8192, &fork) && fork == 8000);
    other.end_lsn = 7000;
    must(!xac_lineage_fits(&l, &other, 8192, &fork) && fork == 7000);
    other = b;
    other.start_lsn = 12288;
    must(!xac_lineage_fits(&l, &other, 12288, &fork) && fork == 8000);
    other.generation = 9;
    must(!xac_lineage_fits(&l, &other, 12288, &fork) && fork == 0);
}
END_TEST

/* The last block of an old generation, whose damage the next one does not tell. */
START_TEST(damage_at_the_end_of_an_old_generation_is_named)
{
    struct xac_source s;
    struct xac_followed got;
    uint64_t last = 0, byte;
    char path[64];
    int rc = 0;

    run(true);
    run(true);
    run(false);
    look(ENV_DIR);
    begin(&s);
    do {
        must_ok(xac_source_next(&s, &got));
        if (got.blk->generation == l.line[0].generation)
            last = got.blk->lsn;
    } while (got.blk->generation == l.line[0].generation);
    xac_source_close(&s);
    must_eq(xac_next_start(last), l.line[1].start_lsn);
    (void)snprintf(path, sizeof path, ENV_DIR "/xac-log.%08llu",
                   (unsigned long long)(last / board->segment_bytes + 1));
    byte = file_u64(path, XAC_SEGMENT_HEADER + last % board->segment_bytes + 8) ^ 4;
    file_write(path, XAC_SEGMENT_HEADER + last % board->segment_bytes + 8, &byte,
               sizeof byte);
    begin(&s);
    while (rc == 0) {
        rc = xac_source_next(&s, &got);
        must(rc != 0 || got.blk->lsn < last);
    }
    must_rc(rc, XAC_EDAMAGED);
    xac_source_close(&s);
}
END_TEST

/* A follower that is ahead of where its generation was cut off. */
START_TEST(follower_ahead_of_a_cut_is_refused)
{
    struct xac_source s;
    struct xac_followed got;
    uint64_t lsn = 0;
    FILE *f;

    run(true);
    run(false);
    look(ENV_DIR);
    begin(&s);
    for (int i = 0; i < 6; i++) {
        must_ok(xac_source_next(&s, &got));
        if (i == 4)
            lsn = got.blk->lsn;
    }
    /* As if a recovery had cut off the last of them. */
    f = fopen(FILE_NAME, "w");
    fprintf(f, "xac-history 1\n%u %llu 65536 %u %llu %032d\nend\n", l.line[1].generation,
            (unsigned long long)l.line[1].start_lsn, l.line[1].previous,
            (unsigned long long)lsn, 0);
    fclose(f);
    xac_source_close(&s);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_ok(xac_source_seek(&s, l.line[0].generation, lsn, 0));
    must_ok(xac_source_next(&s, &got));
    must_eq(got.blk->generation, l.line[1].generation);
    must_eq(got.blk->lsn, l.line[1].start_lsn);
    xac_source_close(&s);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_refuse(xac_source_seek(&s, l.line[0].generation, lsn + 64, 0), EINVAL);
    xac_source_close(&s);
}
END_TEST

static Suite *
lineage_suite(void)
{
    Suite *s = suite_create("lineage");
    TCase *t = env_tcase_with(s, "lineage", 300, setup);

    tcase_add_test(t, each_recovery_adds_its_line);
    tcase_add_test(t, backup_and_copy_get_another_branch);
    tcase_add_test(t, missing_or_wrong_file_counts_as_none);
    tcase_add_test(t, recovery_may_die_anywhere);
    tcase_add_test(t, file_has_room_and_bounds);
    tcase_add_test(t, fork_is_found);
    tcase_add_test(t, damage_at_the_end_of_an_old_generation_is_named);
    tcase_add_test(t, follower_ahead_of_a_cut_is_refused);
    return s;
}

int
main(void)
{
    return env_main(lineage_suite());
}
