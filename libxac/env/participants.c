/* SPDX-License-Identifier: MIT */
/*
 * participants.c -- see participants.h.
 */
#include <config.h>

#include "env/participants.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/slot.h"

/* A glimpse: nobody waits for what we see. */
static uint64_t
get(const _Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

/* since -- of a time of a coarse clock, which may be a tick ahead of us or behind; 0: never. */
static uint64_t
since(uint64_t then, uint64_t now)
{
    return then == 0 || then > now ? 0 : now - then;
}

/* read_command -- the name of a process, "" if it cannot be read. */
static void
read_command(uint32_t pid, char command[16])
{
    char path[40];
    size_t got = 0;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/comm", pid);
    fd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (xac_read_full(fd, command, 15, 0, &got) != 0)
        got = 0;
    (void)xac_sys.close(fd);
    command[got] = '\0';
    command[strcspn(command, "\n")] = '\0';
}

/* fill_process -- what all rows of a participant share; false: it is not attached. */
static bool
fill_process(const struct xac_env *env, uint32_t index, struct xac_party *row)
{
    const struct xac_participant *p = xac_participant_at(env, index);
    uint64_t pin = get(&p->log_pin), tail = get(&env->ctl->log.tail);
    enum xac_process_state state;

    /* Acquire: pairs with the release in xac_registry_join. */
    if (atomic_load_explicit(&p->state, memory_order_acquire) != XAC_PART_ATTACHED)
        return false;
    state = xac_registry_state(env, index);
    *row = (struct xac_party){
        .pid = p->pid,
        .process = state == XAC_PROCESS_DEAD      ? XAC_PARTY_DEAD
                   : state == XAC_PROCESS_STOPPED ? XAC_PARTY_STOPPED
                                                  : XAC_PARTY_RUNNING,
        .is_reader = p->is_reader,
        .engine = atomic_load_explicit(&p->engine, memory_order_relaxed),
        .log_held = pin != 0 && xac_env_is_durable(env) && pin < tail ? tail - pin : 0,
    };
    if (p->pid_namespace == env->pid_namespace && state != XAC_PROCESS_DEAD)
        read_command(p->pid, row->command);
    return true;
}

/* kind_of -- enum xac_party_kind. */
static uint64_t
kind_of(uint64_t word)
{
    switch (xac_txn_state(word)) {
    case XAC_TXN_PENDING:
        return XAC_PARTY_UPDATE;
    case XAC_TXN_FAILED:
        return XAC_PARTY_FAILED;
    case XAC_TXN_COMMITTING:
    case XAC_TXN_PUBLISHED:
        return XAC_PARTY_COMMITTING;
    case XAC_TXN_QUERY:
        return XAC_PARTY_QUERY;
    case XAC_TXN_CUT:
        return XAC_PARTY_CUT;
    case XAC_TXN_SNAPSHOT:
        return XAC_PARTY_SNAPSHOT;
    default:
        return XAC_PARTY_IDLE;
    }
}

/*
 * block_at -- a block of another's set; NULL if there cannot be one.  The owner may give its blocks
 * back meanwhile, so no place in it is taken on trust.
 */
static const struct xac_set_block *
block_at(const struct xac_env *env, uint64_t at)
{
    uint64_t size = xac_shm_size(&env->shm);

    xac_assert(size > sizeof(struct xac_set_block));
    if (at == 0 || at % sizeof(struct xac_entry) != 0
        || at > size - sizeof(struct xac_set_block))
        return NULL;
    return (const struct xac_set_block *)xac_shm_at(&env->shm, at);
}

/* count_pages -- of the set of a transaction, which may end meanwhile. */
static void
count_pages(const struct xac_env *env, const struct xac_txn *txn, struct xac_party *row)
{
    /* Acquire: pairs with the release in xac_set_add. */
    uint64_t n = atomic_load_explicit(&txn->n_entries, memory_order_acquire);
    const struct xac_set_block *block = block_at(env, txn->first_block);

    for (uint64_t i = 0; i < n && block != NULL; i++) {
        uint64_t k = i % XAC_SET_BLOCK_ENTRIES;
        uint32_t mode = atomic_load_explicit(&block->entry[k].mode, memory_order_relaxed);

        row->pages_written += (mode & XAC_SET_WRITE) != 0;
        row->pages_read += (mode & XAC_SET_WRITE) == 0 && (mode & XAC_SET_READ) != 0;
        if (k + 1 == XAC_SET_BLOCK_ENTRIES)
            block = block_at(env, block->next);
    }
}

/* fill_wait -- what a slot waits for. */
static void
fill_wait(const struct xac_env *env, const struct xac_txn *txn, uint64_t now,
          struct xac_party *row)
{
    uint64_t began = get(&txn->wait_ns), on = get(&txn->wait_for);
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    if (began == 0)
        return;
    row->waits_ns = since(began, now);
    row->waits_for = on == 0 ? XAC_PARTY_TURN : XAC_PARTY_OLDER;
    if (on == 0)
        on = get(&env->ctl->turn) & XAC_TURN_SLOT_MASK;
    if (on != 0 && on <= n) {
        uint32_t who = xac_txn_participant(get(&xac_txn_at(env, on - 1)->word));

        if (who < get(&env->ctl->participants.count))
            row->waits_pid = xac_participant_at(env, who)->pid;
    }
}

/* log_since -- bytes of log behind a commit, as far as the ring tells. */
static uint64_t
log_since(const struct xac_env *env, uint64_t commit)
{
    uint64_t tail, last = xac_chain_commit(env);
    uint64_t known = last > XAC_RING_ENTRIES / 2 ? last - XAC_RING_ENTRIES / 2 : 0;

    if (!xac_env_is_durable(env) || commit >= last)
        return 0;
    tail = get(&env->ctl->log.tail);
    for (uint64_t n = commit > known ? commit : known; n < last; n++) {
        uint64_t lsn = xac_chain_lsn(env, n); /* the tail, if the ring does not tell it */

        if (lsn != 0 && lsn < tail)
            return tail - lsn;
    }
    return 0;
}

/* fill_transaction -- of a slot that somebody has; ret its word. */
static void
fill_transaction(const struct xac_env *env, const struct xac_txn *txn, uint64_t now,
                 struct xac_party *row, struct xac_reader_held *held)
{
    /* Acquire: pairs with the release in xac_txn_begin. */
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_acquire);
    uint64_t why = get(&txn->last_why), log_held;

    *held = (struct xac_reader_held){.parent = UINT64_MAX, .start = UINT64_MAX};
    row->tid = atomic_load_explicit(&txn->tid, memory_order_relaxed);
    row->failed_kind = why >> 32;
    row->failed_pid = why & UINT32_MAX;
    row->failed_ns = why == 0 ? 0 : since(get(&txn->last_failed_ns), now);
    fill_wait(env, txn, now, row);
    row->kind = kind_of(word);
    if (row->kind == XAC_PARTY_IDLE)
        return;
    row->age_ns = since(get(&txn->begin_ns), now);
    row->commit = get(&txn->parent);
    count_pages(env, txn, row);
    if (xac_txn_is_live(word)) {
        held->parent = row->commit;
        held->start = get(&txn->start);
        log_held = log_since(env, row->commit);
        row->log_held = log_held > row->log_held ? log_held : row->log_held;
    }
    if (get(&txn->word) >> 32 == word >> 32)
        return;
    row->kind = XAC_PARTY_IDLE; /* it is over: nothing of it is to be trusted */
    row->age_ns = row->commit = row->pages_read = row->pages_written = 0;
    held->parent = held->start = UINT64_MAX;
}

/* add_rows -- one for each slot of a participant, at least one; ret how many. */
static size_t
add_rows(const struct xac_env *env, uint32_t index, uint64_t n_slots, uint64_t now,
         struct xac_party *row, struct xac_reader_held *held)
{
    struct xac_party process;
    size_t n = 0;

    xac_assert(index != XAC_NOBODY); /* snapshots of nobody have no row */
    if (!fill_process(env, index, &process))
        return 0;
    for (uint64_t slot = 0; slot < n_slots; slot++) {
        const struct xac_txn *txn = xac_txn_at(env, slot);
        uint64_t word = get(&txn->word);

        if (xac_txn_state(word) == XAC_TXN_FREE || xac_txn_participant(word) != index)
            continue;
        row[n] = process;
        fill_transaction(env, txn, now, &row[n], &held[n]);
        n++;
    }
    if (n > 0)
        return n;
    row[0] = process;
    held[0] = (struct xac_reader_held){.parent = UINT64_MAX, .start = UINT64_MAX};
    return 1;
}

int
xac_participants_read(const struct xac_env *env, struct xac_party **rowsp, size_t *np)
{
    struct xac_reader_held *held;
    uint64_t n_parts, n_slots, now = xac_clock_ns();
    struct xac_party *row;
    size_t n = 0;

    *rowsp = NULL;
    *np = 0;
    if (env->ctl == NULL)
        return 0;
    n_parts = get(&env->ctl->participants.count);
    /* Acquire: pairs with the release in xac_txn_claim. */
    n_slots = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    row = (struct xac_party *)calloc(n_parts * (n_slots + 1) + 1, sizeof *row);
    held = (struct xac_reader_held *)calloc(n_parts * (n_slots + 1) + 1, sizeof *held);
    if (row == NULL || held == NULL) {
        free(row);
        free(held);
        return xac_err(ENOMEM, "xParticipants");
    }
    for (uint32_t i = 0; i < n_parts; i++)
        n += add_rows(env, i, n_slots, now, row + n, held + n);
    xac_version_count_back(env, xac_chain_commit(env), held, n);
    for (size_t i = 0; i < n; i++)
        row[i].versions_held = held[i].n;
    free(held);
    *rowsp = row;
    *np = n;
    return 0;
}
