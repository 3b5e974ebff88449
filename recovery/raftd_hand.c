/* SPDX-License-Identifier: MIT */
/*
 * raftd_hand.c -- see raftd_hand.h.
 */
#include <config.h>

#include "raftd_hand.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "log/group_note.h"
#include "log/log_format.h"
#include "log/recover_next.h"
#include "shared/group.h"
#include "tool.h"

/* How often to look whether a program has deposed the environment. */
#define LOOK_MS 50

/* How often to look for a node that leads, while there is nothing here. */
#define BEGIN_MS 500

/* ---- Words and figures -------------------------------------------------------------- */

static const char *const state_words[] = {
    [RAFTD_CLOSED] = "closed", [RAFTD_STANDBY] = "standby", [RAFTD_LEADER] = "writable",
    [RAFTD_STRAY] = "stray",   [RAFTD_EMPTY] = "empty",
};

/* settle -- what a snapshot of Raft may say by now, or as soon as it is durable (4). */
static void
settle(struct raftd_hand *h)
{
    const struct raftd_place *p = &h->place;
    bool is_whole =
        !p->has_news && h->accepted.data_end == 0 && xac_ship_note_is_whole(&p->note);
    bool is_durable = raftd_kept_is_empty(&h->kept);

    (void)pthread_mutex_lock(&h->lock);
    h->awaits = NULL;
    if (!p->has_news && is_durable)
        h->n_done = h->n_taken;
    if (is_whole && is_durable) {
        h->n_settled = h->n_taken;
        h->settled = h->accepted;
    } else if (is_whole && p->state == RAFTD_LEADER) {
        h->awaits = p;
        h->n_due = h->n_taken;
        h->due = h->accepted;
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* publish -- for those who ask how far it is. */
static void
publish(struct raftd_hand *h)
{
    struct raftd_status *s = h->status;

    raftd_place_look(&h->place);
    raftd_kept_drop(&h->kept, h->place.durable, h->accepted.end);
    (void)pthread_mutex_lock(&s->lock);
    s->state = state_words[h->place.state];
    s->generation = h->place.generation;
    s->replicated = h->accepted.end;
    s->durable = h->place.durable;
    s->applied = h->place.applied;
    s->last_node = h->accepted.last_node;
    (void)pthread_mutex_unlock(&s->lock);
    settle(h);
}

/* say -- a change, on standard error. */
static void __attribute__((format(printf, 2, 3)))
say(const struct raftd_hand *h, const char *fmt, ...)
{
    char words[160];
    va_list args;

    if (h->is_quiet)
        return;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    fprintf(stderr, "%s: node %" PRIu32 ": %s\n", tool_name, h->group->node, words);
}

/* leader_words -- who leads, for programs that are told. */
static void
leader_words(const struct raftd_hand *h, uint32_t leader, char words[64])
{
    char address[RAFTD_ADDRESS_BYTES];

    words[0] = '\0';
    if (leader != 0 && raftd_group_address(h->group, leader, address))
        (void)snprintf(words, 64, "node %" PRIu32 " (%.40s)", leader, address);
}

/* tell_leader -- programs on a node that follows, if it has changed. */
static void
tell_leader(struct raftd_hand *h)
{
    uint32_t leader = raftd_status_leader(h->status, 0);
    char words[64];

    if (h->place.state != RAFTD_STANDBY
        || (h->told_env == h->place.env && h->told_leader == leader))
        return;
    h->told_env = h->place.env;
    h->told_leader = leader;
    leader_words(h, leader, words);
    xac_group_set_leader(h->place.env, words);
}

/* turn_away -- the environment is going to be closed. */
static void
turn_away(struct raftd_hand *h)
{
    raftd_reads_deafen(&h->reads);
    h->told_env = NULL;
    (void)pthread_mutex_lock(&h->lock);
    h->awaits = NULL;
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- What the log may lack (5) ------------------------------------------------------ */

/* cut -- this node has led: its log ends at the end of what counts of it, and what it lacks is taken again. */
static int
cut(struct raftd_hand *h, uint64_t end)
{
    struct raftd_place *p = &h->place;
    int rc = raftd_place_cut(p, end);
    bool is_over = p->generation != h->accepted.generation;

    if (rc == 0) /* pieces behind the cut are of a block that will never count */
        rc = raftd_kept_take(&h->kept, p, is_over ? end : UINT64_MAX);
    return rc;
}

/* cut_whole -- the same, and then it has all of that. */
static int
cut_whole(struct raftd_hand *h, uint64_t end)
{
    const struct raftd_place *p = &h->place;
    int rc = cut(h, end);

    if (rc == 0 && p->end != end)
        rc = xac_err(XAC_EFOREIGN,
                     "%s: its log ends at LSN %" PRIu64
                     ", but a majority has it up to LSN %" PRIu64,
                     p->dir, p->end, end);
    return rc;
}

/* may_wait -- for queries that hold up another generation. */
static bool
may_wait(void *arg)
{
    const struct raftd_hand *h = (const struct raftd_hand *)arg;

    xac_assert(h->raft != NULL);
    return raftd_raft_is_running(h->raft);
}

/* end_if_cancelled -- the daemon ends, and old queries still hold up another generation: it comes again. */
static int
end_if_cancelled(struct raftd_hand *h, int rc)
{
    xac_assert(h->raft != NULL);
    h->is_stopped = h->is_stopped || rc == ECANCELED;
    return rc == ECANCELED ? 0 : rc;
}

/* turn -- another node has begun a generation. */
static int
turn(struct raftd_hand *h, const struct raftd_accepted *a)
{
    struct raftd_place *p = &h->place;
    int rc = 0;

    if (p->state == RAFTD_STRAY && p->generation < a->generation)
        rc = cut_whole(h, a->cut);
    if (rc == 0 && p->has_news)
        rc = raftd_place_settle(p);
    if (rc == 0)
        rc = raftd_place_turn(p, a, may_wait, h);
    return end_if_cancelled(h, rc);
}

/* ---- The end of leading ------------------------------------------------------------- */

/* leave -- this node leads no more: programs detach, and the log ends at what has been accepted. */
static int
leave(struct raftd_hand *h, uint32_t leader, uint64_t end)
{
    uint64_t began_ns = xac_clock_ns();
    char words[64];
    int rc;

    xac_assert(h->place.state == RAFTD_LEADER);
    leader_words(h, leader, words);
    turn_away(h);
    raftd_feed_stop(&h->feed);
    rc = raftd_place_leave(&h->place, words);
    publish(h);
    if (rc == 0)
        rc = cut_whole(h, end);
    if (rc == 0)
        say(h, "leads no more; the log is cut at LSN %" PRIu64 ", after %.0f ms", end,
            (double)(xac_clock_ns() - began_ns) / 1e6);
    return rc;
}

/* begin_anew -- this node is still the leader, but what it had begun has ended: N2. */
static int
begin_anew(struct raftd_hand *h)
{
    uint64_t term = raftd_raft_term(h->raft);

    xac_assert(h->place.state != RAFTD_LEADER);
    h->open_term = 0;
    return term != 0 ? raftd_raft_barrier(h->raft, RAFTD_ITEM_BARRIER, term) : 0;
}

/* ---- Leading ------------------------------------------------------------------------ */

/* propose_open -- N4. */
static int
propose_open(struct raftd_hand *h, uint64_t term)
{
    struct raftd_entry e = {.kind = RAFTD_OPEN,
                            .generation = h->accepted.generation + 1,
                            .lsn = h->accepted.end,
                            .n = sizeof(struct xac_raftd_open)};
    struct xac_raftd_open open = {.start = xac_next_start(h->accepted.end),
                                  .segment_bytes = h->accepted.segment_bytes,
                                  .node = h->group->node};
    void *entry = raftd_raft_buffer(raftd_entry_bytes(e.n));
    int rc;

    if (entry == NULL)
        return xac_err(ENOMEM, "entry of Raft's log");
    if (!xac_log_generation_ok(e.generation)
        || getentropy(h->nonce, sizeof h->nonce) != 0) {
        raftd_raft_free(entry);
        return xac_err(EOVERFLOW, "generation %" PRIu32, e.generation);
    }
    memcpy(e.nonce, h->nonce, sizeof e.nonce);
    memcpy(raftd_entry_body(entry), &open, sizeof open);
    raftd_entry_seal(entry, &e);
    h->open_term = term;
    rc = raftd_raft_propose(h->raft, term, entry, raftd_entry_bytes(e.n),
                            (struct raftd_proposer){.arg = NULL});
    if (rc != 0)
        raftd_raft_free(entry);
    return rc;
}

/* take_barrier -- N2 and N3: all that was committed before has been judged. */
static int
take_barrier(struct raftd_hand *h, uint64_t term)
{
    struct raftd_place *p = &h->place;
    int rc = 0;

    if (!raftd_raft_leads(h->raft, term))
        return 0;
    if (p->state == RAFTD_LEADER)
        rc = leave(h, 0, h->accepted.end);
    if (rc == 0 && p->state == RAFTD_STRAY)
        rc = cut_whole(h, h->accepted.end);
    if (rc == 0)
        rc = raftd_place_settle(p);
    if (rc != 0)
        return rc;
    if (p->generation != h->accepted.generation || p->end != h->accepted.end)
        return xac_err(XAC_EFOREIGN,
                       "%s: its log ends at LSN %" PRIu64 ", generation %" PRIu32
                       ", but that of the group at LSN %" PRIu64 ", generation %" PRIu32,
                       p->dir, p->end, p->generation, h->accepted.end,
                       h->accepted.generation);
    return propose_open(h, term); /* (2) */
}

/* lead -- N5: our OPEN has counted. */
static int
lead(struct raftd_hand *h)
{
    int rc;

    xac_assert(h->accepted.node == h->group->node);
    turn_away(h);
    rc = raftd_place_lead(&h->place, &h->accepted);
    if (rc == 0)
        rc =
            raftd_feed_start(&h->feed, h->place.dir, &h->accepted, h->raft, h->open_term);
    h->open_term = 0;
    if (rc == 0 && h->send != NULL)
        raftd_send_clean(h->send);
    if (rc == 0)
        say(h, "leads: generation %" PRIu32 " from LSN %" PRIu64 ", after %.0f ms",
            h->accepted.generation, h->accepted.start,
            (double)(xac_clock_ns() - h->began_ns) / 1e6);
    return rc;
}

/* ---- Entries ------------------------------------------------------------------------ */

/* is_ours -- is it the OPEN that this life of the daemon has proposed (3)? */
static bool
is_ours(const struct raftd_hand *h, const struct raftd_entry *e)
{
    return h->open_term != 0 && memcmp(e->nonce, h->nonce, sizeof h->nonce) == 0;
}

/* take_open -- an OPEN that counts: the writer changes. */
static int
take_open(struct raftd_hand *h, const struct raftd_entry *e)
{
    int rc = 0;

    xac_assert(h->accepted.cut == e->lsn);
    if (h->place.state == RAFTD_LEADER)
        rc = leave(h, h->accepted.node, e->lsn);
    if (rc == 0 && is_ours(h, e) && raftd_raft_leads(h->raft, h->open_term))
        return lead(h);
    return rc == 0 ? turn(h, &h->accepted) : rc;
}

/* take_counting -- an entry that counts. */
static int
take_counting(struct raftd_hand *h, const struct raftd_entry *e)
{
    struct raftd_place *p = &h->place;

    if (e->kind == RAFTD_OPEN)
        return take_open(h, e);
    if (e->kind == RAFTD_NODE)
        return 0; /* accepted.last_node says all */
    if (p->state == RAFTD_STANDBY)
        return raftd_place_take(p, e);
    /* Its log has been told of it: it has it, unless power has failed. */
    h->keeps_item = e->kind != RAFTD_NOTE && e->generation == p->generation
                    && (p->state == RAFTD_LEADER || p->state == RAFTD_STRAY);
    if (p->state == RAFTD_LEADER && e->generation == p->generation && e->end > p->end)
        raftd_place_raise(p, e->end); /* F3 */
    return 0;
}

/* take_entry -- one that Raft has committed. */
static int
take_entry(struct raftd_hand *h, struct raftd_item *item)
{
    const struct raftd_entry *e = &item->at;
    int rc = raftd_entry_read(item->bytes, item->n, &item->at);

    if (rc != 0)
        return rc;
    h->n_taken++;
    if (raftd_entry_accept(&h->accepted, e))
        return take_counting(h, e);
    (void)pthread_mutex_lock(&h->status->lock);
    h->status->dead++;
    (void)pthread_mutex_unlock(&h->status->lock);
    return e->kind == RAFTD_OPEN && is_ours(h, e) ? begin_anew(h) : 0;
}

/* ---- What else Raft says ------------------------------------------------------------ */

/* take_leader -- another node leads, or nobody. */
static int
take_leader(struct raftd_hand *h, const struct raftd_item *item)
{
    h->began_ns = xac_clock_ns();
    if (item->leader == h->group->node || h->place.state != RAFTD_LEADER)
        return 0;
    return leave(h, item->leader, h->accepted.end);
}

/* take_read -- a barrier: all that was acknowledged before it was begun has been accepted. */
static int
take_read(struct raftd_hand *h, uint64_t term)
{
    raftd_reads_barrier_done(&h->reads, term != 0, h->accepted.end);
    return 0;
}

/* take_broken -- what the feed proposes behind a gap would not count. */
static int
take_broken(struct raftd_hand *h, uint64_t term)
{
    int rc = 0;

    if (!raftd_raft_leads(h->raft, term))
        return 0;
    if (h->place.state == RAFTD_LEADER)
        rc = leave(h, 0, h->accepted.end);
    return rc == 0 ? begin_anew(h) : rc;
}

/* take_snapshot -- Raft begins behind it; S3: the log here has what it says. */
static int
take_snapshot(struct raftd_hand *h, const struct raftd_accepted *a)
{
    struct raftd_place *p = &h->place;

    h->n_taken++;
    h->accepted = *a;
    if (!raftd_accepted_is_in(a, p->generation, p->end, p->state == RAFTD_STRAY))
        return xac_err_whole(XAC_ECUTOFF,
                             "%s: its log ends at LSN %" PRIu64 ", generation %" PRIu32
                             ", and the group has no log behind that before LSN %" PRIu64
                             ", generation %" PRIu32 ": the node needs a new copy",
                             p->dir, p->end, p->generation, a->end, a->generation);
    return p->generation < a->generation ? turn(h, a) : 0;
}

/* ---- Far behind --------------------------------------------------------------------- */

/* is_enough -- does the log reach as far as what is fetched must? */
static bool
is_enough(void *arg, uint32_t generation, uint64_t durable)
{
    const struct raftd_hand *h = (const struct raftd_hand *)arg;

    return raftd_accepted_is_in(&h->target, generation, durable, false);
}

/* leader_of -- the node that leads, as far as Raft knows; 0: it does not. */
static uint32_t
leader_of(struct raftd_hand *h)
{
    uint32_t leader = raftd_status_leader(h->status, 0);

    return leader != h->group->node ? leader : 0;
}

/* fetch -- from a node; what it has not come to comes the next time. */
static int
fetch(struct raftd_hand *h, uint32_t node)
{
    bool is_done = false;
    int rc;

    turn_away(h); /* while log is fetched it is closed; or a copy replaces it */
    rc = raftd_fetch(&h->fetch, &h->place, node, &is_done);
    if (is_done)
        say(h, "has the log of node %" PRIu32 " up to LSN %" PRIu64, node,
            h->place.durable);
    return rc;
}

/* take_behind -- Raft has only a snapshot for this node: S2. */
static int
take_behind(struct raftd_hand *h, const struct raftd_accepted *a)
{
    struct raftd_place *p = &h->place;
    uint32_t leader = leader_of(h);
    int rc = 0;

    if (raftd_accepted_is_in(a, p->generation, p->durable, p->state == RAFTD_STRAY)
        || leader == 0 || p->state == RAFTD_LEADER)
        return 0;
    if (p->state == RAFTD_STRAY && p->generation == a->generation)
        rc = cut(h, a->end);
    else if (p->state == RAFTD_STRAY && p->generation + 1 == a->generation)
        rc = cut(h, a->cut);
    if (rc == 0 && p->has_news)
        rc = raftd_place_settle(p);
    h->target = *a;
    return rc == 0 ? fetch(h, leader) : rc;
}

/* begin -- the first copy of a node that has nothing: from the node that leads, which is not known yet. */
static int
begin(struct raftd_hand *h)
{
    int rc = 0;

    h->target.generation = 0;
    while (rc == 0 && h->place.state == RAFTD_EMPTY) {
        struct raftd_member member[RAFTD_MEMBERS_MAX];
        unsigned n = raftd_group_members(h->group, member);

        for (unsigned i = 0; rc == 0 && i < n && h->place.state == RAFTD_EMPTY; i++) {
            /* relaxed: nothing else is read because of it. */
            h->is_stopped = atomic_load_explicit(&h->is_told, memory_order_relaxed);
            if (h->is_stopped)
                return 0;
            if (member[i].node != h->group->node)
                rc = fetch(h, member[i].node);
        }
        if (rc == 0 && h->place.state == RAFTD_EMPTY)
            (void)poll(NULL, 0, BEGIN_MS);
    }
    publish(h);
    return rc;
}

/* take_members -- for the next start. */
static int
take_members(struct raftd_hand *h)
{
    if (raftd_group_write(h->place.dirfd, h->place.dir, h->group) != 0)
        say(h, "%s",
            xac_err_text()); /* Raft has it; and perhaps there is room the next time */
    return 0;
}

/* take -- an item. */
static int
take(struct raftd_hand *h, struct raftd_item *item)
{
    switch (item->kind) {
    case RAFTD_ITEM_ENTRY:
        return take_entry(h, item);
    case RAFTD_ITEM_BARRIER:
        return take_barrier(h, item->term);
    case RAFTD_ITEM_READ:
        return take_read(h, item->term);
    case RAFTD_ITEM_LEADER:
        return take_leader(h, item);
    case RAFTD_ITEM_BROKEN:
        return take_broken(h, item->term);
    case RAFTD_ITEM_SNAPSHOT:
        return take_snapshot(h, &item->snapshot);
    case RAFTD_ITEM_MEMBERS:
        return take_members(h);
    case RAFTD_ITEM_BEHIND:
        return take_behind(h, &item->snapshot);
    default:
        h->is_stopped = true;
        return 0;
    }
}

/* look -- nothing has come for a moment. */
static int
look(struct raftd_hand *h)
{
    int rc = 0;

    if (h->place.state == RAFTD_STANDBY)
        rc = raftd_place_settle(&h->place);
    else if (raftd_place_is_deposed(&h->place)) {
        say(h, "a program has waited too long for a majority");
        rc = leave(h, 0, h->accepted.end);
        if (rc == 0)
            rc = begin_anew(h);
    }
    return rc;
}

/* part -- this node has been removed from the group (6). */
static int
part(struct raftd_hand *h)
{
    int rc = xac_group_note_remove(h->place.dirfd);

    xac_assert(h->place.state != RAFTD_LEADER);
    fprintf(stderr, "%s: node %" PRIu32 " has been removed from the group\n", tool_name,
            h->group->node);
    turn_away(h);
    return rc == 0 ? raftd_place_retreat(&h->place, "this node has been removed") : rc;
}

/* serve -- until it is told to stop, or cannot go on. */
static int
serve(struct raftd_hand *h)
{
    int rc = begin(h);

    while (rc == 0 && !h->is_stopped) {
        struct raftd_item *item =
            raftd_queue_take(&h->queue, h->place.has_news ? 0 : LOOK_MS);

        if (item == NULL || raftd_place_is_full(&h->place)
            || raftd_place_is_deposed(&h->place))
            rc = look(h);
        if (rc == 0 && item != NULL)
            rc = take(h, item);
        if (h->keeps_item)
            raftd_kept_add(&h->kept, item);
        else
            free(item);
        h->keeps_item = false;
        if (rc == 0)
            publish(h);
        if (rc == 0)
            tell_leader(h);
        if (rc == 0 && h->place.env != NULL)
            rc = raftd_reads_listen(&h->reads, h->place.env);
    }
    if (rc == 0 && h->place.state == RAFTD_LEADER)
        rc = leave(h, 0, h->accepted.end); /* L1, before another node leads */
    /* relaxed: nothing else is read because of it. */
    if (rc == 0 && atomic_load_explicit(&h->is_removed, memory_order_relaxed))
        rc = part(h);
    return rc;
}

/* say_opened -- to the thread that has started this one. */
static void
say_opened(struct raftd_hand *h, int rc)
{
    (void)pthread_mutex_lock(&h->lock);
    h->is_opened = true;
    h->open_rc = rc;
    (void)snprintf(h->open_words, sizeof h->open_words, "%s",
                   rc != 0 ? xac_err_text() : "");
    (void)pthread_cond_signal(&h->opened);
    (void)pthread_mutex_unlock(&h->lock);
}

/* run -- the thread. */
static void *
run(void *arg)
{
    struct raftd_hand *h = (struct raftd_hand *)arg;
    int left, rc = raftd_place_open(&h->place, h->place.dirfd, h->place.dir);
    bool is_open = rc == 0;

    if (is_open)
        publish(h);
    say_opened(h, rc);
    if (is_open)
        rc = serve(h);
    raftd_reads_stop(&h->reads);
    raftd_feed_stop(&h->feed);
    if (is_open && rc != 0)
        raftd_raft_end(h->raft, rc); /* with its words */
    turn_away(h);
    left = raftd_place_close(&h->place);
    publish(h);
    if (is_open && rc == 0)
        raftd_raft_end(h->raft, left);
    return NULL;
}

/* ---- From Raft's thread ------------------------------------------------------------- */

/* tell -- what is being fetched ends, too. */
static void
tell(struct raftd_hand *h)
{
    /* relaxed: nothing else is handed over. */
    atomic_store_explicit(&h->is_told, true, memory_order_relaxed);
}

static int
put(void *arg, const struct raftd_item *item, const void *bytes, size_t n)
{
    struct raftd_hand *h = (struct raftd_hand *)arg;

    if (item->kind == RAFTD_ITEM_REMOVED) /* relaxed: nothing else is handed over */
        atomic_store_explicit(&h->is_removed, true, memory_order_relaxed);
    if (item->kind == RAFTD_ITEM_STOP || item->kind == RAFTD_ITEM_REMOVED)
        tell(h);
    return raftd_queue_put(&h->queue, item, bytes, n);
}

/* progress -- (4). */
static enum raftd_progress
progress(void *arg, uint64_t n, struct raftd_accepted *a)
{
    struct raftd_hand *h = (struct raftd_hand *)arg;
    enum raftd_progress far;

    (void)pthread_mutex_lock(&h->lock);
    if (h->n_settled < n && h->awaits != NULL && raftd_place_has(h->awaits, h->due.end)) {
        h->n_done = h->n_settled = h->n_due;
        h->settled = h->due;
        h->awaits = NULL;
    }
    far = h->n_settled >= n ? RAFTD_SETTLED : h->n_done >= n ? RAFTD_PART : RAFTD_BUSY;
    *a = h->settled;
    (void)pthread_mutex_unlock(&h->lock);
    return far;
}

/* has_here -- by what has been published last. */
static bool
has_here(void *arg, const struct raftd_accepted *a)
{
    struct raftd_hand *h = (struct raftd_hand *)arg;
    struct raftd_status *s = h->status;
    bool answer;

    (void)pthread_mutex_lock(&s->lock);
    answer = raftd_accepted_is_in(a, s->generation, s->durable,
                                  strcmp(s->state, "stray") == 0);
    (void)pthread_mutex_unlock(&s->lock);
    return answer;
}

struct raftd_raft_user
raftd_hand_user(struct raftd_hand *h)
{
    return (struct raftd_raft_user){.arg = h,
                                    .put = put,
                                    .progress = progress,
                                    .has = has_here};
}

/* ---- Life --------------------------------------------------------------------------- */

void
raftd_hand_init(struct raftd_hand *h, struct raftd_group *group, struct raftd_net *net,
                int dirfd, const char *dir, struct raftd_status *status)
{
    *h = (struct raftd_hand){.group = group,
                             .fetch = {.net = net, .is_enough = is_enough},
                             .status = status,
                             .place = {.dirfd = dirfd, .dir = dir},
                             .accepted = group->begin,
                             .settled = group->begin};
    h->fetch.stop = &h->is_told;
    h->fetch.arg = h;
    raftd_queue_init(&h->queue);
    raftd_reads_init(&h->reads, status);
    raftd_feed_init(&h->feed);
    raftd_kept_init(&h->kept);
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_cond_init(&h->opened, NULL);
}

void
raftd_hand_fini(struct raftd_hand *h)
{
    xac_assert(!h->is_started);
    raftd_kept_drop_all(&h->kept);
    raftd_feed_fini(&h->feed);
    raftd_reads_fini(&h->reads);
    raftd_queue_fini(&h->queue);
    (void)pthread_cond_destroy(&h->opened);
    (void)pthread_mutex_destroy(&h->lock);
}

int
raftd_hand_start(struct raftd_hand *h, struct raftd_raft *raft,
                 const struct raftd_reads_far *far)
{
    int rc;

    h->raft = raft;
    rc = raftd_reads_start(&h->reads, raft, far);
    if (rc != 0)
        return rc;
    rc = pthread_create(&h->thread, NULL, run, h);
    if (rc != 0)
        return xac_err(rc, "thread");
    h->is_started = true;
    (void)pthread_mutex_lock(&h->lock);
    while (!h->is_opened)
        (void)pthread_cond_wait(&h->opened, &h->lock);
    (void)pthread_mutex_unlock(&h->lock);
    return h->open_rc == 0 ? 0 : xac_err_whole(h->open_rc, "%s", h->open_words);
}

void
raftd_hand_stop(struct raftd_hand *h)
{
    struct raftd_item stop = {.kind = RAFTD_ITEM_STOP};

    if (!h->is_started) {
        raftd_reads_stop(&h->reads);
        return;
    }
    tell(h);
    (void)raftd_queue_put(&h->queue, &stop, NULL, 0);
    (void)pthread_join(h->thread, NULL);
    h->is_started = false;
}
