/* SPDX-License-Identifier: MIT */
/*
 * steps_snapshot.c -- see steps_snapshot.h.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "steps_snapshot.h"

#include <stdio.h>

#include <xac.h>
#include <xac_translate.h>

#include "../common/env.h"

void
steps_snapshot_take(const volatile uint64_t *count, unsigned writer,
                    struct steps_snapshot *out)
{
    uint64_t present;
    char name[16];

    *out = (struct steps_snapshot){.id = 0};
    if (xac_begin_query() != 0)
        return;
    out->n = *count;
    if (xac_snapshot(&out->id) != 0)
        out->id = 0;
    (void)xac_end_query();
    (void)snprintf(name, sizeof name, "writer %u", writer);
    if (out->id != 0)
        (void)xac_snapshot_keep(out->id, name, 3600);
    if (xac_snapshot(&present) == 0)
        (void)xac_snapshot_release(present);
}

bool
steps_snapshot_begin(const volatile uint64_t *count, const struct steps_snapshot *s)
{
    if (s->id == 0 || xac_begin_query_at(s->id) != 0)
        return false;
    must_eq(*count, s->n);
    return true;
}

void
steps_snapshot_end(const struct steps_snapshot *s)
{
    (void)xac_snapshot_release(s->id);
    (void)xac_end_query();
}

void
steps_past_note(const volatile uint64_t *count, struct steps_snapshot *out)
{
    *out = (struct steps_snapshot){.id = 0};
    if (xac_begin_query() != 0)
        return;
    out->n = *count;
    out->id = XAC_AT_COMMIT(xac_position());
    (void)xac_end_query();
}
