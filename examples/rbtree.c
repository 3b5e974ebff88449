/* SPDX-License-Identifier: MIT */
/*
 * rbtree.c -- the red-black tree macros of libbsd's <bsd/sys/tree.h>, unchanged, in a
 * mapped file that two processes work on.
 *
 * The macros know nothing of libxac: nodes hold ordinary pointers, and that they may be
 * read by another process, or in the next run, needs no more than that the segment lies
 * at one address everywhere (XAC_SAME_ADDRESS).  That a rotation is seen whole or not at
 * all, the transactions see to.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bsd/sys/tree.h>
#include <xac.h>

#define KEYS      1000 /* of each process */
#define PROCESSES 2
#define LENGTH    ((size_t)1024 * 4096)

struct account {
    RB_ENTRY(account) links;
    uint64_t number;
    int64_t balance;
};

RB_HEAD(accounts, account); /* lies in the root area */

static int
compare(const struct account *a, const struct account *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

RB_PROTOTYPE(accounts, account, links, compare)
RB_GENERATE(accounts, account, links, compare)

static char *base;

static void
die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, xLastError());
    exit(EXIT_FAILURE);
}

/* ---- Transactions: functions for xTransact() ------------------------------------------- */

/* open_account -- ret 0, also if it is there already. */
static int
open_account(void *arg)
{
    struct accounts *all = xRoot(base);
    struct account *a = xMalloc(base, sizeof *a);

    if (all == NULL || a == NULL)
        return -1;
    a->number = *(const uint64_t *)arg;
    a->balance = 0;
    return RB_INSERT(accounts, all, a) == NULL ? 0 : xFree(base, a);
}

/* move_money -- from an account to its neighbour, which is the other process's. */
static int
move_money(void *arg)
{
    struct accounts *all = xRoot(base);
    struct account key = {.number = *(const uint64_t *)arg};
    struct account *from = all != NULL ? RB_FIND(accounts, all, &key) : NULL;
    struct account *to = from != NULL ? RB_NEXT(accounts, all, from) : NULL;

    if (to != NULL) {
        from->balance -= 1;
        to->balance += 1;
    }
    return all == NULL ? -1 : 0;
}

/* close_account -- its balance goes to the smallest account that is left. */
static int
close_account(void *arg)
{
    struct accounts *all = xRoot(base);
    struct account key = {.number = *(const uint64_t *)arg};
    struct account *gone, *heir;

    if (all == NULL)
        return -1;
    gone = RB_FIND(accounts, all, &key);
    if (gone == NULL)
        return 0;
    (void)RB_REMOVE(accounts, all, gone);
    heir = RB_MIN(accounts, all);
    if (heir != NULL)
        heir->balance += gone->balance;
    return xFree(base, gone);
}

/* ---- What must hold ----------------------------------------------------------------------- */

/* black_height -- of a subtree; -1 if a rule of red-black trees is broken. */
static int
black_height(const struct account *a)
{
    const struct account *left, *right;
    int height;

    if (a == NULL)
        return 0;
    left = RB_LEFT(a, links);
    right = RB_RIGHT(a, links);
    height = black_height(left);
    if (height < 0 || height != black_height(right))
        return -1;
    if (RB_COLOR(a, links) == RB_BLACK)
        return height + 1;
    if ((left != NULL && RB_COLOR(left, links) == RB_RED)
        || (right != NULL && RB_COLOR(right, links) == RB_RED))
        return -1;
    return height;
}

/* verify -- print the tree; ret number of things that are wrong. */
static int
verify(void)
{
    struct xac_heap_totals totals;
    struct accounts *all;
    struct account *a;
    uint64_t n = 0, last = 0;
    int64_t money = 0;
    int wrong = 0;

    xbeginQuery();
    all = xRoot(base);
    RB_FOREACH(a, accounts, all)
    {
        wrong += n > 0 && a->number <= last;
        wrong += a->number % 3 == 0;
        last = a->number;
        money += a->balance;
        n++;
    }
    wrong += money != 0;
    wrong += black_height(RB_ROOT(all)) < 0;
    if (xHeapCheck(base, &totals, sizeof totals) != 0)
        die("xHeapCheck");
    wrong += totals.allocations != n;
    xendQuery();
    printf("%llu accounts in order, sum %lld, %d wrong\n", (unsigned long long)n,
           (long long)money, wrong);
    return wrong;
}

/* ---- The processes ------------------------------------------------------------------------ */

static void
open_accounts(void)
{
    if (xInit(".", NONDURABLE) != 0)
        die("xInit");
    base = xMmapAt("accounts.db", 0, LENGTH, XAC_SAME_ADDRESS);
    if (base == MAP_FAILED)
        die("xMmapAt");
}

static void
work(uint64_t who)
{
    open_accounts();
    for (uint64_t i = 1; i <= KEYS; i++) {
        uint64_t number = i * PROCESSES + who;

        if (xTransact(open_account, &number) != 0 || xTransact(move_money, &number) != 0)
            die("xTransact");
        if (number % 3 == 0 && xTransact(close_account, &number) != 0)
            die("xTransact");
    }
    if (xShutdown() != 0)
        die("xShutdown");
    exit(EXIT_SUCCESS);
}

int
main(void)
{
    pid_t pid[PROCESSES];
    int status, failed = 0;

    for (uint64_t i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            work(i);
    }
    for (int i = 0; i < PROCESSES; i++)
        failed |= pid[i] < 0 || waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    open_accounts();
    failed |= verify() != 0;
    if (xShutdown() != 0)
        die("xShutdown");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
