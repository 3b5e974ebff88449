/* SPDX-License-Identifier: MIT */
/*
 * check_corpus.c -- what fuzzing has found worth keeping does no harm.
 *
 * GOAL    damaged logs, master records, notes, addresses, checksums, heaps, control regions and manifests, and
 *         whatever another standby, source or node of a group sends, are refused in words: no crash, no endless
 *         loop, nothing written elsewhere.
 * METHOD  every target of target.h with its stored inputs (tests/fuzz/corpus/TARGET), and with
 *         XAC_CASES (300) random changes of these.  scripts/fuzz.sh looks for more, guided by
 *         what the inputs reach.
 */
#include <config.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/env.h"
#include "target.h"

#define INPUT_MAX  4096u
#define INPUTS_MAX 4096u

struct input {
    char name[NAME_MAX + 1];
    uint8_t *bytes;
    size_t size;
};

static struct input inputs[INPUTS_MAX];
static size_t n_inputs;
static char corpus[PATH_MAX - 512];

static void
input_add(const char *name, const void *bytes, size_t size)
{
    struct input *to = &inputs[n_inputs++];

    must(n_inputs < INPUTS_MAX && size <= INPUT_MAX);
    /* To the byte: the address sanitizer finds who reads behind it. */
    *to = (struct input){.bytes = (uint8_t *)malloc(size != 0 ? size : 1), .size = size};
    (void)snprintf(to->name, sizeof to->name, "%s", name);
    must(to->bytes != NULL);
    memcpy(to->bytes, bytes, size);
}

static void
read_input(const char *dir, const char *name)
{
    uint8_t bytes[INPUT_MAX + 1];
    char path[PATH_MAX];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "rb");
    must(f != NULL);
    input_add(name, bytes, fread(bytes, 1, sizeof bytes, f));
    (void)fclose(f);
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* read_inputs -- an empty one, and all files of the corpus; ret how many. */
static size_t
read_inputs(const struct fuzz_target *t)
{
    char dir[PATH_MAX - 256];
    struct dirent **list = NULL;
    int n;

    input_add("nothing", "", 0);
    (void)snprintf(dir, sizeof dir, "%s/%s", corpus, t->name);
    n = scandir(dir, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.')
            read_input(dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    return n_inputs;
}

/* run_random -- an input with a few bytes changed, put in or left out; or random ones. */
static void
run_random(const struct fuzz_target *t, uint64_t *seed)
{
    const struct input *from = &inputs[rnd_below(seed, n_inputs)];
    uint8_t *bytes = (uint8_t *)malloc(INPUT_MAX);
    size_t size = from->size;

    must(bytes != NULL);
    memcpy(bytes, from->bytes, size);
    if (size == 0) {
        size = rnd_below(seed, 100);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)rnd_next(seed);
    }
    for (uint64_t n = rnd_below(seed, 5); n > 0 && size > 0; n--) {
        size_t at = rnd_below(seed, size);

        switch (rnd_below(seed, 4)) {
        case 0:
            bytes[at] = (uint8_t)rnd_next(seed);
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << rnd_below(seed, 8));
            break;
        case 2:
            size = at;
            break;
        default:
            memmove(bytes + at, bytes + at + 1, size - at - 1);
            size--;
            break;
        }
    }
    t->run(bytes, size);
    free(bytes);
}

START_TEST(inputs_do_no_harm)
{
    const struct fuzz_target *t = fuzz_target_at((size_t)_i);
    uint64_t cases = env_number("XAC_CASES", 300 / ENV_DEAR);
    uint64_t seed = env_seed() + (uint64_t)_i;
    size_t n = read_inputs(t);

    for (size_t i = 0; i < n; i++) {
        printf("%s: %s\n", t->name, inputs[i].name);
        (void)fflush(stdout);
        t->run(inputs[i].bytes, inputs[i].size);
    }
    for (uint64_t i = 0; i < cases; i++)
        run_random(t, &seed);
    for (size_t i = 0; i < n; i++)
        free(inputs[i].bytes);
    printf("%-10s %4zu stored inputs, %llu random ones\n", t->name, n,
           (unsigned long long)cases);
    (void)fflush(stdout);
}
END_TEST

int
main(void)
{
    const char *srcdir = getenv("srcdir");
    Suite *s = suite_create("corpus");
    TCase *tc = tcase_create("corpus");
    char relative[PATH_MAX - 600];
    int n = 0;

    (void)snprintf(relative, sizeof relative, "%s/tests/fuzz/corpus",
                   srcdir != NULL ? srcdir : ".");
    if (realpath(relative, corpus) == NULL) {
        fprintf(stderr, "%s: no corpus; is srcdir set?\n", relative);
        return EXIT_FAILURE;
    }
    while (fuzz_target_at((size_t)n) != NULL)
        n++;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, inputs_do_no_harm, 0, n);
    suite_add_tcase(s, tc);
    return env_main(s);
}
