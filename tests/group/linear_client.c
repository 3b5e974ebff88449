/* SPDX-License-Identifier: MIT */
/*
 * linear_client.c -- a program at a node of a group that writes, or reads, and notes what it has been told.
 *
 * linear_client write|read DIR NAME NODE LINE LIFE HISTORY  works on the file NAME in DIR (linear_file.h) until SIGTERM, and
 * appends lines of linear_judge.h to the file HISTORY.  LINE is its line of the board, which lies in the current directory; LIFE
 * is a number that no other process of the test has.  While the node does not let it, or does not lead, it tries again.
 * Exit codes: 0 told to stop, 1 an error that cannot be, in words on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "linear_file.h"

#define RETRY_MS 50
#define WAIT_MS  2000 /* of a query, at most                                            */
#define LIFE_IDS UINT64_C(1000000000)

static const char *dir, *name;
static unsigned node, line_number;
static uint64_t life, n_begun, n_acknowledged, random_state;
static int history, board;
static struct linear_file *f; /* NULL: the environment is not open                      */

/* A commit of which it is not known what has become. */
static struct xac_token doubtful;
static uint64_t doubtful_id; /* 0: none                                                */

static volatile sig_atomic_t is_over;

static void
stop(int signal)
{
    (void)signal;
    is_over = 1;
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static unsigned
rnd(unsigned n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

__attribute__((noreturn)) static void
fail(const char *what)
{
    fprintf(stderr, "linear_client: %s: %s\n", what, xLastError());
    exit(EXIT_FAILURE);
}

/* note -- a line of the history; it is written at once. */
__attribute__((format(printf, 1, 2))) static void
note(const char *format, ...)
{
    char line[1024];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line || write(history, line, (size_t)n) != n)
        fail("history");
}

/* ---- The board ---------------------------------------------------------------------- */

/* show -- a state that somebody else is to see. */
static void
show(uint64_t n, const struct xac_token *token)
{
    char line[BOARD_LINE + 1], text[XAC_TOKEN_TEXT];
    int used;

    if (xTokenFormat(token, text, sizeof text) != 0)
        fail("xTokenFormat");
    used = snprintf(line, sizeof line, "%" PRIu64 " %s %" PRIu64 " %" PRIu64, n, text,
                    n_acknowledged, n);
    if (used < 0 || used >= BOARD_LINE)
        fail("board");
    memset(line + used, ' ', sizeof line - (size_t)used);
    if (pwrite(board, line, BOARD_LINE, (off_t)line_number * BOARD_LINE) != BOARD_LINE)
        fail("board");
}

/* look -- at a line; ret does it say something? */
static bool
look(unsigned of, uint64_t *np, struct xac_token *token, uint64_t *acknowledgedp)
{
    char line[BOARD_LINE + 1] = "", text[XAC_TOKEN_TEXT];
    uint64_t again;

    if (pread(board, line, BOARD_LINE, (off_t)of * BOARD_LINE) != BOARD_LINE)
        return false;
    return sscanf(line, "%" SCNu64 " %63s %" SCNu64 " %" SCNu64, np, text, acknowledgedp,
                  &again)
               == 4
           && *np == again && xTokenParse(text, token) == 0;
}

/* ---- The environment ---------------------------------------------------------------- */

static void
leave(void)
{
    if (f != NULL)
        (void)xShutdown();
    f = NULL;
}

/* enter -- ret is it open? */
static bool
enter(void)
{
    char path[4096];

    if (f != NULL)
        return true;
    if (xInit(dir, XAC_DURABLE) != 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = (struct linear_file *)xMmap(path, sizeof *f);
    if ((void *)f != MAP_FAILED)
        return true;
    f = NULL;
    (void)xShutdown();
    return false;
}

/* retry -- later: the node does not lead, or is about to begin or to end leading. */
static void
retry(void)
{
    leave();
    (void)poll(NULL, 0, RETRY_MS);
}

/* ---- Writing ------------------------------------------------------------------------ */

/* ask_fate -- of the commit in doubt. */
static void
ask_fate(void)
{
    int rc = doubtful_id == 0 ? XAC_EUNCERTAIN : xFate(&doubtful, 0);

    if (rc != XAC_COMMITTED && rc != XAC_ELOST)
        return;
    note("fate %" PRIu64 " %s\n", doubtful_id,
         rc == XAC_COMMITTED ? "committed" : "lost");
    doubtful_id = 0;
}

/* append -- in a transaction that has begun; ret what xend() returns. */
static int
append(uint64_t id, unsigned key, uint64_t *placep, uint64_t *countp)
{
    *placep = f->n[0];
    if (*placep >= LINEAR_RECORDS)
        fail("the file is full");
    f->record[f->n[0]++] = id;
    *countp = ++f->count[key][0];
    return xend();
}

/* write_one -- one write, and what has become of it. */
static void
write_one(void)
{
    uint64_t id = life * LIFE_IDS + ++n_begun, begin = now_ns(), place = 0, count = 0;
    unsigned key = rnd(JUDGE_KEYS);
    struct xac_token token;
    bool is_noted = false;
    int rc;

    do {
        rc = xbegin();
        if (rc != 0)
            break;
        if (!is_noted)
            note("begin %" PRIu64 " %u %" PRIu64 "\n", id, key, begin);
        is_noted = true;
        rc = append(id, key, &place, &count);
    } while (rc == ABORTED);
    if (rc == COMMITTED) {
        note("end %" PRIu64 " %" PRIu64 " done %" PRIu64 " %" PRIu64 "\n", id, now_ns(),
             place, count);
        n_acknowledged++;
        if (xToken(&token) != 0)
            fail("xToken");
        show(place + 1, &token);
        return;
    }
    if (rc == XAC_EUNCERTAIN && xToken(&doubtful) == 0)
        doubtful_id = id;
    if (is_noted)
        note("end %" PRIu64 " %" PRIu64 " %s\n", id, now_ns(),
             rc == XAC_ENOTLEADER ? "aborted" : "uncertain");
    if (rc != XAC_EUNCERTAIN && rc != XAC_ENOTLEADER)
        fail("a write");
    retry();
}

/* ---- Reading ------------------------------------------------------------------------ */

/* begin_query -- of a random kind; ret what the begin says. */
static int
begin_query(enum judge_kind *kindp, uint64_t *leastp)
{
    struct xac_token token;
    uint64_t ignored;

    *leastp = 0;
    *kindp = (enum judge_kind)rnd(JUDGE_KINDS);
    if (*kindp == JUDGE_TOKEN && look(rnd(BOARD_LINES), leastp, &token, &ignored))
        return xbeginQueryAfter(&token, WAIT_MS);
    *leastp = 0;
    if (*kindp == JUDGE_LATEST)
        return xbeginQueryLatest(WAIT_MS);
    *kindp = JUDGE_SNAPSHOT;
    return xbeginQuery();
}

/* note_read -- with all counters. */
static void
note_read(enum judge_kind kind, uint64_t begin, uint64_t least, uint64_t n, uint64_t last,
          const uint64_t count[JUDGE_KEYS])
{
    static const char *const kinds[JUDGE_KINDS] = {"snapshot", "token", "latest"};
    char text[JUDGE_KEYS * 21 + 1] = "";
    size_t used = 0;

    for (unsigned i = 0; i < JUDGE_KEYS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %" PRIu64, count[i]);
    note("read %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s\n",
         kinds[kind], node, begin, now_ns(), least, n, last, text);
}

/* read_one -- one query, and what it has seen. */
static void
read_one(void)
{
    uint64_t begin = now_ns(), least, n, last, count[JUDGE_KEYS];
    struct xac_token token;
    enum judge_kind kind;
    int rc = begin_query(&kind, &least);

    if (rc == XAC_ELOST && kind == JUDGE_TOKEN)
        note("lost %u %" PRIu64 " %" PRIu64 "\n", node, now_ns(), least);
    if (rc != 0) {
        if (rc == XAC_ENOTLEADER || rc == XAC_EUNCERTAIN)
            retry();
        return;
    }
    n = f->n[0];
    last = n > 0 && n <= LINEAR_RECORDS ? f->record[n - 1] : 0;
    for (unsigned i = 0; i < JUDGE_KEYS; i++)
        count[i] = f->count[i][0];
    if (xToken(&token) != 0)
        fail("xToken in a query");
    rc = xendQuery();
    if (rc == 0) {
        note_read(kind, begin, least, n, last, count);
        show(n, &token);
    } else {
        retry();
    }
}

int
main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = stop};
    struct xac_token ignored;
    uint64_t n;
    bool is_writer;

    if (argc != 8)
        return 2;
    is_writer = strcmp(argv[1], "write") == 0;
    dir = argv[2];
    name = argv[3];
    node = (unsigned)strtoul(argv[4], NULL, 10);
    line_number = (unsigned)strtoul(argv[5], NULL, 10);
    life = random_state = strtoull(argv[6], NULL, 10);
    history = open(argv[7], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    board = open(BOARD_NAME, O_RDWR | O_CLOEXEC);
    if (history < 0 || board < 0) {
        perror("linear_client");
        return EXIT_FAILURE;
    }
    (void)look(line_number, &n, &ignored, &n_acknowledged);
    (void)sigaction(SIGTERM, &act, NULL);
    while (!is_over) {
        if (!enter()) {
            (void)poll(NULL, 0, RETRY_MS);
            continue;
        }
        if (is_writer)
            ask_fate();
        if (is_writer)
            write_one();
        else
            read_one();
        (void)poll(NULL, 0, (int)rnd(4));
    }
    leave();
    return 0;
}
