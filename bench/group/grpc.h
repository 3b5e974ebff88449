/* SPDX-License-Identifier: MIT */
/*
 * grpc.h -- calls of gRPC over HTTP/2 without TLS, one after the other, as etcd takes them.
 *
 * WHAT      A request is one message; the answer is one message, or none if the server refuses.  Answers to what HTTP/2 asks
 *           meanwhile.
 * NOT HERE  What messages mean.  Headers are sent and not read, so the server's reason for a refusal is not known.
 * ERRORS    functions return NULL, or words that stay until the next call.
 */
#ifndef XBENCH_GROUP_GRPC_H
#define XBENCH_GROUP_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "net.h"

#define GRPC_MESSAGE_MAX 4096u

struct grpc {
    struct group_net net;
    uint32_t stream;  /* of the next call                                             */
    int64_t may_send; /* bytes of messages: the server's window                       */
    size_t n;
    uint8_t answer[GRPC_MESSAGE_MAX];
};

const char *group_grpc_open(struct grpc *g, const char *place);
void group_grpc_close(struct grpc *g);

/* group_grpc_call -- in  path  "/package.Service/Method"; ret NULL, and the answer has n bytes. */
const char *group_grpc_call(struct grpc *g, const char *path, const void *message,
                            size_t n);

#endif /* XBENCH_GROUP_GRPC_H */
