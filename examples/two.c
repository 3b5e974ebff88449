/* SPDX-License-Identifier: MIT */
/*
 * two.c -- two environments in one program: xac_env.h.
 *
 * A log of words, which must survive a crash, lies in the durable environment "log".  How often
 * each first letter has been seen can be counted again, so it lies in "cache", which is not
 * durable and never waits for the disk.  A word is one transaction in each.
 *
 * usage: two WORD...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>

#define BYTES     ((size_t)1 << 16)
#define WORD_SIZE 32
#define WORDS_MAX ((int)(BYTES / WORD_SIZE) - 1)

struct log {
    int n;
    char word[WORDS_MAX][WORD_SIZE];
};

static struct xac_env *log_env, *cache_env;
static struct log *words;
static int *seen; /* by letter */

static void
die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, xac_last_error());
    exit(EXIT_FAILURE);
}

static struct xac_env *
open_env(const char *dir, int flags)
{
    struct xac_options options;
    struct xac_env *env;

    xac_options_init(&options, sizeof options);
    options.flags = flags;
    env = xac_open(dir, &options);
    if (env == NULL)
        die(dir);
    return env;
}

static void *
map(struct xac_env *env, const char *file)
{
    void *base = xac_mmap_in(env, file, BYTES);

    if (base == MAP_FAILED)
        die(file);
    return base;
}

static int
count(void *letter)
{
    seen[*(unsigned char *)letter]++;
    return 0;
}

/* append -- a transaction in "log", and within it one in "cache" that commits by itself. */
static int
append(void *word)
{
    if (words->n == WORDS_MAX)
        return -1;
    (void)snprintf(words->word[words->n++], WORD_SIZE, "%s", (char *)word);
    return xac_transact_in(cache_env, count, word);
}

int
main(int argc, char **argv)
{
    int rc = 0, n, n_a;

    log_env = open_env("log", XAC_DURABLE);
    cache_env = open_env("cache", XAC_NONDURABLE);
    words = (struct log *)map(log_env, "log.db");
    seen = (int *)map(cache_env, "cache.db");
    for (int i = 1; i < argc && rc == 0; i++)
        rc = xac_transact_in(log_env, append, argv[i]);
    if (rc != 0)
        die("xac_transact_in");
    if (xac_begin_query_in(log_env) != 0 || xac_begin_query_in(cache_env) != 0)
        die("xac_begin_query_in");
    n = words->n;
    n_a = seen['a'];
    if (xac_end_query_in(log_env) != 0 || xac_end_query_in(cache_env) != 0)
        die("xac_end_query_in");
    printf("%d words, %d with an a\n", n, n_a);
    if (xac_close(cache_env) != 0 || xac_close(log_env) != 0)
        die("xac_close");
    return EXIT_SUCCESS;
}
