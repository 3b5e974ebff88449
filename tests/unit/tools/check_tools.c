/* SPDX-License-Identifier: MIT */
/*
 * check_tools.c -- the tools xlogdump, xstat, xarchive and xbackup: exit codes, words, JSON, filters; what
 * they must not do.  Those that a running environment is needed for run beside a child
 * that has one.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "api/api.h"

#include "tests/common/recover_env.h"
#include "tests/common/tool_run.h"
#include "base/digest.h"
#include "base/lockfile.h"
#include "log/log.h"
#include "shared/registry.h"

/* run -- a tool with some arguments on the environment; ret its exit code. */
static int
run(const char *tool, const char *arguments)
{
    return tool_run(tool, arguments, s.dir);
}

#define ck_silent_about(words) ck_assert_msg(strstr(output, words) == NULL, "%s", output)

/* times -- how often a word comes in the output. */
static unsigned
times(const char *word)
{
    unsigned n = 0;

    for (const char *p = output; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

static void
some_log(void)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "first", 3);
    (void)synth_file(&s, "second", 3);
    synth_begin(&s);
    synth_change(&s, 0, 2);
    synth_commit(&s);
    synth_begin(&s);
    synth_change(&s, 1, 1);
    synth_change(&s, 1, 2);
    synth_commit(&s);
    synth_begin(&s);
    synth_change(&s, 0, 2);
    synth_commit(&s);
}

/* ---- All of them ------------------------------------------------------------------ */

static const char *const tools[] = {"xlogdump", "xstat", "xarchive", "xbackup"};
#define N_TOOLS ((int)(sizeof tools / sizeof tools[0]))

/* run_plain -- a tool on a directory, without options; xbackup to another one. */
static int
run_plain(int i, const char *dir)
{
    char operands[300];

    (void)snprintf(operands, sizeof operands, "%s%s%s", dir,
                   strcmp(tools[i], "xbackup") == 0 ? " " : "",
                   strcmp(tools[i], "xbackup") == 0 ? "/nonexistent/to" : "");
    return tool_run(tools[i], "", operands);
}

START_TEST(usage_is_told)
{
    char words[64];

    some_log();
    ck_assert_int_eq(run(tools[_i], "--help"), 0);
    (void)snprintf(words, sizeof words, "usage: %s", tools[_i]);
    ck_says(words);
    ck_says("exit: 0");
    ck_assert_int_eq(run(tools[_i], "--version"), 0);
    ck_says("(libxac) " PACKAGE_VERSION);
    ck_assert_int_eq(run(tools[_i], "--nonsense"), 2);
    ck_says(words);
    ck_assert_int_eq(run(tools[_i], "another another another"), 2);
    ck_assert_int_eq(tool_run(tools[_i], "", ""), 2);
}
END_TEST

START_TEST(directories_without_environment_are_refused)
{
    struct synth_picture picture;

    some_log();
    ck_assert_int_eq(run_plain(_i, "/nonexistent"), 1);
    ck_says("No such file");
    ck_assert_int_eq(unlinkat(s.dirfd, "xac.master", 0), 0);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run_plain(_i, s.dir), 5);
    ck_says("no xac.master");
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(another_format_version_is_refused)
{
    struct synth_picture picture;
    struct xac_master_slot m;
    uint8_t *bytes;
    size_t n;

    some_log();
    bytes = synth_get(&s, "xac.master", &n);
    memcpy(&m, bytes, sizeof m);
    m.version = XAC_FORMAT_VERSION + 1;
    m.checksum = xac_xxh64(&m, offsetof(struct xac_master_slot, checksum));
    memset(bytes, 0, n);
    memcpy(bytes, &m, sizeof m);
    synth_put(&s, "xac.master", bytes, n);
    free(bytes);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run_plain(_i, s.dir), 1);
    ck_says("version");
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

/* ---- xlogdump --------------------------------------------------------------------- */

START_TEST(dump_shows_every_record)
{
    struct synth_picture picture;

    some_log();
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run("xlogdump", ""), 0);
    ck_says("5 blocks of");
    ck_assert_uint_eq(times("XFILE"), 2);
    ck_assert_uint_eq(times("XBEGIN"), 3);
    ck_assert_uint_eq(times("XCOMMIT"), 3);
    ck_assert_uint_eq(times("full image"), 3);
    ck_assert_uint_eq(times("difference"), 1);
    ck_says("file 1 page 2 full image");
    ck_says("2023-11-14T22:13:20.020000Z"); /* synth_time(2) */
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(dump_shows_checkpoints_and_data_files)
{
    some_log();
    synth_begin(&s);
    synth_change(&s, 0, 1);
    (void)synth_commit_large(&s);
    synth_checkpoint(&s, NULL, 1);
    ck_assert_int_eq(run("xlogdump", ""), 0);
    ck_says("XDATAFILE");
    ck_says("xac-data.0000000");
    ck_says("XCHECKPT_BEGIN");
    ck_says("recovery reads from");
    ck_assert_int_eq(run("xlogdump", "--json"), 0);
    ck_says("\"redo_lsn_bytes\": ");
    ck_says("\"data_file\": \"xac-data.");
}
END_TEST

START_TEST(dump_filters)
{
    char options[64];

    some_log();
    ck_assert_int_eq(run("xlogdump", "--page first:2"), 0);
    ck_assert_uint_eq(times("XCOMMIT"), 2);
    ck_silent_about("second");
    ck_assert_int_eq(run("xlogdump", "--page 2:1"), 0);
    ck_assert_uint_eq(times("XCOMMIT"), 1);
    ck_silent_about("first");
    ck_assert_int_eq(run("xlogdump", "--commit 2"), 0);
    ck_says("1 block of");
    ck_says("second");
    ck_assert_int_eq(run("xlogdump", "--at 2023-11-14T22:13:20.020000Z"), 0);
    ck_says("1 block of");
    ck_says("commit 2");
    ck_assert_int_eq(run("xlogdump", "--at 2023-11-14T22:13:20.029999Z"), 0);
    ck_says("commit 2");
    ck_assert_int_eq(run("xlogdump", "--at 2030-01-01T00:00:00Z"), 0);
    ck_says("1 block of");
    ck_says("commit 3");
    ck_assert_int_eq(run("xlogdump", "--at 2023-11-14T22:13:20.000000Z"), 0);
    ck_says("0 blocks of");
    ck_assert_int_eq(run("xlogdump", "--at yesterday"), 2);
    ck_assert_int_eq(run("xlogdump", "--txn 3"), 0);
    ck_says("transaction 3\n");
    ck_says("1 block of");
    (void)snprintf(options, sizeof options, "--from %llu --to %llu",
                   (unsigned long long)s.block_lsn[2],
                   (unsigned long long)s.block_lsn[4]);
    ck_assert_int_eq(run("xlogdump", options), 0);
    ck_says("2 blocks of");
    ck_says("commit 1");
    ck_says("commit 2");
    ck_assert_int_eq(run("xlogdump", "--blocks"), 0);
    ck_silent_about("XCOMMIT");
}
END_TEST

START_TEST(dump_goes_on_behind_damage)
{
    some_log();
    synth_flip(&s, "xac-log.00000001", 4096 + s.block_lsn[3] + 70, 1);
    ck_assert_int_eq(run("xlogdump", ""), 0);
    ck_says("no block up to");
    ck_says("torn block: checksum");
    ck_assert_uint_eq(times("XCOMMIT"), 2);
    synth_flip(&s, "xac-log.00000001", 4096 + s.block_lsn[4] + 10, 1);
    ck_assert_int_eq(run("xlogdump", "--json"), 0);
    ck_assert_uint_eq(times("XCOMMIT"), 1);
    ck_says("\"hole_end_lsn_bytes\"");
}
END_TEST

START_TEST(dump_hides_what_is_stale)
{
    unsigned before, stale;

    some_log();
    for (int i = 0; i < 200; i++) {
        synth_begin(&s);
        synth_change(&s, 0, 1);
        synth_commit(&s);
    }
    /* A torn tail: what comes behind the tear stays on disk, outdated. */
    synth_flip(&s, "xac-log.00000001", 4096 + s.block_lsn[6] + 70, 1);
    ck_ok(recover());
    ck_assert_uint_lt(next.start_lsn, s.tail);
    s.master = next;
    s.tail = next.start_lsn;
    synth_begin(&s);
    synth_change(&s, 0, 0);
    synth_commit(&s);
    ck_assert_int_eq(run("xlogdump", ""), 0);
    before = times("XCOMMIT");
    ck_silent_about("stale");
    ck_assert_int_eq(run("xlogdump", "--stale"), 0);
    stale = times("stale");
    ck_assert_uint_gt(stale, 10);
    ck_assert_uint_eq(times("XCOMMIT"), before + stale);
}
END_TEST

/* ---- xstat ------------------------------------------------------------------------ */

/* A child with an environment: commits, opens a query or a transaction, waits to be killed. */
static pid_t
start_participant(const char *dir, bool is_durable, bool is_query)
{
    int ready[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        char *base;

        if (xac_init(dir, is_durable ? XAC_DURABLE : XAC_NONDURABLE) != 0)
            _exit(1);
        (void)chdir(dir);
        base = (char *)xac_mmap("live", 8192);
        for (int i = 0; i < 7; i++) {
            if (xac_begin() != 0)
                _exit(1);
            base[i]++;
            if (xac_end() != XAC_COMMITTED)
                _exit(1);
        }
        if ((is_query ? xac_begin_query() : xac_begin()) != 0 || base[0] == 0)
            _exit(1);
        (void)!write(ready[1], "", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void
end_participant(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(xac_recover(s.dir), 0); /* deletes the region */
}

START_TEST(stat_says_that_nobody_is_attached)
{
    some_log();
    ck_assert_int_eq(run("xstat", ""), 0);
    ck_says("nobody is attached");
    ck_assert_int_eq(close(xac_lockfile_open(s.dirfd)), 0);
    ck_assert_int_eq(run("xstat", "--json"), 0);
    ck_says("\"attached\": false");
    ck_assert_int_eq(run("xstat", "--watch=0.05"), 0);
    ck_says("nobody is attached");
}
END_TEST

START_TEST(stat_shows_a_running_environment)
{
    char words[64];
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = start_participant(s.dir, _i == 0, true);
    ck_assert_int_eq(run("xstat", ""), 0);
    ck_says(_i == 0 ? ": durable, 1 participant\n" : ": not durable, 1 participant\n");
    ck_assert_int_eq(run("xstat", "--json"), 0);
    ck_says("\"commits\": 7,");
    ck_says("\"participants\": 1,");
    (void)snprintf(words, sizeof words, "\"oldest_pid\": %d,", (int)pid);
    ck_says(words);
    ck_assert_int_eq(run("xstat", "--watch=0.05 --count 2"), 0);
    ck_says("commits/s");
    ck_assert_uint_eq(times("\n"), 3);
    ck_assert_int_eq(run("xstat", "--watch=0.05 --count 2 --json"), 0);
    ck_assert_uint_eq(times("\"commits_per_s\": 0,"), 2);
    end_participant(pid);
    ck_assert_int_eq(run("xstat", ""), 0);
    ck_says("nobody is attached");
}
END_TEST

/* A query that others have left behind, beside an open transaction. */
START_TEST(stat_shows_what_an_old_query_holds_back)
{
    char words[64];
    pid_t query, writer;

    synth_open(&s, 4096, 65536);
    query = start_participant(s.dir, true, true);
    writer = start_participant(s.dir, true, false);
    ck_assert_int_eq(run("xstat", "--json"), 0);
    ck_says("\"commits\": 14,");
    ck_says("\"oldest_behind\": 7,");
    (void)snprintf(words, sizeof words, "\"oldest_pid\": %d,", (int)query);
    ck_says(words);
    ck_assert_int_eq(run("xstat", ""), 0);
    ck_assert_int_eq(kill(query, SIGKILL), 0);
    ck_assert_int_eq(waitpid(query, NULL, 0), query);
    end_participant(writer);
}
END_TEST

/* ---- xarchive --------------------------------------------------------------------- */

/* An environment with old segments and the data file of an earlier generation. */
static void
old_log(void)
{
    synth_open(&s, 4096, 4096);
    (void)synth_file(&s, "a", 3);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    (void)synth_commit_large(&s);
    synth_transactions(&s, 100);
    synth_checkpoint(&s, NULL, 1);
    ck_ok(recover());
    ck_assert_uint_gt(xac_log_segment_of(next.redo_lsn, 4096), 4);
}

static bool
has(const char *name)
{
    return faccessat(s.dirfd, name, F_OK, 0) == 0;
}

START_TEST(archive_names_what_is_not_needed)
{
    char keep[XAC_LOG_NAME_MAX];
    struct synth_picture picture;

    old_log();
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run("xarchive", ""), 0);
    ck_says("/xac-log.00000002\n");
    ck_says("/xac-log.00000003\n");
    ck_says("/xac-data.00000001.");
    xac_log_segment_name(keep, xac_log_segment_of(next.redo_lsn, 4096));
    ck_silent_about(keep);
    ck_assert_int_eq(run("xarchive", "--delete --dry-run"), 0);
    ck_assert_int_eq(run("xarchive", "--json"), 0);
    ck_says("\"done\": \"named\"");
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(archive_moves)
{
    char options[200];

    old_log();
    (void)snprintf(options, sizeof options, "--move %s/to", s.dir);
    ck_assert_int_eq(run("xarchive", options), 1);
    ck_assert(has("xac-log.00000002"));
    ck_assert_int_eq(mkdirat(s.dirfd, "to", 0777), 0);
    ck_assert_int_eq(run("xarchive", options), 0);
    ck_assert(!has("xac-log.00000002") && has("to/xac-log.00000002"));
    ck_assert(!has("xac-log.00000003") && has("to/xac-log.00000003"));
    /* Another file of that name is kept. */
    synth_put(&s, "xac-log.00000002", "new", 3);
    ck_assert_int_eq(run("xarchive", options), 1);
    ck_says("File exists");
    ck_assert(has("xac-log.00000002"));
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(archive_hooks)
{
    char options[600];

    old_log();
    ck_assert_int_eq(mkdirat(s.dirfd, "to", 0777), 0);
    ck_assert_int_eq(run("xarchive", "--hook false --delete"), 1);
    ck_says("the hook failed with exit code 1");
    ck_assert(has("xac-log.00000002"));
    (void)snprintf(options, sizeof options,
                   "--delete --hook 'cp %%p %s/to/ && test -f %s/to/%%f && echo 5%%%%'",
                   s.dir, s.dir);
    ck_assert_int_eq(run("xarchive", options), 0);
    ck_says("5%\n");
    ck_assert(!has("xac-log.00000002") && has("to/xac-log.00000002"));
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

/* change_much -- 400 KiB of log in segments of 64, and a checkpoint. */
static void
change_much(uint64_t *x)
{
    for (uint64_t i = 0; i < 400; i++) {
        ck_ok(xac_begin());
        for (uint64_t k = 0; k < 128; k++)
            x[i % 64 * 512 + k] = synth_random(&s, UINT64_MAX);
        ck_assert_int_eq(xac_end(), XAC_COMMITTED);
    }
    ck_ok(xac_checkpoint());
}

/* first_segment -- number of the first segment from `number` on that is there. */
static unsigned
first_segment(const char *dir, unsigned number)
{
    char name[XAC_LOG_NAME_MAX + 8];

    for (; number < 1000; number++) {
        (void)snprintf(name, sizeof name, "%sxac-log.%08u", dir, number);
        if (has(name))
            break;
    }
    return number;
}

/* A destination keeps the log from then on, in the run of others and in later ones. */
START_TEST(archive_destination_keeps_the_log)
{
    char path[256], options[300], nowhere[300], dry[330];
    unsigned before;
    uint64_t *x;

    synth_open(&s, 4096, 65536);
    ck_assert_int_eq(mkdirat(s.dirfd, "to", 0777), 0);
    (void)snprintf(path, sizeof path, "%s/live", s.dir);
    (void)snprintf(options, sizeof options, "--move %s/to", s.dir);
    ck_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    for (int run_no = 0; run_no < 2; run_no++) {
        ck_ok(xac_init(s.dir, XAC_DURABLE));
        x = (uint64_t *)xac_mmap(path, 64 * 4096);
        for (int i = 0; i < 3; i++)
            change_much(x);
        if (run_no == 0) {
            ck_assert_uint_gt(first_segment("", 1), 1); /* used again by default */
            ck_assert_int_eq(run("xarchive", ""), 0);
            ck_says("the log is not kept");
            (void)snprintf(nowhere, sizeof nowhere, "--move %s/none", s.dir);
            (void)snprintf(dry, sizeof dry, "--dry-run %s", options);
            ck_assert_int_eq(run("xarchive", dry), 0); /* moves and marks nothing */
            ck_assert_int_ne(run("xarchive", nowhere), 0);
            (void)snprintf(dry, sizeof dry, "--dry-run %s", nowhere);
            ck_assert_int_ne(run("xarchive", dry), 0); /* would not have worked */
            ck_says("none: No such file or directory");
            ck_assert_int_eq(run("xarchive", ""), 0);
            ck_says("the log is not kept"); /* still */
            ck_assert_int_eq(run("xarchive", options), 0);
            ck_says("from now on the log is kept");
            ck_says("Make a backup");
        }
        before = first_segment("to/", 1);
        for (int i = 0; i < 3; i++)
            change_much(x);
        ck_ok(xac_shutdown());
        ck_assert_int_eq(run("xarchive", options), 0);
        ck_silent_about("kept");
        for (; before < first_segment("", 1); before++)
            ck_assert_uint_eq(first_segment("to/", before), before);
    }
    ck_assert_uint_gt(before, 15);
    ck_assert_int_eq(run("xarchive", "--json"), 0);
    ck_says("\"kept\": true");
}
END_TEST

/* What a backup under way needs is not named, by the library or the tool. */
START_TEST(archive_waits_for_backups)
{
    struct xac_participant *p;
    char **names;
    size_t n;
    uint64_t *x;
    char path[256];

    synth_open(&s, 4096, 65536);
    (void)snprintf(path, sizeof path, "%s/live", s.dir);
    ck_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    ck_ok(xac_init(s.dir, XAC_DURABLE));
    x = (uint64_t *)xac_mmap(path, 64 * 4096);
    for (uint64_t i = 0; i < 200; i++) {
        ck_ok(xac_begin());
        for (uint64_t k = 0; k < 100; k++)
            x[i % 64 * 512 + k] = synth_random(&s, UINT64_MAX);
        ck_assert_int_eq(xac_end(), XAC_COMMITTED);
    }
    ck_ok(xac_checkpoint());
    p = xac_participant_at(xac_api_env, xac_api_env->self);
    atomic_store_explicit(&p->log_pin, 1, memory_order_seq_cst); /* of this thread */
    ck_ok(xac_archive(&names, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(run("xarchive", ""), 0);
    ck_silent_about("xac-log");
    atomic_store_explicit(&p->log_pin, 0, memory_order_seq_cst); /* likewise */
    ck_ok(xac_archive(&names, &n));
    ck_assert_uint_gt(n, 0);
    free(names);
    ck_assert_int_eq(run("xarchive", ""), 0);
    ck_says("/xac-log.00000001\n");
    ck_ok(xac_shutdown());
}
END_TEST

/* ---- xbackup ---------------------------------------------------------------------- */

START_TEST(backup_is_made_and_checked)
{
    char operands[300], option[300];
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = start_participant(s.dir, true, true);
    (void)snprintf(operands, sizeof operands, "%s %s/copy", s.dir, s.dir);
    ck_assert_int_eq(tool_run("xbackup", "", operands), 0);
    ck_says("1 file with");
    ck_says("whole from LSN");
    ck_assert_int_eq(tool_run("xbackup", "", operands), 1);
    ck_says("holds");
    (void)snprintf(option, sizeof option, "%s/copy", s.dir);
    ck_assert_int_eq(tool_run("xlogdump", "", option), 0);
    ck_assert_int_eq(tool_run("xrecover", "", option), 0);
    (void)snprintf(operands, sizeof operands, "%s %s/copy2", s.dir, s.dir);
    ck_assert_int_eq(tool_run("xbackup", "--recover --json", operands), 0);
    ck_says("\"recovered\": true");
    ck_assert(!has("copy2/xac.backup") && has("copy2/live"));
    end_participant(pid);
}
END_TEST

/* last_percent -- of the last line of progress that has these words; -1: there is none. */
static int
last_percent(const char *words)
{
    int percent = -1;

    for (const char *p = output; (p = strstr(p, words)) != NULL; p++) {
        const char *open = strchr(p, '(');

        ck_assert(open != NULL && sscanf(open, "(%d%%)", &percent) == 1);
        ck_assert(percent >= 0 && percent <= 100);
    }
    return percent;
}

/* Without a terminal there is no progress, unless XAC_PROGRESS=1 asks for it. */
START_TEST(progress_is_shown)
{
    char operands[600], archive[300];
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = start_participant(s.dir, true, true);
    (void)snprintf(operands, sizeof operands, "%s %s/one", s.dir, s.dir);
    ck_assert_int_eq(tool_run("xbackup", "", operands), 0);
    ck_silent_about("MB/s");
    ck_assert_int_eq(setenv("XAC_PROGRESS", "1", 1), 0);
    (void)snprintf(operands, sizeof operands, "%s %s/two", s.dir, s.dir);
    ck_assert_int_eq(tool_run("xbackup", "", operands), 0);
    ck_says(" MB/s, ");
    ck_says(" left\n");
    ck_assert_int_eq(last_percent("MiB of files and log copied"), 100);
    ck_assert_int_eq(last_percent("MiB of the copy's log read"), 100);
    (void)snprintf(operands, sizeof operands, "%s %s/three", s.dir, s.dir);
    ck_assert_int_eq(tool_run("xbackup", "--quiet", operands), 0);
    ck_silent_about("MB/s");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(run("xrecover", ""), 0);
    ck_assert_int_eq(last_percent("MiB of log read"), 100);
    synth_close(&s);
    old_log();
    (void)snprintf(archive, sizeof archive, "%s/archive", s.dir);
    ck_assert_int_eq(mkdir(archive, 0700), 0);
    (void)snprintf(operands, sizeof operands, "--move %s", archive);
    ck_assert_int_eq(run("xarchive", operands), 0);
    ck_assert_int_eq(last_percent("MiB of log shipped"), 100);
    ck_assert_int_eq(unsetenv("XAC_PROGRESS"), 0);
}
END_TEST

/* one_run -- of an environment with segments of that size; a backup in the middle, if asked for. */
static void
one_run(uint64_t segment_bytes, uint64_t value, const char *backup)
{
    char path[256];
    uint64_t *x;

    ck_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, segment_bytes));
    ck_ok(xac_set_option(XAC_OPT_LOG_RECYCLE, 0));
    (void)snprintf(path, sizeof path, "%s/env", s.dir);
    ck_ok(xac_init(path, XAC_DURABLE));
    (void)snprintf(path, sizeof path, "%s/env/live", s.dir);
    x = (uint64_t *)xac_mmap(path, 16 * 4096);
    ck_assert_ptr_ne(x, MAP_FAILED);
    for (uint64_t i = 0; i < 40; i++) {
        ck_ok(xac_begin());
        for (uint64_t k = 0; k < 16; k++)
            memset(x + 512 * k + 1 + i, (int)synth_random(&s, 256), 900);
        x[0] = value + i;
        ck_assert_int_eq(xac_end(), XAC_COMMITTED);
        if (i == 20 && backup != NULL)
            ck_ok(xac_backup(backup));
    }
    ck_ok(xac_shutdown());
}

/* The log is one, in the order of its positions, whatever sizes its segments had. */
START_TEST(dump_shows_segments_of_all_sizes)
{
    static const uint64_t sizes[] = {65536, 1 << 20, 65536};
    unsigned long long last = 0, lsn;
    char env[256];

    synth_open(&s, 4096, 65536);
    (void)snprintf(env, sizeof env, "%s/env", s.dir);
    for (uint64_t i = 0; i < 3; i++)
        one_run(sizes[i], 100 * i, NULL);
    ck_assert_int_eq(tool_run("xlogdump", "--blocks", env), 0);
    ck_assert_uint_eq(times(", commit "), 3 * (40 + 2)); /* the last checkpoint's, too */
    ck_silent_about("no block");
    for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (sscanf(line, "%llu  xac-log.", &lsn) == 1 && strstr(line, "offset") != NULL) {
            ck_assert(last == 0 || lsn > last);
            last = lsn;
        }
    ck_assert_uint_gt(last, 1 << 20);
}
END_TEST

/* The size of segments may change between two runs: what has been logged before stays good for
   restores, and is verified.  _i 1: with a small log buffer, so transactions have data files,
   which a restore needs as well. */
START_TEST(restore_goes_on_with_segments_of_another_size)
{
    static const uint64_t sizes[] = {65536, 1 << 20, 65536};
    char backup[256], env[256], logs[300], data[300];
    uint64_t *live;
    size_t n;

    synth_open(&s, 4096, 65536);
    (void)snprintf(backup, sizeof backup, "%s/copy", s.dir);
    (void)snprintf(env, sizeof env, "%s/env", s.dir);
    (void)snprintf(logs, sizeof logs, "%s/xac-log.*", env);
    (void)snprintf(data, sizeof data, "%s/xac-data.*", env);
    ck_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, _i == 0 ? 0 : 65536));
    for (uint64_t i = 0; i < 3; i++)
        one_run(sizes[i], 100 * i, i == 0 ? backup : NULL);
    ck_assert_int_eq(tool_run("xrecover", "--check", env), 0);
    ck_says("sound");
    ck_assert_int_eq(tool_run("/bin/cp", logs, backup), 0);
    ck_assert_int_eq(tool_run("xrecover", "", backup), 3);
    ck_says("the log has blocks of generation");
    if (_i == 1) {
        ck_assert_int_eq(tool_run("xrecover", "--until end", backup), 3);
        ck_says("missing");
        ck_assert_int_eq(tool_run("/bin/cp", data, backup), 0);
    }
    ck_assert_int_eq(tool_run("xrecover", "--until end", backup), 0);
    live = (uint64_t *)(void *)synth_get(&s, "copy/live", &n);
    ck_assert_uint_eq(live[0], 239);
    free(live);

    /* Damage in segments of a former size is found. */
    synth_flip(&s, "env/xac-log.00000002", 30000, 0x20);
    ck_assert_int_eq(tool_run("xrecover", "--check", env), 3);
    ck_says("xac-log.00000002: offset");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tools");
    TCase *tc = recover_tcase(suite, "tools");

    tcase_add_loop_test(tc, usage_is_told, 0, N_TOOLS);
    tcase_add_loop_test(tc, directories_without_environment_are_refused, 0, N_TOOLS);
    tcase_add_loop_test(tc, another_format_version_is_refused, 0, N_TOOLS);
    tcase_add_test(tc, dump_shows_every_record);
    tcase_add_test(tc, dump_shows_checkpoints_and_data_files);
    tcase_add_test(tc, dump_filters);
    tcase_add_test(tc, dump_goes_on_behind_damage);
    tcase_add_test(tc, dump_hides_what_is_stale);
    tcase_add_test(tc, dump_shows_segments_of_all_sizes);
    tcase_add_test(tc, stat_says_that_nobody_is_attached);
    tcase_add_loop_test(tc, stat_shows_a_running_environment, 0, 2);
    tcase_add_test(tc, stat_shows_what_an_old_query_holds_back);
    tcase_add_test(tc, archive_names_what_is_not_needed);
    tcase_add_test(tc, archive_moves);
    tcase_add_test(tc, archive_hooks);
    tcase_add_test(tc, archive_destination_keeps_the_log);
    tcase_add_test(tc, archive_waits_for_backups);
    tcase_add_test(tc, backup_is_made_and_checked);
    tcase_add_test(tc, progress_is_shown);
    tcase_add_loop_test(tc, restore_goes_on_with_segments_of_another_size, 0, 2);
    return recover_main(suite);
}
