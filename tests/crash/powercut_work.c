/* SPDX-License-Identifier: MIT */
/*
 * powercut_work.c -- see powercut.h: scripts and histories.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "powercut.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include "../common/env.h"
#include "base/sys.h"

/* In scripts with growth: the transaction of a writer from which on its row is whole. */
#define GROWN_AT     12u
#define ROW_AT_FIRST 6u

/* What the recorded process is doing when it notes something. */
enum {
    NOTE_TRY = 1,
    NOTE_ACK = 2,
    NOTE_NAME_TRY = 3, /* of the file whose name changes                               */
    NOTE_NAME_ACK = 4
};

const struct script scripts[] = {
    {"commits", 0, 2, 14},
    {"checkpoints", WITH_CHECKPOINTS, 3, 12},
    {"large", WITH_LARGE | WITH_CHECKPOINTS, 2, 12},
    {"growth", WITH_GROWTH | WITH_CHECKPOINTS, 2, 14},
    {"archive", WITH_ARCHIVE | WITH_CHECKPOINTS | WITH_LARGE, 3, 12},
    {"deaths", WITH_DEATHS | WITH_CHECKPOINTS | WITH_LARGE | WITH_ARCHIVE, 4, 10},
    {"readers", WITH_READER | WITH_CHECKPOINTS | WITH_ARCHIVE, 2, 14},
    {"optimistic", WITH_OPTIMISTIC | WITH_CHECKPOINTS | WITH_DEATHS, 3, 10},
    {"overlapping", WITH_OLDEST_WINS | WITH_CHECKPOINTS | WITH_DEATHS, 3, 10},
    {"digests", WITH_DIGESTS | WITH_CHECKPOINTS | WITH_LARGE, 4, 8},
    {"recycling", WITH_RECYCLE | WITH_CHECKPOINTS | WITH_LARGE | WITH_DEATHS, 3, 12},
    {"two disks",
     WITH_LOG_DIR | WITH_CHECKPOINTS | WITH_LARGE | WITH_DEATHS | WITH_ARCHIVE, 3, 12},
    {"no images", WITH_NO_IMAGES | WITH_CHECKPOINTS | WITH_DEATHS | WITH_GROWTH, 3, 14},
    {"names", WITH_NAMES | WITH_CHECKPOINTS | WITH_DEATHS, 3, 14},
    {"failed sync", WITH_FAILURE | WITH_CHECKPOINTS | WITH_LARGE, 2, 14},
};
const unsigned n_scripts = sizeof scripts / sizeof scripts[0];

const char *const work_path[3] = {"db", "files/a.db", "db/b.db"};
const char *const work_name[2] = {"files/n.db", "files/m.db"};

/* What the processes of a session share. */
struct board {
    _Atomic uint64_t reader_stops;
    _Atomic uint64_t is_unrecorded;
    _Atomic uint64_t
        noted[NOTE_NAME_ACK + 1][WRITERS]; /* the most, if not recorded      */
    _Atomic uint64_t name_state; /* the last that was tried                            */
};

static struct board *board;

/* The header page of a writer. */
struct header {
    uint64_t n;
    uint64_t
        seen[WRITERS]; /* numbers that transaction n has read of the others         */
    uint64_t check;
};

/* ---- History --------------------------------------------------------------------------- */

static uint64_t
hash4(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t v[4] = {a, b, c, d};

    return XXH3_64bits(v, sizeof v);
}

static unsigned
row_pages(const struct script *s, uint64_t n)
{
    return (s->flags & WITH_GROWTH) != 0 && n < GROWN_AT ? ROW_AT_FIRST : ROW_PAGES;
}

uint64_t
work_page(unsigned w, unsigned j, unsigned *filep)
{
    *filep = j % 2;
    return (j / 2) * WRITERS + w + (j % 2 == 0 ? WRITERS : 0);
}

/* pages_of_file -- how long a file is mapped. */
static uint64_t
pages_of_file(unsigned file, unsigned rows)
{
    return (rows / 2) * WRITERS + (file == 0 ? WRITERS : 0);
}

/* store -- words [first, first + n) of a page, as a transaction has them. */
static void
store(volatile uint64_t *page, uint64_t key, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++)
        page[i] = key * (2 * i + 1) ^ (i << 7);
}

/* shift -- words of a page move up, or come from another page, as when a node of a tree
   takes an entry or is split. */
static void
shift(volatile uint64_t *to, const volatile uint64_t *from, uint64_t first, uint64_t n,
      uint64_t by)
{
    for (uint64_t i = first + n; i > first; i--)
        to[i - 1 + by] = from[i - 1];
}

/* write_row -- the stores of transaction n of a writer, from nothing but its number. */
static void
write_row(const struct run *r, volatile uint64_t *const row[ROW_PAGES], unsigned w,
          uint64_t n)
{
    uint64_t words = env_page() / sizeof(uint64_t);
    uint64_t state = hash4(r->seed, w, n, 0);
    uint64_t kind = rnd_below(&state, 16);
    bool is_large = kind >= 14 && (r->script->flags & WITH_LARGE) != 0;
    unsigned rows = row_pages(r->script, n);
    unsigned pages = kind < 6 ? 1 : kind < 12 ? 3 : rows;

    for (unsigned k = 0; k < pages; k++) {
        unsigned j = pages == rows ? k : (unsigned)rnd_below(&state, rows);
        uint64_t most = kind < 6 ? 40 : kind < 10 ? 500 : kind < 14 ? 6 : 40;
        uint64_t len = is_large ? words : 1 + rnd_below(&state, most);
        uint64_t first = rnd_below(&state, words - len + 1);

        store(row[j], hash4(r->seed, w, n, 1 + j), first, len);
        if (kind == 5 || kind == 11)
            shift(row[j], row[kind == 5 ? j : (j + 1) % rows], 20, words / 2, 4);
    }
}

void
work_history(struct run *r)
{
    uint64_t *page[ROW_PAGES];

    for (unsigned w = 0; w < WRITERS; w++) {
        for (unsigned j = 0; j < ROW_PAGES; j++) {
            page[j] = (uint64_t *)calloc(1, env_page());
            must(page[j] != NULL);
        }
        for (uint64_t n = 0; n <= TXNS_MAX; n++) {
            if (n > 0)
                write_row(r, (volatile uint64_t *const *)page, w, n);
            for (unsigned j = 0; j < ROW_PAGES; j++)
                r->page_hash[w][n][j] = XXH3_64bits(page[j], env_page());
        }
        for (unsigned j = 0; j < ROW_PAGES; j++)
            free(page[j]);
    }
}

void
work_note(const struct record_event *ev, struct promise *p)
{
    uint64_t *what = ev->ino == NOTE_TRY        ? p->tried
                     : ev->ino == NOTE_ACK      ? p->acknowledged
                     : ev->ino == NOTE_NAME_TRY ? &p->name_tried
                                                : &p->name_reached;

    if (ev->offset > what[ev->ino2])
        what[ev->ino2] = ev->offset;
}

/* note -- what a writer tries or has been promised. */
static void
note(unsigned kind, unsigned w, uint64_t n)
{
    _Atomic uint64_t *most;
    uint64_t was;

    if (board == NULL || word_load(&board->is_unrecorded) == 0) {
        record_note(kind, w, n);
        return;
    }
    most = &board->noted[kind][w];
    was = word_load(most);
    while (was < n && !atomic_compare_exchange_weak(most, &was, n))
        continue;
}

/* ---- A participant --------------------------------------------------------------------- */

struct mapped {
    unsigned char *base[2];
    unsigned rows;
};

static const char *
path_of(const struct run *r, unsigned i)
{
    static char path[3][500];

    snprintf(path[i], sizeof path[i], "%s/%s", r->root, work_path[i]);
    return path[i];
}

/* policy_of -- serial unless the script says otherwise. */
static uint64_t
policy_of(const struct script *script)
{
    if ((script->flags & WITH_OPTIMISTIC) != 0)
        return XAC_POLICY_OPTIMISTIC;
    return (script->flags & WITH_OLDEST_WINS) != 0 ? XAC_POLICY_OLDEST_WINS
                                                   : XAC_POLICY_SERIAL;
}

static void
set_options(const struct run *r, uint64_t seed)
{
    /* One of more than 64 KiB has holes first. */
    uint64_t segment = (r->script->flags & WITH_GROWTH) != 0 ? 1 << 18 : 65536;
    uint64_t kind = XAC_CHECKSUM_XXH3;
    char log_dir[500];

    snprintf(log_dir, sizeof log_dir, "%s/log", r->root);
    if ((r->script->flags & WITH_DIGESTS) != 0) {
        segment <<= seed % 3;
        kind = seed % 2 == 0 ? XAC_CHECKSUM_MD5 : XAC_CHECKSUM_SHA1;
    }
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, segment));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 200000));
    must_ok(xac_set_option(XAC_OPT_CHECKSUM, kind));
    must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, seed % 4 != 3));
    must_ok(
        xac_set_option(XAC_OPT_FULL_IMAGES, (r->script->flags & WITH_NO_IMAGES) == 0));
    must_ok(xac_set_option(XAC_OPT_LOG_RECYCLE, (r->script->flags & WITH_RECYCLE) != 0));
    must_ok(
        xac_set_log_directory((r->script->flags & WITH_LOG_DIR) != 0 ? log_dir : NULL));
    must_ok(xac_set_option(XAC_OPT_POLICY, policy_of(r->script)));
}

/* map_files -- with rows of that many pages; ret false: a call has failed. */
static bool
map_files(const struct run *r, struct mapped *m, unsigned rows)
{
    for (unsigned i = 0; i < 2; i++) {
        const char *path = path_of(r, i + 1);

        if (m->rows != 0 && xac_munmap(path) != 0)
            return false;
        m->base[i] = (unsigned char *)xac_mmap(path, pages_of_file(i, rows) * env_page());
        if (m->base[i] == MAP_FAILED)
            return false;
    }
    m->rows = rows;
    return true;
}

static volatile struct header *
header_of(const struct mapped *m, unsigned w)
{
    return (volatile struct header *)(void *)(m->base[0] + w * env_page());
}

/* look -- numbers of all writers in one query; what is seen has been promised. */
static int
look(const struct mapped *m, uint64_t n[WRITERS])
{
    int rc = xac_begin_query();

    if (rc != 0)
        return rc;
    for (unsigned w = 0; w < WRITERS; w++)
        n[w] = header_of(m, w)->n;
    rc = xac_end_query();
    for (unsigned w = 0; w < WRITERS && rc == 0; w++)
        note(NOTE_ACK, w, n[w]);
    return rc;
}

/* commit -- transaction n of a writer, until it commits; ret 0 or an error. */
static int
commit(const struct run *r, struct mapped *m, unsigned w, uint64_t n)
{
    volatile uint64_t *row[ROW_PAGES];
    uint64_t seen[WRITERS];
    int rc;

    for (unsigned j = 0; j < m->rows; j++) {
        unsigned file;
        uint64_t page = work_page(w, j, &file);

        row[j] = (volatile uint64_t *)(void *)(m->base[file] + page * env_page());
    }
    note(NOTE_TRY, w, n);
    do {
        volatile struct header *h = header_of(m, w);

        rc = xac_begin();
        if (rc != 0)
            return rc;
        for (unsigned v = 0; v < WRITERS; v++) {
            bool looks = v != w && hash4(r->seed, w, n, 99) % 3 == 0;

            seen[v] = looks ? header_of(m, v)->n : h->seen[v];
            h->seen[v] = seen[v];
        }
        h->n = n;
        h->check = XXH3_64bits(seen, sizeof seen) ^ n;
        write_row(r, row, w, n);
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    if (rc != XAC_COMMITTED)
        return rc;
    note(NOTE_ACK, w, n);
    for (unsigned v = 0; v < WRITERS; v++) {
        if (v != w)
            note(NOTE_ACK, v, seen[v]);
    }
    return 0;
}

/* remove_archived -- what is no longer needed goes. */
static int
remove_archived(void)
{
    char **name;
    size_t n;
    int rc = xac_archive(&name, &n);

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = xac_sys.unlinkat(AT_FDCWD, name[i], 0) == 0 ? 0 : errno;
    free(name);
    return rc;
}

/* ---- A file whose name changes --------------------------------------------------------- */

/* fill_name -- make it, with a number; ret 0 or an error. */
static int
fill_name(const char *name, uint64_t value)
{
    uint64_t *x = (uint64_t *)xac_mmap(name, env_page());
    int rc;

    if (x == MAP_FAILED)
        return errno;
    do {
        rc = xac_begin();
        if (rc != 0)
            return rc;
        *x = value;
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    return rc == XAC_COMMITTED ? xac_munmap(name) : rc;
}

/* change_name -- its next state; EBUSY, if somebody needs an older one, is no error: it stays. */
static int
change_name(const struct run *r)
{
    uint64_t t = word_load(&board->name_state) + 1;
    char name[2][500];
    int rc;

    for (unsigned i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%s/%s", r->root, work_name[i]);
    note(NOTE_NAME_TRY, 0, t);
    rc = t % 3 == 1   ? fill_name(name[0], t / 3 + 1)
         : t % 3 == 2 ? xac_rename(name[0], name[1])
                      : xac_remove(name[1]);
    if (rc == EBUSY)
        return 0;
    if (rc == 0) {
        note(NOTE_NAME_ACK, 0, t);
        word_store(&board->name_state, t);
    }
    return rc;
}

/* find_name -- its state when a session begins: some step may have been done without a word. */
static void
find_name(const struct run *r)
{
    uint64_t t = word_load(&board->name_state);
    char path[500];
    bool is_there[2];

    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", r->root, work_name[i]);
        is_there[i] = file_exists(path);
    }
    while (t % 3 != 0 && !is_there[t % 3 - 1])
        t++;
    word_store(&board->name_state, t);
}

/* ---- Sessions -------------------------------------------------------------------------- */

struct part {
    const struct run *run;
    unsigned w, session;
    bool shuts_down; /* else it just ends                                               */
    bool fails;      /* one of its syncs does                                           */
    uint64_t die_at; /* 0: not by itself                                                */
    bool takes_all;  /* all others die with it                                          */
};

/* one_step -- a transaction and what goes with it; ret 0 or an error. */
static int
one_step(const struct part *part, struct mapped *m, uint64_t n)
{
    const struct run *r = part->run;
    uint64_t dice = hash4(r->seed, part->w, n, 7);
    uint64_t others[WRITERS];
    int rc = 0;

    if (row_pages(r->script, n) > m->rows && !map_files(r, m, row_pages(r->script, n)))
        return XAC_EPOISONED;
    rc = commit(r, m, part->w, n);
    if (rc == 0 && dice % 5 == 0)
        rc = look(m, others);
    if (rc == 0 && dice % 7 == 0 && (r->script->flags & WITH_CHECKPOINTS) != 0)
        rc = xac_checkpoint();
    if (rc == 0 && part->w == 0 && (r->script->flags & WITH_ARCHIVE) != 0)
        rc = remove_archived();
    if (rc == 0 && part->w == 0 && (r->script->flags & WITH_NAMES) != 0)
        rc = change_name(r);
    return rc;
}

static void
run_writer(void *arg)
{
    const struct part *part = (const struct part *)arg;
    const struct run *r = part->run;
    uint64_t seed = hash4(r->seed, part->w, part->session, 3);
    struct mapped m = {.rows = 0};
    uint64_t n[WRITERS];
    int rc;

    set_options(r, r->seed + part->session);
    if (r->trace != NULL)
        record_slow(300, seed);
    if (part->die_at != 0)
        record_die_at(part->die_at, part->takes_all);
    if (part->fails)
        record_fail_sync(1 + rnd_below(&seed, 60), rnd_below(&seed, 2) ? EIO : ENOSPC);
    rc = xac_init(path_of(r, 0), XAC_DURABLE);
    if (rc == 0 && !map_files(r, &m, row_pages(r->script, 0)))
        rc = -1;
    if (rc == 0)
        rc = look(&m, n);
    if (rc == 0 && part->w == 0)
        find_name(r);
    for (unsigned i = 0; rc == 0 && i < r->script->txns; i++) {
        rc = one_step(part, &m, ++n[part->w]);
    }
    if (part->shuts_down && rc == 0)
        rc = xac_shutdown();
    if (rc != 0 && (r->script->flags & WITH_FAILURE) == 0)
        env_fail(__FILE__, __LINE__, "%s, seed %llu: %s: %s", r->script->name,
                 (unsigned long long)r->seed, xac_strerror(rc), xac_last_error());
    _exit(0);
}

/* run_reader -- queries that last. */
static void
run_reader(void *arg)
{
    const struct part *part = (const struct part *)arg;
    const struct run *r = part->run;
    struct mapped m = {.rows = 0};
    uint64_t n[WRITERS];

    set_options(r, r->seed + part->session);
    must_ok(xac_init(path_of(r, 0), XAC_DURABLE));
    must(map_files(r, &m, row_pages(r->script, 0)));
    while (word_load(&board->reader_stops) == 0) {
        must_ok(xac_begin_query());
        n[0] = header_of(&m, 0)->n;
        proc_sleep_us(5000);
        must(header_of(&m, 0)->n == n[0]);
        must_ok(xac_end_query());
    }
    must_ok(xac_shutdown());
}

/* run_session -- all writers at once, and what becomes of them. */
static void
run_session(const struct run *r, unsigned session)
{
    struct part part[WRITERS + 1];
    pid_t pid[WRITERS + 1];
    uint64_t seed = hash4(r->seed, session, 0, 11);
    bool has_reader = (r->script->flags & WITH_READER) != 0;
    bool is_last = session + 1 == r->script->sessions;
    bool shuts_down = has_reader || rnd_below(&seed, 2) == 0;

    word_store(&board->reader_stops, 0);
    for (unsigned w = 0; w <= WRITERS; w++) {
        part[w] = (struct part){.run = r, .w = w, .session = session};
        part[w].shuts_down = shuts_down;
        part[w].fails = (r->script->flags & WITH_FAILURE) != 0 && is_last && w == 0;
        part[w].takes_all = !shuts_down && w == 0;
        if (part[w].takes_all)
            part[w].die_at = 60 + rnd_below(&seed, 150);
        else if ((r->script->flags & WITH_DEATHS) != 0 && rnd_below(&seed, 2) == 0)
            part[w].die_at = 1 + rnd_below(&seed, 120);
        if (w < WRITERS)
            pid[w] = proc_spawn(run_writer, &part[w]);
        else if (has_reader)
            pid[w] = proc_spawn(run_reader, &part[w]);
    }
    for (unsigned w = 0; w < WRITERS; w++) {
        int status = proc_wait(pid[w]);

        must(part[w].die_at != 0 || !shuts_down
             || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        must(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
        must(!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL);
    }
    record_revive(r->trace);
    word_store(&board->reader_stops, 1);
    if (has_reader)
        proc_join(pid[WRITERS]);
}

/* make_files_dir -- the program's own directory, durable. */
static void
make_files_dir(const struct run *r)
{
    char files[500];
    int fd;

    snprintf(files, sizeof files, "%s/files", r->root);
    must(xac_sys.mkdirat(AT_FDCWD, files, 0777) == 0 || errno == EEXIST);
    fd = xac_sys.openat(AT_FDCWD, r->root, O_RDONLY | O_DIRECTORY, 0);
    must(fd >= 0 && xac_sys.fsync(fd) == 0);
    (void)xac_sys.close(fd);
}

/* board_clear -- nothing has been promised. */
static void
board_clear(bool is_unrecorded)
{
    if (board == NULL)
        board = (struct board *)proc_shared(sizeof *board);
    memset(board, 0, sizeof *board);
    word_store(&board->is_unrecorded, is_unrecorded);
}

void
work_record(struct run *r)
{
    board_clear(false);
    disk_empty_dir(r->root);
    record_clear(r->trace);
    record_start(r->trace, r->root);
    make_files_dir(r);
    for (unsigned s = 0; s < r->script->sessions; s++)
        run_session(r, s);
    record_pause(true);
    must(!record_is_full(r->trace));
}

void
work_prepare(struct run *r)
{
    board_clear(true);
    disk_empty_dir(r->root);
    make_files_dir(r);
}

void
work_start(const struct run *r, unsigned session, pid_t pid[WRITERS])
{
    for (unsigned w = 0; w < WRITERS; w++) {
        struct part part = {.run = r, .w = w, .session = session};

        pid[w] = proc_spawn(run_writer, &part);
    }
}

void
work_promise(struct promise *p)
{
    for (unsigned w = 0; w < WRITERS; w++) {
        p->acknowledged[w] = word_load(&board->noted[NOTE_ACK][w]);
        p->tried[w] = word_load(&board->noted[NOTE_TRY][w]);
    }
}

/* ---- After a recovery ------------------------------------------------------------------ */

const char *
work_continue(const struct run *r, uint64_t seed)
{
    static char words[400];
    struct mapped m = {.rows = 0};
    uint64_t n[WRITERS];
    const char *step = "xInit";
    int rc;

    set_options(r, r->seed + seed);
    make_files_dir(r);
    rc = xac_init(path_of(r, 0), XAC_DURABLE);
    if (rc == 0) {
        step = "xMmap";
        rc = map_files(r, &m, ROW_PAGES) ? 0 : EIO;
    }
    if (rc == 0) {
        step = "a query";
        rc = look(&m, n);
    }
    for (unsigned w = 0; w < WRITERS && rc == 0; w++) {
        step = "a transaction";
        rc = n[w] < TXNS_MAX ? commit(r, &m, w, n[w] + 1) : 0;
        if (rc == 0 && rnd_below(&seed, 4) == 0) {
            step = "xCheckpoint";
            rc = xac_checkpoint();
        }
    }
    if (rc == 0) {
        step = "xShutdown";
        rc = xac_shutdown();
    } else {
        snprintf(words, sizeof words, "%s", xac_last_error());
        (void)xac_shutdown();
    }
    if (rc == 0)
        return NULL;
    memmove(words + 100, words, 300);
    snprintf(words, 100, "%s: %.60s: ", step, xac_strerror(rc));
    memmove(words + strlen(words), words + 100, strnlen(words + 100, 299) + 1);
    return words;
}
