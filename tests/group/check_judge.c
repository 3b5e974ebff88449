/* SPDX-License-Identifier: MIT */
/*
 * check_judge.c -- linear_judge.c: the checker of histories finds what is planted.
 *
 * GOAL    A history that can have been passes.  With each kind of violation planted in it, that kind is found, and no other.
 * METHOD  A small history, and lines that are put in or left out.  With XAC_HISTORY=FILE that history is judged instead.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linear_judge.h"
#include "tests/common/env.h"

#define NONE JUDGE_WRONGS

/* The counters of two keys; the others are 0. */
#define COUNTS(a, b) #a " " #b " 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static const char *const good[] = {
    "begin 1 0 10\n",
    "end 1 20 done 0 1\n",
    "begin 2 1 30\n",
    "end 2 40 done 1 1\n",
    "begin 3 0 50\n",
    "end 3 60 uncertain\n",
    "begin 4 0 62\n",
    "begin 5 1 63\n",
    "end 5 64 aborted\n",
    "fate 3 committed\n",
    "fate 4 lost\n",
    "death 15\n",
    "read latest 1 41 45 0 2 2 " COUNTS(1, 1),
    "read snapshot 2 70 75 0 1 1 " COUNTS(1, 0),
    "read token 3 70 80 2 2 2 " COUNTS(1, 1),
    "read snapshot 3 1 2 0 0 0 " COUNTS(0, 0),
    "order 0 1\n",
    "order 1 2\n",
    "order 2 3\n",
};

/* What is planted: a line that begins so is left out ("": none), and more lines. */
static const struct {
    enum judge_wrong wrong, also;
    const char *out, *in;
} planted[] = {
    {JUDGE_LOST, NONE, "", "begin 6 0 90\nend 6 95 done 3 3\n"},
    {JUDGE_LOST, NONE, "", "read snapshot 1 90 95 0 4 3 " COUNTS(2, 1)},
    {JUDGE_SPLIT, JUDGE_LOST, "", "begin 6 0 25\nend 6 45 done 1 2\n"},
    {JUDGE_MOVED, NONE, "end 1", "end 1 20 done 0 2\n"},
    {JUDGE_MOVED, NONE, "", "begin 6 1 90\nend 6 95 done 2 2\norder 3 6\n"},
    {JUDGE_TWICE, NONE, "", "order 3 2\n"},
    {JUDGE_INVENTED, NONE, "", "order 3 9\n"},
    {JUDGE_ABORTED, NONE, "", "order 3 5\n"},
    {JUDGE_ORDER, NONE, "",
     "begin 6 1 90\nend 6 95 done 4 2\nbegin 7 2 97\nend 7 99 uncertain\norder 3 7\norder 4 6\n"},
    {JUDGE_MIXTURE, NONE, "", "read snapshot 1 70 75 0 2 2 " COUNTS(2, 0)},
    {JUDGE_MIXTURE, NONE, "", "read snapshot 1 70 75 0 2 1 " COUNTS(1, 1)},
    {JUDGE_MIXTURE, NONE, "", "read snapshot 1 70 75 0 1 1 " COUNTS(1, 1)},
    {JUDGE_FUTURE, NONE, "", "read snapshot 1 5 9 0 1 1 " COUNTS(1, 0)},
    {JUDGE_OLDER_THAN_TOKEN, NONE, "", "read token 1 70 80 2 1 1 " COUNTS(1, 0)},
    {JUDGE_STALE, NONE, "", "read latest 2 41 45 0 1 1 " COUNTS(1, 0)},
    {JUDGE_STALE, NONE, "",
     "read snapshot 1 62 65 0 3 3 " COUNTS(2, 1) "read latest 2 66 69 0 2 2 " COUNTS(1,
                                                                                     1)},
    {JUDGE_FATE, NONE, "fate 3", "fate 3 lost\n"},
    {JUDGE_FATE, NONE, "fate 4", "fate 4 committed\n"},
    {JUDGE_FATE, NONE, "", "lost 2 80 1\n"},
    {JUDGE_UNREADABLE, NONE, "", "nonsense\n"},
    {JUDGE_UNREADABLE, NONE, "", "end 8 90 aborted\n"},
    {JUDGE_UNREADABLE, NONE, "", "end 2 40 done 1 1\n"},
    {JUDGE_UNREADABLE, NONE, "order 2", "order 5 3\n"},
    {JUDGE_UNREADABLE, NONE, "", "read often 1 70 75 0 1 1 " COUNTS(1, 0)},
    {JUDGE_UNREADABLE, NONE, "", "read snapshot 1 70 75 0 1 1 1\n"},
    {JUDGE_UNREADABLE, NONE, "", "begin 9 0 9"},
};

/* judge -- the good history without `out`, with `in`. */
static void
judge(const char *out, const char *in, struct judge_report *report)
{
    FILE *f = tmpfile();

    must(f != NULL);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (out[0] == '\0' || strncmp(good[i], out, strlen(out)) != 0)
            must(fputs(good[i], f) >= 0);
    }
    must(fputs(in, f) >= 0);
    rewind(f);
    judge_history(f, stdout, report);
    (void)fclose(f);
}

START_TEST(judge_passes_what_can_have_been)
{
    struct judge_report r;

    judge("", "", &r);
    must_eq(r.n_errors, 0);
    must_eq(r.n_acknowledged, 2);
    must_eq(r.n_uncertain, 2);
    must_eq(r.n_aborted, 1);
    must_eq(r.n_fates, 2);
    must_eq(r.n_reads[JUDGE_SNAPSHOT], 2);
    must_eq(r.n_reads[JUDGE_TOKEN], 1);
    must_eq(r.n_reads[JUDGE_LATEST], 1);
    must_eq(r.n_deaths, 1);
    must_eq(r.wait_ns_median, 25);
    must_eq(r.wait_ns_max, 25);
}
END_TEST

START_TEST(judge_finds_what_is_planted)
{
    struct judge_report r;

    judge(planted[_i].out, planted[_i].in, &r);
    for (unsigned k = 0; k < JUDGE_WRONGS; k++) {
        bool is_to_be = k == planted[_i].wrong || k == planted[_i].also;

        if ((r.n_wrong[k] > 0) != is_to_be)
            env_fail(__FILE__, __LINE__, "%" PRIu64 " times: %s", r.n_wrong[k],
                     judge_name((enum judge_wrong)k));
    }
}
END_TEST

/* judge_file -- ret the exit code of the program. */
static int
judge_file(const char *path)
{
    struct judge_report r;
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        perror(path);
        return EXIT_FAILURE;
    }
    judge_history(f, stdout, &r);
    (void)fclose(f);
    printf("%" PRIu64 " errors\n", r.n_errors);
    return r.n_errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(void)
{
    const char *path = getenv("XAC_HISTORY");
    Suite *s = suite_create("judge");
    TCase *t;

    if (path != NULL)
        return judge_file(path);
    t = env_tcase(s, "judge", 60);
    tcase_add_test(t, judge_passes_what_can_have_been);
    tcase_add_loop_test(t, judge_finds_what_is_planted, 0,
                        (int)(sizeof planted / sizeof planted[0]));
    return env_main(s);
}
