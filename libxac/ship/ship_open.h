/* SPDX-License-Identifier: MIT */
/*
 * ship_open.h -- a standby with the region by which others query it.
 *
 * WHAT      Opens the standby in a directory as its replayer: the one participant that is no reader; with a region of its own, or with
 *           the one that readers have kept.
 * NOT HERE  What the standby does (recovery/standby.h).  Where its log comes from (receive.h; the daemon of a group).
 * OWNER     Environment and standby belong to the caller; the standby is closed first.
 * LOCK      The gate of the directory, while it is opened.
 * THREADS   one.
 */
#ifndef XAC_SHIP_OPEN_H
#define XAC_SHIP_OPEN_H

struct xac_env;
struct xac_standby;

/* xac_ship_open -- in  *envp, *sp  NULL; after an error each may be there, too, and is to be closed.  ret 0; as xac_env_open(),
   xac_standby_admit() and xac_standby_join(); words noted. */
int xac_ship_open(const char *dir, struct xac_env **envp, struct xac_standby **sp);

#endif /* XAC_SHIP_OPEN_H */
