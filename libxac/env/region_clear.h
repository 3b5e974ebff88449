/* SPDX-License-Identifier: MIT */
/*
 * region_clear.h -- removing regions and the files beside them.
 */
#ifndef XAC_REGION_CLEAR_H
#define XAC_REGION_CLEAR_H

/* xac_region_remove -- delete a region's files.  in dirfd of the environment, -1: gone. */
void xac_region_remove(int dirfd, const char *path);

/*
 * xac_region_clear -- delete what belongs to the environment and is not in use: the region that
 * the lock file names, those that nobody has named yet, and copies of regions in its directory
 * (cp -a).  Gate held, nobody is attached.
 */
void xac_region_clear(int dirfd, int lockfd);

#endif /* XAC_REGION_CLEAR_H */
