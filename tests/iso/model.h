/* SPDX-License-Identifier: MIT */
/*
 * model.h -- what must hold of transactions, in few words and without looking at the library.
 *
 * WHAT      A list of states, one per commit that changed something; for each participant
 *           what its transaction has read, stored and tried.  Two judgements:
 *
 *           Always: what a transaction has read is in one state, not older than its begin;
 *           if it is pending, that is the newest; if it commits, the one just before its
 *           own.  A query's state is that of its begin; at a snapshot it is that of the snapshot, the same
 *           in all queries at it, and in the past the one that was asked for.  A page that is rolled back to
 *           a savepoint counts as read, and not as stored.  A transaction fails only if an
 *           older one, or a dead one, wanted the same page, or it was revoked; any other
 *           one under other eager policies.  Under the optimistic one it sees the state of
 *           its begin, and fails only if one of its pages has changed since.  Under the serial
 *           one it never fails, and what it has read is the newest state.
 *
 *           While steps do not overlap (is_exact): the outcome of each step under
 *           oldest-wins is foretold.
 * NOT HERE  Anything of libxac; it includes none of its headers.
 *
 * All fields are plain numbers, and what no longer matters is zero, so that two equal
 * models are equal in memory.
 */
#ifndef XAC_TEST_MODEL_H
#define XAC_TEST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_ACTORS 4
#define MODEL_PAGES  3
#define MODEL_STATES 40
#define MODEL_TXNS   4 /* that one participant runs in turn                             */
#define MODEL_MARKS  3 /* savepoints that it has at a time                              */
#define MODEL_HELD   3 /* snapshots that are taken                                      */

enum model_policy {
    MODEL_OLDEST_WINS,
    MODEL_SELF_ABORT,
    MODEL_SELFISH,
    MODEL_YOUNGEST_WINS,
    MODEL_OPTIMISTIC,
    MODEL_SERIAL,
    MODEL_POLICIES
};

enum model_status {
    MODEL_NONE,
    MODEL_PENDING,
    MODEL_FAILED,
    MODEL_QUERY
};

/* A transaction as others may have met it. */
struct model_tried {
    uint64_t age; /* 0: it has not begun, or was a query                            */
    uint32_t reads, writes; /* pages that it wanted                                   */
    uint32_t overlaps;      /* transactions whose lives overlapped with its own       */
    uint32_t may_fail;      /* it died, or was revoked, or gave up                    */
};

/* What a transaction had stored when it took a savepoint. */
struct model_mark {
    uint32_t has_stored;
    uint64_t stored[MODEL_PAGES];
};

struct model_actor {
    enum model_status status; /* foretold                                              */
    uint32_t n_begun;         /* transactions begun                                    */
    uint32_t is_open;         /* between begin and end                                 */
    uint32_t is_attached, is_dead;
    uint32_t is_ending; /* its changes may be seen already, though not published       */
    uint32_t has_turn;  /* cannot lose                                                 */
    uint32_t is_alone; /* its reads are not known to others                             */
    uint32_t is_retry;
    uint64_t age;
    uint32_t parent;   /* foretold: state that it sees                                 */
    uint32_t low;      /* oldest state that it may see                                 */
    uint32_t high;     /* query: newest one                                            */
    uint32_t at;       /* query: number of its snapshot, + 1; 0 none                   */
    uint32_t has_read; /* pages                                                        */
    uint32_t has_stored;
    uint32_t is_granted_read, is_granted_write; /* foretold: no conflict to come        */
    uint64_t read[MODEL_PAGES];
    uint64_t stored[MODEL_PAGES];
    uint32_t n_marks;
    struct model_mark mark[MODEL_MARKS];
};

/* A snapshot: it holds one state out of some. */
struct model_held {
    uint32_t is_taken, owner;
    uint32_t
        n_ends; /* releases that have begun, and 1 if its owner has died             */
    uint32_t
        is_gone; /* certainly                                                       */
    uint32_t low, high;
    uint32_t
        has_read; /* pages, by all who have queried it ...                           */
    uint64_t
        read[MODEL_PAGES]; /* ... and what was seen in them                         */
};

struct model {
    uint32_t policy;
    uint32_t is_exact;
    uint32_t n_states;
    uint32_t stays_mapped;
    uint32_t n_joining; /* under way now                                                */
    uint64_t next_age;
    uint64_t state[MODEL_STATES][MODEL_PAGES];
    uint32_t
        window; /* states stay that were present at one of so many numbers; 0: none does */
    uint32_t
        n_numbers; /* given out: one by each change, and others                     */
    uint32_t
        last_of[MODEL_STATES]; /* at which each state was present                   */
    struct model_held held[MODEL_HELD];
    struct model_actor actor[MODEL_ACTORS];
    struct model_tried tried[MODEL_ACTORS][MODEL_TXNS];
};

/*
 * All of these return NULL, or what is wrong.
 *
 * Begin and end of the steps.  `status` is what the library says of the transaction.
 */
uint64_t model_first_value(int page); /* of state 0 */
void model_init(struct model *m, enum model_policy policy, int n_attached,
                bool stays_mapped);
void model_joins(struct model *m);
void model_joined(struct model *m, int a);
void model_leave(struct model *m, int a);
void model_begins(struct model *m, int a, bool is_query);
const char *model_begun(struct model *m, int a, uint64_t age, bool has_turn);
void model_wants(struct model *m, int a, int page, bool is_write);
const char *model_saw(struct model *m, int a, int page, uint64_t value, bool is_write);
void model_stored(struct model *m, int a, int page, uint64_t value);
const char *model_status(const struct model *m, int a, enum model_status status);
void model_gave_up(struct model *m, int a);

/*
 * Savepoints: the one that is taken gets the next level, from 0 on.
 *
 * ret  model_has_mark: is there one of that level?
 */
void model_marked(struct model *m, int a);
bool model_has_mark(const struct model *m, int a, int level);
void model_rolled_back(struct model *m, int a, int level);
void model_released(struct model *m, int a, int level);

/* Snapshots, by numbers that the program gives them; `ok`: the library has not refused. */
void model_holds(struct model *m, int a, int held);
void model_holding(struct model *m, int a, int held);
bool model_lets_go(struct model *m, int held);
const char *model_let_go(struct model *m, int held, bool was_gone, bool ok);
bool model_begins_at(struct model *m, int a, int held);
const char *model_begun_at(struct model *m, int a, int held, bool was_gone, bool ok);

/* Queries of the past.  ret  model_past: the state so many before the newest, or the first. */
uint32_t model_past(const struct model *m, int n_back);
const char *model_begun_past(struct model *m, int a, uint32_t state, bool ok);

void model_ends(struct model *m, int a);
const char *model_ended(struct model *m, int a, bool is_committed);
void model_died(struct model *m, int a);

/* model_published -- a participant's changes have just become the newest state. */
const char *model_published(struct model *m, int a);

/* model_numbered -- a number has been given out, for the newest state. */
void model_numbered(struct model *m);

/* model_judge -- may the transaction of a participant be in this status now? */
const char *model_judge(const struct model *m, int a, enum model_status status);

#endif /* XAC_TEST_MODEL_H */
