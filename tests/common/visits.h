/* SPDX-License-Identifier: MIT */
/*
 * visits.h -- a process that is alone, until others come, do something, and go, at any moment.
 */
#ifndef COMMON_VISITS_H
#define COMMON_VISITS_H

#include <stdbool.h>
#include <stdint.h>

/* visit_step -- one transaction on the segment; ret whether it has committed. */
typedef bool visit_step(uint64_t *base);

#define VISIT_STEPS 5 /* that a visitor commits before it goes */

/*
 * visits_play -- attach to 8 pages, not durable, and take steps until visitors have come and
 * gone so many times; we stay attached.
 *
 * out  addedp  steps that have committed, ours and theirs
 * ret  base of the segment
 */
uint64_t *visits_play(visit_step *step, unsigned n_visits, uint64_t *addedp);

#endif /* COMMON_VISITS_H */
