/* SPDX-License-Identifier: MIT */
/*
 * check_crash.c -- a space killed under load (SIGKILL), again and again: what was committed is
 * there, the trees are whole, and no reference to a frame is in any file.
 *
 * Two threads insert, delete and update keys of their own.  Each tells, in shared memory, the
 * operation it is about to do and, after swz_commit(), that it has been done: so at most one
 * operation of each is open when the process dies.
 */
#include <config.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "swz.h"

#define N_KEYS    2000u
#define N_WRITERS 2u

struct board {
    _Atomic uint64_t n_done;
    struct {
        unsigned char is_there[N_KEYS];
        _Atomic uint64_t open; /* key + 1 of an operation that may or may not be done */
        _Atomic uint64_t round;
    } writers[N_WRITERS];
};

static struct board *board;
static struct swz_space *space;

static struct swz_config
config_of(uint32_t n_frames)
{
    return (struct swz_config){.n_pages = 1 << 14,
                               .n_frames = n_frames,
                               .n_threads = N_WRITERS + 1,
                               .page_bytes = 2048,
                               .has_log = true};
}

static void
write_main(unsigned number)
{
    uint64_t seed =
        env_seed() + number + 1000 * atomic_fetch_add(&board->writers[number].round, 1);
    struct swz_thread *th;

    must_ok(swz_join(space, &th));
    for (;;) {
        uint64_t r = mix(&seed), which = r % N_KEYS, key = which * N_WRITERS + number;
        bool add = (r >> 40) % 2 == 0;

        atomic_store(&board->writers[number].open, which + 1);
        if (add)
            must_ok(put(th, 0, key));
        else
            (void)take(th, 0, key);
        must_ok(swz_commit(th));
        board->writers[number].is_there[which] = add;
        atomic_store(&board->writers[number].open, 0);
        atomic_fetch_add(&board->n_done, 1);
        if (r >> 52 == 0)
            must_ok(swz_checkpoint(space));
    }
}

static void
child_main(void *arg)
{
    struct swz_config config = config_of(*(uint32_t *)arg);
    struct swz_thread *th;
    int rc;

    must_ok(swz_open(".", &config, &space));
    must_ok(swz_join(space, &th));
    rc = swz_tree_create(th, 0, 200, 16);
    must(rc == 0 || rc == EEXIST);
    swz_leave(th);
    crew_run(N_WRITERS, write_main);
}

/* layout -- of the tree's pages. */
static const struct btree *
layout(void)
{
    static const struct btree_config config = {.key_size = 200,
                                               .value_size = 16,
                                               .block_size = 2048};
    static struct btree t;

    must_ok(btree_layout_set(&t, &config));
    return &t;
}

/* no_reference -- every reference of every node in the file is a page number; ret inner nodes. */
static uint64_t
no_reference(void)
{
    const struct btree *t = layout();
    uint32_t bytes[512];
    struct btree_node *node = (void *)bytes;
    int fd = open("pages", O_RDONLY);
    uint64_t n_inner = 0;

    must(fd >= 0);
    for (off_t at = 2048; pread(fd, bytes, sizeof bytes, at) == (ssize_t)sizeof bytes;
         at += 2048) {
        must((node->link & SWZ_TAG) == 0);
        for (unsigned i = 1;
             node->level > 0 && node->level != BTREE_LEVEL_FREE && i <= node->n; i++)
            must((child_at(t, node, i) & SWZ_TAG) == 0);
        n_inner += node->level > 0 && node->level != BTREE_LEVEL_FREE;
    }
    (void)close(fd);
    return n_inner;
}

/* log_plain -- no page image in the log has a reference either; ret records seen. */
static uint64_t
log_plain(void)
{
    const struct btree *t = layout();
    static uint32_t page[512];
    struct btree_node *node = (void *)page;
    struct swz_record r;
    off_t at = sizeof(struct swz_log_header);
    int fd = open("log", O_RDONLY);
    uint64_t n = 0;
    struct stat st;

    must(fd >= 0);
    must_eq(fstat(fd, &st), 0);
    while (pread(fd, &r, sizeof r, at) == (ssize_t)sizeof r && r.n_bytes >= sizeof r
           && at + r.n_bytes <= st.st_size) {
        off_t piece = at + (off_t)sizeof r, end = at + r.n_used;

        for (n++; piece < end;) {
            struct swz_piece p;

            must_eq(pread(fd, &p, sizeof p, piece), sizeof p);
            piece += (off_t)sizeof p;
            if (p.length == sizeof page
                && pread(fd, page, sizeof page, piece) == (ssize_t)sizeof page
                && node->level > 0 && node->level != BTREE_LEVEL_FREE)
                for (unsigned i = 0; i <= node->n; i++)
                    must((child_at(t, node, i) & SWZ_TAG) == 0);
            piece += p.length;
        }
        at += r.n_bytes;
    }
    (void)close(fd);
    return n;
}

/* settle -- the model takes over what became of the open operations; all else must be equal. */
static void
settle(void)
{
    struct swz_thread *th;

    must_ok(swz_join(space, &th));
    for (unsigned w = 0; w < N_WRITERS; w++)
        for (uint64_t which = 0; which < N_KEYS; which++) {
            int rc = get(th, 0, which * N_WRITERS + w);

            must(rc == 0 || rc == ENOENT);
            if (atomic_load(&board->writers[w].open) == which + 1)
                board->writers[w].is_there[which] = rc == 0;
            else
                must_rc(rc, board->writers[w].is_there[which] ? 0 : ENOENT);
        }
    swz_leave(th);
    for (unsigned w = 0; w < N_WRITERS; w++)
        atomic_store(&board->writers[w].open, 0);
}

/* C16: looked at as the dead one has left them, and after recovery. */
START_TEST(killed_spaces_recover)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 50);
    uint64_t n_inner = 0, n_records = 0;

    board = proc_shared(sizeof *board);
    for (uint64_t i = 0; i < rounds; i++) {
        uint32_t n_frames = mix(&seed) % 2 == 0 ? 48 : 2000;
        struct swz_config config = config_of(200);
        uint64_t done = atomic_load(&board->n_done);
        pid_t pid = proc_spawn(child_main, &n_frames);

        proc_await(&board->n_done, done + 50, 30);
        proc_sleep_us(mix(&seed) % 20000);
        proc_kill(pid);
        n_inner += no_reference();
        n_records += log_plain();
        must_ok(swz_open(".", &config, &space));
        must_be_whole(space);
        settle();
        must_ok(swz_close(space));
        n_inner += no_reference();
    }
    printf("%llu inner pages, %llu records of logs looked at\n",
           (unsigned long long)n_inner, (unsigned long long)n_records);
    must(n_inner > 10 * rounds && n_records > 50 * rounds);
}
END_TEST

/* A log cut anywhere is a shorter log; a page file of something else is refused. */
START_TEST(torn_logs_and_foreign_files)
{
    struct swz_config config = config_of(200);
    struct swz_thread *th;
    struct stat st;
    int fd;

    must_ok(swz_open(".", &config, &space));
    must_ok(swz_join(space, &th));
    must_ok(swz_tree_create(th, 0, 200, 16));
    for (uint64_t i = 0; i < 300; i++)
        must_ok(put(th, 0, i));
    must_ok(swz_sync(th));
    must_eq(stat("log", &st), 0);
    must(st.st_size > 10000);
    must_eq(link("log", "log.kept"), 0); /* closing begins a new one */
    must_eq(system("cp --sparse=always pages pages.kept"), 0);
    must_ok(swz_checkpoint(space));
    swz_leave(th);
    must_ok(swz_close(space));

    must_eq(rename("log.kept", "log"), 0);
    must_eq(rename("pages.kept", "pages"), 0);
    must_eq(truncate("log", st.st_size - 5), 0);
    must_ok(swz_open(".", &config, &space));
    must_ok(swz_join(space, &th));
    for (uint64_t i = 0; i < 299; i++)
        must_ok(get(th, 0, i));
    must_be_whole(space);
    swz_leave(th);
    must_ok(swz_close(space));

    fd = open("log", O_RDWR);
    must_eq(pwrite(fd, "not a log", 9, 0), 9);
    (void)close(fd);
    must_refuse(swz_open(".", &config, &space), EUCLEAN);
    must_eq(unlink("log"), 0);
    fd = open("pages", O_RDWR);
    must_eq(pwrite(fd, "not a space", 11, 0), 11);
    (void)close(fd);
    must_refuse(swz_open(".", &config, &space), EUCLEAN);
    must_refuse(swz_open("nowhere", &config, &space), ENOENT);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("swizzle crash");
    TCase *tc = env_tcase(s, "crash", 600);

    tcase_add_test(tc, killed_spaces_recover);
    tcase_add_test(tc, torn_logs_and_foreign_files);
    return env_main(s);
}
