/* SPDX-License-Identifier: MIT */
/*
 * visits.c -- see visits.h.
 */
#include <config.h>

#include "visits.h"

#include "env.h"

#define PAGES  8
#define ROUNDS 20 /* of the host between one visit and the next */

struct visits {
    visit_step *step;
    unsigned n;
    _Atomic uint64_t rounds; /* of the host */
    _Atomic uint64_t done;
    uint64_t added; /* committed by visitors */
};

static void
visit(void *arg)
{
    struct visits *v = (struct visits *)arg;

    for (unsigned k = 0; k < v->n; k++) {
        uint64_t *base = env_attach(NONDURABLE, PAGES);

        for (int i = 0; i < VISIT_STEPS; i++) {
            while (!v->step(base))
                ;
            v->added++;
        }
        env_detach();
        proc_await(&v->rounds, word_load(&v->rounds) + ROUNDS, 20);
    }
    word_store(&v->done, 1);
}

uint64_t *
visits_play(visit_step *step, unsigned n_visits, uint64_t *addedp)
{
    struct visits *v = (struct visits *)proc_shared(sizeof *v);
    uint64_t mine = 0, *base;
    pid_t pid;

    v->step = step;
    v->n = n_visits;
    pid = proc_spawn(visit, v);
    base = env_attach(NONDURABLE, PAGES);
    while (word_load(&v->done) == 0) {
        must(!proc_any_failed());
        mine += step(base);
        word_add(&v->rounds, 1);
    }
    proc_join(pid);
    must_eq(v->added, (uint64_t)n_visits * VISIT_STEPS);
    *addedp = mine + v->added;
    return base;
}
