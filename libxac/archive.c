/* SPDX-License-Identifier: MIT */
/*
 * archive.c -- which log files are no longer needed: see checkpoint.h.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "env.h"
#include "err.h"
#include "log.h"
#include "master.h"

/* Names collected so far. */
struct list {
    char **name; /* each to be freed */
    size_t n, size;
};

static int
list_add(struct list *l, const char *dir, const char *name)
{
    if (l->n == l->size) {
        size_t want = l->size == 0 ? 16 : l->size * 2;
        char **more = (char **)realloc(l->name, want * sizeof more[0]);

        if (more == NULL)
            return ENOMEM;
        l->name = more;
        l->size = want;
    }
    if (asprintf(&l->name[l->n], "%s/%s", dir, name) < 0)
        return ENOMEM;
    l->n++;
    return 0;
}

static void
list_free(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->name[i]);
    free(l->name);
}

/* is_old -- a segment that ends at or below the redo position, or a data file of an
   earlier generation of the log, of this name exactly. */
static bool
is_old(const char *name, const struct xac_master_slot *master)
{
    size_t n = strlen(XAC_LOG_PREFIX);
    char expected[XAC_LOG_NAME_MAX];
    unsigned long long number;
    unsigned generation;
    char *end;

    if (sscanf(name, XAC_DATA_PREFIX "%8x.%16llx", &generation, &number) == 2) {
        xac_log_datafile_name(expected, generation, number);
        return strcmp(name, expected) == 0 && generation < master->generation;
    }
    if (strncmp(name, XAC_LOG_PREFIX, n) != 0)
        return false;
    number = strtoull(name + n, &end, 10);
    if (*end != '\0' || number == 0)
        return false;
    xac_log_segment_name(expected, number);
    return strcmp(name, expected) == 0
           && number < xac_log_segment_of(master->redo_lsn, master->segment_bytes);
}

/* pack -- one block: the pointers, then the strings. */
static char **
pack(const struct list *l)
{
    size_t bytes = l->n * sizeof(char *);
    char **block;
    char *to;

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
xac_archive_list(const char *path, const struct xac_master_slot *master, char ***namesp,
                 size_t *countp)
{
    struct list l = {.n = 0};
    struct dirent *e;
    DIR *dir = opendir(path);
    int rc = 0;

    *namesp = NULL;
    *countp = 0;
    if (dir == NULL)
        return xac_err(errno, "%s", path);
    while (rc == 0 && (e = readdir(dir)) != NULL) {
        if (is_old(e->d_name, master))
            rc = list_add(&l, path, e->d_name);
    }
    (void)closedir(dir);
    if (rc == 0 && l.n > 0) {
        qsort(l.name, l.n, sizeof l.name[0], by_name);
        *namesp = pack(&l);
        rc = *namesp == NULL ? ENOMEM : 0;
        *countp = rc == 0 ? l.n : 0;
    }
    list_free(&l);
    return rc == 0 ? 0 : xac_err(rc, "listing the log files of %s", path);
}

int
xac_archive_names(struct xac_env *env, char ***namesp, size_t *countp)
{
    struct xac_master_slot master;
    bool is_lost;
    int rc = xac_master_read(env->dirfd, &master);

    *namesp = NULL;
    *countp = 0;
    if (rc != 0)
        return rc;
    /* A checkpoint may be about to sync it.  If power fails before that, recovery begins
       with the record before, and needs what that one needs. */
    rc = xac_master_sync(env->dirfd, &is_lost);
    if (is_lost && xac_env_is_durable(env))
        xac_log_poison(&env->log, rc);
    if (rc != 0)
        return rc;
    master.redo_lsn = xac_registry_log_needed(env, master.redo_lsn);
    return xac_archive_list(env->dir, &master, namesp, countp);
}
