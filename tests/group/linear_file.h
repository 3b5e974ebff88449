/* SPDX-License-Identifier: MIT */
/*
 * linear_file.h -- the mapped file of check_linear.c, and how its programs hand on tokens.
 */
#ifndef XAC_TEST_LINEAR_FILE_H
#define XAC_TEST_LINEAR_FILE_H

#include <stdint.h>

#include "linear_judge.h"

#define LINEAR_PAGE    4096
#define LINEAR_WORDS   (LINEAR_PAGE / 8)
#define LINEAR_RECORDS ((uint64_t)4 << 20)

/* Each number that queries look at has a page of its own, so that a mixture of two states can be seen. */
struct linear_file {
    uint64_t n[LINEAR_WORDS]; /* the first one: how many records there are  */
    uint64_t count[JUDGE_KEYS]
                  [LINEAR_WORDS];    /* likewise                                   */
    uint64_t record[LINEAR_RECORDS]; /* each is the number of a write              */
};

/*
 * The board is a file with a line for each program: "N TOKEN ACKNOWLEDGED N" and blanks.  N is how many records the state of
 * the token has; ACKNOWLEDGED how many writes of this program, in all its lives, have been acknowledged.  A line is written at
 * once, and lies in one page; one whose two N differ has been read while it was written.
 */
#define BOARD_NAME  "board"
#define BOARD_LINE  128
#define BOARD_LINES 6

#endif /* XAC_TEST_LINEAR_FILE_H */
