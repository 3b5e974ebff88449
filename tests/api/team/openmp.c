/* SPDX-License-Identifier: MIT */
/*
 * openmp.c -- a loop of OpenMP inside of a transaction (XAC_OPT_TEAM).  The loop knows nothing of
 * libxac.  Exit code 0: what all its threads have stored is committed, or rolled back.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include <xac.h>

#define N     409600
#define TURNS 6

/* ---- The program as it was ---------------------------------------------------------------- */

static int
scale_and_sum(double *x, int n, double factor, double *sum)
{
    double total = 0;
    int most = 1;

#pragma omp parallel for reduction(+ : total) reduction(max : most) schedule(dynamic, 500)
    for (int i = 0; i < n; i++) {
        x[i] = x[i] * factor + 1;
        total += x[i];
        most = omp_get_num_threads();
    }
    *sum = total;
    return most;
}

/* ---- The transactions around it ------------------------------------------------------------ */

static void
must(int is, const char *what)
{
    if (is)
        return;
    fprintf(stderr, "not so: %s; %s\n", what, xLastError());
    exit(1);
}

int
main(void)
{
    double *x, sum = 0, value = 0;

    omp_set_num_threads(4);
    must(xSetOption(XAC_OPT_TEAM, 1) == 0, "option");
    must(xInit("db", getenv("DURABLY") != NULL ? DURABLE : NONDURABLE) == 0, "xInit");
    x = (double *)xMmap("x.db", N * sizeof *x);
    must(x != MAP_FAILED, "xMmap");
    for (int turn = 0; turn < TURNS; turn++) {
        must(xbegin() == 0, "xbegin");
        must(scale_and_sum(x, N, 2, &sum) == 4, "four threads");
        must(sum == (value * 2 + 1) * N, "sum");
        if (turn % 2 == 1)
            must(xAbort() == 0, "xAbort");
        else
            value = value * 2 + 1;
        must(xend() == (turn % 2 == 1 ? ABORTED : COMMITTED), "xend");
        must(xbeginQuery() == 0, "xbeginQuery");
        sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += x[i];
        must(sum == value * N, "what is committed");
        must(xendQuery() == 0, "xendQuery");
    }
    must(xShutdown() == 0, "xShutdown");
    return 0;
}
