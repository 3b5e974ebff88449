/* SPDX-License-Identifier: MIT */
/*
 * group_client.h -- what a writer needs of a group of three nodes.
 *
 * WHAT      One struct group_client for each system that group.sh compares: libxac, dqlite, etcd.
 * NOT HERE  Starting nodes, and finding the one that leads: group.sh.
 * LIFE      prepare() once; share(); then each writer, a process, opens, puts and closes.
 * THREADS   a handle belongs to one process.
 * ERRORS    functions return NULL, or words that stay until the next call.
 */
#ifndef XBENCH_GROUP_CLIENT_H
#define XBENCH_GROUP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct group_client {
    const char *name;

    /* Make what records lie in.  NULL: there is nothing to make. */
    const char *(*prepare)(const char *place);

    /*
     * Does the node there lead?  NULL: group.sh asks xraftd.
     *
     * out  leadsp  only if NULL is returned
     */
    const char *(*leads)(const char *place, bool *leadsp);

    /* Make what writers share, before they are forked.  NULL: nothing. */
    const char *(*share)(void);

    /* At the node that leads: a directory, or ADDRESS:PORT. */
    const char *(*open)(const char *place, void **handlep);

    /* A record, of BENCH_KEY_BYTES and BENCH_VALUE_BYTES; its key is new.  When this returns, a majority has it on disk. */
    const char *(*put)(void *handle, const void *key, const void *value);

    /* How many records there are. */
    const char *(*count)(void *handle, uint64_t *np);

    const char *(*close)(void *handle);
};

extern const struct group_client group_client_xac;
extern const struct group_client group_client_dqlite;
extern const struct group_client group_client_etcd;

#endif /* XBENCH_GROUP_CLIENT_H */
