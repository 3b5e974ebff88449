/* SPDX-License-Identifier: MIT */
/*
 * archive_store.c -- see archive_store.h.
 */
#include <config.h>

#include "archive_store.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/copy.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/recover_scan.h"
#include "ship/ship_copy.h"

/* What of rclone's words is shown: the end. */
#define WORDS_BYTES 300

/* rclone's exit codes for what is not there: a directory, a file. */
#define RCLONE_NO_DIRECTORY 3
#define RCLONE_NO_FILE      4

bool
archive_store_is_remote(const char *dest)
{
    const char *colon = strchr(dest[0] == ':' ? dest + 1 : dest, ':');
    const char *slash = strchr(dest, '/');

    return dest[0] == ':' || (colon != NULL && (slash == NULL || colon < slash));
}

int
archive_store_open(struct archive_store *s, const char *dest)
{
    *s = (struct archive_store){.dest = dest, .dirfd = -1, .stagefd = -1};
    if (archive_store_is_remote(dest))
        return 0;
    s->dirfd = xac_sys.openat(AT_FDCWD, dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return s->dirfd >= 0 ? 0 : xac_err(errno, "%s", dest);
}

void
archive_store_close(struct archive_store *s)
{
    xac_close_fd(&s->stagefd);
    xac_close_fd(&s->dirfd);
    free(s->stage);
    s->stage = NULL;
}

int
archive_store_stage(struct archive_store *s, int localfd, const char *local,
                    const char *name)
{
    bool is_remote = s->dirfd < 0;
    int at = is_remote ? localfd : s->dirfd;
    const char *below = is_remote ? local : s->dest;
    int rc;

    xac_assert(s->stagefd < 0);
    if (asprintf(&s->stage, "%s/%s", below, name) < 0) {
        s->stage = NULL;
        return xac_err(ENOMEM, "%s", below);
    }
    rc = xac_copy_remove(at, name);
    if (rc == 0 && xac_sys.mkdirat(at, name, 0700) != 0)
        rc = xac_err(errno, "%s: make", s->stage);
    if (rc != 0)
        return rc;
    s->stagefd = xac_sys.openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return s->stagefd >= 0 ? 0 : xac_err(errno, "%s", s->stage);
}

/* ---- rclone ----------------------------------------------------------------------- */

/* exec_rclone -- in the child. */
static void
exec_rclone(char *const *argv, pid_t parent, int out, int err)
{
    /* (3): what it does after us would come between what the next archiver does. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0
        && dup2(err, STDERR_FILENO) >= 0)
        (void)execvp(argv[0], argv);
    _exit(errno == ENOENT ? 127 : 126);
}

/* is_stopped -- by a signal. */
static bool
is_stopped(const struct archive_store *s)
{
    /* relaxed: nothing else is read because of it. */
    return s->stop != NULL && atomic_load_explicit(s->stop, memory_order_relaxed);
}

/* await -- the child; a signal to us ends it, too.  ret its status. */
static int
await(const struct archive_store *s, pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        if (is_stopped(s))
            (void)kill(pid, SIGTERM);
    }
    return status;
}

/* last_words -- of what rclone has said; ret buf. */
static const char *
last_words(int err, char buf[WORDS_BYTES])
{
    off_t end = lseek(err, 0, SEEK_END);
    off_t from = end > WORDS_BYTES - 1 ? end - (WORDS_BYTES - 1) : 0;
    size_t got = 0;

    if (end <= 0 || xac_read_full(err, buf, WORDS_BYTES - 1, (uint64_t)from, &got) != 0)
        got = 0;
    while (got > 0 && (buf[got - 1] == '\n' || buf[got - 1] == ' '))
        got--;
    buf[got] = '\0';
    for (size_t i = 0; i < got; i++) {
        if (buf[i] == '\n')
            buf[i] = ' ';
    }
    return buf;
}

/* judge -- what a status of rclone means. */
static int
judge(const struct archive_store *s, const char *const *argv, int status, int err)
{
    char words[WORDS_BYTES];

    if (status == 0)
        return 0;
    (void)last_words(err, words);
    if (WIFSIGNALED(status))
        return is_stopped(s) ? xac_err(EINTR, "rclone %s", argv[1])
                             : xac_err(EIO, "rclone %s: ended by signal %d: %s", argv[1],
                                       WTERMSIG(status), words);
    if (WEXITSTATUS(status) == 127)
        return xac_err_whole(ENOENT, "%s: rclone is not installed, or not in PATH",
                             s->dest);
    if (WEXITSTATUS(status) == RCLONE_NO_DIRECTORY
        || WEXITSTATUS(status) == RCLONE_NO_FILE)
        return xac_err(ENOENT, "%s: rclone %s: %s", s->dest, argv[1], words);
    return xac_err_whole(EIO, "%s: rclone %s: exit code %d: %s", s->dest, argv[1],
                         WEXITSTATUS(status), words);
}

/* run -- rclone with these arguments; out -1: what it says on standard output is dropped.  *missingp: it
   says that something is not there. */
static int
run(const struct archive_store *s, const char *const *argv, int out, bool *missingp)
{
    int err = xac_sys.memfd_create("rclone", MFD_CLOEXEC);
    pid_t parent = getpid();
    pid_t pid;
    int rc, status;

    *missingp = false;
    if (err < 0)
        return xac_err(errno, "rclone %s", argv[1]);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        exec_rclone((char *const *)(uintptr_t)argv, parent, out >= 0 ? out : err, err);
    if (pid < 0) {
        rc = xac_err(errno, "rclone: start");
    } else {
        status = await(s, pid);
        rc = judge(s, argv, status, err);
        *missingp = WIFEXITED(status)
                    && (WEXITSTATUS(status) == RCLONE_NO_DIRECTORY
                        || WEXITSTATUS(status) == RCLONE_NO_FILE);
    }
    (void)xac_sys.close(err);
    return rc;
}

/* remote_path -- of an object; free it; NULL: out of memory. */
static char *
remote_path(const struct archive_store *s, const char *name)
{
    char end = s->dest[strlen(s->dest) - 1];
    char *path;

    if (asprintf(&path, "%s%s%s", s->dest, end == ':' || end == '/' ? "" : "/", name) < 0)
        return NULL;
    return path;
}

/* is_here -- is there an object of that name?  ret 0: no; EEXIST; errno. */
static int
is_here(const struct archive_store *s, const char *path)
{
    const char *argv[] = {"rclone", "lsf", "--retries", "1", path, NULL};
    int out = xac_sys.memfd_create("rclone", MFD_CLOEXEC);
    bool is_missing;
    off_t said;
    int rc;

    if (out < 0)
        return xac_err(errno, "rclone lsf");
    rc = run(s, argv, out, &is_missing);
    said = lseek(out, 0, SEEK_END);
    (void)xac_sys.close(out);
    if (rc != 0 && is_missing) {
        xac_err_clear();
        return 0;
    }
    return rc == 0 && said > 0 ? xac_err(EEXIST, "%s", path) : rc;
}

/* remote_put -- rclone is asked before, for it takes an object of the same length for the same. */
static int
remote_put(const struct archive_store *s, const char *from, const char *name)
{
    char *to = remote_path(s, name), *path = NULL;
    const char *argv[] = {"rclone",      "copyto", "--retries", "1",
                          "--immutable", NULL,     NULL,        NULL};
    bool is_missing;
    int rc;

    if (to == NULL || asprintf(&path, "%s/%s", s->stage, from) < 0) {
        free(to);
        return xac_err(ENOMEM, "%s", name);
    }
    argv[5] = path;
    argv[6] = to;
    rc = is_here(s, to);
    if (rc == 0)
        rc = run(s, argv, -1, &is_missing);
    free(to);
    free(path);
    return rc;
}

/* remote_one -- a command on one object. */
static int
remote_one(const struct archive_store *s, const char *command, const char *name, int out,
           bool *missingp)
{
    char *path = remote_path(s, name);
    const char *argv[] = {"rclone", command, "--retries", "1", path, NULL};
    int rc;

    *missingp = false;
    if (path == NULL)
        return xac_err(ENOMEM, "%s", name);
    rc = run(s, argv, out, missingp);
    free(path);
    return rc;
}

/* each_line -- of what rclone has listed. */
static int
each_line(FILE *f, int (*fn)(void *arg, const char *name), void *arg)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    int rc = 0;

    while (rc == 0 && (n = getline(&line, &size, f)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        rc = fn(arg, line);
    }
    free(line);
    return rc;
}

static int
remote_list(const struct archive_store *s, int (*fn)(void *arg, const char *name),
            void *arg)
{
    const char *argv[] = {"rclone",       "lsf",   "--retries", "1",
                          "--files-only", s->dest, NULL};
    int out = xac_sys.memfd_create("rclone", MFD_CLOEXEC);
    bool is_missing;
    FILE *f;
    int rc;

    if (out < 0)
        return xac_err(errno, "rclone lsf");
    rc = run(s, argv, out, &is_missing);
    if (rc != 0 && is_missing) { /* a bucket without this prefix: no object yet */
        xac_err_clear();
        rc = 0;
    }
    f = rc == 0 ? fdopen(out, "r") : NULL;
    if (f == NULL) {
        (void)xac_sys.close(out);
        return rc != 0 ? rc : xac_err(errno, "rclone lsf");
    }
    rewind(f);
    rc = each_line(f, fn, arg);
    (void)fclose(f);
    return rc;
}

/* ---- A directory ------------------------------------------------------------------ */

/* A directory that is listed. */
struct listing {
    int dirfd;
    int (*fn)(void *arg, const char *name);
    void *arg;
};

/* list_one -- for xac_scan_names: files only. */
static int
list_one(void *arg, const char *name)
{
    struct listing *l = (struct listing *)arg;
    struct stat st;

    if (fstatat(l->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return 0;
    return l->fn(l->arg, name);
}

/* directory_put -- by renaming; a file system that cannot refuse to replace is asked before. */
static int
directory_put(const struct archive_store *s, const char *from, const char *name)
{
    int rc = 0;

    if (xac_sys.rename_new(s->stagefd, from, s->dirfd, name) != 0)
        rc = errno;
    if (rc == ENOENT && faccessat(s->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        rc = 0; /* an attempt before has failed when the name was synced */
    if (rc == EINVAL || rc == ENOSYS) {
        rc = faccessat(s->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : 0;
        if (rc == 0 && xac_sys.renameat(s->stagefd, from, s->dirfd, name) != 0)
            rc = errno;
    }
    if (rc == 0)
        rc = xac_sync_dir(s->dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s", s->dest, name);
}

static int
directory_get(const struct archive_store *s, const char *name, int out)
{
    struct xac_copier copier = {.chunk = (uint8_t *)malloc(XAC_COPY_CHUNK)};
    int in = xac_sys.openat(s->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    int rc = in < 0 ? errno : copier.chunk == NULL ? ENOMEM : 0;

    if (rc == 0)
        rc = xac_copy_file(in, out, &copier);
    if (in >= 0)
        (void)xac_sys.close(in);
    free(copier.chunk);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s", s->dest, name);
}

/* ---- Either ----------------------------------------------------------------------- */

int
archive_store_list(struct archive_store *s, int (*fn)(void *arg, const char *name),
                   void *arg)
{
    struct listing l = {.dirfd = s->dirfd, .fn = fn, .arg = arg};
    int rc;

    if (s->dirfd < 0)
        return remote_list(s, fn, arg);
    rc = xac_scan_names(s->dirfd, "", list_one, &l);
    return rc == 0 || xac_err_text()[0] != '\0' ? rc : xac_err(rc, "%s", s->dest);
}

int
archive_store_put(struct archive_store *s, const char *from, const char *name)
{
    xac_assert(strlen(name) <= ARCHIVE_NAME_MAX);
    xac_assert(s->stagefd >= 0);
    return s->dirfd >= 0 ? directory_put(s, from, name) : remote_put(s, from, name);
}

int
archive_store_get(struct archive_store *s, const char *name, int out)
{
    bool is_missing;

    xac_assert(out >= 0);
    return s->dirfd >= 0 ? directory_get(s, name, out)
                         : remote_one(s, "cat", name, out, &is_missing);
}

int
archive_store_remove(struct archive_store *s, const char *name)
{
    bool is_missing;
    int rc;

    if (s->dirfd < 0) {
        rc = remote_one(s, "deletefile", name, -1, &is_missing);
        return is_missing ? 0 : rc;
    }
    if (xac_sys.unlinkat(s->dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    return xac_err(errno, "%s/%s: remove", s->dest, name);
}
