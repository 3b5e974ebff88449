/* SPDX-License-Identifier: MIT */
/*
 * log.c -- see log.h: the ring, and group commit.  Opening is in log_open.c.
 *
 * A process may die at any instruction.
 *   append   moves tail by its last store; a survivor redoes it from the descriptor.
 *   flush    moves durable by its last store; the next holder of the flush lock writes
 *            again from durable.  It must not go by what the dead one wrote: had that
 *            one's sync failed, the kernel would have marked its pages clean, and only
 *            writing them again makes the next sync mean anything.
 *   prepare  see log_segment.c.
 * Callers have blocked the signals (xac_signals_block); thread cancellation is held off
 * here while a lock is held.
 */
#include <config.h>

#include "log/log.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/handle.h"
#include "base/populate.h"
#include "base/sys.h"
#include "log/log_segment.h"
#include "log/wakes.h"

/* How long a waiter sleeps before it looks whether the holder of the flush lock lives. */
#define RETRY_MS 50

static uint64_t
min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Descriptors of segments ------------------------------------------------------ */

int
xac_log_segment_fd(struct xac_log *log, uint64_t number)
{
    int i = (int)(number % 2);
    struct xac_handle *seg = &log->seg[i];
    bool is_same = log->seg_no[i] == number && seg->inode != 0;
    int old = log->seg_fd[i], dirfd;
    char name[XAC_LOG_NAME_MAX];

    xac_assert(number != 0);
    if (is_same && xac_handle_is_ours(old, seg))
        return old;
    xac_handle_close(old, seg);
    log->seg_fd[i] = -1;
    log->started = 0;
    dirfd = is_same ? xac_log_mend(log) : xac_log_dir(log);
    if (dirfd < 0)
        return -1;
    xac_log_segment_name(name, number);
    if (is_same) {
        log->seg_fd[i] = xac_handle_again(-1, seg, dirfd, name, O_WRONLY | O_NOFOLLOW);
        return log->seg_fd[i];
    }
    log->seg_no[i] = number;
    *seg = (struct xac_handle){.inode = 0};
    log->seg_fd[i] =
        xac_handle_keep(xac_sys.openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0),
                        seg);
    xac_assert(log->seg_no[i] == number);
    return log->seg_fd[i];
}

/* ---- Appending -------------------------------------------------------------------- */

/* has_space -- do so many bytes fit behind the tail? */
static bool
has_space(const struct xac_log *log, uint64_t bytes)
{
    const struct xac_log_shared *sh = log->sh;
    /* relaxed: stored under the publish lock, which the caller holds; elsewhere a hint. */
    uint64_t end = atomic_load_explicit(&sh->tail, memory_order_relaxed) + bytes;

    xac_assert(bytes <= sh->ring_bytes);
    /* acquire: pairs with the release in flush_held, after which the bytes of the ring
       have been read; and with that in prepare_held, after which the segment exists. */
    uint64_t durable = atomic_load_explicit(&sh->durable, memory_order_acquire);
    uint64_t prepared = atomic_load_explicit(&sh->prepared, memory_order_acquire);

    return end <= durable + sh->ring_bytes && end <= prepared;
}

/* part_shift -- the ring has so many parts of 1 << shift bytes as struct xac_log's ready has
   bits. */
static unsigned
part_shift(const struct xac_log_shared *sh)
{
    xac_assert(sh->ring_bytes >= 64);
    return (unsigned)__builtin_ctzll(sh->ring_bytes) - 6;
}

/* part_of -- the bit of the part in which a position lies. */
static uint64_t
part_of(const struct xac_log_shared *sh, uint64_t lsn)
{
    xac_assert_slow(sh->ring_bytes >= 64);
    return UINT64_C(1) << (lsn >> part_shift(sh) & 63);
}

/* is_ready -- are the parts behind the tail in the page table (invariant 7)? */
static bool
is_ready(const struct xac_log *log, uint64_t bytes)
{
    const struct xac_log_shared *sh = log->sh;
    uint64_t ready = atomic_load_explicit(&log->ready, memory_order_relaxed);
    uint64_t lsn = atomic_load_explicit(&sh->tail, memory_order_relaxed);
    uint64_t end = lsn + bytes, part_bytes = UINT64_C(1) << part_shift(sh);

    xac_assert(bytes <= sh->ring_bytes);
    if (xac_likely(ready == UINT64_MAX))
        return true;
    for (lsn &= ~(part_bytes - 1); lsn < end; lsn += part_bytes) {
        if ((ready & part_of(sh, lsn)) == 0)
            return false;
    }
    return true;
}

/* make_ready -- put them there, and the part behind, for others may append meanwhile. */
static void
make_ready(struct xac_log *log, uint64_t bytes)
{
    const struct xac_log_shared *sh = log->sh;
    uint64_t part_bytes = UINT64_C(1) << part_shift(sh);
    uint64_t lsn = atomic_load_explicit(&sh->tail, memory_order_relaxed);
    uint64_t end = lsn + bytes + part_bytes;

    xac_assert(bytes <= sh->ring_bytes);
    for (lsn &= ~(part_bytes - 1); lsn < end; lsn += part_bytes) {
        uint64_t part = part_of(sh, lsn);

        if ((atomic_load_explicit(&log->ready, memory_order_relaxed) & part) != 0)
            continue;
        xac_populate(log->ring + (lsn & (sh->ring_bytes - 1)), part_bytes);
        (void)atomic_fetch_or_explicit(&log->ready, part, memory_order_relaxed);
    }
}

bool
xac_log_has_room(const struct xac_log *log, uint64_t bytes)
{
    xac_assert(bytes > 0);
    return has_space(log, bytes) && is_ready(log, bytes);
}

void
xac_log_ready(struct xac_log *log)
{
    atomic_store_explicit(&log->ready, UINT64_MAX, memory_order_relaxed);
}

void
xac_log_append(struct xac_log *log, const struct xac_block *blk)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: stored under the publish lock, which the caller holds. */
    uint64_t tail = atomic_load_explicit(&sh->tail, memory_order_relaxed);
    uint64_t at = blk->lsn & (sh->ring_bytes - 1);
    uint64_t n = min64(blk->length, sh->ring_bytes - at);

    xac_assert(blk->lsn % XAC_BLOCK_ALIGN == 0);
    xac_assert(blk->length % XAC_BLOCK_ALIGN == 0);
    xac_assert(blk->length <= sh->ring_bytes);
    if (tail >= blk->lsn + blk->length)
        return;
    xac_assert(blk->lsn == tail && has_space(log, blk->length));
    memcpy(log->ring + at, blk, n);
    memcpy(log->ring, (const uint8_t *)blk + n, blk->length - n);
    (void)atomic_fetch_add_explicit(&sh->appended, 1, memory_order_relaxed);
    /* release: pairs with the acquire in flush_held. */
    atomic_store_explicit(&sh->tail, tail + blk->length, memory_order_release);
    xac_assert(tail + blk->length
               <= atomic_load_explicit(&sh->prepared, memory_order_relaxed));
    xac_debug(xac_log_assert(log));
}

/* ---- The gap between write and sync; flush lock held ------------------------------ */

/*
 * A lone committer stays awake for a moment between its write and its sync.  A sync right behind a
 * write puts the thread to sleep twice: until the data have arrived, and until the device has emptied
 * its cache.  If the first wait is over while the thread is still awake, the kernel goes on to the
 * second at once, and the thread falls asleep once instead of twice.  On a virtual machine that saves
 * a sixth of the time.  The best gap, which may be 0, is found by trying: one run of flushes in 8
 * tries another gap, and the others use the one that has cost least.  Several committers need no gap,
 * for each waits for the writes of others.
 */

/* At most a quarter of what a quick sync takes. */
static const uint64_t gap_ns[XAC_LOG_GAPS] = {0, 8000, 16000, 24000};

/* Flushes that have the same gap: the machine adapts to them. */
#define GAP_RUN 16
/* One run in so many tries another gap. */
#define GAP_TRY_EVERY 8
/* A flush counts for at least one in so many of its kind. */
#define GAP_MEMORY 32
/* A longer gap must save more than one part in so many. */
#define GAP_WORTH 32

/* gap_begin -- the device has been told to write. */
static void
gap_begin(struct xac_log_gap *gap)
{
    uint32_t run = gap->n_flushes++ / GAP_RUN;

    gap->now = run % GAP_TRY_EVERY == 0 ? run / GAP_TRY_EVERY % XAC_LOG_GAPS : gap->best;
    gap->start_ns = xac_clock_ns();
    xac_assert(gap->now < XAC_LOG_GAPS);
}

/* gap_wait -- before the sync: wait for the rest of the gap, if a write is under way. */
static void
gap_wait(const struct xac_log_gap *gap)
{
    xac_assert(gap->now < XAC_LOG_GAPS);
    if (gap->start_ns == 0)
        return;
    while (xac_clock_ns() - gap->start_ns < gap_ns[gap->now])
        ;
}

/* gap_choose -- the gap that costs least, of those that are about the same the shortest. */
static uint32_t
gap_choose(const struct xac_log_gap *gap)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < XAC_LOG_GAPS; i++) {
        uint64_t least = gap->cost_ns[best];

        if (gap->n_tried[i] != 0 && gap->cost_ns[i] < least - least / GAP_WORTH)
            best = i;
    }
    xac_assert(best < XAC_LOG_GAPS);
    return best;
}

/* gap_end -- the sync is over, or was not needed any more. */
static void
gap_end(struct xac_log_gap *gap, bool is_synced)
{
    uint64_t *cost = &gap->cost_ns[gap->now];
    uint32_t *n = &gap->n_tried[gap->now];
    uint64_t took;

    xac_assert(gap->now < XAC_LOG_GAPS);
    if (gap->start_ns != 0 && is_synced && gap->n_flushes % GAP_RUN >= GAP_RUN / 2) {
        took = xac_clock_ns() - gap->start_ns;
        /* One that waited for somebody else's writes says little. */
        if (*n != 0 && took > 2 * *cost)
            took = 2 * *cost;
        *n += *n < GAP_MEMORY;
        *cost = *cost - *cost / *n + took / *n;
        gap->best = gap_choose(gap);
    }
    gap->start_ns = 0;
    xac_assert(gap->start_ns == 0);
}

/* ---- Flushing --------------------------------------------------------------------- */

/* set_poison -- the first error stays. */
static void
set_poison(struct xac_log_shared *sh, int error)
{
    int none = 0;

    xac_assert(error != 0);
    /* release: pairs with the acquire loads of poisoned. */
    (void)atomic_compare_exchange_strong_explicit(&sh->poisoned, &none, error,
                                                  memory_order_release,
                                                  memory_order_relaxed);
}

/* wake_all -- after a change that sleepers look for, and after flush is unlocked: a thread that relies
   on its announcement then finds the lock free, or held by a thread that will come here. */
static void
wake_all(struct xac_log_shared *sh)
{
    xac_assert(!xac_lock_is_mine(&sh->flush));
    xac_wakes_fence();
    xac_wakes_ring(&sh->wakes);
    xac_wakes_ring(&sh->followers.wakes);
}

/* note_written -- the segments have the log up to there, the end of a block; the flush lock is held. */
static void
note_written(struct xac_log_shared *sh, uint64_t to)
{
    xac_assert(xac_lock_is_mine(&sh->flush));
    xac_assert(to <= atomic_load_explicit(&sh->tail, memory_order_relaxed));
    /* relaxed: stored under the flush lock.  A flusher that has died may have come as far. */
    if (to <= atomic_load_explicit(&sh->written, memory_order_relaxed))
        return;
    /* release: pairs with every acquire load of written. */
    atomic_store_explicit(&sh->written, to, memory_order_release);
    /* They take no lock: they are woken while the flush lock is held, and go on while this thread syncs. */
    xac_wakes_fence();
    xac_wakes_ring(&sh->followers.written_wakes);
}

void
xac_log_wake_followers(struct xac_log_shared *sh)
{
    xac_assert(sh->segment_bytes != 0);
    xac_wakes_fence();
    xac_wakes_ring(&sh->followers.wakes);
    xac_wakes_ring(&sh->followers.written_wakes);
}

void
xac_log_release(struct xac_log *log, uint64_t lsn)
{
    xac_assert(lsn <= atomic_load_explicit(&log->sh->durable, memory_order_relaxed));
    /* relaxed: see log.h. */
    atomic_store_explicit(&log->sh->free_below, lsn, memory_order_relaxed);
}

void
xac_log_poison(struct xac_log *log, int error)
{
    xac_assert(error != 0);
    set_poison(log->sh, error);
    wake_all(log->sh);
    xac_assert(atomic_load_explicit(&log->sh->poisoned, memory_order_relaxed) != 0);
}

static int
poisoned_error(int error)
{
    xac_assert(error != 0);
    return xac_err(XAC_EPOISONED, "log: an earlier write or sync failed (%s)",
                   xac_strerror(error));
}

/*
 * flush_failed -- poison, unless nothing has happened yet (invariant 6); which step failed
 * where goes to the one who saw it.
 */
static int
flush_failed(struct xac_log *log, int error, const char *step, uint64_t lsn,
             bool is_harmless)
{
    char name[XAC_LOG_NAME_MAX];
    uint64_t segment_bytes = log->sh->segment_bytes;

    xac_assert(error != 0);
    xac_assert(xac_lock_is_mine(&log->sh->flush));
    if (is_harmless)
        atomic_store_explicit(&log->unwritten, error, memory_order_relaxed);
    else
        set_poison(log->sh, error);
    xac_log_segment_name(name, xac_log_segment_of(lsn, segment_bytes));
    return xac_err(is_harmless ? XAC_ENOTDURABLE : XAC_EPOISONED,
                   "%s: %s at offset %llu: %s", name, step,
                   (unsigned long long)(XAC_SEGMENT_HEADER + lsn % segment_bytes),
                   xac_strerror(error));
}

int
xac_log_unwritten(const struct xac_log *log)
{
    int error = atomic_load_explicit(&log->unwritten, memory_order_relaxed);

    return error != 0 ? error : EIO;
}

/* write_segment -- write the LSNs [from, to), all of one segment; ret as flush_held. */
static int
write_segment(struct xac_log *log, int fd, uint64_t from, uint64_t to)
{
    struct xac_log_shared *sh = log->sh;

    xac_assert(fd >= 0);
    xac_assert(from <= to);
    xac_assert(xac_lock_is_mine(&sh->flush));
    for (uint64_t lsn = from, n; lsn < to; lsn += n) {
        uint64_t at = lsn & (sh->ring_bytes - 1);
        size_t done;
        int rc;

        n = min64(to - lsn, sh->ring_bytes - at);
        rc = xac_write_part(fd, log->ring + at, n,
                            XAC_SEGMENT_HEADER + lsn % sh->segment_bytes, &done);
        if (rc != 0)
            return flush_failed(log, rc, "write", lsn, lsn == from && done == 0);
        (void)atomic_fetch_add_explicit(&sh->n_writes, 1, memory_order_relaxed);
    }
    return 0;
}

/*
 * flush_segment -- write and sync the LSNs [from, to), all of one segment.
 *
 * in   is_started  xac_log_flush_start has been called under the same lock
 *      is_last     a block ends at `to`
 */
static int
flush_segment(struct xac_log *log, uint64_t from, uint64_t to, bool is_started,
              bool is_last)
{
    struct xac_log_shared *sh = log->sh;
    uint64_t number = xac_log_segment_of(from, sh->segment_bytes);
    uint64_t written = is_started ? log->started : 0;
    /* Once is enough: xac_log_flush_start has looked whether the descriptor is ours. */
    int fd = written > from ? log->seg_fd[number % 2] : xac_log_segment_fd(log, number);
    int rc;

    xac_assert(from < to);
    xac_assert(written <= from || log->seg_no[number % 2] == number);
    xac_assert(xac_log_segment_of(from, sh->segment_bytes)
               == xac_log_segment_of(to - 1, sh->segment_bytes));
    xac_assert(written <= atomic_load_explicit(&sh->tail, memory_order_relaxed));
    if (fd < 0)
        return flush_failed(log, errno, "open", from, true);
    rc = write_segment(log, fd, from < written ? min64(written, to) : from, to);
    if (rc != 0)
        return rc;
    if (is_last)
        note_written(sh, to);
    if (xac_log_segment_sync(sh, fd, to) != 0)
        return flush_failed(log, errno, "sync", from, false);
    return 0;
}

/* count_batch -- how many blocks this flush takes; the flush lock is held. */
static void
count_batch(struct xac_log_shared *sh)
{
    /* relaxed, all: guesses, see log.h. */
    uint64_t appended = atomic_load_explicit(&sh->appended, memory_order_relaxed);
    uint64_t flushed = atomic_load_explicit(&sh->flushed, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&sh->flush));
    atomic_store_explicit(&sh->batch, appended - flushed, memory_order_relaxed);
    atomic_store_explicit(&sh->flushed, appended, memory_order_relaxed);
}

/*
 * flush_held -- make everything appended durable; the flush lock is held.
 *
 * in   is_started  as for flush_segment
 * ret  0; XAC_EPOISONED with the log poisoned; XAC_ENOTDURABLE (invariant 6).
 */
static int
flush_held(struct xac_log *log, bool is_started)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: stored under the flush lock.  acquire: pairs with xac_log_append. */
    uint64_t from = atomic_load_explicit(&sh->durable, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&sh->tail, memory_order_acquire);
    int error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);
    int rc;

    xac_assert(xac_lock_is_mine(&sh->flush));
    xac_require(from <= to);
    xac_require(to - from <= sh->ring_bytes);
    if (error != 0)
        return poisoned_error(error);
    count_batch(sh);
    while (from < to) {
        uint64_t border = (from & ~(sh->segment_bytes - 1)) + sh->segment_bytes;
        uint64_t end = min64(border, to);

        rc = flush_segment(log, from, end, is_started, end == to);
        if (rc != 0)
            return rc;
        from = end;
    }
    /* acquire: pairs with set_poison, by xac_log_poison in the meantime. */
    error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);
    if (error != 0)
        return poisoned_error(error);
    xac_assert(from >= to);
    xac_assert(atomic_load_explicit(&sh->durable, memory_order_relaxed) <= to);
    /* release: pairs with every acquire load of durable. */
    atomic_store_explicit(&sh->durable, to, memory_order_release);
    atomic_store_explicit(&sh->flushed_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    xac_debug(xac_log_assert(log));
    return 0;
}

/* flush_done -- unlock.  Waking comes after that: a waiter that was woken before could
   find the lock still taken and sleep on, with nobody left to wake it. */
static void
flush_done(struct xac_log *log)
{
    xac_assert(xac_lock_is_mine(&log->sh->flush));
    xac_lock_release(&log->sh->flush);
    wake_all(log->sh);
}

/*
 * start_held -- write what is appended and tell the kernel to begin; the flush lock is
 * held.  A failure shows in the poison, or again.
 */
static void
start_held(struct xac_log *log)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: stored under the flush lock.  acquire: pairs with xac_log_append. */
    uint64_t from = atomic_load_explicit(&sh->durable, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&sh->tail, memory_order_acquire);
    uint64_t number = xac_log_segment_of(from, sh->segment_bytes);
    int fd;

    xac_assert(xac_lock_is_mine(&sh->flush));
    xac_require(from <= to);
    log->started = from;
    /* acquire: pairs with set_poison.  Two segments are left to flush_held. */
    if (from == to || xac_log_segment_of(to - 1, sh->segment_bytes) != number
        || atomic_load_explicit(&sh->poisoned, memory_order_acquire) != 0)
        return;
    fd = xac_log_segment_fd(log, number);
    if (fd < 0 || write_segment(log, fd, from, to) != 0)
        return;
    log->started = to;
    xac_assert(log->started > from);
    note_written(sh, to);
    /* A hint that may fail: what matters is reported by the sync. */
    (void)xac_sys.sync_file_range(fd,
                                  (off_t)(XAC_SEGMENT_HEADER + from % sh->segment_bytes),
                                  (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
    gap_begin(&log->gap);
}

bool
xac_log_flush_start(struct xac_log *log)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed, all: guesses, see log.h. */
    uint64_t appended = atomic_load_explicit(&sh->appended, memory_order_relaxed);
    uint64_t flushed = atomic_load_explicit(&sh->flushed, memory_order_relaxed);
    enum xac_lock_result got;
    int cancel;

    xac_assert(!xac_lock_is_mine(&sh->flush));
    if (atomic_load_explicit(&sh->batch, memory_order_relaxed) > 1
        || appended - flushed != 1)
        return false;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    got = xac_lock_try(&sh->flush);
    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&sh->flush);
    if (got != XAC_LOCK_BUSY)
        start_held(log);
    (void)pthread_setcancelstate(cancel, NULL);
    return got != XAC_LOCK_BUSY;
}

/* prepare_ahead -- make what comes next, if half of what the last segment has is used or more. */
static void
prepare_ahead(struct xac_log *log)
{
    const struct xac_log_shared *sh = log->sh;
    /* relaxed: a hint; looked at again under the lock. */
    uint64_t prepared = atomic_load_explicit(&sh->prepared, memory_order_relaxed);
    uint64_t durable = atomic_load_explicit(&sh->durable, memory_order_relaxed);

    if (durable + ((prepared - 1) & (sh->segment_bytes - 1)) / 2 >= prepared)
        xac_log_segment_prepare_ahead(log);
}

/*
 * try_flush -- flush for all who wait, if nobody else is at it.
 *
 * ret  true if the lock was free.
 */
static bool
try_flush(struct xac_log *log, uint64_t lsn, int *rcp)
{
    struct xac_log_shared *sh = log->sh;
    enum xac_lock_result got;

    xac_assert(!xac_lock_is_mine(&sh->flush));
    got = xac_lock_try(&sh->flush);
    if (got == XAC_LOCK_BUSY)
        return false;
    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&sh->flush);
    /* relaxed: stored under the flush lock. */
    if (atomic_load_explicit(&sh->durable, memory_order_relaxed) < lsn) {
        /* Several commit: those that the last flush has woken are on their way to their next
           commit, and go first if they wait for this processor: this flush takes theirs, too. */
        if (atomic_load_explicit(&sh->batch, memory_order_relaxed) > 1)
            (void)sched_yield();
        *rcp = flush_held(log, false);
    }
    flush_done(log);
    if (*rcp == 0)
        prepare_ahead(log);
    return true;
}

/* wait_durable -- xac_log_wait_durable, cancellation disabled. */
static int
wait_durable(struct xac_log *log, uint64_t lsn)
{
    struct xac_log_shared *sh = log->sh;
    struct xac_watch watch = {.since_ns = 0};
    int rc = 0;

    xac_assert(!xac_lock_is_mine(&sh->flush));
    while (rc == 0) {
        uint32_t wakes = xac_wakes_read(&sh->wakes);
        /* acquire: pairs with set_poison; read before durable, which stands still once
           poisoned is set, so that a position already durable is found to be. */
        int error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);

        /* acquire: pairs with flush_held. */
        if (atomic_load_explicit(&sh->durable, memory_order_acquire) >= lsn)
            return 0;
        if (error != 0)
            return poisoned_error(error);
        if (!try_flush(log, lsn, &rc) && xac_wakes_is_announced(&sh->wakes, wakes)) {
            unsigned wait_ms = xac_wait_slice(RETRY_MS);

            if (wait_ms == 0)
                return ETIMEDOUT;
            xac_lock_watch(&sh->flush, &watch);
            xac_futex_wait(&sh->wakes, wakes, wait_ms);
            if (xac_lock_none_held())
                xac_signals_glance();
        }
    }
    return rc;
}

int
xac_log_wait_durable(struct xac_log *log, uint64_t lsn)
{
    int cancel;
    int rc;

    /* acquire: pairs with flush_held. */
    if (atomic_load_explicit(&log->sh->durable, memory_order_acquire) >= lsn)
        return 0;
    /* acquire: the caller knows of lsn, so tail is at least that. */
    xac_assert(atomic_load_explicit(&log->sh->tail, memory_order_acquire) >= lsn);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    rc = wait_durable(log, lsn);
    (void)pthread_setcancelstate(cancel, NULL);
    xac_assert(rc != 0
               || atomic_load_explicit(&log->sh->durable, memory_order_relaxed) >= lsn);
    return rc;
}

int
xac_log_wait_others(struct xac_log *log, uint64_t lsn, unsigned wait_ms)
{
    struct xac_log_shared *sh = log->sh;

    xac_assert(lsn <= atomic_load_explicit(&sh->tail, memory_order_relaxed));
    for (unsigned left = wait_ms;;) {
        uint32_t wakes = xac_wakes_read(&sh->wakes);
        /* acquire: pairs with set_poison and flush_held, as in wait_durable and in the same
           order. */
        int error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);
        /* acquire: pairs with flush_held. */
        uint64_t durable = atomic_load_explicit(&sh->durable, memory_order_acquire);

        if (durable >= lsn)
            return 0;
        if (error != 0)
            return poisoned_error(error);
        if (left < RETRY_MS)
            return XAC_ENOTDURABLE;
        if (xac_wakes_is_announced(&sh->wakes, wakes)) {
            xac_futex_wait(&sh->wakes, wakes, RETRY_MS);
            left -= RETRY_MS;
        }
    }
}

int
xac_log_sync(struct xac_log *log)
{
    xac_assert(log->sh != NULL);
    /* acquire: pairs with xac_log_append. */
    return xac_log_wait_durable(log, atomic_load_explicit(&log->sh->tail,
                                                          memory_order_acquire));
}

int
xac_log_wait_delayed(struct xac_log *log, uint32_t delay_ms)
{
    struct xac_log_shared *sh = log->sh;
    uint64_t last = atomic_load_explicit(&sh->flushed_ns, memory_order_relaxed);
    /* acquire: pairs with set_poison. */
    int error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);
    int cancel;
    int rc = 0;

    xac_assert(!xac_lock_is_mine(&sh->flush));
    if (error != 0)
        return poisoned_error(error);
    if (xac_clock_coarse_ns() < last + UINT64_C(1000000) * delay_ms)
        return 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    (void)try_flush(log, UINT64_MAX, &rc);
    (void)pthread_setcancelstate(cancel, NULL);
    return rc;
}

int
xac_log_flush_end(struct xac_log *log, uint64_t lsn)
{
    bool is_needed;
    int cancel;
    int rc = 0;

    xac_assert(xac_lock_is_mine(&log->sh->flush));
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    /* relaxed: stored under the flush lock, which is ours since xac_log_flush_start. */
    is_needed = atomic_load_explicit(&log->sh->durable, memory_order_relaxed) < lsn;
    if (is_needed) {
        gap_wait(&log->gap);
        rc = flush_held(log, true);
    }
    gap_end(&log->gap, is_needed && rc == 0);
    flush_done(log);
    if (rc == 0)
        prepare_ahead(log);
    (void)pthread_setcancelstate(cancel, NULL);
    xac_assert(!xac_lock_is_mine(&log->sh->flush));
    xac_assert(rc != 0
               || atomic_load_explicit(&log->sh->durable, memory_order_relaxed) >= lsn);
    return rc;
}

/* make_room -- xac_log_make_room, cancellation disabled. */
static int
make_room(struct xac_log *log, uint64_t bytes)
{
    struct xac_log_shared *sh = log->sh;

    for (;;) {
        /* acquire: pairs with set_poison. */
        int error = atomic_load_explicit(&sh->poisoned, memory_order_acquire);
        /* acquire: pairs with xac_log_append; others move it, so this is a guess. */
        uint64_t end = atomic_load_explicit(&sh->tail, memory_order_acquire) + bytes;
        int rc = 0;

        if (error != 0)
            return poisoned_error(error);
        if (xac_log_has_room(log, bytes))
            return 0;
        make_ready(log, bytes);
        /* relaxed: a guess too. */
        if (end > atomic_load_explicit(&sh->prepared, memory_order_relaxed))
            rc = xac_log_segment_prepare(log, end);
        if (rc == 0 && end > sh->start_lsn + sh->ring_bytes)
            rc = wait_durable(log, end - sh->ring_bytes);
        if (rc != 0)
            return rc;
    }
}

int
xac_log_make_room(struct xac_log *log, uint64_t bytes)
{
    int cancel;
    int rc;

    xac_assert(bytes <= log->sh->ring_bytes / 4);
    xac_assert(!xac_lock_is_mine(&log->sh->flush));
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    rc = make_room(log, bytes);
    (void)pthread_setcancelstate(cancel, NULL);
    return rc;
}
