/* SPDX-License-Identifier: MIT */
/*
 * dqlite_wire.h -- requests to a node of dqlite, by version 1 of its wire protocol (https://dqlite.io/docs/protocol).
 *
 * WHAT      A request is built piece by piece, sent, and its answer received; all numbers are little-endian, all pieces
 *           multiples of 8 bytes.
 * ERRORS    functions return NULL, or words that stay until the next call; group_dqlite_is_busy() tells one of them apart.
 */
#ifndef XBENCH_GROUP_DQLITE_WIRE_H
#define XBENCH_GROUP_DQLITE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net.h"

/* Kinds of requests, by their numbers in the protocol. */
enum dqlite_request {
    DQLITE_LEADER = 0,
    DQLITE_CLIENT = 1,
    DQLITE_OPEN = 3,
    DQLITE_PREPARE = 4,
    DQLITE_EXEC = 5,
    DQLITE_EXEC_SQL = 8,
    DQLITE_QUERY_SQL = 9,
    DQLITE_ADD = 12,
    DQLITE_ASSIGN = 13
};

/* Types of parameters. */
#define DQLITE_INTEGER 1
#define DQLITE_BLOB    4

#define DQLITE_MESSAGE_MAX 4096u

struct dqlite_wire {
    struct group_net net;
    size_t n;
    uint8_t message[DQLITE_MESSAGE_MAX]; /* the request, then its answer             */
    uint64_t failure;                    /* SQLite's code in the last answer; 0: none */
};

/* group_dqlite_open -- connect, and say hello. */
const char *group_dqlite_open(struct dqlite_wire *w, const char *place);
void group_dqlite_close(struct dqlite_wire *w);

/* A request: begin, its pieces, call. */
void group_dqlite_begin(struct dqlite_wire *w, enum dqlite_request kind);
void group_dqlite_u32(struct dqlite_wire *w, uint32_t v);
void group_dqlite_u64(struct dqlite_wire *w, uint64_t v);
void group_dqlite_text(struct dqlite_wire *w, const char *text);
void group_dqlite_bytes(struct dqlite_wire *w, const void *bytes, size_t n);

/* group_dqlite_call -- ret NULL, and the answer's n bytes are in w->message. */
const char *group_dqlite_call(struct dqlite_wire *w);

/* group_dqlite_is_busy -- did the last call fail because somebody else writes? */
bool group_dqlite_is_busy(const struct dqlite_wire *w);

/* group_dqlite_answer -- a number in the answer. */
uint64_t group_dqlite_answer_u64(const struct dqlite_wire *w, size_t at);

#endif /* XBENCH_GROUP_DQLITE_WIRE_H */
