/* SPDX-License-Identifier: MIT */
/*
 * keys.c -- keys of real data: the paths of files, in the order in which a walk of the
 * directories meets them.  (examples/fileindex.c sorts them before it inserts: that is
 * BENCH_KEYS_SORTED.)
 *
 * The trees only compare keys.  So the place of a path among all of them, in order of
 * names, stands for the path: inserts of these numbers go where inserts of the paths would.
 */
#include <config.h>

#include "bench/kit/workload.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"

struct path {
    char *name;
    uint64_t number; /* in the order in which they were met */
};

struct paths {
    struct path *v;
    size_t n, room;
};

static int
path_order(const void *a, const void *b)
{
    const struct path *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* paths_add -- ret 0, or 1 after a message. */
static int
paths_add(struct paths *p, const char *name)
{
    if (p->n == p->room) {
        size_t room = p->room == 0 ? 4096 : 2 * p->room;
        struct path *v = reallocarray(p->v, room, sizeof *v);

        if (v == NULL)
            return bench_fail("out of memory");
        p->v = v;
        p->room = room;
    }
    p->v[p->n] = (struct path){.name = strdup(name), .number = p->n};
    return p->v[p->n++].name != NULL ? 0 : bench_fail("out of memory");
}

/* walk -- all files below a folder; ret 0, or 1 after a message. */
static int
walk(const char *folder, struct paths *p)
{
    char *const roots[] = {(char *)(uintptr_t)folder, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    FTSENT *e;
    int rc = 0;

    if (fts == NULL)
        return bench_fail("%s: cannot be read", folder);
    while (rc == 0 && (e = fts_read(fts)) != NULL)
        if (e->fts_info != FTS_DP)
            rc = paths_add(p, e->fts_path);
    fts_close(fts);
    return rc == 0 && p->n == 0 ? bench_fail("%s: no files", folder) : rc;
}

int
bench_keys_paths(const char *folder, uint64_t **ranksp, uint64_t *np)
{
    struct paths p = {0};
    uint64_t *ranks = NULL;
    int rc = walk(folder, &p);

    if (rc == 0) {
        ranks = calloc(p.n, sizeof *ranks);
        if (ranks == NULL)
            rc = bench_fail("out of memory");
    }
    if (rc == 0) {
        qsort(p.v, p.n, sizeof p.v[0], path_order);
        for (size_t i = 0; i < p.n; i++)
            ranks[p.v[i].number] = i;
        *ranksp = ranks;
        *np = p.n;
    }
    for (size_t i = 0; i < p.n; i++)
        free(p.v[i].name);
    free(p.v);
    return rc;
}
