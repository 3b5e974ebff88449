/* SPDX-License-Identifier: MIT */
/*
 * peek.h -- looking at a running environment from outside, without taking part.
 *
 * WHAT      Maps the control region read-only: the process that looks disturbs nobody, is no
 *           participant and holds nothing back.
 * NOT HERE  Reading the counters (stats.h).
 * OWNER     struct xac_env is the caller's; only the fields that stats.h reads are filled in.
 */
#ifndef XAC_PEEK_H
#define XAC_PEEK_H

#include "shared/env_state.h"

/*
 * xac_peek_open -- map the region of the environment in a directory.
 *
 * in   dir  path of the directory, for messages
 * out  env  to be closed by xac_peek_close, if 0 is returned
 * ret  0; ENOENT if nobody is attached; EACCES without permission to write the directory;
 *      XAC_ENOTSHARED; XAC_EVERSION (participants of another build); XAC_ELOCKLOST; errno.
 */
int xac_peek_open(int dirfd, const char *dir, struct xac_env *env);
void xac_peek_close(struct xac_env *env);

/* xac_peek_is_over -- true if the last participant has left, or all have died. */
bool xac_peek_is_over(const struct xac_env *env);

#endif /* XAC_PEEK_H */
