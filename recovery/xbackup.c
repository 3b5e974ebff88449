/* SPDX-License-Identifier: MIT */
/*
 * xbackup.c -- the tool xbackup(1): a consistent copy of an environment in use.
 *
 * Becomes a participant for the time; the work is xac_backup_run()'s.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>

#include "api/api.h"
#include "backup/backup.h"
#include "base/err.h"
#include "base/sys.h"
#include "progress.h"
#include "recovery/recover.h"
#include "tool.h"

const char *const tool_name = "xbackup";

struct arguments {
    bool json;
    bool quiet;
    bool recover;
    bool no_check;
    const char *dir;
    const char *to;
    const char *log_dir; /* where the log lies, NULL: as noted                        */
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},          {"json", no_argument, NULL, 'j'},
    {"log-dir", required_argument, NULL, 'l'}, {"no-check", no_argument, NULL, 'n'},
    {"quiet", no_argument, NULL, 'q'},         {"recover", no_argument, NULL, 'r'},
    {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xbackup [options] DIR TO\n"
        "Copy the libxac environment in directory DIR to directory TO, which is made or\n"
        "empty, while others use it.\n"
        "\n"
        "  -r, --recover   recover the copy: it cannot be rolled forward then\n"
        "  -n, --no-check  do not read the copy's log once more to verify it\n"
        "  -l, --log-dir PATH  the log has been moved there; remembered\n"
        "  -j, --json      print one JSON object\n"
        "  -q, --quiet     say nothing unless something is wrong\n"
        "  -h, --help      this text\n"
        "  -V, --version   version of libxac\n"
        "\n"
        "exit: 0 done          3 damaged log\n"
        "      1 error         5 no environment\n"
        "      2 wrong usage\n",
        to);
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjl:nqrV", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
            break;
        case 'l':
            a->log_dir = optarg;
            break;
        case 'n':
            a->no_check = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'r':
            a->recover = true;
            break;
        case 'V':
            return tool_version();
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (optind + 2 != argc || argv[optind][0] == '\0' || argv[optind + 1][0] == '\0') {
        usage(stderr);
        return EXIT_USAGE;
    }
    a->dir = argv[optind];
    a->to = argv[optind + 1];
    return -1;
}

/* copy -- as a participant. */
static int
copy(const struct arguments *a, struct xac_backup_report *rep)
{
    struct xac_options options;
    struct xac_ctx *ctx;
    struct xac_env *env;
    int rc, left;

    xac_options_init(&options, sizeof options);
    options.log_directory = a->log_dir;
    env = xac_open(a->dir, &options);
    if (env == NULL)
        return errno;
    rc = xac_api_start(env, "xBackup", &ctx);
    if (rc == 0) {
        struct progress shown = progress_start("files and log copied");
        struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
        bool is_shown = !a->quiet && progress_is_wanted();

        rc = xac_backup_run(env, a->to, is_shown ? &progress : NULL, rep);
        progress_end(&shown);
        xac_api_done(ctx);
    }
    left = xac_close(env);
    return rc != 0 ? rc : left;
}

/* finish -- verify the copy, or recover it. */
static int
finish(const struct arguments *a, struct xac_recover_report *rep)
{
    struct progress shown = progress_start("the copy's log read");
    struct xac_recover_options options = {.dry_run = !a->recover};
    int rc, fd;

    if (a->no_check && !a->recover)
        return 0;
    rc = tool_open_dir(a->to, &fd, NULL);
    if (rc != 0)
        return rc;
    if (!a->quiet && progress_is_wanted()) {
        options.progress = progress_show;
        options.progress_arg = &shown;
    }
    rc = xac_recover_dir(fd, &options, rep, NULL);
    progress_end(&shown);
    (void)xac_sys.close(fd);
    return rc;
}

static void
say(const struct arguments *a, const struct xac_backup_report *b,
    const struct xac_recover_report *r)
{
    char words[40];

    printf("%s: %" PRIu64 " file%s with %" PRIu64 " bytes, %" PRIu64 " bytes of log\n",
           a->to, b->files, plural(b->files), b->file_bytes, b->log_bytes);
    printf("whole from LSN %" PRIu64 " on, %s\n", b->end_lsn,
           tool_time_words(b->time_ns, words));
    if (a->recover)
        printf("recovered: %" PRIu64 " transaction%s redone\n", r->transactions_redone,
               plural(r->transactions_redone));
}

static void
say_json(const struct arguments *a, const struct xac_backup_report *b,
         const struct xac_recover_report *r, int rc)
{
    struct json j = {.is_pretty = true};

    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_string(&j, "to", a->to);
    json_code(&j, "code", rc);
    json_string(&j, "error", rc == 0 ? "" : xac_err_text());
    json_number(&j, "files", b->files);
    json_number(&j, "file_bytes", b->file_bytes);
    json_number(&j, "log_bytes", b->log_bytes);
    json_number(&j, "redo_lsn_bytes", b->redo_lsn);
    json_number(&j, "end_lsn_bytes", b->end_lsn);
    json_number(&j, "time_ns", b->time_ns);
    json_bool(&j, "recovered", a->recover && rc == 0);
    json_number(&j, "transactions_in_log", r->transactions);
    json_end(&j);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    struct xac_backup_report backup = {.files = 0};
    struct xac_recover_report recovery = {.was_clean = false};
    int rc = arguments_read(&a, argc, argv);
    int fd;

    if (rc >= 0)
        return rc;
    /* Before a new environment is made where there is none. */
    rc = tool_open_dir(a.dir, &fd, NULL);
    if (rc == 0) {
        (void)xac_sys.close(fd);
        rc = copy(&a, &backup);
    }
    if (rc == 0)
        rc = finish(&a, &recovery);
    if (a.json)
        say_json(&a, &backup, &recovery, rc);
    else if (rc == 0 && !a.quiet)
        say(&a, &backup, &recovery);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.dir, rc));
}
