/* SPDX-License-Identifier: MIT */
/*
 * scenarios.h -- programs worth trying in all orders; see search.h for the steps.
 */
#ifndef XAC_TEST_SCENARIOS_H
#define XAC_TEST_SCENARIOS_H

#include "search.h"

/* Ends with one that has no name. */
extern const struct scenario scenarios[];

#endif /* XAC_TEST_SCENARIOS_H */
