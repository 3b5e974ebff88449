/* SPDX-License-Identifier: MIT */
/*
 * txn_datafile.c -- the data file of a transaction that is too large for the log buffer.
 *
 * Its records go out in pieces, so that a commit takes no more memory the larger it is.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <xac.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/block.h"
#include "log/log.h"
#include "shared/env_state.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/slot.h"
#include "txn/txn_datafile.h"

/* Pages of a piece, at least. */
#define PIECE_PAGES 16

/* A data file that grows. */
struct datafile {
    struct xac_builder b; /* the piece, behind a block header that is not used          */
    struct xac_digester digest;
    int fd;
    uint64_t length; /* written so far                                              */
};

void
xac_commit_remove_datafile(struct xac_env *env, uint64_t serial)
{
    char name[XAC_LOG_NAME_MAX];

    xac_assert(serial != 0);
    xac_log_datafile_name(name, env->ctl->generation, serial);
    (void)xac_sys.unlinkat(xac_log_dir(&env->log), name, 0);
}

/* flush -- the piece goes to the file; ret 0 or errno. */
static int
flush(struct datafile *f)
{
    const uint8_t *bytes = f->b.buf + sizeof(struct xac_block);
    size_t n = f->b.used - sizeof(struct xac_block);
    int rc = xac_write_full(f->fd, bytes, n, f->length);

    xac_assert(f->fd >= 0);
    xac_assert(f->b.used >= sizeof(struct xac_block));
    xac_digest_add(&f->digest, bytes, n);
    f->length += n;
    f->b.used = sizeof(struct xac_block);
    xac_assert(f->b.used == sizeof(struct xac_block));
    return rc;
}

/* put_page -- one more full image; ret 0 or errno. */
static int
put_page(struct xac_env *env, struct datafile *f, uint64_t id, const uint8_t *bytes)
{
    int rc = 0;

    xac_assert(bytes != NULL);
    if (!xac_put_page(&f->b, xac_page_file(id), xac_page_no(id), NULL, bytes,
                      env->page_size)) {
        rc = flush(f);
        if (rc == 0
            && !xac_put_page(&f->b, xac_page_file(id), xac_page_no(id), NULL, bytes,
                             env->page_size))
            rc = ENOSPC;
    }
    return rc;
}

/* fill -- all written pages of a slot as full images, one after the other. */
static int
fill(struct xac_env *env, const struct xac_txn *txn, struct datafile *f)
{
    struct xac_set_walk walk = xac_set_walk(txn);
    const struct xac_entry *e;
    int rc = 0;

    while (rc == 0 && (e = xac_set_next(env, &walk)) != NULL) {
        const uint8_t *bytes;

        if (e->vslot == 0)
            continue;
        bytes = xac_version_bytes(env, e->vslot);
        rc = bytes == NULL ? errno : put_page(env, f, xac_entry_page_id(env, e), bytes);
    }
    return rc == 0 ? flush(f) : rc;
}

/* write_file -- fill it, and make it durable, name included; ret 0 or an error. */
static int
write_file(struct xac_env *env, const struct xac_txn *txn, uint64_t serial,
           struct datafile *f)
{
    int dirfd = xac_log_dir(&env->log);
    char name[XAC_LOG_NAME_MAX];
    struct xac_owner owner;
    int rc = xac_owner_get(dirfd, &owner);

    xac_assert(serial != 0);
    xac_log_datafile_name(name, env->ctl->generation, serial);
    if (rc == 0)
        rc = xac_newfile_make(dirfd, name, &owner, &f->fd);
    if (rc != 0)
        return xac_err(rc, "data file %s", name);
    rc = fill(env, txn, f);
    if (rc == 0 && xac_sys.fdatasync(f->fd) != 0)
        rc = errno;
    xac_outofcore_uncache(env, f->fd);
    (void)xac_sys.close(f->fd);
    xac_kill_point("b data file");
    if (rc == 0)
        rc = xac_sync_dir(dirfd);
    xac_count(&env->ctl->data_bytes, f->length);
    return rc == 0 ? 0
                   : xac_err(rc, "writing data file %s for %llu bytes of a transaction",
                             name, (unsigned long long)txn->n_written << env->page_shift);
}

int
xac_commit_write_datafile(struct xac_env *env, const struct xac_txn *txn, uint64_t serial,
                          struct xac_xdatafile *recp)
{
    int kind = (int)atomic_load_explicit(&env->ctl->checksum, memory_order_relaxed);
    struct xac_xdatafile rec = {.serial = serial, .checksum_kind = (uint32_t)kind};
    size_t size =
        sizeof(struct xac_block) + PIECE_PAGES * xac_page_record_max(env->page_size);
    uint8_t *buf = (uint8_t *)malloc(size);
    struct datafile f = {.fd = -1};
    int rc = buf == NULL ? ENOMEM : xac_digest_begin(&f.digest, kind);

    xac_assert(serial != 0);
    xac_assert(txn->n_written > 0);
    if (rc != 0) {
        rc = xac_err(rc, "logging a transaction of %u pages", txn->n_written);
        goto out;
    }
    xac_builder_init(&f.b, buf, size);
    rc = write_file(env, txn, serial, &f);
    if (rc != 0)
        goto out;
    rec.length = f.length;
    rec.n_records = f.b.records;
    xac_digest_end(&f.digest, rec.digest);
    *recp = rec;
out:
    xac_digest_free(&f.digest);
    free(buf);
    return rc;
}

/* lock_all -- take publish, with all slots in the page table (ctree.h, invariant 6); ret how many
   there are. */
XAC_ACQUIRE(publish)
static uint64_t
lock_all(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    for (uint64_t seen = 0;;) {
        uint64_t n;

        xac_chain_lock(env);
        /* Acquire: pairs with the release in xac_txn_claim. */
        n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
        if (n == seen)
            return n;
        xac_chain_unlock(env);
        xac_array_populate(&env->shm, &env->ctl->txns, 0, n);
        seen = n;
    }
}

uint64_t
xac_commit_data_serial(struct xac_env *env)
{
    uint64_t bound, n = lock_all(env);

    xac_assert(xac_lock_is_mine(&env->ctl->chain.publish));
    bound = atomic_load_explicit(&env->ctl->next_datafile, memory_order_relaxed);
    for (uint64_t i = 0; i < n; i++) {
        /* Acquire: pairs with the release in xac_txn_drop. */
        uint64_t floor =
            atomic_load_explicit(&xac_txn_at(env, i)->data_floor, memory_order_acquire);

        if (floor != 0 && floor < bound)
            bound = floor;
    }
    xac_chain_unlock(env);
    xac_assert(bound
               <= atomic_load_explicit(&env->ctl->next_datafile, memory_order_relaxed));
    return bound;
}
