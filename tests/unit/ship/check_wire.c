/* SPDX-License-Identifier: MIT */
/*
 * check_wire.c -- frames between a source and its standby (libxac/ship/wire.h, wire_format.h).
 *
 * GOAL    What one side has sent the other one gets, in order, whatever pieces it comes in, over pipes and
 *         sockets, and though both send at the same time.  Whatever else comes is refused with words, and no
 *         byte of it is used.
 * METHOD  Frames of all types and lengths.  Each bit of a frame is turned; each length that no frame can have
 *         is given right checksums; frames are left out, doubled and cut.  Streams with random damage, from a
 *         seed that is printed.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/digest.h"
#include "base/err.h"
#include "ship/wire.h"

#define FRAMES 300u

/* Two ends of a connection: what one sends the other one receives. */
struct ends {
    struct xac_wire a, b;
    int fd[4];
};

/* connect_ends -- by pipes or by sockets. */
static void
connect_ends(struct ends *e, bool by_sockets)
{
    int there[2], back[2];

    if (by_sockets) {
        must_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, there));
        must_ok(xac_wire_open(&e->a, there[0], there[0]));
        must_ok(xac_wire_open(&e->b, there[1], there[1]));
        memcpy(e->fd, (int[]){there[0], there[1], -1, -1}, sizeof e->fd);
        return;
    }
    must_ok(pipe(there));
    must_ok(pipe(back));
    must_ok(xac_wire_open(&e->a, back[0], there[1]));
    must_ok(xac_wire_open(&e->b, there[0], back[1]));
    memcpy(e->fd, (int[]){back[0], there[1], there[0], back[1]}, sizeof e->fd);
}

static void
close_ends(struct ends *e)
{
    xac_wire_close(&e->a);
    xac_wire_close(&e->b);
    for (int i = 0; i < 4; i++) {
        if (e->fd[i] >= 0)
            (void)close(e->fd[i]);
    }
}

/* Bytes of a body, which depend on the number of the frame. */
static uint8_t body[XAC_WIRE_BODY_MAX];

/* length_of -- of the i-th frame: small ones, some large ones. */
static size_t
length_of(unsigned i)
{
    return i % 41 == 40 ? XAC_WIRE_BODY_MAX - 8 - i : 1 + i * 7919u % 3000;
}

static void
put_frame(struct xac_wire *w, unsigned i)
{
    struct xac_wire_log head = {.lsn = i};
    size_t n = length_of(i);

    memset(body, (int)(i & 0xff), n);
    must_ok(xac_wire_put(w, XAC_WIRE_LOG, &head, sizeof head, body, n));
}

static void
must_be_frame(const struct xac_wire_frame *f, unsigned i)
{
    const struct xac_wire_log *head = (const struct xac_wire_log *)f->body;
    size_t n = length_of(i);

    must_eq(f->type, XAC_WIRE_LOG);
    must_eq(f->n, sizeof *head + n);
    must_eq(head->lsn, i);
    must_eq((uintptr_t)f->body % 8, 0);
    memset(body, (int)(i & 0xff), n);
    must(memcmp(head + 1, body, n) == 0);
}

/* hear -- take what has come; *np is the number of the next frame. */
static void
hear(struct xac_wire *w, unsigned timeout_ms, unsigned *np)
{
    struct xac_wire_frame f;

    do {
        must_ok(xac_wire_get(w, timeout_ms, &f));
        if (f.type != XAC_WIRE_NONE)
            must_be_frame(&f, (*np)++);
    } while (f.type != XAC_WIRE_NONE && *np < FRAMES);
}

/* talk -- send all frames and receive all of the other side's. */
static void
talk(void *arg)
{
    struct xac_wire *w = (struct xac_wire *)arg;
    unsigned heard = 0;

    for (unsigned i = 0; i < FRAMES; i++) {
        put_frame(w, i);
        hear(w, 0, &heard);
    }
    must_ok(xac_wire_flush(w));
    while (heard < FRAMES)
        hear(w, 1000, &heard);
}

START_TEST(frames_arrive_though_both_sides_send)
{
    struct ends e;
    pid_t pid;

    connect_ends(&e, _i == 1);
    pid = proc_spawn(talk, &e.b);
    talk(&e.a);
    proc_join(pid);
    close_ends(&e);
}
END_TEST

/* ---- What is refused ------------------------------------------------------------------ */

/* make_frame -- with right checksums; ret its length. */
static size_t
make_frame(uint8_t *to, uint32_t type, uint32_t number, size_t n)
{
    struct xac_wire_head h = {.magic = XAC_WIRE_MAGIC,
                              .type = (uint16_t)type,
                              .length = (uint32_t)n,
                              .number = number};

    for (size_t i = 0; i < n; i++)
        to[sizeof h + i] = (uint8_t)(i * 31 + type);
    h.body_check = xac_xxh64(to + sizeof h, n);
    h.head_check = xac_xxh64(&h, offsetof(struct xac_wire_head, head_check));
    memcpy(to, &h, sizeof h);
    return sizeof h + n;
}

/* again -- the checks of a head that has been changed. */
static void
again(uint8_t *frame)
{
    struct xac_wire_head h;

    memcpy(&h, frame, sizeof h);
    h.head_check = xac_xxh64(&h, offsetof(struct xac_wire_head, head_check));
    memcpy(frame, &h, sizeof h);
}

START_TEST(each_turned_bit_is_refused)
{
    static _Alignas(8) uint8_t buf[256];
    struct xac_wire_frame f;
    size_t used, n = make_frame(buf, XAC_WIRE_LOG, 7, 64);

    must_ok(xac_wire_decode(buf, n, 7, &f, &used));
    must_eq(used, n);
    must_eq(f.type, XAC_WIRE_LOG);
    for (size_t bit = 0; bit < n * 8; bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        must_refuse(xac_wire_decode(buf, n, 7, &f, &used), XAC_EDAMAGED);
        must_eq(f.type, XAC_WIRE_NONE);
        must_eq(used, 0);
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t part = 0; part < n; part++) {
        must_ok(xac_wire_decode(buf, part, 7, &f, &used));
        must_eq(f.type, XAC_WIRE_NONE);
        must_eq(used, 0);
    }
    must_refuse(xac_wire_decode(buf, n, 6, &f, &used), XAC_EDAMAGED);
    must_refuse(xac_wire_decode(buf, n, 8, &f, &used), XAC_EDAMAGED);
}
END_TEST

START_TEST(wrong_fields_with_right_checksums_are_refused)
{
    static _Alignas(8) uint8_t buf[4096 + 64];
    struct xac_wire_head *h = (struct xac_wire_head *)(void *)buf;
    struct xac_wire_frame f;
    size_t used, n;

    n = make_frame(buf, XAC_WIRE_LOG, 0, 64);
    h->reserved = 1;
    again(buf);
    must_refuse(xac_wire_decode(buf, n, 0, &f, &used), XAC_EDAMAGED);
    /* A length that is too large is refused before its bytes have come. */
    make_frame(buf, XAC_WIRE_LOG, 0, 64);
    h->length = XAC_WIRE_BODY_MAX + 1;
    again(buf);
    must_refuse(xac_wire_decode(buf, sizeof *h, 0, &f, &used), XAC_EDAMAGED);
    h->length = UINT32_MAX;
    again(buf);
    must_refuse(xac_wire_decode(buf, sizeof *h, 0, &f, &used), XAC_EDAMAGED);
    n = make_frame(buf, 0, 0, 64);
    must_refuse(xac_wire_decode(buf, n, 0, &f, &used), XAC_EDAMAGED);
    n = make_frame(buf, XAC_WIRE_TYPES, 0, 64);
    must_refuse(xac_wire_decode(buf, n, 0, &f, &used), XAC_EDAMAGED);
    memcpy(buf, "SSH-2.0-", 8);
    must_refuse(xac_wire_decode(buf, 8, 0, &f, &used), XAC_EDAMAGED);
}
END_TEST

/* fixed_length -- of a type that has one length; SIZE_MAX of others. */
static size_t
fixed_length(uint32_t type)
{
    return type == XAC_WIRE_HELLO    ? 96
           : type == XAC_WIRE_COPIED ? 576
           : type == XAC_WIRE_TURN   ? 64
           : type == XAC_WIRE_BEAT   ? 16
           : type == XAC_WIRE_ACK    ? 24
           : type == XAC_WIRE_END    ? 0
           : type == XAC_WIRE_WANTED ? 0
           : type == XAC_WIRE_FROM   ? 80
                                     : SIZE_MAX;
}

/* least_length -- of the others. */
static size_t
least_length(uint32_t type)
{
    return type == XAC_WIRE_FILE    ? 17
           : type == XAC_WIRE_PIECE ? 9
           : type == XAC_WIRE_NOTE  ? 16
           : type == XAC_WIRE_DATA  ? 16
           : type == XAC_WIRE_LOG   ? 9
           : type == XAC_WIRE_LINES ? 0
           : type == XAC_WIRE_WANT  ? 24
                                    : 4;
}

START_TEST(each_type_has_its_lengths)
{
    static _Alignas(8) uint8_t buf[4096];
    struct xac_wire_frame f;
    size_t used;

    for (uint32_t type = XAC_WIRE_HELLO; type < XAC_WIRE_TYPES; type++) {
        for (size_t n = 0; n < 700; n++) {
            size_t bytes = make_frame(buf, type, 3, n), fixed = fixed_length(type);
            bool is_right = fixed != SIZE_MAX ? n == fixed : n >= least_length(type);

            must_rc(xac_wire_decode(buf, bytes, 3, &f, &used),
                    is_right ? 0 : XAC_EDAMAGED);
            must_eq(used, is_right ? bytes : 0);
        }
    }
}
END_TEST

START_TEST(random_streams_are_refused_or_right)
{
    static _Alignas(8) uint8_t stream[1 << 16], buf[1 << 16];
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 20000);

    for (uint64_t round = 0; round < rounds; round++) {
        size_t n = 0, at = 0, from, len;
        uint32_t number = 0, right = 0;
        bool is_damaged;
        int rc = 0;

        while (n < 4000)
            n += make_frame(stream + n, XAC_WIRE_LOG, number++,
                            8 * (2 + rnd_below(&seed, 60)));
        memcpy(buf, stream, n);
        from = rnd_below(&seed, n);
        len = 1 + rnd_below(&seed, 40);
        if (len > n - from)
            len = n - from;
        for (size_t i = 0; i < len; i++)
            buf[from + i] = (uint8_t)rnd_next(&seed);
        is_damaged = memcmp(buf, stream, n) != 0;
        for (size_t used = 1; rc == 0 && used != 0 && at < n;) {
            struct xac_wire_frame f;

            rc = xac_wire_decode(buf + at, n - at, right, &f, &used);
            /* What is handed out is what was sent. */
            if (rc == 0 && used != 0) {
                must(memcmp(stream + at, buf + at, used) == 0);
                right++;
            }
            at += used;
        }
        must(is_damaged ? rc == XAC_EDAMAGED && right < number : rc == 0 && at == n);
    }
}
END_TEST

/* ---- Ends ----------------------------------------------------------------------------- */

START_TEST(the_other_side_is_told_why)
{
    struct xac_wire_frame f;
    struct ends e;

    connect_ends(&e, _i == 1);
    put_frame(&e.a, 0);
    xac_wire_say(&e.a, xac_err(ENOSPC, "disk\033[31m of the standby"));
    must_ok(xac_wire_get(&e.b, 1000, &f));
    must_be_frame(&f, 0);
    must_rc(xac_wire_get(&e.b, 1000, &f), ENOSPC);
    must(strncmp(xac_err_text(), "the other side: disk", 20) == 0);
    must(strchr(xac_err_text(), '\033') == NULL);
    close_ends(&e);
}
END_TEST

START_TEST(a_cut_connection_is_an_error)
{
    struct xac_wire_frame f;
    struct ends e;
    int rc = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    connect_ends(&e, _i == 1);
    must_ok(xac_wire_get(&e.b, 10, &f));
    must_eq(f.type, XAC_WIRE_NONE);
    must(!xac_wire_is_waiting(&e.b));
    put_frame(&e.a, 0);
    must_ok(xac_wire_flush(&e.a));
    must(xac_wire_is_waiting(&e.b));
    must_eq(write(e.a.out, "XSHP", 4), 4); /* a part of a frame */
    (void)close(e.fd[0]);
    if (_i == 0)
        (void)close(e.fd[1]);
    must_ok(xac_wire_get(&e.b, 1000, &f));
    must_be_frame(&f, 0);
    must_refuse(xac_wire_get(&e.b, 1000, &f), EPIPE);
    for (unsigned i = 0; i < 4 && rc == 0; i++) {
        put_frame(&e.b, 1);
        rc = xac_wire_flush(&e.b);
    }
    must_eq(rc, EPIPE);
    e.fd[0] = -1;
    if (_i == 0)
        e.fd[1] = -1;
    close_ends(&e);
}
END_TEST

START_TEST(lines_of_generations_are_checked)
{
    struct xac_lineage_line line = {.generation = 3,
                                    .previous = 2,
                                    .start_lsn = 8192,
                                    .end_lsn = 8000,
                                    .segment_bytes = 65536,
                                    .branch = {1, 2, 3}},
                            got;
    struct xac_wire_line w, bad;

    xac_wire_line_put(&line, &w);
    must(xac_wire_line_get(&w, &got));
    must(memcmp(&got, &line, sizeof got) == 0);
    for (size_t i = 0; i < 8; i++) {
        bad = w;
        switch (i) {
        case 0:
            bad.generation = 0;
            break;
        case 1:
            bad.generation = UINT32_MAX;
            break;
        case 2:
            bad.previous = 3;
            break;
        case 3:
            bad.start_lsn = 8200;
            break;
        case 4:
            bad.end_lsn = 8200;
            break;
        case 5:
            bad.end_lsn = 8001;
            break;
        case 6:
            bad.segment_bytes = 65535;
            break;
        default:
            bad.reserved[15] = 1;
            break;
        }
        must(!xac_wire_line_get(&bad, &got));
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("wire");
    TCase *t = env_tcase(s, "wire", 100);

    tcase_add_loop_test(t, frames_arrive_though_both_sides_send, 0, 2);
    tcase_add_test(t, each_turned_bit_is_refused);
    tcase_add_test(t, wrong_fields_with_right_checksums_are_refused);
    tcase_add_test(t, each_type_has_its_lengths);
    tcase_add_test(t, random_streams_are_refused_or_right);
    tcase_add_loop_test(t, the_other_side_is_told_why, 0, 2);
    tcase_add_loop_test(t, a_cut_connection_is_an_error, 0, 2);
    tcase_add_test(t, lines_of_generations_are_checked);
    return env_main(s);
}
