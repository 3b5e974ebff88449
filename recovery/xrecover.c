/* SPDX-License-Identifier: MIT */
/*
 * xrecover.c -- the tool xrecover(1): recover an environment and say what was done.
 *
 * Arguments, gate and words; the work is xac_recover_dir()'s.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "env/region_clear.h"
#include "log/log_format.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_check.h"
#include "recovery/pagesums_check.h"
#include "recovery/recover.h"
#include "shared/env_state.h"
#include "shared/region.h"
#include "shm.h"
#include "progress.h"
#include "tool.h"

const char *const tool_name = "xrecover";

/* Pages that the JSON report names; all are counted. */
#define PAGES_NAMED 1000

/* A page that is not what was written to it. */
struct bad_page {
    struct xac_pagesums_damage damage;
    char *file; /* owned */
};

/* A file that would be written. */
struct would_write {
    char *path; /* owned                                                              */
    uint64_t pages;
    bool is_made;
};

struct arguments {
    struct xac_recover_options recover;
    bool check; /* with dry_run                                                       */
    struct xac_check_report checked;
    struct xac_pagesums_check pages;
    struct bad_page *bad; /* PAGES_NAMED at most                                      */
    size_t n_bad;
    struct would_write *would; /* of a dry run                                        */
    size_t n_would;
    bool json;
    bool quiet;
    bool shm, remove; /* list regions; remove them                                    */
    bool verbose;
    const char *dir;
};

static const struct option long_options[] = {
    {"accept-replaced", no_argument, NULL, 'a'},
    {"check", no_argument, NULL, 'k'},
    {"cut", no_argument, NULL, 'c'},
    {"dry-run", no_argument, NULL, 'n'},
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"log-dir", required_argument, NULL, 'l'},
    {"memory", required_argument, NULL, 'm'},
    {"outside", no_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"remove", no_argument, NULL, 'r'},
    {"shm", no_argument, NULL, 's'},
    {"until", required_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xrecover [options] DIR\n"
        "       xrecover --shm [--remove] [--json]\n"
        "Recover the libxac environment in directory DIR.\n"
        "\n"
        "  -n, --dry-run          look and report, write nothing\n"
        "  -k, --check            dry run, and verify all log files there are, and pages\n"
        "                         against their checksums if these are kept\n"
        "  -j, --json             print one JSON object\n"
        "  -c, --cut              cut a damaged log at the damage; what was committed\n"
        "                         behind it is lost\n"
        "  -a, --accept-replaced  redo into files that are missing or were replaced\n"
        "  -o, --outside          DIR is a copy of an environment: mapped files that lie\n"
        "                         outside of it belong to it now\n"
        "  -u, --until WHEN       restore a backup to a moment: an LSN, a time, or \"end\";\n"
        "                         goes on through log files put beside it\n"
        "  -l, --log-dir PATH     the log has been moved there; remembered\n"
        "  -m, --memory MIB       for pages while redoing (128)\n"
        "  -q, --quiet            say nothing unless something is wrong\n"
        "  -v, --verbose          say more\n"
        "  -s, --shm              list the shared memory of all environments\n"
        "  -r, --remove           with --shm: remove what is in no use\n"
        "  -h, --help             this text\n"
        "  -V, --version          version of libxac\n"
        "\n"
        "exit: 0 done, or nothing to do   3 damaged log, refused\n"
        "      1 error                    4 in use by live processes\n"
        "      2 wrong usage              5 no environment\n",
        to);
}

/* memory_read -- MIB of --memory. */
static bool
memory_read(struct xac_recover_options *o, const char *text)
{
    if (!tool_number(text, &o->memory_bytes) || o->memory_bytes == 0
        || o->memory_bytes > 1 << 20)
        return false;
    o->memory_bytes <<= 20;
    return true;
}

/* directory_read -- what follows the options; ret as arguments_read. */
static int
directory_read(struct arguments *a, int argc, char **argv)
{
    bool is_one = optind + 1 == argc && argv[optind][0] != '\0';

    if (a->shm ? optind != argc : a->remove || !is_one) {
        usage(stderr);
        return EXIT_USAGE;
    }
    a->dir = argv[optind];
    return -1;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "acnhjkl:m:oqrsu:vV", long_options, NULL))
           != -1) {
        switch (c) {
        case 'a':
            a->recover.accept_replaced = true;
            break;
        case 'c':
            a->recover.cut = true;
            break;
        case 'n':
            a->recover.dry_run = true;
            break;
        case 'j':
            a->json = true;
            break;
        case 'k':
            a->check = a->recover.dry_run = true;
            a->recover.pages = &a->pages;
            break;
        case 'l':
            a->recover.log_dir = optarg;
            break;
        case 'm':
            if (!memory_read(&a->recover, optarg)) {
                usage(stderr);
                return EXIT_USAGE;
            }
            break;
        case 'o':
            a->recover.outside = true;
            break;
        case 'u':
            a->recover.forward = true;
            if (!tool_until(optarg, &a->recover.until_lsn, &a->recover.until_ns))
                return EXIT_USAGE;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'r':
            a->remove = true;
            break;
        case 's':
            a->shm = true;
            break;
        case 'v':
            a->verbose = true;
            break;
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'V':
            return tool_version();
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    return directory_read(a, argc, argv);
}

/* ---- The gate --------------------------------------------------------------------- */

/*
 * gate_open -- a descriptor of the lock file, behind the gate.
 *
 * A dry run makes no file, and on a read-only file system goes without the gate.
 * ret  descriptor, or -1 if there is no lock file to take; *rcp gets 0 or the error.
 */
static int
gate_open(int dirfd, const struct arguments *a, int *rcp)
{
    int fd = -1;

    *rcp = 0;
    if (!a->recover.dry_run) {
        *rcp = xac_gate_open(dirfd, a->dir, &fd);
        return fd;
    }
    fd = xac_sys.openat(dirfd, XAC_LOCK_NAME, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0 && (errno == EACCES || errno == EROFS))
        return xac_sys.openat(dirfd, XAC_LOCK_NAME, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        return -1;
    if (fd < 0)
        *rcp = xac_err(errno, "%s: open", XAC_LOCK_NAME);
    else if ((*rcp = xac_gate_enter(fd)) != 0)
        (void)xac_err(*rcp, "%s: lock", XAC_LOCK_NAME);
    return fd;
}

/* note_file -- of a dry run; what cannot be noted is not listed. */
static void
note_file(void *arg, const char *path, uint64_t pages, bool is_made)
{
    struct arguments *a = (struct arguments *)arg;
    struct would_write *more =
        (struct would_write *)realloc(a->would, (a->n_would + 1) * sizeof a->would[0]);
    char *copy = strdup(path);

    if (more != NULL)
        a->would = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        fprintf(stderr, "xrecover: %s: out of memory\n", path);
        return;
    }
    a->would[a->n_would++] = (struct would_write){copy, pages, is_made};
}

static void
say_damage(void *arg, const struct xac_place *place)
{
    const struct arguments *a = (const struct arguments *)arg;

    fprintf(stderr, "xrecover: %s: %s: offset %" PRIu64 ": %s\n", a->dir, place->file,
            place->offset, place->why);
}

/* bad_page_note -- for the JSON report; without memory it is only counted. */
static void
bad_page_note(struct arguments *a, const struct xac_pagesums_damage *d)
{
    struct bad_page *more;
    char *file;

    if (a->n_bad == PAGES_NAMED)
        return;
    file = strdup(d->file);
    more = (struct bad_page *)realloc(a->bad, (a->n_bad + 1) * sizeof more[0]);
    if (more != NULL)
        a->bad = more;
    if (more == NULL || file == NULL)
        free(file);
    else
        a->bad[a->n_bad++] = (struct bad_page){.damage = *d, .file = file};
}

static const char *
damage_words(enum xac_pagesums_damage_kind kind)
{
    switch (kind) {
    case XAC_PAGESUMS_PAGE:
        return "checksum";
    case XAC_PAGESUMS_UNREAD:
        return "cannot be read";
    case XAC_PAGESUMS_HEADER:
        return "header is damaged";
    }
    return "";
}

/* say_page -- struct xac_pagesums_check's. */
static void
say_page(void *arg, const struct xac_pagesums_damage *d)
{
    struct arguments *a = (struct arguments *)arg;
    const char *words = damage_words(d->kind);

    bad_page_note(a, d);
    fprintf(stderr, "xrecover: %s: %s: page %" PRIu64 ", offset %" PRIu64 ": %s", a->dir,
            d->file, d->page, d->offset, words);
    if (d->kind == XAC_PAGESUMS_PAGE)
        fprintf(stderr, ": expected %016" PRIx64 ", found %016" PRIx64, d->expected,
                d->found);
    else if (d->kind == XAC_PAGESUMS_UNREAD)
        fprintf(stderr, ": %s", strerror((int)d->found));
    fputc('\n', stderr);
}

/* check_old -- the log that recovery does not read. */
static int
check_old(int dirfd, struct arguments *a)
{
    struct xac_master_slot master;
    char *path = NULL;
    int logfd = -1;
    int rc = xac_master_read(dirfd, &master);

    if (rc == 0)
        rc = xac_logdir_open(dirfd, a->recover.log_dir, master.identity, &logfd, &path);
    if (rc == 0)
        rc = xac_check_log(logfd, &master, say_damage, a, &a->checked);
    if (logfd >= 0)
        (void)xac_sys.close(logfd);
    free(path);
    if (rc == 0 && a->checked.damages != 0)
        rc = xac_err(XAC_EDAMAGED, "%" PRIu64 " place%s that only a restore would read",
                     a->checked.damages, plural(a->checked.damages));
    if (rc == 0 && a->pages.damages != 0)
        rc = xac_err(XAC_EDAMAGED,
                     "%" PRIu64 " place%s in mapped files or their checksums",
                     a->pages.damages, plural(a->pages.damages));
    return rc;
}

/* recover_gated -- recover if nobody is attached. */
static int
recover_gated(int dirfd, struct arguments *a, struct xac_recover_report *rep,
              struct xac_master_slot *master)
{
    struct stat st;
    int fd;
    int rc;

    /* Before a lock file is made in some directory that is no environment. */
    if (fstatat(dirfd, XAC_MASTER_NAME, &st, 0) != 0 && errno == ENOENT)
        return xac_master_missing(dirfd, false);
    fd = gate_open(dirfd, a, &rc);
    if (rc == 0)
        rc = xac_region_attached(dirfd, a->dir, fd);
    if (rc == XAC_ELIVE)
        (void)xac_err(rc, "%s", XAC_LOCK_NAME);
    if (rc == 0)
        rc = xac_recover_dir(dirfd, &a->recover, rep, master);
    /* Also says so if pages are damaged. */
    if (rc == 0 && a->check)
        rc = check_old(dirfd, a);
    if (rc == 0 && fd >= 0 && !a->recover.dry_run)
        xac_region_clear(dirfd, fd);
    if (fd >= 0)
        (void)xac_sys.close(fd); /* leaves the gate */
    return rc;
}

static int
recover_path(struct arguments *a, struct xac_recover_report *rep,
             struct xac_master_slot *master)
{
    int rc;
    int fd = xac_sys.openat(AT_FDCWD, a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return xac_err(errno, "open");
    rc = recover_gated(fd, a, rep, master);
    (void)xac_sys.close(fd);
    return rc;
}

/* ---- Words ------------------------------------------------------------------------ */

static void
say_found(const struct arguments *a, const struct xac_recover_report *r)
{
    if (r->was_copy)
        printf("%s: is a copy of an environment%s\n", a->dir,
               a->recover.dry_run ? "" : ", and from now on one of its own");
    if (r->was_clean)
        printf("%s: was shut down cleanly, nothing to redo\n", a->dir);
    else
        printf("%s: found %" PRIu64 " block%s with %" PRIu64 " committed transaction%s, "
               "%" PRIu64 " bytes of log\n",
               a->dir, r->blocks, plural(r->blocks), r->transactions,
               plural(r->transactions), r->end_lsn - r->redo_lsn);
    if (a->verbose)
        printf("log: generation %" PRIu32 ", read from LSN %" PRIu64 " to %" PRIu64
               ", known synced up to %" PRIu64 ", data files %" PRIu64 "\n",
               r->generation, r->redo_lsn, r->end_lsn, r->synced_lsn, r->datafiles);
    if (a->verbose || r->discarded_bytes != 0)
        printf("log ends at LSN %" PRIu64 ": %s\n", r->end_lsn, r->end_reason);
}

static void
say_done(const struct arguments *a, const struct xac_recover_report *r)
{
    const char *would = a->recover.dry_run ? "would redo" : "redone";

    if (!r->was_clean) {
        printf("%s: %" PRIu64 " transaction%s, %" PRIu64 " page change%s in %" PRIu64
               " file%s",
               would, r->transactions_redone, plural(r->transactions_redone),
               r->pages_redone, plural(r->pages_redone), r->files, plural(r->files));
        if (r->last_commit != 0)
            printf(", last commit %" PRIu64, r->last_commit);
        putchar('\n');
    }
    for (size_t i = 0; i < a->n_would; i++)
        printf("would %s: %s, %" PRIu64 " page%s\n",
               a->would[i].is_made ? "make" : "write", a->would[i].path,
               a->would[i].pages, plural(a->would[i].pages));
    if (r->discarded_bytes != 0)
        printf("%s: %" PRIu64 " bytes behind the end of the log, %" PRIu64
               " whole block%s in them (%s)\n",
               a->recover.dry_run ? "would discard" : "discarded", r->discarded_bytes,
               r->discarded_blocks, plural(r->discarded_blocks),
               r->until_reached ? "they lie behind the moment that was given"
               : r->damaged
                   ? "the log was damaged before them"
                   : "their sync had not been completed, so nobody was told that "
                     "they were committed");
    if (r->was_backup && a->recover.forward) {
        char words[40];

        printf("restored: up to LSN %" PRIu64 ", the last commit is of %s\n", r->end_lsn,
               r->last_time_ns != 0 ? tool_time_words(r->last_time_ns, words)
                                    : "before the backup");
    }
    if (r->damaged)
        printf("damage: %s, offset %" PRIu64 ": %s; the log %s there\n", r->damage_file,
               r->damage_offset, r->end_reason,
               a->recover.dry_run ? "would be cut" : "was cut");
    if (a->check)
        printf("checked: %" PRIu64 " segment%s; before what recovery reads %" PRIu64
               " block%s of %" PRIu64 " bytes, %" PRIu64 " data file%s: sound\n",
               a->checked.segments, plural(a->checked.segments), a->checked.blocks,
               plural(a->checked.blocks), a->checked.bytes, a->checked.datafiles,
               plural(a->checked.datafiles));
    if (a->pages.files + a->pages.skipped != 0)
        printf("checked: %" PRIu64 " page%s of %" PRIu64 " mapped file%s against their"
               " checksums: sound; %" PRIu64 " checksum%s lost, %" PRIu64
               " file%s gone or replaced\n",
               a->pages.pages, plural(a->pages.pages), a->pages.files,
               plural(a->pages.files), a->pages.lost, plural(a->pages.lost),
               a->pages.skipped, plural(a->pages.skipped));
    if (r->strays != 0)
        printf("ignored: %" PRIu64 " file%s named like log segments, but none; %s\n",
               r->strays, plural(r->strays), r->stray_file);
    if (r->orphans_removed != 0)
        printf("removed: %" PRIu64 " data file%s of transactions that never committed\n",
               r->orphans_removed, plural(r->orphans_removed));
}

static void
say_failed(const struct arguments *a, const struct xac_recover_report *r, int rc)
{
    (void)tool_fail(a->dir, rc);
    if (rc == XAC_EDAMAGED && r->damaged && strcmp(r->damage_file, XAC_MASTER_NAME) != 0)
        fprintf(stderr,
                "xrecover: nothing was written.  %" PRIu64 " transactions lie before the "
                "damage; %" PRIu64 " whole blocks behind it.\n"
                "xrecover: copy the directory, then --cut keeps what lies before.\n",
                r->transactions, r->discarded_blocks);
    if (rc == XAC_ECOPY)
        fputs(
            "xrecover: nothing was written.  If the original is gone, --outside has the "
            "copy take\nxrecover: over the mapped files that lie outside of it.\n",
            stderr);
    if (rc == XAC_EINUSE)
        fputs("xrecover: nothing was written.\n", stderr);
    if (rc == XAC_EREPLACED)
        fputs("xrecover: nothing was written.  --accept-replaced redoes into it all the "
              "same.\n",
              stderr);
}

/* ---- JSON ------------------------------------------------------------------------- */

/* json_pages -- what was found wrong with pages. */
static void
json_pages(struct json *j, const struct arguments *a)
{
    char hex[20];

    json_number(j, "pages_checked", a->pages.pages);
    json_number(j, "page_files_checked", a->pages.files);
    json_number(j, "page_files_skipped", a->pages.skipped);
    json_number(j, "page_checksums_lost", a->pages.lost);
    json_number(j, "page_damages", a->pages.damages);
    json_array(j, "damaged_pages");
    for (size_t i = 0; i < a->n_bad; i++) {
        const struct xac_pagesums_damage *d = &a->bad[i].damage;

        json_object(j, NULL);
        json_string(j, "file", a->bad[i].file);
        json_number(j, "page", d->page);
        json_number(j, "offset_bytes", d->offset);
        json_string(j, "why", damage_words(d->kind));
        (void)snprintf(hex, sizeof hex, "%016" PRIx64, d->expected);
        json_string(j, "expected", hex);
        (void)snprintf(hex, sizeof hex, "%016" PRIx64, d->found);
        json_string(j, "found", hex);
        json_end(j);
    }
    json_end(j);
}

static void
json_report(const struct arguments *a, const struct xac_recover_report *r, int rc,
            uint64_t time_ns)
{
    struct json j = {.is_pretty = true};

    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_code(&j, "code", rc);
    json_string(&j, "error", rc == 0 ? "" : xac_err_text());
    json_bool(&j, "dry_run", a->recover.dry_run);
    json_bool(&j, "was_clean", r->was_clean);
    json_number(&j, "generation", r->generation);
    json_number(&j, "redo_lsn_bytes", r->redo_lsn);
    json_number(&j, "end_lsn_bytes", r->end_lsn);
    json_number(&j, "synced_lsn_bytes", r->synced_lsn);
    json_number(&j, "blocks", r->blocks);
    json_number(&j, "transactions", r->transactions);
    json_number(&j, "transactions_redone", r->transactions_redone);
    json_number(&j, "page_changes_redone", r->pages_redone);
    json_number(&j, "files", r->files);
    json_number(&j, "data_files", r->datafiles);
    json_number(&j, "orphans_removed", r->orphans_removed);
    json_number(&j, "last_commit", r->last_commit);
    json_number(&j, "discarded_bytes", r->discarded_bytes);
    json_number(&j, "discarded_blocks", r->discarded_blocks);
    json_number(&j, "last_commit_time_ns", r->last_time_ns);
    json_bool(&j, "was_backup", r->was_backup);
    json_bool(&j, "was_copy", r->was_copy);
    json_bool(&j, "until_reached", r->until_reached);
    json_number(&j, "old_blocks_checked", a->checked.blocks);
    json_number(&j, "old_damages", a->checked.damages);
    json_pages(&j, a);
    json_bool(&j, "damaged", r->damaged);
    json_string(&j, "damage_file", r->damage_file);
    json_number(&j, "damage_offset_bytes", r->damage_offset);
    json_number(&j, "time_ns", time_ns);
    json_array(&j, "would_write");
    for (size_t i = 0; i < a->n_would; i++) {
        json_object(&j, NULL);
        json_string(&j, "file", a->would[i].path);
        json_number(&j, "pages", a->would[i].pages);
        json_bool(&j, "is_made", a->would[i].is_made);
        json_end(&j);
    }
    json_end(&j);
    json_number(&j, "strays", r->strays);
    json_string(&j, "stray_file", r->stray_file);
    json_string(&j, "end_reason", r->end_reason);
    json_end(&j);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    struct xac_recover_report rep = {.was_clean = false};
    struct xac_master_slot master = {.magic = 0};
    struct progress progress = progress_start("log read");
    int rc;

    a.pages = (struct xac_pagesums_check){.damage = say_page, .arg = &a};
    a.recover.file = note_file;
    a.recover.file_arg = &a;
    rc = arguments_read(&a, argc, argv);

    if (rc >= 0)
        return rc;
    if (a.shm) {
        rc = shm_list(a.json, a.remove);
        return tool_flush(rc == 0 ? EXIT_DONE : tool_fail("--shm", rc));
    }
    if (progress_is_wanted() && !a.quiet) {
        a.recover.progress = progress_show;
        a.recover.progress_arg = &progress;
    }
    rc = recover_path(&a, &rep, &master);
    progress_end(&progress);
    if (a.json) {
        json_report(&a, &rep, rc, xac_clock_ns() - progress.started_ns);
    } else if (rc == 0 && !a.quiet) {
        say_found(&a, &rep);
        say_done(&a, &rep);
        if (a.verbose && !a.recover.dry_run)
            printf("log: generation %" PRIu32 " begins at LSN %" PRIu64 "\n",
                   master.generation, master.start_lsn);
    }
    if (rc == 0 && (a.recover.until_lsn != 0 || a.recover.until_ns != 0)
        && !rep.until_reached)
        fprintf(
            stderr,
            "xrecover: %s: the log ends before the moment that was given: all of it has "
            "been redone\n",
            a.dir);
    if (rc != 0)
        say_failed(&a, &rep, rc);
    for (size_t i = 0; i < a.n_bad; i++)
        free(a.bad[i].file);
    free(a.bad);
    for (size_t i = 0; i < a.n_would; i++)
        free(a.would[i].path);
    free(a.would);
    return tool_flush(tool_exit_code(rc));
}
