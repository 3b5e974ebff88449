/* SPDX-License-Identifier: MIT */
/*
 * wire.h -- frames between a source and its standby (wire_format.h), over a pair of descriptors.
 *
 * WHAT      Makes frames and sends them; receives frames and checks them.  While a side waits until
 *           it can send, it takes in what the other one sends, as far as there is room: two sides that
 *           both send do not block each other, as long as each looks at what has come.
 * NOT HERE  Which frames come when, and what they mean.
 * OWNER     struct xac_wire belongs to the caller; the descriptors do not belong to it.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) A frame is handed out only if it is valid as wire_format.h has it: nothing else that the other
 *       side has sent is looked at.
 *   (2) No length that the other side has sent is used before it has been checked, and memory grows by
 *       received bytes only: the two buffers hold at most XAC_WIRE_ROOM bytes each.
 *   (3) Frames are handed out in the order in which they were sent, none twice and none left out.
 */
#ifndef XAC_WIRE_H
#define XAC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/lineage.h"
#include "ship/wire_format.h"

/* A file, or a block, travels in pieces of so many bytes. */
#define XAC_WIRE_PIECE_BYTES ((size_t)256 << 10)

/* Two frames of the largest size. */
#define XAC_WIRE_ROOM (2 * (sizeof(struct xac_wire_head) + XAC_WIRE_BODY_MAX))

struct xac_wire {
    int in, out;
    uint32_t got, sent; /* frames                                                     */
    uint8_t *in_buf;    /* the bytes [in_at, in_n) have been received                 */
    size_t in_at, in_n;
    uint8_t *out_buf; /* out_n bytes are to be sent                                   */
    size_t out_n;
    bool is_over; /* the other side has closed its end                                */
};

/* A frame that has been received; good until the next call. */
struct xac_wire_frame {
    enum xac_wire_type type; /* NONE: there is none yet                               */
    const void *body;        /* 8-aligned                                             */
    size_t n;
};

/* xac_wire_open -- ret 0 or ENOMEM; close it in any case. */
int xac_wire_open(struct xac_wire *w, int in, int out);
void xac_wire_close(struct xac_wire *w);

/*
 * xac_wire_put -- a frame whose body consists of a fixed part and bytes behind it; it is sent when there
 * are many, or by xac_wire_flush().
 *
 * in   n1, n2  together at most XAC_WIRE_BODY_MAX
 * ret  0 or as xac_wire_flush().
 */
int xac_wire_put(struct xac_wire *w, enum xac_wire_type type, const void *fixed,
                 size_t n1, const void *bytes, size_t n2);

/* xac_wire_flush -- send what has been put; ret 0; EPIPE: the other side has gone; XAC_EDAMAGED, as
   xac_wire_get(); errno. */
int xac_wire_flush(struct xac_wire *w);

/*
 * xac_wire_get -- the next frame.
 *
 * in   timeout_ms  how long to wait for one
 * ret  0, also if none has come; EPIPE: the other side has gone; XAC_EDAMAGED: what has come is not valid;
 *      errno.  An ERROR frame gives its code, with its words.
 */
int xac_wire_get(struct xac_wire *w, unsigned timeout_ms, struct xac_wire_frame *out);

/* xac_wire_is_waiting -- has a whole frame come already, or can more bytes be received at once? */
bool xac_wire_is_waiting(const struct xac_wire *w);

/* xac_wire_say -- tell the other side that this one stops, and why; what cannot be sent at once is
   dropped.  The words are those noted last, and stay noted. */
void xac_wire_say(struct xac_wire *w, int code);

/*
 * xac_wire_decode -- look for a frame at the beginning of some bytes.
 *
 * in   buf     8-aligned
 * in   number  of the frame that must come
 * out  usedp   bytes that it has, 0: it is not complete; the bytes so far can begin one
 * ret  0 or XAC_EDAMAGED
 */
int xac_wire_decode(const uint8_t *buf, size_t n, uint32_t number,
                    struct xac_wire_frame *out, size_t *usedp);

/* xac_wire_line_put, _get -- a line for the other side, or from it; ret false: no log can have it. */
void xac_wire_line_put(const struct xac_lineage_line *line, struct xac_wire_line *to);
bool xac_wire_line_get(const struct xac_wire_line *from, struct xac_lineage_line *line);

#endif /* XAC_WIRE_H */
