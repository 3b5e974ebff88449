/* SPDX-License-Identifier: MIT */
/*
 * address.c -- see address.h.
 */
#include <config.h>

#include "view/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/stored.h"
#include "base/sys.h"
#include "base/tsan.h"
#include "shared/address_list.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "view/guard.h"
#include "view/view.h"

#define CANDIDATE_TRIES 16

/* ---- Choosing ------------------------------------------------------------------------- */

/* map_at -- a part of a file at that address if it is free; MAP_FAILED with errno. */
static void *
map_at(uint64_t address, const struct xac_view *v, uint64_t offset, size_t length)
{
    void *wanted = (void *)(uintptr_t)address;
    void *p;

    xac_assert(length > 0);
    xac_assert(address != 0);
    xac_guard_yield(address, length);
    p = xac_sys.mmap(wanted, length, PROT_NONE,
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
    return v->area.first * v->area.page_size;
}

/* is_usable -- the thread sanitizer has plans of its own for the candidates' addresses, and
   does not bear it if somebody uses them. */
static bool
is_usable(uint64_t address)
{
    return !xac_tsan_is_on() || address < XAC_CANDIDATE_FIRST
           || address >= XAC_CANDIDATE_END;
}

/* map_candidate -- one of the addresses that suit the file's name; files lock held. */
static void *
map_candidate(const struct xac_view *v)
{
    uint64_t h = xac_xxh64(v->path, strlen(v->path));
    uint64_t need = offset_of(v) + v->area.length;
    uint64_t slot = XAC_CANDIDATE_SLOT, slots;
    void *p = MAP_FAILED;

    xac_assert(xac_lock_is_mine(&v->env->ctl->files_lock));
    /* Room for twice its length, so that it can grow where it is. */
    while (slot < 2 * need && slot < XAC_CANDIDATE_END)
        slot *= 2;
    slots = (XAC_CANDIDATE_END - XAC_CANDIDATE_FIRST) / slot;
    for (uint64_t i = 0; slots != 0 && i < CANDIDATE_TRIES && p == MAP_FAILED; i++) {
        uint64_t address = XAC_CANDIDATE_FIRST + (h + i * 257) % slots * slot;

        if (!xac_address_list_has(&v->env->addresses, v->env->dirfd, address,
                                  address + need))
            p = map_at(address + offset_of(v), v, offset_of(v), v->area.length);
    }
    return p;
}

/* find_candidate -- the same, with the lock taken and the list read. */
static void *
find_candidate(const struct xac_view *v)
{
    struct xac_env *env = v->env;
    void *p = MAP_FAILED;

    xac_registry_enter(env);
    if (xac_address_list_read(&env->addresses, env->dirfd) == 0)
        p = map_candidate(v);
    xac_registry_exit(env);
    return p;
}

/* remembered -- the file's address, from its entry or from the last run; 0: none. */
static uint64_t
remembered(const struct xac_view *v)
{
    struct xac_env *env = v->env;
    const struct xac_address_line *line;
    uint64_t address = 0;
    uint32_t id = 0;

    xac_registry_enter(env);
    if (xac_registry_find(env, v->path, &v->who, &id) == 0 && id != 0)
        address =
            atomic_load_explicit(&xac_file_at(env, id)->address, memory_order_relaxed);
    if (address == 0 && xac_address_list_read(&env->addresses, env->dirfd) == 0) {
        line = xac_address_list_find(&env->addresses, v->path);
        address = line != NULL ? line->address : 0;
    }
    xac_registry_exit(env);
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

    xac_assert(length > 0);
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
        p = map_at(address + offset_of(v), v, offset_of(v), v->area.length);
    if (p == MAP_FAILED && address != 0 && is_same)
        return taken(v, address + offset_of(v), v->area.length);
    if (p == MAP_FAILED && is_usable(XAC_CANDIDATE_FIRST))
        p = find_candidate(v);
    if (p == MAP_FAILED)
        p = xac_sys.mmap(NULL, v->area.length, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE,
                         v->fd, (off_t)offset_of(v));
    if (p == MAP_FAILED)
        return xac_err(errno, "mapping %s", v->name);
    v->area.base = (uint8_t *)p;
    xac_assert(v->area.base != NULL);
    return 0;
}

int
xac_address_extend(const struct xac_view *v, size_t length)
{
    uint64_t address = (uint64_t)(uintptr_t)v->area.base + v->area.length;

    xac_assert(length > v->area.length);
    if (map_at(address, v, offset_of(v) + v->area.length, length - v->area.length)
        != MAP_FAILED)
        return 0;
    return taken(v, address, length - v->area.length);
}

/* address_of -- where the file's first byte would be; 0: nowhere. */
static uint64_t
address_of(const struct xac_view *v)
{
    uint64_t base = (uint64_t)(uintptr_t)v->area.base;

    return base > offset_of(v) ? base - offset_of(v) : 0;
}

bool
xac_address_is_kept(const struct xac_view *v)
{
    const struct xac_file *f = xac_file_at(v->env, v->file);

    xac_assert(v->file != 0);
    return atomic_load_explicit(&f->address, memory_order_relaxed) == address_of(v);
}

int
xac_address_keep(struct xac_env *env, const struct xac_view *v)
{
    struct xac_file *f = xac_file_at(env, v->file);
    struct xac_address_list *list = &env->addresses;
    const struct xac_address_line *line;
    uint64_t address = address_of(v);
    int rc;

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    xac_assert(v->file != 0);
    if (atomic_load_explicit(&f->address, memory_order_relaxed) != 0 || address == 0
        || env->frozen != NULL || strchr(v->path, '\n') != NULL)
        return 0;
    rc = xac_address_list_read(list, env->dirfd);
    if (rc != 0)
        return rc;
    line = xac_address_list_find(list, v->path);
    if (line == NULL && xac_env_is_standby(env))
        return 0; /* the list is the source's */
    if (line == NULL)
        rc = xac_address_list_add(list, env->dirfd, v->path, address,
                                  xac_env_is_durable(env));
    else if (xac_env_is_durable(
                 env)) /* who wrote it may have died before it was synced */
        rc = xac_address_list_sync(list, env->dirfd, line);
    if (line != NULL)
        address = line->address; /* taken here, but perhaps free elsewhere */
    if (rc == 0)
        atomic_store_explicit(&f->address, address, memory_order_relaxed);
    return rc;
}

/* Whether it takes the lock depends on env->ctl: clang cannot follow that. */
XAC_UNGUARDED int
xac_address_each(struct xac_env *env, int (*fn)(void *arg, const char *path), void *arg)
{
    struct xac_address_list *list = (struct xac_address_list *)calloc(1, sizeof *list);
    int rc;

    xac_assert(fn != NULL);
    if (list == NULL)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    /* A frozen reader has no region yet: it leaves out a line that is being written. */
    if (env->ctl != NULL)
        xac_registry_enter(env);
    rc = xac_address_list_read(list, env->dirfd);
    if (env->ctl != NULL)
        xac_registry_exit(env);
    for (uint32_t i = 0; rc == 0 && i < list->n_lines; i++) {
        const char *path = xac_address_list_path(list, &list->line[i]);

        if (path[0] != '/' && !xac_stored_is_inside(path))
            rc = xac_err(XAC_EDAMAGED, "%s: line %u: %s is no path of a file",
                         XAC_ADDRESSES_NAME, (unsigned)i + 2, path);
        else
            rc = fn(arg, path);
    }
    xac_address_list_free(list);
    free(list);
    return rc;
}
