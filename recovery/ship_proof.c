/* SPDX-License-Identifier: MIT */
/*
 * ship_proof.c -- see ship_proof.h.
 */
#include <config.h>

#include "ship_proof.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"

/* ---- The secret --------------------------------------------------------------------- */

/* read_secret -- of an open file. */
static int
read_secret(int fd, const char *file, struct ship_secret *out)
{
    struct stat st;
    size_t n;
    int rc;

    if (fstat(fd, &st) != 0)
        return xac_err(errno, "%s", file);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        return xac_err_whole(EACCES,
                             "%s: a secret is in a file that only its owner can use "
                             "(chmod 600)",
                             file);
    rc = xac_read_full(fd, out->bytes, sizeof out->bytes, 0, &n);
    if (rc != 0)
        return xac_err(rc, "%s: read", file);
    if (n == sizeof out->bytes)
        return xac_err_whole(EINVAL, "%s: a secret has at most %d bytes", file,
                             SHIP_SECRET_MAX - 1);
    while (n > 0 && isspace(out->bytes[n - 1]))
        n--;
    if (n < SHIP_SECRET_MIN)
        return xac_err_whole(EINVAL, "%s: a secret has at least %d bytes", file,
                             SHIP_SECRET_MIN);
    out->n = n;
    return 0;
}

int
ship_secret_read(const char *file, struct ship_secret *out)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc;

    *out = (struct ship_secret){.n = 0};
    if (fd < 0)
        return xac_err(errno, "%s", file);
    rc = read_secret(fd, file, out);
    (void)close(fd);
    return rc;
}

/* ---- A proof ------------------------------------------------------------------------ */

/* One connection, as its proofs need it. */
struct talk {
    struct ship_channel *c;
    const struct ship_secret *secret;
    const struct ship_terms *terms;
    uint64_t until_ns;
    struct xac_net_greeting follower, server;
    uint8_t about[SHIP_ABOUT_MAX]; /* what the follower says of itself                */
    uint8_t exporter[SHIP_EXPORTER_BYTES];
};

/* make_mac -- of one side. */
static int
make_mac(const struct talk *t, const char *label, uint8_t mac[XAC_NET_MAC_BYTES])
{
    struct text {
        char label[XAC_NET_LABEL_BYTES];
        uint8_t exporter[SHIP_EXPORTER_BYTES];
        struct xac_net_greeting follower, server;
        uint8_t about[SHIP_ABOUT_MAX];
    } text = {.follower = t->follower, .server = t->server};
    size_t bytes = offsetof(struct text, about) + t->terms->about_bytes;
    unsigned n = 0;

    static_assert(offsetof(struct text, about) == 32 + 32 + 48 + 48, "format");
    memset(mac, 0, XAC_NET_MAC_BYTES);
    if (t->secret->n == 0)
        return 0;
    memcpy(text.label, label, strlen(label));
    memcpy(text.exporter, t->exporter, sizeof text.exporter);
    memcpy(text.about, t->about, t->terms->about_bytes);
    if (HMAC(EVP_sha256(), t->secret->bytes, (int)t->secret->n, (const uint8_t *)&text,
             bytes, mac, &n)
            != NULL
        && n == XAC_NET_MAC_BYTES)
        return 0;
    return xac_err(EIO, "HMAC-SHA-256 of libcrypto");
}

/* begin -- the own greeting, to be sent. */
static int
begin(struct talk *t, struct xac_net_greeting *own)
{
    *own = (struct xac_net_greeting){.flags = t->secret->n > 0 ? XAC_NET_SECRET : 0};
    memcpy(own->magic, t->terms->magic, sizeof own->magic);
    if (getrandom(own->nonce, sizeof own->nonce, 0) != (ssize_t)sizeof own->nonce)
        return xac_err(EIO, "random bytes");
    return ship_channel_exporter(t->c, t->exporter);
}

/* check_greeting -- of the other side. */
static int
check_greeting(const struct talk *t, const struct xac_net_greeting *g)
{
    bool has_secret = g->flags == XAC_NET_SECRET;

    if (memcmp(g->magic, t->terms->magic, sizeof g->magic) != 0 || g->reserved != 0
        || (g->flags & ~(uint32_t)XAC_NET_SECRET) != 0)
        return xac_err_whole(XAC_EFOREIGN, "the other side is no %s of this version%s",
                             t->terms->tool, t->c->ssl == NULL ? " without TLS" : "");
    if (has_secret == (t->secret->n > 0))
        return 0;
    return xac_err_whole(XAC_EFOREIGN, "%s has a secret (--secret-file)",
                         has_secret ? "only the other side"
                                    : "the other side does not prove "
                                      "it: only this one");
}

/* say_proof -- of this side. */
static int
say_proof(const struct talk *t, const char *label)
{
    struct xac_net_proof p = {.status = 0};
    int rc = make_mac(t, label, p.mac);

    return rc == 0 ? ship_channel_put(t->c, &p, sizeof p, t->until_ns) : rc;
}

/* check_proof -- of the other side (2), (4). */
static int
check_proof(const struct talk *t, const char *label, const struct xac_net_proof *p)
{
    uint8_t mac[XAC_NET_MAC_BYTES];
    int rc = make_mac(t, label, mac);

    if (rc != 0)
        return rc;
    return p->status == 0 && p->reserved == 0
                   && CRYPTO_memcmp(mac, p->mac, sizeof mac) == 0
               ? 0
               : xac_err_whole(XAC_EFOREIGN, "the other side has another secret");
}

/* ---- Both sides --------------------------------------------------------------------- */

int
ship_proof_give(struct ship_channel *c, const struct ship_secret *secret,
                const struct ship_terms *terms, const void *about, uint64_t until_ns)
{
    struct talk t = {.c = c, .secret = secret, .terms = terms, .until_ns = until_ns};
    struct xac_net_proof p;
    int rc = begin(&t, &t.follower);

    xac_assert(terms->about_bytes <= sizeof t.about);
    memcpy(t.about, about, terms->about_bytes);
    if (rc == 0)
        rc = ship_channel_put(c, &t.follower, sizeof t.follower, until_ns);
    if (rc == 0)
        rc = ship_channel_get(c, &t.server, sizeof t.server, until_ns);
    if (rc == EPIPE)
        rc = xac_err_whole(EPIPE, "the other side has closed the connection at once%s",
                           c->ssl == NULL ? "; does it use TLS?" : "");
    if (rc == 0)
        rc = check_greeting(&t, &t.server);
    if (rc == 0)
        rc = say_proof(&t, terms->label_follower);
    if (rc == 0)
        rc = ship_channel_put(c, t.about, terms->about_bytes, until_ns);
    if (rc == 0)
        rc = ship_channel_get(c, &p, sizeof p, until_ns);
    if (rc == 0 && p.status == XAC_NET_REFUSED)
        rc = xac_err_whole(XAC_EFOREIGN, "%s: its log says why", terms->refused);
    if (rc == 0)
        rc = check_proof(&t, terms->label_server, &p);
    return rc;
}

/* refuse -- tell a stranger no more than that. */
static int
refuse(const struct talk *t, int code)
{
    struct xac_net_proof p = {.status = XAC_NET_REFUSED};
    char words[XAC_ERR_BYTES];

    (void)snprintf(words, sizeof words, "%s", xac_err_text());
    (void)ship_channel_put(t->c, &p, sizeof p, t->until_ns);
    return xac_err_whole(code, "%s", words);
}

int
ship_proof_take(struct ship_channel *c, const struct ship_secret *secret,
                const struct ship_terms *terms,
                int (*check)(void *arg, const struct ship_channel *c, const void *about),
                void *arg, void *about, uint64_t until_ns)
{
    struct talk t = {.c = c, .secret = secret, .terms = terms, .until_ns = until_ns};
    struct xac_net_proof p;
    int rc = begin(&t, &t.server);

    xac_assert(terms->about_bytes <= sizeof t.about);
    if (rc == 0)
        rc = ship_channel_get(c, &t.follower, sizeof t.follower, until_ns);
    if (rc == 0 && memcmp(t.follower.magic, terms->magic, sizeof t.follower.magic) != 0)
        return check_greeting(&t, &t.follower); /* a stranger is not even greeted */
    if (rc == 0)
        rc = ship_channel_put(c, &t.server, sizeof t.server, until_ns);
    if (rc == 0)
        rc = check_greeting(&t, &t.follower);
    if (rc == 0)
        rc = ship_channel_get(c, &p, sizeof p, until_ns);
    if (rc == 0)
        rc = ship_channel_get(c, t.about, terms->about_bytes, until_ns);
    if (rc != 0)
        return rc;
    rc = check_proof(&t, terms->label_follower, &p);
    if (rc == 0)
        rc = check(arg, c, t.about); /* (1): not before */
    if (rc != 0)
        return refuse(&t, rc);
    memcpy(about, t.about, terms->about_bytes);
    return say_proof(&t, terms->label_server); /* (3) */
}

/* ---- A follower and its server ------------------------------------------------------ */

static const struct ship_terms xship = {
    .tool = "xship",
    .refused = "the server refuses this follower",
    .magic = XAC_NET_MAGIC,
    .label_follower = XAC_NET_LABEL_FOLLOWER,
    .label_server = XAC_NET_LABEL_SERVER,
    .about_bytes = sizeof(struct xac_net_name),
};

int
ship_proof_follow(struct ship_channel *c, const struct ship_secret *secret,
                  const char *slot, uint64_t until_ns)
{
    struct xac_net_name name = {.name = ""};

    memcpy(name.name, slot, strlen(slot));
    return ship_proof_give(c, secret, &xship, &name, until_ns);
}

/* check_name -- of the follower's slot. */
static int
check_name(void *arg, const struct ship_channel *c, const void *about)
{
    const char *name = ((const struct xac_net_name *)about)->name;

    (void)arg;
    if (memchr(name, '\0', XAC_SLOT_NAME_BYTES) == NULL || !xac_slot_name_ok(name))
        return xac_err_whole(XAC_EFOREIGN,
                             "the name of its slot is none that a slot has");
    return ship_channel_has_name(c, name)
               ? 0
               : xac_err_whole(XAC_EFOREIGN, "its certificate is not for its slot, %s",
                               name);
}

int
ship_proof_serve(struct ship_channel *c, const struct ship_secret *secret,
                 char slot[XAC_SLOT_NAME_BYTES], uint64_t until_ns)
{
    struct xac_net_name name;
    int rc = ship_proof_take(c, secret, &xship, check_name, NULL, &name, until_ns);

    if (rc == 0)
        memcpy(slot, name.name, sizeof name.name);
    return rc;
}
