/* SPDX-License-Identifier: MIT */
/*
 * util.h -- small things that every benchmark needs.
 *
 * WHAT      Clock, order statistics, key and value generator, size parser, broken lines, progress
 *           bar, temporary directories, JSON fields.
 * THREADS   none; one process each.
 */
#ifndef XBENCH_UTIL_H
#define XBENCH_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_KEY_BYTES   8u
#define BENCH_VALUE_BYTES 512u

/* bench_now_ns -- CLOCK_MONOTONIC, the same for all processes of the machine. */
uint64_t bench_now_ns(void);

/* bench_cpu_ns -- processor time of the process, all its threads. */
uint64_t bench_cpu_ns(void);

/* bench_sleep_until -- at once if that has passed; ns of bench_now_ns(). */
void bench_sleep_until(uint64_t ns);

/*
 * bench_pin -- the calling thread, the number-th of n that work at the same time, keeps to a
 * processor of its own, if there are enough for all; else the scheduler decides.
 */
void bench_pin(unsigned number, unsigned n);

/* bench_median -- median of n > 0 values; the array is not changed; ENOMEM aborts. */
double bench_median(const double *v, size_t n);

/* bench_sort_u32 -- sort ascending, in place. */
void bench_sort_u32(uint32_t *v, size_t n);

/*
 * bench_percentile -- nearest-rank percentile.
 *
 * in   sorted   ascending, n > 0 values
 * in   percent  0 < percent <= 100
 */
uint32_t bench_percentile(const uint32_t *sorted, size_t n, double percent);

/*
 * bench_key -- key number i of a run: splitmix64 of seed and i.
 *
 * For one seed different i give different keys (the mixing is a bijection), so that
 * every insert adds a record and none replaces another.
 */
uint64_t bench_key(uint64_t seed, uint64_t i);

/* bench_key_encode -- big-endian bytes, so that memcmp() orders keys as integers. */
void bench_key_encode(uint64_t key, unsigned char out[BENCH_KEY_BYTES]);

/* bench_key_decode -- inverse of bench_key_encode(). */
uint64_t bench_key_decode(const unsigned char in[BENCH_KEY_BYTES]);

/* bench_value_fill -- the value that belongs to a key; depends on all its bits. */
void bench_value_fill(uint64_t key, unsigned char out[BENCH_VALUE_BYTES]);

/*
 * bench_parse_u64 -- decimal number with an optional K, M or G (powers of 1024).
 *
 * ret  true and *outp, or false and nothing if the text is not a number or too big.
 */
bool bench_parse_u64(const char *text, uint64_t *outp);

/*
 * bench_parse_number -- the argument of option --name, between low and high inclusive.
 *
 * ret  0 and *outp, or 1 after a message
 */
int bench_parse_number(const char *name, const char *text, uint64_t low, uint64_t high,
                       uint64_t *outp);

/*
 * bench_join_command -- "xbench" and the arguments, for the record; cut if too long.
 *
 * Without --dir and --out: they name places of this machine, and do not change what is done.
 */
void bench_join_command(char *out, size_t out_bytes, int argc, char **argv);

/* Exit status of an experiment that has measured all, where a row with a line to pass has not passed it. */
#define BENCH_SHORT 3

/* bench_fail -- print "xbench: ..." on stderr; ret 1, for `return bench_fail(...)`. */
int bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * bench_wrap -- a text and a newline; broken behind spaces and commas so that lines keep to 100 columns.
 *
 * in   column  where the text begins
 * in   indent  where its further lines begin
 */
void bench_wrap(FILE *f, const char *text, unsigned column, unsigned indent);

/*
 * bench_progress -- redraw the bar on stderr; nothing unless enabled.
 *
 * bench_progress_enable() turns it on if stderr is a terminal and quiet is false.
 * bench_progress_clear() wipes it, before other output.
 */
void bench_progress_enable(bool quiet);
void bench_progress(const char *label, uint64_t done, uint64_t total);
void bench_progress_clear(void);

/* bench_remove_tree -- rm -rf; ret 0 or errno of the first failure. */
int bench_remove_tree(const char *path);

/* bench_write_zeros -- to a file from `at` to `end`, and sync it; ret 0 or errno. */
int bench_write_zeros(int fd, uint64_t at, uint64_t end);

/*
 * bench_zero_file -- make a file of `bytes` zero bytes that are written, not merely
 * allocated, and synced: overwriting them later changes no metadata.
 *
 * ret  descriptor open for reading and writing, or -1 with errno.
 */
int bench_zero_file(const char *path, uint64_t bytes);

/*
 * bench_tree_bytes -- size of a segment that holds `count` entries of one of our B+-trees
 * after random inserts, with room to spare; a multiple of block_bytes and of the page.
 */
size_t bench_tree_bytes(uint64_t count, uint64_t entry_bytes, uint64_t block_bytes);

/* JSON: one object per line.  begin, fields, end. */
void bench_json_begin(FILE *f);
/* Comma, if needed, and the key, for a value that the caller prints. */
void bench_json_key(FILE *f, const char *key);
void bench_json_str(FILE *f, const char *key, const char *value);
void bench_json_u64(FILE *f, const char *key, uint64_t value);
void bench_json_bool(FILE *f, const char *key, bool value);
/* A negative or non-finite number means "does not apply" and is printed as null. */
void bench_json_num(FILE *f, const char *key, double value);
/* Any finite number, negative ones too. */
void bench_json_signed(FILE *f, const char *key, double value);
void bench_json_nums(FILE *f, const char *key, const double *v, size_t n);
void bench_json_end(FILE *f);

#endif /* XBENCH_UTIL_H */
