/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ship.c -- targets: what either end of a connection between a source and its standby gets from the other one.
 *
 * receive  a copy and the log behind it come to an empty directory: the directory can be recovered then, or is
 *          refused in words
 * send     a standby, or an environment that is to be rewound, speaks to a source: nothing of a file that is not
 *          mapped is sent
 *
 * Real frames are recorded once.  The input changes, leaves out, repeats and retypes some of them; their checksums and
 * numbers are made right again, so that the change is met by what reads behind them, unless the input says not to.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/slots.h"
#include "recovery/recover.h"
#include "ship/receive.h"
#include "ship/send.h"
#include "ship/ship_copy.h"
#include "ship/source.h"
#include "ship/wire.h"
#include "target.h"

#define PAGE       4096u
#define PAGES      16u
#define SEGMENT    65536u
#define SRC        "src"
#define BACKUP     "backup-of-src"
#define STANDBY    "standby"
#define SECRET     "what no standby may see"
#define FRAMES_MAX 128u
#define EDITS_MAX  12u
#define ROOM       256u /* that a body can become longer by                           */

struct frame {
    uint16_t type;
    size_t n;
    uint8_t *body;
    size_t room; /* of a body that may be changed, which is the talk's; 0: as recorded  */
};

/* Frames, one after the other. */
struct talk {
    struct frame frame[FRAMES_MAX];
    size_t n;
};

static struct {
    bool is_made;
    struct talk copy, follow, rewind; /* as recorded                                   */
    struct xac_log_followers slots;   /* of the source                                */
    int dirfd;                        /* of the source                                */
    int in, out;                      /* memory: what comes, and what is answered     */
} w;

/* ---- Making an environment --------------------------------------------------------------- */

/* commit -- n transactions, the last of which has a data file. */
static void
commit(volatile uint64_t *x, unsigned n)
{
    for (unsigned k = 1; k <= n; k++) {
        if (xac_begin() != 0)
            _exit(3);
        for (size_t i = k; i < (size_t)PAGES * PAGE / 8; i += k < n ? 997 * k : 1)
            x[i] += i * k;
        if (xac_end() != XAC_COMMITTED)
            _exit(4);
    }
}

/* live -- one life of the source, in a child; with a backup before its transactions, or without. */
_Noreturn static void
live(bool backs_up)
{
    volatile uint64_t *x;

    if (xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, SEGMENT) != 0
        || xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536) != 0
        || xac_set_option(XAC_OPT_LOG_RECYCLE, 0) != 0 || xac_init(SRC, XAC_DURABLE) != 0)
        _exit(1);
    x = (volatile uint64_t *)xac_mmap(SRC "/f", (size_t)PAGES * PAGE);
    if (x == MAP_FAILED || (backs_up && xac_backup(BACKUP) != 0))
        _exit(2);
    commit(x, 4);
    _exit(xac_shutdown() == 0 ? 0 : 5);
}

static void
live_in_child(bool backs_up)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        live(backs_up);
    fuzz_must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0)
        fuzz_fail("the source was not made: status %d", status);
}

/* ---- Recording --------------------------------------------------------------------------- */

/* record -- what a wire has sent to w.out. */
static void
record(struct talk *t)
{
    struct xac_wire_head h;
    off_t at = 0;

    while (pread(w.out, &h, sizeof h, at) == (ssize_t)sizeof h) {
        struct frame *f = &t->frame[t->n++];

        fuzz_must(t->n <= FRAMES_MAX);
        *f = (struct frame){.type = h.type, .n = h.length};
        f->body = (uint8_t *)malloc(h.length + 1);
        fuzz_must(f->body != NULL
                  && pread(w.out, f->body, h.length, at + (off_t)sizeof h)
                         == (ssize_t)h.length);
        at += (off_t)(sizeof h + h.length);
    }
    fuzz_must(ftruncate(w.out, 0) == 0 && lseek(w.out, 0, SEEK_SET) == 0);
}

/* must_have -- a frame of each of these types; 0 ends them. */
static void
must_have(const struct talk *t, const uint16_t *types)
{
    for (; *types != 0; types++) {
        size_t i = 0;

        while (i < t->n && t->frame[i].type != *types)
            i++;
        if (i == t->n)
            fuzz_fail("no frame of type %u was recorded", *types);
    }
}

static struct xac_wire_hello
hello_of(const struct xac_source *s)
{
    struct xac_wire_hello hello = {.version = XAC_WIRE_VERSION,
                                   .page_size = s->master.page_size};

    memcpy(hello.identity, s->master.identity, sizeof hello.identity);
    return hello;
}

static void
put(struct xac_wire *to, enum xac_wire_type type, const void *fixed, size_t n1,
    const void *bytes, size_t n2)
{
    fuzz_must(xac_wire_put(to, type, fixed, n1, bytes, n2) == 0);
}

/* put_block -- as send.h does. */
static void
put_block(struct xac_wire *to, const struct xac_followed *got)
{
    static uint8_t piece[XAC_WIRE_PIECE_BYTES];
    struct xac_wire_log head = {.lsn = got->blk->lsn};

    if (got->data != NULL) {
        struct xac_wire_data data = {.serial = got->data->serial};
        ssize_t n = pread(got->datafd, piece, sizeof piece, 0);

        fuzz_must(n == (ssize_t)got->data->length);
        put(to, XAC_WIRE_DATA, &data, sizeof data, piece, (size_t)n);
    }
    put(to, XAC_WIRE_LOG, &head, sizeof head, got->blk, got->blk->length);
}

/* put_note -- xac.addresses. */
static void
put_note(struct xac_wire *to)
{
    size_t n;
    uint8_t *bytes = fuzz_get(SRC "/xac.addresses", &n);
    struct xac_wire_note head = {.length = n};

    put(to, XAC_WIRE_NOTE, &head, sizeof head, bytes, n);
    free(bytes);
}

/* talk_copy -- a copy, and all log behind it. */
static void
talk_copy(struct xac_source *s, struct xac_wire *to)
{
    int fd = open(BACKUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct xac_wire_hello hello = hello_of(s);
    struct xac_backup_note note = {.n_files = 0};
    struct xac_copy_sent sent;
    struct xac_followed got;
    struct xac_wire_beat beat = {.lsn = UINT64_C(1) << 20};

    put(to, XAC_WIRE_HELLO, &hello, sizeof hello, NULL, 0);
    fuzz_must(fd >= 0 && xac_backup_note_read(fd, &note) == 0
              && xac_copy_send(to, fd, s, NULL, &sent) == 0
              && xac_source_seek(s, s->master.generation, note.end_lsn, 0) == 0);
    xac_backup_note_free(&note);
    (void)close(fd);
    put_note(to);
    while (xac_source_next(s, &got) == 0 && got.blk != NULL)
        put_block(to, &got);
    put(to, XAC_WIRE_BEAT, &beat, sizeof beat, NULL, 0);
    put(to, XAC_WIRE_END, NULL, 0, NULL, 0);
    fuzz_must(xac_wire_flush(to) == 0);
}

/* talk_follow -- a standby whose log ends where generation 1 begins. */
static void
talk_follow(struct xac_source *s, struct xac_wire *to, bool rewinds)
{
    struct xac_wire_ack ack = {.durable = XAC_LSN_FIRST,
                               .applied = XAC_LSN_FIRST,
                               .generation = 1};
    struct xac_wire_hello hello = hello_of(s);
    struct {
        struct xac_wire_want want;
        char path[8];
        struct xac_wire_run run[2];
    } some = {.want = {.path_len = 1, .n_runs = 2},
              .path = "f",
              .run = {{0, PAGE}, {3 * PAGE, 2 * PAGE}}};
    struct xac_wire_from from = {.lsn = XAC_LSN_FIRST};

    hello.version = rewinds ? XAC_WIRE_VERSION_REWIND : XAC_WIRE_VERSION;
    hello.lsn = XAC_LSN_FIRST;
    hello.line = (struct xac_wire_line){.generation = 1,
                                        .start_lsn = XAC_LSN_FIRST,
                                        .end_lsn = XAC_LSN_FIRST,
                                        .segment_bytes = SEGMENT};
    from.line = hello.line;
    put(to, XAC_WIRE_HELLO, &hello, sizeof hello, NULL, 0);
    if (rewinds) {
        put(to, XAC_WIRE_WANT, &some, sizeof some, NULL, 0);
        some.want = (struct xac_wire_want){.flags = XAC_WIRE_WANT_WHOLE, .path_len = 1};
        put(to, XAC_WIRE_WANT, &some, sizeof some - sizeof some.run, NULL, 0);
        put(to, XAC_WIRE_FROM, &from, sizeof from, NULL, 0);
        from.flags = XAC_WIRE_FROM_GO;
        put(to, XAC_WIRE_FROM, &from, sizeof from, NULL, 0);
    }
    put(to, XAC_WIRE_ACK, &ack, sizeof ack, NULL, 0);
    fuzz_must(xac_wire_flush(to) == 0);
}

static void
make(void)
{
    static const uint16_t types[] = {XAC_WIRE_HELLO, XAC_WIRE_FILE,
                                     XAC_WIRE_PIECE, XAC_WIRE_COPIED,
                                     XAC_WIRE_NOTE,  XAC_WIRE_DATA,
                                     XAC_WIRE_LOG,   XAC_WIRE_BEAT,
                                     XAC_WIRE_END,   0};
    char where[600];
    struct xac_source s;
    struct xac_wire to;

    if (w.is_made)
        return;
    w.is_made = true;
    (void)snprintf(where, sizeof where, "%s/shm", fuzz_scratch());
    (void)close(fuzz_fresh("shm"));
    fuzz_must(setenv("XAC_SHM_DIR", where, 1) == 0);
    (void)close(fuzz_fresh(SRC));
    live_in_child(false);
    live_in_child(true);
    fuzz_put(SRC "/secret", SECRET, strlen(SECRET));
    w.dirfd = open(SRC, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w.in = memfd_create("in", MFD_CLOEXEC);
    w.out = memfd_create("out", MFD_CLOEXEC);
    fuzz_must(w.dirfd >= 0 && w.in >= 0 && w.out >= 0);
    fuzz_must(xac_slots_add(&w.slots, "one", XAC_LSN_FIRST) == 0);
    fuzz_must(xac_source_open(&s, SRC) == 0 && xac_wire_open(&to, w.in, w.out) == 0);
    talk_copy(&s, &to);
    record(&w.copy);
    must_have(&w.copy, types);
    talk_follow(&s, &to, false);
    record(&w.follow);
    talk_follow(&s, &to, true);
    record(&w.rewind);
    xac_wire_close(&to);
    xac_source_close(&s);
}

/* ---- Changing it -------------------------------------------------------------------------- */

/* own -- a body that may be changed. */
static void
own(struct frame *f)
{
    uint8_t *copy;

    if (f->room != 0)
        return;
    copy = (uint8_t *)malloc(f->n + ROOM);
    fuzz_must(copy != NULL);
    memcpy(copy, f->body, f->n);
    f->body = copy;
    f->room = f->n + ROOM;
}

/* remove_at -- a frame that does not come. */
static void
remove_at(struct talk *t, size_t at)
{
    if (t->frame[at].room != 0)
        free(t->frame[at].body);
    memmove(&t->frame[at], &t->frame[at + 1], (t->n - at - 1) * sizeof t->frame[0]);
    t->n--;
}

/* insert_at -- a frame that comes once more, there. */
static void
insert_at(struct talk *t, size_t at, size_t from)
{
    struct frame f = t->frame[from];

    if (t->n == FRAMES_MAX)
        return;
    if (f.room != 0) {
        f.room = 0;
        own(&f);
    }
    memmove(&t->frame[at + 1], &t->frame[at], (t->n - at) * sizeof t->frame[0]);
    t->frame[at] = f;
    t->n++;
}

static void
edit(struct fuzz_input *in, struct talk *t)
{
    size_t at = (size_t)fuzz_below(in, t->n);
    struct frame *f = &t->frame[at];

    switch (fuzz_bytes(in, 1) % 8) {
    case 0:
        remove_at(t, at);
        break;
    case 1:
        insert_at(t, at, (size_t)fuzz_below(in, t->n));
        break;
    case 2:
        f->type = (uint16_t)fuzz_bytes(in, 1);
        break;
    default:
        own(f);
        fuzz_edit(in, f->body, &f->n, f->room);
        break;
    }
}

/* say -- the frames to w.in, with right heads; `raw` changes of their bytes. */
static void
say(struct fuzz_input *in, const struct talk *t, unsigned raw)
{
    off_t at = 0;

    fuzz_must(ftruncate(w.in, 0) == 0 && ftruncate(w.out, 0) == 0);
    fuzz_must(lseek(w.in, 0, SEEK_SET) == 0 && lseek(w.out, 0, SEEK_SET) == 0);
    for (size_t i = 0; i < t->n; i++) {
        const struct frame *f = &t->frame[i];
        struct xac_wire_head h = {.magic = XAC_WIRE_MAGIC,
                                  .type = f->type,
                                  .length = (uint32_t)f->n,
                                  .number = (uint32_t)i,
                                  .body_check = xac_xxh64(f->body, f->n)};

        h.head_check = xac_xxh64(&h, offsetof(struct xac_wire_head, head_check));
        fuzz_must(pwrite(w.in, &h, sizeof h, at) == (ssize_t)sizeof h);
        fuzz_must(pwrite(w.in, f->body, f->n, at + (off_t)sizeof h) == (ssize_t)f->n);
        at += (off_t)(sizeof h + f->n);
    }
    for (; raw > 0 && at > 8; raw--) {
        off_t where = (off_t)fuzz_below(in, (uint64_t)at - 8);
        uint8_t bytes[8];

        fuzz_must(pread(w.in, bytes, sizeof bytes, where) == (ssize_t)sizeof bytes);
        fuzz_poke(in, bytes, sizeof bytes, 0);
        fuzz_must(pwrite(w.in, bytes, sizeof bytes, where) == (ssize_t)sizeof bytes);
    }
}

/* play -- the frames as the input changes them come to w.in. */
static void
play(struct fuzz_input *in, const struct talk *recorded)
{
    static struct talk t;
    unsigned raw = (unsigned)fuzz_bytes(in, 1) % 8;

    t = *recorded;
    for (unsigned n = 0; n < EDITS_MAX && in->left > 0 && t.n > 0; n++)
        edit(in, &t);
    say(in, &t, raw < 4 ? 0 : raw - 3);
    while (t.n > 0)
        remove_at(&t, t.n - 1);
}

/* ---- The standby's end -------------------------------------------------------------------- */

/* judge -- recover the directory: it works, or fails in words. */
static void
judge(bool must_be_whole)
{
    static const struct xac_recover_options promote = {.promotes = true};
    int dirfd = open(STANDBY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = xac_recover_dir(dirfd, &promote, NULL, NULL);

    if (must_be_whole && rc != 0)
        fuzz_fail("all frames, but no recovery: %s", xac_err_text());
    fuzz_told("recovery", rc);
    (void)close(dirfd);
}

static void
run_receive(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct xac_receive_report rep;
    struct xac_receive_options o = {.dir = STANDBY};
    int rc;

    make();
    (void)close(fuzz_fresh(STANDBY));
    play(&in, &w.copy);
    o.in = w.in;
    o.out = w.out;
    rc = xac_receive_run(&o, &rep);
    if (size == 0 && (rc != 0 || !rep.was_copied))
        fuzz_fail("all frames, but no standby: %s", xac_err_text());
    fuzz_told("receiving", rc);
    if (faccessat(AT_FDCWD, STANDBY "/xac.master", F_OK, 0) == 0)
        judge(size == 0);
}

/* ---- The source's end ---------------------------------------------------------------------- */

static int
no_copy(void *arg, const char *slot, const char *to)
{
    (void)arg;
    (void)slot;
    (void)to;
    return xac_err(ENOSYS, "no copy here");
}

static int
has_slot(void *arg, const char *slot)
{
    (void)arg;
    (void)slot;
    return 0;
}

/* must_not_have -- what has been sent. */
static void
must_not_have(const char *words)
{
    off_t n = lseek(w.out, 0, SEEK_END);
    uint8_t *bytes = (uint8_t *)malloc((size_t)n + 1);

    fuzz_must(bytes != NULL && pread(w.out, bytes, (size_t)n, 0) == n);
    if (memmem(bytes, (size_t)n, words, strlen(words)) != NULL)
        fuzz_fail("a file that is not mapped has been sent");
    free(bytes);
}

static void
run_send(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct xac_send_options o = {.dir = SRC,
                                 .slot = "one",
                                 .copy = no_copy,
                                 .hold = has_slot};
    bool rewinds = fuzz_bytes(&in, 1) % 2 != 0;
    struct xac_send_report rep;
    int rc;

    make();
    fuzz_watch();
    fuzz_must(xac_slots_write(w.dirfd, &w.slots) == 0);
    play(&in, rewinds ? &w.rewind : &w.follow);
    o.in = w.in;
    o.out = w.out;
    rc = xac_send_run(&o, &rep);
    if (size <= 1 && (rc != EPIPE || rep.was_rewound != rewinds))
        fuzz_fail("all frames, but: %d, %s", rc, xac_err_text());
    fuzz_must(rc != 0);
    fuzz_told("sending", rc);
    must_not_have(SECRET);
}

const struct fuzz_target fuzz_ship_targets[] = {{"receive", run_receive},
                                                {"send", run_send},
                                                {NULL, NULL}};
