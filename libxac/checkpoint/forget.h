/* SPDX-License-Identifier: MIT */
/*
 * forget.h -- forgetting a file that nobody maps.
 */
#ifndef XAC_FORGET_H
#define XAC_FORGET_H

struct xac_env;

/*
 * xac_forget_file -- forget a file: it is not written and not redone any more.  Before, everything
 * that was committed to it is written to it, if it exists.
 *
 * ret  0, also if it is not known; EBUSY: it is mapped, or an old state of it is being read;
 *      errors of the checkpoint and of the log.
 */
int xac_forget_file(struct xac_env *env, const char *name);

#endif /* XAC_FORGET_H */
