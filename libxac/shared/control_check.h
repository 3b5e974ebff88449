/* SPDX-License-Identifier: MIT */
/*
 * control_check.h -- check a control region that a stranger may have written.
 *
 * WHAT      Checks sizes, counts and offsets of a region before it is used: arrays, files with
 *           their page tables, transaction slots with their sets, version slots, the log's
 *           buffer.  In a region that passes, no offset leads outside the region or to an
 *           element that does not exist.
 * NOT HERE  The owner of the region and its version (env_enter.h, region.h).  The contents of the
 *           log and of pages.  Blocks of free lists behind the first one: their links are
 *           checked when they are used (shm.c).
 * THREADS   Other processes may work in the region meanwhile.  The conditions hold at any
 *           moment, if values are read in the right order.  A region that fails is read again
 *           (XAC_CONTROL_TRIES) before it is called damaged.
 */
#ifndef XAC_CONTROL_CHECK_H
#define XAC_CONTROL_CHECK_H

#include <stdint.h>

#define XAC_CONTROL_TRIES 8

/*
 * xac_control_validate -- check the bytes of a region.  Reads only the region, writes nothing.
 *
 * in   region  aligned to 64 bytes; magic, version and `bytes` of its head are right
 * in   bytes   length of the file, as much as can be read
 * in   name    of the region, for messages
 * ret  0 or XAC_EDAMAGED, with text.
 */
int xac_control_validate(const void *region, uint64_t bytes, const char *name);

#endif /* XAC_CONTROL_CHECK_H */
