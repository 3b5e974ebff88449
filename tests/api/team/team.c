/* SPDX-License-Identifier: MIT */
/*
 * team.c -- see team.h.
 */
#include <config.h>

#include "team.h"

#include <stdlib.h>

const struct mode team_modes[] = {
    {"uffd", "uffd", "5", NONDURABLE, 0, false},
    {"uffd, all", "uffd", "5", DURABLE, 0, true},
    {"uffd, oldest", "uffd", "0", NONDURABLE, 0, false},
    {"uffd, self", "uffd", "1", DURABLE, 0, true},
    {"uffd, selfish", "uffd", "2", NONDURABLE, 0, false},
    {"uffd, youngest", "uffd", "3", NONDURABLE, 0, true},
    {"uffd, optimistic", "uffd", "4", NONDURABLE, 0, false},
    {"sigsegv", "sigsegv", "5", NONDURABLE, 0, false},
    {"sigsegv, all", "sigsegv", "5", DURABLE, 0, true},
    {"sigsegv, oldest", "sigsegv", "0", DURABLE, 0, false},
    {"sigsegv, optimistic", "sigsegv", "4", NONDURABLE, 0, true},
    {"scan", "scan", "5", NONDURABLE, 0, false},
    {"scan, optimistic", "scan", "4", DURABLE, 0, true},
    {"frames", "uffd", "5", NONDURABLE, 256, false},
    {"frames, all", "uffd", "0", DURABLE, 256, true},
};
const int team_n_modes = sizeof team_modes / sizeof team_modes[0];

static pthread_barrier_t gate;

uint64_t *
team_attach(int mode, size_t n_pages)
{
    const struct mode *m = &team_modes[mode];

    must_eq(setenv("XAC_ENGINE", m->engine, 1), 0);
    must_eq(setenv("XAC_POLICY", m->policy, 1), 0);
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)atoi(m->policy)));
    if (m->frames != 0)
        must_ok(xSetOption(XAC_OPT_FRAMES, m->frames));
    (void)env_companion(m->flags, n_pages);
    must_ok(xSetOption(XAC_OPT_TEAM, m->is_all));
    return (uint64_t *)env_attach(m->flags, n_pages);
}

static void *
help(void *arg)
{
    struct helper *h = (struct helper *)arg;

    if (h->txn != 0)
        must_ok(xJoin(h->txn));
    (void)pthread_barrier_wait(&gate);
    h->work(h);
    if (h->txn != 0)
        must_ok(xLeave());
    return NULL;
}

void
team_work(int mode, uint64_t *base, size_t n_pages, uint64_t round,
          void (*work)(struct helper *h))
{
    struct helper h[TEAM + 1];
    uint64_t txn = 0;

    if (!team_modes[mode].is_all)
        must_ok(xTeam(&txn));
    must_eq(pthread_barrier_init(&gate, NULL, TEAM + 1), 0);
    for (int i = 0; i <= TEAM; i++) {
        h[i] = (struct helper){.base = base,
                               .n_pages = n_pages,
                               .txn = txn,
                               .round = round,
                               .i = i,
                               .work = work};
        if (i > 0)
            must_eq(pthread_create(&h[i].thread, NULL, help, &h[i]), 0);
    }
    (void)pthread_barrier_wait(&gate);
    work(&h[0]);
    for (int i = 1; i <= TEAM; i++)
        must_eq(pthread_join(h[i].thread, NULL), 0);
    must_eq(pthread_barrier_destroy(&gate), 0);
}
