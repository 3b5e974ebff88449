/* SPDX-License-Identifier: MIT */
/*
 * ship_addr.h -- where xship serve and xraftd listen, and where others connect to: HOST:PORT or unix:PATH.
 *
 * WHAT      Reads such an address, listens at it, connects to it.
 * NOT HERE  What is said on a connection (ship_proof.h, ship_relay.h).
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) Descriptors do not block, and are closed by exec.
 *   (2) A Unix socket has mode 600.  One that nobody listens at is removed before, nothing else.
 */
#ifndef XAC_SHIP_ADDR_H
#define XAC_SHIP_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A host has so many addresses at most, which are looked at. */
#define SHIP_ADDR_MAX 8

struct ship_addr {
    const char *text; /* as given                                                     */
    const char *path; /* of a Unix socket; NULL: host and port                        */
    char host[256];   /* "" all of this machine                                       */
    char port[32];
};

/* Sockets that listen. */
struct ship_listeners {
    int fd[SHIP_ADDR_MAX];
    size_t n;
};

/* ship_addr_read -- ret 0 or EINVAL, words noted. */
int ship_addr_read(const char *text, struct ship_addr *out);

/*
 * ship_addr_listen -- at each of its addresses.
 *
 * in   may_be_far  also at one that other machines reach
 * ret  0; EPERM: one of them would be reached by other machines; EADDRINUSE and others, words noted.
 *      With an error there is nothing to close.
 */
int ship_addr_listen(const struct ship_addr *a, bool may_be_far,
                     struct ship_listeners *out);

/* ship_addr_unlisten -- close them, and remove the name of a Unix socket. */
void ship_addr_unlisten(const struct ship_addr *a, struct ship_listeners *l);

/* ship_addr_must_be_near -- ret 0: only processes of this machine reach it; EPERM; as ship_addr_connect(); words noted. */
int ship_addr_must_be_near(const struct ship_addr *a);

/* ship_addr_connect -- within a time, for all addresses together; ret 0 or errno, words noted. */
int ship_addr_connect(const struct ship_addr *a, uint64_t until_ns, int *fdp);

/* ship_addr_port -- that a socket is bound to; 0: a Unix socket. */
unsigned ship_addr_port(int fd);

#endif /* XAC_SHIP_ADDR_H */
