/* SPDX-License-Identifier: MIT */
/*
 * check_slots.c -- slots of followers (libxac/log/slots.h, libxac/checkpoint/hold.h).
 *
 * GOAL    What a slot holds back is there when its follower comes, data files too, whatever checkpoints,
 *         crashes and new generations there were; what it does not hold back any more is used again.
 *         One that holds back too much is given up, whatever comes later, and its follower is told so.
 * METHOD  Writers with small segments that are used again; the follower redoes in memory what it is
 *         given, and that must be the mapped file.  kill -9 at each system call of making a slot.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "follow_env.h"
#include "tests/common/sysfault.h"
#include "checkpoint/hold.h"
#include "log/slots.h"

#define FILE_NAME ENV_DIR "/" XAC_SLOTS_NAME

/* What a child is to do with a slot. */
struct order {
    const char *name;
    int rc; /* that it must give                                                      */
    bool drop;
};

static uint64_t keep_bytes;
static uint64_t n_fault; /* system call at which the child is killed; 0: none          */

static struct xac_env *
open_env(void)
{
    struct xac_options o;
    struct xac_env *env;

    xac_options_init(&o, sizeof o);
    o.value[XAC_OPT_LOG_SEGMENT_BYTES] = board->segment_bytes;
    env = xac_open(ENV_DIR, &o);
    if (env == NULL)
        env_fail(__FILE__, __LINE__, "xac_open: %s", xac_last_error());
    return env;
}

/* obey -- in a child: make or remove a slot. */
static void
obey(void *arg)
{
    const struct order *o = (const struct order *)arg;
    struct xac_env *env = open_env();
    uint64_t lsn = 0;

    if (n_fault != 0)
        sysfault_arm(SYSFAULT_DIE, SYSFAULT_EVERY, n_fault, 0);
    must_rc(o->drop ? xac_hold_drop(env, o->name) : xac_hold_make(env, o->name, &lsn),
            o->rc);
    sysfault_disarm();
    word_store(&board->lsn, lsn);
    must_ok(xac_close(env));
}

static void
order(bool drop, const char *name, int rc)
{
    struct order o = {.name = name, .rc = rc, .drop = drop};

    proc_run(obey, &o);
}

/* write_much -- a child: n commits, some large, with checkpoints, so that segments are used again. */
static void
write_much(void *arg)
{
    uint64_t seed = board->seed, *x;

    (void)arg;
    if (keep_bytes != 0)
        must_ok(xSetOption(XAC_OPT_LOG_KEEP_BYTES, keep_bytes));
    x = attach();
    for (uint64_t i = 0; i < board->n; i++) {
        (void)change(x, &seed, board->large && i % 20 == 0 ? 2 * PAGES : 3);
        if (i % 15 == 14)
            must_ok(xCheckpoint());
    }
    env_detach();
}

static void
write_round(uint64_t round)
{
    board->seed = env_seed() + round;
    proc_run(write_much, NULL);
}

/* slot_setup -- an environment with a file, and a slot from its first block on. */
static void
slot_setup(void)
{
    setup();
    keep_bytes = 0;
    n_fault = 0;
    board->kept = false;
    board->large = true;
    board->n = 150;
    order(false, "one", 0);
}

/* hold -- follow with a slot, from its position. */
static void
hold(struct xac_source *s, const char *name, uint32_t generation)
{
    uint64_t lsn;

    must_ok(xac_source_open(s, ENV_DIR));
    must_ok(xac_source_hold(s, name, &lsn));
    must_ok(xac_source_seek(s, generation, lsn, 0));
}

/* must_be_mark -- the slot in the file stands at an XCHECKPT_BEGIN, or at the start of the last
   generation. */
static void
must_be_mark(const char *name)
{
    struct xac_source s;
    struct xac_followed got;
    struct xac_lineage l;
    const struct xac_lineage_line *line;
    uint64_t lsn;

    must_ok(xac_source_open(&s, ENV_DIR));
    must_ok(xac_source_hold(&s, name, &lsn));
    must_ok(xac_lineage_read(s.dirfd, s.master.generation, &l));
    line = xac_lineage_of(&l, s.master.generation);
    must(line != NULL);
    if (lsn < line->start_lsn)
        line = xac_lineage_of(&l, line->previous);
    must(line != NULL && lsn >= line->start_lsn);
    must_ok(xac_source_seek(&s, line->generation, lsn, 0));
    must_ok(xac_source_next(&s, &got));
    must(got.blk != NULL);
    must(lsn == line->start_lsn
         || xac_record_next(got.blk, NULL)->type == XAC_XCHECKPT_BEGIN);
    xac_source_close(&s);
}

/* ---- Holding back ------------------------------------------------------------------------ */

/* The log of several generations is there for a follower that comes late, with its data files. */
START_TEST(slot_holds_log_back_until_it_moves)
{
    uint64_t lsn = word_load(&board->lsn);
    struct xac_source s;
    struct image im;
    size_t segments;

    image_init(&im);
    for (uint64_t round = 0; round < 3; round++)
        write_round(round);
    segments = file_count(ENV_DIR, "xac-log.");
    must(segments > 20 && file_count(ENV_DIR, "xac-data.") > 5);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_ok(xac_source_hold(&s, "one", &lsn));
    must_ok(xac_source_seek(&s, 2, lsn, 0));
    (void)drain(&s, &im);
    must_be_file(&im);
    must_eq(im.commits, word_load(&board->acknowledged));
    must(im.datafiles > 5);
    xac_source_keep(&s, s.follow.lsn);
    /* Nobody was attached: it moves with the next region, in which the follower finds it. */
    board->n = 400;
    {
        pid_t pid = proc_spawn(write_much, NULL);

        while (waitpid(pid, NULL, WNOHANG) != pid) {
            (void)drain(&s, &im);
            xac_source_keep(&s, s.follow.lsn);
            xac_source_wait(&s, 20);
        }
    }
    (void)drain(&s, &im);
    must_be_file(&im);
    must(file_count(ENV_DIR, "xac-log.") <= segments);
    must(!file_exists(ENV_DIR "/xac-log.00000001"));
    must(file_count(ENV_DIR, "xac-data.") < im.datafiles / 2);
    must_be_mark("one");
    must_eq(im.commits, word_load(&board->acknowledged));
    xac_source_close(&s);
    free(im.page);
}
END_TEST

static void
write_and_die(void *arg)
{
    uint64_t seed = board->seed, *x = attach();

    (void)arg;
    for (uint64_t i = 0; i < 100; i++) {
        (void)change(x, &seed, i % 20 == 0 ? 2 * PAGES : 3);
        if (i % 15 == 14)
            must_ok(xCheckpoint());
    }
    (void)raise(SIGKILL);
}

/* Crashes: the next region takes the slot from the file. */
START_TEST(slot_survives_crashes)
{
    struct xac_source s;
    struct image im;

    image_init(&im);
    for (uint64_t round = 0; round < 4; round++) {
        board->seed = env_seed() + round;
        (void)proc_wait(proc_spawn(write_and_die, NULL));
    }
    proc_run(write_much, NULL);
    hold(&s, "one", 2);
    (void)drain(&s, &im);
    must_be_file(&im);
    must_eq(im.commits, word_load(&board->acknowledged));
    xac_source_close(&s);
    free(im.page);
}
END_TEST

/* Segments of another size do not make a slot of an older generation hold back less: their numbers are
   larger or smaller for the same position. */
START_TEST(slot_holds_segments_of_another_size)
{
    struct xac_master_slot m;
    struct xac_source s;
    struct image im;
    uint64_t lsn, before;

    board->segment_bytes = (_i == 0 ? 256 : 64) * KIB;
    write_round(0);
    order(true, "one", 0);
    order(false, "one", 0);
    image_init(&im);
    file_read(ENV_FILE, 0, im.page, PAGES * env_page());
    must_ok(xac_source_open(&s, ENV_DIR));
    m = s.master;
    before = word_load(&board->acknowledged);
    /* So many segments that a number of the other size for the slot's position is one of them. */
    for (uint64_t round = 1; round < 9; round++) {
        if (round > 6)
            board->segment_bytes = ((round % 2 == 0) == (_i == 0) ? 256 : 64) * KIB;
        write_round(round);
    }
    must_ok(xac_source_hold(&s, "one", &lsn));
    must(lsn > 256 * KIB);
    must_ok(xac_source_seek(&s, m.generation, lsn, m.segment_bytes));
    (void)drain(&s, &im);
    must_be_file(&im);
    must_eq(im.commits, word_load(&board->acknowledged) - before);
    xac_source_close(&s);
    free(im.page);
}
END_TEST

static void
archive(void *arg)
{
    char **names;
    size_t n;

    (void)arg;
    (void)attach();
    must_ok(xArchive(&names, &n));
    must_eq(n, 0);
    free(names);
    env_detach();
}

/* xArchive() names nothing that a slot holds back. */
START_TEST(slot_holds_log_back_from_archives)
{
    board->kept = true;
    write_round(0);
    write_round(1);
    proc_run(archive, NULL);
}
END_TEST

/* ---- Too far behind ------------------------------------------------------------------------ */

START_TEST(slot_that_holds_back_too_much_is_lost)
{
    struct xac_source s;
    struct xac_followed got;
    uint64_t lsn;

    write_round(0);
    must(file_count(ENV_DIR, "xac-log.") > 10);
    hold(&s, "one", 2);
    must_ok(xac_source_next(&s, &got));
    keep_bytes = 256 * KIB;
    write_round(1);
    must(file_count(ENV_DIR, "xac-log.") < 20); /* as if there were none */
    must_eq(system("grep -q '^lost one$' " FILE_NAME), 0);
    for (int i = 0; i < 2; i++) {
        int rc = 0;

        for (int k = 0; rc == 0 && k < 100000; k++)
            rc = xac_source_next(&s, &got);
        must_rc(rc, XAC_ECUTOFF);
        must(strstr(xac_last_error(), "begins at LSN") != NULL);
    }
    xac_source_close(&s);
    keep_bytes = UINT64_MAX; /* also if there is room again, and in another region */
    write_round(2);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_refuse(xac_source_hold(&s, "one", &lsn), XAC_ECUTOFF);
    must(strstr(xac_last_error(), "XAC_OPT_LOG_KEEP_BYTES") != NULL);
    must(strstr(xac_last_error(), "begins at LSN") != NULL);
    xac_source_close(&s);
    order(false, "one", EEXIST);
    order(true, "one", 0);
    order(false, "one", 0);
}
END_TEST

static void
write_until_told(void *arg)
{
    uint64_t seed = board->seed, *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_KEEP_BYTES, keep_bytes));
    x = attach();
    word_store(&board->at, 1);
    while (word_load(&board->go) == 0) {
        (void)change(x, &seed, 3);
        if (rnd_below(&seed, 20) == 0)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* A follower that waits is woken when its slot is lost, or removed. */
START_TEST(loss_is_told_to_a_follower_that_is_attached)
{
    struct xac_source s;
    struct xac_followed got;
    pid_t pid;
    int rc = 0;

    keep_bytes = 512 * KIB;
    board->large = false;
    pid = proc_spawn(write_until_told, NULL);
    proc_await(&board->at, 1, 20);
    hold(&s, "one", 2);
    for (int i = 0; rc == 0 && i < 100000; i++) {
        rc = xac_source_next(&s, &got);
        if (_i == 0)
            proc_sleep_us(2000); /* too slow */
        if (_i == 1 && i == 50)
            order(true, "one", 0);
        if (rc == 0 && got.blk == NULL)
            xac_source_wait(&s, 20);
    }
    must_rc(rc, XAC_ECUTOFF);
    must(strstr(xac_last_error(), _i == 0 ? "begins at LSN" : "removed") != NULL);
    word_store(&board->go, 1);
    proc_join(pid);
    xac_source_close(&s);
}
END_TEST

/* ---- Names, numbers, and the file ------------------------------------------------------------ */

static void
fill_up(void *arg)
{
    struct xac_env *env = open_env();
    char name[XAC_SLOT_NAME_BYTES];
    uint64_t lsn;

    (void)arg;
    for (int i = 1; i < XAC_LOG_SLOTS; i++) {
        (void)snprintf(name, sizeof name, "a-name_of.many-characters_which-is-long-%d",
                       i);
        must_ok(xac_hold_make(env, name, &lsn));
    }
    must_refuse(xac_hold_make(env, "x", &lsn), ENOSPC);
    must_ok(xac_hold_drop(env, "one"));
    must_ok(xac_hold_make(env, "x", &lsn));
    must_ok(xac_close(env));
}

START_TEST(names_and_numbers_are_checked)
{
    order(false, "one", EEXIST);
    order(false, "", EINVAL);
    order(false, "a b", EINVAL);
    order(false, "a/b", EINVAL);
    order(false, "012345678901234567890123456789012345678901234567", EINVAL);
    order(true, "two", ENOENT);
    order(true, "", ENOENT);
    proc_run(fill_up, NULL);
    proc_run(write_much, NULL); /* all of them are read and written */
    order(false, "y", ENOSPC);
}
END_TEST

static void
not_opened(void *arg)
{
    (void)arg;
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EDAMAGED);
    must(strstr(xac_last_error(), XAC_SLOTS_NAME) != NULL);
}

START_TEST(damaged_file_is_refused)
{
    static const char *const texts[] = {
        "",
        "xac-slots 2\nend\n",
        "xac-slots 1\n",
        "xac-slots 1\n4096 one\n",
        "xac-slots 1\n4096\nend\n",
        "xac-slots 1\n4097 one\nend\n",
        "xac-slots 1\n-8 one\nend\n",
        "xac-slots 1\n0 one\nend\n",
        "xac-slots 1\n99999999999999999999999 one\nend\n",
        "xac-slots 1\n4096 o ne\nend\n",
        "xac-slots 1\n4096 one\n4096 one\nend\n",
        "xac-slots 1\nend\nmore\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        must_ok(unlink(FILE_NAME));
        file_write(FILE_NAME, 0, texts[i], strlen(texts[i]));
        proc_run(not_opened, NULL);
    }
    must_ok(unlink(FILE_NAME));
    proc_run(write_much, NULL);
}
END_TEST

/* Killed at each system call of making a slot: it is there or not, and the file is whole. */
START_TEST(slot_is_made_or_not_whenever_its_maker_dies)
{
    struct order o = {.name = "two"};
    bool dies = true;
    uint64_t there = 0, n;

    for (n = 1; dies && n < 200; n++) {
        struct xac_log_followers f = {.wakes = 0};
        int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY);

        n_fault = n;
        dies = proc_wait(proc_spawn(obey, &o)) != 0;
        n_fault = 0;
        must_ok(xac_slots_read(fd, &f));
        close(fd);
        must(xac_slots_find(&f, "one") != NULL);
        if (xac_slots_find(&f, "two") != NULL) {
            there++;
            order(true, "two", 0);
        }
    }
    printf("killed at %llu calls, made by %llu\n", (unsigned long long)n,
           (unsigned long long)there);
    must(n > 5 && n < 200 && there > 0);
}
END_TEST

static void
make_and_die(void *arg)
{
    struct xac_env *env = open_env();
    uint64_t lsn;

    (void)arg;
    must_ok(xac_hold_make(env, "two", &lsn));
    (void)raise(SIGKILL);
}

START_TEST(slot_is_in_the_file_when_its_maker_is_told)
{
    struct xac_log_followers f = {.wakes = 0};
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY);

    (void)proc_wait(proc_spawn(make_and_die, NULL));
    must_ok(xac_slots_read(fd, &f));
    must(xac_slots_find(&f, "two") != NULL);
    close(fd);
}
END_TEST

/* Shared memory that a program has damaged does not get into the file. */
START_TEST(damaged_slot_is_not_written)
{
    struct xac_log_followers f = {.wakes = 0}, back = {.wakes = 0};
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    must_ok(xac_slots_add(&f, "a", 8192));
    must_ok(xac_slots_add(&f, "b", 8192));
    must_ok(xac_slots_add(&f, "c", XAC_SLOT_LOST));
    must_ok(xac_slots_add(&f, "d", 8192));
    f.slot[0].name[0] = '\n';
    f.slot[1].word = 16;
    f.slot[3].word = UINT64_MAX;
    must(!xac_slot_is_sound(&f.slot[0]) && !xac_slot_is_sound(&f.slot[1]));
    must(xac_slot_is_sound(&f.slot[2]) && !xac_slot_is_sound(&f.slot[3]));
    must_ok(xac_slots_write(fd, &f));
    must_ok(xac_slots_read(fd, &back));
    must(xac_slots_find(&back, "c") == &back.slot[0]);
    must_eq(xac_slot_lsn(xac_slot_load(&back.slot[1])), XAC_SLOT_FREE);
    close(fd);
}
END_TEST

/* A region with such a slot is refused to those who come. */
static void
join_damaged(void *arg)
{
    (void)arg;
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EDAMAGED);
    must(strstr(xac_last_error(), "slot of a follower") != NULL);
}

START_TEST(region_with_a_damaged_slot_is_refused)
{
    struct xac_source s;
    pid_t pid;

    board->n = 10;
    keep_bytes = UINT64_MAX;
    pid = proc_spawn(write_until_told, NULL);
    proc_await(&board->at, 1, 20);
    hold(&s, "one", 2);
    s.followers->slot[7].word = 24;
    proc_run(join_damaged, NULL);
    s.followers->slot[7].word = 0;
    word_store(&board->go, 1);
    proc_join(pid);
    xac_source_close(&s);
}
END_TEST

/* ---- Moving against losing --------------------------------------------------------------------- */

static struct xac_log_followers race;
static _Atomic uint64_t stop;

static void *
lose_main(void *arg)
{
    (void)arg;
    while (word_load(&stop) == 0)
        (void)xac_slots_lose(&race, xac_slot_lsn(xac_slot_load(&race.slot[0])) + 8);
    return NULL;
}

/* One of the two wins: a slot that has been lost is not moved. */
START_TEST(lost_slot_is_not_moved)
{
    pthread_t thread;
    uint64_t lost = 0, moved = 0;

    must_ok(pthread_create(&thread, NULL, lose_main, NULL));
    for (int i = 0; i < 20000; i++) {
        uint64_t lsn = XAC_LSN_FIRST, word;

        must_ok(xac_slots_add(&race, "a", lsn));
        word = xac_slot_load(&race.slot[0]);
        while (xac_slot_lsn(word) != XAC_SLOT_LOST) {
            lsn += 8;
            word = xac_slot_move(&race.slot[0], word, lsn);
            moved++;
        }
        must_eq(xac_slot_lsn(xac_slot_load(&race.slot[0])), XAC_SLOT_LOST);
        must_ok(xac_slots_remove(&race, "a"));
        lost++;
        must_eq(xac_slot_lsn(
                    xac_slot_move(&race.slot[0], word - XAC_SLOT_LOST + 4096, 8192)),
                XAC_SLOT_FREE);
    }
    word_store(&stop, 1);
    must_ok(pthread_join(thread, NULL));
    must(lost == 20000 && moved >= lost);
}
END_TEST

static Suite *
slots_suite(void)
{
    Suite *s = suite_create("slots");
    TCase *t = env_tcase_with(s, "hold", 200, slot_setup);

    tcase_add_test(t, slot_holds_log_back_until_it_moves);
    tcase_add_test(t, slot_survives_crashes);
    tcase_add_loop_test(t, slot_holds_segments_of_another_size, 0, 2);
    tcase_add_test(t, slot_holds_log_back_from_archives);
    t = env_tcase_with(s, "lost", 200, slot_setup);
    tcase_add_test(t, slot_that_holds_back_too_much_is_lost);
    tcase_add_loop_test(t, loss_is_told_to_a_follower_that_is_attached, 0, 2);
    tcase_add_test(t, lost_slot_is_not_moved);
    t = env_tcase_with(s, "file", 200, slot_setup);
    tcase_add_test(t, names_and_numbers_are_checked);
    tcase_add_test(t, damaged_file_is_refused);
    tcase_add_test(t, damaged_slot_is_not_written);
    tcase_add_test(t, region_with_a_damaged_slot_is_refused);
    tcase_add_test(t, slot_is_made_or_not_whenever_its_maker_dies);
    tcase_add_test(t, slot_is_in_the_file_when_its_maker_is_told);
    return s;
}

int
main(void)
{
    return env_main(slots_suite());
}
