/* SPDX-License-Identifier: MIT */
/*
 * dqlite_wire.c -- see dqlite_wire.h.
 */
#include <config.h>

#include "dqlite_wire.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL   1u
#define HEAD_BYTES 8u

/* Kinds of answers. */
#define FAILURE 0

#define SQLITE_CODE_BUSY 5u /* SQLITE_BUSY */

const char *
group_dqlite_open(struct dqlite_wire *w, const char *place)
{
    const uint64_t version = htole64(PROTOCOL);
    const char *words = group_net_open(&w->net, place);

    if (words == NULL)
        words = group_net_send(&w->net, &version, sizeof version);
    if (words != NULL)
        return words;
    group_dqlite_begin(w, DQLITE_CLIENT);
    group_dqlite_u64(w, 0);
    return group_dqlite_call(w);
}

void
group_dqlite_close(struct dqlite_wire *w)
{
    group_net_close(&w->net);
}

/* put -- a piece, filled up with zeros. */
static void
put(struct dqlite_wire *w, const void *bytes, size_t n, size_t n_filled)
{
    if (n_filled > sizeof w->message - w->n)
        abort(); /* no request is so large */
    memcpy(w->message + w->n, bytes, n);
    memset(w->message + w->n + n, 0, n_filled - n);
    w->n += n_filled;
}

/* filled -- n, and what fills it up. */
static size_t
filled(size_t n)
{
    return (n + 7) / 8 * 8;
}

void
group_dqlite_begin(struct dqlite_wire *w, enum dqlite_request kind)
{
    memset(w->message, 0, HEAD_BYTES);
    w->message[4] = (uint8_t)kind;
    w->n = HEAD_BYTES;
}

void
group_dqlite_u32(struct dqlite_wire *w, uint32_t v)
{
    v = htole32(v);
    put(w, &v, sizeof v, sizeof v);
}

void
group_dqlite_u64(struct dqlite_wire *w, uint64_t v)
{
    v = htole64(v);
    put(w, &v, sizeof v, sizeof v);
}

void
group_dqlite_text(struct dqlite_wire *w, const char *text)
{
    put(w, text, strlen(text) + 1, filled(strlen(text) + 1));
}

void
group_dqlite_bytes(struct dqlite_wire *w, const void *bytes, size_t n)
{
    put(w, bytes, n, filled(n));
}

uint64_t
group_dqlite_answer_u64(const struct dqlite_wire *w, size_t at)
{
    uint64_t v;

    if (at + sizeof v > w->n)
        return 0;
    memcpy(&v, w->message + at, sizeof v);
    return le64toh(v);
}

const char *
group_dqlite_call(struct dqlite_wire *w)
{
    uint32_t length = htole32((uint32_t)((w->n - HEAD_BYTES) / 8));
    uint8_t head[HEAD_BYTES];
    const char *words;

    w->failure = 0;
    memcpy(w->message, &length, sizeof length);
    words = group_net_send(&w->net, w->message, w->n);
    if (words == NULL)
        words = group_net_receive(&w->net, head, sizeof head);
    if (words != NULL)
        return words;
    memcpy(&length, head, sizeof length);
    w->n = (size_t)le32toh(length) * 8;
    if (w->n >= sizeof w->message)
        return "dqlite: a long answer";
    words = group_net_receive(&w->net, w->message, w->n);
    if (words != NULL || head[4] != FAILURE)
        return words;
    w->failure = group_dqlite_answer_u64(w, 0);
    w->message[w->n] = '\0'; /* the words end before */
    return group_net_words("dqlite", w->n > 8 ? (const char *)w->message + 8 : "failed");
}

bool
group_dqlite_is_busy(const struct dqlite_wire *w)
{
    return w->failure == SQLITE_CODE_BUSY;
}
