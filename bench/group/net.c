/* SPDX-License-Identifier: MIT */
/*
 * net.c -- see net.h.
 */
#include <config.h>

#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* No answer takes so long, also where a group elects. */
#define PATIENCE_S 30

const char *
group_net_words(const char *what, const char *why)
{
    static char words[256];

    (void)snprintf(words, sizeof words, "%s: %s", what, why);
    return words;
}

/* address -- of ADDRESS:PORT. */
static bool
address(const char *place, struct sockaddr_in *at)
{
    char host[64];
    const char *colon = strrchr(place, ':');
    unsigned long port = colon != NULL ? strtoul(colon + 1, NULL, 10) : 0;

    if (colon == NULL || (size_t)(colon - place) >= sizeof host || port == 0
        || port > UINT16_MAX)
        return false;
    memcpy(host, place, (size_t)(colon - place));
    host[colon - place] = '\0';
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host, &at->sin_addr) == 1;
}

const char *
group_net_connect(const char *place, int *fdp)
{
    struct sockaddr_in at;
    int fd, one = 1;

    if (!address(place, &at))
        return group_net_words(place, "not ADDRESS:PORT");
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return group_net_words("socket", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        const char *words = group_net_words(place, strerror(errno));

        (void)close(fd);
        return words;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *fdp = fd;
    return NULL;
}

const char *
group_net_open(struct group_net *net, const char *place)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    const char *words;

    net->fd = -1;
    net->first = net->n = 0;
    words = group_net_connect(place, &net->fd);
    if (words == NULL)
        (void)setsockopt(net->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return words;
}

void
group_net_close(struct group_net *net)
{
    if (net->fd >= 0)
        (void)close(net->fd);
    net->fd = -1;
}

const char *
group_net_send(struct group_net *net, const void *bytes, size_t n)
{
    const uint8_t *from = (const uint8_t *)bytes;

    while (n > 0) {
        ssize_t sent = send(net->fd, from, n, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return group_net_words("send", strerror(errno));
        if (sent > 0) {
            from += sent;
            n -= (size_t)sent;
        }
    }
    return NULL;
}

/* fill -- wait for more. */
static const char *
fill(struct group_net *net)
{
    ssize_t n;

    do {
        n = recv(net->fd, net->come, sizeof net->come, 0);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return "receive: the node has closed the connection";
    if (n < 0)
        return group_net_words("receive",
                               errno == EAGAIN ? "no answer" : strerror(errno));
    net->first = 0;
    net->n = (size_t)n;
    return NULL;
}

const char *
group_net_receive(struct group_net *net, void *to, size_t n)
{
    uint8_t *at = (uint8_t *)to;

    while (n > 0) {
        const char *words = net->n == 0 ? fill(net) : NULL;
        size_t part = net->n < n ? net->n : n;

        if (words != NULL)
            return words;
        if (at != NULL) {
            memcpy(at, net->come + net->first, part);
            at += part;
        }
        net->first += part;
        net->n -= part;
        n -= part;
    }
    return NULL;
}
