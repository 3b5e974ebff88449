/* SPDX-License-Identifier: MIT */
/*
 * check_standby.c -- a copy that takes the log of its source and redoes it (libxac/recovery/standby.h,
 * libxac/log/replica.h).
 *
 * GOAL    At each moment a recovery of the standby gives a state that the source has had, at or behind what
 *         has been acknowledged: while it follows, after kill -9 at any system call, after any of them
 *         has failed, across generations and segments of another size.  Nothing is redone twice or left out.
 *         Its log does not grow for ever.  A block that does not belong there is refused.  How far its log is synced
 *         is its own: damage before that is named, and what a crash has torn behind it is not.
 * METHOD  One writer, whose k-th transaction is known, with large ones, checkpoints and small segments.  A
 *         pump moves blocks from the source to the standby in one process.  A judge recovers a copy of the
 *         standby's directory and compares each page with the model.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "standby_pump.h"
#include "tests/common/sysfault.h"
#include "base/lockfile.h"
#include "log/backup_note.h"
#include "log/log_name.h"
#include "log/master.h"
#include "log/received.h"

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

/* hold_gate -- a child: as a program does that looks, for so many milliseconds. */
static void
hold_gate(void *arg)
{
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC), gate = xac_lockfile_open(fd);

    must(gate >= 0);
    must_ok(xac_gate_enter(gate));
    word_store(&board->at, 1);
    proc_sleep_us((uint64_t)(uintptr_t)arg * 1000);
}

START_TEST(a_gate_that_is_held_for_a_moment_is_waited_for)
{
    struct pump p;
    double begun;
    pid_t pid;

    make_copy(10, 10);
    pid = proc_spawn(hold_gate, (void *)400);
    proc_await(&board->at, 1, 20);
    must_ok(pump_open(&p));
    pump_close(&p);
    proc_join(pid);
    word_store(&board->at, 0);
    pid = proc_spawn(hold_gate, (void *)60000);
    proc_await(&board->at, 1, 20);
    begun = env_now();
    must_refuse(pump_open(&p), XAC_ELIVE);
    must(env_now() - begun < 20);
    proc_kill(pid);
}
END_TEST

/* ---- The mark ------------------------------------------------------------------------ */

/* take_some -- so many blocks, and not a sync of them; *durablep: the largest that they carry. */
static void
take_some(struct pump *p, uint64_t n, uint64_t *durablep)
{
    struct xac_followed got;

    for (uint64_t i = 0; i < n; i++) {
        must_ok(xac_source_next(&p->source, &got));
        must(got.blk != NULL);
        must_ok(xac_standby_take(p->s, got.blk, got.blk->length));
        *durablep = got.blk->durable;
    }
}

START_TEST(catching_up_it_syncs_once_for_many_commits)
{
    struct xac_standby_place place;
    uint64_t durable = 0;
    struct pump p;

    board->large_every = board->checkpoint_every = 0;
    make_copy(10, 250);
    must_ok(pump_open(&p));
    xac_standby_where(p.s, &place);
    take_some(&p, 100, &durable);
    must(durable > place.durable); /* the mark counts now */
    sysfault_arm(SYSFAULT_COUNT, SYSFAULT_SYNCS, 0, 0);
    take_some(&p, 100, &durable);
    must(sysfault_count() < 10); /* of segments that are left, and made */
    sysfault_disarm();
    xac_standby_where(p.s, &place);
    must(durable > place.durable);
    must_ok(xac_standby_sync(p.s));
    pump_close(&p);
    must_eq(judge(COPY), 210);
}
END_TEST

/* place_of -- of an LSN: the segment, and the offset in it. */
static uint64_t
place_of(uint64_t lsn, char path[64])
{
    (void)snprintf(path, 64, COPY "/");
    xac_log_segment_name(path + strlen(path),
                         xac_log_segment_of(lsn, board->segment_bytes));
    return XAC_SEGMENT_HEADER + (lsn & (board->segment_bytes - 1));
}

/* must_be_damage -- a block of the log is broken, and named; then as it was. */
static void
must_be_damage(uint64_t lsn)
{
    struct xac_recover_options look = {.dry_run = true};
    struct xac_recover_report rep;
    uint8_t byte, other;
    uint64_t offset;
    char path[64];
    struct pump p;
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    offset = place_of(lsn, path);
    file_read(path, offset + 33, &byte, 1);
    other = byte ^ 4;
    file_write(path, offset + 33, &other, 1);
    must_refuse(xac_recover_dir(fd, &look, &rep, NULL), XAC_EDAMAGED);
    must(rep.damaged);
    must_eq(rep.damage_offset, offset);
    must(strcmp(path + sizeof COPY, rep.damage_file) == 0);
    must_refuse(pump_open(&p), XAC_EDAMAGED);
    file_write(path, offset + 33, &byte, 1);
    must_ok(xac_recover_dir(fd, &look, &rep, NULL));
    (void)close(fd);
}

/* look_at -- a child: a program that may only read sees so many transactions in the standby. */
static void
look_at(void *arg)
{
    const uint64_t *x;

    must_ok(xInit(COPY, XAC_READONLY));
    x = (const uint64_t *)xMmap(COPY IN_COPY, PAGES * env_page());
    must(x != (const uint64_t *)MAP_FAILED);
    must_eq(env_get(x), (uintptr_t)arg);
    must_ok(xShutdown());
}

START_TEST(damage_before_the_mark_is_named)
{
    struct xac_standby_place first, last;
    struct xac_received_mark mark;
    struct xac_master_slot master;
    uint64_t durable = 0, middle, offset;
    struct pump p;
    char path[64];

    board->large_every = board->checkpoint_every = 0;
    make_copy(10, 250);
    must_ok(pump_open(&p));
    xac_standby_where(p.s, &first);
    take_some(&p, 60, &durable);
    middle = p.s->log.end;
    take_some(&p, 60, &durable);
    must_ok(xac_standby_sync(p.s));
    xac_standby_where(p.s, &last);
    take_some(&p, 30, &durable); /* not synced, and so not before the mark */
    must_ok(xac_master_read(p.dirfd, &master));
    must_ok(xac_received_read(p.dirfd, &master, &mark));
    must(mark.counts);
    must_eq(mark.lsn, last.durable);
    pump_close(&p);
    must_be_damage(first.durable);
    must_be_damage(middle);
    must_eq(judge(COPY), 160);
    /* Behind it a place without a block is where a crash has torn the log. */
    offset = place_of(last.durable, path);
    file_write(path, offset + 33, "torn", 4);
    must_eq(judge(COPY), 130);
    proc_run(look_at, (void *)130);
    must_eq(follow_on(), 130);
    must_eq(judge(COPY), 260);
}
END_TEST

START_TEST(a_standby_without_a_mark_goes_on)
{
    uint64_t taken = 0;
    struct pump p;

    make_copy(10, 60);
    must_ok(pump_open(&p));
    must_ok(pump(&p, 20, &taken));
    must_ok(xac_standby_rest(p.s));
    pump_close(&p);
    /* As an earlier version leaves it: all that a block says to be synced is. */
    must_ok(unlink(COPY "/xac.received"));
    must_eq(judge(COPY), 10 + taken);
    (void)follow_on();
    must(file_exists(COPY "/xac.received"));
    must_eq(judge(COPY), 70);
    /* One that cannot be read is named. */
    file_write(COPY "/xac.received", 16, "nonsense", 8);
    file_write(COPY "/xac.received", 4096 + 16, "nonsense", 8);
    must_refuse(pump_open(&p), XAC_EDAMAGED);
    must(strstr(xac_err_text(), "xac.received") != NULL);
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
    tcase_add_test(t, a_gate_that_is_held_for_a_moment_is_waited_for);
    tcase_add_test(t, catching_up_it_syncs_once_for_many_commits);
    tcase_add_test(t, damage_before_the_mark_is_named);
    tcase_add_test(t, a_standby_without_a_mark_goes_on);
    tcase_add_test(t, parted_generations_are_refused);
    return env_main(s);
}
