/* SPDX-License-Identifier: MIT */
/*
 * check_err.c -- error texts: codes, words, threads, lengths; xac_die.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/common/env.h"
#include "base/err.h"

START_TEST(keep_code_and_words)
{
    ck_assert_int_eq(xac_err(ENOENT, "file %s, %d bytes", "a.b", 7), ENOENT);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), "file a.b, 7 bytes"));
    ck_assert_ptr_nonnull(strstr(xac_err_text(), strerror(ENOENT)));
    ck_assert_int_eq(xac_err(XAC_EDAMAGED, "log"), XAC_EDAMAGED);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), xac_strerror(XAC_EDAMAGED)));
    ck_assert_ptr_null(strstr(xac_err_text(), "a.b"));
    xac_err_clear();
    ck_assert_str_eq(xac_err_text(), "");
}
END_TEST

START_TEST(cut_long_words)
{
    char words[2000];

    for (size_t n = 480; n < 560; n++) {
        memset(words, 'w', n);
        words[n] = '\0';
        ck_assert_int_eq(xac_err(EIO, "%s", words), EIO);
        ck_assert_uint_lt(strlen(xac_err_text()), 512);
        ck_assert_int_eq(strncmp(xac_err_text(), words, n < 511 ? n : 511), 0);
    }
}
END_TEST

static void *
err_elsewhere(void *arg)
{
    ck_assert_str_eq(xac_err_text(), "");
    (void)xac_err(EPERM, "%s", (const char *)arg);
    return NULL;
}

START_TEST(keep_words_per_thread)
{
    char words[] = "of the other thread";
    pthread_t t;

    (void)xac_err(EIO, "mine");
    ck_assert_int_eq(pthread_create(&t, NULL, err_elsewhere, words), 0);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    ck_assert_int_eq(strncmp(xac_err_text(), "mine", 4), 0);
}
END_TEST

START_TEST(explain_every_code)
{
    /* All different, but for codes that do not exist. */
    for (int a = XAC_ENOTENV; a <= XAC_ENOINIT; a++) {
        ck_assert_str_ne(xac_strerror(a), xac_strerror(-1));
        for (int b = XAC_ENOTENV; b < a; b++)
            ck_assert_str_ne(xac_strerror(a), xac_strerror(b));
    }
    ck_assert_str_eq(xac_strerror(EACCES), strerror(EACCES));
    ck_assert_ptr_nonnull(xac_strerror(0));
    ck_assert_ptr_nonnull(xac_strerror(4095));
    ck_assert_ptr_nonnull(xac_strerror(100000));
    ck_assert_ptr_nonnull(xac_strerror(INT32_MIN));
}
END_TEST

static void
violate(void *arg)
{
    (void)arg;
    xac_require(1 + 1 == 3);
}

START_TEST(die_with_the_condition)
{
    char text[512];
    int status = proc_capture(violate, NULL, text, sizeof text);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_ptr_nonnull(strstr(text, "1 + 1 == 3"));
    ck_assert_ptr_nonnull(strstr(text, "check_err.c:"));
    ck_assert_ptr_nonnull(strstr(text, "violate"));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("err");
    TCase *tc = env_tcase(s, "err", 20);

    tcase_add_test(tc, keep_code_and_words);
    tcase_add_test(tc, cut_long_words);
    tcase_add_test(tc, keep_words_per_thread);
    tcase_add_test(tc, explain_every_code);
    tcase_add_test(tc, die_with_the_condition);
    return env_main(s);
}
