/* SPDX-License-Identifier: MIT */
/*
 * hashtable.c -- a hash table in a mapped file, which grows, used by two processes.
 *
 * Each process puts its keys in, changes them and takes every third out again, in many
 * small transactions.  Then everything is compared with what must be there.  The code of
 * the table is what one would write for malloc(3) and one process, ordinary pointers
 * included (XAC_SAME_ADDRESS), but for one thing: the number of keys is not kept in the
 * table, since all transactions would conflict on it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define KEYS       3000 /* of each process */
#define PROCESSES  2
#define BUCKETS    64 /* in the beginning                              */
#define CHAIN_LONG 12 /* the table doubles when a chain gets longer    */
#define LENGTH     ((size_t)2048 * 4096)

struct item {
    struct item *next;
    uint64_t key;
    uint64_t value;
};

/* What lies in the root area. */
struct table {
    struct item **buckets;
    uint64_t size; /* number of them, a power of two */
};

static char *base;

static void
die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, xLastError());
    exit(EXIT_FAILURE);
}

static void *
take(size_t size)
{
    void *p = xMalloc(base, size);

    if (p == NULL)
        die("xMalloc");
    return p;
}

static struct item **
bucket_of(const struct table *t, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &t->buckets[hash & (t->size - 1)];
}

/* resize -- a new array of buckets; all items change over. */
static void
resize(struct table *t, uint64_t size)
{
    struct table old = *t;
    struct item **buckets = take(size * sizeof *buckets);

    memset(buckets, 0, size * sizeof *buckets); /* xMalloc() does not */
    t->buckets = buckets;
    t->size = size;
    for (uint64_t b = 0; b < old.size; b++) {
        struct item *item = old.buckets[b];

        while (item != NULL) {
            struct item *next = item->next;
            struct item **link = bucket_of(t, item->key);

            item->next = *link;
            *link = item;
            item = next;
        }
    }
    if (old.size != 0 && xFree(base, old.buckets) != 0)
        die("xFree");
}

static struct table *
table(void)
{
    struct table *t = xRoot(base);

    if (t == NULL)
        die("xRoot");
    if (t->size == 0)
        resize(t, BUCKETS);
    return t;
}

/* find -- the link to a key's item; *link is NULL if there is none. */
static struct item **
find(const struct table *t, uint64_t key, int *length)
{
    struct item **link = bucket_of(t, key);

    for (*length = 0; *link != NULL && (*link)->key != key; (*length)++)
        link = &(*link)->next;
    return link;
}

static void
put(uint64_t key, uint64_t value)
{
    struct table *t = table();
    int length;
    struct item **link = find(t, key, &length);
    struct item *item;

    if (*link == NULL) {
        item = take(sizeof *item);
        item->next = NULL;
        item->key = key;
        *link = item;
    }
    (*link)->value = value;
    if (length > CHAIN_LONG)
        resize(t, 2 * t->size);
}

static void
take_out(uint64_t key)
{
    int length;
    struct item **link = find(table(), key, &length);
    struct item *gone = *link;

    if (gone == NULL)
        return;
    *link = gone->next;
    if (xFree(base, gone) != 0)
        die("xFree");
}

static uint64_t
value_of(uint64_t key)
{
    return key * 7 + 1;
}

/* change -- one key: in, changed, perhaps out again; each a transaction. */
static void
change(uint64_t key)
{
    int rc;

    do {
        xbegin();
        put(key, 0);
    } while ((rc = xend()) == ABORTED);
    if (rc != COMMITTED)
        die("xend");
    do {
        xbegin();
        put(key, value_of(key));
        if (key % 3 == 0)
            take_out(key);
    } while ((rc = xend()) == ABORTED);
    if (rc != COMMITTED)
        die("xend");
}

static void
open_table(void)
{
    if (xInit(".", NONDURABLE) != 0)
        die("xInit");
    base = xMmapAt("table.db", 0, LENGTH, XAC_SAME_ADDRESS);
    if (base == MAP_FAILED)
        die("xMmapAt");
}

static void
work(uint64_t who)
{
    open_table();
    for (uint64_t i = 0; i < KEYS; i++)
        change(i * PROCESSES + who);
    if (xShutdown() != 0)
        die("xShutdown");
    exit(EXIT_SUCCESS);
}

/* verify -- ret number of keys that are wrong. */
static uint64_t
verify(uint64_t *present)
{
    struct xac_heap_totals totals;
    const struct table *t;
    uint64_t wrong = 0;
    int length;

    *present = 0;
    xbeginQuery();
    t = xRoot(base);
    for (uint64_t key = 0; key < KEYS * PROCESSES; key++) {
        const struct item *item = *find(t, key, &length);

        *present += item != NULL;
        if (key % 3 == 0)
            wrong += item != NULL;
        else
            wrong += item == NULL || item->value != value_of(key);
    }
    if (xHeapCheck(base, &totals, sizeof totals) != 0)
        die("xHeapCheck");
    wrong += totals.allocations != *present + 1; /* the items and the buckets */
    xendQuery();
    return wrong;
}

int
main(void)
{
    pid_t pid[PROCESSES];
    uint64_t present, wrong;
    int status, failed = 0;

    for (uint64_t i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            work(i);
    }
    for (int i = 0; i < PROCESSES; i++)
        failed |= pid[i] < 0 || waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    open_table();
    wrong = verify(&present);
    if (xShutdown() != 0)
        die("xShutdown");
    printf("%llu keys, %llu wrong\n", (unsigned long long)present,
           (unsigned long long)wrong);
    return failed || wrong != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
