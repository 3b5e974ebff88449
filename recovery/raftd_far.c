/* SPDX-License-Identifier: MIT */
/*
 * raftd_far.c -- see raftd_far.h.
 */
#include <config.h>

#include "raftd_far.h"

#include <errno.h>
#include <sys/socket.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "raftd_ask.h"
#include "raftd_errand.h"

/* How long to wait for a line: nobody cuts that short. */
#define CALL_NS UINT64_C(1000000000)

/* How long a line may be silent: then the other end makes another one. */
#define IDLE_NS UINT64_C(600000000000)

/* How long to wait for a barrier here: the one that asks waits not much longer. */
#define BARRIER_NS UINT64_C(2500000000)

/* How long to wait for another node to lead, or for a change. */
#define CHANGE_NS UINT64_C(10000000000)

/* How long it may take to send an answer. */
#define SEND_NS UINT64_C(1000000000)

/* ---- Asking ------------------------------------------------------------------------- */

/* hang_up -- the line, if there is one. */
static void
hang_up(struct raftd_far *f)
{
    struct raftd_line *line;

    (void)pthread_mutex_lock(&f->lock);
    line = f->line;
    f->line = NULL;
    (void)pthread_mutex_unlock(&f->lock);
    if (line != NULL)
        raftd_net_hang_up(line);
}

/* call -- have a line to a node; ret 0 or an error. */
static int
call(struct raftd_far *f, uint32_t node, uint64_t until_ns)
{
    uint64_t most_ns = xac_clock_ns() + CALL_NS;
    struct raftd_line *line = NULL;
    bool is_cut;
    int rc;

    if (f->line != NULL && f->line->node == node)
        return 0;
    hang_up(f);
    rc = raftd_net_call(f->net, node, RAFTD_WANT_ASK,
                        until_ns < most_ns ? until_ns : most_ns, &line);
    if (rc != 0)
        return rc;
    (void)pthread_mutex_lock(&f->lock);
    is_cut = f->is_cut;
    f->line = line;
    (void)pthread_mutex_unlock(&f->lock);
    return is_cut ? ECANCELED : 0;
}

/* ask -- see struct raftd_reads_far. */
static int
ask(void *arg, uint32_t node, uint64_t until_ns, uint64_t *lsnp)
{
    struct raftd_far *f = (struct raftd_far *)arg;
    struct xac_raftd_ask question = {.kind = RAFTD_ASK_NEWEST}, answer;
    int rc = call(f, node, until_ns);

    if (rc == 0)
        rc = raftd_ask(f->line, &question, &answer, until_ns);
    if (rc != 0) {
        hang_up(f);
        return rc;
    }
    if (answer.status != RAFTD_ASK_GOOD)
        return EAGAIN;
    *lsnp = answer.value[0];
    return 0;
}

/* cut -- see struct raftd_reads_far. */
static void
cut(void *arg)
{
    struct raftd_far *f = (struct raftd_far *)arg;

    (void)pthread_mutex_lock(&f->lock);
    f->is_cut = true;
    if (f->line != NULL)
        (void)shutdown(f->line->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&f->lock);
}

/* end -- see struct raftd_reads_far. */
static void
end(void *arg)
{
    hang_up((struct raftd_far *)arg);
}

struct raftd_reads_far
raftd_far_reads(struct raftd_far *f)
{
    return (struct raftd_reads_far){.arg = f, .ask = ask, .cut = cut, .end = end};
}

/* ---- Answering ---------------------------------------------------------------------- */

/* answer_of -- a question; ret enum raftd_ask_status. */
static uint32_t
answer_of(struct raftd_far *f, uint32_t from, const struct xac_raftd_ask *question,
          uint64_t *value)
{
    uint64_t now = xac_clock_ns();

    switch (question->kind) {
    case RAFTD_ASK_NEWEST:
        return raftd_reads_position(f->reads, now + BARRIER_NS, value) == 0
                   ? RAFTD_ASK_GOOD
                   : RAFTD_ASK_NOT_NOW;
    case RAFTD_ASK_MEMBER:
    case RAFTD_ASK_REMOVE:
    case RAFTD_ASK_TRANSFER:
        return raftd_errand_serve(f->errands, from, question, now + CHANGE_NS, value);
    default:
        return RAFTD_ASK_UNKNOWN;
    }
}

void
raftd_far_serve(void *arg, struct raftd_line *line)
{
    struct raftd_far *f = (struct raftd_far *)arg;
    struct xac_raftd_ask question;
    int rc = raftd_ask_await(line, &question, xac_clock_ns() + IDLE_NS);

    while (rc == 0) {
        uint64_t value[XAC_RAFTD_ASK_VALUES] = {0};
        uint32_t status = answer_of(f, line->node, &question, &value[0]);

        rc = raftd_ask_answer(line, &question, status, value, xac_clock_ns() + SEND_NS);
        if (rc == 0)
            rc = raftd_ask_await(line, &question, xac_clock_ns() + IDLE_NS);
    }
}

/* ---- Life --------------------------------------------------------------------------- */

void
raftd_far_init(struct raftd_far *f, struct raftd_net *net, struct raftd_reads *reads)
{
    *f = (struct raftd_far){.net = net, .reads = reads};
    (void)pthread_mutex_init(&f->lock, NULL);
}

void
raftd_far_fini(struct raftd_far *f)
{
    xac_assert(f->line == NULL);
    (void)pthread_mutex_destroy(&f->lock);
}
