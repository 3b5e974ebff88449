/* SPDX-License-Identifier: MIT */
/*
 * address.c -- see address.h.
 */
#include <config.h>

#include "address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "digest.h"
#include "env.h"
#include "err.h"
#include "newfile.h"
#include "registry.h"
#include "stored.h"
#include "sys.h"
#include "tsan.h"
#include "view.h"

#define FIRST_LINE "xac-addresses 1\n"
#define NEW_NAME   "xac-addresses-new"
#define FILE_MAX   ((size_t)16 << 20)

/*
 * Candidates for a file that has no address yet: far from where the kernel puts things, so
 * that other programs are likely to have them free, too.  A file gets a slot with room for
 * twice its length, and at least the smallest, so that it can grow where it is.
 */
#define CANDIDATE_FIRST UINT64_C(0x200000000000)
#define CANDIDATE_END   UINT64_C(0x600000000000)
#define SLOT_LEAST      (UINT64_C(16) << 30)
#define CANDIDATE_TRIES 16

/* ---- The file of addresses ------------------------------------------------------------ */

/* text_read -- the whole file, NUL-terminated; "" if there is none; to be freed. */
static int
text_read(struct xac_env *env, char **textp)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    int fd = xac_sys.openat(env->dirfd, XAC_ADDRESSES_NAME, flags, 0);
    struct stat st;
    size_t got = 0;
    int rc = 0;

    if (fd < 0 && errno != ENOENT)
        return xac_err(errno, "%s", XAC_ADDRESSES_NAME);
    if (fd >= 0 && (xac_sys.fstat(fd, &st) != 0 || (uint64_t)st.st_size > FILE_MAX))
        rc = xac_err(EFBIG, "%s", XAC_ADDRESSES_NAME);
    *textp = rc == 0 ? (char *)calloc(1, fd < 0 ? 1 : (size_t)st.st_size + 1) : NULL;
    if (rc == 0 && *textp == NULL)
        rc = xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    if (rc == 0 && fd >= 0)
        rc = xac_read_full(fd, *textp, (size_t)st.st_size, 0, &got);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc == 0 && got > 0 && strncmp(*textp, FIRST_LINE, strlen(FIRST_LINE)) != 0)
        rc = xac_err(XAC_EVERSION, "%s", XAC_ADDRESSES_NAME);
    if (rc != 0) {
        free(*textp);
        *textp = NULL;
    }
    return rc;
}

/* One line: an address and a path, which ends where the line does. */
struct line {
    uint64_t address;
    const char *path;
    size_t path_len;
};

/* line_next -- the line behind the newline that *atp points to; false: there is none. */
static bool
line_next(const char **atp, struct line *out)
{
    char *end;

    if (*atp == NULL || (*atp)[1] == '\0')
        return false;
    out->address = strtoull(*atp + 1, &end, 16);
    out->path = *end == ' ' ? end + 1 : end;
    out->path_len = strcspn(out->path, "\n");
    *atp = strchr(out->path, '\n');
    return true;
}

/* text_find -- address of a file in the text; 0 if it is not there. */
static uint64_t
text_find(const char *text, const char *path)
{
    const char *at = strchr(text, '\n');
    struct line line;

    while (line_next(&at, &line)) {
        if (line.path_len == strlen(path) && strncmp(line.path, path, line.path_len) == 0)
            return line.address;
    }
    return 0;
}

/* room_of -- bytes that a file may need from its address on. */
static uint64_t
room_of(const struct xac_env *env, const struct line *line)
{
    char *path = NULL;
    struct stat st = {.st_size = 0};

    if (asprintf(&path, "%s%s%.*s", *line->path == '/' ? "" : env->dir,
                 *line->path == '/' ? "" : "/", (int)line->path_len, line->path)
        >= 0) {
        if (stat(path, &st) != 0)
            st.st_size = 0;
        free(path);
    }
    return (uint64_t)st.st_size > SLOT_LEAST ? (uint64_t)st.st_size : SLOT_LEAST;
}

/* text_promises -- do the addresses [from, end) belong to a file already? */
static bool
text_promises(const struct xac_env *env, const char *text, uint64_t from, uint64_t end)
{
    const char *at = strchr(text, '\n');
    struct line line;

    while (line_next(&at, &line)) {
        if (line.address < end && from < line.address + room_of(env, &line))
            return true;
    }
    return false;
}

int
xac_address_each(struct xac_env *env, int (*fn)(void *arg, const char *path), void *arg)
{
    char *text;
    const char *at;
    struct line line;
    int rc = text_read(env, &text);

    if (rc != 0)
        return rc;
    at = strchr(text, '\n');
    for (unsigned n = 2; rc == 0 && line_next(&at, &line); n++) {
        char *path = strndup(line.path, line.path_len);

        if (path == NULL)
            rc = xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
        else if (path[0] != '/' && !xac_stored_is_inside(path))
            rc = xac_err(XAC_EDAMAGED, "%s: line %u: %s is no path of a file",
                         XAC_ADDRESSES_NAME, n, path);
        else
            rc = fn(arg, path);
        free(path);
    }
    free(text);
    return rc;
}

/* text_write -- replace the file; synced if commits are to be durable. */
static int
text_write(struct xac_env *env, const char *text)
{
    struct xac_newfile f = {.dirfd = env->dirfd,
                            .made = NEW_NAME,
                            .name = XAC_ADDRESSES_NAME,
                            .is_synced = xac_env_is_durable(env)};
    int rc = xac_newfile_replace(&f, text, strlen(text), NULL);

    return rc == 0 ? 0 : xac_err(rc, "%s", XAC_ADDRESSES_NAME);
}

/* ---- Choosing ------------------------------------------------------------------------- */

/* map_at -- a part of a file at that address if it is free; MAP_FAILED with errno. */
static void *
map_at(uint64_t address, const struct xac_view *v, uint64_t offset, size_t length)
{
    void *wanted = (void *)(uintptr_t)address;
    void *p = xac_sys.mmap(wanted, length, PROT_NONE,
                           MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE, v->fd,
                           (off_t)offset);

    if (p != MAP_FAILED && p != wanted) { /* a kernel before 4.17 takes it for a hint */
        (void)xac_sys.munmap(p, length);
        errno = EEXIST;
        p = MAP_FAILED;
    }
    return p;
}

/* offset_of -- bytes of the file before the view. */
static uint64_t
offset_of(const struct xac_view *v)
{
    return v->first * v->page_size;
}

/* is_usable -- the thread sanitizer has plans of its own for the candidates' addresses, and
   does not bear it if somebody uses them. */
static bool
is_usable(uint64_t address)
{
    return !xac_tsan_is_on() || address < CANDIDATE_FIRST || address >= CANDIDATE_END;
}

/* map_candidate -- one of the addresses that suit the file's name. */
static void *
map_candidate(const struct xac_view *v)
{
    uint64_t h = xac_xxh64(v->path, strlen(v->path));
    uint64_t need = offset_of(v) + v->length;
    uint64_t slot = SLOT_LEAST, slots;
    void *p = MAP_FAILED;
    char *text;

    while (slot < 2 * need && slot < CANDIDATE_END)
        slot *= 2;
    slots = (CANDIDATE_END - CANDIDATE_FIRST) / slot;
    if (slots == 0 || text_read(v->env, &text) != 0)
        return MAP_FAILED;
    for (uint64_t i = 0; i < CANDIDATE_TRIES && p == MAP_FAILED; i++) {
        uint64_t address = CANDIDATE_FIRST + (h + i * 257) % slots * slot;

        if (!text_promises(v->env, text, address, address + need))
            p = map_at(address + offset_of(v), v, offset_of(v), v->length);
    }
    free(text);
    return p;
}

/* remembered -- the file's address, from its entry or from the last run; 0: none. */
static uint64_t
remembered(const struct xac_view *v)
{
    struct xac_env *env = v->env;
    uint64_t address = 0;
    uint32_t id = 0;
    char *text;

    xac_registry_enter(env);
    if (xac_registry_find(env, v->path, &v->who, &id) == 0 && id != 0)
        address =
            atomic_load_explicit(&xac_file_at(env, id)->address, memory_order_relaxed);
    xac_registry_exit(env);
    if (address == 0 && text_read(env, &text) == 0) {
        address = text_find(text, v->path);
        free(text);
    }
    return address;
}

/* taken -- the error for addresses that could not be had (errno): who has them? */
static int
taken(const struct xac_view *v, uint64_t address, size_t length)
{
    int error = errno == EEXIST ? EADDRINUSE : errno;
    int fd = xac_sys.openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    FILE *maps = fd >= 0 ? fdopen(fd, "rc") : NULL; /* c: no cancellation points */
    char *line = NULL;
    size_t size = 0;
    bool is_found = false;

    while (maps != NULL && !is_found && getline(&line, &size, maps) > 0) {
        char *rest;
        uint64_t from = strtoull(line, &rest, 16);
        uint64_t end = *rest == '-' ? strtoull(rest + 1, NULL, 16) : 0;

        is_found = from < address + length && address < end;
        line[strcspn(line, "\n")] = '\0';
    }
    if (is_found)
        error = xac_err(EADDRINUSE, "%s: %zu bytes belong at %#llx; in the way: %s",
                        v->name, length, (unsigned long long)address, line);
    else
        error = xac_err(error, "%s: mapping %zu bytes at %#llx", v->name, length,
                        (unsigned long long)address);
    free(line);
    if (maps != NULL)
        (void)fclose(maps);
    else if (fd >= 0)
        (void)xac_sys.close(fd);
    return error;
}

int
xac_address_map(struct xac_view *v, bool is_same)
{
    uint64_t address = remembered(v);
    void *p = MAP_FAILED;

    if (!is_usable(address) && is_same)
        return xac_err(EADDRINUSE, "%s: the thread sanitizer keeps %#llx for itself",
                       v->name, (unsigned long long)address);
    if (address != 0 && is_usable(address))
        p = map_at(address + offset_of(v), v, offset_of(v), v->length);
    if (p == MAP_FAILED && address != 0 && is_same)
        return taken(v, address + offset_of(v), v->length);
    if (p == MAP_FAILED && is_usable(CANDIDATE_FIRST))
        p = map_candidate(v);
    if (p == MAP_FAILED)
        p = xac_sys.mmap(NULL, v->length, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, v->fd,
                         (off_t)offset_of(v));
    if (p == MAP_FAILED)
        return xac_err(errno, "mapping %s", v->name);
    v->base = (uint8_t *)p;
    return 0;
}

int
xac_address_extend(const struct xac_view *v, size_t length)
{
    uint64_t address = (uint64_t)(uintptr_t)v->base + v->length;

    if (map_at(address, v, offset_of(v) + v->length, length - v->length) != MAP_FAILED)
        return 0;
    return taken(v, address, length - v->length);
}

/* address_of -- where the file's first byte would be; 0: nowhere. */
static uint64_t
address_of(const struct xac_view *v)
{
    uint64_t base = (uint64_t)(uintptr_t)v->base;

    return base > offset_of(v) ? base - offset_of(v) : 0;
}

bool
xac_address_is_kept(const struct xac_view *v)
{
    const struct xac_file *f = xac_file_at(v->env, v->file);

    return atomic_load_explicit(&f->address, memory_order_relaxed) == address_of(v);
}

int
xac_address_keep(struct xac_env *env, const struct xac_view *v)
{
    struct xac_file *f = xac_file_at(env, v->file);
    uint64_t address = address_of(v);
    char *text = NULL, *longer = NULL;
    int rc = 0;

    if (atomic_load_explicit(&f->address, memory_order_relaxed) != 0 || address == 0
        || env->frozen != NULL || strchr(v->path, '\n') != NULL)
        return 0;
    rc = text_read(env, &text);
    if (rc == 0 && text_find(text, v->path) == 0) {
        if (asprintf(&longer, "%s%016" PRIx64 " %s\n", *text != '\0' ? text : FIRST_LINE,
                     address, v->path)
            < 0)
            rc = xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
        else
            rc = text_write(env, longer);
        free(longer);
    } else if (rc == 0) {
        address = text_find(text, v->path); /* taken here, but perhaps free elsewhere */
    }
    free(text);
    if (rc == 0)
        atomic_store_explicit(&f->address, address, memory_order_relaxed);
    return rc;
}
