/* SPDX-License-Identifier: MIT */
/*
 * check_archive.c -- xarchive --to and --follow, and xrestore: an archive, filled and brought back.
 *
 * GOAL    Any moment since the first backup is restored, as a history beside the log has it; so does each
 *         prefix of what has been put, or it says that nothing is there yet.  Whatever is killed or fails, and
 *         whenever, the next run goes on.  An object that is damaged or missing is named, and nothing wrong is
 *         restored.  Of two archivers one is refused.
 * METHOD  The programs of the build.  An rclone of our own, a shell script that keeps objects in a directory,
 *         notes their order, and fails, or kills who has called it, at the n-th operation.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <dirent.h>

#include "tests/unit/tools/archive_env.h"
#include "recovery/archive_manifest.h"
#include "recovery/archive_store.h"

/* ---- Manifests -------------------------------------------------------------------- */

/* age -- the k-th backup, from 0, is so many days old: by another manifest. */
static void
age(uint64_t k, uint64_t days)
{
    char path[ARCHIVE_NAME_MAX + 10], name[ARCHIVE_NAME_MAX], *text;
    struct archive_store store;
    struct archive a;
    uint64_t newest, n = 0;
    size_t bytes;

    must_ok(archive_store_open(&store, DEST));
    must_ok(archive_newest(&store, &newest));
    must_ok(archive_read(&a, &store, newest));
    for (size_t i = 0; i < a.n; i++) {
        if (a.object[i].kind == ARCHIVE_BACKUP && n++ == k)
            a.object[i].time_ns = now_ns() - days * 86400 * 1000000000;
    }
    must(n > k);
    must_ok(archive_write(&a, newest + 1, now_ns(), true, &text, &bytes));
    archive_manifest_name(name, newest + 1);
    (void)snprintf(path, sizeof path, DEST "/%s", name);
    file_write(path, 0, text, bytes);
    free(text);
    archive_free(&a);
    archive_store_close(&store);
}

/* must_name -- so many backups; is_tidy: and no log that none of them needs; ret where the oldest is whole. */
static uint64_t
must_name(size_t n_backups, bool is_tidy)
{
    struct archive_store store;
    struct archive a;
    uint64_t newest, redo = 0, end = 0;
    size_t n = 0;

    must_ok(archive_store_open(&store, DEST));
    must_ok(archive_newest(&store, &newest));
    must_ok(archive_read(&a, &store, newest));
    for (size_t i = 0; i < a.n; i++) {
        if (a.object[i].kind == ARCHIVE_BACKUP && n++ == 0) {
            redo = a.object[i].start;
            end = a.object[i].end;
        }
    }
    must_eq(n, n_backups);
    for (size_t i = 0; i < a.n; i++)
        must(!is_tidy || a.object[i].kind != ARCHIVE_LOG || a.object[i].end > redo);
    archive_free(&a);
    archive_store_close(&store);
    return end;
}

/* ---- Any moment ------------------------------------------------------------------- */

/* follow_with_kills -- a writer commits while archivers ship, each killed at some moment. */
static void
follow_with_kills(uint64_t n, uint64_t *seed)
{
    pid_t writer, archiver;

    board->n = n;
    writer = proc_spawn(write_timed, NULL);
    for (uint64_t end = word_load(&board->acknowledged) + n;
         word_load(&board->acknowledged) < end;) {
        archiver = start_tool("xarchive", "--follow " DEST " " ENV_DIR, "log");
        proc_sleep_us(20000 + rnd_below(seed, 300000));
        proc_kill(archiver);
    }
    proc_join(writer);
}

/* moment -- the option for the one behind transaction k. */
static void
moment(char until[60], uint64_t k)
{
    uint64_t at = word_load(&when[k]);

    (void)snprintf(until, 60, "--until @%llu.%09llu",
                   (unsigned long long)(at / 1000000000),
                   (unsigned long long)(at % 1000000000));
}

/* must_restore_moment -- that behind transaction k; ret false: it is older than the first backup, and xrestore says so. */
static bool
must_restore_moment(uint64_t k, uint64_t first, const char *src)
{
    char until[60];

    moment(until, k);
    if (word_load(&when[k]) >= first) {
        must_eq(must_restore(until, src), k);
        return true;
    }
    must_eq(restore(until, src), 1);
    ck_says("the oldest moment that can be restored");
    return false;
}

START_TEST(any_moment_is_restored)
{
    uint64_t seed = env_seed(), first, n = 0,
             moments = env_number("XAC_MOMENTS", 30 / ENV_DEAR);

    start();
    board->pause_us = 3000;
    commit(30);
    ship_to(DEST);
    for (int round = 0; round < 4; round++) {
        board->leaves = round % 2 == 1;
        follow_with_kills(150, &seed);
        if (round == 1) /* another backup */
            run_shell("rm -rf saved && cp -a " DEST " saved");
    }
    ship_to(DEST);
    first = first_backup(DEST);
    must_eq(must_restore("", DEST), word_load(&board->acknowledged));
    for (uint64_t i = 0; i < moments; i++)
        n +=
            must_restore_moment(1 + rnd_below(&seed, word_load(&board->acknowledged) - 1),
                                first, DEST);
    printf("%llu moments\n", (unsigned long long)n);
    must(n >= moments / 2);
}
END_TEST

/* ---- Prefixes, kills, failures ---------------------------------------------------- */

/* object -- the k-th that has been put, from 0; ret false: there is none. */
static bool
object(uint64_t k, char name[300])
{
    FILE *f = fopen("order", "re");
    bool is_there = f != NULL;

    for (uint64_t i = 0; is_there && i <= k; i++)
        is_there = fgets(name, 300, f) != NULL;
    if (f != NULL)
        (void)fclose(f);
    if (is_there)
        name[strcspn(name, "\n")] = '\0';
    return is_there;
}

/* Transactions between two runs of the archiver; the first backup is made behind so many. */
#define EACH 40

/* put_objects -- objects in the order of their putting, with another backup among them. */
static void
put_objects(void)
{
    for (int i = 0; i < 4; i++) {
        commit(EACH);
        if (i == 2) {
            age(0, 1); /* by a manifest that nobody has put */
            run_shell("ls " DEST " | grep manifest | tail -n 1 >>order");
        }
        ship_to(i >= 2 ? OWN " --backup-every 1" : OWN);
    }
    (void)must_name(2, false);
}

/* restore_part -- from the objects so far; ret the last transaction, 0: they say that nothing can be restored yet. */
static uint64_t
restore_part(void)
{
    int rc = restore("", "part");

    if (rc == 0)
        return must_be_state(NEW IN_COPY);
    must_eq(rc, 1);
    must(strstr(output, "nothing has been archived") != NULL
         || strstr(output, "there is no backup yet") != NULL);
    return 0;
}

/* The newest state of each prefix, and a moment that it has, in both of its backups. */
START_TEST(each_prefix_restores)
{
    uint64_t seed = env_seed(), last = 0, n_none = 0, n_states = 0, n_moments = 0;
    char name[300], command[800];

    start();
    own_make();
    put_objects();
    must_ok(mkdir("part", 0777));
    for (uint64_t k = 0;; k++) {
        uint64_t state = restore_part();

        must(state >= last);
        n_states += state > last;
        n_none += state == 0;
        last = state;
        if (state > EACH + 1)
            n_moments +=
                must_restore_moment(EACH + 1 + rnd_below(&seed, state - EACH - 1), 0,
                                    "part");
        if (!object(k, name))
            break;
        (void)snprintf(command, sizeof command,
                       "test ! -e " DEST "/%s || cp " DEST "/%s part/", name, name);
        run_shell(command);
    }
    printf("%llu prefixes without a backup, %llu states, %llu moments\n",
           (unsigned long long)n_none, (unsigned long long)n_states,
           (unsigned long long)n_moments);
    must_eq(last, (uint64_t)4 * EACH);
    must(n_none > 3);
    must(n_states >= 4);
    must(n_moments > 4);
}
END_TEST

/* What happens at the n-th operation. */
static const char *const modes[] = {"kill-before", "kill-after", "before", "after",
                                    "half"};

START_TEST(broken_at_each_operation_goes_on)
{
    const char *mode = modes[_i];
    uint64_t step = env_number("XAC_STEPS_LONG", 0) != 0 ? 1 : 17, n_broken = 0;
    bool is_broken = true;

    start();
    own_make();
    commit(5);
    /* Each seventeenth one, from another one on in each mode. */
    for (uint64_t n = 1 + 2 * (uint64_t)_i % step; is_broken; n += step) {
        run_shell("rm -rf " DEST "/* " ENV_DIR "/xac.archiving-*");
        plan(n, mode);
        tool_run("xarchive", "--to " OWN, ENV_DIR);
        is_broken = n_operations() >= n;
        n_broken += is_broken;
        plan(0, mode);
        commit(2);
        ship_to(OWN);
        must_eq(must_restore("", DEST), word_load(&board->acknowledged));
    }
    must(n_broken >= 2);
}
END_TEST

START_TEST(a_restore_that_is_killed_is_run_again)
{
    bool is_broken = true;
    uint64_t seed = env_seed();

    start();
    own_make();
    commit(60);
    ship_to(DEST);
    commit(60);
    ship_to(DEST);
    for (uint64_t n = 1; is_broken; n++) {
        run_shell("rm -rf " NEW);
        plan(n, n % 2 == 0 ? "kill-before" : "kill-after");
        (void)tool_run("xrestore", OWN, NEW);
        is_broken = n_operations() >= n;
        plan(0, "");
        if (is_broken && file_exists(NEW)) {
            int fd = open(NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), XAC_ENOTENV);
            (void)close(fd);
        }
        if (is_broken)
            must_eq(tool_run("xrestore", DEST, NEW), 0);
        must_eq(must_be_state(NEW IN_COPY), 120);
    }
    for (int i = 0; i < 25 / ENV_DEAR; i++) { /* the steps between, recovery too */
        pid_t pid;

        run_shell("rm -rf " NEW);
        pid = start_tool("xrestore", DEST " " NEW, "log");
        proc_sleep_us(rnd_below(&seed, 120000));
        proc_kill(pid);
        if (file_exists(NEW "/xac.unfinished")) {
            int fd = open(NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), XAC_ENOTENV);
            (void)close(fd);
        }
        if (!file_exists(NEW "/xac.master") || file_exists(NEW "/xac.unfinished"))
            must_eq(tool_run("xrestore", DEST, NEW), 0);
        must_eq(must_be_state(NEW IN_COPY), 120);
    }
}
END_TEST

START_TEST(a_follower_waits_for_its_archive)
{
    pid_t pid;

    start();
    own_make();
    commit(10);
    ship_to(OWN);
    commit(10);
    plan(0, "log");
    pid = start_tool("xarchive", "--follow " OWN " " ENV_DIR, "log");
    await_words("log", "planned; trying again");
    must_eq(end_tool(pid), 0);
    ship_to(OWN);
    must_eq(must_restore("", OWN), 20);
    plan(0, "always");
    must_eq(tool_run("xarchive", "--to " OWN, ENV_DIR), 1);
    ck_says("rclone lsf: exit code 7: ERROR : planned");
    must_eq(restore("", OWN), 1);
    ck_says("rclone lsf: exit code 7");
    must_ok(unlink("bin/rclone"));
    must_ok(setenv("PATH", "/nowhere", 1));
    must_eq(tool_run("/bin/true", "", ""), 0);
    must_eq(tool_run("xarchive", "--to " OWN, ENV_DIR), 1);
    ck_says("rclone is not installed");
}
END_TEST

START_TEST(a_full_disk_is_survived)
{
    char command[3000];

    start();
    board->large_every = 5;
    commit(10);
    ship_to(DEST);
    commit(40);
    (void)snprintf(command, sizeof command,
                   "trap '' XFSZ; ulimit -f 40; %s/xarchive --to " DEST " " ENV_DIR
                   " >log 2>&1; test $? = 1",
                   top());
    run_shell(command);
    await_words("log", "File too large");
    must_eq(must_restore("", DEST), 10);
    ship_to(DEST);
    must_eq(must_restore("", DEST), 50);
}
END_TEST

/* ---- Damage ----------------------------------------------------------------------- */

/* damage -- an object, in one of three ways; ret false: it cannot be done. */
static bool
damage(const char *path, int way, uint64_t *seed)
{
    uint64_t n = file_size(path), at;
    uint8_t byte;

    if (way == 2) {
        must_ok(unlink(path));
    } else if (way == 1) {
        if (n == 0)
            return false;
        must_ok(truncate(path, (off_t)rnd_below(seed, n)));
    } else {
        if (n == 0)
            return false;
        at = rnd_below(seed, n);
        file_read(path, at, &byte, 1);
        byte ^= (uint8_t)(1u << rnd_below(seed, 8));
        file_write(path, at, &byte, 1);
    }
    return true;
}

START_TEST(damage_is_named)
{
    static const char *const kinds[] = {"backup.", "log.", "manifest.", "note."};
    uint64_t seed = env_seed(), n[4] = {0};
    char path[600];
    struct dirent *d;
    DIR *dir;

    start();
    board->large_every = 10;
    commit(60);
    ship_to(DEST);
    commit(60); /* another generation: a full manifest, with notes */
    ship_to(DEST);
    run_shell("rm -f " DEST "/x; cp -a " DEST " whole");
    dir = opendir("whole");
    must(dir != NULL);
    while ((d = readdir(dir)) != NULL) {
        if (d->d_name[0] == '.' || strstr(d->d_name, ".history.") != NULL)
            continue;
        for (int way = 0; way < 3; way++) {
            int rc;

            run_shell("rm -rf " DEST " && cp -a whole " DEST);
            (void)snprintf(path, sizeof path, DEST "/%s", d->d_name);
            if (!damage(path, way, &seed))
                continue;
            rc = restore("", DEST);
            if (rc == 0 && way == 2 && strncmp(d->d_name, "manifest", 8) == 0) {
                must_be_state(NEW IN_COPY); /* as if it had not been put yet */
                continue;
            }
            if (rc == 0) { /* others have what it has */
                must_eq(must_be_state(NEW IN_COPY), word_load(&board->acknowledged));
                continue;
            }
            must_eq(rc, 3);
            ck_says(d->d_name);
            must(!file_exists(NEW "/xac.master"));
            for (int kind = 0; kind < 4; kind++)
                n[kind] += strncmp(d->d_name, kinds[kind], strlen(kinds[kind])) == 0;
        }
    }
    (void)closedir(dir);
    for (int kind = 0; kind < 4; kind++)
        must(n[kind] > 1);
}
END_TEST

/* ---- Refused ---------------------------------------------------------------------- */

START_TEST(a_second_archiver_is_refused)
{
    pid_t pid;

    start();
    commit(10);
    pid = start_tool("xarchive", "--follow " DEST " " ENV_DIR, "log");
    for (int i = 0; i < 1000 && !file_exists(DEST "/manifest.0000000002"); i++)
        proc_sleep_us(10000);
    must_eq(tool_run("xarchive", "--to " DEST, ENV_DIR), 1);
    ck_says("another process archives it");
    run_shell("cp -a " ENV_DIR " copied");
    must_eq(tool_run("xarchive", "--to " DEST, "copied"), 1);
    ck_says("belongs to another archiver");
    must_eq(end_tool(pid), 0);
    must_eq(file_count(DEST, "claim."), 0);
    must_eq(must_restore("", DEST), 10);
    must_eq(tool_run("xarchive", "--to " DEST, NEW), 1);
    ck_says("are not the same");
    commit(1);
    ship_to(DEST);
    must_eq(must_restore("", DEST), 11);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static const char *const wrong[] = {"--to " DEST " --delete",
                                        "--to a --to b",
                                        "--keep-days 3",
                                        "--follow ''",
                                        "--to " DEST " --keep-days 0",
                                        "-q"};

    start();
    commit(3);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        must_eq(tool_run("xarchive", wrong[i], ENV_DIR), 2);
    must_eq(tool_run("xarchive", "--to nowhere", ENV_DIR), 1);
    ck_says("nowhere: No such file");
    must_eq(tool_run("xarchive", "--to " DEST, "nowhere"), 1);
    must_eq(restore("", DEST), 1);
    ck_says("nothing has been archived");
    must(!file_exists(NEW));
    ship_to(DEST);
    must_eq(restore("--until yesterday", DEST), 2);
    must_eq(restore("--until 8", DEST), 1);
    ck_says("the oldest moment");
    must_ok(mkdir("full", 0777));
    text_write("full/mine", "x");
    must_eq(tool_run("xrestore", DEST, "full"), 1);
    ck_says("is not empty, it holds mine");
    must(file_exists("full/mine"));
    must_eq(tool_run("xrestore", DEST " --json", NEW), 0);
    ck_says("\"code\": 0");
    /* A place that has lost what it had is not the right one. */
    run_shell("mv " DEST " away && mkdir " DEST);
    must_eq(tool_run("xarchive", "--to " DEST, ENV_DIR), 1);
    ck_says("is it mounted?");
}
END_TEST

START_TEST(leftovers_are_not_overwritten)
{
    start();
    commit(10);
    ship_to(DEST);
    run_shell("cp -a " DEST " saved && cp -a " ENV_DIR "/xac.archiving-* notes");
    commit(10);
    ship_to(DEST);
    /* As if that run had been killed, and its objects torn. */
    run_shell("cp -a notes/note " ENV_DIR "/xac.archiving-*/ && for f in " DEST "/*; do "
              "test -e saved/${f##*/} || { echo torn >$f; echo ${f##*/} >>torn; }; done");
    ship_to(DEST);
    run_shell("test $(wc -l <torn) -ge 2 && for f in $(cat torn); do "
              "test \"$(cat " DEST "/$f)\" = torn || exit 1; done");
    must_eq(must_restore("", DEST), 20);
}
END_TEST

/* ---- Gaps, and what goes ---------------------------------------------------------- */

START_TEST(a_gap_is_not_restored_over)
{
    uint64_t before, inside, end;
    char until[80];

    start();
    board->large_every = 0;
    commit(50);
    ship_to(DEST);
    before = word_load(&board->acknowledged);
    must_eq(tool_run("xship", "slots", ENV_DIR), 0);
    output[strcspn(output, ":")] = '\0';
    (void)snprintf(until, sizeof until, "drop " ENV_DIR " %.40s", output);
    must_eq(tool_run("xship", until, ""), 0);
    commit(300); /* the log is used again */
    inside = word_load(&board->acknowledged) - 100;
    must_eq(tool_run("xarchive", "--to " DEST, ENV_DIR), 0);
    ck_says("a new backup follows");
    end = word_load(&board->acknowledged);
    must_eq(must_restore("", DEST), end);
    moment(until, inside);
    must_eq(restore(until, DEST), 1);
    ck_says("is missing: that moment cannot be restored");
    must_eq(tool_run("xrestore", "--list", DEST), 0);
    ck_says("log behind it is missing");
    must(before < inside);
}
END_TEST

START_TEST(what_is_not_named_goes_a_day_later)
{
    size_t n, left;

    start();
    for (int i = 0; i < 3; i++) {
        commit(20);
        ship_to(DEST);
    }
    n = file_count(DEST, "");
    run_shell("cp -a " DEST " all");
    ship_to(DEST);
    must(file_count(DEST, "") >= n); /* not yet */
    for (int i = 0; i < 2;
         i++) { /* the note is a day older: another is made, and acted upon */
        run_shell("sed -i '1s/.*/1/' " ENV_DIR "/xac.archiving-*/doomed");
        ship_to(DEST);
        must(i > 0 || file_count(DEST, "") >= n);
    }
    left = file_count(DEST, "");
    must(left < n);
    must_eq(must_restore("", DEST), 60);
    must_eq(must_restore("", "all"), 60);
}
END_TEST

START_TEST(old_moments_go)
{
    char until[60];
    uint64_t oldest;

    start();
    for (int i = 0; i < 3; i++) {
        commit(30);
        ship_to(i == 0 ? DEST : DEST " --backup-every 1");
        age((uint64_t)i, 10 - 4 * (uint64_t)i); /* 10, 6 and 2 days */
    }
    (void)must_name(3, false);
    commit(30);
    ship_to(DEST " --backup-every 1 --keep-days 4");
    oldest = must_name(3, true); /* that of 6 days leads to the moment 4 days ago */
    (void)snprintf(until, sizeof until, "--until %llu", (unsigned long long)oldest);
    must_eq(must_restore(until, DEST), 60);
    must_eq(must_restore("", DEST), 120);
    ship_to(DEST " --backup-every 1 --keep-days 4"); /* nothing has been committed */
    must_eq(must_name(3, true), oldest);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("archive");
    TCase *t = env_tcase(s, "refused", 400);

    tcase_add_test(t, a_second_archiver_is_refused);
    tcase_add_test(t, what_does_not_fit_is_refused);
    tcase_add_test(t, leftovers_are_not_overwritten);
    t = env_tcase(s, "removed", 400);
    tcase_add_test(t, what_is_not_named_goes_a_day_later);
    tcase_add_test(t, old_moments_go);
    t = env_tcase(s, "damage", 400);
    tcase_add_test(t, damage_is_named);
    t = env_tcase(s, "prefixes", 400);
    tcase_add_test(t, each_prefix_restores);
    t = env_tcase(s, "failures", 400);
    tcase_add_test(t, a_follower_waits_for_its_archive);
    tcase_add_test(t, a_full_disk_is_survived);
    t = env_tcase(s, "moments", 400);
    tcase_add_test(t, a_gap_is_not_restored_over);
    tcase_add_test(t, any_moment_is_restored);
    t = env_tcase(s, "breaks", 400);
    tcase_add_loop_test(t, broken_at_each_operation_goes_on, 0,
                        sizeof modes / sizeof modes[0]);
    t = env_tcase(s, "restores", 400);
    tcase_add_test(t, a_restore_that_is_killed_is_run_again);
    return env_main(s);
}
