/* SPDX-License-Identifier: MIT */
/*
 * synth.h -- environments made by hand: logs written block by block, without the library's
 * running half, so that a recovery can be shown any log one likes.
 *
 * A model of every mapped file is kept in memory; synth_same() compares.  Not thread-safe.
 */
#ifndef XAC_TEST_SYNTH_H
#define XAC_TEST_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/block.h"
#include "log/log_format.h"

#define SYNTH_FILES  4
#define SYNTH_BLOCKS 4096

struct synth_file {
    char path[64];
    uint32_t id;
    uint64_t pages;
    uint8_t *model;       /* after the last transaction                                */
    uint64_t *full_since; /* begin of the checkpoint that each page's full image is in */
    bool *is_fresh;       /* full image since the last checkpoint began                */
};

struct synth {
    char dir[128];
    int dirfd;
    struct xac_master_slot master;
    uint32_t page_size;
    uint64_t begin; /* of the last checkpoint, or the start of the log                 */
    uint64_t tail;
    uint64_t durable;
    uint64_t commit;
    int checksum;
    uint64_t block_lsn[SYNTH_BLOCKS]; /* of each block                                 */
    size_t n_blocks;
    struct synth_file file[SYNTH_FILES];
    size_t n_files;
    struct xac_builder b; /* block being built                                         */
    uint64_t random;
    bool born;             /* the log says when files were born                        */
    uint64_t device_shift; /* device numbers in the log are this much too high         */
    bool copies; /* pages also get what other pages hold: XCOPY                   */
    uint64_t serial;
    uint64_t b_records;
};

/* A fresh directory, a new environment in it. */
void synth_open(struct synth *s, uint32_t page_size, uint64_t segment_bytes);
void synth_close(struct synth *s);

/* Random numbers, the same in every run with the same XAC_SEED. */
uint64_t synth_seed(void);
uint64_t synth_random(struct synth *s, uint64_t below);

/* A file of zeros, and its XFILE block; ret index. */
size_t synth_file(struct synth *s, const char *path, uint64_t pages);

/* What lies in the directory becomes what version 4 of the format wrote; not if `born`. */
void synth_make_version_4(struct synth *s);

/* The XFILE blocks of all files once more, in a new generation of the log. */
void synth_refile(struct synth *s);

/* A transaction: begin, change pages (each once), commit. */
void synth_begin(struct synth *s);
void synth_change(struct synth *s, size_t file, uint64_t page);
void synth_commit(struct synth *s);
/* When a commit says that it was made: 10 ms after the one before. */
static inline uint64_t
synth_time(uint64_t commit)
{
    return UINT64_C(1700000000000000000) + commit * 10000000;
}
/* The same with its data in a data file; ret its serial. */
uint64_t synth_commit_large(struct synth *s);

/* n transactions of 1 to 3 random changes each. */
void synth_transactions(struct synth *s, size_t n);

/* Everything so far has been synced, as later blocks will say. */
void synth_sync(struct synth *s);

/* A checkpoint; is_open decides which pages stay open.  `between` transactions come
   between BEGIN and END. */
void synth_checkpoint(struct synth *s, bool (*is_open)(size_t file, uint64_t page),
                      size_t between);

/* Seal the block being built, append it; ret its LSN. */
uint64_t synth_append(struct synth *s, bool is_commit);
/* Write bytes of the log where they belong. */
void synth_write(struct synth *s, uint64_t lsn, const void *p, size_t n);
/* Read them. */
void synth_read(struct synth *s, uint64_t lsn, void *p, size_t n);

/* Write the master record as it stands in s->master. */
void synth_master(struct synth *s);

/* Compare a file with the model. */
bool synth_same(const struct synth *s, size_t file);
/* Copies of the models. */
void synth_model_save(const struct synth *s, uint8_t *copy[SYNTH_FILES]);
bool synth_same_as(const struct synth *s, uint8_t *const copy[SYNTH_FILES]);
void synth_model_free(uint8_t *copy[SYNTH_FILES]);

/* Whole files. */
void synth_put(const struct synth *s, const char *name, const void *p, size_t n);
uint8_t *synth_get(const struct synth *s, const char *name, size_t *np);
void synth_flip(const struct synth *s, const char *name, uint64_t offset, uint8_t mask);

/* A picture of all files of the directory: names, lengths, bytes. */
struct synth_picture {
    size_t n;
    char (*name)[64];
    uint8_t **bytes;
    size_t *length;
};
void synth_picture_take(const struct synth *s, struct synth_picture *p);
bool synth_picture_same(const struct synth *s, const struct synth_picture *p);
void synth_picture_restore(const struct synth *s, const struct synth_picture *p);
void synth_picture_free(struct synth_picture *p);

#endif /* XAC_TEST_SYNTH_H */
