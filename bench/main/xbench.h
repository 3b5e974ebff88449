/* SPDX-License-Identifier: MIT */
/*
 * xbench.h -- what an experiment is, and the table of them.
 *
 * WHAT      `xbench NAME ARG...` calls one experiment; `xbench run NAME` calls it in a child
 *           process and keeps what it measured in a file; `xbench report` makes a page of
 *           the files.
 * TO ADD ONE
 *           1. Write `int bench_x_main(int argc, char **argv)` in a file of its own.  With
 *              --json it prints one object a line (bench_json_...() of util.h) and nothing
 *              else on standard output: first "experiment" with the name in argv[0], then
 *              what was measured under what settings.  Units stand in the keys (`_us`,
 *              `_cycles`, `_bytes_per_insert`).  Without --json it prints a table.
 *              Temporary files go into a directory made in the working directory, or
 *              in --dir, and are gone at the end.
 *              Its help is made of its line in bench_experiments[] and of its options
 *              (bench_options_help() of kit/options.h).
 *           2. Declare it below, and give it a line in bench_experiments[] (experiments.c).
 *           3. The Thesis' numbers go into thesis.c, with the measurement that they are
 *              compared with.
 *           4. Which columns and figures the page shows stands in bench/main/report_spec.py.
 *              An experiment that is not there gets a table of all it has measured.
 * INVARIANTS
 *   1. Names are different, of a-z, 0-9 and '-': they are file names and commands.
 *   2. The experiments of `xbench run all --quick` take 20 minutes together at most; so
 *      quick arguments aim at less than half a minute.  Those of `--medium` take 35 minutes on
 *      two processors that do nothing else.
 */
#ifndef XBENCH_XBENCH_H
#define XBENCH_XBENCH_H

struct bench_experiment {
    const char *name;
    const char *what; /* one line, which says all by itself: its help begins with it */
    const char
        *thesis; /* what of the Thesis it makes again: "table 5.5"; "" if nothing */

    /*
     * in   argc, argv  from the name on, as main() gets them
     * ret  exit status: 0 all measured (and verified), 1 a failure, 2 a wrong argument,
     *      BENCH_SHORT (util.h) a row with a line to pass has not passed it
     */
    int (*main)(int argc, char **argv);

    /*
     * Arguments, separated by single spaces.  Without `run` and without options an experiment has those of
     * `medium`; one with `fixed` has them as defaults of its options, and its help shows them there.
     */
    const char
        *fixed;       /* always, before the user's: makes an experiment of another one  */
    const char *full; /* of `xbench run`                                             */
    const char *medium; /* of `xbench run --medium`; NULL: as full                     */
    const char *quick;  /* of `xbench run --quick`                                     */
};

/* All experiments, ended by a NULL name. */
extern const struct bench_experiment bench_experiments[];

/* bench_experiment_find -- by name; NULL if there is none. */
const struct bench_experiment *bench_experiment_find(const char *name);

/*
 * bench_experiment_call -- run it in this process.
 *
 * in   more    arguments of `full`, `medium` or `quick`, or ""
 * in   argc, argv  further arguments, the user's
 * ret  exit status
 */
int bench_experiment_call(const struct bench_experiment *x, const char *more, int argc,
                          char **argv);

/* ---- Commands of the front end; argv[0] is the command, ret the exit status --------- */

/* bench_run_main -- run.c: experiments in child processes, results in files. */
int bench_backups_main(int argc, char **argv);
int bench_run_main(int argc, char **argv);

/* bench_report_main -- run.c: hands over to report.py. */
int bench_report_main(int argc, char **argv);

/* ---- Experiments --------------------------------------------------------------------- */

int bench_backoff_main(int argc, char **argv);
int bench_calls_main(int argc, char **argv);
int bench_checksum_main(int argc, char **argv);
int bench_cold_main(int argc, char **argv);
int bench_commits_main(int argc, char **argv);
int bench_competition_main(int argc, char **argv);
int bench_concurrency_main(int argc, char **argv);
int bench_contention_main(int argc, char **argv);
int bench_frames_main(int argc, char **argv);
int bench_handler_main(int argc, char **argv);
int bench_insert_main(int argc, char **argv);
int bench_larger_main(int argc, char **argv);
int bench_many_main(int argc, char **argv);
int bench_model_main(int argc, char **argv);
int bench_msync_main(int argc, char **argv);
int bench_multiversion_main(int argc, char **argv);
int bench_outofcore_main(int argc, char **argv);
int bench_processors_main(int argc, char **argv);
int bench_recovery_main(int argc, char **argv);
int bench_swizzle_main(int argc, char **argv);
int bench_timer_main(int argc, char **argv);
int bench_touch_main(int argc, char **argv);
int bench_savepoints_main(int argc, char **argv);
int bench_tpcb_main(int argc, char **argv);
int bench_tpcc_main(int argc, char **argv);
int bench_transfers_main(int argc, char **argv);
int bench_watch_main(int argc, char **argv);

#endif /* XBENCH_XBENCH_H */
