/* SPDX-License-Identifier: MIT */
/*
 * past.c -- what did this record look like a moment ago, and what has changed since?
 *
 * The environment keeps the states of the last hour (XAC_OPT_HISTORY).  The program changes a few prices,
 * then asks for one as it was at a time before, and has the differences told, as a program would that
 * sends changes on to another system.  A history begins when the environment is opened: ask while
 * those who write have it open, from this process or from any other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>

#define ITEMS 1000

struct item {
    char name[24];
    int64_t cents;
};

static struct item *items;

static void
check(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, xLastError());
    exit(EXIT_FAILURE);
}

static void
set_price(int i, const char *name, int64_t cents)
{
    int rc;

    do {
        check(xbegin(), "xbegin");
        (void)snprintf(items[i].name, sizeof items[i].name, "%s", name);
        items[i].cents = cents;
        rc = xend();
    } while (rc == ABORTED);
    check(rc, "xend");
}

/* now -- ns since 1970, and a moment later. */
static uint64_t
now(void)
{
    const struct timespec moment = {0, 2000000};
    struct timespec t;

    nanosleep(&moment, NULL);
    clock_gettime(CLOCK_REALTIME, &t);
    nanosleep(&moment, NULL);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* show -- a record as it was. */
static void
show(int i, uint64_t time_ns, const char *when)
{
    struct item was;

    check(xbeginQueryAt(XAC_AT_TIME(time_ns)), when);
    was = items[i];
    check(xendQuery(), "xendQuery");
    printf("%s: %s costs %lld\n", when, was.name, (long long)was.cents);
}

/* tell -- a range that differs: its items. */
static int
tell(void *arg, const struct xac_change *change)
{
    uint64_t first = change->offset / sizeof(struct item);
    uint64_t last = (change->offset + change->length - 1) / sizeof(struct item);
    int *n_pages = arg;

    ++*n_pages;
    printf("%s, bytes %llu to %llu: item", change->file,
           (unsigned long long)change->offset,
           (unsigned long long)(change->offset + change->length - 1));
    for (uint64_t i = first; i <= last; i++)
        printf(" %llu", (unsigned long long)i);
    printf("\n");
    return 0;
}

int
main(void)
{
    uint64_t then;
    int n = 0;

    check(xSetOption(XAC_OPT_HISTORY, 3600), "xSetOption");
    check(xInit("shop", DURABLE), "xInit");
    items = xMmap("shop/items", 32768);
    if (items == MAP_FAILED)
        check(1, "xMmap");
    set_price(3, "apples", 120);
    set_price(900, "pears", 250);
    then = now();
    set_price(3, "apples", 140);
    set_price(3, "apples", 135);
    show(3, then, "before");
    show(3, now(), "now");
    check(xDiff(XAC_AT_TIME(then), XAC_AT_TIME(now()), tell, &n), "xDiff");
    printf("%d ranges differ\n", n);
    check(xShutdown(), "xShutdown");
    return 0;
}
