/* SPDX-License-Identifier: MIT */
/*
 * fig1_6.c -- Thesis figure 1-6, "Program F": two processes, each of which sums the first
 * integers of five random pages and stores the sum in a sixth, and backs off if it lost.
 *
 * The file is small, so the two meet often.  Every page begins with a number that is 1
 * modulo 4.  Five of these add up to 5, which again is 1 modulo 4: so it stays, if each
 * attempt begins with `sum = 0` (the figure leaves that out; see fig2_2.c) and nothing is
 * stored by an attempt that lost.  Page k of done.db counts the transactions of process k,
 * in the same transaction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#define N_PROCESSES  2
#define TRANSACTIONS 500

static int fileLength = 16;
static unsigned attempt; /* of the transaction that is running */

/* Wait a while before the next attempt, the longer the more were lost. */
static void
backoff(void)
{
    struct timespec pause = {0, 0};
    long limit_ns = 1000L << (attempt < 10 ? attempt : 10);

    attempt++;
    pause.tv_nsec = rand() % limit_ns;
    nanosleep(&pause, NULL);
}

/* Program F. */
static void
program_f(int *x, int *done)
{
    int i, j, sum, rc;

    for (;;) {
        xbegin();

        sum = 0;
        for (j = 0; j < 5; j++) {
            i = rand() % fileLength;
            sum += x[1024 * i] & 0xffff;
        }

        i = rand() % fileLength;
        x[1024 * i] = sum;
        (*done)++;

        rc = xend();
        if (rc != ABORTED)
            break;
        backoff();
    }
    if (rc != COMMITTED) {
        fprintf(stderr, "xend: %s\n", xLastError());
        exit(EXIT_FAILURE);
    }
    attempt = 0;
}

/* One process: its own xInit, its own mapping, its own random numbers. */
static int
process(int number)
{
    int *x, *done;

    srand(1 + (unsigned)number);
    if (xInit(".", NONDURABLE) != 0) {
        fprintf(stderr, "xInit: %s\n", xLastError());
        return EXIT_FAILURE;
    }
    x = xMmap("input.db", 4096 * (size_t)fileLength);
    done = xMmap("done.db", 4096 * N_PROCESSES);
    if (x == MAP_FAILED || done == MAP_FAILED) {
        fprintf(stderr, "xMmap: %s\n", xLastError());
        return EXIT_FAILURE;
    }
    for (int n = 0; n < TRANSACTIONS; n++)
        program_f(x, &done[1024 * number]);
    return xShutdown() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void
make_file(void)
{
    static int page[1024] = {1};
    FILE *f = fopen("input.db", "wb");

    if (f == NULL)
        exit(EXIT_FAILURE);
    for (int i = 0; i < fileLength; i++) {
        if (fwrite(page, sizeof page, 1, f) != 1)
            exit(EXIT_FAILURE);
    }
    if (fclose(f) != 0)
        exit(EXIT_FAILURE);
    remove("done.db");
}

/* The first integer of a page, read plainly. */
static int
first_of_page(const char *name, long page)
{
    int value;
    FILE *f = fopen(name, "rb");

    if (f == NULL || fseek(f, 4096 * page, SEEK_SET) != 0
        || fread(&value, sizeof value, 1, f) != 1)
        exit(EXIT_FAILURE);
    fclose(f);
    return value;
}

int
main(void)
{
    int n_wrong = 0, n_failed = 0, n_done = 0, status;

    make_file();
    for (int k = 0; k < N_PROCESSES; k++) {
        if (fork() == 0)
            _exit(process(k));
    }
    for (int k = 0; k < N_PROCESSES; k++) {
        wait(&status);
        n_failed += status != 0;
    }
    if (n_failed != 0)
        return EXIT_FAILURE;

    for (int i = 0; i < fileLength; i++)
        n_wrong += first_of_page("input.db", i) % 4 != 1;
    for (int k = 0; k < N_PROCESSES; k++)
        n_done += first_of_page("done.db", k);
    printf("%d transactions committed; %d of %d pages are wrong\n", n_done, n_wrong,
           fileLength);
    return n_wrong == 0 && n_done == N_PROCESSES * TRANSACTIONS ? EXIT_SUCCESS
                                                                : EXIT_FAILURE;
}
