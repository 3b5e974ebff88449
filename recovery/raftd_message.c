/* SPDX-License-Identifier: MIT */
/*
 * raftd_message.c -- see raftd_message.h.
 */
#include <config.h>

#include "raftd_message.h"

#include <endian.h>
#include <string.h>

#include "base/annot.h"
#include "log/group_note.h"
#include "raftd_format.h"
#include "raftd_net_format.h"

/* Types of libraft's messages, and the least length of their heads. */
enum {
    APPEND_ENTRIES = 1,
    APPEND_ENTRIES_RESULT,
    REQUEST_VOTE,
    REQUEST_VOTE_RESULT,
    INSTALL_SNAPSHOT,
    TIMEOUT_NOW,
    TYPES
};

static const size_t head_least[TYPES] = {
    [APPEND_ENTRIES] = 40,      [APPEND_ENTRIES_RESULT] = 32, [REQUEST_VOTE] = 40,
    [REQUEST_VOTE_RESULT] = 24, [INSTALL_SNAPSHOT] = 56,      [TIMEOUT_NOW] = 24,
};

/* Of a batch: behind term, index, term and index stands the number of entries, then 16 bytes of each. */
#define BATCH_AT      32
#define BATCH_ENTRIES 40
#define ENTRY_BYTES   16

/* Of a snapshot: behind term, index, term and index stands the length of the configuration. */
#define CONF_LENGTH_AT 32
#define CONF_AT        40

/* The bytes of the longest entry. */
#define ENTRY_MAX (sizeof(struct xac_raftd_head) + XAC_RAFTD_BODY_MAX + 8)

static uint64_t
get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint32_t
get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

/* ---- Heads -------------------------------------------------------------------------- */

/* check_batch -- entries (2); out  left  their bytes. */
static bool
check_batch(const uint8_t *head, size_t n, uint64_t *left)
{
    uint64_t entries = get64(head + BATCH_AT);

    xac_assert(n >= BATCH_ENTRIES);
    *left = 0;
    if (entries > (n - BATCH_ENTRIES) / ENTRY_BYTES)
        return false;
    for (uint64_t i = 0; i < entries; i++) {
        uint32_t length = get32(head + BATCH_ENTRIES + i * ENTRY_BYTES + 12);

        if (length == 0 || length % 8 != 0 || length > ENTRY_MAX)
            return false;
        *left += length;
    }
    return true;
}

/* check_configuration -- n bytes: format, number of nodes, and of each number, address with its 0, and role. */
static bool
check_configuration(const uint8_t *conf, uint64_t n)
{
    uint64_t nodes, at = 9;

    if (n < at || conf[0] != 1)
        return false;
    nodes = get64(conf + 1);
    if (nodes > XAC_GROUP_NODE_MAX)
        return false;
    for (uint64_t i = 0; i < nodes; i++) {
        const uint8_t *end;

        at += 8;
        if (at >= n)
            return false;
        end = (const uint8_t *)memchr(conf + at, '\0', n - at);
        if (end == NULL || (size_t)(end - (conf + at)) >= RAFTD_ADDRESS_BYTES)
            return false;
        at = (uint64_t)(end - conf) + 2; /* behind the role */
        if (at > n)
            return false;
    }
    return true;
}

/* check_snapshot -- (2); out  left  its bytes. */
static bool
check_snapshot(const uint8_t *head, size_t n, uint64_t *left)
{
    uint64_t conf = get64(head + CONF_LENGTH_AT);

    xac_assert(n >= CONF_AT + 16);
    if (conf > n - CONF_AT - 16 || !check_configuration(head + CONF_AT, conf))
        return false;
    *left = get64(head + CONF_AT + conf);
    return *left == sizeof(struct xac_raftd_descriptor);
}

/* check_head -- of n bytes, which are there. */
static bool
check_head(struct raftd_messages *m, size_t n)
{
    const uint8_t *head = m->bytes + RAFTD_PREAMBLE_BYTES;

    switch (m->bytes[0]) {
    case APPEND_ENTRIES:
        return check_batch(head, n, &m->left);
    case INSTALL_SNAPSHOT:
        return check_snapshot(head, n, &m->left);
    default:
        return true;
    }
}

/* ---- Bytes -------------------------------------------------------------------------- */

/* take -- bytes of preamble or head until there are `want`; ret how many. */
static size_t
take(struct raftd_messages *m, const uint8_t *bytes, size_t n, size_t want)
{
    size_t part = want - m->n < n ? want - m->n : n;

    xac_assert(want <= sizeof m->bytes);
    xac_assert(m->n <= want);
    memcpy(m->bytes + m->n, bytes, part);
    m->n += part;
    return part;
}

/* head_bytes -- by the preamble, which is there; 0: it cannot be (1). */
static size_t
head_bytes(const struct raftd_messages *m)
{
    uint64_t n = get64(m->bytes + 8);
    uint8_t type = m->bytes[0];

    return type > 0 && type < TYPES && n >= head_least[type] && n <= RAFTD_HEAD_MAX
               ? (size_t)n
               : 0;
}

/* step -- some of the bytes; ret how many; 0: they are wrong. */
static size_t
step(struct raftd_messages *m, const uint8_t *bytes, size_t n)
{
    size_t head, part;

    if (m->left > 0) {
        part = m->left < n ? (size_t)m->left : n;
        m->left -= part;
        return part;
    }
    if (m->n < RAFTD_PREAMBLE_BYTES) {
        part = take(m, bytes, n, RAFTD_PREAMBLE_BYTES);
        return m->n < RAFTD_PREAMBLE_BYTES || head_bytes(m) > 0 ? part : 0;
    }
    head = head_bytes(m);
    part = take(m, bytes, n, RAFTD_PREAMBLE_BYTES + head);
    if (m->n < RAFTD_PREAMBLE_BYTES + head)
        return part;
    m->n = 0;
    return check_head(m, head) ? part : 0;
}

bool
raftd_messages_check(struct raftd_messages *m, const uint8_t *bytes, size_t n)
{
    while (n > 0 && !m->is_wrong) {
        size_t part = step(m, bytes, n);

        m->is_wrong = part == 0;
        bytes += part;
        n -= part;
    }
    return !m->is_wrong;
}

void
raftd_messages_init(struct raftd_messages *m)
{
    m->n = 0;
    m->left = 0;
    m->is_wrong = false;
}
