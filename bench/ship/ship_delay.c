/* SPDX-License-Identifier: MIT */
/*
 * ship_delay.c -- a network with a delay, where the kernel has none (tc netem).
 *
 *   ship_delay PORT HOST PORT MICROSECONDS [NAMESPACE]
 *                  listens at 127.0.0.1:PORT, and carries each connection to the other address, each byte so late, in both
 *                  directions, in order; the other address is one of a network namespace of ip-netns(8), if it is given
 *
 * It does not make the connection narrower: what waits lies in memory, up to WINDOW bytes in each direction, as much as a
 * fast network has under way.
 */
#define _GNU_SOURCE
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES 65536u
#define PIECES      256u
#define WINDOW      (PIECES * PIECE_BYTES)

/* Bytes that have come together, and when they may go on. */
struct piece {
    uint64_t due_ns;
    size_t n, sent;
    uint8_t bytes[PIECE_BYTES];
};

/* One direction: pieces [first, first + n), in a ring. */
struct way {
    int from, to;
    bool is_over;  /* nothing more comes                                               */
    bool is_ended; /* and the other side has been told                                 */
    size_t first, n;
    struct piece *piece;
};

static _Noreturn void
die(const char *what)
{
    fprintf(stderr, "ship_delay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* take -- what has come. */
static void
take(struct way *w, uint64_t delay_ns)
{
    struct piece *p = &w->piece[(w->first + w->n) % PIECES];
    ssize_t n = recv(w->from, p->bytes, sizeof p->bytes, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        w->is_over = true;
        return;
    }
    p->due_ns = now_ns() + delay_ns;
    p->n = (size_t)n;
    p->sent = 0;
    w->n++;
}

/* give -- what is due; ret false: nobody takes it any more. */
static bool
give(struct way *w)
{
    while (w->n > 0 && w->piece[w->first].due_ns <= now_ns()) {
        struct piece *p = &w->piece[w->first];
        ssize_t n =
            send(w->to, p->bytes + p->sent, p->n - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->sent += (size_t)n;
        if (p->sent < p->n)
            return true;
        w->first = (w->first + 1) % PIECES;
        w->n--;
    }
    return true;
}

/* wait_for -- something to do, of two ways. */
static void
wait_for(struct way way[2])
{
    struct pollfd p[2] = {{.fd = way[0].from}, {.fd = way[1].from}};
    uint64_t now = now_ns(), wait_ns = UINT64_C(1000000000);
    struct timespec t;

    for (int i = 0; i < 2; i++) {
        struct way *w = &way[i];
        const struct piece *next = &w->piece[w->first];

        if (!w->is_over && w->n < PIECES)
            p[i].events |= POLLIN;
        if (w->n > 0 && next->due_ns <= now)
            p[1 - i].events |= POLLOUT; /* it did not take all */
        else if (w->n > 0 && next->due_ns - now < wait_ns)
            wait_ns = next->due_ns - now;
    }
    for (int i = 0; i < 2; i++) {
        if (p[i].events == 0)
            p[i].fd = -1;
    }
    t = (struct timespec){.tv_sec = (time_t)(wait_ns / 1000000000u),
                          .tv_nsec = (long)(wait_ns % 1000000000u)};
    (void)ppoll(p, 2, &t, NULL);
}

/* carry -- one connection, until both sides have gone and all has been given. */
static void
carry(int a, int b, uint64_t delay_ns)
{
    struct way way[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    bool goes_on = true;

    for (int i = 0; i < 2; i++) {
        way[i].piece = (struct piece *)calloc(PIECES, sizeof(struct piece));
        if (way[i].piece == NULL)
            die("memory");
    }
    while (goes_on) {
        wait_for(way);
        for (int i = 0; i < 2; i++) {
            if (!way[i].is_over && way[i].n < PIECES)
                take(&way[i], delay_ns);
            goes_on = goes_on && give(&way[i]);
            if (!way[i].is_ended && way[i].is_over && way[i].n == 0) {
                way[i].is_ended = true;
                (void)shutdown(way[i].to, SHUT_WR);
            }
        }
        goes_on = goes_on && !(way[0].is_ended && way[1].is_ended);
    }
}

static struct sockaddr_in
address(const char *host, const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};

    if (inet_pton(AF_INET, host, &at.sin_addr) != 1) {
        errno = EINVAL;
        die(host);
    }
    return at;
}

static void
set_no_delay(int fd)
{
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* serve -- in a process of its own: a connection that has come. */
static _Noreturn void
serve(int a, const struct sockaddr_in *to, uint64_t delay_ns)
{
    int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* a millisecond is no two */
    if (b < 0)
        die("socket");
    if (connect(b, (const struct sockaddr *)to, sizeof *to) != 0)
        _exit(0); /* and so he is cut off */
    set_no_delay(a);
    set_no_delay(b);
    carry(a, b, delay_ns);
    _exit(0);
}

/* enter -- from now on connections are made in that network namespace. */
static void
enter(const char *name)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "/run/netns/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        die(path);
    (void)close(fd);
}

int
main(int argc, char **argv)
{
    struct sockaddr_in at, to;
    uint64_t delay_ns;
    int listener, one = 1;

    if (argc != 5 && argc != 6) {
        fputs("usage: ship_delay PORT HOST PORT MICROSECONDS [NAMESPACE]\n", stderr);
        return 2;
    }
    at = address("127.0.0.1", argv[1]);
    to = address(argv[2], argv[3]);
    delay_ns = strtoull(argv[4], NULL, 10) * 1000;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        die("socket");
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0
        || listen(listener, 16) != 0)
        die(argv[1]);
    if (argc == 6)
        enter(argv[5]);             /* the listener stays where it is */
    (void)signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
    for (;;) {
        int a = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (a < 0 && errno != EINTR && errno != ECONNABORTED)
            die("accept");
        if (a >= 0 && fork() == 0)
            serve(a, &to, delay_ns);
        if (a >= 0)
            (void)close(a);
    }
}
