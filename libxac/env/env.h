/* SPDX-License-Identifier: MIT */
/*
 * env.h -- an environment as one process has it open: directory, control region, log,
 * the contexts of its transactions.
 *
 * OWNER     The process; one at a time.  The public interface (api.c) holds it.
 * THREADS   Opened, closed and mapped into by one thread at a time (api.c sees to it).
 *           What is not atomic here does not change while it is open, or says its lock.
 */
#ifndef XAC_ENV_H
#define XAC_ENV_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shared/address_list.h"
#include "log/claim.h"
#include "env/control.h"
#include "base/handle.h"
#include "log/log.h"
#include "store/outofcore.h"
#include "shared/ptab.h"
#include "shared/shm.h"
#include "commit/txn.h"
#include "store/version.h"

struct xac_ckpt;
struct xac_frozen;
struct xac_master_slot;
struct xac_view;

/* Options that are set before an environment is opened. */
struct xac_env_options {
    uint64_t checkpoint_bytes;
    uint64_t segment_bytes;
    uint64_t ring_bytes;
    uint32_t checksum;
    _Atomic uint32_t stay_mapped; /* relaxed: may change at any time               */
    uint32_t policy;
    uint32_t sync_delay_ms;
    uint32_t wait_ms;     /* XAC_OPT_WAIT_MS */
    uint32_t log_recycle; /* XAC_OPT_LOG_RECYCLE, or XAC_RECYCLE_UNSAID              */
    uint32_t page_checksums;
    uint32_t full_images;
    uint32_t declared;   /* enum xac_declared                                      */
    uint64_t frames;     /* XAC_OPT_FRAMES */
    uint64_t read_ahead; /* XAC_OPT_READ_AHEAD_BYTES                               */
    uint32_t mode;       /* XAC_OPT_MODE; 0: as the directory says                 */
    const char *log_dir; /* NULL: not asked for; not owned                         */
};

struct xac_env {
    /* Where the descriptor may have been closed since the call began: xac_env_dirfd(). */
    int dirfd;    /* the environment's directory                                     */
    int logfd;    /* where the log lies (logdir.h)                                   */
    char *logdir; /* its absolute path; NULL: the environment's directory            */
    int lockfd;   /* xac.lock, this process's own description                        */
    int masterfd; /* xac.master, likewise, for its locks only (lockfile.h); -1 if it may not
                     be written */
    struct xac_handle dir_handle, log_handle, lock_handle, master_handle; /* of these  */
    atomic_flag mending;        /* xac_env_mend is at it                             */
    _Atomic uint64_t glance_ns; /* when xac_env_glance looks next; relaxed           */
    int flags; /* durable or not, as given to xInit or as a reader found it        */
    enum xac_reader_kind reader;
    struct xac_frozen *frozen; /* what a frozen reader sees, owned; else NULL        */
    char *dir; /* absolute path of the directory                                  */
    struct xac_identity dir_is; /* which one that is                                  */
    char *region; /* path of the control region                                      */
    size_t page_size;
    unsigned page_shift;
    struct xac_env_options options;

    struct xac_shm shm;
    struct xac_control *ctl; /* = shm.base; NULL if not attached                       */
    struct xac_log log;
    struct xac_buffers buffers;
    struct xac_outofcore outofcore;
    uint32_t self; /* index of this participant                              */
    uint32_t pid;
    uint64_t pid_namespace, time_namespace; /* see struct xac_participant              */
    const struct xac_policy *policy;

    struct xac_ctx ctx;      /* of the process                                       */
    pthread_mutex_t threads; /* see thread.h                                         */
    struct xac_ctx *others;  /* contexts of threads; under `threads`                 */
    struct xac_file_fds file_fds; /* under the checkpoint lock                       */
    struct xac_address_list addresses; /* under the lock of the files                */
    struct xac_ckpt *ckpt;       /* begun by this process; under the checkpoint lock   */
    _Atomic bool has_ckpt;       /* there is one: a hint; relaxed                      */
    uint64_t ckpt_left;          /* epoch of one that another process was left to, 0 none;
                                    under the checkpoint lock                        */
    _Atomic uint64_t frames_due; /* frames in use at which a checkpoint is due; relaxed */
    _Atomic bool is_forked;      /* child that has not joined yet                    */
};

/*
 * xac_env_open -- open or create the environment in a directory, recovering it if
 * nobody live is attached, and join.
 *
 * out  envp  to be closed by xac_env_close
 * ret  0 or an error as in xac_init().
 */
int xac_env_open(const char *path, int flags, const struct xac_env_options *options,
                 struct xac_env **envp);

/*
 * xac_env_logdir_settle -- where the log is to lie, before there is one; gate held, nobody
 * attached.
 * xac_env_logdir_open -- open the directory.  xac_env_logdir_join -- the same, if the live
 * participants' is the one that is asked for; EBUSY if it is not.
 * ret 0 or an error.
 */
struct xac_master_slot;
int xac_env_logdir_settle(const struct xac_env *env,
                          const struct xac_master_slot *master);
int xac_env_logdir_open(struct xac_env *env, const struct xac_master_slot *master);
int xac_env_logdir_join(struct xac_env *env, const struct xac_master_slot *master);

/*
 * xac_env_mend -- open the directories and the lock file again if the program has closed the
 * descriptors, perhaps for files of its own.  Any thread, any lock held.
 * xac_env_mend_log -- the same; for struct xac_log.
 * xac_env_glance -- the same, but not more often than 50 times a second; at this time.
 *
 * ret  0; XAC_EDESCRIPTOR: this process must not go on.
 */
int xac_env_mend(struct xac_env *env);
int xac_env_mend_log(void *env);
int xac_env_glance(struct xac_env *env, uint64_t now_ns);

/* xac_env_dirfd -- the descriptor of the directory, opened again if it has been lost; -1 with
   errno. */
XAC_SIGSAFE int xac_env_dirfd(struct xac_env *env);

/*
 * xac_env_close -- leave; the last one out checkpoints and deletes the region.
 * Views are unmapped already.  ret 0 or the checkpoint's error; env is freed.
 */
int xac_env_close(struct xac_env *env);

/*
 * For reader.c and env_frozen.c.
 * xac_env_open_dir -- the directory, which exists.
 * xac_env_enter -- through the gate: join or make; lock file open.  ENOENT: a reader makes none.
 * xac_env_become -- participant, with a slot; the others learn that they are not alone.
 * xac_env_unmap -- let go of region, buffers and log.
 * ret  0 or an error.
 */
int xac_env_open_dir(struct xac_env *env, const char *path);
int xac_env_enter(struct xac_env *env);
int xac_env_become(struct xac_env *env);
void xac_env_unmap(struct xac_env *env);

/* xac_env_check_build -- ret 0, or XAC_EVERSION if the mapped region is that of another build
   of the library. */
int xac_env_check_build(const struct xac_env *env);

/* xac_env_check_region -- ret 0, or XAC_EDAMAGED if the mapped region, which is of our build, does
   not hold together (control_check.h). */
int xac_env_check_region(const struct xac_env *env);

/*
 * xac_env_fork, fork_done -- before a fork, and after it in the parent: what threads of
 * this process share stands still in between.
 * xac_env_forked -- the same in the child: give up what is the parent's.
 * xac_env_rejoin -- become a participant of one's own, if the process is a child that has
 * not; by any thread.  ret 0 or an error.
 */
void xac_env_fork(struct xac_env *env, sigset_t *signals);
void xac_env_fork_done(struct xac_env *env, const sigset_t *signals);
void xac_env_forked(struct xac_env *env, const sigset_t *signals);
int xac_env_rejoin(struct xac_env *env);

static inline bool
xac_env_is_forked(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_env_rejoin. */
    return atomic_load_explicit(&env->is_forked, memory_order_acquire);
}

static inline bool
xac_env_is_durable(const struct xac_env *env)
{
    return (env->flags & XAC_DURABLE) != 0;
}

/* xac_env_claimant -- for the files that it maps. */
static inline struct xac_claimant
xac_env_claimant(const struct xac_env *env)
{
    return (struct xac_claimant){.dir = env->dir_is, .dirfd = env->dirfd};
}

/* xac_env_log_id -- what its blocks carry. */
static inline struct xac_log_id
xac_env_log_id(const struct xac_env *env)
{
    struct xac_log_id id = {.generation = env->ctl->generation};

    memcpy(&id.identity, env->ctl->identity, sizeof id.identity);
    return id;
}

/* xac_entry_page, page_id -- the page that a set entry is about. */
XAC_SIGSAFE static inline struct xac_page *
xac_entry_page(const struct xac_env *env, const struct xac_entry *e)
{
    return (struct xac_page *)xac_shm_at(&env->shm, e->page);
}

XAC_SIGSAFE static inline uint64_t
xac_entry_page_id(const struct xac_env *env, const struct xac_entry *e)
{
    /* Relaxed: fixed since before the entry was made. */
    return atomic_load_explicit(&xac_entry_page(env, e)->id, memory_order_relaxed);
}

/* xac_env_poisoned -- XAC_EPOISONED if a write or sync has failed, else 0. */
int xac_env_poisoned(struct xac_env *env);

#endif /* XAC_ENV_H */
