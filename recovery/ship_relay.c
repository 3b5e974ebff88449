/* SPDX-License-Identifier: MIT */
/*
 * ship_relay.c -- see ship_relay.h.
 */
#include <config.h>

#include "ship_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"

#define SECOND_NS UINT64_C(1000000000)
#define HEAD      sizeof(uint32_t)
#define LOOK_MS   200

/* ---- To the other side -------------------------------------------------------------- */

/* put_record -- n bytes stand behind the head of `out`. */
static void
put_record(struct ship_relay *r, size_t n)
{
    uint32_t length = (uint32_t)n;

    xac_assert(n <= XAC_NET_RECORD_MAX);
    memcpy(r->out.bytes, &length, HEAD);
    r->out.at = 0;
    r->out.n = HEAD + n;
    r->beat_ns = xac_clock_ns();
}

/* take_local -- what the caller has written, or else a sign of life; ret whether there was something. */
static bool
take_local(struct ship_relay *r)
{
    ssize_t n = -1;

    xac_assert(r->out.at == r->out.n);
    if (!r->is_local_over) {
        n = recv(r->local, r->out.bytes + HEAD, XAC_NET_RECORD_MAX, 0);
        /* It says once that the caller has not read all; what that one has written comes then. */
        if (n < 0 && errno == ECONNRESET)
            n = recv(r->local, r->out.bytes + HEAD, XAC_NET_RECORD_MAX, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            r->is_local_over = true;
    }
    if (n > 0)
        put_record(r, (size_t)n);
    else if (xac_clock_ns() - r->beat_ns >= SECOND_NS)
        put_record(r, 0);
    return r->out.n > r->out.at;
}

/* cut -- the connection is of no more use; why is NULL if the other side has closed it. */
static void
cut(struct ship_relay *r, const char *why)
{
    xac_assert(!r->is_over);
    r->is_over = true;
    r->why = why;
}

/* send_out -- ret whether anything has been sent. */
static bool
send_out(struct ship_relay *r)
{
    ssize_t n;

    if (r->is_mute || (r->out.at == r->out.n && !take_local(r)))
        return false;
    n = ship_channel_write(r->c, r->out.bytes + r->out.at, r->out.n - r->out.at);
    /* The other side may have said before why it has gone. */
    r->is_mute = n < 0 && errno != EAGAIN && errno != EINTR;
    if (n <= 0)
        return false;
    r->out.at += (size_t)n;
    xac_assert(r->out.at <= r->out.n);
    return true;
}

/* ---- From the other side ------------------------------------------------------------ */

/* take_head -- the head of the next record, or a part of it; ret as ship_channel_read(). */
static ssize_t
take_head(struct ship_relay *r)
{
    ssize_t n = ship_channel_read(r->c, r->head + r->head_n, HEAD - r->head_n);
    uint32_t length;

    if (n <= 0)
        return n;
    r->head_n += (size_t)n;
    if (r->head_n < HEAD)
        return n;
    memcpy(&length, r->head, HEAD);
    r->head_n = 0;
    if (length > XAC_NET_RECORD_MAX) { /* (3) */
        cut(r, "the other side has sent a record that cannot be");
        return n;
    }
    r->left = length;
    return n;
}

/* take_bytes -- of the record that has begun. */
static ssize_t
take_bytes(struct ship_relay *r)
{
    ssize_t n = ship_channel_read(r->c, r->in.bytes, r->left);

    xac_assert(r->left <= sizeof r->in.bytes);
    if (n > 0) {
        r->left -= (size_t)n;
        r->in.at = 0;
        r->in.n = (size_t)n;
        if (r->check != NULL && !r->check(r->check_arg, r->in.bytes, (size_t)n)) {
            r->in.n = 0;
            cut(r, "the other side has sent a message that cannot be");
        }
    }
    return n;
}

/* give_local -- what has come; once the caller has gone it goes nowhere. */
static bool
give_local(struct ship_relay *r)
{
    ssize_t n = (ssize_t)(r->in.n - r->in.at);

    xac_assert(n > 0);
    if (!r->is_deaf)
        n = send(r->local, r->in.bytes + r->in.at, (size_t)n, MSG_NOSIGNAL);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        r->is_deaf = true;
        n = (ssize_t)(r->in.n - r->in.at);
    }
    if (n > 0)
        r->in.at += (size_t)n;
    return n > 0;
}

/* receive_in -- ret whether anything has gone on. */
static bool
receive_in(struct ship_relay *r)
{
    ssize_t n;

    if (r->in.at < r->in.n) {
        r->heard_ns = xac_clock_ns(); /* (2) */
        return give_local(r);
    }
    n = r->left > 0 ? take_bytes(r) : take_head(r);
    if (n > 0)
        r->heard_ns = xac_clock_ns();
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        cut(r, NULL);
    return n > 0;
}

/* ---- The thread --------------------------------------------------------------------- */

/* is_done -- the caller has closed its end, and all has been sent. */
static bool
is_done(const struct ship_relay *r)
{
    return r->is_local_over && (r->is_mute || r->out.at == r->out.n);
}

/* wait_more -- until something may go on, or the next sign of life is due. */
static void
wait_more(struct ship_relay *r, short write_wants)
{
    bool is_full = r->in.at < r->in.n, has_out = r->out.at < r->out.n;
    bool takes = !has_out && !r->is_mute && !r->is_local_over;
    struct pollfd p[2] = {{.fd = r->c->fd, .events = (short)(is_full ? 0 : POLLIN)},
                          {.fd = r->local,
                           .events =
                               (short)((takes ? POLLIN : 0) | (is_full ? POLLOUT : 0))}};

    if (has_out && !r->is_mute)
        p[0].events |= write_wants;
    /* One of which nothing is wanted would only say again and again that it has gone. */
    for (int i = 0; i < 2; i++) {
        if (p[i].events == 0)
            p[i].fd = -1;
    }
    (void)poll(p, 2, LOOK_MS);
}

/* linger -- what has been sent is on its way: a socket that is closed with unread bytes would throw it away. */
static void
linger(struct ship_relay *r)
{
    uint64_t until_ns = xac_clock_ns() + SHIP_LINGER_S * SECOND_NS;
    struct pollfd p = {.fd = r->c->fd, .events = POLLIN};
    ssize_t n;

    ship_channel_end(r->c);
    do {
        n = recv(r->c->fd, r->in.bytes, sizeof r->in.bytes, 0);
        if (n < 0 && errno == EAGAIN)
            (void)poll(&p, 1, LOOK_MS);
    } while ((n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
             && xac_clock_ns() < until_ns);
}

/* carry -- until one side has gone. */
static void
carry(struct ship_relay *r)
{
    bool moves = true;

    while (!r->is_over && !is_done(r)) {
        short write_wants;

        moves = send_out(r);
        write_wants = r->c->wants;
        if (!r->is_over && receive_in(r))
            moves = true;
        if (r->is_over || moves)
            continue;
        if (xac_clock_ns() - r->heard_ns >= SHIP_SILENCE_S * SECOND_NS)
            cut(r, "the other side has been silent for 10 s");
        else if (!is_done(r))
            wait_more(r, write_wants);
    }
    if (!r->is_over && !r->is_mute)
        linger(r);
    (void)shutdown(r->c->fd, SHUT_RDWR);
    (void)shutdown(r->local, SHUT_RDWR);
}

static void *
run(void *arg)
{
    carry((struct ship_relay *)arg);
    return NULL;
}

int
ship_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, was;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    rc = pthread_create(thread, NULL, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    return rc == 0 ? 0 : xac_err(rc, "a thread");
}

int
ship_relay_open(struct ship_relay *r, struct ship_channel *c)
{
    int pair[2];

    *r = (struct ship_relay){.c = c, .end = -1, .local = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return xac_err(errno, "a pair of sockets");
    r->end = pair[0];
    r->local = pair[1];
    r->beat_ns = r->heard_ns = xac_clock_ns();
    (void)fcntl(r->local, F_SETFL, O_NONBLOCK);
    return 0;
}

void
ship_relay_carry(struct ship_relay *r)
{
    carry(r);
    (void)close(r->local);
}

int
ship_relay_start(struct ship_relay *r, struct ship_channel *c)
{
    int rc = ship_relay_open(r, c);

    if (rc != 0)
        return rc;
    rc = ship_thread_start(&r->thread, run, r);
    if (rc == 0)
        return 0;
    (void)close(r->end);
    (void)close(r->local);
    return rc;
}

void
ship_relay_end(struct ship_relay *r)
{
    (void)close(r->end);
    (void)pthread_join(r->thread, NULL);
    (void)close(r->local);
}
