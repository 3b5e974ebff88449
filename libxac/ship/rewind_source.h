/* SPDX-License-Identifier: MIT */
/*
 * rewind_source.h -- what a source answers to an environment that is to be rewound (wire_format.h).
 *
 * WHAT      Says which files and generations it has; sends pages of its files as they are now.
 * NOT HERE  The slot, the log, and the order of questions and answers (send.h).
 * LOCK      None.  The files may be written meanwhile: a page that is sent holds all that stands before the source's redo
 *           position, and nothing from behind its durable end as it is afterwards.
 * THREADS   one.
 *
 * INVARIANT
 *   (1) Only files that the environment has mapped are sent, and those that lay outside where it was copied from; no
 *       others, whatever path is asked for.
 */
#ifndef XAC_REWIND_SOURCE_H
#define XAC_REWIND_SOURCE_H

#include <stdint.h>

#include "log/lineage.h"
#include "shared/address_list.h"
#include "ship/source.h"
#include "ship/wire.h"

/* xac_rewind_list_files -- FILE for each file of (1) that is there; ret 0 or an error. */
int xac_rewind_list_files(struct xac_wire *w, int dirfd,
                          const struct xac_address_list *known);

/* xac_rewind_list_lines -- LINES. */
int xac_rewind_list_lines(struct xac_wire *w, const struct xac_lineage *l);

/* xac_rewind_answer -- a WANT; ret 0; XAC_EDAMAGED: it is not right; errno. */
int xac_rewind_answer(struct xac_wire *w, int dirfd, const struct xac_address_list *known,
                      const struct xac_wire_frame *f);

/*
 * xac_rewind_look -- is the log there from an LSN on, and where does it end now?
 *
 * out  endp  behind its last block
 * ret  0; XAC_ECUTOFF and others of xac_source_seek(), xac_source_next().
 */
int xac_rewind_look(const char *dir, const struct xac_lineage_line *line, uint64_t lsn,
                    uint64_t *endp);

#endif /* XAC_REWIND_SOURCE_H */
