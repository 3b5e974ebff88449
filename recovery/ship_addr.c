/* SPDX-License-Identifier: MIT */
/*
 * ship_addr.c -- see ship_addr.h.
 */
#include <config.h>

#include "ship_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define UNIX_PREFIX "unix:"
#define BACKLOG     64

/* ---- Reading ------------------------------------------------------------------------ */

/* read_host -- HOST:PORT or [HOST]:PORT. */
static int
read_host(const char *text, struct ship_addr *out)
{
    const char *colon = strrchr(text, ':');
    const char *from = text, *to = colon;

    if (colon == NULL || colon[1] == '\0')
        return xac_err_whole(EINVAL, "%s: an address is HOST:PORT or " UNIX_PREFIX "PATH",
                             text);
    if (to > from + 1 && *from == '[' && to[-1] == ']') {
        from++;
        to--;
    } else if (memchr(from, ':', (size_t)(to - from)) != NULL) {
        return xac_err_whole(EINVAL, "an address of IPv6 stands in brackets: [::1]:7000");
    }
    if ((size_t)(to - from) >= sizeof out->host || strlen(colon + 1) >= sizeof out->port)
        return xac_err_whole(EINVAL, "no host has such a long name");
    memcpy(out->host, from, (size_t)(to - from));
    memcpy(out->port, colon + 1, strlen(colon + 1));
    return 0;
}

int
ship_addr_read(const char *text, struct ship_addr *out)
{
    *out = (struct ship_addr){.text = text};
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) != 0)
        return read_host(text, out);
    out->path = text + strlen(UNIX_PREFIX);
    if (out->path[0] == '\0'
        || strlen(out->path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return xac_err_whole(EINVAL, "the path of a Unix socket has 1 to %zu bytes",
                             sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    return 0;
}

/* resolve -- the addresses of host and port; freeaddrinfo() them. */
static int
resolve(const struct ship_addr *a, struct addrinfo **listp)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE};
    int rc = getaddrinfo(a->host[0] != '\0' ? a->host : NULL, a->port, &hints, listp);

    if (rc == 0)
        return 0;
    return xac_err_whole(rc == EAI_SYSTEM ? errno : EHOSTUNREACH, "%s", gai_strerror(rc));
}

/* unix_name -- for bind() and connect(). */
static struct sockaddr_un
unix_name(const struct ship_addr *a)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    memcpy(un.sun_path, a->path, strlen(a->path));
    return un;
}

static int
make_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- Listening ---------------------------------------------------------------------- */

/* is_near -- do only processes of this machine reach it? */
static bool
is_near(const struct sockaddr *sa)
{
    const struct in6_addr *six =
        &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;

    if (sa->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr)
                   >> 24
               == IN_LOOPBACKNET;
    return sa->sa_family == AF_INET6
           && (IN6_IS_ADDR_LOOPBACK(six)
               || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET));
}

/* remove_left -- a Unix socket whose listener has been killed (2). */
static void
remove_left(const struct ship_addr *a)
{
    struct sockaddr_un un = unix_name(a);
    struct stat st;
    int fd = make_socket(AF_UNIX);

    if (fd < 0)
        return;
    if (lstat(a->path, &st) == 0 && S_ISSOCK(st.st_mode)
        && connect(fd, (const struct sockaddr *)&un, sizeof un) != 0
        && errno == ECONNREFUSED)
        (void)unlink(a->path);
    (void)close(fd);
}

/* listen_at -- ret a descriptor or -1. */
static int
listen_at(const struct sockaddr *sa, socklen_t n)
{
    int fd = make_socket(sa->sa_family);
    int one = 1, error;

    if (fd < 0)
        return -1;
    if (sa->sa_family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (sa->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, sa, n) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static int
listen_unix(const struct ship_addr *a, struct ship_listeners *out)
{
    struct sockaddr_un un = unix_name(a);
    mode_t old;

    remove_left(a);
    old = umask(0177); /* bind() makes the name */
    out->fd[0] = listen_at((const struct sockaddr *)&un, sizeof un);
    (void)umask(old);
    if (out->fd[0] < 0)
        return xac_err(errno, "listen");
    out->n = 1;
    return 0;
}

/* listen_host -- a host of IPv6 only, or without it, has addresses that this kernel does not know. */
static int
listen_host(const struct addrinfo *list, struct ship_listeners *out)
{
    int error = 0;

    for (const struct addrinfo *i = list; i != NULL && out->n < SHIP_ADDR_MAX;
         i = i->ai_next) {
        int fd = listen_at(i->ai_addr, i->ai_addrlen);

        if (fd >= 0)
            out->fd[out->n++] = fd;
        else if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)
            error = errno;
        else if (error == 0 && i->ai_next == NULL && out->n == 0)
            error = errno;
    }
    if (error == 0)
        return 0;
    while (out->n > 0)
        (void)close(out->fd[--out->n]);
    return xac_err(error, "listen");
}

/* must_be_near -- all of a host's addresses. */
static int
must_be_near(const struct addrinfo *list)
{
    for (const struct addrinfo *i = list; i != NULL; i = i->ai_next) {
        if (!is_near(i->ai_addr))
            return xac_err_whole(EPERM,
                                 "other machines would reach this address: use TLS "
                                 "(--tls-cert), or say --insecure-listen");
    }
    return 0;
}

int
ship_addr_must_be_near(const struct ship_addr *a)
{
    struct addrinfo *list;
    int rc = 0;

    if (a->path != NULL)
        return 0;
    rc = resolve(a, &list);
    if (rc != 0)
        return rc;
    rc = must_be_near(list);
    freeaddrinfo(list);
    return rc;
}

int
ship_addr_listen(const struct ship_addr *a, bool may_be_far, struct ship_listeners *out)
{
    struct addrinfo *list;
    int rc;

    *out = (struct ship_listeners){.n = 0};
    if (a->path != NULL)
        return listen_unix(a, out);
    rc = resolve(a, &list);
    if (rc != 0)
        return rc;
    if (!may_be_far)
        rc = must_be_near(list);
    if (rc == 0)
        rc = listen_host(list, out);
    freeaddrinfo(list);
    return rc;
}

void
ship_addr_unlisten(const struct ship_addr *a, struct ship_listeners *l)
{
    while (l->n > 0)
        (void)close(l->fd[--l->n]);
    if (a->path != NULL)
        (void)unlink(a->path);
}

unsigned
ship_addr_port(int fd)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&at)->sin_port);
    return at.ss_family == AF_INET6
               ? ntohs(((const struct sockaddr_in6 *)(const void *)&at)->sin6_port)
               : 0;
}

/* ---- Connecting --------------------------------------------------------------------- */

/* await_connected -- ret 0 or errno. */
static int
await_connected(int fd, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    uint64_t now_ns = xac_clock_ns();
    socklen_t n = sizeof(int);
    int error = 0;

    if (now_ns >= until_ns || poll(&p, 1, (int)((until_ns - now_ns) / 1000000) + 1) == 0)
        return ETIMEDOUT;
    if (p.revents == 0)
        return EINTR;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

/* connect_to -- ret 0 or errno. */
static int
connect_to(const struct sockaddr *sa, socklen_t n, uint64_t until_ns, int *fdp)
{
    int one = 1, rc = 0;
    int fd = make_socket(sa->sa_family);

    if (fd < 0)
        return errno;
    if (connect(fd, sa, n) != 0)
        rc = errno == EINPROGRESS ? await_connected(fd, until_ns) : errno;
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    if (sa->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *fdp = fd;
    return 0;
}

int
ship_addr_connect(const struct ship_addr *a, uint64_t until_ns, int *fdp)
{
    struct addrinfo *list;
    int rc;

    if (a->path != NULL) {
        struct sockaddr_un un = unix_name(a);

        rc = connect_to((const struct sockaddr *)&un, sizeof un, until_ns, fdp);
        return rc == 0 ? 0 : xac_err(rc, "connect");
    }
    rc = resolve(a, &list);
    if (rc != 0)
        return rc;
    rc = EHOSTUNREACH;
    for (const struct addrinfo *i = list; i != NULL && rc != 0; i = i->ai_next)
        rc = connect_to(i->ai_addr, i->ai_addrlen, until_ns, fdp);
    freeaddrinfo(list);
    return rc == 0 ? 0 : xac_err(rc, "connect");
}
