/* SPDX-License-Identifier: MIT */
/*
 * checksum.c -- the experiment `checksum`: Thesis table C.8 with the checksums of this
 * log, for a page and for the records of a small transaction.
 *
 * One computation at a time is timed, as the Thesis did it; the kinds take turns, so that
 * a slow moment hits all.  Pages are of random bytes, another one each time out of a set
 * that fits the second-level cache.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <xxhash.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/micro.h"
#include "bench/main/xbench.h"

#define PAGE_BYTES   4096u
#define BLOCK_BYTES  640u /* records of an insert of 512 bytes */
#define PAGES        64u
#define KINDS        3u
#define ROUNDS       UINT64_C(100000)
#define ROUNDS_QUICK UINT64_C(20000)
#define ROUNDS_MAX   UINT64_C(100000000)

static const struct {
    const char *name;
    const char *words;
} kinds[KINDS] = {
    [XAC_CHECKSUM_XXH3] = {"xxh3", "xxh3 (default)"},
    [XAC_CHECKSUM_MD5] = {"md5", "md5"},
    [XAC_CHECKSUM_SHA1] = {"sha1", "sha1"},
};

/* digest -- as the library does it; ret 0, or 1 if libcrypto refuses. */
static int
digest(unsigned kind, const void *data, size_t n, unsigned char out[EVP_MAX_MD_SIZE])
{
    unsigned len = 0;

    if (kind == XAC_CHECKSUM_XXH3) {
        uint64_t h = XXH3_64bits(data, n);

        memcpy(out, &h, sizeof h);
        return 0;
    }
    return EVP_Digest(data, n, out, &len,
                      kind == XAC_CHECKSUM_MD5 ? EVP_md5() : EVP_sha1(), NULL)
                   == 1
               ? 0
               : 1;
}

static void
usage(void)
{
    puts("Times the log's checksums of 4096 bytes and of 640 bytes, the records of a\n"
         "small insert (Thesis table C.8).\n"
         "\n"
         "  --rounds N  computations of each; default 100000\n"
         "  --json      one JSON object per checksum and size\n"
         "  --quick     20000 rounds\n"
         "  --help");
}

/* measure -- all kinds in turns; ret 0, or 1 after a message. */
static int
measure(struct bench_sample samples[KINDS], uint64_t rounds, size_t n_bytes)
{
    static uint64_t page[PAGES][PAGE_BYTES / 8];
    unsigned char out[EVP_MAX_MD_SIZE];

    for (size_t i = 0; i < PAGES * PAGE_BYTES / 8; i++)
        page[i / (PAGE_BYTES / 8)][i % (PAGE_BYTES / 8)] = bench_key(n_bytes, i);
    for (unsigned k = 0; k < KINDS; k++)
        samples[k].n = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned j = 0; j < KINDS; j++) {
            unsigned k = (unsigned)((i + j) % KINDS);
            uint64_t t0 = bench_ticks(), t1;
            int rc = digest(k, page[i % PAGES], n_bytes, out);

            t1 = bench_ticks();
            if (rc != 0)
                return bench_fail("%s: not in this build of libcrypto", kinds[k].name);
            bench_sample_add(&samples[k], (double)(t1 - t0));
        }
    }
    return 0;
}

/* report -- one kind and size. */
static void
report(const struct bench_common *c, unsigned kind, size_t n_bytes,
       struct bench_sample *sample)
{
    struct bench_summary s = bench_summarize(sample);
    char label[64];

    if (!c->json) {
        snprintf(label, sizeof label, "%s of %zu bytes", kinds[kind].words, n_bytes);
        bench_print_row(label, &s, bench_ticks_per_us());
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "checksum");
    bench_json_str(stdout, "checksum", kinds[kind].name);
    bench_json_u64(stdout, "bytes", n_bytes);
    bench_json_ticks(stdout, &s);
    bench_json_num(stdout, "mb_per_s_median",
                   (double)n_bytes * bench_ticks_per_us() / s.median);
    bench_json_str(stdout, "command", c->command);
    bench_json_end(stdout);
}

/* run -- both sizes; ret 0, or 1 after a message. */
static int
run(const struct bench_common *c, uint64_t rounds)
{
    static const size_t sizes[] = {PAGE_BYTES, BLOCK_BYTES};
    struct bench_sample samples[KINDS] = {{0}};
    int rc = 0;

    if (!c->json) {
        bench_print_command(c, "in microseconds");
        bench_print_columns("checksum", "us");
    }
    for (unsigned k = 0; k < KINDS && rc == 0; k++)
        rc = bench_sample_init(&samples[k], rounds);
    for (size_t s = 0; s < 2 && rc == 0; s++) {
        rc = measure(samples, rounds, sizes[s]);
        for (unsigned k = 0; k < KINDS && rc == 0; k++)
            report(c, k, sizes[s], &samples[k]);
    }
    for (unsigned k = 0; k < KINDS; k++)
        bench_sample_free(&samples[k]);
    return rc;
}

int
bench_checksum_main(int argc, char **argv)
{
    struct bench_common common;
    uint64_t rounds = 0;
    const struct bench_option options[] = {
        {.name = "rounds", .number = &rounds, .low = 1, .high = ROUNDS_MAX},
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &common, &rc))
        return rc;
    if (rounds == 0)
        rounds = common.quick ? ROUNDS_QUICK : ROUNDS;
    return run(&common, rounds);
}
