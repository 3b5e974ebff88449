/* SPDX-License-Identifier: MIT */
/*
 * parties.h -- the table of xParticipants() as text, for xstat.
 */
#ifndef XAC_PARTIES_H
#define XAC_PARTIES_H

#include <stdio.h>

#include "look.h"

/* parties_print -- a heading with something in front of it, and a line for each thread. */
void parties_print(FILE *f, const struct look *look, const char *front);

#endif /* XAC_PARTIES_H */
