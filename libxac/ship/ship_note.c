/* SPDX-License-Identifier: MIT */
/*
 * ship_note.c -- see ship_note.h.
 */
#include <config.h>

#include "ship/ship_note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "shared/address_list.h"

int
xac_ship_note_piece(struct xac_ship_note *note, int dirfd, uint64_t length,
                    uint64_t offset, const void *bytes, size_t n)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_ADDRESSES_NAME "-new",
                               .name = XAC_ADDRESSES_NAME,
                               .is_synced = true};
    uint8_t *grown;
    int rc;

    xac_assert(dirfd >= 0);
    if (offset == 0)
        note->has = 0;
    if (length > XAC_ADDRESSES_BYTES_MAX || offset != note->has || offset > length
        || n > length - offset)
        return EINVAL;
    grown = (uint8_t *)realloc(note->bytes, note->has + n + 1);
    if (grown == NULL)
        return xac_err(ENOMEM, "%s", XAC_ADDRESSES_NAME);
    note->bytes = grown;
    memcpy(note->bytes + note->has, bytes, n);
    note->has += n;
    note->length = length;
    if (note->has < length)
        return 0;
    rc = xac_newfile_replace(&file, note->bytes, (size_t)note->has, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_ADDRESSES_NAME);
}

bool
xac_ship_note_is_whole(const struct xac_ship_note *note)
{
    xac_assert(note->has <= note->length);
    return note->has == note->length;
}

void
xac_ship_note_free(struct xac_ship_note *note)
{
    free(note->bytes);
    *note = (struct xac_ship_note){.bytes = NULL};
}
