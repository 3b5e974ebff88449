/* SPDX-License-Identifier: MIT */
/*
 * file_register.h -- adding files to the environment, and removing them.
 *
 * WHAT      Changes the table of files (layout.h) together with the log.
 * NOT HERE  Finding files, and the processes that map them (registry.h).
 */
#ifndef XAC_FILE_REGISTER_H
#define XAC_FILE_REGISTER_H

#include "shared/env_state.h"

/*
 * xac_registry_add -- id of a file, registered if new; its length grows to `length`.
 * Files lock held.
 *
 * In a durable environment a new or longer file is in the log before this returns.
 * in   path  as stored: absolute, or relative to the environment directory
 * in   size  of the file, before it was made longer: pages behind it are zeros
 * ret  0; XAC_EREPLACED; ENOMEM; errors of appending to the log.
 */
int xac_registry_add(struct xac_env *env, const char *path,
                     const struct xac_identity *who, uint64_t size, uint64_t length,
                     uint32_t *idp);

/* xac_registry_file -- the same for an open file, and hold it; takes and releases the lock. */
int xac_registry_file(struct xac_env *env, const char *path, int fd, uint64_t length,
                      uint32_t *idp, uint64_t *holdp);

/*
 * xac_registry_announce -- a new entry, for a file that is about to get this name; durable in the log if
 * the environment is.  Nobody finds it before xac_registry_settle, and if that is not called, the next
 * file gets its id.  Files lock held; no file is known by the path, or is this one.
 *
 * ret  as xac_registry_add.
 */
int xac_registry_announce(struct xac_env *env, const char *path,
                          const struct xac_identity *who, uint64_t size, uint32_t *idp);

/* xac_registry_settle -- the file has the name: the entry counts.  Files lock held. */
void xac_registry_settle(struct xac_env *env, uint32_t id);

/*
 * xac_registry_forget -- make a KNOWN file GONE, and log that, not synced.  Files lock held;
 * nobody holds the file.
 */
int xac_registry_forget(struct xac_env *env, uint32_t file);

/* xac_registry_leave_file -- make a file LEFT.  Files lock held; nobody holds the file, and its
   page table is clear. */
void xac_registry_leave_file(struct xac_env *env, uint32_t file);

#endif /* XAC_FILE_REGISTER_H */
