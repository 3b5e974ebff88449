/* SPDX-License-Identifier: MIT */
/*
 * fuzz_log.c -- recovery of environments whose files have been damaged.
 *
 * Environments are left behind by recorded runs (tests/crash/powercut.h), with several
 * segments, checkpoints, data files and a log to redo.  Their files are damaged (mutate.h)
 * and recovered.  Recovery must not crash, hang or touch memory that is not its own (run it
 * under the sanitizers); if it refuses it says why, and has changed nothing; if it does not,
 * nothing is missing below the position that the remaining files prove to have been synced
 * (doc/formats.md, "Torn tail or damage"), and no transaction is half there.
 *
 *   fuzz_log                for XAC_SECONDS (6), or XAC_CASES cases; XAC_SEED=n, XAC_CASE=n
 *                           for case n of that seed alone
 *   fuzz_log FILE...        the bytes of each file are the choices, as with libFuzzer
 *
 * For libFuzzer: clang -fsanitize=fuzzer -DXAC_LIBFUZZER, which leaves out main().
 */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../crash/powercut.h"
#include "base/err.h"
#include "mutate.h"
#include "recovery/recover.h"

#define CORPORA     4u
#define TRACE_BYTES ((size_t)64 << 20)
#define HANG_S      20u
#define BATCH       2000u /* cases of one process                                         */
#define USER_FILE   "b.db"

/* An environment to be damaged. */
struct corpus {
    struct run run;
    struct promise promise;
    struct disk_state *state;
    struct blobs files;
    struct known known;
    uint64_t (
        *count)[WRITERS]; /* transactions in the log up to known.end[i]             */
};

enum verdict {
    SAID,
    RECOVERED,
    LOST,
    PARTIAL,
    SILENT,
    CHANGED,
    CRASHED,
    HUNG,
    VERDICTS
};

static const char *const verdict_name[VERDICTS] = {"refused", "recovered", "lost",
                                                   "partial", "silent",    "changed",
                                                   "crashed", "hung"};

struct totals {
    _Atomic uint64_t verdict[MUTATIONS][VERDICTS];
    _Atomic uint64_t mutation,
        number; /* of the case at hand                             */
};

static struct corpus corpus[CORPORA];
static struct totals *totals;
static struct record_trace *trace;
static char root[400];
static char db[500];

/* ---- Environments ------------------------------------------------------------------------ */

/* lay_out -- the files of an environment, as they were left. */
static void
lay_out(const struct corpus *c)
{
    disk_state_write(c->state, root, trace);
}

/* record_one -- a run, up to its end; what is in the page cache then is what is damaged. */
static void
record_one(struct corpus *c, unsigned script, uint64_t seed)
{
    const struct record_event *ev;
    struct disk *d;

    snprintf(c->run.root, sizeof c->run.root, "%s", root);
    c->run.script = &scripts[script];
    c->run.seed = seed;
    c->run.trace = trace;
    memset(&c->promise, 0, sizeof c->promise);
    work_history(&c->run);
    work_record(&c->run);
    d = disk_new(record_root(trace));
    for (uint64_t at = 0; (ev = record_at(trace, at)) != NULL; at = record_next(ev, at)) {
        if (ev->kind == RECORD_NOTE)
            work_note(ev, &c->promise);
        else
            disk_follow(d, ev, at);
    }
    c->state = disk_crash(d, DISK_KEEP, 0);
    disk_state_detach(c->state);
    disk_free(d);
    record_pause(true);
}

/*
 * count_no_more -- let no length of the log count more than a longer one does.  A log cut below
 * the begin of the last checkpoint leaves in the mapped files what that had copied from
 * behind the cut (doc/formats.md, "What cannot be told apart"); a little more of the log puts
 * older bytes over it.
 */
static void
count_no_more(struct corpus *c)
{
    for (size_t i = c->known.n_ends; i-- > 1;) {
        for (unsigned w = 0; w < WRITERS; w++) {
            if (c->count[i - 1][w] > c->count[i][w])
                c->count[i - 1][w] = c->count[i][w];
        }
    }
}

/* count_blocks -- how many transactions each length of the log holds. */
static void
count_blocks(struct corpus *c)
{
    const struct known *k = &c->known;

    c->count = (uint64_t(*)[WRITERS])calloc(k->n_ends + 1, sizeof c->count[0]);
    must(c->count != NULL);
    for (size_t i = 0; i < k->n_ends; i++) {
        struct known cut;

        lay_out(c);
        mutate_cut_log(db, k->end[i], k->segment_bytes);
        mutate_known(db, &cut);
        free(cut.end);
        /* Shorter than the last checkpoint would be damage: it counts as nothing. */
        if (k->end[i] >= cut.synced_lsn) {
            must_ok(xac_recover(db));
            judge_counts(&c->run, c->count[i]);
        }
    }
    count_no_more(c);
}

/* corpus_make -- a run that ended with a crash and has left something to redo. */
static void
corpus_make(struct corpus *c, unsigned script, uint64_t seed)
{
    for (;; seed++) {
        record_one(c, script, seed);
        lay_out(c);
        mutate_known(db, &c->known);
        if (c->known.n_ends > 12)
            break;
        free(c->known.end);
        disk_state_free(c->state);
    }
    c->files = blobs_read(db, USER_FILE);
    count_blocks(c);
}

/* prepare -- directories and environments. */
static void
prepare(void)
{
    static const unsigned script[CORPORA] = {1, 2, 8, 4};
    char cwd[300], shm[500];

    env_in_memory();
    env_open();
    must(getcwd(cwd, sizeof cwd) != NULL);
    snprintf(root, sizeof root, "%s/root", cwd);
    snprintf(shm, sizeof shm, "%s/shm", cwd);
    snprintf(db, sizeof db, "%s/%s", root, work_path[0]);
    must(mkdir(root, 0777) == 0 && mkdir(shm, 0777) == 0);
    must(setenv("XAC_SHM_DIR", shm, 1) == 0);
    totals = (struct totals *)proc_shared(sizeof *totals);
    trace = record_new(TRACE_BYTES);
    for (unsigned i = 0; i < CORPORA; i++)
        corpus_make(&corpus[i], script[i], env_seed() + 100 * i);
}

/* ---- One case ---------------------------------------------------------------------------- */

/* floor_of -- what must be there: all below the position that is known to be synced. */
static struct promise
floor_of(const struct corpus *c, const struct known *now)
{
    struct promise p = {.acknowledged = {0}};

    memcpy(p.tried, c->promise.tried, sizeof p.tried);
    for (size_t i = 0; i < c->known.n_ends; i++) {
        if (c->known.end[i] <= now->synced_lsn)
            memcpy(p.acknowledged, c->count[i], sizeof p.acknowledged);
    }
    return p;
}

/* damage_again -- the same damage once more. */
static enum mutation
damage_again(const struct corpus *c, struct choices *ch, char *words, size_t words_size)
{
    const struct corpus *other = &corpus[(size_t)(c - corpus + 1) % CORPORA];

    lay_out(c);
    return mutate(db, &c->files, &other->files, ch, words, words_size);
}

/*
 * is_cut_below -- whether the log now ends below the begin of the last checkpoint, and no
 * file proves that it had been longer.  Then the mapped files may hold what the checkpoint
 * had copied, though the log has lost it (doc/formats.md, "What cannot be told apart").
 */
static bool
is_cut_below(const struct corpus *c, struct choices again)
{
    const struct xac_recover_options options = {.dry_run = true};
    struct xac_recover_report report = {.end_lsn = 0};
    char words[400];
    int fd;

    (void)damage_again(c, &again, words, sizeof words);
    fd = open(db, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0);
    must_ok(xac_recover_dir(fd, &options, &report, NULL));
    (void)close(fd);
    return report.end_lsn <= c->known.last_begin;
}

/* judge_recovered -- a damaged environment was recovered without complaint. */
static enum verdict
judge_recovered(const struct corpus *c, enum mutation m, const struct known *now,
                const struct choices *again, char *words, size_t words_size)
{
    struct promise p = floor_of(c, now);
    enum outcome o;

    /* What was sealed anew is no damage; without our newest record, nothing is known. */
    if (m == MUTATE_RESEAL || m == MUTATE_MASTER || m == MUTATE_FOREIGN)
        return RECOVERED;
    if (now->generation != c->known.generation)
        return now->has_newer ? LOST : RECOVERED;
    o = judge_files(&c->run, &p, words, words_size);
    if (o != OUTCOME_RIGHT)
        return o == OUTCOME_LOST ? LOST : is_cut_below(c, *again) ? RECOVERED : PARTIAL;
    return xac_recover(db) == 0 ? RECOVERED : CHANGED;
}

/* one_case -- ret what came of it; words in detail. */
static enum verdict
one_case(struct choices *ch, char *words, size_t words_size)
{
    unsigned which = (unsigned)choose(ch, CORPORA);
    const struct corpus *c = &corpus[which];
    bool opens = choose(ch, 8) == 0;
    struct choices again;
    struct known now;
    enum verdict v;
    uint64_t was;
    enum mutation m;
    int rc;

    again = *ch;
    m = damage_again(c, ch, words, words_size);
    word_store(&totals->mutation, m);
    mutate_known(db, &now);
    was = judge_hash(&c->run);
    xac_err_clear();
    rc = xac_recover(db);
    if (rc != 0)
        v = xac_last_error()[0] == '\0'  ? SILENT
            : judge_hash(&c->run) != was ? CHANGED
                                         : SAID;
    else
        v = judge_recovered(c, m, &now, &again, words, words_size);
    if (opens && (m == MUTATE_RESEAL || rc == 0))
        (void)work_continue(&c->run, 1);
    free(now.end);
    return v;
}

/* show -- a line for a case that did not come out right. */
static void
show(uint64_t number, enum verdict v, enum mutation m, const char *words)
{
    printf("%s: case %llu (XAC_CASE) of seed %llu: %s: %s\n", verdict_name[v],
           (unsigned long long)number, (unsigned long long)env_seed(), mutation_name[m],
           words);
    fflush(stdout);
}

static void
run_case(uint64_t number, struct choices *ch)
{
    char words[400] = "";
    enum verdict v;
    enum mutation m;

    word_store(&totals->number, number);
    alarm(HANG_S);
    v = one_case(ch, words, sizeof words);
    alarm(0);
    m = (enum mutation)word_load(&totals->mutation);
    word_add(&totals->verdict[m][v], 1);
    if (v > RECOVERED)
        show(number, v, m, words);
}

/* ---- Many cases -------------------------------------------------------------------------- */

struct batch {
    uint64_t first, n;
    double deadline;
};

static void
run_batch(void *arg)
{
    const struct batch *b = (const struct batch *)arg;

    for (uint64_t i = b->first; i < b->first + b->n && env_now() < b->deadline; i++) {
        struct choices ch = {.seed = env_seed() * 1000003 + i};

        run_case(i, &ch);
    }
}

/* run_batches -- processes one after the other; one that dies is a finding. */
static void
run_batches(uint64_t first, uint64_t n, double deadline)
{
    uint64_t end = first + n;

    while (first < end && env_now() < deadline) {
        struct batch b = {first, end - first < BATCH ? end - first : BATCH, deadline};
        int status = proc_wait(proc_spawn(run_batch, &b));
        enum mutation m = (enum mutation)word_load(&totals->mutation);
        enum verdict v =
            WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? HUNG : CRASHED;

        if (status == 0) {
            first += b.n;
            continue;
        }
        word_add(&totals->verdict[m][v], 1);
        show(word_load(&totals->number), v, m,
             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
        first = word_load(&totals->number) + 1;
    }
}

/* print_table -- ret cases that did not come out right. */
static uint64_t
print_table(void)
{
    uint64_t sum[VERDICTS] = {0}, wrong = 0, n = 0;

    printf("%-10s", "damage");
    for (unsigned v = 0; v < VERDICTS; v++)
        printf(" %9s", verdict_name[v]);
    printf("\n");
    for (unsigned m = 0; m < MUTATIONS; m++) {
        printf("%-10s", mutation_name[m]);
        for (unsigned v = 0; v < VERDICTS; v++) {
            uint64_t x = word_load(&totals->verdict[m][v]);

            printf(" %9llu", (unsigned long long)x);
            sum[v] += x;
            n += x;
            wrong += v > RECOVERED ? x : 0;
        }
        printf("\n");
    }
    printf("%llu damaged environments, %llu refused, %llu recovered, %llu wrong\n",
           (unsigned long long)n, (unsigned long long)sum[SAID],
           (unsigned long long)sum[RECOVERED], (unsigned long long)wrong);
    return wrong;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices ch = {.data = data, .left = size};
    char words[400] = "";

    if (totals == NULL)
        prepare();
    if (one_case(&ch, words, sizeof words) > RECOVERED) {
        fprintf(stderr, "%s\n", words);
        abort();
    }
    return 0;
}

#ifndef XAC_LIBFUZZER

/* run_file -- a file's bytes as choices. */
static void
run_file(const char *path)
{
    static uint8_t bytes[65536];
    FILE *f = fopen(path, "rb");
    size_t n;

    must(f != NULL);
    n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(bytes, n);
}

int
main(int argc, char **argv)
{
    uint64_t one = env_number("XAC_CASE", 0);
    uint64_t cases = env_number("XAC_CASES", 0);
    double seconds = (double)env_number("XAC_SECONDS", 6);

    prepare();
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    if (one != 0)
        run_batches(one, 1, env_now() + 1e6);
    else if (cases != 0)
        run_batches(1, cases, env_now() + 1e6);
    else if (argc == 1)
        run_batches(1, UINT64_MAX / 2, env_now() + seconds);
    env_close();
    return print_table() != 0;
}

#endif /* XAC_LIBFUZZER */
