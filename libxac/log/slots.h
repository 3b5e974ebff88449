/* SPDX-License-Identifier: MIT */
/*
 * slots.h -- promises to followers: log from a position on is not used again.
 *
 * WHAT      A slot has a name and a position, in the region while there is one, and in the file
 *           XAC_SLOTS_NAME of the environment's directory.  The follower moves the position.  A slot
 *           that holds back too much is marked as lost, and stays so.
 * NOT HERE  Who is too far behind, and when the file is written (checkpoint/hold.h).
 * LOCK      checkpoint, for adding, removing, marking as lost, and the file; or nobody else knows of
 *           the region yet.  A follower moves its slot without a lock.
 * THREADS   any; not the fault handler.
 *
 * The word of a slot is its position, an LSN, and in the low bits, which are 0 in an LSN, a serial of
 * the slot's use.  A follower moves its slot by an exchange from a word that it has read.  So it cannot
 * move a slot that has been lost, or that belongs to another one by now.
 *
 * INVARIANTS
 *   (1) The position is a mark: the LSN of an XCHECKPT_BEGIN, or the start of a generation.  So it
 *       says which data files are needed, too.
 *   (2) It only grows, as long as the slot has its name.
 *   (3) The file may have an older position than the region: it holds too much, never too little.
 *   (4) A slot that is lost stays so until it is removed.
 */
#ifndef XAC_SLOTS_H
#define XAC_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log_format.h"
#include "log/log_state.h"

#define XAC_SLOTS_NAME "xac.slots"

/* Positions that are none. */
#define XAC_SLOT_FREE UINT64_C(0)
#define XAC_SLOT_LOST UINT64_C(8)

#define XAC_SLOT_SERIAL_MASK ((uint64_t)XAC_BLOCK_ALIGN - 1)

static inline uint64_t
xac_slot_lsn(uint64_t word)
{
    return word & ~XAC_SLOT_SERIAL_MASK;
}

/* xac_slot_load -- the word of a slot. */
static inline uint64_t
xac_slot_load(const struct xac_log_slot *slot)
{
    /* acquire: pairs with the release in slot_store and xac_slot_move. */
    return atomic_load_explicit(&slot->word, memory_order_acquire);
}

/* xac_slot_name -- copy the name. */
void xac_slot_name(const struct xac_log_slot *slot, char name[XAC_SLOT_NAME_BYTES]);

/* xac_slot_name_ok -- 1 to 47 letters, digits, and . _ - */
bool xac_slot_name_ok(const char *name);

/* xac_slot_is_sound -- can a slot have this word and name?  Shared memory may have been damaged. */
bool xac_slot_is_sound(const struct xac_log_slot *slot);

/* xac_slots_find -- the slot of that name; NULL if there is none. */
struct xac_log_slot *xac_slots_find(struct xac_log_followers *f, const char *name);

/* xac_slots_has_any -- is there one, lost or not? */
bool xac_slots_has_any(const struct xac_log_followers *f);

/* xac_slots_add -- ret 0; EEXIST; ENOSPC: there are XAC_LOG_SLOTS.  Words noted. */
int xac_slots_add(struct xac_log_followers *f, const char *name, uint64_t lsn);

/* xac_slots_remove -- ret 0; ENOENT.  Words noted. */
int xac_slots_remove(struct xac_log_followers *f, const char *name);

/*
 * xac_slots_needed -- where the log begins that redo and slots need.
 *
 * in   start_lsn  of the present generation.  A slot before it may count in segments of another size,
 *                 so it needs all log: 1
 */
uint64_t xac_slots_needed(const struct xac_log_followers *f, uint64_t redo_lsn,
                          uint64_t start_lsn);

/* xac_slots_lose -- mark slots that stand before an LSN as lost; ret how many. */
unsigned xac_slots_lose(struct xac_log_followers *f, uint64_t below);

/* xac_slot_move -- a follower needs nothing before the mark at lsn; no lock.  in  was  the word that it
   has read last; ret the word now: its position is LOST or FREE, or its serial another one, if the
   slot is not the follower's any more. */
uint64_t xac_slot_move(struct xac_log_slot *slot, uint64_t was, uint64_t lsn);

/*
 * xac_slots_read -- fill in the slots that the file has; none if there is no file.
 *
 * out  f    its slots, which were zeros
 * ret  0; XAC_EDAMAGED; errno.
 */
int xac_slots_read(int dirfd, struct xac_log_followers *f);

/* xac_slots_write -- replace the file; durable when it returns 0; errno with words. */
int xac_slots_write(int dirfd, const struct xac_log_followers *f);

#endif /* XAC_SLOTS_H */
