/* SPDX-License-Identifier: MIT */
/*
 * check_connection.c -- both ends of a connection against a peer that does not keep to the protocol
 * (libxac/ship/receive.h, send.h, ship_copy.h).
 *
 * GOAL    A source that lies, or damages frames before it makes their checksums, cannot make the
 *         standby write outside of its directory, crash, or have a state that the source has not had.  A
 *         standby that lies cannot move its slot, or get log that does not fit.  Each is told why.
 * METHOD  One end runs in a child; the test plays the other one, frame by frame.  Random changes of bodies,
 *         from a seed that is printed; a judge recovers what the standby has.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "standby_env.h"
#include "log/backup_note.h"
#include "log/slots.h"
#include "ship/receive.h"
#include "ship/send.h"
#include "ship/source.h"
#include "ship/wire.h"

/* What the child's end says when it is over. */
struct outcome {
    int rc;
    char words[600];
};

static struct outcome *outcome;
static int child_fd;
static const char *child_dir;
static bool child_rewinds;

static void
setup_all(void)
{
    setup();
    outcome = (struct outcome *)proc_shared(sizeof *outcome);
    (void)signal(SIGPIPE, SIG_IGN);
}

static void
note_outcome(int rc)
{
    outcome->rc = rc;
    (void)snprintf(outcome->words, sizeof outcome->words, "%s", xac_err_text());
}

static void
run_receive(void *arg)
{
    struct xac_receive_options o = {.dir = child_dir,
                                    .in = child_fd,
                                    .out = child_fd,
                                    .rewinds = child_rewinds};
    struct xac_receive_report rep;

    (void)arg;
    note_outcome(xac_receive_run(&o, &rep));
}

static int
no_copy(void *arg, const char *slot, const char *to)
{
    (void)arg;
    (void)slot;
    (void)to;
    return xac_err(ENOSYS, "no copy in this test");
}

static int
no_hold(void *arg, const char *slot)
{
    (void)arg;
    (void)slot;
    return 0; /* the test has made it */
}

static void
run_send(void *arg)
{
    struct xac_send_options o = {.dir = ENV_DIR,
                                 .slot = "one",
                                 .in = child_fd,
                                 .out = child_fd,
                                 .copy = no_copy,
                                 .hold = no_hold};
    struct xac_send_report rep;

    (void)arg;
    note_outcome(xac_send_run(&o, &rep));
}

/* The test's end. */
struct peer {
    struct xac_wire w;
    int fd;
    pid_t pid;
};

static void
start(struct peer *p, void (*run)(void *), const char *dir)
{
    int end[2];

    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end));
    outcome->rc = 12345;
    child_fd = end[1];
    child_dir = dir;
    p->pid = proc_spawn(run, NULL);
    (void)close(end[1]);
    p->fd = end[0];
    must_ok(xac_wire_open(&p->w, p->fd, p->fd));
}

/* finish -- close the connection, wait for the child, which must not have crashed; ret what its end has
   returned. */
static int
finish(struct peer *p)
{
    (void)xac_wire_flush(&p->w);
    (void)shutdown(p->fd, SHUT_WR);
    proc_join(p->pid);
    (void)close(p->fd);
    xac_wire_close(&p->w);
    must(outcome->rc != 12345);
    return outcome->rc;
}

static void
put(struct peer *p, enum xac_wire_type type, const void *fixed, size_t n1,
    const void *bytes, size_t n2)
{
    (void)xac_wire_put(&p->w, type, fixed, n1, bytes, n2);
}

/* get -- the next frame of a type. */
static void
get(struct peer *p, enum xac_wire_type type, struct xac_wire_frame *f)
{
    must_ok(xac_wire_flush(&p->w));
    do {
        f->type = XAC_WIRE_NONE;
        must_ok(xac_wire_get(&p->w, 20000, f));
        must(f->type != XAC_WIRE_NONE);
    } while (f->type != type);
}

/* greet -- as a source. */
static void
greet(struct peer *p, const struct xac_wire_hello *hello)
{
    put(p, XAC_WIRE_HELLO, hello, sizeof *hello, NULL, 0);
}

static struct xac_wire_hello
right_hello(void)
{
    return (struct xac_wire_hello){.version = XAC_WIRE_VERSION,
                                   .page_size = (uint32_t)env_page(),
                                   .identity = {1, 2, 3}};
}

static void
put_file(struct peer *p, const char *path, size_t n, uint64_t length)
{
    struct xac_wire_file head = {.length = length};

    put(p, XAC_WIRE_FILE, &head, sizeof head, path, n);
}

static void
put_piece(struct peer *p, uint64_t offset, size_t n)
{
    static const uint8_t bytes[64] = {1};
    struct xac_wire_piece head = {.offset = offset};

    put(p, XAC_WIRE_PIECE, &head, sizeof head, bytes, n);
}

/* ---- Copies ----------------------------------------------------------------------------- */

START_TEST(paths_that_lead_out_are_refused)
{
    static const char *const bad[] = {"../evil",
                                      "/tmp/evil",
                                      "a/../../evil",
                                      "..",
                                      ".",
                                      "a//b",
                                      "a/./b",
                                      "a/",
                                      "xac.master",
                                      "xac.lock",
                                      "xac.unfinished",
                                      "xac.receiving",
                                      "xac.receiving-new"};

    for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
        struct xac_wire_hello hello = right_hello();
        struct peer p;

        start(&p, run_receive, "new");
        greet(&p, &hello);
        put_file(&p, "fine/one", 8, 8);
        if (i < sizeof bad / sizeof bad[0])
            put_file(&p, bad[i], strlen(bad[i]), 8);
        else
            put_file(&p, "a\0b", 3, 8);
        put_piece(&p, 0, 8);
        must_eq(finish(&p), XAC_EDAMAGED);
        must(strstr(outcome->words, "a path that no copy has") != NULL);
        must(!file_exists("evil") && !file_exists("/tmp/evil"));
        must(!file_exists("new/xac.master"));
    }
}
END_TEST

/* Wrong orders and places of frames of a copy. */
static void
play_wrong(struct peer *p, int i)
{
    struct xac_wire_log head = {.lsn = 4096};
    struct xac_wire_copied end;
    struct xac_wire_hello hello = right_hello();

    memset(&end, 0, sizeof end);
    if (i == 0)
        put_piece(p, 0, 8);
    put_file(p, "f", 1, i == 1 ? UINT64_MAX : 64);
    put_piece(p, 8, 8);
    if (i == 2)
        put_piece(p, 60, 8);
    if (i == 3)
        put_piece(p, 8, 8);
    if (i == 4)
        put_piece(p, UINT64_MAX - 4, 8);
    if (i == 5)
        put_file(p, "f", 1, 64);
    if (i == 6)
        put(p, XAC_WIRE_LOG, &head, sizeof head, &end, 64);
    if (i == 7)
        put(p, XAC_WIRE_HELLO, &hello, sizeof hello, NULL, 0);
    if (i == 8)
        put(p, XAC_WIRE_COPIED, &end, sizeof end, NULL, 0);
    if (i == 9)
        put(p, XAC_WIRE_END, NULL, 0, NULL, 0);
    if (i == 10)
        put_file(p, "f/g", 3, 64);
}

START_TEST(frames_of_a_copy_that_cannot_be)
{
    for (int i = 0; i <= 10; i++) {
        struct xac_wire_hello hello = right_hello();
        struct peer p;
        int rc;

        start(&p, run_receive, "new");
        greet(&p, &hello);
        play_wrong(&p, i);
        rc = finish(&p);
        must(i == 5    ? rc == EEXIST
             : i == 10 ? rc == ENOTDIR || rc == XAC_EUNTRUSTED
                       : rc == XAC_EDAMAGED);
        must(!file_exists("new/xac.master"));
    }
}
END_TEST

START_TEST(greetings_that_do_not_fit)
{
    for (int i = 0; i < 3; i++) {
        struct xac_wire_hello hello = right_hello();
        struct xac_wire_beat b = {.lsn = 1};
        struct peer p;

        hello.version += i == 0;
        hello.page_size *= i == 1 ? 2 : 1;
        start(&p, run_receive, "new");
        if (i < 2)
            greet(&p, &hello);
        else
            put(&p, XAC_WIRE_BEAT, &b, sizeof b, NULL, 0);
        must_eq(finish(&p), i == 0   ? XAC_EVERSION
                            : i == 1 ? XAC_EPAGESIZE
                                     : XAC_EDAMAGED);
    }
}
END_TEST

/* give_copy -- of the backup that was made, to a child that receives; it stays connected. */
static void
give_copy(struct peer *p, struct xac_source *s, const char *dir)
{
    struct xac_wire_hello hello = right_hello();
    struct xac_copy_sent sent;
    struct xac_wire_frame f;
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0);
    memcpy(hello.identity, s->master.identity, sizeof hello.identity);
    start(p, run_receive, dir);
    greet(p, &hello);
    must_ok(xac_copy_send(&p->w, fd, s, NULL, &sent));
    (void)close(fd);
    get(p, XAC_WIRE_ACK, &f);
}

/* make_source -- an environment with a backup and log behind it. */
static void
make_source(struct xac_source *s)
{
    board->large_every = 0;
    write_n(10);
    board->backup_first = true;
    write_n(10);
    must_ok(xac_source_open(s, ENV_DIR));
}

/* put_log -- bytes of log. */
static void
put_log(struct peer *p, uint64_t lsn, const void *bytes, size_t n)
{
    struct xac_wire_log head = {.lsn = lsn};

    put(p, XAC_WIRE_LOG, &head, sizeof head, bytes, n);
}

/* What cannot be a directory, or cannot be made: an error, which the source hears. */
START_TEST(directories_that_cannot_be)
{
    static const struct {
        const char *dir;
        int rc;
    } cases[] = {{"file", ENOTDIR}, {"file/in", ENOTDIR}, {"no/such", ENOENT}};
    struct xac_wire_frame f;
    struct peer p;

    file_write("file", 0, "abc", 3);
    start(&p, run_receive, cases[_i].dir);
    f.type = XAC_WIRE_NONE;
    must_rc(xac_wire_get(&p.w, 20000, &f), cases[_i].rc);
    must_rc(finish(&p), cases[_i].rc);
    must(strstr(outcome->words, cases[_i].dir) != NULL);
}
END_TEST

START_TEST(an_unfinished_copy_is_replaced)
{
    struct xac_wire_hello hello = right_hello();
    struct xac_source s;
    struct peer p;

    make_source(&s);
    start(&p, run_receive, "new");
    greet(&p, &hello);
    put_file(&p, "sub/dir/left", 12, 64);
    put_file(&p, "xac-log.00000001", 16, 64);
    must_eq(finish(&p), EPIPE);
    must(file_exists("new/sub/dir/left"));
    give_copy(&p, &s, "new");
    must_eq(finish(&p), EPIPE);
    must(!file_exists("new/sub") && !file_exists("new/xac.receiving"));
    must_eq(judge("new"), 10);
    xac_source_close(&s);
}
END_TEST

START_TEST(a_copy_has_the_identity_of_the_greeting)
{
    struct xac_wire_hello hello = right_hello();
    struct xac_copy_sent sent;
    struct xac_source s;
    struct peer p;
    int fd;

    make_source(&s);
    fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    start(&p, run_receive, "new");
    greet(&p, &hello);
    (void)xac_copy_send(&p.w, fd, &s, NULL, &sent);
    (void)close(fd);
    must_eq(finish(&p), XAC_EDAMAGED);
    must(strstr(outcome->words, "its master record") != NULL);
    must(!file_exists("new/xac.master"));
    xac_source_close(&s);
}
END_TEST

/* ---- Log --------------------------------------------------------------------------------- */

/* next_block -- of the source, from the end of the copy on. */
static const struct xac_block *
next_block(struct xac_source *s)
{
    struct xac_followed got;

    must_ok(xac_source_next(s, &got));
    must(got.blk != NULL);
    return got.blk;
}

/* seek -- to the end of the copy. */
static void
seek(struct xac_source *s, uint64_t *lsnp)
{
    struct xac_backup_note note;
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_backup_note_read(fd, &note));
    *lsnp = note.end_lsn;
    xac_backup_note_free(&note);
    (void)close(fd);
    must_ok(xac_source_seek(s, s->master.generation, *lsnp, 0));
}

START_TEST(log_in_pieces_and_in_wrong_ones)
{
    for (int i = 0; i < 5; i++) {
        const struct xac_block *blk;
        struct xac_source s;
        struct peer p;
        uint64_t lsn;

        if (i == 0)
            make_source(&s);
        else
            must_ok(xac_source_open(&s, ENV_DIR));
        run_shell("rm -rf new");
        give_copy(&p, &s, "new");
        seek(&s, &lsn);
        blk = next_block(&s);
        must(blk->length > 80);
        put_log(&p, lsn, blk, 64);
        if (i == 1)
            put_log(&p, lsn + 72, (const uint8_t *)blk + 72, blk->length - 72);
        else
            put_log(&p, lsn + 64, (const uint8_t *)blk + 64, blk->length - 64);
        if (i == 2)
            put_log(&p, lsn, blk, blk->length); /* again */
        if (i == 3)
            put_log(&p, lsn + blk->length, blk, 8);
        if (i == 4)
            put(&p, XAC_WIRE_ACK, &(struct xac_wire_ack){.durable = 8},
                sizeof(struct xac_wire_ack), NULL, 0);
        must_eq(finish(&p), i == 0 ? EPIPE : XAC_EDAMAGED);
        (void)judge("new");
        xac_source_close(&s);
    }
}
END_TEST

/* spoil -- some bytes of a body. */
static void
spoil(uint8_t *body, size_t n, uint64_t *seed)
{
    size_t times = 1 + rnd_below(seed, 4);

    for (size_t i = 0; i < times && n > 0; i++) {
        size_t at = rnd_below(seed, n < 200 || rnd_below(seed, 2) == 0 ? n : 100);

        body[at] = rnd_below(seed, 3) == 0 ? 0xff : (uint8_t)rnd_next(seed);
    }
}

START_TEST(spoiled_bodies_do_no_harm)
{
    static uint8_t body[1 << 20];
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 60), taken = 0;
    struct xac_source first;
    struct peer p;

    make_source(&first);
    give_copy(&p, &first, "kept");
    must_eq(finish(&p), EPIPE);
    for (uint64_t round = 0; round < rounds; round++) {
        struct xac_wire_hello hello = right_hello();
        uint64_t lsn, bad = rnd_below(&seed, 9), type = rnd_below(&seed, 4), k;
        struct xac_source s;

        run_shell("rm -rf new && cp -a kept new");
        must_ok(xac_source_open(&s, ENV_DIR));
        seek(&s, &lsn);
        memcpy(hello.identity, s.master.identity, sizeof hello.identity);
        start(&p, run_receive, "new");
        greet(&p, &hello);
        for (uint64_t i = 0; i < 9; i++) {
            const struct xac_block *blk = next_block(&s);
            struct xac_wire_log head = {.lsn = blk->lsn};
            size_t n = sizeof head + blk->length;

            memcpy(body, &head, sizeof head);
            memcpy(body + sizeof head, blk, blk->length);
            if (i == bad)
                spoil(body, n, &seed);
            if (i == bad && type > 0) { /* another type, with bytes of this one */
                static const enum xac_wire_type types[] = {XAC_WIRE_TURN, XAC_WIRE_DATA,
                                                           XAC_WIRE_NOTE};
                put(&p, types[type - 1], body, type == 1 ? 64 : n, NULL, 0);
            }
            put(&p, XAC_WIRE_LOG, body, n, NULL, 0);
        }
        taken += finish(&p) == EPIPE;
        k = judge("new");
        must(k >= 10 && k <= 20);
        xac_source_close(&s);
    }
    must(taken < rounds);
    xac_source_close(&first);
}
END_TEST

/* ---- A standby that lies ------------------------------------------------------------------ */

/* slot_lsn -- of the slot "one" in the file. */
static uint64_t
slot_lsn(void)
{
    struct xac_log_followers f = {.wakes = 0};
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t lsn;

    must_ok(xac_slots_read(fd, &f));
    lsn = xac_slot_lsn(xac_slot_load(xac_slots_find(&f, "one")));
    (void)close(fd);
    return lsn;
}

/* make_slot -- by hand, at the start of the log. */
static void
make_slot(void)
{
    struct xac_log_followers f = {.wakes = 0};
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_slots_add(&f, "one", XAC_LSN_FIRST));
    must_ok(xac_slots_write(fd, &f));
    (void)close(fd);
}

/* standby_hello -- of one whose log ends in the first generation. */
static struct xac_wire_hello
standby_hello(const struct xac_source *s)
{
    struct xac_wire_hello hello = right_hello();

    memcpy(hello.identity, s->master.identity, sizeof hello.identity);
    hello.lsn = XAC_LSN_FIRST;
    hello.line = (struct xac_wire_line){.generation = 1,
                                        .start_lsn = XAC_LSN_FIRST,
                                        .end_lsn = XAC_LSN_FIRST,
                                        .segment_bytes = board->segment_bytes};
    return hello;
}

START_TEST(acknowledgements_are_checked)
{
    for (int i = 0; i < 4; i++) {
        struct xac_wire_ack ack = {.durable = XAC_LSN_FIRST, .generation = 1};
        struct xac_wire_hello hello;
        struct xac_wire_frame f;
        struct xac_source s;
        struct peer p;

        if (i == 0) {
            make_source(&s);
            make_slot();
        } else {
            must_ok(xac_source_open(&s, ENV_DIR));
        }
        hello = standby_hello(&s);
        start(&p, run_send, NULL);
        greet(&p, &hello);
        get(&p, XAC_WIRE_BEAT, &f); /* all has been sent */
        ack.durable = i == 0 ? UINT64_C(1) << 40 : ack.durable;
        ack.applied = i == 1 ? ack.durable + 8 : ack.durable;
        ack.generation += i == 2 ? 100 : 0;
        put(&p, XAC_WIRE_ACK, &ack, sizeof ack, NULL, 0);
        must_ok(xac_wire_flush(&p.w));
        if (i == 3)
            put(&p, XAC_WIRE_END, NULL, 0, NULL, 0);
        must_eq(finish(&p), XAC_EDAMAGED);
        must_eq(slot_lsn(), XAC_LSN_FIRST);
        xac_source_close(&s);
    }
}
END_TEST

START_TEST(standbys_that_do_not_fit)
{
    static const int codes[] = {XAC_EFOREIGN, XAC_EPAGESIZE, XAC_EVERSION, XAC_EFOREIGN,
                                XAC_EFOREIGN, XAC_EFOREIGN,  XAC_EDAMAGED, EINVAL,
                                ENOSYS,       XAC_EDAMAGED,  XAC_EFOREIGN};

    for (int i = 0; i < 11; i++) {
        struct xac_wire_hello hello;
        struct xac_source s;
        struct peer p;

        if (i == 0) {
            make_source(&s);
            make_slot();
        } else {
            must_ok(xac_source_open(&s, ENV_DIR));
        }
        if (i == 10) /* where generation 1 has ended is not known any more */
            must_eq(system("sed -i '/^2 /d' " ENV_DIR "/xac.history"), 0);
        hello = standby_hello(&s);
        hello.identity[3] = (uint8_t)(hello.identity[3] ^ (i == 0));
        hello.page_size += i == 1;
        hello.version += i == 2 ? 2 : 0;    /* 1 more: it is to be rewound */
        hello.line.branch[0] = i == 3;      /* of another branch */
        hello.line.generation += i == 4;    /* without a branch */
        hello.lsn += i == 5 ? 1 << 30 : 0;  /* behind the end of that generation */
        hello.line.segment_bytes -= i == 6; /* no size */
        hello.lsn -= i == 7 ? 8 : 0;        /* before the first */
        if (i == 8)
            hello.line = (struct xac_wire_line){.generation = 0};
        if (i == 9) /* at no LSN, but in a generation */
            hello.lsn = 0;
        start(&p, run_send, NULL);
        greet(&p, &hello);
        must_eq(finish(&p), codes[i]);
        xac_source_close(&s);
    }
}
END_TEST

/* ---- One that is to be rewound, and lies ---------------------------------------------------- */

/* put_want -- with a run of 16 bytes, unless it is to be another number. */
static void
put_want(struct peer *p, const char *path, uint32_t flags, uint32_t n_runs,
         uint32_t reserved)
{
    uint32_t n = (uint32_t)strlen(path);
    struct xac_wire_want want = {.flags = flags,
                                 .path_len = n,
                                 .n_runs = n_runs,
                                 .reserved = reserved};
    uint8_t body[200] = {0};
    size_t padded = (n + 7) & ~(size_t)7;

    memcpy(body, path, n);
    memcpy(body + padded, &(struct xac_wire_run){.offset = 0, .length = 16},
           sizeof(struct xac_wire_run));
    put(p, XAC_WIRE_WANT, &want, sizeof want, body, padded + sizeof(struct xac_wire_run));
}

/* put_from -- log from an LSN of the first generation on. */
static void
put_from(struct peer *p, const struct xac_wire_hello *hello, uint64_t lsn, uint32_t flags,
         uint32_t reserved)
{
    struct xac_wire_from from = {.line = hello->line,
                                 .lsn = lsn,
                                 .flags = flags,
                                 .reserved = reserved};

    put(p, XAC_WIRE_FROM, &from, sizeof from, NULL, 0);
}

/* ask_wrongly -- something that is refused. */
static void
ask_wrongly(struct peer *p, const struct xac_wire_hello *hello, int i)
{
    static const char *const paths[] = {"xac.master", "xac.history", "../input.db",
                                        "/etc/passwd", "not-mapped"};
    struct xac_wire_hello other = *hello;

    if (i < 5)
        put_want(p, paths[i], 0, 1, 0);
    if (i == 5)
        put_want(p, "xac-outside/f", 2, 1, 0);
    if (i == 6)
        put_want(p, "xac-outside/f", 0, 2, 0); /* runs that are not there */
    if (i == 7)
        put_want(p, "xac-outside/f", 0, 1, 1);
    if (i == 8)
        put_from(p, hello, hello->lsn - 8, 0, 0);
    if (i == 9)
        put_from(p, hello, hello->lsn, 2, 0);
    if (i == 10)
        put_from(p, hello, hello->lsn, 0, 1);
    other.line.generation = 40; /* that it does not have */
    if (i == 11)
        put_from(p, &other, hello->lsn, 0, 0);
    if (i == 12)
        put(p, XAC_WIRE_END, NULL, 0, NULL, 0);
}

START_TEST(what_a_source_does_not_answer)
{
    for (int i = 0; i < 13; i++) {
        struct xac_wire_hello hello;
        struct xac_wire_frame f;
        struct xac_source s;
        struct peer p;

        if (i == 0) {
            make_source(&s);
            make_slot();
            file_write(ENV_DIR "/not-mapped", 0, "secret", 6);
        } else {
            must_ok(xac_source_open(&s, ENV_DIR));
        }
        hello = standby_hello(&s);
        hello.version = XAC_WIRE_VERSION_REWIND;
        start(&p, run_send, NULL);
        greet(&p, &hello);
        get(&p, XAC_WIRE_LINES, &f);
        put_want(&p, "xac-outside/none", 0, 1, 0); /* one that could be */
        get(&p, XAC_WIRE_WANTED, &f);
        put_from(&p, &hello, hello.lsn, 0, 0);
        get(&p, XAC_WIRE_BEAT, &f);
        ask_wrongly(&p, &hello, i);
        must_eq(finish(&p), i == 11 ? XAC_EFOREIGN : XAC_EDAMAGED);
        xac_source_close(&s);
    }
}
END_TEST

/* lie -- to an environment that is to be rewound. */
static void
lie(struct peer *p, int i)
{
    struct xac_wire_line line[2] = {{.generation = 5,
                                     .previous = 4,
                                     .start_lsn = 8192,
                                     .end_lsn = 8192,
                                     .segment_bytes = 65536}};

    line[1] = line[0];
    line[1].generation = i == 2 ? 4 : 6;
    line[1].previous = i == 3 ? 7 : 3;
    if (i < 2)
        put_file(p, i == 0 ? "../evil" : "/tmp/evil", i == 0 ? 7 : 9, 64);
    put_file(p, "f", 1, 64);
    if (i == 4)
        put(p, XAC_WIRE_WANTED, NULL, 0, NULL, 0);
    if (i == 5)
        put_piece(p, 0, 8);
    put(p, XAC_WIRE_LINES, NULL, 0, line, i == 6 ? 65 : sizeof line);
}

START_TEST(a_source_that_lies_to_an_old_one)
{
    struct xac_source s;

    make_source(&s);
    child_rewinds = true;
    for (int i = 0; i < 8; i++) {
        struct image *was = image_take(ENV_DIR);
        struct xac_wire_hello hello = right_hello();
        struct peer p;

        if (i != 7) /* another environment */
            memcpy(hello.identity, s.master.identity, sizeof hello.identity);
        start(&p, run_receive, ENV_DIR);
        greet(&p, &hello);
        lie(&p, i);
        must_eq(finish(&p), i == 7 ? XAC_EFOREIGN : XAC_EDAMAGED);
        must_unchanged(was, ENV_DIR);
        image_free(was);
    }
    child_rewinds = false;
    xac_source_close(&s);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("connection");
    TCase *t = env_tcase_with(s, "connection", 200, setup_all);

    env_in_memory();
    tcase_add_test(t, paths_that_lead_out_are_refused);
    tcase_add_test(t, frames_of_a_copy_that_cannot_be);
    tcase_add_test(t, greetings_that_do_not_fit);
    tcase_add_loop_test(t, directories_that_cannot_be, 0, 3);
    tcase_add_test(t, an_unfinished_copy_is_replaced);
    tcase_add_test(t, a_copy_has_the_identity_of_the_greeting);
    tcase_add_test(t, log_in_pieces_and_in_wrong_ones);
    tcase_add_test(t, spoiled_bodies_do_no_harm);
    tcase_add_test(t, acknowledgements_are_checked);
    tcase_add_test(t, standbys_that_do_not_fit);
    tcase_add_test(t, what_a_source_does_not_answer);
    tcase_add_test(t, a_source_that_lies_to_an_old_one);
    return env_main(s);
}
