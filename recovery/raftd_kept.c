/* SPDX-License-Identifier: MIT */
/*
 * raftd_kept.c -- see raftd_kept.h.
 */
#include <config.h>

#include "raftd_kept.h"

#include <stdlib.h>

#include "base/annot.h"
#include "raftd_place.h"

void
raftd_kept_init(struct raftd_kept *k)
{
    k->first = NULL;
    k->last = &k->first;
}

void
raftd_kept_add(struct raftd_kept *k, struct raftd_item *item)
{
    xac_assert(item->kind == RAFTD_ITEM_ENTRY);
    item->next = NULL;
    *k->last = item;
    k->last = &item->next;
}

bool
raftd_kept_is_empty(const struct raftd_kept *k)
{
    return k->first == NULL;
}

/* drop_first -- of those that are kept. */
static void
drop_first(struct raftd_kept *k)
{
    struct raftd_item *item = k->first;

    xac_assert(item != NULL);
    k->first = item->next;
    if (k->first == NULL)
        k->last = &k->first;
    free(item);
}

void
raftd_kept_drop(struct raftd_kept *k, uint64_t had, uint64_t end)
{
    while (k->first != NULL) {
        const struct raftd_item *i = k->first;
        bool is_piece = i->at.kind == RAFTD_DATA;

        if (is_piece ? i->at.lsn >= had || i->at.lsn >= end : i->at.end > had)
            return;
        drop_first(k);
    }
}

void
raftd_kept_drop_all(struct raftd_kept *k)
{
    while (k->first != NULL)
        drop_first(k);
}

int
raftd_kept_take(struct raftd_kept *k, struct raftd_place *place, uint64_t until)
{
    int rc = 0;

    while (rc == 0 && k->first != NULL && k->first->at.lsn < until) {
        rc = raftd_place_take(place, &k->first->at);
        drop_first(k);
    }
    raftd_kept_drop_all(k);
    return rc;
}
