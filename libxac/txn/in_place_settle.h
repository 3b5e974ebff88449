/* SPDX-License-Identifier: MIT */
/*
 * in_place_settle.h -- versions of the pages that are updated in place (in_place.h).
 *
 * WHAT      Takes pages out of the list of in_place.h, after it has given each a version with its newest
 *           committed contents.  A checkpoint, a newcomer, and a participant that ceases to
 *           update in place call it.
 * NOT HERE  The list, and images: in_place.h.
 * OWNER     Nobody: the list lies in the control region.
 * LOCK      Takes grow and publish.  Not for the fault handler.
 *
 * INVARIANTS: (1) and (4) of in_place.h.
 */
#ifndef XAC_IN_PLACE_SETTLE_H
#define XAC_IN_PLACE_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"

/*
 * xac_in_place_settle -- make versions of pages of the list, at most so many, and take them out of it.
 *
 * By the participant that updates in place, or by somebody who has come, after xac_alone_revoke(). Takes
 * grow and publish.
 * in   slot  a transaction slot of the caller
 * ret  0 or an error, with words: some are still in the list.
 */
int xac_in_place_settle(struct xac_env *env, uint64_t slot, uint64_t most);

/* xac_in_place_admit -- somebody comes: nobody is alone any more, and the list is empty, or the caller must not
   come.  ret as xac_in_place_settle().  Gate held.
   in  is_thread  of the process that may be updating in place: it removes the file itself */
int xac_in_place_admit(struct xac_env *env, uint64_t slot, bool is_thread);

#endif /* XAC_IN_PLACE_SETTLE_H */
