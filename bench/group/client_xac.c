/* SPDX-License-Identifier: MIT */
/*
 * client_xac.c -- writers to a group of libxac: processes beside the node that leads, which have its environment open.
 *
 * A record is put into a libxactree, in a transaction of its own; the environment, the policy and the tree are as they are by
 * default.
 */
#include <config.h>

#include <stdio.h>

#include <xac.h>
#include <xactree.h>

#include "bench/kit/util.h"
#include "bench/ship/load_tree.h"
#include "group_client.h"

/* words_of -- NULL if there is no error. */
static const char *
words_of(int rc)
{
    static char words[512];

    if (rc == 0)
        return NULL;
    (void)snprintf(words, sizeof words, "%s %s %s", xac_strerror(rc), xac_last_error(),
                   xactree_last_error());
    return words;
}

static const char *
client_open(const char *place, void **handlep)
{
    struct xactree *tree = NULL;
    int rc = load_tree_open(place, &tree);

    *handlep = tree;
    return words_of(rc);
}

static const char *
put(void *handle, const void *key, const void *value)
{
    return words_of(xactree_put((struct xactree *)handle, key, BENCH_KEY_BYTES, value,
                                BENCH_VALUE_BYTES, XACTREE_ADD));
}

static const char *
count(void *handle, uint64_t *np)
{
    return words_of(xactree_count((struct xactree *)handle, NULL, NULL, np));
}

static const char *
client_close(void *handle)
{
    return words_of(load_tree_close((struct xactree *)handle));
}

static const char *
prepare(const char *place)
{
    void *handle;
    const char *words = client_open(place, &handle);

    return words != NULL ? words : client_close(handle);
}

const struct group_client group_client_xac = {.name = "xac",
                                              .prepare = prepare,
                                              .open = client_open,
                                              .put = put,
                                              .count = count,
                                              .close = client_close};
