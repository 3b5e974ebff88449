/* SPDX-License-Identifier: MIT */
/*
 * check_query.c -- programs query a standby while xship receive redoes.
 *
 * GOAL    Each query sees one state of the source, whole, and none older than the query before: while log comes,
 *         while restart points write the files, over kill -9 of receivers and readers, and over generations.  A
 *         program that wants to write is refused with words.
 * METHOD  The source moves money between the pages of a file, and counts: the sum of all pages stays, the counts of
 *         the pages are twice that of the transactions.  Readers on the standby, which the tools of the build
 *         keep, add up and compare.  XAC_READS=n reads of pages, by all readers together.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <string.h>
#include <sys/stat.h>

#include "tests/unit/tools/query_env.h"
#include "log/master.h"

/* ---- Prefixes ----------------------------------------------------------------------------- */

START_TEST(readers_see_prefixes_only)
{
    pid_t writer, send, reader[READERS];

    write_n(10);
    board->wanted = env_number("XAC_READS", 300000);
    board->least = 100; /* so all have seen redo */
    send = start_send("-q", COPY, "log");
    writer = proc_spawn(write_on, NULL);
    for (size_t i = 0; i < READERS; i++)
        reader[i] = proc_spawn(read_on, (void *)(uintptr_t)i);
    for (size_t i = 0; i < READERS; i++)
        proc_join(reader[i]);
    must_eq(tool_run("xship", "send --through cat", COPY), 1);
    ck_says("is a standby of another environment");
    must_eq(tool_run("xbackup", COPY, "kept"), 1);
    ck_says("is a standby of another environment");
    must_eq(tool_run("xship", "promote", COPY), 4);
    ck_says("use it");
    word_store(&board->stop, 1);
    proc_join(writer);
    printf("%llu reads of pages, %llu transactions\n",
           (unsigned long long)word_load(&board->reads),
           (unsigned long long)word_load(&board->written));
    must_eq(end_send(send), 0);
}
END_TEST

/* ---- A long query --------------------------------------------------------------------------- */

/* redo_lsn -- of an environment or a standby, from its master record. */
static uint64_t
redo_lsn(const char *dir)
{
    struct xac_master_slot m;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0);
    must_ok(xac_master_read(fd, &m));
    (void)close(fd);
    return m.redo_lsn;
}

/* write_more -- so many transactions, and the standby shows them to reader 1. */
static void
write_more(uint64_t n)
{
    write_n(n);
    await_seen(1, word_load(&board->written));
}

START_TEST(a_long_query_keeps_its_state)
{
    pid_t send, held, reader, receiver;
    uint64_t k, redo;

    board->wanted = UINT64_MAX;
    write_n(200);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(read_on, (void *)1);
    await_seen(1, 200);
    held = proc_spawn(read_long, (void *)2);
    proc_await(&board->at[2], 2, 60);
    k = word_load(&board->seen[2]);
    redo = redo_lsn(COPY);
    board->n = 1000; /* twenty checkpoints, in this generation of the log */
    proc_run(write_on, NULL);
    await_seen(1, k + 1000);
    /* The files have been written as far as the query does not need what they hold. */
    must(redo_lsn(COPY) >= redo && redo_lsn(COPY) < redo_lsn(ENV_DIR));
    redo = redo_lsn(COPY);
    if (_i == 1) { /* the receiver dies; what it has done is found by a recovery */
        receiver = receiver_pid();
        must(receiver > 1);
        must_ok(kill(receiver, SIGKILL));
        must(WEXITSTATUS(proc_wait(send)) == 1);
        await_gone(receiver);
        must(judge() >= k);
        send = start_send("-q", COPY, "log");
    }
    word_store(&board->go[2], 1);
    proc_join(held);
    write_more(1);
    board->wanted = 0;
    proc_join(reader);
    must_eq(end_send(send), 0);
    must(redo_lsn(COPY) > redo);
    must_eq(judge(), word_load(&board->written));
}
END_TEST

/* ---- Deaths ------------------------------------------------------------------------------------ */

START_TEST(receivers_come_and_go)
{
    uint64_t seed = env_seed(), kills = env_number("XAC_KILLS", 12);
    pid_t writer, send, reader[2], receiver;

    board->wanted = UINT64_MAX;
    board->pause_us = 300;
    write_n(10);
    send = start_send("-q", COPY, "log");
    for (size_t i = 0; i < 2; i++)
        reader[i] = proc_spawn(read_on, (void *)(uintptr_t)i);
    await_seen(0, 10);
    await_seen(1, 10);
    writer = proc_spawn(write_on, NULL);
    for (uint64_t i = 0; i < kills; i++) {
        uint64_t seen = word_load(&board->seen[0]);

        await_seen(0, seen + 1 + rnd_below(&seed, 100));
        receiver = receiver_pid();
        must(receiver > 1);
        must_ok(kill(receiver, SIGKILL));
        must(WEXITSTATUS(proc_wait(send)) == 1);
        await_gone(receiver);
        send = start_send("-q", COPY, "log");
        for (int w = 0; w < 1000 && receiver_pid() == 0; w++)
            proc_sleep_us(10000);
    }
    word_store(&board->stop, 1);
    proc_join(writer);
    await_seen(0, word_load(&board->written));
    board->wanted = 0;
    for (size_t i = 0; i < 2; i++)
        proc_join(reader[i]);
    must_eq(end_send(send), 0);
    must_eq(judge(), word_load(&board->written));
}
END_TEST

START_TEST(readers_die)
{
    pid_t writer, send, held;

    board->wanted = UINT64_MAX;
    board->pause_us = 300;
    write_n(10);
    send = start_send("-q", COPY, "log");
    writer = proc_spawn(write_on, NULL);
    for (int i = 0; i < 6; i++) {
        word_store(&board->at[2], 0);
        held = proc_spawn(i % 2 == 0 ? read_long : read_on, (void *)2);
        if (i % 2 == 0)
            proc_await(&board->at[2], 2, 60);
        else
            await_seen(2, word_load(&board->written));
        proc_kill(held);
    }
    word_store(&board->stop, 1);
    proc_join(writer);
    held = proc_spawn(read_on, (void *)1);
    await_seen(1, word_load(&board->written));
    board->wanted = 0;
    proc_join(held);
    must_eq(end_send(send), 0);
    must_eq(judge(), word_load(&board->written));
}
END_TEST

/* ---- Generations ---------------------------------------------------------------------------- */

START_TEST(another_generation_waits_for_queries)
{
    pid_t send, held, reader;
    uint64_t before;

    board->wanted = UINT64_MAX;
    write_n(100);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(read_on, (void *)1);
    await_seen(1, 100);
    held = proc_spawn(read_long, (void *)2);
    proc_await(&board->at[2], 2, 60);
    before = word_load(&board->written);
    write_more(0); /* a generation of which nothing is missing in the files */
    write_n(300);  /* this one ends while the query sees what was before */
    write_n(20);
    await_seen(1, before + 300);
    proc_sleep_us(300000);
    must(word_load(&board->seen[1]) < word_load(&board->written));
    word_store(&board->go[2], 1);
    proc_join(held);
    await_seen(1, word_load(&board->written));
    board->wanted = 0;
    proc_join(reader);
    must_eq(end_send(send), 0);
    must_eq(judge(), word_load(&board->written));
}
END_TEST

/* ---- Files ------------------------------------------------------------------------------------ */

#define LATER "/later.db"

/* A file that refers to itself, and its last page. */
struct self {
    struct self *me;
    uint64_t n;
};

/* map_later -- ret its base, of so many pages. */
static struct self *
map_later(const char *dir, size_t n_pages)
{
    char path[64];
    void *p;

    (void)snprintf(path, sizeof path, "%s" LATER, dir);
    p = xMmap(path, n_pages * env_page());
    must(p != MAP_FAILED);
    return (struct self *)p;
}

/* write_later -- a child of the source: a file comes, and grows when the reader has seen it. */
static void
write_later(void *arg)
{
    struct self *s;

    (void)arg;
    env_attach(DURABLE, ACCOUNTS);
    s = map_later(ENV_DIR, 2);
    must_ok(xbegin());
    s->me = s;
    s->n = 1;
    must_rc(xend(), COMMITTED);
    must_ok(xCheckpoint());
    proc_await(&board->go[0], 1, 60);
    must_ok(xMunmap(ENV_DIR LATER));
    s = map_later(ENV_DIR, 9);
    must_ok(xbegin());
    s->n = 2;
    *env_cell((uint64_t *)s, 8) = 3;
    must_rc(xend(), COMMITTED);
    proc_await(&board->go[0], 2, 60);
    env_detach();
}

/* await_n -- until the file has been changed so often; ret the last page's word, of n_pages. */
static uint64_t
await_n(const struct self *s, uint64_t n, size_t n_pages)
{
    uint64_t seen = 0, last = 0;

    for (int i = 0; i < 3000 && seen < n; i++) {
        must_ok(xbeginQuery());
        seen = s->n;
        must(seen == 0 || s->me == s); /* it lies where it lay at the source */
        last = *env_cell((uint64_t *)(uintptr_t)s, n_pages - 1);
        must_ok(xendQuery());
        proc_sleep_us(2000);
    }
    must_eq(seen, n);
    return last;
}

/* await_length -- until the standby's file has so many pages. */
static void
await_length(off_t n_pages)
{
    struct stat st = {.st_size = 0};

    for (int i = 0; i < 3000 && st.st_size < n_pages * (off_t)env_page(); i++) {
        proc_sleep_us(2000);
        if (stat(COPY LATER, &st) != 0)
            st.st_size = 0;
    }
    must(st.st_size >= n_pages * (off_t)env_page());
}

/* read_later -- a child of the standby. */
static void
read_later(void *arg)
{
    struct self *s;

    (void)arg;
    (void)attach();
    await_length(2);
    s = map_later(COPY, 2);
    (void)await_n(s, 1, 2);
    must(xMmap(COPY LATER, 99 * env_page())
         == MAP_FAILED); /* nobody makes it longer here */
    must(xMmap(COPY "/new", env_page()) == MAP_FAILED);
    word_store(&board->go[0], 1);
    await_length(9);
    must_ok(xMunmap(COPY LATER));
    s = map_later(COPY, 9);
    must_eq(await_n(s, 2, 9), 3);
    word_store(&board->go[0], 2);
    must_ok(xShutdown());
}

START_TEST(files_come_and_grow)
{
    pid_t send, writer, reader;

    write_n(10);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(read_later, NULL);
    writer = proc_spawn(write_later, NULL);
    proc_join(reader);
    proc_join(writer);
    must_eq(end_send(send), 0);
    /* It has not been made longer, and no other one has come. */
    must(!file_exists(COPY "/new"));
    must_eq(judge(), 10);
    must_eq(file_u64("judged" LATER, 8 * env_page()), 3);
    must_ok(xInit(COPY, XAC_READONLY)); /* what its log has, on copies */
    must_eq(await_n(map_later(COPY, 9), 2, 9), 3);
    must_ok(xShutdown());
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("query");
    TCase *t = env_tcase_with(s, "query", 300, setup);

    env_in_memory();
    tcase_add_test(t, readers_see_prefixes_only);
    tcase_add_loop_test(t, a_long_query_keeps_its_state, 0, 2);
    tcase_add_test(t, receivers_come_and_go);
    tcase_add_test(t, readers_die);
    tcase_add_test(t, another_generation_waits_for_queries);
    tcase_add_test(t, files_come_and_grow);
    return env_main(s);
}
