/* SPDX-License-Identifier: MIT */
/*
 * wire.c -- see wire.h.
 */
#include <config.h>

#include "ship/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"

/* So much is gathered before it is sent. */
#define SEND_BYTES ((size_t)256 << 10)

/* A pipe that can be written takes so many bytes without blocking. */
#define PIPE_BYTES ((size_t)4096)

/* What an ERROR frame waits for at most. */
#define SAY_MS 1000

#define GONE "the other side has ended, or the connection has been cut"

/* ---- Frames ------------------------------------------------------------------------- */

/* Lengths that a body can have. */
static const struct {
    uint32_t least, most;
} sizes[XAC_WIRE_TYPES] = {
    [XAC_WIRE_NONE] = {1, 0}, /* none */
    [XAC_WIRE_HELLO] = {sizeof(struct xac_wire_hello), sizeof(struct xac_wire_hello)},
    [XAC_WIRE_FILE] = {sizeof(struct xac_wire_file) + 1,
                       sizeof(struct xac_wire_file) + XAC_WIRE_PATH_MAX},
    [XAC_WIRE_PIECE] = {sizeof(struct xac_wire_piece) + 1, XAC_WIRE_BODY_MAX},
    [XAC_WIRE_COPIED] = {sizeof(struct xac_wire_copied), sizeof(struct xac_wire_copied)},
    [XAC_WIRE_NOTE] = {sizeof(struct xac_wire_note), XAC_WIRE_BODY_MAX},
    [XAC_WIRE_DATA] = {sizeof(struct xac_wire_data), XAC_WIRE_BODY_MAX},
    [XAC_WIRE_LOG] = {sizeof(struct xac_wire_log) + 1, XAC_WIRE_BODY_MAX},
    [XAC_WIRE_TURN] = {sizeof(struct xac_wire_line), sizeof(struct xac_wire_line)},
    [XAC_WIRE_BEAT] = {sizeof(struct xac_wire_beat), sizeof(struct xac_wire_beat)},
    [XAC_WIRE_ACK] = {sizeof(struct xac_wire_ack), sizeof(struct xac_wire_ack)},
    [XAC_WIRE_END] = {0, 0},
    [XAC_WIRE_ERROR] = {sizeof(struct xac_wire_error),
                        sizeof(struct xac_wire_error) + XAC_WIRE_WORDS_MAX},
    [XAC_WIRE_LINES] = {0, XAC_LINEAGE_LINES * sizeof(struct xac_wire_line)},
    [XAC_WIRE_WANT] = {sizeof(struct xac_wire_want) + 8, XAC_WIRE_BODY_MAX},
    [XAC_WIRE_WANTED] = {0, 0},
    [XAC_WIRE_FROM] = {sizeof(struct xac_wire_from), sizeof(struct xac_wire_from)},
};

static uint64_t
head_check(const struct xac_wire_head *h)
{
    return xac_xxh64(h, offsetof(struct xac_wire_head, head_check));
}

/* is_length -- can a frame of that type have such a body? */
static bool
is_length(uint32_t type, uint64_t n)
{
    return type < XAC_WIRE_TYPES && n >= sizes[type].least && n <= sizes[type].most;
}

/* bad -- what has come is no frame. */
static int
bad(uint32_t number, const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "frame %u of the other side: %s", number, why);
}

/* head_bad -- why a head is not right; NULL if it is. */
static const char *
head_bad(const struct xac_wire_head *h, uint32_t number)
{
    xac_assert(h != NULL);
    if (h->magic != XAC_WIRE_MAGIC)
        return "it does not speak the protocol of xship";
    if (h->head_check != head_check(h))
        return "checksum of its head";
    if (h->number != number)
        return "frames before it are missing, or come twice";
    if (h->reserved != 0 || !is_length(h->type, h->length))
        return "it has a type or a length that no frame can have";
    return NULL;
}

int
xac_wire_decode(const uint8_t *buf, size_t n, uint32_t number, struct xac_wire_frame *out,
                size_t *usedp)
{
    struct xac_wire_head h;
    const char *why;

    xac_assert((uintptr_t)buf % 8 == 0);
    *out = (struct xac_wire_frame){.type = XAC_WIRE_NONE};
    *usedp = 0;
    if (n < sizeof h) /* a stranger may never send so much */
        return n >= sizeof h.magic && memcmp(buf, &(uint32_t){XAC_WIRE_MAGIC}, 4) != 0
                   ? bad(number, "it does not speak the protocol of xship")
                   : 0;
    memcpy(&h, buf, sizeof h);
    why = head_bad(&h, number);
    if (why != NULL)
        return bad(number, why);
    if (n - sizeof h < h.length)
        return 0;
    if (h.body_check != xac_xxh64(buf + sizeof h, h.length))
        return bad(number, "checksum of its body");
    *out = (struct xac_wire_frame){.type = (enum xac_wire_type)h.type,
                                   .body = buf + sizeof h,
                                   .n = h.length};
    *usedp = sizeof h + h.length;
    xac_assert(*usedp <= n);
    return 0;
}

void
xac_wire_line_put(const struct xac_lineage_line *line, struct xac_wire_line *to)
{
    xac_assert(sizeof to->branch == sizeof line->branch);
    *to = (struct xac_wire_line){.generation = line->generation,
                                 .previous = line->previous,
                                 .start_lsn = line->start_lsn,
                                 .end_lsn = line->end_lsn,
                                 .segment_bytes = line->segment_bytes};
    memcpy(to->branch, line->branch, sizeof to->branch);
}

bool
xac_wire_line_get(const struct xac_wire_line *from, struct xac_lineage_line *line)
{
    *line = (struct xac_lineage_line){.generation = from->generation,
                                      .previous = from->previous,
                                      .start_lsn = from->start_lsn,
                                      .end_lsn = from->end_lsn,
                                      .segment_bytes = from->segment_bytes};
    memcpy(line->branch, from->branch, sizeof line->branch);
    xac_assert(line->generation == from->generation);
    return xac_bytes_are_zero(from->reserved, sizeof from->reserved)
           && xac_lineage_is_sound(line);
}

/* ---- Life --------------------------------------------------------------------------- */

int
xac_wire_open(struct xac_wire *w, int in, int out)
{
    xac_assert(in >= 0);
    xac_assert(out >= 0);
    *w = (struct xac_wire){.in = in, .out = out};
    w->in_buf = (uint8_t *)malloc(XAC_WIRE_ROOM);
    w->out_buf = (uint8_t *)malloc(XAC_WIRE_ROOM);
    return w->in_buf != NULL && w->out_buf != NULL
               ? 0
               : xac_err(ENOMEM, "buffers of the connection");
}

void
xac_wire_close(struct xac_wire *w)
{
    xac_assert(w->in_at <= w->in_n);
    free(w->in_buf);
    free(w->out_buf);
    w->in_buf = w->out_buf = NULL;
}

/* ---- Receiving ---------------------------------------------------------------------- */

/* receive -- take in what has come, without waiting for more; the descriptor can be read. */
static int
receive(struct xac_wire *w)
{
    ssize_t n;

    if (w->in_at > 0) {
        memmove(w->in_buf, w->in_buf + w->in_at, w->in_n - w->in_at);
        w->in_n -= w->in_at;
        w->in_at = 0;
    }
    xac_assert(w->in_n < XAC_WIRE_ROOM); /* a frame that is complete has been taken */
    n = xac_sys.read(w->in, w->in_buf + w->in_n, XAC_WIRE_ROOM - w->in_n);
    /* A socket says once that the other side has not read all; what that one has sent comes then. */
    if (n < 0 && errno == ECONNRESET)
        n = xac_sys.read(w->in, w->in_buf + w->in_n, XAC_WIRE_ROOM - w->in_n);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return xac_err(errno, "receiving from the other side");
    w->is_over = n <= 0;
    if (n > 0)
        w->in_n += (size_t)n;
    xac_assert(w->in_n <= XAC_WIRE_ROOM); /* (2) */
    return 0;
}

/* error_of -- the other side says why it stops. */
static int
error_of(const struct xac_wire_frame *f)
{
    struct xac_wire_error e;
    const char *words = (const char *)f->body + sizeof e;
    size_t n = f->n - sizeof e;

    xac_assert(f->n >= sizeof e);
    memcpy(&e, f->body, sizeof e);
    /* What is printed on a terminal is letters only. */
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)words[i] < ' ' || words[i] == 0x7f)
            n = i;
    }
    return xac_err_whole(e.code != 0 ? e.code : EIO, "the other side: %.*s", (int)n,
                         words);
}

/* take -- the frame that has come, if it is complete. */
static int
take(struct xac_wire *w, struct xac_wire_frame *out)
{
    size_t used;
    int rc;

    /* Bodies are 8-aligned if their frame is; a receive() moves it to the beginning. */
    if (w->in_at % 8 != 0) {
        memmove(w->in_buf, w->in_buf + w->in_at, w->in_n - w->in_at);
        w->in_n -= w->in_at;
        w->in_at = 0;
    }
    rc = xac_wire_decode(w->in_buf + w->in_at, w->in_n - w->in_at, w->got, out, &used);
    xac_assert(used <= w->in_n - w->in_at);
    if (rc != 0 || used == 0)
        return rc;
    w->in_at += used;
    w->got++;
    return out->type == XAC_WIRE_ERROR ? error_of(out) : 0;
}

int
xac_wire_get(struct xac_wire *w, unsigned timeout_ms, struct xac_wire_frame *out)
{
    struct pollfd p = {.fd = w->in, .events = POLLIN};
    int rc;

    xac_assert(w->in_buf != NULL);
    for (;;) {
        rc = take(w, out);
        if (rc != 0 || out->type != XAC_WIRE_NONE)
            return rc;
        if (w->is_over)
            return xac_err(EPIPE, GONE);
        rc = poll(&p, 1, (int)timeout_ms);
        if (rc == 0 || (rc < 0 && errno == EINTR))
            return 0;
        if (rc < 0)
            return xac_err(errno, "waiting for the other side");
        rc = receive(w);
        if (rc != 0)
            return rc;
    }
}

bool
xac_wire_is_waiting(const struct xac_wire *w)
{
    struct pollfd p = {.fd = w->in, .events = POLLIN};

    xac_assert(w->in_at <= w->in_n);
    return w->in_n > w->in_at || (!w->is_over && poll(&p, 1, 0) > 0);
}

/* ---- Sending ------------------------------------------------------------------------ */

/* send_some -- without blocking; ret bytes, 0: it would block; -1. */
static ssize_t
send_some(const struct xac_wire *w, const uint8_t *bytes, size_t n)
{
    ssize_t sent = send(w->out, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

    xac_assert(n > 0);
    if (sent < 0 && errno == ENOTSOCK) {
        struct pollfd p = {.fd = w->out, .events = POLLOUT};

        if (poll(&p, 1, 0) != 1)
            return 0;
        sent = xac_sys.write(w->out, bytes, n < PIPE_BYTES ? n : PIPE_BYTES);
    }
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

/* wait_out -- until something can be sent; take in what comes meanwhile, as far as there is room. */
static int
wait_out(struct xac_wire *w, int timeout_ms)
{
    bool has_room = w->in_n - w->in_at < XAC_WIRE_ROOM && !w->is_over;
    struct pollfd p[2] = {{.fd = w->out, .events = POLLOUT},
                          {.fd = has_room ? w->in : -1, .events = POLLIN}};
    int rc;

    xac_assert(w->out_n > 0);
    rc = poll(p, 2, timeout_ms);
    if (rc == 0)
        return ETIMEDOUT;
    if (rc < 0)
        return errno == EINTR ? 0 : xac_err(errno, "waiting for the other side");
    return p[1].revents != 0 ? receive(w) : 0;
}

/* flush -- in  timeout_ms  to wait for each piece; -1 as long as it takes. */
static int
flush(struct xac_wire *w, int timeout_ms)
{
    size_t at = 0;
    int rc = 0;

    xac_assert(w->out_n <= XAC_WIRE_ROOM);
    while (rc == 0 && at < w->out_n) {
        ssize_t n = send_some(w, w->out_buf + at, w->out_n - at);

        if (n < 0)
            rc = errno == EPIPE || errno == ECONNRESET
                     ? xac_err(EPIPE, GONE)
                     : xac_err(errno, "sending to the other side");
        else if (n == 0)
            rc = wait_out(w, timeout_ms);
        else
            at += (size_t)n;
    }
    w->out_n = 0;
    return rc;
}

/* farewell -- the other side cannot be sent anything.  It may have said why it has gone. */
static int
farewell(struct xac_wire *w)
{
    struct pollfd p = {.fd = w->in, .events = POLLIN};
    struct xac_wire_frame f;
    int rc;

    xac_assert(w->out_n == 0);
    while (!w->is_over && w->in_n - w->in_at < XAC_WIRE_ROOM && poll(&p, 1, SAY_MS) > 0
           && receive(w) == 0) {
    }
    do
        rc = take(w, &f);
    while (rc == 0 && f.type != XAC_WIRE_NONE);
    return rc != 0 ? rc : xac_err(EPIPE, GONE);
}

int
xac_wire_flush(struct xac_wire *w)
{
    int rc = flush(w, -1);

    xac_assert(w->out_n == 0);
    return rc == EPIPE ? farewell(w) : rc;
}

/* add -- a frame to those that are to be sent. */
static void
add(struct xac_wire *w, enum xac_wire_type type, const void *fixed, size_t n1,
    const void *bytes, size_t n2)
{
    struct xac_wire_head h = {.magic = XAC_WIRE_MAGIC,
                              .type = (uint16_t)type,
                              .length = (uint32_t)(n1 + n2),
                              .number = w->sent};
    uint8_t *to = w->out_buf + w->out_n;

    xac_assert(is_length(type, n1 + n2));
    xac_assert(w->out_n + sizeof h + n1 + n2 <= XAC_WIRE_ROOM);
    if (n1 > 0)
        memcpy(to + sizeof h, fixed, n1);
    if (n2 > 0)
        memcpy(to + sizeof h + n1, bytes, n2);
    h.body_check = xac_xxh64(to + sizeof h, n1 + n2);
    h.head_check = head_check(&h);
    memcpy(to, &h, sizeof h);
    w->out_n += sizeof h + n1 + n2;
    w->sent++;
}

int
xac_wire_put(struct xac_wire *w, enum xac_wire_type type, const void *fixed, size_t n1,
             const void *bytes, size_t n2)
{
    xac_assert(w->out_n < SEND_BYTES);
    add(w, type, fixed, n1, bytes, n2);
    return w->out_n >= SEND_BYTES ? xac_wire_flush(w) : 0;
}

void
xac_wire_say(struct xac_wire *w, int code)
{
    struct xac_wire_error e = {.code = code};
    char words[XAC_ERR_BYTES];
    size_t n;

    (void)snprintf(words, sizeof words, "%s", xac_err_text());
    n = strlen(words);
    xac_assert(code != 0);
    xac_assert(n < XAC_WIRE_WORDS_MAX);
    if (w->out_buf == NULL)
        return;
    add(w, XAC_WIRE_ERROR, &e, sizeof e, words, n);
    /* That the other side does not hear it is not what has happened first. */
    if (flush(w, SAY_MS) != 0)
        (void)xac_err_whole(code, "%s", words);
}
