/* SPDX-License-Identifier: MIT */
/*
 * itm.h -- what a thread knows of its language transaction.
 *
 * WHAT      The functions that gcc -fgnu-tm calls, over the public interface of libxac: begin, end and
 *           cancel (itm.c), loads and stores (barriers.c, ranges.c, places.c), the bytes to restore
 *           (undo.c), isolation of memory outside of segments (outside.c),
 *           memory and user actions (actions.c, alloc.c), exceptions (unwind.c), transactional
 *           versions of functions (clones.c), registers (begin.S).
 * NOT HERE  What a transaction sees in a segment, and what becomes of its stores there: libxac.
 * OWNER     Each thread has one struct xac_itm.
 * LOCK      That of outside.c.  A block has it from its begin on, alone, since memory outside of
 *           segments has no versions and threads share the mappings of the process; unless blocks
 *           run side by side: then it is translated (xac_translate.h), and takes it when it must.
 * THREADS   Each for itself.  Not signal handlers.
 *
 * INVARIANTS
 *   (1) depth > 0 exactly while the thread is in a language transaction; then n_marks > 0.
 *   (2) marks[0] is the outermost transaction.  Each further mark is a nested one that may be
 *       cancelled alone; those that may not have no mark.
 *   (3) A unit noted with `number` in units[] lies outside of all segments, or the running transaction
 *       has announced a store to it.
 *   (4) The undo log has the old bytes of each store since the outermost begin that lies outside
 *       of segments, and of each one in a segment since the second mark; if the transaction is a
 *       part of one by xbegin(), of all.
 *   (5) distances[] says of each unit noted with `number` how far its bytes lie from it: 0 outside of
 *       segments, and in all units if the attempt is not translated.
 *   (6) A translated attempt has noted a unit outside only if it has the lock: shared, if it has
 *       only loaded.
 */
#ifndef XAC_ITM_INTERNAL_H
#define XAC_ITM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xac_touch.h>

#define XAC_ITM_API __attribute__((visibility("default")))

/* Callee-saved registers; begin.S knows the order. */
struct xac_itm_jump {
    void *rsp; /* after the return from the begin: below it all frames are dead    */
    void *rbx, *rbp, *r12, *r13, *r14, *r15;
    void *rip;
};

/* What a begin promises of the code that follows; the values are those of the ABI. */
enum xac_itm_property {
    XAC_ITM_INSTRUMENTED = 0x0001,
    XAC_ITM_UNINSTRUMENTED = 0x0002,
    XAC_ITM_NO_CANCEL = 0x0008,
    XAC_ITM_NO_IRREVOCABLE = 0x0020,
    XAC_ITM_IRREVOCABLE = 0x0040,
    XAC_ITM_READ_ONLY = 0x4000 /* but for functions that are declared pure             */
};

/* What a begin answers. */
enum xac_itm_answer {
    XAC_ITM_RUN_INSTRUMENTED = 0x01,
    XAC_ITM_RUN_UNINSTRUMENTED = 0x02,
    XAC_ITM_SAVE = 0x04,
    XAC_ITM_RESTORE = 0x08,
    XAC_ITM_CANCELLED = 0x10
};

#define XAC_ITM_UNIT   4096u
#define XAC_ITM_SLOTS  256u
#define XAC_ITM_STORED (UINT64_C(1) << 44) /* of a key: a store is announced      */
#define XAC_ITM_NUMBER (UINT64_C(1) << 45) /* from here on the number             */

/* A place to roll back to. */
struct xac_itm_mark {
    struct xac_itm_jump jump;
    size_t undo_bytes;   /* of the log, at the begin                                 */
    size_t n_actions;    /* likewise                                                 */
    unsigned depth;      /* before the begin                                         */
    unsigned n_catches;  /* likewise                                                 */
    unsigned n_uncaught; /* likewise, in libstdc++                                   */
};

enum xac_itm_kind {
    XAC_ITM_ALLOCATED, /* fn(arg) if it is rolled back                               */
    XAC_ITM_FREED,     /* fn(arg) when it has committed                              */
    XAC_ITM_MALLOCED,  /* in the segment `base`: xac_free if a nested one is cancelled */
    XAC_ITM_XFREED,    /* likewise: xac_free before the commit                       */
    XAC_ITM_UNDO,      /* fn(arg) if it is rolled back: the program's                */
    XAC_ITM_COMMIT     /* fn(arg) when it has committed: the program's               */
};

struct xac_itm_action {
    enum xac_itm_kind kind;
    void (*fn)(void *arg);
    void *arg;
    void *base;
};

/* What a thread has of the lock for memory outside; each has all that the one before has. */
enum xac_itm_holds {
    XAC_ITM_NOTHING,
    XAC_ITM_SHARED,
    XAC_ITM_EXCLUSIVE
};

struct xac_itm {
    unsigned depth;
    bool has_env; /* it is a transaction or query of libxac, too              */
    bool is_part; /* of a transaction that the program began by xbegin()      */
    bool is_query;
    bool is_irrevocable;
    bool is_translated; /* the attempt works on views of the thread                */
    bool is_plain; /* the block must not: it may run code that is not compiled for it */
    enum xac_itm_holds
        holds; /* outside.c                                               */
    enum xac_itm_holds
        wants;           /* from the begin of the next attempt on                   */
    uint64_t number;     /* of the running attempt, a multiple of XAC_ITM_NUMBER     */
    uint64_t fast;       /* number | XAC_ITM_STORED, or never equal to a key         */
    uint64_t id;         /* of the transaction                                       */
    unsigned n_attempts; /* that have failed                                         */
    uint32_t answer;     /* to the outermost begin                                   */

    struct xac_itm_mark *marks;
    size_t n_marks, max_marks;

    uint8_t *undo;
    size_t undo_bytes, undo_max;

    struct xac_itm_action *actions;
    size_t n_actions, max_actions;

    unsigned n_catches; /* that have begun in the transaction and not ended          */

    uint64_t units[XAC_ITM_SLOTS];
    uintptr_t
        distances[XAC_ITM_SLOTS]; /* from the address to the place, modulo 2^64    */
};

/* The calling thread's; NULL before its first transaction. */
extern __thread struct xac_itm *xac_itm_now
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- itm.c ------------------------------------------------------------------------------ */

/* xac_itm_begin -- called by begin.S.  ret  enum xac_itm_answer. */
uint32_t xac_itm_begin(uint32_t properties, const struct xac_itm_jump *jump);

/* xac_itm_jump -- in begin.S: return from that begin once more. */
_Noreturn void xac_itm_jump(const struct xac_itm_jump *to, uint32_t result);

/* xac_itm_restart_as_update -- it began as a query, and wants to store. */
_Noreturn void xac_itm_restart_as_update(struct xac_itm *t);

/* xac_itm_restart -- start over; nobody has lost. */
_Noreturn void xac_itm_restart(struct xac_itm *t);

/* xac_itm_is_side_by_side -- has the program chosen that? */
bool xac_itm_is_side_by_side(void);

/* xac_itm_go_irrevocable -- from here on it cannot be rolled back; may start over before. */
void xac_itm_go_irrevocable(struct xac_itm *t);

/* xac_itm_may_restart_as_update -- is it a query of our own? */
static inline bool
xac_itm_may_restart_as_update(const struct xac_itm *t)
{
    return t->is_query && !t->is_part;
}

/* xac_itm_stop -- stop the program with words on standard error. */
_Noreturn void xac_itm_stop(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* xac_itm_grow -- room for one more element of an array; stops the program if there is none. */
void *xac_itm_grow(void *array, size_t *maxp, size_t needed, size_t element_bytes);

/* A mistake of ours. */
#define xac_itm_assert(c) \
 ((c) ? (void)0 : xac_itm_stop("%s:%d: not so: %s", __FILE__, __LINE__, #c))

/* ---- undo.c ----------------------------------------------------------------------------- */

/* xac_itm_keep -- log the bytes that a store is about to replace. */
void xac_itm_keep(struct xac_itm *t, const void *at, size_t n, bool is_segment);

/*
 * xac_itm_undo -- bring back what was logged since `mark`, newest first.
 *
 * in   with_segments  also the bytes in segments; the transaction of libxac is open then.
 */
void xac_itm_undo(struct xac_itm *t, const struct xac_itm_mark *mark, bool with_segments);

/* xac_itm_note_slow -- as xac_itm_note, for what it does not know. */
void *xac_itm_note_slow(struct xac_itm *t, const void *at, size_t n, bool keeps);

/*
 * xac_itm_note -- before n bytes are stored: announced if they lie in a segment, logged if need be.
 *
 * in   keeps  false: nothing is stored yet; there will be another call.
 * ret  where they lie; NULL: not all at the same distance, see xac_itm_pieces.
 */
static inline void *
xac_itm_note(struct xac_itm *t, const void *at, size_t n, bool keeps)
{
    uintptr_t unit = (uintptr_t)at / XAC_ITM_UNIT, slot = unit % XAC_ITM_SLOTS;

    if (t->units[slot] != (t->fast | unit)
        || n > XAC_ITM_UNIT - (uintptr_t)at % XAC_ITM_UNIT)
        return xac_itm_note_slow(t, at, n, keeps);
    return (void *)((uintptr_t)at + t->distances[slot]);
}

/* xac_itm_log -- before memory of the thread alone is stored to without a call. */
void xac_itm_log(struct xac_itm *t, const void *at, size_t n);

/* ---- places.c: translated attempts --------------------------------------------------------- */

/* xac_itm_load_slow, store_translated -- as xac_itm_load and xac_itm_note. */
const void *xac_itm_load_slow(struct xac_itm *t, const void *at, size_t n);
void *xac_itm_store_translated(struct xac_itm *t, const void *at, size_t n, bool keeps);

/* xac_itm_load -- before n bytes are loaded.  ret  where they lie, or NULL, as xac_itm_note. */
static inline const void *
xac_itm_load(struct xac_itm *t, const void *at, size_t n)
{
    uintptr_t unit, slot;

    if (!t->is_translated) {
        xac_load(at, n);
        return at;
    }
    unit = (uintptr_t)at / XAC_ITM_UNIT;
    slot = unit % XAC_ITM_SLOTS;
    if ((t->units[slot] & ~XAC_ITM_STORED) != (t->number | unit)
        || n > XAC_ITM_UNIT - (uintptr_t)at % XAC_ITM_UNIT)
        return xac_itm_load_slow(t, at, n);
    at = (const void *)((uintptr_t)at + t->distances[slot]);
    xac_load(at, n);
    return at;
}

/* xac_itm_reload -- the same, of what has been loaded or stored before. */
static inline const void *
xac_itm_reload(struct xac_itm *t, const void *at, size_t n)
{
    return t->is_translated ? xac_itm_load(t, at, n) : at;
}

/* xac_itm_pieces -- load n bytes from `at`, or store them there, unit by unit.  A store has been
   noted already. */
void xac_itm_pieces(struct xac_itm *t, void *at, void *bytes, size_t n, bool stores);

/* Which sides of a copy do not belong to the thread alone. */
struct xac_itm_sides {
    bool to_shared;
    bool from_shared;
};

/* xac_itm_copy, fill -- memmove and memset. */
void xac_itm_copy(struct xac_itm *t, void *to, const void *from, size_t n,
                  const struct xac_itm_sides *are);
void xac_itm_fill(struct xac_itm *t, void *to, int byte, size_t n);

/* xac_itm_place, place_back -- for calls of libxac; an address in no segment, and every one if the attempt is
   not translated, is its own place. */
void *xac_itm_place(struct xac_itm *t, void *at);
void *xac_itm_place_back(const struct xac_itm *t, void *place);

/* ---- outside.c ---------------------------------------------------------------------------- */

/* xac_itm_outside_lock -- get it; may wait. */
void xac_itm_outside_lock(struct xac_itm *t, enum xac_itm_holds how);

/* xac_itm_outside_unlock -- give it back, if it is had; libxac's transaction has ended. */
void xac_itm_outside_unlock(struct xac_itm *t, bool is_committed);

/* xac_itm_outside_is_stale -- the attempt has the lock; are its segments older than memory outside? */
bool xac_itm_outside_is_stale(const struct xac_itm *t);

/* xac_itm_outside_reset -- before another attempt: is that because of an environment that is closed? */
void xac_itm_outside_reset(void);

/* xac_itm_outside_take -- a translated attempt needs the lock from now on; may start over. */
void xac_itm_outside_take(struct xac_itm *t, enum xac_itm_holds how);

/* xac_itm_outside_forked -- in the child of a fork, by its thread. */
void xac_itm_outside_forked(const struct xac_itm *t);

/* ---- actions.c -------------------------------------------------------------------------- */

void xac_itm_act(struct xac_itm *t, const struct xac_itm_action *action);

/* xac_itm_act_forget -- an allocation belongs to somebody else from now on. */
void xac_itm_act_forget(struct xac_itm *t, const void *arg);

/* xac_itm_act_back -- roll back what has been done since `n`; libxac's transaction is open if
   with_segments. */
void xac_itm_act_back(struct xac_itm *t, size_t n, bool with_segments);

/* xac_itm_act_before -- what belongs to the transaction itself, before its end. */
void xac_itm_act_before(const struct xac_itm *t);

/* xac_itm_act_after -- the rest, when it has committed; may begin transactions. */
void xac_itm_act_after(struct xac_itm *t);

/* ---- clones.c --------------------------------------------------------------------------- */

/* xac_itm_clones_forked -- in the child of a fork: the thread that had the lock is not here. */
void xac_itm_clones_forked(void);

/* ---- unwind.c --------------------------------------------------------------------------- */

/* xac_itm_uncaught -- the thread's number of exceptions in flight. */
unsigned xac_itm_uncaught(void);

/* xac_itm_unwind_back -- forget the exceptions caught since the mark. */
void xac_itm_unwind_back(struct xac_itm *t, const struct xac_itm_mark *mark);

#endif /* XAC_ITM_INTERNAL_H */
