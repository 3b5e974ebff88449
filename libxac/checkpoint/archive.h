/* SPDX-License-Identifier: MIT */
/*
 * archive.h -- which log files are no longer needed (xArchive).  Any thread.
 */
#ifndef XAC_ARCHIVE_H
#define XAC_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

struct xac_env;
struct xac_master_slot;

/*
 * xac_archive_list -- names of the log files that nobody needs, as xac_archive() gives them.
 *
 * in   path    of the directory in which the log lies
 * in   master  its record, synced
 * in   needed  log from here on is needed: xac_registry_log_needed()
 */
int xac_archive_list(const char *path, const struct xac_master_slot *master,
                     uint64_t needed, char ***namesp, size_t *countp);

/*
 * xac_archive_remove_data -- remove the data files that xac_archive_list() would name.
 *
 * The checkpoint lock is held.  One that cannot be removed is left to the next call.
 */
void xac_archive_remove_data(struct xac_env *env, const struct xac_master_slot *master);

/*
 * xac_archive_data_serial -- what the XCHECKPT_BEGIN at the redo position says: data files with
 * smaller serials are not needed; 0, as good as nothing, if it is the start of the log, or a place
 * that a dead checkpointer has left without.
 *
 * ret  0 or an error.
 */
int xac_archive_data_serial(int logfd, const struct xac_master_slot *master,
                            uint64_t *serialp);

/* xac_archive_names -- see xac_archive() in xac.h. */
int xac_archive_names(struct xac_env *env, char ***namesp, size_t *countp);

#endif /* XAC_ARCHIVE_H */
