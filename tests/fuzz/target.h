/* SPDX-License-Identifier: MIT */
/*
 * target.h -- what a fuzzer plays with: a target takes bytes, damages something by them and
 * shows it to the library.
 *
 * WHAT      The table of targets, the reader of an input, a scratch directory, and a watch
 *           that nothing is written outside of it.
 * NOT HERE  Who makes the bytes: libFuzzer (libfuzzer.c), or the stored corpus and a few
 *           random changes of it (check_corpus.c).
 *
 * Bytes that are missing at the end of an input read as zeros: a target says what zeros mean,
 * and an empty input is something undamaged.
 *
 * A target fails by fuzz_fail(), by crashing, by a report of a sanitizer, or by taking too long.
 */
#ifndef XAC_TEST_FUZZ_TARGET_H
#define XAC_TEST_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
};

extern const struct fuzz_target fuzz_env_targets[], fuzz_note_targets[],
    fuzz_heap_targets[], fuzz_region_targets[], fuzz_ship_targets[], fuzz_group_targets[],
    fuzz_list_targets[];

/* fuzz_target_at -- the i-th target; NULL behind the last. */
const struct fuzz_target *fuzz_target_at(size_t i);

/* ---- An input ------------------------------------------------------------------------- */

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* fuzz_bytes -- a little-endian number of n bytes. */
uint64_t fuzz_bytes(struct fuzz_input *in, unsigned n);

/* fuzz_below -- 0 <= result < n; 0 if n is 0. */
uint64_t fuzz_below(struct fuzz_input *in, uint64_t n);

/* fuzz_number -- a number that is likely to matter: small, huge, near `was`, any. */
uint64_t fuzz_number(struct fuzz_input *in, uint64_t was);

/* fuzz_poke -- replace one field of 1, 2, 4 or 8 bytes by such a number. */
void fuzz_poke(struct fuzz_input *in, uint8_t *bytes, size_t size, size_t at);

/*
 * fuzz_edit -- change some bytes: a field, a few bytes, the end cut off, or zeros behind it.
 *
 * in   room  bytes that there is room for, *np at least
 */
void fuzz_edit(struct fuzz_input *in, uint8_t *bytes, size_t *np, size_t room);

/* ---- Around it ------------------------------------------------------------------------ */

_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define fuzz_must(cond) \
 ((cond) ? (void)0 : fuzz_fail("%s:%d: not so: %s", __FILE__, __LINE__, #cond))

/* fuzz_told -- if a call has failed, then with words; clears them. */
void fuzz_told(const char *call, int rc);

/*
 * fuzz_scratch -- this process's directory, made at the first call and removed at its end; the
 * current one from then on.
 */
const char *fuzz_scratch(void);

/* fuzz_fresh -- an empty directory of that name in the scratch directory, watched; ret its descriptor. */
int fuzz_fresh(const char *name);

/* fuzz_put -- a file with these bytes, and no others; fuzz_get -- the bytes of a file, malloc'ed. */
void fuzz_put(const char *path, const void *bytes, size_t n);
uint8_t *fuzz_get(const char *path, size_t *np);

/* fuzz_watch -- from now on it is a failure if the library writes outside of it. */
void fuzz_watch(void);

#endif /* XAC_TEST_FUZZ_TARGET_H */
