/* SPDX-License-Identifier: MIT */
/*
 * view_open.c -- mapping and unmapping files: see view.h.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/claim.h"
#include "shared/env_state.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "store/frozen.h"
#include "store/outofcore.h"
#include "view/address.h"
#include "view/file_register.h"
#include "view/guard.h"
#include "view/view.h"

/* Attempts to map a file that others rename, remove or replace again and again. */
#define OPEN_TRIES 100u

/* is_link -- a symbolic link has the name. */
static bool
is_link(const char *name)
{
    struct statx st;

    return xac_sys.statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0
           && S_ISLNK(st.stx_mode);
}

/* open_file -- open or create the file to be mapped; ret 0 or an error. */
static int
open_file(struct xac_view *v, bool *is_newp)
{
    const char *name = v->name;
    struct stat st;
    int rc, fd;

    for (;;) { /* somebody may create or remove it between the two */
        *is_newp = false;
        fd = xac_sys.openat(AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
        if (fd >= 0 || errno != ENOENT)
            break;
        *is_newp = true;
        fd = xac_sys.openat(AT_FDCWD, name, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (fd >= 0 || errno != EEXIST)
            break;
        if (is_link(name)) /* neither of the two will ever open it */
            return xac_err(ENOENT, "%s is a symbolic link to nothing", name);
    }
    if (fd < 0)
        return xac_err(errno, "%s", name);
    rc = xac_identity_of(fd, &v->who);
    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        (void)xac_err(rc, "%s", name);
    else if (!S_ISREG(st.st_mode))
        rc = xac_err(EINVAL, "%s is not a regular file", name);
    if (rc != 0)
        (void)xac_sys.close(fd);
    else
        v->fd = fd;
    xac_assert(rc != 0 || v->fd >= 0);
    return rc;
}

/* open_copy -- a frozen reader's copy of the file. */
static int
open_copy(struct xac_view *v)
{
    char *path = xac_view_stored_path(v->env, v->name);
    const struct xac_frozen_file *copy =
        path != NULL ? xac_frozen_find(v->env->frozen, path) : NULL;
    int rc = path == NULL ? errno : 0;

    free(path);
    if (rc == 0 && copy == NULL && xac_identity_at(AT_FDCWD, v->name, &v->who) == ENOENT)
        return xac_err(ENOENT, "%s", v->name);
    if (rc == 0 && copy == NULL)
        return xac_err(XAC_ENOTMAPPED,
                       "%s: the environment had not mapped it when it was frozen",
                       v->name);
    if (rc == 0)
        rc = copy->error;
    if (rc != 0)
        return xac_err(rc, "%s", v->name);
    v->fd = xac_sys.dup_above(copy->fd, 0);
    return v->fd >= 0 ? 0 : xac_err(errno, "%s", v->name);
}

/* open_to_read -- a file that exists, for a reader. */
static int
open_to_read(struct xac_view *v)
{
    struct stat st;
    int rc = 0;

    if (v->env->frozen != NULL)
        rc = open_copy(v);
    else if ((v->fd =
                  xac_sys.openat(AT_FDCWD, v->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0))
             < 0)
        rc = xac_err(errno, "%s", v->name);
    if (rc != 0)
        return rc;
    rc = xac_identity_of(v->fd, &v->who);
    if (rc != 0 || xac_sys.fstat(v->fd, &st) != 0)
        return xac_err(rc != 0 ? rc : errno, "%s", v->name);
    return S_ISREG(st.st_mode) ? 0 : xac_err(EINVAL, "%s is not a regular file", v->name);
}

/* end_of -- bytes of the file up to the end of the view. */
static uint64_t
end_of(const struct xac_view *v)
{
    xac_assert(v->area.length > 0);
    return v->area.first * v->area.page_size + v->area.length;
}

/*
 * grow_file -- extend a file with zeros; synced before anything refers to it.
 *
 * The process that made or extended the file before us may not have synced it: it may be another
 * program, be about to, or be dead.
 * in   synced  bytes of the file that this environment knows to be on disk; 0: nor its name
 */
static int
grow_file(struct xac_env *env, const struct xac_view *v, const struct stat *st,
          uint64_t synced, bool is_new)
{
    uint64_t end = end_of(v);
    int rc = 0;

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (env->reader != XAC_READER_NONE)
        return (uint64_t)st->st_size >= end
                   ? 0
                   : xac_err(XAC_EREADONLY, "%s has %llu bytes, not %llu", v->name,
                             (unsigned long long)st->st_size, (unsigned long long)end);
    if ((uint64_t)st->st_size < end && xac_sys.ftruncate(v->fd, (off_t)end) != 0)
        return xac_err(errno, "growing %s to %llu bytes", v->name,
                       (unsigned long long)end);
    if (!xac_env_is_durable(env))
        return 0;
    if (synced < end && xac_sys.fsync(v->fd) != 0)
        return xac_err(errno, "syncing %s", v->name);
    if (synced == 0)
        rc = xac_sync_parent(AT_FDCWD, v->name);
    if (rc == EACCES && !is_new)
        rc = 0; /* not readable: its owner has put the file there */
    return rc == 0 ? 0 : xac_err(rc, "syncing the directory of %s", v->name);
}

/* check_place -- has the file that is open still its name?  Others of the environment rename and
   remove files under this lock (file_name.h).  ret 0; ESTALE; errno. */
static int
check_place(const struct xac_env *env, const struct xac_view *v)
{
    int rc = env->frozen != NULL ? 0 : xac_identity_check(env->dirfd, v->path, &v->who);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (rc == 0 || rc == EACCES) /* as far as one may look */
        return 0;
    if (rc == ENOENT || rc == ENOTDIR || rc == ESTALE)
        return xac_err(ESTALE, "%s: removed, renamed or replaced meanwhile", v->name);
    return xac_err(rc, "%s", v->name);
}

/*
 * enroll -- grow the file and register it, or leave it as it was.
 *
 * All under the lock of the files: its size must not change between being looked at and
 * being changed, for somebody else may be mapping it longer than we do.
 */
static int
enroll(struct xac_env *env, struct xac_view *v, bool is_new)
{
    struct stat st;
    uint64_t synced = 0;
    uint32_t id = 0;
    int rc;

    xac_assert(v->fd >= 0);
    xac_assert(v->path != NULL);
    xac_registry_enter(env);
    rc = v->hold == 0 ? check_place(env, v) : 0;
    if (rc == 0 && xac_sys.fstat(v->fd, &st) != 0)
        rc = xac_err(errno, "%s", v->name);
    if (rc == 0)
        rc = xac_registry_find(env, v->path, &v->who, &id);
    if (rc == 0) {
        if (id != 0)
            synced =
                atomic_load_explicit(&xac_file_at(env, id)->length, memory_order_relaxed);
        rc = grow_file(env, v, &st, synced, is_new);
        if (rc == 0)
            rc = xac_registry_add(env, v->path, &v->who, (uint64_t)st.st_size, end_of(v),
                                  &v->file);
        if (rc == 0)
            rc = xac_address_keep(env, v);
        if (rc == 0 && v->hold == 0)
            rc = xac_registry_hold(env, v->file, &v->hold);
        if (rc != 0 && id == 0 && (uint64_t)st.st_size < end_of(v))
            (void)xac_sys.ftruncate(v->fd, st.st_size);
    }
    xac_registry_exit(env);
    xac_assert(rc != 0 || v->file != 0);
    xac_assert(rc != 0 || v->hold != 0);
    return rc;
}

/* withdraw -- remove a file that was made for a mapping that failed, if nobody else has
   mapped it meanwhile. */
static void
withdraw(struct xac_env *env, const struct xac_view *v)
{
    uint32_t id;

    xac_assert(v->path != NULL);
    xac_registry_enter(env);
    if (check_place(env, v) == 0 /* else another file has the name */
        && xac_registry_find(env, v->path, &v->who, &id) == 0 && id == 0)
        (void)xac_sys.unlinkat(AT_FDCWD, v->name, 0);
    xac_registry_exit(env);
}

/* map_pages -- addresses for what is known of the pages. */
static int
map_pages(struct xac_view *v)
{
    void *p = xac_sys.mmap(NULL, v->area.n_pages * sizeof v->pages.at[0],
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    xac_assert(v->pages.at == NULL);
    xac_assert(v->area.n_pages > 0);
    if (p == MAP_FAILED)
        return xac_err(errno, "mapping the page states of %s", v->name);
    v->pages.at = (struct xac_view_page *)p;
    return 0;
}

/* map_file -- the same part of the file for reading, and what is known of the pages. */
static int
map_file(struct xac_view *v)
{
    void *p = NULL;

    xac_assert(v->file_bytes == NULL);
    if (!xac_outofcore_is_on(v->env))
        p = xac_sys.mmap(NULL, v->area.length, PROT_READ, MAP_SHARED | MAP_NORESERVE,
                         v->fd, (off_t)(v->area.first * v->area.page_size));

    if (p == MAP_FAILED)
        return xac_err(errno, "mapping %s", v->name);
    v->file_bytes = (const uint8_t *)p;
    if (p != NULL && v->env->options.read_ahead != XAC_READ_AHEAD_SYSTEM)
        (void)xac_sys.madvise(p, v->area.length, MADV_RANDOM); /* a hint */
    return map_pages(v);
}

/* open_again -- the file, which the program has closed, and hold it again (claim.h). */
XAC_SIGSAFE static int
open_again(struct xac_view *v)
{
    int fd = xac_handle_again(-1, &v->handle, xac_env_dirfd(v->env), v->path, O_RDWR);
    struct xac_claimant claimant = xac_env_claimant(v->env);
    int rc = fd < 0 ? errno : xac_claim_hold_again(fd, &claimant);

    xac_assert(v->origin == NULL);
    if (rc == 0)
        return fd;
    xac_handle_close(fd, &v->handle);
    errno = rc;
    return -1;
}

XAC_SIGSAFE int
xac_view_fd(struct xac_view *v)
{
    int fd;

    if (xac_handle_is_ours(v->fd, &v->handle))
        return v->fd;
    /* A clone uses its origin's, which knows its own path. */
    fd = v->origin != NULL ? xac_view_fd(v->origin) : open_again(v);
    if (fd >= 0)
        v->fd = fd;
    return fd;
}

/* new_view -- what is known before the file is open; NULL with errno. */
static struct xac_view *
new_view(struct xac_env *env, const char *name, const struct xac_view_wish *wish)
{
    struct xac_view *v = (struct xac_view *)calloc(1, sizeof *v);

    if (v == NULL)
        return NULL;
    v->fd = -1;
    v->env = env;
    v->ctx = &env->ctx;
    v->area = (struct xac_area){.owner = &xac_view_owner,
                                .page_size = env->page_size,
                                .length = wish->length,
                                .n_pages = wish->length >> env->page_shift,
                                .first = wish->offset >> env->page_shift,
                                .is_memory_only = xac_outofcore_is_on(env),
                                .in_place = -1,
                                .memory = -1};
    xac_area_open_pagemap(&v->area);
    v->name = strdup(name);
    if (v->name != NULL)
        return v;
    xac_view_close(env, v);
    errno = ENOMEM;
    return NULL;
}

/* watch_out -- for threads that touch what lies behind the view; held: bytes, see guard.h. */
static void
watch_out(struct xac_view *v, size_t held)
{
    v->guard =
        xac_guard_enter(v->path, v->area.base, v->area.length,
                        v->area.first * v->area.page_size, v->origin != NULL, held);
}

/* place -- map and register an open file. */
static int
place(struct xac_env *env, struct xac_view *v, int flags, bool is_new)
{
    int rc = xac_address_map(v, (flags & XAC_SAME_ADDRESS) != 0);

    xac_assert(v->fd >= 0);
    if (rc == 0)
        rc = map_file(v);
    if (rc == 0) {
        rc = xac_engine_attach(&v->area);
        rc = rc == 0 ? 0 : xac_err(rc, "mapping %s", v->name);
    }
    if (rc == 0)
        rc = enroll(env, v, is_new);
    if (rc == 0)
        rc = xac_outofcore_add_file(env, v->file, v->fd);
    if (rc == 0 && (flags & XAC_SAME_ADDRESS) != 0 && !xac_address_is_kept(v))
        rc = xac_err(EADDRINUSE, "%s: another process has just mapped it elsewhere",
                     v->name);
    return rc;
}

/* share -- a new file below the directory is for all who take part. */
static int
share(const struct xac_env *env, const struct xac_view *v)
{
    struct xac_owner owner;
    int rc = v->path[0] == '/' ? 0 : xac_owner_get(env->dirfd, &owner);

    if (rc == 0 && v->path[0] != '/')
        rc = xac_newfile_widen(v->fd, &owner);
    return rc == 0 ? 0 : xac_err(rc, "%s: owner and mode", v->name);
}

/* open_once -- see xac_view_open; ESTALE: the file has lost its name meanwhile. */
static int
open_once(struct xac_env *env, const char *name, const struct xac_view_wish *wish,
          struct xac_view **viewp)
{
    struct xac_claimant claimant = xac_env_claimant(env);
    struct xac_view *v = new_view(env, name, wish);
    bool is_new = false;
    int rc;

    if (v == NULL)
        return xac_err(errno, "%s", name);
    rc = env->reader != XAC_READER_NONE ? open_to_read(v) : open_file(v, &is_new);
    if (rc == 0) {
        v->fd = xac_handle_keep(v->fd, &v->handle);
        rc = v->fd >= 0 ? 0 : xac_err(errno, "%s", name);
    }
    if (rc == 0) {
        v->path = xac_view_stored_path(env, name);
        rc = v->path == NULL ? xac_err(errno, "%s", name)
                             : xac_view_check_path(v->path, v->name);
        if (rc == 0)
            rc = xac_group_check_path(env, v->path);
        if (rc == 0 && is_new)
            rc = share(env, v);
        if (rc == 0 && env->reader == XAC_READER_NONE)
            rc = xac_claim_take(v->fd, &claimant, name);
        else if (rc == 0 && env->frozen == NULL) /* who does not write it only looks */
            rc = xac_claim_hold(v->fd, &claimant, false, name);
        if (rc == 0)
            rc = place(env, v, wish->flags, is_new);
        if (rc != 0 && is_new && v->path != NULL)
            withdraw(env, v);
    }
    if (rc != 0) {
        xac_view_close(env, v);
        return rc;
    }
    watch_out(v, 0);
    *viewp = v;
    xac_assert(v->file != 0);
    return 0;
}

int
xac_view_open(struct xac_env *env, const char *name, const struct xac_view_wish *wish,
              struct xac_view **viewp)
{
    int rc = ESTALE;

    for (unsigned i = 0; rc == ESTALE && i < OPEN_TRIES; i++) {
        if (i > 0) /* out of step with the process that renames it */
            xac_sleep_ns((uint64_t)i * 100000u);
        rc = open_once(env, name, wish, viewp);
    }
    return rc;
}

/* insert -- into the context's list, where it may meet others; env->threads held. */
static int
insert(struct xac_ctx *ctx, struct xac_view *v)
{
    int rc;

    xac_assert(v->ctx == ctx);
    v->next = ctx->views;
    ctx->views = v;
    rc = xac_aliases_meet(ctx);
    if (rc != 0)
        ctx->views = v->next;
    return rc;
}

int
xac_view_clone(struct xac_ctx *ctx, struct xac_view *origin, struct xac_view **viewp)
{
    struct xac_view *v = (struct xac_view *)calloc(1, sizeof *v);
    size_t held;
    void *p;
    int rc;

    xac_assert(origin->origin == NULL);
    if (v == NULL)
        return xac_err(ENOMEM, "xView");
    v->ctx = ctx;
    v->origin = origin;
    origin->n_clones++;
    v->env = origin->env;
    v->area = (struct xac_area){.owner = &xac_view_owner,
                                .page_size = origin->area.page_size,
                                .length = origin->area.length,
                                .n_pages = origin->area.n_pages,
                                .first = origin->area.first,
                                .is_memory_only = origin->area.is_memory_only,
                                .in_place = -1,
                                .memory = -1,
                                .pagemap = xac_area_pagemap(&origin->area),
                                .pagemap_handle = origin->area.pagemap_handle};
    v->file_bytes = origin->file_bytes;
    v->file = origin->file;
    v->fd = xac_view_fd(origin);
    v->handle = origin->handle;
    v->who = origin->who;
    v->name = origin->name;
    v->path = origin->path;
    p = xac_guard_map(v->area.length, v->fd, v->area.first * v->area.page_size, &held);
    if (p == MAP_FAILED) {
        rc = xac_err(errno, "xView: mapping %s", v->name);
    } else {
        v->area.base = (uint8_t *)p;
        watch_out(v, held);
        rc = map_pages(v);
    }
    if (rc == 0) {
        rc = xac_engine_attach(&v->area);
        rc = rc == 0 ? 0 : xac_err(rc, "xView: %s", v->name);
    }
    if (rc == 0)
        rc = insert(ctx, v);
    if (rc != 0)
        xac_view_close(v->env, v);
    else
        *viewp = v;
    return rc;
}

/* note_change -- of the process's list of views; env->threads held. */
static void
note_change(struct xac_env *env)
{
    /* Relaxed: a thread that has seen the old number gets no views of what is new. */
    atomic_fetch_add_explicit(&env->mappings, 1, memory_order_relaxed);
}

int
xac_view_add(struct xac_ctx *ctx, struct xac_view *v)
{
    int rc;

    xac_assert(v->n_clones == 0);
    (void)pthread_mutex_lock(&ctx->env->threads);
    rc = insert(ctx, v);
    note_change(ctx->env);
    (void)pthread_mutex_unlock(&ctx->env->threads);
    return rc;
}

bool
xac_view_remove(struct xac_ctx *ctx, struct xac_view *v)
{
    struct xac_view **link = &ctx->views;
    bool is_free;

    (void)pthread_mutex_lock(&ctx->env->threads);
    is_free = v->n_clones == 0;
    if (is_free) {
        while (*link != v)
            link = &(*link)->next;
        *link = v->next;
    }
    v->is_leaving = false;
    note_change(ctx->env);
    (void)pthread_mutex_unlock(&ctx->env->threads);
    return is_free;
}

/* close_shared -- what clones use, too. */
static void
close_shared(struct xac_view *v)
{
    xac_assert(v->origin == NULL);
    if (v->file_bytes != NULL)
        (void)xac_sys.munmap((void *)(uintptr_t)v->file_bytes, v->area.length);
    xac_handle_close(v->area.pagemap, &v->area.pagemap_handle);
    xac_handle_close(v->fd, &v->handle);
    free(v->path);
    free(v->name);
}

void
xac_view_close(struct xac_env *env, struct xac_view *v)
{
    xac_assert(v->n_clones == 0);
    if (v->area.ticket != NULL)
        v->area.ops->detach(&v->area);
    if (v->hold != 0)
        xac_registry_drop(env, v->hold);
    xac_outofcore_drop_file(v);
    xac_aliases_leave(v);
    if (v->pages.at != NULL)
        (void)xac_sys.munmap(v->pages.at, v->area.n_pages * sizeof v->pages.at[0]);
    if (v->area.base != NULL)
        (void)xac_sys.munmap(v->area.base, v->area.length);
    xac_guard_leave(v->guard, v->fate);
    if (v->origin != NULL)
        v->origin->n_clones--;
    else
        close_shared(v);
    free(v);
}

void
xac_view_close_all(struct xac_env *env, struct xac_ctx *ctx)
{
    while (ctx->views != NULL) {
        struct xac_view *v = ctx->views;

        ctx->views = v->next;
        xac_view_close(env, v);
    }
    xac_assert(ctx->views == NULL);
}

/* ---- Making one shorter or longer --------------------------------------------------------- */

/* stretch -- addresses for a view that is to have another length; base may change. */
static int
stretch(const struct xac_view *v, struct xac_view *longer, int flags)
{
    int rc;

    xac_assert(longer->area.first == v->area.first);
    if (longer->area.length <= v->area.length)
        return 0;
    rc = xac_address_extend(v, longer->area.length);
    return rc == 0 || (flags & XAC_MAY_MOVE) == 0 ? rc : xac_address_map(longer, false);
}

/* unstretch -- give back the addresses that only one of two views of the same part has. */
static void
unstretch(const struct xac_view *unwanted, const struct xac_view *kept)
{
    if (unwanted->area.base != kept->area.base)
        (void)xac_sys.munmap(unwanted->area.base, unwanted->area.length);
    else if (unwanted->area.length > kept->area.length)
        (void)xac_sys.munmap(kept->area.base + kept->area.length,
                             unwanted->area.length - kept->area.length);
}

/* unmap_file -- undo map_file. */
static void
unmap_file(const struct xac_view *v)
{
    if (v->pages.at != NULL)
        (void)xac_sys.munmap(v->pages.at, v->area.n_pages * sizeof v->pages.at[0]);
    if (v->file_bytes != NULL)
        (void)xac_sys.munmap((void *)(uintptr_t)v->file_bytes, v->area.length);
}

/* resize -- env->threads held, no clones. */
static int
resize(struct xac_view *v, size_t length, int flags)
{
    struct xac_view was, is;
    /* What is known is forgotten with the old page states. */
    int rc = xac_view_leave_alone(v);

    xac_assert(v->n_clones == 0);
    xac_assert(length > 0);
    if (rc != 0)
        return xac_err(rc, "resizing %s", v->name);
    was = *v;
    v->area.n_pages = length / v->area.page_size; /* with whom will it share pages? */
    rc = xac_aliases_meet(v->ctx);
    v->area.n_pages = was.area.n_pages;
    if (rc != 0)
        return rc;
    is = *v;
    is.area.length = length;
    is.area.n_pages = length / v->area.page_size;
    is.pages.at = NULL;
    is.file_bytes = NULL;
    rc = stretch(v, &is, flags);
    if (rc != 0)
        return rc;
    rc = map_file(&is);
    if (rc == 0 && length > v->area.length)
        rc = enroll(v->env, &is, false);
    if (rc != 0) {
        unmap_file(&is);
        unstretch(&is, &was);
        return rc;
    }
    *v = is;
    rc = xac_engine_moved(&v->area); /* from here on faults are found there */
    xac_require(rc == 0);            /* the file has been mapped there once already */
    unmap_file(&was);
    unstretch(&was, &is);
    if (is.area.base == was.area.base) {
        xac_guard_resize(v->guard, length);
    } else {
        xac_guard_leave(v->guard, "was moved by xMremap()");
        watch_out(v, 0);
    }
    return 0;
}

int
xac_view_resize(struct xac_view *v, size_t length, int flags)
{
    pthread_mutex_t *threads = &v->env->threads;
    int rc;

    if (length == v->area.length)
        return 0;
    (void)pthread_mutex_lock(threads);
    if (v->n_clones > 0)
        rc = xac_err(EBUSY, "xMremap: threads have views of %s", v->name);
    else if (xac_view_fd(v) < 0)
        rc = xac_err(XAC_EDESCRIPTOR, "%s: %s", v->name, strerror(errno));
    else
        rc = resize(v, length, flags);
    v->is_leaving = false;
    note_change(v->env);
    (void)pthread_mutex_unlock(threads);
    return rc;
}

/* ---- By name ------------------------------------------------------------------------------ */

struct xac_view *
xac_view_named(const struct xac_env *env, const char *name, unsigned *countp)
{
    char *path = xac_view_stored_path(env, name);
    struct xac_view *v = path != NULL ? env->ctx.views : NULL;

    while (v != NULL && strcmp(v->path, path) != 0)
        v = v->next;
    free(path);
    if (v == NULL) { /* it may have been renamed, or the current directory is another */
        for (v = env->ctx.views; v != NULL && strcmp(v->name, name) != 0; v = v->next)
            ;
    }
    *countp = 0;
    for (const struct xac_view *w = env->ctx.views; w != NULL && v != NULL; w = w->next)
        *countp += w->file == v->file;
    return v;
}

/* rejoin -- one view. */
static int
rejoin(struct xac_env *env, struct xac_view *v)
{
    int rc = xac_engine_rejoin(&v->area);

    xac_assert(v->origin == NULL || v->origin->file != 0);
    if (rc != 0)
        return xac_err(rc, "mapping %s", v->name);
    if (v->origin != NULL) { /* joined before */
        v->file = v->origin->file;
        v->area.pagemap = v->origin->area.pagemap;
        v->area.pagemap_handle = v->origin->area.pagemap_handle;
        return 0;
    }
    if (xac_view_fd(v) < 0)
        return xac_err(XAC_EDESCRIPTOR, "%s: %s", v->name, strerror(errno));
    xac_area_open_pagemap(&v->area);
    /* The other one is the parent's. */
    rc = xac_registry_file(env, v->path, v->fd, end_of(v), &v->file, &v->hold);
    return rc == 0 ? xac_outofcore_add_file(env, v->file, v->fd) : rc;
}

int
xac_view_rejoin_all(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc = 0;

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = rejoin(env, v);
    return rc == 0 ? xac_aliases_meet(ctx) : rc;
}
