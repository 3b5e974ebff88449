/* SPDX-License-Identifier: MIT */
/*
 * ship_follow.c -- see ship_net.h: the standby's side.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "ship_net.h"
#include "ship_relay.h"
#include "tool.h"

#define SECOND_NS UINT64_C(1000000000)

/* What does not change is said once a minute. */
#define SAY_S 60

struct following {
    const struct ship_job *job;
    struct ship_addr at;
    struct ship_secret secret;
    struct ship_tls tls;
    struct xac_receive_report rep; /* of the last connection                           */
    uint64_t transactions;         /* of all connections                               */
    bool was_connected;            /* the last one has come to receiving               */
    unsigned again_ms;
    char said[XAC_ERR_BYTES]; /* last                                                  */
    uint64_t said_ns;
};

/* ---- One connection ----------------------------------------------------------------- */

/* receive -- through a relay; ret as ship_receive(). */
static int
receive(struct following *f, struct ship_channel *c)
{
    static struct ship_relay relay;
    int rc = ship_relay_start(&relay, c);

    if (rc != 0)
        return rc;
    f->was_connected = true;
    rc = ship_receive(f->job, relay.end, relay.end, &f->rep);
    f->transactions += f->rep.transactions;
    ship_relay_end(&relay);
    return rc == EPIPE && relay.why != NULL ? xac_err_whole(EPIPE, "%s", relay.why) : rc;
}

/* connect_once -- until the connection breaks; ret 0: the source has ended in order, or a signal. */
static int
connect_once(struct following *f)
{
    uint64_t until_ns = xac_clock_ns() + SHIP_STRANGER_S * SECOND_NS;
    struct ship_channel c = {.fd = -1};
    int fd = -1;
    int rc = ship_addr_connect(&f->at, until_ns, &fd);

    f->was_connected = false;
    if (rc != 0)
        return rc;
    rc = ship_channel_open(&c, fd, &f->tls, until_ns);
    if (rc == 0)
        rc = ship_proof_follow(&c, &f->secret, f->job->slot, until_ns);
    if (rc == 0)
        rc = receive(f, &c);
    ship_channel_close(&c);
    return rc;
}

/* ---- Again and again ---------------------------------------------------------------- */

/* may_mend -- by itself. */
static bool
may_mend(const struct following *f, int rc)
{
    switch (rc) {
    case 0: /* the server has been stopped */
    case EPIPE:
    case ECONNRESET:
    case ETIMEDOUT:
    case EBUSY: /* the server has not noticed yet that this one was cut off */
        return true;
    case EINTR:
    case EAGAIN:
    case ENOENT: /* a Unix socket, before the server has made it */
    case ECONNREFUSED:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
        return !f->was_connected;
    default:
        return false;
    }
}

/* say -- why, unless it has just been said. */
static void
say(struct following *f, int rc)
{
    const char *words = rc == 0 ? "the server has ended" : xac_err_text();
    uint64_t now_ns = xac_clock_ns();

    if (strcmp(words, f->said) == 0 && now_ns - f->said_ns < SAY_S * SECOND_NS)
        return;
    f->said_ns = now_ns;
    (void)snprintf(f->said, sizeof f->said, "%s", words);
    fprintf(stderr, "%s: %s: %s; connecting again\n", tool_name, f->at.text, words);
}

/* pause_before -- the next attempt; a connection that was of use begins anew with the shortest time. */
static void
pause_before(struct following *f, uint64_t lasted_ns)
{
    if (f->was_connected
        && (f->rep.transactions > 0 || f->rep.was_copied
            || lasted_ns > SHIP_AGAIN_MS_MAX * UINT64_C(1000000))) {
        f->again_ms = SHIP_AGAIN_MS;
        f->said[0] = '\0';
    }
    for (unsigned ms = 0; ms < f->again_ms && !ship_is_stopped(); ms += 100)
        (void)poll(NULL, 0, 100);
    f->again_ms =
        f->again_ms < SHIP_AGAIN_MS_MAX / 2 ? 2 * f->again_ms : SHIP_AGAIN_MS_MAX;
}

/* follow -- ret 0 after a signal, or what does not mend itself. */
static int
follow(struct following *f)
{
    int rc = 0;

    f->again_ms = SHIP_AGAIN_MS;
    for (;;) {
        uint64_t begun_ns = xac_clock_ns();

        f->rep = (struct xac_receive_report){.was_copied = false};
        rc = connect_once(f);
        if (ship_is_stopped() && (rc == 0 || may_mend(f, rc)))
            return 0;
        if (!may_mend(f, rc))
            return rc;
        say(f, rc);
        pause_before(f, xac_clock_ns() - begun_ns);
        if (ship_is_stopped())
            return 0;
    }
}

int
ship_follow(const struct ship_job *job, const struct ship_net_options *o)
{
    static struct following f;
    struct ship_tls_files files = o->tls;
    int rc = ship_addr_read(o->address, &f.at);

    f.job = job;
    if (rc != 0)
        return rc;
    if (o->secret_file != NULL)
        rc = ship_secret_read(o->secret_file, &f.secret);
    if (files.name == NULL)
        files.name = f.at.host;
    if (rc == 0 && files.cert != NULL && files.name[0] == '\0')
        rc = xac_err_whole(EINVAL,
                           "%s: say which name the server's certificate has "
                           "(--tls-name)",
                           o->address);
    if (rc == 0)
        rc = ship_tls_open(&f.tls, &files, false);
    if (rc == 0)
        rc = follow(&f);
    ship_tls_close(&f.tls);
    f.rep.transactions = f.transactions;
    if (rc == 0)
        ship_say_received(job, &f.rep);
    return rc;
}
