/* SPDX-License-Identifier: MIT */
/*
 * list.c -- a sorted list of words in a mapped file: xMalloc(), xFree(), xRoot().
 *
 *     list +word ... -word ...    adds and removes words, prints the list
 *
 * All changes of one call are one transaction.  Links are ordinary pointers: the segment
 * is asked to lie where it lay in the run that stored them (XAC_SAME_ADDRESS).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

struct node {
    struct node *next;
    char word[];
};

/* What lies in the root area. */
struct list {
    struct node *first;
    uint64_t count;
};

static char *base;

/* The link that leads to the first word not before this one. */
static struct node **
find(struct list *list, const char *word)
{
    struct node **link = &list->first;

    while (*link != NULL && strcmp((*link)->word, word) < 0)
        link = &(*link)->next;
    return link;
}

static int
add(struct list *list, const char *word)
{
    struct node **link = find(list, word);
    struct node *n;

    if (*link != NULL && strcmp((*link)->word, word) == 0)
        return 0;
    n = xMalloc(base, sizeof *n + strlen(word) + 1);
    if (n == NULL)
        return -1;
    memcpy(n->word, word, strlen(word) + 1);
    n->next = *link;
    *link = n;
    list->count++;
    return 0;
}

static int
take_out(struct list *list, const char *word)
{
    struct node **link = find(list, word);
    struct node *n = *link;

    if (n == NULL || strcmp(n->word, word) != 0)
        return 0;
    *link = n->next;
    list->count--;
    return xFree(base, n);
}

/* All changes, or none: ret 0, or -1 with words in xLastError(). */
static int
change(char **words, int n)
{
    int rc, failed;

    do {
        struct list *list;

        if (xbegin() != 0)
            return -1;
        list = xRoot(base);
        failed = list == NULL;
        for (int i = 0; i < n && !failed; i++) {
            if (words[i][0] == '+')
                failed = add(list, words[i] + 1) != 0;
            else if (words[i][0] == '-')
                failed = take_out(list, words[i] + 1) != 0;
        }
        if (failed)
            xAbort();
    } while ((rc = xend()) == ABORTED && !failed);
    return rc == COMMITTED ? 0 : -1;
}

static int
print(void)
{
    struct xac_heap_totals t;
    struct list *list;
    int rc;

    if (xbeginQuery() != 0)
        return -1;
    list = xRoot(base);
    rc = xHeapCheck(base, &t, sizeof t);
    if (list != NULL && rc == 0) {
        printf("%llu words:", (unsigned long long)list->count);
        for (const struct node *n = list->first; n != NULL; n = n->next)
            printf(" %s", n->word);
        printf("; %llu allocations\n", (unsigned long long)t.allocations);
        rc = t.allocations == list->count ? 0 : -1;
    }
    xendQuery();
    return rc;
}

int
main(int argc, char **argv)
{
    int rc;

    if (xInit("list.xac", DURABLE) != 0) {
        fprintf(stderr, "xInit: %s\n", xLastError());
        return EXIT_FAILURE;
    }
    base = xMmapAt("list.db", 0, (size_t)256 * 4096, XAC_SAME_ADDRESS);
    if (base == MAP_FAILED) {
        fprintf(stderr, "xMmapAt: %s\n", xLastError());
        return EXIT_FAILURE;
    }
    rc = change(argv + 1, argc - 1);
    if (rc == 0)
        rc = print();
    if (rc != 0)
        fprintf(stderr, "list: %s\n", xLastError());
    if (xShutdown() != 0)
        rc = -1;
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
