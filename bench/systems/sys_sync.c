/* SPDX-License-Identifier: MIT */
/*
 * sys_sync.c -- the yardstick: what the disk alone asks for a durable insert.
 *
 * WHAT      One pwrite of sync_bytes at the next place of a zero-filled file and one
 *           fdatasync, round and round.  Keeps no records.
 * TWICE     The same, then the last 512 bytes once more and another fdatasync.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES 512u

struct yardstick {
    int fd;
    bool is_twice;
    uint64_t at;         /* bytes, where the next write goes                         */
    uint64_t file_bytes; /* size of the file                                         */
    uint64_t n_bytes;    /* per write                                                */
    uint64_t syncs;
    unsigned char *buf; /* n_bytes                                                  */
};

static int
sync_close(void *handle)
{
    struct yardstick *y = handle;
    int rc = y->fd >= 0 && close(y->fd) != 0 ? errno : 0;

    free(y->buf);
    free(y);
    return rc;
}

static int
sync_open(const struct bench_config *config, bool first, void **handlep)
{
    struct yardstick *y = calloc(1, sizeof *y);
    char path[PATH_MAX];

    (void)first;
    if (y == NULL)
        return ENOMEM;
    y->fd = -1;
    y->is_twice = config->system == &bench_sync_twice;
    y->file_bytes = config->log_file_bytes;
    y->n_bytes = config->sync_bytes;
    y->buf = malloc(y->n_bytes);
    if (y->buf != NULL) {
        memset(y->buf, 'x', y->n_bytes);
        snprintf(path, sizeof path, "%s/yardstick", config->dir);
        y->fd = bench_zero_file(path, y->file_bytes);
    }
    if (y->fd < 0) {
        int rc = errno;

        (void)sync_close(y);
        return rc;
    }
    *handlep = y;
    return 0;
}

/* sync_again -- the record that comes behind its data; ret 0 or errno. */
static int
sync_again(struct yardstick *y)
{
    size_t n_bytes = y->n_bytes < RECORD_BYTES ? y->n_bytes : RECORD_BYTES;
    ssize_t n =
        pwrite(y->fd, y->buf + y->n_bytes - n_bytes, n_bytes, (off_t)(y->at - n_bytes));

    if (n < 0 || (size_t)n != n_bytes)
        return n < 0 ? errno : EIO;
    y->syncs++;
    return fdatasync(y->fd) == 0 ? 0 : errno;
}

static int
sync_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct yardstick *y = handle;
    ssize_t n;

    (void)value;
    (void)retriesp;
    memcpy(y->buf, key, BENCH_KEY_BYTES);
    if (y->at + y->n_bytes > y->file_bytes)
        y->at = 0;
    n = pwrite(y->fd, y->buf, y->n_bytes, (off_t)y->at);
    if (n < 0 || (uint64_t)n != y->n_bytes)
        return n < 0 ? errno : EIO;
    y->at += y->n_bytes;
    y->syncs++;
    if (fdatasync(y->fd) != 0)
        return errno;
    return y->is_twice ? sync_again(y) : 0;
}

static int
sync_counters(void *handle, struct bench_counters *out)
{
    struct yardstick *y = handle;

    out->log_bytes = y->syncs * y->n_bytes;
    out->syncs = y->syncs;
    return 0;
}

static const char *
sync_explain(int code)
{
    return strerror(code);
}

const struct bench_system bench_sync = {
    .name = "sync",
    .what = "yardstick, no tree: one write into a zero-filled file and one fdatasync",
    .durably = "pwrite of --sync-bytes, then fdatasync",
    .abilities = 0,
    .open = sync_open,
    .insert = sync_insert,
    .counters = sync_counters,
    .close = sync_close,
    .explain = sync_explain,
};

const struct bench_system bench_sync_twice = {
    .name = "sync-twice",
    .what = "the same, then its last 512 bytes once more and a second fdatasync",
    .durably = "pwrite of --sync-bytes, fdatasync, pwrite of their end, fdatasync",
    .abilities = 0,
    .open = sync_open,
    .insert = sync_insert,
    .counters = sync_counters,
    .close = sync_close,
    .explain = sync_explain,
};
