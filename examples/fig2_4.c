/* SPDX-License-Identifier: MIT */
/*
 * fig2_4.c -- Thesis figure 2-4: local variables inside a transaction.
 *
 * Program 1 keeps count of its attempts in local variables; Program 2 runs beside it in
 * another process.  x[0] is 42 at first.  An abort happens only at xend(), each attempt
 * sees one consistent snapshot, and locals are not rolled back: the Thesis' case 3.  So
 *
 *     a == y   attempts begun and attempts that reached the middle are the same;
 *     b == z   both reads of an attempt see the same x[0];
 *     b is 41 or 42 if the first attempt commits; with a attempts, b is their sum, each
 *              of them 41 or 42.
 *
 * The two run many times, so that all cases come up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#define ROUNDS 100

/* What Program 1 ended with, for the parent to judge. */
struct locals {
    int a, b, y, z;
};

static int *
attach(void)
{
    int *x;

    if (xInit(".", NONDURABLE) != 0) {
        fprintf(stderr, "xInit: %s\n", xLastError());
        _exit(EXIT_FAILURE);
    }
    x = xMmap("input.db", 4096);
    if (x == MAP_FAILED) {
        fprintf(stderr, "xMmap: %s\n", xLastError());
        _exit(EXIT_FAILURE);
    }
    return x;
}

static int
program_1(int result)
{
    int y = 0, z = 0, a = 0, b = 0, rc;
    int *x = attach();

    do {
        a++;
        xbegin();
        b += x[0];
        y++;
        x[0]++;
        z += (x[0] - 1);
    } while ((rc = xend()) == ABORTED);

    xMunmap("input.db");
    xShutdown();
    struct locals l = {a, b, y, z};
    return rc == COMMITTED && write(result, &l, sizeof l) == (ssize_t)sizeof l
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

static int
program_2(void)
{
    int *x = attach();
    int rc;

    do {
        xbegin();
        x[0]--;
    } while ((rc = xend()) == ABORTED);

    xMunmap("input.db");
    xShutdown();
    return rc == COMMITTED ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Both programs side by side; ret 0 if both went well. */
static int
run_both(struct locals *l)
{
    int pipe_fd[2], status, n_failed = 0;

    if (pipe(pipe_fd) != 0)
        return 1;
    if (fork() == 0)
        _exit(program_1(pipe_fd[1]));
    if (fork() == 0)
        _exit(program_2());
    for (int i = 0; i < 2; i++) {
        wait(&status);
        n_failed += status != 0;
    }
    close(pipe_fd[1]);
    if (read(pipe_fd[0], l, sizeof *l) != (ssize_t)sizeof *l)
        n_failed++;
    close(pipe_fd[0]);
    return n_failed;
}

/* Put 42 into the file, or read its contents, with plain calls. */
static int
plain(const char *mode, int value)
{
    FILE *f = fopen("input.db", mode);

    if (f == NULL)
        exit(EXIT_FAILURE);
    if (mode[0] == 'w') {
        if (fwrite(&value, sizeof value, 1, f) != 1)
            exit(EXIT_FAILURE);
    } else if (fread(&value, sizeof value, 1, f) != 1) {
        exit(EXIT_FAILURE);
    }
    fclose(f);
    return value;
}

int
main(void)
{
    int a_is_y = 1, b_is_z = 1, b_is_right = 1, x0_is_42 = 1;

    for (int round = 0; round < ROUNDS; round++) {
        struct locals l;

        plain("wb", 42);
        if (run_both(&l) != 0)
            return EXIT_FAILURE;
        a_is_y = a_is_y && l.a == l.y;
        b_is_z = b_is_z && l.b == l.z;
        b_is_right = b_is_right && 41 * l.a <= l.b && l.b <= 42 * l.a;
        x0_is_42 = x0_is_42 && plain("rb", 0) == 42;
    }
    printf("a == y: %s\n", a_is_y ? "yes" : "NO");
    printf("b == z: %s\n", b_is_z ? "yes" : "NO");
    printf("b is 41 or 42 for each attempt: %s\n", b_is_right ? "yes" : "NO");
    printf("x[0] is 42 again: %s\n", x0_is_42 ? "yes" : "NO");
    return a_is_y && b_is_z && b_is_right && x0_is_42 ? EXIT_SUCCESS : EXIT_FAILURE;
}
