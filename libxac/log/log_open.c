/* SPDX-License-Identifier: MIT */
/*
 * log_open.c -- making a log, joining it, and one that is written elsewhere: see log.h.
 */
#include <config.h>

#include "log/log.h"

#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "log/log_segment.h"

static bool
is_power_of_2(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/*
 * reserve_fds -- fill both places with descriptors, the second with one that only keeps
 * the place (no segment has number 0): later ones are opened in their stead.  A failure
 * shows when a segment is opened.
 */
static void
reserve_fds(struct xac_log *log)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: which segment is a guess. */
    uint64_t lsn = atomic_load_explicit(&sh->durable, memory_order_relaxed);
    uint64_t number = xac_log_segment_of(lsn, sh->segment_bytes);
    int i = (int)((number + 1) % 2);

    xac_assert(sh->segment_bytes != 0);
    (void)xac_log_segment_fd(log, number);
    log->seg_no[i] = 0;
    log->seg_fd[i] =
        xac_handle_keep(xac_sys.openat(xac_log_dir(log), ".",
                                       O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0),
                        &log->seg[i]);
}

int
xac_log_create(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring, int dirfd,
               const struct xac_log_config *config)
{
    uint64_t start = config->start_lsn;
    uint64_t prepared = start & ~(config->segment_bytes - 1);
    int rc;

    xac_assert(is_power_of_2(config->segment_bytes) && is_power_of_2(config->ring_bytes));
    xac_assert(start >= XAC_LSN_FIRST && start % XAC_BLOCK_ALIGN == 0);
    xac_assert(config->start_lsn <= XAC_LSN_LIMIT);
    xac_assert(config->page_size != 0);
    memset(sh, 0, sizeof *sh);
    memcpy(sh->identity, config->identity, sizeof sh->identity);
    sh->generation = config->generation;
    sh->page_size = config->page_size;
    sh->segment_bytes = config->segment_bytes;
    sh->ring_bytes = config->ring_bytes;
    sh->start_lsn = start;
    atomic_init(&sh->free_below, config->free_below);
    if (config->followers != NULL)
        memcpy(&sh->followers, config->followers, sizeof sh->followers);
    rc = xac_lock_init(&sh->flush, XAC_RANK_FLUSH);
    if (rc == 0)
        rc = xac_lock_init(&sh->prepare, XAC_RANK_PREPARE);
    if (rc != 0)
        return xac_err(rc, "log: locks");
    /* relaxed: nobody else knows of the log yet. */
    atomic_store_explicit(&sh->tail, start, memory_order_relaxed);
    atomic_store_explicit(&sh->written, start, memory_order_relaxed);
    atomic_store_explicit(&sh->durable, start, memory_order_relaxed);
    atomic_store_explicit(&sh->prepared, prepared, memory_order_relaxed);
    xac_assert(prepared <= start);
    rc = xac_log_state_init(log, sh, ring, dirfd);
    if (rc != 0)
        return xac_err(rc, "log directory");
    rc = xac_log_segment_prepare(log, prepared + 1);
    if (rc == 0)
        reserve_fds(log);
    return rc;
}

int
xac_log_attach(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring, int dirfd)
{
    int rc = xac_log_state_init(log, sh, ring, dirfd);

    if (rc != 0)
        return xac_err(rc, "log directory");
    xac_debug(xac_log_assert(log));
    reserve_fds(log);
    return 0;
}

void
xac_log_stands(struct xac_log *log, uint64_t lsn)
{
    struct xac_log_shared *sh = log->sh;
    uint64_t at = atomic_load_explicit(&sh->tail, memory_order_relaxed);
    uint64_t segment = sh->segment_bytes;

    xac_assert(at <= lsn);
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    xac_assert(at == atomic_load_explicit(&sh->durable, memory_order_relaxed));
    /* Release: pairs with the acquires in has_room and xac_log_assert. */
    atomic_store_explicit(&sh->prepared, (lsn + segment) & ~(segment - 1),
                          memory_order_release);
    while (at < lsn) {
        /* Never further apart than (1) allows, for those who look meanwhile. */
        at = lsn - at < sh->ring_bytes ? lsn : at + sh->ring_bytes;
        /* Release: pairs with the acquire in xac_chain_lsn. */
        atomic_store_explicit(&sh->tail, at, memory_order_release);
        /* Release: pairs with the acquire in xac_log_assert. */
        atomic_store_explicit(&sh->written, at, memory_order_release);
        /* Release: pairs with the acquire in xac_log_wait_durable. */
        atomic_store_explicit(&sh->durable, at, memory_order_release);
    }
}
