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
    bool is_eager_only; /* not met under the policy serial                             */
    bool has_history;   /* met with XAC_OPT_HISTORY only                               */
};

static const struct step steps[] = {
    {.name = "begin"},
    {.name = "entry"},
    {.name = "page locked", .is_eager_only = true},
    {.name = "page entered", .is_eager_only = true},
    {.name = "page linked", .is_eager_only = true},
    {.name = "a"},
    {.name = "b taken"},
    {.name = "b frame"},
    {.name = "b data file", .is_durable_only = true},
    {.name = "b"},
    {.name = "grow",
     .is_durable_only = true}, /* met by a lone participant: the first one grows it */
    {.name = "c", .is_eager_only = true},
    {.name = "d", .is_eager_only = true},
    {.name = "e number"},
    {.name = "e"},
    {.name = "e sealed", .is_durable_only = true},
    {.name = "e tail"},
    {.name = "f version"},
    {.name = "f page"},
    {.name = "f ring"},
    {.name = "f"},
    {.name = "g number"},
    {.name = "g state"},
    {.name = "g"},
    {.name = "h"},
    {.name = "page leaving", .is_eager_only = true},
    {.name = "page unlinking", .needs_company = true, .is_eager_only = true},
    {.name = "page left", .is_eager_only = true},
    {.name = "i entry"},
    {.name = "i dropped"},
    {.name = "i"},
    {.name = "j"},
    {.name = "gc mark"},
    {.name = "cut"},
    {.name = "gc"},
    {.name = "sweep"},
    {.name = "l"},
    {.name = "m position", .is_durable_only = true},
    {.name = "m count", .is_durable_only = true},
    {.name = "m"},
    {.name = "n slot"},
    {.name = "n"},
    {.name = "o page"},
    {.name = "o"},
    {.name = "p"},
    {.name = "q appended", .is_durable_only = true},
    {.name = "q", .is_durable_only = true},
    {.name = "r"},
    {.name = "s locked"},
    {.name = "s"},
    {.name = "s limbo"},
    {.name = "s unlinked"},
    {.name = "s page"},
    {.name = "s ring"},
    {.name = "s number"},
    {.name = "history moment", .has_history = true},
    {.name = "history past", .has_history = true},
    {.name = "snapshot slot"},
    {.name = "snapshot word"},
    {.name = "snapshot held"},
    {.name = "snapshot named"},
    {.name = "snapshot seen"},
    {.name = "snapshot kept"},
    {.name = "snapshot released"},
    {.name = "t before"},
    {.name = "t"},
    {.name = "reap finished",
     .before = "c",
     .needs_company = true,
     .is_eager_only = true},
    {.name = "reap slot", .before = "c", .needs_company = true, .is_eager_only = true},
    {.name = "reap dropped", .before = "b", .needs_company = true},
    {.name = "reap finished",
     .before = "page locked",
     .needs_company = true,
     .is_eager_only = true},
    {.name = "redone", .before = "e", .needs_company = true},
    {.name = "redone", .before = "f page", .needs_company = true},
    {.name = "redone", .before = "g number", .needs_company = true},
    {.name = "redone", .before = "s unlinked", .needs_company = true},
};

#endif /* XAC_DEBUG */

#endif /* XAC_TEST_STEPS_H */
