/* SPDX-License-Identifier: MIT */
/*
 * words.c -- counts words in a map of libxactree: xactree.h.
 *
 * Reads words from its arguments.  All of one run are one transaction: if the program is killed,
 * none of them has been counted.  Prints the words that begin with the first argument's letter,
 * and how many there are in all.
 *
 * usage: words WORD...
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>
#include <xactree.h>

#define BYTES ((size_t)64 << 20) /* the file is sparse */

static void
die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static struct xactree *
open_map(void)
{
    struct xactree *map;
    void *base;
    int rc;

    if (xac_init("db", XAC_DURABLE) != 0)
        die("db", xac_last_error());
    base = xac_mmap("words.map", BYTES);
    if (base == MAP_FAILED)
        die("words.map", xac_last_error());
    rc = xactree_open(&map, NULL, base, BYTES);
    if (rc == ENOENT)
        rc = xactree_create(&map, NULL, base, BYTES, NULL);
    if (rc != 0)
        die("words.map", xactree_last_error());
    return map;
}

/* One word more.  ret 0 or an error */
static int
count(struct xactree *map, const char *word)
{
    uint64_t n = 0;
    int rc = xactree_get(map, word, strlen(word), &n, sizeof n, NULL);

    if (rc != 0 && rc != ENOENT)
        return rc;
    n++;
    return xactree_put(map, word, strlen(word), &n, sizeof n, XACTREE_PUT);
}

struct words {
    struct xactree *map;
    char **word;
};

/* The transaction; may run several times. */
static int
count_all(void *arg)
{
    const struct words *w = arg;
    int rc = 0;

    for (char **word = w->word; *word != NULL && rc == 0; word++)
        rc = count(w->map, *word);
    return rc;
}

static int
print(void *arg, const struct xactree_bytes *key, const struct xactree_bytes *value)
{
    uint64_t n;

    (void)arg;
    memcpy(&n, value->data, sizeof n);
    printf("%.*s %llu\n", (int)key->len, (const char *)key->data, (unsigned long long)n);
    return 0;
}

int
main(int argc, char **argv)
{
    struct words w = {.word = argv + 1};
    struct xactree_bytes from, to;
    unsigned char first, behind;
    uint64_t n;
    int rc;

    if (argc < 2 || argv[1][0] == '\0')
        die("usage", "words WORD...");
    w.map = open_map();
    rc = xac_transact(count_all, &w);
    if (rc != 0)
        die("words", rc > 0 ? xactree_last_error() : xac_last_error());

    first = (unsigned char)argv[1][0];
    behind = (unsigned char)(first + 1);
    from = (struct xactree_bytes){&first, 1};
    to = (struct xactree_bytes){&behind, 1};
    if (xac_begin_query() != 0) /* both on one snapshot */
        die("words", xac_last_error());
    rc = xactree_scan(w.map, &from, behind != 0 ? &to : NULL, print, NULL);
    if (rc == 0)
        rc = xactree_count(w.map, NULL, NULL, &n);
    if (xac_end_query() != 0 || rc != 0)
        die("words", xactree_last_error());
    printf("%llu words\n", (unsigned long long)n);
    xactree_close(w.map);
    return xac_shutdown() != 0;
}
