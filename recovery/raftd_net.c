/* SPDX-License-Identifier: MIT */
/*
 * raftd_net.c -- see raftd_net.h.
 */
#include <config.h>

#include "raftd_net.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "log/group_note.h"
#include "ship_addr.h"
#include "ship_proof.h"
#include "ship_relay.h"
#include "ship_stranger.h"
#include "tool.h"

#define SECOND_NS UINT64_C(1000000000)

/* How long the listener sleeps before it looks whether to stop. */
#define LOOK_MS 100

/* A certificate's name. */
#define NAME_BYTES 16

static_assert(RAFTD_NET_LINES * RAFTD_MEMBERS_MAX <= SHIP_FOLLOWERS_MAX,
              "each has its lines");

static const struct ship_terms terms = {
    .tool = "xraftd",
    .refused = "the node refuses this one",
    .magic = XAC_RAFTD_NET_MAGIC,
    .label_follower = XAC_RAFTD_LABEL_CALLER,
    .label_server = XAC_RAFTD_LABEL_LISTENER,
    .about_bytes = sizeof(struct xac_raftd_hello),
};

struct handler {
    void (*fn)(void *arg, struct raftd_line *line);
    void *arg;
};

struct raftd_net {
    struct raftd_group *group;
    bool may_be_far;
    struct ship_secret secret;
    struct ship_tls server, client;
    struct handler handler[RAFTD_WANTS];
    char own[RAFTD_ADDRESS_BYTES];
    struct ship_addr at; /* of it                                                     */
    struct ship_listeners listeners;

    pthread_mutex_t lock; /* of the following                                         */
    pthread_cond_t fewer;
    bool is_stopping;
    struct raftd_line *line; /* all of them                                          */
    size_t n_threads, n_strangers, n_proven;
    struct ship_words words;
};

/* A function that runs in a thread. */
struct task {
    struct raftd_net *net;
    void (*fn)(void *arg);
    void *arg;
};

/* ---- Threads ------------------------------------------------------------------------ */

/* leave -- a thread has ended. */
static void
leave(struct raftd_net *n)
{
    (void)pthread_mutex_lock(&n->lock);
    xac_assert(n->n_threads > 0);
    n->n_threads--;
    (void)pthread_cond_broadcast(&n->fewer);
    (void)pthread_mutex_unlock(&n->lock);
}

static void *
run(void *arg)
{
    struct task task = *(struct task *)arg;

    free(arg);
    task.fn(task.arg);
    leave(task.net);
    return NULL;
}

int
raftd_net_thread(struct raftd_net *n, void (*fn)(void *arg), void *arg)
{
    struct task *task = (struct task *)malloc(sizeof *task);
    pthread_t thread;
    int rc = 0;

    if (task == NULL)
        return xac_err(ENOMEM, "a thread");
    *task = (struct task){.net = n, .fn = fn, .arg = arg};
    (void)pthread_mutex_lock(&n->lock);
    if (n->is_stopping)
        rc = xac_err_whole(ECANCELED, "the daemon ends");
    else
        n->n_threads++;
    (void)pthread_mutex_unlock(&n->lock);
    if (rc == 0) {
        rc = ship_thread_start(&thread, run, task);
        if (rc == 0)
            (void)pthread_detach(thread);
        else
            leave(n);
    }
    if (rc != 0)
        free(task);
    return rc;
}

/* ---- Lines -------------------------------------------------------------------------- */

/* add_line -- of a socket, which belongs to it from now on; NULL: the net has been stopped, or there is no memory. */
static struct raftd_line *
add_line(struct raftd_net *n, int fd)
{
    struct raftd_line *line = (struct raftd_line *)calloc(1, sizeof *line);
    bool is_stopping;

    if (line != NULL) {
        line->net = n;
        line->fd = line->c.fd = fd;
        (void)pthread_mutex_lock(&n->lock);
        is_stopping = n->is_stopping;
        if (!is_stopping) {
            line->next = n->line;
            if (line->next != NULL)
                line->next->before = line;
            n->line = line;
        }
        (void)pthread_mutex_unlock(&n->lock);
        if (!is_stopping)
            return line;
    }
    free(line);
    (void)close(fd);
    return NULL;
}

void
raftd_net_hang_up(struct raftd_line *line)
{
    struct raftd_net *n = line->net;

    (void)pthread_mutex_lock(&n->lock);
    if (line->next != NULL)
        line->next->before = line->before;
    if (line->before != NULL)
        line->before->next = line->next;
    else
        n->line = line->next;
    (void)pthread_cond_broadcast(&n->fewer);
    (void)pthread_mutex_unlock(&n->lock);
    ship_channel_close(
        &line->c); /* nobody cuts it any more: the descriptor may be another one's now */
    free(line);
}

/* ---- Calling ------------------------------------------------------------------------ */

static void
cert_name(uint32_t node, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "node-%" PRIu32, node);
}

/* hello_of -- what this node says of itself. */
static struct xac_raftd_hello
hello_of(const struct raftd_net *n, uint32_t to, enum raftd_want want)
{
    struct raftd_group *g = n->group;
    struct xac_raftd_hello hello = {.from = g->node, .to = to, .want = (uint32_t)want};

    memcpy(hello.group, g->id, sizeof hello.group);
    (void)raftd_group_address(g, g->node, hello.address);
    return hello;
}

/* dial -- a connected socket. */
static int
dial(const struct raftd_net *n, const char *address, uint64_t until_ns, int *fdp)
{
    struct ship_addr at;
    int rc = ship_addr_read(address, &at);

    if (rc == 0 && n->client.ctx == NULL && !n->may_be_far)
        rc = ship_addr_must_be_near(&at); /* (1) */
    return rc == 0 ? ship_addr_connect(&at, until_ns, fdp) : rc;
}

int
raftd_net_call_at(struct raftd_net *n, uint32_t node, const char *address,
                  enum raftd_want want, uint64_t until_ns, struct raftd_line **linep)
{
    struct xac_raftd_hello hello = hello_of(n, node, want);
    char name[NAME_BYTES];
    struct ship_tls tls = n->client;
    struct raftd_line *line;
    int fd = -1, rc = dial(n, address, until_ns, &fd);

    xac_assert(want > RAFTD_WANT_NOTHING && want < RAFTD_WANTS);
    if (rc != 0)
        return rc;
    line = add_line(n, fd);
    if (line == NULL)
        return xac_err_whole(ECANCELED, "the daemon ends");
    line->node = node;
    line->want = want;
    (void)snprintf(line->address, sizeof line->address, "%s", address);
    cert_name(node, name);
    tls.name = name;
    rc = ship_channel_open(&line->c, fd, &tls, until_ns);
    if (rc == 0)
        rc = ship_proof_give(&line->c, &n->secret, &terms, &hello, until_ns);
    if (rc == 0)
        *linep = line;
    else
        raftd_net_hang_up(line);
    return rc;
}

int
raftd_net_call(struct raftd_net *n, uint32_t node, enum raftd_want want,
               uint64_t until_ns, struct raftd_line **linep)
{
    char address[RAFTD_ADDRESS_BYTES];

    if (node == n->group->node || !raftd_group_address(n->group, node, address))
        return xac_err_whole(EINVAL, "node %" PRIu32 " is no other node of the group",
                             node);
    return raftd_net_call_at(n, node, address, want, until_ns, linep);
}

/* ---- Listening ---------------------------------------------------------------------- */

/* stranger -- ret XAC_EFOREIGN with words. */
static int
stranger(const char *why)
{
    return xac_err_whole(XAC_EFOREIGN, "%s", why);
}

/* check_hello -- of somebody who knows the secret; with TLS he has a certificate. */
static int
check_hello(void *arg, const struct ship_channel *c, const void *about)
{
    const struct raftd_net *n = (const struct raftd_net *)arg;
    const struct xac_raftd_hello *h = (const struct xac_raftd_hello *)about;
    struct ship_addr at;
    char name[NAME_BYTES];

    if (memcmp(h->group, n->group->id, sizeof h->group) != 0)
        return stranger("it is of another group");
    if (h->from == 0 || h->from > XAC_GROUP_NODE_MAX || h->from == n->group->node)
        return xac_err_whole(XAC_EFOREIGN, "it says that it is node %" PRIu32, h->from);
    if (h->to != n->group->node)
        return xac_err_whole(XAC_EFOREIGN,
                             "node %" PRIu32 " calls node %" PRIu32
                             ", and this is node %" PRIu32,
                             h->from, h->to, n->group->node);
    if (h->want == RAFTD_WANT_NOTHING || h->want >= RAFTD_WANTS || h->reserved != 0
        || n->handler[h->want].fn == NULL)
        return stranger("it wants what this xraftd does not know");
    if (memchr(h->address, '\0', sizeof h->address) == NULL
        || ship_addr_read(h->address, &at) != 0)
        return stranger("it does not say where it listens");
    cert_name(h->from, name);
    return ship_channel_has_name(c, name)
               ? 0
               : xac_err_whole(XAC_EFOREIGN, "its certificate is not for its name, %s",
                               name); /* (4) */
}

/* note_proven -- the stranger is a node, or has gone; rc not 0: words are noted. */
static void
note_proven(struct raftd_net *n, const char *peer, int rc)
{
    (void)pthread_mutex_lock(&n->lock);
    xac_assert(n->n_strangers > 0);
    n->n_strangers--;
    if (rc != 0 && !n->is_stopping)
        ship_say_refused(&n->words, peer, xac_err_text());
    (void)pthread_mutex_unlock(&n->lock);
}

/* let_in -- a node that has proven itself; ret XAC_EFOREIGN with words: it has all lines that it may have (2). */
static int
let_in(struct raftd_line *line, const struct xac_raftd_hello *hello)
{
    struct raftd_net *n = line->net;
    unsigned has = 0;

    (void)pthread_mutex_lock(&n->lock);
    for (const struct raftd_line *l = n->line; l != NULL; l = l->next)
        has += l->is_let_in && l->node == hello->from;
    line->node = hello->from;
    line->want = (enum raftd_want)hello->want;
    line->is_let_in = has < RAFTD_NET_LINES;
    n->n_proven += line->is_let_in;
    (void)pthread_mutex_unlock(&n->lock);
    memcpy(line->address, hello->address, sizeof line->address);
    return has < RAFTD_NET_LINES
               ? 0
               : xac_err_whole(XAC_EFOREIGN,
                               "node %" PRIu32 " has %u connections already", hello->from,
                               has);
}

/* serve_line -- somebody has come; the thread of his line. */
static void
serve_line(void *arg)
{
    struct raftd_line *line = (struct raftd_line *)arg;
    struct raftd_net *n = line->net;
    uint64_t until_ns = xac_clock_ns() + SHIP_STRANGER_S * SECOND_NS;
    struct xac_raftd_hello hello;
    char peer[SHIP_PEER_BYTES];
    int rc;

    ship_peer_words(line->fd, peer);
    rc = ship_channel_open(&line->c, line->fd, &n->server, until_ns);
    if (rc == 0)
        rc = ship_proof_take(&line->c, &n->secret, &terms, check_hello, n, &hello,
                             until_ns);
    if (rc == 0)
        rc = let_in(line, &hello);
    note_proven(n, peer, rc);
    if (rc == 0) {
        n->handler[line->want].fn(n->handler[line->want].arg, line);
        (void)pthread_mutex_lock(&n->lock);
        n->n_proven--;
        (void)pthread_mutex_unlock(&n->lock);
    }
    raftd_net_hang_up(line);
}

/* take_connection -- somebody has come. */
static void
take_connection(struct raftd_net *n, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct raftd_line *line;
    int one = 1;

    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    line = add_line(n, fd);
    if (line == NULL)
        return;
    (void)pthread_mutex_lock(&n->lock);
    n->n_strangers++;
    (void)pthread_mutex_unlock(&n->lock);
    if (raftd_net_thread(n, serve_line, line) == 0)
        return;
    note_proven(n, "somebody", EAGAIN);
    raftd_net_hang_up(line);
}

/* look -- ret whether to go on; out  has_room  for one more stranger (2). */
static bool
look(struct raftd_net *n, bool *has_room)
{
    bool goes_on;

    (void)pthread_mutex_lock(&n->lock);
    goes_on = !n->is_stopping;
    *has_room = n->n_strangers < SHIP_STRANGERS_MAX && n->n_proven < SHIP_FOLLOWERS_MAX;
    (void)pthread_mutex_unlock(&n->lock);
    return goes_on;
}

/* listen_here -- the listener's thread. */
static void
listen_here(void *arg)
{
    struct raftd_net *n = (struct raftd_net *)arg;
    struct pollfd p[SHIP_ADDR_MAX];
    bool has_room;

    while (look(n, &has_room)) {
        for (size_t i = 0; i < n->listeners.n; i++)
            p[i] = (struct pollfd){.fd = has_room ? n->listeners.fd[i] : -1,
                                   .events = POLLIN};
        if (poll(p, n->listeners.n, LOOK_MS) <= 0)
            continue;
        for (size_t i = 0; i < n->listeners.n; i++) {
            if (p[i].revents != 0 && look(n, &has_room) && has_room)
                take_connection(n, n->listeners.fd[i]);
        }
    }
}

/* ---- Life --------------------------------------------------------------------------- */

int
raftd_net_create(const struct raftd_net_options *options, struct raftd_group *group,
                 struct raftd_net **np)
{
    struct raftd_net *n = (struct raftd_net *)calloc(1, sizeof *n);
    int rc = 0;

    if (n == NULL)
        return xac_err(ENOMEM, "connections");
    n->group = group;
    n->may_be_far = options->may_be_far;
    (void)pthread_mutex_init(&n->lock, NULL);
    (void)pthread_cond_init(&n->fewer, NULL);
    if (options->secret_file != NULL)
        rc = ship_secret_read(options->secret_file, &n->secret);
    if (rc == 0)
        rc = ship_tls_open(&n->server, &options->tls, true);
    if (rc == 0)
        rc = ship_tls_open(&n->client, &options->tls, false);
    if (rc == 0)
        *np = n;
    else
        raftd_net_destroy(n);
    return rc;
}

void
raftd_net_destroy(struct raftd_net *n)
{
    if (n == NULL)
        return;
    xac_assert(n->n_threads == 0);
    xac_assert(n->line == NULL);
    ship_tls_close(&n->client);
    ship_tls_close(&n->server);
    (void)pthread_cond_destroy(&n->fewer);
    (void)pthread_mutex_destroy(&n->lock);
    free(n);
}

void
raftd_net_serve(struct raftd_net *n, enum raftd_want want,
                void (*handler)(void *arg, struct raftd_line *line), void *arg)
{
    xac_assert(want > RAFTD_WANT_NOTHING && want < RAFTD_WANTS);
    xac_assert(n->listeners.n == 0);
    n->handler[want] = (struct handler){.fn = handler, .arg = arg};
}

int
raftd_net_start(struct raftd_net *n)
{
    char words[XAC_ERR_BYTES];
    int rc = raftd_group_address(n->group, n->group->node, n->own)
                 ? ship_addr_read(n->own, &n->at)
                 : xac_err_whole(EINVAL, "it is no node of the group");

    if (rc == 0)
        rc = ship_addr_listen(&n->at, n->may_be_far || n->server.ctx != NULL,
                              &n->listeners);
    if (rc == 0)
        rc = raftd_net_thread(n, listen_here, n);
    if (rc == 0)
        return 0;
    (void)snprintf(words, sizeof words, "%s", xac_err_text());
    ship_addr_unlisten(&n->at, &n->listeners);
    return xac_err_whole(rc, "%s: %s", n->own, words);
}

bool
raftd_net_is_stopping(struct raftd_net *n)
{
    bool is_stopping;

    (void)pthread_mutex_lock(&n->lock);
    is_stopping = n->is_stopping;
    (void)pthread_mutex_unlock(&n->lock);
    return is_stopping;
}

void
raftd_net_stop(struct raftd_net *n)
{
    (void)pthread_mutex_lock(&n->lock);
    n->is_stopping = true;
    for (struct raftd_line *line = n->line; line != NULL; line = line->next)
        (void)shutdown(line->fd, SHUT_RDWR);
    while (n->n_threads > 0 || n->line != NULL)
        (void)pthread_cond_wait(&n->fewer, &n->lock);
    (void)pthread_mutex_unlock(&n->lock);
    ship_addr_unlisten(&n->at, &n->listeners);
}
