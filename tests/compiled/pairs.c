/* SPDX-License-Identifier: MIT */
/*
 * pairs.c -- functions whose begins and ends go together (good_) and do not (bad_).
 *
 * For check_pairs.sh: clang must warn in each function bad_, and in no function good_.  It is
 * compiled only as far as that.
 */
#include <stdlib.h>

#include <xac.h>
#include <xac_env.h>
#include <xac_snapshot.h>

int good_transaction(int *x);
int good_query_inside(int *x);
int good_goto(int *x);
int good_exit(int *x);
int good_environments(struct xac_env *one, struct xac_env *two);
int bad_return(int *x);
int bad_break(int *x);
int bad_continue(int *x);
int bad_begin_on_a_path(int *x);
int bad_no_end(int *x);
int bad_kind(int *x);
int bad_two_ends(int *x);
int bad_query(int *x);
int bad_query_at(int *x);
int bad_long_names(int *x);
int bad_environment(struct xac_env *one, struct xac_env *two);
int bad_environment_kind(struct xac_env *env);
int good_tested(int *x);
int good_tested_variable(int *x);
int bad_tested(int *x);
int bad_untested(int *x);

#ifndef XAC_PAIRS_TESTED

int
good_transaction(int *x)
{
    while (1) {
        xbegin();
        x[0]++;
        if (xend() == COMMITTED) {
            break;
        }
    }
    return 0;
}

int
good_query_inside(int *x)
{
    xbegin();
    xbeginQuery();
    x[1] = x[0];
    xendQuery();
    return xend();
}

int
good_goto(int *x)
{
    xbegin();
    if (xValidate() != PENDING) {
        goto out;
    }
    x[0]++;
out:
    return xend();
}

int
good_exit(int *x)
{
    xbegin();
    if (x[0] < 0) {
        exit(1);
    }
    return xend();
}

int
good_environments(struct xac_env *one, struct xac_env *two)
{
    xac_begin_in(one);
    xac_begin_query_in(two);
    xac_end_query_in(two);
    return xac_end_in(one);
}

int
bad_return(int *x)
{
    xbegin();
    if (x[0] < 0) {
        return 1;
    }
    return xend();
}

int
bad_break(int *x)
{
    for (int i = 0; i < 3; i++) {
        xbegin();
        if (x[i] < 0) {
            break;
        }
        xend();
    }
    return 0;
}

int
bad_continue(int *x)
{
    for (int i = 0; i < 3; i++) {
        xbegin();
        if (x[i] < 0) {
            continue;
        }
        xend();
    }
    return 0;
}

int
bad_begin_on_a_path(int *x)
{
    if (x != NULL) {
        xbegin();
    }
    return xend();
}

int
bad_no_end(int *x)
{
    xbegin();
    return x[0];
}

int
bad_kind(int *x)
{
    xbegin();
    x[0]++;
    return xendQuery();
}

int
bad_two_ends(int *x)
{
    xbegin();
    x[0]++;
    xend();
    return xend();
}

int
bad_query(int *x)
{
    xbeginQuery();
    return x[0];
}

int
bad_query_at(int *x)
{
    xbeginQueryAt(1);
    return x[0];
}

int
bad_long_names(int *x)
{
    xac_begin_query();
    if (x[0] < 0) {
        return 1;
    }
    return xac_end_query();
}

int
bad_environment(struct xac_env *one, struct xac_env *two)
{
    xac_begin_in(one);
    return xac_end_in(two);
}

int
bad_environment_kind(struct xac_env *env)
{
    xac_begin_in(env);
    return xac_end_query_in(env);
}

#else

int
good_tested(int *x)
{
    if (xbegin() != 0) {
        return -1;
    }
    x[0]++;
    return xend();
}

int
good_tested_variable(int *x)
{
    int rc = xac_begin_query();

    if (rc != 0) {
        return -1;
    }
    x[1] = x[0];
    return xac_end_query();
}

int
bad_tested(int *x)
{
    if (xbegin() != 0) {
        return -1;
    }
    if (x[0] < 0) {
        return 1;
    }
    return xend();
}

int
bad_untested(int *x)
{
    xbegin();
    return x[0];
}

#endif
