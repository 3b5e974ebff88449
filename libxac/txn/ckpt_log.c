/* SPDX-License-Identifier: MIT */
/*
 * ckpt_log.c -- see ckpt_log.h.
 */
#include <config.h>

#include "txn/ckpt_log.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "log/block.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/ctree.h"

#define END_BYTES_MAX  ((size_t)256 << 10) /* of one block with files                  */
#define END_BYTES      256u                /* room for the record, digest and padding  */
#define FILE_BYTES_MAX (END_BYTES + 512u)  /* with a path that is not too long         */

/* append -- the same for a closed block. */
static int
append(struct xac_env *env, struct xac_block *blk, bool ckpt_begins, uint64_t *lsnp,
       uint64_t *endp)
{
    struct xac_chain *c = &env->ctl->chain;
    bool is_done = false;

    xac_assert(blk->length % XAC_BLOCK_ALIGN == 0);
    while (!is_done) {
        int rc = xac_log_make_room(&env->log, blk->length);

        if (rc != 0)
            return rc;
        rc = xac_chain_lock_limited(env);
        if (rc != 0)
            return xac_err(rc, "waiting for the publish lock");
        is_done = xac_log_has_room(&env->log, blk->length);
        if (is_done) {
            /* Publish is held: nobody else moves the tail. */
            *lsnp = atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed);
            *endp = *lsnp + blk->length;
            if (ckpt_begins) {
                /* Count last, for a builder of a block reads it first.  Both before the tail
                   moves: a block that is built for the place behind BEGIN, if we die
                   right here, has its full images. */
                atomic_store_explicit(&c->begin_lsn, *lsnp, memory_order_relaxed);
                atomic_store_explicit(&env->ctl->data_bytes_begin,
                                      atomic_load_explicit(&env->ctl->data_bytes,
                                                           memory_order_relaxed),
                                      memory_order_relaxed);
                xac_kill_point("m position");
                /* Release: pairs with the acquires in commit/ and commit_block.c. */
                (void)atomic_fetch_add_explicit(&c->ckpt_count, 1, memory_order_release);
            }
            xac_kill_point("m count");
            xac_block_seal(blk, *lsnp,
                           atomic_load_explicit(&env->log.sh->durable,
                                                memory_order_relaxed),
                           xac_chain_commit(env));
            xac_assert(blk->lsn == *lsnp);
            xac_log_append(&env->log, blk);
        }
        xac_chain_unlock(env);
    }
    xac_assert(*endp == *lsnp + blk->length);
    return 0;
}

/* ---- Blocks that concern files ------------------------------------------------------ */

/* put_file -- XFILE record of a registered file. */
static bool
put_file(struct xac_env *env, struct xac_builder *b, uint32_t id, uint64_t length)
{
    const struct xac_file *f = xac_file_at(env, id);
    struct xac_xfile rec = {
        .file = id,
        .path_len = f->path_len,
        .length = length,
        .device = f->who.device,
        .inode = f->who.inode,
    };

    xac_assert(id != 0);
    return xac_put_file(b, &rec, f->who.birth_ns,
                        (const char *)xac_shm_at(&env->shm, f->path));
}

int
xac_ckpt_log_put(struct xac_env *env, struct xac_builder *b, bool ckpt_begins,
                 uint64_t *lsnp, uint64_t *endp)
{
    int kind = (int)atomic_load_explicit(&env->ctl->checksum, memory_order_relaxed);
    int rc = xac_block_close(b, xac_env_log_id(env), kind);

    xac_assert(b->records > 0);
    xac_require(!xac_env_is_standby(env));
    return rc == 0
               ? append(env, (struct xac_block *)(void *)b->buf, ckpt_begins, lsnp, endp)
               : rc;
}

int
xac_checkpoint_log_file(struct xac_env *env, uint32_t file, uint64_t length)
{
    uint64_t buf[1024];
    struct xac_builder b;
    uint64_t lsn, end;
    int rc;

    xac_assert(file != 0);
    if (!xac_env_is_durable(env) || xac_env_is_standby(env)) /* its log is the source's */
        return 0;
    xac_builder_init(&b, buf, sizeof buf);
    if (!put_file(env, &b, file, length))
        return xac_err(ENAMETOOLONG, "registering a file");
    rc = xac_ckpt_log_put(env, &b, false, &lsn, &end);
    return rc == 0 ? xac_log_wait_durable(&env->log, end) : rc;
}

int
xac_checkpoint_log_forget(struct xac_env *env, uint32_t file)
{
    uint64_t buf[64];
    struct xac_builder b;
    uint64_t lsn, end;

    xac_assert(file != 0);
    if (!xac_env_is_durable(env) || xac_env_is_standby(env)) /* its log is the source's */
        return 0;
    xac_builder_init(&b, buf, sizeof buf);
    (void)xac_put_forget(&b, file);
    return xac_ckpt_log_put(env, &b, false, &lsn, &end);
}

/* ---- The end of a checkpoint -------------------------------------------------------- */

/* A block in the making, and where the first of several stands. */
struct spread {
    struct xac_builder b;
    uint64_t *buf;
    size_t size;
    uint64_t first_lsn; /* 0: none has been appended                                   */
};

/* spread_out -- append what has been built, and begin anew. */
static int
spread_out(struct xac_env *env, struct spread *s, uint64_t *lsnp, uint64_t *endp)
{
    int rc = xac_ckpt_log_put(env, &s->b, false, lsnp, endp);

    xac_assert(s->b.records > 0);
    if (rc == 0 && s->first_lsn == 0)
        s->first_lsn = *lsnp;
    xac_builder_init(&s->b, s->buf, s->size);
    xac_assert(s->b.records == 0);
    return rc;
}

/* spread_file -- one more file; in the next block if there is no room in this one. */
static int
spread_file(struct xac_env *env, struct spread *s, uint32_t id)
{
    uint64_t length =
        atomic_load_explicit(&xac_file_at(env, id)->length, memory_order_relaxed);
    uint64_t lsn, end;
    int rc;

    xac_assert(id != 0);
    if (s->b.used + FILE_BYTES_MAX <= s->size && put_file(env, &s->b, id, length))
        return 0;
    rc = s->b.records == 0 ? 0 : spread_out(env, s, &lsn, &end);
    xac_kill_point("q files");
    if (rc == 0 && !put_file(env, &s->b, id, length))
        rc = xac_err(EFBIG, "checkpoint: the path of a file in the log buffer");
    return rc;
}

int
xac_ckpt_log_end(struct xac_env *env, const struct xac_ckpt_end *what, uint64_t *lsnp,
                 uint64_t *endp)
{
    struct spread s = {.size = env->ctl->log.ring_bytes / 4};
    int rc = 0;

    xac_assert(what->redo_lsn <= what->begin_lsn);
    xac_assert(what->n_files == 0 || what->file != NULL);
    if (s.size > END_BYTES_MAX)
        s.size = END_BYTES_MAX;
    s.buf = (uint64_t *)malloc(s.size);
    if (s.buf == NULL)
        return xac_err(ENOMEM, "checkpoint");
    xac_builder_init(&s.b, s.buf, s.size);
    for (size_t i = 0; i < what->n_files && rc == 0; i++)
        rc = spread_file(env, &s, what->file[i]);
    if (rc == 0 && s.b.used + END_BYTES > s.size)
        rc = spread_out(env, &s, lsnp, endp);
    if (rc == 0) {
        bool is_put =
            xac_put_checkpt_end(&s.b, what->begin_lsn, what->redo_lsn, s.first_lsn);

        xac_require(is_put); /* there is room, by the line above */
        rc = spread_out(env, &s, lsnp, endp);
    }
    free(s.buf);
    return rc;
}
