/* SPDX-License-Identifier: MIT */
/*
 * check_page_sums.c -- checksums of pages (XAC_OPT_PAGE_CHECKSUMS) and `xrecover --check`.
 *
 * GOAL    bytes that change behind the library's back are found; nothing else is reported,
 *         whatever happened to those who wrote the pages.
 * METHOD  children work and end or are killed; xrecover judges, before recovery and after;
 *         that it compares is seen by the number of pages, and by flipping a byte.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "tool_run.h"

#define PAGES 64u

static char tool[4096]; /* absolute, for each test has a directory of its own */

struct shared {
    _Atomic uint64_t done;
    uint64_t seed;
};

static struct shared *sh;

/* check_dir -- xrecover --check on a directory; ret its exit code. */
static int
check_dir(const char *arguments, const char *dir)
{
    char all[200];

    (void)snprintf(all, sizeof all, "--check %s", arguments);
    return tool_run(tool, all, dir);
}

/* must_sound -- no damage; so many pages are compared. */
static void
must_sound(uint64_t pages)
{
    char words[64];

    if (check_dir("--json", ENV_DIR) != 0)
        env_fail(__FILE__, __LINE__, "%s", output);
    (void)snprintf(words, sizeof words, "\"pages_checked\": %llu,",
                   (unsigned long long)pages);
    ck_says(words);
}

/* flip -- one bit of a byte. */
static void
flip(const char *path, uint64_t offset)
{
    uint8_t byte;

    file_read(path, offset, &byte, 1);
    byte ^= 4;
    file_write(path, offset, &byte, 1);
}

/* sums_path -- of the only file with checksums in a directory; false if there is none. */
static bool
sums_path(const char *dir, char path[300])
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool found = false;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, "xac-sums.", 9) != 0)
            continue;
        must(!found);
        found = true;
        (void)snprintf(path, 300, "%s/%s", dir, e->d_name);
    }
    (void)closedir(d);
    return found;
}

/* What a child does: set these pages, in one transaction each. */
struct job {
    unsigned first, n;
    uint64_t value;
    uint64_t keeps;   /* XAC_OPT_PAGE_CHECKSUMS */
    bool is_fleeting; /* NONDURABLE */
    bool dies;        /* without xShutdown() */
};

static void
work(void *arg)
{
    const struct job *j = arg;
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, j->keeps));
    x = env_attach(j->is_fleeting ? NONDURABLE : DURABLE, j->first + j->n);
    for (unsigned i = j->first; i < j->first + j->n; i++) {
        must_ok(xbegin());
        memset(x + i * env_page(), (int)(j->value + i), env_page());
        must_rc(xend(), COMMITTED);
    }
    if (!j->dies)
        env_detach();
}

static void
run(struct job j)
{
    proc_run(work, &j);
}

/* must_find -- a flipped byte of that page is found, and only while it is flipped. */
static void
must_find(unsigned page)
{
    char words[64];

    flip(ENV_FILE, page * env_page() + 17);
    must_eq(check_dir("", ENV_DIR), 3);
    (void)snprintf(words, sizeof words,
                   "input.db: page %u, offset %zu: checksum: expected ", page,
                   page * env_page());
    ck_says(words);
    ck_says("1 place in mapped files");
    flip(ENV_FILE, page * env_page() + 17);
    must_eq(check_dir("", ENV_DIR), 0);
}

START_TEST(flipped_bytes_are_found)
{
    run((struct job){.n = 8, .value = 1, .keeps = 1});
    must_sound(8);
    must_eq(check_dir("", ENV_DIR), 0);
    ck_says("8 pages of 1 mapped file against their checksums: sound");
    for (unsigned page = 0; page < 8; page++)
        must_find(page);
    flip(ENV_FILE, 2 * env_page());
    flip(ENV_FILE, 6 * env_page());
    must_eq(check_dir("--json", ENV_DIR), 3);
    ck_says("\"page_damages\": 2,");
    ck_says("\"page\": 2, \"offset_bytes\": ");
    ck_says("\"why\": \"checksum\", \"expected\": \"");
    ck_says("\"page\": 6, ");
}
END_TEST

START_TEST(shortened_file_is_found)
{
    run((struct job){.n = 8, .value = 1, .keeps = 1});
    must_eq(truncate(ENV_FILE, (off_t)(7 * env_page())), 0);
    must_eq(check_dir("", ENV_DIR), 3);
    ck_says("page 7, ");
}
END_TEST

START_TEST(none_are_kept_unless_asked_for)
{
    char path[300];

    run((struct job){.n = 8, .value = 1});
    must(!sums_path(ENV_DIR, path));
    must_sound(0);
    must_rc(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 2), EINVAL);
}
END_TEST

START_TEST(option_goes_on_and_off)
{
    char path[300];

    run((struct job){.n = 8, .value = 1});
    run((struct job){.first = 2, .n = 3, .value = 2, .keeps = 1});
    must_sound(3);
    must_find(4);
    flip(ENV_FILE, 5 * env_page()); /* not known: changed before */
    must_sound(3);
    flip(ENV_FILE, 5 * env_page());
    run((struct job){.first = 2, .n = 1, .value = 3});
    must(!sums_path(ENV_DIR, path));
    must_sound(0);
    run((struct job){.first = 7, .n = 1, .value = 4, .keeps = 1});
    must_sound(1);
    run((struct job){.first = 7, .n = 1, .value = 5, .is_fleeting = true, .keeps = 1});
    must_sound(0);
}
END_TEST

START_TEST(growth_keeps_what_is_known)
{
    run((struct job){.n = 3, .value = 1, .keeps = 1});
    run((struct job){.first = 40, .n = 5, .value = 1, .keeps = 1});
    must_sound(8);
    must_find(1);
    must_find(44);
    run((struct job){.first = 1, .n = 1, .value = 9, .keeps = 1});
    must_sound(8);
    must_find(1);
}
END_TEST

/* Pages that recovery would write are not compared before it, and are known after it. */
START_TEST(recovery_keeps_them_right)
{
    run((struct job){.n = 8, .value = 1, .keeps = 1});
    run((struct job){.first = 3, .n = 2, .value = 2, .keeps = 1, .dies = true});
    must_sound(6);
    flip(ENV_FILE, 3 * env_page()); /* as a checkpoint that has not been finished */
    must_sound(6);
    must_ok(xRecover(ENV_DIR));
    must_sound(8);
    must_find(3);
    must_find(7);
}
END_TEST

/* churn -- commits and checkpoints until killed. */
static void
churn(void *arg)
{
    uint64_t rng = sh->seed;
    unsigned char *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 65536));
    x = env_attach(DURABLE, PAGES);
    for (;;) {
        uint64_t page = rnd_below(&rng, PAGES);

        must_ok(xbegin());
        for (size_t k = 0; k < 64; k++) {
            uint64_t r = rnd_next(&rng);

            memcpy(x + page * env_page() + 64 * k, &r, sizeof r);
        }
        (void)xend(); /* another process may have been faster */
        if (rnd_below(&rng, 50) == 0)
            must_ok(xCheckpoint());
        word_add(&sh->done, 1);
    }
}

START_TEST(death_at_any_moment_alarms_nobody)
{
    uint64_t rounds = env_number("XAC_ROUNDS", 12);
    uint64_t rng = env_seed();

    for (uint64_t i = 0; i < rounds; i++) {
        pid_t child;

        sh->seed = rnd_next(&rng);
        word_store(&sh->done, 0);
        child = proc_spawn(churn, NULL);
        proc_await(&sh->done, 100, 20);
        proc_sleep_us((unsigned)rnd_below(&rng, 20000));
        proc_kill(child);
        if (check_dir("", ENV_DIR) != 0)
            env_fail(__FILE__, __LINE__, "round %llu, not recovered: %s",
                     (unsigned long long)i, output);
        if (i % 2 == 0) {
            must_ok(xRecover(ENV_DIR));
            if (check_dir("", ENV_DIR) != 0)
                env_fail(__FILE__, __LINE__, "round %llu, recovered: %s",
                         (unsigned long long)i, output);
        }
    }
    must_ok(xRecover(ENV_DIR));
    must_sound(PAGES);
    must_find(11);
}
END_TEST

/* A survivor goes on with what the dead have begun. */
START_TEST(survivor_keeps_them_right)
{
    uint64_t rng = env_seed();
    pid_t first, second;

    sh->seed = rnd_next(&rng);
    first = proc_spawn(churn, NULL);
    proc_await(&sh->done, 200, 20);
    for (int i = 0; i < 6; i++) {
        sh->seed = rnd_next(&rng);
        word_store(&sh->done, 0);
        second = proc_spawn(churn, NULL);
        proc_await(&sh->done, 100, 20);
        proc_sleep_us((unsigned)rnd_below(&rng, 10000));
        proc_kill(first);
        first = second;
    }
    proc_kill(first);
    must_eq(check_dir("", ENV_DIR), 0);
    must_ok(xRecover(ENV_DIR));
    must_sound(PAGES);
}
END_TEST

static void
back_up(void *arg)
{
    (void)arg;
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    (void)env_attach(DURABLE, 8);
    must_ok(xBackup("copy"));
    env_detach();
}

START_TEST(backup_begins_without)
{
    char path[300];

    run((struct job){.n = 8, .value = 1, .keeps = 1});
    proc_run(back_up, NULL);
    must_sound(8);
    must(!sums_path("copy", path));
    must_eq(check_dir("", "copy"), 0);
    must_ok(xRecover("copy"));
    must_eq(check_dir("", "copy"), 0);
}
END_TEST

START_TEST(damaged_checksums_are_told_from_damaged_pages)
{
    char path[300];

    run((struct job){.n = 8, .value = 1, .keeps = 1});
    must(sums_path(ENV_DIR, path));
    flip(path, 8192 + 5 * 32 + 9);
    must_sound(7);
    ck_says("\"page_checksums_lost\": 1,");
    flip(path, 8192 + 5 * 32 + 9);
    must_sound(8);
    ck_says("\"page_checksums_lost\": 0,");
    flip(path, 70);
    must_eq(check_dir("", ENV_DIR), 3);
    ck_says("header is damaged");
    run((struct job){.first = 2, .n = 2, .value = 2, .keeps = 1}); /* makes it anew */
    must_sound(2);
}
END_TEST

START_TEST(shortened_file_of_checksums_is_damaged)
{
    char path[300];

    run((struct job){.n = 8, .value = 1, .keeps = 1});
    must(sums_path(ENV_DIR, path));
    for (long bytes = 100; bytes >= 0; bytes -= 100) {
        must_eq(truncate(path, bytes), 0);
        must_eq(check_dir("", ENV_DIR), 3);
        ck_says("header is damaged");
    }
    run((struct job){.first = 2, .n = 2, .value = 2, .keeps = 1}); /* makes it anew */
    must_sound(2);
}
END_TEST

START_TEST(replaced_file_is_not_compared)
{
    char path[300];

    run((struct job){.n = 8, .value = 1, .keeps = 1});
    must_eq(rename(ENV_FILE, "kept"), 0);
    must_eq(check_dir("", ENV_DIR), 0);
    ck_says("0 pages of 0 mapped files against their checksums: "
            "sound; 0 checksums lost, 1 file gone");
    file_write(ENV_FILE, 0, "new", 3);
    must_eq(check_dir("", ENV_DIR), 0);
    must_eq(rename("kept", ENV_FILE), 0);
    must_sound(8);
    must(sums_path(ENV_DIR, path));
}
END_TEST

static void
setup(void)
{
    sh = proc_shared(sizeof *sh);
}

int
main(void)
{
    const char *top = getenv("top_builddir");
    char *absolute = realpath(top != NULL ? top : ".", NULL);
    Suite *s = suite_create("page checksums");
    TCase *tc = env_tcase(s, "pages", 60);

    must(absolute != NULL);
    (void)snprintf(tool, sizeof tool, "%s/xrecover", absolute);
    free(absolute);

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, flipped_bytes_are_found);
    tcase_add_test(tc, shortened_file_is_found);
    tcase_add_test(tc, none_are_kept_unless_asked_for);
    tcase_add_test(tc, option_goes_on_and_off);
    tcase_add_test(tc, growth_keeps_what_is_known);
    tcase_add_test(tc, recovery_keeps_them_right);
    tcase_add_test(tc, death_at_any_moment_alarms_nobody);
    tcase_add_test(tc, survivor_keeps_them_right);
    tcase_add_test(tc, backup_begins_without);
    tcase_add_test(tc, damaged_checksums_are_told_from_damaged_pages);
    tcase_add_test(tc, shortened_file_of_checksums_is_damaged);
    tcase_add_test(tc, replaced_file_is_not_compared);
    return env_main(s);
}
