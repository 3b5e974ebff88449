/* SPDX-License-Identifier: MIT */
/*
 * commit_block.c -- see commit_block.h.
 */
#include <config.h>

#include "txn/commit_block.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sys.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/txn_datafile.h"

/* First size of a slot's block. */
#define RECORD_FIRST 8192

/* Room behind the records for XCOMMIT, digest and padding; kept free until the end, so
   that a block that fits its buffer up to there does not outgrow it. */
#define RECORD_TAIL 64

/* What a checkpoint logs, about. */
#define CKPT_BYTES 4096u

/* block_grow -- a larger buffer with the same contents; ret 0 or an error. */
static int
block_grow(struct xac_env *env, struct xac_commit_block *m)
{
    uint64_t size = m->size == 0 ? RECORD_FIRST : m->size * 2;
    uint64_t at = xac_shm_alloc(&env->shm, size);

    xac_assert(m->at == 0 || m->size != 0);
    if (at == 0)
        return xac_err(xac_shm_lacks(&env->shm),
                       "control region %s: %llu bytes for the log block", env->region,
                       (unsigned long long)size);
    if (m->at != 0) {
        memcpy(xac_shm_at(&env->shm, at), m->b.buf, m->b.used);
        xac_shm_free(&env->shm, m->at, m->size);
        m->b.buf = (uint8_t *)xac_shm_at(&env->shm, at);
        m->b.size = size - RECORD_TAIL;
    } else {
        xac_builder_init(&m->b, xac_shm_at(&env->shm, at), size - RECORD_TAIL);
    }
    xac_assert(m->b.used <= m->b.size);
    m->at = at;
    m->size = size;
    return 0;
}

/* block_begin -- start a block in the buffer of *m, or in a new one; ret 0 or an error. */
static int
block_begin(struct xac_env *env, const struct xac_txn *txn, struct xac_commit_block *m)
{
    uint64_t age = atomic_load_explicit(&txn->age, memory_order_relaxed);
    int rc = 0;

    xac_assert(m->at == 0 || m->size != 0);
    *m = (struct xac_commit_block){.at = m->at, .size = m->size};
    if (m->at == 0)
        rc = block_grow(env, m);
    else
        xac_builder_init(&m->b, xac_shm_at(&env->shm, m->at), m->size - RECORD_TAIL);
    if (rc == 0)
        (void)xac_put_txn(&m->b, XAC_XBEGIN, age);
    return rc;
}

int
xac_commit_block_begin(struct xac_env *env, const struct xac_txn *txn,
                       struct xac_commit_block *m)
{
    xac_assert(txn->record == 0 || txn->record_size != 0);
    *m = (struct xac_commit_block){.at = txn->record, .size = txn->record_size};
    return block_begin(env, txn, m);
}

int
xac_commit_block_add(struct xac_env *env, struct xac_commit_block *m,
                     const struct xac_page_change *c)
{
    int rc = 0;

    xac_assert(m->at != 0);
    while (rc == 0 && !m->is_large && !xac_put_change(&m->b, c, env->page_size)) {
        m->is_large = m->size * 2 > env->ctl->log.ring_bytes / 4;
        if (!m->is_large)
            rc = block_grow(env, m);
    }
    return rc;
}

/* block_close -- XCOMMIT, checksum. */
static int
block_close(struct xac_env *env, struct xac_commit_block *m)
{
    int kind = (int)atomic_load_explicit(&env->ctl->checksum, memory_order_relaxed);
    int rc;

    xac_assert(m->b.used + RECORD_TAIL <= m->size);
    xac_assert(m->b.records > 0);
    m->b.size = m->size;
    m->time_ns = xac_clock_read(CLOCK_REALTIME);
    (void)xac_put_commit(&m->b, m->time_ns);
    rc = xac_block_close(&m->b, xac_env_log_id(env), kind);
    return rc == 0 ? 0 : xac_err(rc, "checksum of the log block");
}

/* ---- Data files of large transactions --------------------------------------------- */

/* new_datafile -- take a serial for a transaction; ret 0 or ETIMEDOUT.  Both stores in one
   section: a process that works out a bound finds the transaction, or a larger next serial. */
static int
new_datafile(struct xac_env *env, struct xac_txn *txn, uint64_t *serialp)
{
    uint64_t serial;
    int rc = xac_chain_lock_limited(env);

    if (rc != 0)
        return rc;
    /* Relaxed, all: under publish. */
    serial = atomic_load_explicit(&env->ctl->next_datafile, memory_order_relaxed);
    if (atomic_load_explicit(&txn->data_floor, memory_order_relaxed) == 0)
        atomic_store_explicit(&txn->data_floor, serial, memory_order_relaxed);
    xac_kill_point("b serial");
    xac_assert(serial != 0);
    atomic_store_explicit(&env->ctl->next_datafile, serial + 1, memory_order_relaxed);
    xac_chain_unlock(env);
    *serialp = serial;
    return 0;
}

/* block_of_file -- write the pages of a transaction to a data file, and build the small block that
   names it; ret 0 or an error. */
static int
block_of_file(struct xac_env *env, const struct xac_txn *txn, uint64_t serial,
              struct xac_commit_block *m)
{
    struct xac_xdatafile rec;
    int rc = xac_commit_write_datafile(env, txn, serial, &rec);

    xac_assert(serial != 0);
    if (rc == 0)
        rc = block_begin(env, txn, m);
    if (rc == 0 && !xac_put_datafile(&m->b, &rec))
        rc = xac_err(ENOMEM, "log block for a data file");
    return rc == 0 ? block_close(env, m) : rc;
}

int
xac_commit_block_end(struct xac_env *env, struct xac_txn *txn, struct xac_commit_block *m)
{
    int rc;

    xac_assert(m->at != 0);
    xac_assert(xac_txn_state(atomic_load_explicit(&txn->word, memory_order_relaxed))
               != XAC_TXN_COMMITTING);
    if (m->is_large) {
        txn->all_full = 1;
        rc = new_datafile(env, txn, &txn->datafile);
        if (rc == 0)
            rc = block_of_file(env, txn, txn->datafile, m);
    } else {
        rc = block_close(env, m);
    }
    txn->time_ns = m->time_ns;
    return rc;
}

/* Whether it has the lock depends on rc, which clang does not follow. */
XAC_UNGUARDED int
xac_commit_block_rebuild(struct xac_env *env, uint64_t slot)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    /* Acquire: pairs with the release in the checkpoint. */
    uint64_t count =
        atomic_load_explicit(&env->ctl->chain.ckpt_count, memory_order_acquire);
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    struct xac_commit_block m = {.at = 0};
    bool is_used = false;
    uint64_t serial;
    int rc = new_datafile(env, txn, &serial);

    xac_assert(xac_txn_state(word) != XAC_TXN_FREE);
    if (rc != 0)
        return rc;
    /* Always by way of a data file: rare, and right for every size. */
    rc = block_of_file(env, txn, serial, &m);
    if (rc == 0)
        rc = xac_chain_lock_limited(env);
    if (rc == 0) {
        uint64_t at = txn->record, size = txn->record_size;

        xac_kill_point("d rebuild");
        is_used = atomic_load_explicit(&txn->word, memory_order_relaxed) == word
                  && txn->ckpt_count != count && txn->all_full == 0;
        if (is_used) {
            txn->record = m.at;
            txn->record_size = m.size;
            txn->ckpt_count = count;
            txn->all_full = 1;
            txn->datafile = serial;
            txn->time_ns = m.time_ns;
            m.at = at;
            m.size = size;
        }
        xac_chain_unlock(env);
    }
    if (m.at != 0)
        xac_shm_free(&env->shm, m.at, m.size);
    if (!is_used)
        xac_commit_remove_datafile(env, serial);
    return rc;
}

/* ---- Room ------------------------------------------------------------------------- */

/* On a full disk a checkpoint's block must fit when the transaction's does not: hence CKPT_BYTES. */
int
xac_commit_block_make_room(struct xac_env *env, const struct xac_txn *txn)
{
    const struct xac_block *blk;
    uint64_t most, bytes;
    int rc;

    if (!xac_version_is_ready(env))
        xac_version_ready(env);
    if (!xac_env_is_durable(env))
        return 0;
    xac_assert(txn->record != 0);
    blk = (const struct xac_block *)xac_shm_at(&env->shm, txn->record);
    most = env->ctl->log.ring_bytes / 4;
    xac_assert(blk->length <= most);
    bytes = blk->length + CKPT_BYTES;
    rc = xac_log_make_room(&env->log, bytes < most ? bytes : most);
    /* Not XAC_ENOTDURABLE, which speaks of what has committed. */
    return rc != XAC_ENOTDURABLE ? rc
                                 : xac_err(xac_log_unwritten(&env->log),
                                           "writing the log, whose buffer is full");
}
