/* SPDX-License-Identifier: MIT */
/*
 * follow_env.h -- what the test programs of followers share: an environment with writers, and a board on
 * which they and the follower tell each other how far they are.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_FOLLOW_ENV_H
#define XAC_TEST_FOLLOW_ENV_H

#include "tests/common/env.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/block.h"
#include "ship/source.h"

#define PAGES   96
#define WRITERS 3
#define KIB     ((uint64_t)1024)

/* What writers and follower tell each other. */
struct board {
    _Atomic uint64_t acknowledged; /* commits                                         */
    _Atomic uint64_t go, done, at; /* the meaning is the test's                       */
    _Atomic uint64_t generation, lsn, commits; /* a cursor that outlives its process   */
    uint64_t segment_bytes, cursor_segment_bytes;
    uint64_t seed, n;
    bool large, kept;
};

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
    board->segment_bytes = 64 * KIB;
    board->kept = true;
    env_without_frames("the log is filled by checkpoints for want of them");
}

/* ---- Writers ------------------------------------------------------------------------ */

/* attach -- with the board's options. */
static uint64_t *
attach(void)
{
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, board->kept ? 0 : 1));
    return (uint64_t *)env_attach(DURABLE, PAGES);
}

/* change -- one transaction of `n` pages; ret is it committed? */
static inline bool
change(uint64_t *x, uint64_t *seed, uint64_t n)
{
    int rc;

    must_ok(xbegin());
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *page = env_cell(x, rnd_below(seed, PAGES));
        size_t words = env_page() / 8;

        /* A large one writes whole pages. */
        for (size_t k = 0; k < (n > 8 ? words : 4); k++)
            page[n > 8 ? k : rnd_below(seed, words)] = rnd_next(seed);
    }
    rc = xend();
    if (rc != COMMITTED)
        must_rc(rc, ABORTED);
    if (rc == COMMITTED)
        word_add(&board->acknowledged, 1);
    return rc == COMMITTED;
}

/* begin -- follow from the very first block of the environment. */
static inline void
begin(struct xac_source *s)
{
    must_ok(xac_source_open(s, ENV_DIR));
    must_ok(xac_source_seek(s, 1, XAC_LSN_FIRST, board->cursor_segment_bytes));
}

#endif /* XAC_TEST_FOLLOW_ENV_H */
