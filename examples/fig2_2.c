/* SPDX-License-Identifier: MIT */
/*
 * fig2_2.c -- Thesis figure 2-2: a serial program on mmap, and beside it the same program
 * on libxac.
 *
 * Each reads the first integer of five random pages and stores the sum in a sixth.  The
 * two files start alike, the random numbers are the same, so they must end alike.
 *
 * One line is not in the figure: `sum = 0` at the start of each attempt.  An abort takes
 * back what was stored in the segment, and nothing else; without that line a second
 * attempt would add to what the first had left in `sum`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#define FILE_LENGTH 1000 /* pages; the figure has 100,000 */
#define ROUNDS      500  /* the figure does one */

static int fileLength = FILE_LENGTH;

static void
make_file(const char *name)
{
    static int page[1024];
    FILE *f = fopen(name, "wb");

    if (f == NULL)
        exit(EXIT_FAILURE);
    for (int i = 0; i < fileLength; i++) {
        page[0] = i;
        if (fwrite(page, sizeof page, 1, f) != 1)
            exit(EXIT_FAILURE);
    }
    if (fclose(f) != 0)
        exit(EXIT_FAILURE);
}

/* ---- serial version using mmap --------------------------------------------------- */

static void
serial(void)
{
    int i, j, sum = 0;
    int fd;
    int *x;

    fd = open("serial.db", O_RDWR, 0666);
    x = mmap(NULL, 4096 * (size_t)fileLength, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (x == MAP_FAILED)
        exit(EXIT_FAILURE);

    for (int round = 0; round < ROUNDS; round++) {
        sum = 0;
        for (j = 0; j < 5; j++) {
            i = rand() % fileLength;
            sum += x[1024 * i] % 1000000;
        }

        i = rand() % fileLength;
        x[1024 * i] = sum;
    }

    munmap(x, 4096 * (size_t)fileLength);
    close(fd);
}

/* ---- concurrent version using libxac and xMmap ------------------------------------ */

static void
transactional(void)
{
    int i, j, sum = 0, rc;
    int *x;

    if (xInit(".", NONDURABLE) != 0)
        exit(EXIT_FAILURE);
    x = xMmap("input.db", 4096 * (size_t)fileLength);
    if (x == MAP_FAILED)
        exit(EXIT_FAILURE);

    for (int round = 0; round < ROUNDS; round++) {
        do {
            xbegin();
            sum = 0;
            for (j = 0; j < 5; j++) {
                i = rand() % fileLength;
                sum += x[1024 * i] % 1000000;
            }

            i = rand() % fileLength;
            x[1024 * i] = sum;
        } while ((rc = xend()) == ABORTED);
        if (rc != COMMITTED)
            exit(EXIT_FAILURE);
    }

    xMunmap("input.db");
    if (xShutdown() != 0)
        exit(EXIT_FAILURE);
}

/* The number of pages whose first integers differ. */
static int
compare(void)
{
    static int a[1024], b[1024];
    int n_different = 0;
    FILE *fa = fopen("serial.db", "rb");
    FILE *fb = fopen("input.db", "rb");

    if (fa == NULL || fb == NULL)
        exit(EXIT_FAILURE);
    for (int i = 0; i < fileLength; i++) {
        if (fread(a, sizeof a, 1, fa) != 1 || fread(b, sizeof b, 1, fb) != 1)
            exit(EXIT_FAILURE);
        n_different += memcmp(a, b, sizeof a) != 0;
    }
    fclose(fa);
    fclose(fb);
    return n_different;
}

int
main(void)
{
    int n_different;

    make_file("serial.db");
    make_file("input.db");
    srand(1);
    serial();
    srand(1);
    transactional();
    n_different = compare();
    printf("%d sums over %d pages: %d pages differ\n", ROUNDS, fileLength, n_different);
    return n_different == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
