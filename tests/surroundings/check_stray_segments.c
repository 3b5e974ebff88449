/* SPDX-License-Identifier: MIT */
/*
 * check_stray_segments.c -- goal: files that are named like log segments and are none change
 * nothing but what xrecover reports, and stay as they are.  Method: such files of each kind are
 * put beside a log before it is recovered; afterwards values, segments and strays are looked at.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/tool_run.h"

#define LAST "18446744073709551615"

/* commit_some -- and die without shutting down. */
static void
commit_some(void *arg)
{
    /* Else a mistake fills the disk. */
    struct rlimit limit = {.rlim_cur = 64u << 20, .rlim_max = 64u << 20};
    uint64_t *x;

    (void)arg;
    must_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    x = (uint64_t *)env_attach(DURABLE, 1);
    for (int i = 0; i < 10; i++)
        env_increment(x);
}

static unsigned
count_segments(void)
{
    char name[64];
    unsigned n = 0;

    for (unsigned i = 1; i < 200; i++) {
        (void)snprintf(name, sizeof name, ENV_DIR "/xac-log.%08u", i);
        n += file_exists(name) && file_size(name) > 4096;
    }
    return n;
}

enum stray_kind {
    EMPTY,
    JUNK,
    LINK,
    FIFO,
    DIRECTORY
};

static const struct {
    const char *name;
    enum stray_kind kind;
} strays[] = {
    {"xac-log." LAST, EMPTY},
    {"xac-log." LAST, JUNK},
    {"xac-log.9223372036854775807", EMPTY},
    {"xac-log.4611686018427387904", EMPTY},
    {"xac-log.70368744177664", JUNK},  /* 2^62 / 65536 */
    {"xac-log.281474976710656", JUNK}, /* 2^64 / 65536: nothing in 64 bits */
    {"xac-log.01000000", EMPTY},
    {"xac-log.1", JUNK},
    {"xac-log.0000000x", EMPTY},
    {"xac-log.00000007", EMPTY},
    {"xac-log.00000007", LINK},
    {"xac-log.00000007", FIFO},
    {"xac-log.00000007", DIRECTORY},
    {"xac-log." LAST, FIFO},
    {"xac-data.9", FIFO},
};

static void
put_stray(int i, char *path, size_t size)
{
    static char junk[8192];

    (void)snprintf(path, size, ENV_DIR "/%s", strays[i].name);
    memset(junk, 'j', sizeof junk);
    switch (strays[i].kind) {
    case EMPTY:
        file_write(path, 0, "", 0);
        break;
    case JUNK:
        file_write(path, 0, junk, sizeof junk);
        break;
    case LINK:
        file_write("victim", 0, junk, sizeof junk);
        must_eq(symlink("../victim", path), 0);
        break;
    case FIFO:
        must_eq(mkfifo(path, 0600), 0);
        break;
    case DIRECTORY:
        must_eq(mkdir(path, 0700), 0);
    }
}

static void
check_left_alone(int i, const char *path)
{
    struct stat st;

    must_eq(lstat(path, &st), 0);
    switch (strays[i].kind) {
    case EMPTY:
        must_eq(st.st_size, 0);
        break;
    case JUNK:
        must_eq(st.st_size, 8192);
        break;
    case LINK:
        must(S_ISLNK(st.st_mode));
        must_eq(file_size("victim"), 8192);
        must_eq(file_u64("victim", 4096), UINT64_C(0x6a6a6a6a6a6a6a6a));
        break;
    case FIFO:
        must(S_ISFIFO(st.st_mode));
        break;
    case DIRECTORY:
        must(S_ISDIR(st.st_mode));
    }
}

START_TEST(stray_is_left_alone)
{
    char path[128];

    proc_run(commit_some, NULL);
    put_stray(_i, path, sizeof path);
    for (unsigned round = 2; round < 5; round++) {
        proc_run(commit_some, NULL); /* recovers, and goes on */
        must(count_segments() <= round + 1);
        check_left_alone(_i, path);
    }
    must_eq(tool_run("xrecover", "--dry-run", ENV_DIR), 0);
    if (strncmp(strays[_i].name, "xac-log", 7) == 0) {
        ck_says("named like log segments");
        ck_says(strays[_i].name);
    }
    must_eq(tool_run("xrecover", "", ENV_DIR), 0);
    must_eq(file_u64(ENV_FILE, 0), 40);
    check_left_alone(_i, path);
}
END_TEST

/* commit_much -- several segments of log; in old ones if they are to be used again. */
static void
commit_much(void *arg)
{
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, arg != NULL));
    x = (uint64_t *)env_attach(DURABLE, 64);
    for (uint64_t i = 0; i < 600; i++) {
        must_ok(xbegin());
        for (size_t k = 0; k < 128; k++)
            env_cell(x, i % 64)[k] = i * i * (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
        must_rc(xend(), COMMITTED);
        if (i % 100 == 99)
            must_ok(xCheckpoint());
    }
    must_ok(xShutdown());
}

START_TEST(stray_is_not_recycled)
{
    static char recycled[] = "again";
    char junk[8192];
    struct stat st;

    proc_run(commit_much, NULL);
    must_eq(unlink(ENV_DIR "/xac-log.00000001"), 0);
    memset(junk, 'j', sizeof junk);
    file_write("victim", 0, junk, sizeof junk);
    must_eq(symlink("../victim", ENV_DIR "/xac-log.00000001"), 0);
    proc_run(commit_much, recycled);
    must(!file_exists(ENV_DIR "/xac-log.00000002")); /* this one was used again */
    must_eq(lstat(ENV_DIR "/xac-log.00000001", &st), 0);
    must(S_ISLNK(st.st_mode));
    must_eq(file_size("victim"), 8192);
    must_eq(file_u64("victim", 0), UINT64_C(0x6a6a6a6a6a6a6a6a));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("stray segments");
    TCase *tc = env_tcase(s, "stray segments", 60);

    tcase_add_loop_test(tc, stray_is_left_alone, 0,
                        (int)(sizeof strays / sizeof strays[0]));
    tcase_add_test(tc, stray_is_not_recycled);
    return env_main(s);
}
