/* SPDX-License-Identifier: MIT */
/*
 * raftd_raft.c -- see raftd_raft.h.
 */
#include <config.h>

#include "raftd_raft.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <raft.h>
#include <raft/uv.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "raftd_barrier.h"
#include "raftd_calls.h"
#include "raftd_change.h"
#include "raftd_command.h"
#include "raftd_decide.h"
#include "raftd_disk.h"
#include "raftd_entry.h"
#include "raftd_errand.h"
#include "raftd_gather.h"
#include "raftd_group.h"
#include "raftd_handover.h"
#include "raftd_intake.h"
#include "raftd_members.h"
#include "raftd_socket.h"
#include "raftd_stale.h"
#include "raftd_status.h"
#include "raftd_transport.h"

#define ELECTION_MS      1000
#define CONNECT_RETRY_MS 100

/* Entries that stay in Raft's log behind a snapshot, for members that are behind: at least, and at most; and no more bytes than
   what a snapshot is taken after, as far as the entries that have just gathered tell. */
#define TRAILING_LEAST 256
#define TRAILING_MOST  2048

/* A snapshot is sent again to a member that has not taken it, because its log does not reach so far yet. */
#define SNAPSHOT_AGAIN_MS 2000

/* No snapshot is due. */
#define THRESHOLD_NONE 0x7fffffffu

/* They end the daemon. */
#define SIGNALS 3
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* What another thread asks of the loop. */
struct ask {
    struct raftd_call call;
    struct raftd_raft *r;
    enum raftd_item_kind what; /* of a barrier                                         */
    uint64_t term;
    void *entry; /* that is proposed; else NULL                                       */
    size_t n;
    struct raftd_proposer who;
};

/* A request of libraft. */
struct proposal {
    struct raft_apply req;
    struct raftd_raft *r;
    uint64_t term;
    size_t n;
    struct raftd_proposer who;
};

struct raftd_raft {
    int dirfd;
    char *raft_dir;
    struct raftd_group *group;
    struct raftd_members members;
    struct raftd_raft_user user;
    struct raftd_status *status;

    /* The loop's. */
    uv_loop_t loop;
    struct raftd_transport connections;
    struct raft_uv_transport transport;
    struct raftd_disk disk; /* with the raft_io                                        */
    int (*start)(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick,
                 raft_io_recv_cb recv);
    struct raftd_intake intake;
    struct raftd_gather gather;
    struct raft_fsm fsm;
    struct raft raft;
    struct raftd_barriers barriers;
    struct raft_transfer transfer;
    struct raftd_calls asks;
    uv_check_t check;
    uv_signal_t signal[SIGNALS];
    struct raftd_socket socket;
    struct raftd_errands errands;
    uv_timer_t patience;  /* for a transfer of leadership                            */
    bool is_closing;      /* no more is taken from libraft                           */
    bool is_raft_closing; /* raft_close() has been called                            */
    bool is_held;         /* what others have asked for waits                         */
    uint32_t leader; /* as last told                                                */

    _Atomic uint64_t leading; /* term in which this node leads; 0 in none              */
    _Atomic bool is_running;

    pthread_mutex_t lock; /* of the following                                         */
    int rc; /* for which the daemon ends, and its words                               */
    char words[XAC_ERR_BYTES];
};

/* code_of -- what libraft has failed with: XAC_EDAMAGED if its files are not as it writes them. */
static int
code_of(int rv)
{
    xac_assert(rv != 0);
    return rv == RAFT_CORRUPT || rv == RAFT_MALFORMED ? XAC_EDAMAGED : EIO;
}

/* fail -- libraft has refused something; ret code_of(), with its words, or those of the transport. */
static int
fail(struct raftd_raft *r, const char *what, int rv)
{
    const char *words = raft_errmsg(&r->raft);

    return xac_err_whole(code_of(rv), "Raft: %s: %s", what,
                         words[0] != '\0' ? words : r->transport.errmsg);
}

/* ---- What other threads may know ---------------------------------------------------- */

/* note_why -- it ends, if nothing has been noted before: with these words of this thread. */
static void
note_why(struct raftd_raft *r, int rc)
{
    (void)pthread_mutex_lock(&r->lock);
    if (rc != 0 && r->rc == 0) {
        r->rc = rc;
        (void)snprintf(r->words, sizeof r->words, "%s", xac_err_text());
    }
    (void)pthread_mutex_unlock(&r->lock);
}

void *
raftd_raft_buffer(size_t n)
{
    return raft_malloc(n);
}

void
raftd_raft_free(void *buffer)
{
    if (buffer != NULL)
        raft_free(buffer);
}

uint64_t
raftd_raft_term(const struct raftd_raft *r)
{
    /* acquire: pairs with the release in note_role. */
    return atomic_load_explicit(&r->leading, memory_order_acquire);
}

bool
raftd_raft_leads(const struct raftd_raft *r, uint64_t term)
{
    return term != 0 && raftd_raft_term(r) == term;
}

bool
raftd_raft_is_late(const struct raftd_raft *r)
{
    return raftd_gather_is_late(&r->gather);
}

bool
raftd_raft_is_running(const struct raftd_raft *r)
{
    /* relaxed: nothing else is read because of it. */
    return atomic_load_explicit(&r->is_running, memory_order_relaxed);
}

/* ---- Telling the user --------------------------------------------------------------- */

/* put -- an item; without memory for it the node cannot go on. */
static void
put(struct raftd_raft *r, const struct raftd_item *item, const void *bytes, size_t n)
{
    if (r->user.put(r->user.arg, item, bytes, n) != 0) {
        fprintf(stderr, "xraftd: out of memory\n");
        abort(); /* as after kill -9: Raft's log has it */
    }
}

/* put_kind -- an item that has no more than that. */
static void
put_kind(struct raftd_raft *r, enum raftd_item_kind kind, uint64_t term)
{
    put(r, &(struct raftd_item){.kind = kind, .term = term}, NULL, 0);
}

/* ---- The state machine of libraft --------------------------------------------------- */

/* apply -- an entry is committed (1). */
static int
apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct raftd_raft *r = (struct raftd_raft *)fsm->data;
    struct raftd_item item = {.kind = RAFTD_ITEM_ENTRY};

    put(r, &item, buf->base, buf->len);
    if (raftd_gather_add(&r->gather, buf->len))
        raft_set_snapshot_threshold(&r->raft, 1);
    *result = NULL;
    return 0;
}

/* snapshot -- a descriptor, if the environment is as far as Raft (2). */
static int
snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct raftd_raft *r = (struct raftd_raft *)fsm->data;
    struct xac_raftd_descriptor *d;
    struct raftd_accepted a;
    unsigned most;

    if (r->user.progress(r->user.arg, r->gather.n_all, &a) != RAFTD_SETTLED)
        return RAFT_BUSY; /* it is tried again */
    d = (struct xac_raftd_descriptor *)raft_malloc(sizeof *d);
    *bufs = (struct raft_buffer *)raft_malloc(sizeof **bufs);
    if (d == NULL || *bufs == NULL) {
        raftd_raft_free(d);
        raftd_raft_free(*bufs);
        return RAFT_NOMEM;
    }
    raftd_descriptor_make(&a, r->group->id, d);
    (*bufs)[0] = (struct raft_buffer){.base = d, .len = sizeof *d};
    *n_bufs = 1;
    raft_set_snapshot_threshold(&r->raft, THRESHOLD_NONE);
    most = raftd_gather_entries(&r->gather, TRAILING_LEAST, TRAILING_MOST);
    raft_set_snapshot_trailing(&r->raft,
                               raftd_members_trail(&r->members, TRAILING_LEAST, most));
    raftd_gather_clear(&r->gather);
    (void)pthread_mutex_lock(&r->status->lock);
    r->status->snapshots++;
    (void)pthread_mutex_unlock(&r->status->lock);
    return 0;
}

/* restore -- Raft's log begins behind a snapshot. */
static int
restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct raftd_raft *r = (struct raftd_raft *)fsm->data;
    struct raftd_item item = {.kind = RAFTD_ITEM_SNAPSHOT};
    int rc = raftd_descriptor_read(buf->base, buf->len, r->group->id, &item.snapshot);

    if (rc != 0)
        return RAFT_CORRUPT;
    put(r, &item, NULL, 0);
    r->gather.n_all++;
    raftd_gather_clear(&r->gather);
    raft_free(buf->base);
    return 0;
}

/* ---- Messages ----------------------------------------------------------------------- */

/* room -- for entries that other nodes send (3). */
static enum raftd_room
room(void *arg)
{
    struct raftd_raft *r = (struct raftd_raft *)arg;
    struct raftd_accepted a;

    if (!raftd_gather_is_late(&r->gather))
        return RAFTD_ROOM_ALL;
    /* SETTLED: libraft takes the snapshot at its next step. */
    return r->user.progress(r->user.arg, r->gather.n_all, &a) == RAFTD_PART
               ? RAFTD_ROOM_PART
               : RAFTD_ROOM_NONE;
}

/* receive -- a message. */
static void
receive(struct raft_io *io, struct raft_message *m)
{
    struct raft *raft = (struct raft *)io->data;
    struct raftd_raft *r = (struct raftd_raft *)raft->data;

    if (r->is_closing)
        r->intake.recv(io, m);
    else
        raftd_intake_take(&r->intake, io, m);
}

/* start_io -- with `receive` between libraft and its connections. */
static int
start_io(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct raftd_raft *r = (struct raftd_raft *)((struct raft *)io->data)->data;

    r->intake.recv = recv;
    return r->start(io, msecs, tick, receive);
}

/* ---- Roles -------------------------------------------------------------------------- */

/* note_role -- has the role changed? */
static void
note_role(struct raftd_raft *r)
{
    bool leads = raft_state(&r->raft) == RAFT_LEADER && !r->is_closing;
    uint64_t term = raft_current_term(&r->raft), was = raftd_raft_term(r);
    uint64_t leading = leads ? term : 0;
    struct raftd_item item = {.kind = RAFTD_ITEM_LEADER, .term = term};
    const char *address;
    raft_id leader;

    raft_leader(&r->raft, &leader, &address);
    (void)pthread_mutex_lock(&r->status->lock);
    r->status->role = raft_state_name(raft_state(&r->raft));
    r->status->term = term;
    r->status->leader = (uint32_t)leader;
    r->status->entries = r->gather.n_all;
    r->status->gathered = r->gather.bytes;
    r->status->held = r->intake.bytes;
    (void)pthread_mutex_unlock(&r->status->lock);
    if (was == leading)
        return;
    /* release: pairs with the acquire in raftd_raft_term. */
    atomic_store_explicit(&r->leading, leading, memory_order_release);
    if (was != 0) {
        item.leader = leads ? 0 : (uint32_t)leader;
        put(r, &item, NULL, 0);
    }
    if (leading != 0) {
        item.leader = r->group->node;
        put(r, &item, NULL, 0);
        raftd_barrier_start(&r->barriers, RAFTD_ITEM_BARRIER, leading);
    }
}

struct raftd_errands *
raftd_raft_errands(struct raftd_raft *r)
{
    return &r->errands;
}

/* tell_to_stop -- the hand ends first, by STOP or REMOVED; ret false: it has been told. */
static bool
tell_to_stop(struct raftd_raft *r, enum raftd_item_kind kind)
{
    /* relaxed: nothing else is read because of it. */
    if (!atomic_exchange_explicit(&r->is_running, false, memory_order_relaxed))
        return false;
    put_kind(r, kind, 0);
    return true;
}

/* disk_failed -- others can lead (5): the hand ends first, as by a signal. */
static void
disk_failed(void *arg, int rc)
{
    struct raftd_raft *r = (struct raftd_raft *)arg;

    if (r->is_closing)
        return;
    note_why(r, rc);
    (void)tell_to_stop(r, RAFTD_ITEM_STOP);
}

static void
look(uv_check_t *check)
{
    struct raftd_raft *r = (struct raftd_raft *)check->data;

    if (r->is_closing)
        return;
    note_role(r);
    raftd_barrier_look(&r->barriers);
    raftd_disk_look(&r->disk);
    raftd_intake_look(&r->intake, &r->disk.io);
    raftd_members_look(&r->members);
    if (r->members.has_changed)
        put_kind(r, RAFTD_ITEM_MEMBERS, 0);
    r->members.has_changed = false;
    raftd_errand_look(&r->errands);
    raftd_handover_await(&r->members);
    if (r->is_held && !raftd_handover_is_leaving(&r->members))
        (void)uv_async_send(&r->asks.wake);
    if (!r->members.is_removed)
        raftd_decide_promote(&r->members);
    else
        (void)tell_to_stop(r, RAFTD_ITEM_REMOVED);
}

/* ---- Proposing ---------------------------------------------------------------------- */

static void
run_barrier(struct raftd_call *c)
{
    const struct ask *a = (const struct ask *)(void *)c;

    raftd_barrier_start(&a->r->barriers, a->what, a->term);
}

/* run_break -- an entry could not be proposed. */
static void
run_break(struct raftd_call *c)
{
    const struct ask *a = (const struct ask *)(void *)c;

    put_kind(a->r, RAFTD_ITEM_BROKEN, a->term);
}

static void
apply_done(struct raft_apply *req, int status, void *result)
{
    struct proposal *p = (struct proposal *)req->data;

    (void)result;
    if (p->who.arg != NULL)
        p->who.done(p->who.arg, p->n);
    /* If it leads no more the user is told in another way. */
    if (status != 0 && status != RAFT_LEADERSHIPLOST && !p->r->is_closing)
        put_kind(p->r, RAFTD_ITEM_BROKEN, p->term);
    free(p);
}

/* drop -- an entry that is not proposed. */
static void
drop(const struct ask *a)
{
    if (a->who.arg != NULL)
        a->who.done(a->who.arg, a->n);
    raftd_raft_free(a->entry);
}

/* run_propose -- an entry. */
static void
run_propose(struct raftd_call *c)
{
    const struct ask *a = (const struct ask *)(void *)c;
    struct raftd_raft *r = a->r;
    struct raft_buffer buf = {.base = a->entry, .len = a->n};
    struct proposal *p;
    int rc;

    if (!raftd_raft_leads(r, a->term) || raft_state(&r->raft) != RAFT_LEADER) {
        drop(a);
        return;
    }
    p = (struct proposal *)calloc(1, sizeof *p);
    if (p != NULL) {
        *p = (struct proposal){.r = r, .term = a->term, .n = a->n, .who = a->who};
        p->req.data = p;
    }
    rc = p != NULL ? raft_apply(&r->raft, &p->req, &buf, 1, apply_done) : RAFT_BUSY;
    if (rc == 0)
        return;
    if (raftd_change_is_refused(rc)) {
        drop(a);
        put_kind(r, RAFTD_ITEM_BROKEN, a->term);
    } else {
        /* Its memory may be libraft's already.  What libraft could not store ends the daemon. */
        raftd_raft_end(r, fail(r, "store an entry", rc));
        if (a->who.arg != NULL)
            a->who.done(a->who.arg, a->n);
    }
    free(p);
}

/* ---- The end ------------------------------------------------------------------------ */

/* closed -- libraft has ended: so do the loop's handles. */
static void
closed(struct raft *raft)
{
    struct raftd_raft *r = (struct raftd_raft *)raft->data;

    raft_uv_close(&r->disk.io);
    raftd_calls_end(&r->asks);
    uv_close((uv_handle_t *)&r->check, NULL);
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&r->signal[i], NULL);
    raftd_errands_end(&r->errands);
    raftd_socket_close(&r->socket);
    uv_close((uv_handle_t *)&r->patience, NULL);
}

/* close_raft -- once. */
static void
close_raft(struct raftd_raft *r)
{
    if (!r->is_raft_closing) {
        r->is_raft_closing = true;
        raft_close(&r->raft, closed);
    }
}

static void
transferred(struct raft_transfer *req)
{
    close_raft((struct raftd_raft *)req->data);
}

/* transfer_late -- nobody has taken over: libraft waits until somebody leads, and perhaps nobody can. */
static void
transfer_late(uv_timer_t *patience)
{
    close_raft((struct raftd_raft *)patience->data);
}

/* run_end -- the hand has ended: another node may lead at once. */
static void
run_end(struct raftd_call *c)
{
    struct raftd_raft *r = ((const struct ask *)(void *)c)->r;

    if (r->is_closing)
        return;
    r->is_closing = r->errands.is_closing = true;
    /* relaxed: nothing else is read because of it. */
    atomic_store_explicit(&r->is_running, false, memory_order_relaxed);
    r->transfer.data = r;
    if (raft_state(&r->raft) == RAFT_LEADER
        && raft_transfer(&r->raft, &r->transfer, raftd_handover_heir(&r->members),
                         transferred)
               == 0)
        (void)uv_timer_start(&r->patience, transfer_late, ELECTION_MS, 0);
    else
        close_raft(r);
}

/* ---- Asked by other threads --------------------------------------------------------- */

/* ask -- have the loop do something; ret 0, ENOMEM, ECANCELED. */
static int
ask(struct raftd_raft *r, void (*run)(struct raftd_call *c), const struct ask *what)
{
    struct ask *copy = (struct ask *)malloc(sizeof *copy);

    if (copy == NULL)
        return xac_err(ENOMEM, "Raft");
    *copy = *what;
    copy->call.run = run;
    copy->r = r;
    if (raftd_calls_put(&r->asks, &copy->call))
        return 0;
    free(copy);
    return xac_err_whole(ECANCELED, "the daemon ends");
}

int
raftd_raft_barrier(struct raftd_raft *r, enum raftd_item_kind what, uint64_t term)
{
    return ask(r, run_barrier, &(struct ask){.what = what, .term = term});
}

int
raftd_raft_break(struct raftd_raft *r, uint64_t term)
{
    return ask(r, run_break, &(struct ask){.term = term});
}

int
raftd_raft_propose(struct raftd_raft *r, uint64_t term, void *entry, size_t n,
                   struct raftd_proposer who)
{
    return ask(r, run_propose,
               &(struct ask){.term = term, .entry = entry, .n = n, .who = who});
}

void
raftd_raft_end(struct raftd_raft *r, int rc)
{
    note_why(r, rc);
    if (ask(r, run_end, &(struct ask){.term = 0}) == ENOMEM)
        abort(); /* nothing else ends it */
}

/* ---- The loop ----------------------------------------------------------------------- */

/* next_ask -- NULL: none. */
static struct ask *
next_ask(struct raftd_raft *r)
{
    return (struct ask *)(void *)raftd_calls_take(&r->asks);
}

/* serve -- what others have asked for. */
static void
serve(uv_async_t *wake)
{
    struct raftd_raft *r = (struct raftd_raft *)wake->data;
    struct ask *a;

    /* What waits goes on when another node leads, and is dropped, or when this one stays: look(). */
    r->is_held = raftd_handover_is_leaving(&r->members);
    while (!r->is_held && (a = next_ask(r)) != NULL) {
        a->call.run(&a->call);
        free(a);
    }
}

/* stop -- a signal: the hand ends first. */
static void
stop(uv_signal_t *signal, int number)
{
    struct raftd_raft *r = (struct raftd_raft *)signal->data;

    (void)number;
    if (!tell_to_stop(r, RAFTD_ITEM_STOP))
        _exit(1); /* the second one: as after kill -9 */
}

/* make_handles -- of the loop; they cannot fail. */
static void
make_handles(struct raftd_raft *r)
{
    raftd_calls_init(&r->asks, &r->loop, serve, r);
    (void)uv_check_init(&r->loop, &r->check);
    raftd_socket_init(&r->socket, &r->loop, r->status);
    raftd_errands_init(&r->errands, &r->loop, r->connections.net, r->group, r->status,
                       &r->members);
    r->socket.command = raftd_command_take;
    r->socket.arg = &r->errands;
    (void)uv_timer_init(&r->loop, &r->patience);
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&r->loop, &r->signal[i]);
        r->signal[i].data = r;
    }
    r->check.data = r->patience.data = r;
}

/* ---- Life --------------------------------------------------------------------------- */

struct raftd_raft *
raftd_raft_create(int dirfd, const char *dir, struct raftd_group *group,
                  struct raftd_net *net, const struct raftd_raft_user *user,
                  struct raftd_status *status, uint64_t snapshot_bytes)
{
    struct raftd_raft *r = (struct raftd_raft *)calloc(1, sizeof *r);
    size_t n = strlen(dir) + sizeof "/" XAC_RAFTD_DIR;

    if (r == NULL)
        return NULL;
    r->raft_dir = (char *)malloc(n);
    if (r->raft_dir == NULL || uv_loop_init(&r->loop) != 0
        || raftd_transport_init(&r->connections, &r->transport, &r->loop, net) != 0) {
        free(r->raft_dir);
        free(r);
        return NULL;
    }
    (void)snprintf(r->raft_dir, n, "%s/" XAC_RAFTD_DIR, dir);
    r->dirfd = dirfd;
    r->group = group;
    if (user != NULL)
        r->user = *user;
    r->status = status;
    r->barriers = (struct raftd_barriers){.r = r,
                                          .raft = &r->raft,
                                          .loop = &r->loop,
                                          .disk = &r->disk,
                                          .leads = raftd_raft_leads,
                                          .put = put_kind};
    raftd_gather_init(&r->gather, snapshot_bytes);
    raftd_intake_init(&r->intake, group->id, &r->user, room, r);
    (void)pthread_mutex_init(&r->lock, NULL);
    make_handles(r);
    return r;
}

/* init_raft -- the node, not started; ret 0; or EIO, XAC_EDAMAGED and others, with words: `raft` cannot be used. */
static int
init_raft(struct raftd_raft *r)
{
    char address[RAFTD_ADDRESS_BYTES];
    unsigned seed;
    int rv;

    if (!raftd_group_address(r->group, r->group->node, address))
        return xac_err_whole(EINVAL, "it is no node of the group");
    if (getentropy(&seed, sizeof seed) != 0)
        return xac_err(errno, "Raft");
    rv = raft_uv_init(&r->disk.io, &r->loop, r->raft_dir, &r->transport);
    if (rv != 0)
        return xac_err_whole(code_of(rv), "Raft: %s: %s", r->raft_dir, r->disk.io.errmsg);
    raft_uv_set_auto_recovery(&r->disk.io, false); /* (4) */
    raft_uv_set_connect_retry_delay(&r->disk.io, CONNECT_RETRY_MS);
    raftd_disk_watch(&r->disk, &r->loop, r->raft_dir, disk_failed, r);
    r->start = r->disk.io.start;
    r->disk.io.start = start_io;
    r->fsm = (struct raft_fsm){.version = 2,
                               .data = r,
                               .apply = apply,
                               .snapshot = snapshot,
                               .restore = restore};
    rv = raft_init(&r->raft, &r->disk.io, &r->fsm, r->group->node, address);
    if (rv != 0)
        return fail(r, r->raft_dir, rv);
    r->raft.data = r;
    raftd_members_init(&r->members, &r->raft, r->group);
    raft_seed(&r->raft, seed);
    raft_set_election_timeout(&r->raft, ELECTION_MS);
    raft_set_pre_vote(&r->raft, true);
    raft_set_install_snapshot_timeout(&r->raft, SNAPSHOT_AGAIN_MS);
    raft_set_snapshot_threshold(&r->raft, THRESHOLD_NONE);
    raft_set_snapshot_trailing(&r->raft, TRAILING_LEAST);
    return 0;
}

int
raftd_raft_bootstrap(struct raftd_raft *r)
{
    struct raft_configuration conf;
    int rv = 0, rc = init_raft(r);

    if (rc != 0)
        return rc;
    raft_configuration_init(&conf);
    for (unsigned i = 0; rv == 0 && i < r->group->n; i++)
        rv = raft_configuration_add(&conf, r->group->member[i].node,
                                    r->group->member[i].address, RAFT_VOTER);
    if (rv == 0)
        rv = raft_bootstrap(&r->raft, &conf);
    raft_configuration_close(&conf);
    if (rv != 0 && rv != RAFT_CANTBOOTSTRAP)
        rc = fail(r, "make its first entry", rv);
    r->is_closing = true;
    close_raft(r);
    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    return rc;
}

/* start_raft -- with the log that it has; ret 0, or as fail(). */
static int
start_raft(struct raftd_raft *r)
{
    int rv = raft_start(&r->raft);

    if (rv != 0 && raftd_stale_remove(r->raft_dir))
        rv = raft_start(&r->raft);
    return rv == 0 ? 0 : fail(r, "start", rv);
}

int
raftd_raft_run(struct raftd_raft *r)
{
    int rc = init_raft(r);

    if (rc != 0)
        return rc;
    atomic_store_explicit(&r->is_running, true,
                          memory_order_relaxed); /* no other thread */
    for (size_t i = 0; i < SIGNALS; i++)
        (void)uv_signal_start(&r->signal[i], stop, signals[i]);
    rc = raftd_socket_listen(&r->socket, r->dirfd);
    if (rc == 0)
        rc = start_raft(r);
    if (rc == 0)
        (void)uv_check_start(&r->check, look);
    else
        raftd_raft_end(r, rc);
    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    if (r->rc != 0)
        (void)xac_err_whole(r->rc, "%s", r->words);
    return r->rc;
}

void
raftd_raft_destroy(struct raftd_raft *r)
{
    struct ask *a;

    while ((a = next_ask(r)) != NULL) {
        raftd_raft_free(a->entry); /* who proposed it is gone */
        free(a);
    }
    raftd_intake_fini(&r->intake);
    (void)uv_loop_close(&r->loop);
    raftd_transport_fini(&r->connections);
    raftd_errands_fini(&r->errands);
    raftd_calls_fini(&r->asks);
    (void)pthread_mutex_destroy(&r->lock);
    free(r->raft_dir);
    free(r);
}
