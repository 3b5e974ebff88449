/* SPDX-License-Identifier: MIT */
/*
 * shm.h -- the part of xrecover(1) that lists control regions, and removes those that nobody
 * maps.
 */
#ifndef XAC_RECOVERY_SHM_H
#define XAC_RECOVERY_SHM_H

#include <stdbool.h>

/*
 * shm_list -- print a line, or an object, for each region in the directory for shared memory.
 *
 * in   remove  delete those that are in no use and are the user's, or anybody's for root
 * ret  0 or an error code, with words.
 */
int shm_list(bool is_json, bool remove);

#endif /* XAC_RECOVERY_SHM_H */
