/* SPDX-License-Identifier: MIT */
/*
 * mutate.h -- damage to the files of an environment, by choices that come from a seed or
 * from the bytes of a fuzzer; and what doc/formats.md says can be known afterwards.
 *
 * The reader here (mutate_known) was written from that page and shares no code with the
 * library's.
 */
#ifndef XAC_TEST_MUTATE_H
#define XAC_TEST_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where choices come from. */
struct choices {
    uint64_t seed;       /* used when `data` is NULL                                   */
    const uint8_t *data; /* used up byte by byte; zeros then                           */
    size_t left;
};

/* 0 <= result < n. */
uint64_t choose(struct choices *c, uint64_t n);

enum mutation {
    MUTATE_FLIP,    /* some bits                                                      */
    MUTATE_FILL,    /* a range: zeros, ones, noise                                    */
    MUTATE_CUT,     /* a file is shorter, or longer                                   */
    MUTATE_REMOVE,  /* a file is missing                                              */
    MUTATE_SWAP,    /* two files have each other's name                               */
    MUTATE_COPY,    /* a range of one file is in another place, or file               */
    MUTATE_FOREIGN, /* a file is that of another environment                          */
    MUTATE_BLOCK,   /* a block of the log is repeated elsewhere                       */
    MUTATE_RESEAL,  /* a changed block of the log, its checksums made right           */
    MUTATE_MASTER,  /* a changed master record, its checksum made right               */
    MUTATIONS
};

extern const char *const mutation_name[MUTATIONS];

/* The bytes of the files of an environment directory. */
struct blob {
    char name[64];
    uint8_t *bytes;
    size_t size;
};

struct blobs {
    struct blob *blob;
    size_t n;
};

/* All files in a directory but `except`. */
struct blobs blobs_read(const char *dir, const char *except);
void blobs_free(struct blobs *b);

/*
 * mutate -- change the files in a directory.
 *
 * in   was      the files as they are
 * in   foreign  files of another environment
 * ret  what was done; `words` gets it in detail.
 */
enum mutation mutate(const char *dir, const struct blobs *was,
                     const struct blobs *foreign, struct choices *c, char *words,
                     size_t words_size);

/* What can be known of the log in a directory. */
struct known {
    bool has_master;
    uint32_t generation;
    uint64_t redo_lsn;
    uint64_t segment_bytes;
    uint64_t synced_lsn; /* everything below is known to have been synced               */
    uint64_t
        last_begin; /* of the last block with an XCHECKPT_BEGIN, 0 if there is none */
    bool has_newer; /* there are blocks of a generation newer than the record's    */
    uint64_t *end;  /* ends of the blocks from redo_lsn on, one after the other    */
    size_t n_ends;
};

/* mutate_known -- read a directory's log; k->end is to be freed. */
void mutate_known(const char *dir, struct known *k);

/* mutate_cut_log -- zeros from an LSN on. */
void mutate_cut_log(const char *dir, uint64_t lsn, uint64_t segment_bytes);

#endif /* XAC_TEST_MUTATE_H */
