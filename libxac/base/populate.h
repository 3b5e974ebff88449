/* SPDX-License-Identifier: MIT */
/*
 * populate.h -- memory that is about to be stored to, without page faults.
 */
#ifndef XAC_POPULATE_H
#define XAC_POPULATE_H

#include <stddef.h>

#include "base/annot.h"

/*
 * xac_populate -- put the pages of a writable range of memory into this process's page table.  A
 * store there does not fault any more, unless the system takes the memory away.  Changes no byte.
 */
XAC_SIGSAFE void xac_populate(void *at, size_t n_bytes);

#endif /* XAC_POPULATE_H */
