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
#include "registry.h"
#include "sys.h"

#define FIRST_LINE "xac-addresses 1\n"
#define NEW_NAME   "xac-addresses-new"
#define FILE_MAX   ((size_t)16 << 20)

/*
 * Candidates for a file that has no address yet: far from where the kernel puts things, so
 * that other programs are likely to have them free, too.
 */
#define CANDIDATE_FIRST UINT64_C(0x200000000000)
#define CANDIDATE_STEP  (UINT64_C(16) << 30)
#define CANDIDATES      4096
#define CANDIDATE_TRIES 16

/* ---- The file of addresses ------------------------------------------------------------ */

/* text_read -- the whole file, NUL-terminated; "" if there is none; to be freed. */
static int
text_read(struct xac_env *env, char **textp)
{
    int fd = xac_sys.openat(env->dirfd, XAC_ADDRESSES_NAME, O_RDONLY | O_CLOEXEC, 0);
    struct stat st;
    size_t got = 0;
    int rc = 0;

    if (fd < 0 && errno != ENOENT)
        return xac_err(errno, "%s", XAC_ADDRESSES_NAME);
    if (fd >= 0 && (xac_sys.fstat(fd, &st) != 0 || (uint64_t)st.st_size > FILE_MAX))
        rc = xac_err(EFBIG, "%s", XAC_ADDRESSES_NAME);
    *textp = rc == 0 ? (char *)calloc(1, fd < 0 ? 1 : (size_t)st.st_size + 1) : NULL;
    if (rc == 0 && *textp == NULL)
        rc = ENOMEM;
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

/* text_find -- address of a file in the text; 0 if it is not there. */
static uint64_t
text_find(const char *text, const char *path)
{
    for (const char *line = strchr(text, '\n'); line != NULL && line[1] != '\0';
         line = strchr(line + 1, '\n')) {
        char *end;
        uint64_t address = strtoull(line + 1, &end, 16);
        size_t n = strcspn(end, "\n");

        if (*end == ' ' && n == strlen(path) + 1 && strncmp(end + 1, path, n - 1) == 0)
            return address;
    }
    return 0;
}

/* text_write -- replace the file; synced if commits are to be durable. */
static int
text_write(struct xac_env *env, const char *text)
{
    int fd = xac_sys.openat(env->dirfd, NEW_NAME,
                            O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc;

    if (fd < 0)
        return xac_err(errno, "%s", NEW_NAME);
    rc = xac_write_full(fd, text, strlen(text), 0);
    if (rc == 0 && xac_env_is_durable(env) && xac_sys.fsync(fd) != 0)
        rc = errno;
    (void)xac_sys.close(fd);
    if (rc == 0
        && xac_sys.renameat(env->dirfd, NEW_NAME, env->dirfd, XAC_ADDRESSES_NAME) != 0)
        rc = errno;
    if (rc == 0 && xac_env_is_durable(env))
        rc = xac_sync_dir(env->dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s", XAC_ADDRESSES_NAME);
}

/* ---- Choosing ------------------------------------------------------------------------- */

/* map_at -- the file at that address if it is free; MAP_FAILED if not. */
static void *
map_at(uint64_t address, int fd, size_t length)
{
    void *wanted = (void *)(uintptr_t)address;
    void *p = xac_sys.mmap(wanted, length, PROT_NONE,
                           MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);

    if (p != MAP_FAILED && p != wanted) { /* a kernel before 4.17 takes it for a hint */
        (void)xac_sys.munmap(p, length);
        p = MAP_FAILED;
    }
    return p;
}

#if !defined(__SANITIZE_THREAD__) /* which has plans of its own for those addresses */
/* map_candidate -- one of the addresses that suit the file's name. */
static void *
map_candidate(const char *path, int fd, size_t length)
{
    uint64_t h = xac_xxh64(path, strlen(path));

    for (uint64_t i = 0; i < CANDIDATE_TRIES; i++) {
        uint64_t k = (h + i * 257) % CANDIDATES;
        void *p = map_at(CANDIDATE_FIRST + k * CANDIDATE_STEP, fd, length);

        if (p != MAP_FAILED)
            return p;
    }
    return MAP_FAILED;
}
#endif

/* remembered -- the file's address, from its entry or from the last run; 0: none. */
static uint64_t
remembered(struct xac_env *env, const char *path, int fd)
{
    uint64_t address = 0;
    struct stat st;
    uint32_t id = 0;
    char *text;

    xac_registry_enter(env);
    if (xac_sys.fstat(fd, &st) == 0 && xac_registry_find(env, path, &st, &id) == 0
        && id != 0)
        address =
            atomic_load_explicit(&xac_file_at(env, id)->address, memory_order_relaxed);
    xac_registry_exit(env);
    if (address == 0 && text_read(env, &text) == 0) {
        address = text_find(text, path);
        free(text);
    }
    return address;
}

void *
xac_address_map(struct xac_env *env, const char *path, int fd, size_t length)
{
    uint64_t address = remembered(env, path, fd);
    void *p = MAP_FAILED;

    if (address != 0)
        p = map_at(address, fd, length);
#if !defined(__SANITIZE_THREAD__)
    if (p == MAP_FAILED)
        p = map_candidate(path, fd, length);
#endif
    if (p == MAP_FAILED)
        p = xac_sys.mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    return p;
}

int
xac_address_keep(struct xac_env *env, uint32_t file, const char *path, const void *base)
{
    struct xac_file *f = xac_file_at(env, file);
    uint64_t address = (uint64_t)(uintptr_t)base;
    char *text = NULL, *longer = NULL;
    int rc = 0;

    if (atomic_load_explicit(&f->address, memory_order_relaxed) != 0
        || strchr(path, '\n') != NULL)
        return 0;
    rc = text_read(env, &text);
    if (rc == 0 && text_find(text, path) == 0) {
        if (asprintf(&longer, "%s%016" PRIx64 " %s\n", *text != '\0' ? text : FIRST_LINE,
                     address, path)
            < 0)
            rc = ENOMEM;
        else
            rc = text_write(env, longer);
        free(longer);
    } else if (rc == 0) {
        address = text_find(text, path); /* taken here, but perhaps free elsewhere */
    }
    free(text);
    if (rc == 0)
        atomic_store_explicit(&f->address, address, memory_order_relaxed);
    return rc;
}
