/* SPDX-License-Identifier: MIT */
/*
 * standby_pump.h -- what the test programs of standbys share that move blocks from a source to a standby in one
 * process: the pump.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_STANDBY_PUMP_H
#define XAC_TEST_STANDBY_PUMP_H

#include "tests/unit/ship/standby_env.h"
#include "recovery/standby.h"
#include "recovery/standby_redo.h"
#include "ship/source.h"

/* Where the standby lies. */
static const char *standby_dir = COPY;

struct pump {
    int dirfd, lockfd;
    struct xac_standby *s;
    struct xac_source source;
    uint32_t generation;
    uint64_t seed;
};

/* standby_open -- as a receiver does, under the gate, which it keeps: without readers. */
static inline int
standby_open(int dirfd, struct xac_standby **sp, int *lockfdp)
{
    int rc = xac_standby_lock(dirfd, standby_dir, lockfdp);

    if (rc == 0)
        rc = xac_standby_start(dirfd, standby_dir, sp);
    if (rc != 0 && *lockfdp >= 0)
        (void)close(*lockfdp);
    return rc;
}

/* pump_open -- ret an error of the standby. */
static inline int
pump_open(struct pump *p)
{
    struct xac_standby_place at;
    int rc;

    p->seed = env_seed() + board->seed;
    p->dirfd = open(standby_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(p->dirfd >= 0);
    rc = standby_open(p->dirfd, &p->s, &p->lockfd);
    if (rc != 0) {
        (void)close(p->dirfd);
        return rc;
    }
    xac_standby_where(p->s, &at);
    p->generation = at.line.generation;
    must_ok(xac_source_open(&p->source, ENV_DIR));
    must_ok(xac_source_seek(&p->source, at.line.generation, at.durable,
                            at.line.segment_bytes));
    return 0;
}

static inline void
pump_close(struct pump *p)
{
    xac_standby_close(p->s);
    (void)close(p->lockfd);
    xac_source_close(&p->source);
    (void)close(p->dirfd);
}

/* pump_data -- the data file of a block. */
static inline int
pump_data(struct pump *p, const struct xac_followed *got)
{
    static uint8_t piece[5000];
    uint64_t at = 0;
    size_t n = 1;
    int rc = 0;

    while (rc == 0 && at < got->data->length) {
        must(pread(got->datafd, piece, sizeof piece, (off_t)at) > 0);
        n = got->data->length - at < sizeof piece ? got->data->length - at : sizeof piece;
        rc = xac_standby_data(p->s, got->data->serial, at, piece, n);
        at += n;
    }
    return rc;
}

/* pump_turn -- to the generation of a block. */
static inline int
pump_turn(struct pump *p, const struct xac_block *blk)
{
    struct xac_lineage_line line;

    must_ok(xac_source_line(&p->source, blk->generation, &line));
    must_eq(line.generation, blk->generation);
    p->generation = blk->generation;
    return xac_standby_turn(p->s, &line);
}

/* acknowledge -- what has been taken is durable: the judge must find it. */
static inline int
acknowledge(struct pump *p, uint64_t commits)
{
    int rc = xac_standby_sync(p->s);

    if (rc == 0)
        word_store(&board->acknowledged, commits);
    return rc == 0 && rnd_below(&p->seed, 3) > 0 ? xac_standby_apply(p->s) : rc;
}

/* commits_of -- 1 if it is a transaction. */
static inline uint64_t
commits_of(const struct xac_block *blk)
{
    return xac_block_commit(blk) != NULL;
}

/* must_be_told_from_damage -- a block that has been written: if it says that more had been synced than is here, the mark
   counts. */
static inline void
must_be_told_from_damage(const struct pump *p, uint64_t durable)
{
    struct xac_standby_place at;

    xac_standby_where(p->s, &at);
    must(p->s->log.received.fd >= 0 || at.durable >= durable);
}

/* pump -- blocks, until there are no more or `most`; ret an error.  *takenp counts
   transactions. */
static inline int
pump(struct pump *p, uint64_t most, uint64_t *takenp)
{
    struct xac_followed got;
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < most; i++) {
        rc = xac_source_next(&p->source, &got);
        if (rc != 0 || got.blk == NULL)
            break;
        if (got.blk->generation != p->generation)
            rc = pump_turn(p, got.blk);
        if (rc == 0 && got.data != NULL)
            rc = pump_data(p, &got);
        if (rc == 0)
            rc = xac_standby_take(p->s, got.blk, got.blk->length);
        if (rc == 0)
            must_be_told_from_damage(p, got.blk->durable);
        *takenp += rc == 0 ? commits_of(got.blk) : 0;
        if (rc == 0 && (rnd_below(&p->seed, 4) == 0 || xac_standby_is_full(p->s)))
            rc = acknowledge(p, *takenp);
    }
    return rc;
}

/* make_copy -- an environment with transactions, and a copy of it that more have followed. */
static inline void
make_copy(uint64_t before, uint64_t after)
{
    write_n(before);
    board->backup_first = true;
    write_n(after);
}

/* follow_on -- all there is, with the standby opened anew; ret transactions taken. */
static inline uint64_t
follow_on(void)
{
    uint64_t taken = 0;
    struct pump p;

    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_ok(xac_standby_rest(p.s));
    pump_close(&p);
    return taken;
}

#endif /* XAC_TEST_STANDBY_PUMP_H */
