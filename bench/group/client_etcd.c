/* SPDX-License-Identifier: MIT */
/*
 * client_etcd.c -- writers to a group of etcd: a connection each to the node that leads, and a Put for each record.
 *
 * Messages are those of etcd's rpc.proto, in the encoding of protocol buffers: fields with their numbers.
 */
#include <config.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"
#include "group_client.h"
#include "grpc.h"

#define PUT    "/etcdserverpb.KV/Put"
#define RANGE  "/etcdserverpb.KV/Range"
#define STATUS "/etcdserverpb.Maintenance/Status"

/* Numbers of fields. */
#define RESPONSE_HEADER 1u
#define HEADER_MEMBER   2u
#define HEADER_REVISION 3u
#define RANGE_COUNT     4u
#define STATUS_LEADER   4u

/* How a field is written. */
#define WIRE_VARINT 0u
#define WIRE_BYTES  2u

#define TAG(number, wire) ((uint8_t)((number) << 3 | (wire)))

/* ---- Reading ------------------------------------------------------------------------ */

struct bytes {
    const uint8_t *at, *end;
};

/* varint -- ret false: cut off. */
static bool
varint(struct bytes *b, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; b->at < b->end && shift < 64; shift += 7) {
        uint8_t byte = *b->at++;

        *out |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/*
 * find -- the field with a number.
 *
 * out  inner  the bytes of one that has bytes; else *valuep is its number
 * ret  false: it is not there, which is how zeros are written
 */
static bool
find(struct bytes message, unsigned number, struct bytes *inner, uint64_t *valuep)
{
    uint64_t tag, value;

    while (message.at < message.end) {
        if (!varint(&message, &tag) || !varint(&message, &value))
            return false;
        if ((tag & 7) != WIRE_VARINT && (tag & 7) != WIRE_BYTES)
            return false; /* the messages here have no others */
        *inner = (struct bytes){.at = message.at, .end = message.at};
        if ((tag & 7) == WIRE_BYTES) {
            if (value > (uint64_t)(message.end - message.at))
                return false;
            message.at += value;
            inner->end = message.at;
        }
        *valuep = value;
        if (tag >> 3 == number)
            return true;
    }
    return false;
}

static uint64_t
number_in(struct bytes message, unsigned number)
{
    struct bytes inner;
    uint64_t value;

    return find(message, number, &inner, &value) ? value : 0;
}

static struct bytes
answer(const struct grpc *g)
{
    return (struct bytes){.at = g->answer, .end = g->answer + g->n};
}

/* header -- a number of the header that each answer has. */
static uint64_t
header(const struct grpc *g, unsigned number)
{
    struct bytes inner;
    uint64_t n;

    return find(answer(g), RESPONSE_HEADER, &inner, &n) ? number_in(inner, number) : 0;
}

/* ---- The client --------------------------------------------------------------------- */

static const char *
leads(const char *place, bool *leadsp)
{
    static struct grpc g;
    const char *words = group_grpc_open(&g, place);

    if (words == NULL)
        words = group_grpc_call(&g, STATUS, "", 0);
    if (words == NULL)
        *leadsp = header(&g, HEADER_MEMBER) != 0
                  && header(&g, HEADER_MEMBER) == number_in(answer(&g), STATUS_LEADER);
    group_grpc_close(&g);
    return words;
}

static const char *
client_open(const char *place, void **handlep)
{
    struct grpc *g = (struct grpc *)calloc(1, sizeof *g);

    if (g == NULL)
        return "out of memory";
    *handlep = g;
    return group_grpc_open(g, place);
}

static const char *
put(void *handle, const void *key, const void *value)
{
    struct grpc *g = (struct grpc *)handle;
    /* Lengths of 128 and more take two bytes. */
    uint8_t message[2 + BENCH_KEY_BYTES + 3 + BENCH_VALUE_BYTES], *to = message;
    const char *words;

    *to++ = TAG(1u, WIRE_BYTES);
    *to++ = BENCH_KEY_BYTES;
    memcpy(to, key, BENCH_KEY_BYTES);
    to += BENCH_KEY_BYTES;
    *to++ = TAG(2u, WIRE_BYTES);
    *to++ = 0x80 | (BENCH_VALUE_BYTES & 0x7f);
    *to++ = BENCH_VALUE_BYTES >> 7;
    memcpy(to, value, BENCH_VALUE_BYTES);
    words = group_grpc_call(g, PUT, message, sizeof message);
    if (words == NULL && header(g, HEADER_REVISION) == 0)
        words = "etcd: an answer without a revision";
    return words;
}

static const char *
count(void *handle, uint64_t *np)
{
    /* From the least key on, to the end; only how many. */
    static const uint8_t all[] = {TAG(1u, WIRE_BYTES),  1, 0, TAG(2u, WIRE_BYTES), 1, 0,
                                  TAG(9u, WIRE_VARINT), 1};
    struct grpc *g = (struct grpc *)handle;
    const char *words = group_grpc_call(g, RANGE, all, sizeof all);

    if (words == NULL)
        *np = number_in(answer(g), RANGE_COUNT);
    return words;
}

static const char *
client_close(void *handle)
{
    group_grpc_close((struct grpc *)handle);
    free(handle);
    return NULL;
}

const struct group_client group_client_etcd = {.name = "etcd",
                                               .leads = leads,
                                               .open = client_open,
                                               .put = put,
                                               .count = count,
                                               .close = client_close};
