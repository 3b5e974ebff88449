/* SPDX-License-Identifier: MIT */
/*
 * xarchive.c -- the tool xarchive(1): name, ship, move or delete log files that are no
 * longer needed; or keep log and backups in an archive (archive_ship.h).
 *
 * Without an archive it takes no part in the environment: reads its master record, and of a running one the
 * positions that backups under way hold (peek.h).
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "checkpoint/archive.h"
#include "env/peek.h"
#include "log/log.h"
#include "log/log_keep.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/slots.h"
#include "shared/registry.h"
#include "archive_ship.h"
#include "progress.h"
#include "tool.h"

const char *const tool_name = "xarchive";

#define CHUNK    ((size_t)1 << 20)
#define NS_PER_S UINT64_C(1000000000)

struct arguments {
    bool json;
    bool delete;
    bool dry_run;
    const char *move; /* directory, NULL if not wanted                                */
    const char *log_dir; /* where the log lies, NULL: as noted                        */
    const char *hook; /* command, NULL if not wanted                                  */
    const char *dest; /* archive to ship log and backups to, NULL if not wanted        */
    bool follows;     /* do not end                                                   */
    bool quiet;
    uint64_t backup_hours, keep_days;
    const char *dir;
};

/* What has been found. */
struct found {
    char **names;
    size_t count;
    int tofd;          /* of the directory to move them to, -1 none                   */
    bool is_kept;      /* the log is, from now on                                     */
    bool is_first;     /* it was not, until now                                       */
    uint64_t next_lsn; /* needed from here on                                         */
    uint64_t segment_bytes;
};

static const struct option long_options[] = {
    {"backup-every", required_argument, NULL, 'b'},
    {"delete", no_argument, NULL, 'd'},
    {"dry-run", no_argument, NULL, 'n'},
    {"follow", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {"hook", required_argument, NULL, 'k'},
    {"json", no_argument, NULL, 'j'},
    {"keep-days", required_argument, NULL, 'K'},
    {"log-dir", required_argument, NULL, 'l'},
    {"move", required_argument, NULL, 'm'},
    {"quiet", no_argument, NULL, 'q'},
    {"to", required_argument, NULL, 't'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xarchive [options] DIR\n"
        "       xarchive --follow DEST [options] DIR\n"
        "       xarchive --to DEST [options] DIR\n"
        "Name the log files of the libxac environment in directory DIR that recovery does\n"
        "not need any more, oldest first.\n"
        "\n"
        "  -k, --hook COMMAND  run it by the shell for each file, %p its path, %f its name\n"
        "                      (%% a percent sign); one that fails ends the run\n"
        "  -m, --move TO       move them to directory TO, synced before they go\n"
        "  -d, --delete        delete them\n"
        "  -n, --dry-run       only name them\n"
        "  -l, --log-dir PATH  the log has been moved there\n"
        "  -j, --json          print one JSON object\n"
        "  -h, --help          this text\n"
        "  -V, --version       version of libxac\n"
        "\n"
        "Or keep all that leads to any moment in DEST: a directory, or REMOTE:PATH of\n"
        "rclone(1).  xrestore(1) brings it back.\n"
        "\n"
        "  -f, --follow DEST   ship log, and make backups, until a signal ends it\n"
        "  -t, --to DEST       ship all durable log, and end\n"
        "      --backup-every HOURS  a backup then at the latest, if anything has changed\n"
        "      --keep-days DAYS      moments that can be brought back; others go (all)\n"
        "  -q, --quiet         with these: say nothing unless something is wrong\n"
        "\n"
        "The hook comes before the move or the deletion.  With --move or --hook the\n"
        "environment keeps its log from now on; otherwise it uses it again.\n"
        "exit: 0 done          3 damaged: master record, log or archive\n"
        "      1 error         5 no environment\n"
        "      2 wrong usage\n",
        to);
}

/* are_ok -- do the arguments fit each other? */
static bool
are_ok(const struct arguments *a, int argc, char **argv)
{
    bool names = a->delete || a->dry_run || a->move != NULL || a->hook != NULL
                 || a->log_dir != NULL;

    if (optind + 1 != argc || argv[optind][0] == '\0' || (a->delete &&a->move != NULL))
        return false;
    if (a->dest != NULL)
        return !names && a->dest[0] != '\0';
    return !a->quiet && a->backup_hours == 0 && a->keep_days == 0;
}

/* count_read -- 1 to 100,000 hours or days. */
static bool
count_read(const char *text, uint64_t *outp)
{
    return tool_number(text, outp) && *outp >= 1 && *outp <= 100000;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    bool ok = true;
    int c;

    while ((c = getopt_long(argc, argv, "df:hjk:l:m:nqt:V", long_options, NULL)) != -1) {
        switch (c) {
        case 'b':
            ok = ok && count_read(optarg, &a->backup_hours);
            break;
        case 'K':
            ok = ok && count_read(optarg, &a->keep_days);
            break;
        case 'f':
        case 't':
            ok = ok && a->dest == NULL;
            a->dest = optarg;
            a->follows = c == 'f';
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'd':
            a->delete = true;
            break;
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
            break;
        case 'k':
            a->hook = optarg;
            break;
        case 'l':
            a->log_dir = optarg;
            break;
        case 'm':
            a->move = optarg;
            break;
        case 'n':
            a->dry_run = true;
            break;
        case 'V':
            return tool_version();
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (!ok || !are_ok(a, argc, argv)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    a->dir = argv[optind];
    return -1;
}

/* ---- What is not needed ----------------------------------------------------------- */

/* is_shipped -- do the files go anywhere? */
static bool
is_shipped(const struct arguments *a)
{
    return a->move != NULL || a->hook != NULL;
}

/* destination_open -- the directory to move files to, if there is to be one. */
static int
destination_open(const struct arguments *a, struct found *f)
{
    if (a->move == NULL)
        return 0;
    f->tofd = xac_sys.openat(AT_FDCWD, a->move, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return f->tofd >= 0 ? 0 : xac_err(errno, "%s", a->move);
}

/* keep -- files that go somewhere are wanted later, too.  The destination is open before the mark
   is made: one that is not there asks for nothing. */
static int
keep(const struct arguments *a, int logfd, struct found *f)
{
    int rc = destination_open(a, f);

    if (rc == 0 && !a->dry_run && is_shipped(a))
        rc = xac_log_keep(logfd, true, &f->is_first);
    f->is_kept = xac_log_is_kept(logfd);
    return rc;
}

/* names_get -- see xac_archive(). */
static int
names_get(const struct arguments *a, int dirfd, struct found *f)
{
    struct xac_master_slot master;
    struct xac_log_followers followers = {.wakes = 0};
    struct xac_env env;
    char *log_dir = NULL;
    bool is_lost;
    int logfd = -1;
    uint64_t needed = 0;
    int rc;

    rc = xac_peek_open(dirfd, a->dir, &env);
    if (rc != 0 && rc != ENOENT)
        return rc;
    /* The record is read before the pins: a backup pins everything, then reads it. */
    rc = xac_master_read(dirfd, &master);
    if (rc == 0)
        rc = xac_master_sync(dirfd, &is_lost);
    if (rc == 0 && env.ctl != NULL)
        needed = xac_registry_log_needed(&env, master.redo_lsn);
    else if (rc == 0 && (rc = xac_slots_read(dirfd, &followers)) == 0)
        needed = xac_slots_needed(&followers, master.redo_lsn, master.start_lsn);
    if (env.ctl != NULL)
        xac_peek_close(&env);
    if (rc == 0)
        rc = xac_logdir_open(dirfd, a->log_dir, master.identity, &logfd, &log_dir);
    if (rc == 0)
        rc = keep(a, logfd, f);
    if (logfd >= 0)
        (void)xac_sys.close(logfd);
    if (rc == 0)
        rc = xac_archive_list(log_dir != NULL ? log_dir : a->dir, &master, needed,
                              &f->names, &f->count);
    f->next_lsn = needed;
    f->segment_bytes = master.segment_bytes;
    free(log_dir);
    return rc;
}

/* ---- Ship ------------------------------------------------------------------------- */

static const char *
base_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* put_quoted -- a word for the shell. */
static void
put_quoted(FILE *f, const char *word)
{
    fputc('\'', f);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", f);
        else
            fputc(*word, f);
    }
    fputc('\'', f);
}

/* hook_run -- ret 0 or an error. */
static int
hook_run(const char *hook, const char *path)
{
    char *command = NULL;
    size_t n;
    FILE *f = open_memstream(&command, &n);
    int status;

    if (f == NULL)
        return xac_err(ENOMEM, "hook");
    for (const char *p = hook; *p != '\0'; p++) {
        if (*p != '%' || strchr("pf%", p[1]) == NULL || p[1] == '\0')
            fputc(*p, f);
        else if (*++p == '%')
            fputc('%', f);
        else
            put_quoted(f, *p == 'p' ? path : base_of(path));
    }
    if (fclose(f) != 0) {
        free(command);
        return xac_err(ENOMEM, "hook");
    }
    (void)fflush(NULL);
    status = system(command);
    if (status == -1)
        status = xac_err(errno, "hook");
    else if (WIFSIGNALED(status))
        status =
            xac_err(EIO, "%s: the hook was ended by signal %d", path, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        status = xac_err(EIO, "%s: the hook failed with exit code %d", path,
                         WEXITSTATUS(status));
    free(command);
    return status;
}

/* ---- Move ------------------------------------------------------------------------- */

/* copy_bytes -- and sync. */
static int
copy_bytes(int in, int out)
{
    uint8_t *chunk = (uint8_t *)malloc(CHUNK);
    uint64_t at = 0;
    size_t got;
    int rc = chunk == NULL ? ENOMEM : 0;

    while (rc == 0) {
        rc = xac_read_full(in, chunk, CHUNK, at, &got);
        if (rc != 0 || got == 0)
            break;
        rc = xac_write_full(out, chunk, got, at);
        at += got;
    }
    free(chunk);
    return rc == 0 && xac_sys.fsync(out) != 0 ? errno : rc;
}

/* copy_across -- to another file system: under another name until it is whole. */
static int
copy_across(const char *path, int tofd, const char *name)
{
    static const char made[] = "xarchive-new";
    struct xac_owner owner;
    int in = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    int out = -1;
    int rc = in < 0 ? errno : xac_owner_of_file(in, &owner);

    if (rc == 0)
        rc = xac_newfile_remake(tofd, made, &owner, &out);
    if (rc == 0)
        rc = copy_bytes(in, out);
    if (in >= 0)
        (void)xac_sys.close(in);
    if (out >= 0)
        (void)xac_sys.close(out);
    if (rc == 0 && xac_sys.renameat(tofd, made, tofd, name) != 0)
        rc = errno;
    return rc;
}

/* file_move -- a file that is there already is not written over. */
static int
file_move(const char *path, int tofd, const char *to)
{
    const char *name = base_of(path);
    struct stat st;
    int rc = 0;

    if (fstatat(tofd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return xac_err(EEXIST, "%s/%s", to, name);
    if (xac_sys.renameat(AT_FDCWD, path, tofd, name) == 0) {
        rc = xac_sync_dir(tofd);
    } else if (errno == EXDEV) {
        rc = copy_across(path, tofd, name);
        if (rc == 0)
            rc = xac_sync_dir(tofd);
        if (rc == 0 && xac_sys.unlinkat(AT_FDCWD, path, 0) != 0)
            rc = errno;
    } else {
        rc = errno;
    }
    return rc == 0 ? 0 : xac_err(rc, "moving %s to %s", path, to);
}

/* ---- The whole -------------------------------------------------------------------- */

/* one_file -- hook, then move or deletion. */
static int
one_file(const struct arguments *a, const char *path, int tofd)
{
    int rc = 0;

    if (a->dry_run)
        return 0;
    if (a->hook != NULL)
        rc = hook_run(a->hook, path);
    if (rc == 0 && a->move != NULL)
        rc = file_move(path, tofd, a->move);
    if (rc == 0 && a->delete &&xac_sys.unlinkat(AT_FDCWD, path, 0) != 0)
        rc = xac_err(errno, "%s: delete", path);
    return rc;
}

/* is_there -- until the log was kept, a file that was named may have been used again. */
static bool
is_there(const char *path)
{
    struct stat st;

    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* size_of -- of a file, in bytes; 0 if it is not there. */
static uint64_t
size_of(const char *path)
{
    struct stat st;

    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size
                                                                  : 0;
}

/* all_files -- ret an error; *np how many were done, which are the first of *f then. */
static int
all_files(const struct arguments *a, struct found *f, size_t *np)
{
    struct progress shown = progress_start("log shipped");
    char **names = f->names;
    uint64_t done = 0, total = 0;
    int rc = 0;

    *np = 0;
    for (size_t i = 0; i < f->count; i++)
        total += size_of(names[i]);
    for (size_t i = 0; rc == 0 && i < f->count; i++) {
        uint64_t bytes = size_of(names[i]);

        if (!is_there(names[i]))
            continue;
        rc = one_file(a, names[i], f->tofd);
        done += bytes;
        progress_end(&shown); /* the name goes to the same terminal */
        if (rc == 0 && !a->json)
            puts(names[i]);
        if (rc == 0 && is_shipped(a) && done <= total && progress_is_wanted())
            progress_show(&shown, done, total);
        if (rc == 0)
            names[(*np)++] = names[i];
    }
    progress_end(&shown);
    return rc;
}

/* say_kept -- what who relies on archives must know. */
static void
say_kept(const struct arguments *a, const struct found *f)
{
    char name[XAC_LOG_NAME_MAX];

    xac_log_segment_name(name, xac_log_segment_of(f->next_lsn, f->segment_bytes));
    if (f->is_first)
        fprintf(
            stderr,
            "xarchive: %s: from now on the log is kept until it is archived.\n"
            "Log from before %s may have been used again already.  Make a backup\n"
            "now: older ones can be rolled forward only if their log is still there.\n",
            a->dir, name);
    else if (f->count > 0 && !f->is_kept && !(a->json || a->delete || is_shipped(a)))
        fprintf(stderr,
                "xarchive: %s: the log is not kept: these files will be used again.\n"
                "--move and --hook begin to keep it.\n",
                a->dir);
}

static void
say_json(const struct arguments *a, const struct found *f, size_t n, int rc)
{
    struct json j = {.is_pretty = true};

    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_code(&j, "code", rc);
    json_string(&j, "error", rc == 0 ? "" : xac_err_text());
    json_string(&j, "done",
                a->dry_run        ? "named"
                : a->delete       ? "deleted"
                : a->move != NULL ? "moved"
                : a->hook != NULL ? "shipped"
                                  : "named");
    json_bool(&j, "kept", f->is_kept);
    json_array(&j, "files");
    for (size_t i = 0; i < n; i++)
        json_string(&j, NULL, f->names[i]);
    json_end(&j);
    json_end(&j);
}

/* ---- An archive ------------------------------------------------------------------- */

static _Atomic bool is_told_to_stop;

static void
stop(int signal)
{
    (void)signal;
    /* relaxed: nothing else is handed over. */
    atomic_store_explicit(&is_told_to_stop, true, memory_order_relaxed);
}

/* catch_signals -- the first SIGINT, SIGTERM or SIGHUP ends in order, the second one at once. */
static void
catch_signals(void)
{
    struct sigaction act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
}

/* say_shipped -- what has been put into the archive. */
static void
say_shipped(const struct arguments *a, const struct archive_report *rep, int rc)
{
    struct json j = {.is_pretty = true};

    if (!a->json) {
        if (rc == 0 && !a->quiet)
            printf("%s: %" PRIu64 " object%s put, %" PRIu64 " bytes, %" PRIu64
                   " backup%s; %s has all up to LSN %" PRIu64 "\n",
                   a->dir, rep->objects, plural(rep->objects), rep->bytes, rep->backups,
                   plural(rep->backups), a->dest, rep->lsn);
        return;
    }
    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_string(&j, "to", a->dest);
    json_code(&j, "code", rc);
    json_string(&j, "error", rc == 0 ? "" : xac_err_text());
    json_number(&j, "objects", rep->objects);
    json_number(&j, "bytes", rep->bytes);
    json_number(&j, "log_bytes", rep->log_bytes);
    json_number(&j, "backups", rep->backups);
    json_number(&j, "manifest", rep->manifest);
    json_number(&j, "generation", rep->generation);
    json_number(&j, "lsn_bytes", rep->lsn);
    json_end(&j);
}

/* ship -- to an archive; ret the exit code. */
static int
ship(const struct arguments *a)
{
    struct archive_options o = {.dir = a->dir,
                                .dest = a->dest,
                                .follows = a->follows,
                                .quiet = a->quiet,
                                .backup_every_ns = a->backup_hours * 3600 * NS_PER_S,
                                .keep_ns = a->keep_days * 86400 * NS_PER_S,
                                .stop = &is_told_to_stop};
    struct archive_report rep;
    int rc;

    catch_signals();
    rc = archive_run(&o, &rep);
    say_shipped(a, &rep, rc);
    return rc == 0 ? EXIT_DONE : tool_fail(a->dir, rc);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    struct found f = {.tofd = -1};
    size_t n = 0;
    int rc = arguments_read(&a, argc, argv);
    int dirfd;

    if (rc >= 0)
        return rc;
    if (a.dest != NULL)
        return tool_flush(ship(&a));
    rc = tool_open_dir(a.dir, &dirfd, NULL);
    if (rc == 0) {
        rc = names_get(&a, dirfd, &f);
        (void)xac_sys.close(dirfd);
    }
    if (rc == 0)
        say_kept(&a, &f);
    if (rc == 0)
        rc = all_files(&a, &f, &n);
    if (f.tofd >= 0)
        (void)xac_sys.close(f.tofd);
    if (a.json)
        say_json(&a, &f, n, rc);
    free(f.names);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.dir, rc));
}
