/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/team.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/util.h"

#define TIMEOUT_MS (2 * 60 * 1000)

/* From an order to many to its start. */
#define START_AHEAD_NS UINT64_C(1000000)

/* ---- The member's side ------------------------------------------------------------ */

/* serve -- orders and answers; never returns. */
static void __attribute__((noreturn))
serve(const struct bench_team *team, unsigned number, int socket)
{
    struct bench_order order;

    bench_pin(number, team->n);
    while (recv(socket, &order, sizeof order, 0) == (ssize_t)sizeof order) {
        struct bench_answer answer = {0};

        bench_sleep_until(order.start_ns);
        answer.code = team->obey(team->arg, number, &order, &answer);
        if (answer.code != 0)
            snprintf(answer.text, sizeof answer.text, "%s", team->explain(answer.code));
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
            _exit(2);
    }
    _exit(0);
}

/*
 * become_member -- a fresh child sheds what it inherited from the benchmark.
 *
 * in   sockets  ascending, each other one a descriptor in use: so sockets[i] is above
 *               STDERR_FILENO + 1 + i
 * out  sockets  the same, with other numbers
 */
static void
become_member(pid_t parent, int *sockets, unsigned n)
{
    const int first = STDERR_FILENO + 1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(2);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGTERM, SIG_DFL);
    /* Sockets of other members: kept open, they would hide the parent's end. */
    for (unsigned i = 0; i < n; i++)
        sockets[i] = dup2(sockets[i], first + (int)i);
    (void)close_range((unsigned)first + n, ~0u, 0);
}

/* ---- The parent's side ------------------------------------------------------------ */

/* socket_pairs -- n of them, numbers ascending; ret 0, or 1 after a message. */
static int
socket_pairs(int (*pairs)[2], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]) != 0) {
            (void)bench_fail("socketpair: %s", strerror(errno));
            while (i-- > 0) {
                close(pairs[i][0]);
                close(pairs[i][1]);
            }
            return 1;
        }
    return 0;
}

pid_t
bench_team_fork(int *sockets, unsigned n)
{
    pid_t parent = getpid(), pid;
    int pairs[BENCH_TEAM_SOCKETS_MAX][2];

    for (unsigned i = 0; i < n; i++)
        sockets[i] = -1;
    if (socket_pairs(pairs, n) != 0)
        return -1;
    fflush(NULL);
    pid = fork();
    for (unsigned i = 0; i < n; i++)
        sockets[i] = pairs[i][pid == 0];
    if (pid == 0) {
        become_member(parent, sockets, n);
        return 0;
    }
    if (pid < 0)
        (void)bench_fail("fork: %s", strerror(errno));
    for (unsigned i = 0; i < n; i++)
        close(pairs[i][1]);
    return pid;
}

/* member_fork -- ret 0, or 1 after a message. */
static int
member_fork(struct bench_team *team, unsigned w)
{
    int socket;
    pid_t pid = bench_team_fork(&socket, 1);

    if (pid == 0)
        serve(team, w, socket);
    team->member[w].pid = pid;
    team->member[w].socket = socket;
    return pid < 0;
}

int
bench_team_start(struct bench_team *team, unsigned n)
{
    int rc = 0;

    team->n = n;
    for (unsigned w = 0; w < n; w++) {
        team->member[w].pid = 0;
        team->member[w].socket = -1;
    }
    for (unsigned w = 0; w < n && rc == 0; w++)
        rc = member_fork(team, w);
    return rc;
}

/* await -- until member w has something to say; ret 0, or 1 after a message. */
static int
await(const struct bench_team *team, unsigned w, const struct bench_order *order)
{
    const char *what = team->order_names[order->kind];
    struct pollfd p[BENCH_TEAM_MAX];
    int n;

    for (unsigned i = 0; i < team->n; i++)
        p[i] = (struct pollfd){.fd = team->member[i].socket,
                               .events = (short)(i == w ? POLLIN : 0)};
    n = poll(p, team->n, order->timeout_ms != 0 ? (int)order->timeout_ms : TIMEOUT_MS);
    if (n <= 0)
        return bench_fail("%s: process %u: %s: %s", team->label, w, what,
                          n == 0 ? "no answer" : strerror(errno));
    if (p[w].revents & POLLIN)
        return 0;
    for (unsigned i = 0; i < team->n; i++)
        if (p[i].revents != 0)
            (void)bench_fail("%s: process %u died during %s", team->label, i, what);
    return 1;
}

/* hear -- the answer of member w; ret 0, or 1 after a message. */
static int
hear(const struct bench_team *team, unsigned w, const struct bench_order *order,
     struct bench_answer *answer)
{
    const char *what = team->order_names[order->kind];

    if (await(team, w, order) != 0)
        return 1;
    if (recv(team->member[w].socket, answer, sizeof *answer, 0)
        != (ssize_t)sizeof *answer)
        return bench_fail("%s: process %u died during %s", team->label, w, what);
    answer->text[sizeof answer->text - 1] = '\0';
    if (answer->code != 0)
        return bench_fail("%s: process %u: %s: %s", team->label, w, what, answer->text);
    return 0;
}

/* tell -- a member that is dead shows when its answer is read. */
static void
tell(const struct bench_team *team, unsigned w, const struct bench_order *order)
{
    (void)send(team->member[w].socket, order, sizeof *order, MSG_NOSIGNAL);
}

int
bench_team_ask(struct bench_team *team, unsigned number, const struct bench_order *order,
               struct bench_answer *answer)
{
    tell(team, number, order);
    return hear(team, number, order, answer);
}

uint64_t
bench_team_start_ns(void)
{
    return bench_now_ns() + START_AHEAD_NS;
}

int
bench_team_ask_all(struct bench_team *team, const struct bench_order *order,
                   struct bench_answer *answers)
{
    struct bench_order all = *order;
    int rc = 0;

    all.start_ns = bench_team_start_ns();
    for (unsigned w = 0; w < team->n; w++)
        tell(team, w, &all);
    for (unsigned w = 0; w < team->n && rc == 0; w++)
        rc = hear(team, w, &all, &answers[w]);
    return rc;
}

uint64_t
bench_team_ns(const struct bench_team *team, const struct bench_answer *answers)
{
    uint64_t start = UINT64_MAX, end = 0;

    for (unsigned w = 0; w < team->n; w++) {
        start = answers[w].start_ns < start ? answers[w].start_ns : start;
        end = answers[w].end_ns > end ? answers[w].end_ns : end;
    }
    return end - start;
}

void
bench_team_stop(struct bench_team *team)
{
    for (unsigned w = 0; w < team->n; w++) {
        if (team->member[w].socket >= 0)
            close(team->member[w].socket);
        team->member[w].socket = -1;
        if (team->member[w].pid > 0)
            kill(team->member[w].pid, SIGKILL);
        while (team->member[w].pid > 0 && waitpid(team->member[w].pid, NULL, 0) < 0
               && errno == EINTR)
            ;
        team->member[w].pid = 0;
    }
    team->n = 0;
}
