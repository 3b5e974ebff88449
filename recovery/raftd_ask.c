/* SPDX-License-Identifier: MIT */
/*
 * raftd_ask.c -- see raftd_ask.h.
 */
#include <config.h>

#include "raftd_ask.h"

#include <errno.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"

/* get -- a valid frame (2). */
static int
get(struct raftd_line *line, struct xac_raftd_ask *out, uint64_t until_ns)
{
    struct xac_raftd_ask frame;
    int rc = ship_channel_get(&line->c, &frame, sizeof frame, until_ns);

    if (rc != 0)
        return rc;
    if (frame.magic != XAC_RAFTD_ASK_MAGIC || frame.reserved != 0)
        return xac_err_whole(XAC_EFOREIGN,
                             "node %u has sent what is no request and no answer",
                             line->node);
    *out = frame;
    return 0;
}

int
raftd_ask(struct raftd_line *line, const struct xac_raftd_ask *ask,
          struct xac_raftd_ask *answer, uint64_t until_ns)
{
    struct xac_raftd_ask frame = *ask, got;
    int rc;

    xac_assert(line->want == RAFTD_WANT_ASK);
    frame.magic = XAC_RAFTD_ASK_MAGIC;
    frame.serial = ++line->serial;
    frame.status = frame.reserved = 0;
    rc = ship_channel_put(&line->c, &frame, sizeof frame, until_ns);
    if (rc == 0)
        rc = get(line, &got, until_ns);
    if (rc != 0)
        return rc;
    if (got.serial != frame.serial || got.kind != frame.kind)
        return xac_err_whole(XAC_EFOREIGN, "node %u has answered something else",
                             line->node); /* (1) */
    *answer = got;
    return 0;
}

int
raftd_ask_await(struct raftd_line *line, struct xac_raftd_ask *ask, uint64_t until_ns)
{
    int rc = get(line, ask, until_ns);

    xac_assert(line->want == RAFTD_WANT_ASK);
    return rc == ETIMEDOUT ? xac_err_whole(EPIPE, "node %u asks nothing more", line->node)
                           : rc;
}

int
raftd_ask_answer(struct raftd_line *line, const struct xac_raftd_ask *ask,
                 uint32_t status, const uint64_t value[XAC_RAFTD_ASK_VALUES],
                 uint64_t until_ns)
{
    struct xac_raftd_ask frame = {.magic = XAC_RAFTD_ASK_MAGIC,
                                  .kind = ask->kind,
                                  .serial = ask->serial,
                                  .status = status};

    xac_assert(line->want == RAFTD_WANT_ASK);
    memcpy(frame.value, value, sizeof frame.value);
    return ship_channel_put(&line->c, &frame, sizeof frame, until_ns);
}
