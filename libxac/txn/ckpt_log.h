/* SPDX-License-Identifier: MIT */
/*
 * ckpt_log.h -- log blocks of checkpoints, and those that concern files.
 *
 * LOCK      They take publish; the caller of xac_ckpt_log_end holds the checkpoint lock.
 */
#ifndef XAC_CKPT_LOG_H
#define XAC_CKPT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xac_builder;
struct xac_env;

/*
 * xac_ckpt_log_put -- close and append a block.
 *
 * in   ckpt_begins  the block is XCHECKPT_BEGIN: full images from here on
 * out  lsnp, endp   where it stands and where it ends
 * ret  0 or an error.
 */
int xac_ckpt_log_put(struct xac_env *env, struct xac_builder *b, bool ckpt_begins,
                     uint64_t *lsnp, uint64_t *endp);

/* The contents of XCHECKPT_END. */
struct xac_ckpt_end {
    uint64_t begin_lsn, redo_lsn;
    const uint32_t *file; /* ids of those to be named                                  */
    size_t n_files;
};

/*
 * xac_ckpt_log_end -- append XCHECKPT_END with all files, in as many blocks as are needed.
 *
 * out  lsnp, endp  of the last block, which has XCHECKPT_END
 * ret  0 or an error.
 */
int xac_ckpt_log_end(struct xac_env *env, const struct xac_ckpt_end *what, uint64_t *lsnp,
                     uint64_t *endp);

/*
 * xac_checkpoint_log_file -- append an XFILE block and wait until it is durable; does nothing in
 * an environment that is not durable.  ret 0 or an error.
 */
int xac_checkpoint_log_file(struct xac_env *env, uint32_t file, uint64_t length);

/* xac_checkpoint_log_forget -- append an XFORGET block, not synced; likewise. */
int xac_checkpoint_log_forget(struct xac_env *env, uint32_t file);

#endif /* XAC_CKPT_LOG_H */
