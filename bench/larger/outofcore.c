/* SPDX-License-Identifier: MIT */
/*
 * outofcore.c -- the experiment `outofcore`: a B+-tree larger than the memory that libxac is
 * allowed (XAC_OPT_FRAMES), beside Berkeley DB with a cache of the same size.
 *
 * Durable inserts of random keys until the tree has --data bytes, then random searches, each
 * found value compared with the model.  libxac's process then goes on inserting until it is
 * killed; another process recovers, and walks the tree: every record has the value that
 * belongs to its key, and their keys together are those whose inserts have returned, or one
 * more.
 *
 * MEMORY    Is looked at from outside, in /proc and the shared memory's files, many times a
 *           second: what libxac's process has beyond what it had before it opened the
 *           environment.  More than the bound and a tenth of it fails the run.  With --limit
 *           each process has so much for everything, the page cache of its files included,
 *           without which Berkeley DB has all that the machine has left.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define XAC_NO_DEPRECATED
#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/memory.h"
#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/system.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define RECORD_BYTES (BENCH_KEY_BYTES + BENCH_VALUE_BYTES)
#define FILL         0.69 /* of a B+-tree after random inserts                              */
#define LOG_BUFFER   (UINT64_C(256) << 10)
#define LOOK_EVERY   50u /* ms                                                         */
#define EXTRA_SHARE  50u /* inserts before the kill: this part of the others           */

struct options {
    struct bench_common common;
    uint64_t data_bytes;
    uint64_t frames_bytes;
    uint64_t limit_bytes; /* 0: none                                                   */
    uint64_t searches;
    uint64_t seed;
    uint64_t count;
    struct bench_cgroup group; /* with that limit                                      */
};

enum stage {
    STAGE_START,
    STAGE_OPEN, /* memory counts from here on                                              */
    STAGE_SEARCH,
    STAGE_CRASH,
    STAGE_DONE
};

/* What the process at work tells. */
struct told {
    _Atomic uint64_t stage;
    _Atomic uint64_t inserted; /* that have returned                                   */
    uint64_t insert_ns, search_ns, open_ns;
    int rc;
    char words[300];
};

/* get, set -- one says where it is, the other looks now and then; relaxed. */
static uint64_t
get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void
set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/* One system. */
struct subject {
    const struct bench_system *system;
    bool is_bounded; /* by XAC_FRAMES                                                  */
};

/* What was found. */
struct outcome {
    uint64_t most_bytes; /* of memory                                                  */
    uint64_t crashed_at; /* inserts that had returned                                  */
    uint64_t found; /* records after recovery                                       */
};

static struct bench_config
config_of(const struct options *o, const struct bench_system *system, const char *dir)
{
    return (struct bench_config){
        .system = system,
        .dir = dir,
        .durable = true,
        .hints = true,
        .count = o->count + o->count / EXTRA_SHARE + 1000,
        .cache_bytes = o->frames_bytes,
        .block_bytes = 4096,
        .checkpoint_bytes = UINT64_C(256) << 20,
        .log_file_bytes = UINT64_C(16) << 20,
    };
}

/* ---- The process at work --------------------------------------------------------------- */

static int
insert_one(const struct options *o, const struct bench_system *s, void *handle,
           uint64_t i)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    uint64_t retries = 0;

    bench_key_encode(bench_key(o->seed, i), key);
    bench_value_fill(bench_key(o->seed, i), value);
    return s->insert(handle, key, value, &retries);
}

/* insert -- numbers up to `end`; ret 0 or a code. */
static int
insert(const struct options *o, const struct bench_system *s, void *handle, uint64_t end,
       struct told *t)
{
    int rc = 0;

    for (uint64_t i = get(&t->inserted); i < end && rc == 0; i++) {
        rc = insert_one(o, s, handle, i);
        if (rc == 0)
            set(&t->inserted, i + 1);
    }
    return rc;
}

static int
search(const struct options *o, const struct bench_system *s, void *handle)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    unsigned char model[BENCH_VALUE_BYTES];
    int rc = 0;

    for (uint64_t i = 0; i < o->searches && rc == 0; i++) {
        uint64_t number = bench_key(o->seed, bench_key(o->seed + 1, i) % o->count);

        bench_key_encode(number, key);
        bench_value_fill(number, model);
        rc = s->find(handle, key, value);
        if (rc == 0 && memcmp(value, model, sizeof model) != 0)
            rc = EBADMSG;
    }
    return rc;
}

/* work -- all but the walk. */
static int
work(const struct options *o, const struct subject *x, const struct bench_config *config,
     struct told *t)
{
    const struct bench_system *s = x->system;
    void *handle = NULL;
    uint64_t began;
    int rc;

    set(&t->stage, STAGE_OPEN);
    rc = s->open(config, true, &handle);
    if (rc != 0)
        return rc;
    began = bench_now_ns();
    rc = insert(o, s, handle, o->count, t);
    t->insert_ns = bench_now_ns() - began;
    set(&t->stage, STAGE_SEARCH);
    began = bench_now_ns();
    if (rc == 0)
        rc = search(o, s, handle);
    t->search_ns = bench_now_ns() - began;
    if (rc == 0 && x->is_bounded) { /* until we are killed */
        set(&t->stage, STAGE_CRASH);
        rc = insert(o, s, handle, config->count, t);
        return rc == 0 ? ETIME : rc;
    }
    return rc != 0 ? rc : s->close(handle);
}

/* What a walk has seen. */
struct tally {
    uint64_t n,
        keys; /* records, and their keys, all XORed                              */
    uint64_t last;
};

static int
visit(void *arg, const void *key, const void *value)
{
    unsigned char model[BENCH_VALUE_BYTES];
    struct tally *tally = arg;
    uint64_t number = bench_key_decode(key);

    if (tally->n > 0 && number <= tally->last)
        return EBADMSG;
    bench_value_fill(number, model);
    if (memcmp(value, model, sizeof model) != 0)
        return EBADMSG;
    tally->last = number;
    tally->keys ^= number;
    tally->n++;
    return 0;
}

/* walk -- after the crash: recovery, and every record. */
static int
walk(const struct options *o, const struct subject *x, const struct bench_config *config,
     struct told *t, uint64_t returned)
{
    const struct bench_system *s = x->system;
    struct tally tally = {0}, model = {0};
    uint64_t began = bench_now_ns();
    void *handle = NULL;
    int rc = s->open(config, false, &handle);

    t->open_ns = bench_now_ns() - began;
    if (rc == 0)
        rc = s->scan(handle, NULL, visit, &tally);
    if (rc == 0)
        rc = s->close(handle);
    for (; model.n < tally.n; model.n++)
        model.keys ^= bench_key(o->seed, model.n);
    set(&t->inserted, tally.n);
    if (rc == 0
        && (tally.n < returned || tally.n > returned + 1 || tally.keys != model.keys))
        return EBADMSG;
    return rc;
}

/* ---- Looking on -------------------------------------------------------------------------- */

/* look_on -- until the process ends, or has inserted enough to be killed; ret its status. */
static int
look_on(const struct options *o, const struct bench_config *config, pid_t pid,
        struct told *t, struct outcome *out)
{
    uint64_t base = bench_process_bytes(pid);
    char env[PATH_MAX];
    int status = 0;

    snprintf(env, sizeof env, "%s/env", config->dir);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        uint64_t n = get(&t->inserted);
        uint64_t own = bench_process_bytes(pid);
        uint64_t all = (own > base ? own - base : 0) + bench_env_bytes(env);

        if (get(&t->stage) == STAGE_START)
            base = own;
        else if (own != 0 && all > out->most_bytes)
            out->most_bytes = all;
        if (bench_interrupted()
            || (get(&t->stage) == STAGE_CRASH && n > o->count + o->count / EXTRA_SHARE)) {
            (void)kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
            return status;
        }
        bench_progress("inserts", n, config->count);
        bench_sleep_until(bench_now_ns() + (uint64_t)LOOK_EVERY * 1000000);
    }
    return status;
}

/* spawn -- a process that works, or walks; ret its pid. */
static pid_t
spawn(const struct options *o, const struct subject *x, const struct bench_config *config,
      struct told *t, bool walks)
{
    uint64_t returned = get(&t->inserted);
    char frames[32];
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (o->limit_bytes > 0 && bench_cgroup_enter(&o->group) != 0)
        _exit(1);
    bench_sleep_until(bench_now_ns() + UINT64_C(3) * LOOK_EVERY * 1000000);
    snprintf(frames, sizeof frames, "%llu", (unsigned long long)(o->frames_bytes / 4096));
    if (x->is_bounded) {
        (void)setenv("XAC_FRAMES", frames, 1);
        /* The bound is without the log buffer. */
        (void)xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, LOG_BUFFER);
    }
    t->rc = walks ? walk(o, x, config, t, returned) : work(o, x, config, t);
    if (t->rc != 0)
        snprintf(t->words, sizeof t->words, "%s",
                 t->rc == EBADMSG ? "records are not as they should be"
                                  : x->system->explain(t->rc));
    set(&t->stage, STAGE_DONE);
    _exit(t->rc == 0 ? 0 : 1);
}

/* print -- one system's figures. */
static void
print(const struct options *o, const struct subject *x, const struct told *t,
      const struct outcome *out)
{
    double us_insert = (double)t->insert_ns / 1e3 / (double)o->count;
    double us_search = (double)t->search_ns / 1e3 / (double)o->searches;
    double share = (double)out->most_bytes / (double)o->frames_bytes;

    if (!o->common.json) {
        printf("%-8s %10.1f %10.1f", x->system->name, us_insert, us_search);
        if (x->is_bounded)
            printf(" %10.1f %8.3f %10.1f %10llu\n", (double)out->most_bytes / 1048576,
                   share, (double)t->open_ns / 1e6, (unsigned long long)out->found);
        else
            putchar('\n');
        fflush(stdout);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "outofcore");
    bench_json_str(stdout, "system", x->system->name);
    bench_json_u64(stdout, "data_bytes", o->data_bytes);
    bench_json_u64(stdout, "frames_bytes", o->frames_bytes);
    bench_json_u64(stdout, "limit_bytes", o->limit_bytes);
    bench_json_u64(stdout, "count", o->count);
    bench_json_u64(stdout, "searches", o->searches);
    bench_json_num(stdout, "us_per_insert", us_insert);
    bench_json_num(stdout, "us_per_search", us_search);
    if (x->is_bounded) {
        bench_json_u64(stdout, "most_bytes", out->most_bytes);
        bench_json_num(stdout, "most_by_bound", share);
        bench_json_num(stdout, "recovery_seconds", (double)t->open_ns / 1e9);
        bench_json_u64(stdout, "records_recovered", out->found);
    }
    bench_json_u64(stdout, "seed", o->seed);
    bench_json_end(stdout);
}

/* run_subject -- one system in a directory of its own; ret 0, or 1 after a message. */
static int
run_subject(const struct options *o, const struct subject *x)
{
    struct outcome out = {0};
    char dir[BENCH_DIR_BYTES] = "";
    struct bench_config config = config_of(o, x->system, dir);
    struct told *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct outcome after = {0};
    int rc = t == MAP_FAILED ? bench_fail("mmap: %s", strerror(errno))
                             : bench_dir_make(&o->common, dir);
    int status;

    if (rc != 0)
        return rc;
    status = look_on(o, &config, spawn(o, x, &config, t, false), t, &out);
    out.crashed_at = get(&t->inserted);
    if (x->is_bounded && WIFSIGNALED(status) && !bench_interrupted()) {
        set(&t->stage, STAGE_OPEN);
        status = look_on(o, &config, spawn(o, x, &config, t, true), t, &after);
        out.found = get(&t->inserted);
    }
    bench_progress_clear();
    if (bench_interrupted())
        rc = bench_fail("interrupted");
    else if (status != 0)
        rc =
            bench_fail("outofcore: %s: %s (%llu inserts had returned, %llu found)",
                       x->system->name,
                       t->words[0] != '\0' ? t->words : "its process died",
                       (unsigned long long)out.crashed_at, (unsigned long long)out.found);
    else
        print(o, x, t, &out);
    if (rc == 0 && x->is_bounded
        && out.most_bytes > o->frames_bytes + o->frames_bytes / 10)
        rc = bench_fail("outofcore: %llu bytes of memory, %llu allowed",
                        (unsigned long long)out.most_bytes,
                        (unsigned long long)o->frames_bytes);
    (void)munmap(t, sizeof *t);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}

static void
usage(void)
{
    puts(
        "Durable inserts into a B+-tree larger than the memory it may use, and searches:\n"
        "libxac with XAC_OPT_FRAMES, Berkeley DB with a cache as large.  Everything found\n"
        "is compared with a model, libxac's process is killed and recovered, and its\n"
        "memory is looked at from outside: more than a tenth beyond --frames fails.\n"
        "Berkeley DB reads through the page cache, which --limit limits, too.\n"
        "\n"
        "  --data BYTES     of the tree, about; default 2G\n"
        "  --frames BYTES   default 256M\n"
        "  --limit BYTES    memory of each process, the page cache of its files included,\n"
        "                   by a control group; default none\n"
        "  --searches N     default 100000\n"
        "  --quick          64M in 16M, 2000 searches\n"
        "  --seed S         default 1\n"
        "  --dir DIR        where the trees go; default the current directory\n"
        "  --json, --quiet, --help");
}

int
bench_outofcore_main(int argc, char **argv)
{
    static struct options o = {.seed = 1};
    const struct bench_option table[] = {
        {.name = "data",
         .number = &o.data_bytes,
         .low = 1 << 20,
         .high = UINT64_C(1) << 40},
        {.name = "frames",
         .number = &o.frames_bytes,
         .low = 1 << 20,
         .high = UINT64_C(1) << 40},
        {.name = "limit",
         .number = &o.limit_bytes,
         .low = 1 << 20,
         .high = UINT64_C(1) << 40},
        {.name = "searches", .number = &o.searches, .low = 1, .high = 1 << 30},
        {.name = "seed", .number = &o.seed, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    static const struct subject subjects[] = {
        {.system = &bench_btree, .is_bounded = true},
#ifdef HAVE_BDB
        {.system = &bench_bdb},
#endif
    };
    char why[200];
    int rc = 0;

    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (o.data_bytes == 0)
        o.data_bytes = UINT64_C(64) << (o.common.quick ? 20 : 25);
    if (o.frames_bytes == 0)
        o.frames_bytes = UINT64_C(1) << (o.common.quick ? 24 : 28);
    if (o.searches == 0)
        o.searches = o.common.quick ? 2000 : 100000;
    o.count = (uint64_t)((double)o.data_bytes * FILL / RECORD_BYTES);
    if (o.limit_bytes > 0
        && !bench_cgroup_make(&o.group, 0, o.limit_bytes, why, sizeof why))
        return bench_fail("outofcore: --limit: %s", why);
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (!o.common.json)
        printf("%-8s %10s %10s %10s %8s %10s %10s\n", "system", "us/insert", "us/search",
               "MiB most", "of bound", "ms recov.", "recovered");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && rc == 0; i++)
        rc = run_subject(&o, &subjects[i]);
    if (o.limit_bytes > 0)
        bench_cgroup_remove(&o.group);
    return rc;
}
