/* SPDX-License-Identifier: MIT */
/*
 * model.c -- see model.h.
 */
#include "model.h"

#include <stddef.h>
#include <string.h>

static uint32_t
bit(int i)
{
    return 1u << i;
}

/* tried_of -- the running, or last, transaction of a participant. */
static struct model_tried *
tried_of(struct model *m, int a)
{
    return &m->tried[a][m->actor[a].n_begun - 1];
}

static int
id_of(const struct model *m, int a)
{
    return a * MODEL_TXNS + (int)m->actor[a].n_begun - 1;
}

static uint32_t
newest(const struct model *m)
{
    return m->n_states - 1;
}

uint64_t
model_first_value(int page)
{
    return (uint64_t)page + 1;
}

void
model_init(struct model *m, enum model_policy policy, int n_attached, bool stays_mapped)
{
    memset(m, 0, sizeof *m);
    m->policy = policy;
    m->is_exact = policy == MODEL_OLDEST_WINS;
    m->n_states = 1;
    m->next_age = 1;
    m->stays_mapped = stays_mapped;
    for (int p = 0; p < MODEL_PAGES; p++)
        m->state[0][p] = model_first_value(p);
    for (int a = 0; a < n_attached; a++)
        m->actor[a].is_attached = 1;
}

static int
n_attached(const struct model *m)
{
    int n = 0;

    for (int a = 0; a < MODEL_ACTORS; a++)
        n += m->actor[a].is_attached != 0;
    return n;
}

void
model_joins(struct model *m)
{
    m->n_joining++;
    for (int u = 0; u < MODEL_ACTORS; u++) {
        struct model_actor *t = &m->actor[u];

        if (t->is_open && t->status != MODEL_QUERY && t->is_alone)
            tried_of(m, u)->may_fail = 1;
    }
}

void
model_joined(struct model *m, int a)
{
    for (int u = 0; u < MODEL_ACTORS; u++) {
        if (m->actor[u].status == MODEL_PENDING && m->actor[u].is_alone)
            m->actor[u].status = MODEL_FAILED;
    }
    m->n_joining--;
    m->actor[a].is_attached = 1;
}

void
model_leave(struct model *m, int a)
{
    m->actor[a].is_attached = 0;
}

void
model_begins(struct model *m, int a, bool is_query)
{
    struct model_actor *t = &m->actor[a];
    uint32_t mine;

    t->n_begun++;
    mine = bit(id_of(m, a));
    t->is_open = 1;
    t->status = is_query ? MODEL_QUERY : MODEL_PENDING;
    t->is_alone = m->stays_mapped && n_attached(m) == 1 && m->policy != MODEL_SERIAL;
    t->low = newest(m);
    if (m->n_joining > 0 && m->policy != MODEL_SERIAL)
        tried_of(m, a)->may_fail = 1;
    t->has_read = t->has_stored = t->is_granted_read = t->is_granted_write = 0;
    for (int u = 0; u < MODEL_ACTORS; u++) {
        if (u == a || !m->actor[u].is_open || m->actor[u].n_begun == 0)
            continue;
        tried_of(m, u)->overlaps |= mine;
        tried_of(m, a)->overlaps |= bit(id_of(m, u));
    }
}

const char *
model_begun(struct model *m, int a, uint64_t age, bool has_turn)
{
    struct model_actor *t = &m->actor[a];

    t->high = newest(m);
    t->parent = newest(m);
    t->has_turn = has_turn;
    if (t->status == MODEL_QUERY)
        return NULL;
    tried_of(m, a)->age = age;
    if (!t->is_retry)
        t->age = m->next_age++;
    /* Ages are compared with those of the others only. */
    for (int u = 0; u < MODEL_ACTORS && m->is_exact; u++) {
        if (u == a || !m->actor[u].is_open || m->actor[u].status == MODEL_QUERY)
            continue;
        if ((t->age < m->actor[u].age) != (age < tried_of(m, u)->age))
            return "age is not kept from one attempt to the next";
    }
    return NULL;
}

void
model_wants(struct model *m, int a, int page, bool is_write)
{
    struct model_tried *t = tried_of(m, a);

    if (m->actor[a].status == MODEL_QUERY)
        return;
    t->reads |= bit(page);
    if (is_write)
        t->writes |= bit(page);
}

/* is_seen_by_all -- do all who query a snapshot see that value? */
static bool
is_seen_by_all(struct model_held *h, int page, uint64_t value)
{
    if ((h->has_read & bit(page)) != 0)
        return h->read[page] == value;
    h->has_read |= bit(page);
    h->read[page] = value;
    return true;
}

/* access -- oldest-wins, if no two steps overlap. */
static void
access(struct model *m, int a, int page, bool is_write)
{
    struct model_actor *t = &m->actor[a];
    uint32_t older = 0, others = 0;

    if (t->status != MODEL_PENDING
        || ((is_write ? t->is_granted_write : t->is_granted_read) & bit(page)) != 0)
        return;
    for (int u = 0; u < MODEL_ACTORS; u++) {
        const struct model_actor *o = &m->actor[u];
        uint32_t has =
            is_write ? o->is_granted_read | o->is_granted_write : o->is_granted_write;

        if (u == a || !o->is_open || o->status != MODEL_PENDING || (has & bit(page)) == 0)
            continue;
        others |= bit(u);
        if (o->age < t->age && !o->is_dead)
            older |= bit(u);
    }
    if (older != 0) {
        t->status = MODEL_FAILED;
        return;
    }
    for (int u = 0; u < MODEL_ACTORS; u++) {
        if ((others & bit(u)) != 0)
            m->actor[u].status = MODEL_FAILED;
    }
    t->is_granted_read |= bit(page);
    if (is_write)
        t->is_granted_write |= bit(page);
    t->parent = newest(m);
}

const char *
model_saw(struct model *m, int a, int page, uint64_t value, bool is_write)
{
    struct model_actor *t = &m->actor[a];

    if (t->status != MODEL_QUERY)
        access(m, a, page, is_write);
    if ((t->has_stored & bit(page)) != 0)
        return value == t->stored[page] ? NULL : "does not see its own store";
    if ((t->has_read & bit(page)) != 0 && t->read[page] != value)
        return "a value changed within a transaction";
    if (t->at != 0 && !is_seen_by_all(&m->held[t->at - 1], page, value))
        return "a snapshot shows two values";
    if (m->is_exact && value != m->state[t->parent][page])
        return "not the value of the state that it should see";
    t->has_read |= bit(page);
    t->read[page] = value;
    return NULL;
}

void
model_stored(struct model *m, int a, int page, uint64_t value)
{
    m->actor[a].has_stored |= bit(page);
    m->actor[a].stored[page] = value;
}

const char *
model_status(const struct model *m, int a, enum model_status status)
{
    if (m->is_exact && status != m->actor[a].status)
        return status == MODEL_FAILED ? "failed without a reason"
                                      : "pending in spite of a conflict";
    return NULL;
}

void
model_gave_up(struct model *m, int a)
{
    tried_of(m, a)->may_fail = 1;
    if (m->actor[a].status != MODEL_PENDING)
        return;
    m->actor[a].status = MODEL_FAILED;
    m->actor[a].is_retry = 2; /* see model_ended */
}

/* is_in -- do values of some pages agree with a state? */
static bool
is_in(const struct model *m, uint32_t pages, const uint64_t *value, uint32_t state)
{
    for (int p = 0; p < MODEL_PAGES; p++) {
        if ((pages & bit(p)) != 0 && value[p] != m->state[state][p])
            return false;
    }
    return true;
}

/* agrees -- does what it has read, and others who query its snapshot, agree with a state? */
static bool
agrees(const struct model *m, const struct model_actor *t, uint32_t state)
{
    const struct model_held *h = t->at != 0 ? &m->held[t->at - 1] : NULL;

    return is_in(m, t->has_read, t->read, state)
           && (h == NULL || is_in(m, h->has_read, h->read, state));
}

const char *
model_published(struct model *m, int a)
{
    struct model_actor *t = &m->actor[a];
    uint64_t *now = m->state[m->n_states];

    if (!t->is_open)
        return "published without a transaction";
    if (t->status == MODEL_QUERY)
        return "a query has published";
    if ((t->is_alone & 2) != 0)
        return "published twice";
    if (m->is_exact && t->status != MODEL_PENDING)
        return "published though it had failed";
    if (!agrees(m, t, newest(m)))
        return "published, but has not read the state just before";
    if (m->n_states == MODEL_STATES)
        return "the model is too small";
    memcpy(now, m->state[newest(m)], sizeof m->state[0]);
    for (int p = 0; p < MODEL_PAGES; p++) {
        if ((t->has_stored & bit(p)) != 0)
            now[p] = t->stored[p];
    }
    m->n_states++;
    /* From here on it is as if it had read what it stored. */
    t->has_read |= t->has_stored;
    for (int p = 0; p < MODEL_PAGES; p++) {
        if ((t->has_stored & bit(p)) != 0)
            t->read[p] = t->stored[p];
    }
    t->is_alone |= 2; /* published: see changes_something */
    return NULL;
}

/* changes_something -- has it stored a value that was not there? */
static bool
changes_something(const struct model_actor *t)
{
    for (int p = 0; p < MODEL_PAGES; p++) {
        if ((t->has_stored & bit(p)) != 0 && t->stored[p] != t->read[p])
            return true;
    }
    return false;
}

void
model_ends(struct model *m, int a)
{
    m->actor[a].is_ending = 1;
}

const char *
model_ended(struct model *m, int a, bool is_committed)
{
    struct model_actor *t = &m->actor[a];
    bool is_published = (t->is_alone & 2) != 0;
    bool gave_up = t->is_retry == 2;
    const char *wrong = NULL;

    if (t->status == MODEL_QUERY)
        wrong = is_committed ? NULL : "a query has failed";
    else if (!is_committed && is_published)
        wrong = "published, but was told that it was aborted";
    else if (is_committed && !is_published && changes_something(t))
        wrong = "committed, but not published";
    else if (m->is_exact && is_committed != (t->status == MODEL_PENDING))
        wrong =
            is_committed ? "committed though it had failed" : "aborted without a reason";
    else if (!is_committed && t->has_turn && !tried_of(m, a)->may_fail)
        wrong = "lost, though it had the turn";
    else if (!is_committed)
        wrong = model_judge(m, a, MODEL_FAILED);
    if (t->status != MODEL_QUERY)
        t->is_retry = !is_committed && !gave_up;
    t->status = MODEL_NONE;
    t->is_open = t->is_alone = t->has_turn = t->is_ending = 0;
    t->parent = t->low = t->high = t->at = t->n_marks = 0;
    t->has_read = t->has_stored = t->is_granted_read = t->is_granted_write = 0;
    memset(t->read, 0, sizeof t->read);
    memset(t->stored, 0, sizeof t->stored);
    memset(t->mark, 0, sizeof t->mark);
    return wrong;
}

void
model_died(struct model *m, int a)
{
    m->actor[a].is_dead = 1;
    if (m->actor[a].is_open)
        tried_of(m, a)->may_fail = 1;
    for (int i = 0; i < MODEL_HELD; i++) {
        if (m->held[i].owner == (uint32_t)a)
            m->held[i].n_ends++;
    }
}

/* ---- Savepoints, snapshots, the past ---------------------------------------------------- */

void
model_marked(struct model *m, int a)
{
    struct model_actor *t = &m->actor[a];
    struct model_mark *mark = &t->mark[t->n_marks++];

    mark->has_stored = t->has_stored;
    memcpy(mark->stored, t->stored, sizeof mark->stored);
}

bool
model_has_mark(const struct model *m, int a, int level)
{
    return (uint32_t)level < m->actor[a].n_marks;
}

/* forget_marks -- but for the first n. */
static void
forget_marks(struct model_actor *t, uint32_t n)
{
    memset(&t->mark[n], 0, (t->n_marks - n) * sizeof t->mark[0]);
    t->n_marks = n;
}

void
model_rolled_back(struct model *m, int a, int level)
{
    struct model_actor *t = &m->actor[a];

    t->has_stored = t->mark[level].has_stored;
    memcpy(t->stored, t->mark[level].stored, sizeof t->stored);
    forget_marks(t, (uint32_t)level + 1);
}

void
model_released(struct model *m, int a, int level)
{
    forget_marks(&m->actor[a], (uint32_t)level);
}

void
model_holds(struct model *m, int a, int held)
{
    m->held[held] = (struct model_held){.owner = (uint32_t)a, .low = newest(m)};
}

void
model_holding(struct model *m, int a, int held)
{
    struct model_held *h = &m->held[held];
    struct model_actor *t = &m->actor[a];

    h->is_taken = 1;
    h->n_ends = 0; /* who has tried to release it before did not know its id */
    h->high = newest(m);
    if (!t->is_open)
        return;
    /* In a query: the state that this one sees. */
    h->low = t->low;
    h->high = t->high;
    h->has_read = t->at != 0 ? m->held[t->at - 1].has_read : t->has_read;
    memcpy(h->read, t->at != 0 ? m->held[t->at - 1].read : t->read, sizeof h->read);
    t->at = t->at != 0 ? t->at : (uint32_t)held + 1;
}

/* is_gone -- is there certainly no such snapshot? */
static bool
is_gone(const struct model_held *h)
{
    return h->is_taken == 0 || h->is_gone != 0;
}

bool
model_lets_go(struct model *m, int held)
{
    m->held[held].n_ends++;
    return is_gone(&m->held[held]);
}

const char *
model_let_go(struct model *m, int held, bool was_gone, bool ok)
{
    struct model_held *h = &m->held[held];

    if (ok && was_gone)
        return "a snapshot that is gone was released";
    if (!ok && !was_gone && h->n_ends == 1)
        return "a snapshot that is held was not released";
    if (ok)
        h->is_gone = 1;
    return NULL;
}

/* begun_in -- a query has begun at one of the states from low to high, or has been refused. */
static void
begun_in(struct model_actor *t, bool ok, uint32_t low, uint32_t high)
{
    t->is_open = ok;
    t->is_alone = 0;
    t->status = ok ? MODEL_QUERY : MODEL_NONE;
    t->low = t->parent = ok ? low : 0;
    t->high = ok ? high : 0;
}

bool
model_begins_at(struct model *m, int a, int held)
{
    model_begins(m, a, true);
    return is_gone(&m->held[held]);
}

const char *
model_begun_at(struct model *m, int a, int held, bool was_gone, bool ok)
{
    const struct model_held *h = &m->held[held];

    begun_in(&m->actor[a], ok, h->low, h->high);
    m->actor[a].at = ok ? (uint32_t)held + 1 : 0;
    if (ok && was_gone)
        return "a snapshot that is gone can be queried";
    if (!ok && !was_gone && h->n_ends == 0)
        return "a snapshot that is held cannot be queried";
    return NULL;
}

uint32_t
model_past(const struct model *m, int n_back)
{
    return (uint32_t)n_back < newest(m) ? newest(m) - (uint32_t)n_back : 0;
}

const char *
model_begun_past(struct model *m, int a, uint32_t state, bool ok)
{
    bool stays = m->window != 0 && m->n_numbers - m->last_of[state] <= m->window;

    begun_in(&m->actor[a], ok, state, state);
    if (ok && m->window == 0)
        return "a state of the past can be queried though none is to stay";
    return !ok && stays ? "a state of the window cannot be queried" : NULL;
}

void
model_numbered(struct model *m)
{
    m->n_numbers++;
    m->last_of[newest(m)] = m->n_numbers;
}

/* has_changed -- has one of the pages that it wanted changed, or is it about to? */
static bool
has_changed(const struct model *m, int a)
{
    const struct model_tried *t = &m->tried[a][m->actor[a].n_begun - 1];

    for (uint32_t s = m->actor[a].low; s < newest(m); s++) {
        for (int p = 0; p < MODEL_PAGES; p++) {
            if (((t->reads | t->writes) & bit(p)) != 0
                && m->state[s + 1][p] != m->state[s][p])
                return true;
        }
    }
    for (int u = 0; u < MODEL_ACTORS; u++) {
        if (u != a && m->actor[u].is_ending && m->actor[u].n_begun > 0
            && (m->tried[u][m->actor[u].n_begun - 1].writes & t->reads) != 0)
            return true;
    }
    return false;
}

/* has_met -- did another one, that may win, want one of its pages? */
static bool
has_met(const struct model *m, int a)
{
    const struct model_tried *t = &m->tried[a][m->actor[a].n_begun - 1];
    bool any_wins = m->policy != MODEL_OLDEST_WINS;

    for (int id = 0; id < MODEL_ACTORS * MODEL_TXNS; id++) {
        const struct model_tried *o = &m->tried[id / MODEL_TXNS][id % MODEL_TXNS];

        if ((t->overlaps & bit(id)) == 0 || o->age == 0)
            continue;
        if ((any_wins || o->age < t->age || m->actor[id / MODEL_TXNS].is_dead)
            && ((o->writes & t->reads) | (o->reads & t->writes)) != 0)
            return true;
    }
    return false;
}

static bool
has_reason(const struct model *m, int a)
{
    if (m->tried[a][m->actor[a].n_begun - 1].may_fail)
        return true;
    if (m->policy == MODEL_SERIAL)
        return false;
    return m->policy == MODEL_OPTIMISTIC ? has_changed(m, a) : has_met(m, a);
}

const char *
model_judge(const struct model *m, int a, enum model_status status)
{
    const struct model_actor *t = &m->actor[a];
    bool is_fixed = status == MODEL_QUERY || m->policy == MODEL_OPTIMISTIC
                    || m->policy == MODEL_SERIAL;
    uint32_t high = is_fixed ? t->high : newest(m);
    bool is_one = false;

    for (uint32_t s = t->low; s <= high && !is_one; s++)
        is_one = agrees(m, t, s);
    if (!is_one)
        return "what it has read was never together in one state";
    if (status == MODEL_PENDING && (!is_fixed || m->policy == MODEL_SERIAL)
        && !t->is_ending && !agrees(m, t, newest(m)))
        return "pending, but what it has read is out of date";
    if (status == MODEL_FAILED && !has_reason(m, a))
        return "failed, but nobody who may win wanted its pages";
    return NULL;
}
