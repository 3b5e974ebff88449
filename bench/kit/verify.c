/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/verify.h"

#include <errno.h>
#include <stdio.h>

#include "bench/kit/util.h"

#define SAMPLE 1000u /* keys looked up one by one */

/* Running state of the walk. */
struct walk {
    const struct bench_job *job;
    uint64_t n;    /* records seen */
    uint64_t last; /* key before   */
    uint64_t sum;  /* of all keys  */
    char *text;
    size_t text_bytes;
};

/* visit -- order and value of one record. */
static int
visit(void *arg, const void *key, const void *value)
{
    struct walk *walk = arg;
    uint64_t number = bench_key_decode(key);

    if (walk->n > 0 && number <= walk->last) {
        snprintf(walk->text, walk->text_bytes, "key %016llx comes after %016llx",
                 (unsigned long long)number, (unsigned long long)walk->last);
        return EBADMSG;
    }
    if (!bench_job_value_right(walk->job, number, value)) {
        snprintf(walk->text, walk->text_bytes, "key %016llx has a wrong value",
                 (unsigned long long)number);
        return EBADMSG;
    }
    walk->n++;
    walk->sum += number;
    walk->last = number;
    return 0;
}

/* look_up_sample -- evenly spread over the order of insertion. */
static int
look_up_sample(const struct bench_system *system, void *handle, const struct walk *walk,
               uint64_t count)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    uint64_t step = count / SAMPLE + 1;

    for (uint64_t i = 0; i < count; i += step) {
        uint64_t number = bench_job_key(walk->job, i);
        int rc;

        bench_key_encode(number, key);
        rc = system->find(handle, key, value);
        if (rc == 0 && bench_job_value_right(walk->job, number, value))
            continue;
        if (rc != 0 && rc != ENOENT)
            return rc;
        snprintf(walk->text, walk->text_bytes, "record %llu, key %016llx: %s",
                 (unsigned long long)i, (unsigned long long)number,
                 rc == ENOENT ? "not found" : "wrong value");
        return EBADMSG;
    }
    return 0;
}

int
bench_verify(const struct bench_system *system, void *handle, const struct bench_job *job,
             char *text, size_t text_bytes)
{
    struct walk walk = {.job = job, .text = text, .text_bytes = text_bytes};
    uint64_t sum = 0, count = bench_job_records_left(job);
    int rc = system->scan(handle, NULL, visit, &walk);

    if (rc != 0)
        return rc;
    for (uint64_t i = 0; i < count; i++)
        sum += bench_job_key(job, i);
    if (walk.n != count || walk.sum != sum) {
        snprintf(text, text_bytes, "%llu records where %llu were inserted%s",
                 (unsigned long long)walk.n, (unsigned long long)count,
                 walk.n == count ? ", but others" : "");
        return EBADMSG;
    }
    return look_up_sample(system, handle, &walk, count);
}
