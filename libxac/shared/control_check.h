/* SPDX-License-Identifier: MIT */
/*
 * control_check.h -- a control region as a file from a stranger: does it hold together?
 *
 * WHAT      Sizes, counts and offsets of a region, before anything in it is believed: arrays,
 *           files with their page tables, transaction slots with their sets, version slots, the log's
 *           buffer.  What passes leads to no address outside the region, nor to an element
 *           that does not exist.
 * NOT HERE  Whose region it is, and of which version (env_enter.h, region.h).  What is in the log,
 *           and in pages.  Blocks on free lists behind the first: their links are looked at when
 *           they are used (shm.c).
 * THREADS   Others may work in the region meanwhile: what is checked here holds at any moment,
 *           if what was read last is compared with what was read first in the right order; a
 *           region that fails is read again (XAC_CONTROL_TRIES) before it is called damaged.
 */
#ifndef XAC_CONTROL_CHECK_H
#define XAC_CONTROL_CHECK_H

#include <stdint.h>

#define XAC_CONTROL_TRIES 8

/*
 * xac_control_validate -- check the bytes of a region.  Reads nothing else, writes nothing.
 *
 * in   region  aligned to 64 bytes; magic, version and `bytes` of its head are right
 * in   bytes   that can be read: the length of the file
 * in   name    of the region, for messages
 * ret  0 or XAC_EDAMAGED, with words.
 */
int xac_control_validate(const void *region, uint64_t bytes, const char *name);

#endif /* XAC_CONTROL_CHECK_H */
