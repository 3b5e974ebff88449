/* SPDX-License-Identifier: MIT */
/*
 * address_list.c -- see address_list.h.
 */
#include <config.h>

#include "shared/address_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"

#define FIRST_LINE "xac-addresses 1\n"

/* A list that is shorter is replaced as a whole, which costs little: a sync that fails can spoil
   the block that it writes, with lines that others rely on. */
#define APPEND_FROM   ((size_t)32 << 10)
#define NEW_NAME      "xac-addresses-new"
#define DIGITS        16u /* of an address */
#define BUCKETS_FIRST 64u

void
xac_address_list_free(struct xac_address_list *a)
{
    free(a->text);
    free(a->line);
    free(a->bucket);
    *a = (struct xac_address_list){.n_lines = 0};
}

/* ---- Memory ------------------------------------------------------------------------- */

/* reserve_text -- room for so many bytes; ret 0 or ENOMEM. */
static int
reserve_text(struct xac_address_list *a, size_t need)
{
    size_t room = a->room * 2 > need ? a->room * 2 : need;
    char *text = need > a->room ? (char *)realloc(a->text, room) : a->text;

    if (text == NULL && need > a->room)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    if (need > a->room)
        a->room = room;
    a->text = text;
    xac_assert(a->room >= need);
    return 0;
}

/* bucket_of -- where a path is, or would be; there is a free one. */
static uint32_t *
bucket_of(const struct xac_address_list *a, const char *path, size_t n)
{
    uint64_t h = xac_xxh64(path, n);

    xac_assert(a->n_lines < a->n_buckets);
    xac_assert((a->n_buckets & (a->n_buckets - 1)) == 0);
    for (;; h++) {
        uint32_t *bucket = &a->bucket[h & (a->n_buckets - 1)];
        const struct xac_address_line *line;

        if (*bucket == 0)
            return bucket;
        line = &a->line[*bucket - 1];
        if (line->path_len == n && memcmp(a->text + line->path, path, n) == 0)
            return bucket;
    }
}

/* reserve_line -- room for one more line, and a bucket; ret 0 or ENOMEM. */
static int
reserve_line(struct xac_address_list *a)
{
    struct xac_address_line *line;
    uint32_t n_buckets = a->n_buckets == 0 ? BUCKETS_FIRST : a->n_buckets * 2;
    uint32_t *bucket;

    if (a->n_lines + 1 < a->n_buckets / 2)
        return 0;
    line = (struct xac_address_line *)realloc(a->line, n_buckets / 2 * sizeof line[0]);
    if (line != NULL)
        a->line = line;
    bucket = line != NULL ? (uint32_t *)calloc(n_buckets, sizeof bucket[0]) : NULL;
    if (bucket == NULL)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    free(a->bucket);
    a->bucket = bucket;
    a->n_buckets = n_buckets;
    xac_assert(a->n_lines < a->n_buckets / 2);
    for (uint32_t i = 0; i < a->n_lines; i++)
        *bucket_of(a, a->text + line[i].path, line[i].path_len) = i + 1;
    return 0;
}

/* ---- Lines -------------------------------------------------------------------------- */

/* digit_of -- value of a hexadecimal digit; -1: it is none. */
static int
digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* line_parse -- bytes of the line at the beginning of a text; 0: there is none. */
static size_t
line_parse(const char *text, size_t n, uint64_t *addressp)
{
    const char *end = (const char *)memchr(text, '\n', n);

    if (end == NULL || (size_t)(end - text) < DIGITS + 2 || text[DIGITS] != ' '
        || memchr(text, '\0', (size_t)(end - text)) != NULL)
        return 0;
    *addressp = 0;
    for (unsigned i = 0; i < DIGITS; i++) {
        int digit = digit_of(text[i]);

        if (digit < 0)
            return 0;
        *addressp = *addressp << 4 | (uint64_t)digit;
    }
    xac_assert(text[(size_t)(end - text)] == '\n');
    return (size_t)(end - text) + 1;
}

/* slot_of -- of a candidate. */
static uint64_t
slot_of(uint64_t address)
{
    xac_assert(address >= XAC_CANDIDATE_FIRST);
    return (address - XAC_CANDIDATE_FIRST) / XAC_CANDIDATE_SLOT;
}

/* line_take -- the line of n bytes that begins behind the ones in use. */
static int
line_take(struct xac_address_list *a, size_t n, uint64_t address)
{
    struct xac_address_line line = {.address = address,
                                    .path = (uint32_t)a->used + DIGITS + 1,
                                    .path_len = (uint32_t)n - DIGITS - 2};
    int rc = reserve_line(a);

    xac_assert(n > DIGITS + 2);
    xac_assert(a->used + n <= a->room);
    if (rc != 0)
        return rc;
    a->text[a->used + n - 1] = '\0';
    *bucket_of(a, a->text + line.path, line.path_len) = a->n_lines + 1;
    a->line[a->n_lines++] = line;
    a->used += n;
    if (address >= XAC_CANDIDATE_FIRST && address < XAC_CANDIDATE_END)
        a->slot[slot_of(address)] = a->n_lines;
    xac_assert(a->used <= a->room);
    xac_assert(a->n_lines < a->n_buckets);
    return 0;
}

/* check_rest -- behind what is no line there must be none: invariant (1). */
static int
check_rest(const struct xac_address_list *a, const char *at, const char *end)
{
    uint64_t address;

    while ((at = (const char *)memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        if (line_parse(at, (size_t)(end - at), &address) != 0)
            return xac_err(XAC_EDAMAGED, "%s: line %u: no address and path",
                           XAC_ADDRESSES_NAME, (unsigned)a->n_lines + 2);
    }
    return 0;
}

/* take -- what has been read, n bytes behind those in use. */
static int
take(struct xac_address_list *a, size_t n)
{
    const char *end = a->text + a->used + n;
    uint64_t address;
    size_t length;

    xac_assert(a->used + n <= a->room);
    if (a->used == 0 && n != 0) {
        length = strlen(FIRST_LINE);
        if (n < length || memcmp(a->text, FIRST_LINE, length) != 0)
            return xac_err(XAC_EVERSION, "%s", XAC_ADDRESSES_NAME);
        a->used = length;
    }
    for (;;) {
        const char *at = a->text + a->used;

        length = line_parse(at, (size_t)(end - at), &address);
        if (length == 0)
            return check_rest(a, at, end);
        if (line_take(a, length, address) != 0)
            return ENOMEM;
    }
}

const struct xac_address_line *
xac_address_list_find(const struct xac_address_list *a, const char *path)
{
    uint32_t found = a->n_lines == 0 ? 0 : *bucket_of(a, path, strlen(path));

    return found == 0 ? NULL : &a->line[found - 1];
}

const char *
xac_address_list_path(const struct xac_address_list *a,
                      const struct xac_address_line *line)
{
    xac_assert(line->path + line->path_len < a->used);
    return a->text + line->path;
}

bool
xac_address_list_has(const struct xac_address_list *a, int dirfd, uint64_t from,
                     uint64_t end)
{
    const struct xac_address_line *before;
    uint64_t room = XAC_CANDIDATE_SLOT;
    uint64_t at = slot_of(from);
    struct statx st;

    xac_assert(from < end);
    xac_assert(end <= XAC_CANDIDATE_END);
    for (uint64_t i = at; i < XAC_CANDIDATE_SLOTS && i <= slot_of(end - 1); i++) {
        if (a->slot[i] != 0)
            return true;
    }
    while (at > 0 && a->slot[at - 1] == 0)
        at--;
    if (at == 0)
        return false;
    before = &a->line[a->slot[at - 1] - 1];
    if (xac_sys.statx(dirfd, xac_address_list_path(a, before), 0, STATX_SIZE, &st) == 0
        && st.stx_size > room)
        room = st.stx_size;
    return room > from - before->address;
}

/* ---- The file ----------------------------------------------------------------------- */

/* open_list -- ret 0, ENOENT without words, or an error. */
static int
open_list(int dirfd, int flags, int *fdp)
{
    int fd = xac_sys.openat(dirfd, XAC_ADDRESSES_NAME,
                            flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

    *fdp = fd;
    if (fd >= 0)
        return 0;
    return errno == ENOENT ? ENOENT : xac_err(errno, "%s", XAC_ADDRESSES_NAME);
}

/* look -- which file is open, and how long it is; another one has not been read. */
static int
look(struct xac_address_list *a, int fd)
{
    struct xac_identity who;
    struct stat st;
    int rc = xac_sys.fstat(fd, &st) != 0 ? errno : xac_identity_of(fd, &who);

    xac_assert(fd >= 0);
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = EINVAL;
    if (rc == 0 && (uint64_t)st.st_size > XAC_ADDRESSES_BYTES_MAX)
        rc = EFBIG;
    if (rc != 0)
        return xac_err(rc, "%s", XAC_ADDRESSES_NAME);
    if (!xac_identity_is_same(&who, &a->who) || (uint64_t)st.st_size < a->used)
        xac_address_list_free(a);
    a->who = who;
    a->file_bytes = (uint64_t)st.st_size;
    xac_assert(a->used <= a->file_bytes);
    return 0;
}

int
xac_address_list_read(struct xac_address_list *a, int dirfd)
{
    size_t got = 0;
    int fd;
    int rc = open_list(dirfd, O_RDONLY, &fd);

    xac_assert(a->used <= a->room);
    if (rc != 0)
        xac_address_list_free(a);
    if (rc != 0)
        return rc == ENOENT ? 0 : rc;
    rc = look(a, fd);
    if (rc == 0 && a->file_bytes > a->used) {
        rc = reserve_text(a, (size_t)a->file_bytes);
        if (rc == 0) {
            rc = xac_read_full(fd, a->text + a->used, (size_t)a->file_bytes - a->used,
                               a->used, &got);
            rc = rc == 0 ? take(a, got) : xac_err(rc, "%s", XAC_ADDRESSES_NAME);
        }
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* replace_by -- the file by another one; n bytes. */
static int
replace_by(struct xac_address_list *a, int dirfd, const char *text, size_t n,
           bool is_synced)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = NEW_NAME,
                            .name = XAC_ADDRESSES_NAME,
                            .is_synced = is_synced};
    int rc = xac_newfile_replace(&f, text, n, NULL);

    xac_assert(n > 0);
    xac_assert(text[n - 1] == '\n');
    if (rc != 0)
        return xac_err(rc, "%s", XAC_ADDRESSES_NAME);
    rc = xac_address_list_read(a, dirfd);
    if (is_synced)
        a->synced = a->used;
    return rc;
}

/* replace -- the file with its lines and this one, as a new file. */
static int
replace(struct xac_address_list *a, int dirfd, const char *line, size_t n, bool is_synced)
{
    size_t old = a->used != 0 ? a->used : strlen(FIRST_LINE);
    char *text = (char *)malloc(old + n);
    int rc;

    xac_assert(n > 0);
    xac_assert(line[n - 1] == '\n');
    if (text == NULL)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    memcpy(text, a->used != 0 ? a->text : FIRST_LINE, old);
    for (char *end = text;
         (end = (char *)memchr(end, '\0', (size_t)(text + old - end))) != NULL;)
        *end = '\n';
    memcpy(text + old, line, n);
    rc = replace_by(a, dirfd, text, old + n, is_synced);
    free(text);
    return rc;
}

int
xac_address_list_remove(struct xac_address_list *a, int dirfd, const char *path,
                        bool is_synced)
{
    size_t n = strlen(FIRST_LINE), size = a->used;
    char *text;
    int rc;

    xac_assert(path[0] != '\0');
    if (xac_address_list_find(a, path) == NULL)
        return 0;
    text = (char *)malloc(size);
    if (text == NULL)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    memcpy(text, FIRST_LINE, n);
    for (uint32_t i = 0; i < a->n_lines; i++) {
        const struct xac_address_line *line = &a->line[i];

        if (strcmp(a->text + line->path, path) != 0)
            n += (size_t)snprintf(text + n, size - n, "%016" PRIx64 " %s\n",
                                  line->address, a->text + line->path);
    }
    xac_assert(n < size); /* at least a line less */
    rc = replace_by(a, dirfd, text, n, is_synced);
    free(text);
    return rc;
}

/* append -- write a line behind the others, and nothing if that fails; ret 0 or errno. */
static int
append(const struct xac_address_list *a, int fd, const char *line, size_t n,
       bool is_synced)
{
    int rc = 0;

    xac_assert(fd >= 0);
    xac_assert(line[n - 1] == '\n');
    xac_assert(a->file_bytes >= a->used);
    if (a->file_bytes > a->used && xac_sys.ftruncate(fd, (off_t)a->used) != 0)
        return errno;
    rc = xac_write_full(fd, line, n, a->used);
    xac_kill_point("address written");
    if (rc == 0 && is_synced && xac_sys.fdatasync(fd) != 0)
        rc = errno;
    if (rc != 0)
        (void)xac_sys.ftruncate(fd, (off_t)a->used); /* else who appends next does it */
    return rc;
}

int
xac_address_list_add(struct xac_address_list *a, int dirfd, const char *path,
                     uint64_t address, bool is_synced)
{
    char *line = NULL;
    int n = asprintf(&line, "%016" PRIx64 " %s\n", address, path);
    int fd = -1;
    int rc = n < 0 ? xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME) : 0;

    xac_assert(path[0] != '\0');
    xac_assert(address != 0);
    xac_assert(strchr(path, '\n') == NULL);
    if (rc == 0 && a->used + (size_t)n > XAC_ADDRESSES_BYTES_MAX)
        rc = xac_err(EFBIG, "%s", XAC_ADDRESSES_NAME);
    if (rc == 0)
        rc = reserve_text(a, a->used + (size_t)n);
    if (rc == 0)
        rc = reserve_line(a);
    if (rc == 0)
        rc = a->used < APPEND_FROM ? ENOENT : open_list(dirfd, O_WRONLY, &fd);
    if (rc == ENOENT || rc == EACCES) { /* a short list, or another user's file */
        rc = replace(a, dirfd, line, (size_t)n, is_synced);
    } else if (rc == 0) {
        rc = append(a, fd, line, (size_t)n, is_synced);
        if (rc == 0) {
            memcpy(a->text + a->used, line, (size_t)n);
            rc = line_take(a, (size_t)n, address);
            a->file_bytes = a->used;
            a->synced = is_synced ? a->used : a->synced;
        } else {
            (void)xac_err(rc, "%s", XAC_ADDRESSES_NAME);
        }
    }
    if (fd >= 0)
        (void)xac_sys.close(fd);
    free(line);
    return rc;
}

int
xac_address_list_sync(struct xac_address_list *a, int dirfd,
                      const struct xac_address_line *line)
{
    int fd;
    int rc = 0;

    xac_assert((size_t)line->path + line->path_len < a->used);
    if ((size_t)line->path + line->path_len < a->synced)
        return 0;
    rc = open_list(dirfd, O_RDONLY, &fd);
    if (rc == 0 && xac_sys.fdatasync(fd) != 0)
        rc = xac_err(errno, "%s", XAC_ADDRESSES_NAME);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    /* Its maker may have died between the rename and the sync of the directory. */
    if (rc == 0 && (rc = xac_sync_dir(dirfd)) != 0)
        rc = xac_err(rc, "%s: sync the directory", XAC_ADDRESSES_NAME);
    if (rc == 0)
        a->synced = a->used;
    return rc;
}
