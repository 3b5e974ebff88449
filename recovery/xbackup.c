/* SPDX-License-Identifier: MIT */
/*
 * xbackup.c -- the tool xbackup(1): a consistent copy of an environment in use; increments;
 * restoring and verifying them.
 *
 * Becomes a participant for the time of a backup; the work is xac_backup_run()'s and
 * xac_restore_run()'s.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>

#include "backup/backup.h"
#include "backup/restore.h"
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
    bool restore;
    bool verify;
    const char *since; /* the backup that an increment is made of; NULL: a full one   */
    const char *const *chain; /* backups to be restored or verified                   */
    size_t n_chain;
    const char *dir; /* the environment; else the first backup                        */
    const char *to;
    const char *log_dir; /* where the log lies, NULL: as noted                        */
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"log-dir", required_argument, NULL, 'l'},
    {"no-check", no_argument, NULL, 'n'},
    {"quiet", no_argument, NULL, 'q'},
    {"recover", no_argument, NULL, 'r'},
    {"restore", no_argument, NULL, 'R'},
    {"since", required_argument, NULL, 's'},
    {"verify", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xbackup [options] DIR TO\n"
        "       xbackup [options] --since BACKUP DIR TO\n"
        "       xbackup [options] --restore BACKUP [INCREMENT...] TO\n"
        "       xbackup [options] --verify BACKUP [INCREMENT...]\n"
        "Copy the libxac environment in directory DIR to directory TO, which is made or\n"
        "empty, while others use it.\n"
        "\n"
        "  -s, --since BACKUP  copy only what has changed since that backup, which may\n"
        "                      be such an increment itself\n"
        "      --restore   make a full backup of one and its increments, in their order\n"
        "      --verify    read these backups, and compare all pages with their checksums\n"
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

/* names_read -- what stands behind the options; ret false if it does not fit them. */
static bool
names_read(struct arguments *a, int n, char **name)
{
    bool is_chain = a->restore || a->verify;

    for (int i = 0; i < n; i++) {
        if (name[i][0] == '\0')
            return false;
    }
    if (n == 0 || (a->restore && a->verify) || (is_chain && (a->since || a->log_dir))
        || ((a->verify || a->since) && a->recover))
        return false;
    a->dir = name[0];
    a->chain = (const char *const *)name;
    a->n_chain = (size_t)n;
    if (a->verify)
        return true;
    a->n_chain--;
    a->to = name[n - 1];
    return is_chain ? n >= 2 : n == 2;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjl:nqrs:V", long_options, NULL)) != -1) {
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
        case 'R':
            a->restore = true;
            break;
        case 's':
            a->since = optarg;
            break;
        case 'v':
            a->verify = true;
            break;
        case 'V':
            return tool_version();
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (!names_read(a, argc - optind, argv + optind)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    return -1;
}

/* What copy() is given. */
struct copy {
    const struct arguments *a;
    struct xac_backup_report *rep;
};

/* copy -- as a participant. */
static int
copy(void *arg, struct xac_env *env)
{
    const struct copy *c = (const struct copy *)arg;
    const struct arguments *a = c->a;
    struct progress shown =
        progress_start(a->since ? "files looked through" : "files and log copied");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
    bool is_shown = !a->quiet && progress_is_wanted();
    int rc = xac_backup_run(env, a->to, a->since, is_shown ? &progress : NULL, c->rep);

    progress_end(&shown);
    return rc;
}

/* finish -- verify the copy, or recover it. */
static int
finish(const struct arguments *a, struct xac_recover_report *rep)
{
    struct progress shown = progress_start("the copy's log read");
    struct xac_recover_options options = {.dry_run = !a->recover};
    int rc, fd;

    if (a->since || (a->no_check && !a->recover))
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

/* ---- Increments ------------------------------------------------------------------- */

/* Words and names for enum xac_backup_way. */
static const struct {
    const char *words, *key;
} ways[XAC_WAYS] = {
    {"copied whole", "files_whole"},
    {"by the log", "files_by_log"},
    {"by checksums that the environment keeps", "files_by_checksums"},
    {"by comparing them with the checksums of the backup", "files_by_comparing"},
};

/* say_ways -- how the changed pages were found, and why not in the log. */
static void
say_ways(const struct xac_backup_report *b)
{
    const char *between = "changed pages found ";

    for (int w = XAC_WAY_LOG; w < XAC_WAYS; w++) {
        if (b->files_by[w] == 0)
            continue;
        printf("%s%s in %" PRIu64 " file%s", between, ways[w].words, b->files_by[w],
               plural(b->files_by[w]));
        between = ", ";
    }
    printf("%s%" PRIu64 " bytes read\n", between, b->read_bytes);
    if (b->why[0] != '\0')
        printf("not in the log, %s\n", b->why);
}

/* tell_damage -- for xac_restore_verify. */
static void
tell_damage(void *arg, const char *what)
{
    (void)arg;
    fprintf(stderr, "%s: %s\n", tool_name, what);
}

/* go_through -- restore or verify a chain. */
static int
go_through(const struct arguments *a, struct xac_restore_report *rep)
{
    struct progress shown =
        progress_start(a->verify ? "backups compared" : "files restored");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
    const struct xac_backup_progress *p =
        !a->quiet && progress_is_wanted() ? &progress : NULL;
    int rc = a->verify
                 ? xac_restore_verify(a->chain, a->n_chain, tell_damage, NULL, p, rep)
                 : xac_restore_run(a->chain, a->n_chain, a->to, p, rep);

    progress_end(&shown);
    return rc;
}

/* ---- What has been done ----------------------------------------------------------- */

static void
say_restored(const struct arguments *a, const struct xac_restore_report *b)
{
    char words[40];

    if (a->verify)
        printf("%zu backup%s: %" PRIu64 " bytes of pages and %" PRIu64
               " bytes of log are right\n",
               a->n_chain, plural(a->n_chain), b->file_bytes, b->log_bytes);
    else
        printf("%s: %" PRIu64 " file%s with %" PRIu64 " bytes, %" PRIu64
               " bytes of log\n",
               a->to, b->files, plural(b->files), b->file_bytes, b->log_bytes);
    printf("up to LSN %" PRIu64 ", %s\n", b->end_lsn, tool_time_words(b->time_ns, words));
}

static void
say_backup(const struct arguments *a, const struct xac_backup_report *b)
{
    char words[40];

    if (b->is_increment)
        printf("%s: increment %" PRIu32 ", %" PRIu64 " bytes of changed pages of %" PRIu64
               " file%s, %" PRIu64 " bytes of log\n",
               a->to, b->link, b->file_bytes, b->files, plural(b->files), b->log_bytes);
    else
        printf("%s: %" PRIu64 " file%s with %" PRIu64 " bytes, %" PRIu64
               " bytes of log\n",
               a->to, b->files, plural(b->files), b->file_bytes, b->log_bytes);
    if (b->is_increment)
        say_ways(b);
    printf("%s LSN %" PRIu64 "%s, %s\n", b->is_increment ? "up to" : "whole from",
           b->end_lsn, b->is_increment ? "" : " on", tool_time_words(b->time_ns, words));
}

static void
say_recovered(const struct arguments *a, const struct xac_recover_report *r)
{
    if (a->recover)
        printf("recovered: %" PRIu64 " transaction%s redone\n", r->transactions_redone,
               plural(r->transactions_redone));
}

/* What all kinds of runs report. */
struct results {
    struct xac_backup_report backup;
    struct xac_restore_report restore;
    struct xac_recover_report recovery;
    int rc;
};

/* say_json_backup -- the members of a backup. */
static void
say_json_backup(struct json *j, const struct xac_backup_report *b)
{
    json_number(j, "files", b->files);
    json_number(j, "file_bytes", b->file_bytes);
    json_number(j, "log_bytes", b->log_bytes);
    json_number(j, "redo_lsn_bytes", b->redo_lsn);
    json_number(j, "end_lsn_bytes", b->end_lsn);
    json_number(j, "time_ns", b->time_ns);
    json_number(j, "increment", b->link);
    json_number(j, "read_bytes", b->read_bytes);
    for (int w = XAC_WAY_LOG; w < XAC_WAYS; w++)
        json_number(j, ways[w].key, b->files_by[w]);
    json_string(j, "not_by_log", b->why);
}

static void
say_json(const struct arguments *a, const struct results *r)
{
    struct json j = {.is_pretty = true};
    const struct xac_restore_report *b = &r->restore;

    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_string(&j, "to", a->to != NULL ? a->to : "");
    json_code(&j, "code", r->rc);
    json_string(&j, "error", r->rc == 0 ? "" : xac_err_text());
    if (a->restore || a->verify) {
        json_number(&j, "files", b->files);
        json_number(&j, "file_bytes", b->file_bytes);
        json_number(&j, "log_bytes", b->log_bytes);
        json_number(&j, "damages", b->damages);
        json_number(&j, "end_lsn_bytes", b->end_lsn);
        json_number(&j, "time_ns", b->time_ns);
    } else {
        say_json_backup(&j, &r->backup);
    }
    json_bool(&j, "recovered", a->recover && r->rc == 0);
    json_number(&j, "transactions_in_log", r->recovery.transactions);
    json_end(&j);
}

/* work -- what the arguments say. */
static void
work(const struct arguments *a, struct results *r)
{
    struct copy c = {.a = a, .rep = &r->backup};
    int fd;

    if (a->restore || a->verify) {
        r->rc = go_through(a, &r->restore);
    } else {
        /* Before a new environment is made where there is none. */
        r->rc = tool_open_dir(a->dir, &fd, NULL);
        if (r->rc == 0) {
            (void)xac_sys.close(fd);
            r->rc = tool_take_part(a->dir, a->log_dir, "xBackup", copy, &c);
        }
    }
    if (r->rc == 0 && !a->verify)
        r->rc = finish(a, &r->recovery);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    struct results r = {.rc = 0};
    int rc = arguments_read(&a, argc, argv);

    if (rc >= 0)
        return rc;
    work(&a, &r);
    if (a.json) {
        say_json(&a, &r);
    } else if (r.rc == 0 && !a.quiet) {
        if (a.restore || a.verify)
            say_restored(&a, &r.restore);
        else
            say_backup(&a, &r.backup);
        say_recovered(&a, &r.recovery);
    }
    return tool_flush(r.rc == 0 ? EXIT_DONE : tool_fail(a.dir, r.rc));
}
