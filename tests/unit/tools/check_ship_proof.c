/* SPDX-License-Identifier: MIT */
/*
 * check_ship_proof.c -- the beginning of a connection between xship serve and xship follow (recovery/ship_proof.h), and the
 * relay that carries what comes then (recovery/ship_relay.h).
 *
 * GOAL    Two sides with the same secret find each other.  If one bit of what one side sends is turned, if its own bytes come
 *         back to it, or if anything else comes, the other side refuses it, and a stranger gets no word.  The relay
 *         hands on what was sent, whatever pieces it comes in, and no record longer than it may be.
 * METHOD  Both sides are threads, and this one stands between them.  Random bytes, from a seed that is printed.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/clock.h"
#include "recovery/ship_proof.h"
#include "recovery/ship_relay.h"

#define FOLLOWER_BYTES (48 + 40 + 48)
#define SERVER_BYTES   (48 + 40)

const char *const tool_name = "check_ship_proof";

static const struct ship_secret secret = {.n = 20, .bytes = "a secret of 20 bytes"};

/* One side. */
struct side {
    struct ship_channel c;
    const struct ship_secret *secret;
    bool is_server;
    int rc, far; /* the other end of its connection                                   */
    char slot[XAC_SLOT_NAME_BYTES];
    pthread_t thread;
};

static uint64_t
soon(void)
{
    return xac_clock_ns() + UINT64_C(20000000000);
}

static void *
talk(void *arg)
{
    struct side *s = (struct side *)arg;

    s->rc = s->is_server ? ship_proof_serve(&s->c, s->secret, s->slot, soon())
                         : ship_proof_follow(&s->c, s->secret, "standby", soon());
    (void)shutdown(s->c.fd, SHUT_RDWR);
    return NULL;
}

/* make_side -- with a connection; it does not speak yet. */
static void
make_side(struct side *s, bool is_server, const struct ship_secret *its)
{
    int pair[2];

    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    must_ok(fcntl(pair[0], F_SETFL, O_NONBLOCK));
    *s = (struct side){.c = {.fd = pair[0]},
                       .secret = its,
                       .is_server = is_server,
                       .far = pair[1]};
}

static void
close_side(struct side *s)
{
    ship_channel_close(&s->c);
    (void)close(s->far);
}

/* pass -- what comes from one side to the other one, turned; *atp bytes have gone before; ret false: it has ended. */
static bool
pass(int from, int to, size_t *atp, size_t turn_bit)
{
    uint8_t buf[256];
    ssize_t n = read(from, buf, sizeof buf);

    if (n <= 0)
        return false;
    if (turn_bit / 8 >= *atp && turn_bit / 8 < *atp + (size_t)n)
        buf[turn_bit / 8 - *atp] ^= (uint8_t)(1u << turn_bit % 8);
    *atp += (size_t)n;
    (void)send(to, buf, (size_t)n, MSG_NOSIGNAL);
    return true;
}

/* meet -- both sides, with a bit turned of what each says; SIZE_MAX: none. */
static void
meet(struct side *follower, struct side *server, size_t turn_follower, size_t turn_server)
{
    struct pollfd p[2] = {{.fd = follower->far, .events = POLLIN},
                          {.fd = server->far, .events = POLLIN}};
    size_t at[2] = {0, 0};

    must_ok(pthread_create(&follower->thread, NULL, talk, follower));
    must_ok(pthread_create(&server->thread, NULL, talk, server));
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        must(poll(p, 2, 20000) > 0);
        if (p[0].revents != 0
            && !pass(follower->far, server->far, &at[0], turn_follower)) {
            (void)shutdown(server->far, SHUT_WR);
            p[0].fd = -1;
        }
        if (p[1].revents != 0 && !pass(server->far, follower->far, &at[1], turn_server)) {
            (void)shutdown(follower->far, SHUT_WR);
            p[1].fd = -1;
        }
    }
    must_ok(pthread_join(follower->thread, NULL));
    must_ok(pthread_join(server->thread, NULL));
    must(at[0] <= FOLLOWER_BYTES);
    must(at[1] <= SERVER_BYTES);
}

START_TEST(the_same_secret_opens)
{
    static const struct ship_secret none = {.n = 0},
                                    other = {.n = 20, .bytes = "a secret of 21 bytes"},
                                    longer = {.n = 21, .bytes = "a secret of 20 bytes."};
    static const struct {
        const struct ship_secret *follower, *server;
        bool opens;
    } pairs[] = {{&secret, &secret, true},  {&none, &none, true},
                 {&secret, &none, false},   {&none, &secret, false},
                 {&secret, &other, false},  {&other, &secret, false},
                 {&secret, &longer, false}, {&longer, &longer, true}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct side follower, server;

        make_side(&follower, false, pairs[i].follower);
        make_side(&server, true, pairs[i].server);
        meet(&follower, &server, SIZE_MAX, SIZE_MAX);
        if (pairs[i].opens) {
            must_ok(follower.rc);
            must_ok(server.rc);
            must(strcmp(server.slot, "standby") == 0);
        } else {
            must(follower.rc != 0);
            must(server.rc != 0);
            must_eq(server.slot[0], '\0');
        }
        close_side(&follower);
        close_side(&server);
    }
}
END_TEST

START_TEST(each_turned_bit_is_noticed)
{
    for (size_t bit = 0; bit < 8 * (FOLLOWER_BYTES + SERVER_BYTES); bit++) {
        bool is_followers = bit < 8 * FOLLOWER_BYTES;
        struct side follower, server;

        make_side(&follower, false, &secret);
        make_side(&server, true, &secret);
        meet(&follower, &server, is_followers ? bit : SIZE_MAX,
             is_followers ? SIZE_MAX : bit - 8 * FOLLOWER_BYTES);
        if (is_followers)
            must(server.rc != 0);
        must(follower.rc != 0);
        close_side(&follower);
        close_side(&server);
    }
}
END_TEST

START_TEST(a_side_does_not_prove_itself_to_itself)
{
    uint8_t buf[256];
    struct side follower;
    ssize_t n;

    make_side(&follower, false, &secret);
    must_ok(pthread_create(&follower.thread, NULL, talk, &follower));
    while ((n = read(follower.far, buf, sizeof buf)) > 0)
        (void)send(follower.far, buf, (size_t)n, MSG_NOSIGNAL);
    must_ok(pthread_join(follower.thread, NULL));
    must_eq(follower.rc, XAC_EFOREIGN);
    close_side(&follower);
}
END_TEST

START_TEST(a_server_that_does_not_greet_may_use_tls)
{
    struct side follower;

    make_side(&follower, false, &secret);
    must_ok(shutdown(follower.far, SHUT_WR));
    (void)talk(&follower);
    must_eq(follower.rc, EPIPE);
    must(strstr(xLastError(), "does it use TLS?") != NULL);
    close_side(&follower);
}
END_TEST

/* must_leak_nothing -- what a server has said to somebody who has said n bytes. */
static void
must_leak_nothing(int far, bool is_greeted)
{
    static const uint8_t refusal[40] = {1};
    uint8_t buf[256];
    ssize_t n, has = 0;

    while ((n = read(far, buf + has, sizeof buf - (size_t)has)) > 0)
        has += n;
    if (!is_greeted) {
        must_eq(has, 0);
        return;
    }
    must(has == 48 || has == 48 + 40);
    must(has == 48 || memcmp(buf + 48, refusal, sizeof refusal) == 0);
}

START_TEST(whatever_comes_is_refused)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 20000);

    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t said[FOLLOWER_BYTES + 64];
        size_t n = rnd_below(&seed, sizeof said + 1);
        bool has_magic = i % 2 == 0 && n >= 48;
        struct side server;

        for (size_t k = 0; k < n; k++)
            said[k] = (uint8_t)rnd_next(&seed);
        if (has_magic) {
            memcpy(said, XAC_NET_MAGIC, 8);
            memset(said + 8, 0, 8);
            said[8] = (uint8_t)rnd_below(&seed, 3);
        }
        if (has_magic && n >= 48 + 40 && i % 4 == 0)
            memset(said + 48, 0, 8);
        make_side(&server, true, &secret);
        if (n > 0)
            must_eq(send(server.far, said, n, 0), (ssize_t)n);
        (void)shutdown(server.far, SHUT_WR);
        (void)talk(&server);
        must(server.rc != 0);
        must_eq(server.slot[0], '\0');
        must_leak_nothing(server.far, has_magic);
        close_side(&server);
    }
}
END_TEST

/* ---- The relay ------------------------------------------------------------------------ */

/* A relay and the far end of its connection. */
struct line {
    struct ship_channel c;
    struct ship_relay r;
    int far;
};

static struct line *
make_line(void)
{
    struct line *l = (struct line *)calloc(1, sizeof *l);
    int pair[2];

    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    must_ok(fcntl(pair[0], F_SETFL, O_NONBLOCK));
    l->c = (struct ship_channel){.fd = pair[0]};
    l->far = pair[1];
    must_ok(ship_relay_start(&l->r, &l->c));
    return l;
}

static void
close_line(struct line *l)
{
    (void)close(l->far); /* else the relay waits for it */
    ship_relay_end(&l->r);
    ship_channel_close(&l->c);
    free(l);
}

START_TEST(records_are_carried_in_any_pieces)
{
    uint64_t seed = env_seed();
    uint8_t record[4 + 3000], got[3000];
    struct line *l = make_line();

    for (unsigned i = 0; i < 2000; i++) {
        uint32_t n = (uint32_t)rnd_below(&seed, 3001);
        size_t cut = rnd_below(&seed, n + 5);

        memcpy(record, &n, 4);
        memset(record + 4, (int)(i & 0xff), n);
        if (cut > 0)
            must_eq(send(l->far, record, cut, 0), (ssize_t)cut);
        if (cut < n + 4)
            must_eq(send(l->far, record + cut, n + 4 - cut, 0), (ssize_t)(n + 4 - cut));
        if (n > 0)
            must_eq(recv(l->r.end, got, n, MSG_WAITALL), (ssize_t)n);
        must(memcmp(got, record + 4, n) == 0);
    }
    close_line(l);
}
END_TEST

START_TEST(records_that_cannot_be_end_it)
{
    static const uint32_t lengths[] = {XAC_NET_RECORD_MAX + 1, UINT32_MAX, 0x80000000};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct line *l = make_line();
        char c;

        must_eq(send(l->far, &lengths[i], 4, 0), 4);
        must_eq(recv(l->r.end, &c, 1, 0), 0);
        ship_relay_end(&l->r);
        must(l->r.why != NULL);
        must(strstr(l->r.why, "record that cannot be") != NULL);
        ship_channel_close(&l->c);
        (void)close(l->far);
        free(l);
    }
}
END_TEST

START_TEST(what_was_written_before_the_end_is_sent)
{
    struct line *l = make_line();
    uint8_t *all = (uint8_t *)malloc(1 << 20);
    size_t has = 0;
    uint32_t n;

    must_eq(send(l->r.end, "farewell", 8, 0), 8);
    (void)shutdown(l->r.end, SHUT_RDWR);
    while (recv(l->far, &n, 4, MSG_WAITALL) == 4) {
        must(n <= XAC_NET_RECORD_MAX);
        if (n > 0)
            must_eq(recv(l->far, all + has, n, MSG_WAITALL), (ssize_t)n);
        has += n;
    }
    must_eq(has, 8);
    must(memcmp(all, "farewell", 8) == 0);
    free(all);
    close_line(l);
}
END_TEST

START_TEST(it_says_that_it_is_there)
{
    struct line *l = make_line();
    uint64_t begun_ns = xac_clock_ns();
    uint32_t n;

    for (int i = 0; i < 2; i++) {
        must_eq(recv(l->far, &n, 4, MSG_WAITALL), 4);
        must_eq(n, 0);
    }
    must(xac_clock_ns() - begun_ns >= UINT64_C(1500000000));
    close_line(l);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("ship_proof");
    TCase *t = env_tcase(s, "ship_proof", 120);

    tcase_add_test(t, the_same_secret_opens);
    tcase_add_test(t, each_turned_bit_is_noticed);
    tcase_add_test(t, a_side_does_not_prove_itself_to_itself);
    tcase_add_test(t, a_server_that_does_not_greet_may_use_tls);
    tcase_add_test(t, whatever_comes_is_refused);
    tcase_add_test(t, records_are_carried_in_any_pieces);
    tcase_add_test(t, records_that_cannot_be_end_it);
    tcase_add_test(t, what_was_written_before_the_end_is_sent);
    tcase_add_test(t, it_says_that_it_is_there);
    return env_main(s);
}
