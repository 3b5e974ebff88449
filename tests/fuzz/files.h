/* SPDX-License-Identifier: MIT */
/*
 * files.h -- the files of an environment in memory, damaged by the bytes of an input.
 *
 * The environment is made by hand (synth.h): several segments, checkpoints, data files, mapped
 * files, checksums of pages.  Damage is to bytes, or to a field of a piece of the format: a
 * master slot, a segment's header, a block, an entry of checksums.  Behind that, checksums
 * can be made right again, so that the damage is met by what reads behind them.
 */
#ifndef XAC_TEST_FUZZ_FILES_H
#define XAC_TEST_FUZZ_FILES_H

#include "log/log_format.h"
#include "target.h"

/* Pieces of the format; they make a mask. */
enum {
    FUZZ_MASTER = 1,
    FUZZ_SEGMENT = 2,
    FUZZ_BLOCK = 4,
    FUZZ_SUMS = 8,  /* header                                                          */
    FUZZ_ENTRY = 16 /* of checksums                                                    */
};

/* fuzz_files_dir -- the environment's directory, below the scratch directory; not owned. */
int fuzz_files_dir(void);

/*
 * fuzz_files_damage -- lay the files out anew, damaged by what the input says.
 *
 * in   pieces  kinds of pieces to damage and to seal
 */
void fuzz_files_damage(struct fuzz_input *in, unsigned pieces);

/* fuzz_files_master -- the record as it is without damage. */
const struct xac_master_slot *fuzz_files_master(void);

#endif /* XAC_TEST_FUZZ_FILES_H */
