/* SPDX-License-Identifier: MIT */
/*
 * participants.h -- the results of xParticipants(): what each participant does and waits for.
 *
 * WHAT      Reads the control region, which may be mapped read-only (peek.h), and /proc.
 * THREADS   any; takes no lock, so what it reads may change meanwhile: a set of another process
 *           is walked with care, and counts only if its transaction is still the same one behind.
 */
#ifndef XAC_PARTICIPANTS_H
#define XAC_PARTICIPANTS_H

#include <stddef.h>

#include <xac.h>

struct xac_env;

/*
 * xac_participants_read -- all rows.
 *
 * out  rowsp  *np of them, to be freed; of an environment that is frozen there is none.
 * ret  0 or ENOMEM.
 */
int xac_participants_read(const struct xac_env *env, struct xac_party **rowsp,
                          size_t *np);

#endif /* XAC_PARTICIPANTS_H */
