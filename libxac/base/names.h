/* SPDX-License-Identifier: MIT */
/*
 * names.h -- names of the library's own files (doc/formats.md).  All lie in the environment's
 * directory, except the mark of a log directory, the segments and the data files.
 */
#ifndef XAC_NAMES_H
#define XAC_NAMES_H

#define XAC_MASTER_NAME     "xac.master"
#define XAC_LOCK_NAME       "xac.lock"
#define XAC_ADDRESSES_NAME  "xac.addresses"
#define XAC_BACKUP_NAME     "xac.backup"
#define XAC_FOLLOW_NAME     "xac.follow"
#define XAC_RECEIVED_NAME   "xac.received"
#define XAC_REWIND_NAME     "xac.rewind"
#define XAC_GROUP_NAME      "xac.group"
#define XAC_MANIFEST_NAME   "xac.manifest"
#define XAC_PAGES_NAME      "xac.pages"
#define XAC_CHANGED_NAME    "xac.changed"
#define XAC_UNFINISHED_NAME "xac.unfinished"
#define XAC_LOGDIR_NOTE     "xac.logdir"
#define XAC_LOGDIR_MARK     "xac.log-of"
#define XAC_LOG_PREFIX      "xac-log."
#define XAC_LOG_NEW_NAME    "xac-log-new"
#define XAC_DATA_PREFIX     "xac-data."

/* Where a backup, and what is made of it, has mapped files that lay outside of the environment's directory: those that were
   known when it was made, and others that the log names later. */
#define XAC_OUTSIDE_NAME "xac-outside"
#define XAC_LATER_PREFIX "xac-later-"

/* A control region, in shared memory or in the directory. */
#define XAC_REGION_PREFIX "xac-"
#define XAC_REGION_SUFFIX ".control"

#endif /* XAC_NAMES_H */
