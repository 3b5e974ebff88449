/* SPDX-License-Identifier: MIT */
/*
 * ship_stranger.c -- see ship_stranger.h.
 */
#include <config.h>

#include "ship_stranger.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/annot.h"
#include "base/clock.h"
#include "tool.h"

#define SECOND_NS UINT64_C(1000000000)

void
ship_peer_words(int fd, char out[SHIP_PEER_BYTES])
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    struct ucred who = {.pid = 0};
    socklen_t n = sizeof at, n_who = sizeof who;
    char host[48], port[8];

    (void)snprintf(out, SHIP_PEER_BYTES, "somebody");
    if (getpeername(fd, (struct sockaddr *)&at, &n) != 0)
        return;
    if (at.ss_family == AF_UNIX
        && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n_who) == 0)
        (void)snprintf(out, SHIP_PEER_BYTES, "process %ld of user %lu", (long)who.pid,
                       (unsigned long)who.uid);
    else if (getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV)
             == 0)
        (void)snprintf(out, SHIP_PEER_BYTES, "%s port %s", host, port);
}

void
ship_say_refused(struct ship_words *w, const char *peer, const char *words)
{
    uint64_t now_ns = xac_clock_ns();

    xac_assert(w->n_said <= SHIP_WORDS_MAX);
    if (now_ns - w->window_ns >= SHIP_WORDS_S * SECOND_NS) {
        if (w->n_unsaid > 0)
            fprintf(stderr, "%s: %u more were refused\n", tool_name, w->n_unsaid);
        w->window_ns = now_ns;
        w->n_said = w->n_unsaid = 0;
    }
    if (w->n_said == SHIP_WORDS_MAX) {
        w->n_unsaid++;
        return;
    }
    w->n_said++;
    fprintf(stderr, "%s: refused %s: %s\n", tool_name, peer, words);
}
