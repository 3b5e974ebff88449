/* SPDX-License-Identifier: MIT */
/*
 * nb_only.c -- linked where frames/policies/ is not: every pool has Nb-GCLOCK.
 */
#include <config.h>

#include "frames/pool.h"

const struct pool_plug *
xac_frames_plug(uint32_t policy)
{
    (void)policy;
    return NULL;
}
