/* SPDX-License-Identifier: MIT */
/*
 * linear_judge.h -- what programs at several nodes say that they have written and read, and whether that can have been.
 *
 * WHAT      Each transaction appends its number to one list, and adds 1 to the counter of a key.  A query reads how many
 *           numbers the list has, the last one, and all counters.  Text in, verdict out: the checker knows nothing else.
 * NOT HERE  Programs, nodes and networks (check_linear.c).
 * OWNER     The caller of its file and its report.
 * LOCK      None.
 * THREADS   One.
 *
 * A LINE OF THE HISTORY; times are of one clock, in nanoseconds, and lines may stand in any order
 *   begin ID KEY TIME                  a program is about to write; ID is its own for ever
 *   end ID TIME done PLACE COUNT       acknowledged: it is number PLACE (from 0) of the list, and the key's counter is COUNT
 *   end ID TIME uncertain              nothing is known; so is a write without a line "end", of a program that was killed
 *   end ID TIME aborted                it has not been written
 *   fate ID committed|lost             what a node has said about an uncertain one
 *   read KIND NODE BEGIN END LEAST N LAST COUNT...
 *                                      KIND is snapshot, token or latest; LEAST is what the token had seen, else 0
 *   lost NODE TIME LEAST               a node has said that the state of a token is lost, which somebody had been told stays
 *   death TIME                         the node that led was killed
 *   order PLACE ID                     the list as it is in the end, at all nodes
 *
 * WHAT IS CHECKED
 *   (1) An acknowledged write is in the list, where it was said to be, with the count that it has there; if another
 *       acknowledged one has been told the same place, two nodes have led at once.
 *   (2) No number is there twice, or was never begun, or was said to be aborted.
 *   (3) A write that began when another one was acknowledged stands behind it, at whichever nodes they were.
 *   (4) What a query sees is a beginning of the list: N, the last number and all counters fit together.
 *   (5) It has nothing that was begun after the query had ended.
 *   (6) A query with a token sees no less than the token.
 *   (7) A linearizable query sees no less than what was acknowledged before it began, nor than what any query had seen that
 *       had ended before.
 *   (8) The fate of a write is what the list says.  What stays is not said to be lost.
 */
#ifndef XAC_TEST_LINEAR_JUDGE_H
#define XAC_TEST_LINEAR_JUDGE_H

#include <stdint.h>
#include <stdio.h>

#define JUDGE_KEYS 16

enum judge_wrong {
    JUDGE_UNREADABLE, /* the history itself is wrong                                     */
    JUDGE_LOST,
    JUDGE_SPLIT,
    JUDGE_MOVED,
    JUDGE_TWICE,
    JUDGE_INVENTED,
    JUDGE_ABORTED, /* ... and there                                                   */
    JUDGE_ORDER,
    JUDGE_MIXTURE,
    JUDGE_FUTURE,
    JUDGE_OLDER_THAN_TOKEN,
    JUDGE_STALE,
    JUDGE_FATE,
    JUDGE_WRONGS /* how many there are                                              */
};

enum judge_kind {
    JUDGE_SNAPSHOT,
    JUDGE_TOKEN,
    JUDGE_LATEST,
    JUDGE_KINDS
};

struct judge_report {
    uint64_t n_wrong[JUDGE_WRONGS], n_errors; /* 0: all is well                         */
    uint64_t n_acknowledged, n_uncertain, n_aborted, n_fates;
    uint64_t n_reads[JUDGE_KINDS];
    /* From the death of the node that led to the end of the first write that began after it and was acknowledged. */
    uint64_t n_deaths, wait_ns_median, wait_ns_max;
};

/* judge_name -- of something wrong. */
const char *judge_name(enum judge_wrong wrong);

/* judge_history -- read all of a history.  out  report; words about the first errors go to err. */
void judge_history(FILE *history, FILE *err, struct judge_report *out);

#endif /* XAC_TEST_LINEAR_JUDGE_H */
