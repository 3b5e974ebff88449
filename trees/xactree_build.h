/* SPDX-License-Identifier: MIT */
/*
 * xactree_build.h -- how the trees' sources are compiled for libxactree: included before each.
 *
 * WHAT      The serial build, since xactree.c begins and ends the transactions, in whichever
 *           environment; with hints that go through xac_touch.h, which needs no environment; under
 *           names of the library's own, since the archive would have them all in common with
 *           the program.
 * NOT HERE  The interface (xactree.h).
 */
#ifndef TREES_XACTREE_BUILD_H
#define TREES_XACTREE_BUILD_H

#include <stdbool.h>
#include <xac_touch.h>

#define TREE_SERIAL
#define TREE_HINTS_GIVEN

#define btree_serial_block_alloc    xactree_btree_block_alloc
#define btree_serial_block_free     xactree_btree_block_free
#define btree_serial_block_nth      xactree_btree_block_nth
#define btree_serial_blocks_reserve xactree_btree_blocks_reserve
#define btree_serial_check          xactree_btree_check
#define btree_serial_create         xactree_btree_create
#define btree_serial_cursor_next    xactree_btree_cursor_next
#define btree_serial_cursor_prev    xactree_btree_cursor_prev
#define btree_serial_cursor_seek    xactree_btree_cursor_seek
#define btree_serial_delete         xactree_btree_delete
#define btree_serial_first          xactree_btree_first
#define btree_serial_insert         xactree_btree_insert
#define btree_serial_last           xactree_btree_last
#define btree_serial_layout_set     xactree_btree_layout_set
#define btree_serial_load           xactree_btree_load
#define btree_serial_open           xactree_btree_open
#define btree_serial_scan           xactree_btree_scan
#define btree_serial_search         xactree_btree_search
#define btree_serial_seek           xactree_btree_seek
#define vtree_serial_check          xactree_vtree_check
#define vtree_serial_count          xactree_vtree_count
#define vtree_serial_create         xactree_vtree_create
#define vtree_serial_cursor_key     xactree_vtree_cursor_key
#define vtree_serial_cursor_next    xactree_vtree_cursor_next
#define vtree_serial_cursor_prev    xactree_vtree_cursor_prev
#define vtree_serial_cursor_seek    xactree_vtree_cursor_seek
#define vtree_serial_delete         xactree_vtree_delete
#define vtree_serial_get            xactree_vtree_get
#define vtree_serial_insert         xactree_vtree_insert
#define vtree_serial_load           xactree_vtree_load
#define vtree_serial_next           xactree_vtree_next
#define vtree_serial_open           xactree_vtree_open
#define vtree_serial_pieces_delete  xactree_vtree_pieces_delete
#define vtree_serial_put            xactree_vtree_put
#define vtree_serial_scan           xactree_vtree_scan

/* Announce an access to the page at `addr`; every store to a segment is announced. */
static inline void
tree_hint(bool on, const void *addr, int access)
{
    if (access != 1)
        xac_store(addr, 1);
    else if (on)
        xac_load(addr, 1);
}

/* The same for all pages of a range. */
static inline void
tree_hint_range(bool on, const void *addr, size_t length, int access)
{
    if (access != 1)
        xac_store(addr, length);
    else if (on)
        xac_load(addr, length);
}

#endif /* TREES_XACTREE_BUILD_H */
