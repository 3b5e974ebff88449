/* SPDX-License-Identifier: MIT */
/*
 * check_group_note.c -- the file xac.group (libxac/log/group_note.h).
 *
 * GOAL    It says of which group and which node a directory is, for ever, and that the node has been removed.
 * METHOD  Damages and versions of the file, one byte at a time.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "group_env.h"

START_TEST(the_note_names_group_and_node)
{
    static const char *const wrong[] = {"", "xac-group 1", "xac-group 1\nend\n",
                                        "xac-group 2\ngroup a\n"};
    struct xac_group_note note = a_note(255), got;
    char text[200];
    size_t n;
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_eq(xac_group_note_read(fd, &got), ENOENT);
    must_ok(xac_group_note_write(fd, &note));
    must_ok(xac_group_note_write(fd, &note));
    must_ok(xac_group_note_read(fd, &got));
    must(memcmp(&got.group, &note.group, sizeof got.group) == 0);
    must_eq(got.node, note.node);
    must(!got.is_removed);
    must_refuse(xac_group_note_refuse(fd), XAC_ENOTLEADER);
    note.node = 3;
    must_refuse(xac_group_note_write(fd, &note), EEXIST);
    note = a_note(255);
    note.group[0]++;
    must_refuse(xac_group_note_write(fd, &note), EEXIST);
    n = file_size(XAC_GROUP_NAME);
    must(n < sizeof text);
    file_read(XAC_GROUP_NAME, 0, text, n);
    for (size_t i = 0; i < n; i++) { /* each byte counts */
        text[i] ^= 1;
        file_write(XAC_GROUP_NAME, 0, text, n);
        if (xac_group_note_read(fd, &got) == 0) /* another group or node */
            must((i >= 18 && i < 50) || (i >= 56 && i < 59));
        text[i] ^= 1;
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        must_ok(truncate(XAC_GROUP_NAME, 0));
        file_write(XAC_GROUP_NAME, 0, wrong[i], strlen(wrong[i]));
        must_refuse(xac_group_note_read(fd, &got), i == 3 ? XAC_EVERSION : XAC_EDAMAGED);
    }
    (void)close(fd);
}
END_TEST

START_TEST(a_node_that_has_been_removed_stays_so)
{
    struct xac_group_note note = a_note(7), got;
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_refuse(xac_group_note_remove(fd), ENOENT);
    must_ok(xac_group_note_write(fd, &note));
    file_write(XAC_FOLLOW_NAME, 0, "", 0);
    must_ok(xac_group_note_refuse_tail(fd)); /* a standby's log can be read */
    for (int i = 0; i < 2; i++) {
        must_ok(xac_group_note_remove(fd));
        must_ok(xac_group_note_read(fd, &got));
        must(got.is_removed);
        must_eq(got.node, 7);
        must(memcmp(&got.group, &note.group, sizeof got.group) == 0);
        must_refuse(xac_group_note_write(fd, &note), EEXIST);
        must_refuse(xac_group_note_refuse(fd), XAC_ENOTLEADER);
        must(strstr(xac_err_text(), "node 7 has been removed from its group") != NULL);
        must_refuse(xac_group_note_refuse_tail(fd), XAC_ENOTLEADER);
    }
    (void)close(fd);
}
END_TEST
int
main(void)
{
    Suite *s = suite_create("group_note");
    TCase *t = env_tcase_with(s, "group_note", 60, setup_group);

    env_in_memory();
    tcase_add_test(t, the_note_names_group_and_node);
    tcase_add_test(t, a_node_that_has_been_removed_stays_so);
    return env_main(s);
}
