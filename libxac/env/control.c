/* SPDX-License-Identifier: MIT */
/*
 * control.c -- the head of a new control region: see control.h.
 */
#include <config.h>

#include "env/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/identity.h"
#include "log/group_note.h"
#include "log/lineage.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "log/slots.h"
#include "recovery/standby.h"
#include "shared/env_state.h"
#include "shared/token.h"
#include "txn/ctree.h"

/* Of a log buffer whose size nobody has set.  A transaction of more than a quarter of the buffer
   gets a file of its own: with small segments, too, that should be the exception. */
#define RING_LEAST ((uint64_t)1 << 20)
#define RING_MOST  ((uint64_t)1 << 30)

/*
 * ring_bytes -- the size of the log buffer: a quarter of a segment, unless the program has set it.
 *
 * The segment is that of the log that begins now.  Its size is read from disk, and may be outside
 * of what the option allows; the buffer's never is.
 */
static uint64_t
ring_bytes(const struct xac_env *env, const struct xac_master_slot *master)
{
    uint64_t quarter = master->segment_bytes / 4;

    if (env->options.ring_bytes != 0)
        return env->options.ring_bytes;
    if (quarter < RING_LEAST)
        return RING_LEAST;
    return quarter < RING_MOST ? quarter : RING_MOST;
}

/* log_start -- where the log of the region begins: on a standby, behind what is redone. */
static uint64_t
log_start(const struct xac_env *env, const struct xac_master_slot *master)
{
    struct xac_standby_place at;

    if (!xac_env_is_standby(env))
        return master->start_lsn;
    xac_standby_where(*env->options.standbyp, &at);
    xac_assert(at.applied == at.durable);
    return at.applied;
}

/* note_group -- is it a node of a group? */
static int
note_group(struct xac_env *env)
{
    struct xac_group_note note;
    int rc = xac_group_note_read(env->dirfd, &note);

    xac_assert(rc != 0 || note.node != 0);
    env->ctl->group.node = rc == 0 ? note.node : 0;
    return rc == ENOENT ? 0 : rc;
}

/* note_generation -- of the log, for those who ask for tokens (token.h). */
static int
note_generation(struct xac_env *env, const struct xac_master_slot *master)
{
    struct xac_lineage_line line = {.generation = master->generation,
                                    .start_lsn = master->start_lsn};
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    const struct xac_lineage_line *found;
    int rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME)
                       : xac_lineage_read(env->dirfd, master->generation, l);

    found = rc == 0 ? xac_lineage_of(l, master->generation) : NULL;
    if (found != NULL)
        line = *found;
    free(l);
    if (rc == 0)
        xac_token_turn(env, &line);
    return rc;
}

/* note_log -- group and generation; the region of a reader that takes no part has neither. */
static int
note_log(struct xac_env *env, const struct xac_master_slot *master)
{
    int rc = note_group(env);

    return rc == 0 ? note_generation(env, master) : rc;
}

int
xac_control_init(struct xac_env *env, const struct xac_master_slot *master)
{
    struct xac_control *ctl = env->ctl;
    int rc;

    ctl->magic = XAC_CONTROL_MAGIC;
    ctl->version = XAC_CONTROL_VERSION;
    ctl->bytes = (uint32_t)sizeof *ctl;
    ctl->page_size = (uint32_t)env->page_size;
    ctl->flags = (uint32_t)env->flags;
    memcpy(ctl->identity, master->identity, sizeof ctl->identity);
    ctl->generation = master->generation;
    ctl->pid_namespace = env->pid_namespace;
    if (strlen(env->dir) >= sizeof ctl->dir)
        return xac_err(ENAMETOOLONG, "%s", env->dir);
    memcpy(ctl->dir, env->dir, strlen(env->dir));
    rc = xac_identity_of(env->dirfd, &ctl->home);
    if (rc != 0)
        return xac_err(rc, "%s", env->dir);
    atomic_init(&ctl->checkpoint_bytes, env->options.checkpoint_bytes);
    atomic_init(&ctl->reader_limit, env->options.reader_limit);
    atomic_init(&ctl->log_keep_bytes, env->options.log_keep_bytes);
    atomic_init(&ctl->checksum, env->options.checksum);
    atomic_init(&ctl->page_checksums, env->options.page_checksums);
    ctl->policy = env->options.policy;
    ctl->full_images = env->options.full_images;
    atomic_init(&ctl->history, env->options.history);
    ctl->standby.is_one = env->options.standbyp != NULL;
    ctl->group.leads = env->options.leads != NULL;
    rc = env->reader != XAC_READER_FROZEN ? note_log(env, master) : 0;
    if (rc != 0)
        return rc;
    atomic_init(&ctl->chain.past_ns, xac_clock_read(CLOCK_REALTIME));
    atomic_init(&ctl->chain.next_age, 1);
    atomic_init(&ctl->next_datafile, 1);
    atomic_init(&ctl->next_snapshot, xac_clock_read(CLOCK_REALTIME));
    xac_array_init(&ctl->participants, sizeof(struct xac_participant), XAC_CONTROL_ELEMS);
    xac_array_init(&ctl->files, sizeof(struct xac_file), XAC_CONTROL_ELEMS);
    xac_array_init(&ctl->txns, sizeof(struct xac_txn), XAC_CONTROL_ELEMS);
    xac_array_init(&ctl->versions.slots, sizeof(struct xac_vslot), XAC_CONTROL_VSLOTS);
    rc = xac_lock_init(&ctl->reap, XAC_RANK_REAP);
    if (rc == 0)
        rc = xac_lock_init(&ctl->files_lock, XAC_RANK_FILES);
    if (rc == 0)
        rc = xac_lock_init(&ctl->checkpoint, XAC_RANK_CHECKPOINT);
    if (rc == 0)
        rc = xac_lock_init(&ctl->versions.grow, XAC_RANK_GROW);
    if (rc == 0)
        rc = xac_chain_init(env);
    if (rc != 0 || !xac_env_is_durable(env))
        return rc;
    ctl->log_ring = xac_shm_alloc(&env->shm, ring_bytes(env, master));
    return ctl->log_ring != 0 ? 0 : xac_err(ENOSPC, "log buffer");
}

int
xac_control_init_log(struct xac_env *env, const struct xac_master_slot *master)
{
    struct xac_log_followers followers = {.wakes = 0};
    struct xac_log_config config = {
        .generation = master->generation,
        .page_size = (uint32_t)env->page_size,
        .segment_bytes = master->segment_bytes,
        .ring_bytes = ring_bytes(env, master),
        .start_lsn = log_start(env, master),
        .followers = &followers,
    };
    int rc = xac_slots_read(env->dirfd, &followers);

    if (rc != 0)
        return rc;
    /* The record is on disk, and nobody but followers could need more. */
    config.free_below =
        xac_log_is_kept(env->logfd)
            ? 0
            : xac_slots_needed(&followers, master->redo_lsn, master->start_lsn);

    memcpy(config.identity, master->identity, sizeof config.identity);
    atomic_init(&env->ctl->chain.begin_lsn, master->start_lsn);
    atomic_init(&env->ctl->standby.applied, config.start_lsn);
    if (env->ctl->group.leads != 0)
        atomic_init(&env->ctl->group.replicated, config.start_lsn);
    return xac_log_create(&env->log, &env->ctl->log,
                          (uint8_t *)xac_shm_at(&env->shm, env->ctl->log_ring),
                          env->logfd, &config);
}
