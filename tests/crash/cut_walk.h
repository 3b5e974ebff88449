/* SPDX-License-Identifier: MIT */
/*
 * cut_walk.h -- what the test programs share that cut the power of one environment, which lies in a directory of its own:
 * its disk, and the walk through what was recorded of it.
 *
 * All that happens to the environment is recorded from its first call on, so its files are the same ones, by their numbers,
 * in each state of the disk.  ENV_DIR is a link to its place on the disk.
 * Defines things, so it is included once per program.  XAC_STATES=n states of each walk.
 */
#ifndef XAC_TEST_CUT_WALK_H
#define XAC_TEST_CUT_WALK_H

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/disk.h"
#include "tests/common/env.h"
#include "tests/common/record.h"
#include "base/sys.h"

#define CUT_ROOT        "disk"
#define CUT_TRACE_BYTES ((size_t)128 << 20)
#define CUT_SEEN_SLOTS  65536u

/* How far the walk is: for words, if a state is wrong. */
struct cut_at {
    uint64_t n, notes;
    enum disk_kind kind;
};

/* What a note says, when the walk comes to it. */
typedef void (*cut_note)(const struct record_event *note);

/* What lies on the disk is judged. */
typedef void (*cut_judge)(void);

static struct record_trace *cut_trace;
static char cut_root[PATH_MAX];
static struct cut_at *cut_at_shared;
static cut_judge cut_judge_fn;
static cut_note cut_note_fn;
static uint64_t cut_seen[CUT_SEEN_SLOTS];

/* cut_begin -- an empty directory of the environment; what happens there is recorded from now on. */
static inline void
cut_begin(void)
{
    int fd;

    must_ok(mkdir(CUT_ROOT, 0700));
    must(realpath(CUT_ROOT, cut_root) != NULL);
    cut_trace = record_new(CUT_TRACE_BYTES);
    record_clear(cut_trace);
    record_start(cut_trace, cut_root);
    fd = open(cut_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0);
    must_ok(xac_sys.mkdirat(fd, ENV_DIR, 0700));
    must_ok(xac_sys.fsync(fd));
    (void)close(fd);
    must_ok(symlink(CUT_ROOT "/" ENV_DIR, ENV_DIR));
}

/* cut_is_new -- has no such state been tried? */
static inline bool
cut_is_new(const struct disk_state *s)
{
    uint64_t h = (disk_state_hash(s) ^ (cut_at_shared->notes << 40)) | 1;

    for (size_t i = 0; i < CUT_SEEN_SLOTS; i++) {
        uint64_t *slot = &cut_seen[(h + i) % CUT_SEEN_SLOTS];

        if (*slot == h)
            return false;
        if (*slot == 0) {
            *slot = h;
            return true;
        }
    }
    return true;
}

/* cut_count -- events behind the first note. */
static inline uint64_t
cut_count(void)
{
    const struct record_event *ev;
    bool has_begun = false;
    uint64_t n = 0;

    for (uint64_t pos = 0; (ev = record_at(cut_trace, pos)) != NULL;
         pos = record_next(ev, pos)) {
        has_begun = has_begun || ev->kind == RECORD_NOTE;
        n += has_begun;
    }
    return n;
}

/* cut_try -- power is cut at one of `n` events; about `states` states in all. */
static inline void
cut_try(const struct disk *d, uint64_t states, uint64_t n, uint64_t *seedp)
{
    for (unsigned kind = 0; kind < DISK_KINDS; kind++) {
        struct disk_state *s;

        if (rnd_below(seedp, n * DISK_KINDS) >= states)
            continue;
        cut_at_shared->kind = (enum disk_kind)kind;
        s = disk_crash(d, (enum disk_kind)kind, rnd_next(seedp));
        if (s != NULL && cut_is_new(s)) {
            cut_at_shared->n++;
            disk_state_write(s, cut_root, cut_trace);
            cut_judge_fn();
        }
        if (s != NULL)
            disk_state_free(s);
    }
}

/* cut_events -- a child: one event after the other. */
static inline void
cut_events(void *arg)
{
    uint64_t states = env_number("XAC_STATES", *(const uint64_t *)arg), n = cut_count();
    uint64_t seed = env_seed() ^ 4711;
    const struct record_event *ev;
    bool has_begun = false;
    struct disk *d;

    record_start(cut_trace, cut_root);
    record_pause(true);
    d = disk_new(record_root(cut_trace));
    for (uint64_t pos = 0; (ev = record_at(cut_trace, pos)) != NULL;
         pos = record_next(ev, pos)) {
        if (ev->kind == RECORD_NOTE) {
            has_begun = true;
            cut_at_shared->notes++;
            cut_note_fn(ev);
        } else {
            disk_follow(d, ev, pos);
        }
        if (has_begun && ev->kind != RECORD_SYNC_BEGIN)
            cut_try(d, states, n, &seed);
    }
    disk_free(d);
}

/* cut_walk -- judge about so many states, of what was recorded behind the first record_note(); ret how many. */
static inline uint64_t
cut_walk(uint64_t states, cut_note note, cut_judge judge_state)
{
    uint64_t n;
    int status;

    must(!record_is_full(cut_trace));
    cut_at_shared = (struct cut_at *)proc_shared(sizeof *cut_at_shared);
    cut_note_fn = note;
    cut_judge_fn = judge_state;
    status = proc_wait(proc_spawn(cut_events, &states));
    n = cut_at_shared->n;
    if (status != 0)
        env_fail(__FILE__, __LINE__, "state %llu, behind %llu notes, %s",
                 (unsigned long long)n, (unsigned long long)cut_at_shared->notes,
                 disk_kind_name[cut_at_shared->kind]);
    record_stop();
    record_free(cut_trace);
    return n;
}

#endif /* XAC_TEST_CUT_WALK_H */
