/* SPDX-License-Identifier: MIT */
/*
 * standby_env.h -- what the test programs of standbys share: a writer that numbers its transactions, so that
 * each can be done again; and a judge, who says which transactions a directory has after its recovery.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_STANDBY_ENV_H
#define XAC_TEST_STANDBY_ENV_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_env.h>

#include "tests/common/env.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/block.h"
#include "log/log_name.h"
#include "log/master.h"
#include "recovery/recover.h"

#define PAGES   96
#define KIB     ((uint64_t)1024)
#define COPY    "copy"
#define IN_COPY "/xac-outside/1-input.db"

/* What writer, pump and judge tell each other. */
struct board {
    _Atomic uint64_t written, acknowledged; /* transactions                            */
    _Atomic uint64_t at, stop;              /* the meaning is the test's               */
    uint64_t segment_bytes, n, seed, checkpoint_every, large_every;
    uint64_t pause_us; /* between transactions                                        */
    bool backup_first;
    bool leaves; /* the writer ends without a last checkpoint                          */
};

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
    board->segment_bytes = 64 * KIB;
    board->checkpoint_every = 40;
    board->large_every = 25;
    env_without_frames("the log is filled by checkpoints that lack them");
}

/* ---- The writer ------------------------------------------------------------------------ */

/* do_transaction -- number k, on pages in memory or in a mapping. */
static inline void
do_transaction(uint64_t *x, uint64_t k)
{
    bool is_large = board->large_every != 0 && k % board->large_every == 0;
    uint64_t seed = k * 7919, n = is_large ? 2 * PAGES : 1 + k % 4;
    size_t words = env_page() / 8;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t *page = env_cell(x, 1 + rnd_below(&seed, PAGES - 1));

        for (size_t w = 0; w < (is_large ? words : 4); w++)
            page[is_large ? w : rnd_below(&seed, words)] = rnd_next(&seed);
    }
    x[0] = k;
}

/* write_some -- a child: board->n transactions behind those that there are. */
static inline void
write_some(void *arg)
{
    uint64_t *x, k;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    x = (uint64_t *)env_attach(DURABLE, PAGES);
    if (board->backup_first) {
        must_ok(xBackup(COPY));
        (void)unlink(COPY "/xac.log-kept");
    }
    k = env_get(x);
    for (uint64_t i = 0; i < board->n && word_load(&board->stop) == 0; i++) {
        int rc;

        k++;
        do {
            must_ok(xbegin());
            do_transaction(x, k);
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&board->written, k);
        if (board->pause_us != 0)
            proc_sleep_us(board->pause_us);
        if (board->checkpoint_every != 0 && k % board->checkpoint_every == 0)
            must_ok(xCheckpoint());
    }
    if (!board->leaves)
        env_detach();
}

/* write_n -- in a child, to its end. */
static inline void
write_n(uint64_t n)
{
    board->n = n;
    proc_run(write_some, NULL);
    board->backup_first = false;
}

/* ---- The log ---------------------------------------------------------------------------- */

/* read_log -- bytes of a log, all in one segment. */
static inline void
read_log(const char *dir, const struct xac_master_slot *m, uint64_t lsn, uint8_t *to,
         size_t n)
{
    char path[PATH_MAX], name[XAC_LOG_NAME_MAX];

    xac_log_segment_name(name, xac_log_segment_of(lsn, m->segment_bytes));
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    file_read(path, XAC_SEGMENT_HEADER + (lsn & (m->segment_bytes - 1)), to, n);
}

/* must_be_same_log -- byte by byte as that of the source, which has kept it, from the standby's redo position up to an LSN; ret how many
   bytes these are. */
static inline uint64_t
must_be_same_log(const char *dir, uint64_t end)
{
    struct xac_master_slot m;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_master_read(fd, &m));
    (void)close(fd);
    must(m.redo_lsn < end);
    for (uint64_t lsn = m.redo_lsn, n; lsn < end; lsn += n) {
        uint8_t bytes[2][4096];

        n = 4096 - lsn % 4096;
        n = end - lsn < n ? end - lsn : n;
        read_log(ENV_DIR, &m, lsn, bytes[0], (size_t)n);
        read_log(dir, &m, lsn, bytes[1], (size_t)n);
        if (memcmp(bytes[0], bytes[1], (size_t)n) != 0)
            env_fail(__FILE__, __LINE__, "the log of %s is another one at LSN %llu", dir,
                     (unsigned long long)lsn);
    }
    return end - m.redo_lsn;
}

/* ---- The judge -------------------------------------------------------------------------- */

static inline void
run_shell(const char *command)
{
    if (system(command) != 0)
        env_fail(__FILE__, __LINE__, "%s", command);
}

/* must_be_state -- the file is as some number of transactions leaves it; ret that number. */
static inline uint64_t
must_be_state(const char *path)
{
    uint64_t *file = (uint64_t *)calloc(PAGES, env_page());
    uint64_t *model = (uint64_t *)calloc(PAGES, env_page());
    uint64_t k;

    file_read(path, 0, file, PAGES * env_page());
    k = file[0];
    must(k <= word_load(&board->written) + 1);
    for (uint64_t i = 1; i <= k; i++)
        do_transaction(model, i);
    for (size_t i = 0; i < PAGES; i++) {
        if (memcmp(env_cell(file, i), env_cell(model, i), env_page()) != 0)
            env_fail(__FILE__, __LINE__, "page %zu is not as transaction %llu leaves it",
                     i, (unsigned long long)k);
    }
    free(file);
    free(model);
    return k;
}

/* judge -- recover a copy of a directory; ret how many transactions it has. */
static inline uint64_t
judge(const char *dir)
{
    static const struct xac_recover_options promote = {.promotes = true};
    char command[200];
    int fd;

    (void)snprintf(command, sizeof command, "rm -rf judged && cp -a %s judged", dir);
    run_shell(command);
    fd = open("judged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0);
    must_ok(xac_recover_dir(fd, &promote, NULL, NULL));
    (void)close(fd);
    return must_be_state("judged" IN_COPY);
}

#endif /* XAC_TEST_STANDBY_ENV_H */
