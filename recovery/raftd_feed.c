/* SPDX-License-Identifier: MIT */
/*
 * raftd_feed.c -- see raftd_feed.h.
 */
#include <config.h>

#include "raftd_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/sys.h"
#include "log/block.h"
#include "tool.h"

/* How long to sleep when there is no log, before looking whether to stop. */
#define LOOK_MS 100

/* How long to wait between looks whether Raft's log has been shortened. */
#define LATE_MS 5

/* ---- Proposing ---------------------------------------------------------------------- */

/* is_stopped -- acquire: pairs with the release in raftd_feed_stop. */
static bool
is_stopped(const struct raftd_feed *f)
{
    return atomic_load_explicit(&f->is_stopped, memory_order_acquire);
}

/* done -- an entry is not under way any more; by Raft's thread. */
static void
done(void *arg, size_t n)
{
    struct raftd_feed *f = (struct raftd_feed *)arg;

    (void)pthread_mutex_lock(&f->lock);
    f->n_under_way--;
    f->bytes_under_way -= n;
    (void)pthread_cond_signal(&f->fewer);
    (void)pthread_mutex_unlock(&f->lock);
}

/* is_crowded -- as many are under way as may be (2). */
static bool
is_crowded(const struct raftd_feed *f)
{
    return f->n_under_way >= RAFTD_FEED_ENTRIES || f->bytes_under_way >= RAFTD_FEED_BYTES;
}

/* propose -- an entry that has its body; wait until fewer are under way. */
static int
propose(struct raftd_feed *f, void *entry, enum raftd_kind kind, size_t n)
{
    struct raftd_entry e = {.kind = kind,
                            .generation = f->begin.generation,
                            .lsn = kind == RAFTD_BATCH ? f->lsn : f->next,
                            .n = n};
    size_t bytes = raftd_entry_bytes(n);
    int rc = ECANCELED;

    memcpy(e.nonce, f->begin.nonce, sizeof e.nonce);
    raftd_entry_seal(entry, &e);
    (void)pthread_mutex_lock(&f->lock);
    while (is_crowded(f) && !is_stopped(f))
        (void)pthread_cond_wait(&f->fewer, &f->lock);
    if (!is_stopped(f)) {
        f->n_under_way++;
        f->bytes_under_way += bytes;
        rc = 0;
    }
    (void)pthread_mutex_unlock(&f->lock);
    if (rc == 0)
        rc = raftd_raft_propose(f->raft, f->term, entry, bytes,
                                (struct raftd_proposer){.arg = f, .done = done});
    if (rc != 0)
        raftd_raft_free(entry);
    return rc;
}

/* flush -- the blocks that have gathered. */
static int
flush(struct raftd_feed *f)
{
    void *entry = f->entry;
    size_t n = f->n;

    f->entry = NULL;
    f->n = 0;
    return n > 0 ? propose(f, entry, RAFTD_BATCH, n) : 0;
}

/* calm -- nothing is under way any more, and Raft's log has been shortened if that is due (4), (5). */
static int
calm(struct raftd_feed *f)
{
    int rc = flush(f);

    (void)pthread_mutex_lock(&f->lock);
    while (rc == 0 && f->n_under_way > 0 && !is_stopped(f))
        (void)pthread_cond_wait(&f->fewer, &f->lock);
    (void)pthread_mutex_unlock(&f->lock);
    while (rc == 0 && raftd_raft_is_late(f->raft) && !is_stopped(f))
        (void)poll(NULL, 0, LATE_MS);
    return rc;
}

/* ---- What is not in blocks ---------------------------------------------------------- */

/* propose_file -- the bytes of a file, in pieces. */
static int
propose_file(struct raftd_feed *f, enum raftd_kind kind, int fd, uint64_t what,
             uint64_t length)
{
    struct xac_raftd_piece head = {.what = what};
    int rc = 0;

    do {
        size_t want = length - head.offset < RAFTD_FEED_BATCH
                          ? (size_t)(length - head.offset)
                          : RAFTD_FEED_BATCH;
        uint8_t *entry =
            (uint8_t *)raftd_raft_buffer(raftd_entry_bytes(sizeof head + want));
        uint8_t *body;
        size_t got = 0;

        if (entry == NULL)
            return xac_err(ENOMEM, "entry of Raft's log");
        body = (uint8_t *)raftd_entry_body(entry);
        memcpy(body, &head, sizeof head);
        rc = xac_read_full(fd, body + sizeof head, want, head.offset, &got);
        if (rc == 0 && got < want)
            rc = EIO; /* it does not become shorter */
        if (rc != 0) {
            raftd_raft_free(entry);
            return xac_err(rc, "%s",
                           kind == RAFTD_DATA ? "data file" : XAC_ADDRESSES_NAME);
        }
        rc = propose(f, entry, kind, sizeof head + want);
        head.offset += want;
    } while (rc == 0 && head.offset < length);
    return rc;
}

/* is_same -- the file as it was proposed last. */
static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec
           && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* propose_addresses -- if they have changed. */
static int
propose_addresses(struct raftd_feed *f)
{
    struct stat st;
    int rc, fd = xac_sys.openat(f->source.dirfd, XAC_ADDRESSES_NAME,
                                O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", XAC_ADDRESSES_NAME);
    rc = xac_sys.fstat(fd, &st) == 0 ? 0 : errno;
    if (rc == 0 && !is_same(&st, &f->addresses)) {
        rc = calm(f);
        if (rc == 0)
            rc = propose_file(f, RAFTD_NOTE, fd, (uint64_t)st.st_size,
                              (uint64_t)st.st_size);
        if (rc == 0)
            f->addresses = st;
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* ---- Blocks ------------------------------------------------------------------------- */

/* names_file -- is the block about a file, which may have got an address? */
static bool
names_file(const struct xac_block *blk)
{
    const struct xac_record *rec = xac_record_next(blk, NULL);

    xac_assert(rec != NULL);
    return rec->type == XAC_XFILE;
}

/* add -- a block to the entry that is being filled (3). */
static int
add(struct raftd_feed *f, const struct xac_block *blk)
{
    size_t room = blk->length > RAFTD_FEED_BATCH ? blk->length : RAFTD_FEED_BATCH;
    int rc = f->n + blk->length > RAFTD_FEED_BATCH ? flush(f) : 0;

    if (rc != 0)
        return rc;
    if (f->entry == NULL) {
        f->entry = (uint8_t *)raftd_raft_buffer(raftd_entry_bytes(room));
        f->lsn = blk->lsn;
    }
    if (f->entry == NULL)
        return xac_err(ENOMEM, "entry of Raft's log");
    memcpy((uint8_t *)raftd_entry_body(f->entry) + f->n, blk, blk->length);
    f->n += blk->length;
    f->next = blk->lsn + blk->length;
    return 0;
}

/* take -- a block that is durable. */
static int
take(struct raftd_feed *f, const struct xac_followed *got)
{
    int rc = 0;

    xac_assert(got->blk->lsn == f->next);
    if (got->blk->generation != f->begin.generation)
        return ECANCELED; /* this node leads no more */
    if (raftd_raft_is_late(f->raft))
        rc = calm(f);
    if (rc == 0 && names_file(got->blk))
        rc = propose_addresses(f);
    if (rc == 0 && got->data != NULL)
        rc = calm(f);
    if (rc == 0 && got->data != NULL)
        rc = propose_file(f, RAFTD_DATA, got->datafd, got->data->serial,
                          got->data->length);
    return rc == 0 ? add(f, got->blk) : rc;
}

/* run -- the thread. */
static void *
run(void *arg)
{
    struct raftd_feed *f = (struct raftd_feed *)arg;
    struct xac_followed got;
    int rc = propose_addresses(f);

    while (rc == 0 && !is_stopped(f)) {
        rc = xac_source_next(&f->source, &got);
        if (rc == 0 && got.blk != NULL)
            rc = take(f, &got);
        else if (rc == 0)
            rc = flush(f);
        if (rc == 0 && got.blk == NULL)
            xac_source_wait(&f->source, LOOK_MS);
    }
    if (rc != 0 && rc != ECANCELED && !is_stopped(f)) {
        (void)tool_fail(f->source.dir, rc);
        (void)raftd_raft_break(f->raft, f->term);
    }
    return NULL;
}

/* ---- Life --------------------------------------------------------------------------- */

void
raftd_feed_init(struct raftd_feed *f)
{
    *f = (struct raftd_feed){.is_running = false};
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->fewer, NULL);
}

void
raftd_feed_fini(struct raftd_feed *f)
{
    xac_assert(!f->is_running);
    (void)pthread_cond_destroy(&f->fewer);
    (void)pthread_mutex_destroy(&f->lock);
}

int
raftd_feed_start(struct raftd_feed *f, const char *dir,
                 const struct raftd_accepted *begin, struct raftd_raft *raft,
                 uint64_t term)
{
    int rc;

    xac_assert(!f->is_running);
    f->raft = raft;
    f->term = term;
    f->begin = *begin;
    f->next = begin->start;
    f->addresses = (struct stat){.st_ino = 0};
    /* relaxed: pthread_create() comes behind. */
    atomic_store_explicit(&f->is_stopped, false, memory_order_relaxed);
    rc = xac_source_open(&f->source, dir);
    xac_source_go_ahead(&f->source);
    if (rc == 0)
        rc = xac_source_seek(&f->source, begin->generation, begin->start,
                             begin->segment_bytes);
    if (rc == 0)
        rc = pthread_create(&f->thread, NULL, run, f);
    f->is_running = rc == 0;
    if (rc != 0)
        xac_source_close(&f->source);
    return rc;
}

void
raftd_feed_stop(struct raftd_feed *f)
{
    if (!f->is_running)
        return;
    (void)pthread_mutex_lock(&f->lock);
    /* release: pairs with the acquire in is_stopped. */
    atomic_store_explicit(&f->is_stopped, true, memory_order_release);
    (void)pthread_cond_signal(&f->fewer);
    (void)pthread_mutex_unlock(&f->lock);
    (void)pthread_join(f->thread, NULL);
    xac_source_close(&f->source);
    raftd_raft_free(f->entry);
    f->entry = NULL;
    f->n = 0;
    f->is_running = false;
}
