/* SPDX-License-Identifier: MIT */
/*
 * control.h -- layout of the control region: the head that everything hangs on.
 *
 * Made by the first participant, complete before it gets its name, deleted by the last
 * one out.  Contents are worth nothing without a live participant: after a crash of all
 * the region is deleted and the log decides.
 */
#ifndef XAC_CONTROL_H
#define XAC_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "txn/ctree.h"
#include "base/identity.h"
#include "base/lock.h"
#include "log/log.h"
#include "store/outofcore.h"
#include "shared/registry.h"
#include "shared/shm.h"
#include "commit/txn.h"
#include "store/version.h"

#define XAC_CONTROL_MAGIC   UINT64_C(0x314c525443434158) /* "XACCTRL1" */
#define XAC_CONTROL_VERSION 7u

/* Elements of the first chunk of each array, and of the frames'. */
#define XAC_CONTROL_ELEMS  64
#define XAC_CONTROL_FRAMES 256

/* What is counted for all (what transactions do is counted by slot: txn.h); relaxed. */
struct xac_rare_counters {
    xac_shared _Atomic uint64_t checkpoints, pages_checkpointed, dead_cleaned;
    /* Checkpoints that did not bring home all that they could have: how many, the last one's
       error, and when, nanoseconds since 1970. */
    xac_shared _Atomic uint64_t ckpt_failures, ckpt_error_ns;
    xac_shared _Atomic int64_t ckpt_error;
};

#define XAC_CONTROL_DIR_BYTES 4096 /* a path, PATH_MAX                                */

struct xac_control {
    struct xac_shm_head shm;

    /* Fixed when made, up to `dir`: whose the region is. */
    uint64_t magic;
    uint32_t version; /* XAC_CONTROL_VERSION                                     */
    uint32_t bytes;   /* sizeof(struct xac_control): another build is refused    */
    uint32_t page_size;
    uint32_t flags;       /* XAC_DURABLE or XAC_NONDURABLE                           */
    uint8_t identity[16]; /* of the environment                                      */
    uint32_t generation;  /* of the log                                              */
    int32_t shm_error;    /* why the region is not where shared memory is wanted; 0    */
    uint64_t log_ring;    /* offset of the log buffer, 0 if not durable              */
    uint64_t pid_namespace;   /* of its maker, and so of all participants; 0 unknown    */
    struct xac_identity home; /* the environment's directory ...                      */
    char dir[XAC_CONTROL_DIR_BYTES]; /* ... and its path when the region was made     */

    /* Options that concern all; relaxed. */
    xac_shared _Atomic uint64_t checkpoint_bytes;
    xac_shared _Atomic uint32_t checksum;
    xac_shared _Atomic uint32_t page_checksums; /* XAC_OPT_PAGE_CHECKSUMS             */
    uint32_t policy; /* enum xac_policy_kind; fixed when made                         */
    uint32_t full_images; /* XAC_OPT_FULL_IMAGES; fixed when made                     */

    struct xac_lock clean; /* rank XAC_RANK_CLEAN                                */
    uint32_t clean_next XAC_GUARDED_BY(clean); /* participant to look at next          */
    struct xac_lock files_lock; /* rank XAC_RANK_FILES                                */
    struct xac_lock checkpoint; /* rank XAC_RANK_CHECKPOINT                           */
    /* The checkpoint under way, see checkpoint.h; stored and read under `checkpoint`. */
    uint64_t ckpt_epoch; /* + 1 when another one begins: whoever has the last one stops */
    uint64_t ckpt_query; /* slot + 1 of the query that holds its bound, 0 none         */
    uint64_t ckpt_serial; /* of that slot's word                                      */
    /* The files hold, synced, what some checkpoint has found at this commit number; stored
       under `checkpoint`, relaxed. */
    xac_shared _Atomic uint64_t ckpt_bound;

    struct xac_array participants; /* struct xac_participant                          */
    struct xac_array files;        /* struct xac_file; count: ids given out           */
    struct xac_file_index file_index XAC_GUARDED_BY(files_lock);
    xac_shared _Atomic uint64_t files_known, files_forgotten; /* for xStats(); relaxed  */
    struct xac_array txns; /* struct xac_txn; count: slots ever claimed       */

    /* Next data file's serial: stored under publish, together with the slot that it is for
       (struct xac_txn), and read elsewhere as a hint (relaxed). */
    xac_shared _Atomic uint64_t next_datafile;
    /* Bytes of data files so far, and when the last checkpoint began; relaxed, hints. */
    xac_shared _Atomic uint64_t data_bytes, data_bytes_begin;
    /* Data files with smaller serials, and those of earlier generations of the log, have
       been removed; under `checkpoint`. */
    uint64_t data_removed;
    /* Who is alone and need not record its reads, see solo.h. */
    xac_shared _Atomic uint64_t solo;
    /* Slot + 1 of the transaction that has the turn, see optimistic.h; 0 nobody.  Taken,
       given and taken away by exchange. */
    xac_shared _Atomic uint64_t turn;
    /* 1 once the last participant has closed the region: come again. */
    xac_shared _Atomic uint32_t closed;

    struct xac_versions versions;
    struct xac_outofcore_shared outofcore;
    struct xac_rare_counters counters;
    struct xac_log_shared log; /* unused if not durable                                */
    struct xac_chain chain;
};

/* What is needed to know whose a region is. */
#define XAC_CONTROL_HEAD_BYTES offsetof(struct xac_control, checkpoint_bytes)

/* Count an event; relaxed, for statistics only. */
static inline void
xac_count(_Atomic uint64_t *counter, uint64_t n)
{
    (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

struct xac_env;
struct xac_master_slot;

/* xac_control_init -- fill in the head of a new region, env->ctl, from the options; ret 0 or an
   error. */
int xac_control_init(struct xac_env *env, const struct xac_master_slot *master);

/* xac_control_init_log -- the same for the log of a durable environment, which makes its first
   segment; log directory open. */
int xac_control_init_log(struct xac_env *env, const struct xac_master_slot *master);

#endif /* XAC_CONTROL_H */
