/* SPDX-License-Identifier: MIT */
/*
 * ckpt_shipped.h -- a checkpoint of a standby, which appends nothing to the log.
 *
 * WHAT      What the source's log says in the place of steps m and q (ckpt_steps.h), and what comes out in the
 *           place of r.
 * NOT HERE  The master record: the standby moves it (recovery/standby_redo.h).
 * OWNER     The caller of xac_checkpoint_redone().
 *
 * INVARIANT
 *   (1) redo_lsn <= begin_lsn.
 */
#ifndef XAC_CKPT_SHIPPED_H
#define XAC_CKPT_SHIPPED_H

#include <stdint.h>

struct xac_ckpt_shipped {
    uint64_t begin_lsn; /* all before it is published                                  */
    /* In: redo may begin here if no reader holds a page back.  Out: here, or before. */
    uint64_t redo_lsn;
};

#endif /* XAC_CKPT_SHIPPED_H */
