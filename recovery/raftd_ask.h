/* SPDX-License-Identifier: MIT */
/*
 * raftd_ask.h -- requests to another node, and its answers: frames of a fixed size on a line that wants ASK
 * (raftd_net_format.h).
 *
 * WHAT      Sends a request and waits for its answer; at the other end waits for requests and answers them.
 * NOT HERE  What is asked: that is for the caller and the handler.
 * OWNER     Lines and frames are the caller's.
 * THREADS   one at a time for each line.
 *
 * INVARIANTS
 *   (1) An answer has the kind and the serial of its request.
 *   (2) A frame is used after it has been found valid.
 */
#ifndef XAC_RAFTD_ASK_H
#define XAC_RAFTD_ASK_H

#include <stdint.h>

#include "raftd_net.h"

/*
 * raftd_ask -- have a request answered.
 *
 * in   ask     kind and values; the rest is filled in
 * out  answer  its status is the other node's
 * ret  0; XAC_EFOREIGN: what comes is no answer to it; as ship_channel_get(), words noted.  Then hang up.
 */
int raftd_ask(struct raftd_line *line, const struct xac_raftd_ask *ask,
              struct xac_raftd_ask *answer, uint64_t until_ns);

/*
 * raftd_ask_await -- the next request of the other node.
 *
 * ret  0; EPIPE: it has hung up, or nothing has come by then; XAC_EFOREIGN: what comes is no request; as
 *      ship_channel_get(), words noted.
 */
int raftd_ask_await(struct raftd_line *line, struct xac_raftd_ask *ask,
                    uint64_t until_ns);

/* raftd_ask_answer -- a request.  in  status, value  XAC_RAFTD_ASK_VALUES of them.  ret 0; as ship_channel_put(), words
   noted. */
int raftd_ask_answer(struct raftd_line *line, const struct xac_raftd_ask *ask,
                     uint32_t status, const uint64_t value[XAC_RAFTD_ASK_VALUES],
                     uint64_t until_ns);

#endif /* XAC_RAFTD_ASK_H */
