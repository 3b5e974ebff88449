/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/workload.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/kit/util.h"

#define THETA      0.99 /* YCSB's constant of the Zipfian distribution */
#define SCAN_E_MAX 100u

/* Seeds of choices, apart from those of keys. */
enum {
    CHOICE_RECORD = 101,
    CHOICE_KIND,
    CHOICE_LENGTH
};

/* choose -- a random number that belongs to step i. */
static uint64_t
choose(const struct bench_job *job, unsigned what, uint64_t i)
{
    return bench_key(job->seed * 1000 + what, i);
}

/* uniform -- in [0, 1). */
static double
uniform(uint64_t random)
{
    return (double)(random >> 11) / (double)(UINT64_C(1) << 53);
}

/* zeta -- sum of 1 / k^THETA for k = 1 .. n. */
static double
zeta(uint64_t n)
{
    double sum = 0;

    for (uint64_t k = 1; k <= n; k++)
        sum += pow((double)k, -THETA);
    return sum;
}

/* zipf -- 0 the likeliest, below job->loaded (J. Gray et al., SIGMOD 1994, as in YCSB). */
static uint64_t
zipf(const struct bench_job *job, uint64_t random)
{
    double n = (double)job->loaded, u = uniform(random), uz = u * job->zeta;
    double zeta2 = 1 + pow(0.5, THETA);
    double eta = (1 - pow(2 / n, 1 - THETA)) / (1 - zeta2 / job->zeta);
    uint64_t k;

    if (uz < 1)
        return 0;
    if (uz < zeta2)
        return 1;
    k = (uint64_t)(n * pow(eta * u - eta + 1, 1 / (1 - THETA)));
    return k < job->loaded ? k : job->loaded - 1;
}

/* any_record -- each of those loaded is as likely. */
static uint64_t
any_record(const struct bench_job *job, uint64_t i)
{
    return choose(job, CHOICE_RECORD, i) % job->loaded;
}

/* hot_record -- by the Zipfian distribution; which are hot is random. */
static uint64_t
hot_record(const struct bench_job *job, uint64_t i)
{
    uint64_t k = zipf(job, choose(job, CHOICE_RECORD, i));

    return bench_key(job->seed + 7, k) % job->loaded;
}

/* ---- Workloads ---------------------------------------------------------------------- */

static void
make_insert(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    *out = (struct bench_step){.kind = BENCH_STEP_INSERT, .record = job->loaded + i};
}

static void
make_search(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    *out = (struct bench_step){.kind = BENCH_STEP_FIND, .record = any_record(job, i)};
}

static void
make_scan(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    *out = (struct bench_step){.kind = BENCH_STEP_SCAN,
                               .record = any_record(job, i),
                               .length = job->scan_length};
}

/* make_mixed -- reads of hot records, and so many percent of another kind. */
static void
make_mixed(const struct bench_job *job, uint64_t i, struct bench_step *out,
           unsigned percent, enum bench_step_kind kind)
{
    bool other = choose(job, CHOICE_KIND, i) % 100 < percent;

    *out = (struct bench_step){.kind = other ? kind : BENCH_STEP_FIND,
                               .record = hot_record(job, i),
                               .version = i + 1};
}

static void
make_a(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    make_mixed(job, i, out, 50, BENCH_STEP_PUT);
}

static void
make_b(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    make_mixed(job, i, out, 5, BENCH_STEP_PUT);
}

static void
make_c(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    make_mixed(job, i, out, 0, BENCH_STEP_FIND);
}

static void
make_f(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    make_mixed(job, i, out, 50, BENCH_STEP_MODIFY);
}

/* insert_or -- every 20th step inserts; ret whether this one does. */
static bool
insert_or(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    *out = (struct bench_step){.kind = BENCH_STEP_INSERT, .record = job->loaded + i / 20};
    return i % 20 == 0;
}

static void
make_d(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    uint64_t newest = job->loaded + i / 20;

    if (insert_or(job, i, out))
        return;
    /* Another process may be behind with its inserts. */
    *out =
        (struct bench_step){.kind = BENCH_STEP_FIND,
                            .record = newest - zipf(job, choose(job, CHOICE_RECORD, i)),
                            .may_miss = true};
}

static void
make_e(const struct bench_job *job, uint64_t i, struct bench_step *out)
{
    if (insert_or(job, i, out))
        return;
    *out = (struct bench_step){.kind = BENCH_STEP_SCAN,
                               .record = hot_record(job, i),
                               .length = 1 + choose(job, CHOICE_LENGTH, i) % SCAN_E_MAX};
}

const struct bench_workload bench_workloads[] = {
    {"insert", "insert", "a new record each time", false, 1, make_insert, false},
    {"search", "search", "any record, each as likely", false, 0, make_search, false},
    {"search-writer", "search", "the same; one more process or thread inserts meanwhile",
     false, 1, make_search, true},
    {"scan", "scan", "records in order of keys, from any one on", false, 0, make_scan,
     false},
    {"ycsb-a", "operation", "YCSB A: half reads, half updates", true, 0, make_a, false},
    {"ycsb-b", "operation", "YCSB B: 95 % reads, 5 % updates", true, 0, make_b, false},
    {"ycsb-c", "operation", "YCSB C: reads", false, 0, make_c, false},
    {"ycsb-d", "operation", "YCSB D: 95 % reads of the latest, 5 % inserts", false, 20,
     make_d, false},
    {"ycsb-e", "operation", "YCSB E: 95 % scans of up to 100, 5 % inserts", false, 20,
     make_e, false},
    {"ycsb-f", "operation", "YCSB F: half reads, half read-modify-write", true, 0, make_f,
     false},
    {.name = NULL},
};

void
bench_job_prepare(struct bench_job *job)
{
    job->zeta = zeta(job->loaded);
}

uint64_t
bench_job_records(const struct bench_job *job, uint64_t steps)
{
    uint64_t every = job->workload->insert_every;

    return job->loaded + (every == 0 ? 0 : (steps + every - 1) / every);
}

uint64_t
bench_job_records_left(const struct bench_job *job)
{
    return job->workload->has_writer ? job->loaded + job->written
                                     : bench_job_records(job, job->steps);
}

/* ---- Records ------------------------------------------------------------------------ */

uint64_t
bench_job_key(const struct bench_job *job, uint64_t record)
{
    switch (job->keys) {
    case BENCH_KEYS_SORTED:
        return (record + 1) << 20;
    case BENCH_KEYS_PATHS:
        return (job->ranks[record] + 1) << 20;
    default:
        return bench_key(job->seed, record);
    }
}

void
bench_job_value(const struct bench_job *job, uint64_t key, uint64_t version,
                unsigned char *value)
{
    bench_value_fill(key + version, value);
    if (job->workload->changes)
        memcpy(value, &version, sizeof version);
}

bool
bench_job_value_right(const struct bench_job *job, uint64_t key,
                      const unsigned char *value)
{
    unsigned char expected[BENCH_VALUE_BYTES];
    uint64_t version = 0;

    if (job->workload->changes)
        memcpy(&version, value, sizeof version);
    if (version > job->steps)
        return false;
    bench_job_value(job, key, version, expected);
    return memcmp(value, expected, sizeof expected) == 0;
}

/* ---- Doing a step ------------------------------------------------------------------- */

/* A scan under way. */
struct scan {
    uint64_t left;
    uint64_t sum; /* of a byte of each value, so that values are touched */
};

/* scan_visit -- stops, with EXDEV, when enough have been seen. */
static int
scan_visit(void *arg, const void *key, const void *value)
{
    struct scan *scan = arg;

    (void)key;
    scan->sum += *(const unsigned char *)value;
    return --scan->left == 0 ? EXDEV : 0;
}

int
bench_job_do(const struct bench_job *job, const struct bench_system *system, void *handle,
             const struct bench_step *step, uint64_t *retriesp, uint64_t *startp,
             uint64_t *endp)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES], old[BENCH_VALUE_BYTES];
    uint64_t number = bench_job_key(job, step->record);
    struct scan scan = {.left = step->length};
    int rc = 0;

    bench_key_encode(number, key);
    if (step->kind != BENCH_STEP_FIND && step->kind != BENCH_STEP_SCAN)
        bench_job_value(job, number, step->version, value);
    *startp = bench_now_ns();
    switch (step->kind) {
    case BENCH_STEP_INSERT:
        rc = system->insert(handle, key, value, retriesp);
        break;
    case BENCH_STEP_MODIFY:
        rc = system->find(handle, key, old);
        if (rc == 0)
            rc = system->put(handle, key, value, retriesp);
        break;
    case BENCH_STEP_PUT:
        rc = system->put(handle, key, value, retriesp);
        break;
    case BENCH_STEP_FIND:
        rc = system->find(handle, key, value);
        break;
    case BENCH_STEP_SCAN:
        rc = system->scan(handle, key, scan_visit, &scan);
        break;
    }
    *endp = bench_now_ns();
    if ((rc == ENOENT && step->may_miss) || rc == EXDEV)
        return 0;
    return rc;
}
