/* SPDX-License-Identifier: MIT */
/*
 * fig2_1.c -- Thesis figure 2-1: increment the first integer of a memory-mapped file.
 *
 * Run it again and again: the number in input.db goes up by one each time.
 * Beyond the figure: the error checks, the print-out, and a look at the file afterwards
 * with plain read calls, which is allowed once everybody has shut down.
 */
#include <stdio.h>
#include <stdlib.h>

#include <xac.h>

static const size_t fileLength = 10;

static int read_plainly(const char *name);

int
main(void)
{
    int before = read_plainly("input.db");
    int after, seen, rc;
    int *x;

    if (xInit(".", NONDURABLE) != 0) {
        fprintf(stderr, "xInit: %s\n", xLastError());
        return EXIT_FAILURE;
    }
    x = xMmap("input.db", 4096 * fileLength);
    if (x == MAP_FAILED) {
        fprintf(stderr, "xMmap: %s\n", xLastError());
        return EXIT_FAILURE;
    }

    do {
        xbegin();
        x[0]++;
        seen = x[0];
    } while ((rc = xend()) == ABORTED);
    if (rc != COMMITTED) {
        fprintf(stderr, "xend: %s\n", xLastError());
        return EXIT_FAILURE;
    }

    xMunmap("input.db");
    if (xShutdown() != 0) {
        fprintf(stderr, "xShutdown: %s\n", xLastError());
        return EXIT_FAILURE;
    }

    after = read_plainly("input.db");
    printf("x[0] was %d, is %d\n", before, after);
    return seen == before + 1 && after == before + 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The first integer of a file; 0 if there is no such file. */
static int
read_plainly(const char *name)
{
    int value = 0;
    FILE *f = fopen(name, "rb");

    if (f != NULL) {
        if (fread(&value, sizeof value, 1, f) != 1)
            value = 0;
        fclose(f);
    }
    return value;
}
