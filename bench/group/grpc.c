/* SPDX-License-Identifier: MIT */
/*
 * grpc.c -- see grpc.h; RFC 7540 (HTTP/2), RFC 7541 (its headers).
 */
#include <config.h>

#include "grpc.h"

#include <stdbool.h>
#include <string.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#define FRAME_HEAD_BYTES   9u
#define MESSAGE_HEAD_BYTES 5u

/* Kinds of frames. */
enum frame_kind {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8
};

#define FLAG_ACK         1u
#define FLAG_END_STREAM  1u
#define FLAG_END_HEADERS 4u

/* What either side may send at first, and the most that can be allowed. */
#define WINDOW_FIRST 65535
#define WINDOW_MOST  0x7fffffff

/* Places in the static table of headers, with the bits that say how they are given. */
#define HEADER_POST         0x83 /* :method POST, as it stands there                 */
#define HEADER_HTTP         0x86 /* :scheme http                                     */
#define HEADER_AUTHORITY    0x01 /* the name, without adding to the table            */
#define HEADER_PATH         0x04
#define HEADER_CONTENT_TYPE 0x0f, 0x10 /* 31                                         */
#define HEADER_NEW          0x00

struct frame {
    uint32_t n;
    uint8_t kind, flags;
    uint32_t stream;
};

/* frame_head -- ret behind it. */
static uint8_t *
frame_head(uint8_t *to, uint8_t kind, uint8_t flags, uint32_t stream, size_t n)
{
    const uint8_t head[FRAME_HEAD_BYTES] = {(uint8_t)(n >> 16),
                                            (uint8_t)(n >> 8),
                                            (uint8_t)n,
                                            kind,
                                            flags,
                                            (uint8_t)(stream >> 24),
                                            (uint8_t)(stream >> 16),
                                            (uint8_t)(stream >> 8),
                                            (uint8_t)stream};

    memcpy(to, head, sizeof head);
    return to + sizeof head;
}

static uint32_t
big_endian(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8
           | from[3];
}

/* put_text -- its length, below 127, and the text; ret behind it. */
static uint8_t *
put_text(uint8_t *to, const char *text)
{
    size_t n = strlen(text);

    *to = (uint8_t)n;
    memcpy(to + 1, text, n);
    return to + 1 + n;
}

/* put_headers -- of a call; ret behind them. */
static uint8_t *
put_headers(uint8_t *to, const char *path)
{
    static const uint8_t content_type[] = {HEADER_CONTENT_TYPE};

    *to++ = HEADER_POST;
    *to++ = HEADER_HTTP;
    *to++ = HEADER_PATH;
    to = put_text(to, path);
    *to++ = HEADER_AUTHORITY;
    to = put_text(to, "localhost");
    memcpy(to, content_type, sizeof content_type);
    to = put_text(to + sizeof content_type, "application/grpc");
    *to++ = HEADER_NEW;
    to = put_text(to, "te");
    return put_text(to, "trailers");
}

const char *
group_grpc_open(struct grpc *g, const char *place)
{
    const uint32_t more = WINDOW_MOST - WINDOW_FIRST;
    uint8_t hello[sizeof PREFACE - 1 + 2 * FRAME_HEAD_BYTES + 4], *to = hello;
    const char *words = group_net_open(&g->net, place);

    g->stream = 1;
    g->may_send = WINDOW_FIRST;
    memcpy(to, PREFACE, sizeof PREFACE - 1);
    to = frame_head(to + sizeof PREFACE - 1, FRAME_SETTINGS, 0, 0, 0);
    to = frame_head(to, FRAME_WINDOW_UPDATE, 0, 0, 4);
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(more >> (24 - 8 * i));
    return words == NULL ? group_net_send(&g->net, hello, sizeof hello) : words;
}

void
group_grpc_close(struct grpc *g)
{
    group_net_close(&g->net);
}

/* take_data -- a part of the answer, behind its own head. */
static const char *
take_data(struct grpc *g, uint32_t n)
{
    if (g->n + n > sizeof g->answer)
        return "gRPC: a long answer";
    g->n += n;
    return group_net_receive(&g->net, g->answer + g->n - n, n);
}

/* take_control -- a frame that is no part of an answer. */
static const char *
take_control(struct grpc *g, const struct frame *f)
{
    uint8_t body[8], reply[FRAME_HEAD_BYTES + 8], *behind;
    bool asks = (f->flags & FLAG_ACK) == 0;
    size_t n = f->n < sizeof body ? f->n : sizeof body;
    const char *words = group_net_receive(&g->net, body, n);

    if (words == NULL)
        words = group_net_receive(&g->net, NULL, f->n - n);
    if (words != NULL)
        return words;
    if (f->kind == FRAME_RST_STREAM || f->kind == FRAME_GOAWAY)
        return "gRPC: the server ends the call";
    if (f->kind == FRAME_WINDOW_UPDATE && f->stream == 0 && n >= 4)
        g->may_send += big_endian(body) & WINDOW_MOST;
    if (!asks || (f->kind != FRAME_SETTINGS && f->kind != FRAME_PING))
        return NULL;
    n = f->kind == FRAME_PING ? n : 0;
    behind = frame_head(reply, f->kind, FLAG_ACK, 0, n);
    memcpy(behind, body, n);
    return group_net_send(&g->net, reply, FRAME_HEAD_BYTES + n);
}

/* take_answer -- frames until the call is over. */
static const char *
take_answer(struct grpc *g, uint32_t stream)
{
    struct frame f = {.n = 0};
    const char *words = NULL;

    g->n = 0;
    while (words == NULL
           && !(f.stream == stream && (f.flags & FLAG_END_STREAM) != 0
                && (f.kind == FRAME_DATA || f.kind == FRAME_HEADERS))) {
        uint8_t head[FRAME_HEAD_BYTES];

        words = group_net_receive(&g->net, head, sizeof head);
        if (words != NULL)
            return words;
        f = (struct frame){.n = big_endian(head) >> 8,
                           .kind = head[3],
                           .flags = head[4],
                           .stream = big_endian(head + 5) & WINDOW_MOST};
        if (f.kind == FRAME_DATA)
            words = take_data(g, f.n);
        else if (f.kind == FRAME_HEADERS)
            words = group_net_receive(&g->net, NULL, f.n);
        else
            words = take_control(g, &f);
    }
    return words;
}

const char *
group_grpc_call(struct grpc *g, const char *path, const void *message, size_t n)
{
    uint8_t call[2 * FRAME_HEAD_BYTES + 256 + MESSAGE_HEAD_BYTES + GRPC_MESSAGE_MAX];
    uint8_t *to = put_headers(call + FRAME_HEAD_BYTES, path);
    uint32_t stream = g->stream;
    const char *words;

    if (n > GRPC_MESSAGE_MAX || stream > WINDOW_MOST - 2
        || g->may_send < (int64_t)(MESSAGE_HEAD_BYTES + n))
        return "gRPC: no room for a call";
    g->may_send -= (int64_t)(MESSAGE_HEAD_BYTES + n);
    g->stream += 2;
    (void)frame_head(call, FRAME_HEADERS, FLAG_END_HEADERS, stream,
                     (size_t)(to - call) - FRAME_HEAD_BYTES);
    to = frame_head(to, FRAME_DATA, FLAG_END_STREAM, stream, MESSAGE_HEAD_BYTES + n);
    *to++ = 0; /* not compressed */
    for (unsigned i = 0; i < 4; i++)
        *to++ = (uint8_t)(n >> (24 - 8 * i));
    memcpy(to, message, n);
    words = group_net_send(&g->net, call, (size_t)(to - call) + n);
    if (words == NULL)
        words = take_answer(g, stream);
    if (words != NULL)
        return words;
    if (g->n < MESSAGE_HEAD_BYTES || g->answer[0] != 0
        || big_endian(g->answer + 1) != g->n - MESSAGE_HEAD_BYTES)
        return group_net_words(path, "the server refuses");
    g->n -= MESSAGE_HEAD_BYTES;
    memmove(g->answer, g->answer + MESSAGE_HEAD_BYTES, g->n);
    return NULL;
}
