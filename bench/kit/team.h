/* SPDX-License-Identifier: MIT */
/*
 * team.h -- processes that do what they are told.
 *
 * WHAT      Members are forked once and told what to do over a socket each, so that starting
 *           them is not measured.  Every answer carries the times of the work itself
 *           (CLOCK_MONOTONIC), so that the message is not measured either.
 * PLACE     Each keeps to a processor of its own, if there are enough (bench_pin).  Woken by
 *           the same parent, they would share one until the scheduler notices, which is
 *           longer than a slice of small transactions.
 * DEATH     Members die with their parent (PR_SET_PDEATHSIG).  One that dies or does not
 *           answer in time is an error of the run, never a hang: the others may wait for
 *           what it had, so the death of any is looked for.
 * NOT HERE  What an order means: obey() of the experiment.
 */
#ifndef XBENCH_TEAM_H
#define XBENCH_TEAM_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_TEAM_MAX    64u
#define BENCH_TEAM_COUNTS 8u

/* Between a process and its parent, at most. */
#define BENCH_TEAM_SOCKETS_MAX 256u

struct bench_order {
    unsigned kind;       /* place in order_names                                       */
    uint64_t arg;        /* of that kind                                               */
    unsigned timeout_ms; /* longest wait for the answer; 0: two minutes                */
    uint64_t start_ns;   /* when to begin; by bench_team_ask_all()                     */
};

struct bench_answer {
    int code;                          /* 0, or an error that explain() knows           */
    char text[200];                    /* words for it                                  */
    uint64_t start_ns, end_ns;         /* of the work                                   */
    uint64_t count[BENCH_TEAM_COUNTS]; /* what the experiment counts                   */
};

struct bench_team {
    const char *label;              /* for messages                                    */
    const char *const *order_names; /* for messages                                    */
    void *arg; /* for obey; each member has a copy of what it shows */

    /* In the member: carry out an order; ret answer->code. */
    int (*obey)(void *arg, unsigned number, const struct bench_order *order,
                struct bench_answer *answer);
    const char *(*explain)(int code);

    unsigned n;
    struct {
        pid_t pid;
        int socket; /* of the parent; -1 when stopped                                  */
    } member[BENCH_TEAM_MAX];
};

/*
 * bench_team_fork -- a child that dies with its parent, has nothing of it but the standard
 * streams and a socket to it, and leaves signals from the terminal to it.
 *
 * in   n        sockets between the two, at least 1
 * out  sockets  the caller's ends; -1 if there are none
 * ret  the child's pid; 0 in the child; -1 after a message.
 */
pid_t bench_team_fork(int *sockets, unsigned n);

/*
 * bench_team_start -- fork n members; the fields before `n` are filled in.
 *
 * ret  0, or 1 after a message; bench_team_stop() in both cases.
 */
int bench_team_start(struct bench_team *team, unsigned n);

/* bench_team_ask -- one order to one member; ret 0, or 1 after a message. */
int bench_team_ask(struct bench_team *team, unsigned number,
                   const struct bench_order *order, struct bench_answer *answer);

/* bench_team_start_ns -- for an order to many: a moment at which all will have read it. */
uint64_t bench_team_start_ns(void);

/*
 * bench_team_ask_all -- the same order to all; they begin at the same time.
 *
 * out  answers  team->n of them
 * ret  0, or 1 after a message
 */
int bench_team_ask_all(struct bench_team *team, const struct bench_order *order,
                       struct bench_answer *answers);

/* bench_team_ns -- from the first start to the last end of what all were asked. */
uint64_t bench_team_ns(const struct bench_team *team, const struct bench_answer *answers);

/* bench_team_stop -- kill those that still run; any state. */
void bench_team_stop(struct bench_team *team);

#endif /* XBENCH_TEAM_H */
