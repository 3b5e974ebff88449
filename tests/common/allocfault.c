/* SPDX-License-Identifier: MIT */
/*
 * allocfault.c -- see allocfault.h.
 */
#include <config.h>

#include "allocfault.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/shm.h"

static struct {
    _Atomic bool is_armed;
    enum allocfault_kind kind;
    uint64_t n;
    bool for_ever;
    _Atomic uint64_t count;
    const char *_Atomic hit;
} plan;

static _Atomic int64_t live;
static FILE *_Atomic stream; /* of open_memstream(), closed by fclose() */

void
allocfault_arm(enum allocfault_kind kind, uint64_t n, bool for_ever)
{
    plan.kind = kind;
    plan.n = n;
    plan.for_ever = for_ever;
    atomic_store(&plan.count, 0);
    atomic_store(&plan.hit, NULL);
    atomic_store(&plan.is_armed, true);
}

void
allocfault_disarm(void)
{
    atomic_store(&plan.is_armed, false);
}

uint64_t
allocfault_count(void)
{
    return atomic_load(&plan.count);
}

const char *
allocfault_hit(void)
{
    return atomic_load(&plan.hit);
}

int64_t
allocfault_live(void)
{
    return atomic_load(&live);
}

/* fails -- count an allocation; true if it has to fail. */
static bool
fails(enum allocfault_kind kind, const char *name)
{
    const char *none = NULL;
    uint64_t n;

    if (!atomic_load(&plan.is_armed) || plan.kind != kind)
        return false;
    n = atomic_fetch_add(&plan.count, 1) + 1;
    if (plan.n == 0 || n < plan.n || (n > plan.n && !plan.for_ever))
        return false;
    (void)atomic_compare_exchange_strong(&plan.hit, &none, name);
    errno = ENOMEM;
    return true;
}

/* kept -- a block that was allocated. */
static void *
kept(void *p)
{
    if (p != NULL)
        atomic_fetch_add(&live, 1);
    return p;
}

/* ---- The functions -------------------------------------------------------------------- */

/* XAC_WRAP -- what stands for a function, and the function itself. */
#define XAC_WRAP(type, name, ...) \
 type __real_##name(__VA_ARGS__); \
 type __wrap_##name(__VA_ARGS__)

XAC_WRAP(void *, malloc, size_t n);
XAC_WRAP(void *, calloc, size_t n, size_t size);
XAC_WRAP(void *, realloc, void *p, size_t n);
XAC_WRAP(void, free, void *p);
XAC_WRAP(char *, strdup, const char *s);
XAC_WRAP(char *, strndup, const char *s, size_t n);
XAC_WRAP(char *, realpath, const char *path, char *to);
XAC_WRAP(int, posix_memalign, void **pp, size_t align, size_t n);
XAC_WRAP(DIR *, fdopendir, int fd);
XAC_WRAP(FILE *, fdopen, int fd, const char *mode);
XAC_WRAP(ssize_t, getline, char **linep, size_t *np, FILE *f);
XAC_WRAP(ssize_t, __getdelim, char **linep, size_t *np, int end, FILE *f);
XAC_WRAP(FILE *, open_memstream, char **textp, size_t *np);
XAC_WRAP(int, fclose, FILE *f);
XAC_WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
         void *(*fn)(void *), void *arg);
XAC_WRAP(int, pthread_key_create, pthread_key_t *key, void (*fn)(void *));
XAC_WRAP(int, pthread_setspecific, pthread_key_t key, const void *value);
XAC_WRAP(void *, XXH3_createState, void);
XAC_WRAP(void *, EVP_MD_CTX_new, void);
XAC_WRAP(uint64_t, xac_shm_alloc, struct xac_shm *shm, size_t n);
XAC_WRAP(int, xac_array_reserve, struct xac_shm *shm, struct xac_array *a, uint64_t i);
int __wrap_asprintf(char **textp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void *
__wrap_malloc(size_t n)
{
    return fails(ALLOCFAULT_MEMORY, "malloc") ? NULL : kept(__real_malloc(n));
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails(ALLOCFAULT_MEMORY, "calloc") ? NULL : kept(__real_calloc(n, size));
}

void *
__wrap_realloc(void *p, size_t n)
{
    if (fails(ALLOCFAULT_MEMORY, "realloc"))
        return NULL;
    return p == NULL ? kept(__real_malloc(n)) : __real_realloc(p, n);
}

void
__wrap_free(void *p)
{
    if (p != NULL)
        atomic_fetch_sub(&live, 1);
    __real_free(p);
}

char *
__wrap_strdup(const char *s)
{
    return fails(ALLOCFAULT_MEMORY, "strdup") ? NULL : (char *)kept(__real_strdup(s));
}

char *
__wrap_strndup(const char *s, size_t n)
{
    return fails(ALLOCFAULT_MEMORY, "strndup") ? NULL
                                               : (char *)kept(__real_strndup(s, n));
}

int
__wrap_asprintf(char **textp, const char *format, ...)
{
    va_list args;
    int n;

    if (fails(ALLOCFAULT_MEMORY, "asprintf")) {
        *textp = NULL;
        return -1;
    }
    va_start(args, format);
    n = vasprintf(textp, format, args);
    va_end(args);
    if (n >= 0)
        (void)kept(*textp);
    return n;
}

char *
__wrap_realpath(const char *path, char *to)
{
    if (to != NULL)
        return __real_realpath(path, to);
    return fails(ALLOCFAULT_MEMORY, "realpath")
               ? NULL
               : (char *)kept(__real_realpath(path, NULL));
}

int
__wrap_posix_memalign(void **pp, size_t align, size_t n)
{
    int rc;

    if (fails(ALLOCFAULT_MEMORY, "posix_memalign"))
        return ENOMEM;
    rc = __real_posix_memalign(pp, align, n);
    if (rc == 0)
        (void)kept(*pp);
    return rc;
}

DIR *
__wrap_fdopendir(int fd)
{
    return fails(ALLOCFAULT_MEMORY, "fdopendir") ? NULL : __real_fdopendir(fd);
}

FILE *
__wrap_fdopen(int fd, const char *mode)
{
    return fails(ALLOCFAULT_MEMORY, "fdopen") ? NULL : __real_fdopen(fd, mode);
}

/* What getline() is where the compiler puts it in its place. */
ssize_t
__wrap___getdelim(char **linep, size_t *np, int end, FILE *f)
{
    bool had = *linep != NULL;
    ssize_t n;

    if (fails(ALLOCFAULT_MEMORY, "getline"))
        return -1;
    n = __real___getdelim(linep, np, end, f);
    if (!had)
        (void)kept(*linep);
    return n;
}

ssize_t
__wrap_getline(char **linep, size_t *np, FILE *f)
{
    return __wrap___getdelim(linep, np, '\n', f);
}

FILE *
__wrap_open_memstream(char **textp, size_t *np)
{
    FILE *f = fails(ALLOCFAULT_MEMORY, "open_memstream")
                  ? NULL
                  : __real_open_memstream(textp, np);

    if (kept(f) != NULL) /* the text, which is there when it is closed */
        atomic_store(&stream, f);
    return f;
}

/* The text can have failed to grow at any time before. */
int
__wrap_fclose(FILE *f)
{
    bool is_text = atomic_load(&stream) == f;
    bool is_bad = is_text && fails(ALLOCFAULT_MEMORY, "fclose of a text");
    int rc;

    if (is_text)
        atomic_store(&stream, NULL);
    rc = __real_fclose(f);
    if (is_bad)
        errno = ENOMEM;
    return is_bad ? EOF : rc;
}

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                      void *arg)
{
    return fails(ALLOCFAULT_MEMORY, "pthread_create")
               ? EAGAIN
               : __real_pthread_create(thread, attr, fn, arg);
}

int
__wrap_pthread_key_create(pthread_key_t *key, void (*fn)(void *))
{
    return fails(ALLOCFAULT_MEMORY, "pthread_key_create")
               ? EAGAIN
               : __real_pthread_key_create(key, fn);
}

int
__wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    return fails(ALLOCFAULT_MEMORY, "pthread_setspecific")
               ? ENOMEM
               : __real_pthread_setspecific(key, value);
}

void *
__wrap_XXH3_createState(void)
{
    return fails(ALLOCFAULT_MEMORY, "XXH3_createState") ? NULL
                                                        : __real_XXH3_createState();
}

void *
__wrap_EVP_MD_CTX_new(void)
{
    return fails(ALLOCFAULT_MEMORY, "EVP_MD_CTX_new") ? NULL : __real_EVP_MD_CTX_new();
}

uint64_t
__wrap_xac_shm_alloc(struct xac_shm *shm, size_t n)
{
    return fails(ALLOCFAULT_SHARED, "xac_shm_alloc") ? 0 : __real_xac_shm_alloc(shm, n);
}

int
__wrap_xac_array_reserve(struct xac_shm *shm, struct xac_array *a, uint64_t i)
{
    return fails(ALLOCFAULT_SHARED, "xac_array_reserve")
               ? ENOMEM
               : __real_xac_array_reserve(shm, a, i);
}
