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

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <xxhash.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "util.h"
#include "xbench.h"

#define PAGE_BYTES  4096u
#define BLOCK_BYTES 640u /* records of an insert of 512 bytes */
#define PAGES       64u
#define KINDS       3u
#define ROUNDS_MAX  UINT64_C(100000000)

static const char *const kind_names[KINDS] = {
    [XAC_CHECKSUM_XXH3] = "xxh3 (default)",
    [XAC_CHECKSUM_MD5] = "md5",
    [XAC_CHECKSUM_SHA1] = "sha1",
};

/* cycles -- the processor's time stamp; 0 where there is none. */
static inline uint64_t
cycles(void)
{
#if defined __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

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

/* Times of one kind and size. */
struct times {
    uint32_t *ns;
    uint32_t *cycles;
};

static void
usage(void)
{
    puts("usage: xbench checksum [--rounds N] [--json]\n"
         "\n"
         "Times the log's checksums of 4096 bytes and of 640 bytes, the records of a\n"
         "small insert: N computations of each (default 100000).  Thousands of cycles\n"
         "beside those of the Thesis, table C.8, machine 1, for a page: md5 36.3 on\n"
         "average, sha1 85.6.");
}

/* measure -- all kinds in turns; ret 0, or 1 after a message. */
static int
measure(struct times times[KINDS], uint64_t rounds, size_t n_bytes)
{
    static uint64_t page[PAGES][PAGE_BYTES / 8];
    unsigned char out[EVP_MAX_MD_SIZE];

    for (size_t i = 0; i < PAGES * PAGE_BYTES / 8; i++)
        page[i / (PAGE_BYTES / 8)][i % (PAGE_BYTES / 8)] = bench_key(n_bytes, i);
    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < KINDS; k++) {
            uint64_t t0 = bench_now_ns(), c0 = cycles(), c1;
            int rc = digest(k, page[i % PAGES], n_bytes, out);

            c1 = cycles();
            if (rc != 0)
                return bench_fail("%s: not in this build of libcrypto", kind_names[k]);
            times[k].cycles[i] = (uint32_t)(c1 - c0);
            times[k].ns[i] = (uint32_t)(bench_now_ns() - t0);
        }
    }
    return 0;
}

static double
mean(const uint32_t *v, uint64_t n)
{
    double sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

/* print_row -- the times of one kind, which get sorted. */
static void
print_row(const char *name, size_t n_bytes, struct times *t, uint64_t rounds, bool json)
{
    double cycles_mean = mean(t->cycles, rounds), ns_mean = mean(t->ns, rounds);
    double ns;

    bench_sort_u32(t->cycles, rounds);
    bench_sort_u32(t->ns, rounds);
    ns = bench_percentile(t->ns, rounds, 50);
    if (json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "checksum");
        bench_json_str(stdout, "checksum", name);
        bench_json_u64(stdout, "bytes", n_bytes);
        bench_json_num(stdout, "kcycles_mean", cycles_mean / 1e3);
        bench_json_num(stdout, "kcycles_median",
                       bench_percentile(t->cycles, rounds, 50) / 1e3);
        bench_json_num(stdout, "kcycles_p99",
                       bench_percentile(t->cycles, rounds, 99) / 1e3);
        bench_json_num(stdout, "us_mean", ns_mean / 1e3);
        bench_json_num(stdout, "us_median", ns / 1e3);
        bench_json_end(stdout);
        return;
    }
    printf("%-15s %6zu %9.2f %9.2f %9.2f %9.2f %9.0f %9.0f\n", name, n_bytes,
           cycles_mean / 1e3, t->cycles[0] / 1e3,
           bench_percentile(t->cycles, rounds, 50) / 1e3,
           bench_percentile(t->cycles, rounds, 99) / 1e3, ns, (double)n_bytes / ns * 1e3);
}

/* run -- both sizes; ret 0, or 1 after a message. */
static int
run(uint64_t rounds, bool json)
{
    static const size_t sizes[] = {PAGE_BYTES, BLOCK_BYTES};
    struct times times[KINDS];
    uint32_t *all = calloc(rounds * KINDS * 2, sizeof *all);
    int rc = 0;

    if (all == NULL)
        return bench_fail("out of memory");
    for (unsigned k = 0; k < KINDS; k++)
        times[k] = (struct times){.ns = all + 2 * k * rounds,
                                  .cycles = all + (2 * k + 1) * rounds};
    if (!json)
        printf("%-15s %6s %9s %9s %9s %9s %9s %9s\n", "checksum", "bytes", "kc mean",
               "kc min", "kc median", "kc p99", "ns median", "MB/s");
    for (size_t s = 0; s < 2 && rc == 0; s++) {
        rc = measure(times, rounds, sizes[s]);
        for (unsigned k = 0; k < KINDS && rc == 0; k++)
            print_row(kind_names[k], sizes[s], &times[k], rounds, json);
    }
    free(all);
    return rc;
}

int
bench_checksum_main(int argc, char **argv)
{
    static const struct option long_options[] = {{"rounds", required_argument, NULL, 'n'},
                                                 {"json", no_argument, NULL, 'j'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {0}};
    uint64_t rounds = 100000;
    bool json = false;
    int code;

    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (code == 'h') {
            usage();
            return 0;
        }
        if (code == 'j')
            json = true;
        else if (code != 'n')
            return 2;
        else if (!bench_parse_u64(optarg, &rounds) || rounds == 0
                 || rounds > ROUNDS_MAX) {
            (void)bench_fail("--rounds %s: a number from 1 to 100000000 is wanted",
                             optarg);
            return 2;
        }
    }
    if (optind < argc) {
        (void)bench_fail("checksum: unexpected argument \"%s\"", argv[optind]);
        return 2;
    }
    return run(rounds, json);
}
