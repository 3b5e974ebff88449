/* SPDX-License-Identifier: MIT */
/*
 * registry.h -- who takes part, who is alive, which files are mapped.
 *
 * WHAT      Participants (one per process) and files (one per mapped file), both in
 *           growable arrays of the control region.
 * NOT HERE  Cleaning up after the dead (clean.h).
 * LOCK      Participants come and go with the gate held (lockfile.h).  Files are only
 *           ever added, under `files` (rank FILES).
 */
#ifndef XAC_REGISTRY_H
#define XAC_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "annot.h"
#include "identity.h"
#include "shm.h"

struct xac_env;

enum xac_participant_state {
    XAC_PART_FREE = 0,
    XAC_PART_ATTACHED = 1
};

struct xac_participant {
    xac_shared _Atomic uint32_t state; /* changed with the gate or the clean lock held */
    uint32_t pid;                      /* in its own PID namespace                     */
    uint64_t pid_namespace;            /* inode of /proc/self/ns/pid, 0 unknown        */
    /* Inode of /proc/self/ns/time, 0 unknown, and field 22 of /proc/PID/stat, 0 unknown: the
       same process has another start time when it is looked at from another time namespace. */
    uint64_t time_namespace;
    uint64_t start_time;
    uint64_t region_bytes; /* that it has addresses for; with the gate held            */
    uint64_t frames_max;   /* of the version store, likewise                           */
    xac_shared _Atomic uint32_t n_contexts; /* see thread.h; gate held                */
    /* 1: its process has gone on with another program and has come again, as another
       participant.  Gate held; 0 when a process comes. */
    xac_shared _Atomic uint32_t is_over;
    /* The log is needed from this LSN on, for a backup; 0 it is not.  Its owner's, read by
       who archives. */
    xac_shared _Atomic uint64_t log_pin;
    uint64_t reserved;
};

struct xac_file {
    xac_shared _Atomic uint64_t root;   /* page table (ptab.h)                         */
    xac_shared _Atomic uint64_t length; /* bytes: the longest mapping so far           */
    struct xac_identity who;            /* fixed                                       */
    uint64_t path;                      /* offset of the NUL-terminated path; fixed    */
    uint32_t path_len;                  /* fixed                                       */
    uint32_t reserved;
    xac_shared _Atomic uint64_t
        address; /* where it is mapped, see address.h; 0 unknown */
    /* Pages of the file from here on are blank: it has been made longer by them since it was
       registered, and no checkpoint has written them or one behind them.  Only grows; under
       the checkpoint lock, before the write. */
    xac_shared _Atomic uint64_t blank_from;
};

/* xac_participant_at -- participant with that index, which exists. */
XAC_SIGSAFE struct xac_participant *xac_participant_at(const struct xac_env *env,
                                                       uint32_t index);

/* xac_registry_identify -- who are we?  The env's pid and namespaces; nothing is shared yet. */
void xac_registry_identify(struct xac_env *env);

/*
 * xac_registry_check -- may this process come?  Robust mutexes tell their holders apart by
 * thread ids, which mean something within one PID namespace only.
 *
 * ret 0 or XAC_ENAMESPACE.
 */
int xac_registry_check(const struct xac_env *env);

/*
 * xac_registry_join -- become a participant: take a byte of the lock file, fill in an
 * entry.  Gate held.  ret 0, ENOMEM, errno.
 */
int xac_registry_join(struct xac_env *env);

/*
 * xac_registry_limits -- let the region and the version store grow as far as every
 * participant that is attached can reach.  Gate held, after one has come or gone.
 */
void xac_registry_limits(struct xac_env *env);

/* xac_registry_leave -- the entry is free again.  Gate held; nothing of ours is left. */
void xac_registry_leave(struct xac_env *env);

enum xac_process_state {
    XAC_PROCESS_DEAD,
    XAC_PROCESS_STOPPED, /* alive, but by a signal or a debugger kept from running      */
    XAC_PROCESS_RUNNING  /* or sleeping                                                */
};

/*
 * xac_registry_state -- of that participant's process, as it was a moment ago; our own is
 * always RUNNING.  A hint but for DEAD: who was STOPPED may go on at any instant.
 *
 * A process is dead if there is none with its id, or if that one has started at another time.
 * If this cannot be known (no /proc, another time namespace) its byte of the lock file decides.
 * If the byte is free though the process is there, the program has closed its descriptors and
 * is alive, or has called exec() and is dead: then nothing of the region is mapped any more.
 * Where one may not look at its mappings, its byte of the region decides.
 */
XAC_SIGSAFE enum xac_process_state xac_registry_state(const struct xac_env *env,
                                                      uint32_t index);

/* xac_registry_alive -- is that participant's process alive, running or stopped? */
XAC_SIGSAFE bool xac_registry_alive(const struct xac_env *env, uint32_t index);

/* xac_registry_maps -- true if that process is known to map the region env->region. */
bool xac_registry_maps(const struct xac_env *env, uint32_t pid);

/* xac_registry_attached -- number of participants attached, dead ones included. */
uint32_t xac_registry_attached(const struct xac_env *env);

/* xac_registry_log_needed -- smallest LSN that recovery or a backup needs; redo_lsn is
   recovery's. */
uint64_t xac_registry_log_needed(const struct xac_env *env, uint64_t redo_lsn);

/* xac_file_at -- file with that id (from 1), which exists. */
XAC_SIGSAFE struct xac_file *xac_file_at(const struct xac_env *env, uint32_t id);

/* xac_file_blank_from -- see blank_from; asked after a page has been found to have no version. */
XAC_SIGSAFE static inline uint64_t
xac_file_blank_from(const struct xac_file *f)
{
    /* Acquire: pairs with the release in xac_file_write_begin.  Who finds no version because a
       checkpoint has written it has acquired what came before, this number among it. */
    return atomic_load_explicit(&f->blank_from, memory_order_acquire);
}

/* xac_file_write_begin -- pages up to `end` are about to be written.  Checkpoint lock held. */
static inline void
xac_file_write_begin(struct xac_file *f, uint64_t end)
{
    if (atomic_load_explicit(&f->blank_from, memory_order_relaxed) < end)
        /* Release: pairs with the acquire in xac_file_blank_from. */
        atomic_store_explicit(&f->blank_from, end, memory_order_release);
}

/* xac_registry_file_fd -- this process's descriptor for a registered file; -1 with errno, ESTALE
   if another file lies there, EBUSY if another environment holds it.  Checkpoint lock held. */
int xac_registry_file_fd(struct xac_env *env, uint32_t file);

/* xac_registry_file_close -- close it, if it is open and ours. */
void xac_registry_file_close(struct xac_env *env, uint32_t file);

/* xac_registry_enter, exit -- take and leave the lock of the files. */
void xac_registry_enter(struct xac_env *env);
void xac_registry_exit(struct xac_env *env);

/*
 * xac_registry_find -- id of a file, 0 if it is not registered.  Files lock held.
 *
 * ret  0; XAC_EREPLACED if that path is registered for another file.
 */
int xac_registry_find(const struct xac_env *env, const char *path,
                      const struct xac_identity *who, uint32_t *idp);

/*
 * xac_registry_add -- id of a file, registered if new; its length grows to `length`.
 * Files lock held.
 *
 * In a durable environment a new or longer file is in the log before this returns.
 * in   path  as stored: absolute, or relative to the environment directory
 * in   size  of the file, before it was made longer: what lies behind is blank
 * ret  0; XAC_EREPLACED; ENOMEM; what appending to the log may return.
 */
int xac_registry_add(struct xac_env *env, const char *path,
                     const struct xac_identity *who, uint64_t size, uint64_t length,
                     uint32_t *idp);

/* xac_registry_file -- the same for an open file, with the lock taken and left. */
int xac_registry_file(struct xac_env *env, const char *path, int fd, uint64_t length,
                      uint32_t *idp);

#endif /* XAC_REGISTRY_H */
