/* SPDX-License-Identifier: MIT */
/*
 * check_names.c -- goal: no name that is read from a file, and nothing that lies under a name
 * which the library uses, lets it write where it should not.  Method: notes and logs that name
 * files outside of their directory, and links in the way of temporary names; a file outside
 * stays what it was.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/synth.h"
#include "../common/tool_run.h"

#define VICTIM "victim.db"

static char secret[8192];

static void
put_victim(const char *path)
{
    memset(secret, 's', sizeof secret);
    file_write(path, 0, secret, sizeof secret);
}

static void
must_be_whole(const char *path)
{
    char now[sizeof secret];

    must_eq(file_size(path), sizeof secret);
    file_read(path, 0, now, sizeof now);
    must(memcmp(now, secret, sizeof now) == 0);
}

/* replace -- a word of a text file by another. */
static void
replace(const char *path, const char *from, const char *to)
{
    char text[4096] = "", out[4096];
    char *at;

    file_read(path, 0, text, file_size(path));
    at = strstr(text, from);
    must(at != NULL);
    (void)snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to,
                   at + strlen(from));
    must_eq(truncate(path, 0), 0);
    file_write(path, 0, out, strlen(out));
}

/* ---- Notes ---------------------------------------------------------------------------- */

static void
back_up(void *arg)
{
    uint64_t *x;

    must_ok(xInit(ENV_DIR, DURABLE));
    x = (uint64_t *)xMmap(ENV_DIR "/inner.db", 2 * env_page());
    must((void *)x != MAP_FAILED);
    env_increment(x);
    if (arg == NULL)
        must_ok(xBackup("backup"));
    else
        must_refuse(xBackup("backup"), XAC_EDAMAGED);
    must_ok(xShutdown());
}

START_TEST(backup_writes_nothing_outside_of_itself)
{
    static const char *const bad[] = {
        "../" VICTIM, "/etc/" VICTIM, "a/../../" VICTIM, "./inner.db",
        "",           "sub//" VICTIM, "../backup2/x",    ".."};

    put_victim(VICTIM);
    proc_run(back_up, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[128], was[] = "inner.db\ninner.db\n";

        (void)snprintf(line, sizeof line, "inner.db\n%s\n", bad[i]);
        replace("backup/xac.backup", was, line);
        must_eq(tool_run("xrecover", "", "backup"), 3);
        ck_says("xac.backup: line 4");
        must_be_whole(VICTIM);
        replace("backup/xac.backup", line, was);
    }
    must_eq(tool_run("xrecover", "", "backup"), 0);
}
END_TEST

START_TEST(addresses_name_nothing_outside)
{
    static char refused[] = "refused";
    char text[4096] = "";

    proc_run(back_up, NULL);
    must_eq(system("rm -rf backup"), 0);
    put_victim("outside.txt");
    file_read(ENV_DIR "/xac.addresses", 0, text, file_size(ENV_DIR "/xac.addresses"));
    strcat(text, "0000210000000000 ../outside.txt\n");
    file_write(ENV_DIR "/xac.addresses", 0, text, strlen(text));
    must_eq(mkdir("below", 0700), 0);
    proc_run(back_up, refused);
    must_eq(system("rm -rf backup"), 0);
    must_eq(tool_run("xbackup", ENV_DIR, "below/backup"), 3);
    ck_says("xac.addresses: line 3");
    must(!file_exists("below/outside.txt"));
    must_be_whole("outside.txt");
}
END_TEST

/* ---- The log -------------------------------------------------------------------------- */

START_TEST(log_names_nothing_outside)
{
    static const char *const bad[] = {"../xac-names-victim", "./a.db", "sub/../a.db"};
    struct synth s;
    char path[256], option[] = "--accept-replaced";

    synth_open(&s, 4096, 65536);
    must_eq(mkdirat(s.dirfd, "sub", 0700), 0);
    (void)synth_file(&s, bad[_i], 2);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    (void)snprintf(path, sizeof path, "%s/%s", s.dir, bad[_i]);
    put_victim(path);
    must_eq(tool_run("xrecover", option, s.dir), 3);
    ck_says("malformed XFILE record");
    must_be_whole(path);
    must_eq(unlink(path), 0);
    synth_close(&s);
}
END_TEST

START_TEST(log_does_not_follow_a_link)
{
    struct synth s;
    char path[256];

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a.db", 2);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    put_victim(VICTIM);
    must_eq(unlinkat(s.dirfd, "a.db", 0), 0);
    must(getcwd(path, sizeof path - sizeof VICTIM) != NULL);
    strcat(path, "/" VICTIM);
    must_eq(symlinkat(path, s.dirfd, "a.db"), 0);
    must_eq(tool_run("xrecover", "--accept-replaced", s.dir), 1);
    ck_says("symbolic link");
    must_be_whole(VICTIM);
    synth_close(&s);
}
END_TEST

START_TEST(dry_run_lists_what_would_be_written)
{
    struct synth s;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a.db", 8);
    (void)synth_file(&s, "b.db", 8);
    (void)synth_file(&s, "untouched.db", 8);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_change(&s, 0, 5);
    synth_change(&s, 1, 2);
    synth_commit(&s);
    must_eq(unlinkat(s.dirfd, "b.db", 0), 0);
    must_eq(tool_run("xrecover", "--dry-run --accept-replaced", s.dir), 0);
    ck_says("would write: a.db, 2 pages\n");
    ck_says("would make: b.db, 1 page\n");
    must(strstr(output, "untouched.db") == NULL);
    must_eq(tool_run("xrecover", "--dry-run --accept-replaced --json", s.dir), 0);
    ck_says("{\"file\": \"a.db\", \"pages\": 2, \"is_made\": false}");
    must_eq(faccessat(s.dirfd, "b.db", F_OK, 0), -1);
    synth_close(&s);
}
END_TEST

/* ---- Temporary names ------------------------------------------------------------------- */

static const char *const temporary[] = {
    "xac.master.new", "xac-log-new",    "xac-addresses-new", "xac-sums-new",
    "xac.logdir-new", "xac.log-of-new", "xac.log-kept-new",
};

static void
make_all(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    must_ok(xSetLogDirectory("log"));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    must_ok(xInit(ENV_DIR, DURABLE));
    x = (uint64_t *)xMmap(ENV_DIR "/inner.db", 2 * env_page());
    must((void *)x != MAP_FAILED);
    env_increment(x);
    must_ok(xCheckpoint());
    must_ok(xShutdown());
}

static void
link_all(const char *dir, bool is_hard)
{
    char path[128];

    must_eq(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < sizeof temporary / sizeof temporary[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, temporary[i]);
        must_eq(is_hard ? link(VICTIM, path) : symlink("../" VICTIM, path), 0);
    }
}

START_TEST(links_at_temporary_names_are_not_followed)
{
    put_victim(VICTIM);
    link_all(ENV_DIR, _i != 0);
    link_all("log", _i != 0);
    proc_run(make_all, NULL);
    must_be_whole(VICTIM);
    must(file_exists(ENV_DIR "/xac.logdir") && file_exists("log/xac.log-of"));
    must(file_exists(ENV_DIR "/xac.addresses") && file_exists("log/xac-log.00000001"));
    must(file_exists("log/xac.log-kept"));
}
END_TEST

static void
map_newline(void *arg)
{
    (void)arg;
    must_ok(xInit(ENV_DIR, DURABLE));
    must(xMmap(ENV_DIR "/a\nb.db", env_page()) == MAP_FAILED);
    must_ok(xShutdown());
}

START_TEST(name_with_a_newline_is_refused)
{
    proc_run(map_newline, NULL);
    must(!file_exists(ENV_DIR "/a\nb.db"));
}
END_TEST

static void
map_link_to_nothing(void *arg)
{
    (void)arg;
    must_eq(symlink("missing.db", "link.db"), 0);
    must_ok(xInit(ENV_DIR, DURABLE));
    must(xMmap("link.db", env_page()) == MAP_FAILED && errno == ENOENT);
    must(strstr(xLastError(), "symbolic link") != NULL);
    must_ok(xShutdown());
}

/* It neither makes the file that the link names, nor tries for ever. */
START_TEST(link_to_nothing_is_refused)
{
    proc_run(map_link_to_nothing, NULL);
    must(!file_exists("missing.db"));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("names");
    TCase *tc = env_tcase(s, "names", 60);

    tcase_add_test(tc, backup_writes_nothing_outside_of_itself);
    tcase_add_test(tc, addresses_name_nothing_outside);
    tcase_add_loop_test(tc, log_names_nothing_outside, 0, 3);
    tcase_add_test(tc, log_does_not_follow_a_link);
    tcase_add_test(tc, dry_run_lists_what_would_be_written);
    tcase_add_loop_test(tc, links_at_temporary_names_are_not_followed, 0, 2);
    tcase_add_test(tc, name_with_a_newline_is_refused);
    tcase_add_test(tc, link_to_nothing_is_refused);
    return env_main(s);
}
