/* SPDX-License-Identifier: MIT */
/*
 * steps_snapshot.h -- what the script of check_steps.c does with snapshots, at whose steps it may die.
 *
 * Every call may fail, for the victim's system calls do; but what a query at a snapshot shows is never
 * another state.
 */
#ifndef XAC_TEST_STEPS_SNAPSHOT_H
#define XAC_TEST_STEPS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

struct steps_snapshot {
    uint64_t id; /* 0: it could not be taken                                           */
    uint64_t n;  /* the writer's count in it                                           */
};

/* Take one, which outlives the writer, and another one, which is released at once. */
void steps_snapshot_take(const volatile uint64_t *count, unsigned writer,
                         struct steps_snapshot *out);

/* Begin a query at it; ret false: it is not there. */
bool steps_snapshot_begin(const volatile uint64_t *count, const struct steps_snapshot *s);

/* Release it, and end the query. */
void steps_snapshot_end(const struct steps_snapshot *s);

/* steps_past_note -- the present state, by its number, as a state of the past for steps_snapshot_begin(). */
void steps_past_note(const volatile uint64_t *count, struct steps_snapshot *out);

#endif /* XAC_TEST_STEPS_SNAPSHOT_H */
