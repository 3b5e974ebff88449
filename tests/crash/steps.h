/* SPDX-License-Identifier: MIT */
/*
 * steps.h -- the kill points of the library (xac_kill_point), for check_steps.c.
 */
#ifndef XAC_TEST_STEPS_H
#define XAC_TEST_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef XAC_DEBUG

/* A kill point: where it can be met, and behind whose death. */
struct step {
    const char *name;
    const char *before; /* kill point of the forerunner, or NULL                        */
    bool is_durable_only;
    bool needs_company; /* met only beside a survivor                                  */
};

static const struct step steps[] = {
    {"begin", NULL, false, false},
    {"entry", NULL, false, false},
    {"page locked", NULL, false, false},
    {"page entered", NULL, false, false},
    {"page linked", NULL, false, false},
    {"a", NULL, false, false},
    {"b taken", NULL, false, false},
    {"b frame", NULL, false, false},
    {"b data file", NULL, true, false},
    {"b", NULL, false, false},
    {"grow", NULL, true, false}, /* met by a lone participant: the first one grows it */
    {"c", NULL, false, false},
    {"d", NULL, false, false},
    {"e number", NULL, false, false},
    {"e", NULL, false, false},
    {"e sealed", NULL, true, false},
    {"e tail", NULL, false, false},
    {"f version", NULL, false, false},
    {"f page", NULL, false, false},
    {"f ring", NULL, false, false},
    {"f", NULL, false, false},
    {"g number", NULL, false, false},
    {"g state", NULL, false, false},
    {"g", NULL, false, false},
    {"h", NULL, false, false},
    {"page leaving", NULL, false, false},
    {"page unlinking", NULL, false, true},
    {"page left", NULL, false, false},
    {"i entry", NULL, false, false},
    {"i dropped", NULL, false, false},
    {"i", NULL, false, false},
    {"j", NULL, false, false},
    {"gc mark", NULL, false, false},
    {"cut", NULL, false, false},
    {"gc", NULL, false, false},
    {"sweep", NULL, false, false},
    {"l", NULL, false, false},
    {"m position", NULL, true, false},
    {"m count", NULL, true, false},
    {"m", NULL, false, false},
    {"n slot", NULL, false, false},
    {"n", NULL, false, false},
    {"o page", NULL, false, false},
    {"o", NULL, false, false},
    {"p", NULL, false, false},
    {"q appended", NULL, true, false},
    {"q", NULL, true, false},
    {"r", NULL, false, false},
    {"s locked", NULL, false, false},
    {"s", NULL, false, false},
    {"s limbo", NULL, false, false},
    {"s unlinked", NULL, false, false},
    {"s page", NULL, false, false},
    {"s ring", NULL, false, false},
    {"s number", NULL, false, false},
    {"t before", NULL, false, false},
    {"t", NULL, false, false},
    {"reap finished", "c", false, true},
    {"reap slot", "c", false, true},
    {"reap dropped", "b", false, true},
    {"reap finished", "page locked", false, true},
    {"redone", "e", false, true},
    {"redone", "f page", false, true},
    {"redone", "g number", false, true},
    {"redone", "s unlinked", false, true},
};

#endif /* XAC_DEBUG */

#endif /* XAC_TEST_STEPS_H */
