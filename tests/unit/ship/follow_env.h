/* SPDX-License-Identifier: MIT */
/*
 * follow_env.h -- what the test programs of followers share: an environment with writers, and a board on
 * which they and the follower tell each other how far they are.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_FOLLOW_ENV_H
#define XAC_TEST_FOLLOW_ENV_H

#include <stdlib.h>
#include <string.h>

#include "tests/common/env.h"
#include "base/digest.h"
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

/* ---- What the follower makes of it ---------------------------------------------------- */

/* A file redone from what was handed out. */
struct image {
    uint8_t *page;
    uint64_t blocks, commits, datafiles, generations;
    uint64_t digest; /* of all blocks, in their order                                 */
    uint64_t end;
    uint32_t generation;
};

static inline uint8_t *
image_page(struct image *im, uint64_t page)
{
    must(page < PAGES);
    return im->page + page * env_page();
}

static inline void
redo_record(struct image *im, const struct xac_record *rec)
{
    const struct xac_xdata *data = (const struct xac_xdata *)(const void *)rec;
    const struct xac_xcopy *copy = (const struct xac_xcopy *)(const void *)rec;
    uint8_t source[65536];

    if (rec->type == XAC_XDATA)
        must(xac_apply_page(data, image_page(im, data->page), env_page()));
    if (rec->type == XAC_XCOPY) {
        memcpy(source, image_page(im, copy->source_page), env_page());
        must(xac_apply_copy(copy, source, image_page(im, copy->page), env_page()));
    }
}

/* redo_data -- the records of a data file. */
static inline void
redo_data(struct image *im, const struct xac_followed *got)
{
    uint8_t *bytes = (uint8_t *)malloc(got->data->length);
    size_t n, at = 0;

    must_ok(xac_read_full(got->datafd, bytes, got->data->length, 0, &n));
    must_eq(n, got->data->length);
    while (at < n) {
        const struct xac_record *rec =
            (const struct xac_record *)(const void *)(bytes + at);

        must(xac_record_ok(rec, n - at));
        redo_record(im, rec);
        at += rec->length;
    }
    im->datafiles++;
    free(bytes);
}

static inline uint64_t
chain_digest(uint64_t before, const struct xac_block *blk)
{
    uint64_t two[2] = {before, xac_xxh64(blk, blk->length)};

    return xac_xxh64(two, sizeof two);
}

/* redo -- one block, which must be the next. */
static inline void
redo(struct image *im, const struct xac_followed *got)
{
    const struct xac_block *blk = got->blk;
    const struct xac_record *rec = NULL;

    if (im->generation == blk->generation) {
        must_eq(blk->lsn, im->end);
    } else {
        must(blk->generation > im->generation);
        must(blk->lsn >= im->end && blk->lsn % XAC_LSN_GENERATION_ALIGN == 0);
        im->generations++;
    }
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XDATA || rec->type == XAC_XCOPY)
            redo_record(im, rec);
        im->commits += rec->type == XAC_XCOMMIT;
    }
    must((got->data != NULL) == (got->datafd >= 0));
    if (got->data != NULL)
        redo_data(im, got);
    im->generation = blk->generation;
    im->end = blk->lsn + blk->length;
    im->digest = chain_digest(im->digest, blk);
    im->blocks++;
}

static inline void
image_init(struct image *im)
{
    *im = (struct image){.page = (uint8_t *)calloc(PAGES, env_page())};
}

/* drain -- all there is now; ret blocks. */
static inline uint64_t
drain(struct xac_source *s, struct image *im)
{
    struct xac_followed got;
    uint64_t n = 0;

    for (;;) {
        must_ok(xac_source_next(s, &got));
        if (got.blk == NULL)
            return n;
        redo(im, &got);
        n++;
    }
}

/* must_be_file -- the image is what the file holds, while nobody is attached and nothing is left to
   redo. */
static inline void
must_be_file(const struct image *im)
{
    uint8_t *file = (uint8_t *)calloc(PAGES, env_page());

    file_read(ENV_FILE, 0, file, PAGES * env_page());
    for (size_t i = 0; i < PAGES; i++)
        must(memcmp(file + i * env_page(), im->page + i * env_page(), env_page()) == 0);
    free(file);
}

#endif /* XAC_TEST_FOLLOW_ENV_H */
