/* SPDX-License-Identifier: MIT */
/*
 * registry.h -- the participants, whether they are alive, and the files that are mapped.
 *
 * WHAT      Participants (one per process) and files (one per mapped file), both in
 *           growable arrays of the control region.
 * NOT HERE  Finishing what the dead have begun (reap.h).
 * LOCK      Participants come and go with the gate held (lockfile.h).  Entries of files
 *           change under `files` (rank FILES).
 *
 * A file is KNOWN from its first mapping on.  Each mapping holds it.  When nobody holds it,
 * no version of it is left, and no block from the redo position on names it, a checkpoint
 * makes it LEFT: it is in no later log block, its page table is given back, and if it is
 * mapped again, it gets a new id.  If its name is gone from the directory when a checkpoint
 * wants to write it and nobody holds it, it is GONE: its versions are dropped.
 *
 * INVARIANTS
 *   (1) An id is given out once in the life of a region, which is one generation of the log:
 *       records of an older file are never taken for those of another one.  On a standby ids are the region's
 *       own, and the replayer knows what the log calls them (replayer.h).
 *   (2) A file that the END of a checkpoint leaves out (is_unnamed) has no record behind that
 *       checkpoint's redo position; a process that maps it again logs its XFILE first.
 *   (3) All files that are KNOWN are in the index, and no others.  If the holder of the lock
 *       dies, the index is made again.
 *   (4) The chain of holds of a participant, followed by `next`, is complete at any time, so
 *       that a survivor finds them all.
 */
#ifndef XAC_REGISTRY_H
#define XAC_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"

/* xac_participant_at -- participant with that index, which exists. */
XAC_SIGSAFE struct xac_participant *xac_participant_at(const struct xac_env *env,
                                                       uint32_t index);

/* xac_registry_identify -- set the env's pid and namespaces; nothing is shared yet. */
void xac_registry_identify(struct xac_env *env);

/*
 * xac_registry_check -- may this process join?  Robust mutexes name their holders by thread ids,
 * which are unique within one PID namespace only.
 *
 * ret 0 or XAC_ENAMESPACE.
 */
int xac_registry_check(const struct xac_env *env);

/*
 * xac_registry_join -- become a participant: take a byte of the lock file, fill in an
 * entry.  Gate held.
 *
 * in   frames_max  version slots of the version store that this process has addresses for
 * ret  0, ENOMEM, errno.
 */
int xac_registry_join(struct xac_env *env, uint64_t frames_max);

/*
 * xac_registry_limits -- let the region grow as far as every participant that is attached can
 * reach.  Gate held, after one has come or gone.
 *
 * out  vslotsp  most version slots that the version store may have
 * ret  false: nobody is attached
 */
bool xac_registry_limits(struct xac_env *env, uint64_t *vslotsp);

/* xac_registry_leave -- free the entry.  Gate held; the process has nothing left. */
void xac_registry_leave(struct xac_env *env);

enum xac_process_state {
    XAC_PROCESS_DEAD,
    XAC_PROCESS_STOPPED, /* alive, but stopped by a signal or a debugger                */
    XAC_PROCESS_RUNNING  /* or sleeping                                                */
};

/*
 * xac_registry_state -- the state of that participant's process a moment ago; our own is always
 * RUNNING.  Only DEAD is certain: a process that was STOPPED may go on at any instant.
 *
 * A process is dead if no process has its id, or if the one that has it started at another time.
 * If this cannot be known (no /proc, another time namespace), its byte of the lock file decides.
 * If the byte is free but the process exists, the program has closed its descriptors and is
 * alive, or it has called exec() and is dead: then it does not map the region any more.  If its
 * mappings may not be read, its byte of the region decides.
 */
XAC_SIGSAFE enum xac_process_state xac_registry_state(const struct xac_env *env,
                                                      uint32_t index);

/* xac_registry_alive -- is that participant's process alive, running or stopped? */
XAC_SIGSAFE bool xac_registry_alive(const struct xac_env *env, uint32_t index);

/* xac_registry_maps -- true if that process is known to map the region env->region. */
bool xac_registry_maps(const struct xac_env *env, uint32_t pid);

/* xac_registry_attached -- number of participants attached, dead ones included. */
uint32_t xac_registry_attached(const struct xac_env *env);

/* xac_registry_writers -- how many of these are not readers (XAC_READONLY). */
uint32_t xac_registry_writers(const struct xac_env *env);

/* xac_registry_contexts -- how many contexts the participants have that are attached, dead ones included,
   a moment ago; at least 1. */
uint64_t xac_registry_contexts(const struct xac_env *env);

/* xac_registry_log_needed -- smallest LSN that recovery or a backup needs; redo_lsn is
   recovery's. */
uint64_t xac_registry_log_needed(const struct xac_env *env, uint64_t redo_lsn);

/* xac_registry_backs_up -- process that is making a backup; 0: none. */
uint32_t xac_registry_backs_up(const struct xac_env *env);

/* xac_file_at -- file with that id (from 1), which exists. */
XAC_SIGSAFE static inline struct xac_file *
xac_file_at(const struct xac_env *env, uint32_t id)
{
    xac_assert(id >= 1);
    return (struct xac_file *)xac_array_at(&env->shm, &env->ctl->files, id - 1);
}

/* xac_file_path -- its path as stored: absolute, or relative to the environment directory. */
const char *xac_file_path(const struct xac_env *env, uint32_t id);

/* xac_file_blank_from -- see blank_from; asked after a page has been found to have no version. */
XAC_SIGSAFE static inline uint64_t
xac_file_blank_from(const struct xac_file *f)
{
    /* Acquire: pairs with the release in xac_file_write_begin.  If a version is missing because a
       checkpoint has written it, everything before that is visible, also this number. */
    return atomic_load_explicit(&f->blank_from, memory_order_acquire);
}

/* xac_file_write_begin -- pages up to `end` are about to be written.  Checkpoint lock held. */
static inline void
xac_file_write_begin(struct xac_file *f, uint64_t end)
{
    xac_assert(end > 0);
    if (atomic_load_explicit(&f->blank_from, memory_order_relaxed) < end)
        /* Release: pairs with the acquire in xac_file_blank_from. */
        atomic_store_explicit(&f->blank_from, end, memory_order_release);
}

/* ---- Files --------------------------------------------------------------------------- */

/* xac_registry_enter, exit -- take and leave the lock of the files. */
void xac_registry_enter(struct xac_env *env) XAC_ACQUIRE(files);
void xac_registry_exit(struct xac_env *env) XAC_RELEASE(files);

/*
 * xac_registry_find -- id of a file, 0 if it is not known.  Files lock held.
 *
 * ret  0; XAC_EREPLACED if that path is known for another file that is mapped.
 */
int xac_registry_find(const struct xac_env *env, const char *path,
                      const struct xac_identity *who, uint32_t *idp);

/* xac_registry_hold -- note a mapping of a file, until xac_registry_drop; *holdp is the offset of
   the hold.  Files lock held.  ret 0 or ENOMEM. */
int xac_registry_hold(struct xac_env *env, uint32_t file, uint64_t *holdp);

/* xac_registry_drop -- end a hold of this process.  Takes the files lock. */
void xac_registry_drop(struct xac_env *env, uint64_t hold);

/* xac_registry_drop_all -- end all holds of a participant that is leaving or is reaped.  Takes the
   files lock. */
void xac_registry_drop_all(struct xac_env *env, uint32_t participant);

/* xac_registry_is_held -- does anybody map the file?  Files lock held. */
bool xac_registry_is_held(const struct xac_env *env, uint32_t file);

/* xac_registry_holder -- process that maps it, the first that is found; 0: none.  Likewise. */
uint32_t xac_registry_holder(const struct xac_env *env, uint32_t file);

/* xac_registry_each_held -- for each mapping; files lock held. */
void xac_registry_each_held(const struct xac_env *env,
                            void (*fn)(void *arg, uint32_t file), void *arg);

/* xac_registry_named -- id of the file that is known under a stored path; 0: none.  Files lock
   held. */
uint32_t xac_registry_named(const struct xac_env *env, const char *path);

/* ---- The index of files (file_index.c); files lock held ------------------------------ */

/* xac_file_index_reserve -- room for one more; ret 0 or ENOMEM. */
int xac_file_index_reserve(struct xac_env *env);
void xac_file_index_add(struct xac_env *env, uint32_t file);
void xac_file_index_remove(struct xac_env *env, uint32_t file);

/* xac_file_index_mend -- make it again, because the holder of the lock has died. */
void xac_file_index_mend(struct xac_env *env);

/* xac_file_index_find -- the file of that identity, and the one of that path; 0: none. */
uint32_t xac_file_index_inode(const struct xac_env *env, const struct xac_identity *who);
uint32_t xac_file_index_path(const struct xac_env *env, const char *path);

#endif /* XAC_REGISTRY_H */
