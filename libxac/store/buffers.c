/* SPDX-License-Identifier: MIT */
/*
 * buffers.c -- the files behind the version store (version.h): the first beside the
 * control region, the second in the environment directory, made when the first one has its
 * share of memory (filesystem.h), or cannot grow for whatever reason.
 */
#include <config.h>

#include "store/version.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/filesystem.h"
#include "base/kernel.h"
#include "base/lost.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/region.h"
#include "store/outofcore.h"

#define RESERVE_WANTED ((size_t)1 << 40)
#define RESERVE_LEAST  ((size_t)1 << 28)

/* Memory is mapped for so many version slots at a time. */
#define PREFAULT 512

/* Version slots that the first file may have however little memory there is. */
#define SHARE_LEAST 64u

/* Looks at the second file after which its pages are unmapped, within a bound. */
#define TRIM_EVERY 64

#define BUFFER_PATH_MAX (PATH_MAX + sizeof ".in-place")

/* buffer_path -- path of buffer file i of a region.  Takes no memory: files must be removed
   even if there is none left. */
static const char *
buffer_path(int i, const char *region_path, char path[BUFFER_PATH_MAX])
{
    const char *slash = strrchr(region_path, '/');

    xac_assert(i >= 0 && i < XAC_BUFFER_FILES);
    xac_assert(region_path[0] != '\0');
    if (i != 1)
        (void)snprintf(path, BUFFER_PATH_MAX, "%s.%s", region_path,
                       i == 0 ? "frames" : "in-place");
    else
        (void)snprintf(path, BUFFER_PATH_MAX, "%s.frames2",
                       slash != NULL ? slash + 1 : region_path);
    return path;
}

/* open_there -- a buffer file that exists, with all the version slots that it is to have. */
XAC_SIGSAFE static int
open_there(struct xac_env *env, int i, int *fdp)
{
    const struct xac_versions *v = &env->ctl->versions;
    /* Acquire: pairs with the releases of an extension of the store: the file first. */
    uint64_t n = atomic_load_explicit(&v->slots.count, memory_order_acquire);
    uint64_t spill = atomic_load_explicit(&v->spill, memory_order_acquire); /* likewise */
    struct stat st;
    int rc = xac_region_open(xac_env_dirfd(env), env->buffers.path[i], fdp);

    xac_assert(env->buffers.path[i] != NULL);
    if (rc != 0 || i == XAC_BUFFER_IN_PLACE)
        return rc;
    if (spill != 0)
        n = i == 0 ? spill - 1 : n + 1 - spill;
    if (xac_sys.fstat(*fdp, &st) != 0)
        rc = errno;
    else if ((uint64_t)st.st_size >> env->page_shift < n)
        rc = XAC_EDAMAGED;
    if (rc != 0) {
        (void)xac_sys.close(*fdp);
        *fdp = -1;
    }
    return rc;
}

/* make_buffer -- a buffer file; the second one may have been made by somebody who died. */
XAC_SIGSAFE static int
make_buffer(struct xac_env *env, int i, int *fdp)
{
    const char *path = env->buffers.path[i];
    int dirfd = xac_env_dirfd(env);
    struct xac_owner owner;
    int rc = xac_owner_get_shared(dirfd, &owner);

    xac_assert(env->buffers.path[i] != NULL);
    if (rc != 0)
        return rc;
    return i != 1 ? xac_newfile_make(dirfd, path, &owner, fdp)
                  : xac_newfile_open(dirfd, path, &owner, fdp);
}

/* open_buffer -- open or make buffer file i and map it. */
XAC_SIGSAFE static int
open_buffer(struct xac_env *env, int i, bool make)
{
    struct xac_buffers *b = &env->buffers;
    size_t reserve = RESERVE_WANTED;
    void *p;
    int fd = -1;
    int rc = 0;

    xac_assert(b->fd[i] == -1);
    if (env->frozen != NULL) /* private, without a name */
        rc = (fd = xac_sys.memfd_create("xac-frames", MFD_CLOEXEC)) < 0 ? errno : 0;
    else if (make)
        rc = make_buffer(env, i, &fd);
    else
        rc = open_there(env, i, &fd);
    if (rc == 0 && (fd = xac_handle_keep(fd, &b->handle[i])) < 0)
        rc = errno;
    if (rc != 0)
        return rc;
    p = xac_shm_map(fd, PROT_READ | PROT_WRITE, &reserve, RESERVE_LEAST);
    if (p == MAP_FAILED) {
        rc = errno;
        (void)xac_sys.close(fd);
        return rc;
    }
    b->fd[i] = fd;
    b->reserve[i] = reserve;
    /* Release: pairs with the acquire in base_of. */
    atomic_store_explicit(&b->base[i], (uint8_t *)p, memory_order_release);
    xac_assert(b->reserve[i] >= RESERVE_LEAST);
    return 0;
}

/* base_of -- where buffer file i is mapped, NULL if it is not yet. */
XAC_SIGSAFE static uint8_t *
base_of(const struct xac_env *env, int i)
{
    /* Acquire: pairs with the release in open_buffer. */
    return atomic_load_explicit(&env->buffers.base[i], memory_order_acquire);
}

/* open_once -- open a buffer file unless another thread has done so. */
XAC_SIGSAFE static int
open_once(struct xac_env *env, int i, bool make)
{
    struct xac_buffers *b = &env->buffers;
    int rc = 0;

    /* A spin lock, for the fault handler comes here; acquire: pairs with the release
       below. */
    while (atomic_flag_test_and_set_explicit(&b->opening, memory_order_acquire))
        (void)sched_yield();
    if (base_of(env, i) == NULL)
        rc = open_buffer(env, i, make);
    atomic_flag_clear_explicit(&b->opening, memory_order_release); /* as above */
    return rc;
}

static int
start(struct xac_env *env, const char *region_path, bool make)
{
    struct xac_buffers *b = &env->buffers;
    char path[BUFFER_PATH_MAX];
    int rc;

    xac_assert(env->ctl != NULL);
    memset(b, 0, sizeof *b);
    for (int i = 0; i < XAC_BUFFER_FILES; i++)
        b->fd[i] = -1;
    for (int i = 0; i < XAC_BUFFER_FILES; i++) {
        b->path[i] = strdup(buffer_path(i, region_path, path));
        if (b->path[i] == NULL)
            return xac_err(ENOMEM, "buffer files of %s", region_path);
    }
    rc = open_buffer(env, 0, make);
    if (rc == ENOENT && !make)
        return xac_err(XAC_ENOTSHARED, "%s" XAC_REGION_GONE, b->path[0]);
    return rc == 0 ? 0
                   : xac_err(rc, "buffer file %s%s", b->path[0],
                             rc == ENOMEM ? ": " XAC_SHM_ADDRESSES : "");
}

/* share_of -- version slots that the first file may have, as far as this process can tell. */
static uint64_t
share_of(const struct xac_env *env)
{
    uint64_t bytes = xac_filesystem_share(env->buffers.fd[0], env->memory_bytes);
    uint64_t vslots = bytes >> env->page_shift;

    xac_assert(env->buffers.fd[0] >= 0);
    if (bytes == UINT64_MAX)
        return UINT64_MAX;
    return vslots > SHARE_LEAST ? vslots : SHARE_LEAST;
}

/* share_join -- the least of all participants' counts; gate held. */
static void
share_join(struct xac_env *env)
{
    _Atomic uint64_t *share = &env->ctl->versions.share;
    uint64_t own = share_of(env);

    if (own < atomic_load_explicit(share, memory_order_relaxed))
        atomic_store_explicit(share, own, memory_order_relaxed);
    xac_assert(atomic_load_explicit(share, memory_order_relaxed) <= own);
}

uint64_t
xac_buffers_bound(const struct xac_env *env)
{
    uint64_t share =
        atomic_load_explicit(&env->ctl->versions.share, memory_order_relaxed);
    uint64_t bound = xac_outofcore_versions(env);

    xac_assert(share > 0);
    return bound != 0 && bound < share ? bound : share;
}

uint64_t
xac_buffers_reach(const struct xac_env *env)
{
    xac_assert(env->buffers.reserve[0] != 0);
    return env->buffers.reserve[0] >> env->page_shift;
}

int
xac_buffers_create(struct xac_env *env, const char *region_path)
{
    int rc = start(env, region_path, true);

    if (rc == 0) {
        env->ctl->versions.frames_max = xac_buffers_reach(env);
        atomic_store_explicit(&env->ctl->versions.share, share_of(env),
                              memory_order_relaxed);
    }
    xac_assert(rc != 0 || env->ctl->versions.frames_max > 0);
    return rc;
}

int
xac_buffers_attach(struct xac_env *env, const char *region_path)
{
    int rc = start(env, region_path, false);

    if (rc == 0)
        share_join(env);
    /* Unlocked, but only those who come and go change it, with the gate held. */
    if (rc != 0 || xac_buffers_reach(env) >= env->ctl->versions.frames_max)
        return rc;
    rc = xac_version_limit(env, xac_buffers_reach(env));
    return rc == 0
               ? 0
               : xac_err(rc, "buffer file %s: " XAC_SHM_ADDRESSES, env->buffers.path[0]);
}

/* close_buffer -- unmap and close buffer file i. */
static void
close_buffer(struct xac_env *env, int i)
{
    struct xac_buffers *b = &env->buffers;

    xac_assert(i >= 0);
    xac_assert(i < XAC_BUFFER_FILES);
    if (base_of(env, i) == NULL)
        return;
    xac_assert(b->fd[i] >= 0);
    (void)xac_sys.munmap(base_of(env, i), b->reserve[i]);
    xac_handle_close(b->fd[i], &b->handle[i]);
    atomic_store_explicit(&b->base[i], NULL, memory_order_relaxed);
    b->fd[i] = -1;
}

void
xac_buffers_detach(struct xac_env *env)
{
    struct xac_buffers *b = &env->buffers;

    for (int i = 0; i < XAC_BUFFER_FILES; i++) {
        free(b->path[i]);
        b->path[i] = NULL;
        close_buffer(env, i);
    }
}

/* ---- The in-place file -------------------------------------------------------------------- */

const uint8_t *
xac_buffers_in_place(struct xac_env *env)
{
    int rc = 0;

    xac_assert(env->ctl != NULL);
    if (base_of(env, XAC_BUFFER_IN_PLACE) == NULL)
        rc = open_once(env, XAC_BUFFER_IN_PLACE, false);
    if (rc == 0)
        return base_of(env, XAC_BUFFER_IN_PLACE);
    errno = rc > 0 ? rc : EPERM; /* one of ours: a file that is not as it was made */
    return NULL;
}

int
xac_buffers_in_place_make(struct xac_env *env)
{
    xac_assert(env->buffers.path[XAC_BUFFER_IN_PLACE] != NULL);
    xac_buffers_in_place_drop(env);
    return open_once(env, XAC_BUFFER_IN_PLACE, true);
}

int
xac_buffers_in_place_grow(struct xac_env *env, uint64_t n_pages)
{
    struct xac_buffers *b = &env->buffers;
    int fd = b->fd[XAC_BUFFER_IN_PLACE];

    xac_assert(fd >= 0);
    xac_assert(n_pages > 0);
    if (n_pages << env->page_shift > b->reserve[XAC_BUFFER_IN_PLACE]) {
        errno = ENOMEM;
        return -1;
    }
    return xac_sys.ftruncate(fd, (off_t)(n_pages << env->page_shift)) == 0 ? fd : -1;
}

void
xac_buffers_in_place_hold(struct xac_env *env)
{
    /* seq_cst: pairs with the exchange in close_in_place.  A thread that is not seen there sees that the file
       is not mapped. */
    (void)atomic_fetch_add_explicit(&env->buffers.n_copying, 1, memory_order_seq_cst);
}

void
xac_buffers_in_place_release(struct xac_env *env)
{
    uint32_t was =
        /* Release: pairs with the acquire in close_in_place. */
        atomic_fetch_sub_explicit(&env->buffers.n_copying, 1, memory_order_release);

    xac_assert(was > 0);
}

/* close_in_place -- unmap and close the in-place file, once no thread copies from it.  A thread that comes
   meanwhile may open it once more, by its name. */
static void
close_in_place(struct xac_env *env)
{
    struct xac_buffers *b = &env->buffers;
    size_t reserve = b->reserve[XAC_BUFFER_IN_PLACE];
    struct xac_handle handle = b->handle[XAC_BUFFER_IN_PLACE];
    int fd = b->fd[XAC_BUFFER_IN_PLACE];
    uint8_t *base;

    if (base_of(env, XAC_BUFFER_IN_PLACE) == NULL)
        return;
    xac_assert(fd >= 0);
    b->fd[XAC_BUFFER_IN_PLACE] = -1;
    /* seq_cst: pairs with the addition in xac_buffers_in_place_hold. */
    base = atomic_exchange_explicit(&b->base[XAC_BUFFER_IN_PLACE], NULL,
                                    memory_order_seq_cst);
    /* Each of them ends by itself: it waits for no transaction.  Acquire: pairs with the release in
       xac_buffers_in_place_release. */
    while (atomic_load_explicit(&b->n_copying, memory_order_acquire) != 0)
        (void)sched_yield();
    xac_assert(reserve >= RESERVE_LEAST);
    (void)xac_sys.munmap(base, reserve);
    xac_handle_close(fd, &handle);
}

void
xac_buffers_in_place_forked(struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    /* Relaxed: the child has one thread; those that copied are the parent's. */
    atomic_store_explicit(&env->buffers.n_copying, 0, memory_order_relaxed);
    close_buffer(env, XAC_BUFFER_IN_PLACE);
}

void
xac_buffers_in_place_drop(struct xac_env *env)
{
    close_in_place(env);
    if (env->buffers.path[XAC_BUFFER_IN_PLACE] != NULL)
        (void)xac_sys.unlinkat(xac_env_dirfd(env), env->buffers.path[XAC_BUFFER_IN_PLACE],
                               0);
}

/* remove_buffer -- buffer file i of a region. */
static void
remove_buffer(int i, int dirfd, const char *region_path)
{
    char path[BUFFER_PATH_MAX];

    (void)xac_sys.unlinkat(dirfd, buffer_path(i, region_path, path), 0);
}

void
xac_buffers_remove(int dirfd, const char *region_path)
{
    remove_buffer(0, dirfd, region_path);
    remove_buffer(XAC_BUFFER_IN_PLACE, dirfd, region_path);
}

void
xac_buffers_remove_second(int dirfd, const char *region_path)
{
    if (dirfd >= 0)
        remove_buffer(1, dirfd, region_path);
}

/* place_of -- which buffer file holds a version slot, and where. */
XAC_SIGSAFE static int
place_of(const struct xac_env *env, uint64_t vslot_no, uint64_t *offsetp)
{
    /* Acquire: pairs with the release in xac_buffers_extend. */
    uint64_t spill =
        atomic_load_explicit(&env->ctl->versions.spill, memory_order_acquire);
    bool is_second = spill != 0 && vslot_no >= spill;

    xac_assert(vslot_no != 0);
    *offsetp = (vslot_no - (is_second ? spill : 1)) << env->page_shift;
    return is_second ? 1 : 0;
}

/*
 * trim -- within a bound (outofcore.h) what is mapped of the second file is not kept: its pages
 * stay in the page cache as long as the system likes, and are mapped again when touched.
 */
XAC_SIGSAFE static void
trim(struct xac_env *env, uint8_t *base)
{
    uint64_t n;

    if (!xac_outofcore_is_on(env))
        return;
    n = atomic_fetch_add_explicit(&env->buffers.n_second, 1, memory_order_relaxed);
    if (n % TRIM_EVERY == TRIM_EVERY - 1)
        (void)xac_sys.madvise(base, env->buffers.reserve[1], MADV_DONTNEED);
}

XAC_SIGSAFE uint8_t *
xac_buffers_bytes(struct xac_env *env, uint64_t vslot_no)
{
    uint64_t offset;
    int i = place_of(env, vslot_no, &offset);
    uint8_t *base = base_of(env, i);

    xac_assert(vslot_no != 0);
    if (xac_unlikely(base == NULL)) {
        int rc = open_once(env, i, false);

        if (rc != 0) {
            errno =
                rc > 0 ? rc : EPERM; /* one of ours: a file that is not as it was made */
            return NULL;
        }
        base = base_of(env, i);
    }
    if (i == 1)
        trim(env, base);
    if (offset + env->page_size > env->buffers.reserve[i]) {
        errno = ENOMEM;
        return NULL;
    }
    xac_assert_slow(offset + env->page_size <= env->buffers.reserve[i]);
    return base + offset;
}

void
xac_buffers_prefault(struct xac_env *env, uint64_t vslot_no, uint64_t have)
{
    uint64_t n = have - vslot_no + 1 < PREFAULT ? have - vslot_no + 1 : PREFAULT;
    uint64_t offset;
    uint8_t *base;

    xac_assert(vslot_no != 0);
    xac_assert(vslot_no <= have);
    if (vslot_no <= atomic_load_explicit(&env->buffers.n_faulted, memory_order_relaxed)
        || place_of(env, vslot_no, &offset) != 0
        || offset + (n << env->page_shift) > env->buffers.reserve[0])
        return;
    atomic_store_explicit(&env->buffers.n_faulted, vslot_no + n - 1,
                          memory_order_relaxed);
    base = base_of(env, 0);
    /* Shared memory that is mapped for reading can be stored to as well, and the kernel maps 16 pages
       at a time: a third of the time that MADV_POPULATE_WRITE takes.  If it fails (an older kernel, version
       slots of the second file), they fault one by one. */
    (void)xac_sys.madvise(base + offset, n << env->page_shift, MADV_POPULATE_READ);
}

/* extend_file -- back the version slots [have, want) of buffer file i with disk space. */
static int
extend_file(struct xac_env *env, int i, uint64_t have, uint64_t want)
{
    struct xac_buffers *b = &env->buffers;
    int fd = xac_lost_again(b->fd[i], &b->handle[i], xac_env_dirfd(env), b->path[i]);

    xac_assert(have < want);
    xac_assert(i == 0 || i == 1);
    if (fd < 0)
        return errno;
    b->fd[i] = fd;
    return xac_allocate(fd, have << env->page_shift, (want - have) << env->page_shift);
}

int
xac_buffers_extend(struct xac_env *env, uint64_t have, uint64_t want)
{
    struct xac_versions *v = &env->ctl->versions;
    uint64_t spill = atomic_load_explicit(&v->spill, memory_order_relaxed);
    int rc = 0;

    xac_assert(have < want);
    xac_assert(xac_lock_is_mine(&v->grow));
    xac_assert(spill == 0 || spill <= have + 1);
    if (spill == 0) {
        rc = want > xac_buffers_bound(env) ? ENOSPC : extend_file(env, 0, have, want);
        if (rc == 0)
            return 0;
        if (rc == EBADF) /* this process has lost the file, the others have not */
            return xac_err(rc, "growing the version store");
        spill = have + 1;
    }
    rc = open_once(env, 1, true);
    if (rc == 0)
        rc = extend_file(env, 1, have + 1 - spill, want + 1 - spill);
    if (rc != 0)
        return xac_err(rc, "%s: growing the version store by %llu bytes",
                       env->buffers.path[1],
                       (unsigned long long)(want - have) << env->page_shift);
    /* Release: pairs with the acquire in place_of; before the version slots can be taken. */
    atomic_store_explicit(&v->spill, spill, memory_order_release);
    return 0;
}
