/* SPDX-License-Identifier: MIT */
/*
 * check_standby.c -- a copy that takes the log of its source and redoes it (libxac/recovery/standby.h,
 * libxac/log/replica.h).
 *
 * GOAL    At each moment a recovery of the standby gives a state that the source has had, at or behind what
 *         has been acknowledged: while it follows, after kill -9 at any system call, after any of them
 *         has failed, across generations and segments of another size.  Nothing is redone twice or left out.
 *         Its log does not grow for ever.  A block that does not belong there is refused.
 * METHOD  One writer, whose k-th transaction is known, with large ones, checkpoints and small segments.  A
 *         pump moves blocks from the source to the standby in one process.  A judge recovers a copy of the
 *         standby's directory and compares each page with the model.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <sys/wait.h>

#include "standby_env.h"
#include "tests/common/sysfault.h"
#include "log/backup_note.h"
#include "recovery/standby.h"
#include "ship/source.h"

/* ---- The pump ------------------------------------------------------------------------ */

struct pump {
    int dirfd, lockfd;
    struct xac_standby *s;
    struct xac_source source;
    uint32_t generation;
    uint64_t seed;
};

/* standby_open -- as a receiver does, under the gate, which it keeps: without readers. */
static int
standby_open(int dirfd, struct xac_standby **sp, int *lockfdp)
{
    int rc = xac_standby_lock(dirfd, COPY, lockfdp);

    if (rc == 0)
        rc = xac_standby_start(dirfd, COPY, sp);
    if (rc != 0 && *lockfdp >= 0)
        (void)close(*lockfdp);
    return rc;
}

/* pump_open -- ret an error of the standby. */
static int
pump_open(struct pump *p)
{
    struct xac_standby_place at;
    int rc;

    p->seed = env_seed() + board->seed;
    p->dirfd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(p->dirfd >= 0);
    rc = standby_open(p->dirfd, &p->s, &p->lockfd);
    if (rc != 0) {
        (void)close(p->dirfd);
        return rc;
    }
    xac_standby_where(p->s, &at);
    p->generation = at.line.generation;
    must_ok(xac_source_open(&p->source, ENV_DIR));
    must_ok(xac_source_seek(&p->source, at.line.generation, at.durable,
                            at.line.segment_bytes));
    return 0;
}

static void
pump_close(struct pump *p)
{
    xac_standby_close(p->s);
    (void)close(p->lockfd);
    xac_source_close(&p->source);
    (void)close(p->dirfd);
}

/* pump_data -- the data file of a block. */
static int
pump_data(struct pump *p, const struct xac_followed *got)
{
    static uint8_t piece[5000];
    uint64_t at = 0;
    size_t n = 1;
    int rc = 0;

    while (rc == 0 && at < got->data->length) {
        must(pread(got->datafd, piece, sizeof piece, (off_t)at) > 0);
        n = got->data->length - at < sizeof piece ? got->data->length - at : sizeof piece;
        rc = xac_standby_data(p->s, got->data->serial, at, piece, n);
        at += n;
    }
    return rc;
}

/* pump_turn -- to the generation of a block. */
static int
pump_turn(struct pump *p, const struct xac_block *blk)
{
    struct xac_lineage_line line;

    must_ok(xac_source_line(&p->source, blk->generation, &line));
    must_eq(line.generation, blk->generation);
    p->generation = blk->generation;
    return xac_standby_turn(p->s, &line);
}

/* acknowledge -- what has been taken is durable: the judge must find it. */
static int
acknowledge(struct pump *p, uint64_t commits)
{
    int rc = xac_standby_sync(p->s);

    if (rc == 0)
        word_store(&board->acknowledged, commits);
    return rc == 0 && rnd_below(&p->seed, 3) > 0 ? xac_standby_apply(p->s) : rc;
}

/* commits_of -- 1 if it is a transaction. */
static uint64_t
commits_of(const struct xac_block *blk)
{
    return xac_block_commit(blk) != NULL;
}

/* must_be_synced -- before a block is written, as far as the block says that the source was. */
static void
must_be_synced(const struct pump *p, uint64_t durable)
{
    struct xac_standby_place at;

    xac_standby_where(p->s, &at);
    must(at.durable >= durable);
}

/* pump -- blocks, until there are no more or `most`; ret an error.  *takenp counts
   transactions. */
static int
pump(struct pump *p, uint64_t most, uint64_t *takenp)
{
    struct xac_followed got;
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < most; i++) {
        rc = xac_source_next(&p->source, &got);
        if (rc != 0 || got.blk == NULL)
            break;
        if (got.blk->generation != p->generation)
            rc = pump_turn(p, got.blk);
        if (rc == 0 && got.data != NULL)
            rc = pump_data(p, &got);
        if (rc == 0)
            rc = xac_standby_take(p->s, got.blk, got.blk->length);
        if (rc == 0)
            must_be_synced(p, got.blk->durable);
        *takenp += rc == 0 ? commits_of(got.blk) : 0;
        if (rc == 0 && (rnd_below(&p->seed, 4) == 0 || xac_standby_is_full(p->s)))
            rc = acknowledge(p, *takenp);
    }
    return rc;
}

/* make_copy -- an environment with transactions, and a copy of it that more have followed. */
static void
make_copy(uint64_t before, uint64_t after)
{
    write_n(before);
    board->backup_first = true;
    write_n(after);
}

/* transactions -- in the copy, before anything is pumped. */
static uint64_t
transactions(void)
{
    return judge(COPY);
}

/* ---- Following ----------------------------------------------------------------------- */

START_TEST(each_state_is_one_of_the_source)
{
    struct pump p;
    uint64_t taken, most = 40;
    pid_t pid;

    board->large_every = _i == 0 ? 25 : 0;
    make_copy(30, 30);
    taken = transactions();
    must_eq(taken, 30);
    must_ok(pump_open(&p));
    board->n = 400;
    pid = proc_spawn(write_some, NULL);
    proc_await(&board->written, 80, 60);
    while (taken < 460) {
        uint64_t k;

        must_ok(pump(&p, most, &taken));
        k = judge(COPY);
        must(k >= word_load(&board->acknowledged) && k <= taken);
        xac_source_wait(&p.source, 50);
    }
    proc_join(pid);
    must_ok(xac_standby_rest(p.s));
    /* The files hold everything without a recovery. */
    must_eq(must_be_state(COPY IN_COPY), 460);
    must_eq(judge(COPY), 460);
    /* Log that is not needed has gone. */
    must(file_count(COPY, "xac-log.") < 6);
    must(file_count(COPY, "xac-data.") < 6);
    pump_close(&p);
}
END_TEST

/* follow_on -- all there is, with the standby opened anew; ret transactions taken. */
static uint64_t
follow_on(void)
{
    uint64_t taken = 0;
    struct pump p;

    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_ok(xac_standby_rest(p.s));
    pump_close(&p);
    return taken;
}

START_TEST(generations_and_sizes_are_followed)
{
    static const uint64_t sizes[] = {64, 128, 64, 64, 256};
    uint64_t all = 60;

    make_copy(30, 30);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct xac_standby_place at;
        struct pump p;

        board->segment_bytes = sizes[i] * KIB;
        board->leaves = i % 2 == 0;
        write_n(i == 3 ? 0 : 50); /* a generation without a transaction */
        all += i == 3 ? 0 : 50;
        if (i % 2 == 0)
            (void)follow_on();
        if (i % 2 == 0)
            must_eq(judge(COPY), all);
        must_ok(pump_open(&p));
        xac_standby_where(p.s, &at);
        must_eq(at.durable, at.applied);
        pump_close(&p);
    }
    (void)follow_on();
    must_eq(judge(COPY), all);
    must_eq(must_be_state(COPY IN_COPY), all);
}
END_TEST

/* ---- Ends ---------------------------------------------------------------------------- */

static uint64_t n_fault;
static unsigned fault_kinds = SYSFAULT_FILES | SYSFAULT_GROW;

/* pump_all -- a child: everything, until it dies in a system call. */
static void
pump_all(void *arg)
{
    uint64_t taken =
        board->n; /* transactions in the standby when it is opened          */
    struct pump p;

    (void)arg;
    sysfault_arm(SYSFAULT_DIE, fault_kinds, n_fault, 0);
    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_ok(xac_standby_rest(p.s));
    sysfault_disarm();
    word_store(&board->acknowledged, taken);
    pump_close(&p);
}

/* a_long_log -- several generations that the copy lacks; ret transactions of the source. */
static uint64_t
a_long_log(void)
{
    make_copy(20, 20);
    write_n(30);
    board->segment_bytes = 128 * KIB;
    write_n(30);
    return 100;
}

START_TEST(killed_at_any_call_it_goes_on)
{
    uint64_t all = a_long_log(), seed = env_seed() + (uint64_t)_i, has = 20, rounds = 0;
    uint64_t kills = env_number("XAC_KILLS", 120 / ENV_DEAR);
    int status = 1;

    run_shell("cp -a " COPY " kept");
    while (rounds < kills || status != 0) {
        board->n = has;
        board->seed = ++rounds;
        n_fault = 1 + rnd_below(&seed, rounds % 8 == 0 ? 1500 : 250);
        if (rounds > 4 * kills)
            n_fault = UINT64_MAX;
        status = proc_wait(proc_spawn(pump_all, NULL));
        must(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        has = judge(COPY);
        must(has >= word_load(&board->acknowledged));
        if (status == 0 && rounds < kills) {
            must_eq(has, all);
            run_shell("rm -rf " COPY " && cp -a kept " COPY);
            word_store(&board->acknowledged, 0);
            has = 20;
        }
    }
    must_eq(judge(COPY), all);
    must_eq(must_be_state(COPY IN_COPY), all);
}
END_TEST

START_TEST(killed_at_each_call_once)
{
    uint64_t n = 0;
    int status = 1;

    board->large_every = 7;
    board->checkpoint_every = 5;
    make_copy(5, 3);
    write_n(6);
    run_shell("cp -a " COPY " kept");
    while (status != 0) {
        run_shell("rm -rf " COPY " && cp -a kept " COPY);
        word_store(&board->acknowledged, 0);
        board->n = 5;
        n += ENV_DEAR;
        n_fault = n;
        status = proc_wait(proc_spawn(pump_all, NULL));
        must(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        must(judge(COPY) >= word_load(&board->acknowledged));
        (void)follow_on();
        must_eq(judge(COPY), 14);
    }
    must(n > 100);
}
END_TEST

START_TEST(failed_calls_lose_nothing)
{
    static const int errors[] = {EIO, ENOSPC};
    uint64_t taken, n = 0, has;
    bool is_hit = true;
    struct pump p;

    board->large_every = 7;
    board->checkpoint_every = 5;
    make_copy(5, 3);
    write_n(6);
    run_shell("cp -a " COPY " kept");
    while (is_hit) {
        int rc;

        run_shell("rm -rf " COPY " && cp -a kept " COPY);
        word_store(&board->acknowledged, 0);
        taken = 5;
        must_ok(pump_open(&p));
        env_stale_message();
        sysfault_arm(_i < 2 ? SYSFAULT_FAIL : SYSFAULT_FAIL_ALL,
                     SYSFAULT_SYNCS | SYSFAULT_GROW, ++n, errors[_i % 2]);
        rc = pump(&p, UINT64_MAX, &taken);
        if (rc == 0)
            rc = xac_standby_rest(p.s);
        is_hit = sysfault_hit() != NULL;
        sysfault_disarm();
        if (is_hit)
            must_eq(rc, errors[_i % 2]);
        else
            must_ok(rc);
        pump_close(&p);
        has = judge(COPY);
        must(has >= word_load(&board->acknowledged));
        (void)follow_on();
        must_eq(judge(COPY), 14);
    }
    must(n > 10);
}
END_TEST

/* ---- What is refused ------------------------------------------------------------------- */

START_TEST(blocks_that_do_not_belong_there_are_refused)
{
    static _Alignas(8) uint8_t copy[1 << 20];
    struct xac_block *blk = (struct xac_block *)(void *)copy;
    struct xac_standby_place before, after;
    struct xac_followed got;
    struct pump p;

    board->large_every = 0;
    make_copy(10, 10);
    must_ok(pump_open(&p));
    xac_standby_where(p.s, &before);
    must_ok(xac_source_next(&p.source, &got));
    memcpy(copy, got.blk, got.blk->length);
    must(got.blk->length < sizeof copy);
    for (size_t bit = 0; bit < got.blk->length * (size_t)8; bit += bit < 512 ? 1 : 97) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        must_refuse(xac_standby_take(p.s, blk, got.blk->length), XAC_EDAMAGED);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    must_refuse(xac_standby_take(p.s, blk, got.blk->length - 8), XAC_EDAMAGED);
    must_refuse(xac_standby_take(p.s, blk, 8), XAC_EDAMAGED);
    must_ok(xac_standby_take(p.s, blk, got.blk->length));
    must_refuse(xac_standby_take(p.s, blk, got.blk->length), XAC_EDAMAGED); /* twice */
    must_ok(xac_source_next(&p.source, &got));
    must_ok(xac_source_next(&p.source, &got)); /* one is left out */
    must_refuse(xac_standby_take(p.s, got.blk, got.blk->length), XAC_EDAMAGED);
    must_ok(xac_standby_rest(p.s));
    xac_standby_where(p.s, &after);
    must_eq(after.durable, before.durable + blk->length);
    pump_close(&p);
}
END_TEST

START_TEST(only_what_is_synced_is_durable)
{
    struct xac_standby_place before, after;
    struct xac_backup_note note;
    struct xac_followed got;
    struct pump p;

    board->large_every = 0;
    make_copy(10, 10);
    must_ok(pump_open(&p));
    xac_standby_where(p.s, &before);
    must_ok(xac_source_next(&p.source, &got));
    must_ok(xac_standby_take(p.s, got.blk, got.blk->length));
    xac_standby_where(p.s, &after);
    must_eq(after.durable, before.durable);
    sysfault_arm(SYSFAULT_COUNT, SYSFAULT_SYNCS, 0, 0);
    must_ok(xac_standby_sync(p.s));
    must(sysfault_count() > 0);
    sysfault_disarm();
    xac_standby_where(p.s, &after);
    must_eq(after.durable, before.durable + got.blk->length);
    must_eq(after.applied, before.applied);
    /* What the files are about to hold is noted before. */
    must_ok(xac_standby_rest(p.s));
    must_ok(xac_backup_note_read(p.dirfd, &note));
    must_eq(note.end_lsn, after.durable);
    xac_backup_note_free(&note);
    pump_close(&p);
}
END_TEST

START_TEST(data_files_are_checked)
{
    struct xac_followed got = {.blk = NULL};
    uint64_t taken = 0;
    struct pump p;

    board->large_every = 12;
    make_copy(10, 10);
    must_ok(pump_open(&p));
    for (;;) {
        must_ok(xac_source_next(&p.source, &got));
        must(got.blk != NULL);
        if (got.data != NULL)
            break;
        must_ok(xac_standby_take(p.s, got.blk, got.blk->length));
        taken += commits_of(got.blk);
    }
    must_refuse(xac_standby_data(p.s, got.data->serial, 8, "abcdefgh", 8), XAC_EDAMAGED);
    must_ok(xac_standby_data(p.s, got.data->serial, 0, "abcdefgh", 8));
    must_refuse(xac_standby_data(p.s, got.data->serial, 0x10, "abcdefgh", 8),
                XAC_EDAMAGED);
    must_refuse(xac_standby_data(p.s, got.data->serial + 1, 8, "abcdefgh", 8),
                XAC_EDAMAGED);
    must_refuse(xac_standby_take(p.s, got.blk, got.blk->length), XAC_EDAMAGED);
    pump_close(&p);
    must_eq(judge(COPY), 10 + taken);
    (void)follow_on();
    must_eq(judge(COPY), 20);
}
END_TEST

START_TEST(others_are_kept_out)
{
    struct xac_standby *other;
    struct pump p;
    int fd, lockfd;

    make_copy(10, 10);
    must_ok(pump_open(&p));
    fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must_refuse(standby_open(fd, &other, &lockfd), XAC_ELIVE);
    pump_close(&p);
    must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), XAC_ENOTLEADER);
    must_ok(
        xac_recover_dir(fd, &(struct xac_recover_options){.promotes = true}, NULL, NULL));
    must_refuse(standby_open(fd, &other, &lockfd), EINVAL);
    must(strstr(xac_err_text(), "receive anew") != NULL);
    (void)close(fd);
}
END_TEST

START_TEST(parted_generations_are_refused)
{
    struct xac_lineage_line line;
    uint64_t taken = 0;
    struct pump p;

    make_copy(10, 10);
    write_n(10);
    must_ok(pump_open(&p));
    must_ok(xac_source_line(&p.source, p.generation + 1, &line));
    /* The log here lacks the end of the generation, or has more of it. */
    must_refuse(xac_standby_turn(p.s, &line), XAC_EFOREIGN);
    pump_close(&p);
    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_eq(taken, 20);
    must_refuse(xac_standby_turn(p.s, &line), XAC_EDAMAGED); /* not back */
    pump_close(&p);
    must_eq(judge(COPY), 30);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("standby");
    TCase *t = env_tcase_with(s, "standby", 300, setup);

    env_in_memory();
    tcase_add_loop_test(t, each_state_is_one_of_the_source, 0, 2);
    tcase_add_test(t, generations_and_sizes_are_followed);
    tcase_add_loop_test(t, killed_at_any_call_it_goes_on, 0, 2);
    tcase_add_test(t, killed_at_each_call_once);
    tcase_add_loop_test(t, failed_calls_lose_nothing, 0, 4);
    tcase_add_test(t, blocks_that_do_not_belong_there_are_refused);
    tcase_add_test(t, only_what_is_synced_is_durable);
    tcase_add_test(t, data_files_are_checked);
    tcase_add_test(t, others_are_kept_out);
    tcase_add_test(t, parted_generations_are_refused);
    return env_main(s);
}
