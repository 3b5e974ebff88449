/* SPDX-License-Identifier: MIT */
/*
 * raftd_stale.c -- see raftd_stale.h.
 */
#include <config.h>

#include "raftd_stale.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* What lies in the directory of libraft. */
struct seen {
    uint64_t last;     /* entry of the closed segments                                */
    uint64_t snapshot; /* index of the newest one that is complete                    */
    unsigned n_closed, n_open;
};

/* closed -- is it a closed segment?  *lastp: its last entry. */
static bool
closed(const char *name, uint64_t *lastp)
{
    uint64_t first;
    int n = 0;

    return sscanf(name, "%16" SCNu64 "-%16" SCNu64 "%n", &first, lastp, &n) == 2
           && name[n] == '\0';
}

/* note -- one name; a snapshot is complete if both of its files are there. */
static void
note(struct seen *s, int dirfd, const char *name)
{
    uint64_t term, index, ms, last;
    char meta[300];
    int n = 0;

    if (closed(name, &last)) {
        s->n_closed++;
        s->last = last > s->last ? last : s->last;
    } else if (strncmp(name, "open-", 5) == 0) {
        s->n_open++;
    } else if (sscanf(name, "snapshot-%" SCNu64 "-%" SCNu64 "-%" SCNu64 "%n", &term,
                      &index, &ms, &n)
                   == 3
               && name[n] == '\0') {
        (void)snprintf(meta, sizeof meta, "%s.meta", name);
        if (index > s->snapshot && faccessat(dirfd, meta, R_OK, 0) == 0)
            s->snapshot = index;
    }
}

bool
raftd_stale_remove(const char *dir)
{
    struct seen s = {.last = 0};
    struct dirent *e;
    DIR *d = opendir(dir);
    uint64_t last;
    bool is_stale;

    if (d == NULL)
        return false;
    while ((e = readdir(d)) != NULL)
        note(&s, dirfd(d), e->d_name);
    is_stale = s.n_closed > 0 && s.n_open == 0 && s.last < s.snapshot;
    rewinddir(d);
    while (is_stale && (e = readdir(d)) != NULL) {
        if (!closed(e->d_name, &last))
            continue;
        xac_require(last < s.snapshot); /* (1) */
        is_stale = unlinkat(dirfd(d), e->d_name, 0) == 0;
    }
    is_stale = is_stale && fsync(dirfd(d)) == 0;
    (void)closedir(d);
    return is_stale;
}
