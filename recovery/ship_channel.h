/* SPDX-License-Identifier: MIT */
/*
 * ship_channel.h -- bytes to and from the other side of a connection: plain, or by TLS 1.3.
 *
 * WHAT      Makes TLS of a connected socket, reads and writes without waiting, or all bytes until a time.
 * NOT HERE  Making the connection (ship_addr.h), what is said (ship_proof.h, ship_relay.h).
 * OWNER     struct ship_channel belongs to the caller.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) With TLS nothing is read or written before both certificates have been checked: by the authority that was
 *       given, for their times, and, of a server, for its name.  Each connection does so: none is resumed.
 */
#ifndef XAC_SHIP_CHANNEL_H
#define XAC_SHIP_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SHIP_EXPORTER_BYTES 32

struct ssl_st;
struct ssl_ctx_st;

/* What the user has given; all NULL: plain. */
struct ship_tls_files {
    const char *cert, *key, *ca;
    const char *name; /* that the server's certificate must have; NULL: its host        */
};

/* Certificates and keys, read. */
struct ship_tls {
    struct ssl_ctx_st *ctx; /* NULL: plain                                             */
    bool is_server;
    const char *name;
};

struct ship_channel {
    int fd;             /* does not block                                            */
    struct ssl_st *ssl; /* NULL: plain                                               */
    short wants;        /* POLLIN, POLLOUT: what the last call has waited for          */
};

/* ship_tls_is_built -- was libssl there when this was built? */
bool ship_tls_is_built(void);

/* ship_tls_open -- ret 0; EINVAL: not all files are given; ENOTSUP: built without; EIO and others: a file
   cannot be used, words noted.  Close it in any case. */
int ship_tls_open(struct ship_tls *t, const struct ship_tls_files *files, bool is_server);
void ship_tls_close(struct ship_tls *t);

/*
 * ship_channel_open -- over a connected socket, which belongs to the channel from now on.
 *
 * ret  0; XAC_EFOREIGN: the other side's certificate is not right, or it does not take ours; ETIMEDOUT; EPIPE and
 *      others, words noted.  Close it in any case.
 */
int ship_channel_open(struct ship_channel *c, int fd, const struct ship_tls *t,
                      uint64_t until_ns);
void ship_channel_close(struct ship_channel *c);

/* ship_channel_has_name -- is the certificate of the other side for this name?  Without TLS: yes. */
bool ship_channel_has_name(const struct ship_channel *c, const char *name);

/* ship_channel_exporter -- of this TLS connection only, the same on both sides; zeros without; ret 0 or EIO. */
int ship_channel_exporter(const struct ship_channel *c, uint8_t out[SHIP_EXPORTER_BYTES]);

/* ship_channel_read, _write -- without waiting; ret bytes; 0: the other side has closed its end (read); -1 and
   errno: EAGAIN: wait for c->wants. */
ssize_t ship_channel_read(struct ship_channel *c, void *buf, size_t n);
ssize_t ship_channel_write(struct ship_channel *c, const void *buf, size_t n);

/* ship_channel_get, _put -- all n bytes; ret 0; EPIPE: the other side has closed; ETIMEDOUT; XAC_EFOREIGN: the other
   side does not take our certificate; errno, words noted. */
int ship_channel_get(struct ship_channel *c, void *buf, size_t n, uint64_t until_ns);
int ship_channel_put(struct ship_channel *c, const void *buf, size_t n,
                     uint64_t until_ns);

/* ship_channel_end -- nothing more will be written. */
void ship_channel_end(struct ship_channel *c);

#endif /* XAC_SHIP_CHANNEL_H */
