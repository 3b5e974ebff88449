/* SPDX-License-Identifier: MIT */
/*
 * log_keep.h -- keeping log that recovery does not need any more, for an archive.
 *
 * WHAT      A file in the directory of the log, XAC_LOG_KEPT.  While it is there no segment is
 *           used again and no data file is removed.  It is made by the first request for archives
 *           (xArchive(), xarchive --move or --hook, XAC_OPT_LOG_RECYCLE 0), and removed by
 *           XAC_OPT_LOG_RECYCLE 1, or by hand.
 * NOT HERE  Using segments again (log_segment), removing data files (archive).
 * LOCK      None: participants look at the file each time they are about to take a segment.
 * THREADS   Any; nothing here is for the fault handler.
 *
 * INVARIANTS
 *   (1) The file is durable before xac_log_keep() returns: log that is needed then, and all later
 *       log, stays until the user removes it, in all later runs of all processes.
 *   (2) A segment that is opened by its name while the file exists is not overwritten.  (A process
 *       that takes a segment renames it, and looks for the file after that.)
 */
#ifndef XAC_LOG_KEEP_H
#define XAC_LOG_KEEP_H

#include <stdbool.h>

#define XAC_LOG_KEPT "xac.log-kept"

/* XAC_OPT_LOG_RECYCLE if it was not set: the directory decides. */
#define XAC_RECYCLE_UNSAID 2u

/* xac_log_is_kept -- is the log in that directory kept?  True also if that cannot be seen. */
bool xac_log_is_kept(int dirfd);

/*
 * xac_log_keep -- keep the log in that directory from now on, or do not.
 *
 * out  changedp  has this changed it?  NULL: not wanted
 * ret  0; errno values (text noted).
 */
int xac_log_keep(int dirfd, bool is_kept, bool *changedp);

#endif /* XAC_LOG_KEEP_H */
