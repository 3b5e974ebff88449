/* SPDX-License-Identifier: MIT */
/*
 * memory.h -- how much memory there is for a process.
 *
 * WHAT      One number, of which others take shares: versions (filesystem.h), copies of pages
 *           (view.h), the distance of checkpoints (ckpt_due.h).
 * NOT HERE  The shares.  How much of the memory is free: that changes all the time.
 * THREADS   any
 */
#ifndef XAC_MEMORY_H
#define XAC_MEMORY_H

#include <stdint.h>

/*
 * xac_memory_bytes -- the memory of the machine, or the least limit of the control groups that this
 * process is in if that is less.
 *
 * It reads a file of /proc, and one or two for each group.  Of version 2 the limit beyond which the
 * kernel holds the process back (memory.high) counts as well: what has no swap space never gets below
 * it again.
 */
uint64_t xac_memory_bytes(void);

#endif /* XAC_MEMORY_H */
