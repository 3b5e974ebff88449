/* SPDX-License-Identifier: MIT */
/*
 * watched.c -- a program that is run under sanitizers, valgrind and gdb (check_watched.sh).
 *
 * Transactions of threads that share the process's segment, of threads with views of their
 * own, and of a child; loads and stores by the program's own code and by the C library's.
 * Its two files are mapped where an earlier run had them, if that can be.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define PAGES  16
#define BYTES  4096
#define ROUNDS 20

static uint64_t *segment;

static void
check(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "watched: not so: %s: %s\n", what, xLastError());
    exit(1);
}

/* add -- one to the first number of each page, and the rest is copied from page to page. */
static void
add(uint64_t *x)
{
    int rc;

    do {
        while ((rc = xbegin()) == EBUSY)
            (void)sched_yield(); /* another thread has the process's transaction */
        check(rc == 0, "xbegin");
        for (int p = 0; p < PAGES; p++)
            x[p * BYTES / 8]++;
        memmove(x + 1, x + BYTES / 8 + 1, BYTES - 8);
        memset(x + BYTES / 8 + 1, (int)x[0], BYTES - 8);
        rc = xend();
    } while (rc == ABORTED);
    check(rc == COMMITTED, "xend");
}

static void *
share(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        add(segment);
    return arg;
}

static void *
own(void *arg)
{
    uint64_t *mine = (uint64_t *)xView(segment);

    check(mine != NULL, "xView");
    for (int i = 0; i < ROUNDS; i++)
        add(mine);
    check(xUnview(mine) == 0, "xUnview");
    return arg;
}

static void
two_threads(void *(*fn)(void *))
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        check(pthread_create(&t[i], NULL, fn, NULL) == 0, "thread");
    for (int i = 0; i < 2; i++)
        check(pthread_join(t[i], NULL) == 0, "join");
}

static uint64_t
sum(void)
{
    uint64_t total = 0;

    check(xbeginQuery() == 0, "xbeginQuery");
    for (int p = 0; p < PAGES; p++)
        total += segment[p * BYTES / 8];
    check(xendQuery() == 0, "xendQuery");
    return total;
}

int
main(void)
{
    uint64_t before;
    int status;
    pid_t pid;

    if (xInit("env", DURABLE) != 0) {
        printf("xInit: %s\n", xLastError());
        return 3;
    }
    segment = (uint64_t *)xMmap("numbers", PAGES * BYTES);
    check(segment != MAP_FAILED, "xMmap");
    check(xMmap("others", PAGES * BYTES) != MAP_FAILED, "xMmap of another file");
    before = sum();
    add(segment);
    two_threads(share);
    two_threads(own);
    pid = fork();
    if (pid == 0) {
        add(segment);
        _exit(xShutdown() == 0 ? 0 : 1);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
    check(sum() == before + PAGES * (uint64_t)(4 * ROUNDS + 2), "nothing is lost");
    check(xShutdown() == 0, "xShutdown");
    printf("watched: well\n");
    return 0;
}
