/* SPDX-License-Identifier: MIT */
/*
 * slots.c -- see slots.h.
 */
#include <config.h>

#include "log/slots.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/log_name.h"

#define NEW_NAME   XAC_SLOTS_NAME "-new"
#define FIRST_LINE "xac-slots 1\n"
#define LAST_LINE  "end\n"

/* A line: a position, a blank, a name, a newline. */
#define LINE_MAX_BYTES (20 + 1 + XAC_SLOT_NAME_BYTES + 1)
#define FILE_MAX_BYTES \
 (sizeof FIRST_LINE + sizeof LAST_LINE + XAC_LOG_SLOTS * (size_t)LINE_MAX_BYTES)

/* ---- In memory -------------------------------------------------------------------- */

void
xac_slot_name(const struct xac_log_slot *slot, char name[XAC_SLOT_NAME_BYTES])
{
    for (size_t i = 0; i < XAC_SLOT_NAME_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&slot->name[i], memory_order_relaxed);

        memcpy(name + 8 * i, &word, sizeof word);
    }
    name[XAC_SLOT_NAME_BYTES - 1] = '\0';
}

bool
xac_slot_name_ok(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n >= XAC_SLOT_NAME_BYTES)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (isalnum((unsigned char)name[i]) == 0 && strchr("._-", name[i]) == NULL)
            return false;
    }
    return true;
}

bool
xac_slot_is_sound(const struct xac_log_slot *slot)
{
    uint64_t lsn = xac_slot_lsn(xac_slot_load(slot));
    char name[XAC_SLOT_NAME_BYTES];

    if (lsn == XAC_SLOT_FREE)
        return true;
    xac_slot_name(slot, name);
    return xac_slot_name_ok(name)
           && (lsn == XAC_SLOT_LOST || (lsn >= XAC_LSN_FIRST && lsn <= XAC_LSN_LIMIT));
}

struct xac_log_slot *
xac_slots_find(struct xac_log_followers *f, const char *name)
{
    char found[XAC_SLOT_NAME_BYTES];

    xac_assert(name[0] != '\0');
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        if (xac_slot_lsn(xac_slot_load(&f->slot[i])) == XAC_SLOT_FREE)
            continue;
        xac_slot_name(&f->slot[i], found);
        if (strcmp(found, name) == 0)
            return &f->slot[i];
    }
    return NULL;
}

bool
xac_slots_has_any(const struct xac_log_followers *f)
{
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        if (xac_slot_lsn(xac_slot_load(&f->slot[i])) != XAC_SLOT_FREE)
            return true;
    }
    return false;
}

/* slot_store -- another position, and another serial. */
static void
slot_store(struct xac_log_slot *slot, uint64_t lsn)
{
    uint64_t serial = (xac_slot_load(slot) + 1) & XAC_SLOT_SERIAL_MASK;

    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    /* release: pairs with the acquire in xac_slot_load. */
    atomic_store_explicit(&slot->word, lsn | serial, memory_order_release);
}

/* slot_put -- into a free slot. */
static void
slot_put(struct xac_log_slot *slot, const char *name, uint64_t lsn)
{
    char bytes[XAC_SLOT_NAME_BYTES] = "";

    xac_assert(xac_slot_name_ok(name));
    xac_assert(xac_slot_lsn(xac_slot_load(slot)) == XAC_SLOT_FREE);
    memcpy(bytes, name, strlen(name));
    for (size_t i = 0; i < XAC_SLOT_NAME_WORDS; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, sizeof word);
        atomic_store_explicit(&slot->name[i], word, memory_order_relaxed);
    }
    slot_store(slot, lsn);
}

int
xac_slots_add(struct xac_log_followers *f, const char *name, uint64_t lsn)
{
    xac_assert(lsn >= XAC_LSN_FIRST || lsn == XAC_SLOT_LOST);
    if (xac_slots_find(f, name) != NULL)
        return xac_err(EEXIST, "slot %s", name);
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        if (xac_slot_lsn(xac_slot_load(&f->slot[i])) != XAC_SLOT_FREE)
            continue;
        slot_put(&f->slot[i], name, lsn);
        return 0;
    }
    return xac_err(ENOSPC, "slot %s: there are %d slots, and no more can be made", name,
                   XAC_LOG_SLOTS);
}

int
xac_slots_remove(struct xac_log_followers *f, const char *name)
{
    struct xac_log_slot *slot = xac_slots_find(f, name);

    if (slot == NULL)
        return xac_err(ENOENT, "slot %s", name);
    slot_store(slot, XAC_SLOT_FREE);
    xac_assert(xac_slots_find(f, name) == NULL);
    return 0;
}

uint64_t
xac_slots_needed(const struct xac_log_followers *f, uint64_t redo_lsn, uint64_t start_lsn)
{
    uint64_t needed = redo_lsn;

    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        uint64_t lsn = xac_slot_lsn(xac_slot_load(&f->slot[i]));

        if (lsn == XAC_SLOT_FREE || lsn == XAC_SLOT_LOST || lsn >= needed)
            continue;
        needed = lsn < start_lsn ? 1 : lsn;
    }
    xac_assert(needed <= redo_lsn);
    return needed;
}

unsigned
xac_slots_lose(struct xac_log_followers *f, uint64_t below)
{
    unsigned n = 0;

    xac_assert(below <= XAC_LSN_LIMIT);
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        uint64_t word = xac_slot_load(&f->slot[i]);
        uint64_t lsn = xac_slot_lsn(word);

        if (lsn == XAC_SLOT_FREE || lsn == XAC_SLOT_LOST || lsn >= below)
            continue;
        /* A follower that has just moved it is looked at by the next checkpoint.
           acq_rel: pairs with xac_slot_move, so that one of the two exchanges fails. */
        n += atomic_compare_exchange_strong_explicit(&f->slot[i].word, &word,
                                                     XAC_SLOT_LOST
                                                         | (word & XAC_SLOT_SERIAL_MASK),
                                                     memory_order_acq_rel,
                                                     memory_order_acquire);
    }
    return n;
}

uint64_t
xac_slot_move(struct xac_log_slot *slot, uint64_t was, uint64_t lsn)
{
    uint64_t to = lsn | (was & XAC_SLOT_SERIAL_MASK);

    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    xac_assert(lsn >= xac_slot_lsn(was)); /* (2) */
    /* acq_rel: pairs with xac_slots_lose and with the acquire in xac_slot_load. */
    if (atomic_compare_exchange_strong_explicit(&slot->word, &was, to,
                                                memory_order_acq_rel,
                                                memory_order_acquire))
        return to;
    return was;
}

/* ---- The file --------------------------------------------------------------------- */

/* parse_line -- "LSN NAME" or "lost NAME"; ret false if it is none. */
static bool
parse_line(char *line, struct xac_log_followers *f)
{
    char *name = strchr(line, ' '), *end;
    uint64_t lsn = XAC_SLOT_LOST;

    if (name == NULL)
        return false;
    *name++ = '\0';
    if (strcmp(line, "lost") != 0) {
        errno = 0;
        lsn = strtoull(line, &end, 10);
        if (errno != 0 || *end != '\0' || line[0] < '0' || line[0] > '9'
            || lsn % XAC_BLOCK_ALIGN != 0 || lsn < XAC_LSN_FIRST || lsn > XAC_LSN_LIMIT)
            return false;
    }
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    return xac_slot_name_ok(name) && xac_slots_add(f, name, lsn) == 0;
}

/* parse -- the whole file, which ends with a NUL. */
static bool
parse(char *text, struct xac_log_followers *f)
{
    char *line = text + strlen(FIRST_LINE);

    xac_assert(f != NULL);
    if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0)
        return false;
    while (strcmp(line, LAST_LINE) != 0) {
        char *end = strchr(line, '\n');

        if (end == NULL)
            return false;
        *end = '\0';
        if (!parse_line(line, f))
            return false;
        line = end + 1;
    }
    return true;
}

int
xac_slots_read(int dirfd, struct xac_log_followers *f)
{
    char text[FILE_MAX_BYTES + 1];
    size_t got = 0;
    int rc;
    int fd = xac_sys.openat(dirfd, XAC_SLOTS_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(!xac_slots_has_any(f));
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", XAC_SLOTS_NAME);
    rc = xac_read_full(fd, text, sizeof text - 1, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: read", XAC_SLOTS_NAME);
    text[got] = '\0';
    if (strlen(text) == got && parse(text, f))
        return 0;
    return xac_err(XAC_EDAMAGED,
                   "%s: not what libxac has written; without it no log is held back for "
                   "followers, who may have to begin anew",
                   XAC_SLOTS_NAME);
}

int
xac_slots_write(int dirfd, const struct xac_log_followers *f)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = NEW_NAME,
                               .name = XAC_SLOTS_NAME,
                               .is_synced = true};
    char text[FILE_MAX_BYTES], name[XAC_SLOT_NAME_BYTES];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", FIRST_LINE);
    int rc;

    xac_assert(dirfd >= 0);
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        uint64_t lsn = xac_slot_lsn(xac_slot_load(&f->slot[i]));

        if (lsn == XAC_SLOT_FREE || !xac_slot_is_sound(&f->slot[i]))
            continue;
        xac_slot_name(&f->slot[i], name);
        if (lsn == XAC_SLOT_LOST)
            n += (size_t)snprintf(text + n, sizeof text - n, "lost %s\n", name);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%" PRIu64 " %s\n", lsn,
                                  name);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", LAST_LINE);
    xac_assert(n < sizeof text);
    rc = xac_newfile_replace(&file, text, n, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_SLOTS_NAME);
}
