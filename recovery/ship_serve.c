/* SPDX-License-Identifier: MIT */
/*
 * ship_serve.c -- see ship_net.h: the source's side.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "ship_net.h"
#include "ship_relay.h"
#include "tool.h"

#define SECOND_NS UINT64_C(1000000000)
#define LOOK_MS   100

/* A process that speaks with a follower. */
struct serving {
    pid_t pid;         /* 0: this place is free                                       */
    uint64_t until_ns; /* he must have proven himself; 0: he has                       */
    char peer[SHIP_PEER_BYTES];
};

/* What it tells the server: by a pipe, whole. */
struct news {
    pid_t pid;
    bool is_proven;
    char words[XAC_ERR_BYTES];
};
static_assert(sizeof(struct news) <= 4096, "a pipe keeps it whole");

struct server {
    const struct ship_job *job;
    struct ship_addr at;
    struct ship_secret secret;
    struct ship_tls tls;
    struct ship_listeners listeners;
    int news[2];
    struct serving child[SHIP_STRANGERS_MAX + SHIP_FOLLOWERS_MAX];
    size_t n_strangers, n_proven;
    struct ship_words words;
};

/* ---- The process of one follower ---------------------------------------------------- */

/* tell -- the server. */
static void
tell(const struct server *s, bool is_proven, const char *words)
{
    struct news news = {.pid = getpid(), .is_proven = is_proven};

    (void)snprintf(news.words, sizeof news.words, "%s", words);
    (void)!write(s->news[1], &news, sizeof news);
}

/* send_to -- a follower who has proven himself; ret the exit code. */
static int
send_to(const struct server *s, struct ship_channel *c, const char *slot,
        const char *peer)
{
    static struct ship_relay relay;
    struct ship_job job = *s->job;
    struct xac_send_report rep;
    char about[SHIP_PEER_BYTES + XAC_SLOT_NAME_BYTES + 8];
    int rc = ship_relay_start(&relay, c);

    job.slot = slot;
    (void)snprintf(about, sizeof about, "%s, %s", slot, peer);
    if (rc != 0)
        return tool_fail(about, rc);
    if (!job.is_quiet)
        fprintf(stderr, "%s: %s: follows\n", tool_name, about);
    rc = ship_send(&job, relay.end, relay.end, &rep);
    ship_relay_end(&relay);
    if (rc == EPIPE && relay.why != NULL)
        (void)xac_err_whole(rc, "%s", relay.why);
    if (rc != 0)
        return tool_fail(about, rc);
    ship_say_sent(&job, &rep);
    return EXIT_DONE;
}

/* serve_one -- a connection that has been accepted; ret the exit code. */
static int
serve_one(const struct server *s, int fd, const char *peer)
{
    uint64_t until_ns = xac_clock_ns() + SHIP_STRANGER_S * SECOND_NS;
    char slot[XAC_SLOT_NAME_BYTES] = "";
    struct ship_channel c;
    int rc = ship_channel_open(&c, fd, &s->tls, until_ns);

    if (rc == 0)
        rc = ship_proof_serve(&c, &s->secret, slot, until_ns);
    tell(s, rc == 0, xac_err_text());
    if (rc == 0)
        rc = send_to(s, &c, slot, peer);
    ship_channel_close(&c);
    return rc == 0 ? EXIT_DONE : EXIT_ERROR;
}

/* start_child -- ret its pid, or -1. */
static pid_t
start_child(struct server *s, int fd, const char *peer)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* Without the server it ends, in order. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_ERROR);
    for (size_t i = 0; i < s->listeners.n; i++)
        (void)close(s->listeners.fd[i]);
    (void)close(s->news[0]);
    exit(serve_one(s, fd, peer));
}

/* ---- The server --------------------------------------------------------------------- */

/* place_of -- a process; 0: a free place; NULL: there is none. */
static struct serving *
place_of(struct server *s, pid_t pid)
{
    for (size_t i = 0; i < sizeof s->child / sizeof s->child[0]; i++) {
        if (s->child[i].pid == pid)
            return &s->child[i];
    }
    return NULL;
}

/* has_room -- for one more stranger (1). */
static bool
has_room(const struct server *s)
{
    return s->n_strangers < SHIP_STRANGERS_MAX && s->n_proven < SHIP_FOLLOWERS_MAX;
}

/* take_connection -- somebody has come. */
static void
take_connection(struct server *s, int listener)
{
    struct serving *place = place_of(s, 0);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int one = 1;

    if (fd < 0)
        return;
    ship_peer_words(fd, place->peer);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    place->pid = start_child(s, fd, place->peer);
    place->until_ns = xac_clock_ns() + SHIP_STRANGER_S * SECOND_NS;
    (void)close(fd);
    if (place->pid > 0) {
        s->n_strangers++;
        return;
    }
    place->pid = 0;
    ship_say_refused(&s->words, place->peer, "no process can be started for it");
}

/* take_news -- of a process that speaks with a stranger. */
static void
take_news(struct server *s)
{
    struct serving *c;
    struct news news;

    while (read(s->news[0], &news, sizeof news) == (ssize_t)sizeof news) {
        c = place_of(s, news.pid);
        if (c == NULL || c->until_ns == 0)
            continue;
        if (news.is_proven) {
            c->until_ns = 0;
            s->n_strangers--;
            s->n_proven++;
        } else {
            ship_say_refused(&s->words, c->peer, news.words);
        }
    }
}

/* end_late -- strangers who have not proven themselves in time. */
static void
end_late(struct server *s)
{
    uint64_t now_ns = xac_clock_ns();

    for (size_t i = 0; i < sizeof s->child / sizeof s->child[0]; i++) {
        struct serving *c = &s->child[i];

        /* A second later than it should end by itself. */
        if (c->pid != 0 && c->until_ns != 0 && now_ns > c->until_ns + SECOND_NS)
            (void)kill(c->pid, SIGKILL);
    }
}

/* reap -- processes that have ended. */
static void
reap(struct server *s, int options)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, options)) > 0 || (pid < 0 && errno == EINTR)) {
        struct serving *c;

        if (pid < 0)
            continue;
        take_news(s); /* it has said so before it ended */
        c = place_of(s, pid);
        if (c == NULL)
            continue;
        if (c->until_ns != 0)
            s->n_strangers--;
        else
            s->n_proven--;
        c->pid = 0;
    }
}

/* serve -- until a signal. */
static void
serve(struct server *s)
{
    struct pollfd p[SHIP_ADDR_MAX + 1];

    while (!ship_is_stopped()) {
        for (size_t i = 0; i < s->listeners.n; i++)
            p[i] = (struct pollfd){.fd = has_room(s) ? s->listeners.fd[i] : -1,
                                   .events = POLLIN};
        p[s->listeners.n] = (struct pollfd){.fd = s->news[0], .events = POLLIN};
        if (poll(p, s->listeners.n + 1, LOOK_MS) < 0)
            continue;
        for (size_t i = 0; i < s->listeners.n; i++) {
            if (p[i].revents != 0 && has_room(s))
                take_connection(s, s->listeners.fd[i]);
        }
        take_news(s);
        end_late(s);
        reap(s, WNOHANG);
    }
}

/* end -- in order: followers get everything, strangers nothing. */
static void
end(struct server *s)
{
    ship_addr_unlisten(&s->at, &s->listeners);
    take_news(s);
    for (size_t i = 0; i < sizeof s->child / sizeof s->child[0]; i++) {
        if (s->child[i].pid != 0)
            (void)kill(s->child[i].pid, s->child[i].until_ns == 0 ? SIGTERM : SIGKILL);
    }
    reap(s, 0);
}

/* begin -- listen, and say where. */
static int
begin(struct server *s, const struct ship_net_options *o)
{
    int rc = ship_addr_read(o->address, &s->at);

    if (rc == 0 && o->secret_file != NULL)
        rc = ship_secret_read(o->secret_file, &s->secret);
    if (rc == 0)
        rc = ship_tls_open(&s->tls, &o->tls, true);
    if (rc == 0 && pipe2(s->news, O_CLOEXEC | O_NONBLOCK) != 0)
        rc = xac_err(errno, "a pipe");
    if (rc == 0)
        rc = ship_addr_listen(&s->at, o->may_be_far || s->tls.ctx != NULL, &s->listeners);
    if (rc != 0 || s->job->is_quiet)
        return rc;
    if (s->at.path != NULL)
        fprintf(stderr, "%s: listening at %s\n", tool_name, s->at.text);
    else
        fprintf(stderr, "%s: listening at %s, port %u\n", tool_name, s->at.text,
                ship_addr_port(s->listeners.fd[0]));
    return 0;
}

int
ship_serve(const struct ship_job *job, const struct ship_net_options *o)
{
    static struct server s;
    int rc;

    s.job = job;
    rc = begin(&s, o);
    if (rc == 0) {
        serve(&s);
        end(&s);
    }
    ship_tls_close(&s.tls);
    return rc;
}
