/* SPDX-License-Identifier: MIT */
/*
 * check_synced.c -- what a call has made or written is on disk when it returns.
 *
 * GOAL    A new environment, its log directory, a mapped file, a commit, a checkpoint, a backup,
 *         a recovery: neither bytes nor names below the current directory are lost by a power cut
 *         behind it.
 * METHOD  Each call is recorded (record.h).  Behind it the trace is looked through for files and
 *         directories that have changed since their last sync began.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/record.h"
#include "base/sys.h"
#include "recovery/recover.h"

#define TRACE_BYTES ((size_t)32 << 20)
#define NODES_MAX   200
#define N_PAGES     64

/* A file or a directory. */
struct node {
    uint64_t ino, dir;
    char name[64];
    uint64_t changed; /* position in the trace + 1; 0: synced since */
    uint64_t named;   /* likewise of a name that a rename has given it */
    bool is_gone;
};

static struct record_trace *trace;
static struct node nodes[NODES_MAX];
static size_t n_nodes;

static struct node *
node_of(uint64_t ino)
{
    size_t i = 0;

    while (i < n_nodes && nodes[i].ino != ino)
        i++;
    must(i < NODES_MAX);
    if (i == n_nodes)
        nodes[n_nodes++] = (struct node){.ino = ino, .name = "."};
    return &nodes[i];
}

/* lose_name -- the file that had it, if there is one, has none now. */
static void
lose_name(uint64_t dir, const char *name)
{
    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].dir == dir && strcmp(nodes[i].name, name) == 0)
            nodes[i].is_gone = true;
    }
}

static void
take_name(uint64_t ino, uint64_t dir, const char *name, uint64_t named)
{
    struct node *n;

    lose_name(dir, name);
    n = node_of(ino);
    n->dir = dir;
    n->named = named;
    n->is_gone = false;
    (void)snprintf(n->name, sizeof n->name, "%s", name);
}

/* keep_names -- those in a directory have been synced. */
static void
keep_names(const struct node *dir, uint64_t position)
{
    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].dir == dir->ino && nodes[i].named <= position)
            nodes[i].named = 0;
    }
}

/* may_be_lost -- the lock file, which says who is alive, and names that a rename takes away. */
static bool
may_be_lost(const char *name)
{
    size_t n = strlen(name);

    return strcmp(name, "xac.lock") == 0 || (n > 4 && strcmp(name + n - 3, "new") == 0);
}

/* look -- at one event. */
static void
look(const struct record_event *ev, uint64_t position)
{
    const char *name = (const char *)(ev + 1);
    struct node *n = node_of(ev->ino);

    switch (ev->kind) {
    case RECORD_CREATE:
    case RECORD_MKDIR:
        take_name(ev->ino2, ev->ino, name, 0);
        if (!may_be_lost(name))
            n->changed = position + 1;
        break;
    case RECORD_RENAME:
        take_name(ev->ino2, ev->ino, name + strlen(name) + 1, position + 1);
        n->changed = position + 1;
        break;
    case RECORD_WRITE:
    case RECORD_SIZE:
        n->changed = position + 1;
        break;
    case RECORD_UNLINK: /* nothing is lost if it is not on disk */
        lose_name(ev->ino, name);
        break;
    case RECORD_SYNC_END:
        if (n->changed <= ev->offset)
            n->changed = 0;
        keep_names(n, ev->offset);
        break;
    default:
        break;
    }
}

/* are_synced -- all that have a name. */
static bool
are_synced(const char *when)
{
    bool all = true;

    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].changed == 0 || nodes[i].is_gone || may_be_lost(nodes[i].name))
            continue;
        printf("%s: %s is not synced\n", when, nodes[i].name);
        all = false;
    }
    return all;
}

/* is_master_named -- the master record gets its name, which makes a directory an environment. */
static bool
is_master_named(const struct record_event *ev)
{
    const char *name = (const char *)(ev + 1);

    return ev->kind == RECORD_RENAME
           && strcmp(name + strlen(name) + 1, "xac.master") == 0;
}

/* is_name_synced -- of what is written to, if it is a segment of the log that has its name. */
static bool
is_name_synced(const struct record_event *ev)
{
    const struct node *n = node_of(ev->ino);

    return ev->kind != RECORD_WRITE || n->is_gone || strncmp(n->name, "xac-log.", 8) != 0
           || n->named == 0;
}

/* must_be_synced -- everything is when the call has returned, and before a master record is named; the
   name of a segment is before anything is logged there. */
static void
must_be_synced(const char *call)
{
    const struct record_event *ev;

    n_nodes = 0;
    for (uint64_t at = 0; (ev = record_at(trace, at)) != NULL; at = record_next(ev, at)) {
        must(!is_master_named(ev) || are_synced("before the master record"));
        must(is_name_synced(ev));
        look(ev, at);
    }
    must(!record_is_full(trace));
    must(n_nodes > 1);
    must(are_synced(call));
}

static void
setup(void)
{
    env_setup();
    trace = record_new(TRACE_BYTES);
    record_start(trace, ".");
}

static uint64_t *
map(void)
{
    uint64_t *base = (uint64_t *)xac_mmap(ENV_FILE, N_PAGES * env_page());

    must(base != MAP_FAILED);
    return base;
}

/* commit_all -- a transaction that is too large for a small log, so that it has a data file. */
static void
commit_all(uint64_t *base)
{
    must_ok(xac_begin());
    for (size_t i = 0; i < N_PAGES; i++)
        memset(env_cell(base, i), (int)i + 1, env_page());
    must_rc(xac_end(), XAC_COMMITTED);
}

static void
archive(void)
{
    char **names;
    size_t n;

    must_ok(xac_archive(&names, &n));
    free(names);
}

/* must_be_written -- the bytes of this file are on disk; others need not be. */
static void
must_be_written(const char *name)
{
    const struct record_event *ev;
    size_t n = 0;

    n_nodes = 0;
    for (uint64_t at = 0; (ev = record_at(trace, at)) != NULL; at = record_next(ev, at))
        look(ev, at);
    must(!record_is_full(trace));
    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].is_gone || strcmp(nodes[i].name, name) != 0)
            continue;
        must(nodes[i].changed == 0);
        n++;
    }
    must_eq(n, 1);
}

/* _i: 0 as a newcomer has it; 1 with a log directory; 2 with what makes more files. */
START_TEST(each_call_syncs_what_it_makes)
{
    uint64_t *base;

    if (_i == 1)
        must_ok(xac_set_log_directory("log"));
    if (_i == 2) {
        must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 64 << 10));
        must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 64 << 10));
        must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1));
    }
    env_init(XAC_DURABLE);
    must_be_synced("xInit");
    base = map();
    must_be_synced("xMmap");
    env_put(base, 1);
    must_be_synced("xend");
    commit_all(base);
    must_be_synced("xend of a large transaction");
    must_ok(xac_checkpoint());
    must_be_synced("xCheckpoint");
    env_put(base, 2);
    must_ok(xac_backup("copy"));
    must_be_synced("xBackup");
    archive();
    must_be_synced("xArchive");
    env_detach();
    must_be_synced("xShutdown");
}
END_TEST

#define FILES           8
#define FEW_DESCRIPTORS 64 /* of which a checkpoint uses a sixteenth */

/* Checkpoints of more files than they have descriptors: what is closed on the way has been synced. */
START_TEST(checkpoint_syncs_more_files_than_descriptors)
{
    const struct rlimit few = {FEW_DESCRIPTORS, FEW_DESCRIPTORS};
    uint64_t *base[FILES];
    char name[16];

    must(setrlimit(RLIMIT_NOFILE, &few) == 0);
    env_init(XAC_DURABLE);
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "in-%d.db", i);
        base[i] = (uint64_t *)xac_mmap(name, env_page());
        must(base[i] != MAP_FAILED);
    }
    for (uint64_t round = 1; round <= 3; round++) {
        for (int i = 0; i < FILES; i++)
            env_put(base[i], round);
        must_ok(xac_checkpoint());
        must_be_synced("xCheckpoint");
    }
    env_detach();
}
END_TEST

static void
commit_and_die(void *arg)
{
    env_init(XAC_DURABLE);
    env_put(map(), 1);
    (void)arg;
    (void)raise(SIGKILL);
}

/* _i: 1 the mapped file is missing, and is made again. */
START_TEST(recovery_syncs_what_it_makes)
{
    struct xac_recover_options accepting = {.accept_replaced = true};
    int dirfd;

    (void)proc_wait(proc_spawn(commit_and_die, NULL));
    if (_i == 1)
        must(xac_sys.unlinkat(AT_FDCWD, ENV_FILE, 0) == 0);
    dirfd = xac_sys.openat(AT_FDCWD, ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    must(dirfd >= 0);
    must_eq(xac_recover_dir(dirfd, &accepting, NULL, NULL), 0);
    must_be_synced("recovery");
    must_eq(file_u64(ENV_FILE, 0), 1);
    (void)close(dirfd);
}
END_TEST

/* More than the recorded calls of all steps. */
#define STEPS_MAX 80

static void
open_small(void)
{
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 64 << 10));
    must_ok(xac_set_log_directory("log"));
    env_init(XAC_DURABLE);
}

static void
map_and_commit(void)
{
    env_put(map(), 1);
}

static const struct {
    const char *call;
    void (*fn)(void);
} steps[] = {{"xInit", open_small}, {"xArchive", archive}, {"xend", map_and_commit}};

#define N_STEPS (sizeof steps / sizeof steps[0])

static _Atomic uint64_t *reached; /* the step of the process that dies */

/* The steps from `first` on, in a process that dies in its n-th recorded call. */
struct victim {
    uint64_t n;
    size_t first;
};

static void
die_on_the_way(void *arg)
{
    const struct victim *v = (const struct victim *)arg;

    record_die_at(v->n, false);
    for (size_t i = v->first; i < N_STEPS; i++) {
        word_store(reached, i);
        steps[i].fn();
    }
}

/* follow_one_that_dies -- what that one has made is synced by a second one that takes the steps. */
static void
follow_one_that_dies(uint64_t n, size_t first)
{
    struct victim v = {.n = n, .first = first};
    int status;

    reached = proc_shared(sizeof *reached);
    status = proc_wait(proc_spawn(die_on_the_way, &v));
    must(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    must(n < STEPS_MAX - 1 || WIFEXITED(status)); /* else some calls are not tried */
    for (size_t i = first; i < N_STEPS; i++) {
        steps[i].fn();
        if (i >= word_load(reached))
            must_be_synced(steps[i].call);
    }
    env_detach();
}

START_TEST(successor_syncs_what_the_dead_has_made)
{
    follow_one_that_dies((uint64_t)_i, 0);
}
END_TEST

/* The second one takes part already: nothing is recovered. */
START_TEST(companion_syncs_what_the_dead_has_made)
{
    open_small();
    follow_one_that_dies((uint64_t)_i, 1);
}
END_TEST

/* More than the recorded calls of a checkpoint; and of so many commits. */
#define CHECKPOINT_CALLS 30
#define COMMITS          24
#define COMMIT_CALLS     80

static void
checkpoint_and_die(void *arg)
{
    record_die_at(*(const uint64_t *)arg, false);
    must_ok(xac_checkpoint());
}

/* What may be moved to an archive follows from the newest master record.  Its writer may have died
   before it has synced that: if a power cut took it away, recovery would need what it had let go. */
START_TEST(archive_syncs_the_master_record_that_it_believes)
{
    uint64_t n = (uint64_t)_i;
    uint64_t *base;
    int status;

    env_init(XAC_DURABLE);
    base = map();
    env_put(base, 1);
    status = proc_wait(proc_spawn(checkpoint_and_die, &n));
    must(n < CHECKPOINT_CALLS - 1
         || WIFEXITED(status)); /* else some calls are not tried */
    archive();
    must_be_written("xac.master");
    env_detach();
}
END_TEST

/* commit_many -- so much that the log goes on in the next small segment. */
static void
commit_many(uint64_t *base, uint64_t seed)
{
    for (uint64_t i = 0; i < COMMITS; i++) {
        must_ok(xac_begin());
        memset(env_cell(base, i), (int)(seed + i), env_page());
        must_rc(xac_end(), XAC_COMMITTED);
    }
}

static void
commit_many_and_die(void *arg)
{
    uint64_t *base = map();

    record_die_at(*(const uint64_t *)arg, false);
    commit_many(base, 1);
}

/* The dead one has made a segment, but its name may not be on disk. */
START_TEST(segment_of_the_dead_is_used_after_its_name_is_synced)
{
    uint64_t n = (uint64_t)_i;
    int status;

    open_small();
    status = proc_wait(proc_spawn(commit_many_and_die, &n));
    must(n < COMMIT_CALLS - 1 || WIFEXITED(status));
    commit_many(map(), 100);
    must_be_synced("xend");
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("synced");
    TCase *tc = env_tcase_with(s, "synced", 60, setup);

    env_in_memory();
    tcase_add_loop_test(tc, each_call_syncs_what_it_makes, 0, 3);
    tcase_add_test(tc, checkpoint_syncs_more_files_than_descriptors);
    tcase_add_loop_test(tc, recovery_syncs_what_it_makes, 0, 2);
    tcase_add_loop_test(tc, successor_syncs_what_the_dead_has_made, 1, STEPS_MAX);
    tcase_add_loop_test(tc, companion_syncs_what_the_dead_has_made, 1, STEPS_MAX);
    tcase_add_loop_test(tc, archive_syncs_the_master_record_that_it_believes, 1,
                        CHECKPOINT_CALLS);
    tcase_add_loop_test(tc, segment_of_the_dead_is_used_after_its_name_is_synced, 1,
                        COMMIT_CALLS);
    return env_main(s);
}
