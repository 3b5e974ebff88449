/* SPDX-License-Identifier: MIT */
/*
 * lsm.h -- what LevelDB and RocksDB do alike: their C interfaces differ by a prefix.
 *
 * WHAT      The functions of a bench_system that read, and those that put without a look.
 * USE       The source defines LSM(name), which puts its library's prefix before a name.
 *           It opens `db`, and its handles begin with a struct lsm.
 */
#ifndef XBENCH_LSM_H
#define XBENCH_LSM_H

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef LSM

struct lsm {
    LSM(writeoptions_t) *write;
    LSM(readoptions_t) *read;
    const LSM(snapshot_t) *snapshot; /* between begin_read() and end_read() */
};

static LSM(t) *db; /* the database of this process */

static _Thread_local char error_text[240];

/* check -- words of the library to a code; frees them. */
static int
check(char *error)
{
    if (error == NULL)
        return 0;
    snprintf(error_text, sizeof error_text, "%s", error);
    LSM(free)(error);
    return EIO;
}

static int
lsm_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct lsm *l = handle;
    char *error = NULL;

    (void)retriesp; /* nothing conflicts */
    LSM(put)(db, l->write, key, BENCH_KEY_BYTES, value, BENCH_VALUE_BYTES, &error);
    return check(error);
}

static int
lsm_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct lsm *l = handle;
    LSM(iterator_t) *it = LSM(create_iterator)(db, l->read);
    char *error = NULL;
    int rc = 0;

    if (from != NULL)
        LSM(iter_seek)(it, from, BENCH_KEY_BYTES);
    else
        LSM(iter_seek_to_first)(it);
    for (; rc == 0 && LSM(iter_valid)(it); LSM(iter_next)(it)) {
        size_t n_key, n_value;
        const char *key = LSM(iter_key)(it, &n_key);
        const char *value = LSM(iter_value)(it, &n_value);

        if (n_key != BENCH_KEY_BYTES || n_value != BENCH_VALUE_BYTES)
            rc = EINVAL;
        else
            rc = visit(arg, key, value);
    }
    if (rc == 0) {
        LSM(iter_get_error)(it, &error);
        rc = check(error);
    }
    LSM(iter_destroy)(it);
    return rc;
}

static int
lsm_begin_read(void *handle)
{
    struct lsm *l = handle;

    l->snapshot = LSM(create_snapshot)(db);
    LSM(readoptions_set_snapshot)(l->read, l->snapshot);
    return 0;
}

static int
lsm_end_read(void *handle)
{
    struct lsm *l = handle;

    LSM(readoptions_set_snapshot)(l->read, NULL);
    LSM(release_snapshot)(db, l->snapshot);
    return 0;
}

static const char *
lsm_explain(int code)
{
    return code == EIO ? error_text : strerror(code);
}

#endif

#endif /* XBENCH_LSM_H */
