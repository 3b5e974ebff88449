/* SPDX-License-Identifier: MIT */
/*
 * scenarios.c -- see scenarios.h.
 */
#include "scenarios.h"

#include <stddef.h>

/* clang-format off */
const struct scenario scenarios[] = {
    /* Steps do not overlap: every outcome is foretold. */
    {.name = "retry keeps its age",
     .program = {"b r0 w1 e b w0 e", "b w0 r1 e b w0 e"}},
    {.name = "give up",
     .program = {"b w0 a r1 e b w0 e", "b w1 r0 e"}},
    {.name = "second access",
     .program = {"b r0 w0 r1 w1 e", "b r1 w0 r0 e"}},
    {.name = "kept copies",
     .program = {"b w0 w1 e b r0 r1 e", "b r0 r1 e b w1 r0 e"}},
    {.name = "equal values",
     .program = {"b s0 w1 e", "b w0 s1 e"}},
    {.name = "query and writers",
     .program = {"q r0 r1 r0 e", "b w0 w1 e b w0 w1 e"}},
    {.name = "failed, gc",
     .program = {"b w0 w1 e b r0 r1 r0 e", "b w0 e b w1 e c"}},
    {.name = "queries, gc",
     .program = {"q r0 r1 e", "q r1 r0 e", "b w0 e b w0 e c b w0 e c"}},

    /* One of the steps is interrupted. */
    {.name = "equal values, preempted",
     .program = {"b s0 w1 e", "b w0 e"}, .preempts = 1},
    {.name = "failed midway, gc",
     .program = {"b r0 r1 e", "b w1 e b w0 w1 e c"},
     .policy = MODEL_SELFISH,
     .preempts = 1},
    {.name = "query, gc",
     .program = {"q r0 r1 e", "b w0 e b w0 e c"}, .preempts = 1},
    {.name = "query begins, gc",
     .program = {"q e", "b w0 e b w0 e c"}, .preempts = 2},
    {.name = "query, checkpoint",
     .program = {"b w0 e q r0 e", "k b w0 e"}, .preempts = 1},
    {.name = "checkpoint, writer",
     .program = {"b w0 e k", "b w0 e b w0 e"}, .preempts = 1},
    {.name = "checkpoint, gc, writer",
     .program = {"b w0 e k", "b w0 e c b w1 e"}, .preempts = 1},
    {.name = "sweep, writer",
     .program = {"b w1 e k", "b w0 e b w0 e b w0 e c b w0 e"}, .preempts = 1,
     .is_long = true},
    {.name = "begin, gc",
     .program = {"b r0 e b r0 e", "b w0 e c"}, .preempts = 1},
    {.name = "begin, two runs of gc",
     .program = {"b r0 e b r0 e", "b w0 e b w0 e c"}, .preempts = 1, .is_long = true},
    {.name = "reader on a frame",
     .program = {"b w0 e q r0 e", "k b w1 e b w1 e b w1 e"}, .preempts = 1,
     .is_long = true},
    {.name = "two checkpoints",
     .program = {"b w0 e k", "b w1 e k"}, .preempts = 1},
    {.name = "two runs of gc",
     .program = {"b w0 e c", "b w0 e c"}, .preempts = 1},

    /* Somebody dies. */
    {.name = "death between steps",
     .program = {"b w0 w1 d", "b r0 w1 e", "x"}},
    {.name = "death of a query",
     .program = {"q r0 d", "b w0 e b w0 e c x c"}},
    {.name = "death in a commit",
     .program = {"b w0 w1 e", "b r0 w1 e b r0 e"}, .deaths = 1, .mortals = 1},
    {.name = "death in a commit, others go on",
     .program = {"b w0 w1 e", "b w2 e q r0 r1 e"}, .deaths = 1, .mortals = 1},
    {.name = "death in a checkpoint",
     .program = {"b w0 e k", "b w0 w1 e k"}, .deaths = 1, .mortals = 1},
    {.name = "death in gc",
     .program = {"b w0 e b w0 e c", "b w0 e c k"}, .deaths = 1, .mortals = 1},
    {.name = "death of a reaper",
     .program = {"b w0 d", "x", "b r0 e"}, .deaths = 1, .mortals = 2},
    {.name = "death of a reaper among writers",
     .program = {"b w0 d", "x b w0 e", "b r0 e x"}, .deaths = 1, .mortals = 2,
     .is_long = true},
    {.name = "death, preempted reader",
     .program = {"b w0 w1 e", "b r0 r1 e"}, .preempts = 1, .deaths = 1, .mortals = 1,
     .is_long = true},

    /* Pages stay mapped while there is one participant. */
    {.name = "joined while a reader runs", .stays_mapped = true,
     .program = {"b r0 r1 w2 e b r0 r1 e", "j b w0 w1 e l"}},
    {.name = "joined while a writer runs", .stays_mapped = true,
     .program = {"b w0 r1 e b r0 e", "j b w1 w0 e"}},
    {.name = "joined while a query runs", .stays_mapped = true,
     .program = {"q r0 r1 e b r0 e", "j b w0 w1 e k l"}},
    {.name = "joined, preempted", .stays_mapped = true,
     .program = {"b r0 w1 e", "j b w0 e"}, .preempts = 1},
    {.name = "alone again", .stays_mapped = true,
     .program = {"b r0 e b r0 w1 e b r0 e", "j b w0 e l"}},
    {.name = "two join", .stays_mapped = true,
     .program = {"b r0 r1 e", "j b w0 e l", "j b r0 e"}},
    {.name = "two join and write", .stays_mapped = true,
     .program = {"b r0 r1 e", "j b w0 e l", "j b r0 w1 e l"}, .is_long = true},

    /* One who has lost takes the turn. */
    {.name = "turn", .policy = MODEL_OPTIMISTIC,
     .program = {"b w0 e b w0 e", "b w0 e b w0 e"}, .preempts = 1},
    {.name = "turn, holder dies", .policy = MODEL_OPTIMISTIC,
     .program = {"b w0 e b w0 e", "b w0 e b w0 e"}, .deaths = 1, .mortals = 1},
    {.name = "turn, both want it", .policy = MODEL_OPTIMISTIC,
     .program = {"b w0 e b r0 w1 e", "b w0 e b r1 w0 e", "b w0 e b w1 e"},
     .is_long = true},

    /* One writer at a time; what stays readable is refreshed at begin. */
    {.name = "in turn", .policy = MODEL_SERIAL,
     .program = {"b r0 w1 e b r1 w0 e", "b r1 w0 e b r0 w1 e"}, .preempts = 1},
    {.name = "in turn, three", .policy = MODEL_SERIAL,
     .program = {"b r0 w1 e", "b r1 w2 e b r0 e", "b w0 e"}, .preempts = 1, .is_long = true},
    {.name = "in turn, one dies", .policy = MODEL_SERIAL,
     .program = {"b w0 w1 e b r0 e", "b r0 w1 e b w0 e"}, .deaths = 1, .mortals = 3},
    {.name = "in turn, queries", .policy = MODEL_SERIAL,
     .program = {"q r0 r1 e q r1 r0 e", "b w0 w1 e b w0 e"}, .preempts = 1},
    {.name = "in turn, gives up", .policy = MODEL_SERIAL,
     .program = {"b w0 r1 a e b r0 w1 e", "b r0 w0 e q r0 e"}, .preempts = 1},
    {.name = "in turn, checkpoint", .policy = MODEL_SERIAL,
     .program = {"b w0 e b r0 r1 e", "b w1 e k q r0 r1 e"}, .preempts = 1},

    {.name = NULL},
};
/* clang-format on */
