/* SPDX-License-Identifier: MIT */
/*
 * twice_counter.c -- see twice_counter.h.
 */
#include "twice_counter.h"

#include <stdio.h>

#include <xac_env.h>

#define BYTES 4096

static struct xac_env *env;
static long *number;
static int durable;

static int
counter_open(const char *dir, int is_durable)
{
    struct xac_options o;
    char file[256];

    (void)snprintf(file, sizeof file, "%s.db", dir);
    xac_options_init(&o, sizeof o);
    durable = is_durable;
    o.flags = is_durable ? XAC_DURABLE : XAC_NONDURABLE;
    o.value[XAC_OPT_POLICY] = is_durable ? XAC_POLICY_SELFISH : XAC_POLICY_OPTIMISTIC;
    env = xac_open(dir, &o);
    if (env == NULL)
        return -1;
    number = (long *)xac_mmap_in(env, file, BYTES);
    return number == MAP_FAILED ? -1 : 0;
}

static int
counter_close(void)
{
    return xac_close(env);
}

struct call {
    long (*fn)(void);
    long sum;
};

static int
add_and_call(void *arg)
{
    struct call *c = (struct call *)arg;

    c->sum = ++*number;
    return c->fn != NULL && c->fn() < 0 ? -1 : 0;
}

static long
counter_add(long (*fn)(void))
{
    struct call c = {.fn = fn};

    return xac_transact_in(env, add_and_call, &c) == 0 ? c.sum : -1;
}

static int
counter_check(unsigned long n_commits)
{
    struct xac_stats s;

    if (xac_get_stats_in(env, &s, sizeof s) != 0 || s.commits != n_commits
        || s.aborts_conflict != 0 || s.participants != 1)
        return -1;
    return (s.log_bytes > 0) == (durable != 0) ? 0 : -2;
}

static const char *
counter_fail(void)
{
    (void)xac_munmap_in(env, durable ? "no-left-file" : "no-right-file");
    return xac_last_error();
}

static volatile long *
counter_address(void)
{
    return number;
}

extern const struct counter counter;
const struct counter counter = {
    .open = counter_open,
    .close = counter_close,
    .add = counter_add,
    .check = counter_check,
    .fail = counter_fail,
    .address = counter_address,
};
