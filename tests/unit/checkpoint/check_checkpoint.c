/* SPDX-License-Identifier: MIT */
/*
 * check_checkpoint.c -- what a checkpoint may write while somebody reads, what its END
 * says, that it does not stop others, and that it can be left half done.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "tests/common/sysfault.h"
#include "api/api.h"
#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "log/block.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "shared/registry.h"
#include "txn/reap.h"
#include "txn/ctree.h"

/* ---- not durable, by hand ------------------------------------------------------------------ */

static uint64_t
in_file(uint64_t page_no)
{
    return file_u64(ENV_FILE, page_no * env_page());
}

START_TEST(copy_what_nobody_looks_below)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);
    struct xac_env *reader = world_open(XAC_NONDURABLE);

    must(world_put(env, 1, 11) && world_put(env, 2, 21));
    world_query(reader); /* sees 2 */
    must(world_put(env, 1, 12) && world_put(env, 3, 31));
    must_eq(xac_checkpoint_run(env, false), 0);
    must_eq(in_file(1), 11); /* not 12: the reader's bound */
    must_eq(in_file(2), 21);
    must_eq(in_file(3), 0);
    must_eq(world_value(reader, 1, xac_chain_commit(env)), 12);
    must_eq(world_value(reader, 2, xac_chain_commit(env)), 0); /* in the file now */
    must(world_vslots(env, XAC_VSLOT_LIMBO) > 0);              /* the reader may look */
    world_finish(reader);
    must_eq(xac_checkpoint_run(env, false), 0);
    must_eq(in_file(1), 12);
    must_eq(in_file(3), 31);
    must_eq(world_vslots(env, XAC_VSLOT_LIMBO), 0);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 0);
    must_eq(world_vslots(env, XAC_VSLOT_TAKEN), 0);
    must_eq(xac_env_close(reader), 0);
    must_eq(xac_env_close(env), 0);
}
END_TEST

START_TEST(take_out_many_pages_by_several_moves)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);
    uint64_t n = 2 * XAC_UNLINK_PAGES + 17, before;

    world_begin(env);
    for (uint64_t p = 0; p < n; p++) {
        must(world_write(env, p));
        world_store(env, p, p + 1);
    }
    before = world_commit(env);
    must_eq(xac_checkpoint_run(env, false), 0);
    must_eq(xac_chain_commit(env), before + 3);
    for (uint64_t p = 0; p < n; p++)
        must_eq(in_file(p), p + 1);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 0);
    must_eq(xac_env_close(env), 0);
}
END_TEST

START_TEST(stay_intact_when_it_fails)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);
    const char *hit;
    uint64_t calls;

    must(world_put(env, 1, 11) && world_put(env, 2, 21));
    for (uint64_t n = 1;; n++) {
        int rc;

        sysfault_arm(SYSFAULT_FAIL, SYSFAULT_FILES, n, ENOSPC);
        rc = xac_checkpoint_run(env, false);
        calls = sysfault_count();
        hit = sysfault_hit();
        sysfault_disarm();
        if (calls < n)
            break;
        /* A descriptor that nobody can look at counts as sound. */
        must(rc != 0 || strcmp(hit, "statx") == 0 || strcmp(hit, "dup_above") == 0);
        if (rc == 0)
            must(world_put(env, 1, 11) && world_put(env, 2, 21));
        must_eq(world_value(env, 1, xac_chain_commit(env)), 11);
        must_eq(world_value(env, 2, xac_chain_commit(env)), 21);
        world_query(env); /* nothing holds the floor, all slots are back */
        world_finish(env);
        must_eq(xac_txn_state(atomic_load_explicit(&xac_txn_at(env, 1)->word,
                                                   memory_order_relaxed)),
                XAC_TXN_FREE);
    }
    must(calls >= 2);
    must_eq(in_file(1), 11);
    must_eq(in_file(2), 21);
    must_eq(xac_env_close(env), 0);
}
END_TEST

START_TEST(refuse_a_file_that_was_replaced)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    must(world_put(env, 1, 11) != 0);
    must(rename(ENV_FILE, "other") == 0);
    file_write(ENV_FILE, 0, "x", 1);
    must_eq(xac_checkpoint_run(env, false), XAC_EREPLACED);
    must_eq(file_size(ENV_FILE), 1);
    must_eq(world_value(env, 1, xac_chain_commit(env)), 11);
    must(rename("other", ENV_FILE) == 0);
    must_eq(xac_checkpoint_run(env, false), 0);
    must_eq(in_file(1), 11);
    must_eq(xac_env_close(env), 0);
}
END_TEST

/* ---- by steps ------------------------------------------------------------------------------- */

#define STEP_TEST_PAGES 100u

/* fill -- one transaction for each page. */
static void
fill(struct xac_env *env, uint64_t v)
{
    for (uint64_t p = 0; p < STEP_TEST_PAGES; p++)
        must(world_put(env, p, v + p) != 0);
}

static uint64_t
checkpoints(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->counters.checkpoints, memory_order_relaxed);
}

/* open_due -- an environment in which a checkpoint is due. */
static struct xac_env *
open_due(void)
{
    struct xac_env *env = world_open(XAC_NONDURABLE);

    atomic_store_explicit(&env->ctl->checkpoint_bytes, 1, memory_order_relaxed);
    atomic_store_explicit(&env->frames_due, 50, memory_order_relaxed);
    fill(env, 1000);
    return env;
}

START_TEST(go_by_steps_when_due)
{
    struct xac_env *env = open_due();
    uint64_t steps = 0, written = 0, before = checkpoints(env);

    do {
        uint64_t now = 0;

        xac_checkpoint_if_due(env);
        for (uint64_t p = 0; p < STEP_TEST_PAGES; p++)
            now += in_file(p) == 1000 + p;
        must(now - written <= 16); /* no more pages at a time */
        written = now;
        must(world_put(env, steps % STEP_TEST_PAGES, 5) != 0); /* must stay out of it */
        steps++;
        must(steps < 100);
    } while (checkpoints(env) == before);
    must(steps > STEP_TEST_PAGES / 16);
    must_eq(written, STEP_TEST_PAGES);
    must(env->ckpt == NULL);
    must_eq(world_value(env, 0, xac_chain_commit(env)), 5);
    must_eq(xac_env_close(env), 0);
    must_eq(in_file(0), 5);
}
END_TEST

/* What one call has done. */
static uint64_t n_pwrite, n_statx;
static struct xac_sys sys_was;

static ssize_t
counted_pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    n_pwrite++;
    return sys_was.pwrite(fd, bytes, n, offset);
}

static int
counted_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
    n_statx++;
    return sys_was.statx(dirfd, path, flags, mask, st);
}

START_TEST(do_bounded_work_in_one_commit)
{
    uint64_t n_pages = 2 * XAC_GC_WORK + 100, limbo = 0, before, steps = 0;
    struct xac_env *env = world_open(XAC_NONDURABLE);

    for (uint64_t p = 0; p < n_pages; p++) /* no two neighbours: one write each */
        must(world_put(env, 2 * p, 7) != 0);
    before = checkpoints(env);
    atomic_store_explicit(&env->ctl->checkpoint_bytes, 1, memory_order_relaxed);
    atomic_store_explicit(&env->frames_due, 50, memory_order_relaxed);
    sys_was = xac_sys;
    xac_sys.pwrite = counted_pwrite;
    xac_sys.statx = counted_statx;
    while (checkpoints(env) == before) {
        uint64_t left;

        n_pwrite = n_statx = 0;
        xac_checkpoint_if_due(env);
        must(n_pwrite <= 16);
        must(n_statx <= (steps < 20 ? 11 : 8)); /* not once for each write */
        left = world_vslots(env, XAC_VSLOT_LIMBO);
        must(limbo <= left + XAC_GC_WORK); /* no more are freed at a time */
        limbo = left;
        must(steps++ < n_pages);
    }
    xac_sys = sys_was;
    must_eq(limbo, 0);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 0);
    must_eq(in_file(2 * (n_pages - 1)), 7);
    must_eq(xac_env_close(env), 0);
}
END_TEST

START_TEST(end_when_another_begins)
{
    struct xac_env *env = open_due();
    struct xac_env *other = world_open(XAC_NONDURABLE);
    uint64_t before = checkpoints(env);

    for (int i = 0; i < _i; i++)
        xac_checkpoint_if_due(env);
    must(_i == 0 || env->ckpt != NULL);
    must_eq(xac_checkpoint_run(other, false), 0);
    must_eq(checkpoints(env), before + 1);
    for (uint64_t p = 0; p < STEP_TEST_PAGES; p++)
        must_eq(in_file(p), 1000 + p);
    must_eq(world_vslots(env, XAC_VSLOT_VERSION), 0);
    xac_checkpoint_if_due(env);
    must(env->ckpt == NULL);
    must_eq(checkpoints(env), before + 1);
    must_eq(xac_env_close(env), 0);
    must_eq(xac_env_close(other), 0);
}
END_TEST

/* A process that began one and commits no more does not keep it from the others for ever. */
START_TEST(not_wait_for_who_idles)
{
    struct xac_env *idle = open_due();
    struct xac_env *busy = world_open(XAC_NONDURABLE);
    uint64_t before = checkpoints(idle), steps = 0;

    xac_checkpoint_if_due(idle);
    must(idle->ckpt != NULL);
    atomic_store_explicit(&busy->frames_due, 50, memory_order_relaxed);
    xac_checkpoint_if_due(busy);
    must(busy->ckpt == NULL); /* left to the other one */
    must(atomic_load_explicit(&busy->frames_due, memory_order_relaxed) > 50);
    xac_checkpoint_if_due(busy);
    must(busy->ckpt == NULL); /* and not due again so soon */
    atomic_store_explicit(&busy->frames_due, 50, memory_order_relaxed);
    do {
        xac_checkpoint_if_due(busy);
        must(++steps < 100);
    } while (checkpoints(busy) == before);
    must_eq(world_vslots(busy, XAC_VSLOT_VERSION), 0);
    xac_checkpoint_if_due(idle); /* its own has been ended */
    must(idle->ckpt == NULL);
    must_eq(xac_env_close(idle), 0);
    must_eq(xac_env_close(busy), 0);
}
END_TEST

START_TEST(end_with_who_leaves)
{
    struct xac_env *env = open_due();
    struct xac_env *other = world_open(XAC_NONDURABLE);

    for (int i = 0; i < 3; i++)
        xac_checkpoint_if_due(env);
    must(env->ckpt != NULL && other->ctl->ckpt_query != 0);
    must_eq(xac_env_close(env), 0);
    must_eq(other->ctl->ckpt_query, 0);
    fill(other, 2000);
    xac_gc_lock(other);
    must_eq(xac_gc_bound(other, NULL), xac_chain_commit(other)); /* nothing held */
    xac_gc_unlock(other);
    must_eq(xac_env_close(other), 0);
    must_eq(in_file(7), 2007);
}
END_TEST

/* ---- durable, by the public interface --------------------------------------------------------- */

#define PAGES 60u

static void
set_options(void)
{
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0));
}

/* put -- one transaction that stores v at the start of pages [from, to). */
static void
put(unsigned char *file, uint64_t from, uint64_t to, uint64_t v)
{
    int rc;

    do {
        must_ok(xac_begin());
        for (uint64_t p = from; p < to; p++)
            *(volatile uint64_t *)(void *)(file + p * env_page()) = v + p;
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    must_rc(rc, XAC_COMMITTED);
}

/* 1: begin; 2: all pages were read; 3: read them again. */
struct reader {
    _Atomic uint64_t step;
};

/* read_on -- a query that stays open until told; sees the same at the end. */
static void
read_on(void *arg)
{
    struct reader *r = arg;
    const unsigned char *file;
    uint64_t sum[2] = {0};

    set_options();
    proc_await(&r->step, 1, 20);
    file = env_attach(XAC_DURABLE, PAGES);
    must_ok(xac_begin_query());
    for (int i = 0; i < 2; i++) {
        for (uint64_t p = 0; p < PAGES; p++)
            sum[i] += *(const volatile uint64_t *)(const void *)(file + p * env_page());
        if (i == 0)
            word_store(&r->step, 2);
        proc_await(&r->step, 3, 20);
    }
    must_eq(sum[0], sum[1]);
    must_ok(xac_end_query());
    must_ok(xac_shutdown());
}

/* The last END in the log, as the master record names it. */
struct end {
    struct xac_master_slot master;
    struct xac_xcheckpt_end rec;
};

static void
read_end(struct end *e)
{
    static uint64_t buf[8192];
    const struct xac_block *blk = (const struct xac_block *)(const void *)buf;
    const struct xac_record *r = NULL;
    char name[XAC_LOG_NAME_MAX + 8] = ENV_DIR "/";
    int dirfd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(dirfd >= 0);
    must_eq(xac_master_read(dirfd, &e->master), 0);
    must(close(dirfd) == 0);
    must(e->master.end_lsn_after - e->master.end_lsn <= sizeof buf);
    xac_log_segment_name(name + strlen(name),
                         xac_log_segment_of(e->master.end_lsn, e->master.segment_bytes));
    file_read(name, XAC_SEGMENT_HEADER + e->master.end_lsn % e->master.segment_bytes, buf,
              e->master.end_lsn_after - e->master.end_lsn);
    must_eq(blk->lsn, e->master.end_lsn);
    must(xac_block_body_ok(blk));
    while ((r = xac_record_next(blk, r)) != NULL && r->type != XAC_XCHECKPT_END)
        ;
    must(r != NULL);
    memcpy(&e->rec, r, sizeof e->rec);
}

static void
verify_recovered(void *arg)
{
    const unsigned char *file;

    (void)arg;
    set_options();
    file = env_attach(XAC_DURABLE, PAGES);
    must_ok(xac_begin_query());
    for (uint64_t p = 0; p < PAGES; p++) {
        uint64_t want = p < 10 ? 100 + p : p < 30 ? 200 + p : 300 + p;

        must_eq(*(const volatile uint64_t *)(const void *)(file + p * env_page()), want);
    }
    must_ok(xac_end_query());
    must_ok(xac_shutdown());
}

struct play {
    bool dies; /* with pages held back */
};

/*
 * play_held_back -- pages 0 to 59 are 100; a reader holds that; then 10 to 59 become 200,
 * 30 to 59 then 300.  What the reader holds back must be redone.
 */
static void
play_held_back(void *arg)
{
    const struct play *play = arg;
    struct reader *r = proc_shared(2 * sizeof *r);
    pid_t pid[2] = {proc_spawn(read_on, &r[0]), proc_spawn(read_on, &r[1])};
    static struct end e;
    unsigned char *file;
    uint64_t first;

    set_options();
    file = env_attach(XAC_DURABLE, PAGES);
    word_store(&r[0].step, 1);
    proc_await(&r[0].step, 2, 10); /* reads all zero, from here on */
    put(file, 0, 30, 100);
    put(file, 30, PAGES, 100);
    must_ok(xac_checkpoint());
    read_end(&e);
    must_eq(e.rec.redo_lsn, e.master.start_lsn); /* held back by the reader at 0 */
    first = e.rec.begin_lsn;
    word_store(&r[0].step, 3);
    proc_join(pid[0]);

    word_store(&r[1].step, 1);
    proc_await(&r[1].step, 2, 10); /* sees 100 everywhere */
    put(file, 10, 30, 200);
    put(file, 30, PAGES, 200);
    put(file, 30, PAGES, 300);
    must_ok(xac_checkpoint());
    read_end(&e);
    must_eq(e.rec.begin_lsn, e.master.begin_lsn);
    must_eq(e.rec.redo_lsn, e.master.redo_lsn);
    must(first < e.rec.begin_lsn);
    must_eq(e.rec.redo_lsn, first); /* 10 to 59 have full images behind it */
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(in_file(p), 100 + p); /* what the reader sees */
    if (play->dies) {
        kill(pid[1], SIGKILL);
        (void)proc_wait(pid[1]); /* while it is dying it still takes part */
        kill(getpid(), SIGKILL);
    }
    word_store(&r[1].step, 3); /* the same as before the checkpoint */
    proc_join(pid[1]);
    must_ok(xac_checkpoint());
    read_end(&e);
    must_eq(e.rec.redo_lsn, e.rec.begin_lsn);
    must_eq(in_file(0), 100);
    must_eq(in_file(10), 210);
    must_eq(in_file(59), 359);
    kill(getpid(), SIGKILL);
}

START_TEST(redo_what_is_held_back)
{
    struct play play = {.dies = _i != 0};
    int status = proc_wait(proc_spawn(play_held_back, &play));

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    proc_run(verify_recovered, NULL);
    must_eq(in_file(59), 359);
}
END_TEST

/* ---- not in the way of others ------------------------------------------------------------------ */

static _Atomic uint64_t *counter, *stop;

static void
checkpoint_all_the_time(void *arg)
{
    (void)arg;
    set_options();
    (void)env_attach(XAC_DURABLE, PAGES);
    while (word_load(stop) == 0) {
        must_ok(xac_checkpoint());
        word_add(counter, 1);
    }
    must_ok(xac_shutdown());
}

START_TEST(commit_beside_checkpoints)
{
    unsigned char *file;
    pid_t pid[2];

    counter = proc_shared(sizeof *counter);
    stop = proc_shared(sizeof *stop);
    set_options();
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(checkpoint_all_the_time, NULL);
    file = env_attach(XAC_DURABLE, PAGES);
    for (uint64_t i = 0; i < 200 || word_load(counter) < 20; i++) {
        uint64_t n = 1 + i % 7;

        put(file, i % 50, i % 50 + n, i * 1000);
        must_ok(xac_begin_query());
        for (uint64_t p = i % 50; p < i % 50 + n; p++)
            must_eq(*(volatile uint64_t *)(void *)(file + p * env_page()), i * 1000 + p);
        must_ok(xac_end_query());
    }
    word_store(stop, 1);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    must_ok(xac_shutdown());
}
END_TEST

/* A data file's name must be new, also after a clean shutdown. */
START_TEST(write_large_transactions_after_reopening)
{
    set_options();
    for (int i = 0; i < 3; i++) {
        unsigned char *file = env_attach(XAC_DURABLE, PAGES);

        must_ok(xac_begin());
        for (uint64_t p = 0; p < PAGES; p++)
            memset(file + p * env_page(), i + (int)p + 1, env_page());
        must_ok(xac_set_page_access(file, XAC_READ));
        for (uint64_t p = 0, x = 1; p < PAGES * env_page() / 8; p++)
            ((uint64_t *)(void *)file)[p] = x = x * 6364136223846793005 + (uint64_t)i + 1;
        must_rc(xac_end(), XAC_COMMITTED);
        must_ok(xac_shutdown());
    }
}
END_TEST

/* ---- what is in the file already ---------------------------------------------------------- */

#ifdef XAC_DEBUG

static void
die_at_r(const char *name)
{
    if (strcmp(name, "r") == 0)
        (void)kill(getpid(), SIGKILL);
}

static void
checkpoint_and_die(void *arg)
{
    put((unsigned char *)arg, 0, 10, 100);
    xac_kill_hook = die_at_r;
    (void)xac_checkpoint();
}

/* Pages written to the mapped file, as far as they can be told. */
static uint64_t file_writes;
static ino_t file_ino;

static ssize_t
count_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    struct stat st;

    must(fstat(fd, &st) == 0);
    file_writes += st.st_ino == file_ino;
    return pwrite(fd, buf, n, offset);
}

/* Power may fail while it is written: only a page with a full image since may be. */
START_TEST(write_no_page_again_that_is_closed)
{
    unsigned char *file;
    struct stat st;
    int status;

    set_options();
    file = env_attach(XAC_DURABLE, PAGES);
    status = proc_wait(proc_spawn(checkpoint_and_die, file));
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    must_eq(in_file(0), 100);
    must(stat(ENV_FILE, &st) == 0);
    file_ino = st.st_ino;
    xac_sys.pwrite = count_pwrite;
    put(file, 3, 5, 200);
    must_ok(xac_checkpoint());
    must_eq(file_writes, 2); /* neither the others nor the older versions of these */
    must_eq(in_file(4), 204);
    must_eq(in_file(5), 105);
    must_ok(xac_checkpoint());
    must_eq(file_writes, 2);
    must_ok(xac_shutdown());
}
END_TEST

#endif /* XAC_DEBUG */

/* ---- what a backup needs ----------------------------------------------------------------- */

/* write_log -- about 1 MiB of log in segments of 64 KiB, and 20 data files. */
static void
write_log(unsigned char *file)
{
    for (uint64_t i = 0, x = 1; i < 320; i++) {
        size_t n = i % 16 == 0 ? PAGES * env_page() : env_page();

        must_ok(xac_begin());
        for (size_t k = 0; k < n; k += sizeof x) {
            x = x * 6364136223846793005 + 1442695040888963407;
            memcpy(file + k, &x, sizeof x);
        }
        must_rc(xac_end(), XAC_COMMITTED);
    }
}

/* A pin such as xac_backup_run() makes keeps segments and data files, as long as it is. */
START_TEST(recycle_nothing_that_is_pinned)
{
    struct xac_participant *p;
    unsigned char *file;

    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_ok(xac_set_option(XAC_OPT_LOG_RECYCLE, 1));
    file = env_attach(XAC_DURABLE, PAGES);
    p = xac_participant_at(xac_api_env, xac_api_env->self);
    /* Of this thread, both times. */
    atomic_store_explicit(&p->log_pin, XAC_LSN_FIRST, memory_order_seq_cst);
    for (int i = 0; i < 3; i++) {
        write_log(file);
        must_ok(xac_checkpoint());
    }
    for (unsigned k = 1; k <= 20; k++) {
        char name[64];

        (void)snprintf(name, sizeof name, ENV_DIR "/xac-log.%08u", k);
        must(file_exists(name));
    }
    for (unsigned k = 1; k <= 60; k++) {
        char name[64];

        (void)snprintf(name, sizeof name, ENV_DIR "/xac-data.00000002.%08x", k);
        must(file_exists(name));
    }
    atomic_store_explicit(&p->log_pin, 0, memory_order_seq_cst);
    must_ok(xac_checkpoint());
    must(!file_exists(ENV_DIR "/xac-data.00000002.00000001"));
    must(!file_exists(ENV_DIR "/xac-data.00000002.0000003c"));
    must(file_exists(ENV_DIR "/xac-log.00000001"));
    write_log(file);
    must(!file_exists(ENV_DIR "/xac-log.00000001"));
    must_ok(xac_shutdown());
}
END_TEST

/* keep_in_between -- somebody begins to keep the log right after a segment has lost its name. */
static int (*rename_really)(int dirfd, const char *from, int dirfd2, const char *to);
static char taken[64];

static int
keep_in_between(int dirfd, const char *from, int dirfd2, const char *to)
{
    int rc = rename_really(dirfd, from, dirfd2, to);

    if (rc == 0 && strcmp(to, "xac-log-new") == 0 && taken[0] == '\0') {
        (void)snprintf(taken, sizeof taken, ENV_DIR "/%s", from);
        must_ok(xac_log_keep(dirfd, true, NULL));
    }
    return rc;
}

/* log_keep.h, invariant 2: what an archiver may have open by then is not written over. */
START_TEST(take_no_segment_that_is_kept)
{
    unsigned char *file;
    struct stat before, after;

    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0));
    file = env_attach(XAC_DURABLE, PAGES);
    write_log(file);
    must_eq(stat(ENV_DIR "/xac-log.00000001", &before), 0);
    must_ok(xac_checkpoint());
    rename_really = xac_sys.renameat;
    xac_sys.renameat = keep_in_between;
    write_log(file);
    xac_sys.renameat = rename_really;
    must(strcmp(taken, ENV_DIR "/xac-log.00000001") == 0);
    must_eq(stat(taken, &after), 0);
    must(before.st_ino == after.st_ino && before.st_mtim.tv_sec == after.st_mtim.tv_sec
         && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    must(file_exists(ENV_DIR "/xac-log.00000002"));
    must_ok(xac_set_option(XAC_OPT_LOG_RECYCLE, 1));
    must_ok(xac_checkpoint());
    write_log(file);
    must(!file_exists(taken)); /* not forgotten */
    must_ok(xac_shutdown());
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *tc = env_tcase(s, "checkpoint", 60);

    tcase_add_test(tc, copy_what_nobody_looks_below);
    tcase_add_test(tc, take_out_many_pages_by_several_moves);
    tcase_add_test(tc, stay_intact_when_it_fails);
    tcase_add_test(tc, refuse_a_file_that_was_replaced);
    tcase_add_test(tc, go_by_steps_when_due);
    tcase_add_test(tc, do_bounded_work_in_one_commit);
    tcase_add_loop_test(tc, end_when_another_begins, 0, 12);
    tcase_add_test(tc, not_wait_for_who_idles);
    tcase_add_test(tc, end_with_who_leaves);
    tcase_add_loop_test(tc, redo_what_is_held_back, 0, 2);
    tcase_add_test(tc, commit_beside_checkpoints);
    tcase_add_test(tc, write_large_transactions_after_reopening);
#ifdef XAC_DEBUG
    tcase_add_test(tc, write_no_page_again_that_is_closed);
#endif
    tcase_add_test(tc, recycle_nothing_that_is_pinned);
    tcase_add_test(tc, take_no_segment_that_is_kept);
    return env_main(s);
}
