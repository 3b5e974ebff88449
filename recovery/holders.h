/* SPDX-License-Identifier: MIT */
/*
 * holders.h -- who holds the locks of an environment, or has the turn, for long; for xstat.
 *
 * WHAT      Two glimpses, a moment apart, show which locks are held by the same acquisition: a
 *           participant that is stopped, or very slow, with a lock that others wait for; and
 *           which transaction keeps the turn.
 * NOT HERE  The locks (lock.h), the turn (turn.h).  None is taken or touched.
 */
#ifndef XAC_HOLDERS_H
#define XAC_HOLDERS_H

#include "shared/env_state.h"
#include "tool.h"

#define HOLDERS_MAX 9

struct holder {
    const char
        *name;    /* of the lock; or "turn"                                           */
    uint32_t pid; /* 0: in a PID namespace that cannot be seen from here            */
    uint32_t tid; /* of the thread, in its own namespace; 0 for the turn              */
    uint64_t
        held_ns; /* at least                                                         */
};

/* holders_take -- ret how many there are.  Takes a tenth of a second if there seem to be any. */
size_t holders_take(const struct xac_env *env, struct holder out[HOLDERS_MAX]);

/* holders_print -- a line for each.  holders_json -- an array "locks_held". */
void holders_print(const struct holder *h, size_t n);
void holders_json(struct json *j, const struct holder *h, size_t n);

#endif /* XAC_HOLDERS_H */
