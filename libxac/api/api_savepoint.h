/* SPDX-License-Identifier: MIT */
/*
 * api_savepoint.h -- the savepoints of xTransact() inside a transaction.
 */
#ifndef XAC_API_SAVEPOINT_H
#define XAC_API_SAVEPOINT_H

#include <stdint.h>

struct xac_env;

/* xac_api_savepoint -- as xac_savepoint_in(), with the error as its result.  ret 0; XAC_ENOTXN;
   XAC_EINQUERY; XAC_EFORKED; ENOMEM and other errno values. */
int xac_api_savepoint(struct xac_env *env, const char *what, uint64_t *markp);

#endif /* XAC_API_SAVEPOINT_H */
