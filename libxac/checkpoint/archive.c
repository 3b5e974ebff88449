/* SPDX-License-Identifier: MIT */
/*
 * archive.c -- which log files are no longer needed: see archive.h.
 */
#include <config.h>

#include "checkpoint/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "log/block.h"
#include "log/log.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "shared/env_state.h"
#include "shared/registry.h"

/* Names collected so far. */
struct list {
    char **name; /* each to be freed */
    size_t n, size;
};

static int
list_add(struct list *l, const char *dir, const char *name)
{
    xac_assert(name[0] != '\0');
    if (l->n == l->size) {
        size_t want = l->size == 0 ? 16 : l->size * 2;
        char **more = (char **)realloc(l->name, want * sizeof more[0]);

        if (more == NULL)
            return xac_err(ENOMEM, "listing the log files of %s", dir);
        l->name = more;
        l->size = want;
    }
    if (asprintf(&l->name[l->n], "%s/%s", dir, name) < 0)
        return xac_err(ENOMEM, "listing the log files of %s", dir);
    l->n++;
    xac_assert(l->n <= l->size);
    return 0;
}

static void
list_free(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->name[i]);
    free(l->name);
}

/* Which files are looked for. */
struct wanted {
    struct list list;
    int dirfd;
    const char *dir;
    const struct xac_master_slot *master; /* redo_lsn: needed from here on            */
    bool has_bound;
    uint64_t bound; /* data files below are of the log before redo_lsn                */
    uint64_t redo;  /* number of the segment that recovery begins in ...              */
    bool has_redo;  /* ... which has been seen                                        */
};

int
xac_archive_data_serial(int dirfd, const struct xac_master_slot *master,
                        uint64_t *serialp)
{
    const struct xac_record *rec = NULL;
    const struct xac_block *blk = NULL;
    struct xac_place place;
    struct xac_scan scan;
    int rc;

    xac_assert(dirfd >= 0);
    xac_assert((master->segment_bytes & (master->segment_bytes - 1)) == 0);
    *serialp = 0;
    if (master->redo_lsn <= master->start_lsn)
        return 0;
    rc = xac_scan_open(&scan, dirfd, master);
    if (rc == 0)
        rc = xac_scan_block(&scan, master->redo_lsn, &blk, &place);
    if (rc == 0 && blk != NULL)
        rec = xac_record_next(blk, NULL);
    if (rec != NULL && rec->type == XAC_XCHECKPT_BEGIN)
        *serialp = ((const struct xac_xcheckpt_begin *)(const void *)rec)->data_serial;
    xac_scan_close(&scan);
    return rc;
}

/* is_old_data -- a data file of an earlier generation of the log, or of a transaction before
   the redo position. */
static int
is_old_data(struct wanted *w, uint32_t generation, uint64_t serial, bool *oldp)
{
    int rc = 0;

    xac_assert(w->master != NULL);
    /* What is needed begins in an earlier generation: in which one is not known. */
    *oldp =
        generation < w->master->generation && w->master->redo_lsn >= w->master->start_lsn;
    if (generation != w->master->generation)
        return 0;
    if (!w->has_bound)
        rc = xac_archive_data_serial(w->dirfd, w->master, &w->bound);
    w->has_bound = rc == 0;
    *oldp = rc == 0 && serial < w->bound;
    return rc;
}

/* list_old -- for xac_scan_names: a segment that ends at or below the redo position, or an
   old data file. */
static int
list_old(void *arg, const char *name)
{
    struct wanted *w = (struct wanted *)arg;
    const struct xac_master_slot *m = w->master;
    uint64_t first = xac_log_segment_of(m->redo_lsn, m->segment_bytes);
    uint32_t generation;
    uint64_t number;
    bool is_old = false;
    int rc = 0;

    xac_assert(m->segment_bytes != 0);
    if (xac_log_datafile_named(name, &generation, &number)) {
        rc = is_old_data(w, generation, number, &is_old);
    } else if (xac_log_segment_named(name, &number)) {
        is_old = number < first;
        w->has_redo = w->has_redo || number == w->redo;
    }
    if (rc == 0 && is_old && list_add(&w->list, w->dir, name) != 0)
        rc = xac_err(ENOMEM, "listing the log files of %s", w->dir);
    return rc;
}

/* remove_old -- for xac_scan_names. */
static int
remove_old(void *arg, const char *name)
{
    struct wanted *w = (struct wanted *)arg;
    uint32_t generation;
    uint64_t serial;
    bool is_old;
    int rc;

    if (!xac_log_datafile_named(name, &generation, &serial))
        return 0;
    rc = is_old_data(w, generation, serial, &is_old);
    if (rc == 0 && is_old && xac_sys.unlinkat(w->dirfd, name, 0) != 0 && errno != ENOENT)
        rc = xac_err(errno, "%s: remove", name);
    return rc;
}

void
xac_archive_remove_data(struct xac_env *env, const struct xac_master_slot *master)
{
    struct wanted w = {.dirfd = env->logfd, .master = master};
    uint64_t *removed = &env->ctl->data_removed;
    /* Relaxed: what is taken from now on is not old. */
    uint64_t next = atomic_load_explicit(&env->ctl->next_datafile, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(*removed <= next);
    /* The first time there may be some of earlier generations. */
    if (*removed == next)
        return;
    w.has_bound = xac_archive_data_serial(w.dirfd, master, &w.bound) == 0;
    if (w.has_bound && w.bound > *removed
        && xac_scan_names(w.dirfd, XAC_DATA_PREFIX, remove_old, &w) == 0)
        *removed = w.bound;
    xac_assert(*removed <= next);
}

/* pack -- one block: the pointers, then the strings. */
static char **
pack(const struct list *l)
{
    size_t bytes = l->n * sizeof(char *);
    char **block;
    char *to;

    xac_assert(l->n > 0);
    for (size_t i = 0; i < l->n; i++)
        bytes += strlen(l->name[i]) + 1;
    block = (char **)malloc(bytes);
    if (block == NULL)
        return NULL;
    to = (char *)(block + l->n);
    for (size_t i = 0; i < l->n; i++) {
        size_t n = strlen(l->name[i]) + 1;

        block[i] = to;
        memcpy(to, l->name[i], n);
        to += n;
    }
    return block;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int
xac_archive_list(const char *path, const struct xac_master_slot *master, uint64_t needed,
                 char ***namesp, size_t *countp)
{
    struct xac_master_slot lowered = *master;
    struct wanted w = {.dir = path,
                       .master = &lowered,
                       .redo =
                           xac_log_segment_of(master->redo_lsn, master->segment_bytes)};
    int rc;

    xac_assert(path[0] != '\0');
    xac_assert(needed <= master->redo_lsn);
    lowered.redo_lsn = needed;
    *namesp = NULL;
    *countp = 0;
    w.dirfd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (w.dirfd < 0)
        return xac_err(errno, "%s", path);
    rc = xac_scan_names(w.dirfd, "xac-", list_old, &w);
    (void)xac_sys.close(w.dirfd);
    if (rc == 0 && (master->flags & XAC_MASTER_LOGGED) != 0 && !w.has_redo) {
        char name[XAC_LOG_NAME_MAX];

        xac_log_segment_name(name, w.redo);
        rc = xac_scan_lost(name);
    }
    if (rc == 0 && w.list.n > 0) {
        qsort(w.list.name, w.list.n, sizeof w.list.name[0], by_name);
        *namesp = pack(&w.list);
        *countp = *namesp == NULL ? 0 : w.list.n;
        rc = *namesp == NULL ? xac_err(ENOMEM, "listing the log files of %s", path) : 0;
    }
    list_free(&w.list);
    xac_assert(rc != 0 || *countp == 0 || *namesp != NULL);
    return rc;
}

int
xac_archive_names(struct xac_env *env, char ***namesp, size_t *countp)
{
    struct xac_master_slot master;
    bool is_lost;
    int rc = xac_master_read(env->dirfd, &master);

    xac_assert(env->dirfd >= 0);
    *namesp = NULL;
    *countp = 0;
    if (rc != 0)
        return rc;
    rc = xac_log_keep(env->logfd, true, NULL);
    if (rc != 0)
        return rc;
    /* A checkpoint may be about to sync it.  If power fails before that, recovery begins
       with the record before, and needs what that one needs. */
    rc = xac_master_sync(env->dirfd, &is_lost);
    if (is_lost && xac_env_is_durable(env))
        xac_log_poison(&env->log, rc);
    if (rc != 0)
        return rc;
    return xac_archive_list(env->logdir != NULL ? env->logdir : env->dir, &master,
                            xac_registry_log_needed(env, master.redo_lsn), namesp,
                            countp);
}
