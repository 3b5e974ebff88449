/* SPDX-License-Identifier: MIT */
/*
 * check_options.c -- the borders of each row in the table of options.
 *
 * GOAL    an option takes its least and its most value and the one beside them, and no value
 *         below, above, or of another kind; an unknown number is no option; what is stored is
 *         read as the default, or as what was set, and changes no other field.  The log buffer
 *         follows from the size of a segment, unless its size is set.
 * METHOD  each row of the table, by what the row itself says of its values; the log buffer of
 *         environments that are opened with several sizes.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/common/env.h"
#include "api/api.h"
#include "env/options.h"
#include "shared/env_state.h"

static void
must_take(int number, uint64_t value, bool takes)
{
    int rc = xac_option_check("test", number, value);

    if (rc != (takes ? 0 : EINVAL))
        env_fail(__FILE__, __LINE__, "option %d, value %llu: %d", number,
                 (unsigned long long)value, rc);
}

START_TEST(borders_of_each_row)
{
    const struct xac_option_row *r = xac_option_find(_i);

    if (r == NULL)
        return;
    must_take(_i, r->least, true);
    must_take(_i, r->most, true);
    must_take(_i, r->also, true);
    if (r->least > 0)
        must_take(_i, r->least - 1, r->least - 1 == r->also);
    if (r->most < UINT64_MAX) {
        must_take(_i, r->most + 1, r->most + 1 == r->also);
        must_take(_i, UINT64_MAX, r->also == UINT64_MAX);
        /* not cut to the bits of its field */
        must_take(_i, (UINT64_C(1) << 32) + r->least,
                  r->bytes == sizeof(uint64_t)
                      && (UINT64_C(1) << 32) + r->least <= r->most);
    }
    if (r->values == XAC_VALUES_POWER)
        must_take(_i, r->least + 1, false);
}
END_TEST

START_TEST(unknown_numbers_are_refused)
{
    static const int numbers[] = {INT_MIN, -1, 0, XAC_OPTION_END, XAC_OPTION_END + 1,
                                  INT_MAX};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        must(xac_option_find(numbers[i]) == NULL);
        must_take(numbers[i], 0, false);
    }
}
END_TEST

/* Two deprecated options set another one; all others set their own field, and no other. */
START_TEST(store_sets_one_field)
{
    const struct xac_option_row *r = xac_option_find(_i);
    static struct xac_env_options before, after;
    unsigned char *a = (unsigned char *)&after, *b = (unsigned char *)&before;

    if (r == NULL || strncmp(r->name, "XAC_OPT_STAY", 12) == 0
        || strcmp(r->name, "XAC_OPT_DECLARED") == 0)
        return;
    xac_options_default(&before);
    xac_options_default(&after);
    must(memcmp(a, b, sizeof after) == 0);
    xac_option_store(&after, _i, r->most);
    if (r->bytes == sizeof(uint64_t)) {
        must_eq(*(uint64_t *)(void *)(a + r->offset), r->most);
    } else {
        must_eq(*(uint32_t *)(void *)(a + r->offset), r->most);
    }
    memcpy(a + r->offset, b + r->offset, r->bytes);
    must(memcmp(a, b, sizeof after) == 0);
}
END_TEST

static const struct {
    uint64_t segment, buffer; /* what is set; UINT64_MAX: nothing */
    uint64_t wanted;
} buffers[] = {
    {UINT64_MAX, UINT64_MAX, 4 << 20}, {16 << 20, 0, 4 << 20},
    {64 << 10, UINT64_MAX, 1 << 20},   {4 << 20, UINT64_MAX, 1 << 20},
    {8 << 20, UINT64_MAX, 2 << 20},    {64 << 20, UINT64_MAX, 16 << 20},
    {64 << 10, 64 << 10, 64 << 10},    {UINT64_MAX, 8 << 20, 8 << 20},
};

START_TEST(log_buffer_follows_the_segment)
{
    if (buffers[_i].segment != UINT64_MAX)
        must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, buffers[_i].segment));
    if (buffers[_i].buffer != UINT64_MAX)
        must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, buffers[_i].buffer));
    env_put((uint64_t *)env_attach(DURABLE, 1), 1);
    must_eq(xac_api_env->ctl->log.ring_bytes, buffers[_i].wanted);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("options");
    TCase *tc = env_tcase(s, "table", 60);

    tcase_add_loop_test(tc, borders_of_each_row, 0, XAC_OPTION_END);
    tcase_add_test(tc, unknown_numbers_are_refused);
    tcase_add_loop_test(tc, store_sets_one_field, 0, XAC_OPTION_END);
    tcase_add_loop_test(tc, log_buffer_follows_the_segment, 0,
                        sizeof buffers / sizeof buffers[0]);
    return env_main(s);
}
