/* SPDX-License-Identifier: MIT */
/*
 * fig2_3.c -- Thesis figure 2-3: a recursive function with nested transactions.
 *
 * sum() adds up a binary tree that lies in the segment.  Each call is a transaction; all
 * but the outermost are parts of their caller's, so that the whole walk is one.  A nested
 * xend() says PENDING or FAILED; only ABORTED, which only the outermost can get, calls for
 * another attempt.
 *
 * The segment may lie at another address in the next run, so the tree's references are
 * indices into the array of nodes and not pointers; 0 stands for none.
 *
 * Meanwhile another process moves values from node to node.  The total never changes, and
 * every walk must find it, also one that has lost and does not know it yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define N_NODES  1023
#define N_WALKS  50
#define N_MOVES  500
#define N_BYTES  (4096 * 64)
#define EXPECTED (N_NODES * (N_NODES + 1) / 2)

struct tree {
    int value;
    int left, right; /* indices of nodes, 0 for none */
    int padding[61]; /* 16 nodes a page: a walk touches 64 pages */
};

static struct tree *node; /* the segment; node[0] is not used, node[1] is the root */
static int n_inconsistent;

static void
die(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, xLastError());
    exit(EXIT_FAILURE);
}

static int
sum(int t)
{
    int answer = 0, rc;

    do {
        xbegin();
        if (t == 0)
            answer = 0;
        else
            answer = node[t].value + sum(node[t].left) + sum(node[t].right);
        if (t == 1 && answer != EXPECTED)
            n_inconsistent++; /* counted for attempts that abort, too */
    } while ((rc = xend()) == ABORTED);
    if (t == 1 && rc != COMMITTED)
        die("xend");
    return answer;
}

/* Node t and all below; values are 1, 2, 3, ... */
static void
build(int t)
{
    if (t > N_NODES)
        return;
    xbegin();
    node[t].value = t;
    node[t].left = 2 * t <= N_NODES ? 2 * t : 0;
    node[t].right = 2 * t + 1 <= N_NODES ? 2 * t + 1 : 0;
    build(2 * t);
    build(2 * t + 1);
    xend();
}

static void
attach(void)
{
    if (xInit(".", NONDURABLE) != 0)
        die("xInit");
    node = xMmap("tree.db", N_BYTES);
    if (node == MAP_FAILED)
        die("xMmap");
}

/* Another process: take something here, put it there. */
static int
mover(void)
{
    int rc;

    attach();
    srand(1);
    for (int i = 0; i < N_MOVES; i++) {
        int from = 1 + rand() % N_NODES;
        int to = 1 + rand() % N_NODES;

        do {
            xbegin();
            node[from].value -= i;
            node[to].value += i;
        } while ((rc = xend()) == ABORTED);
        if (rc != COMMITTED)
            die("xend");
    }
    return xShutdown() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(void)
{
    int status = 0, found = 0, n_wrong = 0, rc;
    pid_t child;

    attach();
    do {
        xbegin();
        found = node[1].left != 0;
        if (!found)
            build(1);
    } while ((rc = xend()) == ABORTED);
    if (rc != COMMITTED)
        die("xend");
    printf("the tree was %s\n", found ? "there" : "built");
    fflush(stdout);
    xShutdown();

    child = fork();
    if (child == 0)
        _exit(mover());
    attach();
    for (int i = 0; i < N_WALKS; i++)
        n_wrong += sum(1) != EXPECTED;
    waitpid(child, &status, 0);
    n_wrong += sum(1) != EXPECTED;
    if (xShutdown() != 0 || status != 0)
        return EXIT_FAILURE;

    printf("sum %d; %d walks wrong, %d attempts inconsistent\n", EXPECTED, n_wrong,
           n_inconsistent);
    return n_wrong == 0 && n_inconsistent == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
