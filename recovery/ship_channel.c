/* SPDX-License-Identifier: MIT */
/*
 * ship_channel.c -- see ship_channel.h.
 */
#include <config.h>

#include "ship_channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"

#ifdef HAVE_LIBSSL
# include <openssl/err.h>
# include <openssl/ssl.h>
# include <openssl/x509v3.h>

/* RFC 9266. */
# define EXPORTER_LABEL "EXPORTER-Channel-Binding"

bool
ship_tls_is_built(void)
{
    return true;
}

/* ---- Certificates ------------------------------------------------------------------- */

/* tls_reason -- what OpenSSL says of its last failure; "" nothing. */
static const char *
tls_reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *words = e != 0 ? ERR_reason_error_string(e) : NULL;

    return words != NULL ? words : "";
}

static int
cannot_use(const char *file)
{
    return xac_err_whole(EIO, "%s: cannot be used for TLS: %s", file, tls_reason());
}

/* set_up -- TLS 1.3, certificates on both sides, nothing resumed (1). */
static int
set_up(SSL_CTX *ctx, const struct ship_tls_files *f)
{
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1)
        return xac_err_whole(ENOTSUP, "libssl has no TLS 1.3");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ctx, 0);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE
                                    | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_load_verify_locations(ctx, f->ca, NULL) != 1)
        return cannot_use(f->ca);
    if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
        return cannot_use(f->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1
        || SSL_CTX_check_private_key(ctx) != 1)
        return cannot_use(f->key);
    return 0;
}

int
ship_tls_open(struct ship_tls *t, const struct ship_tls_files *files, bool is_server)
{
    *t = (struct ship_tls){.is_server = is_server, .name = files->name};
    if (files->cert == NULL && files->key == NULL && files->ca == NULL)
        return 0;
    if (files->cert == NULL || files->key == NULL || files->ca == NULL)
        return xac_err_whole(EINVAL,
                             "TLS needs all of --tls-cert, --tls-key and --tls-ca");
    ERR_clear_error();
    t->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (t->ctx == NULL)
        return xac_err(ENOMEM, "TLS");
    return set_up(t->ctx, files);
}

void
ship_tls_close(struct ship_tls *t)
{
    SSL_CTX_free(t->ctx);
    t->ctx = NULL;
}

/* expect_name -- the server's certificate must be for it: a name, or an address. */
static int
expect_name(SSL *ssl, const char *name)
{
    struct in6_addr unused;
    bool is_address =
        inet_pton(AF_INET, name, &unused) == 1 || inet_pton(AF_INET6, name, &unused) == 1;
    int ok = is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name)
                        : SSL_set1_host(ssl, name);

    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (ok == 1 && !is_address)
        ok = (int)SSL_set_tlsext_host_name(ssl, name);
    return ok == 1 ? 0
                   : xac_err_whole(EINVAL, "%s: no certificate has such a name", name);
}

bool
ship_channel_has_name(const struct ship_channel *c, const char *name)
{
    X509 *cert;
    bool is_for;

    if (c->ssl == NULL)
        return true;
    cert = SSL_get1_peer_certificate(c->ssl);
    is_for = cert != NULL
             && X509_check_host(cert, name, 0, X509_CHECK_FLAG_NO_WILDCARDS, NULL) == 1;
    X509_free(cert);
    return is_for;
}

int
ship_channel_exporter(const struct ship_channel *c, uint8_t out[SHIP_EXPORTER_BYTES])
{
    memset(out, 0, SHIP_EXPORTER_BYTES);
    if (c->ssl == NULL)
        return 0;
    return SSL_export_keying_material(c->ssl, out, SHIP_EXPORTER_BYTES, EXPORTER_LABEL,
                                      strlen(EXPORTER_LABEL), (const unsigned char *)"",
                                      0, 1)
                   == 1
               ? 0
               : xac_err(EIO, "the exporter value of TLS");
}

/* ---- Reading and writing ------------------------------------------------------------ */

/* refused -- why TLS has failed, in words. */
static int
refused(const SSL *ssl)
{
    long verified = SSL_get_verify_result(ssl);

    if (verified != X509_V_OK)
        return xac_err_whole(XAC_EFOREIGN, "the certificate of the other side: %s",
                             X509_verify_cert_error_string(verified));
    return xac_err_whole(XAC_EFOREIGN, "TLS with the other side: %s", tls_reason());
}

/* tls_result -- of a call on the connection; ret as ship_channel_read(). */
static ssize_t
tls_result(struct ship_channel *c, int rc, size_t n)
{
    int error = errno;

    if (rc == 1)
        return (ssize_t)n;
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
        c->wants = POLLIN;
        errno = EAGAIN;
        break;
    case SSL_ERROR_WANT_WRITE:
        c->wants = POLLOUT;
        errno = EAGAIN;
        break;
    case SSL_ERROR_SYSCALL:
        errno = error != 0 ? error : EPIPE;
        break;
    default:
        /* An end without the notice of TLS is a cut. */
        errno =
            ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
                ? EPIPE
                : EPROTO;
    }
    return -1;
}

static ssize_t
tls_read(struct ship_channel *c, void *buf, size_t n)
{
    size_t got = 0;
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_read_ex(c->ssl, buf, n, &got);
    return tls_result(c, rc, got);
}

static ssize_t
tls_write(struct ship_channel *c, const void *buf, size_t n)
{
    size_t put = 0;
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_write_ex(c->ssl, buf, n, &put);
    return tls_result(c, rc, put);
}

#else

bool
ship_tls_is_built(void)
{
    return false;
}

int
ship_tls_open(struct ship_tls *t, const struct ship_tls_files *files, bool is_server)
{
    *t = (struct ship_tls){.is_server = is_server};
    return files->cert == NULL && files->key == NULL && files->ca == NULL
               ? 0
               : xac_err_whole(ENOTSUP,
                               "this xship was built without libssl: it has no TLS");
}

void
ship_tls_close(struct ship_tls *t)
{
    t->ctx = NULL;
}

bool
ship_channel_has_name(const struct ship_channel *c, const char *name)
{
    (void)c;
    (void)name;
    return true;
}

int
ship_channel_exporter(const struct ship_channel *c, uint8_t out[SHIP_EXPORTER_BYTES])
{
    (void)c;
    memset(out, 0, SHIP_EXPORTER_BYTES);
    return 0;
}

#endif

ssize_t
ship_channel_read(struct ship_channel *c, void *buf, size_t n)
{
    c->wants = POLLIN;
#ifdef HAVE_LIBSSL
    if (c->ssl != NULL)
        return tls_read(c, buf, n);
#endif
    return recv(c->fd, buf, n, 0);
}

ssize_t
ship_channel_write(struct ship_channel *c, const void *buf, size_t n)
{
    c->wants = POLLOUT;
#ifdef HAVE_LIBSSL
    if (c->ssl != NULL)
        return tls_write(c, buf, n);
#endif
    return send(c->fd, buf, n, MSG_NOSIGNAL);
}

/* ---- Until a time ------------------------------------------------------------------- */

/* wait_for -- until the connection is ready for what the last call has wanted; ret 0 or an error. */
static int
wait_for(const struct ship_channel *c, uint64_t until_ns)
{
    struct pollfd p = {.fd = c->fd, .events = c->wants};
    uint64_t now_ns = xac_clock_ns();

    if (now_ns >= until_ns)
        return xac_err_whole(ETIMEDOUT, "the other side does not answer");
    if (poll(&p, 1, (int)((until_ns - now_ns) / 1000000) + 1) < 0)
        return xac_err(errno, "waiting for the other side"); /* a signal ends it, too */
    return 0;
}

/* failed -- words for errno of a read or a write. */
static int
failed(const struct ship_channel *c)
{
#ifdef HAVE_LIBSSL
    if (c->ssl != NULL && errno == EPROTO)
        return refused(c->ssl);
#else
    (void)c;
#endif
    return errno == EPIPE || errno == ECONNRESET
               ? xac_err_whole(EPIPE, "the other side has closed the connection")
               : xac_err(errno, "talking to the other side");
}

int
ship_channel_get(struct ship_channel *c, void *buf, size_t n, uint64_t until_ns)
{
    uint8_t *to = (uint8_t *)buf;
    int rc = 0;

    while (rc == 0 && n > 0) {
        ssize_t got = ship_channel_read(c, to, n);

        if (got > 0) {
            to += got;
            n -= (size_t)got;
        } else if (got == 0) {
            errno = EPIPE;
            rc = failed(c);
        } else {
            rc = errno == EAGAIN ? wait_for(c, until_ns) : failed(c);
        }
    }
    return rc;
}

int
ship_channel_put(struct ship_channel *c, const void *buf, size_t n, uint64_t until_ns)
{
    const uint8_t *from = (const uint8_t *)buf;
    int rc = 0;

    while (rc == 0 && n > 0) {
        ssize_t put = ship_channel_write(c, from, n);

        if (put > 0) {
            from += put;
            n -= (size_t)put;
        } else {
            rc = put < 0 && errno == EAGAIN ? wait_for(c, until_ns) : failed(c);
        }
    }
    return rc;
}

/* ---- Life --------------------------------------------------------------------------- */

#ifdef HAVE_LIBSSL
/* shake_hands -- ret as ship_channel_open(). */
static int
shake_hands(struct ship_channel *c, const struct ship_tls *t, uint64_t until_ns)
{
    ssize_t n;
    int rc;

    c->ssl = SSL_new(t->ctx);
    if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1)
        return xac_err(ENOMEM, "TLS");
    rc = t->is_server ? 0 : expect_name(c->ssl, t->name);
    while (rc == 0) {
        ERR_clear_error();
        errno = 0;
        n = tls_result(c, t->is_server ? SSL_accept(c->ssl) : SSL_connect(c->ssl), 1);
        if (n > 0)
            return 0;
        if (n == 0)
            errno = EPIPE;
        rc = errno == EAGAIN ? wait_for(c, until_ns) : failed(c);
    }
    return rc;
}
#endif

int
ship_channel_open(struct ship_channel *c, int fd, const struct ship_tls *t,
                  uint64_t until_ns)
{
    *c = (struct ship_channel){.fd = fd};
#ifdef HAVE_LIBSSL
    if (t->ctx != NULL)
        return shake_hands(c, t, until_ns);
#else
    (void)t;
    (void)until_ns;
#endif
    return 0;
}

void
ship_channel_end(struct ship_channel *c)
{
#ifdef HAVE_LIBSSL
    if (c->ssl != NULL)
        (void)SSL_shutdown(c->ssl);
#endif
    (void)shutdown(c->fd, SHUT_WR);
}

void
ship_channel_close(struct ship_channel *c)
{
#ifdef HAVE_LIBSSL
    SSL_free(c->ssl);
    c->ssl = NULL;
#endif
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}
