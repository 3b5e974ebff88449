/* SPDX-License-Identifier: MIT */
/*
 * log_world.h -- a small world for tests of the log: a directory, shared memory, a disk
 * that can be looked at, and committers.
 *
 * The table xac_sys is replaced by one that keeps, in memory shared by all processes of a
 * test, what was written to each LSN (cache) and what of it has been synced (disk).  An
 * acknowledged block is compared with the disk at once.  The same table makes a call fail,
 * write less than it was told, or kill the caller.
 */
#ifndef XAC_TEST_LOG_WORLD_H
#define XAC_TEST_LOG_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <check.h>

#include "base/lock.h"
#include "log/block.h"
#include "log/log.h"
#include "log/log_segment.h"

#define SEGMENT_BYTES (UINT64_C(64) * 1024)
#define STREAM_BYTES  (UINT64_C(64) * 1024 * 1024) /* LSNs that a test may use */
#define RECORD_MAX    (12 * 1024)
#define WORKERS_MAX   8

enum call {
    CALL_NONE = 0,
    CALL_OPEN,
    CALL_CLOSE,
    CALL_PWRITE,
    CALL_PWRITE_REST, /* behind a write that did only a part; counted twice           */
    CALL_FDATASYNC,
    CALL_FSYNC,
    CALL_FALLOCATE,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_MAX,
};

/* What a worker is about to append; finished by the worker that finds it dead. */
struct descriptor {
    uint64_t block[(RECORD_MAX + 1024) / 8];
};

/* Memory that all processes of a test share. */
struct world {
    struct xac_log_shared log;
    struct xac_lock publish;
    uint64_t commit; /* publish lock */
    int publishing;  /* publish lock; 1 + worker, 0 if none */
    uint64_t redone; /* publish lock */
    _Atomic uint64_t acked;
    _Atomic uint64_t refused;
    _Atomic uint64_t started; /* writes begun ahead of their sync */
    _Atomic int stop;
    uint64_t serial[WORKERS_MAX]; /* used last by each worker */
    struct descriptor desc[WORKERS_MAX];
    uint8_t ring[1 << 20];
    uint8_t cache[STREAM_BYTES];
    uint8_t disk[STREAM_BYTES];
};

/* What the next calls shall do; of this process, inherited by its children. */
struct plan {
    enum call fail; /* this call fails with `error`...                 */
    uint64_t after; /* ...when it is made for the (after + 1)-th time  */
    uint64_t times; /* so often                                        */
    int error;
    enum call kill; /* this call kills the process...                  */
    uint64_t kill_after;
    int kill_when;     /* ...before (0), within (1), after it (2)         */
    bool short_writes; /* pwrite writes some of the bytes                 */
    bool interrupts;   /* and is interrupted every other time             */
    unsigned sync_us;  /* what a sync takes                               */
    const char *only;  /* calls on names that begin with this, or NULL    */
    _Atomic uint64_t n[CALL_MAX];
    uint64_t rng;
};

extern struct world *w;
extern struct xac_log the_log; /* of the test's own process */
extern int dir_fd;             /* of the test's directory */
extern struct plan plan;
extern uint64_t world_seed;
extern uint64_t world_segment_bytes; /* SEGMENT_BYTES, unless a test sets it */
extern const uint8_t world_identity[16];

/* Shared words, as seen by tests: in one order, which pairs with everything. */
#define world_get(x)    atomic_load_explicit(&(x), memory_order_seq_cst)
#define world_set(x, v) atomic_store_explicit(&(x), (v), memory_order_seq_cst)
#define world_inc(x)    atomic_fetch_add_explicit(&(x), 1, memory_order_seq_cst)

/* must -- in children too, where Check's own assertions would only end the child. */
#define must(c) ((c) ? (void)0 : world_must_failed(__FILE__, __LINE__, #c))
_Noreturn void world_must_failed(const char *file, int line, const char *what);

/* Fixture: directory, memory, table. */
void world_setup(void);
void world_teardown(void);

/* world_main -- run a suite with the seed XAC_SEED; ret exit status. */
int world_main(Suite *s);

/* world_create -- xac_log_create; ret its code. */
int world_create(uint64_t ring_bytes, uint64_t start);

/* A random number below n; *state is the seed. */
uint64_t world_rnd(uint64_t *state, uint64_t n);
void world_sleep_us(unsigned us);

/* world_plan_failure -- from now on, this call on names that begin with `only` fails for
   some times after it was made `after` times. */
void world_plan_failure(enum call call, const char *only, uint64_t after, uint64_t times,
                        int error);

/* world_plan_death -- the same for being killed; `when`: before, within, after the call. */
void world_plan_death(enum call call, const char *only, uint64_t after, int when);

/* world_count_files -- names in the directory that begin with prefix. */
int world_count_files(const char *prefix);

/*
 * world_block -- a closed block of random size for a worker, without its place.
 *
 * The path of its XFILE record, the worker's letter repeated, makes the size.
 */
void world_block(struct xac_block *blk, int worker, uint64_t serial, uint64_t *rng,
                 size_t max);

/* world_finish -- what is left of a publish after its descriptor says so; publish lock
   held. */
void world_finish(struct xac_log *log);

/* world_publish -- append the worker's block; ret its end, 0 if there is no room. */
uint64_t world_publish(struct xac_log *log, int worker);

/* world_commit -- ret 0 when the worker's next block is durable, or the error. */
int world_commit(struct xac_log *log, int worker, uint64_t serial, uint64_t *rng);

/* world_read -- what the segment files hold, from LSN 0 on; malloc'ed. */
uint8_t *world_read(uint64_t end);

/*
 * world_expect -- the files hold valid blocks, one after the other, up to `durable`,
 * commits numbered without a gap, each worker's in the order in which it made them.
 *
 * ret  blocks found.
 */
uint64_t world_expect(void);

#endif /* XAC_TEST_LOG_WORLD_H */
