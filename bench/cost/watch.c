/* SPDX-License-Identifier: MIT */
/*
 * watch.c -- the experiment `watch`: see watch.h.
 *
 * Each transaction touches random pages: every other one is loaded, the rest incremented.  Round
 * by round each way runs the same one, another way first each time; a time is that of the
 * processor, from before begin to after end.  After it, and untimed, what the way has found
 * must be what was touched, and in the end the store what was committed.
 */
#include <config.h>

#include "bench/cost/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define PAGES        UINT64_C(4096)
#define OF           UINT64_C(16384)
#define ROUNDS       UINT64_C(51)
#define ROUNDS_QUICK UINT64_C(5)
#define WAYS_MAX     16u

struct watch {
    struct bench_common common;
    uint64_t pages, of, rounds;
    struct bench_watch w[WAYS_MAX];
    struct bench_sample us[WAYS_MAX];
    uint8_t *touched; /* per page, by the last transaction: WATCH_...                   */
    unsigned *value;  /* per page, that has been committed                              */
};

static void
usage(void)
{
    puts(
        "The bare means by which the pages of a large transaction can be shown, and found\n"
        "out: traps; no traps, but a scan of the page table afterwards.  Half of the pages\n"
        "are stored to, compared with the committed ones and copied there.  Microseconds of\n"
        "processor time per page.\n"
        "\n"
        "  --pages N   that a transaction touches, at random; default 4096\n"
        "  --of N      pages of the segment; default 16384\n"
        "  --rounds N  default 51\n"
        "  --json      one JSON object per way\n"
        "  --quick     5 rounds\n"
        "  --quiet     no progress bar\n"
        "  --help");
}

/* ---- Traps ------------------------------------------------------------------------------- */

static struct bench_watch *current; /* whose transaction runs; NULL: none             */

/* is_store -- by the fault's error code; elsewhere a store traps twice. */
static bool
is_store(const struct bench_watch *w, const void *context, uint64_t page_no)
{
#if defined __x86_64__
    (void)w;
    (void)page_no;
    return (((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return w->found[page_no] != 0 || !w->way->finds_reads;
#endif
}

static void
on_trap(int sig, siginfo_t *info, void *context)
{
    struct bench_watch *w = current;
    uint64_t page_no;

    if (w != NULL && w->way->trap != NULL && (uint8_t *)info->si_addr >= w->view) {
        page_no = (uint64_t)((uint8_t *)info->si_addr - w->view) / w->page_bytes;
        if (page_no < w->n_pages
            && w->way->trap(w, page_no, is_store(w, context, page_no)) == 0)
            return;
    }
    (void)signal(sig, SIG_DFL); /* a bug of ours: die of it */
}

static void
catch_traps(void)
{
    struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

    (void)sigfillset(&sa.sa_mask); /* as the library's handler */
    (void)sigaction(SIGSEGV, &sa, NULL);
    (void)sigaction(SIGBUS, &sa, NULL);
}

/* ---- A transaction ------------------------------------------------------------------------ */

/* transact -- out nsp; ret 0 or errno. */
static int
transact(const struct watch *m, struct bench_watch *w, uint64_t seed, uint64_t *nsp)
{
    uint64_t ns;
    int rc;

    memset(w->found, 0, w->n_pages);
    w->n_order = 0;
    ns = bench_cpu_ns();
    rc = w->way->begin != NULL ? w->way->begin(w) : 0;
    if (rc != 0)
        return rc;
    current = w;
    for (uint64_t i = 0; i < m->pages; i++) {
        volatile unsigned *first =
            (volatile unsigned *)(void *)(w->view
                                          + bench_key(seed, i) % w->n_pages
                                                * w->page_bytes);

        if (i % 2 == 0)
            (void)*first;
        else
            ++*first;
    }
    current = NULL;
    rc = w->way->end(w);
    *nsp = bench_cpu_ns() - ns;
    return rc;
}

/* foresee -- what the next transaction touches, and leaves. */
static void
foresee(struct watch *m, uint64_t seed)
{
    memset(m->touched, 0, m->of);
    for (uint64_t i = 0; i < m->pages; i++) {
        uint64_t page_no = bench_key(seed, i) % m->of;

        m->touched[page_no] |= WATCH_TOUCHED;
        if (i % 2 != 0) {
            m->touched[page_no] |= WATCH_WRITTEN;
            m->value[page_no]++;
        }
    }
}

/* verify -- has the way found what was touched?  ret 0, or 1 after a message. */
static int
verify(const struct watch *m, const struct bench_watch *w)
{
    int mask = w->way->finds_reads ? WATCH_TOUCHED | WATCH_WRITTEN : WATCH_WRITTEN;

    for (uint64_t p = 0; p < m->of; p++) {
        unsigned value = *(const unsigned *)(const void *)(w->store + p * w->page_bytes);

        if ((w->found[p] & mask) != (m->touched[p] & mask))
            return bench_fail("%s: page %llu was found %d, but was %d", w->way->name,
                              (unsigned long long)p, w->found[p], m->touched[p]);
        if (value != m->value[p])
            return bench_fail("%s: page %llu has %u committed, not %u", w->way->name,
                              (unsigned long long)p, value, m->value[p]);
    }
    return 0;
}

/* ---- The experiment ------------------------------------------------------------------------ */

/* watch_open -- a way's store and view; a view that cannot be had says why.  ret 0, or 1 after
   a message. */
static int
watch_open(const struct watch *m, struct bench_watch *w, const struct bench_way *way)
{
    size_t bytes;

    *w = (struct bench_watch){.way = way,
                              .page_bytes = (size_t)sysconf(_SC_PAGESIZE),
                              .n_pages = m->of,
                              .uffd = {-1, -1},
                              .pagemap = -1};
    bytes = w->n_pages * w->page_bytes;
    w->file = memfd_create("xbench", MFD_CLOEXEC);
    if (w->file < 0 || ftruncate(w->file, (off_t)bytes) != 0)
        return bench_fail("memfd: %s", strerror(errno));
    w->store = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->file, 0);
    if ((void *)w->store == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    for (uint64_t p = 0; p < w->n_pages; p++) /* the first int is 0 */
        memset(w->store + p * w->page_bytes + sizeof(unsigned), (int)p | 1,
               w->page_bytes - sizeof(unsigned));
    w->found = calloc(w->n_pages, 1);
    w->order = calloc(w->n_pages, sizeof w->order[0]);
    if (w->found == NULL || w->order == NULL)
        return bench_fail("out of memory");
    (void)way->open(w);
    return 0;
}

static void
watch_close(struct bench_watch *w)
{
    if (w->way == NULL)
        return;
    bench_watch_close(w);
    free(w->found);
    free(w->order);
    if (w->store != NULL && (void *)w->store != MAP_FAILED)
        (void)munmap(w->store, w->n_pages * w->page_bytes);
    if (w->file >= 0)
        (void)close(w->file);
}

static int
run_rounds(struct watch *m)
{
    for (uint64_t round = 0; round <= m->rounds; round++) {
        bench_progress("watch", round, m->rounds);
        foresee(m, round);
        for (unsigned i = 0; i < bench_n_ways; i++) {
            unsigned k = (unsigned)((round + i) % bench_n_ways);
            struct bench_watch *w = &m->w[k];
            uint64_t ns;

            if (bench_interrupted())
                return bench_fail("interrupted");
            if (w->why[0] != '\0')
                continue;
            if (transact(m, w, round, &ns) != 0)
                return bench_fail("%s: %s", w->way->name, w->why);
            if (verify(m, w) != 0)
                return 1;
            if (round > 0) /* the first one finds nothing in its place */
                bench_sample_add(&m->us[k], (double)ns / 1e3 / (double)m->pages);
        }
    }
    bench_progress_clear();
    return 0;
}

static void
report(struct watch *m)
{
    if (!m->common.json) {
        bench_print_command(&m->common, "us of processor time per page");
        printf("%-32s %8s %8s %8s  %s\n", "way", "median", "min", "max", "knows");
    }
    for (unsigned k = 0; k < bench_n_ways; k++) {
        const struct bench_way *way = &bench_ways[k];
        struct bench_summary s = bench_summarize(&m->us[k]);

        if (m->w[k].why[0] != '\0') {
            fprintf(stderr, "xbench: %s is not available: %s\n", way->name, m->w[k].why);
            continue;
        }
        if (!m->common.json) {
            printf("%-32s %8.2f %8.2f %8.2f  %s\n", way->name, s.median, s.min, s.max,
                   way->knows);
            continue;
        }
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "watch");
        bench_json_str(stdout, "way", way->name);
        bench_json_str(stdout, "knows", way->knows);
        bench_json_u64(stdout, "pages", m->pages);
        bench_json_u64(stdout, "of", m->of);
        bench_json_u64(stdout, "n", s.n);
        bench_json_summary(stdout, "us_per_page", &s, 1);
        bench_json_str(stdout, "command", m->common.command);
        bench_json_end(stdout);
    }
}

/* run -- ret exit status. */
static int
run(struct watch *m)
{
    int rc = bench_n_ways <= WAYS_MAX ? 0 : 1;

    m->touched = calloc(m->of, 1);
    m->value = calloc(m->of, sizeof m->value[0]);
    if (m->touched == NULL || m->value == NULL)
        rc = bench_fail("out of memory");
    for (unsigned k = 0; k < bench_n_ways && rc == 0; k++) {
        rc = bench_sample_init(&m->us[k], m->rounds);
        if (rc == 0)
            rc = watch_open(m, &m->w[k], &bench_ways[k]);
    }
    catch_traps();
    if (rc == 0)
        rc = run_rounds(m);
    if (rc == 0)
        report(m);
    for (unsigned k = 0; k < bench_n_ways; k++) {
        watch_close(&m->w[k]);
        bench_sample_free(&m->us[k]);
    }
    free(m->touched);
    free(m->value);
    return rc;
}

int
bench_watch_main(int argc, char **argv)
{
    static struct watch m = {.pages = PAGES, .of = OF};
    const struct bench_option options[] = {
        {.name = "pages", .number = &m.pages, .low = 1, .high = UINT64_C(1) << 20},
        {.name = "of", .number = &m.of, .low = 1, .high = UINT64_C(1) << 20},
        {.name = "rounds", .number = &m.rounds, .low = 1, .high = 1000000},
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &m.common, &rc))
        return rc;
    if (m.rounds == 0)
        m.rounds = m.common.quick ? ROUNDS_QUICK : ROUNDS;
    bench_catch_signals();
    bench_progress_enable(m.common.quiet);
    return run(&m);
}
