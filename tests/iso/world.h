/* SPDX-License-Identifier: MIT */
/*
 * world.h -- an environment with several participants in one process, whose whole state can
 * be put back, and the invariants of that state.
 *
 * WHAT      Each participant has opened the environment by itself: its own description of
 *           the lock file, control region, buffers, view and context.  The library's own
 *           modules are at work but for the locks (sim.h) and the fault engine, which keeps
 *           protections in a table here and lets the explorer ask before each access.
 * NOT HERE  What transactions may see (model.h).
 */
#ifndef XAC_TEST_WORLD_H
#define XAC_TEST_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

struct xac_env;
struct xac_view;

/* Numbers of commits that one run may use. */
#define WORLD_NUMBERS 96

struct world_member {
    struct xac_env *env; /* NULL: not attached                                      */
    struct xac_view *view;
    bool is_dead;
    bool is_guest; /* joined during the run                                         */
    uint64_t mark[MODEL_MARKS], last_mark; /* of savepoints, by level                 */
};

struct world {
    int n_members; /* that are attached before a run                                */
    struct world_member member[MODEL_ACTORS + 1]; /* the last of them only watches    */
    uint64_t first_number;                        /* C when a run starts              */
    uint32_t state_of[WORLD_NUMBERS];             /* of the model, by number          */
    uint64_t last_number;                         /* C                                */
    uint64_t held[MODEL_HELD];                    /* ids of snapshots; 0: not taken   */
    enum model_policy policy;
    char *dir;
    struct snapshot *snapshot;
};

/*
 * world_open -- an environment with n participants; world_close -- leave and delete it;
 * world_remove -- delete it as it is.
 */
void world_open(struct world *w, int n_members, enum model_policy policy,
                bool stay_mapped);
void world_close(struct world *w);
void world_remove(struct world *w);

/* world_restore -- as it was when it was opened, to the byte. */
void world_restore(struct world *w);

/* The steps of a participant, called from its coroutine (but for die). */
void world_join(struct world *w, int a);
void world_leave(struct world *w, int a);
void world_begin(struct world *w, int a, bool is_query);
uint64_t world_read(struct world *w, int a, int page, bool is_write);
void world_store(struct world *w, int a, int page, uint64_t value);
bool world_end(struct world *w, int a); /* is it committed? */
void world_abort(struct world *w, int a);
void world_gc(struct world *w, int a);
void world_checkpoint(struct world *w, int a);
void world_reap(struct world *w, int a);
void world_die(struct world *w, int a);

/* Savepoints (world_held.c); ret  false: the library knows none of that level. */
void world_savepoint(struct world *w, int a, int level);
bool world_roll_back(struct world *w, int a, int level);
bool world_release(struct world *w, int a, int level);

/* Snapshots, and queries at them and in the past; ret  false: there is no such state. */
void world_hold(struct world *w, int a, int held);
bool world_let_go(struct world *w, int a, int held);
bool world_begin_at(struct world *w, int a, int held);
bool world_begin_past(struct world *w, int a, uint32_t state);

/* world_keep_history -- states that were present at one of the last n numbers stay; 0: none. */
void world_keep_history(struct world *w, uint32_t n_numbers);

/* world_let_all_go -- no state is held, or stays, any more. */
void world_let_all_go(struct world *w, int a);

/* What the library says of a participant's transaction. */
enum model_status world_status(const struct world *w, int a);
/* ... has it taken the turn? */
bool world_has_turn(const struct world *w, int a);
uint64_t world_age(const struct world *w, int a);

/*
 * world_publisher -- to be called after each store of the library: if it was the one that
 * publishes, ret the participant whose changes it published, -2 if it was an unlink; else -1.
 */
int world_publisher(struct world *w, const volatile void *at);

/* world_numbered -- the number just published stands for this state of the model. */
void world_numbered(struct world *w, uint32_t state);

/* world_is_point -- may it matter who comes first at this address? */
bool world_is_point(const struct world *w, const volatile void *at);
const char *world_name(const struct world *w, const volatile void *at, char *buf);

/*
 * world_check -- the invariants of ctree.h, conflict.h and version.h, after every step.
 * in  is_within  participants that are within a step
 */
void world_check(const struct world *w, const struct model *m, uint32_t is_within);

/* world_check_end -- all have ended: nothing is left over, the file is right. */
void world_check_end(struct world *w, const struct model *m);

/* world_hash -- of everything that what comes next depends on, but for the model. */
uint64_t world_hash(const struct world *w, uint64_t seed);

#endif /* XAC_TEST_WORLD_H */
