/* SPDX-License-Identifier: MIT */
/*
 * target.c -- see target.h.
 */
#include <config.h>

#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sys.h"

const struct fuzz_target *
fuzz_target_at(size_t i)
{
    static const struct fuzz_target *const lists[] = {
        fuzz_env_targets,  fuzz_note_targets,  fuzz_heap_targets, fuzz_region_targets,
        fuzz_ship_targets, fuzz_group_targets, fuzz_list_targets};

    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        for (const struct fuzz_target *t = lists[k]; t->name != NULL; t++) {
            if (i-- == 0)
                return t;
        }
    }
    return NULL;
}

/* ---- An input ------------------------------------------------------------------------- */

uint64_t
fuzz_bytes(struct fuzz_input *in, unsigned n)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < n && in->left > 0; i++) {
        v |= (uint64_t)*in->at << (8 * i);
        in->at++;
        in->left--;
    }
    return v;
}

uint64_t
fuzz_below(struct fuzz_input *in, uint64_t n)
{
    unsigned bytes = n <= 256 ? 1 : n <= 65536 ? 2 : 4;

    return n == 0 ? 0 : fuzz_bytes(in, bytes) % n;
}

uint64_t
fuzz_number(struct fuzz_input *in, uint64_t was)
{
    uint64_t how = fuzz_bytes(in, 1);

    switch (how % 8) {
    case 0:
        return was + 1 + how / 8;
    case 1:
        return was - 1 - how / 8;
    case 2:
        return how / 8;
    case 3:
        return UINT64_MAX - how / 8;
    case 4:
        return UINT64_C(1) << (how / 8 * 2);
    case 5:
        return (UINT64_C(1) << (how / 8 * 2)) - 1;
    case 6:
        return was ^ UINT64_C(1) << (fuzz_bytes(in, 1) % 64);
    default:
        return fuzz_bytes(in, 8);
    }
}

void
fuzz_poke(struct fuzz_input *in, uint8_t *bytes, size_t size, size_t at)
{
    size_t n = (size_t)1 << fuzz_below(in, 4);
    uint64_t v = 0;

    if (size < n)
        return;
    at = at < size ? at / n * n : size - n;
    at = at + n <= size ? at : size - n;
    memcpy(&v, bytes + at, n);
    v = fuzz_number(in, v);
    memcpy(bytes + at, &v, n);
}

void
fuzz_edit(struct fuzz_input *in, uint8_t *bytes, size_t *np, size_t room)
{
    size_t n;

    switch (fuzz_bytes(in, 1) % 8) {
    case 0: /* a few bytes */
        n = (size_t)fuzz_below(in, *np);
        for (uint64_t k = fuzz_bytes(in, 1) % 16 + 1; k > 0 && n < *np; k--)
            bytes[n++] = (uint8_t)fuzz_bytes(in, 1);
        break;
    case 1: /* another end */
        n = (size_t)fuzz_below(in, room + 1);
        if (n > *np)
            memset(bytes + *np, 0, n - *np);
        *np = n;
        break;
    default: /* a field, mostly near the begin */
        n = (size_t)fuzz_bytes(in, 1);
        if (n >= 240)
            n = (size_t)fuzz_bytes(in, 2);
        fuzz_poke(in, bytes, *np, *np != 0 ? n % *np : 0);
        break;
    }
}

/* ---- Around it ------------------------------------------------------------------------ */

_Noreturn void
fuzz_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fputs("fuzz: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

void
fuzz_told(const char *call, int rc)
{
    if (rc != 0 && xac_err_text()[0] == '\0')
        fuzz_fail("%s: %d without a word", call, rc);
    xac_err_clear();
}

static char scratch[PATH_MAX];
static pid_t owner;

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void
remove_scratch(void)
{
    if (getpid() == owner)
        (void)nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
fuzz_scratch(void)
{
    const char *base = getenv("XAC_TEST_DIR");

    if (owner != 0)
        return scratch;
    if (base == NULL)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(scratch, sizeof scratch, "%s/xac-fuzz-XXXXXX", base);
    fuzz_must(mkdtemp(scratch) != NULL && chdir(scratch) == 0);
    owner = getpid();
    fuzz_must(atexit(remove_scratch) == 0);
    return scratch;
}

/* ---- Files ---------------------------------------------------------------------------- */

void
fuzz_put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    fuzz_must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    (void)close(fd);
}

uint8_t *
fuzz_get(const char *path, size_t *np)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes;
    struct stat st;

    fuzz_must(fd >= 0 && fstat(fd, &st) == 0);
    *np = (size_t)st.st_size;
    bytes = (uint8_t *)malloc(*np + 1);
    fuzz_must(bytes != NULL && read(fd, bytes, *np) == (ssize_t)*np);
    (void)close(fd);
    return bytes;
}

static void
empty(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        char name[PATH_MAX];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name) != 0) {
            empty(name);
            fuzz_must(rmdir(name) == 0);
        }
    }
    if (d != NULL)
        (void)closedir(d);
}

int
fuzz_fresh(const char *name)
{
    int fd;

    fuzz_watch();
    fuzz_must(mkdir(name, 0700) == 0 || errno == EEXIST);
    empty(name);
    fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fuzz_must(fd >= 0);
    return fd;
}

/* ---- The watch ------------------------------------------------------------------------ */

static struct xac_sys real;

/* must_be_inside -- a path that the kernel has resolved. */
static void
must_be_inside(const char *what, const char *path)
{
    size_t n = strlen(scratch);

    if (strncmp(path, scratch, n) != 0 || (path[n] != '/' && path[n] != '\0')
        || strstr(path, "/../") != NULL)
        fuzz_fail("%s outside: %s", what, path);
}

static void
fd_must_be_inside(const char *what, int fd)
{
    char link[64], path[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (n > 0 && strncmp(path, "/memfd:", 7) != 0) {
        path[n] = '\0';
        must_be_inside(what, path);
    }
}

/* name_must_be_inside -- a name that is to be removed or changed, in a directory. */
static void
name_must_be_inside(const char *what, int dirfd, const char *name)
{
    char path[PATH_MAX], full[2 * PATH_MAX];
    char *slash;

    if (*name == '/' || strchr(name, '/') == NULL) {
        if (*name == '/')
            must_be_inside(what, name);
        else if (dirfd != AT_FDCWD)
            fd_must_be_inside(what, dirfd);
        return;
    }
    (void)snprintf(path, sizeof path, "%s", name);
    slash = strrchr(path, '/');
    *slash = '\0';
    if (dirfd == AT_FDCWD)
        (void)snprintf(full, sizeof full, "%s", path);
    else
        (void)snprintf(full, sizeof full, "/proc/self/fd/%d/%s", dirfd, path);
    if (realpath(full, path) != NULL)
        must_be_inside(what, path);
}

static int
watch_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    if ((flags & (O_CREAT | O_TRUNC)) != 0)
        name_must_be_inside("made", dirfd, path);
    return real.openat(dirfd, path, flags, mode);
}

static ssize_t
watch_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    fd_must_be_inside("written", fd);
    return real.pwrite(fd, buf, n, offset);
}

static int
watch_ftruncate(int fd, off_t length)
{
    fd_must_be_inside("cut", fd);
    return real.ftruncate(fd, length);
}

static int
watch_fallocate(int fd, int mode, off_t offset, off_t length)
{
    fd_must_be_inside("grown", fd);
    return real.fallocate(fd, mode, offset, length);
}

static int
watch_unlinkat(int dirfd, const char *path, int flags)
{
    name_must_be_inside("removed", dirfd, path);
    return real.unlinkat(dirfd, path, flags);
}

static int
watch_renameat(int dirfd, const char *from, int dirfd2, const char *to)
{
    name_must_be_inside("renamed", dirfd, from);
    name_must_be_inside("renamed to", dirfd2, to);
    return real.renameat(dirfd, from, dirfd2, to);
}

void
fuzz_watch(void)
{
    (void)fuzz_scratch();
    if (real.openat != NULL)
        return;
    real = xac_sys;
    xac_sys.openat = watch_openat;
    xac_sys.pwrite = watch_pwrite;
    xac_sys.ftruncate = watch_ftruncate;
    xac_sys.fallocate = watch_fallocate;
    xac_sys.unlinkat = watch_unlinkat;
    xac_sys.renameat = watch_renameat;
}
