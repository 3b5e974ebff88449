/* SPDX-License-Identifier: MIT */
/*
 * handler.c -- the experiment `handler`: entering and leaving a fault handler, mappings,
 * protections, first accesses, copies, userfaultfd (Thesis section 4.2.3, tables 4.3 to 4.5,
 * C.3, C.4).
 */
#include <config.h>

#include "bench/cost/handler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define ROUNDS       UINT64_C(10000)
#define ROUNDS_QUICK UINT64_C(2000)
#define ROUNDS_MAX   UINT64_C(10000000)

const struct bench_op_words bench_ops[N_OPS] = {
    [OP_TIMER] = {"timer", "two successive looks at the clock; part of all the others"},
    [OP_SYSCALL] = {"getppid", "a system call that does nothing"},
    [OP_SEGV_ENTER] = {"segv_enter", "from the access to the SIGSEGV handler"},
    [OP_MMAP] = {"mmap", "in the handler, mmap of a page of a file"},
    [OP_SEGV_EXIT] = {"segv_exit",
                      "from the handler to behind the access, to a page that "
                      "was touched in the handler"},
    [OP_SEGV_EXIT_ACCESS] = {"segv_exit_access", "the same, the page's first access"},
    [OP_MUNMAP] = {"munmap", "of that page"},
    [OP_MMAP_NONE] = {"mmap_none", "mmap without access in place of a page"},
    [OP_FIRST_READ] = {"first_read", "of a shared page of a file after mmap"},
    [OP_FIRST_WRITE] = {"first_write", "likewise, an increment"},
    [OP_FIRST_READ_PRIVATE] = {"first_read_private", "of a private page of a file"},
    [OP_FIRST_WRITE_PRIVATE] = {"first_write_private", "likewise: a copy is made"},
    [OP_FIRST_WRITE_ANON] = {"first_write_anonymous", "to memory without a file"},
    [OP_MADV_DONTNEED] = {"madv_dontneed", "of a private page that was written"},
    [OP_MPROTECT_READ] = {"mprotect_read", "none to read, page after page"},
    [OP_LOAD_AFTER] = {"load_after_mprotect", "the load behind it"},
    [OP_MPROTECT_WRITE] = {"mprotect_write", "none to write, page after page"},
    [OP_STORE_AFTER] = {"store_after_mprotect", "the store behind it"},
    [OP_MPROTECT_UPGRADE] = {"mprotect_upgrade", "read to write, page after page"},
    [OP_MPROTECT_BOTH] = {"mprotect_both", "none to read, then to write, together, page "
                                           "after page"},
    [OP_MPROTECT_NONE] = {"mprotect_none", "taking back 64 pages at once, per page"},
    [OP_MEMCPY_FIRST] = {"memcpy_first", "of a page, neither touched before"},
    [OP_MEMCPY_NEXT] = {"memcpy_next", "the same pages, 2nd to 5th time"},
    [OP_MEMCPY] = {"memcpy", "of a page, one of 1,000 in a row"},
    [OP_MEMCPY_1000] = {"memcpy_1000", "these 1,000 together"},
    [OP_MEMCPY_COLD] = {"memcpy_cold", "of a random page of 64 MiB"},
    [OP_MEMCMP] = {"memcmp", "of two equal pages, one of 1,000 in a row"},
    [OP_GUARD_INSTALL] = {"guard_install", "MADV_GUARD_INSTALL of a page of a file"},
    [OP_GUARD_REMOVE] = {"guard_remove", "MADV_GUARD_REMOVE, in the handler"},
    [OP_SIGBUS_ENTER] = {"sigbus_enter", "from the access to the SIGBUS handler, under "
                                         "userfaultfd"},
    [OP_UFFD_COPY] = {"uffd_copy", "UFFDIO_COPY of a page, in the handler"},
    [OP_SIGBUS_EXIT] = {"sigbus_exit", "from that handler to behind the access"},
    [OP_UFFD_ZEROPAGE] = {"uffd_zeropage", "UFFDIO_ZEROPAGE"},
    [OP_UFFD_PROTECT] = {"uffd_protect", "UFFDIO_WRITEPROTECT of a page"},
    [OP_UFFD_UNPROTECT] = {"uffd_unprotect", "taking that back, in the handler"},
    [OP_UFFD_CONTINUE] = {"uffd_continue", "UFFDIO_CONTINUE, in the handler"},
    [OP_UFFD_MOVE] = {"uffd_move", "UFFDIO_MOVE of a page"},
};

static void
usage(void)
{
    puts(
        "What the means cost by which a page can be watched and shown: entering and leaving\n"
        "a handler of SIGSEGV and SIGBUS, mmap, mprotect, guard pages, userfaultfd, first\n"
        "accesses, copies (Thesis tables 4.3 to 4.5, C.3, C.4).  In each round every\n"
        "operation is timed once, with the processor's time stamp counter.\n"
        "\n"
        "  --rounds N  default 10000, as in the Thesis\n"
        "  --dir DIR   for a file of 64 pages; default the current directory\n"
        "  --json      one JSON object per operation; what the kernel does not have is\n"
        "              \"available\": false\n"
        "  --quick     2000 rounds\n"
        "  --quiet     no progress bar\n"
        "  --help");
}

/* ---- The simplest probe ---------------------------------------------------------------- */

static int
base_begin(struct bench_handler *h, bool *skipp)
{
    (void)h;
    (void)skipp;
    return 0;
}

static int
base_round(struct bench_handler *h)
{
    uint64_t t0 = bench_ticks(), t1 = bench_ticks(), t2, t3;

    t2 = bench_ticks();
    (void)getppid();
    t3 = bench_ticks();
    bench_op_add(h, OP_TIMER, (double)(t1 - t0));
    bench_op_add(h, OP_SYSCALL, (double)(t3 - t2));
    return 0;
}

static void
base_end(struct bench_handler *h)
{
    (void)h;
}

static const struct bench_probe probe_base = {base_begin, base_round, base_end};

/* ---- The measurement ---------------------------------------------------------------------- */

static const struct bench_probe *const probes[] = {
    &probe_base,
    &bench_probe_thesis,
    &bench_probe_access,
    &bench_probe_walk,
    &bench_probe_copy,
    &bench_probe_guard,
    &bench_probe_uffd_missing,
    &bench_probe_uffd_protect,
    &bench_probe_uffd_minor,
};

#define N_PROBES (sizeof probes / sizeof probes[0])

/* run_rounds -- every probe once per round, another one first each time. */
static int
run_rounds(struct bench_handler *h, const bool skip[N_PROBES], uint64_t rounds)
{
    int rc = 0;

    for (h->round = 0; h->round < rounds && rc == 0; h->round++) {
        if (h->round % 64 == 0)
            bench_progress("handler", h->round, rounds);
        if (bench_interrupted())
            return bench_fail("interrupted");
        for (size_t i = 0; i < N_PROBES && rc == 0; i++) {
            size_t k = (h->round + i) % N_PROBES;

            if (!skip[k])
                rc = probes[k]->round(h);
        }
    }
    return rc;
}

/* run_probes -- begin, rounds, end. */
static int
run_probes(struct bench_handler *h, uint64_t rounds)
{
    bool skip[N_PROBES] = {false};
    size_t n = 0;
    int rc = 0;

    bench_trap_begin();
    while (n < N_PROBES && rc == 0) {
        rc = probes[n]->begin(h, &skip[n]);
        n++;
    }
    if (rc == 0)
        rc = run_rounds(h, skip, rounds);
    while (n-- > 0)
        probes[n]->end(h);
    bench_trap_end();
    return rc;
}

int
bench_handler_measure(struct bench_handler *h, const char *dir, uint64_t rounds)
{
    char file[BENCH_DIR_BYTES + 16];
    int rc = 0;

    *h = (struct bench_handler){.dir = dir};
    if (sysconf(_SC_PAGESIZE) != (long)BENCH_PAGE)
        return bench_fail("handler: pages of %u bytes are wanted", BENCH_PAGE);
    for (unsigned i = 0; i < N_OPS && rc == 0; i++)
        rc = bench_sample_init(&h->sample[i], rounds + BENCH_WALK);
    if (rc != 0)
        return rc;
    snprintf(file, sizeof file, "%s/handler", dir);
    h->fd = bench_zero_file(file, (uint64_t)BENCH_WALK * BENCH_PAGE);
    if (h->fd < 0)
        return bench_fail("%s: %s", file, strerror(errno));
    rc = run_probes(h, rounds);
    close(h->fd);
    unlink(file);
    return rc;
}

void
bench_handler_free(struct bench_handler *h)
{
    for (unsigned i = 0; i < N_OPS; i++)
        bench_sample_free(&h->sample[i]);
}

/* ---- What came out ------------------------------------------------------------------------- */

/* print_json -- one operation. */
static void
print_json(const struct bench_common *c, const struct bench_handler *h, enum bench_op op,
           const struct bench_summary *s)
{
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "handler");
    bench_json_str(stdout, "operation", bench_ops[op].name);
    bench_json_str(stdout, "what", bench_ops[op].what);
    bench_json_bool(stdout, "available", h->missing[op] == NULL);
    if (h->missing[op] != NULL)
        bench_json_str(stdout, "why", h->missing[op]);
    else
        bench_json_ticks(stdout, s);
    bench_json_str(stdout, "command", c->command);
    bench_json_end(stdout);
}

/* report -- all operations. */
static void
report(const struct bench_common *c, struct bench_handler *h)
{
    bench_progress_clear();
    if (!c->json) {
        bench_print_command(c, "in microseconds");
        bench_print_columns("operation", "us");
    }
    for (unsigned op = 0; op < N_OPS; op++) {
        struct bench_summary s = bench_summarize(&h->sample[op]);

        if (c->json)
            print_json(c, h, (enum bench_op)op, &s);
        else if (h->missing[op] != NULL)
            printf("%-28s not available: %s\n", bench_ops[op].name, h->missing[op]);
        else
            bench_print_row(bench_ops[op].name, &s, bench_ticks_per_us());
    }
}

int
bench_handler_main(int argc, char **argv)
{
    static struct bench_handler h;
    struct bench_common common;
    char dir[BENCH_DIR_BYTES];
    uint64_t rounds = 0;
    const struct bench_option options[] = {
        {.name = "rounds", .number = &rounds, .low = 1, .high = ROUNDS_MAX},
        BENCH_OPTION_DIR(&common),
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &common, &rc))
        return rc;
    if (rounds == 0)
        rounds = common.quick ? ROUNDS_QUICK : ROUNDS;
    bench_catch_signals();
    bench_progress_enable(common.quiet);
    rc = bench_dir_make(&common, dir);
    if (rc != 0)
        return rc;
    rc = bench_handler_measure(&h, dir, rounds);
    if (rc == 0)
        report(&common, &h);
    bench_handler_free(&h);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}
