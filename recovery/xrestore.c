/* SPDX-License-Identifier: MIT */
/*
 * xrestore.c -- the tool xrestore(1): an environment as it was at a moment, from an archive that xarchive(1) has
 * made.
 *
 * Arguments and words; the work is archive_restore()'s.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "archive_manifest.h"
#include "archive_restore.h"
#include "archive_store.h"
#include "base/err.h"
#include "progress.h"
#include "tool.h"

const char *const tool_name = "xrestore";

struct arguments {
    bool json, quiet, list;
    bool has_until;
    struct archive_moment until;
    const char *src, *dir;
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"list", no_argument, NULL, 'L'},
    {"quiet", no_argument, NULL, 'q'},
    {"until", required_argument, NULL, 'u'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xrestore [options] SRC DIR\n"
        "       xrestore --list [--json] SRC\n"
        "Make the libxac environment in directory DIR, which is made or empty, as it was\n"
        "at a moment, from the archive SRC: a directory, or REMOTE:PATH of rclone(1).\n"
        "\n"
        "  -u, --until WHEN  an LSN, a time (@SECONDS or \"YYYY-MM-DD HH:MM:SS\"), or\n"
        "                    \"end\" (which is the default)\n"
        "  -L, --list        say which moments there are\n"
        "  -j, --json        print one JSON object\n"
        "  -q, --quiet       say nothing unless something is wrong\n"
        "  -h, --help        this text\n"
        "  -V, --version     version of libxac\n"
        "\n"
        "exit: 0 done          2 wrong usage\n"
        "      1 error         3 damaged archive\n",
        to);
}

/* names_read -- what stands behind the options. */
static bool
names_read(struct arguments *a, int n, char **name)
{
    if (n != (a->list ? 1 : 2) || name[0][0] == '\0' || (a->list && a->has_until))
        return false;
    a->src = name[0];
    a->dir = a->list ? NULL : name[1];
    return a->list || name[1][0] != '\0';
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjLqu:V", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
            break;
        case 'L':
            a->list = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'u':
            a->has_until = true;
            if (!tool_until(optarg, &a->until.lsn, &a->until.time_ns))
                return EXIT_USAGE;
            break;
        case 'V':
            return tool_version();
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (names_read(a, argc - optind, argv + optind))
        return -1;
    usage(stderr);
    return EXIT_USAGE;
}

/* ---- Listing ---------------------------------------------------------------------- */

/* A backup, and the log behind it. */
struct span {
    const struct archive_object *backup;
    uint64_t end_lsn, time_ns; /* of the last moment                                  */
    bool is_cut;
};

static void
say_span(struct json *j, bool is_json, const struct span *s)
{
    char from[40], to[40];

    if (is_json) {
        json_object(j, NULL);
        json_number(j, "from_lsn_bytes", s->backup->end);
        json_number(j, "from_time_ns", s->backup->time_ns);
        json_number(j, "to_lsn_bytes", s->end_lsn);
        json_number(j, "to_time_ns", s->time_ns);
        json_bool(j, "log_is_missing_behind", s->is_cut);
        json_end(j);
        return;
    }
    printf("backup of LSN %" PRIu64 ", %s; log to LSN %" PRIu64 ", last commit %s%s\n",
           s->backup->end, tool_time_words(s->backup->time_ns, from), s->end_lsn,
           tool_time_words(s->time_ns, to),
           s->is_cut ? "; log behind it is missing" : "");
}

/* list -- each backup, and how far the log leads from it. */
static int
list(const struct arguments *a, const struct archive *ar)
{
    struct json j = {.is_pretty = true};
    struct archive_plan p;
    int rc = 0;

    if (a->json) {
        json_object(&j, NULL);
        json_string(&j, "archive", a->src);
        json_number(&j, "manifest", ar->number);
        json_array(&j, "backups");
    }
    for (size_t i = 0; rc == 0 && i < ar->n; i++) {
        struct span s = {.backup = &ar->object[i]};

        if (s.backup->kind != ARCHIVE_BACKUP)
            continue;
        rc = archive_plan_from(&p, ar, s.backup);
        s.end_lsn = p.end_lsn;
        s.time_ns = p.time_ns;
        s.is_cut = p.is_cut;
        if (rc == 0)
            say_span(&j, a->json, &s);
        archive_plan_free(&p);
    }
    if (a->json) {
        json_end(&j);
        json_end(&j);
    }
    return rc;
}

/* ---- Restoring -------------------------------------------------------------------- */

static void
say_json(const struct arguments *a, const struct archive_plan *p,
         const struct xac_recover_report *r, int rc)
{
    struct json j = {.is_pretty = true};

    json_object(&j, NULL);
    json_string(&j, "archive", a->src);
    json_string(&j, "directory", a->dir);
    json_code(&j, "code", rc);
    json_string(&j, "error", rc == 0 ? "" : xac_err_text());
    json_number(&j, "backup_lsn_bytes", p->backup != NULL ? p->backup->end : 0);
    json_number(&j, "bytes", p->bytes);
    json_number(&j, "end_lsn_bytes", r->end_lsn);
    json_number(&j, "last_commit_time_ns", r->last_time_ns);
    json_number(&j, "transactions_redone", r->transactions_redone);
    json_bool(&j, "until_reached", r->until_reached);
    json_end(&j);
}

static void
say_restored(const struct arguments *a, const struct archive_plan *p,
             const struct xac_recover_report *r)
{
    char backup[40], last[40];

    printf("%s: restored up to LSN %" PRIu64 ": backup of %s, %" PRIu64
           " transaction%s redone, the last commit is of %s\n",
           a->dir, r->end_lsn, tool_time_words(p->backup->time_ns, backup),
           r->transactions_redone, plural(r->transactions_redone),
           r->last_time_ns != 0 ? tool_time_words(r->last_time_ns, last)
                                : "before the backup");
}

/* restore -- to DIR. */
static int
restore(const struct arguments *a, struct archive_store *s, const struct archive *ar)
{
    struct progress shown = progress_start("archive read");
    struct archive_restore_options o = {.dir = a->dir, .until = a->until};
    struct xac_recover_report rep = {.was_clean = false};
    struct archive_plan p;
    int rc = archive_plan_make(&p, ar, a->src, &a->until);

    if (!a->quiet && progress_is_wanted()) {
        o.progress = progress_show;
        o.progress_arg = &shown;
    }
    if (rc == 0)
        rc = archive_restore(s, ar, &p, &o, &rep);
    progress_end(&shown);
    if (a->json)
        say_json(a, &p, &rep, rc);
    else if (rc == 0 && !a->quiet)
        say_restored(a, &p, &rep);
    if (rc == 0 && (a->until.lsn != 0 || a->until.time_ns != 0) && !rep.until_reached)
        fprintf(stderr,
                "xrestore: %s: the archive ends before the moment that was given: all of "
                "it has been redone\n",
                a->src);
    if (rc == 0 && p.is_cut)
        fprintf(stderr,
                "xrestore: %s: log behind LSN %" PRIu64
                " is missing: what was committed there has not been restored\n",
                a->src, p.end_lsn);
    archive_plan_free(&p);
    return rc;
}

/* work -- what the arguments say. */
static int
work(const struct arguments *a)
{
    struct archive ar = {.n = 0};
    struct archive_store s;
    uint64_t newest = 0;
    int rc = archive_store_open(&s, a->src);

    if (rc == 0)
        rc = archive_newest(&s, &newest);
    if (rc == 0 && newest == 0)
        rc = xac_err_whole(ENOENT, "%s: nothing has been archived there yet", a->src);
    if (rc == 0)
        rc = archive_read(&ar, &s, newest);
    if (rc == 0)
        rc = a->list ? list(a, &ar) : restore(a, &s, &ar);
    archive_free(&ar);
    archive_store_close(&s);
    return rc;
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    int rc = arguments_read(&a, argc, argv);

    if (rc >= 0)
        return rc;
    rc = work(&a);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.list ? a.src : a.dir, rc));
}
