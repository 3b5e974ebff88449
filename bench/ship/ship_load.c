/* SPDX-License-Identifier: MIT */
/*
 * ship_load.c -- what ship.sh runs at the source of a standby, and how it compares both.
 *
 *   ship_load insert DIR SECONDS SEED   durable inserts of random keys and 512-byte values into the tree in DIR, which is
 *                                       made, one transaction each; prints how many, and how many a second
 *   ship_load dump DIR                  all records in order: lengths and bytes, to standard output
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>
#include <xactree.h>

#include "load_tree.h"

#define VALUE_BYTES 512

static _Noreturn void
die(const char *what, int rc)
{
    fprintf(stderr, "ship_load: %s: %s %s %s\n", what, xac_strerror(rc), xac_last_error(),
            xactree_last_error());
    exit(1);
}

static struct xactree *
open_tree(const char *dir)
{
    struct xactree *tree;
    int rc = load_tree_open(dir, &tree);

    if (rc != 0)
        die(dir, rc);
    return tree;
}

static double
now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* next_random -- SplitMix64. */
static uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void
insert(struct xactree *tree, double seconds, uint64_t seed)
{
    double begun = now_s(), took;
    char value[VALUE_BYTES];
    uint64_t n = 0;

    while ((took = now_s() - begun) < seconds) {
        uint64_t key = next_random(&seed);
        int rc;

        for (size_t i = 0; i < VALUE_BYTES; i += 8)
            memcpy(value + i, &(uint64_t){key + i}, 8);
        rc = xactree_put(tree, &key, sizeof key, value, sizeof value, XACTREE_PUT);
        if (rc != 0)
            die("put", rc);
        n++;
    }
    printf("%" PRIu64 " %.1f\n", n, took > 0 ? (double)n / took : 0);
}

/* put_bytes -- with their number. */
static bool
put_bytes(const struct xactree_bytes *b)
{
    uint64_t n = b->len;

    return fwrite(&n, sizeof n, 1, stdout) == 1
           && (n == 0 || fwrite(b->data, b->len, 1, stdout) == 1);
}

static int
dump_one(void *arg, const struct xactree_bytes *key, const struct xactree_bytes *value)
{
    (void)arg;
    return put_bytes(key) && put_bytes(value) ? 0 : EIO;
}

int
main(int argc, char **argv)
{
    struct xactree *tree;
    int rc;

    if (argc == 5 && strcmp(argv[1], "insert") == 0) {
        tree = open_tree(argv[2]);
        insert(tree, strtod(argv[3], NULL), strtoull(argv[4], NULL, 10));
    } else if (argc == 3 && strcmp(argv[1], "dump") == 0) {
        tree = open_tree(argv[2]);
        rc = xactree_scan(tree, NULL, NULL, dump_one, NULL);
        if (rc != 0)
            die("scan", rc);
    } else {
        fputs("usage: ship_load insert DIR SECONDS SEED | dump DIR\n", stderr);
        return 2;
    }
    rc = load_tree_close(tree);
    if (rc != 0)
        die("xShutdown", rc);
    return fflush(stdout) == 0 ? 0 : 1;
}
