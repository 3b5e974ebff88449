/* SPDX-License-Identifier: MIT */
/*
 * record.c -- see record.h.
 */
#include <config.h>

#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "env.h"

#define FILES_MAX 8192u /* a power of two */
#define FIRST_INO 1000u
#define FAILS_MAX 32u

struct tracked {
    uint64_t real, ino;
};

struct record_trace {
    pthread_mutex_t lock; /* over every recorded call and all that follows              */
    uint64_t size;        /* of bytes                                                   */
    uint64_t used;
    uint64_t next_ino;
    uint32_t n_files;
    uint32_t is_full;
    uint32_t all_die;
    uint32_t n_failed;          /* syncs that have failed                               */
    uint32_t over;              /* by failed sync: it has ended                         */
    uint64_t failed[FAILS_MAX]; /* of which file                                        */
    uint64_t device; /* of the root                                                     */
    uint64_t root;   /* its number                                                      */
    struct tracked file[FILES_MAX];
    _Alignas(8) uint8_t bytes[];
};

/* This process's part. */
static struct {
    struct record_trace *trace;
    struct xac_sys real;
    bool is_on, is_paused, is_together;
    uint64_t die_in, fail_in; /* calls to go, 0 never */
    int error;
    uint64_t slow_us, slow_seed;
    uint32_t told; /* by failed sync: this process need not be told, or has been        */
} self;

/* ---- The trace --------------------------------------------------------------------- */

struct record_trace *
record_new(size_t size)
{
    struct record_trace *t =
        (struct record_trace *)proc_shared(sizeof(struct record_trace) + size);
    pthread_mutexattr_t attr;

    must(pthread_mutexattr_init(&attr) == 0);
    must(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    must(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    must(pthread_mutex_init(&t->lock, &attr) == 0);
    t->size = size;
    t->next_ino = FIRST_INO;
    return t;
}

void
record_free(struct record_trace *t)
{
    (void)munmap(t, sizeof *t + t->size);
}

void
record_clear(struct record_trace *t)
{
    t->used = 0;
    t->is_full = 0;
    t->n_failed = t->over = 0;
    record_forget(t);
}

void
record_forget(struct record_trace *t)
{
    t->n_files = 0;
    memset(t->file, 0, sizeof t->file);
}

static void
trace_lock(struct record_trace *t)
{
    if (pthread_mutex_lock(&t->lock) == EOWNERDEAD) /* an event is counted last */
        (void)pthread_mutex_consistent(&t->lock);
}

static void
trace_unlock(struct record_trace *t)
{
    int error = errno;

    (void)pthread_mutex_unlock(&t->lock);
    errno = error;
}

/* put -- append an event; ret its position.  The lock is held. */
static uint64_t
put(struct record_event ev, const void *bytes)
{
    struct record_trace *t = self.trace;
    uint64_t at = t->used;
    uint64_t n = (sizeof ev + ev.len + 7) & ~UINT64_C(7);

    if (self.is_paused)
        return at;
    if (t->size - at < n) {
        t->is_full = 1;
        return at;
    }
    memcpy(t->bytes + at, &ev, sizeof ev);
    if (ev.len > 0)
        memcpy(t->bytes + at + sizeof ev, bytes, ev.len);
    t->used = at + n;
    return at;
}

const struct record_event *
record_at(const struct record_trace *t, uint64_t position)
{
    return position < t->used
               ? (const struct record_event *)(const void *)(t->bytes + position)
               : NULL;
}

uint64_t
record_next(const struct record_event *ev, uint64_t position)
{
    return position + ((sizeof *ev + ev->len + 7) & ~UINT64_C(7));
}

bool
record_is_full(const struct record_trace *t)
{
    return t->is_full != 0;
}

void
record_note(uint64_t a, uint64_t b, uint64_t c)
{
    trace_lock(self.trace);
    (void)
        put((struct record_event){.kind = RECORD_NOTE, .ino = a, .ino2 = b, .offset = c},
            NULL);
    trace_unlock(self.trace);
}

/* What stands at the start of a saved trace. */
struct saved {
    char root[400];
    uint64_t root_ino, next_ino;
    uint64_t a, b;
};

bool
record_save(const struct record_trace *t, const char *path, const char *root, unsigned a,
            uint64_t b)
{
    struct saved head = {.root_ino = t->root, .next_ino = t->next_ino, .a = a, .b = b};
    FILE *f = fopen(path, "wb");
    bool is_done;

    if (f == NULL)
        return false;
    (void)snprintf(head.root, sizeof head.root, "%s", root);
    is_done = fwrite(&head, sizeof head, 1, f) == 1
              && fwrite(t->bytes, 1, t->used, f) == t->used;
    return fclose(f) == 0 && is_done;
}

bool
record_load(struct record_trace *t, const char *path, char root[400], unsigned *ap,
            uint64_t *bp)
{
    struct saved head;
    FILE *f = fopen(path, "rb");

    if (f == NULL)
        return false;
    record_clear(t);
    if (fread(&head, sizeof head, 1, f) == 1) {
        t->used = fread(t->bytes, 1, t->size, f);
        t->root = head.root_ino;
        t->next_ino = head.next_ino;
        memcpy(root, head.root, 400);
        *ap = (unsigned)head.a;
        *bp = head.b;
    }
    return fclose(f) == 0 && t->used > 0;
}

uint64_t
record_root(const struct record_trace *t)
{
    return t->root;
}

/* ---- Which files ------------------------------------------------------------------- */

/* slot_of -- of a file in the table, or the free one for it. */
static struct tracked *
slot_of(struct record_trace *t, uint64_t real)
{
    uint64_t i = real * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    while (t->file[i % FILES_MAX].real != 0 && t->file[i % FILES_MAX].real != real)
        i++;
    return &t->file[i % FILES_MAX];
}

void
record_track(struct record_trace *t, uint64_t real_ino, uint64_t ino)
{
    struct tracked *f = slot_of(t, real_ino);

    must(f->real != 0 || ++t->n_files < FILES_MAX / 2);
    f->real = real_ino;
    f->ino = ino;
    record_reserve(t, ino + 1);
}

void
record_reserve(struct record_trace *t, uint64_t ino)
{
    if (ino > t->next_ino)
        t->next_ino = ino;
}

/* ino_of -- the number under which a file is recorded, 0 if it is not. */
static uint64_t
ino_of(const struct stat *st)
{
    struct record_trace *t = self.trace;

    return (uint64_t)st->st_dev == t->device ? slot_of(t, (uint64_t)st->st_ino)->ino : 0;
}

static uint64_t
fd_ino(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? ino_of(&st) : 0;
}

/* base_of -- the last part of a path. */
static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* parent_ino -- of the directory a path lies in, 0 if it is not recorded. */
static uint64_t
parent_ino(int dirfd, const char *path)
{
    size_t n = (size_t)(base_of(path) - path);
    char dir[4096];
    struct stat st;

    if (n >= sizeof dir - 1)
        return 0;
    memcpy(dir, path, n);
    memcpy(dir + n, ".", 2);
    return fstatat(dirfd, dir, &st, 0) == 0 ? ino_of(&st) : 0;
}

/* ---- What befalls a process -------------------------------------------------------- */

/* is_struck -- the process is to die in this recorded call. */
static bool
is_struck(void)
{
    bool is_hit = self.die_in != 0 && --self.die_in == 0;

    if (is_hit && self.is_together)
        self.trace->all_die = 1;
    return is_hit || self.trace->all_die != 0;
}

/* die -- with the lock given back. */
static void
die(void)
{
    trace_unlock(self.trace);
    (void)kill(getpid(), SIGKILL);
}

static void
be_slow(void)
{
    uint64_t us = self.slow_us != 0 ? rnd_below(&self.slow_seed, self.slow_us) : 0;
    struct timespec ts = {.tv_nsec = (long)us * 1000};
    int error = errno;

    if (us > 0)
        (void)nanosleep(&ts, NULL);
    errno = error;
}

/* ---- The calls --------------------------------------------------------------------- */

/* note_new -- a file or directory has been made under a name. */
static void
note_new(enum record_kind kind, uint64_t parent, const struct stat *st, const char *path)
{
    struct record_trace *t = self.trace;
    const char *name = base_of(path);
    uint64_t ino = t->next_ino;

    record_track(t, (uint64_t)st->st_ino, ino);
    (void)put((struct record_event){.kind = kind,
                                    .len = (uint32_t)strlen(name) + 1,
                                    .ino = parent,
                                    .ino2 = ino},
              name);
}

static int
rec_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    struct stat st;
    uint64_t parent, ino;
    bool was;
    int fd;

    if ((flags & (O_CREAT | O_TRUNC)) == 0)
        return self.real.openat(dirfd, path, flags, mode);
    trace_lock(self.trace);
    was = fstatat(dirfd, path, &st, 0) == 0;
    parent = was ? 0 : parent_ino(dirfd, path);
    if (parent != 0 && is_struck())
        die();
    fd = self.real.openat(dirfd, path, flags, mode);
    if (fd >= 0 && parent != 0 && fstat(fd, &st) == 0) {
        note_new(RECORD_CREATE, parent, &st, path);
    } else if (fd >= 0 && was && (flags & O_TRUNC) != 0) {
        ino = ino_of(&st);
        if (ino != 0 && st.st_size > 0)
            (void)put((struct record_event){.kind = RECORD_SIZE, .ino = ino}, NULL);
    }
    trace_unlock(self.trace);
    if (parent != 0)
        be_slow();
    return fd;
}

/* rec_openat2 -- the model of the disk knows no symbolic links: as openat. */
static int
rec_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    if ((flags & (O_CREAT | O_TRUNC)) == 0)
        return self.real.openat2(dirfd, path, flags, mode, resolve);
    return rec_openat(dirfd, path, flags, mode);
}

static int
rec_mkdirat(int dirfd, const char *path, mode_t mode)
{
    struct stat st;
    uint64_t parent;
    int rc;

    trace_lock(self.trace);
    parent = parent_ino(dirfd, path);
    rc = self.real.mkdirat(dirfd, path, mode);
    if (rc == 0 && parent != 0 && fstatat(dirfd, path, &st, 0) == 0)
        note_new(RECORD_MKDIR, parent, &st, path);
    trace_unlock(self.trace);
    return rc;
}

static ssize_t
rec_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    bool dies = false;
    uint64_t ino;
    ssize_t w;

    trace_lock(self.trace);
    ino = fd_ino(fd);
    if (ino != 0)
        dies = is_struck();
    w = self.real.pwrite(fd, buf, dies ? n / 2 : n, offset);
    if (ino != 0 && w > 0)
        (void)put((struct record_event){.kind = RECORD_WRITE,
                                        .len = (uint32_t)w,
                                        .ino = ino,
                                        .offset = (uint64_t)offset},
                  buf);
    if (dies)
        die();
    trace_unlock(self.trace);
    return w;
}

/* set_size -- what ftruncate and fallocate have in common. */
static int
set_size(int fd, int (*call)(int, off_t, off_t), off_t a, off_t b)
{
    struct stat was, is;
    uint64_t ino;
    int rc;

    trace_lock(self.trace);
    ino = fstat(fd, &was) == 0 ? ino_of(&was) : 0;
    if (ino != 0 && is_struck())
        die();
    rc = call(fd, a, b);
    if (rc == 0 && ino != 0 && fstat(fd, &is) == 0 && is.st_size != was.st_size)
        (void)put((struct record_event){.kind = RECORD_SIZE,
                                        .ino = ino,
                                        .offset = (uint64_t)is.st_size},
                  NULL);
    trace_unlock(self.trace);
    return rc;
}

static int
call_ftruncate(int fd, off_t length, off_t unused)
{
    (void)unused;
    return self.real.ftruncate(fd, length);
}

static int
call_fallocate(int fd, off_t offset, off_t length)
{
    return self.real.fallocate(fd, 0, offset, length);
}

static int
rec_ftruncate(int fd, off_t length)
{
    return set_size(fd, call_ftruncate, length, 0);
}

static int
rec_fallocate(int fd, int mode, off_t offset, off_t length)
{
    must(mode == 0); /* others are not in the library's repertoire */
    return set_size(fd, call_fallocate, offset, length);
}

static int
rec_fstat(int fd, struct stat *st)
{
    int rc = self.real.fstat(fd, st);
    uint64_t ino;

    if (rc != 0)
        return rc;
    trace_lock(self.trace);
    ino = ino_of(st);
    if (ino != 0)
        st->st_ino = (ino_t)ino;
    trace_unlock(self.trace);
    return 0;
}

/* rec_statx -- a file is born with its number in the model, wherever it is laid out again. */
static int
rec_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *out)
{
    int rc = self.real.statx(dirfd, path, flags, mask, out);
    struct stat st;
    uint64_t ino;

    if (rc != 0)
        return rc;
    st.st_dev = makedev(out->stx_dev_major, out->stx_dev_minor);
    st.st_ino = out->stx_ino;
    trace_lock(self.trace);
    ino = ino_of(&st);
    if (ino != 0) {
        out->stx_ino = ino;
        out->stx_mask |= STATX_BTIME;
        out->stx_btime.tv_sec = 1;
        out->stx_btime.tv_nsec = (uint32_t)ino;
    }
    trace_unlock(self.trace);
    return 0;
}

/* rename_by -- renameat() or rename_new(). */
static int
rename_by(int (*fn)(int, const char *, int, const char *), int dirfd, const char *from,
          int dirfd2, const char *to)
{
    char names[600];
    uint64_t parent, parent2, ino = 0;
    struct stat st;
    int n, rc;

    trace_lock(self.trace);
    parent = parent_ino(dirfd, from);
    parent2 = parent_ino(dirfd2, to);
    must(parent == parent2); /* others are not in the library's repertoire */
    if (parent != 0 && is_struck())
        die();
    if (fstatat(dirfd, from, &st, 0) == 0)
        ino = ino_of(&st);
    rc = fn(dirfd, from, dirfd2, to);
    n = snprintf(names, sizeof names, "%s%c%s", base_of(from), '\0', base_of(to));
    if (rc == 0 && parent != 0)
        (void)put((struct record_event){.kind = RECORD_RENAME,
                                        .len = (uint32_t)n + 1,
                                        .ino = parent,
                                        .ino2 = ino},
                  names);
    trace_unlock(self.trace);
    return rc;
}

static int
rec_renameat(int dirfd, const char *from, int dirfd2, const char *to)
{
    return rename_by(self.real.renameat, dirfd, from, dirfd2, to);
}

static int
rec_rename_new(int dirfd, const char *from, int dirfd2, const char *to)
{
    return rename_by(self.real.rename_new, dirfd, from, dirfd2, to);
}

static int
rec_unlinkat(int dirfd, const char *path, int flags)
{
    const char *name = base_of(path);
    uint64_t parent;
    int rc;

    trace_lock(self.trace);
    parent = parent_ino(dirfd, path);
    if (parent != 0 && is_struck())
        die();
    rc = self.real.unlinkat(dirfd, path, flags);
    if (rc == 0 && parent != 0)
        (void)put((struct record_event){.kind = RECORD_UNLINK,
                                        .len = (uint32_t)strlen(name) + 1,
                                        .ino = parent},
                  name);
    trace_unlock(self.trace);
    return rc;
}

/* Of a failed sync elsewhere. */
enum news {
    NO_NEWS,
    OLD_NEWS, /* it was over before this one began, which does its own work            */
    NEWS_BESIDE /* what it was to sync may be what this one was to                       */
};

/*
 * news_of -- has a sync of that file failed elsewhere, and this process does not know?  The
 * kernel tells each open description once; one for each process is near enough, since the
 * library does not reopen a file to sync it.
 */
static enum news
news_of(uint64_t ino)
{
    const struct record_trace *t = self.trace;
    enum news news = NO_NEWS;

    for (uint32_t i = 0; i < t->n_failed; i++) {
        if (t->failed[i] != ino || (self.told >> i & 1) != 0)
            continue;
        self.told |= UINT32_C(1) << i;
        if (news != NEWS_BESIDE)
            news = (t->over >> i & 1) != 0 ? OLD_NEWS : NEWS_BESIDE;
    }
    return news;
}

/* fail_now -- is it the turn of the process's sync of a file, which begins, to fail?  Its number,
   or NOT_IT. */
#define NOT_IT UINT32_MAX
static uint32_t
fail_now(uint64_t ino)
{
    struct record_trace *t = self.trace;

    if (self.fail_in == 0 || --self.fail_in > 0)
        return NOT_IT;
    must(t->n_failed < FAILS_MAX);
    self.told |= UINT32_C(1) << t->n_failed;
    t->failed[t->n_failed] = ino;
    return t->n_failed++;
}

/*
 * sync_fd -- both kinds of sync, and of both files and directories.
 *
 * One that is told of an older failure fails, but has done its work: the kernel writes what is
 * dirty, and looks for errors then.
 */
static int
sync_fd(int fd, int (*call)(int))
{
    struct record_event ev = {.kind = RECORD_SYNC_BEGIN};
    enum news news = NO_NEWS;
    uint32_t own = NOT_IT;
    int rc;

    trace_lock(self.trace);
    ev.ino = fd_ino(fd);
    if (ev.ino != 0) {
        if (is_struck())
            die();
        own = fail_now(ev.ino);
        news = news_of(ev.ino);
        ev.offset = put(ev, NULL);
    }
    trace_unlock(self.trace);
    be_slow();
    rc = own != NOT_IT ? -1 : call(fd);
    if (ev.ino == 0)
        return rc;
    trace_lock(self.trace);
    if (news_of(ev.ino) != NO_NEWS) /* meanwhile */
        news = NEWS_BESIDE;
    ev.kind = rc == 0 && news != NEWS_BESIDE ? RECORD_SYNC_END : RECORD_SYNC_FAIL;
    (void)put(ev, NULL);
    if (own != NOT_IT)
        self.trace->over |= UINT32_C(1) << own;
    trace_unlock(self.trace);
    if (own == NOT_IT && news == NO_NEWS)
        return rc;
    errno = self.error != 0 ? self.error : EIO;
    return -1;
}

static int
rec_fdatasync(int fd)
{
    return sync_fd(fd, self.real.fdatasync);
}

static int
rec_fsync(int fd)
{
    return sync_fd(fd, self.real.fsync);
}

/* A shared mapping that can be written would get past the recorder. */
static void *
rec_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (fd >= 0 && (flags & MAP_SHARED) != 0 && (prot & PROT_WRITE) != 0) {
        trace_lock(self.trace);
        must(fd_ino(fd) == 0);
        trace_unlock(self.trace);
    }
    return self.real.mmap(addr, n, prot, flags, fd, offset);
}

/* ---- On and off -------------------------------------------------------------------- */

void
record_start(struct record_trace *t, const char *root)
{
    struct stat st;

    must(stat(root, &st) == 0);
    t->device = (uint64_t)st.st_dev;
    if (t->root == 0)
        t->root = t->next_ino;
    if (slot_of(t, (uint64_t)st.st_ino)->ino == 0)
        record_track(t, (uint64_t)st.st_ino, t->root);
    self.trace = t;
    self.is_paused = false;
    if (self.is_on)
        return;
    self.is_on = true;
    self.real = xac_sys;
    xac_sys.openat = rec_openat;
    xac_sys.openat2 = rec_openat2;
    xac_sys.mkdirat = rec_mkdirat;
    xac_sys.pwrite = rec_pwrite;
    xac_sys.ftruncate = rec_ftruncate;
    xac_sys.fallocate = rec_fallocate;
    xac_sys.fstat = rec_fstat;
    xac_sys.statx = rec_statx;
    xac_sys.renameat = rec_renameat;
    xac_sys.rename_new = rec_rename_new;
    xac_sys.unlinkat = rec_unlinkat;
    xac_sys.fdatasync = rec_fdatasync;
    xac_sys.fsync = rec_fsync;
    xac_sys.mmap = rec_mmap;
}

void
record_stop(void)
{
    if (self.is_on)
        xac_sys = self.real;
    self.is_on = false;
    self.die_in = self.fail_in = self.slow_us = 0;
}

void
record_pause(bool is_paused)
{
    self.is_paused = is_paused;
}

void
record_die_at(uint64_t n, bool together)
{
    self.die_in = n;
    self.is_together = together;
}

void
record_revive(struct record_trace *t)
{
    t->all_die = 0;
    t->n_failed = t->over = 0;
}

void
record_fail_sync(uint64_t n, int error)
{
    self.fail_in = n;
    self.error = error;
}

void
record_slow(uint64_t sync_us, uint64_t seed)
{
    self.told = (uint32_t)((UINT64_C(1) << self.trace->n_failed) - 1);
    self.slow_us = sync_us;
    self.slow_seed = seed;
}
